"""For the officer: requests that wait, what is known of a person, withdrawals, and the description."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from accord.errors import AccordError, QueryError
from accord.ledger import requests
from accord.ledger.tokens import OFFICER
from accord.report.people import person_view
from accord.server.asking import public_text
from accord.server.pages import markup
from accord.server.pages.asking import shown_plan
from accord.server.pages.site import Site, Visit, go
from accord.server.refusals import NotThereError, spoken

_MOST_PEOPLE = 1_000
_EMPTY: dict[str, Any] = {
    "person": None,
    "wrong": "",
    "withdrawn": "",
    "id": "",
    "purpose": "",
    "ids": "",
    "why": "",
    "numbers": "",
}


def add_to(site: Site) -> None:
    """The pages of this file."""
    office = site.office

    def said(fault: AccordError) -> str:
        return public_text(fault) or spoken(fault, office.ledger.label)

    # ---- requests that wait --------------------------------------------------------------------------------

    @site.get("/approvals")
    def approvals(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER)
        waiting = office.requests(visit.token, requests.WAITING)[::-1]
        return site.show(
            visit,
            "approvals.html",
            waiting=[each | {"plan": _plan(site, visit, each)} for each in waiting],
            done=visit.field("done"),
        )

    @site.post("/approvals")
    def decide(visit: Visit) -> Response:
        approved = visit.field("decision") == "approve"
        office.decide(visit.token, visit.field("request"), approved, visit.field("purpose"))
        return go("/approvals", done="approved" if approved else "declined")

    # ---- persons -------------------------------------------------------------------------------------------

    @site.get("/person")
    def person_page(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER)
        return site.show(visit, "person.html", **_EMPTY)

    @site.post("/person")
    def person(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER)
        shown = _EMPTY | {name: visit.field(name) for name in ("id", "purpose", "numbers")}
        try:
            found = office.person(visit.token, _id(visit), _purpose(visit))
        except NotThereError:
            raise
        except AccordError as fault:
            return site.show(visit, "person.html", 409, **shown | {"wrong": said(fault)})
        return site.show(visit, "person.html", **shown | {"person": markup.of_view(person_view(found))})

    @site.post("/withdraw")
    def withdraw(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER)
        try:
            if visit.field("sure") != "yes":
                raise QueryError("tick that you are sure: only a readmission undoes it. Nothing was changed.")
            done = office.withdraw(visit.token, _ids(visit), _purpose(visit))
        except NotThereError:
            raise
        except AccordError as fault:
            shown = _EMPTY | {"wrong": said(fault), "ids": visit.field("id"), "why": visit.field("purpose")}
            return site.show(visit, "person.html", 409, **shown)
        return site.show(visit, "person.html", **_EMPTY | {"withdrawn": str(done)})

    # ---- the description -----------------------------------------------------------------------------------

    @site.get("/description")
    def description(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER)
        tables = site.tables(visit)
        return site.show(visit, "description.html", is_agreed=office.is_agreed, tables=tables, wrong="")

    @site.post("/description")
    def agree(visit: Visit) -> Response:
        office.agree(visit.token, _purpose(visit))
        return go("/description")


def _purpose(visit: Visit) -> str:
    """Why: it is booked."""
    if purpose := visit.field("purpose"):
        return purpose
    raise QueryError("say why: it is booked with your name. Nothing was done.")


def _id(visit: Visit) -> str | int:
    ids = _ids(visit)
    if len(ids) != 1:
        raise QueryError("give the id of one person. Nothing was looked up.")
    return ids[0]


def _ids(visit: Visit) -> list[str | int]:
    """The ids that were written, one on a line; as numbers where the box is ticked."""
    lines = [line.strip() for line in visit.field("id").splitlines() if line.strip()]
    if not 0 < len(lines) <= _MOST_PEOPLE:
        raise QueryError(f"give 1 to {_MOST_PEOPLE:,} ids, one on a line. Nothing was done.")
    if visit.field("numbers") != "yes":
        return list(lines)
    wrong = sum(not line.removeprefix("-").isdecimal() for line in lines)
    if wrong:
        raise QueryError(f"{wrong} of these ids are no whole numbers. Untick the box. Nothing was done.")
    return [int(line) for line in lines]


def _plan(site: Site, visit: Visit, request: dict[str, Any]) -> dict[str, Any] | None:
    """The plan of a request that waits; None: it could not be answered any more."""
    try:
        return shown_plan(site.office.plan(visit.token, request["table"], request["asked"])[0])
    except AccordError:
        return None  # the page says so beside the request; approving it would be refused in the same words
