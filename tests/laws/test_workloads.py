"""Workloads: within the share, never worse than an equal split, and each part as private as it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import QUERIES, RANKED, specs

import accord
from accord import budget
from accord.budget import PUBLIC, to_micro
from accord.errors import PlanError, QueryError
from accord.planning import midpoint_error, plan_within
from accord.relation import REPLACE
from accord.spec import Spec

WORKLOADS = st.lists(st.sampled_from([*QUERIES.values(), *RANKED.values()]), min_size=1, max_size=4)


@settings(max_examples=60)
@given(specs, WORKLOADS, st.floats(0.01, 1), st.data())
def test_charges_stay_within_the_share_and_it_is_never_worse_than_an_equal_split(spec, queries, share, data):
    weights = data.draw(st.lists(st.floats(0.1, 10), min_size=len(queries), max_size=len(queries)))
    try:
        workload_plan = accord.plan(spec, accord.workload(queries, weights), share=share)
    except PlanError:  # so little for so many that nobody can be read
        return
    part = int(to_micro(share))
    allowed = budget.share(spec.micro, part)
    total = np.zeros(spec.micro.size, dtype=object)
    boxed = {key for keys in workload_plan.boxes for key in keys}
    noises = [*workload_plan.boxes, *((key,) for key in workload_plan.plans if key not in boxed)]
    for keys in noises:  # of questions that share one noise, the largest charge
        charges = np.max([workload_plan.parts[key].calibration.charges for key in keys], axis=0)
        assert (charges >= 0).all()
        total += charges.astype(object)
    assert ((total <= allowed) | (allowed == PUBLIC)).all()
    assert (workload_plan.spent == np.minimum(total, PUBLIC).astype(np.int64)).all()

    def error(plans):
        return sum(
            w * (p.rmse / midpoint_error(p.target, spec.total)) ** 2
            for w, p in zip(weights, plans, strict=True)
        )

    equal = [
        plan_within(
            spec,
            q,
            budget.share(spec.micro, part // len(queries)),
            "auto",
            None,
            part // len(queries),
            REPLACE,
            (),
        )
        for q in queries
    ]
    assert error(workload_plan.parts) == pytest.approx(workload_plan.total)
    assert workload_plan.equal == pytest.approx(error(equal))
    assert workload_plan.total <= workload_plan.equal * (1 + 1e-12)


def test_it_finds_a_much_better_split_where_there_is_one():
    """A question that only public people answer leaves everything to the other; a hard one deserves more than an easy one."""
    spec = accord.Spec.from_groups({0.01: 20_000, 1: 5_000})
    easy, hard = accord.mean("a", (0, 1), std=0.01), accord.histogram("c", edges=list(range(42)))
    workload_plan = accord.plan(spec, accord.workload([easy, hard]), share=0.5)
    assert workload_plan.total < 0.9 * workload_plan.equal
    assert workload_plan.parts[1].charges[1.0] > workload_plan.parts[0].charges[1.0]


def test_what_clipping_leaves_is_passed_on(monkeypatch):
    """Half of everyone is best spent on the liberal alone, for each question; then one of them can have the strict as well."""
    spec = accord.Spec.from_groups({0.01: 3_000, 5.0: 1_000})
    mean = accord.mean("a", (0, 1), missing="none")
    asked = accord.workload([mean, accord.histogram("b", edges=list(range(32)), missing="none")])
    passed = accord.plan(spec, asked)
    monkeypatch.setattr(accord.planning.workload.Questions, "pass_on", lambda self, plans, *_: plans)
    split = accord.plan(spec, asked)
    assert sum(part.charges[0.01] for part in split.parts) == 0  # not used by anyone
    assert sum(part.charges[0.01] for part in passed.parts) == 0.01
    assert passed.total < 0.96 * split.total


def test_weights_shift_the_budget():
    spec = accord.Spec.from_groups({0.05: 3_000, 0.5: 1_000})
    questions = [accord.mean("a", (0, 1)), accord.mean("b", (0, 1))]
    even = accord.plan(spec, accord.workload(questions))
    first = accord.plan(spec, accord.workload(questions, weights=[50, 1]))
    assert first.parts[0].rmse < even.parts[0].rmse
    assert first.parts[1].rmse > even.parts[1].rmse


def test_a_single_question_is_planned_as_ever():
    spec = accord.Spec.from_groups({0.05: 3_000, 0.5: 1_000})
    query = accord.mean("a", (0, 1))
    (part,) = accord.plan(spec, accord.workload([query]), share=0.3).parts
    assert part.charges == accord.plan(spec, query, share=0.3).charges


def test_budgets_need_not_rise_with_the_level():
    """Charges and weights are put back in the order of the levels, whatever the budgets are."""
    spec = accord.Spec.from_groups({0.1: 10, 1: 20, 2: 30})
    budgets = to_micro([0.1, 0.7, 0.2])
    for mechanism in ("affine", "minimum", "threshold", "proportional", "mix"):
        plan = plan_within(spec, accord.mean("a", (0, 1)), budgets, mechanism, None, 10**6, REPLACE, ())
        same = accord.plan(Spec(budgets, spec.people), accord.mean("a", (0, 1)), mechanism)
        assert plan.rmse == pytest.approx(same.rmse)
        for level, charge in zip([0.1, 0.7, 0.2], plan.charges.values(), strict=True):
            assert charge == same.charges[level] <= level


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: accord.workload([]), "at least one query"),
        (lambda: accord.workload(accord.count()), "is a list of queries. Give"),
        (lambda: accord.workload(["mean"]), "made of queries, not of str"),
        (lambda: accord.workload([accord.count()], [1, 2]), "2 weights for 1 queries"),
        (lambda: accord.workload([accord.count()], [0]), "not a number above 0"),
        (lambda: accord.workload([accord.count()], [True]), "not a number above 0"),
    ],
)
def test_bad_workloads_are_told(make, message):
    with pytest.raises(QueryError, match=message):
        make()


def test_an_algorithm_of_ones_own_is_no_part_of_a_workload():
    """Its error is not a number: there was no plan, and a ValueError of Python's own."""
    people = accord.table({"a": [1.0, 2.0], "e": [1.0, 2.0]}, epsilon="e")
    sampled = accord.sample(lambda rows, epsilon: 1.0, people).plan.query
    with pytest.raises(
        QueryError, match=r"is an algorithm of your own, whose error nobody predicts. Release it by itself"
    ):
        accord.workload([accord.count(), sampled])


def test_bad_plans_of_workloads_are_told():
    spec = accord.Spec.from_groups({1.0: 100})
    asked = accord.workload([accord.mean("a", (0, 1)), accord.count(where="a > 0")])
    with pytest.raises(PlanError, match="too little for 2 questions"):
        accord.plan(spec, asked, share=1e-6)
    with pytest.raises(PlanError, match="Leave it out"):
        accord.plan(spec, asked, "threshold", t=0.5)
    with pytest.raises(PlanError, match="pe cannot answer the mean"):
        accord.plan(spec, asked, "pe")


def test_a_workload_is_released_with_all_its_receipts():
    people = accord.table({"a": np.arange(500.0), "e": np.tile([0.5, 1.0], 250)}, epsilon="e")
    asked = accord.workload([accord.mean("a", (0, 500)), accord.median("a", (0, 500))])
    plan = people.plan(asked, share=0.8)
    release = people.release(plan)
    assert len(release.value) == 2 and release.charges == plan.charges
    document = release.receipt()
    assert [r["query"]["statistic"] for r in document["receipts"]] == ["mean", "quantile"]
    assert "2 questions together" in str(plan) and "mean of a" in repr(plan)
    assert plan.describe()["share"] == "0.8"
    assert str(release).count("95 %") == 2
    with pytest.raises(PlanError, match="mechanism and share already"):
        people.release(plan, share=0.5)
