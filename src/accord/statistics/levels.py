"""The mean of a column of numbers among the people of each level, for a private look at the gap between them.

Under replace     levels and how many people have each are public. A person is in the mean of their own level
                  and in no other, so that each level is a table of its own: the sums are those of a mean
                  (mean.py), and one person moves those of their level by as much as there.
Of members        of a private part (whoever has a value), under replace: the two sums of a mean of
                  members, by level.
There is no form for add-remove: how many people a level has is private then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accord.relation import Relation
from accord.statistics.mean import Mean
from accord.statistics.query import Answer, Interval
from accord.statistics.target import Target
from accord.statistics.target_sums import Additive


@dataclass(frozen=True)
class LevelMeans(Mean):
    """A mean for each level."""

    statistic = "level means"

    levels: tuple[str, ...] = ()
    """Those that are read, as texts, ascending."""

    @property
    def label(self) -> str:
        return f"mean of {self.column} by level{self.of_rows}"

    @property
    def gap_scale(self) -> Any:
        return None

    @property
    def why_no_kappa(self) -> str:
        return "each level has an answer of its own."

    def under(self, relation: Relation, about_members: bool = False) -> Any:
        if not relation.people_are_public:
            return PresentLevels(self, relation)
        return LevelMeansTarget(self, relation, about_members)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "levels": list(self.levels)}


@dataclass(frozen=True)
class LevelMeansTarget(Target):
    """A vector of means, in the order of the levels."""

    query: LevelMeans

    @property
    def each(self) -> Additive:
        """What is answered about each level, as about a table of its own."""
        return Mean.under(self.query, self.relation, self.about_members)

    @property
    def outputs(self) -> int:
        return len(self.query.levels)

    @property
    def variance(self) -> float:
        return self.outputs * self.each.variance

    @property
    def noise_variance(self) -> float:
        return self.outputs * self.each.noise_variance

    @property
    def max_variance(self) -> float:
        return self.each.max_variance

    def factor(self, people: int) -> float:
        return 1.0

    @property
    def midpoint_error(self) -> float:
        return self.outputs * self.each.midpoint_error

    def middle(self, people: int) -> Answer:
        middle: Any = self.each.middle(people)
        return dict.fromkeys(self.query.levels, middle)

    def possible(self, people: int) -> Interval:
        possible: Any = self.each.possible(people)
        return dict.fromkeys(self.query.levels, possible)

    def of_each(self, released: Sequence[Fraction]) -> Iterator[tuple[str, Sequence[Fraction]]]:
        """What was released about each level."""
        size = self.each.released
        for k, level in enumerate(self.query.levels):
            yield level, released[k * size : (k + 1) * size]

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        means: dict[Any, Any] = {
            level: self.each.finish(part, people) for level, part in self.of_each(released)
        }
        return means


class PresentLevels(LevelMeansTarget):
    """Of people whose number is private: no mechanism answers it."""
