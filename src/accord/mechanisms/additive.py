"""One exact noisy weighted mean for every function of charges.py.

Neighbors  replace: one person's value changes, the number of people and all levels stay; or add-remove: one
           person of a public roster comes or goes. s is the target's sensitivity under the one or the other.
Releases   S + Z for each output, S = Σ w_i·x_i over the integers x_i of the target, Z discrete Laplace of
           scale 10⁶·s. Dividing by Σw_i, which is public (under add-remove of the roster), is
           post-processing.
Weights    w_i = c_i in millionths: for pure ε the charge itself, because the scale of Z is the same for all.
           A charge of ∞ means that only public people are read, without noise; then each of them counts 1.
Guarantee  person i loses exactly c_i: they move the vector S by at most w_i·s in all, so that every
           probability changes by at most exp(w_i·s/(10⁶·s)) = exp(w_i/10⁶), the charge in units of ε.
Box        Questions of one workload may share a noise: S_k + z_k for the sums of all of them, z of a box of
           scale 10⁶ whose spans s_k are what one person can change in each sum (`box_spans`). Person i moves
           sum k by at most w_ik·s_k ≤ w_i·s_k, w_i = max_k w_ik, so that they lose w_i/10⁶: the largest of
           their charges, not the sum (noise.py). The weights of each question are its own.
Error      (σ²·Σw² + v)/(Σw)² about the population, w in units of ε and v = 2s² for each output.   [Z] eq. (2)
           Of a box of K sums, v = (K + 1)(K + 2)/3·s² for each sum.
Deviates   from the papers: charges are whole millionths and values whole cells, so that sums are exact;
           losses only shrink.

`stretch` is the same sum with another denominator: Σ(ε_i/ε_max)·x_i + Lap(Δ/ε_max), the Stretching mechanism
of Alaggan, Gambs and Kermarrec as [J] V-A uses it. It is not normalised, hence biased: at worst by
Σ(1 − ε_i/ε_max)·max(|a|, |b|) for values in [a, b].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, total_of
from accord.mechanisms.prediction import AroundValue, Prediction, errors, predict
from accord.mechanisms.record import Calibration, ChargeRule, Linear, Method, Refused, Task, frozen
from accord.statistics.box import Share
from accord.statistics.spread import Spread
from accord.statistics.target_sums import Additive, Total

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary


def reads_public_only(charges: IntArray) -> bool:
    """Whether a charge is ∞: then only public people are read, without noise. (They have the last level.)"""
    return bool(charges[-1] == PUBLIC)


def integer_weights(charges: IntArray) -> IntArray:
    """w: how much one person of each level counts, as a whole number."""
    return (charges == PUBLIC).astype(np.int64) if reads_public_only(charges) else charges


@dataclass(frozen=True, eq=False)
class BoxCalibration(Calibration):
    """Of a question whose sums share one noise with those of others."""

    coordinates: int
    """How many sums share it."""
    block: int = 0
    """Which of the boxes of its workload it is in."""


@dataclass(frozen=True, eq=False)
class ChoosingCalibration(Calibration):
    """Of counts of a few groups that are chosen first, with a part of everyone's charge (choosing.py)."""

    shown: int
    """How many are chosen,"""
    part: int
    """with how much of the charge, in millionths,"""
    moves: int
    """of how many changes in scores a neighbor consists: 1, or 2 where somebody leaves groups for others,"""
    most: int
    """and in how many groups somebody may be."""

    @property
    def choice_scale(self) -> int:
        """Of each of the choices, in millionths: rounded up, so that losses only shrink."""
        return -(-(MICRO**2) * self.moves * self.shown // self.part)

    @property
    def size_scale(self) -> Fraction:
        """Of the noise on each size, in millionths."""
        return MICRO * Fraction(MICRO * self.sizes_changed, MICRO - self.part)

    @property
    def sizes_changed(self) -> int:
        """Of how many chosen groups one person may change the size."""
        return min(self.moves * self.most, self.shown)


def calibrate_by(charge_rule: ChargeRule) -> Callable[[Task], Calibration]:
    """Charges with the weights and the noise that follow from them."""

    def calibrate(task: Task) -> Calibration:
        charges, note = charge_rule(task)
        if task.target.needs_equal_weights and int(task.people.sum()) < task.total:
            raise Refused(
                "would leave out people whose level is too small for this share; how many they are is "
                "private, and nothing would tell how much is missing in the total"
            )
        if reads_public_only(charges):
            charges = np.where(charges == PUBLIC, charges, 0)  # who is not read pays nothing
        weights = integer_weights(charges)
        total = float(total_of(weights, task.people))
        variance = 0.0 if reads_public_only(charges) else task.noise_variance * MICRO**2 / total**2
        parts = frozen(charges), frozen(weights / total), variance, note
        return BoxCalibration(*parts, task.coordinates) if task.coordinates else Calibration(*parts)

    return calibrate


def _answer(summary: Summary, calibration: Calibration, target: Additive, noise: Noise) -> list[Fraction]:
    if isinstance(calibration, BoxCalibration):
        return answer_together([(summary, calibration, target)], noise)[0]
    weights = integer_weights(calibration.charges)
    total = total_of(weights, summary.people)
    if reads_public_only(calibration.charges):
        sums = target.sums(summary.weighted(weights), total)
    else:
        sums = noisy_sums(summary, weights, total, target, noise)
    return [Fraction(s, total) for s in sums]


def answer_together(
    parts: Sequence[tuple[Summary, BoxCalibration, Additive]], noise: Noise
) -> list[list[Fraction]]:
    """Of several questions whose sums share one noise: what is released for each.

    A question that is answered without the others has the noise that it would have had among them.
    """
    sums: list[int] = []
    spans: list[int] = []
    totals: list[int] = []
    for summary, calibration, target in parts:
        weights = integer_weights(calibration.charges)
        total = total_of(weights, summary.people)
        sums += target.sums(summary.weighted(weights), total)
        spans += target.box_spans
        totals += [total] * len(target.box_spans)
    absent = max(0, parts[0][1].coordinates - len(spans))
    drawn = noise.box([*spans, *spans[:1] * absent])[: len(spans)]
    noisy = iter([Fraction(s + z, total) for s, z, total in zip(sums, drawn, totals, strict=True)])
    return [list(islice(noisy, len(target.box_spans))) for _, _, target in parts]


def _linear(calibration: Calibration, people: IntArray, target: Additive) -> Linear:
    """`_answer`, in floats."""
    weights = integer_weights(calibration.charges)
    total, scale = float(total_of(weights, people)), float(MICRO * target.sensitivity)
    if isinstance(calibration, BoxCalibration):
        each = [MICRO * span / total for span in target.box_spans]
        smallest = float(MICRO * min(target.box_spans))
        share = Share(calibration.coordinates, tuple(each))
        return Linear(weights / total, np.zeros(0), smallest_scale=smallest, box=share)
    if isinstance(calibration, ChoosingCalibration):
        scale = float(calibration.size_scale)
    scales = [] if reads_public_only(calibration.charges) else [scale / total]
    return Linear(weights / total, np.array(scales, dtype=np.float64), smallest_scale=scale)


def noisy_sums(summary: Summary, weights: IntArray, total: int, target: Additive, noise: Noise) -> list[int]:
    """Σ w_i·x_i + Z for each output; `total` is the weight of everyone."""
    scale = Fraction(MICRO * target.sensitivity)
    sums = target.sums(summary.weighted(weights), total)
    if target.complementary:
        first = sums[0] + noise.laplace(scale)
        return [first, total - first]
    return [s + noise.laplace(scale) for s in sums]


def weighted_mean(charge_rule: ChargeRule) -> Method:
    """A function of charges.py, for sums."""
    return Method(Additive, calibrate_by(charge_rule), predict, _answer, shares_noise=True, linear=_linear)


# ---- stretch -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StretchCalibration(Calibration):
    """Of `stretch`."""

    shortfall: float
    """Σ(1 − ε_i/ε_max): how many people's worth is not in the sum, which biases it."""


def _calibrate_stretch(task: Task) -> StretchCalibration:
    if task.levels[-1] == PUBLIC:
        raise Refused("people with ε = inf would shrink everyone else to nothing")
    if task.target.query.about_everyone:
        raise Refused("is about those who are read")
    largest = int(task.levels[-1])
    counted = total_of(task.levels, task.people) / largest
    return StretchCalibration(
        task.levels,
        task.levels / (float(largest) * task.total),
        task.noise_variance * (MICRO / (float(largest) * task.total)) ** 2,
        f"biased: counts {counted / task.total:.1%} of the sum",
        shortfall=task.total - counted,
    )


def _predict_stretch(task: Task, calibration: StretchCalibration) -> Prediction:
    target: Total = task.target
    of_mean, factor = errors(task, calibration), target.factor(task.total)  # its bias holds for any gap
    low, high = (target.finish([end], 1) for end in (Fraction(0), Fraction(target.sensitivity)))
    assert isinstance(low, float) and isinstance(high, float)
    bias = factor * calibration.shortfall * max(abs(low), abs(high)) / task.total
    noise = factor * sqrt(calibration.noise_variance)
    spread = Spread(laplace=of_mean.spread.laplace, extra=of_mean.spread.extra)
    shift = (calibration.shortfall * low, calibration.shortfall * high)
    return Prediction(
        sqrt(of_mean.rmse**2 + bias**2), sqrt(noise**2 + bias**2), None, AroundValue(target, spread, shift)
    )


def _answer_stretch(
    summary: Summary, calibration: StretchCalibration, target: Total, noise: Noise
) -> list[Fraction]:
    """The mean m with n·(origin + m) = Σ(ε_i/ε_max)(origin + x_i) + Z: counted from zero, not from `low`."""
    weights, n = integer_weights(calibration.charges), int(summary.people.sum())
    largest, shift = int(weights.max()), _stretch_shift(weights, summary.people, target)
    sums = noisy_sums(summary, weights, total_of(weights, summary.people), target, noise)
    return [Fraction(s, largest * n) + shift for s in sums]


def _stretch_shift(weights: IntArray, people: IntArray, target: Total) -> Fraction:
    """−origin·Σ(1 − ε_i/ε_max)/n."""
    return -target.origin * (1 - Fraction(total_of(weights, people), int(weights.max()) * int(people.sum())))


def _linear_stretch(calibration: StretchCalibration, people: IntArray, target: Total) -> Linear:
    """`_answer_stretch`, in floats."""
    weights, n = integer_weights(calibration.charges), int(people.sum())
    largest, scale = int(weights.max()), MICRO * target.sensitivity
    shift = _stretch_shift(weights, people, target)
    return Linear(weights / (largest * n), np.array([scale / (largest * n)]), shift, scale)


STRETCH = Method(Total, _calibrate_stretch, _predict_stretch, _answer_stretch, linear=_linear_stretch)
