"""Heads: how many entries the ledger has, and the hash of the newest, written elsewhere again and again.

A ledger that is replaced by an older copy, with all its files, looks whole. Whoever has a head from later
knows better: the entry of that number must have that hash. So a line goes to a file that others keep, such as
one on another machine to which lines can be added only:

    2026-05-03T12:00:00+00:00 1042 5f1c…
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from accord.errors import AccordError
from accord.ledger.books import Books
from accord.ledger.chain import START
from accord.ledger.validation import newest_entry

_LOG = logging.getLogger("accord")


def head(books: Books) -> tuple[int, str]:
    """The number of entries, and the hash of the newest."""
    with books.reading() as db:
        newest = newest_entry(db)
    return (0, START) if newest is None else (newest.seq, newest.hash)


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
        if now == self._written:
            return
        with self._path.open("a", encoding="ascii") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {now[0]} {now[1]}\n")
        self._written = now
