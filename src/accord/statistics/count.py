"""How many people meet a condition.

Under replace     the number of people is public, and a count is that number times a mean of ones and zeros.
                  One person is 1 or 0: they move the sum by 1.
Under add-remove  somebody who is not there adds 0, somebody who is there at most 1.
Of one group      under replace: as under add-remove, at the whole charge. Whoever comes in or goes out moves
                  the sum by 1, and there is nothing else to change (groups.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accord.relation import Relation
from accord.statistics import where as grammar
from accord.statistics.encoding import Indicator
from accord.statistics.gap import SHARES, GapScale, WithGap, with_gap
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Interval, Query
from accord.statistics.statistic import Statistic
from accord.statistics.target_sums import Counted, Form


@dataclass(frozen=True)
class Count(WithGap):
    """A number of people."""

    statistic = "count"

    where: str | None
    condition: grammar.Condition | None

    @property
    def label(self) -> str:
        return "count of people" + (f" where {self.where}" if self.where else "")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(grammar.columns(self.condition))) if self.condition else ()

    @property
    def encoding(self) -> Indicator:
        return Indicator(self.condition)

    @property
    def rows_come_to(self) -> str:
        if self.condition is None:
            return "and is counted once"
        return "and is counted if any of their rows meets the condition"

    def under(self, relation: Relation, about_members: bool = False) -> CountTarget | None:
        return None if about_members else CountTarget(self, relation)

    def describe(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "where": self.where, **self.described_gap()}

    @property
    def gap_scale(self) -> GapScale:
        return SHARES

    def assumptions(self) -> list[str]:
        return [
            "the number of people is public; who of them meets the condition is not, "
            "and a missing value does not meet it"
        ]


@dataclass(frozen=True)
class CountTarget(Counted):
    """Of everyone, or of the people who are there."""

    query: Count

    @property
    def forms(self) -> tuple[Form, ...]:
        return (Form(first=1),)

    @property
    def sensitivity(self) -> int:
        return 1

    @property
    def origin(self) -> Fraction:
        return Fraction(0)

    @property
    def variance(self) -> float:
        return 0.25

    @property
    def noise_variance(self) -> float:
        return 2.0

    @property
    def midpoint_error(self) -> float:
        return 0.25

    @property
    def kept_square(self) -> float:
        return self.midpoint_error if self.relation.people_are_public else 1.0

    @property
    def is_public(self) -> bool:
        return self.query.condition is None and self.relation.people_are_public

    def assumptions(self) -> list[str]:
        return super().assumptions() if self.relation.people_are_public else []

    def middle(self, people: int) -> Answer:
        return people / 2

    def possible(self, people: int) -> Interval:
        return 0.0, float(people)

    def slopes(self, people: int) -> tuple[float, ...] | None:
        return (float(people),)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return float(people * released[0])


@asked_by_group
def count(
    where: str | None = None,
    *,
    by: By = None,
    keys: Keys = None,
    membership: str = "private",
    at_most: int = 1,
    suppress: bool | None = None,
    rest: RestLabels = None,
    gap: float | None = None,
    about: str | None = None,
) -> Query[float]:
    """How many people meet a condition; without one, how many there are, which is public.

    With `by` and `keys`, for each group, and `at_most`, `suppress`, `rest`, `about`: see `accord.mean`. `gap`
    is that of two levels' shares of people who are counted, between 0 and 1.

    >>> count(where="age >= 65").columns
    ('age',)
    """
    is_about_all = by is None and membership == "private" and keys is None and at_most == 1
    if is_about_all and suppress is None and rest is None:
        asked = Count(where, None if where is None else grammar.parse(where))
        return with_gap(asked, gap, about)
    return part_of(Count(None, None), where, by, keys, membership, at_most, suppress, rest, gap, about)


COUNT = Statistic("count", count, Counted, ())
