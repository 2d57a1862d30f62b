"""The correlation of two columns of numbers: their covariance, over their standard deviations.

With X, Y, x, y and Q as in covariance.py, it is (E[xy] − E[x]·E[y])/√(v·w), for v = E[x²] − E[x]² and
likewise w of y.

Under replace     Σc·2QX, Σc·2QY, Σc·2XY, Σc·X² and Σc·Y². With a and b as in covariance.py, one person moves
                  the five, in units of 2Q², by at most
                      4(a + b) − 4ab + 2a(1 − a) + 2b(1 − b) = 6(a + b) − 2(a + b)² ≤ 9/2;
                  x: 1 → −1 with y: 1 → 0 attains it. So both squares cost an eighth more noise.
Under add-remove  Σc·(Q ± X)(Q ± Y), the four of them, Σc·2X² and Σc·2Y²: all are at least 0, and one person
                  adds at most 4Q² + 2Q² + 2Q². Private groups, `where=` and whoever has both values have
                  these, at half the charge.
Error             Where both means are in the middle and both variances ¼, with the correlation r and p, q for
                  x and y over their standard deviations, which are at most 2: one person's
                  pq − r(p² + q²)/2 has a variance of at most 4(1 − r²) ≤ 4, because |pq| ≤ (p² + q²)/2 ≤ 4.
                  The noise is that of E[xy] − r(E[x²] + E[y²])/2, over ¼.
Interval          As in covariance.py, of (x − μ)(y − ν) − r/2·(λ(x − μ)² + (y − ν)²/λ), with the variances
                  of both columns from the sums of their squares. Where one of them may be 0, nothing can be
                  told: it is −1 … 1. Rounding moves x by at most d, and so what is left of it over its
                  length by 2d/(σ + σ′) ≤ d/(σ − d/2): the correlation by that of x and that of y.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot, sqrt
from typing import ClassVar

from accord.relation import Relation
from accord.statistics.central import Moments as CentralMoments
from accord.statistics.central import Polynomial, in_x, in_y, several
from accord.statistics.covariance import (
    ROUNDING,
    XY,
    Covariance,
    CovarianceTarget,
    X,
    Y,
    corners,
    from_corners,
    of_two,
)
from accord.statistics.encoding import Product, Q
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Ends, Query
from accord.statistics.spread import Spread
from accord.statistics.statistic import Statistic
from accord.statistics.target import factor_for
from accord.statistics.target_sums import Moments

XX, YY = Product("square", (-1, -1)), Product("square", (0, 0))


@dataclass(frozen=True)
class Correlation(Covariance):
    """How two columns vary together, from −1 to 1."""

    statistic = "correlation"
    products: ClassVar[tuple[Product, ...]] = (X, Y, XY, XX, YY)

    @property
    def largest(self) -> float:
        return 1.0

    def under(self, relation: Relation, about_members: bool = False) -> Moments | None:
        if about_members:
            return None
        if relation.people_are_public:
            return CorrelationTarget(self, relation)
        return PresentCorrelation(self, relation)

    @property
    def gap_scale(self) -> None:
        return None

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: how unevenly people are weighed; where the correlation differs between "
            "levels, it is one of those who weigh more."
        )

    def about_error(self) -> str:
        quarters = [float(f.high - f.low) / 4 for f in (self.x, self.y)]
        return (
            f"the predicted error is for standard deviations of {quarters[0]:g} and {quarters[1]:g}, about "
            "the middle of the bounds; of smaller ones it is larger. The interval holds for any, and is "
            "−1 … 1 where a column hardly varies: of a constant one nothing can be told"
        )


def _correlation(*moments: Fraction) -> float:
    """From noisy moments, which may be of no values at all; 0 where a column does not vary."""
    x, y, xy, xx, yy = moments
    spread = sqrt(max(0.0, float(xx - x * x))) * sqrt(max(0.0, float(yy - y * y)))
    covariance = float(xy - x * y)
    if spread <= abs(covariance):
        return 0.0 if spread == 0 else 1.0 if covariance > 0 else -1.0
    return covariance / spread


@dataclass(frozen=True)
class CorrelationTarget(CovarianceTarget):
    """Of everyone, whose number is public."""

    query: Correlation

    @property
    def sensitivity(self) -> int:
        return 9 * Q * Q

    def sums(self, columns: Sequence[int], everyone: int) -> list[int]:
        x, y, xy, xx, yy, _ = columns  # the last is of people who are there
        return [2 * x, 2 * y, 2 * xy, xx, yy]

    @property
    def variance(self) -> float:
        return 4.0

    @property
    def noise_variance(self) -> float:
        of_product, of_square = 2 * 4.5**2, 2 * 9.0**2
        return (of_product + 2 * of_square / 4) * 4**2

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        moments = self._moments(released)
        return self.middle(people) if moments is None else _correlation(*moments)

    def _moments(self, released: Sequence[Fraction]) -> tuple[Fraction, ...] | None:
        """Means of x, y, xy, x² and y², with noise; None: hardly anyone is there."""
        x, y, xy = (moment / (2 * Q * Q) for moment in released[:3])
        xx, yy = (moment / (Q * Q) for moment in released[3:])
        return x, y, xy, xx, yy

    @property
    def assumes_spread(self) -> bool:
        return True

    def spread_factor(self, released: Sequence[Fraction]) -> float | None:
        """The errors of a covariance and of two variances, each divided by what varies less than assumed."""
        moments = self._moments(released)
        if moments is None:
            return None
        x, y, _, xx, yy = moments
        least = min(xx - x * x, yy - y * y)
        return max(1.0, 0.25 / float(least)) if least > 0 else None  # ¼: half of the way to either bound

    def ends(self, moments: CentralMoments, alpha: float) -> Ends:
        means, m = moments.means(0.04 * alpha), moments.mean
        v = moments.variance_of(m.x, m.xx, means[0], in_x, 0.08 * alpha)
        w = moments.variance_of(m.y, m.yy, means[1], in_y, 0.08 * alpha)
        low, high = moments.correlation(means, (v, w), 0.76 * alpha)
        stds = [sqrt(least) - ROUNDING / 2 for least, _ in (v, w)]
        if min(stds) <= 0:
            return -1.0, 1.0
        rounding = sum(ROUNDING / std for std in stds)
        return max(-1.0, low - rounding), min(1.0, high + rounding)

    def released_moments(self, released: Sequence[Fraction], spread: Spread, factor: float) -> CentralMoments:
        uneven, inverse = self.error_parts(spread)
        moments = self._moments(released)
        assert moments is not None
        return CentralMoments(
            Polynomial(1.0, *(float(moment) for moment in moments)),
            lambda f: several(4.5 * inverse * hypot(f.x, f.y, f.xy, 2 * f.xx, 2 * f.yy)),
            uneven,
        )


@dataclass(frozen=True)
class PresentCorrelation(CorrelationTarget):
    """Of the people who are there."""

    @property
    def released(self) -> int:
        return 6

    @property
    def sensitivity(self) -> int:
        return 8 * Q * Q

    def sums(self, columns: Sequence[int], everyone: int) -> list[int]:
        x, y, xy, xx, yy, members = columns
        return [*corners(x, y, xy, members), 2 * xx, 2 * yy]

    @property
    def tells_size(self) -> bool:
        return True

    @property
    def noise_variance(self) -> float:
        of_corner, of_square = 2 * 2.0**2, 2 * 4.0**2
        return (4 * of_corner + 2 * of_square / 4) * 4**2

    def _sums(self, released: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """Σ1, Σx, Σy, Σxy, Σx² and Σy², as means over everyone."""
        parts = [noisy / (4 * Q * Q) for noisy in released]
        return *from_corners(parts[:4]), 2 * parts[4], 2 * parts[5]

    def _moments(self, released: Sequence[Fraction]) -> tuple[Fraction, ...] | None:
        present, *sums = self._sums(released)
        return tuple(total / present for total in sums) if present > 0 else None

    def error_factor(self, released: Sequence[Fraction], groups: int = 1) -> float | None:
        return factor_for(float(self._sums(released)[0]), groups)

    def _share(self, released: Sequence[Fraction]) -> Fraction:
        return self._sums(released)[0]

    def released_moments(self, released: Sequence[Fraction], spread: Spread, factor: float) -> CentralMoments:
        uneven, inverse = self.error_parts(spread)
        share, *sums = (float(total) for total in self._sums(released))
        planned = factor * share
        # four noises of a corner, as in covariance.py, have the variance of one of a square
        return CentralMoments(
            Polynomial(share, *(total / share for total in sums)),
            lambda f: several(4 * inverse * planned * hypot(*f)),
            uneven,
            planned,
        )


@asked_by_group
def correlation(
    column: str,
    other: str,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    missing: str = "exclude",
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
) -> Query[float]:
    """The correlation of two columns (Pearson's), from −1 to 1, over all people who have not opted out.

    Args are those of `accord.covariance`. Of a column that hardly varies nothing can be told: the interval is
    then −1 … 1.

    >>> correlation("age", "income", bounds={"age": (18, 100), "income": (0, 200_000)}).label
    'correlation of age and income'
    """
    query = of_two(Correlation, column, other, bounds, missing)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


CORRELATION = Statistic("correlation", correlation, Moments, ("column", "other", "bounds", "missing"))
