"""The lab under private levels: plans are made for who is expected, and people are drawn as they are, with levels that go with values."""

import numpy as np
import pytest

import accord
from accord.errors import PlanError, SpecError
from accord.lab import compare, populations, simulate, specs
from accord.spec import Spec

THERE = Spec.from_groups({0.1: 300, 1.0: 700})
EXPECTED = Spec.from_groups({0.1: 3_000, 1.0: 2_000, 5.0: 10})
GRID = {"bounds": (0, 1), "missing": "none"}
QUERIES = {
    "mean": (accord.mean("x", **GRID), "affine"),
    "sum": (accord.sum("x", **GRID), "minimum"),
    "count": (accord.count("x > 0.5"), "minimum"),
    "proportion": (accord.proportion("x > 0.5"), "affine"),
    "histogram": (accord.histogram("x", edges=[0, 0.5, 1]), "minimum"),
    "median": (accord.median("x", **GRID), "rank"),
    "variance": (accord.variance("x", **GRID), "affine"),
    "by": (accord.mean("x", by="g", keys=["a", "b"], **GRID), "affine"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_plan_is_for_who_is_expected_and_the_answer_about_who_is_there(name):
    query, mechanism = QUERIES[name]
    population = populations.beta(2, 5)
    one = simulate(mechanism, query, THERE, population, 40, 3, expected=EXPECTED, correlation=0.3)
    plan = accord.plan(EXPECTED, query, mechanism, neighbors="private-levels")
    assert one.predicted == pytest.approx(plan.rmse) and one.people == 1_000
    assert np.isfinite(one.answers).all()
    if name == "sum":  # right for who is there, and not for who is expected
        assert abs(one.answers.mean() - 1_000 * 2 / 7) < 6 * plan.rmse_here / 40**0.5
    if name in ("mean", "proportion", "median", "variance"):
        assert one.rmse_here < 0.5 if name != "median" else one.rmse_here < 50


def test_left_out_those_who_are_there_are_expected():
    query, mechanism = QUERIES["mean"]
    same = [
        simulate(mechanism, query, THERE, populations.uniform(), 50, 1, neighbors="private-levels", **options)
        for options in ({}, {"expected": THERE})
    ]
    assert np.array_equal(same[0].answers, same[1].answers) and same[0].rmse == same[1].rmse


def test_levels_that_go_with_values_bias_what_weighs_them():
    """The richest are the strictest: `affine` is biased, `minimum` is not; a wrong expectation changes neither by much."""
    query = accord.mean("x", **GRID)
    both = compare(
        ["affine", "minimum"], query, THERE, populations.uniform(), runs=300, seed=4, correlation=-0.8, expected=EXPECTED
    )  # fmt: skip
    by_name = {row["mechanism"]: row for row in both.rows}
    assert abs(by_name["affine"]["bias"]) > 5 * abs(by_name["minimum"]["bias"]) > 0
    assert {row["correlation"] for row in both.rows} == {-0.8}


def test_levels_that_are_drawn_anew_do_not_change_the_plan():
    """Else it would follow from who is there."""
    drawn = specs.jorgensen(200)
    expected = Spec.of(drawn.draw(np.random.default_rng(0)))
    menu = Spec.from_groups(dict.fromkeys(sorted({*expected.levels}), 10))
    with pytest.raises(SpecError, match="somebody has a level that is not expected, and would not be read"):
        simulate("affine", QUERIES["mean"][0], drawn, populations.uniform(), 20, 1, expected=menu)


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(SpecError, match="expected= is a Spec, not dict"):
        simulate("affine", QUERIES["mean"][0], THERE, populations.uniform(), expected={0.1: 3})
    with pytest.raises(PlanError, match="proves neighbors replace only"):
        simulate("mix", QUERIES["mean"][0], THERE, populations.uniform(), expected=EXPECTED)
