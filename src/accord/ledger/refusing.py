"""Refusing: requests that were refused are counted, and booked so that they cannot flood the chain.

What is refused for a reason that matters (somebody has too little left, nobody says who asks, a level would
be raised, a policy would change) is counted by table, actor and reason, outside of the chain. The first
refusal an hour or more after the first that is counted books these counts as one entry, and begins anew. So
there is at most one entry an hour, however often somebody tries. Counts that are not booked yet are not
sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import accord
from accord.errors import AccordError, LedgerError
from accord.ledger.books import Books
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import digests, newest_entry, select

WINDOW = timedelta(hours=1)
MOST = 100
"""So many tables, actors and reasons are told apart; others are counted by reason alone."""
_ADD = (
    "INSERT INTO accord_refused (tab, actor, reason, first, last, times) VALUES (?, ?, ?, ?, ?, 1) "
    "ON CONFLICT (tab, actor, reason) DO UPDATE SET last = excluded.last, times = accord_refused.times + 1"
)


@contextmanager
def counting(books: Books, signature: Signature, name: Callable[[], str] = str) -> Iterator[None]:
    """Count what is refused in here, if it has a reason that is counted; it is raised all the same.

    `name`: of the table that it is about, which is looked up only then.
    """
    try:
        yield
    except AccordError as fault:
        if fault.counted_as:
            with suppress(LedgerError):  # it must not take the place of the refusal
                _count(books, name(), signature.actor or "", fault.counted_as)
        raise


def _count(books: Books, table: str, actor: str, reason: str) -> None:
    now = datetime.now(UTC)
    with books.writing() as db:
        counts = pending(db)
        if counts and min(count["first"] for count in counts) <= (now - WINDOW).isoformat():
            _book(books, db, counts)
            counts = []
        known = {(count["table"], count["actor"], count["reason"]) for count in counts}
        if (table, actor, reason) not in known and len(known) >= MOST:
            table = actor = ""
        db.run(_ADD, table, actor, reason, now.isoformat(), now.isoformat())


def pending(db: Session) -> list[dict[str, Any]]:
    """What was counted and is not booked yet."""
    rows = select(db, "accord_refused", "ORDER BY tab, actor, reason")
    return [
        dict(zip(("table", "actor", "reason", "first", "last", "times"), row, strict=True)) for row in rows
    ]


def _book(books: Books, db: Session, counts: list[dict[str, Any]]) -> None:
    last = newest_entry(db)
    if last is not None:
        books.append(db, "refused", {"accord": accord.__version__, "refused": counts, **digests(last)})
    db.run("DELETE FROM accord_refused")
