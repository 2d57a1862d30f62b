"""The mean of a column of numbers.

Under replace  Σc·q over everyone: one person moves it by at most the span of the cells.
Under add-remove, where the number of people is private, it is a ratio of two sums, of q and of span − q: one
           person adds span in all, so that both together move by one span.
Of members of a private part, under replace, Σc(2q − span) and Σc·span over the members: somebody who comes in
           or goes out moves them by span + span at most, somebody whose value changes by 2·span: two spans in
           all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.grid import OnGrid, excluded, on_grid
from accord.statistics.groups import part_of
from accord.statistics.query import Answer, Interval, Query, decimal, exact, number_text
from accord.statistics.record import Statistic
from accord.statistics.target import Additive, Form

CELLS = 2**20
"""Cells of a value's grid unless `step` is given."""


@dataclass(frozen=True)
class Mean(OnGrid):
    """A mean of values within bounds."""

    statistic = "mean"
    compared = ("mean", "means")

    std: float | None = None
    """A public upper bound of the standard deviation."""

    @property
    def sigma(self) -> float:
        """The standard deviation that is reckoned with: the declared bound, else the largest that is
        possible.
        """
        return self.width / 2 if self.std is None else self.std

    @property
    def rows_come_to(self) -> str:
        return "and counts with the mean of their rows"

    def under(self, relation: Relation, about_members: bool = False) -> Additive:
        if about_members:
            return MembersMean(self, relation, True)
        return MeanTarget(self, relation) if relation.people_are_public else PresentMean(self, relation)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "std": None if self.std is None else number_text(decimal(self.std))}

    def assumptions(self) -> list[str]:
        bounds, *others = super().assumptions()
        spread = (
            f"its standard deviation is taken to be at most {number_text(decimal(self.std))}, as declared"
            if self.std is not None
            else f"its standard deviation is taken to be the largest possible, {self.width / 2:g} "
            "(give std= if a smaller one is publicly known)"
        )
        return [bounds, spread, *others]


@dataclass(frozen=True)
class MeanTarget(Additive):
    """Of everyone, whose number is public."""

    query: Mean

    @property
    def forms(self) -> tuple[Form, ...]:
        return (Form(first=1),)

    @property
    def sensitivity(self) -> int:
        return self.query.cells

    @property
    def variance(self) -> float:
        return self.query.sigma**2

    @property
    def noise_variance(self) -> float:
        return 2 * self.query.width**2

    @property
    def rounding(self) -> float:
        return 0.0 if "step" in self.query.declared else float(self.query.step / 2)

    @property
    def midpoint_error(self) -> float:
        # std bounds σ from above, so it tells nothing about how far the mean is from the middle
        return (self.query.width / 2) ** 2

    def middle(self, people: int) -> Answer:
        return float((self.query.low + self.query.high) / 2)

    def possible(self, people: int) -> Interval:
        return float(self.query.low), float(self.query.high)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return float(self.query.low + self.query.step * released[0])


@dataclass(frozen=True)
class PresentMean(MeanTarget):
    """Of the people who are there."""

    @property
    def forms(self) -> tuple[Form, ...]:
        return Form(first=1), Form(constant=self.query.cells, first=-1)

    @property
    def tells_size(self) -> bool:
        return True

    @property
    def kept_square(self) -> float:
        return self.variance

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        above, both, _ = _over_one(released)
        if both <= 0:  # hardly anyone is there
            return self.middle(people)
        inside = Fraction(min(both, max(0, above)), both)
        return float(self.query.low + (self.query.high - self.query.low) * inside)

    def error_factor(self, released: Sequence[Fraction]) -> float | None:
        _, both, denominator = _over_one(released)
        there = both / (denominator * self.query.cells)
        return 1 / there if there > 0.01 else None


@dataclass(frozen=True)
class MembersMean(PresentMean):
    """Of the members of a private part, while everyone stays."""

    @property
    def forms(self) -> tuple[Form, ...]:
        span = self.query.cells
        return Form(constant=-span, first=2), Form(constant=span)

    @property
    def sensitivity(self) -> int:
        return 2 * self.query.cells

    @property
    def noise_variance(self) -> float:
        return 4 * self.query.width**2  # 2Δ² + 8(μ − mid)², at worst

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        centred, there = released
        if there <= 0:  # hardly anyone is there
            return self.middle(people)
        inside = min(Fraction(1), max(Fraction(0), (1 + centred / there) / 2))
        return float(self.query.low + (self.query.high - self.query.low) * inside)

    def error_factor(self, released: Sequence[Fraction]) -> float | None:
        there = float(released[1] / self.query.cells)
        return 1 / there if there > 0.01 else None


def _over_one(released: Sequence[Fraction]) -> tuple[int, int, int]:
    """The first of two fractions and their sum, over one denominator: whole numbers, as there may be many
    groups.
    """
    first, second = released
    above = first.numerator * second.denominator
    return above, above + second.numerator * first.denominator, first.denominator * second.denominator


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
        std: a public upper bound of the standard deviation, if one is known. Sharpens the plan; no effect on
            privacy.
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: what NULL and NaN count as: "middle" of the bounds, a number, or "exclude": a mean of those
            who have a value, as with `where`.
        where: only of people who meet this condition, such as "age >= 30". Whether somebody does is private.
        by, keys: of each group of people with one of these `keys` in the column `by`: a row for each. Keys
            are declared, never taken from the data.
        membership: "private": everyone is charged, member or not. "public": everyone may know who is in which
            group, and each costs its own people.

    Raises:
        QueryError: bounds that are reversed, equal or infinite, and the like.

    >>> mean("income", bounds=(0, 200_000)).label
    'mean of income'
    """
    asked = Mean(**of_numbers("mean", column, bounds, std, step, missing))
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


def of_numbers(
    statistic: str, column: str, bounds: Any, std: float | None, step: float | None, missing: Any
) -> dict[str, Any]:
    """The checked fields of a question about numbers with a standard deviation."""
    fields = on_grid(statistic, column, bounds, step, missing, CELLS)
    refuse_dates(statistic, fields["kind"])
    if std is not None:
        sigma, width = exact(std, "std"), fields["high"] - fields["low"]
        if not width / 10**9 <= sigma <= width / 2:
            raise QueryError(
                f"std={number_text(sigma)} is not possible. A standard deviation within bounds of width "
                f"{number_text(width)} is positive (at least a billionth of it) and at most "
                f"{number_text(width / 2)}; leave it out if none is publicly known."
            )
    return {**fields, "std": None if std is None else float(std)}


def refuse_dates(statistic: str, kind: str) -> None:
    """Refuse bounds that are dates."""
    if kind != "number":
        raise QueryError(
            f"a {statistic} is of numbers, and its bounds are dates. Ask for accord.median of a column of "
            "dates."
        )


MEAN = Statistic("mean", mean, Additive, ("column", "bounds", "std", "step", "missing"))
