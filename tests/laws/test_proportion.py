"""Proportions: what a condition makes of everyone, exact privacy on all tiny tables, honest errors, refusals."""

from fractions import Fraction
from itertools import product
from math import inf, nan, sqrt

import numpy as np
import pytest
from noises import Fixed

import accord
from accord.errors import QueryError
from accord.relation import REPLACE
from accord.release.answer import answer
from accord.release.release import read_summaries

A, B = [1.0, 0.0, nan] * 3, [1.0] * 3 + [0.0] * 3 + [nan] * 3
OUTCOMES = {  # of a AND b and so on, for true, false and neither of a, times the same of b: SQL's own logic
    "a > 0": [1, 0, None] * 3,
    "a > 0 OR b > 0": [1, 1, 1, 1, 0, None, 1, None, None],
    "a > 0 AND b > 0": [1, 0, None, 0, 0, 0, None, 0, None],
    "NOT (a > 0 AND b > 0)": [0, 1, None, 1, 1, 1, None, 1, None],
    "NOT a > 0 OR a IN (1)": [1, 1, None] * 3,
    "a IS NULL": [0, 0, 1] * 3,
    "a IS NULL OR b > 0": [1, 1, 1, 0, 0, 1, None, None, 1],
}


def exact(people, query, mechanism="minimum"):
    """The answer without noise."""
    plan = people.plan(query, mechanism)
    return answer(plan, read_summaries(people.reader, plan, Fixed()), Fixed())[0]


@pytest.mark.parametrize("condition", OUTCOMES)
def test_a_condition_has_three_outcomes(condition):
    people = accord.table({"a": A, "b": B, "e": [1.0] * 9}, epsilon="e")
    decided = [k for k in OUTCOMES[condition] if k is not None]
    assert exact(people, accord.proportion(condition)) == pytest.approx(np.mean(decided))
    counted = np.mean([k or 0 for k in OUTCOMES[condition]])
    assert exact(people, accord.proportion(condition, missing="none")) == pytest.approx(counted)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_somebody_with_several_rows_meets_it_if_any_row_does(neighbors):
    """Rows that do not decide it do not count, unless there are no others."""
    x = {1: [nan, 1.0, 0.0], 2: [0.0, nan], 3: [nan, nan], 4: [0.0], 5: [1.0]}
    columns = {
        "id": [k for k, rows in x.items() for _ in rows],
        "x": [value for rows in x.values() for value in rows],
    }
    roster = accord.Spec.of([1.0] * 5) if neighbors == "add-remove" else None
    people = accord.table(
        columns | {"e": [1.0] * 9}, epsilon="e", user="id", neighbors=neighbors, roster=roster
    )
    assert exact(people, accord.proportion("x > 0")) == pytest.approx(2 / 4)
    note = people.plan(accord.proportion("x > 0")).assumptions
    assert any("meets the condition if any of their rows does" in line for line in note)


STATES = (0.0, 1.0, nan)
PARTS = {
    "everyone": {},
    "where": {"where": "g = 1"},
    "by": {"by": "g", "keys": [1, 2]},
    "none missing": {"missing": "none"},
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["minimum", "affine", "proportional"])
def test_nobody_loses_more_than_their_charge_and_somebody_loses_it_all(mechanism, neighbors, part):
    """All tables of two people, all neighbors: the distance of their sums is what a release loses at most."""
    levels, is_replace = [0.3, 1.0], neighbors == "replace"
    states = [*product(STATES, (1, 2))]
    if not is_replace:
        states.append(None)
    roster = None if is_replace else accord.Spec.of(levels)

    def table(people):
        rows = [(*person, level) for person, level in zip(people, levels, strict=True) if person]
        columns = {name: np.array([row[k] for row in rows], dtype=float) for k, name in enumerate("xge")}
        return accord.table(columns, epsilon="e", neighbors=neighbors, roster=roster)

    plan = table([(0.0, 1)] * 2).plan(accord.proportion("x > 0", **PARTS[part]), mechanism)
    total = int((plan.calibration.charges * plan.spec.people).sum())

    def sums(people):
        noise = Fixed()
        _, released = answer(plan, read_summaries(table(people).reader, plan, noise), noise)
        flat = [x for group in released for x in group] if "by" in PARTS[part] else released
        return [x * total / scale for x, scale in zip(flat, noise.scales, strict=True)]

    released = {pair: sums(pair) for pair in product(states, repeat=2)}
    worst = [Fraction(0), Fraction(0)]
    for (here, one), (there, other) in product(released.items(), repeat=2):
        for who in (0, 1):
            mine, yours = here[who], there[who]
            if here[1 - who] is there[1 - who] and (is_replace or (mine is None) != (yours is None)):
                worst[who] = max(worst[who], sum(abs(a - b) for a, b in zip(one, other, strict=True)))
    assert worst == [Fraction(int(c), 10**6) for c in plan.cost]


@pytest.mark.parametrize("share", [0.5, 0.02, 0.0])
@pytest.mark.parametrize("mechanism", ["affine", "mix", "sample", "threshold"])
def test_errors_are_as_predicted_for_half_of_the_people_and_below_elsewhere(mechanism, share):
    spec = accord.Spec.from_groups({0.02: 500, 0.2: 300, 1.0: 200})
    query = accord.proportion(f"x < {share}", missing="none")
    runs = accord.lab.simulate(mechanism, query, spec, accord.lab.populations.uniform(), runs=1500, seed=5)
    if share == 0.5:
        assert runs.rmse == pytest.approx(runs.predicted, rel=0.1)
        assert runs.rmse_here == pytest.approx(runs.predicted_here, rel=0.1)
    assert runs.rmse < 1.1 * runs.predicted and runs.rmse_here < 1.1 * runs.predicted_here
    assert runs.answers.min() >= 0 and runs.answers.max() <= 1


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("part", [{}, {"where": "g = 1"}, {"by": "g", "keys": [1, 2]}], ids=str)
@pytest.mark.parametrize("share", [0.3, 0.0])
def test_intervals_hold(share, part, missing):
    """95 % intervals of 60 releases: fewer than 43 hold with a probability below 1e-9 if 95 % do."""
    rng, levels = np.random.default_rng(3), np.repeat([0.05, 0.5, 1.0, inf], [300, 300, 300, 30])
    held = 0
    for _ in range(60):
        x, g = rng.random(levels.size), rng.integers(1, 3, levels.size)
        x[rng.random(x.size) < missing] = nan
        people = accord.table({"x": x, "g": g, "e": levels}, epsilon="e")
        release = people.release(accord.proportion(f"x < {share}", **part), "affine")
        inside = ~np.isnan(x) & ((g == 1) | (not part))
        ends = release.interval(0.95)
        low, high = ends[1] if "by" in part else ends
        held += low <= (x[inside] < share).mean() <= high
        assert 0 <= low <= high <= 1
    assert held >= 43


def test_public_groups_pay_for_themselves():
    x, g = np.arange(4000) % 10, np.repeat([1, 2], 2000)
    people = accord.table({"x": x, "g": g, "e": np.ones(4000)}, epsilon="e")
    query = accord.proportion("x < 3", missing="none", by="g", keys=[1, 2], membership="public")
    release = people.release(query, "minimum")
    for row in release.value:
        assert row["value"] == pytest.approx(0.3, abs=0.02)
        low, high = release.interval(0.999)[row["g"]]
        assert low <= 0.3 <= high and high - low < sqrt(2) * 0.01


NEXT = "Write tests such as \"age >= 30 AND region IN ('north', 'east')\"."


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([None], 'a proportion is of people who meet a condition, and None is none. Write a test such as "age >= 65".'),
        (["  "], "a proportion is of people who meet a condition, and '  ' is none. Write a test such as \"age >= 65\"."),
        (["age >"], f"the condition has 'the end' where a number, 'text', TRUE or FALSE was expected. {NEXT}"),
        (["age > 3 3"], f"the condition goes on at '3' after a whole condition; join conditions by AND or OR. {NEXT}"),
        (
            ["age > 3", "middle"],
            "missing='middle' is not offered. Of a proportion it is 'exclude' (who cannot be said to meet the "
            "condition or not is left out) or 'none' (no value is missing).",
        ),
    ],
)  # fmt: skip
def test_what_is_not_a_condition_is_refused(arguments, text):
    with pytest.raises(QueryError) as refusal:
        accord.proportion(*arguments)
    assert str(refusal.value) == text


def test_columns_are_checked_before_anything_is_read():
    people = accord.table({"x": np.array([1.0]), "e": [1.0]}, epsilon="e")
    with pytest.raises(QueryError, match=r"there is no column 'y': "):
        people.plan(accord.proportion("y > 3"))
    with pytest.raises(QueryError, match=r"column 'x' holds numbers, and 'a' is not one\."):
        people.plan(accord.proportion("x = 'a'"))
    with pytest.raises(QueryError, match=r"the condition has 'x' alone, which is a condition only of"):
        people.plan(accord.proportion("x"))
    with pytest.raises(QueryError, match=r"has none\. Leave it out\."):
        people.plan(accord.proportion("x > 3"), report_missing=0.1)


def test_two_columns_cannot_be_simulated():
    population, spec = accord.lab.populations.uniform(), accord.Spec.of([1.0] * 9)
    for part in ({}, {"by": "g", "keys": [1]}):
        with pytest.raises(QueryError, match=r"a population has one column, and the condition names x, z\."):
            query = accord.proportion("x > 0 AND z > 0", **part)
            accord.lab.simulate("minimum", query, spec, population)


def test_an_answer_beyond_everyone_is_nobody_or_everyone():
    target = accord.proportion("x > 1", "none").under(REPLACE)
    assert [target.finish([Fraction(k, 4)], 10) for k in (-1, 0, 1, 4, 5)] == [0.0, 0.0, 0.25, 1.0, 1.0]
