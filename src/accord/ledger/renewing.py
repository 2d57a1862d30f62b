"""Renewing: budgets that come back, if whoever keeps the ledger says so (renewal.py has what that means).

A renewal that is due counts for whoever looks, and is booked by whoever next changes anything: an entry of
its own, so that the accounts follow from the chain.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import accord
from accord.budget import to_micro
from accord.errors import LedgerError, did_you_mean
from accord.ledger.accounts import (
    Accounts,
    checked_accounts,
    confirm_stored,
    people_digest,
    write_cohorts,
)
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.renewal import PERIODS, RENEWAL, Renewal
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import newest_renewal

NEVER = "never"
"""Budgets are for life."""


def renew(books: Books, every: str, amount: float | None, signature: Signature) -> Entry:
    """Let budgets be renewed from the next period on, or not any more: see `Ledger.renew`."""
    if every not in (*PERIODS, NEVER):
        raise LedgerError(
            f"budgets cannot be renewed every {every!r}: {did_you_mean(every, [*PERIODS, NEVER])}"
        )
    if (amount is None) != (every == NEVER):
        raise LedgerError(
            "say which part of everyone's level comes back: amount=0.5 is half of it, 1 all of it (on the "
            "command line --amount)."
            if amount is None
            else f"if budgets are never renewed, nothing comes back. Leave amount={amount!r} out."
        )
    part = 0 if amount is None else _part_of(amount)
    signature.refuse_incomplete("how budgets are renewed")
    with books.writing() as db:
        before = up_to_date(books, db)
        now = datetime.now(UTC)
        agreed = None if every == NEVER else Renewal(every, part, 0)
        if agreed is not None:
            last = newest_renewal(db)
            renewed = None if last is None else Renewal.read(str(last.outline.get(RENEWAL)))
            agreed = replace(agreed, period=agreed.period_of(now)).not_before(renewed)
        return _book(books, db, before, agreed, "renewal", signature)


def _part_of(amount: float) -> int:
    """The part of a level that comes back, in millionths."""
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    part = int(to_micro(amount)) if is_number and 0 < amount <= 1 else 0
    if not part:
        raise LedgerError(
            f"amount={amount!r} is the part of everyone's level that comes back: above 0, and at most 1."
        )
    return part


def renewal_of(books: Books) -> Renewal | None:
    """How budgets are renewed; None: not at all."""
    with books.reading() as db:
        return agreed_renewal(seen_now(checked_accounts(db)))


def seen_now(accounts: Accounts) -> Accounts:
    """The accounts as they stand, with renewals that are due and not yet booked."""
    agreed = agreed_renewal(accounts)
    due = None if agreed is None else agreed.due(datetime.now(UTC))
    return accounts if agreed is None or due is None else _renewed(accounts, agreed, due)


def up_to_date(books: Books, db: Session) -> Accounts:
    """The checked accounts, in a transaction that changes them: renewals that are due are booked first."""
    accounts = checked_accounts(db)
    agreed = agreed_renewal(accounts)
    due = None if agreed is None else agreed.due(datetime.now(UTC))
    if agreed is None or due is None:
        return accounts
    after = _renewed(accounts, agreed, due)
    write_cohorts(db, after.cohorts)
    _book(books, db, after, due, "renew", None)
    return after


def agreed_renewal(accounts: Accounts) -> Renewal | None:
    """How budgets are renewed, as the accounts have it; None: not at all."""
    text = accounts.meta.get(RENEWAL)
    return None if text is None else Renewal.read(text)


def _renewed(accounts: Accounts, agreed: Renewal, due: Renewal) -> Accounts:
    cohorts = agreed.renewed(accounts.cohorts, due.period - agreed.period)
    return replace(accounts, meta=accounts.meta | {RENEWAL: due.text}, cohorts=cohorts)


def _book(
    books: Books,
    db: Session,
    accounts: Accounts,
    agreed: Renewal | None,
    kind: str,
    signature: Signature | None,
) -> Entry:
    """Store how budgets are renewed, and book what was done."""
    text = "" if agreed is None else agreed.text
    db.run("DELETE FROM accord_meta WHERE name = ?", RENEWAL)
    meta = {name: value for name, value in accounts.meta.items() if name != RENEWAL}
    if text:
        meta[RENEWAL] = text
        db.run("INSERT INTO accord_meta (name, value) VALUES (?, ?)", RENEWAL, text)
    after = replace(accounts, meta=meta)
    confirm_stored(db, after)
    digest = people_digest(db)
    content = {
        "accord": accord.__version__,
        RENEWAL: text,
        **({} if signature is None else signature.booked),
        "digest": digest,
        "accounts": after.digest(digest),
    }
    return books.append(db, kind, content)
