"""How somebody once lost more than they were promised: each test failed before that was mended."""

import datetime
import gzip
import re
import subprocess
import sys
import warnings
from collections import Counter
from decimal import Decimal
from importlib import import_module
from math import inf, nan
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import accord
from accord import sampling
from accord.engines.duckdb_connection import OwnDatabase
from accord.errors import AccordError, AccordWarning, LedgerError, QueryError, SourceError, SpecError
from accord.lab.audit.program_runs import ProgramNoise
from accord.lab.audit.recording_noise import FixedWords
from accord.lab.audit.reference_comparison import integers
from accord.ledger import charging
from accord.noise import SECURE
from accord.release import Release
from accord.release.answer import answer
from accord.sampling import algorithm_query

INCOME = (0, 100)


# ---- who is kept at random ---------------------------------------------------------------------------------


def kept_rows(table, word):
    """Whose rows an algorithm gets, where everyone has this random word."""
    query = algorithm_query(lambda rows, epsilon: 0, table, ["x"], "numpy")
    plan = accord.plan(table.spec(), query, "sample", t="max")
    words = FixedWords(np.full(table.spec().total, word, dtype=np.uint64))
    return sorted(table.reader.rows(query, None, plan.calibration.keep, words)[:, 0].tolist()), plan


@pytest.mark.parametrize("people", [40, 80, 400])
def test_with_user_everyone_is_kept_by_the_chance_of_their_own_level(people):
    """With more than 64 levels, the level was taken for the chance.

    The chance was written into a column that had the level already.
    """
    levels = (np.arange(people) + 1) / 1000
    table = accord.table(
        {"id": np.arange(people), "x": np.arange(float(people)), "e": levels}, epsilon="e", user="id"
    )
    _, plan = kept_rows(table, 0)
    for k in (0, people // 2, people - 2):
        word = int(plan.calibration.keep[k])
        assert kept_rows(table, word)[0] == [
            float(j) for j in range(people) if int(plan.calibration.keep[j]) > word
        ]


def test_a_regression_by_sample_keeps_people_by_their_chance():
    """The same for Summaries.

    Who is hardly ever kept does not move the answer when all random words are as large as can be.
    """
    n = 90
    columns = {
        "id": np.arange(n),
        "x": np.linspace(0, 1, n),
        "y": np.linspace(0, 1, n),
        "e": (np.arange(n) + 1) / 100,
    }
    query = accord.regression("y", ["x"], bounds={"y": (0, 1), "x": (0, 1)})
    table = accord.table(columns, epsilon="e", user="id")
    plan = table.plan(query, "sample", t="max")
    words = FixedWords(np.full(n, 2**63 - 1, dtype=np.uint64))
    (summary,) = table.reader.summaries(query, thinning=(plan.calibration.keep, words))
    assert list(summary.rows())[:-1] == [[0] * 5] * (n - 1) and list(summary.rows())[-1][-1] == 1


def test_who_has_less_left_in_another_table_is_kept_by_what_they_have_left(tmp_path):
    """Somebody strict in one table was kept for certain in another where they were public."""
    ledger = accord.Ledger(tmp_path / "ledger.db")
    n = 20
    open_levels = np.array([inf] * 2 + [1.0] * (n - 2))
    everyone = {"id": np.arange(n), "x": np.arange(float(n)), "x2": np.arange(float(n))}
    table = accord.table({**everyone, "e": open_levels}, epsilon="e", user="id")
    strict = accord.table({"id": np.array([0]), "e": np.array([0.1])}, epsilon="e", user="id")
    ledger.register(table, "people")
    ledger.register(strict, "strict")
    line = accord.regression("x", ["x2"], bounds={"x": (0, n), "x2": (0, n)})
    for query in (algorithm_query(lambda rows, e: 0, table, ["x"], "numpy"), line):
        plan = accord.plan(ledger.remaining(table), query, "sample", 0.1, t="max")
        assert plan.spec.levels[0] <= 0.1
        remaining = charging.reserve(ledger.books, table, plan).remaining
        chance = int(plan.calibration.keep[0])
        for word, there in ((chance - 1, 1), (chance, 0), (2**63 - 1, 0)):
            words = FixedWords(np.full(n, word, dtype=np.uint64))
            if query is line:
                (summary,) = table.reader.summaries(query, remaining, thinning=(plan.calibration.keep, words))
                kept = next(summary.rows())[-1]
            else:
                kept = (
                    table.reader.rows(query, remaining, plan.calibration.keep, words)[:, 0]
                    .tolist()
                    .count(0.0)
                )
            assert kept == there


# ---- who lacks a value -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [accord.mean, accord.sum, accord.median, accord.min, accord.max])
@pytest.mark.parametrize("user", [None, "id"])
def test_who_lacks_a_value_is_not_public_in_public_groups(ask, user, tmp_path):
    """Plans, receipts and ledgers told how many people of a public group had a value."""

    def world(missing):
        x = np.full(200, 50.0)
        x[3] = nan if missing else 50.0
        columns = {"id": np.arange(200), "x": x, "g": np.arange(200) % 2, "e": np.full(200, 5.0)}
        return accord.table(columns, epsilon="e", user=user)

    for part in (
        {"by": "g", "keys": [0, 1]},
        {"where": "g = 1"},
        {"where": "g = 1", "by": "g", "keys": [0, 1]},
    ):
        query = ask("x", INCOME, step=1, missing="exclude", membership="public", **part)
        seen = []
        for missing in (False, True):
            table = world(missing)
            plan = table.plan(query)
            release = table.release(plan)
            receipt = re.sub(r"'(time|value|rmse|few|interval)': [^,]*,", "", str(release.receipt()["query"]))
            assert "exclude" in receipt and "200" not in receipt
            seen.append((str(plan), plan.charges, plan.spec, {k: p.spec for k, p in plan.plans.items() if p}))
            if user is not None:
                ledger = accord.Ledger(
                    tmp_path / f"{ask.__name__}-{missing}-{len(part)}-{'by' in part}.db", key="k" * 16
                )
                ledger.register(table, "people")
                table.release(table.plan(query, share=0.5), ledger=ledger)
                seen[-1] += ([(a.table, a.level, a.people, a.spent) for a in ledger.accounts()],)
        assert seen[0] == seen[1]
        assert {spec.total for spec in seen[0][3].values()} <= {100}


def test_that_somebody_lacks_a_value_cannot_be_declared_public():
    with pytest.raises(QueryError, match="are about groups"):
        accord.mean("x", INCOME, missing="exclude", membership="public")


def test_the_mean_of_a_public_group_leaves_out_who_lacks_a_value():
    columns = {"x": np.array([10.0, 30.0, nan, 90.0]), "g": np.array([0, 0, 0, 1]), "e": np.full(4, inf)}
    table = accord.table(columns, epsilon="e")
    query = accord.mean("x", INCOME, step=1, missing="exclude", by="g", keys=[0, 1], membership="public")
    assert [row["value"] for row in table.release(query).value] == [20.0, 90.0]


# ---- conversions that could fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["numpy", "pandas", "arrow"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["1", "2", "three"]),
        pa.array([datetime.date(2020, 1, 1)] * 3).cast(pa.int32()).cast(pa.date32()),
        pa.array([1, 7_000_000, None], pa.int32()).cast(pa.date32()),  # the year 21135
        pa.array([2**62, -(2**62), None], pa.timestamp("us")),
        pa.array([2**63 - 1, 0, None], pa.timestamp("us")),  # infinite
        pa.array([Decimal("1e37"), Decimal(1), None], pa.decimal128(38, 0)),
        pa.array([True, None, False]),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([0, 86_399_999_999, None], pa.time64("us")),
        pa.array([[1], None, [2, 3]]),
        pa.array([b"\xff", None, b""]),
    ],
    ids=lambda column: str(column.type).split("(")[0].split("<")[0],
)
def test_nobodys_value_decides_whether_an_algorithm_is_run(rows, column):
    if rows == "numpy" and (
        pa.types.is_time(column.type) or pa.types.is_list(column.type) or pa.types.is_binary(column.type)
    ):
        with pytest.raises(QueryError, match="rows='numpy'"):  # by its type, before anything is read
            accord.sample(
                lambda rows, epsilon: 7, accord.table(pa.table({"v": column}), epsilon=1.0), rows=rows
            )
        return
    for k in range(3):  # everyone's value, everyone's turn
        table = accord.table(pa.table({"v": column.take(pa.array([k] * 3))}), epsilon=1.0)
        assert accord.sample(lambda rows, epsilon: 7, table, rows=rows).value == 7


def test_text_among_numbers_is_missing():
    table = accord.table({"v": ["1", "two", "3"], "e": [inf] * 3}, epsilon="e")
    rows = accord.sample(lambda rows, epsilon: rows[:, 0].tolist(), table, rows="numpy").value
    assert rows[0] == 1 and np.isnan(rows[1]) and rows[2] == 3


def test_a_sum_with_a_condition_keeps_its_declared_bounds():
    """They were widened to 0, by which an engine's integers could overflow, and the lower one was lost."""
    query = accord.sum("x", (1, 10.5), where="k = 1")
    table = accord.table({"x": np.full(7, 0.2), "k": np.full(7, 1), "e": np.full(7, inf)}, epsilon="e")
    release = table.release(query)
    assert release.value == pytest.approx(7.0) and release.receipt()["query"]["bounds"] == ["1", "10.5"]
    far = accord.sum("x", (1e10, 1e10 + 1000), step=1e-9, where="k = 1")
    columns = {"x": np.array([1e10 + 7.0, 1e10]), "k": np.array([1, 0]), "e": np.full(2, inf)}
    assert accord.table(columns, epsilon="e").release(far).value == 1e10 + 7


@pytest.mark.parametrize("bounds", [(1, 10.5), (-3, 2), (-9, -2), (0, 4), (0.1, 0.7)])
@pytest.mark.parametrize("mechanism", ["minimum", "affine", "mix", "stretch", "sample"])
def test_a_sum_with_a_condition_is_the_sum_of_its_members(bounds, mechanism):
    """With levels so large that there is hardly any noise."""
    rng = np.random.default_rng(1)
    x, k = rng.uniform(*bounds, 50), rng.integers(0, 2, 50)
    table = accord.table({"x": x, "k": k, "e": np.full(50, 900_000.0)}, epsilon="e")
    query = accord.sum("x", bounds, where="k = 1")
    assert table.release(query, mechanism).value == pytest.approx(x[k == 1].sum(), abs=0.02 * 50)


# ---- kinds of columns --------------------------------------------------------------------------------------


def kind_of(source):
    return accord.table(source, epsilon=1.0).columns["b"]


def test_one_missing_value_does_not_change_what_kind_a_column_is():
    assert kind_of({"b": np.array([True, False])}) == kind_of({"b": np.array([True, None])})
    assert (
        kind_of({"b": [True, False]})
        == kind_of({"b": [True, None]})
        == kind_of({"b": []})
        == kind_of({"b": ["a"]})
    )
    assert kind_of(pd.DataFrame({"b": [True, False]})) == kind_of(pd.DataFrame({"b": [True, None]}))
    hidden = np.ma.array([True, False], mask=[False, True])
    assert kind_of({"b": hidden}) == kind_of({"b": np.ma.array([True, False])})
    assert kind_of({"b": [1, 2]}) == kind_of({"b": [None, 2]}) == kind_of({"b": [None, None]})


@pytest.mark.parametrize("make", [np.array, list, pd.Series, np.ma.array], ids=lambda make: make.__name__)
def test_a_missing_boolean_moves_nobody_else(make):
    """Whatever is asked of true and false is refused or answered alike when somebody's value is missing."""
    questions = [
        accord.count("b = TRUE"),
        accord.count("b = 'True'"),
        accord.count("b > 0.5"),
        accord.count("b IS NULL"),
        accord.mean("b", (0, 1), step=1, missing=0),
        accord.histogram("b", categories=[True, False]),
        accord.histogram("b", categories=["True", "False"]),
        accord.median("b", (0, 1), step=1),
        accord.count(by="b", keys=[True, False]),
    ]
    for query in questions:
        sums = []
        for values in ([True, True, False, True], [True, True, False, None]):
            source = {"b": make(values), "e": np.ones(4)}
            source = pd.DataFrame(source) if make is pd.Series else source
            table = accord.table(source, epsilon="e")
            everything = integers(table, table.plan(query, "minimum"))
            sums.append([Counter(group.get(1_000_000, {})) for group in everything])
        changed = [(one - other) + (other - one) for one, other in zip(*sums, strict=True)]
        assert sum(group.total() for group in changed) <= 1


def test_the_last_person_of_a_list_takes_no_kind_along():
    roster = accord.Spec.from_groups({1.0: 9})
    for value in ("a", 1, True, None):
        for values in ([value], []):
            columns = {"v": values, "e": [1.0] * len(values)}
            table = accord.table(columns, epsilon="e", neighbors="add-remove", roster=roster)
            table.release(accord.histogram("v", categories=["a", "b"]), "minimum")
            table.release(accord.mean("v", (0, 1)), "minimum")


# ---- levels ------------------------------------------------------------------------------------------------

JUST_BELOW = "0.29999999999999999999"


@pytest.mark.parametrize(
    "levels",
    [
        pa.array([Decimal(JUST_BELOW)], pa.decimal128(38, 20)),
        np.array([Decimal(JUST_BELOW)], dtype=object),
        [Decimal(JUST_BELOW)],
        [JUST_BELOW],
        ["2.9999999999999999e-1"],
    ],
    ids=["decimal128", "objects", "list", "text", "exponent"],
)
def test_no_level_is_rounded_up(levels, tmp_path):
    source = pa.table({"e": levels}) if isinstance(levels, pa.Array | pa.ChunkedArray) else {"e": levels}
    assert accord.table(source, epsilon="e").spec().micro.tolist() == [299_999]


def test_small_levels_of_a_list_are_read():
    """Python writes small numbers with an exponent, and with up to 17 digits."""
    levels = [1.2345678901234567e-05, 5e-05, 2.5e-06, 9.999999999999999e-05]
    spec = accord.table({"e": levels}, epsilon="e").spec()
    assert spec == accord.table({"e": np.array(levels)}, epsilon="e").spec()


def test_nothing_is_said_about_a_missing_value():
    """NumPy warned of a NaN among many objects; where warnings are errors, a release failed."""
    for source in (
        {"x": [1.0] * 200 + [nan]},
        pd.DataFrame({"x": pd.Series([1.0] * 200 + [nan], dtype=object)}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            accord.table(source, epsilon=1.0).release(accord.mean("x", (0, 4)), "minimum")


def test_no_declared_level_is_rounded_up(tmp_path):
    below = Decimal(JUST_BELOW)
    assert accord.Spec.of([below]).micro.tolist() == [299_999]
    assert accord.Spec.from_groups({below: 3}).micro.tolist() == [299_999]
    people = {"t": ["a"], "x": [1.0]}
    assert accord.table(people, epsilon="t", tiers={"a": below}).spec().micro.tolist() == [299_999]
    assert accord.table(people, epsilon=below).spec().micro.tolist() == [299_999]
    assert accord.table({"e": [None]}, epsilon="e", default=below).spec().micro.tolist() == [299_999]
    (tmp_path / "p.csv").write_text(f"e,x\n{JUST_BELOW},1\n")
    assert accord.table(tmp_path / "p.csv", epsilon="e").spec().micro.tolist() == [299_999]
    assert accord.table(people, epsilon=JUST_BELOW).spec().micro.tolist() == [299_999]
    plan = accord.plan(accord.Spec.of([1.0] * 9), accord.mean("x", (0, 1)), "minimum", Decimal(JUST_BELOW))
    assert dict(plan.charges) == {1.0: 0.299999}


# ---- people ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [["7", " 7"], ["7", "7.0"], ["é", "e\u0301"], ["a", "a\t"], ["\ufeffa", "a"]])
def test_who_is_one_person_for_a_ledger_is_one_for_a_table(ids, tmp_path):
    """They were one account and two people, of whom each could be read at the whole level."""
    for source in (
        pa.table({"id": ids, "e": [0.5, 1.0], "x": [1.0, 2.0]}),
        {"id": ids, "e": [0.5, 1.0], "x": [1.0, 2.0]},
    ):
        table = accord.table(source, epsilon="e", user="id")
        assert table.spec() == accord.Spec.of([0.5])
        ledger = accord.Ledger(tmp_path / f"{type(source).__name__}.db")
        assert ledger.register(table, "people").people == 1
        assert accord.sample(lambda rows, epsilon: rows.num_rows, table, columns=["x"]).value == 0


def test_a_buffer_that_changes_is_noticed(tmp_path):
    """Arrow can lie on a NumPy array: what was booked was what had been read before it changed."""
    levels = np.array([0.05, 0.5])
    table = accord.table(pa.table({"id": [1, 2], "x": [1.0, 2.0], "e": levels}), epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "ledger.db")
    ledger.register(table, "people")
    assert ledger.remaining(table).levels == (0.05, 0.5)
    levels[:] = [0.5, 0.05]
    with pytest.raises(AccordError, match="not as it was registered"):
        table.release(accord.mean("x", (0, 4)), "proportional", share=0.5, ledger=ledger)


# ---- other people's connections ----------------------------------------------------------------------------

MACROS = (
    "floor(x) AS 500.0",
    '"+"(a, b) AS 7',
    "count_star() AS 3",
    "sum(x) AS 9",
    '">="(a, b) AS true',
    "isfinite(x) AS false",
)


@pytest.mark.parametrize("macro", MACROS)
def test_functions_of_somebody_elses_connection_are_not_used(macro):
    connection = duckdb.connect()
    relation = connection.sql("SELECT range AS x, 1.0 AS e FROM range(10)")
    connection.execute(f"CREATE MACRO {macro}")
    table = accord.table(relation, epsilon="e")
    query = accord.sum("x", (0, 9), step=1)
    assert table.spec() == accord.Spec.from_groups({1.0: 10})
    assert table.reader.summary(query).weighted(np.array([1])) == [10, 45]


def test_settings_of_somebody_elses_connection_are_not_used():
    connection = duckdb.connect(config={"default_collation": "nocase"})
    table = accord.table(connection.sql("SELECT unnest(['a', 'A']) AS id, 1.0 AS e"), epsilon="e", user="id")
    assert table.spec().total == 2


def test_a_relation_whose_connection_is_closed_is_refused_in_words():
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1.0 AS x, 1.0 AS e")
    opened = accord.table(relation, epsilon="e")
    connection.close()
    for attempt in (lambda: accord.table(relation, epsilon="e").spec(), opened.spec):
        with pytest.raises(SourceError, match=r"^cannot read the relation \("):
            attempt()


def test_an_address_of_spark_without_a_table_is_refused_at_once():
    command = [sys.executable, "-m", "accord.cli", "release", "spark://", "count", "--epsilon", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 1 and "does not say which table" in done.stderr


def test_a_level_that_is_not_a_number_is_refused():
    for level in ("1e400", "9" * 400, "1_0", "0x1", "1,5"):
        with pytest.raises(SpecError, match="NaN or not a number"):
            accord.table({"e": [level], "x": [1.0]}, epsilon="e").spec()


def test_the_example_with_opendp_bears_a_missing_income():
    page = (Path(__file__).parents[2] / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    (block,) = re.findall(
        r"```python\n(import accord\nimport numpy.*?opendp.*?)\npeople = accord", page, re.DOTALL
    )
    names = {}
    exec(block, names)
    for odd in (nan, inf, -inf, 1e308):
        table = accord.table({"income": np.array([5.0, odd]), "e": np.ones(2)}, epsilon="e")
        release = accord.sample(names["clamped_sum"], table, columns=["income"], rows="numpy")
        assert isinstance(release.value, float) and np.isfinite(release.value)


# ---- found by a hostile reader -----------------------------------------------------------------------------


def fitted(x, y):
    """What a regression of scikit-learn's kind is made of, with the noise recorded."""
    from accord.sklearn import LinearRegression

    noise = ProgramNoise(0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccordWarning)  # levels of 900, and a second fit
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(import_module("accord.release.release"), "SECURE", noise)
            LinearRegression(bounds=((0, 1), (0, 1)), epsilon=900.0, mechanism="minimum").fit(x, y)
    return noise.draws


@pytest.mark.parametrize(
    "odd", ["x", 1j, np.timedelta64(1, "D"), [1, 2], b"\xff", None, nan, 10**400, np.complex128(1j)]
)
def test_nobodys_value_changes_what_others_count_for_in_sklearn(odd):
    """NumPy gave a list one type by its values.

    With one text in it, everybody else's True was text as well, and counted as missing.
    """
    n = 50
    x = [[k % 2 == 0] for k in range(n)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base = fitted(x, [True] * n)
        for there in (fitted(x, [True] * (n - 1) + [odd]), fitted([*x[:-1], [odd]], [True] * n)):
            assert sum(box.loss(other) for box, other in zip(base, there, strict=True)) <= 900


def test_somebodys_text_does_not_decide_whether_a_frame_with_arrow_columns_opens():
    for odd in (1, "a", datetime.date(2020, 1, 1), 10**30, [1], None):
        levels = pd.Series([1.0] * 4, dtype="double[pyarrow]")
        frame = pd.DataFrame({"e": levels, "x": pd.Series([1, 1, 1, odd], dtype=object)})
        accord.table(frame, epsilon="e").release(accord.mean("x", (0, 2)), "minimum")


@pytest.mark.parametrize("rows", ["numpy", "pandas", "arrow"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_far_moments_and_durations_arrive(rows, unit):
    for kind in (pa.timestamp(unit), pa.duration(unit)):
        table = accord.table(pa.table({"x": pa.array([1, 2**62, -(2**62)], kind)}), epsilon=1.0)
        assert accord.sample(lambda rows, epsilon: 7, table, columns=["x"], rows=rows).value == 7
        table.release(accord.count("x IS NULL"), "minimum")


def test_files_with_different_types_are_refused_by_type(tmp_path):
    """The common type of two was too narrow for a date that one of them held."""
    for name, unit in (("a", "ns"), ("b", "us")):
        x = pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp(unit))
        pq.write_table(pa.table({"x": x, "e": [1.0]}), tmp_path / f"{name}.parquet")
    with pytest.raises(
        SourceError, match=r"column 'x' is TIMESTAMP_NS in one file .* and TIMESTAMP in another\. Write it"
    ):
        accord.table(f"{tmp_path}/*.parquet", epsilon="e")


def test_a_level_that_is_not_declared_is_not_repeated():
    """Under add-remove, somebody's coming decided whether a sample is released."""
    for extra in ([], ["zz"], ["a\x00b"]):
        tiers = np.array(["a", "b", *extra], dtype=object)
        roster = accord.Spec.from_groups({0.5: 3, 1.0: 3})
        columns = {"x": np.ones(tiers.size), "t": tiers}
        table = accord.table(
            columns, epsilon="t", tiers={"a": 0.5, "b": 1.0}, neighbors="add-remove", roster=roster
        )
        assert accord.sample(lambda rows, epsilon: 7, table, columns=["x"]).value == 7


def test_sixteen_digits_with_an_exponent_are_not_rounded_up():
    for text in ("7490059999999999e-16", "0.7490059999999999"):
        assert accord.table({"e": [text]}, epsilon="e").spec().micro.tolist() == [749_005]


def test_a_literal_names_no_column():
    """Of a relation, only columns that are asked about are streamed; 'c2' is a text here."""
    relation = duckdb.sql("SELECT 'a' AS x, 1.0 AS e, 'unused' AS third")
    table = accord.table(relation, epsilon="e")
    streamed = []
    table.reader.engine._selected = Watched(table.reader.engine._selected, streamed)
    table.release(accord.count("x = 'c2'"), "minimum")
    assert set(streamed) == {"c0", "c1"}


class Watched(dict):
    """Notes what is taken out of it."""

    def __init__(self, entries, taken):
        super().__init__(entries)
        self.taken = taken

    def __getitem__(self, name):
        self.taken.append(name)
        return super().__getitem__(name)


def test_nothing_is_said_about_a_number_that_is_too_large():
    hidden = np.ma.array(np.array([1, 2], dtype=np.longdouble), mask=[True, False])
    hidden[1] = np.longdouble("1e400")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accord.table({"x": hidden}, epsilon=1.0).release(accord.mean("x", (0, 4)), "minimum")


# ---- what is public is refused before anybody is charged; what cannot be told is not told ------------------


@pytest.mark.parametrize(
    ("rows", "package"), [("arrow", "pyarrow"), ("pandas", "pyarrow"), ("pandas", "pandas")]
)
def test_a_package_that_is_missing_costs_nobody(rows, package, tmp_path, monkeypatch):
    people = accord.table({"id": np.arange(9), "x": np.arange(9.0), "e": np.ones(9)}, epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    monkeypatch.setattr(sampling, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(SourceError, match=f"^rows='{rows}' needs {package}") as refused:
        accord.sample(lambda rows, epsilon: 1.0, people, share=0.1, ledger=ledger, rows=rows)
    assert "charged" not in str(refused.value) and ledger.history() == []
    assert (
        accord.sample(lambda rows, epsilon: 1.0, people, share=0.1, ledger=ledger, rows="numpy").value == 1.0
    )


def test_a_receipt_of_an_algorithm_says_who_a_person_is():
    people = accord.table({"id": np.arange(9), "x": np.arange(9.0), "e": np.ones(9)}, epsilon="e", user="id")
    receipt = accord.sample(lambda rows, epsilon: 1.0, people, rows="numpy").receipt()
    assert any(
        text.startswith("a person is whoever has the same value in the column id")
        for text in receipt["assumptions"]
    )


@pytest.mark.parametrize("ask", [accord.median, accord.min, accord.max])
@pytest.mark.parametrize("part", [{"by": "g", "keys": ["big", "small", "nobody"]}, {"where": "g = 'small'"}])
def test_a_quantile_of_a_private_part_does_not_claim_to_know_how_many_are_there(ask, part):
    """A median of ten people among a thousand had a 95 % interval that held 2 times in 200.

    It was of percentiles 43 … 57.
    """
    data = {
        "x": np.r_[np.linspace(0, 1000, 990), np.ones(10)],
        "g": ["big"] * 990 + ["small"] * 10,
        "e": np.ones(1000),
    }
    release = accord.table(data, epsilon="e").release(ask("x", bounds=(0, 1000), step=1, **part), "rank")
    interval = release.interval(0.95)
    assert (interval["small"] if "by" in part else interval) == (0.0, 100.0)
    if "by" in part:
        assert interval["nobody"] == (0.0, 100.0) and interval["big"][1] - interval["big"][0] < 30
        assert [row["few"] for row in release.value] == [False, True, True]
        assert release.value[0]["rmse"] < release.value[1]["rmse"]
    assert any("how many it is about is private" in text for text in release.receipt()["assumptions"])


def test_a_ledger_is_no_name_of_a_file():
    people = accord.table({"id": [1, 2], "x": [1.0, 2.0], "e": [1.0, 1.0]}, epsilon="e", user="id")
    with pytest.raises(
        LedgerError, match=r"^ledger= is a str\. Open one: ledger=accord\.Ledger\('accord\.db'\)\.$"
    ):
        people.release(accord.mean("x", bounds=(0, 1)), share=0.1, ledger="accord.db")


# ---- found by a second hostile reader ----------------------------------------------------------------------

HALVES = ["x\udc22,5\n7,1.0,,90\n8,1.0,,80\nA,1.0,tail", "\ud80a", "\udc2c\udc0a\udc2c"]
"""Half characters, whose bytes are a quote, the end of a line and a comma."""


@pytest.mark.parametrize("note", HALVES, ids=ascii)
@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-16-le", "utf-16"])
def test_half_a_character_makes_no_rows_of_other_people(tmp_path, note, encoding):
    """The bytes of a lone surrogate were read one by one: somebody's text became rows of others."""

    def sums(of_a):
        text = f'id,level,note,income\nA,1.0,"{of_a}",5\n7,1.0,-,10\n8,1.0,-,20\n'
        (tmp_path / "people.csv").write_bytes(text.encode(encoding, "surrogatepass"))
        people = accord.table(tmp_path / "people.csv", epsilon="level", user="id", csv={"encoding": encoding})
        return list(people.reader.summary(accord.sum("income", bounds=(0, 100), step=1)).rows())

    assert sums("hello") == sums(note) == [[3, 35]]


LATE = {
    "2026-05-31T22:00:00-05:00": "five hours later than it reads",
    "2026-06-01T01:00:00+02:00": "two hours earlier",
    "2026-05-31 22:00:00 draft": "with a word behind it",
    "2026-05-31T22:00:00Z": "in UTC, which it does not say elsewhere",
    "2026-05-31 22:00 Europe/Berlin": "in a zone",
}


@pytest.mark.parametrize("moment", LATE)
def test_a_date_with_a_time_zone_in_a_register_is_refused(tmp_path, moment):
    """DuckDB left the zone out: a withdrawal was not in force yet, or a laxer level already."""
    entries = f"id,level,valid_from\na,0.1,2020-01-01\na,5,{moment}\n"
    (tmp_path / "consent.csv").write_text(entries)
    register = pd.read_csv(tmp_path / "consent.csv")
    for consent in (tmp_path / "consent.csv", register, register.astype({"valid_from": "category"})):
        with pytest.raises(
            SpecError, match="1 entries of the consent register have no date, or one that can"
        ):
            accord.table(
                {"id": ["a"], "x": [1.0]},
                user="id",
                consent=consent,
                epsilon="level",
                as_of="2026-06-01",
            )


@pytest.mark.parametrize("text", LATE)
def test_a_date_with_a_time_zone_is_no_value(text):
    people = accord.table({"day": [text, "2026-05-31 22:00:00.5", "2026-05-30"]}, epsilon=inf)
    assert people.release(accord.count(where="day >= '2026-01-01'")).value == 2
    readable = people.release(
        accord.median("day", bounds=("2026-01-01", "2026-12-31")), "minimum", report_missing=0.5
    )
    assert readable.parts[1].value == {"has a value": 2, "no readable value": 1}


NOTES = {
    "lines that look like rows": "\n".join(f"{k:08d},7,b" for k in range(200)),
    "more than DuckDB's line": "a" * 2_100_000,
    "quotes": '""' * 1_100_000,
}


@pytest.mark.parametrize("what", NOTES)
@pytest.mark.parametrize("packed", [False, True])
def test_a_quoted_text_does_not_decide_whether_a_large_csv_file_is_read(tmp_path, what, packed):
    """DuckDB reads large files from several places at once, and lines of two million bytes at most."""

    def row(k):
        return f"{k:08d},1,{'abcdefgh' * 4}\n"

    path = tmp_path / ("people.csv.gz" if packed else "people.csv")
    before, after = "".join(map(row, range(181_800))), "".join(map(row, range(20_000)))
    content = f'id,x,note\n{before}00000001,1,"{NOTES[what]}"\n{after}'.encode()
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    summary = accord.table(path, epsilon=1.0).reader.summary(accord.sum("x", (0, 10), step=1))
    assert list(summary.rows()) == [[201_801, 201_801]]


def arrow_texts(*texts):
    """Text that Arrow takes for UTF-8, and need not be."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32).tobytes()
    return pa.Array.from_buffers(
        pa.string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    )


@pytest.mark.parametrize("form", [lambda ids: ids, lambda ids: ids.dictionary_encode()])
def test_an_id_that_is_no_unicode_fails_nothing(form):
    """DuckDB closed its database for good: that table failed, and all others of the process with it."""
    other = accord.table({"x": [1.0, 2.0]}, epsilon=inf)
    for first in (b"a", b"\xff a"):
        people = accord.table(
            pa.table({"id": form(arrow_texts(first, b"b")), "x": [1.0, 2.0]}),
            epsilon=1.0,
            user="id",
            neighbors="add-remove",
            roster=accord.Spec.of([1.0, 1.0]),
        )
        assert list(people.reader.summary(accord.sum("x", (0, 5), step=1)).rows()) == [[2, 3]]
        for table in (other, accord.table({"x": [1.0, 2.0]}, epsilon=inf)):
            assert table.release(accord.sum("x", (0, 5), step=1), "minimum").value == 3.0


def test_a_database_that_a_fault_closed_is_opened_anew():
    """`cursor` of a closed database does not say so."""
    own = OwnDatabase()
    connection = own.connect()
    ids = pa.table({"id": arrow_texts(b"\xff a")})
    connection.register("ids", ids)
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT nfc_normalize(id) FROM ids").fetchall()
    assert own.connect().execute("SELECT 41 + 1").fetchall() == [(42,)]


@pytest.mark.parametrize("value", [5, 123_456_789])
def test_decimals_beside_other_numbers_are_refused_whatever_the_rows_are(tmp_path, value):
    decimals = pa.array([Decimal("1.5")], pa.decimal128(38, 30))
    pq.write_table(pa.table({"x": decimals}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": pa.array([value], pa.int64())}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"column 'x' is BIGINT in one file of .* and DECIMAL\(38,30\)"):
        accord.table(tmp_path, epsilon=1.0)


@pytest.mark.parametrize("value", ["b", "\ud800"])
@pytest.mark.parametrize("dtype", ["string[python]", "category", "object"])
def test_half_a_character_in_a_frame_fails_nothing(value, dtype):
    """In a column that is asked about, and in one that is not."""
    texts = pd.Series(pd.Index([value, "a"], dtype=object))
    if dtype == "category":
        texts = pd.Series(pd.Categorical.from_codes([0, 1], pd.Index([value, "a"], dtype=object)))
    elif dtype != "object":
        texts = texts.astype(dtype)
    people = accord.table(pd.DataFrame({"x": [1.0, 2.0], "s": texts}), epsilon=inf)
    assert people.release(accord.sum("x", (0, 10), step=1), "minimum").value == 3.0
    assert people.release(accord.count(where="s = 'a'"), "minimum").value == 1.0
    assert people.columns["s"] == ("untyped" if dtype == "object" else "text")


def test_an_interval_of_a_mean_of_those_who_have_a_value_holds_at_any_confidence():
    """Its error is of two noises, and at 50 % it held in 46 %, which is 4.9 standard errors too few."""
    people = accord.table({"x": np.full(2000, 95.0)}, epsilon=1.0)
    plan = people.plan(accord.mean("x", bounds=(0, 100), step=1))
    summaries = people.reader.summaries(plan.as_read)
    ends = []
    for _ in range(4_000):
        value, released = answer(plan, summaries, SECURE)
        ends.append(Release(plan, value, released=released).interval(0.5))
    held = sum(low <= 95 <= high for low, high in ends)
    assert held >= 2_000


def test_an_interval_of_a_regression_is_for_its_confidence():
    x = np.arange(500) / 500
    query = accord.regression("y", ["x"], bounds={"x": (0, 1), "y": (0, 1)})
    release = accord.table({"x": x, "y": x / 2}, epsilon=1.0).release(query)
    halves = [release.interval(confidence)[1] for confidence in (0.5, 0.95, 0.99)]
    assert halves[1] / halves[0] == pytest.approx(1.95996 / 0.67449, rel=1e-4)
    assert halves[2] / halves[1] == pytest.approx(2.57583 / 1.95996, rel=1e-4)
