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
Interval          As in covariance.py, with two more moments: the largest covariance that the moments can
                  have, over the smallest standard deviations, and the other way round. Where one of them may
                  be 0, and the covariance too, nothing can be told: it is −1 … 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

from accord.relation import Relation
from accord.statistics.covariance import (
    ROUNDING,
    XY,
    Box,
    Covariance,
    CovarianceTarget,
    X,
    Y,
    around,
    corners,
    from_corners,
    of_two,
    ratio,
)
from accord.statistics.encoding import Product, Q
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Ends, Query
from accord.statistics.spread import Spread
from accord.statistics.statistic import Statistic
from accord.statistics.target import Moments, factor_for

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


@dataclass(frozen=True)
class FullBox(Box):
    """With the moments of the squares."""

    xx: Ends
    yy: Ends

    def correlation(self) -> Ends:
        """The least and the largest that such moments can have."""
        low, high = self.covariance()
        spreads = [
            sqrt(a) * sqrt(b)
            for a, b in zip(_variance(self.x, self.xx), _variance(self.y, self.yy), strict=True)
        ]
        return -_largest(-low, spreads), _largest(high, spreads)


def _variance(mean: Ends, square: Ends) -> Ends:
    """The least and the largest variance for a mean and a mean square between these ends."""
    farthest = max(abs(end) for end in mean)
    nearest = 0.0 if mean[0] <= 0 <= mean[1] else min(abs(end) for end in mean)
    return max(0.0, square[0] - farthest**2), max(0.0, square[1] - nearest**2)


def _largest(covariance: float, spreads: Sequence[float]) -> float:
    """The largest correlation for at most this covariance, and standard deviations with such a product."""
    spread = spreads[0] if covariance > 0 else spreads[1]
    if spread <= abs(covariance):
        return 1.0 if covariance > 0 or spread == 0 else -1.0
    return covariance / spread


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

    def ends(self, box: Box) -> Ends:
        assert isinstance(box, FullBox)
        return box.correlation()

    def box(self, released: Sequence[Fraction], spread: Spread, alpha: float, factor: float) -> Box | None:
        x, y, xy = (float(moment) / (2 * Q * Q) for moment in released[:3])
        xx, yy = (float(moment) / (Q * Q) for moment in released[3:])
        sampling, inverse = self.error_parts(spread)
        noise = 4.5 * inverse
        half, product_half, square_half = (
            part.half_width(alpha / 5, factor)
            for part in (
                Spread(sampling, noise, spread.several, ROUNDING),
                Spread(sampling, noise, spread.several, 2 * ROUNDING),
                Spread(sampling / 2, 2 * noise, spread.several, 2 * ROUNDING),
            )
        )
        squares = (around(square, square_half, 0.0) for square in (xx, yy))
        return FullBox(around(x, half), around(y, half), around(xy, product_half), *squares)


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

    def box(self, released: Sequence[Fraction], spread: Spread, alpha: float, factor: float) -> Box | None:
        sampling, inverse = self.error_parts(spread)
        present, x, y, xy, xx, yy = (float(total) for total in self._sums(released))
        # four noises of a corner, or one of a square, have the same variance
        noise = Spread(0.0, 4 * factor * present * inverse, several=True).half_width(alpha / 12)
        if present <= noise:
            return None
        d, people = Spread(sampling).half_width(alpha / 10, factor), (present - noise, present + noise)
        return FullBox(
            ratio(x, noise, people, d + ROUNDING),
            ratio(y, noise, people, d + ROUNDING),
            ratio(xy, noise, people, d + 2 * ROUNDING),
            ratio(xx, noise, people, d / 2 + 2 * ROUNDING, 0.0),
            ratio(yy, noise, people, d / 2 + 2 * ROUNDING, 0.0),
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
) -> Query[float]:
    """The correlation of two columns (Pearson's), from −1 to 1, over all people who have not opted out.

    Args are those of `accord.covariance`. Of a column that hardly varies nothing can be told: the interval is
    then −1 … 1.

    >>> correlation("age", "income", bounds={"age": (18, 100), "income": (0, 200_000)}).label
    'correlation of age and income'
    """
    query = of_two(Correlation, column, other, bounds, missing)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest)


CORRELATION = Statistic("correlation", correlation, Moments, ("column", "other", "bounds", "missing"))
