"""The SQL of each shape of a Summary, and the integer of a row: written once, over a Dialect.

    levels              people by level                     no value is read
    by_level            people and sums by level            sums of cells, and of their squares
    by_level_and_cell   people by level and cell
    by_code             the same, where level and cell are one small integer
    products            people and sums of products by level, for regressions

Each of them may be told apart by parts as well (keys.py), and reads rows or people (gathering.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.engines import conditions
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns
from accord.engines.names import ALL
from accord.statistics.encoding import Category, Codes, Encoding, Grid, Indicator, Numeric, OneOf, Q

_PRODUCTS_OF_64_BITS = 2**31
"""Cells up to here have squares that fit into 64 bits."""


def levels(source: str, level: str, part: str = ALL) -> str:
    """People for each raw level and part. No value is read."""
    return (
        f"SELECT {_by(part)}, COUNT(*) AS people "
        f"FROM (SELECT {level} AS level, {part} AS part FROM {source}) AS levels GROUP BY {_by(part)}"
    )


def by_level(dialect: Dialect, source: str, level: str, cell: str, missing: int, part: str = ALL) -> str:
    """People and the sum of their cells, `total`, for each raw level and part.

    A NULL cell counts as `missing`: NaN can come through, see `Dialect.is_finite`.
    """
    return _sums_by_level(source, level, cell, part, [_total(dialect.sum("cell"), str(missing), "total")])


def by_level_with_squares(
    dialect: Dialect, source: str, level: str, cell: str, missing: int, cells: int, part: str = ALL
) -> str:
    """`by_level` with the sum of the squared cells as well, `squares`, for cells up to `cells`."""
    if cells <= _PRODUCTS_OF_64_BITS:
        squared = dialect.sum("CAST(cell AS BIGINT) * CAST(cell AS BIGINT)")
    else:
        squared = dialect.sum_wide(f"{dialect.as_wide('cell')} * {dialect.as_wide('cell')}")
    sums = [
        _total(dialect.sum("cell"), str(missing), "total"),
        _total(squared, dialect.wide(missing**2), "squares"),
    ]
    return _sums_by_level(source, level, cell, part, sums)


def _total(summed: str, missing: str, name: str) -> str:
    return f"COALESCE({summed}, 0) + {missing} * (COUNT(*) - COUNT(cell)) AS {name}"


def _sums_by_level(source: str, level: str, cell: str, part: str, sums: list[str]) -> str:
    return (
        f"SELECT {_by(part)}, COUNT(*) AS people, {', '.join(sums)} "
        f"FROM (SELECT {level} AS level, {part} AS part, {cell} AS cell FROM {source}) AS cells GROUP BY "
        f"{_by(part)}"
    )


def by_level_and_cell(source: str, level: str, cell: str, part: str = ALL) -> str:
    """People for each raw level, part and cell."""
    return (
        f"SELECT {_by(part)}, cell, COUNT(*) AS people "
        f"FROM (SELECT {level} AS level, {part} AS part, {cell} AS cell FROM {source}) AS cells "
        f"GROUP BY {_by(part)}, cell"
    )


def by_code(
    dialect: Dialect, source: str, level: str, raw: Sequence[Any], cell: str, null_cell: int, cells: int
) -> str:
    """People for each code = cell·(L + 1) + which of the L raw levels; L for another level."""
    tests = (f"{is_level(dialect, 'level', x)} THEN {k}" for k, x in enumerate(raw))
    which = f"CASE {' '.join(f'WHEN {test}' for test in tests)} ELSE {len(raw)} END" if raw else "0"
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
    dialect: Dialect, source: str, level: str, encoding: Codes, codes: list[list[str]], part: str = ALL
) -> str:
    """People and the sums of `Codes.products` for each raw level and part, in whole units of Q²."""
    target, *features = codes
    inner = ", ".join(
        f"{code} AS x{j}" for j, code in enumerate(code for feature in features for code in feature)
    )
    sums = []
    for k, product in enumerate(encoding.products):
        factors = ["y" if j < 0 else f"x{j}" for j in product.columns]
        factor = f"{Q} * " if len(factors) == 1 else ""
        sums.append(f"CAST(COALESCE({factor}{dialect.sum(' * '.join(factors))}, 0) AS BIGINT) AS m{k}")
    return (
        f"SELECT {_by(part)}, COUNT(*) AS people, {', '.join(sums)} "
        f"FROM (SELECT {level} AS level, {part} AS part, {target[0]} AS y, {inner} FROM {source}) AS coded "
        f"GROUP BY {_by(part)}"
    )


def people(source: str, person: str, level: str) -> str:
    """Every person with their level."""
    return f"SELECT {person} AS person, {level} AS level FROM {source}"


def inexact_ids(dialect: Dialect, source: str, user: str) -> str:
    """How many ids are floating-point numbers that do not tell one whole number from the next."""
    return f"SELECT COUNT(*) AS inexact FROM {source} WHERE {dialect.is_inexact_id(user)}"


def meeting(source: str, condition: str) -> str:
    """The rows that meet a condition."""
    return f"(SELECT * FROM {source} WHERE {condition})"


def _by(part: str) -> str:
    return "level" if part == ALL else "level, part"


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
            return (
                f"CASE WHEN {conditions.render(dialect, condition, columns)} AND {is_read} THEN 1 ELSE 0 END"
            )
        case OneOf() if encoding.edges:
            x = dialect.finite_number(encoding.column, columns[encoding.column])
            edges = enumerate(encoding.edges[1:-1])
            arms = " ".join(f"WHEN {x} < {dialect.double(float(edge))} THEN {k}" for k, edge in edges)
            missing = null_or(encoding.missing)
            last = len(encoding.edges) - 2
            return f"CASE WHEN NOT {is_read} THEN NULL WHEN {x} IS NULL THEN {missing} {arms} ELSE {last} END"
        case OneOf():
            kind = columns[encoding.column]
            tests = (conditions.equal(dialect, encoding.column, kind, c) for c in encoding.categories)
            arms = " ".join(f"WHEN {test} AND {is_read} THEN {k}" for k, test in enumerate(tests))
            return f"CASE {arms} ELSE {null_or(encoding.missing)} END"
        case _:
            raise TypeError(f"no SQL for {type(encoding).__name__}")


def _grid_cell(dialect: Dialect, grid: Grid, columns: Columns, is_read: str) -> str:
    x = value(dialect, grid, columns)
    low, high = dialect.double(float(grid.low)), dialect.double(float(grid.high))
    steps = dialect.whole(dialect.steps(x, float(grid.low), grid.inverse))
    return (
        f"CASE WHEN {x} >= {low} AND {x} < {high} AND {is_read} THEN {steps} "
        f"WHEN {x} >= {high} AND {dialect.is_finite(x)} AND {is_read} THEN {grid.cells} "
        f"WHEN {x} < {low} AND {dialect.is_finite(x)} AND {is_read} THEN 0 ELSE {grid.missing_cell} END"
    )


def value(dialect: Dialect, grid: Grid, columns: Columns) -> str:
    """The value of a row as a double: of dates and timestamps, seconds since 1970."""
    if grid.kind == "number":
        return dialect.number(grid.column, columns[grid.column])
    return dialect.seconds(grid.column, grid.kind)


def null_or(cell: int | None) -> str:
    """The cell of whoever is missing; NULL: in no cell."""
    return "NULL" if cell is None else str(cell)


def codes(dialect: Dialect, encoding: Codes, columns: Columns) -> list[list[str]]:
    """The codes of a row, as SQL: of the target, then of each feature."""
    return [_codes(dialect, feature, columns) for feature in (encoding.target, *encoding.features)]


def _codes(dialect: Dialect, feature: Numeric | Category, columns: Columns) -> list[str]:
    """A value as integers in −Q … Q: see statistics/regression.py."""
    kind = columns[feature.column]
    if isinstance(feature, Category):
        # the first value that it equals: two dummies are never set together, however values are spelled
        arms = conditions.first_equal(dialect, feature.column, kind, feature.values)
        return dummies(f"CASE {arms} ELSE 0 END", feature)
    x = dialect.number(feature.column, kind)
    low, high = dialect.double(float(feature.low)), dialect.double(float(feature.high))
    steps = dialect.steps(x, float(feature.low), 2 * Q / (float(feature.high) - float(feature.low)))
    known = dialect.is_finite(x)
    # LEAST: the product may be rounded beyond the end
    return [
        f"CAST(CASE WHEN {x} >= {low} AND {x} < {high} AND {known} THEN LEAST({steps}, {2 * Q}) - {Q} "
        f"WHEN {x} >= {high} AND {known} THEN {Q} WHEN {x} < {low} AND {known} THEN {-Q} ELSE 0 END AS "
        "INTEGER)"
    ]


def dummies(which: str, feature: Category) -> list[str]:
    """+Q for a category's value and −Q otherwise, for each value but the first."""
    return [
        f"CAST(CASE WHEN {which} = {k} THEN {Q} ELSE {-Q} END AS INTEGER)"
        for k in range(1, len(feature.values))
    ]
