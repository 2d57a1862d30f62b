"""Linear regression from noisy moments.

After [J] V-B, which perturbs the objective by the functional mechanism of Zhang et al. (2012): the squared
loss is a polynomial in ω whose coefficients are sums over people, and these are released with Laplace noise.

Neighbors  replace, or add-remove.
Releases   the weighted sums Σ_i c_i·T_e(z_i) of the entries of statistics/moments.py, in units of Q²
           (first-order entries times Q, the count times Q²), each with discrete Laplace noise of scale
           10⁶·S·Q²/w_e.
Guarantee  person i loses at most c_i, because Σ_e w_e·|T_e(z) − T_e(z′)| ≤ S·Q² for any two points z, z′
           (add-remove: Σ_e w_e·|T_e(z)|; members under replace: both). S is the sensitivity of
           statistics/moments.py. Where who is there, or has a value, is private, their number is one of the
           entries.
Boxes      Instead, moments may share noises: one box, or three (statistics/moment_boxes.py). Person i loses
           at most c_i by the proofs in docs/proofs/box.md. The plan takes the lowest predicted error.
Solution   Post-processing of the noisy moments (`moments.solve`). If predicted to be better, only y's mean is
           released, with the whole budget; that is decided from public things. Of members under replace it
           is Σc·y over Σc·Q: a change of value moves the first by 2cQ, coming in or going out both by cQ.
Error      E of `_expected_errors`, on the scale [−1, 1]²: how far predictions are from those without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from accord.budget import MICRO, PUBLIC, total_of
from accord.mechanisms import sample
from accord.mechanisms.additive import calibrate_by, integer_weights, reads_public_only
from accord.mechanisms.prediction import ErrorModel, Prediction, bias_bound
from accord.mechanisms.record import Calibration, ChargeRule, Method, Task
from accord.relation import ADD_REMOVE
from accord.statistics.encoding import Q
from accord.statistics.moment_boxes import KINDS, PARTS, MomentBoxes
from accord.statistics.moments import (
    EXPLAINED,
    NOISE_LEFT,
    code_variances,
    noise_costs,
    noise_variances,
    weights_for,
)
from accord.statistics.query import Answer, Interval
from accord.statistics.regression import Regression, RegressionTarget
from accord.statistics.target_sums import Products

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary


@dataclass(frozen=True, eq=False)
class RegressionCalibration(Calibration):
    """Of a regression in which people count by their charges."""

    mean_only: bool = False
    """Whether the slopes would be noise, so that they are not released."""


@dataclass(frozen=True, eq=False)
class BoxedRegressionCalibration(RegressionCalibration):
    """Of a regression whose moments share noises."""

    share: int = PARTS
    """How many parts of the charge are for the halves, if there are any,"""
    halves: bool = False
    """and whether there are."""

    def boxes(self, target: RegressionTarget) -> MomentBoxes:
        return replace(_one_box(target), share=self.share, halves=self.halves)


@dataclass(frozen=True, eq=False)
class SampledRegressionCalibration(sample.SampleCalibration):
    """Of a regression on people who are kept at random."""

    mean_only: bool = False


AnyCalibration: TypeAlias = RegressionCalibration | SampledRegressionCalibration
_C = TypeVar("_C", RegressionCalibration, BoxedRegressionCalibration, SampledRegressionCalibration)


def _noise_on_moments(
    target: RegressionTarget, calibration: AnyCalibration, inverse_weight: float
) -> dict[str, float]:
    """The variance of the noise on the moments, by kind."""
    if isinstance(calibration, BoxedRegressionCalibration):
        of_one = calibration.boxes(target).variances
        return {kind: float(variance) * inverse_weight**2 for kind, variance in of_one.items()}
    return noise_variances(target.query, float(target.sensitivity) * inverse_weight)


def _expected_errors(
    target: RegressionTarget, calibration: AnyCalibration, inverse_weight: float, squares: float
) -> tuple[float, float, float]:
    """E with slopes, of the slopes alone, and of the mean only, for 1/W and Σc²/W² (or that less 1/n)."""
    query: Regression = target.query
    m, noise = query.codes, _noise_on_moments(target, calibration, inverse_weight)
    variances, explained = code_variances(query), EXPLAINED / m
    costs = noise_costs(query)
    noise_of_slopes = sum(costs[kind] * noise[kind] for kind in KINDS if kind != "y")
    each = sum(1 / variance for variance in variances)
    slopes = 0.0
    for variance in variances:
        nu = noise_of_slopes / each
        nu += NOISE_LEFT * variance * squares
        slopes += explained * nu / (explained * variance + nu) if nu else 0.0
    sampling = NOISE_LEFT * squares
    mean = noise["y"] / (1 + 3 * noise["y"]) + sampling
    # of the mean alone, with the whole budget; of members, that of their number as well
    mean_noise = (16 if target.about_members else 8) * inverse_weight**2
    return slopes + mean, slopes, EXPLAINED + mean_noise / (1 + 3 * mean_noise) + sampling


def _with_decision(task: Task, calibration: _C, squares: float) -> _C:
    """With the noise, the decision whether slopes are worth it, and the warning."""
    inverse_weight = _inverse_weight(task, calibration)
    calibration = replace(calibration, noise_variance=task.noise_variance * inverse_weight**2)
    if inverse_weight == 0:  # only public people are read
        return calibration
    target = _target_of(task.target, calibration)
    full, slopes, mean = _expected_errors(target, calibration, inverse_weight, squares)
    if full >= mean:
        note = f"{calibration.note}; the slopes would be noise: only the mean of the target is released"
        return replace(calibration, mean_only=True, note=note)
    if 1 - slopes / EXPLAINED < 0.3:
        weak = "weak: less than half of what the features explain is expected to survive the noise"
        return replace(calibration, note=f"{calibration.note}; {weak}")
    return calibration


def by_charges(charge_rule: ChargeRule) -> Method:
    """A function of charges.py, for regressions."""
    calibrate_mean = calibrate_by(charge_rule)

    def calibrate(task: Task) -> Calibration:
        weighted = calibrate_mean(task)
        calibration = RegressionCalibration(weighted.charges, weighted.weights, 0.0, weighted.note)
        best = _with_decision(task, calibration, float(task.people @ weighted.weights**2))
        error = _error(task, best)
        for boxes in offered(task.target):
            shared = boxed(task, boxes)
            if shared.mean_only or reads_public_only(shared.charges):
                continue
            if (lower := _error(task, shared)) < error:
                best, error = shared, lower
        return best

    def boxed(task: Task, boxes: MomentBoxes) -> BoxedRegressionCalibration:
        """With the charges that are best for this noise."""
        costs, variances = noise_costs(boxes.query), boxes.variances
        noise_variance = sum(costs[kind] * float(variances[kind]) for kind in KINDS)
        task = replace(task, noise_variance=noise_variance)
        weighted = calibrate_mean(task)
        note = f"{weighted.note}; {boxes.note}"
        charges = weighted.charges, weighted.weights, 0.0, note
        made = BoxedRegressionCalibration(*charges, share=boxes.share, halves=boxes.halves)
        return _with_decision(task, made, float(task.people @ weighted.weights**2))

    return Method(Products, calibrate, _predict, _answer)


def _one_box(target: RegressionTarget) -> MomentBoxes:
    """For all moments."""
    values_change = target.about_members or target.relation.people_are_public
    return MomentBoxes(target.query, values_change, target.counts_people)


def offered(target: RegressionTarget) -> list[MomentBoxes]:
    """The boxes to choose among: one, and halves with the share that is best where noise is small.

    Of three columns or more it is halves alone: what one box gains on products is lost where they are shrunk.
    """
    one, costs = _one_box(target), noise_costs(target.query, shrunk=True)
    if target.query.codes == 1:
        return [one]
    halves = one.in_halves(costs)
    return [one, halves] if target.query.codes == 2 else [halves]


def _error(task: Task, calibration: RegressionCalibration) -> float:
    """The predicted squared error about the population, on the scale [−1, 1]²."""
    squares = float(task.people @ calibration.weights**2)
    full, _, mean = _expected_errors(task.target, calibration, _inverse_weight(task, calibration), squares)
    return mean if calibration.mean_only else full


def _calibrate_sampled(task: Task) -> Calibration:
    """Row by row, with the t at which t·Σπ is largest, unless the user gave one."""
    if task.t in (None, "best"):
        coarse = sample.coarsened(task)

        def weight(t: int) -> tuple[bool, float]:
            pi = sample.probabilities(coarse.levels, t, task.relation)
            return t == PUBLIC, t * float(coarse.people @ pi)

        task = replace(task, t=max(sample.levels_to_try(task), key=weight))
    kept = sample.calibrate(task)
    calibration = SampledRegressionCalibration(
        kept.charges, kept.weights, kept.noise_variance, kept.note, kept.keep, kept.t
    )
    return _with_decision(task, calibration, 1 / _expected_number(task, calibration))


def _target_of(target: RegressionTarget, calibration: AnyCalibration) -> RegressionTarget:
    """What is answered: of those who are kept at random, under add-remove, whatever the relation."""
    is_sampled = isinstance(calibration, SampledRegressionCalibration)
    return RegressionTarget(target.query, ADD_REMOVE) if is_sampled else target


def _expected_number(task: Task, calibration: SampledRegressionCalibration) -> float:
    """Σπ: how many people of a sample are kept, on average."""
    return float(task.people @ (calibration.keep / float(sample.SURE)))


def _inverse_weight(task: Task, calibration: AnyCalibration) -> float:
    """1/W, what the size of the noise is a multiple of; 0 where only public people are read."""
    if isinstance(calibration, SampledRegressionCalibration):
        if calibration.t == PUBLIC:
            return 0.0
        # those who are kept are answered about at s; Σπ stands for how many they are
        s = sample.inner_level(calibration.t, task.relation)
        return 1 / (s * _expected_number(task, calibration))
    if reads_public_only(calibration.charges):
        return 0.0
    return MICRO / float(total_of(integer_weights(calibration.charges), task.people))


def _predict(task: Task, calibration: AnyCalibration) -> Prediction:
    target = _target_of(task.target, calibration)
    squares = float(task.people @ calibration.weights**2)
    inverse_weight = _inverse_weight(task, calibration)
    if isinstance(calibration, SampledRegressionCalibration):
        squares = max(squares, 1 / _expected_number(task, calibration))

    def rmse(squares: float) -> float:
        full, _, mean = _expected_errors(target, calibration, inverse_weight, squares)
        return float(target.query.half * sqrt(mean if calibration.mean_only else full))

    here = rmse(max(0.0, squares - 1 / task.total))
    noise_size = inverse_weight * (1.0 if calibration.mean_only else float(_size_of(calibration, target)))
    error_model = AroundPrediction(
        rmse(squares), here, 2 * target.query.half, noise_size if target.counts_people else 0.0
    )
    return Prediction(rmse(squares), here, bias_bound(task, calibration), error_model)


def _size_of(calibration: AnyCalibration, target: RegressionTarget) -> Fraction:
    """What is released as the size of the noise, times W."""
    return Fraction(1) if isinstance(calibration, BoxedRegressionCalibration) else target.sensitivity


@dataclass(frozen=True)
class AroundPrediction(ErrorModel):
    """How far predictions are off, also where fewer people are there than could be."""

    rmse: float
    """About the population, if all are there,"""
    rmse_here: float
    """about these people,"""
    most: float
    """and at most."""
    noise_size: float
    """The released size of the noise, if all are there; 0: they are."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        times = NormalDist().inv_cdf((1 + confidence) / 2)
        half = min(self.most, times * self.rmse_here * self._times_larger(released))
        return -half, half

    def errors_of(self, released: Sequence[Fraction]) -> tuple[float, float]:
        times = self._times_larger(released)
        return min(self.most, self.rmse * times), min(self.most, self.rmse_here * times)

    def _times_larger(self, released: Sequence[Fraction]) -> float:
        """What was released first is the size of the noise for as many as there seem to be."""
        return max(1.0, float(released[0]) / self.noise_size) if self.noise_size else 1.0


def _answer(
    summary: Summary, calibration: AnyCalibration, target: RegressionTarget, noise: Noise
) -> list[Fraction]:
    """The noise's size S/W, and the noisy moments, of `Codes.products`; or 1/W, and that of y alone.

    Where they share noises it is 1/W, the variances of the noise by kind, and the moments as in the boxes.
    """
    query, answered = target.query, _target_of(target, calibration)
    if isinstance(calibration, SampledRegressionCalibration):  # those who are kept count the same
        is_exact = calibration.t == PUBLIC
        weights = np.ones(summary.people.size, dtype=np.int64)
        unit = Fraction(1) if is_exact else Fraction(MICRO, calibration.t) / target.relation.inner
        total = sample.expected(calibration, summary)
    else:
        is_exact = reads_public_only(calibration.charges)
        weights = integer_weights(calibration.charges)
        unit = Fraction(1 if is_exact else MICRO)
        total = Fraction(total_of(weights, summary.people))
    *sums, count = summary.weighted(weights)  # the last is of people who are there

    def noisy(value: int, scale: Fraction) -> Fraction:
        return Fraction(value) if is_exact else Fraction(value + noise.laplace(scale * Q * Q * unit))

    noise_size = Fraction(0) if is_exact else unit / total
    if calibration.mean_only:
        return _noisy_mean(sums[0], count, total, answered, noisy, noise_size)
    if isinstance(calibration, BoxedRegressionCalibration) and not is_exact:
        return _share_noises(calibration.boxes(answered), sums, count, int(total), noise)
    s, w = answered.sensitivity, weights_for(query.codes)
    moments = [
        noisy(value, s / getattr(w, entry.kind))
        for value, entry in zip(sums, query.encoding.products, strict=True)
    ]
    divisor = total * Q * Q
    if answered.counts_people:
        least = Fraction(1) if is_exact else s / w.count * Q * Q * unit  # as much as the noise
        divisor = max(noisy(Q * Q * count, s / w.count), least)
        noise_size = noise_size * total * Q * Q / divisor
    return [noise_size * s, *(value / divisor for value in moments)]


def _share_noises(
    boxes: MomentBoxes, sums: Sequence[int], count: int, total: int, noise: Noise
) -> list[Fraction]:
    """1/W, the variances of the noise on each kind of moment, and the noisy sums of each box, over W."""
    present = Q * Q * (count if boxes.counts_people else total)
    noisy = []
    for box, inside in zip(boxes.boxes, boxes.sums(sums, present), strict=True):
        drawn = noise.box(box.spans, MICRO * box.scale)
        noisy.append([value + z for value, z in zip(inside, drawn, strict=True)])
    divisor = Fraction(present)
    if boxes.counts_people:
        divisor = max(boxes.count_of(noisy), MICRO * boxes.count_noise)
        if not boxes.halves:
            noisy[0].pop()  # the divisor
    size = Q * Q * MICRO / divisor
    variances = [boxes.variances[kind] * size**2 for kind in KINDS]
    return [size, *variances, *(value / divisor for inside in noisy for value in inside)]


def _noisy_mean(
    y: int,
    count: int,
    total: Fraction,
    target: RegressionTarget,
    noisy: Callable[[int, Fraction], Fraction],
    noise_size: Fraction,
) -> list[Fraction]:
    """The noise's size, and the mean of y with the whole budget: two values are 2Q² apart.

    Where who is there is private, from Σc(Q² + y) and Σc(Q² − y), to which a person adds 2Q² in all; of
    members under replace, from Σc·y and Σc·Q².
    """
    scale = Fraction(2)
    if not target.counts_people:
        return [noise_size, noisy(y, scale) / (total * Q * Q)]
    if target.about_members:
        above, present = noisy(y, scale), noisy(Q * Q * count, scale)
    else:
        plus, minus = (noisy(Q * Q * count + sign * y, scale) for sign in (1, -1))
        above, present = (plus - minus) / 2, (plus + minus) / 2
    least = scale * Q * Q * noise_size * total  # as much as the noise
    mean = above / present if present > 0 else Fraction(0)
    noise_size = noise_size * total * Q * Q / max(present, least) if noise_size else noise_size
    return [noise_size, min(Fraction(1), max(Fraction(-1), mean))]


SAMPLED = Method(Products, _calibrate_sampled, _predict, _answer, keeps_rows=True)
