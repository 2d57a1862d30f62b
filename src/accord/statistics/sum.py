"""The sum of a column of numbers, and how many rows people have.

With q = 0 … span for the cell of a person's value, and c for their charge:

Under replace     the public number of people times their mean: Σc·q. One person moves it by at most c·span.
Under add-remove  two sums, Σc·q and Σc·(span − q), of which high·Σq + low·Σ(span − q), over span, is the sum.
                  One person adds c·span in all, and somebody who is not there 0.
Of members        of a private part, under replace, everyone stays, and who is outside adds 0, whatever the
                  bounds. A member adds low + q·step. Both are whole numbers of `quantum`s, counted from the
                  lower end of all that one person may add, 0 included: one person moves their sum by at most
                  c times the distance of these ends. So the declared bounds stay what they are, and an engine
                  sees the declared grid alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.encoding import PerPerson
from accord.statistics.gap import GapScale, of_values
from accord.statistics.grid import on_grid
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.mean import Mean, MeanTarget, with_std
from accord.statistics.query import Answer, Interval, Query, number_text
from accord.statistics.statistic import Option, Statistic
from accord.statistics.target_sums import Form, Total

_MOST_ROWS = 10**9


@dataclass(frozen=True)
class Sum(Mean):
    """A sum of values within bounds."""

    statistic = "sum"
    per_person: PerPerson = "sum"

    @property
    def gap_scale(self) -> GapScale:
        return of_values(max(Fraction(0), self.high) - min(Fraction(0), self.low), "means of what people add")

    def about_missing(self) -> str:
        return "a missing value counts as 0" if self.excludes_missing else super().about_missing()

    def under(self, relation: Relation, about_members: bool = False) -> Total:
        if about_members:
            return MembersSum(self, relation, True)
        return SumTarget(self, relation) if relation.people_are_public else PresentSum(self, relation)


@dataclass(frozen=True)
class Rows(Sum):
    """How many rows people have, in all: their number is what is summed."""

    statistic = "rows"
    compared = ("mean number of rows", "mean numbers of rows")
    per_person: PerPerson = "rows"

    @property
    def label(self) -> str:
        return "number of rows"

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def rows_come_to(self) -> str:
        return "and counts for as many rows as they have"

    def describe(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "max": number_text(self.high), **self.described_gap()}

    @property
    def gap_scale(self) -> GapScale:
        return of_values(self.high, "mean numbers of rows")

    def assumptions(self) -> list[str]:
        return [f"nobody has more than {number_text(self.high)} rows; who has more counts as that many"]


@dataclass(frozen=True)
class SumTarget(MeanTarget, Total):
    """Of everyone, whose number is public."""

    query: Sum

    @property
    def origin(self) -> Fraction:
        return self.query.low / self.query.step

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Of what one person of the Spec adds."""
        return self.relation.ends(self.query.low, self.query.high)

    def middle(self, people: int) -> Answer:
        low, high = self.ends
        return float(people * (low + high) / 2)

    def possible(self, people: int) -> Interval:
        low, high = self.ends
        return float(people * low), float(people * high)

    def slopes(self, people: int) -> tuple[float, ...] | None:
        return (float(people * self.query.step),)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return float(people * (self.query.low + self.query.step * released[0]))


@dataclass(frozen=True)
class PresentSum(SumTarget):
    """Of the people who are there."""

    @property
    def forms(self) -> tuple[Form, ...]:
        return Form(first=1), Form(constant=self.query.cells, first=-1)

    @property
    def variance(self) -> float:
        low, high = self.ends
        return float(high - low) ** 2 / 4

    @property
    def noise_variance(self) -> float:
        return 2 * float(self.query.low**2 + self.query.high**2)

    @property
    def midpoint_error(self) -> float:
        return self.variance

    @property
    def kept_square(self) -> float:
        return float(max(self.query.low**2, self.query.high**2))

    def slopes(self, people: int) -> tuple[float, ...] | None:
        ends = self.query.high, self.query.low
        return tuple(float(people * end / self.query.cells) for end in ends)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        above, below = released  # Σc·q and Σc·(span − q), as means over the roster
        return float(people * (above * self.query.high + below * self.query.low) / self.query.cells)

    def assumptions(self) -> list[str]:
        bounds, *others = super().assumptions()
        return [bounds, *others[1:]]  # without a std, which is about those who are there


@dataclass(frozen=True)
class MembersSum(SumTarget):
    """Over the members of a private part, while everyone stays."""

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        return min(Fraction(0), self.query.low), max(Fraction(0), self.query.high)

    @cached_property
    def quantum(self) -> Fraction:
        """The largest number of which both `low` and `step` are whole multiples."""
        low, step = abs(self.query.low), self.query.step
        common = gcd(low.numerator * step.denominator, step.numerator * low.denominator)
        return Fraction(common, low.denominator * step.denominator)

    @property
    def width(self) -> float:
        bottom, top = self.ends
        return float(top - bottom)

    @property
    def forms(self) -> tuple[Form, ...]:
        bottom, _ = self.ends
        member = int((self.query.low - bottom) / self.quantum)
        outside = int(-bottom / self.quantum)
        return (Form(constant=member, first=int(self.query.step / self.quantum), outside=outside),)

    @property
    def sensitivity(self) -> int:
        bottom, top = self.ends
        return int((top - bottom) / self.quantum)

    @property
    def origin(self) -> Fraction:
        return self.ends[0] / self.quantum

    @property
    def variance(self) -> float:
        # a declared std is about members; who is outside adds 0, which may lie far away
        return (self.width / 2) ** 2

    @property
    def noise_variance(self) -> float:
        return 2 * self.width**2

    @property
    def midpoint_error(self) -> float:
        return (self.width / 2) ** 2

    def slopes(self, people: int) -> tuple[float, ...] | None:
        return (float(people * self.quantum),)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return float(people * (self.ends[0] + self.quantum * released[0]))

    def assumptions(self) -> list[str]:
        if isinstance(self.query, Rows):
            return super().assumptions()
        bounds, _, *others = super().assumptions()
        spread = "the standard deviation of what people add is taken to be the largest possible"
        return [bounds, f"{spread}, {self.width / 2:g}", *others]


@asked_by_group
def sum(
    column: str,
    bounds: tuple[float, float] | None = None,
    std: float | None = None,
    step: float | None = None,
    missing: str | float = "exclude",
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
) -> Query[float]:
    """The sum of a column over all people who have not opted out. A missing value counts as 0. See `mean`.

    >>> sum("income", bounds=(0, 200_000)).unit
    'value'
    """
    query = with_std(on_grid(Sum, column, bounds, step, missing), std)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


@asked_by_group
def rows(
    max: int,
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
) -> Query[float]:
    """How many rows all people who have not opted out have together: visits, orders, claims.

    For tables that say who a row is of (`user=`).

    Args:
        max: the most that one person counts for, public.
        where, by, keys, membership, at_most, suppress, rest, gap, about: of whom: see `accord.mean`.

    >>> rows(max=50).label
    'number of rows'
    """
    if isinstance(max, bool) or not isinstance(max, int) or not 1 <= max <= _MOST_ROWS:
        raise QueryError(
            f"max={max!r} is not a number of rows. "
            f"Give the most that one person counts for, from 1 to {_MOST_ROWS}."
        )
    query = on_grid(Rows, "rows", (0, max), step=1, missing=0)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


SUM = Statistic("sum", sum, Total, ("column", "bounds", "std", "step", "missing"))
MOST = Option(
    "max",
    int,
    "N",
    "Of rows: the most that one person counts for.",
    needed="rows needs --max, the most that one person counts for.",
)
ROWS = Statistic("rows", rows, Total, ("max",), own_options=(MOST,))
