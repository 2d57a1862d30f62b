"""Whom the cases of the audit are asked about: tiny tables, all of which can be tried, and a few real people.

The real people are the first of the bundled table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from math import nan
from typing import Any, NamedTuple

import numpy as np

import accord
from accord import relation
from accord.lab.audit.cases import Statistic
from accord.spec import Spec


class Row(NamedTuple):
    """Of a table: a value, a feature, a group, and whether somebody meets the condition."""

    x: float
    z: float = 0
    g: float = 1
    m: float = 1


Person = tuple[Row, ...]
"""The rows of one person."""


@dataclass(frozen=True)
class Population:
    """What is public about a tiny table: everyone's level as it stands there, and the share to be spent."""

    levels: tuple[str, ...]
    share: str = "1"

    @property
    def numbers(self) -> list[float]:
        return [float(level) for level in self.levels]

    @property
    def spec(self) -> Spec:
        return Spec.of(self.numbers)


_SHARE = "0.3700009"
_THREE = (Population(("0.1234569", "0.7", "2.5")), Population(("0.3000017", "1.1", "inf"), _SHARE))
_TWO = (Population(("0.1234569", "2.5")), Population(("0.3000017", "inf"), _SHARE))
_TOGETHER = (Population(("100.1234569", "150.7")), Population(("270.3000017", "300.1"), _SHARE))
_GENEROUS = Population(("700", "90000"))
"""So that a regression's slopes are worth it."""


def possible_people(statistic: Statistic) -> list[Person]:
    """Everyone whom a tiny table may have.

    Values at and between the ends of the bounds, missing; in a group or not; with several rows.
    """
    part = statistic.part
    if statistic.is_several:
        # never two equally frequent groups of which one is left out: who is in which then depends on their id
        groups = [(1,), (2, 2), (1, 2), (3, 1, 3), (2, 3, 3, 2, 1), (9,)]
        if statistic.base != "mean":
            return [tuple(Row(2, 0, g) for g in gs) for gs in groups]
        in_one_without_value = (Row(nan, 0, 1), Row(2, 0, 2))
        return [in_one_without_value, *(tuple(Row(x, 0, g) for g in gs) for gs in groups for x in (-1, 2))]
    if statistic.name == "regression on two categories":
        return [(Row(x, 0, g, m),) for x in (-1, 2) for g in (1, 2, 3) for m in (0, 1)]
    values: list[tuple[float, float]]
    if statistic.base == "regression":
        values = [(-1, -1), (2, 2), (-1, 2)]
        if statistic.name == "regression":
            values.append((2, nan))
    elif statistic.base in ("covariance", "correlation"):
        values = [(-1, -1), (2, 2), (-1, 2), (1, nan)]
    elif statistic.base in ("count", "rows"):
        values = [(-1, 0)]
    else:
        values = [(x, 0) for x in ((-1, 2, nan) if part else (-1, 1, 2, nan))]
    has_groups = part.startswith("by") or statistic.name == "regression on a category"
    gs: Sequence[float] = (1, 2, 9) if has_groups else (1,)
    gs = (1, 2, 9, nan) if part == "by and the rest" else gs
    ms: Sequence[float] = {"where": (1, 0), "by two columns": (1, 0, 9)}.get(part, (1,))
    rows = [Row(x, z, g, m) for x, z in values for g in gs for m in ms]
    return [(row,) * times for row in rows for times in ((1, 2, 3) if statistic.needs_user else (1,))]


def populations(statistic: Statistic, neighbors: str = relation.REPLACE.name) -> tuple[Population, ...]:
    """Whose levels tiny tables have. Of private ones, of which people have any, there are fewer."""
    if statistic.base == "regression":
        return (_TWO[0], _GENEROUS) if statistic.part else (*_TWO, _GENEROUS)
    if statistic.is_generous:
        return _TOGETHER[: 1 if statistic.part else 2]
    is_large = len(possible_people(statistic)) > 4 or not relation.named(neighbors).levels_are_public
    return _TWO if is_large else _THREE


def comes_and_goes(neighbors: str) -> bool:
    """Whether neighbors are tables with and without somebody."""
    return not relation.named(neighbors).people_are_public


def said_of(spec: Spec, neighbors: str) -> Spec | None:
    """What is said of people who are not counted: the roster, or who is expected; None: they are counted."""
    if not comes_and_goes(neighbors):
        return None
    return spec if relation.named(neighbors).levels_are_public else spec.as_expected()


def opening(said: Spec | None) -> dict[str, Any]:
    """How a table is opened of whose people that is said."""
    if said is None:
        return {}
    if said.is_expected:
        return {"levels": "private", "expected": said}
    return {"neighbors": relation.ADD_REMOVE.name, "roster": said}


def open_table(
    people: Sequence[Person | None], levels: Sequence[float], user: bool, roster: Spec | None = None
) -> accord.Table:
    """A table of these people, opened as anybody would; None: not there."""
    return _open(_columns([people], levels), user, roster)


def open_tables(
    tables: Iterable[Sequence[Person | None]], levels: Sequence[float], user: bool, roster: Spec | None
) -> Callable[[int], accord.Table]:
    """Many tables of such people, by their number; the engine has them all in one, and each is a part."""
    whole = _open(_columns(tables, levels), user, roster)

    @cache
    def table_number(k: int) -> accord.Table:
        engine, levels = whole.reader.engine, whole.reader.levels
        condition = f"{engine.dialect.column('which')} = {k}"
        return accord.Table(
            engine, levels, whole.user, whole.neighbors, whole.level_column, whole.reader.roster, condition
        )

    return table_number


def _open(columns: dict[str, Any], user: bool, roster: Spec | None) -> accord.Table:
    return accord.table(columns, epsilon="e", user="id" if user else None, **opening(roster))


def _columns(tables: Iterable[Sequence[Person | None]], levels: Sequence[float]) -> dict[str, Any]:
    """The rows of these people; of which table ("which"), whose ("id"), and their levels ("e")."""
    rows = [
        (table, row, k, number == k % len(person or ()))
        for table, people in enumerate(tables)
        for k, person in enumerate(people)
        for number, row in enumerate(person or ())
    ]
    columns: dict[str, Any] = {
        name: np.array([getattr(row, name) for _, row, _, _ in rows], dtype=float) for name in Row._fields
    }
    columns["id"] = np.array([k for _, _, k, _ in rows], dtype=np.int64)
    # of several rows, one has the strictest level, which counts
    columns["e"] = np.array(
        [levels[k] if strictest else 2 * levels[k] for _, _, k, strictest in rows], dtype=float
    )
    columns["which"] = np.array([table for table, _, _, _ in rows], dtype=np.int64)
    return columns


def people_text(people: Sequence[Person | None]) -> str:
    """Made-up people, in words."""
    return "; ".join("nobody" if p is None else " and ".join(_row_text(row) for row in p) for p in people)


def _row_text(row: Row) -> str:
    values = [(name, v) for name, v in row._asdict().items() if Row._field_defaults.get(name) != v]
    return ", ".join(f"{name} {'missing' if v != v else f'{v:g}'}" for name, v in values)


def real_people(count: int) -> list[Row]:
    """The first of the bundled table: income, age, how they file taxes, and whether they get food stamps."""
    import duckdb

    with as_file(files("accord.data") / "people.parquet") as path:
        rows = duckdb.execute(
            """
            SELECT income, age,
                CASE filing_status WHEN 'single' THEN 1 WHEN 'joint' THEN 2 ELSE 3 END,
                foodstamps::INT
            FROM read_parquet(?) ORDER BY person LIMIT ?
            """,
            [str(path), count],
        ).fetchall()
    return [Row(*map(float, row)) for row in rows]
