"""Means and sums of a column of numbers, on a grid of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, nextafter
from typing import Any

from accord.errors import QueryError
from accord.query.record import Additive, Answer, Query, column_name, decimal, exact, number_text

CELLS = 2**20
"""Cells of a value's grid unless `step` is given."""
MOST_CELLS = 2**40
_NARROWEST, _WIDEST = Fraction(1, 10**100), 10**100


@dataclass(frozen=True)
class Mean(Additive):
    statistic = "mean"

    column: str
    low: Fraction
    high: Fraction
    std: float | None
    step: Fraction
    missing: Fraction
    declared: frozenset[str] = field(default_factory=frozenset)
    """Which of step and missing the user gave."""

    @property
    def label(self) -> str:
        return f"{self.statistic} of {self.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @cached_property
    def span(self) -> int:
        return int((self.high - self.low) / self.step)

    def size(self, people: int) -> int:
        return 1

    @property
    def width(self) -> float:
        return float(self.high - self.low)

    @property
    def variance(self) -> float:
        return (self.width / 2 if self.std is None else self.std) ** 2

    @property
    def blur(self) -> float:
        return 2 * self.width**2

    @cached_property
    def inverse(self) -> float:
        """1/step as a double, or a little less: so that FLOOR((x − low)·inverse + 0.5), in doubles, is at most `span` for every x < high.

        Rounding is monotone, so that it is enough to try the last double before `high`.
        """
        low, last = float(self.low), nextafter(float(self.high), -inf)
        inverse = float(1 / self.step)
        while (last - low) * inverse + 0.5 >= self.span + 1:
            inverse = nextafter(inverse * (1 - 2**-50), 0)
        return inverse

    @property
    def missing_cell(self) -> int:
        """The cell of a missing value."""
        return int((self.missing - self.low) / self.step)

    @property
    def rounding(self) -> float:
        return 0.0 if "step" in self.declared else float(self.step / 2)

    @property
    def idle(self) -> float:
        return (
            self.width / 2
        ) ** 2  # std bounds σ from above, so it tells nothing about how far the mean is from the middle

    def finish(self, means: Sequence[Fraction], people: int) -> Answer:
        return float(self.low + self.step * means[0])

    def describe(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "column": self.column,
            "bounds": [number_text(self.low), number_text(self.high)],
            "std": None if self.std is None else number_text(decimal(self.std)),
            "step": number_text(self.step),
            "missing": number_text(self.missing),
        }

    def assumptions(self) -> list[str]:
        low, high, middle = number_text(self.low), number_text(self.high), number_text(self.missing)
        spread = (
            f"its standard deviation is taken to be at most {number_text(decimal(self.std))}, as declared"
            if self.std is not None
            else f"its standard deviation is taken to be the largest possible, {self.width / 2:g} (give std= if a smaller one is publicly known)"
        )
        grid = f"values are rounded to steps of {float(self.step):g}"
        return [
            f"{self.column} lies in [{low}, {high}]; what lies outside counts as the nearer bound",
            spread,
            grid if "step" in self.declared else f"{grid}, which moves each by at most {float(self.step / 2):.2g}",
            f"a missing value counts as {middle}"
            + ("" if "missing" in self.declared else ", the middle of the bounds; many of them would bias the answer"),
        ]


@dataclass(frozen=True)
class Sum(Mean):
    statistic = "sum"

    def size(self, people: int) -> int:
        return people

    def finish(self, means: Sequence[Fraction], people: int) -> Answer:
        return float(people * (self.low + self.step * means[0]))


def mean(
    column: str,
    bounds: tuple[float, float],
    std: float | None = None,
    step: float | None = None,
    missing: str | float = "middle",
) -> Query:
    """The mean of a column over all people who have not opted out.

    Args:
        column: a column of numbers.
        bounds: (low, high), public. Values outside count as the nearer bound.
        std: a public upper bound of the standard deviation, if one is known. Sharpens the plan; no effect on privacy.
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: what NULL and NaN count as: "middle" of the bounds, or a number.

    Raises:
        QueryError: bounds that are reversed, equal or infinite, and the like.

    >>> mean("income", bounds=(0, 200_000)).label
    'mean of income'
    """
    return Mean(**_on_grid("mean", column, bounds, std, step, missing))


def sum(
    column: str,
    bounds: tuple[float, float],
    std: float | None = None,
    step: float | None = None,
    missing: str | float = "middle",
) -> Query:
    """The sum of a column over all people who have not opted out: their public number times their mean. See `mean`.

    >>> sum("income", bounds=(0, 200_000)).unit
    'value'
    """
    return Sum(**_on_grid("sum", column, bounds, std, step, missing))


def _on_grid(
    statistic: str, column: str, bounds: Any, std: float | None, step: float | None, missing: Any
) -> dict[str, Any]:
    """The checked fields of a Mean or Sum."""
    name = column_name(column)
    try:
        first, last = bounds
    except (TypeError, ValueError):
        raise QueryError(
            f"bounds= of {statistic}({name!r}) is not a pair. Give public bounds (low, high), such as bounds=(0, 200_000)."
        ) from None
    low, high = exact(first, "a bound"), exact(last, "a bound")
    if low >= high:
        raise QueryError(
            f"bounds=({number_text(low)}, {number_text(high)}) are {'equal' if low == high else 'reversed'}. "
            "Give (low, high) with low < high, from public knowledge, never from the data."
        )
    width = high - low
    declared = set()
    grid = width / CELLS
    if step is not None:
        declared.add("step")
        grid = exact(step, "step")
        if grid > 0 and (width / grid).denominator != 1:
            grid = Fraction(float(step))  # 2⁻⁴⁰, say, is exact as a double and not as its decimal
        if grid <= 0 or (width / grid).denominator != 1 or width / grid > MOST_CELLS:
            raise QueryError(
                f"step={number_text(grid)} does not fit bounds of width {number_text(width)}. "
                f"The step is positive and divides the width into at most {MOST_CELLS} cells; leave it out for {CELLS}."
            )
    if not _NARROWEST <= width <= _WIDEST or float(low) >= float(high):
        raise QueryError(
            f"bounds=({first!r}, {last!r}) are too far apart or too close together to reckon with. Change the unit of the column."
        )
    if std is not None:
        sigma = exact(std, "std")
        if not width / 10**9 <= sigma <= width / 2:
            raise QueryError(
                f"std={number_text(sigma)} is not possible. A standard deviation within bounds of width {number_text(width)} is positive (at least a "
                f"billionth of it) and at most {number_text(width / 2)}; leave it out if none is publicly known."
            )
    where_missing = (low + high) / 2
    if missing == "exclude":
        raise QueryError(
            "missing='exclude' would make the number of people private. Give a number within the bounds, or 'middle'."
        )
    if missing != "middle":
        declared.add("missing")
        where_missing = exact(missing, "missing")
        if not low <= where_missing <= high:
            raise QueryError(
                f"missing={number_text(where_missing)} lies outside the bounds. Give a number within them, or 'middle'."
            )
    return {
        "column": name,
        "low": low,
        "high": high,
        "std": None if std is None else float(std),
        "step": grid,
        "missing": low + grid * int((where_missing - low) / grid + Fraction(1, 2)),  # the nearest cell
        "declared": frozenset(declared),
    }
