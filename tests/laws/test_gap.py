"""Levels that go with values: `robust` is the best of all weightings, and what a gap does to plans."""

from fractions import Fraction
from itertools import product
from math import inf, sqrt

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noises import Fixed
from strategies import QUERIES, RANKED, specs, summary_of

import accord
from accord import theory
from accord.errors import PlanError, QueryError
from accord.mechanisms import ALL
from accord.statistics.gap import GapScale, of_values
from accord.statistics.spread import half_width, tail

QUESTIONS = QUERIES | RANKED
OUT = accord.Spec.from_groups({0: 40, 0.05: 300, 0.4: 200, 2: 100, inf: 60})


def declared(query, part, about=None):
    """The question with so large a part of the largest gap that there can be."""
    from accord.statistics.gap import with_gap

    return with_gap(query, query.gap_scale.most * Fraction(part), about)


def error(charges, people, ratio, gap, total):
    """Σw² + ratio·max(w/ε)² + gap·κ², where nobody is charged less than their weight needs."""
    weights = charges / (people @ charges)
    kappa = people @ np.maximum(weights - 1 / total, 0)
    return people @ weights**2 + ratio / (people @ charges) ** 2 + gap * kappa**2


def best_by_solver(levels, people, ratio, gap, total):
    """The least of that over all weights, by a convex solver that knows nothing of τ."""
    finite = np.isfinite(levels)
    w, s, k = cp.Variable(levels.size, nonneg=True), cp.Variable(nonneg=True), cp.Variable(nonneg=True)
    excess = cp.Variable(levels.size, nonneg=True)
    n = people.astype(float)
    scaled = total * w  # near 1
    constraints = [
        n @ scaled == total,
        scaled[finite] <= s * levels[finite],
        excess >= scaled - 1,
        k >= n @ excess / total,
    ]
    goal = cp.sum(cp.multiply(n, cp.square(scaled))) / total**2 + ratio * cp.square(s) / total**2
    cp.Problem(cp.Minimize(goal + gap * cp.square(k)), constraints).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
    )
    weights = np.maximum(w.value, 0)
    weights /= n @ weights
    kappa = n @ np.maximum(weights - 1 / total, 0)
    return n @ weights**2 + ratio * np.max(weights[finite] / levels[finite]) ** 2 + gap * kappa**2


def random_groups(rng, with_public):
    levels = np.sort(np.exp(rng.uniform(-4, 1.5, rng.integers(1, 7))))
    if with_public:
        levels = np.append(levels, inf)
    return levels, rng.integers(1, 400, levels.size)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # what it finds is judged, not believed
@pytest.mark.parametrize("seed", range(40))
def test_robust_is_the_optimum_of_a_convex_solver(seed):
    """With public people, and with some who opted out, and are a part of whom it is about."""
    rng = np.random.default_rng(seed)
    levels, people = random_groups(rng, with_public=seed % 3 == 0)
    total = int(people.sum()) + (int(rng.integers(0, people.sum())) if seed % 2 else 0)
    ratio, gap = 8 * np.exp(rng.uniform(0, 3)), np.exp(rng.uniform(-9, 3))
    tau = theory.clip_under_gap(levels, people, ratio, gap, total)
    ours = error(np.minimum(levels, tau), people, ratio, gap, total)
    least = best_by_solver(levels, people, ratio, gap, total)
    assert ours <= least * (1 + 1e-9)
    assert ours >= least * (1 - 1e-4)  # and the solver came near it


@pytest.mark.parametrize("seed", range(40))
def test_no_other_clip_is_better(seed):
    """An exact check of the same: of all τ on a fine grid, and beside the one that is found."""
    rng = np.random.default_rng(seed)
    levels, people = random_groups(rng, with_public=seed % 3 == 0)
    total = int(people.sum()) + (int(rng.integers(0, people.sum())) if seed % 2 else 0)
    ratio, gap = 8 * np.exp(rng.uniform(0, 5)), np.exp(rng.uniform(-12, 8))
    tau = theory.clip_under_gap(levels, people, ratio, gap, total)
    grid = np.concatenate((np.geomspace(levels[0], 1e4, 400), tau * np.linspace(0.99, 1.01, 101)))
    least = min(error(np.minimum(levels, t), people, ratio, gap, total) for t in grid)
    assert error(np.minimum(levels, tau), people, ratio, gap, total) <= least * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_robust_of_members_is_the_best_for_the_worst_members(seed):
    """Against a random search over all charges below the levels: none beats min(ε, τ)."""
    rng = np.random.default_rng(seed)
    levels, people = random_groups(rng, with_public=False)
    ratio, gap = 8 * np.exp(rng.uniform(0, 3)), np.exp(rng.uniform(-9, 2))

    def of_members(c):
        kappa = theory.kappa_of_members(c.max(), c.min())
        return (people @ c**2 + ratio) / (people @ c) ** 2 + gap * kappa**2

    ours = of_members(np.minimum(levels, theory.clip_of_members(levels, people, ratio, gap)))
    others = [np.minimum(levels, t) for t in np.geomspace(levels[0], levels[-1], 300)]
    others += [levels * rng.random(levels.size) ** rng.uniform(0, 2) for _ in range(300)]
    assert ours <= min(map(of_members, others)) * (1 + 1e-9)


def test_kappa_of_members_is_that_of_the_worst_of_them():
    """By trying all numbers of people of two charges, and all tables of three."""
    for ratio in (1.5, 3.0, 10.0):
        worst = 0.0
        for a in range(40):
            for b in range(40):
                for c in range(0, 40, 13):
                    charges = np.repeat([1.0, ratio, (1 + ratio) / 2], [a, b, c])
                    if charges.size:
                        w = charges / charges.sum()
                        worst = max(worst, np.maximum(w - 1 / w.size, 0).sum())
        assert worst <= theory.kappa_of_members(ratio, 1.0) <= worst + 0.01


@given(spec=specs, name=st.sampled_from(sorted(QUESTIONS)))
@settings(max_examples=60)
def test_without_a_gap_robust_is_affine(spec, name):
    """A gap of 0: the charges are the same, to the last millionth, and so is the error."""
    query = declared(QUESTIONS[name], 0)
    if query.unit == "percentile points":
        same = accord.plan(spec, query, "rank")
    else:
        same = accord.plan(spec, query, "affine")
    robust = accord.plan(spec, query, "robust")
    assert robust.charges == same.charges
    assert robust.rmse == same.rmse


@given(spec=specs, name=st.sampled_from(sorted(QUESTIONS)))
@settings(max_examples=40, deadline=None)
def test_robust_is_the_best_charge_rule_and_grows_with_the_gap(spec, name):
    """No other function of charges.py has a lower predicted error, for any gap; and the error grows with it."""
    before = 0.0
    for part in (0, 1e-3, 0.03, 0.4, 1):
        query = declared(QUESTIONS[name], str(part))
        candidates = {c.mechanism: c.rmse for c in accord.plan(spec, query).candidates if c.rmse is not None}
        rules = ("minimum", "threshold", "proportional", "affine", "fallah", "rank")
        if query.statistic not in ("min", "max"):  # whose quantile depends on the charges
            slack = 1e-6 if spec.micro[0] > 5_000 else 0.1  # charges are whole millionths
            if "may land anywhere" not in str(accord.plan(spec, query, "robust").calibration.note):
                least = min(candidates[name] for name in rules if name in candidates)
                assert candidates["robust"] <= least * (1 + slack)
                assert candidates["robust"] >= before * (1 - 1e-9)
        before = candidates["robust"]


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_charges_of_robust_fall_as_the_gap_grows(name):
    spec = accord.Spec.from_groups({0.05: 3000, 0.4: 2000, 2: 1000, inf: 600})
    most = [
        max(accord.plan(spec, declared(QUESTIONS[name], str(part)), "robust").charges.values())
        for part in (0, 1e-3, 1e-2, 0.1, 1)
    ]
    assert most == sorted(most, reverse=True) and most[-1] >= 0.05


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_errors_have_the_worst_bias_in_them(name):
    """rmse² and rmse_here² are those without a gap, plus (κ·D)², times the people of a sum."""
    spec = accord.Spec.from_groups({0.05: 3000, 0.4: 2000, 2: 1000, inf: 600})
    plain, query = QUESTIONS[name], declared(QUESTIONS[name], "0.01")
    mechanism = "minimum" if query.statistic in ("min", "max") else "threshold"
    for by in (mechanism, "rank" if query.unit == "percentile points" else "affine"):
        t = {"t": 0.4} if by == "threshold" else {}
        with_gap, without = accord.plan(spec, query, by, **t), accord.plan(spec, plain, by, **t)
        if query.statistic in ("min", "max"):
            continue
        gap = float(query.gap) / (100 if query.unit == "percentile points" else 1)
        outputs = with_gap.target.outputs
        squares = min(2, outputs) if query.statistic == "histogram" else outputs
        bias = with_gap.target.factor(spec.total) * with_gap.bias_bound * gap * sqrt(squares / outputs)
        assert with_gap.prediction.bias == pytest.approx(bias)
        assert with_gap.rmse == pytest.approx(sqrt(without.rmse**2 + bias**2), rel=1e-9)
        assert with_gap.rmse_here == pytest.approx(sqrt(without.rmse_here**2 + bias**2), rel=1e-9)
        assert with_gap.charges == without.charges
        assert with_gap.break_even_gap == pytest.approx(without.break_even_gap, rel=1e-6)


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_the_worst_bias_is_attained_by_monotone_levels_and_never_exceeded(name):
    """Level means that lie D apart: the weighted mean is off by at most κ·D, and the worst of them by κ·D."""
    query = declared(QUESTIONS[name], "0.1")
    plan = accord.plan(OUT, query, "threshold", t=0.05)
    affine = accord.plan(OUT, query, "rank" if query.unit == "percentile points" else "affine")
    for p in (plan, affine):
        people, weights = OUT.people.astype(float), p.calibration.weights
        biases = []
        rng = np.random.default_rng(3)
        steps = [np.repeat([0.0, 1.0], [k, people.size - k]) for k in range(people.size + 1)]
        for means in [*steps, *rng.random((200, people.size))]:
            biases.append(abs(float(people @ ((weights - 1 / OUT.total) * means))))
        assert max(biases) == pytest.approx(p.bias_bound, abs=1e-12)


def test_threshold_takes_the_best_t_for_the_gap():
    spec = accord.Spec.from_groups({0.1: 900, 0.5: 900, 2: 200})
    for gap in (0, 0.01, 0.05, 0.5):
        query = accord.mean("x", (0, 1), missing="none", gap=gap)
        best = accord.plan(spec, query, "threshold")
        tried = [accord.plan(spec, query, "threshold", t=t).rmse for t in spec.levels]
        assert best.rmse == min(tried)
        assert best.rmse**2 == pytest.approx(theory.threshold(spec, gap=gap).mse)


def test_theory_has_the_same_numbers_as_a_plan():
    spec = accord.Spec.from_groups({0.1: 900, 0.5: 900, inf: 200})
    for gap in (0, 0.002, 0.03, 0.4, 1):
        plan = accord.plan(spec, accord.mean("x", (0, 1), missing="none", gap=gap), "robust")
        affine = theory.affine(spec, gap=gap)
        assert plan.rmse**2 == pytest.approx(affine.mse, rel=1e-6)
        assert max(plan.charges.values()) == pytest.approx(affine.tau, abs=2e-6)
    with pytest.raises(PlanError, match=r"^gap=2 is not possible for values in an interval of width 1\."):
        theory.affine(spec, gap=2)
    with pytest.raises(PlanError, match=r"^gap=-1 is not possible"):
        theory.threshold(spec, gap=-1)


def test_a_million_levels():
    """τ by bisection over prefix sums: beside it the error is not lower."""
    levels, people = np.linspace(0.001, 5, 10**6), np.ones(10**6)
    tau = theory.clip_under_gap(levels, people.astype(np.int64), 8.0, 0.01, 10**6)
    near = (tau * (1 + off) for off in (-0.2, -0.01, -1e-4, 1e-4, 0.01, 0.2))
    best, *others = (error(np.minimum(levels, t), people, 8.0, 0.01, 10**6) for t in (tau, *near))
    assert best <= min(others)


def test_a_gap_that_is_off_by_two_costs_less_than_thirty_percent():
    """The error with the right gap of the charges that are best for half of it, or twice it."""
    worst = 1.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        levels, people = random_groups(rng, with_public=seed % 3 == 0)
        people = people * 50
        total, ratio = int(people.sum()), 8.0 * np.exp(rng.uniform(0, 3))
        gap = np.exp(rng.uniform(-12, 0))
        best = theory.clip_under_gap(levels, people, ratio, gap, total)
        for off in (0.25, 4.0):  # of the square
            tau = theory.clip_under_gap(levels, people, ratio, off * gap, total)
            errors = (error(np.minimum(levels, t), people, ratio, gap, total) for t in (tau, best))
            worst = max(worst, sqrt(next(errors) / next(errors)))
    assert 1.0 < worst < 1.3


# ---- about everyone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [accord.mean, accord.sum])
def test_those_who_opted_out_are_a_level_of_zero(ask):
    """κ counts them; a sum is of all of them."""
    of = {"missing": "none", "gap": 0.1}
    some, everyone = ask("x", (0, 1), **of), ask("x", (0, 1), about="everyone", **of)
    plans = [accord.plan(OUT, query, "minimum") for query in (some, everyone)]
    assert [p.people for p in plans] == [OUT.total, OUT.total + 40]
    assert plans[0].bias_bound == 0.0
    assert plans[1].bias_bound == pytest.approx(40 / (OUT.total + 40))
    assert (
        "the answer is about all 700, with what the gap allows for those who are not read"
        in plans[1].assumptions[-1]
    )


def test_everyone_needs_a_gap():
    with pytest.raises(QueryError, match=r"^about='everyone' needs gap=: those who opted out are never read"):
        accord.mean("x", (0, 1), about="everyone")
    with pytest.raises(QueryError, match=r"^about='all' is not offered\."):
        accord.mean("x", (0, 1), gap=0.1, about="all")


def test_stretch_is_not_about_everyone():
    spec = accord.Spec.from_groups({0: 4, 1: 5})
    query = accord.sum("x", (0, 1), gap=0.1, about="everyone")
    with pytest.raises(PlanError, match=r"stretch cannot answer .*: is about those who are read\."):
        accord.plan(spec, query, "stretch")


# ---- members of a private part -------------------------------------------------------------------------------


def test_kappa_of_members_is_in_every_plan_about_some_of_the_people():
    spec = accord.Spec.from_groups({0.1: 990, 1: 10})
    for query in (
        accord.mean("x", (0, 1)),
        accord.mean("x", (0, 1), missing="none", where="m = 1"),
        accord.median("x", (0, 1), missing="none", by="g", keys=[1, 2]),
        accord.variance("x", (0, 1)),
    ):
        plan = accord.plan(spec, query, "minimum")
        assert plan.bias_bound == 0.0
        plan = accord.plan(spec, query, "threshold", t=0.3)
        assert plan.bias_bound == 1.0
    plan = accord.plan(spec, accord.mean("x", (0, 1)), "affine")
    largest, smallest = max(plan.charges.values()), min(plan.charges.values())
    assert plan.bias_bound == pytest.approx(theory.kappa_of_members(largest, smallest))
    with_gap = accord.plan(spec, accord.mean("x", (0, 1), gap=0.05), "robust")
    assert with_gap.bias_bound < plan.bias_bound


# ---- intervals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("s", "b"), [(1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (0.3, 1.0)])
@pytest.mark.parametrize("bias", [0.1, 1.0, 5.0])
def test_half_width_with_a_bias_solves_its_equation(s, b, bias):
    def above(x):
        both = tail(abs(x), s, b) if s else np.exp(-abs(x) / b)
        return both / 2 if x >= 0 else 1 - both / 2

    h = half_width(s, b, 0.05, bias)
    assert above(h - bias) + above(h + bias) == pytest.approx(0.05, rel=1e-6)
    assert half_width(s, b, 0.05) < h <= bias + half_width(s, b, 0.05)


def test_no_bias_is_no_change():
    assert half_width(1.0, 0.5, 0.05, 0.0) == half_width(1.0, 0.5, 0.05)


# ---- what is offered, and said -------------------------------------------------------------------------------


def test_robust_is_considered_where_a_gap_is_declared_and_nowhere_else():
    spec = accord.Spec.from_groups({0.1: 900, 1: 100})
    without = accord.plan(spec, accord.mean("x", (0, 1)))
    assert "robust" not in [c.mechanism for c in without.candidates]
    assert "robust" in [c.mechanism for c in accord.plan(spec, accord.mean("x", (0, 1), gap=0.1)).candidates]
    with pytest.raises(
        PlanError, match=r"^robust cannot answer the mean of x: needs gap=, how far levels may"
    ):
        accord.plan(spec, accord.mean("x", (0, 1)), "robust")
    assert [m.name for m in ALL if m.needs_gap] == ["robust"]


def test_pe_is_refused_where_a_gap_is_declared():
    spec = accord.Spec.from_groups({0.1: 900, 1: 100})
    query = accord.median("x", (0, 1), missing="none", gap=3)
    with pytest.raises(PlanError, match="has no error that is known where levels go with values"):
        accord.plan(spec, query, "pe")
    assert accord.plan(spec, accord.median("x", (0, 1), missing="none"), "pe").break_even_gap is None


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda: accord.mean("x", (0, 1), gap=2),
            "gap=2 is not possible: means of two levels differ by 0 to 1 here. ",
        ),
        (
            lambda: accord.median("x", (0, 1), gap=101),
            "gap=101 is not possible: distribution functions of two levels differ by 0 to 100 here "
            "(percentile points). ",
        ),
        (lambda: accord.count("x > 1", gap=-0.1), "gap=-0.1 is not possible: shares of two levels differ"),
        (
            lambda: accord.correlation("x", "y", bounds={"x": (0, 1), "y": (0, 1)}, gap=0.1),
            "gap= is not for a correlation: ",
        ),
        (lambda: accord.mean("x", (0, 1), gap="much"), "gap is 'much'. It must be a finite number."),
    ],
)
def test_what_is_no_gap_is_refused(ask, text):
    with pytest.raises(QueryError) as refusal:
        ask()
    assert str(refusal.value).startswith(text)


def test_a_gap_is_an_assumption_and_changes_the_fingerprint():
    spec = accord.Spec.from_groups({0.1: 900, 1: 100})
    plain, declared_ = (
        accord.plan(spec, accord.mean("x", (0, 200_000), **of), "affine") for of in ({}, {"gap": 4800})
    )
    sentence = (
        "the means of any two levels among the people whom the answer is about differ by at most 4,800 "
        "(2.4 % of the bounds), as declared"
    )
    assert sentence in declared_.assumptions and sentence not in plain.assumptions
    assert plain.fingerprint != declared_.fingerprint
    assert declared_.describe()["query"]["gap"] == "4800"
    assert "gap" not in plain.describe()["query"]


def test_fingerprints_without_a_gap_are_those_that_ledgers_have():
    """As of before there was such a thing."""
    spec = accord.Spec.from_groups({0.1: 900, 1: 100})
    known = {
        "mean": accord.mean("x", (0, 1)),
        "median": accord.median("x", (0, 1), where="m = 1"),
        "count": accord.count(by="g", keys=[1, 2]),
        "histogram": accord.histogram("x", edges=[0, 1, 2]),
    }
    found = {name: accord.plan(spec, query).fingerprint[:12] for name, query in known.items()}
    assert found == FINGERPRINTS


FINGERPRINTS = {
    "mean": "2243721d999b",
    "median": "2414b40bb6e3",
    "count": "7e4a9771deae",
    "histogram": "d7e0a47135ef",
}


def test_the_sentence_that_plans_begin_with():
    spec = accord.Spec.from_groups({0.01: 9000, 1: 3000})
    query = accord.mean("x", (0, 200_000), missing="none")
    plan = accord.plan(spec, query, "affine")
    even = of_values(Fraction(200_000)).text(plan.break_even_gap)
    assert f"Right if levels do not go with values; breaks even at a gap of {even}." in str(plan)
    assert "Right even if levels go with values: everyone counts the same." in str(
        accord.plan(spec, query, "minimum")
    )
    with_gap = accord.plan(spec, accord.mean("x", (0, 200_000), missing="none", gap=4800), "robust")
    assert (
        "Right if the means of any two levels differ by at most 4,800 (2.4 % of the bounds), as dec"
        in str(with_gap)
    )
    assert plan.describe()["break_even_gap"] == plan.break_even_gap
    assert accord.plan(spec, query, "minimum").describe()["break_even_gap"] == "inf"


def test_gaps_in_words():
    assert of_values(Fraction(10)).text(0.25) == "0.25 (2.5 % of the bounds)"
    assert GapScale(Fraction(100), unit="percentile points").text(3.2) == "3.2 percentile points"
    assert GapScale(Fraction(1)).text(0.052) == "0.052"


# ---- a private look at the gap -------------------------------------------------------------------------------


def level_means(missing):
    from accord.statistics.levels import LevelMeans

    asked = accord.mean("x", (0, 2), step=1, missing=missing)
    fields = {name: getattr(asked, name) for name in ("step", "missing", "kind", "declared")}
    query = LevelMeans("x", asked.low, asked.high, **fields, levels=("0.5", "2", "inf"))
    return accord.plan(accord.Spec.from_groups({0.5: 2, 2: 3, inf: 1}), query, "mix", 0.5)


@pytest.mark.parametrize("missing", ["none", "exclude"])
def test_each_level_pays_for_its_own_mean(missing):
    """All tables of these people, and all changes of one: only the sums of their level move, by at most what
    the noise there is for; so each loses exactly half of their level."""
    plan = level_means(missing)
    each, values = plan.target.each, (0, 1, 2, *((None,) if missing == "exclude" else ()))
    level_of = [0, 0, 1, 1, 1, 2]
    drawn = Fixed()

    def answered(people):
        summary = summary_of(plan.spec, plan.query, [None if q is None else (q,) for q in people])
        return plan.method.answer(summary, plan.calibration, plan.target, drawn)

    most = [Fraction(0)] * 3
    for others in product(values, repeat=2):
        for k, level in enumerate(level_of):
            table = [others[j % 2] for j in range(6)]
            sums = []
            for value in values:
                table[k] = value
                sums.append(list(plan.target.of_each(answered(table))))
            people = plan.spec.counts
            for one in sums:
                for other in sums:
                    for j in range(3):
                        move = sum(abs(a - b) for a, b in zip(one[j][1], other[j][1], strict=True))
                        assert j == level or move == 0
                        most[j] = max(most[j], move * people[j])
    assert most == [each.sensitivity] * 3
    noises = each.released
    assert drawn.scales[: 2 * noises] == [
        Fraction(10**6 * each.sensitivity, charge) for charge in (250_000, 1_000_000) for _ in range(noises)
    ]
    assert dict(plan.charges) == {0.5: 0.25, 2.0: 1.0, inf: inf}


def look_at(levels, values, **options):
    table = accord.table({"x": values, "e": levels}, epsilon="e")
    return table.check_gap("x", (0, 100), **options)


def test_a_look_bounds_the_gap_and_says_what_it_would_change():
    rng = np.random.default_rng(1)
    levels = np.repeat([5.0, 20.0], [40_000, 60_000])
    values = np.where(levels == 5.0, 40.0, 45.0) + rng.uniform(-20, 20, levels.size)
    look = look_at(levels, values, share=0.2)
    assert look.at_least < 5.0 < look.at_most < 8.0 and look.tells and not look.too_strict
    assert look.after.query.gap == pytest.approx(look.at_most, rel=1e-5)
    assert "With 95% the gap between these levels is at most " in str(look)
    assert [line["charge"] for line in look.receipt()["charges"]] == ["1", "4"]
    assert repr(look).startswith("<GapLook: at most ")
    told = str(look.release)
    assert "level     mean" in told and "κ is not defined here: each level has an answer of its own." in told


def test_a_look_says_where_levels_are_too_strict_to_tell():
    levels, values = np.repeat([0.01, 1.0], [100, 900]), np.linspace(0, 100, 1000)
    look = look_at(levels, values)
    assert not look.tells and look.too_strict[0] == "0.01" and look.after is None
    assert "Too strict, or too few, to tell: level 0.01" in str(look)
    assert "which tells nothing" in str(look)


def test_a_look_is_refused_where_there_is_nothing_to_compare():
    with pytest.raises(PlanError, match=r"^a look at the gap compares 2 to 100 levels, and there are 1\."):
        look_at(np.ones(5), np.arange(5.0))
    with pytest.raises(PlanError, match=r"and there are 101\. Take a gap from public knowledge"):
        look_at(1 + np.arange(101.0), np.arange(101.0))
    roster = accord.Spec.from_groups({1: 5, 2: 5})
    table = accord.table({"x": [1.0], "e": [1.0]}, epsilon="e", neighbors="add-remove", roster=roster)
    with pytest.raises(
        QueryError, match=r"^with neighbors='add-remove' it is private how many people a level"
    ):
        table.check_gap("x", (0, 100))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (accord.count(), True),
        (accord.sum("x", bounds=(0, 2)), True),
        (accord.mean("x", bounds=(0, 2)), False),
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_totals_say_that_who_is_there_may_go_with_levels_where_that_is_private(query, says):
    spec = accord.Spec.from_groups({0.1: 4_000, 1.0: 4_000})
    for neighbors in ("replace", "add-remove"):
        text = str(accord.plan(spec, query, mechanism="affine", neighbors=neighbors))
        assert ("nor with who is there" in text) == (says and neighbors == "add-remove")
