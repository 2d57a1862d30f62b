"""The law of a normal error and several independent Laplace noises together, by inversion of its transform.

X = N(0, s²) + Σ b_k·L_k has E exp(zX) = M(z) = exp(s²z²/2)·Π 1/(1 − b_k²z²) for |Re z| < 1/max b, and

    P(X > h) = (1/2πi) ∫ M(z)·exp(−zh)/z dz    along any line Re z = c with 0 < c < 1/max b.

The line may be bent into the branch z(u) = q·cosh(u + iθ), u real, of a hyperbola, because no pole lies
between them: 0 is to its left, and all 1/b_k are on the real axis to the right of q ≤ 1/max b, its focus. On
it exp(−zh) falls doubly exponentially, and so does M for θ > 45°. In the strip 45° < θ < 90° the integrand is
analytic, so that the sum over equally spaced u that stands for the integral converges exponentially
(Trefethen and Weideman 2014): with θ in the middle of the strip and steps of 0.05 its error is about
exp(−2π·(π/8)/0.05) ≈ 10⁻²¹ of what the integrand is on the strip's edges, and rounding is all that is left.
q = 2.6·h/Var X, where that is less than 1/max b, puts the vertex of the branch near the saddle point, so that
what is added up is not much larger than the result: probabilities down to 10⁻¹⁵ have six digits or more.
Equal scales are nothing special. (Partial fractions would divide by the differences of scales.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import acosh, cos, inf, pi, sqrt

import numpy as np

from accord.statistics import spread

_ANGLE, _STEP = 3 * pi / 8, 0.05
_FURTHEST = 60.0
"""Where the contour ends: exp(−60) is nothing beside what was added up."""
_NEAREST = 1e-9
"""Nearer to 0 than so many standard deviations, nothing need be told apart."""


def tail(h: float, normal: float, scales: Iterable[float]) -> float:
    """P(|X| > h) for a normal error of this standard deviation and Laplace noises of these scales.

    >>> from math import exp
    >>> round(tail(3.0, 0.0, [1.0, 1.0]), 9), round((1 + 3 / 2) * exp(-3), 9)  # of two equal noises
    (0.124467671, 0.124467671)
    """
    times = Counter(scales)
    largest = max(times, default=0.0)
    b = np.array([scale for scale in times if scale > 1e-12 * largest])
    each = np.array([times[scale] for scale in b.tolist()])
    deviation = sqrt(normal**2 + 2 * float(each @ (b * b)))
    if h <= _NEAREST * deviation:
        return 1.0 if h < deviation else 0.0
    if b.size == 0:
        return spread.tail(h, normal, 0.0) if normal else 0.0
    b, h, s = b / deviation, h / deviation, normal / deviation  # everything in standard deviations
    q = min(deviation / largest, 2.6 * h)
    end = acosh(max(1.0, _FURTHEST / (h * q * cos(_ANGLE)))) + 1.0
    places = np.arange(0.0, end, _STEP) + 1j * _ANGLE
    z = q * np.cosh(places)
    log_density = s * s * z * z / 2 - each @ np.log(1 - np.square(b[:, None] * z)) - z * h
    values = (np.exp(log_density) / z * q * np.sinh(places)).imag
    values[0] /= 2  # the other half of the branch is its conjugate
    return min(1.0, max(0.0, 2 * _STEP / pi * float(values.sum())))


@lru_cache(maxsize=4096)
def half_width(normal: float, scales: tuple[float, ...], alpha: float) -> float:
    """h with P(|X| > h) = alpha, for a normal error and Laplace noises as in `tail`.

    >>> round(half_width(0.0, (1.0,), 0.05), 4), round(half_width(1.0, (), 0.05), 4)
    (2.9957, 1.96)
    """
    if len(scales) <= 1:
        b = sum(scales)
        return spread.half_width(normal, b, alpha) if normal or b else 0.0
    low, high = 0.0, sqrt(normal**2 + 2 * sum(b * b for b in scales))
    while tail(high, normal, scales) > alpha:
        low, high = high, 2 * high
        if high == inf:
            return inf
    while high - low > 1e-10 * high:  # bisection: the tail falls in h
        h = (low + high) / 2
        low, high = (h, high) if tail(h, normal, scales) > alpha else (low, h)
    return high
