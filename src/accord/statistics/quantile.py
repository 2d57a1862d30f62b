"""Quantiles, and the median, which is the quantile 0.5.

Several share the charge. ranks.py has the sensitivity of each: by how much one person moves a point's score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Interval, Query, Value, exact, number_text
from accord.statistics.ranks import (
    MIDPOINT_FACTOR,
    RankQuery,
    RankTarget,
    Spending,
    on_rank_grid,
    spending,
)
from accord.statistics.statistic import Statistic
from accord.statistics.target_ranks import Quantiles

_FINEST = 10**6
_ARITHMETIC = Fraction(1, 10**12)
"""What floating-point arithmetic may have added to p, at most."""
_HALF = Fraction(1, 2)
IN_VALUES = "values"
"""What `interval=` may be."""


@dataclass(frozen=True)
class Quantile(RankQuery):
    """One or several quantiles."""

    statistic = "quantile"

    ps: tuple[Fraction, ...] = (_HALF,)
    """Ascending."""
    listed: bool = False
    """Whether the answer is a list, be it of one."""
    in_values: bool = False
    """Whether an interval in values is asked for."""

    @property
    def label(self) -> str:
        if self.ps == (_HALF,):
            return f"median of {self.column}{self.of_rows}"
        ps = ", ".join(number_text(p) for p in self.ps)
        return f"quantile{'s' * (len(self.ps) > 1)} {ps} of {self.column}{self.of_rows}"

    def under(self, relation: Relation, about_members: bool = False) -> Quantiles:
        return QuantileTarget(self, relation, about_members)

    def describe(self) -> dict[str, Any]:
        ps = [number_text(p) for p in self.ps]
        interval = {"interval": IN_VALUES} if self.in_values else {}
        return {**super().describe(), "p": ps if self.listed else ps[0], **interval}


@dataclass(frozen=True)
class QuantileTarget(RankTarget, Quantiles):
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
    def in_values(self) -> bool:
        return self.query.in_values

    def _spending(self, together: bool = False) -> Spending:
        return spending(self.ps, self.relation, self.tells_size, self.draws, together)

    @property
    def variance(self) -> float:
        return float(sum(p * (1 - p) for p in self.ps))

    @property
    def noise_variance(self) -> float:
        return self.smooth_cost**2 * self._spending().variance

    @property
    def max_variance(self) -> float:
        return float(max(p * (1 - p) for p in self.ps))

    @property
    def midpoint_error(self) -> float:
        return MIDPOINT_FACTOR * float(sum(max(p, 1 - p) ** 2 for p in self.ps))

    def possible(self, people: int) -> Interval:
        everywhere = (0.0, 100.0)
        return [everywhere] * self.outputs if self.listed else everywhere

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        points = [self.point(cell) for cell in sorted(released[: self.outputs])]  # quantiles never cross
        return points if self.listed else points[0]

    def interval_in_values(self, between: Sequence[tuple[Fraction | None, Fraction | None]]) -> Any:
        last = Fraction(self.query.cells)
        ends = [
            (self.point(Fraction(0) if low is None else low), self.point(last if high is None else high))
            for low, high in between
        ]
        return ends if self.listed else ends[0]

    def about_draws(self, together: bool) -> list[str]:
        whole = 2 if together else 2 * self.draws * self.outputs
        is_whole = all(scale == whole for scale in self._spending(together).choices)
        size = self.about_size(is_free=self.relation.people_are_public and is_whole)
        split = f"each of the {self.outputs} quantiles has its part of everyone's charge"
        if together:
            split = f"the {self.outputs} quantiles are drawn together, in one draw at everyone's whole charge"
        values = (
            "for an interval in values two more points are drawn for each quantile, one on either side; "
            "each of the three has a third of its charge"
        )
        return [
            *size,
            *([split] if self.outputs > 1 else []),
            *([values] if self.in_values else []),
        ]


@asked_by_group
def quantile(
    column: str,
    p: float | Iterable[float],
    bounds: Any = None,
    step: Any = None,
    missing: Any = "exclude",
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
    per_person: str | None = None,
    interval: str | None = None,
    rounded: bool | Iterable[float] | None = None,
) -> Query:
    """The value that a fraction p of the people lie below; several p are charged once and never cross.

    Args:
        column: a column of numbers, dates or timestamps.
        p: between 0 and 1; for the ends, ask for `min` and `max`.
        bounds: (low, high), public: two numbers, two dates or two timestamps. Values outside count as the
            nearer bound.
        step: the distance of the points that can be answered; by default a 65,536th of the width, or a day.
        missing: what becomes of missing values: see `accord.mean`.
        where, by, keys, membership, at_most, suppress, rest, gap, about: of whom: see `accord.mean`. The gap
            is how far the distribution functions of two levels may lie apart, in percentile points.
        per_person: what a person's rows come to, where they have several: see `accord.mean`.
        interval: "values" for an interval in values besides the one in percentiles. Two thirds of the charge
            are spent on it.
        rounded: True if most people round their values to decimal steps (1, 5, 10, 50, … times a power of
            ten), as incomes are; or a list of such steps. Public knowledge, like the bounds: round points are
            then likelier, and the answer is one of them where so many values are.

    >>> quantile("income", [0.5, 0.9], bounds=(0, 200_000)).label
    'quantiles 0.5, 0.9 of income'
    """
    if getattr(p, "ndim", 1) == 0:
        p = p.item()  # type: ignore[union-attr]
    listed = isinstance(p, Iterable) and not isinstance(p, str)
    ps = tuple(sorted(_fraction(x) for x in (p if listed else [p])))  # type: ignore[union-attr]
    for x in ps:
        if x in (0, 1):
            end, statistic = ("smallest", "min") if x == 0 else ("largest", "max")
            raise QueryError(f"p={number_text(x)} is the {end} value. Ask for accord.{statistic}.")
        if not 0 < x < 1 or (x * _FINEST).denominator != 1:
            raise QueryError(
                f"p={number_text(x)} is not a fraction of the people. "
                "Give a number between 0 and 1, with at most six decimals."
            )
    if not ps or len(set(ps)) < len(ps):
        raise QueryError(f"p= has {len(ps)} entries. Give at least one, each once.")
    in_values = _asks_for_values(interval)
    query = on_rank_grid(
        Quantile,
        column,
        bounds,
        step,
        missing,
        per_person,
        rounded,
        ps=ps,
        listed=listed,
        in_values=in_values,
    )
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


def _fraction(p: Any) -> Fraction:
    """p by its decimal value, without what arithmetic adds after the millionths: 0.1 + 0.2 means 0.3."""
    number = exact(p, "p")
    near = Fraction(round(number * _FINEST), _FINEST)
    return near if 0 < near < 1 and abs(number - near) < _ARITHMETIC else number


def _asks_for_values(interval: Any) -> bool:
    if interval not in (None, IN_VALUES):
        raise QueryError(
            f"interval={interval!r} is not offered. A quantile has an interval in percentiles; "
            f"interval={IN_VALUES!r} asks for one in values as well."
        )
    return interval is not None


@asked_by_group
def median(
    column: str,
    bounds: tuple[Value, Value] | None = None,
    step: Any = None,
    missing: Any = "exclude",
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
    per_person: str | None = None,
    interval: str | None = None,
    rounded: bool | Iterable[float] | None = None,
) -> Query[Value]:
    """The value in the middle of the people: `quantile` at 0.5.

    >>> median("income", bounds=(0, 200_000)).unit
    'percentile points'
    """
    in_values = _asks_for_values(interval)
    query = on_rank_grid(Quantile, column, bounds, step, missing, per_person, rounded, in_values=in_values)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


_OPTIONS = ("column", "bounds", "step", "missing", "per_person", "interval", "rounded")
QUANTILE = Statistic("quantile", quantile, Quantiles, (*_OPTIONS, "p"))
MEDIAN = Statistic("median", median, Quantiles, _OPTIONS, is_alias=True)
