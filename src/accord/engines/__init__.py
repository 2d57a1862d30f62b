"""Engines read the data: one opened source, its columns, and exact aggregates by SQL.

A source is recognised by where its type comes from, without importing anything it does not need.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from accord.errors import SourceError

Kind: TypeAlias = Literal["number", "text", "boolean", "date", "timestamp", "untyped", "other"]
"""What a column holds. "untyped": text of a file that has no types (CSV); what cannot be read as a number is missing."""


class Engine(Protocol):
    """An opened source."""

    columns: dict[str, Kind]
    source: str
    """The source as it stands after FROM."""

    def fetch(self, sql: str, wide: str | None = None) -> dict[str, Any]:
        """The columns of a result as arrays. `wide` names a column of sums that may be larger than 64 bits: a list of ints."""
        ...

    def rows(self, sql: str, kind: str) -> Any:
        """The rows of a result, as an "arrow" table, a "pandas" data frame or a "numpy" array of numbers."""
        ...

    lends: bool
    """Whether `lend` works here."""

    def lend(self, columns: dict[str, Any]) -> AbstractContextManager[str]:
        """Put arrays beside the source for a while, as a table of the name that is given back."""
        ...

    def state(self) -> object:
        """Something that stays equal while the source is unchanged; None where that cannot be told."""
        ...


SUPPORTED = (
    "a path or glob of Parquet or CSV files, a pandas, polars or Arrow table, a DuckDB relation, or a dict of arrays"
)


def open_source(source: Any) -> Engine:
    """The engine for a source.

    Raises:
        SourceError: nothing here can read it.
    """
    from accord.engines.duckdb import DuckDB

    if isinstance(source, (str, Path)):
        return DuckDB.files(source)
    if isinstance(source, dict):
        return DuckDB.arrays(source)
    module, kind = type(source).__module__.split(".")[0], type(source).__name__
    match module.lstrip("_"), kind:
        case "pandas", "DataFrame":
            return DuckDB.frame(source)
        case "polars", "DataFrame":
            return DuckDB.polars(source)
        case "polars", "LazyFrame":
            raise SourceError("a polars LazyFrame is a query, not a table. Call .collect() on it first.")
        case "pyarrow", "Table" | "RecordBatch":
            return DuckDB.arrow(source)
        case "duckdb", "DuckDBPyRelation":
            return DuckDB.relation(source)
        case _:
            raise SourceError(f"cannot read a {type(source).__qualname__}. A table is made from {SUPPORTED}.")
