"""Requests that were refused are counted, and booked so that they cannot flood the chain."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import AccordError, BudgetError, LedgerError
from accord.ledger import refusing

MEAN = accord.mean("x", bounds=(0, 10))
SIGNED = {"actor": "officer", "purpose": "a decision"}


def people(level=1.0, user="id"):
    return accord.table({user: [1, 2, 3], "x": [1.0, 5.0, 9.0], "e": [level] * 3}, epsilon="e", user=user)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request, tmp_path):
    url = tmp_path / "accord.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    ledger = accord.Ledger(url, key="the key of tests of refusals")
    ledger.register(people(), "people", **SIGNED)
    return ledger


@pytest.fixture
def hours(monkeypatch):
    """Time goes on when it is told to."""

    class Clock(datetime):
        gone = timedelta(0)

        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + cls.gone

    monkeypatch.setattr(refusing, "datetime", Clock)

    def go_on(hours):
        Clock.gone += timedelta(hours=hours)

    return go_on


def refused(ledger):
    return [(e["table"], e["actor"], e["reason"], e["times"]) for e in ledger.history(kind="refused")]


def too_much(ledger, actor=None):
    with pytest.raises(BudgetError, match="Nothing was spent"):
        people().release(MEAN, "minimum", share=1.0, ledger=ledger, actor=actor, fresh=True)


def test_every_reason_is_counted_and_nothing_is_booked_at_once(ledger):
    people().release(MEAN, "minimum", share=0.5, ledger=ledger, fresh=True)
    before = len(ledger.entries())
    for actor in (None, "eve", "eve"):
        too_much(ledger, actor)
    with pytest.raises(LedgerError, match="a higher level"):
        ledger.register(people(2.0), "people")
    with pytest.raises(LedgerError, match="another policy"):
        ledger.register(people(user="who"), "people", actor="eve")
    assert refused(ledger) == [
        ("people", "", "budget", 1),
        ("people", "eve", "budget", 2),
        ("people", "", "raise", 1),
        ("people", "eve", "policy", 1),
    ]
    assert len(ledger.entries()) == before and ledger.verify().problems == ()
    ledger.require("purpose", **SIGNED)
    with pytest.raises(LedgerError, match="requires purpose"):
        people().release(MEAN, "minimum", share=0.1, ledger=ledger, actor="eve", fresh=True)
    assert ("", "eve", "unsigned", 1) in refused(ledger)


def test_one_entry_an_hour_however_often_somebody_tries(ledger, hours):
    people().release(MEAN, "minimum", share=0.5, ledger=ledger, fresh=True)
    before = len(ledger.entries())
    for _ in range(3):
        for _ in range(4):
            too_much(ledger)
        hours(1.01)
    assert [entry.kind for entry in ledger.entries()[before:]] == ["refused", "refused"]
    assert refused(ledger) == [("people", "", "budget", 4)] * 3
    assert [event["entry"] is None for event in ledger.history(kind="refused")] == [False, False, True]
    assert ledger.verify().problems == ()
    people().release(MEAN, "minimum", share=0.5, ledger=ledger, fresh=True)
    assert ledger.verify().problems == ()


def test_many_names_do_not_fill_the_table(ledger, monkeypatch):
    monkeypatch.setattr(refusing, "MOST", 3)
    people().release(MEAN, "minimum", share=0.5, ledger=ledger, fresh=True)
    for k in range(6):
        too_much(ledger, f"name {k}")
    assert sorted(refused(ledger)) == [
        ("", "", "budget", 3),
        *(("people", f"name {k}", "budget", 1) for k in range(3)),
    ]


def test_counting_never_hides_a_refusal(ledger, monkeypatch):
    people().release(MEAN, "minimum", share=0.5, ledger=ledger, fresh=True)

    def broken(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(refusing, "pending", broken)
    too_much(ledger)


def test_what_is_no_request_is_not_counted(ledger):
    for act in (
        lambda: people().release(MEAN, "afine", share=0.1, ledger=ledger, fresh=True),
        lambda: people().release(MEAN, share=7, ledger=ledger, fresh=True),
        lambda: people(0.5).release(MEAN, share=0.1, ledger=ledger, fresh=True),
        lambda: ledger.withdraw("nobody"),
    ):
        with suppress(AccordError):
            act()
            pytest.fail("not refused")
    assert refused(ledger) == []


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = accord.Ledger("accord.db")
    ledger.register(people(), "people")
    people().release(MEAN, "minimum", share=0.5, ledger=ledger, fresh=True)
    too_much(ledger, "eve")
    said = CliRunner().invoke(main, ["ledger", "history", "accord.db", "--kind", "refused"]).output
    assert "once: somebody had too little left" in said and "eve" in said
    assert datetime.fromisoformat(ledger.history(kind="refused")[0]["first"]) <= datetime.now(UTC)
