"""Means of levels: what `mix` combines, each by itself. For a private look at the gap between levels.

Neighbors  replace.
Releases   for each level j that is read its sums S_j, each with a discrete Laplace noise of scale s/ε_j, s
           being what one person can change in all sums of their level together (statistics/levels.py). A
           public level has no noise.
Guarantee  person i of level j loses exactly ε_j (times the share): they are in the sums of level j alone,
           which they move by at most s, so that every probability changes by at most exp(ε_j). Other levels'
           sums do not move.
Error      of level j, about these people: the noise, 2(Δ/(n_j·ε_j))² where nobody lacks a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from accord.budget import MICRO, PUBLIC
from accord.mechanisms.prediction import ErrorModel, Prediction
from accord.mechanisms.record import Calibration, Method, Refused, Task, frozen
from accord.statistics import Answer, Ends, Interval
from accord.statistics.levels import LevelMeansTarget, PresentLevels
from accord.statistics.spread import Spread
from accord.theory import as_floats

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary


@dataclass(frozen=True)
class ByLevel(ErrorModel):
    """An interval for each level; all of them hold together."""

    target: LevelMeansTarget
    scales: tuple[float, ...]
    """Of the noise on each level's mean, as if everyone of it had a value."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        each, alpha = self.target.each, (1 - confidence) / len(self.scales)
        ends = {}
        means = self.target.finish(released, 1)
        assert isinstance(means, dict)
        for (level, part), scale in zip(self.target.of_each(released), self.scales, strict=True):
            fewer = each.error_factor(part)
            possible: Any = each.possible(1)
            if fewer is None:
                ends[level] = possible
                continue
            spread = Spread(laplace=scale, several=each.noises_each > 1, extra=each.rounding)
            low, high = cast(Ends, each.interval(means[level], part, spread, alpha, fewer))
            ends[level] = max(possible[0], low), min(possible[1], high)
        return ends


def _calibrate(task: Task) -> Calibration:
    if isinstance(task.target, PresentLevels):
        raise Refused("would need the number of people of each level, which is private")
    noise = task.noise_variance / task.target.outputs / (task.people * as_floats(task.levels)) ** 2
    variance = float(noise.sum())
    return Calibration(
        task.levels, frozen(1 / task.people / task.levels.size), variance, "a mean for each level"
    )


def _predict(task: Task, calibration: Calibration) -> Prediction:
    target: LevelMeansTarget = task.target
    each, n = target.each, task.people_as_floats
    noise = each.noise_variance / (n * as_floats(task.levels)) ** 2
    here = sqrt(float(noise.mean()))
    scales = tuple(np.sqrt(noise / 2).tolist())
    rmse = sqrt(here**2 + float((each.variance / n).mean()))
    return Prediction(rmse, here, None, ByLevel(target, scales))


def _answer(
    summary: Summary, calibration: Calibration, target: LevelMeansTarget, noise: Noise
) -> list[Fraction]:
    released, each = [], target.each
    rows = zip(calibration.charges.tolist(), summary.people.tolist(), summary.rows(), strict=True)
    for charge, people, row in rows:
        if not charge:
            continue
        for total in each.sums(row, people):
            drawn = 0 if charge == PUBLIC else noise.laplace(Fraction(MICRO * each.sensitivity, charge))
            released.append(Fraction(total + drawn, people))
    return released


METHOD = Method(LevelMeansTarget, _calibrate, _predict, _answer)
