"""Tables of a world, in every form in which accord takes them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from accord.lab.audit import reference, reference_consent, reference_values

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Register:
    """A consent register: its form, its columns' types in DuckDB, its entries, and the day that counts."""

    form: str
    types: Mapping[str, str]
    entries: tuple[Row, ...]
    as_of: date
    is_roster: bool
    """Whether nobody else can be in the table."""


@dataclass(frozen=True)
class Source:
    """One table of a world: its form, its columns' types in DuckDB, everyone's rows, its options."""

    form: str
    types: Mapping[str, str]
    people: Mapping[int, tuple[Row, ...]]
    options: Mapping[str, Any]
    """epsilon, tiers, default, user: as for `accord.table`."""
    register: Register | None = None
    """Where the levels are, if they are not in the rows."""

    def level(self, person: int) -> float | None:
        """What a person agreed to, in millionths, by the reference; None: they are not in the table."""
        rows = self.people.get(person, ())
        if not rows:
            return None
        if self.register is not None:
            return self._registered_level(self.register, rows[0][self.options["user"]])
        try:
            (someone,) = reference.people(rows, **self.options)
        except (
            reference_values.Refused
        ):  # what is not a level counts as opted out where who is there is private
            return 0
        return someone.level

    def _registered_level(self, register: Register, name: Any) -> float:
        level = reference_consent.level(register.entries, name, register.as_of, **self.options)
        if level is None and not register.is_roster:
            return reference.millionths(self.options["tiers"][self.options["default"]])
        return level or 0


def register_in_its_form(name: str, source: Source) -> Any:
    """The consent register of a table, as `accord.table` is given it."""
    register = source.register
    assert register is not None
    entries = Source(register.form, register.types, {0: register.entries}, {})
    return in_its_form(f"{name}_register", entries)


def in_its_form(name: str, source: Source) -> Any:
    """What `accord.table` is given; `name` is that of a file, without its suffix."""
    rows = [row for person in source.people.values() for row in person]
    columns = {column: [row[column] for row in rows] for column in source.types}
    match source.form:
        case "lists":
            return columns
        case "arrays":
            return {column: _array(values, source.types[column]) for column, values in columns.items()}
        case "pandas":
            import pandas

            return pandas.DataFrame(columns)
        case "csv":
            with Path(f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows([_csv_text(row[column]) for column in columns] for row in rows)
            return f"{name}.csv"
    return _typed(name, source, rows)


def _typed(name: str, source: Source, rows: Sequence[Row]) -> Any:
    import duckdb

    connection = duckdb.connect()
    columns = ", ".join(f'"{column}" {kind}' for column, kind in source.types.items())
    connection.execute(f"CREATE TABLE people ({columns})")
    if rows:
        placeholders = f"({', '.join('?' for _ in source.types)})"
        values = [row[column] for row in rows for column in source.types]
        connection.execute(f"INSERT INTO people VALUES {', '.join([placeholders] * len(rows))}", values)
    match source.form:
        case "relation":
            return connection.table("people")
        case "arrow":
            return connection.table("people").to_arrow_table()
        case "polars":
            return connection.table("people").pl()
        case "parquet":
            connection.execute(f"COPY people TO '{name}.parquet' (FORMAT parquet)")
            return f"{name}.parquet"
    raise ValueError(f"there is no form {source.form!r}")


def _array(values: list[Any], kind: str) -> Any:
    """A column as NumPy has it: missing numbers are NaN, missing dates NaT."""
    if kind in ("DOUBLE", "FLOAT") or (kind == "BIGINT" and None in values):
        return np.array([nan if v is None else float(v) for v in values], dtype=np.float64)
    if kind == "DATE":
        return np.array(["NaT" if v is None else v for v in values], dtype="datetime64[D]")
    return np.array(values, dtype=np.int64) if kind == "BIGINT" else np.array(values)


def _csv_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
