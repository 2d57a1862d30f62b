"""Another key takes the place of a ledger's: everyone keeps what they have spent, and the former key tells nothing any more.

This file is also the program that a test starts, with a job as JSON.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import AccordError, BudgetError, LedgerError
from accord.ledger import Ledger, Rotation, rotating
from accord.ledger import key as keys
from accord.ledger.accounts import checked_accounts, read_everyone
from accord.ledger.chain import Replay, next_entry
from accord.ledger.key import FormerKeys, Key
from accord.people.identity import person_hash
from accord.people.reader import TableReader

KEY, NEW, THIRD = "a key that only tests use", "another key of the tests", "the third key of the tests"
MEAN = accord.mean("x", bounds=(0, 10), step=1, missing="none")
SIGNED = {"actor": "the registrar", "purpose": "a laptop was lost"}
CHANGED = r"the key of the ledger '.*' was changed meanwhile\. Open it again, with the new one\."


def opened(levels):
    """A table of {id: level}."""
    columns = {"id": list(levels), "x": [float(k % 10) for k in range(len(levels))]}
    columns["g"] = ["a" if k % 2 else "b" for k in range(len(levels))]
    return accord.table(columns | {"level": list(levels.values())}, epsilon="level", user="id")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "a.db")


def sound(ledger, sealed=True):
    verdict = ledger.verify()
    assert (verdict.problems, verdict.sealed) == ((), sealed)


def left(ledger, table):
    spec = ledger.remaining(table)
    return {**dict(zip(spec.levels, spec.counts, strict=True)), 0: spec.opted_out}


def everyone(ledger):
    """Hashes and cohorts, as they are stored."""
    with ledger.books.reading() as db:
        return dict(zip(*(x.tolist() for x in read_everyone(db, checked_accounts(db))), strict=True))


def filled(ledger):
    """A ledger with everything in it; its tables."""
    people, staff = opened({1: 1.0, 2: 1.0, 3: 2.0, 4: inf, 5: 0.0}), opened({3: 1.5, "x y": 1.0})
    ledger.register(opened({1: 1.0, 2: 1.0, 3: 2.0, 4: inf, 5: 0.0, 9: 1.0}), "people")
    before = opened({1: 1.0, 2: 1.0, 3: 2.0, 4: inf, 5: 0.0, 9: 1.0})
    before.release(MEAN, "minimum", 0.2, ledger=ledger, fresh=True)
    ledger.register(people, "people")  # 9 has left
    ledger.register(staff, "staff")
    staff.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    ledger.withdraw(2, **SIGNED)
    return people, staff, before


# ---- what it keeps ---------------------------------------------------------------------------------------------------------


def test_everyone_keeps_what_they_have_spent(url):
    ledger = Ledger(url, KEY)
    people, staff, before = filled(ledger)
    twin = ledger.accounts(), left(ledger, people), left(ledger, staff), ledger.export()["cohorts"]
    hashes, entries = everyone(ledger), ledger.entries()
    done = ledger.rotate_key(NEW, **SIGNED)
    unsealed = [replace(entry, seal="") for entry in ledger.entries()[:-1]]
    assert unsealed == [replace(entry, seal="") for entry in entries], "receipts are found again"
    is_file = not url.startswith("postgres")
    by = "key=" if is_file else "set the variable ACCORD_LEDGER_KEY to it now, or key="
    assert done == Rotation(len(ledger.entries()), 7, 2, None, is_file, by)
    assert (ledger.accounts(), left(ledger, people), left(ledger, staff), ledger.export()["cohorts"]) == twin
    sound(ledger)
    (event,) = ledger.history(kind="rotate")
    assert event | SIGNED == event and (event["entry"], event["people"]) == (done.entry, 7)

    secret = Key(NEW).secret
    assert everyone(ledger) == {
        int(hashlib.sha256(f"{secret}{one}".encode()).hexdigest()[:16], 16) >> 1: cohort
        for one, cohort in hashes.items()
    }
    again = Ledger(url, NEW)
    assert [one.least for one in again.person(9).releases] == [200_000]
    assert again.person(9).spent == 200_000 and again.person(3).spent == 300_000
    assert again.person("x y ").spent == again.person(3).spent - 200_000
    with pytest.raises(LedgerError, match="this id is known to no table"):
        again.person(8)
    again.register(before, "people", raise_levels=True, **SIGNED)  # 9 comes back
    assert left(again, before) == {0: 2, 0.8: 2, 1.2: 1, inf: 1}
    again.readmit(2, **SIGNED)
    again.withdraw(9)
    assert left(again, before) == {0: 2, 0.8: 2, 1.2: 1, inf: 1}
    with pytest.raises(BudgetError):
        staff.release(MEAN, "minimum", 1.0, ledger=again, fresh=True)
    staff.release(accord.plan(again.remaining(staff), MEAN, "minimum", 0.1), ledger=again, fresh=True)
    sound(again)


def test_public_groups_are_recognised(tmp_path):
    ledger, table = Ledger(tmp_path / "a.db", KEY), opened({k: 1.0 + k % 3 for k in range(8)})
    ledger.register(table, "people")
    query = accord.mean("x", bounds=(0, 10), by="g", keys=["a", "b"], membership="public", missing="none")
    table.release(query, "minimum", share=0.1, ledger=ledger, fresh=True)
    registered = len(ledger.history(kind="register"))
    assert ledger.rotate_key(NEW, **SIGNED).tables == 3
    table.release(query, "minimum", share=0.1, ledger=ledger, fresh=True)
    assert len(ledger.history(kind="register")) == registered == 3, "none of them was registered anew"
    sound(ledger)


def test_people_are_matched_one_by_one(tmp_path):
    """Where those of one level have different amounts left."""
    ledger = Ledger(tmp_path / "a.db", KEY)
    people, _, _ = filled(ledger)
    ledger.rotate_key(NEW, **SIGNED)
    ledger.rotate_key(THIRD, **SIGNED)
    plan = accord.plan(ledger.remaining(people), MEAN, "minimum", 0.5)
    answer = people.release(plan, ledger=ledger, fresh=True)
    assert answer.booked
    assert ledger.person(2).spent == 200_000, "who has withdrawn was not read"
    assert ledger.person(1).spent == 200_000 + round(1e6 * min(plan.charges.values()))
    sound(ledger)


def test_as_often_as_needed(url):
    ledger, table = Ledger(url, KEY), opened({1: 1.0, 2: 0.5})
    ledger.register(table, "people")
    for k in range(3):
        table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
        ledger.rotate_key(f"{NEW} {k}", **SIGNED)
        assert len(ledger.books.secret) == 2 + k
        sound(ledger)
    again = Ledger(url, f"{NEW} 2")
    assert everyone(again).keys() == {person_hash(again.books.secret, one) for one in (1, 2)}
    assert [a.spent for a in again.accounts()] == [(0.15, 0.15)] * 2
    assert again.withdraw(1).people == 1
    sound(again)


def test_booked_answers_and_renewals_go_on(tmp_path):
    """The same question is known again, and what was renewed stays renewed."""
    ledger, table = Ledger(tmp_path / "a.db"), opened({1: 1.0, 2: 0.5})
    ledger.register(table, "people")
    ledger.renew(every="year", amount=0.5, **SIGNED)
    first = table.release(MEAN, "minimum", 0.1, ledger=ledger)
    for _ in range(2):
        ledger.rotate_key(**SIGNED)
        again = table.release(MEAN, "minimum", 0.1, ledger=Ledger(tmp_path / "a.db"))
        assert again.value == first.value and ledger.entries()[-1].kind == "repeat"
    assert [a.spent for a in ledger.accounts()] == [(0.05, 0.05)] * 2
    sound(ledger)


def test_a_ledger_in_which_nothing_was_done_yet(url):
    ledger = Ledger(url, KEY)
    assert ledger.rotate_key(NEW, **SIGNED).entry == 1
    ledger.rotate_key(THIRD, **SIGNED)
    sound(ledger)
    ledger.register(table := opened({1: 1.0}), "people")
    table.release(MEAN, "minimum", 0.1, ledger=Ledger(url, THIRD), fresh=True)
    sound(ledger)


def test_a_ledger_of_an_older_version(tmp_path):
    data = Path(__file__).parent / "data"
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(data / name, tmp_path / name)
    ledger = Ledger(tmp_path / "v1.db")
    before = ledger.accounts()
    ledger.rotate_key(**SIGNED)
    assert ledger.accounts() == before
    sound(Ledger(tmp_path / "v1.db"))


def test_a_ledger_whose_key_was_never_changed_has_nothing_new(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(opened({1: 1.0}), "people")
    with ledger.books.reading() as db:
        names = sorted(name for (name,) in db.rows("SELECT name FROM accord_meta"))
    assert names == ["head", "key", "neighbors", "schema"]
    assert ledger.books.secret == (Key((tmp_path / "a.db.key").read_text().strip()).secret,)


# ---- engines ---------------------------------------------------------------------------------------------------------------


IDS = [0, 1, -1, 7, 2**31, 10**15, -(2**63), 2**63 - 1]
CHAINS = [("s" * 32,), ("s" * 32, "t" * 32), tuple(c * 32 for c in "stuvw")]


@pytest.mark.parametrize("secret", CHAINS, ids=len)
def test_nested_hashes_are_the_same_in_duckdb_and_in_python(secret):
    table = accord.table({"id": np.array(IDS), "level": np.ones(len(IDS))}, epsilon="level", user="id")
    assert sorted(table.identity.people(secret)[0].tolist()) == sorted(person_hash(secret, x) for x in IDS)
    texts = ["7", " 8", "9.0", "é", "e\u0302", "日本", "a b"]
    table = accord.table({"id": texts, "level": [1.0] * len(texts)}, epsilon="level", user="id")
    assert sorted(table.identity.people(secret)[0].tolist()) == sorted(person_hash(secret, x) for x in texts)


def rotated_with(tmp_path, there, here):
    """A table elsewhere is the one that was registered here, before and after the key was changed."""
    for secret in CHAINS:
        assert sorted(there.identity.people(secret)[0].tolist()) == sorted(
            person_hash(secret, x) for x in IDS
        )
        assert there.identity.fingerprint(secret) == here.identity.fingerprint(secret)
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(here, "people")
    for _ in range(2):
        ledger.rotate_key(**SIGNED)
        there.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    assert ledger.remaining(there) == ledger.remaining(here)
    sound(ledger)


COLUMNS = {"id": np.array(IDS), "x": np.arange(8.0), "level": np.array([0.5, 1.0] * 4)}


@pytest.mark.slow
@pytest.mark.postgres
def test_tables_in_postgres_are_recognised(postgres_url, tmp_path):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (id bigint, x float8, level float8)")
        for row in zip(*(column.tolist() for column in COLUMNS.values()), strict=True):
            connection.execute("INSERT INTO people VALUES (%s, %s, %s)", row)
    there = accord.table(f"{postgres_url}&table=people", epsilon="level", user="id")
    rotated_with(tmp_path, there, accord.table(COLUMNS, epsilon="level", user="id"))


@pytest.mark.slow
@pytest.mark.spark
def test_tables_in_spark_are_recognised(session, tmp_path):
    rows = list(zip(*(column.tolist() for column in COLUMNS.values()), strict=True))
    frame = session.createDataFrame(rows, "id bigint, x double, level double")
    there = accord.table(frame, epsilon="level", user="id")
    rotated_with(tmp_path, there, accord.table(COLUMNS, epsilon="level", user="id"))


# ---- what the former key is good for ---------------------------------------------------------------------------------------


def test_the_former_key_opens_nothing(url):
    ledger = Ledger(url, KEY)
    filled(ledger)
    ledger.rotate_key(NEW, **SIGNED)
    for wrong in (KEY, "some other key altogether"):
        with pytest.raises(LedgerError) as refusal:
            Ledger(url, wrong)
        assert str(refusal.value).endswith(
            "it was changed, and another would take everyone for somebody new. Give the newest one; ledger.history(kind='rotate') says when, and who did it."
        )
    stored = set(everyone(ledger))
    former, new = Key(KEY), Key(NEW)
    for one in (1, 2, 3, 4, 5, 9, "x y"):
        assert person_hash((former.secret,), one) not in stored
        assert person_hash((new.secret,), one) not in stored
        assert person_hash((former.secret, new.secret), one) in stored


def test_the_file_holds_no_former_hash(tmp_path):
    """Neither in pages that are not used any more, nor in the -wal."""
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(opened(dict.fromkeys(range(2000), 1.0)), "people")
    ledger.register(opened(dict.fromkeys(range(1, 2000), 1.0)), "people")
    hashes = list(everyone(ledger))
    assert len(hashes) == 2000

    def traces():
        content = b"".join(
            path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".db", ".db-wal")
        )
        return sum(one.to_bytes(8, "little") in content for one in hashes)

    assert traces() > 1900, "but for those at the ends of pages"
    assert ledger.rotate_key(**SIGNED).purged
    assert traces() == 0
    with closing(sqlite3.connect(tmp_path / "a.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM accord_entry").fetchall()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(accord.ledger.store, "PATIENCE", 0.1)
            done = ledger.rotate_key(**SIGNED)
    assert not done.purged and str(done).endswith(
        "Its files still hold deleted rows with the former hashes: see docs/operations.md."
    )
    sound(Ledger(tmp_path / "a.db"))


def test_an_entry_that_was_forged_with_the_former_key_is_found(tmp_path):
    ledger = Ledger(tmp_path / "a.db", KEY)
    filled(ledger)
    ledger.rotate_key(NEW, **SIGNED)
    last = ledger.entries()[-1]
    digests = {name: last.content[name] for name in ("digest", "accounts")}
    forged = next_entry(last, "policy", {"require": [], **digests}, Key(KEY).seal)
    with ledger.books.store.write() as db:
        row = list(vars(forged).values())
        db.run("INSERT INTO accord_entry VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    problem = f"entry {forged.seq} was not written with the ledger's key"
    assert problem in Ledger(tmp_path / "a.db", NEW).verify().problems
    with ledger.books.store.write() as db:
        db.run("DELETE FROM accord_entry WHERE seq = ?", forged.seq)
        db.run("UPDATE accord_entry SET seal = ? WHERE seq = 1", Key(KEY).seal(ledger.entries()[0].hash))
    assert ledger.verify().problems == ("entry 1 was not written with the ledger's key",)


def test_what_the_ledger_holds_of_former_keys_cannot_be_exchanged(tmp_path):
    ledger = Ledger(tmp_path / "a.db", KEY)
    people, _, _ = filled(ledger)
    ledger.rotate_key(NEW, **SIGNED)
    sealed = Key(NEW).enclosed(FormerKeys(("s" * 32,), b"seal"))
    for value, text in (
        (sealed, "the accounts are not what the entries left"),
        ("00" * 99, "what it holds of its former keys is not what was written with its key"),
        ("nonsense", "what it holds of its former keys is not what was written with its key"),
    ):
        with ledger.books.store.write() as db:
            db.run("UPDATE accord_meta SET value = ? WHERE name = 'former'", value)
        again = Ledger(tmp_path / "a.db", NEW)
        assert any("the accounts are not what the entries left" in one for one in again.verify().problems)
        with pytest.raises(LedgerError, match=text):
            again.remaining(people)
        with pytest.raises(LedgerError):
            again.rotate_key(THIRD, **SIGNED)


def test_former_keys_are_read_with_the_new_key_only():
    former = Key(KEY).after(FormerKeys(("s" * 32,), b"older"))
    assert former.secrets == ("s" * 32, Key(KEY).secret) and former.seal("x") == Key(KEY).seal("x")
    text = Key(NEW).enclosed(former)
    assert Key(NEW).disclosed(text) == former and Key(NEW).enclosed(former) != text
    assert Key(KEY).disclosed(text) is None and Key(KEY).secret not in text
    for k in range(0, len(text), 7):
        assert Key(NEW).disclosed(text[:k] + ("1" if text[k] == "0" else "0") + text[k + 1 :]) is None
        assert Key(NEW).disclosed(text[:k]) is None
    assert Key(NEW).disclosed("") is None
    assert not any(secret in f"{former!r}{Key(NEW)!r}" for secret in former.secrets)


def test_a_forged_change_of_the_key_shows(tmp_path):
    ledger = Ledger(tmp_path / "a.db", KEY)
    filled(ledger)
    entries, seal = ledger.entries(), Key(KEY).seal
    rows = Replay().run(entries, seal).tables
    for content in (
        {"key": "k", "digest": "d"},
        {"key": "k", "digest": "d", "fingerprints": [[1, "a"]]},
        {"key": "k", "digest": "d", "fingerprints": 7},
        {"key": "k", "fingerprints": [[1, "a"], [2, "b"]]},
    ):
        replay = Replay().run([*entries, next_entry(entries[-1], "rotate", content, seal)], seal)
        assert [one.partition(" (")[0] for one in replay.problems] == [
            f"entry {len(entries) + 1} cannot be read"
        ]
        assert replay.tables == rows


# ---- others, meanwhile -----------------------------------------------------------------------------------------------------


def test_who_has_it_open_is_refused(url):
    ledger, other, fresh, looks = Ledger(url, KEY), Ledger(url, KEY), Ledger(url, KEY), Ledger(url, KEY)
    people, staff, _ = filled(ledger)
    other.remaining(people)  # knows the former secrets
    ledger.rotate_key(NEW, **SIGNED)
    entries = ledger.entries()
    acts = (
        lambda stale: stale.remaining(people),
        lambda stale: stale.accounts(),
        lambda stale: stale.person(1),
        lambda stale: stale.withdraw(1),
        lambda stale: stale.register(opened({77: 1.0}), "more"),
        lambda stale: stale.require("actor"),
        lambda stale: staff.release(MEAN, "minimum", 0.1, ledger=stale, fresh=True),
        lambda stale: stale.rotate_key(THIRD, **SIGNED),
    )
    for stale, act in product((other, fresh), acts):
        with pytest.raises(LedgerError, match=CHANGED):
            act(stale)
    if not url.startswith("postgres"):
        with pytest.raises(LedgerError, match=CHANGED):
            looks.accept_backup("why not")
    assert ledger.entries() == entries
    sound(looks, sealed=False)
    sound(ledger)


def test_a_release_under_way_gives_no_answer(url, monkeypatch):
    ledger, table = Ledger(url, KEY), opened({1: 1.0, 2: 1.0})
    ledger.register(table, "people")
    read = TableReader.summaries

    def slow(self, *args, **options):
        Ledger(url, KEY).rotate_key(NEW, **SIGNED)
        return read(self, *args, **options)

    monkeypatch.setattr(TableReader, "summaries", slow)
    with pytest.raises(LedgerError, match=rf"{CHANGED}.* charged all the same"):
        table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    again = Ledger(url, NEW)
    assert [one["state"] for one in again.history()] == ["no answer"]
    assert again.verify().open == 1 and again.accounts()[0].spent == (0.1, 0.1)
    sound(again)


def test_a_thread_that_registers_with_the_former_key_registers_nothing(tmp_path, monkeypatch):
    """The hashes that it has read are of nobody any more."""
    ledger = Ledger(tmp_path / "a.db", KEY)
    ledger.register(opened({1: 1.0}), "people")
    table = opened({1: 1.0, 2: 1.0})
    people = type(table.identity).people

    def slow(self, secret):
        ledger.rotate_key(NEW, **SIGNED)
        return people(self, secret)

    monkeypatch.setattr(type(table.identity), "people", slow)
    with pytest.raises(LedgerError, match=CHANGED):
        ledger.register(table, "people")
    assert len(everyone(ledger)) == 1
    sound(ledger)


def spend(url, key):
    """Release until the key is another; what was booked by then, and why it ended."""
    ledger, table, booked = Ledger(url, key), opened({1: 1.0, 2: 1.0}), []
    while True:
        try:
            booked.append(table.release(MEAN, "minimum", 0.0001, ledger=ledger, fresh=True).booked.entry)
        except AccordError as refusal:
            return [booked, str(refusal)]


@pytest.mark.slow
def test_two_processes(url):
    """Nothing is booked with the former key after the change, by a process that goes on releasing."""
    ledger = Ledger(url, KEY)
    ledger.register(opened({1: 1.0, 2: 1.0}), "people")
    job = json.dumps({"url": url, "key": KEY})
    with subprocess.Popen([sys.executable, __file__, job], stdout=subprocess.PIPE, text=True) as process:
        while len(ledger.history()) < 3:
            assert process.poll() is None
        entry = ledger.rotate_key(NEW, **SIGNED).entry
        booked, refusal = json.loads(process.communicate(timeout=600)[0])
    assert "was changed meanwhile" in refusal
    assert len(booked) >= 2 and max(booked) < entry == len(ledger.entries())
    sound(Ledger(url, NEW))


# ---- the files -------------------------------------------------------------------------------------------------------------


def test_the_key_file_holds_the_new_key(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(table := opened({1: 1.0}), "people")
    former = (tmp_path / "a.db.key").read_text()
    done = ledger.rotate_key(**SIGNED)
    path = tmp_path / "a.db.key"
    new = path.read_text()
    assert done.key_file == str(path) and new != former and len(new.strip()) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(done) == (
        "the key was changed, as entry 2. Everyone has another hash (1 in all), and what they had. "
        f"It is in {str(path)!r}: keep a copy of it apart from the ledger's. Older copies of the ledger can be "
        "read with the former key as before: destroy them, and it."
    )
    Ledger(tmp_path / "a.db").rotate_key(NEW, **SIGNED)
    assert path.read_text() == f"{NEW}\n" and stat.S_IMODE(path.stat().st_mode) == 0o600
    Ledger(tmp_path / "a.db", NEW.encode()).rotate_key(THIRD.encode(), **SIGNED)
    assert path.read_text() == f"{THIRD}\n"
    table.release(MEAN, "minimum", 0.1, ledger=Ledger(tmp_path / "a.db"), fresh=True)
    assert {path.suffix for path in tmp_path.iterdir()} <= {".db", ".key", ".head", ".db-wal", ".db-shm"}


def test_a_key_that_is_given_is_kept_by_whoever_gave_it(tmp_path):
    ledger = Ledger(tmp_path / "a.db", KEY)
    with pytest.raises(LedgerError) as refusal:
        ledger.rotate_key(**SIGNED)
    assert str(refusal.value) == (
        f"the key of the ledger {ledger.label} is not kept in a file beside it, where a new one could be put. "
        "Give new_key= (on the command line the variable ACCORD_LEDGER_NEW_KEY), and keep it."
    )
    done = ledger.rotate_key(NEW, **SIGNED)
    assert done.key_file is None and not (tmp_path / "a.db.key").exists()
    assert "and what they had. Give it wherever the ledger is used: key=. Older" in str(done)
    (tmp_path / "a.db.key").write_text("a key of something else\n")  # of whom, nobody knows: it stays
    Ledger(tmp_path / "a.db", NEW).rotate_key(THIRD, **SIGNED)
    assert (tmp_path / "a.db.key").read_text() == "a key of something else\n"


@pytest.mark.parametrize("committed", [False, True])
def test_a_draft_that_was_left_behind(committed, tmp_path):
    """By a process that was killed before the commit, or after it."""
    path, draft = tmp_path / "a.db.key", tmp_path / "a.db.key.new"
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(table := opened({1: 1.0}), "people")
    former = path.read_text()
    if committed:
        ledger.rotate_key(**SIGNED)
        path.rename(draft)
        path.write_text(former)
    else:
        draft.write_text(NEW)
    right = (draft if committed else path).read_text()
    assert Ledger(tmp_path / "a.db").verify().sealed, "which changes nothing"
    assert path.read_text() == former and draft.exists()
    table.release(MEAN, "minimum", 0.1, ledger=Ledger(tmp_path / "a.db"), fresh=True)
    assert path.read_text() == right and not draft.exists()
    Ledger(tmp_path / "a.db").rotate_key(**SIGNED)
    sound(Ledger(tmp_path / "a.db"))


def test_half_a_draft_is_no_draft(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    for content in (b"", b"abc", b"\xff" * 70):
        (tmp_path / "a.db.key.new").write_bytes(content)
        Ledger(tmp_path / "a.db").register(opened({1: 1.0}), "people")
        assert not (tmp_path / "a.db.key.new").exists()
    ledger.rotate_key(**SIGNED)
    sound(Ledger(tmp_path / "a.db"))


@pytest.mark.slow
def test_a_draft_is_not_touched_while_another_changes_the_key(tmp_path, monkeypatch):
    """Whoever opens the ledger between draft and commit waits, and has the right key."""
    url = tmp_path / "a.db"
    ledger = Ledger(url)
    ledger.register(table := opened({1: 1.0}), "people")
    job = [sys.executable, "-c", "import sys, accord; accord.Ledger(sys.argv[1]).person(1)", str(url)]
    waiting = []
    write = keys.write_draft

    def slow(path, key):
        write(path, key)
        waiting.append(subprocess.Popen(job))

    monkeypatch.setattr(keys, "write_draft", slow)
    ledger.rotate_key(**SIGNED)
    assert waiting[0].wait(timeout=300) == 0
    table.release(MEAN, "minimum", 0.1, ledger=Ledger(url), fresh=True)
    assert not (tmp_path / "a.db.key.new").exists()
    sound(Ledger(url))


def test_the_head_of_the_former_key_counts_until_the_next_entry(tmp_path):
    """As after a crash between the commit and the head's catching up; later it is no head of this key."""
    head = tmp_path / "a.db.head"
    ledger = Ledger(tmp_path / "a.db", KEY)
    table = opened({1: 1.0})
    ledger.register(table, "people")
    old = head.read_text()
    table.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    newer = head.read_text()
    ledger.rotate_key(NEW, **SIGNED)
    for noted in (old, newer):
        head.write_text(noted)
        sound(Ledger(tmp_path / "a.db", NEW))
        assert Ledger(tmp_path / "a.db", NEW).remaining(table)
    with pytest.raises(BudgetError):  # nothing is booked, but the head is right from then on
        table.release(MEAN, "minimum", 1.0, ledger=Ledger(tmp_path / "a.db", NEW), fresh=True)
    assert head.read_text() not in (old, newer) and head.read_text().startswith("4 ")
    head.write_text(newer)
    table.release(MEAN, "minimum", 0.1, ledger=Ledger(tmp_path / "a.db", NEW), fresh=True)
    now = head.read_text()
    for noted in (old, newer):
        head.write_text(noted)
        (problem,) = Ledger(tmp_path / "a.db", NEW).verify().problems
        assert problem.endswith("was not written with the ledger's key")
        with pytest.raises(LedgerError, match="was not written with the ledger's key"):
            Ledger(tmp_path / "a.db", NEW).remaining(table)
    head.write_text(now)
    sound(Ledger(tmp_path / "a.db", NEW))


def test_a_head_is_not_sealed_with_a_former_key(tmp_path):
    """By a process that was about to note what it had booked when the key was changed."""
    ledger, late = Ledger(tmp_path / "a.db", KEY), Ledger(tmp_path / "a.db", KEY)
    late.register(opened({1: 1.0}), "people")
    ledger.rotate_key(NEW, **SIGNED)
    now = (tmp_path / "a.db.head").read_text()
    late.books.note()
    assert (tmp_path / "a.db.head").read_text() == now
    sound(ledger)


def test_an_older_copy_is_of_the_former_key(tmp_path):
    """With that key it can be gone on from; who has the new one is told."""
    ledger = Ledger(tmp_path / "a.db", KEY)
    ledger.register(table := opened({1: 1.0}), "people")
    with closing(sqlite3.connect(tmp_path / "a.db")) as one, closing(sqlite3.connect(tmp_path / "c")) as copy:
        one.backup(copy)
    ledger.rotate_key(NEW, **SIGNED)
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "c").rename(tmp_path / "a.db")
    with pytest.raises(LedgerError, match="this is not the key that the ledger"):
        Ledger(tmp_path / "a.db", NEW)
    older = Ledger(tmp_path / "a.db", KEY)
    with pytest.raises(LedgerError, match="is not complete"):
        older.remaining(table)
    older.accept_backup("the disk broke")
    older.rotate_key(NEW, **SIGNED)
    sound(Ledger(tmp_path / "a.db", NEW))


# ---- what is refused -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new_key", "words"),
    [
        ("short as it is", "the ledger's key is too short"),
        (b"", "the ledger's key is too short"),
        (7, "the ledger's key is too short"),
        ("\ud800" * 20, "the ledger's key is too short"),
        (KEY, r"new_key= is a key that the ledger '.*' has or had\. Give one that nobody has seen"),
        (NEW, r"new_key= is a key that the ledger '.*' has or had\. Give one that nobody has seen"),
        (f"{THIRD}\n", r"new_key= cannot be kept in '.*a\.db\.key'\. Give a line of printable text without"),
        (f" {THIRD}", r"new_key= cannot be kept in"),
        (b"\xff" * 20, r"new_key= cannot be kept in"),
    ],
)
def test_a_key_that_is_none(new_key, words, tmp_path):
    (tmp_path / "a.db.key").write_text(KEY)
    ledger = Ledger(tmp_path / "a.db", KEY)
    ledger.rotate_key(NEW, **SIGNED)
    before = ledger.entries(), (tmp_path / "a.db.key").read_text()
    with pytest.raises(LedgerError, match=words) as refusal:
        ledger.rotate_key(new_key, **SIGNED)
    assert str(new_key) not in str(refusal.value) or new_key in (b"", 7)
    assert refusal.value.__context__ is None, "which may hold the key"
    assert (ledger.entries(), (tmp_path / "a.db.key").read_text()) == before
    sound(ledger)


def test_it_is_booked_with_who_did_it_and_why(url):
    ledger = Ledger(url, KEY)
    for given in ({"actor": None, "purpose": "x"}, {"actor": "x", "purpose": None}):
        with pytest.raises(LedgerError, match="a change of the key is booked with who did it and why, and"):
            ledger.rotate_key(NEW, **given)
    with pytest.raises(TypeError):
        ledger.rotate_key(NEW)
    assert ledger.entries() == [] and Ledger(url, KEY).books.secret


def test_a_ledger_that_is_damaged_is_not_vouched_for(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    people, _, _ = filled(ledger)
    key = (tmp_path / "a.db.key").read_text()
    with ledger.books.store.write() as db:
        db.run("UPDATE accord_entry SET seal = ? WHERE seq = 2", "0" * 64)
    with pytest.raises(LedgerError) as refusal:
        ledger.rotate_key(**SIGNED)
    assert str(refusal.value) == (
        f"the ledger {ledger.label} is not sealed with a new key, because something is wrong with it: entry 2 was "
        "not written with the ledger's key. Restore it from a backup, or run 'accord ledger verify' to see all. "
        "Nothing was changed."
    )
    assert (tmp_path / "a.db.key").read_text() == key and not (tmp_path / "a.db.key.new").exists()
    people.release(accord.plan(ledger.remaining(people), MEAN, "minimum", 0.1), ledger=ledger, fresh=True)


def test_a_fault_in_the_middle_changes_nothing(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "a.db")
    people, _, _ = filled(ledger)
    before = ledger.export(), (tmp_path / "a.db.key").read_text()
    write = keys.write_draft

    def fails(path, key):
        write(path, key)
        raise OSError

    monkeypatch.setattr(keys, "write_draft", fails)
    with pytest.raises(OSError):
        ledger.rotate_key(**SIGNED)
    assert (ledger.export(), (tmp_path / "a.db.key").read_text()) == before
    assert not (tmp_path / "a.db.key.new").exists()
    sound(ledger)
    ledger.remaining(people)


def test_no_two_people_get_the_same_hash(tmp_path, monkeypatch):
    """A key with which they would is drawn again, or refused."""
    ledger = Ledger(tmp_path / "a.db")
    filled(ledger)
    hashed, seen = rotating.keyed_hash, []

    def collides(secret, text):
        if secret not in seen:
            seen.append(secret)
        return 7 if len(seen) <= 2 else hashed(secret, text)

    monkeypatch.setattr(rotating, "keyed_hash", collides)
    with pytest.raises(LedgerError, match=r"two people would have the same hash.* Give another\. Nothing"):
        ledger.rotate_key(NEW, **SIGNED)
    sound(ledger)
    ledger.rotate_key(**SIGNED)
    assert len(seen) == 3
    sound(Ledger(tmp_path / "a.db"))
    assert len(everyone(ledger)) == 7


def test_the_key_is_in_no_table_and_no_text(tmp_path, caplog):
    ledger = Ledger(tmp_path / "a.db")
    filled(ledger)
    former = (tmp_path / "a.db.key").read_text().strip()
    done = ledger.rotate_key(**SIGNED)
    new = (tmp_path / "a.db.key").read_text().strip()
    told = f"{done}{done!r}{ledger!r}{ledger.books.former!r}{ledger.export()}{caplog.text}"
    content = (tmp_path / "a.db").read_bytes()
    for key in (former, new):
        for part in (key, Key(key).secret):
            assert part not in told and part.encode() not in content


# ---- on the command line ---------------------------------------------------------------------------------------------------


def run(*arguments, **variables):
    return CliRunner().invoke(main, ["ledger", *arguments], env=variables)


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "somebody")
    Path("people.csv").write_text("id,level\n7,1\nx y,1\n", encoding="utf-8")
    run("init", "a.db")
    run("register", "a.db", "people", "people.csv", "--epsilon", "level", "--user", "id")
    assert "purpose is not given" in " ".join(run("rotate-key", "a.db").output.split())
    done = run("rotate-key", "a.db", "--why", "it leaked", "--json")
    place = str(tmp_path / "a.db.key")
    assert (done.exit_code, json.loads(done.stdout)) == (
        0,
        {
            "schema": 1,
            "entry": 2,
            "people": 2,
            "tables": 1,
            "key_file": place,
            "purged": True,
            "given_by": "key=",
        },
    )
    assert (
        "as entry 3. Everyone has another hash (2 in"
        in run("rotate-key", "a.db", "--why", "again", "--actor", "me").output
    )
    told = run("history", "a.db", "--kind", "rotate").output
    assert "the key was changed" in " ".join(told.split()) and "somebody" in told and "again" in told
    assert run("withdraw", "a.db", "7").exit_code == 0
    assert run("verify", "a.db").exit_code == 0


@pytest.mark.postgres
def test_the_command_line_on_a_server(postgres_url):
    Ledger(postgres_url, KEY).register(opened({1: 1.0}), "people")
    arguments = ("rotate-key", postgres_url, "--why", "it leaked")
    refusal = run(*arguments, ACCORD_LEDGER_KEY=KEY)
    assert refusal.exit_code != 0 and "the variable ACCORD_LEDGER_NEW_KEY" in " ".join(refusal.output.split())
    done = run(*arguments, ACCORD_LEDGER_KEY=KEY, ACCORD_LEDGER_NEW_KEY=NEW)
    said = " ".join(done.output.split())
    assert done.exit_code == 0 and "set the variable ACCORD_LEDGER_KEY to it now" in said and NEW not in said
    assert run("verify", postgres_url, ACCORD_LEDGER_KEY=NEW).exit_code == 0
    assert "it was changed" in run("person", postgres_url, "1", ACCORD_LEDGER_KEY=KEY).output
    assert run("person", postgres_url, "1", ACCORD_LEDGER_KEY=NEW).exit_code == 0


if __name__ == "__main__":
    print(json.dumps(spend(**json.loads(sys.argv[1]))))
