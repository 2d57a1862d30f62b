"""How far an answer may be off: a normal error and a noise together, Laplace or of a box.

The normal error is what unequal weights do, Σ(w − 1/n)x for values x that are dealt out to people at random.
Where few people carry the weight that is no normal law: of four people of whom two count, the heavy two have
both ones with the probability 1/6. Like the normal law of a whole number, it needs half a step more: the sum
moves by (max w − min w)·range where two people swap their values, and

    |Σ(w − 1/n)x| is no more often large than |N(0, σ²)| + STEP·(max w − min w)·range,

σ being the largest that values with this range can have. There is no proof of it: ½ is what the lattice of
two levels suggests, and 0.5125 the most that was needed in every case of two values and two levels (of five
ratios) of 2 to 40 people, some of 60 to 500, and in a search over weights and values of 2 to 7 people
(tests/statistical/test_few_people.py tries most of it). An answer is never further off than the weights that
are too large can move it, which bounds it, too.
Where it holds without noise, it holds with any symmetric noise with one peak. Of many people of whom none
weighs much the step is small against σ: 1/√n of it or so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import erfc, exp, inf, isinf, log, pi, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.statistics.box import Share


STEP = 0.515
"""How much of a swap of two people's values is added to a normal error."""


@dataclass(frozen=True)
class Spread:
    """A normal error and a noise, in the answer's units."""

    sampling: float = 0.0
    """Standard deviation, about these people, of what the weights do."""
    laplace: float = 0.0
    """Scale of the Laplace noise (of one with the same variance, if there are several)."""
    several: bool = False
    """Whether the noise is a sum of several independent ones."""
    extra: float = 0.0
    """What rounding adds, and of a choice the number of points, so that it holds whatever the values are."""
    from_end: float = inf
    """`sampling` with weights counted from the smallest, or the largest, in the place of 1/n (central.py),"""
    ceiling: float = inf
    """and what either is at most, whoever is there: as if the sum of squares were the largest weight."""
    step: float = 0.0
    """What is added to the normal error, because few people may carry the weight (`STEP`),"""
    most: float = inf
    """and what weights can do at most, where it is public who is there."""
    bias: float = 0.0
    """How far off it may be besides, because levels go with values, as far as that is declared."""
    box: Share | None = None
    """Instead of the Laplace noise: what it has of a noise that other questions share (box.py)."""

    @property
    def without_weights(self) -> Spread:
        """The noise alone."""
        return replace(self, sampling=0.0, step=0.0, bias=0.0)

    def half_width(self, alpha: float, factor: float = 1.0) -> float:
        """How far the answer is off at most, but for a probability of alpha.

        `factor`: how many times the noise is as predicted, because so many times fewer people are there. Of
        more people (a factor below 1) the sampling error falls by the square root alone.
        """
        sampling = min(max(factor, sqrt(factor)) * self.sampling, sqrt(factor) * self.ceiling)
        half = self._half_width(sampling, alpha, factor) + factor * self.step
        if self.step and self.most < half:
            half = min(half, self._half_width(0.0, alpha, factor) + self.most)
        return half + self.extra

    def _half_width(self, sampling: float, alpha: float, factor: float) -> float:
        laplace = factor * self.laplace
        if self.box is not None:
            from accord.statistics import box

            return box.half_width(sampling, (), (self.box.times(factor),), alpha) + self.bias
        half = half_width(sampling, laplace, alpha, self.bias)
        if self.several:  # lies between the Laplace and the normal law of the same variance
            half = max(half, half_width(sqrt(sampling**2 + 2 * laplace**2), 0.0, alpha, self.bias))
        return half


@lru_cache(maxsize=1024)  # thousands of groups may have one error
def half_width(s: float, b: float, alpha: float, bias: float = 0.0) -> float:
    """h with P(|N(0, s²) + Lap(b) + bias| > h) = alpha.

    Of a smaller bias, to either side, it is less.

    >>> round(half_width(1, 0, 0.05), 4), round(half_width(0, 1, 0.05), 4)
    (1.96, 2.9957)
    >>> round(half_width(1, 0, 0.05, bias=3), 4) == round(3 + 1.6449, 4)
    True
    """
    if bias:
        return _biased_half_width(s, b, alpha, bias)
    if s <= 1e-12 * b:
        return b * log(1 / alpha)
    high = b * log(2 / alpha) + 40 * s
    low = 0.0
    for _ in range(200):  # bisection: the tail falls in h
        h = (low + high) / 2
        low, high = (h, high) if tail(h, s, b) > alpha else (low, h)
        if high - low <= 1e-13 * high:
            break
    return high


def _biased_half_width(s: float, b: float, alpha: float, bias: float) -> float:
    """h with P(X > h − bias) + P(X > h + bias) = alpha."""
    high = bias + half_width(s, b, alpha)
    low = 0.0
    while high - low > 1e-13 * high:  # bisection: the tails fall in h
        h = (low + high) / 2
        if h in (low, high):
            break
        low, high = (h, high) if _above(h - bias, s, b) + _above(h + bias, s, b) > alpha else (low, h)
    return high


def _above(x: float, s: float, b: float) -> float:
    """P(X > x) of X = N(0, s²) + Lap(b)."""
    if s <= 1e-12 * b or (s == 0 and b == 0):
        beyond = exp(-abs(x) / b) if b else float(x == 0)
    else:
        beyond = tail(abs(x), s, b)
    return beyond / 2 if x >= 0 else 1 - beyond / 2


def tail(h: float, s: float, b: float) -> float:
    """P(|N(0, s²) + Lap(b)| > h) for s > 0.

    2Q(h/s) + e^{s²/2b²}[e^{−h/b}Φ(h/s − s/b) − e^{h/b}Φ(−h/s − s/b)]
    """
    u = h / s
    normal = erfc(u / sqrt(2))
    if b == 0 or isinf(s / b):
        return normal
    v = s / b
    if u >= v:
        outer = exp(v * (v / 2 - u)) * erfc((v - u) / sqrt(2)) / 2
    else:
        outer = exp(-u * u / 2) * _erfcx((v - u) / sqrt(2)) / 2
    inner = exp(-u * u / 2) * _erfcx((u + v) / sqrt(2)) / 2
    return normal + outer - inner


def _erfcx(z: float) -> float:
    """e^{z²}·erfc(z) for z ≥ 0, without overflow."""
    if z < 20:
        return exp(z * z) * erfc(z)
    w = 1 / (2 * z * z)
    return (1 - w * (1 - 3 * w * (1 - 5 * w))) / (z * sqrt(pi)) if z < inf else 0.0
