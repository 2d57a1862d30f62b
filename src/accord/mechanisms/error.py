"""Predicted error of a noisy weighted mean, and its interval: from public things alone.

With the weight w_i of person i, σ² their variance and N the variance of the noise:

    about the population   σ²·Σw² + N                    [C], [Z]
    about these people     σ²·Σ(w − 1/n)² + N            [J]: levels do not go with values, so the people of a level are a random draw
    κ                      Σ(w − 1/n)₊: if the means of any two levels differ by at most D, the answer is off by at most κ·D
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import erfc, exp, inf, isinf, log, pi, sqrt

import numpy as np

from accord.mechanisms.record import Calibration, Task
from accord.mechanisms.size import BySize
from accord.statistics import Additive, Answer, Ends, Interval, Query


@dataclass(frozen=True)
class Prediction:
    """In the answer's units, for one output (root mean square over all of them)."""

    rmse: float
    rmse_here: float
    bias_bound: float | None
    sampling: float = 0.0
    """Standard deviation, about these people, of what the weights do."""
    laplace: float = 0.0
    """Scale of the Laplace noise (of one with the same variance, if there are several)."""
    several: bool = False
    shift: tuple[float, float] = (0.0, 0.0)
    """What the answer leaves out lies between these."""
    rounding: float = 0.0
    fixed: Interval | None = None
    """The interval, where it does not depend on the answer."""

    centres: tuple[float, ...] = ()
    """Of a query about ranks: the percentiles that were asked for. The interval is about them, and not about the value."""
    listed: bool = False
    ends: Callable[[float], list[Ends]] | None = field(default=None, compare=False)
    """Of a query about ranks: the interval for a probability of error, where normal errors are no good model."""
    looks: int = 1
    """How many choices must all be within the interval."""
    slack: float = 0.0
    """Of a choice: what the number of points adds to the interval, so that it holds whatever the values are."""
    by_size: BySize | None = None
    """Of ranks, where the number of people is private: the interval and the error, by their noisy size."""

    def interval(self, value: Answer, confidence: float, stretch: float = 1.0) -> Interval:
        """About these people. The bias that κ bounds is not in it. `stretch`: how many times the error is that of everyone being there."""
        if self.fixed is not None:
            return self.fixed
        alpha = (1 - confidence) / self.looks
        if self.ends is not None:
            return self.ends(alpha) if self.listed else self.ends(alpha)[0]
        half = half_width(self.sampling, self.laplace, alpha)
        if self.several:  # lies between the Laplace and the normal law of the same variance
            half = max(half, half_width(sqrt(self.sampling**2 + 2 * self.laplace**2), 0.0, alpha))
        half = half * stretch + self.rounding + self.slack
        if self.centres:
            ends = [(max(0.0, c - half), min(100.0, c + half)) for c in self.centres]
            return ends if self.listed else ends[0]
        below, above = self.shift[0] - half, self.shift[1] + half
        if isinstance(value, dict):
            return {cell: (v + below, v + above) for cell, v in value.items()}
        assert isinstance(value, float)
        return value + below, value + above


def predict(task: Task, calibration: Calibration) -> Prediction:
    """The error of a calibrated additive mechanism."""
    query: Query = task.query
    n, w, size = task.total, calibration.weights, query.size(task.total)
    outputs = query.outputs
    gap, square = task.scratch
    np.square(np.subtract(w, 1 / n, out=gap), out=square)
    unread = n - int(task.people.sum())  # a small share leaves them with less than a millionth
    spread = float(task.heads @ square) + unread / n**2
    output_noise = calibration.noise / outputs
    laplace = size * sqrt(output_noise / 2)
    population = task.variance / outputs * float(task.heads @ np.square(w, out=square)) + output_noise
    if calibration.missing:
        assert isinstance(query, Additive)
        low, high = (query.finish([end], 1) for end in (Fraction(0), Fraction(query.span)))
        assert isinstance(low, float) and isinstance(high, float)
        bias = calibration.missing * max(abs(low), abs(high)) / n
        return Prediction(
            size * sqrt(population + bias**2),
            size * sqrt(output_noise + bias**2),
            None,
            laplace=laplace,
            shift=(calibration.missing * low, calibration.missing * high),
            rounding=size * query.rounding,
        )
    here = task.variance / outputs * spread + output_noise
    return Prediction(
        rmse=size * sqrt(population),
        rmse_here=size * sqrt(here),
        bias_bound=float(task.heads @ np.maximum(gap, 0, out=gap)),
        sampling=size * sqrt(query.peak * spread),
        laplace=laplace,
        several=calibration.several,
        rounding=size * query.rounding,
    )


@lru_cache(maxsize=1024)  # thousands of groups may have one error
def half_width(s: float, b: float, alpha: float) -> float:
    """h with P(|N(0, s²) + Lap(b)| > h) = alpha.

    >>> round(half_width(1, 0, 0.05), 4), round(half_width(0, 1, 0.05), 4)
    (1.96, 2.9957)
    """
    if s <= 1e-12 * b:
        return b * log(1 / alpha)
    high = b * log(2 / alpha) + 40 * s
    low = 0.0
    for _ in range(200):  # bisection: the tail falls in h
        h = (low + high) / 2
        low, high = (h, high) if tail(h, s, b) > alpha else (low, h)
        if high - low <= 1e-13 * high:
            break
    return high


def tail(h: float, s: float, b: float) -> float:
    """P(|N(0, s²) + Lap(b)| > h) for s > 0: 2Q(h/s) + e^{s²/2b²}[e^{−h/b}Φ(h/s − s/b) − e^{h/b}Φ(−h/s − s/b)]."""
    u = h / s
    normal = erfc(u / sqrt(2))
    if b == 0 or isinf(s / b):
        return normal
    v = s / b
    right = (
        exp(v * (v / 2 - u)) * erfc((v - u) / sqrt(2)) / 2
        if u >= v
        else exp(-u * u / 2) * _erfcx((v - u) / sqrt(2)) / 2
    )
    left = exp(-u * u / 2) * _erfcx((u + v) / sqrt(2)) / 2
    return normal + right - left


def _erfcx(z: float) -> float:
    """e^{z²}·erfc(z) for z ≥ 0, without overflow."""
    if z < 20:
        return exp(z * z) * erfc(z)
    w = 1 / (2 * z * z)
    return (1 - w * (1 - 3 * w * (1 - 5 * w))) / (z * sqrt(pi)) if z < inf else 0.0
