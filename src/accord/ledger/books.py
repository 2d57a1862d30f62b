"""Books: what every job of a ledger works on, which is its store, its key and its head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accord.errors import LedgerError
from accord.ledger import key as keys
from accord.ledger.chain import Entry, next_entry
from accord.ledger.head import Head, HeadFile
from accord.ledger.key import Key
from accord.ledger.sqlite import SQLite
from accord.ledger.store import Session, Store
from accord.ledger.validation import newest_entry, select


class Books:
    """A ledger that is open: where it lies, its key, and what says that it is complete."""

    def __init__(self, store: Store, key: Key | None) -> None:
        self.store = store
        """SQLite or PostgreSQL. Its transactions look at nothing: those of the books do."""
        self.key = key
        """None until it is first needed, if none was given: see `required_key`."""
        self.head = HeadFile(store) if isinstance(store, SQLite) else None
        """Beside a file; a server's ledger has none."""

    @property
    def label(self) -> str:
        """The ledger's name in messages, without a password."""
        return self.store.label

    # ---- the key -----------------------------------------------------------------------------------------

    @property
    def secret(self) -> str:
        """What goes before every id that is hashed."""
        return self.required_key().secret

    def required_key(self) -> Key:
        """The key, which is looked up and checked when it is first needed."""
        if self.key is None:
            key = keys.kept_key(self.store)
            if key is None:
                raise LedgerError(keys.missing_text(self.store))
            self.check_key(key)
            if isinstance(self.store, SQLite):
                keys.confirm(keys.key_file(self.store.path))
            self.key = key
        return self.key

    def matching_key(self, check: Any) -> Key | None:
        """The key, if it is at hand and the right one for what the ledger has to check it by."""
        key = self.key or (keys.kept_key(self.store) if check else None)
        return key if key is not None and key.check == check else None

    def check_key(self, key: Key) -> None:
        """Refuse another key than the ledger was made with."""
        with self.store.read() as db:
            stored = key_check(db)
        if stored != key.check:
            raise LedgerError(
                f"this is not the key that the ledger {self.label} was made with: "
                "it would take everyone for somebody new. Give the right one."
            )

    # ---- transactions, and what is noted of them outside -------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A consistent view of a ledger that lost no entry."""
        noted = self.noted_head()
        with self.store.read() as db:
            self._refuse_incomplete(db, noted)
            yield db

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction on a ledger that lost no entry; when it is over, the head catches up."""
        seal, noted = self.required_key().seal, self.noted_head()
        with self.store.write() as db:
            self._refuse_incomplete(db, noted)
            if self.head is not None and self.head.is_due(db):
                self.head.begin(db, seal)
            yield db
        try:
            if self.head is not None:
                self.head.catch_up(seal)
        except LedgerError as fault:
            raise LedgerError(f"{fault} What was just done is booked all the same.") from None

    def append(self, db: Session, kind: str, content: dict[str, Any]) -> Entry:
        """Add an entry to the chain."""
        entry = next_entry(newest_entry(db), kind, content, self.required_key().seal)
        columns = "seq, time, kind, body, previous, hash, seal"
        db.run(f"INSERT INTO accord_entry ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", *vars(entry).values())
        return entry

    def noted_head(self) -> Head | None:
        """What the head says; None: there is none. To be read before the database is (see head.py)."""
        return None if self.head is None else self.head.read()

    def missing_entries(self, db: Session, noted: Head | None, key: Key | None) -> str | None:
        """Why entries may be missing at the end, as far as can be told; None: none is."""
        return None if self.head is None else self.head.problem(db, noted, None if key is None else key.seal)

    def _refuse_incomplete(self, db: Session, noted: Head | None) -> None:
        if missing := self.missing_entries(db, noted, self.key):
            raise LedgerError(
                f"the ledger {self.label} is not complete: {missing}, and spendings would be forgotten. "
                "Put its newest copy back; if there is none, "
                "see 'accord ledger accept-backup' (ledger.accept_backup)."
            )


def key_check(db: Session) -> str:
    """What a ledger has to check its key by."""
    stored = dict(select(db, "accord_meta", "WHERE name = 'key'"))
    if not stored:
        raise db.damaged("it has no check of its key")
    return str(stored["key"])
