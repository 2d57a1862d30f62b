"""Values of simulated people, and the integers that an engine would make of them."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.budget import IntArray
from accord.errors import QueryError
from accord.lab.simulation.populations import Population
from accord.statistics import Encoding, Grid, Indicator, OneOf, where
from accord.theory import FloatArray


def draw_values(
    population: Population,
    rng: np.random.Generator,
    shape: tuple[int, int],
    correlation: float,
    shuffling: np.random.Generator,
) -> FloatArray:
    """Values of people in the order of their levels, the strictest first.

    Who has which is drawn apart, so that all else is the same for every correlation.
    """
    values = population.draw(rng, shape)
    if not np.isfinite(values).all():
        raise QueryError(
            f"{population.name} draws values that are not finite numbers. Give one that does not."
        )
    if not correlation:
        return values
    places = np.argsort(np.argsort(values + 0.0, axis=1), axis=1)
    scores = np.take_along_axis(np.sort(shuffling.normal(size=shape), axis=1), places, axis=1)
    latent = correlation * scores + sqrt(1 - correlation**2) * shuffling.normal(size=shape)
    return np.take_along_axis(values, np.argsort(latent, axis=1), axis=1)


def cells(encoding: Encoding | None, values: FloatArray) -> IntArray:
    """The cell of each value, by the engine's own arithmetic in the same order."""
    match encoding:
        case Grid():
            low, high = float(encoding.low), float(encoding.high)
            inside = np.floor((np.clip(values, low, high) - low) * encoding.inverse + 0.5).astype(np.int64)
            return np.where(values >= high, encoding.cells, np.where(values < low, 0, inside))
        case Indicator(condition):
            if condition is None:
                return np.ones_like(values, dtype=np.int64)
            return meets(condition, values).astype(np.int64)
        case OneOf():
            edges = np.array([float(edge) for edge in encoding.edges])
            placed: IntArray = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
            return placed
    raise TypeError("a population has one column of numbers")


# ---- conditions --------------------------------------------------------------------------------------------


def meets(condition: where.Condition, values: FloatArray) -> NDArray[np.bool_]:
    """Whether numbers meet a condition on their one column.

    No number is missing, so that a condition is either true or false.
    """
    match condition:
        case where.Combined(word, parts):
            each = np.stack([meets(part, values) for part in parts])
            return np.asarray(each.all(axis=0) if word == "AND" else each.any(axis=0), dtype=np.bool_)
        case where.Not(inner):
            return ~meets(inner, values)
        case where.IsTrue(column):
            raise QueryError(
                f"the condition has {column!r} alone, and populations have numbers. Compare it with a number."
            )
        case where.IsNull():
            return np.zeros(values.shape, dtype=np.bool_)
        case where.In(_, listed):
            return np.isin(values, [_literal(x) for x in listed])
        case where.Compare(_, operator, literal):
            return np.asarray(_OPERATORS[operator](values, _literal(literal)), dtype=np.bool_)


def probability(condition: where.Condition, population: Population) -> float:
    """That somebody meets a condition.

    Between two neighboring literals it is always or never met, so that one point there tells.
    """
    at = np.array(sorted({*literals(condition)}))
    if not at.size:
        return float(meets(condition, np.zeros(1))[0])
    before, upto = population.below(np.nextafter(at, -np.inf)), population.below(at)
    gaps = np.concatenate((before, [1.0])) - np.concatenate(([0.0], upto))
    between = np.concatenate(([np.nextafter(at[0], -np.inf)], np.nextafter(at, np.inf)))
    return float((upto - before) @ meets(condition, at) + gaps @ meets(condition, between))


def literals(condition: where.Condition) -> list[float]:
    """The numbers that a condition compares with."""
    match condition:
        case where.Combined(_, parts):
            return [x for part in parts for x in literals(part)]
        case where.Not(inner):
            return literals(inner)
        case where.In(_, values):
            return [_literal(x) for x in values]
        case where.Compare(_, _, value):
            return [_literal(value)]
        case _:
            return []


def _literal(x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise QueryError(
            f"the condition compares with {x!r}, and populations have numbers. Compare with a number."
        )
    return float(x)


_OPERATORS: dict[str, Any] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
