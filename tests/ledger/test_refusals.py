"""What a ledger refuses, in which words, in SQLite and in PostgreSQL; and that nothing is spent by it."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import traceback
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from math import inf
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noises import SEEDED_APART

import accord
from accord.budget import MICRO
from accord.errors import AccordError, BudgetError, LedgerError, PlanError, SourceError
from accord.ledger import Ledger, store
from accord.ledger.books import Books
from accord.relation import ADD_REMOVE

KEY = "a key that only tests use"
OTHER = "another key, also for tests"
SECRET = "pa55w0rd"
MEAN = accord.mean("x", bounds=(0, 10), step=1, missing="none")
COUNT = accord.count(where="x > 3")
MEDIAN = accord.median("x", bounds=(0, 10), step=1)
BOTH = [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)]


def opened(levels, **options):
    """A table of {id: level}."""
    columns = {"id": list(levels), "x": [float(k % 10) for k in range(len(levels))]}
    columns["level"] = [float(level) for level in levels.values()]
    return accord.table(columns, **{"epsilon": "level", "user": "id", **options})


@pytest.fixture(params=BOTH)
def url(request, tmp_path):
    """Where a ledger may be made."""
    return (
        request.getfixturevalue("postgres_url")
        if request.param == "postgres"
        else str(tmp_path / "accord.db")
    )


@pytest.fixture
def ledger(url):
    return Ledger(url, KEY)


@contextmanager
def refused(ledger, kind, *words):
    """An error of this kind with these words, after which the ledger is as it was: nothing is spent, and verify finds nothing."""
    before = state(ledger)
    with pytest.raises(kind) as refusal:
        yield refusal
    for word in words:
        assert re.search(word, str(refusal.value)), f"{word!r} is not in {str(refusal.value)!r}"
    assert isinstance(refusal.value, AccordError)
    assert state(ledger) == before
    assert ledger.verify().problems == ()


def state(ledger):
    return ledger.accounts(), ledger.entries(), ledger.export()["cohorts"]


def spend(ledger, table, share, mechanism="minimum"):
    table.release(MEAN, mechanism, share, ledger=ledger, fresh=True)


# --- somebody is short ------------------------------------------------------------------------------------------------------


def test_who_is_short_by_how_much_and_what_would_fit(ledger):
    table = opened({1: 0.5, 2: 0.5, 3: 1.0, 4: 2.0, 5: inf})
    ledger.register(table, "people")
    ledger.register(alone := opened({1: 0.5}), "one")
    spend(ledger, table, 0.4)
    spend(ledger, alone, 0.2)
    with refused(
        ledger,
        BudgetError,
        r"^this release charges level 0\.5 with 0\.4; 0\.2 is left to 2 people\.",
        r"Ask for share=0\.4 or less, or plan from what is left: table\.plan\(query, remaining=ledger\)",
        r"--remaining\). See 'accord ledger show'\. Nothing was spent\.$",
    ):
        table.release(MEAN, "affine", 0.8, ledger=ledger, fresh=True)
    with refused(ledger, BudgetError, "share=0.4 or less"):
        table.release(accord.workload([MEAN, COUNT]), "affine", 0.8, ledger=ledger, fresh=True)
    table.release(accord.plan(ledger.remaining(table), MEAN, "affine"), ledger=ledger, fresh=True)
    with refused(
        ledger,
        BudgetError,
        "0 is left to 2 people",
        "No share is sure to fit everyone: plan from what is left",
    ):
        table.release(MEAN, "affine", 0.8, ledger=ledger, fresh=True)


def test_how_often_a_plan_can_be_afforded(ledger):
    """Who pays nothing, and who is public, does not limit it; a millionth does."""
    table, strict, public = opened({1: 0.1, 2: 1.0, 3: inf}), opened({1: 0.000001}), opened({3: inf})
    for name, people in (("people", table), ("strict", strict), ("public", public)):
        ledger.register(people, name)
    assert ledger.affordable(table, table.plan(MEAN, "threshold", 0.25, t=0.25)) == 4
    assert ledger.affordable(strict, strict.plan(MEAN, "minimum")) == 1
    assert ledger.affordable(public, public.plan(MEAN, "threshold", t=0.25)) is None


def test_three_levels_are_told_and_the_others_counted(ledger):
    table = opened({k: k / 10 for k in range(1, 6)} | {6: inf})
    ledger.register(table, "people")
    spend(ledger, table, 1.0)
    for k in range(2, 6):
        ledger.register(part := opened({k: k / 10}), f"part {k}")
        spend(ledger, part, 0.3)
    with refused(ledger, BudgetError, r"level 0\.1 with .*; 0 is left to one person, level 0\.2 .*, level 0\.3 .*, and 2 more levels\.") as refusal:  # fmt: skip
        table.release(COUNT, "mix", 1.0, ledger=ledger, fresh=True)
    assert "level 0.4" not in str(refusal.value) and "level 0.5" not in str(refusal.value)


def test_a_smaller_share_may_charge_others_and_fits_them_too(ledger):
    """At share 1 the threshold is 0.5, which those of level 1 have left; at 0.8 it is 0.8, which they have not."""
    strict, liberal = dict.fromkeys(range(4), 0.5), dict.fromkeys(range(4, 9), 1.0)
    table = opened(strict | liberal)
    for name, part in (("all", table), ("strict", opened(strict)), ("liberal", opened(liberal))):
        ledger.register(part, name)
    spend(ledger, opened(strict), 0.2)
    spend(ledger, opened(liberal), 0.4)
    assert ledger.remaining(table).levels == (0.4, 0.6)
    with refused(
        ledger, BudgetError, r"level 0\.5 with 0\.5; 0\.4 is left to 4 people\. Ask for share=0\.6 or less"
    ):
        table.release(MEAN, "threshold", 1.0, ledger=ledger, fresh=True)
    with refused(ledger, BudgetError, r"level 1 with 0\.8; 0\.6 is left to 5 people"):
        table.release(MEAN, "threshold", 0.8, ledger=ledger, fresh=True)
    table.release(MEAN, "threshold", 0.6, ledger=ledger, fresh=True)


def test_no_share_is_promised_that_is_less_than_a_millionth(ledger):
    table = opened({1: 3e-6, 2: 3e-6})
    ledger.register(table, "people")
    spend(ledger, table, 0.7)
    with refused(ledger, BudgetError, r"level 0\.000003 with 0\.000003; 0\.000001 is left to 2 people", "No share is sure to fit everyone"):  # fmt: skip
        spend(ledger, table, 1.0)


def test_who_is_public_here_and_not_elsewhere_is_told_as_public(ledger):
    table, other = opened({1: inf, 2: 1.0, 3: 1.0}), opened({1: 0.5})
    ledger.register(table, "people")
    ledger.register(other, "other")
    with refused(
        ledger,
        BudgetError,
        r"level inf with .*; 0\.5 is left to one person",
        "No share is sure to fit everyone",
    ) as refusal:
        table.release(MEAN, "threshold", 0.3, t=inf, ledger=ledger, fresh=True)
    assert "nothing left" not in str(refusal.value)
    spend(ledger, table, 0.3)
    with refused(ledger, BudgetError, r"level inf with 0\.3; 0\.2 is left to one person"):
        spend(ledger, table, 0.3)


def test_whoever_opted_out_of_one_table_opted_out_of_all(ledger):
    table, out = opened({1: 1.0, 2: 1.0}), opened({1: 0.0})
    ledger.register(table, "people")
    ledger.register(out, "out")
    with refused(ledger, BudgetError, r"level 1 with 0\.1; 0 is left to one person"):
        spend(ledger, table, 0.1)
    assert ledger.remaining(table).opted_out == 1


level_choices = st.sampled_from([0.05, 0.3, 0.5, 1.0, 2.5, inf, 0.0])


@settings(max_examples=8)
@given(
    data=st.data(),
    levels=st.lists(level_choices, min_size=2, max_size=9),
    others=st.lists(level_choices, max_size=4),
)
def test_the_share_that_is_told_fits_whatever_the_mechanism(tmp_path_factory, data, levels, others):
    """And every smaller one: tried by planning with it, and by asking how often it is affordable."""
    ledger = Ledger(tmp_path_factory.mktemp("shares") / "accord.db", KEY)
    table, other = opened(dict(enumerate(levels))), opened(dict(enumerate(others)) | {100: 1.0})
    ledger.register(table, "people")
    ledger.register(other, "other")
    for _ in range(2):
        for part in (table, other):
            try:
                plan = accord.plan(
                    ledger.remaining(part),
                    MEAN,
                    data.draw(st.sampled_from(["mix", "threshold", "fallah"])),
                    0.4,
                )
            except PlanError:
                continue
            part.release(plan, ledger=ledger, fresh=True)
    for query, mechanism in (
        (MEAN, "minimum"),
        (MEAN, "threshold"),
        (MEAN, "affine"),
        (COUNT, "mix"),
        (MEDIAN, "rank"),
    ):
        try:
            plan = table.plan(query, mechanism, 1.0)
        except PlanError:
            continue
        if ledger.affordable(table, plan) != 0:
            continue
        with refused(ledger, BudgetError) as refusal:
            table.release(plan, ledger=ledger, fresh=True)
        fits = re.search(r"share=([0-9.]+) or less", str(refusal.value))
        if fits is None:
            assert "No share is sure to fit everyone" in str(refusal.value)
            continue
        fits = round(float(fits[1]) * MICRO)
        assert 0 < fits < MICRO
        for smaller in (fits, fits // 2):
            for again in (mechanism, "threshold", "mix", "auto"):
                try:
                    less = table.plan(query, again, smaller / MICRO)
                except PlanError:  # refused by this mechanism, or too small to charge anyone
                    assert smaller < fits or again != mechanism
                    continue
                assert ledger.affordable(table, less) != 0
        released = table.release(query, mechanism, fits / MICRO, ledger=ledger, fresh=True)
        assert released.booked.entry == len(ledger.entries())


# --- the table --------------------------------------------------------------------------------------------------------------


def test_a_share_must_be_said(ledger):
    table = opened({1: 1.0})
    ledger.register(table, "people")
    for asked in (MEAN, accord.workload([MEAN, COUNT])):
        with refused(ledger, PlanError, r"with a ledger, say how much .*share=0\.1 is a tenth"):
            table.release(asked, ledger=ledger, fresh=True)
    with refused(ledger, PlanError, "a plan has its mechanism and share already"):
        table.release(table.plan(MEAN, "minimum", 0.1), share=0.1, ledger=ledger, fresh=True)
    for share in (0, 1.1, -0.5, 1e-7, "much"):
        with refused(ledger, PlanError, "is not a fraction of a level"):
            table.release(MEAN, share=share, ledger=ledger, fresh=True)


def test_a_table_must_say_who_its_rows_are_of(ledger):
    anonymous = opened({1: 1.0}, user=None)
    words = (
        r"no column that says who a row is of.*charged to two budgets",
        r"user='…' \(on the command line --user\)",
    )
    for call in (
        lambda: ledger.register(anonymous, "people"),
        lambda: ledger.remaining(anonymous),
        lambda: spend(ledger, anonymous, 0.1),
        lambda: ledger.affordable(anonymous, anonymous.plan(MEAN)),
    ):
        with refused(ledger, LedgerError, *words):
            call()


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([date(2020, 1, 1), date(2020, 1, 2)], "column 'id' cannot tell people apart. Use a column of text or whole numbers"),
        ([True, False], "column 'id' cannot tell people apart"),
        ([float(2**53), 1.0], "1 ids in 'id' are floating-point numbers too large to be exact.*Store ids as whole numbers or text"),
    ],
)  # fmt: skip
def test_ids_must_tell_people_apart(ids, words, tmp_path):
    ledger = Ledger(tmp_path / "accord.db", KEY)
    table = accord.table(pa.table({"id": ids, "x": [1.0, 2.0]}), epsilon=1.0, user="id")
    with refused(ledger, LedgerError, words):
        ledger.register(table, "people")


def test_every_row_is_of_somebody(tmp_path):
    ledger = Ledger(tmp_path / "accord.db", KEY)
    table = accord.table(pa.table({"id": [7, None], "x": [1.0, 2.0]}), epsilon=1.0, user="id")
    with refused(ledger, SourceError, "1 rows are of nobody"):
        ledger.register(table, "people")


def test_a_registration_has_a_name_and_a_table(ledger):
    for name in ("", "  ", None, 7):
        with refused(ledger, LedgerError, "registered under a name, such as 'people'"):
            ledger.register(opened({1: 1.0}), name)
    for other in (
        {"id": [1]},
        "people.csv",
        None,
        opened({1: 1.0}).spec(),
        opened({1: 1.0}).identity,
        accord.Table,
    ):
        with refused(
            ledger,
            LedgerError,
            rf"registers tables of accord\.table, not {re.escape(type(other).__name__)}\.",
        ):
            ledger.register(other, "people")


def test_an_answer_that_cannot_be_stored_is_not_given_out(ledger):
    table = opened({1: 1.0, 2: 1.0})
    ledger.register(table, "people")
    with pytest.raises(
        LedgerError, match=r"half a character in it .*charged all the same.*not given out"
    ) as refusal:
        accord.sample(lambda rows, epsilon: "secret \ud800", table, share=0.1, ledger=ledger)
    assert refusal.value.__cause__ is None and isinstance(refusal.value.__context__, LedgerError)
    assert refusal.value.__context__.__context__ is None, "a fault of the codec holds what it could not write"
    assert [step["state"] for step in ledger.history()] == ["no answer"]
    assert ledger.verify().problems == ()


def test_a_table_must_be_registered(ledger):
    table = opened({1: 1.0, 2: 1.0})
    calls = (
        lambda: spend(ledger, table, 0.1),
        lambda: ledger.remaining(table),
        lambda: ledger.affordable(table, table.plan(MEAN)),
    )
    for call in calls:
        with refused(ledger, LedgerError, "this table is not registered in the ledger", r"ledger\.register\(table, 'name'\)") as refusal:  # fmt: skip
            call()
        assert "Known" not in str(refusal.value)
    ledger.register(opened({8: 1.0, 9: 1.0, 1: 1.0}), "others")
    for call in calls:
        with refused(ledger, LedgerError, "this table is not registered in the ledger.*Known: 'others'"):
            call()


def test_a_table_must_be_as_it_was_registered(ledger):
    before = dict.fromkeys(range(10), 1.0) | {10: 0.0, 11: inf}
    ledger.register(opened(before), "people")
    ledger.register(opened(dict.fromkeys(range(3), 1.0)), "few")
    spend(ledger, opened(before), 0.1)
    after = before | {0: 0.5, 1: 0.9, 2: 2.0, 10: 0.1, 11: 5.0, 20: 1.0, 21: 1.0, 22: 0.0, 23: 1.0}
    changed = opened({p: level for p, level in after.items() if p != 3})
    words = (
        r"not as it was registered as 'people': 4 people joined, 1 left, 3 lowered their level, 2 raised it\.",
        r"ledger\.register\(table, 'people'\).*what everyone has spent is kept",
    )
    for call in (
        lambda: spend(ledger, changed, 0.1),
        lambda: ledger.remaining(changed),
        lambda: ledger.affordable(changed, changed.plan(MEAN)),
    ):
        with refused(ledger, LedgerError, *words):
            call()
    registration = ledger.register(
        changed, "people", raise_levels=True, actor="a test", purpose="they agreed"
    )
    assert (registration.joined, registration.left, registration.lowered, registration.raised) == (4, 1, 3, 2)
    with refused(ledger, LedgerError, "1 people joined, 4 left, 2 lowered their level, 3 raised it"):
        spend(ledger, opened(before), 0.1)


def test_a_table_that_changes_while_it_is_open_is_noticed(tmp_path):
    """Also if as many people have each level as before: it is about who they are."""

    def write(ids, levels):
        pq.write_table(
            pa.table({"id": ids, "x": [1.0, 2.0, 3.0], "level": levels}), tmp_path / "people.parquet"
        )

    ledger = Ledger(tmp_path / "accord.db", KEY)
    write([1, 2, 3], [1.0, 1.0, 2.0])
    table = accord.table(tmp_path / "people.parquet", epsilon="level", user="id")
    ledger.register(table, "people")
    spend(ledger, table, 0.1)
    write([1, 2, 4], [1.0, 1.0, 2.0])
    with refused(ledger, LedgerError, "1 people joined, 1 left, 0 lowered their level, 0 raised it"):
        spend(ledger, table, 0.1)
    write([1, 3, 2], [1.0, 1.0, 2.0])
    with refused(ledger, LedgerError, "0 people joined, 0 left, 1 lowered their level, 1 raised it"):
        spend(ledger, table, 0.1)
    write([1, 2, 3], [1.0, 2.0, 2.0])
    with refused(ledger, SourceError, "the table has changed since its levels were read"):
        spend(ledger, table, 0.1)
    write([1, 2, 3], [1.0, 1.0, 2.0])
    spend(ledger, table, 0.1)


def test_a_table_that_changes_while_it_is_read_gives_no_answer(tmp_path, monkeypatch):
    """Somebody may have been read who was not charged. As many people have each level as before."""

    def write(ids):
        columns = {"id": ids, "x": [1.0, 2.0, 3.0], "level": [1.0, 1.0, 2.0]}
        pq.write_table(pa.table(columns), tmp_path / "people.parquet")

    ledger = Ledger(tmp_path / "accord.db", KEY)
    write([1, 2, 3])
    table = accord.table(tmp_path / "people.parquet", epsilon="level", user="id")
    ledger.register(table, "people")
    read = type(table.reader).summaries

    def changed_and_read(*args, **options):
        write([1, 2, 4])
        return read(*args, **options)

    monkeypatch.setattr(type(table.reader), "summaries", changed_and_read)
    with pytest.raises(
        SourceError, match=r"^the table has changed .* charged all the same, .* is not given out\.$"
    ):
        spend(ledger, table, 0.1)
    assert [entry.kind for entry in ledger.entries()][-2:] == ["reserve", "failed"]
    write([1, 2, 3])
    assert ledger.remaining(table).levels == (0.9, 1.9)


def test_a_relation_is_matched_person_by_person(ledger):
    """Its rows are streamed into accord's own connection, where what people have left can stand beside them."""
    relation = duckdb.connect().from_arrow(
        pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0], "level": [1.0, 1.0, 1.0]})
    )
    table = accord.table(relation, epsilon="level", user="id")
    ledger.register(table, "relation")
    spend(ledger, table, 0.1)
    ledger.register(opened({1: 0.5}), "one")
    table.release(accord.plan(ledger.remaining(table), MEAN, "proportional"), ledger=ledger, fresh=True)
    assert ledger.remaining(table).total == 0


# --- the plan ---------------------------------------------------------------------------------------------------------------


def test_an_engine_that_cannot_tell_people_apart(ledger, monkeypatch):
    """It answers from what is left where the level decides that, and else it is refused before anybody is charged."""
    table, one = opened({1: 0.5, 2: 0.5, 3: 1.0}), opened({1: 0.5})
    ledger.register(table, "people")
    ledger.register(one, "one")
    monkeypatch.setattr(type(table.reader.engine), "lends", False)
    spend(ledger, table, 0.4)
    table.release(accord.plan(ledger.remaining(table), MEAN, "minimum", 0.1), ledger=ledger, fresh=True)
    spend(ledger, one, 0.2)
    uneven = accord.plan(ledger.remaining(table), MEAN, "minimum", 0.1)
    words = "^people of one level have different amounts left here, .* person by person.* Nothing was spent.$"
    with refused(ledger, LedgerError, words):
        table.release(uneven, ledger=ledger, fresh=True)


def test_a_plan_must_be_for_these_levels_or_for_what_is_left_now(ledger):
    table, other = opened({1: 1.0, 2: 2.0}), opened({1: 1.0, 2: 2.0, 3: 2.0})
    ledger.register(table, "people")
    words = (
        r"made for other levels than this table has, or what is left has changed since\. Plan again",
        r"share=…",
    )
    strange = other.plan(MEAN, "minimum", 0.1)
    with refused(ledger, PlanError, *words):
        table.release(strange, ledger=ledger, fresh=True)
    with refused(ledger, PlanError, "made for other levels"):
        ledger.affordable(table, strange)
    rest = accord.plan(ledger.remaining(table), MEAN, "minimum", 0.5)
    several = accord.plan(ledger.remaining(table), accord.workload([MEAN, COUNT]), "minimum", 0.5)
    spend(ledger, table, 0.1)
    later = accord.plan(ledger.remaining(table), MEAN, "minimum", 0.5)
    spend(ledger, table, 0.1)
    for stale in (later, accord.plan(accord.Spec.of([0.7, 1.7]), MEAN, "minimum")):
        with refused(ledger, PlanError, *words):
            table.release(stale, ledger=ledger, fresh=True)
    with pytest.raises(PlanError, match=r"other levels or other numbers of people.*or give the ledger"):
        table.release(later)
    assert ledger.affordable(table, rest) == 1, "before anything was spent, what is left were the levels"
    table.release(several, ledger=ledger, fresh=True)
    assert ledger.remaining(table).levels == (0.3, 1.3)


def test_a_plan_that_was_tampered_with(ledger):
    table = opened({1: 1.0, 2: 2.0})
    ledger.register(table, "people")
    plan = table.plan(MEAN, "minimum", 0.1)
    for charges in ([-1, -1], [0, -1], [MICRO + 1, MICRO + 1], [0, 2 * MICRO + 1]):
        forged = plan.with_choice(calibration=replace(plan.calibration, charges=np.array(charges)))
        with refused(
            ledger,
            PlanError,
            "the plan charges people more than their level, or less than nothing.*Plan again",
        ):
            table.release(forged, ledger=ledger, fresh=True)


def test_neighbors_must_be_the_same_for_all(ledger):
    table = opened({1: 1.0})
    ledger.register(table, "people")
    plan = table.plan(MEAN, "minimum", 0.1)
    with refused(ledger, PlanError, "the plan is for neighbors='add-remove', the table for 'replace'"):
        table.release(replace(plan, relation=ADD_REMOVE), ledger=ledger, fresh=True)
    other = opened({1: 1.0, 2: 1.0})
    other.neighbors = "add-remove"
    words = r"kept for neighbors='replace', and this is for 'add-remove'\. Their charges do not add up: use two ledgers"
    with refused(ledger, LedgerError, words):
        ledger.register(other, "others")
    table.neighbors = "add-remove"
    with refused(ledger, LedgerError, words):
        table.release(replace(plan, relation=ADD_REMOVE), ledger=ledger, fresh=True)


# --- opening ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            ":memory:",
            r"cannot keep a ledger in ':memory:'\. Give a file such as 'accord\.db', or 'postgresql://…'",
        ),
        ("", r"cannot keep a ledger in ''"),
        ("sqlite://:memory:", "cannot keep a ledger in 'sqlite://…'"),
        (f"mysql://me:{SECRET}@host/base", "cannot keep a ledger in 'mysql://…'"),
        ("https://example.org/accord.db", "cannot keep a ledger in 'https://…'"),
    ],
)
def test_where_no_ledger_can_be_kept(url, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match=words) as refusal:
        Ledger(url, KEY)
    assert SECRET not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_ledger(tmp_path):
    with pytest.raises(LedgerError, match=r"is a folder\. Name a file in it, such as '.*accord\.db'"):
        Ledger(tmp_path, KEY)
    with pytest.raises(LedgerError, match=r"cannot (write the ledger's key to|use the ledger) '.*nowhere"):
        Ledger(tmp_path / "nowhere" / "accord.db")
    with pytest.raises(
        LedgerError, match=r"it cannot be opened\. Check the path, and the right to write to its folder"
    ):
        Ledger(tmp_path / "nowhere" / "accord.db", KEY)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_is_not_there_is_not_made_unless_asked_for(url, tmp_path):
    with pytest.raises(
        LedgerError, match=r"there is no ledger '.*'\. Check the name, or make one with 'accord ledger init'"
    ):
        Ledger(url, KEY, create=False)
    assert list(tmp_path.iterdir()) == []
    Ledger(url, KEY)
    assert Ledger(url, KEY, create=False).verify().entries == 0


def test_a_file_that_is_not_a_database(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,level\n" + "1,0.5\n" * 1000)
    before = path.read_bytes()
    with pytest.raises(
        LedgerError,
        match=r"cannot use the ledger '.*people\.csv': it is not a SQLite database\. Name another file",
    ):
        Ledger(path, KEY)
    assert path.read_bytes() == before


def test_the_database_of_another_program(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    before = path.read_bytes()
    with pytest.raises(
        LedgerError, match=r"other\.db' is not a ledger of accord\. Name another, or make one"
    ):
        Ledger(path, KEY)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["other.db"]


def test_a_damaged_database(tmp_path):
    ledger = Ledger(tmp_path / "accord.db", KEY)
    ledger.register(opened({1: 1.0}), "people")
    with closing(sqlite3.connect(tmp_path / "accord.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = (tmp_path / "accord.db").read_bytes()
    (tmp_path / "accord.db").write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(LedgerError, match=r"the file is damaged\. Restore it from a backup"):
        Ledger(tmp_path / "accord.db", KEY).verify()


def test_a_ledger_of_a_newer_version(url):
    ledger = Ledger(url, KEY)
    with ledger.books.store.write() as db:
        db.run("UPDATE accord_meta SET value = '99' WHERE name = 'schema'")
    known = len(store.MIGRATIONS)
    with pytest.raises(
        LedgerError, match=rf"is of version 99, and this accord knows {known}\. Install a newer accord"
    ):
        Ledger(url, KEY)


@pytest.mark.parametrize(
    "change", ["DELETE FROM accord_meta WHERE name = 'schema'", "UPDATE accord_meta SET value = 'x'"]
)
def test_a_ledger_that_does_not_say_its_version(url, change):
    ledger = Ledger(url, KEY)
    with ledger.books.store.write() as db:
        db.run(change)
    with pytest.raises(
        LedgerError, match=r"damaged: it does not say which version it is of\. Restore it from a backup"
    ):
        Ledger(url, KEY)


# --- the key ----------------------------------------------------------------------------------------------------------------


def test_a_key_that_is_too_short(url, tmp_path):
    with pytest.raises(
        LedgerError, match=r"key is too short\. Give a text of at least 16 characters"
    ) as refusal:
        Ledger(url, "too short")
    assert "'too short'" not in str(refusal.value) and list(tmp_path.iterdir()) == []


def test_a_wrong_key(url):
    ledger = Ledger(url, KEY)
    ledger.register(opened({1: 1.0}), "people")
    with refused(
        ledger, LedgerError, r"not the key that the ledger '.*' was made with.*take everyone for somebody new"
    ):
        Ledger(url, OTHER)


def test_a_wrong_key_file(tmp_path):
    ledger = Ledger(tmp_path / "accord.db")
    table = opened({1: 1.0})
    ledger.register(table, "people")
    right = (tmp_path / "accord.db.key").read_text()
    (tmp_path / "accord.db.key").write_text(OTHER)
    again = Ledger(tmp_path / "accord.db")
    for call in (
        lambda: spend(again, table, 0.1),
        lambda: again.register(table, "x"),
        lambda: again.remaining(table),
    ):
        with refused(ledger, LedgerError, "not the key that the ledger .* was made with"):
            call()
    assert not again.verify().sealed and again.verify().problems == (), "looking at it takes no key"
    (tmp_path / "accord.db.key").write_text(right)
    spend(again, table, 0.1)
    assert again.verify().sealed
    (tmp_path / "accord.db.key").write_text("short")
    with refused(ledger, LedgerError, "key is too short"):
        spend(Ledger(tmp_path / "accord.db"), table, 0.1)


def test_a_missing_key_file(tmp_path):
    ledger = Ledger(tmp_path / "accord.db")
    table = opened({1: 1.0})
    ledger.register(table, "people")
    (tmp_path / "accord.db.key").rename(tmp_path / "elsewhere")
    again = Ledger(tmp_path / "accord.db")
    for call in (
        lambda: spend(again, table, 0.1),
        lambda: again.register(table, "x"),
        lambda: again.remaining(table),
    ):
        with refused(
            ledger,
            LedgerError,
            r"key '.*accord\.db\.key' is missing.*nobody can be recognised\. Restore it, or give key=",
        ):
            call()
    assert not (tmp_path / "accord.db.key").exists(), "a new one would recognise nobody"
    assert again.accounts() and not again.verify().sealed
    spend(Ledger(tmp_path / "accord.db", (tmp_path / "elsewhere").read_text().strip()), table, 0.1)


def test_a_key_whose_ledger_is_gone(tmp_path):
    Ledger(tmp_path / "accord.db")
    key = (tmp_path / "accord.db.key").read_text()
    (tmp_path / "accord.db").unlink()
    for _ in range(2):
        with pytest.raises(
            LedgerError, match=r"there is a key '.*', but its ledger '.*' is gone.*whole budget again"
        ):
            Ledger(tmp_path / "accord.db")
    assert (tmp_path / "accord.db.key").read_text() == key


@pytest.mark.postgres
def test_the_key_of_a_ledger_in_postgres(postgres_url, monkeypatch):
    monkeypatch.delenv("ACCORD_LEDGER_KEY", raising=False)
    words = r"needs its key: set the variable ACCORD_LEDGER_KEY, or give key=\."
    with pytest.raises(LedgerError, match=words):
        Ledger(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute(
            "SELECT COUNT(*) FROM pg_tables WHERE tablename LIKE 'accord%'"
        ).fetchone() == (0,)
    monkeypatch.setenv("ACCORD_LEDGER_KEY", KEY)
    ledger, table = Ledger(postgres_url), opened({1: 1.0})
    ledger.register(table, "people")
    monkeypatch.setenv("ACCORD_LEDGER_KEY", OTHER)
    with refused(ledger, LedgerError, "not the key that the ledger .* was made with"):
        spend(Ledger(postgres_url), table, 0.1)
    monkeypatch.delenv("ACCORD_LEDGER_KEY")
    with refused(ledger, LedgerError, words):
        spend(Ledger(postgres_url), table, 0.1)
    with refused(ledger, LedgerError, "key is too short"):
        monkeypatch.setenv("ACCORD_LEDGER_KEY", "")
        spend(Ledger(postgres_url), table, 0.1)


# --- the database -----------------------------------------------------------------------------------------------------------


def test_a_sqlite_file_that_another_process_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    ledger, table = Ledger(tmp_path / "accord.db", KEY), opened({1: 1.0})
    ledger.register(table, "people")
    spend(ledger, table, 0.1)
    words = r"cannot use the ledger '.*accord\.db': another process has held it for 0\.1 seconds\. Try again when it is done"
    with closing(sqlite3.connect(tmp_path / "accord.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for call in (lambda: spend(ledger, table, 0.1), lambda: ledger.register(opened({2: 1.0}), "people")):
            with refused(ledger, LedgerError, words):  # which reads it meanwhile
                call()
    spend(ledger, table, 0.1)
    assert ledger.remaining(table).levels == (0.8,)


def test_a_sqlite_file_is_waited_for_as_long_as_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 7)
    with patch.object(sqlite3, "connect", wraps=sqlite3.connect) as connect:
        Ledger(tmp_path / "accord.db", KEY).register(opened({1: 1.0}), "people")
    assert connect.call_count > 2 and {call.kwargs["timeout"] for call in connect.call_args_list} == {7}


def test_a_sqlite_file_is_waited_for(tmp_path):
    ledger, table = Ledger(tmp_path / "accord.db", KEY), opened({1: 1.0})
    ledger.register(table, "people")
    connection = sqlite3.connect(tmp_path / "accord.db", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    waiting = Thread(target=spend, args=(ledger, table, 0.1))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive() and ledger.remaining(table).levels == (1.0,)
    connection.execute("ROLLBACK")
    waiting.join(600)
    connection.close()
    assert ledger.remaining(table).levels == (0.9,)


@pytest.mark.postgres
def test_a_postgres_ledger_that_another_process_holds(postgres_url, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    ledger, table = Ledger(postgres_url, KEY), opened({1: 1.0})
    ledger.register(table, "people")
    with psycopg.connect(postgres_url) as connection, ledger.books.store.write():
        waits = connection.execute("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        assert waits.fetchone() == (1,)
        with refused(
            ledger, LedgerError, r"another process has held it for 0\.1 seconds\. Try again when it is done"
        ):
            spend(ledger, table, 0.1)
    spend(ledger, table, 0.1)


READER = """
import json, os, sys
import accord, accord.ledger, accord.engines.duckdb, sqlite3
from accord.errors import LedgerError
path, user = json.loads(sys.argv[1])
table = accord.table({"id": [1], "x": [1.0]}, epsilon=1.0, user="id")
table.spec()
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(user), os.setuid(user)
said = {}
for name, call in {
    "spend": lambda: table.release(accord.mean("x", (0, 10)), "minimum", 0.1, ledger=accord.Ledger(path, KEY), fresh=True),
    "register": lambda: accord.Ledger(path, KEY).register(table, "other"),
    "verify": lambda: accord.Ledger(path, KEY).verify().problems,
}.items():
    try:
        said[name] = str(call())
    except LedgerError as refusal:
        said[name] = f"LedgerError: {refusal}"
print(json.dumps(said))
"""


@pytest.mark.parametrize("protected", ["the file", "its folder", "entering its folder"])
def test_a_sqlite_file_that_may_only_be_read(protected, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readonly")
    for path in (folder, *folder.parents[:3]):
        if os.geteuid() == 0 and path.stat().st_uid == 0 and str(path).startswith("/tmp/"):
            path.chmod(0o755)
    ledger, table = (
        Ledger(folder / "accord.db", KEY),
        accord.table({"id": [1], "x": [1.0]}, epsilon=1.0, user="id"),
    )
    ledger.register(table, "people")
    with closing(sqlite3.connect(folder / "accord.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / "accord.db").chmod(0o444)
    folder.chmod({"the file": 0o777, "its folder": 0o555, "entering its folder": 0o600}[protected])
    try:
        job = json.dumps([str(folder / "accord.db"), 65534])
        code = READER.replace("KEY", repr(KEY))
        ran = subprocess.run([sys.executable, "-c", code, job], capture_output=True, text=True, check=False)
    finally:
        folder.chmod(0o755)
        (folder / "accord.db").chmod(0o644)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    words = {
        "the file": "it is read-only here. Give this user the right to write to the file and its folder",
        "its folder": "the right to write to",
        "entering its folder": "cannot look at",
    }[protected]
    for name in ("spend", "register"):
        assert said[name].startswith("LedgerError") and words in said[name], said
    if protected == "the file":
        assert said["verify"] == "()", "it can be looked at all the same"
    assert ledger.verify().problems == () and len(ledger.entries()) == 1
    assert ledger.remaining(table).levels == (1.0,)


@pytest.mark.postgres
def test_a_server_that_is_not_there(tmp_path):
    for address in (f"postgresql://me:{SECRET}@/base?host={tmp_path}", f"postgresql:///base?host={tmp_path}&password={SECRET}"):  # fmt: skip
        with pytest.raises(LedgerError, match=r"the server cannot be reached or has gone \(OperationalError\)\. Check the address, the user and the password") as refusal:  # fmt: skip
            Ledger(address, KEY)
        assert SECRET not in whole(refusal.value)
    with pytest.raises(LedgerError, match=r"cannot be read|cannot be reached") as refusal:
        Ledger(f"postgresql://me:{SECRET}@/base?no=such&option=there", KEY)
    assert SECRET not in whole(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:a/{SECRET}@localhost:1/base",
        f"postgresql://me:{SECRET}/a@localhost:1/base",
        f"postgresql://me:a@{SECRET}@localhost:1/base",
        f"postgresql://me:a@b/{SECRET}@localhost:1/base",
        f"postgresql://me:a?{SECRET}@localhost:1/base",
        f"postgresql://me:a#{SECRET}@localhost:1/base",
        f"postgresql://me:a[{SECRET}@localhost:1/base",
        f"postgresql://me:a%{SECRET}@localhost:1/base",
        f"postgresql://localhost:1/base?user=me&password=a@b/{SECRET}",
        f"postgresql://localhost:1/base?password={SECRET}&{SECRET}",
        f"postgres://me:{SECRET}@localhost:1/base",
    ],
)
def test_a_password_is_never_told_also_not_if_it_was_not_escaped(url):
    with pytest.raises(LedgerError) as refusal:
        Ledger(url, KEY)
    assert SECRET not in whole(refusal.value)


def whole(error):
    """All that a traceback would show of an error, without the lines of code."""
    said = "".join(traceback.format_exception(error))
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith("    "))


@pytest.fixture
def role(postgres_server, postgres_url):
    """A user who needs a password, and may do nothing yet; the URL without it."""
    name = f"role_{SEEDED_APART.token_hex(8)}"
    rules = Path(re.search(r"host=([^&]+)", postgres_server)[1], "data", "pg_hba.conf")
    before = rules.read_text()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
        rules.write_text(f"local all {name} scram-sha-256\n{before}")
        connection.execute("SELECT pg_reload_conf()")
        yield name, postgres_url.replace("postgres@", f"{name}:{{}}@")
        rules.write_text(before)
        connection.execute("SELECT pg_reload_conf()")
        with psycopg.connect(postgres_url, autocommit=True) as there:
            there.execute(f"DROP OWNED BY {name}")
        connection.execute(f"DROP ROLE {name}")


@pytest.mark.postgres
def test_a_wrong_password_and_a_user_without_rights(role, postgres_url):
    name, address = role
    ledger, table = Ledger(postgres_url, KEY), opened({1: 1.0})
    ledger.register(table, "people")
    wrong = SECRET[::-1]
    with refused(
        ledger, LedgerError, r"cannot be reached or has gone.*Check the address, the user and the password"
    ) as refusal:
        Ledger(address.format(wrong), KEY)
    assert wrong not in whole(refusal.value)
    with refused(
        ledger,
        LedgerError,
        r"this user may not do that\. Grant the right to create, read and write its tables",
    ) as refusal:
        Ledger(address.format(SECRET), KEY)
    assert SECRET not in whole(refusal.value)
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    reader = Ledger(address.format(SECRET), KEY)
    assert reader.verify().problems == () and reader.remaining(table).levels == (1.0,)
    with refused(ledger, LedgerError, "this user may not do that") as refusal:
        spend(reader, table, 0.1)
    assert SECRET not in whole(refusal.value) + repr(reader) + str(vars(reader)["label"])


@pytest.mark.postgres
def test_a_server_that_may_only_be_read(postgres_url):
    readonly = postgres_url + "&options=-c%20default_transaction_read_only%3Don"
    words = r"it is read-only here\. Connect to the primary server, as a user who may write"
    with pytest.raises(LedgerError, match=words):
        Ledger(readonly, KEY)
    ledger, table = Ledger(postgres_url, KEY), opened({1: 1.0})
    ledger.register(table, "people")
    reader = Ledger(readonly, KEY)
    assert reader.remaining(table).levels == (1.0,) and reader.verify().problems == ()
    for call in (lambda: spend(reader, table, 0.1), lambda: reader.register(opened({2: 1.0}), "people")):
        with refused(ledger, LedgerError, words):
            call()


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("before", "remaining", "kinds"),
    [("reserve", 1.0, ["register"]), ("release", 0.9, ["register", "reserve"])],
)
def test_a_server_that_goes_away(before, remaining, kinds, postgres_url, monkeypatch):
    """Before the charge is booked, nothing is charged; afterwards the charge stands, without an answer."""
    ledger, table = Ledger(postgres_url, KEY), opened({1: 1.0})
    ledger.register(table, "people")
    append = Books.append

    def cut(self, db, kind, content):
        if kind == before:
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(%s, 5000)", db.rows("SELECT pg_backend_pid()")[0]
                )
        return append(self, db, kind, content)

    monkeypatch.setattr(Books, "append", cut)
    with pytest.raises(LedgerError, match=r"the server cannot be reached or has gone"):
        spend(ledger, table, 0.1)
    monkeypatch.undo()
    assert ledger.remaining(table).levels == (remaining,)
    assert [entry.kind for entry in ledger.entries()] == kinds
    assert (ledger.verify().problems, ledger.verify().open) == ((), len(kinds) - 1)


def test_no_psycopg(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        LedgerError, match=r"a ledger in PostgreSQL needs psycopg\. Install accord\[postgres\]"
    ):
        Ledger("postgresql://localhost/base", KEY)


def test_everyone_is_charged_or_nobody(ledger, monkeypatch):
    """Also if the database says that it has charged fewer than it should, for whatever reason."""
    table = opened({1: 0.5, 2: 1.0})
    ledger.register(table, "people")
    with ledger.books.store.write() as db:
        session = type(db)
    charge = session.charge
    monkeypatch.setattr(session, "charge", lambda db, cohorts, charges: charge(db, cohorts[:1], charges[:1]))
    with refused(
        ledger, BudgetError, "^somebody has less left than this release would cost them. Nothing was spent.$"
    ):
        spend(ledger, table, 0.1)


def test_the_database_itself_refuses_to_overcharge(url, monkeypatch):
    """The last line of defence, if the books were wrong. And whoever keeps such an error does not keep the ledger with it."""
    ledger, table = Ledger(url, KEY), opened({1: 1.0})
    ledger.register(table, "people")
    monkeypatch.setattr(store, "PATIENCE", 0.5)
    with (
        refused(ledger, LedgerError, "somebody would be charged more than they allow") as refusal,
        ledger.books.store.write() as db,
    ):
        db.run("UPDATE accord_cohort SET spent = allowed + 1")
    with ledger.books.store.write() as again:
        assert [again.charge(np.array([1]), np.array([charge])) for charge in (MICRO + 1, 0, -1)] == [0, 0, 0]
    assert ledger.remaining(table).levels == (1.0,)
    assert refusal.value.__traceback__ and db, "both were kept until here"
