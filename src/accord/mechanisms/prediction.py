"""Predicted error of a noisy weighted mean, and its interval: from public things alone.

With the weight w_i of person i, σ² their variance and N the variance of the noise:

    about the population   σ²·Σw² + N            [C], [Z]
    about these people     σ²·Σ(w − 1/n)² + N    [J]: levels do not go with values, so that the people of a
                                                 level are a random draw
    κ                      Σ(w − 1/n)₊: if the means of any two levels differ by at most D, the answer is off
                           by at most κ·D
    κ of members           of a private part, whoever they are: (√R − 1)/(√R + 1) for R = max w/min w, and 1
                           if somebody counts nothing

Where a gap D is declared, both errors have the worst bias in them, √(… + (κ·D)²), and so do intervals.

Private levels  How many have which level is assumed, not known, and so is n: errors are expected ones. An
interval is to hold whoever chose which. Let c lie between a and b for everyone who is there, W = Σc. As
(c − a)(c − b) ≤ 0, Σc² ≤ (a + b)·W − n·a·b, so that

    Σ(w − 1/n)² ≤ (a + b)/W − n·a·b/W² − 1/n ≤ (√b − √a)²/W          the most at n = W/√(a·b)
    Σ(w − w_min)² ≤ (w_max − w_min)·(1 − n·w_min) ≤ (w_max − w_min)²/w_max         as n·w_max ≥ 1

and W is what the answer is divided by, whose noisy size is known with it (`factor`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from accord.mechanisms.record import Calibration, Task
from accord.statistics import Answer, Ends, Interval
from accord.statistics.box import Share
from accord.statistics.spread import STEP, Spread
from accord.statistics.target import Target
from accord.statistics.target_sums import Additive
from accord.theory import kappa_of_members


class ErrorModel(ABC):
    """How an answer is spread about what it estimates: intervals, and the error once the answer is there."""

    @abstractmethod
    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        """About these people. The bias that κ bounds is in it as far as a gap is declared.

        `factor`: how many times the error is as predicted.
        """

    def errors_of(self, released: Sequence[Fraction]) -> tuple[float, float] | None:
        """The errors, where what was released tells them better than the prediction; None: it does not.

        About the population, and about these very people.
        """
        return None

    def has_people(self, released: Sequence[Fraction], alpha: float) -> bool | None:
        """Whether somebody is there, but for a probability of alpha; None: it does not tell."""
        return None

    def between(
        self, released: Sequence[Fraction], confidence: float
    ) -> list[tuple[Fraction | None, Fraction | None]] | None:
        """Between which points of the grid each quantile lies; None: one draw does not tell that."""
        return None


@dataclass(frozen=True)
class Prediction:
    """In the answer's units, for one output (root mean square over all of them)."""

    rmse: float
    """About the population that the people are drawn from,"""
    rmse_here: float
    """and about these very people."""
    bias_bound: float | None
    """κ; None: the answer is biased by design, or needs no data."""
    error_model: ErrorModel
    bias: float = 0.0
    """What is in both errors because levels may go with values, as declared."""


@dataclass(frozen=True)
class FixedInterval(ErrorModel):
    """An interval that does not depend on the answer."""

    ends: Interval

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        return self.ends


@dataclass(frozen=True)
class AroundValue(ErrorModel):
    """An interval around the answer, as the target of sums has it."""

    target: Additive
    spread: Spread
    shift: tuple[float, float] = (0.0, 0.0)
    """What the answer leaves out lies between these."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        return self.target.interval(value, released, self.spread, 1 - confidence, factor, self.shift)


@dataclass(frozen=True)
class AroundRank(ErrorModel):
    """The percentiles of these people between which all answers lie: around those that were asked for."""

    spread: Spread
    centres: tuple[float, ...]
    listed: bool
    choices: int = 1
    """How many choices each answer is made of, which must all be inside its interval."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        half = self.spread.half_width((1 - confidence) / self.choices / len(self.centres), factor)
        ends = [(max(0.0, c - half), min(100.0, c + half)) for c in self.centres]
        return ends if self.listed else ends[0]


@dataclass(frozen=True)
class ChernoffRank(ErrorModel):
    """The percentiles between which all answers lie, where normal errors are no good model."""

    ends: Callable[[float], list[Ends]] = field(compare=False)
    """For a probability of error."""
    listed: bool = False
    bias: float = 0.0
    """How far off they may be besides, because levels go with values."""

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        ends = [widened(each, self.bias) for each in self.ends(1 - confidence)]
        return ends if self.listed else ends[0]


def widened(ends: Ends, bias: float) -> Ends:
    """Percentiles that lie so much farther out, at most."""
    return max(0.0, ends[0] - bias), min(100.0, ends[1] + bias)


@dataclass(frozen=True)
class Errors:
    """The parts of a weighted mean's error, in the answer's units."""

    rmse: float
    rmse_here: float
    bias_bound: float
    spread: Spread
    bias: float


def errors(task: Task, calibration: Calibration, several: bool = False) -> Errors:
    """Of a calibrated weighted mean, by the formulas above; `several`: with a noise for each level."""
    target: Target = task.target
    n, w, factor = task.total, calibration.weights, target.factor(task.total)
    outputs = target.outputs
    excess, square = task.scratch  # w − 1/n, and squares
    np.square(np.subtract(w, 1 / n, out=excess), out=square)
    unread = task.unread  # they opted out, or a small share leaves them with less than a millionth
    imbalance = float(task.people_as_floats @ square) + unread / n**2
    ends = float(w.max()) - 1 / n, 1 / n - (0.0 if unread else float(w.min()))
    width = 2 * factor * sqrt(target.max_variance)  # between two values of one person, at most
    noise = calibration.noise_variance / outputs
    squares = float(task.people_as_floats @ np.square(w, out=square))
    population = task.variance / outputs * squares + noise
    uneven, from_end = imbalance, imbalance + n * min(ends) ** 2
    if not task.relation.levels_are_public:
        uneven, from_end = _most_uneven(float(w.max()), 0.0 if unread else float(w.min()))
    here = task.variance / outputs * imbalance + noise
    if target.tells_size:
        kappa = kappa_of_members(float(w.max()), 0.0 if unread else float(w.min()))
    else:
        kappa = float(task.people_as_floats @ np.maximum(excess, 0, out=excess))
    bias = task.squared_bias / outputs * kappa**2
    return Errors(
        rmse=factor * sqrt(population + bias),
        rmse_here=factor * sqrt(here + bias),
        bias_bound=kappa,
        bias=factor * sqrt(bias),
        spread=Spread(
            sampling=factor * sqrt(target.max_variance * uneven),
            from_end=factor * sqrt(target.max_variance * from_end),
            ceiling=factor * sqrt(target.max_variance * float(w.max())),
            laplace=0.0 if task.coordinates else factor * sqrt(noise / 2),
            step=STEP * width * _unless_even(sum(ends), float(w.max())),
            most=inf if target.tells_size else width * kappa,
            several=several or target.noises_each > 1,
            extra=factor * target.rounding,
            bias=factor * task.largest_bias * kappa,
            box=_share_of_box(task, calibration, factor) if task.coordinates else None,
        ),
    )


def _unless_even(apart: float, largest: float) -> float:
    """Without what rounding of floats makes of equal weights."""
    return apart if apart > 1e-12 * largest else 0.0


def _most_uneven(largest: float, smallest: float) -> tuple[float, float]:
    """Σ(w − 1/n)² and Σ(w − w_min)² at most, whoever has which of the weights between these two."""
    return (sqrt(largest) - sqrt(smallest)) ** 2, (largest - smallest) ** 2 / largest


def _share_of_box(task: Task, calibration: Calibration, factor: float) -> Share:
    """What the answer has of the noise that it shares with others."""
    of_one = Share(task.coordinates, task.target.box_effects)
    return of_one.times(factor * sqrt(calibration.noise_variance / of_one.variance))


def bias_bound(task: Task, calibration: Calibration) -> float:
    """κ of a calibrated weighted mean."""
    if task.target.tells_size:
        smallest = 0.0 if task.unread else float(calibration.weights.min())
        return kappa_of_members(float(calibration.weights.max()), smallest)
    return float(task.people @ np.maximum(calibration.weights - 1 / task.total, 0))


def predict(task: Task, calibration: Calibration, several: bool = False) -> Prediction:
    """The error of a calibrated additive mechanism."""
    of_mean = errors(task, calibration, several)
    error_model = AroundValue(task.target, of_mean.spread)
    return Prediction(of_mean.rmse, of_mean.rmse_here, of_mean.bias_bound, error_model, of_mean.bias)
