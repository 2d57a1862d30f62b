"""Predicted error of a noisy weighted mean, and its interval: from public things alone.

With the weight w_i of person i, σ² their variance and N the variance of the noise:

    about the population   σ²·Σw² + N                    [C], [Z]
    about these people     σ²·Σ(w − 1/n)² + N            [J]: levels do not go with values, so the people of a
                           level are
                                                         a random draw
    κ                      Σ(w − 1/n)₊: if the means of any two levels differ by at most D, the answer is off
                           by at most κ·D
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import Protocol

import numpy as np

from accord.mechanisms.record import Calibration, Task
from accord.statistics import Answer, Ends, Interval
from accord.statistics.spread import Spread
from accord.statistics.target import Additive, Target


class Law(Protocol):
    """How an answer is spread about what it estimates: intervals, and the error once the answer is known."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        """About these people; the bias that κ bounds is not in it.

        `factor`: how many times the error is as predicted.
        """
        ...

    def rmse_of(self, released: Sequence[Fraction]) -> float | None:
        """The error, where what was released tells it better than the prediction; None: it does not."""
        ...


@dataclass(frozen=True)
class Prediction:
    """In the answer's units, for one output (root mean square over all of them)."""

    rmse: float
    rmse_here: float
    bias_bound: float | None
    law: Law


@dataclass(frozen=True)
class Fixed:
    """An interval that does not depend on the answer."""

    ends: Interval

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        return self.ends

    def rmse_of(self, released: Sequence[Fraction]) -> None:
        return None


@dataclass(frozen=True)
class AroundValue:
    """An interval around the answer, as the target of sums has it."""

    target: Additive
    spread: Spread
    shift: tuple[float, float] = (0.0, 0.0)
    """What the answer leaves out lies between these."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        return self.target.interval(value, released, self.spread, 1 - confidence, factor, self.shift)

    def rmse_of(self, released: Sequence[Fraction]) -> None:
        return None


@dataclass(frozen=True)
class AroundRank:
    """The percentiles of these people between which the answers lie: around those that were asked for."""

    spread: Spread
    centres: tuple[float, ...]
    listed: bool
    looks: int = 1
    """How many choices must all be within the interval."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        half = self.spread.half_width((1 - confidence) / self.looks, factor)
        ends = [(max(0.0, c - half), min(100.0, c + half)) for c in self.centres]
        return ends if self.listed else ends[0]

    def rmse_of(self, released: Sequence[Fraction]) -> None:
        return None


@dataclass(frozen=True)
class CountedRank:
    """The percentiles between which the answers lie, where normal errors are no good model."""

    ends: Callable[[float], list[Ends]] = field(compare=False)
    """For a probability of error."""
    listed: bool = False

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        ends = self.ends(1 - confidence)
        return ends if self.listed else ends[0]

    def rmse_of(self, released: Sequence[Fraction]) -> None:
        return None


@dataclass(frozen=True)
class Errors:
    """The parts of a weighted mean's error, in the answer's units."""

    rmse: float
    rmse_here: float
    bias_bound: float
    spread: Spread


def errors(task: Task, calibration: Calibration, several: bool = False) -> Errors:
    """Of a calibrated weighted mean."""
    target: Target = task.target
    n, w, factor = task.total, calibration.weights, target.factor(task.total)
    outputs = target.outputs
    gap, square = task.scratch
    np.square(np.subtract(w, 1 / n, out=gap), out=square)
    unread = n - int(task.people.sum())  # a small share leaves them with less than a millionth
    spread = float(task.heads @ square) + unread / n**2
    output_noise = calibration.noise_variance / outputs
    population = task.variance / outputs * float(task.heads @ np.square(w, out=square)) + output_noise
    here = task.variance / outputs * spread + output_noise
    return Errors(
        rmse=factor * sqrt(population),
        rmse_here=factor * sqrt(here),
        bias_bound=float(task.heads @ np.maximum(gap, 0, out=gap)),
        spread=Spread(
            sampling=factor * sqrt(target.max_variance * spread),
            laplace=factor * sqrt(output_noise / 2),
            several=several,
            extra=factor * target.rounding,
        ),
    )


def predict(task: Task, calibration: Calibration, several: bool = False) -> Prediction:
    """The error of a calibrated additive mechanism."""
    of_mean = errors(task, calibration, several)
    law = AroundValue(task.target, of_mean.spread)
    return Prediction(of_mean.rmse, of_mean.rmse_here, of_mean.bias_bound, law)
