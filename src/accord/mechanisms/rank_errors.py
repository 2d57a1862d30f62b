"""How far off a choice by weighted ranks may be: errors and intervals, in percentile points.

rank.py has the choice, and where its errors come from; size.py, those where the number of people is private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, lgamma, log, sqrt

import numpy as np

from accord.budget import MICRO, total_of
from accord.mechanisms.additive import integer_weights, reads_public_only
from accord.mechanisms.brackets import WithBrackets
from accord.mechanisms.prediction import (
    AroundRank,
    ChernoffRank,
    ErrorModel,
    Prediction,
    bias_bound,
    errors,
)
from accord.mechanisms.rank_choice import RankCalibration, spending_of
from accord.mechanisms.record import Calibration, Task
from accord.mechanisms.size import BySize
from accord.statistics import Ends
from accord.statistics.ranks import Spending
from accord.statistics.spread import Spread
from accord.statistics.target_ranks import Extremes, Quantiles, Ranks

FEWEST = 30
"""So many people who count are on either side of a quantile at least, where a normal law is a good model."""


def predict(task: Task, calibration: RankCalibration) -> Prediction:
    """The error and the interval of a choice by weighted ranks."""
    target: Ranks = task.target
    of_choice = rank_errors(task, calibration, spending_of(target, calibration))
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
    """By the docstring of rank.py; the worst case where the answer may land anywhere."""
    target: Ranks = task.target
    ps = calibration.ps
    variance = float(sum(p * (1 - p) for p in ps))
    of_mean = errors(replace(task, variance=variance), calibration)
    weight = total_weight(calibration, task)
    squares = float(task.people @ calibration.weights**2)
    rmse, here = few_who_count(of_mean.rmse, of_mean.rmse_here, squares, task.total)
    by_size = size_errors(task, calibration, spent)
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
    is_sparse = isinstance(target, Extremes) or float(min(min(p, 1 - p) for p in ps)) < FEWEST * squares
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


def size_errors(task: Task, calibration: RankCalibration, spent: Spending) -> BySize:
    """The errors of so many people as a noisy size tells."""
    target: Ranks = task.target
    weights = calibration.weights * total_weight(calibration, task)
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
    n, total, outputs = task.total, total_weight(calibration, task), target.outputs
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


def total_weight(calibration: Calibration, task: Task) -> float:
    """W = Σc, in units of ε; the number of people where only public ones are read."""
    total = total_of(integer_weights(calibration.charges), task.people)
    return float(total) if reads_public_only(calibration.charges) else total / MICRO
