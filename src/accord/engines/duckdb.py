"""DuckDB, embedded: the default engine, for files, data frames, arrays and DuckDB's own relations.

Everything runs in a connection that is accord's own, also what is asked of a relation, whose rows are streamed into it: functions, macros and settings of
somebody else's connection could make anything of accord's SQL.

What kind of values a column holds is said by its type, never by its values: a person's value would decide what can be asked. A list, an array of objects
and a column of objects have no type. An array of text, or of true and false, counts as one without a type, too, because it becomes one of objects when a
value is missing.

Its own error texts may quote the data, so they are never passed on, not even as the context of an exception: a SourceError
names the source and the class of the fault.
"""

from __future__ import annotations

import csv
import glob
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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

_GIVEN, _NAME = "accord_given", "accord_source"
"""What was given, with its own names of columns; and the same with generated ones (sql.py), which is all that other SQL sees."""
_USED, _LITERAL = re.compile(r"\bc(\d+)\b"), re.compile(r"'(?:[^']|'')*'")
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
        if kind != "text" or not all(isinstance(value, str) for value in values):
            return super().place(column, kind, values)
        return f"list_position([{', '.join(map(self.text, values))}], {self.letters(column)}) - 1"


_SQL = _DuckDBSQL({})


@dataclass(frozen=True)
class Column:
    """A column of what was given: DuckDB's type of it, and what kind of values it holds."""

    type: str
    kind: Kind

    def selected(self, name: str) -> str:
        """Its SQL in the innermost SELECT. True and False of a column without a type are spelled as Python spells them."""
        quoted = _SQL.quote(name)
        if self.kind == "untyped" and self.type == "BOOLEAN":
            return f"CASE WHEN {quoted} THEN 'True' WHEN NOT {quoted} THEN 'False' END"
        return quoted


class DuckDB:
    """A source opened in DuckDB."""

    source = _NAME
    lends = True

    def __init__(
        self,
        label: str,
        connection: Any,
        columns: dict[str, Column],
        state: Callable[[], object] = lambda: None,
        relation: Any = None,
    ) -> None:
        """`connection` is accord's own, with what was given under its name; a `relation` is streamed in when it is read."""
        self.label, self.state = label, state
        self.columns = {name: column.kind for name, column in columns.items()}
        self.sql: SQL = _DuckDBSQL({name: column.type for name, column in columns.items()})
        self._connection, self._relation = connection, relation
        self._frame: Any = None
        self._objects: dict[str, int] = {}
        """Columns of objects in a data frame that nobody has asked for yet, and their places."""
        self._lock = Lock() if relation is None else _RELATIONS  # a connection has one result at a time
        self._selected = {self.sql.column(name): column.selected(name) for name, column in columns.items()}
        if relation is None:
            everything = ", ".join(f"{column} AS {name}" for name, column in self._selected.items())
            connection.execute(f"CREATE TEMP VIEW {_NAME} AS SELECT {everything} FROM {_GIVEN}")

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
        con = _OWN.connect()

        def open_files() -> dict[str, Column]:
            reader = _parquet_reader(con, name, found) if suffix in _PARQUET else _csv_reader(con, name, found)
            con.execute(f"CREATE TEMP VIEW {_GIVEN} AS SELECT * FROM {reader}")
            return _described(con, () if suffix in _PARQUET else None)

        columns = _quietly(repr(name), f"Is it a whole {suffix[1:]} file, and are all files alike?", open_files)

        def state() -> object:
            try:
                stats = [Path(f).stat() for f in found]
            except OSError:
                return object()  # gone: not as it was
            return tuple((s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino) for s in stats)

        return cls(repr(name), con, columns, state)

    @classmethod
    def arrays(cls, arrays: dict[Any, Any]) -> DuckDB:
        if len({str(name) for name in arrays}) < len(arrays):
            raise SourceError(_ALIKE.format("the table"))
        columns = {str(name): _array(values) for name, values in arrays.items()}
        sizes = {values.shape for values in columns.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise SourceError(
                "the arrays of a dict have different lengths, more than one dimension, or there are none. Give columns of equal length."
            )
        return cls.frame(columns, columns, [str(name) for name, values in arrays.items() if _is_untyped(values)])

    @classmethod
    def polars(cls, frame: Any) -> DuckDB:
        if find_spec("pyarrow") is None:
            raise SourceError("reading a polars DataFrame needs pyarrow. Install accord[dataframes].")
        if any("\0" in name for name in frame.columns):  # polars would panic
            raise SourceError("the table has a column with the character NUL in its name. Rename it.")
        return cls.arrow(_quietly("the table", f"A table is made from {SUPPORTED}.", frame.to_arrow))

    @classmethod
    def arrow(cls, table: Any) -> DuckDB:
        for k, field in enumerate(table.schema):
            if str(field.type).startswith(
                "duration"
            ):  # far ones are no intervals of DuckDB's: whole numbers of their unit
                table = table.set_column(k, field.name, table.column(k).cast("int64"))
        return cls.frame(table, table.schema.names, ())

    @classmethod
    def pandas(cls, frame: Any) -> DuckDB:
        dtypes = [str(dtype) for dtype in frame.dtypes]
        untyped = [str(name) for name, dtype in zip(frame.columns, dtypes, strict=True) if dtype in ("object", "bool")]
        own = frame.copy(deep=False)
        objects = {f"c{k}": k for k, dtype in enumerate(dtypes) if dtype == "object"}
        if any(
            "[pyarrow]" in dtype for dtype in dtypes
        ):  # then all is made Arrow, whose types are guessed from objects
            for place in objects.values():
                own.isetitem(place, _texts(own.iloc[:, place].to_numpy(dtype=object)))
            objects = {}
        engine = cls.frame(own, frame.columns, untyped)
        engine._objects = objects
        engine._frame = own
        return engine

    @classmethod
    def frame(cls, frame: Any, names: Iterable[Any], untyped: Collection[str]) -> DuckDB:
        """Columns in memory, by their names; `untyped`: which of them have no type."""
        con = _OWN.connect()

        def register() -> dict[str, Column]:
            con.register(_GIVEN, frame)
            described = con.execute(f"DESCRIBE {_GIVEN}").fetchall()
            _need_own_names("the table", names, described)
            return _described(con, untyped)

        return cls("the table", con, _quietly("the table", f"A table is made from {SUPPORTED}.", register))

    @classmethod
    def relation(cls, relation: Any) -> DuckDB:
        def columns() -> dict[str, Column]:
            types = zip(relation.columns, relation.types, strict=True)
            return {str(name): Column(str(kind), _kind(str(kind))) for name, kind in types}

        hint = "Is its connection open?"
        described = _quietly("the relation", hint, columns)
        if len({name.lower() for name in described}) < len(described) or len(described) < len(relation.columns):
            raise SourceError(_ALIKE.format("the relation"))
        return cls("the relation", _OWN.connect(), described, relation=relation)

    def fetch(self, sql: str, wide: str | None = None) -> dict[str, Any]:
        if wide:  # NumPy has no 128-bit integers: fetch the halves
            sql = (
                f"SELECT * EXCLUDE ({wide}), CAST({wide} >> 32 AS BIGINT) AS high, "
                f"CAST({wide} & 4294967295 AS BIGINT) AS low FROM ({sql})"
            )
        hint = "Check that it is whole and unchanged, and open it again."
        columns: dict[str, Any] = self._asked(sql, hint, lambda: self._connection.execute(sql).fetchnumpy())
        if wide:
            high, low = (np.ma.filled(columns.pop(name), 0) for name in ("high", "low"))
            if np.abs(high).max(initial=0) < 2**30:  # all of them fit
                columns[wide] = ((high << 32) + low).tolist()
            else:
                columns[wide] = [(h << 32) + r for h, r in zip(high.tolist(), low.tolist(), strict=True)]
        return columns

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        given = [f"{self._converted(name, form)} AS v{k}" for k, name in enumerate(columns)]
        sql = f"SELECT {', '.join(given)} FROM {source} AS given"

        def fetch() -> Any:
            if form == "numpy":
                found = self._connection.execute(sql).fetchnumpy()
                filled = [np.ma.filled(np.ma.asarray(c), np.nan) for c in found.values()]
                return np.column_stack(filled) if filled else np.zeros((0, 0))
            table = self._connection.sql(sql).to_arrow_table().rename_columns(list(columns))
            return table.to_pandas() if form == "pandas" else table

        return self._asked(sql, "Check that it is whole and unchanged, and open it again.", fetch)

    def _converted(self, column: str, form: str) -> str:
        """A column as rows of a form have it. Nothing that a row may hold can fail to be converted.

        Years beyond 9999 are no dates of Python's, and 24:00 is no time of day: data frames have timestamps of NumPy's and text instead. Infinite dates are missing.
        """
        x, kind, duckdb_type = self.sql.column(column), self.columns[column], self.sql.type_of(column)
        if kind in ("date", "timestamp"):
            moment = f"TRY_CAST({x} AS TIMESTAMP)"  # first: seconds reach further than microseconds
            there = f"CASE WHEN isfinite({moment}) THEN {x if form == 'arrow' and kind == 'date' else moment} END"
            return f"epoch({there})" if form == "numpy" else there
        if form == "numpy":
            return self.sql.number(column, "untyped" if kind == "text" else kind)
        if duckdb_type in ("HUGEINT", "UHUGEINT", "BIGNUM"):
            return f"TRY_CAST({x} AS DOUBLE)"
        return f"TRY_CAST({x} AS VARCHAR)" if kind == "other" and form == "pandas" else x

    def _asked(self, sql: str, hint: str, call: Callable[[], _T]) -> _T:
        """What a query gives; of a relation, with the columns that it uses streamed in."""
        with self._lock:
            return _quietly(self.label, hint, lambda: self._patiently(lambda: self._with_rows(sql, call)))

    def _with_rows(self, sql: str, call: Callable[[], _T]) -> _T:
        named = _USED.findall(_LITERAL.sub("''", sql))
        used = [f"c{k}" for k in sorted({int(k) for k in named}) if f"c{k}" in self._selected]
        if new := [name for name in used if name in self._objects]:
            for name in new:
                place = self._objects.pop(name)
                self._frame.isetitem(place, _texts(self._frame.iloc[:, place].to_numpy(dtype=object)))
            self._connection.register(_GIVEN, self._frame)
        if self._relation is None:
            return call()
        used = used or ["c0"]
        self._connection.register(
            _NAME, _Stream(self._relation, ", ".join(f"{self._selected[c]} AS {c}" for c in used))
        )
        try:
            return call()
        finally:
            self._connection.unregister(_NAME)

    def _patiently(self, call: Callable[[], _T]) -> _T:
        """What `call` gives, so that Ctrl-C stops the query at once, and whoever watches is told how far it is.

        DuckDB hears a signal only when a query has ended; so it runs in a thread of its own, and this one waits.
        """
        connection = self._connection
        if current_thread() is not main_thread():
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
        name = f"accord_lent_{next(_LENT)}"
        with self._lock:
            self._connection.register(name, columns)
        try:
            yield name
        finally:
            with self._lock:
                self._connection.unregister(name)


class _Stream:
    """Some columns of a relation, streamed anew each time they are asked for. Only columns are named in its own connection, and no function."""

    def __init__(self, relation: Any, columns: str) -> None:
        self._relation, self._columns = relation, columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.project(self._columns).__arrow_c_stream__(requested_schema)


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


class _Own:
    """accord's own database in memory. Opening one takes 25 ms, another connection to it less than one; each table has a connection, and names of its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database: Any = None
        self._inherited: list[Any] = []

    def connect(self) -> Any:
        """A new connection."""
        with self._lock:
            if self._database is None:
                self._database = self._opened()
            try:
                return self._connected()
            except duckdb.FatalException:  # a fault of the engine in another table has closed the database for good
                self._database = self._opened()
                return self._connected()

    def forget(self) -> None:
        """After a fork: the parent's threads are not here. Its database is left alone, because closing it would wait for them."""
        self._inherited.append(self._database)
        self._lock, self._database = Lock(), None

    @staticmethod
    def _opened() -> Any:
        return duckdb.connect(
            config={
                "autoinstall_known_extensions": "false",
                "perfect_ht_threshold": "20",  # small integers are grouped by index, without hashing
                "pandas_analyze_sample": "0",  # types guessed from values would make a person's value decide what can be asked
                "disabled_optimizers": "type_pushdown",  # has the CSV reader cast text to numbers and fail on the first that is none
            }
        )

    def _connected(self) -> Any:
        connection = self._database.cursor()
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")  # kept, not printed
        return connection


_OWN = _Own()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_OWN.forget)


def _is_untyped(values: Any) -> bool:
    """Whether a column of a dict has no type of its own."""
    return not isinstance(values, np.ndarray) or values.dtype.kind in "bOUS"


def _array(values: Any) -> Any:
    """A column for DuckDB. What a mask hides is missing; text is plain text, not an enumeration."""
    if not isinstance(values, np.ndarray):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise SourceError(f"a column of a dict is a {type(values).__name__}. Give a list or an array for each.")
        listed = list(values)
        array: Any = np.empty(len(listed), dtype=object)
        for k, value in enumerate(listed):  # a list of lists is a column, too
            array[k] = value
    else:
        array = np.asarray(values, order="C")  # a reversed view is a column as well
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    match array.dtype.kind:
        case "i" | "u" | "f" if hidden is not None:
            with np.errstate(all="ignore"):
                array = array.astype(np.float64)
            array[hidden] = np.nan
        case "M":
            array = array.astype("datetime64[us]")  # days too, which DuckDB does not take from NumPy
            if hidden is not None:
                array[hidden] = np.datetime64("NaT")
        case "U" | "S" | "O" | "b" if array.dtype.kind != "b" or hidden is not None:
            array = array.astype(object)
            if hidden is not None:
                array[hidden] = None
            array = _texts(array)
    return array


def _texts(objects: Any) -> Any:
    """Objects as text, None where they are missing. Nothing that somebody put there can fail to be text."""
    texts = np.empty(objects.shape, dtype=object)
    with np.errstate(all="ignore"):  # a warning about somebody's NaN would tell of it
        texts[...] = _TEXT(objects) if objects.size else None
    return texts


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    text: str | None = value
    if not isinstance(value, str):
        try:
            text = None if value is None or value != value else str(value)  # NaN and NaT are not themselves
        except Exception:  # somebody's own class may do anything; pandas' NA is neither true nor false
            text = None
    if text is None or text.isascii():
        return text
    return str(text.encode("utf-8", "replace").decode("utf-8"))


_TEXT = np.frompyfunc(_text, 1, 1)


def _listed(paths: list[str]) -> str:
    return "[" + ", ".join(_SQL.text(glob.escape(path)) for path in paths) + "]"


def _parquet_reader(con: Any, name: str, paths: list[str]) -> str:
    """Columns are matched by name, and of numbers widened to a common type; a folder's name is not a column.

    Other types must be the same in all files: a common one may be too narrow for somebody's value.
    """
    found = set()
    types: dict[str, str] = {}
    for path in paths:
        one = _listed([path])
        described = con.execute(f"DESCRIBE SELECT * FROM read_parquet({one}, hive_partitioning = false)").fetchall()
        schema = con.execute(f"SELECT name, num_children FROM parquet_schema({one})").fetchall()
        _need_own_names(repr(name), _outermost(schema), described)
        found.add(frozenset(row[0] for row in described))
        for column, kind, *_ in described:
            other = types.setdefault(column, kind)
            if other != kind and {_kind(other), _kind(kind)} != {"number"}:
                raise SourceError(
                    f"column {column!r} is {other} in one file of {name!r} and {kind} in another. Write it with one type."
                )
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


def _described(con: Any, untyped: Collection[str] | None) -> dict[str, Column]:
    """The columns of what was given; `untyped`: which of them have no type (None: all)."""
    described = con.execute(f"DESCRIBE {_GIVEN}").fetchall()
    return {
        name: Column(kind, "untyped" if untyped is None or name in untyped else _kind(kind))
        for name, kind, *_ in described
    }


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
