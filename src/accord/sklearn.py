"""Private linear regression as an estimator of scikit-learn, at everyone's own level.

    bounds = {"age": (18, 100), "hours": (0, 99), "target": (0, 200_000)}
    model = LinearRegression(bounds).fit(X, y, epsilon=levels)
    model.coef_, model.intercept_, model.predict(X), model.receipt_

Every `fit` charges its people anew: cross-validation and grid search with k fits cost whoever is in all of
them k charges. `score` is not private at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np

try:
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import (
        check_array,
        check_consistent_length,
        check_is_fitted,
        validate_data,
    )
except ModuleNotFoundError:
    from accord.errors import AccordError

    raise AccordError("accord.sklearn needs scikit-learn. Install accord[sklearn].") from None

import accord
from accord.budget import to_micro
from accord.errors import PrivacyWarning, QueryError, warn
from accord.theory import FloatArray, as_floats

_LEVEL, _TARGET = "epsilon", "target"
_FITS = count(1)


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression that is private for every person at their own level. See `accord.regression`.

    Args:
        bounds: public bounds, never taken from the data: {feature: (low, high), …, "target": (low, high)},
            with features named as in X, or "x0", "x1", … for arrays; or a pair ((low, high) of every feature,
            (low, high) of the target).
        epsilon: everyone's level, if `fit` is given none.
        mechanism: a name of `accord mechanisms`, or "auto".
        share: the fraction of everyone's level that may be spent.
        missing: "exclude", or "none" where no number is missing, as is publicly known: see
            `accord.regression`.
    """

    def __init__(
        self,
        bounds: Any = None,
        epsilon: float | None = None,
        mechanism: str = "auto",
        share: float = 1.0,
        missing: str = "exclude",
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.share = share
        self.missing = missing

    def fit(self, X: Any, y: Any, epsilon: Any = None) -> LinearRegression:
        """Fit to one row a person.

        `epsilon` is one level for everyone, or one for each row (0: opted out, inf: public).

        Who lacks a number (it is missing, infinite or something else) is left out, unless `missing` says
        otherwise; how many that are is private, and nobody's value decides whether this fails. Every fit
        charges its people again, and nobody keeps account of it: a PrivacyWarning says so from the second
        one on.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        X, y = self._checked(X, reset=True), _target(y)
        check_consistent_length(X, y)
        levels = self.epsilon if epsilon is None else epsilon
        if levels is None:
            raise QueryError(
                "fit needs everyone's level: fit(X, y, epsilon=…), one number or one for each row."
            )
        levels = np.broadcast_to(as_floats(to_micro(levels)), (X.shape[0],))
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
        bounds = self._bounds([str(name) for name in names])
        query = accord.regression(_TARGET, list(columns), bounds=bounds, missing=self.missing)
        people = accord.table({**columns, _TARGET: y, _LEVEL: levels}, epsilon=_LEVEL)
        self.release_ = people.release(query, self.mechanism, self.share)
        if (fits := next(_FITS)) > 1:
            warn(
                f"this is fit {fits} in this process. Each charges its people again: "
                "who was in all of them has lost the sum, as in cross-validation. "
                "Give each fit a small share=, or use accord.regression with a ledger.",
                PrivacyWarning,
            )
        coefficients = self.release_.value
        assert isinstance(coefficients, accord.Coefficients)
        self.coef_ = np.array(list(coefficients.coefficients.values()))
        self.intercept_ = coefficients.intercept
        return self

    @property
    def receipt_(self) -> dict[str, Any]:
        """What was asked, how it was answered and what it cost whom."""
        check_is_fitted(self)
        return dict(self.release_.receipt())

    def predict(self, X: Any) -> FloatArray:
        """The target, within its bounds."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        predicted: FloatArray = self.release_.value.predict(X)
        return predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions for X.

        It is computed from the exact y and protects nobody: score with public people, and publish nothing
        of others.
        """
        warn(
            "score compares with everyone's exact target: it is not private, and it is charged to nobody.",
            PrivacyWarning,
        )
        return float(super().score(X, y, sample_weight))

    def _checked(self, X: Any, reset: bool) -> FloatArray:
        """Rows as numbers. What is refused is refused by shape, names and type alone."""
        rows = X if issparse(X) else _cells(X, 2)
        if rows.dtype.kind == "c":
            raise ValueError("Complex data not supported. Give real numbers.")
        if rows.ndim != 2:  # scikit-learn would show the data
            raise ValueError(
                f"Expected 2D array, got {rows.ndim}D array instead. "
                "Reshape your data: a row for each person."
            )
        numbers = rows if issparse(rows) else _numbers(rows)
        numbers = check_array(numbers, dtype=None, ensure_all_finite=False, estimator=self)
        validate_data(self, X if hasattr(X, "dtypes") else numbers, reset=reset, skip_check_array=True)
        return _numbers(numbers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _bounds(self, names: list[str]) -> dict[str, tuple[float, float]]:
        if self.bounds is None:
            raise QueryError(
                "bounds= is missing. Declare the public bounds of every feature and of the target, "
                "never from the data: bounds=((0, 1), (0, 100)), or a dict."
            )
        if not isinstance(self.bounds, Mapping):
            try:
                of_features, target = self.bounds
            except (TypeError, ValueError):
                raise QueryError(
                    f"bounds={self.bounds!r} is neither a dict nor a pair "
                    "((low, high) of every feature, (low, high) of the target)."
                ) from None
            return {**{f"f{j}": of_features for j in range(len(names))}, _TARGET: target}
        if _TARGET in names:
            raise QueryError(
                "a feature is called 'target', which is the key for the target's own bounds. "
                "Rename the feature, or give bounds as a pair."
            )
        for name in (*names, _TARGET):
            if name not in self.bounds:
                raise QueryError(
                    f"bounds= has no entry for {name!r}. "
                    "Declare the public bounds of every feature and of the target."
                )
        return {**{f"f{j}": self.bounds[name] for j, name in enumerate(names)}, _TARGET: self.bounds[_TARGET]}


def _cells(values: Any, dimensions: int) -> Any:
    """Values as an array.

    A list has no type of its own, and NumPy would give it one by its values: each of its entries stays what
    it is.
    """
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    rows = list(values)
    if dimensions == 2:
        rows = [list(row) if isinstance(row, list | tuple | np.ndarray) else row for row in rows]
    if dimensions == 1 or not rows or not isinstance(rows[0], list):
        array = np.empty(len(rows), dtype=object)
        for k, row in enumerate(rows):
            array[k] = row
        return array
    width = len(rows[0])
    if any(not isinstance(row, list) or len(row) != width for row in rows):
        raise ValueError("the rows of X have different lengths. Give every person as many numbers.")
    array = np.empty((len(rows), width), dtype=object)
    for k, row in enumerate(rows):
        for j, value in enumerate(row):
            array[k, j] = value
    return array


def _target(y: Any) -> FloatArray:
    """Everyone's target as a number. What is refused is refused by shape and type alone."""
    array = _cells(y, 1)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported. Give real numbers.")
    if array.ndim == 2 and array.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected. Give y.ravel().",
            DataConversionWarning,
        )
    elif array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    return _numbers(array).ravel()


def _numbers(values: Any) -> FloatArray:
    """As numbers, NaN for whatever is none; nothing is said about any of them."""
    array = np.asarray(values)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
        return np.asarray(_NUMBER(array), dtype=np.float64)


def _number(value: Any) -> float:
    if isinstance(value, complex | np.complexfloating):
        return np.nan
    try:
        return float(value)
    except Exception:  # somebody's own class may do anything
        return np.nan


_NUMBER = np.frompyfunc(_number, 1, 1)
