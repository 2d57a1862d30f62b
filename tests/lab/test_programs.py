"""Whole programs on neighboring worlds: nothing is found where nothing is, and every planted bug is."""

import logging
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from planted import everywhere, releasing
from planted_programs import PLANTED

from accord import noise
from accord.lab.audit import offered_programs, program_runs, programs, random_tables, runner
from accord.lab.audit.programs import Source, Step, World
from accord.lab.audit.runner import random_world
from accord.ledger import chain
from accord.mechanisms import ALL

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


SEEDS = {
    "a level is taken for a chance": 73,
    "who lacks a value is public": 4,
    "one missing value changes what kind a column is": 48,
    "text among numbers makes a release fail": 52,
    "an error of the engine is passed on": 52,
    "a log tells a sum": 0,
    "a text tells how many were read": 0,
    "noise is used twice": 0,
    "the laxest of a persons tables counts": 68,
    "a new version forgets what was spent": 10,
    "who chose no tier has the laxest": 31,
    "cross products are left out of the sensitivity": 1,
    "rows of one person are kept one by one": 16,
    "json tells the exact answer": 0,
    "the level of a public group is that of its rows": 39,
    "letters are not composed": 13,
    "an undeclared tier is refused under add remove": 7,
    "an entry of the future counts": 150,
    "the laxest entry of a day counts": 19,
    "who is not in the register is read under add remove": 38,
}
"""A world that shows each bug, among the first that audits try. Found by trying them one after the other."""


def returning():
    """Somebody spends most of their level, leaves, and comes back."""
    types = {"id": "BIGINT", "x": "DOUBLE", "e": "DOUBLE"}
    rows = {k: ({"id": k, "x": 1.0, "e": 1.0},) for k in range(4)}
    everyone = Source("lists", types, rows, {"epsilon": "e", "user": "id"})
    sources = {"people": everyone, "later": replace(everyone, people={k: rows[k] for k in (1, 2, 3)})}
    asked = "show(people.release(accord.mean('x', (1, 9), step=1), 'proportional', 0.8, ledger=ledger))"
    plan = "accord.plan(ledger.remaining(people), accord.mean('x', (1, 9), step=1), 'proportional')"
    steps = [
        *(Step(f"{name} = accord.table(given({name!r}), epsilon='e', user='id')", name) for name in sources),
        Step(f"ledger = accord.Ledger('books.db', key={program_runs.KEY!r})"),
        Step("show(ledger.register(people, 'people'))", "people"),
        Step(asked, "people", "0.8", True),
        Step("show(ledger.register(later, 'people'))", "later"),
        Step("show(ledger.register(people, 'people'))", "people"),
        Step(f"show(people.release({plan}, ledger=ledger))", "people", "1", True, True),
    ]
    return World("returning", sources, tuple(steps), 0, {"people": ({"id": 0, "x": 9.0, "e": 1.0},)})


def test_who_comes_back_has_what_they_had_left():
    assert programs.difference(returning()) is None


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(monkeypatch, name):
    PLANTED[name](monkeypatch)
    difference = programs.difference(random_world(SEEDS[name]) if name in SEEDS else returning())
    assert difference is not None and difference.loss > difference.promised and difference.evidence


def test_every_planted_bug_is_documented():
    """In the table of bugs that whole programs show."""
    section = PAGE.read_text(encoding="utf-8").split("## Planted in whole programs")[1]
    table = section.split("\n## ")[0]
    assert set(re.findall(r"^\| ([a-z ]+?) \|", table, re.MULTILINE)) - {"planted bug"} == set(PLANTED)


@pytest.mark.parametrize("seed", range(1_000, 1_012))
def test_nothing_is_found_where_nothing_is(seed):
    assert programs.difference(random_world(seed)) is None


@pytest.mark.slow
@pytest.mark.parametrize("start", range(2_040, 2_100, 10))
def test_nothing_is_found_in_many_worlds(start):
    assert [
        seed for seed in range(start, start + 10) if programs.difference(random_world(seed)) is not None
    ] == []


@pytest.mark.slow
def test_nothing_is_found_in_combinations_that_are_offered():
    """Every twentieth; `accord audit --deep` tries all."""
    differences = [programs.difference(world) for world in offered_programs.worlds(1, 3, 20)]
    assert len(differences) > 75 and not any(differences)


# fmt: off
WORDS = ("where=", "by=", "membership='public'", "missing='none'", "missing='middle'", "user='id'", "default=", "tiers=",
         "roster=", "ledger=ledger", "ledger.remaining", "accord.workload", "accord.sample",
         "consent=register(", "'--consent'", "command('release'", "command('plan'", "accord.rows", "accord.regression", "accord.quantile",
         "accord.histogram", "t='mean'", "0.3700009",
         "gap=", "about='everyone'")
# fmt: on


def test_worlds_have_everything_in_them():
    """Forms, mechanisms, modifiers, levels of every kind: none is left out among some hundred worlds."""
    worlds = [random_world(seed) for seed in range(150)]
    texts = "\n".join(step.text for world in worlds for step in world.program)
    sources = [source for world in worlds for source in world.sources.values()]
    assert {source.form for source in sources} == set(random_tables.ALL_FORMS)
    for word in (*(f"'{m.name}'" for m in ALL), *WORDS):
        assert word in texts, word
    assert any(len(source.people) > 64 for source in sources)
    assert any(len(rows) > 1 for source in sources for rows in source.people.values())
    assert {world.name for world in worlds} == {
        "programs",
        "programs with a ledger",
        "programs under add-remove",
        "programs with private levels",
    }
    for world in worlds:
        rows_here = {name: world.sources[name].people.get(world.person) for name in world.changed}
        assert any(repr(rows_here[name]) != repr(rows) for name, rows in world.changed.items())


def small(text, rows=({"x": 1.0, "e": 1.0}, {"x": 2.0, "e": 1.0}), form="lists"):
    """One step on a tiny table, in which the first person's value changes."""
    source = Source(
        form, {"x": "DOUBLE", "e": "DOUBLE"}, {k: (row,) for k, row in enumerate(rows)}, {"epsilon": "e"}
    )
    opening = Step("people = accord.table(given('people'), epsilon='e')", "people")
    changed = {"people": ({"x": 9.0, "e": 1.0},)}
    return World("small", {"people": source}, (opening, Step(text, "people")), 0, changed)


def test_what_a_program_shows_by_the_side_is_a_loss():
    for text, evidence in (
        ("show(given('people'))", "str tells two worlds apart"),
        ("raise accord.errors.QueryError(str(given('people')['x']))", "error tells two worlds apart"),
        ("import warnings; warnings.warn(str(given('people')['x']))", "warning tells two worlds apart"),
        ("1 / (given('people')['x'][0] - 1)", "error tells two worlds apart"),
        ("[][1]", "an error of another program's"),
        (
            "import logging; logging.getLogger('accord').debug(given('people')['x'])",
            "log tells two worlds apart",
        ),
    ):
        difference = programs.difference(small(text))
        assert difference is not None and evidence in difference.evidence, text
    sound = small("show(people.release(accord.mean('x', (0, 10), step=1), 'affine'))")
    assert programs.difference(sound) is None


def test_evidence_is_the_text_that_differs():
    """Not the first one that is shown; and no more of it than the place where it begins to differ."""
    value = "100 * ' ' + str(given('people')['x'][0])"
    text = f"show(people.columns); import logging; logging.getLogger('accord').debug({value})"
    difference = programs.difference(small(text))
    assert difference is not None and difference.evidence.startswith("log tells two worlds apart: …'  ")
    assert len(difference.evidence.partition(", at: ")[0]) < 150


def test_a_charge_too_small_by_half_is_a_loss(monkeypatch):
    good = releasing.answer

    class Half:
        def __init__(self, noise):
            self.noise = noise

        def laplace(self, scale):
            return self.noise.laplace(scale / 2)

    everywhere(monkeypatch, good, lambda plan, summaries, noise: good(plan, summaries, Half(noise)))
    difference = programs.difference(
        small("show(people.release(accord.mean('x', (1, 9), step=1), 'affine'))")
    )
    assert difference is not None and "2 is lost where 1 is charged" in difference.evidence


def test_the_smallest_world_is_a_script_that_shows_it_again(monkeypatch, tmp_path):
    world = small("show(people.spec())")
    more = {k: ({"x": float(k), "e": 1.0},) for k in range(6)}
    source = replace(world.sources["people"], people=more)
    steps = (*world.program, Step("show(given('people'))", "people"), Step("show(people.columns)", "people"))
    least = programs.smallest(programs.difference(replace(world, sources={"people": source}, program=steps)))
    assert [step.text for step in least.world.program] == ["show(given('people'))"]
    assert list(least.world.sources["people"].people) == [0]
    script = tmp_path / "shown.py"
    script.write_text(least.script, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "VIOLATED: str tells two worlds apart" in done.stdout and "str here:" in done.stdout


def test_afterwards_releases_have_their_own_noise_and_clock():
    programs.run(random_world(3))
    assert releasing.SECURE is noise.SECURE
    assert releasing.datetime is chain.datetime and releasing.datetime.__name__ == "datetime"


def test_programs_of_an_audit_do_not_run_in_its_process(monkeypatch):
    """A release that goes on meanwhile keeps its noise."""
    monkeypatch.setattr(runner, "BATCHES", 1)
    monkeypatch.setattr(programs, "run", None)
    audit = runner.run(statistics=["programs"], jobs=1, seed=3)
    names = {random_world(seed).name for seed in range(3, 3 + runner.WORLDS)}
    assert audit.passed and {f.statistic for f in audit.findings} == names
    assert any("--deep" in text for text in audit.not_looked_at)


def test_a_spark_session_of_the_same_process_is_not_heard():
    """It logs whenever Python lets go of one of its objects, which no program has done.

    Everything else that is logged is looked at.
    """
    log = program_runs.Log()
    for name in ("py4j.clientserver", "pyspark.sql", "accord", "duckdb", "py4jungle"):
        log.emit(logging.LogRecord(name, logging.DEBUG, "", 0, "said", None, None))
    assert log.lines == ["accord DEBUG said", "duckdb DEBUG said", "py4jungle DEBUG said"]


def test_a_printed_program_has_the_world_in_it():
    """Dates, decimals and infinities as well: what is printed is Python, and gives the very same world."""
    seen = set()
    for seed in range(200):
        world = random_world(seed)
        script = programs.Difference(world, world.program[0], 1.0, 2.0, "it tells").script
        replayed = []
        names = {"__name__": "printed"}
        head, call = script.split("\nreplay(", 1)
        exec(head, names)
        names["replay"] = replayed.append
        exec(f"replay({call}", names)
        assert repr(replayed) == repr([world])
        seen |= {
            word
            for word in ("datetime.date", "Decimal(", "inf", "nan")
            if word in script.split("import replay")[-1]
        }
        if seen == {"datetime.date", "Decimal(", "inf", "nan"}:
            break
    assert "datetime.date" in seen
