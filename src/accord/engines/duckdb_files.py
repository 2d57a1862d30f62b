"""Parquet and CSV files as views of a DuckDB connection."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from typing import Any

from accord.engines import csv_files
from accord.engines.csv_options import CSV, UTF8
from accord.engines.dialect import StandardLiterals
from accord.engines.duckdb_sources import GIVEN, kind_of, refuse_changed_names
from accord.engines.files import Files
from accord.errors import SourceError

_LITERALS = StandardLiterals()
_LINE = 2_000_000
"""How many bytes a record of a CSV file may have, unless DuckDB is told otherwise."""


class FileView:
    """Files as the view that is called GIVEN."""

    def __init__(self, con: Any, files: Files, csv: CSV) -> None:
        self._con, self._files, self._csv = con, files, csv
        self._copies: csv_files.Copies | None = None
        self._copied: object = None
        self._longest: int | None = None
        """How many bytes a record may have, if more than DuckDB's own limit."""
        if files.form == "parquet":
            names = parquet_columns(con, files)
            self._function, self._options = "read_parquet", "union_by_name = true, hive_partitioning = false"
        else:
            self._function = "read_csv"
            names, self._options = csv_columns(con, files, csv)
        taken = {name.lower() for name in names}
        self.columns = tuple(names)
        """Of the files."""
        self.folder_columns = tuple(name for name in files.folder_columns if name.lower() not in taken)
        """Of the folders' names; a column of the files that is called so counts instead."""
        self._show(files.paths)

    def refresh(self) -> None:
        """Before rows are read: copy files that are in another encoding, or copy them again if changed."""
        if self._copies is None and (self._files.form == "parquet" or self._csv.encoding == UTF8):
            return
        state = self._files.state()
        if self._copies is None or state != self._copied:
            self._copy(state)

    def repair(self) -> bool:
        """After a fault: read copies, in which every byte is valid, then with records of any length.

        False where that is no remedy, either.
        """
        cannot = self._files.form == "parquet" or not all(map(csv_files.can_be_decoded, self._files.paths))
        if cannot or self._longest is not None:
            return False
        if self._copies is not None:
            self._longest = _LINE
        self._copy(self._files.state())
        return True

    def _copy(self, state: object) -> None:
        copies = self._copies or csv_files.Copies(self._files.paths, self._csv.encoding)
        copies.make()
        if self._longest is not None:
            self._longest = max(_LINE, *map(csv_files.longest_record, copies.paths)) + 1
        self._show(copies.paths)
        self._copies, self._copied = copies, state

    def _show(self, paths: Sequence[str]) -> None:
        longest = "" if self._longest is None else f", max_line_size = {self._longest}"

        def reader(options: str = "") -> str:
            return f"{self._function}({_listed(paths)}, {self._options}{longest}{options})"

        selected = f"SELECT * FROM {reader()}"
        if self.folder_columns:
            selected = self._with_folders(paths, reader)
        self._con.execute(f"CREATE OR REPLACE TEMP VIEW {GIVEN} AS {selected}")

    def _with_folders(self, paths: Sequence[str], reader: Callable[[str], str]) -> str:
        """The rows of each file with what its folders' names tell."""
        file = "accord_file"
        while file in {name.lower() for name in self.columns}:
            file += "_"
        places = [self._files.folder_columns.index(name) for name in self.folder_columns]
        rows = ", ".join(
            f"({', '.join((_text(path), *(_text(values[place]) for place in places)))})"
            for path, values in zip(paths, self._files.folder_values, strict=True)
        )
        names = ", ".join(f"f{k}" for k in range(len(places)))
        named = ", ".join(f"folders.f{k} AS {_LITERALS.quote(n)}" for k, n in enumerate(self.folder_columns))
        return (
            f"SELECT files.* EXCLUDE ({file}), {named} FROM {reader(f', filename = {_text(file)}')} AS files "
            f"LEFT JOIN (VALUES {rows}) AS folders(path, {names}) ON files.{file} = folders.path"
        )


def _text(value: str | None) -> str:
    return "CAST(NULL AS VARCHAR)" if value is None else _LITERALS.text(value)


def _listed(paths: Sequence[str]) -> str:
    return "[" + ", ".join(_LITERALS.text(glob.escape(path)) for path in paths) + "]"


def parquet_columns(con: Any, files: Files) -> list[str]:
    """The columns of Parquet files, which must be the same, if not in their order.

    Numbers are widened to a common type. Other types, and decimals, must be the same in all files: a common
    one may be too narrow for somebody's value.
    """
    names_in_files = set()
    types: dict[str, str] = {}
    for path in files.paths:
        file = _listed([path])
        reader = f"read_parquet({file}, hive_partitioning = false)"
        described = con.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
        schema = con.execute(f"SELECT name, num_children FROM parquet_schema({file})").fetchall()
        refuse_changed_names(files.label, _outermost(schema), described)
        names_in_files.add(frozenset(row[0] for row in described))
        for column, kind, *_ in described:
            other = types.setdefault(column, kind)
            are_wide = {kind_of(other), kind_of(kind)} == {"number"} and "DECIMAL" not in other + kind
            if other != kind and not are_wide:
                raise SourceError(
                    f"column {column!r} is {other} in one file of {files.label} and {kind} in another. "
                    "Write it with one type."
                )
    if len(names_in_files) > 1:
        raise SourceError(
            f"the files of {files.label} do not have the same columns. Give each of them all columns."
        )
    return list(types)


def _outermost(schema: list[tuple[str, int | None]]) -> list[str]:
    """The columns of a Parquet file, from the list of everything that is in it, each before its children."""
    names: list[str] = []
    missing_children: list[int] = []  # of each column that the next entry is inside of
    for name, children in schema[1:]:
        if missing_children:
            missing_children[-1] -= 1
        else:
            names.append(name)
        missing_children += [children] if children else []
        while missing_children and missing_children[-1] == 0:
            missing_children.pop()
    return names


def csv_columns(con: Any, files: Files, csv: CSV) -> tuple[list[str], str]:
    """The columns of CSV files, and how they are to be read; nothing is guessed from rows.

    The first line is the header; it tells the delimiter, if this is not declared; everything is text. Guessed
    types would make a person's value decide whether a release fails, and a guessed header can be a person's
    row.
    """
    headers = [_header(con, path, csv, files.label) for path in files.paths]
    is_tsv = ".tsv" in files.paths[0].lower()
    mark = csv_files.delimiter(headers[0], csv.delimiter, is_tsv, files.label)
    names = [column or f"column{k}" for k, column in enumerate(csv_files.split(headers[0], mark))]
    are_different = len({column.lower() for column in names}) == len(names)
    if len(set(headers)) > 1 or not are_different or not names:
        raise SourceError(
            f"the first lines of {files.label} are not one list of different column names. "
            "Give every file the same header."
        )
    if any(map(_is_number, names)):  # then it is more likely somebody's row, which is not to be shown
        raise SourceError(
            f"the first line of {files.label} has a number in it. "
            "It must be a header of column names: add one."
        )
    columns = ", ".join(f"{_LITERALS.text(column)}: 'VARCHAR'" for column in names)
    # not in parallel: DuckDB would look for the ends of rows from within a file, and within somebody's text
    return names, (
        "auto_detect = false, header = true, hive_partitioning = false, parallel = false, "
        f"delim = {_LITERALS.text(mark)}, quote = '\"', escape = '\"', nullstr = '', columns = {{{columns}}}"
    )


def _header(con: Any, path: str, csv: CSV, label: str) -> str:
    if csv_files.can_be_decoded(path):
        return csv_files.header(path, csv.encoding, label)
    if csv.encoding != UTF8:
        raise SourceError(f"{label} is packed as .zst, which is read in UTF-8 only. Pack it as .gz.")
    one_line = (
        "auto_detect = false, header = false, quote = '', escape = '', delim = '\x01', strict_mode = false, "
        "columns = {'line': 'VARCHAR'}"
    )
    lines = con.execute(f"SELECT line FROM read_csv({_listed([path])}, {one_line}) LIMIT 1").fetchall()
    return str(lines[0][0] or "").lstrip("\ufeff") if lines else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
