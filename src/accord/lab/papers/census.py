"""Census-like people with the twelve attributes of [J] V-B, and their coding for a regression of income.

[J] uses 100,000 people of the 2012 US census with a positive income, which are not part of this project.
`people` draws others, one column after the other, each by a law given the columns before it. Its numbers were
set by hand so that shares, correlations and the fit of income look as in public census files of 2011 and 2024
(income clipped to [0, 200,000]: R² about .3); no row is a real person's.

    column               law given the columns above it (σ(z) = 1/(1 + e^−z); [·] is 1 if true, else 0)
    -------------------  ----------------------------------------------------------------------------------
    age                  18 + 77·Beta(1.4, 1.85), whole years
    sex                  male with probability .55 − .001·age
    marital_status       single with probability .04 + .96·exp(−(age − 20)₊/14), else divorced or widowed
                         with .12 + .0055·(age − 30) ± .06 (women +, men −; at least .03), else married
    times_married        0 if single; else 1 + G up to 3, G geometric with P(G ≥ 1) = .006·(age − 15),
                         at least .02 and at most .3
    employed             with probability .88·σ((64 − age)/5.5) − .08·[age < 25] + .03·[male] + .02·[married]
    hours_worked         employed: 40 with probability .48; else, one half each, fewer (5 to 39, uniform) or
                         more (41 + exponential of mean 10), up to 99; under 25 fewer is twice as likely, for
                         men from 25 on more is 1.6 times as likely. Not employed: 5 to 45, uniform, with
                         probability .3 under 60 and .07 from then on, else 0
    owns_house           with probability σ(.85 + .047·(age − 30)) if married, else σ(.1 + .025·(age − 30))
    n_children           Poisson of mean 1.6·exp(−((age − 36)/13)²) if married, .4 of it if single, .6 of it
                         otherwise; up to 10
    n_bedrooms           normal(2.2 + .8·[owns] + .2·[married] + .2·children, .95), rounded, in 0 … 10
    n_vehicles           normal(1.15 + .45·[owns] + .45·[married] + .3·[employed] + .3·(bedrooms − 3) +
                         .4·[age < 25] − .3·[age ≥ 70], .95), rounded, in 0 … 6
    receives_foodstamps  with probability σ(−.1 − 1.4·[owns] + .4·children − .6·[married] − 1.4·[employed]
                         − .03·(age − 45))
    income               exp(8.72 + .024·hours + .033·min(age − 18, 22) + .35·[male] + .1·[married] −
                         .1·[single] + .2·[owns] + .08·(bedrooms − 3) − .4·[foodstamps] + normal(0, .7)),
                         whole dollars, at least 1

The bounds below are public knowledge, not taken from anybody's data. Every column is coded as accord codes a
regression: numbers are clipped to their bounds and rounded to one of 2Q + 1 steps on [−1, 1], what has two
values is ±1, and marital status becomes two ±1 columns, married and single. With the intercept, a column of
ones at the end, there are d = 13 columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.engines import open_source
from accord.errors import SourceError
from accord.statistics.encoding import Numeric, Q
from accord.statistics.regression import Regression, regression
from accord.theory import FloatArray

TARGET = "income"
BOUNDS: dict[str, tuple[int, int]] = {
    "n_bedrooms": (0, 10),
    "n_vehicles": (0, 6),
    "n_children": (0, 10),
    "age": (18, 100),
    "times_married": (0, 3),
    "hours_worked": (0, 99),
    TARGET: (0, 200_000),
}
DIVORCED, MARRIED, SINGLE = "divorced or widowed", "married", "single"
CATEGORIES: dict[str, tuple[Any, ...]] = {
    "receives_foodstamps": (False, True),
    "sex": ("female", "male"),
    "marital_status": (DIVORCED, MARRIED, SINGLE),
    "employed": (False, True),
    "owns_house": (False, True),
}
FEATURES = (
    "receives_foodstamps",
    "sex",
    "marital_status",
    "employed",
    "owns_house",
    "n_bedrooms",
    "n_vehicles",
    "n_children",
    "age",
    "times_married",
    "hours_worked",
)
_OTHER_NAMES = {"employed": "employment_status", "n_children": "n_children_in_household"}
"""Under which names census files also have a column."""
_YES = ("true", "t", "1", "yes", "male", "employed")
_NEVER = ("single", "never_married", "never married")


def people(rng: np.random.Generator, n: int) -> dict[str, NDArray[Any]]:
    """So many people, by the laws of the table above.

    >>> drawn = people(np.random.default_rng(0), 1000)
    >>> sorted(drawn) == sorted((*FEATURES, TARGET))
    True
    >>> int(drawn["age"].min()) >= 18, int(drawn["income"].min()) >= 1
    (True, True)
    """

    def happens(p: FloatArray | float) -> NDArray[np.bool_]:
        return rng.random(n) < p

    age = np.floor(18 + 77 * rng.beta(1.4, 1.85, n))
    male = happens(0.55 - 0.001 * age)
    young = age < 25
    single = happens(0.04 + 0.96 * np.exp(-np.maximum(age - 20, 0) / 14))
    parted = np.maximum(0.12 + 0.0055 * (age - 30) + np.where(male, -0.06, 0.06), 0.03)
    divorced = ~single & happens(parted)
    married = ~single & ~divorced
    again = np.clip(0.006 * (age - 15), 0.02, 0.3)
    times = np.where(single, 0, np.minimum(rng.geometric(1 - again), 3))
    employed = happens(0.88 * _sigmoid((64 - age) / 5.5) - 0.08 * young + 0.03 * male + 0.02 * married)
    fewer, more = np.where(young, 2.0, 1.0), np.where(male & ~young, 1.6, 1.0)
    usual = np.where(
        happens(fewer / (fewer + more)),
        rng.integers(5, 40, n),
        np.minimum(np.floor(41 + rng.exponential(10, n)), 99),
    )
    at_work = np.where(happens(0.48), 40, usual)
    before = np.where(happens(np.where(age < 60, 0.3, 0.07)), rng.integers(5, 46, n), 0)
    hours = np.where(employed, at_work, before)
    owns = happens(_sigmoid(np.where(married, 0.85 + 0.047 * (age - 30), 0.1 + 0.025 * (age - 30))))
    at_home = np.select([married, single], [1.0, 0.4], 0.6)
    children = np.minimum(rng.poisson(1.6 * np.exp(-(((age - 36) / 13) ** 2)) * at_home), 10)
    bedrooms = np.clip(np.rint(rng.normal(2.2 + 0.8 * owns + 0.2 * married + 0.2 * children, 0.95)), 0, 10)
    vehicles = (
        1.15
        + 0.45 * owns
        + 0.45 * married
        + 0.3 * employed
        + 0.3 * (bedrooms - 3)
        + 0.4 * young
        - 0.3 * (age >= 70)
    )
    vehicles = np.clip(np.rint(rng.normal(vehicles, 0.95)), 0, 6)
    need = -0.1 - 1.4 * owns + 0.4 * children - 0.6 * married - 1.4 * employed - 0.03 * (age - 45)
    foodstamps = happens(_sigmoid(need))
    log_income = (
        8.72 + 0.024 * hours + 0.033 * np.minimum(age - 18, 22) + 0.35 * male + 0.1 * married - 0.1 * single
    )
    log_income += 0.2 * owns + 0.08 * (bedrooms - 3) - 0.4 * foodstamps
    income = np.maximum(np.floor(np.exp(log_income + rng.normal(0, 0.7, n))), 1)
    return {
        "receives_foodstamps": foodstamps,
        "sex": np.where(male, "male", "female"),
        "marital_status": np.select([married, single], [MARRIED, SINGLE], DIVORCED),
        "employed": employed,
        "owns_house": owns,
        "n_bedrooms": bedrooms,
        "n_vehicles": vehicles,
        "n_children": children.astype(np.float64),
        "age": age,
        "times_married": times.astype(np.float64),
        "hours_worked": hours.astype(np.float64),
        TARGET: income,
    }


def read(path: str | Path) -> dict[str, NDArray[Any]]:
    """The same columns from a file, as many of them as it has.

    People without a positive income or with anything missing are left out. A file may have employment_status
    ("employed" or not) for employed and n_children_in_household for n_children; whoever of its marital_status
    is neither married nor never married (single) counts as divorced or widowed.

    Raises:
        SourceError: it has no income, none of the other columns, or nobody is left.
    """
    engine = open_source(path)
    dialect = engine.dialect
    names = {
        name: column
        for name in (*FEATURES, TARGET)
        for column in (_OTHER_NAMES.get(name, name), name)  # if there are both, the latter
        if column in engine.columns
    }
    if TARGET not in names or len(names) == 1:
        lack = "none of the columns " + ", ".join(FEATURES) if TARGET in names else f"no column {TARGET!r}"
        raise SourceError(
            f"{str(path)!r} has {lack}. "
            "The regression needs income and at least one of the others, under these names."
        )
    columns = {
        dialect.quote(name): dialect.number(column, engine.columns[column])
        if name in BOUNDS
        else f"LOWER(CAST({dialect.column(column)} AS VARCHAR))"
        for name, column in names.items()
    }
    coded_columns = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
    complete = " AND ".join(f"{name} IS NOT NULL" for name in columns)
    rows = engine.fetch(
        f"SELECT {', '.join(columns)} FROM (SELECT {coded_columns} FROM {engine.source}) "
        f"WHERE {complete} AND {dialect.quote(TARGET)} > 0"
    )
    people = {name: _tidy(name, np.asarray(rows[name])) for name in names}
    if not people[TARGET].size:
        raise SourceError(
            f"{str(path)!r} has nobody with a positive income and all of {', '.join(names)}. "
            "Nothing can be fitted."
        )
    return people


def query_of(columns: dict[str, NDArray[Any]]) -> Regression:
    """The regression of income on whatever else there is, as accord asks it."""
    features = [name for name in FEATURES if name in columns]
    query = regression(
        TARGET,
        features,
        {name: bounds for name, bounds in BOUNDS.items() if name in (*features, TARGET)},
        {name: values for name, values in CATEGORIES.items() if name in features},
        missing="none",
    )
    assert isinstance(query, Regression)
    return query


@dataclass(frozen=True)
class Coded:
    """People as points of [−1, 1]^(d+1)."""

    query: Regression
    x: FloatArray
    """One column for each code of the query's features, and ones at the end."""
    y: FloatArray

    @property
    def d(self) -> int:
        return int(self.x.shape[1])


def coded(columns: dict[str, NDArray[Any]]) -> Coded:
    """Everyone's codes, in steps of 1/Q as accord's engines make them."""
    query = query_of(columns)
    parts = [
        _steps(f.coded(columns[f.column])) if isinstance(f, Numeric) else _signs(f.values, columns[f.column])
        for f in query.features
    ]
    y = _steps(query.target.coded(columns[TARGET]))
    return Coded(query, np.hstack([*parts, np.ones_like(y)]), y[:, 0])


def _steps(scaled: FloatArray) -> FloatArray:
    return np.asarray(np.floor(Q * scaled + Q + 0.5) / Q - 1, dtype=np.float64)


def _signs(values: tuple[Any, ...], column: NDArray[Any]) -> FloatArray:
    return np.where(column[:, None] == np.array(values[1:]), 1.0, -1.0)


def _tidy(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """A column of a file in the words used here."""
    if name in BOUNDS:
        return values.astype(np.float64)
    words = values.astype(str)
    if name == "marital_status":
        return np.select([words == MARRIED, np.isin(words, _NEVER)], [MARRIED, SINGLE], DIVORCED)
    yes = np.isin(words, _YES)
    return np.where(yes, "male", "female") if name == "sex" else yes


def _sigmoid(z: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-z))
