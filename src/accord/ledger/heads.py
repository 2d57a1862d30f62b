"""Heads that are kept elsewhere: how many entries a ledger had at a moment, and the hash of the newest.

A ledger that is replaced by an older copy, with all its files, looks whole. Whoever has a head from later
knows better: the entry of that number must have that hash. A line for each:

    2026-05-03T12:00:00+00:00 1042 5f1c…
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from accord.errors import LedgerError
from accord.ledger.books import Books
from accord.ledger.chain import START
from accord.ledger.store import Session
from accord.ledger.validation import newest_entry

_LINE = re.compile(r"(\S{1,40}) ([0-9]{1,15}) ([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True)
class NotedHead:
    """What somebody noted of a ledger."""

    time: str
    entries: int
    hash: str

    @property
    def line(self) -> str:
        """As it is written."""
        return f"{self.time} {self.entries} {self.hash}\n"


def head(books: Books) -> NotedHead:
    """Of a ledger as it is now."""
    with books.reading() as db:
        newest = newest_entry(db)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return NotedHead(now, *((0, START) if newest is None else (newest.seq, newest.hash)))


def read_heads(path: Path) -> list[NotedHead]:
    """The lines of a file.

    Raises:
        LedgerError: it cannot be read, or holds anything else.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeError) as fault:
        reason = type(fault).__name__
        raise LedgerError(f"the heads in {str(path)!r} cannot be read ({reason}). Check the path.") from None
    noted = []
    for number, line in enumerate(lines, 1):
        if (said := _LINE.fullmatch(line)) is None:
            raise LedgerError(
                f"line {number} of {str(path)!r} is no head: a time, the number of entries, and a hash of 64 "
                "digits. Remove it if it was cut off as it was written."
            )
        noted.append(NotedHead(said[1], int(said[2]), said[3]))
    return noted


def contradicted(db: Session, noted: Sequence[NotedHead]) -> list[str]:
    """What a ledger does not have any more of what was noted of it: the first, and how many there are."""
    hashes = dict(db.rows("SELECT seq, hash FROM accord_entry")) | {0: START}
    wrong = [each for each in noted if hashes.get(each.entries) != each.hash]
    if not wrong:
        return []
    first, besides = wrong[0], f", and {len(wrong) - 1:,} later heads" if wrong[1:] else ""
    gone = "is another one now" if first.entries in hashes else "is not there any more"
    return [
        f"entry {first.entries:,}, which was the newest at {first.time}, {gone}{besides}: the ledger was "
        "replaced, or cut off"
    ]
