"""Reading a ledger: nothing leaves the database unchecked.

Types and ranges   Every column says what it may hold; a row with anything else in it is damage.
The chain          Entries follow from each other by their hashes, and from the first on.
The accounts       Every entry holds a digest of the accounts that it left, and another of who is in which
                   cohort. What is read must have the digest in the newest entry. Where that has none (it was
                   written by an older version), the accounts must follow from all entries.

Checking the accounts takes time by cohort, not by person; who is in which cohort is checked when it is read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from accord.budget import PUBLIC, IntArray
from accord.ledger.chain import START, Entry, Replay, add
from accord.ledger.cohorts import Cohorts, Members, remaining_of
from accord.ledger.store import Session
from accord.numerals import written

CHUNK = 2**20
"""So many people are stored in a row."""
_META = ("key", "neighbors", "head")
"""What `accord_meta` holds that the accounts depend on."""


# ---- what each column may hold ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Whole:
    """Whole numbers within limits."""

    least: int = 0
    most: int = PUBLIC

    def hold(self, values: tuple[Any, ...]) -> bool:
        return set(map(type, values)) <= {int} and min(values) >= self.least and max(values) <= self.most


@dataclass(frozen=True)
class Text:
    """Text of a pattern."""

    pattern: str = r"(?s:.+)"

    def hold(self, values: tuple[Any, ...]) -> bool:
        return set(map(type, values)) <= {str} and all(map(re.compile(self.pattern).fullmatch, values))


class Numbers:
    """Whole numbers of eight bytes each."""

    def hold(self, values: tuple[Any, ...]) -> bool:
        return set(map(type, values)) <= {bytes, memoryview} and not any(len(value) % 8 for value in values)


_HASH, _NUMBER = Text("[0-9a-f]{64}"), Whole(1, 2**48)
COLUMNS: dict[str, dict[str, Whole | Text | Numbers]] = {
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
    },
    "accord_member": {"tab": _NUMBER, "cohort": _NUMBER, "level": Whole()},
    "accord_people": {"chunk": Whole(), "hashes": Numbers(), "cohorts": Numbers()},
    "accord_entry": {
        "seq": _NUMBER,
        "time": Text(),
        "kind": Text("[a-z]+"),
        "body": Text(),
        "previous": _HASH,
        "hash": _HASH,
        "seal": _HASH,
    },
}


_KEYS = {"accord_cohort": "id", "accord_member": "tab, cohort"}
"""Of the tables that hold whole numbers only."""
_ALL = {table: f"SELECT {', '.join(columns)} FROM {table}" for table, columns in COLUMNS.items()}


def select(db: Session, table: str, rest: str = "", *values: Any) -> list[tuple[Any, ...]]:
    """Rows of a table with all its columns, each holding what it may."""
    rows = db.rows(f"{_ALL[table]} {rest}", *values)
    _check(db, table, rows)
    return rows


def _check(db: Session, table: str, rows: list[tuple[Any, ...]]) -> None:
    columns = COLUMNS[table]
    for name, column in zip(columns, zip(*rows, strict=True), strict=False):
        if not columns[name].hold(column):
            raise db.damaged(f"there is something in {table}.{name} that no version of accord writes there")


def stored_numbers(db: Session, table: str) -> list[IntArray] | None:
    """The columns of a table that holds whole numbers only, by its key.

    None if there is anything else in it.
    """
    return db.columns(f"{_ALL[table]} ORDER BY {_KEYS[table]}", len(COLUMNS[table]))


def numbers(db: Session, table: str) -> list[IntArray]:
    """These columns, each holding what it may."""
    stored = stored_numbers(db, table)
    if stored is not None:
        limits = [column for column in COLUMNS[table].values() if isinstance(column, Whole)]
        if all(
            not column.size or (column.min() >= limit.least and column.max() <= limit.most)
            for column, limit in zip(stored, limits, strict=True)
        ):
            return stored
    select(db, table)  # which tells where it is
    raise db.damaged(f"there is something in {table} that no version of accord writes there")


# ---- the chain -------------------------------------------------------------------------------------------


def newest_entry(db: Session) -> Entry | None:
    """The last of the chain; None: there is none yet."""
    return _first(db, "ORDER BY seq DESC LIMIT 1")


def entry_of(db: Session, number: int) -> Entry | None:
    """The entry with a number; None: there is none."""
    return _first(db, "WHERE seq = ?", number)


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
    for number, row in enumerate(db.stream(f"{_ALL['accord_entry']} ORDER BY seq"), start=1):
        _check(db, "accord_entry", [row])
        entry = Entry(*row)
        if entry.seq != number or entry.previous != previous or not entry.is_whole:
            raise db.damaged("its entries do not follow from each other")
        previous = entry.hash
        yield entry


def digests(entry: Entry | None) -> dict[str, Any]:
    """Those that the next entry repeats if it leaves the accounts as they are."""
    content = {} if entry is None else entry.outline
    return {name: content[name] for name in ("digest", "accounts") if name in content}


# ---- the accounts ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CohortsOfTable:
    """The cohorts of a table, one entry each, by their level there."""

    id: IntArray
    chosen: IntArray
    """Their level in this table."""
    level: IntArray
    """The lowest that they chose in any table: see `Cohorts`."""
    allowed: IntArray
    spent: IntArray
    people: IntArray

    @property
    def remaining(self) -> IntArray:
        """What everyone of them has left."""
        return remaining_of(self.level, self.allowed, self.spent)


class TableRow(NamedTuple):
    """A registered table, as it is stored."""

    id: int
    name: str
    version: int
    fingerprint: str
    people: int
    tiers: str
    """Their levels by their names, as JSON text."""


@dataclass(frozen=True, eq=False)
class Accounts:
    """Everything that is stored but the entries, and who is in which cohort."""

    meta: dict[str, str]
    tables: list[TableRow]
    cohorts: Cohorts

    def digest(self, people: str) -> str:
        """Of the accounts, and of who is in which cohort by its own digest.

        It is of [meta, tables, cohorts, members, people] as JSON.
        """
        text = hashlib.sha256(f"[{json.dumps(self.meta, sort_keys=True)}, {json.dumps(self.tables)}".encode())
        for columns in (self.cohorts.columns, self.cohorts.members.columns):
            text.update(b", [")
            for piece in written(f"[{', '.join('#' * len(columns))}]", ", ", columns):
                text.update(piece)
            text.update(b"]")
        text.update(f", {json.dumps(people)}]".encode())
        return text.hexdigest()

    def of(self, table: int) -> CohortsOfTable:
        """The cohorts of a table."""
        members = self.cohorts.members
        rows = members.of(table)
        cohort, chosen = members.cohort[rows], members.level[rows]
        order = np.argsort(chosen, kind="stable")
        at = self.cohorts.at(cohort[order])
        number, *columns = self.cohorts.columns
        return CohortsOfTable(number[at], chosen[order], *(column[at] for column in columns))

    def charged(self, numbers: IntArray, charges: IntArray) -> Accounts:
        """After cohorts were charged."""
        spent, at = self.cohorts.spent.copy(), self.cohorts.at(numbers)
        spent[at] = add(spent[at], charges)
        return replace(self, cohorts=replace(self.cohorts, spent=spent))

    def equal(self, other: Accounts) -> bool:
        return (self.meta, self.tables) == (other.meta, other.tables) and self.cohorts.equal(other.cohorts)

    def are_stored(self, db: Session) -> bool:
        """Whether the database holds just these."""
        return db.rows(f"{_ALL['accord_table']} ORDER BY id") == self.tables and all(
            stored is not None and all(map(np.array_equal, stored, columns))
            for stored, columns in (
                (stored_numbers(db, "accord_cohort"), self.cohorts.columns),
                (stored_numbers(db, "accord_member"), self.cohorts.members.columns),
            )
        )

    def fault(self) -> str | None:
        """What contradicts itself here."""
        cohorts, members = self.cohorts, self.cohorts.members
        tables = np.array([row[0] for row in self.tables], dtype=np.int64)
        if not np.isin(members.table, tables).all() or not np.isin(members.cohort, cohorts.id).all():
            return "levels are stored of a table or a cohort that does not exist"
        if (np.maximum(cohorts.spent, cohorts.level) > cohorts.allowed).any():
            return "somebody has spent more than they allow"
        return None


def stored_accounts(db: Session) -> Accounts:
    """As they are stored, with nothing in them that contradicts itself."""
    meta = {name: value for name, value in select(db, "accord_meta") if name in _META}
    tables = [TableRow(*row) for row in select(db, "accord_table", "ORDER BY id")]
    number, level, allowed, spent, people = numbers(db, "accord_cohort")
    members = Members(*numbers(db, "accord_member"))
    accounts = Accounts(meta, tables, Cohorts(number, level, allowed, spent, people, members))
    if fault := accounts.fault():
        raise db.damaged(fault)
    return accounts


def checked_accounts(db: Session) -> Accounts:
    """The accounts, which are what the newest entry left."""
    accounts, booked = stored_accounts(db), digests(newest_entry(db))
    if "accounts" in booked:
        sound = accounts.digest(str(booked.get("digest"))) == booked["accounts"]
    else:
        replayed = replay_of(each_entry(db), accounts.meta)
        sound = replayed is not None and accounts.equal(replayed)
    if not sound:
        raise db.damaged("the accounts are not what the entries left")
    return accounts


def confirm_stored(db: Session, accounts: Accounts) -> None:
    """Read again what was just written: an index that is damaged leads to the account of somebody else."""
    if not accounts.are_stored(db):
        raise db.damaged("the database does not hold what was just written to it")


def replay_of(entries: Iterable[Entry], meta: dict[str, str]) -> Accounts | None:
    """The accounts that follow from the entries, with `meta` as it is if there are none.

    None: entries contradict each other.
    """
    replay = Replay().run(entries, None)
    if replay.problems:
        return None
    registered = {"key": str(replay.meta[0]), "neighbors": str(replay.meta[1])} if replay.tables else {}
    tables = [TableRow(number, *row) for number, row in sorted(replay.tables.items())]
    return Accounts(meta | registered, tables, replay.cohorts)


def write_cohorts(db: Session, cohorts: Cohorts) -> None:
    """Store them in place of those that are stored."""
    for table, columns in (("accord_member", cohorts.members.columns), ("accord_cohort", cohorts.columns)):
        db.run(f"DELETE FROM {table}")
        db.insert(table, tuple(COLUMNS[table]), columns)


# ---- who is in which cohort ------------------------------------------------------------------------------


def people_digest(db: Session) -> str:
    """Of who is in which cohort, as the entries have it."""
    booked = digests(newest_entry(db))
    if "digest" not in booked:
        booked = digests(_first(db, "WHERE kind = 'register' ORDER BY seq DESC LIMIT 1"))
    return str(booked.get("digest", ""))


def everyone(db: Session, accounts: Accounts) -> tuple[IntArray, IntArray]:
    """Everyone's hash, ascending, and cohort."""
    blocks = [row[1:] for row in select(db, "accord_people", "ORDER BY chunk")]
    if digest_of(blocks) != (people_digest(db) or digest_of([])):
        raise db.damaged("who is in which cohort is not what was registered")
    joined = (b"".join(bytes(block[k]) for block in blocks) for k in (0, 1))
    hashes, of = (np.frombuffer(column, dtype="<i8").astype(np.int64) for column in joined)
    ids = accounts.cohorts.id
    place = np.searchsorted(ids, of)
    if (
        hashes.size != of.size
        or not np.array_equal(np.bincount(place, minlength=ids.size), accounts.cohorts.people)
        or (ids[place] != of).any()
        or (hashes[1:] <= hashes[:-1]).any()
    ):
        raise db.damaged("who is in which cohort is not what the accounts have")
    return hashes, of


def write_everyone(db: Session, hashes: IntArray, cohorts: IntArray) -> str:
    """Store everyone; the digest of it."""
    db.run("DELETE FROM accord_people")
    for chunk, block in enumerate(_blocks(hashes, cohorts)):
        db.run("INSERT INTO accord_people (chunk, hashes, cohorts) VALUES (?, ?, ?)", chunk, *block)
    return digest_of(_blocks(hashes, cohorts))


def _blocks(hashes: IntArray, cohorts: IntArray) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, hashes.size, CHUNK):
        piece = slice(start, start + CHUNK)
        yield hashes[piece].astype("<i8").tobytes(), cohorts[piece].astype("<i8").tobytes()


def digest_of(blocks: Iterable[tuple[Any, ...]]) -> str:
    """Of who is in which cohort, as it is stored."""
    text = hashlib.sha256()
    for block in blocks:
        for part in block:
            raw = bytes(part) if isinstance(part, (bytes, memoryview)) else repr(part).encode()
            text.update(f"{len(raw)}\n".encode())
            text.update(raw)
    return text.hexdigest()
