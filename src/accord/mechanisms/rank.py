"""Rank: quantiles by weighted rank.

Ours; it answers the question that closes [F], how to weigh people of different levels in a median.

Neighbors  replace: one person's value changes, the number of people and all levels stay; or add-remove.
Releases   a point r of the grid with probability ∝ exp(score(r)/2), drawn exactly, where with W = Σc
               score(r) = −max(0, Σ_{x<r} c − p·W, Σ_{x>r} c − (1−p)·W)
           is minus the weight that lies on the wrong side of r. J quantiles have exp(score(r)/2J) each; or,
           where that is predicted to be better, all of them are one tuple of points in order.
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
Together   J points in order, drawn with P ∝ exp(−r/4·Σ_j |F_j − F_{j−1} − (p_j − p_{j−1})·W|), F_j being the
           weight before the j-th (ordered.py). With δ the smallest share between two p, or a p and an end,
           whose value changes loses r·c_i and who comes or goes r·(1 − δ)·c_i: docs/proofs/joint.md. So
           r = 1 under replace; 9/10/(1 − δ) beside a size of scale 10 under add-remove; and with one
           private `where=` r = min(1, 9/10/(1 − δ)) and φ = 1 − r·(1 − δ). The plan takes it where its error
           is lower than that of single choices. For an interval in values each is drawn by itself.
Error      on the scale of ranks (1 is everyone): the weighted rank of p differs from the rank by a variance
           of p(1−p)·Σc²/W², and the choice falls off as exp(−|rank|·W/2), a Laplace law of variance 8/W²
           (8J²/W²; together 8(2J + 1)/3W² on average) where the points near the quantile are dense. So the
           charges of charges.py fit here with the constant 8/(p(1−p)) in the place of 2Δ²/σ²: `rank` is
           `affine` with it, and distribution-free.
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
from math import ceil, inf, lgamma, log, sqrt
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
from accord.ordered import MOST_PARTS, entries
from accord.statistics import Ends
from accord.statistics.ranks import SIZE_PART, Spending, spending
from accord.statistics.spread import Spread
from accord.statistics.target import Extremes, Quantiles, Ranks
from accord.theory import as_floats, threshold_errors

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

ANYWHERE = "may land anywhere in the bounds"
MOST_ENTRIES = 2**24
"""Of the tables of one draw: where it would have more, so many people are there that nobody needs it."""


@dataclass(frozen=True, eq=False)
class RankCalibration(Calibration):
    """Of a choice by weighted ranks."""

    ps: tuple[Fraction, ...]
    """The quantiles that are chosen; of min and max, the one that stands for them."""
    brackets: Brackets | None = None
    """What else is drawn beside each of them, for an interval in values."""
    parts: int | None = None
    """M of each point, where all quantiles are drawn together; None: each is drawn by itself."""


def weighted_rank(charge_rule: ChargeRule) -> Method:
    """A function of charges.py, for quantiles."""
    calibrate_mean = calibrate_by(charge_rule)

    def calibrate(task: Task) -> RankCalibration:
        one_by_one = calibrated(task)
        is_bounded = task.relation.levels_are_public  # else nobody knows how much W is at most, as M must
        if task.target.outputs == 1 or task.target.in_values or not is_bounded:
            return one_by_one
        together = calibrated(task, together=True)
        if together.parts is None or _predict(task, together).rmse >= _predict(task, one_by_one).rmse:
            return one_by_one
        return together

    def calibrated(task: Task, together: bool = False) -> RankCalibration:
        target: Ranks = task.target
        if isinstance(target, Quantiles):
            variance = target.smooth_cost**2 * _spending(target, target.ps, together).variance
            weighted, ps = calibrate_mean(replace(task, noise_variance=variance)), target.ps
        else:
            weighted, ps = _extreme(calibrate_mean, task)
        calibration = RankCalibration(
            weighted.charges, weighted.weights, weighted.noise_variance, weighted.note, ps
        )
        weight = _total_weight(calibration, task)
        if together:
            calibration = drawn_together(calibration, target, task.groups * weight)
        by_size = _by_size(task, calibration, _spending_of(target, calibration))
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


def drawn_together(calibration: RankCalibration, target: Ranks, most: float) -> RankCalibration:
    """With as many parts of each point as a tuple needs where people weigh `most` at most.

    As it is where there would be too many, or where there is no noise.
    """
    rate, outputs = _spending(target, calibration.ps, together=True).rate, len(calibration.ps)
    assert rate is not None
    parts = max(1, ceil(rate * outputs * Fraction(most) / 2))
    is_large = entries(outputs, most * float(rate) / 4) > MOST_ENTRIES
    if is_large or target.total_times * parts >= MOST_PARTS or calibration.noise_variance == 0:
        return calibration
    note = f"{calibration.note}; all {outputs} quantiles in one draw"
    return replace(calibration, note=note, parts=parts)


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
    laplace = of_mean.spread.laplace / target.smooth_cost  # which the line of `extra` holds for
    if by_size.log_tuples is not None:
        laplace = 100 * max(by_size.choice_scales) / weight
    spread = replace(
        of_mean.spread,
        sampling=of_mean.spread.sampling * sqrt(_largest_variance(target, ps) / target.max_variance),
        laplace=laplace,
        extra=100 * max(by_size.choice_scales) * by_size.log_points / weight,
        ceiling=inf,
        step=0.0,  # people are many where this is used, and the line above holds more than it
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
    of_choice = rank_errors(task, calibration, _spending_of(target, calibration))
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


def _spending(target: Ranks, ps: tuple[Fraction, ...], together: bool = False) -> Spending:
    return spending(ps, target.relation, target.tells_size, target.draws, together)


def _spending_of(target: Ranks, calibration: RankCalibration) -> Spending:
    return _spending(target, calibration.ps, calibration.parts is not None)


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
        log_tuples=None if calibration.parts is None else _log_tuples(target, calibration) + 0.5,
        bias=task.largest_bias * bias_bound(task, calibration) if task.largest_bias else 0.0,
    )


def _log_tuples(target: Ranks, calibration: RankCalibration) -> float:
    """ln N: how many tuples there are at most, each as many times as its points count."""
    assert calibration.parts is not None
    most = 1 if target.times is None else int(target.times.max())
    outputs, everything = len(calibration.ps), target.total_times * calibration.parts
    return sum(log(everything + j * most) for j in range(outputs)) - lgamma(outputs + 1)


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

    off = max(by_size.choice_scales) * (log(2 * outputs / alpha) + by_size.log_points)
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
    parts: int | None = None,
) -> list[Fraction]:
    """A point for each quantile; one below and one above each, if asked; and the noisy size if released.

    Of weights at the points in millionths; without noise, of people. `parts`: of each point, if all
    quantiles are drawn together.
    """
    if parts is not None:
        assert spent.rate is not None
        scale = 4 * MICRO / spent.rate
        drawn = (
            noise.ordered(weights, ps, scale, parts)
            if times is None
            else noise.ordered(weights, ps, scale, parts, times)
        )
        return [*map(Fraction, drawn), *_noisy_size(weights, noise, spent, without_noise)]
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
    return [*released, *_noisy_size(weights, noise, spent, without_noise)]


def _noisy_size(weights: Any, noise: Noise, spent: Spending, without_noise: bool) -> list[Fraction]:
    """The weight of all, if it is released."""
    if spent.size is None:
        return []
    size = Fraction(int(weights.sum()))
    return [size if without_noise else (size + noise.laplace(MICRO * spent.size)) / MICRO]


def _answer(summary: Summary, calibration: RankCalibration, target: Ranks, noise: Noise) -> list[Fraction]:
    weights = summary.at_points(integer_weights(calibration.charges))
    return chosen(
        weights,
        calibration.ps,
        noise,
        _spending_of(target, calibration),
        reads_public_only(calibration.charges),
        calibration.brackets,
        target.times,
        calibration.parts,
    )


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
