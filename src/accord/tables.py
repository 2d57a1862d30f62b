"""Table: a source with its column of levels. `spec()`, `plan()`, `release()`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from accord import planning, release
from accord.engines import Engine, Kind, open_source, sql
from accord.errors import TABLE_CHANGED, QueryError, SourceError, SpecError, did_you_mean
from accord.planning import NEIGHBORS, Plan
from accord.query import Histogram, OnGrid, Order, Query
from accord.release import Release
from accord.spec import LARGEST, MICRO, IntArray, Spec, read_tiers, to_float, to_micro
from accord.summary import Summary

_FEW_LEVELS = 64
_MANY_CELLS = 1_000


@dataclass(frozen=True)
class _Levels:
    """How the level of a row is read: a column of numbers, a column of tiers, or one number for everyone."""

    expression: str
    tiers: dict[str, int] | None
    default: int | None
    """In millionths, for NULL."""

    @property
    def read(self) -> str:
        """SQL that is true for people who are to be read: never for those who opted out."""
        tests = [f"{self.expression} IS NULL"] if self.default else []
        if self.tiers is None:
            tests.append(f"{self.expression} >= {sql.double(1 / MICRO)}")
        elif names := ", ".join(sql.text(name) for name, level in self.tiers.items() if level):
            tests.append(f"{self.expression} IN ({names})")
        return f"({' OR '.join(tests)})" if tests else "FALSE"

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        """Raw levels in millionths; refuses what is not a level, with the number of people (levels are public)."""
        missing = np.ma.getmaskarray(raw)
        micro = np.zeros(missing.size, dtype=np.int64)
        if missing.any():
            if self.default is None:
                raise SpecError(
                    f"{people[missing].sum()} of {people.sum()} people have no level (NULL). Give default=, or leave them out of the table."
                )
            micro[missing] = self.default
        known = np.ma.getdata(raw)[~missing]
        if self.tiers is None:
            self._refuse(known, people[~missing], int(people.sum()))
            micro[~missing] = to_micro(known)
            return micro
        names, where = np.unique(known.astype(object), return_inverse=True)
        unknown = [name for name in names.tolist() if name not in self.tiers]
        if len(unknown) > 5:  # hardly tiers: a wrong column, whose entries are not to be shown
            raise SpecError(
                f"the levels have {len(unknown)} names that are not declared tiers. Is it the right column? {did_you_mean('', self.tiers)}"
            )
        for name in unknown:
            count = int(people[~missing][known == name].sum())
            raise SpecError(
                f"tier {name!r} of {count} people is not declared. Give it a level (0: opted out), or correct it: {did_you_mean(name, self.tiers)}"
            )
        micro[~missing] = np.array([self.tiers[name] for name in names.tolist()], dtype=np.int64)[where]
        return micro

    @staticmethod
    def _refuse(levels: Any, people: IntArray, total: int) -> None:
        """Like `to_micro`, but counting people instead of distinct levels."""
        for bad, what in (
            (
                np.isnan(levels),
                "NaN or not a number (names of tiers are declared: tiers={'strict': 0.1, 'public': inf})",
            ),
            (levels < 0, "negative"),
            (
                (levels > LARGEST / MICRO) & ~np.isinf(levels),
                f"larger than {LARGEST // MICRO}, which protects nobody (write inf for public data)",
            ),
        ):
            if bad.any():
                raise SpecError(
                    f"{people[bad].sum()} of {total} people have a level that is {what}. A level is a number ≥ 0 (0: opted out), "
                    "or inf (public). Correct them, or leave these people out."
                )


class Table:
    """People, opened. Made by `accord.table`."""

    def __init__(
        self, engine: Engine, levels: _Levels, user: str | None, neighbors: str, level_column: str | None = None
    ) -> None:
        self._engine, self._levels, self._user, self.neighbors = engine, levels, user, neighbors
        self._level_column = level_column
        self._spec: Spec | None = None
        # Levels as they stand in the table (the first of them), and in millionths.
        self._raw: tuple[list[Any], IntArray] = ([], np.zeros(0, dtype=np.int64))

    @property
    def columns(self) -> dict[str, Kind]:
        """The columns and what they hold."""
        return dict(self._engine.columns)

    @property
    def known(self) -> bool:
        """Whether the levels have been read."""
        return self._spec is not None

    def spec(self) -> Spec:
        """The public levels, read once and kept."""
        if self._spec is None:
            found = self._engine.fetch(sql.levels(self._engine.source, self._levels.expression))
            self._keep(found["level"], self._levels.decode(found["level"], found["people"]), found["people"])
        assert self._spec is not None
        return self._spec

    def plan(self, query: Query, mechanism: str = "auto", share: float = 1.0, *, t: float | None = None) -> Plan:
        """Compare every mechanism for a query; see `accord.plan`. Reads no value."""
        notes = self._check(query)
        return planning.plan(self.spec(), query, mechanism, share, t=t, neighbors=self.neighbors, notes=notes)

    def release(
        self, query: Query | Plan, mechanism: str = "auto", share: float = 1.0, *, t: float | None = None
    ) -> Release:
        """Answer a query, or carry out a plan.

        Args:
            query: a query, or a plan of `plan` (which has its mechanism and share already).
            mechanism: a name, or "auto" for the lowest predicted error.
            share: the fraction of everyone's level that may be spent.
            t: the level of `threshold`; the best one if left out.
        """
        self._check(query.query if isinstance(query, Plan) else query)
        return release.release(self, query, mechanism, share, t=t)

    def _check(self, query: Any) -> tuple[str, ...]:
        """Refuse what this table cannot answer, by names and kinds of columns; what else must be taken for granted here."""
        if not isinstance(query, Query):
            return ()  # `plan` and `release` say so
        sql.check(query, self._engine.columns)
        if self._level_column in query.columns:
            raise QueryError(
                f"column {self._level_column!r} holds the levels, which are public and decide everyone's weight. Look at spec() for how many have which."
            )
        if not isinstance(query, OnGrid) or self._engine.columns[query.column] != "untyped":
            return ()
        example = (
            "number such as 1234.5 (text, 1.234,5, $5)"
            if query.kind == "number"
            else "date such as 2026-01-31 (a time zone is not read)"
        )
        return (f"{query.column} is read from a file without types: what is not a {example} is missing",)

    def _summary(self, query: Query) -> Summary:
        """The exact integers behind a query. Private: for `release` alone."""
        how, source = self._levels, self._engine.source
        cell = sql.cell(query, self._engine.columns, how.read)
        points = query.points if isinstance(query, Order) else query.outputs
        missing = query.missing_cell if isinstance(query, OnGrid) else None
        if isinstance(query, Histogram | Order):
            micro, people, cells = self._by_cell(cell, points, missing)
            amounts: Any = people
        else:
            found = self._engine.fetch(sql.by_level(source, how.expression, cell, missing or 0), wide="total")
            people, amounts = found["people"], np.array(found["total"], dtype=object)
            micro, cells = how.decode(found["level"], people), np.zeros(people.size, dtype=np.int64)
            if self._spec is None:
                self._keep(found["level"], micro, people)
        spec = self.spec()
        if Spec(micro, people) != spec:
            raise SourceError(TABLE_CHANGED)
        kept = np.flatnonzero((micro > 0) & (cells >= 0))
        return Summary(spec.people, points, np.searchsorted(spec.micro, micro[kept]), cells[kept], amounts[kept])

    def _by_cell(self, cell: str, cells: int, missing: int | None) -> tuple[IntArray, IntArray, IntArray]:
        """Level, people and cell of each group; −1: in no cell.

        With few levels and many cells, level and cell are one small integer, which the engine groups twice as fast; that takes the levels beforehand.
        """
        self.spec()
        raw, micro = self._raw
        nowhere = cells if missing is None else missing
        if micro.size > _FEW_LEVELS or cells < _MANY_CELLS:
            found = self._engine.fetch(sql.by_level_and_cell(self._engine.source, self._levels.expression, cell))
            group = np.ma.filled(found["cell"], nowhere).astype(np.int64)
            levels, people = self._levels.decode(found["level"], found["people"]), found["people"]
        else:
            found = self._engine.fetch(
                sql.by_code(self._engine.source, self._levels.expression, raw, cell, nowhere, cells)
            )
            group, codes = np.divmod(found["code"].astype(np.int64), micro.size + 1)
            if (codes == micro.size).any():  # a level that was not there before
                raise SourceError(TABLE_CHANGED)
            levels, people = micro[codes], found["people"]
        return levels, people, np.where(group == cells, -1, group)

    def _keep(self, raw: Any, micro: IntArray, people: IntArray) -> None:
        if self._user is not None:
            extra = int(self._engine.fetch(sql.repeated(self._engine.source, self._user))["extra"][0])
            if extra:
                raise SourceError(
                    f"{extra} rows are of a person who has another row, or of nobody ({self._user!r} is NULL). "
                    "One row is one person here: reduce the table to one row a person first."
                )
        missing = np.ma.getmaskarray(raw)
        self._raw = (
            [
                None if absent else x
                for x, absent in zip(np.ma.getdata(raw)[: _FEW_LEVELS + 1].tolist(), missing.tolist(), strict=False)
            ],
            micro,
        )
        self._spec = Spec(micro, people, self._levels.tiers)

    def __repr__(self) -> str:
        return f"<Table of {len(self._engine.columns)} columns; neighbors: {self.neighbors}>"


def table(
    source: Any,
    *,
    epsilon: str | float,
    tiers: Mapping[Any, float] | None = None,
    default: str | float | None = None,
    user: str | None = None,
    neighbors: str = "replace",
) -> Table:
    """Open a table of people who each have a level.

    Args:
        source: a path or glob (Parquet, CSV), a pandas, polars or Arrow table, a DuckDB relation, or a dict of arrays.
        epsilon: the column of levels: numbers, or names of `tiers`. A number: the level of everyone.
        tiers: {name: level}; 0 for opted out, inf for public.
        default: the tier or level of people who have none (NULL). Without it they are refused.
        user: the column that says who a row is of. It is checked that everyone has one row.
        neighbors: "replace": one person's value changes; who is in the table, and their levels, are public.

    Raises:
        SourceError: the source cannot be opened.
        SpecError: levels or tiers that cannot be used.

    >>> people = table({"age": [31, 45, 62], "level": [0.1, 1.0, float("inf")]}, epsilon="level")
    >>> people.spec().levels
    (0.1, 1.0, inf)
    """
    if neighbors not in NEIGHBORS:
        raise SourceError(
            f"neighbors={neighbors!r} is not offered. The mechanisms here prove 'replace': one person's value changes, "
            "and who is in the table is public."
        )
    engine = open_source(source)
    if not isinstance(epsilon, (str, Real)):
        raise SpecError(
            f"epsilon= is a {type(epsilon).__name__}. Name the column of levels, or give one number for everyone; "
            "an array of levels is a column of the table."
        )
    if isinstance(epsilon, str) and epsilon not in engine.columns:
        with suppress(ValueError):  # a number as text, where no column has that name
            epsilon = float(epsilon)
    for name in (None if isinstance(epsilon, Real) else epsilon, user):
        if name is not None and name not in engine.columns:
            raise SourceError(f"there is no column {name!r}: {did_you_mean(name, engine.columns)}")
    return Table(
        engine,
        _levels(engine.columns, epsilon, tiers, default),
        user,
        neighbors,
        epsilon if isinstance(epsilon, str) else None,
    )


def _levels(
    columns: Mapping[str, Kind], epsilon: str | float, tiers: Mapping[Any, float] | None, default: str | float | None
) -> _Levels:
    declared = None if tiers is None else read_tiers(tiers)
    fallback: int | None = None
    if default is not None:
        if isinstance(default, str):
            if declared is None or default not in declared:
                raise SpecError(
                    f"default={default!r} is not a declared tier. "
                    + (did_you_mean(default, declared) if declared else "Give tiers=, or a number.")
                )
            fallback = declared[default]
        elif isinstance(default, Real):
            fallback = int(to_micro(default))
        else:
            raise SpecError(
                f"default= is a {type(default).__name__}. Give one tier or one level, for the people who have none."
            )
    if not isinstance(epsilon, str):
        if declared is not None:
            raise SpecError(
                "epsilon= is one number for everyone, so tiers= has no meaning. Name the column of tiers, or leave tiers= out."
            )
        return _Levels(sql.double(to_float(int(to_micro(epsilon)))), None, None)
    kind, name = columns[epsilon], sql.quote(epsilon)
    if declared is not None:
        if kind == "other":
            raise SpecError(
                f"column {epsilon!r} is of a kind that cannot name tiers. Use a column of text or whole numbers."
            )
        return _Levels(f"({sql.letters(epsilon)})", declared, fallback)
    if kind == "untyped":  # text that is not a number, or too large for one, becomes NaN, which is refused
        number = sql.number(epsilon, kind)
        spelled = f"lower(trim({name})) IN ('inf', '+inf', 'infinity', '+infinity')"
        level = f"CASE WHEN isfinite({number}) OR {spelled} THEN {number} ELSE CAST('nan' AS DOUBLE) END"
        return _Levels(f"(CASE WHEN {name} IS NOT NULL THEN {level} END)", None, fallback)
    if kind != "number":
        raise SpecError(
            f"column {epsilon!r} holds no numbers. If it names tiers, declare them: tiers={{'strict': 0.1, 'public': inf}}."
        )
    return _Levels(f"CAST({name} AS DOUBLE)", None, fallback)
