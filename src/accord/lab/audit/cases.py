"""What is audited: every statistic on tables so small that all of them can be tried, and on a few people of
the bundled table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from importlib.resources import as_file, files
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

import accord
from accord.budget import level_text, to_micro
from accord.errors import PlanError
from accord.mechanisms import ALL
from accord.mechanisms.sample import Sampled
from accord.planning import Plan
from accord.spec import Spec
from accord.statistics import Query

NEIGHBORS = ("replace", "add-remove")


class Row(NamedTuple):
    """Of a table: a value, a feature, a group, and whether somebody meets the condition."""

    x: float
    z: float = 0
    g: float = 1
    m: float = 1


Person = tuple[Row, ...]
"""The rows of one person."""


@dataclass(frozen=True)
class Scale:
    """The public numbers of the questions: of tiny tables, or of real ones."""

    bounds: tuple[float, float]
    step: float
    edges: tuple[float, ...]


TINY = Scale((-1, 2), 1, (-1, 0, 1, 2))
REAL = Scale((-20_000, 200_000), 100, (-20_000, 0, 30_000, 60_000, 200_000))


@dataclass(frozen=True)
class Statistic:
    """One kind of question."""

    name: str
    ask: Callable[[Scale], Query]
    part: str = ""
    """"where" or "by", if it is about parts of the people."""
    user: bool = False
    """Whether it needs to know whose rows are whose."""

    @property
    def base(self) -> str:
        """Without its part."""
        return self.name.split(" ")[0]


ASKED: dict[str, Callable[..., Query]] = {
    "mean": lambda s, **of: accord.mean("x", s.bounds, step=s.step, **of),
    "sum": lambda s, **of: accord.sum("x", s.bounds, step=s.step, **of),
    "sum above zero": lambda s, **of: accord.sum("x", (s.bounds[1] / 2, s.bounds[1]), step=s.step, **of),
    "variance": lambda s, **of: accord.variance("x", s.bounds, step=s.step, **of),
    "count": lambda s, **of: accord.count(**of),
    "rows": lambda s, **of: accord.rows(max=2, **of),
    "histogram": lambda s, **of: accord.histogram("x", edges=s.edges, **of),
    "histogram of two cells": lambda s, **of: accord.histogram(
        "x", edges=(s.edges[0], s.edges[1], s.edges[-1]), **of
    ),
    "median": lambda s, **of: accord.median("x", s.bounds, step=s.step, **of),
    "quantile": lambda s, **of: accord.quantile("x", [0.25, 0.9], s.bounds, step=s.step, **of),
    "min": lambda s, **of: accord.min("x", s.bounds, step=s.step, **of),
    "max": lambda s, **of: accord.max("x", s.bounds, step=s.step, **of),
    "regression": lambda s, **of: accord.regression("x", ["z"], bounds={"x": s.bounds, "z": s.bounds}, **of),
    "regression on a category": lambda s, **of: accord.regression(
        "x", ["g"], bounds={"x": s.bounds}, categories={"g": [1, 2, 3]}, **of
    ),
}
_ODD: dict[str, Callable[..., Query]] = {
    "sum below zero": lambda s, **of: accord.sum("x", (s.bounds[0], s.bounds[0] / 2), step=s.step / 2, **of),
    "regression on two categories": lambda s, **of: accord.regression(
        "x", ["g", "m"], bounds={"x": s.bounds}, categories={"g": [1, 2, 3], "m": [0, 1]}, **of
    ),
}
"""The same statistics, asked so that other branches answer."""
PARTS: dict[str, dict[str, Any]] = {"": {}, "where": {"where": "m > 0"}, "by": {"by": "g", "keys": [1, 2]}}


def _asked(ask: Callable[..., Query], of: dict[str, Any], scale: Scale) -> Query:
    return ask(scale, **of)


def _statistics() -> Iterator[Statistic]:
    for name, ask in (ASKED | _ODD).items():
        for part, of in PARTS.items():
            if name.startswith("regression on ") and part:
                continue
            whole = f"{name} {part}".strip()
            yield Statistic(whole, partial(_asked, ask, of), part, name == "rows")


STATISTICS: dict[str, Statistic] = {s.name: s for s in _statistics()}


# ---- tiny tables -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class People:
    """Public things of a tiny table: everyone's level as it stands there, and the share of it that may be
    spent.
    """

    levels: tuple[str, ...]
    share: str = "1"

    @property
    def numbers(self) -> list[float]:
        return [float(level) for level in self.levels]

    @property
    def spec(self) -> Spec:
        return Spec.of(self.numbers)


_SHARE = "0.3700009"
_THREE = (People(("0.1234569", "0.7", "2.5")), People(("0.3000017", "1.1", "inf"), _SHARE))
_TWO = (People(("0.1234569", "2.5")), People(("0.3000017", "inf"), _SHARE))
_GENEROUS = People(("700", "90000"))
"""So that a regression's slopes are worth it."""


def kinds(statistic: Statistic) -> list[Person]:
    """Everyone whom a tiny table may have: values at and between the ends of the bounds, missing; in a group
    or not; with several rows.
    """
    of = statistic.part
    values: list[tuple[float, float]]
    if statistic.name == "regression on two categories":
        return [(Row(x, 0, g, m),) for x in (-1, 2) for g in (1, 2, 3) for m in (0, 1)]
    if statistic.base == "regression":
        values = [(-1, -1), (2, 2), (-1, 2), *([] if of or statistic.name != "regression" else [(2, nan)])]
    elif statistic.base in ("count", "rows"):
        values = [(-1, 0)]
    else:
        values = [(x, 0) for x in ((-1, 2, nan) if of else (-1, 1, 2, nan))]
    gs: Sequence[float] = (1, 2, 9) if of == "by" or statistic.name == "regression on a category" else (1,)
    ms: Sequence[float] = (1, 0) if of == "where" else (1,)
    rows = [Row(x, z, g, m) for x, z in values for g in gs for m in ms]
    return [(row,) * times for row in rows for times in ((1, 2, 3) if statistic.user else (1,))]


def peoples(statistic: Statistic) -> tuple[People, ...]:
    """Whose levels tiny tables have."""
    if statistic.base == "regression":
        return (_TWO[0], _GENEROUS) if statistic.part else (*_TWO, _GENEROUS)
    return _TWO if len(kinds(statistic)) > 4 else _THREE


def opened(
    people: Sequence[Person | None], levels: Sequence[float], user: bool, roster: Spec | None = None
) -> accord.Table:
    """A table of these people; None: not there."""
    return cut([people], levels, user, roster)(0)


def cut(
    tables: Iterable[Sequence[Person | None]], levels: Sequence[float], user: bool, roster: Spec | None
) -> Callable[[int], accord.Table]:
    """Many tables of such people, kept as one by the engine."""
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
    neighbors = "replace" if roster is None else "add-remove"
    whole = accord.table(
        columns, epsilon="e", user="id" if user else None, neighbors=neighbors, roster=roster
    )

    @cache
    def one(k: int) -> accord.Table:
        engine, levels = whole.reader.engine, whole.reader.levels
        own = f"{engine.dialect.column('which')} = {k}"
        return accord.Table(engine, levels, whole.user, neighbors, whole.level_column, roster, own)

    return one


def shown(people: Sequence[Person | None]) -> str:
    """Made-up people, in words."""
    return "; ".join("nobody" if p is None else " and ".join(_row(row) for row in p) for p in people)


def _row(row: Row) -> str:
    told = [(name, v) for name, v in row._asdict().items() if Row._field_defaults.get(name) != v]
    return ", ".join(f"{name} {'missing' if v != v else f'{v:g}'}" for name, v in told)


# ---- plans -------------------------------------------------------------------------------------------------


def plans(
    spec: Spec,
    query: Query,
    share: str,
    neighbors: str,
    mechanisms: Sequence[str],
    notes: tuple[str, ...] = (),
) -> Iterator[Plan]:
    """By every mechanism that answers this, with every t that makes a difference."""
    for mechanism in ALL:
        if mechanism.name not in mechanisms:
            continue
        ts: tuple[Any, ...] = (None,)
        if mechanism.name == "threshold":
            ts = (None, *(level * float(share) for level in spec.levels if level < inf))
        elif mechanism.name == "sample":
            ts = (None, "max", "mean")
        seen = []
        for t in ts:
            try:
                plan = accord.plan(
                    spec, query, mechanism.name, float(share), t=t, neighbors=neighbors, notes=notes
                )
            except PlanError:
                continue
            if plan.calibration.note not in seen:
                seen.append(plan.calibration.note)
                yield plan


def keeping(plan: Plan) -> Sampled | None:
    """The calibration of a plan that keeps people at random; None: it reads them all, or none."""
    return plan.calibration if isinstance(plan.calibration, Sampled) else None


def chances(plan: Plan) -> dict[int, int]:
    """{level: with which chance somebody of it is kept}, in millionths and in 2⁻⁶³; empty if nobody is left
    to chance.
    """
    sampled = keeping(plan)
    return {} if sampled is None else dict(zip(plan.spec.micro.tolist(), sampled.keep.tolist(), strict=True))


def charged(plan: Plan, levels: Sequence[str]) -> dict[str, Fraction | float]:
    """For every level as it stands in a table, the charge that is published; who opted out is not listed."""
    listed = {entry["level"]: entry["charge"] for entry in plan.describe()["charges"]}
    found = {raw: listed.get(level_text(int(to_micro(float(raw)))), "0") for raw in levels}
    return {raw: inf if charge == "inf" else Fraction(charge) for raw, charge in found.items()}


def promised(plan: Plan, levels: Sequence[str], share: str = "1") -> dict[str, Fraction | float]:
    """What people of a level may lose: the charge that is published, and never more than share × level, digit
    by digit.
    """
    return {
        raw: charge if raw == "inf" else min(charge, Fraction(raw) * Fraction(share))
        for raw, charge in charged(plan, levels).items()
    }


# ---- real tables -------------------------------------------------------------------------------------------


def real_people(count: int) -> list[Row]:
    """The first of the bundled table: income, age, how they file taxes, and whether they get food stamps."""
    import duckdb

    with as_file(files("accord.data") / "people.parquet") as path:
        found = duckdb.execute(
            "SELECT income, age, CASE filing_status WHEN 'single' THEN 1 WHEN 'joint' THEN 2 ELSE 3 END, "
            "foodstamps::INT"
            " FROM read_parquet(?) ORDER BY person LIMIT ?",
            [str(path), count],
        ).fetchall()
    return [Row(*map(float, row)) for row in found]
