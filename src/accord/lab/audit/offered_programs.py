"""Every combination that is offered, as a program: its example, in two neighboring worlds.

`accord audit --deep` begins with them. What remains in a ledger is for random programs: there the books of
what was asked before are a part of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from accord.lab.audit import offered
from accord.lab.audit.case_tables import comes_and_goes
from accord.lab.audit.offered import Combination
from accord.lab.audit.program_runs import KEY, Step, World
from accord.lab.audit.table_forms import Row, Source

_OF_NEIGHBORS = ("neighbors", "roster", "levels", "expected")
_EXTREMES = {
    "x": (-1e300, 1e300, None),
    "z": (-1e300, 1e300, None),
    "m": (0.0, 1.0, None),
    "g": (1.0, 2.0, None),
}
"""What one person may have instead."""


def worlds(seed: int, part: int = 0, parts: int = 1) -> Iterator[World]:
    """One for each combination that is offered on the embedded engine, or for one of so many parts of them.

    An algorithm of one's own is left out: the example draws its own noise.
    """
    combinations = [
        c for c in offered.combinations(engine="duckdb") if c.offered and c.statistic != "algorithm"
    ]
    for k in np.random.default_rng(seed).permutation(len(combinations))[part::parts].tolist():
        world = _world(combinations[k], seed + k)
        if world is not None:
            yield world


def _world(combination: Combination, seed: int) -> World | None:
    """None: the combination is about what remains in a ledger."""
    example = offered.example_of(combination)
    if example.ledger.startswith("remaining"):
        return None
    rows = _rows(example.columns)
    user = example.table.get("user")
    people: dict[int, tuple[Row, ...]] = {}
    for number, row in enumerate(rows):
        who = int(row[user]) if user else number
        people[who] = (*people.get(who, ()), row)
    options = {name: value for name, value in example.table.items() if name not in _OF_NEIGHBORS}
    types = {name: _type([row[name] for row in rows]) for name in example.columns}
    source = Source("arrays", types, people, options)
    private = [who for who in people if 0 < (source.level(who) or 0) < inf]
    person = private[seed % len(private)]
    text = f"offered.example_of({combination!r})"
    has_ledger = example.ledger != "none"
    ledger = f"accord.Ledger('books.db', key={KEY!r})" if has_ledger else "None"
    steps = (
        Step(
            "from accord.lab.audit import examples, offered; from accord.lab.audit.offered import Combination"
        ),
        Step(f"people = examples.opened({text}, given('people'))", "people"),
        Step(f"show(examples.released({text}, people, {ledger}))", "people", str(example.share), has_ledger),
    )
    changed: tuple[Row, ...] = ()
    if not comes_and_goes(combination.neighbors):
        changed = tuple(_other_values(row, example.private, seed) for row in people[person])
    name = f"every combination of {combination.statistic}"
    return World(name, {"people": source}, steps, person, {"people": changed})


def _rows(columns: dict[str, Any]) -> list[Row]:
    lists = {name: np.asarray(values, dtype=object).tolist() for name, values in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _type(values: list[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        return "VARCHAR"
    return "BIGINT" if all(isinstance(value, int) for value in values) else "DOUBLE"


def _other_values(row: Row, private: tuple[str, ...], seed: int) -> Row:
    other = {name: _EXTREMES[name][(seed + k) % 3] for k, name in enumerate(private) if name in _EXTREMES}
    return {**row, **other}
