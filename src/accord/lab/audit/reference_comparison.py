"""What the engine reads, against the reference: both must reckon the same from random tables.

Levels, integers, charges and chances are compared. reference.py shares no code with the rest, so that
a mistake would have to be made twice. The engine here is the embedded one; the tests compare all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord.budget import PUBLIC, IntArray
from accord.errors import PlanError
from accord.lab.audit import reference, reference_values
from accord.lab.audit.case_plans import sampling_of
from accord.lab.audit.findings import Look
from accord.lab.audit.random_tables import Dice, random_table
from accord.lab.audit.table_forms import Source, in_its_form
from accord.people.summary import Summary
from accord.people.table import Table
from accord.planning import Plan
from accord.statistics.target_sums import Additive, Cells

_X: dict[str, Any] = {"column": "x", "bounds": (0, 100), "step": 1}
_PARTS: tuple[dict[str, Any], ...] = (
    {},
    {"where": "NOT (m > 1 OR c = 'a') AND (x < 50 OR x IS NULL)"},
    {"by": "g", "keys": [2, 1]},
    {"where": "b <> FALSE OR c IN ('a', 'b')", "by": "c", "keys": ["b", "a"]},
    {"by": ["c", "g"], "keys": {"g": [2, 1], "c": ["b", "a"]}},
    {"by": "c", "keys": ["b"], "rest": "other"},
)
_STATISTICS: dict[str, dict[str, Any]] = {
    "mean": _X,
    "proportion": {"condition": "x >= 50 OR c = 'a' AND NOT b = TRUE"},
    "variance": {**_X, "missing": 7},
    "sum": {**_X, "bounds": (7, 100)},
    "count": {"where": "x >= 0.5 AND NOT c = 'a'"},
    "histogram": {"column": "c", "categories": ["b", "a"]},
    "quantile": {**_X, "p": [0.25, 0.75], "missing": 3},
    "max": {**_X, "missing": "none"},
    "covariance": {"column": "x", "other": "m", "bounds": {"x": (0, 100), "m": (0, 5)}},
    "correlation": {"column": "m", "other": "z", "bounds": {"z": (0, 100), "m": (0, 5)}},
    "regression": {
        "target": "x",
        "features": ["c", "z", "m"],
        "bounds": {"x": (0, 100), "z": (0, 100), "m": (0, 5)},
        "categories": {"c": ["a", "b", "c"]},
    },
}


def examine(rng: np.random.Generator, tables: int = 4) -> Iterator[Look]:
    """Of so many tables, whether they are read, charged and kept as the reference says."""
    with TemporaryDirectory() as folder:
        for number in range(tables):
            dice = Dice(rng)
            form = dice.one("csv", "parquet", "relation")
            source = random_table(dice, form, 40, dice.chance(0.5), dice.chance(0.5))
            table = accord.table(in_its_form(f"{folder}/{number}", source), **source.options)
            for statistic, asked in _STATISTICS.items():
                part = dice.one(*_PARTS) if "where" not in asked else {}
                question = {"statistic": statistic, **asked, **part}
                differing = _difference(table, source, question)
                loss, evidence = 0.0, ""
                if differing:
                    loss = inf
                    evidence = f"the {differing} of a {form} table are not those of the reference: {question}"
                yield Look("replay", "any", f"{statistic} by the reference", "", "", 0.0, loss, evidence)


def _difference(table: Table, source: Source, question: Mapping[str, Any]) -> str:
    """What accord and the reference do not have alike; nothing, if all is well."""
    rows = [_as_read(row, source) for person in source.people.values() for row in person]
    persons = reference.people(rows, **source.options)
    spec = table.spec()
    levels = [_in_reference(micro) for micro in spec.micro.tolist()]
    if (dict(zip(levels, spec.people.tolist(), strict=True)), spec.opted_out) != reference.spec(persons):
        return "levels"
    arguments = {name: value for name, value in question.items() if name != "statistic"}
    query = getattr(accord, question["statistic"])(**arguments)
    plan = table.plan(query, "minimum")
    if integers(table, plan) != reference.summary(question, persons, "replace"):
        return "integers"
    times = reference.times(question)
    most = [reference.most_charge(level, 1, times) for level in levels]
    for candidate in plan.candidates:
        if candidate.calibration is None:
            continue
        charges = candidate.calibration.charges.tolist()
        if any(charge > limit for charge, limit in zip(charges, most, strict=True) if limit < inf):
            return f"charges by {candidate.mechanism}"
    return "chances" if _keeps_too_many(table, query, most) else ""


def _in_reference(micro: int) -> float:
    """A level as the reference has it, where public people have inf."""
    return inf if micro == PUBLIC else micro


def _as_read(row: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """A row as its form holds it: a file without types holds text."""
    if source.form != "csv":
        return dict(row)
    return {
        name: None if value is None or value == "" else reference_values.spelled(value)
        for name, value in row.items()
    }


def integers(table: Table, plan: Plan, by_cell: bool = False) -> list[dict[float, dict[int, int]]]:
    """What a mechanism adds noise to, or chooses by: for each group {level: {output: amount}}, without zeros.

    `by_cell`: how many people have each integer.
    """
    levels = [_in_reference(micro) for micro in table.spec().micro.tolist()]
    target, groups = plan.target, []
    for summary in table.reader.summaries(plan.query, None, by_cell):
        if not isinstance(target, Additive) or isinstance(target, Cells):
            entries = _entries(summary, summary.output)
        else:
            entries = _at_integers(target, summary) if by_cell else _sums(target, summary)
        by_level: dict[float, Counter[int]] = {}
        for level, output, amount in entries:
            by_level.setdefault(levels[level], Counter())[output] += amount
        sums = {level: {k: a for k, a in row.items() if a} for level, row in by_level.items()}
        groups.append({level: row for level, row in sums.items() if row})
    return groups


def _sums(target: Additive, summary: Summary) -> Iterator[tuple[int, int, int]]:
    for level, (row, people) in enumerate(zip(summary.rows(), summary.people.tolist(), strict=True)):
        for output, amount in enumerate(target.sums(row, people)):
            yield level, output, amount


def _at_integers(target: Additive, summary: Summary) -> Iterator[tuple[int, int, int]]:
    """People at their integers, where cells are not these."""
    form, everyone = target.forms[0], summary.with_others(target.about_members)
    inside = everyone.output < summary.outputs
    return _entries(everyone, np.where(inside, form.at(everyone.output), form.outside))


def _entries(summary: Summary, output: IntArray) -> Iterator[tuple[int, int, int]]:
    return zip(summary.level.tolist(), output.tolist(), summary.amount.tolist(), strict=True)


def _keeps_too_many(table: Table, query: Any, most: list[float]) -> bool:
    """Whether `sample` keeps anybody with a higher chance than their level allows."""
    try:
        plan = table.plan(query, "sample", t="max")
    except PlanError:
        return False
    sampled = sampling_of(plan)
    assert sampled is not None
    t, relation = _in_reference(sampled.t), plan.target.relation.name
    allowed = [reference.chance(limit, t, relation)[1] for limit in most]
    return any(k > 2**63 * chance for k, chance in zip(sampled.keep.tolist(), allowed, strict=True))
