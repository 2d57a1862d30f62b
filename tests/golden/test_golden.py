"""Golden files: what a user can see of accord, as it is. A change of one is a decision, and its commit message says why.

    make golden        writes them anew; then read the difference

Answers are drawn by the seeded noise of tests/conftest.py. Numbers are compared to eight digits, because linear algebra may differ in the last ones.
"""

import inspect
import json
import os
import sys
from decimal import Decimal
from importlib import import_module
from importlib.resources import files
from itertools import count
from math import inf, isclose
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from noises import SEED, SEEDED
from promises.test_offered import BY_STATISTIC, in_memory, releases, together

import accord
from accord.cli import main
from accord.errors import AccordError, BudgetError, QueryError
from accord.lab.audit import examples, offered

HERE = Path(__file__).parent
WRITE = "ACCORD_WRITE_GOLDEN" in os.environ
pytestmark = pytest.mark.skipif(SEED is not None, reason="with another ACCORD_TEST_SEED, answers are others")
PEOPLE = str(files("accord.data") / "people.parquet")
DIGITS, EVERY = 10, 60
NUMBERS, KEY = count(), "the key of golden files"


def agree(name, found):
    """Compare with a golden file, or write it."""
    path = HERE / name
    text = found if isinstance(found, str) else "\n".join(entry(key, found[key]) for key in found) + "\n"
    if WRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    if isinstance(found, str):
        assert golden == found
        return
    expected = dict(line.split("\t", 1) for line in golden.splitlines())
    assert list(expected) == list(found)
    for key, value in found.items():
        assert alike(json.loads(expected[key]), json.loads(json.dumps(rounded(value)))), f"{key}\n{value}"


def entry(key, value):
    """One line: its name and its document."""
    return f"{key}\t{json.dumps(rounded(value), ensure_ascii=False, sort_keys=True)}"


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < inf else str(value)
    if isinstance(value, dict):
        return {str(key): rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def alike(one, other):
    if isinstance(one, float) and isinstance(other, float | int):
        return isclose(one, other, rel_tol=1e-8, abs_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == sorted(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or are_charges_alike(one, other)


def are_charges_alike(one, other):
    """Whether two texts have charges that differ by a millionth at most: τ is rounded down, by machines of several kinds."""
    if not (isinstance(one, str) and isinstance(other, str) and len(one.split()) == len(other.split())):
        return False
    try:
        pairs = zip(map(Decimal, one.split()), map(Decimal, other.split()), strict=True)
        return all(x == y or abs(x - y) <= Decimal("0.000001") for x, y in pairs)
    except ArithmeticError:
        return False


def timeless(document):
    """Without what differs each time: times, hashes, and the version of accord."""
    if isinstance(document, dict):
        return {
            key: "…"
            if key in ("time", "hash", "previous", "accord", "key", "digest", "accounts", "seal", "question")
            and isinstance(value, str)
            else timeless(value)
            for key, value in document.items()
        }
    return [timeless(one) for one in document] if isinstance(document, list) else document


# ---- names -----------------------------------------------------------------------------------------------------------


def test_signatures():
    """Every public name with its arguments; of classes, what can be called or read."""
    lines = []
    for name in sorted(accord.__all__):
        thing = getattr(accord, name)
        if inspect.ismodule(thing):
            lines += [f"{name}.{one}{arguments(getattr(thing, one))}" for one in public(thing)]
        elif inspect.isclass(thing):
            lines.append(f"{name}{arguments(thing)}")
            lines += [f"{name}.{one}{arguments(inspect.getattr_static(thing, one))}" for one in public(thing)]
        else:
            lines.append(f"{name}{arguments(thing)}")
    agree("signatures.txt", "\n".join(lines) + "\n")


def public(thing):
    own = inspect.getmodule(thing) if inspect.isclass(thing) else thing
    names = [one for one in dir(thing) if not one.startswith("_")]
    if inspect.ismodule(thing):
        return [one for one in names if getattr(getattr(thing, one), "__module__", None) == own.__name__]
    return names


def arguments(thing):
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    if not callable(thing):
        return ""
    try:
        return str(inspect.signature(thing))
    except ValueError:  # built-in
        return "(…)"


def test_help(monkeypatch):
    """Of every command, freshly made: click keeps the first help that somebody asked a command for."""
    monkeypatch.setattr(accord, "cli", accord.cli)  # put back afterwards
    known = [name for name in sys.modules if name.split(".")[:2] == ["accord", "cli"]]
    for name in known:
        monkeypatch.delitem(sys.modules, name)
    fresh = import_module("accord.cli")
    lines = []

    def tell(command, words):
        lines.append(f"$ accord {' '.join([*words, '--help'])}\n")
        lines.append(
            CliRunner().invoke(fresh.main, [*words, "--help"], prog_name="accord", terminal_width=100).stdout
        )
        if isinstance(command, click.Group):
            for name in sorted(command.commands):
                tell(command.commands[name], [*words, name])

    tell(fresh.main, [])
    agree("help.txt", "\n".join(lines))


# ---- documents -------------------------------------------------------------------------------------------------------

SPEC = accord.Spec.from_groups({0.1: 500, 1.0: 300, inf: 20, 0: 7})


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_plans(neighbors):
    found = {}
    for name, ask in examples.QUESTIONS.items():
        for modifier in ("none", "where", "by"):
            if name == "algorithm":
                continue
            asked = ask(examples.SCALE, **examples.MODIFIERS[modifier].of)
            found[f"{name}, {modifier}"] = timeless(accord.plan(SPEC, asked, neighbors=neighbors).describe())
    agree(f"plans-{neighbors}.txt", found)


def people(first=120, **how):
    """So many of them."""
    draw = np.random.default_rng(3)
    data = {
        "id": np.arange(120),
        "x": np.round(draw.uniform(0, 100, 120), 3),
        "z": draw.uniform(0, 100, 120),
        "g": 1 + draw.integers(0, 3, 120),
        "m": draw.integers(0, 2, 120).astype(float),
        "tier": np.array(["strict", "standard", "open", "out"], dtype=object)[draw.integers(0, 4, 120)],
    }
    tiers = {"strict": 1.0, "standard": 2.5, "open": inf, "out": 0}
    data = {name: values[:first] for name, values in data.items()}
    return accord.table(data, epsilon="tier", tiers=tiers, user="id", **how)


def test_receipts():
    found = {}
    for name, ask in examples.QUESTIONS.items():
        for modifier in ("none", "by", "public by"):
            if name in ("algorithm", "workload") and modifier == "public by":
                continue
            words = {} if name == "algorithm" else examples.MODIFIERS[modifier].of
            asked = ask(examples.SCALE, **words)
            SEEDED.seed(f"{name}, {modifier}")
            mechanism = "sample" if name == "algorithm" else "auto"
            if name == "algorithm":
                made = accord.sample(asked.function, people(), columns=["x"], rows="numpy").receipt() | {
                    "value": "…"
                }
            else:
                made = people().release(asked, mechanism, share=0.5).receipt()
            found[f"{name}, {modifier}"] = timeless(made)
    agree("receipts.txt", found)


def test_texts():
    lines = []
    for name in ("mean", "median", "histogram", "regression", "workload"):
        for modifier in ("none", "by"):
            if name == "workload" and modifier == "by":
                continue
            asked = examples.QUESTIONS[name](examples.SCALE, **examples.MODIFIERS[modifier].of)
            SEEDED.seed(f"{name}, {modifier}")
            table = people()
            lines += [f"==== {name}, {modifier}\n", str(table.plan(asked)), "", str(table.release(asked)), ""]
    agree("texts.txt", "\n".join(lines))


MEAN = accord.mean("x", bounds=(0, 100))
ERRORS = {
    "no such column": lambda: people().release(accord.mean("incme", bounds=(0, 1))),
    "levels as a question": lambda: people().release(accord.histogram("tier", categories=["strict"])),
    "no such mechanism": lambda: people().release(MEAN, "afine"),
    "not its statistic": lambda: people().release(MEAN, "rank"),
    "share of 7": lambda: people().release(MEAN, share=7),
    "t without its mechanism": lambda: people().release(MEAN, t=1.0),
    "bounds reversed": lambda: accord.mean("x", bounds=(1, 0)),
    "bounds of infinity": lambda: accord.mean("x", bounds=(0, inf)),
    "std too large": lambda: accord.mean("x", bounds=(0, 1), std=3),
    "keys without by": lambda: accord.mean("x", bounds=(0, 1), keys=[1]),
    "by without keys": lambda: people().plan(accord.mean("x", bounds=(0, 1), by="g")),
    "a condition that is none": lambda: accord.count(where="x >>> 3"),
    "p of 1": lambda: accord.quantile("x", 1, bounds=(0, 1)),
    "no file": lambda: accord.table("nowhere.parquet", epsilon="e"),
    "another ending": lambda: accord.table("pyproject.toml", epsilon="e"),
    "no levels": lambda: accord.table({"x": [1.0]}, epsilon="e"),
    "a negative level": lambda: accord.table({"x": [1.0], "e": [-1.0]}, epsilon="e").spec(),
    "a tier that is not declared": lambda: accord.table({"e": ["a"]}, epsilon="e", tiers={"b": 1.0}).spec(),
    "no level": lambda: accord.table({"e": [1.0, None]}, epsilon="e").spec(),
    "nobody": lambda: accord.plan(accord.Spec.from_groups({0: 5}), MEAN),
    "another table's plan": lambda: people().release(accord.plan(SPEC, MEAN)),
    "neighbors without a roster": lambda: accord.table({"e": [1.0]}, epsilon="e", neighbors="add-remove"),
    "a confidence of 2": lambda: people().release(MEAN).interval(2),
    "a plan of a table": lambda: accord.plan(people(), MEAN),
    "a question that is none": lambda: people().release("mean"),
}


def test_errors():
    found = {}
    for name, call in ERRORS.items():
        with pytest.raises(AccordError) as refusal:
            call()
        found[name] = {"error": type(refusal.value).__name__, "text": str(refusal.value)}
    agree("errors.txt", found)


def test_a_ledger(tmp_path):
    """Its life: two tables, releases, a workload, what is left, a refusal, a failure, new levels."""
    ledger = accord.Ledger(tmp_path / "accord.db", key=KEY)
    one, some = people(), people(first=40)
    ledger.register(one, "people")
    ledger.register(some, "some")
    one.release(MEAN, share=0.1, ledger=ledger)
    with pytest.raises(QueryError):
        accord.sample(lambda rows, epsilon: None, one, share=0.1, ledger=ledger, columns=["x"])
    one.release(accord.workload([MEAN, accord.median("x", bounds=(0, 100))]), share=0.2, ledger=ledger)
    some.release(accord.plan(ledger.remaining(some), accord.count(where="m = 1")), ledger=ledger)
    with pytest.raises(BudgetError):
        some.release(MEAN, "minimum", share=0.9, ledger=ledger)
    ledger.register(people(first=60), "some")
    found = {
        "accounts": [vars(account) for account in ledger.accounts()],
        "remaining": vars(ledger.remaining(one))["people"].tolist(),
        "history": timeless(ledger.history()),
        **{f"entry {e.seq}, {e.kind}": timeless(e.content) for e in ledger.entries()},
        "export": shape(ledger.export()),
        "verdict": [ledger.verify().entries, list(ledger.verify().problems)],
    }
    agree("ledger.txt", found)


def shape(document):
    """The names in a document, and the kinds of what they stand for."""
    if isinstance(document, dict):
        return {key: shape(value) for key, value in document.items()}
    if isinstance(document, list):
        return [shape(document[0])] if document else []
    return type(document).__name__


ASKED = [PEOPLE, "mean", "income", "--bounds", "0", "200000", "--epsilon", "epsilon"]
COMMANDS = {
    "plan": ["plan", *ASKED],
    "release": ["release", *ASKED, "--mechanism", "affine"],
    "median": ["release", PEOPLE, "median", "income", "--bounds", "0", "200000", "--epsilon", "epsilon"],
    "refused": ["release", PEOPLE, "mean", "incme", "--bounds", "0", "1", "--epsilon", "epsilon"],
    "mechanisms": ["mechanisms"],
}


def test_json_of_the_command_line():
    found = {}
    for name, words in COMMANDS.items():
        SEEDED.seed(name)
        told = CliRunner().invoke(main, [*words, "--json"])
        found[name] = {
            "exit": told.exit_code,
            "stdout": timeless(json.loads(told.stdout)) if told.stdout else None,
        }
    agree("command-line.txt", found)


# ---- every cell of what is offered -----------------------------------------------------------------------------------


def replayed(cell, folder):
    """An offered combination, with the noise that its name stands for."""
    SEEDED.seed(name_of(cell))
    shown = offered.example_of(cell)
    ledger = None if shown.ledger == "none" else accord.Ledger(folder / f"{next(NUMBERS)}.db", key=KEY)
    return outcome(examples.released(shown, examples.opened(shown), ledger))


def name_of(cell):
    return f"{cell.mechanism}, {cell.neighbors}, {cell.modifier}"


def outcome(made):
    if made.plan.is_workload:
        return [outcome(one) for one in made.releases]
    if made.plan.is_grouped:
        return {key: None if one is None else outcome(one) for key, one in made.releases.items()}
    receipt = made.receipt()
    kept = {name: receipt[name] for name in ("value", "rmse", "rmse_here", "bias_bound")}
    kept["charges"] = " ".join(line["charge"] for line in receipt["charges"])
    if receipt["interval"] is None:  # an algorithm has its own randomness
        kept["value"] = None
    else:
        kept["interval"] = receipt["interval"]["bounds"]
    return kept


def cells(statistic):
    return [cell for cell in offered.combinations(statistic=statistic, engine="duckdb") if cell.offered]


@together
@pytest.mark.parametrize("statistic", examples.QUESTIONS)
def test_some_releases_are_as_they_were(statistic, tmp_path):
    """Every so many-th; each statistic starts at another."""
    path = HERE / "releases" / f"{statistic.replace(' ', '-')}.txt"
    if WRITE:
        every = {name_of(cell): replayed(cell, tmp_path) for cell in cells(statistic)}
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(entry(key, every[key]) for key in every) + "\n", encoding="utf-8")
    golden = read(path)
    assert list(golden) == [name_of(cell) for cell in cells(statistic)]
    start = list(examples.QUESTIONS).index(statistic) % min(EVERY, len(golden))
    same(cells(statistic)[start::EVERY], golden, tmp_path)


@pytest.mark.parametrize("statistic", BY_STATISTIC)
def test_all_releases_are_as_they_were(statistic, tmp_path):
    """All that is offered; and each keeps what every release promises about itself and its ledger."""
    golden = read(HERE / "releases" / f"{statistic.replace(' ', '-')}.txt")
    for cell in cells(statistic):
        SEEDED.seed(name_of(cell))
        table = in_memory(cell, offered.example_of(cell))
        made = releases(cell, table, lambda: accord.Ledger(tmp_path / f"{next(NUMBERS)}.db", key=KEY))
        agrees(cell, outcome(made), golden)


def read(path):
    return dict(line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())


def same(some, golden, folder):
    assert some
    for cell in some:
        agrees(cell, replayed(cell, folder), golden)


def agrees(cell, outcome, golden):
    found = json.loads(json.dumps(rounded(outcome)))
    assert alike(json.loads(golden[name_of(cell)]), found), f"{cell}\n{found}"
