"""DuckDB, embedded: the default engine, for files, data frames, arrays and DuckDB's own relations.

Its own error texts may quote the data, so they are never passed on, not even as the context of an exception: a SourceError
names the source and the class of the fault.
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Any, TypeVar

import duckdb
import numpy as np

from accord.engines import SUPPORTED, Kind, tell
from accord.engines.sql import SQL
from accord.errors import AccordError, SourceError

_NAME = "__accord_source__"
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".tsv")
_RELATIONS = Lock()
_LENT = count()
_GLANCE = 0.1
"""Seconds between two looks at a query that runs."""
_ALIKE = "{} has columns whose names are alike or differ in case only, which DuckDB cannot tell apart. Rename them."
_T = TypeVar("_T")


class _DuckDBSQL(SQL):
    """What DuckDB does faster in its own way."""

    def place(self, column: str, kind: Kind, values: tuple[Any, ...]) -> str:
        plain = super().place(column, kind, values)
        if kind != "text" or not all(isinstance(value, str) for value in values):
            return plain
        return f"list_position([{', '.join(map(self.text, values))}], {self.letters(column)}) - 1"


_SQL = _DuckDBSQL()


class DuckDB:
    """A source opened in DuckDB."""

    source = _NAME
    sql: SQL = _SQL

    def __init__(
        self,
        label: str,
        run: Any,
        columns: dict[str, Kind],
        lock: Lock | None = None,
        state: Callable[[], object] = lambda: None,
    ) -> None:
        """`run` is a connection that has the source under its name, or a function that runs SQL where it is."""
        self.label, self.columns, self.state = label, columns, state
        self._connection = None if callable(run) else run
        self.lends = self._connection is not None
        self._run: Callable[[str], Any] = run if callable(run) else run.execute
        self._lock = lock or Lock()  # a connection holds one result at a time: two threads would swap theirs

    @classmethod
    def files(cls, path: str | Path) -> DuckDB:
        name = str(path)
        if os.path.isdir(name):  # noqa: PTH112  False where Path raises, as of a name that is too long
            raise SourceError(
                f"{name!r} is a folder. Name the files in it by a pattern, such as '{name.rstrip('/')}/*.parquet'."
            )
        there = os.path.exists(name)  # noqa: PTH110
        found = [name] if there else sorted(glob.glob(name, recursive=True))  # noqa: PTH207  any pattern, also an absolute one
        if not found:
            raise SourceError(
                f"there is no file {name!r}. Check the path; a pattern such as 'people/*.parquet' names several files."
            )
        suffix = Path(name.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
        if suffix not in _PARQUET + _CSV:
            raise SourceError(
                f"{name!r} has an ending that accord does not know. It reads {', '.join(_PARQUET + _CSV)} (CSV also as .gz and .zst)."
            )
        sizes = _quietly(repr(name), "Check the right to read it.", lambda: [Path(f).stat().st_size for f in found])
        if 0 in sizes:
            raise SourceError(f"{name!r} is empty. A table needs at least its column names.")
        con = _connect()

        def open_files() -> dict[str, Kind]:
            reader = _parquet_reader(con, name, found) if suffix in _PARQUET else _csv_reader(con, name, found)
            con.execute(f"CREATE VIEW {_NAME} AS SELECT * FROM {reader}")
            return _kinds(con.execute(f"DESCRIBE {_NAME}").fetchall())

        columns = _quietly(repr(name), f"Is it a whole {suffix[1:]} file, and are all files alike?", open_files)

        def state() -> object:
            try:
                stats = [Path(f).stat() for f in found]
            except OSError:
                return object()  # gone: not as it was
            return tuple((s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino) for s in stats)

        return cls(repr(name), con, columns if suffix in _PARQUET else dict.fromkeys(columns, "untyped"), state=state)

    @classmethod
    def arrays(cls, arrays: dict[Any, Any]) -> DuckDB:
        try:
            columns = {str(name): _array(values) for name, values in arrays.items()}
        except ValueError:  # lists of different lengths within one column
            columns = {}
        if len(columns) < len(arrays) and columns:
            raise SourceError(_ALIKE.format("the table"))
        sizes = {values.shape for values in columns.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise SourceError(
                "the arrays of a dict have different lengths, more than one dimension, or there are none. Give columns of equal length."
            )
        made = cls.frame(columns, columns)
        for name, values in columns.items():
            if values.dtype.kind == "O" and not any(x is not None for x in values.tolist()):
                made.columns[name] = "untyped"  # nobody there to tell what it holds
        return made

    @classmethod
    def polars(cls, frame: Any) -> DuckDB:
        if find_spec("pyarrow") is None:
            raise SourceError("reading a polars DataFrame needs pyarrow. Install accord[dataframes].")
        if any("\0" in name for name in frame.columns):  # polars would panic
            raise SourceError("the table has a column with the character NUL in its name. Rename it.")
        return cls.arrow(_quietly("the table", f"A table is made from {SUPPORTED}.", frame.to_arrow))

    @classmethod
    def arrow(cls, table: Any) -> DuckDB:
        made = cls.frame(table, table.schema.names)
        made.state = lambda: "Arrow tables do not change"
        return made

    @classmethod
    def frame(cls, frame: Any, names: Iterable[Any] | None = None) -> DuckDB:
        """`names` of its columns, if it is not a data frame."""
        con = _connect()

        def register() -> dict[str, Kind]:
            con.register(_NAME, frame)
            described = con.execute(f"DESCRIBE {_NAME}").fetchall()
            _need_own_names("the table", frame.columns if names is None else names, described)
            return _kinds(described)

        return cls("the table", con, _quietly("the table", f"A table is made from {SUPPORTED}.", register))

    @classmethod
    def relation(cls, relation: Any) -> DuckDB:
        names = [str(name) for name in relation.columns]
        if len({name.lower() for name in names}) < len(names):
            raise SourceError(_ALIKE.format("the relation"))
        columns = _kinds(zip(names, map(str, relation.types), strict=True))
        return cls("the relation", lambda sql: relation.query(_NAME, sql), columns, _RELATIONS)

    def fetch(self, sql: str, wide: str | None = None) -> dict[str, Any]:
        if wide:  # NumPy has no 128-bit integers: fetch the halves
            sql = (
                f"SELECT * EXCLUDE ({wide}), CAST({wide} >> 32 AS BIGINT) AS high, "
                f"CAST({wide} & 4294967295 AS BIGINT) AS low FROM ({sql})"
            )
        with self._lock:
            columns: dict[str, Any] = _quietly(
                self.label,
                "Check that it is whole and unchanged, and open it again.",
                lambda: self._patiently(lambda: self._run(sql).fetchnumpy()),
            )
        if wide:
            high, low = (np.ma.filled(columns.pop(name), 0).tolist() for name in ("high", "low"))
            columns[wide] = [(h << 32) + r for h, r in zip(high, low, strict=True)]
        return columns

    def rows(self, sql: str, kind: str) -> Any:
        def fetch() -> Any:
            if kind == "numpy":
                columns = self._run(sql).fetchnumpy()
                filled = [np.ma.filled(np.ma.asarray(c).astype(np.float64), np.nan) for c in columns.values()]
                return np.column_stack(filled) if filled else np.zeros((0, 0))
            relation = self._run(sql) if self._connection is None else self._connection.sql(sql)
            table = relation.to_arrow_table()
            return table.to_pandas() if kind == "pandas" else table

        missing = [
            name for name in ("pyarrow", "pandas")[: {"numpy": 0, "arrow": 1}.get(kind, 2)] if not find_spec(name)
        ]
        if missing:
            raise SourceError(f"rows={kind!r} needs {missing[0]}. Install accord[dataframes], or ask for rows='numpy'.")
        with self._lock:
            return _quietly(
                self.label,
                "Check that it is whole, and that rows='numpy' has columns of numbers only.",
                lambda: self._patiently(fetch),
            )

    def _patiently(self, call: Callable[[], _T]) -> _T:
        """What `call` gives, so that Ctrl-C stops the query at once, and whoever watches is told how far it is.

        DuckDB hears a signal only when a query has ended; so it runs in a thread of its own, and this one waits.
        """
        connection = self._connection
        if connection is None or current_thread() is not main_thread():
            return call()
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
            while not done.wait(_GLANCE):
                tell(connection.query_progress())
            worker.join()
        except BaseException:
            connection.interrupt()
            done.wait()
            worker.join()
            raise
        found, fault = outcome
        if fault is not None:
            raise fault
        made: _T = found
        return made

    @contextmanager
    def lend(self, columns: dict[str, Any]) -> Iterator[str]:
        assert self._connection is not None
        name = f"__accord_lent_{next(_LENT)}__"
        with self._lock:
            self._connection.register(name, columns)
        try:
            yield name
        finally:
            with self._lock:
                self._connection.unregister(name)


def _quietly(label: str, hint: str, call: Callable[[], _T]) -> _T:
    """What `call` gives; an engine's error becomes a SourceError that tells nothing of the data."""
    try:
        return call()
    except AccordError:
        raise
    except Exception as error:
        fault = type(error).__name__
        stopped = isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted"
    if stopped:
        raise KeyboardInterrupt
    raise SourceError(f"cannot read {label} ({fault}). {hint}")


def _connect() -> Any:
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "perfect_ht_threshold": "20",  # small integers are grouped by index, without hashing
            "pandas_analyze_sample": "0",  # types guessed from values would make a person's value decide what can be asked
            "disabled_optimizers": "type_pushdown",  # has the CSV reader cast text to numbers and fail on the first that is none
        }
    )
    connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")  # kept, not printed
    return connection


def _array(values: Any) -> Any:
    """A column for DuckDB. What a mask hides, and None among numbers, is missing; text is plain text, not an enumeration."""
    array: Any = np.asarray(values, order="C")  # a reversed view is a column as well
    if isinstance(values, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    if array.dtype.kind == "O":
        there = [x for x in array.tolist() if x is not None]
        if there and all(isinstance(x, (bool, int, float, np.number)) for x in there):
            try:
                return array.astype(np.float64)
            except OverflowError:
                return np.array([_double(x) for x in array.tolist()])
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]")  # days too, which DuckDB does not take from NumPy
    return array.astype(object) if array.dtype.kind in "US" else array


def _double(x: Any) -> float:
    """A number; NaN where there is none, or one that is too large."""
    try:
        return np.nan if x is None else float(x)
    except OverflowError:
        return np.nan


def _listed(paths: list[str]) -> str:
    return "[" + ", ".join(_SQL.text(glob.escape(path)) for path in paths) + "]"


def _parquet_reader(con: Any, name: str, paths: list[str]) -> str:
    """Columns are matched by name and widened to a common type; a folder's name is not a column."""
    found = set()
    for path in paths:
        one = _listed([path])
        described = con.execute(f"DESCRIBE SELECT * FROM read_parquet({one}, hive_partitioning = false)").fetchall()
        schema = con.execute(f"SELECT name, num_children FROM parquet_schema({one})").fetchall()
        _need_own_names(repr(name), _outermost(schema), described)
        found.add(frozenset(row[0] for row in described))
    if len(found) > 1:
        raise SourceError(f"the files of {name!r} do not have the same columns. Give each of them all columns.")
    return f"read_parquet({_listed(paths)}, union_by_name = true, hive_partitioning = false)"


def _outermost(schema: list[tuple[str, int | None]]) -> list[str]:
    """The columns of a Parquet file, from the list of everything that is in it, each before what it holds."""
    names: list[str] = []
    held: list[int] = []
    for name, children in schema[1:]:
        if held:
            held[-1] -= 1
        else:
            names.append(name)
        held += [children] if children else []
        while held and held[-1] == 0:
            held.pop()
    return names


def _need_own_names(label: str, own: Iterable[Any], described: Any) -> None:
    """DuckDB gives a column another name if one before has it in any case, and that may be the name of a third: "e", "E", "E_1"."""
    if any(str(name) not in ("", shown) for name, (shown, *_) in zip(own, described, strict=True)):
        raise SourceError(_ALIKE.format(label))


def _csv_reader(con: Any, name: str, paths: list[str]) -> str:
    """Nothing is guessed from the data: guessed types would make a person's value decide whether a release fails, and a guessed
    header can be a person's row. The first line is the header; it tells the delimiter; everything is text."""
    one_line = "auto_detect = false, header = false, quote = '', escape = '', delim = '\x01', strict_mode = false, columns = {'line': 'VARCHAR'}"
    headers = [
        con.execute(f"SELECT line FROM read_csv({_listed([path])}, {one_line}) LIMIT 1").fetchall() for path in paths
    ]
    header = (headers[0][0][0] if headers[0] else "") or ""
    header = header.lstrip("\ufeff")
    fields = {d: next(csv.reader([header], delimiter=d), []) for d in ("\t" if ".tsv" in name.lower() else ",;\t|")}
    delimiter = max(
        fields, key=lambda d: (not any('"' in field for field in fields[d]), len(fields[d]))
    )  # none within quotes
    names = [column or f"column{k}" for k, column in enumerate(fields[delimiter])]
    if headers.count(headers[0]) < len(headers) or len({column.lower() for column in names}) < len(names) or not names:
        raise SourceError(
            f"the first lines of {name!r} are not one list of different column names. Give every file the same header."
        )
    if any(_is_number(column) for column in names):  # then it is more likely somebody's row, which is not to be shown
        raise SourceError(
            f"the first line of {name!r} has a number in it. It must be a header of column names: add one."
        )
    columns = ", ".join(f"{_SQL.text(column)}: 'VARCHAR'" for column in names)
    return (
        f"read_csv({_listed(paths)}, auto_detect = false, header = true, hive_partitioning = false, delim = {_SQL.text(delimiter)}, "
        f"quote = '\"', escape = '\"', nullstr = '', columns = {{{columns}}})"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kinds(described: Any) -> dict[str, Kind]:
    return {name: _kind(kind) for name, kind, *_ in described}


def _kind(type_name: str) -> Kind:
    if type_name.endswith("]"):  # a list, of whatever
        return "other"
    match type_name.split("(")[0]:
        case (
            "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "HUGEINT" | "UTINYINT" | "USMALLINT" | "UINTEGER" | "UBIGINT" | "UHUGEINT"
            | "FLOAT" | "DOUBLE" | "DECIMAL"
        ):  # fmt: skip
            return "number"
        case "VARCHAR" | "ENUM":
            return "text"
        case "BOOLEAN":
            return "boolean"
        case "DATE":
            return "date"
        case "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS":
            return "timestamp"
        case _:
            return "other"
