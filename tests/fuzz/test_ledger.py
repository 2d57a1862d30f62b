"""Histories of a ledger through the command line and the library in turn: nobody is ever charged beyond their level, and the books are whole.

The model is {person: spent} and {table: {person: level}}, in millionths, as in tests/ledger/test_histories.py. New here are the command line, hostile names, groups
(public ones are tables of their own once they were asked about), and files whose values cannot be read, so that a release fails after it was charged.
"""

import json
import tempfile
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from strategies import PRINTABLE, quoted

import accord
from accord.budget import MICRO, PUBLIC
from accord.cli import main
from accord.errors import BudgetError, PlanError, SourceError

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LEVELS = {0.0: 0, 0.05: 50_000, 0.3: 300_000, 1.0: MICRO, 2.5: 2_500_000, inf: PUBLIC}
PEOPLE = range(1, 8)
GROUPS = ("u", "[/b]")
wishes = st.sampled_from([*LEVELS, 0.3, 1.0, 1.0, 2.5, 2.5, 2.5])
members = st.dictionaries(st.sampled_from(PEOPLE), wishes, min_size=1, max_size=6)
names = st.sampled_from(["people", "it's", "[/b]", '"; DROP TABLE accord_cohort; --', "🦆", "people: u"])
kinds = st.sampled_from(
    ["mean", "count", "median", "histogram", "groups", "public groups", "public part", "workload"]
)
mechanisms = st.sampled_from(["minimum", "minimum", "threshold", "auto"])
shares = st.sampled_from([1.0, 0.5, 0.3, 0.1, 0.05, 0.0371])


def group_of(person):
    return GROUPS[person % 2] if person != 7 else "elsewhere"


class Mixed(RuleBasedStateMachine):
    """A ledger and its model, side by side."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.url = f"{self.folder.name}/accord.db"
        self.spent, self.levels, self.gone = {}, {}, {}
        self.files = {}

    def teardown(self):
        self.folder.cleanup()

    # what is asked, in both languages

    def question(self, kind):
        x, g = self.x, self.group
        part = {"by": g, "keys": list(GROUPS)}
        match kind:
            case "mean":
                return accord.mean(x, (0, 10), step=1)
            case "count":
                return accord.count(where=f"{quoted(x)} > 3")
            case "median":
                return accord.median(x, (0, 10), step=1)
            case "histogram":
                return accord.histogram(x, edges=[0, 4, 8, 10])
            case "groups":
                return accord.sum(x, (0, 10), step=1, **part)
            case "public groups":
                return accord.mean(x, (0, 10), step=1, **part, membership="public")
            case "public part":
                return accord.mean(x, (0, 10), step=1, where=f"{quoted(g)} = 'u'", membership="public")
            case "workload":
                return accord.workload([self.question("mean"), self.question("count")])

    def words(self, kind):
        grid = [self.x, "--bounds", "0", "10", "--step", "1"]
        part = ["--by", self.group, "--keys", ",".join(GROUPS)]
        return {
            "mean": ["mean", *grid],
            "count": ["count", "--where", f"{quoted(self.x)} > 3"],
            "median": ["median", *grid],
            "histogram": ["histogram", self.x, "--edges", "0,4,8,10"],
            "groups": ["sum", *grid, *part],
            "public groups": ["mean", *grid, *part, "--membership", "public"],
            "public part": [
                "mean",
                *grid,
                "--where",
                f"{quoted(self.group)} = 'u'",
                "--membership",
                "public",
            ],
        }[kind]

    def run(self, *words):
        ran = CliRunner().invoke(main, [*map(str, words), "--json"])
        assert ran.exception is None or isinstance(ran.exception, SystemExit), repr(ran.exception)
        assert ran.exit_code in (0, 1), ran.stderr
        return ran.exit_code, json.loads(ran.stdout)

    # the model

    def level(self, person):
        """The strictest wish counts everywhere, also that of tables which they left."""
        tables = (*self.levels.values(), *self.gone.values())
        return min((levels[person] for levels in tables if person in levels), default=0)

    def left(self, person):
        level = self.level(person)
        return PUBLIC if level == PUBLIC else max(0, level - self.spent[person])

    def enter(self, name, levels, is_part=False):
        """Who leaves a part of a table is known to the table."""
        last = self.gone.get(name, {}) | self.levels.get(name, {})
        self.gone[name] = {} if is_part else {p: e for p, e in last.items() if p not in levels}
        self.levels[name] = levels
        self.spent = dict.fromkeys(levels, 0) | self.spent

    # steps

    @initialize(columns=st.permutations(PRINTABLE), table=members)
    def first(self, columns, table):
        self.who, self.wish, self.x, self.group = columns[:4]
        assert self.run("ledger", "init", self.url)[0] == 0
        self.register("people", table, False)

    def written(self, name, table, broken=False):
        """The table as a file; `broken`: who is in it can be read, and x cannot."""
        path = Path(
            self.folder.name, f"{len(self.files) if name not in self.files else self.files[name][2]}.parquet"
        )
        people = sorted(table)
        columns = {
            self.who: pa.array(people, pa.int64()),
            self.wish: pa.array([table[p] for p in people], pa.float64()),
            self.group: pa.array([group_of(p) for p in people], pa.string()),
            self.x: pa.array([float(p * 3 % 11) for p in people], pa.float64()),
        }
        pq.write_table(
            pa.table(columns), path, compression="none", use_dictionary=False, write_statistics=False
        )
        if broken:
            start = pq.ParquetFile(path).metadata.row_group(0).column(3).data_page_offset
            raw = bytearray(path.read_bytes())
            raw[start : start + 16] = b"\xff" * 16
            path.write_bytes(raw)
        return path

    def opened(self, path):
        return accord.table(path, epsilon=self.wish, user=self.who)

    @rule(name=names, table=members, by_words=st.booleans())
    def register(self, name, table, by_words):
        """A table, or a new version: people join, leave, lower or raise their level."""
        path = self.written(name, table)
        number = self.files[name][2] if name in self.files else len(self.files)
        self.files[name] = (path, table, number)
        if by_words:
            agreed = ["--raise", "--why", "they agreed"]
            code, made = self.run(
                "ledger",
                "register",
                self.url,
                name,
                path,
                "--epsilon",
                self.wish,
                "--user",
                self.who,
                *agreed,
            )
            assert code == 0 and made["people"] == len(table)
        else:
            agreed = {"raise_levels": True, "actor": "a test", "purpose": "they agreed"}
            made = accord.Ledger(self.url).register(self.opened(path), name, **agreed)
            assert made.people == len(table)
        self.enter(name, {p: LEVELS[e] for p, e in table.items()})

    @precondition(lambda self: self.files)
    @rule(which=st.integers(0, 9), kind=kinds, how=mechanisms, share=shares, rest=st.booleans(), by_words=st.booleans(), fault=st.sampled_from([False] * 4 + [True]))  # fmt: skip
    def release(self, which, kind, how, share, rest, by_words, fault):
        name = sorted(self.files)[which % len(self.files)]
        path, table, _ = self.files[name]
        ledger, people, query = accord.Ledger(self.url), self.opened(path), self.question(kind)
        base = {p: self.left(p) if rest else LEVELS[e] for p, e in table.items()}
        try:
            plan = (
                accord.plan(ledger.remaining(people), query, how, share)
                if rest
                else people.plan(query, how, share)
            )
        except PlanError:
            plan = None
        groups = {} if plan is None else plan.plans if plan.is_grouped else {None: plan}
        charge = dict.fromkeys(table, 0)
        for key, part in groups.items():
            inside = [
                p
                for p in table
                if kind not in ("public groups", "public part") or group_of(p) == (key or "u")
            ]
            if part is not None:
                paid = part.spent if kind == "workload" else part.cost
                by_level = dict(zip(part.spec.micro.tolist(), paid.tolist(), strict=True))
                charge |= {p: by_level.get(base[p], 0) for p in inside}
                if kind.startswith("public"):
                    self.part(name, query.part.name(key), {p: LEVELS[table[p]] for p in inside})
        short = any(c > self.left(p) for p, c in charge.items())
        plans = [p for part in groups.values() if part for p in getattr(part, "parts", (part,))]
        fault = fault and any(p.mechanism not in ("midpoint", "public") for p in plans)
        if fault:
            self.written(name, table, broken=True)
        told = self.attempt(path, query, plan, kind, how, share, rest, by_words)
        if fault:
            self.written(name, table)
        if plan is None or short:
            assert told in (("PlanError",) if plan is None else ("BudgetError",)), told
            return
        assert told == ("SourceError" if fault else None), told
        for p, c in charge.items():
            self.spent[p] = min(PUBLIC, self.spent[p] + c)
            assert c == 0 or self.spent[p] <= self.level(p), (
                "nobody is charged beyond the lowest level that they have"
            )

    def part(self, name, part, levels):
        """A public group becomes a table, unless one of the same people with the same levels is there."""
        if levels not in self.levels.values():
            self.enter(f"{self.known_as(name)}: {part}", levels, is_part=True)

    def known_as(self, name):
        """The ledger finds a table by who is in it: of two that are alike it takes one."""
        return next(known for known, levels in self.levels.items() if levels == self.levels[name])

    def attempt(self, path, query, plan, kind, how, share, rest, by_words):
        """The name of the refusal; None if there is an answer."""
        if by_words and kind != "workload":
            words = [
                "release",
                path,
                *self.words(kind),
                "--epsilon",
                self.wish,
                "--user",
                self.who,
                "--ledger",
                self.url,
            ]
            code, made = self.run(
                *words, "--mechanism", how, "--share", share, *(["--remaining"] if rest else [])
            )
            assert code == ("error" in made) and (code == 0) == ("value" in made or "groups" in made)
            return made["error"]["type"] if code else None
        ledger, people = accord.Ledger(self.url), self.opened(path)
        try:
            if rest and plan is not None:
                made = people.release(plan, ledger=ledger, fresh=True)
            elif rest:
                accord.plan(ledger.remaining(people), query, how, share)
            else:
                made = people.release(query, how, share, ledger=ledger, fresh=True)
        except (PlanError, BudgetError, SourceError) as refusal:
            return type(refusal).__name__
        json.dumps(made.receipt(), allow_nan=False)
        return None

    # after every step

    @invariant()
    def the_accounts_are_those_of_the_model(self):
        if not self.levels:
            return
        code, shown = self.run("ledger", "show", self.url)
        assert code == 0
        found = {(a["table"], a["level"]): (a["people"], a["spent"], a["left"]) for a in shown["accounts"]}
        wanted = {}
        for name, levels in self.levels.items():
            for wish in set(levels.values()):
                those = [p for p in levels if levels[p] == wish]
                ends = [[min(map(of, those)), max(map(of, those))] for of in (self.spent.get, self.left)]
                wanted[name, accord.budget.level_text(wish)] = (len(those), *([accord.budget.level_text(m) for m in e] for e in ends))  # fmt: skip
        assert found == wanted

    @invariant()
    def the_books_are_whole(self):
        if self.levels:
            code, verdict = self.run("ledger", "verify", self.url)
            assert code == 0 and verdict["problems"] == [] and verdict["open"] == 0


def test_public_people_may_have_spent_more_than_any_level(tmp_path):
    """Found by a history: from then on the budgets could not be shown."""
    ledger = accord.Ledger(tmp_path / "accord.db")
    table = accord.table({"who": [1, 2], "x": [1.0, 2.0]}, epsilon=inf, user="who")
    ledger.register(table, "people")
    for _ in range(2):
        table.release(accord.mean("x", (0, 4)), "threshold", 1.0, t=1_000_000, ledger=ledger, fresh=True)
    for more in ([], ["--json"]):
        ran = CliRunner().invoke(main, ["ledger", "show", str(tmp_path / "accord.db"), *more])
        assert ran.exit_code == 0 and "2000000" in ran.stdout


patient = settings(deadline=None, suppress_health_check=list(HealthCheck))


def test_words_and_calls_in_turn():
    run_state_machine_as_test(Mixed, settings=settings(patient, max_examples=5, stateful_step_count=12))


@pytest.mark.slow
def test_words_and_calls_in_turn_many_times():
    run_state_machine_as_test(Mixed, settings=settings(patient, max_examples=25, stateful_step_count=20))
