"""One exact noisy weighted mean for every function of charges.py.

Neighbors  replace: one person's value changes; the number of people and all levels stay.
Releases   S + Z with S = Σ c_i·x_i over the integers x_i of the query, c_i in millionths, and Z discrete Laplace of scale
           10⁶·span·reach, one for each output. Dividing by Σc_i, which is public, is post-processing.
Guarantee  person i loses exactly c_i: changing x_i moves the vector S by at most c_i·span·reach in all (reach = 2: out of one cell of
           a histogram and into another), so every probability changes by at most exp(c_i·span·reach/(10⁶·span·reach)) = exp(c_i/10⁶).
           A charge of ∞ (public) means that only public people are read; they are read without noise.
Error      (σ²·Σc² + v)/(Σc)² about the population, with v = 2·(reach·width)² for each output.                          [Z] eq. (2)
Deviates   from the papers: charges are whole millionths and values whole cells, so that sums are exact; losses only shrink.

`stretch` is the same sum with another denominator: Σ(ε_i/ε_max)·x_i + Lap(Δ/ε_max), the Stretching mechanism of Alaggan, Gambs and
Kermarrec as [J] V-A uses it. It is not normalised, hence biased: at worst by Σ(1 − ε_i/ε_max)·max(|a|, |b|).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, total_of
from accord.mechanisms.error import predict
from accord.mechanisms.record import Calibration, Refused, Task, Way, frozen
from accord.statistics import Additive, Count, Histogram, Mean, Sum

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

ADDITIVE = (Mean, Sum, Count, Histogram)


def calibrate_by(charge: Callable[[Task], tuple[IntArray, str]]) -> Callable[[Task], Calibration]:
    """Charges with the weights and the noise that follow from them."""

    def calibrate(task: Task) -> Calibration:
        c, note = charge(task)
        counted = c == PUBLIC if c[-1] == PUBLIC else c
        total = total_of(counted.astype(np.int64), task.people)
        noise = 0.0 if c[-1] == PUBLIC else task.blur * MICRO**2 / float(total) ** 2
        return Calibration(frozen(c), frozen(counted / float(total)), noise, note, neighbors=task.neighbors)

    return calibrate


def _answer(summary: Summary, calibration: Calibration, query: Additive, noise: Noise) -> list[Fraction]:
    c = calibration.charges
    if c[-1] == PUBLIC:
        read = (c == PUBLIC).astype(np.int64)
        sums, total = summary.weighted(read), total_of(read, summary.people)
    else:
        sums, total = _noisy(summary, c, query, noise), total_of(c, summary.people)
    return [Fraction(s, total) for s in sums]


def _noisy(summary: Summary, c: IntArray, query: Additive, noise: Noise) -> list[int]:
    """Σ c_i·x_i + Z for each output."""
    scale = Fraction(MICRO * query.span * query.reach)
    sums = summary.weighted(c)
    if query.complement:
        first = sums[0] + noise.laplace(scale)
        return [first, total_of(c, summary.people) - first]
    return [s + noise.laplace(scale) for s in sums]


def _stretch(task: Task) -> Calibration:
    c = task.levels
    if c[-1] == PUBLIC:
        raise Refused("people with ε = inf would shrink everyone else to nothing")
    largest = int(c[-1])
    kept = total_of(c, task.people) / largest
    return Calibration(
        c,
        c / (float(largest) * task.total),
        task.blur * (MICRO / (float(largest) * task.total)) ** 2,
        f"biased: counts {kept / task.total:.1%} of the sum",
        missing=task.total - kept,
    )


def _answer_stretch(summary: Summary, calibration: Calibration, query: Additive, noise: Noise) -> list[Fraction]:
    """The mean m with n·(origin + m) = Σ(ε_i/ε_max)(origin + x_i) + Z: values are counted from zero, not from the lower bound."""
    c, n = calibration.charges, int(summary.people.sum())
    largest = int(c.max())
    kept = Fraction(total_of(c, summary.people), largest)
    return [Fraction(s, largest * n) - query.origin * (1 - kept / n) for s in _noisy(summary, c, query, noise)]


def weighted_mean(charge: Callable[[Task], tuple[IntArray, str]]) -> Way:
    return Way(ADDITIVE, calibrate_by(charge), predict, _answer)


STRETCH = Way((Sum, Count), _stretch, predict, _answer_stretch)
