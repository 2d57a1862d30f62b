"""Plans as a user holds them: equal when they decide the same, honest in words, refused before anything is read."""

from dataclasses import replace
from math import inf, log, sqrt

import numpy as np
import pytest
from noises import SEEDED, Fixed
from strategies import summary_of

import accord
from accord import budget
from accord.budget import MICRO
from accord.errors import PlanError, QueryError, SourceError
from accord.mechanisms.additive import calibrate_by
from accord.planning import plan_within, task_of
from accord.relation import REPLACE
from accord.release.answer import answer

SPEC = accord.Spec.from_groups({0.1: 50, 1.0: 30, inf: 20})
REGRESSION = accord.regression("y", ["x"], bounds={"x": (0, 1), "y": (0, 10)})
ASKED = {
    "mean": accord.mean("x", bounds=(0, 1)),
    "median": accord.median("x", bounds=(0, 1)),
    "min": accord.min("x", bounds=(0, 1)),
    "histogram": accord.histogram("w", categories=["a", "b"]),
    "regression": REGRESSION,
    "groups": accord.mean("x", bounds=(0, 1), by="w", keys=["a", "b"]),
}


@pytest.mark.parametrize("name", ASKED)
def test_plans_are_equal_if_they_decide_the_same(name):
    one, two = (accord.plan(SPEC, ASKED[name]) for _ in range(2))
    assert one == two and hash(one) == hash(two) and one in [two]
    assert one != accord.plan(SPEC, ASKED[name], share=0.5)
    assert one != accord.plan(accord.Spec.from_groups({0.1: 50, 1.0: 30, inf: 21}), ASKED[name])
    assert one.calibration != one.mechanism
    candidates = [c for c in one.candidates if c.calibration is not None]
    assert len({c.calibration for c in candidates}) <= len(candidates)


def test_plans_of_workloads_are_equal_if_they_decide_the_same():
    workload = accord.workload([ASKED["mean"], ASKED["median"]])
    assert accord.plan(SPEC, workload) == accord.plan(SPEC, workload)
    assert accord.plan(SPEC, workload) != accord.plan(SPEC, workload, share=0.5)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (ASKED["mean"], "if the means of any two levels differ by at most D, the mean behind"),
        (
            accord.sum("x", bounds=(0, 1)),
            "if the means of any two levels differ by at most D, the mean behind",
        ),
        (
            accord.rows(max=5),
            "if the mean numbers of rows of any two levels differ by at most D, the mean number of rows behind",
        ),
        (accord.count("x > 1"), "if the shares of any two levels differ by at most D, the share behind"),
    ],
)
def test_kappa_compares_what_the_statistic_is_made_of(query, words):
    assert words in " ".join(str(accord.plan(SPEC, query, "affine")).split())


@pytest.mark.parametrize("name", ASKED)
def test_every_plan_says_once_whose_presence_is_private(name):
    roster = "who is in the table is private; who could be, and their levels, is the public roster"
    private = accord.plan(SPEC, ASKED[name], neighbors="add-remove").assumptions
    public = accord.plan(SPEC, ASKED[name]).assumptions
    assert sum(a.startswith(roster) for a in private) == 1
    assert not any(roster in a for a in public)
    assert "levels and the number of people are public" in public
    assert "levels and the number of people are public" not in private


@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "affine", "sample"])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_noise_of_a_regression_is_a_variance(mechanism, neighbors):
    """Twice the people: half the scale, a quarter of the variance."""
    t = 1.0 if mechanism in ("threshold", "sample") else None

    def noise(times):
        spec = accord.Spec.from_groups({0.1: 500 * times, 1.0: 300 * times})
        return accord.plan(spec, REGRESSION, mechanism, t=t, neighbors=neighbors).calibration.noise_variance

    few, many = noise(1), noise(2)
    if mechanism != "affine":  # whose τ depends on the number of people
        assert many == pytest.approx(few / 4)
    assert few > many > 0
    public = accord.Spec.from_groups({0.1: 5, inf: 10**6})
    assert (
        accord.plan(public, REGRESSION, "threshold", neighbors=neighbors, t=inf).calibration.noise_variance
        == 0
    )


def test_what_arithmetic_leaves_of_a_fraction_is_not_meant():
    asked = accord.quantile("x", [0.1 + 0.2, 0.7 + 0.1], bounds=(0, 1))
    assert asked == accord.quantile("x", [0.3, 0.8], bounds=(0, 1))
    assert asked.describe()["p"] == ["0.3", "0.8"]
    assert accord.quantile("x", 1 / 8, bounds=(0, 1)).describe()["p"] == "0.125"
    for p, said in (
        (0.3000001, "at most six decimals"),
        (1e-13, "at most six decimals"),
        (1.0, r"accord\.max"),
    ):
        with pytest.raises(QueryError, match=said):
            accord.quantile("x", p, bounds=(0, 1))


def opened(**options):
    """A table whose engine must not be asked."""
    data = {
        "x": np.array([0.1, 0.9, 0.5]),
        "w": ["a", "b", "a"],
        "y": np.ones(3),
        "e": np.array([0.1, 1.0, 2.0]),
    }
    table = accord.table(data, epsilon="e", **options)

    def fetch(*_, **__):
        raise AssertionError("something was read")

    table.reader.engine.fetch = fetch
    return table


MEAN, PUBLIC = ASKED["mean"], accord.mean("x", bounds=(0, 1), by="w", keys=["a", "b"], membership="public")
REFUSED = {
    "no such mechanism": (
        MEAN,
        {"mechanism": "afine"},
        "there is no mechanism 'afine': did you mean 'affine'",
    ),
    "a share of 7": (MEAN, {"share": 7}, "share=7 is not a fraction"),
    "no share": (MEAN, {"share": 0}, "share=0 is not a fraction"),
    "a share in words": (MEAN, {"share": "half"}, "share='half' is not a fraction"),
    "t without threshold": (MEAN, {"t": 1.0}, "t= is the level of the mechanisms threshold"),
    "not a t": (MEAN, {"mechanism": "threshold", "t": -1}, "t=-1 is not a level"),
    "not its statistic": (
        ASKED["median"],
        {"mechanism": "affine"},
        "affine cannot answer the median of x: answers",
    ),
    "in public groups": (PUBLIC, {"mechanism": "rank"}, "rank cannot answer the mean of x"),
    "in a workload": (
        accord.workload([MEAN, ASKED["median"]]),
        {"mechanism": "affine"},
        "affine cannot answer the median of x",
    ),
    "t of a workload": (
        accord.workload([MEAN, MEAN]),
        {"mechanism": "threshold", "t": 1.0},
        "t= is for one question",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_no_levels_is_refused_before_anything_is_read(case):
    query, options, said = REFUSED[case]
    for use in (opened().plan, opened().release):
        with pytest.raises(PlanError) as refused:
            use(query, **options)
        assert said in str(refused.value)


def test_a_sample_of_an_algorithm_is_refused_before_anything_is_read():
    with pytest.raises(PlanError, match="share=7 is not a fraction"):
        accord.sample(lambda rows, epsilon: 1.0, opened(), share=7)
    with pytest.raises(PlanError, match="t='most' is not a level"):
        accord.sample(lambda rows, epsilon: 1.0, opened(), t="most")


def test_mechanisms_that_fit_are_named_in_a_refusal():
    with pytest.raises(PlanError) as refused:
        accord.plan(SPEC, ASKED["median"], "affine")
    named = str(refused.value).split("Use one of ")[1].split(", or 'auto'")[0].split(", ")
    assert "rank" in named and "affine" not in named
    assert all(accord.plan(SPEC, ASKED["median"], name).mechanism == name for name in named)


class Raises(dict):
    def items(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize("tiers", [5, "strict", ["strict"], Raises(a=1)])
def test_tiers_that_are_none(tiers):
    with pytest.raises(
        accord.errors.SpecError,
        match=r"^tiers= (is a|cannot be read: it raised a RuntimeError).*Give each tier a level",
    ) as refused:
        accord.table({"x": [1.0], "e": ["strict"]}, epsilon="e", tiers=tiers)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "asked", [REGRESSION, accord.workload([ASKED["mean"], REGRESSION])], ids=["one", "two"]
)
def test_rows_of_another_engine_are_refused_before_values_are_read(monkeypatch, asked):
    """Also if only one of several questions keeps rows."""
    table = accord.table({"x": np.array([0.1, 0.9]), "y": np.ones(2), "e": np.array([0.1, 1.0])}, epsilon="e")
    monkeypatch.setattr(type(table.reader), "lends", False)
    monkeypatch.setattr(type(table.reader), "summaries", None)  # levels may be read, values not
    with pytest.raises(SourceError, match="cannot be kept or left out one by one"):
        table.release(asked, "sample")


def test_sums_that_were_read_with_the_levels_are_not_taken_for_cells(monkeypatch):
    """`auto` reads levels and sums in one scan; where it then takes a mechanism that needs cells, these are read."""
    columns = {"e": [1.0, 1.0, 2.0], "x": [0.25, 0.5, 0.75]}
    plan = accord.table(columns, epsilon="e").plan(ASKED["mean"], "sample")
    assert plan.method.needs_cells
    answers = []
    for asked in (plan, ASKED["mean"]):
        people = accord.table(columns, epsilon="e")
        if asked is not plan:
            monkeypatch.setattr(type(people), "plan", lambda *args, **options: plan)
        SEEDED.seed("the same draws")
        answers.append(people.release(asked).value)
    assert answers[0] == answers[1]


def test_documents_fold_many_levels():
    """And say of every range the most and the least that anybody in it is charged."""
    levels = np.arange(1, 5_001) / 1e4
    spec = accord.Spec.of([*levels, inf])
    plan = accord.plan(spec, ASKED["mean"], "affine")
    document = plan.describe()
    lines = document["charges"]
    assert len(lines) == 100 and sum(line["levels"] for line in lines) == 5_001
    assert sum(line["people"] for line in lines) == spec.total
    assert lines[-1]["level"] == lines[-1]["to"] == "inf" and lines[0]["level"] == "0.0001"
    charged = list(plan.charges.items())
    for line in lines:
        inside = [c for level, c in charged if float(line["level"]) <= level <= float(line["to"])]
        assert len(inside) == line["levels"]
        assert (float(line["least"]), float(line["charge"])) == (min(inside), max(inside))
    assert all(c["charges"] is None or len(c["charges"]) == 100 for c in document["candidates"])
    few = accord.plan(accord.Spec.of(levels[:1_000]), ASKED["mean"]).describe()["charges"]
    assert len(few) == 1_000 and set(few[0]) == {"level", "tier", "people", "charge"}


def test_an_error_that_is_told_once_says_for_which_group_it_holds():
    """Plan and release of means and medians by group; a sum's error is the same in every group."""
    said = "for groups of the same size: of a smaller group the error is larger"
    data = {"x": np.linspace(0, 1, 90), "w": ["a", "b", "b"] * 30, "e": np.ones(90)}
    people = accord.table(data, epsilon="e")
    for ask, by_group_size in ((accord.mean, True), (accord.median, True), (accord.sum, False)):
        query = ask("x", bounds=(0, 1), by="w", keys=["a", "b"])
        for document in (people.plan(query), people.release(query, "threshold")):
            assert (said in str(document)) == by_group_size
        assert said not in str(people.plan(ask("x", bounds=(0, 1))))


def test_a_relation_that_no_mechanism_proves_is_refused_in_words():
    spec, other = accord.Spec.from_groups({0.1: 50, 1: 50}), replace(REPLACE, name="other")
    with pytest.raises(PlanError) as refusal:
        plan_within(spec, accord.mean("x", (0, 1)), spec.micro, "auto", None, MICRO, other)
    assert str(refusal.value) == (
        "no mechanism answers the mean of x with neighbors='other'. Each says why: "
        "proves neighbors replace and add-remove and private-levels only (minimum, threshold, proportional, affine, fallah, rank, sample); "
        "proves neighbors replace only (stretch, mix, pe). Ask for something else, or with other neighbors."
    )


def test_mix_chooses_a_point_for_each_of_a_thousand_levels_and_no_more():
    ask = accord.median("x", bounds=(0, 1), step=0.1, missing="none")
    spec = accord.Spec.from_groups({1 + k / 1000: 30 for k in range(1, 1002)} | {0.001: 1})
    with pytest.raises(
        PlanError, match="would choose a point for each of 1001 levels; more than 1000 are too many"
    ):
        accord.plan(spec, ask, "mix")
    assert accord.plan(accord.Spec.from_groups({1 + k / 1000: 30 for k in range(1, 1001)}), ask, "mix")


def test_a_rule_that_charges_public_people_without_end_charges_nobody_else():
    """A min(ε, τ) with τ = ∞: only public people are read, so that nobody else pays."""
    spec = accord.Spec.from_groups({0.1: 5, inf: 3})
    asked = accord.mean("x", bounds=(0, 1), missing="none")
    task, _, _ = task_of(spec, asked, spec.micro, None, REPLACE)
    calibration = calibrate_by(lambda task: (task.levels.copy(), "everyone all of it"))(task)
    assert calibration.charges.tolist() == [0, budget.PUBLIC]
    assert calibration.weights.tolist() == [0, 1 / 3]


@pytest.mark.parametrize("bounds", [(-10, 2), (-2, 10)])
def test_the_bias_of_stretch_is_in_its_error_and_in_its_interval(bounds):
    """Ten people at half of the largest level are five people's worth too few: the end farther from 0 counts."""
    spec = accord.Spec.from_groups({0.5: 10, 1.0: 10})
    plan = accord.plan(spec, accord.sum("x", bounds, missing="none"), "stretch")
    assert plan.rmse_here == pytest.approx(sqrt(2 * 12**2 + (5 * 10) ** 2))
    low, high = plan.prediction.error_model.interval(7.0, [], 0.95, 1.0)
    noise = 12 * log(20)  # of scale 12, which 95 % are within
    assert (low, high) == pytest.approx((7 + 5 * bounds[0] - noise, 7 + 5 * bounds[1] + noise), rel=1e-3)


@pytest.mark.parametrize("bounds", [(-10, 2), (0, 12), (3, 15)])
def test_stretch_without_noise_counts_everyone_by_their_level(bounds):
    spec = accord.Spec.from_groups({0.5: 3, 1.0: 2})
    query = accord.sum("x", bounds, step=1, missing="none")
    cells, weights = (0, 5, 12, 7, 1), (0.5, 0.5, 0.5, 1.0, 1.0)
    rows = [(cell,) for cell in cells]
    value, _ = answer(accord.plan(spec, query, "stretch"), [summary_of(spec, query, rows)], Fixed())
    assert value == pytest.approx(np.dot(weights, np.add(cells, bounds[0])))


def test_fallah_needs_a_millionth_for_everyone():
    asked = accord.mean("x", (0, 1))
    assert accord.plan(accord.Spec.from_groups({1.0: 10**12}), asked, "fallah").charges == {1.0: 1e-6}
    with pytest.raises(PlanError, match="1/√n is less than a millionth"):
        accord.plan(accord.Spec.from_groups({1.0: 10**12 + 1}), asked, "fallah")
