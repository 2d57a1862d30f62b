"""Groups by several columns: what is asked and refused, rows, documents, frames, texts, the command line, files of questions, ledgers."""

import json
from math import inf

import numpy as np
import pytest

import accord
from accord.errors import QueryError
from accord.planning import fingerprint_as_written
from accord.release.receipt import to_json

KEYS = {"ward": ["A", "B", "C"], "sex": ["f", "m"]}
CELLS = [(ward, sex) for ward in KEYS["ward"] for sex in KEYS["sex"]]
SPEC = accord.Spec.from_groups({0.1: 500, 1.0: 300})


def columns(level=1.0):
    """Two people in every cell, of three wards and one that is not declared; A has one woman more."""
    cells = [*[(w, s) for w in "ABCZ" for s in "fm"] * 2, ("A", "f")]
    return {
        "id": np.arange(len(cells)),
        "ward": [w for w, _ in cells],
        "sex": [s for _, s in cells],
        "x": np.arange(len(cells), dtype=float),
        "e": np.full(len(cells), level),
    }


def people(level=1.0, **options):
    return accord.table(columns(level), epsilon="e", **options)


def exactly(query):
    """Without noise, because everybody is public."""
    return people(inf).release(query, "threshold", t=inf)


# ---- what is asked -------------------------------------------------------------------------------------------------


def test_a_crosstab_is_a_count_by_several_columns():
    crosstab = accord.crosstab("ward", "sex", keys=KEYS, where="x > 1", at_most=2)
    assert crosstab == accord.count("x > 1", by=["ward", "sex"], keys=KEYS, at_most=2)
    assert crosstab.label == "count of people where x > 1 by ward, sex (each in up to 2)"
    assert crosstab.columns == ("x", "ward", "sex") and crosstab.groups == 6
    assert (
        accord.plan(SPEC, crosstab).fingerprint
        == accord.plan(
            SPEC, accord.count("x>1", by=("ward", "sex"), keys=dict(reversed(KEYS.items())), at_most=2)
        ).fingerprint
    )


def test_one_column_is_what_it_was():
    """To the letter: ledgers have documents and fingerprints from before there were several."""
    for by, keys in (
        ("g", ["a", "b"]),
        (["g"], ["a", "b"]),
        (["g"], {"g": ["a", "b"]}),
        ("g", {"g": ["a", "b"]}),
    ):
        query = accord.count(by=by, keys=keys)
        assert query == accord.count(by="g", keys=["a", "b"])
        plan = accord.plan(SPEC, query)
        assert plan.describe()["query"] == {
            "statistic": "count", "where": None, "by": "g", "keys": ["a", "b"], "membership": "private"
        }  # fmt: skip
        booked = "1b19a2596af0c9ef3d20197bbaa5d235a57353db29570b5706913cf63043c1f0"
        assert fingerprint_as_written(plan) == booked


def test_a_margin_is_inside_its_interval_though_nobody_can_be_more_than_all():
    """Who is in one cell is in one margin: an interval ends at the number of people, or at the sum of the cells."""
    for _ in range(20):
        release = people(0.5).release(accord.crosstab("ward", "sex", keys=KEYS), "minimum")
        for row in (*release.margin("ward"), *release.margin()):
            assert row["low"] <= row["value"] <= row["high"]
            assert row["high"] <= max(17, row["value"]) and row["low"] >= min(0, row["value"])


def test_several_columns_have_fingerprints_of_their_own():
    asked = [
        accord.count(by=["a", "b"], keys={"a": [1], "b": [2]}),
        accord.count(by=["b", "a"], keys={"a": [1], "b": [2]}),
        accord.count(by=["a", "b"], keys={"a": [1, 2], "b": [2]}),
        accord.count(by=["a", "b"], keys={"a": [1], "b": ["2"]}),
        accord.count(by=["a", "b", "c"], keys={"a": [1], "b": [2], "c": [1]}),
        accord.count(by="a", keys=[1]),
    ]
    assert len({accord.plan(SPEC, query).fingerprint for query in asked}) == len(asked)


BAD = {
    "no keys": ({"by": ["ward", "sex"]}, r"by=\['ward', 'sex'\] needs keys="),
    "keys without columns": (
        {"by": ["ward", "sex"], "keys": ["A", "f"]},
        r"by= has 2 columns, and keys= does not say which keys are whose. Give keys=\{'ward': \[…\], 'sex': \[…\]\}",
    ),
    "keys of one are missing": (
        {"by": ["ward", "sex"], "keys": {"ward": ["A"]}},
        "keys= has none for 'sex', a column of by=: declare them, because groups taken from the data would tell who is there",
    ),
    "keys of another": (
        {"by": ["ward", "sex"], "keys": KEYS | {"age": [1]}},
        r"keys= has 'age', which is not a column of by= \(ward, sex\). Leave it out, or add it to by=",
    ),
    "keys of another column alone": ({"by": "ward", "keys": {"sex": ["f"]}}, "keys= has none for 'ward'"),
    "mixed kinds": (
        {"by": ["ward", "sex"], "keys": {"ward": ["A", 1], "sex": ["f"]}},
        "keys= of 'ward' are of several kinds. Give only texts, only numbers, or only True and False",
    ),
    "an empty list": (
        {"by": ["ward", "sex"], "keys": {"ward": [], "sex": ["f"]}},
        "keys= of 'ward' has 0 groups, 0 of them different. Give at least one, each once",
    ),
    "a key twice": ({"by": ["ward", "sex"], "keys": {"ward": ["A", "A"], "sex": ["f"]}}, "keys= of 'ward' has 2 groups, 1 of them"),
    "no list": ({"by": ["ward", "sex"], "keys": {"ward": "AB", "sex": ["f"]}}, r"keys='AB' is not a list"),
    "a column twice": ({"by": ["ward", "ward"], "keys": {"ward": ["A"]}}, "by= names 'ward' twice. Name each column once"),
    "no column": ({"by": [], "keys": {}}, r"by=\[\] names no column. Name one, or several: by=\['ward', 'sex'\]"),
    "a reserved name": ({"by": ["ward", "rmse"], "keys": {"ward": ["A"], "rmse": [1]}}, "by='rmse' is what the rows of the answer call"),
    "no name": ({"by": ["ward", 3], "keys": {"ward": ["A"], 3: [1]}}, "a column is named by a text, and 3 is not one"),
    "too many cells": (
        {"by": ["a", "b", "c"], "keys": {name: range(1_000) for name in "abc"}},
        r"by= with these keys has 1,000,000,000 groups \(1,000 × 1,000 × 1,000\), and at most 200,000 are answered at "
        "once. Declare fewer keys, or fewer columns",
    ),
    "in too many": ({"by": ["ward", "sex"], "keys": KEYS, "at_most": 7}, "Give a whole number from 1 to 6"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_what_cannot_be_asked_is_refused_with_the_reason(fault):
    """Before anything is read, and by every statistic."""
    arguments, message = BAD[fault]
    for ask in (accord.count, lambda **of: accord.mean("x", (0, 1), **of), lambda **of: accord.rows(3, **of)):
        with pytest.raises(QueryError, match=message):
            accord.plan(SPEC, ask(**arguments))


@pytest.mark.parametrize("columns", [(), ("ward",)])
def test_a_crosstab_needs_two_columns(columns):
    with pytest.raises(
        QueryError,
        match=f"two columns or more, not of {len(columns)}. Name them all; for one, ask accord.count",
    ):
        accord.crosstab(*columns, keys={"ward": ["A"]})


def test_a_plan_for_the_most_cells_there_may_be():
    query = accord.crosstab("a", "b", keys={"a": range(400), "b": range(500)})
    plan = accord.plan(SPEC, query)
    assert plan.private_groups == 200_000 and "the 200000 combinations of keys were declared" in str(plan)


# ---- what is answered ----------------------------------------------------------------------------------------------


def test_rows_intervals_and_frames_have_a_key_of_each_column():
    release = exactly(accord.sum("x", (0, 20), step=1, by=["ward", "sex"], keys=KEYS))
    assert [(row["ward"], row["sex"]) for row in release.value] == CELLS
    assert [row["value"] for row in release.value] == [8.0 + 16, 10.0, 12.0, 14.0, 16.0, 18.0]
    assert list(release.interval()) == CELLS and list(release.value[0]) == [
        "ward",
        "sex",
        "value",
        "rmse",
        "few",
    ]
    frame = release.to_pandas()
    assert list(frame.columns)[:4] == ["question", "ward", "sex", "value"] and len(frame) == 6


@pytest.mark.parametrize("membership", ["private", "public"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda **of: accord.mean("x", (0, 20), step=1, **of),
        lambda **of: accord.median("x", (0, 20), step=1, **of),
        lambda **of: accord.quantile("x", [0.25, 0.75], (0, 20), step=1, **of),
        lambda **of: accord.variance("x", (0, 20), step=1, **of),
        lambda **of: accord.histogram("x", edges=[0, 5, 20], **of),
        lambda **of: accord.regression("x", ["id"], bounds={"x": (0, 20), "id": (0, 20)}, **of),
        lambda **of: accord.crosstab(*of.pop("by"), **of),
    ],
    ids=["mean", "median", "quantiles", "variance", "histogram", "regression", "crosstab"],
)
def test_every_statistic_is_shown_in_every_way(ask, membership):
    query = ask(by=["ward", "sex"], keys=KEYS, membership=membership)
    release = people(1_000.0).release(query, "minimum" if membership == "private" else "auto")
    assert [(row["ward"], row["sex"]) for row in release.value] == CELLS
    receipt = json.loads(to_json(release.receipt()))
    assert receipt["query"]["by"] == ["ward", "sex"] and receipt["query"]["keys"] == KEYS
    if membership == "public":
        assert [group["key"] for group in receipt["groups"]] == [list(cell) for cell in CELLS]
        assert release.releases["B", "m"].value == release.value[3]["value"]
    else:
        bounds = receipt["interval"]["bounds"]
        assert {ward: list(of_ward) for ward, of_ward in bounds.items()} == {
            ward: ["f", "m"] for ward in "ABC"
        }
        ends = release.interval()["B", "m"]
        assert bounds["B"]["m"] == json.loads(json.dumps(ends))
    text = str(release)
    assert "by ward, sex" in text and all(key in text for key in ("A", "B", "C", "f", "m"))
    assert "ward" in release._repr_html_() and "ward" in str(release.plan)
    assert len(release.to_pandas()) >= 6


def test_a_table_of_two_columns_goes_down_and_across():
    keys = {**KEYS, "ward": ["A", "B"]}
    lines = str(people(10**6).release(accord.crosstab("ward", "sex", keys=keys), "minimum")).splitlines()
    assert lines.pop(1) == "Right even if levels go with values: everyone counts the same."
    assert [line.replace(".0", "").replace("*", "").split() for line in lines[1:5]] == [
        ["ward", "\\", "sex", "f", "m", "in", "all"],
        ["A", "3", "2", "5"],
        ["B", "2", "2", "4"],
        ["in", "all", "5", "4", "9"],
    ]
    assert "* too few people to tell" in lines and lines[6].split() == ["error", "95", "%", "interval"]
    assert [line.split()[:-3] for line in lines[7:11]] == [["a", "cell"], ["ward"], ["sex"], ["in", "all"]]
    assert "they are about whoever is in one of these" in " ".join(lines[11:13])
    wide = accord.crosstab("sex", "ward", keys={**KEYS, "ward": [*"ABCDEFGHIJ"]})
    assert "ward \\ sex" in str(exactly(wide))  # the shorter list goes across, where the longer does not fit
    long = {"ward": [f"w{k}" for k in range(150)], "sex": ["f", "m"]}
    assert "… 200 more groups" in str(exactly(accord.crosstab("ward", "sex", keys=long, suppress=False)))
    three = str(exactly(accord.crosstab("ward", "sex", "id", keys={**KEYS, "id": [0, 1]})))
    assert "ward  sex  id" in three


def test_an_empty_cell_of_public_groups_is_said_to_be_empty():
    keys = {**KEYS, "ward": ["A", "nowhere"]}
    release = people().release(accord.mean("x", (0, 20), by=["ward", "sex"], keys=keys, membership="public"))
    assert release.value[2] == {"ward": "nowhere", "sex": "f", "value": None, "rmse": None, "few": True}
    assert "nobody is there to ask" in str(release)
    counted = people().release(accord.crosstab("ward", "sex", keys=keys, membership="public"))
    assert [row["value"] for row in counted.margin("ward")] == [5.0, 0.0]


# ---- margins -------------------------------------------------------------------------------------------------------


def test_margins_are_the_sums_of_the_cells():
    release = people().release(accord.crosstab("ward", "sex", keys=KEYS), "minimum")
    cells = {(row["ward"], row["sex"]): row["value"] for row in release.value}
    by_ward, by_sex, (total) = release.margin("ward"), release.margin("sex"), release.margin()
    assert [list(row) for row in by_ward] == [["ward", "value", "rmse", "low", "high", "few"]] * 3
    assert [row["value"] for row in by_ward] == pytest.approx([cells[w, "f"] + cells[w, "m"] for w in "ABC"])
    assert [row["value"] for row in by_sex] == pytest.approx([sum(cells[w, s] for w in "ABC") for s in "fm"])
    assert total[0]["value"] == pytest.approx(sum(cells.values()))
    assert release.margin(["ward", "sex"]) == release.margin("ward", "sex")
    assert [row["sex"] for row in release.margin("sex", "ward")] == [
        "f",
        "m",
    ] * 3  # in the order that was asked for


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("at_most", [1, 2])
def test_the_error_of_a_margin(neighbors, at_most):
    """Noises are independent, and what the weights do happens once to everyone, or to each of their cells."""
    options = (
        {}
        if neighbors == "replace"
        else {"neighbors": neighbors, "roster": accord.Spec.from_groups({1.0: 17})}
    )
    table = people(user="id", **options)
    release = table.release(accord.crosstab("ward", "sex", keys=KEYS, at_most=at_most), "minimum")
    plan = release.plan
    noise = plan.rmse_here**2  # everyone has the same level, so that the weights do nothing
    for columns, cells in (((), 6), (("ward",), 2), (("sex",), 3), (("ward", "sex"), 1)):
        row = release.margin(*columns)[0]
        others = min(at_most, cells) ** 2 * (plan.rmse**2 - noise)
        assert row["rmse"] == pytest.approx((others + cells * noise) ** 0.5)
        half = max(row["high"] - row["value"], row["value"] - row["low"])
        most = min(at_most, cells) * plan.spec.total  # what is not possible is cut off, up to the value
        for end, possible in ((row["value"] - half, 0), (row["value"] + half, most)):
            cut = (
                max(end, min(possible, row["value"]))
                if possible == 0
                else min(end, max(possible, row["value"]))
            )
            assert cut == pytest.approx(row["low"] if possible == 0 else row["high"])
    cell = release.margin("ward", "sex")[0]
    # a derived number knows that noise is whole, which is a millionth or two
    assert (cell["low"], cell["high"]) == pytest.approx(release.interval()["A", "f"], rel=1e-5)


def test_the_margins_of_public_groups_add_up_what_each_may_be_off():
    query = accord.sum(
        "x", (0, 20), step=1, by=["ward", "sex"], keys=KEYS, membership="public", missing="none"
    )
    for mechanism in ("minimum", "mix", "stretch"):
        release = people(3.0).release(query, mechanism)
        for row, ward in zip(release.margin("ward"), "ABC", strict=True):
            parts = [release.releases[ward, sex] for sex in "fm"]
            assert row["value"] == pytest.approx(sum(part.value for part in parts))
            assert row["rmse"] == pytest.approx(sum(part.rmse**2 for part in parts) ** 0.5)
        for cell in release.margin("ward", "sex"):
            assert (cell["low"], cell["high"]) == pytest.approx(
                release.interval()[cell["ward"], cell["sex"]], rel=0.01
            )


def test_an_answer_without_data_has_margins_that_promise_nothing():
    release = people(0.01).release(accord.crosstab("ward", "sex", keys=KEYS))
    assert release.mechanism == "midpoint" and not any(release.charges.values())
    (total,) = release.margin()
    assert (
        total["value"] == 6 * 8.5
        and (total["low"], total["high"]) == (0.0, 6 * 17.0)
        and total["rmse"] == 6 * release.rmse
    )


def test_what_has_no_margins_says_why():
    mean = accord.mean("x", (0, 20), by=["ward", "sex"], keys=KEYS)
    with pytest.raises(
        QueryError, match=r"a mean of all is no sum of those of groups. Ask for both: accord.workload"
    ):
        people().release(mean).margin("ward")
    with pytest.raises(
        QueryError,
        match=r"margins are of a table by columns, and this answer has none. Ask with by= and keys=",
    ):
        people().release(accord.mean("x", (0, 20))).margin()
    release = people().release(accord.crosstab("ward", "sex", keys=KEYS))
    with pytest.raises(QueryError, match="there are no groups by 'wart': did you mean 'ward'"):
        release.margin("wart")
    with pytest.raises(QueryError, match="confidence=2 is not between 0 and 1"):
        release.margin("ward", confidence=2)


def test_columns_in_no_order_are_refused():
    with pytest.raises(QueryError, match="by= is a set, which has no order"):
        accord.count(by={"ward", "sex"}, keys=KEYS)


def test_a_key_is_one_key():
    release = people().release(accord.crosstab("ward", "sex", keys=KEYS), "minimum")
    with pytest.raises(QueryError, match="a key is one group or cell, and this is ndarray of several"):
        release[np.array(["A", "f"])]


@pytest.mark.parametrize("width", [1e90, 1e-90])
def test_bounds_with_which_nothing_can_be_reckoned(width):
    with pytest.raises(QueryError, match="have widths whose product is"):
        accord.covariance("x", "y", bounds={"x": (0, width), "y": (0, width)})
