"""The covariance of two columns of numbers.

Both are coded as whole numbers X, Y in −Q … Q between their bounds (encoding.py); x = X/Q and y = Y/Q lie in
[−1, 1], and the covariance is (Δx/2)·(Δy/2)·(E[xy] − E[x]·E[y]).

Under replace     Σc·QX, Σc·QY and Σc·XY. Where one coordinate changes from z to z′, u = (z + z′)/2 and
                  v = (z − z′)/2 have |u| + |v| ≤ 1. With a and b for |v| of x and of y, one person moves the
                  three, in units of Q², by at most
                      2a + 2b + 2(a(1 − b) + b(1 − a)) = 4 − 4(1 − a)(1 − b) ≤ 4;
                  x: 1 → −1 attains it. (A mean alone: 2.)
Under add-remove  Σc·(Q ± X)(Q ± Y), the four of them: all are at least 0, and one person adds 4Q² in all,
                  whatever X and Y are. They tell how many there are, both means and E[xy]. Private groups,
                  `where=` and whoever has both values have these, at half the charge.
Error             Of one person: with m = E[x]·E[y], c the covariance and k² = (1 − E[x]²)(1 − E[y]²), the
                  variance of z = (x − E[x])(y − E[y]) is at most k² + 4mc − c², because (x − μ)² is at most
                  1 + μ² − 2μx. By |c| ≤ k ≤ 1 − |m| this is at most 1.
                  Of the noise: that of E[xy] − E[x]·E[y] has at most 1 + E[x]² + E[y]² ≤ 3 times the variance
                  of one of three sums; of four sums, Σ((s − E[x])(t − E[y]) − c)² ≤ 16 times, over s, t = ±1.
                  Both bounds are attained where everyone is at one corner.
Interval          Of all covariances those that could have given what was released, by the noise of
                  (x − μ)(y − ν) − c and by what unequal weights do to it (central.py). Rounding moves x and y
                  by at most r each, and so the covariance by (√v + √w)·r + r² for their variances v and w.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import hypot, sqrt
from typing import Any, ClassVar, TypeVar

from accord.errors import QueryError, did_you_mean
from accord.relation import Relation
from accord.statistics.central import Moments as CentralMoments
from accord.statistics.central import Polynomial, Uneven, largest_variance, several
from accord.statistics.encoding import Codes, Numeric, Product, Q
from accord.statistics.gap import DISTRIBUTIONS, GapScale, WithGap
from accord.statistics.grid import MISSING, NONE_MISSING
from accord.statistics.groups import asked_by_group, part_of
from accord.statistics.keys import By, Keys, RestLabels
from accord.statistics.query import Answer, Ends, Interval, Query, column_name, number_text
from accord.statistics.regression import read_numeric
from accord.statistics.spread import Spread
from accord.statistics.statistic import Statistic
from accord.statistics.target import factor_for
from accord.statistics.target_sums import Moments

X, Y, XY = Product("x", (-1,)), Product("y", (0,)), Product("xy", (-1, 0))


@dataclass(frozen=True)
class Covariance(WithGap):
    """How two columns vary together."""

    statistic = "covariance"
    products: ClassVar[tuple[Product, ...]] = (X, Y, XY)

    x: Numeric
    y: Numeric
    missing: str = "exclude"
    """"exclude": whoever lacks one of them is left out; "none": nobody does; "middle": counts so."""

    @property
    def label(self) -> str:
        return f"{self.statistic} of {self.x.column} and {self.y.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.x.column, self.y.column

    @property
    def encoding(self) -> Codes:
        return Codes(self.x, (self.y,), self.excludes_missing, self.products)

    @property
    def rows_come_to(self) -> str:
        return "and counts with the mean of their rows, of each column"

    @property
    def excludes_missing(self) -> bool:
        return self.missing == "exclude"

    def with_all_values(self, columns: Collection[str] | None = None) -> Covariance | None:
        if not self.excludes_missing or (columns is not None and not set(self.columns) <= set(columns)):
            return None
        return replace(self, missing="none")

    @property
    def largest(self) -> float:
        """The largest covariance that the bounds allow: half of the people at either of two corners."""
        return float((self.x.high - self.x.low) * (self.y.high - self.y.low)) / 4

    def under(self, relation: Relation, about_members: bool = False) -> Moments | None:
        if about_members:
            return None
        if relation.people_are_public:
            return CovarianceTarget(self, relation)
        return PresentCovariance(self, relation)

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: if the mean products of any two levels differ by at most D, each counted from "
            "the common means, and their means by at most E and F, the covariance behind this answer is off "
            "by at most κ·D + κ²·E·F beyond the interval."
        )

    def describe(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "columns": list(self.columns),
            "bounds": {f.column: [number_text(f.low), number_text(f.high)] for f in (self.x, self.y)},
            "missing": self.missing,
            **self.described_gap(),
        }

    @property
    def gap_scale(self) -> GapScale | None:
        return DISTRIBUTIONS

    def assumptions(self) -> list[str]:
        of_bounds = [
            f"{f.column} lies in [{number_text(f.low)}, {number_text(f.high)}]; "
            "what lies outside counts as the nearer bound"
            for f in (self.x, self.y)
        ]
        return [
            *of_bounds,
            f"values are rounded to {2 * Q + 1:,} steps between their bounds",
            self._about_missing(),
            self.about_error(),
        ]

    def about_error(self) -> str:
        """For which people the error is predicted, in a sentence."""
        return "the predicted error is for the hardest values that the bounds allow"

    def _about_missing(self) -> str:
        if self.excludes_missing:
            return (
                "people who lack a value in one of these columns are left out; "
                "how many is private, and errors are predicted as if none were"
            )
        return NONE_MISSING if self.missing == "none" else "a missing value counts as the middle"


# ---- moments -----------------------------------------------------------------------------------------------

_FAR = 10**60  # areas of bounds are reckoned with up to this
ROUNDING = 1 / Q
"""How far a code may lie from x: half a step of a row, and half a step of the mean of a person's rows."""


@dataclass(frozen=True)
class CovarianceTarget(Moments):
    """Of everyone, whose number is public."""

    query: Covariance

    @property
    def released(self) -> int:
        return len(self.query.products)

    @property
    def noises_each(self) -> int:
        return 1 if self.relation.people_are_public else self.released

    @property
    def sensitivity(self) -> int:
        return 4 * Q * Q

    def sums(self, columns: Sequence[int], everyone: int) -> list[int]:
        *products, _ = columns  # the last is of people who are there
        return products

    @property
    def variance(self) -> float:
        return self.query.largest**2

    @property
    def noise_variance(self) -> float:
        return 3 * 2 * 4**2 * self.query.largest**2

    @property
    def gap_effects(self) -> tuple[float, float]:
        most = 4 * self.query.largest  # values of (x − μ)(y − ν) lie 4 apart at most
        return most**2, most

    @property
    def midpoint_error(self) -> float:
        return self.query.largest**2

    def middle(self, people: int) -> Answer:
        return 0.0

    def possible(self, people: int) -> Interval:
        return -self.query.largest, self.query.largest

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        x, y, xy = (moment / (Q * Q) for moment in released)
        return self._of(float(xy - x * y))

    def _of(self, covariance: float) -> float:
        """The answer, from the covariance of x and y in [−1, 1]."""
        return self.query.largest * min(1.0, max(-1.0, covariance))

    def interval(
        self,
        value: Answer,
        released: Sequence[Fraction],
        spread: Spread,
        alpha: float,
        factor: float = 1.0,
        shift: Ends = (0.0, 0.0),
    ) -> Interval:
        if self._share(released) <= 0:
            return self.possible(1)
        moments = self.released_moments(released, spread, factor).of_present(0.05 * alpha)
        if moments is None:
            return self.possible(1)
        low, high = self.ends(moments, 0.95 * alpha)
        most = self.query.largest
        return max(-most, low - spread.bias), min(most, high + spread.bias)

    def ends(self, moments: CentralMoments, alpha: float) -> Ends:
        """The least and the largest answer, but for a probability of alpha."""
        x, y = moments.means(0.05 * alpha)
        v, w = largest_variance(x), largest_variance(y)
        low, high = moments.covariance((x, y), (v, w), 0.9 * alpha)
        rounding = (sqrt(v) + sqrt(w) + ROUNDING) * ROUNDING
        return self._of(low - rounding), self._of(high + rounding)

    def _share(self, released: Sequence[Fraction]) -> Fraction:
        """How many are there, as a share of everyone."""
        return Fraction(1)

    def released_moments(self, released: Sequence[Fraction], spread: Spread, factor: float) -> CentralMoments:
        uneven, inverse = self.error_parts(spread)
        x, y, xy = (float(moment) / (Q * Q) for moment in released)
        return CentralMoments(
            Polynomial(1.0, x, y, xy), lambda f: several(4 * inverse * hypot(f.x, f.y, f.xy)), uneven
        )

    def error_parts(self, spread: Spread) -> tuple[Uneven, float]:
        """How unequal weights are, and 1/W, which an error is made of."""
        parts = spread.sampling, spread.from_end, spread.ceiling
        uneven = Uneven(*(part**2 / self.max_variance for part in parts))
        return uneven, spread.laplace / sqrt(self.noise_variance / 2)


@dataclass(frozen=True)
class PresentCovariance(CovarianceTarget):
    """Of the people who are there."""

    @property
    def released(self) -> int:
        return 4

    def sums(self, columns: Sequence[int], everyone: int) -> list[int]:
        x, y, xy, members = columns
        return corners(x, y, xy, members)

    @property
    def tells_size(self) -> bool:
        return True

    @property
    def noise_variance(self) -> float:
        return 16 * 2 * self.query.largest**2

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        present, x, y, xy = from_corners(released)
        if present <= 0:  # hardly anyone is there
            return self.middle(people)
        return self._of(float(xy / present - x * y / present**2))

    def error_factor(self, released: Sequence[Fraction], groups: int = 1) -> float | None:
        return factor_for(float(sum(released) / self.sensitivity), groups)

    def _share(self, released: Sequence[Fraction]) -> Fraction:
        return sum(released, Fraction(0)) / self.sensitivity

    def released_moments(self, released: Sequence[Fraction], spread: Spread, factor: float) -> CentralMoments:
        uneven, inverse = self.error_parts(spread)
        share, *sums = from_corners([float(noisy) / self.sensitivity for noisy in released])
        planned = factor * share
        # Σ((one + s·x + t·y + st·xy)²) over the corners s, t = ±1
        return CentralMoments(
            Polynomial(share, *(total / share for total in sums)),
            lambda f: several(2 * inverse * planned * hypot(f.one, f.x, f.y, f.xy)),
            uneven,
            planned,
        )


N = TypeVar("N", float, Fraction)


def corners(x: int, y: int, xy: int, members: int) -> list[int]:
    """Σ(Q ± X)(Q ± Y), from Σ QX, Σ QY, Σ XY and the number of people: of (+, +), (+, −), (−, +), (−, −)."""
    return [Q * Q * members + s * x + t * y + s * t * xy for s, t in product((1, -1), repeat=2)]


def from_corners(parts: Sequence[N]) -> tuple[N, N, N, N]:
    """Σ1, Σx, Σy and Σxy, from the sums of `corners` over 4Q²."""
    both, only_x, only_y, neither = parts
    return (
        both + only_x + only_y + neither,
        both + only_x - only_y - neither,
        both - only_x + only_y - neither,
        both - only_x - only_y + neither,
    )


# ---- the question ------------------------------------------------------------------------------------------

_Covariance = TypeVar("_Covariance", bound=Covariance)


def of_two(
    kind: type[_Covariance], column: str, other: str, bounds: Mapping[str, Any] | None, missing: Any
) -> _Covariance:
    """A question of this kind about two columns, with these and their bounds checked."""
    names = column_name(column), column_name(other)
    if names[0] == names[1]:
        raise QueryError(
            f"a {kind.statistic} is of two columns, and both are {column!r}. Name two, or ask for "
            f"accord.variance({column!r})."
        )
    if bounds is not None and not isinstance(bounds, Mapping):
        raise QueryError(
            f"bounds= of a {kind.statistic} is a dict of both columns' public bounds, "
            f"such as {{{column!r}: (0, 1), {other!r}: (0, 100)}}."
        )
    given = dict(bounds or {})
    for name in given:
        if name not in names:
            raise QueryError(
                f"bounds are given for {name!r}, which is not in the {kind.statistic}: "
                f"{did_you_mean(name, names)}"
            )
    for name in names:
        if name not in given:
            raise QueryError(
                f"{kind.statistic}({column!r}, {other!r}) needs bounds of {name!r}, from public knowledge, "
                f"never from the data: bounds={{{name!r}: (0, 100), …}}; a table that is described in "
                "accord.toml may declare them."
            )
    if not isinstance(missing, str) or missing not in MISSING:
        raise QueryError(
            f"missing={missing!r} is not offered. Of a {kind.statistic} it is 'exclude' (whoever lacks a "
            "value is left out), 'none' (no value is missing), or 'middle' (of the bounds)."
        )
    x, y = (read_numeric(name, given[name]) for name in names)
    area = (x.high - x.low) * (y.high - y.low)
    if not Fraction(1, _FAR) < area < _FAR:
        raise QueryError(
            f"the bounds of {column!r} and {other!r} have widths whose product is {float(area):.3g}, with "
            "which nothing can be reckoned. Scale the columns."
        )
    return kind(x, y, missing)


@asked_by_group
def covariance(
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
    """The covariance of two columns over all people who have not opted out.

    Args:
        column, other: two columns of numbers. Where people have several rows, each counts with the mean of
            their rows.
        bounds: {column: (low, high)} of both, public. Values outside count as the nearer bound. What is left
            out is as the table declares it (`accord.catalog`).
        missing: "exclude": whoever lacks one of the two values is left out, and how many they are stays
            private. "none": no value is missing, as is publicly known; "middle": a missing value counts as
            the middle of its bounds.
        where, by, keys, membership, at_most, suppress, rest, gap, about: of whom: see `accord.mean`. The gap
            is the total variation of two levels' distributions of both columns, between 0 and 1.

    Raises:
        QueryError: bounds that are reversed, equal or missing, and the like.

    >>> covariance("age", "income", bounds={"age": (18, 100), "income": (0, 200_000)}).label
    'covariance of age and income'
    """
    query = of_two(Covariance, column, other, bounds, missing)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


COVARIANCE = Statistic("covariance", covariance, Moments, ("column", "other", "bounds", "missing"))
