"""Sample: keep each person with a probability of their own, then answer about those who are kept. [J]
Definition 9, Theorem 5.

Neighbors  replace, or add-remove.
Releases   the answer of a mechanism that is s-private under add-remove, on people who are kept independently
           with probability π_i; s is t under add-remove and t/2 under replace. Everyone with a level of t or
           more is kept.
Guarantee  person i loses at most min(ε_i, t). Fix who else is kept, and let p₀ be the law of the output
           without person i, p_x with them and a value x; then e^−s ≤ p_x/p₀ ≤ e^s, and person i makes it (1 −
           π)p₀ + π·p_x. *add-remove*: against p₀, the ratio is at most 1 + π(e^t − 1) = e^ε for π = (e^ε −
           1)/(e^t − 1), and at least 1 − π(1 − e^−t) ≥ e^−ε. *replace*: two values are at most (1 − π +
           π·e^s)/(1 − π + π·e^−s) apart, which is e^ε for π = (e^ε − 1)/[(e^s − 1) + e^ε(1 − e^−s)]. This is
           more than the (e^{ε/2} − 1)/(e^{t/2} − 1) of sampling for add-remove at half the level, twice. π is
           rounded down to a multiple of 2⁻⁶³, and both ratios grow with π.
Denominators  The number of people who are kept is private. Dividing by it would lose more than is charged
           ([F] and [C] do so in their figures): at ε = 0.1, t = 1 and one other person, 0.132. Sums are
           divided by Σπ, which is public; an add-remove mean is a ratio of two noisy sums
           (statistics/mean.py).
Size       Of quantiles whose number of people is private, the mechanism on those who are kept releases a
           noisy size of them beside the points, and is s-private with it (rank.py): all that it releases is
           one output of the law p₀ or p_x above. Under replace with a private `where=`, who is outside has
           p₀.
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
from accord.mechanisms.prediction import AroundRank, Fixed, Law, Prediction, predict
from accord.mechanisms.rank import ANYWHERE, Ranked, chosen, rank_errors
from accord.mechanisms.record import Calibration, Method, Refused, Task, frozen
from accord.mechanisms.size import MISS, BySize
from accord.relation import ADD_REMOVE, REPLACE, Relation
from accord.statistics.quantile import Spending, spending
from accord.statistics.target import Additive, Quantiles, Rows
from accord.theory import FloatArray, as_floats

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

SURE = 2**63
"""π = 1: chances are whole numbers of 2⁻⁶³."""
_MOST_TRIED = 64
_ENOUGH = 2_000
BLOCK = 2**22
_FEWEST = 1e-9
_MARGIN = 1 - 1e-9
"""More than what floats can be off when π is reckoned."""


@dataclass(frozen=True, eq=False)
class Sampled(Calibration):
    """Of people who are kept at random."""

    keep: Any
    """With which chance a person of each level is kept, in 2⁻⁶³."""
    t: int
    """The level at which those who are kept are answered about."""


def probabilities(levels: IntArray, t: int, relation: Relation) -> FloatArray:
    """π for each level, in floats; t and levels in millionths."""
    pi: FloatArray
    if t == PUBLIC:
        pi = (levels == PUBLIC).astype(np.float64)
        return pi
    high = t / MICRO
    pi = relation.keep_probability(np.minimum(as_floats(levels), high), high)
    pi = np.where(levels >= t, 1.0, np.minimum(pi * _MARGIN, 1.0))
    return pi


def chances(pi: FloatArray) -> Any:
    """π as whole numbers of 2⁻⁶³, rounded down. (Multiplying by a power of two is exact.)"""
    return (pi * float(SURE)).astype(np.uint64)


def calibrate(task: Task) -> Sampled:
    """With the user's t, else the best one."""
    if task.target.about_members and task.target.tells_size and isinstance(task.target, Additive):
        raise Refused("would need the number of members who are kept, which is private")
    t = task.t
    if isinstance(t, int):
        return _at(task, t, f"t = {level_text(t)}")
    finite = task.levels[task.levels < PUBLIC]
    if t == "best" or (t is None and not isinstance(task.target, Rows)):
        rough = coarse(task)
        value = min(tried(task), key=lambda t: _error(rough, t))
        return _at(task, value, f"t = {level_text(value)}")
    t = t or "max"
    if not finite.size:
        return _at(task, PUBLIC, "t = inf")
    people = task.people[: finite.size]
    value = {
        "max": int(finite[-1]),
        "min": int(finite[0]),
        "mean": max(1, total_of(finite, people) // int(people.sum())),
    }[t]
    return _at(task, value, f"t = {level_text(value)}, the {t} level")


def coarse(task: Task) -> Task:
    """The same people with fewer different levels, which are near their own: enough to choose t by."""
    if task.levels.size <= _ENOUGH:
        return task
    starts = np.linspace(0, task.levels.size, _ENOUGH, endpoint=False).astype(np.int64)
    return replace(task, levels=task.levels[starts], people=np.add.reduceat(task.people, starts))


def tried(task: Task) -> list[int]:
    """Levels that t may have: all of them, or as many as spread evenly over the people."""
    if task.levels.size <= _MOST_TRIED:
        return [int(level) for level in task.levels]
    up_to = np.cumsum(task.people)
    at = np.searchsorted(up_to, np.linspace(0, int(up_to[-1]), _MOST_TRIED, endpoint=False), side="right")
    return sorted({int(level) for level in task.levels[at]} | {int(task.levels[-1])})


def _error(task: Task, t: int) -> float:
    pi = probabilities(task.levels, t, task.relation)
    kept = float(task.people @ pi)
    return (
        np.inf
        if kept < _FEWEST
        else float(task.variance * (task.people @ pi**2)) / kept**2 + _noise(task, t, pi)
    )


def _noise(task: Task, t: int, pi: FloatArray) -> float:
    """The variance that noise and leaving people out add."""
    target, kept, thinning = task.target, float(task.people @ pi), float(task.people @ (pi * (1 - pi)))
    noise = 0.0
    if isinstance(target, Quantiles):
        noise = (
            0.0 if t == PUBLIC else _spending(target).variance / (inner_level(t, task.relation) * kept) ** 2
        )
        noise += target.variance * thinning / kept**2
    elif isinstance(target, Additive):
        laplace = 0.0 if t == PUBLIC else target.kept_noise_variance / (t / MICRO) ** 2
        noise = (thinning * target.kept_square + laplace) / kept**2
    return noise


def _at(task: Task, t: int, told: str) -> Sampled:
    if t != PUBLIC and t > LARGEST:
        raise Refused(f"t is larger than {level_text(LARGEST)}")
    target, pi = task.target, probabilities(task.levels, t, task.relation)
    keep = chances(pi)
    kept = float(task.people @ pi)
    if kept < _FEWEST:
        raise Refused(f"keeps nobody at {told}")
    charges = frozen(np.where(keep > 0, np.minimum(task.levels, t), 0))
    note = f"{told}; keeps {kept / task.total:.1%} of the people at random"
    if isinstance(target, Quantiles) and t != PUBLIC:
        least = float(min(min(p, 1 - p) for p in target.ps))
        needed = float(max(_cautious(target).choices)) * log(target.points / MISS)
        if inner_level(t, task.relation) * kept * least < needed:
            note += f"; {ANYWHERE}"
    return Sampled(charges, frozen(pi / kept), _noise(task, t, pi), note, frozen(keep), t)


def _spending(target: Quantiles) -> Spending:
    """Of those who are kept: under add-remove, at s. Their size is released where that of all is private."""
    return spending(target.ps, ADD_REMOVE, target.tells_size)


def inner_level(t: int, relation: Relation) -> float:
    """s: what the mechanism on the people who are kept may spend under add-remove."""
    return t / MICRO * float(relation.inner)


def thin(counts: Any, keep: Any, noise: Noise, block: int = BLOCK) -> IntArray:
    """How many of each group are kept, everyone by themselves with the group's chance in 2⁻⁶³.

    So many people are drawn for at once as are in a `block`.
    """
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


def expected(calibration: Sampled, summary: Summary) -> Fraction:
    """Σπ, exactly."""
    return Fraction(
        sum(k * n for k, n in zip(calibration.keep.tolist(), summary.people.tolist(), strict=True)), SURE
    )


def _predict(task: Task, calibration: Sampled) -> Prediction:
    pi = probabilities(task.levels, calibration.t, task.relation)
    return predict(task, calibration, several=float(task.people @ (pi * (1 - pi))) > 0)


def _answer(summary: Summary, calibration: Sampled, target: Additive, noise: Noise) -> list[Fraction]:
    summary = summary.with_others(target.outside_matters)
    kept = thin(summary.amount, calibration.keep[summary.level], noise)
    s = None if calibration.t == PUBLIC else target.relation.inner * Fraction(calibration.t, MICRO)
    there = expected(calibration, summary)
    sums = target.kept_sums(summary.output, kept, summary.outputs)
    scale = None if s is None else target.kept_sensitivity / s
    means = [Fraction(x if scale is None else x + noise.laplace(scale), 1) / there for x in sums]
    return target.from_kept(means)


def _predict_ranks(task: Task, calibration: Sampled) -> Prediction:
    """As for so many people as are kept, all of the level s, and what thinning and weighting add about these
    people.
    """
    target: Quantiles = task.target
    pi = calibration.keep / float(SURE)
    kept = float(task.people @ pi)
    whole = max(1, ceil(kept))
    s = PUBLIC if calibration.t == PUBLIC else max(1, int(inner_level(calibration.t, task.relation) * MICRO))
    alone = replace(task, levels=np.array([s]), people=np.array([whole]), total=whole)
    noise = 0.0 if s == PUBLIC else _spending(target).variance / (s / MICRO * kept) ** 2
    as_one_level = Ranked(alone.levels, np.array([1 / whole]), noise, "", target.ps)
    of_choice = rank_errors(alone, as_one_level, _cautious(target))
    gap = calibration.weights - 1 / task.total
    unread = task.total - int(task.people.sum())
    spread = (
        float(task.people @ gap**2) + unread / task.total**2 + float(task.people @ (pi * (1 - pi))) / kept**2
    )
    here = sqrt(of_choice.rmse_here**2 + 1e4 * target.variance / target.outputs * spread)
    law: Law
    if target.tells_size:
        law = _by_size(of_choice.by_size, task, calibration)
    elif of_choice.is_sparse:
        law = Fixed(target.possible(task.total))
    else:
        sampling = 100 * sqrt(target.max_variance * spread)
        centres = tuple(100 * float(p) for p in target.ps)
        law = AroundRank(replace(of_choice.spread, sampling=sampling), centres, target.listed)
    return Prediction(of_choice.rmse, min(here, 100.0), float(task.people @ np.maximum(gap, 0)), law)


def _cautious(target: Quantiles) -> Spending:
    """As the error is predicted: under replace for a wider scale than is drawn.

    As if max(p, 1 − p) were 1.
    """
    return _spending(target) if target.tells_size else spending(target.ps, REPLACE, False)


def _by_size(alone: BySize, task: Task, calibration: Sampled) -> BySize:
    """For weights of t a person; those who are kept are some of all, at random."""
    everyone = bool((calibration.keep == SURE).all()) and int(task.people.sum()) == task.total
    each = 1.0 if calibration.t == PUBLIC else calibration.t / MICRO
    times = float(1 / task.relation.inner)  # s is t, or half of it
    return replace(
        alone,
        choices=tuple(times * scale for scale in alone.choices),
        size=times * alone.size,
        heaviest=each,
        evenness=1.0 if everyone else 0.0,
        typical=each,
    )


def _answer_ranks(summary: Summary, calibration: Sampled, target: Quantiles, noise: Noise) -> list[Fraction]:
    kept = thin(summary.amount, calibration.keep[summary.level], noise)
    at = np.zeros(summary.outputs, dtype=np.int64)
    np.add.at(at, summary.output, kept)
    t, spent = calibration.t, _spending(target)
    if t == PUBLIC:
        return chosen(at, target.ps, noise, spent, True)
    if int(at.sum()) * t >= 2**62:
        at = at.astype(object)
    return chosen(at * t, target.ps, noise, spent.times(int(1 / target.relation.inner)), False)


def _unknown(task: Task, calibration: Sampled) -> Prediction:
    """Nobody can tell how well somebody else's algorithm does."""
    gap = calibration.weights - 1 / task.total
    return Prediction(nan, nan, float(task.people @ np.maximum(gap, 0)), Fixed((-inf, inf)))


def _own(summary: Summary, calibration: Sampled, target: Rows, noise: Noise) -> list[Fraction]:
    raise TypeError("an algorithm is run on rows, not on a Summary")


ANY = Method(Rows, calibrate, _unknown, _own, keeps_rows=True)
MEANS = Method(Additive, calibrate, _predict, _answer, needs_cells=True)
RANKS = Method(Quantiles, calibrate, _predict_ranks, _answer_ranks)
