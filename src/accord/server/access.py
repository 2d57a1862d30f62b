"""Access: who looks at the pages. Signed in with a token, once, and then known by a cookie.

The cookie holds 256 random bits, of which the service keeps the hash. It is HttpOnly, SameSite=Strict and,
unless the service is reached as this machine itself and without TLS, Secure. It ends after an hour in which
nothing was asked, after a working day, when somebody signs out, when the service stops, and as soon as its
token is revoked or has expired: that is looked at with every request. Every form has a second secret of the
session, without which nothing is done.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic

from accord.errors import QueryError
from accord.ledger.tokens import Token
from accord.server.guard import OF_THIS_MACHINE

LIFETIME, IDLE = 8 * 3_600.0, 3_600.0
"""Seconds that a session lasts, and that it lasts when nothing is asked."""
MOST = 10_000
"""So many sessions are kept; the one that was idle the longest makes room."""
COOKIE = "accord"


class FormError(QueryError):
    """A form that was not filled in on a page of this session."""

    def __init__(self) -> None:
        super().__init__(
            "this form is not from a page that you have open here, or you have signed in anew since. Nothing "
            "was done. Open the page again, and send it from there."
        )


@dataclass(frozen=True)
class Session:
    """Somebody who has signed in."""

    token_id: str
    csrf: str = field(repr=False)
    """What their forms carry."""
    begun: float
    seen: float

    def is_over(self, now: float) -> bool:
        return now - self.begun > LIFETIME or now - self.seen > IDLE

    def refuse_forged(self, given: str) -> None:
        """Refuse a form without this session's secret."""
        if not hmac.compare_digest(self.csrf.encode(), given.encode("utf-8", "replace")):
            raise FormError


class Sessions:
    """Who is signed in."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._by_digest: OrderedDict[str, Session] = OrderedDict()

    def begin(self, token: Token) -> str:
        """A session for whoever has this token; what their cookie holds."""
        secret, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            while len(self._by_digest) >= MOST:
                self._by_digest.popitem(last=False)
            self._by_digest[_digest(secret)] = Session(token.id, secrets.token_urlsafe(32), now, now)
        return secret

    def find(self, cookie: str, tokens: Mapping[str, Token]) -> tuple[Session, Token] | None:
        """The session of a cookie, and the token as it is now; None: there is none any more."""
        digest, now = _digest(cookie), self._clock()
        with self._lock:
            session = self._by_digest.pop(digest, None)
            token = None if session is None else tokens.get(session.token_id)
            if session is None or token is None or session.is_over(now) or not token.is_valid:
                return None
            session = replace(session, seen=now)
            self._by_digest[digest] = session
        return session, token

    def end(self, cookie: str) -> None:
        """Sign out."""
        with self._lock:
            self._by_digest.pop(_digest(cookie), None)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def refuse_from_elsewhere(headers: Mapping[str, str]) -> None:
    """Refuse a form that a browser says was sent by a page of somebody else."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise FormError


def is_secure(host: str, is_encrypted: bool) -> bool:
    """Whether a cookie may only come back by TLS: always, but on this machine alone.

    >>> is_secure("statistics.clinic.example", False), is_secure("localhost:8410", False)
    (True, False)
    """
    name, colon, port = host.lower().rpartition(":")
    return is_encrypted or (name if colon and port.isdigit() else host.lower()) not in OF_THIS_MACHINE


def local_path(text: str) -> str:
    """A path of this service to go on to; the first page in place of anything else.

    >>> local_path("/history?kind=all"), local_path("//evil.example"), local_path("/\\\\evil.example")
    ('/history?kind=all', '/', '/')
    """
    is_local = text.startswith("/") and not text.startswith("//") and text.isprintable() and "\\" not in text
    return text if is_local and len(text) <= 2_000 else "/"
