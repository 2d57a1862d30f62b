"""What a plan predicts about the largest groups (`accord.top`): which may be missed, how far sizes are off.

All K sizes are released with an error of one law, and the k largest are shown. Let h(α) be what the error of
one size exceeds with a probability of α.

Missed    But for 5 %, all errors are within h(0.05/K) at once (Bonferroni). Then a group that is left out has
          at most 2h more people than any that is shown.
Sizes     Of the k that are shown, whichever they are, the mean squared error is at most
              (1/p)·∫₀ᵖ h(α)² dα,  p = k/K:
          Σ e² over any k of them is ∫ #{of these: e² > t} dt ≤ ∫ min(k, #{of all: e² > t}) dt, and the mean
          of the minimum is at most min(k, K·P(e² > t)). For p = 1 it is the mean squared error of one size;
          for Laplace noise of scale b it is b²(2 + 2L + L²), L = log(K/k). Where groups lie apart, noise
          decides nothing, and it is that of one size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, fsum, sqrt

import numpy as np

from accord.mechanisms.prediction import AroundValue, ErrorModel

ALPHA = 0.05
_NODES = 24
"""Of the Gauss–Laguerre rule: h² is about quadratic in −log α, for which two are enough."""


@dataclass(frozen=True)
class Largest:
    """What is predicted about the largest groups, in people."""

    rmse_here_at_most: float
    """The error of the sizes that are shown, about these very people (root mean square over them)."""
    missed_at_most: float
    """How many more people a group that is left out has than one that is shown, with 95 %."""


def predict_largest(model: ErrorModel, shown: int, groups: int, people: int) -> Largest:
    """For the largest `shown` of so many groups, of so many people in all."""
    if not isinstance(model, AroundValue):  # it may be anything
        return Largest(float(people), float(people))
    off = max(map(abs, model.shift))
    half = off + model.spread.half_width(ALPHA / groups)
    p = shown / groups
    squares = fsum(w * (off + model.spread.half_width(p * exp(-u))) ** 2 for u, w in _rule())
    return Largest(sqrt(squares), min(2 * half, float(people)))


@lru_cache(maxsize=1)
def _rule() -> tuple[tuple[float, float], ...]:
    """Nodes and weights for ∫₀^∞ f(u)·e^(−u) du: with α = p·e^(−u), the mean of f over α in (0, p)."""
    nodes, weights = np.polynomial.laguerre.laggauss(_NODES)
    return tuple(zip(nodes.tolist(), weights.tolist(), strict=True))
