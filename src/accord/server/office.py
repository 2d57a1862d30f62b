"""Office: who may ask what, of which table, and what was asked. All rules of the service are here.

Everybody comes with a Token, whose role and grants say what they may do. What is forbidden and what is not
there look alike: `NotThereError`. What is asked is read in asking.py, planned in desks.py, and charged and
answered in carrying.py.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from accord import catalogs
from accord.budget import MICRO, level_text
from accord.errors import LedgerError, PlanError, QueryError, SourceError
from accord.ledger import Ledger, requests, tokens
from accord.ledger.heads import head
from accord.ledger.history import Account
from accord.ledger.person import Person
from accord.ledger.requests import QueueFullError, Request
from accord.ledger.signing import Signature
from accord.ledger.store import Held
from accord.ledger.tokens import ANALYST, OFFICER, OWNER, Token, Tokens
from accord.ledger.withdrawing import Withdrawal
from accord.planning import Plan, plan
from accord.release.deciding import signed
from accord.release.receipt import SCHEMA
from accord.server.asking import read_request
from accord.server.carrying import Carrier
from accord.server.desks import Desk
from accord.server.heads import Heads
from accord.server.refusals import FAILED, NOT_AGREED, NOT_READABLE, NotThereError
from accord.server.scans import Scans
from accord.spec import Spec
from accord.statistics import Query

if TYPE_CHECKING:
    from accord.statistics.select import Selected

__all__ = ["FAILED", "NOT_AGREED", "NOT_READABLE", "NotThereError", "Office"]
_LOG = logging.getLogger("accord")
MOST_PLANS = 4
"""So many plans of one token are made at once."""
_ENDED = {requests.CHARGED: requests.FAILED}
"""What is charged and not carried out any more has failed: noting it did not work."""


class Office:
    """Tables of one accord.toml with one ledger, and everybody who asks about them."""

    def __init__(self, path: str | Path) -> None:
        """
        Raises:
            SourceError, LedgerError: the description or its ledger cannot be used.
        """
        self.catalog = catalogs.catalog(path)
        self.settings = self.catalog.settings
        if self.catalog.ledger is None:
            raise SourceError(
                f"{self.catalog.label} names no ledger, and whoever asks a service is charged. "
                'Write ledger = "accord.db" at its top, and register the tables there.'
            )
        self.ledger = Ledger(self.catalog.ledger, create=False)
        self.tokens = Tokens(self.ledger.books)
        names = [name for name in self.catalog if self.catalog.ledger_of(name) == self.catalog.ledger]
        self.desks = {name: Desk(self.catalog, name, self.ledger) for name in names}
        """Tables with a ledger of their own are not asked about here."""
        self._lock = Lock()
        self._serving: Held | None = None
        self._plans_of: Counter[str] = Counter()
        self._carrier = Carrier(
            self.ledger, self.tokens, self.desks, self._refuse_not_agreed, self.settings.longest
        )
        file = self.settings.heads
        self._heads = (
            None
            if file is None
            else Heads(self.ledger.books, self.catalog.folder / file, self.settings.heads_every)
        )
        self.scans = Scans(self._carrier.carry_out, self._people)

    def serve_alone(self) -> None:
        """Keep other processes from serving the same ledger, as long as this one lives.

        Another would take what this one has charged and not yet answered for interrupted.

        Raises:
            LedgerError: another one does.
        """
        store = self.ledger.books.store
        self._serving = store.serving()
        if self._serving is None:
            raise LedgerError(
                f"another process serves the ledger {store.label}. One process serves all tables of a "
                "ledger: stop that one first."
            )

    def open(self) -> None:
        """Take up what an earlier process has left."""
        for request in requests.interrupted(self.ledger.books):
            self.scans.add(request)
        self.scans.start()
        if self._heads is not None:
            self._heads.start()

    def close(self) -> None:
        """Carry out nothing more."""
        self.scans.close()
        if self._heads is not None:
            self._heads.close()
        if self._serving is not None:
            self._serving.close()

    # ---- who -----------------------------------------------------------------------------------------------

    def signed_in(self, text: str) -> Token | None:
        """Whose token it is; None: nobody's, or it is not valid any more."""
        return self.tokens.of(text)

    @staticmethod
    def refuse_others(token: Token, *roles: str) -> None:
        """Refuse who has none of these roles."""
        if token.role not in roles:
            raise NotThereError

    def _desk(self, token: Token, name: str) -> Desk:
        is_granted = name in token.grants if token.role == ANALYST else True
        if not is_granted or name not in self.desks:
            raise NotThereError
        return self.desks[name]

    # ---- what everybody may know ---------------------------------------------------------------------------

    def tables(self, token: Token) -> list[dict[str, Any]]:
        """The tables that somebody may ask about, and what is declared of them."""
        names = token.grants if token.role == ANALYST else self.desks
        return [self.table(token, name) for name in names if name in self.desks]

    def table(self, token: Token, name: str) -> dict[str, Any]:
        """What is declared of a table."""
        document = self._desk(token, name).document()
        return document | ({} if token.role != ANALYST else {"quota": self._quota_document(token, name)})

    def spec(self, token: Token, name: str) -> dict[str, Any]:
        """The public levels of a table, and how many people have each."""
        return self._desk(token, name).spec()

    def remaining(self, token: Token, name: str) -> dict[str, Any]:
        """What everyone in a table has left: how many people have how much."""
        return self._desk(token, name).remaining()

    def plan(self, token: Token, name: str, values: Any) -> tuple[Plan, Selected | None]:
        """How a question would be answered, and how well."""
        desk = self._desk(token, name)
        with self._planning(token):
            return desk.plan(read_request(values, is_release=False))

    def suppose(
        self, token: Token, name: str, spec: Spec, queries: Sequence[Query], share: float
    ) -> list[Plan]:
        """Plans of questions like those about a table, from levels that somebody supposes."""
        self._desk(token, name)
        with self._planning(token):
            return [plan(spec, query, share=share) for query in queries]

    # ---- requests ------------------------------------------------------------------------------------------

    def submit(self, token: Token, name: str, values: Any, key: str) -> dict[str, Any]:
        """Take a request for a release; the same key again gives what has become of it."""
        self.refuse_others(token, ANALYST)
        desk = self._desk(token, name)
        asked = read_request(values, is_release=True)
        books, digest, share = self.ledger.books, asked.digest(name), whole(asked.share)
        if (earlier := requests.repeated(books, token.name, key, digest)) is not None:
            return self.request_document(earlier)
        self._refuse_not_agreed()
        signed(self.ledger, token.name, asked.values.get("purpose"))
        with self._planning(token):
            plan, _ = desk.plan(asked)  # refuses what cannot be answered, before it is queued
        asked.refuse_other(plan)
        needs_approval = share > self.settings.approve_above
        request = requests.new_request(token.name, key, digest, name, share, asked.text, needs_approval)
        with books.reading() as db:
            requests.refuse_above(db, request, token.grants[name].quota)
        taken = requests.submit(books, request, self.settings.queue_each, self.settings.queue)
        if taken.state == requests.QUEUED:
            self.scans.add(taken)
        _LOG.info("request %s of %r: %r, %s", taken.id, token.name, plan, taken.state)
        return self.request_document(taken)

    def request(self, token: Token, number: str) -> dict[str, Any]:
        """What has become of a request."""
        return self.request_document(self._own(token, number))

    def requests(self, token: Token, state: str | None = None) -> list[dict[str, Any]]:
        """The newest requests: an analyst's own, or everybody's."""
        actor = token.name if token.role == ANALYST else None
        stored = None if state == "running" else state
        listed = requests.listed(self.ledger.books, actor=actor, state=stored)
        documents = [self.request_document(each, with_answer=False) for each in listed]
        # a request that is answered and not yet handed out is not among those that are
        return [each for each in documents if state is None or each["state"] == state]

    def cancel(self, token: Token, number: str) -> dict[str, Any]:
        """Let nothing become of a request, unless it is charged already.

        Then it is carried out to its end: a scan that could be stopped would tell how far it was.
        """
        self.refuse_others(token, ANALYST)
        cancelled = requests.cancel(self.ledger.books, self._own(token, number))
        self.scans.note_change()
        return self.request_document(cancelled)

    def decide(self, token: Token, number: str, approved: bool, purpose: str) -> dict[str, Any]:
        """Approve a request that waits, or decline it."""
        self.refuse_others(token, OFFICER)
        request = self._own(token, number)
        if request.actor == token.name:
            raise QueryError("nobody decides about a request of their own. Another officer does.")
        decided = requests.decide(self.ledger.books, request, approved, Signature(token.name, purpose))
        if approved:
            self.scans.add(decided)
        self.scans.note_change()
        return self.request_document(decided)

    def request_document(self, request: Request, with_answer: bool = True) -> dict[str, Any]:
        """A request as plain data; what has become of it, once anybody may know."""
        is_running = request.id in self.scans.running
        if request.state == requests.CHARGED and not is_running:  # it ended while it was looked at, or badly
            request = requests.find(self.ledger.books, request.id) or request
            request = replace(request, state=_ENDED.get(request.state, request.state))
        state = "running" if is_running else request.state
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "id": request.id,
            "actor": request.actor,
            "table": request.table,
            "share": level_text(request.share),
            "purpose": request.asked.get("purpose"),
            "asked": request.asked,
            "time": request.time,
            "state": state,
            "before": self.scans.place(request.id),
        }
        if state == requests.FAILED:
            document["error"] = {"type": "Failed", "message": FAILED}
        elif state == requests.REFUSED:
            document["error"] = request.result["error"]
        elif state == requests.DONE and with_answer:
            document["answer"] = request.result
        return document

    # ---- who guards ----------------------------------------------------------------------------------------

    def person(self, token: Token, person: Any, purpose: str) -> Person:
        """Everything that the ledger knows about somebody."""
        self.refuse_others(token, OFFICER)
        found = self.ledger.person(person, actor=token.name, purpose=purpose)
        return replace(found, ledger=self.settings.title)  # not where it lies

    def withdraw(self, token: Token, people: Sequence[Any], purpose: str) -> Withdrawal:
        """Leave nothing to people, in any table."""
        self.refuse_others(token, OFFICER)
        return self.ledger.withdraw(*people, actor=token.name, purpose=purpose)

    def agree(self, token: Token, purpose: str) -> None:
        """Agree to the description of the tables as it is now."""
        self.refuse_others(token, OFFICER)
        tokens.agree(self.ledger.books, self.catalog.digest, Signature(token.name, purpose))

    def agree_first(self, signature: Signature) -> None:
        """Agree to the first description, which nobody has seen before."""
        if self.tokens.description is None:
            tokens.agree(self.ledger.books, self.catalog.digest, signature)

    @property
    def is_agreed(self) -> bool:
        """Whether the description of the tables is the one that was agreed to."""
        return self.tokens.description == self.catalog.digest

    def accounts(self, token: Token) -> list[Account]:
        """Every level of every table that somebody may ask about."""
        names = token.grants if token.role == ANALYST else self.desks
        return [account for account in self.ledger.accounts() if account.table in names]

    def history(self, token: Token, **choice: Any) -> list[dict[str, Any]]:
        """What was done: an analyst's own, or everything."""
        if token.role != ANALYST:
            return self.ledger.history(**choice)
        if choice.get("kind") not in (None, "release", "repeat"):
            raise NotThereError
        running = self.scans.running
        events = self.ledger.history(**{**choice, "actor": token.name})
        open_ones = [requests.find(self.ledger.books, each) for each in running | self.scans.running]
        entries = {each.entry for each in open_ones if each is not None}
        return [
            {**event, "state": "running", "receipts": []} if event["entry"] in entries else event
            for event in events
        ]

    def changes(self) -> int:
        """So often something has become of a request; whoever waits for one looks at it again then."""
        return self.scans.changes

    def head(self, token: Token) -> dict[str, Any]:
        """How many entries the ledger has, and the hash of the newest: to be kept elsewhere."""
        self.refuse_others(token, OWNER, OFFICER)
        now = head(self.ledger.books)
        return {"schema": SCHEMA, "entries": now.entries, "hash": now.hash}

    def all_tokens(self, token: Token) -> list[Token]:
        """Who may ask what."""
        self.refuse_others(token, OWNER, OFFICER)
        return list(self.tokens.by_id.values())

    def revoke(self, token: Token, number: str, purpose: str) -> Token:
        """Let nobody sign in with a token any more."""
        self.refuse_others(token, OWNER, OFFICER)
        return tokens.revoke(self.ledger.books, number, Signature(token.name, purpose))

    # ---- within --------------------------------------------------------------------------------------------

    @contextmanager
    def _planning(self, token: Token) -> Iterator[None]:
        """One of the plans that are made at once, of which everybody may have a few."""
        with self._lock:
            if self._plans_of[token.id] >= MOST_PLANS:
                raise QueueFullError(
                    f"{MOST_PLANS} of your plans are being made, which is as many as may be at once. Try "
                    "again soon."
                )
            self._plans_of[token.id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._plans_of[token.id] -= 1

    def _own(self, token: Token, number: str) -> Request:
        """A request of whoever asks; of anybody for who guards."""
        request = requests.find(self.ledger.books, number)
        if request is None or (token.role == ANALYST and request.actor != token.name):
            raise NotThereError
        return request

    def _refuse_not_agreed(self) -> None:
        if not self.is_agreed:
            raise PlanError(NOT_AGREED)

    def _people(self, name: str) -> int:
        return self.desks[name].people if name in self.desks else 0

    def _quota_document(self, token: Token, name: str) -> dict[str, Any]:
        quota = token.grants[name].quota
        with self.ledger.books.reading() as db:
            spent = requests.spent(db, token.name, name, quota.since)
        rest = max(0, quota.share - spent)
        return {
            "share": level_text(quota.share),
            "per": quota.period,
            "since": quota.since,
            "left": level_text(rest),
            "approve_above": level_text(self.settings.approve_above),
        }


def whole(share: float) -> int:
    """A share in millionths, rounded up: a quota is not passed by rounding."""
    return -int(-share * MICRO // 1)
