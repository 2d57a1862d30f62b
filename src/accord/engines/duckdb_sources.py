"""What DuckDB is given: which columns a file, an array or a data frame has, and of what kind.

What kind of values a column holds is said by its type, never by its values: a person's value would decide
what can be asked. A list, an array of objects and a column of objects have no type. An array of text, or of
true and false, counts as one without a type, too, because it becomes one of objects when a value is missing.
"""

from __future__ import annotations

import csv
import glob
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accord.engines.dialect import StandardLiterals
from accord.engines.engine import Kind
from accord.errors import SourceError

GIVEN = "accord_given"
"""What was given, with its own names of columns."""
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv")
ALIKE = (
    "{} has columns whose names are alike or differ in case only, which DuckDB cannot tell apart. "
    "Rename them."
)
_LITERALS = StandardLiterals()


@dataclass(frozen=True)
class Column:
    """A column of what was given: DuckDB's type of it, and what kind of values it holds."""

    type: str
    kind: Kind

    def selected(self, name: str) -> str:
        """Its SQL in the innermost SELECT.

        True and False of a column without a type are spelled as Python spells them.
        """
        quoted = _LITERALS.quote(name)
        if self.kind == "untyped" and self.type == "BOOLEAN":
            return f"CASE WHEN {quoted} THEN 'True' WHEN NOT {quoted} THEN 'False' END"
        return quoted


def is_untyped(values: Any) -> bool:
    """Whether a column of a dict has no type of its own."""
    return not isinstance(values, np.ndarray) or values.dtype.kind in "bOUS"


def as_array(values: Any) -> Any:
    """A column for DuckDB. What a mask hides is missing; text is plain text, not an enumeration."""
    if not isinstance(values, np.ndarray):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise SourceError(
                f"a column of a dict is a {type(values).__name__}. Give a list or an array for each."
            )
        listed = list(values)
        array: Any = np.empty(len(listed), dtype=object)
        for k, value in enumerate(listed):  # a list of lists is a column, too
            array[k] = value
    else:
        array = np.asarray(values, order="C")  # a reversed view is a column as well
    hidden = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    match array.dtype.kind:
        case "i" | "u" | "f" if hidden is not None:
            with np.errstate(all="ignore"):
                array = array.astype(np.float64)
            array[hidden] = np.nan
        case "M":
            array = array.astype("datetime64[us]")  # days too, which DuckDB does not take from NumPy
            if hidden is not None:
                array[hidden] = np.datetime64("NaT")
        case "U" | "S" | "O" | "b" if array.dtype.kind != "b" or hidden is not None:
            array = array.astype(object)
            if hidden is not None:
                array[hidden] = None
            array = as_texts(array)
    return array


def as_texts(objects: Any) -> Any:
    """Objects as text, None where they are missing. Nothing that somebody put there can fail to be text."""
    texts = np.empty(objects.shape, dtype=object)
    with np.errstate(all="ignore"):  # a warning about somebody's NaN would tell of it
        texts[...] = _TEXT(objects) if objects.size else None
    return texts


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    text: str | None = value
    if not isinstance(value, str):
        try:
            text = None if value is None or value != value else str(value)  # NaN and NaT are not themselves
        except Exception:  # somebody's own class may do anything; pandas' NA is neither true nor false
            text = None
    if text is None or text.isascii():
        return text
    return str(text.encode("utf-8", "replace").decode("utf-8"))


_TEXT = np.frompyfunc(_text, 1, 1)


def _listed(paths: list[str]) -> str:
    return "[" + ", ".join(_LITERALS.text(glob.escape(path)) for path in paths) + "]"


def parquet_reader(con: Any, name: str, paths: list[str]) -> str:
    """Columns are matched by name, and of numbers widened to a common type; a folder's name is not a column.

    Other types must be the same in all files: a common one may be too narrow for somebody's value.
    """
    of_files = set()
    types: dict[str, str] = {}
    for path in paths:
        one = _listed([path])
        reader = f"read_parquet({one}, hive_partitioning = false)"
        described = con.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
        schema = con.execute(f"SELECT name, num_children FROM parquet_schema({one})").fetchall()
        need_own_names(repr(name), _outermost(schema), described)
        of_files.add(frozenset(row[0] for row in described))
        for column, kind, *_ in described:
            other = types.setdefault(column, kind)
            if other != kind and {kind_of(other), kind_of(kind)} != {"number"}:
                raise SourceError(
                    f"column {column!r} is {other} in one file of {name!r} and {kind} in another. "
                    "Write it with one type."
                )
    if len(of_files) > 1:
        raise SourceError(
            f"the files of {name!r} do not have the same columns. Give each of them all columns."
        )
    return f"read_parquet({_listed(paths)}, union_by_name = true, hive_partitioning = false)"


def _outermost(schema: list[tuple[str, int | None]]) -> list[str]:
    """The columns of a Parquet file, from the list of everything that is in it, each before what it holds."""
    names: list[str] = []
    held: list[int] = []
    for name, children in schema[1:]:
        if held:
            held[-1] -= 1
        else:
            names.append(name)
        held += [children] if children else []
        while held and held[-1] == 0:
            held.pop()
    return names


def need_own_names(label: str, own: Iterable[Any], described: Any) -> None:
    """Refuse names that DuckDB changes: those that one before has in any case.

    The new name may be that of a third: "e", "E", "E_1".
    """
    if any(str(name) not in ("", shown) for name, (shown, *_) in zip(own, described, strict=True)):
        raise SourceError(ALIKE.format(label))


def csv_reader(con: Any, name: str, paths: list[str]) -> str:
    """CSV files as SQL; nothing is guessed from the data.

    The first line is the header; it tells the delimiter; everything is text. Guessed types would make a
    person's value decide whether a release fails, and a guessed header can be a person's row.
    """
    one_line = (
        "auto_detect = false, header = false, quote = '', escape = '', delim = '\x01', strict_mode = false, "
        "columns = {'line': 'VARCHAR'}"
    )
    headers = [
        con.execute(f"SELECT line FROM read_csv({_listed([path])}, {one_line}) LIMIT 1").fetchall()
        for path in paths
    ]
    header = (headers[0][0][0] if headers[0] else "") or ""
    header = header.lstrip("\ufeff")
    fields = {
        d: next(csv.reader([header], delimiter=d), []) for d in ("\t" if ".tsv" in name.lower() else ",;\t|")
    }
    # none within quotes
    delimiter = max(fields, key=lambda d: (not any('"' in field for field in fields[d]), len(fields[d])))
    names = [column or f"column{k}" for k, column in enumerate(fields[delimiter])]
    if (
        headers.count(headers[0]) < len(headers)
        or len({column.lower() for column in names}) < len(names)
        or not names
    ):
        raise SourceError(
            f"the first lines of {name!r} are not one list of different column names. Give every file the "
            "same header."
        )
    if any(
        _is_number(column) for column in names
    ):  # then it is more likely somebody's row, which is not to be shown
        raise SourceError(
            f"the first line of {name!r} has a number in it. It must be a header of column names: add one."
        )
    columns = ", ".join(f"{_LITERALS.text(column)}: 'VARCHAR'" for column in names)
    return (
        f"read_csv({_listed(paths)}, auto_detect = false, header = true, hive_partitioning = false, "
        f"delim = {_LITERALS.text(delimiter)}, quote = '\"', escape = '\"', nullstr = '', columns = "
        f"{{{columns}}})"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def described_columns(con: Any, untyped: Collection[str] | None) -> dict[str, Column]:
    """The columns of what was given; `untyped`: which of them have no type (None: all)."""
    return {
        name: Column(kind, "untyped" if untyped is None or name in untyped else kind_of(kind))
        for name, kind, *_ in con.execute(f"DESCRIBE {GIVEN}").fetchall()
    }


def kind_of(type_name: str) -> Kind:
    """What a column of one of DuckDB's types holds."""
    if type_name.endswith("]"):  # a list, of whatever
        return "other"
    match type_name.split("(")[0]:
        case "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "HUGEINT" | "FLOAT" | "DOUBLE" | "DECIMAL":
            return "number"
        case "UTINYINT" | "USMALLINT" | "UINTEGER" | "UBIGINT" | "UHUGEINT":
            return "number"
        case "VARCHAR" | "ENUM":
            return "text"
        case "BOOLEAN":
            return "boolean"
        case "DATE":
            return "date"
        case "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS":
            return "timestamp"
        case _:
            return "other"
