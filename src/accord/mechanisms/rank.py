"""Rank: quantiles by weighted rank. Ours; it answers the question that closes [F], how to weigh people of different levels in a median.

Neighbors  replace: one person's value changes; the number of people and all levels stay.
Releases   a point r of the grid with probability ∝ exp(score(r)/2), drawn exactly, where with charges c and W = Σc
               score(r) = −max(0, Σ_{x<r} c − p·W, Σ_{x>r} c − (1−p)·W)
           is minus the weight that lies on the wrong side of r. J quantiles have exp(score(r)/2J) each.
Guarantee  person i loses at most c_i: changing x_i moves both sums by at most c_i, so the maximum by at most c_i, while W stays; the
           exponential mechanism then loses 2·c_i/2J for each quantile, c_i for all.
Error      on the scale of ranks (1 is everyone): the weighted rank of p differs from the rank by a variance of p(1−p)·Σc²/W², and the
           choice falls off as exp(−|rank|·W/2), a Laplace law of variance 8/W² (8J²/W²) where the points near the quantile are dense. So
           the charges of charges.py fit here with the constant 8/(p(1−p)) in the place of 2Δ²/σ²: `rank` is `affine` with it, and
           distribution-free. Whatever the values are, P(score ≤ −a) ≤ K·exp(−a/2J) for K points: that bounds the error where W is small,
           when the answer may land anywhere in the bounds, and it is in every interval.
Add-remove  a person who comes or goes moves W as well, and with it a score by at most max(p, 1−p)·c_i: exp(score/(2·max(p, 1−p))).
Size       where the number of people is private (add-remove, private groups, `where=`), W + Z is released
           beside the points, with Z discrete Laplace, so that intervals can be told (size.py).
           *Add-remove*, which private groups under replace have at half the charge: W moves by c_i, and Z
           has the scale 10, which loses c_i/10. The choices are made at nine tenths of every charge,
           exp(9/10·score/(2J·max(p, 1−p))), which lose 9/10·c_i for all J. Both are functions of the same
           data with independent noise, so that losses add up (sequential composition): c_i.
           *One private `where=` under replace* (query/members.py): somebody whose value changes moves every
           score by at most c_i, and leaves W; somebody who comes in or goes out moves the score of p by at
           most max(p, 1−p)·c_i, and W by c_i. With choices exp(θ·score/2J) and Z of scale 1/φ the first
           loses θ·c_i and the second (θ·m + φ)·c_i, m being the mean of max(p, 1−p). So θ = min(1, 9/10/m)
           and φ = 1 − θ·m lose at most c_i: the median keeps the whole charge (θ = 1, φ = 1/2), and nothing
           is halved.
           Where only public people are read there is no noise, and their number is exact. Scales are
           rounded up to whole numbers: losses only shrink.
Min, max   are the quantile p* = 2·ln(K/0.05)/W from the end (with 9/10·W where a size is released): far enough
           in that, with probability 95 %, the answer is not beyond everyone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, total_of
from accord.mechanisms.additive import calibrate_by
from accord.mechanisms.error import Prediction, predict
from accord.mechanisms.record import Calibration, Task, Way
from accord.mechanisms.size import BEYOND, BySize
from accord.statistics import Max, Min, Order, Quantile
from accord.statistics.order import SIZE_PART, Spending, spending

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

RANKED = (Quantile, Min, Max)
ANYWHERE = "may land anywhere in the bounds"


def weighted_rank(charge: Callable[[Task], tuple[IntArray, str]]) -> Way:
    """A function of charges.py, for quantiles."""
    base = calibrate_by(charge)

    def calibrate(task: Task) -> Calibration:
        query: Order = task.query
        if isinstance(query, Quantile):
            found, ps = base(task), query.ps
        else:
            found, ps = _extreme(base, task)
        found = replace(found, ps=ps)
        safe = _by_size(task, found, _spending(query, ps)).is_safe(_weight(found, task))
        note = found.note if safe else f"{found.note}; {ANYWHERE}"
        if safe and found.noise and not isinstance(query, Quantile):
            note += ", beyond everyone at most once in 20"
        return replace(found, note=note)

    return Way(RANKED, calibrate, predict_rank, _answer)


def predict_rank(task: Task, calibration: Calibration, spent: Spending | None = None) -> Prediction:
    """The error of the docstring above; its worst case where the answer may land anywhere.

    `spent`: how the charge is, if not as the question says.
    """
    query: Order = task.query
    ps = calibration.ps
    spent = spent or _spending(query, ps)
    variance = float(sum(p * (1 - p) for p in ps))
    found = predict(replace(task, variance=variance), calibration)
    weight = _weight(calibration, task)
    squares = float(task.people @ calibration.weights**2)
    rmse, here = few_who_count(found.rmse, found.rmse_here, squares, task.total)
    by_size = _by_size(task, calibration, spent)
    return replace(
        found,
        rmse=by_size.at_worst(rmse, weight),
        rmse_here=by_size.at_worst(here, weight),
        sampling=found.sampling * sqrt(float(max(p * (1 - p) for p in ps)) / query.peak),
        centres=tuple(100 * float(p) for p in ps),
        listed=by_size.listed,
        slack=100 * max(by_size.choices) * log(query.points) / weight,
        ends=_counted(task, calibration)
        if not isinstance(query, Quantile) or float(min(min(p, 1 - p) for p in ps)) < 30 * squares
        else None,
        by_size=by_size if query.sized else None,
    )


def _spending(query: Order, ps: tuple[Fraction, ...]) -> Spending:
    return spending(ps, query.neighbors, query.sized)


def _by_size(task: Task, calibration: Calibration, spent: Spending) -> BySize:
    query: Order = task.query
    charges = calibration.weights * _weight(calibration, task)
    everyone_is_read = int(task.people.sum()) == task.total
    heaviest = float(charges.max())
    return BySize(
        calibration.ps,
        tuple(float(scale) if calibration.noise else 0.0 for scale in spent.choices),
        float(spent.size) if spent.size and calibration.noise else 0.0,
        query.points,
        heaviest,
        float(charges.min()) / heaviest if everyone_is_read else 0.0,
        float(task.people @ charges**2) / float(task.people @ charges),
        not isinstance(query, Quantile),
        isinstance(query, Quantile) and query.listed,
    )


def few_who_count(rmse: float, here: float, squares: float, people: int) -> tuple[float, float]:
    """Errors with those of a small sample: with few who count, a quantile far out is the end of m = 1/Σw² of them, and E[U₍₁₎²] ≈ 2/m²."""
    around = max(0.0, squares - 1 / people)
    return sqrt(rmse**2 + 2 * (100 * squares) ** 2), sqrt(here**2 + 2 * (100 * around) ** 2)


def _counted(task: Task, calibration: Calibration) -> Callable[[float], list[tuple[float, float]]]:
    """Percentiles between which the answers lie where few people, or few that count, are on one side: by Chernoff's bound, not by a normal law.

    With probability 1 − α/2 the weight below an answer is at most p·W + a, a = 2J·ln(2JK/α). If k people are below it, their weights are k draws from all
    weights, so that P(so little | k) ≤ exp(λ·(p·W + a))·E[exp(−λc)]^k for every λ > 0; k is at most what makes this α/4. Likewise above.
    """
    query: Order = task.query
    n, total, outputs = task.total, _weight(calibration, task), query.outputs
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
        off = 0.0 if calibration.noise == 0 else 2 * outputs * log(2 * outputs * query.points / alpha)
        tails = alpha / (4 * outputs)
        return [
            (100 * (1 - most(float(1 - p) * total + off, tails)), 100 * most(float(p) * total + off, tails))
            for p in calibration.ps
        ]

    return ends


def select(weights: Any, p: Fraction, noise: Noise, scale: Fraction | None) -> int:
    """A point with probability ∝ exp(score/scale), for the weights at the points; the best one without a scale.

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
        found.append(Fraction(size) if without_noise else Fraction(size + noise.laplace(MICRO * spent.size), MICRO))
    return found


def _answer(summary: Summary, calibration: Calibration, query: Order, noise: Noise) -> list[Fraction]:
    c = calibration.charges
    public = bool(c[-1] == PUBLIC)
    weights = summary.at_points((c == PUBLIC).astype(np.int64) if public else c)
    return chosen(weights, calibration.ps, noise, _spending(query, calibration.ps), public)


def _extreme(base: Callable[[Task], Calibration], task: Task) -> tuple[Calibration, tuple[Fraction, ...]]:
    """Charges and p*, which depend on each other: a few rounds settle it."""
    p, scale = Fraction(1, 2), 2 / float(1 - SIZE_PART) if task.query.sized else 2.0
    for _ in range(6):
        found = base(replace(task, variance=float(p * (1 - p))))
        if found.noise == 0:
            p = Fraction(1, 2 * task.total)  # the end itself
        else:
            p = min(
                Fraction(1, 2),
                Fraction(ceil(scale * log(task.query.points / BEYOND) / _weight(found, task) * MICRO), MICRO),
            )
    ps = (1 - p if isinstance(task.query, Max) else p,)
    return replace(found, note=f"{found.note}; at the quantile {float(ps[0]):.6g}"), ps


def _weight(calibration: Calibration, task: Task) -> float:
    """W = Σc, in units of ε; the number of people where only public ones are read."""
    c = calibration.charges[-task.levels.size :]
    return (
        float(total_of((c == PUBLIC).astype(np.int64), task.people))
        if c[-1] == PUBLIC
        else total_of(c, task.people) / MICRO
    )
