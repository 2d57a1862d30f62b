"""The application: the routes for programs and for people, behind the guard.

Every refusal has the same form, and says public things alone. A fault that nobody thought of is the guard's.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import accord
from accord.errors import AccordError, LedgerError
from accord.release.receipt import SCHEMA, to_json
from accord.server.api import api
from accord.server.asking import public_text
from accord.server.guard import App, Guard, Throttle
from accord.server.office import Office
from accord.server.pages import pages
from accord.server.refusals import NO_KEY, STATUS, NotThereError, spoken

_LOG = logging.getLogger("accord")


def application(office: Office, hosts: tuple[str, ...] = (), is_encrypted: bool = False) -> App:
    """The service of an office, as an ASGI application."""
    throttle = Throttle()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        office.open()
        yield
        office.close()

    app = FastAPI(
        title="accord",
        version=accord.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(api(office, throttle))
    site = pages(office, throttle, is_encrypted)
    app.include_router(site.routes)
    app.mount("/static", site.static)

    def _error(request: Request, status: int, kind: str, message: str) -> Response:
        return site.refusal(request, status, message) or _document(status, kind, message)

    @app.exception_handler(AccordError)
    async def refused(request: Request, fault: AccordError) -> Response:
        status = next((status for kind, status in STATUS if isinstance(fault, kind)), None)
        if status is None and public_text(fault) is None:
            _LOG.warning("%s: %s", type(fault).__name__, fault)
            status = 409 if isinstance(fault, LedgerError) else 503
            return _error(request, status, type(fault).__name__, spoken(fault, office.ledger.label))
        return _error(request, status or 422, type(fault).__name__, public_text(fault) or str(fault))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, fault: RequestValidationError) -> Response:
        if [error["loc"][-1] for error in fault.errors()] == ["idempotency-key"]:
            return _error(request, 422, "QueryError", NO_KEY)
        names = ", ".join(dict.fromkeys(str(error["loc"][-1]) for error in fault.errors()))
        wrong = f"{names} is missing, or is not what it should be: see /openapi.json."
        return _error(request, 422, "QueryError", wrong)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, _: Exception) -> Response:
        unknown = "this failed for a reason that nobody thought of. It is logged."
        return _error(request, 500, "FailedError", unknown)

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, fault: HTTPException) -> Response:
        if fault.status_code == 404:
            return await refused(request, NotThereError())
        return _error(
            request, fault.status_code, "QueryError", "this is asked in another way: see /openapi.json."
        )

    return Guard(app, (*hosts, *office.settings.hosts), is_encrypted)


def _document(status: int, kind: str, message: str) -> Response:
    document = {"schema": SCHEMA, "error": {"type": kind, "message": message}}
    headers = {"retry-after": "5"} if status == 429 else {}
    return Response(to_json(document), status, headers, media_type="application/json")
