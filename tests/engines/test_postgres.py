"""A table in PostgreSQL gives the same integers as the same rows in DuckDB, and tells nothing else."""

import contextlib
import datetime
import os
import secrets
import signal
import threading
import time
from decimal import Decimal
from itertools import product
from math import inf, nan, nextafter
from unittest.mock import patch

import duckdb
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import accord
from accord.engines import postgres
from accord.errors import AccordError, LedgerError, QueryError, SourceError, SpecError
from accord.statistics import Grouped

pytestmark = pytest.mark.postgres

HUGE = 1.7976931348623157e308
DATES = (datetime.date(2020, 1, 1), datetime.date(2020, 3, 1))
MOMENTS = (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2))
REGIONS = ["north", "it's", 'a "b"', "ñ☃", "back\\slash"]
TYPES = {
    "u": ("text", pa.string()),
    "v": ("double precision", pa.float64()),
    "f": ("real", pa.float32()),
    "i": ("bigint", pa.int64()),
    "n": ("numeric(12, 3)", pa.decimal128(12, 3)),
    "r": ("varchar", pa.string()),
    "b": ("boolean", pa.bool_()),
    "d": ("date", pa.date32()),
    "t": ("timestamp", pa.timestamp("us")),
    "e": ("double precision", pa.float64()),
    "tier": ("text", pa.string()),
}
QUERIES = {
    "mean": accord.mean("v", bounds=(-64, 64), step=0.25),
    "mean on the default grid": accord.mean("v", bounds=(0, 32)),
    "mean on a coarse grid": accord.mean("v", bounds=(0, 2**60)),
    "mean on a fine grid": accord.mean("v", bounds=(0.1, 0.3)),
    "mean, missing is 7": accord.mean("v", bounds=(0, 32), step=1, missing=7),
    "mean of those who have one": accord.mean("v", bounds=(0, 32), missing="exclude"),
    "mean of single precision": accord.mean("f", bounds=(-1, 3)),
    "mean of whole numbers": accord.mean("i", bounds=(0, 10**9)),
    "mean of decimals": accord.mean("n", bounds=(-1, 3), step=0.001),
    "mean of true and false": accord.mean("b", bounds=(0, 1)),
    "mean where": accord.mean("v", bounds=(0, 32), where="r = 'north' OR b = TRUE"),
    "mean by": accord.mean("v", bounds=(-1, 3), by="r", keys=REGIONS),
    "sum": accord.sum("v", bounds=(-1, 3), step=0.5),
    "sum far from 0": accord.sum("v", bounds=(2**30, 2**31), step=2**-8),
    "sum of many steps": accord.sum("v", bounds=(-(2**21), 2**21), step=1),
    "sum where": accord.sum("v", bounds=(-1, 3), where="NOT r IN ('north', 'it''s') AND d > '2020-01-31'"),
    "count": accord.count(),
    "count where": accord.count(where="v >= 2.5 AND NOT r = 'it''s'"),
    "count of moments": accord.count(
        where="t >= '2020-01-01 12:00:00' OR t < '1970-01-01' OR d = '2020-02-29'"
    ),
    "count of missing": accord.count(where="v IS NULL OR n IS NULL OR d IS NULL OR r IS NULL"),
    "count of true": accord.count(where="b <> FALSE"),
    "count of numbers": accord.count(where="i > 9007199254740992 OR n = 0.125 OR f <= 0.1 OR v IN (0, 2.5)"),
    "count by": accord.count(where="v > 0", by="i", keys=[1, 2, 3]),
    "proportion": accord.proportion("v >= 2.5 AND NOT r = 'it''s' OR n = 0.125"),
    "proportion, none missing": accord.proportion("NOT v >= 2.5", missing="none"),
    "proportion of missing": accord.proportion("v IS NULL OR n IS NULL"),
    "proportion by": accord.proportion("t >= '2020-01-01 12:00:00' OR b", by="i", keys=[1, 2, 3]),
    "covariance": accord.covariance("v", "n", bounds={"v": (-1, 3), "n": (0, 1)}),
    "correlation": accord.correlation("n", "v", bounds={"v": (-1, 3), "n": (0, 1)}),
    "covariance where": accord.covariance(
        "i", "b", bounds={"i": (0, 2**53), "b": (0, 1)}, missing="none", where="v > 0"
    ),
    "covariance by": accord.covariance("v", "i", bounds={"v": (-1, 3), "i": (0, 9)}, by="r", keys=REGIONS),
    "edges": accord.histogram("v", edges=[-1, 0, 2.5, 32]),
    "edges, missing apart": accord.histogram("v", edges=[-64, 0, 64], missing="unknown"),
    "edges of decimals": accord.histogram("n", edges=[-1, 0.125, 1]),
    "categories": accord.histogram("r", categories=REGIONS),
    "categories, others apart": accord.histogram("r", categories=REGIONS, missing="other"),
    "numbers as categories": accord.histogram("v", categories=[0, 2.5]),
    "true and false as categories": accord.histogram("b", categories=[True, False]),
    "days as categories": accord.histogram("d", categories=["2020-01-31", "2020-02-29"]),
    "with and without a number": accord.statistics.reporting_missing(accord.mean("v", (0, 32)), 0.1).queries[
        1
    ],
    "with and without a day": accord.statistics.reporting_missing(accord.median("d", DATES), 0.1).queries[1],
    "edges of days": accord.histogram("d", edges=["1970-01-01", "2020-01-31", "2020-02-29", "2020-03-01"]),
    "edges of days of moments": accord.histogram("t", edges=["1969-12-31", "2020-01-01", "2020-01-02"]),
    "edges of moments": accord.histogram(
        "t", edges=["1969-12-31 12:00", "2020-01-01 00:00:00.5", "2020-01-02 00:00"], missing="unknown"
    ),
    "edges of moments of days": accord.histogram(
        "d", edges=["2020-01-01 12:00", "2020-02-01 12:00", "2021-01-01 12:00"]
    ),
    "median": accord.median("v", bounds=(-64, 64), step=0.25),
    "median of many cells": accord.median("v", bounds=(-1, 3)),
    "quantiles": accord.quantile("v", [0.25, 0.75], bounds=(0, 32), step=1),
    "quantile of days": accord.quantile("d", 0.25, bounds=DATES),
    "quantile of moments": accord.quantile("t", 0.25, bounds=MOMENTS, step=datetime.timedelta(seconds=1)),
    "days of moments": accord.median("t", bounds=DATES),
    "min": accord.min("v", bounds=(0, 3), step=1),
    "max": accord.max("v", bounds=(-1, 3), step=0.5),
    "max where": accord.max("v", bounds=(-1, 3), step=0.5, where="b"),
    "regression": accord.regression("v", ["n", "i"], bounds={"v": (-1, 3), "n": (0, 1), "i": (0, 2**53)}),
    "regression on categories": accord.regression(
        "f", ["r", "v"], bounds={"f": (0, 1), "v": (0, 10**15)}, categories={"r": REGIONS}
    ),
    "regression where": accord.regression("v", ["i"], bounds={"v": (-1, 3), "i": (0, 9)}, where="v > 0"),
}
ROWS_OF_PEOPLE = {"rows": accord.rows(3), "rows where": accord.rows(2, where="v > 0"), "rows by": accord.rows(9, by="r", keys=REGIONS)}  # fmt: skip


@pytest.fixture(scope="module")
def database(postgres_server):
    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def make(url, name, types):
    columns = ", ".join(f"{quoted(column)} {kind}" for column, (kind, _) in types.items())
    run(url, f"DROP TABLE IF EXISTS {quoted(name)}", f"CREATE TABLE {quoted(name)} ({columns})")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def fill(url, name, types, rows):
    """Put rows where others were."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {quoted(name)}")
        with cursor.copy(f"COPY {quoted(name)} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def in_arrow(types, rows):
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return pa.table(
        {
            name: pa.array(values, kind)
            for (name, (_, kind)), values in zip(types.items(), columns, strict=True)
        }
    )


def at(url, table):
    return f"{url}&table={table}"


def integers(people, query, by_cell=False):
    """Everything that a Summary has, in an order of its own; or how it is refused."""
    try:
        summaries = people.reader.summaries(query, by_cell=by_cell)
    except AccordError as refusal:
        return type(refusal), str(refusal)
    contents = []
    for summary in summaries:
        entries = {}
        for level, output, amount in zip(
            summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True
        ):
            assert type(amount) is int
            entries[level, output] = entries.get((level, output), 0) + amount
        contents.append(
            (summary.people.tolist(), summary.outputs, {k: v for k, v in sorted(entries.items()) if v})
        )
    return contents


SPECIAL = [None, nan, inf, -inf, HUGE, -HUGE, 5e-324, -5e-324, 1e-310, -0.0, 0.0]
ON_EDGES = [
    -64.0,
    64.0,
    -1.0,
    3.0,
    2.5,
    32.0,
    0.125,
    -0.125,
    nextafter(2.5, 0),
    nextafter(32.0, inf),
    nextafter(0.3, 0),
]
VALUES = [*SPECIAL, *ON_EDGES, 7.3, 1e9, -1e9, 2.0**30 + 0.25, 1e100, 2.0**62]
SINGLE = [None, nan, inf, -inf, 3.4028234663852886e38, 1e-45, 0.1, -0.5, 0.9999999]
WHOLE = [None, 0, 1, 2, 3, -1, 2**53 + 1, 2**63 - 1, -(2**63)]
DECIMALS = [None, Decimal("0.125"), Decimal("-0.001"), Decimal("2.999"), Decimal("999999999.999"), Decimal(0)]
DAYS = [
    None,
    datetime.date(2020, 1, 31),
    datetime.date(2020, 2, 29),
    datetime.date(1, 1, 1),
    datetime.date(9999, 12, 31),
]
INSTANTS = [
    None,
    datetime.datetime(2020, 1, 1, 12),
    datetime.datetime(2020, 1, 1, 0, 0, 0, 500000),
    datetime.datetime(2020, 1, 31, 23, 59, 59, 999999),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1, 1, 1),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
]
TEXTS = [*REGIONS, None, "", "North", "north ", "a\tb", "two\nlines", "NULL", "n\u0303", "\\N"]
LEVELS = [0.1, 1.0, inf, 2.5, 0.0, 1e-9]


def edge_rows():
    """Every special value, beside all sorts of others."""
    return [
        (
            f"p{k // 2}",
            v,
            SINGLE[k % len(SINGLE)],
            WHOLE[k % len(WHOLE)],
            DECIMALS[k % len(DECIMALS)],
            TEXTS[k % len(TEXTS)],
            [True, False, None][k % 3],
            DAYS[k % len(DAYS)],
            INSTANTS[k % len(INSTANTS)],
            LEVELS[(k // 3) % len(LEVELS)],
            ["strict", "open", "never"][k % 3],
        )
        for k, v in enumerate([*VALUES, *VALUES[::-1], *VALUES[::2]])
    ]


@pytest.fixture(scope="module")
def edges(database):
    make(database, "edges", TYPES)
    fill(database, "edges", TYPES, edge_rows())
    return at(database, "edges"), in_arrow(TYPES, edge_rows())


ROSTER = accord.Spec.from_groups({0.1: 50, 1.0: 60, 2.5: 70, inf: 80})
OPENED = {
    "replace": {"epsilon": "e"},
    "replace, by person": {"epsilon": "e", "user": "u"},
    "add-remove": {"epsilon": "e", "neighbors": "add-remove", "roster": ROSTER},
    "add-remove, by person": {"epsilon": "e", "user": "u", "neighbors": "add-remove", "roster": ROSTER},
    "one level": {"epsilon": 0.5},
    "tiers": {"epsilon": "tier", "tiers": {"strict": 0.1, "open": inf, "never": 0}},
    "tiers, by person": {"epsilon": "tier", "tiers": {"strict": 0.1, "open": inf, "never": 0}, "user": "u"},
}


@pytest.mark.parametrize("opened", OPENED)
def test_every_statistic_has_the_same_integers(edges, opened):
    here, there = (accord.table(source, **OPENED[opened]) for source in edges)
    if "roster" not in OPENED[opened]:
        assert here.spec() == there.spec()
    for name, query in (QUERIES | (ROWS_OF_PEOPLE if "user" in OPENED[opened] else {})).items():
        ours = integers(here, query)
        assert ours == integers(there, query), name
        assert isinstance(ours, list) and any(entries for _, _, entries in ours), name


@pytest.mark.parametrize("opened", ["replace", "add-remove, by person"])
def test_how_many_people_have_each_integer(edges, opened):
    here, there = (accord.table(source, **OPENED[opened]) for source in edges)
    for name in ("mean", "sum", "count where", "edges", "categories"):
        assert integers(here, QUERIES[name], by_cell=True) == integers(there, QUERIES[name], by_cell=True), (
            name
        )


def test_public_groups_have_the_same_integers(edges):
    for user in (None, "u"):
        query = accord.mean("v", bounds=(-1, 3), by="tier", keys=["strict", "open"], membership="public")
        assert isinstance(query, Grouped)
        here, there = (accord.table(source, epsilon=0.5, user=user) for source in edges)
        if user is not None:
            with pytest.raises(QueryError, match="people have rows in several"):
                here.plan(query)
            query = accord.mean("v", bounds=(-1, 3), by="u", keys=["p1", "p2"], membership="public")
        ours, theirs = (people.groups(query.part) for people in (here, there))
        assert list(ours) == list(theirs)
        for key in ours:
            assert ours[key].spec() == theirs[key].spec()
            assert integers(ours[key], query.query) == integers(theirs[key], query.query)


values = st.one_of(st.sampled_from(VALUES), st.integers(-(2**13), 2**13).map(lambda k: k / 64), st.floats())
rows = st.tuples(
    st.sampled_from(["a", "b", "c", "A", "a "]),
    values,
    st.one_of(st.sampled_from(SINGLE), st.none(), st.floats(width=32)),
    st.one_of(st.sampled_from(WHOLE), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.sampled_from(DECIMALS), st.decimals(-(10**8), 10**8, places=3)),
    st.one_of(
        st.sampled_from(TEXTS),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3),
    ),
    st.sampled_from([True, False, None]),
    st.one_of(st.sampled_from(DAYS), st.dates()),
    st.one_of(st.sampled_from(INSTANTS), st.datetimes()),
    st.one_of(st.sampled_from(LEVELS), st.sampled_from([None, nan, -1.0, 1e12])),
    st.sampled_from(["strict", "open", "never", None, "Strict"]),
)
asked = st.sampled_from(
    [*product(OPENED, QUERIES), *product([o for o in OPENED if "person" in o], ROWS_OF_PEOPLE)]
)


@given(st.lists(rows, max_size=7), st.lists(asked, min_size=3, max_size=3))
@example([], [("add-remove, by person", "sum"), ("replace", "mean"), ("tiers", "regression")])
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_rows_have_the_same_integers(tables, people, questions):
    fill(tables, "any", TYPES, people)
    arrow = in_arrow(TYPES, people)
    for opened, name in questions:
        query = (QUERIES | ROWS_OF_PEOPLE)[name]
        here, there = (accord.table(source, **OPENED[opened]) for source in (at(tables, "any"), arrow))
        assert integers(here, query) == integers(there, query), (opened, name)


@pytest.fixture(scope="module")
def tables(database):
    make(database, "any", TYPES)
    return database


def test_sums_beyond_64_bits(database):
    """2¹⁷ people with 2⁴⁰ steps each would fit; so they have many rows, of 2⁵⁰ steps."""
    people, amount = 0, 1  # the columns of a Summary
    run(
        database,
        "CREATE TABLE large AS SELECT 'a' || k % 2 AS u, 1e300::double precision AS v, 1.0 AS e FROM generate_series(1, 30000) AS k",
    )
    arrow = pa.table({"u": [f"a{k % 2}" for k in range(1, 30001)], "v": [1e300] * 30000, "e": [1.0] * 30000})
    here, there = (accord.table(source, epsilon="e", user="u") for source in (at(database, "large"), arrow))
    query = accord.sum("v", bounds=(0, 2**40), step=1)
    assert integers(here, query) == integers(there, query) == [([2], 2, {(0, people): 2, (0, amount): 2**41})]
    wide = here.reader.engine.fetch(
        "SELECT SUM(CAST(9223372036854775807 AS BIGINT)) AS total FROM generate_series(1, 9)", wide=("total",)
    )
    assert wide == {"total": [9 * (2**63 - 1)]}


def test_decimals_that_no_double_can_hold_are_missing(database):
    """A cast that fails on somebody's value would tell it."""
    cells = {
        "1e400": 50,
        "-1e400": 50,
        "NaN": 50,
        "Infinity": 50,
        "-Infinity": 50,
        "1e-400": 0,
        "-1e-400": 0,
        "99.5": 100,
        "1e308": 100,
    }
    cells |= {"1.7976931348623157e308": 100, "1.8e308": 50, "-1.7e308": 0, "0.49999": 0, "0.5": 1}
    rows = ", ".join(f"('{value}'::numeric, {k}, {k + 1})" for k, value in enumerate(cells))
    run(
        database,
        "DROP TABLE IF EXISTS decimals",
        f"CREATE TABLE decimals AS SELECT * FROM (VALUES {rows}) AS rows (n, u, e)",
    )
    missing = [int(cell == 50) for cell in cells.values()]
    for user in (None, "u"):
        people = accord.table(at(database, "decimals"), epsilon="e", user=user)
        for query, expected in (
            (accord.mean("n", bounds=(0, 100), step=1, missing="middle"), cells.values()),
            (accord.count(where="n IS NULL"), missing),
            (accord.count(where="n > -1 OR n <= -1"), [1 - m for m in missing]),
        ):
            assert list(people.reader.summary(query).rows()) == [[1, x] for x in expected]


@pytest.mark.parametrize(
    ("level", "refusal"),
    [
        ("NaN", "NaN or not a number"),
        ("1e400", "NaN or not a number"),
        ("-1", "negative"),
        ("1e20", "larger than"),
    ],
)
def test_levels_that_are_decimals(database, level, refusal):
    run(database, "DROP TABLE IF EXISTS decimals", f"CREATE TABLE decimals AS SELECT '{level}'::numeric AS e")
    with pytest.raises(SpecError, match=f"1 of 1 people have a level that is {refusal}"):
        accord.table(at(database, "decimals"), epsilon="e", default=1.0).spec()
    run(database, "UPDATE decimals SET e = 'Infinity'")
    assert accord.table(at(database, "decimals"), epsilon="e").spec().levels == (inf,)
    run(database, "UPDATE decimals SET e = 0.1")
    assert accord.table(at(database, "decimals"), epsilon="e").spec() == accord.Spec.of([0.1])


def test_no_product_is_too_small(database):
    """PostgreSQL refuses a product of doubles that comes to 0."""
    run(database, "DROP TABLE IF EXISTS tiny", "CREATE TABLE tiny (u text, v float8, w float8)")
    rows = [("a", x, y) for x, y in product([5e-324, -5e-324, 1e-320, 1e-300, 0.5, 1e-12], repeat=2)]
    fill(database, "tiny", None, rows)
    arrow = pa.table(dict(zip("uvw", map(list, zip(*rows, strict=True)), strict=True)))
    for user, high in product((None, "u"), (2.0**40, 1e90)):
        here, there = (
            accord.table(source, epsilon=1.0, user=user) for source in (at(database, "tiny"), arrow)
        )
        for query in (
            accord.mean("v", bounds=(0, high)),
            accord.mean("v", bounds=(-high, high)),
            accord.sum("v", bounds=(0, high)),
            accord.regression("v", ["w"], bounds={"v": (0, high), "w": (-high, high)}),
            accord.histogram("v", edges=[0, high / 2, high]),
        ):
            assert integers(here, query) == integers(there, query)
            assert isinstance(integers(here, query), list)


def test_dates_and_moments_far_away(database):
    """Dates reach further than timestamps; the end of time is missing."""
    dates = [
        "infinity",
        "-infinity",
        "5000000-01-01",
        "294247-01-10",
        "294247-01-11",
        "0044-03-15 BC",
        "4713-11-24 BC",
        "2020-01-15",
    ]
    moments = [
        "infinity",
        "-infinity",
        "294000-01-01 00:00:00.000001",
        "4713-11-24 BC",
        "2300-06-01 01:02:03.000004",
        "2020-01-15 06:00",
    ]
    run(database, "DROP TABLE IF EXISTS far", "CREATE TABLE far (d date, t timestamp)")
    run(database, *(f"INSERT INTO far VALUES ('{d}', '{t}')" for d, t in product(dates, moments)))
    values = ", ".join(
        f"(DATE '{d.replace('BC', '(BC)')}', TIMESTAMP '{t.replace('BC', '(BC)')}')"
        for d, t in product(dates, moments)
    )
    there = accord.table(duckdb.connect().sql(f"SELECT * FROM (VALUES {values}) AS far (d, t)"), epsilon=1.0)
    here = accord.table(at(database, "far"), epsilon=1.0)
    wide = (datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
    for query in (
        accord.median("d", bounds=DATES),
        accord.median("t", bounds=DATES),
        accord.quantile("t", 0.5, bounds=MOMENTS),
        accord.quantile("t", 0.5, bounds=wide, step=datetime.timedelta(days=1)),
        accord.min("d", bounds=(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
        accord.count(where="d > '2020-01-15'"),
        accord.count(where="d <= '2020-01-15'"),
        accord.count(where="d <> '0044-03-15' AND d IN ('2020-01-15', '2020-01-16')"),
        accord.count(where="t > '2020-01-15 06:00:00' OR t IS NULL"),
        accord.count(where="t <> '2020-01-15 06:00:00'"),
    ):
        ours = integers(here, query)
        assert ours == integers(there, query), query.label
        assert isinstance(ours, list)


# --- names, types and what is not there -------------------------------------------------------------------------------------

HOSTILE = [
    'x"; DROP TABLE people; --',
    "it's",
    "%s",
    "SELECT",
    "ñ☃ é",
    "a.b",
    "Upper",
    " ",
    "\\",
    "level",
    "cell",
    "source",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_just_a_name(database, name):
    types = {name: TYPES["v"], "u'\"": TYPES["u"], "e;": TYPES["e"]}
    make(database, name, types)
    rows = [(1.0, "a", 1.0), (2.0, "a", 2.5), (3.0, "b", 1.0), (None, "c", 1.0)]
    fill(database, name, types, rows)
    url = at(database, quoted(name).replace("%", "%25").replace("&", "%26"))
    for user in (None, "u'\""):
        here, there = (
            accord.table(source, epsilon="e;", user=user) for source in (url, in_arrow(types, rows))
        )
        assert here.columns == there.columns
        for query in (
            accord.mean(name, bounds=(0, 4), step=1),
            accord.mean(name, bounds=(0, 4), by="u'\"", keys=["a", name]),
            accord.regression(name, ["u'\""], bounds={name: (0, 4)}, categories={"u'\"": [name, "a"]}),
            accord.histogram("u'\"", categories=[name, "a"]),
        ):
            assert integers(here, query) == integers(there, query)


def test_a_table_is_found_by_schema_and_name(database):
    run(
        database,
        'CREATE SCHEMA "my.schema"; CREATE SCHEMA other; CREATE TABLE "my.schema"."the.table" (a int); CREATE TABLE other."x.y" (b int); '
        'CREATE TABLE "People" (c int); CREATE VIEW other.seen AS SELECT c FROM "People"; CREATE MATERIALIZED VIEW other.kept AS SELECT 1 AS m; '
        'CREATE TABLE other.many (p int) PARTITION BY RANGE (p); CREATE TABLE "quo""te" (q int)',
    )
    for name, column in {
        '"my.schema"."the.table"': "a",
        '"my.schema".the.table': "a",
        "other.x.y": "b",
        'other."x.y"': "b",
        "People": "c",
        '"People"': "c",
        "public.People": "c",
        "other.seen": "c",
        "other.kept": "m",
        "other.many": "p",
        '"quo""te"': "q",
        "%22quo%22%22te%22": "q",
        'quo"te': "q",
    }.items():
        assert accord.table(at(database, name), epsilon=1.0).columns == {column: "number"}, name


def test_kinds_come_from_the_catalog(database):
    run(
        database,
        "CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN score AS numeric(5, 2); CREATE DOMAIN fine AS score CHECK (VALUE > 0); "
        "CREATE TABLE kinds (a smallint, b integer, c bigint, d real, e double precision, f numeric, g text, h varchar(3), i char(3), j boolean, "
        "k date, l timestamp, m timestamptz, n uuid, o integer[], p json, q bytea, r time, s interval, t mood, u fine, gone int, v money)",
        "ALTER TABLE kinds DROP COLUMN gone",
        "INSERT INTO kinds (i, t, u, g) VALUES ('ab', 'bad', 1.5, 'x'), ('ab', NULL, NULL, 'y')",
    )
    people = accord.table(at(database, "kinds"), epsilon=1.0)
    kinds = {
        **dict.fromkeys("abcdef", "number"),
        **dict.fromkeys("ghi", "text"),
        "j": "boolean",
        "k": "date",
        "l": "timestamp",
    }
    assert people.columns == {
        **kinds,
        **dict.fromkeys("mnopqrs", "other"),
        "t": "text",
        "u": "number",
        "v": "other",
    }
    assert list(people.reader.summary(accord.histogram("t", categories=["good", "bad"])).rows()) == [[0, 1]]
    middle = accord.mean("u", bounds=(0, 2), step=0.5, missing="middle")
    assert list(people.reader.summary(middle).rows()) == [[2, 3 + 2]]
    assert list(people.reader.summary(accord.mean("u", bounds=(0, 2), step=0.5)).rows()) == [[1, 3]]
    assert list(people.reader.summary(accord.count(where="i = 'ab'")).rows()) == [[2, 2]]
    with pytest.raises(QueryError, match="kind that cannot be compared"):
        people.plan(accord.count(where="n = 'x'"))


def test_text_is_compared_byte_by_byte(database):
    """A collation may hold different texts for equal, and then two people would be one: every text has the same."""
    run(
        database,
        "DROP TABLE IF EXISTS collated",
        'CREATE TABLE collated (u text COLLATE "POSIX", w varchar, x char(4))',
    )
    run(database, "INSERT INTO collated VALUES ('a', 'a', 'a'), ('A', 'a.', 'a '), ('b', 'A', 'A')")
    people = accord.table(at(database, "collated"), epsilon=1.0, user="w")
    assert people.spec().total == 3
    for column in "uwx":
        name = people.reader.engine.dialect.column(column)
        sql = (
            f"SELECT PG_COLLATION_FOR({name}) AS of, {name} = 'a' AS equal FROM {people.reader.engine.source}"
        )
        assert set(people.reader.engine.fetch(sql)["of"].tolist()) == {'"C"'}
    assert (
        accord.table(at(database, "collated"), epsilon=1.0, user="x").spec().total == 2
    )  # blanks at the end of a char(4) are not text


def test_columns_that_may_not_be_read_are_not_there(database):
    run(
        database,
        "CREATE ROLE reader LOGIN; CREATE SCHEMA hidden; CREATE TABLE hidden.t (a int); CREATE TABLE half (a int, b int); CREATE TABLE none (a int)",
        "GRANT SELECT (a) ON half TO reader",
        "INSERT INTO half VALUES (1, 2)",
    )
    url = database.replace("postgres@", "reader@")
    people = accord.table(at(url, "half"), epsilon=1.0)
    assert people.columns == {"a": "number"}
    assert list(people.reader.summary(accord.count()).rows()) == [[1, 1]]
    with pytest.raises(SourceError, match=r"'none' has no columns that this user may read\. Grant SELECT"):
        accord.table(at(url, "none"), epsilon=1.0)
    with pytest.raises(
        SourceError, match=r"cannot read the PostgreSQL table 'hidden.t' \(InsufficientPrivilege\)\. Grant"
    ):
        accord.table(at(url, "hidden.t"), epsilon=1.0)
    run(database, "REVOKE SELECT (a) ON half FROM reader")
    with pytest.raises(SourceError, match=r"'half' \(InsufficientPrivilege\)\. Grant this user"):
        people.reader.summary(accord.count())


def test_what_is_not_there_is_named(edges, database):
    with pytest.raises(SourceError, match="there is no table 'edgse' in the database: did you mean 'edges'"):
        accord.table(at(database, "edgse"), epsilon="e")
    with pytest.raises(SourceError, match=r"there is no table 'nowhere\.edges' in the database"):
        accord.table(at(database, "nowhere.edges"), epsilon="e")
    with pytest.raises(SourceError, match=r"there is no column 'ee': did you mean 'e'"):
        accord.table(edges[0], epsilon="ee")
    with pytest.raises(QueryError, match="there is no column 'w'"):
        accord.table(edges[0], epsilon="e").plan(accord.mean("w", bounds=(0, 1)))
    with pytest.raises(QueryError, match="holds text; a mean needs numbers"):
        accord.table(edges[0], epsilon="e").plan(accord.mean("r", bounds=(0, 1)))
    for url in (database, database + "&table=", edges[0] + "&table="):
        with pytest.raises(
            SourceError,
            match=r"does not say which table\. Add its name: postgresql://user@host/database\?table=schema\.people",
        ):
            accord.table(url, epsilon="e")


def test_an_address_that_cannot_be_read():
    for url in (
        "postgresql://u:s3cr%zzet@host/db?table=t",
        "postgresql://u:s3cret@host:port:5/db?x=1&table=t",
    ):
        with pytest.raises(
            SourceError, match=r"address of the PostgreSQL server cannot be read\. Write postgresql://"
        ) as refused:
            accord.table(url, epsilon=1.0)
        assert "s3cr" not in str(refused.value) + repr(refused.value.__context__) + repr(
            refused.value.__cause__
        )


@pytest.mark.parametrize(
    ("url", "address", "name"),
    [
        ("postgresql://u@h/d?table=t", "postgresql://u@h/d", ["t"]),
        (
            "postgres://u:p?table=x@h/d?sslmode=require&table=s.t&port=1",
            "postgres://u:p?table=x@h/d?sslmode=require&port=1",
            ["s", "t"],
        ),
        ("postgresql:///d?table=s.t.u", "postgresql:///d", ["s", "t.u"]),
        ("postgresql://h,i:5/d?table=a%20b", "postgresql://h,i:5/d", ["a b"]),
        ("postgresql://h?table=a+b", "postgresql://h", ["a+b"]),
        ("postgresql://h/d?mytable=a", "postgresql://h/d?mytable=a", []),
    ],
)
def test_the_name_of_the_table_is_taken_off_the_address(url, address, name):
    assert postgres.split_url(url) == (address, name)


def test_psycopg_is_asked_for():
    with (
        patch.dict("sys.modules", {"psycopg": None}),
        pytest.raises(SourceError, match=r"needs psycopg\. Install accord\[postgres\]"),
    ):
        accord.table("postgresql://host/db?table=t", epsilon=1.0)


# --- faults -----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def asking_for_passwords(server, role):
    """The server trusts everyone; for a while, it asks one role for a password."""
    with psycopg.connect(server, autocommit=True) as connection:
        path = connection.execute("SHOW hba_file").fetchone()[0]
        lines = [
            line
            for line in connection.execute("SELECT pg_read_file(%s)", [path]).fetchone()[0].splitlines()
            if not line.startswith("#")
        ]

        def write(kept):
            connection.execute(
                f"COPY (SELECT unnest(%s::text[])) TO '{path}'".replace(
                    "%s", "'{" + ",".join(f'"{x}"' for x in kept) + "}'"
                )
            )
            connection.execute("SELECT pg_reload_conf()")

        write([f"local all {role} scram-sha-256", *lines])
        try:
            yield
        finally:
            write(lines)


def test_no_password_is_told(database, postgres_server):
    run(
        database,
        "CREATE ROLE careful LOGIN PASSWORD 's3cret-right'; CREATE TABLE guarded (e float8); GRANT SELECT ON guarded TO careful",
    )
    url = at(database.replace("postgres@", "careful:s3cret-{}@"), "guarded")
    with asking_for_passwords(postgres_server, "careful"):
        until = time.monotonic() + 300
        while True:  # the server takes its time to read the file
            try:
                accord.table(url.format("wrong"), epsilon="e")
            except SourceError as refusal:
                refused = refusal
                break
            assert time.monotonic() < until
        people = accord.table(url.format("right"), epsilon="e")
        assert people.columns == {"e": "number"} and "s3cret" not in repr(people)
    assert str(refused) == "cannot read the PostgreSQL table 'guarded' (OperationalError). The server cannot be reached, or has gone. Check the address, the user and the password."  # fmt: skip
    assert refused.__cause__ is None and refused.__context__ is None
    run(database, "ALTER ROLE careful NOLOGIN")
    with pytest.raises(SourceError, match="cannot read the PostgreSQL table 'guarded'") as gone:
        people.spec()
    assert "s3cret" not in str(gone.value) and gone.value.__context__ is None


def test_a_server_that_is_not_there(tmp_path):
    for host in (str(tmp_path), "localhost:1"):
        with pytest.raises(SourceError, match=r"\(OperationalError\)\. The server cannot be reached"):
            accord.table(f"postgresql://u:s3cret@/d?host={host}&table=t" if host[0] == "/" else f"postgresql://u:s3cret@{host}/d?table=t", epsilon=1.0)  # fmt: skip


def test_servers_that_are_refused(database, postgres_server):
    with (
        patch.object(postgres, "OLDEST", 99),
        pytest.raises(SourceError, match=r"accord reads tables of version 99 and later"),
    ):
        accord.table(at(database, "edges"), epsilon=1.0)
    run(postgres_server, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(SourceError, match="the database is encoded in LATIN1"):
        accord.table(at(postgres_server.replace("/postgres?", "/latin?"), "t"), epsilon=1.0)


def test_the_table_changes(database):
    run(database, "CREATE TABLE changing (e float8, v float8)", "INSERT INTO changing VALUES (1, 2)")
    people = accord.table(at(database, "changing"), epsilon="e")
    assert people.spec().total == 1
    run(database, "INSERT INTO changing VALUES (1, 2)")
    with pytest.raises(SourceError, match="the table has changed since"):
        people.reader.summary(accord.mean("v", bounds=(0, 4)))
    run(database, "ALTER TABLE changing RENAME v TO w")
    with pytest.raises(
        SourceError, match=r"cannot read the PostgreSQL table 'changing' \(UndefinedColumn\)"
    ) as refused:
        people.reader.summary(accord.mean("v", bounds=(0, 4)))
    assert refused.value.__context__ is None
    run(database, "DROP TABLE changing")
    with pytest.raises(SourceError, match=r"\(UndefinedTable\)"):
        people.reader.summary(accord.count())


def test_nothing_is_written(database, edges):
    people = accord.table(edges[0], epsilon="e")
    with pytest.raises(SourceError, match="ReadOnlySqlTransaction"):
        people.reader.engine.fetch("DELETE FROM edges RETURNING 1 AS gone")
    for statement in (
        "SHOW transaction_isolation",
        "SHOW transaction_read_only",
        "SHOW standard_conforming_strings",
    ):
        assert next(iter(people.reader.engine.fetch(statement).values())).tolist() in (
            ["repeatable read"],
            ["on"],
        )
    run(database, "ALTER ROLE postgres SET standard_conforming_strings = off; ALTER ROLE postgres SET DateStyle = 'SQL, DMY'; ALTER ROLE postgres SET extra_float_digits = 0")  # fmt: skip
    try:
        for name in ("categories", "count of moments", "days as categories"):
            assert integers(people, QUERIES[name]) == integers(
                accord.table(edges[1], epsilon="e"), QUERIES[name]
            )
    finally:
        run(database, "ALTER ROLE postgres RESET ALL")


@pytest.fixture
def slow(database):
    """A view whose values take long to read, as soon as `pace` says so. Levels do not."""
    run(
        database,
        "DROP TABLE IF EXISTS pace, slow_people CASCADE",
        "CREATE TABLE pace (seconds float8); INSERT INTO pace VALUES (0)",
        "CREATE TABLE slow_people AS SELECT k AS u, k % 10 AS v, 0.5::float8 AS e FROM generate_series(1, 1000) AS k",
        "CREATE OR REPLACE FUNCTION wait() RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN PERFORM pg_sleep(seconds) FROM pace; RETURN 1; END'",
        "CREATE VIEW slow AS SELECT u, e, CASE WHEN (SELECT wait()) = 1 THEN v END AS v FROM slow_people",
    )
    return at(database, "slow")


def asleep(connection):
    rows = connection.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchall()
    return [pid for (pid,) in rows]


@contextlib.contextmanager
def meanwhile(url, act):
    """As soon as a query sleeps, act on its process."""

    def wait():
        with psycopg.connect(url, autocommit=True) as connection:
            until = time.monotonic() + 300
            while not (pids := asleep(connection)) and time.monotonic() < until:
                time.sleep(0.02)
            act(connection, pids[0])

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_connection_that_is_lost_is_charged(database, slow, tmp_path):
    people = accord.table(slow, epsilon="e", user="u")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    plan = people.plan(accord.mean("v", bounds=(0, 10)), "affine", share=0.5)
    run(database, "UPDATE pace SET seconds = 900")
    start = time.monotonic()
    with (
        meanwhile(database, lambda connection, pid: connection.execute("SELECT pg_terminate_backend(%s)", [pid])),
        pytest.raises(SourceError, match=r"cannot read the PostgreSQL table 'slow' \(AdminShutdown\)\. The server cannot be reached, or has gone\.") as refused,
    ):  # fmt: skip
        people.release(plan, ledger=ledger)
    assert time.monotonic() - start < 600  # of 900 seconds
    assert "charged" in str(refused.value)
    assert [entry["state"] for entry in ledger.history()] == ["failed"]
    assert ledger.remaining(people).levels == (0.25,) and ledger.verify().problems == ()
    run(database, "UPDATE pace SET seconds = 0")
    assert people.release(plan, ledger=ledger).value == pytest.approx(4.5, abs=2)


def test_ctrl_c_stops_the_query_in_the_server(database, slow, tmp_path):
    people = accord.table(slow, epsilon="e", user="u")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    plan = people.plan(accord.mean("v", bounds=(0, 10)), "affine", share=0.5)
    run(database, "UPDATE pace SET seconds = 900")
    start = time.monotonic()
    with (
        meanwhile(database, lambda *_: os.kill(os.getpid(), signal.SIGINT)),
        pytest.raises(KeyboardInterrupt),
    ):
        people.release(plan, ledger=ledger)
    assert time.monotonic() - start < 600  # of 900 seconds
    with psycopg.connect(database, autocommit=True) as connection:
        assert asleep(connection) == []
    assert [entry["state"] for entry in ledger.history()] == ["failed"]
    assert ledger.remaining(people).levels == (0.25,) and ledger.verify().problems == ()
    run(database, "UPDATE pace SET seconds = 0")
    assert people.release(plan, ledger=ledger).value == pytest.approx(4.5, abs=2)


def test_a_query_that_the_server_stops(database, slow):
    people = accord.table(slow, epsilon="e")
    run(database, "UPDATE pace SET seconds = 900")
    with (
        meanwhile(
            database, lambda connection, pid: connection.execute("SELECT pg_cancel_backend(%s)", [pid])
        ),
        pytest.raises(SourceError, match=r"\(QueryCanceled\)\. The server stopped the query"),
    ):
        people.reader.summary(accord.mean("v", bounds=(0, 10)))


def test_threads_ask_at_once(edges):
    here = accord.table(edges[0], epsilon="e")
    wanted = {name: integers(here, QUERIES[name]) for name in ("mean", "sum", "count where", "edges")}
    by_thread = {}
    threads = [
        threading.Thread(target=lambda n=name: by_thread.update({n: integers(here, QUERIES[n])}))
        for name in wanted
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert by_thread == wanted


# --- the ledger -------------------------------------------------------------------------------------------------------------

SECRET = ("0123456789abcdef" * 2,)
IDS = {
    "text": ("text", pa.string(), ["a", " a", "a\u00a0", "7", "7.0", " 7.00 ", "1.0.0", "é", "e\u0301", "☃", "한", "\u1112\u1161\u11ab", "x\ny", "", "\ufeffb", "'; --", "\\.0"]),
    "varchar": ("varchar", pa.string(), ["A", "a", "Å", "\u212b"]),
    "smallint": ("smallint", pa.int16(), [0, 7, -7, 32767]),
    "bigint": ("bigint", pa.int64(), [0, 7, 10**16, 2**63 - 1, -(2**63)]),
    "numeric": ("numeric(20, 2)", pa.decimal128(20, 2), [Decimal("7.00"), Decimal("7.50"), Decimal("-0.25"), Decimal(10) ** 17]),
    "double": ("double precision", pa.float64(), [7.0, -0.0, 0.5, 1e15, 1e-5, 0.0001, 1234567890123.5, 9007199254740991.0, -2.5e-7, 123456.75, 4503599627370495.5]),
    "real": ("real", pa.float32(), [7.0, 0.5, 1234567.0, 16777215.0, 1e-5, 0.1, 123456.75, 1048576.5]),
}  # fmt: skip


@pytest.mark.parametrize("kind", IDS)
def test_people_are_the_same_in_every_engine(database, kind):
    sql, arrow, ids = IDS[kind]
    types = {"u": (sql, arrow), "e": TYPES["e"]}
    rows = [(u, 0.5) for u in ids]
    make(database, "ids", types)
    fill(database, "ids", types, rows)
    here, there = (
        accord.table(source, epsilon="e") for source in (at(database, "ids"), in_arrow(types, rows))
    )
    hashes = []
    for people in (here, there):
        kind = people.columns["u"]
        person = people.reader.engine.dialect.person(
            people.reader.engine.dialect.identity("u", kind), "u", kind, SECRET
        )
        fetched = people.reader.engine.fetch(f"SELECT {person} AS person FROM {people.reader.engine.source}")
        hashes.append(sorted(fetched["person"].tolist()))
    assert hashes[0] == hashes[1]
    assert all(0 <= x < 2**63 for x in hashes[0])
    here, there = (
        accord.table(source, epsilon="e", user="u") for source in (at(database, "ids"), in_arrow(types, rows))
    )
    assert here.identity.fingerprint(SECRET) == there.identity.fingerprint(SECRET)
    assert sorted(here.identity.people(SECRET)[0].tolist()) == sorted(
        there.identity.people(SECRET)[0].tolist()
    )


decimal = st.tuples(st.integers(-(10**12), 10**12), st.integers(-25, 3)).map(
    lambda kp: float(f"{kp[0]}e{kp[1]}")
)


@given(
    st.lists(
        st.tuples(st.one_of(decimal, st.sampled_from([nan, inf, -inf, -0.0])), st.integers(-(10**6), 10**6)),
        min_size=1,
        max_size=20,
    )
)
@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_numbers_are_written_alike(numbers_table, numbers):
    """Up to 10¹⁵, and without digits to spare: of the shortest texts of 16384.9375 in single precision, engines choose different ones."""
    types = {"x": ("double precision", pa.float64()), "y": ("real", pa.float32())}
    rows = [(x, k / 4) for x, k in numbers]
    fill(numbers_table, "numbers", types, rows)
    here, there = (
        accord.table(source, epsilon=1.0) for source in (at(numbers_table, "numbers"), in_arrow(types, rows))
    )
    for column in types:
        sql = (
            f"SELECT {people.reader.engine.dialect.letters(column)} AS x FROM {people.reader.engine.source}"
            for people in (here, there)
        )
        ours, theirs = (
            people.reader.engine.fetch(text)["x"].tolist()
            for people, text in zip((here, there), sql, strict=True)
        )
        assert sorted(ours) == sorted(theirs)


@pytest.fixture(scope="module")
def numbers_table(database):
    make(database, "numbers", {"x": ("double precision", None), "y": ("real", None)})
    return database


def test_tiers_may_be_numbers(database):
    types = {
        "x": ("double precision", pa.float64()),
        "i": ("integer", pa.int32()),
        "b": ("boolean", pa.bool_()),
        "d": ("date", pa.date32()),
    }
    rows = [
        (1.0, 1, True, DATES[0]),
        (2.5, 2, False, DATES[1]),
        (-0.0, 3, None, None),
        (1e16, 4, True, DATES[0]),
        (None, None, None, None),
    ]
    make(database, "tiers", types)
    fill(database, "tiers", types, rows)
    for column, tiers in {
        "x": {"1.0": 0.1, "2.5": 1.0, "-0.0": 2.0, "1e+16": inf},
        "i": {1: 0.1, 2: 1.0, 3: 2.0, 4: inf},
        "b": {"true": 0.1, "false": 1.0},
        "d": {"2020-01-01": 0.1, "2020-03-01": 1.0},
    }.items():
        options = {"epsilon": column, "tiers": tiers, "default": 3.0}
        here, there = (
            accord.table(source, **options) for source in (at(database, "tiers"), in_arrow(types, rows))
        )
        assert here.spec() == there.spec() and here.spec().total == 5


def test_floating_ids_that_are_not_exact_are_refused(database, tmp_path):
    run(
        database,
        "CREATE TABLE blurred AS SELECT 9007199254740993::float8 AS u, 16777217::real AS w, 1 AS i, 0.5 AS e",
    )
    ledger = accord.Ledger(tmp_path / "accord.db")
    for user in ("u", "w"):
        with pytest.raises(
            LedgerError, match=r"1 ids in '[uw]' are floating-point numbers too large to be exact"
        ):
            ledger.register(accord.table(at(database, "blurred"), epsilon="e", user=user), "people")
    ledger.register(accord.table(at(database, "blurred"), epsilon="e", user="i"), "people")


def test_a_ledger_knows_the_same_people_from_both(edges, tmp_path):
    here, there = (accord.table(source, epsilon="e", user="u") for source in edges)
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(there, "people")
    query = accord.mean("v", bounds=(-1, 3))
    assert here.release(query, "affine", share=0.5, ledger=ledger).value is not None
    assert ledger.remaining(there) == ledger.remaining(here)
    assert [entry["state"] for entry in ledger.history()] == ["released"]


def test_the_secret_of_a_ledger_is_in_no_query(edges):
    """The server may show and log their texts."""
    other = (SECRET[0][::-1],)
    secrets_of_ledgers = (SECRET, other, SECRET, SECRET + other)
    here, there = (accord.table(source, epsilon="e", user="u") for source in edges)
    asked = []
    fetch = here.reader.engine.fetch
    with patch.object(
        here.reader.engine, "fetch", lambda sql, wide=(): [asked.append(sql), fetch(sql, wide)][1]
    ):
        marks = [here.identity.fingerprint(secret) for secret in secrets_of_ledgers]
    assert marks == [there.identity.fingerprint(secret) for secret in secrets_of_ledgers]
    assert len(set(marks)) == 3 and not any(each in sql for sql in asked for each in (*SECRET, *other))


def test_what_is_known_beforehand_cannot_fail_either(database):
    """A planner reckons with constants before it reads a row."""
    columns = "'1e400'::numeric AS n, 5e-324::float8 AS v, DATE '5000000-01-01' AS d, TIMESTAMP 'infinity' AS t, 'a'::text AS u, 1 AS e"
    run(
        database,
        f"CREATE OR REPLACE VIEW fixed AS SELECT {columns}",
        f"CREATE OR REPLACE VIEW nobody AS SELECT {columns} WHERE FALSE",
    )
    for user in (None, "u"):
        people = accord.table(at(database, "fixed"), epsilon="e", user=user)
        for query, cell in (
            (accord.mean("n", bounds=(0, 100), step=1, missing="middle"), 50),
            (accord.mean("v", bounds=(0, 10**90), step=10**88), 0),
            (accord.count(where="d > '2020-01-01' AND t > '2020-01-01' AND n IS NULL AND v > 0"), 1),
        ):
            assert list(people.reader.summary(query).rows()) == [[1, cell]]
        assert people.reader.summary(accord.median("d", bounds=DATES, missing="middle")).output.tolist() == [
            30
        ]
        assert people.reader.summary(accord.median("t", bounds=DATES, missing="middle")).output.tolist() == [
            30
        ]
        empty = accord.table(
            at(database, "nobody"), epsilon="e", user=user, neighbors="add-remove", roster=ROSTER
        )
        for name in ("n", "v"):
            assert integers(empty, accord.mean(name, bounds=(0, 10**90)))[0][2] == {}


def test_rows_stay_in_the_server(edges, tmp_path):
    here = accord.table(edges[0], epsilon="e")
    assert not here.lends
    with pytest.raises(
        SourceError,
        match=r"is read where it lies, where rows cannot be kept or left out one by one\. Write it to a Parquet file",
    ):
        here.release(QUERIES["regression"], "sample")
    for call in (
        lambda: here.reader.engine.rows(here.reader.engine.source, ["v"], "numpy"),
        lambda: here.reader.engine.lend({}),
    ):
        with pytest.raises(SourceError, match="rows of a PostgreSQL table stay in the server"):
            call()
