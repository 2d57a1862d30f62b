"""Errors of standard deviations and correlations are predicted for values that vary much. A release says the error for those that there are."""

import numpy as np
import pytest

import accord

RUNS = 40
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
    """What was predicted is below what is measured, and what the release says is not; seeded, and by far."""
    ask, truth = QUESTIONS[statistic]
    table = accord.table(people, epsilon="e")
    releases = [table.release(ask(missing)) for _ in range(RUNS)]
    measured = np.sqrt(np.mean([(release.value - truth(people)) ** 2 for release in releases]))
    assert releases[0].plan.rmse_here < measured < np.median([release.rmse_here for release in releases])
    assert all(release.rmse_here <= release.rmse for release in releases)
    assert "as spread out, as there seem to be" in " ".join(str(releases[0]).split())
    number = releases[0] - 1
    assert number.rmse_here == pytest.approx(releases[0].rmse_here)


def test_of_a_column_that_does_not_vary_nothing_can_be_told(people):
    table = accord.table(people, epsilon="e")
    release = table.release(accord.correlation("age", "none", bounds={"age": (0, 100), "none": (0, 60)}))
    assert release.interval() == (-1.0, 1.0) and release.rmse_here > 0.5
