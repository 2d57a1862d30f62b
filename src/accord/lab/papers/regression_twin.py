"""accord's own regression of many sets of people at once, from weighted sums of their products.

The release's answer (mechanisms/regression.py) in floats. The calibration, the sensitivity, the weights of
the entries and the solution are the release's own; the noise and the division are written a second time here,
for all sets together, and tests compare them with the release, entry by entry. Sums are of
functional.products; levels are hundredths.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO
from accord.lab.simulation.simulate import planned
from accord.lab.simulation.twin import box_noise
from accord.mechanisms.regression import (
    BoxedRegressionCalibration,
    RegressionCalibration,
    SampledRegressionCalibration,
)
from accord.mechanisms.sample import SURE
from accord.relation import ADD_REMOVE, REPLACE
from accord.spec import Spec
from accord.statistics.encoding import Product, Q
from accord.statistics.moment_boxes import KINDS
from accord.statistics.moments import sensitivity, solve, weights_for
from accord.statistics.regression import Regression, RegressionTarget
from accord.theory import FloatArray

Hundredths = NDArray[np.uint8]
"""Everyone's level in hundredths, as all levels of [J]'s specifications are."""
LEVELS = np.arange(101) * (MICRO // 100)
"""Every level that there can be, in millionths."""


@dataclass(frozen=True)
class RegressionPlan:
    """How accord answers for one run's levels."""

    weights: FloatArray
    """Of a person at each of LEVELS: the charge in ε, or of `sample` the chance of being kept."""
    calibration: RegressionCalibration | SampledRegressionCalibration

    @property
    def unit(self) -> float:
        """The scale of a noise of sensitivity 1: with charges as weights it is 1."""
        sampled = self.calibration
        return MICRO / sampled.t if isinstance(sampled, SampledRegressionCalibration) else 1.0

    @property
    def is_sampled(self) -> bool:
        return isinstance(self.calibration, SampledRegressionCalibration)


def plan_regression(query: Regression, levels: Hundredths, mechanism: str) -> RegressionPlan:
    """For the people of one training set: `affine` under replace, `sample` under add-remove as S."""
    people = np.bincount(levels, minlength=LEVELS.size)
    present = np.flatnonzero(people)
    spec = Spec(LEVELS[present], people[present])
    neighbors = "add-remove" if mechanism == "sample" else "replace"
    calibration = planned(spec, query, mechanism, neighbors).calibration
    assert isinstance(calibration, RegressionCalibration | SampledRegressionCalibration)
    weights = np.zeros(LEVELS.size)
    if isinstance(calibration, SampledRegressionCalibration):
        weights[present] = calibration.keep / float(SURE)
    else:
        weights[present] = calibration.charges / MICRO
    return RegressionPlan(weights, calibration)


def noisy_moments(
    query: Regression, sums: FloatArray, plan: RegressionPlan, rng: np.random.Generator
) -> FloatArray:
    """What a release would give `solve`, one row for each set: the noise's size, then the entries' means.

    Sums are of charges in ε, or of people who are kept. The number of people is public under replace, and
    released with noise where people are kept at random.
    """
    sets, ones, y = sums.shape[0], sums.shape[1] - query.codes - 3, sums.shape[1] - 2
    total, unit = sums[:, ones], plan.unit
    if plan.calibration.mean_only and not plan.is_sampled:
        return np.column_stack([1 / total, (sums[:, y] + 2 * rng.laplace(size=sets)) / total])
    if plan.calibration.mean_only:
        above, below = (total + sign * sums[:, y] + 2 * unit * rng.laplace(size=sets) for sign in (1, -1))
        there = above + below
        mean = np.where(there > 0, np.clip((above - below) / np.where(there > 0, there, 1.0), -1, 1), 0.0)
        return np.column_stack([unit / np.maximum(there / 2, 2 * unit), mean])  # there: twice how many
    if isinstance(plan.calibration, BoxedRegressionCalibration):
        return _moments_of_boxes(query, sums, plan.calibration, rng)
    size, weights, count = noise_sizes(query, plan)
    if plan.is_sampled:
        total = np.maximum(total + size / count * rng.laplace(size=sets), size / count)
    noisy = sums[:, _places(query)] + size / weights * rng.laplace(size=(sets, weights.size))
    return np.column_stack([size / total, noisy / total[:, None]])


def _moments_of_boxes(
    query: Regression, sums: FloatArray, calibration: BoxedRegressionCalibration, rng: np.random.Generator
) -> FloatArray:
    """The same where moments share noises, under replace: half people, or all in one box."""
    sets, m, count = sums.shape[0], query.codes, sums[:, sums.shape[1] - query.codes - 3]
    boxes = calibration.boxes(RegressionTarget(query, REPLACE))
    moments = sums[:, _places(query)]
    inside = [moments]
    if calibration.halves:
        plain = np.column_stack([count, moments[:, 1 : m + 1]])
        signed = np.column_stack([moments[:, 0], moments[:, m + 1 : 2 * m + 1]])
        inside = [plain + signed, plain - signed, moments[:, 2 * m + 1 :]][: len(boxes.boxes)]
    noisy = [
        of_box + box_noise(len(box.spans), len(box.spans), sets, rng).T * box.spans * float(box.scale / Q**2)
        for of_box, box in zip(inside, boxes.boxes, strict=True)
    ]
    variances = np.outer(1 / count**2, [float(boxes.variances[kind]) for kind in KINDS])
    return np.column_stack([1 / count, variances, np.hstack(noisy) / count[:, None]])


def noise_sizes(query: Regression, plan: RegressionPlan) -> tuple[float, FloatArray, int]:
    """A size, the weight of each entry, and that of the number of people: size/weight is a noise's scale."""
    w = weights_for(query.codes)
    s = float(sensitivity(query, ADD_REMOVE if plan.is_sampled else REPLACE))
    return s * plan.unit, np.array([getattr(w, entry.kind) for entry in query.encoding.products]), w.count


@lru_cache(maxsize=8)
def _places(query: Regression) -> NDArray[np.intp]:
    """Of every entry that accord releases, which of the products it is."""
    m = query.codes
    rows, columns = np.triu_indices(m + 1)
    at = {(int(j), int(k)): place for place, (j, k) in enumerate(zip(rows, columns, strict=True))}

    def place(entry: Product) -> int:
        match entry.kind:
            case "y":
                return rows.size + m
            case "x":
                return at[entry.columns[0], m]
            case "yx":
                return rows.size + entry.columns[1]
            case _:
                return at[entry.columns[0], entry.columns[1]]

    return np.array([place(entry) for entry in query.encoding.products])


def coefficients(query: Regression, moments: FloatArray) -> FloatArray:
    """accord's solution for each row of `noisy_moments`, the intercept last."""
    # `solve` makes floats of what it gets: these are
    solutions = [solve(query, cast("list[Fraction]", row)) for row in moments.tolist()]
    return np.array([[*slopes, intercept] for intercept, slopes, _ in solutions])
