"""Mechanisms of a user's own: a function from level to charge takes part in everything."""

import pickle
from math import inf

import numpy as np
import pytest

import accord
from accord.budget import PUBLIC
from accord.errors import PlanError
from accord.lab import audit, compare, populations

SPEC = accord.Spec.from_groups({0.01: 400, 0.5: 300, 2: 200, inf: 100})
MEAN = accord.mean("x", bounds=(0, 10))


def half_of_the_root(levels, people):
    return np.minimum(levels, np.sqrt(np.minimum(levels, 4)) / 2)


ROOT = accord.mechanism("root", half_of_the_root, guarantee="person i loses min(ε_i, √ε_i/2)")


def table(**options):
    return accord.table(
        {
            "x": [k % 11 for k in range(1000)],
            "y": [k % 7 for k in range(1000)],
            "g": ["a", "b"] * 500,
            "id": list(range(1000)),
            "e": [0.01] * 400 + [0.5] * 300 + [2.0] * 200 + [inf] * 100,
        },
        epsilon="e",
        **options,
    )


def test_a_plan_charges_by_it_and_compares_it():
    plan = accord.plan(SPEC, MEAN, mechanism=ROOT)
    assert plan.mechanism == "root" and plan.reason == "as asked for"
    assert dict(plan.charges) == {0.01: 0.01, 0.5: 0.353553, 2.0: 0.707106, inf: 1.0}
    names = [candidate.mechanism for candidate in plan.candidates]
    assert names[-1] == "root" and "affine" in names
    affine = next(c for c in plan.candidates if c.mechanism == "affine")
    assert affine.rmse <= plan.rmse  # the best of all weightings
    assert "root" in str(plan) and plan.describe()["mechanism"] == "root"


def test_the_function_of_a_mechanism_gives_its_plan():
    """minimum, written once more."""
    mine = accord.mechanism("my minimum", lambda levels, people: np.full(levels.size, levels[0]))
    plan, known = (accord.plan(SPEC, MEAN, mechanism=m) for m in (mine, "minimum"))
    assert (plan.rmse, dict(plan.charges)) == (known.rmse, dict(known.charges))


def test_it_sees_what_a_share_leaves_of_levels_and_how_many_have_them():
    seen = []

    def looking(levels, people):
        seen.append((levels.tolist(), people.tolist()))
        return levels[:1].repeat(levels.size)

    accord.plan(SPEC, MEAN, mechanism=accord.mechanism("looking", looking), share=0.5)
    assert seen[0] == ([0.005, 0.25, 1.0, inf], [400, 300, 200, 100])


@pytest.mark.parametrize(
    "query",
    [
        accord.sum("x", bounds=(0, 10)),
        accord.count(where="x > 3"),
        accord.histogram("x", edges=[0, 5, 10]),
        accord.mean("x", bounds=(0, 10), by="g", keys=["a", "b"]),
        accord.mean("x", bounds=(0, 10), by="g", keys=["a", "b"], membership="public"),
        accord.median("x", bounds=(0, 10), step=1),
        accord.variance("x", bounds=(0, 10)),
        accord.regression("x", ["y"], bounds={"x": (0, 10), "y": (0, 6)}),
        accord.workload([MEAN, accord.count(where="y > 2")]),
    ],
    ids=lambda query: query.label if isinstance(query, accord.Query) else "workload",
)
def test_whatever_charges_can_answer(query):
    release = table().release(query, mechanism=ROOT)
    assert {part.mechanism for part in release.plan.parts} == {"root"}
    assert release.receipt()["schema"] == 1


def test_what_it_cannot_answer_is_said():
    with pytest.raises(PlanError, match="root cannot answer the sum of x: does not count everyone alike"):
        expected = accord.Spec.from_groups({0.1: 5, 1: 5})
        people = accord.table({"x": [1, 2], "e": [0.1, 1]}, epsilon="e", levels="private", expected=expected)
        people.plan(accord.sum("x", bounds=(0, 9)), mechanism=ROOT)


def test_a_ledger_books_its_charges_and_its_name(tmp_path):
    people, ledger = table(user="id"), accord.Ledger(tmp_path / "books.db")
    ledger.register(people, "people")
    release = people.release(MEAN, mechanism=ROOT, share=0.5, ledger=ledger)
    left = ledger.remaining(people)
    spent = {level: level - rest for level, rest in zip([0.01, 0.5, 2.0], left.levels, strict=False)}
    assert spent == pytest.approx({level: release.charges[level] for level in spent})
    assert ledger.history()[-1]["kind"] == "release"
    again = people.release(MEAN, mechanism=ROOT, share=0.5, ledger=ledger)
    assert again.value == release.value and not any(again.charges.values())
    assert ledger.verify().problems == ()


def test_a_plan_goes_to_another_process_where_its_function_can():
    plan = pickle.loads(
        pickle.dumps(accord.plan(SPEC, MEAN, mechanism=accord.mechanism("named", np_minimum)))
    )
    assert plan.mechanism == "named" and plan.charges[2.0] == 0.01


def np_minimum(levels, people):
    return np.full(levels.size, levels[0])


def test_the_lab_and_the_audit_take_it():
    spec = accord.Spec.from_groups({0.1: 70, 1: 30})
    query = accord.mean("x", (0, 1), missing="none")
    rows = compare([ROOT, "affine"], query, spec, populations.uniform(), runs=200).rows
    assert {row["mechanism"] for row in rows} == {"root", "affine"}
    result = audit.run([ROOT], ["count where"], seed=1)
    assert result.passed and {finding.mechanism for finding in result.findings} == {"root", "auto"}


def test_an_audit_finds_one_that_cheats(monkeypatch):
    """Were the check of charges not there, somebody would lose more than their level, and the audit would see it."""
    import accord.mechanisms.own as own

    monkeypatch.setattr(
        own, "checked", lambda name, given, levels: np.where(levels < PUBLIC, 2 * levels, PUBLIC)
    )
    result = audit.run([accord.mechanism("cheating", half_of_the_root)], ["proportion where"], seed=1)
    assert not result.passed


@pytest.mark.parametrize(
    ("charge", "message"),
    [
        (
            lambda levels, people: 2 * levels,
            "'bad' charges 0.02 at level 0.01. Nobody is charged more than their level",
        ),
        (
            lambda levels, people: levels[:2],
            r"'bad' gives charges of shape \(2,\) for 4 levels. Return one for each.",
        ),
        (
            lambda levels, people: -levels,
            "'bad' gives charges that are negative or NaN. 0 is who is not read.",
        ),
        (lambda levels, people: levels * np.nan, "'bad' gives charges that are negative or NaN"),
        (
            lambda levels, people: np.array([0.01, -0.005, 0, 0]),
            "'bad' gives charges that are negative or NaN. 0 is who is not read.",
        ),
        (
            lambda levels, people: np.array([0.01, np.nan, 0, 0]),
            "'bad' gives charges that are negative or NaN",
        ),
        (lambda levels, people: ["much"] * 4, "charges of 'bad' are no numbers. Return one for each level."),
        (lambda levels, people: levels, "'bad' charges public people inf, and others something"),
        (lambda levels, people: np.minimum(levels, [0.01, 0, 0, np.inf]), "'bad' charges public people inf"),
        (lambda levels, people: 0 * people, "bad cannot answer the mean of x: charges nobody"),
    ],
    ids=[
        "above",
        "too few",
        "negative",
        "NaN",
        "one negative",
        "one NaN",
        "texts",
        "inf",
        "inf and little",
        "nobody",
    ],
)
def test_charges_that_are_none_are_refused(charge, message):
    with pytest.raises(PlanError, match=message):
        accord.plan(SPEC, MEAN, mechanism=accord.mechanism("bad", charge))


@pytest.mark.parametrize(
    ("name", "charge", "message"),
    [
        ("affine", half_of_the_root, "there is 'affine' already, and names are permanent. Take another one."),
        ("auto", half_of_the_root, "there is 'auto' already"),
        (" ", half_of_the_root, "name=' ' is no name of a mechanism. Give a short text, such as 'root'."),
        ("mine", lambda levels: levels, "charge of 'mine' takes other arguments than levels and people"),
        ("mine", 0.5, "charge is a float, not a function of levels and people"),
    ],
)
def test_what_is_no_mechanism_is_refused(name, charge, message):
    with pytest.raises(PlanError, match=message):
        accord.mechanism(name, charge)


def test_public_people_alone():
    plan = accord.plan(SPEC, MEAN, mechanism=accord.mechanism("public only", only_public))
    assert dict(plan.charges) == {0.01: 0.0, 0.5: 0.0, 2.0: 0.0, inf: inf}


def only_public(levels, people):
    return np.where(np.isinf(levels), inf, 0)


def test_it_shows_itself_in_one_line():
    assert repr(ROOT) == "<mechanism 'root': person i loses min(ε_i, √ε_i/2)>"
