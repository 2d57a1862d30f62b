"""What is true of every mechanism in ALL, whatever is added to it."""

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noises import Fixed
from strategies import (
    QUERIES,
    RANKED,
    additive_queries,
    finite_specs,
    person_values,
    queries,
    shares,
    specs,
    summary_of,
)

import accord
from accord import relation
from accord.budget import PUBLIC
from accord.errors import SourceError
from accord.lab.audit.case_plans import declared_for
from accord.mechanisms import ALL
from accord.mechanisms.rank_choice import RankCalibration
from accord.release.answer import answer

NAMES = [m.name for m in ALL]
NEIGHBORS = [r.name for r in relation.ALL]


def planned(spec, query, name, **options):
    """The plan by a mechanism, or None where it is refused."""
    query = declared_for(name, query)
    candidate = next(c for c in accord.plan(spec, query, **options).candidates if c.mechanism == name)
    return None if candidate.rmse is None else accord.plan(spec, query, name, **options)


@pytest.mark.parametrize("mechanism", ALL, ids=NAMES)
def test_record_is_complete(mechanism):
    assert mechanism.paper and mechanism.guarantee and mechanism.methods
    assert mechanism.relations and set(mechanism.relations) <= set(relation.ALL)
    assert mechanism.statistics, "it answers nothing that can be asked for"
    assert NAMES.count(mechanism.name) == 1


@pytest.mark.parametrize("name", NAMES)
@given(spec=specs, query=queries, share=shares)
def test_charges_are_at_most_the_levels_times_the_share(name, spec, query, share):
    plan = planned(spec, query, name, share=share)
    if plan is None:
        return
    for level, charge, people in zip(
        spec.micro.tolist(), plan.calibration.charges.tolist(), spec.counts, strict=True
    ):
        assert 0 <= charge <= level and people > 0
        assert level == PUBLIC or Fraction(charge) <= Fraction(level) * Fraction(str(share))
    assert list(plan.charges) == list(spec.levels)


@pytest.mark.parametrize("groups", [{1.0: 1, 2.0: 2}, {1.0: 2, 2.0: 2}, {1.0: 1, 2.0: 1}], ids=str)
def test_a_summary_of_other_people_is_not_answered(groups):
    """Also if only one level has more or fewer of them than were planned for, and so were charged."""
    plan = accord.plan(accord.Spec.from_groups({1.0: 2, 2.0: 1}), QUERIES["mean"], "affine")
    others = accord.Spec.from_groups(groups)
    summary = summary_of(others, QUERIES["mean"], [(3,)] * others.total)
    with pytest.raises(SourceError, match=r"^the table has changed since its levels were read\."):
        answer(plan, [summary], Fixed())


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n != "sample"]
)  # whose people are drawn: test_sample.py
@given(spec=specs, query=queries, data=st.data())
@settings(max_examples=60)
def test_zero_noise_gives_the_plain_weighted_statistic(name, spec, query, data):
    small = accord.Spec(spec.micro, np.minimum(spec.people, 4))
    plan = planned(small, query, name)
    if plan is None:
        return
    rows = data.draw(
        st.lists(st.sampled_from(person_values(query)), min_size=small.total, max_size=small.total)
    )
    value, _ = answer(plan, [summary_of(small, query, rows)], Fixed())
    if query.unit == "percentile points":
        points = value if isinstance(value, list) else [value]
        wanted = [
            float(query.low + query.step * round(k))
            for k in plain_quantiles(name, plan, [row[0] for row in rows])
        ]
        assert points == sorted(wanted)
        return
    weights = np.repeat(plan.calibration.weights, small.people)
    value = list(value.values()) if isinstance(value, dict) else [value]
    for k, got in enumerate(value):
        x = np.array([float(row[k]) for row in rows])
        x = x if query.statistic in ("count", "histogram") else float(query.low) + float(query.step) * x
        size = plan.target.factor(small.total)
        assert got == pytest.approx(
            size * float(weights @ x), rel=1e-9, abs=1e-9 * size * (1 + np.abs(x).max())
        )


@pytest.mark.parametrize("name", [n for n in NAMES if n != "sample"])
def test_who_is_charged_nothing_is_not_read(name):
    """Half of a millionth is nothing: then every value of these people gives the same answer."""
    spec = accord.Spec.from_groups({1e-6: 3, 1.0: 4, 2.0: 2})
    for label, query in (QUERIES | RANKED).items():
        plan = planned(spec, query, name, share=0.5)
        if plan is None:
            continue
        assert plan.calibration.charges[0] == 0
        values = person_values(query)
        others = [values[k % len(values)] for k in range(6)]
        answers = [answer(plan, [summary_of(spec, query, [v] * 3 + others)], Fixed()) for v in values]
        assert all(one == answers[0] for one in answers), label


def plain_quantiles(name, plan, x):
    """What a mechanism without noise should choose: by the definition, person by person."""
    spec, query = plan.spec, plan.query
    ps = (
        plan.calibration.ps
        if isinstance(plan.calibration, RankCalibration)
        else getattr(plan.target, "ps", ())
    )
    x, level = np.array(x), np.repeat(np.arange(spec.micro.size), spec.people)
    if name == "pe":
        if query.statistic in ("min", "max"):
            return [x.min() if query.statistic == "min" else x.max()]
        return [np.sort(x)[min(int(p * x.size), x.size - 1)] for p in ps]
    if name == "mix":
        beta = plan.calibration.weights * spec.people
        public = spec.micro == PUBLIC
        parts = [
            [
                best_point(query, x[level == j], np.ones((level == j).sum()), p, public[j])
                for j in range(beta.size)
            ]
            for p in ps
        ]
        return [sum(b * k for b, k in zip(beta, row, strict=True)) / beta.sum() for row in parts]
    c = plan.calibration.charges
    public = c[-1] == PUBLIC
    weights = ((c == PUBLIC) if public else c)[level].astype(float)
    return [best_point(query, x, weights, p, public) for p in ps]


def best_point(query, x, weights, p, public):
    """The point with the least weight on the wrong side: the first of them, or the one in the middle where there is no noise at all."""
    total, p = weights.sum(), float(p)
    off = [
        max(0.0, weights[x < r].sum() - p * total, weights[x > r].sum() - (1 - p) * total)
        for r in range(query.points)
    ]
    best = np.flatnonzero(np.isclose(off, min(off), rtol=0, atol=1e-9 * total))
    return int(best[best.size // 2] if public else best[0])


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("fallah", "rank", "pe")])
@given(micro=st.integers(1_000, 3_000_000), people=st.integers(1, 10_000))
def test_equal_levels_are_the_homogeneous_case(name, micro, people):
    epsilon = micro / 1e6
    query = QUERIES["sum" if name == "stretch" else "mean"]
    plan = planned(accord.Spec.from_groups({epsilon: people}), query, name)
    assert dict(plan.charges) == {epsilon: epsilon}
    assert plan.rmse / plan.target.factor(people) == pytest.approx(
        sqrt(16 / people + 2 * (8 / (epsilon * people)) ** 2)
    )
    assert plan.rmse_here / plan.target.factor(people) == pytest.approx(sqrt(2) * 8 / (epsilon * people))


@given(micro=st.integers(100_000, 1_000_000), people=st.integers(1_000, 10_000))
def test_equal_levels_are_the_homogeneous_case_of_ranks(micro, people):
    """All of them are the exponential mechanism then."""
    query = accord.median("x", bounds=(0, 100), missing="none")
    plans = {
        name: planned(accord.Spec.from_groups({micro / 1e6: people}), query, name)
        for name in ("minimum", "threshold", "rank", "mix", "pe")
    }
    assert {tuple(p.charges.values()) for p in plans.values()} == {(micro / 1e6,)}
    for name, plan in plans.items():
        assert plan.rmse_here == pytest.approx(
            100 * sqrt(8) / (micro / 1e6 * people), rel=0.05 if name == "pe" else 1e-9
        )


@pytest.mark.parametrize("name", NAMES)
@given(
    levels=st.lists(st.sampled_from([0.01, 0.1, 0.5, 1.0, inf, 0.0]), min_size=2, max_size=12),
    query=queries,
    random=st.randoms(),
)
def test_order_of_people_is_irrelevant(name, levels, query, random):
    shuffled = random.sample(levels, len(levels))
    if not any(levels):
        return
    one, other = (planned(accord.Spec.of(x), query, name) for x in (levels, shuffled))
    assert (one is None) == (other is None)
    if one is not None:
        assert (dict(one.charges), one.rmse, one.rmse_here) == (
            dict(other.charges),
            other.rmse,
            other.rmse_here,
        )


@given(spec=finite_specs, query=additive_queries, data=st.data())
def test_more_budget_never_predicts_worse_for_affine(spec, query, data):
    raised = [level * data.draw(st.sampled_from([1, 1, 1.5, 20, inf])) for level in spec.levels]
    more = {}
    for level, people in zip(raised, spec.counts, strict=True):
        more[level] = more.get(level, 0) + people
    before, after = (accord.plan(s, query, "affine").rmse for s in (spec, accord.Spec.from_groups(more)))
    assert after <= before * (1 + 1e-9)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@given(spec=specs, query=additive_queries, share=shares)
def test_affine_predicts_no_more_than_any_other_weighted_mean(neighbors, spec, query, share):
    """`stretch` is no weighted mean: its weights add up to less than 1, which shrinks the noise at the price of a bias. Nor is `pe`.

    `sample` is one under add-remove: its π·t is at most ε, so that affine could have its weights with its noise, and without thinning anyone. For replace
    see below.
    """
    if min(spec.levels) * share < 1e-3:  # where a millionth is coarse
        return
    candidates = accord.plan(spec, query, share=share, neighbors=neighbors).candidates
    affine = next(c.rmse for c in candidates if c.mechanism == "affine")
    if affine is None:  # totals of people whose levels are private have one weight for all
        assert {c.mechanism for c in candidates if c.rmse is not None} == {"minimum"}
        return
    others = ("stretch", "pe", "sample") if neighbors == "replace" else ("stretch", "pe")
    for c in candidates:
        assert c.rmse is None or c.mechanism in others or affine <= c.rmse * (1 + 1e-9), c.mechanism


def test_sample_can_predict_less_than_affine_where_values_are_replaced():
    """Above t/2 somebody is kept with a chance of more than ε/t: with large levels, few people and much noise that is worth more than thinning costs."""
    cells = accord.histogram("x", edges=list(range(40)), missing="none")
    for groups, query, least in (
        ({9.0: 1, 10.0: 1}, QUERIES["mean"], 0.999),
        ({8.0: 2, 12.0: 1}, cells, 0.9),
    ):
        for neighbors in ("replace", "add-remove"):
            plan = accord.plan(accord.Spec.from_groups(groups), query, neighbors=neighbors)
            rmse = {c.mechanism: c.rmse for c in plan.candidates}
            if neighbors == "replace":
                assert least * rmse["affine"] < rmse["sample"] < 0.9997 * rmse["affine"]
            else:
                assert rmse["affine"] <= rmse["sample"]


@given(spec=specs, query=queries)
def test_auto_takes_the_best_or_threshold_within_five_percent_or_no_data(spec, query):
    plan = accord.plan(spec, query)
    best = min(
        c.rmse for c in plan.candidates if c.rmse is not None and c.mechanism != "stretch"
    )  # which is biased
    if plan.mechanism == "midpoint":
        assert plan.rmse < best and not any(plan.charges.values())
    elif plan.mechanism == "threshold":
        assert plan.rmse <= 1.05 * best
    else:
        assert plan.rmse == best


@given(spec=specs, query=queries)
def test_every_mechanism_is_a_candidate_with_an_error_or_a_reason(spec, query):
    candidates = accord.plan(spec, query).candidates
    assert [c.mechanism for c in candidates] == [m.name for m in ALL if not m.needs_gap]
    assert all(c.note and (c.rmse is None) == (c.charges is None) for c in candidates)
