"""Regressions on synthetic people: least squares where nobody needs noise, errors as predicted where they do, and predictions from rows of any form."""

from dataclasses import replace
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import accord
from accord.errors import QueryError
from accord.noise import SECURE
from accord.release.answer import answer
from accord.statistics.encoding import Q

BOUNDS = {"age": (18, 100), "hours": (0, 80), "income": (0, 200_000)}
REGIONS, OWNS = ["north", "south", "west"], [False, True]
QUERY = accord.regression(
    "income", ["age", "hours", "region", "owns"], BOUNDS, {"region": REGIONS, "owns": OWNS}
)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.uniform(18, 100, n).round(1),
        "hours": rng.uniform(0, 80, n).round(),
        "region": rng.choice(REGIONS, n, p=[0.5, 0.3, 0.2]).astype(object),
        "owns": rng.random(n) < 0.6,
    }
    means = 10_000 + 400 * columns["age"] + 900 * columns["hours"] + 20_000 * columns["owns"]
    means += np.select([columns["region"] == "south", columns["region"] == "west"], [15_000, -8_000])
    columns["income"] = np.clip(means + rng.normal(0, 15_000, n), 0, 200_000).round(2)
    return columns


def coded(columns, query=QUERY, steps=True):
    """Codes of the features and of the target on the scale [−1, 1], as the engine rounds them; one column each."""
    made = []
    for part in (*query.features, query.target):
        values = columns[part.column]
        if hasattr(part, "values"):
            made += [np.where(values == value, 1.0, -1.0) for value in part.values[1:]]
        else:
            low, high = float(part.low), float(part.high)
            scaled = (np.clip(values, low, high) - low) / (high - low) * 2 * Q
            made.append((np.floor(scaled + 0.5) if steps else scaled) / Q - 1)
    return np.column_stack(made)


def least_squares(design):
    return np.linalg.lstsq(
        np.column_stack([np.ones(len(design)), design[:, :-1]]), design[:, -1], rcond=None
    )[0]


def noiseless(columns, query):
    return accord.table(columns, epsilon=inf).release(query).value


# --- without noise --------------------------------------------------------------------------------------------------------------


def test_without_noise_it_is_least_squares():
    columns = people(3_000)
    found = noiseless(columns, QUERY)
    assert found.scaled == pytest.approx(least_squares(coded(columns)), abs=1e-10)
    # in the user's own units, to the rounding of values
    raw = [
        columns["age"],
        columns["hours"],
        columns["region"] == "south",
        columns["region"] == "west",
        columns["owns"],
    ]
    intercept, *slopes = np.linalg.lstsq(
        np.column_stack([np.ones(3_000), *raw]), columns["income"], rcond=None
    )[0]
    assert list(found.coefficients) == ["age", "hours", "region=south", "region=west", "owns=True"]
    widths = [82, 80, 1, 1, 1]
    for slope, expected, width in zip(found.coefficients.values(), slopes, widths, strict=True):
        assert abs(slope - expected) * width < 2 * 200_000 / Q
    assert abs(found.intercept - intercept) < 2 * 200_000 / Q
    assert found.note == ""


def test_public_people_among_others_are_answered_alone_if_that_is_best():
    columns = people(3_000)
    levels = np.where(np.arange(3_000) < 2_000, inf, 0.01)
    made = accord.table({**columns, "e": levels}, epsilon="e").release(QUERY, "threshold", t=inf)
    assert made.value.scaled == pytest.approx(least_squares(coded(columns)[:2_000]), abs=1e-10)
    assert dict(made.charges) == {0.01: 0.0, inf: inf}


@pytest.mark.parametrize("seed", range(5))
def test_without_noise_columns_that_hardly_vary_are_no_different(seed):
    """A rare category, and numbers close together: what noise would drown is not bent where there is none."""
    rng = np.random.default_rng(seed)
    n = 4_000
    columns = {"x": rng.normal(0.2, 0.04, n), "rare": rng.random(n) < 0.008, "z": rng.random(n)}
    columns["y"] = 0.8 * columns["x"] + 0.3 * columns["rare"] - 0.2 * columns["z"] + rng.normal(0, 0.05, n)
    query = accord.regression(
        "y", ["x", "rare", "z"], {"x": (-1, 1), "z": (0, 1), "y": (-2, 2)}, {"rare": OWNS}
    )
    assert noiseless(columns, query).scaled == pytest.approx(least_squares(coded(columns, query)), abs=1e-9)


def test_without_noise_many_designs_are_least_squares():
    rng = np.random.default_rng(5)
    for m in (1, 2, 4, 7):
        columns = {f"x{j}": rng.uniform(-1, 1, 500) for j in range(m)}
        columns["y"] = np.clip(sum((-1) ** j * x / m for j, x in enumerate(columns.values())), -1, 1)
        query = accord.regression("y", [f"x{j}" for j in range(m)], dict.fromkeys([*columns], (-1, 1)))
        found = noiseless(columns, query)
        assert found.scaled == pytest.approx(least_squares(coded(columns, query)), abs=1e-9)
        assert list(found.coefficients.values()) == pytest.approx(found.scaled[1:], abs=1e-12)


def test_without_noise_collinear_columns_share_their_slope():
    columns = people(2_000)
    columns |= {
        "again": columns["hours"],
        "constant": np.full(2_000, 3.0),
        "only": np.full(2_000, "a", dtype=object),
    }
    query = accord.regression(
        "income",
        ["age", "hours", "again", "constant", "only"],
        {**BOUNDS, "again": BOUNDS["hours"], "constant": (0, 10)},
        {"only": ["a", "b"]},
    )
    one = noiseless(columns, accord.regression("income", ["age", "hours"], BOUNDS))
    both = noiseless(columns, query)
    assert both.coefficients["hours"] == pytest.approx(both.coefficients["again"])
    assert both.coefficients["hours"] == pytest.approx(one.coefficients["hours"] / 2)
    assert both.coefficients["constant"] == pytest.approx(0, abs=1e-6) == both.coefficients["only=b"]
    assert both.predict(columns) == pytest.approx(one.predict(columns))


# --- with noise -----------------------------------------------------------------------------------------------------------------


def predictions(value, design):
    """As `predict` makes them, from codes that are made once."""
    scaled = np.array(value.scaled)
    return value.query.half * (1 + np.clip(scaled[0] + design @ scaled[1:], -1, 1))


def predictions_off(columns, query, mechanism, neighbors="replace", deals=4, draws=30, t=None, seed=0):
    """RMSE of predictions about those of the regression without noise, over releases to people who are dealt other levels now and then; and the last plan."""
    rng = np.random.default_rng(seed)
    n = len(columns["income"])
    levels = np.repeat([0.05, 0.2, 1.0], [n // 2, n // 3, n - n // 2 - n // 3])
    roster = accord.Spec.of(levels) if neighbors == "add-remove" else None
    design = coded(columns, query, steps=False)[:, :-1]
    truth = predictions(noiseless(columns, query), design)
    squares = []
    for _ in range(deals):
        dealt = {**columns, "e": rng.permutation(levels)}
        table = accord.table(dealt, epsilon="e", neighbors=neighbors, roster=roster)
        plan = table.plan(query, mechanism, t=t)
        summary = None if mechanism == "sample" else table.reader.summary(query)
        for _ in range(draws):
            value = table.release(plan).value if summary is None else answer(plan, [summary], SECURE)[0]
            squares.append(np.mean((predictions(value, design) - truth) ** 2))
    assert predictions(value, design) == pytest.approx(value.predict(columns))
    return sqrt(np.mean(squares)), plan


@pytest.mark.parametrize(("n", "neighbors"), [(4_000, "replace"), (15_000, "replace"), (4_000, "add-remove")])
def test_errors_are_about_as_predicted_and_mechanisms_rank_as_predicted(n, neighbors):
    columns = people(n)
    found = {}
    for mechanism in ("affine", "threshold", "minimum"):
        off, plan = predictions_off(columns, QUERY, mechanism, neighbors)
        assert plan.rmse_here / 4 < off < 1.5 * plan.rmse_here
        found[mechanism] = (plan.rmse, off)
    predicted, measured = zip(*found.values(), strict=True)
    assert list(predicted) == sorted(predicted) and list(measured) == sorted(measured)
    assert predicted[2] > 1.3 * predicted[0] and measured[2] > 1.3 * measured[0]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_sample_is_about_as_good_as_predicted(neighbors):
    columns = people(6_000)
    off, plan = predictions_off(columns, QUERY, "sample", neighbors, deals=3, draws=12, t="max")
    assert plan.rmse_here / 4 < off < 2 * plan.rmse_here
    affine = predictions_off(columns, QUERY, "affine", neighbors, deals=3, draws=12)
    assert affine[1].rmse < plan.rmse and affine[0] < off * 1.3


def test_more_people_and_higher_levels_help():
    few, many = (predictions_off(people(n), QUERY, "affine", deals=3, draws=20)[0] for n in (2_000, 16_000))
    assert many < few / 2  # about 0.3


def test_the_interval_holds_most_predictions():
    columns = people(8_000)
    table = accord.table({**columns, "e": np.tile([0.1, 0.2, 0.5, 1.0], 2_000)}, epsilon="e")
    design = coded(columns, steps=False)[:, :-1]
    truth, plan = predictions(noiseless(columns, QUERY), design), table.plan(QUERY, "affine")
    summary, held = table.reader.summary(QUERY), []
    for _ in range(60):
        value, released = answer(plan, [summary], SECURE)
        made = accord.Release(plan, value, None, released)
        low, high = made.interval(0.95)
        assert low == -high < 0
        held.append(np.mean(np.abs(predictions(made.value, design) - truth) <= high))
    assert np.mean(held) > 0.8


# --- few people -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "affine", "sample"])
def test_of_few_people_only_the_mean_is_released(mechanism, neighbors):
    columns = {**people(60), "e": np.tile([0.5, 1.0, 2.0], 20)}
    roster = accord.Spec.of(columns["e"]) if neighbors == "add-remove" else None
    table = accord.table(columns, epsilon="e", neighbors=neighbors, roster=roster)
    values = []
    for _ in range(12):
        made = table.release(QUERY, mechanism)
        assert made.plan.calibration.mean_only
        assert (
            "the slopes would be noise: only the mean of the target is released" in made.plan.calibration.note
        )
        assert made.value.note == "only the mean of the target: the slopes would be noise"
        assert set(made.value.coefficients.values()) == {0.0}
        values.append(made.value.intercept)
    assert made.value.predict(columns) == pytest.approx(np.clip(made.value.intercept, 0, 200_000))
    assert made.value.note in str(made) and made.value.note == made.receipt()["value"]["note"]
    assert len(set(values)) > 6 and abs(np.median(values) - columns["income"].mean()) < 60_000


def test_of_more_people_slopes_are_released_with_a_warning_where_they_are_weak():
    for n, mean_only, weak in ((60, True, False), (400, False, True), (60_000, False, False)):
        plan = accord.plan(accord.Spec.from_groups({0.1: n // 2, 1.0: n // 2}), QUERY, "affine")
        assert plan.calibration.mean_only == mean_only
        assert ("weak: less than half" in plan.calibration.note) == weak


def test_the_mean_only_is_better_than_slopes_where_it_is_chosen():
    """So the choice is right, not only made."""
    columns = people(100)
    table = accord.table({**columns, "e": np.full(100, 0.5)}, epsilon="e")
    plan, truth, design = table.plan(QUERY, "minimum"), columns["income"], coded(columns, steps=False)[:, :-1]
    assert plan.calibration.mean_only
    slopes = plan.with_choice(calibration=replace(plan.calibration, mean_only=False))
    summary = table.reader.summary(QUERY)
    errors = [
        np.mean(
            [np.mean((predictions(answer(p, [summary], SECURE)[0], design) - truth) ** 2) for _ in range(300)]
        )
        for p in (plan, slopes)
    ]
    assert errors[0] < errors[1]


@pytest.mark.parametrize("n", [1_500, 30_000])
def test_collinear_columns_do_not_blow_up(n):
    """The same column under four names: predictions stay about as good as with one of them."""
    columns = people(n)
    again = {f"hours{k}": columns["hours"] for k in range(3)}
    query = accord.regression(
        "income", ["age", "hours", *again], BOUNDS | dict.fromkeys(again, BOUNDS["hours"])
    )
    table = accord.table({**columns, **again, "e": np.resize([0.1, 0.5, 1.0], n)}, epsilon="e")
    plan = table.plan(query, "affine")
    assert not plan.calibration.mean_only
    summary, truth = table.reader.summary(query), columns["income"]
    design = coded({**columns, **again}, query, steps=False)[:, :-1]
    errors, largest = [], 0.0
    for _ in range(60):
        value = answer(plan, [summary], SECURE)[0]
        errors.append(sqrt(np.mean((predictions(value, design) - truth) ** 2)))
        largest = max(largest, *(abs(s) for s in value.scaled[1:]))
    assert largest < 1.5  # together they are worth 0.36
    assert max(errors) < truth.std() * (1.05 if n > 10_000 else 1.6)
    assert np.median(errors) < truth.std() * (0.75 if n > 10_000 else 1.0)


# --- predict --------------------------------------------------------------------------------------------------------------------

FOUND = noiseless(people(800), QUERY)
ROWS = {
    "age": [18.0, 59.0, 100.0, 30.0],
    "hours": [0.0, 40.0, 80.0, 12.0],
    "region": ["north", "south", "west", "south"],
    "owns": [False, True, False, True],
}


def by_hand(age, hours, region, owns):
    c = FOUND.coefficients
    value = (
        FOUND.intercept
        + c["age"] * age
        + c["hours"] * hours
        + c["owns=True"] * owns
        + c.get(f"region={region}", 0)
    )
    return min(200_000, max(0, value))


EXPECTED = [by_hand(*row) for row in zip(*ROWS.values(), strict=True)]
FORMS = {
    "dict": ROWS,
    "dict of arrays": {name: np.array(values) for name, values in ROWS.items()},
    "pandas": pd.DataFrame(ROWS),
    "pandas with an index": pd.DataFrame(ROWS, index=[7, 7, 1, 0]),
    "pandas with categories": pd.DataFrame(ROWS).astype({"region": "category", "owns": "boolean"}),
    "polars": pl.DataFrame(ROWS),
    "arrow": pa.table(ROWS),
    "arrow in chunks": pa.concat_tables([pa.table(ROWS).slice(0, 1), pa.table(ROWS).slice(1)]),
    "array": np.array(list(zip(*ROWS.values(), strict=True)), dtype=object),
    "more columns than needed": pd.DataFrame(ROWS).assign(other="x")[
        ["other", "owns", "hours", "region", "age"]
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_form_are_predicted(form):
    found = FOUND.predict(FORMS[form])
    assert found.shape == (4,) and found.dtype == np.float64
    assert found == pytest.approx(EXPECTED, rel=1e-9)


def test_a_plain_array_of_numbers_is_predicted():
    columns = people(500)
    query = accord.regression("income", ["age", "hours"], BOUNDS)
    found = noiseless(columns, query)
    array = np.column_stack([columns["age"], columns["hours"]])
    assert found.predict(array) == pytest.approx(found.predict(columns))
    assert found.predict(array[:0]).shape == (0,)


@pytest.mark.parametrize(
    "values", [[1, 2, 3], [1.0, 2.0, 3.0], [1, 2, None], np.array([1, 2, 3], dtype=np.int8)], ids=str
)
def test_categories_that_are_numbers_are_recognised_however_they_are_stored(values):
    columns = {"k": np.repeat([1, 2, 3], 100), "y": np.repeat([0.1, 0.9, 0.4], 100)}
    query = accord.regression("y", ["k"], {"y": (0, 1)}, {"k": [1, 2, 3]})
    found = noiseless(columns, query)
    expected = [0.1, 0.9, 0.1 if values[2] is None else 0.4]
    rows = [{"k": values}, pd.DataFrame({"k": values}), pl.DataFrame({"k": values}), pa.table({"k": values})]
    if values[2] is not None:
        rows.append(np.array(values, dtype=float).reshape(-1, 1))
    for form in rows:
        assert found.predict(form) == pytest.approx(expected, abs=2e-3), type(form)


@pytest.mark.parametrize("values", [[True, False], [1, 0], np.array([True, False])], ids=str)
def test_true_and_false_are_recognised(values):
    columns = {"k": np.repeat([True, False], 100), "y": np.repeat([0.9, 0.1], 100)}
    found = noiseless(columns, accord.regression("y", ["k"], {"y": (0, 1)}, {"k": [False, True]}))
    if isinstance(values[0], int) and not isinstance(values[0], bool):
        values = np.array(values, dtype=bool)
    assert found.predict({"k": values}) == pytest.approx([0.9, 0.1], abs=2e-3)
    assert found.predict(np.array([[True], [False]])) == pytest.approx([0.9, 0.1], abs=2e-3)


def test_features_are_clipped_and_what_is_missing_is_the_middle_as_in_the_regression():
    rows = {
        "age": [-5.0, 18.0, 500.0, 100.0, nan, 59.0, inf, -inf],
        "hours": [40.0] * 8,
        "region": ["north", "north", "elsewhere", "north", None, "north", "north", "north"],
        "owns": [True] * 8,
    }
    found = FOUND.predict(rows)
    assert found[0] == found[1] and found[2] == found[3]
    assert found[4] == pytest.approx(found[5]) and found[6] == pytest.approx(found[5]) == found[7]
    for missing in (pd.DataFrame(rows), pl.DataFrame(rows, strict=False), pa.table(rows)):
        assert FOUND.predict(missing) == pytest.approx(found)


@pytest.mark.parametrize("kind", ["Int64", "boolean", "string", "Float64", "arrow"])
def test_what_pandas_has_as_missing_is_missing(kind):
    columns = {
        "k": np.repeat([1, 2, 3], 20),
        "b": np.tile([True, False], 30),
        "t": np.repeat(["a", "b", "c"], 20).astype(object),
        "x": np.tile([0.0, 1.0, 2.0, 2.0], 15),
        "y": np.repeat([0.1, 0.9, 0.4], 20),
    }
    declared = {"k": [1, 2, 3], "b": [False, True], "t": ["a", "b", "c"]}
    found = noiseless(columns, accord.regression("y", list("kbtx"), {"y": (0, 1), "x": (0, 2)}, declared))
    rows = {"k": [1, 2, None], "b": [True, False, None], "t": ["a", "b", None], "x": [0.0, 1.0, None]}
    column = {"Int64": "k", "boolean": "b", "string": "t", "Float64": "x"}.get(kind)
    frame = pd.DataFrame(rows) if column else pa.table(rows).to_pandas(types_mapper=pd.ArrowDtype)
    frame = frame.astype({column: kind}) if column else frame
    assert found.predict(rows) == pytest.approx([0.1, 0.9, 0.1], abs=2e-3)
    assert found.predict(frame) == pytest.approx(found.predict(rows))


def test_predictions_are_clipped_to_the_bounds_of_the_target():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 1_000)
    found = noiseless({"x": x, "y": 10 * x}, accord.regression("y", ["x"], {"x": (-1, 1), "y": (-3, 2)}))
    assert found.coefficients["x"] > 2.5
    assert found.predict({"x": [-1.0, -9.0, 1.0, 9.0]}).tolist() == [-3, -3, 2, 2]


@pytest.mark.parametrize("form", ["dict", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("missing", list(ROWS))
def test_a_missing_column_is_refused(form, missing):
    rest = {name: values for name, values in ROWS.items() if name != missing}
    rows = {"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[form](rest)
    with pytest.raises(QueryError, match=f"the rows have no column '{missing}', which the regression uses"):
        FOUND.predict(rows)


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 5), (2, 2, 4)])
def test_an_array_of_another_shape_is_refused(shape):
    with pytest.raises(QueryError, match="predict needs a 2-D array with 4 columns"):
        FOUND.predict(np.zeros(shape))
