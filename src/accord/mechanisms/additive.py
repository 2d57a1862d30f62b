"""One exact noisy weighted mean for every function of charges.py.

Neighbors  replace: one person's value changes; the number of people and all levels stay.
Releases   S + Z with S = Σ c_i·x_i over the integers x_i of the target, c_i in millionths, and Z discrete
           Laplace of scale 10⁶·s, one for each output, s being the target's sensitivity. Dividing by Σc_i,
           which is public, is post-processing.
Guarantee  person i loses exactly c_i: changing x_i moves the vector S by at most c_i·s in all, so every
           probability changes by at most exp(c_i·s/(10⁶·s)) = exp(c_i/10⁶). A charge of ∞ (public) means that
           only public people are read; they are read without noise.
Error      (σ²·Σc² + v)/(Σc)² about the population, with v = 2s² for each output.                       [Z]
           eq. (2)
Deviates   from the papers: charges are whole millionths and values whole cells, so that sums are exact;
           losses only shrink.

`stretch` is the same sum with another denominator: Σ(ε_i/ε_max)·x_i + Lap(Δ/ε_max), the Stretching mechanism
of Alaggan, Gambs and Kermarrec as [J] V-A uses it. It is not normalised, hence biased: at worst by Σ(1 −
ε_i/ε_max)·max(|a|, |b|).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, total_of
from accord.mechanisms.prediction import AroundValue, Prediction, errors, predict
from accord.mechanisms.record import Calibration, Linear, Method, Refused, Task, frozen
from accord.statistics.spread import Spread
from accord.statistics.target import Additive, Total

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary


def calibrate_by(charge: Callable[[Task], tuple[IntArray, str]]) -> Callable[[Task], Calibration]:
    """Charges with the weights and the noise that follow from them."""

    def calibrate(task: Task) -> Calibration:
        c, note = charge(task)
        counted = c == PUBLIC if c[-1] == PUBLIC else c
        total = total_of(counted.astype(np.int64), task.people)
        noise = 0.0 if c[-1] == PUBLIC else task.noise_variance * MICRO**2 / float(total) ** 2
        return Calibration(frozen(c), frozen(counted / float(total)), noise, note)

    return calibrate


def _answer(summary: Summary, calibration: Calibration, target: Additive, noise: Noise) -> list[Fraction]:
    c = calibration.charges
    if c[-1] == PUBLIC:
        read = (c == PUBLIC).astype(np.int64)
        total = total_of(read, summary.people)
        sums = target.sums(summary.weighted(read), total)
    else:
        total = total_of(c, summary.people)
        sums = noisy_sums(summary, c, target, noise)
    return [Fraction(s, total) for s in sums]


def _law(calibration: Calibration, people: IntArray, target: Additive) -> Linear:
    """Of `_answer`, in floats."""
    c = calibration.charges
    without_noise = bool(c[-1] == PUBLIC)
    counted = (c == PUBLIC).astype(np.int64) if without_noise else c
    total, drawn = float(total_of(counted, people)), MICRO * target.sensitivity
    return Linear(
        counted / total, np.zeros(0) if without_noise else np.array([drawn / total]), coarsest=drawn
    )


def noisy_sums(summary: Summary, c: IntArray, target: Additive, noise: Noise) -> list[int]:
    """Σ c_i·x_i + Z for each output."""
    scale, total = Fraction(MICRO * target.sensitivity), total_of(c, summary.people)
    sums = target.sums(summary.weighted(c), total)
    if target.complementary:
        first = sums[0] + noise.laplace(scale)
        return [first, total - first]
    return [s + noise.laplace(scale) for s in sums]


@dataclass(frozen=True, eq=False)
class Stretched(Calibration):
    """Of `stretch`."""

    missing: float
    """How many people's worth it leaves out of the sum, which biases it."""


def _stretch(task: Task) -> Stretched:
    c = task.levels
    if c[-1] == PUBLIC:
        raise Refused("people with ε = inf would shrink everyone else to nothing")
    largest = int(c[-1])
    kept = total_of(c, task.people) / largest
    return Stretched(
        c,
        c / (float(largest) * task.total),
        task.noise_variance * (MICRO / (float(largest) * task.total)) ** 2,
        f"biased: counts {kept / task.total:.1%} of the sum",
        missing=task.total - kept,
    )


def _predict_stretch(task: Task, calibration: Stretched) -> Prediction:
    target: Total = task.target
    of_mean, factor = errors(task, calibration), target.factor(task.total)
    low, high = (target.finish([end], 1) for end in (Fraction(0), Fraction(target.sensitivity)))
    assert isinstance(low, float) and isinstance(high, float)
    bias = factor * calibration.missing * max(abs(low), abs(high)) / task.total
    noise = factor * sqrt(calibration.noise_variance)
    spread = Spread(laplace=of_mean.spread.laplace, extra=of_mean.spread.extra)
    shift = (calibration.missing * low, calibration.missing * high)
    return Prediction(
        sqrt(of_mean.rmse**2 + bias**2), sqrt(noise**2 + bias**2), None, AroundValue(target, spread, shift)
    )


def _answer_stretch(summary: Summary, calibration: Stretched, target: Total, noise: Noise) -> list[Fraction]:
    """The mean m with n·(origin + m) = Σ(ε_i/ε_max)(origin + x_i) + Z: values are counted from zero, not from
    `low`.
    """
    c, n = calibration.charges, int(summary.people.sum())
    largest = int(c.max())
    kept = Fraction(total_of(c, summary.people), largest)
    return [
        Fraction(s, largest * n) - target.origin * (1 - kept / n)
        for s in noisy_sums(summary, c, target, noise)
    ]


def _law_of_stretch(calibration: Stretched, people: IntArray, target: Total) -> Linear:
    """Of `_answer_stretch`, in floats."""
    c, n = calibration.charges, int(people.sum())
    largest, drawn = int(c.max()), MICRO * target.sensitivity
    shift = -target.origin * (1 - Fraction(total_of(c, people), largest * n))
    return Linear(c / (largest * n), np.array([drawn / (largest * n)]), shift, drawn)


def weighted_mean(charge: Callable[[Task], tuple[IntArray, str]]) -> Method:
    """A function of charges.py, for sums."""
    return Method(Additive, calibrate_by(charge), predict, _answer, law=_law)


STRETCH = Method(Total, _stretch, _predict_stretch, _answer_stretch, law=_law_of_stretch)
