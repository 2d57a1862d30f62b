"""Renewal: so much of everyone's level comes back in every calendar year, quarter or month.

At the beginning of a period, in UTC, what was spent counts less by a part `amount` of the level, and never by
more than all of it:

    renewed ← min(spent, renewed + amount · level)        left = max(0, level − (spent − renewed))

Guarantee  Over releases between which budgets were renewed k times, nobody is charged more than
           (1 + k · amount) times the highest level that they had meanwhile: what was spent is at most
           renewed + level, and renewed at most k · amount · level.
So         a level is no longer for life. In two days on both sides of a beginning it may be spent
           1 + amount times, within ten years 1 + 10 · amount times (renewed every year), and without end
           there is no bound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time

import numpy as np

from accord.budget import MICRO, PUBLIC, level_text
from accord.ledger.cohorts import Cohorts, allowed_of, saturating_add

RENEWAL = "renewal"
"""How budgets are renewed, in entries and in `accord_meta`."""
PERIODS = {"year": 1, "quarter": 4, "month": 12}
"""How many of each there are in a year."""
WRITTEN = re.compile(r"(year|quarter|month) ([1-9][0-9]{0,6}) ([1-9][0-9]{0,5})", re.ASCII)
"""What a stored one looks like."""


@dataclass(frozen=True)
class Renewal:
    """How budgets are renewed, and up to when they have been."""

    every: str
    """One of PERIODS."""
    amount: int
    """The part of everyone's level that comes back, in millionths."""
    period: int
    """The last at whose beginning they were renewed, or in which this was agreed; counted from year 0."""

    @classmethod
    def read(cls, text: str) -> Renewal:
        """What `text` wrote.

        Raises:
            ValueError: it is none.
        """
        words = WRITTEN.fullmatch(text)
        if words is None:
            raise ValueError("not a renewal")
        return cls(words[1], int(words[2]), int(words[3]))

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.every} {self.amount} {self.period}"

    def period_of(self, moment: datetime) -> int:
        """In which period a moment is."""
        utc = moment.astimezone(UTC)
        return utc.year * PERIODS[self.every] + (utc.month - 1) * PERIODS[self.every] // 12

    @property
    def next(self) -> date:
        """When budgets are renewed next."""
        return replace(self, period=self.period + 1).beginning

    @property
    def beginning(self) -> date:
        """Of the period."""
        year, part = divmod(self.period, PERIODS[self.every])
        return date(year, part * 12 // PERIODS[self.every] + 1, 1)

    def not_before(self, earlier: Renewal | None) -> Renewal:
        """The same, but from a period on that begins no earlier than one for which budgets were renewed."""
        if earlier is None:
            return self
        renewed_until = datetime.combine(earlier.beginning, time.min, UTC)
        return replace(self, period=max(self.period, self.period_of(renewed_until)))

    def due(self, now: datetime) -> Renewal | None:
        """The same after the renewals that are due; None: none is."""
        period = self.period_of(now)
        return replace(self, period=period) if period > self.period else None

    def renewed(self, cohorts: Cohorts, times: int) -> Cohorts:
        """The accounts after so many renewals."""
        is_public = cohorts.level == PUBLIC
        finite = np.where(is_public, 0, cohorts.level)  # below 10¹², and an amount is at most 10⁶
        back = np.where(is_public, PUBLIC, finite * self.amount // MICRO * times)
        renewed = np.minimum(cohorts.spent, saturating_add(cohorts.renewed, back))
        allowed = allowed_of(cohorts.level, cohorts.spent, renewed)
        return replace(cohorts, renewed=renewed, allowed=allowed)

    @property
    def rule(self) -> str:
        """How much comes back when, in a few words."""
        part = "all" if self.amount == MICRO else level_text(self.amount)
        return f"{part} of everyone's level comes back every calendar {self.every}"

    @property
    def decade(self) -> int:
        """How many times their level somebody may lose within ten years, in millionths."""
        return MICRO + 10 * PERIODS[self.every] * self.amount

    def __str__(self) -> str:
        return (
            f"budgets are renewed: {self.rule}, next on {self.next}. So a level is not for life: within ten "
            f"years somebody may lose up to {level_text(self.decade)} times their level"
        )
