"""A column's name is just a name, however it is written; and what cannot be one is refused."""

from math import inf
from unittest.mock import ANY

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from strategies import HOSTILE, UNUSABLE

import accord
from accord.errors import AccordError, SourceError
from accord.report.figures import draw_plan


def pandas(columns, folder):
    return pd.DataFrame(columns)


def polars(columns, folder):
    return pl.DataFrame(columns)


def arrays(columns, folder):
    return columns


def arrow_table(columns, folder):
    return pa.table(columns)


def parquet(columns, folder):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    return folder / "people.parquet"


SOURCES = (pandas, polars, arrays, arrow_table, parquet)


@pytest.mark.parametrize("source", SOURCES)
def test_every_name_names_its_own_column(source, tmp_path):
    """As the column of levels, of values, of people and of groups at once."""
    names = [*dict.fromkeys(name.lower() for name in HOSTILE), *map(str.upper, HOSTILE[-30:]), "x" * 10_000]
    fours = list(zip(names, names[1:], names[2:], names[3:], strict=False))
    for level, x, who, group in fours[2 * SOURCES.index(source) :: 2 * len(SOURCES)]:
        if len({name.lower() for name in (level, x, who, group)}) < 4:
            continue
        columns = {
            level: [inf] * 6,
            x: [1.0, 3.0, 6.0, 2.0, 0.0, 8.0],
            who: list("aabbcc"),
            group: list("uuvvuu"),
        }
        table = accord.table(source(columns, tmp_path), epsilon=level, user=who)
        assert table.release(accord.mean(x, (0, 8), step=1)).value == 10 / 3
        groups = table.release(accord.mean(x, (0, 8), step=1, by=group, keys=["u", "v"]), "minimum").value
        assert groups == [
            {group: key, "value": v, "rmse": ANY, "few": ANY} for key, v in (("u", 3.0), ("v", 4.0))
        ]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", UNUSABLE, ids=ascii)
def test_a_name_that_no_column_can_have_is_refused(source, name, tmp_path):
    try:
        given = source({"e": [1.0, 2.0], name: [1.0, 2.0]}, tmp_path)
    except (UnicodeError, TypeError, pa.ArrowException):
        return  # nor can the source
    for attempt in (
        lambda: accord.table(given, epsilon="e").release(accord.mean(name, (0, 1)), "minimum"),
        lambda: accord.table(given, epsilon=name).spec(),
        lambda: accord.table(given, epsilon="e", user=name).spec(),
        lambda: accord.table(given, epsilon="e").plan(accord.count(where=f'"{name}" > 1')),
    ):
        with pytest.raises(AccordError):
            attempt()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("names", [("e", "E", "E_1"), ("E_1", "e", "E"), ("x", "e", "X")])
def test_columns_that_differ_in_case_only_are_refused(source, names, tmp_path):
    """DuckDB would call the second one E_1, and read it for whoever asks for the third: then 7 was the level of who had agreed to 0.1."""
    columns = dict(zip(names, ([5.0], [7.0], [0.1]), strict=True))
    for epsilon in names:
        with pytest.raises(SourceError, match="alike or differ in case only, which DuckDB cannot tell apart"):
            accord.table(source(columns, tmp_path), epsilon=epsilon)


def test_columns_that_are_written_alike_are_refused():
    with pytest.raises(SourceError, match="alike or differ in case only"):
        accord.table({"e": [1.0], 1: [2.0], "1": [3.0]}, epsilon="e")


def test_a_number_that_no_double_can_hold_is_missing():
    table = accord.table({"e": [inf] * 2, "x": [10**400, 1]}, epsilon="e")
    assert table.release(accord.mean("x", (0, 4), step=1, missing=3)).value == 2.0


@pytest.mark.parametrize(
    "path",
    ["x" * 300 + ".csv", "x/" * 3_000 + "y.parquet", "", "a\0b.csv", "\udcff.csv"],
    ids=lambda p: ascii(p[:9]),
)
def test_a_path_that_no_file_can_have_is_refused(path):
    with pytest.raises(SourceError, match="there is no file"):
        accord.table(path, epsilon="e")


def test_a_level_that_is_too_large_to_be_written_is_not_public():
    with pytest.raises(SourceError, match="there is no column '1e400'"):
        accord.table({"x": [1.0]}, epsilon="1e400")


@pytest.mark.parametrize("by", ["value", "rmse", "few"])
def test_groups_have_no_name_that_a_row_of_the_answer_has(by):
    with pytest.raises(
        AccordError, match=f"by='{by}' is what the rows of the answer call something of their own"
    ):
        accord.count(by=by, keys=["a"])


def test_coefficients_have_names_of_their_own():
    with pytest.raises(AccordError, match="two coefficients of the regression are written alike"):
        accord.regression(
            "y", ["a=b", "a"], bounds={"y": (0, 1), "a=b": (0, 1)}, categories={"a": ["c", "b"]}
        )
    rows = {"e": [inf] * 9, "y": [5.0] * 9, "intercept": [1.0] * 9}
    line = accord.regression("y", ["intercept"], bounds={"y": (0, 10), "intercept": (0, 2)})
    shown = str(accord.table(rows, epsilon="e").release(line)).splitlines()
    assert sum(text.startswith("intercept ") for text in shown) == 2


def test_a_dollar_is_no_formula_and_a_bracket_no_markup(tmp_path):
    tiers = {"$\\frac$": 1.0, "[/b]": 2.0}
    rows = {"$\\frac$": [1.0] * 200, "🦆 [/b]": ["a"] * 200, "tier": list(tiers) * 100}
    table = accord.table(rows, epsilon="tier", tiers=tiers)
    asked = accord.mean("$\\frac$", (0, 2), by="🦆 [/b]", keys=["a", "[b]"])
    assert "🦆 [/b]" in str(table.release(asked)) and "[/b]" in str(table.plan(asked))
    assert draw_plan(table.plan(asked), tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
