"""Spark's SQL, the same whether ANSI mode is on or off: nothing in it can overflow, or fail to be cast."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

from accord.engines.dialect import BLANKS, Dialect, printable
from accord.engines.engine import Kind
from accord.errors import SpecError

_DAY = 86_400_000_000
"""A day in microseconds."""
_FARTHEST = 106_751_991
"""Days from 1970 that 64 bits of microseconds hold."""
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;+-_/()<>=")


def type_name(spark_type: Any) -> str:
    """What PySpark calls a type, which need not be imported for it."""
    return type(spark_type).__name__


def _scale(spark_type: Any) -> int:
    """Digits after a decimal's point."""
    return int(spark_type.scale) if type_name(spark_type) == "DecimalType" else 0


class SparkDialect(Dialect):
    """The SQL of Spark, for columns of known types."""

    double_type, wide_type = "DOUBLE", "DECIMAL(38,0)"

    def attempt(self, x: str, sql_type: str) -> str:
        return f"TRY_CAST({x} AS {sql_type})"

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
        kind = type_name(self.types[column])
        unlike = ("FloatType", "DoubleType", "TimestampType", "TimestampNTZType")
        if kind in unlike or _scale(self.types[column]):
            raise SpecError(
                f"column {column!r} cannot name tiers in Spark. Use a column of text or whole numbers."
            )
        return f"CAST({self.column(column)} AS STRING)"

    def moment(self, column: str) -> str:
        """In microseconds since 1970."""
        x = self.column(column)
        match type_name(self.types[column]):
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

    def text_identity(self, user: str) -> str:
        x = self.column(user)  # ICU comes with Spark
        return self._trimmed(f"REFLECT('com.ibm.icu.text.Normalizer', 'compose', COALESCE({x}, ''), FALSE)")

    def _trimmed(self, name: str) -> str:
        zeros = self.text(r"\.0+\z")
        return f"REGEXP_REPLACE(BTRIM({name}, {self.text(BLANKS)}), {zeros}, '')"

    def name(self, identity: str, user: str, kind: Kind) -> str:
        x, name = identity, f"CAST({identity} AS STRING)"
        if kind != "number":
            return name
        if self.mantissa(user) is not None:  # as DuckDB writes them, without an exponent
            plain = f"TRIM(TRAILING '0' FROM CAST(CAST({name} AS DECIMAL(38,22)) AS STRING))"
            size = f"ABS(CAST({x} AS DOUBLE))"
            name = (
                f"CASE WHEN {size} < {2**53} AND {x} = FLOOR({x}) THEN CAST(FLOOR({x}) AS STRING) "
                f"WHEN {size} < {2**53} AND {size} >= {self.double(1e-4)} THEN {plain} ELSE {name} END"
            )
        return self._trimmed(name)

    def is_named_alike(self, user: str) -> bool:
        """Of decimals with more places than six, the spelling depends on the session's settings."""
        return _scale(self.types[user]) <= 6

    def digest(self, text: str) -> str:
        """Of 64 bits as a signed number, which is what a negative base asks CONV for."""
        first = f"CAST(CONV(SUBSTR(SHA2({text}, 256), 1, 16), 16, -10) AS BIGINT)"
        return f"SHIFTRIGHTUNSIGNED({first}, 1)"

    def mantissa(self, column: str) -> int | None:
        return {"FloatType": 24, "DoubleType": 53}.get(type_name(self.types[column]))
