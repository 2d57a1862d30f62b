"""Verifying: the files, the chain, and whether the accounts are what follows from it.

Damage is told here, and raised everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from accord.budget import IntArray
from accord.errors import LedgerError
from accord.ledger.books import Books
from accord.ledger.chain import Entry, Replay
from accord.ledger.key import Key
from accord.ledger.reading import COLUMNS, checked_accounts, digest_of, everyone, stored_numbers
from accord.ledger.store import Session

T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """What a ledger is found to be: see `Ledger.verify`."""

    entries: int
    sealed: bool
    """Whether the key was at hand, to see who wrote the entries."""
    open: int
    """Reservations that nothing is known to have come of: interrupted, or under way. They are charged."""
    problems: tuple[str, ...]
    restored: int = 0
    """How often an older copy was accepted: what was spent after it was made is forgotten."""


def verify(books: Books) -> Verdict:
    """Look at a ledger as it is stored, and at its head."""
    noted = books.noted_head()
    with books.store.read() as db:
        return examine(db, books.matching_key, lambda key: books.missing_entries(db, noted, key))


def examine(
    db: Session,
    key_of: Callable[[Any], Key | None],
    head_problem: Callable[[Key | None], str | None],
) -> Verdict:
    """Look at everything as it is stored.

    Args:
        key_of: the key, for what the ledger has to check it by; None: it is not at hand.
        head_problem: why entries may be missing at the end.
    """
    problems: list[str] = []

    def looked(look: Callable[[], T], otherwise: T) -> T:
        try:
            return look()
        except LedgerError as damage:
            problems.append(str(damage))
            return otherwise

    def rows(table: str, order: str) -> list[tuple[Any, ...]]:
        sql = f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY {order}"
        return looked(lambda: db.rows(sql), [])

    def same(table: str, expected: tuple[IntArray, ...]) -> bool:
        stored = looked(lambda: stored_numbers(db, table), None)
        return stored is not None and all(map(np.array_equal, stored, expected))

    if faults := looked(db.faults, 0):
        problems.append(f"SQLite finds {faults:,} faults in the file")
    meta = dict(rows("accord_meta", "name"))
    key = key_of(meta.get("key"))
    if missing := looked(lambda: head_problem(key), None):
        problems.append(missing)
    replay = looked(lambda: Replay().run(_entries(db), None if key is None else key.seal), Replay())
    problems += replay.problems
    if not same("accord_cohort", replay.cohorts.columns):
        wrong = _differing(rows("accord_cohort", "id"), replay.cohorts.columns)
        problems += [f"the account of cohort {n} is not what follows from the entries" for n in wrong]
    if not same("accord_member", replay.cohorts.members.columns):
        problems.append("the levels of cohorts are not what follows from the entries")
    if {row[0]: tuple(row[1:]) for row in rows("accord_table", "id")} != replay.tables:
        problems.append("the registered tables are not what follows from the entries")
    if replay.entries and digest_of(row[1:] for row in rows("accord_people", "chunk")) != replay.digest:
        problems.append("who is in which cohort is not what was registered")
    if replay.entries and (meta.get("key"), meta.get("neighbors")) != replay.meta:
        problems.append("the check of the key, or the notion of neighbors, is not what was registered")
    if not problems:  # so that nothing that is refused elsewhere is called whole here
        looked(lambda: everyone(db, checked_accounts(db)), None)
    unique = tuple(dict.fromkeys(problems))
    return Verdict(replay.entries, key is not None, len(replay.open), unique, replay.restored)


def _entries(db: Session) -> Iterator[Entry]:
    """As they are stored, which may be anything."""
    columns = ", ".join(COLUMNS["accord_entry"])
    return (Entry(*row) for row in db.stream(f"SELECT {columns} FROM accord_entry ORDER BY seq"))


def _differing(stored: list[tuple[Any, ...]], expected: tuple[IntArray, ...]) -> list[Any]:
    """Cohorts that are stored otherwise than they follow from the entries."""
    here = {row[0]: tuple(row[1:]) for row in stored}
    there = {row[0]: row[1:] for row in zip(*(column.tolist() for column in expected), strict=True)}
    return sorted((n for n in here.keys() | there.keys() if here.get(n) != there.get(n)), key=str)
