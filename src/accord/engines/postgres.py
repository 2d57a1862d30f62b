"""PostgreSQL: a table, or a view, that is aggregated where it is; only sums and counts come here.

    postgresql://user@host:port/database?table=schema.people

Where PostgreSQL fails and others do not, its SQL is written so that it cannot: a decimal beyond the doubles,
a product of doubles that is too small for one, a date beyond the timestamps. Text is compared byte by byte,
whatever the collation of its column.

Every query is a read-only transaction on a connection of its own, so that a table can be used from threads
and forked processes and has nothing to mend after a fault. Ctrl-C stops the query in the server, too. The
server's texts may quote the data, and the address may have a password in it: neither is ever passed on. A
SourceError names the table and the class of the fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from math import inf, nextafter
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np

from accord.engines.dialect import Dialect, StandardLiterals
from accord.engines.engine import Kind
from accord.errors import AccordError, SourceError, did_you_mean

_FORM = "postgresql://user@host/database?table=schema.people"
OLDEST = 16
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "numeric"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar", "enum"), "text"),
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
_SETTINGS = (
    "SET LOCAL standard_conforming_strings = on; SET LOCAL extra_float_digits = 1; SET LOCAL DateStyle = "
    "'ISO, YMD'"
)
_FIND = (
    "SELECT c.oid, n.nspname, c.relname, c.relkind IN ('r', 'p', 'v', 'm', 'f') FROM pg_catalog.pg_class AS "
    "c "
    "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass(%s)"
)
_TABLES = (
    "SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || "
    "c.relname END FROM pg_catalog.pg_class AS c "
    "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', "
    "'f') AND n.nspname !~ '^pg_' "
    "AND n.nspname <> 'information_schema' AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') ORDER BY "
    "1"
)
# the type of a domain is what it is made of
_COLUMNS = (
    "WITH RECURSIVE found AS (SELECT attnum, attname, atttypid AS type FROM pg_catalog.pg_attribute WHERE "
    "attrelid = %s AND attnum > 0 "
    "AND NOT attisdropped AND pg_catalog.has_column_privilege(attrelid, attnum, 'SELECT') UNION ALL "
    "SELECT attnum, attname, typbasetype FROM found JOIN pg_catalog.pg_type AS t ON t.oid = found.type WHERE "
    "typtype = 'd') "
    "SELECT attname, CASE WHEN typtype = 'e' THEN 'enum' WHEN typnamespace = 'pg_catalog'::regnamespace THEN "
    "typname ELSE 'other' END "
    "FROM found JOIN pg_catalog.pg_type AS t ON t.oid = found.type WHERE typtype <> 'd' ORDER BY attnum"
)
_FLOATS, _INTEGERS, _NUMERIC = (700, 701), (20, 21, 23), 1700
"""What PostgreSQL calls the types of a result."""
_LATEST = "TIMESTAMP '294247-01-10 04:00:54.775806'"
"""The last moment that a timestamp of every engine has room for."""
_T = TypeVar("_T")


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

    def attempt(self, x: str, kind: str) -> str:
        """A cast that cannot fail, because it is of the column's own kind."""
        return f"CAST({x} AS {kind})"

    def instant(self, value: str) -> str:
        return f"TIMESTAMP {self.text(value)}"

    def sum(self, x: str) -> str:
        return f"SUM(CAST({x} AS BIGINT))"  # which is NUMERIC

    def steps(self, x: str, low: float, factor: float) -> str:
        """A product of doubles that would be 0 is an error here: it is left out where it could be."""
        steps = self.plain_steps(x, low, factor)
        smallest = min(nextafter(low, inf) - low, low - nextafter(low, -inf))
        if smallest * factor > 0:
            return steps
        near = f"ABS({x} - {self.double(low)}) < {self.double(2**-60 / factor)}"  # where it cannot matter
        return f"CASE WHEN {near} THEN 0 ELSE {steps} END"

    def quotient(self, a: str, b: str) -> str:
        return f"DIV(CAST({a} AS NUMERIC), CAST({b} AS NUMERIC))"

    def number(self, column: str, kind: Kind) -> str:
        """A column as a double.

        A decimal that no double can hold is NaN, as far as it is larger, and 0 as far as it is smaller.
        """
        x = self.column(column)
        if kind == "boolean":
            return f"CAST(CAST({x} AS INTEGER) AS {self.double_type})"
        return self._double(column, x)

    def _double(self, column: str, x: str) -> str:
        """A column of numbers, or what was cut of it, as a double."""
        if self.types.get(column) != "numeric":
            return f"CAST({x} AS {self.double_type})"
        fits = f"ABS({x}) <= 1.7976931348623157e308 OR ABS({x}) = CAST('Infinity' AS NUMERIC)"
        return (
            f"CASE WHEN ABS({x}) < 1e-307 THEN 0 WHEN {fits} "
            f"THEN CAST({x} AS {self.double_type}) WHEN {x} IS NOT NULL THEN {self.double(float('nan'))} END"
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
        moment = f"CAST({f'CAST({x} AS DATE)' if kind == 'date' else x} AS TIMESTAMP)"
        return f"CASE WHEN ISFINITE({x}) AND {x} <= {_LATEST} THEN DATE_PART('epoch', {moment}) END"

    def letters(self, column: str) -> str:
        return f'{self._spelled(column, self.column(column))} COLLATE "C"'

    def split(self, entries: str) -> str:
        return f"STRING_TO_TABLE('{entries}', ',')"

    def unhexed(self, x: str) -> str:
        return f"CONVERT_FROM(DECODE({x}, 'hex'), 'UTF8')"

    def identity(self, user: str, kind: Kind) -> str:
        if kind != "text":
            return self.column(user)
        return self._trimmed(f"NORMALIZE({self._spelled(user, self.column(user))}, NFC)")

    def _trimmed(self, name: str) -> str:
        return f"REGEXP_REPLACE(BTRIM({name}, ' \t\r\n\ufeff\u00a0'), '\\.0+$', '')"

    def person(self, identity: str, user: str, kind: Kind, secret: str) -> str:
        x, name = identity, identity
        if self.types.get(user) == "numeric":
            name = self._trimmed(f"CAST(CASE WHEN {x} = FLOOR({x}) THEN FLOOR({x}) ELSE {x} END AS TEXT)")
        elif self.types.get(user) in ("float4", "float8"):
            whole = f"{x} = FLOOR({x}) AND ABS({x}) < {self.double(2.0**63)}"
            spelled = self._spelled(user, x)
            name = self._trimmed(
                f"CASE WHEN {whole} THEN CAST(CAST({x} AS BIGINT) AS TEXT) ELSE {spelled} END"
            )
        elif kind == "number":
            name = f"CAST({x} AS TEXT)"
        setting = self._secrets.setdefault(secret, f"accord.secret{next(self._numbers)}")
        key = f"(SELECT CURRENT_SETTING({self.text(setting)}))"
        digest = f"ENCODE(SHA256(CONVERT_TO({key} || {name}, 'UTF8')), 'hex')"
        return f"CAST(CAST('x' || SUBSTR({digest}, 1, 16) AS BIT(64)) >> 1 AS BIGINT)"

    def is_inexact_id(self, user: str) -> str:
        exact = {"float4": 2.0**24, "float8": 2.0**53}.get(self.types.get(user, ""))
        size = f"ABS(CAST({self.column(user)} AS {self.double_type}))"
        return f"NOT {size} < {self.double(exact)}" if exact else "FALSE"

    def _spelled(self, column: str, x: str) -> str:
        """A column, or what is known of it, as text.

        A floating-point number as other engines write it: 1.0, 1000000.0, 1e+16, nan.
        """
        text = f"CAST({x} AS TEXT)"
        if self.types.get(column) not in ("float4", "float8"):
            return text
        is_plain = f"ABS({x}) >= 1e-4 AND ABS({x}) < 1e16"
        plain = f"CASE WHEN {is_plain} THEN CAST(CAST({text} AS NUMERIC) AS TEXT) ELSE {text} END"
        return (
            f"CASE WHEN {x} = 'NaN' THEN 'nan' WHEN {x} = 'Infinity' THEN 'inf' WHEN {x} = '-Infinity' THEN "
            "'-inf' "
            f"WHEN ({plain}) ~ '^-?[0-9]+$' THEN ({plain}) || '.0' ELSE {plain} END"
        )


class Postgres:
    """A table or view of a PostgreSQL server."""

    lends = False

    def __init__(self, address: str, label: str) -> None:
        """`address` is an URL without the name of the table; it may hold a password."""
        self.label, self._address = label, address
        self.source = ""
        self.columns: dict[str, Kind] = {}
        self._use(PostgresDialect({}))

    def _use(self, dialect: PostgresDialect) -> None:
        self.dialect: Dialect = dialect
        self._settings = dialect.settings

    @classmethod
    def url(cls, text: str) -> Postgres:
        """Open what an URL names.

        Raises:
            SourceError: it names no table, or the server has none of that name that may be read.
        """
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise SourceError("a table in PostgreSQL needs psycopg. Install accord[postgres].") from None
        address, name = split_url(text)
        try:
            conninfo_to_dict(address)
        except (psycopg.Error, UnicodeError):
            address = ""
        if not address:
            raise SourceError(
                f"the address of the PostgreSQL server cannot be read. Write {_FORM}, with signs such as / "
                "and @ in a password as %2F and %40."
            )
        if not name:
            raise SourceError(f"the address does not say which table. Add its name: {_FORM}.")
        made = cls(address, f"the PostgreSQL table {'.'.join(name)!r}")
        _quietly(made.label, lambda: made._open(name))
        return made

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        def ask() -> tuple[list[tuple[str, int]], list[tuple[Any, ...]]]:
            with self._transaction() as connection, connection.cursor(binary=True) as cursor:
                for setting in self._settings(sql):
                    cursor.execute("SELECT set_config(%s, %s, true)", setting)
                cursor.execute(sql)
                return [(column.name, column.type_code) for column in cursor.description], cursor.fetchall()

        described, rows = _quietly(self.label, ask)
        columns = list(zip(*rows, strict=True)) or [()] * len(described)
        return {
            name: [int(x or 0) for x in values] if name in wide else _array(values, kind)
            for (name, kind), values in zip(described, columns, strict=True)
        }

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        raise SourceError(_STAYS)

    def lend(self, columns: dict[str, Any]) -> AbstractContextManager[str]:
        raise SourceError(_STAYS)

    def state(self) -> object:
        return None

    def _transaction(self) -> Any:
        """A connection in a read-only transaction, closed at the end of a `with`."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        patience = conninfo_to_dict(self._address).get("connect_timeout", 10)
        connection: Any = psycopg.connect(
            self._address, client_encoding="utf8", connect_timeout=patience, prepare_threshold=None
        )
        try:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.execute(_SETTINGS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, name: Sequence[str]) -> None:
        quote = self.dialect.quote
        with self._transaction() as connection:
            version = connection.info.server_version // 10_000
            encoding = connection.info.parameter_status("server_encoding")
            if version < OLDEST:
                raise SourceError(
                    f"the server is PostgreSQL {version}. accord reads tables of version {OLDEST} and later."
                )
            if encoding != "UTF8":
                raise SourceError(
                    f"the database is encoded in {encoding}. accord reads tables of databases in UTF8."
                )
            found = connection.execute(_FIND, [".".join(map(quote, name))]).fetchone()
            if found is None:
                known = [row[0] for row in connection.execute(_TABLES).fetchall()]
                raise SourceError(
                    f"there is no table {'.'.join(name)!r} in the database: "
                    f"{did_you_mean('.'.join(name), known)}"
                )
            table, schema, own, readable = found
            described = connection.execute(_COLUMNS, [table]).fetchall() if readable else []
        if not described:
            raise SourceError(
                f"{self.label} has no columns that this user may read. Grant SELECT on it, or name another."
            )
        self._use(PostgresDialect(dict(described)))
        self.columns = {column: _KINDS.get(kind, "other") for column, kind in described}
        self.source = (
            f"(SELECT {', '.join(map(self._column, self.columns))} FROM {quote(schema)}.{quote(own)})"
        )

    def _column(self, name: str) -> str:
        """A column under its generated name.

        Text is without its type and collation, which can make different texts equal.
        """
        quoted = self.dialect.quote(name)
        selected = f'CAST({quoted} AS TEXT) COLLATE "C"' if self.columns[name] == "text" else quoted
        return f"{selected} AS {self.dialect.column(name)}"


_STAYS = "rows of a PostgreSQL table stay in the server. Write it to a Parquet file and open that."


def split_url(text: str) -> tuple[str, list[str]]:
    """An URL without its parameter `table`, and the parts of the name that this gives.

    Of the schema, if any, and of the table.
    """
    scheme, _, rest = text.partition("://")
    start = rest.partition("/")[0].find("@") + 1  # a password may have a question mark in it
    place, _, query = rest[start:].partition("?")
    given = query.split("&") if query else []
    kept = [part for part in given if not part.startswith("table=")]
    names = [unquote(part.removeprefix("table=")) for part in given if part.startswith("table=")]
    address = f"{scheme}://{rest[:start]}{place}" + (f"?{'&'.join(kept)}" if kept else "")
    return address, _parts(names[-1]) if names else []


def _parts(name: str) -> list[str]:
    """people, schema.people, "any.name", schema."any name", …: split at the first dot outside quotes."""
    quoted = r'"(?:[^"]|"")+"'
    match = re.fullmatch(rf"(?:({quoted}|[^.\"][^.]*)\.)?({quoted}|.+)", name, re.DOTALL)
    found = [part for part in match.groups() if part] if match else [name] if name else []
    return [
        part[1:-1].replace('""', '"') if re.fullmatch(quoted, part, re.DOTALL) else part for part in found
    ]


def _array(values: Sequence[Any], kind: int) -> Any:
    """A column of a result; what is NULL is masked."""
    absent = [x is None for x in values]
    if kind in _FLOATS:
        array: Any = np.array([0.0 if x is None else x for x in values], dtype=np.float64)
    elif kind in _INTEGERS or kind == _NUMERIC:
        array = np.array([0 if x is None else int(x) for x in values], dtype=np.int64)
    else:
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return np.ma.array(array, mask=absent) if any(absent) else array


def _quietly(label: str, call: Callable[[], _T]) -> _T:
    """What `call` gives.

    The server's error becomes a SourceError that tells nothing of the data or the address.
    """
    from psycopg import OperationalError, errors

    try:
        return call()
    except AccordError:
        raise
    except errors.QueryCanceled:
        fault, hint = "QueryCanceled", "The server stopped the query: somebody did, or its statement_timeout."
    except errors.InsufficientPrivilege:
        fault, hint = "InsufficientPrivilege", "Grant this user USAGE on the schema and SELECT on the table."
    except OperationalError as error:
        fault = type(error).__name__
        hint = "The server cannot be reached, or has gone. Check the address, the user and the password."
    except Exception as error:
        fault, hint = type(error).__name__, "Check that it is as it was, and open it again."
    raise SourceError(f"cannot read {label} ({fault}). {hint}")
