"""One row a person, where people have many: what their rows come to, as whole numbers.

    mean, quantile, histogram of numbers   the mean of their values      sum        the sum of them
    min, max                               their smallest, largest       rows       how many rows they have
    count                                  whether any row meets it      histogram of categories: the first declared one that any row has
    regression                             the mean of each column of numbers, the first declared category of the others

Values are whole numbers of steps before they are added, so that the order of rows cannot matter; only then are they moved to the bounds. Rows whose value is
missing do not count; a person without any other is missing. A person's level is the strictest of their rows'. Rows of nobody are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor

from accord.engines import Kind
from accord.engines.sql import ALL, GROUP, LEVEL, PART, SQL, USER
from accord.errors import QueryError
from accord.statistics import Category, Count, Extreme, Histogram, Numeric, OnGrid, Query, Regression, Rows, Sum
from accord.statistics.encoding import Q

WIDEST = 2**50
"""A row's value lies at most so many steps from the lower bound."""
_FINER = 2**10
"""Rows of a sum are rounded to as small a part of a step."""
_EDGES = 2**32
"""Steps between the first and the last edge of a histogram."""
_SUM, _COUNT = "g_sum{}", "g_count{}"


def gathered(
    sql: SQL,
    source: str,
    user: str,
    level: str,
    query: Query | None,
    columns: Mapping[str, Kind],
    part: str = ALL,
    within: str | None = None,
    group: str | None = None,
) -> str:
    """The source with one row a person: who, their strictest level, their part, and what `cell` and `codes` read.

    Of somebody with rows in several parts it is the first; only rows that are of any part come to something. `within`: only people who have rows
    that meet this condition, and only these rows come to something; levels are those of all their rows. `group`: the same for many public groups
    at once, of which nobody is in two: which of them a row is of (NULL: none).
    """
    who = sql.identity(user, columns[user])
    inside = within if group is None else f"({group}) IS NOT NULL"
    part_of_row = part if inside is None else f"CASE WHEN {inside} THEN {part} END"
    kept = [f"{who} AS {USER}", f"MIN({level}) AS {LEVEL}"]
    if group is not None:
        kept.append(f"MIN({group}) AS {GROUP}")
    if part != ALL:
        kept.append(f"MIN({part_of_row}) AS {PART}")
    if query is not None:
        kept += _aggregates(sql, query, columns, "" if part_of_row == ALL else f"WHEN {part_of_row} IS NULL THEN NULL ")
    members = "" if inside is None else f" HAVING MAX(CASE WHEN {inside} THEN 1 ELSE 0 END) = 1"
    return f"(SELECT {', '.join(kept)} FROM {source} WHERE {_somebodys(sql, user, columns)} GROUP BY {who}{members})"


def nobodys(sql: SQL, source: str, user: str, columns: Mapping[str, Kind]) -> str:
    """How many rows are of nobody."""
    return f"SELECT COUNT(*) - COUNT(CASE WHEN {_somebodys(sql, user, columns)} THEN 1 END) AS extra FROM {source}"


def _somebodys(sql: SQL, user: str, columns: Mapping[str, Kind]) -> str:
    """Whether a row is of somebody: NULL is nobody's name, and NaN neither."""
    return sql.known(sql.number(user, "number")) if columns[user] == "number" else f"{sql.column(user)} IS NOT NULL"


def _aggregates(sql: SQL, query: Query, columns: Mapping[str, Kind], but: str) -> list[str]:
    """`but` is an arm of CASE that leaves out rows which are of no part."""
    match query:
        case Regression():
            return [
                x for k, f in enumerate((query.target, *query.features)) for x in _of_feature(sql, f, k, columns, but)
            ]
        case Rows():
            return [f"COUNT({f'CASE {but}ELSE 1 END' if but else '*'}) AS {_SUM.format(0)}"]
        case OnGrid():
            x = (
                sql.number(query.column, columns[query.column])
                if query.kind == "number"
                else sql.seconds(query.column, query.kind)
            )
            if isinstance(query, Sum):
                return _added(sql, _steps(sql, x, float(query.low), query.encoding.inverse * _finer(query), but), 0)
            steps = _steps(sql, x, float(query.low), query.encoding.inverse, but)
            return (
                [f"{query.statistic.upper()}({steps}) AS {_SUM.format(0)}"]
                if isinstance(query, Extreme)
                else _added(sql, steps, 0)
            )
        case Count(condition=None):
            return []
        case Count(condition=condition) if condition is not None:
            return [f"MAX(CASE {but}WHEN {sql.render(condition, columns)} THEN 1 ELSE 0 END) AS {_SUM.format(0)}"]
        case Histogram() if query.edges:
            x = sql.number(query.column, columns[query.column])
            return _added(sql, _steps(sql, x, float(query.edges[0]), _edge_factor(query), but), 0)
        case Histogram():
            return [_first(sql, query.column, query.categories, 0, columns, but)]
        case _:
            raise TypeError(f"no SQL for {type(query).__name__}")


def _of_feature(sql: SQL, feature: Numeric | Category, k: int, columns: Mapping[str, Kind], but: str) -> list[str]:
    if isinstance(feature, Category):
        return [_first(sql, feature.column, feature.values, k, columns, but)]
    x = sql.number(feature.column, columns[feature.column])
    return _added(sql, _steps(sql, x, float(feature.low), 2 * Q / (float(feature.high) - float(feature.low)), but), k)


def _added(sql: SQL, steps: str, k: int) -> list[str]:
    return [f"{sql.added(steps)} AS {_SUM.format(k)}", f"COUNT({steps}) AS {_COUNT.format(k)}"]


def _first(sql: SQL, column: str, values: tuple[object, ...], k: int, columns: Mapping[str, Kind], but: str) -> str:
    arms = " ".join(f"WHEN {sql.equal(column, columns[column], value)} THEN {j}" for j, value in enumerate(values))
    return f"MIN(CASE {but}{arms} END) AS {_SUM.format(k)}"


def _steps(sql: SQL, x: str, low: float, factor: float, but: str) -> str:
    """A row's value as a whole number of steps from `low`; NULL where it is missing."""
    least, most = (sql.double(low + sign * WIDEST / factor) for sign in (-1, 1))
    return (
        f"CASE {but}WHEN {x} >= {least} AND {x} < {most} AND {sql.known(x)} THEN {sql.whole(sql.steps(x, low, factor))} "
        f"WHEN {x} >= {most} AND {sql.known(x)} THEN {WIDEST} WHEN {x} < {least} AND {sql.known(x)} THEN {-WIDEST} END"
    )


def _finer(query: Sum) -> int:
    """Into how many parts of a step the rows of a sum are rounded: into one where the bounds are so many steps from 0 that there is no room for more."""
    return _FINER if max(abs(query.low), abs(query.high)) / query.step < WIDEST // (4 * _FINER) else 1


def _edge_factor(query: Histogram) -> float:
    width = query.edges[-1] - query.edges[0]
    if not Fraction(1, 10**200) < width < 10**200:
        raise QueryError(
            "the edges are too near to each other, or too far apart, to take a person's mean between them. Scale the column."
        )
    return _EDGES / float(width)


def cell(sql: SQL, query: Query, read: str) -> str:
    """The integer of a person, as `sql.cell` has it for rows."""
    total, rows = _SUM.format(0), f"CAST({_COUNT.format(0)} AS {sql.WIDE})"
    match query:
        case Rows():
            return f"CASE WHEN NOT {read} THEN 0 WHEN {total} < {query.cells} THEN {total} ELSE {query.cells} END"
        case Sum():  # Σx − low = Σ(x − low) + (rows − 1)·low
            finer = _finer(query)
            origin = floor(query.low / query.step * finer + Fraction(1, 2))
            there = f"{_COUNT.format(0)} > 0 AND {read}"
            parts = str(finer) if query.cells * finer < 2**31 else f"CAST({finer} AS {sql.WIDE})"
            return _moved(sql, f"({total} + ({rows} - 1) * ({origin}))", parts, there, query.cells, query.missing_cell)
        case Extreme():
            return _moved(sql, total, "1", f"{total} IS NOT NULL AND {read}", query.cells, query.missing_cell)
        case OnGrid():
            return _moved(sql, total, rows, f"{_COUNT.format(0)} > 0 AND {read}", query.cells, query.missing_cell)
        case Count(condition=None):
            return "1"
        case Count():
            return f"CASE WHEN {read} THEN {total} ELSE 0 END"
        case Histogram() if query.edges:
            low, factor = float(query.edges[0]), _edge_factor(query)
            places = (floor((float(edge) - low) * factor + 0.5) for edge in query.edges[1:-1])
            arms = " ".join(f"WHEN {total} < {place} * {rows} THEN {k}" for k, place in enumerate(places))
            nowhere = "NULL" if query.missing is None else query.missing
            return f"CASE WHEN NOT {read} THEN NULL WHEN {_COUNT.format(0)} = 0 THEN {nowhere} {arms} ELSE {len(query.edges) - 2} END"
        case Histogram():
            nowhere = "NULL" if query.missing is None else query.missing
            return f"CASE WHEN {read} THEN COALESCE({total}, {nowhere}) ELSE {nowhere} END"
        case _:
            raise TypeError(f"no SQL for {type(query).__name__}")


def codes(sql: SQL, query: Regression) -> list[list[str]]:
    """A person's codes, as `sql.codes` has them for rows: of the target, then of each feature."""
    return [_codes(sql, feature, k) for k, feature in enumerate((query.target, *query.features))]


def _codes(sql: SQL, feature: Numeric | Category, k: int) -> list[str]:
    total, rows = _SUM.format(k), f"CAST({_COUNT.format(k)} AS {sql.WIDE})"
    if isinstance(feature, Category):
        which = f"COALESCE({total}, 0)"
        return [
            f"CAST(CASE WHEN {which} = {j} THEN {Q} ELSE {-Q} END AS INTEGER)" for j in range(1, len(feature.values))
        ]
    return [f"CAST({_moved(sql, total, rows, f'{_COUNT.format(k)} > 0', 2 * Q, Q)} - {Q} AS INTEGER)"]


def _moved(sql: SQL, total: str, parts: str, there: str, span: int, missing: int) -> str:
    """total/parts, rounded and moved to 0 … span: whole numbers all the way, divided only where they are positive."""
    return (
        f"CASE WHEN NOT ({there}) THEN {missing} WHEN {total} <= 0 THEN 0 WHEN {total} >= {span} * {parts} THEN {span} "
        f"ELSE CAST({sql.divided(f'2 * {total} + {parts}', f'2 * {parts}')} AS BIGINT) END"
    )
