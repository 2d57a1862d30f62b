"""Closed forms and bounds of the papers, for whoever wants the number without the data.

[C] Chaudhuri, Courtade 2023, "Mean estimation under heterogeneous privacy: some privacy can be free".
[Z] Cyffers, Ziani 2026, "Limits of personalizing differential privacy budgets".

Everything here is about a mean of values in an interval of `width` Δ with standard deviation `std` σ (the
worst case, Δ/2, if it is not given) under replace. Errors are mean squared errors about the population, and
are never capped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, inf, log2
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO, PUBLIC
from accord.errors import PlanError
from accord.spec import Spec

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Affine:
    """The best affine estimator: Σ w_i x_i + Lap(scale), with w_i ∝ min(ε_i, τ)."""

    tau: float
    """Levels above it are clipped to it; the largest level if nobody is clipped."""
    scale: float
    """Of the Laplace noise on the mean."""
    mse: float
    weights: FloatArray
    """Of one person of each of `spec.levels`."""


@dataclass(frozen=True)
class Threshold:
    """The best single level: those who allow t are read, at t; the others are not."""

    t: float
    mse: float


@dataclass(frozen=True)
class Saturation:
    """Who gets privacy for free: people above τ are charged τ, because more would not help."""

    tau: float
    clipped: Mapping[float, int]
    """{level: people} above τ."""
    free: Mapping[float, float]
    """{level: ε − τ}: what they keep."""
    share: float
    """Of all people."""


@dataclass(frozen=True)
class TwoGroups:
    """[C] Theorem 1 and Table I, for values in an interval of width 1."""

    regime: str
    """"A": ε₂ ≤ R·ε₁, nobody is clipped. "B": the second group is clipped to R·ε₁."""
    R: float
    bound: float
    """Of the mean squared error, capped at ¼ (the midpoint reaches that)."""
    weights: tuple[float, float]


def affine(spec: Spec, width: float = 1.0, std: float | None = None) -> Affine:
    """The best affine estimator. [C] Algorithm 1, [Z] Claim 1.

    >>> a = affine(Spec.of([0.5, 1]))                     # [Z] Example 1: 37/36
    >>> round(a.mse * 36, 9), a.tau, a.weights.tolist()
    (37.0, 1.0, [0.333..., 0.666...])
    """
    levels, people = _levels_and_people(spec)
    variance = _sigma(width, std) ** 2
    tau = clip(levels, people, 2 * width**2 / variance)
    if tau == inf:
        return Affine(inf, 0.0, variance / spec.total, np.full(levels.size, 1 / spec.total))
    c = np.minimum(levels, tau)
    s, q = float(people @ c), float(people @ c**2)  # s_τ and q_τ of [Z] Claim 1
    return Affine(tau, width / s, (variance * q + 2 * width**2) / s**2, c / s)


def threshold(spec: Spec, width: float = 1.0, std: float | None = None) -> Threshold:
    """The best unique threshold. [Z] Definition 6, eq. (3).

    >>> threshold(Spec.of([0.5, 1])).mse * 8              # [Z] Example 1: 17/8
    17.0
    """
    levels, people = _levels_and_people(spec)
    errors = threshold_errors(levels, people, _sigma(width, std) ** 2, 2 * width**2)
    best = int(np.argmin(errors))
    return Threshold(float(levels[best]), float(errors[best]))


def gain(spec: Spec) -> float:
    """What full personalisation brings over the best threshold: MSE_thr / MSE_aff, at least 1. [Z] §3.

    >>> round(gain(Spec.from_groups({0.001: 10_000, inf: 12})), 2)      # "close to 1.95", [Z] §4
    1.96
    """
    return threshold(spec).mse / affine(spec).mse


def gain_bound(spec: Spec) -> float:
    """The most that `gain` can be, by the theorem of [Z] that applies to these levels.

    One level: 1. Public and one private level: 2 (Theorem 1). Two finite levels: 4 (Theorem 2).
    m levels among n people: min{(1 + log₂ n)², m²} (Theorem 4).

    >>> gain_bound(Spec.from_groups({0.1: 50, inf: 5})), gain_bound(Spec.from_groups({0.1: 50, 1: 5}))
    (2.0, 4.0)
    >>> gain_bound(Spec.from_groups({0.1: 50, 1: 5, 2: 5}))
    9.0
    """
    levels, _ = _levels_and_people(spec)
    if levels.size == 1:
        return 1.0
    if levels.size == 2:
        return 2.0 if levels[1] == inf else 4.0
    return min((1 + log2(spec.total)) ** 2, float(levels.size) ** 2)


def saturation(spec: Spec, width: float = 1.0, std: float | None = None) -> Saturation:
    """Who is clipped, at what level, and how much privacy they get for free. [C] §II-A.

    >>> s = saturation(Spec.from_groups({0.1: 700, 1.0: 200, inf: 100}))
    >>> round(s.tau, 9), dict(s.clipped), s.free[1.0], s.share
    (0.214285714, {1.0: 200, inf: 100}, 0.785714..., 0.3)
    """
    tau = affine(spec, width, std).tau
    above = [(level, n) for level, n in zip(spec.levels, spec.counts, strict=True) if level > tau]
    return Saturation(
        tau,
        MappingProxyType(dict(above)),
        MappingProxyType({level: level - tau for level, _ in above}),
        sum(n for _, n in above) / spec.total,
    )


def two_groups(n1: int, epsilon1: float, n2: int, epsilon2: float) -> TwoGroups:
    """The bound for n1 people at ε₁ and n2 at ε₂ ≥ ε₁. [C] Theorem 1, with the weights of Table I.

    No estimator beats it by more than a constant ([C] Theorem 2).

    >>> two_groups(700, 0.1, 300, 0.15).regime, two_groups(700, 0.1, 300, inf).regime
    ('A', 'B')
    >>> round(two_groups(700, 0.1, 300, inf).R, 9)
    2.142857143
    """
    if not (1 / MICRO <= epsilon1 <= epsilon2 and epsilon1 < inf and n1 > 0 and n2 >= 0):
        raise PlanError(
            f"two_groups got levels {epsilon1} and {epsilon2} with {n1} and {n2} people. "
            "It needs ε₁ ≤ ε₂, ε₁ finite and at least a millionth, and n1 > 0."
        )
    n, f = n1 + n2, n1 / (n1 + n2)
    R, r = 1 + 8 / (epsilon1**2 * n1), epsilon2 / epsilon1
    if r <= R:
        mean, square = f * epsilon1 + (1 - f) * epsilon2, f * epsilon1**2 + (1 - f) * epsilon2**2
        bound = square / (4 * n * mean**2) + 2 / (n * mean) ** 2  # eq. (3)
        return TwoGroups("A", R, min(bound, 0.25), (epsilon1 / (n * mean), epsilon2 / (n * mean)))
    s = n * (f + (1 - f) * R)
    bound = R / (4 * s)  # eq. (4)
    return TwoGroups("B", R, min(bound, 0.25), (1 / s, R / s))


# ---- what the mechanisms share with the closed forms -------------------------------------------------------


def clip(levels: FloatArray, people: NDArray[np.int64], ratio: float) -> float:
    """τ of the best affine estimator: the root of Σ ε_i(τ − ε_i)₊ = ratio.

    `ratio` is v/σ², with the noise variance v at charge 1. With levels ascending and prefix sums A_k = Σε,
    B_k = Σε² over people, τ_k = (B_k + ratio)/A_k; the first k with τ_k ≤ ε_{k+1} has it. If there is none,
    nobody is clipped and τ is the largest level; ∞ if all are public.

    Why: minimise σ²Σw² + v·η² over w ≥ 0, Σw = 1, w_i ≤ η·ε_i. At the optimum w_i = η·min(ε_i, τ), and the
    derivative of (σ²·q_τ + v)/s_τ² has the sign of Σ ε_i(τ − ε_i)₊ − v/σ², which grows in τ: it has one root.

    >>> clip(np.array([0.1, 0.5]), np.array([700, 300]), 8.0)      # R·ε₁ of [C], with R = 1 + 8/(n₁ε₁²)
    0.214285714...
    """
    finite = levels[levels < inf]
    if finite.size == 0:
        return inf
    n = people[: finite.size].astype(np.float64)
    A, B = np.cumsum(n * finite), np.cumsum(n * finite**2)
    following = np.append(finite[1:], inf if finite.size < levels.size else -inf)
    roots = np.flatnonzero((B + ratio) / A <= following)
    if roots.size == 0:
        return float(finite[-1])
    k = int(roots[0]) + 1
    return (fsum((n[:k] * finite[:k] ** 2).tolist()) + ratio) / fsum((n[:k] * finite[:k]).tolist())


def threshold_errors(
    levels: FloatArray, people: NDArray[np.int64], variance: float, blur: float
) -> FloatArray:
    """σ²/n_t + v/(t·n_t)² for every t among the ascending levels; `blur` is v. [Z] eq. (3)."""
    n_t = np.cumsum(people[::-1])[::-1].astype(np.float64)
    return np.asarray(variance / n_t + blur / (levels * n_t) ** 2, dtype=np.float64)


def as_floats(micro: NDArray[np.int64]) -> FloatArray:
    """Levels in millionths as floats."""
    return np.where(micro == PUBLIC, inf, micro / MICRO)


def _levels_and_people(spec: Spec) -> tuple[FloatArray, NDArray[np.int64]]:
    if spec.total == 0:
        raise PlanError(
            f"nobody is left: {spec.opted_out} people opted out. "
            "A closed form needs at least one person with a level above 0."
        )
    return as_floats(spec.micro), spec.people


def _sigma(width: float, std: float | None) -> float:
    sigma = width / 2 if std is None else std
    if not (0 < width < inf and 0 < sigma <= width / 2):
        raise PlanError(
            f"width={width} and std={std} do not go together. "
            "The width is positive and finite, the std positive and at most half of it."
        )
    return sigma
