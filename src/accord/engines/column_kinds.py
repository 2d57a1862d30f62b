"""What the kinds of a table's columns can answer: numbers, text, dates, … No value is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from accord.engines import where_sql
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.errors import QueryError
from accord.statistics.encoding import Codes, Encoding, Grid, Indicator, Numeric, OneOf
from accord.statistics.keys import split_rest
from accord.statistics.part import Part


def refuse_wrong_kinds(
    dialect: Dialect, columns: Columns, encoding: Encoding | None, parts: Sequence[Part], statistic: str
) -> None:
    """Refuse a question whose columns are of kinds that cannot answer it.

    `parts`: what the question is about, the innermost first. `statistic`: what the refusal calls it.
    """

    def compare_with(column: str, values: Sequence[object]) -> None:
        for value in values:
            where_sql.equal(dialect, column, columns[column], value)  # refuses what is of another kind

    match encoding:
        case Codes():
            for feature in (encoding.target, *encoding.features):
                if isinstance(feature, Numeric):
                    _need_numbers(feature.column, columns[feature.column], statistic)
                else:
                    compare_with(feature.column, feature.values)
        case Grid(kind="number") if encoding.per_person != "rows":
            _need_numbers(encoding.column, columns[encoding.column], statistic)
        case Grid() if encoding.per_person != "rows":
            _need_dates(encoding.column, columns[encoding.column], "bounds")
        case OneOf() if encoding.edges and encoding.kind != "number":
            _need_dates(encoding.column, columns[encoding.column], "edges")
        case OneOf() if encoding.edges:
            _need_numbers(encoding.column, columns[encoding.column], statistic)
        case OneOf():
            compare_with(encoding.column, encoding.categories)
        case Indicator(condition) if condition is not None:
            where_sql.render(dialect, condition, columns)
    for part in parts:
        if part.condition is not None:
            where_sql.render(dialect, part.condition, columns)
        for by, keys in zip(part.by, part.keys, strict=True):
            compare_with(by, split_rest(keys)[0])


def _need_numbers(column: str, kind: Kind, statistic: str) -> None:
    if kind in ("number", "boolean", "untyped"):
        return
    hint = "Choose another column, or count with accord.histogram(…, categories=…)."
    if kind in ("date", "timestamp") and statistic == "histogram":
        hint = "Give edges that are dates, such as '2026-01-31'."
    elif kind in ("date", "timestamp") and statistic in ("median", "quantile", "min", "max"):
        hint = f"Give bounds that are dates to ask for its {statistic}."
    holds = where_sql.PLURAL.get(kind, "neither numbers nor text")
    raise QueryError(f"column {column!r} holds {holds}; a {statistic} needs numbers. {hint}")


def _need_dates(column: str, kind: Kind, ends: str) -> None:
    if kind in ("date", "timestamp", "untyped"):
        return
    hint = {
        "text": "Convert its text to dates first (in pandas, pd.to_datetime).",
        "other": "Moments with a time zone are not compared: convert them first (in pandas, "
        ".dt.tz_localize(None)).",
    }
    raise QueryError(
        f"column {column!r} holds {where_sql.PLURAL.get(kind, 'no plain dates')}, and the {ends} are dates. "
        + hint.get(kind, f"Give {ends} of the column's own kind.")
    )
