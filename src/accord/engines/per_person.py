"""One row a person, where people have many: what their rows come to, as whole numbers.

    Grid        "mean", "sum", "min" or "max" of their values, or how many "rows" they have: `Grid.per_person`
    Indicator   whether any row meets the condition; rows that do not decide it do not count
    OneOf       the cell of the "mean", "sum", "min" or "max" of their values; the most frequent of categories
    Codes       the mean of each column of numbers, the most frequent category of the others

Of somebody with rows of several keys, those of the most frequent one; or of several, a row for each of them
(categories.py).

Values are whole numbers of steps before they are added, so that the order of rows cannot matter; only then
are they moved to the bounds. Rows whose value is missing do not count; a person without any other is missing.
A person's level is the strictest of their rows'. Rows of nobody are left out.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm
from typing import Any

from accord.engines import categories, keys, shapes, where_sql
from accord.engines.categories import Categories
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.engines.sql_names import (
    CATEGORY,
    COUNT,
    FIRST,
    GROUP,
    JOINED_CATEGORY,
    LEVEL,
    MEMBER,
    ONLY_PART,
    PART,
    RANK,
    ROWS,
    SOME_LEVEL,
    SUM,
    USER,
)
from accord.errors import QueryError
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf, Q

MOST_STEPS = 2**50
"""A row's value lies at most so many steps from the lower bound."""
_PARTS_PER_STEP = 2**10
"""Rows of a sum are rounded to as small a part of a step."""
_EDGE_STEPS = 2**32
"""Steps between the first and the last edge of a histogram."""


def aggregated(
    dialect: Dialect,
    source: str,
    user: str,
    level: str,
    encoding: Encoding | None,
    columns: Columns,
    part: str = ONLY_PART,
    condition: str | None = None,
    group: str | None = None,
    part_keys: tuple[Any, ...] = (),
    at_most: int = 1,
) -> str:
    """The source with one row a person.

    It has who they are, their strictest level, their part, and what `cell` and `codes` read. Only rows that
    are of any part come to something.

    Args:
        part_keys: what the parts are, where there are several.
        at_most: in how many parts, or categories of a histogram, one person may be. If it is more than one,
            there is a row for each, one of which has `FIRST` = 1; the others have 0.
        condition: only people who have rows that meet it, and only these rows come to something; levels are
            those of all their rows.
        group: the same for many public groups at once, of which nobody is in two: which of them a row is of
            (NULL: none).
    """
    who = dialect.identity(user, columns[user])
    counts = condition if group is None else f"({group}) IS NOT NULL"
    part_of_row = part if counts is None else f"CASE WHEN {counts} THEN {part} END"
    no_part = "" if part_of_row == ONLY_PART else f"WHEN {part_of_row} IS NULL THEN NULL "
    features = category_columns(encoding)
    places = []
    for k, (column, values) in features.items():
        name = JOINED_CATEGORY.format(k)
        source, place = keys.with_place(dialect, source, column, columns[column], values, name)
        places.append(f"CASE {no_part}ELSE {place} END" if no_part else place)
    is_plain = not part_keys and not features
    selected = [f"{who} AS {USER}", f"MIN({level}) AS {LEVEL if is_plain else SOME_LEVEL}"]
    if group is not None:
        selected.append(f"MIN({group}) AS {GROUP}")
    if part_keys:
        selected.append(f"{part_of_row} AS {PART}")
    elif part != ONLY_PART:
        selected.append(f"MIN({part_of_row}) AS {PART}")
    if encoding is not None:
        selected += _aggregates(dialect, encoding, columns, no_part)
    rows = f"{source} WHERE {has_user(dialect, user, columns)}"
    is_member = f"MAX(CASE WHEN {counts} THEN 1 ELSE 0 END)"
    if is_plain:
        members = "" if counts is None else f" HAVING {is_member} = 1"
        return f"(SELECT {', '.join(selected)} FROM {rows} GROUP BY {who}{members})"
    selected += [f"{place} AS {CATEGORY.format(k)}" for k, place in zip(features, places, strict=True)]
    selected += [f"COUNT(*) AS {ROWS}", f"{'1' if counts is None else is_member} AS {MEMBER}"]
    alike = ", ".join((who, *([part_of_row] if part_keys else []), *places))
    counted = f"(SELECT {', '.join(selected)} FROM {rows} GROUP BY {alike})"
    is_single = isinstance(encoding, OneOf) and not part_keys
    if features and not is_single:
        counted = _one_category_each(dialect, counted, user, columns, encoding, part, bool(part_keys), group)
    if not part_keys and not is_single:
        return f"(SELECT * FROM {counted} AS people WHERE {MEMBER} = 1)"
    chosen = Categories(PART, part_keys, RANK.format(0))
    if is_single:
        ((k, (_, values)),) = features.items()
        chosen = Categories(CATEGORY.format(k), values, RANK.format(0))
    return _most_frequent(dialect, counted, user, columns, chosen, at_most)


def _one_category_each(
    dialect: Dialect,
    counted: str,
    user: str,
    columns: Columns,
    encoding: Encoding | None,
    part: str,
    has_parts: bool,
    group: str | None,
) -> str:
    """Counted rows as one for each person, or for each of their parts, with the most frequent categories."""
    partition = [USER, *([PART] if has_parts else [])]
    features = category_columns(encoding)
    ranks = [Categories(CATEGORY.format(k), values, RANK.format(k)) for k, (_, values) in features.items()]
    ranked = categories.ranked(dialect, counted, user, columns[user], partition, ranks)
    level = SOME_LEVEL if has_parts else LEVEL
    selected = [*partition, f"MIN({SOME_LEVEL}) AS {level}"]
    selected += [f"SUM({ROWS}) AS {ROWS}", f"MAX({MEMBER}) AS {MEMBER}"]
    if group is not None:
        selected.append(f"MIN({GROUP}) AS {GROUP}")
    if part != ONLY_PART and not has_parts:
        selected.append(f"MIN({PART}) AS {PART}")
    selected += [f"MAX(CASE WHEN {one.rank} = 1 THEN {one.place} END) AS {one.place}" for one in ranks]
    if isinstance(encoding, Codes):
        for k, feature in enumerate((encoding.target, *encoding.features)):
            if isinstance(feature, Numeric):
                total, rows = SUM.format(k), COUNT.format(k)
                selected.append(f"SUM({dialect.as_wide(total)}) AS {total}")
                selected.append(f"CAST(SUM({rows}) AS BIGINT) AS {rows}")
    return f"(SELECT {', '.join(selected)} FROM {ranked} AS ranked GROUP BY {', '.join(partition)})"


def _most_frequent(
    dialect: Dialect, counted: str, user: str, columns: Columns, chosen: Categories, at_most: int
) -> str:
    """Counted rows of those of a person's parts, or categories, that they are in; one row at least.

    Their level is that of all their rows.
    """
    strictest = f"MIN({SOME_LEVEL}) OVER (PARTITION BY {USER}) AS {LEVEL}"
    ranked = categories.ranked(dialect, counted, user, columns[user], [USER], [chosen], strictest)
    first = f"CASE WHEN {chosen.rank} = 1 THEN 1 ELSE 0 END AS {FIRST}"
    is_chosen = f"{chosen.rank} <= {at_most} AND ({chosen.rank} = 1 OR {chosen.place} IS NOT NULL)"
    return f"(SELECT ranked.*, {first} FROM {ranked} AS ranked WHERE {is_chosen} AND {MEMBER} = 1)"


def category_columns(encoding: Encoding | None) -> dict[int, tuple[str, tuple[Any, ...]]]:
    """The columns of declared categories, with these, by the place of the column."""
    match encoding:
        case OneOf(categories=values) if values:
            return {0: (encoding.column, values)}
        case Codes():
            features = enumerate((encoding.target, *encoding.features))
            return {k: (f.column, f.values) for k, f in features if isinstance(f, Category)}
        case _:
            return {}


def rows_of_nobody(dialect: Dialect, source: str, user: str, columns: Columns) -> str:
    """How many rows are of nobody."""
    with_user = f"COUNT(CASE WHEN {has_user(dialect, user, columns)} THEN 1 END)"
    return f"SELECT COUNT(*) - {with_user} AS extra FROM {source}"


def undeclared_tiers(
    dialect: Dialect, source: str, user: str, columns: Columns, strictness: str, tier: str
) -> str:
    """How many people have a row with which tier that is not declared; `strictness` says which is none."""
    who = dialect.identity(user, columns[user])
    is_undeclared = f"{has_user(dialect, user, columns)} AND {strictness} = -1"
    named = f"SELECT DISTINCT {who} AS {USER}, {tier} AS level FROM {source} WHERE {is_undeclared}"
    return f"SELECT level, COUNT(*) AS people FROM ({named}) AS named GROUP BY level"


def people_in_several_parts(dialect: Dialect, source: str, user: str, kind: Kind, part: str) -> str:
    """How many people have rows in several parts."""
    who = dialect.identity(user, kind)
    return (
        f"SELECT COUNT(*) AS people FROM (SELECT {who} FROM {source} GROUP BY {who} "
        f"HAVING MIN({part}) <> MAX({part})) AS several"
    )


def has_user(dialect: Dialect, user: str, columns: Columns) -> str:
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
            return [sql for k, f in features for sql in _feature_aggregates(dialect, f, k, columns, no_part)]
        case Grid():
            return _grid_aggregates(dialect, encoding, columns, no_part)
        case Indicator(None):
            return []
        case Indicator(condition) if condition is not None:
            meets = where_sql.render(dialect, condition, columns)
            otherwise = "ELSE 0" if encoding.missing_cell == 0 else f"WHEN NOT {meets} THEN 0"
            return [f"MAX(CASE {no_part}WHEN {meets} THEN 1 {otherwise} END) AS {SUM.format(0)}"]
        case OneOf() if encoding.edges:
            x = shapes.value(dialect, encoding, columns)
            steps = _steps(dialect, x, float(encoding.edges[0]), _edge_factor(encoding), no_part)
            if encoding.per_person in ("min", "max"):
                return [f"{encoding.per_person.upper()}({steps}) AS {SUM.format(0)}"]
            return _sum_and_count(dialect, steps, 0)
        case OneOf():
            return []  # which category it is, is chosen afterwards
        case _:
            raise TypeError(f"no SQL for {type(encoding).__name__}")


def _grid_aggregates(dialect: Dialect, grid: Grid, columns: Columns, no_part: str) -> list[str]:
    if grid.per_person == "rows":
        counted = f"CASE {no_part}ELSE 1 END" if no_part else "*"
        return [f"COUNT({counted}) AS {SUM.format(0)}"]
    x, low = shapes.value(dialect, grid, columns), float(grid.low)
    if grid.per_person == "sum":
        factor = grid.inverse * _parts_per_step(grid)
        return _sum_and_count(dialect, _steps(dialect, x, low, factor, no_part), 0)
    steps = _steps(dialect, x, low, grid.inverse, no_part)
    if grid.per_person in ("min", "max"):
        return [f"{grid.per_person.upper()}({steps}) AS {SUM.format(0)}"]
    return _sum_and_count(dialect, steps, 0)


def _feature_aggregates(
    dialect: Dialect, feature: Numeric | Category, k: int, columns: Columns, no_part: str
) -> list[str]:
    if isinstance(feature, Category):
        return []  # as for OneOf
    x = dialect.number(feature.column, columns[feature.column])
    factor = 2 * Q / (float(feature.high) - float(feature.low))
    return _sum_and_count(dialect, _steps(dialect, x, float(feature.low), factor, no_part), k)


def _sum_and_count(dialect: Dialect, steps: str, k: int) -> list[str]:
    return [f"{dialect.sum(steps)} AS {SUM.format(k)}", f"COUNT({steps}) AS {COUNT.format(k)}"]


def _steps(dialect: Dialect, x: str, low: float, factor: float, no_part: str) -> str:
    """A row's value as a whole number of steps from `low`; NULL where it is missing."""
    least, most = (dialect.double(low + sign * MOST_STEPS / factor) for sign in (-1, 1))
    is_number, steps = dialect.is_finite(x), dialect.whole(dialect.steps(x, low, factor))
    return (
        f"CASE {no_part}WHEN {x} >= {least} AND {x} < {most} AND {is_number} THEN {steps} "
        f"WHEN {x} >= {most} AND {is_number} THEN {MOST_STEPS} "
        f"WHEN {x} < {least} AND {is_number} THEN {-MOST_STEPS} END"
    )


def _parts_per_step(grid: Grid) -> int:
    """Into how many parts of a step the rows of a sum are rounded.

    Into one where the bounds are so many steps from 0 that there is no room for more.
    """
    farthest = max(abs(grid.low), abs(grid.high)) / grid.step
    return _PARTS_PER_STEP if farthest < MOST_STEPS // (4 * _PARTS_PER_STEP) else 1


def _edge_factor(encoding: OneOf) -> float:
    """How many steps a unit has, in which rows are added: a whole number, if the edges leave room for it.

    So sums and means of whole numbers, or of decimals as short as the edges', are exact, also at an edge.
    """
    width = encoding.edges[-1] - encoding.edges[0]
    if not Fraction(1, 10**200) < width < 10**200:
        raise QueryError(
            "the edges are too near to each other, or too far apart, to take a person's mean between them. "
            "Scale the column."
        )
    finest = lcm(*(edge.denominator for edge in encoding.edges))
    room = int(_EDGE_STEPS / (width * finest))
    return float(finest << room.bit_length() - 1) if room else _EDGE_STEPS / float(width)


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
            return f"CASE WHEN {is_read} THEN {total} ELSE {shapes.null_or(encoding.missing_cell)} END"
        case OneOf() if encoding.edges:
            low, factor, rows = float(encoding.edges[0]), _edge_factor(encoding), dialect.as_wide(counted)
            steps = (floor((float(edge) - low) * factor + 0.5) for edge in encoding.edges[1:-1])
            is_missing = f"{counted} = 0"
            match encoding.per_person:
                case "min" | "max":
                    rows, is_missing = "1", f"{total} IS NULL"
                case "sum":  # Σx − low = Σ(x − low) + (rows − 1)·low
                    origin = floor(encoding.edges[0] * Fraction(factor) + Fraction(1, 2))
                    total, rows = f"({total} + ({rows} - 1) * ({dialect.wide(origin)}))", "1"
            arms = " ".join(f"WHEN {total} < {edge} * {rows} THEN {k}" for k, edge in enumerate(steps))
            missing, last = shapes.null_or(encoding.missing), len(encoding.edges) - 2
            no_value = f"WHEN NOT {is_read} THEN NULL WHEN {is_missing} THEN {missing}"
            return f"CASE {no_value} {arms} ELSE {last} END"
        case OneOf():
            missing, chosen = shapes.null_or(encoding.missing), CATEGORY.format(0)
            return f"CASE WHEN {is_read} THEN COALESCE({chosen}, {missing}) ELSE {missing} END"
        case _:
            raise TypeError(f"no SQL for {type(encoding).__name__}")


def _grid_cell(dialect: Dialect, grid: Grid, is_read: str) -> str:
    total, counted = SUM.format(0), COUNT.format(0)
    rows, has_value = dialect.as_wide(counted), f"{counted} > 0 AND {is_read}"
    missing = shapes.null_or(grid.missing_cell)
    match grid.per_person:
        case "rows":
            most = grid.cells
            return f"CASE WHEN NOT {is_read} THEN 0 WHEN {total} < {most} THEN {total} ELSE {most} END"
        case "sum":  # Σx − low = Σ(x − low) + (rows − 1)·low
            parts = _parts_per_step(grid)
            origin = floor(grid.low / grid.step * parts + Fraction(1, 2))
            divisor = str(parts) if grid.cells * parts < 2**31 else dialect.as_wide(str(parts))
            total = f"({total} + ({rows} - 1) * ({origin}))"
            return _rounded(dialect, total, divisor, has_value, grid.cells, missing)
        case "min" | "max":
            has_value = f"{total} IS NOT NULL AND {is_read}"
            return _rounded(dialect, total, "1", has_value, grid.cells, missing)
        case "mean":
            return _rounded(dialect, total, rows, has_value, grid.cells, missing)


def codes(dialect: Dialect, encoding: Codes) -> list[list[str]]:
    """A person's codes, as `shapes.codes` has them for rows: of the target, then of each feature."""
    features = enumerate((encoding.target, *encoding.features))
    return [_codes(dialect, feature, k, encoding.excludes_missing) for k, feature in features]


def _codes(dialect: Dialect, feature: Numeric | Category, k: int, excludes_missing: bool) -> list[str]:
    total, counted = SUM.format(k), COUNT.format(k)
    if isinstance(feature, Category):
        chosen = CATEGORY.format(k)
        which = chosen if excludes_missing else f"COALESCE({chosen}, 0)"
        return shapes.dummies(which, feature, excludes_missing)
    missing = shapes.null_or(None if excludes_missing else Q)
    steps = _rounded(dialect, total, dialect.as_wide(counted), f"{counted} > 0", 2 * Q, missing)
    return [f"CAST({steps} - {Q} AS INTEGER)"]


def _rounded(dialect: Dialect, total: str, divisor: str, has_value: str, span: int, missing: str) -> str:
    """total/divisor, rounded and moved to 0 … span.

    These are whole numbers all the way, divided only where they are positive.
    """
    quotient = dialect.quotient(f"2 * {total} + {divisor}", f"2 * {divisor}")
    return (
        f"CASE WHEN NOT ({has_value}) THEN {missing} WHEN {total} <= 0 THEN 0 "
        f"WHEN {total} >= {span} * {divisor} THEN {span} ELSE CAST({quotient} AS BIGINT) END"
    )
