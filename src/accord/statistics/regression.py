"""Linear regression: what is asked, how columns become integers, and the coefficients that come out.

Every column is coded within public bounds, so that a person is a point of the box [−1, 1]^(m+1) times Q: a
number is clipped to its bounds and rounded to one of 2Q + 1 steps; a category with K declared values becomes
K − 1 columns, +Q for the value and −Q otherwise, at most one of them +Q; what is missing is the middle of the
bounds, or the first category. The code makes all of these from one value, which the proof of the sensitivity
needs (mechanisms/regression.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from accord.errors import QueryError, did_you_mean
from accord.relation import Relation
from accord.statistics.encoding import Category, Codes, Numeric, Q
from accord.statistics.groups import part_of
from accord.statistics.histogram import categories_of
from accord.statistics.query import Answer, Interval, Query, column_name, exact, number_text
from accord.statistics.record import Statistic
from accord.statistics.target import Products
from accord.theory import FloatArray

MOST_COLUMNS = 100
EXPLAINED, NOISE_LEFT = 0.08, 0.15
"""What the prediction takes for granted, on the scale [−1, 1]²: the variance that the features explain, and
the variance that they do not. Only the predicted error and the amount of shrinkage depend on it, never
privacy."""


@dataclass(frozen=True)
class Regression(Query):
    statistic = "regression"

    target: Numeric
    features: tuple[Numeric | Category, ...]

    @property
    def label(self) -> str:
        return f"regression of {self.target.column} on {', '.join(f.column for f in self.features)}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.target.column, *(f.column for f in self.features))

    @property
    def encoding(self) -> Codes:
        return Codes(self.target, self.features)

    @property
    def codes(self) -> int:
        """m: how many columns the features become."""
        return self.encoding.width

    @property
    def half(self) -> float:
        """What an error on the scale [−1, 1] is multiplied by."""
        return float(self.target.high - self.target.low) / 2

    @property
    def rows_come_to(self) -> str:
        return "and counts with the mean of their rows, and their first declared category"

    def under(self, relation: Relation, about_members: bool = False) -> RegressionTarget | None:
        return None if about_members else RegressionTarget(self, relation)

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: how unevenly people are weighed; where the regression differs between levels, "
            "it is one of "
            "those who weigh more."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "target": self.target.column,
            "features": [f.column for f in self.features],
            "bounds": {
                f.column: [number_text(f.low), number_text(f.high)]
                for f in (self.target, *self.features)
                if isinstance(f, Numeric)
            },
            "categories": {f.column: list(f.values) for f in self.features if isinstance(f, Category)},
        }

    def assumptions(self) -> list[str]:
        told = [
            f"{f.column} lies in [{number_text(f.low)}, {number_text(f.high)}]; what lies outside counts as "
            "the nearer bound, a missing value as the middle"
            for f in (self.target, *self.features)
            if isinstance(f, Numeric)
        ]
        told += [
            f"{f.column} is one of {len(f.values)} declared values; anything else counts as {f.values[0]!r}"
            for f in self.features
            if isinstance(f, Category)
        ]
        return [
            *told,
            f"values are rounded to {2 * Q + 1:,} steps between their bounds",
            "the predicted error is about how far predictions are from those of a regression without noise; "
            "it takes for granted that the features explain "
            "about a third of the target's variance, and is too low where they are nearly collinear",
            "coefficients are shrunk towards zero, the more the noisier they are: they have no standard "
            "errors",
        ]


@dataclass(frozen=True)
class RegressionTarget(Products):
    """Sums of products, from which coefficients are solved (mechanisms/regression.py).

    Charges are chosen by a variance of `variance` for each person's worth and `noise_variance` of the noise.
    """

    query: Regression

    @property
    def variance(self) -> float:
        return NOISE_LEFT * (self.query.codes + 1)

    @property
    def noise_variance(self) -> float:
        from accord.mechanisms.regression import noise_variance

        return noise_variance(self.query)

    @property
    def midpoint_error(self) -> float:
        return EXPLAINED + 0.3

    def factor(self, people: int) -> float:
        return self.query.half

    def middle(self, people: int) -> Answer:
        return Coefficients.of(self.query, 0.0, np.zeros(self.query.codes), "nothing was read")

    def possible(self, people: int) -> Interval:
        return -2 * self.query.half, 2 * self.query.half

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        from accord.mechanisms.regression import solve

        return solve(self.query, released)


@dataclass(frozen=True)
class Coefficients:
    """A released regression, in the user's own units."""

    query: Regression
    intercept: float
    coefficients: Mapping[str, float]
    """Of each feature: by how much the target rises with one unit of it; of a category, compared with the
    first one declared.
    """
    note: str
    scaled: tuple[float, ...]
    """Intercept and slopes on the scale [−1, 1], where every column runs from −1 to 1 between its bounds."""

    @classmethod
    def of(cls, query: Regression, intercept: float, slopes: FloatArray, note: str = "") -> Coefficients:
        """From the scale [−1, 1] to the user's units."""
        half, middle = query.half, float(query.target.low + query.target.high) / 2
        start, named, k = intercept, {}, 0
        for feature in query.features:
            for name in feature.names:
                slope = float(slopes[k])
                if isinstance(feature, Numeric):
                    width, ends = float(feature.high - feature.low), float(feature.high + feature.low)
                    named[name], start = half * slope * 2 / width, start - slope * ends / width
                else:
                    named[name], start = 2 * half * slope, start - slope
                k += 1
        return cls(query, middle + half * start, named, note, (float(intercept), *map(float, slopes)))

    def predict(self, rows: Any) -> FloatArray:
        """The target for rows with the features' columns: a data frame, an Arrow table, a dict of arrays, or
        a 2-D array in the features' order.

        Values are clipped to the declared bounds as they were for the regression, and so are predictions.
        """
        parts = []
        for k, feature in enumerate(self.query.features):
            if isinstance(rows, np.ndarray):
                if rows.ndim != 2 or rows.shape[1] != len(self.query.features):
                    raise QueryError(
                        f"predict needs a 2-D array with {len(self.query.features)} columns, one for each "
                        "feature."
                    )
                values = rows[:, k]
            else:
                try:
                    values = rows[feature.column]
                except Exception:  # every kind of table has its own
                    raise QueryError(
                        f"the rows have no column {feature.column!r}, which the regression uses."
                    ) from None
            parts.append(feature.coded(values))
        design = np.hstack(parts)
        found: FloatArray = np.clip(self.scaled[0] + design @ np.array(self.scaled[1:]), -1.0, 1.0)
        low, high = float(self.query.target.low), float(self.query.target.high)
        return (low + high) / 2 + (high - low) / 2 * found

    def __repr__(self) -> str:
        slopes = ", ".join(f"{name}: {value:.6g}" for name, value in self.coefficients.items())
        return f"<Coefficients of {self.query.target.column}: intercept {self.intercept:.6g}, {slopes}>"


def regression(
    target: str,
    features: Iterable[str],
    bounds: Mapping[str, tuple[float, float]],
    categories: Mapping[str, Iterable[Any]] | None = None,
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """A linear regression of one column on others.

    Args:
        target: a column of numbers.
        features: columns of numbers, or of declared categories.
        bounds: {column: (low, high)} of the target and of every feature of numbers, public. Narrow ones
            matter: noise is relative to them.
        categories: {column: values} of the others; the first value is what the others are compared with. For
            a column of true and false, [False, True].
        where, by, keys, membership: of whom: see `accord.mean`.

    >>> bounds, categories = {"income": (0, 200_000), "age": (18, 100)}, {"sex": ["f", "m"]}
    >>> regression("income", ["age", "sex"], bounds, categories).label
    'regression of income on age, sex'
    """
    name = column_name(target)
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise QueryError(f"features={features!r} is not a list of columns. Give features=['age', …].")
    asked = [column_name(f) for f in features]
    declared = dict(categories or {})
    if not isinstance(bounds, Mapping):
        raise QueryError(
            "bounds= is a dict of the columns' public bounds, such as {'income': (0, 200_000), 'age': (18, "
            "100)}."
        )
    if not asked or len({*asked, name}) <= len(asked):
        raise QueryError(
            f"a regression got {len(asked)} features, {len(set(asked))} of them different. It needs at least "
            "one, each once, and not the target."
        )
    for given in (*bounds, *declared):
        if given not in (name, *asked):
            raise QueryError(
                f"bounds or categories are given for {given!r}, which is not in the regression: "
                f"{did_you_mean(given, [name, *asked])}"
            )
    coded: list[Numeric | Category] = []
    for column in asked:
        if (column in bounds) == (column in declared):
            raise QueryError(
                f"{column!r} has "
                f"{'both bounds and categories' if column in bounds else 'neither bounds nor categories'}. "
                "Declare one of them, from public "
                "knowledge: bounds={'age': (18, 100)} or categories={'region': ['north', 'south']}."
            )
        coded.append(
            _numeric(column, bounds[column])
            if column in bounds
            else Category(column, categories_of(declared[column], f"the feature {column!r}"))
        )
    written = [text for feature in coded for text in feature.names]
    if len(set(written)) < len(written):
        raise QueryError(
            "two coefficients of the regression are written alike, such as 'region=north' of a column and of "
            "a category. Rename one of them."
        )
    if name not in bounds:
        raise QueryError(
            f"the target {name!r} has no bounds. Declare them, from public knowledge: bounds={{{name!r}: (0, "
            "200_000), …}."
        )
    query = Regression(_numeric(name, bounds[name]), tuple(coded))
    if query.codes > MOST_COLUMNS:
        raise QueryError(
            f"the features become {query.codes} columns; more than {MOST_COLUMNS} are too many for any "
            "noise. Leave some out."
        )
    return part_of(query, where, by, keys, membership)


def _numeric(column: str, bounds: Any) -> Numeric:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise QueryError(f"the bounds of {column!r} are {bounds!r}. Give two numbers (low, high).") from None
    start, end = exact(low, f"the lower bound of {column!r}"), exact(high, f"the upper bound of {column!r}")
    if start >= end:
        raise QueryError(
            f"the bounds of {column!r} are {number_text(start)} and {number_text(end)}. The lower one comes "
            "first, and they differ."
        )
    if not Fraction(1, 10**200) < end - start < 10**200 or max(abs(start), abs(end)) > (end - start) * 10**12:
        raise QueryError(
            f"the bounds of {column!r} are too near to each other, or too far apart, to reckon with. Shift "
            "or scale the column."
        )
    return Numeric(column, start, end)


REGRESSION = Statistic("regression", regression, Products, ("column", "bounds", "on"))
