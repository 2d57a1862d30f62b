"""Spending: what people have been charged by releases without a ledger, as far as this process knows.

It refuses nothing and outlives nothing: it is there to be told. It holds public things alone: levels, and
what plans charge them. A person of a public group pays for releases about everyone and about their own group,
so that the most that anybody of a level has spent is, over all of that table's groupings, the sum of what the
group paid that paid most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from accord import budget
from accord.budget import IntArray
from accord.statistics import Part

Group: TypeAlias = tuple[Part, Any] | None
"""The grouping and the key of a public group; None: everyone in the table."""


@dataclass(frozen=True, eq=False)
class Charged:
    """What people of each level have been charged at most, in millionths."""

    levels: IntArray
    """Ascending."""
    charges: IntArray

    def plus(self, other: Charged) -> Charged:
        """Both of them."""
        levels = np.union1d(self.levels, other.levels)
        return Charged(levels, budget.add(self._of(levels), other._of(levels)))

    def or_more(self, other: Charged) -> Charged:
        """The larger one, level by level."""
        levels = np.union1d(self.levels, other.levels)
        return Charged(levels, np.maximum(self._of(levels), other._of(levels)))

    def _of(self, levels: IntArray) -> IntArray:
        charges = np.zeros(levels.size, dtype=np.int64)
        charges[np.searchsorted(levels, self.levels)] = self.charges
        return charges


_NOTHING = Charged(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Unbooked:
    """What releases that no ledger booked have charged the people of a table."""

    releases: int
    """How many there were."""
    charged: Charged
    is_bound: bool
    """Whether nobody of a level may have spent so much: there were public groups, and people are in one."""


class Spending:
    """What releases without a ledger have charged the people of a table."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._releases = 0
        self._everyone = _NOTHING
        self._groupings: dict[Part, dict[Any, Charged]] = {}

    def add(self, charges: Iterable[tuple[Group, Charged]]) -> bool:
        """Add what one release charges.

        Returns:
            Whether it is the second one, after which somebody should be told.
        """
        paid = [(group, charged) for group, charged in charges if charged.charges.any()]
        with self._lock:
            for group, charged in paid:
                if group is None:
                    self._everyone = self._everyone.plus(charged)
                else:
                    by_key = self._groupings.setdefault(group[0], {})
                    by_key[group[1]] = by_key.get(group[1], _NOTHING).plus(charged)
            self._releases += bool(paid)
            return bool(paid) and self._releases == 2

    def so_far(self, group: Group = None) -> Unbooked | None:
        """What everyone, or everyone in a public group, has been charged; None before a second release."""
        with self._lock:
            if self._releases < 2:
                return None
            total = self._everyone
            for grouping, by_key in self._groupings.items():
                if group is not None and group[0] == grouping:
                    total = total.plus(by_key.get(group[1], _NOTHING))
                else:
                    most = _NOTHING
                    for charged in by_key.values():
                        most = most.or_more(charged)
                    total = total.plus(most)
            return Unbooked(self._releases, total, bool(self._groupings))
