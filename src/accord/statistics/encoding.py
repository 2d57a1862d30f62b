"""Encoding: which integers a person adds to a Summary, and how their rows come to one of them.

There are four kinds. Engines, the simulation and the audit match on these, never on a statistic's class:

    Grid       the cell q in 0 … cells of a value on the grid low + q·step; sums of q, and of q² if asked for
    Indicator  1 for whoever meets a condition, 0 for everyone else, or for whoever does not
    OneOf      in which of several declared cells a value lies: between edges, or one of categories
    Codes      several columns, each as integers in −Q … Q, for sums of their products

Somebody's own algorithm has none: it is given rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf, nextafter
from typing import Any, Literal, TypeAlias

import numpy as np

from accord.statistics import where as grammar
from accord.theory import FloatArray

Kind: TypeAlias = Literal["number", "date", "timestamp"]
PerPerson: TypeAlias = Literal["mean", "sum", "min", "max", "rows"]
"""What the rows of one person come to."""

Q = 2**9
"""Steps of a coded column from the middle of its bounds to either end."""


@dataclass(frozen=True)
class Grid:
    """A column's values on a grid; what lies outside the bounds is at the nearer end."""

    column: str
    kind: Kind
    low: Fraction
    high: Fraction
    step: Fraction
    missing_cell: int | None
    """Where a missing value is; None: nowhere, and whoever has none is left out."""
    per_person: PerPerson
    """What a person's rows come to; "rows": their number, and no column is read."""
    powers: int = 1
    """Up to which power cells are summed: 2 with their squares."""
    is_counted: bool = False
    """Whether people are counted at each cell, and not summed: where ranks are asked for."""

    @cached_property
    def cells(self) -> int:
        """How many steps lie between the bounds: an engine gives every value an integer from 0 to this."""
        return int((self.high - self.low) / self.step)

    @cached_property
    def inverse(self) -> float:
        """1/step as a double, or a little less, so that no value below `high` gets beyond the last cell.

        FLOOR((x − low)·inverse + 0.5), in doubles, is at most `cells` for every x < high. Rounding is
        monotone, so that it is enough to try the last double before `high`.
        """
        low, last = float(self.low), nextafter(float(self.high), -inf)
        inverse = float(1 / self.step)
        if last > low:
            inverse = min(inverse, (self.cells + 0.5) / (last - low))
        while (last - low) * inverse + 0.5 >= self.cells + 1:
            inverse = nextafter(inverse * (1 - 2**-50), 0)
        return inverse


@dataclass(frozen=True)
class Indicator:
    """Whether a person meets a condition; of several rows, whether any does. Without one, everyone does."""

    condition: grammar.Condition | None
    missing_cell: int | None = 0
    """Where somebody is whose values do not decide it; None: nowhere, and they are left out."""


@dataclass(frozen=True)
class OneOf:
    """One of several declared cells."""

    column: str
    edges: tuple[Fraction, ...]
    """Of cells [e0, e1), [e1, e2), …, the last one closed; () for categories."""
    categories: tuple[Any, ...]
    missing: int | None
    """The cell of a missing (or undeclared) value; None: in no cell."""
    cells: int
    kind: Kind = "number"
    """What the edges are; of dates and timestamps, seconds since 1970."""
    per_person: PerPerson = "mean"
    """Of edges: what a person's rows come to. Of categories, they are in the most frequent of their rows'."""
    at_most: int = 1
    """In how many of the categories one person may be."""


@dataclass(frozen=True)
class Numeric:
    """A column of numbers within bounds, coded as −Q … Q."""

    column: str
    low: Fraction
    high: Fraction

    @property
    def codes(self) -> int:
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)

    def coded(self, values: Any) -> FloatArray:
        """In [−1, 1], for predictions."""
        x = np.asarray(values, dtype=np.float64)
        low, high = float(self.low), float(self.high)
        scaled: FloatArray = (2 * np.clip(x, low, high) - (low + high)) / (high - low)
        return np.where(np.isfinite(x), scaled, 0.0).reshape(-1, 1)


@dataclass(frozen=True)
class Category:
    """A column with declared values; the first one is what the others are compared with."""

    column: str
    values: tuple[Any, ...]

    @property
    def codes(self) -> int:
        return len(self.values) - 1

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}={value}" for value in self.values[1:])

    def coded(self, values: Any) -> FloatArray:
        """+1 for the value and −1 otherwise, for predictions."""
        x = np.asarray(values, dtype=object).reshape(-1, 1)
        if isinstance(self.values[0], str):
            x = np.frompyfunc(str, 1, 1)(x)
        same = np.frompyfunc(_same, 2, 1)(x, np.array(self.values[1:], dtype=object)).astype(bool)
        return np.where(same, 1.0, -1.0)


def _same(value: Any, declared: Any) -> bool:
    try:
        return bool(value == declared)
    except TypeError:  # pandas' NA is neither
        return False


@dataclass(frozen=True)
class Product:
    """A sum of the products of one or two coded columns, of which −1 is the target."""

    kind: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Codes:
    """A person as a point of the box [−Q, Q]^(m+1): a target and the columns that the features become."""

    target: Numeric
    features: tuple[Numeric | Category, ...]
    excludes_missing: bool = False
    """Whether whoever lacks one of the columns is no point; else it is the middle, or the first category."""
    asked: tuple[Product, ...] = ()
    """The sums that are made; empty: all that a regression needs."""

    @property
    def width(self) -> int:
        """m: how many columns the features become."""
        return sum(f.codes for f in self.features)

    @property
    def of_category(self) -> list[int]:
        """The category that each coded column is of; −1: it is a number."""
        return _layout(self)[0]

    @property
    def products(self) -> list[Product]:
        """The sums that are made, without the number of people."""
        return list(self.asked) or _layout(self)[1]


@lru_cache(maxsize=64)
def _layout(codes: Codes) -> tuple[list[int], list[Product]]:
    groups: list[int] = []
    for k, feature in enumerate(codes.features):
        groups += [k] * feature.codes if isinstance(feature, Category) else [-1]
    m = len(groups)
    products = [Product("y", (-1,))]
    products += [Product("x", (j,)) for j in range(m)]
    products += [Product("yx", (-1, j)) for j in range(m)]
    products += [
        Product("xx", (j, k))
        for j in range(m)
        for k in range(j + 1, m)
        if groups[j] == -1 or groups[j] != groups[k]
    ]
    products += [Product("square", (j, j)) for j in range(m) if groups[j] == -1]
    return groups, products


Encoding: TypeAlias = Grid | Indicator | OneOf | Codes
