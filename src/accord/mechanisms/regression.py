"""Linear regression from noisy moments. After [J] V-B, which perturbs the objective (functional mechanism of
Zhang et al. 2012).

Neighbors  replace, or add-remove.
Releases   for columns x_1 … x_m and y, all coded as integers in [−Q, Q], the weighted sums Σ_i c_i·T_e(z_i)
           of the entries
               T: y, x_j, y·x_j, x_j·x_k (j < k), x_j² (of numbers),  and under add-remove 1,
           in units of Q² (first-order entries times Q, the count times Q²), each with discrete Laplace noise
           of scale 10⁶·S·Q²/w_e. Left out is what is public: x_j² of a ±1 column (it is 1), products within
           one category (x_j·x_k = −1 − x_j − x_k), and Σc under replace.
Guarantee  person i loses at most c_i, because Σ_e w_e·|T_e(z) − T_e(z′)| ≤ S·Q² for any two points z, z′
           (add-remove: Σ_e w_e·|T_e(z)|).
Sensitivity  *Replace.* With u = (z + z′)/2 and v = (z − z′)/2, |u_j| + |v_j| ≤ 1, one has z_j − z′_j = 2v_j,
           z_j·z_k − z′_j·z′_k = 2(u_j·v_k + v_j·u_k) and z_j² − z′_j² = 4u_j·v_j. So the sum is at most
           Σ2w_j|v_j| + Σ_{j<k} 2P_jk(|u_j||v_k| + |v_j||u_k|) + Σ4q_j|u_j||v_j|, which grows in |u_j|; with
           |u_j| = 1 − b_j, b_j = |v_j|, it is
               G(b) = 2Σ b_j(w_j + 2q_j + Σ_k P_jk) − 4Σ_{j<k} P_jk·b_j·b_k − 4Σ q_j·b_j²,
           for weights w_j of first-order entries, P_jk of products, q_j of squares; S = max G over b_j in [0,
           1] for numbers and y, {0, 1} for ±1 columns (either the value is the same or it flips), at most two
           of one category (its old and its new value). Equality is attained. With equal weights and numbers
           only it is d(d + 3)/2 for d = m + 1, at x: 1 → 0, y: 1 → −1. *Add-remove.* Every |T_e| is at most
           Q², so S is the sum of the weights.
Weights    w_e say how the budget is divided: first-order entries and y·x_j decide the slopes, so they get
           less noise. Tuned on half of one data set and another small one; see docs/mechanisms.md.
Solution   Post-processing of the noisy moments: centred, with shrunk products, eigenvalues kept away from 0,
           and a ridge that follows from the public noise alone. If predicted to be better, only y's mean is
           released, with the whole budget; that is decided from public things.
Error      E of `_expected`, on the scale [−1, 1]²: how far predictions are from those without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, total_of
from accord.mechanisms import sample
from accord.mechanisms.prediction import Fixed, Prediction
from accord.mechanisms.record import Calibration, Method, Task
from accord.relation import ADD_REMOVE, REPLACE, Relation
from accord.statistics.encoding import Q
from accord.statistics.regression import EXPLAINED, NOISE_LEFT, Coefficients, Regression
from accord.statistics.target import Products

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

_SPREAD_NUMBER, _SPREAD_SIGN = 0.12, 0.7
"""The variances that a column of numbers, and of ±1, is taken to have where errors are predicted."""


@dataclass(frozen=True)
class Weights:
    """How the budget is divided over the kinds of entries."""

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


@dataclass(frozen=True, eq=False)
class Weighted(Calibration):
    """Of a regression in which people count by their charges."""

    mean_only: bool = False
    """Whether the slopes would be noise, so that they are not released."""


@dataclass(frozen=True, eq=False)
class Kept(sample.Sampled):
    """Of a regression on people who are kept at random."""

    mean_only: bool = False


@lru_cache(maxsize=64)
def sensitivity(query: Regression, relation: Relation) -> Fraction:
    """S of the docstring, exactly."""
    groups, entries = query.encoding.of_category, query.encoding.products
    w = weights_for(query.codes)
    if not relation.people_are_public:
        return Fraction(sum(getattr(w, e.kind) for e in entries) + w.count)
    m, numbers = len(groups), groups.count(-1)
    best = Fraction(0)
    # G depends on the ±1 columns only by how many flip in each category, is linear in y's b, and concave and
    # symmetric in the numbers' (square ≥ xx/2).
    # All that matters of the flips: how many, their linear part, and how many pairs of them are of one
    # category.
    flips = {(0, 0, 0)}
    for group in sorted(set(groups) - {-1}):
        size = groups.count(group)
        each = 2 * (w.x + w.yx + (m - size) * w.xx)
        flips = {
            (f + n, linear + n * each, pairs + n * (n - 1) // 2)
            for f, linear, pairs in flips
            for n in range(min(2, size) + 1)
        }
    for f, linear, pairs in flips:
        for y in (0, 1):
            base = (
                2 * y * (w.y + m * w.yx) - 4 * w.yx * y * f + linear - 4 * w.xx * (f * (f - 1) // 2 - pairs)
            )
            if not numbers:
                best = max(best, Fraction(base))
                continue
            slope = 2 * w.x + 4 * w.square + 2 * ((m - 1) * w.xx + w.yx) - 4 * (w.xx * f + w.yx * y)
            curve = 2 * w.xx * (numbers - 1) + 4 * w.square
            b = min(Fraction(1), max(Fraction(0), Fraction(slope, 2 * curve)))
            best = max(best, base + numbers * slope * b - numbers * curve * b * b)
    return best


def noise_variance(query: Regression) -> float:
    """The noise's part of the squared error times (Σc)², where it is small: what charges are chosen by."""
    w, m = weights_for(query.codes), query.codes
    spreads = _spreads(query)
    omega = sum(EXPLAINED / m / s for s in spreads)
    each = 1 / w.yx**2 + 1 / (3 * w.x**2) + omega * ((m - 1) / (m * w.xx**2) + 1 / (m * w.square**2))
    return 2 * float(sensitivity(query, REPLACE)) ** 2 * (sum(each / s for s in spreads) + 1 / w.y**2)


def _spreads(query: Regression) -> list[float]:
    return [_SPREAD_NUMBER if g == -1 else _SPREAD_SIGN for g in query.encoding.of_category]


def _expected(
    query: Regression, relation: Relation, noise: float, sampling: float
) -> tuple[float, float, float]:
    """E with slopes, of the slopes alone, and of the mean only, for 1/W and Σc²/W² (or that less 1/n)."""
    w, m, s = weights_for(query.codes), query.codes, float(sensitivity(query, relation)) * noise
    variance = {kind: 2 * (s / getattr(w, kind)) ** 2 for kind in ("y", "x", "yx", "xx", "square")}
    spreads, part = _spreads(query), EXPLAINED / m
    omega = sum(part / spread for spread in spreads)
    off = 0.0
    for spread in spreads:
        nu = variance["yx"] + variance["x"] / 3 + omega * ((m - 1) * variance["xx"] + variance["square"]) / m
        nu += NOISE_LEFT * spread * sampling
        off += part * nu / (part * spread + nu) if nu else 0.0
    level = NOISE_LEFT * sampling
    mean = variance["y"] / (1 + 3 * variance["y"]) + level
    alone = 8 * noise**2
    return off + mean, off, EXPLAINED + alone / (1 + 3 * alone) + level


def _finished(
    task: Task, calibration: Weighted | Kept, squares: float, relation: Relation
) -> Weighted | Kept:
    """With the noise, the decision whether slopes are worth it, and the warning."""
    inverse = _inverse(task, calibration)
    calibration = replace(calibration, noise_variance=task.noise_variance * inverse**2)
    full, slopes, mean = _expected(task.target.query, relation, inverse, squares)
    survives = 1 - slopes / EXPLAINED
    if inverse == 0:  # only public people are read
        return calibration
    if full >= mean:
        note = f"{calibration.note}; the slopes would be noise: only the mean of the target is released"
        return replace(calibration, mean_only=True, note=note)
    if survives < 0.3:
        weak = "weak: less than half of what the features explain is expected to survive the noise"
        return replace(calibration, note=f"{calibration.note}; {weak}")
    return calibration


def by_charges(charge: Callable[[Task], tuple[IntArray, str]]) -> Method:
    """A function of charges.py, for regressions."""

    def calibrate(task: Task) -> Calibration:
        c, note = charge(task)
        public = c[-1] == PUBLIC
        counted = (c == PUBLIC).astype(np.int64) if public else c
        total = float(total_of(counted, task.people))
        weights = counted / total
        return _finished(
            task, Weighted(c, weights, 0.0, note), float(task.people @ weights**2), task.relation
        )

    return Method(Products, calibrate, _predict, _answer)


def _sampled(task: Task) -> Calibration:
    """Row by row, with t so that most is left of everyone: t·Σπ is largest."""
    if task.t in (None, "best"):
        rough = sample.coarse(task)

        def left(t: int) -> tuple[bool, float]:
            return t == PUBLIC, t * float(rough.people @ sample.probabilities(rough.levels, t, task.relation))

        task = replace(task, t=max(sample.tried(task), key=left))
    kept = sample.calibrate(task)
    calibration = Kept(kept.charges, kept.weights, kept.noise_variance, kept.note, kept.keep, kept.t)
    return _finished(task, calibration, 1 / _expected_number(task, calibration), ADD_REMOVE)


def _expected_number(task: Task, calibration: Kept) -> float:
    """Σπ: how many people of a sample are kept, on average."""
    return float(task.people @ (calibration.keep / float(sample.SURE)))


def _inverse(task: Task, calibration: Weighted | Kept) -> float:
    """1/W, what the size of the noise is a multiple of; 0 where only public people are read."""
    if isinstance(calibration, Kept):
        if calibration.t == PUBLIC:
            return 0.0
        # those who are kept are answered about at s; Σπ stands for how many they are
        s = sample.inner_level(calibration.t, task.relation)
        return 1 / (s * _expected_number(task, calibration))
    if calibration.charges[-1] == PUBLIC:
        return 0.0
    return MICRO / float(total_of(calibration.charges, task.people))


def _predict(task: Task, calibration: Weighted | Kept) -> Prediction:
    query: Regression = task.target.query
    squares = float(task.people @ calibration.weights**2)
    relation = task.relation
    if isinstance(calibration, Kept):
        squares = max(squares, 1 / _expected_number(task, calibration))
        relation = ADD_REMOVE  # a sample's inner mechanism knows that only
    gap = calibration.weights - 1 / task.total
    errors = []
    for sampling in (squares, max(0.0, squares - 1 / task.total)):
        full, _, mean = _expected(query, relation, _inverse(task, calibration), sampling)
        errors.append(query.half * sqrt(mean if calibration.mean_only else full))
    half = 1.96 * errors[1]
    return Prediction(errors[0], errors[1], float(task.people @ np.maximum(gap, 0)), Fixed((-half, half)))


def _answer(summary: Summary, calibration: Weighted | Kept, target: Products, noise: Noise) -> list[Fraction]:
    """The noise's size 1/W with S, and the noisy moments: of `Codes.products`, or of y alone.

    Under add-remove the number of people is last.
    """
    query: Regression = target.query
    c = calibration.charges
    if isinstance(calibration, Kept):  # those who are kept count the same
        relation, public = ADD_REMOVE, calibration.t == PUBLIC
        weights = np.ones(summary.people.size, dtype=np.int64)
        unit = Fraction(1) if public else Fraction(MICRO, calibration.t) / target.relation.inner
        whole = sample.expected(calibration, summary)
    else:
        relation, public = target.relation, int(c.max()) == PUBLIC
        weights = (c == PUBLIC).astype(np.int64) if public else c
        unit = Fraction(1 if public else MICRO)
        whole = Fraction(total_of(weights, summary.people))
    sums = summary.weighted(weights)
    count = sums[-1]  # of people who are there, weighted

    def noisy(value: int, scale: Fraction) -> Fraction:
        return Fraction(value) if public else Fraction(value + noise.laplace(scale * Q * Q * unit))

    level = Fraction(0) if public else unit / whole
    if calibration.mean_only:
        y = sums[0]
        if relation.people_are_public:
            return [level, noisy(y, Fraction(2)) / (whole * Q * Q)]
        above, below = (noisy(Q * Q * count + sign * y, Fraction(2)) for sign in (1, -1))
        there = above + below
        return [
            level,
            min(Fraction(1), max(Fraction(-1), (above - below) / there)) if there > 0 else Fraction(0),
        ]
    s = sensitivity(query, relation)
    w = weights_for(query.codes)
    moments = [
        noisy(value, s / getattr(w, entry.kind))
        for value, entry in zip(sums[:-1], query.encoding.products, strict=True)
    ]
    there = whole * Q * Q
    if not relation.people_are_public:
        there = max(noisy(Q * Q * count, s / w.count), (s / w.count) * Q * Q * unit)
        level = level * whole * Q * Q / there
    return [level * s, *(value / there for value in moments)]


def solve(query: Regression, found: Sequence[Fraction]) -> Coefficients:
    """Coefficients from the noisy moments and the public size of their noise. Floats: post-processing."""
    level, *rest = (float(x) for x in found)
    m, w = query.codes, weights_for(query.codes)
    if len(rest) == 1:
        mean = rest[0] / (1 + 24 * level**2)
        return Coefficients.of(
            query, mean, np.zeros(m), "only the mean of the target: the slopes would be noise"
        )
    groups, entries = query.encoding.of_category, query.encoding.products
    variance = {kind: 2 * (level / getattr(w, kind)) ** 2 for kind in ("y", "x", "yx", "xx", "square")}
    by_kind: dict[str, list[float]] = {}
    for entry, value in zip(entries, rest, strict=True):
        by_kind.setdefault(entry.kind, []).append(value)
    y = min(1.0, max(-1.0, by_kind["y"][0]))
    x = np.clip(np.array(by_kind["x"]), -1.0, 1.0)
    q = float(np.mean(x**2))
    moments = -1 - x[:, None] - x[None, :]  # right within a category; everything else is put in
    np.fill_diagonal(moments, 1.0)
    free = np.zeros((m, m), dtype=bool)
    for entry, value in zip(entries, rest, strict=True):
        if entry.kind in ("xx", "square"):
            j, k = entry.columns
            moments[j, k] = moments[k, j] = value
            free[j, k] = free[k, j] = j != k
    spread = moments - np.outer(x, x)
    slopes = np.array(by_kind["yx"]) - x * y
    for j, group in enumerate(groups):
        if not level:
            break
        if group == -1:
            believed = 0.01 / (0.01 + variance["square"])
            spread[j, j] = min(1.0, max(0.02, 0.15 + believed * (spread[j, j] - 0.15)))
        else:
            spread[j, j] = max(spread[j, j], 0.05)
    doubt = 0.0
    if free.any():
        off = variance["xx"] + 2 * q * variance["x"]
        signal = max(0.0, float(np.mean(spread[free] ** 2)) - off)
        believed = signal / (signal + off) if signal + off else 1.0
        spread[free] *= believed
        doubt = off * believed
    values, vectors = np.linalg.eigh(spread)
    # without noise, what is collinear is left out
    values = np.maximum(values, 0.02 + 2 * sqrt(doubt)) if level else np.where(values > 1e-7, values, np.inf)
    ridge = (variance["yx"] + y**2 * variance["x"] + q * variance["y"]) * m / EXPLAINED
    omega = vectors @ ((vectors.T @ slopes) / (values + ridge))
    intercept = y / (1 + 3 * variance["y"]) - float(x @ omega)
    return Coefficients.of(query, intercept, omega)


SAMPLED = Method(Products, _sampled, _predict, _answer, keeps_rows=True)
