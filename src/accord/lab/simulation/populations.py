"""Populations that people are drawn from.

Each knows its own distribution function, so that what is true of it is computed, not simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, isfinite, lgamma, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accord.errors import QueryError, did_you_mean
from accord.theory import FloatArray

_STEPS = 2**16


@dataclass(frozen=True)
class Population:
    """Values of one column, drawn independently."""

    name: str
    draw: Callable[[np.random.Generator, Any], FloatArray]
    """So many values: `draw(rng, shape)`."""
    below: Callable[[Any], FloatArray]
    """The distribution function, P(value ≤ x)."""

    def mean(self, low: float, high: float) -> float:
        """Of values that are moved to [low, high]: low + ∫(1 − F)."""
        width = (high - low) / _STEPS
        return low + width * float((1 - self.below(low + width * (np.arange(_STEPS) + 0.5))).sum())

    def std(self, low: float, high: float) -> float:
        """Of values that are moved to [low, high]: E(x − low)² = ∫2(x − low)(1 − F)."""
        width = (high - low) / _STEPS
        x = width * (np.arange(_STEPS) + 0.5)
        square = width * float((2 * x * (1 - self.below(low + x))).sum())
        return sqrt(max(0.0, square - (self.mean(low, high) - low) ** 2))

    def quantile(self, p: float, low: float, high: float) -> float:
        """The smallest value below which p of the people lie, in [low, high]."""
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if float(self.below(np.array([middle]))[0]) >= p else (middle, high)
        return high

    def __repr__(self) -> str:
        return f"<Population: {self.name}>"


def normal(mean: float = 0.0, std: float = 1.0) -> Population:
    _finite(mean=mean)
    _positive(std=std)
    return Population(
        f"normal({mean:g}, {std:g})",
        lambda rng, size: rng.normal(mean, std, size),
        lambda x: _phi((x - mean) / std),
    )


def lognormal(mean: float = 0.0, std: float = 1.0) -> Population:
    """Values whose logarithm is normal."""
    _finite(mean=mean)
    _positive(std=std)
    return Population(
        f"lognormal({mean:g}, {std:g})",
        lambda rng, size: rng.lognormal(mean, std, size),
        lambda x: np.where(x > 0, _phi((np.log(np.where(x > 0, x, 1.0)) - mean) / std), 0.0),
    )


def uniform(low: float = 0.0, high: float = 1.0) -> Population:
    _finite(low=low, high=high)
    _positive(width=high - low)
    return Population(
        f"uniform({low:g}, {high:g})",
        lambda rng, size: low + (high - low) * rng.random(size),
        lambda x: np.clip((x - low) / (high - low), 0.0, 1.0),
    )


def bernoulli(p: float, low: float = 0.0, high: float = 1.0) -> Population:
    """`high` with probability p, else `low`."""
    _finite(p=p, low=low, high=high)
    if not 0 <= p <= 1:
        raise QueryError(f"bernoulli({p!r}): a probability lies between 0 and 1.")
    _positive(width=high - low)
    return Population(
        f"bernoulli({p:g}) on {low:g}, {high:g}",
        lambda rng, size: np.where(rng.random(size) < p, high, low),
        lambda x: np.where(x < low, 0.0, np.where(x < high, 1 - p, 1.0)),
    )


def beta(a: float, b: float, low: float = 0.0, high: float = 1.0) -> Population:
    """Beta(a, b) with a, b ≥ ½, moved to [low, high]."""
    _finite(a=a, b=b, low=low, high=high)
    _positive(width=high - low)
    if min(a, b) < 0.5:
        raise QueryError(
            f"beta({a:g}, {b:g}) is too steep at its ends to be reckoned with. Give a and b of at least 0.5."
        )
    # the distribution function is the sum of the density over fine steps of the angle:
    # with x = sin², the ends are smooth for a, b ≥ ½
    angle = (np.arange(_STEPS) + 0.5) * (np.pi / 2 / _STEPS)
    log_density = (2 * a - 1) * np.log(np.sin(angle)) + (2 * b - 1) * np.log(np.cos(angle))
    mass = np.exp(log_density + lgamma(a + b) - lgamma(a) - lgamma(b)) * (np.pi / _STEPS)
    ends = np.sin(np.arange(_STEPS + 1) * (np.pi / 2 / _STEPS)) ** 2
    sums = np.concatenate(([0.0], np.cumsum(mass) / mass.sum()))
    return Population(
        f"beta({a:g}, {b:g}) on [{low:g}, {high:g}]",
        lambda rng, size: low + (high - low) * rng.beta(a, b, size),
        lambda x: np.interp((x - low) / (high - low), ends, sums),
    )


def column(values: ArrayLike | str | Path, name: str | None = None) -> Population:
    """People drawn with replacement from real ones: an array of values, or a file and a column's name."""
    if isinstance(values, str | Path):
        if name is None:
            raise QueryError(
                f"column({str(values)!r}) needs the name of a column. "
                "Give it as the second argument, such as 'income'."
            )
        numbers = _read(values, name)
    else:
        try:
            numbers = np.asarray(values, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise QueryError(
                "a population's values are numbers. Give an array of them, or a file and a column."
            ) from None
    sample = np.sort(numbers[np.isfinite(numbers)])
    if not sample.size:
        raise QueryError("a population needs at least one number. All given ones are missing.")
    return Population(
        f"{name or 'column'} ({sample.size:,} values)",
        lambda rng, size: sample[rng.integers(0, sample.size, size)],
        lambda x: np.searchsorted(sample, x, side="right") / sample.size,
    )


def _read(path: str | Path, name: str) -> FloatArray:
    from accord.engines import open_source

    engine = open_source(path)
    if engine.columns.get(name) not in ("number", "untyped"):
        raise QueryError(
            f"{str(path)!r} has no column {name!r} of numbers: {did_you_mean(name, engine.columns)}"
        )
    rows: FloatArray = engine.rows(engine.source, [name], "numpy")
    return rows[:, 0]


def _phi(x: FloatArray) -> FloatArray:
    """The normal distribution function."""
    flat = np.asarray(x, dtype=np.float64)
    return np.array([0.5 * (1 + erf(v / sqrt(2))) for v in flat.reshape(-1).tolist()]).reshape(flat.shape)


def _finite(**parameters: Any) -> None:
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not isfinite(value):
            raise QueryError(f"{name} = {value!r} of a population is not a finite number.")


def _positive(**parameters: Any) -> None:
    _finite(**parameters)
    for name, value in parameters.items():
        if value <= 0:
            raise QueryError(f"{name} = {value!r} of a population is not a positive number.")
