"""The mechanisms of figures 1 and 2 of [J], as the lab has them, follow the law of accord's own releases wherever they are the same.

Each comparison is a two-sample Kolmogorov–Smirnov test that fails once in 10⁴ by chance; all generators are seeded, so that it either always fails or never does.
"""

from math import exp, inf, nan, sqrt

import numpy as np
import pytest
from scipy.stats import ks_2samp

import accord
from accord.budget import MICRO, to_micro
from accord.lab.papers import jorgensen, jorgensen_counts, jorgensen_medians
from accord.lab.papers.experiment import Context, Point, Points
from accord.lab.papers.jorgensen import Setting
from accord.lab.papers.jorgensen_counts import counts
from accord.lab.papers.jorgensen_medians import medians
from accord.lab.simulation.noise import Seeded
from accord.mechanisms.sample import thin
from accord.people.summary import Summary
from accord.release.answer import answer
from accord.spec import Spec

ALL = (*jorgensen_counts.ALL, *jorgensen_medians.ALL)
ALPHA = 1e-4
DRAWS = 1_500
LEVELS = np.array([0.3] * 8 + [0.5] * 6 + [0.7] * 3 + [1.0] * 3)
"""Eight conservative people, nine moderate ones and three liberal."""
FEW = Setting(0.0, 20, conservative=0.4, moderate=0.45, epsilon_c=0.3)
ONES = np.arange(20) % 3 == 0
VALUES = np.array(
    [1000, 3, 480, 500, 510, 700, 420, 505, 505, 640, 333, 501, 499, 10, 502, 520, 380, 555, 450, 509]
)


def released(query, name, summary, spec, t=None):
    plan, noise = accord.plan(spec, query, name, t=t), Seeded(np.random.default_rng(2))
    return np.array([answer(plan, [summary], noise)[0] for _ in range(DRAWS)])


def spec_and_level():
    spec = Spec.of(LEVELS)
    return spec, np.searchsorted(spec.micro, to_micro(LEVELS))


@pytest.fixture(scope="module")
def counted():
    rng = np.random.default_rng(1)
    runs = [counts(LEVELS, ONES, FEW, rng) for _ in range(DRAWS)]
    return {method: np.array([run[method] for run in runs]) for method in runs[0]}


@pytest.fixture(scope="module")
def chosen():
    rng = np.random.default_rng(1)
    runs = [medians(LEVELS, VALUES, FEW, rng) for _ in range(DRAWS)]
    return {method: np.array([run[method] for run in runs]) for method in runs[0]}


def alike(first, second):
    return ks_2samp(first, second).pvalue > ALPHA


COUNT = accord.count(where="x = 1")


def count_summary(name):
    """As a table would make it: sums by level, or people by level and cell for `sample`."""
    spec, level = spec_and_level()
    if name == "sample":
        return spec, Summary(spec.people, 2, level, ONES.astype(np.int64), np.ones(20, dtype=np.int64))
    ones = np.bincount(level[ONES], minlength=spec.micro.size)
    levels, column = np.tile(np.arange(spec.micro.size), 2), np.repeat([0, 1], spec.micro.size)
    return spec, Summary(spec.people, 2, levels, column, np.concatenate((spec.people, ones)))


@pytest.mark.parametrize(
    ("method", "name"),
    [("M", "minimum"), ("Alag.", "stretch"), ("PE", "pe"), ("affine", "affine"), ("sample", "sample")],
)
def test_counts_are_as_released(counted, method, name):
    spec, summary = count_summary(name)
    there = released(COUNT, name, summary, spec)
    assert alike(counted[method], there)
    assert not alike(counted[method], there + 3)  # it would be noticed


@pytest.mark.parametrize(("method", "t"), [("S", "max"), ("S-avg", "mean")])
def test_sampled_counts_keep_whom_a_release_keeps(counted, method, t):
    """Not scaled back, and with the real Laplace noise of the paper; a release adds whole numbers to a whole number."""
    spec, summary = count_summary("sample")
    calibration = accord.plan(spec, COUNT, "sample", t=t, neighbors="add-remove").calibration
    rng = np.random.default_rng(2)
    kept = [
        thin(summary.amount, calibration.keep[summary.level], Seeded(rng)) @ summary.output
        for _ in range(DRAWS)
    ]
    there = kept + rng.laplace(0.0, MICRO / calibration.t, DRAWS)
    assert alike(counted[method], there)
    assert not alike(counted[method], there + 0.5)


def test_the_count_of_liberal_people_is_that_of_threshold_but_for_the_scaling(counted):
    spec, summary = count_summary("threshold")
    there = released(COUNT, "threshold", summary, spec, t=1.0)
    assert alike(counted["T"], there * 3 / 20)


def test_medians_are_as_released(chosen):
    spec, level = spec_and_level()
    summary = Summary(spec.people, 1000, level, VALUES - 1, np.ones(20, dtype=np.int64))
    for method, name in (("PE", "pe"), ("rank", "rank")):
        there = released(accord.median("x", (1, 1000), step=1, missing="none"), name, summary, spec)
        assert alike(chosen[method], there), method
        assert not alike(chosen[method], (there + 60).clip(1, 1000)), method


def test_the_median_by_the_exponential_mechanism(chosen):
    """M, against exp(−ε·k/2) written out: k people must change for r to be the upper median of 20."""
    grid = np.arange(1, 1001)
    below = np.searchsorted(np.sort(VALUES), grid, side="left")
    above = 20 - np.searchsorted(np.sort(VALUES), grid, side="right")
    weight = np.exp(-0.3 / 2 * (np.maximum(below - 10, 0) + np.maximum(above - 9, 0)))
    law = np.cumsum(weight) / weight.sum()
    there = 1 + np.searchsorted(law, np.random.default_rng(2).random(DRAWS))
    assert alike(chosen["M"], there)


def test_everyone_alike_is_the_exponential_mechanism_whoever_chooses():
    """With all at one level, M, S, S-avg and PE are one mechanism; S keeps everyone."""
    alone = Setting(0.0, 20, conservative=0.0, moderate=0.0, epsilon_c=1.0, epsilon_m=1.0)
    rng = np.random.default_rng(1)
    runs = [medians(np.ones(20), VALUES, alone, rng) for _ in range(DRAWS)]
    of = {method: [run[method] for run in runs] for method in ("M", "T", "S", "S-avg", "PE")}
    assert all(alike(of["M"], other) for other in of.values())


def test_who_is_kept():
    """[J] Definition 9: (e^ε − 1)/(e^t − 1), and everyone from t on."""
    rng, n = np.random.default_rng(1), 200_000
    for level, t in ((0.1, 1.0), (0.5, 0.6), (0.6, 0.6), (1.0, 0.6)):
        kept = jorgensen.kept_by(np.full(n, int(to_micro(level))), int(to_micro(t)), rng).mean()
        chance = min(1.0, (exp(level) - 1) / (exp(t) - 1))
        assert abs(kept - chance) <= 5 * sqrt(chance * (1 - chance) / n) + 1e-9


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.id)
def test_who_is_liberal(experiment):
    for setting in experiment.settings:
        levels = setting.drawn.draw(np.random.default_rng(1))
        assert levels.size == setting.people
        assert (levels[setting.liberal] == 1.0).all()
        liberal = (1 - setting.conservative - setting.moderate) * setting.people
        assert abs(levels[setting.liberal].size - liberal) <= 1  # the two other groups are whole people
        assert levels.min() >= setting.epsilon_c
    if experiment.id == "J-fig2b":
        assert levels[setting.liberal].size == 30  # "only 3% of the dataset (30 records)"


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.id)
def test_a_measurement_depends_on_its_generator_alone(experiment):
    first, again, other = (
        experiment.measure(experiment.settings[-1], 3, np.random.default_rng(seed), Context())
        for seed in (5, 5, 6)
    )
    assert first == again != other
    paper = ["M", "T", "S", "S-avg", "PE"] + ["Alag."] * ("fig1" in experiment.id)
    assert [p.method for p in first if p.method not in experiment.ours] == paper
    assert {p.method for p in first} >= experiment.ours
    assert {p.x for p in first} == {experiment.settings[-1].x}
    assert all(0 <= p.value < inf and 0 <= p.error < inf for p in first)


def test_ids_settings_and_runs():
    assert [e.id for e in ALL] == [f"J-fig{k}{letter}" for k in (1, 2) for letter in "abcd"]
    for e in ALL:
        xs = [s.x for s in e.settings]
        assert xs == sorted(set(xs)) and e.runs == 1_000 and 100 <= e.quick <= e.runs
        assert {s.people for s in e.settings} == ({1_000} if "fig1" in e.id else {1_001})
        assert all(s.epsilon_m == 0.5 for s in e.settings) == e.id.endswith("c")


def test_where_curves_cross():
    def crossing(first, second, error=0.0):
        points = [Point(m, x, v, error) for m, vs in (("A", first), ("B", second)) for x, v in enumerate(vs)]
        return jorgensen.crossing(Points(points), "A", ["B"])

    assert crossing([3, 2, 0], [1, 1, 1]).value == 1.5
    assert crossing([0, 0, 4], [1, 1, 1]).value == 1.25
    assert crossing([3, 2, 2], [1, 1, 1]).value is nan
    # as far as chance goes: A and B move by 0.01 each
    rng = np.random.default_rng(1)
    moved = [
        crossing(np.array([3, 2, 0]) + z[:3], 1 + z[3:]).value for z in 0.01 * rng.standard_normal((2_000, 6))
    ]
    assert crossing([3, 2, 0], [1, 1, 1], 0.01).error == pytest.approx(np.std(moved), rel=0.1)


def test_a_fall_is_on_one_side_of_the_border():
    high, low = Point("S", 0.0, 40.0, 3.0), Point("S", 1.0, 10.0, 4.0)
    much, little = (jorgensen.falls(high, low, "", "", side) for side in (1, -1))
    assert (much.here, much.agrees, much.margin) == (30.0, True, 3.0)
    assert (little.agrees, little.margin) == (False, -3.0)


def test_levels_of_the_release_and_of_the_lab_are_the_same_millionths():
    drawn = ALL[0].settings[0].drawn.draw(np.random.default_rng(1))
    assert (to_micro(drawn) * 100 % MICRO == 0).all()  # hundredths, none of them a millionth short
