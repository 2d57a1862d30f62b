"""Bad input, through the public interface: a right answer, or an error that says what, why and what next, and nothing private."""

import traceback
from datetime import date
from math import inf, isfinite, nan

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accord
from accord.engines import SUPPORTED
from accord.errors import AccordError, PlanError, QueryError, SourceError, SpecError

MEAN = accord.mean("v", bounds=(0, 100), step=1)
RULE = "A level is a number ≥ 0 (0: opted out), or inf (public)."
FORMS = f"A table is made from {SUPPORTED}."
BOUNDS_RULE = "Give (low, high) with low < high, from public knowledge, never from the data."
SHARE_RULE = "is not a fraction of a level. Give a number above 0 (at least a millionth) and at most 1."


def people(e=(1.0, 2.0, 3.0), v=(1.0, 2.0, 3.0), **options):
    return accord.table(pa.table({"e": list(e), "v": list(v)}), **{"epsilon": "e", **options})


def exact(values, query):
    """The answer when everyone is public: no noise."""
    return accord.table(pa.table({"v": values}), epsilon=inf).release(query).value


# --- right answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "mean", "with_middle"),
    [
        ([10.0, 20.0, 60.0], 30.0, 30.0),
        ([-5.0, 200.0], 50.0, 50.0),  # clipped
        ([0.0, None], 0.0, 25.0),
        ([80.0, nan], 80.0, 65.0),
        ([20.0, inf, -inf, None], 20.0, 42.5),
        ([None, None], 50.0, 50.0),  # nobody has a value: the middle of what is possible
        ([7.0], 7.0, 7.0),
    ],
)
def test_when_everyone_is_public_the_answer_is_the_plain_clipped_mean(values, mean, with_middle):
    """Of those who have a value, or of all, if the others count as the middle; a sum counts them as 0."""
    column, has_value = pa.array(values, pa.float64()), [v is not None and isfinite(v) for v in values]
    assert exact(column, MEAN) == mean
    assert exact(column, accord.sum("v", bounds=(0, 100), step=1)) == mean * sum(has_value)
    middle = accord.mean("v", bounds=(0, 100), step=1, missing="middle")
    assert exact(column, middle) == with_middle


def test_a_public_release_charges_nobody_a_finite_level_and_has_no_error_about_these_people():
    release = people(e=[inf] * 3).release(MEAN)
    assert release.value == 2.0
    assert release.plan.rmse_here == 0
    assert release.interval(0.99) == (2.0, 2.0)


@pytest.mark.parametrize("e", [[1.0], [1.0, 0.1], [0.000001, 1_000_000.0]])
def test_one_or_two_people_are_answered(e):
    table = people(e=e, v=[5.0] * len(e))
    release = table.release(MEAN, mechanism="minimum")
    assert isfinite(release.value)
    assert release.charges == dict.fromkeys(e, min(e))
    assert table.plan(MEAN).rmse <= 50  # never worse than the middle of the bounds


def test_a_level_below_a_millionth_is_opted_out_and_never_counted():
    table = people(e=[inf, 1e-12, 0.0], v=[7.0, 100.0, 100.0])
    assert (table.spec().total, table.spec().opted_out) == (1, 2)
    assert table.release(MEAN).value == 7.0


def test_a_million_distinct_levels_are_planned_and_released():
    n = 1_000_000
    table = accord.table({"e": np.arange(1, n + 1) / 1e6, "v": np.full(n, 30.0)}, epsilon="e")
    release = table.release(MEAN)
    assert len(release.charges) == n
    assert all(charge <= level for level, charge in release.charges.items())
    assert abs(release.value - 30) < 50 * release.plan.rmse_here


# --- refusals ---------------------------------------------------------------------------------------------------------------

QUERIES = {
    "bounds=(1, 0) are reversed. " + BOUNDS_RULE: lambda: accord.mean("v", bounds=(1, 0)),
    "bounds=(1, 1) are equal. " + BOUNDS_RULE: lambda: accord.sum("v", bounds=(1, 1)),
    "a bound is inf. It must be a finite number.": lambda: accord.mean("v", bounds=(0, inf)),
    "a bound is nan. It must be a finite number.": lambda: accord.mean("v", bounds=(nan, 1)),
    "a bound is 'low'. A text is a date such as '2026-01-31', or a moment such as '2026-01-31 12:00:00', without a time zone; a number has no quotes.": lambda: (
        accord.mean("v", bounds=("low", "high"))
    ),
    "bounds= of mean('v') is not a pair. Give public bounds (low, high), such as bounds=(0, 200_000).": lambda: (
        accord.mean("v", bounds=3)
    ),
    "there is no column 'vv': did you mean 'v'? Known: 'e', 'v'.": lambda: people().plan(
        accord.mean("vv", (0, 1))
    ),
    "there is no column 'income': Known: 'e', 'v'.": lambda: people().release(
        accord.histogram("income", [0, 1, 2])
    ),
    "there is no column 'V': did you mean 'v'? Known: 'e', 'v'.": lambda: people().plan(
        accord.count(where="V > 3")
    ),
    "column 'v' holds text; a mean needs numbers. Choose another column, or count with accord.histogram(…, categories=…).": (
        lambda: people(v=["a", "b", "c"]).plan(MEAN)
    ),
    "column 'v' holds dates; a histogram needs numbers. Give edges that are dates, such as '2026-01-31'.": (
        lambda: people(v=[date(2020, 1, 1)] * 3).release(accord.histogram("v", [0, 1, 2]))
    ),
    "column 'v' holds neither numbers nor text; a sum needs numbers. Choose another column, or count with accord.histogram(…, categories=…).": (
        lambda: people(v=[[1], [2], [3]]).plan(accord.sum("v", bounds=(0, 1)))
    ),
    "column 'v' holds numbers, and 'a' is not one. Give a number, such as 30.": lambda: people().plan(
        accord.count(where="v = 'a'")
    ),
    "a release answers a query or a plan, not str. Make one with accord.mean or its siblings; several together are accord.workload([…]).": lambda: (
        people().release("mean of v")
    ),
    "a plan is made for a query, not for str. Make one with accord.mean or its siblings; several together are accord.workload([…]).": lambda: (
        people().plan("mean of v")
    ),
    "confidence=1 is not between 0 and 1. Ask for 0.95, for example.": lambda: (
        people().release(MEAN).interval(1)
    ),
    "confidence=0 is not between 0 and 1. Ask for 0.95, for example.": lambda: (
        people().release(MEAN).interval(0)
    ),
    "confidence=nan is not between 0 and 1. Ask for 0.95, for example.": lambda: (
        people().release(MEAN).interval(nan)
    ),
}
SPECS = {
    f"1 of 3 people have a level that is negative. {RULE} Correct them, or leave these people out.": lambda: (
        people(e=[1, -0.5, 2]).spec()
    ),
    f"2 of 3 people have a level that is NaN or not a number (names of tiers are declared: tiers={{'strict': 0.1, 'public': inf}}). {RULE} Correct them, or leave these people out.": lambda: (
        people(e=[1, nan, nan]).plan(MEAN)
    ),
    "1 of 3 people have no level (NULL). Give default=, or leave them out of the table.": lambda: people(
        e=[1, None, 2]
    ).release(MEAN),
    f"1 of 3 people have a level that is larger than 1000000, which protects nobody (write inf for public data). {RULE} Correct them, or leave these people out.": (
        lambda: people(e=[1, 1e7, 2]).spec()
    ),
    f"1 of 1 levels are negative. {RULE} Correct them, or leave these people out.": lambda: people(
        epsilon=-1.0
    ),
    f"1 of 1 levels are NaN. {RULE} Correct them, or leave these people out.": lambda: people(epsilon=nan),
    "column 'v' holds no numbers. If it names tiers, declare them: tiers={'strict': 0.1, 'public': inf}.": lambda: (
        people(v=["a", "b", "c"], epsilon="v")
    ),
    "tier '1' is declared twice. Give each tier one level.": lambda: people(tiers={1: 0.1, "1": 0.2}),
    "tier 'strct' of 2 people is not declared. Give it a level (0: opted out), or correct it: did you mean 'strict'? Known: 'strict', 'public'.": lambda: (
        people(e=["strict", "strct", "strct"], tiers={"strict": 0.1, "public": inf}).spec()
    ),
    "tier 'strict' has the level -1. A level is 0 (opted out), a number from a millionth to 1000000, or inf (public).": lambda: (
        people(tiers={"strict": -1})
    ),
    "tiers= is empty. Give each tier a level, such as {'strict': 0.1, 'public': inf}.": lambda: people(
        tiers={}
    ),
    "default='strict' is not a declared tier. Give tiers=, or a number.": lambda: people(default="strict"),
    "epsilon= is one number for everyone, so tiers= has no meaning. Name the column of tiers, or leave tiers= out.": lambda: (
        people(epsilon=1.0, tiers={"strict": 1})
    ),
}
NAMES = "'auto', 'minimum', 'threshold', 'proportional', 'affine', 'fallah', 'stretch', 'mix', 'rank', 'sample', 'pe', 'robust'"
PLANS = {
    f"there is no mechanism 'treshold': did you mean 'threshold'? Known: {NAMES}.": lambda: people().plan(
        MEAN, "treshold"
    ),
    f"there is no mechanism 'gauss': Known: {NAMES}.": lambda: people().release(MEAN, mechanism="gauss"),
    "proportional cannot answer the mean of v: people with ε = inf would outweigh everyone else. Use one of minimum, threshold, affine, fallah, mix, sample, or 'auto'.": (
        lambda: people(e=[1, 2, inf]).release(MEAN, mechanism="proportional")
    ),
    "stretch cannot answer the mean of v: answers count and rows and sum only. Use one of minimum, threshold, proportional, affine, fallah, mix, sample, or 'auto'.": (
        lambda: people().plan(MEAN, "stretch")
    ),
    "t= is the level of the mechanisms threshold and sample. Add mechanism='threshold' or 'sample', or leave t= out.": lambda: (
        people().plan(MEAN, t=1)
    ),
    "threshold cannot answer the mean of v: nobody allows t = 4; the most that a person may be charged here (share × level) is 3. Use one of minimum, proportional, affine, fallah, mix, sample, or 'auto'.": (
        lambda: people().release(MEAN, "threshold", t=4)
    ),
    "t=0 is not a level. Give a number of at least a millionth, or inf for public people only.": lambda: (
        people().plan(MEAN, "threshold", t=0)
    ),
    f"share=0 {SHARE_RULE}": lambda: people().plan(MEAN, share=0),
    f"share=-0.5 {SHARE_RULE}": lambda: people().plan(MEAN, share=-0.5),
    f"share=1.5 {SHARE_RULE}": lambda: people().plan(MEAN, share=1.5),
    f"share=nan {SHARE_RULE}": lambda: people().release(MEAN, share=nan),
    f"share=1e-09 {SHARE_RULE}": lambda: people().release(MEAN, share=1e-9),
    "share=0.000001 leaves everyone with less than a millionth. The largest level is 0.5; ask for a larger share.": lambda: (
        people(e=[0.1, 0.2, 0.5]).plan(MEAN, share=1e-6)
    ),
    "nobody is left to ask: all 3 people opted out. A release needs at least one person with a level above 0.": lambda: (
        people(e=[0, 1e-9, 0]).release(MEAN)
    ),
    "nobody is left to ask: the table has no people. A release needs at least one person with a level above 0.": lambda: (
        accord.table(
            pa.table({"e": pa.array([], pa.float64()), "v": pa.array([], pa.float64())}), epsilon="e"
        ).plan(MEAN)
    ),
    "the plan was made for other levels or other numbers of people than this table has. Plan again with table.plan(query) (or give the ledger from whose remaining(table) it was made).": (
        lambda: people(e=[1, 2, 4]).release(people().plan(MEAN))
    ),
    "a plan has its mechanism and share already. Release it as it is, or give the query instead.": lambda: (
        people().release(people().plan(MEAN), share=0.5)
    ),
    "a plan is made from a Spec, not from list. Call table.spec(), Spec.of or Spec.from_groups.": lambda: (
        accord.plan([0.1, 1.0], MEAN)
    ),
    "neighbors='both' is not offered. There is 'replace' (one person's value changes), 'add-remove' (one person comes or goes) and 'private-levels' (one person comes or goes, and with them the level that they chose).": lambda: (
        accord.plan(people().spec(), MEAN, neighbors="both")
    ),
}
SOURCES = {
    "neighbors='both' is not offered. There is 'replace' (one person's value changes; who is in the table is public), 'add-remove' (one person comes or goes; who is in the table is private) and 'private-levels' (one person comes or goes, and with them the level that they chose; who is in the table, and who chose which level, is private).": (
        lambda: people(neighbors="both")
    ),
    f"cannot read a int. {FORMS}": lambda: accord.table(42, epsilon="e"),
    f"cannot read a list. {FORMS}": lambda: accord.table([{"e": 1}], epsilon="e"),
    f"cannot read a NoneType. {FORMS}": lambda: accord.table(None, epsilon="e"),
    "a polars LazyFrame is a query, not a table. Call .collect() on it first.": lambda: accord.table(
        pl.LazyFrame({"e": [1]}), epsilon="e"
    ),
    "the arrays of a dict have different lengths, more than one dimension, or there are none. Give columns of equal length.": (
        lambda: accord.table({"e": [1.0, 2.0], "v": [1.0]}, epsilon="e")
    ),
    "there is no column 'E': did you mean 'e'? Known: 'e', 'v'.": lambda: people(epsilon="E"),
    "there is no column '': Known: 'e', 'v'.": lambda: people(epsilon=""),
    "there is no column 'user': Known: 'e', 'v'.": lambda: people(user="user"),
    "there is no file 'no/such.parquet'. Check the path; a pattern such as 'people/*.parquet' names several files.": lambda: (
        accord.table("no/such.parquet", epsilon="e")
    ),
    "1 rows are of nobody ('v' is NULL). Say whose they are, or leave them out of the table.": (
        lambda: people(v=[1, None, 2], user="v").spec()
    ),
}


@pytest.mark.parametrize(
    ("error", "message", "attempt"),
    [
        pytest.param(error, message, attempt, id=message[:60])
        for error, cases in (
            (QueryError, QUERIES),
            (SpecError, SPECS),
            (PlanError, PLANS),
            (SourceError, SOURCES),
        )
        for message, attempt in cases.items()
    ],
)
def test_a_refusal_states_the_fact_the_rule_and_the_next_step(error, message, attempt):
    with pytest.raises(AccordError) as refused:
        attempt()
    assert (type(refused.value), str(refused.value)) == (error, message)


ODD = {
    "bounds whose square overflows": lambda: accord.mean("v", bounds=(0, 1e308)),
    "a column that is a number": lambda: accord.table({"e": [1.0, 1.0], "d": 3}, epsilon="e"),
    "a column that is a text": lambda: accord.table({"e": [1.0, 1.0], "d": "ab"}, epsilon="e"),
    "levels instead of their column": lambda: people(epsilon=[0.1, 0.2, 0.3]),
    "a person's number instead of their column": lambda: people(user=3).spec(),
    "levels instead of one default": lambda: people(default=[0.1, 0.2]),
    "confidence in words": lambda: people().release(MEAN).interval("95 %"),
    "half a character": lambda: people(v=["a", "b", "c"]).release(
        accord.histogram("v", categories=["a", "\ud800"])
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_arguments_are_refused_by_accord_itself(case):
    with pytest.raises(AccordError):
        ODD[case]()


@pytest.mark.parametrize("values", [["a", "b"], [1, 2], [1.5, 2.5], [True, False]])
def test_categories_may_come_from_numpy(values):
    assert exact(values, accord.histogram("v", categories=np.array(values))) == dict.fromkeys(values, 1.0)


# --- files ------------------------------------------------------------------------------------------------------------------

WHOLE = "Is it a whole {} file, and are all files alike?"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("people.csv", b"", "'{}' is empty. A table needs at least its column names."),
        ("people.parquet", b"", "'{}' is empty. A table needs at least its column names."),
        (
            "people.xlsx",
            b"PK",
            "'{}' has an ending that accord does not know. It reads .parquet, .pq, .csv, .tsv (CSV also as .gz and .zst).",
        ),
        (
            "people.parquet",
            b"garbage" * 99,
            "cannot read '{}' (InvalidInputException). " + WHOLE.format("parquet"),
        ),
        ("people.csv.gz", b"garbage", "cannot read '{}' (BadGzipFile). " + WHOLE.format("csv")),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError) as refused:
        accord.table(path, epsilon="e")
    assert str(refused.value) == message.format(path)


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"e": [1.0] * 1000, "v": np.arange(1000.0)}), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SourceError) as refused:
        accord.table(path, epsilon="e")
    assert str(refused.value) == f"cannot read '{path}' (InvalidInputException). " + WHOLE.format("parquet")


def test_a_file_with_a_header_and_no_rows_has_nobody_to_ask(tmp_path):
    (tmp_path / "people.csv").write_text("e,v\n")
    table = accord.table(tmp_path / "people.csv", epsilon="e")
    assert table.spec().total == 0
    with pytest.raises(PlanError, match=r"^nobody is left to ask: the table has no people\."):
        table.release(MEAN)


def test_text_among_the_numbers_of_a_csv_file_is_missing_in_a_value_and_refused_in_a_level(tmp_path):
    (tmp_path / "people.csv").write_text("e,v\ninf,10\ninf,unknown\n")
    assert accord.table(tmp_path / "people.csv", epsilon="e").release(MEAN).value == 10.0
    with pytest.raises(SpecError, match=r"^1 of 2 people have a level that is NaN or not a number"):
        accord.table(tmp_path / "people.csv", epsilon="v").spec()


# --- nothing private is printed ---------------------------------------------------------------------------------------------

NUMBER, TEXT = 123457.25, "SECRET-VALUE"


class Unprintable:
    def __str__(self):
        raise RuntimeError(TEXT)


def csv_table(folder, lines):
    (folder / "people.csv").write_bytes("\n".join(lines).encode("latin-1"))
    return accord.table(folder / "people.csv", epsilon="e")


def mixed(*values):
    return accord.table(pd.DataFrame({"e": 1.0, "v": pd.Series(values, dtype=object)}), epsilon="e")


def other_types(folder):
    pq.write_table(pa.table({"e": [1.0], "v": [NUMBER]}), folder / "1.parquet")
    pq.write_table(pa.table({"e": [1.0], "v": [TEXT]}), folder / "2.parquet")
    return accord.table(folder / "*.parquet", epsilon="e")


def replaced(folder):
    pq.write_table(pa.table({"e": [1.0], "v": [NUMBER]}), folder / "1.parquet")
    table = accord.table(folder / "1.parquet", epsilon="e")
    pq.write_table(pa.table({"e": [1.0], "v": [TEXT]}), folder / "1.parquet")
    return table


def broken(folder):
    (folder / "1.parquet").write_bytes(b"PAR1" + f"{TEXT} {NUMBER}".encode() * 50 + b"PAR1")
    return accord.table(folder / "1.parquet", epsilon="e")


ORDINARY = ["1,5"] * 30_000
FAILING = {
    "mean of text": lambda folder: people(v=[TEXT, "b", "c"]).release(MEAN),
    "users": lambda folder: people(v=[TEXT, None, "b"], user="v").spec(),
    "levels": lambda folder: people(e=[1, nan, 2], v=[NUMBER, NUMBER, NUMBER]).release(MEAN),
    "engine's own error": lambda folder: accord.table(
        duckdb.connect().sql(f"SELECT 1.0 AS e, error('{TEXT}')::DOUBLE AS v"), epsilon="e"
    ).release(MEAN),
    "CSV, every line too long": lambda folder: csv_table(
        folder, ["e,v", f"1,{NUMBER},{TEXT}", f"1,5,{TEXT}"]
    ).release(MEAN),
    "CSV, one line too long": lambda folder: csv_table(folder, ["e,v", "1,5", f"1,{NUMBER},{TEXT}"]).release(
        MEAN
    ),
    "CSV, a late line too long": lambda folder: csv_table(
        folder, ["e,v", *ORDINARY, f"1,{NUMBER},{TEXT}"]
    ).release(MEAN),
    "files of different types": lambda folder: other_types(folder).release(MEAN, "minimum"),
    "a file that was replaced": lambda folder: replaced(folder).release(MEAN, "minimum"),
    "a broken file": lambda folder: broken(folder).release(MEAN, "minimum"),
}


@pytest.mark.parametrize("case", FAILING)
def test_no_error_shows_a_value(tmp_path, case):
    with pytest.raises(AccordError) as refused:
        FAILING[case](tmp_path)
    text = "".join(traceback.format_exception(refused.value))
    assert TEXT not in text
    assert str(NUMBER) not in text
    assert str(refused.value) in text


@pytest.mark.parametrize(
    "odd",
    [TEXT, b"\xff", TEXT + "\ud800", Unprintable(), [1, 2], {}, pd.NA, nan, np.arange(2), 10**400, True],
)
def test_nobody_fails_to_be_read_among_objects(odd):
    """Whatever somebody has in a column of objects, the release comes, and the others count as ever."""
    for table in (mixed(odd, "b"), accord.table({"v": [odd, "b"], "e": [1.0, 1.0]}, epsilon="e")):
        query = accord.histogram("v", categories=["a", "b"])
        assert table.reader.summary(query).weighted(np.array([1])) == [0, 1]
        table.release(MEAN, "minimum")
        assert accord.sample(lambda rows, epsilon: 1, table, columns=["v"], rows="pandas").value == 1


def test_nothing_that_is_printed_before_a_release_shows_a_value():
    table = accord.table(pa.table({"e": [1.0] * 500, "v": [NUMBER] * 500, "s": [TEXT] * 500}), epsilon="e")
    for query in (
        accord.mean("v", bounds=(0, 1e6)),
        accord.histogram("s", categories=["a", "b"], missing="other"),
    ):
        plan = table.plan(query)
        text = " ".join(
            map(
                str,
                (table, table.spec(), query, plan, repr(plan), plan.describe(), table.reader.summary(query)),
            )
        )
        assert TEXT not in text
        assert str(NUMBER) not in text


@pytest.mark.parametrize(
    "query",
    [
        MEAN,
        accord.sum("v", bounds=(0, 1)),
        accord.count(where="v > 3"),
        accord.histogram("v", edges=[0, 1, 2]),
    ],
    ids=lambda query: query.statistic,
)
def test_a_plan_reads_no_value(query):
    """A value that cannot be read stops a release, and not a plan."""
    source = duckdb.connect().sql("SELECT 1.0 AS e, error('boom')::DOUBLE AS v FROM range(1000)")
    table = accord.table(source, epsilon="e")
    plan = table.plan(query)
    assert plan.mechanism not in ("midpoint", "public")
    assert plan.spec.total == 1000
    for asked in (query, plan):
        with pytest.raises(SourceError) as refused:
            table.release(asked)
        assert str(refused.value).startswith("cannot read the relation (")
        assert "boom" not in "".join(traceback.format_exception(refused.value))
