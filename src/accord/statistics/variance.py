"""The variance of a column of numbers, and its standard deviation.

With u = 2q − Q for the cell q = 0 … Q of a value, y = u/Q lies in [−1, 1], and v = (Δ/2)²·(E[y²] − E[y]²).

Under replace  Σc·2Q·u and Σc·u², each with the noise of a mean: no more than the mean alone would cost. One
           person moves the pair by |2Q(u − u′)| + |u² − u′²| = |u − u′|·(2Q + |u + u′|), and |u − u′| + |u +
           u′| ≤ 2Q, so by at most d(4Q − d) for d = |u − u′| ≤ 2Q: 4Q², which u = Q, u′ = −Q attain. (The
           mean alone, in these units: 4Q².)
Under add-remove  Σc·q², Σc·2q(Q − q) and Σc·(Q − q)²: one person adds Q² in all, whatever q is. They tell how
           many there are, their mean and their variance. Private groups and `where=` have these, at half the
           charge.
Error      of v, at worst: a person's (y − μ)² has a variance of at most 1, at μ² = ½; the noise of E[y²] −
           E[y]² that of 4μ² + 4 noises of a mean of y, at most 8. The standard deviation's is v's, divided by
           2σ.
Interval   both moments lie in intervals of their own, each but for half the probability; the variance between
           the least and the largest that two such moments can have. No law of large numbers is needed for the
           noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import sqrt
from typing import Any

from accord.relation import Relation
from accord.statistics.encoding import Grid
from accord.statistics.grid import OnGrid, excluded, on_grid
from accord.statistics.groups import part_of
from accord.statistics.mean import CELLS, refuse_dates
from accord.statistics.query import Answer, Ends, Interval, Query
from accord.statistics.record import Statistic
from accord.statistics.spread import Spread
from accord.statistics.target import Additive, Form


@dataclass(frozen=True)
class Variance(OnGrid):
    """The mean squared distance of values from their mean."""

    statistic = "variance"

    @cached_property
    def encoding(self) -> Grid:
        return Grid(
            self.column, self.kind, self.low, self.high, self.step, self.missing_cell, "mean", powers=2
        )

    @property
    def rows_come_to(self) -> str:
        return "and counts with the mean of their rows"

    def under(self, relation: Relation, about_members: bool = False) -> Additive | None:
        if about_members:
            return None
        return (
            VarianceTarget(self, relation) if relation.people_are_public else PresentVariance(self, relation)
        )

    def of(self, share: float) -> float:
        """The answer, from the variance as a fraction of the largest that is possible."""
        return share * (self.width / 2) ** 2

    @property
    def error_scale(self) -> float:
        """By what an error of the variance is multiplied to become one of the answer."""
        return 1.0

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: if the mean squared distances of any two levels from the common mean differ "
            "by at most D, and "
            "their means by at most E, the variance behind this answer is off by at most κ·D + (κ·E)² beyond "
            "the interval."
        )

    def assumptions(self) -> list[str]:
        return [
            *super().assumptions(),
            "the predicted error is for the hardest case: half of the people at either bound",
        ]


@dataclass(frozen=True)
class Std(Variance):
    """The square root of the variance."""

    statistic = "std"

    @property
    def label(self) -> str:
        return f"standard deviation of {self.column}"

    def of(self, share: float) -> float:
        return sqrt(share) * self.width / 2

    @property
    def error_scale(self) -> float:
        return 2 / self.width  # 1/2σ for a σ of a quarter of the width

    def assumptions(self) -> list[str]:
        *told, _ = super().assumptions()
        return [
            *told,
            f"the predicted error is for a standard deviation of {self.width / 4:g}, a quarter of the "
            "bounds' width; "
            "of a smaller one it is larger in proportion. The interval holds for any",
        ]


@dataclass(frozen=True)
class VarianceTarget(Additive):
    """Of everyone, whose number is public."""

    query: Variance

    @property
    def forms(self) -> tuple[Form, ...]:
        q = self.query.cells
        return Form(constant=-2 * q * q, first=4 * q), Form(constant=q * q, first=-4 * q, second=4)

    @property
    def sensitivity(self) -> int:
        return 4 * self.query.cells**2

    @property
    def kept_sensitivity(self) -> int:
        return 3 * self.query.cells**2  # |2Q·u| + u², at u = Q

    @property
    def kept_noise_variance(self) -> float:
        share = self.kept_sensitivity / self.sensitivity / float(self.relation.inner)
        return self.noise_variance * share**2

    @property
    def kept_square(self) -> float:
        return self.variance  # E[(y² − 2μy)²] ≤ 1

    @property
    def variance(self) -> float:
        return (self.query.width / 2) ** 4

    @property
    def noise_variance(self) -> float:
        return (
            64 * (self.query.width / 2) ** 4
        )  # a mean of y has 8; E[y²] has 4 × that, and E[y]² at most as much

    @property
    def midpoint_error(self) -> float:
        return (self.query.width**2 / 8) ** 2

    def factor(self, people: int) -> float:
        return self.query.error_scale

    def middle(self, people: int) -> Answer:
        return self.query.of(0.5)

    def possible(self, people: int) -> Interval:
        return 0.0, self.query.of(1.0)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        mean, square = self._moments(released)
        return self.query.of(min(1.0, max(0.0, float(square - mean * mean))))

    def _moments(self, released: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """E[y] and E[y²], with noise."""
        q = self.query.cells
        return released[0] / (2 * q * q), released[1] / (q * q)

    def interval(
        self,
        value: Answer,
        released: Sequence[Fraction],
        spread: Spread,
        alpha: float,
        factor: float = 1.0,
        shift: tuple[float, float] = (0.0, 0.0),
    ) -> Interval:
        mean, square = (float(moment) for moment in self._moments(released))
        sampling, inverse = self._parts(spread)
        rounding = 0.0 if "step" in self.query.declared else 1 / self.query.cells
        halves = [
            Spread(deviation * sampling, scale * inverse, spread.several, extra * rounding).half_width(
                alpha / 2, factor
            )
            for deviation, scale, extra in ((1.0, 2.0, 1.0), (0.5, 4.0, 2.0))  # of y and of y²
        ]
        return self._between(
            (mean - halves[0], mean + halves[0]), (square - halves[1], square + halves[1]), -1.0
        )

    def _parts(self, spread: Spread) -> tuple[float, float]:
        """√Σ(w − 1/n)² and 1/W, which an error is made of."""
        scale = self.query.error_scale
        return (
            spread.sampling / (scale * sqrt(self.max_variance)),
            spread.laplace / (scale * sqrt(self.noise_variance / 2)),
        )

    def _between(self, mean: Ends, square: Ends, least: float) -> Ends:
        """The least and the largest answer for a mean in `mean`, from `least` to 1, and a mean square in
        `square`.
        """
        low, high = (min(1.0, max(least, end)) for end in mean)
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        most = 1.0 if least < 0 else 0.25  # of y in [−1, 1], of q/Q in [0, 1]
        shares = (max(0.0, square[0]) - max(low**2, high**2), min(1.0, square[1]) - nearest**2)
        bottom, top = (min(1.0, max(0.0, share / most)) for share in shares)
        return self.query.of(bottom), self.query.of(top)


@dataclass(frozen=True)
class PresentVariance(VarianceTarget):
    """Of the people who are there."""

    @property
    def forms(self) -> tuple[Form, ...]:
        q = self.query.cells
        return Form(second=1), Form(first=2 * q, second=-2), Form(constant=q * q, first=-2 * q, second=1)

    @property
    def sensitivity(self) -> int:
        return self.query.cells**2

    @property
    def kept_sensitivity(self) -> int:
        return self.sensitivity

    @property
    def tells_size(self) -> bool:
        return True

    @property
    def noise_variance(self) -> float:
        return 2 * self.query.width**4  # where everyone is at one bound; elsewhere less

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        there = sum(released)
        if there <= 0:  # hardly anyone is there
            return self.middle(people)
        square, mean = released[0] / there, (released[0] + released[1] / 2) / there
        return self.query.of(min(1.0, max(0.0, float(4 * (square - mean * mean)))))

    def error_factor(self, released: Sequence[Fraction]) -> float | None:
        there = float(sum(released) / self.sensitivity)
        return 1 / there if there > 0.01 else None

    def interval(
        self,
        value: Answer,
        released: Sequence[Fraction],
        spread: Spread,
        alpha: float,
        factor: float = 1.0,
        shift: tuple[float, float] = (0.0, 0.0),
    ) -> Interval:
        """From the sums' own intervals:

        E[q²] grows with the first sum and falls with the others, E[q] falls with the last.
        """
        sampling, inverse = self._parts(spread)
        noise = Spread(0.0, inverse, spread.several).half_width(alpha / 4)
        (a0, a1), (b0, b1), (c0, c1) = (
            (
                max(0.0, float(sum_) / self.sensitivity - noise),
                max(0.0, float(sum_) / self.sensitivity + noise),
            )
            for sum_ in released
        )
        if a0 + b0 + c0 <= 0:
            return self.possible(1)
        squares = (a0 / (a0 + b1 + c1), a1 / (a1 + b0 + c0))
        means = [(a + b / 2) / (a + b + c) for (a, c), b in product(((a0, c1), (a1, c0)), (b0, b1))]
        drawn = Spread(0.5 * sampling).half_width(alpha / 8, factor)  # q/Q and (q/Q)² lie in [0, 1]
        drawn += 0.0 if "step" in self.query.declared else 1 / self.query.cells
        return self._between(
            (min(means) - drawn, max(means) + drawn), (squares[0] - drawn, squares[1] + drawn), 0.0
        )


def variance(
    column: str,
    bounds: tuple[float, float],
    step: float | None = None,
    missing: str | float = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The variance of a column over all people who have not opted out; it costs no more than their mean.

    Args:
        column: a column of numbers.
        bounds: (low, high), public. Values outside count as the nearer bound.
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: what NULL and NaN count as: "middle" of the bounds, a number, or "exclude".
        where, by, keys, membership: of whom: see `accord.mean`.

    >>> variance("income", bounds=(0, 200_000)).label
    'variance of income'
    """
    return _asked(Variance, column, bounds, step, missing, where, by, keys, membership)


def std(
    column: str,
    bounds: tuple[float, float],
    step: float | None = None,
    missing: str | float = "middle",
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """The standard deviation of a column: the square root of its `variance`.

    >>> std("income", bounds=(0, 200_000)).label
    'standard deviation of income'
    """
    return _asked(Std, column, bounds, step, missing, where, by, keys, membership)


def _asked(
    kind: type[Variance],
    column: str,
    bounds: Any,
    step: Any,
    missing: Any,
    where: Any,
    by: Any,
    keys: Any,
    membership: str,
) -> Query:
    fields = on_grid(kind.statistic, column, bounds, step, missing, CELLS)
    refuse_dates(kind.statistic, fields["kind"])
    asked = kind(**fields)
    return part_of(asked, where, by, keys, membership, excluded(asked, missing))


VARIANCE = Statistic("variance", variance, Additive, ("column", "bounds", "step", "missing"))
STD = Statistic("std", std, Additive, ("column", "bounds", "step", "missing"))
