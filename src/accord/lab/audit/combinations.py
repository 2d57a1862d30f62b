"""Every combination that is offered, as a program: its example from offered.py, on two neighboring worlds.
`accord audit --deep` begins with them.

What is left in a ledger is for random programs (worlds.py): there the books of what was asked before are a
part of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from accord.lab.audit import offered
from accord.lab.audit.forms import Row, Source
from accord.lab.audit.running import KEY, Step, World

_EXTREMES = {
    "x": (-1e300, 1e300, None),
    "z": (-1e300, 1e300, None),
    "m": (0.0, 1.0, None),
    "g": (1.0, 2.0, None),
}
"""What one person may have instead."""


def worlds(seed: int, part: int = 0, parts: int = 1) -> Iterator[World]:
    """A world for each combination that is offered on the embedded engine, or for one of so many parts of
    them.

    An algorithm of one's own is left out: the example draws its own noise.
    """
    cells = [
        cell for cell in offered.cells(engine="duckdb") if cell.offered and cell.statistic != "algorithm"
    ]
    for k in np.random.default_rng(seed).permutation(len(cells))[part::parts].tolist():
        world = _world(cells[k], seed + k)
        if world is not None:
            yield world


def _world(cell: offered.Cell, seed: int) -> World | None:
    """None: the combination is about what is left in a ledger."""
    example = offered.example(cell)
    if example.ledger.startswith("remaining"):
        return None
    rows = _rows(example.columns)
    user = example.table.get("user")
    people: dict[int, tuple[Row, ...]] = {}
    for number, row in enumerate(rows):
        who = int(row[user]) if user else number
        people[who] = (*people.get(who, ()), row)
    options = {name: value for name, value in example.table.items() if name not in ("neighbors", "roster")}
    types = {name: _type([row[name] for row in rows]) for name in example.columns}
    source = Source("arrays", types, people, options)
    private = [who for who in people if 0 < (source.level(who) or 0) < inf]
    person = private[seed % len(private)]
    shown = f"offered.example({cell!r})"
    ledger = "None" if example.ledger == "none" else f"accord.Ledger('books.db', key={KEY!r})"
    steps = (
        Step("from accord.lab.audit import offered; from accord.lab.audit.offered import Cell"),
        Step(f"people = offered.opened({shown}, given('people'))", "people"),
        Step(
            f"show(offered.released({shown}, people, {ledger}))",
            "people",
            str(example.share),
            example.ledger != "none",
        ),
    )
    gone = example.table.get("neighbors") == "add-remove"
    changed = () if gone else tuple(_other(row, example.private, seed) for row in people[person])
    return World(
        f"every combination of {cell.statistic}", {"people": source}, steps, person, {"people": changed}
    )


def _rows(columns: dict[str, Any]) -> list[Row]:
    lists = {name: np.asarray(values, dtype=object).tolist() for name, values in columns.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _type(values: list[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        return "VARCHAR"
    return "BIGINT" if all(isinstance(value, int) for value in values) else "DOUBLE"


def _other(row: Row, private: tuple[str, ...], seed: int) -> Row:
    return {
        **row,
        **{name: _EXTREMES[name][(seed + k) % 3] for k, name in enumerate(private) if name in _EXTREMES},
    }
