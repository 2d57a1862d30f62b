"""An interval of a quantile in values holds at least as often as it says: skewed, heaped, gappy and small data.

Releases are drawn at the seam `release.answer`, with the lab's seeded noise; levels are dealt out anew each time, so that they do not
go with values. An interval holds if every p-quantile of these people is in it: every point with at most p of them below it and at most
1 − p above. So measured, no interval of 95 % may fail a test at α = 1e-9, and one that is drawn without its offsets must.
"""

from dataclasses import replace
from fractions import Fraction
from math import floor, inf, log

import numpy as np
import pytest
from scipy.stats import binomtest

import accord
from accord.lab.simulation.noise import Seeded
from accord.mechanisms.rank_choice import select
from accord.mechanisms.size import least_weight, most_people
from accord.people.summary import Summary
from accord.release import Release
from accord.release.answer import answer

ALPHA, RUNS = 1e-9, 200
GRID, POINTS = {"bounds": (0, 1000), "step": 1, "interval": "values"}, 1001
VALUES = {
    "skewed": lambda n: np.minimum(1000, np.rint(30 * np.random.default_rng(5).lognormal(0, 1.5, n))),
    "heaped": lambda n: 50 * np.random.default_rng(5).binomial(20, 0.3, n),
    "constant": lambda n: np.full(n, 400),
    "two far apart": lambda n: np.where(np.arange(n) < n // 2, 100, 900),
    "at the bounds": lambda n: np.where(np.arange(n) < n // 3, 0, 1000),
}
LEVELS = {
    "alike": lambda n: np.ones(n),
    "mixed": lambda n: np.resize([0.1, 0.5, 1.0, 1.0, 4.0], n),
    "some public": lambda n: np.resize([0.1, 1.0, inf], n),
    "public": lambda n: np.full(n, inf),
}
ASKED = {
    "median": lambda **of: accord.median("x", **GRID, **of),
    "quantile 0.9": lambda **of: accord.quantile("x", 0.9, **GRID, **of),
    "three quantiles": lambda **of: accord.quantile("x", [0.1, 0.5, 0.8], **GRID, **of),
}


def quantiles(values, p):
    """The smallest and the largest point with at most p of the values below it and at most 1 − p above."""
    values, n = np.sort(values), len(values)
    last = n - 1 - floor((1 - p) * n)  # so many may be above: this one, and what is above it, is a quantile
    return values[max(0, last)], values[min(n - 1, floor(p * n))]


def outcomes(plan, values, levels, runs=RUNS, members=None):
    """Whether each interval held, and how wide they are. `members`: of whom it is, if not of all."""
    rng, spec = np.random.default_rng(1), plan.spec
    members = np.ones(values.size, dtype=bool) if members is None else members
    held, widths = [], []
    for _ in range(runs):
        level = np.searchsorted(spec.levels, rng.permutation(levels))[members]
        mine = values[members].astype(np.int64)
        summary = Summary(spec.people, POINTS, level, mine, np.ones(mine.size, dtype=np.int64))
        value, released = answer(plan, [summary], Seeded(rng))
        made = Release(plan, value, None, released)
        between = made.interval_in_values(0.95)
        between = between if isinstance(between, list) else [between]
        true = [quantiles(mine, p) for p in plan.target.ps]
        is_exact = not plan.calibration.noise_variance  # then it may be that one quantile of two is given
        held.append(
            all(
                low <= (last if is_exact else first) and (first if is_exact else last) <= high
                for (low, high), (first, last) in zip(between, true, strict=True)
            )
        )
        widths.append(np.mean([high - low for low, high in between]))
    return np.array(held), float(np.mean(widths))


def is_covered(held):
    return bool(binomtest(int(held.sum()), held.size, 0.95, alternative="less").pvalue > ALPHA)


@pytest.mark.parametrize("size", [7, 60, 3_000])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize(
    ("asked", "name"), [("median", "rank"), ("quantile 0.9", "threshold"), ("three quantiles", "minimum")]
)
def test_intervals_in_values_hold(asked, name, values, levels, size):
    people = LEVELS[levels](size)
    plan = accord.plan(accord.Spec.of(people), ASKED[asked](), name)
    assert is_covered(outcomes(plan, VALUES[values](size), people)[0])


@pytest.mark.parametrize("part", ["a tenth", "nearly all", "few"])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("levels", ["alike", "mixed", "some public"])
@pytest.mark.parametrize(("asked", "name"), [("median", "rank"), ("three quantiles", "threshold")])
def test_they_hold_of_any_private_number_of_people(asked, name, levels, neighbors, part):
    size = 4_000
    members = (
        np.arange(size) % 10 < 1
        if part == "a tenth"
        else np.arange(size) > (150 if part == "nearly all" else 3_980)
    )
    people = LEVELS[levels](size)
    plan = accord.plan(accord.Spec.of(people), ASKED[asked](where="m = 1"), name, neighbors=neighbors)
    held, _ = outcomes(plan, VALUES["skewed"](size), people, members=members)
    assert is_covered(held)


def test_they_hold_of_a_private_group_that_is_larger_than_the_others():
    """The plan is for four groups of the same size; one has 97 % of the people."""
    size = 4_000
    people = LEVELS["mixed"](size)
    query = ASKED["median"](by="g", keys=["a", "b", "c", "d"])
    plan = accord.plan(accord.Spec.of(people), query, "rank")
    rng, values = np.random.default_rng(1), VALUES["skewed"](size).astype(np.int64)
    group = np.where(np.arange(size) % 100 < 97, 0, 1)
    held = []
    for _ in range(RUNS):
        level = np.searchsorted(plan.spec.levels, rng.permutation(people))
        counts = [
            Summary(
                plan.spec.people,
                POINTS,
                level[group == k],
                values[group == k],
                np.ones((group == k).sum(), dtype=np.int64),
            )
            for k in range(4)
        ]
        value, released = answer(plan, counts, Seeded(rng))
        between = Release(plan, value, None, released).interval_in_values()
        assert between["c"] == between["d"] == (0.0, 1000.0)
        held.append(
            [
                between[key][0] <= quantiles(values[group == k], 0.5)[0]
                and quantiles(values[group == k], 0.5)[1] <= between[key][1]
                for k, key in enumerate("ab")
            ]
        )
    assert all(is_covered(np.array(column)) for column in np.transpose(held))


@pytest.mark.parametrize("times", [100, 10, 1, 0.1])
@pytest.mark.parametrize("name", ["threshold", "rank", "unequal"])
def test_they_hold_where_private_levels_are_of_other_people_than_expected(name, times):
    """`times` as many are there as were expected; how far out brackets are drawn follows from the noisy size."""
    size = 2_000
    people = np.resize([0.1, 1.0, 1.0, 4.0, inf], size)
    expected = accord.Spec.from_groups(
        {level: max(1, int(size / times / 5)) for level in (0.1, 1.0, 4.0, inf)}
    )
    own = accord.mechanism("unequal", lambda levels, people: np.minimum(levels, np.sqrt(levels.clip(0, 100))))
    plan = accord.plan(
        expected.as_expected(),
        ASKED["three quantiles"](missing="none"),
        own if name == "unequal" else name,
        neighbors="private-levels",
    )
    held, width = outcomes(plan, VALUES["skewed"](size), people)
    assert is_covered(held) and width < 500


def test_draws_without_offsets_are_found_out():
    """And the interval is of use: of 3,000 people at level 1, a tenth of what is possible."""
    people = LEVELS["mixed"](3_000)
    plan = accord.plan(accord.Spec.of(people), ASKED["median"](), "rank")
    held, width = outcomes(plan, VALUES["skewed"](3_000), people)
    assert is_covered(held) and width < 100
    brackets = replace(plan.calibration.brackets, below=(Fraction(0),), above=(Fraction(0),))
    model = replace(plan.prediction.error_model, brackets=brackets)
    bad = plan.with_choice(
        calibration=replace(plan.calibration, brackets=brackets),
        prediction=replace(plan.prediction, error_model=model),
    )
    assert not is_covered(outcomes(bad, VALUES["skewed"](3_000), people)[0])


def test_with_more_confidence_it_is_the_bounds_and_with_less_the_same():
    people = accord.table({"x": np.arange(3_000) / 3, "e": np.ones(3_000)}, epsilon="e")
    made = people.release(ASKED["median"]())
    assert made.interval_in_values(0.9) == made.interval_in_values(0.95) == made.interval_in_values()
    assert made.interval_in_values(0.951) == (0.0, 1000.0)


# ---- the steps of the argument -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evenness", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_least_weight_is_the_inverse_of_most_people(share, evenness):
    for people in (50, 3_000, 10**6):
        x = least_weight(share, people, evenness, log(100))
        if x > evenness * share + 1e-9:
            assert most_people(x, people, evenness, log(100)) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("evenness", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_what_sampling_takes_grows_with_the_weight(share, evenness):
    """So that the offset for everyone is enough for any part of them."""
    weights = np.geomspace(1, 10**7, 200)
    margins = [(share - least_weight(share, w, evenness, log(80))) * w for w in weights]
    assert np.all(np.diff(margins) >= -1e-6)


@pytest.mark.parametrize("offset", [0, 7, -30, 1_000])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)])
def test_an_offset_changes_nothing_of_what_one_person_moves(p, offset):
    """Brute force: by at most c where a value changes, and max(p, 1 − p)·c where somebody comes or goes."""
    rng = np.random.default_rng(3)

    class Scores:
        def choose(self, scores, scale):
            self.scores = np.array(scores) / p.denominator
            return 0

    def scores(weights):
        noise = Scores()
        select(np.array(weights), p, noise, Fraction(1), offset)
        return noise.scores

    for _ in range(200):
        weights = rng.integers(0, 20, 6)
        c, here, there = int(rng.integers(1, 20)), *rng.integers(0, 6, 2)
        one, other = weights.copy(), weights.copy()
        one[here] += c
        other[there] += c
        assert np.abs(scores(one) - scores(other)).max() <= c + 1e-9
        if weights.any():
            assert np.abs(scores(one) - scores(weights)).max() <= max(p, 1 - p) * c + 1e-9
