"""The mean of a column of numbers.

With q = 0 … span for the cell of a person's value, and c for their charge:

Under replace     Σc·q over everyone. One person moves it by at most c·span.
Under add-remove  the number of people is private, and the mean a ratio of two sums, Σc·q and Σc·(span − q).
                  One person adds c·span in all, so that both together move by as much.
Of members        of a private part, under replace: Σc·(2q − span) and Σc·span over the members. Somebody who
                  comes in or goes out moves each by at most c·span, somebody whose value changes the first by
                  2c·span: both together move by two spans. Of a box, the first has the span 2·span and the
                  second 1·span; the mean is then off by Δ·z₁ and at most Δ/2·z₂. Of members who are kept at
                  random (`sample`) the sums of add-remove serve: somebody outside is as good as not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.gap import GapScale, of_values
from accord.statistics.grid import OnGrid, on_grid
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Interval, Query, decimal, exact, number_text
from accord.statistics.statistic import Statistic
from accord.statistics.target import factor_for
from accord.statistics.target_sums import Additive, Form


@dataclass(frozen=True)
class Mean(OnGrid):
    """A mean of values within bounds."""

    statistic = "mean"
    compared = ("mean", "means")

    std: float | None = None
    """A public upper bound of the standard deviation."""

    @property
    def sigma(self) -> float:
        """The standard deviation that errors are predicted by: as declared, else the largest possible."""
        return self.width / 2 if self.std is None else self.std

    @property
    def gap_scale(self) -> GapScale:
        return of_values(self.high - self.low)

    @property
    def rounding(self) -> float:
        """How far a value may lie from its point of the grid."""
        return 0.0 if "step" in self.declared else float(self.step / 2)

    def under(self, relation: Relation, about_members: bool = False) -> Additive:
        if about_members:
            return MembersMean(self, relation, True)
        return MeanTarget(self, relation) if relation.people_are_public else PresentMean(self, relation)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "std": None if self.std is None else number_text(decimal(self.std))}

    def assumptions(self) -> list[str]:
        bounds, *others = super().assumptions()
        spread = "its standard deviation is taken to be "
        if self.std is None:
            spread += f"the largest possible, {self.width / 2:g} "
            spread += "(give std= if a smaller one is publicly known)"
        else:
            spread += f"at most {number_text(decimal(self.std))}, as declared"
        return [bounds, spread, *others]


class Averaged(Protocol):
    """What a mean is asked of: numbers low + k·step for k = 0 … cells, between `low` and `high`."""

    @property
    def low(self) -> Fraction: ...
    @property
    def high(self) -> Fraction: ...
    @property
    def step(self) -> Fraction: ...
    @property
    def cells(self) -> int: ...
    @property
    def width(self) -> float: ...
    @property
    def sigma(self) -> float: ...
    @property
    def rounding(self) -> float: ...


@dataclass(frozen=True)
class MeanTarget(Additive):
    """Of everyone, whose number is public."""

    query: Averaged

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
        return self.query.rounding

    @property
    def midpoint_error(self) -> float:
        # std bounds σ from above, so it tells nothing about how far the mean is from the middle
        return (self.query.width / 2) ** 2

    def middle(self, people: int) -> Answer:
        return float((self.query.low + self.query.high) / 2)

    def possible(self, people: int) -> Interval:
        return float(self.query.low), float(self.query.high)

    def slopes(self, people: int) -> tuple[float, ...] | None:
        return (float(self.query.step),)

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

    def slopes(self, people: int) -> tuple[float, ...] | None:
        return None  # a ratio

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        above, both, _ = _over_one_denominator(released)
        if both <= 0:  # hardly anyone is there
            return self.middle(people)
        return self._within_bounds(Fraction(above, both))

    def _within_bounds(self, share: Fraction) -> float:
        """The value at this share of the width above the lower bound; the nearer bound if it lies outside."""
        share = min(Fraction(1), max(Fraction(0), share))
        return float(self.query.low + (self.query.high - self.query.low) * share)

    def error_factor(self, released: Sequence[Fraction], groups: int = 1) -> float | None:
        _, both, denominator = _over_one_denominator(released)
        return factor_for(both / (denominator * self.query.cells), groups)


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

    @property
    def box_spans(self) -> tuple[int, ...]:
        return 2 * self.query.cells, self.query.cells

    @property
    def box_effects(self) -> tuple[float, ...]:
        return self.query.width, self.query.width / 2  # of the second, |μ − mid| at worst

    @property
    def kept_forms(self) -> tuple[Form, ...]:
        return super().forms

    @property
    def kept_sensitivity(self) -> int:
        return self.query.cells

    @property
    def kept_noise_variance(self) -> float:
        return super().noise_variance / float(self.relation.inner) ** 2

    def from_kept(self, means: Sequence[Fraction]) -> list[Fraction]:
        above, below = means
        return [above - below, above + below]

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        centred, present = released
        if present <= 0:  # hardly anyone is there
            return self.middle(people)
        return self._within_bounds((1 + centred / present) / 2)

    def error_factor(self, released: Sequence[Fraction], groups: int = 1) -> float | None:
        return factor_for(float(released[1] / self.query.cells), groups)


def _over_one_denominator(released: Sequence[Fraction]) -> tuple[int, int, int]:
    """The first of two fractions and their sum over one denominator, and that.

    Whole numbers, because there may be many groups: a Fraction would be reduced each time.
    """
    first, second = released
    above = first.numerator * second.denominator
    return above, above + second.numerator * first.denominator, first.denominator * second.denominator


@asked_by_group
def mean(
    column: str,
    bounds: tuple[float, float] | None = None,
    std: float | None = None,
    step: float | None = None,
    missing: str | float = "exclude",
    *,
    where: str | None = None,
    by: By = None,
    keys: Keys = None,
    membership: str = "private",
    at_most: int = 1,
    suppress: bool | None = None,
    rest: RestLabels = None,
    gap: float | None = None,
    about: str | None = None,
    per_person: str | None = None,
) -> Query[float]:
    """The mean of a column over all people who have not opted out.

    Args:
        column: a column of numbers.
        bounds: (low, high), public. Values outside count as the nearer bound. Left out: as the table declares
            them (`accord.catalog`).
        std: a public upper bound of the standard deviation, if one is known. Sharpens the plan; no effect on
            privacy.
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: "exclude": people whose value is missing (NULL, NaN, ±∞) are left out, and how many they are
            stays private. "none": no value is missing, as is publicly known; this makes the answer sharper,
            and a stray missing value counts as the middle. "middle" of the bounds, or a number: what a
            missing value counts as.
        where: only of people who meet this condition, such as "age >= 30". Whether somebody does is private.
        by, keys: of each group of people with one of these `keys` in the column `by`: a row for each. Keys
            are declared, never taken from the data: a list or the like, or the path of a file of a public
            list (.txt with one key a line, .csv or .parquet), which is read now. Of several columns,
            by=["ward", "sex"] with keys={"ward": […], "sex": […]}: a row for each combination.
        membership: "private": everyone is charged, member or not. "public": everyone may know who is in which
            group, and each costs its own people.
        at_most: in how many of the groups one person may be, where people have several rows: the most
            frequent of theirs, in each of which their rows of that group count. The more, the noisier.
        suppress: whether private groups are left out of the answer that may be empty, as far as what was
            released tells: a group is shown if its noisy size is larger than the noise makes that of an empty
            one, but for a probability of 5 % for all groups together. The intervals of those that are shown
            then hold for all groups together. Left out: above 50 groups. Free of charge.
        rest: what one more group is called, of everyone whose value is none of the keys: rest="other".
            Whoever has no value is in no group. Of several columns, one for each; {column: name} for some.
        gap: how far the means of any two levels may lie apart, at most, as is publicly known, in the column's
            units. Levels may then go with values: errors and intervals hold the bias, and the mechanism is
            chosen by it. docs/gap.md says how to choose one.
        about: "everyone": about those who opted out, too, who are never read. Needs gap=.
        per_person: what a person's rows come to, where they have several: their "mean", "sum", "min" or
            "max". The bounds are about that.

    Raises:
        QueryError: bounds that are reversed, equal or infinite, and the like.

    >>> mean("income", bounds=(0, 200_000)).label
    'mean of income'
    """
    query = with_std(on_grid(Mean, column, bounds, step, missing, per_person), std)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


_Mean = TypeVar("_Mean", bound=Mean)


def with_std(query: _Mean, std: float | None) -> _Mean:
    """The question with a declared standard deviation, if there is one."""
    if std is None:
        return query
    sigma, width = exact(std, "std"), query.high - query.low
    if not width / 10**9 <= sigma <= width / 2:
        raise QueryError(
            f"std={number_text(sigma)} is not possible. A standard deviation within bounds of width "
            f"{number_text(width)} is positive (at least a billionth of it) and at most "
            f"{number_text(width / 2)}; leave it out if none is publicly known."
        )
    return replace(query, std=float(std))


MEAN = Statistic("mean", mean, Additive, ("column", "bounds", "std", "step", "missing", "per_person"))
