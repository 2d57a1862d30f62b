"""The head: how many entries a ledger in a file has, noted outside of its database.

A database that lost its newest entries looks whole: an older copy of it, or one whose -wal file is gone. The
file accord.db.head knows better. It follows after every transaction, so that a crash in between leaves the
database ahead of it, which does no harm; behind it is damage.

    entries, hash of the newest (64 zeros if there are none), seal: three words on a line

The seal is an HMAC with the ledger's key, of another text than those in the chain: who has the entries, but
not the key, cannot make a head for fewer of them. `accord_meta` says that there is a head, so that one that
is gone is missed; ledgers of older versions get theirs when they are next written to.

A change of the key seals the chain anew, and the head follows as after every transaction. If nothing did so
because the process was killed, the head is sealed with the former key, which counts until the next
transaction, which begins with a new one (books.py).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from accord.errors import LedgerError
from accord.ledger.chain import START
from accord.ledger.sqlite import SQLite
from accord.ledger.store import Session
from accord.ledger.validation import digests, entry_of, newest_entry, select

Seal: TypeAlias = Callable[[str], str]


@dataclass(frozen=True)
class Head:
    """What is noted of a database."""

    entries: int
    hash: str
    seal: str


ILLEGIBLE = Head(-1, "", "")
_LINE = re.compile(r"([0-9]{1,15}) ([0-9a-f]{64}) ([0-9a-f]{64})\n", re.ASCII)


def head_of(db: Session, seal: Seal) -> Head:
    """What the head must be of a database as it is."""
    newest = newest_entry(db)
    return _sealed(0, START, seal) if newest is None else _sealed(newest.seq, newest.hash, seal)


def _sealed(entries: int, newest: str, seal: Seal) -> Head:
    return Head(entries, newest, seal(f"head {entries} {newest}"))


class HeadFile:
    """The file beside a ledger's."""

    def __init__(self, store: SQLite) -> None:
        self._store = store

    @property
    def _path(self) -> Path:
        """Beside the file itself, also if that is reached by a link, as the -wal is."""
        return Path(os.path.realpath(self._store.path) + ".head")

    @property
    def label(self) -> str:
        return repr(str(self._path))

    def read(self) -> Head | None:
        """What is noted; None: there is no such file.

        To be read before the database is, because others add to both meanwhile.
        """
        try:
            words = _LINE.fullmatch(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            words = None
        return ILLEGIBLE if words is None else Head(int(words[1]), words[2], words[3])

    def problem(self, db: Session, head: Head | None, seal: Seal | None) -> str | None:
        """Why entries may be missing at the end of the database; None: none is.

        Without `seal`, who wrote the head is not looked at.
        """
        file = f"the file {self.label}, which says how many entries there are,"
        if head is None:
            lost = self._is_promised(db) and not self._path.exists()  # another process may just have made it
            return f"{file} is gone" if lost else None
        if head == ILLEGIBLE:
            return f"{file} cannot be read"
        if seal is not None and not self.is_sealed(head, seal):
            return f"{file} was not written with the ledger's key"
        newest = newest_entry(db)
        entries = 0 if newest is None else newest.seq
        if entries < head.entries:
            return f"it has {entries:,} entries, and had {head.entries:,}"
        noted = entry_of(db, head.entries)
        if head.hash != (START if noted is None else noted.hash):
            return f"its entry {head.entries:,} is another than it was"
        return None

    def is_due(self, db: Session) -> bool:
        """Whether the ledger is of a version that made none: neither a head, nor digests of the accounts.

        What the database says decides, not whether there is a file: one that a transaction began which then
        failed is not promised. Digests hold the promise, so that it cannot be added where there is one.
        """
        return not self._is_promised(db) and "accounts" not in digests(newest_entry(db))

    def _is_promised(self, db: Session) -> bool:
        return bool(select(db, "accord_meta", "WHERE name = 'head'"))

    def begin(self, db: Session, seal: Seal) -> None:
        """Make a head for what is committed.

        The database says that there is one, once this transaction is committed.
        """
        self.write(head_of(db, seal))
        db.run("DELETE FROM accord_meta WHERE name = 'head'")
        db.run("INSERT INTO accord_meta (name, value) VALUES ('head', 'yes')")

    def is_sealed(self, head: Head, seal: Seal) -> bool:
        """Whether who has the key wrote it."""
        return head == _sealed(head.entries, head.hash, seal)

    def catch_up(self, seal: Seal, is_current: Callable[[Session], bool]) -> None:
        """Note what the database has, unless its key has become another, whose owner does so.

        Where two do so at once, whoever comes last looks again: no lock is needed for it.
        """
        while True:
            with self._store.read() as db:
                if not is_current(db):
                    return
                newest = head_of(db, seal)
            noted = self.read()
            if noted is not None and noted.entries >= newest.entries:
                return
            self.write(newest)

    def write(self, head: Head) -> None:
        """Replace the file, at once or not at all; for the eyes of those who may see the database."""
        draft = None
        try:
            handle, name = tempfile.mkstemp(prefix=f"{self._path.name}.", dir=self._path.parent)
            draft = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{head.entries} {head.hash} {head.seal}\n")
                file.flush()
                os.fsync(handle)
            draft.chmod(self._store.path.stat().st_mode & 0o666)
            draft.replace(self._path)
            return
        except OSError as fault:
            reason = type(fault).__name__
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise LedgerError(
            f"cannot write {self.label}, which says how many entries the ledger has ({reason}). "
            "Make room on the disk, and give this user the right to write to its folder."
        )
