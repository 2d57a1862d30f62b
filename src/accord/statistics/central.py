"""Intervals of variances, covariances and correlations: from noisy weighted moments to these people's.

With x and y in [−1, 1], every such statistic θ is where the people's mean of a polynomial f_θ is 0:

    mean         x − μ
    variance     (x − μ)² − v
    covariance   (x − μ)(y − ν) − c
    correlation  (x − μ)(y − ν) − r/2·(λ(x − μ)² + (y − ν)²/λ),   λ = σ_y/σ_x: its mean is c − r·σ_x·σ_y

What was released gives the mean of any polynomial, with noise, weighted: off by the noise of f, of which
the scale is known, and by Σ(w − 1/n)·f(x, y). An interval has the θ for which neither is larger than it may
be. It is found in turns: from where θ may lie follows which f it can be, from that how large noise and f can
be, and from these where θ may lie. Both bounds are of f_θ at the truth: no turn adds a probability of error.

Weights     Levels do not go with values, so that who has which values is a random permutation of n people.
            |Σ(w − 1/n)·f| is at most t + √(t² + 2L·Var f·Σd²) but for a probability of 2e^(−L) (Bernstein),
            where t = L/3·max d·range f and d = w − min w, or max w − w. Proof: Σ(w − 1/n)·f = ±Σd·f, as f has
            the mean 0. The values of a random permutation are negatively associated (Joag-Dev and Proschan
            1983, 2.11): as all d ≥ 0, E exp(s·Σd·f) is at most the product of the E exp(s·d_i·f), which is
            where the proof for independent terms begins. No law of large numbers is needed: it holds for
            values of which hardly any differs from the others, where a normal law would not.
            Or it is normal, as for a mean, with the largest variance that f could have: at most 1 of a mean,
            a variance or a covariance, and a step more, as few may carry the weight (spread.py): of f whose
            range is larger than that variance tells, as much as f moves where two people swap. Whichever is
            smaller is taken.
Size        Var f is bounded by the variances: of (x − μ)² it is at most max(x − μ)²·v. So values that vary
            little have short intervals, and nobody must declare how much they vary.
Members     Of a part of the people, neither the number n nor the weights are known, but what was released
            tells the weight W of all members, and nobody has more than the largest charge c. So no w exceeds
            c/W, and Σd² ≤ Σw² ≤ c/W, whoever the members are. Nor is Σd² more than (everyone's weight over
            W)² times that of everyone, of whom the members are some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple, TypeAlias

from accord.statistics.spread import STEP, Spread

Ends: TypeAlias = tuple[float, float]
OneColumn: TypeAlias = "Callable[..., Polynomial]"


class Polynomial(NamedTuple):
    """one + x·x + y·y + …: what is multiplied with each moment."""

    one: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xy: float = 0.0
    xx: float = 0.0
    yy: float = 0.0


def in_x(one: float, slope: float, square: float = 0.0) -> Polynomial:
    """Of x alone."""
    return Polynomial(one=one, x=slope, xx=square)


def in_y(one: float, slope: float, square: float = 0.0) -> Polynomial:
    """Of y alone."""
    return Polynomial(one=one, y=slope, yy=square)


class Size(NamedTuple):
    """Of a polynomial over the people, of whom its mean is 0."""

    variance: float
    """At most,"""
    range: float
    """how far two of its values lie apart, at most,"""
    worst: float
    """and the largest variance that it could have, whatever the values are."""


@dataclass(frozen=True)
class Uneven:
    """How unequal weights are."""

    centred: float
    """Σ(w − 1/n)²."""
    squares: float
    """Σd²: of weights counted from the smallest or from the largest of them."""
    largest: float
    """No weight of one person exceeds it."""

    @property
    def is_even(self) -> bool:
        """Whether all weigh the same, up to the rounding of floats."""
        return self.squares <= 1e-24 * self.largest

    def of_fewer(self, factor: float) -> Uneven:
        """Of members who have so many times less weight than everyone of whom these are."""
        most = factor * self.largest
        centred, squares = (min(max(factor, factor**2) * x, most) for x in (self.centred, self.squares))
        return Uneven(centred, squares, most)

    def times(self, factor: float) -> Uneven:
        """Of weights that are all so many times as large."""
        return Uneven(factor**2 * self.centred, factor**2 * self.squares, factor * self.largest)

    def bound(self, size: Size, alpha: float) -> float:
        """How far Σw·f is off from 0, but for a probability of alpha."""
        t, k = self.parts(size.range, alpha)
        return t + sqrt(t * t + k * size.variance)

    def parts(self, range: float, alpha: float) -> tuple[float, float]:
        """t and k of the bound t + √(t² + k·Var f)."""
        surprise = log(2 / alpha)
        return surprise / 3 * min(self.largest, sqrt(self.squares)) * range, 2 * surprise * self.squares


WEIGHTS = 0.2
"""The part of the probability that an interval is wrong which is for what weights do; the rest, for noise."""


@dataclass(frozen=True)
class Moments:
    """Weighted means of x, y, …, over the people who are there, as they were released."""

    mean: Polynomial
    """Of each moment; of one, what share of everyone is there."""
    noise: Callable[[Polynomial], Spread]
    """Of a polynomial's sum over everyone."""
    uneven: Uneven
    """Of the weights of everyone, or of as large a part as was planned for,"""
    planned: float = 1.0
    """which is this share."""

    def of_present(self, alpha: float) -> Moments | None:
        """For the people who are there, but for a probability of alpha; None: nobody can tell how many."""
        share, noise = self.mean.one, self.noise
        off = self._noise(Polynomial(one=1.0), alpha)
        if share <= off:
            return None
        # sums are divided by the share that was released, weights by the least that it can be
        uneven = self.uneven.of_fewer(self.planned / (share - off)).times(1 + off / share)
        return Moments(self.mean, lambda f: noise(Polynomial(*(part / share for part in f))), uneven)

    def off(self, f: Polynomial, size: Size, alpha: float) -> float:
        """How far the mean of f may be off from 0, but for a probability of alpha."""
        if self.uneven.is_even:
            return self._noise(f, alpha)
        apart = self._noise(f, (1 - WEIGHTS) * alpha) + self.uneven.bound(size, WEIGHTS * alpha)
        return min(apart, self._with_normal(f, size, alpha))

    def _noise(self, f: Polynomial, alpha: float) -> float:
        noise = self.noise(f)
        return noise.laplace * _quantile(alpha) if noise.box is None else noise.half_width(alpha)

    def _with_normal(self, f: Polynomial, size: Size, alpha: float) -> float:
        swap = min(self.uneven.largest, sqrt(self.uneven.squares)) * size.range
        step = (STEP if size.worst >= size.range**2 / 4 else 1.0) * swap
        sampling = sqrt(size.worst * self.uneven.centred)
        return replace(self.noise(f), sampling=sampling).half_width(alpha) + step

    def mean_of(self, released: float, of: OneColumn, alpha: float) -> Ends:
        """Of x or y: `of` is in_x or in_y."""
        low, high = -1.0, 1.0
        for _ in range(TURNS):
            largest = max(abs(low), abs(high))
            off = self.off(of(largest, 1.0), Size(largest_variance((low, high)), 2.0, 1.0), alpha)
            low, high = inside((low, high), (released - off, released + off))
        return low, high

    def means(self, alpha: float) -> tuple[Ends, Ends]:
        """Of x and y, each but for a probability of alpha."""
        return self.mean_of(self.mean.x, in_x, alpha), self.mean_of(self.mean.y, in_y, alpha)

    def variance_of(self, first: float, second: float, mean: Ends, of: OneColumn, alpha: float) -> Ends:
        """Of x or y, from the released means of it and of its square, and from where its mean lies."""
        noisy, off_centre = second - first**2, largest_distance(first, mean) ** 2
        mu, reach = farthest_from(mean) - 1, farthest_from(mean)
        low, high = 0.0, largest_variance(mean)
        for _ in range(TURNS):
            f = max((of(mu**2 - v, 2 * mu, 1.0) for v in (low, high)), key=lambda f: self._noise(f, alpha))
            off = self.off(f, Size(reach**2 * high, reach**2, 1.0), alpha)
            lowest = max(noisy - off, self._least_variance(noisy, f, reach**2, alpha))
            low, high = inside((low, high), (lowest, noisy + off_centre + off))
        return low, high

    def _least_variance(self, noisy: float, f: Polynomial, range: float, alpha: float) -> float:
        """The least v that is not further below than by the noise of f and by weights for this v itself."""
        if self.uneven.is_even:
            return noisy - self._noise(f, alpha)
        least = noisy - self._noise(f, (1 - WEIGHTS) * alpha)
        t, k = self.uneven.parts(range, WEIGHTS * alpha)
        rest = least - t  # v = rest − √(t² + k·range·v)
        if rest <= t:
            return 0.0
        b = 2 * rest + k * range
        return (b - sqrt(b * b - 4 * (rest * rest - t * t))) / 2

    def covariance(self, means: tuple[Ends, Ends], variances: tuple[float, float], alpha: float) -> Ends:
        """`variances`: of x and y, at most."""
        (x, y), (v, w) = means, variances
        noisy = self.mean.xy - self.mean.x * self.mean.y
        off_centre = largest_distance(self.mean.x, x) * largest_distance(self.mean.y, y)
        of_x, of_y = farthest_from(x), farthest_from(y)
        mu, nu = (farthest_from(mean) - 1 for mean in means)
        size = Size(min(v * of_y**2, of_x**2 * w), 2 * of_x * of_y, 1.0)
        low, high = -sqrt(v * w), sqrt(v * w)
        for _ in range(TURNS):
            one = max(abs(a * b - c) for a in x for b in y for c in (low, high))
            off = off_centre + self.off(Polynomial(one, nu, mu, 1.0), size, alpha)
            low, high = inside((low, high), (noisy - off, noisy + off))
        return low, high

    def correlation(self, means: tuple[Ends, Ends], variances: tuple[Ends, Ends], alpha: float) -> Ends:
        """`variances`: where those of x and y lie."""
        (x, y), (v, w) = means, variances
        m = self.mean
        dx, dy = largest_distance(m.x, x), largest_distance(m.y, y)
        covariance, of_x, of_y = m.xy - m.x * m.y, m.xx - m.x**2, m.yy - m.y**2
        if min(v[0], w[0], of_x, of_y) <= 0:
            return -1.0, 1.0
        ratios = sqrt(w[0] / v[1]), sqrt(w[1] / v[0])  # where λ lies
        product = sqrt(v[1] * w[1])
        # (λa + b/λ)/2 is convex in λ: the largest is at an end, and none is below √(a·b)
        spreads = [sqrt(of_x * of_y), *((lam * of_x + of_y / lam) / 2 for lam in ratios)]
        mu, nu = (farthest_from(mean) - 1 for mean in means)
        reach, (low, high) = (farthest_from(x), farthest_from(y)), (-1.0, 1.0)
        for _ in range(TURNS):
            r = max(abs(low), abs(high))
            half = [r / 2 * max(ratios), r / 2 / min(ratios)]  # of the squares of x and y
            f = Polynomial(
                mu * nu + half[0] * mu**2 + half[1] * nu**2,
                nu + 2 * half[0] * mu,
                mu + 2 * half[1] * nu,
                1.0,
                *half,
            )
            most = (1 + r) / 2 * max(lam * reach[0] ** 2 + reach[1] ** 2 / lam for lam in ratios)
            off = self.off(f, Size(most * (1 + r) * product, 2 * most, most**2), alpha)
            off += dx * dy + half[0] * dx**2 + half[1] * dy**2
            quotients = [(covariance + s * off) / d for s in (-1, 1) for d in spreads]
            low, high = inside((low, high), (min(quotients), max(quotients)))
        return low, high


TURNS = 3
"""How often an interval is found from the last one, which holds it: any number of turns will do."""


def several(scale: float) -> Spread:
    """A sum of independent Laplace noises, with the variance of one of this scale."""
    return Spread(laplace=scale, several=True)


@lru_cache(maxsize=256)  # thousands of groups have the same few
def _quantile(alpha: float) -> float:
    """The half width of `several(1)`."""
    return several(1.0).half_width(alpha)


def inside(ends: Ends, others: Ends) -> Ends:
    """Where both lie; where they do not meet, the point of the first that is nearest."""
    low, high = (min(max(end, ends[0]), ends[1]) for end in others)
    return low, high


def largest_variance(mean: Ends) -> float:
    """Of numbers in [−1, 1] with a mean between these ends."""
    return 1.0 if mean[0] <= 0 <= mean[1] else 1 - min(abs(end) for end in mean) ** 2


def largest_distance(point: float, ends: Ends) -> float:
    """Of a point from what lies between these ends."""
    return max(abs(point - end) for end in ends)


def farthest_from(mean: Ends) -> float:
    """How far a number in [−1, 1] can lie from a mean between these ends."""
    return 1 + max(abs(end) for end in mean)
