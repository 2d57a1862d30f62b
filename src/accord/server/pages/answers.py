"""An answer as rows: what a number is of, the number, and between which it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from markupsafe import Markup

from accord.report.svg import Mark
from accord.report.tables import near, number
from accord.server.pages import pictures

_PERCENTILES = "percentile points"
_OWN = ("value", "rmse", "few")


@dataclass(frozen=True)
class Row:
    """One number of an answer."""

    names: tuple[str, ...]
    """Of which group or cell it is."""
    value: float | None
    text: str
    interval: str
    """In words; empty: it is not known."""
    low: float | None = None
    high: float | None = None
    few: bool = False


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    label: str
    mechanism: str
    rmse: str
    unit: str
    columns: tuple[str, ...]
    """What the names of rows are called."""
    rows: tuple[Row, ...]
    confidence: str
    notes: tuple[str, ...]
    picture: Markup
    charges: list[dict[str, Any]]
    assumptions: list[str]


def answers_of(receipt: dict[str, Any], labels: list[str] | None = None) -> list[Answer]:
    """The answer to each question of a receipt."""
    parts = receipt.get("receipts", [receipt])
    return [_answer(part, labels[k] if labels else None) for k, part in enumerate(parts)]


def question_of(query: dict[str, Any]) -> str:
    """A question in words.

    >>> question_of({"statistic": "mean", "column": "income", "where": "age > 30", "by": ["ward", "sex"]})
    'mean of income, where age > 30, by ward and sex'
    >>> question_of({"statistic": "quantile", "column": "age", "p": "0.5"})
    'median of age'
    """
    about = query.get("column") or query.get("condition") or query.get("target")
    is_median = query["statistic"] == "quantile" and query.get("p") == "0.5"
    said: str = ("median" if is_median else query["statistic"]) + (f" of {about}" if about else "")
    if query.get("p") is not None and not is_median:
        p = query["p"]
        said += f", p = {', '.join(p) if isinstance(p, list) else p}"
    said += f", where {query['where']}" if query.get("where") else ""
    by = query.get("by")
    return said + (f", by {' and '.join([by] if isinstance(by, str) else by)}" if by else "")


def _answer(receipt: dict[str, Any], label: str | None) -> Answer:
    query, interval = receipt["query"], receipt.get("interval") or {}
    by = query.get("by")
    columns = tuple([by] if isinstance(by, str) else by or ())
    rows = tuple(_rows(receipt, columns))
    confidence = f"{interval.get('confidence', 0.95):.0%}".replace("%", " %")
    title = f"{label or question_of(query)}, with {confidence} intervals"
    marks = [_mark(row) for row in rows if row.value is not None]
    picture = Markup("")
    if len(marks) > 1:
        draw = pictures.bars if query["statistic"] in ("histogram", "count", "crosstab") else pictures.points
        picture = draw(title, marks)
    return Answer(
        label or question_of(query),
        receipt["mechanism"],
        number(receipt["rmse"], 3) if receipt.get("rmse") is not None else "unknown",
        "" if receipt.get("unit") == "value" else str(receipt.get("unit", "")),
        columns or (("",) if len(rows) > 1 else ()),
        rows,
        confidence,
        tuple(_notes(receipt)),
        picture,
        receipt["charges"],
        receipt.get("assumptions", []),
    )


def _mark(row: Row) -> Mark:
    assert row.value is not None
    return Mark(", ".join(row.names), row.value, row.text, row.low, row.high, chosen=not row.few)


def _notes(receipt: dict[str, Any]) -> Iterator[str]:
    interval, value = receipt.get("interval") or {}, receipt.get("value")
    if receipt.get("suppressed"):
        yield f"{receipt['suppressed']:,} groups are not shown."
    if interval.get("groups_together", 1) > 1:
        yield f"The intervals hold for all {interval['groups_together']:,} groups at once."
    if isinstance(value, dict) and "coefficients" in value:
        yield f"A prediction is off by at most {number(interval['bounds'][1], 4)}, with the confidence above."
        yield from (note for note in [value.get("note")] if note)
    if receipt.get("break_even_gap") is not None:
        yield "The error and the interval are right if levels do not go with values." + _breaks_even(receipt)


def _breaks_even(receipt: dict[str, Any]) -> str:
    """From which gap on that matters, of a mean, whose gap is in its own unit."""
    gap = receipt["break_even_gap"]
    if receipt["query"]["statistic"] != "mean" or not isinstance(gap, float):
        return ""
    return f" As it was planned, it breaks even where their means lie {number(gap, 4)} apart."


def _rows(receipt: dict[str, Any], columns: tuple[str, ...]) -> Iterator[Row]:
    value, interval = receipt["value"], receipt.get("interval") or {}
    bounds, unit, rmse = interval.get("bounds"), interval.get("unit"), receipt.get("rmse_here") or 0.0
    if isinstance(value, dict) and "coefficients" in value:
        for name, x in [("intercept", value["intercept"]), *value["coefficients"].items()]:
            yield Row((name,), x, number(x, 4), "")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for group in value:
            keys = tuple(str(group[name]) for name in columns if name in group)
            ends = _of_keys(bounds, keys)
            yield from _numbers(
                keys, group["value"], ends, unit, group.get("rmse") or rmse, bool(group.get("few"))
            )
    elif isinstance(value, list):
        for k, x in enumerate(value):
            name = str(receipt["query"].get("p", [k] * len(value))[k])
            yield _row((name,), x, None if bounds is None else bounds[k], unit, rmse)
    else:
        yield from _numbers((), value, bounds, unit, rmse, False)


def _of_keys(bounds: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        bounds = bounds.get(key) if isinstance(bounds, dict) else None
    return bounds


def _numbers(
    names: tuple[str, ...], value: Any, bounds: Any, unit: str | None, rmse: float, few: bool
) -> Iterator[Row]:
    """The numbers of one group: one, or one for each cell."""
    if not isinstance(value, dict):
        yield _row(names, value, bounds, unit, rmse, few)
        return
    for cell, x in value.items():
        ends = bounds.get(cell) if isinstance(bounds, dict) else None
        yield _row((*names, str(cell)), x, ends, unit, rmse, few)


def _row(
    names: tuple[str, ...], value: Any, ends: Any, unit: str | None, rmse: float, few: bool = False
) -> Row:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return Row(names, None, "not known" if value is None else str(value), "", few=few)
    text = near(float(value), 0.0 if unit == _PERCENTILES else rmse)
    if not isinstance(ends, list) or len(ends) != 2:
        return Row(names, float(value), text, "", few=few)
    low, high = float(ends[0]), float(ends[1])
    if unit == _PERCENTILES:
        between = f"between the {low:.1f}th and the {high:.1f}th percentile of these people"
        return Row(names, float(value), text, between, few=few)
    spread = max(rmse, (high - low) / 4) if isfinite(high - low) else rmse
    return Row(names, float(value), text, f"{near(low, spread)} … {near(high, spread)}", low, high, few)
