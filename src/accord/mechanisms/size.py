"""Interval and error of quantiles whose number of people is private, from a noisy size of them.

With the chosen points a mechanism releases W + Z: the weight W = Σc of those whom the answer is about, and
Laplace noise Z (rank.py says why nobody loses more than their charge). What follows is post-processing.

    p, J, K       one of the J quantiles that are asked for, among K points; where points count several times,
                  before the data is seen, K is how many they are then (statistics/rounding.py)
    b, s          the scale of its choice, and that of Z; Z is a whole number of millionths
    n             how many the answer is about, which nobody is told; they have the weights c_1 … c_n
    c_min, c_max  bounds of every weight, which are public; c_min is 0 if somebody who may be among the n is
                  not read, or not kept for certain
    ρ, M          c_min/c_max and W/c_max

Of quantiles that are drawn together ln K is ln N + 1/2 and b is 2/r below (docs/proofs/joint.md).

An interval may be wrong with probability α = α₁ + α₂ + α₃, one for each step. Without noise α₃ is all of it.

1. Size. Of a discrete Laplace law P(Z ≥ z) ≤ exp(−z/s)/(1 + exp(−10⁻⁶/s)). So with probability 1 − α₁

       W ≥ w,  w = (W + Z) − s·ln(1/α₁) + s·ln(1 + exp(−10⁻⁶/s)).

2. Choice. Some point has the score 0, so that P(score ≤ −a) ≤ K·exp(−a/b) for one choice. With probability
   1 − α₂ the weight below every answer is at most p·W + a, and the weight above it at most (1 − p)·W + a,
   for a = b·ln(J·K/α₂). So at most x·W lies below, with x = p + a/w; above likewise, with 1 − p for p.

3. Sampling: from weight to people, without knowing who has which level. Levels do not go with values *within
   the group*, so that the k people with the lowest values are a random k of the n. Let B be their weight and
   q = k/n > x.

   Lemma.  P(B ≤ x·W) ≤ exp(−M·KL((x − ρq)/(1 − ρ) ‖ q)), and it is 0 where x < ρq,
           with KL(t ‖ q) = t·ln(t/q) + (1 − t)·ln((1 − t)/(1 − q)).

   Proof.  (i) *From c_min up.* B = k·c_min + B′, where B′ is the sum of the weights c′ = c − c_min of the k
           people; they lie in 0 … d, d = c_max − c_min, and those of all n come to W′ = W − n·c_min. Where
           x < ρq there is no more to show: B ≥ k·c_min = ρq·n·c_max ≥ ρq·W > x·W.
           (ii) *As if drawn one by one.* Who is among the k is decided by a random permutation, whose
           indicators I are negatively associated (Joag-Dev and Proschan 1983). So for λ > 0
           E exp(−λB′) ≤ Π E exp(−λc′I) = Π (1 − q + q·exp(−λc′)).
           (iii) *As if all weighed d.* The logarithm of a factor is convex in c′ and 0 at c′ = 0, hence at
           most c′/d times what it is at d. So E exp(−λB′) ≤ (1 − q + q·exp(−λd))^(W′/d).
           (iv) *Chernoff.* P(B′ ≤ y) ≤ exp(λy)·E exp(−λB′) with y = x·W − k·c_min; the best λ makes this
           exp(−(W′/d)·KL(y/W′ ‖ q)).
           (v) *Without n.* With u = n·c_min/W one has W′ = W·(1 − u) and y/W′ = q − (q − x)/(1 − u). The
           exponent (W/d)·(1 − u)·KL(q − (q − x)/(1 − u) ‖ q) grows with u: it is r·g((q − x)/r) times W/d,
           for r = 1 − u and the convex g(v) = KL(q − v ‖ q), which is 0 at v = 0. And u ≥ ρ, because
           W ≤ n·c_max. At u = ρ it is M·KL((x − ρq)/(1 − ρ) ‖ q), as d = c_max·(1 − ρ).  ∎

   The bound falls as M grows and as x falls, so that w may stand for W in both. It falls as q grows: let q be
   where it is α₃/2J. If q·n people or more were below an answer, the lowest q·n of them would weigh at most
   x·W; so with probability 1 − α₃ fewer are, for all J answers, below and above.

Where a gap D is declared, levels may go with values: the weight below a point and the people below it differ
by κ·D more, κ that of members whom nobody knows, and so do the ends. (What the lemma says about chance is for
random levels: tests/statistical tries it with levels that are not.)

All of it holds for every number of people, every split of levels and all values. Where w ≤ 0 the interval is
0 … 100, and with few people that is what it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, log1p, sqrt

from accord.budget import MICRO
from accord.mechanisms.prediction import ErrorModel, widened
from accord.statistics import Answer, Ends, Interval

MISS, BEYOND = 0.01, 0.05
"""How probable it may be that an answer has everyone on one side: of quantiles; of min and max."""
_SIZE, _CHOICE, _SAMPLING = 0.5, 0.25, 0.25
"""α₁, α₂ and α₃ as parts of α."""
_TOO_LOW = 1 / 40
"""How probable it may be that an error is told for more people than there are."""


@dataclass(frozen=True)
class BySize(ErrorModel):
    """Interval and error of quantiles, once the weight of their people is known roughly."""

    ps: tuple[Fraction, ...]
    choice_scales: tuple[float, ...]
    """b of each quantile; 0: it is the best point, without noise."""
    size_scale: float
    """s, of the noise on the weight; 0: it is exact."""
    points: int
    """K,"""
    heaviest: float
    """c_max, the largest weight of a person;"""
    evenness: float
    """ρ, the smallest divided by the largest;"""
    typical: float
    """and Σc²/Σc as planned, the weight of somebody who counts."""
    extreme: bool = False
    """Whether it is a minimum or maximum."""
    listed: bool = False
    smooth_cost: float = 1.0
    """How many times as far off choices may be on average because points count several times."""
    log_tuples: float | None = None
    """ln N + 1/2 of docs/proofs/joint.md where all quantiles are drawn together; None: each by itself."""
    bias: float = 0.0
    """What share of the people answers may be off by because levels go with values, as declared."""

    @property
    def log_points(self) -> float:
        """ln K: P(off by a or more) ≤ K·exp(−a/b); of a tuple, what stands there in its place."""
        return log(self.points) if self.log_tuples is None else self.log_tuples

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        """The percentiles between which the answers lie; what was released last is the noisy weight."""
        ends = self.ends(float(released[-1]), 1 - confidence)
        return ends if self.listed else ends[0]

    def ends(self, noisy_weight: float, alpha: float) -> list[Ends]:
        """For a probability of error, of all answers together."""
        outputs = len(self.ps)
        of_choice, of_sampling = (_CHOICE * alpha, _SAMPLING * alpha) if self.size_scale else (0.0, alpha)
        weight = self.lower_bound(noisy_weight, _SIZE * alpha)
        if weight <= 0:
            return [(0.0, 100.0)] * outputs
        people, surprise = weight / self.heaviest, log(2 * outputs / of_sampling)
        ends = []
        for p, scale in zip(self.ps, self.choice_scales, strict=True):
            off = scale * (log(outputs / of_choice) + self.log_points) / weight if scale else 0.0
            below, above = (
                100 * most_people(float(share) + off, people, self.evenness, surprise) for share in (p, 1 - p)
            )
            ends.append(widened((100 - above, below), 100 * self.bias))
        return ends

    def lower_bound(self, noisy_weight: float, alpha: float) -> float:
        """w: the weight is at least this, but for a probability of alpha."""
        return noisy_weight - self._off(alpha)

    def upper_bound(self, noisy_weight: float, alpha: float) -> float:
        """The weight is at most this, but for a probability of alpha: the noise is symmetric."""
        return noisy_weight + self._off(alpha)

    def _off(self, alpha: float) -> float:
        """How far the noise on the weight goes to one side, but for a probability of alpha."""
        if not self.size_scale:
            return 0.0
        return self.size_scale * (log(1 / alpha) - log1p(exp(-1 / (self.size_scale * MICRO))))

    def has_people(self, released: Sequence[Fraction], alpha: float) -> bool:
        return self.lower_bound(float(released[-1]), alpha) > 0

    def errors_of(self, released: Sequence[Fraction]) -> tuple[float, float]:
        """The error for as many people as there are at least, so that it is too low once in 40 times.

        About these people it is at most what it is about the population.
        """
        weight = self.lower_bound(float(released[-1]), _TOO_LOW)
        rmse = self.rmse(weight) if weight > 0 else 100.0
        return rmse, rmse

    def rmse(self, weight: float) -> float:
        """About the population, in percentile points, as predicted for people of this weight."""
        squares = self.typical / weight
        noise = self.smooth_cost**2 * self._choice_variance / weight**2
        variance = float(sum(p * (1 - p) for p in self.ps)) * squares + noise
        rmse = sqrt(1e4 * variance / len(self.ps) + 2 * (100 * squares) ** 2 + (100 * self.bias) ** 2)
        return self.at_worst(rmse, weight)

    @property
    def _choice_variance(self) -> float:
        """As `Spending` has it."""
        outputs, each = len(self.ps), (2 * scale**2 for scale in self.choice_scales)
        return sum(each) * (1 if self.log_tuples is None else (2 * outputs + 1) / 3)

    def is_safe(self, weight: float) -> bool:
        """Whether an answer with everyone on one side of it is improbable, whatever the values are."""
        smaller_side = float(min(min(p, 1 - p) for p in self.ps))
        needed = max(self.choice_scales) * (self.log_points - log(BEYOND if self.extreme else MISS))
        return weight * smaller_side >= needed * (1 - 1e-9)

    def at_worst(self, rmse: float, weight: float) -> float:
        """The worst case of an error that is predicted for dense values.

        Of min and max it is counted from the end; where the answer may land anywhere, all that is possible
        counts.
        """
        is_safe, outputs = self.is_safe(weight), len(self.ps)
        if self.extreme:
            return min(100.0, 100 * float(min(self.ps[0], 1 - self.ps[0])) + rmse) if is_safe else 100.0
        if is_safe:
            return rmse
        ln_k, scales = self.log_points, sum(scale**2 for scale in self.choice_scales)
        extra = 1e4 * scales / outputs / weight**2 * (ln_k**2 + 2 * ln_k)
        most = 100 * sqrt(float(sum(max(p, 1 - p) ** 2 for p in self.ps)) / outputs)
        return min(most, sqrt(rmse**2 + extra))


def most_people(share: float, people: float, evenness: float, surprise: float) -> float:
    """q of the lemma: the largest fraction of the people who may have a share x of the weight, M = `people`.

    But for a probability of exp(−surprise).

    >>> [round(most_people(0.5, 3000, evenness, 4), 4) for evenness in (0, 0.5, 1)]
    [0.5258, 0.5129, 0.5]
    """
    if share >= 1:
        return 1.0
    if evenness >= 1:
        return share
    low, high = share, 1.0
    for _ in range(60):  # bisection: the bound falls in q
        q = (low + high) / 2
        rest = (share - evenness * q) / (1 - evenness)
        if rest < 0 or people * _divergence(rest, q) >= surprise:
            high = q
        else:
            low = q
    return high


def least_weight(share: float, people: float, evenness: float, surprise: float) -> float:
    """x of the lemma, the inverse of `most_people`: which share of the weight a fraction q of the people has.

    At least, but for a probability of exp(−surprise).

    >>> [round(least_weight(0.5258, 3000, evenness, 4), 4) for evenness in (0, 0.5, 1)]
    [0.5, 0.5129, 0.5258]
    """
    if evenness >= 1:
        return share
    low, high = 0.0, share  # of (x − ρq)/(1 − ρ)
    for _ in range(60):  # bisection: the bound grows in x
        rest = (low + high) / 2
        if people * _divergence(rest, share) >= surprise:
            low = rest
        else:
            high = rest
    return evenness * share + (1 - evenness) * low


def _divergence(t: float, q: float) -> float:
    """KL(t ‖ q) of two coins, for t < 1 and t ≤ q ≤ 1."""
    if q >= 1:
        return inf
    lower = t * log(t / q) if t > 0 else 0.0
    return lower + (1 - t) * log((1 - t) / (1 - q))
