"""The smallest and the largest value, as the quantile so far out that an answer beyond everyone is unlikely.

Which quantile that is depends on the charges (mechanisms/rank.py); ranks.py has its sensitivity, that of any
quantile. Of somebody's rows the smallest, or largest, one counts (unless `per_person` says otherwise), so
that one person is one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accord.relation import Relation
from accord.statistics.encoding import PerPerson
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Interval, Query, Value
from accord.statistics.ranks import MIDPOINT_FACTOR, SIZE_PART, RankQuery, RankTarget, on_rank_grid
from accord.statistics.statistic import Statistic
from accord.statistics.target_ranks import Extremes


@dataclass(frozen=True)
class Extreme(RankQuery):
    """The smallest or the largest value."""

    def under(self, relation: Relation, about_members: bool = False) -> Extremes:
        return ExtremeTarget(self, relation, about_members)


@dataclass(frozen=True)
class Min(Extreme):
    """The smallest value."""

    statistic = "min"
    per_person: PerPerson = "min"


@dataclass(frozen=True)
class Max(Extreme):
    """The largest value."""

    statistic = "max"
    per_person: PerPerson = "max"


@dataclass(frozen=True)
class ExtremeTarget(RankTarget, Extremes):
    """Min or max."""

    query: Extreme

    @property
    def is_largest(self) -> bool:
        return isinstance(self.query, Max)

    @property
    def variance(self) -> float:
        return 0.25  # of the worst quantile, before it is chosen

    @property
    def noise_variance(self) -> float:
        part = float(1 - SIZE_PART) if self.tells_size else 1.0
        return 8 * (self.smooth_cost / part) ** 2

    @property
    def midpoint_error(self) -> float:
        return MIDPOINT_FACTOR

    def possible(self, people: int) -> Interval:
        return 0.0, 100.0

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        answer: Answer = self.point(released[0])
        return answer

    def assumptions(self) -> list[str]:
        return [*super().assumptions(), *self.about_size(is_free=False)]


@asked_by_group
def min(
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
    rounded: bool | Iterable[float] | None = None,
) -> Query[Value]:
    """The smallest value, or rather one that few people lie below. See `quantile`.

    >>> min("age", bounds=(0, 120), step=1).points
    121
    """
    query = on_rank_grid(Min, column, bounds, step, missing, per_person, rounded)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


@asked_by_group
def max(
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
    rounded: bool | Iterable[float] | None = None,
) -> Query[Value]:
    """The largest value, or rather one that few people lie above. See `quantile`.

    >>> max("age", bounds=(0, 120), step=1).label
    'max of age'
    """
    query = on_rank_grid(Max, column, bounds, step, missing, per_person, rounded)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


_OPTIONS = ("column", "bounds", "step", "missing", "per_person", "rounded")
MIN = Statistic("min", min, Extremes, _OPTIONS)
MAX = Statistic("max", max, Extremes, _OPTIONS)
