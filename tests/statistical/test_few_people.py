"""Intervals hold where a few people carry the weight: exactly, over all ways to deal out values to people.

Whose values are which is a random permutation; the noise has a known law. So the probability that an interval misses the truth about these people is a
finite sum: no sampling. Values are anywhere in the bounds, and two values at the ends are the worst that a search found.
"""

from functools import cache
from itertools import permutations, product
from math import comb, inf, sqrt

import numpy as np
import pytest

import accord
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import summarise
from accord.release.answer import answer
from accord.statistics.spread import STEP, Spread, half_width

CONFIDENCES = (0.5, 0.68, 0.9, 0.95, 0.99, 0.999)


@cache
def dealt(n):
    return np.array(list(permutations(range(n))))


def missed(weights, values, half, scale=0.0):
    """P(|Σ(w − 1/n)x + Laplace| > half), over all ways to deal out the values."""
    off = np.abs(np.asarray(values)[dealt(len(weights))] @ (np.asarray(weights) - 1 / len(weights)))
    if not scale:
        return np.mean(off > half * (1 + 1e-9) + 1e-12)
    beyond = np.where(
        off > half,
        1 - np.exp(np.minimum(0, half - off) / scale) / 2,
        np.exp(np.minimum(0, off - half) / scale) / 2,
    )
    return np.mean(beyond + np.exp(-(half + off) / scale) / 2)


def extreme_values(n, rng):
    """Two values, an odd one out, three, and any."""
    two = [np.arange(n) < k for k in range(1, n)]
    return [*(v.astype(float) for v in two), rng.integers(0, 3, n) / 2, rng.random(n)]


LEVELS = [
    [4000.0, 4000.0, 0.1, 0.1, 0.1],
    [4000.0, 4000.0, 0.001, 0.001],
    [900.0, 700.0, 700.0, 1.0, 0.5, 0.5],
    [5.0, 5.0, 5.0, 0.5, 0.5, 0.5, 0.5],
    [30.0, 30.0, 30.0, 0.01, 0.01, 0.01],
    [inf, 0.3, 0.3, 0.2, 0.1],
    [inf, inf, 20.0, 20.0, 1.0, 1.0],
    [2.0, 1.0, 0.5, 0.25, 0.125],
]


@pytest.mark.parametrize("levels", LEVELS, ids=str)
@pytest.mark.parametrize("statistic", ["mean", "sum", "count", "proportion"])
def test_intervals_hold_over_all_ways_to_deal_out_values(levels, statistic):
    """By every mechanism that is one noisy weighted sum, at every confidence."""
    spec, rng = accord.Spec.of(levels), np.random.default_rng(len(levels))
    asked = {
        "mean": accord.mean("x", (0, 1), missing="none"),
        "sum": accord.sum("x", (0, 1)),
        "count": accord.count(where="x > 0"),
        "proportion": accord.proportion("x > 0", missing="none"),
    }[statistic]
    n, tried = len(levels), 0
    for name in ("minimum", "threshold", "proportional", "affine", "fallah"):
        try:
            plan = accord.plan(spec, asked, name)
        except accord.errors.PlanError:
            continue
        spread = plan.prediction.error_model.spread
        weights, factor = np.repeat(plan.calibration.weights, spec.people), plan.target.factor(n)
        tried += 1
        for confidence in CONFIDENCES:
            half = spread.half_width(1 - confidence) / factor
            for values in extreme_values(n, rng):
                if statistic in ("count", "proportion"):
                    values = np.round(values)
                assert missed(weights, values, half, spread.laplace / factor) <= 1 - confidence + 1e-9, (
                    name,
                    confidence,
                )
    assert tried >= 3


def test_what_the_normal_law_alone_missed():
    """Two of five at level 4000; and one public person of ten, by whom all of a 68 % interval was missed."""
    for levels, confidence, least in (([4000.0] * 2 + [0.1] * 3, 0.95, 0.09), ([inf] + [0.1] * 9, 0.68, 0.9)):
        plan = accord.plan(
            accord.Spec.of(levels), accord.mean("x", (0, 1), missing="none"), "threshold", t=levels[0]
        )
        spread, n = plan.prediction.error_model.spread, len(levels)
        before = half_width(spread.sampling, spread.laplace, 1 - confidence)
        now = spread.half_width(1 - confidence)
        heavy = sum(level == levels[0] for level in levels)
        shares = {}
        for k in range(1, n):  # so many ones, of which j are of the heavy
            for h, half in enumerate((before, now)):
                wrong = [
                    comb(k, j) * comb(n - k, heavy - j)
                    for j in range(heavy + 1)
                    if abs(j / heavy - k / n) > half + 1e-12
                ]
                shares[h] = max(shares.get(h, 0.0), sum(wrong) / comb(n, heavy))
        assert shares[0] >= least and shares[1] <= 1 - confidence


def hypergeometric(n, ones, heavy):
    j = np.arange(max(0, ones - (n - heavy)), min(heavy, ones) + 1)
    ways = [comb(heavy, i) * comb(n - heavy, ones - i) for i in j.tolist()]
    return j, np.array(ways, dtype=float) / comb(n, ones)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8, 9, 12, 14, 24, 34, 36, 38, 60, 100, 200])
def test_a_step_is_enough_for_two_levels_of_any_number_of_people(n):
    """Two values, two levels, every number of heavy people and ones: the step that was needed is below STEP."""
    alphas, needed = (0.9, 0.7, 0.6, 0.5, 0.45, 0.32, 0.1, 0.05, 0.01, 1e-3, 1e-6), 0.0
    normal = [half_width(1.0, 0.0, alpha) for alpha in alphas]
    some = range(1, n) if n <= 38 else sorted({1, 2, 3, 4, 5, 8, 15, 20, n // 4, n // 2, n - 5, n - 1})
    ones = range(1, n // 2 + 1) if n <= 60 else (1, 2, 5, n // 10, n // 4, n // 2)
    for heavy, ratio, k in product(some, (0.0, 0.1, 0.5, 0.8), ones):
        total = heavy + (n - heavy) * ratio
        up, down = 1 / total - 1 / n, ratio / total - 1 / n
        sigma = sqrt(heavy * up**2 + (n - heavy) * down**2) / 2
        j, chance = hypergeometric(n, k, heavy)
        off = np.abs(up * j + down * (k - j))
        order = np.argsort(-off)
        beyond = np.cumsum(chance[order])
        for alpha, h in zip(alphas, normal, strict=True):
            place = int(np.searchsorted(beyond, alpha * (1 + 1e-9), side="right"))
            needed = max(needed, (off[order][min(place, off.size - 1)] - h * sigma) / (up - down))
    assert 0 < needed < STEP or n < 4


def test_a_step_is_enough_for_any_weights_and_values_of_few_people():
    """A seeded search over weights and values of 2 to 6 people."""
    rng = np.random.default_rng(4)
    for _ in range(800):
        n = int(rng.integers(2, 7))
        weights = (
            rng.choice([0, 0.1, 0.3, 1.0], n) if rng.random() < 0.5 else rng.random(n) ** rng.integers(1, 6)
        )
        if not weights.sum() or np.ptp(weights) < 1e-9:
            continue
        weights = weights / weights.sum()
        values = rng.integers(0, 2, n) if rng.random() < 0.5 else rng.random(n)
        sigma = sqrt(np.sum((weights - 1 / n) ** 2)) / 2
        spread = Spread(sampling=sigma, step=STEP * float(np.ptp(weights)))
        for confidence in CONFIDENCES:
            assert missed(weights, values, spread.half_width(1 - confidence)) <= 1 - confidence + 1e-9


def test_large_balanced_groups_have_hardly_wider_intervals():
    """By 11 % of 100 people of two levels, 3.3 % of 1,000 and 1.1 % of 10,000, and not at all of one level."""
    for n, most in ((100, 1.11), (1_000, 1.035), (10_000, 1.0115)):
        spec = accord.Spec.from_groups({10.0: n // 2, 100.0: n // 2})
        spread = accord.plan(
            spec, accord.mean("x", (0, 1), missing="none"), "proportional"
        ).prediction.error_model.spread
        assert 1 < spread.half_width(0.05) / half_width(spread.sampling, spread.laplace, 0.05) < most
    equal = accord.plan(
        accord.Spec.from_groups({1.0: 50}), accord.mean("x", (0, 1), missing="none"), "affine"
    )
    assert equal.prediction.error_model.spread.step == 0.0


@pytest.mark.parametrize("mechanism", ["mix", "sample"])
@pytest.mark.parametrize("levels", [LEVELS[0], LEVELS[2], LEVELS[6]], ids=str)
def test_intervals_of_several_noises_hold(mechanism, levels):
    """Seeded: 600 releases of dealt values hold as often as stated, up to 4.5 standard deviations."""
    rng, spec = np.random.default_rng(6), accord.Spec.of(levels)
    plan = accord.plan(spec, accord.mean("x", (0, 1), step=1, missing="none"), mechanism)
    n, runs, confidence = len(levels), 600, 0.9
    for ones in range(1, n):
        cells, wrong = np.arange(n) < ones, 0
        for _ in range(runs):
            summary = summarise(plan, rng.permutation(cells.astype(np.int64)))
            value, released = answer(plan, [summary], Seeded(rng))
            low, high = accord.Release(plan, value, None, released).interval(confidence)
            wrong += not low <= ones / n <= high
        allowed = (1 - confidence) * runs
        assert wrong <= allowed + 4.5 * sqrt(allowed * confidence), (ones, wrong / runs)


@pytest.mark.parametrize("ps", [[0.02, 0.98], [0.1, 0.5, 0.9]], ids=str)
@pytest.mark.parametrize("levels", [{0.01: 238, inf: 12}, {1.0: 100, 30.0: 60, inf: 40}], ids=str)
def test_intervals_of_quantiles_hold_where_few_of_a_level_are_read(levels, ps):
    """Seeded: everyone has another value, and the ends of few people are far from those of all."""
    rng, spec = np.random.default_rng(7), accord.Spec.from_groups(levels)
    n, runs, confidence = spec.total, 400, 0.95
    query = accord.quantile("x", ps, bounds=(1, n), step=1, missing="none")
    plan, wrong = accord.plan(spec, query, "mix"), 0
    for _ in range(runs):
        value, released = answer(plan, [summarise(plan, rng.permutation(n))], Seeded(rng))
        ends = accord.Release(plan, value, None, released).interval(confidence)
        below = [100 * (point - 1) / n for point in value]
        wrong += not all(low - 100 / n <= x <= high for x, (low, high) in zip(below, ends, strict=True))
    allowed = (1 - confidence) * runs
    assert wrong <= allowed + 6 * sqrt(allowed * confidence), wrong / runs
