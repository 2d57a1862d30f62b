"""Intervals hold where values are missing, be it nearly all of them: measured, with seeded noise.

95 % intervals of 60 releases: fewer than 43 hold with a probability below 1e-9 if 95 % do.
"""

from math import inf, nan

import numpy as np
import pytest

import accord

LEVELS = np.repeat([0.05, 0.5, 1.0, inf], [300, 300, 300, 30])
RUNS, FEWEST = 60, 43
POPULATIONS = {
    "skewed": lambda rng: np.minimum(rng.exponential(5, LEVELS.size), 100),
    "at a bound": lambda rng: np.where(rng.random(LEVELS.size) < 0.03, 0.0, 100.0),
}
ASKED = {
    "mean": (accord.mean("x", (0, 100)), np.mean),
    "sum": (accord.sum("x", (0, 100)), np.sum),
    "variance": (accord.variance("x", (0, 100)), np.var),
    "proportion": (accord.proportion("x >= 50"), lambda x: np.mean(x >= 50)),
}
CASES = [("mean", m) for m in ("affine", "mix", "sample", "minimum")]
CASES += [("sum", "affine"), ("variance", "affine"), ("variance", "sample"), ("proportion", "affine")]


def drawn(rng, population, missing):
    """A table of people of whom so many have no value, and the values of the others."""
    x = POPULATIONS[population](rng)
    x[rng.permutation(x.size)[: round(missing * x.size)]] = nan
    return accord.table({"x": x, "e": LEVELS}, epsilon="e"), x[~np.isnan(x)]


@pytest.mark.parametrize("missing", [0.04, 0.5, 0.99])
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize(("statistic", "mechanism"), CASES)
def test_intervals_hold(statistic, mechanism, population, missing):
    rng, (query, truth) = np.random.default_rng(11), ASKED[statistic]
    held, widths = 0, []
    for _ in range(RUNS):
        people, values = drawn(rng, population, missing)
        low, high = people.release(query, mechanism).interval(0.95)
        held += low - 1e-3 <= truth(values) <= high + 1e-3
        widths.append(high - low)
    assert held >= FEWEST
    if missing == 0.99 and statistic != "sum":  # next to nothing is known, and that is what is said
        assert np.median(widths) > 0.5 * {"mean": 100, "proportion": 1, "variance": 50**2}[statistic]


@pytest.mark.parametrize("mechanism", ["affine", "mix", "sample"])
@pytest.mark.parametrize("missing", [0.04, 0.8, 0.99])
def test_the_error_of_a_release_is_for_as_many_as_have_a_value(mechanism, missing):
    """What a plan predicts is as if nobody lacked one, which may flatter; what a release says may not."""
    rng, query = np.random.default_rng(14), ASKED["mean"][0]
    errors, said = [], []
    for _ in range(RUNS):
        people, values = drawn(rng, "skewed", missing)
        release = people.release(query, mechanism)
        errors.append(release.value - values.mean())
        said.append(release.rmse_here)
        assert release.rmse_here <= release.rmse <= 100
        assert release.receipt()["rmse_here"] == release.rmse_here
    measured = np.sqrt(np.mean(np.square(errors)))
    assert measured < 1.3 * np.sqrt(np.mean(np.square(said)))
    assert missing < 0.5 or measured > 1.2 * release.plan.rmse_here


@pytest.mark.parametrize("missing", [0.04, 0.5, 0.99])
def test_percentiles_of_those_who_have_a_value_hold(missing):
    rng, query, held = np.random.default_rng(12), accord.median("x", (0, 100), step=1), 0
    for _ in range(RUNS):
        people, values = drawn(rng, "skewed", missing)
        release = people.release(query)
        (low, high), at = release.interval(0.95), np.floor(values + 0.5)
        held += 100 * (at <= release.value).mean() >= low and 100 * (at < release.value).mean() <= high
    assert held >= FEWEST


def test_a_regression_says_that_few_are_there():
    """The predicted error is as if everyone had a value; the interval is for as many as there seem to be."""
    rng = np.random.default_rng(13)
    query = accord.regression("x", ["z"], bounds={"x": (0, 100), "z": (0, 1)})
    widths = []
    for missing in (0.0, 0.5, 0.99):
        values = POPULATIONS["skewed"](rng)
        values[rng.permutation(values.size)[: round(missing * values.size)]] = nan
        table = accord.table({"x": values, "z": rng.random(values.size), "e": LEVELS}, epsilon="e")
        low, high = table.release(query, "affine").interval(0.95)
        widths.append(high - low)
    assert widths[0] < 0.8 * widths[1] < 0.8 * widths[2]
