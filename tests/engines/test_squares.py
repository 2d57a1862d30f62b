"""Sums of squared cells: the same integers as Python's in every engine, also beyond 64 bits."""

from dataclasses import fields, replace
from functools import cached_property
from math import nan

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import accord
from accord.statistics import Grouped, Mean, Part, Rows, Sum

N = 2_000
CELLS = (2**20, 2**31, 2**31 + 2, 2**32, 2**40)
"""Up to 2³¹, squares fit into 64 bits; those of 2³² do not."""
TYPES = {"x": "double precision", "who": "bigint", "group": "text", "e": "double precision"}


class Squares:
    @cached_property
    def encoding(self):
        return replace(super().encoding, powers=2)


class SquaredMean(Squares, Mean): ...


class SquaredSum(Squares, Sum): ...


class SquaredRows(Squares, Rows): ...


def squared(kind, query):
    return kind(**{field.name: getattr(query, field.name) for field in fields(query)})


def columns(cells):
    draw = np.random.default_rng(cells)
    x = draw.integers(0, cells, N).astype(float)
    x[::7] = cells
    x[::11] = nan
    x[::13] = 2.0 * cells
    levels = np.array([0.0, 0.5, 2.0])
    who = draw.integers(0, N // 3, N)
    return {"x": x, "who": who, "group": [("a", "b", "c")[k % 3] for k in who.tolist()], "e": levels[who % 3]}


def rows(data):
    return list(zip(*(np.asarray(data[name]).tolist() for name in TYPES), strict=True))


def cell(values, kind, cells):
    """What somebody's rows come to; missing: the middle."""
    present = [int(x) for x in values if x == x]
    if kind is SquaredRows:
        return min(len(values), cells)
    if not present:
        return cells // 2
    if kind is SquaredSum:
        return min(sum(present), cells)
    return min((2 * sum(present) + len(present)) // (2 * len(present)), cells)


def expected(data, kind, cells, user, group=None):
    """{(level, output): sum} of those who have not opted out: their number, their cells and the squares of these."""
    people = {}
    for k, (x, who, of, level) in enumerate(rows(data)):
        if level > 0 and group in (None, of):
            people.setdefault((who, level) if user else (k, level), []).append(x)
    sums = {}
    for (_, level), values in people.items():
        q = cell(values, kind, cells)
        for power in (0, 1, 2):
            key = [0.5, 2.0].index(level), power
            sums[key] = sums.get(key, 0) + q**power
    return sums


def integers(summary):
    entries = zip(summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True)
    return {(level, output): amount for level, output, amount in entries}


def compare(source, data, cells):
    asked = {"bounds": (0, cells), "step": 1, "missing": "middle"}
    mean, total = (ask("x", **asked) for ask in (accord.mean, accord.sum))
    cases = [
        (SquaredMean, mean, None),
        (SquaredMean, mean, "who"),
        (SquaredSum, total, "who"),
        (SquaredRows, accord.rows(max=5), "who"),
    ]
    for kind, asked, user in cases:
        people = accord.table(source, epsilon="e", user=user)
        query = squared(kind, asked)
        most = query.encoding.cells
        summary = people.reader.summary(query)
        assert summary.outputs == 3 and integers(summary) == expected(data, kind, most, user), (kind, user)
        keys = ("a", "b")
        by_group = people.reader.summaries(Grouped(query, Part(None, None, ("group",), (keys,), False)))
        assert list(map(integers, by_group)) == [expected(data, kind, most, user, key) for key in keys], (
            kind,
            user,
        )


@pytest.mark.parametrize("cells", CELLS)
def test_squares_in_duckdb(cells):
    data = columns(cells)
    compare(pa.table(data), data, cells)
    if cells == 2**40:
        assert max(expected(data, SquaredMean, cells, None).values()) > 2**80


@pytest.mark.postgres
@pytest.mark.parametrize("cells", CELLS)
def test_squares_in_postgresql(postgres_url, cells):
    data = columns(cells)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        declared = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
        connection.execute(f"CREATE TABLE people ({declared})")
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in rows(data):
                copy.write_row(row)
    compare(f"{postgres_url}&table=people", data, cells)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cells", CELLS)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_squares_in_spark(session, cells, ansi):
    data = columns(cells)
    schema = ", ".join(
        f"`{name}` {kind.split()[0].replace('text', 'string')}" for name, kind in TYPES.items()
    )
    before = session.conf.get("spark.sql.ansi.enabled")
    session.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        compare(session.createDataFrame(rows(data), schema), data, cells)
    finally:
        session.conf.set("spark.sql.ansi.enabled", before)


def test_wide_numbers_come_whole():
    """Of either sign, whether they fit into 64 bits or not; NULL is 0."""
    numbers = [0, 1, -1, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63)]
    beyond = [2**63, -(2**63) - 1, 2**113, -(2**113), 2**120 + 2**61 + 7]
    engine = accord.table({"e": [1.0]}, epsilon="e").reader.engine
    for listed in (numbers, numbers + beyond):
        values = ", ".join(f"(CAST('{x}' AS HUGEINT), {k})" for k, x in enumerate([*listed, *listed]))
        sql = f"SELECT x AS total, -x AS squares, k FROM (VALUES {values}, (NULL, -1)) AS v(x, k) ORDER BY k"
        result = engine.fetch(sql, wide=("total", "squares"))
        assert result["total"] == [0, *listed, *listed]
        assert result["squares"] == [0, *(-x for x in (*listed, *listed))]
        assert result["k"].tolist() == list(range(-1, 2 * len(listed)))
