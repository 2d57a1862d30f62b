"""Rank: quantiles by weighted rank. Ours; it answers the question that closes [F], how to weigh people of
different levels in a median.

Neighbors  replace: one person's value changes; the number of people and all levels stay.
Releases   a point r of the grid with probability ∝ exp(score(r)/2), drawn exactly, where with charges c and W
           = Σc
               score(r) = −max(0, Σ_{x<r} c − p·W, Σ_{x>r} c − (1−p)·W)
           is minus the weight that lies on the wrong side of r. J quantiles have exp(score(r)/2J) each.
Guarantee  person i loses at most c_i: changing x_i moves both sums by at most c_i, so the maximum by at most
           c_i, while W stays; the exponential mechanism then loses 2·c_i/2J for each quantile, c_i for all.
Error      on the scale of ranks (1 is everyone): the weighted rank of p differs from the rank by a variance
           of p(1−p)·Σc²/W², and the choice falls off as exp(−|rank|·W/2), a Laplace law of variance 8/W²
           (8J²/W²) where the points near the quantile are dense. So the charges of charges.py fit here with
           the constant 8/(p(1−p)) in the place of 2Δ²/σ²: `rank` is `affine` with it, and distribution-free.
           Whatever the values are, P(score ≤ −a) ≤ K·exp(−a/2J) for K points: that bounds the error where W
           is small, when the answer may land anywhere in the bounds, and it is in every interval.
Add-remove  a person who comes or goes moves W as well, and with it a score by at most max(p, 1−p)·c_i:
            exp(score/(2·max(p, 1−p))).
Size       where the number of people is private (add-remove, private groups, `where=`), W + Z is released
           beside the points, with Z discrete Laplace, so that intervals can be told (size.py).
           *Add-remove*, which private groups under replace have at half the charge: W moves by c_i, and Z
           has the scale 10, which loses c_i/10. The choices are made at nine tenths of every charge,
           exp(9/10·score/(2J·max(p, 1−p))), which lose 9/10·c_i for all J. Both are functions of the same
           data with independent noise, so that losses add up (sequential composition): c_i.
           *One private `where=` under replace* (`about_members`): somebody whose value changes moves every
           score by at most c_i, and leaves W; somebody who comes in or goes out moves the score of p by at
           most max(p, 1−p)·c_i, and W by c_i. With choices exp(θ·score/2J) and Z of scale 1/φ the first
           loses θ·c_i and the second (θ·m + φ)·c_i, m being the mean of max(p, 1−p). So θ = min(1, 9/10/m)
           and φ = 1 − θ·m lose at most c_i: the median keeps the whole charge (θ = 1, φ = 1/2), and nothing
           is halved.
           Where only public people are read there is no noise, and their number is exact. Scales are
           rounded up to whole numbers: losses only shrink.
Min, max   are the quantile p* = 2·ln(K/0.05)/W from the end (with 9/10·W where a size is released): far
           enough in that, with probability 95 %, the answer is not beyond everyone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, total_of
from accord.mechanisms.additive import calibrate_by
from accord.mechanisms.prediction import AroundRank, CountedRank, Law, Prediction, errors
from accord.mechanisms.record import Calibration, Method, Task
from accord.mechanisms.size import BEYOND, BySize
from accord.statistics.quantile import SIZE_PART, Spending, spending
from accord.statistics.spread import Spread
from accord.statistics.target import Extremes, Quantiles, Ranks

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

ANYWHERE = "may land anywhere in the bounds"


@dataclass(frozen=True, eq=False)
class Ranked(Calibration):
    """Of a choice by weighted ranks."""

    ps: tuple[Fraction, ...]
    """The quantiles that are chosen; of min and max, the one that stands for them."""


def weighted_rank(charge: Callable[[Task], tuple[IntArray, str]]) -> Method:
    """A function of charges.py, for quantiles."""
    base = calibrate_by(charge)

    def calibrate(task: Task) -> Ranked:
        target: Ranks = task.target
        if isinstance(target, Quantiles):
            weighted, ps = base(task), target.ps
        else:
            weighted, ps = _extreme(base, task)
        ranked = Ranked(weighted.charges, weighted.weights, weighted.noise_variance, weighted.note, ps)
        safe = _by_size(task, ranked, _spending(target, ps)).is_safe(_weight(ranked, task))
        note = ranked.note if safe else f"{ranked.note}; {ANYWHERE}"
        if safe and ranked.noise_variance and isinstance(target, Extremes):
            note += ", beyond everyone at most once in 20"
        return replace(ranked, note=note)

    return Method((Quantiles, Extremes), calibrate, predict_rank, _answer)


@dataclass(frozen=True)
class RankErrors:
    """The parts of a choice's error, in percentile points."""

    rmse: float
    rmse_here: float
    bias_bound: float
    spread: Spread
    by_size: BySize
    is_sparse: bool
    """Whether so few people, or few that count, are on one side that a normal law is no good model."""


def rank_errors(task: Task, calibration: Ranked, spent: Spending) -> RankErrors:
    """Of the docstring above; the worst case where the answer may land anywhere."""
    target: Ranks = task.target
    ps = calibration.ps
    variance = float(sum(p * (1 - p) for p in ps))
    of_mean = errors(replace(task, variance=variance), calibration)
    weight = _weight(calibration, task)
    squares = float(task.people @ calibration.weights**2)
    rmse, here = few_who_count(of_mean.rmse, of_mean.rmse_here, squares, task.total)
    by_size = _by_size(task, calibration, spent)
    spread = replace(
        of_mean.spread,
        sampling=of_mean.spread.sampling * sqrt(float(max(p * (1 - p) for p in ps)) / target.max_variance),
        extra=100 * max(by_size.choices) * log(target.points) / weight,
    )
    return RankErrors(
        by_size.at_worst(rmse, weight),
        by_size.at_worst(here, weight),
        of_mean.bias_bound,
        spread,
        by_size,
        isinstance(target, Extremes) or float(min(min(p, 1 - p) for p in ps)) < 30 * squares,
    )


def predict_rank(task: Task, calibration: Ranked) -> Prediction:
    """The error and the interval of a choice by weighted ranks."""
    target: Ranks = task.target
    of_choice = rank_errors(task, calibration, _spending(target, calibration.ps))
    law: Law
    if target.tells_size:
        law = of_choice.by_size
    elif of_choice.is_sparse:
        law = CountedRank(_counted(task, calibration), of_choice.by_size.listed)
    else:
        law = AroundRank(
            of_choice.spread, tuple(100 * float(p) for p in calibration.ps), of_choice.by_size.listed
        )
    return Prediction(of_choice.rmse, of_choice.rmse_here, of_choice.bias_bound, law)


def _spending(target: Ranks, ps: tuple[Fraction, ...]) -> Spending:
    return spending(ps, target.relation, target.tells_size)


def _by_size(task: Task, calibration: Ranked, spent: Spending) -> BySize:
    target: Ranks = task.target
    charges = calibration.weights * _weight(calibration, task)
    everyone_is_read = int(task.people.sum()) == task.total
    heaviest = float(charges.max())
    return BySize(
        calibration.ps,
        tuple(float(scale) if calibration.noise_variance else 0.0 for scale in spent.choices),
        float(spent.size) if spent.size and calibration.noise_variance else 0.0,
        target.points,
        heaviest,
        float(charges.min()) / heaviest if everyone_is_read else 0.0,
        float(task.people @ charges**2) / float(task.people @ charges),
        isinstance(target, Extremes),
        isinstance(target, Quantiles) and target.listed,
    )


def few_who_count(rmse: float, here: float, squares: float, people: int) -> tuple[float, float]:
    """Errors with those of a small sample: with few who count, a quantile far out is the end of m = 1/Σw² of
    them, and E[U₍₁₎²] ≈ 2/m².
    """
    around = max(0.0, squares - 1 / people)
    return sqrt(rmse**2 + 2 * (100 * squares) ** 2), sqrt(here**2 + 2 * (100 * around) ** 2)


def _counted(task: Task, calibration: Ranked) -> Callable[[float], list[tuple[float, float]]]:
    """Percentiles between which the answers lie where few people, or few that count, are on one side: by
    Chernoff's bound, not by a normal law.

    With probability 1 − α/2 the weight below an answer is at most p·W + a, a = 2J·ln(2JK/α). If k people are
    below it, their weights are k draws from all weights, so that P(so little | k) ≤ exp(λ·(p·W +
    a))·E[exp(−λc)]^k for every λ > 0; k is at most what makes this α/4. Likewise above.
    """
    target: Ranks = task.target
    n, total, outputs = task.total, _weight(calibration, task), target.outputs
    charges = calibration.weights * total
    unread = n - int(task.people.sum())  # they weigh nothing
    shares = np.append(task.people, unread) / n if unread else task.people / n
    weights = np.append(charges, 0.0) if unread else charges
    least = weights.min()  # taken out of E[exp(−λc)], which would be 0 for large λ

    def most(weight: float, alpha: float) -> float:
        rates = np.geomspace(1e-4, 1e4, 81) / weights.max()
        rest = np.array([shares @ np.exp(-rate * (weights - least)) for rate in rates])
        people = (rates * weight + log(1 / alpha)) / (rates * least - np.log(rest))
        return min(1.0, float(people.min()) / n)

    def ends(alpha: float) -> list[tuple[float, float]]:
        off = 0.0
        if calibration.noise_variance:
            off = 2 * outputs * log(2 * outputs * target.points / alpha)
        tails = alpha / (4 * outputs)
        return [
            (100 * (1 - most(float(1 - p) * total + off, tails)), 100 * most(float(p) * total + off, tails))
            for p in calibration.ps
        ]

    return ends


def select(weights: Any, p: Fraction, noise: Noise, scale: Fraction | None) -> int:
    """A point with probability ∝ exp(score/scale), for the weights at the points; the best one without a
    scale.

    Weights and scale are in millionths.
    """
    a, b = p.numerator, p.denominator
    there = np.flatnonzero(weights)  # all points between two of them have one score
    total = int(weights[there].sum())
    own = np.zeros(2 * there.size + 1, dtype=object if b * total >= 2**62 else np.int64)
    own[1::2] = weights[there]
    up_to = np.cumsum(own)
    below, above = up_to - own, total - up_to
    sizes = np.ones(own.size, dtype=np.int64)
    sizes[::2] = np.diff(there, prepend=-1, append=weights.size) - 1
    scores = np.repeat(-np.maximum(np.maximum(b * below - a * total, b * above - (b - a) * total), 0), sizes)
    if scale is None:
        best = np.flatnonzero(scores == scores.max())
        return int(best[best.size // 2])
    return noise.choose(scores, ceil(scale * b))


def chosen(
    weights: Any, ps: tuple[Fraction, ...], noise: Noise, spent: Spending, without_noise: bool
) -> list[Fraction]:
    """A point for each quantile, and the noisy size where it is released.

    Of weights at the points in millionths; without noise, of people.
    """
    scales = [None if without_noise else MICRO * scale for scale in spent.choices]
    found = [Fraction(select(weights, p, noise, scale)) for p, scale in zip(ps, scales, strict=True)]
    if spent.size is not None:
        size = int(weights.sum())
        found.append(
            Fraction(size) if without_noise else Fraction(size + noise.laplace(MICRO * spent.size), MICRO)
        )
    return found


def _answer(summary: Summary, calibration: Ranked, target: Ranks, noise: Noise) -> list[Fraction]:
    c = calibration.charges
    public = bool(c[-1] == PUBLIC)
    weights = summary.at_points((c == PUBLIC).astype(np.int64) if public else c)
    return chosen(weights, calibration.ps, noise, _spending(target, calibration.ps), public)


def _extreme(base: Callable[[Task], Calibration], task: Task) -> tuple[Calibration, tuple[Fraction, ...]]:
    """Charges and p*, which depend on each other: a few rounds settle it."""
    target: Extremes = task.target
    p, scale = Fraction(1, 2), 2 / float(1 - SIZE_PART) if target.tells_size else 2.0
    for _ in range(6):
        weighted = base(replace(task, variance=float(p * (1 - p))))
        if weighted.noise_variance == 0:
            p = Fraction(1, 2 * task.total)  # the end itself
        else:
            p = min(
                Fraction(1, 2),
                Fraction(ceil(scale * log(target.points / BEYOND) / _weight(weighted, task) * MICRO), MICRO),
            )
    ps = (1 - p if target.is_largest else p,)
    return replace(weighted, note=f"{weighted.note}; at the quantile {float(ps[0]):.6g}"), ps


def _weight(calibration: Calibration, task: Task) -> float:
    """W = Σc, in units of ε; the number of people where only public ones are read."""
    c = calibration.charges[-task.levels.size :]
    return (
        float(total_of((c == PUBLIC).astype(np.int64), task.people))
        if c[-1] == PUBLIC
        else total_of(c, task.people) / MICRO
    )
