"""PE: the personalised exponential mechanism. [J] Definition 10, Theorem 6.

Neighbors  replace: one person's value changes; the number of people and all levels stay.
Releases   an answer r with probability ∝ exp(d(r)/2), drawn exactly, where −d(r) is the cheapest total level
           of people whose values would have to change for r to be the true answer. J quantiles have
           exp(d(r)/2J) each; with `rounded=`, points count several times (statistics/rounding.py).
Guarantee  person i loses at most ε_i: after changing x_i, whoever was to change still can, and person i
           besides, so d(r) moves by at most ε_i in either direction. People whose change would be free (a
           share of less than a millionth) are not read.
Scores     *quantile* (m = min(⌊p·n⌋, n−1), the 0-based rank; L, G people below and above r):
               −[the (G−(n−1−m))₊ smallest levels above r] − [the (L−m)₊ smallest levels below r],
           which is the definition, also for ties, even n and r outside the data; the paper's wording by "the
           rank of r" is ambiguous there, and natural readings of it lose more than they promise.
           *min*  r above it: all levels below r; r below it: the smallest level of all.
           *max*  its mirror image.
           *count* (x people meet the condition)  r > x: the r−x smallest levels of the others; r < x: the
           x−r smallest of them.
           A public person costs ∞, so that such r are never released. Which these are depends on public
           people alone: everybody else can change at a finite cost.
Error      P(k ranks off) ∝ exp(−S(k)/2J), S(k) being the sum of the k smallest levels among a random p·n + k
           people.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import MICRO, PUBLIC
from accord.mechanisms.prediction import AroundRank, AroundValue, FixedInterval, Prediction
from accord.mechanisms.rank import ANYWHERE
from accord.mechanisms.rank_choice import choice
from accord.mechanisms.record import Calibration, Method, Refused, Task
from accord.mechanisms.size import MISS
from accord.statistics.spread import STEP, Spread
from accord.statistics.target_ranks import Extremes, Quantiles
from accord.statistics.target_sums import Counted
from accord.theory import FloatArray, as_floats

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

_MOST_PEOPLE = 2**22
"""A count is chosen among as many answers, one by one."""
IMPOSSIBLE = -(2**62)
"""The score of an answer that would change a public person: lower than all levels together."""


def _calibrate(task: Task) -> Calibration:
    if isinstance(task.target, Counted) and task.total > _MOST_PEOPLE:
        raise Refused(f"chooses among n + 1 answers, and {task.total} people are more than {_MOST_PEOPLE}")
    finite = task.levels[task.levels < PUBLIC]
    if float(finite.astype(np.float64) @ task.people[: finite.size]) >= -IMPOSSIBLE:
        raise Refused("the levels add up to more than it can reckon with")
    read = int(task.people.sum())
    note = "everyone is charged their whole level"
    if isinstance(task.target, Extremes):
        note += f"; lands beyond everyone with a probability of {_beyond(task):.0%}"
    elif isinstance(task.target, Quantiles) and not _is_safe(task):
        note += f"; {ANYWHERE}"
    return Calibration(task.levels, np.full(task.levels.size, 1 / read), 0.0, note)


def _answer(summary: Summary, calibration: Calibration, target: Any, noise: Noise) -> list[Fraction]:
    order = np.argsort(calibration.charges, kind="stable")
    order = order[calibration.charges[order] > 0]  # those who are read, the cheapest first
    levels = calibration.charges[order]
    if isinstance(target, Counted):
        ones = np.array([row[1] for row in summary.rows()], dtype=np.int64)[order]
        people = summary.people[order]
        return [Fraction(_choose(count_scores(levels, people, ones), noise, 2 * MICRO), int(people.sum()))]
    points, level, people = _people_at(summary, order)
    scale = 2 * target.outputs * MICRO
    if isinstance(target, Quantiles):
        all_scores = (quantile_scores(levels, points, level, people, p, target.points) for p in target.ps)
        return [Fraction(_choose(scores, noise, scale, target.times)) for scores in all_scores]
    if target.is_largest:  # min of the mirrored grid
        mirrored = target.points - 1 - points[::-1]
        scores = min_scores(levels, mirrored, level[::-1], people[::-1], target.points)[::-1]
    else:
        scores = min_scores(levels, points, level, people, target.points)
    return [Fraction(_choose(scores, noise, scale, target.times))]


def quantile_scores(levels: Any, points: Any, level: Any, people: Any, p: Fraction, size: int) -> Any:
    """d(r) in millionths at every point r < size.

    At points[k], which ascend, there are people[k] people with levels[level[k]].
    """
    n = int(people.sum())
    m = min(int(p * n), n - 1)
    # d changes only at points with people and right after them: reckon there, and spread it over the rest
    places = np.unique(np.concatenate(([0], points, points + 1)))
    places = places[places < size]
    up_to = np.concatenate(([0], np.cumsum(people)))
    first, last = np.searchsorted(points, places, side="left"), np.searchsorted(points, places, side="right")
    start, end = np.zeros_like(first), np.full_like(last, points.size)
    below, above = up_to[first], n - up_to[last]  # L and G
    scores = -_sum_of_smallest(levels, level, people, last, end, np.maximum(above - (n - 1 - m), 0))
    scores -= _sum_of_smallest(levels, level, people, start, first, np.maximum(below - m, 0))
    return np.maximum(scores, IMPOSSIBLE)[np.searchsorted(places, np.arange(size), side="right") - 1]


def min_scores(levels: Any, points: Any, level: Any, people: Any, size: int) -> Any:
    """d(r) for the smallest value, as `quantile_scores`."""
    public = levels[level] == PUBLIC
    cost_below = np.concatenate(([0], np.cumsum(np.where(public, 0, levels[level]) * people)))
    public_below = np.concatenate(([0], np.cumsum(public)))
    entries_below = np.searchsorted(points, np.arange(size), side="left")
    scores = np.where(public_below[entries_below] > 0, IMPOSSIBLE, -cost_below[entries_below])
    cheapest = int(levels[level].min())
    scores[: points[0]] = IMPOSSIBLE if cheapest == PUBLIC else -cheapest
    return scores


def count_scores(levels: Any, people: Any, ones: Any) -> Any:
    """d(r) for r = 0 … n people who meet a condition, `ones[j]` of level j truly doing so."""

    def costs(counts: Any) -> Any:
        """Of the 1, 2, … cheapest of so many people of each level."""
        ascending = np.repeat(levels, counts)
        finite = ascending[ascending < PUBLIC]
        return np.concatenate((np.cumsum(finite), np.full(ascending.size - finite.size, -IMPOSSIBLE)))

    down, up = costs(ones), costs(people - ones)
    return np.concatenate((-down[::-1], [0], -up))


def _sum_of_smallest(levels: Any, level: Any, people: Any, start: Any, end: Any, needed: Any) -> Any:
    """The sum of the `needed` smallest levels of the entries from `start` to `end`, for many ranges at once.

    A wavelet matrix (Claude and Navarro 2012): bit by bit of the levels' indices, each range is split into
    entries with a 0 and with a 1. If the people of those with a 0 are enough, it goes on with them; else they
    are all taken, and it goes on with the others.
    """
    cost, index = np.zeros(needed.size, dtype=np.int64), np.zeros(needed.size, dtype=np.int64)
    paid = np.where(levels == PUBLIC, 0, levels)
    for bit in reversed(range(max(1, int(levels.size - 1).bit_length()))):
        zero = (level >> bit) & 1 == 0
        entries, counts, costs = (
            np.concatenate(([0], np.cumsum(x))) for x in (zero, people * zero, people * zero * paid[level])
        )
        available = counts[end] - counts[start]
        enough = needed <= available
        cost += np.where(enough, 0, costs[end] - costs[start])
        needed = np.where(enough, needed, needed - available)
        index += np.where(enough, 0, 1 << bit)
        zeros = int(entries[-1])
        start, end = (np.where(enough, entries[x], zeros + x - entries[x]) for x in (start, end))
        order = np.concatenate((np.flatnonzero(zero), np.flatnonzero(~zero)))
        level, people = level[order], people[order]
    last = np.minimum(index, levels.size - 1)
    return np.where((levels[last] == PUBLIC) & (needed > 0), -IMPOSSIBLE, cost + needed * paid[last])


def _people_at(summary: Summary, order: Any) -> tuple[Any, Any, Any]:
    """Point, place of the level in `order`, and people of the entries that are read, by ascending point."""
    place = np.full(summary.people.size, -1, dtype=np.int64)
    place[order] = np.arange(order.size)
    entries = np.flatnonzero((place[summary.level] >= 0) & (summary.amount > 0))
    entries = entries[np.argsort(summary.output[entries], kind="stable")]
    return summary.output[entries], place[summary.level[entries]], summary.amount[entries].astype(np.int64)


def _choose(scores: Any, noise: Noise, scale: int, times: Any = None) -> int:
    possible = np.flatnonzero(scores > IMPOSSIBLE)
    return int(possible[choice(noise, scores[possible], scale, None if times is None else times[possible])])


# ---- prediction --------------------------------------------------------------------------------------------


def _predict(task: Task, calibration: Calibration) -> Prediction:
    target, n, read = task.target, task.total, int(task.people.sum())
    unread = 1 / read - 1 / n  # people whom the share leaves with nothing: those who are read stand for them
    bias_bound = (n - read) / n
    if isinstance(target, Extremes):
        beyond = 100 * sqrt(_beyond(task))  # beyond everyone is a whole miss
        return Prediction(beyond, beyond, bias_bound, FixedInterval((0.0, 100.0)))
    if isinstance(target, Counted):
        # how many meet the condition is not known: the worst of several shares
        shares = (0.001, 0.02, 0.1, 0.3, 0.5)
        of_choice = max(_rank_rmse(task, share, 1 - share, 1, grows=False) for share in shares)
        here = n * sqrt(of_choice**2 + target.variance * unread)
        spread = Spread(
            sampling=n * sqrt(target.variance * unread),
            step=n * STEP / read if unread else 0.0,
            laplace=n * of_choice / sqrt(2),
            extra=n * _people_changed(task, 2 * log(read + 1)) / read,
        )
        return Prediction(sqrt(here**2 + target.variance * n), here, bias_bound, AroundValue(target, spread))
    outputs, log_points = target.outputs, log(target.total_times)
    cost = 100 * target.smooth_cost
    rmses = [cost * _rank_rmse(task, float(p), 1 - float(p), outputs) for p in target.ps]
    if not _is_safe(task):
        worst = 100 * _people_changed(task, 2 * outputs * (log_points + 2)) / read
        farthest = [100 * float(max(p, 1 - p)) for p in target.ps]
        rmses = [min(most, max(rmse, worst)) for most, rmse in zip(farthest, rmses, strict=True)]
    of_choice = sqrt(sum(rmse**2 for rmse in rmses) / outputs)
    here = sqrt(of_choice**2 + 100**2 * target.variance / outputs * unread)
    spread = Spread(
        sampling=100 * sqrt(target.max_variance * unread),
        laplace=of_choice / sqrt(2),
        extra=100 * _people_changed(task, 2 * outputs * log_points) / read,
    )
    error_model = AroundRank(spread, tuple(100 * float(p) for p in target.ps), target.listed)
    return Prediction(sqrt(here**2 + 100**2 * target.variance / outputs / n), here, bias_bound, error_model)


def _rank_rmse(task: Task, p: float, q: float, outputs: int, grows: bool = True) -> float:
    """Root mean square of the fraction of people by which the answer is off.

    p·n people are below it and q·n above. `grows`: with each rank that it is off, one more can change.
    """
    n = int(task.people.sum())
    mass = square = 0.0
    for side in (p, q):
        most = max(1, int(side * n))
        ranks = np.concatenate((np.arange(min(most, 2000) + 1), np.geomspace(1, most, 3000)))
        k = np.unique(np.round(ranks).astype(np.int64))
        k = k[k <= most]
        width = np.diff(np.append(k, most + 1))  # each stands for those up to the next
        other = (q if side == p else p) * n
        cost = _sum_of_cheapest(task, k, other + (k if grows else 0))
        weight = np.exp(-cost / (2 * outputs)) * width
        mass += float(weight.sum()) - 0.5  # k = 0 is counted on both sides
        square += float((weight * (k / n) ** 2).sum())
    return sqrt(square / mass)


def _sum_of_cheapest(task: Task, k: Any, people: Any) -> FloatArray:
    """S(k): the sum of the k smallest levels among so many people drawn at random."""
    levels, share = as_floats(task.levels), task.people / task.people.sum()
    finite = levels < inf
    ends = np.concatenate(([0.0], np.cumsum(share[finite])))
    sums = np.concatenate(([0.0], np.cumsum(share[finite] * levels[finite])))
    fraction = k / np.maximum(people, 1e-300)
    cost = np.maximum(people, 0) * np.interp(fraction, ends, sums)
    return np.where(fraction > ends[-1] + 1e-12, inf, cost)


def _people_changed(task: Task, cost: float) -> float:
    """How many people can change at that cost, if the cheapest of all do. (Public people cannot.)"""
    levels = as_floats(task.levels)
    levels, people = levels[levels < inf], task.people[levels < inf]
    spent = np.concatenate(([0.0], np.cumsum(people * levels)))
    return float(np.interp(cost, spent, np.concatenate(([0.0], np.cumsum(people)))))


def _is_safe(task: Task) -> bool:
    """Whether an answer with everyone on one side of it is improbable, whatever the values are."""
    target: Quantiles = task.target
    smaller_side = float(min(min(p, 1 - p) for p in target.ps)) * float(task.people.sum())
    return _people_changed(task, 2 * target.outputs * log(target.total_times / MISS)) <= smaller_side


def _beyond(task: Task) -> float:
    """How probable an answer beyond everyone is, if everyone lies at the far end.

    Then all points but one cost the smallest level.
    """
    level = float(as_floats(task.levels)[0])
    outside = 0.0 if level == inf else (task.target.total_times - 1) * exp(-min(level, 1400.0) / 2)
    return outside / (1 + outside)


METHOD = Method(
    (Quantiles, Extremes, Counted), _calibrate, _predict, _answer, needs_size=True, bounds_bias=False
)
