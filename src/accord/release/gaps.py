"""A private look at the gap between levels: means by level, with noise, and how far apart they may be.

It is a release like any other: each level pays for its own mean, a share of the level, and it is booked. What
follows from it is post-processing. The gap is about the people of whom these are a draw, so that chance is in
the bound as well as noise, without a law of large numbers: by Hoeffding's inequality the mean of n values
within bounds of width Δ is within Δ·√(ln(2/α)/2n) of what is expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import accord
from accord import budget, planning, relation
from accord.budget import level_text
from accord.errors import PlanError, QueryError
from accord.planning import Plan
from accord.release.receipt import SCHEMA
from accord.statistics.levels import LevelMeans, LevelMeansTarget
from accord.statistics.query import decimal

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.people.table import Table
    from accord.release.result import Release
    from accord.statistics import Ends

_MOST_LEVELS = 100
_TELLS = 0.5
"""A bound of less than this part of the width tells something."""


@dataclass(frozen=True)
class GapLook:
    """What a private look tells about the gap between levels."""

    release: Release[Any]
    """The means of levels, with their receipt."""
    confidence: float
    means: Mapping[str, float]
    """{level: its noisy mean}."""
    within: Mapping[str, Ends]
    """{level: where its expected mean lies}; all of them hold together, with this confidence."""
    at_most: float
    """With this confidence the gap between the levels that were read is not larger."""
    at_least: float
    """Nor smaller."""
    width: float
    """Of the bounds."""
    before: Plan[Any]
    """A mean of the column as it is planned without a gap, and everyone's whole level,"""
    after: Plan[Any] | None
    """and with a gap of `at_most`; None: that tells too little."""

    @property
    def tells(self) -> bool:
        """Whether the bound is of use: less than half of the width."""
        return self.at_most < _TELLS * self.width

    @property
    def too_strict(self) -> tuple[str, ...]:
        """The levels of which next to nothing is known: too few people, or too strict, for this share."""
        return tuple(level for level, (low, high) in self.within.items() if high - low > self.width / 2)

    def receipt(self) -> dict[str, Any]:
        """The receipt of the release."""
        return self.release.receipt()

    def describe(self) -> dict[str, Any]:
        """What it tells, and the receipt: plain data, ready for JSON."""
        strict = self.too_strict
        return {
            "schema": SCHEMA,
            "confidence": self.confidence,
            "at_most": self.at_most,
            "at_least": self.at_least,
            "width": self.width,
            "tells": self.tells,
            "levels": [
                {
                    "level": level,
                    "mean": mean,
                    "within": list(self.within[level]),
                    "too_strict": level in strict,
                }
                for level, mean in self.means.items()
            ],
            "without_gap": _planned(self.before),
            "with_gap": None if self.after is None else _planned(self.after),
            "receipt": self.receipt(),
        }

    def __str__(self) -> str:
        from accord.report.gaps import look_text

        return look_text(self)

    def __repr__(self) -> str:
        return f"<GapLook: at most {self.at_most:.6g} with {self.confidence:.0%}>"


def check_gap(
    table: Table,
    column: str,
    bounds: tuple[float, float] | None,
    share: float,
    missing: Any,
    per_person: str | None,
    confidence: float,
    ledger: Ledger | None,
    signature: Mapping[str, Any],
) -> GapLook:
    """See `Table.check_gap`."""
    from accord.release.result import refuse_confidence

    refuse_confidence(confidence)
    if not relation.named(table.neighbors).people_are_public:
        raise QueryError(
            f"with neighbors={table.neighbors!r} it is private how many people a level has, so that there is "
            "no mean of a level. Open the table with neighbors='replace'."
        )
    asked = table.described(accord.mean(column, bounds, missing=missing, per_person=per_person))
    asked = replace(asked, gap=None)
    spec = table.spec()
    affordable = budget.share(spec.micro, planning.whole_share(share))
    levels = tuple(level_text(int(m)) for m, a in zip(spec.micro, affordable, strict=True) if a > 0)
    if not 2 <= len(levels) <= _MOST_LEVELS:
        raise PlanError(
            f"a look at the gap compares 2 to {_MOST_LEVELS} levels, and there are {len(levels)}. "
            + ("There is no gap." if len(levels) < 2 else "Take a gap from public knowledge: docs/gap.md.")
        )
    fields = {name: getattr(asked, name) for name in ("step", "missing", "kind", "declared", "per_person")}
    query = LevelMeans(asked.column, asked.low, asked.high, **fields, levels=levels)
    release = table.release(query, "mix", share, ledger=ledger, **signature)
    return _looked(release, asked, confidence)


def _planned(plan: Plan[Any]) -> dict[str, Any]:
    """What would be planned at everyone's whole level."""
    return {"mechanism": plan.mechanism, "rmse": plan.rmse}


def _looked(release: Release[Any], asked: Any, confidence: float) -> GapLook:
    """How far apart levels may be, from their noisy means."""
    plan, half = release.plan, (1 + confidence) / 2  # a half of the error for noise, the other for chance
    width, within = asked.width, {}
    people = {level_text(int(m)): int(n) for m, n in zip(plan.spec.micro, plan.spec.people, strict=True)}
    target = plan.target
    assert isinstance(target, LevelMeansTarget)
    released = dict(target.of_each(release.released))
    intervals = release.interval(half)
    for level, (low, high) in intervals.items():
        present = people[level] / (target.each.error_factor(released[level]) or 100.0)
        chance = width * sqrt(log(2 * len(intervals) / (1 - half)) / (2 * max(1.0, present)))
        within[level] = max(float(asked.low), low - chance), min(float(asked.high), high + chance)
    pairs = list(combinations(within.values(), 2))
    at_most = min(width, max(max(a[1] - b[0], b[1] - a[0]) for a, b in pairs))
    at_least = max(0.0, max(max(a[0] - b[1], b[0] - a[1]) for a, b in pairs))
    before = accord.plan(plan.spec, asked)
    after = None
    if at_most < _TELLS * width:
        after = accord.plan(plan.spec, replace(asked, gap=decimal(float(f"{at_most:.6g}"))))
    return GapLook(release, confidence, release.value, within, at_most, at_least, width, before, after)
