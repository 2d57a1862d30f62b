"""Dates and timestamps as text: bounds, steps, edges of histograms, conditions. Strict ISO, on every engine."""

import datetime
import json
from datetime import date, timedelta
from math import inf

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import QueryError

MOMENT = datetime.datetime
DAYS = [
    date(2026, 1, 1),
    date(2026, 1, 31),
    date(2026, 2, 1),
    date(2026, 2, 28),
    date(2025, 12, 31),
    date(2030, 1, 1),
    None,
]
EDGES = ["2026-01-01", "2026-02-01", "2026-03-01"]
CELLS = ["[2026-01-01, 2026-02-01)", "[2026-02-01, 2026-03-01]"]


def people(days=DAYS, **columns):
    table = pa.table({"day": pa.array(days, pa.date32()), **columns})
    return accord.table(table, epsilon=inf, user="who" if "who" in columns else None)


def test_texts_mean_the_dates_that_they_spell():
    bounds = (date(2026, 1, 1), date(2026, 12, 31))
    texts = tuple(map(str, bounds))
    assert accord.median("day", texts) == accord.median("day", bounds)
    assert accord.min("day", (texts[0], bounds[1]), missing="2026-02-01") == accord.min(
        "day", bounds, missing=date(2026, 2, 1)
    )
    moments = (MOMENT(2026, 1, 1), MOMENT(2026, 1, 2, 12, 30))
    assert accord.max("t", ("2026-01-01 00:00", "2026-01-02T12:30:00")) == accord.max("t", moments)
    assert accord.median("t", ("2026-01-01 00:00:00.25", "2026-01-02 00:00")).low * 4 % 4 == 1


@pytest.mark.parametrize(
    ("step", "length"),
    [
        ("1 day", timedelta(days=1)),
        ("6 hours", timedelta(hours=6)),
        ("1 hour", timedelta(hours=1)),
        ("15 minutes", timedelta(minutes=15)),
        ("30seconds", timedelta(seconds=30)),
        ("1 week", timedelta(weeks=1)),
        (" 2 weeks ", timedelta(weeks=2)),
    ],
)
def test_a_step_may_be_a_length_of_time(step, length):
    bounds = ("2026-01-01 00:00", "2026-01-29 00:00")
    assert accord.median("t", bounds, step=step) == accord.median("t", bounds, step=length)
    days = ("2026-01-01", "2026-01-29")
    assert accord.median("t", days, step=step) == accord.median("t", days, step=length)


NOT_A_DATE = (
    "A text is a date such as '2026-01-31', or a moment such as '2026-01-31 12:00:00', "
    "without a time zone; a number has no quotes."
)


@pytest.mark.parametrize(
    "text",
    ["31.01.2026", "20260131", "2026-1-31", "2026-02-30", "2026-W05-6", "2026-01-31Z", "2026-01-31 12", " 2026-01-31",
     "2026-01-31 12:00+01:00", "2026-01-31 12:00Z", "2026-01-31 24:00", "0000-01-01", "٢٠٢٦-01-31", "today", "7", ""],
)  # fmt: skip
def test_a_text_that_is_no_date_is_refused(text):
    with pytest.raises(QueryError) as refused:
        accord.median("day", bounds=("2026-01-01", text))
    assert str(refused.value) == f"a bound is {text!r}. {NOT_A_DATE}"
    with pytest.raises(QueryError) as refused:
        accord.histogram("day", edges=["2026-01-01", text, "2027-01-01"])
    assert str(refused.value) == f"an edge is {text!r}. {NOT_A_DATE}"
    with pytest.raises(QueryError) as refused:
        people().plan(accord.count(where=f"day >= '{text}'"))
    assert str(refused.value) == (
        f"column 'day' holds dates without a time zone, and {text!r} is not one. "
        "Write it as '2026-01-31' or '2026-01-31 12:00:00'."
    )


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: accord.median("day", ("2026-01-01", "2026-02-01"), step="1 month"),
            "step is '1 month'. Give a number, or a length of time such as '6 hours', '1 day', '2 weeks'.",
        ),
        (
            lambda: accord.median("x", (0, 9), step="1 day"),
            "step is '1 day', a length of time, and the bounds are numbers. Give a number.",
        ),
        (
            lambda: accord.median("day", ("2026-01-01", "2026-02-01 12:00")),
            "bounds=('2026-01-01', '2026-02-01 12:00') are of two kinds. "
            "Give two numbers, two dates or two timestamps.",
        ),
        (
            lambda: accord.mean("day", ("2026-01-01", "2026-02-01")),
            "a mean is of numbers, and its bounds are dates. Ask for accord.median of a column of dates.",
        ),
        (
            lambda: accord.histogram("day", edges=["2026-01-01", date(2026, 2, 1), 7]),
            "edges= are of several kinds. Give only numbers, only dates, or only timestamps.",
        ),
        (
            lambda: accord.histogram("day", edges=["2026-02-01", "2026-01-01", "2026-03-01"]),
            "a histogram got 3 edges that are not in ascending order. "
            "It needs at least three, in ascending order, such as edges=[0, 18, 65, 100].",
        ),
        (
            lambda: people(x=[1.0] * 7).plan(accord.histogram("x", edges=EDGES)),
            "column 'x' holds numbers, and the edges are dates. Give edges of the column's own kind.",
        ),
        (
            lambda: people().plan(accord.histogram("day", edges=[0, 1, 2])),
            "column 'day' holds dates; a histogram needs numbers. "
            "Give edges that are dates, such as '2026-01-31'.",
        ),
    ],
)
def test_other_kinds_are_refused(ask, message):
    with pytest.raises(QueryError) as refused:
        ask()
    assert str(refused.value) == message


# --- histograms -------------------------------------------------------------------------------------------------------------


def test_a_histogram_of_dates_is_labelled_by_dates():
    query = accord.histogram("day", edges=EDGES, missing="unknown")
    assert query.cells == (*CELLS, "unknown")
    assert query == accord.histogram("day", edges=[date.fromisoformat(e) for e in EDGES], missing="unknown")
    answer = people().release(query, "minimum")
    assert answer.value == dict(zip(query.cells, [3, 3, 1], strict=True))
    assert json.loads(json.dumps(answer.receipt()))["query"]["edges"] == EDGES
    moments = accord.histogram("t", edges=["2026-01-01 00:00", "2026-01-01 12:30:00.5", "2026-01-02 00:00"])
    assert moments.cells[0] == "[2026-01-01 00:00:00, 2026-01-01 12:30:00.500000)"


@pytest.mark.parametrize("form", ["arrow", "pandas", "csv", "german csv", "timestamps"])
def test_every_form_has_the_same_cells(tmp_path, form):
    texts = ["" if day is None else str(day) for day in DAYS]
    csv, source = None, None
    match form:
        case "arrow":
            source = pa.table({"day": pa.array(DAYS, pa.date32())})
        case "timestamps":
            late = [None if d is None else MOMENT(d.year, d.month, d.day, 23, 59, 59) for d in DAYS]
            source = pa.table({"day": pa.array(late, pa.timestamp("us"))})
        case "pandas":
            source = pd.DataFrame({"day": pd.to_datetime(pd.Series(DAYS))})
        case _:
            source = tmp_path / "people.csv"
            if form == "german csv":
                csv = {"dates": "%d.%m.%Y"}
                texts = ["" if day is None else f"{day:%d.%m.%Y}" for day in DAYS]
            source.write_text("\n".join(["day,x", *(f"{text},1" for text in texts)]))
    table = accord.table(source, epsilon=inf, csv=csv)
    asked = table.release(accord.histogram("day", edges=EDGES, missing="unknown"), "minimum")
    assert list(asked.value.values()) == [3, 3, 1]
    for where, count in (
        ("day >= '2026-01-31'", 4),
        ("day < '2026-02-01' AND day >= '2026-01-01'", 2),
        ("day > '2026-01-31 12:00'", 4 if form == "timestamps" else 3),
    ):
        assert table.release(accord.count(where=where), "minimum").value == count, where
    if form != "timestamps":
        for where, count in (
            ("day = '2026-02-01'", 1),
            ("day IN ('2026-02-01', '2026-01-01')", 2),
            ("day <> '2026-02-01'", 5),
        ):
            assert table.release(accord.count(where=where), "minimum").value == count, where
        keys = ["2026-02-01", "2026-01-31"]
        by = table.release(accord.count(by="day", keys=keys), "minimum").value
        assert [row["value"] for row in by] == [1, 1]
        many = [str(date(2026, 1, 1) + timedelta(days=k)) for k in range(90)]
        by = table.release(accord.count(by="day", keys=many), "minimum").value
        assert sum(row["value"] for row in by) == 4


def test_the_rows_of_a_person_come_to_their_mean_date():
    days = [
        date(2026, 1, 1),
        date(2026, 2, 28),
        date(2026, 1, 31),
        date(2026, 2, 2),
        None,
        date(2026, 1, 1),
        None,
    ]
    who = ["a", "a", "b", "b", "b", "c", "d"]
    answer = people(days, who=who).release(accord.histogram("day", edges=EDGES, missing="unknown"), "minimum")
    assert list(answer.value.values()) == [2, 1, 1]  # a: January 30; b: February 1; c; d has none


def test_dates_on_the_command_line(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["day,e", *(f"{day or ''},inf" for day in DAYS)]))

    def run(*words):
        result = CliRunner().invoke(
            main, [*map(str, words), "--epsilon", "e", "--mechanism", "minimum", "--json"]
        )
        return json.loads(result.stdout)

    asked = run("release", path, "histogram", "day", "--edges", ",".join(EDGES), "--missing", "unknown")
    assert list(asked["value"].values()) == [3, 3, 1]
    asked = run(
        "release",
        path,
        "median",
        "day",
        "--bounds",
        "2026-01-01",
        "2026-01-29",
        "--step",
        "1 week",
        "--missing",
        "2026-01-01",
    )
    assert asked["query"]["step"] == "604800" and date.fromisoformat(asked["value"])
    refused = run("plan", path, "median", "day", "--bounds", "1.1.2026", "2.1.2026")
    assert refused["error"]["message"].startswith("a bound is '1.1.2026'. A text is a date such as")
    assert (
        run("plan", path, "median", "day", "--bounds", 0, 7, "--step", "x")["error"]["type"] == "QueryError"
    )
