"""Errors of simulated answers: about the population, and about the very people of each run."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.lab.simulation.populations import Population
from accord.lab.simulation.values import cells, probability
from accord.statistics import Grid, Indicator, OneOf
from accord.statistics.target import Target
from accord.statistics.target_ranks import Extremes, Quantiles, Ranks
from accord.statistics.target_sums import Additive, Cells
from accord.theory import FloatArray


def truth_of(target: Target, population: Population, people: float) -> Any:
    """What is true of the population, in the answer's own terms; None for ranks, which need no truth.

    `people`: how many the question is about, on average.
    """
    if isinstance(target, Ranks):
        return None
    match target.query.encoding:
        case Indicator(condition):
            assert isinstance(target, Additive)
            share = 1.0 if condition is None else probability(condition, population)
            return target.of_moments(share, sqrt(share * (1 - share)), people)
        case OneOf(edges=edges, cells=count):
            inner = population.below(np.nextafter([float(edge) for edge in edges[1:-1]], -np.inf))
            shares = np.diff(np.concatenate(([0.0], inner, [1.0])))
            return people * np.concatenate((shares, np.zeros(count - shares.size)))  # nobody is missing
        case Grid(low=low, high=high):
            assert isinstance(target, Additive)
            bounds = float(low), float(high)
            return target.of_moments(population.mean(*bounds), population.std(*bounds), people)
    raise TypeError("a population has one column of numbers")


def errors_about_population(
    target: Target, answers: FloatArray, truth: Any, population: Population
) -> FloatArray:
    """In the unit of the query: percentile points for a quantile."""
    if not isinstance(target, Ranks):
        return np.asarray(answers - truth, dtype=np.float64)
    grid = target.query.encoding
    half, low, high = float(grid.step) / 2, float(grid.low), float(grid.high)
    # from half a step on, a value is at the next point; values outside of the bounds are at the ends
    start, end = (np.nextafter(answers + sign * half, -np.inf) for sign in (-1, 1))
    below = np.where(answers <= low + half, 0.0, population.below(start))
    above = np.where(answers >= high - half, 0.0, 1 - population.below(end))
    return _percentile_points(target, below, above)


def errors_about_people(target: Target, answers: FloatArray, values: FloatArray) -> FloatArray:
    """The same about the people of each run, whose values these are."""
    encoding = target.query.encoding
    if isinstance(target, Ranks):
        return _percentile_points(target, *_shares_beside(encoding, answers, values))
    if isinstance(target, Cells):
        placed, count = cells(encoding, values), encoding.cells
        true = np.stack([np.count_nonzero(placed == k, axis=1) for k in range(count)], axis=1)
    else:
        assert isinstance(target, Additive)
        if isinstance(encoding, Grid):
            numbers = np.clip(values, float(encoding.low), float(encoding.high))
        else:
            numbers = cells(encoding, values).astype(np.float64)
        true = target.of_moments(numbers.mean(axis=1), numbers.std(axis=1), values.shape[1])
    return np.asarray(answers - true, dtype=np.float64)


def errors_about_members(
    target: Target, answers: FloatArray, values: FloatArray, members: NDArray[np.bool_]
) -> FloatArray:
    """The same about the members of each group; NaN of a group without people."""
    runs, groups, _ = members.shape
    by_group = answers.reshape(runs, groups, *answers.shape[answers.ndim - target_axes(target) :])
    errors = np.full_like(by_group, np.nan, dtype=np.float64)
    for run, group in np.ndindex(runs, groups):
        inside = members[run, group]
        if inside.any():
            one = by_group[run, group][None]
            errors[run, group] = errors_about_people(target, one, values[run, inside][None])[0]
    return errors.reshape(answers.shape)


def target_axes(target: Target) -> int:
    """How many axes one answer has: 1 of several quantiles and of histograms."""
    return int(isinstance(target, Cells) or (isinstance(target, Quantiles) and target.listed))


def _shares_beside(grid: Grid, answers: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Which share of the people of each run lies below its answers, and which above."""
    placed = np.sort(cells(grid, values), axis=1)
    points = np.round((answers - float(grid.low)) / float(grid.step)).astype(np.int64)
    sides = [
        [[np.searchsorted(row, p, "left"), row.size - np.searchsorted(row, p, "right")] for p in chosen]
        for row, chosen in zip(placed, points.reshape(len(placed), -1), strict=True)
    ]
    shares = np.array(sides, dtype=np.float64) / placed.shape[1]
    return shares[..., 0].reshape(answers.shape), shares[..., 1].reshape(answers.shape)


def _percentile_points(target: Ranks, below: FloatArray, above: FloatArray) -> FloatArray:
    """Between the quantile and an answer with these shares of the people below and above it.

    Of min and max, 100 for an answer beyond everyone.
    """
    if isinstance(target, Extremes):
        if target.is_largest:
            return np.where(below >= 1, -100.0, -100 * above)
        return np.where(above >= 1, 100.0, 100 * below)
    assert isinstance(target, Quantiles)
    ps = np.array([float(p) for p in target.ps]) if target.listed else float(target.ps[0])
    return np.asarray(100 * (np.maximum(0, below - ps) - np.maximum(0, above - (1 - ps))), dtype=np.float64)
