"""A ledger in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np

from accord.budget import PUBLIC, IntArray
from accord.errors import LedgerError, without_password
from accord.ledger import store
from accord.ledger.alone import lock
from accord.ledger.store import Held, Session

T = TypeVar("T")

_ROWS = 2**14
"""So many rows are objects at a time."""
_REASONS = {
    "READONLY": "it is read-only here. Give this user the right to write to the file and its folder.",
    "CANTOPEN": "it cannot be opened. Check the path, and the right to write to its folder.",
    "NOTADB": "it is not a SQLite database. Name another file, or restore this one from a backup.",
    "FULL": "the disk is full. Make room and try again.",
    "CORRUPT": "the file is damaged. Restore it from a backup.",
    "CONSTRAINT": store.OVERCHARGED,
}
"""What SQLite's faults mean here, by their names."""
_EMPTY = np.zeros(0, dtype=np.int64)


class SQLiteSession(Session):
    """A transaction of SQLite."""

    blob = "BLOB"
    rows_at_once = 1
    has_tables = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'accord_meta'"

    def columns(self, sql: str, count: int) -> list[IntArray] | None:
        self.store.attempt(self.cursor.execute, sql)
        blocks = []
        while rows := self.store.attempt(self.cursor.fetchmany, _ROWS):
            block = np.array(rows)
            if block.dtype != np.int64:
                return None
            blocks.append(block.T.copy())
        return [np.concatenate([block[k] for block in blocks] or [_EMPTY]) for k in range(count)]

    def insert(self, table: str, names: Sequence[str], columns: Sequence[IntArray]) -> None:
        placeholders = ", ".join("?" * len(names))
        statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({placeholders})"
        self.store.attempt(self.cursor.executemany, statement, _rows_of(columns))

    def charge(self, cohorts: IntArray, charges: IntArray) -> int:
        if not cohorts.size:
            return 0
        statement = (
            "UPDATE accord_cohort "
            f"SET spent = CASE WHEN ?2 >= {PUBLIC} - spent THEN {PUBLIC} ELSE spent + ?2 END "
            f"WHERE id = ?1 AND ?2 > 0 AND (level = {PUBLIC} OR ?2 <= allowed - spent)"
        )
        self.store.attempt(self.cursor.executemany, statement, _rows_of((cohorts, charges)))
        return int(self.cursor.rowcount)

    def faults(self) -> int:
        return sum(row != ("ok",) for row in self.rows("PRAGMA integrity_check"))

    def stream_cursor(self) -> Any:
        return self.cursor.connection.cursor()

    def with_placeholders(self, sql: str) -> str:
        return sql


def _rows_of(columns: Sequence[IntArray]) -> Iterator[tuple[int, ...]]:
    """Rows of columns, as drivers want them, never all at once."""
    starts = range(0, columns[0].size, _ROWS)
    return chain.from_iterable(
        zip(*(column[start : start + _ROWS].tolist() for column in columns), strict=True) for start in starts
    )


class SQLite:
    """A file: see `Store`."""

    def __init__(self, path: Path) -> None:
        self.path, self.label = path.absolute(), repr(without_password(str(path)))

    def exists(self) -> bool:
        try:
            if self.path.is_dir():
                raise LedgerError(f"{self.label} is a folder. Name a file in it, such as 'accord.db'.")
            if not self.path.exists() or self.path.stat().st_size == 0:
                return False
        except OSError as fault:
            raise LedgerError(
                f"cannot look at {self.label} ({type(fault).__name__}). "
                "Check the path, and the right to enter its folder."
            ) from None
        with self.read() as session:  # a creation that was cut short leaves a database without tables
            return bool(session.rows("SELECT COUNT(*) FROM sqlite_master")[0][0])

    @contextmanager
    def read(self) -> Iterator[Session]:
        with closing(self.attempt(self._connect_to_read)) as connection:
            self.attempt(connection.execute, "BEGIN")
            yield SQLiteSession(connection.cursor(), self)

    @contextmanager
    def write(self, create: bool = False) -> Iterator[Session]:
        with closing(self.attempt(self._connect, "rwc" if create else "rw")) as connection:
            if create:
                self.attempt(_patiently, connection, "PRAGMA journal_mode = WAL")
            self.attempt(connection.execute, "PRAGMA synchronous = FULL")
            self.attempt(connection.execute, "BEGIN IMMEDIATE")
            try:
                yield SQLiteSession(connection.cursor(), self)
                self.attempt(connection.execute, "COMMIT")
            except BaseException:
                # at once: a statement that failed would hold the lock as long as somebody holds the exception
                self.attempt(connection.rollback)
                raise

    def serving(self) -> Held | None:
        return lock(Path(f"{self.path}.serving"))

    def purge(self) -> bool:
        """Pages that are not used any more go with VACUUM, older versions of pages with the -wal."""
        with suppress(sqlite3.Error), closing(self._connect("rw")) as connection:
            connection.execute("VACUUM")
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not is_busy
        return False

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
            f"file:{quote(str(self.path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=store.PATIENCE,
        )

    def attempt(self, call: Callable[..., T], *args: Any) -> T:
        try:
            return call(*args)
        except (sqlite3.Error, UnicodeError) as fault:
            code = (getattr(fault, "sqlite_errorname", "") or "SQLITE_ERROR").split("_")[1]
        raise LedgerError(f"cannot use the ledger {self.label}: {_reason(code)}")


def _reason(code: str) -> str:
    """What a fault of SQLite means, and what to do about it."""
    if code == "BUSY":
        return store.busy_text()
    refusal = f"SQLite refuses ({code}). Restore it from a backup, or run 'accord ledger verify'."
    return _REASONS.get(code, refusal)


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Wait for other processes where SQLite itself does not."""
    until = monotonic() + store.PATIENCE
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as fault:
            if not fault.sqlite_errorname.startswith("SQLITE_BUSY") or monotonic() > until:
                raise
        sleep(0.01)
