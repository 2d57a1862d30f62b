"""Killed with -9 at any line, nobody is charged in part, or less than what was read, and the ledger goes on working.

This file is also the program that the tests start, with a job as JSON. A driver forks a child for each line of the ledger and of the release that
an action runs; the child kills itself when it comes to that line, and the driver looks at what it left.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

import accord
from accord.errors import LedgerError
from accord.ledger import Ledger
from accord.people.reader import TableReader

KEY, NEW_KEY = "a key that only tests use", "another key of the tests"
AGREED = {"raise_levels": True, "actor": "a test", "purpose": "they agreed"}
ROOMS = ("ledger", "release")
QUERY = accord.mean("value", bounds=(0, 10))
WORKLOAD = accord.workload([QUERY, accord.sum("other", bounds=(0, 10))])
LEVELS = {0: 0.5, 1: 0.5, 2: 1.0, 3: 1.0, 4: 2.0, 5: 2.0}
NEW_LEVELS = {
    1: 0.5,
    2: 1.0,
    3: 0.75,
    4: 3.0,
    5: 2.0,
    8: 1.0,
}  # 0 left, 8 joined, 3 lowered their level, 4 raised it
STAFF = {3: 1.0, 4: 3.0, 5: 3.0, 6: 3.0, 7: 3.0}
SPENT = {("people", 0.5): [0.0, 0.0], ("people", 1.0): [0.0, 0.2], ("people", 2.0): [0.2, 0.2]}
SPENT |= {("staff", 1.0): [0.2, 0.2], ("staff", 3.0): [0.2, 0.2]}
SHARES = {"simple": 0.1, "remaining": 0.2, "workload": 0.3}
PHASES = {
    "create": ("nothing", "created"),
    "register": ("old", "new"),
    "withdraw": ("there", "withdrawn"),
    "rotate": ("former", "changed"),
    **dict.fromkeys(SHARES, ("before", "charged", "booked")),
}
FEW, MORE = (200, 12), {"sqlite": (48, 8), "postgres": (80, 14)}
"""What a quick test takes, and slow ones: each so-many-th line, and each so-many-th of those from a transaction's first change to its end. (1, 1) takes
all of them, for hours."""


# ---- the tests -----------------------------------------------------------------------------------------------------------


def killed(store, place, scenario, which, sabotage=""):
    """What each kill left, by line, from two drivers that take turns."""
    from noises import SEEDED  # not for the program that the tests start

    offset = SEEDED.randbelow(10_000)
    print(f"{scenario}: {which} from {offset}")  # shown if the test fails
    job = {"do": "lines", "store": store, "place": str(place), "scenario": scenario, "sabotage": sabotage}
    parts = run(*(job | {"which": which, "offset": offset, "turn": turn} for turn in range(2)))
    assert parts[0]["lines"] == parts[1]["lines"]
    kills = sorted(parts[0]["kills"] + parts[1]["kills"], key=lambda kill: kill["line"])
    assert len(kills) >= parts[0]["lines"] // which[0]
    return parts[0] | {"kills": kills}


def run(*jobs):
    """What drivers say of these jobs, which they do at the same time."""
    alone = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }  # a process of several threads should not fork
    with ExitStack() as stack:
        drivers = []
        for job in jobs:
            command = [sys.executable, "-W", "error", __file__, json.dumps(job)]
            driver = subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | alone, text=True)
            drivers.append(stack.enter_context(driver))
            stack.callback(driver.kill)
        said = [driver.communicate(timeout=3600)[0] for driver in drivers]
        assert [driver.returncode for driver in drivers] == [0] * len(jobs)
    return [json.loads(text) for text in said]


def check(result, scenario):
    """Every kill left one of the whole states, in the order of the lines, and nothing to complain about."""
    complaints = [
        (kill["line"], kill["at"], kill["complaints"]) for kill in result["kills"] if kill["complaints"]
    ]
    assert not complaints, complaints[:10]
    order = PHASES[scenario]
    phases = [order.index(kill["phase"]) for kill in result["kills"]]
    assert phases == sorted(phases)
    assert set(phases) == set(
        range(len(order))
    )  # no phase was missed: the lines reach from one end to the other
    if scenario in SHARES:
        assert result["rooms"] == list(ROOMS)  # lines of both were run
        assert {(a["table"], a["level"]): a["spent"] for a in result["states"]["before"]["accounts"]} == SPENT
        assert result["states"]["charged"] == result["states"]["booked"]
        assert {
            (a["table"], a["level"]): a["spent"] for a in result["states"]["charged"]["accounts"]
        } == expected(scenario)


def expected(scenario):
    """What an action leaves everyone with, from the plan alone: people of staff who are not in people (6 and 7) pay nothing."""
    groups = [0.5, 0.5, 1.0, 0.8, 1.8, 1.8] if scenario == "remaining" else list(LEVELS.values())
    spec = accord.Spec.from_groups({level: groups.count(level) for level in groups})
    asked = WORKLOAD if scenario == "workload" else QUERY
    plan = accord.plan(spec, asked, "minimum", SHARES[scenario])
    (charge,) = set(plan.charges.values())  # `minimum` charges everyone alike
    assert charge == pytest.approx(SHARES[scenario] * 0.5, abs=2e-6)
    paid = {place: [round(spent + charge, 6) for spent in before] for place, before in SPENT.items()}
    return paid | {("staff", 3.0): [0.2, round(0.2 + charge, 6)]}


@pytest.mark.parametrize(
    ("scenario", "which"),
    [
        pytest.param("simple", FEW, id="simple-few"),
        *(pytest.param(name, MORE["sqlite"], id=name, marks=pytest.mark.slow) for name in PHASES),
    ],
)
def test_killed_at_any_line_with_sqlite(scenario, which, tmp_path):
    check(killed("sqlite", tmp_path, scenario, which), scenario)


@pytest.mark.postgres
@pytest.mark.parametrize("scenario", PHASES)
def test_killed_at_any_line_with_postgres(scenario, postgres_url):
    check(killed("postgres", postgres_url, scenario, MORE["postgres"]), scenario)


@pytest.mark.parametrize(
    ("sabotage", "words"),
    [("read first", "read before it was charged"), ("piecemeal", "an unknown state")],
)
def test_a_ledger_that_charges_late_or_in_part_is_noticed(sabotage, words, tmp_path):
    result = killed("sqlite", tmp_path, "simple", (200, 5), sabotage)
    assert any(words in complaint for kill in result["kills"] for complaint in kill["complaints"])


def test_killed_from_outside_at_any_time(tmp_path):
    """Four processes at once, two of them registering 20,000 people again and again, each killed after some milliseconds."""
    (result,) = run({"do": "times", "place": str(tmp_path), "kills": 80, "answers": 30, "versions": 10})
    assert result["problems"] == []
    assert result["next"] == "released"
    assert result["unbooked answers"] == []
    assert (
        result["answers"] <= result["released"] <= result["reserved"]
    )  # some were killed before they could tell
    assert result["open"] == result["reserved"] - result["released"] <= result["kills"]
    (charge,) = set(result["charges"])
    assert result["spent"] == [pytest.approx(charge * result["reserved"], abs=1e-9)] * 2


# ---- the driver ----------------------------------------------------------------------------------------------------------


def table(levels):
    """Of numbers that have a type: levels in text would take most of the time of a release to read."""
    people = np.array(list(levels))
    columns = {"id": people, "value": 7 * people % 10, "other": 3 * people % 10}
    return accord.table(columns | {"level": np.array(list(levels.values()))}, epsilon="level", user="id")


def keep_one_thread():
    """Have DuckDB start no threads, so that children can be forked that have tables open: to open one takes longer than all the rest."""
    import duckdb

    from accord.engines import duckdb_connection as engine

    assert engine.duckdb is duckdb
    connect = duckdb.connect

    def alone(*args, config, **options):
        return connect(*args, config=config | {"threads": "1", "async_threads": "0"}, **options)

    duckdb.connect = alone
    tables = {"old": table(LEVELS), "new": table(NEW_LEVELS), "staff": table(STAFF)}
    for opened in tables.values():
        opened.spec()
    deadline = time.monotonic() + 300
    while (
        len(list(Path("/proc/self/task").iterdir())) > 1
    ):  # the thread that waited for a query is just about to end
        assert time.monotonic() < deadline
    return tables


def forked(work):
    """How it ended: 0, or −9 if it was killed."""
    pid = os.fork()
    if pid == 0:
        leave(work)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def leave(work):
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class Files:
    """Ledgers that are copies of one, in SQLite."""

    def __init__(self, place):
        self.base = Path(place, f"{os.getpid()}-base")
        self.base.mkdir()

    def url(self, folder=None):
        return str((folder or self.base) / "a.db")

    def copy(self, n):
        folder = Path(f"{self.base}-{n}")
        shutil.copytree(self.base, folder)
        return self.url(folder)

    def drop(self, url):
        shutil.rmtree(Path(url).parent)

    def open(self, url):
        return Ledger(url)

    def keys(self, url):
        return {path.read_text() for path in Path(url).parent.iterdir() if ".key" in path.name}


class Databases:
    """Ledgers that are copies of one, in PostgreSQL."""

    def __init__(self, place):
        self.server, self.name = place, f"{place.split('/')[3].split('?')[0]}_{os.getpid()}"
        self.run(f"CREATE DATABASE {self.name}")

    def run(self, statement):
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(statement)

    def url(self, name=None):
        head, _, tail = self.server.partition("?")
        return f"{head.rpartition('/')[0]}/{name or self.name}?{tail}"

    def copy(self, n):
        self.run(f"CREATE DATABASE {self.name}_{n} TEMPLATE {self.name} STRATEGY FILE_COPY")
        return self.url(f"{self.name}_{n}")

    def drop(self, url):
        self.run(f"DROP DATABASE {url.split('/')[3].split('?')[0]} WITH (FORCE)")

    def open(self, url):
        try:
            return Ledger(url, KEY)
        except LedgerError:
            return Ledger(url, NEW_KEY)

    def keys(self, url):
        return {KEY}


def prepare(store, scenario, tables):
    """The state that each kill starts from."""
    if scenario == "create":
        return
    ledger = store.open(store.url())
    ledger.register(tables["old"], "people")
    ledger.register(tables["staff"], "staff")
    tables["staff"].release(QUERY, "minimum", share=0.2, ledger=ledger, fresh=True)


def action(store, url, scenario, tables):
    """What is to be interrupted."""
    if scenario == "create":
        return lambda: store.open(url)
    ledger = store.open(url)
    if scenario == "register":
        return lambda: ledger.register(tables["new"], "people", **AGREED)
    if scenario == "withdraw":
        return lambda: ledger.withdraw(6, 7)
    if scenario == "rotate":
        new_key = None if isinstance(store, Files) else NEW_KEY
        return lambda: ledger.rotate_key(new_key, actor="a test", purpose="a key that everybody knows")
    people, share = tables["old"], SHARES[scenario]
    if scenario == "simple":
        return lambda: people.release(QUERY, "minimum", share=share, ledger=ledger, fresh=True)
    plan = (
        tables["plan"]
        if scenario == "workload"
        else accord.plan(ledger.remaining(people), QUERY, "minimum", share)
    )
    return lambda: people.release(plan, ledger=ledger, fresh=True)


def act(do, marks, kill_at=None):
    """Do it, and leave marks in a file: when values are read, when it is answered, and the lines if nothing kills it."""
    log = os.open(marks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    summary = TableReader.summaries

    def reading(*args):
        os.write(log, b"read\n")
        return summary(*args)

    TableReader.summaries = reading
    lines = []
    home = Path(accord.__file__).parent
    files = {str(path): f"{room}/{path.name}" for room in ROOMS for path in (home / room).glob("*.py")}

    def step(frame, event, _):
        if event in ("line", "return"):
            if len(lines) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            code = frame.f_code
            lines.append((f"{files[code.co_filename]}:{frame.f_lineno} {event}", code.co_name))
        return step

    sys.settrace(lambda frame, *_: step if frame.f_code.co_filename in files else None)
    do()
    sys.settrace(None)
    os.write(log, b"answered\n")
    if kill_at is None:
        Path(marks).write_text(json.dumps(lines))


def in_transactions(lines):
    """From the first statement that changes something to the end of its transaction, and a little further, each line once."""
    numbers, seen = [], None
    for n, (at, function) in enumerate(lines):
        if seen is None and function in ("run", "many", "charge"):
            seen = set()
        if seen is not None and at not in seen:
            seen.add(at)
            numbers.append(n)
        if function == "write" and at.endswith("return"):  # it also yields, but before anything is changed
            numbers += range(n + 1, min(n + 4, len(lines))) if seen else []
            seen = None
    return numbers


def state(ledger):
    accounts = [
        {"table": a.table, "level": a.level, "people": a.people, "spent": a.spent, "left": a.left}
        for a in ledger.accounts()
    ]
    return json.loads(json.dumps({"cohorts": ledger.export()["cohorts"], "accounts": accounts}))


def phase(ledger, scenario, kinds):
    """How far the action has come, by the entries alone."""
    if scenario == "create":
        return "created" if ledger is not None else "nothing"
    changing = scenario in ("register", "withdraw", "rotate")
    steps = [(), (scenario,)] if changing else [(), ("reserve",), ("reserve", "release")]
    return PHASES[scenario][steps.index(kinds)] if kinds in steps else f"unknown: {kinds}"


def sabotaged(sabotage):
    """Ledgers that would be wrong."""
    from accord.ledger import charging
    from accord.ledger.sqlite import SQLiteSession

    reserve_all, charge = charging.reserve_all, SQLiteSession.charge

    def read_first(books, asked, *signature):
        for people, plan in asked:
            people.reader.summary(plan.query)
        return reserve_all(books, asked, *signature)

    def piecemeal(self, cohorts, charges):
        for k in range(len(cohorts)):
            charge(self, cohorts[k : k + 1], charges[k : k + 1])
            self.cursor.execute("COMMIT")
            self.cursor.execute("BEGIN IMMEDIATE")
        return len(charges)

    if sabotage == "read first":
        charging.reserve_all = read_first
    elif sabotage == "piecemeal":
        SQLiteSession.charge = piecemeal


def kill_lines(job):
    store = (Files if job["store"] == "sqlite" else Databases)(job["place"])
    scenario, tables = job["scenario"], keep_one_thread()
    tables["plan"] = tables["old"].plan(WORKLOAD, "minimum", SHARES["workload"])
    prepare(store, scenario, tables)
    sabotaged(job["sabotage"])
    base = 0 if scenario == "create" else 4

    def attempt(name, kill_at=None):
        url = store.copy(name)
        marks = Path(job["marks"], name)
        marks.touch()
        ended = forked(lambda: act(action(store, url, scenario, tables), marks, kill_at))
        noted = marks.read_text()
        marks.unlink()
        return url, ended, noted

    def look(url, noted, states):
        """What a child left, as a state and what is wrong with it."""
        complaints = []
        keys = store.keys(url)
        if scenario == "create":
            try:
                there = Ledger(url, KEY if job["store"] == "postgres" else None, create=False)
            except LedgerError as refused:
                there = None
                if not str(refused).startswith("there is no ledger"):
                    complaints.append(str(refused))
            try:
                ledger = store.open(url)  # the next one who comes makes what is not there
            except LedgerError as refused:
                return "nothing", [*complaints, str(refused)]
            if there and store.keys(url) != keys:
                complaints.append("another key")
        else:
            there = ledger = store.open(url)
        verdict = ledger.verify()
        complaints += [f"verify finds: {problem}" for problem in verdict.problems]
        kinds = tuple(entry.kind for entry in ledger.entries()[base:])
        reached = phase(there, scenario, kinds)
        try:
            now = state(ledger)
        except LedgerError as refused:
            return reached, [*complaints, f"an unknown state: {refused}"]
        if states.setdefault(reached, now) != now:
            complaints.append(f"an unknown state: {now}, not {states[reached]}")
        if verdict.open != (reached == "charged"):
            complaints.append(f"{verdict.open} reservations are open")
        if "read" in noted and reached == "before":
            complaints.append("read before it was charged")
        if "answered" in noted and reached != PHASES[scenario][-1]:
            complaints.append("answered before it was booked")
        complaints += next_release(ledger, scenario, reached, tables)
        verdict = ledger.verify()
        complaints += [f"afterwards verify finds: {problem}" for problem in verdict.problems]
        if verdict.open != (reached == "charged"):
            complaints.append(f"afterwards {verdict.open} reservations are open")
        if len(store.keys(url)) != 1:
            complaints.append("not one key")
        return reached, complaints

    # What a state must be like is known from a ledger that was not touched and one where all went well.
    states = {}
    url = store.copy("untouched")
    first = look(url, "", states)
    assert first == (PHASES[scenario][0], []), first
    store.drop(url)
    url, ended, noted = attempt("all")
    assert ended == 0
    lines = json.loads(noted)
    last = look(url, "answered", states)
    assert last == (PHASES[scenario][-1], []) or job["sabotage"], last
    store.drop(url)
    if "charged" in PHASES[scenario]:
        states["charged"] = states["booked"]

    (every, inside), offset = job["which"], job["offset"]
    chosen = {*range(offset % every, len(lines), every), *in_transactions(lines)[offset % inside :: inside]}
    kills = []
    for n in sorted(chosen | {len(lines) - 1})[job["turn"] :: 2]:
        url, ended, noted = attempt(str(n), n)
        assert ended == -signal.SIGKILL, (n, ended)
        reached, complaints = look(url, noted, states)
        kills.append({"line": n, "at": lines[n][0], "phase": reached, "complaints": complaints})
        store.drop(url)
    store.drop(store.url())
    rooms = sorted({at.split("/")[0] for at, _ in lines})
    return {"lines": len(lines), "rooms": rooms, "kills": kills, "states": states}


def next_release(ledger, scenario, reached, tables):
    """It is charged like any other; a version of a table that is not registered is not known."""
    complaints = []
    if scenario == "create":
        ledger.register(tables["old"], "people")
    people, other = (tables["new"], tables["old"]) if reached == "new" else (tables["old"], tables["new"])
    before = [a.spent for a in ledger.accounts() if a.table == "people"]
    released = people.release(QUERY, "minimum", share=0.02, ledger=ledger, fresh=True)
    (charge,) = set(released.charges.values())
    now = [a.spent for a in ledger.accounts() if a.table == "people"]
    if now != [(round(least + charge, 6), round(most + charge, 6)) for least, most in before]:
        complaints.append(f"the next release made {now} of {before} by {charge}")
    if ledger.entries()[-1].hash != released.booked.hash:
        complaints.append("the next release was not booked")
    if scenario == "register":
        with suppress(LedgerError):
            ledger.remaining(other)
            complaints.append("a version that is not registered is known")
    return complaints


def kill_times(job):
    """Processes that release or register without end, killed at any times until enough has happened."""
    pauses = random.Random(1)
    url, end = (
        str(Path(job["place"], "a.db")),
        time.monotonic() + 1800,
    )  # they must not outlive a test that hangs
    tables = keep_one_thread()
    people = tables["old"]
    crowd = dict.fromkeys(range(100, 20_100), 1.0)
    crowds = [table(crowd | {100 + k: 2.0}) for k in range(2)]
    for opened in crowds:
        opened.spec()
    ledger = Ledger(url)
    ledger.register(people, "people")
    answers = Path(job["place"], "answers")
    out = os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def release():
        while time.monotonic() < end:
            released = people.release(QUERY, "minimum", share=1e-5, ledger=ledger, fresh=True)
            os.write(out, f"{released.booked.entry} {released.value}\n".encode())

    def register():
        while time.monotonic() < end:
            for version in crowds:
                ledger.register(version, "crowd", **AGREED)

    def start(kind):
        pid = os.fork()
        if pid == 0:
            leave(kind)
        return pid

    def kill(pid):
        os.kill(pid, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL  # it had not failed before

    def enough():
        answered, entries = len(answers.read_text().splitlines()), ledger.entries()
        versions = sum(entry.kind == "register" for entry in entries)
        return kills >= job["kills"] and answered >= job["answers"] and versions >= job["versions"]

    kills = 0
    running = [(start(kind), kind) for kind in (release, release, register, register)]
    while not enough():
        assert time.monotonic() < end
        time.sleep(pauses.uniform(0.005, 0.06))
        pid, kind = running.pop(0)
        kill(pid)
        kills += 1
        running.append((start(kind), kind))
    for pid, _ in running:
        kill(pid)
    verdict, reservations = ledger.verify(), ledger.history()
    answered = dict(line.split() for line in answers.read_text().splitlines())
    booked = {
        str(e.seq): str(e.content["receipts"][0]["value"]) for e in ledger.entries() if e.kind == "release"
    }
    spent = [s for a in ledger.accounts() if a.table == "people" for s in a.spent]
    people.release(QUERY, "minimum", share=0.1, ledger=ledger, fresh=True)
    return {
        "problems": [*verdict.problems, *ledger.verify().problems],
        "kills": kills + len(running),
        "open": verdict.open,
        "answers": len(answered),
        "unbooked answers": [entry for entry, value in answered.items() if booked.get(entry) != value],
        "reserved": len(reservations),
        "released": len(booked),
        "charges": [float(line["charge"]) for step in reservations for line in step["booked"]],
        "spent": [min(spent), max(spent)],
        "next": ledger.history()[-1]["state"],
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="accord-") as marks:
        work = json.loads(sys.argv[1]) | {"marks": marks}
        print(json.dumps(kill_lines(work) if work["do"] == "lines" else kill_times(work)))
