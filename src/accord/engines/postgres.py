"""PostgreSQL: a table, or a view, that is aggregated where it is; only sums and counts come here.

    postgresql://user@host:port/database?table=schema.people

Every query is a read-only transaction on a connection of its own, so that a table can be used from threads
and forked processes and has nothing to mend after a fault. Ctrl-C stops the query in the server, too. The
server's texts may quote the data, and the address may have a password in it: neither is ever passed on. A
SourceError names the table and the class of the fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote

from accord.engines.csv_options import CSV
from accord.engines.dialect import Dialect, StandardLiterals
from accord.engines.engine import Engine, Kind, refuse_csv, seconds_left, unreadable
from accord.engines.postgres_dialect import PostgresDialect
from accord.engines.remote import RemoteEngine, fetched
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
_SETTINGS = """
SET LOCAL standard_conforming_strings = on; SET LOCAL extra_float_digits = 1; SET LOCAL DateStyle = 'ISO, YMD'
"""
_FIND_TABLE = """
SELECT c.oid, n.nspname, c.relname, c.relkind IN ('r', 'p', 'v', 'm', 'f')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass(%s)
"""
_LIST_TABLES = """
SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') ORDER BY 1
"""
# the type of a domain is what it is made of; NOT NULL is enforced in tables but not in foreign ones, and of
# new rows alone where it was added as NOT VALID (since PostgreSQL 18)
_LIST_COLUMNS = """
WITH RECURSIVE described AS (
    SELECT attrelid, attnum, attname, attnotnull, atttypid AS type FROM pg_catalog.pg_attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
    AND pg_catalog.has_column_privilege(attrelid, attnum, 'SELECT')
    UNION ALL
    SELECT attrelid, attnum, attname, attnotnull, typbasetype FROM described
    JOIN pg_catalog.pg_type AS t ON t.oid = described.type WHERE typtype = 'd'
)
SELECT attname, CASE WHEN typtype = 'e' THEN 'enum'
    WHEN typnamespace = 'pg_catalog'::regnamespace THEN typname ELSE 'other' END,
    attnotnull AND EXISTS (
        SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = attrelid AND c.relkind IN ('r', 'p')
    ) AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = attrelid
        AND k.contype = 'n' AND attnum = ANY (k.conkey) AND NOT k.convalidated
    )
FROM described JOIN pg_catalog.pg_type AS t ON t.oid = described.type WHERE typtype <> 'd' ORDER BY attnum
"""
_TYPES: Mapping[int, type[int | float | str]] = {
    **dict.fromkeys((20, 21, 23, 1700), int),
    **dict.fromkeys((700, 701), float),
}
"""What the types of a result hold, by PostgreSQL's numbers for them; others are text."""
_T = TypeVar("_T")


class Postgres(RemoteEngine):
    """A table or view of a PostgreSQL server."""

    rows_stay = "rows of a PostgreSQL table stay in the server. Write it to a Parquet file and open that."

    def __init__(
        self, address: str, label: str, table: str, types: Mapping[str, str], complete: frozenset[str]
    ) -> None:
        """`address` is an URL without the name of the table; it may hold a password.

        `table` is the name as it stands in SQL, `types` are PostgreSQL's of each column, and those of the
        `complete` ones are NOT NULL.
        """
        self.label, self._address, self.complete = label, address, complete
        self.columns = {column: _KINDS.get(kind, "other") for column, kind in types.items()}
        dialect = PostgresDialect(types)
        self.dialect: Dialect = dialect
        self._settings = dialect.settings
        self.source = f"(SELECT {', '.join(map(self._column, self.columns))} FROM {table})"

    def _column(self, name: str) -> str:
        """A column under its generated name.

        Text is without its type and collation, which can make different texts equal.
        """
        quoted = self.dialect.quote(name)
        selected = f'CAST({quoted} AS TEXT) COLLATE "C"' if self.columns[name] == "text" else quoted
        return f"{selected} AS {self.dialect.column(name)}"

    @classmethod
    def url(cls, text: str) -> Postgres:
        """Open what an URL names.

        Raises:
            SourceError: it names no table, or the server has none of that name that may be read.
        """
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise SourceError("a table in PostgreSQL needs psycopg. Install accord[postgres].") from None
        address, name = split_url(text)
        return cls._named(address, name)

    @classmethod
    def _named(cls, address: str, name: Sequence[str]) -> Postgres:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        try:
            conninfo_to_dict(address)
        except (psycopg.Error, UnicodeError):
            address = ""
        if not address:
            raise SourceError(
                f"the address of the PostgreSQL server cannot be read. Write {_FORM}, "
                "with signs such as / and @ in a password as %2F and %40."
            )
        if not name:
            raise SourceError(f"the address does not say which table. Add its name: {_FORM}.")
        label = f"the PostgreSQL table {'.'.join(name)!r}"
        table, types, complete = _quietly(label, lambda: _described(address, name))
        if not types:
            raise SourceError(
                f"{label} has no columns that this user may read. Grant SELECT on it, or name another."
            )
        return cls(address, label, table, types, complete)

    def fetch(self, sql: str, wide: Sequence[str] = ()) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            left = seconds_left()
            with _transaction(self._address) as connection, connection.cursor(binary=True) as cursor:
                if left is not None:
                    milliseconds = str(max(1, int(1000 * left)))
                    cursor.execute("SELECT set_config('statement_timeout', %s, true)", (milliseconds,))
                for setting in self._settings(sql):
                    cursor.execute("SELECT set_config(%s, %s, true)", setting)
                cursor.execute(sql)
                types = {column.name: _TYPES.get(column.type_code, str) for column in cursor.description}
                return fetched(types, cursor.fetchall(), wide)

        return _quietly(self.label, ask)

    def open_register(self, source: Any, csv: CSV | None) -> Engine:
        refuse_csv(csv)
        here = (
            "The consent register of a table in PostgreSQL is a table of the same database. "
            "Load it there, and give its name or the same address with ?table=name."
        )
        if not isinstance(source, str):
            raise SourceError(f"consent= is a {type(source).__qualname__}. {here}")
        is_url = source.startswith(("postgresql://", "postgres://"))
        address, name = split_url(source) if is_url else (self._address, _schema_and_table(source))
        if address != self._address:
            raise SourceError(f"the register has another address than the table. {here}")
        try:
            return Postgres._named(address, name)
        except SourceError as fault:
            refused = str(fault)
        raise SourceError(f"{refused} {here}")

    def beside(self, register: Engine, sql: str) -> str:
        """As it stands: both are read in one transaction, which sees one state of them."""
        return f"({sql})"


def _transaction(address: str) -> Any:
    """A connection in a read-only transaction, closed at the end of a `with`."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    seconds = conninfo_to_dict(address).get("connect_timeout", 10)
    connection: Any = psycopg.connect(
        address, client_encoding="utf8", connect_timeout=seconds, prepare_threshold=None
    )
    try:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute(_SETTINGS)
    except BaseException:
        connection.close()
        raise
    return connection


def _described(address: str, name: Sequence[str]) -> tuple[str, dict[str, str], frozenset[str]]:
    """A table's name in SQL, the types of its columns as far as they may be read, and which are NOT NULL."""
    quote = StandardLiterals().quote
    with _transaction(address) as connection:
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
        row = connection.execute(_FIND_TABLE, [".".join(map(quote, name))]).fetchone()
        if row is None:
            tables = [row[0] for row in connection.execute(_LIST_TABLES).fetchall()]
            raise SourceError(
                f"there is no table {'.'.join(name)!r} in the database: "
                f"{did_you_mean('.'.join(name), tables)}"
            )
        oid, schema, table, is_readable = row
        listed = connection.execute(_LIST_COLUMNS, [oid]).fetchall() if is_readable else []
    types = {column: kind for column, kind, _ in listed}
    complete = frozenset(column for column, _, is_complete in listed if is_complete)
    return f"{quote(schema)}.{quote(table)}", types, complete


def split_url(text: str) -> tuple[str, list[str]]:
    """An URL without its parameter `table`, and what this names: a schema, if any, and a table."""
    scheme, _, rest = text.partition("://")
    start = rest.partition("/")[0].find("@") + 1  # a password may have a question mark in it
    place, _, query = rest[start:].partition("?")
    parameters = query.split("&") if query else []
    others = [parameter for parameter in parameters if not parameter.startswith("table=")]
    names = [unquote(p.removeprefix("table=")) for p in parameters if p.startswith("table=")]
    address = f"{scheme}://{rest[:start]}{place}" + (f"?{'&'.join(others)}" if others else "")
    return address, _schema_and_table(names[-1]) if names else []


def _schema_and_table(name: str) -> list[str]:
    """people, schema.people, "any.name", schema."any name", …: split at the first dot outside quotes."""
    quoted = r'"(?:[^"]|"")+"'
    match = re.fullmatch(rf"(?:({quoted}|[^.\"][^.]*)\.)?({quoted}|.+)", name, re.DOTALL)
    parts = [part for part in match.groups() if part] if match else [name] if name else []
    return [
        part[1:-1].replace('""', '"') if re.fullmatch(quoted, part, re.DOTALL) else part for part in parts
    ]


def _quietly(label: str, call: Callable[[], _T]) -> _T:
    """What `call` gives; an error tells nothing of the data or the address."""
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
    raise unreadable(label, fault, hint)
