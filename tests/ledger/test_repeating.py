"""The same question again about the same people and levels: its booked answer, free of charge, and marked as such."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

import accord
from accord.cli import main
from accord.errors import BudgetError, LedgerError, PlanError
from accord.ledger import Ledger, chain
from accord.people.reader import TableReader
from accord.planning import digest_of

KEY = "a key that only tests use"
RECEIPT = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs/schemas/receipt.json").read_text(encoding="utf-8"))
)
LEVELS = (8.0, 12.0, 20.0)
WORDS = ["release", "people.csv", "mean", "x", "--bounds", "0", "10"]
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
    pq.write_table(pa.table(columns), "people.parquet")
    return accord.table("people.parquet", epsilon="level", user="id")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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


def test_it_is_given_out_also_where_somebody_was_opted_out_from_the_beginning(ledger):
    levels = {k: LEVELS[k % 3] if k else 0.0 for k in range(30)}
    ledger.register(table := opened(levels), "people")
    first, again = ask(table, ledger), ask(table, ledger)
    assert again.value == first.value and again.repeated is not None


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


def test_whatever_shows_an_answer_marks_it(ledger):
    ledger.register(table := opened(), "people")
    first, again = ask(table, ledger), ask(table, ledger)
    assert "given out again: of 2" in repr(again) and "given out again" not in repr(first)
    assert first.to_pandas().attrs["repeated"] is False
    assert again.to_pandas().attrs == {"time": str(first.time), "repeated": True}
    assert "Nobody is charged" in again._repr_html_()
    both = [ask(table, ledger, "workload") for _ in range(2)]
    assert "given out again" in repr(both[1])


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


@pytest.mark.parametrize("level", [12.0, 0.000001])
def test_nor_somebody_who_opted_out_elsewhere(level, ledger):
    """Level 0 in one table is an opt-out of all."""
    ledger.register(table := opened({k: LEVELS[k % 3] for k in range(30)} | {1: level}), "people")
    asked = {"mechanism": "proportional", "share": 1.0}
    ask(table, ledger, **asked)
    assert ask(table, ledger, **asked).repeated is not None
    other = accord.table({"id": [1, 99], "x": [1.0, 2.0], "level": [0.0, 1.0]}, epsilon="level", user="id")
    ledger.register(other, "other")
    with pytest.raises(BudgetError):
        ask(table, ledger, **asked)


def visits(rows):
    """Two people with a visit in each of two years, as a file."""
    columns = {"id": [1, 2, 1, 2], "x": rows, "year": [2025, 2025, 2026, 2026], "level": [20.0] * 4}
    pq.write_table(pa.table(columns), "visits.parquet")
    return accord.table("visits.parquet", epsilon="level", user="id")


def test_another_public_group_of_the_same_people_is_another_question(ledger):
    ledger.register(table := visits([1.0, 1.0, 9.0, 9.0]), "visits")
    mean = {"column": "x", **X, "missing": "none"}
    asked = [
        accord.mean(**mean, where="year = 2025", membership="public"),
        accord.mean(**mean, where="year = 2026", membership="public"),
        accord.mean(**mean),
    ]
    answers = [table.release(each, "minimum", 0.2, ledger=ledger) for each in asked]
    assert [answer.repeated for answer in answers] == [None] * 3
    again = table.release(
        accord.mean(**mean, where="(year=2026)", membership="public"), "minimum", 0.2, ledger=ledger
    )
    assert again.value == answers[1].value and again.repeated is not None  # however it is written


@pytest.mark.parametrize("name", ["people", "others"])
def test_other_people_with_the_same_levels_are_asked_anew(name, ledger):
    """In the same file, as a new version of the table or as another one: the plan is the same, the people are not."""
    ledger.register(table := opened(), "people")
    before = table.plan(QUESTIONS["mean"], share=0.2)
    ask(table, ledger)
    ledger.register(others := opened({k: LEVELS[k % 3] for k in range(3, 33)}), name)
    assert others.plan(QUESTIONS["mean"], share=0.2).fingerprint == before.fingerprint
    assert ask(others, ledger).repeated is None and ask(others, ledger).repeated is not None
    assert ledger.verify().problems == ()


def test_other_rows_of_the_same_people_are_another_table(ledger, tmp_path):
    """Another file, a relation, or what is in memory: the ledger knows them as the table that they are like."""
    ledger.register(table := opened(), "people")
    first = ask(table, ledger, share=0.05)
    Path("people.parquet").rename("later.parquet")
    other = accord.table("later.parquet", epsilon="level", user="id")
    assert ask(other, ledger, share=0.05).repeated is None
    relation = duckdb.connect().sql(f"SELECT * REPLACE (10 - x AS x) FROM '{tmp_path / 'later.parquet'}'")
    in_memory = accord.table(relation, epsilon="level", user="id")
    assert ask(in_memory, ledger, share=0.05).repeated is None
    assert ask(in_memory, ledger, share=0.05).repeated is not None  # while it is open
    assert ask(accord.table(relation, epsilon="level", user="id"), ledger, share=0.05).repeated is None
    assert ask(opened(), ledger, share=0.05).value == first.value
    ledger.register(other, "later")  # two tables with the same people and levels
    assert ask(other, ledger, share=0.05).repeated is not None
    assert ask(opened(), ledger, share=0.05).value == first.value and ledger.verify().problems == ()


def test_plans_from_what_is_left_are_drawn(ledger):
    """Their Spec says how many have how much left, and not who."""
    ledger.register(table := opened(), "people")
    plan = accord.plan(ledger.remaining(table), QUESTIONS["mean"], "minimum", 0.1)
    assert table.release(plan, ledger=ledger).repeated is None
    assert plan.spec.is_rest and table.release(plan, "auto", ledger=ledger).repeated is None


@pytest.mark.parametrize("fresh", [1, 0, "no", None])
def test_fresh_is_true_or_false(fresh, ledger):
    ledger.register(table := opened(), "people")
    with pytest.raises(PlanError, match="is not True or False"):
        ask(table, ledger, fresh=fresh)
    assert len(ledger.entries()) == 1


def test_groups_that_were_answered_at_several_times_say_so(ledger):
    ledger.register(table := opened(), "people")
    answer = ask(table, ledger, "mean by public")
    again = ask(table, ledger, "mean by public")
    late = {
        key: part and replace(part, time=part.time + timedelta(days=k))
        for k, (key, part) in enumerate(again.by_part.items())
    }
    text = " ".join(str(replace(again, by_part=late)).split())
    first = answer.parts[0].time
    assert f"the answer of {first:%Y-%m-%d %H:%M} to {first + timedelta(days=1):%Y-%m-%d}" in text


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


@pytest.mark.parametrize("key", ["another key that only tests use", None])
def test_an_answer_that_somebody_else_wrote_is_not_given_out(key, ledger, tmp_path):
    """With another key; or with the seal that the entry had, and the hash that it should have."""
    ledger.register(table := opened(), "people")
    ask(table, ledger, "mean")
    ask(table, ledger, "sum")
    entries = ledger.entries()
    content = entries[2].content | {"released": [["12345/6789"]]}
    seal = Ledger(tmp_path / "b.db", key).books.required_key().seal if key else lambda _: entries[2].seal
    forged = chain.next_entry(entries[1], "release", content, seal)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute(
            "UPDATE accord_entry SET body = ?, hash = ?, seal = ?, time = ? WHERE seq = 3",
            (forged.body, forged.hash, forged.seal, forged.time),
        )
        connection.commit()
    with pytest.raises(LedgerError, match="the entry of an answer is not what was written"):
        ask(table, ledger, "mean")


# ---- the fingerprint -------------------------------------------------------------------------------------------------------


def test_plans_of_different_questions_have_different_fingerprints():
    table = opened()
    plans = [table.plan(query, share=0.2) for query in QUESTIONS.values()]
    again = [opened().plan(query, share=0.2) for query in QUESTIONS.values()]
    assert [plan.fingerprint for plan in plans] == [plan.fingerprint for plan in again]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "workload"])
def test_every_field_of_a_question_is_in_the_fingerprint(name):
    """Whatever a statistic will have: another value of any field is another question, but for the words of a condition."""
    plan = opened().plan(QUESTIONS[name], share=0.2)
    for field in fields(plan.query):
        if isinstance(plan.query, accord.statistics.Count) and field.name == "where":
            continue
        other = replace(plan, query=replacing(plan.query, field.name))
        assert other.fingerprint != plan.fingerprint, field.name


def test_charges_are_in_the_fingerprint_where_everything_else_is_the_same():
    """Everyone weighs the same at both thresholds: only what is charged, and the noise, differ."""
    cheaper, dearer = (opened().plan(QUESTIONS["mean"], "threshold", t=t) for t in (4.0, 8.0))
    assert cheaper.calibration.weights.tolist() == dearer.calibration.weights.tolist()
    assert cheaper.fingerprint != dearer.fingerprint


def test_a_digest_is_of_what_is_there_and_not_of_its_order_in_memory():
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert one == other and list(one) != list(other)
    assert digest_of(one) == digest_of(other) != digest_of((0, 8))
    assert len({digest_of(value) for value in ((1, 2), (12,), ("1, 2",), (1.0, 2), (True, 2), [1, 2])}) == 6
    with pytest.raises(TypeError, match="object is not plain data"):
        digest_of(object())


def replacing(query, name):
    """A question with something else in one field; it need not make sense."""
    changed = object.__new__(type(query))
    vars(changed).update(vars(query) | {name: ("something else", getattr(query, name))})
    return changed


WRITTEN = {
    "count": (accord.count(where="x>.5 and not g='a'"), accord.count(where="x > 0.5 AND NOT g = 'a'")),
    "proportion": (accord.proportion("x>.5"), accord.proportion("x > 0.50")),
    "both": (accord.proportion("x>.5", where="y<5"), accord.proportion("x > 0.5", where="y < 5.0")),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_how_a_condition_is_written_is_no_other_question(name, ledger):
    """It was charged twice."""
    ledger.register(table := opened(), "people")
    one, other = WRITTEN[name]
    first = table.release(one, share=0.2, ledger=ledger)
    before = spent(ledger)
    again = table.release(other, share=0.2, ledger=ledger)
    assert again.repeated is not None and again.value == first.value and spent(ledger) == before
    assert table.release(accord.count(where="x > 0.25"), share=0.2, ledger=ledger).repeated is None


@pytest.mark.parametrize("name", WRITTEN)
def test_an_answer_that_was_booked_by_the_words_of_its_condition_is_given_out_again(
    name, ledger, monkeypatch
):
    """Ledgers have such answers from before: to the same words, as ever."""
    ledger.register(table := opened(), "people")
    one, other = WRITTEN[name]
    with monkeypatch.context() as before:
        before.setattr(accord.planning.Plan, "fingerprint", property(accord.planning.fingerprint_as_written))
        first = table.release(one, share=0.2, ledger=ledger)
    booked = spent(ledger)
    again = table.release(one, share=0.2, ledger=ledger)
    assert again.repeated is not None and again.value == first.value and spent(ledger) == booked
    assert table.release(other, share=0.2, ledger=ledger).repeated is None
    assert ledger.verify().problems == ()


# ---- on the command line ---------------------------------------------------------------------------------------------------


def test_the_command_line():
    Path("people.csv").write_text("id,x,level\n1,2,50\n2,3,50\n", encoding="utf-8")
    levels = ["--epsilon", "level", "--user", "id"]

    def run(*arguments):
        done = CliRunner().invoke(main, list(arguments))
        assert done.exit_code == 0, done.output
        return done.stdout

    def release(*more):
        return run(*WORDS, *levels, "--ledger", "a.db", "--share", "0.1", *more)

    run("ledger", "init", "a.db")
    run("ledger", "register", "a.db", "people", "people.csv", *levels)
    first = json.loads(release("--json"))
    again = CliRunner().invoke(main, [*WORDS, *levels, "--ledger", "a.db", "--share", "0.1", "--json"])
    assert "Asked before: this is the answer of" in again.stderr
    again = json.loads(again.stdout)
    assert again["value"] == first["value"] and again["repeated"]["entry"] == 4
    assert "Asked before: this is the answer of" in " ".join(release().split())
    assert "repeated" not in json.loads(release("--json", "--fresh"))
    assert "given out again: mean of x" in " ".join(
        run("ledger", "history", "a.db", "--kind", "repeat").split()
    )
    assert [a.spent for a in Ledger("a.db").accounts()] == [(10.0, 10.0)]
