"""What accord reads, keeps and charges is what a second, plain reckoning of the rows says, on every engine.

The reference (accord/lab/audit/reference.py, reference_values.py) shares no code with the rest. With a
mistake in it, tests fail.
"""

import ast
import csv
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, expm1, inf, log, nan, nextafter
from pathlib import Path
from random import Random
from types import ModuleType

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.test_postgres import at, fill, make

import accord
from accord.budget import PUBLIC
from accord.errors import QueryError, SourceError, SpecError
from accord.lab.audit import reference, reference_values
from accord.lab.audit.reference_comparison import integers
from accord.mechanisms.sample import SURE

TYPES = {
    "id": ("text", pa.string()),
    "k": ("bigint", pa.int64()),
    "f": ("double precision", pa.float64()),
    "x": ("double precision", pa.float64()),
    "z": ("double precision", pa.float64()),
    "n": ("numeric(9, 3)", pa.decimal128(9, 3)),
    "i": ("bigint", pa.int64()),
    "b": ("boolean", pa.bool_()),
    "c": ("text", pa.string()),
    "g": ("bigint", pa.int64()),
    "d": ("date", pa.date32()),
    "t": ("timestamp", pa.timestamp("us")),
    "e": ("double precision", pa.float64()),
    "level": ("numeric(12, 8)", pa.decimal128(12, 8)),
    "tier": ("text", pa.string()),
}
TIERS = {"strict": 0.1, "plain": 1, "open": inf, "never": 0}
ODD = [None, nan, inf, -inf, 1e300, -1e300, 5e-324, -0.0]
ENDS = [0.0, 100.0, nextafter(100.0, 0), nextafter(0.0, -1), nextafter(100.0, 101), -1e9, 1e9, 2.0**62]
HALVES = [0.5, 1.5, 99.5, nextafter(0.5, 0), nextafter(99.5, 100), 49.5, 2.0009765625, 2.49951171875]
# fmt: off
NAMES = ["7", " 7", "7.0", "7.00\n", "\u00e9", "e\u0301", "a\u00a0", "a", "A", "\ufeffA", "v.0.0", "7 .0",
         "it's", ".0", "70", "7.05", "\u212b", "\u00c5", "\ufb01", "fi", "\u20037", "7\x0b", "7\n.0", "-0",
         "0.0", "\u200b7", "\r7\r\n", "\u1100\u1161", "\uac00"]
# fmt: on
DAYS = [None, date(2020, 1, 1), date(2020, 1, 31), date(2020, 2, 1), date(1969, 12, 31), date(2400, 2, 29)]
MOMENTS = [
    None,
    datetime(2020, 1, 1),
    datetime(2020, 1, 1, 0, 0, 0, 500_000),
    datetime(2020, 1, 1, 23, 59, 59, 999_999),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
]
LEVELS = [0.1, 0.29, 1.0, 2.5, inf, 1.1, 1e6]
NEARLY_NOTHING = [0.0, 1e-9, 0.000001, 0.00000099]
EXACT = ["0.10000000", "0.29999999", "1.00000000", "0.00000199", "2.50000000", "7.00000001"]


def table_of(seed, rows=70):
    """A random table, as a list of rows."""
    pick = Random(seed)

    def row():
        return {
            "id": pick.choice(NAMES),
            "k": pick.randrange(20),
            "f": pick.choice([0.0, -0.0, 1.0, 2.5, 3.0, 1e15, 0.1, -7.0, 2.0**53]),
            "x": pick.choice([*ODD, *ENDS, *HALVES, *(round(pick.uniform(-9, 110), 3) for _ in range(16))]),
            "z": pick.choice(ODD) if pick.random() < 0.1 else pick.uniform(-1, 3),
            "n": pick.choice([None, Decimal(pick.randrange(-2000, 5000)) / 1000]),
            "i": pick.choice([None, 0, 1, 2, 3, -1, 2**53 + 1]),
            "b": pick.choice([None, True, False]),
            "c": pick.choice([None, "u", "v", "V", "it's", "u ", 'a "b"']),
            "g": pick.choice([None, 1, 2, 3]),
            "d": pick.choice(DAYS),
            "t": pick.choice(MOMENTS),
            "e": pick.choice(LEVELS if pick.random() < 0.9 else NEARLY_NOTHING),
            "level": Decimal(pick.choice(EXACT)),
            "tier": pick.choice([*TIERS, None, None] if pick.random() < 0.4 else ["plain", "open"]),
        }

    return [row() for _ in range(rows)]


def asked(statistic, **arguments):
    return {"statistic": statistic, **arguments}


X = {"column": "x", "bounds": (0, 100), "step": 1}
AROUND = {"column": "x", "bounds": (-1, 3), "step": 0.5}
PARTS = {
    "everyone": {},
    "where": {"where": "NOT (i = 1 OR c = 'u') AND (x < 50 OR x IS NULL)"},
    "by": {"by": "g", "keys": [3, 1]},
    "where and by": {"where": "b <> FALSE OR c IN ('v', 'it''s')", "by": "c", "keys": ["u", "it's", "v"]},
}
STATISTICS = {
    "mean": asked("mean", **X),
    "mean of many cells": asked("mean", column="x", bounds=(0.1, 32)),
    "mean, missing is 7": asked("mean", **X, missing=7.5),
    "mean of those who have one": asked("mean", **AROUND, missing="exclude"),
    "mean of decimals": asked("mean", column="n", bounds=(-1, 3), step=0.001),
    "mean of whole numbers": asked("mean", column="i", bounds=(0, 4)),
    "sum": asked("sum", **AROUND),
    "sum from above zero": asked("sum", column="x", bounds=(7, 100), step=0.5, missing=7),
    "sum of those who have one": asked("sum", column="x", bounds=(-9, -1), step=1, missing="exclude"),
    "count": asked("count"),
    "edges": asked("histogram", column="x", edges=[0, 0.5, 50, 99.5, 100]),
    "edges, missing apart": asked("histogram", column="n", edges=[-1, 0.1, 1], missing="unknown"),
    "categories": asked("histogram", column="c", categories=["v", "u", "it's"]),
    "categories, others with u": asked("histogram", column="c", categories=["v", "u"], missing="u"),
    "numbers as categories": asked("histogram", column="i", categories=[1, 0], missing=-5),
    "median": asked("median", **X),
    "median of many points": asked("median", column="x", bounds=(-1, 3)),
    "quantiles": asked("quantile", p=[0.25, 0.75], **AROUND, missing=3),
    "min": asked("min", **X, missing=100),
    "max": asked("max", **AROUND, missing="exclude"),
    "regression": asked(
        "regression",
        target="x",
        features=["c", "z", "i"],
        bounds={"x": (0, 100), "z": (-0.1, 0.3), "i": (0, 3)},
        categories={"c": ["u", "v", "it's"]},
    ),
}
OTHERS = {
    "count where": asked("count", where="x >= 0.5 AND NOT c = 'u' OR n = 0.125"),
    "count of missing": asked("count", where="x IS NULL OR n IS NOT NULL AND NOT i IS NULL"),
    "count by value": asked("count", where="i IN (1, 2) AND i NOT IN (2, 3) OR NOT x <= 2.5e0"),
    "count of true": asked("count", where="NOT b = TRUE"),
    "count by two columns": asked("count", by=["g", "c"], keys={"c": ["u", "it's"], "g": [3, 1, 2]}),
    "mean by two columns": asked(
        "mean", **X, where="x < 50 OR x IS NULL", by=["b", "i"], keys={"b": [False, True], "i": [2, 0]}
    ),
    "median by three columns": asked(
        "median", **AROUND, by=["b", "c", "g"], keys={"b": [True], "c": ["v", "u"], "g": [1, 3]}
    ),
    "histogram by two columns": asked(
        "histogram", column="c", categories=["u", "v"], by=["g", "b"], keys={"g": [1, 2], "b": [True, False]}
    ),
    "count by a column and its rest": asked("count", by="c", keys=["u", "v"], rest="other"),
    "sum by two columns and a rest": asked(
        "sum", **X, by=["g", "b"], keys={"g": [1, 2], "b": [True]}, rest={"b": "not"}, where="x > 1"
    ),
    "count of days": asked("count", where="d > '2020-01-30' OR t < '1970-01-01'"),
    "count of moments": asked("count", where="NOT t = '2020-01-01 00:00:00.5' AND t IS NOT NULL"),
    "proportion": asked("proportion", condition="x >= 0.5 AND NOT c = 'u' OR n = 0.125"),
    "proportion, none missing": asked("proportion", condition="NOT x >= 0.5 OR b = TRUE", missing="none"),
    "proportion of missing": asked("proportion", condition="x IS NULL OR n IS NOT NULL AND NOT i IS NULL"),
    "std": asked("std", **X),
    "covariance": asked("covariance", column="x", other="i", bounds={"x": (0, 100), "i": (-2, 4)}),
    "correlation": asked("correlation", column="i", other="x", bounds={"x": (0, 100), "i": (-2, 4)}),
    "correlation, none missing": asked(
        "correlation", column="x", other="n", bounds={"x": (0, 100), "n": (-1, 1)}, missing="none"
    ),
    "covariance, none missing": asked(
        "covariance", column="n", other="x", bounds={"x": (0.5, 99.5), "n": (-1, 1)}, missing="none"
    ),
    "median of days": asked("median", column="d", bounds=(date(2020, 1, 1), date(2020, 3, 1))),
    "days of moments": asked("min", column="t", bounds=(date(2019, 1, 1), DAYS[3]), missing="exclude"),
    "quantile of moments": asked(
        "quantile",
        column="t",
        p=0.25,
        bounds=(datetime(2020, 1, 1), datetime(2020, 1, 2)),
        step=timedelta(seconds=1),
        missing=datetime(2020, 1, 1, 6),
    ),
}
ROWS = {
    "rows": asked("rows", max=3),
    "mean of sums": asked("mean", **X, per_person="sum"),
    "median of the largest": asked("median", **AROUND, per_person="max"),
    "max of the smallest": asked("max", **X, per_person="min"),
    "variance of sums": asked("variance", **AROUND, per_person="sum"),
    "edges of sums": asked("histogram", column="i", edges=[-2, 0, 1, 2.5, 4], per_person="sum"),
    "edges of the smallest": asked("histogram", column="x", edges=[0, 0.5, 50, 99.5, 100], per_person="min"),
    "edges of the largest": asked("histogram", column="n", edges=[-1, 0.1, 1], per_person="max"),
}
"""Of tables that say whose rows are whose."""
UP_TO_TWO = {
    "categories": asked("histogram", column="c", categories=["v", "u", "it's"], at_most=2),
    "categories of some": asked(
        "histogram", column="c", categories=["v", "u", "it's"], missing="w", where="x > 1", at_most=2
    ),
    "numbers": asked("histogram", column="i", categories=[3, 1, 0], missing=0, at_most=3),
    "truths": asked("histogram", column="b", categories=[True, False], at_most=2),
    "mean": asked("mean", **X, by="g", keys=[3, 1, 2], at_most=2),
    "mean of some": asked("mean", **X, missing="exclude", by="c", keys=["u", "it's", "v"], at_most=2),
    "count": asked("count", where="x IS NOT NULL", by="i", keys=[0, 1, 2, 3], at_most=3),
    "variance": asked("variance", **X, by="b", keys=[True, False], at_most=2),
    "covariance": asked(
        "covariance",
        column="x",
        other="i",
        bounds={"x": (0, 100), "i": (-2, 4)},
        by="g",
        keys=[3, 1, 2],
        at_most=2,
    ),
    "proportion": asked("proportion", condition="x > 1 OR i = 0", by="g", keys=[3, 1, 2], at_most=2),
    "quantile": asked("quantile", p=0.25, **AROUND, by="c", keys=["u", "it's", "v"], at_most=2),
    "rows": asked("rows", max=2, by="g", keys=[3, 1, 2], at_most=2),
    "mean and the rest": asked("mean", **X, by="c", keys=["u", "it's"], rest="other", at_most=2),
    "sum by two columns": asked(
        "sum", **X, by=["g", "c"], keys={"g": [3, 1, 2], "c": ["u", "it's", "v"]}, at_most=2
    ),
    "regression": {**STATISTICS["regression"], "by": "g", "keys": [3, 1, 2], "at_most": 2},
}
"""Somebody may be in several groups or categories."""
OPENED = {
    "levels": {"epsilon": "e"},
    "levels of people": {"epsilon": "e", "user": "id"},
    "decimals of people": {"epsilon": "level", "user": "k"},
    "tiers": {"epsilon": "tier", "tiers": TIERS, "default": "strict"},
    "tiers of people": {"epsilon": "tier", "tiers": TIERS, "default": 0.3, "user": "f"},
    "one level": {"epsilon": 0.5, "user": "id"},
    "who is there is private": {"epsilon": "e", "neighbors": "add-remove"},
    "people who are there": {"epsilon": "e", "user": "id", "neighbors": "add-remove"},
}
ANYBODY = accord.Spec.of([1.0] * 3)
ROSTER = {0.1: 90, 0.29: 90, 1.0: 90, inf: 90}


def questions(opened):
    """Every statistic about every part, as far as the table can be asked."""
    named = ROWS if "user" in OPENED[opened] else {}
    yield from OTHERS.items()
    for name, question in (STATISTICS | named).items():
        for part, arguments in PARTS.items():
            yield f"{name}, {part}", {**question, **arguments}
    for name, question in UP_TO_TWO.items() if named else ():
        yield f"{name}, in up to two", question


# ---- accord and the reference, brought to one form


def neighbors_of(opened):
    return OPENED[opened].get("neighbors", "replace")


def in_accord(question):
    return getattr(accord, question["statistic"])(**{k: v for k, v in question.items() if k != "statistic"})


def level_in_reference(micro):
    return inf if micro == PUBLIC else micro


def spec_in_accord(spec):
    levels = dict(zip(map(level_in_reference, spec.micro.tolist()), spec.people.tolist(), strict=True))
    return levels, spec.opted_out


def opened_in_accord(source, opened):
    options = OPENED[opened]
    roster = {"roster": accord.Spec.from_groups(ROSTER)} if "neighbors" in options else {}
    return accord.table(source, **options, **roster)


def people_in_reference(rows, opened, module=reference):
    options = {name: value for name, value in OPENED[opened].items() if name != "neighbors"}
    if "neighbors" in OPENED[opened]:
        options["roster"] = [module.millionths(level) for level in ROSTER]
    return module.people(rows, **options)


def as_typed(rows):
    return rows


def as_text(rows):
    """As a file without types holds them."""
    return [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]


def as_objects(rows):
    """As lists hold them, in which NaN is missing."""
    return as_text({name: None if value != value else value for name, value in row.items()} for row in rows)


@cache
def people_of(seed, opened, as_read=as_typed):
    return people_in_reference(as_read(table_of(seed)), opened)


@cache
def expected(name, seed, opened, as_read=as_typed):
    """The integers of a question, by the reference."""
    neighbors = neighbors_of(opened)
    return reference.summary(dict(questions(opened))[name], people_of(seed, opened, as_read), neighbors)


@cache
def planned(name, opened):
    """A plan for the question: what it adds noise to depends on nobody."""
    question = dict(questions(opened))[name]
    return accord.plan(ANYBODY, in_accord(question), neighbors=neighbors_of(opened))


def differences(source, seed, opened, as_read=as_typed, only=lambda place: True):
    """Which questions accord and the reference answer differently."""
    spec, table = reference.spec(people_of(seed, opened, as_read)), opened_in_accord(source, opened)
    different = [] if "neighbors" in OPENED[opened] or spec_in_accord(table.spec()) == spec else ["spec"]
    for place, (name, _) in enumerate(questions(opened)):
        if only(place) and integers(table, planned(name, opened)) != expected(name, seed, opened, as_read):
            different.append(name)
    return different


def arrow(rows, folder=None):
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, (_, kind) in TYPES.items()})


def pandas(rows, folder):
    return arrow(rows).to_pandas()


def relation(rows, folder):
    return duckdb.connect().from_arrow(arrow(rows))


def parquet(rows, folder):
    pq.write_table(arrow(rows), folder / "people.parquet", row_group_size=9)
    return folder / "people.parquet"


def text(rows, folder):
    """A CSV file, in which nothing has a type."""
    with (folder / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, TYPES)
        writer.writeheader()
        writer.writerows(rows)
    return folder / "people.csv"


def lists(rows, folder):
    return {name: [row[name] for row in rows] for name in TYPES}


FORMS = dict.fromkeys((arrow, parquet, relation, pandas), as_typed) | {text: as_text, lists: as_objects}


def some(of, count):
    """Every `count`-th question: the forms of tables, and how they are opened, share all of them."""
    return lambda place: place % count == of


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_in_duckdb(form, opened, tmp_path):
    only = some((2 * [*FORMS].index(form) + [*OPENED].index(opened)) % 12, 12)
    assert differences(form(table_of(1), tmp_path), 1, opened, FORMS[form], only) == []


EVERY_SECOND = [
    (form, opened) for k, form in enumerate(FORMS) for j, opened in enumerate(OPENED) if (k + j) % 2
]
"""Of the forms and the ways in which they are opened, which all meet in `test_in_duckdb`."""


@pytest.mark.slow
@pytest.mark.parametrize(("form", "opened"), EVERY_SECOND, ids=lambda each: getattr(each, "__name__", each))
def test_another_table_in_duckdb(form, opened, tmp_path):
    assert differences(form(table_of(2), tmp_path), 2, opened, FORMS[form]) == []


def in_postgresql(url, seed):
    make(url, "people", TYPES)
    fill(url, "people", TYPES, [tuple(row.values()) for row in table_of(seed)])
    return at(url, "people")


@pytest.mark.postgres
def test_in_postgresql(postgres_url):
    source = in_postgresql(postgres_url, 1)
    for place, opened in enumerate(OPENED):
        assert differences(source, 1, opened, only=some(place, len(OPENED))) == []


@pytest.mark.slow
@pytest.mark.postgres
def test_many_tables_in_postgresql(postgres_url):
    for seed in range(2, 4):
        source = in_postgresql(postgres_url, seed)
        for opened in OPENED:
            assert differences(source, seed, opened) == []


def in_spark(session, seed):
    kinds = {"text": "string", "double precision": "double", "timestamp": "timestamp_ntz"}
    schema = ", ".join(
        f"{name} {kinds.get(kind, kind.replace('numeric', 'decimal'))}" for name, (kind, _) in TYPES.items()
    )
    return session.createDataFrame([tuple(row.values()) for row in table_of(seed)], schema)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark(session):
    source = in_spark(session, 1)
    for opened, first in (("levels of people", 3), ("tiers", 20)):
        assert differences(source, 1, opened, only=some(first, 25)) == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_more_in_spark(session):
    source = in_spark(session, 2)
    for place, opened in enumerate(OPENED):
        if OPENED[opened].get("user") == "f":
            continue  # Spark writes fractions otherwise, and a tie between groups may go otherwise by that
        assert differences(source, 2, opened, only=some(place, 16)) == []


@pytest.mark.parametrize("opened", ["levels", "people who are there", "tiers"])
def test_how_many_people_have_each_integer(opened):
    """As `sample` reads them, where it takes every person's own integer."""
    table = opened_in_accord(arrow(table_of(3)), opened)
    people, neighbors = people_in_reference(table_of(3), opened), neighbors_of(opened)
    names = (
        "mean, missing is 7",
        "sum",
        "sum from above zero",
        "sum of those who have one",
        "edges",
        "median",
    )
    for name in names:
        for part in ("everyone", "where") if "mean" not in name else ("everyone",):
            question = STATISTICS[name] | PARTS[part]
            plan = accord.plan(ANYBODY, in_accord(question), neighbors=neighbors)
            expected = reference.summary(question, people, neighbors, each=True)
            assert integers(table, plan, by_cell=True) == expected


@pytest.mark.parametrize(
    "by", [{"by": "g", "keys": [2, 0]}, {"by": ["g", "i"], "keys": {"g": [2], "i": [0, 1]}}]
)
@pytest.mark.parametrize("user", [None, "k"])
@pytest.mark.parametrize("missing", ["middle", "exclude"])
def test_public_groups(user, missing, by):
    """Tables of their own, with their own levels; somebody's level is that of all their rows."""
    rows = [row | {"g": row["k"] % 4, "i": row["k"] // 4 % 2} for row in table_of(4)]
    question = {
        **STATISTICS["mean"],
        "missing": missing,
        "where": "k <> 8",
        **by,
        "membership": "public",
    }
    inner, groups = reference.public_groups(question, reference.people(rows, epsilon="e", user=user))
    tables = accord.table(arrow(rows), epsilon="e", user=user).groups(in_accord(question).part)
    assert len(groups) == len(tables) == 2
    plan = accord.plan(ANYBODY, in_accord(inner))
    for people, table in zip(groups, tables.values(), strict=True):
        assert people and spec_in_accord(table.spec()) == reference.spec(people)
        assert integers(table, plan) == reference.summary(inner, people)


def test_nobody_is_in_two_public_groups():
    rows, question = table_of(4), asked("mean", **X, by="g", keys=[1, 2, 3], membership="public")
    with pytest.raises(reference_values.Refused, match="several groups"):
        reference.public_groups(question, reference.people(rows, epsilon=1.0, user="k"))
    with pytest.raises(QueryError, match="several of the groups"):
        accord.table(arrow(rows), epsilon=1.0, user="k").plan(in_accord(question))


# fmt: off
GRIDS = ((0, 1, 2), (-1, 0.1, 100), (0.1, 0.3, 7), (1e6, 1e-9, 2**20), (-3.7, 7, 3), (2.0**53, 1, 10),
         (-1e17, 1, 99), (0, 1e80, 2**20), (0, 2.0**-40, 1000))
# fmt: on


@pytest.mark.parametrize(("low", "step", "cells"), GRIDS)
def test_cells_at_every_half_step(low, step, cells):
    """Values next to the middle between two cells, and next to the bounds, one or many a person."""
    pick, exact = Random(cells), reference_values.decimal(low)
    ends = exact, exact + cells * reference_values.decimal(step)
    bounds = tuple(int(end) if end.denominator == 1 else float(end) for end in ends)
    rows = []
    for k in range(60):
        place = pick.randrange(-1, cells + 1) + Fraction(pick.randrange(5), 4)
        middle = float(exact + reference_values.decimal(step) * place)
        next_to = nextafter(middle, inf), nextafter(middle, -inf)
        near = pick.choice([middle, *next_to, float(bounds[1]), 1e300, None])
        rows.append({"id": k % 23, "x": near, "z": middle, "e": 1.0})
    source = pa.table({name: pa.array([row[name] for row in rows]) for name in rows[0]})
    asking = [asked(name, column="x", bounds=bounds, step=step) for name in ("mean", "sum", "median", "min")]
    edges = {*bounds, *(row["z"] for row in rows[:3] if bounds[0] < row["z"] < bounds[1])}
    asking.append(asked("histogram", column="x", edges=sorted({*edges, 2 * abs(bounds[1]) + 1})))
    if abs(low) < 10**12 * (ends[1] - ends[0]):  # else a regression's bounds are too near to each other
        asking.append(asked("regression", target="x", features=["z"], bounds={"x": bounds, "z": bounds}))
    for user in (None, "id"):
        people = reference.people(rows, epsilon="e", user=user)
        table = accord.table(source, epsilon="e", user=user)
        for question in asking:
            plan = accord.plan(ANYBODY, in_accord(question))
            assert integers(table, plan) == reference.summary(question, people), question


# ---- refusals

BAD = {
    "no level": ([None, None, 1.0, 0.5, None], {}, "no level", "without a level|no level"),
    "NaN": ([nan, 1.0, 1.0, 0.5, nan], {"default": 1.0}, "a level that is none", "NaN|not a number"),
    "below zero": ([0.1, 1.0, -0.1, 0.5, -inf], {}, "a level that is none", "negative|not a number"),
    "too large": ([1e6, 1e7, 1.0, 0.5, 0.1], {}, "a level that is none", "larger|not a number"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("user", [None, "id"])
def test_levels_that_are_refused(case, user):
    """With the number of people: of rows, or of people who have such a row."""
    levels, options, reason, text = BAD[case]
    rows = [{"id": name, "e": level} for name, level in zip("abbca", levels, strict=True)]
    with pytest.raises(reference_values.Refused, match=reason) as expected:
        reference.people(rows, epsilon="e", user=user, **options)
    counted = str(expected.value).partition(" people")[0]
    source = pa.table({name: pa.array([row[name] for row in rows]) for name in ("id", "e")})
    with pytest.raises(SpecError, match=f"{counted} people.*({text})"):
        accord.table(source, epsilon="e", user=user, **options).spec()


def test_tiers_that_are_not_declared_and_rows_of_nobody():
    rows = [{"id": name, "tier": tier} for name, tier in zip("aab", ["open", "Open", "strict"], strict=True)]
    for source, wrong, counted, text in (
        (rows, "tier", "1 of 2 people", "tier 'Open' of 1 people is not declared"),
        ([*rows[::2], {"id": None, "tier": "open"}], "id", "1 rows", "1 rows"),
    ):
        columns = {name: [row[name] for row in source] for name in ("id", "tier")}
        with pytest.raises(reference_values.Refused, match=counted):
            reference.people(source, epsilon="tier", tiers=TIERS, user="id")
        with pytest.raises(SpecError if wrong == "tier" else SourceError, match=text):
            accord.table(pa.table(columns), epsilon="tier", tiers=TIERS, user="id").spec()


# fmt: off
SPELLED = ["0.1", " 0.1 ", "+0.1", ".1", "1.", "1e-1", "1E0", "9e-7", "inf", "+Infinity", "-inf", "nan", "-1",
           "-0.0", "1_0", "0x1", "1000000", "1000000.5", "1e400", "0.29999999999999999999", "0.2999999", "",
           "abc", "true", "1,0", "1.2.3"]
# fmt: on


@pytest.mark.parametrize(
    "level", [*SPELLED, Decimal("0.29999999999999999999"), 0.29, 0.7, 1.1, 2.3e-6, 4, nextafter(1.0, 0)]
)
def test_a_level_is_rounded_down_by_its_decimal_value(level):
    try:
        right = [reference.millionths(level)]
    except reference_values.Refused:
        right = None
    try:
        spec = accord.table({"e": [level]}, epsilon="e").spec()
    except SpecError:
        assert right is None
    else:
        assert right == [level_in_reference(micro) for micro in spec.micro.tolist() or [0]]


# ---- charges and chances

PUBLIC_LEVELS = [0.000002, 0.01, 0.1, 0.29, 0.7, 1.0, 2.5, 30.0, 1500.0, 999_999.999999, inf]
CHARGED = ("mean", "sum", "count", "edges", "categories", "median", "max", "regression")


def specs(seed):
    pick = Random(seed)
    for _ in range(2):
        levels = pick.sample(PUBLIC_LEVELS, pick.randrange(1, 6))
        yield accord.Spec.from_groups({level: pick.randrange(1, 4000) for level in levels} | {0: 9})


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_nobody_is_charged_more_than_their_share(neighbors):
    """By no mechanism, whatever is asked; twice half of it where they may count twice."""
    seen = set()
    for place, (name, part) in enumerate(product(CHARGED, PARTS)):
        question = STATISTICS[name] | PARTS[part]
        for spec in specs(place):
            for share in (1.0, 0.3, 0.029):
                try:
                    plan = accord.plan(spec, in_accord(question), share=share, neighbors=neighbors)
                except accord.errors.PlanError as why:  # nobody has a millionth left
                    assert "less than a millionth" in str(why)
                    continue
                counts = reference.times(question, neighbors)
                assert plan.times == counts
                for candidate in (c for c in plan.candidates if c.calibration is not None):
                    seen.add(candidate.mechanism)
                    each, whole = candidate.calibration.charges.tolist(), candidate.cost.tolist()
                    for level, once, cost in zip(spec.micro.tolist(), each, whole, strict=True):
                        level = level_in_reference(level)
                        assert level_in_reference(once) <= reference.most_charge(level, share, counts)
                        assert level_in_reference(cost) <= reference.most_charge(level, share)
    assert seen >= {"minimum", "threshold", "affine", "sample"}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_chances_are_not_above_the_exact_ones(neighbors):
    """And not noticeably below them."""
    for place, (name, part) in enumerate(product(("mean", "median", "count"), PARTS)):
        question = STATISTICS[name] | PARTS[part]
        for spec in specs(place):
            for share, t in ((1.0, None), (0.3, "max"), (1.0, "mean"), (1.0, 0.5), (0.9, 2000.0)):
                try:
                    plan = accord.plan(spec, in_accord(question), "sample", share, t=t, neighbors=neighbors)
                except accord.errors.PlanError:  # it keeps nobody, or cannot answer
                    continue
                sampled, counts = plan.calibration, reference.times(question, neighbors)
                for level, kept in zip(spec.micro.tolist(), sampled.keep.tolist(), strict=True):
                    able = reference.most_charge(level_in_reference(level), share, counts)
                    low, high = reference.chance(
                        able, level_in_reference(sampled.t), plan.target.relation.name
                    )
                    assert low - Fraction(3, 10**9) * low - Fraction(1, SURE) <= Fraction(kept, SURE) <= high


def test_chances_reckoned_by_hand():
    assert reference.chance(10**6, 10**6) == (1, 1) == reference.chance(inf, inf) == reference.chance(inf, 5)
    assert reference.chance(10**6, inf) == (0, 0) == reference.chance(0, 10**6)
    low, high = reference.chance(100_000, 1_000_000, "add-remove")
    assert low < high and abs(float(high) - expm1(0.1) / expm1(1)) < 1e-15
    low, high = reference.chance(100_000, 1_000_000)
    pi, s = float(low), 0.5
    assert abs(log((1 - pi + pi * exp(s)) / (1 - pi + pi * exp(-s))) - 0.1) < 1e-14  # the loss of two values


# ---- what the comparison can see

FILES = (reference_values, reference)
"""The second one uses the first."""
WRONG = {
    "the laxest level": ("who: min(max(0, level or 0)", "who: max(max(0, level or 0)"),
    "levels rounded to the nearest": ("floor(Fraction(text) * MILLION)", "round(Fraction(text) * MILLION)"),
    "opted out is read": ("if person.level else []", "if True else []"),
    "no level is public": ("return declared[default] if", "return PUBLIC if True else declared[default] if"),
    "ids as they are spelled": ('unicodedata.normalize("NFC", str(name))', "str(name)"),
    "7.0 is not 7": ('re.sub(r"\\.0+\\Z", "", text)', "text"),
    "halves rounded down": ("floor((x - low) * factor + 0.5))", "-floor((low - x) * factor + 0.5))"),
    "means rounded down": ("floor(Fraction(total, parts) + HALF)", "floor(Fraction(total, parts))"),
    "clipped row by row": ("return FARTHEST\n", "return 0\n"),
    "missing at the lower end": ("return missing\n    return 0 if", "return 0\n    return 0 if"),
    "NULL inside NOT": ("return None if truth is None else not truth", "return not truth"),
    "unknown or false is false": ("None if None in seen else False", "False"),
    "AND before NOT": ("inner = _test(tokens)", "inner = _all(tokens)"),
    "the rarest group": ("key=lambda k: (-times[k],", "key=lambda k: (times[k],"),
    "ties by the order of the list": ("tie(name, values[k])))", "k))"),
    "ties alike for everyone": ('f"{name}:{spelled}".encode()', 'f"{spelled}".encode()'),
    "in one group more": ("by_frequency[:at_most] if", "by_frequency[:at_most + 1] if"),
    "in one category more": ("return places[:at_most] or", "return places[:at_most + 1] or"),
    "all rows of a member": ("if k == chosen]", "if k is not None]"),
    "who is outside is left out": ("if not rows and not (stays and", "if not rows and not (False and"),
    "edges belong to the cell before": ("values[0] >= float(edge)", "values[0] > float(edge)"),
    "the largest is the smallest": ('min(whole) if come_to == "min"', 'max(whole) if come_to == "min"'),
    "a category's own square": ("if a[1] is None or a[1] != b[1]]", "]"),
    "one sum under add-remove": ("(partly or neighbors in COMING)", "partly"),
}  # fmt: skip


def with_mistake(monkeypatch, old, new):
    """The reference with one mistake, in one of its two files."""
    sources = {module.__name__: Path(module.__file__).read_text(encoding="utf-8") for module in FILES}
    assert sum(source.count(old) for source in sources.values()) == 1, old
    for name, source in sources.items():
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)  # where the other file, and dataclasses, look for it
        exec(compile(source.replace(old, new), name, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_seen(mistake, monkeypatch):
    """Some table, opened in some way, tells the wrong reference from accord."""
    module = with_mistake(monkeypatch, *WRONG[mistake])
    for opened in ("levels of people", "levels", "tiers", "decimals of people", "people who are there"):
        people, right = people_in_reference(table_of(1), opened, module), reference.spec(people_of(1, opened))
        table = opened_in_accord(arrow(table_of(1)), opened)
        if "neighbors" not in OPENED[opened] and module.spec(people) != right:
            assert spec_in_accord(table.spec()) == right
            return
        for name, question in questions(opened):
            wrong = module.summary(question, people, neighbors_of(opened))
            if wrong != expected(name, 1, opened):
                assert integers(table, planned(name, opened)) == expected(name, 1, opened)
                return
    pytest.fail("nothing shows it")


def test_it_shares_no_code():
    names = set()
    for module in FILES:
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
    assert {name.partition(".")[0] for name in names - {reference_values.__name__}} <= sys.stdlib_module_names
