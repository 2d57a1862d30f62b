"""Closed forms and bounds of the papers, for whoever wants the number without the data.

[C] Chaudhuri, Courtade 2023, "Mean estimation under heterogeneous privacy: some privacy can be free".
[Z] Cyffers, Ziani 2026, "Limits of personalizing differential privacy budgets".

Everything here is about a mean of values in an interval of `width` Δ with standard deviation `std` σ (the
worst case, Δ/2, if it is not given) under replace. Errors are mean squared errors about the population, and
are never capped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum, inf, isinf, log2, sqrt
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


def affine(spec: Spec, width: float = 1.0, std: float | None = None, gap: float = 0.0) -> Affine:
    """The best affine estimator. [C] Algorithm 1, [Z] Claim 1.

    `gap`: how far the means of any two levels may lie apart, at most. The best is then the mechanism
    `robust`, with a smaller τ, and the worst bias is in its error.

    >>> a = affine(Spec.of([0.5, 1]))                     # [Z] Example 1: 37/36
    >>> round(a.mse * 36, 9), a.tau, a.weights.tolist()
    (37.0, 1.0, [0.333..., 0.666...])
    >>> affine(Spec.from_groups({0.1: 5000, 1: 5000}), gap=0.1).tau      # 0.16 without a gap
    0.100158...
    """
    levels, people = _levels_and_people(spec)
    variance = _sigma(width, std) ** 2
    _refuse_gap(width, gap)
    tau = clip_under_gap(levels, people, 2 * width**2 / variance, gap**2 / variance, spec.total)
    if tau == inf:
        return Affine(inf, 0.0, variance / spec.total, np.full(levels.size, 1 / spec.total))
    c = np.minimum(levels, tau)
    s, q = float(people @ c), float(people @ c**2)  # s_τ and q_τ of [Z] Claim 1
    kappa = float(people @ np.maximum(c / s - 1 / spec.total, 0))
    return Affine(tau, width / s, (variance * q + 2 * width**2) / s**2 + (gap * kappa) ** 2, c / s)


def threshold(spec: Spec, width: float = 1.0, std: float | None = None, gap: float = 0.0) -> Threshold:
    """The best unique threshold. [Z] Definition 6, eq. (3). `gap` is that of `affine`.

    >>> threshold(Spec.of([0.5, 1])).mse * 8              # [Z] Example 1: 17/8
    17.0
    """
    levels, people = _levels_and_people(spec)
    errors = threshold_errors(levels, people, _sigma(width, std) ** 2, 2 * width**2)
    _refuse_gap(width, gap)
    errors += (gap * threshold_kappas(people, spec.total)) ** 2
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


def clip_under_gap(
    levels: FloatArray, people: NDArray[np.int64], ratio: float, gap: float, total: int
) -> float:
    """τ of the best weighting where levels may go with values: less than that of `clip`.

    It minimises Σw² + ratio·max(w/ε)² + gap·κ² over Σw = 1, κ = Σ(w − 1/n)₊ over all n = `total` people:
    those who are not among `people` count with a weight of 0. `ratio` is v/σ², `gap` is D²/σ².

    Why (docs/proofs/gap.md): for a fixed s = max w/ε the vector min(s·ε, a) with Σ = 1 is majorised by every
    other that is allowed, and Σw² and κ are Schur-convex, so that it is the best; only s is left. With k
    levels below τ (A_k = Σε, B_k = Σε² over their people, N_k people above), and r levels with n·ε·s ≤ 1
    (A_r, and a share p_r of all people, those with a weight of 0 among them),

        Σw² = B_k·s² + (1 − A_k·s)²/N_k,   κ = p_r − A_r·s,

    so that half of the derivative in s, which grows, is

        (B_k + A_k²/N_k + ratio + gap·A_r²)·s − A_k/N_k − gap·p_r·A_r.

    >>> levels, people = np.array([0.1, 0.5]), np.array([700, 300])
    >>> [round(clip_under_gap(levels, people, 8.0, gap, 1000), 4) for gap in (0, 1e-4, 1e-2, 1)]
    [0.2143, 0.2119, 0.1369, 0.1005]
    """
    finite = levels[levels < inf]
    if finite.size == 0:
        return inf
    if gap == 0:
        return clip(levels, people, ratio)
    n, read = people[: finite.size], int(people.sum())
    A, B = (np.append(0.0, np.cumsum(n * finite**power)) for power in (1, 2))
    below = np.append(0, np.cumsum(n))  # people of the first k levels
    above, unread = read - below, total - read

    def slope(s: float, k: int, r: int) -> float:
        """Half of the derivative, with k levels below τ and r levels that weigh less than 1/n."""
        flat = A[k] * (A[k] * s - 1) / above[k] if above[k] else 0.0
        share = (unread + below[r]) / total
        return float(B[k] * s + flat + ratio * s + gap * A[r] * (A[r] * s - share))

    def light(s: float) -> int:
        """r at s."""
        return int(np.searchsorted(finite, 1 / (total * s) if s else inf, side="right"))

    # s falls with τ: k is the first place at which the derivative, at τ = ε_{k+1}, is no longer positive
    at_levels = 1 / (A[1:] + finite * above[1:])
    k = _first(finite.size, lambda j: slope(at_levels[j], j, min(j, light(at_levels[j]))) <= 0)
    if k == 0:
        return float(finite[0])  # everyone counts the same
    if above[k] == 0:
        return float(finite[-1])  # nobody is clipped
    least, most = (float(at_levels[k]) if k < finite.size else 0.0), float(at_levels[k - 1])
    # between these two only r changes, at s = 1/nε_r, where the derivative jumps
    r = _first(min(k, light(least)), lambda j: slope(1 / (total * finite[j]), k, j) < 0)
    share = (unread + below[r]) / total
    best = (A[k] / above[k] + gap * share * A[r]) / (B[k] + A[k] ** 2 / above[k] + ratio + gap * A[r] ** 2)
    if r < finite.size:
        least = max(least, 1 / (total * float(finite[r])))
    if r > 0:
        most = min(most, 1 / (total * float(finite[r - 1])))
    s = min(most, max(least, float(best)))
    return min(float(levels[-1]), max(float(finite[k - 1]), (1 / s - float(A[k])) / float(above[k])))


def _first(size: int, is_so: Callable[[int], bool]) -> int:
    """The first of the places 0 … size − 1 at which it is so, as it is from there on; `size`: nowhere."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_so(middle) else (middle + 1, high)
    return low


def clip_of_members(levels: FloatArray, people: NDArray[np.int64], ratio: float, gap: float) -> float:
    """τ of the best weighting of the members of a private part, of whom nobody knows who they are.

    κ is then at most (√R − 1)/(√R + 1), R the largest charge over the smallest, and what is minimised is
    (Σc² + ratio)/(Σc)² + gap·κ². It is least where c = min(ε, τ): for a given largest charge below the τ of
    `clip`, raising any other charge lowers both terms; and a larger one raises both. So τ lies between the
    smallest level and that of `clip`; it is looked for at 4,096 places, and between the two beside the best.
    """
    most = min(clip(levels, people, ratio), float(levels[-1]))
    least = float(levels[0])
    if gap == 0 or most <= least or least == inf:
        return most
    finite = levels[levels < inf]
    n = people.astype(np.float64)[: finite.size]
    A, B = (np.append(0.0, np.cumsum(n * finite**power)) for power in (1, 2))
    above = float(people.sum()) - np.append(0.0, np.cumsum(n))

    def errors(tau: FloatArray) -> FloatArray:
        k = np.searchsorted(finite, tau, side="left")
        total, squares = A[k] + above[k] * tau, B[k] + above[k] * tau**2
        root = np.sqrt(tau / least)
        return np.asarray((squares + ratio) / total**2 + gap * ((root - 1) / (root + 1)) ** 2)

    low, high = least, most
    for places in (4096, 64, 64, 64, 64, 64):
        tried = np.geomspace(low, high, places)
        best = int(errors(tried).argmin())
        low, high = float(tried[max(0, best - 1)]), float(tried[min(places - 1, best + 1)])
    return float(tried[best])


def kappa_of_members(largest: float, smallest: float) -> float:
    """κ at most, whoever the members are: (√R − 1)/(√R + 1), R being the largest weight over the smallest.

    Of a share p of them with the weight R, the others 1, it is p(1 − p)(R − 1)/(1 + p(R − 1)), which is
    largest at p = 1/(1 + √R). Weights between the two ends make it smaller. 1 where somebody counts nothing.

    >>> kappa_of_members(4.0, 1.0), kappa_of_members(1.0, 0.0), kappa_of_members(1.0, 1.0)
    (0.333..., 1.0, 0.0)
    >>> kappa_of_members(1.0, 1e-310)  # the quotient of such weights is no float
    1.0
    """
    if smallest <= 0 or isinf(largest / smallest):
        return 1.0
    root = sqrt(largest / smallest)
    return (root - 1) / (root + 1)


def threshold_errors(
    levels: FloatArray, people: NDArray[np.int64], variance: float, noise_variance: float
) -> FloatArray:
    """σ²/n_t + v/(t·n_t)² for every t among the ascending levels; `noise_variance` is v. [Z] eq. (3)."""
    n_t = np.cumsum(people[::-1])[::-1].astype(np.float64)
    return np.asarray(variance / n_t + noise_variance / (levels * n_t) ** 2, dtype=np.float64)


def threshold_kappas(people: NDArray[np.int64], total: int) -> FloatArray:
    """κ for every t: the share of all who do not count."""
    n_t = np.cumsum(people[::-1])[::-1].astype(np.float64)
    return np.asarray(1 - n_t / total, dtype=np.float64)


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


def _refuse_gap(width: float, gap: float) -> None:
    if not 0 <= gap <= width:
        raise PlanError(
            f"gap={gap} is not possible for values in an interval of width {width}. "
            "Give how far the means of two levels may lie apart: from 0 to the width."
        )


def _sigma(width: float, std: float | None) -> float:
    sigma = width / 2 if std is None else std
    if not (0 < width < inf and 0 < sigma <= width / 2):
        raise PlanError(
            f"width={width} and std={std} do not go together. "
            "The width is positive and finite, the std positive and at most half of it."
        )
    return sigma
