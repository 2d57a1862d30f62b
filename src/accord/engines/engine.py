"""Engine: one opened source, its columns, and exact aggregates of it by SQL.

A source is recognised by where its type comes from, without importing anything it does not need. A further
engine is a Dialect and an Engine, in two files of this folder, and an entry in SOURCES for each kind of
source that it opens: docs/engines.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from accord.engines.csv_options import CSV
from accord.engines.files import are_paths
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

    label: str
    """What errors call it: without a password."""
    columns: dict[str, Kind]
    """What each column of the user's holds."""
    dialect: Dialect
    """How the engine's SQL is written."""
    source: str
    """The source as it stands after FROM, with the dialect's names of columns: c0, c1, …"""
    lends: bool
    """Whether `lend` works here."""
    complete: frozenset[str]
    """Columns in which a constraint allows no missing value.

    Never those of which a file's schema or a type says so: writers derive these from the values.
    """

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        """The columns of a result as arrays; `wide` ones, which may exceed 64 bits, as lists of ints.

        Where a column has NULL, its array is masked there; in a wide one it is 0. Whole numbers are int64,
        doubles float64, texts objects.

        Raises:
            SourceError: `unreadable`.
        """
        ...

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        """Rows of the source, or of a part of it, in one of three forms.

        The forms are an "arrow" table, a "pandas" data frame and a "numpy" array of numbers. Whatever the
        rows hold, this does not fail: what a form has no room for is missing in it.
        """
        ...

    def lend(self, columns: dict[str, Any]) -> AbstractContextManager[str]:
        """Lend the engine arrays for a while, as a table of the name that is given back."""
        ...

    def open_register(self, source: Any, csv: CSV | None) -> Engine:
        """A consent register that can be joined with this source, opened; `csv`: how it is read as a file.

        Raises:
            SourceError: it cannot be opened, or is where this engine does not reach.
        """
        ...

    def beside(self, register: Engine, sql: str) -> str:
        """What `sql`, asked of a register of `open_register`, gives: as it stands after FROM here."""
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


_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """While this lasts, and no longer than these seconds, engines read; then they stop and refuse."""
    before = _DEADLINE.set(monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(before)


def is_limited() -> bool:
    """For engines: whether somebody has to look at the time."""
    return _DEADLINE.get() is not None


def seconds_left() -> float | None:
    """For engines: how long reading may still take; None: as long as it takes.

    Raises:
        SourceError: it may not any more.
    """
    deadline = _DEADLINE.get()
    if deadline is None:
        return None
    left = deadline - monotonic()
    if left <= 0:
        raise SourceError("reading took longer than it may. Ask for less at a time.")
    return left


def unreadable(label: str, fault: str, hint: str) -> SourceError:
    """For engines: what becomes of a fault, by the name of its class.

    Its text may quote the data. So it is neither passed on nor the context of what is raised.
    """
    return SourceError(f"cannot read {label} ({fault}). {hint}")


SUPPORTED = (
    "a path, glob, folder or list of Parquet or CSV files, a pandas, polars or Arrow table, "
    "a DuckDB relation, a dict of arrays, a Spark DataFrame, spark://catalog.table, or "
    "postgresql://…?table=name"
)


class Source(NamedTuple):
    """A kind of source: how it is recognised, and what opens it."""

    recognises: Callable[[Any], bool]
    module: str
    """The engine's, in this folder; imported only for a source of this kind."""
    opener: str
    """In it: a function, or a method of a class."""
    takes_csv: bool = False
    """Whether it may be CSV files, and is told how these are read."""


def _begins(*schemes: str) -> Callable[[Any], bool]:
    return lambda source: isinstance(source, str) and source.startswith(schemes)


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda source: isinstance(source, types)


def _comes_from(package: str, *names: str) -> Callable[[Any], bool]:
    """By the package and the name of its type, so that the package need not be there."""

    def recognises(source: Any) -> bool:
        root = type(source).__module__.split(".")[0].lstrip("_")
        return root == package and type(source).__name__ in names

    return recognises


SOURCES: tuple[Source, ...] = (
    Source(_begins("postgresql://", "postgres://"), "postgres", "Postgres.url"),
    Source(_begins("spark://"), "spark", "Spark.table"),
    Source(are_paths, "duckdb", "DuckDB.files", takes_csv=True),
    Source(_is(dict), "duckdb", "DuckDB.arrays"),
    Source(_comes_from("pandas", "DataFrame"), "duckdb", "DuckDB.pandas"),
    Source(_comes_from("polars", "DataFrame", "LazyFrame"), "duckdb", "DuckDB.polars"),
    Source(_comes_from("pyarrow", "Table", "RecordBatch"), "duckdb", "DuckDB.arrow"),
    Source(_comes_from("duckdb", "DuckDBPyRelation"), "duckdb", "DuckDB.relation"),
    Source(_comes_from("pyspark", "DataFrame"), "spark", "Spark.frame"),
)
"""The first that recognises a source opens it."""


def refuse_csv(csv: CSV | None) -> None:
    """Refuse to read as a CSV file what is none."""
    if csv is not None:
        raise SourceError(NOT_CSV.format("the table is none"))


NOT_CSV = "csv= says how CSV files are read, and {}. Leave it out."


def open_source(source: Any, csv: CSV | None = None) -> Engine:
    """The engine for a source; `csv`: how CSV files are read.

    Raises:
        SourceError: nothing here can read it.
    """
    for kind in SOURCES:
        if kind.recognises(source):
            opener = attrgetter(kind.opener)(import_module(f"accord.engines.{kind.module}"))
            if not kind.takes_csv:
                refuse_csv(csv)
            engine: Engine = opener(source, csv) if kind.takes_csv else opener(source)
            return engine
    raise SourceError(f"cannot read a {type(source).__qualname__}. A table is made from {SUPPORTED}.")


_OF_THIS_PROCESS = (_comes_from("duckdb", "DuckDBPyRelation"), _comes_from("pyspark", "DataFrame"))


def can_be_opened_again(source: Any) -> bool:
    """Whether another process can open it: a path, a URL, or data in memory, of which it gets a copy."""
    return not any(belongs(source) for belongs in _OF_THIS_PROCESS)


def absolute(source: Any) -> Any:
    """A path, or each of several, as it is found from any folder; anything else as it is."""
    if isinstance(source, list):
        return [absolute(path) for path in source]
    is_path = isinstance(source, Path) or (isinstance(source, str) and "://" not in source)
    return os.path.abspath(source) if is_path else source  # noqa: PTH100  any text, also a pattern


def has_place(source: Any) -> bool:
    """Whether it is a path, several, or an address: what other processes find under the same name."""
    return are_paths(source) or (isinstance(source, str) and "://" in source)


def without_password(source: Any) -> Any:
    """Paths and addresses as texts, without who may read them."""
    if isinstance(source, list | tuple):
        return [without_password(each) for each in source]
    return re.sub(r"//[^/@]*@", "//", str(source))


def source_label(source: Any, opened: Engine) -> str:
    """What a source is called in documents: the name of its file, wherever that lies, or what errors call it.

    Never an address: it may have a password in it.
    """
    if not are_paths(source) or any("://" in str(path) for path in _listed(source)):
        return opened.label
    first, *others = (Path(path).name for path in _listed(source))
    return repr(first) + (f" and {len(others)} more" if others else "")


def _listed(source: Any) -> list[Any]:
    return list(source) if isinstance(source, list | tuple) else [source]
