"""Everyone whose value is none of the keys, as one more group: the same integers in every engine, as plain Python has them."""

from math import inf, nan

import numpy as np
import psycopg
import pytest

import accord
from accord.engines import keys as key_sql
from accord.engines.duckdb import DuckDB
from accord.lab.audit import reference
from accord.lab.audit.reference_comparison import integers

N = 1_500
TYPES = {
    "number": "double precision",
    "text": "text",
    "is": "boolean",
    "x": "double precision",
    "who": "bigint",
    "e": "double precision",
}
PARTS = {
    "numbers": {"by": "number", "keys": [*range(8), 0.5], "rest": "other"},
    "texts": {"by": "text", "keys": [*(f"k{j}" for j in range(6)), "", "nobody"], "rest": "other"},
    "truths": {"by": "is", "keys": [True], "rest": "not"},
    "a condition": {"by": "text", "keys": ["k1", "k2"], "rest": "other", "where": "number > 2"},
    "both columns": {"by": ["text", "is"], "keys": {"text": ["k1", "k2"], "is": [True]}, "rest": "other"},
    "one of two": {
        "by": ["number", "text"],
        "keys": {"number": [1, 2, 3], "text": ["k3", "k1"]},
        "rest": {"text": "another"},
    },
}


def rows():
    """Many people have rows of several undeclared values, and some have none: NULL, or NaN."""
    draw = np.random.default_rng(11)
    words = [*(f"k{j}" for j in range(11)), "it's", "", "rest", "other", None]
    numbers = [*np.arange(12.0), 0.5, nan, inf]
    return [
        {
            "number": float(numbers[draw.integers(len(numbers))]),
            "text": words[draw.integers(len(words))],
            "is": [True, False, None][draw.integers(3)],
            "x": float(draw.integers(0, 100)),
            "who": int(draw.integers(0, N // 4)),
            "e": 1.0,
        }
        for _ in range(N)
    ]


def columns():
    """As a data frame has them: only texts and truths may be NULL."""
    return {
        name: np.array([row[name] for row in rows()], dtype=object if name in ("text", "is") else None)
        for name in TYPES
    }


def asked(part, user):
    several = {"at_most": 2} if user and part == "texts" else {}
    yield {"statistic": "count", **PARTS[part], **several}
    yield {"statistic": "sum", "column": "x", "bounds": (0, 100), "step": 1, **PARTS[part], **several}


def refuse_difference(source, part, user):
    table = accord.table(source, epsilon="e", user=user)
    persons = reference.people(rows(), epsilon="e", **({"user": user} if user else {}))
    for question in asked(part, user):
        arguments = {name: value for name, value in question.items() if name != "statistic"}
        plan = table.plan(getattr(accord, question["statistic"])(**arguments), "minimum")
        read = integers(table, plan)
        assert read == reference.summary(question, persons), question
        *_, of_rest = read
        assert of_rest


@pytest.mark.parametrize("user", [None, "who"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("few", [0, 64])
def test_as_in_plain_python(part, user, few, monkeypatch):
    """Compared with keys one by one, and joined to them."""
    monkeypatch.setattr(key_sql, "FEW_KEYS", few)
    refuse_difference(columns(), part, user)


@pytest.mark.postgres
def test_in_postgresql(postgres_url, monkeypatch):
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE people ({kinds})")
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in rows():
                copy.write_row(list(row.values()))
    for part, few, user in (("numbers", 4, "who"), ("texts", 64, "who"), ("both columns", 64, None)):
        monkeypatch.setattr(key_sql, "FEW_KEYS", few)
        refuse_difference(f"{postgres_url}&table=people", part, user)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark(session, monkeypatch):
    kinds = {"text": "string", "double precision": "double"}
    schema = ", ".join(f"`{name}` {kinds.get(kind, kind)}" for name, kind in TYPES.items())
    frame = session.createDataFrame([tuple(row.values()) for row in rows()], schema).cache()
    for part, few, user in (("texts", 4, "who"), ("numbers", 64, None)):
        monkeypatch.setattr(key_sql, "FEW_KEYS", few)
        refuse_difference(frame, part, user)


def test_one_scan_reads_the_rest_as_well(monkeypatch):
    scans, fetch = [], DuckDB.fetch
    monkeypatch.setattr(
        DuckDB, "fetch", lambda self, sql, *args, **more: scans.append(sql) or fetch(self, sql, *args, **more)
    )
    people = accord.table(columns(), epsilon="e")
    plan = people.plan(accord.mean("x", bounds=(0, 100), step=1, **PARTS["texts"]), "minimum")
    scans.clear()
    assert len(people.release(plan).value) == 9 and len([sql for sql in scans if "cell" in sql]) == 1


def test_what_the_rest_is_called_decides_nothing():
    """Not even of equally frequent groups which one somebody is in."""
    people, part = accord.table(columns(), epsilon="e", user="who"), PARTS["texts"]
    plans = [people.plan(accord.count(**{**part, "rest": name}), "minimum") for name in ("other", "others")]
    assert integers(people, plans[0]) == integers(people, plans[1])


def test_public_groups_have_a_rest():
    data = {"id": [1, 2, 3, 4, 5], "w": ["a", "b", "c", "d", None], "e": [inf] * 5}
    people = accord.table(data, epsilon="e", user="id")
    of_groups = people.release(accord.count(by="w", keys=["a"], rest="other", membership="public"))
    assert [(row["w"], row["value"]) for row in of_groups.value] == [("a", 1), ("other", 3)]


def test_somebody_in_a_public_group_and_in_the_rest_is_refused():
    people = accord.table({"id": [1, 1], "w": ["a", "b"], "e": [1.0, 1.0]}, epsilon="e", user="id")
    with pytest.raises(accord.errors.QueryError, match="1 people have rows in several of the groups"):
        people.plan(accord.count(by="w", keys=["a"], rest="other", membership="public"))
