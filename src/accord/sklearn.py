"""scikit-learn's way to a private linear regression, at everyone's own level.

model = LinearRegression(bounds={"age": (18, 100), "hours": (0, 99), "target": (0, 200_000)}).fit(X, y, epsilon=levels)
model.coef_, model.intercept_, model.predict(X), model.receipt_
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:
    from accord.errors import AccordError

    raise AccordError("accord.sklearn needs scikit-learn. Install accord[sklearn].") from None

import accord
from accord.errors import QueryError
from accord.theory import FloatArray

_LEVEL, _TARGET = "epsilon", "target"


class LinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression that is private for every person at their own level. See `accord.regression`.

    Args:
        bounds: public bounds, never taken from the data: {feature: (low, high), …, "target": (low, high)}, with features named as in X, or "x0", "x1", … for arrays;
            or a pair ((low, high) of every feature, (low, high) of the target).
        epsilon: everyone's level, if `fit` is given none.
        mechanism: a name of `accord mechanisms`, or "auto".
        share: the fraction of everyone's level that may be spent.
    """

    def __init__(
        self, bounds: Any = None, epsilon: float | None = None, mechanism: str = "auto", share: float = 1.0
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.mechanism = mechanism
        self.share = share

    def fit(self, X: Any, y: Any, epsilon: Any = None) -> LinearRegression:
        """Fit to one row a person; `epsilon` is one level for everyone, or one for each row (0: opted out, inf: public).

        scikit-learn refuses rows with missing values, so that a person's value decides whether this fails: fill them first, or use
        `accord.regression`, which counts them as the middle of the bounds.
        """
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        levels = self.epsilon if epsilon is None else epsilon
        if levels is None:
            raise QueryError("fit needs everyone's level: fit(X, y, epsilon=…), one number or one for each row.")
        levels = np.broadcast_to(np.asarray(levels, dtype=np.float64), (X.shape[0],))
        names = [str(name) for name in getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])]
        columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
        query = accord.regression(_TARGET, list(columns), bounds=self._bounds(names))
        people = accord.table({**columns, _TARGET: y, _LEVEL: levels}, epsilon=_LEVEL)
        self.release_ = people.release(query, self.mechanism, self.share)
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
        X = validate_data(self, X, reset=False, dtype=np.float64)
        found: FloatArray = self.release_.value.predict(X)  # type: ignore[union-attr]
        return found

    def _bounds(self, names: list[str]) -> dict[str, tuple[float, float]]:
        if self.bounds is None:
            raise QueryError(
                "bounds= is missing. Declare the public bounds of every feature and of the target, never from the data: bounds=((0, 1), (0, 100)), or a dict."
            )
        if not isinstance(self.bounds, Mapping):
            try:
                each, target = self.bounds
            except (TypeError, ValueError):
                raise QueryError(
                    f"bounds={self.bounds!r} is neither a dict nor a pair ((low, high) of every feature, (low, high) of the target)."
                ) from None
            return {**{f"f{j}": each for j in range(len(names))}, _TARGET: target}
        if _TARGET in names:
            raise QueryError(
                "a feature is called 'target', which is the key for the target's own bounds. Rename the feature, or give bounds as a pair."
            )
        for name in (*names, _TARGET):
            if name not in self.bounds:
                raise QueryError(
                    f"bounds= has no entry for {name!r}. Declare the public bounds of every feature and of the target."
                )
        return {**{f"f{j}": self.bounds[name] for j, name in enumerate(names)}, _TARGET: self.bounds[_TARGET]}
