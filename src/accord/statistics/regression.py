"""Linear regression: what is asked, how columns become integers, and the coefficients that come out.

Every column is coded within public bounds, so that a person is a point of the box [−1, 1]^(m+1) times Q: a
number is clipped to its bounds and rounded to one of 2Q + 1 steps; a category with K declared values becomes
K − 1 columns, +Q for the value and −Q otherwise, at most one of them +Q. Whoever lacks a value in any of the
columns is left out; where none is missing, as declared, a stray one is the middle of the bounds, or the first
category.

Sensitivity  What is released are sums of products of these columns, each at most Q². Under add-remove one
             person adds at most Q² to each. Under replace products of one value cannot all change as much as
             each alone; moments.py has the largest change of all together. Its proof needs that all columns
             of a category are made from one value. Of the members of a private part, under replace, it is
             the larger of both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from accord.errors import QueryError, did_you_mean
from accord.relation import Relation
from accord.statistics import moments
from accord.statistics.encoding import Category, Codes, Numeric, Q
from accord.statistics.grid import MISSING, NONE_MISSING
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.histogram import read_categories
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Interval, Query, column_name, exact, number_text
from accord.statistics.statistic import Statistic
from accord.statistics.target_sums import Products
from accord.theory import FloatArray

_MOST_COLUMNS = 100


@dataclass(frozen=True)
class Regression(Query):
    """A linear regression of one column on others."""

    statistic = "regression"

    target: Numeric
    features: tuple[Numeric | Category, ...]
    missing: str = "exclude"
    """"exclude": whoever lacks one of the columns is left out; "none": nobody does; "middle": counts so."""

    @property
    def label(self) -> str:
        return f"regression of {self.target.column} on {', '.join(f.column for f in self.features)}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.target.column, *(f.column for f in self.features))

    @property
    def encoding(self) -> Codes:
        return Codes(self.target, self.features, self.excludes_missing)

    @property
    def excludes_missing(self) -> bool:
        return self.missing == "exclude"

    def with_all_values(self, columns: Collection[str] | None = None) -> Regression | None:
        if not self.excludes_missing:
            return None
        # whether all values of a category were declared, no constraint says
        is_known = columns is None or (
            set(self.columns) <= set(columns) and not any(isinstance(f, Category) for f in self.features)
        )
        return replace(self, missing="none") if is_known else None

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
        return "and counts with the mean of their rows, and their most frequent categories"

    def under(self, relation: Relation, about_members: bool = False) -> RegressionTarget | None:
        return RegressionTarget(self, relation, about_members)

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: how unevenly people are weighed; where the regression differs between levels, "
            "it is one of those who weigh more."
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
            "missing": self.missing,
        }

    def assumptions(self) -> list[str]:
        of_numbers = [
            f"{f.column} lies in [{number_text(f.low)}, {number_text(f.high)}]; "
            "what lies outside counts as the nearer bound"
            for f in (self.target, *self.features)
            if isinstance(f, Numeric)
        ]
        of_categories = [
            f"{f.column} is one of {len(f.values)} declared values; anything else {self._counts_as(f)}"
            for f in self.features
            if isinstance(f, Category)
        ]
        return [
            *of_numbers,
            *of_categories,
            self._about_missing(),
            f"values are rounded to {2 * Q + 1:,} steps between their bounds",
            "the predicted error is about how far predictions are from those of a regression without noise; "
            "it takes for granted that the features explain about a third of the target's variance, "
            "and is too low where they are nearly collinear",
            "coefficients are shrunk towards zero, the more the noisier they are: "
            "they have no standard errors",
        ]

    def _counts_as(self, feature: Category) -> str:
        return "is missing" if self.excludes_missing else f"counts as {feature.values[0]!r}"

    def _about_missing(self) -> str:
        if self.excludes_missing:
            return (
                "people without a value in any of these columns are left out; "
                "how many is private, and errors are predicted as if none were"
            )
        return NONE_MISSING if self.missing == "none" else "a missing value counts as the middle"


@dataclass(frozen=True)
class RegressionTarget(Products):
    """Sums of products, from which coefficients are solved (moments.py).

    Charges are chosen by a variance of `variance` for each person's worth and `noise_variance` of the noise.
    """

    query: Regression

    @property
    def counts_people(self) -> bool:
        """Whether the number of people is private, and released with the moments."""
        return self.about_members or not self.relation.people_are_public

    @property
    def sensitivity(self) -> Fraction:
        return moments.sensitivity(self.query, self.relation, self.about_members)

    @property
    def variance(self) -> float:
        return moments.NOISE_LEFT * (self.query.codes + 1)

    @property
    def noise_variance(self) -> float:
        return moments.noise_variance(self.query)

    @property
    def midpoint_error(self) -> float:
        return moments.EXPLAINED + 0.3

    def factor(self, people: int) -> float:
        return self.query.half

    def middle(self, people: int) -> Answer:
        return Coefficients.of(self.query, 0.0, np.zeros(self.query.codes), "nothing was read")

    def possible(self, people: int) -> Interval:
        return -2 * self.query.half, 2 * self.query.half

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return Coefficients.of(self.query, *moments.solve(self.query, released))


@dataclass(frozen=True)
class Coefficients:
    """A released regression, in the user's own units."""

    query: Regression
    intercept: float
    coefficients: Mapping[str, float]
    """By how much the target rises with one unit of a feature; of a category, compared with the first one."""
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
        """The target for rows with the features' columns.

        Rows are a data frame, an Arrow table, a dict of arrays, or a 2-D array in the features' order.
        Values are clipped to the declared bounds as they were for the regression, and so are predictions.
        """
        parts = []
        for k, feature in enumerate(self.query.features):
            if isinstance(rows, np.ndarray):
                if rows.ndim != 2 or rows.shape[1] != len(self.query.features):
                    raise QueryError(
                        f"predict needs a 2-D array with {len(self.query.features)} columns, "
                        "one for each feature."
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
        intercept, *slopes = self.scaled
        predicted: FloatArray = np.clip(intercept + np.hstack(parts) @ np.array(slopes), -1.0, 1.0)
        low, high = float(self.query.target.low), float(self.query.target.high)
        return (low + high) / 2 + (high - low) / 2 * predicted

    def __repr__(self) -> str:
        slopes = ", ".join(f"{name}: {value:.6g}" for name, value in self.coefficients.items())
        return f"<Coefficients of {self.query.target.column}: intercept {self.intercept:.6g}, {slopes}>"


@asked_by_group
def regression(
    target: str,
    features: Iterable[str],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    categories: Mapping[str, Iterable[Any]] | None = None,
    missing: str = "exclude",
    *,
    where: str | None = None,
    by: By = None,
    keys: Keys = None,
    membership: str = "private",
    at_most: int = 1,
    suppress: bool | None = None,
    rest: RestLabels = None,
    gap: float | None = None,
    about: str | None = None,
) -> Query[Coefficients]:
    """A linear regression of one column on others.

    Args:
        target: a column of numbers.
        features: columns of numbers, or of declared categories.
        bounds: {column: (low, high)} of the target and of every feature of numbers, public. Narrow ones
            matter: noise is relative to them.
        categories: {column: values} of the others; the first value is what the others are compared with. For
            a column of true and false, [False, True].
        missing: "exclude": whoever lacks a value in any of the columns (or has an undeclared category) is
            left out, and how many that are stays private. "none": no value is missing, as is publicly known;
            a stray one counts as the "middle" of its bounds, or as the first category.
        where, by, keys, membership, at_most, suppress, rest: of whom: see `accord.mean`.

    >>> bounds, categories = {"income": (0, 200_000), "age": (18, 100)}, {"sex": ["f", "m"]}
    >>> regression("income", ["age", "sex"], bounds, categories).label
    'regression of income on age, sex'
    """
    name = column_name(target)
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise QueryError(f"features={features!r} is not a list of columns. Give features=['age', …].")
    columns = [column_name(f) for f in features]
    if not isinstance(categories or {}, Mapping):
        raise QueryError(
            "categories= is a dict of the columns' values, such as {'region': ['north', 'south']}."
        )
    declared = dict(categories or {})
    if not isinstance(bounds, Mapping):
        raise QueryError(
            "bounds= is a dict of the columns' public bounds, "
            "such as {'income': (0, 200_000), 'age': (18, 100)}."
        )
    if not columns or len({*columns, name}) <= len(columns):
        raise QueryError(
            f"a regression got {len(columns)} features, {len(set(columns))} of them different. "
            "It needs at least one, each once, and not the target."
        )
    for column in (*bounds, *declared):
        if column not in (name, *columns):
            raise QueryError(
                f"bounds or categories are given for {column!r}, which is not in the regression: "
                f"{did_you_mean(column, [name, *columns])}"
            )
    coded = tuple(_feature(column, bounds, declared) for column in columns)
    written = [text for feature in coded for text in feature.names]
    if len(set(written)) < len(written):
        raise QueryError(
            "two coefficients of the regression are written alike, such as 'region=north' of a column and of "
            "a category. Rename one of them."
        )
    if name not in bounds:
        raise QueryError(
            f"the target {name!r} has no bounds. "
            f"Declare them, from public knowledge: bounds={{{name!r}: (0, 200_000), …}}."
        )
    if not isinstance(missing, str) or missing not in MISSING:
        raise QueryError(
            f"missing={missing!r} is not offered. Of a regression it is 'exclude' (whoever lacks a value is "
            "left out), 'none' (no value is missing), or 'middle' (of the bounds)."
        )
    query = Regression(read_numeric(name, bounds[name]), coded, missing)
    if query.codes > _MOST_COLUMNS:
        raise QueryError(
            f"the features become {query.codes} columns; "
            f"more than {_MOST_COLUMNS} are too many for any noise. Leave some out."
        )
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


def _feature(column: str, bounds: Mapping[str, Any], categories: Mapping[str, Any]) -> Numeric | Category:
    """A column of numbers or of categories, by which of them is declared."""
    if (column in bounds) == (column in categories):
        both = "both bounds and categories" if column in bounds else "neither bounds nor categories"
        raise QueryError(
            f"{column!r} has {both}. Declare one of them, from public knowledge: "
            "bounds={'age': (18, 100)} or categories={'region': ['north', 'south']}."
        )
    if column in bounds:
        return read_numeric(column, bounds[column])
    return Category(column, read_categories(categories[column], f"the feature {column!r}"))


def read_numeric(column: str, bounds: Any) -> Numeric:
    """A column of numbers with its public bounds.

    Raises:
        QueryError: bounds that are none, or reversed, or equal.
    """
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise QueryError(f"the bounds of {column!r} are {bounds!r}. Give two numbers (low, high).") from None
    start, end = exact(low, f"the lower bound of {column!r}"), exact(high, f"the upper bound of {column!r}")
    if start >= end:
        raise QueryError(
            f"the bounds of {column!r} are {number_text(start)} and {number_text(end)}. "
            "The lower one comes first, and they differ."
        )
    if not Fraction(1, 10**200) < end - start < 10**200 or max(abs(start), abs(end)) > (end - start) * 10**12:
        raise QueryError(
            f"the bounds of {column!r} are too near to each other, or too far apart, to reckon with. "
            "Shift or scale the column."
        )
    return Numeric(column, start, end)


REGRESSION = Statistic("regression", regression, Products, ("column", "bounds", "on", "missing"))
