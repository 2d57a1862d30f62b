"""Intervals: the tail of a normal plus a Laplace variable, against numerical convolution."""

from itertools import pairwise
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import accord
from accord.statistics.spread import half_width, tail

GRID = [
    (1, 1),
    (1, 0.3),
    (1, 0.05),
    (1e4, 1),
    (3e7, 1),
    (0.3, 1),
    (0.01, 1),
    (1e-4, 1),
    (1e-9, 1),
    (2e-6, 5e-6),
    (40, 2),
]
ALPHAS = [0.9, 0.5, 0.1, 0.05, 1e-3, 1e-6]


def convolved(h, s, b):
    """P(|N(0, s²) + Lap(b)| > h), with the Laplace variable integrated out: |Lap(b)|/b is exponential, and the tail is even in it."""
    kinks = sorted(
        {min(60.0, max(0.0, (h + k * s) / b)) for k in (-40, -8, -3, -1, 0, 1, 3, 8, 40)}
        | {0.0, 1.0, 5.0, 60.0}
    )
    return sum(
        quad(
            lambda t: exp(-t) * (norm.sf((h - b * t) / s) + norm.sf((h + b * t) / s)),
            low,
            high,
            epsabs=1e-16,
            epsrel=1e-12,
        )[0]
        for low, high in pairwise(kinks)
        if high - low > 1e-15
    )


@pytest.mark.parametrize(("s", "b"), GRID)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_half_width_holds_all_but_alpha(s, b, alpha):
    h = half_width(s, b, alpha)
    assert convolved(h, s, b) == pytest.approx(alpha, rel=1e-7)


@pytest.mark.parametrize(("s", "b"), GRID)
@pytest.mark.parametrize("times", [0.01, 0.5, 1, 2, 4])
def test_the_tail_is_the_convolution(s, b, times):
    h = times * (s**2 + 2 * b**2) ** 0.5
    assert tail(h, s, b) == pytest.approx(convolved(h, s, b), rel=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_of_them_alone(alpha):
    assert half_width(3.0, 0.0, alpha) == pytest.approx(3 * norm.isf(alpha / 2), rel=1e-12)
    assert half_width(0.0, 3.0, alpha) == pytest.approx(3 * log(1 / alpha), rel=1e-12)
    assert half_width(0.0, 0.0, alpha) == 0


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_negligible_part_does_not_matter(alpha):
    assert half_width(1e-12, 1.0, alpha) == pytest.approx(half_width(0.0, 1.0, alpha), rel=1e-9)
    assert half_width(1.0, 1e-12, alpha) == pytest.approx(half_width(1.0, 0.0, alpha), rel=1e-9)
    assert half_width(1.0, 5e-324, alpha) == pytest.approx(half_width(1.0, 0.0, alpha), rel=1e-9)


@pytest.mark.parametrize(("s", "b"), [*GRID, (1, 0), (0, 1)])
def test_more_confidence_is_wider(s, b):
    widths = [
        half_width(s, b, alpha) for alpha in (0.999, 0.9, 0.5, 0.1, 0.05, 0.01, 1e-4, 1e-8, 1e-12, 1e-15)
    ]
    assert all(a < c for a, c in pairwise(widths))
    assert widths[0] > 0
    assert widths[-1] < inf


@pytest.mark.parametrize(("s", "b"), GRID)
def test_the_tail_falls_from_one_to_zero(s, b):
    unit = max(s, b)
    values = [tail(k * unit / 10, s, b) for k in range(400)]
    assert values[0] == pytest.approx(1, abs=1e-12)
    assert values[-1] < 1e-15
    assert all(a >= c for a, c in pairwise(values))


@pytest.mark.parametrize(("s", "b"), GRID)
def test_two_errors_are_wider_than_one(s, b):
    h = half_width(s, b, 0.05)
    assert h >= half_width(s, 0.0, 0.05) * (1 - 1e-9)
    assert h >= half_width(0.0, b, 0.05) * (1 - 1e-9)


@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e6, 1e150])
def test_the_unit_does_not_matter(unit):
    assert half_width(2 * unit, 3 * unit, 0.05) == pytest.approx(unit * half_width(2.0, 3.0, 0.05), rel=1e-10)


@pytest.mark.parametrize("ask", [accord.min, accord.max, accord.median])
@pytest.mark.parametrize("people", [3, 100, 10_000])
def test_ends_of_an_interval_of_ranks_are_in_order(ask, people):
    """A bound of how many people count for so much was 0 where everyone counts: the interval was from 100 to 0."""
    for levels in (np.ones(people), np.linspace(0.5, 1, people)):
        table = accord.table({"x": np.arange(people) % 1000 * 1.0, "e": levels}, epsilon="e")
        low, high = table.release(ask("x", (0, 1000), step=1)).interval(0.95)
        assert 0 <= low <= high <= 100


def test_the_interval_of_many_noises_is_as_wide_as_a_normal_law_needs():
    """A hundred noises of `mix` add up to a normal one: where a Laplace law would have 68 %, that has 58 %."""
    spec = accord.Spec.from_groups({1 + k / 1000: 100 for k in range(100)})
    plan = accord.plan(spec, accord.mean("x", bounds=(0, 1)), "mix")
    low, high = plan.prediction.error_model.interval(0.5, (), 0.68, 1.0)
    deviation = sqrt(plan.calibration.noise_variance)
    assert 0.5 - low == pytest.approx(high - 0.5)
    assert (high - low) / 2 >= norm.isf(0.16) * deviation


def test_the_interval_of_an_average_of_points_holds_the_points_of_every_level():
    """Few people are the widest as a sample, and those of a small n·ε as a choice."""
    spec = accord.Spec.from_groups({1: 5_000, 8: 1_000})
    plan = accord.plan(spec, accord.median("x", bounds=(0, 1000), step=1, missing="none"), "mix")
    s, b, alpha = 100 * sqrt(0.25 / 1_000), 100 * 2 / 5_000, 0.05 / 2
    wider = max(half_width(s, b, alpha), half_width(sqrt(s**2 + 2 * b**2), 0.0, alpha)) + b * log(1001)
    low, high = plan.prediction.error_model.interval(500.0, (), 0.95, 1.0)
    assert (low, high) == pytest.approx((50 - wider, 50 + wider))


# ---- what is possible ------------------------------------------------------------------------------------------------

FEW = {"x": [float(k % 5) for k in range(40)], "g": [k % 3 for k in range(40)], "e": [0.05] * 40}
POSSIBLE = {
    "count": (accord.count(where="x > 2"), (0, 40)),
    "count by group": (accord.count(by="g", keys=[0, 1]), (0, 40)),
    "mean": (accord.mean("x", (-1, 4), missing="none"), (-1, 4)),
    "mean of some": (accord.mean("x", (0, 4), where="g > 0"), (0, 4)),
    "sum": (accord.sum("x", (1, 4), missing="none"), (40, 160)),
    "sum of some": (accord.sum("x", (1, 4), where="g > 0"), (0, 160)),
    "proportion": (accord.proportion("x > 2"), (0, 1)),
    "histogram": (accord.histogram("x", edges=[0, 2, 3, 4]), (0, 40)),
}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("name", POSSIBLE)
def test_an_interval_is_cut_to_what_is_possible(name, neighbors):
    """The noise of forty people at 0.05 is wider than that, so that it always was larger."""
    query, (low, high) = POSSIBLE[name]
    if name == "sum" and neighbors == "add-remove":
        low = 0  # nobody may be there
    roster = {"neighbors": neighbors, "roster": accord.Spec.of(FEW["e"])} if neighbors == "add-remove" else {}
    table = accord.table(FEW, epsilon="e", **roster)
    for mechanism in ("minimum", "threshold"):
        release = table.release(query, mechanism)
        ends, value = release.interval(0.99), release.value
        if not isinstance(ends, dict):
            ends, value = {"": ends}, {"": value}
        elif isinstance(value, list):
            value = {row["g"]: row["value"] for row in value}
        for cell, (one, other) in ends.items():  # but for the answer itself
            assert min(low, value[cell]) <= one <= other <= max(high, value[cell])


def test_what_is_left_of_an_interval_is_as_it_was():
    """The truth is not in what is cut off, so that the coverage stays. The answer itself stays inside."""
    table = accord.table(FEW, epsilon="e")
    for query in (accord.count(where="x > 2"), accord.mean("x", (0, 4), missing="none")):
        release = table.release(query, "minimum")
        model, (low, high) = release.plan.prediction.error_model, release.plan.target.possible(40)
        for confidence in (0.05, 0.5, 0.95):
            wide = model.interval(release.value, release.released, confidence, 1.0)
            cut = release.interval(confidence)
            for point in np.linspace(low, high, 101).tolist():
                assert (wide[0] <= point <= wide[1]) == (cut[0] <= point <= cut[1]) or point in (low, high)
