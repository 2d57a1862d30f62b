"""Errors of simulated answers: about the population, and about the very people of each run."""

from __future__ import annotations

from typing import Any

import numpy as np

from accord.lab.simulation.populations import Population
from accord.lab.simulation.values import cells, probability
from accord.statistics import Grid, Indicator, OneOf
from accord.statistics.target import Extremes, Quantiles, Ranks, Target, Total
from accord.theory import FloatArray


def truth_of(target: Target, population: Population, people: int) -> Any:
    """What is true of the population, in the answer's own terms; of ranks nothing is needed."""
    if isinstance(target, Ranks):
        return None
    match target.query.encoding:
        case Indicator(condition):
            return people * (1.0 if condition is None else probability(condition, population))
        case OneOf(edges=edges, cells=count):
            inner = population.below(np.nextafter([float(edge) for edge in edges[1:-1]], -np.inf))
            shares = np.diff(np.concatenate(([0.0], inner, [1.0])))
            return people * np.concatenate((shares, np.zeros(count - shares.size)))  # nobody is missing
        case Grid(low=low, high=high):
            mean = population.mean(float(low), float(high))
            return people * mean if isinstance(target, Total) else mean
    raise TypeError("a population has one column of numbers")


def about_population(target: Target, answers: FloatArray, truth: Any, population: Population) -> FloatArray:
    """In the unit of the query: percentile points for a quantile."""
    if not isinstance(target, Ranks):
        return np.asarray(answers - truth, dtype=np.float64)
    grid = target.query.encoding
    half, low, high = float(grid.step) / 2, float(grid.low), float(grid.high)
    # from half a step on, a value is at the next point
    ends = [np.nextafter(answers + sign * half, -np.inf) for sign in (-1, 1)]
    below = np.where(
        answers <= low + half, 0.0, population.below(ends[0])
    )  # what lies outside is at the ends
    above = np.where(answers >= high - half, 0.0, 1 - population.below(ends[1]))
    return _percentiles(target, below, above)


def about_people(target: Target, answers: FloatArray, values: FloatArray) -> FloatArray:
    """About the people of each run."""
    encoding = target.query.encoding
    if isinstance(target, Ranks):
        return _percentiles(target, *_sides(encoding, answers, values))
    match encoding:
        case Indicator():
            true = cells(encoding, values).sum(axis=1)
        case OneOf(cells=count):
            placed = cells(encoding, values)
            true = np.stack([np.count_nonzero(placed == k, axis=1) for k in range(count)], axis=1)
        case Grid(low=low, high=high):
            means = np.clip(values, float(low), float(high)).mean(axis=1)
            true = means * values.shape[1] if isinstance(target, Total) else means
    return np.asarray(answers - true, dtype=np.float64)


def _sides(grid: Grid, answers: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Which share of the people of each run lies below and above its answers."""
    placed = np.sort(cells(grid, values), axis=1)
    points = (
        np.round((answers - float(grid.low)) / float(grid.step)).astype(np.int64).reshape(len(placed), -1)
    )
    sides = [
        [[np.searchsorted(row, p, "left"), row.size - np.searchsorted(row, p, "right")] for p in chosen]
        for row, chosen in zip(placed, points, strict=True)
    ]
    shares = np.array(sides, dtype=np.float64) / placed.shape[1]
    return shares[..., 0].reshape(answers.shape), shares[..., 1].reshape(answers.shape)


def _percentiles(target: Ranks, below: FloatArray, above: FloatArray) -> FloatArray:
    """Percentile points between an answer with so many people below and above it and the quantile.

    Of min and max, 100 for an answer beyond everyone.
    """
    if isinstance(target, Extremes):
        return (
            np.where(below >= 1, -100.0, -100 * above)
            if target.is_largest
            else np.where(above >= 1, 100.0, 100 * below)
        )
    assert isinstance(target, Quantiles)
    ps = np.array([float(p) for p in target.ps]) if target.listed else float(target.ps[0])
    return np.asarray(100 * (np.maximum(0, below - ps) - np.maximum(0, above - (1 - ps))), dtype=np.float64)
