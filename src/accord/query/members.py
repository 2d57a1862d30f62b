"""Questions about the members of a private part, as they are answered under replace where that is better than halves: see parts.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import ceil

from accord.query.means import Mean, Rows, Sum
from accord.query.parts import Grouped
from accord.query.present import PresentMean
from accord.query.record import Answer, Query


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
    """The sum over the members of a private part, under replace: who is outside adds 0, which is a point of the grid."""

    @property
    def outside(self) -> int:
        """The integer of who is not a member."""
        return int(-self.low / self.step)


@dataclass(frozen=True)
class RowsWhere(Rows):
    """The number of rows of the members."""

    outside = 0


def under_replace(asked: Grouped) -> Query | None:
    """The question that answers a private `where=` alone, with everyone staying and at the whole charge; None: there is none."""
    query = asked.query
    if asked.part.by is not None:
        return None
    known = {f.name: getattr(query, f.name) for f in fields(query)}
    if isinstance(query, Rows):
        return RowsWhere(**known)
    if isinstance(query, Sum):  # the bounds are moved by less than a step, so that 0 is a point of the grid
        low, high = min(0, -ceil(-query.low / query.step)), max(0, ceil(query.high / query.step))
        missing = min(high, max(low, round(query.missing / query.step)))
        return SumWhere(
            **{**known, "low": low * query.step, "high": high * query.step, "missing": missing * query.step}
        )
    if isinstance(query, Mean):
        return MeanWhere(**known)
    return None
