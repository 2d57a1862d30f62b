"""Mix: a separate answer for each level, combined. [F] §2; LDPE of [C] IV-A.

Neighbors  replace.
Releases   for each level j, S_j + Z_j with S_j the sum over the people of that level and Z_j discrete Laplace
           of scale s/ε_j, s being the target's sensitivity; then Σ_j β_j·(S_j + Z_j)/n_j, which is
           post-processing. A public level has no noise.
Guarantee  person i of level j loses exactly ε_j: they are in S_j alone, which they move by at most s.
Members    of a private part (`where=`, or whoever has a value): S_j are the two sums of a mean of members,
           and the answer is the ratio of what the levels combine to; n_j, everyone of a level, is public.
Error      with V_j = σ²/n_j + v/(n_j·ε_j)²: the weights β_j ∝ 1/V_j give 1/Σ(1/V_j) about the population.
Deviates   [F] writes the noise for values in [−r, r] as r/ε_j although n is public; under replace the
           sensitivity is the whole width, and r would lose 2ε_j. Here it is the width.
Quantiles  are chosen for each level by the exponential mechanism (rank.py with everyone at ε_j), and the
           points averaged, which is post-processing, with β_j ∝ 1/(p(1−p)/n_j + 8/(n_j·ε_j)²), the variances
           of ranks; [F] takes the mean's β.
           One choice that lands anywhere takes the average with it. So a level whose own choice may, by the
           rule of rank.py (n_j·ε_j·min(p, 1−p) < 2J·ln(K/0.01)), is not read, and its people are charged
           nothing. That goes by the levels and the question alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO, PUBLIC, IntArray
from accord.mechanisms.prediction import AroundRank, ChernoffRank, ErrorModel, Prediction, errors, predict
from accord.mechanisms.rank import ANYWHERE
from accord.mechanisms.rank_choice import select
from accord.mechanisms.rank_errors import FEWEST, few_who_count
from accord.mechanisms.record import Calibration, Linear, Method, Refused, Task, frozen
from accord.mechanisms.size import MISS, most_people
from accord.statistics import Ends
from accord.statistics.spread import Spread
from accord.statistics.target_ranks import Quantiles
from accord.statistics.target_sums import Additive
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
    note = f"{n.size} separate answers, combined" if n.size > 1 else "one answer"
    return Calibration(task.levels, frozen(beta / n), float(beta**2 @ noise), note)


def _predict(task: Task, calibration: Calibration) -> Prediction:
    return predict(task, calibration, several=True)


def _answer(summary: Summary, calibration: Calibration, target: Additive, noise: Noise) -> list[Fraction]:
    weights = [Fraction(w) for w in calibration.weights.tolist()]
    total = sum(w * n for w, n in zip(weights, summary.people.tolist(), strict=True))
    combined: list[Fraction] = [Fraction(0)] * target.released
    for level, weight, people, row in zip(
        calibration.charges.tolist(), weights, summary.people.tolist(), summary.rows(), strict=True
    ):
        if not weight:
            continue
        sums = target.sums(row, people)
        for k in range(1 if target.complementary else len(sums)):
            sums[k] += 0 if level == PUBLIC else noise.laplace(Fraction(MICRO * target.sensitivity, level))
        if target.complementary:
            sums[1] = people - sums[0]
        combined = [x + weight * s for x, s in zip(combined, sums, strict=True)]
    return [x / total for x in combined]


def _linear(calibration: Calibration, people: IntArray, target: Additive) -> Linear:
    """`_answer`, in floats."""
    levels = calibration.charges
    weights = calibration.weights / float(people @ calibration.weights)
    noisy = (levels < PUBLIC) & (weights > 0)
    drawn = MICRO * target.sensitivity / levels[noisy]
    scales = weights[noisy] * MICRO * target.sensitivity / levels[noisy]
    return Linear(weights, scales, smallest_scale=float(drawn.min(initial=inf)))


def _calibrate_ranks(task: Task) -> Calibration:
    is_read = _is_safe(task)
    if not is_read.any():
        raise Refused(f"no level has enough people: of each, the choice {ANYWHERE}")
    read = replace(task, levels=task.levels[is_read], people=task.people[is_read])
    if read.levels.size > _MOST_LEVELS:
        raise Refused(
            f"would choose a point for each of {read.levels.size} levels; "
            f"more than {_MOST_LEVELS} are too many"
        )
    calibration = _calibrate(read)
    if is_read.all():
        return calibration
    left_out = int(task.people[~is_read].sum()) / task.total
    note = f"{calibration.note}; {left_out:.1%} of the people are of levels with too few, and are not read"
    return replace(calibration, note=note).placed(np.flatnonzero(is_read), task.levels.size)


def _predict_ranks(task: Task, calibration: Calibration) -> Prediction:
    """As for a mean: every level that is read is sure of its own.

    An average of points lies between the lowest and the highest of them, so that an interval which holds all
    of them holds it, whatever the values are.
    """
    target: Quantiles = task.target
    is_read, outputs = calibration.weights > 0, target.outputs
    n, levels = task.people_as_floats[is_read], as_floats(task.levels[is_read])
    of_mean = errors(task, calibration, several=True)
    squares = float(task.people @ calibration.weights**2)
    rmse, here = few_who_count(of_mean.rmse, of_mean.rmse_here, squares, task.total)
    scale = 2 * outputs * float((1 / (n * levels)).max())
    # each is about its own level, whose distribution function may be a whole gap from that of all
    kappa = 0.0 if task.levels.size == 1 and not task.unread else 1.0
    bias = 100 * kappa * sqrt(task.squared_bias / outputs)
    rmse, here = (sqrt(error**2 - of_mean.bias**2 + bias**2) for error in (rmse, here))
    spread = Spread(
        sampling=100 * sqrt(target.max_variance * float((1 / n).max())),
        laplace=100 * scale,
        several=True,
        extra=100 * scale * log(target.total_times),
        bias=100 * kappa * task.largest_bias,
    )
    centres = tuple(100 * float(p) for p in target.ps)
    error_model: ErrorModel = AroundRank(spread, centres, target.listed, choices=n.size)
    if float(n.min()) * min(min(p, 1 - p) for p in target.ps) < FEWEST:
        ends = partial(_ends_of_few, target, n, levels, task.total)
        error_model = ChernoffRank(ends, target.listed, spread.bias)
    return Prediction(rmse, here, kappa, error_model, bias)


def _ends_of_few(
    target: Quantiles, n: NDArray[np.float64], levels: NDArray[np.float64], total: int, alpha: float
) -> list[Ends]:
    """Percentiles between which the choices of all levels lie, but for a probability of alpha.

    Where few people of a level are on one side of its choice a normal law is no good model. By the steps 2
    and 3 of size.py, level by level: its n_j people have one weight, and all others none.
    """
    outputs = target.outputs
    each = alpha / n.size / outputs
    off = 2 * outputs / (n * levels) * (log(2 / each) + log(target.total_times))
    choices = list(zip(n.tolist(), off.tolist(), strict=True))

    def most(p: float) -> float:
        return max(
            most_people(p + of_choice, people, float(people == total), log(4 / each))
            for people, of_choice in choices
        )

    return [(100 * (1 - most(float(1 - p))), 100 * most(float(p))) for p in target.ps]


def _is_safe(task: Task) -> NDArray[np.bool_]:
    """Of which levels an answer with everyone on one side of it is improbable: see rank.py."""
    smaller_side = float(min(min(p, 1 - p) for p in task.target.ps))
    weights = task.people * np.minimum(as_floats(task.levels), 1e9)
    safe: NDArray[np.bool_] = weights * smaller_side >= 2 * task.target.outputs * log(
        task.target.total_times / MISS
    )
    return safe


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
        only_this_level = np.zeros_like(summary.people)
        only_this_level[j] = 1 if level == PUBLIC else level
        at_points = summary.at_points(only_this_level)
        scale = None if level == PUBLIC else Fraction(2 * target.outputs * MICRO)
        chosen = [select(at_points, p, noise, scale, times=target.times) for p in target.ps]
        points = [x + weight * point for x, point in zip(points, chosen, strict=True)]
    return [x / sum(weights) for x in points]


MEANS = Method(Additive, _calibrate, _predict, _answer, linear=_linear)
RANKS = Method(Quantiles, _calibrate_ranks, _predict_ranks, _answer_ranks, needs_size=True)
