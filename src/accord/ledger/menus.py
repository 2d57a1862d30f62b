"""Menus: accounts by level, where levels are private and a ledger must not know who has which.

Guarantee  A record is a value with its level; with `user=` it is all rows of a person, at the strictest of
           their levels. Whoever comes or goes with a record in each of some tables of a ledger changes no
           probability by more than e^spent(M), M the highest of their levels in these tables and at any
           time: the lowest account that stands for all of them. spent(M) ≤ M. So whoever has one level loses
           no more than that; and of what one table releases, no more than their level in it. Who is public
           (∞) in one table is not protected in it, and loses elsewhere what they lose there. Where budgets
           are renewed, what comes back to M is added (renewing.py).
Accounts   There is one for every level of every menu, and no people. A release k about a table charges the
           account of a level e what it charges the level in that table's menu that is most expensive up to e:
               charge_k(e) = max{c_k(ε) : ε on the menu, ε ≤ e},   0 if there is none.
Proof      Somebody loses at most c_k(ε_k) by release k, ε_k ≤ M their level there (relation.py), which is at
           most charge_k(M); if they are not read, nothing. Losses add up, also of questions that depend on
           earlier answers. An account that is made later begins with what the next lower one has spent: no
           menu had a level between them, so that charge_k was the same for both.
Public     What is stored follows from the menus and from plans, which follow from what is expected: nothing
           in a ledger depends on who is there. A release is refused if an account would be overdrawn, whoever
           has that level, or nobody. What a level has left is the least that it and all higher ones have
           left, so that what is planned from it overdraws none of them.

Where all tables have one menu and charges rise with the level, as they do unless they are planned from what
is left, this is spent(ε) = Σ_k c_k(ε), account by account.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from accord.budget import PUBLIC, IntArray
from accord.errors import LedgerError
from accord.ledger.cohorts import Cohorts, Members, allowed_of, remaining_of, union
from accord.relation import PRIVATE_LEVELS
from accord.spec import Spec

NO_PEOPLE = (
    "the ledger {} is kept for private levels: it has accounts by level, and does not know who is in its "
    "tables. {} Nothing was booked."
)


def are_private(neighbors: object) -> bool:
    """Whether levels are private under these neighbors, if they are any."""
    return neighbors == PRIVATE_LEVELS.name


def refuse_people(meta: Mapping[str, str], label: str, instead: str) -> None:
    """Refuse what is about single people, where a ledger knows nobody."""
    if are_private(meta.get("neighbors")):
        raise LedgerError(NO_PEOPLE.format(label, instead))


def with_menu(cohorts: Cohorts, table: int, menu: IntArray) -> Cohorts:
    """The accounts after a table with these levels, ascending, is registered; they are cohorts of nobody.

    Each is in every table, at the highest level on the table's menu that is no higher than its own.

    Raises:
        ValueError: there are people in the ledger, or it is no menu.
    """
    if cohorts.people.any() or not menu.size or menu[0] <= 0 or (np.diff(menu) <= 0).any():
        raise ValueError("not a menu of levels in a ledger of nobody")
    order = np.argsort(cohorts.level)
    old, levels = cohorts.level[order], union(cohorts.level[order], menu)
    lower = np.searchsorted(old, levels, side="right") - 1  # the account itself, or the next lower one
    spent, renewed = (_at(column[order], lower) for column in (cohorts.spent, cohorts.renewed))
    is_new = _at(old, lower) != levels
    number = _at(cohorts.id[order], lower)
    number[is_new] = int(cohorts.id.max(initial=0)) + 1 + np.arange(np.count_nonzero(is_new))
    members = cohorts.members
    menus = {int(each): members.level[members.rows_of(int(each))] for each in np.unique(members.table)}
    menus[table] = menu
    rows = [_members(each, np.unique(menus[each]), number, levels) for each in sorted(menus)]
    tables, at, chosen = (np.concatenate(column) for column in zip(*rows, strict=True))
    by_number = np.argsort(number)
    columns = (number, levels, allowed_of(levels, spent, renewed), spent, np.zeros_like(levels), renewed)
    ids, level, allowed, spent, people, renewed = (column[by_number] for column in columns)
    return Cohorts(ids, level, allowed, spent, people, renewed, Members(tables, at, chosen))


def _at(column: IntArray, position: IntArray) -> IntArray:
    """A column at positions; 0 at −1."""
    return np.append(column, 0)[position]


def _members(
    table: int, menu: IntArray, number: IntArray, levels: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The rows of a table, by account."""
    place = np.searchsorted(menu, levels, side="right") - 1
    is_in = place >= 0
    order = np.argsort(number[is_in])
    cohort, chosen = number[is_in][order], menu[place[is_in]][order]
    return np.full(cohort.size, table, dtype=np.int64), cohort, chosen


def charges(level: IntArray, charge: IntArray) -> IntArray:
    """What accounts are charged, of what their level in a table is charged: as much as any lower one."""
    order = np.argsort(level)
    charged = np.empty_like(charge)
    charged[order] = np.maximum.accumulate(charge[order])
    return charged


def left(level: IntArray, allowed: IntArray, spent: IntArray) -> IntArray:
    """What accounts have left: the least of their own and of all higher ones."""
    order = np.argsort(level)[::-1]
    least = np.empty_like(level)
    least[order] = np.minimum.accumulate(remaining_of(level, allowed, spent)[order])
    return least


def remaining_spec(levels: IntArray, remaining: IntArray, expected: Spec) -> tuple[Spec, IntArray]:
    """What the menu of a table has left, for as many people as are expected; and that, level by level.

    `levels`, `remaining`: of its accounts, their own level and what they have left.
    """
    order = np.argsort(levels)
    by_level = remaining[order][np.searchsorted(levels[order], expected.micro)]
    people = np.append(expected.people, expected.opted_out)
    return Spec(np.append(by_level, 0), people, is_rest=True, is_expected=True), by_level


def is_charged_by_menu(cohorts: Cohorts, charge: IntArray) -> bool:
    """Whether charges, one for each account, never fall as the level rises."""
    return bool((np.diff(np.minimum(charge, PUBLIC)[np.argsort(cohorts.level)]) >= 0).all())
