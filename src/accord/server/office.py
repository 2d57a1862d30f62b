"""Office: the tables, who may ask what of them, and what was asked. All rules of the service are here.

Everybody comes with a Token, whose role and grants say what they may do. What is forbidden and what is not
there look alike: `NotThereError`. What is asked is read in asking.py, planned from public things, and charged
and answered by `accord.release`, whose transactions also move the request (ledger/requests.py).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from accord import catalogs
from accord.budget import MICRO, level_text
from accord.errors import AccordError, PlanError, QueryError, SourceError
from accord.ledger import Ledger, requests, tokens
from accord.ledger.charging import Reservation
from accord.ledger.history import Account
from accord.ledger.person import Person
from accord.ledger.requests import Quota, Request
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.tokens import ANALYST, OFFICER, OWNER, Token, Tokens
from accord.ledger.withdrawing import Withdrawal
from accord.people.table import Table
from accord.planning import Plan
from accord.release import Release
from accord.release.receipt import SCHEMA, plain_data, remaining_document
from accord.release.release import release
from accord.release.repeated import released_data
from accord.release.selected import Answers
from accord.server.asking import Asked, public_text, read_request
from accord.server.scans import LANES, Scans

if TYPE_CHECKING:
    from accord.statistics.select import Selected

_LOG = logging.getLogger("accord")
NOT_READABLE = "the table cannot be read as it is described. Its owner finds the reason in the service's log."
FAILED = "people were charged, and there is no answer. Ask anew if you need one; that is charged again."
NOT_AGREED = (
    "the description of the tables has changed, and the officer has not agreed to it. Nothing is released "
    "until then."
)
_PLANS = 256
"""So many plans are kept."""


class NotThereError(AccordError):
    """What is asked for is not there, or not for whoever asks."""

    def __init__(self) -> None:
        super().__init__("there is no such thing here, or it is not for you.")


class Desk:
    """A table that is asked about: opened once for plans, and once for each lane."""

    def __init__(self, catalog: catalogs.Catalog, name: str) -> None:
        self._catalog, self._name = catalog, name
        self._lock = Lock()
        self._opened: dict[int, Table] = {}
        self.people = 0
        """How many there were when it was last opened, which decides how long its slots are."""

    def table(self, place: int = LANES) -> Table:
        """The table as a lane has it; without one, for plans.

        Raises:
            SourceError: it cannot be read as it is described.
        """
        with self._lock:
            if place not in self._opened:
                opened = self._catalog[self._name]
                self.people = opened.spec().total  # levels are read here, so that nobody waits for them
                self._opened[place] = opened
            return self._opened[place]

    def forget(self) -> None:
        """Open the table anew when it is next needed: it may have changed."""
        with self._lock:
            self._opened.clear()


class _Booking:
    """What the ledger is told of a request while people are charged and the answer is booked."""

    def __init__(self, request: Request, quota: Quota, selected: Selected | None) -> None:
        self._request, self._quota, self._selected = request, quota, selected

    def charged(self, db: Session, reservations: Sequence[Reservation]) -> None:
        requests.charge(db, self._request, reservations[0].entry, self._quota)

    def answered(self, db: Session, release: Release) -> None:
        requests.answered(db, self._request, answer_document(release, self._request, self._selected))


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
        self.desks = {name: Desk(self.catalog, name) for name in names}
        """Tables with a ledger of their own are not asked about here."""
        self.scans = Scans(self._carry_out, self._people, self.settings.queue)
        self._plans: OrderedDict[tuple[str, str], Plan] = OrderedDict()
        self._plans_lock = Lock()

    def open(self) -> None:
        """Take up what an earlier process has left."""
        for request in requests.interrupted(self.ledger.books):
            self.scans.add(request)
        self.scans.start()

    def close(self) -> None:
        """Carry out nothing more."""
        self.scans.close()

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
        table = self._opened(self._desk(token, name))
        declared = {} if table.description is None else table.description.columns
        return {
            "name": name,
            "about": self.catalog.about(name),
            "neighbors": table.neighbors,
            "several_rows": table.user is not None,
            "columns": [
                {
                    "name": column,
                    "kind": kind,
                    **({} if column not in declared else _declared_document(declared[column])),
                }
                for column, kind in table.columns.items()
                if column not in (table.user, table.level_column)
            ],
            **({} if token.role != ANALYST else {"quota": self._quota_document(token, name)}),
        }

    def spec(self, token: Token, name: str) -> dict[str, Any]:
        """The public levels of a table, and how many people have each."""
        spec = self._opened(self._desk(token, name)).spec()
        return {
            "schema": SCHEMA,
            "table": name,
            "fingerprint": spec.fingerprint,
            "people": None if spec.is_expected else spec.total,
            "opted_out": None if spec.is_expected else spec.opted_out,
            "levels": [
                {"level": level_text(level), "tier": spec.tier(level), "people": count}
                for level, count in zip(spec.micro.tolist(), spec.counts, strict=True)
            ],
            "tiers": {tier: level_text(micro) for tier, micro in (spec.tiers or {}).items()},
        }

    def remaining(self, token: Token, name: str) -> dict[str, Any]:
        """What everyone in a table has left: how many people have how much."""
        desk = self._desk(token, name)
        with _readable(desk):
            remaining = self.ledger.remaining(desk.table())
        return {"schema": SCHEMA, "table": name, **remaining_document(remaining, None)}

    def plan(self, token: Token, name: str, values: Any) -> tuple[Plan, Selected | None]:
        """How a question would be answered, and how well."""
        asked = read_request(values, is_release=False)
        return self._planned(self._desk(token, name), name, asked)

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
        plan, _ = self._planned(desk, name, asked)  # refuses what cannot be answered, before it is queued
        needs_approval = share > self.settings.approve_above
        request = requests.new_request(token.name, key, digest, name, share, asked.text, needs_approval)
        with books.reading() as db:
            requests.refuse_above(db, request, token.grants[name].quota)
        self.scans.refuse_full()
        taken = requests.submit(books, request, self.settings.queue_each)
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
        listed = requests.listed(self.ledger.books, actor=actor, state=state)
        return [self.request_document(each, with_answer=False) for each in listed]

    def cancel(self, token: Token, number: str) -> dict[str, Any]:
        """Let nothing become of a request, unless it is charged already."""
        self.refuse_others(token, ANALYST)
        return self.request_document(requests.cancel(self.ledger.books, self._own(token, number)))

    def decide(self, token: Token, number: str, approved: bool, purpose: str) -> dict[str, Any]:
        """Approve a request that waits, or decline it."""
        self.refuse_others(token, OFFICER)
        request = self._own(token, number)
        decided = requests.decide(self.ledger.books, request, approved, Signature(token.name, purpose))
        if approved:
            self.scans.add(decided)
        return self.request_document(decided)

    def request_document(self, request: Request, with_answer: bool = True) -> dict[str, Any]:
        """A request as plain data; what has become of it, once anybody may know."""
        state = "running" if self.scans.is_running(request.id) else request.state
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "id": request.id,
            "actor": request.actor,
            "table": request.table,
            "share": level_text(request.share),
            "purpose": request.asked.get("purpose"),
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
        return self.ledger.person(person, actor=token.name, purpose=purpose)

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
        return self.ledger.history(**{**choice, "actor": token.name})

    def all_tokens(self, token: Token) -> list[Token]:
        """Who may ask what."""
        self.refuse_others(token, OWNER, OFFICER)
        return list(self.tokens.by_id.values())

    def revoke(self, token: Token, number: str, purpose: str) -> Token:
        """Let nobody sign in with a token any more."""
        self.refuse_others(token, OWNER, OFFICER)
        return tokens.revoke(self.ledger.books, number, Signature(token.name, purpose))

    # ---- carrying out --------------------------------------------------------------------------------------

    def _carry_out(self, request: Request, lane: int) -> None:
        """Charge people for a request, read, and book the answer; or note why not."""
        try:
            self._release(request, lane)
        except AccordError as fault:
            message = public_text(fault) or NOT_READABLE
            _LOG.warning("request %s: %s: %s", request.id, type(fault).__name__, fault)
            self._note(request, type(fault).__name__ if public_text(fault) else "SourceError", message)
            if not isinstance(fault, QueryError | PlanError):
                self.desks[request.table].forget()
        except Exception as fault:
            _LOG.error("request %s: %s", request.id, type(fault).__name__)
            self._note(request, "SourceError", NOT_READABLE)
            self.desks[request.table].forget()

    def _release(self, request: Request, lane: int) -> None:
        now = requests.find(self.ledger.books, request.id)
        if now is None or now.state != requests.QUEUED:
            return
        self._refuse_not_agreed()
        grants = [
            token.grants[request.table]
            for token in self.tokens.by_id.values()
            if token.name == request.actor and token.is_valid and request.table in token.grants
        ]
        if not grants:
            raise QueryError("whoever asked this may not ask about the table any more.")
        quota = max((grant.quota for grant in grants), key=lambda quota: quota.share)
        asked = read_request(request.asked, is_release=True)
        table = self.desks[request.table].table(lane)
        plan, selected = self._plan_of(table, asked)
        done = release(
            table,
            plan,
            ledger=self.ledger,
            fresh=asked.values.get("fresh", False),
            actor=request.actor,
            purpose=asked.values.get("purpose"),
            request=_Booking(request, quota, selected),
        )
        if done.repeated is not None:
            document = answer_document(done, request, selected)
            requests.finish(self.ledger.books, request, requests.DONE, document)

    def _note(self, request: Request, kind: str, message: str) -> None:
        """Note that there is no answer: once people are charged, in the same words for every reason."""
        now = requests.find(self.ledger.books, request.id)
        if now is not None and now.state == requests.CHARGED:
            requests.finish(self.ledger.books, request, requests.FAILED)
        elif now is not None and now.state == requests.QUEUED:
            error = {"error": {"type": kind, "message": message}}
            requests.finish(self.ledger.books, request, requests.REFUSED, error)

    # ---- within --------------------------------------------------------------------------------------------

    def _opened(self, desk: Desk) -> Table:
        with _readable(desk):
            return desk.table()

    def _planned(self, desk: Desk, name: str, asked: Asked) -> tuple[Plan, Selected | None]:
        """A plan, which is made once for the same question and the same people."""
        with _readable(desk):
            table = desk.table()
            if asked.values.get("remaining"):
                return self._plan_of(table, asked)
            key = (table.spec().fingerprint, asked.digest(name))
            with self._plans_lock:
                plan = self._plans.get(key)
            if plan is not None:
                return plan, asked.of(table)[1] if "sql" in asked.values else None
            plan, selected = self._plan_of(table, asked)
        with self._plans_lock:
            self._plans[key] = plan
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return plan, selected

    def _plan_of(self, table: Table, asked: Asked) -> tuple[Plan, Selected | None]:
        query, selected = asked.of(table)
        said = asked.values
        plan = table.plan(
            query,
            said.get("mechanism", "auto"),
            asked.share,
            t=said.get("t"),
            report_missing=said.get("report_missing"),
            remaining=self.ledger if said.get("remaining") else None,
        )
        return plan, selected

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
        return self.desks[name].people

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


@contextmanager
def _readable(desk: Desk) -> Iterator[None]:
    """What goes wrong in here with a table is told in one sentence, and the table is opened anew."""
    try:
        yield
    except AccordError as fault:
        if public_text(fault) is not None:
            raise
        _LOG.warning("%s: %s", type(fault).__name__, fault)
    else:
        return
    desk.forget()
    raise SourceError(NOT_READABLE)


def whole(share: float) -> int:
    """A share in millionths, rounded up: a quota is not passed by rounding."""
    return -int(-share * MICRO // 1)


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
        {"time": None if part.time is None else part.time.isoformat(), "groups": groups}
        for part, groups in zip(release.parts, released_data(release), strict=True)
    ]


def _declared_document(declared: Any) -> dict[str, Any]:
    """What is declared of a column."""
    said = {name: getattr(declared, name) for name in vars(declared) if name not in ("kind", "keys")}
    document = {name: plain_data(value) for name, value in said.items() if value not in (None, "")}
    if declared.keys is not None:
        document["keys"] = plain_data(list(declared.keys))
    return document
