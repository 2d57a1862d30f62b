"""Listening: how uvicorn is set up, and what it leaves open.

It waits for ever for the head of a request that comes letter by letter; here a connection on which no whole
head has arrived after ten seconds is closed. Nothing but HTTP is spoken, and addresses that a proxy passes on
are believed of this machine alone.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from accord.errors import SourceError
from accord.server import guard

MOST_CONNECTIONS = 1_000


class ImpatientProtocol(H11Protocol):
    """HTTP, for those who say what they want."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_to_wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._end_waiting()
        elif self._deadline is None:
            self._begin_to_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin_to_wait(self) -> None:
        self._deadline = self.loop.call_later(guard.PATIENCE, self._close_idle)

    def _end_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_idle(self) -> None:
        self._deadline = None
        if not self._is_answering:
            self.transport.close()


def configuration(
    application: Any,
    host: str = "127.0.0.1",
    port: int = 0,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    **options: Any,
) -> uvicorn.Config:
    """How an application is served.

    Raises:
        SourceError: the certificate cannot be used.
    """
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        ssl_certfile=cert,
        ssl_keyfile=key,
        http=ImpatientProtocol,
        ws="none",
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1",
        server_header=False,
        access_log=False,
        timeout_keep_alive=5,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=guard.LARGEST_HEAD,
        **options,
    )
    try:
        config.load()
    except (ssl.SSLError, OSError) as fault:
        problem = type(fault).__name__
    else:
        return config
    raise SourceError(f"the certificate cannot be used ({problem}). Check --cert and --tls-key, both as PEM.")
