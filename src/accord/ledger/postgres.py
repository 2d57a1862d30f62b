"""A ledger on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from accord.budget import PUBLIC, IntArray
from accord.errors import LedgerError
from accord.ledger import store
from accord.ledger.store import Held, Session
from accord.numerals import written

T = TypeVar("T")


class PostgresSession(Session):
    """A transaction of PostgreSQL."""

    blob = "BYTEA"
    rows_at_once = 4
    has_tables = """
        SELECT COUNT(*) FROM pg_tables
        WHERE tablename = 'accord_meta' AND schemaname = ANY (current_schemas(false))
    """

    def columns(self, sql: str, count: int) -> list[IntArray] | None:
        raw = self.store.attempt(self._copy_out, f"COPY ({sql}) TO STDOUT (FORMAT BINARY)")
        header, end = 11 + 4 + 4, 2  # a signature, flags and the length of what is not there; −1 fields
        sizes_and_values = (("size", ">i4"), ("value", ">i8"))
        fields = [(f"{name}{k}", kind) for k in range(count) for name, kind in sizes_and_values]
        row = np.dtype([("fields", ">i2"), *fields])
        count_of_rows, odd = divmod(len(raw) - header - end, row.itemsize)
        if odd:
            return None
        rows = np.frombuffer(raw, dtype=row, offset=header, count=count_of_rows)
        if (rows["fields"] != count).any() or any((rows[f"size{k}"] != 8).any() for k in range(count)):
            return None
        return [rows[f"value{k}"].astype(np.int64) for k in range(count)]

    def _copy_out(self, sql: str) -> bytes:
        with self.cursor.copy(sql) as copy:
            return b"".join(copy)

    def insert(self, table: str, names: Sequence[str], columns: Sequence[IntArray]) -> None:
        pattern = "\t".join("#" * len(names)) + "\n"
        statement = f"COPY {table} ({', '.join(names)}) FROM STDIN"
        self.store.attempt(self._copy_in, statement, written(pattern, "", columns))

    def _copy_in(self, sql: str, pieces: Iterator[bytes]) -> None:
        with self.cursor.copy(sql) as copy:
            for piece in pieces:
                copy.write(piece)

    def charge(self, cohorts: IntArray, charges: IntArray) -> int:
        lists = [f"{{{b''.join(written('#', ',', [column])).decode()}}}" for column in (cohorts, charges)]
        return self.run(
            "UPDATE accord_cohort SET spent = "
            f"CASE WHEN c.charge >= {PUBLIC} - spent THEN {PUBLIC} ELSE spent + c.charge END "
            "FROM UNNEST(CAST(? AS bigint[]), CAST(? AS bigint[])) AS c (id, charge) "
            "WHERE accord_cohort.id = c.id AND c.charge > 0 "
            f"AND (level = {PUBLIC} OR c.charge <= allowed - spent)",
            *lists,
        )

    def faults(self) -> int:
        return 0  # the server looks after its files itself

    def stream_cursor(self) -> Any:
        return self.cursor.connection.cursor("accord")  # on the server, which sends some rows at a time

    def with_placeholders(self, sql: str) -> str:
        return sql.replace("?", "%s")


class Postgres:
    """A database on a server: see `Store`."""

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
            is_legible = False  # raised below: a fault that is chained would quote the password
        else:
            is_legible = True
        if not is_legible:
            raise LedgerError(
                "the address of the PostgreSQL server cannot be read. "
                "Write postgresql://user:password@host/database, "
                "with signs such as / and @ in the password as %2F and %40."
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
            # so that what is read after the wait is the latest
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            f"SET LOCAL lock_timeout = '{store.PATIENCE}s'",
            "SET LOCAL synchronous_commit = on",
            "SELECT pg_advisory_xact_lock(4127040515)",  # accord's own number: every writer waits here
        ) as session:
            yield session

    def serving(self) -> Held | None:
        connection = self._connection()
        try:
            connection.autocommit = True  # a lock of the connection, not of a transaction that stays open
            asked = self.attempt(connection.execute, "SELECT pg_try_advisory_lock(4127040516)")
            (is_first,) = self.attempt(asked.fetchone)
        except BaseException:
            connection.close()
            raise
        if is_first:
            return cast(Held, connection)
        connection.close()
        return None

    def purge(self) -> bool:
        """What becomes of rows that were deleted is for the server's owner to say: VACUUM FULL."""
        return False

    @contextmanager
    def _transaction(self, *settings: str) -> Iterator[Session]:
        with closing(self._connection()) as connection:  # which rolls back what was not committed
            cursor = connection.cursor()
            for statement in settings:
                self.attempt(cursor.execute, statement)
            yield PostgresSession(cursor, self)
            self.attempt(connection.commit)

    def _connection(self) -> Any:
        return self.attempt(partial(self._driver.connect, self.url, connect_timeout=10))

    def attempt(self, call: Callable[..., T], *args: Any) -> T:
        driver = self._driver
        try:
            return call(*args)
        except driver.errors.LockNotAvailable:
            reason = store.busy_text()
        except driver.errors.ReadOnlySqlTransaction:
            reason = "it is read-only here. Connect to the primary server, as a user who may write."
        except driver.errors.InsufficientPrivilege:
            reason = "this user may not do that. Grant the right to create, read and write its tables."
        except driver.errors.CheckViolation:
            reason = store.OVERCHARGED
        except driver.OperationalError as fault:
            advice = "Check the address, the user and the password."
            reason = f"the server cannot be reached or has gone ({type(fault).__name__}). {advice}"
        except (driver.Error, UnicodeError) as fault:
            advice = "Restore it from a backup, or run 'accord ledger verify'."
            reason = f"PostgreSQL refuses ({type(fault).__name__}). {advice}"
        raise LedgerError(f"cannot use the ledger {self.label}: {reason}")
