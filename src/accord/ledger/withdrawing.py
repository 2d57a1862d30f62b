"""Withdrawing: a person has nothing left in any table, at once, whatever their tables say, until readmitted.

Whoever has withdrawn is in a table of the ledger's own with level 0, which no file can change. So the rule
that the lowest level of all tables counts does the rest, and the accounts follow from the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import accord
from accord.budget import IntArray, distinct
from accord.errors import LedgerError
from accord.ledger.accounts import (
    Accounts,
    confirm_stored,
    read_everyone,
    write_cohorts,
    write_everyone,
)
from accord.ledger.books import Books
from accord.ledger.chain import list_text
from accord.ledger.cohorts import LEFT, WITHDRAWN, Cohorts, assign, union
from accord.ledger.menus import refuse_people
from accord.ledger.renewing import up_to_date
from accord.ledger.requiring import refuse_unsigned
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import entries_since, whole_numbers
from accord.people.identity import person_hash

_TAKE_OUT = "Take the rows of whoever withdraws out of the tables, or give them level 0 there."


@dataclass(frozen=True)
class Withdrawal:
    """What a withdrawal, or a readmission, changed."""

    kind: str
    """"withdraw" or "readmit"."""
    people: int
    """How many had not withdrawn yet, or are readmitted."""
    entry: int | None
    """Where it is booked; None: nothing was changed."""

    def __str__(self) -> str:
        who = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        if self.entry is None:
            return "they had withdrawn already: nothing is changed"
        if self.kind == "withdraw":
            return f"{who} withdrew, as entry {self.entry:,}: nothing is left to them in any table"
        return (
            f"{who} readmitted, as entry {self.entry:,}: they have their tables' level, less what they spent"
        )


def withdraw(books: Books, ids: Sequence[Any], signature: Signature) -> Withdrawal:
    """Leave nothing to people, anywhere: see `Ledger.withdraw`."""
    asked = _hashes(books, ids)
    with books.writing() as db:
        before = up_to_date(books, db)
        refuse_people(before.meta, books.label, _TAKE_OUT)
        refuse_unsigned(before.meta, signature)
        hashes, cohort_of = _known(books, db, before, asked)
        withdrawn = hashes[_have_withdrawn(before.cohorts, cohort_of)]
        new = np.setdiff1d(asked, withdrawn)
        if not new.size:
            return Withdrawal("withdraw", 0, None)
        entry = _pin(
            books, db, before, (hashes, cohort_of), union(withdrawn, new), new, signature, "withdraw"
        )
    return Withdrawal("withdraw", new.size, entry)


def readmit(books: Books, ids: Sequence[Any], signature: Signature) -> Withdrawal:
    """Take withdrawals back: see `Ledger.readmit`."""
    signature.refuse_incomplete("a readmission")
    asked = _hashes(books, ids)
    with books.writing() as db:
        before = up_to_date(books, db)
        refuse_people(before.meta, books.label, _TAKE_OUT)
        hashes, cohort_of = _known(books, db, before, asked)
        withdrawn = hashes[_have_withdrawn(before.cohorts, cohort_of)]
        others = int(np.setdiff1d(asked, withdrawn).size)
        if others:
            raise LedgerError(
                f"{others:,} of {asked.size:,} ids are not of people who have withdrawn, so that there is "
                "nothing to take back. Name those who have. Nothing was booked."
            )
        rest = np.setdiff1d(withdrawn, asked)
        entry = _pin(books, db, before, (hashes, cohort_of), rest, asked, signature, "readmit")
    return Withdrawal("readmit", asked.size, entry)


def withdrew_since(db: Session, entry: int, table: int) -> bool:
    """Whether anybody has withdrawn since an entry was booked who is in a table, or has left it meanwhile."""
    for later in entries_since(db, "withdraw", entry):
        content = later.outline
        if table in (*whole_numbers(content.get("tables")), *whole_numbers(content.get("left"))):
            return True
    return False


def _hashes(books: Books, ids: Sequence[Any]) -> IntArray:
    if not ids:
        raise LedgerError("say who: give at least one id, as it stands in the tables' column of people.")
    return distinct(np.array([person_hash(books.secret, one) for one in ids], dtype=np.int64))


def _known(books: Books, db: Session, accounts: Accounts, asked: IntArray) -> tuple[IntArray, IntArray]:
    """Everyone, if those who are asked about are among them."""
    hashes, cohort_of = read_everyone(db, accounts)
    unknown = int(np.setdiff1d(asked, hashes).size)
    if unknown:
        raise LedgerError(
            f"{unknown:,} of {asked.size:,} ids are known to no table of the ledger "
            f"{books.label}. Check how ids are written in the tables' column of people (7, 7.0 and ' 7' are "
            "the same, 007 is another). Nothing was booked."
        )
    return hashes, cohort_of


def _have_withdrawn(cohorts: Cohorts, cohort_of: IntArray) -> Any:
    members = cohorts.members
    return np.isin(cohort_of, members.cohort[members.rows_of(WITHDRAWN)])


def _pin(
    books: Books,
    db: Session,
    before: Accounts,
    everyone: tuple[IntArray, IntArray],
    withdrawn: IntArray,
    changed: IntArray,
    signature: Signature,
    kind: str,
) -> int:
    """Let exactly these people have withdrawn; book it."""
    zero = np.zeros(withdrawn.size, dtype=np.int64)
    assignment = assign(*everyone, before.cohorts, WITHDRAWN, withdrawn, zero)
    digest = write_everyone(db, assignment.hashes, assignment.cohort_of)
    write_cohorts(db, assignment.cohorts)
    after = replace(before, cohorts=assignment.cohorts)
    confirm_stored(db, after)
    sources = everyone[1][np.isin(everyone[0], changed)]
    entry = books.append(
        db,
        kind,
        {
            "accord": accord.__version__,
            "people": int(changed.size),
            **signature.booked,
            "tables": _tables_of(before, sources),
            "left": _tables_of(before, sources, left=True),
            "digest": digest,
            "moves": list_text("moves", assignment.moves.columns),
            "accounts": after.digest(digest),
        },
    )
    return entry.seq


def _tables_of(accounts: Accounts, cohorts: IntArray, left: bool = False) -> list[int]:
    """The numbers of the tables in which any of these cohorts is (`left`: was)."""
    members = accounts.cohorts.members
    tables = set(members.table[np.isin(members.cohort, cohorts)].tolist())
    return [row.id for row in accounts.tables if row.id + (LEFT if left else 0) in tables]
