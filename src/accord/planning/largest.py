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
One       of them, taken by whatever was released: *Sizes* with k = 1, p = 1/K. Where a group is shown only if
          its size is above what noise adds to an empty one but for 0.05/K, it is shown because e > h − n for
          its n members, and the mean of e² is then at most that of e² where |e| > h: p = 2·0.05/K.

Groups may be chosen first and counted then (mechanisms/choosing.py). Noise is drawn after the choice, so that
it does not lean, and h is what unequal weights do. A half of 5 % is for the choices, the other for h.

Which     Let a person be in m groups, a neighbor change f·m of them, and p be the part of the charge for
          the choices. In units of ε over the weight of everyone: at once, sizes have a noise of scale
          B = min(f·m, K), and M = 2·B·log(K/0.05) more people may be missed. Chosen first, that is a scale of
          min(f·m, k)/(1 − p), and f·k·log(2·K·k/0.05)/p. With u and v for these without p, as parts of M and
          B, p = u/(u + v) makes both 1/(u + v) times better: chosen first is what has u + v < 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, fsum, hypot, log, sqrt

import numpy as np

from accord.budget import MICRO, IntArray
from accord.mechanisms.additive import ChoosingCalibration
from accord.mechanisms.choosing import choice_slack
from accord.mechanisms.prediction import AroundValue, ErrorModel
from accord.mechanisms.record import Calibration
from accord.statistics.spread import Spread

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


def part_for_choices(groups: int, shown: int, most: int, moves: int) -> int | None:
    """Of everyone's charge, in millionths, if groups are chosen first; None: all are counted at once.

    >>> part_for_choices(1_000, 3, most=1, moves=2), part_for_choices(1_000, 3, most=20, moves=2)
    (None, 541478)
    """
    scale = min(moves * most, groups)
    missed = moves * shown * log(2 * groups * shown / ALPHA) / (2 * scale * log(groups / ALPHA))
    sizes = min(moves * most, shown) / scale
    return None if missed + sizes >= 1 else round(MICRO * missed / (missed + sizes))


def predict_largest(
    model: ErrorModel, calibration: Calibration, people: IntArray, shown: int, groups: int, most_people: int
) -> Largest:
    """For the largest `shown` of so many groups, of so many people of each level.

    `most_people`: how many may be there at most.
    """
    everyone, most = float(people.sum()), float(most_people)
    if not isinstance(model, AroundValue):  # it may be anything
        return Largest(most, most)
    off, spread, p = max(map(abs, model.shift)), model.spread, shown / groups
    if not isinstance(calibration, ChoosingCalibration):
        half = off + spread.half_width(ALPHA / groups)
        return Largest(_root_mean_square(spread, p, off), min(2 * half, most))
    noise = 2 * spread.laplace**2
    slack = everyone * choice_slack(calibration, people, groups, ALPHA / 2)
    if not (spread.sampling or spread.bias):
        return Largest(sqrt(noise), min(slack, most))
    weights = replace(spread, laplace=0.0)
    missed = slack + 2 * weights.half_width(ALPHA / 2 / groups)
    return Largest(hypot(_root_mean_square(weights, p), sqrt(noise)), min(missed, most))


def error_of_selected(
    model: AroundValue, calibration: Calibration, groups: int, leaves_out_empty: bool
) -> float:
    """The error of one of so many sizes, whichever is taken, at most: see *One*."""
    spread, p = model.spread, (2 * ALPHA if leaves_out_empty else 1.0)
    if not isinstance(calibration, ChoosingCalibration):
        return _root_mean_square(spread, p / groups, max(map(abs, model.shift)))
    # which of those that are shown is taken may go by their noise; which are shown does not
    of_noise = _root_mean_square(spread.without_weights, p / calibration.shown)
    return of_noise + _root_mean_square(replace(spread, laplace=0.0), 1 / groups)


def _root_mean_square(spread: Spread, p: float, off: float = 0.0) -> float:
    """√((1/p)·∫₀ᵖ (h(α) + off)² dα)."""
    return sqrt(fsum(w * (off + spread.half_width(p * exp(-u))) ** 2 for u, w in _rule()))


@lru_cache(maxsize=1)
def _rule() -> tuple[tuple[float, float], ...]:
    """Nodes and weights for ∫₀^∞ f(u)·e^(−u) du: with α = p·e^(−u), the mean of f over α in (0, p)."""
    nodes, weights = np.polynomial.laguerre.laggauss(_NODES)
    return tuple(zip(nodes.tolist(), weights.tolist(), strict=True))
