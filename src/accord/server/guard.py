"""Guard: what every request must keep to before anything else looks at it, and what every answer says.

Hosts      only those that are named, so that a page elsewhere cannot have a browser ask in somebody's name
           under a name of its own (rebinding).
Sizes      a head of 32 kB and a body of a megabyte, in ten seconds each at most.
Sign-in    ten failures in a minute from one address, and it is refused for the rest of that minute.
Headers    nothing is fetched from elsewhere, framed, sniffed or kept.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from threading import Lock
from time import monotonic
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOG = logging.getLogger("accord")
LARGEST_BODY, LARGEST_HEAD = 2**20, 2**15
PATIENCE = 10.0
"""Seconds for a body to arrive."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OF_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")
FAILURES, WINDOW = 10, 60.0
MOST_ADDRESSES = 10_000


class Guard:
    """An application behind these rules."""

    def __init__(self, app: App, hosts: tuple[str, ...], is_encrypted: bool) -> None:
        """`hosts`: names by which the service is reached besides this machine's own."""
        self._app = app
        self._hosts = frozenset(name.lower() for name in (*hosts, *OF_THIS_MACHINE))
        self._headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        if is_encrypted:
            self._headers.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                named = {name.lower() for name, _ in message["headers"]}
                added = [(name, value) for name, value in self._headers if name not in named]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        if _head_size(scope) > LARGEST_HEAD:
            await _refuse(
                send_with_headers, 431, f"the head of a request has at most {LARGEST_HEAD:,} bytes."
            )
            return
        if not self._is_known(scope):
            await _refuse(send_with_headers, 421, "this service is not reached under that name.")
            return
        try:
            async with asyncio.timeout(PATIENCE):
                body = await _whole_body(receive)
        except TimeoutError:
            await _refuse(send_with_headers, 408, f"a request arrives within {PATIENCE:.0f} seconds.")
            return
        if body is None:
            await _refuse(send_with_headers, 413, f"a request has at most {LARGEST_BODY:,} bytes.")
            return
        sent = False

        async def receive_again() -> Message:
            nonlocal sent
            if sent:
                return await receive()  # that whoever asked has gone
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            await self._app(scope, receive_again, send_with_headers)
        except Exception as fault:  # whatever it says may quote the data: the server would log it
            _LOG.error("a request failed: %s", type(fault).__name__)
        else:
            return
        if not started:
            message = "this failed for a reason that nobody thought of. It is logged."
            await _refuse(send_with_headers, 500, message, "FailedError")

    def _is_known(self, scope: Scope) -> bool:
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return False
        name, colon, port = hosts[0].rpartition(":")
        return (name if colon and port.isdigit() else hosts[0]) in self._hosts


def _head_size(scope: Scope) -> int:
    target = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    return target + sum(len(name) + len(value) for name, value in scope["headers"])


async def _whole_body(receive: Receive) -> bytes | None:
    """The body; None: it is too long.

    Such a one is read to its end and not kept, because who still sends when it is closed gets no answer.
    """
    body: bytes | None = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        if body is not None:
            body += message.get("body", b"")
            if len(body) > LARGEST_BODY:
                body = None
        if not message.get("more_body"):
            return body


async def _refuse(send: Send, status: int, message: str, kind: str = "QueryError") -> None:
    content = json.dumps({"schema": 1, "error": {"type": kind, "message": message}}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class Throttle:
    """How often signing in has failed of late, by address."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._failures: dict[str, list[float]] = {}

    def is_closed(self, address: str) -> bool:
        """Whether an address has failed too often to be listened to now."""
        with self._lock:
            return len(self._recent(address)) >= FAILURES

    def failed(self, address: str) -> None:
        """Note that signing in has failed."""
        with self._lock:
            times = [*self._recent(address), self._clock()][-FAILURES:]
            self._failures.pop(address, None)  # so that the first is the one that failed the longest ago
            while len(self._failures) >= MOST_ADDRESSES:
                del self._failures[next(iter(self._failures))]
            self._failures[address] = times

    @property
    def size(self) -> int:
        """Of how many addresses something is known."""
        return len(self._failures)

    def _recent(self, address: str) -> list[float]:
        since = self._clock() - WINDOW
        return [time for time in self._failures.get(address, ()) if time > since]
