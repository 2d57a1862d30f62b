"""Errors and intervals of means by private groups hold for a group that is larger than the others, too.

Errors are predicted for groups of the same size. A larger one has less noise in proportion to its size, but less
sampling error only by the square root of it.
"""

from math import sqrt

import numpy as np
import pytest

import accord
from accord.statistics.spread import half_width

RUNS, HELD = 200, 167
"""Fewer hold with a probability below 1e-9 if 95 % do."""
LEVELS = np.repeat([0.1, 20.0], [6_000, 200])
"""Few count much: then noise is little beside what it takes to stand for the others."""
SHARES = (0.97, 0.01, 0.01, 0.01)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("large groups")]  # one process makes the runs


@pytest.fixture(scope="module")
def outcomes():
    """For each run, of the large group: how far the answer was off, its interval's half width, and its error."""
    rng, made = np.random.default_rng(11), []
    for _ in range(RUNS):
        groups = rng.choice([1, 2, 3, 4], LEVELS.size, p=SHARES)
        values = rng.choice([0.0, 100.0], LEVELS.size)
        people = accord.table({"x": values, "g": groups, "e": LEVELS}, epsilon="e")
        release = people.release(accord.mean("x", (0, 100), by="g", keys=[1, 2, 3, 4]), "proportional")
        row, (low, high) = release.value[0], release.interval(0.95)[1]
        made.append((row["value"] - values[groups == 1].mean(), (high - low) / 2, row["rmse"], release.plan))
    return made


def test_the_interval_of_a_large_group_holds(outcomes):
    assert sum(abs(off) <= half for off, half, _, _ in outcomes) >= HELD


def test_the_error_of_a_large_group_is_not_flattering(outcomes):
    offs, errors = np.array([off for off, _, _, _ in outcomes]), [error for _, _, error, _ in outcomes]
    assert sqrt((offs**2).mean()) < 1.25 * np.mean(errors)


def test_all_of_it_in_proportion_to_the_size_would_not_hold(outcomes):
    """As it was: sampling error and noise both divided by the size."""
    held = 0
    for off, _, _, plan in outcomes:
        spread = plan.prediction.error_model.spread
        held += abs(off) <= half_width(spread.sampling, spread.laplace, 0.05) / (4 * SHARES[0])
    assert held < HELD
