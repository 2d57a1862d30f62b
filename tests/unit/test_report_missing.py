"""`report_missing=`: how many people have no value that a question can read, for a stated part of the charge."""

import datetime
import json
from fractions import Fraction
from math import inf

import pyarrow as pa
import pytest
from click.testing import CliRunner

import accord
from accord.budget import to_float
from accord.cli import main
from accord.errors import PlanError, QueryError
from accord.statistics.missing import MISSING, READABLE

N = 8
PEOPLE = {
    "v": [1.0, None, float("nan"), float("inf"), 5.0, 6.0, None, 8.0],
    "day": [None, *(datetime.date(2026, 1, k) for k in range(1, 8))],
    "g": ["a", "a", "a", "b", "b", "b", "b", "c"],
    "who": [1, 1, 2, 2, 3, 3, 4, 4],
}


def people(epsilon=inf, **options):
    return accord.table(pa.table(PEOPLE), epsilon=epsilon, **options)


def reported(query, **options):
    """The exact counts, where everyone is public."""
    release = people(**options).release(query, "minimum", report_missing=0.5)
    cells = release.parts[1].value
    return [cells[READABLE], cells[MISSING]] if isinstance(cells, dict) else cells


@pytest.mark.parametrize("missing", ["exclude", "middle", 3])
@pytest.mark.parametrize(
    "ask", [accord.mean, accord.sum, accord.variance, accord.median, accord.min, accord.max]
)
def test_people_without_a_value_are_counted_whatever_they_count_as(ask, missing):
    assert reported(ask("v", bounds=(0, 10), step=1, missing=missing)) == [4, 4]


@pytest.mark.parametrize("missing", ["exclude", "middle"])
def test_it_is_about_those_whom_the_question_is_about(missing):
    query = accord.mean("v", bounds=(0, 10), step=1, missing=missing, where="g = 'a' OR g = 'b'")
    assert reported(query) == [3, 4]
    query = accord.mean("v", bounds=(0, 10), missing=missing, where="g = 'a' AND who = 1")
    assert reported(query) == [1, 1]
    rows = reported(accord.mean("v", bounds=(0, 10), step=1, missing=missing, by="g", keys=["a", "b"]))
    assert [row["value"] for row in rows] == [{READABLE: 1, MISSING: 2}, {READABLE: 2, MISSING: 2}]


@pytest.mark.parametrize("missing", ["exclude", "middle"])
def test_a_person_has_a_value_if_any_row_has(missing):
    assert reported(accord.mean("v", bounds=(0, 10), missing=missing), user="who") == [3, 1]
    query = accord.mean("v", bounds=(0, 10), missing=missing, where="g <> 'c'")
    assert reported(query, user="who") == [2, 2]


def test_dates_edges_and_columns_without_a_type():
    assert reported(accord.median("day", bounds=("2026-01-01", "2026-12-31"))) == [7, 1]
    assert reported(accord.histogram("day", edges=["2026-01-01", "2026-01-02", "2026-12-31"])) == [7, 1]
    assert reported(accord.histogram("v", edges=[0, 2, 10])) == [4, 4]
    texts = accord.table({"v": ["1,5", "2", "n/a", ""]}, epsilon=inf)
    report = texts.release(accord.mean("v", bounds=(0, 10)), "minimum", report_missing=0.1).parts[1]
    assert report.value == {READABLE: 1, MISSING: 3}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_both_together_cost_no_more_than_the_share(neighbors):
    spec = accord.Spec.from_groups({0.1: 500, 1.0: 400, inf: 100})
    query = accord.mean("v", bounds=(0, 10), missing="exclude")
    for share in (1.0, 0.3):
        plan = accord.plan(spec, query, share=share, report_missing=0.05, neighbors=neighbors)
        statistic, report = plan.parts
        for level in spec.levels[:-1]:
            assert Fraction(str(report.charges[level])) <= Fraction(str(level)) * Fraction(str(share)) / 20
            assert Fraction(str(plan.charges[level])) <= Fraction(str(level)) * Fraction(str(share))
        assert report.reads_data and plan.charges[0.1] == to_float(int(plan.cost[0]))
        assert statistic.charges[1.0] <= 0.95 * share


def test_a_mechanism_is_named_for_the_statistic_alone():
    spec = accord.Spec.from_groups({0.1: 500, 1.0: 400})
    median = accord.median("v", bounds=(0, 10), missing="none")
    statistic, report = accord.plan(spec, median, "pe", report_missing=0.1).parts
    assert statistic.mechanism == "pe" and report.mechanism != "pe"
    with pytest.raises(PlanError, match="t= is for one question"):
        accord.plan(spec, accord.mean("v", bounds=(0, 1)), "threshold", t=1, report_missing=0.1)


def test_a_ledger_books_both(tmp_path):
    ledger = accord.Ledger(str(tmp_path / "accord.db"))
    table = accord.table({"who": list(range(1000)), "v": ["1", "x"] * 500}, epsilon=1.0, user="who")
    ledger.register(table, "people")
    query = accord.mean("v", bounds=(0, 2))
    release = table.release(query, share=0.5, report_missing=0.1, ledger=ledger)
    assert 300 < release.value[1][MISSING] < 700
    assert sum(release.charges.values()) == pytest.approx(0.5)
    receipt = release.receipt()
    assert receipt["report_missing"] == "0.1"
    assert set(receipt["receipts"][1]["interval"]["bounds"]) == {READABLE, MISSING}
    assert ledger.remaining(table).levels == (0.5,)
    json.dumps(receipt)


def test_what_is_shown(tmp_path):
    table = accord.table({"v": ["1", "2,5"] * 4000}, epsilon=inf)
    query = accord.mean("v", bounds=(0, 10))
    shown = str(table.release(query, "minimum", report_missing=0.05))
    assert "About 4,000 people have no readable v, 4,000 have one: 95 % 4,000 … 4,000 without." in shown
    plan = str(accord.table({"v": ["1", "2,5"] * 4000}, epsilon=1.0).plan(query, report_missing=0.05))
    assert "people with and without a readable v" in plan
    assert "0.05 of what may be spent is for how many people have no readable value." in plan


def test_a_report_that_contradicts_the_question_says_so():
    table = accord.table({"v": ["1", "2,5"] * 4000}, epsilon=inf)
    for missing, is_said in (("none", True), ("exclude", False), ("middle", False)):
        query = accord.mean("v", bounds=(0, 10), missing=missing)
        shown = " ".join(str(table.release(query, "minimum", report_missing=0.05)).split())
        assert ("The question declares that no value is missing. That is not so" in shown) == is_said
    complete = accord.table({"v": ["1", "2.5"] * 4000}, epsilon=1.0)
    query = accord.mean("v", bounds=(0, 10), missing="none")
    assert "That is not so" not in str(complete.release(query, report_missing=0.05))


def test_the_command_line(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["v,e", *["1,1", "x,1"] * 500]))
    words = [str(path), "mean", "v", "--bounds", "0", "2", "--epsilon", "e"]

    def run(*more):
        return CliRunner().invoke(main, [*more[:1], *words, *more[1:]])

    done = json.loads(run("release", "--report-missing", "0.1", "--json").stdout)
    assert done["report_missing"] == "0.1"
    assert 300 < done["receipts"][1]["value"][MISSING] < 700
    assert "have no readable v" in run("release", "--report-missing", "0.1").stdout
    assert "Leave --report-missing out" in run("whatif", "--report-missing", "0.1").output
    assert (
        "Leave it or --report-missing out" in run("plan", "--report-missing", "0.1", "--plot", "x.png").output
    )


def test_a_plan_has_its_questions_already():
    plan = people().plan(accord.mean("v", bounds=(0, 1)))
    with pytest.raises(
        PlanError, match=r"a plan has its questions already\. Give report_missing= when planning"
    ):
        people().release(plan, report_missing=0.1)


@pytest.mark.parametrize(
    ("query", "part", "message"),
    [
        (
            accord.mean("v", bounds=(0, 1)),
            1.5,
            "report_missing=1.5 is not a part of the charge. "
            "Give a number between 0 and 1: 0.05 spends a twentieth on it.",
        ),
        (accord.mean("v", bounds=(0, 1)), "much", "report_missing is 'much'. It must be a finite number."),
        (
            accord.count(where="v > 1"),
            0.1,
            "report_missing= is about the values of one column between bounds or edges, "
            "and 'count of people where v > 1' has none. Leave it out.",
        ),
        (
            accord.histogram("g", categories=["a", "b"]),
            0.1,
            "report_missing= is about the values of one column between bounds or edges, "
            "and 'histogram of g' has none. Leave it out.",
        ),
        (
            accord.mean("v", bounds=(0, 1), by="g", keys=["a"], membership="public"),
            0.1,
            "report_missing= is about everyone, or about private groups: public groups have charges of their "
            "own. Leave it out, or ask about one of them with where=.",
        ),
        (
            accord.workload([accord.mean("v", bounds=(0, 1))]),
            0.1,
            "report_missing= is about the values of one column between bounds or edges, "
            "and '1 questions' has none. Leave it out.",
        ),
    ],
)
def test_what_cannot_be_reported_is_refused(query, part, message):
    for ask in (people().plan, people().release):
        with pytest.raises(QueryError) as refused:
            ask(query, report_missing=part)
        assert str(refused.value) == message
