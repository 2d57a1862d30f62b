"""Who asked, and why: booked with what they asked for, required if the ledger says so, and found in the history."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.engines.duckdb import DuckDB
from accord.errors import LedgerError
from accord.ledger import Ledger
from accord.ledger.chain import Replay

KEY = "a key that only tests use"
MEAN = accord.mean("x", bounds=(0, 10), step=1, missing="none")
SIGNED = {"actor": "J. Doe", "purpose": "the yearly report"}
LEVELS = {1: 1.0, 2: 1.0, 3: 2.0}


def opened(levels=LEVELS):
    columns = {"id": list(levels), "x": [1.0] * len(levels), "g": ["a", "b", "b"][: len(levels)]}
    return accord.table(columns | {"level": list(levels.values())}, epsilon="level", user="id")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "a.db"
    return Ledger(url, KEY)


def asked(table, ledger, **said):
    """Releases of every kind."""
    by = {"by": "g", "keys": ["a", "b"], "membership": "public"}
    both = accord.workload([MEAN, accord.count(where="x > 3")])
    return {
        "query": lambda: table.release(MEAN, "minimum", 0.1, ledger=ledger, **said, fresh=True),
        "plan": lambda: table.release(table.plan(MEAN, "minimum", 0.1), ledger=ledger, **said, fresh=True),
        "rest": lambda: table.release(accord.plan(ledger.remaining(table), MEAN, "minimum", 0.1), ledger=ledger, **said, fresh=True),
        "workload": lambda: table.release(both, "minimum", 0.1, ledger=ledger, **said, fresh=True),
        "groups": lambda: table.release(accord.mean("x", bounds=(0, 10), **by), "minimum", 0.1, ledger=ledger, **said, fresh=True),
        "sample": lambda: accord.sample(lambda rows, epsilon: 1.0, table, share=0.1, ledger=ledger, columns=["x"], **said),
    }  # fmt: skip


def test_who_asked_and_why_is_booked_with_every_kind_of_release(ledger):
    ledger.register(table := opened(), "people")
    for release in asked(table, ledger, **SIGNED).values():
        release()
    reserved = [entry.content for entry in ledger.entries() if entry.kind == "reserve"]
    assert len(reserved) == 7 and all(content | SIGNED == content for content in reserved)
    assert all(event | SIGNED == event for event in ledger.history())
    groups = [entry.content for entry in ledger.entries() if entry.content.get("group_of")]
    assert len(groups) == 2 and all(content | SIGNED == content for content in groups)
    table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    assert (ledger.history()[-1]["actor"], ledger.history()[-1]["purpose"]) == (None, None)
    assert ledger.verify().problems == ()


def test_it_is_booked_in_a_ledger_or_not_taken():
    table = opened()
    for said in ({"actor": "me"}, {"purpose": "because"}):
        with pytest.raises(LedgerError, match=r"booked in a ledger\. Give ledger="):
            table.release(MEAN, **said)
    with pytest.raises(LedgerError, match="purpose= is not a line of text"):
        table.release(MEAN, purpose="two\nlines")


def nothing_is_read(monkeypatch):
    def read(*args, **options):
        raise AssertionError("read")

    for name in ("fetch", "rows"):
        monkeypatch.setattr(DuckDB, name, read)


@pytest.mark.parametrize("missing", ["actor", "purpose"])
def test_what_a_ledger_requires_is_required_before_anything_is_read(ledger, missing):
    ledger.register(table := opened(), "people")
    entry = ledger.require("purpose", "actor", actor="the office")
    assert (entry.kind, entry.content["require"], entry.content["actor"]) == (
        "policy",
        ["actor", "purpose"],
        "the office",
    )
    said = {name: text for name, text in SIGNED.items() if name != missing}
    calls = {
        "query": lambda: table.release(MEAN, "minimum", 0.1, ledger=ledger, **said, fresh=True),
        "workload": lambda: table.release(accord.workload([MEAN]), "minimum", 0.1, ledger=ledger, **said, fresh=True),
        "sample": lambda: accord.sample(lambda rows, epsilon: 1.0, table, share=0.1, ledger=ledger, columns=["x"], **said),
        "register": lambda: ledger.register(opened({1: 0.5}), "people", **said),
        "withdraw": lambda: ledger.withdraw(1, **said),
        "require": lambda: ledger.require(**said),
    }  # fmt: skip
    before = ledger.accounts(), ledger.entries(), ledger.export()
    with pytest.MonkeyPatch.context() as patch:
        nothing_is_read(patch)
        for name, call in calls.items():
            with pytest.raises(LedgerError) as refusal:
                call()
            assert str(refusal.value) == (
                "this ledger requires actor and purpose with everything that is asked of it. "
                f"Give {missing}= (on the command line --actor and --purpose). Nothing was read or booked."
            ), name
    assert (ledger.accounts(), ledger.entries(), ledger.export()) == before
    for release in asked(table, ledger, **SIGNED).values():
        release()
    ledger.register(opened({1: 0.5}), "people", **SIGNED)
    ledger.withdraw(1, **SIGNED)
    assert ledger.verify().problems == ()


def test_a_requirement_that_comes_while_a_release_is_planned_counts(ledger, monkeypatch):
    """It is looked at again in the transaction that charges."""
    ledger.register(table := opened(), "people")
    planned = accord.people.table.Table.plan

    def slow(self, *args, **options):
        ledger.require("actor")
        return planned(self, *args, **options)

    monkeypatch.setattr(accord.people.table.Table, "plan", slow)
    with pytest.raises(LedgerError, match="this ledger requires actor"):
        table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    assert ledger.history() == []


def test_a_requirement_is_what_was_said_last(ledger):
    ledger.require("actor")  # before anything is registered
    assert ledger.verify().problems == ()
    with pytest.raises(LedgerError, match="requires actor"):
        ledger.register(opened(), "people")
    ledger.register(table := opened(), "people", actor="me")
    ledger.require("purpose", actor="me")
    ledger.withdraw(1, purpose="a letter")
    ledger.require(purpose="no more")
    table.release(accord.plan(ledger.remaining(table), MEAN, "minimum", 0.1), ledger=ledger, fresh=True)
    with pytest.raises(LedgerError, match="cannot require 'purposes'"):
        ledger.require("purposes")
    assert ledger.verify().problems == ()
    assert Replay().run(ledger.entries(), None).required == ""


def test_a_requirement_that_is_taken_out_of_the_database_shows(tmp_path):
    ledger = Ledger(tmp_path / "a.db", KEY)
    ledger.register(table := opened(), "people")
    ledger.require("actor")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM accord_meta WHERE name = 'require'")
    with pytest.raises(LedgerError, match="the accounts are not what the entries left"):
        table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    assert (
        "what has to be said, or how budgets are renewed, is not what was booked" in ledger.verify().problems
    )


# ---- history ---------------------------------------------------------------------------------------------------------------


def lived(ledger):
    ledger.register(opened(), "people", actor="ann")
    ledger.register(opened({3: 2.0, 8: 2.0}), "staff", actor="bob")
    opened().release(MEAN, "minimum", 0.1, ledger=ledger, actor="ann", purpose="a report", fresh=True)
    ledger.register(opened({1: 0.5, 2: 3.0}), "people", raise_levels=True, actor="bob", purpose="new forms")
    ledger.withdraw(3, actor="ann", purpose="a letter")
    ledger.readmit(3, actor="bob", purpose="another letter")
    ledger.require("actor", actor="ann")


def test_the_history_has_everything_that_was_done(ledger):
    lived(ledger)
    done = ledger.history(kind="all")
    assert [event["kind"] for event in done] == [
        "register",
        "register",
        "release",
        "register",
        "withdraw",
        "readmit",
        "policy",
    ]
    assert [event["entry"] for event in done] == [1, 2, 3, 5, 6, 7, 8]
    changed = {
        name: done[3][name]
        for name in ("table", "version", "people", "joined", "left", "lowered", "raised", "actor", "purpose")
    }
    assert changed == {
        "table": "people", "version": 2, "people": 2, "joined": 0, "left": 1, "lowered": 1, "raised": 1,
        "actor": "bob", "purpose": "new forms",
    }  # fmt: skip
    assert done[3]["policy"] == opened().policy
    assert (done[4]["people"], done[4]["tables"]) == (1, ["staff"]) and done[6]["require"] == ["actor"]
    assert ledger.history() == [done[2]] == ledger.history(kind="release")
    assert done[2]["state"] == "released"


def test_the_history_is_chosen_from(ledger):
    lived(ledger)

    def entries(**choice):
        return [event["entry"] for event in ledger.history(**choice)]

    assert entries(actor="bob") == [2, 5, 7] and entries(actor="nobody") == []
    assert entries(table="staff") == [2, 6, 7] and entries(table="people") == [1, 3, 5]
    assert entries(table="people", actor="ann") == [1, 3]
    assert entries(kind="withdraw") == [6] and entries(kind="register", table="people") == [1, 5]
    now, times = datetime.now(UTC), {e.seq: e.time for e in ledger.entries()}
    for since in (
        now - timedelta(days=1),
        now.date() - timedelta(days=1),
        str(now.date() - timedelta(days=1)),
    ):
        assert entries(since=since) == [1, 2, 3, 5, 6, 7, 8] == entries(since=since, until=now)
        assert entries(until=since) == []
    assert entries(since=times[5], until=times[7]) == [5, 6]
    assert entries(since=datetime.fromisoformat(times[6]).replace(tzinfo=None), kind="all") == [6, 7, 8]
    for choice, words in (
        ({"kind": "releases"}, "there is no kind 'releases'"),
        ({"since": "yesterday"}, "since='yesterday' is not a moment"),
        ({"until": 7}, "until=7 is not a moment"),
    ):
        with pytest.raises(LedgerError, match=words):
            ledger.history(**choice)


def test_an_older_copy_that_was_accepted_is_in_the_history(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(opened(), "people")
    (tmp_path / "a.db.head").unlink()
    ledger.accept_backup("the disk broke")
    (event,) = ledger.history(kind="restored")
    assert event["why"] == "the disk broke" and ledger.history() == []


# ---- on the command line ---------------------------------------------------------------------------------------------------


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "somebody")
    Path("people.csv").write_text("id,x,level\n1,2,1\n2,3,1\n", encoding="utf-8")
    levels = ["--epsilon", "level", "--user", "id"]

    def run(*arguments):
        done = CliRunner().invoke(main, list(arguments))
        return done.exit_code, " ".join(done.output.split())

    def release(*more):
        return run("release", "people.csv", "mean", "x", "--bounds", "0", "10", *levels, *more)

    run("ledger", "init", "a.db")
    run("ledger", "register", "a.db", "people", "people.csv", *levels)
    assert release("--ledger", "a.db", "--share", "0.1")[0] == 0
    code, text = run("ledger", "require", "a.db", "actor", "purpose")
    assert (code, text) == (0, "actor and purpose have to be said from now on, as entry 4")
    code, text = release("--ledger", "a.db", "--share", "0.1")
    assert code == 1 and "Give purpose= (on the command line --actor and --purpose)" in text
    assert release("--ledger", "a.db", "--remaining", "--purpose", "a report")[0] == 0
    assert "booked in a ledger" in release("--purpose", "a report")[1]
    code, text = run("ledger", "history", "a.db", "--kind", "all")
    assert (
        code == 0
        and "version 1: 2 joined" in text
        and "requires actor and purpose" in text
        and "released" in text
    )
    code, text = run(
        "ledger",
        "history",
        "a.db",
        "--since",
        str(datetime.now(UTC).date() - timedelta(days=2)),
        "--actor",
        "somebody",
        "--json",
    )
    document = json.loads(text)
    assert [event["purpose"] for event in document["releases"]] == [None, "a report"]
    assert [event["kind"] for event in document["events"]] == ["register", "policy", "refused"]
    assert json.loads(run("ledger", "history", "a.db", "--json")[1]).keys() == {"schema", "releases"}
    assert run("ledger", "verify", "a.db")[0] == 0
