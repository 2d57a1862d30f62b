"""DuckDB, embedded: the default engine, for files, data frames, arrays and DuckDB's own relations.

Everything runs in a connection that is accord's own, also what is asked of a relation, whose rows are
streamed into it: functions, macros and settings of somebody else's connection could make anything of accord's
SQL.

Its own error texts may quote the data, so they are never passed on, not even as the context of an exception:
a SourceError names the source and the class of the fault.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from accord.engines import duckdb_sources as sources
from accord.engines.dialect import Dialect, StandardLiterals
from accord.engines.duckdb_connection import OWN, patiently, quietly
from accord.engines.duckdb_sources import ALIKE, GIVEN, Column
from accord.engines.engine import SUPPORTED, Kind
from accord.errors import SourceError

_NAME = "accord_source"
"""What was given, with generated names of columns (names.py): all that other SQL sees."""
_USED, _LITERAL = re.compile(r"\bc(\d+)\b"), re.compile(r"'(?:[^']|'')*'")
_RELATIONS = Lock()
_LENT = count()
_BITS = 31
"""NumPy has no 128-bit integers: wide numbers are fetched in three parts, the lower ones of so many bits."""
_T = TypeVar("_T")


class DuckDBDialect(StandardLiterals, Dialect):
    """DuckDB's SQL, for columns of known types."""

    double_type, wide_type = "DOUBLE", "HUGEINT"

    def attempt(self, x: str, kind: str) -> str:
        return f"TRY_CAST({x} AS {kind})"

    def instant(self, value: str) -> str:
        return f"TIMESTAMP {self.text(value)}"

    def sum(self, x: str) -> str:
        return f"SUM({x})"  # which is HUGEINT

    def steps(self, x: str, low: float, factor: float) -> str:
        return self.plain_steps(x, low, factor)

    def quotient(self, a: str, b: str) -> str:
        return f"({a}) // ({b})"

    def number(self, column: str, kind: Kind) -> str:
        x = self.column(column)
        if kind != "untyped":
            return f"CAST({x} AS DOUBLE)"
        truth = f"CASE lower({x}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        return f"COALESCE({self.attempt(x, 'DOUBLE')}, {truth})"

    def is_finite(self, x: str) -> str:
        """Not by comparing.

        Statistics of a Parquet file leave NaN out, and DuckDB takes a comparison that they decide as decided.
        """
        return f"isfinite({x})"

    def level(self, column: str, kind: Kind) -> str:
        """Of text with an exponent, a double holds what has at most 15 digits.

        A longer one is made smaller by more than a double can be off.
        """
        x = self.column(column)
        if kind == "number":
            decimal = re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", self.types[column])
            return f"CAST({f'TRUNC({x}, 6)' if decimal and int(decimal[1]) > 6 else x} AS DOUBLE)"
        cut = self.attempt(f"regexp_extract(trim({x}), '^[+-]?[0-9]*([.][0-9]{{0,6}})?')", "DOUBLE")
        number, a_little_less = self.attempt(x, "DOUBLE"), self.double(1 - 2**-52)
        finite = (
            f"CASE WHEN regexp_full_match(trim({x}), '[+-]?[0-9]*[.]?[0-9]*') THEN {cut} "
            f"WHEN regexp_full_match(trim({x}), '[+-]?[0-9.]{{1,15}}[eE][+-]?[0-9]+') THEN {number} "
            f"WHEN regexp_full_match(trim({x}), '[+-]?[0-9.]+[eE][+-]?[0-9]+') THEN {number} * "
            f"{a_little_less} END"
        )
        infinite = f"lower(trim({x})) IN ('inf', '+inf', 'infinity', '+infinity')"
        return (
            f"(CASE WHEN {x} IS NULL THEN NULL WHEN {infinite} THEN {number} "
            f"WHEN {self.is_finite(finite)} THEN {finite} ELSE CAST('nan' AS DOUBLE) END)"
        )

    def letters(self, column: str) -> str:
        return f'CAST({self.column(column)} AS VARCHAR) COLLATE "binary"'

    def moment(self, column: str) -> str:
        return self.attempt(self.column(column), "TIMESTAMP")

    def seconds(self, column: str, kind: str) -> str:
        moment = self.moment(column)
        return (
            f"CAST(EXTRACT(EPOCH FROM {f'CAST({moment} AS DATE)' if kind == 'date' else moment}) AS DOUBLE)"
        )

    def identity(self, user: str, kind: Kind) -> str:
        if kind not in ("text", "untyped"):
            return self.column(user)
        x = f"CAST({self.column(user)} AS VARCHAR)"
        trimmed = self._trimmed(f"nfc_normalize({x})")
        return f"CASE WHEN regexp_full_match({x}, '[!--/-~]*') THEN {x} ELSE {trimmed} END"

    def _trimmed(self, name: str) -> str:
        return f"regexp_replace(trim({name}, ' \t\r\n\ufeff\u00a0'), '\\.0+$', '')"

    def person(self, identity: str, user: str, kind: Kind, secret: str) -> str:
        name = identity
        if kind == "number":  # 1e16 is 10000000000000000
            whole = f"CASE WHEN {identity} = FLOOR({identity}) THEN TRY_CAST({identity} AS HUGEINT) END"
            name = self._trimmed(f"COALESCE(CAST({whole} AS VARCHAR), CAST({identity} AS VARCHAR))")
        first = f"substr(sha256({self.text(secret)} || {name}), 1, 16)"
        return f"CAST(CAST('0x' || {first} AS UBIGINT) >> 1 AS BIGINT)"

    def is_inexact_id(self, user: str) -> str:
        x = self.column(user)
        size = f"abs(CAST({x} AS DOUBLE))"
        return (
            f"(typeof({x}) = 'FLOAT' AND NOT {size} < 16777216) "
            f"OR (typeof({x}) = 'DOUBLE' AND NOT {size} < 9007199254740992)"
        )

    def split(self, entries: str) -> str:
        return f"unnest(string_split('{entries}', ','))"

    def unhexed(self, x: str) -> str:
        return f"decode(unhex({x}))"

    def position(self, column: str, texts: Sequence[str]) -> str:
        """Faster than one comparison after the other."""
        return f"list_position([{', '.join(map(self.text, texts))}], {self.letters(column)}) - 1"


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
        """`connection` is accord's own, with what was given under its name.

        A `relation` is streamed in when it is read.
        """
        self.label, self.state = label, state
        self.columns = {name: column.kind for name, column in columns.items()}
        types = {name: column.type for name, column in columns.items()}
        self.dialect: Dialect = DuckDBDialect(types)
        self.types = types
        self._connection, self._relation = connection, relation
        self._frame: Any = None
        self._objects: dict[str, int] = {}
        """Columns of objects in a data frame that nobody has asked for yet, and their places."""
        self._lock = Lock() if relation is None else _RELATIONS  # a connection has one result at a time
        self._selected = {
            self.dialect.column(name): column.selected(name) for name, column in columns.items()
        }
        if relation is None:
            everything = ", ".join(f"{column} AS {name}" for name, column in self._selected.items())
            connection.execute(f"CREATE TEMP VIEW {_NAME} AS SELECT {everything} FROM {GIVEN}")

    @classmethod
    def files(cls, path: str | Path) -> DuckDB:
        name = str(path)
        if os.path.isdir(name):  # noqa: PTH112  False where Path raises, as of a name that is too long
            raise SourceError(
                f"{name!r} is a folder. Name the files in it by a pattern, such as "
                f"'{name.rstrip('/')}/*.parquet'."
            )
        exists = os.path.exists(name)  # noqa: PTH110
        # any pattern, also an absolute one
        paths = [name] if exists else sorted(glob.glob(name, recursive=True))  # noqa: PTH207
        if not paths:
            raise SourceError(
                f"there is no file {name!r}. Check the path; a pattern such as 'people/*.parquet' names "
                "several files."
            )
        suffix = Path(name.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
        if suffix not in sources.PARQUET + sources.CSV:
            raise SourceError(
                f"{name!r} has an ending that accord does not know. "
                f"It reads {', '.join(sources.PARQUET + sources.CSV)} (CSV also as .gz and .zst)."
            )
        sizes = quietly(
            repr(name), "Check the right to read it.", lambda: [Path(f).stat().st_size for f in paths]
        )
        if 0 in sizes:
            raise SourceError(f"{name!r} is empty. A table needs at least its column names.")
        con = OWN.connect()

        def open_files() -> dict[str, Column]:
            open_reader = sources.parquet_reader if suffix in sources.PARQUET else sources.csv_reader
            reader = open_reader(con, name, paths)
            con.execute(f"CREATE TEMP VIEW {GIVEN} AS SELECT * FROM {reader}")
            return sources.described_columns(con, () if suffix in sources.PARQUET else None)

        columns = quietly(
            repr(name), f"Is it a whole {suffix[1:]} file, and are all files alike?", open_files
        )

        def state() -> object:
            try:
                stats = [Path(f).stat() for f in paths]
            except OSError:
                return object()  # gone: not as it was
            return tuple((s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino) for s in stats)

        return cls(repr(name), con, columns, state)

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
        return cls.frame(table, table.schema.names, ())

    @classmethod
    def pandas(cls, frame: Any) -> DuckDB:
        dtypes = [str(dtype) for dtype in frame.dtypes]
        untyped = [
            str(name)
            for name, dtype in zip(frame.columns, dtypes, strict=True)
            if dtype in ("object", "bool")
        ]
        own = frame.copy(deep=False)
        objects = {f"c{k}": k for k, dtype in enumerate(dtypes) if dtype == "object"}
        if any("[pyarrow]" in dtype for dtype in dtypes):
            # then all is made Arrow, whose types are guessed from objects
            for place in objects.values():
                own.isetitem(place, sources.as_texts(own.iloc[:, place].to_numpy(dtype=object)))
            objects = {}
        engine = cls.frame(own, frame.columns, untyped)
        engine._objects = objects
        engine._frame = own
        return engine

    @classmethod
    def frame(cls, frame: Any, names: Iterable[Any], untyped: Collection[str]) -> DuckDB:
        """Columns in memory, by their names; `untyped`: which of them have no type."""
        con = OWN.connect()

        def register() -> dict[str, Column]:
            con.register(GIVEN, frame)
            described = con.execute(f"DESCRIBE {GIVEN}").fetchall()
            sources.need_own_names("the table", names, described)
            return sources.described_columns(con, untyped)

        return cls("the table", con, quietly("the table", f"A table is made from {SUPPORTED}.", register))

    @classmethod
    def relation(cls, relation: Any) -> DuckDB:
        def columns() -> dict[str, Column]:
            types = zip(relation.columns, relation.types, strict=True)
            return {str(name): Column(str(kind), sources.kind_of(str(kind))) for name, kind in types}

        hint = "Is its connection open?"
        described = quietly("the relation", hint, columns)
        if len({name.lower() for name in described}) < len(described) or len(described) < len(
            relation.columns
        ):
            raise SourceError(ALIKE.format("the relation"))
        return cls("the relation", OWN.connect(), described, relation=relation)

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        if wide:
            parts = ", ".join(_parts(column) for column in wide)
            sql = f"SELECT * EXCLUDE ({', '.join(wide)}), {parts} FROM ({sql})"
        hint = "Check that it is whole and unchanged, and open it again."
        columns: dict[str, Any] = self._asked(sql, hint, lambda: self._connection.execute(sql).fetchnumpy())
        for column in wide:
            columns[column] = _joined(
                *(columns.pop(f"{column}_{part}") for part in ("high", "middle", "low"))
            )
        return columns

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        given = [f"{self._converted(name, form)} AS v{k}" for k, name in enumerate(columns)]
        sql = f"SELECT {', '.join(given)} FROM {source} AS given"

        def fetch() -> Any:
            if form == "numpy":
                fetched = self._connection.execute(sql).fetchnumpy()
                filled = [np.ma.filled(np.ma.asarray(c), np.nan) for c in fetched.values()]
                return np.column_stack(filled) if filled else np.zeros((0, 0))
            table = self._connection.sql(sql).to_arrow_table().rename_columns(list(columns))
            return table.to_pandas() if form == "pandas" else table

        return self._asked(sql, "Check that it is whole and unchanged, and open it again.", fetch)

    def _converted(self, column: str, form: str) -> str:
        """A column as rows of a form have it. Nothing that a row may hold can fail to be converted.

        Years beyond 9999 are no dates of Python's, and 24:00 is no time of day: data frames have timestamps
        of NumPy's and text instead. Infinite dates are missing.
        """
        x, kind, duckdb_type = self.dialect.column(column), self.columns[column], self.types[column]
        if kind in ("date", "timestamp"):
            moment = f"TRY_CAST({x} AS TIMESTAMP)"  # first: seconds reach further than microseconds
            there = (
                f"CASE WHEN isfinite({moment}) THEN {x if form == 'arrow' and kind == 'date' else moment} END"
            )
            return f"epoch({there})" if form == "numpy" else there
        if form == "numpy":
            return self.dialect.number(column, "untyped" if kind == "text" else kind)
        if duckdb_type in ("HUGEINT", "UHUGEINT", "BIGNUM"):
            return f"TRY_CAST({x} AS DOUBLE)"
        return f"TRY_CAST({x} AS VARCHAR)" if kind == "other" and form == "pandas" else x

    def _asked(self, sql: str, hint: str, call: Callable[[], _T]) -> _T:
        """What a query gives; of a relation, with the columns that it uses streamed in."""
        with self._lock:
            return quietly(
                self.label, hint, lambda: patiently(self._connection, lambda: self._with_rows(sql, call))
            )

    def _with_rows(self, sql: str, call: Callable[[], _T]) -> _T:
        named = _USED.findall(_LITERAL.sub("''", sql))
        used = [f"c{k}" for k in sorted({int(k) for k in named}) if f"c{k}" in self._selected]
        if new := [name for name in used if name in self._objects]:
            for name in new:
                place = self._objects.pop(name)
                self._frame.isetitem(
                    place, sources.as_texts(self._frame.iloc[:, place].to_numpy(dtype=object))
                )
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


def _parts(column: str) -> str:
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
