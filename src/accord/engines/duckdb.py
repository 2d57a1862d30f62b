"""DuckDB, embedded: the default engine, for files, data frames, arrays and DuckDB's own relations.

Everything runs in a connection that is accord's own, also what is asked of a relation, whose rows are
streamed into it: functions, macros and settings of somebody else's connection could make anything of accord's
SQL.

Its own error texts may quote the data, so they are never passed on, not even as the context of an exception:
a SourceError names the source and the class of the fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import duckdb
import numpy as np

from accord.engines import duckdb_sources as sources
from accord.engines.csv_options import CSV
from accord.engines.dialect import Dialect
from accord.engines.duckdb_connection import OWN, patiently, quietly
from accord.engines.duckdb_dialect import DuckDBDialect
from accord.engines.duckdb_files import FileView
from accord.engines.duckdb_sources import ALIKE, GIVEN, Column
from accord.engines.engine import NOT_CSV, SUPPORTED, Engine, open_source
from accord.engines.files import find
from accord.errors import SourceError

_NAME = "accord_source"
"""What was given, with generated names of columns (sql_names.py): all that other SQL sees."""
_GENERATED_NAME, _LITERAL = re.compile(r"\bc(\d+)\b"), re.compile(r"'(?:[^']|'')*'")
_RELATIONS = Lock()
_LENT = count()
_REGISTERS = count()
_BITS = 31
"""NumPy has no 128-bit integers: wide numbers are fetched in three parts, the lower ones of so many bits."""
_T = TypeVar("_T")


class DuckDB:
    """A source opened in DuckDB."""

    source = _NAME
    lends = True
    complete: frozenset[str] = frozenset()

    def __init__(
        self,
        label: str,
        connection: Any,
        columns: dict[str, Column],
        state: Callable[[], object] = lambda: None,
        relation: Any = None,
        view: FileView | None = None,
    ) -> None:
        """`connection` is accord's own, with what was given under its name.

        A `relation` is streamed in when it is read; a `view` of files may have to be made anew.
        """
        self.label, self.state = label, state
        self.columns = {name: column.kind for name, column in columns.items()}
        self.dialect: Dialect = DuckDBDialect(
            {name: column.type for name, column in columns.items()},
            {name: column.csv for name, column in columns.items() if column.csv is not None},
        )
        self._connection, self._relation, self._view = connection, relation, view
        self._frame: Any = None
        self._unread: dict[str, int] = {}
        """Columns in memory whose text nobody has asked for yet, and their places: see `valid_text`."""
        self._lock = Lock() if relation is None else _RELATIONS  # a connection has one result at a time
        self._selected = {
            self.dialect.column(name): column.selected(name) for name, column in columns.items()
        }
        if relation is None:
            everything = ", ".join(f"{column} AS {name}" for name, column in self._selected.items())
            connection.execute(f"CREATE TEMP VIEW {_NAME} AS SELECT {everything} FROM {GIVEN}")

    @classmethod
    def files(cls, source: Any, csv: CSV | None = None) -> DuckDB:
        """Parquet or CSV files; `csv`: how the latter are read."""
        files = find(source)
        if csv is not None and files.form != "csv":
            raise SourceError(NOT_CSV.format(f"{files.label} is Parquet, which has types"))
        sizes = quietly(
            files.label, "Check the right to read it.", lambda: [Path(f).stat().st_size for f in files.paths]
        )
        if 0 in sizes:
            raise SourceError(f"{files.label} is empty. A table needs at least its column names.")
        con, reading = OWN.connect(), csv or CSV()

        def open_files() -> tuple[FileView, dict[str, Column]]:
            view = FileView(con, files, reading)
            untyped = (*(view.columns if files.form == "csv" else ()), *view.folder_columns)
            return view, sources.described_columns(con, untyped)

        view, columns = quietly(
            files.label, f"Is it a whole {files.form} file, and are all files alike?", open_files
        )
        if csv is not None:  # names of folders are not what the files' text is
            columns.update({name: replace(columns[name], csv=csv) for name in view.columns})
        return cls(files.label, con, columns, files.state, view=view)

    @classmethod
    def arrays(cls, arrays: dict[Any, Any]) -> DuckDB:
        if len({str(name) for name in arrays}) < len(arrays):
            raise SourceError(ALIKE.format("the table"))
        columns = {str(name): sources.as_array(values) for name, values in arrays.items()}
        sizes = {values.shape for values in columns.values()}
        if len(sizes) != 1 or len(next(iter(sizes))) != 1:
            raise SourceError(
                "the arrays of a dict have different lengths, more than one dimension, or there are none. "
                "Give columns of equal length."
            )
        untyped = [str(name) for name, values in arrays.items() if sources.is_untyped(values)]
        return cls.frame(columns, columns, untyped)

    @classmethod
    def polars(cls, frame: Any) -> DuckDB:
        if type(frame).__name__ == "LazyFrame":
            raise SourceError("a polars LazyFrame is a query, not a table. Call .collect() on it first.")
        if find_spec("pyarrow") is None:
            raise SourceError("reading a polars DataFrame needs pyarrow. Install accord[dataframes].")
        if any("\0" in name for name in frame.columns):  # polars would panic
            raise SourceError("the table has a column with the character NUL in its name. Rename it.")
        return cls.arrow(quietly("the table", f"A table is made from {SUPPORTED}.", frame.to_arrow))

    @classmethod
    def arrow(cls, table: Any) -> DuckDB:
        for k, field in enumerate(table.schema):
            if str(field.type).startswith("duration"):
                # far ones are no intervals of DuckDB's: whole numbers of their unit
                table = table.set_column(k, field.name, table.column(k).cast("int64"))
        engine = cls.frame(table, table.schema.names, ())
        engine._frame = table
        engine._unread = {f"c{k}": k for k, field in enumerate(table.schema) if "string" in str(field.type)}
        return engine

    @classmethod
    def pandas(cls, frame: Any) -> DuckDB:
        dtypes = [str(dtype) for dtype in frame.dtypes]
        named = zip(frame.columns, dtypes, strict=True)
        untyped = [str(name) for name, dtype in named if dtype in ("object", "bool")]
        copied = frame.copy(deep=False)
        for k, dtype in enumerate(frame.dtypes):
            if dtype == "category" and sources.has_odd_text(dtype.categories):
                copied.isetitem(k, frame.iloc[:, k].astype(object))  # DuckDB would read all categories
        objects = {f"c{k}": k for k, dtype in enumerate(copied.dtypes) if sources.holds_objects(dtype)}
        if any("[pyarrow]" in dtype for dtype in dtypes):
            # then all is made Arrow, whose types are guessed from objects
            for place in objects.values():
                copied = sources.valid_text(copied, place)
            objects = {}
        engine = cls.frame(copied, frame.columns, untyped)
        engine._unread = objects
        engine._frame = copied
        return engine

    @classmethod
    def frame(cls, frame: Any, names: Iterable[Any], untyped: Collection[str]) -> DuckDB:
        """Columns in memory, by their names; `untyped`: which of them have no type."""
        con = OWN.connect()

        def register() -> dict[str, Column]:
            con.register(GIVEN, frame)
            described = con.execute(f"DESCRIBE {GIVEN}").fetchall()
            sources.refuse_changed_names("the table", names, described)
            return sources.described_columns(con, untyped)

        return cls("the table", con, quietly("the table", f"A table is made from {SUPPORTED}.", register))

    @classmethod
    def relation(cls, relation: Any) -> DuckDB:
        def columns() -> dict[str, Column]:
            types = zip(relation.columns, relation.types, strict=True)
            return {str(name): Column(str(kind), sources.kind_of(str(kind))) for name, kind in types}

        described = quietly("the relation", "Is its connection open?", columns)
        if len({name.lower() for name in described}) < len(relation.columns):
            raise SourceError(ALIKE.format("the relation"))
        return cls("the relation", OWN.connect(), described, relation=relation)

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        if wide:
            in_parts = ", ".join(map(_in_parts, wide))
            sql = f"SELECT * EXCLUDE ({', '.join(wide)}), {in_parts} FROM ({sql})"
        columns: dict[str, Any] = self._ask(sql, lambda: self._connection.execute(sql).fetchnumpy())
        for column in wide:
            parts = (columns.pop(f"{column}_{part}") for part in ("high", "middle", "low"))
            columns[column] = _joined(*parts)
        return columns

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        converted = [f"{self._converted(name, form)} AS v{k}" for k, name in enumerate(columns)]
        sql = f"SELECT {', '.join(converted)} FROM {source} AS kept"

        def fetch() -> Any:
            if form == "numpy":
                fetched = self._connection.execute(sql).fetchnumpy()
                filled = [np.ma.filled(np.ma.asarray(c), np.nan) for c in fetched.values()]
                return np.column_stack(filled) if filled else np.zeros((0, 0))
            table = self._connection.sql(sql).to_arrow_table().rename_columns(list(columns))
            return table.to_pandas() if form == "pandas" else table

        return self._ask(sql, fetch)

    def _converted(self, column: str, form: str) -> str:
        """A column as rows of a form have it. Nothing that a row may hold can fail to be converted.

        Years beyond 9999 are no dates of Python's, and 24:00 is no time of day: data frames have timestamps
        of NumPy's and text instead. Infinite dates are missing.
        """
        x, kind = self.dialect.column(column), self.columns[column]
        if kind in ("date", "timestamp"):
            moment = f"TRY_CAST({x} AS TIMESTAMP)"  # first: seconds reach further than microseconds
            finite = f"CASE WHEN isfinite({moment}) THEN {{}} END"
            if form == "numpy":
                return f"epoch({finite.format(moment)})"
            return finite.format(x if form == "arrow" and kind == "date" else moment)
        if form == "numpy":
            return self.dialect.number(column, "untyped" if kind == "text" else kind)
        if self.dialect.types[column] in ("HUGEINT", "UHUGEINT", "BIGNUM"):
            return f"TRY_CAST({x} AS DOUBLE)"
        return f"TRY_CAST({x} AS VARCHAR)" if kind == "other" and form == "pandas" else x

    def _ask(self, sql: str, call: Callable[[], _T]) -> _T:
        """What `call` gives, which asks `sql`; of a relation, with the columns that it uses streamed in."""
        hint = "Check that it is whole and unchanged, and open it again."

        def read() -> _T:
            return patiently(self._connection, lambda: self._with_rows(sql, call))

        def read_or_repair() -> _T:
            if self._view is None:
                return read()
            self._view.refresh()
            while True:
                try:
                    return read()
                except duckdb.InvalidInputException:
                    if not self._view.repair():
                        raise

        with self._lock:
            return quietly(self.label, hint, read_or_repair)

    def _with_rows(self, sql: str, call: Callable[[], _T]) -> _T:
        numbers = {int(k) for k in _GENERATED_NAME.findall(_LITERAL.sub("''", sql))}
        used = [f"c{k}" for k in sorted(numbers) if f"c{k}" in self._selected]
        if new := [name for name in used if name in self._unread]:
            for name in new:
                self._frame = sources.valid_text(self._frame, self._unread.pop(name))
            self._connection.register(GIVEN, self._frame)
        if self._relation is None:
            return call()
        used = used or ["c0"]
        selected = ", ".join(f"{self._selected[c]} AS {c}" for c in used)
        self._connection.register(_NAME, _Stream(self._relation, selected))
        try:
            return call()
        finally:
            self._connection.unregister(_NAME)

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

    def open_register(self, source: Any, csv: CSV | None) -> Engine:
        return open_source(source, csv)

    def beside(self, register: Engine, sql: str) -> str:
        """Copied into this connection, once: a register is as it was when the table was opened."""
        name = f"accord_register_{next(_REGISTERS)}"
        if not isinstance(register, DuckDB):
            with self.lend({name: _with_none(x) for name, x in register.fetch(sql).items()}) as lent:
                self._run(f"CREATE TEMP TABLE {name} AS SELECT * FROM {lent}")
            return name
        shared = f"{name}_shared"  # of the database that all connections have in common
        register._run(f"CREATE TABLE {shared} AS {sql}")
        try:
            self._run(f"CREATE TEMP TABLE {name} AS SELECT * FROM {shared}")
        finally:
            register._run(f"DROP TABLE {shared}")
        return name

    def _run(self, sql: str) -> None:
        self._ask(sql, lambda: self._connection.execute(sql).fetchall())


def _with_none(values: Any) -> Any:
    """A column with None in the place of what is masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    objects = np.ma.getdata(values).astype(object)
    objects[np.ma.getmaskarray(values)] = None
    return objects


def _in_parts(column: str) -> str:
    """A wide column in parts, as SQL."""
    ones = 2**_BITS - 1
    return (
        f"CAST({column} >> {2 * _BITS} AS BIGINT) AS {column}_high, "
        f"CAST(({column} >> {_BITS}) & {ones} AS BIGINT) AS {column}_middle, "
        f"CAST({column} & {ones} AS BIGINT) AS {column}_low"
    )


def _joined(*parts: Any) -> list[int]:
    """A wide column from its parts; NULL is 0."""
    high, middle, low = (np.ma.filled(part, 0) for part in parts)
    lower = (middle << _BITS) + low
    if not (high.min(initial=0) < -2 or high.max(initial=0) > 1):  # all of them fit into 64 bits
        fitting: list[int] = ((high << (2 * _BITS)) + lower).tolist()
        return fitting
    return [(h << (2 * _BITS)) + r for h, r in zip(high.tolist(), lower.tolist(), strict=True)]


class _Stream:
    """Some columns of a relation, streamed anew each time they are asked for.

    Only columns are named in its own connection, and no function.
    """

    def __init__(self, relation: Any, columns: str) -> None:
        self._relation, self._columns = relation, columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.project(self._columns).__arrow_c_stream__(requested_schema)
