"""Means and sums of a column of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from accord.errors import QueryError
from accord.statistics.encoding import PerPerson
from accord.statistics.grid import OnGrid, excluded, on_grid
from accord.statistics.parts import part_of
from accord.statistics.record import Additive, Answer, Query, decimal, exact, number_text

CELLS = 2**20
"""Cells of a value's grid unless `step` is given."""
MOST_ROWS = 10**9


@dataclass(frozen=True)
class Mean(OnGrid, Additive):
    statistic = "mean"

    std: float | None = None
    """A public upper bound of the standard deviation."""

    def size(self, people: int) -> int:
        return 1

    @property
    def variance(self) -> float:
        return (self.width / 2 if self.std is None else self.std) ** 2

    @property
    def blur(self) -> float:
        return 2 * self.width**2

    @property
    def rounding(self) -> float:
        return 0.0 if "step" in self.declared else float(self.step / 2)

    @property
    def idle(self) -> float:
        # std bounds σ from above, so it tells nothing about how far the mean is from the middle
        return (self.width / 2) ** 2

    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        return float(self.low + self.step * found[0])

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "std": None if self.std is None else number_text(decimal(self.std))}

    def assumptions(self) -> list[str]:
        bounds, *others = super().assumptions()
        spread = (
            f"its standard deviation is taken to be at most {number_text(decimal(self.std))}, as declared"
            if self.std is not None
            else f"its standard deviation is taken to be the largest possible, {self.width / 2:g} (give std= if a smaller one is publicly known)"
        )
        return [bounds, spread, *others]


@dataclass(frozen=True)
class Sum(Mean):
    statistic = "sum"
    per_person: ClassVar[PerPerson] = "sum"

    @property
    def rows_come_to(self) -> str:
        return "and counts with the sum of their rows"

    def size(self, people: int) -> int:
        return people

    @property
    def origin(self) -> Fraction:
        return self.low / self.step

    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        return float(people * (self.low + self.step * found[0]))


@dataclass(frozen=True)
class Rows(Sum):
    """How many rows people have, in all: their number is what is summed."""

    statistic = "rows"
    per_person: ClassVar[PerPerson] = "rows"

    @property
    def rows_come_to(self) -> str:
        return "and counts for as many rows as they have"

    @property
    def label(self) -> str:
        return "number of rows"

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "max": number_text(self.high)}

    def assumptions(self) -> list[str]:
        return [f"nobody has more than {number_text(self.high)} rows; who has more counts as that many"]


def mean(
    column: str,
    bounds: tuple[float, float],
    std: float | None = None,
    step: float | None = None,
    missing: str | float = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The mean of a column over all people who have not opted out.

    Args:
        column: a column of numbers.
        bounds: (low, high), public. Values outside count as the nearer bound.
        std: a public upper bound of the standard deviation, if one is known. Sharpens the plan; no effect on privacy.
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: what NULL and NaN count as: "middle" of the bounds, a number, or "exclude": a mean of those who have a value, as with `where`.
        where: only of people who meet this condition, such as "age >= 30". Whether somebody does is private.
        by, keys: of each group of people with one of these `keys` in the column `by`: a row for each. Keys are declared, never taken from the data.
        membership: "private": everyone is charged, member or not. "public": everyone may know who is in which group, and each costs its own people.

    Raises:
        QueryError: bounds that are reversed, equal or infinite, and the like.

    >>> mean("income", bounds=(0, 200_000)).label
    'mean of income'
    """
    asked = Mean(**_grid("mean", column, bounds, std, step, missing))
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


def sum(
    column: str,
    bounds: tuple[float, float],
    std: float | None = None,
    step: float | None = None,
    missing: str | float = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The sum of a column over all people who have not opted out: their public number times their mean. See `mean`.

    >>> sum("income", bounds=(0, 200_000)).unit
    'value'
    """
    asked = Sum(**_grid("sum", column, bounds, std, step, missing))
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


def rows(
    max: int,
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """How many rows all people who have not opted out have together: visits, orders, claims. For tables that say who a row is of (`user=`).

    Args:
        max: the most that one person counts for, public.

    >>> rows(max=50).label
    'number of rows'
    """
    if isinstance(max, bool) or not isinstance(max, int) or not 1 <= max <= MOST_ROWS:
        raise QueryError(
            f"max={max!r} is not a number of rows. Give the most that one person counts for, from 1 to {MOST_ROWS}."
        )
    return part_of(Rows(**on_grid("rows", "rows", (0, max), 1, 0, CELLS)), where, by, keys, membership)


def _grid(
    statistic: str, column: str, bounds: Any, std: float | None, step: float | None, missing: Any
) -> dict[str, Any]:
    fields = on_grid(statistic, column, bounds, step, missing, CELLS)
    if fields["kind"] != "number":
        raise QueryError(
            f"a {statistic} is of numbers, and its bounds are dates. Ask for accord.median of a column of dates."
        )
    if std is not None:
        sigma, width = exact(std, "std"), fields["high"] - fields["low"]
        if not width / 10**9 <= sigma <= width / 2:
            raise QueryError(
                f"std={number_text(sigma)} is not possible. A standard deviation within bounds of width {number_text(width)} is positive (at least a "
                f"billionth of it) and at most {number_text(width / 2)}; leave it out if none is publicly known."
            )
    return {**fields, "std": None if std is None else float(std)}
