"""Predicted errors and intervals are true: releases on the bundled people, whose levels are dealt out anew each time."""

from importlib.resources import files

import duckdb
import numpy as np
import pytest
from scipy.stats import binomtest

import accord

BOUNDS, AGES, ALPHA = (0, 200_000), [18, 30, 50, 65, 100], 1e-9


@pytest.fixture(scope="module")
def people():
    path = files("accord.data") / "people.parquet"
    return duckdb.execute("SELECT income, age, epsilon FROM read_parquet($1)", [str(path)]).fetchnumpy()


def dealt_out(people, runs, seed):
    """Tables in which the same people have other levels each time, with who has not opted out."""
    shuffle = np.random.default_rng(seed)
    con = duckdb.connect()
    for _ in range(runs):
        epsilon = shuffle.permutation(people["epsilon"])
        con.register("people", {**people, "epsilon": epsilon})
        yield accord.table(con.sql("FROM people"), epsilon="epsilon"), epsilon > 0


@pytest.mark.parametrize(
    ("ask", "mechanism", "runs", "within"),
    [
        pytest.param(accord.mean, "affine", 2_000, 0.10, marks=pytest.mark.slow),
        (accord.mean, "affine", 500, 0.2),  # six standard errors
        (accord.mean, "mix", 500, 0.2),
        pytest.param(accord.mean, "minimum", 500, 0.2, marks=pytest.mark.slow),
        pytest.param(accord.sum, "threshold", 500, 0.2, marks=pytest.mark.slow),
    ],
)
def test_error_and_interval_are_as_predicted(people, ask, mechanism, runs, within):
    """The empirical RMSE is near rmse_here; a coverage of at least 95 % is not rejected at α = 1e-9."""
    income = np.clip(people["income"], *BOUNDS)
    query = ask("income", BOUNDS, std=float(income.std()), missing="none")
    errors, held = [], 0
    for table, read in dealt_out(people, runs, seed=7):
        release = table.release(query, mechanism)
        truth = income[read].mean() * release.plan.target.factor(int(read.sum()))
        low, high = release.interval(0.95)
        errors.append(release.value - truth)
        held += low <= truth <= high
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(release.plan.rmse_here, rel=within)
    assert binomtest(int(held), runs, 0.95, alternative="less").pvalue > ALPHA


def test_count_and_histogram_stay_below_their_worst_case(people):
    """Shares are not declared, so that the prediction is the worst case: not far off, and not exceeded by more than chance."""
    off = {"count": [], "histogram": []}
    for table, read in dealt_out(people, 300, seed=11):
        age = people["age"][read]
        count = table.release(accord.count(where="age >= 65"))
        histogram = table.release(accord.histogram("age", edges=AGES))
        off["count"].append(count.value - (age >= 65).sum())
        off["histogram"].append(np.array(list(histogram.value.values())) - np.histogram(age, AGES)[0])
    for release in (count, histogram):
        rmse = np.sqrt(np.mean(np.square(off[release.plan.query.statistic])))
        assert 0.5 * release.plan.rmse_here < rmse < 1.2 * release.plan.rmse_here


@pytest.mark.parametrize("ask", [accord.min, accord.max])
def test_min_and_max_are_as_far_out_as_they_say(people, ask):
    """The percentile of the answer is in the interval in at least 95 % of releases (α = 1e-9), and off by no more than predicted (chance allowed)."""
    query = ask("income", (-200_000, 1_000_000))
    income = np.rint((np.clip(people["income"], -200_000, 1_000_000) - float(query.low)) / float(query.step))
    runs, held, off = 150, 0, []
    for table, read in dealt_out(people, runs, seed=3):
        release = table.release(query)
        point = round((release.value - float(query.low)) / float(query.step))
        below, up_to = 100 * (income[read] < point).mean(), 100 * (income[read] <= point).mean()
        low, high = release.interval(0.95)
        held += below <= high and up_to >= low
        off.append(below if ask is accord.min else 100 - up_to)
    assert binomtest(held, runs, 0.95, alternative="less").pvalue > ALPHA
    assert np.sqrt(np.mean(np.square(off))) < 1.3 * release.plan.rmse_here
