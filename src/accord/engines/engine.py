"""Engine: one opened source, its columns, and exact aggregates of it by SQL.

A source is recognised by where its type comes from, without importing anything it does not need. A further
engine is one file beside this one, with a Dialect and an Engine, and an entry in SOURCES for each kind of
source it opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from accord.errors import SourceError

if TYPE_CHECKING:
    from accord.engines.dialect import Dialect

Kind: TypeAlias = Literal["number", "text", "boolean", "date", "timestamp", "untyped", "other"]
"""What a column holds.

"untyped": text of a file that has no types (CSV); what cannot be read as a number is missing.
"""
Columns: TypeAlias = Mapping[str, Kind]


class Engine(Protocol):
    """An opened source."""

    columns: dict[str, Kind]
    dialect: Dialect
    """How the engine's SQL is written."""
    source: str
    """The source as it stands after FROM."""
    lends: bool
    """Whether `lend` works here."""

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        """The columns of a result as arrays; `wide` ones, which may exceed 64 bits, as lists of ints."""
        ...

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        """Rows of the source, or of a part of it, in one of three forms.

        The forms are an "arrow" table, a "pandas" data frame and a "numpy" array of numbers. Whatever the
        rows hold, this does not fail: what a form has no room for is missing in it.
        """
        ...

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
    "a path or glob of Parquet or CSV files, a pandas, polars or Arrow table, a DuckDB relation, a dict of "
    "arrays, "
    "a Spark DataFrame, spark://catalog.table, or postgresql://…?table=name"
)


class Source(NamedTuple):
    """A kind of source: how it is recognised, and what opens it."""

    recognises: Callable[[Any], bool]
    module: str
    """The engine's, in this folder; imported only for a source of this kind."""
    opener: str
    """In it: a function, or a method of a class."""


def _begins(*schemes: str) -> Callable[[Any], bool]:
    return lambda source: isinstance(source, str) and source.startswith(schemes)


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda source: isinstance(source, types)


def _comes_from(package: str, *names: str) -> Callable[[Any], bool]:
    """By the package and the name of its type, so that the package need not be there."""

    def recognises(source: Any) -> bool:
        own = type(source).__module__.split(".")[0].lstrip("_")
        return own == package and type(source).__name__ in names

    return recognises


SOURCES: tuple[Source, ...] = (
    Source(_begins("postgresql://", "postgres://"), "postgres", "Postgres.url"),
    Source(_begins("spark://"), "spark", "Spark.table"),
    Source(_is(str, Path), "duckdb", "DuckDB.files"),
    Source(_is(dict), "duckdb", "DuckDB.arrays"),
    Source(_comes_from("pandas", "DataFrame"), "duckdb", "DuckDB.pandas"),
    Source(_comes_from("polars", "DataFrame", "LazyFrame"), "duckdb", "DuckDB.polars"),
    Source(_comes_from("pyarrow", "Table", "RecordBatch"), "duckdb", "DuckDB.arrow"),
    Source(_comes_from("duckdb", "DuckDBPyRelation"), "duckdb", "DuckDB.relation"),
    Source(_comes_from("pyspark", "DataFrame"), "spark", "Spark.frame"),
)
"""The first that recognises a source opens it."""


def open_source(source: Any) -> Engine:
    """The engine for a source.

    Raises:
        SourceError: nothing here can read it.
    """
    for kind in SOURCES:
        if kind.recognises(source):
            engine: Engine = attrgetter(kind.opener)(import_module(f"accord.engines.{kind.module}"))(source)
            return engine
    raise SourceError(f"cannot read a {type(source).__qualname__}. A table is made from {SUPPORTED}.")
