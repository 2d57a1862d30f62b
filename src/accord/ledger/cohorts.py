"""Cohorts: people with the same level in the same tables and the same spendings are one account.

A release charges everyone of a level in a table alike, so people of one cohort stay alike; its cost is by cohort, not by person. When a table is
registered, or a new version of it, each person goes from the cohort that they are in (none, if they are new) to the one that has the same
spendings and their new levels. Nobody's spendings ever change by that, also not those of people who leave a table and come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from accord.budget import PUBLIC, IntArray


@dataclass(frozen=True)
class Cohort:
    spent: int
    """In millionths, as all here; PUBLIC once public people were read without noise."""
    levels: tuple[tuple[int, int], ...]
    """(table, level there), by table."""

    @property
    def level(self) -> int:
        """The lowest that they have in any table: the strictest wish counts everywhere. 0: in no table any more."""
        return min((level for _, level in self.levels), default=0)

    @property
    def allowed(self) -> int:
        """The most that may ever have been spent: a level lowered below what was spent leaves nothing, and takes nothing back."""
        return max(self.level, self.spent)

    def moved(self, table: int, level: int | None) -> Cohort:
        """With another level in a table; None: no longer in it."""
        others = tuple(entry for entry in self.levels if entry[0] != table)
        return Cohort(self.spent, others if level is None else tuple(sorted((*others, (table, level)))))


def left_of(level: IntArray, allowed: IntArray, spent: IntArray) -> IntArray:
    """What cohorts have left; ∞ where the level is."""
    return np.where(level == PUBLIC, PUBLIC, allowed - spent)


@dataclass(frozen=True)
class Move:
    """So many people of one cohort (None: new ones), with one new level in the table (None: not in it), and the cohort that they go to."""

    source: int | None
    level: int | None
    target: int
    people: int


@dataclass(frozen=True)
class Assignment:
    """Who is in which cohort, after a registration."""

    hashes: IntArray
    """Ascending."""
    cohorts: IntArray
    moves: list[Move]
    known: dict[int, Cohort]
    """Every cohort that was, and those that are new."""


def assign(
    hashes: IntArray,
    cohorts: IntArray,
    known: dict[int, Cohort],
    table: int,
    new_hashes: IntArray,
    new_levels: IntArray,
    unused: int,
) -> Assignment:
    """Everyone's cohort when a table has exactly these people with these levels.

    Args:
        hashes, cohorts: of everyone so far, ascending by hash.
        known: the cohorts so far.
        table: the table that is registered.
        new_hashes, new_levels: of everyone in it, ascending by hash.
        unused: the first number that no cohort ever had.
    """
    everyone = _union(hashes, new_hashes)
    group = np.full(everyone.size, -1, dtype=np.int64)
    group[np.searchsorted(everyone, hashes)] = cohorts
    olds, group = places(group)
    level = np.full(everyone.size, -1, dtype=np.int64)
    level[np.searchsorted(everyone, new_hashes)] = new_levels
    levels, level = places(level)
    group *= levels.size
    group += level
    codes, group = places(group)
    counts = np.bincount(group)

    known = dict(known)
    numbers = {cohort: number for number, cohort in known.items()}
    moves = []
    for code, people in zip(codes.tolist(), counts.tolist(), strict=True):
        source, wish = int(olds[code // levels.size]), int(levels[code % levels.size])
        wished = None if wish < 0 else wish
        cohort = (known[source] if source >= 0 else Cohort(0, ())).moved(table, wished)
        if cohort not in numbers:
            numbers[cohort], known[unused] = unused, cohort
            unused += 1
        moves.append(Move(None if source < 0 else source, wished, numbers[cohort], people))
    targets = np.array([move.target for move in moves], dtype=np.int64)
    return Assignment(everyone, targets[group], moves, known)


def places(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, ascending, and where each value stands among them."""
    distinct = np.unique(values)
    return distinct, np.searchsorted(distinct, values)


def _union(one: IntArray, other: IntArray) -> IntArray:
    """Of two ascending arrays without repetitions. (A stable sort merges two runs in one pass; NumPy's own union is ten times slower.)"""
    if not one.size or not other.size:
        return one if one.size else other
    at = np.minimum(np.searchsorted(one, other), one.size - 1)
    return np.sort(np.concatenate((one, other[one[at] != other])), kind="stable")


def sizes(moves: Iterable[Move]) -> dict[int, int]:
    """How many people are in each cohort after the moves."""
    people: dict[int, int] = {}
    for move in moves:
        people[move.target] = people.get(move.target, 0) + move.people
    return people
