"""PostgreSQL's SQL.

Where PostgreSQL fails and others do not, it is written so that it cannot: a decimal beyond the doubles, a
product of doubles that is too small for one, a date beyond the timestamps. Text is compared byte by byte,
whatever the collation of its column.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from math import inf, nan, nextafter

from accord.engines.dialect import BLANKS, Dialect, StandardLiterals
from accord.engines.engine import Kind

_LATEST = "TIMESTAMP '294247-01-10 04:00:54.775806'"
"""The last moment that a timestamp of every engine has room for."""


class PostgresDialect(StandardLiterals, Dialect):
    """The SQL of PostgreSQL, for columns of known types."""

    double_type, wide_type = "DOUBLE PRECISION", "NUMERIC"

    def __init__(self, types: Mapping[str, str]) -> None:
        super().__init__(types)
        self._secrets: dict[str, str] = {}
        self._numbers = count(1)

    def settings(self, sql: str) -> list[tuple[str, str]]:
        """What must be set before a query, by name.

        So its text, which the server may log and show, has no secret in it.
        """
        return [(name, secret) for secret, name in list(self._secrets.items()) if name in sql]

    def attempt(self, x: str, sql_type: str) -> str:
        """A cast that cannot fail, because it is of the column's own kind."""
        return f"CAST({x} AS {sql_type})"

    def sum(self, x: str) -> str:
        return f"SUM(CAST({x} AS BIGINT))"  # which is NUMERIC

    def steps(self, x: str, low: float, factor: float) -> str:
        """A product of doubles that would be 0 is an error here: it is left out where it could be."""
        steps = super().steps(x, low, factor)
        smallest = min(nextafter(low, inf) - low, low - nextafter(low, -inf))
        if smallest * factor > 0:
            return steps
        near = f"ABS({x} - {self.double(low)}) < {self.double(2**-60 / factor)}"  # where it cannot matter
        return f"CASE WHEN {near} THEN 0 ELSE {steps} END"

    def quotient(self, a: str, b: str) -> str:
        return f"DIV(CAST({a} AS NUMERIC), CAST({b} AS NUMERIC))"

    def number(self, column: str, kind: Kind) -> str:
        """A column as a double.

        A decimal that is too large for a double is NaN, and 0 if it is too small.
        """
        x = self.column(column)
        if kind == "boolean":
            return f"CAST(CAST({x} AS INTEGER) AS {self.double_type})"
        return self._double(column, x)

    def _double(self, column: str, x: str) -> str:
        """A column of numbers, or what was cut of it, as a double."""
        if self.types[column] != "numeric":
            return f"CAST({x} AS {self.double_type})"
        fits = f"ABS({x}) <= 1.7976931348623157e308 OR ABS({x}) = CAST('Infinity' AS NUMERIC)"
        return (
            f"CASE WHEN ABS({x}) < 1e-307 THEN 0 WHEN {fits} THEN CAST({x} AS {self.double_type}) "
            f"WHEN {x} IS NOT NULL THEN {self.double(nan)} END"
        )

    def is_finite(self, x: str) -> str:
        """NaN is larger than ∞ here."""
        return f"({x} > {self.double(-inf)} AND {x} < {self.double(inf)})"

    def level(self, column: str, kind: Kind) -> str:
        """A decimal is cut to millionths; what no double can hold is NaN, as in `number`."""
        x = self.column(column)
        return self._double(column, f"TRUNC({x}, 6)" if self.types[column] == "numeric" else x)

    def moment(self, column: str) -> str:
        """A date is compared with a timestamp as it is."""
        return self.column(column)

    def seconds(self, column: str, kind: str) -> str:
        """Dates reach further than timestamps."""
        x = self.column(column)
        moment = f"CAST({x} AS DATE)" if kind == "date" else x
        seconds = f"DATE_PART('epoch', CAST({moment} AS TIMESTAMP))"
        return f"CASE WHEN ISFINITE({x}) AND {x} <= {_LATEST} THEN {seconds} END"

    def letters(self, column: str) -> str:
        return f'{self._spelled(column, self.column(column))} COLLATE "C"'

    def split(self, entries: str) -> str:
        return f"STRING_TO_TABLE('{entries}', ',')"

    def unhexed(self, x: str) -> str:
        return f"CONVERT_FROM(DECODE({x}, 'hex'), 'UTF8')"

    def text_identity(self, user: str) -> str:
        return self._trimmed(f"NORMALIZE({self._spelled(user, self.column(user))}, NFC)")

    def _trimmed(self, name: str) -> str:
        return f"REGEXP_REPLACE(BTRIM({name}, '{BLANKS}'), '\\.0+$', '')"

    def name(self, identity: str, user: str, kind: Kind) -> str:
        x = identity
        if self.types[user] == "numeric":
            return self._trimmed(f"CAST(CASE WHEN {x} = FLOOR({x}) THEN FLOOR({x}) ELSE {x} END AS TEXT)")
        if self.mantissa(user) is not None:
            whole = f"{x} = FLOOR({x}) AND ABS({x}) < {self.double(2.0**63)}"
            spelled = self._spelled(user, x)
            return self._trimmed(
                f"CASE WHEN {whole} THEN CAST(CAST({x} AS BIGINT) AS TEXT) ELSE {spelled} END"
            )
        return f"CAST({x} AS TEXT)"

    def secret(self, secret: str) -> str:
        setting = self._secrets.setdefault(secret, f"accord.secret{next(self._numbers)}")
        return f"(SELECT CURRENT_SETTING({self.text(setting)}))"

    def digest(self, text: str) -> str:
        digest = f"ENCODE(SHA256(CONVERT_TO({text}, 'UTF8')), 'hex')"
        return f"CAST(CAST('x' || SUBSTR({digest}, 1, 16) AS BIT(64)) >> 1 AS BIGINT)"

    def mantissa(self, column: str) -> int | None:
        return {"float4": 24, "float8": 53}.get(self.types[column])

    def _spelled(self, column: str, x: str) -> str:
        """A column, or what was made of it, as text.

        A floating-point number as other engines write it: 1.0, 1000000.0, 1e+16, nan.
        """
        text = f"CAST({x} AS TEXT)"
        if self.mantissa(column) is None:
            return text
        is_plain = f"ABS({x}) >= 1e-4 AND ABS({x}) < 1e16"
        plain = f"CASE WHEN {is_plain} THEN CAST(CAST({text} AS NUMERIC) AS TEXT) ELSE {text} END"
        return (
            f"CASE WHEN {x} = 'NaN' THEN 'nan' "
            f"WHEN {x} = 'Infinity' THEN 'inf' WHEN {x} = '-Infinity' THEN '-inf' "
            f"WHEN ({plain}) ~ '^-?[0-9]+$' THEN ({plain}) || '.0' ELSE {plain} END"
        )
