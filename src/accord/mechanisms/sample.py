"""Sample: keep each person with a probability of their own, then answer about those who are kept.

[J] Definition 9, Theorem 5.

Neighbors  replace, or add-remove.
Releases   the answer of a mechanism that is s-private under add-remove, on people who are kept independently
           with probability π_i; s is t under add-remove and t/2 under replace. Everyone with a level of t or
           more is kept.
               π = (e^ε − 1)/(e^t − 1)                             for ε < t, add-remove    [J] Definition 9
               π = (e^ε − 1)/[(e^s − 1) + e^ε(1 − e^−s)]           for ε < t, replace       ours
Guarantee  person i loses at most min(ε_i, t). Fix who else is kept, and let p₀ be the law of the output
           without person i, p_x with them and a value x; then e^−s ≤ p_x/p₀ ≤ e^s, and person i makes it
           (1 − π)p₀ + π·p_x. A bound that holds whoever else is kept holds for the mixture over them.
           *Add-remove.* Against p₀ the ratio is at most 1 + π(e^t − 1) = e^ε, and at least
           1 − π(1 − e^−t) = 1 − (e^ε − 1)e^−t ≥ e^−ε, because t ≥ ε.                       [J] Theorem 5
           *Replace.* Two values are at most (1 − π + π·e^s)/(1 − π + π·e^−s) = e^ε apart. This π is larger
           than the (e^{ε/2} − 1)/(e^{t/2} − 1) that sampling for add-remove at half of every level has.
           Both ratios grow with π, and it is rounded down, to a multiple of 2⁻⁶³. Whoever is kept for certain
           loses s under add-remove, and 2s under replace: t.
Denominators  The number of people who are kept is private. Dividing by it would lose more than is charged
           ([F] and [C] do so in their figures): at ε = 0.1, t = 1 and one other person, 0.132. Sums are
           divided by Σπ, which is public; an add-remove mean is a ratio of two noisy sums
           (statistics/mean.py), and so is a mean of members under replace: who is outside has the law p₀.
Size       Of quantiles whose number of people is private, the mechanism on those who are kept releases a
           noisy size of them with the points, and is s-private with it (rank.py): all that it releases is one
           output of the law p₀ or p_x above. Under replace with a private `where=`, who is outside has p₀.
Error      of a mean: [Σπ(1 − π)·E(x − mid)² + σ²·Σπ² + 2Δ²/t²]/(Σπ)² about the population.
Deviates   from the paper: with one value a person, counts of people of one level with one value are thinned
           instead of rows, which is the same law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf, log, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import LARGEST, MICRO, PUBLIC, IntArray, level_text, total_of
from accord.mechanisms.prediction import (
    AroundRank,
    ErrorModel,
    FixedInterval,
    Prediction,
    bias_bound,
    predict,
)
from accord.mechanisms.rank import ANYWHERE
from accord.mechanisms.rank_choice import RankCalibration, chosen
from accord.mechanisms.rank_errors import rank_errors
from accord.mechanisms.record import Calibration, Method, Refused, Task, frozen
from accord.mechanisms.size import MISS, BySize
from accord.relation import ADD_REMOVE, REPLACE, Relation
from accord.statistics.algorithm import AlgorithmTarget
from accord.statistics.ranks import Spending, spending
from accord.statistics.target_ranks import Quantiles
from accord.statistics.target_sums import Additive, Cells
from accord.theory import FloatArray, as_floats

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

SURE = 2**63
"""π = 1: chances are whole numbers of 2⁻⁶³."""
BLOCK = 2**22
"""For how many people who is kept is drawn at once."""
_MOST_TRIED = 64
"""Levels that are tried as t,"""
_MOST_LEVELS = 2_000
"""and that people are taken to have when these are compared."""
_FEWEST = 1e-9
"""Fewer people than this, on average, are nobody."""
_MARGIN = 1 - 1e-9
"""By more than floats can be off when π is reckoned."""


@dataclass(frozen=True, eq=False)
class SampleCalibration(Calibration):
    """Of people who are kept at random."""

    keep: Any
    """With which chance a person of each level is kept, a whole number of 2⁻⁶³."""
    t: int
    """The level at which those who are kept are answered about."""


def probabilities(levels: IntArray, t: int, relation: Relation) -> FloatArray:
    """π for each level, in floats; t and levels in millionths."""
    if t == PUBLIC:
        return np.where(levels == PUBLIC, 1.0, 0.0)
    t_float = t / MICRO
    pi = relation.keep_probability(np.minimum(as_floats(levels), t_float), t_float) * _MARGIN
    return np.where(levels >= t, 1.0, np.minimum(pi, 1.0))


def chances(pi: FloatArray) -> Any:
    """π as whole numbers of 2⁻⁶³, rounded down. (Multiplying by a power of two is exact.)"""
    return (pi * float(SURE)).astype(np.uint64)


def calibrate(task: Task) -> SampleCalibration:
    """With the user's t, else the best one."""
    if isinstance(task.target, Cells) and task.target.cells_each > 1:
        raise Refused("keeps people cell by cell, and one person may be in several cells")
    if isinstance(task.t, int):
        return _calibrate_at(task, task.t, f"t = {level_text(task.t)}")
    if task.t == "best" or (task.t is None and not isinstance(task.target, AlgorithmTarget)):
        coarse = coarsened(task)
        t = min(levels_to_try(task), key=lambda t: _error(coarse, t))
        return _calibrate_at(task, t, f"t = {level_text(t)}")
    name = task.t or "max"
    finite = task.levels[task.levels < PUBLIC]
    if not finite.size:
        return _calibrate_at(task, PUBLIC, "t = inf")
    people = task.people[: finite.size]
    t = {
        "max": int(finite[-1]),
        "min": int(finite[0]),
        "mean": max(1, total_of(finite, people) // int(people.sum())),
    }[name]
    return _calibrate_at(task, t, f"t = {level_text(t)}, the {name} level")


def coarsened(task: Task) -> Task:
    """The same people with fewer different levels, which are near their own: enough to choose t by."""
    if task.levels.size <= _MOST_LEVELS:
        return task
    starts = np.linspace(0, task.levels.size, _MOST_LEVELS, endpoint=False).astype(np.int64)
    return replace(task, levels=task.levels[starts], people=np.add.reduceat(task.people, starts))


def levels_to_try(task: Task) -> list[int]:
    """Levels that t may have: all of them, or as many as spread evenly over the people."""
    if task.levels.size <= _MOST_TRIED:
        return [int(level) for level in task.levels]
    up_to = np.cumsum(task.people)
    people = np.linspace(0, int(up_to[-1]), _MOST_TRIED, endpoint=False)
    levels = task.levels[np.searchsorted(up_to, people, side="right")]
    return sorted({int(level) for level in levels} | {int(task.levels[-1])})


def _error(task: Task, t: int) -> float:
    """The predicted mean squared error at t, up to a factor."""
    pi = probabilities(task.levels, t, task.relation)
    kept = float(task.people @ pi)
    if kept < _FEWEST:
        return inf
    return float(task.variance * (task.people @ pi**2)) / kept**2 + _noise_variance(task, t, pi)


def _noise_variance(task: Task, t: int, pi: FloatArray) -> float:
    """The variance that noise and leaving people out at random add."""
    target, kept, thinning = task.target, float(task.people @ pi), float(task.people @ (pi * (1 - pi)))
    if not task.relation.levels_are_public:  # whoever chose which: Σπ(1 − π) ≤ (1 − π_min)·Σπ
        thinning = kept * (1 - float(pi.min()))
    if isinstance(target, Quantiles):
        choice = 0.0
        if t != PUBLIC:
            choice = _choice_variance(target) / (inner_level(t, task.relation) * kept) ** 2
        return choice + target.variance * thinning / kept**2
    if isinstance(target, Additive):
        laplace = 0.0 if t == PUBLIC else target.kept_noise_variance / (t / MICRO) ** 2
        return (thinning * target.kept_square + laplace) / kept**2
    return 0.0


def _calibrate_at(task: Task, t: int, label: str) -> SampleCalibration:
    if t != PUBLIC and t > LARGEST:
        raise Refused(f"t is larger than {level_text(LARGEST)}")
    target, pi = task.target, probabilities(task.levels, t, task.relation)
    keep = chances(pi)
    kept = float(task.people @ pi)
    if kept < _FEWEST:
        raise Refused(f"keeps nobody at {label}")
    charges = frozen(np.where(keep > 0, np.minimum(task.levels, t), 0))
    note = f"{label}; keeps {kept / task.total:.1%} of the people at random"
    if isinstance(target, Quantiles) and t != PUBLIC:
        smaller_side = float(min(min(p, 1 - p) for p in target.ps))
        needed = float(max(_cautious_spending(target).choices)) * log(target.total_times / MISS)
        if inner_level(t, task.relation) * kept * smaller_side < needed:
            note += f"; {ANYWHERE}"
    variance = _noise_variance(task, t, pi)
    return SampleCalibration(charges, frozen(pi / kept), variance, note, frozen(keep), t)


def _spending(target: Quantiles) -> Spending:
    """Of those who are kept: under add-remove, at s. Their size is released where that of all is private."""
    return spending(target.ps, ADD_REMOVE, target.tells_size)


def _choice_variance(target: Quantiles) -> float:
    return target.smooth_cost**2 * _spending(target).variance


def inner_level(t: int, relation: Relation) -> float:
    """s: what the mechanism on the people who are kept may spend under add-remove."""
    return t / MICRO * float(relation.inner)


def thin(counts: Any, keep: Any, noise: Noise, block: int = BLOCK) -> IntArray:
    """How many of each group are kept, everyone by themselves with the group's chance in 2⁻⁶³."""
    kept = np.where(keep == SURE, counts, 0).astype(np.int64)
    drawn = np.flatnonzero((keep != SURE) & (keep > 0) & (counts > 0))
    sizes, limits = counts[drawn].astype(np.int64), keep[drawn]
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if drawn.size else 0
    for start in range(0, total, block):  # people start … stop, whichever groups they are of
        stop = min(start + block, total)
        first, last = np.searchsorted(ends, start, side="right"), np.searchsorted(ends, stop, side="left") + 1
        inside = np.minimum(ends[first:last], stop) - np.maximum(ends[first:last] - sizes[first:last], start)
        mask = noise.keep(np.repeat(limits[first:last], inside))
        kept[drawn[first:last]] += np.add.reduceat(mask, np.cumsum(inside) - inside, dtype=np.int64)
    return kept


def expected(calibration: SampleCalibration, summary: Summary) -> Fraction:
    """Σπ, how many are kept on average, exactly."""
    pairs = zip(calibration.keep.tolist(), summary.people.tolist(), strict=True)
    return Fraction(sum(chance * people for chance, people in pairs), SURE)


def noise_on_means(calibration: SampleCalibration, people: IntArray, target: Additive) -> tuple[float, float]:
    """The scale of the noise on each mean, and how much a whole number of it is; 0 where there is none."""
    if calibration.t == PUBLIC:
        return 0.0, 0.0
    step = 1 / float(people @ (calibration.keep / float(SURE)))
    s = target.relation.inner * Fraction(calibration.t, MICRO)
    return float(target.kept_sensitivity / s) * step, step


def _predict(task: Task, calibration: SampleCalibration) -> Prediction:
    pi = probabilities(task.levels, calibration.t, task.relation)
    return predict(task, calibration, several=float(task.people @ (pi * (1 - pi))) > 0)


def _answer(
    summary: Summary, calibration: SampleCalibration, target: Additive, noise: Noise
) -> list[Fraction]:
    summary = summary.with_others(target.outside_matters)
    kept = thin(summary.amount, calibration.keep[summary.level], noise)
    expected_people = expected(calibration, summary)
    sums = target.kept_sums(summary.output, kept, summary.outputs)
    if calibration.t != PUBLIC:
        s = target.relation.inner * Fraction(calibration.t, MICRO)
        sums = [x + noise.laplace(target.kept_sensitivity / s) for x in sums]
    return target.from_kept([x / expected_people for x in sums])


def _predict_ranks(task: Task, calibration: SampleCalibration) -> Prediction:
    """As for so many people as are kept, all of the level s.

    About these people, thinning and weighting add to it.
    """
    target: Quantiles = task.target
    pi = calibration.keep / float(SURE)
    kept = float(task.people @ pi)
    whole = max(1, ceil(kept))
    s = PUBLIC if calibration.t == PUBLIC else max(1, int(inner_level(calibration.t, task.relation) * MICRO))
    kept_task = replace(task, levels=np.array([s]), people=np.array([whole]), total=whole)
    noise = 0.0 if s == PUBLIC else _choice_variance(target) / (s / MICRO * kept) ** 2
    kept_calibration = RankCalibration(kept_task.levels, np.array([1 / whole]), noise, "", target.ps)
    of_choice = rank_errors(kept_task, kept_calibration, _cautious_spending(target))
    unread = (task.total - int(task.people.sum())) / task.total**2
    imbalance = float(task.people @ (calibration.weights - 1 / task.total) ** 2) + unread
    thinning = float(task.people @ (pi * (1 - pi))) / kept**2
    spread = imbalance + thinning
    kappa = bias_bound(task, calibration)
    bias = 100 * kappa * sqrt(task.squared_bias / target.outputs)
    rmse = sqrt(of_choice.rmse**2 + bias**2)
    here = sqrt(of_choice.rmse_here**2 + 1e4 * target.variance / target.outputs * spread + bias**2)
    error_model: ErrorModel
    if target.tells_size:
        error_model = replace(_by_size(of_choice.by_size, task, calibration), bias=kappa * task.largest_bias)
    elif of_choice.is_sparse:
        error_model = FixedInterval(target.possible(task.total))
    else:
        sampling = 100 * sqrt(target.max_variance * spread)
        centres = tuple(100 * float(p) for p in target.ps)
        wider = replace(of_choice.spread, sampling=sampling, bias=100 * kappa * task.largest_bias)
        error_model = AroundRank(wider, centres, target.listed)
    return Prediction(rmse, min(here, 100.0), kappa, error_model, bias)


def _cautious_spending(target: Quantiles) -> Spending:
    """As the error is predicted: with wider scales than are drawn under replace, for max(p, 1 − p) = 1."""
    return _spending(target) if target.tells_size else spending(target.ps, REPLACE, False)


def _by_size(of_kept: BySize, task: Task, calibration: SampleCalibration) -> BySize:
    """For weights of t a person; those who are kept are some of all, at random."""
    everyone = bool((calibration.keep == SURE).all()) and int(task.people.sum()) == task.total
    weight = 1.0 if calibration.t == PUBLIC else calibration.t / MICRO
    factor = float(1 / task.relation.inner)  # s is t, or half of it
    return replace(
        of_kept,
        choice_scales=tuple(factor * scale for scale in of_kept.choice_scales),
        size_scale=factor * of_kept.size_scale,
        heaviest=weight,
        evenness=1.0 if everyone else 0.0,
        typical=weight,
    )


def _answer_ranks(
    summary: Summary, calibration: SampleCalibration, target: Quantiles, noise: Noise
) -> list[Fraction]:
    kept = thin(summary.amount, calibration.keep[summary.level], noise)
    at_points = np.zeros(summary.outputs, dtype=np.int64)
    np.add.at(at_points, summary.output, kept)
    t, spent = calibration.t, _spending(target)
    if t == PUBLIC:
        return chosen(at_points, target.ps, noise, spent, without_noise=True)
    if int(at_points.sum()) * t >= 2**62:
        at_points = at_points.astype(object)
    spent = spent.times(int(1 / target.relation.inner))
    return chosen(at_points * t, target.ps, noise, spent, without_noise=False, times=target.times)


def _predict_algorithm(task: Task, calibration: SampleCalibration) -> Prediction:
    """Nobody can tell how well somebody else's algorithm does."""
    return Prediction(nan, nan, bias_bound(task, calibration), FixedInterval((-inf, inf)))


def _answer_algorithm(
    summary: Summary, calibration: SampleCalibration, target: AlgorithmTarget, noise: Noise
) -> list[Fraction]:
    raise TypeError("an algorithm is run on rows, not on a Summary")


ALGORITHMS = Method(AlgorithmTarget, calibrate, _predict_algorithm, _answer_algorithm, keeps_rows=True)
MEANS = Method(Additive, calibrate, _predict, _answer, needs_cells=True)
RANKS = Method(Quantiles, calibrate, _predict_ranks, _answer_ranks)
