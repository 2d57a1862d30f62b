"""Several questions together: what they cost a person, and their errors on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from accord import budget
from accord.budget import IntArray
from accord.mechanisms.additive import BoxCalibration
from accord.statistics import Target, Workload

if TYPE_CHECKING:
    from accord.planning.plan import Plan


def cost_together(parts: Sequence[Plan]) -> IntArray:
    """What several questions cost a person of each level, in millionths.

    Of those that share one noise, a person pays the largest of their charges, once; all else is added up.
    """
    noises: dict[Any, list[IntArray]] = {}
    for place, part in enumerate(parts):
        calibration = part.of_one.calibration
        key = ("box", calibration.block) if isinstance(calibration, BoxCalibration) else place
        noises.setdefault(key, []).append(part.cost)
    return budget.add(*(np.maximum.reduce(costs) for costs in noises.values()))


def midpoint_error(target: Target, people: int) -> float:
    """Error of the middle of what is possible, at worst."""
    return target.factor(people) * sqrt(target.midpoint_error / target.outputs)


def relative_error(plan: Plan) -> float:
    """The squared error of one question, as a fraction of that of an answer without data."""
    return float((plan.rmse / midpoint_error(plan.target, plan.people)) ** 2)


def total_error(plans: Sequence[Plan], workload: Workload) -> float:
    """The weighted sum of the relative errors of a workload's questions."""
    return sum(weight * relative_error(plan) for weight, plan in zip(workload.weights, plans, strict=True))
