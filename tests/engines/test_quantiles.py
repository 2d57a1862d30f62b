"""Medians, quantiles, min and max from table to receipt: hard columns, dates, refusals and the command line."""

import datetime
import json
from importlib.resources import files
from math import inf, nan

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

import accord
from accord.cli import main
from accord.errors import PlanError, QueryError
from accord.release.receipt import to_json

ALPHA = 1e-9
DAY, MOMENT = datetime.date, datetime.datetime
CHOOSING = ("minimum", "threshold", "mix", "rank", "pe")
N = 600
DAYS = [DAY(1970, 1, 1) + datetime.timedelta(days=20 * k) for k in range(N)]
MOMENTS = [MOMENT(2020, 1, 1) + datetime.timedelta(hours=k) for k in range(N)]


def people(values, levels=5.0):
    return accord.table({"x": values, "e": np.broadcast_to(levels, len(values)).copy()}, epsilon="e")


# ---- hard columns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", CHOOSING)
def test_a_constant_column_gives_the_constant(mechanism):
    table = people(np.full(200, 37.0), np.tile([60.0, 80.0], 100))
    query = accord.median("x", bounds=(0, 100), step=1, missing="none")
    assert table.release(query, mechanism).value == 37.0


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_people_are_counted_at_their_points_of_a_fine_grid(neighbors):
    """Where who is there is private, those whose level is not in the roster are at none."""
    levels = [2.0, 1.0, 1.0, 2.0, 1.0] if neighbors == "replace" else [2.0, 1.0, 1.0, 7.0, nan]
    roster = {"roster": accord.Spec.from_groups({1.0: 4, 2.0: 9})} if neighbors == "add-remove" else {}
    columns = {"x": [3.0, 1000.0, 3.0, 8.0, 3.0], "e": levels}
    table = accord.table(columns, epsilon="e", neighbors=neighbors, **roster)
    summary = table.reader.summary(accord.median("x", bounds=(0, 1000), step=1))
    expected = {"replace": {(0, 3): 2, (0, 1000): 1, (1, 3): 1, (1, 8): 1}}.get(
        neighbors, {(0, 3): 1, (0, 1000): 1, (1, 3): 1}
    )
    entries = zip(*(x.tolist() for x in (summary.level, summary.output, summary.amount)), strict=True)
    assert {(level, point): people for level, point, people in entries if people} == expected


@pytest.mark.parametrize("ask", [accord.min, accord.max])
def test_the_ends_of_a_constant_column(ask):
    """`pe` lands beyond everyone at one person's price: at the level 100, with 63·e⁻⁵⁰, below 1e-9. `rank` in at most 5 % of the cases."""
    table = people(np.full(200, 37.0), np.tile([100.0, 120.0], 100))
    query = ask("x", bounds=(0, 100), step=1, missing="none")
    assert table.release(query, "pe").value == 37.0
    plan = table.plan(query, "rank")
    right = [table.release(plan).value == 37.0 for _ in range(100)]
    assert binomtest(sum(right), 100, 0.95, alternative="less").pvalue > ALPHA


@pytest.mark.parametrize("mechanism", CHOOSING)
def test_heavy_ties(mechanism):
    """70 % of the people at one value: it is every quantile between."""
    table = people(np.repeat([1.0, 4.0, 9.0], [150, 700, 150]), np.tile([5.0, 20.0], 500))
    query = accord.quantile("x", [0.3, 0.5, 0.7], (0, 10), step=0.5, missing="none")
    assert table.release(query, mechanism).value == [4.0] * 3


def test_bounds_a_thousand_times_too_wide():
    """Enough people: still right. Too few: every candidate says that it may land anywhere, or nothing is read."""
    values = np.random.default_rng(0).uniform(0, 100, 2_000)
    query = accord.median("x", bounds=(-50_000, 50_000), step=0.5)
    release = people(values, 1.0).release(query)
    assert 40 < release.value < 60 and "anywhere" not in release.plan.calibration.note
    few = people(values[:20], 0.1).plan(query)
    assert all("anywhere" in c.note for c in few.candidates if c.rmse is not None)
    assert few.mechanism == "midpoint" or few.rmse_here >= 40


@pytest.mark.parametrize(("values", "end"), [([1e9] * 300, 10.0), ([-1e9] * 300, -10.0)])
@pytest.mark.parametrize(
    ("ask", "mechanism"), [(accord.median, "rank"), (accord.min, "pe"), (accord.max, "pe")]
)
def test_values_outside_count_as_the_nearer_bound(ask, mechanism, values, end):
    query = ask("x", bounds=(-10, 10), step=1, missing="none")
    assert people(values, 60.0).release(query, mechanism).value == end


@pytest.mark.parametrize("mechanism", CHOOSING)
def test_two_people(mechanism):
    table = people([1.0, 2.0], [0.1, 5.0 if mechanism != "mix" else inf])  # mix does not read a few at 5
    assert 0 <= table.release(accord.median("x", (0, 4), step=1, missing="none"), mechanism).value <= 4
    both = table.release(accord.quantile("x", [0.1, 0.9], (0, 4), missing="none"), mechanism).value
    assert all(0 <= v <= 4 for v in both)
    if mechanism != "mix":
        assert 0 <= table.release(accord.min("x", (0, 4), missing="none"), mechanism).value <= 4


def test_negative_bounds():
    table = people(np.linspace(-200, -100, 1_001), 20.0)
    low, middle, high = table.release(accord.quantile("x", [0.1, 0.5, 0.9], (-300, -50), step=1)).value
    assert (
        low == pytest.approx(-190, abs=3)
        and middle == pytest.approx(-150, abs=3)
        and high == pytest.approx(-110, abs=3)
    )


def test_missing_values_count_as_the_middle():
    table = people([nan, inf, -inf, nan] * 100, 20.0)
    assert table.release(accord.median("x", (0, 10), step=1, missing="middle")).value == 5.0
    assert table.release(accord.median("x", (0, 10), step=1, missing=2)).value == 2.0
    nulls = accord.table(
        pa.table({"x": pa.array([None] * 300, pa.float64()), "e": [80.0] * 300}), epsilon="e"
    )
    assert nulls.release(accord.max("x", (0, 10), step=1, missing="middle"), "pe").value == 5.0


def test_all_public_gives_the_exact_quantiles():
    """The upper median of an even number may be either; here n is odd."""
    values = np.random.default_rng(1).permutation(1_001)
    table = people(values, inf)
    release = table.release(accord.quantile("x", [0.1, 0.5, 0.9], (0, 1000), step=1))
    assert release.value == [100.0, 500.0, 900.0] and release.plan.rmse_here == 0
    assert table.release(accord.min("x", (-5, 1000), step=1)).value == 0.0
    assert table.release(accord.max("x", (0, 1005), step=1)).value == 1000.0
    for mechanism in CHOOSING:
        query = accord.median("x", (0, 1000), step=1, missing="none")
        assert table.release(query, mechanism).value == 500.0


def test_several_quantiles_never_cross():
    table = people([0.0, 1.0], [0.1, 0.1])  # nearly pure noise
    for _ in range(30):
        value = table.release(accord.quantile("x", [0.9, 0.1, 0.5], (0, 1)), "rank").value
        assert value == sorted(value) and len(value) == 3


@pytest.mark.parametrize("mechanism", [m for m in CHOOSING if m != "mix"])
def test_ten_thousand_levels(mechanism):
    random = np.random.default_rng(2)
    table = people(random.normal(size=10_000), (1 + random.permutation(10_000)) / 10_000)
    assert -5 <= table.release(accord.median("x", (-5, 5), missing="none"), mechanism).value <= 5


def test_mix_refuses_ten_thousand_levels():
    spec = accord.Spec.from_groups({k / 10_000: 10**6 for k in range(1, 10_001)})  # each is sure of its own
    plan = accord.plan(spec, accord.median("x", (-5, 5), missing="none"))
    mix = next(c for c in plan.candidates if c.mechanism == "mix")
    assert mix.rmse is None and "10000 levels" in mix.note


@pytest.mark.parametrize("mechanism", CHOOSING)
def test_a_million_points(mechanism):
    table = people(np.random.default_rng(3).uniform(0, 1, 5_000), np.tile([0.1, 1.0], 2_500))
    query = accord.median("x", (0, 1), step=1e-6, missing="none")
    assert abs(table.release(query, mechanism).value - 0.5) < 0.3


# ---- kinds of columns ------------------------------------------------------------------------------------------------


def in_csv(columns, folder):
    pd.DataFrame(columns).to_csv(folder / "people.csv", index=False)
    return folder / "people.csv"


SOURCES = {
    "pandas": lambda columns, folder: pd.DataFrame(columns),
    "arrow": lambda columns, folder: pa.table(columns),
    "relation": lambda columns, folder: duckdb.connect().from_arrow(pa.table(columns)),
    "csv": in_csv,
}


@pytest.mark.parametrize("source", SOURCES)
def test_integers_dates_and_timestamps(source, tmp_path):
    columns = {"k": list(range(N)), "day": DAYS, "moment": MOMENTS, "e": [60.0] * N}
    if source == "pandas":
        columns["day"] = pd.to_datetime(pd.Series(DAYS))
    table = accord.table(SOURCES[source](columns, tmp_path), epsilon="e")
    whole = table.release(accord.median("k", bounds=(0, 1000), step=1)).value
    assert type(whole) is float and abs(whole - 300) <= 3
    day = table.release(accord.median("day", bounds=(DAY(1960, 1, 1), DAY(2020, 1, 1)))).value
    assert type(day) is DAY and abs(day - DAYS[300]) < datetime.timedelta(days=60)
    hour = datetime.timedelta(hours=1)
    query = accord.quantile("moment", [0.25, 0.75], (MOMENT(2020, 1, 1), MOMENT(2020, 2, 1)), step=hour)
    early, late = table.release(query).value
    assert (
        type(early) is MOMENT
        and abs(early - MOMENTS[150]) <= 4 * hour
        and abs(late - MOMENTS[450]) <= 4 * hour
    )
    earliest = accord.min("day", bounds=(DAY(1960, 1, 1), DAY(2020, 1, 1)), missing="none")
    first = table.release(earliest, "pe").value
    assert type(first) is DAY and first == DAYS[0]


def test_missing_dates_count_as_the_middle():
    column = pa.array([None] * 300, pa.date32())
    table = accord.table(pa.table({"day": column, "e": [20.0] * 300}), epsilon="e")
    query = accord.median("day", (DAY(2020, 1, 1), DAY(2020, 1, 31)), missing="none")
    assert table.release(query).value == DAY(2020, 1, 16)


def test_columns_of_another_kind_are_refused():
    table = accord.table(pa.table({"day": DAYS, "k": list(range(N)), "e": [1.0] * N}), epsilon="e")
    with pytest.raises(QueryError, match="Give bounds that are dates"):
        table.plan(accord.median("day", (0, 10)))
    with pytest.raises(QueryError, match="and the bounds are dates"):
        table.plan(accord.median("k", (DAY(2020, 1, 1), DAY(2020, 2, 1))))


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0, r"^p=0 is the smallest value\. Ask for accord\.min\.$"),
        (1.0, r"^p=1 is the largest value\. Ask for accord\.max\.$"),
        ([0.5, 1], "Ask for accord.max"),
        (nan, "must be a finite number"),
        (inf, "must be a finite number"),
        (1.5, "is not a fraction of the people"),
        (-0.1, "is not a fraction of the people"),
        ("0.5", "must be a finite number"),
        ("half", "must be a finite number"),
        (None, "must be a finite number"),
        (True, "must be a finite number"),
        ([], "p= has 0 entries"),
        ([0.5, 0.5], "p= has 2 entries. Give at least one, each once"),
        (0.1234567, "at most six decimals"),
    ],
)
def test_bad_p_is_refused(p, words):
    with pytest.raises(QueryError, match=words):
        accord.quantile("x", p, bounds=(0, 1))


@pytest.mark.parametrize(
    ("bounds", "options", "words"),
    [
        ((0, DAY(2020, 1, 1)), {}, "are of two kinds"),
        ((DAY(2020, 1, 1), MOMENT(2020, 2, 1)), {}, "are of two kinds"),
        (
            (MOMENT(2020, 1, 1, tzinfo=datetime.UTC), MOMENT(2020, 2, 1, tzinfo=datetime.UTC)),
            {},
            "without a time zone",
        ),
        ((DAY(2020, 2, 1), DAY(2020, 1, 1)), {}, "reversed"),
        ((DAY(2020, 1, 1), DAY(2020, 1, 1)), {}, "equal"),
        (("2020-01-01", "20200201"), {}, "a bound is '20200201'. A text is a date such as '2026-01-31'"),
        ((0, 10), {"step": 3}, "step=3 does not fit"),
        ((0, 10), {"step": -1}, "does not fit"),
        ((0, 10), {"step": 1e-6}, "does not fit"),
        ((DAY(2020, 1, 1), DAY(2020, 1, 31)), {"step": 7}, "does not fit"),
        ((DAY(2020, 1, 1), DAY(2020, 1, 31)), {"missing": 3}, "must be a date"),
        ((0, 10), {"missing": 11}, "lies outside the bounds"),
        (5, {}, "is not a pair"),
    ],
)
@pytest.mark.parametrize("ask", [accord.median, accord.min, accord.max])
def test_bad_bounds_and_steps_are_refused(ask, bounds, options, words):
    with pytest.raises(QueryError, match=words):
        ask("x", bounds, **options)


# ---- intervals and receipts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "ps"),
    [
        (lambda: accord.median("age", (0, 120)), [0.5]),
        (lambda: accord.quantile("income", [0.1, 0.9], (0, 400_000)), [0.1, 0.9]),
    ],
)
def test_intervals_hold(ask, ps):
    """The percentiles at which the answer lies overlap the interval: a coverage of at least 95 % is not rejected at α = 1e-9."""
    path = str(files("accord.data") / "people.parquet")
    data = duckdb.execute("SELECT income, age, epsilon FROM read_parquet($1)", [path]).fetchnumpy()
    query, shuffle, runs, covered = ask(), np.random.default_rng(13), 150, 0
    values = np.clip(np.asarray(data[query.column], dtype=float), float(query.low), float(query.high))
    con = duckdb.connect()
    for _ in range(runs):
        epsilon = shuffle.permutation(data["epsilon"])
        con.register("people", {**data, "epsilon": epsilon})
        release = accord.table(con.sql("FROM people"), epsilon="epsilon").release(query)
        here = values[epsilon > 0]
        answers = release.value if isinstance(release.value, list) else [release.value]
        intervals = release.interval(0.95)
        for value, (low, high) in zip(
            answers, intervals if isinstance(intervals, list) else [intervals], strict=True
        ):
            half = float(query.step) / 2
            covered += (
                100 * (here <= value + half).mean() >= low and 100 * (here < value - half).mean() <= high
            )
    assert binomtest(int(covered), runs * len(ps), 0.95, alternative="less").pvalue > ALPHA
    assert covered / (runs * len(ps)) >= 0.95


def test_receipts_of_dates_and_lists():
    table = accord.table(pa.table({"day": DAYS, "moment": MOMENTS, "e": [5.0] * N}), epsilon="e")
    bounds = (DAY(1960, 1, 1), DAY(2020, 1, 1))
    receipt = json.loads(to_json(table.release(accord.median("day", bounds)).receipt()))
    assert (
        DAY.fromisoformat(receipt["value"])
        and receipt["unit"] == "percentile points"
        and receipt["query"]["p"] == "0.5"
    )
    assert receipt["query"]["bounds"] == ["1960-01-01", "2020-01-01"]
    low, high = receipt["interval"]["bounds"]
    assert 0 <= low < 50 < high <= 100
    several = json.loads(to_json(table.release(accord.quantile("day", [0.9, 0.1], bounds)).receipt()))
    assert several["query"]["p"] == ["0.1", "0.9"] and several["value"] == sorted(several["value"])
    assert [
        low < 100 * p < high for p, (low, high) in zip((0.1, 0.9), several["interval"]["bounds"], strict=True)
    ]
    moment = json.loads(
        to_json(table.release(accord.max("moment", (MOMENT(2020, 1, 1), MOMENT(2021, 1, 1)))).receipt())
    )
    assert MOMENT.fromisoformat(moment["value"]) <= MOMENT(2021, 1, 1)
    alone = json.loads(to_json(table.release(accord.quantile("day", [0.5], bounds)).receipt()))
    assert len(alone["value"]) == 1 and alone["query"]["p"] == ["0.5"]


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    return str(in_csv({"k": list(range(N)), "day": DAYS, "moment": MOMENTS, "e": [20.0] * N}, folder))


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(w) for w in words])
    assert result.exit_code == code, result.output + result.stderr
    return result


def test_command_line_numbers(path):
    options = ["k", "--bounds", "0", "1000", "--step", "1", "--epsilon", "e", "--json"]
    assert abs(json.loads(run("release", path, "median", *options).stdout)["value"] - 300) < 20
    low, high = json.loads(run("release", path, "quantile", *options, "--p", "0.1,0.9").stdout)["value"]
    assert abs(low - 60) < 20 and abs(high - 540) < 20
    assert isinstance(
        json.loads(run("release", path, "quantile", *options, "--p", "0.25").stdout)["value"], float
    )
    assert json.loads(run("release", path, "min", *options).stdout)["value"] < 30
    assert json.loads(run("release", path, "max", *options).stdout)["value"] > 560


def test_command_line_dates(path):
    options = ["day", "--bounds", "1960-01-01", "2020-01-01", "--epsilon", "e"]
    for statistic in ("median", "min", "max"):
        assert DAY.fromisoformat(
            json.loads(run("release", path, statistic, *options, "--json").stdout)["value"]
        )
    value = json.loads(run("release", path, "quantile", *options, "--p", "0.1,0.9", "--json").stdout)["value"]
    assert value == sorted(value) and abs(DAY.fromisoformat(value[0]) - DAYS[60]) < datetime.timedelta(
        days=600
    )
    moment = ["moment", "--bounds", "2020-01-01T00:00", "2021-01-01T00:00", "--epsilon", "e", "--json"]
    assert MOMENT.fromisoformat(json.loads(run("release", path, "median", *moment).stdout)["value"])
    for command in ("plan", "release"):
        output = run(command, path, "median", *options).stdout
        assert "percentile points" in output and "median of day" in output


def test_command_line_refusals(path):
    assert (
        "Ask for min."
        in run("plan", path, "quantile", "k", "--bounds", 0, 9, "--p", 0, "--epsilon", "e", code=1).stderr
    )
    assert (
        "needs --p" in run("plan", path, "quantile", "k", "--bounds", 0, 9, "--epsilon", "e", code=2).stderr
    )
    assert (
        "--p has no meaning"
        in run("plan", path, "median", "k", "--bounds", 0, 9, "--p", "0.5", "--epsilon", "e", code=2).stderr
    )
    assert (
        "finite number"
        in run(
            "plan", path, "quantile", "k", "--bounds", 0, 9, "--p", "half", "--epsilon", "e", code=1
        ).stderr
    )


def test_an_interval_in_values_on_the_command_line(path):
    words = ("release", path, "median", "k", "--bounds", 0, 9, "--step", 1, "--epsilon", 50)
    assert (
        "the interval in values: not available from one draw (ask for interval='values', or --interval values)"
        in run(*words).stdout
    )
    text = run(*words, "--interval", "values").stdout
    assert "95 % between the values " in text and "for an interval in values two more points" in text
    receipt = json.loads(run(*words, "--interval", "values", "--json").stdout)
    low, high = receipt["interval"]["values"]
    assert 0 <= low <= high <= 9 and receipt["interval"]["unit"] == "percentile points"
    assert receipt["query"]["interval"] == "values"
    assert (
        "--interval has no meaning for min"
        in run(*words[:2], "min", *words[3:], "--interval", "values", code=2).stderr
    )


def test_no_other_interval_is_offered():
    with pytest.raises(
        QueryError, match=r"interval='percentiles' is not offered\. A quantile has an interval in percentiles"
    ):
        accord.median("x", (0, 1), interval="percentiles")


@pytest.mark.parametrize("mechanism", ["mix", "pe", "sample"])
def test_others_have_no_interval_in_values(mechanism):
    with pytest.raises(
        PlanError, match=r"has no interval in values\. Use one of minimum, threshold, rank, or 'auto'\."
    ):
        asked = accord.median("x", (0, 1), missing="none", interval="values")
        accord.plan(accord.Spec.from_groups({1.0: 100}), asked, mechanism)


def test_a_minimum_of_a_private_part_says_for_whom_it_is_planned():
    """A tenth of the people are fewer than were planned for: then an answer beyond everyone is not so rare."""
    spec, ask = accord.Spec.from_groups({1.0: 2_000}), accord.min
    note = accord.plan(spec, ask("x", (0, 1), missing="none"), "rank").calibration.note
    assert note.endswith(", beyond everyone at most once in 20")
    note = accord.plan(spec, ask("x", (0, 1), where="x > 0.5"), "rank").calibration.note
    assert note.endswith(", beyond everyone at most once in 20 if all are there")
