"""The variance of a column of numbers, and its standard deviation.

With u = 2q − Q for the cell q = 0 … Q of a value, y = u/Q lies in [−1, 1], and v = (Δ/2)²·(E[y²] − E[y]²).

Under replace     Σc·2Q·u and Σc·u², each with the noise of a mean: no more than the mean alone would cost.
                  One person moves the pair by |2Q(u − u′)| + |u² − u′²| = |u − u′|·(2Q + |u + u′|). With
                  |u − u′| + |u + u′| ≤ 2Q this is at most d(4Q − d) for d = |u − u′| ≤ 2Q, that is, 4Q²;
                  u = Q and u′ = −Q attain it. (The mean alone, in these units: 4Q².) Of a box, the first has
                  the span 4Q², and the second, between 0 and Q², the span Q².
Under add-remove  Σc·q², Σc·2q(Q − q) and Σc·(Q − q)²: one person adds Q² in all, whatever q is. They tell how
                  many there are, their mean and their variance. Private groups and `where=` have these, at
                  half the charge.
Error             of v, at worst: a person's (y − μ)² has a variance of at most 1, at μ² = ½; the noise of
                  E[y²] − E[y]² that of 4μ² + 4 noises of a mean of y, at most 8. The standard deviation's is
                  v's, divided by 2σ.
Interval          Of all variances those that could have given what was released, by the noise of
                  (y − μ)² − v and by what unequal weights do to it (central.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, sqrt
from typing import Any, ClassVar

from accord.relation import Relation
from accord.statistics.central import Moments, Polynomial, Uneven, in_x, several
from accord.statistics.gap import DISTRIBUTIONS, GapScale
from accord.statistics.grid import OnGrid, on_grid
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Interval, Query
from accord.statistics.spread import Spread
from accord.statistics.statistic import Statistic
from accord.statistics.target import factor_for
from accord.statistics.target_sums import Additive, Form


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
    def gap_scale(self) -> GapScale:
        return DISTRIBUTIONS

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
    def box_spans(self) -> tuple[int, ...]:
        return 4 * self.query.cells**2, self.query.cells**2

    @property
    def box_effects(self) -> tuple[float, ...]:
        # of E[y] 2 noises, twice as much in E[y]² at worst; of E[y²] one
        return 4 * (self.query.width / 2) ** 2, (self.query.width / 2) ** 2

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
    def gap_effects(self) -> tuple[float, float]:
        most = 4 * (self.query.width / 2) ** 2  # (y − μ)² lies in 0 … 4
        return most**2, most

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
        if self._share(released) <= 0:
            return self.possible(1)
        moments = self.released_moments(released, spread, factor).of_present(0.05 * alpha)
        if moments is None:
            return self.possible(1)
        x, xx = moments.mean.x, moments.mean.xx
        mean = moments.mean_of(x, in_x, 0.1 * alpha)
        low, high = moments.variance_of(x, xx, mean, in_x, 0.85 * alpha)
        bias = spread.bias / (self.query.error_scale * (self.query.width / 2) ** 2)
        low, high = max(0.0, low - bias), min(1.0, high + bias)
        # the grid moves a standard deviation by no more than it moves a value
        rounding = 0.0 if "step" in self.query.declared else 1 / self.query.cells
        bottom, top = max(0.0, sqrt(low) - rounding), min(1.0, sqrt(high) + rounding)
        return self.query.of(bottom**2), self.query.of(top**2)

    def _share(self, released: Sequence[Fraction]) -> Fraction:
        """How many are there, as a share of everyone."""
        return Fraction(1)

    def released_moments(self, released: Sequence[Fraction], spread: Spread, factor: float) -> Moments:
        uneven, inverse = self.error_parts(spread)
        mean, square = (float(moment) for moment in self._moments(released))

        def noise(f: Polynomial) -> Spread:
            if spread.box is None:
                return several(2 * inverse * hypot(f.x, 2 * f.xx))
            effects = tuple(inverse * abs(effect) for effect in (2 * f.x, f.xx))
            return Spread(box=replace(spread.box, effects=effects))

        return Moments(Polynomial(one=1.0, x=mean, xx=square), noise, uneven)

    def error_parts(self, spread: Spread) -> tuple[Uneven, float]:
        """How unequal weights are, and 1/W, which an error is made of."""
        scale = self.query.error_scale
        unit = scale**2 * self.max_variance
        uneven = Uneven(*(part**2 / unit for part in (spread.sampling, spread.from_end, spread.ceiling)))
        if spread.box is not None:
            return uneven, spread.box.effects[0] / (scale * self.box_effects[0])
        return uneven, spread.laplace / (scale * sqrt(self.noise_variance / 2))


@dataclass(frozen=True)
class PresentVariance(VarianceTarget):
    """Of the people who are there."""

    @property
    def box_spans(self) -> tuple[int, ...]:
        return ()

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

    def _share(self, released: Sequence[Fraction]) -> Fraction:
        return sum(released, Fraction(0)) / self.sensitivity

    def released_moments(self, released: Sequence[Fraction], spread: Spread, factor: float) -> Moments:
        uneven, inverse = self.error_parts(spread)
        top, middle, bottom = (float(noisy) / self.sensitivity for noisy in released)
        share = top + middle + bottom
        planned = factor * share

        def noise(f: Polynomial) -> Spread:
            """1/W is of a part that was planned for; f is so much at y = 1, between, and at y = −1."""
            at_each = f.one + f.x + f.xx, f.one - f.xx, f.one - f.x + f.xx
            return several(inverse * planned * hypot(*at_each))

        mean = Polynomial(one=share, x=(top - bottom) / share, xx=(top - middle + bottom) / share)
        return Moments(mean, noise, uneven, planned)


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
    gap: float | None = None,
    about: str | None = None,
    per_person: str | None = None,
) -> Query[float]:
    """The variance of a column over all people who have not opted out, with no more noise than their mean.

    Args:
        column: a column of numbers.
        bounds: (low, high), public. Values outside count as the nearer bound. Left out: as the table declares
            them (`accord.catalog`).
        step: the values' own resolution (1 for whole numbers), if known; it divides the width.
        missing: what becomes of missing values: see `accord.mean`.
        where, by, keys, membership, at_most, suppress, rest, gap, about: of whom: see `accord.mean`. The gap
            is the total variation of two levels' distributions, between 0 and 1.
        per_person: what a person's rows come to, where they have several: see `accord.mean`.

    >>> variance("income", bounds=(0, 200_000)).label
    'variance of income'
    """
    query = on_grid(Variance, column, bounds, step, missing, per_person)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


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
    gap: float | None = None,
    about: str | None = None,
    per_person: str | None = None,
) -> Query[float]:
    """The standard deviation of a column: the square root of its `variance`.

    >>> std("income", bounds=(0, 200_000)).label
    'standard deviation of income'
    """
    query = on_grid(Std, column, bounds, step, missing, per_person)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


VARIANCE = Statistic("variance", variance, Additive, ("column", "bounds", "step", "missing", "per_person"))
STD = Statistic("std", std, Additive, ("column", "bounds", "step", "missing", "per_person"))
