"""Requests: what others' programs ask a ledger for, each of which is charged at most once.

A request has a key that whoever asks has chosen, and a digest of what is asked. The same key with the same
digest is the same request, however often it is sent; with another digest it is refused. What becomes of it
is written in the transactions that also charge people and book the answer:

    waiting    for somebody's approval
    queued     not yet charged
    charged    people are charged, and their values may be read
    done       the answer is booked, and stored here with it
    failed     charged, and there is no answer
    refused    nothing was charged: `answer` says why
    cancelled  by whoever asked, or declined by whoever approves; nothing was charged

So a process that is killed at any moment leaves a request that is queued, and can be taken up again, or one
that is charged without an answer, which stays so: no second draw is made for one charge.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import accord
from accord.budget import level_text
from accord.errors import BudgetError, LedgerError
from accord.ledger.books import Books
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import digests, newest_entry, select

WAITING, QUEUED, CHARGED = "waiting", "queued", "charged"
DONE, FAILED, REFUSED, CANCELLED = "done", "failed", "refused", "cancelled"
OPEN = (WAITING, QUEUED, CHARGED)
"""In these states something may still become of a request."""


MOST_A_DAY = 1_000
"""So many requests one analyst may make on a day: each is kept."""
CONFLICT = "this key was used for another request. A key stands for one request: choose a new one."


class KeyConflictError(LedgerError):
    """A key was used before, for another request."""


class QueueFullError(BudgetError):
    """Too many requests wait."""


@dataclass(frozen=True)
class Request:
    """What somebody asks for, and what has become of it."""

    id: str
    actor: str
    key: str
    """Chosen by whoever asks, to ask for the same thing once only."""
    digest: str
    """Of what is asked."""
    table: str
    share: int
    """Of everyone's level, in millionths."""
    time: str
    state: str
    body: str
    """What is asked, as JSON text."""
    entry: int
    """The reservation, by its number in the chain; 0: nothing is charged."""
    charged: str
    """When people were charged; empty: they are not."""
    answer: str
    """The answer as JSON text; of what was refused, why; else empty."""

    @property
    def asked(self) -> dict[str, Any]:
        """What is asked, as plain data."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def result(self) -> dict[str, Any]:
        """The answer, or why it was refused, as plain data."""
        content: dict[str, Any] = json.loads(self.answer)
        return content


@dataclass(frozen=True)
class Quota:
    """How much of everyone's level one analyst may spend of a table in a period."""

    share: int
    """In millionths."""
    since: str
    """When the period began."""
    period: str
    """For people: a "month"."""


def new_request(
    actor: str, key: str, digest: str, table: str, share: int, body: str, needs_approval: bool
) -> Request:
    """A request that was not asked before."""
    time, state = datetime.now(UTC).isoformat(), WAITING if needs_approval else QUEUED
    return Request(secrets.token_hex(16), actor, key, digest, table, share, time, state, body, 0, "", "")


def submit(books: Books, request: Request, most: int, most_queued: int = 10_000) -> Request:
    """Take a request, or give the one that it repeats.

    Args:
        most: so many requests that are waiting or queued one analyst may have.
        most_queued: so many may be queued in all.

    Raises:
        KeyConflictError: the key was used for another one.
        QueueFullError: the analyst, or all of them, have too many requests that nothing has become of; or
            the analyst has made too many today.
    """
    with books.writing() as db:
        earlier = _chosen(db, "WHERE actor = ? AND key = ?", request.actor, request.key)
        if earlier:
            if earlier[0].digest != request.digest:
                raise KeyConflictError(CONFLICT)
            return earlier[0]
        pending = _count(db, "WHERE actor = ? AND state IN (?, ?)", request.actor, WAITING, QUEUED)
        if pending >= most:
            raise QueueFullError(
                f"{pending} of your requests are waiting, which is as many as may be. "
                "Wait for one, or cancel one."
            )
        if _count(db, "WHERE state = ?", QUEUED) >= most_queued:
            raise QueueFullError(
                f"{most_queued:,} requests are waiting, which is as many as may be. Try again soon."
            )
        today = request.time[:10]
        if _count(db, "WHERE actor = ? AND time >= ?", request.actor, today) >= MOST_A_DAY:
            raise QueueFullError(
                f"you have made {MOST_A_DAY:,} requests today (UTC), which is as many as may be. "
                "Ask again tomorrow."
            )
        places = ", ".join("?" * len(vars(request)))
        db.run(f"INSERT INTO accord_request ({_COLUMNS}) VALUES ({places})", *vars(request).values())
    return request


def charge(db: Session, request: Request, entry: int, quota: Quota | None) -> None:
    """Note that people are charged for a request, in the transaction that charges them.

    Raises:
        LedgerError: it is not queued any more.
        BudgetError: its analyst has spent their quota.
    """
    if quota is not None:
        refuse_above(db, request, quota)
    _move(db, request, QUEUED, CHARGED)
    now = datetime.now(UTC).isoformat()
    db.run("UPDATE accord_request SET entry = ?, charged = ? WHERE id = ?", entry, now, request.id)


def refuse_above(db: Session, request: Request, quota: Quota) -> None:
    """Refuse what its analyst's quota has no room for."""
    rest = max(0, quota.share - spent(db, request.actor, request.table, quota.since))
    if request.share > rest:
        raise BudgetError(
            f"this asks for a share of {level_text(request.share)}; of your {level_text(quota.share)} a "
            f"{quota.period} of this table, {level_text(rest)} is left. Ask for that, or wait for the next "
            f"{quota.period}. Nothing was spent."
        )


def spent(db: Session, actor: str, table: str, since: str) -> int:
    """What an analyst has spent of a table since a moment, as a share of everyone's level in millionths."""
    asked = "FROM accord_request WHERE actor = ? AND tab = ? AND charged >= ?"
    return int(db.rows(f"SELECT COALESCE(SUM(share), 0) {asked}", actor, table, since)[0][0])


def answered(db: Session, request: Request, document: dict[str, Any]) -> None:
    """Store the answer, in the transaction that books it."""
    _move(db, request, CHARGED, DONE, answer=_text(document))


def finish(books: Books, request: Request, state: str, document: dict[str, Any] | None = None) -> None:
    """Note what has become of a request that is queued, or that is charged and has no answer."""
    before = CHARGED if state == FAILED else QUEUED
    with books.writing() as db:
        _move(db, request, before, state, answer="" if document is None else _text(document))


def cancel(books: Books, request: Request) -> Request:
    """Let nothing become of a request, if it is not charged yet; as it is then."""
    with books.writing() as db:
        now = _chosen(db, "WHERE id = ?", request.id)[0]
        if now.state in (WAITING, QUEUED):
            _move(db, now, now.state, CANCELLED)
            now = replace(now, state=CANCELLED)
    return now


def decide(books: Books, request: Request, approved: bool, signature: Signature) -> Request:
    """Approve a request that waits for it, or decline it; that is an entry of the chain.

    Raises:
        LedgerError: it does not wait.
    """
    signature.refuse_incomplete("an approval")
    state = QUEUED if approved else CANCELLED
    with books.writing() as db:
        _move(db, request, WAITING, state)
        last = newest_entry(db)
        content = {
            "accord": accord.__version__,
            "request": request.id,
            "asked_by": request.actor,
            "table": request.table,
            "share": level_text(request.share),
            "approved": approved,
            **signature.booked,
            **digests(last),
        }
        books.append(db, "approval", content)
    return replace(request, state=state)


def interrupted(books: Books) -> list[Request]:
    """What a process left behind that is not there any more: the requests that can be taken up again.

    Those that were charged and have no answer have failed.
    """
    with books.writing() as db:
        for request in _chosen(db, "WHERE state = ?", CHARGED):
            _move(db, request, CHARGED, FAILED)
        return _chosen(db, "WHERE state = ? ORDER BY time, id", QUEUED)


def find(books: Books, number: str) -> Request | None:
    """A request by its id; None: there is none."""
    with books.reading() as db:
        chosen = _chosen(db, "WHERE id = ?", number)
    return chosen[0] if chosen else None


def repeated(books: Books, actor: str, key: str, digest: str) -> Request | None:
    """The request that a key stands for; None: it was not used.

    Raises:
        KeyConflictError: it was used for another one.
    """
    with books.reading() as db:
        earlier = _chosen(db, "WHERE actor = ? AND key = ?", actor, key)
    if earlier and earlier[0].digest != digest:
        raise KeyConflictError(CONFLICT)
    return earlier[0] if earlier else None


def listed(
    books: Books, *, actor: str | None = None, state: str | None = None, most: int = 100
) -> list[Request]:
    """The newest requests, newest first: of an analyst, or in a state."""
    limits = [(name, value) for name, value in (("actor", actor), ("state", state)) if value is not None]
    where = f"WHERE {' AND '.join(f'{name} = ?' for name, _ in limits)}" if limits else ""
    with books.reading() as db:
        return _chosen(db, f"{where} ORDER BY time DESC, id LIMIT {int(most)}", *(v for _, v in limits))


_COLUMNS = "id, actor, key, digest, tab, share, time, state, body, entry, charged, answer"


def _chosen(db: Session, rest: str, *values: Any) -> list[Request]:
    return [Request(*row) for row in select(db, "accord_request", rest, *values)]


def _count(db: Session, rest: str, *values: Any) -> int:
    return int(db.rows(f"SELECT COUNT(*) FROM accord_request {rest}", *values)[0][0])


def _move(db: Session, request: Request, before: str, after: str, answer: str = "") -> None:
    """Bring a request from a state to the next, unless it is in another."""
    moved = db.run(
        "UPDATE accord_request SET state = ?, answer = ? WHERE id = ? AND state = ?",
        after,
        answer,
        request.id,
        before,
    )
    if moved != 1:
        raise LedgerError("this request is in another state than it was. Look at it again.")


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False)
