"""Groups by several columns: the same integers by DuckDB, PostgreSQL and Spark, joined or compared, as plain Python counts them."""

from collections import Counter
from math import inf, nan

import duckdb
import numpy as np
import psycopg
import pytest

import accord
from accord.engines import keys as key_sql
from accord.engines.duckdb import DuckDB
from accord.errors import QueryError

N = 2_000
KEYS = {"number": [*range(12), 0.5], "text": [*(f"k{j}" for j in range(9)), "it's", ""], "is": [True, False]}
TYPES = {
    "number": "double precision",
    "text": "text",
    "is": "boolean",
    "x": "double precision",
    "who": "bigint",
}


def columns():
    draw = np.random.default_rng(3)
    words = np.array([*(f"k{j}" for j in range(11)), "it's", "", None], dtype=object)
    return {
        "number": draw.choice([*np.arange(14.0), 0.5, nan], N),
        "text": words[draw.integers(0, len(words), N)],
        "is": np.array([True, False, None], dtype=object)[draw.integers(0, 3, N)],
        "x": draw.integers(0, 100, N).astype(float),
        "who": draw.integers(0, 900, N),
    }


def answers(source, by, monkeypatch, few, **options):
    """Of counts and sums, exact because everybody is public."""
    monkeypatch.setattr(key_sql, "FEW_KEYS", few)
    if isinstance(source, dict):
        source = source | {"e": np.full(N, inf)}
    people, keys = accord.table(source, epsilon="e", **options), {column: KEYS[column] for column in by}
    asked = accord.count(by=by, keys=keys), accord.sum("x", bounds=(0, 100), step=1, by=by, keys=keys)
    released = [people.release(query, "threshold", t=inf).value for query in asked]
    return [
        {tuple(row[column] for column in by): row["value"] for row in rows if row["value"]}
        for rows in released
    ]


def in_python(by):
    """By rows, each of which is one person."""
    data, counted, summed = columns(), Counter(), Counter()
    for row in zip(*(data[column] for column in (*by, "x")), strict=True):
        *keys, x = row
        if all(key in KEYS[column] for column, key in zip(by, keys, strict=True)):
            group = tuple(KEYS[column][KEYS[column].index(key)] for column, key in zip(by, keys, strict=True))
            counted[group] += 1
            summed[group] += x
    return [dict(counted), {group: x for group, x in summed.items() if x}]


COLUMNS = [("number", "text"), ("text", "number"), ("is", "text", "number")]


@pytest.mark.parametrize("by", COLUMNS)
def test_keys_are_found_joined_and_one_by_one(by, monkeypatch):
    expected = in_python(by)
    assert len(expected[0]) > 100
    for few in (4, 64, 10**6):
        assert answers(columns(), by, monkeypatch, few) == expected
    of_people = answers(columns(), by, monkeypatch, 4, user="who")
    assert of_people == answers(columns(), by, monkeypatch, 10**6, user="who")
    assert 300 < sum(of_people[0].values()) <= 900


def rows():
    """As a server has them: NULL for None."""
    data = {**columns(), "e": np.full(N, inf)}
    return list(zip(*(data[name].tolist() for name in (*TYPES, "e")), strict=True))


@pytest.mark.postgres
def test_in_postgresql(postgres_url, monkeypatch):
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in (TYPES | {"e": "double precision"}).items())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE people ({kinds})")
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in rows():
                copy.write_row(row)
    for by, few, user in ((COLUMNS[0], 4, "who"), (COLUMNS[2], 64, None)):
        there = answers(f"{postgres_url}&table=people", by, monkeypatch, few, user=user)
        assert there == answers(columns(), by, monkeypatch, few, user=user)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark(session, monkeypatch):
    kinds = {"text": "string", "double precision": "double"}
    schema = ", ".join(
        f"`{name}` {kinds.get(kind, kind)}" for name, kind in (TYPES | {"e": "double"}).items()
    )
    frame = session.createDataFrame(rows(), schema).cache()
    for by, few, user in ((COLUMNS[0], 4, "who"), (COLUMNS[2], 64, None)):
        assert answers(frame, by, monkeypatch, few, user=user) == answers(
            columns(), by, monkeypatch, few, user=user
        )


@pytest.mark.parametrize("membership", ["private", "public"])
def test_one_scan_reads_all_cells(membership, monkeypatch):
    scans, fetch = [], DuckDB.fetch
    monkeypatch.setattr(
        DuckDB, "fetch", lambda self, sql, *args, **more: scans.append(sql) or fetch(self, sql, *args, **more)
    )
    people = accord.table({**columns(), "e": np.ones(N)}, epsilon="e")
    keys = {"text": KEYS["text"], "is": KEYS["is"]}
    query = accord.mean("x", bounds=(0, 100), step=1, by=["text", "is"], keys=keys, membership=membership)
    plan = people.plan(query, "minimum")
    scans.clear()
    release = people.release(plan)
    assert len(release.value) == 22 and len([sql for sql in scans if "cell" in sql]) == 1


def test_somebody_in_two_public_cells_is_refused():
    people = accord.table(
        {"id": [1, 1, 2], "a": ["x", "x", "x"], "b": [1, 2, 1], "e": [1.0] * 3}, epsilon="e", user="id"
    )
    with pytest.raises(QueryError, match="1 people have rows in several of the groups"):
        people.plan(accord.crosstab("a", "b", keys={"a": ["x"], "b": [1, 2]}, membership="public"))


def test_the_most_frequent_combination_counts():
    """Not the most frequent key of each column: of the rows (a, 1), (a, 1), (b, 2), (c, 2), (a, 2) that would be (a, 2)."""
    data = {"id": [1] * 5, "w": list("aabca"), "g": [1, 1, 2, 2, 2], "e": [inf] * 5}
    people, keys = accord.table(data, epsilon="e", user="id"), {"w": ["a", "b", "c"], "g": [1, 2]}
    counted = {
        at: people.release(accord.crosstab("w", "g", keys=keys, at_most=at), "threshold", t=inf)
        for at in (1, 4)
    }
    assert [(row["w"], row["g"]) for row in counted[1].value if row["value"]] == [("a", 1)]
    assert sum(row["value"] for row in counted[4].value) == 4


def test_a_column_of_the_wrong_kind_is_refused_by_its_name():
    people = accord.table(duckdb.sql("SELECT 1 AS a, 'x' AS b, 1.0 AS e"), epsilon="e")
    with pytest.raises(QueryError, match="column 'a' holds numbers"):
        people.plan(accord.crosstab("b", "a", keys={"a": ["1"], "b": ["x"]}))
