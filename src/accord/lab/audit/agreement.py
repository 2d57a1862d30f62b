"""What the engine reads, against the reference: levels, integers, charges and chances of random tables are reckoned twice and must be the same.

reference.py shares no code with the rest, so that a mistake would have to be made twice. The engine here is the embedded one; the tests compare all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord.budget import PUBLIC
from accord.errors import PlanError
from accord.lab.audit import reference, worlds
from accord.lab.audit.findings import Seen
from accord.lab.audit.programs import Source, given
from accord.people.table import Table
from accord.planning import Plan

_X: dict[str, Any] = {"column": "x", "bounds": (0, 100), "step": 1}
_PARTS: tuple[dict[str, Any], ...] = (
    {},
    {"where": "NOT (m > 1 OR c = 'a') AND (x < 50 OR x IS NULL)"},
    {"by": "g", "keys": [2, 1]},
    {"where": "b <> FALSE OR c IN ('a', 'b')", "by": "c", "keys": ["b", "a"]},
)
_STATISTICS: dict[str, dict[str, Any]] = {
    "mean": _X,
    "sum": {**_X, "bounds": (7, 100), "missing": "exclude"},
    "count": {"where": "x >= 0.5 AND NOT c = 'a'"},
    "histogram": {"column": "c", "categories": ["b", "a"]},
    "quantile": {**_X, "p": [0.25, 0.75], "missing": 3},
    "max": {**_X, "missing": "exclude"},
    "regression": {
        "target": "x",
        "features": ["c", "z", "m"],
        "bounds": {"x": (0, 100), "z": (0, 100), "m": (0, 5)},
        "categories": {"c": ["a", "b", "c"]},
    },
}


def examine(rng: np.random.Generator, tables: int = 4) -> Iterator[Seen]:
    """Of so many tables, whether they are read, charged and kept as the reference says."""
    with TemporaryDirectory() as folder:
        for number in range(tables):
            dice = worlds.Dice(rng)
            form = dice.one("csv", "parquet", "relation")
            source = worlds.table_of(dice, form, 40, dice.often(0.5), dice.often(0.5))
            table = accord.table(given(f"{folder}/{number}", source), **source.options)
            for statistic, asked in _STATISTICS.items():
                part = dice.one(*_PARTS) if "where" not in asked else {}
                question = {"statistic": statistic, **asked, **part}
                wrong = _difference(table, source, question)
                said = f"the {wrong} of a {form} table are not those of the reference: {question}" if wrong else ""
                yield Seen("replay", "any", f"{statistic} by the reference", "", "", 0.0, inf if wrong else 0.0, said)


def _difference(table: Table, source: Source, question: Mapping[str, Any]) -> str:
    """What accord and the reference do not have alike; nothing, if all is well."""
    rows = [_as_read(row, source) for person in source.people.values() for row in person]
    persons = reference.people(rows, **source.options)
    spec = table.spec()
    levels = [inf if micro == PUBLIC else micro for micro in spec.micro.tolist()]
    if (dict(zip(levels, spec.people.tolist(), strict=True)), spec.opted_out) != reference.spec(persons):
        return "levels"
    arguments = {name: value for name, value in question.items() if name != "statistic"}
    query = getattr(accord, question["statistic"])(**arguments)
    plan = table.plan(query, "minimum")
    if _read(table, plan, levels) != reference.summary(question, persons, "replace"):
        return "integers"
    times = reference.times(question)
    most = [reference.most_charge(level, 1, times) for level in levels]
    for candidate in plan.candidates:
        if candidate.calibration is not None and any(
            c > m for c, m in zip(candidate.calibration.charges.tolist(), most, strict=True) if m < inf
        ):
            return f"charges by {candidate.mechanism}"
    return "chances" if _keeps_too_often(table, query, most) else ""


def _as_read(row: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """A row as its form holds it: a file without types holds text."""
    if source.form != "csv":
        return dict(row)
    return {name: None if value is None or value == "" else reference.spelled(value) for name, value in row.items()}


def _read(table: Table, plan: Plan, levels: list[float]) -> list[dict[float, dict[int, int]]]:
    """For each group {level: {output: amount}}, without zeros."""
    made = []
    for summary in table.reader.summaries(plan.query):
        sums: dict[float, dict[int, int]] = {}
        entries = (column.tolist() for column in (summary.level, summary.output, summary.amount))
        for level, output, amount in zip(*entries, strict=True):
            if amount:
                row = sums.setdefault(levels[level], {})
                row[output] = row.get(output, 0) + amount
        made.append(sums)
    return made


def _keeps_too_often(table: Table, query: Any, most: list[float]) -> bool:
    """Whether `sample` keeps anybody more often than their level allows."""
    try:
        plan = table.plan(query, "sample", t="max")
    except PlanError:
        return False
    t, keep = plan.calibration.t, plan.calibration.keep
    assert t is not None
    limit = inf if t == PUBLIC else t
    chances = [reference.chance(m, limit, plan.calibration.neighbors)[1] for m in most]
    return any(k > 2**63 * chance for k, chance in zip(keep.tolist(), chances, strict=True))
