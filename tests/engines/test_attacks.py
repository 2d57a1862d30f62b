"""Ways in which a table could once have broken a promise. Each was tried, succeeded, and is shut."""

from math import inf
from threading import Thread

import duckdb
import numpy as np
import pytest

import accord
from accord.errors import QueryError, SourceError, SpecError


def test_threads_do_not_swap_their_results(tmp_path):
    """A count that got the sum of a mean would have a millionth of the noise that it needs."""
    path = tmp_path / "people.parquet"
    duckdb.sql(f"COPY (SELECT (i % 100) / 100.0 AS x, 1.0 AS e FROM range(3000) t(i)) TO '{path}'")
    table, wrong = accord.table(path, epsilon="e"), []

    def ask(query, low, high):
        wrong.extend(v for _ in range(60) if not low < (v := table.release(query, "minimum").value) < high)

    asked = [(accord.count(where="x < 0.5"), 1_400, 1_600), (accord.mean("x", (0, 1)), 0.45, 0.55)] * 2
    threads = [Thread(target=ask, args=args) for args in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_columns_that_differ_in_case_only_are_refused():
    """DuckDB would read the level of the first of them."""
    with pytest.raises(SourceError, match="differ in case only"):
        accord.table(duckdb.connect().sql('SELECT 10.0 AS x, 77.0 AS e, 0.1 AS "E"'), epsilon="E")


def test_a_collation_does_not_merge_tiers():
    con = duckdb.connect()
    con.execute("CREATE TABLE t(x DOUBLE, tier VARCHAR COLLATE nocase)")
    con.execute("INSERT INTO t VALUES (10, 'open'), (90, 'OPEN')")
    table = accord.table(con.table("t"), epsilon="tier", tiers={"open": inf, "OPEN": 0})
    assert table.spec().opted_out == 1
    assert table.release(accord.mean("x", (0, 100), step=1)).value == 10


@pytest.mark.parametrize(
    "where", ["x >= 0 AND x < 9", "x > 0 OR x <= 0", "x IN (1, 2)", "x NOT IN (1, 2)", "NOT x = 3"]
)
def test_text_in_a_csv_never_fails_a_condition(tmp_path, where):
    path = tmp_path / "people.csv"
    path.write_text("e,x\n1,5\n0,abc\n1,1e400\n")
    assert accord.table(path, epsilon="e").release(
        accord.count(where=where), "affine"
    ).value == pytest.approx(1, abs=60)


def test_a_level_too_large_to_write_is_not_public(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("e,x\n1e400,5\ninf,6\n")
    with pytest.raises(SpecError, match="1 of 2 people have a level that is NaN or not a number"):
        accord.table(path, epsilon="e").spec()


def test_a_level_with_an_exponent_and_more_digits_than_a_double_is_not_rounded_up(tmp_path):
    """The nearest double of the first two is 1, and of the third 1000."""
    texts = ["9.99999999999999999e-1", "0.99999999999999999e0", "9.99999999999999999e2", "3e-1"]
    path = tmp_path / "people.csv"
    path.write_text("".join(f"{line}\n" for line in ("e", *texts)))
    spec = accord.table(path, epsilon="e").spec()
    assert dict(zip(spec.micro.tolist(), spec.counts, strict=True)) == {
        300_000: 1,
        999_999: 2,
        999_999_999: 1,
    }


def test_parts_of_different_types_are_widened(tmp_path):
    for k, x in enumerate(("5::INTEGER", "70000000000::BIGINT")):
        duckdb.sql(f"COPY (SELECT 1.0 AS e, {x} AS x) TO '{tmp_path}/{k}.parquet'")
    table = accord.table(f"{tmp_path}/*.parquet", epsilon="e")
    assert table.reader.summary(accord.mean("x", (0, 10), step=1)).weighted(np.array([1])) == [2, 5 + 10]


def test_a_list_of_numbers_is_not_a_number():
    table = accord.table(duckdb.connect().sql("SELECT 1.0 AS e, [1.5::DECIMAL(4,2)] AS x"), epsilon="e")
    with pytest.raises(QueryError, match="a mean needs numbers"):
        table.release(accord.mean("x", (0, 10)))


def test_an_engines_error_is_not_even_in_the_context():
    table = accord.table(
        duckdb.connect().sql("SELECT 1.0 AS e, error('salary 61234')::DOUBLE AS x"), epsilon="e"
    )
    with pytest.raises(SourceError) as caught:
        table.release(accord.mean("x", (0, 10)), "minimum")
    assert (
        caught.value.__context__ is None
        and caught.value.__cause__ is None
        and "61234" not in str(caught.value)
    )


def test_who_a_mask_hides_has_no_level():
    table = {"x": [1.0, 2.0, 3.0], "e": np.ma.array([1, 1, inf], mask=[0, 0, 1])}
    assert accord.table(table, epsilon="e", default=0).spec() == accord.Spec.from_groups({1: 2, 0: 1})


def test_a_column_named_like_a_number_is_a_column():
    table = accord.table({"x": [1.0, 2.0], "inf": [0.5, 0.0]}, epsilon="inf")
    assert table.spec() == accord.Spec.from_groups({0.5: 1, 0: 1})


def test_a_std_so_small_that_the_clip_overflows_is_refused():
    """It once read strict people without noise."""
    with pytest.raises(QueryError, match="is not possible"):
        accord.mean("x", (0, 1), std=1e-155)


def test_a_std_of_half_the_width_is_no_reason_for_the_midpoint():
    """As an upper bound it says nothing about the mean."""
    plan = accord.plan(accord.Spec.from_groups({0.1: 1000, 1: 1000}), accord.mean("x", (0, 1), std=0.5))
    assert plan.mechanism != "midpoint" and plan.rmse > 0


def test_a_plan_cannot_be_changed_afterwards():
    plan = accord.plan(accord.Spec.from_groups({0.1: 1000, 1: 1000}), accord.mean("x", (0, 1)))
    with pytest.raises(ValueError, match="read-only"):
        plan.calibration.charges[0] = 9_000_000
    with pytest.raises(TypeError):
        plan.charges[0.1] = 9.0


def test_tiers_in_a_receipt_are_those_of_the_table():
    rows = {"x": [0.1, 0.9], "tier": ["secretive", "open"]}
    table = accord.table(rows, epsilon="tier", tiers={"secretive": 0.1, "open": 1})
    plan = accord.plan(accord.Spec.of(["p", "q"], {"p": 0.1, "q": 1}), accord.mean("x", (0, 1)), "affine")
    assert [c["tier"] for c in table.release(plan).receipt()["charges"]] == ["secretive", "open"]


def test_names_are_not_markup():
    table = accord.table({"x": [1, 2, 3], "tier": ["[/b]"] * 3}, epsilon="tier", tiers={"[/b]": 1})
    release = table.release(accord.histogram("x", categories=[1, 2], missing="[b]"))
    assert "[b]" in str(release) and "[/b]" in str(release)


@pytest.mark.parametrize("missing", ["1", [3], float("nan")])
def test_cells_that_would_be_written_alike_or_not_at_all(missing):
    with pytest.raises(QueryError):
        accord.histogram("x", categories=[1, 2], missing=missing)


def test_what_a_missing_value_counts_as_is_what_the_plan_says():
    """Off the grid, it is the nearest cell, and the receipt says that."""
    query = accord.mean("x", (0, 1), step=1, missing=0.3)
    table = accord.table({"x": [np.nan, np.nan], "e": [inf, inf]}, epsilon="e")
    release = table.release(query)
    assert release.value == 0.0 == float(release.receipt()["query"]["missing"])


def test_few_and_many_levels_are_grouped_alike(monkeypatch):
    """With few levels, level and point are grouped as one number: the Summary is the same."""
    random = np.random.default_rng(0)
    people = {"e": random.choice([0.1, 0.2, 0.5, 1, 0, inf], 3_000), "x": random.normal(50, 20, 3_000)}
    query = accord.median("x", (0, 100))
    few = accord.table(people, epsilon="e").reader.summary(query)
    monkeypatch.setattr("accord.people.reader.FEW_LEVELS", 0)
    many = accord.table(people, epsilon="e").reader.summary(query)
    for weights in np.eye(few.people.size, dtype=np.int64):
        assert (few.at_points(weights) == many.at_points(weights)).all()
    assert few.at_points(np.ones(few.people.size, dtype=np.int64)).sum() == (people["e"] > 0).sum()


def test_who_opted_out_is_in_no_quantile():
    con = duckdb.connect()
    con.execute("CREATE TABLE t(x DOUBLE, tier VARCHAR COLLATE nocase)")
    con.execute("INSERT INTO t SELECT 10, 'open' FROM range(50)")
    con.execute("INSERT INTO t SELECT 90, 'OPEN' FROM range(90)")
    con.execute("INSERT INTO t SELECT 50, NULL FROM range(70)")
    table = accord.table(con.table("t"), epsilon="tier", tiers={"open": inf, "OPEN": 0}, default="OPEN")
    assert table.spec().total == 50
    assert table.release(accord.median("x", (0, 100), step=0.01)).value == 10


def test_few_who_count_are_a_small_sample():
    """Ten public people among a thousand: their smallest is no one-thousandth quantile, and the plan knows."""
    plan = accord.plan(
        accord.Spec.from_groups({inf: 10, 0.001: 990}), accord.quantile("x", 0.001, (0, 1), missing="none")
    )
    assert plan.rmse_here > 10  # the smallest of ten has a root mean square rank of 12.7 %
    assert plan.prediction.error_model.interval(0.5, (), 0.95, 1.0)[1] > 26


def test_a_hopeless_minimum_is_not_paid_for():
    plan = accord.plan(accord.Spec.from_groups({0.001: 10}), accord.min("x", (0, 1)))
    assert plan.mechanism == "midpoint" and not any(plan.charges.values())
    warned = accord.plan(accord.Spec.from_groups({1: 45}), accord.min("x", (0, 1)), "rank").candidates
    assert "may land anywhere" in next(c.note for c in warned if c.mechanism == "rank")


def test_pe_says_whom_it_leaves_out():
    """A share that leaves nine in ten with less than a millionth: the others stand for them."""
    spec = accord.Spec.from_groups({0.000001: 900, 50: 100})
    for query in (accord.median("x", (0, 1), missing="none"), accord.count(where="x > 0")):
        plan = accord.plan(spec, query, "pe", share=0.5)
        assert plan.bias_bound == 0.9
        assert plan.rmse_here > 4


def test_an_evening_belongs_to_its_day():
    from datetime import date

    table = accord.table(
        {"x": np.array(["2020-05-05T18:00"] * 50, "datetime64[us]"), "e": [50.0] * 50}, epsilon="e"
    )
    assert table.release(accord.median("x", (date(2000, 1, 1), date(2030, 1, 1)))).value == date(2020, 5, 5)


def test_no_moment_is_no_bound():
    import pandas as pd

    with pytest.raises(QueryError, match="without a time zone, like the bounds"):
        accord.median("x", (pd.NaT, pd.NaT))
    assert accord.quantile("x", np.array(0.5), (0, 1)) == accord.median("x", (0, 1))


@pytest.mark.parametrize("levels", [1, 3])
def test_a_value_at_the_end_of_a_fine_grid_is_no_error(levels):
    """Level and cell are counted as one integer, of 32 bits where that is enough: here it is not, for the largest value."""
    high = 2**31 // (levels + 1)  # its code is the first that needs more
    query, epsilon = accord.mean("x", bounds=(0, high), step=1), [1.0 + k for k in range(levels)]
    for x in (0, high):
        people = accord.table({"x": [float(x)] * levels, "e": epsilon}, epsilon="e")
        (summary,) = people.reader.summaries(query, None, True)
        assert summary.output.tolist() == [x] * levels and summary.amount.tolist() == [1] * levels
