"""What DuckDB is given: which columns a file, an array or a data frame has, and of what kind.

What kind of values a column holds is said by its type, never by its values: a person's value would decide
what can be asked. A list, an array of objects and a column of objects have no type. An array of text, or of
true and false, counts as one without a type, too, because it becomes one of objects when a value is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from accord.engines.csv_options import CSV
from accord.engines.dialect import StandardLiterals
from accord.engines.engine import Kind
from accord.errors import SourceError

GIVEN = "accord_given"
"""What was given, with its own names of columns."""
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
    csv: CSV | None = None
    """How the text of a CSV file's column is read."""

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


def has_odd_text(categories: Any) -> bool:
    """Whether some of the objects that a column may hold are not valid text, which DuckDB would refuse."""
    return categories.dtype.kind == "O" and any(_text(c) != c for c in categories)


def holds_objects(dtype: Any) -> bool:
    """Whether a column of a data frame holds objects of Python, be they all text."""
    return dtype == "object" or getattr(dtype, "storage", None) == "python"


def valid_text(frame: Any, place: int) -> Any:
    """A data frame or Arrow table in which one column of text, or of objects, can be read by DuckDB.

    What is not valid Unicode is replaced. DuckDB takes on trust that Arrow's text is, and closes its database
    for good where it is not.
    """
    if hasattr(frame, "isetitem"):  # pandas
        frame.isetitem(place, as_texts(frame.iloc[:, place].to_numpy(dtype=object)))
        return frame
    import pyarrow as pa  # type: ignore[import-untyped]

    column = frame.column(place)
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if pa.types.is_dictionary(column.type):
            column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks])
        raw = column.cast(pa.large_binary()).to_pylist()
        valid = pa.array([_text(value) for value in raw], pa.large_string())
        return frame.set_column(place, frame.schema.field(place).name, valid)
    return frame


def refuse_changed_names(label: str, names: Iterable[Any], described: Any) -> None:
    """Refuse names that DuckDB changes: those that one before has in any case.

    The new name may be that of a third: "e", "E", "E_1".
    """
    if any(str(name) not in ("", in_duckdb) for name, (in_duckdb, *_) in zip(names, described, strict=True)):
        raise SourceError(ALIKE.format(label))


def described_columns(con: Any, untyped: Collection[str]) -> dict[str, Column]:
    """The columns of what was given; `untyped`: which of them have no type."""
    return {
        name: Column(kind, "untyped" if name in untyped else kind_of(kind))
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
