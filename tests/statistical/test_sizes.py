"""Intervals of quantiles whose number of people is private hold, for any number of them.

Measured with many releases, and exactly where that can be reckoned. Releases are drawn at the seam
`release.answer`, with the lab's seeded noise: levels are dealt out anew within each group, so that they do not go
with values there, while groups differ in their levels. An interval holds if it meets the percentiles
[people below the answer, people below or at it] of the group.
"""

from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, inf, log

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom

import accord
from accord.budget import MICRO
from accord.lab.simulation.noise import Seeded
from accord.mechanisms.size import BySize, most_people
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE, REPLACE
from accord.release import Release
from accord.release.answer import answer
from accord.statistics.ranks import spending

ALPHA, RUNS = 1e-9, 300
GRID, POINTS = {"bounds": (0, 1000), "step": 1}, 1001
SIZES = {"a": 3_000, "b": 120, "c": 60, "d": 10}
LEVELS = {
    "alike": lambda n, group: np.ones(n),
    "mixed": lambda n, group: np.resize([0.1, 0.5, 1.0, 1.0, 4.0], n),
    "by group": lambda n, group: np.full(n, 0.2) if group == "d" else np.resize([0.05, 2.0, 2.0], n),
    "public": lambda n, group: np.resize([0.1, 1.0, inf], n),
}
BY, WHERE = {"by": "g", "keys": [*SIZES]}, {"where": "x > 0"}
ASKED = {
    "median": lambda **of: accord.median("x", **GRID, **of),
    "quantile 0.9": lambda **of: accord.quantile("x", 0.9, **GRID, **of),
    "three quantiles": lambda **of: accord.quantile("x", [0.05, 0.5, 0.8], **GRID, **of),
    "min": lambda **of: accord.min("x", **GRID, **of),
    "max": lambda **of: accord.max("x", **GRID, **of),
}


class People:
    """Groups of people, a quarter of each at one value; levels are dealt out within groups."""

    def __init__(self, levels, seed=0):
        self.rng = np.random.default_rng(seed)
        self.levels = [LEVELS[levels](n, group) for group, n in SIZES.items()]
        smooth = [self.rng.beta(2, 5, n) * 1000 for n in SIZES.values()]
        self.values = [np.where(np.arange(x.size) % 4 == 0, 300, np.rint(x)).astype(np.int64) for x in smooth]
        self.spec = accord.Spec.of(np.concatenate(self.levels))

    def summary(self, spec, groups):
        """The Summary of some of the groups together."""
        levels = np.concatenate([self.rng.permutation(self.levels[g]) for g in groups])
        level = np.searchsorted(spec.levels, levels)
        values = np.concatenate([self.values[g] for g in groups])
        return Summary(spec.people, POINTS, level, values, np.ones(values.size, dtype=np.int64))


def released(plan, people, parts):
    """A release about parts, each of which is a tuple of groups."""
    noise = Seeded(people.rng)
    found = [people.summary(plan.spec, groups) for groups in parts]
    value, drawn = answer(plan, found, noise)
    return Release(plan, value, None, drawn)


def holds(value, ends, values):
    """Whether the percentiles of each answer are within its ends."""
    values, answers = np.sort(values), np.atleast_1d(value)
    low, high = np.transpose(ends if isinstance(ends, list) else [ends])
    below = 100 * np.searchsorted(values, answers, "left") / values.size
    up_to = 100 * np.searchsorted(values, answers, "right") / values.size
    return bool(((below <= high) & (up_to >= low)).all())


def coverage(plan, people, parts, keys=None, interval=None, runs=RUNS):
    """For each part, how often the interval held; `interval` instead of a release's own."""
    interval = interval or (lambda made, key: made.interval(0.95))
    held = np.zeros(len(parts), dtype=int)
    for _ in range(runs):
        made = released(plan, people, parts)
        for k, groups in enumerate(parts):
            value = made.value[k]["value"] if keys else made.value
            ends = interval(made, k)
            ends = ends[keys[k]] if keys and isinstance(ends, dict) else ends
            held[k] += holds(value, ends, np.concatenate([people.values[g] for g in groups]))
    return held


def is_covered(held, runs=RUNS):
    return bool(binomtest(int(held), runs, 0.95, alternative="less").pvalue > ALPHA)


def planned(people, asked, name, neighbors, **of):
    spec = people.spec
    if neighbors == "add-remove" and not of:  # others could be there as well
        spec = accord.Spec.from_groups({e: 2 * n for e, n in zip(spec.levels, spec.counts, strict=True)})
    return accord.plan(spec, ASKED[asked](**of), name, neighbors=neighbors)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("median", "rank"),
        ("median", "sample"),
        ("median", "minimum"),
        ("quantile 0.9", "threshold"),
        ("three quantiles", "rank"),
        ("three quantiles", "sample"),
        ("min", "rank"),
        ("max", "threshold"),
    ],
)
def test_intervals_hold_in_private_groups_of_any_size(asked, name, levels, neighbors):
    people = People(levels)
    plan = planned(people, asked, name, neighbors, **BY)
    held = coverage(plan, people, [(k,) for k in range(len(SIZES))], [*SIZES])
    assert all(is_covered(h) for h in held), held


@pytest.mark.parametrize("levels", ["mixed", "public"])
@pytest.mark.parametrize(
    ("asked", "name"), [("median", "rank"), ("median", "sample"), ("min", "minimum"), ("max", "rank")]
)
def test_intervals_hold_with_a_condition_and_where_people_come_and_go(asked, name, levels):
    """A condition that one of the groups meets; and a roster of which half, or one group, is there."""
    people = People(levels)
    everyone = tuple(range(len(SIZES)))
    for neighbors, of in (("replace", WHERE), ("add-remove", WHERE), ("add-remove", {})):
        plan = planned(people, asked, name, neighbors, **of)
        assert plan.times == 1
        for groups in (everyone, (0,), (1,), (2,), (3,)):
            (held,) = coverage(plan, people, [groups], runs=100)
            assert is_covered(held, 100), (neighbors, of, groups)


def test_the_old_interval_would_be_found_out():
    """It was for groups of the same size, whatever came out; and was withdrawn for that."""
    people = People("alike")
    plan = planned(people, "median", "rank", "replace", **BY)
    # nine tenths of half the charge under add-remove choose as well as 0.9 under replace
    alike = accord.Spec.from_groups({0.9: people.spec.total // len(SIZES)})
    old = accord.plan(alike, ASKED["median"](missing="none"), "rank").prediction.error_model
    parts = [(k,) for k in range(len(SIZES))]
    held = coverage(plan, people, parts, [*SIZES], lambda made, k: old.interval(0.0, (), 0.95, 1.0))
    assert not is_covered(held[2]) and not is_covered(held[3])


def test_they_are_of_use_where_there_are_many():
    """Everyone at level 1: three thousand people in a private group, by a condition, and under add-remove."""
    people = People("alike")
    widths = {}
    for neighbors, of in (("replace", BY), ("add-remove", BY), ("replace", WHERE), ("add-remove", {})):
        for name in ("rank", "sample"):
            plan = planned(people, "median", name, neighbors, **of)
            by = "by" in of
            made = released(plan, people, [(k,) for k in range(len(SIZES))] if by else [(0,)])
            low, high = made.interval(0.95)["a"] if by else made.interval(0.95)
            widths[neighbors, name, *of] = high - low
            if by:
                rows = made.value
                assert rows[0]["few"] is False and rows[-1]["few"] is True
                assert rows[0]["rmse"] < 2 < rows[-1]["rmse"]
    assert max(widths.values()) < 5, widths
    mixed = People("mixed")
    plan = planned(mixed, "median", "rank", "replace", **BY)
    made = released(plan, mixed, [(k,) for k in range(len(SIZES))])
    low, high = made.interval(0.95)["a"]
    assert high - low < 20


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_error_of_a_row_is_what_is_measured(neighbors):
    """About the population: of a large group within a fifth, of small ones not less than what is measured."""
    people = People("alike")
    plan = accord.plan(people.spec, ASKED["median"](**BY), "rank", neighbors=neighbors)
    parts, off, told = [(k,) for k in range(len(SIZES))], [], []
    for _ in range(RUNS):
        people.values = [people.rng.integers(0, 1001, n) for n in SIZES.values()]
        made = released(plan, people, parts)
        off.append([(row["value"] - 500) / 10 for row in made.value])
        told.append([row["rmse"] for row in made.value])
    measured, said = np.sqrt(np.mean(np.square(off), axis=0)), np.sqrt(np.mean(np.square(told), axis=0))
    assert measured[0] == pytest.approx(said[0], rel=0.2)
    assert (measured[1:] < 1.1 * said[1:]).all(), (measured, said)
    few = np.array(told) > 25
    assert not few[:, 0].any() and few[:, 3].mean() > 0.97  # of ten people nobody is told that they suffice


@pytest.mark.parametrize("name", ["minimum", "threshold", "rank", "sample"])
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(("neighbors", "of"), [("replace", BY), ("replace", WHERE), ("add-remove", {})])
def test_the_error_for_the_planned_size_is_the_planned_error(asked, name, neighbors, of):
    people = People("mixed")
    if name == "sample" and asked in ("min", "max"):
        return
    plan = planned(people, asked, name, neighbors, **of)
    charges, by_size = plan.calibration.charges / MICRO, plan.prediction.error_model
    groups = len(SIZES) if "by" in of else 1
    counts = -(-plan.spec.people // groups)
    if name == "sample":
        weight = float(counts @ (plan.calibration.keep / 2.0**63)) * plan.calibration.t / MICRO
        assert by_size.rmse(weight) == pytest.approx(plan.rmse, rel=2e-3)  # of whole people
    else:
        found = by_size.rmse(float(counts @ charges))
        if asked in ("min", "max"):  # planned for the widest scale, before it is known how far out they are
            assert 0.9 * plan.rmse < found <= plan.rmse * (1 + 1e-9)
        else:
            assert found == pytest.approx(plan.rmse)


# ---- exactly ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evenness", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("surprise", [1.0, 4.0, 9.0])
def test_the_bound_of_people_by_weight_holds_exactly(evenness, surprise):
    """With two weights the heavier people among any k are hypergeometric: the probability is no more than its bound."""
    tightest = 0.0
    for n in (1, 2, 7, 40, 400):
        for heavy in {1, n // 7, n // 2, n - 1, n} - {0}:
            light = n - heavy
            weight = heavy + evenness * light
            for share in (0.01, 0.1, 0.3, 0.5, 0.8, 0.95):
                q = most_people(share, weight, evenness, surprise)
                assert share <= q <= 1
                k = ceil(q * n)
                if k > n or q == 1:
                    continue
                # k people of whom j are heavy have evenness·k + (1 − evenness)·j
                most = int(np.floor((share * weight - evenness * k) / (1 - evenness) + 1e-9))
                p = float(hypergeom.cdf(most, n, heavy, k)) if most >= 0 else 0.0
                assert p <= exp(-surprise) * (1 + 1e-9), (n, heavy, share)
                tightest = max(tightest, p * exp(surprise))
    assert tightest > 0.02 or evenness > 0


def test_a_bound_that_takes_more_people_for_granted_is_found_out():
    """Twice the weight, or an evenness that is not there, would not hold: the check above has teeth."""
    n, heavy, share, surprise = 400, 50, 0.3, 4.0
    good = most_people(share, heavy, 0.0, surprise)
    for q in (most_people(share, 4 * heavy, 0.0, surprise), most_people(share, heavy, 0.6, surprise)):
        assert q < good
        p = float(hypergeom.cdf(int(share * heavy), n, heavy, ceil(q * n)))
        assert p > exp(-surprise)


def test_everyone_alike_needs_no_sampling():
    for share in (0.0, 0.2, 0.9):
        assert most_people(share, 10, 1.0, 5.0) == share
    assert most_people(1.2, 10, 0.0, 5.0) == 1.0


def test_the_size_is_underestimated_as_often_as_it_says():
    """Of the discrete Laplace law, exactly: its tail beyond what is taken off is at most half of α."""
    spent = spending([Fraction(1, 2)], ADD_REMOVE, True)
    by_size = BySize((Fraction(1, 2),), (float(spent.choices[0]),), float(spent.size), 1001, 1.0, 1.0, 1.0)
    scale = 10 * MICRO
    for alpha in (0.5, 0.05, 1e-3):
        low, high = 0.0, 1e5  # the smallest weight whose interval is not everything tells what is taken off
        for _ in range(200):
            at = (low + high) / 2
            low, high = (low, at) if _known(by_size, at, alpha) else (at, high)
        taken_off = high * MICRO
        tail = exp(-(np.floor(taken_off) + 1) / scale) / (1 + exp(-1 / scale))
        assert tail <= alpha / 2 * (1 + 1e-6)
        assert tail >= alpha / 2 * (1 - 1e-4)


def _known(by_size, weight, alpha):
    """Whether the weight that there is at least is positive, as an interval without noise of the choice tells."""
    return replace(by_size, choice_scales=(0.0,)).ends(weight, alpha) != [(0.0, 100.0)]


THREE = (Fraction(1, 20), Fraction(1, 2), Fraction(4, 5))


@pytest.mark.parametrize("heaviest", [0.25, 1.0, 4.0])
def test_every_end_is_where_the_three_steps_put_it(heaviest):
    """Size, choice and sampling, as the module writes them: an end solves M·KL(…) = ln(2J/α₃)."""
    evenness, scales, size_scale, points, alpha, noisy = 0.5, (3.0, 4.0, 5.0), 6.0, 1001, 0.05, 4_000.0
    by_size = BySize(THREE, scales, size_scale, points, heaviest, evenness, 1.0)
    weight = noisy - size_scale * log(1 / (alpha / 2)) + size_scale * log(1 + exp(-1e-6 / size_scale))

    def surprise(q, p, scale):
        x = p + scale * log(3 * points / (alpha / 4)) / weight
        t = (x - evenness * q) / (1 - evenness)
        return weight / heaviest * (t * log(t / q) + (1 - t) * log((1 - t) / (1 - q)))

    expected = pytest.approx(log(2 * 3 / (alpha / 4)))
    ends = by_size.ends(noisy, alpha)
    for p, scale, (low, high) in zip(map(float, THREE), scales, ends, strict=True):
        assert surprise(high / 100, p, scale) == expected
        assert surprise(1 - low / 100, 1 - p, scale) == expected


def test_nothing_is_known_where_the_weight_may_be_0():
    by_size = BySize(THREE, (3.0, 4.0, 5.0), 6.0, 1001, 1.0, 0.5, 1.0)
    taken_off = -by_size.lower_bound(0.0, 0.025)
    assert by_size.lower_bound(taken_off, 0.025) == 0
    assert by_size.ends(taken_off, 0.05) == [(0.0, 100.0)] * 3


def test_spending_adds_up():
    """Coming or going, and changing, as rational numbers: what is lost of a charge of 1."""
    halves = [Fraction(1, 2)], [Fraction(9, 10)], [Fraction(1, 100), Fraction(1, 2)], [Fraction(1, 10**6)]
    for ps in halves:
        moves = [max(p, 1 - p) for p in ps]
        there = spending(ps, ADD_REMOVE, True)
        assert sum(2 * m / b for m, b in zip(moves, there.choices, strict=True)) + 1 / there.size == 1
        where = spending(ps, REPLACE, True)
        assert sum(2 * m / b for m, b in zip(moves, where.choices, strict=True)) + 1 / where.size == 1
        assert sum(2 / b for b in where.choices) <= 1 and 1 / where.size >= Fraction(1, 10)
        assert sum(2 / b for b in spending(ps, REPLACE, False).choices) == 1
        # three draws of each quantile, for an interval in values, cost as much as one
        assert spending(ps, REPLACE, False, 3) == spending(ps, REPLACE, False).times(3)
        there, where = spending(ps, ADD_REMOVE, True, 3), spending(ps, REPLACE, True, 3)
        assert sum(3 * 2 * m / b for m, b in zip(moves, there.choices, strict=True)) + 1 / there.size == 1
        assert sum(3 * 2 * m / b for m, b in zip(moves, where.choices, strict=True)) + 1 / where.size == 1
        assert sum(3 * 2 / b for b in where.choices) <= 1
