"""compare: simulations side by side, in order, as a table, as text and as a picture."""

import xml.etree.ElementTree as ElementTree
from math import inf

import numpy as np
import pandas as pd
import pytest

import accord
from accord.errors import AccordError, PlanError, QueryError
from accord.lab import Comparison, Simulation, compare, populations, simulate, specs
from accord.mechanisms import ALL

QUERY, SPEC, POPULATION = (
    accord.mean("x", (0, 1)),
    accord.Spec.from_groups({0.1: 70, 1.0: 30}),
    populations.uniform(),
)
NAMES = ["minimum", "affine", "mix", "threshold"]
ASKED = (QUERY, SPEC, POPULATION)
KEYS = {
    "mechanism", "statistic", "population", "levels", "people", "correlation", "runs", "rmse", "standard_error", "predicted",
    "rmse_here", "predicted_here", "bias", "bias_bound", "unit",
}  # fmt: skip


@pytest.fixture(scope="module")
def four():
    return compare(NAMES, *ASKED, runs=50, seed=3)


@pytest.fixture(scope="module")
def along():
    """For two mechanisms each: by correlation, and by the number of people, in no order."""
    by_correlation = [
        simulate(m, *ASKED, 20, correlation=c) for c in (0.8, -0.5, 0.0) for m in ("affine", "minimum")
    ]
    by_people = [
        simulate(m, QUERY, specs.two_groups(n, 0.5, 0.1, 1.0), POPULATION, 20)
        for n in (100, 40, 200)
        for m in ("affine", "minimum")
    ]
    return {"correlation": compare(by_correlation), "people": compare(by_people)}


# ---- what is compared ------------------------------------------------------------------------------------------------


def test_names_are_simulated_with_one_seed(four):
    assert isinstance(four, Comparison)
    assert all(isinstance(simulation, Simulation) for simulation in four.simulations)
    for simulation in four.simulations:
        alone = simulate(simulation.mechanism, *ASKED, runs=50, seed=3)
        assert (simulation.answers == alone.answers).all()
        assert simulation.row() == alone.row()


def test_the_best_comes_first(four):
    assert sorted(simulation.mechanism for simulation in four.simulations) == sorted(NAMES)
    errors = [row["rmse"] for row in four.rows]
    assert errors == sorted(errors)


def test_simulations_and_names_mix():
    simulation = simulate("affine", *ASKED, 10)
    both = compare([simulation, "minimum"], *ASKED, runs=10)
    assert {row["mechanism"] for row in both.rows} == {"affine", "minimum"}
    assert any(item is simulation for item in both.simulations)
    assert len(compare([simulation]).rows) == 1
    assert len(compare(item for item in (simulation, simulation)).rows) == 2


def test_options_reach_every_simulation():
    comparison = compare(
        ["threshold", "sample"],
        *ASKED,
        runs=7,
        seed=9,
        correlation=0.25,
        t=0.1,
        share=0.5,
        neighbors="add-remove",
    )
    for simulation in comparison.simulations:
        assert (simulation.runs, simulation.seed, simulation.correlation) == (7, 9, 0.25)
    drawn = compare(["affine"], QUERY, specs.jorgensen(30), POPULATION, runs=3)
    assert drawn.rows[0]["levels"] == "[J]'s three groups"
    assert drawn.rows[0]["people"] == 30


def test_where_more_differs_the_order_is_kept(along):
    assert four_of(along["correlation"], "correlation") == [0.8, 0.8, -0.5, -0.5, 0.0, 0.0]
    assert four_of(along["people"], "people") == [100, 100, 40, 40, 200, 200]


def four_of(comparison, key):
    return [row[key] for row in comparison.rows]


def test_what_it_goes_along(four, along):
    assert four.along is None
    assert along["correlation"].along == "correlation"
    assert along["people"].along == "people"


# ---- rows and text ---------------------------------------------------------------------------------------------------


def test_rows_are_tidy(four):
    frame = pd.DataFrame(four.rows)
    assert set(frame.columns) == KEYS
    assert frame.shape == (4, len(KEYS))
    assert (frame[["rmse", "predicted", "rmse_here", "predicted_here", "standard_error"]] > 0).all(axis=None)
    assert set(frame["statistic"]) == {"mean"}
    assert set(frame["people"]) == {100}
    assert set(frame["levels"]) == {"2 levels"}
    assert set(frame["unit"]) == {"value"}
    for simulation, row in zip(four.simulations, four.rows, strict=True):
        errors = simulation.errors
        assert row["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
        assert row["rmse_here"] == pytest.approx(np.sqrt(np.mean(simulation.errors_here**2)))
        assert row["bias"] == pytest.approx(errors.mean())
        assert row["standard_error"] == pytest.approx(
            np.std(errors**2, ddof=1) / np.sqrt(50) / 2 / row["rmse"]
        )
        assert row["predicted"] == accord.plan(SPEC, QUERY, simulation.mechanism).rmse


def test_text_is_a_table(four, along):
    head, *lines = str(four).splitlines()
    assert head.startswith("errors in: value; κ times")
    assert len(lines) == 5
    assert lines[0].split() == [
        "mechanism",
        "rmse",
        "standard_error",
        "predicted",
        "rmse_here",
        "predicted_here",
        "bias",
        "κ",
    ]
    assert [line.split()[0] for line in lines[1:]] == [row["mechanism"] for row in four.rows]
    assert len({len(line) for line in lines}) == 1
    assert float(lines[1].split()[1]) == pytest.approx(four.rows[0]["rmse"], rel=1e-3)
    assert "correlation" in str(along["correlation"]).splitlines()[1]
    assert "people" in str(along["people"]).splitlines()[1]
    assert repr(four) == "<Comparison of 4 simulations>"


def test_text_of_what_has_no_bound():
    """stretch has no κ; its cell is empty and the columns stay where they are."""
    text = str(compare(["stretch", "affine"], accord.sum("x", (0, 1)), SPEC, POPULATION, runs=5))
    assert len({len(line) for line in text.splitlines()[1:]}) == 1
    assert "None" not in text
    assert "nan" not in text


# ---- pictures --------------------------------------------------------------------------------------------------------


def is_picture(path):
    if path.suffix == ".svg":
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    else:
        assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return path.stat().st_size > 2_000


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("kind", ["bars", "correlation", "people"])
def test_pictures_are_written(four, along, tmp_path, kind, suffix):
    comparison = four if kind == "bars" else along[kind]
    path = tmp_path / f"errors{suffix}"
    assert comparison.plot().axes[0].get_title(loc="left")
    for place in (path, str(path)):
        assert comparison.plot(place) == path
        assert is_picture(path)
        path.unlink()


def test_pictures_of_everything_else(tmp_path):
    """Without κ, without error, of one run, with many lines, of ranks and of cells."""
    many = compare(
        [
            simulate(m.name, accord.count(where="x <> 0"), SPEC, POPULATION, 1, correlation=c)
            for m in ALL
            if m.name != "rank" and not m.needs_gap
            for c in (0.0, 0.5)
        ]
    )
    public = compare(
        ["affine", "minimum"],
        accord.count(),
        accord.Spec.from_groups({inf: 5}),
        populations.bernoulli(0.5),
        runs=2,
    )
    quantiles = accord.quantile("x", [0.2, 0.7], (0, 1), step=0.25, missing="none")
    ranks = compare(["rank", "pe"], quantiles, SPEC, POPULATION, runs=3)
    cells = compare(["affine", "sample"], accord.histogram("x", edges=[0, 0.5, 1]), SPEC, POPULATION, runs=3)
    biased = compare(["stretch"], accord.sum("x", (0, 1), missing="none"), SPEC, POPULATION, runs=3)
    for k, comparison in enumerate((many, public, ranks, cells, biased)):
        assert is_picture(comparison.plot(tmp_path / f"{k}.png"))
        assert str(comparison)


def test_a_picture_that_cannot_be_written_is_refused(four, along, tmp_path):
    for comparison, path in (
        (four, tmp_path / "errors.nothing"),
        (along["people"], tmp_path / "no folder" / "errors.png"),
    ):
        with pytest.raises(AccordError, match="cannot write the figure"):
            comparison.plot(path)
        assert not path.exists()


def test_no_figure_stays_open(four, tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    four.plot(tmp_path / "errors.png")
    assert plt.get_fignums() == before


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "asked", "words"),
    [
        ([], ASKED, "nothing to compare"),
        (iter([]), ASKED, "nothing to compare"),
        ([3], ASKED, "not int"),
        ([None], ASKED, "not NoneType"),
        (["affine"], (), "needs a query, a spec and a population"),
        (["affine"], (QUERY, SPEC), "needs a query, a spec and a population"),
        (["affine"], (QUERY,), "needs a query, a spec and a population"),
        ("affine", ASKED, "list"),
        (None, ASKED, "NoneType"),
        (3, ASKED, "int"),
    ],
    ids=[
        "nothing",
        "no more",
        "a number",
        "None",
        "no query",
        "no population",
        "no spec",
        "a name",
        "nobody",
        "three",
    ],
)
def test_what_cannot_be_compared_is_refused(of, asked, words):
    with pytest.raises(QueryError) as refused:
        compare(of, *asked)
    assert words in str(refused.value)
    assert str(refused.value).endswith(".")


def test_one_simulation_is_no_list():
    with pytest.raises(QueryError, match="list"):
        compare(simulate("affine", *ASKED, 2))


def test_refusals_of_simulate_come_through():
    with pytest.raises(PlanError, match="did you mean 'affine'"):
        compare(["minimum", "afine"], *ASKED, runs=2)
    with pytest.raises(PlanError, match="rank cannot answer"):
        compare(["rank"], *ASKED, runs=2)
    with pytest.raises(QueryError, match="runs=0"):
        compare(["affine"], *ASKED, runs=0)
    with pytest.raises(QueryError, match=r"accord\.mean"):
        compare(["affine"], "mean", SPEC, POPULATION)


def test_units_are_not_mixed():
    rank = simulate("rank", accord.median("x", (0, 1)), SPEC, POPULATION, 2)
    cells = simulate("affine", accord.histogram("x", edges=[0, 0.5, 1]), SPEC, POPULATION, 2)
    for other in (rank, cells):
        with pytest.raises(QueryError, match="different units"):
            compare([simulate("affine", *ASKED, 2), other])
