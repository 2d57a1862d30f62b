"""Where a ledger lies: what SQLite and PostgreSQL have in common, which is the tables and nearly all the SQL.

Writers come one after the other: SQLite by BEGIN IMMEDIATE, PostgreSQL by an advisory lock. A transaction is
durable when it is over (synchronous=FULL, synchronous_commit), or has not happened. Every transaction has a
connection of its own, so that a ledger can be used from threads and forked processes and has nothing to mend
after a fault.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Protocol, TypeVar

from accord.budget import IntArray
from accord.errors import LedgerError

T = TypeVar("T")

PATIENCE = 60
"""Seconds to wait for other writers."""

_PEOPLE = "chunk BIGINT PRIMARY KEY, hashes {blob} NOT NULL, cohorts {blob} NOT NULL"
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE accord_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE accord_table (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
        "version BIGINT NOT NULL, fingerprint TEXT NOT NULL, people BIGINT NOT NULL, tiers TEXT NOT NULL)",
        # level: the lowest that they have in any table
        # allowed: that, or what they had spent when they lowered it
        "CREATE TABLE accord_cohort (id BIGINT PRIMARY KEY, level BIGINT NOT NULL, allowed BIGINT NOT NULL, "
        "spent BIGINT NOT NULL, people BIGINT NOT NULL, CHECK (spent >= 0 AND spent <= allowed))",
        "CREATE TABLE accord_member (tab BIGINT NOT NULL, cohort BIGINT NOT NULL, level BIGINT NOT NULL, "
        "PRIMARY KEY (tab, cohort))",
        f"CREATE TABLE accord_people ({_PEOPLE})",
        "CREATE TABLE accord_entry (seq BIGINT PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, "
        "body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, seal TEXT NOT NULL)",
    ),
    # also what `accord_member` and the entries may hold: older versions must not go on here
    (
        "CREATE TABLE accord_refused (tab TEXT NOT NULL, actor TEXT NOT NULL, reason TEXT NOT NULL, "
        "first TEXT NOT NULL, last TEXT NOT NULL, times BIGINT NOT NULL, PRIMARY KEY (tab, actor, reason))",
    ),
    (
        # in which entry the newest answer to a question stands, for which version of a table
        "CREATE TABLE accord_answer (question TEXT NOT NULL, tab BIGINT NOT NULL, version BIGINT NOT NULL, "
        "entry BIGINT NOT NULL, PRIMARY KEY (question, tab))",
        # what of `spent` counts no more, because budgets were renewed
        "ALTER TABLE accord_cohort ADD COLUMN renewed BIGINT NOT NULL DEFAULT 0",
    ),
    (
        # what analysts ask a service for, and what has become of it
        "CREATE TABLE accord_request (id TEXT PRIMARY KEY, actor TEXT NOT NULL, key TEXT NOT NULL, "
        "digest TEXT NOT NULL, tab TEXT NOT NULL, share BIGINT NOT NULL, time TEXT NOT NULL, "
        "state TEXT NOT NULL, body TEXT NOT NULL, entry BIGINT NOT NULL, charged TEXT NOT NULL, "
        "answer TEXT NOT NULL, UNIQUE (actor, key))",
        "CREATE INDEX accord_request_state ON accord_request (state)",
    ),
)
"""The n-th brings a ledger from version n − 1 to n. A migration that has been released is never changed."""


OVERCHARGED = "somebody would be charged more than they allow."
"""What it means if the database's own check refuses."""


def busy_text() -> str:
    """What to say where another writer took too long."""
    return f"another process has held it for {PATIENCE} seconds. Try again when it is done."


class Session(ABC):
    """One transaction.

    A fault of the database is a LedgerError where it happens, and quotes nothing of what is stored.
    """

    blob: ClassVar[str]
    """The type of a column of bytes."""
    rows_at_once: ClassVar[int]
    """Rows of a stream that are fetched together."""
    has_tables: ClassVar[str]
    """SQL that counts the tables `accord_meta`."""

    def __init__(self, cursor: Any, store: Store) -> None:
        self.cursor, self.store = cursor, store

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows as they are stored, which may be anything in a damaged ledger: validation.py checks them."""
        self.store.attempt(self.cursor.execute, self.with_placeholders(sql), values)
        return self.store.attempt(self.cursor.fetchall)

    def run(self, sql: str, *values: Any) -> int:
        """The number of rows that were changed."""
        self.store.attempt(self.cursor.execute, self.with_placeholders(sql), values)
        return int(self.cursor.rowcount)

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Rows one by one, where all of them may be too much to hold."""
        cursor = self.stream_cursor()
        try:
            self.store.attempt(cursor.execute, sql)
            while rows := self.store.attempt(cursor.fetchmany, self.rows_at_once):
                yield from rows
        finally:
            # whoever stopped reading may have closed the connection already, and this with it
            with suppress(Exception):
                cursor.close()

    def damaged(self, fact: str) -> LedgerError:
        """What to raise where something stored is not as it was written."""
        return LedgerError(
            f"the ledger {self.store.label} is damaged: {fact}. "
            "Restore it from a backup, or run 'accord ledger verify' to see what is wrong."
        )

    def version(self) -> int:
        """Of the tables here; 0 if there are none."""
        if not self.rows(self.has_tables)[0][0]:
            return 0
        stored = self.rows("SELECT value FROM accord_meta WHERE name = 'schema'")
        if not stored or not re.fullmatch("[0-9]{1,4}", str(stored[0][0])):
            raise self.damaged("it does not say which version it is of")
        return int(stored[0][0])

    def migrate(self) -> None:
        """Bring the tables to this version, all or nothing."""
        version = self.version()
        for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in statements:
                self.run(statement.replace("{blob}", self.blob))
            self.run("DELETE FROM accord_meta WHERE name = 'schema'")
            self.run("INSERT INTO accord_meta (name, value) VALUES ('schema', ?)", str(number))

    @abstractmethod
    def columns(self, sql: str, count: int) -> list[IntArray] | None:
        """The columns of a result, which are of whole numbers; None if there is anything else in them."""

    @abstractmethod
    def insert(self, table: str, names: Sequence[str], columns: Sequence[IntArray]) -> None:
        """Add rows of whole numbers to a table."""

    @abstractmethod
    def charge(self, cohorts: IntArray, charges: IntArray) -> int:
        """Charge cohorts that can afford it; how many there were.

        Public people can always afford it, and ∞ stays ∞.
        """

    @abstractmethod
    def faults(self) -> int:
        """How many the database finds in its own files."""

    @abstractmethod
    def stream_cursor(self) -> Any:
        """A second cursor, for a stream."""

    @abstractmethod
    def with_placeholders(self, sql: str) -> str:
        """SQL whose values are written as ?, as the driver wants them."""


class Held(Protocol):
    """What a process holds until it is closed, or the process ends."""

    def close(self) -> None:
        """Let go."""
        ...


class Store(Protocol):
    """A place for a ledger."""

    label: str
    """For messages: without a password."""

    def attempt(self, call: Callable[..., T], *args: Any) -> T:
        """Call the driver; its faults become LedgerErrors.

        Nothing is chained to them that might quote what is stored.
        """
        ...

    def exists(self) -> bool:
        """Whether anything is there: a ledger, or somebody else's."""
        ...

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A consistent view."""
        ...

    @contextmanager
    def write(self, create: bool = False) -> Iterator[Session]:
        """The only writer; what it did counts if nothing is raised."""
        ...

    def serving(self) -> Held | None:
        """The right to be the one service of this ledger; None: another has it."""
        ...

    def purge(self) -> bool:
        """Leave nothing of deleted rows in the files; whether that was possible."""
        ...
