"""The empirical method: many releases with real noise on neighbors, and what they surely show.

If person i loses at most c, then P(A) ≤ exp(c)·P′(A) for every event A. Half of the runs choose the event,
out of many, that tells the two tables apart best; the other half, which has not been looked at, gives the
bound: with probability 1 − α, P(A) is at least p and P′(A) at most q (Clopper and Pearson 1934, one-sided,
α/2 each), so that the loss is at least ln(p/q). α is shared among all looks of an audit (Bonferroni), so that
a sound library passes with probability 1 − α or more, whatever was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import inf, isnan, log, log1p, nan, sqrt
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_PLACES = 24
_STEPS = 60
_FAR = 2.5
"""Over √runs: samples whose distribution functions differ by more do not look alike (Kolmogorov, Smirnov)."""


def loss_lower_bound(answers: Sequence[Any], answers_there: Sequence[Any], alpha: float) -> float:
    """What two releases surely differ by, from their answers; 0 if they do not surely differ.

    1 − alpha is how sure it is, for both directions together.
    """
    here, there = _features(answers), _features(answers_there)
    width = max(here.shape[1], there.shape[1])
    here, there = _wide(here, width), _wide(there, width)
    half = len(answers) // 2
    best = 0.0
    for x, y in ((here, there), (there, here)):
        event = _event(x[:half], y[:half], alpha)
        hits, hits_there = int(event(x[half:]).sum()), int(event(y[half:]).sum())
        best = max(best, log_ratio(hits, len(x) - half, hits_there, len(y) - half, alpha / 2))
    return best


def log_ratio(hits: int, runs: int, hits_there: int, runs_there: int, alpha: float) -> float:
    """A lower bound of ln(P/P′), from the number of times that an event happened here and there."""
    least = probability_at_least(hits, runs, alpha / 2)
    most = probability_at_most(hits_there, runs_there, alpha / 2)
    return log(least / most) if least > 0 else -inf


def probability_at_least(hits: int, runs: int, alpha: float) -> float:
    """The smallest probability for which so many hits or more are not a surprise: P(X ≥ hits) = α."""
    if hits == 0:
        return 0.0
    k = np.arange(hits, runs + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, runs + 1)))))
    binomials = logs[runs] - logs[k] - logs[runs - k]
    low, high = 0.0, hits / runs
    for _ in range(_STEPS):
        p = (low + high) / 2
        surprise = float(np.exp(binomials + k * log(p) + (runs - k) * log1p(-p)).sum()) < alpha
        low, high = (p, high) if surprise else (low, p)
    return low


def probability_at_most(hits: int, runs: int, alpha: float) -> float:
    """The largest probability for which so few are not a surprise: P(X ≤ hits) = α."""
    return 1 - probability_at_least(runs - hits, runs, alpha)


# ---- events ------------------------------------------------------------------------------------------------


Event = Callable[[Floats], NDArray[np.bool_]]


def _event(here: Floats, there: Floats, alpha: float) -> Event:
    """The event that best tells here from there, by these runs.

    A number beyond a place, all of them beyond theirs, or a number that is one very value.
    """
    columns = range(here.shape[1])
    sign = np.where(_middles(here) >= _middles(there), 1.0, -1.0)
    events: list[Event] = []
    for k in columns:
        values = np.unique(np.concatenate((here[:, k], there[:, k])))
        events += [partial(_equals, k, v) for v in (values if values.size <= _PLACES else [nan])]
        events += [partial(_beyond, [k], sign[[k]], np.array([v])) for v in _places(here[:, k])]
    moved = [k for k in columns if _has_moved(here[:, k], there[:, k])]
    for rank in np.linspace(0.02, 0.98, _PLACES) if len(moved) > 1 else ():
        ends = np.array([_rank(here[:, k], rank if sign[k] > 0 else 1 - rank) for k in moved])
        events.append(partial(_beyond, moved, sign[moved], ends))
    return max(events, key=lambda e: _score(int(e(here).sum()), int(e(there).sum()), alpha))


def _equals(column: int, value: float, x: Floats) -> NDArray[np.bool_]:
    return np.isnan(x[:, column]) if isnan(value) else x[:, column] == value


def _beyond(columns: list[int], sign: Floats, ends: Floats, x: Floats) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray((sign * x[:, columns] >= sign * ends).all(axis=1))


def _score(hits: int, hits_there: int, alpha: float) -> float:
    """About what the bound would be, by a normal law: enough to choose by."""
    h, t = hits + 0.5, hits_there + 0.5
    return log(h / t) - sqrt(2 * log(1 / alpha) * (1 / h + 1 / t))


def _has_moved(here: Floats, there: Floats) -> bool:
    """Whether two samples do not look alike: by the largest distance of their distribution functions."""
    places = np.sort(np.concatenate((here, there)))
    functions = [np.searchsorted(np.sort(x), places, side="right") / x.size for x in (here, there)]
    return float(np.abs(functions[0] - functions[1]).max()) > _FAR / sqrt(here.size)


def _middles(x: Floats) -> Floats:
    return np.array([_rank(x[:, k], 0.5) for k in range(x.shape[1])])


def _places(column: Floats) -> Floats:
    return np.unique([_rank(column, rank) for rank in np.linspace(0.0, 1.0, _PLACES)])


def _rank(column: Floats, rank: float) -> float:
    values = column[~np.isnan(column)]
    return float(np.quantile(values, rank, method="nearest")) if values.size else 0.0


def _features(answers: Sequence[Any]) -> Floats:
    """Answers as rows of numbers; what is not there is NaN."""
    rows = [numbers(answer) for answer in answers]
    width = max(1, *map(len, rows))
    return np.array([row + [nan] * (width - len(row)) for row in rows], dtype=np.float64)


def _wide(x: Floats, width: int) -> Floats:
    return np.concatenate((x, np.full((x.shape[0], max(0, width - x.shape[1])), nan)), axis=1)


def numbers(answer: Any) -> list[float]:
    """All numbers of an answer, in a row; text and other things count as a number of their own."""
    if answer is None:
        return [nan]
    if isinstance(answer, bool | np.bool_):
        return [float(answer)]
    if isinstance(answer, float | int | Fraction | np.number):
        value = float(answer)
        return [inf if isnan(value) else value]
    if isinstance(answer, str):
        return [_number_of_text(answer)]
    if isinstance(answer, dict):
        return [x for key in sorted(answer, key=str) for x in numbers(answer[key])]
    if isinstance(answer, np.ndarray):
        return numbers(answer.tolist())
    if isinstance(answer, list | tuple):
        return [x for part in answer for x in numbers(part)]
    if hasattr(answer, "__dict__") and vars(answer):
        return numbers({key: value for key, value in vars(answer).items() if not key.startswith("_")})
    return [_number_of_text(str(answer))]


def _number_of_text(text: str) -> float:
    """The same in every process, unlike Python's hash: a seed gives the same audit again."""
    return float(crc32(text.encode("utf-8", "surrogatepass")))
