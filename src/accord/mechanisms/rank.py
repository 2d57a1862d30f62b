"""Rank: quantiles by weighted rank.

Ours; it answers the question that closes [F], how to weigh people of different levels in a median.

Neighbors  replace: one person's value changes, the number of people and all levels stay; or add-remove.
Releases   a point r of the grid with probability ∝ exp(score(r)/2), drawn exactly, where with W = Σc
               score(r) = −max(0, Σ_{x<r} c − p·W, Σ_{x>r} c − (1−p)·W)
           is minus the weight that lies on the wrong side of r. J quantiles have exp(score(r)/2J) each.
Weights    are the charges c; where only public people are read each counts 1, and the best point is taken.
Guarantee  person i loses at most c_i.
           *Replace.* Changing x_i moves both sums by at most c_i, so the maximum by at most c_i, while W
           stays; the exponential mechanism then loses 2·c_i/2J for each quantile, c_i for all.
           *Add-remove.* A person who comes or goes moves W as well, and with it a score by at most
           m_p·c_i, m_p = max(p, 1−p); so it is exp(score(r)/(2J·m_p)).
Size       Where the number of people is private (add-remove, private groups, `where=`), W + Z is released
           with the points, Z discrete Laplace, so that there can be an interval (size.py).
           *Add-remove*, which private groups under replace have at half the charge: W moves by c_i, and Z
           has the scale 10, which loses c_i/10. The choices are made at nine tenths of every charge,
           exp(9/10·score(r)/(2J·m_p)), which lose 9/10·c_i for all J. Both are functions of the same data
           with independent noise, so that losses add up (sequential composition): c_i.
           *One private `where=` under replace* (`about_members`): somebody whose value changes moves every
           score by at most c_i, and leaves W; somebody who comes in or goes out moves the score of p by at
           most m_p·c_i, and W by c_i. With choices exp(θ·score(r)/2J) and Z of scale 1/φ the first loses
           θ·c_i and the second (θ·m + φ)·c_i, m being the mean of the m_p. So θ = min(1, 9/10/m) and
           φ = 1 − θ·m lose at most c_i: the median keeps the whole charge (θ = 1, φ = 1/2), and nothing is
           halved.
           Scales of choices are rounded up to whole numbers: losses only shrink.
Error      on the scale of ranks (1 is everyone): the weighted rank of p differs from the rank by a variance
           of p(1−p)·Σc²/W², and the choice falls off as exp(−|rank|·W/2), a Laplace law of variance 8/W²
           (8J²/W²) where the points near the quantile are dense. So the charges of charges.py fit here with
           the constant 8/(p(1−p)) in the place of 2Δ²/σ²: `rank` is `affine` with it, and distribution-free.
           Whatever the values are, P(score ≤ −a) ≤ K·exp(−a/2J) for K points: that bounds the error where W
           is small, when the answer may land anywhere in the bounds, and it is in every interval.
Rounded    values: with `rounded=` points count several times, public numbers t(r), and the choice is with
           probability ∝ t(r)·exp(score(r)/2). The proof stays, and K becomes Σt (statistics/rounding.py).
Brackets   for an interval in values are two more choices for each quantile, with 3J for J above: brackets.py.
Gap        Where levels may go with values, weighted ranks are off by at most κ·D for distribution functions
           of levels that lie D apart: a bias in the same unit, so that `robust` is the best charge here, too,
           and intervals are wider by it. (What Chernoff's bounds say about chance is for random levels.)
Min, max   are the quantile p* = 2·ln(K/0.05)/W from the end (with 9/10·W where a size is released): far
           enough in that, with probability 95 %, the answer is not beyond everyone. `threshold` takes the t
           of the lowest error that is predicted for that, 100·p* and the error about it, and not that of a
           mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, inf, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import MICRO, IntArray, total_of
from accord.mechanisms.additive import calibrate_by, integer_weights, reads_public_only
from accord.mechanisms.brackets import Brackets, WithBrackets, brackets
from accord.mechanisms.prediction import (
    AroundRank,
    ChernoffRank,
    ErrorModel,
    Prediction,
    bias_bound,
    errors,
)
from accord.mechanisms.record import Calibration, ChargeRule, Method, Task
from accord.mechanisms.size import BEYOND, BySize
from accord.statistics import Ends
from accord.statistics.ranks import SIZE_PART, Spending, spending
from accord.statistics.spread import Spread
from accord.statistics.target import Extremes, Quantiles, Ranks
from accord.theory import as_floats, threshold_errors

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

ANYWHERE = "may land anywhere in the bounds"


@dataclass(frozen=True, eq=False)
class RankCalibration(Calibration):
    """Of a choice by weighted ranks."""

    ps: tuple[Fraction, ...]
    """The quantiles that are chosen; of min and max, the one that stands for them."""
    brackets: Brackets | None = None
    """What else is drawn beside each of them, for an interval in values."""


def weighted_rank(charge_rule: ChargeRule) -> Method:
    """A function of charges.py, for quantiles."""
    calibrate_mean = calibrate_by(charge_rule)

    def calibrate(task: Task) -> RankCalibration:
        target: Ranks = task.target
        if isinstance(target, Quantiles):
            weighted, ps = calibrate_mean(task), target.ps
        else:
            weighted, ps = _extreme(calibrate_mean, task)
        calibration = RankCalibration(
            weighted.charges, weighted.weights, weighted.noise_variance, weighted.note, ps
        )
        by_size, weight = _by_size(task, calibration, _spending(target, ps)), _total_weight(calibration, task)
        if target.in_values:
            beside = brackets(by_size, weight, task.groups * weight, target.tells_size)
            calibration = replace(calibration, brackets=beside)
        if not by_size.is_safe(weight):
            return replace(calibration, note=f"{calibration.note}; {ANYWHERE}")
        if calibration.noise_variance and isinstance(target, Extremes):
            rarely = "beyond everyone at most once in 20" + (" if all are there" if target.tells_size else "")
            return replace(calibration, note=f"{calibration.note}, {rarely}")
        return calibration

    return Method((Quantiles, Extremes), calibrate, _predict, _answer, draws_brackets=True)


@dataclass(frozen=True)
class RankErrors:
    """The parts of a choice's error, in percentile points."""

    rmse: float
    rmse_here: float
    bias_bound: float
    bias: float
    spread: Spread
    by_size: BySize
    is_sparse: bool
    """Whether so few people, or few that count, are on one side that a normal law is no good model."""


def rank_errors(task: Task, calibration: RankCalibration, spent: Spending) -> RankErrors:
    """By the docstring above; the worst case where the answer may land anywhere."""
    target: Ranks = task.target
    ps = calibration.ps
    variance = float(sum(p * (1 - p) for p in ps))
    of_mean = errors(replace(task, variance=variance), calibration)
    weight = _total_weight(calibration, task)
    squares = float(task.people @ calibration.weights**2)
    rmse, here = few_who_count(of_mean.rmse, of_mean.rmse_here, squares, task.total)
    by_size = _by_size(task, calibration, spent)
    spread = replace(
        of_mean.spread,
        sampling=of_mean.spread.sampling * sqrt(_largest_variance(target, ps) / target.max_variance),
        laplace=of_mean.spread.laplace / target.smooth_cost,  # which the next line holds for
        extra=100 * max(by_size.choice_scales) * log(target.total_times) / weight,
        ceiling=inf,
    )
    is_sparse = isinstance(target, Extremes) or float(min(min(p, 1 - p) for p in ps)) < 30 * squares
    return RankErrors(
        by_size.at_worst(rmse, weight),
        by_size.at_worst(here, weight),
        of_mean.bias_bound,
        of_mean.bias,
        spread,
        by_size,
        is_sparse,
    )


def _largest_variance(target: Ranks, ps: tuple[Fraction, ...]) -> float:
    """p(1 − p) at most, of any of the quantiles and any level: theirs may lie a gap away from p."""
    gap = target.gap or 0.0
    return max(q * (1 - q) for q in (min(0.5, float(min(p, 1 - p)) + gap) for p in ps))


def _predict(task: Task, calibration: RankCalibration) -> Prediction:
    """The error and the interval of a choice by weighted ranks."""
    target: Ranks = task.target
    of_choice = rank_errors(task, calibration, _spending(target, calibration.ps))
    listed = of_choice.by_size.listed
    error_model: ErrorModel
    if target.tells_size:
        error_model = of_choice.by_size
    elif of_choice.is_sparse:
        ends = partial(_chernoff_ends, task, calibration, of_choice.by_size)
        error_model = ChernoffRank(ends, listed, of_choice.spread.bias)
    else:
        error_model = AroundRank(of_choice.spread, tuple(100 * float(p) for p in calibration.ps), listed)
    if calibration.brackets is not None:
        error_model = WithBrackets(error_model, calibration.brackets)
    return Prediction(of_choice.rmse, of_choice.rmse_here, of_choice.bias_bound, error_model, of_choice.bias)


def _spending(target: Ranks, ps: tuple[Fraction, ...]) -> Spending:
    return spending(ps, target.relation, target.tells_size, target.draws)


def _by_size(task: Task, calibration: RankCalibration, spent: Spending) -> BySize:
    target: Ranks = task.target
    weights = calibration.weights * _total_weight(calibration, task)
    has_noise = calibration.noise_variance > 0
    everyone_is_read = int(task.people.sum()) == task.total
    heaviest = float(weights.max())
    return BySize(
        calibration.ps,
        choice_scales=tuple(float(scale) if has_noise else 0.0 for scale in spent.choices),
        size_scale=float(spent.size) if spent.size and has_noise else 0.0,
        points=target.total_times,
        heaviest=heaviest,
        evenness=float(weights.min()) / heaviest if everyone_is_read else 0.0,
        typical=float(task.people @ weights**2) / float(task.people @ weights),
        extreme=isinstance(target, Extremes),
        listed=isinstance(target, Quantiles) and target.listed,
        smooth_cost=target.smooth_cost,
        bias=task.largest_bias * bias_bound(task, calibration) if task.largest_bias else 0.0,
    )


def few_who_count(rmse: float, here: float, squares: float, people: int) -> tuple[float, float]:
    """Errors with those of a small sample added, for Σw² = `squares`.

    With few who count, a quantile far out is the end of m = 1/Σw² of them, and E[U₍₁₎²] ≈ 2/m².
    """
    squares_here = max(0.0, squares - 1 / people)
    return sqrt(rmse**2 + 2 * (100 * squares) ** 2), sqrt(here**2 + 2 * (100 * squares_here) ** 2)


def _chernoff_ends(task: Task, calibration: RankCalibration, by_size: BySize, alpha: float) -> list[Ends]:
    """Percentiles between which the answers lie where few people, or few that count, are on one side.

    By Chernoff's bound, not by a normal law: with probability 1 − α/2 the weight below each answer is at most
    p·W + a, and above it (1 − p)·W + a, for a = b·ln(2JK/α), b being the scale of the choices (2J, and 6J
    with brackets). The weights of the k people with the lowest values are k draws without replacement from
    all weights, for which P(they weigh at most v) ≤ exp(λ·v)·E[exp(−λc)]^k for every λ > 0 (Hoeffding 1963,
    Theorem 4). With the k that makes this α/4J at v = p·W + a, fewer than k are below the answer. Likewise
    above.
    """
    target: Ranks = task.target
    n, total, outputs = task.total, _total_weight(calibration, task), target.outputs
    unread = n - int(task.people.sum())  # they weigh nothing
    weights = np.append(calibration.weights * total, [0.0] if unread else [])
    shares = np.append(task.people, [unread] if unread else []) / n
    lightest = weights.min()  # taken out of E[exp(−λc)], which would be 0 for large λ

    def most_people(weight: float, alpha: float) -> float:
        """A fraction of the people that weighs more than `weight`, but for a probability of alpha."""
        rates = np.geomspace(1e-4, 1e4, 81) / weights.max()  # λ
        means = np.array([shares @ np.exp(-rate * (weights - lightest)) for rate in rates])
        people = (rates * weight + log(1 / alpha)) / (rates * lightest - np.log(means))
        return min(1.0, float(people.min()) / n)

    off = max(by_size.choice_scales) * log(2 * outputs * target.total_times / alpha)
    tail = alpha / (4 * outputs)
    above = [most_people(float(1 - p) * total + off, tail) for p in calibration.ps]
    below = [most_people(float(p) * total + off, tail) for p in calibration.ps]
    return [(100 * (1 - a), 100 * b) for a, b in zip(above, below, strict=True)]


def select(
    weights: Any,
    p: Fraction,
    noise: Noise,
    scale: Fraction | None,
    offset: int = 0,
    times: IntArray | None = None,
) -> int:
    """A point with probability ∝ exp(score/scale), for the weights at the points.

    Weights, scale and offset are in millionths. Without a scale, the best point. `offset`: how much more
    weight is to be below it than p·W. `times`: how many times each point counts; None: once.
    """
    a, b = p.numerator, p.denominator
    occupied = np.flatnonzero(weights)  # all points between two of them have one score
    total = int(weights[occupied].sum())
    is_large = b * (total + abs(offset)) >= 2**62
    run_weights = np.zeros(2 * occupied.size + 1, dtype=object if is_large else np.int64)
    run_weights[1::2] = weights[occupied]
    up_to = np.cumsum(run_weights)
    below, above = up_to - run_weights, total - up_to
    run_lengths = np.ones(run_weights.size, dtype=np.int64)
    run_lengths[::2] = np.diff(occupied, prepend=-1, append=weights.size) - 1
    aim = a * total + b * offset  # this and the next, times b
    wrong_side = np.maximum(np.maximum(b * below - aim, b * above - (b * total - aim)), 0)
    scores = np.repeat(-wrong_side, run_lengths)
    if scale is None:
        best = np.flatnonzero(scores == scores.max())
        return int(best[best.size // 2])
    return choice(noise, scores, ceil(scale * b), times)


def choice(noise: Noise, scores: Any, scale: int, times: IntArray | None) -> int:
    """An index with probability ∝ exp(score/scale), each there so many times; None: once."""
    return noise.choose(scores, scale) if times is None else noise.choose(scores, scale, times)


def chosen(
    weights: Any,
    ps: tuple[Fraction, ...],
    noise: Noise,
    spent: Spending,
    without_noise: bool,
    beside: Brackets | None = None,
    times: IntArray | None = None,
) -> list[Fraction]:
    """A point for each quantile; one below and one above each, if asked; and the noisy size if released.

    Of weights at the points in millionths; without noise, of people.
    """
    scales = [None if without_noise else MICRO * scale for scale in spent.choices]
    offsets = [(0,) * len(ps)]
    if beside is not None:
        unit = 1 if without_noise else MICRO
        offsets += [tuple(-int(unit * d) for d in beside.below), tuple(int(unit * e) for e in beside.above)]
    released = [
        Fraction(select(weights, p, noise, scale, offset, times))
        for each in offsets
        for p, scale, offset in zip(ps, scales, each, strict=True)
    ]
    if spent.size is not None:
        size = Fraction(int(weights.sum()))
        if not without_noise:
            size = (size + noise.laplace(MICRO * spent.size)) / MICRO
        released.append(size)
    return released


def _answer(summary: Summary, calibration: RankCalibration, target: Ranks, noise: Noise) -> list[Fraction]:
    weights = summary.at_points(integer_weights(calibration.charges))
    spent = _spending(target, calibration.ps)
    without_noise = reads_public_only(calibration.charges)
    return chosen(weights, calibration.ps, noise, spent, without_noise, calibration.brackets, target.times)


def _extreme(
    calibrate_mean: Callable[[Task], Calibration], task: Task
) -> tuple[Calibration, tuple[Fraction, ...]]:
    """Charges and p*, which depend on each other: a few rounds settle it."""
    target: Extremes = task.target
    p, scale = Fraction(1, 2), _extreme_scale(target)
    if not isinstance(task.t, int):  # `threshold` looks at t; other functions of charges.py do not
        task = replace(task, t=_best_threshold(task))
    for _ in range(6):
        weighted = calibrate_mean(replace(task, variance=float(p * (1 - p))))
        if weighted.noise_variance == 0:
            p = Fraction(1, 2 * task.total)  # the end itself
        else:
            fraction = scale * log(target.total_times / BEYOND) / _total_weight(weighted, task)
            p = min(Fraction(1, 2), Fraction(ceil(fraction * MICRO), MICRO))
    ps = (1 - p if target.is_largest else p,)
    return replace(weighted, note=f"{weighted.note}; at the quantile {float(ps[0]):.6g}"), ps


def _extreme_scale(target: Extremes) -> float:
    """Of the choices of a minimum or maximum, at most."""
    return 2 / float(1 - SIZE_PART) if target.tells_size else 2.0


def _best_threshold(task: Task) -> int:
    """The level t of the lowest error that is predicted for a minimum or maximum of people charged t."""
    target, levels = task.target, as_floats(task.levels)
    people = np.cumsum(task.people[::-1])[::-1].astype(np.float64)
    weight = people * levels  # ∞: public people alone, without noise
    needed = _extreme_scale(target) * log(target.total_times / BEYOND) / weight
    p = np.maximum(np.minimum(needed, 0.5), 1 / (2 * task.total))
    variance = p * (1 - p) / people + task.noise_variance / weight**2 + 2 / people**2
    errors = np.where(needed <= 0.5, np.minimum(p + np.sqrt(variance), 1.0), 1.0)
    if task.squared_bias:
        kappas = np.where(people < task.total, 1.0, 0.0) if target.tells_size else 1 - people / task.total
        errors = np.sqrt(errors**2 + task.squared_bias * kappas**2)
    if errors.min() >= 1.0:  # it may land anywhere, whichever t it is: as for a mean
        errors = threshold_errors(levels, task.people, task.variance, task.noise_variance)
    return int(task.levels[np.argmin(errors)])


def _total_weight(calibration: Calibration, task: Task) -> float:
    """W = Σc, in units of ε; the number of people where only public ones are read."""
    total = total_of(integer_weights(calibration.charges), task.people)
    return float(total) if reads_public_only(calibration.charges) else total / MICRO
