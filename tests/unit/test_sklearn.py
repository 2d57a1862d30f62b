"""The scikit-learn wrapper: scikit-learn's own checks, names, levels by row, and what is refused."""

import json
import pickle
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as Plain
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import accord
from accord.errors import AccordError, PlanError, PrivacyWarning, QueryError, SpecError
from accord.release.receipt import to_json
from accord.sklearn import LinearRegression

pytestmark = pytest.mark.filterwarnings("ignore::accord.errors.PrivacyWarning")

WIDE = LinearRegression(bounds=((-5, 5), (-1000, 1000)), epsilon=inf)
NOT_APPLICABLE = {
    "check_supervised_y_no_nan": "nobody's value decides whether a fit fails: what is missing counts as the middle",
    "check_dtype_object": "the same of objects that are no numbers",
    "check_array_api_input": "scikit-learn itself skips it unless SCIPY_ARRAY_API is set, and there is one kind of array inside DuckDB",
}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(18, 100, n), rng.uniform(0, 80, n)])
    return X, np.clip(X @ [500, 800] + rng.normal(0, 5_000, n), 0, 200_000)


BOUNDS = {"age": (18, 100), "hours": (0, 80), "target": (0, 200_000)}
PLACES = {"x0": (18, 100), "x1": (0, 80), "target": (0, 200_000)}


# --- scikit-learn's own checks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{getattr(check, 'func', check).__name__}-{k}")
        for k, (estimator, check) in enumerate(estimator_checks_generator(WIDE))
        if getattr(check, "func", check).__name__ not in NOT_APPLICABLE
    ],
)
@pytest.mark.filterwarnings("default")
def test_scikit_learns_own_checks(estimator, check):
    """Everyone is public, because the checks want least squares, not noise."""
    check(estimator)


def test_most_checks_apply():
    names = {getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(WIDE)}
    assert (
        len(names) > 35
        and {"check_regressors_train", "check_estimators_pickle", "check_fit2d_1sample"} <= names
    )
    assert names & set(NOT_APPLICABLE) == set(NOT_APPLICABLE)


def test_parameters_can_be_read_set_and_cloned():
    model = LinearRegression(bounds=BOUNDS, epsilon=0.5, mechanism="affine", share=0.25)
    given = {"bounds": BOUNDS, "epsilon": 0.5, "mechanism": "affine", "share": 0.25}
    assert model.get_params() == {**given, "missing": "exclude"}
    twin = clone(model).set_params(share=1.0)
    assert twin.share == 1.0 and model.share == 0.25 and twin.bounds == BOUNDS and not hasattr(twin, "coef_")
    assert LinearRegression().get_params() == {
        "bounds": None,
        "epsilon": None,
        "mechanism": "auto",
        "share": 1.0,
        "missing": "exclude",
    }


# --- what is fitted -----------------------------------------------------------------------------------------------------------------


def test_without_noise_it_is_scikit_learns_own():
    X, y = rows()
    model = LinearRegression(bounds=PLACES, epsilon=inf).fit(X, y)
    plain = Plain().fit(X, y)
    assert model.coef_ == pytest.approx(plain.coef_, rel=0.02)
    assert model.predict(X) == pytest.approx(np.clip(plain.predict(X), 0, 200_000), abs=600)
    assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=0.01)
    assert model.n_features_in_ == 2 and isinstance(model.intercept_, float)


def test_names_of_a_data_frame_are_those_of_the_bounds_in_any_order():
    X, y = rows()
    frame = pd.DataFrame(X, columns=["age", "hours"])
    one = LinearRegression(bounds=BOUNDS, epsilon=inf).fit(frame, y)
    other = LinearRegression(bounds=dict(reversed(BOUNDS.items())), epsilon=inf).fit(
        frame[["hours", "age"]], y
    )
    assert one.feature_names_in_.tolist() == ["age", "hours"]
    assert one.coef_ == pytest.approx(other.coef_[::-1])
    assert one.coef_ == pytest.approx(LinearRegression(bounds=PLACES, epsilon=inf).fit(X, y).coef_)
    with pytest.raises(ValueError, match="feature names"):
        one.predict(frame[["hours", "age"]])


@pytest.mark.parametrize("names", [["epsilon", "level"], ["f1", "f0"], ["x1", "x0"], ["a b", 'q"uote']])
def test_features_may_be_called_anything(names):
    X, y = rows()
    bounds = {names[0]: (18, 100), names[1]: (0, 80), "target": (0, 200_000)}
    model = LinearRegression(bounds=bounds, epsilon=inf).fit(pd.DataFrame(X, columns=names), y)
    assert model.coef_ == pytest.approx([500, 800], rel=0.1)


def test_a_feature_called_target_does_not_get_the_targets_bounds():
    X, y = rows()
    with pytest.raises(QueryError):
        LinearRegression(bounds={"target": (0, 200_000), "hours": (0, 80)}, epsilon=inf).fit(
            pd.DataFrame(X, columns=["target", "hours"]), y
        )


def test_bounds_for_all_features_at_once():
    X, y = rows()
    model = LinearRegression(bounds=((0, 100), (0, 200_000)), epsilon=inf).fit(X, y)
    assert model.coef_ == pytest.approx([500, 800], rel=0.05)
    assert model.receipt_["query"]["bounds"]["target"] == ["0", "200000"]


def test_levels_by_row():
    X, y = rows(300)
    levels = np.repeat([0.0, 0.5, inf], 100)
    model = LinearRegression(bounds=PLACES, mechanism="threshold").fit(X, y, epsilon=levels)
    assert dict(model.release_.charges) == {0.5: 0.0, inf: inf}
    assert model.receipt_["spec"] == {**model.receipt_["spec"], "people": 200, "opted_out": 100}
    # only the public hundred were read
    assert model.coef_ == pytest.approx(
        LinearRegression(bounds=PLACES, epsilon=inf).fit(X[200:], y[200:]).coef_
    )
    again = LinearRegression(bounds=PLACES, epsilon=0.1, mechanism="minimum").fit(
        X, y, epsilon=list(levels[100:]) + [0.7] * 100
    )
    assert dict(again.release_.charges) == {0.5: 0.5, 0.7: 0.5, inf: 0.5}  # those of fit count


def test_one_level_for_everyone_in_fit_or_in_the_model():
    X, y = rows(50)
    for model in (
        LinearRegression(bounds=PLACES, epsilon=0.5).fit(X, y),
        LinearRegression(bounds=PLACES, epsilon=9).fit(X, y, epsilon=0.5),
    ):
        assert [c["level"] for c in model.receipt_["charges"]] == ["0.5"]


def test_share_and_mechanism_are_passed_on():
    X, y = rows(2_000)
    model = LinearRegression(bounds=PLACES, epsilon=1.0, mechanism="sample", share=0.25).fit(X, y)
    assert model.release_.mechanism == "sample" and dict(model.release_.charges) == {1.0: 0.25}
    auto = LinearRegression(bounds=PLACES, epsilon=1.0).fit(X, y)
    assert auto.release_.plan.reason != "as asked for"


def test_every_fit_is_a_new_draw():
    X, y = rows(500)
    model = LinearRegression(bounds=PLACES, epsilon=1.0)
    assert len({tuple(model.fit(X, y).coef_) for _ in range(4)}) == 4


def test_predictions_stay_within_the_bounds():
    X, y = rows()
    model = LinearRegression(bounds={**PLACES, "target": (40_000, 60_000)}, epsilon=inf).fit(X, y)
    predicted = model.predict([[1e9, 1e9], [-1e9, -1e9], [59, 40]])
    assert predicted[0] == 60_000 and predicted[1] == 40_000 and 40_000 < predicted[2] < 60_000


def test_a_receipt_is_kept():
    X, y = rows(1_000)
    model = LinearRegression(bounds=PLACES, epsilon=0.5, mechanism="affine").fit(X, y)
    receipt = json.loads(to_json(model.receipt_))
    assert receipt["mechanism"] == "affine" and receipt["charges"] == [
        {"level": "0.5", "tier": None, "people": 1_000, "charge": "0.5"}
    ]
    assert receipt["value"]["intercept"] == model.intercept_
    assert list(receipt["value"]["coefficients"].values()) == model.coef_.tolist()


def test_a_fitted_model_can_be_stored_whatever_was_looked_at():
    X, y = rows(200)
    model = LinearRegression(bounds=PLACES, epsilon=1.0).fit(X, y)
    assert (
        model.release_.charges and model.receipt_ and model.release_.plan.spec.levels and str(model.release_)
    )
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tolist() == model.predict(X).tolist() and again.receipt_ == model.receipt_


def test_in_a_pipeline_and_in_a_search():
    X, y = rows()
    halved = make_pipeline(
        FunctionTransformer(lambda x: x / 2), LinearRegression(bounds=((0, 50), (0, 200_000)))
    ).fit(X, y, linearregression__epsilon=np.full(len(y), inf))
    assert halved[-1].coef_ == pytest.approx([1000, 1600], rel=0.05)
    assert cross_val_predict(LinearRegression(bounds=PLACES, epsilon=inf), X, y).shape == y.shape
    search = GridSearchCV(
        LinearRegression(bounds=PLACES, epsilon=inf), {"mechanism": ["threshold", "affine"]}, cv=2
    )
    assert search.fit(X, y).best_score_ > 0.8


# --- what is refused ----------------------------------------------------------------------------------------------------------------

X, Y = rows(30)
FRAME = pd.DataFrame(X, columns=["age", "hours"])
BAD = {
    "bounds= is missing. Declare the public bounds": (
        QueryError,
        lambda: LinearRegression(epsilon=1.0).fit(X, Y),
    ),
    "fit needs everyone's level": (QueryError, lambda: LinearRegression(bounds=PLACES).fit(X, Y)),
    "bounds= has no entry for 'x1'": (
        QueryError,
        lambda: LinearRegression(bounds={"x0": (0, 1), "target": (0, 1)}, epsilon=1.0).fit(X, Y),
    ),
    "bounds= has no entry for 'target'": (
        QueryError,
        lambda: LinearRegression(bounds={"x0": (0, 1), "x1": (0, 1)}, epsilon=1.0).fit(X, Y),
    ),
    "bounds= has no entry for 'age'": (
        QueryError,
        lambda: LinearRegression(bounds=PLACES, epsilon=1.0).fit(FRAME, Y),
    ),
    "The lower one comes first": (
        QueryError,
        lambda: LinearRegression(bounds=((1, 0), (0, 1)), epsilon=1.0).fit(X, Y),
    ),
    "there is no mechanism 'afine'": (
        PlanError,
        lambda: LinearRegression(bounds=PLACES, epsilon=1.0, mechanism="afine").fit(X, Y),
    ),
    "mix cannot answer": (
        PlanError,
        lambda: LinearRegression(bounds=PLACES, epsilon=1.0, mechanism="mix").fit(X, Y),
    ),
    "share=2 is not a fraction": (
        PlanError,
        lambda: LinearRegression(bounds=PLACES, epsilon=1.0, share=2).fit(X, Y),
    ),
    "levels are negative": (SpecError, lambda: LinearRegression(bounds=PLACES, epsilon=-1.0).fit(X, Y)),
    "levels are NaN": (SpecError, lambda: LinearRegression(bounds=PLACES, epsilon=nan).fit(X, Y)),
    "all 30 people opted out": (PlanError, lambda: LinearRegression(bounds=PLACES, epsilon=0).fit(X, Y)),
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(message):
    error, attempt = BAD[message]
    with pytest.raises(error) as refused:
        attempt()
    assert message in str(refused.value)


@pytest.mark.parametrize("bounds", [3, (1,), (0, 1), "wide", ((0, 1), (0, 1), (0, 1))], ids=str)
def test_bounds_of_another_shape_are_refused_by_accord_itself(bounds):
    with pytest.raises(AccordError):
        LinearRegression(bounds=bounds, epsilon=1.0).fit(X, Y)


@pytest.mark.parametrize(
    "levels", [[1.0, 2.0], np.ones(29), np.ones((30, 2)), ["a"] * 30], ids=lambda x: str(np.shape(x))
)
def test_levels_of_another_length_are_refused(levels):
    with pytest.raises((AccordError, ValueError)):
        LinearRegression(bounds=PLACES).fit(X, Y, epsilon=levels)


def test_before_it_is_fitted_there_is_nothing():
    model = LinearRegression(bounds=PLACES, epsilon=1.0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        _ = model.receipt_


def test_it_is_found_by_name():
    assert accord.sklearn.LinearRegression is LinearRegression


# --- nobody's value is told, and nobody's value decides ------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["a secret", None, nan, inf, -inf, 10**400, {}, pd.NA], ids=repr)
def test_whatever_somebody_has_a_fit_succeeds(odd):
    X, y = rows(30)
    for features, target in (([[odd, 1.0], *X[1:].tolist()], y), (X, [odd, *y[1:].tolist()])):
        for form in (np.array(features, dtype=object), pd.DataFrame(features, dtype=object)):
            model = LinearRegression(bounds=((0, 100), (0, 200_000)), epsilon=inf).fit(
                form, np.array(target, dtype=object)
            )
            assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(form)).all()


def test_what_is_refused_quotes_no_value():
    X, y = rows(30)
    model = LinearRegression(bounds=((0, 100), (0, 200_000)), epsilon=inf)
    for features, target in (
        (np.array([["a secret"] * 2] * 30), y[:7]),
        (X + 0j, y),
        ([["a secret"], ["a secret", 2]], y[:2]),
        (np.full((30, 2, 2), "a secret", dtype=object), y),
        ("a secret", y),
    ):
        with pytest.raises(ValueError) as refused:
            model.fit(features, target)
        assert "secret" not in str(refused.value) and str(X[0, 0]) not in str(refused.value)


@pytest.mark.filterwarnings("always::accord.errors.PrivacyWarning")
def test_a_score_and_a_second_fit_say_what_they_cost():
    X, y = rows(30)
    model = LinearRegression(bounds=((0, 100), (0, 200_000)), epsilon=inf).fit(X, y)
    with pytest.warns(
        PrivacyWarning, match=r"this is fit \d+ in this process\. Each charges its people again"
    ):
        model.fit(X, y)
    with pytest.warns(PrivacyWarning, match="exact target: it is not private, and it is charged to nobody"):
        model.score(X, y)
