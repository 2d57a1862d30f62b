"""The share of people who meet a condition: a mean of ones and zeros.

A condition has three outcomes (where.py): it is met (1), it is not (0), or nobody can tell, because a value
that it needs is missing. Whoever is of the third kind is left out, like somebody without a value is left out
of a mean, and how many they are stays private; so it is a question about members (groups.py). Where no value
is missing, as declared, or the condition asks for nothing but whether values are missing, everyone is 1 or 0.

Its sums and their sensitivities are those of a mean whose grid has two points (mean.py): one person moves
them by 1 under replace and under add-remove, and by 2 as a member under replace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics import where as grammar
from accord.statistics.encoding import Indicator
from accord.statistics.gap import SHARES, GapScale, WithGap
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.mean import MeanTarget, MembersMean, PresentMean
from accord.statistics.query import Answer, Ends, Query
from accord.statistics.spread import Spread
from accord.statistics.statistic import Statistic
from accord.statistics.target_sums import Additive

MISSING = ("exclude", "none")


@dataclass(frozen=True)
class Proportion(WithGap):
    """The share of people who meet a condition."""

    statistic = "proportion"
    low: ClassVar[Fraction] = Fraction(0)
    high: ClassVar[Fraction] = Fraction(1)
    step: ClassVar[Fraction] = Fraction(1)
    cells: ClassVar[int] = 1
    width: ClassVar[float] = 1.0
    sigma: ClassVar[float] = 0.5
    rounding: ClassVar[float] = 0.0

    text: str
    condition: grammar.Condition
    missing: str = "exclude"

    @property
    def label(self) -> str:
        return f"proportion of people with {self.text}"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(grammar.columns(self.condition)))

    @property
    def encoding(self) -> Indicator:
        return Indicator(self.condition, None if self.excludes_missing else 0)

    @property
    def rows_come_to(self) -> str:
        return "and meets the condition if any of their rows does"

    @property
    def excludes_missing(self) -> bool:
        return self.missing == "exclude" and not grammar.is_always_decided(self.condition)

    def with_all_values(self, columns: Collection[str] | None = None) -> Proportion | None:
        if not self.excludes_missing or (columns is not None and not set(self.columns) <= set(columns)):
            return None
        return replace(self, missing="none")

    def under(self, relation: Relation, about_members: bool = False) -> Additive:
        if about_members:
            return MembersShare(self, relation, True)
        return ShareTarget(self, relation) if relation.people_are_public else PresentShare(self, relation)

    def describe(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "condition": self.text,
            "missing": self.missing,
            **self.described_gap(),
        }

    @property
    def gap_scale(self) -> GapScale:
        return SHARES

    def assumptions(self) -> list[str]:
        return [
            "the predicted error is for the hardest case: half of the people meet the condition",
            self._about_missing(),
        ]

    def _about_missing(self) -> str:
        if self.excludes_missing:
            return (
                "people who lack a value that decides whether they meet the condition are left out; "
                "how many is private, and errors are predicted as if none were"
            )
        if self.missing == "none":
            return (
                "no value is missing, as declared; who lacks one that decides would count as not meeting it"
            )
        return "everyone either meets the condition or does not: it asks only whether values are missing"


class _WithinOne(MeanTarget):
    """An answer from 0 to 1. What lies outside is moved to the nearer end, which is nearer to the truth."""

    def slopes(self, people: int) -> None:
        return None

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        share = super().finish(released, people)
        assert isinstance(share, float)
        return min(1.0, max(0.0, share))

    def interval(
        self,
        value: Answer,
        released: Sequence[Fraction],
        spread: Spread,
        alpha: float,
        factor: float = 1.0,
        shift: Ends = (0.0, 0.0),
    ) -> Ends:
        ends = super().interval(value, released, spread, alpha, factor, shift)
        assert isinstance(ends, tuple)
        return max(0.0, ends[0]), min(1.0, ends[1])


class ShareTarget(_WithinOne, MeanTarget):
    """Of everyone, whose number is public."""


class PresentShare(_WithinOne, PresentMean):
    """Of the people who are there."""


class MembersShare(_WithinOne, MembersMean):
    """Of the members of a private part, while everyone stays."""


@asked_by_group
def proportion(
    condition: str,
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
) -> Query[float]:
    """The share of people who meet a condition, from 0 to 1, among all who have not opted out.

    Args:
        condition: such as "age >= 65 AND region = 'north'", as `where` has it. Where people have several
            rows, whoever has a row that meets it does.
        missing: "exclude": people who lack a value that decides whether they meet the condition are left out,
            and how many they are stays private. ("a OR b" is met by whoever meets a, whether b has a value or
            not.) "none": no value is missing, as is publicly known; this makes the answer sharper, and who
            lacks one all the same counts as not meeting it.
        where, by, keys, membership, at_most, gap, about: among whom: see `accord.mean`. The gap is that of
            two levels' shares, between 0 and 1.

    Raises:
        QueryError: a condition that cannot be read.

    >>> proportion("age >= 65", where="region = 'north'").label
    "proportion of people with age >= 65 where region = 'north'"
    """
    if not isinstance(condition, str) or not condition.strip():
        raise QueryError(
            f"a proportion is of people who meet a condition, and {condition!r} is none. "
            'Write a test such as "age >= 65".'
        )
    parsed = grammar.parse(condition, "the condition")
    if not isinstance(missing, str) or missing not in MISSING:
        raise QueryError(
            f"missing={missing!r} is not offered. Of a proportion it is 'exclude' (who cannot be said to "
            "meet the condition or not is left out) or 'none' (no value is missing)."
        )
    return part_of(
        Proportion(condition.strip(), parsed, missing),
        where,
        by,
        keys,
        membership,
        at_most,
        suppress,
        rest,
        gap,
        about,
    )


PROPORTION = Statistic("proportion", proportion, Additive, ("condition", "missing"))
