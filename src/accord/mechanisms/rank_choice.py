"""The choice of points by weighted ranks, exactly: what `rank` draws, and others with charges of their own.

What a choice may cost, and why nobody loses more than their charge, is proved in rank.py; ranks.py says how a
charge is spent. Weights, scales and offsets are whole numbers or fractions here, and never floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.budget import MICRO, IntArray
from accord.mechanisms.brackets import Brackets
from accord.mechanisms.record import Calibration
from accord.ordered import MOST_PARTS, entries
from accord.statistics.ranks import Spending, spending
from accord.statistics.target_ranks import Ranks

if TYPE_CHECKING:
    from accord.noise import Noise


MOST_ENTRIES = 2**24
"""Of the tables of one draw: where it would have more, so many people are there that nobody needs it."""
SURPRISE, CERTAIN = 23, 41
"""In scales of its noise: a size so far off is less probable than 10⁻¹⁰, and than 10⁻¹⁸."""


@dataclass(frozen=True, eq=False)
class RankCalibration(Calibration):
    """Of a choice by weighted ranks."""

    ps: tuple[Fraction, ...]
    """The quantiles that are chosen; of min and max, the one that stands for them."""
    brackets: Brackets | None = None
    """What else is drawn beside each of them, for an interval in values."""
    parts: int | None = None
    """M of each point, where all quantiles are drawn together; None: each is drawn by itself."""


def spending_for(target: Ranks, ps: tuple[Fraction, ...], together: bool = False) -> Spending:
    return spending(ps, target.relation, target.tells_size, target.draws, together)


def spending_of(target: Ranks, calibration: RankCalibration) -> Spending:
    return spending_for(target, calibration.ps, calibration.parts is not None)


def chosen(
    weights: Any,
    ps: tuple[Fraction, ...],
    noise: Noise,
    spent: Spending,
    without_noise: bool,
    beside: Brackets | None = None,
    times: IntArray | None = None,
    parts: int | None = None,
) -> list[Fraction]:
    """A point for each quantile; one below and one above each, if asked; and the noisy size if released.

    Of weights at the points in millionths; without noise, of people. `parts`: of each point, if all
    quantiles are drawn together.
    """
    size: list[Fraction] | None = None
    if parts is not None:
        size = _noisy_size(weights, noise, spent, without_noise)
        count = len(weights) if times is None else int(times.sum())
        parts, rate = fitted(parts, spent, len(ps), count, size[0] if size else None)
        scale = 4 * MICRO / rate
        drawn = (
            noise.ordered(weights, ps, scale, parts)
            if times is None
            else noise.ordered(weights, ps, scale, parts, times)
        )
        return [*map(Fraction, drawn), *size]
    scales = [None if without_noise else MICRO * scale for scale in spent.choices]
    offsets: list[tuple[int, ...]] = [(0,) * len(ps)]
    if beside is not None:
        if beside.is_assumed:  # then the size decides how far out the brackets are
            size = _noisy_size(weights, noise, spent, without_noise)
            beside = beside.fitted(size[0])
        unit = 1 if without_noise else MICRO
        offsets += [tuple(-int(unit * d) for d in beside.below), tuple(int(unit * e) for e in beside.above)]
    released = [
        Fraction(select(weights, p, noise, scale, offset, times))
        for each in offsets
        for p, scale, offset in zip(ps, scales, each, strict=True)
    ]
    return [*released, *(_noisy_size(weights, noise, spent, without_noise) if size is None else size)]


def fitted(
    parts: int, spent: Spending, outputs: int, count: int, size: Fraction | None
) -> tuple[int, Fraction]:
    """M and the rate r of a tuple among `count` points, as planned, unless a noisy size tells of more weight.

    Parts are planned for a weight that is declared, as that of a roster is. Where W + Z is more than can be,
    M grows and, beyond what tables can hold, r falls, both as functions of what is released: by any W the
    work is bounded, but for a probability that falls as exp(−x/s) where x is missing (docs/proofs/joint.md).
    """
    assert spent.rate is not None
    rate = spent.rate
    if size is None or spent.size is None or rate * outputs * (size - SURPRISE * spent.size) <= 2 * parts:
        return parts, rate
    most = size + CERTAIN * spent.size
    while True:
        parts = max(1, ceil(rate * outputs * most / 2))
        if entries(outputs, float(most * rate / 4)) <= MOST_ENTRIES and count * parts < MOST_PARTS:
            return parts, rate
        rate /= 2


def select(
    weights: Any,
    p: Fraction,
    noise: Noise,
    scale: Fraction | None,
    offset: int = 0,
    times: IntArray | None = None,
) -> int:
    """A point with probability ∝ exp(score/scale), for the weights at the points.

    Weights, scale and offset are in millionths. Without a scale, the best point. `offset`: how much more
    weight is to be below it than p·W. `times`: how many times each point counts; None: once.
    """
    a, b = p.numerator, p.denominator
    occupied = np.flatnonzero(weights)  # all points between two of them have one score
    total = int(weights[occupied].sum())
    is_large = b * (total + abs(offset)) >= 2**62
    run_weights = np.zeros(2 * occupied.size + 1, dtype=object if is_large else np.int64)
    run_weights[1::2] = weights[occupied]
    up_to = np.cumsum(run_weights)
    below, above = up_to - run_weights, total - up_to
    run_lengths = np.ones(run_weights.size, dtype=np.int64)
    run_lengths[::2] = np.diff(occupied, prepend=-1, append=weights.size) - 1
    aim = a * total + b * offset  # this and the next, times b
    wrong_side = np.maximum(np.maximum(b * below - aim, b * above - (b * total - aim)), 0)
    scores = np.repeat(-wrong_side, run_lengths)
    if scale is None:
        best = np.flatnonzero(scores == scores.max())
        return int(best[best.size // 2])
    return choice(noise, scores, ceil(scale * b), times)


def choice(noise: Noise, scores: Any, scale: int, times: IntArray | None) -> int:
    """An index with probability ∝ exp(score/scale), each there so many times; None: once."""
    return noise.choose(scores, scale) if times is None else noise.choose(scores, scale, times)


def _noisy_size(weights: Any, noise: Noise, spent: Spending, without_noise: bool) -> list[Fraction]:
    """The weight of all, if it is released."""
    if spent.size is None:
        return []
    size = Fraction(int(weights.sum()))
    return [size if without_noise else (size + noise.laplace(MICRO * spent.size)) / MICRO]
