"""Whoever withdraws has nothing left in any table from then on, whatever the tables say, until they are readmitted.

This file is also the program that the tests start, with a job as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import accord
from accord.cli import main
from accord.errors import BudgetError, LedgerError
from accord.ledger import Ledger, Withdrawal
from accord.people.identity import name_of, person_hash
from accord.people.reader import TableReader

KEY = "a key that only tests use"
MEAN = accord.mean("x", bounds=(0, 10), step=1, missing="none")
SIGNED = {"actor": "the registrar", "purpose": "their letter of May"}


def opened(levels):
    """A table of {id: level}."""
    columns = {"id": list(levels), "x": [float(k % 10) for k in range(len(levels))]}
    return accord.table(columns | {"level": list(levels.values())}, epsilon="level", user="id")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "a.db")


@pytest.fixture
def ledger(url):
    return Ledger(url, KEY)


def left(ledger, table):
    spec = ledger.remaining(table)
    return {**dict(zip(spec.levels, spec.counts, strict=True)), 0: spec.opted_out}


def sound(ledger):
    assert ledger.verify().problems == ()


def refused(ledger, call, match):
    before = ledger.accounts(), ledger.entries(), ledger.export()
    with pytest.raises(LedgerError, match=match) as refusal:
        call()
    assert (ledger.accounts(), ledger.entries(), ledger.export()) == before
    sound(ledger)
    return str(refusal.value)


# ---- what it does ----------------------------------------------------------------------------------------------------------


def test_a_withdrawal_counts_at_once_and_in_all_tables(ledger):
    one, other = opened({1: 1.0, 2: 1.0, 3: inf}), opened({1: 2.0, 4: 2.0})
    ledger.register(one, "one")
    ledger.register(other, "other")
    one.release(MEAN, "minimum", 0.2, ledger=ledger, fresh=True)
    done = ledger.withdraw(1, **SIGNED)
    assert done == Withdrawal("withdraw", 1, len(ledger.entries()))
    assert str(done) == "1 person withdrew, as entry 5: nothing is left to them in any table"
    assert left(ledger, one) == {0: 1, 0.8: 1, inf: 1} and left(ledger, other) == {0: 1, 2.0: 1}
    entry = ledger.entries()[-1]
    assert (entry.kind, entry.content["people"], entry.content["tables"]) == ("withdraw", 1, [1, 2])
    assert entry.content | SIGNED == entry.content
    sound(ledger)
    for table in (one, other):
        with pytest.raises(BudgetError) as refusal:
            table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
        assert (
            "1 person has withdrawn from the ledger: planning from what is left leaves them out; or register the table anew from a source in "
            "which they are opted out. See 'accord ledger show'. Nothing was spent."
        ) in str(refusal.value)
        table.release(accord.plan(ledger.remaining(table), MEAN, "minimum", 0.1), ledger=ledger, fresh=True)
    assert left(ledger, one)[0] == 1
    sound(ledger)


def test_public_people_withdraw_as_well(ledger):
    table = opened({1: inf, 2: inf, 3: 1.0})
    ledger.register(table, "people")
    ledger.withdraw(1, 2)
    assert left(ledger, table) == {0: 2, 1.0: 1}
    with pytest.raises(BudgetError, match="2 people have withdrawn from the ledger"):
        table.release(MEAN, "threshold", 1.0, t=inf, ledger=ledger, fresh=True)
    sound(ledger)


def test_no_version_of_a_table_takes_it_back(ledger):
    ledger.register(opened({1: 1.0, 2: 1.0}), "people")
    ledger.withdraw(1)
    agreed = {"raise_levels": True, **SIGNED}
    for levels in ({1: 0.5, 2: 1.0}, {2: 1.0}, {1: 0.5, 2: 1.0}, {1: 9.0, 2: 1.0}, {1: inf, 2: 1.0}):
        ledger.register(table := opened(levels), "people", **agreed)
        assert left(ledger, table) == ({0: 1, 1.0: 1} if 1 in levels else {0: 0, 1.0: 1})
    ledger.register(later := opened({1: 3.0, 9: 3.0}), "later")
    assert left(ledger, later) == {0: 1, 3.0: 1}
    sound(ledger)


def test_who_left_every_table_can_withdraw(ledger):
    ledger.register(opened({1: 1.0, 2: 1.0}), "people")
    ledger.register(opened({2: 1.0}), "people")
    assert ledger.withdraw(1).people == 1
    assert ledger.entries()[-1].content["tables"] == []
    ledger.register(back := opened({1: 1.0, 2: 1.0}), "people")
    assert left(ledger, back) == {0: 1, 1.0: 1}
    sound(ledger)


def test_who_is_readmitted_has_what_the_tables_say_less_what_they_spent(ledger):
    table = opened({1: 1.0, 2: 1.0, 3: 2.0})
    ledger.register(table, "people")
    table.release(MEAN, "minimum", 0.3, ledger=ledger, fresh=True)
    ledger.withdraw(1, 3)
    done = ledger.readmit(1, **SIGNED)
    assert str(done).startswith("1 person readmitted, as entry ")
    assert left(ledger, table) == {0: 1, 0.7: 2}
    entry = ledger.entries()[-1]
    assert entry.kind == "readmit" and entry.content | SIGNED == entry.content
    ledger.register(lower := opened({1: 0.5, 2: 1.0, 3: 2.0}), "people")
    ledger.readmit(3, **SIGNED)
    assert left(ledger, lower) == {0: 0, 0.2: 1, 0.7: 1, 1.7: 1}
    sound(ledger)


def test_withdrawing_twice_is_withdrawing_once(ledger):
    ledger.register(table := opened({1: 1.0, 2: 1.0, 3: 1.0}), "people")
    ledger.withdraw(1, "1.0", 1.0)
    entries = len(ledger.entries())
    again = ledger.withdraw(1)
    assert (again, str(again)) == (
        Withdrawal("withdraw", 0, None),
        "they had withdrawn already: nothing is changed",
    )
    assert len(ledger.entries()) == entries
    assert ledger.withdraw(1, 2).people == 1 and left(ledger, table) == {0: 2, 1.0: 1}
    sound(ledger)


def test_all_or_none_and_no_id_is_told(ledger):
    secret = "somebody-7391"
    refused(ledger, lambda: ledger.withdraw(secret), "1 of 1 ids are known to no table")
    ledger.register(opened({1: 1.0, 2: 1.0}), "people")
    text = refused(ledger, lambda: ledger.withdraw(1, secret, "007"), "2 of 3 ids are known to no table")
    assert text.endswith(
        "Check how ids are written in the tables' column of people (7, 7.0 and ' 7' are the same, 007 is another). Nothing was booked."
    )
    ledger.withdraw(1)
    for call, match in (
        (lambda: ledger.readmit(1, 2, secret, **SIGNED), "1 of 3 ids are known to no table"),
        (lambda: ledger.readmit(1, 2, **SIGNED), "1 of 2 ids are not of people who have withdrawn"),
        (lambda: ledger.withdraw(), "give at least one id"),
        (
            lambda: ledger.readmit(1, actor=None, purpose="x"),
            "a readmission is booked with who did it and why, and actor",
        ),
        (lambda: ledger.withdraw(2, actor="two\nlines"), "actor= is not a line of text"),
        *(
            (lambda bad=bad: ledger.withdraw(bad), "an id is a text, a number")
            for bad in (None, nan, inf, [1], "\ud800")
        ),
    ):
        assert secret not in refused(ledger, call, match)
    assert secret not in json.dumps(ledger.export())


def test_the_chain_holds_no_id(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    ids = [f"patient-{k}" for k in range(5)]
    ledger.register(opened(dict.fromkeys(ids, 1.0)), "people")
    ledger.withdraw(ids[3])
    text = json.dumps(ledger.export())
    assert "patient" not in text
    assert str(person_hash(ledger.books.secret, ids[3])) not in text
    assert set(ledger.entries()[-1].content) == {
        "accord",
        "people",
        "actor",
        "purpose",
        "tables",
        "left",
        "digest",
        "moves",
        "accounts",
    }


def test_a_forged_readmission_shows(tmp_path):
    """By the seal; and a withdrawal with a level is none."""
    from accord.ledger.chain import Replay, next_entry

    ledger = Ledger(tmp_path / "a.db", KEY)
    ledger.register(opened({1: 1.0}), "people")
    ledger.withdraw(1)
    entries = ledger.entries()
    for moves in ([[2, "1", 3, 1]], [[None, "0", 2, 1], [2, "0", 2, 1]]):
        content = {"moves": moves, "digest": "d"}
        forged = next_entry(entries[-1], "readmit", content, ledger.books.required_key().seal)
        assert Replay().run([*entries, forged], None).problems == ["entry 3 cannot be read (ValueError)"]
    forged = next_entry(entries[-1], "readmit", {"moves": [[2, None, 1, 1]], "digest": "d"}, str.upper)
    seal = ledger.books.required_key().seal
    assert Replay().run([*entries, forged], seal).problems == [
        "entry 3 was not written with the ledger's key"
    ]


# ---- while others release --------------------------------------------------------------------------------------------------


def test_a_release_under_way_gives_no_answer(ledger, url, monkeypatch):
    """It was reserved before, and is booked as failed; others are not concerned."""
    table, other = opened({1: 1.0, 2: 1.0}), opened({8: 1.0, 9: 1.0})
    ledger.register(table, "people")
    ledger.register(other, "other")
    read = TableReader.summaries

    def slow(self, *args, **options):
        Ledger(url, KEY).withdraw(person)
        return read(self, *args, **options)

    monkeypatch.setattr(TableReader, "summaries", slow)
    person = 1
    with pytest.raises(
        LedgerError,
        match=r"somebody of this table has withdrawn while it was read\. Ask again\..* charged all the same",
    ):
        table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    assert [one["state"] for one in ledger.history()] == ["failed"]
    person = 2
    assert other.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True).booked
    sound(ledger)


def spend(url):
    """Release until somebody has withdrawn; what was booked by then, and why it ended."""
    ledger, table, booked = Ledger(url, KEY), opened({1: 1.0, 2: 1.0}), []
    while True:
        try:
            booked.append(table.release(MEAN, "minimum", 0.0001, ledger=ledger, fresh=True).booked.entry)
        except (BudgetError, LedgerError) as refusal:
            return [booked, str(refusal)]


def test_after_a_withdrawal_no_answer_is_about_them(url):
    ledger = Ledger(url, KEY)
    ledger.register(opened({1: 1.0, 2: 1.0}), "people")
    with subprocess.Popen(
        [sys.executable, __file__, json.dumps({"url": url})], stdout=subprocess.PIPE, text=True
    ) as process:
        while len(ledger.history()) < 3:
            assert process.poll() is None
        entry = ledger.withdraw(1).entry
        booked, refusal = json.loads(process.communicate(timeout=600)[0])
    assert "withdrawn" in refusal
    assert len(booked) >= 2 and max(booked) < entry
    later = [one.kind for one in ledger.entries() if one.seq > entry]
    assert later in ([], ["failed"])
    sound(ledger)


# ---- ids -------------------------------------------------------------------------------------------------------------------


def known(ids):
    """The hashes that DuckDB gives a column of ids."""
    table = accord.table(
        pa.table({"id": ids, "level": pa.array([1.0] * len(ids))}), epsilon="level", user="id"
    )
    return sorted(table.identity.people(("secret",))[0].tolist())


def hashed(ids):
    return sorted({person_hash(("secret",), one) for one in ids})


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([0, 1, -1, 7, 2**31, 10**15, -(2**63), 2**63 - 1], pa.int64()),
        pa.array([0, 1, 255, 2**64 - 1], pa.uint64()),
        pa.array([0.0, 7.0, -7.0, 7.5, 0.1, 1e-5, 1.5e-7, 123456.789, 1e15, 2.0**52 + 0.5, 1 / 3, -0.25]),
        pa.array(["7", " 8", "9.0", "10.00 ", "007", "7.5", "7.50", "a b", "\u00a0x\ufeff", "a.0.0", ".", "1e5", "A", "a", "-0"]),
        pa.array(["é", "Ångström", "ｆｕｌｌ", "日本", "👩‍👩‍👧", "e\u0302", "ﬁ", "1\u0660", "\u1e9b\u0323"]),
        pa.array([Decimal("7.00"), Decimal("7.50"), Decimal("-0.25")], pa.decimal128(9, 2)),
        pa.array([Decimal("12345678901234567890123"), Decimal("5")], pa.decimal128(30, 0)),
    ],
    ids=lambda ids: str(ids.type),
)  # fmt: skip
def test_an_id_in_python_is_the_same_person_as_in_a_table(ids):
    assert hashed(ids.to_pylist()) == known(ids)


def test_ids_of_other_types():
    uuids = [UUID(int=k * 7**40 % 2**128) for k in range(1, 9)]
    frame = pd.DataFrame({"id": uuids, "level": 1.0})
    people = accord.table(frame, epsilon="level", user="id").identity.people(("secret",))[0]
    assert hashed(uuids) == hashed(map(str, uuids)) == sorted(people.tolist())
    days = [date(2026, 1, 31), date(999, 12, 31)]  # in a column of text: one of dates tells nobody apart
    assert hashed(days) == known(pa.array(map(str, days))) == known(pa.array(days).cast(pa.string()))
    assert hashed([np.int32(7), np.float64(7.0), np.str_(" 7"), 7, "7.0"]) == hashed([7])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cn", "Co"], exclude_characters="\0"), min_size=1, max_size=6), min_size=1, max_size=5))  # fmt: skip
def test_any_text_is_the_same_person_as_in_a_table(ids):
    different = list({name_of(one): one for one in ids}.values())
    assert hashed(different) == known(pa.array(different))


@given(st.lists(st.floats(-(2**50), 2**50, allow_subnormal=False), min_size=1, max_size=5))
def test_any_float_is_the_same_person_as_in_a_table(ids):
    different = list({name_of(one): one for one in ids}.values())
    assert hashed(different) == known(pa.array(different, pa.float64()))


# ---- on the command line ---------------------------------------------------------------------------------------------------


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "somebody")
    Path("people.csv").write_text("id,level\n7,1\nx y,1\n", encoding="utf-8")

    def run(*arguments):
        return CliRunner().invoke(main, ["ledger", *arguments])

    run("init", "a.db")
    run("register", "a.db", "people", "people.csv", "--epsilon", "level", "--user", "id")
    done = run("withdraw", "a.db", "7.0", "x y", "--json")
    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {"schema": 1, "kind": "withdraw", "people": 2, "entry": 2},
    )
    assert Ledger("a.db").entries()[-1].content["actor"] == "somebody"
    refusal = run("withdraw", "a.db", "nobody-55")
    assert (
        refusal.exit_code != 0 and "known to no table" in refusal.output and "nobody-55" not in refusal.output
    )
    assert "purpose is not given" in " ".join(run("readmit", "a.db", "7").output.split())
    assert "1 person readmitted, as entry 3" in run("readmit", "a.db", "7", "--why", "a mistake").output
    assert run("verify", "a.db").exit_code == 0


if __name__ == "__main__":
    print(json.dumps(spend(**json.loads(sys.argv[1]))))
