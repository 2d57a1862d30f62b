"""Many at once, and things that break half-way: the budget is spent to the last tenth and not beyond, and what was read is charged.

This file is also the program that the tests start, with a job as JSON: a driver that has one thread, and forks.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import import_module
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pytest

import accord
from accord.errors import AccordError, BudgetError, LedgerError, PlanError, SourceError
from accord.ledger import Ledger, charging
from accord.ledger.store import Session
from accord.people.reader import TableReader

releasing = import_module("accord.release.release")  # `accord.release.release` is the function

KEY = "a key that only tests use"
QUERY = accord.mean("value", bounds=(0, 10))
MANY = [2, 20]
CHARGED = "The release has been charged all the same, because reading had begun; its answer is not given out."


def people(levels):
    return {"id": list(levels), "value": [7 * k % 10 for k in levels], "level": list(levels.values())}


def table(levels):
    """Of numbers that have a type: levels in text would take most of the time of a release to read."""
    columns = {name: np.array(values) for name, values in people(levels).items()}
    return accord.table(columns, epsilon="level", user="id")


ONE, OTHER = dict.fromkeys(range(10), 1.0), dict.fromkeys(range(5, 15), 1.0)  # 5 to 9 are in both
STAYING, LEAVING, JOINING = dict.fromkeys(range(9), 1.0), dict.fromkeys(range(10, 13), 2.0), {13: 3.0}
VERSIONS = STAYING | LEAVING, STAYING | JOINING


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    return str(tmp_path / "a.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def opened(url):
    return Ledger(url, KEY if url.startswith("postgres") else None)


def run(**job):
    """What a driver says of a job."""
    alone = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }  # a process of several threads should not fork
    command = [sys.executable, "-W", "error", __file__, json.dumps(job)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | alone, text=True, timeout=1800)
    assert done.returncode == 0
    return json.loads(done.stdout)


def spendings(ledger):
    return {(account.table, account.level): account.spent for account in ledger.accounts()}


def in_order(ledger):
    """The ledger with its chain checked, also by hand: whole, each entry once, and every reservation answered."""
    verdict = ledger.verify()
    assert (verdict.problems, verdict.open) == ((), 0)
    entries = ledger.entries()
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.previous for entry in entries[1:]] == [entry.hash for entry in entries[:-1]]
    return ledger


# ---- many at once --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", MANY)
def test_processes_spend_exactly_what_there_is(url, many):
    """Everyone has 1, a release costs 0.1, and some are in both tables: 10 releases in all, whoever is faster."""
    said = run(do="spend", url=url, many=many)
    assert Counter(line["ended"] for line in said) == {"BudgetError": many}
    assert all("Nothing was spent." in line["told"] for line in said)
    entries = [entry for line in said for entry in line["entries"]]
    assert len(entries) == len(set(entries)) == 10
    ledger = in_order(opened(url))
    assert sorted(entries) == [entry.seq for entry in ledger.entries() if entry.kind == "release"]
    by_table = Counter(step["table"] for step in ledger.history())
    assert by_table.total() == 10
    for name in ("one", "other"):  # the least is of those who are in this table alone
        least, most = spendings(ledger)[name, 1.0]
        assert (round(least * 10, 9), most) == (by_table[name], 1.0)


@pytest.mark.parametrize("many", MANY)
def test_processes_that_make_the_same_ledger_make_one(url, many, tmp_path):
    said = run(do="make", url=url, many=many)
    assert Counter(line["ended"] for line in said) == {"done": many}
    assert len({line["secret"] for line in said}) == 1
    ledger = in_order(opened(url))
    assert [entry.kind for entry in ledger.entries()] == ["register"]
    with ledger.books.store.read() as db:
        assert db.rows("SELECT COUNT(*) FROM accord_meta WHERE name IN ('key', 'schema', 'neighbors')") == [
            (3,)
        ]
    if not url.startswith("postgres"):
        (key,) = (path for path in tmp_path.iterdir() if ".key" in path.name)
        assert (
            key.name == "a.db.key"
            and Ledger(url, key.read_text().strip()).books.secret[0] == said[0]["secret"]
        )


def test_a_ledger_is_made_by_two_at_once_again_and_again(tmp_path):
    """The moment in which two creations can meet is short: 25 times."""
    for place in map(str, range(25)):
        (tmp_path / place).mkdir()
    urls = [str(tmp_path / place / "a.db") for place in map(str, range(25))]
    for url, said in zip(urls, run(do="make often", urls=urls), strict=True):
        assert [line["ended"] for line in said] == ["done"] * 2, said
        assert len({line["secret"] for line in said}) == 1
        assert [path.name for path in Path(url).parent.iterdir() if ".key" in path.name] == ["a.db.key"]


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_ledger_is_made_when_another_process_lets_go_of_its_file(lock, tmp_path):
    """SQLite itself does not wait for that."""
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE for_a_moment (x)")
        other.execute("DROP TABLE for_a_moment")
        other.execute(f"BEGIN {lock}")
        gone = []
        timer = threading.Timer(0.3, lambda: gone.append(True) or other.execute("ROLLBACK"))
        timer.start()
        ledger = Ledger(tmp_path / "a.db")
        assert gone  # and not before
        timer.join()
    assert in_order(ledger).entries() == []


def test_versions_are_registered_while_others_release(url):
    """Whichever version a release was about, those who were in it have paid for it, and nobody else."""
    said = run(do="register", url=url)
    assert {line["ended"] for line in said} == {"done"}
    ledger = in_order(opened(url))
    steps = [entry for entry in ledger.entries() if entry.kind == "reserve"]
    assert len(steps) == sum(len(line["entries"]) for line in said) >= 3 * 5
    versions = [entry.content["version"] for entry in ledger.entries() if entry.kind == "register"]
    assert versions == list(range(1, len(versions) + 1)) and len(versions) > 1
    even = sum(step.content["version"] % 2 == 0 for step in steps)
    assert 0 < even < len(steps)
    old, new = map(table, VERSIONS)
    expected = {1.0: len(steps), 2.0: len(steps) - even, 3.0: even}
    ledger.register(old, "people")  # those who left come back with what they had spent
    ledger.register(new, "others")
    assert {level: (round(least * 1000), round(most * 1000)) for (_, level), (least, most) in spendings(ledger).items()} == {
        level: (count, count) for level, count in expected.items()
    }  # fmt: skip


def test_threads_share_a_ledger_and_a_table(url):
    ledger, shared = opened(url), table(ONE)
    ledger.register(shared, "people")
    start = threading.Barrier(8)

    def spend(_):
        start.wait()
        booked = []
        with pytest.raises(BudgetError, match="Nothing was spent"):
            while True:
                booked.append(
                    shared.release(QUERY, "minimum", share=0.1, ledger=ledger, fresh=True).booked.entry
                )
        return booked

    with ThreadPoolExecutor(8) as threads:
        entries = [entry for each in threads.map(spend, range(8)) for entry in each]
    assert len(entries) == len(set(entries)) == 10
    assert spendings(in_order(ledger)) == {("people", 1.0): (1.0, 1.0)}


def test_threads_plan_from_what_is_left(tmp_path):
    """By joining person by person, on one table. A plan that was overtaken is refused, and costs nothing."""
    ledger, shared, others = Ledger(tmp_path / "a.db"), table(ONE), table(OTHER)
    ledger.register(shared, "one")
    ledger.register(others, "other")
    others.release(QUERY, "minimum", share=0.5, ledger=ledger, fresh=True)
    start, overtaken = threading.Barrier(4), []

    def spend(_):
        start.wait()
        charges = []
        while len(charges) < 3 or (not overtaken and len(charges) < 50):
            plan = accord.plan(ledger.remaining(shared), QUERY, "minimum", share=0.1)
            try:
                charges += set(shared.release(plan, ledger=ledger, fresh=True).charges.values())
            except PlanError as refused:
                assert "what is left has changed since" in str(refused) and CHARGED not in str(refused)
                overtaken.append(refused)
        return charges

    with ThreadPoolExecutor(4) as threads:
        charges = [charge for each in threads.map(spend, range(4)) for charge in each]
    assert len(charges) >= 12 and overtaken
    remaining = 0.5
    for charge in sorted(charges, reverse=True):  # each a tenth of what the one before it left
        assert charge == pytest.approx(remaining / 10, abs=2e-6)
        remaining -= charge
    least, most = spendings(in_order(ledger))["one", 1.0]
    assert (least, most) == (pytest.approx(sum(charges)), pytest.approx(0.5 + sum(charges)))


def test_children_use_the_ledger_of_their_parent(url):
    """Opened, used and with its key looked up before the fork; parent and children go on at the same time."""
    said = run(do="inherit", url=url)
    assert Counter(line["ended"] for line in said) == {"BudgetError": 5}
    entries = [entry for line in said for entry in line["entries"]]
    assert len(entries) == len(set(entries)) == 9  # and one before the fork
    assert spendings(in_order(opened(url))) == {("people", 1.0): (1.0, 1.0)}


# ---- what breaks half-way ------------------------------------------------------------------------------------------------


@pytest.fixture
def registered(url):
    """A ledger, a table that it knows, and what everyone in it pays for a release."""
    ledger, here = opened(url), table(ONE)
    ledger.register(here, "people")
    return ledger, here


def ask(here, ledger):
    return here.release(QUERY, "minimum", share=0.1, ledger=ledger, fresh=True)


def left_behind(ledger, state):
    """It was charged, it is in that state without an answer, and the ledger is in order and goes on."""
    verdict = ledger.verify()
    assert verdict.problems == () and verdict.open == (state == "no answer")
    (step,) = ledger.history()
    assert (step["state"], step["receipts"]) == (state, [])
    assert spendings(ledger) == {("people", 1.0): (0.1, 0.1)}


def test_after_it_broke_the_next_release_works(registered, monkeypatch):
    ledger, here = registered
    with monkeypatch.context() as patch:
        patch.setattr(releasing, "carry_out", failing(SourceError("gone.")))
        with pytest.raises(SourceError, match=CHARGED):
            ask(here, ledger)
    left_behind(ledger, "failed")
    assert ask(here, ledger).booked.entry == 5  # register, reserve, failed, reserve, release
    assert spendings(in_order(ledger)) == {("people", 1.0): (0.2, 0.2)}


def failing(fault):
    def fail(*_):
        raise fault

    return fail


def doing(patch, owner, name, before=lambda: None, after=lambda: None):
    """Have something happen before and after a step."""
    step = getattr(owner, name)

    def done(*args):
        before()
        result = step(*args)
        after()
        return result

    patch.setattr(owner, name, done)


BROKEN = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "gone": lambda path: path.unlink(),
    "overwritten": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
    "other people": lambda path: parquet(path, ONE | {10: 1.0}),
    "other levels": lambda path: parquet(path, ONE | {9: 2.0}),
    "as many others": lambda path: parquet(path, dict.fromkeys(range(1, 11), 1.0)),
}


def parquet(path, levels):
    draft = path.with_suffix(".draft")
    with closing(duckdb.connect()) as connection:
        columns = people(levels)
        rows = ", ".join(str(row) for row in zip(*columns.values(), strict=True))
        connection.execute(
            f"COPY (SELECT * FROM (VALUES {rows}) t({', '.join(columns)})) TO '{draft}' (FORMAT parquet)"
        )
    draft.replace(path)


@pytest.mark.parametrize("damage", BROKEN)
def test_a_file_that_breaks_after_it_was_charged(damage, tmp_path, monkeypatch):
    path = tmp_path / "people.parquet"
    parquet(path, ONE)
    ledger, here = Ledger(tmp_path / "a.db"), accord.table(path, epsilon="level", user="id")
    ledger.register(here, "people")
    doing(monkeypatch, charging, "reserve_all", after=lambda: BROKEN[damage](path))
    with pytest.raises(SourceError) as refusal:
        ask(here, ledger)
    assert str(refusal.value).endswith(CHARGED)
    left_behind(ledger, "failed")
    parquet(path, ONE)
    monkeypatch.undo()
    assert ask(accord.table(path, epsilon="level", user="id"), ledger).booked.entry == 5


@pytest.mark.parametrize("damage", BROKEN)
def test_a_file_that_breaks_before_it_is_charged(damage, tmp_path):
    path = tmp_path / "people.parquet"
    parquet(path, ONE)
    ledger, here = Ledger(tmp_path / "a.db"), accord.table(path, epsilon="level", user="id")
    ledger.register(here, "people")
    here.spec()
    BROKEN[damage](path)
    with pytest.raises((SourceError, LedgerError)) as refusal:
        ask(here, ledger)
    assert CHARGED not in str(refusal.value)
    assert ledger.history() == []
    assert spendings(in_order(ledger)) == {("people", 1.0): (0.0, 0.0)}


def test_the_second_question_of_a_workload_fails(registered, monkeypatch):
    ledger, here = registered
    reads = iter([TableReader.summaries, failing(SourceError("gone."))])
    monkeypatch.setattr(TableReader, "summaries", lambda *args, **named: next(reads)(*args, **named))
    with pytest.raises(SourceError, match=CHARGED):
        here.release(accord.workload([QUERY, QUERY]), "minimum", share=0.1, ledger=ledger, fresh=True)
    left_behind(ledger, "failed")  # for both, and nothing of the first is told
    content = ledger.entries()[-1].content
    assert content["reserve"] == 2 and "receipts" not in content


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_is_booked_and_goes_on(fault, registered, monkeypatch):
    ledger, here = registered
    stop = fault("now")
    monkeypatch.setattr(TableReader, "summaries", failing(stop))
    with pytest.raises(fault) as refusal:
        ask(here, ledger)
    assert refusal.value is stop
    left_behind(ledger, "failed")


def test_ctrl_c_while_a_table_is_read(tmp_path):
    """A real SIGINT, in the midst of a long query. (DuckDB may hear it only when it is done.)"""
    said = run(do="interrupt", url=str(tmp_path / "a.db"))
    assert said == {"ended": "KeyboardInterrupt", "done": False}
    left_behind(Ledger(tmp_path / "a.db"), "failed")


def moved(folder, to):
    return lambda: Path(folder).rename(to)


def test_a_file_of_a_ledger_that_goes_away_before_the_answer_is_booked(tmp_path, monkeypatch):
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    ledger, here = Ledger(home / "a.db"), table(ONE)
    ledger.register(here, "people")
    doing(monkeypatch, releasing, "carry_out", after=moved(home, away))
    with pytest.raises(LedgerError) as refusal:
        ask(here, ledger)
    assert "cannot be opened" in str(refusal.value) and str(refusal.value).endswith(CHARGED)
    assert not home.exists()  # no other ledger was begun in its place
    away.rename(home)
    left_behind(ledger, "no answer")
    monkeypatch.undo()
    assert ask(here, ledger).booked.entry == 4


def test_a_ledger_that_goes_away_with_its_source(tmp_path, monkeypatch):
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    ledger, here = Ledger(home / "a.db"), table(ONE)
    ledger.register(here, "people")
    doing(
        monkeypatch, TableReader, "summaries", before=moved(home, away), after=failing(SourceError("gone."))
    )
    with pytest.raises(SourceError) as refusal:
        ask(here, ledger)
    assert str(refusal.value) == f"gone. {CHARGED}"
    away.rename(home)
    left_behind(ledger, "no answer")


@pytest.mark.parametrize("when", ["reserve", "settle"])
def test_a_full_disk(when, tmp_path, monkeypatch):
    ledger, here = Ledger(tmp_path / "a.db"), table(ONE)
    ledger.register(here, "people")
    insert = Session.run

    def full(self, sql, *values):
        if "INSERT INTO accord_entry" in sql:
            ((pages,),) = self.rows("PRAGMA page_count")
            self.rows(f"PRAGMA max_page_count = {pages}")
            values = (*values[:3], values[3] + " " * 100_000, *values[4:])
        return insert(self, sql, *values)

    def fill():
        monkeypatch.setattr(Session, "run", full)

    if when == "reserve":
        fill()
    else:
        doing(monkeypatch, releasing, "carry_out", after=fill)
    with pytest.raises(LedgerError, match="the disk is full") as refusal:
        ask(here, ledger)
    monkeypatch.undo()
    assert (CHARGED in str(refusal.value)) == (when == "settle")
    if when == "settle":
        left_behind(ledger, "no answer")
    else:
        assert ledger.history() == []
        assert spendings(in_order(ledger)) == {("people", 1.0): (0.0, 0.0)}
    assert ask(here, ledger).booked.entry == (4 if when == "settle" else 3)


@pytest.mark.parametrize("when", ["reserve", "settle"])
def test_a_disk_that_takes_no_more(when, tmp_path):
    """By the kernel: no write goes beyond the first kilobyte of a file."""
    url = str(tmp_path / "a.db")
    said = run(do="limit", url=url, when=when)
    assert said["ended"] == "LedgerError"
    assert (CHARGED in said["told"]) == (when == "settle")
    ledger = Ledger(url)
    if when == "settle":
        left_behind(ledger, "no answer")
    else:
        assert ledger.history() == []
        assert spendings(in_order(ledger)) == {("people", 1.0): (0.0, 0.0)}
    ask(table(ONE), ledger)


def disconnect(server, name):
    """What an administrator does: end every connection to a database."""
    with psycopg.connect(server, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        return ended.rowcount


@pytest.fixture
def database(postgres_url):
    return postgres_url.split("/")[3].split("?")[0]


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["reserve", "release"])
def test_a_connection_that_is_ended_within_a_transaction(
    kind, postgres_url, postgres_server, database, monkeypatch
):
    """After the entry was written, and before it is committed."""
    ledger, here = opened(postgres_url), table(ONE)
    ledger.register(here, "people")
    run_, ended = Session.run, []

    def cut(self, sql, *values):
        changed = run_(self, sql, *values)
        if "INSERT INTO accord_entry" in sql and kind in values:
            ended.append(disconnect(postgres_server, database))
        return changed

    monkeypatch.setattr(Session, "run", cut)
    with pytest.raises(LedgerError, match="the server cannot be reached or has gone") as refusal:
        ask(here, ledger)
    monkeypatch.undo()
    assert ended == [1]
    assert (CHARGED in str(refusal.value)) == (kind == "release")
    if kind == "release":
        left_behind(ledger, "no answer")
    else:
        assert ledger.history() == []
        assert spendings(in_order(ledger)) == {("people", 1.0): (0.0, 0.0)}
    ask(here, ledger)


@pytest.mark.postgres
def test_connections_that_are_ended_between_transactions_do_no_harm(
    postgres_url, postgres_server, database, monkeypatch
):
    ledger, here = opened(postgres_url), table(ONE)
    ledger.register(here, "people")
    doing(monkeypatch, releasing, "carry_out", after=lambda: disconnect(postgres_server, database))
    assert ask(here, ledger).booked.entry == 3
    assert spendings(in_order(ledger)) == {("people", 1.0): (0.1, 0.1)}


@pytest.mark.postgres
@pytest.mark.parametrize(
    "fault", [None, SourceError("gone."), KeyboardInterrupt()], ids=["", "source", "interrupt"]
)
def test_a_server_that_goes_away_before_the_answer_is_booked(
    fault, postgres_url, postgres_server, database, monkeypatch
):
    ledger, here = opened(postgres_url), table(ONE)
    ledger.register(here, "people")

    def allow(yes):
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {database} WITH ALLOW_CONNECTIONS {yes}")

    def go():
        allow(False)
        if fault:
            raise fault

    doing(monkeypatch, releasing, "carry_out", after=go)
    with pytest.raises(type(fault) if fault else LedgerError) as refusal:
        ask(here, ledger)
    allow(True)
    if not isinstance(fault, KeyboardInterrupt):
        assert str(refusal.value).endswith(CHARGED)
    left_behind(ledger, "no answer")


@pytest.mark.postgres
def test_a_server_whose_transactions_are_strict_by_default(postgres_url, postgres_server, database):
    """Then a snapshot is taken before the wait for other writers, unless the ledger says otherwise."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")
        connection.execute(f"ALTER DATABASE {database} SET synchronous_commit = off")
    said = run(do="spend", url=postgres_url, many=6)
    assert Counter(line["ended"] for line in said) == {"BudgetError": 6}
    assert sum(len(line["entries"]) for line in said) == 10
    in_order(opened(postgres_url))


# ---- the driver ----------------------------------------------------------------------------------------------------------


def keep_one_thread():
    """Have DuckDB start no threads, so that children can be forked that have tables open."""
    connect = duckdb.connect

    def alone(*args, config, **options):
        return connect(*args, config=config | {"threads": "1", "async_threads": "0"}, **options)

    duckdb.connect = alone
    here = table(ONE)
    here.spec()
    deadline = time.monotonic() + 300
    while (
        len(list(Path("/proc/self/task").iterdir())) > 1
    ):  # the thread that waited for the query is just about to end
        assert time.monotonic() < deadline
    return here


def at_once(works, meanwhile=None):
    """What processes report that all begin at the same moment, after they were forked; each is given its number."""
    wait, go = os.pipe()
    reports = []
    for number, work in enumerate(works):
        report, out = os.pipe()
        if os.fork() == 0:
            try:
                os.close(go)
                os.read(wait, 1)
                os.write(out, json.dumps(work(number)).encode())
                os._exit(0)
            finally:
                traceback.print_exc()
                os._exit(1)
        os.close(out)
        reports.append(os.fdopen(report))
    os.close(wait)
    os.close(go)
    said = [meanwhile()] if meanwhile else []
    for report in reports:
        with report:
            said.append(json.loads(report.read()))
    for _ in works:
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    return said


def spend(here, ledger):
    """Release until it is refused."""
    entries = []
    try:
        while True:
            entries.append(ask(here, ledger).booked.entry)
    except AccordError as fault:
        return {"ended": type(fault).__name__, "told": str(fault), "entries": entries}


def drive_spend(url, many):
    ledger = opened(url)
    if many > 2:
        tables = [keep_one_thread(), table(OTHER)]
        for here, name in zip(tables, ("one", "other"), strict=True):
            ledger.register(here, name)
        return at_once([lambda number: spend(tables[number % 2], opened(url))] * many)

    def register(_):
        for levels, name in ((ONE, "one"), (OTHER, "other")):
            ledger.register(table(levels), name)

    at_once([register])
    return at_once(
        [lambda number: spend(table((ONE, OTHER)[number]), opened(url))] * many
    )  # with threads of their own


def make(url, here):
    try:
        ledger = opened(url)
        ledger.register(here, "people")
    except AccordError as fault:
        return {"ended": f"{type(fault).__name__}: {fault}"}
    return {"ended": "done", "secret": ledger.books.secret[0]}


def drive_make(url, many):
    return drive_make_often([url], many)[0]


def drive_make_often(urls, many=2):
    here = keep_one_thread()
    return [at_once([lambda _, url=url: make(url, here)] * many) for url in urls]


def drive_register(url):
    keep_one_thread()
    ledger, versions = opened(url), [table(levels) for levels in VERSIONS]
    ledger.register(versions[0], "people")
    done = Path(tempfile.mkdtemp(prefix="accord-"))

    def release(number):
        """Whichever version is registered, until both were; the other is refused."""
        entries, seen = [], set()
        while len(entries) < 5 or len(seen) < 2:
            for version, here in enumerate(versions):
                try:
                    entries.append(
                        here.release(QUERY, "minimum", share=0.001, ledger=ledger, fresh=True).booked.entry
                    )
                    seen.add(version)
                except LedgerError as fault:
                    assert "is not as it was registered as 'people'" in str(fault), fault
        (done / str(number)).touch()
        return {"ended": "done", "entries": entries}

    def register(_):
        turns = 1
        while len(list(done.iterdir())) < 3:
            ledger.register(versions[turns % 2], "people")
            turns += 1
            time.sleep(0.05)  # to let others in between
        return {"ended": "done", "entries": []}

    try:
        return at_once([release] * 3 + [register])
    finally:
        shutil.rmtree(done)


def drive_inherit(url):
    ledger, here = opened(url), keep_one_thread()
    ledger.register(here, "people")
    ask(here, ledger)
    return at_once([lambda _: spend(here, ledger)] * 4, lambda: spend(here, ledger))


def drive_interrupt(url):
    ledger, here = Ledger(url), table(ONE)
    ledger.register(here, "people")

    done = []

    def count(self, *_):
        with self.engine.lend({"k": np.zeros(3_000_000, dtype=np.int8)}) as lent:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            long = f"{lent}, range(100)"  # minutes
            sql = f"SELECT SUM(length(sha256(sha256(k::VARCHAR || range)))) AS total FROM {long}"
            self.engine.fetch(sql)
            done.append(True)

    TableReader.summaries = count
    try:
        ask(here, ledger)
    except BaseException as fault:
        return {"ended": type(fault).__name__, "done": bool(done)}


def drive_limit(url, when):
    ledger, here = Ledger(url), table(ONE)
    ledger.register(here, "people")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    carry_out = releasing.carry_out

    def limit(*args):
        released = carry_out(*args) if args else None
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        return released

    if when == "reserve":
        here.identity.fingerprint(ledger.books.secret)
        limit()
    else:
        releasing.carry_out = limit
    try:
        ask(here, ledger)
    except AccordError as fault:
        return {"ended": type(fault).__name__, "told": str(fault)}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    print(json.dumps(globals()["drive_" + job.pop("do").replace(" ", "_")](**job)))
