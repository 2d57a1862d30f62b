"""Errors of standard deviations and correlations are predicted for values that vary much. A release says the error for those that there are."""

import numpy as np
import pytest
from noises import Fixed

import accord
from accord.noise import SECURE
from accord.release.answer import answer

RUNS = 1_500
"""What is measured then has a standard deviation of 4 % of it. What was predicted is half of it at most, and what is said is one and a half times it at least."""
BOUNDS = {"age": (0, 100), "stay": (0, 60)}


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, 3_000).astype(float)
    stay = np.clip(2 + 0.03 * age + rng.exponential(3, age.size), 0, 60)
    levels = rng.choice([0.2, 1.0, 1.0, np.inf], age.size)
    return {"age": age, "stay": stay, "e": levels, "none": np.full(age.size, 30.0)}


QUESTIONS = {
    "std": (lambda missing: accord.std("stay", (0, 60), missing=missing), lambda d: d["stay"].std()),
    "correlation": (
        lambda missing: accord.correlation("age", "stay", bounds=BOUNDS, missing=missing),
        lambda d: np.corrcoef(d["age"], d["stay"])[0, 1],
    ),
}


@pytest.mark.parametrize("missing", ["exclude", "none"])
@pytest.mark.parametrize("statistic", QUESTIONS)
def test_the_error_of_a_release_is_for_values_that_vary_as_much(people, statistic, missing):
    """What was predicted is below what is measured, and what the release says is not."""
    ask, truth = QUESTIONS[statistic]
    table, query = accord.table(people, epsilon="e"), ask(missing)
    release, summary = table.release(query), table.reader.summary(query)
    drawn = [accord.Release(release.plan, *made) for made in draws(release.plan, summary)]
    measured = np.sqrt(np.mean([(one.value - truth(people)) ** 2 for one in drawn]))
    assert release.plan.rmse_here < measured < np.median([one.rmse_here for one in drawn])
    assert all(one.rmse_here <= one.rmse for one in (release, *drawn))
    assert "as spread out, as there seem to be" in " ".join(str(release).split())
    number = release - 1
    assert number.rmse_here == pytest.approx(release.rmse_here)


def draws(plan, summary):
    """Of the same integers: what releases are made of."""
    for _ in range(RUNS):
        value, released = answer(plan, [summary], SECURE)
        yield value, None, released


def test_of_a_column_that_does_not_vary_nothing_can_be_told(people):
    """Where noise does not hide it: a noisy variance may look as if there were one (one draw in 150 did)."""
    table = accord.table(people, epsilon="e")
    query = accord.correlation("age", "none", bounds={"age": (0, 100), "none": (0, 60)})
    plan = table.plan(query)
    value, released = answer(plan, [table.reader.summary(query)], Fixed())
    release = accord.Release(plan, value, None, released)
    assert release.interval() == (-1.0, 1.0) and release.rmse_here == 2.0
