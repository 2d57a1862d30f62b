"""Intervals of sums, differences and ratios hold: seeded releases, coverage not rejected at 1e-9, wrong laws rejected."""

from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest
from scipy.stats import binomtest

import accord
from accord.noise import SECURE
from accord.release import Release
from accord.release.answer import answer
from accord.release.numbers import Number
from accord.release.release import read_summaries
from accord.statistics.convolution import half_width

ALPHA = 1e-9
N = 900
AGES, SEX = np.arange(N) % 80 + 10.0, np.array(["f", "m", "m"] * (N // 3))
INCOME = np.arange(N) * 7919 % 9973
OLD, ADULT = accord.count(where="age >= 65"), accord.count(where="age >= 20")
MEAN = {"column": "income", "bounds": (0, 10_000), "step": 1}
TRUE = {
    "old": (AGES >= 65).sum(),
    "adult": (AGES >= 20).sum(),
    "f": (SEX == "f").sum(),
    "mean": INCOME.mean(),
}
_TIMES = count()


def opened(levels=(0.1, 0.5, 2.0), shuffled=None):
    """The same people; `shuffled`: with levels that are dealt out anew."""
    epsilon = np.array([*levels] * (N // len(levels)))
    if shuffled is not None:
        epsilon = shuffled.permutation(epsilon)
    return accord.table({"age": AGES, "sex": SEX, "income": INCOME, "level": epsilon}, epsilon="level")


class Again:
    """A question whose integers are read once; each call draws another answer."""

    def __init__(self, people, query, mechanism):
        self.plan = people.plan(query, mechanism)
        self.summaries = read_summaries(people.reader, self.plan, SECURE)

    def __call__(self):
        value, released = answer(self.plan, self.summaries, SECURE)
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=next(_TIMES))
        return Release(self.plan, value, time, released)


def holds(inside, confidence, exact=False):
    """Whether so many hits are no surprise; exact: also not too many."""
    sides = "two-sided" if exact else "less"
    return binomtest(int(np.sum(inside)), len(inside), confidence, alternative=sides).pvalue > ALPHA


def is_inside(interval, truth):
    return interval[0] <= truth <= interval[1]


def test_differences_hold_exactly_where_everyone_weighs_the_same():
    """With `minimum` noise is all there is, and 90 % are 90 %.

    Without the other noise it would be 78 %, and 97 % as if both went together; both are rejected in all but one
    of a million seeds.
    """
    people = opened()
    old, adult = Again(people, OLD, "minimum"), Again(people, ADULT, "minimum")
    truth, inside, of_one, together = TRUE["old"] - TRUE["adult"], [], [], []
    for _ in range(2_000):
        a, b = old(), adult()
        difference = a - b
        inside.append(is_inside(difference.interval(0.9), truth))
        (scale,) = Number(b).errors.scales
        off = abs(difference.value - truth)
        of_one.append(off <= half_width(0.0, (scale,), 0.1))
        together.append(off <= half_width(0.0, (2 * scale,), 0.1))
    assert holds(inside, 0.9, exact=True)
    assert not holds(of_one, 0.9)
    assert not holds(together, 0.9, exact=True)


@pytest.mark.parametrize("mechanism", ["affine", "mix", "stretch", "sample", "pe"])
def test_intervals_hold_whatever_the_mechanism(mechanism):
    """Levels are dealt out anew each time, so that what weights do is chance as well."""
    shuffled, inside = np.random.default_rng(5), []
    for _ in range(60):
        people = opened(shuffled=shuffled)
        old, adult = Again(people, OLD, mechanism), Again(people, ADULT, "affine")
        inside += [is_inside((adult() - old()).interval(0.8), TRUE["adult"] - TRUE["old"])]
    assert holds(inside, 0.8)


@pytest.mark.parametrize("runs", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_ratios_hold_wherever_the_denominator_is(runs):
    """One far from 0, and one that is nearly 0: its set is often unbounded, and the true ratio is in it."""
    people = opened(levels=(0.02, 0.05, 0.1))
    old, adult = Again(people, OLD, "minimum"), Again(people, ADULT, "minimum")
    bounded = {"far": 0, "near": 0}
    inside = {"far": [], "near": []}
    for _ in range(runs):
        a, b = old(), adult()
        ratios = {"far": (a / b, TRUE["old"] / TRUE["adult"])}
        ratios["near"] = (b / (a - TRUE["old"] + 60), TRUE["adult"] / 60)
        for name, (ratio, truth) in ratios.items():
            interval = ratio.interval(0.9)
            inside[name].append(is_inside(interval, truth))
            bounded[name] += bool(np.isfinite(interval[0]))
    assert holds(inside["far"], 0.9) and holds(inside["near"], 0.9)
    assert bounded["far"] == runs
    assert bounded["near"] < runs


def test_shares_of_a_table_hold():
    """A cell is in the numerator and in the denominator: one noise, not two."""
    people = opened()
    cells = Again(people, accord.histogram("age", edges=[0, 30, 60, 100]), "minimum")
    truth, inside = (AGES < 30).sum() / (AGES < 60).sum(), []
    for _ in range(200):
        h = cells()
        inside.append(is_inside((h["[0, 30)"] / (h["[0, 30)"] + h["[30, 60)"])).interval(0.9), truth))
    assert holds(inside, 0.9, exact=True)


def test_shares_hold_where_weights_differ():
    """Levels are dealt out anew each time; what they do to all cells together is bounded as for one."""
    shuffled, inside, cells = np.random.default_rng(8), [], [10, 30, 50, 70, 90]
    truth = (AGES < 30).sum() / N
    for _ in range(120):
        people = opened(levels=(0.5, 1.0, 20.0), shuffled=shuffled)
        h = Again(people, accord.histogram("age", edges=cells, missing="none"), "proportional")()
        inside.append(is_inside((h["[10, 30)"] / sum(h[cell] for cell in h.value)).interval(0.8), truth))
    assert holds(inside, 0.8)


def test_differences_between_means_of_private_groups_hold():
    people = opened()
    groups = Again(people, accord.mean(**MEAN, by="sex", keys=["f", "m"]), "minimum")
    truth, inside = INCOME[SEX == "f"].mean() - INCOME[SEX == "m"].mean(), []
    for _ in range(300):
        g = groups()
        inside.append(is_inside((g["f"] - g["m"]).interval(0.8), truth))
    assert holds(inside, 0.8)
