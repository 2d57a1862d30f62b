"""Writes the head of the ledger elsewhere again and again (ledger/heads.py has what that is good for).

The file should be one that others keep, such as one on another machine to which lines can be added only.
"""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Event, Thread

from accord.errors import AccordError
from accord.ledger.books import Books
from accord.ledger.heads import head

_LOG = logging.getLogger("accord")


class Heads:
    """Writes a line now, and then again whenever the time has come and there is something new."""

    def __init__(self, books: Books, path: Path, minutes: int) -> None:
        self._books, self._path, self._seconds = books, path, 60.0 * minutes
        self._is_over = Event()
        self._written: tuple[int, str] | None = None
        self._thread = Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write the last one."""
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while True:
            is_last = self._is_over.is_set()
            try:
                self.write()
            except (AccordError, OSError) as fault:  # the service goes on, and its log says so
                _LOG.error("the head of the ledger could not be written: %s", type(fault).__name__)
            if is_last:
                return
            self._is_over.wait(self._seconds)

    def write(self) -> None:
        """Add a line, if there is anything new."""
        now = head(self._books)
        if (now.entries, now.hash) == self._written:
            return
        with self._path.open("a", encoding="ascii") as file:
            file.write(now.line)
        self._written = now.entries, now.hash
