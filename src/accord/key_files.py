"""Files of keys: a public list, such as all codes of a classification, in a file instead of in the question.

    codes.txt       plain text in UTF-8, one key a line, without the spaces around it; blank lines are skipped
    codes.csv       with a header. Its only column; of several, the one that is called as the column of by=
    codes.parquet   likewise, with the types that it has

What is written in a text or a CSV file has no type. As on the command line, keys are numbers if all of them
read as numbers, True and False if all of them do, and texts otherwise; 'in quotes', all of them, they are
texts. What begins with a zero is a code and no number.

Such a file is public, as keys are: it is read when a question is made, and refusals may quote it. It is never
the table itself, whose values would tell who is there.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from accord.budget import read_number
from accord.errors import QueryError, SourceError

FORMS = "plain text (.txt, one key a line), .csv or .parquet"
_PLAIN = ("", ".txt", ".text", ".list", ".lst")
_TRUTHS = {"true": True, "false": False}
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?")


def read_key_file(path: str | Path, column: str = "") -> list[Any]:
    """The keys in a file; in a text or CSV file, texts.

    Args:
        path: its suffix says what it is.
        column: which of several columns of the file.

    Raises:
        QueryError: there is no such file, or no list of keys in it.
    """
    file = Path(path)
    form = file.suffix.lower()
    if form not in (*_PLAIN, ".csv", ".parquet"):
        raise QueryError(f"{file} ends in {form}, of which no keys are read. Give {FORMS}.")
    if not file.exists():
        raise QueryError(
            f"keys={str(path)!r} is not a list, and there is no file of this name. "
            f"Give keys=[…], or a file of keys: {FORMS}."
        )
    try:
        if form == ".parquet":
            keys = _in_parquet(file, column)
        else:
            text = file.read_text(encoding="utf-8-sig")
            keys = _in_csv(file, text, column) if form == ".csv" else _in_lines(text)
    except UnicodeDecodeError:
        raise QueryError(f"{file} is not text in UTF-8. Save it as that, or as .parquet.") from None
    except OSError as fault:
        raise QueryError(f"{file} cannot be read ({type(fault).__name__}). Give {FORMS}.") from None
    missing = sum(key is None for key in keys)
    if missing:
        raise QueryError(
            f"{file} has {missing:,} lines without a key. Leave them out: a missing value is of no group."
        )
    if not keys:
        raise QueryError(f"{file} has no keys. Write each on a line of its own.")
    return keys


def as_kind(keys: Sequence[Any], kind: str | None) -> list[Any]:
    """Keys as a column of this kind has them; what has a type already stays as it is.

    "untyped": as literals of conditions are, numbers, truth values or texts; of any other kind, texts.

    >>> as_kind(["1", "2.5"], "untyped"), as_kind(["01", "2"], "untyped"), as_kind(["'1'", "'2'"], "untyped")
    ([1, 2.5], ['01', '2'], ['1', '2'])
    """
    if not all(isinstance(key, str) for key in keys):
        return list(keys)
    if kind == "untyped":
        if all(re.fullmatch("'.*'", text) for text in keys):
            return [text[1:-1] for text in keys]
        if all(_NUMBER.fullmatch(text) for text in keys):
            kind = "number"
        elif all(text.lower() in _TRUTHS for text in keys):
            kind = "boolean"
    if kind == "number":
        return [_number(text) for text in keys]
    return [_TRUTHS.get(text.lower(), text) for text in keys] if kind == "boolean" else list(keys)


def _number(text: str) -> Any:
    try:
        number = read_number(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _in_lines(text: str) -> list[Any]:
    return [key for line in text.split("\n") if (key := line.strip())]


def _in_csv(file: Path, text: str, column: str) -> list[Any]:
    from accord.engines.csv_files import delimiter

    header = text.replace("\r", "\n").partition("\n")[0]
    try:
        mark = delimiter(header, None, False, str(file))
        rows = [row for row in csv.reader(text.splitlines(keepends=True), delimiter=mark) if row]
    except (SourceError, csv.Error):
        raise QueryError(f"{file} is no plain CSV file. Write its keys as plain text, one a line.") from None
    if not rows:
        return []
    names, *records = rows
    place = names.index(_column_of(file, names, column))
    return [(row[place].strip() if place < len(row) else "") or None for row in records]


def _in_parquet(file: Path, column: str) -> list[Any]:
    import duckdb

    con = duckdb.connect()
    try:
        read = con.read_parquet(str(file), hive_partitioning=False)
        name = _column_of(file, read.columns, column).replace('"', '""')
        rows = read.select(f'"{name}"').fetchall()
    except duckdb.Error:
        raise QueryError(f"{file} is no Parquet file that can be read. Write it again.") from None
    finally:
        con.close()
    return [float(key) if isinstance(key, Decimal) else key for (key,) in rows]


def _column_of(file: Path, names: Sequence[str], column: str) -> str:
    """The column of a file that has the keys."""
    if len(names) == 1:
        return names[0]
    if names.count(column) != 1:
        asked = f", and none of them is called {column!r}" if column and column not in names else ""
        raise QueryError(
            f"{file} has {len(names)} columns ({', '.join(map(str, names))}){asked}. The keys of a file "
            "are its only column, or the one that is called as the column of by=. Rename it, or leave the "
            "others out."
        )
    return column
