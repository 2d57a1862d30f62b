"""Validation: nothing leaves a ledger's database unchecked.

Every column says what it may hold; a row with anything else in it is damage. Entries follow from each other
by their hashes, and from the first on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from accord.budget import PUBLIC, IntArray
from accord.ledger.chain import START, Entry
from accord.ledger.store import Session

# ---- what each column may hold ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole:
    """Whole numbers within limits."""

    least: int = 0
    most: int = PUBLIC

    def accepts(self, values: tuple[Any, ...]) -> bool:
        return set(map(type, values)) <= {int} and min(values) >= self.least and max(values) <= self.most


@dataclass(frozen=True)
class Text:
    """Text of a pattern."""

    pattern: str = r"(?s:.+)"

    def accepts(self, values: tuple[Any, ...]) -> bool:
        return set(map(type, values)) <= {str} and all(map(re.compile(self.pattern).fullmatch, values))


class Int64Bytes:
    """Whole numbers of eight bytes each."""

    def accepts(self, values: tuple[Any, ...]) -> bool:
        return set(map(type, values)) <= {bytes, memoryview} and not any(len(value) % 8 for value in values)


_HASH, _NUMBER, _ANY = Text("[0-9a-f]{64}"), Whole(1, 2**48), Text("(?s:.*)")
COLUMNS: dict[str, dict[str, Whole | Text | Int64Bytes]] = {
    "accord_meta": {"name": Text(), "value": Text()},
    "accord_table": {
        "id": _NUMBER,
        "name": Text(),
        "version": _NUMBER,
        "fingerprint": Text("[0-9a-f]+"),
        "people": Whole(),
        "tiers": Text(),
    },
    "accord_cohort": {
        "id": _NUMBER,
        "level": Whole(),
        "allowed": Whole(),
        "spent": Whole(),
        "people": Whole(),
        "renewed": Whole(),
    },
    "accord_member": {"tab": _NUMBER, "cohort": _NUMBER, "level": Whole()},
    "accord_people": {"chunk": Whole(), "hashes": Int64Bytes(), "cohorts": Int64Bytes()},
    "accord_entry": {
        "seq": _NUMBER,
        "time": Text(),
        "kind": Text("[a-z]+"),
        "body": Text(),
        "previous": _HASH,
        "hash": _HASH,
        "seal": _HASH,
    },
    "accord_answer": {"question": _HASH, "tab": _NUMBER, "version": _NUMBER, "entry": _NUMBER},
    "accord_request": {
        "id": Text("[0-9a-f]{32}"),
        "actor": Text(),
        "key": Text(),
        "digest": _HASH,
        "tab": Text(),
        "share": Whole(),
        "time": Text(),
        "state": Text("[a-z]+"),
        "body": Text(),
        "entry": Whole(),
        "charged": _ANY,
        "answer": _ANY,
    },
    "accord_refused": {
        "tab": _ANY,
        "actor": _ANY,
        "reason": Text("[a-z]+"),
        "first": Text(),
        "last": Text(),
        "times": Whole(1),
    },
}


_KEYS = {"accord_cohort": "id", "accord_member": "tab, cohort"}
"""Of the tables that hold whole numbers only."""


def select_sql(table: str, rest: str) -> str:
    """SQL for rows of a table with all its columns."""
    return f"SELECT {', '.join(COLUMNS[table])} FROM {table} {rest}"


def select(db: Session, table: str, rest: str = "", *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a table with all its columns, each holding what it may."""
    rows = db.rows(select_sql(table, rest), *values)
    _check(db, table, rows)
    return rows


def _check(db: Session, table: str, rows: list[tuple[Any, ...]]) -> None:
    columns = COLUMNS[table]
    for name, column in zip(columns, zip(*rows, strict=True), strict=False):
        if not columns[name].accepts(column):
            raise db.damaged(f"there is something in {table}.{name} that no version of accord writes there")


def stored_numbers(db: Session, table: str) -> list[IntArray] | None:
    """The columns of a table that holds whole numbers only, by its key.

    None if there is anything else in it.
    """
    return db.columns(select_sql(table, f"ORDER BY {_KEYS[table]}"), len(COLUMNS[table]))


def checked_numbers(db: Session, table: str) -> list[IntArray]:
    """These columns, each holding what it may."""
    stored = stored_numbers(db, table)
    if stored is not None:
        limits = [column for column in COLUMNS[table].values() if isinstance(column, Whole)]
        if all(
            not column.size or (column.min() >= limit.least and column.max() <= limit.most)
            for column, limit in zip(stored, limits, strict=True)
        ):
            return stored
    select(db, table)  # which says in which column it is
    raise db.damaged(f"there is something in {table} that no version of accord writes there")


# ---- the chain -------------------------------------------------------------------------------------------


def newest_entry(db: Session) -> Entry | None:
    """The last of the chain; None: there is none yet."""
    return _first(db, "ORDER BY seq DESC LIMIT 1")


def entry_of(db: Session, number: int) -> Entry | None:
    """The entry with a number; None: there is none."""
    return _first(db, "WHERE seq = ?", number)


def newest_registration(db: Session) -> Entry | None:
    """The last entry that registered a table; None: there is none yet."""
    return _first(db, "WHERE kind = 'register' ORDER BY seq DESC LIMIT 1")


def newest_renewal(db: Session) -> Entry | None:
    """The last entry that renewed budgets; None: there is none yet."""
    return _first(db, "WHERE kind = 'renew' ORDER BY seq DESC LIMIT 1")


def registrations(db: Session) -> Iterator[Entry]:
    """All entries that registered a table, newest first, one after the other."""
    before = _NUMBER.most + 1
    while entry := _first(db, "WHERE kind = 'register' AND seq < ? ORDER BY seq DESC LIMIT 1", before):
        before = entry.seq
        yield entry


def entries_since(db: Session, kind: str, number: int) -> Iterator[Entry]:
    """The entries of a kind after the one with a number, oldest first, one after the other."""
    while entry := _first(db, "WHERE kind = ? AND seq > ? ORDER BY seq LIMIT 1", kind, number):
        number = entry.seq
        yield entry


def _first(db: Session, rest: str, *values: Any) -> Entry | None:
    for row in select(db, "accord_entry", rest, *values):
        entry = Entry(*row)
        if not entry.is_whole:
            raise db.damaged(f"entry {entry.seq} has been changed: its hash is another")
        return entry
    return None


def each_entry(db: Session) -> Iterator[Entry]:
    """The whole chain, oldest first, one entry after the other: all of them may be too much to hold."""
    previous = START
    for number, row in enumerate(db.stream(select_sql("accord_entry", "ORDER BY seq")), start=1):
        _check(db, "accord_entry", [row])
        entry = Entry(*row)
        if entry.seq != number or entry.previous != previous or not entry.is_whole:
            raise db.damaged("its entries do not follow from each other")
        previous = entry.hash
        yield entry


def each_entry_backwards(db: Session) -> Iterator[Entry]:
    """The same, newest first."""
    following: Entry | None = None
    for row in db.stream(select_sql("accord_entry", "ORDER BY seq DESC")):
        _check(db, "accord_entry", [row])
        entry = Entry(*row)
        is_next = following is None or (entry.seq, entry.hash) == (following.seq - 1, following.previous)
        if not is_next or not entry.is_whole:
            raise db.damaged("its entries do not follow from each other")
        following = entry
        yield entry


def whole_numbers(listed: Any) -> list[int]:
    """Those of a list in an entry, which may be anything if somebody else wrote it."""
    return [one for one in listed if isinstance(one, int)] if isinstance(listed, list) else []


def digests(entry: Entry | None) -> dict[str, Any]:
    """Its digests, which the next entry repeats if it leaves the accounts as they are."""
    content = {} if entry is None else entry.outline
    return {name: content[name] for name in ("digest", "accounts") if name in content}
