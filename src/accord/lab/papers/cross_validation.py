"""Runs of Figure 3 of [J]: five-fold cross-validation of regressions, many runs at once.

A run draws a specification, assigns its levels to the people at random, and cross-validates five times; what
counts is the root of the mean square of all held-out errors on the scale [−1, 1]. Everything follows from
sums over the people of each fold of products of two columns: training sums are those of all folds less those
of one, and held-out errors follow from the fold's own sums. So all runs of a batch need one matrix product
for each fold, weights of people times products. Folds (and, where not everyone takes part, who does) are
drawn anew for every batch of runs; the people themselves are `census.people` with the seed DATA_SEED, always.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import floor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO
from accord.lab.papers import census
from accord.lab.papers.functional import Moments, fit, held_out, least_squares, moments, products
from accord.lab.papers.regression_twin import (
    LEVELS,
    Hundredths,
    RegressionPlan,
    coefficients,
    noisy_moments,
    plan_regression,
)
from accord.lab.simulation.specs import jorgensen
from accord.mechanisms.sample import probabilities
from accord.relation import ADD_REMOVE
from accord.statistics.regression import Regression
from accord.theory import FloatArray

Rows = NDArray[np.float32]

DATA_SEED = 2012
PEOPLE = 100_000
FOLDS = 5
_BATCH, _BATCH_OF_PART = 25, 10
"""Runs that share the people's division into folds; and, where not everyone takes part, those who do."""
MIRRORED = "mirrored"
"""The panel with the functional mechanism's noise read in another way."""


@dataclass(frozen=True)
class Setting:
    x: float | None = None
    """Where it is drawn; None: at the number of people who take part."""
    share: float = 1.0
    """Of the people in the data, how many take part."""
    conservative: float = 0.54
    epsilon_c: float = 0.01
    epsilon_m: float = 0.2

    @property
    def batch(self) -> int:
        return _BATCH if self.share == 1 else _BATCH_OF_PART

    def people(self, data: Data) -> int:
        return round(self.share * len(data.products))


@dataclass(frozen=True)
class Data:
    """Everyone's products, and what accord would ask about them."""

    query: Regression
    d: int
    products: Rows


@lru_cache(maxsize=2)
def data_of(path: Path | None) -> Data:
    """Of the people of a file, or of those who are always drawn."""
    columns = census.people(np.random.default_rng(DATA_SEED), PEOPLE) if path is None else census.read(path)
    coded = census.coded(columns)
    return Data(coded.query, coded.d, products(coded.x, coded.y))


def rmse_of_runs(
    setting: Setting, runs: int, rng: np.random.Generator, data: Data, mirrored: bool = False
) -> dict[tuple[str, str], FloatArray]:
    """{(method, panel): RMSE of every run}."""
    people = setting.people(data)
    batches: dict[tuple[str, str], list[FloatArray]] = {}
    for start in range(0, runs, setting.batch):
        rows = data.products[rng.permutation(data.products.shape[0])[:people]]
        squares = _squared_errors(setting, min(setting.batch, runs - start), rng, data, rows, mirrored)
        for key, sums in squares.items():
            batches.setdefault(key, []).append(np.sqrt(sums / people))
    return {key: np.concatenate(parts) for key, parts in batches.items()}


def _squared_errors(
    setting: Setting, runs: int, rng: np.random.Generator, data: Data, rows: Rows, mirrored: bool
) -> dict[tuple[str, str], FloatArray]:
    """The sum of squares of the held-out errors of every run, for these people in this order."""
    size, d, query = rows.shape[0], data.d, data.query
    drawn = jorgensen(size, setting.conservative, epsilon_c=setting.epsilon_c, epsilon_m=setting.epsilon_m)
    hundredths = [np.rint(100 * drawn.draw(rng)).astype(np.uint8) for _ in range(runs)]
    levels = rng.permuted(np.stack(hundredths), axis=1)
    ends = np.linspace(0, size, FOLDS + 1).astype(np.int64)
    folds = [slice(a, b) for a, b in pairwise(ends)]
    whole = np.stack([rows[fold].sum(axis=0, dtype=np.float64) for fold in folds])
    tests, everyone = moments(whole, d), moments(whole.sum(axis=0) - whole, d)

    # the levels of the other training sets differ by chance only: all five share the plan of the first
    plans = {
        name: [plan_regression(query, of_run[: ends[-2]], name) for of_run in levels]
        for name in ("affine", "sample")
    }
    sums = weighted_sums(levels, plans, rows, folds, d, rng)
    training = {method: part.sum(axis=1, keepdims=True) - part for method, part in sums.items()}
    ours = {
        name: np.stack(
            [
                coefficients(query, noisy_moments(query, of_run, plan, rng))
                for of_run, plan in zip(training[name], plans[name], strict=True)
            ]
        )
        for name in plans
    }

    in_every_run = (
        np.broadcast_to(part, (runs, *part.shape)) for part in (everyone.xx, everyone.yx, everyone.yy)
    )
    of = {"M": Moments(*in_every_run)}
    of |= {name: moments(training[name], d) for name in ("T", "Alag.", "S-avg", "S")}
    epsilon = dict.fromkeys(of, levels.max(axis=1)[:, None] / 100)
    epsilon["M"] = levels.min(axis=1)[:, None] / 100
    epsilon["S-avg"] = _mean_levels(levels)[:, None] / MICRO
    omegas = {("non private", ""): np.broadcast_to(least_squares(everyone), (runs, FOLDS, d))}
    omegas |= {(name, ""): fit(of[name], epsilon[name], rng) for name in of}
    omegas |= {(name, ""): omega for name, omega in ours.items()}
    if mirrored:
        omegas |= {(name, MIRRORED): fit(of[name], epsilon[name], rng, mirrored=True) for name in of}
    return {key: held_out(omega, tests).sum(axis=1) for key, omega in omegas.items()}


def _mean_levels(levels: Hundredths) -> NDArray[np.int64]:
    """The mean level of every run, in millionths, rounded down."""
    return np.array([floor(of_run.mean() * (MICRO // 100)) for of_run in levels])


def weighted_sums(
    levels: Hundredths,
    plans: dict[str, list[RegressionPlan]],
    rows: Rows,
    folds: list[slice],
    d: int,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """{method: runs × folds × products}: sums of everybody's products, weighted by the method's own weights.

    S, S-avg and `sample`: 1 for who is kept (one number between 0 and 1 decides for all three). T: 1 for who
    allows the largest level. Alag.: every value but the intercept is multiplied by ε/ε_L, so a product of two
    by its square. `affine`: the charge.
    """
    runs, size = levels.shape
    chance = rng.random((runs, size), dtype=np.float32)
    which = np.arange(runs)[:, None]
    tops = LEVELS[levels.max(axis=1)]

    def of_everyone(tables: list[FloatArray]) -> Rows:
        """What the table of a run, by level, says of each of its people."""
        entries: Rows = np.stack(tables).astype(np.float32)[which, levels]
        return entries

    def kept(tables: list[FloatArray]) -> Rows:
        return (chance < of_everyone(tables)).astype(np.float32)

    stretch = of_everyone([np.minimum(LEVELS / top, 1.0) for top in tops])
    weights = {
        "S": kept([probabilities(LEVELS, int(top), ADD_REMOVE) for top in tops]),
        "S-avg": kept([probabilities(LEVELS, int(mean), ADD_REMOVE) for mean in _mean_levels(levels)]),
        "T": of_everyone([(top <= LEVELS).astype(np.float64) for top in tops]),
        "Alag.": stretch * stretch,
        "affine": of_everyone([plan.weights for plan in plans["affine"]]),
        "sample": kept([plan.weights for plan in plans["sample"]]),
    }
    sums = {
        name: np.stack([weight[:, fold] @ rows[fold] for fold in folds], axis=1).astype(np.float64)
        for name, weight in weights.items()
    }
    once, never = _orders(d)
    for k, fold in enumerate(folds):
        sums["Alag."][:, k, once] = stretch[:, fold] @ rows[fold][:, once]
        sums["Alag."][:, k, never] = rows[fold][:, never].sum(axis=0)
    return sums


def _orders(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which products have one factor besides the intercept, and which have none."""
    rows, columns = np.triu_indices(d)
    first = np.flatnonzero((columns == d - 1) & (rows < d - 1))
    return np.append(first, rows.size + d - 1), np.array([rows.size - 1])
