"""Calling a service by HTTP: its refusals become errors, and what broke on the way is sent again."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from time import monotonic, sleep
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from accord.errors import (
    AccordError,
    BudgetError,
    LedgerError,
    PlanError,
    QueryError,
    ServiceError,
    SourceError,
    SpecError,
)
from accord.server.refusals import StalePlanError

_ALIKE = (BudgetError, LedgerError, PlanError, QueryError, SourceError, SpecError)
KINDS: Mapping[str, type[AccordError]] = {kind.__name__: kind for kind in _ALIKE}
"""Refusals of a service that are those of one's own table."""
_TIMEOUT = 60.0
"""Seconds without a word, after which a connection is taken for broken."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_OF_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_BUSY = (429, 502, 503, 504)


class _Staying(HTTPRedirectHandler):
    """A token is sent to nobody else, wherever an answer points to."""

    def redirect_request(self, *args: Any) -> None:
        return None


class Caller:
    """Somebody who speaks to a service with a token."""

    def __init__(self, url: str, token: str, allow_http: bool, patience: float) -> None:
        self.label = _checked(url, allow_http)
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
            raise ServiceError("this is no token: it is a line of 'accord token add', accord_….")
        self._token, self._patience = token.strip(), patience
        self._opener = build_opener(_Staying)
        self._has_answered = False

    def get(self, path: str) -> dict[str, Any]:
        """A document."""
        return self._call(Request(self.label + path))

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """What becomes of something that can be sent twice."""
        data = json.dumps(body, allow_nan=False).encode()
        request = Request(self.label + path, data, {"Content-Type": "application/json", **headers})
        return self._call(request)

    @contextmanager
    def waiting(self) -> Iterator[Callable[[], bool]]:
        """Whether patience is over, asked again and again."""
        until = monotonic() + self._patience
        yield lambda: monotonic() >= until

    def _call(self, request: Request) -> dict[str, Any]:
        request.add_header("Authorization", f"Bearer {self._token}")
        pause = _FIRST_PAUSE
        with self.waiting() as is_over:
            while True:
                try:
                    try:
                        with self._opener.open(request, timeout=_TIMEOUT) as response:
                            return self._document(response.read())
                    except HTTPError as fault:
                        with fault:
                            status, content = fault.code, fault.read()
                            pause = _pause_of(fault.headers.get("Retry-After"), pause)
                except (URLError, OSError, HTTPException) as fault:
                    status, content = 0, b""
                    self._refuse_unreachable(fault)
                if (status and status not in _BUSY) or is_over():
                    self._refuse(status, content)
                sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _document(self, content: bytes) -> dict[str, Any]:
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise ServiceError(f"what answers at {self.label} is no accord service. Check the address.")
        self._has_answered = True
        return document

    def _refuse_unreachable(self, fault: Exception) -> None:
        """Refuse an address at which nobody ever answered; later, it may only be busy or starting."""
        reason = fault.reason if isinstance(fault, URLError) else fault
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise ServiceError(
                f"the certificate of {self.label} is not trusted here. Ask its owner which authority "
                "has signed it, and name that in SSL_CERT_FILE."
            ) from None
        if not self._has_answered:
            raise ServiceError(
                f"nobody answers at {self.label} ({type(reason).__name__}). Check the address, and "
                "whether the service runs."
            ) from None

    def _refuse(self, status: int, content: bytes) -> NoReturn:
        if not status:
            raise ServiceError(
                f"the connection to {self.label} is broken. What was asked with a key can be asked again "
                "with it."
            )
        if status in (301, 302, 303, 307, 308):
            raise ServiceError(f"{self.label} points elsewhere. Give the address itself.")
        error = self._document(content).get("error", {})
        kind, message = str(error.get("type")), str(error.get("message"))
        if status == 401:
            raise ServiceError(
                f"{self.label} does not know this token, or it has expired or was revoked. Ask the owner "
                "for another."
            )
        if status in _BUSY and kind not in KINDS:
            raise ServiceError(f"{self.label} is busy: {message} Try again later.")
        raise refusal(kind, message)


def refusal(kind: str, message: str) -> AccordError:
    """What a service refuses, as an error of its kind."""
    return StalePlanError() if kind == StalePlanError.__name__ else KINDS.get(kind, ServiceError)(message)


def _checked(url: str, allow_http: bool) -> str:
    """An address without what may follow it.

    Raises:
        ServiceError: it is none, or a token would be sent for everybody to read.
    """
    example = "Give it as https://statistics.clinic.example."
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise ServiceError(f"url= is not the address of a service. {example}")
    if parts.username is not None or parts.password is not None:
        raise ServiceError(f"url= holds a name or a password; a service knows you by token=. {example}")
    if parts.scheme == "http" and host not in _OF_THIS_MACHINE and not allow_http:
        raise ServiceError(
            "without TLS everybody on the way can read the token. Give an https:// address, or "
            "allow_http=True in a network where that is nobody."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _pause_of(header: str | None, otherwise: float) -> float:
    """How long a service wants to be left alone."""
    return min(max(float(header), _FIRST_PAUSE), 30.0) if header and header.isdigit() else otherwise
