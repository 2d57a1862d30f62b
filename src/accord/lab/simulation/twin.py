"""The twin: answers of many runs at once, where a release is a weighted sum with noise.

A mechanism says so itself (`Method.law`, beside its exact answer); tests hold the twin against the release's
own seam.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accord.budget import IntArray
from accord.lab.simulation.noise import Seeded
from accord.people.summary import Summary
from accord.planning import Plan
from accord.release.answer import answer
from accord.statistics import Grid, Indicator, OneOf
from accord.statistics.target import Additive, Cells
from accord.theory import FloatArray

_COARSE = 64
"""Where a noise is of so few steps, that they are steps shows."""


@dataclass(frozen=True)
class Twin:
    """An answer that is offset + slope·(Σ weight·cell + Σ noise)."""

    offset: float
    slope: float
    weights: FloatArray
    """Of one person of each level."""
    scales: FloatArray
    """Of independent Laplace noises."""


def twin(plan: Plan) -> Twin | None:
    """The law of a plan's answer, if it is a weighted sum with noise; None: only the seam knows."""
    target = plan.target
    if not plan.reads_data:
        middle, _ = answer(plan, None, Seeded(np.random.default_rng(0)))
        return (
            Twin(middle, 0.0, np.zeros(plan.spec.micro.size), np.zeros(0))
            if isinstance(middle, float)
            else None
        )
    law = plan.method.law
    # an answer is no linear function of several sums, nor of squares; where people may be absent, the seam
    # decides
    if law is None or not isinstance(target, Additive) or not plan.relation.people_are_public:
        return None
    if len(target.forms) != 1 or target.forms[0].second:
        return None
    (form,), linear = target.forms, law(plan.calibration, plan.spec.people, target)
    if linear.coarsest < _COARSE:
        return None
    ends = (Fraction(0), Fraction(target.sensitivity))
    low, high = (target.finish([end + linear.shift], plan.spec.total) for end in ends)
    assert isinstance(low, float) and isinstance(high, float)
    slope = (high - low) / target.sensitivity
    offset = low + slope * form.constant * float(plan.spec.people @ linear.weights)
    return Twin(offset, slope, form.first * linear.weights, linear.scales)


def by_twin(plan: Plan, law: Twin, cells: IntArray, rng: np.random.Generator) -> FloatArray:
    """Answers of many runs at once, from the cells of everyone, in the order of their levels."""
    means = cells @ np.repeat(law.weights, plan.spec.people)
    noise = np.zeros(len(cells))
    for first in range(0, law.scales.size, 64):
        some = law.scales[first : first + 64]
        noise += rng.laplace(size=(len(cells), some.size)) @ some
    return np.asarray(law.offset + law.slope * (means + noise), dtype=np.float64)


def summarise(plan: Plan, cells: IntArray) -> Summary:
    """The Summary of people with these cells, in the order of their levels, as a table would give it."""
    spec, target, encoding = plan.spec, plan.target, plan.query.encoding
    assert isinstance(encoding, Grid | Indicator | OneOf)
    if plan.method.needs_cells or isinstance(target, Cells) or not isinstance(target, Additive):
        level = np.repeat(np.arange(spec.micro.size), spec.people)
        last = 1 if isinstance(encoding, Indicator) else encoding.cells
        points = last if isinstance(encoding, OneOf) else last + 1
        return Summary(spec.people, points, level, cells, np.ones_like(cells))
    sums = np.add.reduceat(cells, np.cumsum(spec.people) - spec.people)
    each = np.arange(spec.micro.size)
    column = np.repeat([0, 1], each.size)
    return Summary(spec.people, 2, np.tile(each, 2), column, np.concatenate((spec.people, sums)))
