"""Answers as data frames and as pictures, whatever kind they are of."""

import sys
from datetime import date

import numpy as np
import pandas as pd
import pytest

import accord
from accord.errors import AccordError, QueryError

N = 240
ROWS = {
    "age": np.arange(N) % 80 + 10.0,
    "income": np.arange(N) * 100.0,
    "born": np.array(["2001-01-01", "2002-02-02", "2003-03-03"] * (N // 3), dtype="datetime64[D]"),
    "sex": ["f", "m"] * (N // 2),
    "unit": ["$a$", "<b>"] * (N // 2),
    "level": np.array([1.0, 2.0, 4.0] * (N // 3)),
}
AGE, BORN = (
    {"column": "age", "bounds": (0, 100)},
    {"column": "born", "bounds": (date(2000, 1, 1), date(2010, 1, 1))},
)
GROUPS = {"by": "sex", "keys": ["f", "m", "x"]}
CELLS = {"column": "age", "edges": [0, 30, 60, 100]}
LINE = {
    "target": "income",
    "features": ["age", "sex"],
    "bounds": {"income": (0, 24_000), "age": (0, 100)},
    "categories": {"sex": ["f", "m"]},
}
END = ["value", "rmse", "low", "high", "unit"]
PERCENTILES = ["value", "rmse", "low", "high", "low_percentile", "high_percentile", "unit"]
KINDS = {
    "number": (accord.mean(**AGE), 1, ["question", *END]),
    "condition": (accord.count(where="age >= 50"), 1, ["question", *END]),
    "public condition": (accord.mean(**AGE, where="sex = 'f'", membership="public"), 1, ["question", *END]),
    "nobody there": (accord.mean(**AGE, by="sex", keys=["f", "x"], membership="public"), 2, ["question", "sex", *END, "few"]),
    "groups": (accord.mean(**AGE, **GROUPS), 3, ["question", "sex", *END, "few"]),
    "histogram": (accord.histogram(**CELLS), 3, ["question", "cell", *END]),
    "histograms": (accord.histogram(**CELLS, **GROUPS), 9, ["question", "sex", "cell", *END, "few"]),
    "median": (accord.median(**AGE), 1, ["question", "p", *PERCENTILES]),
    "quantiles": (accord.quantile("age", [0.25, 0.5, 0.75], (0, 100)), 3, ["question", "p", *PERCENTILES]),
    "quantiles of groups": (accord.quantile("age", [0.25, 0.75], (0, 100), **GROUPS, membership="private"), 6, ["question", "sex", "p", *PERCENTILES, "few"]),
    "dates": (accord.quantile("born", [0.25, 0.75], BORN["bounds"]), 2, ["question", "p", *PERCENTILES]),
    "last date": (accord.max(**BORN), 1, ["question", *PERCENTILES]),
    "regression": (accord.regression(**LINE), 3, ["question", "term", *END]),
    "regressions": (accord.regression(**LINE, by="unit", keys=["$a$", "<b>"]), 6, ["question", "unit (group)", "term", *END, "few"]),
    "workload": (
        accord.workload([accord.mean(**AGE), accord.median(**AGE), accord.histogram(**CELLS), accord.count(**GROUPS)]),
        8,
        ["question", "sex", "cell", "p", *PERCENTILES, "few"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def releases():
    return {name: accord.table(ROWS, epsilon="level").release(asked) for name, (asked, _, _) in KINDS.items()}


@pytest.mark.parametrize("name", KINDS)
def test_a_row_for_each_number(name, releases):
    frame = releases[name].to_pandas()
    assert len(frame) == KINDS[name][1]
    assert list(frame.columns) == KINDS[name][2]
    assert frame["question"].notna().all()


def test_frames_say_what_releases_say(releases):
    one = releases["number"].to_pandas().iloc[0]
    assert (one["value"], one["rmse"]) == (releases["number"].value, releases["number"].rmse)
    assert (one["low"], one["high"]) == releases["number"].interval(0.95)
    assert tuple(releases["number"].to_pandas(0.5)[["low", "high"]].iloc[0]) == releases["number"].interval(
        0.5
    )
    cells = releases["histogram"].to_pandas()
    assert dict(zip(cells["cell"], cells["value"], strict=True)) == releases["histogram"].value
    median = releases["median"].to_pandas().iloc[0]
    assert (median["low_percentile"], median["high_percentile"]) == releases["median"].interval()
    assert np.isnan(median["low"])
    in_values = accord.table(ROWS, epsilon="level").release(
        accord.median("age", bounds=(0, 100), step=1, interval="values")
    )
    bracketed = in_values.to_pandas().iloc[0]
    assert (bracketed["low"], bracketed["high"]) == in_values.interval_in_values()
    assert (bracketed["low_percentile"], bracketed["high_percentile"]) == in_values.interval()
    groups = releases["groups"].to_pandas()
    assert groups[["sex", "value", "rmse", "few"]].to_dict("records") == releases["groups"].value
    fitted = releases["regression"].to_pandas().set_index("term")["value"]
    assert fitted["age"] == releases["regression"].value.coefficients["age"]
    assert fitted["intercept"] == releases["regression"].value.intercept
    nobody = releases["nobody there"].to_pandas().iloc[1]
    assert nobody["few"]
    assert pd.isna(nobody["value"])


def test_an_algorithm_of_ones_own():
    people = accord.table(ROWS, epsilon="level")
    release = accord.sample(lambda rows, epsilon: 3.5, people, columns=["age"])
    assert release.to_pandas()["value"].tolist() == [3.5]
    assert release.plot().axes
    words = accord.sample(lambda rows, epsilon: "words", people, columns=["age"])
    assert words.to_pandas()["value"].tolist() == ["words"]
    with pytest.raises(
        AccordError, match=r"drawn if it is a number, and this is a str. Draw it yourself: release.value."
    ):
        words.plot()


def test_refusals(releases, monkeypatch, tmp_path):
    with pytest.raises(QueryError, match="confidence=2 is not between 0 and 1"):
        releases["number"].to_pandas(2)
    with pytest.raises(AccordError, match="cannot write the figure"):
        releases["number"].plot(tmp_path / "there is no folder" / "figure.png")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        AccordError, match=r"to_pandas needs pandas, which is not installed. Install pandas, or take receipt"
    ):
        releases["number"].to_pandas()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        AccordError, match=r"a figure needs matplotlib, which is not installed. Install accord\[plot\]."
    ):
        releases["number"].plot()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_drawn(name, releases, tmp_path):
    """Of hostile names, too: $a$ is no formula, <b> no tag."""
    figure = releases[name].plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    questions = (
        {part.query.label for part in releases[name].plan.parts}
        if name == "workload"
        else {KINDS[name][0].label}
    )
    assert {axes.get_title(loc="left") for axes in figure.axes} == questions
    assert releases[name].plan.plot(tmp_path / "plan.svg") == tmp_path / "plan.svg"
    assert "<svg" in (tmp_path / "plan.svg").read_text()


def test_pictures_show_intervals(releases):
    strokes = [
        tuple(np.ravel(line.get_segments()[0])[[0, 2]])
        for line in releases["number"].plot().axes[0].collections
    ]
    assert [pytest.approx(ends) for ends in strokes] == [releases["number"].interval()]


def test_a_figure_leaves_the_backend_of_others_alone(releases):
    import matplotlib

    before = matplotlib.get_backend()
    matplotlib.use("svg")
    try:
        releases["number"].plot()
        releases["number"].plan.plot()
        assert matplotlib.get_backend() == "svg"
    finally:
        matplotlib.use(before)
