"""Quantiles, the median, and the smallest and largest value: points of a grid by their rank.

Errors are in percentile points: an answer that 48 % of the people lie below is 2 points off the median. On
that scale a person has the variance p(1 − p), whatever the values are, and a choice at charge 1 the variance
8 (mechanisms/rank.py).

Where the number of people is private, a part of everyone's charge goes to a noisy size of them: `spending`
says how much, and mechanisms/rank.py why nobody loses more than their charge.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.encoding import Grid, PerPerson
from accord.statistics.grid import OnGrid, excluded, on_grid
from accord.statistics.groups import part_of
from accord.statistics.query import Answer, Interval, Query, exact, number_text
from accord.statistics.record import Statistic
from accord.statistics.target import Extremes, Quantiles, Ranks

POINTS = 2**16
"""Steps of a grid unless `step` is given: one more point."""
MOST_POINTS = 2**22
_FINEST = 10**6
_ARITHMETIC = Fraction(1, 10**12)
_OF_NO_USE = 0.98
"""Of the largest squared error that there is: a mechanism which may miss by as much does not beat the middle.
"""
SIZE_PART = Fraction(1, 10)
"""Of everyone's charge, for how many there are, where that is private."""


@dataclass(frozen=True)
class Spending:
    """On what a charge of 1 is spent, with weights that are charges."""

    choices: tuple[Fraction, ...]
    """Of each quantile the scale of the choice: P(r) ∝ exp(score(r)/scale)."""
    size: Fraction | None
    """The scale of the noise on the weight of all; None: it is public, or not released."""

    @property
    def variance(self) -> float:
        """Of all choices together, which fall off as exp(−|rank|·W/scale), at the weight W = 1."""
        return float(builtins.sum(2 * scale**2 for scale in self.choices))

    def times(self, factor: int) -> Spending:
        """With scales so many times larger: for weights that are so many times the charge."""
        size = None if self.size is None else factor * self.size
        return Spending(tuple(factor * scale for scale in self.choices), size)


def spending(ps: Sequence[Fraction], relation: Relation, tells_size: bool) -> Spending:
    """How a charge is spent on quantiles, and on the size of those whom they are about.

    The proof is in mechanisms/rank.py.

    >>> from accord.relation import ADD_REMOVE, REPLACE
    >>> spending([Fraction(1, 2)], ADD_REMOVE, True)
    Spending(choices=(Fraction(10, 9),), size=Fraction(10, 1))
    >>> spending([Fraction(1, 2)], REPLACE, True)
    Spending(choices=(Fraction(2, 1),), size=Fraction(2, 1))
    """
    outputs = len(ps)
    if not relation.people_are_public:
        part = 1 - SIZE_PART if tells_size else Fraction(1)
        scales = tuple(2 * outputs * relation.rank_change(p) / part for p in ps)
        return Spending(scales, 1 / SIZE_PART if tells_size else None)
    if not tells_size:
        return Spending((Fraction(2 * outputs),) * outputs, None)
    changes = [builtins.max(p, 1 - p) for p in ps]  # what somebody who comes in or goes out does to a score
    mean = builtins.sum(changes, Fraction(0)) / outputs
    rate = builtins.min(Fraction(1), (1 - SIZE_PART) / mean)
    return Spending((2 * outputs / rate,) * outputs, 1 / (1 - rate * mean))


@dataclass(frozen=True)
class Order(OnGrid):
    """A question about ranks."""

    unit = "percentile points"

    @cached_property
    def encoding(self) -> Grid:
        return replace(super().encoding, is_counted=True)

    @property
    def points(self) -> int:
        """How many points can be answered."""
        return self.cells + 1

    @property
    def rows_come_to(self) -> str:
        return "and counts with the mean of their rows"

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: if the distribution functions of any two levels differ by at most D "
            "percentile points, the "
            "answer is off by at most κ·D points beyond the interval."
        )

    def assumptions(self) -> list[str]:
        bounds, _, missing = super().assumptions()
        step = f"{float(self.step):g}" if self.kind == "number" else str(timedelta(seconds=float(self.step)))
        return [
            bounds,
            f"the answer is one of {self.points:,} points, in steps of {step}",
            missing,
            "the predicted error is for values that lie close together around the answer; the interval holds "
            "for any",
        ]


@dataclass(frozen=True)
class Quantile(Order):
    """One or several quantiles."""

    statistic = "quantile"

    ps: tuple[Fraction, ...] = (Fraction(1, 2),)
    """Ascending."""
    listed: bool = False

    @property
    def label(self) -> str:
        if self.ps == (Fraction(1, 2),):
            return f"median of {self.column}"
        ps = ", ".join(number_text(p) for p in self.ps)
        return f"quantile{'s' * (len(self.ps) > 1)} {ps} of {self.column}"

    def under(self, relation: Relation, about_members: bool = False) -> Quantiles:
        return QuantileTarget(self, relation, about_members)

    def describe(self) -> dict[str, Any]:
        ps = [number_text(p) for p in self.ps]
        return {**super().describe(), "p": ps if self.listed else ps[0]}


@dataclass(frozen=True)
class Extreme(Order):
    """The smallest or the largest value."""

    @property
    def rows_come_to(self) -> str:
        return f"and counts with their {'smallest' if self.statistic == 'min' else 'largest'} value"

    def under(self, relation: Relation, about_members: bool = False) -> Extremes:
        return ExtremeTarget(self, relation, about_members)


@dataclass(frozen=True)
class Min(Extreme):
    """The smallest value."""

    statistic = "min"
    per_person: ClassVar[PerPerson] = "min"


@dataclass(frozen=True)
class Max(Extreme):
    """The largest value."""

    statistic = "max"
    per_person: ClassVar[PerPerson] = "max"


@dataclass(frozen=True)
class OrderTarget(Ranks):
    """Of everyone, of the people who are there, or of the members of a private part."""

    query: Any

    @property
    def points(self) -> int:
        points: int = self.query.points
        return points

    def middle(self, people: int) -> Answer:
        return self.finish([Fraction(self.query.cells // 2)] * self.outputs, people)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        """A point of the grid. An average of points is moved to the nearest one."""
        point: Answer = self.query.point(self.query.low + self.query.step * round(released[0]))
        return point

    def about_size(self, is_free: bool) -> list[str]:
        """What is spent on how many there are, and what that is good for."""
        if not self.tells_size:
            return []
        spent = (
            "it is released with noise as well, within the same charge"
            if is_free
            else "a tenth of everyone's charge is spent on it"
        )
        return [
            f"how many it is about is private; {spent}, so that the interval holds for any number of people "
            "of any levels, if these do not go with their values"
        ]


@dataclass(frozen=True)
class QuantileTarget(OrderTarget, Quantiles):
    """Quantiles, each with its part of the charge."""

    query: Quantile

    @property
    def ps(self) -> tuple[Fraction, ...]:
        return self.query.ps

    @property
    def listed(self) -> bool:
        return self.query.listed

    @property
    def outputs(self) -> int:
        return len(self.ps)

    @property
    def variance(self) -> float:
        return float(builtins.sum(p * (1 - p) for p in self.ps))

    @property
    def noise_variance(self) -> float:
        return spending(self.ps, self.relation, self.tells_size).variance

    @property
    def max_variance(self) -> float:
        return float(builtins.max(p * (1 - p) for p in self.ps))

    @property
    def midpoint_error(self) -> float:
        return _OF_NO_USE * float(builtins.sum(builtins.max(p, 1 - p) ** 2 for p in self.ps))

    def possible(self, people: int) -> Interval:
        everywhere = (0.0, 100.0)
        return [everywhere] * self.outputs if self.listed else everywhere

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        ordered = sorted(released[: self.outputs])  # quantiles never cross
        points = [self.query.point(self.query.low + self.query.step * round(k)) for k in ordered]
        return points if self.listed else points[0]

    def assumptions(self) -> list[str]:
        is_free = self.relation.people_are_public and self.noise_variance == 8.0 * self.outputs**3
        split = f"each of the {self.outputs} quantiles has its part of everyone's charge"
        return [*super().assumptions(), *self.about_size(is_free), *([split] if self.outputs > 1 else [])]


@dataclass(frozen=True)
class ExtremeTarget(OrderTarget, Extremes):
    """Min or max, as the quantile so far out that an answer beyond all people is unlikely.

    Which quantile that is depends on the charges.
    """

    @property
    def is_largest(self) -> bool:
        return isinstance(self.query, Max)

    @property
    def variance(self) -> float:
        return 0.25  # before the quantile is known

    @property
    def noise_variance(self) -> float:
        return 8 / float(1 - SIZE_PART) ** 2 if self.tells_size else 8.0

    @property
    def midpoint_error(self) -> float:
        return _OF_NO_USE

    def possible(self, people: int) -> Interval:
        return 0.0, 100.0

    def assumptions(self) -> list[str]:
        return [*super().assumptions(), *self.about_size(False)]


def quantile(
    column: str,
    p: float | Iterable[float],
    bounds: Any,
    step: Any = None,
    missing: Any = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The value that a fraction p of the people lie below; several p at once share the budget and never
    cross.

    Args:
        column: a column of numbers, dates or timestamps.
        p: between 0 and 1; for the ends, ask for `min` and `max`.
        bounds: (low, high), public: two numbers, two dates or two timestamps. Values outside count as the
            nearer bound.
        step: the distance of the points that can be answered; by default a 65,536th of the width, or a day.
        missing: what NULL and NaN count as: "middle" of the bounds, a value, or "exclude".
        where, by, keys, membership: of whom: see `accord.mean`.

    >>> quantile("income", [0.5, 0.9], bounds=(0, 200_000)).label
    'quantiles 0.5, 0.9 of income'
    """
    if getattr(p, "ndim", 1) == 0:
        p = p.item()  # type: ignore[union-attr]
    listed = isinstance(p, Iterable) and not isinstance(p, str)
    ps = sorted(_fraction(x) for x in (p if listed else [p]))  # type: ignore[union-attr]
    for x in ps:
        if x in (0, 1):
            raise QueryError(
                f"p={number_text(x)} is the {'smallest' if x == 0 else 'largest'} value. Ask for "
                f"accord.{'min' if x == 0 else 'max'}."
            )
        if not 0 < x < 1 or (x * _FINEST).denominator != 1:
            raise QueryError(
                f"p={number_text(x)} is not a fraction of the people. Give a number between 0 and 1, with at "
                "most six decimals."
            )
    if not ps or len(set(ps)) < len(ps):
        raise QueryError(f"p= has {len(ps)} entries. Give at least one, each once.")
    asked = Quantile(
        **on_grid("quantile", column, bounds, step, missing, POINTS, MOST_POINTS), ps=tuple(ps), listed=listed
    )
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


def _fraction(p: Any) -> Fraction:
    """p by its decimal value; what floating-point arithmetic adds after the millionths (0.1 + 0.2) is not
    meant.
    """
    asked = exact(p, "p")
    near = Fraction(round(asked * _FINEST), _FINEST)
    return near if 0 < near < 1 and abs(asked - near) < _ARITHMETIC else asked


def median(
    column: str,
    bounds: Any,
    step: Any = None,
    missing: Any = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The value in the middle of the people: `quantile` at 0.5.

    >>> median("income", bounds=(0, 200_000)).unit
    'percentile points'
    """
    half: Any = Fraction(1, 2)
    return quantile(column, half, bounds, step, missing, where=where, by=by, keys=keys, membership=membership)


def min(
    column: str,
    bounds: Any,
    step: Any = None,
    missing: Any = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The smallest value, or rather one that few people lie below. See `quantile`.

    >>> min("age", bounds=(0, 120), step=1).points
    121
    """
    asked = Min(**on_grid("min", column, bounds, step, missing, POINTS, MOST_POINTS))
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


def max(
    column: str,
    bounds: Any,
    step: Any = None,
    missing: Any = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The largest value, or rather one that few people lie above. See `quantile`.

    >>> max("age", bounds=(0, 120), step=1).label
    'max of age'
    """
    asked = Max(**on_grid("max", column, bounds, step, missing, POINTS, MOST_POINTS))
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


QUANTILE = Statistic("quantile", quantile, Quantiles, ("column", "p", "bounds", "step", "missing"))
MEDIAN = Statistic("median", median, Quantiles, ("column", "bounds", "step", "missing"), listed=False)
MIN = Statistic("min", min, Extremes, ("column", "bounds", "step", "missing"))
MAX = Statistic("max", max, Extremes, ("column", "bounds", "step", "missing"))
