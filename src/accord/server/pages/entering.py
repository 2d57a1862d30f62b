"""Signing in and out, and the first page."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from accord.ledger import requests
from accord.ledger.tokens import ANALYST, OFFICER
from accord.server.access import COOKIE, LIFETIME, is_secure, local_path
from accord.server.api import sign_in as token_of
from accord.server.pages.site import Site, Visit, go
from accord.server.refusals import SignInError

_WRONG = "There is no valid token with this text. Look whether all of it was copied, or ask for a new one."
_NEWEST = 5


def add_to(site: Site) -> None:
    """The pages of this file."""

    @site.get("/sign-in")
    def sign_in_page(visit: Visit) -> Response:
        then = local_path(visit.field("next", "/"))
        return site.show(visit, "sign_in.html", then=then, wrong="")

    @site.post("/sign-in")
    def sign_in(visit: Visit) -> Response:
        then = local_path(visit.field("next", "/"))
        try:
            token = token_of(site.office, site.throttle, visit.address, visit.field("token"))
        except SignInError:
            return site.show(visit, "sign_in.html", 401, then=then, wrong=_WRONG)
        if (earlier := visit.request.cookies.get(COOKIE)) is not None:
            site.sessions.end(earlier)
        done = go(then)
        done.set_cookie(
            COOKIE,
            site.sessions.begin(token),
            max_age=round(LIFETIME),
            secure=is_secure(visit.request.headers.get("host", ""), site.is_encrypted),
            httponly=True,
            samesite="strict",
        )
        return done

    @site.post("/sign-out")
    def sign_out(visit: Visit) -> Response:
        site.sessions.end(visit.request.cookies.get(COOKIE, ""))
        done = go("/sign-in")
        done.delete_cookie(
            COOKIE,
            secure=is_secure(visit.request.headers.get("host", ""), site.is_encrypted),
            httponly=True,
            samesite="strict",
        )
        return done

    @site.get("/")
    def first_page(visit: Visit) -> Response:
        if visit.signed_in is None:
            return go("/sign-in")
        office, token, tables = site.office, visit.token, site.tables(visit)
        listed = office.requests(token)
        waiting = [each for each in listed if each["state"] == requests.WAITING]
        values: dict[str, Any] = {
            "tables": tables,
            "closed": [name for name in site.names(visit) if name not in {table["name"] for table in tables}],
            "newest": listed[:_NEWEST],
            "waiting": waiting if token.role == OFFICER else [],
            "is_agreed": office.is_agreed,
            "may_ask": token.role == ANALYST,
            "may_agree": token.role == OFFICER,
        }
        return site.show(visit, "home.html", **values)
