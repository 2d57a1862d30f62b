"""The routes for programs: JSON in and out, signed in by "Authorization: Bearer TOKEN".

Documents are those of `--json`. What is refused is {"schema": 1, "error": {"type", "message"}}, with a
status that says of what kind it is. GET /openapi.json describes all of it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

import accord
from accord.budget import level_text
from accord.errors import QueryError
from accord.ledger import requests
from accord.ledger.tokens import Token
from accord.release.receipt import SCHEMA, accounts_document
from accord.server.asking import ASKED, Written
from accord.server.guard import Throttle
from accord.server.office import Office
from accord.server.refusals import SignInError, ThrottledError
from accord.toml_files import TEXT, TRUTH, Field, Form, Section, json_schema

LONGEST_WAIT = 30.0
"""Seconds for which a request may be waited for."""
MOST_WAITS = 20
"""So many requests of one token are waited for at once; more are answered as they are."""
_POLL = 0.05
_ID = Form(
    "a text or a whole number",
    lambda x: isinstance(x, str | int) and not isinstance(x, bool),
    {"type": ["string", "integer"]},
)
_PURPOSE = Field("purpose", TEXT, "Why, for the books", is_required=True)
DECISION = (Field("approved", TRUTH, "Whether it may be carried out", is_required=True), _PURPOSE)
PERSON = (Field("id", _ID, "As it stands in the tables' column of people", is_required=True), _PURPOSE)
PEOPLE = (
    Field(
        "ids",
        Form(
            "a list of up to 1,000 ids",
            lambda x: isinstance(x, list) and 0 < len(x) <= 1_000 and all(map(_ID.fits, x)),
            {"type": "array", "minItems": 1, "maxItems": 1_000, "items": _ID.schema},
        ),
        "As they stand in the tables' column of people",
        is_required=True,
    ),
    _PURPOSE,
)
WHY = (_PURPOSE,)


def sign_in(office: Office, throttle: Throttle, address: str, text: str) -> Token:
    """Whose token a text is.

    Failures are counted by address and by the token that was tried: nobody behind a proxy keeps the others
    out by failing.

    Raises:
        ThrottledError: it has failed too often of late.
        SignInError: it is nobody's.
    """
    claimed, token = office.tokens.tried(text)
    where = f"{address} {claimed}"
    if throttle.is_closed(where):  # then nobody is told whether it was right
        raise ThrottledError
    if token is None:
        throttle.failed(where)
        raise SignInError
    return token


def api(office: Office, throttle: Throttle) -> APIRouter:
    """The routes of an office."""
    routes = APIRouter(prefix="/api")
    waits: Counter[str] = Counter()
    bearer = Depends(HTTPBearer(auto_error=False, description="A token of 'accord token add'"))

    async def signed_in(request: Request, given: HTTPAuthorizationCredentials | None = bearer) -> Token:
        address = request.client.host if request.client else ""
        text = "" if given is None else given.credentials
        return await run_in_threadpool(sign_in, office, throttle, address, text)

    whoever = Depends(signed_in)

    def route(
        method: str, path: str, about: str, body: tuple[Field, ...] | None = None, status: int = 200
    ) -> Callable[[Any], Any]:
        """A route, described for /openapi.json; its body is read by its fields, or by the office."""
        described: dict[str, Any] = {"summary": about, "status_code": status}
        if body is not None:
            content = {"application/json": {"schema": json_schema("request", body)}}
            described["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
        return routes.api_route(path, methods=[method], response_class=Response, **described)

    @route("GET", "/me", "Who is signed in, and what they may do")
    async def me(token: Token = whoever) -> Response:
        return _json(_token_document(token) | {"version": accord.__version__, "title": office.settings.title})

    @route("GET", "/tables", "The tables that may be asked about, and what is declared of them")
    async def tables(token: Token = whoever) -> Response:
        return _json({"schema": SCHEMA, "tables": await run_in_threadpool(office.tables, token)})

    @route("GET", "/tables/{table}", "What is declared of a table")
    async def table(table: str, token: Token = whoever) -> Response:
        return _json({"schema": SCHEMA, **await run_in_threadpool(office.table, token, table)})

    @route("GET", "/tables/{table}/spec", "The public levels, and how many people have each")
    async def spec(table: str, token: Token = whoever) -> Response:
        return _json(await run_in_threadpool(office.spec, token, table))

    @route("GET", "/tables/{table}/remaining", "What everyone has left")
    async def remaining(table: str, token: Token = whoever) -> Response:
        return _json(await run_in_threadpool(office.remaining, token, table))

    @route("POST", "/tables/{table}/plan", "How well it would be answered, by every mechanism", ASKED)
    async def plan(table: str, request: Request, token: Token = whoever) -> Response:
        values = await _body(request)

        def planned() -> str:
            return _compact(office.plan(token, table, values)[0].describe())

        return _text(await run_in_threadpool(planned))

    @route("POST", "/tables/{table}/release", "Ask, and be told what becomes of it", ASKED, status=202)
    async def release(
        table: str,
        request: Request,
        token: Token = whoever,
        idempotency_key: str = Header(
            min_length=1,
            max_length=100,
            description="Of your choice: the same key is the same request, and is charged once",
        ),
    ) -> Response:
        values = await _body(request)
        return _json(await run_in_threadpool(office.submit, token, table, values, idempotency_key), 202)

    @route("GET", "/requests", "The newest requests")
    async def all_requests(state: str | None = None, token: Token = whoever) -> Response:
        return _json({"schema": SCHEMA, "requests": await run_in_threadpool(office.requests, token, state)})

    @route("GET", "/requests/{number}", "What has become of a request")
    async def one_request(
        number: str, wait: float = Query(0.0, ge=0.0, allow_inf_nan=False), token: Token = whoever
    ) -> Response:
        """`wait`: for so many seconds at most, until something has."""
        clock = asyncio.get_running_loop().time
        until = clock() + (min(wait, LONGEST_WAIT) if waits[token.id] < MOST_WAITS else 0.0)
        waits[token.id] += 1
        try:
            while True:
                seen = office.changes()
                document = await run_in_threadpool(office.request, token, number)
                if document["state"] not in (*requests.OPEN, "running") or clock() >= until:
                    return _json(document)
                while office.changes() == seen and clock() < until:
                    await asyncio.sleep(_POLL)
        finally:
            waits[token.id] -= 1

    @route("POST", "/requests/{number}/cancel", "Let nothing become of a request that is not charged")
    async def cancel(number: str, token: Token = whoever) -> Response:
        return _json(await run_in_threadpool(office.cancel, token, number))

    @route("POST", "/requests/{number}/decision", "Approve a request, or decline it", DECISION)
    async def decision(number: str, request: Request, token: Token = whoever) -> Response:
        said = _read(await _body(request), DECISION)
        decide = office.decide
        return _json(await run_in_threadpool(decide, token, number, said["approved"], said["purpose"]))

    @route("GET", "/history", "What was done: one's own, or all of it")
    async def history(
        table: str | None = None,
        kind: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        until: str | None = None,
        token: Token = whoever,
    ) -> Response:
        choice = {"table": table, "kind": kind, "actor": actor, "since": since, "until": until}
        events = await run_in_threadpool(lambda: office.history(token, **choice))
        return _json({"schema": SCHEMA, "history": events})

    @route("GET", "/accounts", "What the people of each level have spent and left")
    async def accounts(token: Token = whoever) -> Response:
        return _json(accounts_document(await run_in_threadpool(office.accounts, token)))

    @route("POST", "/person", "Everything that is known of somebody; the look-up is booked", PERSON)
    async def person(request: Request, token: Token = whoever) -> Response:
        said = _read(await _body(request), PERSON)
        looked_up = await run_in_threadpool(office.person, token, said["id"], said["purpose"])
        return _json(looked_up.describe())

    @route("POST", "/withdraw", "Leave nothing to people, at once", PEOPLE)
    async def withdraw(request: Request, token: Token = whoever) -> Response:
        said = _read(await _body(request), PEOPLE)
        done = await run_in_threadpool(office.withdraw, token, said["ids"], said["purpose"])
        return _json({"schema": SCHEMA, **vars(done)})

    @route("GET", "/head", "How many entries the ledger has, and the hash of the newest")
    async def head(token: Token = whoever) -> Response:
        return _json(await run_in_threadpool(office.head, token))

    @route("GET", "/tokens", "Who may ask what")
    async def all_tokens(token: Token = whoever) -> Response:
        listed = await run_in_threadpool(office.all_tokens, token)
        return _json({"schema": SCHEMA, "tokens": [_token_document(each) for each in listed]})

    @route("POST", "/tokens/{number}/revoke", "Let nobody sign in with a token any more", WHY)
    async def revoke(number: str, request: Request, token: Token = whoever) -> Response:
        said = _read(await _body(request), WHY)
        return _json(_token_document(await run_in_threadpool(office.revoke, token, number, said["purpose"])))

    @route("POST", "/description/agree", "Agree to what accord.toml says of the tables now", WHY)
    async def agree(request: Request, token: Token = whoever) -> Response:
        said = _read(await _body(request), WHY)
        await run_in_threadpool(office.agree, token, said["purpose"])
        return _json({"schema": SCHEMA, "agreed": office.is_agreed})

    return routes


async def _body(request: Request) -> Any:
    """What a request says."""
    try:
        return json.loads(await request.body(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        pass
    raise QueryError("a request is a JSON object, and this is none.")


def _no_number(text: str) -> Any:
    raise ValueError(text)


def _read(values: Any, fields: tuple[Field, ...]) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise QueryError("a request is a JSON object, and this is none.")
    return Section(Written(), (), values).read(fields)


def _token_document(token: Token) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "token": token.id,
        "name": token.name,
        "role": token.role,
        "grants": {
            table: {"share": level_text(grant.share), "per": grant.per}
            for table, grant in token.grants.items()
        },
        "expires": token.expires,
        "revoked": token.revoked,
    }


def _json(document: dict[str, Any], status: int = 200) -> Response:
    return _text(_compact(document), status)


def _compact(document: dict[str, Any]) -> str:
    """A document as text: the same as of `--json`, without its line breaks, which take ten times as long."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _text(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")
