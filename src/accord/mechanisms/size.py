"""Interval and error of quantiles whose number of people is private, from a noisy size of them.

Beside the chosen points a mechanism releases W + Z, the weight W = Σc of those whom the answer is about with
Laplace noise Z (mechanisms/rank.py says why nobody loses more). What follows here is post-processing. A
probability of error α is split in three; where there is no noise, all of it is for the last.

size      W ≥ w = W + Z − s·ln(1/α₁), s being the scale of Z (a discrete law: α₁ times 1 + exp(−10⁻⁶/s)).

choice    The weight below each answer is at most p·W + a, and above it (1 − p)·W + a, for a = b·ln(J·K/α₂)
          with J choices of scale b among K points: some point has the score 0, so that
          P(score ≤ −a) ≤ K·exp(−a/b). With x = p + a/w at most x·W lies below.

sampling  From weight to people, without knowing who has which level. Charges lie in c_min … c_max, which
          are public; c_min is 0 if somebody is not read, or not kept for certain. Levels do not go with
          values *within the group*, so that the k people with the lowest values of its n are a random k of
          them. Let B be their weight, q = k/n, ρ = c_min/c_max and M = W/c_max. Then for q > x

              P(B ≤ x·W) ≤ exp(−M·KL((x − ρq)/(1 − ρ) ‖ q)), and 0 where x < ρq,
              KL(t ‖ q) = t·ln(t/q) + (1 − t)·ln((1 − t)/(1 − q)).

          *Proof.* Take c_min off every weight: B = k·c_min + B′ with c′ in 0 … d, d = c_max − c_min, and
          W′ = W − n·c_min. Who is among the k is decided by a random permutation, whose indicators I are
          negatively associated (Joag-Dev and Proschan 1983), so that for λ > 0
          E exp(−λB′) ≤ Π E exp(−λc′I) = Π (1 − q + q·exp(−λc′)). The logarithm of a factor is convex in c′
          and 0 at 0, hence at most c′/d times that at d; so E exp(−λB′) ≤ (1 − q + q·exp(−λd))^(W′/d), and
          the best λ gives exp(−(W′/d)·KL((x·W − k·c_min)/W′ ‖ q)). With u = n·c_min/W the exponent is
          (W/d)·(1 − u)·KL(q − (q − x)/(1 − u) ‖ q), which grows with u (it is r·g(y/r) for r = 1 − u and
          a convex g with g(0) = 0); and u ≥ ρ, as no weight is above c_max. ∎

          The bound falls as M grows and as x falls: w may stand for W. The k people strictly below an
          answer have at most x·W in all, and B grows with k; so with probability 1 − α₃ fewer than q·n are
          below, for the q at which the bound is α₃. Likewise above.

It holds for every number of people, every split of levels and all values; where w ≤ 0 it is 0 … 100, and
with few people that is what it comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, log1p, sqrt

from accord.budget import MICRO
from accord.statistics import Answer, Ends, Interval

MISS, BEYOND = 0.01, 0.05
"""How often an answer may have everyone on one side of it: quantiles; min and max."""
_OF_SIZE, _OF_CHOICE, _OF_SAMPLING = 0.5, 0.25, 0.25
"""How a probability of error is split."""
_FLATTERING = 1 / 40


@dataclass(frozen=True)
class BySize:
    """How well quantiles are known, once the weight of their people is, roughly."""

    ps: tuple[Fraction, ...]
    choices: tuple[float, ...]
    """Scales of the choices; 0: they are the best points, without noise."""
    size: float
    """Scale of the noise on the weight; 0: it is exact."""
    points: int
    heaviest: float
    """The largest weight of a person,"""
    evenness: float
    """the smallest divided by the largest,"""
    typical: float
    """and Σc²/Σc as planned: the weight of somebody who counts."""
    extreme: bool = False
    """Whether it is a minimum or maximum."""
    listed: bool = False

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        """The percentiles between which the answers lie; what was released last is the noisy weight."""
        ends = self.ends(float(released[-1]), 1 - confidence)
        return ends if self.listed else ends[0]

    def ends(self, weight: float, alpha: float) -> list[Ends]:
        """For a probability of error, of all answers together."""
        outputs = len(self.ps)
        of_choice, of_sampling = (_OF_CHOICE * alpha, _OF_SAMPLING * alpha) if self.size else (0.0, alpha)
        known = self.at_least(weight, _OF_SIZE * alpha)
        if known <= 0:
            return [(0.0, 100.0)] * outputs
        people, surprise = known / self.heaviest, log(2 * outputs / of_sampling)
        found = []
        for p, scale in zip(self.ps, self.choices, strict=True):
            off = scale * log(outputs * self.points / of_choice) / known if scale else 0.0
            below, above = (
                100 * most_people(float(share) + off, people, self.evenness, surprise) for share in (p, 1 - p)
            )
            found.append((100 - above, below))
        return found

    def at_least(self, weight: float, alpha: float) -> float:
        """What the weight is at least, by a noisy one, but for a probability of error."""
        if not self.size:
            return weight
        return weight - self.size * (log(1 / alpha) - log1p(exp(-1 / (self.size * MICRO))))

    def rmse_of(self, released: Sequence[Fraction]) -> float:
        """The error by the noisy weight: for as many as there are at least, so that it flatters once in 40
        times.
        """
        known = self.at_least(float(released[-1]), _FLATTERING)
        return self.rmse(known) if known > 0 else 100.0

    def rmse(self, weight: float) -> float:
        """About the population, in percentile points, as predicted for people of this weight."""
        squares = self.typical / weight
        noise = sum(2 * scale**2 for scale in self.choices) / weight**2
        variance = float(sum(p * (1 - p) for p in self.ps)) * squares + noise
        rmse = sqrt(1e4 * variance / len(self.ps) + 2 * (100 * squares) ** 2)
        return self.at_worst(rmse, weight)

    def is_safe(self, weight: float) -> bool:
        """Whether an answer with everyone on one side of it is improbable, whatever the values are."""
        least = float(min(min(p, 1 - p) for p in self.ps))
        needed = max(self.choices) * log(self.points / (BEYOND if self.extreme else MISS))
        return weight * least >= needed * (1 - 1e-9)

    def at_worst(self, rmse: float, weight: float) -> float:
        """The worst case of an error that is predicted for dense values.

        Of min and max it is counted from the end; where the answer may land anywhere, all that is possible
        counts.
        """
        safe, outputs = self.is_safe(weight), len(self.ps)
        if self.extreme:
            return min(100.0, 100 * float(min(self.ps[0], 1 - self.ps[0])) + rmse) if safe else 100.0
        if safe:
            return rmse
        points = log(self.points)
        extra = 1e4 * sum(scale**2 for scale in self.choices) / outputs / weight**2 * (points**2 + 2 * points)
        most = 100 * sqrt(float(sum(max(p, 1 - p) ** 2 for p in self.ps)) / outputs)
        return min(most, sqrt(rmse**2 + extra))


def most_people(share: float, people: float, evenness: float, surprise: float) -> float:
    """The largest fraction q of people who may have this share of the weight.

    But for a probability of exp(−surprise): see above.

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
        low, high = (low, q) if rest < 0 or people * _divergence(rest, q) >= surprise else (q, high)
    return high


def _divergence(t: float, q: float) -> float:
    """KL(t ‖ q) of two coins, for t < 1 and t ≤ q ≤ 1."""
    if q >= 1:
        return inf
    lower = t * log(t / q) if t > 0 else 0.0
    return lower + (1 - t) * log((1 - t) / (1 - q))
