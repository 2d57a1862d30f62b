"""Engines read the data: one opened source, its columns, and exact aggregates by SQL.

A source is recognised by where its type comes from, without importing anything it does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from accord.errors import SourceError

if TYPE_CHECKING:
    from accord.engines.sql import SQL

Kind: TypeAlias = Literal["number", "text", "boolean", "date", "timestamp", "untyped", "other"]
"""What a column holds. "untyped": text of a file that has no types (CSV); what cannot be read as a number is missing."""


class Engine(Protocol):
    """An opened source."""

    columns: dict[str, Kind]
    sql: SQL
    """How the engine's SQL is written."""
    source: str
    """The source as it stands after FROM."""

    def fetch(self, sql: str, wide: str | None = None) -> dict[str, Any]:
        """The columns of a result as arrays. `wide` names a column of sums that may be larger than 64 bits: a list of ints."""
        ...

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        """Rows of the source, or of a part of it: an "arrow" table, a "pandas" data frame or a "numpy" array of numbers.

        Whatever the rows hold, this does not fail: what a form has no room for is missing in it.
        """
        ...

    lends: bool
    """Whether `lend` works here."""

    def lend(self, columns: dict[str, Any]) -> AbstractContextManager[str]:
        """Put arrays beside the source for a while, as a table of the name that is given back."""
        ...

    def state(self) -> object:
        """Something that stays equal while the source is unchanged; None where that cannot be told."""
        ...


_WATCHER: ContextVar[Callable[[float], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(by: Callable[[float], None]) -> Iterator[None]:
    """While this lasts, `by` is told every now and then how many percent of a long scan are done."""
    before = _WATCHER.set(by)
    try:
        yield
    finally:
        _WATCHER.reset(before)


def tell(percent: float) -> None:
    """For engines: how far a scan is."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(percent)


SUPPORTED = (
    "a path or glob of Parquet or CSV files, a pandas, polars or Arrow table, a DuckDB relation, a dict of arrays, "
    "a Spark DataFrame, spark://catalog.table, or postgresql://…?table=name"
)


def open_source(source: Any) -> Engine:
    """The engine for a source.

    Raises:
        SourceError: nothing here can read it.
    """
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        from accord.engines.postgres import Postgres

        return Postgres.url(source)
    from accord.engines.duckdb import DuckDB

    if isinstance(source, str) and source.startswith("spark://"):
        from accord.engines.spark import Spark

        return Spark.table(source)
    if isinstance(source, (str, Path)):
        return DuckDB.files(source)
    if isinstance(source, dict):
        return DuckDB.arrays(source)
    module, kind = type(source).__module__.split(".")[0], type(source).__name__
    match module.lstrip("_"), kind:
        case "pandas", "DataFrame":
            return DuckDB.pandas(source)
        case "polars", "DataFrame":
            return DuckDB.polars(source)
        case "polars", "LazyFrame":
            raise SourceError("a polars LazyFrame is a query, not a table. Call .collect() on it first.")
        case "pyarrow", "Table" | "RecordBatch":
            return DuckDB.arrow(source)
        case "duckdb", "DuckDBPyRelation":
            return DuckDB.relation(source)
        case "pyspark", "DataFrame":
            from accord.engines.spark import Spark

            return Spark.frame(source)
        case _:
            raise SourceError(f"cannot read a {type(source).__qualname__}. A table is made from {SUPPORTED}.")
