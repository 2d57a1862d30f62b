"""One row a person, where people have many: what their rows come to, as whole numbers.

    Grid        "mean", "sum", "min" or "max" of their values, or how many "rows" they have: `Grid.per_person`
    Indicator   whether any row meets the condition
    OneOf       the cell of the mean of their values; of categories, the first declared one that any row has
    Codes       the mean of each column of numbers, the first declared category of the others

Values are whole numbers of steps before they are added, so that the order of rows cannot matter; only then
are they moved to the bounds. Rows whose value is missing do not count; a person without any other is missing.
A person's level is the strictest of their rows'. Rows of nobody are left out.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from accord.engines import conditions, shapes
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.engines.names import ALL, COUNT, GROUP, LEVEL, PART, SUM, USER
from accord.errors import QueryError
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf, Q

MOST_STEPS = 2**50
"""A row's value lies at most so many steps from the lower bound."""
_FINER = 2**10
"""Rows of a sum are rounded to as small a part of a step."""
_EDGES = 2**32
"""Steps between the first and the last edge of a histogram."""


def gathered(
    dialect: Dialect,
    source: str,
    user: str,
    level: str,
    encoding: Encoding | None,
    columns: Columns,
    part: str = ALL,
    condition: str | None = None,
    group: str | None = None,
) -> str:
    """The source with one row a person.

    It tells who they are, their strictest level, their part, and what `cell` and `codes` read. Of somebody
    with rows in several parts it is the first; only rows that are of any part come to something.

    Args:
        condition: only people who have rows that meet it, and only these rows come to something; levels are
            those of all their rows.
        group: the same for many public groups at once, of which nobody is in two: which of them a row is of
            (NULL: none).
    """
    who = dialect.identity(user, columns[user])
    counts = condition if group is None else f"({group}) IS NOT NULL"
    part_of_row = part if counts is None else f"CASE WHEN {counts} THEN {part} END"
    selected = [f"{who} AS {USER}", f"MIN({level}) AS {LEVEL}"]
    if group is not None:
        selected.append(f"MIN({group}) AS {GROUP}")
    if part != ALL:
        selected.append(f"MIN({part_of_row}) AS {PART}")
    if encoding is not None:
        no_part = "" if part_of_row == ALL else f"WHEN {part_of_row} IS NULL THEN NULL "
        selected += _aggregates(dialect, encoding, columns, no_part)
    members = "" if counts is None else f" HAVING MAX(CASE WHEN {counts} THEN 1 ELSE 0 END) = 1"
    of_somebody = _is_somebodys(dialect, user, columns)
    return f"(SELECT {', '.join(selected)} FROM {source} WHERE {of_somebody} GROUP BY {who}{members})"


def rows_of_nobody(dialect: Dialect, source: str, user: str, columns: Columns) -> str:
    """How many rows are of nobody."""
    of_somebody = f"COUNT(CASE WHEN {_is_somebodys(dialect, user, columns)} THEN 1 END)"
    return f"SELECT COUNT(*) - {of_somebody} AS extra FROM {source}"


def people_in_several_parts(dialect: Dialect, source: str, user: str, kind: Kind, part: str) -> str:
    """How many people have rows in several parts."""
    who = dialect.identity(user, kind)
    return (
        f"SELECT COUNT(*) AS people FROM (SELECT {who} FROM {source} GROUP BY {who} "
        f"HAVING MIN({part}) <> MAX({part})) AS several"
    )


def _is_somebodys(dialect: Dialect, user: str, columns: Columns) -> str:
    """Whether a row is of somebody: NULL is nobody's name, and NaN neither."""
    if columns[user] == "number":
        return dialect.is_finite(dialect.number(user, "number"))
    return f"{dialect.column(user)} IS NOT NULL"


# ---- what rows come to -------------------------------------------------------------------------------------


def _aggregates(dialect: Dialect, encoding: Encoding, columns: Columns, no_part: str) -> list[str]:
    """`no_part` is an arm of CASE that leaves out rows which are of no part."""
    match encoding:
        case Codes():
            features = enumerate((encoding.target, *encoding.features))
            return [sql for k, f in features for sql in _of_feature(dialect, f, k, columns, no_part)]
        case Grid():
            return _of_grid(dialect, encoding, columns, no_part)
        case Indicator(None):
            return []
        case Indicator(condition) if condition is not None:
            meets = conditions.render(dialect, condition, columns)
            return [f"MAX(CASE {no_part}WHEN {meets} THEN 1 ELSE 0 END) AS {SUM.format(0)}"]
        case OneOf() if encoding.edges:
            x = dialect.number(encoding.column, columns[encoding.column])
            steps = _steps(dialect, x, float(encoding.edges[0]), _edge_factor(encoding), no_part)
            return _added(dialect, steps, 0)
        case OneOf():
            return [_first(dialect, encoding.column, encoding.categories, 0, columns, no_part)]
        case _:
            raise TypeError(f"no SQL for {type(encoding).__name__}")


def _of_grid(dialect: Dialect, grid: Grid, columns: Columns, no_part: str) -> list[str]:
    if grid.per_person == "rows":
        counted = f"CASE {no_part}ELSE 1 END" if no_part else "*"
        return [f"COUNT({counted}) AS {SUM.format(0)}"]
    x, low = shapes.value(dialect, grid, columns), float(grid.low)
    if grid.per_person == "sum":
        return _added(dialect, _steps(dialect, x, low, grid.inverse * _finer(grid), no_part), 0)
    steps = _steps(dialect, x, low, grid.inverse, no_part)
    if grid.per_person in ("min", "max"):
        return [f"{grid.per_person.upper()}({steps}) AS {SUM.format(0)}"]
    return _added(dialect, steps, 0)


def _of_feature(
    dialect: Dialect, feature: Numeric | Category, k: int, columns: Columns, no_part: str
) -> list[str]:
    if isinstance(feature, Category):
        return [_first(dialect, feature.column, feature.values, k, columns, no_part)]
    x = dialect.number(feature.column, columns[feature.column])
    factor = 2 * Q / (float(feature.high) - float(feature.low))
    return _added(dialect, _steps(dialect, x, float(feature.low), factor, no_part), k)


def _added(dialect: Dialect, steps: str, k: int) -> list[str]:
    return [f"{dialect.sum(steps)} AS {SUM.format(k)}", f"COUNT({steps}) AS {COUNT.format(k)}"]


def _first(
    dialect: Dialect, column: str, values: tuple[object, ...], k: int, columns: Columns, no_part: str
) -> str:
    arms = conditions.first_equal(dialect, column, columns[column], values)
    return f"MIN(CASE {no_part}{arms} END) AS {SUM.format(k)}"


def _steps(dialect: Dialect, x: str, low: float, factor: float, no_part: str) -> str:
    """A row's value as a whole number of steps from `low`; NULL where it is missing."""
    least, most = (dialect.double(low + sign * MOST_STEPS / factor) for sign in (-1, 1))
    known, steps = dialect.is_finite(x), dialect.whole(dialect.steps(x, low, factor))
    return (
        f"CASE {no_part}WHEN {x} >= {least} AND {x} < {most} AND {known} THEN {steps} "
        f"WHEN {x} >= {most} AND {known} THEN {MOST_STEPS} WHEN {x} < {least} AND {known} THEN {-MOST_STEPS} "
        "END"
    )


def _finer(grid: Grid) -> int:
    """Into how many parts of a step the rows of a sum are rounded.

    Into one where the bounds are so many steps from 0 that there is no room for more.
    """
    return _FINER if max(abs(grid.low), abs(grid.high)) / grid.step < MOST_STEPS // (4 * _FINER) else 1


def _edge_factor(encoding: OneOf) -> float:
    width = encoding.edges[-1] - encoding.edges[0]
    if not Fraction(1, 10**200) < width < 10**200:
        raise QueryError(
            "the edges are too near to each other, or too far apart, to take a person's mean between them. "
            "Scale the column."
        )
    return _EDGES / float(width)


# ---- the integers of a person ------------------------------------------------------------------------------


def cell(dialect: Dialect, encoding: Encoding, is_read: str) -> str:
    """The integer of a person, as `shapes.cell` has it for rows."""
    total, counted = SUM.format(0), COUNT.format(0)
    match encoding:
        case Grid():
            return _grid_cell(dialect, encoding, is_read)
        case Indicator(None):
            return "1"
        case Indicator():
            return f"CASE WHEN {is_read} THEN {total} ELSE 0 END"
        case OneOf() if encoding.edges:
            low, factor, rows = float(encoding.edges[0]), _edge_factor(encoding), dialect.as_wide(counted)
            places = (floor((float(edge) - low) * factor + 0.5) for edge in encoding.edges[1:-1])
            arms = " ".join(f"WHEN {total} < {place} * {rows} THEN {k}" for k, place in enumerate(places))
            missing, last = shapes.null_or(encoding.missing), len(encoding.edges) - 2
            return (
                f"CASE WHEN NOT {is_read} THEN NULL WHEN {counted} = 0 THEN {missing} {arms} ELSE {last} END"
            )
        case OneOf():
            missing = shapes.null_or(encoding.missing)
            return f"CASE WHEN {is_read} THEN COALESCE({total}, {missing}) ELSE {missing} END"
        case _:
            raise TypeError(f"no SQL for {type(encoding).__name__}")


def _grid_cell(dialect: Dialect, grid: Grid, is_read: str) -> str:
    total, counted = SUM.format(0), COUNT.format(0)
    rows, has_value = dialect.as_wide(counted), f"{counted} > 0 AND {is_read}"
    match grid.per_person:
        case "rows":
            most = grid.cells
            return f"CASE WHEN NOT {is_read} THEN 0 WHEN {total} < {most} THEN {total} ELSE {most} END"
        case "sum":  # Σx − low = Σ(x − low) + (rows − 1)·low
            finer = _finer(grid)
            origin = floor(grid.low / grid.step * finer + Fraction(1, 2))
            parts = str(finer) if grid.cells * finer < 2**31 else dialect.as_wide(str(finer))
            total = f"({total} + ({rows} - 1) * ({origin}))"
            return _rounded(dialect, total, parts, has_value, grid.cells, grid.missing_cell)
        case "min" | "max":
            has_value = f"{total} IS NOT NULL AND {is_read}"
            return _rounded(dialect, total, "1", has_value, grid.cells, grid.missing_cell)
        case "mean":
            return _rounded(dialect, total, rows, has_value, grid.cells, grid.missing_cell)


def codes(dialect: Dialect, encoding: Codes) -> list[list[str]]:
    """A person's codes, as `shapes.codes` has them for rows: of the target, then of each feature."""
    return [_codes(dialect, feature, k) for k, feature in enumerate((encoding.target, *encoding.features))]


def _codes(dialect: Dialect, feature: Numeric | Category, k: int) -> list[str]:
    total, counted = SUM.format(k), COUNT.format(k)
    if isinstance(feature, Category):
        return shapes.dummies(f"COALESCE({total}, 0)", feature)
    steps = _rounded(dialect, total, dialect.as_wide(counted), f"{counted} > 0", 2 * Q, Q)
    return [f"CAST({steps} - {Q} AS INTEGER)"]


def _rounded(dialect: Dialect, total: str, parts: str, has_value: str, span: int, missing: int) -> str:
    """total/parts, rounded and moved to 0 … span.

    These are whole numbers all the way, divided only where they are positive.
    """
    quotient = dialect.quotient(f"2 * {total} + {parts}", f"2 * {parts}")
    return (
        f"CASE WHEN NOT ({has_value}) THEN {missing} WHEN {total} <= 0 THEN 0 "
        f"WHEN {total} >= {span} * {parts} THEN {span} ELSE CAST({quotient} AS BIGINT) END"
    )
