"""Cohorts: people with the same level in the same tables and the same spendings are one account.

A release charges everyone of a level in a table alike, so people of one cohort stay alike; its cost is by
cohort, not by person. When a table is registered, or a new version of it, each person goes from the cohort
that they are in (none, if they are new) to the one that has the same spendings and their new levels. Nobody's
spendings ever change by that, also not those of people who leave a table and come back. The level with which
somebody left a table goes on counting until they come back: leaving raises nothing.

There may be as many cohorts as people, so that they are columns here, never objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from accord.budget import PUBLIC, IntArray, distinct

NONE = -1
"""In a column: no cohort, of people who are new; no level, of people who are not in a table."""
LEFT = 2**47
"""Added to the number of a table: where the levels stand with which people left it."""
WITHDRAWN = 2**48
"""The number of a table that is the ledger's own: of people who have withdrawn, with level 0."""


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

    def rows_of(self, table: int) -> slice:
        """Where a table's are."""
        first, end = np.searchsorted(self.table, (table, table + 1))
        return slice(int(first), int(end))


@dataclass(frozen=True, eq=False)
class Cohorts:
    """Every cohort that ever was, ascending by number. One that nobody is in any more has no levels."""

    id: IntArray
    level: IntArray
    """The lowest that they chose in any table, also in those that they left: the strictest counts everywhere.

    0: in no table any more, if they left when that was not kept.
    """
    allowed: IntArray
    """The most that may ever have been spent.

    A level lowered below what was spent leaves nothing, and takes nothing back.
    """
    spent: IntArray
    """PUBLIC once public people were read without noise."""
    people: IntArray
    renewed: IntArray
    """What of `spent` counts no more, because budgets were renewed since (renewing.py)."""
    members: Members

    @property
    def columns(self) -> tuple[IntArray, ...]:
        return self.id, self.level, self.allowed, self.spent, self.people, self.renewed

    @property
    def by_table(self) -> dict[str, tuple[IntArray, ...]]:
        """The columns of the tables in which they are stored."""
        return {"accord_member": self.members.columns, "accord_cohort": self.columns}

    def positions(self, numbers: IntArray) -> IntArray:
        """Where cohorts stand in the columns, by their numbers.

        Raises:
            KeyError: one of them does not exist.
        """
        positions = np.searchsorted(self.id, numbers)
        if numbers.size and (positions.max() == self.id.size or (self.id[positions] != numbers).any()):
            raise KeyError("cohort")
        return positions

    def levels_in(self, table: int) -> IntArray:
        """Each cohort's level in a table; NONE of those that are not in it."""
        level = np.full(self.id.size, NONE, dtype=np.int64)
        rows = self.members.rows_of(table)
        level[self.positions(self.members.cohort[rows])] = self.members.level[rows]
        return level

    def equal(self, other: Cohorts) -> bool:
        """Whether they are the same in everything."""
        ours, theirs = (*self.columns, *self.members.columns), (*other.columns, *other.members.columns)
        return all(map(np.array_equal, ours, theirs))


_EMPTY = np.zeros(0, dtype=np.int64)
NO_COHORTS = Cohorts(_EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY, _EMPTY, Members(_EMPTY, _EMPTY, _EMPTY))


def saturating_add(spent: IntArray, charge: IntArray) -> IntArray:
    """What was spent after a charge; ∞ stays ∞, and so much that it does not fit becomes ∞."""
    return np.where(charge >= PUBLIC - spent, PUBLIC, spent + charge)


def allowed_of(level: IntArray, spent: IntArray, renewed: IntArray) -> IntArray:
    """The most that may ever have been spent: a level, and what was renewed; never less than was spent."""
    return np.maximum(saturating_add(level, renewed), spent)


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


@dataclass(frozen=True)
class Leaving:
    """What becomes of the level of people who leave a table."""

    is_kept: bool
    """Whether it counts until they come back; not in entries of older versions."""
    parent: int | None = None
    """Of a public group, the table that it is of: who is known to that keeps their level there."""


FORGOTTEN, KEPT = Leaving(False), Leaving(True)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Who is in which cohort, after a registration."""

    hashes: IntArray
    """Ascending."""
    cohort_of: IntArray
    """Everyone's cohort."""
    moves: Moves
    cohorts: Cohorts


def assign(
    hashes: IntArray,
    cohort_of: IntArray,
    cohorts: Cohorts,
    table: int,
    new_hashes: IntArray,
    new_levels: IntArray,
    leaving: Leaving = FORGOTTEN,
) -> Assignment:
    """Everyone's cohort when a table has exactly these people with these levels.

    Args:
        hashes, cohort_of: everyone so far and their cohorts, ascending by hash.
        cohorts: those so far.
        table: the table that is registered.
        new_hashes, new_levels: of everyone in it, ascending by hash.
        leaving: what becomes of the level of people who were in it, and are not any more.
    """
    everyone = union(hashes, new_hashes)
    source = np.full(everyone.size, NONE, dtype=np.int64)
    source[np.searchsorted(everyone, hashes)] = cohort_of
    sources, code = factorize(source)
    level = np.full(everyone.size, NONE, dtype=np.int64)
    level[np.searchsorted(everyone, new_hashes)] = new_levels
    levels, level_code = factorize(level)
    code *= levels.size  # in place: these are as long as there are people
    code += level_code
    pairs, move = factorize(code)
    source, level = sources[pairs // levels.size], levels[pairs % levels.size]
    target = _targets(cohorts, table, source, level, leaving)
    moves = Moves(source, level, target, np.bincount(move, minlength=pairs.size))
    return Assignment(everyone, target[move], moves, apply_moves(cohorts, table, moves, leaving)[0])


class Changes(NamedTuple):
    """How many people joined a table, left it, lowered their level and raised it.

    Who comes back has joined, and has lowered or raised the level with which they left.
    """

    joined: int
    left: int
    lowered: int
    raised: int


def changes(cohorts: Cohorts, moves: Moves, table: int) -> Changes:
    """What moves change about a table, from the cohorts before them."""
    here = _at_source(cohorts, np.append(cohorts.levels_in(table), NONE), moves.source)
    last = _at_source(cohorts, np.append(_last_levels(cohorts, table), NONE), moves.source)
    was, will = here != NONE, moves.level != NONE
    again = (last != NONE) & will
    kinds = (~was & will, was & ~will, again & (moves.level < last), again & (moves.level > last))
    return Changes(*(int(moves.people[kind].sum()) for kind in kinds))


def _last_levels(cohorts: Cohorts, table: int) -> IntArray:
    """Each cohort's level in a table, or the one with which it left; NONE of those who were never there."""
    here = cohorts.levels_in(table)
    return np.where(here != NONE, here, cohorts.levels_in(LEFT + table))


def _kept_levels(
    cohorts: Cohorts, table: int, source: IntArray, level: IntArray, leaving: Leaving
) -> IntArray:
    """The levels with which people left a table, after moves; NONE of those who are in it or never were."""
    if not leaving.is_kept:
        return np.full(source.size, NONE, dtype=np.int64)
    last = _last_levels(cohorts, table)
    if leaving.parent is not None:
        last[_last_levels(cohorts, leaving.parent) != NONE] = NONE
    return np.where(level == NONE, _at_source(cohorts, np.append(last, NONE), source), NONE)


def _targets(cohorts: Cohorts, table: int, source: IntArray, level: IntArray, leaving: Leaving) -> IntArray:
    """The numbers of the cohorts with the accounts that people move to.

    It is the last that ever had such an account, or a new one.
    """
    other, kept = _other_accounts(cohorts, table), _kept_levels(cohorts, table, source, level, leaving)
    standings, standing = _pairs(
        np.append(cohorts.levels_in(table), level), np.append(cohorts.levels_in(LEFT + table), kept)
    )
    account = np.append(other[:-1], _at_source(cohorts, other, source)) * standings + standing
    old, new = account[: cohorts.id.size], account[cohorts.id.size :]
    order = np.argsort(old, kind="stable")
    at = np.searchsorted(old[order], new, side="right") - 1  # the last of them
    exists = at >= 0
    exists[exists] = old[order[at[exists]]] == new[exists]
    target = np.empty(new.size, dtype=np.int64)
    target[exists] = cohorts.id[order[at[exists]]]
    _, first, which = np.unique(new[~exists], return_index=True, return_inverse=True)
    number = np.empty(first.size, dtype=np.int64)
    number[np.argsort(first)] = np.arange(first.size) + int(cohorts.id[-1] if cohorts.id.size else 0) + 1
    target[~exists] = number[which]
    return target


def apply_moves(
    cohorts: Cohorts, table: int, moves: Moves, leaving: Leaving = FORGOTTEN
) -> tuple[Cohorts, IntArray]:
    """The cohorts after moves, and those into which people with different accounts were put.

    Raises:
        KeyError: people come from a cohort that does not exist.
    """
    kept = _kept_levels(cohorts, table, moves.source, moves.level, leaving)
    standings, standing = _pairs(moves.level, kept)
    account = _at_source(cohorts, _other_accounts(cohorts, table), moves.source) * standings + standing
    targets, first, which = np.unique(moves.target, return_index=True, return_inverse=True)
    mixed = moves.target[account != account[first][which]]

    numbers = union(cohorts.id, targets)
    old, new = np.searchsorted(numbers, cohorts.id), np.searchsorted(numbers, targets)
    spent, renewed, people = (np.zeros(numbers.size, dtype=np.int64) for _ in range(3))
    for column, before in ((spent, cohorts.spent), (renewed, cohorts.renewed)):
        column[old] = before
        column[new] = _at_source(cohorts, np.append(before, 0), moves.source[first])
    np.add.at(people, new[which], moves.people)
    here = {table: moves.level[first], LEFT + table: kept[first]}
    members = _members_after(cohorts, table, targets, moves.source[first], here)
    lowest = lowest_level(numbers, members)
    allowed = allowed_of(lowest, spent, renewed)
    return Cohorts(numbers, lowest, allowed, spent, people, renewed, members), mixed


def _members_after(
    cohorts: Cohorts, table: int, targets: IntArray, source: IntArray, here: dict[int, IntArray]
) -> Members:
    """What people take with them: their levels in other tables, and the new one, or that which is kept."""
    tables, owner, levels = _elsewhere(cohorts, table)
    counts = np.append(np.bincount(owner, minlength=cohorts.id.size), 0)
    starts = np.append(0, np.cumsum(counts))[:-1]
    count, start = _at_source(cohorts, counts, source), _at_source(cohorts, starts, source)
    # rows start, start + 1, …, start + count − 1 of each
    rows = np.repeat(start - np.append(0, np.cumsum(count))[:-1], count) + np.arange(count.sum())
    all_tables, all_cohorts, all_levels = tables[rows], np.repeat(targets, count), levels[rows]
    for number, level in here.items():
        stands = level != NONE
        all_tables = np.append(all_tables, np.full(np.count_nonzero(stands), number))
        all_cohorts = np.append(all_cohorts, targets[stands])
        all_levels = np.append(all_levels, level[stands])
    order = np.lexsort((all_cohorts, all_tables))
    return Members(all_tables[order], all_cohorts[order], all_levels[order])


def lowest_level(numbers: IntArray, members: Members) -> IntArray:
    """The strictest level of each cohort; 0 if it is in no table."""
    at = np.searchsorted(numbers, members.cohort)
    lowest = np.zeros(numbers.size, dtype=np.int64)
    lowest[at] = PUBLIC
    np.minimum.at(lowest, at, members.level)
    return lowest


def _elsewhere(cohorts: Cohorts, table: int) -> tuple[IntArray, IntArray, IntArray]:
    """Levels in other tables, by cohort and table: the table, the cohort's position, and the level."""
    members = cohorts.members
    is_elsewhere = (members.table != table) & (members.table != LEFT + table)
    tables, cohort, levels = (column[is_elsewhere] for column in members.columns)
    owner = cohorts.positions(cohort)
    order = np.argsort(owner, kind="stable")
    return tables[order], owner[order], levels[order]


def _other_accounts(cohorts: Cohorts, table: int) -> IntArray:
    """A number for what each cohort has spent and for its levels in other tables: the same for the same.

    The last is of new people.
    """
    unused, account = _pairs(np.append(cohorts.spent, 0), np.append(cohorts.renewed, 0))
    tables, owner, levels = _elsewhere(cohorts, table)
    if not owner.size:
        return account
    distinct_levels, level_code = factorize(levels)
    pairs, pair = factorize(factorize(tables)[1] * distinct_levels.size + level_code)
    rank = np.arange(owner.size) - np.searchsorted(owner, owner)  # the first, second, … table of a cohort
    for depth in range(int(rank.max()) + 1):
        rows = np.flatnonzero(rank == depth)
        extended, code = factorize(account[owner[rows]] * pairs.size + pair[rows])
        account[owner[rows]] = unused + code
        unused += extended.size
    return account


def _at_source(cohorts: Cohorts, values: IntArray, source: IntArray) -> IntArray:
    """What the sources of moves have, of a column by cohort with one place more: for new people."""
    position = np.full(source.size, cohorts.id.size)
    exists = source != NONE
    position[exists] = cohorts.positions(source[exists])
    at_source: IntArray = values[position]
    return at_source


def factorize(values: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct values, ascending, and where each value stands among them."""
    each = distinct(values)
    return each, np.searchsorted(each, values)


def _pairs(one: IntArray, other: IntArray) -> tuple[int, IntArray]:
    """How many different pairs two columns have at most, and a number below that for each row's."""
    _, code = factorize(one)
    others, other_code = factorize(other)
    each, pair = factorize(code * max(1, others.size) + other_code)
    return max(1, each.size), pair


def union(one: IntArray, other: IntArray) -> IntArray:
    """The union of two ascending arrays without repetitions.

    A stable sort merges two runs in one pass; NumPy's own union is ten times slower.
    """
    if not one.size or not other.size:
        return one if one.size else other
    at = np.minimum(np.searchsorted(one, other), one.size - 1)
    return np.sort(np.concatenate((one, other[one[at] != other])), kind="stable")
