"""The SQL of a consent register: everyone's current entry, and a table's rows with the levels of it.

Entries are brought to one a person before they are joined, so that a row has one level, however many entries
there are. Who somebody is, is said in one type by both sides: as it stands where both columns are of one
type, else by name (`Dialect.name`), as ledgers know people.
"""

from __future__ import annotations

from accord.engines import per_person
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns
from accord.engines.sql_names import (
    ENTRY_FAULT,
    ENTRY_LATEST,
    ENTRY_LEVEL,
    ENTRY_MOMENT,
    ENTRY_USER,
    ROW_KEY,
)


def key(dialect: Dialect, user: str, columns: Columns, by_name: bool) -> str:
    """Who a row or an entry is of.

    NULL where an id is a floating-point number that does not tell one whole number from the next.
    """
    who = dialect.identity(user, columns[user])
    who = dialect.name(who, user, columns[user]) if by_name else who
    if dialect.mantissa(user) is None:
        return who
    return f"CASE WHEN {dialect.is_inexact_id(user)} THEN NULL ELSE {who} END"


def faults(dialect: Dialect, source: str, user: str, columns: Columns, moment: str | None) -> str:
    """How many entries there are of nobody, with a date that cannot be read, and with an id that is inexact.

    `moment`: since when an entry is valid, as SQL.
    """
    with_user = per_person.has_user(dialect, user, columns)
    undated = "0" if moment is None else f"COUNT(*) - COUNT({moment})"
    return (
        f"SELECT COUNT(*) - COUNT(CASE WHEN {with_user} THEN 1 END) AS nobody, {undated} AS undated, "
        f"COUNT(CASE WHEN {dialect.is_inexact_id(user)} THEN 1 END) AS inexact FROM {source}"
    )


def current_entries(source: str, key: str, level: str, fault: str, moment: str | None, as_of: str) -> str:
    """Everyone's current entry: the latest until `as_of`, and the strictest of several with one date.

    Args:
        source: the register.
        key: who an entry is of.
        level: its level, as a number of which the smallest is the strictest.
        fault: what stands in the place of a level that is none; NULL: it is one.
        moment: since when it is valid; None: always.
        as_of: as `moment`.
    """
    columns = f"{key} AS {ENTRY_USER}, {level} AS {ENTRY_LEVEL}, {fault} AS {ENTRY_FAULT}"
    entries = f"(SELECT {columns} FROM {source})"
    if moment is not None:
        dated = f"(SELECT {columns}, {moment} AS {ENTRY_MOMENT} FROM {source})"
        latest = f"MAX({ENTRY_MOMENT}) OVER (PARTITION BY {ENTRY_USER}) AS {ENTRY_LATEST}"
        until = f"(SELECT *, {latest} FROM {dated} WHERE {ENTRY_MOMENT} <= {as_of})"
        entries = f"(SELECT * FROM {until} WHERE {ENTRY_MOMENT} = {ENTRY_LATEST})"
    strictest = f"MIN({ENTRY_LEVEL}) AS {ENTRY_LEVEL}, MIN({ENTRY_FAULT}) AS {ENTRY_FAULT}"
    return (
        f"SELECT {ENTRY_USER}, {strictest} FROM {entries} "
        f"WHERE {ENTRY_USER} IS NOT NULL GROUP BY {ENTRY_USER}"
    )


def with_levels(source: str, key: str, entries: str) -> str:
    """The rows of a source, each with the level of its person's current entry; NULL: there is none."""
    return (
        f"(SELECT source.*, entries.{ENTRY_LEVEL}, entries.{ENTRY_FAULT} "
        f"FROM (SELECT *, {key} AS {ROW_KEY} FROM {source}) AS source "
        f"LEFT JOIN {entries} AS entries ON entries.{ENTRY_USER} = source.{ROW_KEY})"
    )
