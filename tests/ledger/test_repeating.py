"""The same question again about the same people and levels: its booked answer, free of charge, and marked as such."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

import accord
from accord.cli import main
from accord.errors import BudgetError, LedgerError
from accord.ledger import Ledger
from accord.people.reader import TableReader

KEY = "a key that only tests use"
RECEIPT = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs/schemas/receipt.json").read_text(encoding="utf-8"))
)
LEVELS = (8.0, 12.0, 20.0)
X = {"bounds": (0, 10), "step": 1}
BY = {"by": "g", "keys": ["a", "b", "c"]}
QUESTIONS = {
    "count": accord.count(),
    "count where": accord.count(where="x > 3"),
    "count by": accord.count(**BY),
    "sum": accord.sum("x", **X),
    "mean": accord.mean("x", **X),
    "mean of all values": accord.mean("x", **X, missing="none"),
    "mean where": accord.mean("x", **X, where="y < 5"),
    "mean by": accord.mean("x", **X, **BY),
    "mean by public": accord.mean("x", **X, **BY, membership="public"),
    "mean where public": accord.mean("x", **X, where="g = 'a'", membership="public"),
    "variance": accord.variance("x", **X),
    "std": accord.std("x", **X, **BY),
    "histogram": accord.histogram("g", categories=["a", "b"]),
    "median": accord.median("x", **X),
    "quantiles in values": accord.quantile("x", [0.25, 0.75], **X, interval="values"),
    "dates": accord.median("day", bounds=(date(2020, 1, 1), date(2021, 1, 1))),
    "min": accord.min("x", **X),
    "max where": accord.max("x", **X, where="y < 5"),
    "rows": accord.rows(max=3),
    "regression": accord.regression("x", ["y"], bounds={"x": (0, 10), "y": (0, 10)}),
    "workload": accord.workload([accord.mean("x", **X), accord.median("y", **X)]),
}


def opened(levels=None, shift=0):
    """Some people with several values; `shift` changes only these."""
    levels = levels or {k: LEVELS[k % 3] for k in range(30)}
    ids = list(levels)
    columns = {
        "id": ids,
        "x": [float((k + shift) % 11) if k % 7 else None for k in ids],
        "y": [float((3 * k + shift) % 11) for k in ids],
        "g": [("a", "b")[k % 2] for k in ids],
        "day": [date(2020, 1 + k % 12, 1) for k in ids],
        "level": list(levels.values()),
    }
    return accord.table(columns, epsilon="level", user="id")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "a.db", KEY)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def either(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "a.db"
    return Ledger(url, KEY)


def spent(ledger):
    return [(account.table, account.level, account.spent) for account in ledger.accounts()]


def ask(table, ledger, name="mean", share=0.2, **options):
    return table.release(QUESTIONS[name], share=share, ledger=ledger, **options)


# ---- what is given out again -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_the_same_answer_with_the_same_error_and_interval(name, ledger, monkeypatch):
    ledger.register(table := opened(), "people")
    first = ask(table, ledger, name)
    before = spent(ledger)

    def read(*_, **__):
        raise AssertionError("a value was read")

    for reads in ("summary", "summaries", "rows"):
        monkeypatch.setattr(TableReader, reads, read)
    again = ask(opened(), ledger, name)
    assert (again.value, again.interval()) == (first.value, first.interval())
    assert [part.rmse for part in again.parts] == [part.rmse for part in first.parts]
    assert again.interval_in_values(0.8) == first.interval_in_values(0.8)
    assert [part.released for part in again.parts] == [part.released for part in first.parts]
    assert [part.time for part in again.parts] == [part.time for part in first.parts]
    assert spent(ledger) == before and ledger.verify().problems == ()
    assert first.repeated is None and again.repeated.entry == len(ledger.entries())
    receipts = first.receipt(), again.receipt()
    RECEIPT.validate(receipts[1])
    assert "repeated" not in json.dumps(receipts[0]) and "repeated" in json.dumps(receipts[1])
    text = str(again)
    assert "Nobody is charged" in text and "--fresh" in text and "Nobody is charged" not in str(first)


def test_nobody_is_charged_by_it_and_every_level_is_told_so(ledger):
    ledger.register(table := opened(), "people")
    first, again = ask(table, ledger), ask(table, ledger)
    assert set(again.charges.values()) == {0.0} and max(first.charges.values()) > 0
    assert again.plan.charges == first.charges and again.booked == first.booked
    assert {line["charge"] for line in again.receipt()["charges"]} == {"0"}
    groups = [ask(table, ledger, "mean by public") for _ in range(2)]
    assert {c for charges in groups[1].charges.values() for c in charges.values()} == {0.0}
    both = [ask(table, ledger, "workload") for _ in range(2)]
    assert {c for part in (both[1], *both[1].parts) for c in part.charges.values()} == {0.0}


def test_it_is_given_out_also_when_nothing_is_left(either):
    ledger = either
    ledger.register(table := opened(), "people")
    first = ask(table, ledger, share=1.0)
    with pytest.raises(BudgetError):
        ask(table, ledger, share=1.0, fresh=True)
    assert ask(table, ledger, share=1.0).value == first.value
    rest = accord.table({"id": [101, 102], "x": [1.0, 2.0], "level": [3.0, 3.0]}, epsilon="level", user="id")
    ledger.register(rest, "rest")
    plan = accord.plan(ledger.remaining(rest), accord.count(where="x > 1"), "minimum")
    assert rest.release(plan, ledger=ledger).value == rest.release(plan, ledger=ledger).value
    assert ledger.verify().problems == ()


def test_who_asked_again_is_booked_and_required(either):
    ledger = either
    ledger.register(table := opened(), "people")
    ask(table, ledger, actor="A", purpose="a report")
    ask(table, ledger, actor="B", purpose="another report")
    (event,) = ledger.history(kind="repeat")
    assert (event["actor"], event["purpose"], event["tables"]) == ("B", "another report", ["people"])
    assert event["queries"] == ["mean of x"] and event["of"] == [3] and event["entry"] == 4
    assert len(ledger.history()) == 1  # it is no release of its own
    ledger.require("actor")
    with pytest.raises(LedgerError, match="requires actor"):
        ask(table, ledger)
    assert ledger.verify().problems == ()


def test_of_several_fresh_draws_the_newest_is_given_out(ledger):
    ledger.register(table := opened(), "people")
    drawn = [ask(table, ledger, fresh=True) for _ in range(3)]
    assert ask(table, ledger).booked == drawn[-1].booked


def test_values_that_changed_are_not_in_it_and_it_says_from_when_it_is(ledger):
    """A ledger knows who is in a table, with which level, and no value."""
    ledger.register(table := opened(), "people")
    first = ask(table, ledger, "sum")
    again = ask(opened(shift=1), ledger, "sum")
    assert again.value == first.value and f"{first.time:%Y-%m-%d %H:%M}" in " ".join(str(again).split())
    assert ask(opened(shift=1), ledger, "sum", fresh=True).repeated is None


# ---- what is not -----------------------------------------------------------------------------------------------------------


def test_another_question_is_drawn_and_charged(ledger):
    """Another share, mechanism or t, other bounds, another version, or an algorithm of one's own."""
    ledger.register(table := opened(), "people")
    mean = accord.mean("x", **X)
    table.release(mean, "sample", 0.01, ledger=ledger)
    others = [
        lambda: table.release(mean, "sample", 0.02, ledger=ledger),
        lambda: table.release(mean, "affine", 0.01, ledger=ledger),
        lambda: table.release(mean, "sample", 0.01, t=0.002, ledger=ledger),
        lambda: table.release(accord.mean("x", bounds=(0, 10), step=2), "sample", 0.01, ledger=ledger),
        lambda: table.release(accord.mean("x", bounds=(0, 9), step=1), "sample", 0.01, ledger=ledger),
        lambda: table.release(accord.mean("y", **X), "sample", 0.01, ledger=ledger),
        lambda: table.release(mean, "sample", 0.01, report_missing=0.1, ledger=ledger),
    ]
    assert [each().repeated for each in others] == [None] * len(others)
    for _ in range(2):
        kept = accord.sample(lambda rows, epsilon: 1.0, table, share=0.01, ledger=ledger, columns=["x"])
        assert kept.repeated is None
    lowered = {k: LEVELS[k % 3] for k in range(30)} | {1: 9.0}
    ledger.register(newer := opened(lowered), "people")
    assert newer.release(mean, "sample", 0.01, ledger=ledger).repeated is None
    assert ledger.history(kind="repeat") == [] and ledger.verify().problems == ()


def test_somebody_who_withdrew_since_is_in_no_answer_that_is_given_out(either):
    ledger = either
    ledger.register(table := opened(), "people")
    ask(table, ledger)
    ledger.withdraw(1)
    with pytest.raises(BudgetError, match="1 person has withdrawn"):
        ask(table, ledger)
    ledger.readmit(1, actor="A", purpose="a letter")
    assert ask(table, ledger).repeated is None  # a new draw, which is charged
    assert ask(table, ledger).repeated is not None


def test_without_a_ledger_everything_is_drawn():
    table = opened()
    releases = [table.release(QUESTIONS["mean"], share=0.1, fresh=fresh) for fresh in (False, False, True)]
    assert [release.repeated for release in releases] == [None] * 3
    assert len({release.value for release in releases}) == 3


def test_an_answer_that_failed_is_not_given_out(ledger, monkeypatch):
    ledger.register(table := opened(), "people")
    with monkeypatch.context() as patched:
        patched.setattr(TableReader, "summaries", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask(table, ledger)
    assert ask(table, ledger).repeated is None


def test_an_index_that_was_changed_leads_to_no_other_answer(ledger, tmp_path):
    ledger.register(table := opened(), "people")
    ask(table, ledger, "mean")
    ask(table, ledger, "sum")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("UPDATE accord_answer SET entry = 5 WHERE entry = 3")
        connection.commit()
    with pytest.raises(LedgerError, match="an answer is stored under another question"):
        ask(table, ledger, "mean")
    assert ledger.verify().problems == (
        "which questions have been answered is not what follows from the entries",
    )


# ---- the fingerprint -------------------------------------------------------------------------------------------------------


def test_plans_of_different_questions_have_different_fingerprints():
    table = opened()
    plans = [table.plan(query, share=0.2) for query in QUESTIONS.values()]
    again = [opened().plan(query, share=0.2) for query in QUESTIONS.values()]
    assert [plan.fingerprint for plan in plans] == [plan.fingerprint for plan in again]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "workload"])
def test_every_field_of_a_question_is_in_the_fingerprint(name):
    """Whatever a statistic will have: another value of any field is another question."""
    plan = opened().plan(QUESTIONS[name], share=0.2)
    for field in fields(plan.query):
        other = replace(plan, query=replacing(plan.query, field.name))
        assert other.fingerprint != plan.fingerprint, field.name


def replacing(query, name):
    """A question with something else in one field; it need not make sense."""
    changed = object.__new__(type(query))
    vars(changed).update(vars(query) | {name: ("something else", getattr(query, name))})
    return changed


# ---- on the command line ---------------------------------------------------------------------------------------------------


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,x,level\n1,2,50\n2,3,50\n", encoding="utf-8")
    levels = ["--epsilon", "level", "--user", "id"]

    def run(*arguments):
        done = CliRunner().invoke(main, list(arguments))
        assert done.exit_code == 0, done.output
        return done.stdout

    def release(*more):
        words = ["people.csv", "mean", "x", "--bounds", "0", "10", *levels]
        return run("release", *words, "--ledger", "a.db", "--share", "0.1", *more)

    run("ledger", "init", "a.db")
    run("ledger", "register", "a.db", "people", "people.csv", *levels)
    first, again = json.loads(release("--json")), json.loads(release("--json"))
    assert again["value"] == first["value"] and again["repeated"]["entry"] == 4
    assert "Asked before: this is the answer of" in " ".join(release().split())
    assert "repeated" not in json.loads(release("--json", "--fresh"))
    assert "given out again: mean of x" in " ".join(
        run("ledger", "history", "a.db", "--kind", "repeat").split()
    )
    assert [a.spent for a in Ledger("a.db").accounts()] == [(10.0, 10.0)]
