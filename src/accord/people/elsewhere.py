"""A table that somebody else holds: its columns and levels are known, and no row of it can be read here.

Plans are made from public things, so that they are made here as anywhere. Whoever holds the table answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from accord.budget import PUBLIC, IntArray
from accord.engines import CSV, Engine, Kind
from accord.engines.dialect import Dialect
from accord.engines.duckdb_dialect import DuckDBDialect
from accord.engines.remote import RemoteEngine
from accord.errors import SourceError
from accord.people.description import Description
from accord.people.levels import levels_of
from accord.people.table import Table

_TYPES: Mapping[Kind, str] = {
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "untyped": "VARCHAR",
    "other": "BLOB",
}


class _Columns(RemoteEngine):
    """Columns without rows."""

    rows_stay = (
        "this table is held by a service, which gives no rows: ask its plan(), release(), sql(), spec() and "
        "remaining(). Everything else is for whoever holds the data."
    )
    source = "elsewhere"

    def __init__(self, label: str, columns: Mapping[str, Kind], complete: frozenset[str]) -> None:
        self.label, self.columns, self.complete = label, dict(columns), complete
        self.dialect: Dialect = DuckDBDialect({name: _TYPES[kind] for name, kind in columns.items()})

    def fetch(self, sql: str, wide: Any = ()) -> NoReturn:
        raise SourceError(self.rows_stay)

    def open_register(self, source: Any, csv: CSV | None) -> NoReturn:
        raise SourceError(self.rows_stay)

    def beside(self, register: Engine, sql: str) -> NoReturn:
        raise SourceError(self.rows_stay)


@dataclass(frozen=True)
class Known:
    """What is public of a table that somebody else holds."""

    columns: Mapping[str, Kind]
    """Of everything that it has, people and levels included."""
    user: str | None
    level_column: str | None
    """None: levels are not in the table."""
    neighbors: str
    complete: frozenset[str]
    notes: tuple[str, ...]
    """Where levels come from that are not the table's own."""
    description: Description


class TableElsewhere(Table):
    """Whatever needs no row is as of any table; `keep_levels` says who there is."""

    def __init__(self, known: Known, tiers: Mapping[str, float] | None) -> None:
        engine = _Columns(known.description.name, known.columns, known.complete)
        level = 1.0 if known.level_column is None else known.level_column
        is_tier = known.level_column is not None
        levels = levels_of(engine.dialect, engine.columns, level, tiers if is_tier else None, None)
        super().__init__(engine, levels, known.user, known.neighbors, known.level_column)
        self.description, self._notes = known.description, known.notes

    def keep_levels(self, levels: Mapping[int, int]) -> None:
        """How many people have which level, in millionths; 0: opted out."""
        self.reader.keep_levels(*_columns_of(levels))

    @property
    def about_levels(self) -> tuple[str, ...]:
        return self._notes


def _columns_of(levels: Mapping[int, int]) -> tuple[Any, IntArray, IntArray]:
    micro = np.fromiter(levels, dtype=np.int64, count=len(levels))
    people = np.fromiter(levels.values(), dtype=np.int64, count=len(levels))
    return np.where(micro == PUBLIC, np.inf, micro / 1e6), micro, people
