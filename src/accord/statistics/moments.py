"""The moments of a regression: which sums are released, how far one person moves them, and what they solve.

For columns x_1 … x_m and y, all coded as integers in [−Q, Q], the entries are
    T: y, x_j, y·x_j, x_j·x_k (j < k), x_j² (of numbers),  and where the number of people is private 1.
Left out is what is public: x_j² of a ±1 column (it is 1), products within one category
(x_j·x_k = −1 − x_j − x_k), and the number of people under replace.

Sensitivity  S is the largest Σ_e w_e·|T_e(z) − T_e(z′)| over two points z, z′, in units of Q².
             *Replace*, with codes divided by Q. For u = (z + z′)/2 and v = (z − z′)/2, |u_j| + |v_j| ≤ 1 and
                 z_j − z′_j = 2v_j,   z_j·z_k − z′_j·z′_k = 2(u_j·v_k + v_j·u_k),   z_j² − z′_j² = 4u_j·v_j.
             So, for weights w_j of first-order entries, P_jk of products and q_j of squares, it is at most
                 Σ 2w_j|v_j| + Σ_{j<k} 2P_jk(|u_j||v_k| + |v_j||u_k|) + Σ 4q_j|u_j||v_j|,
             which grows in |u_j|; with b_j = |v_j| and |u_j| = 1 − b_j it is
                 G(b) = 2Σ b_j(w_j + 2q_j + Σ_k P_jk) − 4Σ_{j<k} P_jk·b_j·b_k − 4Σ q_j·b_j².
             S is the largest G over b_j in [0, 1] for numbers and y, and in {0, 1} for ±1 columns (either the
             value is the same or it flips), at most two of one category (its old and its new value). It is
             attained, by u and v of one sign, up to what the steps of the codes allow. With equal weights and
             numbers only it is d(d + 3)/2 for d = m + 1, at x: 1 → 0, y: 1 → −1.
             *Add-remove.* Every |T_e| is at most Q², so S is the sum of the weights.
             *Of members* of a private part, under replace: a change of value is as under replace, and leaves
             the number of people; coming in or going out is as under add-remove. S is the larger of the two.
             With equal weights both are d(d + 3)/2: it costs nothing but the noise on the number.
Boxes        Moments may share noises instead: moment_boxes.py.
Weights      w_e say how the budget is divided: first-order entries and y·x_j decide the slopes, so they get
             less noise. Tuned on half of one data set and another small one; see docs/mechanisms.md.
Solution     The noisy moments are centred, products shrunk, eigenvalues kept away from 0 (of boxes: their
             inverses shrunk by what is known of the noise), and a ridge follows from the public size of the
             noise alone: post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from accord.relation import ADD_REMOVE, REPLACE, Relation
from accord.statistics.moment_boxes import KINDS, moments_of
from accord.theory import FloatArray

if TYPE_CHECKING:
    from accord.statistics.regression import Regression

EXPLAINED, NOISE_LEFT = 0.08, 0.15
"""The variance that the features explain, and that which they leave, on the scale [−1, 1]².

Predictions take it for granted. Only the predicted error and the amount of shrinkage depend on it, never
privacy.
"""
_NUMBER_VARIANCE, _SIGN_VARIANCE = 0.12, 0.7
"""What a column of numbers, and one of ±1, is taken to have where errors are predicted."""


_LEAST_EIGENVALUE = 0.02
"""No eigenvalue of the covariances is taken to be smaller, unless the noise is too small to make one."""
_PRODUCTS_MATTER = 0.5
"""How much of the noise on products is in the error, where shares of boxes are chosen. Where columns hardly
vary together they are shrunk, and with them their noise; where they are nearly collinear all of it is."""
_DOUBTED = 1.5
"""Of boxes: noise on products counts so many times. Where the target does not vary along columns that are
nearly collinear, less would be worse than a noise for each was."""


@dataclass(frozen=True)
class Weights:
    """w_e, by the kind of entry: how the budget is divided."""

    y: int
    x: int
    yx: int
    xx: int
    square: int
    count: int


def weights_for(codes: int) -> Weights:
    if codes <= 2:
        return Weights(1, 1, 1, 1, 1, 1)
    return Weights(4, 2, 2, 1, 1, 4) if codes <= 5 else Weights(12, 3, 4, 1, 1, 12)


@lru_cache(maxsize=64)
def sensitivity(query: Regression, relation: Relation, about_members: bool = False) -> Fraction:
    """S of the docstring, exactly."""
    if about_members:
        return max(sensitivity(query, REPLACE), sensitivity(query, ADD_REMOVE))
    groups, entries = query.encoding.of_category, query.encoding.products
    w = weights_for(query.codes)
    if not relation.people_are_public:
        return Fraction(sum(getattr(w, e.kind) for e in entries) + w.count)
    m, numbers = len(groups), groups.count(-1)
    # G depends on the ±1 columns only by how many flip in each category, is linear in y's b, and concave and
    # symmetric in the numbers' (square ≥ xx/2), so that these have the same b.
    largest = Fraction(0)
    for flips, linear, pairs in _flips(groups, w):
        for y in (0, 1):
            base = 2 * y * (w.y + m * w.yx) - 4 * w.yx * y * flips + linear
            base -= 4 * w.xx * (flips * (flips - 1) // 2 - pairs)
            if not numbers:
                largest = max(largest, Fraction(base))
                continue
            slope = 2 * w.x + 4 * w.square + 2 * ((m - 1) * w.xx + w.yx) - 4 * (w.xx * flips + w.yx * y)
            curve = 2 * w.xx * (numbers - 1) + 4 * w.square
            b = min(Fraction(1), max(Fraction(0), Fraction(slope, 2 * curve)))
            largest = max(largest, base + numbers * slope * b - numbers * curve * b * b)
    return largest


def _flips(groups: Sequence[int], w: Weights) -> set[tuple[int, int, int]]:
    """All that matters to G of which ±1 columns flip.

    How many, their linear part, and how many pairs of them are of one category.
    """
    flips = {(0, 0, 0)}
    for group in sorted(set(groups) - {-1}):
        size = groups.count(group)
        each = 2 * (w.x + w.yx + (len(groups) - size) * w.xx)
        flips = {
            (count + n, linear + n * each, pairs + n * (n - 1) // 2)
            for count, linear, pairs in flips
            for n in range(min(2, size) + 1)
        }
    return flips


def noise_variance(query: Regression) -> float:
    """The noise's part of the squared error times (Σc)², where it is small: what charges are chosen by."""
    costs = noise_costs(query)
    variances = noise_variances(query, float(sensitivity(query, REPLACE)))
    return sum(costs[kind] * variances[kind] for kind in KINDS)


def noise_costs(query: Regression, shrunk: bool = False) -> dict[str, float]:
    """What noise on each kind of moment adds to the squared error, where it is small, for a variance of 1.

    `shrunk`: where products tell less than their noise half of the time, as shares of boxes take it.
    """
    m, variances = query.codes, code_variances(query)
    omega, each = sum(EXPLAINED / m / v for v in variances), sum(1 / v for v in variances)
    square, products = omega * each / m, _PRODUCTS_MATTER if shrunk else 1.0
    return {"y": 1.0, "x": each / 3, "yx": each, "xx": products * (m - 1) * square, "square": square}


def code_variances(query: Regression) -> list[float]:
    return [_NUMBER_VARIANCE if g == -1 else _SIGN_VARIANCE for g in query.encoding.of_category]


def noise_variances(query: Regression, scale: float) -> dict[str, float]:
    """Of the moments, by kind of entry, with noise of this scale for weight 1."""
    w = weights_for(query.codes)
    return {kind: 2 * (scale / getattr(w, kind)) ** 2 for kind in KINDS}


def solve(query: Regression, released: Sequence[Fraction]) -> tuple[float, FloatArray, str]:
    """Intercept, slopes and a note, from the public size of the noise and the noisy moments.

    Where they share a noise, the variances of it stand between, by kind. On the scale [−1, 1]. Floats: it is
    post-processing.
    """
    noise_size, *moments = (float(x) for x in released)
    m = query.codes
    if len(moments) == 1:
        mean = moments[0] / (1 + 24 * noise_size**2)
        note = "only the mean of the target: the slopes would be noise"
        return mean, np.zeros(m), note
    groups, entries = query.encoding.of_category, query.encoding.products
    variance = noise_variances(query, noise_size)
    if in_boxes := len(moments) > len(entries):
        variance = dict(zip(KINDS, moments, strict=False))
        moments = moments_of(query, moments[len(KINDS) :])
    by_kind: dict[str, list[float]] = {}
    for entry, value in zip(entries, moments, strict=True):
        by_kind.setdefault(entry.kind, []).append(value)
    y = min(1.0, max(-1.0, by_kind["y"][0]))
    x = np.clip(np.array(by_kind["x"]), -1.0, 1.0)
    x_square = float(np.mean(x**2))
    products = -1 - x[:, None] - x[None, :]  # right within a category; everything else is put in
    np.fill_diagonal(products, 1.0)
    is_free = np.zeros((m, m), dtype=bool)
    for entry, value in zip(entries, moments, strict=True):
        if entry.kind in ("xx", "square"):
            j, k = entry.columns
            products[j, k] = products[k, j] = value
            is_free[j, k] = is_free[k, j] = j != k
    covariance = products - np.outer(x, x)
    slopes = np.array(by_kind["yx"]) - x * y
    if noise_size:
        _shrink_diagonal(covariance, groups, variance["square"])
    doubt = 0.0
    if is_free.any():
        noise = variance["xx"] + 2 * x_square * variance["x"]
        square = float(np.mean(covariance[is_free] ** 2))
        believed = max(0.0, 1 - (_DOUBTED if in_boxes else 1.0) * noise / square) if square else 1.0
        covariance[is_free] *= believed
        doubt = noise * believed
    values, vectors = np.linalg.eigh(covariance)
    of_slopes = (variance["yx"] + y**2 * variance["x"] + x_square * variance["y"]) * m / EXPLAINED
    if in_boxes:
        inverse = _inverse(values, _DOUBTED * m * variance["xx"] + of_slopes * _NUMBER_VARIANCE)
    elif noise_size:
        least = min(_LEAST_EIGENVALUE, 4 * sqrt(m * variance["xx"]))  # twice what noise alone would have
        inverse = 1 / (np.maximum(values, least + 2 * sqrt(doubt)) + of_slopes)
    else:  # what is collinear is left out
        inverse = np.where(values > 1e-7, 1 / np.maximum(values, 1e-7), 0.0)
    omega = vectors @ ((vectors.T @ slopes) * inverse)
    intercept = y / (1 + 3 * variance["y"]) - float(x @ omega)
    return intercept, omega, ""


def _inverse(values: FloatArray, noise: float) -> FloatArray:
    """λ/(λ² + ν) in the place of 1/λ: what is best, on average, for slopes that are as large as expected.

    Of eigenvalues that are known up to noise, of moments y·x that have noise as well: ν is the variance of
    both against that of the slopes (m·xx, counted _DOUBTED times, and of_slopes·Var(x)).
    """
    positive = np.maximum(values, 0.0)
    return positive / np.maximum(positive**2 + noise, 1e-300)


def _shrink_diagonal(covariance: FloatArray, groups: Sequence[int], noise: float) -> None:
    """Variances of numbers are moved towards 0.15, the less they are believed; none is near 0."""
    for j, group in enumerate(groups):
        if group == -1:
            believed = 0.01 / (0.01 + noise)
            covariance[j, j] = min(1.0, max(0.02, 0.15 + believed * (covariance[j, j] - 0.15)))
        else:
            covariance[j, j] = max(covariance[j, j], 0.05)
