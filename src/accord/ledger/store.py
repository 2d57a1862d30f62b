"""Where a ledger lies: SQLite or PostgreSQL, with the same tables and the same SQL.

Writers come one after the other: SQLite by BEGIN IMMEDIATE, PostgreSQL by an advisory lock. A transaction is durable when it is over
(synchronous=FULL, synchronous_commit), or has not happened. Every transaction has a connection of its own, so that a ledger can be used from
threads and forked processes and has nothing to mend after a fault.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import numpy as np

from accord.budget import PUBLIC, IntArray
from accord.errors import LedgerError
from accord.numerals import written

T = TypeVar("T")

PATIENCE = 60
"""Seconds to wait for other writers."""
_ROWS = 2**14
"""So many rows are objects at a time."""
_NOTHING = np.zeros(0, dtype=np.int64)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE accord_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE accord_table (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, version BIGINT NOT NULL, fingerprint TEXT NOT NULL, "
        "people BIGINT NOT NULL, tiers TEXT NOT NULL)",
        # level: the lowest that they have in any table; allowed: that, or what they had spent when they lowered it
        "CREATE TABLE accord_cohort (id BIGINT PRIMARY KEY, level BIGINT NOT NULL, allowed BIGINT NOT NULL, spent BIGINT NOT NULL, "
        "people BIGINT NOT NULL, CHECK (spent >= 0 AND spent <= allowed))",
        "CREATE TABLE accord_member (tab BIGINT NOT NULL, cohort BIGINT NOT NULL, level BIGINT NOT NULL, PRIMARY KEY (tab, cohort))",
        "CREATE TABLE accord_people (chunk BIGINT PRIMARY KEY, hashes {blob} NOT NULL, cohorts {blob} NOT NULL)",
        "CREATE TABLE accord_entry (seq BIGINT PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, "
        "previous TEXT NOT NULL, hash TEXT NOT NULL, seal TEXT NOT NULL)",
    ),
)
"""The n-th brings a ledger from version n − 1 to n. A migration that has been released is never changed."""


class Session:
    """One transaction. A fault of the database is a LedgerError where it happens, and quotes nothing of what is stored."""

    blob = "BLOB"
    at_once = 1
    """Rows of a stream."""
    has_tables = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'accord_meta'"

    def __init__(self, cursor: Any, store: Store) -> None:
        self._cursor, self._store = cursor, store

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """As they are stored, which may be anything in a damaged ledger: `reading` is where they are checked."""
        self._store.attempt(self._cursor.execute, self._spelled(sql), values)
        return self._store.attempt(self._cursor.fetchall)

    def run(self, sql: str, *values: Any) -> int:
        """The number of rows that were changed."""
        self._store.attempt(self._cursor.execute, self._spelled(sql), values)
        return int(self._cursor.rowcount)

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Rows one by one, where all of them may be too much to hold."""
        cursor = self._reader()
        try:
            self._store.attempt(cursor.execute, sql)
            while rows := self._store.attempt(cursor.fetchmany, self.at_once):
                yield from rows
        finally:
            with suppress(
                Exception
            ):  # whoever stopped reading may have closed the connection already, and this with it
                cursor.close()

    def columns(self, sql: str, count: int) -> list[IntArray] | None:
        """The columns of a result, which are of whole numbers; None if there is anything else in them."""
        self._store.attempt(self._cursor.execute, sql)
        parts = []
        while rows := self._store.attempt(self._cursor.fetchmany, _ROWS):
            part = np.array(rows)
            if part.dtype != np.int64:
                return None
            parts.append(part.T.copy())
        return [np.concatenate([part[k] for part in parts] or [_NOTHING]) for k in range(count)]

    def insert(self, table: str, names: Sequence[str], columns: Sequence[IntArray]) -> None:
        """Rows of whole numbers."""
        signs = ", ".join("?" * len(names))
        self._store.attempt(
            self._cursor.executemany,
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({signs})",
            _rows_of(columns),
        )

    def damaged(self, fact: str) -> LedgerError:
        return LedgerError(
            f"the ledger {self._store.label} is damaged: {fact}. "
            "Restore it from a backup, or run 'accord ledger verify' to see what is wrong."
        )

    def faults(self) -> int:
        """How many the database finds in its own files."""
        return sum(row != ("ok",) for row in self.rows("PRAGMA integrity_check"))

    def charge(self, cohorts: IntArray, charges: IntArray) -> int:
        """Charge cohorts that can afford it; how many there were. Public people can always afford it, and ∞ stays ∞."""
        if not cohorts.size:
            return 0
        statement = (
            f"UPDATE accord_cohort SET spent = CASE WHEN ?2 >= {PUBLIC} - spent THEN {PUBLIC} ELSE spent + ?2 END "
            f"WHERE id = ?1 AND ?2 > 0 AND (level = {PUBLIC} OR ?2 <= allowed - spent)"
        )
        self._store.attempt(self._cursor.executemany, statement, _rows_of((cohorts, charges)))
        return int(self._cursor.rowcount)

    def version(self) -> int:
        """Of the tables here; 0 if there are none."""
        if not self.rows(self.has_tables)[0][0]:
            return 0
        found = self.rows("SELECT value FROM accord_meta WHERE name = 'schema'")
        if not found or not re.fullmatch("[0-9]{1,4}", str(found[0][0])):
            raise self.damaged("it does not say which version it is of")
        return int(found[0][0])

    def migrate(self) -> None:
        """Bring the tables to this version, all or nothing."""
        found = self.version()
        for number, statements in enumerate(MIGRATIONS[found:], start=found + 1):
            for statement in statements:
                self.run(statement.replace("{blob}", self.blob))
            self.run("DELETE FROM accord_meta WHERE name = 'schema'")
            self.run("INSERT INTO accord_meta (name, value) VALUES ('schema', ?)", str(number))

    def _reader(self) -> Any:
        """A cursor beside the session's own."""
        return self._cursor.connection.cursor()

    def _spelled(self, sql: str) -> str:
        return sql


def _rows_of(columns: Sequence[IntArray]) -> Iterator[tuple[int, ...]]:
    """Rows of columns, as drivers want them, never all at once."""
    starts = range(0, columns[0].size, _ROWS)
    return chain.from_iterable(
        zip(*(x[start : start + _ROWS].tolist() for x in columns), strict=True) for start in starts
    )


class _PostgresSession(Session):
    blob = "BYTEA"
    at_once = 4
    has_tables = (
        "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'accord_meta' AND schemaname = ANY (current_schemas(false))"
    )

    def columns(self, sql: str, count: int) -> list[IntArray] | None:
        raw = self._store.attempt(self._copied, f"COPY ({sql}) TO STDOUT (FORMAT BINARY)")
        header, end = 11 + 4 + 4, 2  # a signature, flags and the length of what is not there; −1 fields
        fields = [(f"{name}{k}", kind) for k in range(count) for name, kind in (("size", ">i4"), ("value", ">i8"))]
        row = np.dtype([("fields", ">i2"), *fields])
        rows, odd = divmod(len(raw) - header - end, row.itemsize)
        if odd:
            return None
        found = np.frombuffer(raw, dtype=row, offset=header, count=rows)
        if (found["fields"] != count).any() or any((found[f"size{k}"] != 8).any() for k in range(count)):
            return None
        return [found[f"value{k}"].astype(np.int64) for k in range(count)]

    def _copied(self, sql: str) -> bytes:
        with self._cursor.copy(sql) as copy:
            return b"".join(copy)

    def insert(self, table: str, names: Sequence[str], columns: Sequence[IntArray]) -> None:
        pattern = "\t".join("#" * len(names)) + "\n"
        self._store.attempt(self._copy, f"COPY {table} ({', '.join(names)}) FROM STDIN", written(pattern, "", columns))

    def _copy(self, sql: str, pieces: Iterator[bytes]) -> None:
        with self._cursor.copy(sql) as copy:
            for piece in pieces:
                copy.write(piece)

    def charge(self, cohorts: IntArray, charges: IntArray) -> int:
        lists = [f"{{{b''.join(written('#', ',', [column])).decode()}}}" for column in (cohorts, charges)]
        return self.run(
            f"UPDATE accord_cohort SET spent = CASE WHEN c.charge >= {PUBLIC} - spent THEN {PUBLIC} ELSE spent + c.charge END "
            "FROM UNNEST(CAST(? AS bigint[]), CAST(? AS bigint[])) AS c (id, charge) "
            f"WHERE accord_cohort.id = c.id AND c.charge > 0 AND (level = {PUBLIC} OR c.charge <= allowed - spent)",
            *lists,
        )

    def faults(self) -> int:
        return 0  # the server looks after its files itself

    def _reader(self) -> Any:
        return self._cursor.connection.cursor("accord")  # on the server, which sends some rows at a time

    def _spelled(self, sql: str) -> str:
        return sql.replace("?", "%s")


class Store(Protocol):
    label: str
    """For messages: without a password."""

    def attempt(self, call: Callable[..., T], *given: Any) -> T:
        """Call the driver; its faults become LedgerErrors, with nothing chained that might quote what is stored."""
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


def open_store(url: str | Path) -> Store:
    text = str(url)
    scheme = text.split("://")[0] if "://" in text else ""
    if scheme in ("postgresql", "postgres"):
        return Postgres(text)
    if scheme not in ("", "sqlite") or text.removeprefix("sqlite://") in ("", ":memory:"):
        raise LedgerError(
            f"cannot keep a ledger in {(scheme + '://…') if scheme else text!r}. Give a file such as 'accord.db', or 'postgresql://…'."
        )
    return SQLite(Path(text.removeprefix("sqlite://")))


class SQLite:
    def __init__(self, path: Path) -> None:
        self.path, self.label = path.absolute(), repr(str(path))

    def exists(self) -> bool:
        try:
            if self.path.is_dir():
                raise LedgerError(f"{self.label} is a folder. Name a file in it, such as 'accord.db'.")
            if not self.path.exists() or self.path.stat().st_size == 0:
                return False
        except OSError as fault:
            raise LedgerError(
                f"cannot look at {self.label} ({type(fault).__name__}). Check the path, and the right to enter its folder."
            ) from None
        with self.read() as session:  # a creation that was cut short leaves a database without tables
            return bool(session.rows("SELECT COUNT(*) FROM sqlite_master")[0][0])

    @contextmanager
    def read(self) -> Iterator[Session]:
        with closing(self.attempt(self._connect_to_read)) as connection:
            self.attempt(connection.execute, "BEGIN")
            yield Session(connection.cursor(), self)

    @contextmanager
    def write(self, create: bool = False) -> Iterator[Session]:
        with closing(self.attempt(self._connect, "rwc" if create else "rw")) as connection:
            if create:
                self.attempt(_patiently, connection, "PRAGMA journal_mode = WAL")
            self.attempt(connection.execute, "PRAGMA synchronous = FULL")
            self.attempt(connection.execute, "BEGIN IMMEDIATE")
            try:
                yield Session(connection.cursor(), self)
                self.attempt(connection.execute, "COMMIT")
            except BaseException:
                # at once: a statement that failed would hold the lock as long as somebody holds the exception
                self.attempt(connection.rollback)
                raise

    def _connect_to_read(self) -> sqlite3.Connection:
        """Also what cannot be written to."""
        connection = self._connect("rw")
        try:
            connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
        except sqlite3.Error as fault:
            connection.close()
            if not isinstance(fault, sqlite3.OperationalError):
                raise
            connection = self._connect("ro")
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={mode}", uri=True, isolation_level=None, timeout=PATIENCE
        )

    def attempt(self, call: Callable[..., T], *given: Any) -> T:
        try:
            return call(*given)
        except (sqlite3.Error, UnicodeError) as fault:
            code = (getattr(fault, "sqlite_errorname", "") or "SQLITE_ERROR").split("_")[1]
        raise LedgerError(
            f"cannot use the ledger {self.label}: "
            + {
                "BUSY": f"another process has held it for {PATIENCE} seconds. Try again when it is done.",
                "READONLY": "it is read-only here. Give this user the right to write to the file and its folder.",
                "CANTOPEN": "it cannot be opened. Check the path, and the right to write to its folder.",
                "NOTADB": "it is not a SQLite database. Name another file, or restore this one from a backup.",
                "FULL": "the disk is full. Make room and try again.",
                "CORRUPT": "the file is damaged. Restore it from a backup.",
                "CONSTRAINT": "somebody would be charged more than they allow.",
            }.get(code, f"SQLite refuses ({code}). Restore it from a backup, or run 'accord ledger verify'.")
        )


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Wait for other processes where SQLite itself does not."""
    until = monotonic() + PATIENCE
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as fault:
            if not fault.sqlite_errorname.startswith("SQLITE_BUSY") or monotonic() > until:
                raise
        sleep(0.01)


class Postgres:
    def __init__(self, url: str) -> None:
        self.url = url
        self.label = "'postgresql://…'"  # whatever follows may be part of a password
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise LedgerError("a ledger in PostgreSQL needs psycopg. Install accord[postgres].") from None
        self._driver = psycopg
        try:
            conninfo_to_dict(url)
        except (psycopg.ProgrammingError, UnicodeError):
            legible = False
        else:
            legible = True
        if not legible:
            raise LedgerError(
                "the address of the PostgreSQL server cannot be read. Write postgresql://user:password@host/database, with signs such as / and @ in the password as %2F and %40."
            )

    def exists(self) -> bool:
        with self._transaction() as session:
            return session.version() > 0

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY") as session:
            yield session

    @contextmanager
    def write(self, create: bool = False) -> Iterator[Session]:
        with self._transaction(
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",  # so that what is read after the wait is the latest
            f"SET LOCAL lock_timeout = '{PATIENCE}s'",
            "SET LOCAL synchronous_commit = on",
            "SELECT pg_advisory_xact_lock(4127040515)",  # accord's own number: every writer waits here
        ) as session:
            yield session

    @contextmanager
    def _transaction(self, *first: str) -> Iterator[Session]:
        connection = self.attempt(partial(self._driver.connect, self.url, connect_timeout=10))
        with closing(connection):  # which rolls back what was not committed
            cursor = connection.cursor()
            for statement in first:
                self.attempt(cursor.execute, statement)
            yield _PostgresSession(cursor, self)
            self.attempt(connection.commit)

    def attempt(self, call: Callable[..., T], *given: Any) -> T:
        driver = self._driver
        try:
            return call(*given)
        except driver.errors.LockNotAvailable:
            told = f"another process has held it for {PATIENCE} seconds. Try again when it is done."
        except driver.errors.ReadOnlySqlTransaction:
            told = "it is read-only here. Connect to the primary server, as a user who may write."
        except driver.errors.InsufficientPrivilege:
            told = "this user may not do that. Grant the right to create, read and write its tables."
        except driver.errors.CheckViolation:
            told = "somebody would be charged more than they allow."
        except driver.OperationalError as fault:
            told = f"the server cannot be reached or has gone ({type(fault).__name__}). Check the address, the user and the password."
        except (driver.Error, UnicodeError) as fault:
            told = (
                f"PostgreSQL refuses ({type(fault).__name__}). Restore it from a backup, or run 'accord ledger verify'."
            )
        raise LedgerError(f"cannot use the ledger {self.label}: {told}")
