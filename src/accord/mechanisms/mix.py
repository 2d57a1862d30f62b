"""Mix: a separate answer for each level, combined. [F] §2; LDPE of [C] IV-A.

Neighbors  replace.
Releases   for each level j, S_j + Z_j with S_j the sum over the people of that level and Z_j discrete Laplace
           of scale s/ε_j, s being the target's sensitivity; then Σ_j β_j·(S_j + Z_j)/n_j, which is
           post-processing. A public level has no noise.
Guarantee  person i of level j loses exactly ε_j: they are in S_j alone, which they move by at most s.
Error      with V_j = σ²/n_j + v/(n_j·ε_j)²: the weights β_j ∝ 1/V_j give 1/Σ(1/V_j) about the population.
Deviates   [F] writes the noise for values in [−r, r] as r/ε_j although n is public; under replace the
           sensitivity is the whole width, and r would lose 2ε_j. Here it is the width.

Quantiles are chosen for each level by the exponential mechanism (rank.py with everyone at ε_j), and the
points averaged with β_j ∝ 1/(p(1−p)/n_j + 8/(n_j·ε_j)²), the variances of ranks; [F] takes the mean's β. The
average of points is post-processing.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray
from accord.mechanisms.prediction import AroundRank, Fixed, Prediction, errors, predict
from accord.mechanisms.rank import ANYWHERE, few_who_count, select
from accord.mechanisms.record import Calibration, Linear, Method, Refused, Task, frozen
from accord.statistics.spread import Spread
from accord.statistics.target import Additive, Quantiles
from accord.theory import as_floats

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

_MOST_LEVELS = 1_000


def _calibrate(task: Task) -> Calibration:
    n, levels = task.people.astype(np.float64), as_floats(task.levels)
    noise = task.noise_variance / (n * levels) ** 2
    beta = 1 / (task.variance / n + noise)
    beta /= beta.sum()
    return Calibration(
        task.levels, frozen(beta / n), float(beta**2 @ noise), f"{n.size} separate answers, combined"
    )


def _predict(task: Task, calibration: Calibration) -> Prediction:
    return predict(task, calibration, several=True)


def _answer(summary: Summary, calibration: Calibration, target: Additive, noise: Noise) -> list[Fraction]:
    weights = [Fraction(w) for w in calibration.weights.tolist()]
    whole = sum(w * n for w, n in zip(weights, summary.people.tolist(), strict=True))
    sums: list[Fraction] = [Fraction(0)] * target.released
    for level, weight, people, row in zip(
        calibration.charges.tolist(), weights, summary.people.tolist(), summary.rows(), strict=True
    ):
        if not weight:
            continue
        own = target.sums(row, people)
        for k in range(1 if target.complementary else len(own)):
            own[k] += 0 if level == PUBLIC else noise.laplace(Fraction(MICRO * target.sensitivity, level))
        if target.complementary:
            own[1] = people - own[0]
        sums = [s + weight * x for s, x in zip(sums, own, strict=True)]
    return [s / whole for s in sums]


def _law(calibration: Calibration, people: IntArray, target: Additive) -> Linear:
    """Of `_answer`, in floats."""
    c = calibration.charges
    weights = calibration.weights / float(people @ calibration.weights)
    noisy = (c < PUBLIC) & (weights > 0)
    drawn = MICRO * target.sensitivity / c[noisy]
    scales = weights[noisy] * MICRO * target.sensitivity / c[noisy]
    return Linear(weights, scales, coarsest=float(drawn.min(initial=inf)))


def _calibrate_ranks(task: Task) -> Calibration:
    if task.levels.size > _MOST_LEVELS:
        raise Refused(
            f"would choose a point for each of {task.levels.size} levels; more than {_MOST_LEVELS} are too "
            "many"
        )
    found = _calibrate(task)
    note = (
        found.note
        if _is_safe(task)
        else f"{found.note}; one of them {ANYWHERE}, and takes the average with it"
    )
    return replace(found, note=note)


def _predict_ranks(task: Task, calibration: Calibration) -> Prediction:
    """As for a mean, where every level is sure of its own. An average of points lies between the lowest and
    the highest of them, so that an interval which holds all of them holds it, whatever the values are."""
    target: Quantiles = task.target
    n, levels, outputs = task.people.astype(np.float64), as_floats(task.levels), target.outputs
    of_mean = errors(task, calibration, several=True)
    if not _is_safe(task):
        off = 100 * sqrt(float(sum(max(p, 1 - p) ** 2 for p in target.ps)) / outputs)
        return Prediction(off, off, of_mean.bias_bound, Fixed(target.possible(task.total)))
    squares = float(task.people @ calibration.weights**2)
    rmse, here = few_who_count(of_mean.rmse, of_mean.rmse_here, squares, task.total)
    scale = 2 * outputs * float((1 / (n * levels)).max())
    spread = Spread(
        sampling=100 * sqrt(target.max_variance * float((1 / n).max())),
        laplace=100 * scale,
        several=True,
        extra=100 * scale * log(target.points),
    )
    centres = tuple(100 * float(p) for p in target.ps)
    return Prediction(
        rmse, here, of_mean.bias_bound, AroundRank(spread, centres, target.listed, looks=n.size)
    )


def _is_safe(task: Task) -> bool:
    """Whether no level may land anywhere: see rank.py."""
    least = float(min(min(p, 1 - p) for p in task.target.ps))
    weakest = float((task.people * np.minimum(as_floats(task.levels), 1e9)).min())
    return bool(weakest * least >= 2 * task.target.outputs * log(task.target.points / 0.01))


def _answer_ranks(
    summary: Summary, calibration: Calibration, target: Quantiles, noise: Noise
) -> list[Fraction]:
    weights = [
        Fraction(w) * n for w, n in zip(calibration.weights.tolist(), summary.people.tolist(), strict=True)
    ]
    points = [Fraction(0)] * target.outputs
    for j, (level, weight) in enumerate(zip(calibration.charges.tolist(), weights, strict=True)):
        if not weight:
            continue
        alone = np.zeros_like(summary.people)
        alone[j] = 1 if level == PUBLIC else level
        at = summary.at_points(alone)
        scale = None if level == PUBLIC else Fraction(2 * target.outputs * MICRO)
        points = [x + weight * select(at, p, noise, scale) for x, p in zip(points, target.ps, strict=True)]
    return [x / sum(weights) for x in points]


MEANS = Method(Additive, _calibrate, _predict, _answer, needs_size=True, law=_law)
RANKS = Method(Quantiles, _calibrate_ranks, _predict_ranks, _answer_ranks, needs_size=True)
