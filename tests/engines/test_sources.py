"""Every source gives the same integers, whatever its form, the order of its rows and the number of threads."""

import csv
import datetime
import operator
import random
import re
from fractions import Fraction
from itertools import pairwise
from math import floor, inf, isfinite, nan, nextafter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import accord
from accord.budget import PUBLIC
from accord.errors import PlanError, QueryError, SourceError, SpecError

# --- the reference: a loop over rows, in integers and fractions -------------------------------------------------------------


def missing(x):
    return x is None or (isinstance(x, float) and not isfinite(x))


def micro(level):
    """Millionths of a level, by its decimal value."""
    return PUBLIC if level == inf else floor(Fraction(repr(float(level))) * 10**6)


def nearest(x, low, high, step, absent):
    """One person, and the cell of their value: the nearest point of low, low + step, …, high.

    Nothing, if it is missing and `absent` is None.
    """
    if missing(x) and absent is None:
        return [0, 0]
    value = Fraction(absent if missing(x) else x)
    return [1, floor((min(max(value, low), high) - low) / Fraction(step) + Fraction(1, 2))]


def one_of(k, cells):
    return [int(k == cell) for cell in range(cells)]


def between(x, edges, absent, cells):
    if missing(x):
        return one_of(absent, cells)
    inner = [k for k, (a, b) in enumerate(pairwise(edges)) if a <= x < b]
    return one_of(inner[0] if inner else 0 if x < edges[0] else len(edges) - 2, cells)


REGIONS = ["north", "it's", 'a "b"', "ñ☃"]
CASES = {
    "mean": (accord.mean("v", bounds=(-64, 64), step=0.25), lambda v, r: nearest(v, -64, 64, 0.25, None)),
    "mean on the default grid": (
        accord.mean("v", bounds=(0, 32), missing="none"),
        lambda v, r: nearest(v, 0, 32, 2**-15, 16),
    ),
    "mean, missing is 7": (
        accord.mean("v", bounds=(0, 32), step=1, missing=7),
        lambda v, r: nearest(v, 0, 32, 1, 7),
    ),
    "sum": (accord.sum("v", bounds=(-1, 3), step=0.5), lambda v, r: nearest(v, -1, 3, 0.5, None)),
    "count": (accord.count(), lambda v, r: [1, 1]),
    "count where": (
        accord.count(where="v >= 2.5 AND NOT r = 'it''s'"),
        lambda v, r: [1, int(not missing(v) and v >= 2.5 and r is not None and r != "it's")],
    ),
    "edges": (
        accord.histogram("v", edges=[-1, 0, 2.5, 32]),
        lambda v, r: between(v, (-1, 0, 2.5, 32), None, 3),
    ),
    "edges, missing apart": (
        accord.histogram("v", edges=[-64, 0, 64], missing="unknown"),
        lambda v, r: between(v, (-64, 0, 64), 2, 3),
    ),
    "two edges' cells": (
        accord.histogram("v", edges=[-64, 0, 64], missing="middle"),
        lambda v, r: between(v, (-64, 0, 64), 1, 2),
    ),
    "categories": (
        accord.histogram("r", categories=REGIONS),
        lambda v, r: one_of(REGIONS.index(r) if r in REGIONS else None, 4),
    ),
    "categories, others apart": (
        accord.histogram("r", categories=REGIONS, missing="other"),
        lambda v, r: one_of(REGIONS.index(r) if r in REGIONS else 4, 5),
    ),
    "numbers as categories": (
        accord.histogram("v", categories=[0, 2.5]),
        lambda v, r: one_of([0, 2.5].index(v) if v in (0, 2.5) else None, 2),
    ),
}
QUERIES = {name: query for name, (query, _) in CASES.items()}

SPECIAL = [None, nan, inf, -inf, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -0.0, 0.0]
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
    nextafter(0, -1),
]
ROWS = [
    (level, v, region)
    for k, v in enumerate([*SPECIAL, *ON_EDGES, 7.3, 1e9, -1e9])
    for level, region in [
        ([0.1, 1.0, inf, 2.5][k % 4], [*REGIONS, None, "a,b", "two\nlines", "NULL"][k % 8]),
        ([0.0, 1e-9][k % 2], "north"),  # opted out
    ]
]


def expected(rows, cells):
    """People and sums of each level, ascending, without the opted-out."""
    people, sums = {}, {}
    for level, v, region in rows:
        key, adds = micro(level), cells(v, region)
        if key:
            people[key] = people.get(key, 0) + 1
            sums[key] = [a + b for a, b in zip(sums.get(key, [0] * len(adds)), adds, strict=True)]
    return [people[k] for k in sorted(people)], [sums[k] for k in sorted(sums)]


def columns(rows):
    return dict(zip(("e", "v", "r"), map(list, zip(*rows, strict=True)), strict=True))


def in_arrow(rows):
    kinds = {"e": pa.float64(), "v": pa.float64(), "r": pa.string()}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns(rows).items()})


def integers(source, query, **options):
    summary = accord.table(source, **{"epsilon": "e", **options}).reader.summary(query)
    return summary.people.tolist(), list(summary.rows())


# --- the same from every source ---------------------------------------------------------------------------------------------


def test_every_source_gives_the_same_integers(in_form):
    people = accord.table(in_form(columns(ROWS)), epsilon="e")
    assert people.spec() == accord.Spec.of([level for level, _, _ in ROWS])
    for name, (query, cells) in CASES.items():
        summary = people.reader.summary(query)
        counts, sums = expected(ROWS, cells)
        assert (summary.people.tolist(), list(summary.rows())) == (counts, sums), name
        weights = np.array([7, 11, 13, 17])
        assert summary.weighted(weights) == [
            sum(7 * a + 11 * b + 13 * c + 17 * d for a, b, c, d in [s]) for s in zip(*sums, strict=True)
        ], name


levels = st.sampled_from([0.1, 0.29, 1.0, inf, 0.0, 1e-9])
values = st.one_of(st.sampled_from(SPECIAL + ON_EDGES), st.integers(-(2**13), 2**13).map(lambda k: k / 64))
regions = st.sampled_from([*REGIONS, None, "x", ""])
tables = st.lists(st.tuples(levels, values, regions), min_size=1, max_size=12)


@given(tables, st.sampled_from(sorted(CASES)))
@settings(max_examples=60, deadline=None)
def test_any_rows_agree_with_the_reference(rows, name):
    query, cells = CASES[name]
    assert integers(in_arrow(rows), query) == expected(rows, cells)


@pytest.mark.parametrize("write", ["pyarrow", "polars", "duckdb"])
def test_statistics_of_a_parquet_file_do_not_hide_nan(tmp_path, write):
    """Writers leave NaN out of a column's minimum and maximum, and a reader may take those at their word."""
    rows, path = [(1.0, v, "north") for v in (1.0, 2.0, nan, 50.0)], tmp_path / "people.parquet"
    match write:
        case "pyarrow":
            pq.write_table(in_arrow(rows), path)
        case "polars":
            pl.from_arrow(in_arrow(rows)).write_parquet(path)
        case "duckdb":
            duckdb.connect().from_arrow(in_arrow(rows)).write_parquet(str(path))
    mean = accord.mean("v", bounds=(0, 100), step=1)
    assert integers(path, mean) == ([4], [[3, 1 + 2 + 50]])
    assert integers(path, mean.with_all_values()) == ([4], [[4, 1 + 2 + 50 + 50]])
    assert integers(path, accord.histogram("v", edges=[0, 10, 100], missing="unknown")) == ([4], [[2, 1, 1]])
    assert integers(path, accord.count(where="v >= 0")) == ([4], [[4, 3]])
    assert integers(path, accord.count(where="v IS NULL")) == ([4], [[4, 1]])


@pytest.mark.parametrize(
    ("query", "sums"),
    [
        (accord.mean("v", bounds=(0, 100), step=1), [[1, 10], [0, 0], [0, 0]]),
        (accord.mean("v", (0, 100), step=1, missing="middle"), [[2, 10 + 50], [2, 50 + 50], [2, 50 + 50]]),
        (accord.histogram("v", edges=[0, 20, 100], missing="unknown"), [[1, 0, 1], [0, 0, 2], [0, 0, 2]]),
        (accord.histogram("v", categories=[10, 20]), [[1, 0], [0, 0], [0, 0]]),
        (accord.histogram("v", categories=["10", "unknown"]), [[1, 1], [0, 0], [0, 0]]),
        (accord.count(where="v >= 10"), [[2, 1], [2, 0], [2, 0]]),
        (accord.count(where="v IN (3, 10)"), [[2, 1], [2, 0], [2, 0]]),
        (accord.count(where="NOT v > 3 OR v <> 5 OR v = 7"), [[2, 1], [2, 0], [2, 0]]),
    ],
)
def test_text_among_the_numbers_of_a_csv_file_is_missing(tmp_path, query, sums):
    """It must never make a release fail: whether one fails would tell what somebody's value is."""
    path = tmp_path / "people.csv"
    path.write_text("e,v\n1,10\n1,unknown\n2,nan\n2,\n3,-inf\n3,1e999\n")
    assert integers(path, query) == ([2, 2, 2], sums)
    assert integers(path, query, epsilon=1.0) == ([6], [[sum(column) for column in zip(*sums, strict=True)]])


def test_none_in_a_list_is_missing():
    people = accord.table({"e": [1.0, 1.0], "v": [1.0, None]}, epsilon="e")
    assert people.columns["v"] == "untyped"
    assert integers({"e": [1.0, 1.0], "v": [1.0, None]}, accord.mean("v", bounds=(0, 4), step=1)) == (
        [2],
        [[1, 1]],
    )


def test_what_a_masked_array_hides_is_missing():
    hidden = np.ma.array([1.0, 4.0], mask=[False, True])
    assert integers({"e": [1.0, 1.0], "v": hidden}, accord.mean("v", bounds=(0, 4), step=1)) == (
        [2],
        [[1, 1]],
    )


def test_files_with_columns_in_another_order(tmp_path):
    """Parquet files are matched by name; CSV files, which have a header each, must have the same."""
    first, second = pa.table({"e": [1.0], "v": [3.0]}), pa.table({"v": [4.0], "e": [1.0]})
    for k, table in enumerate((first, second)):
        pq.write_table(table, tmp_path / f"{k}.parquet")
        table.to_pandas().to_csv(tmp_path / f"{k}.csv", index=False)
    assert integers(tmp_path / "?.parquet", accord.mean("v", bounds=(0, 4), step=1)) == ([2], [[2, 7]])
    with pytest.raises(SourceError, match="Give every file the same header"):
        accord.table(tmp_path / "?.csv", epsilon="e")


def test_files_of_different_types_never_raise_a_level(tmp_path):
    pq.write_table(pa.table({"e": [1], "v": [3]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"e": [0.6, 1.7], "v": [3.5, 4.0]}), tmp_path / "2.parquet")
    try:
        spec = accord.table(tmp_path / "*.parquet", epsilon="e").spec()
    except SourceError:
        return  # a refusal is as good
    assert spec.levels == (0.6, 1.0, 1.7)


def test_a_folders_name_is_not_a_column(tmp_path):
    (tmp_path / "v=4").mkdir()
    pq.write_table(pa.table({"e": [1.0], "v": [3.0]}), tmp_path / "v=4" / "people.parquet")
    assert integers(tmp_path / "v=4" / "people.parquet", accord.mean("v", bounds=(0, 4), step=1)) == (
        [1],
        [[1, 3]],
    )


@pytest.mark.parametrize(
    "name", ["a[1].parquet", "what?.parquet", "it's.parquet", "st*r.parquet", "ñ☃.parquet"]
)
def test_a_files_name_may_look_like_a_pattern(tmp_path, name):
    pq.write_table(pa.table({"e": [1.0]}), tmp_path / name)
    pq.write_table(pa.table({"e": [1.0, 1.0]}), tmp_path / "a1.parquet")
    assert accord.table(tmp_path / name, epsilon="e").spec().total == 1


@pytest.mark.parametrize(
    ("ending", "header", "row"),
    [
        ("csv", "e,v", "1,3"),
        ("csv", "e;v", "1;3"),
        ("csv", '"e","v"', '"1","3"'),
        ("csv", 'e,v,"a;b;c;d"', "1,3,x"),
        ("tsv", "e\tv\ta,b,c,d", "1\t3\tx"),
    ],
)
def test_the_header_tells_what_separates_columns(tmp_path, ending, header, row):
    path = tmp_path / f"people.{ending}"
    path.write_text(f"{header}\n{row}\n{row}\n")
    assert integers(path, accord.mean("v", bounds=(0, 4), step=1)) == ([2], [[2, 6]])


@given(
    st.text(alphabet=",;|\t\"'#\\ \na1", max_size=8),
    st.sampled_from(["north", "a;b", "it's", '"', "1|2"]),
    st.integers(0, 4),
)
@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example("'';", "a;b", 1)
@example("''|", "north", 4)
@example('\\"|;;\\"#', "x", 3)
def test_one_persons_text_does_not_change_how_a_csv_file_is_read(tmp_path, text, others, place):
    """Four people hold one text and a fifth another; the file is written as RFC 4180 says."""
    texts = [text if k == place else others for k in range(5)]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("r", "e"), *((t, 1) for t in texts)])
    quoted = others.replace("'", "''")
    assert integers(tmp_path / "people.csv", accord.count(where=f"r = '{quoted}'")) == (
        [5],
        [[5, texts.count(others)]],
    )


# --- any order, any number of threads, any size -----------------------------------------------------------------------------


@given(st.permutations(ROWS))
@settings(max_examples=15, deadline=None)
def test_the_order_of_rows_does_not_matter(rows):
    people = accord.table(in_arrow(rows), epsilon="e")
    for query, cells in (CASES["mean"], CASES["edges"]):
        summary = people.reader.summary(query)
        assert (summary.people.tolist(), list(summary.rows())) == expected(ROWS, cells)


def test_the_number_of_threads_does_not_matter():
    n, randoms = 400_000, np.random.default_rng(1)
    v = randoms.normal(size=n) * 10.0 ** randoms.integers(-12, 16, n)
    assert len({float(np.cumsum(order)[-1]) for order in (v, v[::-1], np.sort(v))}) == 3, (
        "floats would depend on the order"
    )
    step = 2.0**34
    cells = np.clip(np.floor((v + 2.0**53) / step + 0.5), 0, 2**20).astype(np.int64)
    e = np.array([0.1, 1.0, 3.0])[np.arange(n) % 3]
    totals = [[int((e == level).sum()), int(cells[e == level].sum())] for level in (0.1, 1.0, 3.0)]
    for threads, order in ((1, np.arange(n)), (2, np.arange(n)), (5, randoms.permutation(n))):
        con = duckdb.connect(config={"threads": threads})
        con.register("rows", {"e": e[order], "v": v[order]})
        con.execute("CREATE TABLE people AS SELECT * FROM rows")
        query = accord.mean("v", bounds=(-(2**53), 2**53))
        assert integers(con.table("people"), query)[1] == totals, threads


def test_sums_beyond_64_bits_are_exact():
    n, high = 10_000_000, 2**40
    rows = duckdb.connect().sql(f"SELECT ({high} - range)::DOUBLE AS v FROM range({n})")
    total = n * high - n * (n - 1) // 2
    assert total > 2**63
    query = accord.sum("v", bounds=(0, high), step=1)
    assert integers(rows, query, epsilon=1.0) == ([n], [[n, total]])
    assert accord.table(rows, epsilon=inf).release(query).value == float(total)


# --- what one person can change ---------------------------------------------------------------------------------------------

anything = st.one_of(values, st.floats())


@given(tables, st.data(), st.sampled_from(sorted(QUERIES)), st.sampled_from([1.0, 0.3]))
@settings(max_examples=70, deadline=None)
def test_one_person_moves_the_weighted_sums_by_at_most_their_charge(rows, data, name, share):
    query = QUERIES[name]
    who = data.draw(st.integers(0, len(rows) - 1))
    level, _, _ = rows[who]
    changed = [*rows[:who], (level, data.draw(anything), data.draw(regions)), *rows[who + 1 :]]
    here, there = (accord.table(in_arrow(r), epsilon="e") for r in (rows, changed))
    assert here.spec() == there.spec()
    before, after = here.reader.summary(query), there.reader.summary(query)
    if not micro(level):
        assert list(before.rows()) == list(after.rows()), "who opted out is never read"
        return
    at = here.spec().micro.tolist().index(micro(level))
    plan = accord.plan(here.spec(), query, mechanism="minimum", share=share)
    candidates, target = plan.candidates, plan.target
    assert {c.mechanism for c in candidates} == {m.name for m in accord.mechanisms.ALL if not m.needs_gap}
    for candidate in candidates:
        if candidate.calibration is None or candidate.calibration.charges[at] == PUBLIC:
            continue
        charges = candidate.calibration.charges
        everyone = sum(c * n for c, n in zip(charges.tolist(), before.people.tolist(), strict=True))
        sums = [target.sums(summary.weighted(charges), everyone) for summary in (before, after)]
        assert [len(s) for s in sums] == [target.released] * 2
        moved = [abs(a - b) for a, b in zip(*sums, strict=True)]
        noisy = moved[:1] if target.complementary else moved  # two cells that hold everyone have one noise
        assert sum(noisy) <= int(charges[at]) * target.sensitivity, candidate.mechanism
        assert charges[at] <= micro(level)


BOUNDS = [
    (0, 1),
    (-0.1, 0.2),
    (1e15, 1e15 + 3),
    (-1e90, 1e-90),
    (0, 5e-90),
    (-8.0000000000043, -7.999999999997501),
]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_no_value_lies_beyond_the_last_cell(bounds):
    low, high = map(float, bounds)
    near = [nextafter(end, direction) for end in (low, high) for direction in (-inf, inf)]
    query = accord.mean("v", bounds=bounds, missing="middle")
    tried = [*near, low, high, (low + high) / 2, *SPECIAL]
    _, sums = integers(in_arrow([(k, v, "") for k, v in enumerate(tried, start=1)]), query)
    assert {v: cell for v, [_, cell] in zip(tried, sums, strict=True) if not 0 <= cell <= query.cells} == {}
    assert {people for people, _ in sums} == {1}


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        (pa.timestamp("s"), 10**15),
        (pa.timestamp("ms"), 10**18),
        (pa.timestamp("us"), 2**62),
        (pa.date32(), 10**9),
    ],
    ids=str,
)
def test_no_date_makes_a_release_fail(kind, far):
    dates = pa.table(
        {
            "e": [1.0, 1.0],
            "d": pa.array([far, 0], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind),
        }
    )
    assert integers(dates, accord.count(where="d < '2020-01-01'")) == ([2], [[2, 1]])


# --- conditions -------------------------------------------------------------------------------------------------------------

_pick = random.Random(3)
TEXTS = ["north", "it's", "''", 'a "b"', "ñ☃", "", "NULL", "'; DROP TABLE t; --"]
DAYS = [datetime.date(1969, 12, 31), datetime.date(2020, 2, 29), datetime.date(2026, 1, 31)]
FACTS = {
    "n": [_pick.choice([None, nan, inf, -inf, -2.5, -0.0, 0.0, 1.0, 3.0, 1e300]) for _ in range(200)],
    "i": [_pick.choice([None, -3, 0, 1, 3]) for _ in range(200)],
    "s": [_pick.choice([None, *TEXTS]) for _ in range(200)],
    "d": [_pick.choice([None, *DAYS]) for _ in range(200)],
    "b": [_pick.choice([None, True, False]) for _ in range(200)],
}
SIGNS = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def written(value):
    if isinstance(value, bool):
        return str(value).upper()
    return repr(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "''") + "'"


def about(column, values, signs):
    """(text, meaning) of a test; the meaning of a row is True, False or None."""
    absent = lambda row: missing(row[column])  # noqa: E731

    def compare(sign, value):
        return (
            f"{column} {sign} {written(value)}",
            lambda row: None if absent(row) else SIGNS[sign](row[column], value),
        )

    def is_in(some, word):
        text = f"{column} {word} ({', '.join(map(written, some))})"
        return text, lambda row: None if absent(row) else (row[column] in some) == (word == "IN")

    def is_null(word):
        return f"{column} {word} NULL", lambda row: absent(row) == (word == "IS")

    return st.one_of(
        st.builds(compare, st.sampled_from(signs), st.sampled_from(values)),
        st.builds(
            is_in,
            st.lists(st.sampled_from(values), min_size=1, max_size=3),
            st.sampled_from(["IN", "NOT IN"]),
        ),
        st.builds(is_null, st.sampled_from(["IS", "IS NOT"])),
    )


def negation(part):
    text, meaning = part
    return f"NOT ({text})", lambda row: None if meaning(row) is None else not meaning(row)


def joined(word, parts):
    decisive = (
        word == "OR"
    )  # one True decides an OR, one False an AND; otherwise what is unknown stays unknown

    def meaning(row):
        results = [m(row) for _, m in parts]
        return decisive if decisive in results else None if None in results else not decisive

    return f" {word} ".join(f"({text})" for text, _ in parts), meaning


simple = st.one_of(
    about("n", [-2.5, 0.0, 1, 3.0, 1e300], list(SIGNS)),
    about("i", [-3, 0, 1, 2.5], list(SIGNS)),
    about("s", TEXTS, ["=", "<>", "!="]),
    about("d", DAYS, list(SIGNS)),
    about("b", [True, False], ["=", "<>"]),
)
conditions = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(negation, inner),
        st.builds(joined, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def facts():
    return accord.table(pa.table({**FACTS, "e": [1.0] * 200}), epsilon="e")


@given(condition=conditions)
@settings(max_examples=200, deadline=None)
def test_a_condition_counts_the_rows_for_which_it_is_true(facts, condition):
    text, meaning = condition
    rows = [dict(zip(FACTS, values, strict=True)) for values in zip(*FACTS.values(), strict=True)]
    ((people, total),) = facts.reader.summary(accord.count(where=text)).rows()
    assert (people, total) == (200, sum(meaning(row) is True for row in rows))


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.date32(), pa.date64()]
)
def test_moments_are_compared_whatever_their_resolution(kind):
    days = pa.table({"e": [1.0] * 4, "d": pa.array([*DAYS, None]).cast(kind)})
    assert integers(days, accord.count(where="d >= '2020-02-29' AND d < '2026-01-31 00:00:00'")) == (
        [4],
        [[4, 1]],
    )
    assert integers(days, accord.histogram("d", categories=["2020-02-29", "2020-03-01"])) == ([4], [[1, 0]])


# --- names and texts are just names and texts -------------------------------------------------------------------------------

NAMES = [
    'x"; DROP TABLE t; --',
    "a b",
    '"',
    '""',
    " ",
    "ñ☃",
    "select",
    "NULL",
    "a.b",
    "it's",
    "--",
    "\\",
    "%s",
    "x" * 300,
]
OURS = ["level", "cell", "Cell", "cells", "levels", "people", "total", "extra", "high", "low", "rowid"]


@pytest.mark.parametrize("name", NAMES + OURS)
def test_any_name_of_a_column_is_just_a_name(name):
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 1")
    rows = {"e": [0.1, 0.1, 1.0], "v": [1.0, 2.0, 3.0], "u": [1, 2, 3]}
    query = accord.mean("v", bounds=(0, 4), step=1)
    right = ([2, 1], [[2, 1 + 2], [1, 3]])

    def renamed(old):
        return con.from_arrow(pa.table({name if key == old else key: values for key, values in rows.items()}))

    quoted = '"' + name.replace('"', '""') + '"'
    assert integers(renamed("v"), accord.mean(name, bounds=(0, 4), step=1)) == right
    assert integers(renamed("e"), query, epsilon=name) == right
    assert integers(renamed("u"), query, user=name) == right
    assert integers(renamed("v"), accord.count(where=f"{quoted} >= 2 AND {quoted} IS NOT NULL")) == (
        [2, 1],
        [[2, 1], [1, 1]],
    )
    assert con.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_a_relation_or_a_column_may_have_the_name_that_the_engine_uses():
    name, con = accord.table({"e": [1.0]}, epsilon="e").reader.engine.source, duckdb.connect()
    con.execute(f"CREATE TABLE {name} AS SELECT 1.0::DOUBLE AS e, 3.0::DOUBLE AS {name}")
    assert integers(con.table(name), accord.mean(name, bounds=(0, 4), step=1)) == ([1], [[1, 3]])
    assert con.sql(f"SELECT * FROM {name}").fetchall() == [(1.0, 3.0)]


def test_any_text_can_be_a_category(in_form):
    texts = ["it's", 'a "b"', "'; DROP TABLE t; --", "ñ☃", "NULL", "\\", "%", "1", "a,b", "a;b"]
    source = in_form({"e": [1.0] * 12, "r": [*texts, "1", None]})
    assert integers(source, accord.histogram("r", categories=texts)) == (
        [12],
        [[1, 1, 1, 1, 1, 1, 1, 2, 1, 1]],
    )


# --- levels and people ------------------------------------------------------------------------------------------------------

NAMED = {"public": inf, "standard": 1.0, "strict": 0.1, "none": 0}
CHOSEN = ["strict", "public", "standard", "strict", "none", None]
TIERED = {
    "text": pa.table({"t": CHOSEN}),
    "pandas": pd.DataFrame({"t": CHOSEN}),
    "pandas categorical": pd.DataFrame({"t": pd.Categorical(CHOSEN)}),
    "pandas objects": pd.DataFrame({"t": pd.Series(CHOSEN, dtype=object)}),
    "arrow dictionary": pa.table({"t": pa.array(CHOSEN).dictionary_encode()}),
    "polars categorical": pl.DataFrame({"t": pl.Series(CHOSEN, dtype=pl.Categorical)}),
    "list": {"t": CHOSEN},
}


@pytest.mark.parametrize("form", TIERED)
def test_tiers_are_read_from_text_of_every_kind(form):
    options = {"epsilon": "t", "tiers": NAMED}
    source = TIERED[form]
    with pytest.raises(SpecError, match=r"^1 of 6 people have no level \(NULL\)\. Give default="):
        accord.table(source, **options).spec()
    for default, groups in (
        ("strict", {0.1: 3, 1.0: 1, inf: 1, 0: 1}),
        (0.5, {0.1: 2, 0.5: 1, 1.0: 1, inf: 1, 0: 1}),
        ("none", {0.1: 2, 1.0: 1, inf: 1, 0: 2}),
        (0, {0.1: 2, 1.0: 1, inf: 1, 0: 2}),
    ):
        people = accord.table(source, **options, default=default)
        assert people.spec() == accord.Spec.from_groups(groups), default
        assert (
            people.reader.summary(accord.count(where="t IS NULL OR t IS NOT NULL")).weighted(
                people.spec().micro * 0 + 1
            )
            == [people.spec().total] * 2
        )


@pytest.mark.parametrize(
    ("values", "tiers"),
    [
        (pa.array([1, 2, 2, None]), {1: 0.1, 2: 1.0}),
        (pa.array([1, 2, 2, None], pa.uint8()), {"1": 0.1, "2": 1.0}),
        (pa.array([True, False, False, None]), {True: 0.1, False: 1.0}),
    ],
    ids=["integers", "small integers", "booleans"],
)
def test_tiers_may_be_numbers_or_booleans(values, tiers):
    people = accord.table(pa.table({"t": values}), epsilon="t", tiers=tiers, default=1.0)
    assert people.spec() == accord.Spec.from_groups({0.1: 1, 1.0: 3})


def test_one_number_is_everyones_level():
    source = {"v": [1.0, 2.0, 3.0]}
    query = accord.mean("v", bounds=(0, 4), step=1)
    assert integers(source, query, epsilon=0.5) == ([3], [[3, 6]])
    assert accord.table(source, epsilon=0.5).spec() == accord.Spec.from_groups({0.5: 3})
    assert accord.table(source, epsilon=inf).spec() == accord.Spec.from_groups({inf: 3})
    assert accord.table(source, epsilon=1e-9).spec() == accord.Spec.from_groups({0: 3})


def test_a_default_level_is_for_null_and_not_for_nan():
    levels = pa.table({"e": pa.array([0.1, None, 1.0])})
    assert accord.table(levels, epsilon="e", default=0.2).spec() == accord.Spec.of([0.1, 0.2, 1.0])
    broken = pa.table({"e": pa.array([0.1, nan, 1.0])})
    with pytest.raises(SpecError, match=r"^1 of 3 people have a level that is NaN or not a number"):
        accord.table(broken, epsilon="e", default=0.2).spec()


@pytest.mark.parametrize("users", [[1, 2, 3], ["a", "A", "a."], [1.5, 2.5, -0.5]])
def test_one_row_a_person_is_accepted(users):
    assert accord.table(pa.table({"e": [1.0] * 3, "u": users}), epsilon="e", user="u").spec().total == 3


@pytest.mark.parametrize("users", [[1, 1, 2], ["a", "b", "a"]])
def test_rows_of_one_person_are_one_person(in_form, users):
    people = accord.table(in_form({"e": [1.0, 1.0, 0.5], "v": [1.0] * 3, "u": users}), epsilon="e", user="u")
    assert people.spec().total == 2


def test_nan_is_nobody():
    people = accord.table(pa.table({"e": [1.0] * 3, "u": [1.0, nan, nan]}), epsilon="e", user="u")
    with pytest.raises(SourceError, match=r"^2 rows are of nobody"):
        people.spec()


@pytest.mark.parametrize("users", [[1, None, 2], [None, None, None]])
def test_rows_of_nobody_are_refused(in_form, users):
    people = accord.table(in_form({"e": [1.0] * 3, "v": [1.0] * 3, "u": users}), epsilon="e", user="u")
    query = accord.mean("v", bounds=(0, 1))
    for attempt in (people.spec, lambda: people.plan(query), lambda: people.release(query)):
        with pytest.raises(SourceError, match=r"^[13] rows are of nobody"):
            attempt()


# --- a source that changes --------------------------------------------------------------------------------------------------

OTHER = {
    "another level": pa.table({"e": [1.0, 2.0, 4.0] * 50, "v": [1.0] * 150}),
    "fewer people": pa.table({"e": [1.0, 2.0, 3.0] * 49, "v": [1.0] * 147}),
    "somebody opted out more": pa.table({"e": [1.0, 2.0, 3.0] * 50 + [0.0], "v": [1.0] * 151}),
    "no value": pa.table({"e": [1.0, 2.0, 3.0] * 50}),
}


@pytest.mark.parametrize("change", [*OTHER, "gone"])
@pytest.mark.parametrize("read_before", [True, False])
def test_a_change_between_plan_and_release_is_noticed(tmp_path, change, read_before):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"e": [1.0, 2.0, 3.0] * 50, "v": [1.0] * 150}), path)
    people = accord.table(path, epsilon="e")
    plan = people.plan(accord.mean("v", bounds=(0, 1)), mechanism="minimum")
    assert people.release(plan).plan is plan
    path.unlink()
    if change != "gone":
        pq.write_table(OTHER[change], path)
    with pytest.raises((SourceError, PlanError, accord.errors.QueryError)):
        (people if read_before else accord.table(path, epsilon="e")).release(plan)


def test_an_array_that_changes_is_noticed():
    levels = np.array([1.0, 2.0, 3.0] * 50)
    people = accord.table({"e": levels, "v": np.ones(150)}, epsilon="e")
    plan = people.plan(accord.mean("v", bounds=(0, 1)), mechanism="minimum")
    levels[0] = 0.5
    with pytest.raises(
        SourceError, match=r"^the table has changed since its levels were read\. Open it again"
    ):
        people.release(plan)


CONDITIONS = {
    "v IS NULL": 3,
    "v IS NOT NULL": 2,
    "r IS NULL": 1,
    "v IN (1, 3)": 2,
    "r IN ('a', 'c', 'd')": 3,
    "r NOT IN ('a', 'c')": 1,
    "b <> TRUE": 2,
    "d >= '2020-01-02'": 2,
    "d < '2020-01-02 00:00:01' AND NOT v = 3": 1,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_is_met_by_whom_it_should_be(where):
    """What is not a finite number is no value, and a comparison with no value is met by nobody."""
    columns = {
        "v": [1.0, nan, None, inf, 3.0],
        "r": ["a", "b", None, "a", "c"],
        "b": [True, False, None, True, False],
        "d": [
            datetime.date(2020, 1, 1),
            datetime.date(2020, 1, 2),
            None,
            datetime.date(2020, 1, 3),
            datetime.date(2020, 1, 1),
        ],
    }
    table = accord.table(pa.table(columns), epsilon=1.0)
    ((people, met),) = table.reader.summary(accord.count(where=where)).rows()
    assert (people, met) == (5, CONDITIONS[where])


@pytest.mark.parametrize(
    ("where", "refusal"),
    [
        ("o = 1", "column 'o' is of a kind that cannot be compared"),
        ("d > 'soon'", "column 'd' holds dates without a time zone, and 'soon' is not one"),
        (
            "d > '2020-01-01T00:00:00+01:00'",
            "column 'd' holds dates without a time zone, and '2020-01-01T00:00:00+01:00' is not one",
        ),
        ("d > 7", "column 'd' holds dates, and 7.0 is not one"),
        ("b > TRUE", "column 'b' is true or false; it can be compared by = and <> only"),
        ("r > 'a'", "column 'r' is text; it can be compared by =, <> and IN only"),
    ],
)
def test_a_condition_that_cannot_be_met_is_refused(where, refusal):
    columns = {"o": [[1]], "d": [datetime.date(2020, 1, 1)], "b": [True], "r": ["a"]}
    table = accord.table(pa.table(columns), epsilon=1.0)
    with pytest.raises(QueryError, match=f"^{re.escape(refusal)}"):
        table.reader.summary(accord.count(where=where))
