"""Values on a grid: low + k·step for k = 0 … span.

What lies outside the bounds is at the nearer end; what is missing has a place of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from accord.errors import QueryError
from accord.statistics.encoding import Grid, Kind, PerPerson
from accord.statistics.query import Point, Query, column_name, exact, number_text
from accord.statistics.where import HasValue

MOST_CELLS = 2**40
_NARROWEST, _WIDEST = Fraction(1, 10**100), 10**100
_EPOCH = datetime(1970, 1, 1)
_DAY = 86_400


@dataclass(frozen=True)
class OnGrid(Query):
    """A question about one column of numbers, dates or timestamps (which are seconds since 1970)."""

    column: str
    low: Fraction
    high: Fraction
    step: Fraction
    missing: Fraction
    """What a missing value counts as: a point of the grid."""
    kind: Kind = "number"
    declared: frozenset[str] = field(default_factory=frozenset)
    """Which of step and missing the user gave."""

    @property
    def label(self) -> str:
        return f"{self.statistic} of {self.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    per_person: ClassVar[PerPerson] = "mean"
    """What a person's rows come to."""

    @cached_property
    def encoding(self) -> Grid:
        return Grid(
            self.column, self.kind, self.low, self.high, self.step, self.missing_cell, self.per_person
        )

    @property
    def cells(self) -> int:
        """How many steps lie between the bounds."""
        return self.encoding.cells

    @property
    def width(self) -> float:
        return float(self.high - self.low)

    @property
    def missing_cell(self) -> int:
        return int((self.missing - self.low) / self.step)

    def point(self, value: Fraction) -> Point:
        """A value as people know it."""
        if self.kind == "number":
            return float(value)
        moment = _EPOCH + timedelta(microseconds=round(value * 10**6))
        return moment.date() if self.kind == "date" else moment

    def text(self, value: Fraction) -> str:
        return number_text(value) if self.kind == "number" else str(self.point(value))

    def describe(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "column": self.column,
            "bounds": [self.text(self.low), self.text(self.high)],
            "step": number_text(self.step),
            "missing": self.text(self.missing),
        }

    def assumptions(self) -> list[str]:
        grid = "values are rounded to steps of " + (
            f"{float(self.step):g}" if self.kind == "number" else str(timedelta(seconds=float(self.step)))
        )
        moved = (
            ""
            if "step" in self.declared or self.kind != "number"
            else f", which moves each by at most {float(self.step / 2):.2g}"
        )
        middle = (
            ""
            if "missing" in self.declared
            else ", the middle of the bounds; many of them would bias the answer"
        )
        return [
            f"{self.column} lies in [{self.text(self.low)}, {self.text(self.high)}]; what lies outside "
            "counts as the nearer bound",
            grid + moved,
            f"a missing value counts as {self.text(self.missing)}{middle}",
        ]


def on_grid(
    statistic: str, column: str, bounds: Any, step: Any, missing: Any, cells: int, most: int = MOST_CELLS
) -> dict[str, Any]:
    """The checked fields of an OnGrid.

    Without a step there are `cells` cells; dates have a step of one day.
    """
    name = column_name(column)
    try:
        first, last = bounds
    except (TypeError, ValueError):
        raise QueryError(
            f"bounds= of {statistic}({name!r}) is not a pair. Give public bounds (low, high), such as "
            "bounds=(0, 200_000)."
        ) from None
    kind = _kind(first, last)
    low, high = (_number(end, kind, "a bound") for end in (first, last))
    shown = f"({first}, {last})" if kind != "number" else f"({number_text(low)}, {number_text(high)})"
    if low >= high:
        raise QueryError(
            f"bounds={shown} are {'equal' if low == high else 'reversed'}. "
            "Give (low, high) with low < high, from public knowledge, never from the data."
        )
    width = high - low
    declared = set()
    grid = Fraction(_DAY) if kind == "date" else width / cells
    if step is not None:
        declared.add("step")
        grid = _step(step, kind)
        if grid > 0 and (width / grid).denominator != 1 and kind == "number":
            grid = Fraction(float(step))  # 2⁻⁴⁰, say, is exact as a double and not as its decimal
    if grid <= 0 or (width / grid).denominator != 1 or width / grid > most:
        raise QueryError(
            f"step={number_text(grid)} does not fit bounds of width {number_text(width)}. "
            f"The step is positive and divides the width into at most {most} cells; leave it out for "
            f"{cells if kind != 'date' else 'a day each'}."
        )
    if not _NARROWEST <= width <= _WIDEST or float(low) >= float(high):
        raise QueryError(
            f"bounds=({first!r}, {last!r}) are too far apart or too close together to reckon with. Change "
            "the unit of the column."
        )
    where_missing = (low + high) / 2
    if not (isinstance(missing, str) and missing in ("middle", "exclude")):  # who is excluded has no place
        declared.add("missing")
        where_missing = _number(missing, kind, "missing")
        if not low <= where_missing <= high:
            raise QueryError(
                f"missing={missing if kind != 'number' else number_text(where_missing)} lies outside the "
                "bounds. "
                "Give a number within them, 'middle', or 'exclude'."
            )
    return {
        "column": name,
        "low": low,
        "high": high,
        "step": grid,
        "missing": low + grid * int((where_missing - low) / grid + Fraction(1, 2)),  # the nearest point
        "kind": kind,
        "declared": frozenset(declared),
    }


def _kind(first: Any, last: Any) -> Kind:
    kinds: set[Kind] = {
        "timestamp" if isinstance(x, datetime) else "date" if isinstance(x, date) else "number"
        for x in (first, last)
    }
    if len(kinds) > 1:
        raise QueryError(
            f"bounds=({first!r}, {last!r}) are of two kinds. Give two numbers, two dates or two timestamps."
        )
    return kinds.pop()


def _number(x: Any, kind: Kind, what: str) -> Fraction:
    """A number; of a date or timestamp, the seconds since 1970."""
    if kind == "number":
        return exact(x, what)
    if (
        not isinstance(x, date) or x != x or (isinstance(x, datetime) and x.tzinfo is not None)
    ):  # NaT is a datetime, and no moment
        raise QueryError(f"{what} is {x!r}. It must be a {kind} without a time zone, like the bounds.")
    moment = x if isinstance(x, datetime) else datetime.combine(x, time())
    return Fraction((moment - _EPOCH) // timedelta(microseconds=1), 10**6)


def _step(step: Any, kind: Kind) -> Fraction:
    """In the grid's own unit: of dates, a number is of days."""
    if kind == "number":
        return exact(step, "step")
    if isinstance(step, timedelta):
        return Fraction(step // timedelta(microseconds=1), 10**6)
    return exact(step, "step") * (_DAY if kind == "date" else 1)


def excluded(query: OnGrid, missing: Any) -> HasValue | None:
    """The condition that leaves out whoever has no value, if they are left out."""
    leave_out = isinstance(missing, str) and missing == "exclude"
    return HasValue(query.column, query.kind) if leave_out else None
