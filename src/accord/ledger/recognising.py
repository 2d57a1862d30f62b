"""Recognising: which registered table a table is, by who is in it with which level.

Where levels are private, by how it is described (people/identity.py), which everyone may know.
"""

from __future__ import annotations

import numpy as np

from accord.errors import LedgerError, did_you_mean
from accord.ledger.accounts import Accounts, CohortsOfTable, TableRow, checked_accounts, read_everyone
from accord.ledger.books import Books
from accord.ledger.cohorts import Changes, assign, changes
from accord.ledger.menus import are_private
from accord.ledger.renewing import seen_now
from accord.ledger.store import Session
from accord.people.identity import Registrable


def recognised(books: Books, table: Registrable) -> tuple[TableRow, CohortsOfTable]:
    """A registered table, and the cohorts that are in it.

    Raises:
        LedgerError: it is not registered, or has changed since.
    """
    fingerprint = table.identity.fingerprint(books.secret)
    with books.reading() as db:
        accounts = checked_accounts(db)
        registered = registered_table(books, db, accounts, table, fingerprint)
    return registered, seen_now(accounts).cohorts_of(registered.id)


def registered_table(
    books: Books, db: Session, accounts: Accounts, table: Registrable, fingerprint: str
) -> TableRow:
    """The registered table with exactly these people and levels."""
    for row in accounts.tables:
        if row.fingerprint == fingerprint:
            return row
    raise LedgerError(_unregistered_text(books, db, accounts, table))


def _unregistered_text(books: Books, db: Session, accounts: Accounts, table: Registrable) -> str:
    """Why a table is not recognised: it was never registered, or what has changed since.

    Membership and levels are public.
    """
    names = sorted(row.name for row in accounts.tables)
    never = (
        f"this table is not registered in the ledger {books.label}. "
        "Do ledger.register(table, 'name') first, or 'accord ledger register'."
    )
    if not names:
        return never
    if are_private(table.neighbors) or are_private(accounts.meta.get("neighbors")):
        return f"{never} {did_you_mean('', names)}"
    hashes, levels = table.identity.people(books.secret)
    order = np.argsort(hashes)
    everyone = read_everyone(db, accounts)
    nearest: tuple[int, str, Changes] | None = None
    for row in accounts.tables:
        moves = assign(*everyone, accounts.cohorts, row.id, hashes[order], levels[order]).moves
        changed = changes(accounts.cohorts, moves, row.id)
        same = hashes.size - changed.joined
        if same * 2 > hashes.size and (nearest is None or same > nearest[0]):
            nearest = (same, row.name, changed)
    if nearest is None:
        return f"{never} {did_you_mean('', names)}"
    _, name, changed = nearest
    return (
        f"this table is not as it was registered as {name!r}: {changed.joined:,} people joined, "
        f"{changed.left:,} left, {changed.lowered:,} lowered their level, {changed.raised:,} raised it. "
        f"Register the new version with ledger.register(table, {name!r}), or 'accord ledger register'; "
        "what everyone has spent is kept."
    )
