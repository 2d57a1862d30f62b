"""Cohorts: people with the same level in the same tables and the same spendings are one account.

A release charges everyone of a level in a table alike, so people of one cohort stay alike; its cost is by
cohort, not by person. When a table is registered, or a new version of it, each person goes from the cohort
that they are in (none, if they are new) to the one that has the same spendings and their new levels. Nobody's
spendings ever change by that, also not those of people who leave a table and come back.

There may be as many cohorts as people, so that they are columns here, never objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from accord.budget import PUBLIC, IntArray, distinct

NONE = -1
"""In a column: no cohort, of people who are new; no level, of people who are not in a table."""


@dataclass(frozen=True, eq=False)
class Members:
    """Which cohorts are in which tables, by table and cohort; a cohort is in a table once at most."""

    table: IntArray
    cohort: IntArray
    level: IntArray
    """Their level there, in millionths, as all here."""

    @property
    def columns(self) -> tuple[IntArray, ...]:
        return self.table, self.cohort, self.level

    def of(self, table: int) -> slice:
        """Where a table's are."""
        first, end = np.searchsorted(self.table, (table, table + 1))
        return slice(int(first), int(end))


@dataclass(frozen=True, eq=False)
class Cohorts:
    """Every cohort that ever was, ascending by number. One that nobody is in any more has no levels."""

    id: IntArray
    level: IntArray
    """The lowest that they chose in any table: the strictest counts everywhere. 0: in no table any more."""
    allowed: IntArray
    """The most that may ever have been spent.

    A level lowered below what was spent leaves nothing, and takes nothing back.
    """
    spent: IntArray
    """PUBLIC once public people were read without noise."""
    people: IntArray
    members: Members

    @property
    def columns(self) -> tuple[IntArray, ...]:
        return self.id, self.level, self.allowed, self.spent, self.people

    def at(self, numbers: IntArray) -> IntArray:
        """Where cohorts stand.

        Raises:
            KeyError: one of them does not exist.
        """
        places = np.searchsorted(self.id, numbers)
        if numbers.size and (places.max() == self.id.size or (self.id[places] != numbers).any()):
            raise KeyError("cohort")
        return places

    def levels_in(self, table: int) -> IntArray:
        """Everyone's level in a table."""
        level = np.full(self.id.size, NONE, dtype=np.int64)
        rows = self.members.of(table)
        level[self.at(self.members.cohort[rows])] = self.members.level[rows]
        return level

    def equal(self, other: Cohorts) -> bool:
        mine, others = (*self.columns, *self.members.columns), (*other.columns, *other.members.columns)
        return all(np.array_equal(one, two) for one, two in zip(mine, others, strict=True))


_NOTHING = np.zeros(0, dtype=np.int64)
NO_COHORTS = Cohorts(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, Members(_NOTHING, _NOTHING, _NOTHING))


def remaining_of(level: IntArray, allowed: IntArray, spent: IntArray) -> IntArray:
    """What cohorts have left; ∞ where the level is."""
    return np.where(level == PUBLIC, PUBLIC, allowed - spent)


@dataclass(frozen=True, eq=False)
class Moves:
    """How many people go from which cohort to which.

    Those of one row come from one cohort (or none: new ones), and have one new level in the table (or none).
    """

    source: IntArray
    level: IntArray
    target: IntArray
    people: IntArray

    @property
    def columns(self) -> tuple[IntArray, ...]:
        return self.source, self.level, self.target, self.people


@dataclass(frozen=True, eq=False)
class Assignment:
    """Who is in which cohort, after a registration."""

    hashes: IntArray
    """Ascending."""
    of: IntArray
    """Everyone's cohort."""
    moves: Moves
    cohorts: Cohorts


def assign(
    hashes: IntArray, of: IntArray, cohorts: Cohorts, table: int, new_hashes: IntArray, new_levels: IntArray
) -> Assignment:
    """Everyone's cohort when a table has exactly these people with these levels.

    Args:
        hashes, of: everyone so far and their cohorts, ascending by hash.
        cohorts: those so far.
        table: the table that is registered.
        new_hashes, new_levels: of everyone in it, ascending by hash.
    """
    everyone = union(hashes, new_hashes)
    group = np.full(everyone.size, NONE, dtype=np.int64)
    group[np.searchsorted(everyone, hashes)] = of
    olds, group = places(group)
    level = np.full(everyone.size, NONE, dtype=np.int64)
    level[np.searchsorted(everyone, new_hashes)] = new_levels
    levels, level = places(level)
    group *= levels.size
    group += level
    codes, group = places(group)
    source, chosen = olds[codes // levels.size], levels[codes % levels.size]
    target = _targets(cohorts, table, source, chosen)
    moves = Moves(source, chosen, target, np.bincount(group, minlength=codes.size))
    return Assignment(everyone, target[group], moves, follow(cohorts, table, moves)[0])


class Changes(NamedTuple):
    """How many people joined a table, left it, lowered their level and raised it."""

    joined: int
    left: int
    lowered: int
    raised: int


def changes(cohorts: Cohorts, moves: Moves, table: int) -> Changes:
    """What moves change about a table, from the cohorts before them."""
    before = np.full(moves.source.size, NONE, dtype=np.int64)
    known = moves.source != NONE
    before[known] = cohorts.levels_in(table)[cohorts.at(moves.source[known])]
    was, will = before != NONE, moves.level != NONE
    stayed = was & will
    kinds = (~was & will, was & ~will, stayed & (moves.level < before), stayed & (moves.level > before))
    return Changes(*(int(moves.people[kind].sum()) for kind in kinds))


def _targets(cohorts: Cohorts, table: int, source: IntArray, chosen: IntArray) -> IntArray:
    """The numbers of the cohorts with the accounts that people move to.

    It is the last that ever had such an account, or a new one.
    """
    rest = _rest(cohorts, table)
    both = np.append(cohorts.levels_in(table), chosen)
    levels, level = places(both)
    key = np.append(rest[:-1], _of_source(cohorts, rest, source)) * levels.size + level
    old, key = key[: cohorts.id.size], key[cohorts.id.size :]
    order = np.argsort(old, kind="stable")
    at = np.searchsorted(old[order], key, side="right") - 1  # the last of them
    exists = at >= 0
    exists[exists] = old[order[at[exists]]] == key[exists]
    target = np.empty(key.size, dtype=np.int64)
    target[exists] = cohorts.id[order[at[exists]]]
    _, first, which = np.unique(key[~exists], return_index=True, return_inverse=True)
    number = np.empty(first.size, dtype=np.int64)
    number[np.argsort(first)] = np.arange(first.size) + int(cohorts.id[-1] if cohorts.id.size else 0) + 1
    target[~exists] = number[which]
    return target


def follow(cohorts: Cohorts, table: int, moves: Moves) -> tuple[Cohorts, IntArray]:
    """The cohorts after moves, and those into which people with different accounts were put.

    Raises:
        KeyError: people come from a cohort that does not exist.
    """
    rest = _rest(cohorts, table)
    _, level = places(moves.level)
    key = _of_source(cohorts, rest, moves.source) * (level.max(initial=0) + 1) + level
    targets, first, which = np.unique(moves.target, return_index=True, return_inverse=True)
    mixed = moves.target[key != key[first][which]]

    numbers = union(cohorts.id, targets)
    old, new = np.searchsorted(numbers, cohorts.id), np.searchsorted(numbers, targets)
    spent, people = (np.zeros(numbers.size, dtype=np.int64) for _ in range(2))
    spent[old] = cohorts.spent
    spent[new] = _of_source(cohorts, np.append(cohorts.spent, 0), moves.source[first])
    np.add.at(people, new[which], moves.people)
    members = _moved(cohorts, table, targets, moves.source[first], moves.level[first])
    lowest = lowest_level(numbers, members)
    return Cohorts(numbers, lowest, np.maximum(lowest, spent), spent, people, members), mixed


def _moved(cohorts: Cohorts, table: int, targets: IntArray, source: IntArray, chosen: IntArray) -> Members:
    """What people take with them: their levels in other tables, and the new one."""
    tables, owner, levels = _elsewhere(cohorts, table)
    counts = np.append(np.bincount(owner, minlength=cohorts.id.size), 0)
    starts = np.append(0, np.cumsum(counts))[:-1]
    many, start = _of_source(cohorts, counts, source), _of_source(cohorts, starts, source)
    # rows start, start + 1, …, start + many − 1 of each
    rows = np.repeat(start - np.append(0, np.cumsum(many))[:-1], many) + np.arange(many.sum())
    stays = chosen != NONE
    tab = np.append(tables[rows], np.full(np.count_nonzero(stays), table))
    cohort = np.append(np.repeat(targets, many), targets[stays])
    level = np.append(levels[rows], chosen[stays])
    order = np.lexsort((cohort, tab))
    return Members(tab[order], cohort[order], level[order])


def lowest_level(numbers: IntArray, members: Members) -> IntArray:
    """The strictest level of each cohort; 0 if it is in no table."""
    at = np.searchsorted(numbers, members.cohort)
    lowest = np.zeros(numbers.size, dtype=np.int64)
    lowest[at] = PUBLIC
    np.minimum.at(lowest, at, members.level)
    return lowest


def _elsewhere(cohorts: Cohorts, table: int) -> tuple[IntArray, IntArray, IntArray]:
    """Levels in other tables, by cohort and table: the table, where the cohort stands, and the level."""
    members, this = cohorts.members, cohorts.members.of(table)
    tab, cohort, level = (np.delete(column, this) for column in members.columns)
    at = cohorts.at(cohort)
    order = np.argsort(at, kind="stable")
    return tab[order], at[order], level[order]


def _rest(cohorts: Cohorts, table: int) -> IntArray:
    """A number for what each cohort has spent and for its levels in other tables: the same for the same.

    The last is of new people.
    """
    spendings, rest = places(np.append(cohorts.spent, 0))
    unused = spendings.size
    tab, owner, level = _elsewhere(cohorts, table)
    if not owner.size:
        return rest
    tab = places(tab)[1]
    levels, level = places(level)
    pairs, pair = places(tab * levels.size + level)
    rank = np.arange(owner.size) - np.searchsorted(owner, owner)  # the first, second, … table of a cohort
    for depth in range(int(rank.max()) + 1):
        rows = np.flatnonzero(rank == depth)
        kinds, kind = places(rest[owner[rows]] * pairs.size + pair[rows])
        rest[owner[rows]] = unused + kind
        unused += kinds.size
    return rest


def _of_source(cohorts: Cohorts, values: IntArray, source: IntArray) -> IntArray:
    """What the sources of moves have, of a column by cohort with one place more: for new people."""
    at = np.full(source.size, cohorts.id.size)
    known = source != NONE
    at[known] = cohorts.at(source[known])
    theirs: IntArray = values[at]
    return theirs


def places(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, ascending, and where each value stands among them."""
    each = distinct(values)
    return each, np.searchsorted(each, values)


def union(one: IntArray, other: IntArray) -> IntArray:
    """The union of two ascending arrays without repetitions.

    A stable sort merges two runs in one pass; NumPy's own union is ten times slower.
    """
    if not one.size or not other.size:
        return one if one.size else other
    at = np.minimum(np.searchsorted(one, other), one.size - 1)
    return np.sort(np.concatenate((one, other[one[at] != other])), kind="stable")
