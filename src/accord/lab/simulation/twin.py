"""The twin: answers of many runs at once, where a release is a weighted sum with noise.

The mechanism itself says that it is one (`Method.linear`, next to its exact answer); tests compare the twin
with the release's own seam.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accord.budget import IntArray
from accord.lab.simulation.noise import Seeded
from accord.people.summary import Summary
from accord.planning import Plan
from accord.release.answer import answer
from accord.statistics import Grid, Indicator, OneOf
from accord.statistics.box import Share
from accord.statistics.target_sums import Additive, Cells
from accord.theory import FloatArray

_FEWEST_STEPS = 64
"""A noise whose scale is fewer steps of 1 is not taken as continuous."""


@dataclass(frozen=True)
class Twin:
    """An answer that is offset + slope·(Σ weight·cell + Σ noise)."""

    offset: float
    slope: float
    weights: FloatArray
    """Of one person of each level."""
    scales: FloatArray
    """Of independent Laplace noises."""
    box: Share | None = None
    """Instead of them: what it has of a noise that other questions share."""

    def answers(self, people: IntArray, cells: IntArray, rng: np.random.Generator) -> FloatArray:
        """Of many runs, from everyone's cells in the order of their levels, and the people of each level."""
        sums = cells @ np.repeat(self.weights, people)
        return np.asarray(self.offset + self.slope * (sums + self.noise(len(cells), rng)), dtype=np.float64)

    def noise(self, runs: int, rng: np.random.Generator, at_once: int = 64) -> FloatArray:
        """Σ noise of each run. A seed gives other numbers if another number of them is drawn `at_once`."""
        if self.box is not None:
            (noise,) = self.box.effects[0] * box_noise(self.box.coordinates, 1, runs, rng)
            return np.asarray(noise, dtype=np.float64)
        sums = np.zeros(runs)
        for first in range(0, self.scales.size, at_once):
            scales = self.scales[first : first + at_once]
            sums += rng.laplace(size=(runs, scales.size)) @ scales
        return sums


def twin(plan: Plan) -> Twin | None:
    """The law of a plan's answer, if it is a weighted sum with noise; None: only the seam knows."""
    target = plan.target
    if not plan.reads_data:
        middle, _ = answer(plan, None, Seeded(np.random.default_rng(0)))
        if not isinstance(middle, float):
            return None
        return Twin(middle, 0.0, np.zeros(plan.spec.micro.size), np.zeros(0))
    as_linear = plan.method.linear
    # an answer is no linear function of several sums, nor of squares, nor where people may be absent
    if as_linear is None or not isinstance(target, Additive) or not plan.relation.people_are_public:
        return None
    if len(target.forms) != 1 or target.forms[0].second:
        return None
    (form,), linear = target.forms, as_linear(plan.calibration, plan.spec.people, target)
    if linear.smallest_scale < _FEWEST_STEPS:
        return None
    ends = (Fraction(k * target.sensitivity) for k in range(3))
    low, high, beyond = (target.finish([end + linear.shift], plan.people) for end in ends)
    assert isinstance(low, float) and isinstance(high, float) and isinstance(beyond, float)
    slope = (high - low) / target.sensitivity
    if beyond < high + (high - low) / 2:  # it is moved to the nearer end of what is possible
        return None
    offset = low + slope * form.constant * float(plan.spec.people @ linear.weights)
    return Twin(offset, slope, form.first * linear.weights, linear.scales, linear.box)


def box_noise(coordinates: int, drawn: int, runs: int, rng: np.random.Generator) -> FloatArray:
    """So many coordinates of a box, for many runs at once, in units of 10⁶ spans: R·U of each."""
    radii = rng.gamma(coordinates + 1, size=runs)
    return np.asarray(radii * rng.uniform(-1, 1, (drawn, runs)), dtype=np.float64)


def summarise(
    plan: Plan,
    cells: IntArray,
    members: NDArray[np.bool_] | None = None,
    people: IntArray | None = None,
) -> Summary:
    """The Summary of people with these cells, in the order of their levels, as a table would give it.

    `members`: whom of them the question is about; None: all. `people`: how many there are of each level, if
    not as many as planned.
    """
    spec, target, encoding = plan.spec, plan.target, plan.query.encoding
    assert isinstance(encoding, Grid | Indicator | OneOf)
    level = np.repeat(np.arange(spec.micro.size), spec.people if people is None else people)
    if members is not None:
        level, cells = level[members], cells[members]
    if plan.method.needs_cells or isinstance(target, Cells) or not isinstance(target, Additive):
        last = 1 if isinstance(encoding, Indicator) else encoding.cells
        points = last if isinstance(encoding, OneOf) else last + 1
        return Summary(spec.people, points, level, cells, np.ones_like(cells))
    powers = 3 if any(form.second for form in target.forms) else 2
    return summary_of_sums(
        spec.people, *(_sums(cells**power, level, spec.micro.size) for power in range(powers))
    )


def summary_of_sums(people: IntArray, *columns: IntArray) -> Summary:
    """For each level the sums: how many the question is about, the sum of their integers, of the squares."""
    level, output = np.tile(np.arange(people.size), len(columns)), np.repeat(range(len(columns)), people.size)
    return Summary(people, len(columns), level, output, np.concatenate(columns))


def _sums(amounts: IntArray, level: IntArray, levels: int) -> IntArray:
    """The sum of whole numbers of each level."""
    sums = np.zeros(levels, dtype=np.int64)
    np.add.at(sums, level, amounts)
    return sums
