"""Every additive mechanism of the papers on one page: who is charged how much.

A mechanism for additive statistics is only the function *level → charge*. All of them release the same noisy
weighted mean (additive.py) and lose exactly the charge, so that only charge ≤ level is to be shown here; it
stands beside each. Levels are ascending whole millionths; PUBLIC (∞) is the largest number, so that min(ε, τ)
needs no special case. Where somebody is charged PUBLIC, public people alone are read, and nobody else is
charged (additive.py).
"""

from __future__ import annotations

from math import floor, isqrt

import numpy as np

from accord.budget import LARGEST, MICRO, PUBLIC, IntArray, level_text
from accord.mechanisms.record import Refused, Task
from accord.theory import FloatArray, as_floats, clip, threshold_errors


def minimum(task: Task) -> tuple[IntArray, str]:
    """c_i = min ε ≤ ε_i. Minimum of [J] Definition 7; UNI of [C] IV."""
    smallest = int(task.levels[0])
    note = f"everyone is charged {level_text(smallest)}, the strictest level"
    return np.full_like(task.levels, smallest), note


def threshold(task: Task) -> tuple[IntArray, str]:
    """c_i = t if ε_i ≥ t, else 0. Threshold of [J] Definition 8; unique threshold of [Z] Definition 6.

    t is the user's, else the level that minimises σ²/n_t + v/(t·n_t)² ([Z] eq. 3). t = ∞: public people only,
    without noise.
    """
    t = task.t
    if not isinstance(t, int):  # "best", or nothing was said
        errors = threshold_errors(as_floats(task.levels), task.people, task.variance, task.noise_variance)
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
    if tau == np.inf:
        return task.levels, "everyone is public: no noise"
    below = max(1, floor(min(tau * MICRO, LARGEST)))
    charges = min(
        (np.minimum(task.levels, t) for t in (below, below + 1)),
        key=lambda charges: _error(charges, task.people_as_floats, ratio),
    )
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


def _error(charges: IntArray, people: FloatArray, ratio: float) -> float:
    """(Σc² + v/σ²)/(Σc)²: the mean squared error up to the factor σ². [Z] eq. (2)."""
    c = charges / MICRO
    return float((people @ c**2 + ratio) / (people @ c) ** 2)
