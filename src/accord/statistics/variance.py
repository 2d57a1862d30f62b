"""The variance of a column of numbers, and its standard deviation.

With u = 2q − Q for the cell q = 0 … Q of a value, y = u/Q lies in [−1, 1], and v = (Δ/2)²·(E[y²] − E[y]²).

Under replace     Σc·2Q·u and Σc·u², each with the noise of a mean: no more than the mean alone would cost.
                  One person moves the pair by |2Q(u − u′)| + |u² − u′²| = |u − u′|·(2Q + |u + u′|). With
                  |u − u′| + |u + u′| ≤ 2Q this is at most d(4Q − d) for d = |u − u′| ≤ 2Q, that is, 4Q²;
                  u = Q and u′ = −Q attain it. (The mean alone, in these units: 4Q².)
Under add-remove  Σc·q², Σc·2q(Q − q) and Σc·(Q − q)²: one person adds Q² in all, whatever q is. They tell how
                  many there are, their mean and their variance. Private groups and `where=` have these, at
                  half the charge.
Error             of v, at worst: a person's (y − μ)² has a variance of at most 1, at μ² = ½; the noise of
                  E[y²] − E[y]² that of 4μ² + 4 noises of a mean of y, at most 8. The standard deviation's is
                  v's, divided by 2σ.
Interval          Both moments lie in intervals of their own, each but for half the probability; the variance
                  between the least and the largest that two such moments can have. No law of large numbers is
                  needed for the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, sqrt
from typing import Any, ClassVar

from accord.relation import Relation
from accord.statistics.grid import OnGrid, on_grid
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Ends, Interval, Query
from accord.statistics.spread import Spread
from accord.statistics.statistic import Statistic
from accord.statistics.target import Additive, Form, factor_for


@dataclass(frozen=True)
class Variance(OnGrid):
    """The mean squared distance of values from their mean."""

    statistic = "variance"
    powers: ClassVar[int] = 2

    def under(self, relation: Relation, about_members: bool = False) -> Additive | None:
        if about_members:
            return None
        if relation.people_are_public:
            return VarianceTarget(self, relation)
        return PresentVariance(self, relation)

    def of(self, share: float) -> float:
        """The answer, from the variance as a fraction of the largest that is possible."""
        return share * (self.width / 2) ** 2

    def of_std(self, std: Any) -> Any:
        """The answer about values of this standard deviation."""
        return std**2

    @property
    def error_scale(self) -> float:
        """By what an error of the variance is multiplied to become one of the answer."""
        return 1.0

    @property
    def assumed_std(self) -> float | None:
        """The standard deviation that errors are predicted for; None: they hold for any."""
        return None

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: if the mean squared distances of any two levels from the common mean differ "
            "by at most D, and their means by at most E, the variance behind this answer is off by at most "
            "κ·D + (κ·E)² beyond the interval."
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
        return f"standard deviation of {self.column}{self.of_rows}"

    def of(self, share: float) -> float:
        return sqrt(share) * self.width / 2

    def of_std(self, std: Any) -> Any:
        return std

    @property
    def error_scale(self) -> float:
        return 2 / self.width  # 1/2σ for a σ of a quarter of the width

    @property
    def assumed_std(self) -> float | None:
        return self.width / 4

    def assumptions(self) -> list[str]:
        *of_grid, _ = super().assumptions()
        return [
            *of_grid,
            f"the predicted error is for a standard deviation of {self.width / 4:g}, a quarter of the "
            "bounds' width; of a smaller one it is larger in proportion. The interval holds for any",
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
        # a mean of y has 8; E[y²] has 4 × that, and E[y]² at most as much
        return 64 * (self.query.width / 2) ** 4

    @property
    def midpoint_error(self) -> float:
        return (self.query.width**2 / 8) ** 2

    def factor(self, people: int) -> float:
        return self.query.error_scale

    def of_moments(self, mean: Any, std: Any, people: Any) -> Any:
        return self.query.of_std(std)

    def middle(self, people: int) -> Answer:
        return self.query.of(0.5)

    def possible(self, people: int) -> Interval:
        return 0.0, self.query.of(1.0)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        mean, square = self._moments(released)
        return self.query.of(min(1.0, max(0.0, float(square - mean * mean))))

    @property
    def assumes_spread(self) -> bool:
        return self.query.assumed_std is not None

    def spread_factor(self, released: Sequence[Fraction]) -> float | None:
        if self.query.assumed_std is None:
            return 1.0
        std = self.finish(released, 1)
        assert isinstance(std, float)
        return max(1.0, self.query.assumed_std / std) if std > 0 else None

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
        sampling, inverse = self._error_parts(spread)
        of_mean = Spread(sampling, 2 * inverse, spread.several, self._rounding)
        of_square = Spread(0.5 * sampling, 4 * inverse, spread.several, 2 * self._rounding)
        half, square_half = (moment.half_width(alpha / 2, factor) for moment in (of_mean, of_square))
        return self._between((mean - half, mean + half), (square - square_half, square + square_half))

    @property
    def _rounding(self) -> float:
        """How far the grid can move a mean of y, or of q/Q and its square."""
        return 0.0 if "step" in self.query.declared else 1 / self.query.cells

    def _error_parts(self, spread: Spread) -> tuple[float, float]:
        """√Σ(w − 1/n)² and 1/W, which an error is made of."""
        scale = self.query.error_scale
        sampling = spread.sampling / (scale * sqrt(self.max_variance))
        return sampling, spread.laplace / (scale * sqrt(self.noise_variance / 2))

    def _between(self, mean: Ends, square: Ends) -> Ends:
        """The least and the largest answer for a mean and a mean square of y between these ends."""
        low, high = (min(1.0, max(-1.0, end)) for end in mean)
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        shares = (max(0.0, square[0]) - max(low**2, high**2), min(1.0, square[1]) - nearest**2)
        bottom, top = (min(1.0, max(0.0, share)) for share in shares)
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
        present = sum(released)
        if present <= 0:  # hardly anyone is there
            return self.middle(people)
        square, mean = released[0] / present, (released[0] + released[1] / 2) / present
        return self.query.of(min(1.0, max(0.0, float(4 * (square - mean * mean)))))

    def error_factor(self, released: Sequence[Fraction], groups: int = 1) -> float | None:
        return factor_for(float(sum(released) / self.sensitivity), groups)

    def interval(
        self,
        value: Answer,
        released: Sequence[Fraction],
        spread: Spread,
        alpha: float,
        factor: float = 1.0,
        shift: tuple[float, float] = (0.0, 0.0),
    ) -> Interval:
        """From the sums' own intervals, and from what weighing people unequally may do.

        With μ their true mean and z = (x − μ)², the people's variance is E[z], and the weighted one
        Σwz − (Σwx − μ)². So it is at most d below the weighted one, and d + d² above it, where d bounds the
        error of a weighted mean of numbers in [0, 1], as x and z are.
        """
        sampling, inverse = self._error_parts(spread)
        sums = [float(noisy) / self.sensitivity for noisy in released]
        # the sums are means over everyone, and 1/W is of a group as large as the others
        noise = Spread(0.0, factor * sum(sums) * inverse, spread.several).half_width(alpha / 4)
        a0, b0, c0 = (max(0.0, x - noise) for x in sums)
        a1, b1, c1 = (max(0.0, x + noise) for x in sums)
        if a0 + b0 + c0 <= 0:
            return self.possible(1)
        bottom, top = shares_within((a0, a1), (b0, b1), (c0, c1))
        d = Spread(0.5 * sampling).half_width(alpha / 8, factor)
        bottom, top = bottom - 4 * (d + self._rounding), top + 4 * (d + d * d + self._rounding)
        return self.query.of(max(0.0, bottom)), self.query.of(min(1.0, max(0.0, top)))


def shares_within(a: Ends, b: Ends, c: Ends) -> Ends:
    """The least and the largest 4·variance where the three sums of `PresentVariance` lie between these ends.

    It is (4ac − b²)/(a + b + c)². That falls in b, and in a it rises up to b + c + b²/2c and then falls; so
    it does in c. (A point where it rises in neither has b = 0 and a = c, and so do points at the ends.)
    """

    def share(a: float, b: float, c: float) -> float:
        return (4 * a * c - b * b) / (a + b + c) ** 2 if a + b + c > 0 else 0.0

    def peak(other: float, ends: Ends) -> float:
        at = b[0] + other + b[0] ** 2 / (2 * other) if other > 0 else inf
        return min(max(at, ends[0]), ends[1])

    least = min(share(x, b[1], z) for x, z in product(a, c))
    candidates = [*product(a, c), *((peak(z, a), z) for z in c), *((x, peak(x, c)) for x in a)]
    return least, max(share(x, b[0], z) for x, z in candidates)


@asked_by_group
def variance(
    column: str,
    bounds: tuple[float, float] | None = None,
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
    per_person: str | None = None,
) -> Query[float]:
    """The variance of a column over all people who have not opted out, with no more noise than their mean.

    Args:
        column: a column of numbers.
        bounds: (low, high), public. Values outside count as the nearer bound. Left out: as the table declares
            them (`accord.catalog`).
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: what becomes of missing values: see `accord.mean`.
        where, by, keys, membership, at_most, suppress, rest: of whom: see `accord.mean`.
        per_person: what a person's rows come to, where they have several: see `accord.mean`.

    >>> variance("income", bounds=(0, 200_000)).label
    'variance of income'
    """
    query = on_grid(Variance, column, bounds, step, missing, per_person)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest)


@asked_by_group
def std(
    column: str,
    bounds: tuple[float, float] | None = None,
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
    per_person: str | None = None,
) -> Query[float]:
    """The standard deviation of a column: the square root of its `variance`.

    >>> std("income", bounds=(0, 200_000)).label
    'standard deviation of income'
    """
    query = on_grid(Std, column, bounds, step, missing, per_person)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest)


VARIANCE = Statistic("variance", variance, Additive, ("column", "bounds", "step", "missing", "per_person"))
STD = Statistic("std", std, Additive, ("column", "bounds", "step", "missing", "per_person"))
