"""Spark, on a local cluster of two executors: the same integers as DuckDB over the same rows, bit for bit, and nothing but aggregates leaves it."""

import datetime
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from math import inf, nan, nextafter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accord
from accord.engines import spark as engine
from accord.errors import LedgerError, QueryError, SourceError, SpecError
from accord.lab import populations

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

NASTY = 'x"; DROP TABLE t'
DOTTED = "a.b`c ${env:HOME} ☃"
KEYS = ["it's", 'a "b"', "back\\slash\\n", "two\nlines", "${env:HOME}", "ñ☃", "{x}", "plain"]
EPOCH = datetime.datetime(1970, 1, 1)


@pytest.fixture
def setting(session):
    """Change the session's settings for one test."""
    changed = {}

    def change(**values):
        for name, value in values.items():
            key = "spark.sql." + name.replace("_", ".")
            changed.setdefault(key, session.conf.get(key, None))
            session.conf.set(key, value)

    yield change
    for key, value in changed.items():
        session.conf.unset(key) if value is None else session.conf.set(key, value)


# --- the same rows in both ---------------------------------------------------------------------------------------------

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
VALUES = [*SPECIAL, *ON_EDGES, 7.3, 1e9, -1e9, 0.1, 0.30000000000000004, 31.99999]
ARROW = {
    "e": pa.float64(), "tier": pa.string(), "u": pa.string(), "n": pa.int64(), NASTY: pa.float64(), DOTTED: pa.string(), "b": pa.bool_(),
    "d": pa.date32(), "t": pa.timestamp("us"), "big": pa.int64(), "money": pa.decimal128(12, 3), "f": pa.float32(),
}  # fmt: skip
SPARK = "e double, tier string, u string, n bigint, {} double, {} string, b boolean, d date, t timestamp_ntz, big bigint, money decimal(12,3), f float"


def rows():
    chance = random.Random(20261116)
    people = []
    for k in range(240):
        person = chance.randrange(70)
        day = datetime.date(1969, 12, 30) + datetime.timedelta(
            days=chance.choice([0, 1, 2, 3, 400, 20000, -30000])
        )
        moment = EPOCH + datetime.timedelta(
            microseconds=chance.choice([-1, 0, 1, 86399999999, -86400000001, 10**15 + 7, 123456789123])
        )
        people.append((
            chance.choice([0.1, 1.0, inf, 2.5, 0.0, 1e-9]),
            chance.choice(["strict", "it's", "public", None]),
            f"person {person}",
            person,
            VALUES[k % len(VALUES)],
            chance.choice([*KEYS, None, "PLAIN", "plain "]),
            chance.choice([True, False, None]),
            chance.choice([day, None]),
            chance.choice([moment, None]),
            chance.choice([2**62, -(2**62), 2**53 + 1, 7, None]),
            chance.choice([Decimal("1.500"), Decimal("-0.001"), Decimal("123456789.125"), None]),
            chance.choice([0.1, 2.5, nan, None]),
        ))  # fmt: skip
    return people


ROWS = rows()
TIERS = {"strict": 0.1, "it's": 1.5, "public": inf}


def arrow(rows=ROWS):
    return pa.table(
        {name: pa.array([row[k] for row in rows], kind) for k, (name, kind) in enumerate(ARROW.items())}
    )


@pytest.fixture(scope="module")
def frame(session):
    """In another order, over several partitions."""
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    names = ["`" + name.replace("`", "``") + "`" for name in (NASTY, DOTTED)]
    created = session.createDataFrame(shuffled, SPARK.format(*names)).repartition(3).cache()
    created.count()
    return created


GRID = {"bounds": (-64, 64), "step": 0.25}
DAYS = (datetime.date(1960, 1, 1), datetime.date(2030, 1, 1))
MOMENTS = (datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 3))
QUERIES = {
    "mean": lambda **of: accord.mean(NASTY, **GRID, **of),
    "mean on the default grid": lambda **of: accord.mean(NASTY, bounds=(0, 32), missing=7, **of),
    "mean of floats": lambda **of: accord.mean("f", bounds=(0, 1), **of),
    "mean of decimals": lambda **of: accord.mean("money", bounds=(0, 2), **of),
    "mean of true and false": lambda **of: accord.mean("b", bounds=(0, 1), **of),
    "sum": lambda **of: accord.sum(NASTY, bounds=(-1, 3), step=0.5, **of),
    "large": lambda **of: accord.sum("big", bounds=(0, 2**40), step=1, missing=5, **of),
    "count": lambda **of: accord.count(**of),
    "proportion": lambda **of: accord.proportion(WHERE, **of),
    "correlation": lambda **of: accord.correlation("f", NASTY, bounds={NASTY: (-1, 3), "f": (0, 2)}, **of),
    "covariance": lambda **of: accord.covariance(NASTY, "f", bounds={NASTY: (-1, 3), "f": (0, 2)}, **of),
    "edges": lambda **of: accord.histogram(NASTY, edges=[-1, 0, 2.5, 32], missing="unknown", **of),
    "categories": lambda **of: accord.histogram(DOTTED, categories=KEYS, **of),
    "numbers as categories": lambda **of: accord.histogram(NASTY, categories=[0, 2.5], missing="other", **of),
    "with and without a number": lambda **of: accord.statistics.reporting_missing(
        accord.mean(NASTY, (0, 32), **of), 0.1
    ).queries[1],
    "edges of days": lambda **of: accord.histogram(
        "d", edges=["1969-12-31", "1970-01-01", "1970-01-02"], **of
    ),
    "edges of days of moments": lambda **of: accord.histogram(
        "t", edges=["1969-12-31", "1970-01-01", "1970-01-02"], **of
    ),
    "edges of moments": lambda **of: accord.histogram(
        "t", edges=["1969-12-31 12:00", "1970-01-01 00:00:00.5", "1970-01-02 00:00"], missing="unknown", **of
    ),
    "days as categories": lambda **of: accord.histogram("d", categories=["1969-12-31", "1970-01-01"], **of),
    "quantiles": lambda **of: accord.quantile(NASTY, [0.1, 0.9], **GRID, **of),
    "median": lambda **of: accord.median(NASTY, bounds=(0, 32), **of),
    "median day": lambda **of: accord.median("d", bounds=DAYS, **of),
    "day of a moment": lambda **of: accord.median("t", bounds=DAYS, **of),
    "median moment": lambda **of: accord.median("t", bounds=MOMENTS, **of),
    "min": lambda **of: accord.min(NASTY, **GRID, missing=3, **of),
    "max": lambda **of: accord.max(NASTY, **GRID, missing=-1, **of),
    "regression": lambda **of: accord.regression(
        NASTY, ["f", DOTTED], bounds={NASTY: (-1, 3), "f": (0, 2)}, categories={DOTTED: KEYS[:3]}, **of
    ),
}
WHERE = (
    f"\"{NASTY.replace(chr(34), chr(34) * 2)}\" >= -1 AND NOT \"{DOTTED}\" IN ('it''s', 'two\nlines', 'back\\slash\\n') OR b AND big IS NULL "
    "OR t < '1970-01-01' AND t >= '1969-12-30 23:59:59.999999' OR d <> '1970-01-01' AND money > 1.4"
)
PARTS = {
    "everyone": {},
    "where": {"where": WHERE},
    "by": {"by": DOTTED, "keys": ["two\nlines", "ñ☃", "it's", "nobody", "back\\slash\\n"]},
    "where and by": {"where": "f IS NOT NULL OR n < 20", "by": "b", "keys": [False, True]},
}
ROSTER = accord.Spec.from_groups({0.1: 100, 1.0: 80, inf: 60})
OPENED = {
    "rows": {"epsilon": "e"},
    "people": {"epsilon": "e", "user": "u"},
    "tiers": {"epsilon": "tier", "tiers": TIERS, "default": "strict"},
    "people of tiers": {"epsilon": "tier", "tiers": TIERS, "default": "public", "user": "n"},
    "add-remove": {"epsilon": "e", "neighbors": "add-remove", "roster": ROSTER},
    "people who come or go": {"epsilon": "e", "user": "u", "neighbors": "add-remove", "roster": ROSTER},
}


def summaries(people, query, **options):
    return [(s.people.tolist(), s.outputs, list(s.rows())) for s in people.reader.summaries(query, **options)]


def asked(part, user):
    """Every statistic, as many as have a meaning."""
    of = PARTS[part]
    queries = {name: build(**of) for name, build in QUERIES.items()}
    if user:
        queries["rows"] = accord.rows(max=4, **of)
    return queries


FEW = ("mean", "large", "proportion", "covariance", "edges", "categories", "quantiles", "regression", "rows")
# Spark takes its time for each question: all of them in two ways, a few in the others
TURNS = [
    ("rows", "everyone", True), ("people", "everyone", False), ("rows", "where", False), ("people", "by", True), ("tiers", "by", False),
    ("people of tiers", "where", True), ("add-remove", "where and by", True), ("people who come or go", "where and by", False),
]  # fmt: skip


@pytest.mark.parametrize(("opened", "part", "ansi"), TURNS)
def test_every_statistic_is_the_same_as_in_duckdb(frame, setting, opened, part, ansi):
    setting(ansi_enabled=str(ansi).lower(), caseSensitive=str(ansi).lower(), adaptive_enabled="false")
    if (opened, part) != (
        "rows",
        "where",
    ):  # Spark's compiler takes its time, and its interpreter must agree with it
        setting(codegen_wholeStage="false", codegen_factoryMode="NO_CODEGEN")
    ours, theirs = (accord.table(source, **OPENED[opened]) for source in (frame, arrow()))
    assert ours.columns == theirs.columns
    assert ours.spec() == theirs.spec()
    for name, query in asked(part, "user" in OPENED[opened]).items():
        if part == "everyone" or name in FEW:
            assert summaries(ours, query) == summaries(theirs, query), name


def test_by_cell_and_public_groups(frame):
    ours, theirs = (accord.table(source, epsilon="e", user="n") for source in (frame, arrow()))
    query = accord.mean(NASTY, **GRID)
    assert summaries(ours, query, by_cell=True) == summaries(theirs, query, by_cell=True)
    part = accord.mean(NASTY, **GRID, where="n < 30", membership="public").part
    groups = [people.groups(part) for people in (ours, theirs)]
    assert groups[0][None].spec() == groups[1][None].spec()
    assert summaries(groups[0][None], query) == summaries(groups[1][None], query)


def test_settings_of_the_session_change_nothing(frame, setting):
    setting(
        parser_escapedStringLiterals="true",
        parser_quotedRegexColumnNames="true",
        ansi_enforceReservedKeywords="true",
        ansi_doubleQuotedIdentifiers="true",
        decimalOperations_allowPrecisionLoss="false",
        legacy_interval_enabled="true",
        session_timeZone="Asia/Kathmandu",
    )
    ours, theirs = (
        accord.table(source, epsilon="tier", tiers=TIERS, default="strict", user="u")
        for source in (frame, arrow())
    )
    for name in ("categories", "large", "median moment"):
        query = QUERIES[name](where=WHERE)
        assert summaries(ours, query) == summaries(theirs, query), name


def test_sums_beyond_64_bits(session):
    size = 9_000_000
    ours = session.range(0, size, 1, 2).selectExpr("1.0D AS e", f"{2**40} - 1 - id % 2 AS x", "0 AS u")
    theirs = duckdb.sql(f"SELECT 1.0 AS e, {2**40} - 1 - range % 2 AS x, 0 AS u FROM range({size})")
    query = accord.mean("x", bounds=(0, 2**40), step=1)
    total = size * (2**40 - 1) - size // 2
    assert total > 2**63
    assert summaries(accord.table(ours, epsilon="e"), query) == [([size], 2, [[size, total]])]
    by_person = [summaries(accord.table(source, epsilon="e", user="u"), query) for source in (ours, theirs)]
    assert by_person[0] == by_person[1] == [([1], 2, [[1, 2**40 - 1]])]


# --- names, moments, ids ------------------------------------------------------------------------------------------------


def test_names_that_differ_in_case_only_and_collations(session):
    frame = session.sql(
        "SELECT * FROM VALUES (1.0D, 1, 2, 'A' COLLATE UTF8_LCASE), (1.0D, 3, 2, 'a' COLLATE UTF8_LCASE) AS t(e, v, `V`, c)"
    )
    people = accord.table(frame, epsilon="e")
    assert [summaries(people, accord.mean(name, bounds=(0, 4), step=1))[0][2] for name in "vV"] == [
        [[2, 4]],
        [[2, 4]],
    ]
    assert summaries(people, accord.histogram("c", categories=["a", "A"]))[0][2] == [[1, 1]]
    with pytest.raises(SourceError, match="several columns of the DataFrame have the same name"):
        accord.table(frame.toDF("e", "v", "v", "c"), epsilon="e")


def test_moments(session, tmp_path):
    """Instants are read in UTC, whatever the time zone; what lies too far away is missing."""
    near = [0, -1, 1, 86_400_000_000, 1_540_000_000_123_456, -2_208_988_800_000_001]
    micros = [*near, 2**63 - 1, -(2**63) + 1, 2**62, -(2**62)]
    table = pa.table({"e": [1.0] * len(micros), "t": pa.array(micros, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet")
    ours = session.read.parquet(str(tmp_path / "t.parquet"))
    assert dict(ours.dtypes)["t"] == "timestamp_ntz"
    instants = session.createDataFrame([(1.0, x) for x in near], "e double, x bigint").selectExpr(
        "e", "timestamp_micros(x) AS t"
    )
    for query in (
        accord.median("t", bounds=MOMENTS),
        accord.median("t", bounds=DAYS),
        accord.count(where="t >= '1969-12-31 23:59:59.999999' AND t < '2018-10-20'"),
    ):
        expected = summaries(accord.table(table, epsilon="e"), query)
        assert summaries(accord.table(ours, epsilon="e"), query) == expected
        expected = summaries(accord.table(table.slice(0, len(near)), epsilon="e"), query)
        assert summaries(accord.table(instants, epsilon="e"), query) == expected
    far = session.sql("SELECT 1.0D AS e, date_add(DATE'9999-12-31', 2000000000) AS d")
    assert summaries(accord.table(far, epsilon="e"), accord.count(where="d > '1970-01-01'"))[0][2] == [[1, 0]]


IDS = {
    "text": (pa.string(), "string", ["7", " 7\t", "7.0", "7.00", "a.0.0", "é", "e\u0301", "\u212b", "x\u2028", "7.0\u2028", "\ufeffñ\u00a0", "", "\U0001f600", "한", "\u1112\u1161\u11ab"]),
    "whole": (pa.int64(), "bigint", [7, -7, 0, 2**63 - 1, 10, 100]),
    "double": (pa.float64(), "double", [7.0, 7.5, -0.0, 12345678.5, 0.001, 1e15, 123456.789e-6, -2.25, 0.1, 1e10, 9007199254740991.0]),
    "float": (pa.float32(), "float", [7.0, 7.5, 16777215.0, 0.1015625]),
    "decimal": (pa.decimal128(12, 3), "decimal(12,3)", [Decimal("7.000"), Decimal("7.500"), Decimal("0.001"), Decimal("-100.000")]),
}  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_people_have_the_same_hash_everywhere(session, setting, ansi):
    setting(ansi_enabled=ansi)
    longest = max(len(ids) for _, _, ids in IDS.values())
    columns = {name: [ids[k % len(ids)] for k in range(longest)] for name, (_, _, ids) in IDS.items()}
    theirs = accord.table(
        pa.table(
            {
                "k": range(longest),
                **{name: pa.array(values, IDS[name][0]) for name, values in columns.items()},
            }
        ),
        epsilon=1.0,
    )
    schema = "k bigint, " + ", ".join(f"{name} {kind}" for name, (_, kind, _) in IDS.items())
    ours = accord.table(
        session.createDataFrame(list(zip(range(longest), *columns.values(), strict=True)), schema),
        epsilon=1.0,
    )
    hashed_by = []
    for people in (ours, theirs):
        sql = people.reader.engine.dialect
        kinds = people.reader.engine.columns
        hashed = ", ".join(
            f"{sql.person(sql.identity(name, kinds[name]), name, kinds[name], ('secret',))} AS {name}"
            for name in IDS
        )
        result = people.reader.engine.fetch(
            f"SELECT {sql.column('k')} AS k, {hashed} FROM {people.reader.engine.source}"
        )
        order = np.argsort(result.pop("k"))
        hashed_by.append({name: values[order].tolist() for name, values in result.items()})
    assert hashed_by[0] == hashed_by[1]
    hashes = dict(zip(columns["text"], hashed_by[0]["text"], strict=True))
    assert (
        hashes["7"]
        == hashes[" 7\t"]
        == hashes["7.00"]
        == hashed_by[0]["whole"][0]
        == hashed_by[0]["double"][0]
    )
    assert hashes["é"] == hashes["e\u0301"]


# --- releases -----------------------------------------------------------------------------------------------------------


def test_releases(frame):
    """Where everyone is public there is no noise: the answers are the same to the last bit."""
    ours, theirs = (accord.table(source, epsilon=inf, user="u") for source in (frame, arrow()))
    for name in ("mean", "categories", "median", "regression"):
        query = QUERIES[name]()
        assert repr(ours.release(query).value) == repr(theirs.release(query).value), name
    noisy = accord.table(frame, epsilon="e", user="u").release(QUERIES["regression"](), "affine", share=0.5)
    assert noisy.mechanism == "affine" and set(noisy.charges) <= {0.1, 1.0, 2.5, inf}


def test_a_ledger_knows_the_people_of_both_engines(session, tmp_path):
    columns = {
        "id": [f"é{k}" for k in range(30)],
        "e": [0.5, 1.0, 2.0] * 10,
        "x": [float(k) for k in range(30)],
    }
    ours = accord.table(
        session.createDataFrame(list(zip(*columns.values(), strict=True)), "id string, e double, x double"),
        epsilon="e",
        user="id",
    )
    theirs = accord.table(pa.table(columns), epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(ours, "people")
    ours.release(accord.mean("x", bounds=(0, 30)), "minimum", share=0.5, ledger=ledger)
    assert ledger.remaining(theirs) == ledger.remaining(ours)
    theirs.release(accord.sum("x", bounds=(0, 30)), "minimum", share=0.25, ledger=ledger)
    assert [entry["state"] for entry in ledger.history()] == [
        "released",
        "released",
    ] and ledger.verify().problems == ()
    assert ledger.remaining(ours).levels[0] < 0.25


# --- faults -------------------------------------------------------------------------------------------------------------

SLOW = "CASE WHEN length(reflect('java.lang.Thread', 'sleep', CAST({} AS BIGINT))) > 100 THEN 0.0D ELSE CAST(id AS DOUBLE) END AS x"


def slow(session, size, milliseconds):
    """People who take their time, in eight tasks."""
    return session.range(0, size, 1, 8).selectExpr("1.0D AS e", SLOW.format(milliseconds))


def executors():
    """The processes of the executors of this very test."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            names[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            continue

    def ours(pid):
        return pid == os.getpid() or (pid in parents and ours(parents[pid]))

    return [pid for pid, name in names.items() if b"CoarseGrainedExecutorBackend" in name and ours(pid)]


def test_ctrl_c_stops_the_query(session):
    people = accord.table(slow(session, 2_000_000, 1), epsilon="e")  # a thousand seconds
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        people.reader.summaries(accord.sum("x", bounds=(0, 2_000_000), step=1))
    assert time.perf_counter() - start < 300
    while session.sparkContext.statusTracker().getActiveJobsIds():  # it hears of the end a little later
        assert time.perf_counter() - start < 600
        time.sleep(0.1)
    few = accord.table(session.range(0, 10).selectExpr("1.0D AS e", "id AS x"), epsilon="e")
    assert summaries(few, accord.sum("x", bounds=(0, 10), step=1))[0][2] == [
        [10, 45]
    ]  # Spark is as good as new
    assert not session.catalog.listTables()


@pytest.mark.slow
def test_the_loss_of_an_executor_changes_no_answer(session):
    """Spark tries again elsewhere; were it to give up, it would be a SourceError."""
    people = accord.table(slow(session, 400, 20), epsilon="e")  # 4 seconds
    killed = []

    def kill():
        pid = executors()[0]
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    timer = threading.Timer(1.5, kill)
    timer.start()
    summed = summaries(people, accord.sum("x", bounds=(0, 400), step=1))
    assert killed and summed == [([400], 2, [[400, 400 * 399 // 2]])]


def test_an_error_says_nothing_of_the_data(session, setting, capfd):
    setting(ansi_enabled="true")
    broken = session.sql("SELECT 1.0D AS e, CAST(concat('se', 'cret ', id) AS INT) AS x FROM range(3)")
    people = accord.table(broken, epsilon="e")
    with pytest.raises(SourceError) as caught:
        people.release(accord.mean("x", bounds=(0, 1)))
    assert str(caught.value) == (
        "cannot read the DataFrame (NumberFormatException). Check that it is whole and unchanged and that its session is running, and open it again."
    )
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert "cret" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("fault", ["deleted", "cut off"])
def test_a_failing_source_is_charged_and_booked_as_failed(session, tmp_path, monkeypatch, fault):
    path = tmp_path / "people.parquet"
    table = pa.table({"id": range(5000), "e": [1.0] * 5000, "x": np.random.default_rng(1).random(5000)})
    pq.write_table(table, path)
    people = accord.table(session.read.parquet(str(path)), epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    fetch = people.reader.engine.fetch

    def failing(sql, wide=()):
        if "FLOOR" in sql:  # a value is read
            path.unlink() if fault == "deleted" else path.write_bytes(
                path.read_bytes()[: path.stat().st_size // 2]
            )
        return fetch(sql, wide)

    monkeypatch.setattr(people.reader.engine, "fetch", failing)
    with pytest.raises(SourceError, match="cannot read the DataFrame") as caught:
        people.release(accord.mean("x", bounds=(0, 1)), share=0.5, ledger=ledger)
    assert "parquet" not in str(caught.value)
    assert [entry["state"] for entry in ledger.history()] == ["failed"] and ledger.verify().problems == ()
    assert ledger.remaining(accord.table(table, epsilon="e", user="id")).levels == (0.5,)


# --- the catalog, and what is refused -----------------------------------------------------------------------------------


def test_tables_of_the_catalog(frame, session):
    from click.testing import CliRunner

    from accord.cli import main

    frame.select("e", "u", "big").write.mode("overwrite").saveAsTable("people")
    try:
        expected = accord.table(arrow(), epsilon="e").spec()
        for name in ("people", "default.people", "spark_catalog.default.people"):
            assert accord.table(f"spark://{name}", epsilon="e").spec() == expected
        output = CliRunner().invoke(
            main,
            [
                "plan",
                "spark://default.people",
                "sum",
                "big",
                "--bounds",
                "0",
                "9",
                "--epsilon",
                "e",
                "--user",
                "u",
            ],
        )
        assert output.exit_code == 0, output.output
    finally:
        session.sql("DROP TABLE people")
    for name in ("people", "host:7077", "people; DROP TABLE x"):
        with pytest.raises(
            SourceError,
            match=r"cannot read 'spark://.*Exception\). Write spark://table, spark://database.table",
        ):
            accord.table(f"spark://{name}", epsilon="e")


def test_what_is_refused(session, frame, tmp_path):
    people = accord.table(frame, epsilon="e", user="u")
    with pytest.raises(SourceError, match=r"read where it lies.*one by one"):
        people.release(QUERIES["regression"](), "sample")
    with pytest.raises(SourceError, match="stream has no end"):
        accord.table(session.readStream.format("rate").load(), epsilon=1.0)
    for module, text in (
        ("pyspark.pandas.frame", r"\.to_spark\(\)"),
        ("pyspark.sql.connect.dataframe", "Spark Connect"),
    ):
        with pytest.raises(SourceError, match=text):
            accord.table(type("DataFrame", (), {"__module__": module})(), epsilon=1.0)
    odd = session.sql(
        "SELECT 1.0D AS e, 1.5D AS x, CAST(1 AS DECIMAL(20,8)) AS id, array(1) AS a, INTERVAL '1' DAY AS i, current_timestamp() AS t"
    )
    assert accord.table(odd, epsilon="e").columns == {
        "e": "number",
        "x": "number",
        "id": "number",
        "a": "other",
        "i": "other",
        "t": "timestamp",
    }
    for column in ("x", "id", "t"):
        with pytest.raises(SpecError, match="cannot name tiers in Spark"):
            accord.table(odd, epsilon=column, tiers={"1.5": 1.0})
    with pytest.raises(LedgerError, match="cannot tell people apart"):
        accord.Ledger(tmp_path / "accord.db").register(accord.table(odd, epsilon="e", user="id"), "odd")
    with pytest.raises(QueryError, match="cannot be compared"):
        accord.table(odd, epsilon="e").plan(accord.histogram("a", categories=["1", "2"]))


def test_without_spark(monkeypatch):
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(SourceError, match=r"needs Spark. Install accord\[spark\]"):
        accord.table("spark://people", epsilon="e")


@pytest.mark.slow
def test_a_session_of_accords_own(tmp_path):
    """Without a JAVA_HOME, and without a session: files by Spark's own name for them. Only the result is on stdout."""
    pq.write_table(arrow().select(["e", "n"]), tmp_path / "people.parquet")
    source = f"spark://parquet.`{tmp_path / 'people.parquet'}`"
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["PYTHONPATH"] = str(Path(accord.__file__).parents[1])
    call = [sys.executable, "-m", "accord.cli", "plan", source, "mean", "n", "--bounds", "0", "70", "--epsilon", "e", "--json"]  # fmt: skip
    process = subprocess.run(call, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    expected = accord.table(arrow(), epsilon="e").plan(accord.mean("n", bounds=(0, 70)))
    assert json.loads(process.stdout)["mechanism"] == expected.mechanism


def test_rows_stay_in_spark(session):
    """What would need them here is refused: for a population, and for an algorithm of one's own before it is run."""
    frame = session.range(0, 10).selectExpr("1.0D AS e", "CAST(id AS DOUBLE) AS x")
    frame.createOrReplaceTempView("staying")
    try:
        with pytest.raises(SourceError, match=r"^rows of a table in Spark stay there"):
            populations.column("spark://staying", "x")
    finally:
        session.catalog.dropTempView("staying")
    with pytest.raises(SourceError, match="cannot be kept or left out one by one"):
        accord.sample(
            lambda rows, epsilon: pytest.fail("it was run"), accord.table(frame, epsilon="e"), columns=["x"]
        )
