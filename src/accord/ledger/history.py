"""History: how everyone stands and what was done, for reading and for other programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

import accord
from accord.budget import level_text, to_float
from accord.errors import LedgerError
from accord.ledger.accounts import CohortsOfTable, TableRow, checked_accounts
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.cohorts import NONE
from accord.ledger.validation import each_entry

_REPEATED = ("accord", "table", "version", "queries", "booked")
"""What the history repeats of their entries."""


@dataclass(frozen=True)
class Account:
    """People of one level in one table, as they stand."""

    table: str
    tier: str | None
    level: float
    people: int
    spent: tuple[float, float]
    """The least and the most that anyone of them has spent."""
    left: tuple[float, float]


def accounts(books: Books) -> list[Account]:
    """Every level of every table: how many people, what they have spent and what they have left."""
    with books.reading() as db:
        stored = checked_accounts(db)
    return [
        account
        for row in sorted(stored.tables, key=lambda row: row.name)
        for account in _accounts_of(books, row, stored.cohorts_of(row.id))
    ]


def _accounts_of(books: Books, row: TableRow, cohorts: CohortsOfTable) -> list[Account]:
    """Those of one table, by level."""
    names: dict[str, list[str]] = {}
    for tier, level in _tiers(books, row.tiers).items():
        names.setdefault(level, []).append(tier)
    if not cohorts.chosen.size:
        return []
    first = np.flatnonzero(np.diff(cohorts.chosen, prepend=NONE))
    columns = (
        cohorts.chosen[first],
        np.add.reduceat(cohorts.people, first),
        np.minimum.reduceat(cohorts.spent, first),
        np.maximum.reduceat(cohorts.spent, first),
        np.minimum.reduceat(cohorts.remaining, first),
        np.maximum.reduceat(cohorts.remaining, first),
    )
    accounts = []
    for level, people, *amounts in zip(*(column.tolist() for column in columns), strict=True):
        least_spent, most_spent, least_left, most_left = map(to_float, amounts)
        tier = " / ".join(names.get(level_text(level), []))
        spent, remaining = (least_spent, most_spent), (least_left, most_left)
        accounts.append(Account(row.name, tier or None, to_float(level), people, spent, remaining))
    return accounts


def _tiers(books: Books, text: str) -> dict[str, str]:
    """The levels of a table's tiers, as text, by their names."""
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        pass  # not raised here: what is chained would quote what is stored
    fact = "names of tiers cannot be read"
    raise LedgerError(f"the ledger {books.label} is damaged: {fact}. Restore it from a backup.")


def entries(books: Books) -> list[Entry]:
    """The chain of everything that was done, oldest first."""
    with books.reading() as db:
        return list(each_entry(db))


def reservations(books: Books) -> list[dict[str, Any]]:
    """Every reservation with what came of it, oldest first.

    Of each: entry, time, table, charges, state and receipts.
    """
    reservations: dict[int, dict[str, Any]] = {}
    with books.reading() as db:
        for entry in each_entry(db):
            content = entry.outline
            if entry.kind == "reserve":
                reservations[entry.seq] = {
                    "entry": entry.seq,
                    "time": entry.time,
                    **{name: content.get(name) for name in _REPEATED},
                    "state": "no answer",
                    "receipts": [],
                }
            elif entry.kind in ("release", "failed"):
                number = content.get("reserve")
                if not isinstance(number, int) or number not in reservations:
                    raise LedgerError(
                        f"entry {entry.seq} of the ledger {books.label} is about a reservation that there is "
                        "not. Restore the ledger from a backup, "
                        "or run 'accord ledger verify' to see what is wrong."
                    )
                state = "released" if entry.kind == "release" else "failed"
                reservations[number] |= {"state": state, "receipts": content.get("receipts", [])}
    return list(reservations.values())


def export(books: Books) -> dict[str, Any]:
    """Everything but the people, as plain data that another program can check (docs/ledger.md says how)."""
    with books.reading() as db:
        entries, accounts = list(each_entry(db)), checked_accounts(db)
    cohorts = zip(*(column.tolist() for column in accounts.cohorts.columns), strict=True)
    return {
        "schema": 1,
        "accord": accord.__version__,
        "entries": [vars(entry) for entry in entries],
        "cohorts": [
            {
                "id": number,
                "level": level_text(level),
                "allowed": level_text(allowed),
                "spent": level_text(spent),
                "people": people,
            }
            for number, level, allowed, spent, people in cohorts
        ],
    }
