"""Whatever happens to a ledger, everyone's account is what a dictionary of people says, in whole millionths.

The model knows nothing of cohorts: {person: spent} and {table: {person: level}}. What a release costs a person is read off the plan, by the
person's level in the table, or by what they have left if the plan is made from that. After every step the ledger must agree with it, on everyone.
"""

import hashlib
import tempfile
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from math import floor, inf, isnan, nan
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from noises import Fixed
from strategies import summary_of

import accord
from accord.budget import MICRO, PUBLIC, level_text
from accord.errors import BudgetError, LedgerError, PlanError, SourceError
from accord.ledger import Ledger, charging
from accord.ledger.key import Key
from accord.people.identity import Remaining
from accord.people.reader import TableReader
from accord.release.answer import answer
from accord.spec import Spec

releasing = import_module("accord.release.release")

KEY = "a key that only tests use"
LEVELS = {
    0.0: 0, 4e-7: 0, 1e-6: 1, 3e-6: 3, 0.05: 50_000, 0.3: 300_000, 1.0: MICRO, 2.5: 2_500_000, inf: PUBLIC
}  # fmt: skip
PEOPLE = range(1, 8)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
QUERIES = {
    "mean": accord.mean("x", bounds=(0, 10), step=1),
    "count": accord.count(where="x > 3"),
    "histogram": accord.histogram("x", edges=[0, 4, 8, 10]),
    "categories": accord.histogram("c", categories=["a", "b"]),
    "median": accord.median("x", bounds=(0, 10), step=1),
    "median of many cells": accord.median("x", bounds=(0, 10), step=0.005),
}


# --- the model --------------------------------------------------------------------------------------------------------------


def value(person, table):
    """x of a person: within the bounds, outside them, between points of the grid, or missing."""
    return [0.0, 2.0, 3.5, 7.0, 11.0, -2.0, nan, 9.0, 5.0, 6.2, 1.0][
        (person * 5 + len(table) + ord(table[0])) % 11
    ]


def category(x):
    return "abz"[0 if isnan(x) else int(abs(x)) % 3]


def cell(query, x):
    """What the query makes of a person's x, by its definition: integers for a Summary."""
    match query.statistic:
        case "mean" | "median" | "quantile":
            if isnan(x):
                return None if query.missing_cell is None else (query.missing_cell,)
            return (
                floor(
                    (min(max(Fraction(x), query.low), query.high) - query.low) / query.step + Fraction(1, 2)
                ),
            )
        case "count":
            return (int(x > 3),)
        case "histogram" if query.categories:
            return tuple(int(category(x) == name) for name in query.categories)
        case "histogram":
            k = query.missing if isnan(x) else (x >= 4) + (x >= 8)
            return tuple(int(k == j) for j in range(len(query.cells)))


def summarised(query, spec, people):
    """The Summary of [(level or what is left, x)], by definition."""
    read = sorted((level, x) for level, x in people if level > 0)
    return summary_of(spec, query, [cell(query, x) for _, x in read])


def spec_of(levels):
    levels = list(levels)
    return Spec(np.array(levels, dtype=np.int64), np.ones(len(levels), dtype=np.int64))


def plus(spent, charge):
    return min(PUBLIC, spent + charge)


def same(first, other):
    """Two Specs, number by number."""
    return (first.micro.tolist(), first.people.tolist(), first.opted_out) == (
        other.micro.tolist(), other.people.tolist(), other.opted_out
    )  # fmt: skip


def spelled(people, spelling):
    """Ids as numbers, as floating-point numbers, or as careless text: they are the same people."""
    if spelling == "text":
        return [(f"{p}", f" {p}", f"{p}.0", f"{p} ", f" {p}.00 ")[k % 5] for k, p in enumerate(people)]
    return [float(p) if spelling == "float" else p for p in people]


def opened(name, members, spelling="int"):
    """An accord table of {person: level}."""
    people = sorted(members)
    x = [value(p, name) for p in people]
    ids = pa.array(
        spelled(people, spelling), {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}[spelling]
    )
    columns = {
        "id": ids,
        "x": pa.array(x, pa.float64()),
        "c": pa.array([category(v) for v in x], pa.string()),
    }
    levels = pa.array([float(members[p]) for p in people], pa.float64())
    return accord.table(pa.table(columns | {"level": levels}), epsilon="level", user="id")


def hashed(person, secret=Key(KEY).secret):  # noqa: B008  the same for all
    return int(hashlib.sha256(f"{secret}{person}".encode()).hexdigest()[:16], 16) >> 1


AGREED = {"raise_levels": True, "actor": "a test", "purpose": "they agreed"}
names = st.sampled_from(["a", "bb", "ccc"])
level_choices = st.sampled_from(
    [*sorted(LEVELS), *[0.3, 1.0, 1.0, 2.5, 2.5, inf] * 3]
)  # the strictest wish would soon forbid everything
members = st.dictionaries(st.sampled_from(PEOPLE), level_choices, max_size=6)
changes = st.dictionaries(st.sampled_from(PEOPLE), st.one_of(level_choices, st.none()), max_size=3)
additive = st.sampled_from(
    ["minimum", "threshold", "proportional", "affine", "fallah", "mix", "auto", "auto"]
)
ranked = st.sampled_from(["minimum", "threshold", "rank", "mix", "pe", "auto"])
SEVERAL = accord.workload([QUERIES["mean"], QUERIES["count"]], weights=[2, 1])
questions = st.one_of(
    st.tuples(
        st.sampled_from([QUERIES[name] for name in ("mean", "count", "histogram", "categories")]), additive
    ),
    st.tuples(st.sampled_from([QUERIES["median"], QUERIES["median of many cells"]]), ranked),
    st.tuples(st.just(SEVERAL), st.sampled_from(["minimum", "auto"])),
)
shares = st.sampled_from([1.0, 0.5, 0.3, 0.2, 0.1, 0.1, 0.05, 0.0371, 0.000001])
faults = st.sampled_from(["", "", "", "", "source", "stopped", "booking"])
spellings = st.sampled_from(["int", "float", "text"])


class Histories(RuleBasedStateMachine):
    """A ledger and its model, side by side."""

    @contextmanager
    def place(self):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            yield f"{folder}/accord.db"

    def __init__(self):
        super().__init__()
        self._patches = ExitStack()
        self._patches.enter_context(patch.object(releasing, "SECURE", Fixed()))
        self.url = self._patches.enter_context(self.place())
        self.ledger = Ledger(self.url, KEY)
        self.spent = {}
        self.levels = {}
        self.gone = {}
        self.withdrawn = set()
        self.wishes = {}
        self.tables = {}
        self.versions = {}
        self.plans = []
        self.kinds = []
        self.open = 0

    def teardown(self):
        self._patches.close()

    # the model

    def level(self, person):
        """The strictest wish counts everywhere, also that of tables which they left; who has withdrawn has none."""
        if person in self.withdrawn:
            return 0
        tables = (*self.levels.values(), *self.gone.values())
        return min((levels[person] for levels in tables if person in levels), default=0)

    def remaining(self, person):
        level = self.level(person)
        return PUBLIC if level == PUBLIC else max(0, level - self.spent[person])

    def rest(self, name):
        return spec_of(self.remaining(p) for p in self.levels[name])

    # registrations

    @initialize(table=members, spelling=spellings)
    def first(self, table, spelling):
        self._register("a", table, spelling)

    @rule(
        name=names,
        table=members,
        changed=changes,
        anew=st.booleans(),
        spelling=spellings,
        again=st.booleans(),
    )
    def register(self, name, table, changed, anew, spelling, again):
        """A table, or a new version: some join, leave, come back, lower or raise their level, opt out; or only their ids are spelled otherwise."""
        if again:
            self.ledger = Ledger(self.url, KEY)
        if name in self.levels and not anew:
            table = {p: e for p, e in (self.wishes[name] | changed).items() if e is not None}
        self._register(name, table, spelling)

    def _register(self, name, table, spelling):
        self.wishes[name] = table
        before, now = self.levels.get(name), {p: LEVELS[e] for p, e in table.items()}
        self.tables[name] = opened(name, table, spelling)
        if now not in self.levels.values():
            self._refused(self.tables[name])
        old, gone = before or {}, self.gone.get(name, {})
        last = gone | old
        both = now.keys() & last.keys()
        counts = (
            len(now.keys() - old.keys()), len(old.keys() - now.keys()),
            sum(now[p] < last[p] for p in both), sum(now[p] > last[p] for p in both),
        )  # fmt: skip
        if raised := counts[3]:
            who = "1 person" if raised == 1 else f"{raised} people"
            with pytest.raises(LedgerError, match=f"would give {who} a higher level"):
                self.ledger.register(self.tables[name], name)
        registration = self.ledger.register(self.tables[name], name, **(AGREED if raised else {}))
        self.gone[name] = {p: e for p, e in last.items() if p not in now}
        if now != before:
            self.versions[name] = self.versions.get(name, 0) + 1
            self.kinds.append("register")
        self.levels[name] = now
        self.spent = dict.fromkeys(now, 0) | self.spent
        assert (registration.name, registration.version, registration.people) == (
            name,
            self.versions[name],
            len(now),
        )
        assert (registration.joined, registration.left, registration.lowered, registration.raised) == counts

    def _refused(self, table):
        """Nothing is done with a table as it was not registered."""
        for refused in (
            lambda: self.ledger.remaining(table),
            lambda: charging.reserve(self.ledger.books, table, accord.plan(Spec.of([1.0]), QUERIES["mean"])),
        ):
            with pytest.raises(LedgerError, match=r"not registered|not as it was registered"):
                refused()

    # withdrawals

    @precondition(lambda self: self.spent)
    @rule(which=st.sets(st.integers(0, 9), min_size=1, max_size=2), spelling=spellings, back=st.booleans())
    def withdraw(self, which, spelling, back):
        """Or readmit."""
        among = sorted(self.withdrawn if back and self.withdrawn else self.spent)
        people = {among[k % len(among)] for k in which}
        ids = spelled(sorted(people), spelling)
        if back and self.withdrawn:
            self.ledger.readmit(*ids, actor="a test", purpose="they came back")
            self.withdrawn -= people
            self.kinds.append("readmit")
            return
        done = self.ledger.withdraw(*ids)
        assert done.people == len(people - self.withdrawn)
        self.kinds += ["withdraw"] * (not people <= self.withdrawn)
        self.withdrawn |= people

    # releases

    @precondition(lambda self: self.levels)
    @rule(
        which=st.integers(0, 2),
        asked=questions,
        share=shares,
        t=st.sampled_from([None, 0.3, inf]),
        fault=faults,
    )
    def spend_a_share(self, which, asked, share, t, fault):
        name, (query, mechanism) = self._named(which), asked
        options = {"t": t} if mechanism == "threshold" else {}
        try:
            plan = self.tables[name].plan(query, mechanism, share, **options)
        except PlanError:
            with pytest.raises(PlanError):
                self.tables[name].release(query, mechanism, share, **options, ledger=self.ledger, fresh=True)
            return
        self.plans.append((name, plan))

        def call(table):
            return table.release(query, mechanism, share, **options, ledger=self.ledger, fresh=True)

        self._release(name, plan, self.levels[name], call, fault)

    @precondition(lambda self: self.levels)
    @rule(which=st.integers(0, 2), asked=questions, share=shares, fault=faults)
    def spend_of_the_rest(self, which, asked, share, fault):
        name, (query, mechanism) = self._named(which), asked
        try:
            plan = accord.plan(self.ledger.remaining(self.tables[name]), query, mechanism, share)
        except PlanError:
            return
        self.plans.append((name, plan))
        remaining = {p: self.remaining(p) for p in self.levels[name]}
        self._release(
            name, plan, remaining, lambda table: table.release(plan, ledger=self.ledger, fresh=True), fault
        )

    @precondition(lambda self: self.plans)
    @rule(which=st.integers(0, 9))
    def release_an_old_plan(self, which):
        """It counts if it is for the levels of the table, or for what is left now."""
        name, plan = self.plans[which % len(self.plans)]
        remaining = {p: self.remaining(p) for p in self.levels[name]}
        if same(plan.spec, spec_of(self.levels[name].values())):
            levels = self.levels[name]
        elif same(plan.spec, spec_of(remaining.values())):
            levels = remaining
        else:
            with pytest.raises(PlanError, match=r"made for other levels.*Plan again"):
                self.tables[name].release(plan, ledger=self.ledger, fresh=True)
            return
        self._release(
            name, plan, levels, lambda table: table.release(plan, ledger=self.ledger, fresh=True), ""
        )

    def _release(self, name, plan, levels, call, fault):
        """Carry out a plan for people with these levels, or what they have left; the model says what must come of it."""
        table = self.tables[name]
        boxes = (
            plan.boxes if plan.is_workload else ()
        )  # questions that share a noise cost the largest of their charges
        alone = [(place,) for place in range(len(plan.parts)) if not any(place in box for box in boxes)]
        by_level = {
            level: sum(
                max(int(plan.parts[place].calibration.charges[k]) for place in block)
                for block in (*boxes, *alone)
            )
            for k, level in enumerate(plan.spec.micro.tolist())
        }
        charge = {p: min(PUBLIC, by_level.get(level, 0)) for p, level in levels.items()}
        short = {p for p, c in charge.items() if c > self.remaining(p)}
        if short:
            assert levels is self.levels[name], "whoever plans from what is left is never refused"
            with pytest.raises(BudgetError) as refusal:
                call(table)
            self._blames(str(refusal.value), name, short, charge)
            return
        error = None
        if fault in ("source", "stopped") and any(
            part.mechanism not in ("midpoint", "public") for part in plan.parts
        ):
            error = SourceError("gone.") if fault == "source" else KeyboardInterrupt()
            with pytest.raises(type(error), match=r"charged.* all the same" if fault == "source" else None):
                call(_broken(table, error))
        elif fault == "booking":
            error = LedgerError("full.")
            with (
                patch.object(charging, "settle_all", side_effect=error),
                pytest.raises(LedgerError, match=r"full\."),
            ):
                call(table)
        else:
            released = call(table)
        for p, c in charge.items():
            self.spent[p] = plus(self.spent[p], c)
            assert c == 0 or self.spent[p] <= self.level(p), (
                "nobody is charged beyond the lowest level that they have"
            )
        self.kinds += ["reserve"] + ([] if fault == "booking" else ["failed" if error else "release"])
        self.open += fault == "booking"
        if error is None:
            self._answered(released, plan.parts, [(levels[p], value(p, name)) for p in levels])

    def _blames(self, text, name, short, charge):
        """The refusal says by level who has too little."""
        for level in sorted({self.levels[name][p] for p in short})[:3]:
            those = [p for p in short if self.levels[name][p] == level]
            least = min(self.remaining(p) for p in those)
            cost = charge[those[0]]
            whom = "one person" if len(those) == 1 else f"{len(those)} people"
            assert (
                f"level {level_text(level)} with {level_text(cost)}; {level_text(least)} is left to {whom}"
                in text
            )
        assert "Nothing was spent" in text

    def _answered(self, released, parts, people):
        """The value, without noise, is that of the people who were read, by their definition."""
        entry = self.ledger.entries()[-1]
        assert (released.booked.entry, released.booked.hash) == (entry.seq, entry.hash)
        for part, released_part in zip(parts, released.parts, strict=True):
            reads = part.mechanism not in ("midpoint", "public")
            summary = summarised(part.query, part.spec, people) if reads else None
            assert released_part.value == answer(part, [summary], Fixed())[0]

    def _named(self, which):
        return sorted(self.levels)[which % len(self.levels)]

    # after every step

    @invariant()
    def everyone_has_spent_what_the_model_says(self):
        with self.ledger.books.store.read() as db:
            hashes, of = (b"".join(bytes(row[0]) for row in db.rows(f"SELECT {c} FROM accord_people ORDER BY chunk")) for c in ("hashes", "cohorts"))  # fmt: skip
            accounts = {
                row[0]: row[1:]
                for row in db.rows("SELECT id, spent, level, allowed, people FROM accord_cohort")
            }
        numbers = dict(
            zip(np.frombuffer(hashes, "<i8").tolist(), np.frombuffer(of, "<i8").tolist(), strict=True)
        )
        assert numbers.keys() == {hashed(p) for p in self.spent}
        by_person = {p: accounts[numbers[hashed(p)]] for p in self.spent}
        assert {p: account[0] for p, account in by_person.items()} == self.spent
        assert {p: account[1] for p, account in by_person.items()} == {p: self.level(p) for p in self.spent}
        assert all(account[2] == max(self.level(p), self.spent[p]) for p, account in by_person.items() if self.level(p) != PUBLIC)  # fmt: skip
        assert sum(account[3] for account in accounts.values()) == len(self.spent)

    @invariant()
    def everyone_has_left_what_the_model_says(self):
        for name, table in self.tables.items():
            assert same(self.ledger.remaining(table), self.rest(name))

    @invariant()
    def accounts_are_those_of_the_people(self):
        shown_accounts = {(a.table, a.level): (a.people, a.spent, a.left) for a in self.ledger.accounts()}
        wanted = {}
        for name, levels in self.levels.items():
            for level in set(levels.values()):
                those = [p for p in levels if levels[p] == level]
                ranges = [[f(p) for p in those] for f in (self.spent.get, self.remaining)]
                ends = [tuple(inf if m == PUBLIC else m / MICRO for m in (min(r), max(r))) for r in ranges]
                wanted[name, inf if level == PUBLIC else level / MICRO] = (len(those), *ends)
        assert shown_accounts == wanted

    @invariant()
    def the_chain_is_whole(self):
        verdict = self.ledger.verify()
        assert (verdict.problems, verdict.open, verdict.entries) == ((), self.open, len(self.kinds))
        assert [entry.kind for entry in self.ledger.entries()] == self.kinds
        assert [reservation["state"] for reservation in self.ledger.history()].count("no answer") == self.open


def _broken(table, error):
    """A table whose values cannot be read; all else is there."""
    broken = copy(table)
    broken.reader = copy(table.reader)
    broken.reader.summaries = Mock(side_effect=error)
    return broken


patient = settings(deadline=None, suppress_health_check=list(HealthCheck), stateful_step_count=25)


def test_every_history_agrees_with_a_dictionary_of_people():
    run_state_machine_as_test(Histories, settings=settings(patient, max_examples=20))


@pytest.mark.postgres
def test_every_history_in_postgres_agrees_with_a_dictionary_of_people(postgres_url):
    class InPostgres(Histories):
        @contextmanager
        def place(self):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA public CASCADE")
                connection.execute("CREATE SCHEMA public")
            yield postgres_url

    run_state_machine_as_test(InPostgres, settings=settings(patient, max_examples=3))


# --- laws -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "accord.db", KEY)


def left_in(ledger, table):
    """{what is left, in millionths: people}, with 0 for those who have nothing."""
    spec = ledger.remaining(table)
    return dict(zip(spec.micro.tolist(), spec.counts, strict=True)) | (
        {0: spec.opted_out} if spec.opted_out else {}
    )


@settings(max_examples=12)
@given(
    n=st.integers(1, 6), c=st.integers(1, MICRO // 6), mechanism=st.sampled_from(["minimum", "proportional"])
)
def test_many_charges_are_one_charge_of_their_sum(n, c, mechanism):
    """Levels are whole numbers, so that nothing is rounded: n releases of a share c cost everyone what one of n·c costs."""
    people = {1: 1.0, 2: 2.0, 3: 5.0, 4: 0.0}
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        accounts = []
        for file, times, share in (("many", n, c), ("one", 1, n * c)):
            ledger, table = Ledger(f"{folder}/{file}.db", KEY), opened("a", people)
            ledger.register(table, "a")
            for _ in range(times):
                table.release(QUERIES["mean"], mechanism, share / MICRO, ledger=ledger, fresh=True)
            accounts.append((ledger.accounts(), left_in(ledger, table), ledger.verify().problems))
        assert accounts[0] == accounts[1]
        spent = {p: n * c * (1 if mechanism == "minimum" else int(people[p])) for p in (1, 2, 3)}
        assert left_in(ledger, table) == {int(people[p]) * MICRO - spent[p]: 1 for p in spent} | {0: 1}


def test_infinite_charges_add_up_to_one(ledger):
    table = opened("a", {1: inf, 2: 1.0})
    ledger.register(table, "a")
    for _ in range(3):
        table.release(QUERIES["mean"], "threshold", 1.0, t=inf, ledger=ledger, fresh=True)
        assert left_in(ledger, table) == {PUBLIC: 1, MICRO: 1}
    ledger.register(opened("a", {1: 1000.0, 2: 1.0}), "a")
    assert left_in(ledger, opened("a", {1: 1000.0, 2: 1.0})) == {0: 1, MICRO: 1}, (
        "who was read without noise has nothing left"
    )
    assert ledger.verify().problems == ()


def test_who_leaves_and_comes_back_has_spent_what_they_had(ledger):
    ledger.register(table := opened("a", {1: 1.0, 2: 1.0}), "a")
    table.release(QUERIES["mean"], "minimum", 0.75, ledger=ledger, fresh=True)
    for members in ({2: 1.0}, {}, {3: 1.0}):
        ledger.register(opened("a", members), "a")
    back = opened("a", {1: 1.0, 2: 2.5, 3: 1.0, 4: 0.3})
    ledger.register(back, "a", **AGREED)
    assert left_in(ledger, back) == {250_000: 1, 1_750_000: 1, MICRO: 1, 300_000: 1}
    elsewhere = opened("bb", {1: 2.5})
    ledger.register(elsewhere, "b")
    assert left_in(ledger, elsewhere) == {250_000: 1}, "the strictest wish counts everywhere"
    ledger.register(opened("a", {2: 2.5}), "a")
    assert left_in(ledger, elsewhere) == {250_000: 1}, "also that of a table which they left"
    ledger.register(opened("a", {1: 2.5, 2: 2.5}), "a", **AGREED)
    assert left_in(ledger, elsewhere) == {1_750_000: 1}, "until they come back and agree to more"


def test_a_registration_says_what_it_changed_and_that_it_changed_nothing(ledger):
    first = ledger.register(opened("a", {1: 1.0, 2: 1.0, 3: 0.5}), "a")
    assert str(first) == "registered 'a': 3 people"
    for changed in (
        "2 joined, 1 left, 1 lowered their level, 0 raised it",
        "0 joined, 0 left, 0 lowered their level, 0 raised it",
    ):
        again = ledger.register(opened("a", {2: 0.3, 3: 0.5, 4: 1.0, 5: 1.0}), "a")
        assert str(again) == f"'a' is at version 2: 4 people; since the last version {changed}"
    assert len(ledger.entries()) == 2


def test_levels_go_down_and_up(ledger):
    """A lowered level leaves max(0, new − spent), a raised one new − spent, and an opt-out nothing."""
    for level, remaining in (
        (1.0, 300_000),
        (0.3, 0),
        (0.0, 0),
        (0.7, 0),
        (0.8, 100_000),
        (inf, PUBLIC),
        (2.5, 1_800_000),
    ):
        ledger.register(table := opened("a", {1: level}), "a", **AGREED)
        if level == 1.0 and not ledger.history():
            table.release(QUERIES["mean"], "minimum", 0.7, ledger=ledger, fresh=True)
        assert left_in(ledger, table) == {remaining: 1}
    assert ledger.verify().problems == ()


def test_seven_is_one_person_however_it_is_spelled(ledger):
    spellings = [
        [7, 8, 9],
        [7.0, 8.0, 9.0],
        ["7", "8", "9"],
        [" 7", "8 ", "9"],
        ["7.0", "8.00", "9"],
        ["7.0 ", "  8", "9"],
    ]
    for k, ids in enumerate(spellings):
        table = accord.table(
            {"id": ids, "x": [1.0, 2.0, 3.0], "level": [1.0, 2.5, 2.5]}, epsilon="level", user="id"
        )
        ledger.register(table, f"table {k}")
        table.release(QUERIES["mean"], "minimum", 0.1, ledger=ledger, fresh=True)
    assert {(a.spent, a.left) for a in ledger.accounts()} == {
        ((0.6, 0.6), (0.4, 0.4)),
        ((0.6, 0.6), (1.9, 1.9)),
    }
    other = accord.table({"id": ["007", "8", "9"], "level": [1.0, 2.5, 2.5]}, epsilon="level", user="id")
    with pytest.raises(LedgerError, match="1 people joined, 1 left"):
        ledger.remaining(other)


# --- what is read -----------------------------------------------------------------------------------------------------------


def parquet(columns, folder):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    return folder / "people.parquet"


def csv(columns, folder):
    pd.DataFrame(columns).to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


def arrow(columns, folder):
    return pa.table(columns)


def pandas(columns, folder):
    return pd.DataFrame(columns)


def arrays(columns, folder):
    return columns


N = 60
XS = [value(p, "a") for p in range(N)]
WISHES = [(0.3, 1.0, 2.5, inf, 0.0)[p % 5] for p in range(N)]
OTHERS = (("even", range(0, N, 2), 0.3), ("ten", range(10), 2.5))
"""Two tables more, with other levels of some of the people."""


@pytest.mark.parametrize("source", [parquet, csv, arrow, pandas, arrays])
def test_what_is_left_is_matched_person_by_person(source, tmp_path, ledger):
    """People of one level have different remainders, some of them nothing: every statistic is that of the right people."""
    columns = {"id": list(range(N)), "x": XS, "c": [category(x) for x in XS], "level": WISHES}
    table = accord.table(source(columns, tmp_path), epsilon="level", user="id")
    ledger.register(table, "all")
    spent, level = dict.fromkeys(range(N), 0), {p: LEVELS[WISHES[p]] for p in range(N)}
    parts = {
        name: accord.table({"id": list(those), "x": [0.0] * len(those)}, epsilon=chosen, user="id")
        for name, those, chosen in OTHERS
    }
    for name, those, chosen in OTHERS:
        ledger.register(parts[name], name)
        level |= {p: min(level[p], LEVELS[chosen]) for p in those}
    for name, those, _ in OTHERS:  # the least that anyone has left, of all who have anything left
        parts[name].release(
            accord.plan(ledger.remaining(parts[name]), QUERIES["mean"], "minimum"), ledger=ledger, fresh=True
        )
        having = {p: level[p] - spent[p] for p in those if level[p] > spent[p]}
        spent |= {p: spent[p] + min(having.values()) for p in having}
    amount_of = {p: PUBLIC if level[p] == PUBLIC else level[p] - spent[p] for p in range(N)}
    rest = ledger.remaining(table)
    assert same(rest, spec_of(amount_of.values()))
    assert any(len({amount_of[p] for p in range(N) if WISHES[p] == chosen}) > 1 for chosen in LEVELS), (
        "or there is nothing to match"
    )
    assert rest.opted_out > N // 5, "some have nothing left"

    secret = Key(KEY).secret
    remaining = Remaining(
        rest, None, ((secret,), np.array([hashed(p) for p in amount_of]), np.array(list(amount_of.values())))
    )
    people = [(amount_of[p], XS[p]) for p in range(N)]
    for query in QUERIES.values():
        wanted = summarised(query, rest, people)
        summary = table.reader.summaries(query, remaining)[0]
        assert summary.people.tolist() == wanted.people.tolist()
        assert list(summary.rows()) == list(wanted.rows())
        sharper = query.with_all_values() or query  # which `mix` needs of a quantile
        for mechanism in ("minimum", "threshold", "mix"):
            plan = accord.plan(rest, sharper if mechanism == "mix" else query, mechanism)
            assert answer(plan, [summary], Fixed())[0] == answer(plan, [wanted], Fixed())[0]
    for query in QUERIES.values():  # and the ledger itself says so
        plan = accord.plan(ledger.remaining(table), query, "minimum", 0.01)
        with patch.object(TableReader, "summaries", autospec=True, side_effect=TableReader.summaries) as read:
            table.release(plan, ledger=ledger, fresh=True)
        (_, asked, handed, *_), _ = read.call_args
        assert asked == query and same(handed.spec, plan.spec)
        of = dict(zip(handed.by_person[1].tolist(), handed.by_person[2].tolist(), strict=True))
        assert of == {hashed(p): amount_of[p] for p in amount_of}
        charge = dict(zip(plan.spec.micro.tolist(), plan.calibration.charges.tolist(), strict=True))
        amount_of = {p: x if x == PUBLIC else x - charge.get(x, 0) for p, x in amount_of.items()}
    assert ledger.verify().problems == ()


def test_where_levels_decide_nobody_is_matched(ledger):
    """Then two levels may have the same left, or nothing, and it is enough to add them up."""
    chosen = {p: (1.0, 0.3, 2.5, inf, 0.0, 0.7)[p % 6] for p in range(24)}
    table = opened("a", chosen)
    ledger.register(table, "a")
    for level, share in ((0.3, 1.0), (2.5, 0.6)):
        part = opened("a", {p: e for p, e in chosen.items() if e == level})
        ledger.register(part, f"those of {level}")
        part.release(QUERIES["mean"], "minimum", share, ledger=ledger, fresh=True)
    assert left_in(ledger, table) == {0: 8, MICRO: 8, 700_000: 4, PUBLIC: 4}
    rest = {1.0: MICRO, 0.3: 0, 2.5: MICRO, inf: PUBLIC, 0.0: 0, 0.7: 700_000}
    amount_of = {p: rest[e] for p, e in chosen.items()}
    for query in QUERIES.values():
        plan = accord.plan(ledger.remaining(table), query, "threshold", t=0.7)
        free = replace(plan.calibration, charges=np.zeros_like(plan.calibration.charges))
        remaining = charging.reserve(ledger.books, table, plan.with_choice(calibration=free)).remaining
        assert remaining.by_person is None
        summary = table.reader.summaries(query, remaining)[0]
        wanted = summarised(query, plan.spec, [(amount_of[p], value(p, "a")) for p in chosen])
        assert summary.people.tolist() == wanted.people.tolist()
        assert list(summary.rows()) == list(wanted.rows())
        assert answer(plan, [summary], Fixed())[0] == answer(plan, [wanted], Fixed())[0]
