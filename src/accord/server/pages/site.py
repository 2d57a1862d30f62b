"""A page: who looks at it, what they filled in, and how it is shown."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader
from starlette.staticfiles import StaticFiles

import accord
from accord.errors import AccordError, QueryError, SourceError
from accord.ledger.tokens import ANALYST, OFFICER, OWNER, Token
from accord.server.access import COOKIE, Session, Sessions, refuse_from_elsewhere
from accord.server.guard import Throttle
from accord.server.office import Office
from accord.server.pages import markup
from accord.server.refusals import SignInError

_FOLDER = Path(__file__).parents[1]
_LOG = logging.getLogger("accord")
_FAILED = (
    "this failed for a reason that nobody thought of. The owner of the service finds its kind in the log."
)
_MOST_FIELDS = 400
_NAVIGATION = (
    ("/ask", "Ask", (ANALYST, OFFICER, OWNER)),
    ("/approvals", "Approvals", (OFFICER,)),
    ("/person", "People", (OFFICER,)),
    ("/levels", "Levels", (ANALYST, OFFICER, OWNER)),
    ("/budgets", "Budgets", (ANALYST, OFFICER, OWNER)),
    ("/history", "History", (ANALYST, OFFICER, OWNER)),
    ("/board", "Board", (OFFICER, OWNER)),
    ("/access", "Access", (OFFICER, OWNER)),
    ("/audit", "Audit", (OFFICER, OWNER)),
)


@dataclass(frozen=True)
class Visit:
    """A request for a page."""

    request: Request
    fields: dict[str, str]
    """What was filled in: of several values by one name the last."""
    session: Session | None
    signed_in: Token | None

    @property
    def token(self) -> Token:
        """Whose token it is.

        Raises:
            SignInError: nobody has signed in.
        """
        if self.signed_in is None:
            raise SignInError
        return self.signed_in

    @property
    def role(self) -> str:
        return self.token.role

    @property
    def is_partial(self) -> bool:
        """Whether a part of a page is asked for, by htmx."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def address(self) -> str:
        return self.request.client.host if self.request.client else ""

    def field(self, name: str, default: str = "") -> str:
        """What was filled in, without spaces around it."""
        return self.fields.get(name, default).strip()

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])


Handler: TypeAlias = Callable[[Visit], Response]


class Site:
    """The pages of an office, and what they share."""

    def __init__(self, office: Office, sessions: Sessions, throttle: Throttle, is_encrypted: bool) -> None:
        self.office, self.sessions = office, sessions
        self.throttle, self.is_encrypted = throttle, is_encrypted
        self.routes = APIRouter(include_in_schema=False)
        self.static = StaticFiles(directory=_FOLDER / "static")
        self._templates = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= markup.FILTERS

    # ---- routes --------------------------------------------------------------------------------------------

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """A page that is looked at."""
        return self._route("GET", path)

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """A form that is sent, by a page of whoever has signed in."""
        return self._route("POST", path)

    def _route(self, method: str, path: str) -> Callable[[Handler], Handler]:
        def registered(handler: Handler) -> Handler:
            async def answer(request: Request) -> Response:
                fields = await _fields(request)
                visit = await run_in_threadpool(self._visit, request, fields)
                if method == "POST":
                    refuse_from_elsewhere(request.headers)
                    if path != "/sign-in":
                        _ = visit.token
                        assert visit.session is not None
                        visit.session.refuse_forged(fields.get("csrf", ""))
                elif path not in ("/", "/sign-in"):
                    _ = visit.token
                try:
                    return await run_in_threadpool(handler, visit)
                except AccordError:
                    raise
                except Exception as fault:
                    # whatever it says may quote the data
                    _LOG.error("a page failed: %s", type(fault).__name__)
                return self._refused(visit, 500, _FAILED)

            endpoint: Callable[[Request], Awaitable[Response]] = answer
            self.routes.add_api_route(path, endpoint, methods=[method], response_model=None)
            return handler

        return registered

    def _visit(self, request: Request, fields: dict[str, str]) -> Visit:
        cookie = request.cookies.get(COOKIE)
        known = None if cookie is None else self.sessions.find(cookie, self.office.tokens.by_id)
        session, token = (None, None) if known is None else known
        request.state.visit = Visit(request, fields, session, token)
        return request.state.visit  # type: ignore[no-any-return]

    # ---- tables --------------------------------------------------------------------------------------------

    def tables(self, visit: Visit) -> list[dict[str, Any]]:
        """The tables that somebody may ask about and that can be read now: another must not close a page."""
        documents = []
        for name in self.names(visit):
            try:
                documents.append(self.office.table(visit.token, name))
            except SourceError:
                continue  # the first page names it, and the service's log says why
        return documents

    def names(self, visit: Visit) -> list[str]:
        """The names of the tables that somebody may ask about."""
        granted = visit.token.grants if visit.role == ANALYST else self.office.desks
        return [name for name in granted if name in self.office.desks]

    # ---- what is shown -------------------------------------------------------------------------------------

    def show(self, visit: Visit, template: str, status: int = 200, **values: Any) -> Response:
        """A template with what it needs."""
        token, path = visit.signed_in, visit.request.url.path
        navigation = [
            {"href": href, "name": name, "is_here": path.startswith(href)}
            for href, name, roles in _NAVIGATION
            if token is not None and token.role in roles
        ]
        html = self._templates.get_template(template).render(
            visit=visit,
            who=token,
            is_analyst=token is not None and token.role == ANALYST,
            csrf="" if visit.session is None else visit.session.csrf,
            service=self.office.settings.title,
            version=accord.__version__,
            navigation=navigation,
            **values,
        )
        return HTMLResponse(html, status)

    def refusal(self, request: Request, status: int, message: str) -> Response | None:
        """What a person sees in place of a page; None: a program asks."""
        path = request.url.path
        is_of_a_page = request.headers.get("hx-request") == "true"
        is_wanted = is_of_a_page or "text/html" in request.headers.get("accept", "")
        if path.startswith("/api") or not is_wanted:
            return None
        visit = getattr(request.state, "visit", None) or self._visit(request, {})
        if status == 401:
            is_page = request.method == "GET" and not visit.is_partial
            there = f"{path}?{request.url.query}" if request.url.query else path
            to = f"/sign-in?next={quote(there, safe='')}" if is_page else "/sign-in"
            if visit.is_partial:
                return Response(status_code=401, headers={"hx-redirect": "/sign-in"})
            return RedirectResponse(to, 303)
        return self._refused(visit, status, message)

    def _refused(self, visit: Visit, status: int, message: str) -> Response:
        return self.show(visit, "refused.html", status, message=message, is_missing=status == 404)


async def _fields(request: Request) -> dict[str, str]:
    """What was filled in."""
    text = request.url.query if request.method == "GET" else (await request.body()).decode("latin-1")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        pairs = None
    if pairs is None:
        raise QueryError("this form cannot be read. Open its page again, and send it from there.")
    return dict(pairs)


def go(path: str, **query: str) -> Response:
    """On to another page, after something was done."""
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)
