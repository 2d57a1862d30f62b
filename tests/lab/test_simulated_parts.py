"""Simulations about a part of the people, about private groups, and of variances: the sums of a table, and what is true of the population."""

from collections import Counter

import numpy as np
import pytest

import accord
from accord import lab
from accord.errors import QueryError
from accord.lab import populations
from accord.lab.simulation.parts import parts_of
from accord.lab.simulation.simulate import simulate
from accord.lab.simulation.twin import summarise
from accord.lab.simulation.values import cells
from accord.noise import SECURE
from accord.release.release import read_summaries

SPEC = accord.Spec.from_groups({0.5: 40, 2.0: 60})
MANY = accord.Spec.from_groups({0.5: 700, 2.0: 1300})
WHERE, BY = {"where": "x > 0.3 AND NOT x IN (0.5, 0.75)"}, {"by": "g", "keys": ["a", "b", "c"]}
GRID = {"bounds": (0, 1), "step": 1 / 64}
ASKED = {
    "mean": lambda **of: accord.mean("x", **GRID, **of),
    "sum": lambda **of: accord.sum("x", **GRID, **of),
    "variance": lambda **of: accord.variance("x", **GRID, **of),
    "std": lambda **of: accord.std("x", **GRID, **of),
    "proportion": lambda **of: accord.proportion("x > 0.6", **of),
    "histogram": lambda **of: accord.histogram("x", edges=[0, 0.25, 0.5, 1], **of),
    "median": lambda **of: accord.median("x", **GRID, **of),
    "quantiles": lambda **of: accord.quantile("x", [0.2, 0.7], **GRID, **of),
}


def entries(summary):
    sums = Counter()
    for level, output, amount in zip(
        summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True
    ):
        sums[level, output] += int(amount)
    return {key: amount for key, amount in sums.items() if amount}


@pytest.mark.parametrize(
    "part", [{}, WHERE, BY, WHERE | BY, {"missing": "exclude"}], ids=["all", "where", "by", "both", "exclude"]
)
@pytest.mark.parametrize("name", ASKED)
def test_the_summaries_are_those_of_a_table(name, part):
    if name == "histogram" and "missing" in part:
        pytest.skip("a histogram has a cell for missing values instead")
    query, rng = ASKED[name](**part), np.random.default_rng(4)
    plan = accord.plan(SPEC, query, "threshold")
    x, group = rng.integers(0, 65, SPEC.total) / 64, rng.integers(0, 3, SPEC.total)
    levels = np.repeat(SPEC.levels, SPEC.counts)
    people = accord.table({"x": x, "g": np.array(list("abc"))[group], "e": levels}, epsilon="e")
    parts = parts_of(query)
    members = [None]
    if parts is not None:
        members = parts.members(x[None, :], rng)[0]
        if parts.groups:
            inside = members.any(axis=0)  # who is in which group is this table's
            members = np.array([inside & (group == k) for k in range(3)])
    real = read_summaries(people.reader, plan, SECURE)
    assert len(real) == len(members)
    for one, inside in zip(real, members, strict=True):
        here = summarise(plan, cells(query.encoding, x), inside)
        assert here.outputs == one.outputs and entries(here) == entries(one)


@pytest.mark.parametrize(
    "population",
    [populations.uniform(), populations.bernoulli(0.3, 0.25, 0.8), populations.column([0.1, 0.5, 0.5, 0.9])],
)
def test_what_is_true_of_those_who_meet_a_condition(population):
    for condition in (
        "x > 0.3",
        "x >= 0.5 AND x < 0.8",
        "NOT x IN (0.5)",
        "x IS NOT NULL",
        "x = 0.5 OR x < 0.2",
    ):
        parts = parts_of(accord.mean("x", (0, 1), where=condition))
        drawn = population.draw(np.random.default_rng(0), (1, 200_000))
        mine = drawn[parts.members(drawn, np.random.default_rng(1))[:, 0]]
        if not mine.size:
            continue
        among, share = parts.among(population)
        assert share == pytest.approx(mine.size / drawn.size, abs=0.01)
        assert among.mean(0, 1) == pytest.approx(mine.mean(), abs=0.01)
        for x in (0.2, 0.5, 0.79, 0.8, 1.0):
            assert float(among.below(np.array([x]))[0]) == pytest.approx((mine <= x).mean(), abs=0.01)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("part", [{}, {"where": "x > 0.5"}, BY], ids=["all", "where", "by"])
def test_answers_are_about_what_they_should_be(name, part):
    """Hardly biased, and not far worse than planned. (A plan with where= is made as if everyone were a member.)"""
    made = simulate("threshold", ASKED[name](**part), MANY, populations.uniform(), runs=60, seed=2)
    assert abs(made.bias) < made.rmse and made.rmse < 3 * made.predicted and made.rmse_here <= made.rmse * 1.3
    groups = (3,) if part is BY else ()
    outputs = {"histogram": (3,), "quantiles": (2,)}.get(name, ())
    assert made.answers.shape == made.errors.shape == made.errors_here.shape == (60, *groups, *outputs)


def test_a_seed_is_one_simulation_of_groups():
    one, other = (
        simulate("rank", ASKED["median"](**BY), SPEC, populations.uniform(), runs=5, seed=3) for _ in range(2)
    )
    assert (one.answers == other.answers).all() and (one.errors_here == other.errors_here)[
        ~np.isnan(one.errors_here)
    ].all()


def test_a_comparison_takes_parts():
    both = lab.compare(
        ["affine", "minimum"], accord.mean("x", (0, 1), where="x > 0.5"), MANY, populations.uniform(), runs=30
    )
    assert {row["mechanism"] for row in both.rows} == {"affine", "minimum"} and "rmse_here" in str(both)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (
            accord.mean("x", (0, 1), where="y > 0"),
            "a population has one column, and the condition names y. Name one.",
        ),
        (accord.mean("x", (0, 1), where="x > 0 AND y > 0"), "the condition names x, y."),
        (
            accord.mean("x", (0, 1), by="x", keys=[0, 1]),
            "by='x' is the column of the values. Name another one",
        ),
        (
            accord.mean("x", (0, 1), by="g", keys=["a"], membership="public"),
            "simulations are about private groups.",
        ),
        (accord.mean("x", (0, 1), where="x > 7"), "nobody of uniform(0, 1) meets the condition."),
        (accord.mean("x", (0, 1), where="x"), "the condition has 'x' alone, and populations have numbers."),
        (accord.rows(3), "simulated people have one value each. Leave rows out."),
        (
            accord.mean("x", (0, 1), by="g", keys=["a", "b"], at_most=2),
            "simulated people have one value each. Leave at_most=2 out.",
        ),
        (
            accord.mean("x", (0, 1), per_person="sum"),
            "simulated people have one value each. Leave per_person='sum' out.",
        ),
    ],
)
def test_what_is_refused(query, says):
    with pytest.raises(QueryError) as refusal:
        simulate("threshold", query, SPEC, populations.uniform(), runs=2)
    assert says in str(refusal.value)
