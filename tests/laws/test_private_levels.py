"""With private levels a record is a value with its level, and nobody's coming or going costs them more than their level.

Exact, over all tables of up to three records of every level of the menu: what is charged is a function of the level, which follows from the Spec
that is expected and never from who is there. Then on DuckDB, with everything that can be seen: it is the same for two neighboring tables.
"""

import json
import logging
import pickle
from fractions import Fraction
from functools import cache, partial
from itertools import combinations_with_replacement, product
from math import inf, nan, sqrt

import numpy as np
import pytest
from click.testing import CliRunner
from noises import Fixed
from strategies import person_values, summary_of

import accord
from accord import cli
from accord.budget import MICRO, PUBLIC
from accord.errors import PlanError, QueryError, SourceError, SpecError
from accord.lab.audit import programs, runner
from accord.lab.audit.exact import noisy_answer
from accord.lab.audit.rare_worlds import WITH_PRIVATE_LEVELS
from accord.lab.audit.release_laws import law
from accord.lab.audit.release_laws import loss as loss_of
from accord.mechanisms import ALL
from accord.mechanisms.sample import SampleCalibration
from accord.people.summary import Summary
from accord.relation import PRIVATE_LEVELS
from accord.release.answer import answer
from accord.spec import Spec

PRIVATE = PRIVATE_LEVELS.name
GRID = {"bounds": (0, 2), "step": 1, "missing": "none"}
QUERIES = {
    "mean": accord.mean("x", **GRID),
    "sum": accord.sum("x", (-1, 1), step=1, missing="none"),
    "count": accord.count("x > 0"),
    "count of everyone": accord.count(),
    "proportion": accord.proportion("x > 0", missing="none"),
    "variance": accord.variance("x", **GRID),
    "histogram": accord.histogram("x", edges=[0, 1, 2, 3], missing="none"),
    "median": accord.median("x", **GRID),
    "two quantiles": accord.quantile("x", [0.25, 0.9], **GRID),
    "min": accord.min("x", **GRID),
}
TOTALS = ("sum", "count", "count of everyone", "histogram")
FINITE = Spec.from_groups({0.3: 40, 1.1: 9})
WITH_PUBLIC = Spec.from_groups({0.3: 7, 2.5: 5, inf: 2})


def planned(spec, query, name, **options):
    """The plan by a mechanism, or None where it is refused."""
    try:
        return accord.plan(spec, query, name, neighbors=PRIVATE, **options)
    except PlanError:
        return None


def values_of(query):
    return [(1,)] if query.statistic == "count" and query.condition is None else person_values(query)


def summary_of_records(plan, records):
    """Of records, each what they add with the place of their level on the menu; None: not on the menu."""
    by_cell, none, one = plan.method.needs_cells, np.zeros(0, dtype=np.int64), Spec.of([1.0])
    each = [
        (place, summary_of(one, plan.query, [row], by_cell)) for row, place in records if place is not None
    ]
    outputs = summary_of(one, plan.query, [values_of(plan.query)[0]], by_cell).outputs
    return Summary(
        plan.spec.people,
        outputs,
        np.concatenate([none, *(np.full(s.output.size, place) for place, s in each)]),
        np.concatenate([none, *(np.asarray(s.output, dtype=np.int64) for _, s in each)]),
        np.concatenate([none, *(np.asarray(s.amount).astype(np.int64) for _, s in each)]),
    )


def worst_losses(plan, plan_for=None):
    """For each level of the menu the largest loss of a record of it, beside none, one or two others.

    `plan_for`: a plan that follows from the records, to be found out.
    """
    plan_for = plan_for or (lambda records: plan)
    menu = range(plan.spec.micro.size)
    everything = list(product(values_of(plan.query), menu))

    @cache
    def law_of(records):
        own = plan_for(records)
        return law(partial(noisy_answer, own, [summary_of_records(own, records)]))

    worst = [0] * len(menu)
    for number in (0, 1, 2):
        for others in combinations_with_replacement(everything, number):
            for record in everything:
                if plan.calibration.charges[record[1]] != PUBLIC:
                    one, other = law_of(tuple(sorted((*others, record)))), law_of(others)
                    worst[record[1]] = max(worst[record[1]], loss_of(one, other))
    return worst


CASES = [
    (mechanism.name, query, spec)
    for mechanism in ALL
    if PRIVATE_LEVELS in mechanism.relations
    for query in QUERIES
    for spec in (FINITE, WITH_PUBLIC)
    if planned(spec, QUERIES[query], mechanism.name) is not None
]


@pytest.mark.parametrize(("name", "query", "spec"), CASES, ids=str)
def test_nobody_loses_more_than_their_charge(name, query, spec):
    plan = planned(spec, QUERIES[query], name)
    charges = plan.calibration.charges.tolist()
    lost = worst_losses(plan)
    for charge, level, most in zip(charges, spec.micro.tolist(), lost, strict=True):
        assert charge <= level
        assert charge == PUBLIC or most <= charge / MICRO + 1e-12
    if plan.method.linear is not None:  # noise is added, and nothing is thrown away
        assert lost == [0 if charge == PUBLIC else Fraction(charge, MICRO) for charge in charges]


@pytest.mark.parametrize(("query", "name"), [("mean", "affine"), ("median", "rank"), ("count", "minimum")])
def test_a_share_is_a_part_of_every_level(query, name):
    plan = planned(FINITE, QUERIES[query], name, share=0.37)
    assert all(c <= 0.37 * level for c, level in zip(plan.calibration.charges, FINITE.micro, strict=True))
    for charge, most in zip(plan.calibration.charges.tolist(), worst_losses(plan), strict=True):
        assert most <= charge / MICRO + 1e-12


@pytest.mark.parametrize(("query", "name"), [("mean", "affine"), ("count", "minimum")])
def test_a_plan_from_the_records_themselves_is_found_out(query, name):
    """τ, or a denominator, that follows from who is there: somebody loses more than their level."""
    plan = planned(FINITE, QUERIES[query], name)

    @cache
    def plan_of(levels):
        counts = {FINITE.levels[place]: 1 + levels.count(place) for place in (0, 1)}
        return accord.plan(Spec.from_groups(counts), plan.query, name, neighbors=PRIVATE)

    own = worst_or_leak(plan, lambda records: plan_of(tuple(place for _, place in records)))
    assert own > 1.1


def worst_or_leak(plan, plan_for):
    """The largest loss as a part of the level; infinite where the answer moves beside the noise."""
    try:
        lost = worst_losses(plan, plan_for)
    except Exception as leak:
        assert type(leak).__name__ == "Leak"
        return inf
    return max(float(most) / level for most, level in zip(lost, plan.spec.levels, strict=True))


# ---- what is offered ---------------------------------------------------------------------------------------


def test_totals_are_offered_where_everyone_counts_alike():
    for name in TOTALS:
        plan = accord.plan(FINITE, QUERIES[name], neighbors=PRIVATE)
        assert plan.mechanism == "minimum" and set(plan.charges.values()) == {0.3}
        refused = {c.mechanism: c.note for c in plan.candidates if c.rmse is None}
        assert refused["affine"] == (
            "does not count everyone alike, and how many have which level is private: "
            "a total would be off by that"
        )
        assert refused["mix"] == refused["pe"] == refused["stretch"] == "proves neighbors replace only"
    assert accord.plan(FINITE, QUERIES["mean"], neighbors=PRIVATE).mechanism != "midpoint"


def test_a_share_that_leaves_somebody_out_of_a_total_is_refused():
    spec = Spec.from_groups({0.000002: 5, 1: 100})
    with pytest.raises(PlanError, match="would leave out people whose level is too small for this share"):
        accord.plan(spec, QUERIES["count"], share=0.25, neighbors=PRIVATE)


@pytest.mark.parametrize("query", TOTALS)
def test_a_total_is_right_whatever_was_expected(query):
    """Of nine records, where 49 were expected: without noise it is their own total, whoever chose which level."""
    plan = planned(FINITE, QUERIES[query], "minimum")
    values = values_of(plan.query)
    records = [(values[k % len(values)], k % 2) for k in range(9)]
    value, _ = answer(plan, [summary_of_records(plan, records)], Fixed())
    rows = [row for row, _ in records]
    if query == "sum":
        assert value == pytest.approx(sum(row[0] - 1 for row in rows))
    elif query == "histogram":
        assert [*value.values()] == pytest.approx(np.sum(rows, axis=0).tolist())
    else:
        assert value == pytest.approx(sum(row[0] for row in rows))
    interval = plan.target.possible(plan.most_people)
    assert max(np.ravel([*interval.values()] if isinstance(interval, dict) else interval)) >= 2**52


def test_intervals_allow_for_any_numbers_of_people_by_level():
    """Σ(w − 1/n)² of any people whose weights lie between the least and the most is within what intervals are made of."""
    plan = planned(FINITE, accord.mean("x", (0, 2), std=1), "affine")
    charges = sorted(plan.charges.values())
    assert charges[0] < charges[1]
    planned_weight = 40 * charges[0] + 9 * charges[1]
    sampling, from_end = (getattr(plan.prediction.error_model.spread, of) for of in ("sampling", "from_end"))
    largest = 0.0
    for few, many in product(range(0, 200, 3), repeat=2):
        if few + many:
            w = np.repeat(charges, [few, many])
            factor, w = planned_weight / w.sum(), w / w.sum()
            assert sqrt(((w - 1 / w.size) ** 2).sum()) <= sqrt(factor) * sampling + 1e-12
            assert sqrt(((w - w.min()) ** 2).sum()) <= sqrt(factor) * from_end + 1e-12
            largest = max(largest, sqrt(((w - 1 / w.size) ** 2).sum()) / (sqrt(factor) * sampling))
    assert largest > 0.99  # and some people need all of it


# ---- on DuckDB ---------------------------------------------------------------------------------------------

TIERS = {"strict": 0.5, "open": 2.0, "public": inf, "out": 0}
EXPECTED = Spec.from_groups({"strict": 400, "open": 300, "public": 20}, TIERS)
NUMBERED = Spec.from_groups({0.5: 400, 2.0: 300, inf: 20})
PEOPLE = {"id": [1, 2, 3, 4], "x": [1.0, 2.0, 0.0, 1.0], "e": [0.5, 2.0, 2.0, inf]}
NAMES = {0.5: "strict", 2.0: "open", inf: "public", 0.0: "out"}


def opened(more=(), tiers=False, user="id", **options):
    rows = [*zip(*PEOPLE.values(), strict=True), *more]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(PEOPLE)}
    columns["x"] = np.array([nan if x is None else x for x in columns["x"]], dtype=float)
    if tiers:
        columns["tier"] = np.array(
            [NAMES.get(e, e if e is None else "odd") for e in columns["e"]], dtype=object
        )
        options = {"epsilon": "tier", "tiers": TIERS, "expected": EXPECTED, **options}
    else:
        options = {"epsilon": "e", "expected": NUMBERED, **options}
    columns["e"] = np.array([nan if e is None else e for e in columns["e"]], dtype=float)
    return accord.table(columns, user=user, levels="private", **options)


MORE = {
    "strict": [(5, 2.0, 0.5)],
    "public": [(5, 2.0, inf)],
    "opted out": [(5, 2.0, 0.0)],
    "not on the menu": [(5, 2.0, 1.25)],
    "NaN or NULL": [(5, 2.0, None)],
    "negative": [(5, 2.0, -1.0)],
    "too large": [(5, 2.0, 1e9)],
    "two rows of two levels": [(5, 2.0, 2.0), (5, 1.0, 0.5)],
    "a row without a level": [(5, 2.0, 2.0), (5, 1.0, None)],
    "a missing value": [(5, None, 2.0)],
}
COUNTED = {"strict": 1, "public": 1, "two rows of two levels": 1, "a missing value": 1}


@pytest.mark.parametrize("tiers", [False, True])
@pytest.mark.parametrize("more", MORE)
def test_whoever_is_there_decides_nothing_but_the_value(more, tiers, caplog):
    """Spec, plans, texts, receipts and logs are the same; odd levels are not refused, and not read."""
    shown = []
    for rows in ((), MORE[more]):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "accord"):
            people = opened(rows, tiers)
            plan = people.plan(QUERIES["mean"])
            release = people.release(plan)
        receipt = {
            k: v
            for k, v in release.receipt().items()
            if k not in ("time", "value", "interval", "rmse", "rmse_here")
        }
        shown.append(
            (
                repr(people), repr(people.spec()), people._repr_html_(), people.spec()._repr_html_(),
                str(plan), plan._repr_html_(), json.dumps(plan.describe()), receipt, release.charges, caplog.text,
                sorted(people.policy.items(), key=str),
            )
        )  # fmt: skip
    assert shown[0] == shown[1]
    everyone = opened(MORE[more], tiers).reader.summary(accord.count())
    assert everyone.amount[everyone.output == 0].sum() == 4 + COUNTED.get(more, 0)


def test_a_persons_level_is_that_of_their_strictest_row():
    summary = opened(MORE["two rows of two levels"]).reader.summary(accord.count())
    by_level = {
        NUMBERED.levels[k]: int(a)
        for k, o, a in zip(summary.level, summary.output, summary.amount, strict=True)
        if o == 0
    }
    assert by_level == {0.5: 2, 2.0: 2, inf: 1}


def test_spec_is_what_is_expected_and_says_so():
    people = opened()
    assert people.spec() == NUMBERED and people.spec().is_expected and not NUMBERED.is_expected
    assert repr(people.spec()) == "<Spec of 720 expected people. {0.5: 400, 2: 300, inf: 20}>"
    again = pickle.loads(pickle.dumps(people.spec()))
    assert again == people.spec() and again.is_expected
    receipt = people.release(QUERIES["count"]).receipt()
    assert receipt["spec"] == {
        "fingerprint": NUMBERED.fingerprint,
        "people": None,
        "opted_out": None,
        "expected": 720,
    }
    assert [entry["people"] for entry in receipt["charges"]] == [None] * 3
    assert receipt["neighbors"] == PRIVATE
    text = str(people.plan(QUERIES["mean"]))
    assert "expected, for as many people of each level as assumed" in text.replace("\n", " ")
    assert "how many have which is assumed, not counted" in text.replace("\n", " ")


def test_a_table_is_pickled_with_what_was_expected(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("x,e\n1,0.5\n2,2\n", encoding="utf-8")
    people = accord.table(str(path), epsilon="e", levels="private", expected=NUMBERED)
    again = pickle.loads(pickle.dumps(people))
    assert again.neighbors == PRIVATE and again.spec() == NUMBERED and again.spec().is_expected


def test_a_level_is_a_part_of_the_record_and_can_be_asked_about():
    """How many chose which tier is a private count like any other; so expectations can be corrected."""
    people = opened(tiers=True)
    query = accord.count(by="tier", keys=["strict", "open"])
    summaries = people.reader.summaries(people.plan(query).as_read)
    assert [int(s.amount[s.output == 0].sum()) for s in summaries] == [1, 2]


REFUSED = {
    "roster= says in public who could be in the table": (SourceError, lambda: opened(roster=NUMBERED)),
    "a consent register is public": (SourceError, lambda: opened(consent={"id": [1], "e": [0.5]})),
    "how many people have which level, so that they are not counted: give expected=Spec": (
        SourceError, lambda: opened(expected=None),
    ),
    "tier 'open' is the level 2, and expected= has nobody of it": (
        SpecError, lambda: opened(tiers=True, expected=Spec.from_groups({"strict": 4, "public": 1}, TIERS)),
    ),
    "default= is the level 0.25, and expected= has nobody of it": (SpecError, lambda: opened(default=0.25)),
    "neighbors='private-levels' are those of levels='private'": (
        SourceError, lambda: accord.table(PEOPLE, epsilon="e", neighbors=PRIVATE),
    ),
    "levels='secret' is not offered. It is 'public'": (
        SourceError, lambda: accord.table(PEOPLE, epsilon="e", levels="secret"),
    ),
    "expected= says for how many people of each level to plan where levels are private": (
        SourceError, lambda: accord.table(PEOPLE, epsilon="e", expected=NUMBERED),
    ),
    "it is private who is in the table, also of public people": (QueryError, lambda: opened().public("x")),
    "who is in the table is private, and so is who is in a group": (
        QueryError, lambda: opened().plan(accord.count(by="x", keys=[1, 2], membership="public")),
    ),
    "mix cannot answer the mean of x: proves neighbors replace only": (
        PlanError, lambda: opened().plan(QUERIES["mean"], "mix"),
    ),
    "affine cannot answer the count of people where x > 0: does not count everyone alike": (
        PlanError, lambda: opened().plan(QUERIES["count"], "affine"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_offered_is_refused_with_why(why):
    kind, ask = REFUSED[why]
    with pytest.raises(kind) as refusal:
        ask()
    assert why in str(refusal.value)


def test_an_algorithm_of_ones_own_is_run_on_who_is_kept_by_their_level():
    people = opened(user=None)
    release = accord.sample(lambda rows, epsilon: epsilon, people, "max", columns=["x"], rows="numpy")
    assert release.value <= 2 and isinstance(release.plan.calibration, SampleCalibration)
    assert release.charges == {0.5: 0.5, 2.0: 2.0, inf: 2.0}


def test_programs_show_the_same_in_neighboring_worlds():
    """Library and command line: values, plans, receipts, texts, errors, warnings and logs, given the noise."""
    worlds = [runner.random_world(seed) for seed in range(60)]
    private = [world for world in worlds if world.name == WITH_PRIVATE_LEVELS]
    assert len(private) >= 4
    for world in private[:6]:
        assert programs.difference(world) is None


# ---- where it is declared ----------------------------------------------------------------------------------

CSV = "x,tier\n" + "".join(f"{k},{('strict', 'open', 'odd')[k % 3]}\n" for k in range(60))
OPTIONS = ["--epsilon", "tier", "--tiers", "strict=0.5,open=2"]
EXPECTS = ["--expected", "strict=400,open=300"]
MEAN = ["mean", "x", "--bounds", "0", "100"]


def command(*words):
    return CliRunner().invoke(cli.main, list(words))


def test_the_command_line_says_the_same_of_neighboring_tables(tmp_path):
    shown = []
    for name, more in (("a", ""), ("b", "7,strict\n")):
        path = tmp_path / name / "people.csv"
        path.parent.mkdir()
        path.write_text(CSV + more, encoding="utf-8")
        done = [
            command(what, str(path), *MEAN, *OPTIONS, *EXPECTS, *json_)
            for what in ("plan", "whatif")
            for json_ in ([], ["--json"])
        ]
        assert all(each.exit_code == 0 for each in done), done[0].output
        released = command("release", str(path), *MEAN, *OPTIONS, *EXPECTS, "--json")
        document = json.loads(released.stdout)
        for entry in ("time", "value", "interval", "rmse", "rmse_here"):
            document.pop(entry)
        refused = command("release", str(path), *MEAN, *OPTIONS, *EXPECTS, "--mechanism", "mix")
        assert refused.exit_code == 1
        shown.append((*((each.stdout, each.stderr) for each in (*done, refused)), document, released.stderr))
    assert shown[0] == shown[1]
    assert document["spec"]["expected"] == 700 and document["neighbors"] == PRIVATE


@pytest.mark.parametrize(
    ("expected", "why"),
    [
        ("strict:400", "--expected has 'strict:400', which is not NAME=N"),
        ("strict=400,strict=3", "--expected has 'strict' twice"),
        ("strict=400", "tier 'open' is the level 2, and --expected has nobody of it"),
        ("strict=400,gold=3", "tier 'gold' is not declared"),
    ],
)
def test_what_is_expected_on_the_command_line_is_checked(expected, why, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(CSV, encoding="utf-8")
    done = command("plan", str(path), *MEAN, *OPTIONS, "--expected", expected)
    assert done.exit_code == 1 and why in done.stderr


CATALOG = """schema = 1
[tables.people]
source = "people.csv"
epsilon = "tier"
tiers = { strict = 0.5, open = 2 }
levels = "private"
[tables.people.expected]
strict = 400
open = 300
[tables.people.columns.x]
bounds = [0, 100]
"""


def test_a_description_says_it_once(tmp_path):
    (tmp_path / "people.csv").write_text(CSV, encoding="utf-8")
    file = tmp_path / "accord.toml"
    file.write_text(CATALOG, encoding="utf-8")
    people = accord.catalog(file)["people"]
    assert people.neighbors == PRIVATE and people.spec() == Spec.from_groups({0.5: 400, 2: 300})
    assert people.release(accord.mean("x")).plan.spec.is_expected


@pytest.mark.parametrize("opted_out", [0, 10])
def test_nothing_is_about_people_of_whom_nobody_knows_how_many_there_are(opted_out):
    """Whoever opted out would be in no error and no interval: of half of the people the interval never held."""
    expected = accord.Spec.from_groups({1.0: 100, 0: opted_out})
    people = accord.table(
        {"x": [0.0, 1.0], "e": [1.0, 0.0]}, epsilon="e", levels="private", expected=expected
    )
    question = accord.mean("x", bounds=(0, 1), gap=0.5, about="everyone")
    for asked in (question, accord.workload([question])):
        with pytest.raises(accord.errors.PlanError, match="where levels are private nobody knows it"):
            people.plan(asked)
    assert people.plan(accord.mean("x", bounds=(0, 1), gap=0.5)).bias_bound == 0
