"""Groups that are chosen first and counted then, with everyone's charge in two parts.

For the k largest of K groups (`accord.top`), where people may be in m of them, and m is large against k: a
count of all groups would have a noise for m of them, or 2m.

Neighbors  replace: one person leaves up to m groups and comes into up to m others; or add-remove: one person
           comes or goes, in up to m groups. f is 2 or 1: in how many directions scores move.
Releases   k groups, one after the other, each of those that are left with P(g) ∝ exp(S_g/σ), S_g = Σc over
           its members (the exponential mechanism); then S_g + Z of these, Z discrete Laplace of scale b, for
           each its own. σ = f·k/p and b = min(f·m, k)/(1 − p), in units of ε, and p is a public part.
Guarantee  person i loses at most c_i. A choice: no S_g moves by more than c_i. Under add-remove all of them
           move one way, so that P(g) is multiplied by a factor from 1 to exp(c_i/σ), and so is the sum by
           which it is divided; under replace both may move either way. So one choice costs f·c_i/σ at most,
           whichever groups are left, and all k of them p·c_i. Sizes: at most min(f·m, k) of those that are
           chosen move, by c_i each, which costs (1 − p)·c_i. docs/proofs/top.md.
Error      sizes are those of an additive mechanism with noise of scale b; noise that is drawn after the
           choice does not lean. With a probability of 1 − α every group that is left out has a weight of at
           most σ·log(K·k/α) more than each that is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import IntArray, total_of
from accord.mechanisms.additive import ChoosingCalibration, integer_weights

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary
    from accord.statistics.target_sums import Additive


def choose_and_count(
    summaries: Sequence[Summary], calibration: ChoosingCalibration, target: Additive, noise: Noise
) -> list[tuple[Fraction, ...]]:
    """What is released of each group: of those that are chosen a size, of all others nothing."""
    weights = integer_weights(calibration.charges)
    total = total_of(weights, summaries[0].people)
    sums = [target.sums(summary.weighted(weights), total)[0] for summary in summaries]
    scores = np.array(sums, dtype=np.int64 if max(map(abs, sums)) < 2**62 else object)
    left = np.arange(len(sums))
    chosen = []
    for _ in range(calibration.shown):
        place = noise.choose(scores[left], calibration.choice_scale)
        chosen.append(int(left[place]))
        left = np.delete(left, place)
    released: list[tuple[Fraction, ...]] = [()] * len(sums)
    for group in chosen:
        released[group] = (Fraction(sums[group] + noise.laplace(calibration.size_scale), total),)
    return released


def choice_slack(calibration: ChoosingCalibration, people: IntArray, groups: int, alpha: float) -> float:
    """How much larger a group that is left out is than one that is chosen, but for a probability of alpha.

    As a share of everyone's weight.
    """
    scale = calibration.choice_scale / float(total_of(integer_weights(calibration.charges), people))
    return scale * log(groups * calibration.shown / alpha)
