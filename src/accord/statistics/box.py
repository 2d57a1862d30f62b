"""The law of a noise that many sums share (`box` of noise.py): of one coordinate, of all, of sums of several.

In units of 10⁶ spans, and up to steps of one span, a coordinate of a box of K is z_k = R·U_k: a radius R with
the law Gamma(K + 1), the same for all of them, and U_k uniform on [−1, 1], independent. So
(docs/proofs/box.md)

    Var z_k = (K + 1)(K + 2)/3,  where K even shares and Laplace noises have 2K²
    P(|z_k| > h) = Q(K + 1, h) − (h/K)·Q(K, h),  the density is Q(K, |z|)/2K
    P(max_k |z_k| > h) = Q(K, h)

with the regularised upper incomplete gamma function Q. Coordinates are uncorrelated, but not independent.

A sum Σ a_k·z_k, with a normal error and Laplace noises besides, is symmetric and has the transform
φ(t) = exp(−s²t²/2)·Π 1/(1 + b²t²)·E_R Π_k sin(a_k·R·t)/(a_k·R·t). A product of m sines is a sum of 2^m
exponentials, and E[R^−m·exp(icRt)] = (K − m)!/K!·(1 − ict)^(m − K − 1); of many coordinates the mean over R
is a Gauss-Legendre sum. With a length L beyond which it hardly ever lies, its Fourier series is
P(|X| ≤ h) = h/L + Σ_n 2·sin(nπh/L)/(nπ)·φ(nπ/L).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import exp, inf, lgamma, log, pi, prod, sqrt

import numpy as np

from accord.statistics import convolution
from accord.theory import FloatArray

_TERMS, _RADII = 4096, 256
_EXPANDED = 5
"""Of so many coordinates at most, a product of sines is expanded,"""
_LEAST_PRODUCT = 1e-4
"""unless effects are so unequal that the terms would cancel."""
_SMALLEST = 1e-10
"""Probabilities below this are bounded, not reckoned: a series adds up numbers of size 1."""


@dataclass(frozen=True)
class Share:
    """What a number has of a box: Σ effect·z over some of its coordinates, in units of 10⁶ spans."""

    coordinates: int
    """Of the whole box."""
    effects: tuple[float, ...]

    def times(self, factor: float) -> Share:
        return Share(self.coordinates, tuple(factor * effect for effect in self.effects))

    @property
    def variance(self) -> float:
        return variance(self.coordinates) * sum(effect**2 for effect in self.effects)


def variance(coordinates: int) -> float:
    """Of each coordinate of a box.

    >>> variance(1)  # of one alone, a Laplace noise
    2.0
    """
    return (coordinates + 1) * (coordinates + 2) / 3


def upper_gamma(k: int, x: float) -> float:
    """Q(k, x): the probability that a variable of the law Gamma(k) is larger than x, for whole k ≥ 0."""
    if x <= 0:
        return 1.0 if k else 0.0
    return min(1.0, sum(exp(j * log(x) - x - lgamma(j + 1)) for j in range(k)))


def tail(h: float, coordinates: int) -> float:
    """P(|z_k| > h), of one coordinate.

    >>> round(tail(2.0, 1), 9) == round(exp(-2), 9)
    True
    """
    k = coordinates
    return max(0.0, upper_gamma(k + 1, h) - h / k * upper_gamma(k, h)) if h > 0 else 1.0


def band(alpha: float, coordinates: int) -> float:
    """h with P(max_k |z_k| > h) = alpha: all coordinates are within it at once, but for alpha."""
    return _where_falls_to(alpha, partial(upper_gamma, coordinates), coordinates + 1.0)


@lru_cache(maxsize=4096)
def half_width(normal: float, scales: tuple[float, ...], shares: tuple[Share, ...], alpha: float) -> float:
    """h with P(|X| > h) = alpha, for a normal error, Laplace noises and parts of different boxes together.

    >>> round(half_width(0.0, (), (Share(1, (1.0,)),), 0.05), 4)
    2.9957
    """
    shares = tuple(share for share in map(_simplest, shares) if share.effects)
    if not shares:
        return convolution.half_width(normal, scales, alpha)
    if alpha < _SMALLEST:
        return _certain_half_width(normal, scales, shares, alpha)
    unit = sqrt(normal**2 + 2 * sum(b * b for b in scales) + sum(share.variance for share in shares))
    parts = tuple(share.times(1 / unit) for share in shares)
    length, series = _series(normal / unit, tuple(b / unit for b in scales), parts)
    frequencies = np.arange(1, _TERMS + 1) * (pi / length)

    def beyond(h: float) -> float:
        return 1 - h / length - float(np.sin(frequencies * h) @ series)

    low, high = 0.0, length
    while high - low > 1e-9 * high:  # bisection: the tail falls in h
        h = (low + high) / 2
        low, high = (h, high) if beyond(h) > alpha else (low, h)
    return unit * high


def several_tail(h: float, normal: float, scales: tuple[float, ...], shares: tuple[Share, ...]) -> float:
    """P(|X| > h); at least `_SMALLEST`, to which it is exact, or a little above it."""
    shares = tuple(share for share in map(_simplest, shares) if share.effects)
    if not shares:
        return convolution.tail(h, normal, scales)
    length, series = _series(normal, scales, shares)
    if h >= length:
        return _SMALLEST
    frequencies = np.arange(1, _TERMS + 1) * (pi / length)
    return min(1.0, max(_SMALLEST, 1 - h / length - float(np.sin(frequencies * h) @ series)))


def _simplest(share: Share) -> Share:
    """Without the effects that are nothing beside the others: these are added to the largest.

    That makes no tail smaller: for symmetric log-concave laws, weights that are more unequal are less peaked
    (Proschan 1965).
    """
    effects = sorted((abs(effect) for effect in share.effects if effect), reverse=True)
    if not effects:
        return Share(share.coordinates, ())
    small = sum(effect for effect in effects if effect < 1e-6 * effects[0])
    return Share(
        share.coordinates,
        (effects[0] + small, *(effect for effect in effects[1:] if effect >= 1e-6 * effects[0])),
    )


def _certain_half_width(
    normal: float, scales: tuple[float, ...], shares: Sequence[Share], alpha: float
) -> float:
    """At least as much as the half width: each box by itself, as if all its effects were one."""
    each = alpha / (1 + len(shares))
    half = convolution.half_width(normal, scales, each) if normal or scales else 0.0
    for share in shares:
        k = share.coordinates
        half_width = _where_falls_to(each, partial(_tail_of, k), k + 1.0)
        half += sum(map(abs, share.effects)) * half_width
    return half


def _tail_of(coordinates: int, h: float) -> float:
    return tail(h, coordinates)


def _where_falls_to(alpha: float, falling: Callable[[float], float], start: float) -> float:
    """h at which a probability that falls in h is alpha."""
    low, high = 0.0, start
    while falling(high) > alpha:
        low, high = high, 2 * high
        if high == inf:
            return inf
    while high - low > 1e-12 * high:
        h = (low + high) / 2
        low, high = (h, high) if falling(h) > alpha else (low, h)
    return high


@lru_cache(maxsize=256)
def _series(normal: float, scales: tuple[float, ...], shares: tuple[Share, ...]) -> tuple[float, FloatArray]:
    """A length beyond which X hardly ever lies (less than 10⁻¹²), and 2φ(nπ/L)/(nπ) for it."""
    length = 8 * normal + 35 * sum(scales)
    length += sum(_largest_radius(share.coordinates) * sum(share.effects) for share in shares)
    n = np.arange(1, _TERMS + 1)
    t = np.asarray(n * (pi / length), dtype=np.float64)
    transform = np.exp(-((normal * t) ** 2) / 2)
    for b in scales:
        transform = transform / (1 + (b * t) ** 2)
    for share in shares:
        transform = transform * _transform(share, t)
    return length, np.asarray(2 / (pi * n) * transform, dtype=np.float64)


def _transform(share: Share, t: FloatArray) -> FloatArray:
    """E exp(it·Σ a_k·z_k)."""
    k, m = share.coordinates, len(share.effects)
    largest = max(share.effects)
    if m == 1 or (m <= min(k, _EXPANDED) and prod(e / largest for e in share.effects) > _LEAST_PRODUCT):
        total = np.zeros(t.size, dtype=np.complex128)
        for signs in product((1, -1), repeat=m):
            c = sum(sign * effect for sign, effect in zip(signs, share.effects, strict=True))
            total += prod(signs) * (1 - 1j * c * t) ** (m - k - 1)
        factor = exp(lgamma(k - m + 1) - lgamma(k + 1)) / (2**m * prod(share.effects))
        return np.asarray((factor * total / (1j * t) ** m).real, dtype=np.float64)
    radii, weights = _radii(k)
    products = np.ones((radii.size, t.size))
    for effect, times in zip(*np.unique(share.effects, return_counts=True), strict=True):
        products *= np.sinc(effect / pi * np.outer(radii, t)) ** times
    return np.asarray(weights @ products, dtype=np.float64)


def _largest_radius(coordinates: int) -> float:
    return coordinates + 1 + 8 * sqrt(coordinates + 1) + 30


@lru_cache(maxsize=64)
def _radii(coordinates: int) -> tuple[FloatArray, FloatArray]:
    """Radii, and the probability of each: Gauss-Legendre nodes with the density of Gamma(K + 1)."""
    shape = coordinates + 1
    low, high = max(0.0, shape - 8 * sqrt(shape)), _largest_radius(coordinates)
    nodes, weights = np.polynomial.legendre.leggauss(_RADII)
    radii = low + (high - low) * (nodes + 1) / 2
    density = np.exp((shape - 1) * np.log(radii) - radii - lgamma(shape))
    weights = weights * density
    return radii, weights / weights.sum()
