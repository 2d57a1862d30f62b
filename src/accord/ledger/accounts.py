"""Accounts: what everyone has spent, and who is in which cohort, as they are stored.

Every entry holds a digest of the accounts that it left, and another of who is in which cohort. What is read
must have the digest in the newest entry. Where that has none (it was written by an older version), the
accounts must follow from all entries. Checking them takes time by cohort, not by person; who is in which
cohort is checked when it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord.budget import IntArray
from accord.ledger.chain import REQUIRED, Entry, Replay
from accord.ledger.cohorts import LEFT, WITHDRAWN, Cohorts, Members, remaining_of, saturating_add
from accord.ledger.key import FORMER
from accord.ledger.renewal import RENEWAL, WRITTEN
from accord.ledger.store import Session
from accord.ledger.validation import (
    COLUMNS,
    checked_numbers,
    digests,
    each_entry,
    newest_entry,
    newest_registration,
    select,
    select_sql,
    stored_numbers,
)
from accord.numerals import written

CHUNK = 2**20
"""So many people are stored in a row."""
_META = ("key", FORMER, "neighbors", "head", REQUIRED, RENEWAL)
"""What `accord_meta` holds that the accounts depend on."""


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
    renewed: IntArray
    """What of `spent` counts no more."""
    withdrew: NDArray[np.bool_]
    """Whether they have withdrawn from the ledger."""

    @property
    def remaining(self) -> IntArray:
        """What everyone of them has left."""
        return remaining_of(self.level, self.allowed, self.spent)

    @property
    def is_menu(self) -> bool:
        """Whether levels are private: then these are accounts of levels, and of nobody."""
        return not self.people.any()

    def only(self, chosen: NDArray[np.bool_]) -> CohortsOfTable:
        """Some of them."""
        return CohortsOfTable(*(column[chosen] for column in vars(self).values()))


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

        It is of [meta, tables, cohorts, members, people] as JSON; cohorts without what was renewed, as long
        as nothing was.
        """
        meta = json.dumps(self.meta, sort_keys=True)
        digest = hashlib.sha256(f"[{meta}, {json.dumps(self.tables)}".encode())
        cohorts = self.cohorts.columns if self.cohorts.renewed.any() else self.cohorts.columns[:-1]
        for columns in (cohorts, self.cohorts.members.columns):
            digest.update(b", [")
            for piece in written(f"[{', '.join('#' * len(columns))}]", ", ", columns):
                digest.update(piece)
            digest.update(b"]")
        digest.update(f", {json.dumps(people)}]".encode())
        return digest.hexdigest()

    def cohorts_of(self, table: int) -> CohortsOfTable:
        """The cohorts of a table."""
        members = self.cohorts.members
        rows = members.rows_of(table)
        cohort, chosen = members.cohort[rows], members.level[rows]
        order = np.argsort(chosen, kind="stable")
        at = self.cohorts.positions(cohort[order])
        number, *columns = self.cohorts.columns
        level, allowed, spent, people, renewed = (column[at] for column in columns)
        withdrew = np.isin(number[at], members.cohort[members.rows_of(WITHDRAWN)])
        return CohortsOfTable(number[at], chosen[order], level, allowed, spent, people, renewed, withdrew)

    def charged(self, numbers: IntArray, charges: IntArray) -> Accounts:
        """After cohorts were charged."""
        spent, at = self.cohorts.spent.copy(), self.cohorts.positions(numbers)
        spent[at] = saturating_add(spent[at], charges)
        return replace(self, cohorts=replace(self.cohorts, spent=spent))

    def equal(self, other: Accounts) -> bool:
        """Whether they are the same in everything."""
        return (self.meta, self.tables) == (other.meta, other.tables) and self.cohorts.equal(other.cohorts)

    def are_stored(self, db: Session) -> bool:
        """Whether the database holds just these."""
        if db.rows(select_sql("accord_table", "ORDER BY id")) != self.tables:
            return False
        return all(are_stored(db, table, columns) for table, columns in self.cohorts.by_table.items())

    def fault(self) -> str | None:
        """What contradicts itself here."""
        cohorts, members = self.cohorts, self.cohorts.members
        tables = np.array([row[0] for row in self.tables], dtype=np.int64)
        places = np.concatenate((tables, LEFT + tables, [WITHDRAWN]))
        if not np.isin(members.table, places).all() or not np.isin(members.cohort, cohorts.id).all():
            return "levels are stored of a table or a cohort that does not exist"
        if (np.maximum(cohorts.spent, cohorts.level) > cohorts.allowed).any():
            return "somebody has spent more than they allow"
        if (cohorts.renewed > cohorts.spent).any():
            return "more was renewed than was spent"
        if RENEWAL in self.meta and not WRITTEN.fullmatch(self.meta[RENEWAL]):
            return "how budgets are renewed cannot be read"
        return None


def are_stored(db: Session, table: str, columns: tuple[IntArray, ...]) -> bool:
    """Whether a table of whole numbers holds just these columns."""
    stored = stored_numbers(db, table)
    return stored is not None and all(map(np.array_equal, stored, columns))


def stored_accounts(db: Session) -> Accounts:
    """As they are stored, with nothing in them that contradicts itself."""
    meta = {name: value for name, value in select(db, "accord_meta") if name in _META}
    tables = [TableRow(*row) for row in select(db, "accord_table", "ORDER BY id")]
    number, level, allowed, spent, people, renewed = checked_numbers(db, "accord_cohort")
    members = Members(*checked_numbers(db, "accord_member"))
    accounts = Accounts(meta, tables, Cohorts(number, level, allowed, spent, people, renewed, members))
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
    policy = {name: value for name, value in replay.policy.items() if value}
    others = {name: value for name, value in meta.items() if name not in replay.policy}
    return Accounts(others | registered | policy, tables, replay.cohorts)


def write_cohorts(db: Session, cohorts: Cohorts) -> None:
    """Store them in place of those that are stored."""
    for table, columns in cohorts.by_table.items():
        db.run(f"DELETE FROM {table}")
        db.insert(table, tuple(COLUMNS[table]), columns)


# ---- who is in which cohort ------------------------------------------------------------------------------


def people_digest(db: Session) -> str:
    """Of who is in which cohort, as the entries have it."""
    booked = digests(newest_entry(db))
    if "digest" not in booked:
        booked = digests(newest_registration(db))
    return str(booked.get("digest", ""))


def read_everyone(db: Session, accounts: Accounts) -> tuple[IntArray, IntArray]:
    """Everyone's hash, ascending, and cohort."""
    blocks = [row[1:] for row in select(db, "accord_people", "ORDER BY chunk")]
    if blocks_digest(blocks) != (people_digest(db) or blocks_digest([])):
        raise db.damaged("who is in which cohort is not what was registered")
    joined = (b"".join(bytes(block[k]) for block in blocks) for k in (0, 1))
    hashes, cohort_of = (np.frombuffer(column, dtype="<i8").astype(np.int64) for column in joined)
    ids = accounts.cohorts.id
    place = np.searchsorted(ids, cohort_of)
    if (
        hashes.size != cohort_of.size
        or not np.array_equal(np.bincount(place, minlength=ids.size), accounts.cohorts.people)
        or (ids[place] != cohort_of).any()
        or (hashes[1:] <= hashes[:-1]).any()
    ):
        raise db.damaged("who is in which cohort is not what the accounts have")
    return hashes, cohort_of


def write_everyone(db: Session, hashes: IntArray, cohort_of: IntArray) -> str:
    """Store everyone; the digest of it."""
    db.run("DELETE FROM accord_people")
    for chunk, block in enumerate(_blocks(hashes, cohort_of)):
        db.run("INSERT INTO accord_people (chunk, hashes, cohorts) VALUES (?, ?, ?)", chunk, *block)
    return blocks_digest(_blocks(hashes, cohort_of))


def _blocks(hashes: IntArray, cohort_of: IntArray) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, hashes.size, CHUNK):
        rows = slice(start, start + CHUNK)
        yield hashes[rows].astype("<i8").tobytes(), cohort_of[rows].astype("<i8").tobytes()


def blocks_digest(blocks: Iterable[tuple[Any, ...]]) -> str:
    """Of who is in which cohort, as it is stored."""
    digest = hashlib.sha256()
    for block in blocks:
        for column in block:
            raw = bytes(column) if isinstance(column, (bytes, memoryview)) else repr(column).encode()
            digest.update(f"{len(raw)}\n".encode())
            digest.update(raw)
    return digest.hexdigest()
