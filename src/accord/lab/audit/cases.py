"""What is audited: every statistic on tiny tables, all of which can be tried, and on a few real people.

The real people are the first of the bundled table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib.resources import as_file, files
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

import accord
from accord import relation
from accord.budget import level_text, to_micro
from accord.errors import PlanError
from accord.mechanisms import ALL
from accord.mechanisms.sample import SampleCalibration
from accord.planning import Plan
from accord.spec import Spec
from accord.statistics import Grouped, Query
from accord.statistics.gap import with_gap

NEIGHBORS = tuple(r.name for r in relation.ALL)


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
    """"where", "by" or the like, if it is about parts of the people."""
    needs_user: bool = False
    """Whether it needs to know whose rows are whose."""
    is_several: bool = False
    """Whether one person may be in several groups or cells."""
    is_generous: bool = False
    """Whether it is asked of people of large levels: of others, quantiles would not be drawn together."""

    @property
    def base(self) -> str:
        """Without its part."""
        return self.name.split(" ")[0]


QUESTIONS: dict[str, Callable[..., Query]] = {
    "mean": lambda s, **of: accord.mean("x", s.bounds, step=s.step, **of),
    "mean with all values": lambda s, **of: accord.mean(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "sum": lambda s, **of: accord.sum("x", s.bounds, step=s.step, **of),
    "sum above zero": lambda s, **of: accord.sum("x", (s.bounds[1] / 2, s.bounds[1]), step=s.step, **of),
    "proportion": lambda s, **of: accord.proportion(f"x > {sum(s.bounds) / 2}", **of),
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
    "covariance": lambda s, **of: accord.covariance("x", "z", bounds={"x": s.bounds, "z": s.bounds}, **of),
    "correlation": lambda s, **of: accord.correlation("x", "z", bounds={"x": s.bounds, "z": s.bounds}, **of),
    "regression on a category": lambda s, **of: accord.regression(
        "x", ["g"], bounds={"x": s.bounds}, categories={"g": [1, 2, 3]}, **of
    ),
}
_RARE_QUESTIONS: dict[str, Callable[..., Query]] = {
    "proportion with all values": lambda s, **of: accord.proportion(
        f"x > {sum(s.bounds) / 2}", **{"missing": "none", **of}
    ),
    "variance with all values": lambda s, **of: accord.variance(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "median with all values": lambda s, **of: accord.median(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "quantile with all values": lambda s, **of: accord.quantile(
        "x", [0.25, 0.9], s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "min with all values": lambda s, **of: accord.min(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "max with all values": lambda s, **of: accord.max(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "regression with all values": lambda s, **of: accord.regression(
        "x", ["z"], bounds={"x": s.bounds, "z": s.bounds}, **{"missing": "none", **of}
    ),
    "covariance with all values": lambda s, **of: accord.covariance(
        "x", "z", bounds={"x": s.bounds, "z": s.bounds}, **{"missing": "none", **of}
    ),
    "correlation with all values": lambda s, **of: accord.correlation(
        "x", "z", bounds={"x": s.bounds, "z": s.bounds}, **{"missing": "none", **of}
    ),
    "sum below zero": lambda s, **of: accord.sum("x", (s.bounds[0], s.bounds[0] / 2), step=s.step / 2, **of),
    "quantiles together": lambda s, **of: accord.quantile("x", [0.4, 0.6], s.bounds, step=s.step, **of),
    "quantiles together of rounded values": lambda s, **of: accord.quantile(
        "x", [0.4, 0.6], s.bounds, step=s.step, rounded=[2 * s.step], **{"missing": "none", **of}
    ),
    "median in values": lambda s, **of: accord.median("x", s.bounds, step=s.step, interval="values", **of),
    "median of rounded values": lambda s, **of: accord.median(
        "x", s.bounds, step=s.step, rounded=[2 * s.step], **of
    ),
    "max of rounded values": lambda s, **of: accord.max(
        "x", s.bounds, step=s.step, rounded=[2 * s.step], **{"missing": "none", **of}
    ),
    "regression on two categories": lambda s, **of: accord.regression(
        "x", ["g", "m"], bounds={"x": s.bounds}, categories={"g": [1, 2, 3], "m": [0, 1]}, **of
    ),
}
"""The same statistics, asked so that other branches answer."""
_UP_TO_TWO: dict[str, Any] = {"by": "g", "keys": [1, 2, 3], "at_most": 2}
_IN_SEVERAL: dict[str, Callable[[Scale], Query]] = {
    "histogram in up to two cells": lambda s: accord.histogram("g", categories=[3, 1, 2], at_most=2),
    "count by up to two groups": lambda s: accord.count(**_UP_TO_TWO),
    "count by up to two groups and the rest": lambda s: accord.count(**_UP_TO_TWO, rest="other"),
    "mean by up to two groups": lambda s: accord.mean("x", s.bounds, step=s.step, **_UP_TO_TWO),
}
"""Of people who are in up to two of three groups or cells."""
_CELLS: dict[str, Any] = {"by": ["g", "m"], "keys": {"g": [1, 2], "m": [1, 0]}}
_IN_CELLS: dict[str, Callable[[Scale], Query]] = {
    name: partial(QUESTIONS[name], **_CELLS) for name in ("count", "mean", "sum", "histogram", "median")
}
"""By two columns."""
_WITH_REST: dict[str, Any] = {"by": "g", "keys": [1], "rest": "other"}
_IN_THE_REST: dict[str, Callable[[Scale], Query]] = {
    name: partial(QUESTIONS[name], **_WITH_REST) for name in ("count", "mean", "median")
}
"""By one column, and whoever has none of its keys."""
_LARGEST: dict[str, Callable[[Scale], Query]] = {
    "count by the largest": lambda s: accord.top("g", k=1, keys=[1, 2]),
}
PARTS: dict[str, dict[str, Any]] = {"": {}, "where": {"where": "m > 0"}, "by": {"by": "g", "keys": [1, 2]}}


def _statistics() -> Iterator[Statistic]:
    for name, ask in (QUESTIONS | _RARE_QUESTIONS).items():
        for part, of in PARTS.items():
            if name.startswith("regression on ") and part:
                continue
            generous = name.startswith("quantiles together")
            whole = f"{name} {part}".strip()
            yield Statistic(whole, partial(ask, **of), part, name == "rows", is_generous=generous)
    for name, ask in _IN_CELLS.items():
        yield Statistic(f"{name} by two columns", ask, "by two columns")
    for name, ask in _IN_THE_REST.items():
        yield Statistic(f"{name} by and the rest", ask, "by and the rest")
    for name, ask in _LARGEST.items():
        yield Statistic(name, ask, "by the largest")
    for name, ask in _IN_SEVERAL.items():
        yield Statistic(name, ask, "by" if " by " in name else "", needs_user=True, is_several=True)


STATISTICS: dict[str, Statistic] = {s.name: s for s in _statistics()}


# ---- tiny tables -------------------------------------------------------------------------------------------


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


# ---- plans -------------------------------------------------------------------------------------------------


def declared_for(mechanism: str, query: Query) -> Query:
    """The question with half of the largest gap declared, if the mechanism is for levels that go with values.

    Of a question of which no gap can be declared, as it is.
    """
    if isinstance(query, Grouped):
        return replace(query, query=declared_for(mechanism, query.query))
    if not any(m.needs_gap for m in ALL if m.name == mechanism) or query.gap_scale is None:
        return query
    return with_gap(query, query.gap_scale.most / 2, None)


def plans(spec: Spec, query: Query, share: str, neighbors: str, mechanisms: Sequence[str]) -> Iterator[Plan]:
    """By every mechanism that answers this, with every t that makes a difference."""
    for mechanism in ALL:
        if mechanism.name not in mechanisms:
            continue
        ts: tuple[Any, ...] = (None,)
        if mechanism.name == "threshold":
            ts = (None, *(level * float(share) for level in spec.levels if level < inf))
        elif mechanism.name == "sample":
            ts = (None, "max", "mean")
        notes = []
        asked = declared_for(mechanism.name, query)
        for t in ts:
            try:
                plan = accord.plan(spec, asked, mechanism.name, float(share), t=t, neighbors=neighbors)
            except PlanError:
                continue
            if plan.calibration.note not in notes:
                notes.append(plan.calibration.note)
                yield plan


def sampling_of(plan: Plan) -> SampleCalibration | None:
    """The calibration of a plan that keeps people at random; None: it reads them all, or none."""
    return plan.calibration if isinstance(plan.calibration, SampleCalibration) else None


def keep_chances(plan: Plan) -> dict[int, int]:
    """{level in millionths: the chance in 2⁻⁶³ that somebody of it is kept}; empty if nobody is sampled."""
    sampled = sampling_of(plan)
    return {} if sampled is None else dict(zip(plan.spec.micro.tolist(), sampled.keep.tolist(), strict=True))


def published_charges(plan: Plan, levels: Sequence[str]) -> dict[str, Fraction | float]:
    """For every level as it stands in a table, the charge that is published; who opted out is not listed."""
    listed = {entry["level"]: entry["charge"] for entry in plan.describe()["charges"]}
    charges = {raw: listed.get(level_text(int(to_micro(float(raw)))), "0") for raw in levels}
    return {raw: inf if charge == "inf" else Fraction(charge) for raw, charge in charges.items()}


def promised_losses(plan: Plan, levels: Sequence[str], share: str = "1") -> dict[str, Fraction | float]:
    """What people of a level may lose: the published charge, and never more than share × level.

    Levels and shares count digit by digit, as they stand in a table.
    """
    return {
        raw: charge if raw == "inf" else min(charge, Fraction(raw) * Fraction(share))
        for raw, charge in published_charges(plan, levels).items()
    }


# ---- real tables -------------------------------------------------------------------------------------------


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
