"""Outlooks: what they predict agrees with plans and closed forms, whatever the levels are, and they see nothing but levels."""

import ast
import inspect
import json
from importlib.resources import files
from io import StringIO
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from strategies import QUERIES, RANKED, additive_queries, finite_specs, queries, shares, specs

import accord
from accord import relation, theory
from accord.budget import MICRO, PUBLIC
from accord.errors import AccordError, PlanError, QueryError
from accord.lab.audit.cases import NEIGHBORS
from accord.lab.simulation.specs import jorgensen, log_uniform
from accord.lab.whatif import views as outlook_views
from accord.lab.whatif.outlook import outlook
from accord.lab.whatif.views import draw, view
from accord.release.receipt import to_json
from accord.statistics import Algorithm

TIERS = {"strict": 0.01, "standard": 0.05, "public": inf, "opted out": 0}
MEAN = accord.mean("income", bounds=(0, 200_000), missing="none")
REGRESSION = accord.regression(
    "income",
    ["age", "sex"],
    bounds={"income": (0, 200_000), "age": (18, 100)},
    categories={"sex": ["f", "m"]},
)
EVERY = {
    "mean": MEAN,
    "sum": accord.sum("income", bounds=(0, 200_000)),
    "count": accord.count(where="age >= 65"),
    "histogram": accord.histogram("age", edges=[18, 40, 65, 100]),
    "median": accord.median("income", bounds=(0, 200_000)),
    "quantiles": accord.quantile("income", [0.1, 0.9], bounds=(0, 200_000)),
    "min": accord.min("age", bounds=(18, 100), step=1),
    "max": accord.max("age", bounds=(18, 100), step=1),
    "regression": REGRESSION,
    "mean where": accord.mean("income", bounds=(0, 200_000), where="age >= 65"),
    "mean by": accord.mean("income", bounds=(0, 200_000), by="region", keys=["north", "south", "east"]),
    "sum by": accord.sum("income", bounds=(0, 200_000), by="region", keys=["north", "south"]),
    "mean of those who have a value": accord.mean("income", bounds=(0, 200_000), missing="exclude"),
    "median by": accord.median("income", bounds=(0, 200_000), by="region", keys=["north", "south"]),
    "median where, in values": accord.median("income", (0, 200_000), where="age >= 65", interval="values"),
}
SPECS = {
    "tiers": accord.Spec.from_groups(
        {"strict": 4400, "standard": 9650, "public": 4942, "opted out": 1008}, TIERS
    ),
    "one level": accord.Spec.from_groups({0.5: 300}),
    "one person": accord.Spec.from_groups({0.5: 1}),
    "all public": accord.Spec.from_groups({inf: 100}),
    "a thousand levels": log_uniform(1000).spec(3),
}
OF_PUBLIC_LEVELS = [name for name in NEIGHBORS if relation.named(name).levels_are_public]
neighbors = st.sampled_from(OF_PUBLIC_LEVELS)


def candidate(plan, name):
    return next(c for c in plan.candidates if c.mechanism == name)


def printed(ahead):
    out = StringIO()
    Console(file=out, width=118, color_system=None).print(view(ahead))
    return out.getvalue()


# ---- the errors are those of the plans -------------------------------------------------------------------------------


@given(spec=specs, query=queries, neighbors=neighbors, share=shares)
@settings(max_examples=50)
def test_the_best_clip_and_the_best_threshold_are_as_good_as_the_plans(spec, query, neighbors, share):
    ahead = outlook(spec, query, share, neighbors)
    for name, curve in (("threshold", ahead.thresholds), (ahead.clipping, ahead.clips)):
        chosen = candidate(ahead.plan, name)
        assert curve.at(curve.chosen) == pytest.approx(chosen.rmse, rel=1e-12)
        assert curve.at(curve.best) <= chosen.rmse * (1 + 1e-12)
        assert list(curve.levels) == sorted(set(curve.levels))
        if (
            query.unit != "percentile points"
        ):  # ranks are chosen by a simpler formula than they are predicted with
            assert curve.at(curve.best) == pytest.approx(chosen.rmse, rel=1e-9)


def test_totals_under_private_levels_leave_nothing_to_compare():
    with pytest.raises(PlanError, match=r"^minimum alone answers the count of people .* look at its plan"):
        outlook(SPECS["tiers"].as_expected(), EVERY["count"], neighbors="private-levels")
    assert (
        outlook(SPECS["tiers"].as_expected(), EVERY["mean"], neighbors="private-levels").clipping == "affine"
    )


@pytest.mark.parametrize("statistic", EVERY)
@pytest.mark.parametrize("neighbors", OF_PUBLIC_LEVELS)
def test_the_choice_is_near_the_best(statistic, neighbors):
    ahead = outlook(jorgensen(1000).spec(1), EVERY[statistic], neighbors=neighbors)
    assert ahead.clipping == ("rank" if ahead.plan.unit == "percentile points" else "affine")
    for curve, most in ((ahead.clips, 1.02), (ahead.thresholds, 1.15)):
        assert curve.at(curve.chosen) <= most * curve.at(curve.best)


@given(spec=specs)
@settings(max_examples=40)
def test_curves_are_the_closed_forms(spec):
    ahead = outlook(spec, accord.mean("x", bounds=(0, 1), std=0.3, missing="none"))
    levels = theory.as_floats(spec.micro)
    assert ahead.thresholds.levels == tuple(spec.micro.tolist())
    wanted = np.sqrt(theory.threshold_errors(levels, spec.people, 0.09, 2.0))
    assert ahead.thresholds.rmse == pytest.approx(wanted.tolist(), rel=1e-9)
    for tau, rmse in zip(ahead.clips.levels, ahead.clips.rmse, strict=True):
        if tau < PUBLIC:
            c = np.minimum(levels, tau / MICRO)
            s, q = float(spec.people @ c), float(spec.people @ c**2)
            assert rmse == pytest.approx(sqrt(0.09 * q + 2) / s, rel=1e-9)
    assert set(ahead.thresholds.levels) <= set(ahead.clips.levels)


def test_many_levels_are_spread_over_the_people():
    ahead = outlook(SPECS["a thousand levels"], MEAN)
    assert 60 < len(ahead.thresholds.levels) <= 66 and 60 < len(ahead.clips.levels) <= 66 + 61
    assert ahead.thresholds.levels[-1] == ahead.clips.levels[-1] == SPECS["a thousand levels"].micro[-1]


def test_a_clip_beyond_every_finite_level_is_found_where_people_are_public():
    ahead = outlook(accord.Spec.from_groups({0.001: 10_000, inf: 12}), MEAN)  # [Z] §4
    assert MICRO // 2 < ahead.clips.chosen == ahead.clips.best < PUBLIC == ahead.clips.levels[-1]
    assert ahead.clips.at(PUBLIC) == pytest.approx(100_000 / sqrt(12))


# ---- gains -----------------------------------------------------------------------------------------------------------


@given(spec=specs, query=queries, neighbors=neighbors, share=shares)
@settings(max_examples=40)
def test_personal_levels_never_cost_anything(spec, query, neighbors, share):
    ahead = outlook(spec, query, share, neighbors)
    assert [g.over for g in ahead.gains] == ["minimum", "threshold"]
    for gain in ahead.gains:
        assert gain.ratio is None or gain.ratio >= 1 - 1e-9
        assert gain.people is None or gain.people >= 1
        assert gain.ratio != pytest.approx(1, rel=1e-12) or gain.people == 1
    best = candidate(ahead.plan, ahead.best)
    assert best.rmse <= (1 + 1e-5) * min(
        c.rmse for c in ahead.plan.candidates if c.rmse and c.mechanism != "stretch"
    )


@given(spec=finite_specs, query=st.sampled_from(["mean", "sum", "count"]))
@settings(max_examples=40)
def test_the_gain_over_a_threshold_is_that_of_theory(spec, query):
    ahead = outlook(spec, QUERIES[query])
    assert ahead.theory == (theory.gain(spec), theory.gain_bound(spec))
    threshold = ahead.gains[1].ratio
    assert threshold >= ahead.theory[0] * (1 - 1e-9)
    if ahead.best == "affine":  # of few people, pe may count better
        assert threshold == pytest.approx(ahead.theory[0], rel=1e-4) and threshold <= ahead.theory[1] * (
            1 + 1e-9
        )
    assert ahead.best in ("affine", "pe") and (ahead.best == "affine" or query == "count")


def test_theory_is_left_out_where_it_does_not_apply():
    spec = accord.Spec.from_groups({0.1: 500, 1: 400})
    assert outlook(spec, MEAN, neighbors="add-remove").theory is None
    assert outlook(spec, accord.mean("x", bounds=(0, 1), std=0.1)).theory is None
    assert outlook(spec, RANKED["median"]).theory is None
    shared = accord.Spec.from_groups({0.05: 500, 0.5: 400})
    assert outlook(spec, MEAN, share=0.5).theory == (theory.gain(shared), theory.gain_bound(shared))


def test_people_needed_solves_the_error_for_their_number():
    spec = accord.Spec.from_groups({0.01: 4000, 0.3: 6000})
    ahead = outlook(spec, accord.sum("x", bounds=(0, 1)))
    minimum = ahead.gains[0]
    goal = (candidate(ahead.plan, "affine").rmse / spec.total) ** 2
    n = minimum.people * spec.total
    assert 0.25 / n + 2 / (0.01 * n) ** 2 == pytest.approx(goal, rel=1e-3)
    assert sqrt(minimum.ratio) < minimum.people < minimum.ratio


# ---- moves -----------------------------------------------------------------------------------------------------------


@given(spec=specs, query=additive_queries, neighbors=neighbors)
@settings(max_examples=50)
def test_stricter_people_who_allow_more_never_make_affine_worse(spec, query, neighbors):
    ahead = outlook(spec, query, neighbors=neighbors)
    before = candidate(ahead.plan, "affine").rmse
    up = [m for m in ahead.moves if m.spec.total == spec.total and m.spec.micro[0] > spec.micro[0]]
    assert up or spec.micro.tolist() == [PUBLIC]
    for move in up:
        after = candidate(accord.plan(move.spec, query, neighbors=neighbors), "affine").rmse
        assert after <= before * (1 + 1e-6)
        assert move.change <= 1e-4


def test_tiers_move_to_the_next_ones_by_name():
    ahead = outlook(SPECS["tiers"], MEAN)
    assert [m.text for m in ahead.moves] == [
        "strict → standard",
        "strict opts out",
        "standard → public",
        "standard → strict",
        "standard opts out",
        "public → standard",
        "public opts out",
    ]
    first, out = ahead.moves[:2]
    assert first.people == 4400 and first.span == (10_000, 10_000)
    assert first.spec == accord.Spec.from_groups({0.05: 4400 + 9650, inf: 4942, 0: 1008})
    assert out.spec == accord.Spec.from_groups({0.05: 9650, inf: 4942, 0: 1008 + 4400})
    for move in ahead.moves:
        plan = accord.plan(move.spec, MEAN)
        lowest = min(c.rmse for c in plan.candidates if c.rmse)
        assert move.rmse == pytest.approx(lowest, rel=1e-9)
        assert move.change == pytest.approx(
            100 * (lowest / candidate(ahead.plan, "affine").rmse - 1), rel=1e-9
        )


def test_a_tier_that_nobody_chose_can_be_moved_to():
    spec = accord.Spec.from_groups({"strict": 50}, {"strict": 0.1, "open": 1.0, "out": 0})
    assert [m.text for m in outlook(spec, MEAN).moves] == ["strict → open"]  # if they opt out, nobody is left


def test_many_levels_move_in_bands_of_equally_many_people():
    spec = jorgensen(1000).spec(1)
    moves = outlook(spec, MEAN).moves
    assert [m.action for m in moves] == ["doubled", "halved"] * 5 and {m.people for m in moves} == {200}
    assert all(m.spec.total == 1000 for m in moves)
    assert sum(x * n for x, n in zip(moves[0].spec.micro.tolist(), moves[0].spec.counts, strict=True)) == sum(
        sorted(np.repeat(spec.micro, spec.people).tolist())[:200]
    ) + int(spec.micro @ spec.people)
    assert all(m.change <= 1e-4 for m in moves[::2]) and all(m.change >= -1e-4 for m in moves[1::2])


def test_one_level_is_doubled_and_halved_and_public_stays_public():
    assert [m.text for m in outlook(SPECS["one level"], MEAN).moves] == ["ε = 0.5 doubled", "ε = 0.5 halved"]
    assert outlook(SPECS["all public"], MEAN).moves == ()


def test_sums_and_counts_are_compared_per_person():
    moves = zip(outlook(SPECS["tiers"], EVERY["sum"]).moves, outlook(SPECS["tiers"], MEAN).moves, strict=True)
    for of_sum, of_mean in moves:
        assert of_sum.change == pytest.approx(of_mean.change, abs=1e-6)


# ---- what is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", EVERY)
@pytest.mark.parametrize(("spec", "neighbors"), [*((s, "replace") for s in SPECS), ("tiers", "add-remove")])
def test_every_outlook_can_be_described_and_printed(spec, statistic, neighbors):
    ahead = outlook(SPECS[spec], EVERY[statistic], share=0.5, neighbors=neighbors)
    document = json.loads(to_json(ahead.describe()))  # refuses NaN and Infinity
    assert document["schema"] == 1 and document["plan"]["neighbors"] == neighbors
    assert [p["t"] for p in document["thresholds"]["points"]][-1] == document["clips"]["points"][-1]["tau"]
    assert all(isinstance(p["tau"], str) and p["rmse"] >= 0 for p in document["clips"]["points"])
    assert len(document["moves"]) == len(ahead.moves)
    text = printed(ahead)
    assert "What personal levels buy" in text and "share × level" in text and ahead.best in text
    assert all(m.who in text for m in ahead.moves)


def test_public_is_written_inf():
    document = outlook(SPECS["tiers"], MEAN).describe()
    assert [p["t"] for p in document["thresholds"]["points"]] == ["0.01", "0.05", "inf"]
    assert document["clips"]["chosen"] == "0.061852" and document["theory"]["bound"] == 9.0
    assert document["moves"][-1]["levels"] == ["inf", "inf"]


@pytest.mark.parametrize(
    ("statistic", "spec", "neighbors"),
    [
        ("mean", "tiers", "replace"),
        ("sum", "one level", "replace"),
        ("count", "tiers", "add-remove"),
        ("histogram", "a thousand levels", "replace"),
        ("median", "tiers", "replace"),
        ("quantiles", "a thousand levels", "add-remove"),
        ("min", "all public", "replace"),
        ("max", "one person", "add-remove"),
        ("regression", "tiers", "replace"),
    ],
)
def test_every_statistic_can_be_drawn(statistic, spec, neighbors, tmp_path):
    target = draw(outlook(SPECS[spec], EVERY[statistic], neighbors=neighbors), tmp_path / "outlook.png")
    assert target.read_bytes().startswith(b"\x89PNG") and target.stat().st_size > 20_000
    assert outlook_views.figures.pyplot().get_fignums() == []


def test_names_are_drawn_as_they_are(tmp_path):
    tiers = {"[b]a $x$_{ $[/b]": 0.1, "open " * 30: 1.0}
    ahead = outlook(
        accord.Spec.from_groups(dict.fromkeys(tiers, 100), tiers), accord.count(where="x = '$\\frac$'")
    )
    assert "[b]a $x$_{ $[/b]" in printed(ahead)
    assert draw(ahead, tmp_path / "outlook.svg").stat().st_size > 10_000


def test_a_figure_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(AccordError, match="cannot write the figure"):
        draw(outlook(SPECS["one level"], MEAN), tmp_path / "missing" / "outlook.png")


# ---- what is refused, and what is seen -------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused():
    spec = SPECS["tiers"]
    with pytest.raises(PlanError, match="the number of people is public"):
        outlook(spec, accord.count())
    assert outlook(spec, accord.count(), neighbors="add-remove").best == "affine"
    with pytest.raises(QueryError, match="about one question, not about Workload"):
        outlook(spec, accord.workload([MEAN, EVERY["count"]]))
    with pytest.raises(PlanError, match="nothing is known about the errors of mine"):
        outlook(spec, Algorithm("mine", ("x",), "numpy", lambda rows, epsilon: 0))
    with pytest.raises(PlanError, match="nobody is left"):
        outlook(accord.Spec.from_groups({0: 5}), MEAN)
    public = accord.mean("income", (0, 1), by="g", keys=["a"], membership="public")
    with pytest.raises(PlanError, match=r"public groups have levels of their own, and an outlook each\."):
        outlook(spec, public)


@pytest.mark.parametrize("statistic", ["mean where", "mean by", "sum by", "median by"])
def test_the_curves_of_a_part_meet_its_plan(statistic):
    """At the chosen t and τ they have the error that the plan predicts for the mechanism."""
    ahead = outlook(SPECS["tiers"], EVERY[statistic], share=0.5)
    errors = {c.mechanism: c.rmse for c in ahead.plan.candidates}
    assert ahead.thresholds.at(ahead.thresholds.chosen) == pytest.approx(errors["threshold"])
    assert ahead.clips.at(ahead.clips.chosen) == pytest.approx(errors[ahead.clipping])
    if "by" in statistic:  # somebody may move between two groups, and is charged for both
        assert max(ahead.plan.cost) == 2 * max(ahead.plan.calibration.charges) and "half of the" in printed(
            ahead
        )


@pytest.mark.parametrize(
    ("at_most", "neighbors", "part"),
    [(1, "replace", "half"), (2, "replace", "1/3"), (2, "add-remove", "half")],
)
def test_which_part_of_a_level_is_compared(at_most, neighbors, part):
    """Somebody may leave so many groups and come into as many others, of three, and is charged for each."""
    count = accord.count(by="g", keys=["a", "b", "c"], at_most=at_most)
    assert f"{part} of the level" in printed(outlook(SPECS["tiers"], count, neighbors=neighbors))


def test_only_levels_are_seen():
    assert list(inspect.signature(outlook).parameters) == ["spec", "query", "share", "neighbors", "notes"]
    room = Path(outlook_views.__file__).parent
    texts = [(room / name).read_text(encoding="utf-8") for name in ("outlook.py", "moves.py")]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    names = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    reading = (
        "accord.people.table",
        "accord.people",
        "accord.engines",
        "accord.release.release",
        "accord.release.answer",
    )
    assert not any(name.startswith((*reading, "duckdb")) for name in names)


def test_the_bundled_people():
    people = accord.table(files("accord.data") / "people.parquet", epsilon="tier", tiers=TIERS)
    ahead = outlook(people.spec(), MEAN, notes=people.check(MEAN))
    assert people.spec() == SPECS["tiers"] and ahead.plan.describe() == people.plan(MEAN).describe()
    assert repr(ahead) == f"<Outlook: mean of income, affine has rmse {ahead.plan.rmse:.6g} (value)>"
