"""Conditions on a row, as SQL; and what the kinds of columns cannot answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.errors import QueryError
from accord.statistics import where
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf
from accord.statistics.groups import Part


def render(dialect: Dialect, condition: where.Condition, columns: Columns) -> str:
    """A condition as SQL. NULL where it is neither true nor false."""
    match condition:
        case where.Both(word, parts):
            return "(" + f" {word} ".join(render(dialect, p, columns) for p in parts) + ")"
        case where.Not(inner):
            return f"(NOT {render(dialect, inner, columns)})"
        case where.IsNull(column):
            kind = columns[column]
            value = dialect.finite_number(column, kind) if kind == "number" else dialect.column(column)
            return f"({value} IS NULL)"
        case where.HasValue(column, "number"):
            return f"({dialect.finite_number(column, columns[column])} IS NOT NULL)"
        case where.HasValue(column, moment):
            return f"({dialect.seconds(column, moment)} IS NOT NULL)"
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


def _compare(dialect: Dialect, column: str, kind: Kind, operator: str, value: object) -> str:
    """column operator value, for a literal of the column's own kind."""
    match kind, value:
        case ("boolean" | "untyped", bool()):
            if operator in ("=", "<>"):
                truth = dialect.attempt(dialect.column(column), "BOOLEAN")
                return f"({truth} {operator} {str(value).upper()})"
            raise QueryError(f"column {column!r} is true or false; it can be compared by = and <> only.")
        case ("number" | "untyped", int() | float()) if not isinstance(value, bool):
            return f"({dialect.finite_number(column, kind)} {operator} {dialect.double(float(value))})"
        case ("untyped", str()) if operator not in ("=", "<>"):  # a date, as text
            return f"({dialect.moment(column)} {operator} {dialect.instant(_moment(column, value))})"
        case ("text" | "untyped", str()):
            if operator in ("=", "<>"):
                return f"({dialect.letters(column)} {operator} {dialect.text(value)})"
            raise QueryError(
                f"column {column!r} is text; it can be compared by =, <> and IN only, because engines order "
                "text "
                "differently. If it holds dates or numbers, convert it first."
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
                f"column {column!r} holds {_PLURAL[kind]}, and {value!r} is not one. Compare it with "
                f"{_EXAMPLE[kind]}."
            )


_PLURAL = {
    "number": "numbers",
    "text": "text",
    "boolean": "true and false",
    "date": "dates",
    "timestamp": "timestamps",
    "untyped": "text or numbers",
}
_EXAMPLE = {
    "number": "a number, such as 30",
    "text": "a text in quotes, such as 'north'",
    "boolean": "TRUE or FALSE",
    "date": "a date in quotes, such as '2026-01-31'",
    "timestamp": "a moment in quotes, such as '2026-01-31 12:00:00'",
    "untyped": "a number or a text in quotes",
}


def _moment(column: str, value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        try:
            moment = datetime.combine(date.fromisoformat(value), datetime.min.time())
        except ValueError:
            raise QueryError(
                f"column {column!r} holds dates, and {value!r} is not one. "
                "Write it as '2026-01-31' or '2026-01-31 12:00:00'."
            ) from None
    if moment.tzinfo is not None:
        raise QueryError(
            f"column {column!r} has no time zone, and {value!r} has. Write the moment without one."
        )
    return moment.isoformat(sep=" ")


def check(
    dialect: Dialect, columns: Columns, encoding: Encoding | None, parts: Sequence[Part], statistic: str
) -> None:
    """Refuse what the columns' kinds cannot answer. Looks at names and kinds, never at values.

    `parts`: what the question is about, the innermost first. `statistic`: what the refusal calls it.
    """
    match encoding:
        case Codes():
            for feature in (encoding.target, *encoding.features):
                _check_feature(dialect, columns, feature, statistic)
        case Grid() if encoding.per_person != "rows":
            _need(encoding.kind, encoding.column, columns[encoding.column], statistic)
        case OneOf() if encoding.edges:
            _need("number", encoding.column, columns[encoding.column], statistic)
        case OneOf():
            for category in encoding.categories:
                equal(dialect, encoding.column, columns[encoding.column], category)
        case Indicator(condition) if condition is not None:
            render(dialect, condition, columns)
    for part in parts:
        if part.condition is not None:
            render(dialect, part.condition, columns)
        for key in part.keys:
            equal(dialect, str(part.by), columns[str(part.by)], key)


def _check_feature(dialect: Dialect, columns: Columns, feature: Numeric | Category, statistic: str) -> None:
    if isinstance(feature, Numeric):
        _need("number", feature.column, columns[feature.column], statistic)
        return
    for category in feature.values:
        equal(dialect, feature.column, columns[feature.column], category)


def _need(wanted: str, column: str, kind: Kind, statistic: str) -> None:
    if wanted == "number" and kind not in ("number", "boolean", "untyped"):
        hint = (
            f"Give bounds that are dates to ask for its {statistic}."
            if kind in ("date", "timestamp") and statistic not in ("mean", "sum", "histogram")
            else "Choose another column, or count with accord.histogram(…, categories=…)."
        )
        holds = _PLURAL.get(kind, "neither numbers nor text")
        raise QueryError(f"column {column!r} holds {holds}; a {statistic} needs numbers. {hint}")
    if wanted != "number" and kind not in ("date", "timestamp", "untyped"):
        raise QueryError(
            f"column {column!r} holds no dates, and the bounds are dates. Give bounds of the column's own "
            "kind."
        )
