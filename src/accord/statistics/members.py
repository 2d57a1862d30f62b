"""Questions about the members of a private part, as they are answered under replace where that is better than halves: see parts.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from accord.statistics.means import Mean, Rows, Sum
from accord.statistics.order import Max, Min, Quantile
from accord.statistics.parts import Grouped
from accord.statistics.present import PresentMean
from accord.statistics.record import Answer, Query


@dataclass(frozen=True)
class MeanWhere(PresentMean):
    """The mean of the members of a private part, under replace.

    Of the integers q = 0 … span it releases Σc(2q − span) and Σc·span over the members. Somebody who comes in or goes out moves them by span + span at most, somebody whose
    value changes by 2·span: two spans in all (`reach`), as a person does in a histogram.
    """

    reach = 2

    @property
    def blur(self) -> float:
        return 4 * self.width**2  # 2Δ² + 8(μ − mid)², at worst

    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        centred, there = found
        if there <= 0:  # hardly anyone is there
            return self.middle(people)
        inside = min(Fraction(1), max(Fraction(0), (1 + centred / there) / 2))
        return float(self.low + (self.high - self.low) * inside)

    def stretched(self, found: Sequence[Fraction]) -> float | None:
        there = float(found[1] / self.span)
        return 1 / there if there > 0.01 else None


@dataclass(frozen=True)
class SumWhere(Sum):
    """The sum over the members of a private part, under replace. Who is outside adds 0, whatever the bounds.

    A member adds low + q·step for the cell q of their value. That is a whole number of `quantum`s, and so is 0; integers are counted from the lower end of
    all that one person may add, 0 included. So the declared bounds stay what they are, and an engine sees the declared grid alone.
    """

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Of what one person may add."""
        return min(Fraction(0), self.low), max(Fraction(0), self.high)

    @cached_property
    def quantum(self) -> Fraction:
        """The largest number of which both `low` and `step` are whole multiples."""
        low, step = abs(self.low), self.step
        return Fraction(
            gcd(low.numerator * step.denominator, step.numerator * low.denominator), low.denominator * step.denominator
        )

    @property
    def span(self) -> int:
        bottom, top = self.ends
        return int((top - bottom) / self.quantum)

    @property
    def outside(self) -> int:
        """The integer of who is not a member."""
        return int(-self.ends[0] / self.quantum)

    @property
    def nowhere(self) -> int:
        """Where who is not a member is counted, among the cells: after the last."""
        return self.cells + 1

    def integers(self, cells: Any) -> Any:
        return np.where(cells == self.nowhere, self.outside, self.inside(cells.astype(object), 1))

    def inside(self, cells: Any, people: Any) -> Any:
        """The integers of so many members together, from the sum of their cells."""
        return cells * int(self.step / self.quantum) + people * int((self.low - self.ends[0]) / self.quantum)

    @property
    def origin(self) -> Fraction:
        return self.ends[0] / self.quantum

    @property
    def width(self) -> float:
        bottom, top = self.ends
        return float(top - bottom)

    @property
    def variance(self) -> float:
        return (self.width / 2) ** 2  # a declared std is about members; who is outside adds 0, which may lie far away

    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        return float(people * (self.ends[0] + self.quantum * found[0]))


@dataclass(frozen=True)
class RowsWhere(Rows, SumWhere):
    """The number of rows of the members."""


@dataclass(frozen=True)
class QuantileWhere(Quantile):
    """A quantile of the members of a private part, under replace.

    Who comes in or goes out moves a score by less than who changes: see mechanisms/rank.py.
    """

    sized = True


@dataclass(frozen=True)
class MinWhere(Min):
    """Of the members of a private part, under replace."""

    sized = True


@dataclass(frozen=True)
class MaxWhere(Max):
    """Of the members of a private part, under replace."""

    sized = True


_DIRECT: tuple[tuple[type[Query], type[Query]], ...] = (
    (Rows, RowsWhere),
    (Sum, SumWhere),
    (Mean, MeanWhere),
    (Quantile, QuantileWhere),
    (Min, MinWhere),
    (Max, MaxWhere),
)
"""The first that fits."""


def under_replace(asked: Grouped) -> Query | None:
    """The question that answers a private `where=` alone, with everyone staying and at the whole charge; None: there is none."""
    query = asked.query
    if asked.part.by is not None:
        return None
    known = {f.name: getattr(query, f.name) for f in fields(query)}
    return next((direct(**known) for kind, direct in _DIRECT if isinstance(query, kind)), None)
