"""Budgets that come back every year, quarter or month, if the ledger says so: when, how much, and what is still promised."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path

import pytest
from click.testing import CliRunner

import accord
from accord.budget import MICRO, PUBLIC, to_micro
from accord.cli import main
from accord.errors import BudgetError, LedgerError
from accord.ledger import Ledger, chain, renewing
from accord.ledger.renewal import Renewal
from accord.report.board import board, board_view
from accord.report.tables import to_text

KEY = "a key that only tests use"
MEAN = accord.mean("x", bounds=(0, 10), step=1, missing="none")
SIGNED = {"actor": "the officer", "purpose": "consent forms of 2026"}


class Clock(datetime):
    """A datetime whose `now` is what a test says."""

    moment = datetime(2026, 5, 1, tzinfo=UTC)

    @classmethod
    def now(cls, tz=None):
        return Clock.moment


@pytest.fixture(autouse=True)
def at(monkeypatch):
    """Sets the clock of ledgers."""
    monkeypatch.setattr(renewing, "datetime", Clock)
    monkeypatch.setattr(chain, "datetime", Clock)

    def set_clock(*moment):
        monkeypatch.setattr(Clock, "moment", datetime(*moment, tzinfo=UTC))

    set_clock(2026, 5, 1)
    return set_clock


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def either(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "a.db"
    return Ledger(url, KEY)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "a.db", KEY)


def opened(levels):
    """A table of {id: level}."""
    columns = {"id": list(levels), "x": [float(k % 10) for k in range(len(levels))]}
    return accord.table(columns | {"level": list(levels.values())}, epsilon="level", user="id")


def left(ledger, table):
    spec = ledger.remaining(table)
    return {**dict(zip(spec.levels, spec.counts, strict=True)), 0: spec.opted_out}


def spend(table, ledger, share):
    return table.release(MEAN, "minimum", share, ledger=ledger, fresh=True)


def kinds(ledger):
    return [entry.kind for entry in ledger.entries()]


# ---- when, and how much ----------------------------------------------------------------------------------------------------


def test_a_level_is_for_life_unless_somebody_says_otherwise(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    spend(table, ledger, 1.0)
    at(2126, 1, 1)
    assert ledger.renewal is None and left(ledger, table) == {0: 2}
    with pytest.raises(BudgetError):
        spend(table, ledger, 0.1)


def test_it_comes_back_at_the_beginning_of_the_next_year_and_not_before(either, at):
    ledger = either
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    spend(table, ledger, 1.0)
    ledger.renew("year", 1, **SIGNED)
    assert ledger.renewal == Renewal("year", MICRO, 2026) and ledger.renewal.next == date(2027, 1, 1)
    at(2026, 12, 31, 23, 59, 59)
    with pytest.raises(BudgetError):
        spend(table, ledger, 0.1)
    at(2027, 1, 1)
    plan = table.plan(MEAN, "minimum", 0.5)
    assert left(ledger, table) == {1.0: 2, 0: 0} and ledger.affordable(table, plan) == 2
    (account,) = ledger.accounts()
    assert (account.spent, account.left, account.ever) == ((0, 0), (1, 1), (1, 1))
    assert "renew" not in kinds(ledger)  # who looks changes nothing
    spend(table, ledger, 0.5)
    assert kinds(ledger)[-3:] == ["renew", "reserve", "release"]
    assert left(ledger, table) == {0.5: 2, 0: 0} and ledger.verify().problems == ()
    person = ledger.person(1)
    assert (person.spent, person.left) == (1_500_000, 500_000)  # all that was spent is told
    assert "1.5" in str(person) and "all of everyone's level comes back every calendar year" in " ".join(
        str(person).split()
    )


def test_part_of_it_comes_back_and_never_more_than_the_level_is_left(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 0.4}), "people")
    ledger.renew("quarter", 0.25, **SIGNED)
    spend(table, ledger, 1.0)  # both are charged 0.4
    at(2026, 7, 1)
    assert left(ledger, table) == {0.85: 1, 0.1: 1, 0: 0}
    at(2026, 10, 1)
    assert left(ledger, table) == {1.0: 1, 0.2: 1, 0: 0}
    at(2031, 10, 1)
    assert left(ledger, table) == {1.0: 1, 0.4: 1, 0: 0}
    spend(table, ledger, 0.1)
    assert left(ledger, table) == {0.96: 1, 0.36: 1, 0: 0} and ledger.verify().problems == ()


def test_months_quarters_and_years():
    for every, moment, period, following in (
        ("year", (2026, 12, 31), 2026, date(2027, 1, 1)),
        ("quarter", (2026, 3, 31), 8104, date(2026, 4, 1)),
        ("quarter", (2026, 12, 1), 8107, date(2027, 1, 1)),
        ("month", (2026, 11, 18), 2026 * 12 + 10, date(2026, 12, 1)),
        ("month", (2026, 12, 31), 2026 * 12 + 11, date(2027, 1, 1)),
    ):
        renewal = Renewal(every, MICRO, period)
        assert renewal.period_of(datetime(*moment, tzinfo=UTC)) == period and renewal.next == following
        assert Renewal.read(renewal.text) == renewal
    east = datetime.fromisoformat("2027-01-01T05:00:00+09:00")  # still 2026 in UTC
    assert Renewal("year", MICRO, 0).period_of(east) == 2026
    for text in ("", "day 1000000 2026", "year 0 2026", "year 1000000 2026 ", "year -1 2026", "year 1 0"):
        with pytest.raises(ValueError, match="not a renewal"):
            Renewal.read(text)


def test_what_was_said_last_counts(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    spend(table, ledger, 1.0)
    ledger.renew("month", 1, **SIGNED)
    at(2026, 6, 1)
    ledger.renew("never", **SIGNED)  # what was due until now has come back
    assert ledger.renewal is None and left(ledger, table) == {1.0: 2, 0: 0}
    spend(table, ledger, 1.0)
    at(2026, 9, 1)
    assert left(ledger, table) == {0: 2}
    ledger.renew("year", 1, **SIGNED)
    assert left(ledger, table) == {0: 2}  # from the next period on
    assert kinds(ledger).count("renew") == 1 and ledger.verify().problems == ()


def test_shorter_periods_give_nothing_back_for_the_time_before_they_were_agreed(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    ledger.renew("year", 1, **SIGNED)
    spend(table, ledger, 1.0)
    at(2027, 1, 1)
    spend(table, ledger, 1.0)  # all of it has come back
    at(2027, 9, 15)
    ledger.renew("month", 0.1, **SIGNED)
    assert ledger.renewal.beginning == date(2027, 9, 1) and left(ledger, table) == {0: 2}
    at(2027, 10, 1)
    assert left(ledger, table) == {0.1: 2, 0: 0} and ledger.verify().problems == ()


@pytest.mark.parametrize(("every", "decade"), [("year", 6), ("quarter", 21), ("month", 61)])
def test_how_much_may_be_lost_within_ten_years_is_told_for_every_period(every, decade):
    renewal = Renewal(every, MICRO // 2, 8_104)
    assert renewal.decade == decade * MICRO
    assert str(renewal).endswith(f"within ten years somebody may lose up to {decade} times their level")


def test_a_clock_that_is_set_back_renews_nothing_twice(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    ledger.renew("year", 1, **SIGNED)
    spend(table, ledger, 1.0)
    at(2027, 1, 1)
    spend(table, ledger, 1.0)
    at(2026, 6, 1)
    assert left(ledger, table) == {0: 2}
    at(2027, 6, 1)
    assert left(ledger, table) == {0: 2}


@pytest.mark.parametrize("between", ["never", "month", "year"])
def test_nothing_comes_back_twice_for_the_same_time_whatever_is_agreed(between, ledger, at):
    """The clock is ahead, is set right, and it is agreed anew."""
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    ledger.renew("year", 1, **SIGNED)
    spend(table, ledger, 1.0)
    at(2027, 1, 1)
    spend(table, ledger, 1.0)
    at(2026, 12, 31)
    ledger.renew(between, *(() if between == "never" else (1,)), **SIGNED)
    ledger.renew("year", 1, **SIGNED)
    at(2027, 1, 2)
    assert left(ledger, table) == {0: 2} and ledger.verify().problems == ()
    at(2028, 1, 1)
    assert left(ledger, table) == {1.0: 2, 0: 0}
    entries = ledger.entries()
    forged = chain.next_entry(
        entries[-1], "renewal", {"renewal": "year 1000000 2026"}, ledger.books.required_key().seal
    )
    problems = chain.Replay().run([*entries, forged], ledger.books.required_key().seal).problems
    assert any("renewed for a time for which they were" in problem for problem in problems)


def test_what_was_renewed_is_told_also_when_it_has_ended(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    assert "But budgets are renewed" not in str(ledger.person(1))
    ledger.renew("month", 1, **SIGNED)
    assert "But budgets are renewed" in str(ledger.person(1))  # also of who has spent nothing
    for month in (6, 7, 8):
        spend(table, ledger, 1.0)
        at(2026, month, 1)
    ledger.renew("never", **SIGNED)
    person = ledger.person(1)
    assert person.describe()["renewed"] == "3" and "in all, of which 3 counts no more" in str(person)
    sheet = board(ledger, "people")
    assert sheet["levels"][0]["ever"] == ["3", "3"]
    text = " ".join(to_text(board_view(sheet)).split())
    assert "since budgets were last renewed together" in text and "spent ever" in text
    ledger.renew("month", 1, **SIGNED)
    ledger.withdraw(1)
    assert "But budgets" not in str(ledger.person(1))


def test_a_plan_from_what_is_left_knows_until_when_it_is(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    spend(table, ledger, 0.5)
    assert "renewed" not in str(table.plan(MEAN, remaining=ledger))
    ledger.renew("year", 1, **SIGNED)
    text = " ".join(str(table.plan(MEAN, remaining=ledger)).split())
    assert "what is left is until 2027-01-01" in text and "a level is not for life" in text


# ---- whom it is about ------------------------------------------------------------------------------------------------------


def test_people_who_withdrew_left_or_lowered_their_level(ledger, at):
    ledger.register(table := opened({1: 1.0, 2: 1.0, 3: 1.0, 4: inf}), "people")
    ledger.renew("year", 1, **SIGNED)
    spend(table, ledger, 1.0)
    ledger.withdraw(1)
    ledger.register(newer := opened({1: 1.0, 2: 0.25, 4: inf}), "people")  # 3 leaves
    at(2027, 1, 1)
    # 2 had spent 1: three quarters of that still count
    assert left(ledger, newer) == {inf: 1, 0: 2}
    assert [ledger.person(k).left for k in (1, 2, 3, 4)] == [0, 0, MICRO, PUBLIC]
    at(2030, 1, 1)
    assert [ledger.person(k).left for k in (1, 2, 3, 4)] == [0, 250_000, MICRO, PUBLIC]
    ledger.register(opened({1: 1.0, 2: 0.25, 3: 1.0, 4: inf, 5: 1.0}), "people")  # 3 comes back, 5 joins
    assert [ledger.person(k).left for k in (3, 5)] == [MICRO, MICRO]
    assert ledger.verify().problems == ()


@pytest.mark.parametrize("seed", range(4))
def test_any_history_agrees_with_a_dictionary_of_people(seed, ledger, at):
    """Accounts by person, renewed one by one; and nobody is ever charged more than was promised."""
    chance = random.Random(f"renewing {seed}")
    # {id: level}, and [spent, renewed, renewals since they are here, highest level] of each
    amount, month = chance.choice([1.0, 0.5, 0.3]), 4
    ledger.register(opened(levels := {k: chance.choice([0.5, 1.0, 2.0]) for k in range(6)}), "people")
    accounts = {k: [0, 0, 0, to_micro(level)] for k, level in levels.items()}
    ledger.renew("month", amount, **SIGNED)
    for _ in range(30):
        match chance.choice(["spend", "spend", "spend", "wait", "wait", "register"]):
            case "spend":
                share = chance.choice([0.2, 0.5, 1.0])
                table = opened(levels)
                plan = table.plan(MEAN, "minimum", share)
                charge = int(plan.cost[0]) if plan.reads_data else 0
                short = any(charge > remaining(k, accounts, levels) for k in levels)
                try:
                    table.release(plan, ledger=ledger, fresh=True)
                    assert not short
                    for k in levels:
                        accounts[k][0] += charge
                except BudgetError:
                    assert short
            case "wait":
                periods = chance.choice([1, 1, 3])
                month += periods
                at(2026 + month // 12, month % 12 + 1, 1)
                for k, account in accounts.items():
                    back = int(to_micro(levels[k])) * int(to_micro(amount)) // MICRO * periods
                    account[1] = min(account[0], account[1] + back)
                    account[2] += periods
            case "register":
                k = chance.choice(list(levels))
                levels[k] = min(levels[k], chance.choice([0.5, 1.0, 2.0]))
                new = max(accounts) + 1
                levels[new], accounts[new] = 1.0, [0, 0, 0, MICRO]
                ledger.register(opened(levels), "people")
        for spent, _, times, highest in accounts.values():
            assert spent <= highest + times * int(to_micro(amount)) * highest // MICRO
    people = {k: ledger.person(k) for k in levels}
    assert {k: p.left for k, p in people.items()} == {k: remaining(k, accounts, levels) for k in levels}
    assert {k: p.spent for k, p in people.items()} == {k: accounts[k][0] for k in levels}
    assert ledger.verify().problems == () and max(account[1] for account in accounts.values()) > 0


def remaining(k, accounts, levels):
    spent, renewed, *_ = accounts[k]
    return max(0, int(to_micro(levels[k])) - (spent - renewed))


# ---- what is refused, and what shows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"every": "yaer"}, "budgets cannot be renewed every 'yaer': .*'year'"),
        ({"every": "year", "amount": 0}, "amount=0 is the part of everyone's level that comes back"),
        ({"every": "year", "amount": 1.5}, r"amount=1\.5 is .*above 0, and at most 1"),
        ({"every": "year", "amount": float("nan")}, "amount=nan is"),
        ({"every": "year", "amount": "much"}, "amount='much' is"),
        ({"every": "year", "amount": [1]}, r"amount=\[1\] is"),
        ({"every": "year", "amount": True}, "amount=True is"),
        (
            {"every": "year", "amount": None},
            r"say which part of everyone's level comes back: amount=0\.5 is half",
        ),
        ({"every": "never", "amount": 0.5}, r"nothing comes back\. Leave amount=0\.5 out"),
        ({"every": "year", "purpose": None}, "how budgets are renewed is booked with who did it and why"),
    ],
)
def test_bad_input(asked, match, ledger):
    before = ledger.entries()
    with pytest.raises(LedgerError, match=match):
        ledger.renew(**{**SIGNED, "amount": 1, **asked})
    assert ledger.entries() == before and ledger.renewal is None


def test_a_renewal_before_its_time_or_otherwise_than_agreed_shows(ledger):
    """Written with the key, by somebody who knows how."""
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    spend(table, ledger, 1.0)
    ledger.renew("year", 0.5, **SIGNED)
    for text, problem in (
        ("year 500000 2027", "renews budgets before their time"),
        ("year 500000 2026", "renews budgets before their time"),
        ("year 900000 2027", "renews budgets otherwise than was agreed"),
    ):
        entries = ledger.entries()
        forged = chain.next_entry(entries[-1], "renew", {"renewal": text}, ledger.books.required_key().seal)
        problems = chain.Replay().run([*entries, forged], ledger.books.required_key().seal).problems
        assert any(problem in found for found in problems), (text, problems)


def test_what_is_stored_of_it_cannot_be_changed_unnoticed(ledger):
    ledger.register(table := opened({1: 1.0, 2: 1.0}), "people")
    spend(table, ledger, 1.0)
    ledger.renew("year", 0.5, **SIGNED)
    for statement in (
        "UPDATE accord_meta SET value = 'year 500000 2025' WHERE name = 'renewal'",
        "UPDATE accord_meta SET value = 'daily' WHERE name = 'renewal'",
        "DELETE FROM accord_meta WHERE name = 'renewal'",
        "UPDATE accord_cohort SET renewed = 10",
        "UPDATE accord_cohort SET renewed = spent, allowed = allowed + spent",
    ):
        with ledger.books.store.write() as db:
            kept = (
                db.rows("SELECT name, value FROM accord_meta"),
                db.rows("SELECT id, allowed FROM accord_cohort"),
            )
            db.run(statement)
        with pytest.raises(LedgerError, match="damaged"):
            left(ledger, table)
        assert ledger.verify().problems
        with ledger.books.store.write() as db:
            db.run("DELETE FROM accord_meta")
            for row in kept[0]:
                db.run("INSERT INTO accord_meta (name, value) VALUES (?, ?)", *row)
            for number, allowed in kept[1]:
                db.run("UPDATE accord_cohort SET renewed = 0, allowed = ? WHERE id = ?", allowed, number)
        assert ledger.verify().problems == ()


# ---- on the command line ---------------------------------------------------------------------------------------------------


def test_the_command_line(tmp_path, monkeypatch, at):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("id,x,level\n1,2,50\n2,3,50\n", encoding="utf-8")
    levels = ["--epsilon", "level", "--user", "id"]

    def run(*arguments, code=0):
        done = CliRunner().invoke(main, list(arguments))
        assert done.exit_code == code, done.output
        return " ".join(done.output.split())

    run("ledger", "init", "a.db")
    run("ledger", "register", "a.db", "people", "people.csv", *levels)
    assert run("ledger", "renew", "a.db") == "levels are for life: nothing of them comes back"
    assert "purpose is not given" in run("ledger", "renew", "a.db", "year", "--amount", "1", code=1)
    said = run("ledger", "renew", "a.db", "year", "--amount", "0.5", "--why", "the forms say so")
    assert said == (
        "as entry 2: budgets are renewed: 0.5 of everyone's level comes back every calendar year, next on "
        "2027-01-01. So a level is not for life: within ten years somebody may lose up to 6 times their level"
    )
    assert "say how often it comes back" in run("ledger", "renew", "a.db", "--amount", "1", code=2)
    assert json.loads(run("ledger", "renew", "a.db", "--json")) == {
        "schema": 1,
        "renewal": {"every": "year", "amount": "0.5", "next": "2027-01-01"},
    }
    ask = ["people.csv", "mean", "x", "--bounds", "0", "10", *levels, "--ledger", "a.db", "--share", "0.5"]
    run("release", *ask)
    at(2027, 2, 1)
    plan = run("plan", *ask)
    assert "it can be released 2 times" in plan and "next on 2028-01-01" in plan
    run("release", *ask, "--fresh")
    shown = run("ledger", "show", "a.db")
    assert (
        "what was spent before budgets were renewed is not in it" in shown and "next on 2028-01-01" in shown
    )
    history = run("ledger", "history", "a.db", "--kind", "all")
    assert "from now on:" in history and "budgets were renewed:" in history and "500000" not in history
    board = run("report", "people", "--ledger", "a.db")
    assert "for all releases of a year together" in board and "within ten years" in board
    assert run("ledger", "history", "a.db", "--kind", "withdraw") == "No entry is like that."
    assert "did you mean 'people'" in run("ledger", "history", "a.db", "--table", "peple")
    assert json.loads(run("ledger", "show", "a.db", "--json"))["accounts"][0]["ever"] == ["50", "50"]
    assert run("ledger", "verify", "a.db").startswith("whole")
