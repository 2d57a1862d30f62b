"""Conditions on a row (`where=`, categories, keys) as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accord import dates
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.errors import QueryError
from accord.statistics import where


def render(dialect: Dialect, condition: where.Condition, columns: Columns) -> str:
    """A condition as SQL. NULL where it is neither true nor false."""
    match condition:
        case where.Combined(word, parts):
            return "(" + f" {word} ".join(render(dialect, p, columns) for p in parts) + ")"
        case where.Not(inner):
            return f"(NOT {render(dialect, inner, columns)})"
        case where.IsNull(column):
            kind = columns[column]
            value = dialect.finite_number(column, kind) if kind == "number" else dialect.column(column)
            return f"({value} IS NULL)"
        case where.IsTrue(column):
            return _is_true(dialect, column, columns[column])
        case where.In(column, values):
            return "(" + " OR ".join(equal(dialect, column, columns[column], v) for v in values) + ")"
        case where.Compare(column, operator, value):
            return _compare(dialect, column, columns[column], operator, value)


def equal(dialect: Dialect, column: str, kind: Kind, value: object) -> str:
    """Whether a column has a value of its own kind."""
    return _compare(dialect, column, kind, "=", value)


def first_equal(dialect: Dialect, column: str, kind: Kind, values: Sequence[object]) -> str:
    """Arms of CASE: the place of the first of some values that a column has."""
    tests = (equal(dialect, column, kind, value) for value in values)
    return " ".join(f"WHEN {test} THEN {k}" for k, test in enumerate(tests))


def _is_true(dialect: Dialect, column: str, kind: Kind) -> str:
    """A column by itself, decided by its kind, which is public: never by what its values read as."""
    if kind == "boolean":
        return equal(dialect, column, kind, True)
    if kind == "untyped":
        raise QueryError(
            f"the condition has {column!r} alone, and nothing tells of which kind that column is. "
            f"Write {column} = TRUE, or compare it with a number or a text in quotes."
        )
    raise QueryError(
        f"the condition has {column!r} alone, which is a condition only of a column of true and false. "
        + (f"It holds {PLURAL[kind]}: compare it with {_EXAMPLE[kind]}." if kind in PLURAL else "Compare it.")
    )


def _compare(dialect: Dialect, column: str, kind: Kind, operator: str, value: object) -> str:
    """column operator value, for a literal of the column's own kind."""
    match kind, value:
        case ("boolean" | "untyped", bool()):
            if operator in ("=", "<>"):
                return f"({dialect.truth(column)} {operator} {str(value).upper()})"
            raise QueryError(f"column {column!r} is true or false; it can be compared by = and <> only.")
        case ("number" | "untyped", int() | float()) if not isinstance(value, bool):
            return f"({dialect.finite_number(column, kind)} {operator} {dialect.double(float(value))})"
        case ("untyped", str()) if operator not in ("=", "<>"):  # a date, as text
            if dates.from_text(value) is None:
                raise QueryError(
                    f"column {column!r} has no type of its own, and {operator} compares it with a number or "
                    f"a date, which {value!r} is not. Write a number without quotes, or '2026-01-31'."
                )
            return f"({dialect.moment(column)} {operator} {dialect.instant(_moment(column, value))})"
        case ("text" | "untyped", str()):
            if operator in ("=", "<>"):
                return f"({dialect.letters(column)} {operator} {dialect.text(value)})"
            raise QueryError(
                f"column {column!r} is text; it can be compared by =, <> and IN only, "
                "because engines order text differently. If it holds dates or numbers, convert it first."
            )
        case ("date" | "timestamp", str()):
            return f"({dialect.moment(column)} {operator} {dialect.instant(_moment(column, value))})"
        case ("other", _):
            raise QueryError(
                f"column {column!r} is of a kind that cannot be compared. "
                "Use a column of numbers, text, dates, or true and false."
            )
        case _:
            raise QueryError(
                f"column {column!r} holds {PLURAL[kind]}, and {value!r} is not one. Give {_EXAMPLE[kind]}."
            )


PLURAL = {
    "number": "numbers",
    "text": "text",
    "boolean": "true and false",
    "date": "dates",
    "timestamp": "timestamps",
    "untyped": "text or numbers",
}
"""What a column of a kind holds, in words."""
_EXAMPLE = {
    "number": "a number, such as 30",
    "text": "a text in quotes, such as 'north'",
    "boolean": "TRUE or FALSE",
    "date": "a date in quotes, such as '2026-01-31'",
    "timestamp": "a moment in quotes, such as '2026-01-31 12:00:00'",
    "untyped": "a number or a text in quotes",
}


def _moment(column: str, value: str) -> str:
    moment = dates.from_text(value)
    if moment is None:
        raise QueryError(
            f"column {column!r} holds dates without a time zone, and {value!r} is not one. "
            "Write it as '2026-01-31' or '2026-01-31 12:00:00'."
        )
    return f"{moment} 00:00:00" if not isinstance(moment, datetime) else moment.isoformat(sep=" ")
