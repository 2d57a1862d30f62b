"""Books: what every job of a ledger works on, which is its store, its key and its head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from accord.errors import LedgerError
from accord.ledger import key as keys
from accord.ledger.chain import Entry, next_entry
from accord.ledger.head import Head, HeadFile, head_of
from accord.ledger.key import FORMER, NO_FORMER_KEYS, FormerKeys, Key
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
        self._former: FormerKeys | None = None
        self.head = HeadFile(store) if isinstance(store, SQLite) else None
        """Beside a file; a server's ledger has none."""

    @property
    def label(self) -> str:
        """The ledger's name in messages, without a password."""
        return self.store.label

    # ---- the key -----------------------------------------------------------------------------------------

    @property
    def secret(self) -> tuple[str, ...]:
        """What goes before every id that is hashed, and before the hash that comes of it; oldest first."""
        return (*self.former.secrets, self.required_key().secret)

    @property
    def former(self) -> FormerKeys:
        """What the ledger holds of keys that it had before."""
        if self._former is None:
            key = self.required_key()
            with self.store.read() as db:
                self.refuse_changed_key(db)
                self._former = former_keys(db, key)
        return self._former

    def required_key(self) -> Key:
        """The key, which is looked up and checked when it is first needed."""
        if self.key is None:
            self.settle_draft()
            with self.store.read() as db:
                key = keys.kept_key(self.store, key_check(db))
            if key is None:
                raise LedgerError(keys.missing_text(self.store))
            self.check_key(key)
            self.key = key
        return self.key

    def settle_draft(self) -> None:
        """Give the draft of a key file its name, or remove it, if a process was killed before it could."""
        if isinstance(self.store, SQLite) and keys.has_draft(path := keys.key_file(self.store.path)):
            # who may not write here takes the draft as it is
            with suppress(LedgerError, OSError), self.store.write() as db:
                keys.settle_draft(path, key_check(db))

    def matching_key(self, check: Any) -> Key | None:
        """The key, if it is at hand and the right one for what the ledger has to check it by."""
        key = self.key or (keys.kept_key(self.store, check) if check else None)
        return key if key is not None and key.check == check else None

    def check_key(self, key: Key) -> None:
        """Refuse another key than the ledger has."""
        with self.store.read() as db:
            if key_check(db) != key.check:
                raise LedgerError(self._wrong_key_text(db))

    def refuse_changed_key(self, db: Session) -> None:
        """Refuse to go on with a key in whose place somebody has put another since it was checked."""
        if self.key is not None and key_check(db) != self.key.check:
            raise LedgerError(
                f"the key of the ledger {self.label} was changed meanwhile. Open it again, with the new one."
                if _has_former_keys(db)
                else self._wrong_key_text(db)
            )

    def _wrong_key_text(self, db: Session) -> str:
        if _has_former_keys(db):
            return (
                f"this is not the key of the ledger {self.label}: it was changed, "
                "and another would take everyone for somebody new. Give the newest one; "
                "ledger.history(kind='rotate') says when, and who did it."
            )
        return (
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
        with self.changing() as db:
            yield db
        self.note()

    @contextmanager
    def changing(self) -> Iterator[Session]:
        """The same, but that the head is left as it is."""
        seal, noted = self.required_key().seal, self.noted_head()
        with self.store.write() as db:
            self._refuse_incomplete(db, noted)
            if self.head is not None and self.head.is_due(db):
                self.head.begin(db, seal)
            elif self.head is not None and noted is not None and not self.head.is_sealed(noted, seal):
                self.head.write(head_of(db, seal))  # before there is an entry that the former key's lacks
            yield db

    def note(self) -> None:
        """Have the head say what was just booked."""
        key = self.required_key()
        try:
            if self.head is not None:
                self.head.catch_up(key.seal, lambda db: key_check(db) == key.check)
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
        """Why entries may be missing at the end, as far as can be told; None: none is.

        A head that was sealed with the former key counts as long as the change of the key is the newest
        entry: later, who has only that key could hide with one that entries are gone.
        """
        if self.head is None:
            return None
        problem = self.head.problem(db, noted, None if key is None else key.seal)
        if problem is None or key is None:
            return problem
        newest = newest_entry(db)
        is_just_changed = newest is not None and newest.kind == "rotate"
        if is_just_changed and self.head.problem(db, noted, former_keys(db, key).seal) is None:
            return None
        return problem

    def _refuse_incomplete(self, db: Session, noted: Head | None) -> None:
        self.refuse_changed_key(db)
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


def former_keys(db: Session, key: Key) -> FormerKeys:
    """What a ledger holds of the keys that it had before, for who has its key."""
    stored = dict(select(db, "accord_meta", "WHERE name = ?", FORMER))
    former = key.disclosed(str(stored[FORMER])) if stored else NO_FORMER_KEYS
    if former is None:
        raise db.damaged("what it holds of its former keys is not what was written with its key")
    return former


def _has_former_keys(db: Session) -> bool:
    return bool(select(db, "accord_meta", "WHERE name = ?", FORMER))
