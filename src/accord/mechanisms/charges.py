"""Every additive mechanism of the papers on one page: who is charged how much.

A mechanism for additive statistics is only the function *level → charge*. All of them release the same noisy
weighted mean (additive.py) and lose exactly the charge, so that only charge ≤ level is to be shown here; it
stands beside each. Levels are ascending whole millionths; PUBLIC (∞) is the largest number, so that min(ε, τ)
needs no special case. Where somebody is charged PUBLIC, public people alone are read, and nobody else is
charged (additive.py).
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isqrt

import numpy as np

from accord.budget import LARGEST, MICRO, PUBLIC, IntArray, level_text
from accord.mechanisms.record import Refused, Task
from accord.theory import (
    FloatArray,
    as_floats,
    clip,
    clip_of_members,
    clip_under_gap,
    kappa_of_members,
    threshold_errors,
    threshold_kappas,
)


def minimum(task: Task) -> tuple[IntArray, str]:
    """c_i = min ε ≤ ε_i. Minimum of [J] Definition 7; UNI of [C] IV."""
    smallest = int(task.levels[0])
    note = f"everyone is charged {level_text(smallest)}, the strictest level"
    return np.full_like(task.levels, smallest), note


def threshold(task: Task) -> tuple[IntArray, str]:
    """c_i = t if ε_i ≥ t, else 0. Threshold of [J] Definition 8; unique threshold of [Z] Definition 6.

    t is the user's, else the level that minimises σ²/n_t + v/(t·n_t)² ([Z] eq. 3), with D²κ² if a gap D is
    declared. t = ∞: public people only, without noise.
    """
    t = task.t
    if not isinstance(t, int):  # "best", or nothing was said
        errors = threshold_errors(as_floats(task.levels), task.people, task.variance, task.noise_variance)
        if task.squared_bias:
            errors = errors + task.squared_bias * _threshold_kappas(task) ** 2
        t = int(task.levels[np.argmin(errors)])
    is_read = task.levels >= t
    if not is_read.any():
        raise Refused(
            f"nobody allows t = {level_text(t)}; the most that a person may be charged here (share × level) "
            f"is {level_text(int(task.levels[-1]))}"
        )
    people = int(task.people[is_read].sum())
    return np.where(
        is_read, t, 0
    ), f"t = {level_text(t)}; reads {people / task.total:.1%} of the people, at t"


def proportional(task: Task) -> tuple[IntArray, str]:
    """c_i = ε_i. PropDPM of [C] III-A. A public person would outweigh everyone else, without bound."""
    if task.levels[-1] == PUBLIC:
        raise Refused("people with ε = inf would outweigh everyone else")
    return task.levels, "everyone is charged their whole level"


def affine(task: Task) -> tuple[IntArray, str]:
    """c_i = min(ε_i, τ) ≤ ε_i, with the best τ. ADPM of [C] Algorithm 1; [Z] Claim 1.

    The predicted error falls before the real τ and rises after it, so the best whole number of millionths is
    next to it.
    """
    ratio = task.noise_variance / task.variance
    tau = clip(as_floats(task.levels), task.people, ratio)
    return _clipped(task, tau, lambda charges: _error(charges, task.people_as_floats, ratio))


def robust(task: Task) -> tuple[IntArray, str]:
    """c_i = min(ε_i, τ) ≤ ε_i, with the best τ for the declared gap, whose worst bias is in the error.

    Ours. Of all weightings min(ε, τ) is still the best, with a smaller τ: docs/proofs/gap.md. Without a gap
    it is `affine`; with one that is large, everyone counts as much as the strictest. Of members of a private
    part, of whom nobody knows who they are, κ is that of the worst of them.
    """
    levels, ratio, gap = as_floats(task.levels), task.noise_variance / task.variance, _squared_gap(task)
    if not task.target.tells_size:
        tau = clip_under_gap(levels, task.people, ratio, gap, task.total)
    elif task.unread:
        tau = clip(levels, task.people, ratio)  # κ is 1, whatever the charges are
    else:
        tau = clip_of_members(levels, task.people, ratio, gap)

    def error(charges: IntArray) -> float:
        return _error(charges, task.people_as_floats, ratio) + gap * _kappa(task, charges) ** 2

    return _clipped(task, tau, error)


def _clipped(task: Task, tau: float, error: Callable[[IntArray], float]) -> tuple[IntArray, str]:
    """min(ε, τ), with the better of the two whole numbers of millionths next to τ."""
    if tau == np.inf:
        return task.levels, "everyone is public: no noise"
    below = max(1, floor(min(tau * MICRO, LARGEST)))
    charges = min((np.minimum(task.levels, t) for t in (below, below + 1)), key=error)
    clipped = int(task.people[task.levels > charges].sum())
    who = (
        f"{clipped / task.total:.1%} of the people allow more and keep it" if clipped else "nobody is clipped"
    )
    return charges, f"τ = {level_text(int(charges[-1]))}; {who}"


def fallah(task: Task) -> tuple[IntArray, str]:
    """c_i = min(ε_i, 1/√n) ≤ ε_i. FME of [C] IV-A, after Fallah, Makhdoumi, Malekian and Ozdaglar 2022.

    Reconstructed from [C]'s Table II: the theorem that defines the original was not at hand. It is private
    whatever the original says; only its accuracy could differ.
    """
    most = isqrt(MICRO**2 // task.total)  # ⌊10⁶/√n⌋
    if most == 0:
        raise Refused("1/√n is less than a millionth")
    return np.minimum(task.levels, most), f"nobody is charged more than 1/√n = {level_text(most)}"


def _squared_gap(task: Task) -> float:
    """D²/σ², for the squared errors of all outputs together."""
    return task.squared_bias / task.variance


def _threshold_kappas(task: Task) -> FloatArray:
    """κ of each t; of members 1 unless everyone is read, because all of them may be those who are not."""
    kappas = threshold_kappas(task.people, task.total)
    return np.where(kappas > 0, 1.0, 0.0) if task.target.tells_size else kappas


def _kappa(task: Task, charges: IntArray) -> float:
    """κ of weights in proportion to charges."""
    if task.target.tells_size:
        return kappa_of_members(float(charges.max()), 0.0 if task.unread else float(charges.min()))
    weights = charges / float(task.people_as_floats @ charges)
    return float(task.people_as_floats @ np.maximum(weights - 1 / task.total, 0))


def _error(charges: IntArray, people: FloatArray, ratio: float) -> float:
    """(Σc² + v/σ²)/(Σc)²: the mean squared error up to the factor σ². [Z] eq. (2)."""
    c = charges / MICRO
    return float((people @ c**2 + ratio) / (people @ c) ** 2)
