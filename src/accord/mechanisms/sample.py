"""Sample: keep each person with a probability of their own, then answer about those who are kept. [J] Definition 9, Theorem 5.

Neighbors  replace, or add-remove.
Releases   the answer of a mechanism that is s-private under add-remove, on people who are kept independently with probability π_i; s is t under
           add-remove and t/2 under replace. Everyone with a level of t or more is kept.
Guarantee  person i loses at most min(ε_i, t). Fix who else is kept, and let p₀ be the law of the output without person i, p_x with them and a value x; then
           e^−s ≤ p_x/p₀ ≤ e^s, and person i makes it (1 − π)p₀ + π·p_x.
           *add-remove*: against p₀, the ratio is at most 1 + π(e^t − 1) = e^ε for π = (e^ε − 1)/(e^t − 1), and at least 1 − π(1 − e^−t) ≥ e^−ε.
           *replace*: two values are at most (1 − π + π·e^s)/(1 − π + π·e^−s) apart, which is e^ε for π = (e^ε − 1)/[(e^s − 1) + e^ε(1 − e^−s)]. This is
           more than the (e^{ε/2} − 1)/(e^{t/2} − 1) of sampling for add-remove at half the level, twice.
           π is rounded down to a multiple of 2⁻⁶³, and both ratios grow with π.
Denominators  The number of people who are kept is private. Dividing by it would lose more than is charged ([F] and [C] do so in their figures): at ε = 0.1, t = 1 and one other
           person, 0.132. Sums are divided by Σπ, which is public; an add-remove mean is a ratio of two noisy sums (query/present.py).
Size       Of quantiles whose number of people is private, the mechanism on those who are kept releases a noisy
           size of them beside the points, and is s-private with it (rank.py): all that it releases is one
           output of the law p₀ or p_x above. Under replace with a private `where=`, who is outside has p₀.
Error      of a mean: [Σπ(1 − π)·E(x − mid)² + σ²·Σπ² + 2Δ²/t²]/(Σπ)² about the population.
Deviates   from the paper: with one value a person, counts of people of one level with one value are thinned instead of rows, which is the same law.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, log, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import LARGEST, MICRO, PUBLIC, IntArray, level_text, total_of
from accord.mechanisms.error import Prediction, predict
from accord.mechanisms.rank import ANYWHERE, chosen, predict_rank
from accord.mechanisms.record import Calibration, Refused, Task, Way, frozen
from accord.mechanisms.size import MISS, BySize
from accord.statistics import Additive, Algorithm, Count, Histogram, Mean, MeanWhere, Quantile, Sum
from accord.statistics.order import Spending, spending
from accord.theory import FloatArray, as_floats

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

SURE = 2**63
"""π = 1: chances are whole numbers of 2⁻⁶³."""
_MOST_TRIED = 64
_ENOUGH = 2_000
_BLOCK = 2**22
_FEWEST = 1e-9
_MARGIN = 1 - 1e-9
"""More than what floats can be off when π is reckoned."""


def probabilities(levels: IntArray, t: int, neighbors: str) -> FloatArray:
    """π for each level, in floats; t and levels in millionths."""
    pi: FloatArray
    if t == PUBLIC:
        pi = (levels == PUBLIC).astype(np.float64)
        return pi
    high = t / MICRO
    low = np.minimum(as_floats(levels), high)
    with np.errstate(over="ignore"):
        if neighbors == "add-remove":
            pi = np.exp(low - high) * np.expm1(-low) / np.expm1(-high)
        else:
            s = high / 2
            rise = np.exp(-low) * np.expm1(s) if s < 700 else np.exp(s - low)
            pi = -np.expm1(-low) / (rise - np.expm1(-s))
    pi = np.where(levels >= t, 1.0, np.minimum(pi * _MARGIN, 1.0))
    return pi


def chances(pi: FloatArray) -> Any:
    """π as whole numbers of 2⁻⁶³, rounded down. (Multiplying by a power of two is exact.)"""
    return (pi * float(SURE)).astype(np.uint64)


def calibrate(task: Task) -> Calibration:
    """With the user's t, else the best one."""
    if isinstance(task.query, MeanWhere):
        raise Refused("would need the number of members who are kept, which is private")
    t = task.t
    if isinstance(t, int):
        return _at(task, t, f"t = {level_text(t)}")
    finite = task.levels[task.levels < PUBLIC]
    if t == "best" or (t is None and not isinstance(task.query, Algorithm)):
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
    pi = probabilities(task.levels, t, task.neighbors)
    kept = float(task.people @ pi)
    return np.inf if kept < _FEWEST else float(task.variance * (task.people @ pi**2)) / kept**2 + _noise(task, t, pi)


def _noise(task: Task, t: int, pi: FloatArray) -> float:
    """The variance that noise and leaving people out add."""
    query, kept, thinning = task.query, float(task.people @ pi), float(task.people @ (pi * (1 - pi)))
    if isinstance(query, Quantile):
        noise = 0.0 if t == PUBLIC else _spending(query).variance / (_inner(t, task.neighbors) * kept) ** 2
        noise += query.variance * thinning / kept**2
    elif isinstance(query, Additive):
        blur = (
            query.outputs * 2.0 * (1 if task.neighbors == "add-remove" else 4)
            if isinstance(query, Histogram)
            else task.blur
        )
        laplace = 0.0 if t == PUBLIC else blur / (t / MICRO) ** 2
        noise = (thinning * query.thinned + laplace) / kept**2
    else:
        noise = 0.0
    return noise


def _at(task: Task, t: int, told: str) -> Calibration:
    if t != PUBLIC and t > LARGEST:
        raise Refused(f"t is larger than {level_text(LARGEST)}")
    query, pi = task.query, probabilities(task.levels, t, task.neighbors)
    keep = chances(pi)
    kept, thinning = float(task.people @ pi), float(task.people @ (pi * (1 - pi)))
    if kept < _FEWEST:
        raise Refused(f"keeps nobody at {told}")
    charges = frozen(np.where(keep > 0, np.minimum(task.levels, t), 0))
    weights, noise = frozen(pi / kept), _noise(task, t, pi)
    note = f"{told}; keeps {kept / task.total:.1%} of the people at random"
    if isinstance(query, Quantile) and t != PUBLIC:
        least = float(min(min(p, 1 - p) for p in query.ps))
        needed = float(max(_cautious(query).choices)) * log(query.points / MISS)
        if _inner(t, task.neighbors) * kept * least < needed:
            note += f"; {ANYWHERE}"
    ps = query.ps if isinstance(query, Quantile) else ()
    return Calibration(
        charges, weights, noise, note, several=thinning > 0, ps=ps, neighbors=task.neighbors, keep=frozen(keep), t=t
    )


def _spending(query: Quantile) -> Spending:
    """Of those who are kept: under add-remove, at s. Their size is released where that of all is private."""
    return spending(query.ps, "add-remove", query.sized)


def _inner(t: int, neighbors: str) -> float:
    """s: what the mechanism on the people who are kept may spend under add-remove."""
    return t / MICRO / (1 if neighbors == "add-remove" else 2)


def thin(counts: Any, keep: Any, noise: Noise) -> IntArray:
    """How many of each group are kept, everyone by themselves with the group's chance in 2⁻⁶³."""
    kept = np.where(keep == SURE, counts, 0).astype(np.int64)
    drawn = np.flatnonzero((keep != SURE) & (keep > 0) & (counts > 0))
    sizes, limits = counts[drawn].astype(np.int64), keep[drawn]
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if drawn.size else 0
    for start in range(0, total, _BLOCK):  # people start … stop, whichever groups they are of
        stop = min(start + _BLOCK, total)
        first, last = np.searchsorted(ends, start, side="right"), np.searchsorted(ends, stop, side="left") + 1
        inside = np.minimum(ends[first:last], stop) - np.maximum(ends[first:last] - sizes[first:last], start)
        mask = noise.keep(np.repeat(limits[first:last], inside))
        kept[drawn[first:last]] += np.add.reduceat(mask, np.cumsum(inside) - inside, dtype=np.int64)
    return kept


def expected(calibration: Calibration, summary: Summary) -> Fraction:
    """Σπ, exactly."""
    return Fraction(sum(k * n for k, n in zip(calibration.keep.tolist(), summary.people.tolist(), strict=True)), SURE)


def _answer(summary: Summary, calibration: Calibration, query: Additive, noise: Noise) -> list[Fraction]:
    kept = thin(summary.amount, calibration.keep[summary.level], noise)
    cells = query.integers(summary.output)
    if query.span * int(summary.amount.sum()) >= 2**62:
        cells = cells.astype(object)
    there = expected(calibration, summary)
    t, span = calibration.t, query.span
    assert t is not None

    def noisy(value: int, reach: int) -> int:
        return value if t == PUBLIC else value + noise.laplace(Fraction(span * reach * MICRO, t))

    if isinstance(query, Histogram):
        counts = np.bincount(summary.output, kept, minlength=query.outputs).astype(np.int64)
        reach = 1 if calibration.neighbors == "add-remove" else 2  # s is t, or half of it
        return [Fraction(noisy(int(n), reach), 1) / there for n in counts]
    total = int((cells * kept).sum())
    if calibration.neighbors == "add-remove":
        sums = [total] if query.sums == 1 else [total, span * int(kept.sum()) - total]
        return [Fraction(noisy(s, 1), 1) / there for s in sums]
    # under replace, counted from the middle: one person then adds at most half a span in either direction. Twice that is a whole number.
    centred = noisy(2 * total - span * int(kept.sum()), 2)
    return [Fraction(span, 2) + Fraction(centred, 2) / there]


def _predict_ranks(task: Task, calibration: Calibration) -> Prediction:
    """As for so many people as are kept, all of the level s, and what thinning and weighting add about these very people."""
    query: Quantile = task.query
    assert calibration.t is not None
    pi = calibration.keep / float(SURE)
    kept = float(task.people @ pi)
    whole = max(1, ceil(kept))
    s = PUBLIC if calibration.t == PUBLIC else max(1, int(_inner(calibration.t, task.neighbors) * MICRO))
    alone = replace(task, levels=np.array([s]), people=np.array([whole]), total=whole, neighbors="add-remove")
    noise = 0.0 if s == PUBLIC else _spending(query).variance / (s / MICRO * kept) ** 2
    here_alone = Calibration(alone.levels, np.array([1 / whole]), noise, "", ps=query.ps)
    found = predict_rank(alone, here_alone, _cautious(query))
    gap = calibration.weights - 1 / task.total
    unread = task.total - int(task.people.sum())
    spread = float(task.people @ gap**2) + unread / task.total**2 + float(task.people @ (pi * (1 - pi))) / kept**2
    here = sqrt(found.rmse_here**2 + 1e4 * query.variance / query.outputs * spread)
    return replace(
        found,
        rmse=found.rmse,
        rmse_here=min(here, 100.0),
        bias_bound=float(task.people @ np.maximum(gap, 0)),
        sampling=100 * sqrt(query.peak * spread),
        ends=None,
        fixed=query.possible(task.total) if found.ends is not None and not query.sized else None,
        by_size=None if found.by_size is None else _by_size(found.by_size, task, calibration),
    )


def _cautious(query: Quantile) -> Spending:
    """As the error is predicted: under replace for a wider scale than is drawn, as if max(p, 1 − p) were 1."""
    return _spending(query) if query.sized else spending(query.ps, "replace", False)


def _by_size(alone: BySize, task: Task, calibration: Calibration) -> BySize:
    """For weights of t a person; those who are kept are some of all, at random."""
    everyone = bool((calibration.keep == SURE).all()) and int(task.people.sum()) == task.total
    assert calibration.t is not None
    each = 1.0 if calibration.t == PUBLIC else calibration.t / MICRO
    times = 1 if task.neighbors == "add-remove" else 2  # s is t, or half of it
    return replace(
        alone,
        choices=tuple(times * scale for scale in alone.choices),
        size=times * alone.size,
        heaviest=each,
        evenness=1.0 if everyone else 0.0,
        typical=each,
    )


def _answer_ranks(summary: Summary, calibration: Calibration, query: Quantile, noise: Noise) -> list[Fraction]:
    kept = thin(summary.amount, calibration.keep[summary.level], noise)
    at = np.zeros(summary.outputs, dtype=np.int64)
    np.add.at(at, summary.output, kept)
    t = calibration.t
    assert t is not None
    spent = _spending(query)
    if t == PUBLIC:
        return chosen(at, query.ps, noise, spent, True)
    if int(at.sum()) * t >= 2**62:
        at = at.astype(object)
    spent = spent.times(1 if calibration.neighbors == "add-remove" else 2)
    return chosen(at * t, query.ps, noise, spent, False)


def _unknown(task: Task, calibration: Calibration) -> Prediction:
    """Nobody can tell how well somebody else's algorithm does."""
    gap = calibration.weights - 1 / task.total
    return Prediction(nan, nan, float(task.people @ np.maximum(gap, 0)))


def _own(summary: Summary, calibration: Calibration, query: Algorithm, noise: Noise) -> list[Fraction]:
    raise TypeError("an algorithm is run on rows, not on a Summary")


ANY = Way((Algorithm,), calibrate, _unknown, _own, by_row=True)
MEANS = Way((Mean, Sum, Count, Histogram), calibrate, predict, _answer, by_cell=True)
RANKS = Way((Quantile,), calibrate, _predict_ranks, _answer_ranks)
