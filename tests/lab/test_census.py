"""Census-like people and the regressions on them: the generator, the fast sums, the functional mechanism, and accord's own path rebuilt from sums."""

import itertools
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from noises import Fixed

import accord
from accord.budget import MICRO
from accord.errors import SourceError
from accord.lab.papers import census, cross_validation, functional, regression_twin
from accord.lab.papers import jorgensen_regression as figure
from accord.lab.papers.experiment import Context
from accord.mechanisms import regression
from accord.relation import REPLACE
from accord.release.answer import answer
from accord.statistics.encoding import Q
from accord.statistics.moment_boxes import KINDS, PARTS, moments_of
from accord.statistics.moments import sensitivity

N = 20_000


class NoNoise:
    """A generator whose Laplace draws are 0, and whose boxes have no size."""

    def laplace(self, loc=0.0, scale=1.0, size=None):
        return np.zeros(size if size is not None else ())

    def gamma(self, shape, size):
        return np.zeros(size)

    def uniform(self, low, high, size):
        return np.ones(size)


@pytest.fixture
def apart(monkeypatch):
    """Every moment has a noise of its own."""
    monkeypatch.setattr(regression, "offered", lambda target: [])


@pytest.fixture(scope="module")
def people():
    return census.people(np.random.default_rng(0), N)


@pytest.fixture(scope="module")
def coded(people):
    return census.coded(people)


# --- the generator --------------------------------------------------------------------------------------------------------------


def test_people_have_the_twelve_attributes_within_their_bounds(people):
    assert set(people) == {*census.FEATURES, "income"} and len(people) == 12
    assert all(values.shape == (N,) for values in people.values())
    for name, (low, high) in census.BOUNDS.items():
        assert people[name].min() >= low and (people[name] == np.floor(people[name])).all()
        assert name == "income" or people[name].max() <= high
    for name, values in census.CATEGORIES.items():
        assert set(np.unique(people[name]).tolist()) == set(values)
    assert people["income"].min() >= 1
    single = people["marital_status"] == census.SINGLE
    assert ((people["times_married"] == 0) == single).all()


def test_people_depend_on_the_seed_alone(people):
    again, other = (census.people(np.random.default_rng(seed), N) for seed in (0, 1))
    assert all((again[name] == people[name]).all() for name in people)
    assert (other["income"] != people["income"]).mean() > 0.9


def test_codes_lie_on_the_steps_of_a_regression(coded):
    assert coded.x.shape == (N, 13) and coded.d == coded.query.codes + 1
    assert np.abs(coded.x).max() == 1 and np.abs(coded.y).max() <= 1
    assert (coded.x * Q == np.rint(coded.x * Q)).all() and (coded.y * Q == np.rint(coded.y * Q)).all()
    assert (coded.x[:, -1] == 1).all()
    married, single = coded.x[:, 2], coded.x[:, 3]
    assert set(zip(married.tolist(), single.tolist(), strict=True)) == {
        (-1.0, -1.0),
        (1.0, -1.0),
        (-1.0, 1.0),
    }


@pytest.mark.parametrize(
    ("column", "other", "about"),
    [
        ("employed", "hours_worked", 0.8),
        ("employed", "age", -0.55),
        ("marital_status=single", "age", -0.5),
        ("marital_status=married", "marital_status=single", -0.6),
        ("marital_status=single", "times_married", -0.75),
        ("owns_house", "n_bedrooms", 0.35),
        ("n_bedrooms", "n_vehicles", 0.4),
        ("receives_foodstamps", "owns_house", -0.27),
        ("n_children", "age", -0.33),
        ("income", "hours_worked", 0.4),
        ("income", "sex", 0.2),
        ("income", "receives_foodstamps", -0.2),
        ("income", "age", 0.0),
    ],
)
def test_columns_go_together_as_in_a_census(coded, column, other, about):
    names = [
        name.removesuffix("=True").removesuffix("=male") for f in coded.query.features for name in f.names
    ]
    columns = dict(zip(names, coded.x.T, strict=False)) | {"income": coded.y}
    assert np.corrcoef(columns[column], columns[other])[0, 1] == pytest.approx(about, abs=0.1)


def test_about_three_tenths_of_incomes_variance_are_explained(coded):
    omega = np.linalg.lstsq(coded.x, coded.y, rcond=None)[0]
    residuals = coded.y - coded.x @ omega
    assert 1 - residuals.var() / coded.y.var() == pytest.approx(0.3, abs=0.04)
    assert sqrt((residuals**2).mean()) == pytest.approx(0.34, abs=0.03)


# --- files ----------------------------------------------------------------------------------------------------------------------


def write(path, columns):
    import pandas as pd

    pd.DataFrame(columns).to_parquet(path)
    return path


def test_a_file_of_the_same_people_is_the_same_data(people, coded, tmp_path):
    some = {name: values[:500] for name, values in people.items()}
    again = census.coded(census.read(write(tmp_path / "p.parquet", some)))
    assert (
        (again.x == coded.x[:500]).all() and (again.y == coded.y[:500]).all() and again.query == coded.query
    )


def test_a_census_files_own_words_are_understood(tmp_path):
    columns = {
        "sex": ["male", "female", "female", "male", "male"],
        "marital_status": ["married", "never_married", "widowed", "separated", None],
        "employment_status": ["employed", "unemployed", "not_in_labor_force", "employed", "employed"],
        "n_children_in_household": [0, 1, 2, 3, 4],
        "income": [10, 20, 30, 0, 50],
    }
    people = census.read(write(tmp_path / "p.parquet", columns))
    assert list(people) == ["sex", "marital_status", "employed", "n_children", "income"]
    assert people["income"].tolist() == [10, 20, 30]  # nobody without an income or a marital status
    assert people["employed"].tolist() == [True, False, False]
    assert people["marital_status"].tolist() == ["married", "single", "divorced or widowed"]
    assert census.coded(people).d == 6


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": [1.0]}, "has no column 'income'"),
        ({"income": [1.0], "x": [1.0]}, "has none of the columns receives_foodstamps"),
        ({"income": [0.0, -5.0], "age": [20.0, 30.0]}, "has nobody with a positive income"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, columns, message):
    with pytest.raises(SourceError, match=message):
        census.read(write(tmp_path / "p.parquet", columns))


# --- sums and the functional mechanism ------------------------------------------------------------------------------------------


def some_moments(x, y):
    return functional.Moments(x.T @ x, y @ x, np.asarray(y @ y))


def test_sums_of_products_are_the_moments(coded):
    x, y = coded.x[:300], coded.y[:300]
    rows = functional.products(x, y)
    assert rows.dtype == np.float32
    summed, direct = functional.moments(rows.sum(axis=0, dtype=np.float64), coded.d), some_moments(x, y)
    for name in ("xx", "yx", "yy"):
        assert np.allclose(
            getattr(summed, name), getattr(direct, name), rtol=0, atol=1e-12
        )  # products are exact


def test_held_out_errors_follow_from_moments(coded):
    x, y = coded.x[:300], coded.y[:300]
    omega = np.random.default_rng(0).normal(size=(4, coded.d))
    direct = ((y - omega @ x.T) ** 2).sum(axis=1)
    assert np.allclose(functional.held_out(omega, some_moments(x, y)), direct)


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_functional_mechanism_without_noise_is_least_squares(coded, mirrored):
    of, rng = some_moments(coded.x, coded.y), np.random.default_rng(0)
    expected = np.linalg.lstsq(coded.x, coded.y, rcond=None)[0]
    assert np.allclose(functional.fit(of, 1e12, rng, mirrored), expected, atol=1e-6)
    assert np.allclose(functional.least_squares(of), expected)
    ridge = 4 * sqrt(2) * (2 * 13**2 + 4 * 13)
    shrunk = np.linalg.solve(of.xx + ridge * np.eye(13), of.yx)
    assert np.allclose(functional.fit(of, 1.0, NoNoise(), mirrored), shrunk)


@pytest.mark.parametrize(
    ("mirrored", "diagonal", "off", "linear"), [(False, 30.0, 30 / sqrt(2), 15.0), (True, 30.0, 30.0, 30.0)]
)
def test_the_functional_mechanisms_noise(monkeypatch, mirrored, diagonal, off, linear):
    """d = 3: 2d² + 4d = 30. Standard deviations are √2 times as large; 1e5 draws of a variance are sure to about 2 %."""
    seen = []
    monkeypatch.setattr(functional, "minimise", lambda xx, yx: seen.append((xx, yx)) or yx)
    of = functional.Moments(np.zeros((100_000, 3, 3)), np.zeros((100_000, 3)), np.zeros(100_000))
    functional.fit(of, 0.5, np.random.default_rng(0), mirrored, ridge=0.0)
    ((xx, yx),) = seen
    assert (xx == np.swapaxes(xx, 1, 2)).all()
    spread = xx.std(axis=0) / sqrt(2) * 0.5
    assert np.diag(spread) == pytest.approx([diagonal] * 3, rel=0.03)
    assert spread[np.triu_indices(3, 1)] == pytest.approx([off] * 3, rel=0.03)
    assert yx.std(axis=0) / sqrt(2) * 0.5 == pytest.approx([linear] * 3, rel=0.03)


def test_eigenvalues_that_are_not_positive_are_left_out():
    omega = functional.minimise(np.diag([2.0, 0.0, -1.0]), np.array([4.0, 5.0, 6.0]))
    assert omega.tolist() == [2.0, 0.0, 0.0]


def test_weighted_sums_are_those_of_weighted_people(coded):
    """Of every method, against sums over the people one by one."""
    n, rng = 400, np.random.default_rng(3)
    x, y = coded.x[:n], coded.y[:n]
    levels = rng.integers(1, 101, (2, n)).astype(np.uint8)
    levels[:, 0] = 100
    folds = [slice(0, 150), slice(150, n)]
    plans = {
        name: [regression_twin.plan_regression(coded.query, line, name) for line in levels]
        for name in ("affine", "sample")
    }
    sums = cross_validation.weighted_sums(
        levels, plans, functional.products(x, y), folds, 13, np.random.default_rng(7)
    )
    chance = np.random.default_rng(7).random((2, n), dtype=np.float32)
    for run, (k, fold) in itertools.product(range(2), enumerate(folds)):
        epsilon = levels[run, fold] / 100
        inside = chance[run, fold]
        t = levels[run].mean() / 100
        weights = {
            "S": inside < np.expm1(epsilon) / np.expm1(1.0),
            "S-avg": inside < np.where(epsilon < t, np.expm1(epsilon) / np.expm1(t), 1.0),
            "T": epsilon == 1,
            "affine": plans["affine"][run].weights[levels[run, fold]],
            "sample": inside < plans["sample"][run].weights[levels[run, fold]],
        }
        for name, weight in weights.items():
            of = functional.moments(sums[name][run, k], 13)
            assert np.allclose(of.xx, (x[fold].T * weight) @ x[fold], rtol=1e-4, atol=1e-2), name
            assert np.allclose(of.yx, (y[fold] * weight) @ x[fold], rtol=1e-4, atol=1e-2), name
        values, target = x[fold] * epsilon[:, None], y[fold] * epsilon
        values[:, -1] = 1
        of = functional.moments(sums["Alag."][run, k], 13)
        assert np.allclose(of.xx, values.T @ values, atol=1e-2) and np.allclose(
            of.yx, target @ values, atol=1e-2
        )


# --- accord's own path ----------------------------------------------------------------------------------------------------------

LEVELS = [0.01, 0.2, 0.5, 1.0]


class Ones:
    """A generator whose Laplace draws are their scale."""

    def laplace(self, loc=0.0, scale=1.0, size=None):
        return np.full(size if size is not None else (), loc + scale)


def table_of(people, n, neighbors):
    """The first n people as accord's table, each with a level of their own; and their levels in hundredths."""
    levels = np.resize(LEVELS, n)
    columns = {name: values[:n] for name, values in people.items()} | {"epsilon": levels}
    roster = accord.Spec.of(levels) if neighbors == "add-remove" else None
    return accord.table(columns, epsilon="epsilon", neighbors=neighbors, roster=roster), np.rint(
        100 * levels
    ).astype(np.uint8)


@pytest.mark.parametrize("n", [4_000, 200])
def test_affine_from_sums_is_accords_release(people, coded, apart, n):
    """The same answer without noise, and noise of the same scales: with slopes, and where only the mean is worth it."""
    table, levels = table_of(people, n, "replace")
    decided, noise = table.plan(coded.query, "affine"), Fixed()
    plan = regression_twin.plan_regression(coded.query, levels, "affine")
    assert plan.calibration.mean_only == decided.calibration.mean_only == (n == 200)
    theirs, _ = answer(decided, [table.reader.summary(decided.query)], noise)

    sums = (plan.weights[levels] @ functional.products(coded.x[:n], coded.y[:n]).astype(np.float64))[None]
    plain, moved = (
        regression_twin.noisy_moments(coded.query, sums, plan, rng) for rng in (NoNoise(), Ones())
    )
    assert regression_twin.coefficients(coded.query, plain)[0] == pytest.approx(
        [*theirs.scaled[1:], theirs.scaled[0]], abs=1e-9
    )
    charged = float(plan.weights[levels].sum())
    scales = [float(scale / (Q * Q * MICRO)) for scale in noise.scales]
    assert len(scales) == (1 if n == 200 else len(coded.query.encoding.products))
    assert (moved - plain)[0, 1:] * charged == pytest.approx(scales, rel=1e-9)
    assert moved[0, 0] == plain[0, 0] and plain[0, 0] * charged == pytest.approx(
        1 if n == 200 else float(sensitivity(coded.query, REPLACE))
    )


@pytest.mark.parametrize("one", [False, True])
def test_affine_with_boxes_from_sums_is_accords_release(people, coded, monkeypatch, one):
    """As above, and noises of the same variances: a mean square of each kind of moment within 10 %."""
    if one:
        halves = regression.offered
        undivided = {"halves": False, "share": PARTS}
        monkeypatch.setattr(regression, "offered", lambda target: [replace(halves(target)[0], **undivided)])
    n = 20_000
    table, levels = table_of(people, n, "replace")
    decided, noise = table.plan(coded.query, "affine"), Fixed()
    plan = regression_twin.plan_regression(coded.query, levels, "affine")
    boxes = plan.calibration.boxes(decided.target)
    assert plan.calibration.halves == decided.calibration.halves != one
    theirs, _ = answer(decided, [table.reader.summary(decided.query)], noise)
    assert noise.scales == [box.spans for box in boxes.boxes]

    sums = (plan.weights[levels] @ functional.products(coded.x[:n], coded.y[:n]).astype(np.float64))[None]
    plain = regression_twin.noisy_moments(coded.query, sums, plan, NoNoise())
    assert regression_twin.coefficients(coded.query, plain)[0] == pytest.approx(
        [*theirs.scaled[1:], theirs.scaled[0]], abs=1e-9
    )
    rng, charged = np.random.default_rng(0), float(plan.weights[levels].sum())
    drawn = regression_twin.noisy_moments(coded.query, np.repeat(sums, 4_000, axis=0), plan, rng) - plain
    each = np.array([moments_of(coded.query, row[6:]) for row in drawn.tolist()])
    of_kind = np.array([entry.kind for entry in coded.query.encoding.products])
    for kind, variance in boxes.variances.items():
        assert (each[:, of_kind == kind] ** 2).mean() * charged**2 == pytest.approx(float(variance), rel=0.1)
        assert plain[0, 1 + KINDS.index(kind)] * charged**2 == pytest.approx(float(variance))


@pytest.mark.parametrize("n", [8_000, 200])
def test_sample_from_sums_is_accords_release(people, coded, n):
    """As above, of people who are all kept."""
    table, levels = table_of(people, n, "add-remove")
    decided, noise = table.plan(coded.query, "sample"), Fixed()
    plan = regression_twin.plan_regression(coded.query, levels, "sample")
    assert plan.calibration.mean_only == decided.calibration.mean_only == (n == 200)
    assert plan.calibration.t == decided.calibration.t
    theirs, _ = answer(decided, [table.reader.summary(decided.query)], noise)

    sums = functional.products(coded.x[:n], coded.y[:n]).sum(axis=0, dtype=np.float64)[None]
    plain = regression_twin.noisy_moments(coded.query, sums, plan, NoNoise())
    assert regression_twin.coefficients(coded.query, plain)[0] == pytest.approx(
        [*theirs.scaled[1:], theirs.scaled[0]], abs=1e-9
    )
    if n > 200:
        size, weights, count = regression_twin.noise_sizes(coded.query, plan)
        scales = [float(scale / (Q * Q)) for scale in noise.scales]
        assert [*size / weights, size / count] == pytest.approx(scales, rel=1e-9)


def test_noise_is_laplace_and_independent(coded, apart):
    """The law of accord's noise in the fast path: a mean square of 2b² for every entry (1 % of it at 40,000 draws), and no two entries alike."""
    levels = np.resize([1, 20, 50, 100], 4_000).astype(np.uint8)
    plan = regression_twin.plan_regression(coded.query, levels, "affine")
    sums = (plan.weights[levels] @ functional.products(coded.x[:4_000], coded.y[:4_000]).astype(np.float64))[
        None
    ]
    plain = regression_twin.noisy_moments(coded.query, sums, plan, NoNoise())
    drawn = (
        regression_twin.noisy_moments(
            coded.query, np.repeat(sums, 40_000, axis=0), plan, np.random.default_rng(0)
        )
        - plain
    )
    size, weights, _ = regression_twin.noise_sizes(coded.query, plan)
    scales = size / weights / float(plan.weights[levels].sum())
    assert np.sqrt((drawn[:, 1:] ** 2).mean(axis=0) / 2) == pytest.approx(scales, rel=0.06)
    assert np.abs(drawn[:, 1:]).mean(axis=0) == pytest.approx(
        scales, rel=0.04
    )  # of a Laplace noise, its scale
    alike = np.corrcoef(drawn[:, 1:], rowvar=False) - np.eye(weights.size)
    assert np.abs(alike).max() < 0.04


# --- runs -----------------------------------------------------------------------------------------------------------------------


def test_runs_depend_on_the_generator_alone(coded):
    data = cross_validation.Data(coded.query, coded.d, functional.products(coded.x[:3_000], coded.y[:3_000]))
    setting = cross_validation.Setting(share=0.5)
    first, again = (
        cross_validation.rmse_of_runs(setting, 7, np.random.default_rng(5), data, mirrored=True)
        for _ in range(2)
    )
    assert {method for method, panel in first if not panel} == {
        "non private",
        "M",
        "T",
        "Alag.",
        "S-avg",
        "S",
        "affine",
        "sample",
    }
    for key, values in first.items():
        assert (
            values.shape == (7,)
            and (values == again[key]).all()
            and values.min() >= first["non private", ""].min() * 0.99
        )


def test_without_privacy_a_run_is_five_fold_cross_validation(coded):
    n = 1_000
    data = cross_validation.Data(coded.query, coded.d, functional.products(coded.x[:n], coded.y[:n]))
    rmse = cross_validation.rmse_of_runs(cross_validation.Setting(0.0), 1, np.random.default_rng(5), data)[
        "non private", ""
    ]
    order, squares = np.random.default_rng(5).permutation(n), 0.0
    for fold in np.split(order, 5):
        rest = np.setdiff1d(order, fold)
        omega = np.linalg.lstsq(coded.x[rest], coded.y[rest], rcond=None)[0]
        squares += float(((coded.y[fold] - coded.x[fold] @ omega) ** 2).sum())
    assert rmse == pytest.approx([sqrt(squares / n)], rel=1e-6)


def test_the_standard_error_of_a_median():
    """Against the spread of medians of many samples; runs that are alike in batches count as one."""
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(2_000, 200))
    error = np.mean([figure.quantile_point("", 0.0, line, 5).error for line in samples])
    assert error == pytest.approx(np.median(samples, axis=1).std(), rel=0.2)
    alike = np.repeat(samples[:, :40], 5, axis=1)
    error = np.mean([figure.quantile_point("", 0.0, line, 5).error for line in alike])
    assert error == pytest.approx(np.median(alike, axis=1).std(), rel=0.25)


def test_a_file_takes_the_place_of_the_generator(people, tmp_path):
    path = write(
        tmp_path / "p.parquet",
        {name: people[name][:2_000] for name in ("age", "hours_worked", "sex", "income")},
    )
    points = figure.measure(cross_validation.Setting(share=0.5), 3, np.random.default_rng(0), Context(path))
    assert {p.x for p in points} == {1_000.0} and cross_validation.data_of(path).d == 4
