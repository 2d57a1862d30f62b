"""Variance and standard deviation: exact without noise, private by trying all tables, honest about their error."""

from fractions import Fraction
from itertools import product
from math import exp, inf, sqrt

import numpy as np
import pytest
from noises import Fixed

import accord
from accord.relation import ADD_REMOVE, REPLACE
from accord.release.answer import answer
from accord.release.release import read_summaries

BOUNDS = {"bounds": (0, 4), "step": 1, "missing": "none"}
VALUES = (0, 1, 2, 3, 4)


def table(values, levels, neighbors="replace", **extra):
    roster = accord.Spec.of(levels) if neighbors == "add-remove" else None
    rows = [(x, e) for x, e in zip(values, levels, strict=True) if x is not None]
    columns = {
        "x": np.array([x for x, _ in rows], dtype=float),
        "e": np.array([e for _, e in rows], dtype=float),
    }
    return accord.table(columns | extra, epsilon="e", neighbors=neighbors, roster=roster)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("ask", [accord.variance, accord.std])
@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "proportional", "affine", "fallah", "mix"])
def test_without_noise_it_is_that_of_numpy(mechanism, ask, neighbors):
    if mechanism == "mix" and neighbors == "add-remove":
        pytest.skip("mix proves replace only")
    values = [0, 1, 1, 4, 2, 3, 0, 4]
    people = table(values, [0.5] * 8, neighbors)
    plan = people.plan(ask("x", **BOUNDS), mechanism)
    value, _ = answer(plan, read_summaries(people.reader, plan, Fixed()), Fixed())
    assert value == pytest.approx(float(np.var(values) if ask is accord.variance else np.std(values)))


def sums(plan, people):
    """What is released without noise, in units of the scale of its noise."""
    noise = Fixed()
    _, released = answer(plan, read_summaries(people.reader, plan, noise), noise)
    total = int((plan.calibration.charges * plan.spec.people).sum())
    return [x * total / scale for x, scale in zip(released, noise.scales, strict=True)]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["minimum", "affine", "proportional"])
def test_nobody_loses_more_than_their_charge_and_somebody_loses_it_all(mechanism, neighbors):
    """All tables of two people, all neighbors: the distance of their sums is what a release loses at most."""
    levels, is_replace = [0.3, 1.0], neighbors == "replace"
    states = VALUES if is_replace else (None, *VALUES)
    plan = table([0, 0], levels, neighbors).plan(accord.variance("x", **BOUNDS), mechanism)
    released = {pair: sums(plan, table(pair, levels, neighbors)) for pair in product(states, repeat=2)}
    worst = [Fraction(0), Fraction(0)]
    for (here, one), (there, other) in product(released.items(), repeat=2):
        for who in (0, 1):
            mine, yours = here[who], there[who]
            if here[1 - who] == there[1 - who] and (is_replace or (mine is None) != (yours is None)):
                worst[who] = max(worst[who], sum(abs(a - b) for a, b in zip(one, other, strict=True)))
    assert worst == [Fraction(int(c), 10**6) for c in plan.calibration.charges]


def test_it_costs_no_more_noise_than_the_mean():
    variance, mean = (ask("x", bounds=(0, 1)).under(REPLACE) for ask in (accord.variance, accord.mean))
    # in units in which a person's y runs from −1 to 1, both noises have the scale 2
    assert variance.sensitivity == 4 * variance.query.cells**2
    assert Fraction(variance.sensitivity, 2 * variance.query.cells**2) == Fraction(
        2 * mean.sensitivity, mean.query.cells
    )


def test_under_add_remove_one_person_adds_the_same_whatever_they_have():
    target = accord.variance("x", bounds=(0, 8), step=1).under(ADD_REMOVE)
    assert {sum(int(form.at(q)) for form in target.forms) for q in range(9)} == {64} == {target.sensitivity}


POPULATIONS = {
    "uniform": lambda rng, n: rng.uniform(0, 100, n),
    "skewed": lambda rng, n: np.minimum(rng.exponential(10, n), 100),
    "two ends": lambda rng, n: np.where(rng.random(n) < 0.85, 0.0, 100.0),
    "constant": lambda rng, n: np.full(n, 30.0),
}


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("mechanism", ["affine", "mix", "sample"])
@pytest.mark.parametrize("ask", [accord.variance, accord.std])
def test_intervals_hold_and_errors_are_below_the_predicted_ones(ask, mechanism, population):
    """95 % intervals of 60 releases: fewer than 43 hold with a probability below 1e-9 if 95 % do."""
    rng = np.random.default_rng(7)
    levels = np.repeat([0.05, 0.5, 1.0, inf], [300, 300, 300, 30])
    covered, errors = 0, []
    for _ in range(60):
        values = POPULATIONS[population](rng, levels.size)
        people = accord.table({"x": values, "e": levels}, epsilon="e")
        release = people.release(ask("x", bounds=(0, 100), missing="none"), mechanism)
        truth = float(np.var(values) if ask is accord.variance else np.std(values))
        low, high = release.interval(0.95)
        covered += low - 1e-6 <= truth <= high + 1e-6
        errors.append(release.value - truth)
    assert covered >= 43
    if ask is accord.variance:
        assert sqrt(np.mean(np.square(errors))) < 1.3 * release.plan.rmse_here


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_of_groups_and_members(neighbors):
    rng = np.random.default_rng(3)
    n = 40_000
    values, groups = rng.uniform(0, 100, n), rng.integers(1, 3, n)
    values[groups == 2] /= 4
    levels = np.full(n, 1.0)
    people = table(values, levels, neighbors, g=groups)
    truth = {k: float(np.var(values[groups == k])) for k in (1, 2)}
    release = people.release(accord.variance("x", bounds=(0, 100), by="g", keys=[1, 2]))
    for row in release.value:
        low, high = release.interval(0.999)[row["g"]]
        assert low <= truth[row["g"]] <= high and abs(row["value"] - truth[row["g"]]) < 40
    one = people.release(accord.std("x", bounds=(0, 100), where="g = 2"))
    low, high = one.interval(0.999)
    assert low <= sqrt(truth[2]) <= high and high - low < 10


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_interval_of_one_group_of_many_is_as_wide_as_that_of_its_members_alone(neighbors):
    """Both have the same noise. The other groups do not make an answer less certain."""
    n, keys = 40_000, list(range(20))
    groups = np.arange(n) % len(keys)
    people = table(np.arange(n) // len(keys) % 100, np.full(n, 1.0), neighbors, g=groups)
    of_all = people.release(accord.variance("x", bounds=(0, 100), by="g", keys=keys))
    of_one = people.release(accord.variance("x", bounds=(0, 100), where="g = 7"))
    (low, high), (below, above) = of_all.interval(0.95)[7], of_one.interval(0.95)
    assert of_all.plan.cost.tolist() == of_one.plan.cost.tolist()
    assert (high - low) / (above - below) == pytest.approx(1, abs=0.3)


def test_a_negative_variance_is_never_answered():
    people = table([3, 3, 3], [0.01] * 3)
    plan = people.plan(accord.std("x", **BOUNDS), "minimum")
    for draws in product((-(10**9), 10**9), repeat=2):
        value, _ = answer(plan, read_summaries(people.reader, plan, Fixed(*draws)), Fixed(*draws))
        assert 0 <= value <= 2


def test_the_density_ratio_of_two_tables_is_at_most_e_to_the_charge():
    """Directly from the law of the noise, on a small window of outcomes."""
    people, other = table([0, 4], [0.7, 1.2]), table([4, 4], [0.7, 1.2])
    plan = people.plan(accord.variance("x", **BOUNDS), "proportional")
    sums = []
    for one in (people, other):
        noise = Fixed()
        answer(plan, read_summaries(one.reader, plan, noise), noise)
        columns = read_summaries(one.reader, plan, noise)[0].weighted(plan.calibration.charges)
        sums.append(plan.target.sums(columns, int(plan.calibration.charges.sum())))
    scale = float(noise.scales[0])
    for z in product(np.linspace(-5 * scale, 5 * scale, 21), repeat=2):
        here, there = (sum(abs(a - b) for a, b in zip(z, s, strict=True)) for s in sums)
        assert exp((there - here) / scale) <= exp(0.7) * (1 + 1e-12)


@pytest.mark.parametrize("ask", [accord.variance, accord.std])
def test_dates_are_refused(ask):
    from datetime import date

    with pytest.raises(accord.errors.QueryError, match="is of numbers, and its bounds are dates"):
        ask("x", bounds=(date(2020, 1, 1), date(2021, 1, 1)))


@pytest.mark.parametrize(
    ("levels", "middle", "width"), [([1.0], 0.5, 0.0021), ([0.1, 1.0], 0.5, 0.029), ([0.1, 1.0], 0.1, 0.04)]
)
def test_the_interval_of_a_part_is_of_use(levels, middle, width):
    """It holds in all of 40 releases, and is less than half as wide as the moments' own intervals made it (0.0042 and 0.058 at the middle)."""
    rng, widths = np.random.default_rng(8), []
    for _ in range(40):
        x = np.clip(rng.normal(middle, 0.25, 20_000), 0, 1)
        people = accord.table({"x": x, "e": rng.choice(levels, x.size)}, epsilon="e")
        release = people.release(accord.std("x", (0, 1), where="x >= 0"))
        low, high = release.interval(0.999)
        assert low <= x.std() <= high
        low, high = release.interval(0.95)
        widths.append(high - low)
    assert np.mean(widths) < width
