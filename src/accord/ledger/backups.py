"""Backups: go on from an older copy of a ledger, knowing that spendings are forgotten."""

from __future__ import annotations

import accord
from accord.errors import LedgerError
from accord.ledger.accounts import people_digest, stored_accounts
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.head import ILLEGIBLE, head_of
from accord.ledger.verifying import examine


def accept_backup(books: Books, why: str) -> Entry:
    """Accept that entries are missing, and book it with the reason: see `Ledger.accept_backup`."""
    if not isinstance(why, str) or not why.strip() or not why.isprintable():
        raise LedgerError("say why entries are missing, in a line of text: it is booked.")
    if books.head is None:
        raise LedgerError(
            f"the ledger {books.label} is kept by a server, and nothing beside it says how many entries "
            "it has: there is nothing to accept."
        )
    key, noted = books.required_key(), books.head.read()
    with books.store.write() as db:
        books.refuse_changed_key(db)
        if books.missing_entries(db, noted, key) is None:
            raise LedgerError(f"nothing is missing in the ledger {books.label}: there is nothing to accept.")
        if problems := examine(db, books.matching_key, lambda _: None).problems:
            fact = f"the ledger {books.label} is damaged, and not only older: {problems[0]}"
            raise LedgerError(f"{fact}. Restore another copy of it.")
        digest = people_digest(db)
        content = {
            "accord": accord.__version__,
            "why": why,
            "had": None if noted is None or noted == ILLEGIBLE else noted.entries,
            "digest": digest,
            "accounts": stored_accounts(db).digest(digest),
        }
        entry = books.append(db, "restored", content)
        newest = head_of(db, key.seal)
    books.head.write(newest)
    return entry
