"""Values on a grid: low + k·step for k = 0 … cells.

What lies outside the bounds is at the nearer end. Whoever has no value is at none of them, and left out; or a
missing value counts as a declared one. Where none is missing, as declared, a stray one is in the middle.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from accord import dates
from accord.errors import QueryError
from accord.statistics.encoding import Grid, Kind, PerPerson
from accord.statistics.gap import WithGap
from accord.statistics.query import Point, column_name, exact, number_text

_NARROWEST, _WIDEST = Fraction(1, 10**100), 10**100
PER_PERSON = ("mean", "sum", "min", "max")
"""What a user may choose that a person's rows come to."""
ROWS_COME_TO: dict[PerPerson, str] = {
    "mean": "the mean of their rows",
    "sum": "the sum of their rows",
    "min": "their smallest value",
    "max": "their largest value",
}
MISSING = ("exclude", "none", "middle")
"""What `missing=` may be, besides a value."""
LEFT_OUT = (
    "people without a value are left out; how many is private, and errors are predicted as if none were"
)
NONE_MISSING = "no value is missing, as declared; a stray one would count as the middle"
"""What becomes of missing values, in words."""


_OnGrid = TypeVar("_OnGrid", bound="OnGrid")


@dataclass(frozen=True)
class OnGrid(WithGap):
    """A question about one column of numbers, dates or timestamps (which are seconds since 1970)."""

    column: str
    low: Fraction
    high: Fraction
    step: Fraction
    missing: Fraction | None
    """What a missing value counts as, a point of the grid; None: whoever has none is left out."""
    kind: Kind = "number"
    declared: frozenset[str] = field(default_factory=frozenset)
    """What was given: a "step", a value for "missing" ones, that there are "none", or "per_person"."""
    per_person: PerPerson = "mean"
    """What a person's rows come to."""

    powers: ClassVar[int] = 1
    """Up to which power cells are summed."""
    is_counted: ClassVar[bool] = False
    """Whether people are counted at each cell instead."""
    default_cells: ClassVar[int] = 2**20
    """Cells of the grid unless a step is given."""
    most_cells: ClassVar[int] = 2**40
    takes_dates: ClassVar[bool] = False

    @property
    def label(self) -> str:
        return f"{self.statistic} of {self.column}{self.of_rows}"

    @property
    def of_rows(self) -> str:
        """What a person's rows come to, in the label: nothing unless it is another than the statistic's."""
        return f", each person's {self.per_person}" if self._is_other else ""

    @property
    def needs_rows(self) -> str:
        return f"per_person={self.per_person!r}" if "per_person" in self.declared else ""

    @property
    def _is_other(self) -> bool:
        return self.per_person != type(self).per_person

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def rows_come_to(self) -> str:
        return f"and counts with {ROWS_COME_TO[self.per_person]}"

    @cached_property
    def encoding(self) -> Grid:
        return Grid(
            self.column,
            self.kind,
            self.low,
            self.high,
            self.step,
            self.missing_cell,
            self.per_person,
            self.powers,
            self.is_counted,
        )

    @property
    def cells(self) -> int:
        """How many steps lie between the bounds."""
        return self.encoding.cells

    @property
    def width(self) -> float:
        return float(self.high - self.low)

    @property
    def missing_cell(self) -> int | None:
        return None if self.missing is None else int((self.missing - self.low) / self.step)

    @property
    def excludes_missing(self) -> bool:
        return self.missing is None

    def with_all_values(self: _OnGrid, columns: Collection[str] | None = None) -> _OnGrid | None:
        if self.missing is not None or (columns is not None and self.column not in columns):
            return None
        middle = _nearest((self.low + self.high) / 2, self.low, self.step)
        return replace(self, missing=middle, declared=self.declared | {"none"})

    @property
    def step_text(self) -> str:
        """The step in words: a number, or a length of time."""
        return f"{float(self.step):g}" if self.kind == "number" else dates.length_text(float(self.step))

    def point(self, value: Fraction) -> Point:
        """A value as people know it."""
        if self.kind == "number":
            return float(value)
        return dates.from_seconds(value, self.kind)

    def text(self, value: Fraction) -> str:
        return number_text(value) if self.kind == "number" else str(self.point(value))

    def describe(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "column": self.column,
            "bounds": [self.text(self.low), self.text(self.high)],
            "step": number_text(self.step),
            "missing": self._missing_word,
            **({"per_person": self.per_person} if self._is_other else {}),
            **self.described_gap(),
        }

    @property
    def _missing_word(self) -> str:
        if self.missing is None:
            return "exclude"
        return "none" if "none" in self.declared else self.text(self.missing)

    def about_missing(self) -> str:
        """What becomes of missing values, in a sentence."""
        if self.missing is None:
            return LEFT_OUT
        if "none" in self.declared:
            return f"{NONE_MISSING} ({self.text(self.missing)})"
        counts_as = f"a missing value counts as {self.text(self.missing)}"
        if "missing" in self.declared:
            return counts_as
        return f"{counts_as}, the middle of the bounds; many of them would bias the answer"

    def assumptions(self) -> list[str]:
        rounded = f"values are rounded to steps of {self.step_text}"
        if self.kind == "number" and "step" not in self.declared:
            rounded += f", which moves each by at most {float(self.step / 2):.2g}"
        return [
            f"{self.column} lies in [{self.text(self.low)}, {self.text(self.high)}]; "
            "what lies outside counts as the nearer bound",
            rounded,
            self.about_missing(),
        ]


def on_grid(
    kind: type[_OnGrid],
    column: str,
    bounds: Any,
    step: Any,
    missing: Any,
    per_person: str | None = None,
    **fields: Any,
) -> _OnGrid:
    """A question of this kind, with its column, bounds, step and missing value checked.

    Without a step the width is divided into `default_cells`; dates have a step of one day.
    """
    name = column_name(column)
    if bounds is None:
        raise QueryError(
            f"{kind.statistic}({name!r}) needs bounds=(low, high), from public knowledge, never from the "
            "data; a table that is described in accord.toml may declare them."
        )
    try:
        first, last = bounds
    except (TypeError, ValueError):
        raise QueryError(
            f"bounds= of {kind.statistic}({name!r}) is not a pair. "
            "Give public bounds (low, high), such as bounds=(0, 200_000)."
        ) from None
    value_kind, low, high = _bounds(first, last)
    size = _step(kind, step, value_kind, high - low)
    if not _NARROWEST <= high - low <= _WIDEST or float(low) >= float(high):
        raise QueryError(
            f"bounds=({first!r}, {last!r}) are too far apart or too close together to reckon with. "
            "Change the unit of the column."
        )
    declared = set() if step is None else {"step"}
    if per_person is not None:
        declared.add("per_person")
        fields["per_person"] = read_per_person(per_person, value_kind)
    counts_as = (low + high) / 2
    if isinstance(missing, str) and (missing in MISSING or value_kind == "number"):
        if missing not in MISSING:
            raise QueryError(
                f"missing={missing!r} is not offered. It is 'exclude' (people without a value are left out), "
                "'none' (no value is missing), 'middle' (of the bounds), or a value within the bounds."
            )
        declared |= {"none"} & {missing}
    else:
        declared.add("missing")
        counts_as = _number(missing, value_kind, "missing")
        if not low <= counts_as <= high:
            raise QueryError(
                f"missing={number_text(counts_as) if value_kind == 'number' else missing} lies outside the "
                "bounds. Give a number within them, 'middle', 'exclude' or 'none'."
            )
    if value_kind != "number" and not kind.takes_dates:
        raise QueryError(
            f"a {kind.statistic} is of numbers, and its bounds are dates. "
            "Ask for accord.median of a column of dates."
        )
    is_excluded = isinstance(missing, str) and missing == "exclude"
    place = None if is_excluded else _nearest(counts_as, low, size)
    return kind(name, low, high, size, place, value_kind, frozenset(declared), **fields)


def read_per_person(per_person: Any, kind: Kind) -> PerPerson:
    """What a person's rows come to, as the user says it."""
    if per_person not in PER_PERSON:
        raise QueryError(
            f"per_person={per_person!r} is not offered. A person's rows come to one number: "
            "their 'mean', 'sum', 'min' or 'max'."
        )
    if per_person == "sum" and kind != "number":
        raise QueryError("dates have no sum. Give per_person='mean', 'min' or 'max'.")
    chosen: PerPerson = per_person
    return chosen


def _nearest(value: Fraction, low: Fraction, step: Fraction) -> Fraction:
    """The nearest point of a grid."""
    return low + step * int((value - low) / step + Fraction(1, 2))


def _bounds(first: Any, last: Any) -> tuple[Kind, Fraction, Fraction]:
    """What kind of values they bound, and the bounds as numbers."""
    kind = dates.kind_of(dates.moment_or_other(first, "a bound"))
    if kind != dates.kind_of(dates.moment_or_other(last, "a bound")):
        raise QueryError(
            f"bounds=({first!r}, {last!r}) are of two kinds. Give two numbers, two dates or two timestamps."
        )
    low, high = (_number(end, kind, "a bound") for end in (first, last))
    if low >= high:
        text = f"({number_text(low)}, {number_text(high)})" if kind == "number" else f"({first}, {last})"
        raise QueryError(
            f"bounds={text} are {'equal' if low == high else 'reversed'}. "
            "Give (low, high) with low < high, from public knowledge, never from the data."
        )
    return kind, low, high


def _number(x: Any, kind: Kind, what: str) -> Fraction:
    """A number; of a date or timestamp, the seconds since 1970."""
    return exact(x, what) if kind == "number" else dates.seconds(x, kind, what)


def _step(query: type[OnGrid], step: Any, kind: Kind, width: Fraction) -> Fraction:
    """The step, in the unit of the grid; a number of days where the bounds are dates."""
    size = Fraction(dates.DAY) if kind == "date" else width / query.default_cells
    length = dates.length(step)
    if length is not None and kind == "number":
        raise QueryError(f"step is {step!r}, a length of time, and the bounds are numbers. Give a number.")
    if length is not None:
        size = length
    elif step is not None:
        size = exact(step, "step") * (dates.DAY if kind == "date" else 1)
        if kind == "number" and size > 0 and (width / size).denominator != 1:
            size = Fraction(float(step))  # 2⁻⁴⁰, say, is exact as a double and not as its decimal
    if size <= 0 or (width / size).denominator != 1 or width / size > query.most_cells:
        raise QueryError(
            f"step={number_text(size)} does not fit bounds of width {number_text(width)}. "
            f"The step is positive and divides the width into at most {query.most_cells} cells; "
            f"leave it out for {'a day each' if kind == 'date' else query.default_cells}."
        )
    return size
