"""Few keys are grouped in a type of DuckDB's own: the same integers as by places, and in plain Python."""

from collections import Counter
from math import inf

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accord
from accord.engines import keys as key_sql
from accord.engines.duckdb import DuckDB
from accord.engines.duckdb_dialect import DuckDBDialect
from accord.engines.spark_dialect import SparkDialect
from accord.errors import TABLE_CHANGED, SourceError, SpecError

N = 600
WORDS = ["a", "A", " a", "it's", "", "É", "E\u0301", "a,b:c", "none of them", None]
LISTED = ["A", "a", "it's", "", "É", "a,b:c", "nobody"]
LEVELS = [0.0, 0.1, 1.0, inf]
TIERS = {"out": 0, "strict": 0.1, "it's": 1.0, "public": inf}


def people(**more):
    draw = np.random.default_rng(11)
    return {
        "word": pa.array([WORDS[k] for k in draw.integers(0, len(WORDS), N)]),
        "whole": pa.array(draw.integers(-3, 9, N), mask=draw.random(N) < 0.1),
        "x": draw.integers(0, 100, N).astype(float),
        "e": draw.choice(LEVELS, N),
        **more,
    }


def in_python(data, by, keys, is_asked=lambda row: True):
    """How many there are of each level and group, and the sum of their x, of those who have not opted out."""
    columns = {name: pa.array(column).to_pylist() for name, column in data.items()}
    counted, summed = Counter(), Counter()
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        if all(row[name] in keys[name] for name in by) and is_asked(row) and row["e"]:
            place = 0
            for name in by:
                place = place * len(keys[name]) + keys[name].index(row[name])
            counted[row["e"], place] += 1
            summed[row["e"], place] += row["x"]
    return counted, summed


def read(table, by, keys, **options):
    """The same from Summaries."""
    counted, summed = Counter(), Counter()
    asked = accord.sum("x", bounds=(0, 100), step=1, by=by, keys=keys, **options)
    for place, summary in enumerate(table.reader.summaries(asked)):
        levels = table.spec().levels
        for level, (members, total) in zip(levels, summary.rows(), strict=True):
            counted[level, place] += members
            summed[level, place] += total
    return +counted, Counter({key: total for key, total in summed.items() if total})


@pytest.fixture
def asked(monkeypatch):
    """All SQL that is asked."""
    texts, fetch = [], DuckDB.fetch

    def listening(self, sql, wide=()):
        texts.append(sql)
        return fetch(self, sql, wide)

    monkeypatch.setattr(DuckDB, "fetch", listening)
    return texts


@pytest.mark.parametrize("by", [("word",), ("whole",), ("word", "whole"), ("whole", "word")])
@pytest.mark.parametrize("reads_levels_first", [False, True])
def test_few_keys_are_grouped_as_python_groups_them(by, reads_levels_first, asked, monkeypatch, tmp_path):
    data = people()
    keys = {name: {"word": LISTED, "whole": [7, -1, 0.5, 2.0, 0, 10**9]}[name] for name in by}
    expected = in_python(data, by, keys)
    pq.write_table(pa.table(data), tmp_path / "people.parquet")
    for source in (pa.table(data), tmp_path / "people.parquet"):
        for few in (64, 0):  # 0: all of them are joined
            monkeypatch.setattr(key_sql, "FEW_KEYS", few)
            table = accord.table(source, epsilon="e")
            if reads_levels_first:
                table.spec()
            assert read(table, by, keys) == expected
            (sql,) = [text for text in asked if "total" in text]
            assert ("ENUM" in sql) == bool(few)
            assert ("AS TINYINT)" in sql) == (reads_levels_first and bool(few))
            asked.clear()


def test_only_rows_that_meet_a_condition_are_grouped():
    data, keys = people(), {"word": LISTED, "whole": list(range(9))}
    expected = in_python(data, ("word", "whole"), keys, lambda row: row["x"] >= 50)
    table = accord.table(pa.table(data), epsilon="e")
    assert read(table, ["word", "whole"], keys, where="x >= 50") == expected


def test_levels_that_have_names(monkeypatch):
    """Of which one is missing, so that they are not told by their places; and where all are there."""
    names = np.random.default_rng(2).choice([*TIERS, None], N)
    keys = {"word": LISTED}
    for tiers in (names, np.where(names == None, "strict", names)):  # noqa: E711
        data = people(tier=pa.array(tiers.tolist(), pa.string()))
        data["e"] = np.array([TIERS[name or "strict"] for name in tiers.tolist()], dtype=float)
        table = accord.table(pa.table(data).drop_columns("e"), epsilon="tier", tiers=TIERS, default="strict")
        table.spec()
        assert read(table, "word", keys) == in_python(data, ("word",), keys)


NEAR = [2**53 - 1, 2**53, 2**53 + 1, -(2**53), 0]


@pytest.mark.parametrize("keys", [[2**53 - 1, 0], [2**53, 0], [-(2**53), 7]])
@pytest.mark.parametrize("kind", ["BIGINT", "HUGEINT", "DOUBLE"])
def test_whole_numbers_are_compared_as_doubles(keys, kind, monkeypatch):
    """Of which several are one from 2⁵³ on: then they are not compared as texts."""
    rows = ", ".join(f"({x}, 1.0)" for x in NEAR)
    relation = duckdb.sql(f"SELECT CAST(k AS {kind}) AS k, e FROM (VALUES {rows}) AS t(k, e)")
    found = {}
    for few in (64, 0):
        monkeypatch.setattr(key_sql, "FEW_KEYS", few)
        table = accord.table(relation, epsilon="e")
        summaries = table.reader.summaries(accord.count(by="k", keys=keys))
        found[few] = [summary.weighted(np.ones(1, dtype=np.int64))[0] for summary in summaries]
    assert found[64] == found[0] == [sum(float(x) == float(key) for x in NEAR) for key in keys]


def test_which_columns_have_such_a_type():
    dialect = DuckDBDialect({"t": "VARCHAR", "i": "INTEGER", "d": "DOUBLE", "when": "DATE", "is": "BOOLEAN"})
    place = "CAST(enum_code(s) AS INTEGER)"
    assert dialect.enumerated("t", "text", ["it's"], "s") == (
        "TRY_CAST(CAST(c0 AS VARCHAR) COLLATE \"binary\" AS ENUM ('it''s'))",
        place,
    )
    assert dialect.enumerated("i", "number", [3.0, 0.5], "s") == (
        "TRY_CAST(CAST(c1 AS VARCHAR) AS ENUM ('3', '0.5'))",
        place,
    )
    assert dialect.enumerated("i", "number", [2**53], "s") is None
    assert dialect.enumerated("i", "number", [True], "s") is None
    assert dialect.enumerated("i", "number", [7, 7.0], "s") is None  # one text
    assert dialect.enumerated("d", "number", [1], "s") is None  # -0.0 is 0.0, and has another text
    assert dialect.enumerated("when", "date", ["2026-01-01"], "s") is None
    assert dialect.enumerated("is", "boolean", [True], "s") is None
    assert SparkDialect({"t": "string"}).enumerated("t", "text", ["a"], "s") is None


@pytest.mark.parametrize("level", [0.5, None])
def test_a_level_that_comes_later_is_refused(level, tmp_path):
    """Also one that a default would have been for, because it was not there when the plan was made."""
    path = tmp_path / "people.parquet"

    def write(last):
        columns = {"w": ["a", "b", "a"], "e": pa.array([1.0, 1.0, last], pa.float64())}
        pq.write_table(pa.table(columns), path)

    write(1.0)
    table = accord.table(path, epsilon="e", default=0.1)
    table.spec()
    write(level)
    with pytest.raises((SourceError, SpecError)) as refused:
        table.reader.summaries(accord.count(by="w", keys=["a", "b"]))
    assert str(refused.value) == TABLE_CHANGED
