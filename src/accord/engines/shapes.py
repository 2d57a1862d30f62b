"""The SQL of each shape of a Summary, and the integer of a row: written once, over a Dialect.

    levels              people by level                     no value is read
    by_level            people and sums by level            sums of cells, and of their squares
    by_level_and_cell   people by level and cell
    by_code             the same, where level and cell are one small integer
    products            people and sums of products by level, for regressions

Each of them may be told apart by parts as well (keys.py), and reads rows or people (per_person.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from accord.engines import where_sql
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns
from accord.engines.sql_names import ONLY_PART, ROW_LEVEL, SHORT_PLACE
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf, Q

_PRODUCTS_OF_64_BITS = 2**31
"""Cells up to here have squares that fit into 64 bits."""


class ShortPart(NamedTuple):
    """A part that is told by short columns: engines group by these faster than by a number made of them."""

    columns: tuple[str, ...]
    """Of a row, as SQL."""
    number: str
    """The part, as SQL, where the columns have the names of SHORT_PLACE."""


def levels(source: str, level: str, part: str | ShortPart = ONLY_PART) -> str:
    """People for each raw level and part. No value is read."""
    return _by_level(source, level, part)


def by_level(
    dialect: Dialect,
    source: str,
    level: str,
    cell: str,
    missing: int | None,
    part: str | ShortPart = ONLY_PART,
) -> str:
    """People, how many of them have a cell, and the sum of these, `total`, for each raw level and part.

    A NULL cell counts as `missing`: NaN can come through, see `Dialect.is_finite`. None: as no cell.
    """
    sums = {"members": _members(missing), "total": _total(dialect, missing)}
    return _by_level(source, level, part, [f"{cell} AS cell"], sums)


def by_level_with_squares(
    dialect: Dialect,
    source: str,
    level: str,
    cell: str,
    missing: int | None,
    cells: int,
    part: str | ShortPart = ONLY_PART,
) -> str:
    """`by_level` with the sum of the squared cells as well, `squares`, for cells up to `cells`."""
    if cells <= _PRODUCTS_OF_64_BITS:
        squared = dialect.sum("CAST(cell AS BIGINT) * CAST(cell AS BIGINT)")
    else:
        cell_of_38_digits = dialect.as_wide("cell")
        squared = f"SUM({dialect.as_wide(f'{cell_of_38_digits} * {cell_of_38_digits}')})"
    squares = _with_missing(squared, None if missing is None else dialect.wide(missing**2))
    sums = {"members": _members(missing), "total": _total(dialect, missing), "squares": squares}
    return _by_level(source, level, part, [f"{cell} AS cell"], sums)


def _members(missing: int | None) -> str:
    return "COUNT(*)" if missing is not None else "COUNT(cell)"


def _total(dialect: Dialect, missing: int | None) -> str:
    return _with_missing(dialect.sum("cell"), None if missing is None else str(missing))


def _with_missing(summed: str, missing: str | None) -> str:
    counted = "" if missing is None else f" + {missing} * (COUNT(*) - COUNT(cell))"
    return f"COALESCE({summed}, 0){counted}"


def by_level_and_cell(source: str, level: str, cell: str, part: str | ShortPart = ONLY_PART) -> str:
    """People for each raw level, part and cell."""
    return _by_level(source, level, part, [f"{cell} AS cell"], keys=["cell"])


def _by_level(
    source: str,
    level: str,
    part: str | ShortPart,
    values: Sequence[str] = (),
    sums: Mapping[str, str] = MappingProxyType({}),
    keys: Sequence[str] = (),
) -> str:
    """People and `sums` of the `values` of rows, for each raw level and part, and for each of the `keys`."""
    if isinstance(part, ShortPart):
        part_columns = {SHORT_PLACE.format(k): column for k, column in enumerate(part.columns)}
    else:
        part_columns = {} if part == ONLY_PART else {"part": part}
    by = ", ".join(("level", *part_columns, *keys))
    row = ", ".join((f"{level} AS level", *(f"{x} AS {name}" for name, x in part_columns.items()), *values))
    outputs = ", ".join((by, "COUNT(*) AS people", *(f"{x} AS {name}" for name, x in sums.items())))
    grouped = f"SELECT {outputs} FROM (SELECT {row} FROM {source}) AS coded GROUP BY {by}"
    if not isinstance(part, ShortPart):
        return grouped
    outputs = ", ".join(("level", f"{part.number} AS part", *keys, "people", *sums))
    return f"SELECT {outputs} FROM ({grouped}) AS grouped"


def by_code(
    dialect: Dialect, source: str, level: str, raw: Sequence[Any], cell: str, null_cell: int, cells: int
) -> str:
    """People for each code = cell·(L + 1) + which of the L raw levels; L for another level."""
    arms = " ".join(f"WHEN {is_level(dialect, 'level', x)} THEN {k}" for k, x in enumerate(raw))
    which = f"CASE {arms} ELSE {len(raw)} END" if raw else "0"
    kind = "INTEGER" if (cells + 1) * (len(raw) + 1) < 2**31 else "BIGINT"
    code = f"CAST(COALESCE(cell, {null_cell}) AS {kind}) * {len(raw) + 1} + {which}"
    return (
        f"SELECT code, COUNT(*) AS people FROM (SELECT {code} AS code "
        f"FROM (SELECT {level} AS level, {cell} AS cell FROM {source}) AS cells) AS codes GROUP BY code"
    )


def is_level(dialect: Dialect, level: str, raw: Any) -> str:
    """Whether a raw level is this one; None: NULL."""
    if raw is None:
        return f"{level} IS NULL"
    return f"{level} = {dialect.text(raw) if isinstance(raw, str) else dialect.double(raw)}"


def products(
    dialect: Dialect, source: str, level: str, encoding: Codes, codes: list[list[str]], part: str = ONLY_PART
) -> str:
    """People, the sums of `Codes.products` and how many are in them, for each raw level and part.

    In whole units of Q². Somebody who has a code that is NULL is in none of the sums.
    """
    target, *features = codes
    named = {"y": target[0]}
    named |= {f"x{j}": code for j, code in enumerate(code for feature in features for code in feature)}
    values, members = [f"{code} AS {name}" for name, code in named.items()], "COUNT(*)"
    if encoding.excludes_missing:
        coded = ", ".join((f"{level} AS level", f"{part} AS part", *values))
        source, level, part = f"(SELECT {coded} FROM {source}) AS points", "level", _outer(part)
        has_all = " AND ".join(f"{name} IS NOT NULL" for name in named)
        values, members = [f"CASE WHEN {has_all} THEN {name} END AS {name}" for name in named], "COUNT(y)"
    sums = {"members": members}
    for k, product in enumerate(encoding.products):
        factors = ["y" if j < 0 else f"x{j}" for j in product.columns]
        factor = f"{Q} * " if len(factors) == 1 else ""
        sums[f"m{k}"] = f"CAST(COALESCE({factor}{dialect.sum(' * '.join(factors))}, 0) AS BIGINT)"
    return _by_level(source, level, part, values, sums)


def _outer(part: str) -> str:
    """A part outside of the SELECT that has named it."""
    return part if part == ONLY_PART else "part"


def people(source: str, person: str, level: str) -> str:
    """Every person with their level."""
    return f"SELECT {person} AS person, {level} AS level FROM {source}"


def inexact_ids(dialect: Dialect, source: str, user: str) -> str:
    """How many ids are floating-point numbers that do not tell one whole number from the next."""
    return f"SELECT COUNT(*) AS inexact FROM {source} WHERE {dialect.is_inexact_id(user)}"


def with_level(source: str, level: str) -> str:
    """The rows of a source with their level, as SQL, under a name of its own."""
    return f"(SELECT *, {level} AS {ROW_LEVEL} FROM {source})"


def meeting(source: str, condition: str) -> str:
    """The rows that meet a condition."""
    return f"(SELECT * FROM {source} WHERE {condition})"


# ---- the integers of a row ---------------------------------------------------------------------------------


def cell(dialect: Dialect, encoding: Encoding, columns: Columns, is_read: str) -> str:
    """The integer of a row, as SQL: a value's cell, 1 or 0, or which one of several cells (NULL: none).

    `is_read` is true for people who have not opted out. Nobody else's value decides anything: they all get
    the same integer, in a group of their own, which is dropped. It stands last in each arm because that is
    the fastest place for it.
    """
    match encoding:
        case Grid():
            return _grid_cell(dialect, encoding, columns, is_read)
        case Indicator(None):
            return "1"
        case Indicator(condition) if condition is not None:
            meets = where_sql.render(dialect, condition, columns)
            if encoding.missing_cell == 0:
                return f"CASE WHEN {meets} AND {is_read} THEN 1 ELSE 0 END"
            arms = f"WHEN {meets} AND {is_read} THEN 1 WHEN NOT {meets} AND {is_read} THEN 0"
            return f"CASE {arms} ELSE {null_or(encoding.missing_cell)} END"
        case OneOf() if encoding.edges:
            x = finite_value(dialect, encoding, columns)
            edges = enumerate(encoding.edges[1:-1])
            arms = " ".join(f"WHEN {x} < {dialect.double(float(edge))} THEN {k}" for k, edge in edges)
            missing = null_or(encoding.missing)
            last = len(encoding.edges) - 2
            return f"CASE WHEN NOT {is_read} THEN NULL WHEN {x} IS NULL THEN {missing} {arms} ELSE {last} END"
        case OneOf():
            kind = columns[encoding.column]
            tests = (where_sql.equal(dialect, encoding.column, kind, c) for c in encoding.categories)
            arms = " ".join(f"WHEN {test} AND {is_read} THEN {k}" for k, test in enumerate(tests))
            return f"CASE {arms} ELSE {null_or(encoding.missing)} END"
        case _:
            raise TypeError(f"no SQL for {type(encoding).__name__}")


def _grid_cell(dialect: Dialect, grid: Grid, columns: Columns, is_read: str) -> str:
    x = value(dialect, grid, columns)
    low, high = dialect.double(float(grid.low)), dialect.double(float(grid.high))
    steps = dialect.whole(dialect.steps(x, float(grid.low), grid.inverse))
    missing = null_or(grid.missing_cell)
    return (
        f"CASE WHEN {x} >= {low} AND {x} < {high} AND {is_read} THEN {steps} "
        f"WHEN {x} >= {high} AND {dialect.is_finite(x)} AND {is_read} THEN {grid.cells} "
        f"WHEN {x} < {low} AND {dialect.is_finite(x)} AND {is_read} THEN 0 ELSE {missing} END"
    )


def value(dialect: Dialect, encoding: Grid | OneOf, columns: Columns) -> str:
    """The value of a row as a double: of dates and timestamps, seconds since 1970."""
    if encoding.kind == "number":
        return dialect.number(encoding.column, columns[encoding.column])
    return dialect.seconds(encoding.column, encoding.kind)


def finite_value(dialect: Dialect, encoding: Grid | OneOf, columns: Columns) -> str:
    """The same; NULL where it is missing."""
    if encoding.kind == "number":
        return dialect.finite_number(encoding.column, columns[encoding.column])
    return dialect.seconds(encoding.column, encoding.kind)


def null_or(cell: int | None) -> str:
    """The cell of whoever is missing; NULL: in no cell."""
    return "NULL" if cell is None else str(cell)


def codes(dialect: Dialect, encoding: Codes, columns: Columns) -> list[list[str]]:
    """The codes of a row, as SQL: of the target, then of each feature. NULL: missing, where that counts."""
    missing = None if encoding.excludes_missing else 0
    return [_codes(dialect, feature, columns, missing) for feature in (encoding.target, *encoding.features)]


def _codes(dialect: Dialect, feature: Numeric | Category, columns: Columns, missing: int | None) -> list[str]:
    """A value as integers in −Q … Q: see statistics/regression.py."""
    kind = columns[feature.column]
    if isinstance(feature, Category):
        # the first value that it equals: two dummies are never set together, however values are spelled
        arms = where_sql.first_equal(dialect, feature.column, kind, feature.values)
        return dummies(f"CASE {arms} ELSE {null_or(missing)} END", feature, missing is None)
    x = dialect.number(feature.column, kind)
    low, high = dialect.double(float(feature.low)), dialect.double(float(feature.high))
    steps = dialect.steps(x, float(feature.low), 2 * Q / (float(feature.high) - float(feature.low)))
    steps = dialect.least(steps, str(2 * Q))  # the product may be rounded beyond the end
    is_number = dialect.is_finite(x)
    return [
        f"CAST(CASE WHEN {x} >= {low} AND {x} < {high} AND {is_number} THEN {steps} - {Q} "
        f"WHEN {x} >= {high} AND {is_number} THEN {Q} WHEN {x} < {low} AND {is_number} THEN {-Q} "
        f"ELSE {null_or(missing)} END AS INTEGER)"
    ]


def dummies(which: str, feature: Category, may_be_null: bool) -> list[str]:
    """+Q for a category's value and −Q otherwise, for each value but the first; NULL where it has none."""
    has_value = f"WHEN {which} IS NULL THEN NULL " if may_be_null else ""
    return [
        f"CAST(CASE {has_value}WHEN {which} = {k} THEN {Q} ELSE {-Q} END AS INTEGER)"
        for k in range(1, len(feature.values))
    ]
