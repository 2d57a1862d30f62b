"""Carrying out: people are charged for a request, values are read, and the answer is booked; or why not.

The transactions of the ledger that charge people and book the answer also move the request
(ledger/requests.py). Once people are charged, everything that goes wrong ends in the same words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accord.errors import AccordError, PlanError, QueryError
from accord.ledger import Ledger, requests
from accord.ledger.charging import Reservation
from accord.ledger.requests import Quota, Request
from accord.ledger.store import Session
from accord.ledger.tokens import Tokens
from accord.people.limits import limited
from accord.release import Release
from accord.release.receipt import plain_data
from accord.release.release import release
from accord.release.repeated import released_data
from accord.release.selected import Answers
from accord.server.asking import public_text, read_request
from accord.server.desks import Desk
from accord.server.refusals import NOT_READABLE

if TYPE_CHECKING:
    from accord.statistics.select import Selected

_LOG = logging.getLogger("accord")


class _Booking:
    """What the ledger is told of a request while people are charged and the answer is booked."""

    def __init__(
        self, request: Request, quota: Quota, selected: Selected | None, end_slot: Callable[[], None]
    ) -> None:
        self._request, self._quota, self._selected = request, quota, selected
        self._end_slot = end_slot

    def charged(self, db: Session, reservations: Sequence[Reservation]) -> None:
        requests.charge(db, self._request, reservations[0].entry, self._quota)

    def read(self) -> None:
        self._end_slot()

    def answered(self, db: Session, release: Release) -> None:
        requests.answered(db, self._request, answer_document(release, self._request, self._selected))


class Carrier:
    """Carries out requests, each in a lane of its own."""

    def __init__(
        self,
        ledger: Ledger,
        tokens: Tokens,
        desks: Mapping[str, Desk],
        refuse_not_agreed: Callable[[], None],
        longest: float,
    ) -> None:
        """`longest`: seconds that one scan may take."""
        self._longest = longest
        self._ledger, self._tokens, self._desks = ledger, tokens, desks
        self._refuse_not_agreed = refuse_not_agreed

    def carry_out(self, request: Request, lane: int, end_slot: Callable[[], None]) -> None:
        """Charge people for a request, read, and book the answer; or note why not.

        `end_slot`: waits for the end of its slot. Nothing that depends on values is booked before.
        """
        try:
            with limited(self._longest):
                self._release(request, lane, end_slot)
        except AccordError as fault:
            message = public_text(fault) or NOT_READABLE
            _LOG.warning("request %s: %s: %s", request.id, type(fault).__name__, fault)
            self._note(request, type(fault).__name__ if public_text(fault) else "SourceError", message)
            if not isinstance(fault, QueryError | PlanError) and request.table in self._desks:
                self._desks[request.table].forget()
        except BaseException as fault:  # also what an engine raises when it is stopped, or a library panics
            _LOG.error("request %s: %s", request.id, type(fault).__name__)
            self._note(request, "SourceError", NOT_READABLE)
            if request.table in self._desks:
                self._desks[request.table].forget()

    def _release(self, request: Request, lane: int, end_slot: Callable[[], None]) -> None:
        now = requests.find(self._ledger.books, request.id)
        if now is None or now.state != requests.QUEUED:
            return
        self._refuse_not_agreed()
        grants = [
            token.grants[request.table]
            for token in self._tokens.by_id.values()
            if token.name == request.actor and token.is_valid and request.table in token.grants
        ]
        if not grants or request.table not in self._desks:
            raise QueryError("whoever asked this may not ask about the table any more.")
        quota = max((grant.quota for grant in grants), key=lambda quota: quota.share)
        asked = read_request(request.asked, is_release=True)
        desk = self._desks[request.table]
        table = desk.table(lane)
        plan, selected = desk.plan_of(table, asked)
        asked.refuse_other(plan)
        done = release(
            table,
            plan,
            ledger=self._ledger,
            fresh=asked.values.get("fresh", False),
            actor=request.actor,
            purpose=asked.values.get("purpose"),
            request=_Booking(request, quota, selected, end_slot),
        )
        if done.repeated is not None:
            document = answer_document(done, request, selected)
            requests.finish(self._ledger.books, request, requests.DONE, document)

    def _note(self, request: Request, kind: str, message: str) -> None:
        """Note that there is no answer: once people are charged, in the same words for every reason."""
        now = requests.find(self._ledger.books, request.id)
        if now is not None and now.state == requests.CHARGED:
            requests.finish(self._ledger.books, request, requests.FAILED)
        elif now is not None and now.state == requests.QUEUED:
            error = {"error": {"type": kind, "message": message}}
            requests.finish(self._ledger.books, request, requests.REFUSED, error)


def answer_document(release: Release, request: Request, selected: Selected | None) -> dict[str, Any]:
    """The answer to a request: its receipt, and what was released, from which it can be made again."""
    document: dict[str, Any] = {"receipt": release.receipt(), "released": _released(release)}
    if selected is not None:
        answers = Answers(request.asked["sql"]["text"], selected, release)
        document["receipt"] = answers.receipt()
        document["rows"] = plain_data(answers.rows)
    return document


def _released(release: Release) -> list[dict[str, Any]]:
    """Of each question: when, and the exact fractions that its mechanism released."""
    return [
        {
            "time": None if part.time is None else part.time.isoformat(),
            "groups": groups,
        }
        for part, groups in zip(release.parts, released_data(release), strict=True)
    ]
