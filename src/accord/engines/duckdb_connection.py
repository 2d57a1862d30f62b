"""accord's own DuckDB: a database in memory, asked so that Ctrl-C stops it and an error quotes no data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Any, TypeVar

import duckdb

from accord.engines.engine import is_limited, seconds_left, tell, unreadable
from accord.errors import AccordError, SourceError

_POLL = 0.1
"""Seconds between two looks at a query that runs."""
_T = TypeVar("_T")


def quietly(label: str, hint: str, call: Callable[[], _T]) -> _T:
    """What `call` gives; an error tells nothing of the data."""
    try:
        return call()
    except AccordError:
        raise
    except Exception as error:
        fault = type(error).__name__
        stopped = isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted"
    if stopped:
        raise KeyboardInterrupt
    raise unreadable(label, fault, hint)


def patiently(connection: Any, call: Callable[[], _T]) -> _T:
    """What `call` gives, while Ctrl-C stops the query at once and whoever watches is told how far it is.

    So does the end of the time that it may take.

    DuckDB hears a signal only when a query has ended; so it runs in a thread of its own, and this one waits.
    """
    if current_thread() is not main_thread() and not is_limited():
        return call()
    seconds_left()
    outcome: list[Any] = []
    done = Event()  # a join that Ctrl-C interrupts can take a running thread for finished

    def run() -> None:
        try:
            outcome.extend((call(), None))
        except BaseException as fault:
            outcome.extend((None, fault))
        done.set()

    worker = Thread(target=run)
    worker.start()
    try:
        while not done.wait(_POLL):
            tell(connection.query_progress())
            seconds_left()
        worker.join()
    except BaseException:
        connection.interrupt()
        done.wait()
        worker.join()
        raise
    answer: _T
    answer, fault = outcome
    if fault is not None:
        raise fault
    return answer


class OwnDatabase:
    """accord's own database in memory.

    Opening one takes 25 ms, another connection to it less than one; each table has a connection, and names of
    its own.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.database: Any = None
        self.inherited: list[Any] = []
        self._folders: list[str] | None = None

    def connect(self) -> Any:
        """A new connection."""
        with self._lock:
            if self.database is None:
                self.database = self._opened()
            try:
                return self._connected()
            except duckdb.FatalException:  # a fault in another table has closed the database for good
                self.database = self._opened()
                return self._connected()

    def forget(self) -> None:
        """After a fork: the parent's threads are not here.

        Its database is left alone, because closing it would wait for them.
        """
        self.inherited.append(self.database)
        self._lock, self.database = Lock(), None

    def restrict(self, folders: Iterable[str]) -> None:
        """Let this process read no other files than those of these folders, for good: no setting undoes it.

        Raises:
            SourceError: a table is open already.
        """
        with self._lock:
            if self.database is not None:
                raise SourceError("DuckDB is in use already. Restrict it before any table is opened.")
            self._folders = sorted(folders)

    def _opened(self) -> Any:
        database = duckdb.connect(
            config={
                "autoinstall_known_extensions": "false",
                "perfect_ht_threshold": "20",  # small integers are grouped by index, without hashing
                # types guessed from values would make a person's value decide what can be asked
                "pandas_analyze_sample": "0",
                # has the CSV reader cast text to numbers and fail on the first that is none
                "disabled_optimizers": "type_pushdown",
            }
        )
        if self._folders is not None:
            quoted = ", ".join("'{}'".format(folder.replace("'", "''")) for folder in self._folders)
            database.execute(f"SET allowed_directories = [{quoted}]")
            database.execute("SET autoload_known_extensions = false")
            database.execute("SET enable_external_access = false")
            database.execute("SET lock_configuration = true")
        return database

    def _connected(self) -> Any:
        cursor = self.database.cursor()
        cursor.execute("SELECT 1")  # raises where the database is closed for good
        count_progress(cursor)
        return cursor


def count_progress(connection: Any) -> None:
    """Have `query_progress` of a connection tell how far a query is; it is counted, not printed.

    In Jupyter without ipywidgets a connection may refuse that. Then nobody is told a percentage.
    """
    with suppress(duckdb.Error):
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")


OWN = OwnDatabase()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=OWN.forget)
