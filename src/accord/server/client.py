"""Client: tables that a service holds, asked from a program elsewhere.

    people = accord.connect("https://statistics.clinic.example", token)["people"]
    people.release(accord.mean("stay"), share=0.05).value

Plans are made here, from what is public, by the same code as the service's. A release is sent with a key of
its own: where a connection breaks it is sent again under the same key, so that it is charged once. What comes
back are the exact fractions that the mechanism released, from which the same Release is made as there; that
it is of the same plan is checked by its fingerprint.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

from accord.errors import (
    ApprovalError,
    ChargedError,
    PlanError,
    QueryError,
    ServiceError,
    SourceError,
    did_you_mean,
)
from accord.people.elsewhere import TableElsewhere
from accord.planning import Plan
from accord.release import Release
from accord.release.selected import Answers
from accord.server.calling import Caller, refusal
from accord.server.receiving import entry, known, levels_of, part_released, rest
from accord.server.refusals import StalePlanError
from accord.server.sending import request_document, sendable
from accord.spec import Spec
from accord.statistics import Query, Workload
from accord.statistics.declared import Undescribed

_PLANS = 256
"""So many plans are known again when they are released."""
_PAUSE = 1.0
"""Seconds between two looks at a request."""
_PENDING = ("queued", "running", "charged")


def connect(url: str, token: str, *, allow_http: bool = False, patience: float = 600.0) -> Connection:
    """Sign in to a service of `accord serve`, whose tables are then asked like one's own.

    Args:
        url: where it is reached: "https://statistics.clinic.example".
        token: a text of `accord token add`.
        allow_http: send the token without TLS to another machine than this one.
        patience: how many seconds to wait for an answer, while the service is busy or cannot be reached.

    Raises:
        ServiceError: there is no service, or the token is not valid.
    """
    return Connection(Caller(url, token, allow_http, patience))


class Connection:
    """The tables of a service by their names. Made by `accord.connect`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._me: dict[str, Any] = caller.get("/api/me")
        listed = caller.get("/api/tables")["tables"]
        self._tables: dict[str, dict[str, Any]] = {table["name"]: table for table in listed}

    @property
    def name(self) -> str:
        """Under which everything is booked that is asked here."""
        return str(self._me["name"])

    def __getitem__(self, name: str) -> ServedTable:
        """A table.

        Raises:
            SourceError: there is none of this name, or not for this token.
        """
        if name not in self._tables:
            raise SourceError(
                f"the service has no table {name!r} for you: {did_you_mean(name, self._tables)}"
            )
        return ServedTable(self._caller, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def history(self, **choice: str) -> list[dict[str, Any]]:
        """What was asked by this name: `Ledger.history`."""
        query = "&".join(f"{quote(name)}={quote(str(value))}" for name, value in choice.items())
        history: list[dict[str, Any]] = self._caller.get(f"/api/history?{query}")["history"]
        return history

    def __repr__(self) -> str:
        return (
            f"<Connection of {self.name!r} to {self._caller.label}: {', '.join(self._tables) or 'no tables'}>"
        )


@dataclass(frozen=True)
class _Left:
    """What everyone has left, in the place of a ledger."""

    spec: Spec
    renewal = None

    def remaining(self, table: object) -> Spec:
        return self.spec


@dataclass(frozen=True)
class _Asked:
    """What is asked: as a question, to plan it, and as the document that is sent."""

    query: Any
    document: dict[str, Any]


class ServedTable(TableElsewhere):
    """A table that a service holds. Plans and releases are those of any table."""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller, self.name, self._path = caller, name, f"/api/tables/{quote(name, safe='')}"
        document, spec = caller.get(self._path), caller.get(f"{self._path}/spec")
        tiers = {tier: float(level) for tier, level in spec["tiers"].items()} or None
        super().__init__(known(document), tiers)
        self._keep(spec)
        self._requests: OrderedDict[tuple[str | None, int], _Asked] = OrderedDict()

    def _keep(self, document: dict[str, Any]) -> None:
        self.keep_levels({0: document["opted_out"], **levels_of(document["levels"])})

    # ---- planning ------------------------------------------------------------------------------------------

    def plan(
        self,
        query: Any,
        mechanism: str = "auto",
        share: float = 1.0,
        *,
        t: float | str | None = None,
        report_missing: float | None = None,
        remaining: Any = False,
    ) -> Plan[Any]:
        """Compare every mechanism for a query or a workload. Nothing is sent.

        `remaining`: whether the share is of what everyone has left there, instead of their level.
        """
        left: Any = _Left(self.remaining()) if remaining else None
        plan = super().plan(query, mechanism, share, t=t, report_missing=report_missing, remaining=left)
        if isinstance(query, Query | Workload | Undescribed):
            asked = _Asked(query, _asked(query, mechanism, share, t, report_missing, bool(remaining)))
            self._requests[plan.fingerprint, plan.share] = asked
            while len(self._requests) > _PLANS:
                self._requests.popitem(last=False)
        return plan

    def remaining(self) -> Spec:
        """What everyone has left: how many people have how much."""
        document = self._caller.get(f"{self._path}/remaining")
        return rest(document["levels"], document["opted_out"])

    # ---- releasing -----------------------------------------------------------------------------------------

    def release(
        self,
        query: Any,
        mechanism: str = "auto",
        share: float | None = None,
        *,
        t: float | str | None = None,
        report_missing: float | None = None,
        remaining: bool = False,
        fresh: bool = False,
        purpose: str | None = None,
        key: str | None = None,
        ledger: Any = None,
        actor: str | None = None,
    ) -> Release[Any]:
        """Have a query or a workload answered, or a plan of `plan` carried out.

        Args:
            query, mechanism, share, t, report_missing, fresh, purpose: as of `Table.release`.
            remaining: whether the share is of what everyone has left.
            key: of your choice: the same key is the same request, which is charged once, however often it is
                sent. Left out: a new one.
            ledger, actor: are the service's to say.

        Raises:
            BudgetError: somebody, or your quota, has less left than it would cost. Nothing is spent.
            ApprovalError: it waits for the officer. Ask again with the same key.
            ChargedError: people were charged, and there is no answer.
        """
        self._refuse_theirs(ledger, actor)
        if isinstance(query, Plan):
            if (mechanism, share, t, report_missing) != ("auto", None, None, None):
                raise PlanError(
                    "a plan has its mechanism and share already. Release it as it is, or give the query "
                    "instead."
                )
            planned = self._requests.get((query.fingerprint, query.share))
            if planned is None:
                raise PlanError(
                    "this plan was not made by plan() of this table. Make it there, or give the query "
                    "instead."
                )
            return self._released(query, self._answer(query, planned, fresh, purpose, key))
        _refuse_no_share(share)
        asked = _Asked(query, _asked(query, mechanism, share, t, report_missing, remaining))
        return self._planned_and_released(asked, fresh, purpose, key)

    def sql(
        self,
        text: str,
        bounds: Mapping[str, Any] | None = None,
        keys: Mapping[str, Any] | None = None,
        *,
        gap: Mapping[str, float] | None = None,
        max_rows: int | None = None,
        membership: str = "private",
        at_most: int | None = None,
        one_row_each: bool = False,
        suppress: bool | None = None,
        weights: Mapping[str, float] | None = None,
        mechanism: str = "auto",
        share: float | None = None,
        ledger: Any = None,
        fresh: bool = False,
        actor: str | None = None,
        purpose: str | None = None,
        key: str | None = None,
    ) -> Answers:
        """Have a SELECT of aggregates answered: `Table.sql`. Needs accord[sql]; `key` as of `release`."""
        self._refuse_theirs(ledger, actor)
        if membership != "private":
            raise QueryError(
                "who is in which group is private where a service holds the table. Leave membership= out."
            )
        _refuse_no_share(share)
        said = {
            "bounds": bounds,
            "keys": keys,
            "gap": gap,
            "max_rows": max_rows,
            "at_most": at_most,
            "one_row_each": one_row_each or None,
            "suppress": suppress,
            "weights": weights,
        }
        given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        selected = self.select(text, **given)
        document = {"sql": {"text": text, **sendable(given)}, **_said(mechanism, share, None, None, False)}
        asked = _Asked(selected.asked, document)
        return Answers(text, selected, self._planned_and_released(asked, fresh, purpose, key))

    # ---- within --------------------------------------------------------------------------------------------

    def _refuse_theirs(self, ledger: Any, actor: str | None) -> None:
        if ledger is not None or actor is not None:
            raise QueryError(
                "the service books in its own ledger, under the name of your token. Leave ledger= and "
                "actor= out."
            )

    def _planned_and_released(
        self, asked: _Asked, fresh: bool, purpose: str | None, key: str | None
    ) -> Release[Any]:
        """Planned here first: what is refused here is not charged there."""
        plan = self._plan_of(asked)
        try:
            answer = self._answer(plan, asked, fresh, purpose, key)
        except StalePlanError:  # of the levels that it had when it was opened, maybe
            self._keep(self._caller.get(f"{self._path}/spec"))
            plan = self._plan_of(asked)
            answer = self._answer(plan, asked, fresh, purpose, key)
        return self._released(plan, answer)

    def _plan_of(self, asked: _Asked) -> Plan[Any]:
        said = asked.document
        left: Any = _Left(self.remaining()) if said.get("remaining") else None
        return super().plan(
            asked.query,
            said.get("mechanism", "auto"),
            said["share"],
            t=said.get("t"),
            report_missing=said.get("report_missing"),
            remaining=left,
        )

    def _answer(
        self, plan: Plan[Any], asked: _Asked, fresh: bool, purpose: str | None, key: str | None
    ) -> dict[str, Any]:
        """The answer, once there is one; whatever else has become of the request is raised."""
        key = secrets.token_hex(16) if key is None else key
        expected = [part.fingerprint for part in plan.parts]
        said = {"fresh": fresh or None, "purpose": purpose, "expected": expected}
        body = asked.document | {name: value for name, value in said.items() if value is not None}
        document = self._caller.post(f"{self._path}/release", body, {"Idempotency-Key": key})
        path = f"/api/requests/{quote(document['id'], safe='')}"
        with self._caller.waiting() as is_over:
            while document["state"] in _PENDING:
                if is_over():
                    raise ServiceError(
                        f"nothing has become of the request yet. Ask again later with key={key!r}: it is "
                        "the same request, and charged once."
                    )
                started = monotonic()
                document = self._caller.get(f"{path}?wait=25")
                if document["state"] in _PENDING:  # a service that is busy does not wait for as long
                    sleep(max(0.0, _PAUSE - (monotonic() - started)))
        match document["state"]:
            case "done":
                answer: dict[str, Any] = document["answer"]
                return answer
            case "waiting":
                raise ApprovalError(
                    "this waits for the officer, because of how much it asks for. Nothing is charged. Ask "
                    f"again with key={key!r} to see what has become of it."
                )
            case "failed":
                raise ChargedError(f"charged, no answer: {document['error']['message']}")
            case "refused":
                error = document["error"]
                raise refusal(error["type"], error["message"])
        raise ServiceError("this request was cancelled, or declined by the officer. Nothing was charged.")

    def _released(self, plan: Plan[Any], answer: dict[str, Any]) -> Release[Any]:
        """The release of an answer to this plan."""
        receipt = answer["receipt"]
        booked, again = (entry(receipt, name) for name in ("ledger", "repeated"))
        each = zip(plan.parts, answer["released"], strict=True)
        parts = [part_released(of_part, released, again) for of_part, released in each]
        if plan.choice is not None:
            return replace(parts[0], booked=booked)
        return Release(plan, booked=booked, repeated=again, by_part=dict(zip(plan.plans, parts, strict=True)))

    def __repr__(self) -> str:
        return f"<ServedTable {self.name!r} at {self._caller.label}>"


def _asked(
    query: Any,
    mechanism: str,
    share: float | None,
    t: float | str | None,
    report_missing: float | None,
    remaining: bool,
) -> dict[str, Any]:
    if not isinstance(query, Query | Workload | Undescribed):
        raise QueryError(
            f"a release answers a query or a plan, not {type(query).__name__}. "
            "Make one with accord.mean or its siblings; several together are accord.workload([…])."
        )
    return request_document(query) | _said(mechanism, share, t, report_missing, remaining)


def _said(
    mechanism: str, share: float | None, t: float | str | None, report_missing: float | None, remaining: bool
) -> dict[str, Any]:
    said = {
        "mechanism": None if mechanism == "auto" else mechanism,
        "share": share,
        "t": t,
        "report_missing": report_missing,
        "remaining": remaining or None,
    }
    return sendable({name: value for name, value in said.items() if value is not None})


def _refuse_no_share(share: float | None) -> None:
    if share is None:
        raise PlanError(
            "a service charges everyone: say how much of everyone's level this may spend. share=0.1 is a "
            "tenth."
        )
