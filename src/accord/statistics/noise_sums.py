"""How far a sum of independent noises is off: a normal error and many Laplace noises together.

The law of X = N(0, s²) + Σ Lap(b_k) is symmetric, with the characteristic function
φ(t) = e^{−s²t²/2}·Π 1/(1 + b_k²t²), and

    P(|X| ≤ h) ≥ 2h/p + Σ_{n ≤ N} (2/πn)·φ(t_n)·sin(t_n·h) − (2/π)·φ(t_N) − P(|X| > p − h),  t_n = 2πn/p

for every period p > h: Poisson's sum gives what X has within h of every multiple of p, of which all but the
first are in the last term. What is left out of the series is at most Σ_{n > N} (2/πn)·φ(t_n), and as soon as
b·t_N ≥ 1 for one of the scales, 1/(1 + b²t²) ≤ 2·(t_N/t)²/(1 + b²t_N²) for larger t, so that this is at most
(2/π)·φ(t_N); as soon as s·t_N ≥ √2, e^{−s²t²/2} ≤ (t_N/t)²·e^{−s²t_N²/2} does the same. So an interval from
it holds, up to the rounding of floats. Where the series would be long, or α is so small that rounding
matters, Chernoff's bound is taken, which holds as well and is wider:

    P(|X| > h) ≤ 2·exp(s²λ²/2 − Σ log(1 − b_k²λ²) − λh)   for every 0 < λ < 1/max b
"""

from __future__ import annotations

from functools import lru_cache
from math import log, pi, sqrt
from typing import TypeAlias

import numpy as np

from accord.statistics.spread import half_width
from accord.theory import FloatArray

Scales: TypeAlias = tuple[tuple[float, int], ...]
"""Of Laplace noises, and how many there are of each."""
_LEAST_ALPHA = 1e-6
"""Of less, what floats are off by in the series would matter."""
_PRECISION, _ENOUGH = 1e-6, 1e-2
"""What is left out may be such a part of α, and of the longest series such a one: it counts as tail."""
_TERMS = tuple(2**k for k in range(7, 17))
_TRIED = np.linspace(0.0, 1.0, 202)[1:-1]


@lru_cache(maxsize=1024)
def half_width_of_sum(s: float, scales: Scales, alpha: float) -> float:
    """h with P(|N(0, s²) + Σ Lap(b)| > h) ≤ alpha, as near to it as can be told.

    >>> round(half_width_of_sum(0, ((1.0, 1),), 0.05), 3), round(half_width_of_sum(0, ((1.0, 100),), 0.05), 2)
    (2.996, 27.73)
    """
    drawn = tuple((b, times) for b, times in scales if b > 0)
    if sum(times for _, times in drawn) <= 1:
        return half_width(s, drawn[0][0] if drawn else 0.0, alpha)
    widest = chernoff(s, drawn, alpha)
    terms = _series(s, drawn, widest, alpha) if alpha >= _LEAST_ALPHA else None
    if terms is None:
        return widest
    frequencies, weights, remainder = terms
    period = 2 * pi / float(frequencies[0])
    low, high = 0.0, widest
    while high - low > 1e-9 * high:  # bisection: the tail falls in h
        h = (low + high) / 2
        inside = 2 * h / period + float(weights @ np.sin(frequencies * h))
        low, high = (h, high) if 1 - inside + remainder > alpha else (low, h)
    return high


def _series(
    s: float, scales: Scales, widest: float, alpha: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """t_n, (2/πn)·φ(t_n), and at most what is left out, for h up to `widest`; None: it would be too long."""
    beyond = _PRECISION * alpha
    period = widest + chernoff(s, scales, beyond)
    largest = max(b for b, _ in scales)
    for terms in _TERMS:
        last = 2 * pi * terms / period
        left_out = 2 / pi * float(np.exp(_log_transform(s, scales, np.array([last]))[0]))
        part = _ENOUGH if terms == _TERMS[-1] else _PRECISION
        if left_out <= part * alpha and (largest * last >= 1 or s * last >= sqrt(2)):
            n = np.arange(1, terms + 1)
            frequencies = 2 * pi * n / period
            weights = 2 / (pi * n) * np.exp(_log_transform(s, scales, frequencies))
            return frequencies, weights, left_out + beyond
    return None


def _log_transform(s: float, scales: Scales, t: FloatArray) -> FloatArray:
    """log φ(t)."""
    total: FloatArray = -0.5 * (s * t) ** 2
    for b, times in scales:
        total = total - times * np.log1p((b * t) ** 2)
    return total


def chernoff(s: float, scales: Scales, alpha: float) -> float:
    """h with P(|N(0, s²) + Σ Lap(b)| > h) ≤ alpha by Chernoff's bound: it holds for every λ that is tried."""
    largest = max(b for b, _ in scales)
    variance = s**2 + 2 * sum(times * b**2 for b, times in scales)
    normal = sqrt(2 * log(2 / alpha) / variance)  # the best λ of a normal law
    tried = np.unique(np.concatenate((_TRIED / largest, np.array([normal]))))
    rates = tried[tried * largest < 1]
    logs = 0.5 * (s * rates) ** 2
    for b, times in scales:
        logs = logs - times * np.log1p(-((b * rates) ** 2))
    return float(((log(2 / alpha) + logs) / rates).min())
