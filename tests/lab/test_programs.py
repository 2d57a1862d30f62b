"""Whole programs on neighboring worlds: nothing is found where nothing is, and every planted bug is."""

import logging
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from planted import everywhere, releasing
from planted_programs import PLANTED

from accord import noise
from accord.lab.audit import combinations, programs, runner, running, worlds
from accord.lab.audit.programs import Source, Step, World
from accord.ledger import chain
from accord.mechanisms import ALL

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def world(seed):
    """The one that an audit with this seed tries."""
    return worlds.world(np.random.default_rng([seed, crc32(runner.PROGRAMS.encode())]))


SEEDS = {
    "a level is taken for a chance": 73,
    "who lacks a value is public": 140,
    "one missing value changes what kind a column is": 48,
    "text among numbers makes a release fail": 24,
    "an error of the engine is passed on": 24,
    "a log tells a sum": 0,
    "a text tells how many were read": 0,
    "noise is used twice": 0,
    "the laxest of a persons tables counts": 4,
    "a new version forgets what was spent": 10,
    "who chose no tier has the laxest": 14,
    "cross products are left out of the sensitivity": 70,
    "rows of one person are kept one by one": 16,
    "json tells the exact answer": 0,
    "the level of a public group is that of its rows": 39,
    "letters are not composed": 8,
    "an undeclared tier is refused under add remove": 7,
}
"""A world that shows each bug, among the first that audits try. Found by trying them one after the other."""


def returning():
    """Somebody spends most of their level, leaves, and comes back."""
    types = {"id": "BIGINT", "x": "DOUBLE", "e": "DOUBLE"}
    rows = {k: ({"id": k, "x": 1.0, "e": 1.0},) for k in range(4)}
    everyone = Source("lists", types, rows, {"epsilon": "e", "user": "id"})
    sources = {"people": everyone, "later": replace(everyone, people={k: rows[k] for k in (1, 2, 3)})}
    asked = "show(people.release(accord.mean('x', (1, 9), step=1), 'proportional', 0.8, ledger=ledger))"
    rest = "accord.plan(ledger.remaining(people), accord.mean('x', (1, 9), step=1), 'proportional')"
    steps = [
        *(Step(f"{name} = accord.table(given({name!r}), epsilon='e', user='id')", name) for name in sources),
        Step(f"ledger = accord.Ledger('books.db', key={running.KEY!r})"),
        Step("show(ledger.register(people, 'people'))", "people"),
        Step(asked, "people", "0.8", True),
        Step("show(ledger.register(later, 'people'))", "later"),
        Step("show(ledger.register(people, 'people'))", "people"),
        Step(f"show(people.release({rest}, ledger=ledger))", "people", "1", True, True),
    ]
    return World("returning", sources, tuple(steps), 0, {"people": ({"id": 0, "x": 9.0, "e": 1.0},)})


def test_who_comes_back_has_what_they_had_left():
    assert programs.difference(returning()) is None


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(monkeypatch, name):
    PLANTED[name](monkeypatch)
    found = programs.difference(world(SEEDS[name]) if name in SEEDS else returning())
    assert found is not None and found.found > found.promised and found.said


def test_every_planted_bug_is_documented():
    """In the table of bugs that whole programs show."""
    section = PAGE.read_text(encoding="utf-8").split("## Planted in whole programs")[1]
    table = section.split("\n## ")[0]
    assert set(re.findall(r"^\| ([a-z ]+?) \|", table, re.MULTILINE)) - {"planted bug"} == set(PLANTED)


@pytest.mark.parametrize("seed", range(1_000, 1_012))
def test_nothing_is_found_where_nothing_is(seed):
    assert programs.difference(world(seed)) is None


@pytest.mark.slow
@pytest.mark.parametrize("start", range(2_000, 2_100, 10))
def test_nothing_is_found_in_many_worlds(start):
    assert [seed for seed in range(start, start + 10) if programs.difference(world(seed)) is not None] == []


@pytest.mark.slow
def test_nothing_is_found_in_combinations_that_are_offered():
    """Every twentieth; `accord audit --deep` tries all."""
    found = [programs.difference(one) for one in combinations.worlds(1, 3, 20)]
    assert len(found) > 75 and not any(found)


def test_worlds_have_everything_in_them():
    """Forms, mechanisms, modifiers, levels of every kind: none is left out among some hundred worlds."""
    made = [world(seed) for seed in range(150)]
    texts = "\n".join(step.text for one in made for step in one.program)
    sources = [source for one in made for source in one.sources.values()]
    assert {source.form for source in sources} == set(worlds.ALL_FORMS)
    for word in (
        *(f"'{m.name}'" for m in ALL),
        *(
            "where=",
            "by=",
            "membership='public'",
            "missing='exclude'",
            "user='id'",
            "default=",
            "tiers=",
            "roster=",
        ),
        *(
            "ledger=ledger",
            "ledger.remaining",
            "accord.workload",
            "accord.sample",
            "command('release'",
            "command('plan'",
        ),
        *("accord.rows", "accord.regression", "accord.quantile", "accord.histogram", "t='mean'", "0.3700009"),
    ):
        assert word in texts, word
    assert any(len(source.people) > 64 for source in sources)
    assert any(len(rows) > 1 for source in sources for rows in source.people.values())
    assert {one.name for one in made} == {"programs", "programs with a ledger", "programs under add-remove"}
    for one in made:
        assert any(
            repr(one.sources[name].people.get(one.person)) != repr(rows) for name, rows in one.changed.items()
        )


def small(text, rows=({"x": 1.0, "e": 1.0}, {"x": 2.0, "e": 1.0}), form="lists"):
    """One step on a tiny table, in which the first person's value changes."""
    source = Source(
        form, {"x": "DOUBLE", "e": "DOUBLE"}, {k: (row,) for k, row in enumerate(rows)}, {"epsilon": "e"}
    )
    opening = Step("people = accord.table(given('people'), epsilon='e')", "people")
    changed = {"people": ({"x": 9.0, "e": 1.0},)}
    return World("small", {"people": source}, (opening, Step(text, "people")), 0, changed)


def test_what_a_program_shows_by_the_side_is_a_loss():
    for text, said in (
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
        found = programs.difference(small(text))
        assert found is not None and said in found.said, text
    assert (
        programs.difference(small("show(people.release(accord.mean('x', (0, 10), step=1), 'affine'))"))
        is None
    )


def test_a_charge_too_small_by_half_is_a_loss(monkeypatch):
    good = releasing.answer

    class Half:
        def __init__(self, noise):
            self.noise = noise

        def laplace(self, scale):
            return self.noise.laplace(scale / 2)

    everywhere(monkeypatch, good, lambda plan, summaries, noise: good(plan, summaries, Half(noise)))
    found = programs.difference(small("show(people.release(accord.mean('x', (1, 9), step=1), 'affine'))"))
    assert found is not None and "2 is lost where 1 is charged" in found.said


def test_the_smallest_world_is_a_script_that_shows_it_again(monkeypatch, tmp_path):
    one = small("show(people.spec())")
    more = {k: ({"x": float(k), "e": 1.0},) for k in range(6)}
    source = replace(one.sources["people"], people=more, form="parquet")
    steps = (*one.program, Step("show(given('people'))", "people"), Step("show(people.columns)", "people"))
    found = programs.difference(
        replace(one, sources={"people": replace(source, form="lists")}, program=steps)
    )
    least = programs.smallest(found)
    assert [step.text for step in least.world.program] == ["show(given('people'))"]
    assert list(least.world.sources["people"].people) == [0]
    script = tmp_path / "shown.py"
    script.write_text(least.script, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "VIOLATED: str tells two worlds apart" in done.stdout and "str here:" in done.stdout


def test_afterwards_releases_have_their_own_noise_and_clock():
    programs.run(world(3))
    assert releasing.SECURE is noise.SECURE
    assert releasing.datetime is chain.datetime and releasing.datetime.__name__ == "datetime"


def test_programs_of_an_audit_do_not_run_in_its_process(monkeypatch):
    """A release that goes on meanwhile keeps its noise."""
    monkeypatch.setattr(runner, "BATCHES", 1)
    monkeypatch.setattr(programs, "run", None)
    found = runner.run(statistics=["programs"], jobs=1, seed=3)
    assert found.passed and {f.statistic for f in found.findings} == {
        world(seed).name for seed in range(3, 3 + runner.WORLDS)
    }
    assert any("--deep" in text for text in found.unseen)


def test_a_spark_session_of_the_same_process_is_not_heard():
    """It logs whenever Python lets go of one of its objects, which no program has done. Everything else that is logged is looked at."""
    log = running.Log()
    for name in ("py4j.clientserver", "pyspark.sql", "accord", "duckdb", "py4jungle"):
        log.emit(logging.LogRecord(name, logging.DEBUG, "", 0, "said", None, None))
    assert log.lines == ["accord DEBUG said", "duckdb DEBUG said", "py4jungle DEBUG said"]


def test_a_printed_program_has_the_world_in_it():
    """Dates, decimals and infinities as well: what is printed is Python, and gives the very same world."""
    seen = set()
    for seed in range(200):
        tried = world(seed)
        step = tried.program[0]
        script = programs.Difference(tried, step, 1.0, 2.0, "it tells").script
        held = []
        names = {"replay": held.append, "__name__": "printed"}
        head, call = script.split("\nreplay(", 1)
        exec(head, names)
        names["replay"] = held.append
        exec(f"replay({call}", names)
        assert repr(held) == repr([tried])
        seen |= {
            word
            for word in ("datetime.date", "Decimal(", "inf", "nan")
            if word in script.split("import replay")[-1]
        }
        if seen == {"datetime.date", "Decimal(", "inf", "nan"}:
            break
    assert "datetime.date" in seen
