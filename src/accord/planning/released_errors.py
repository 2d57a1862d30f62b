"""The errors of an answer, once what was released tells roughly how many people it is about."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.planning.plan import Plan


def errors_of(plan: Plan, released: Sequence[Fraction]) -> tuple[float, float]:
    """About the population, and about these very people."""
    if not released:
        return plan.rmse, plan.rmse_here
    known = plan.prediction.error_model.errors_of(released)
    if known is not None:
        return known
    target, calibration = plan.target, plan.calibration
    ends: Any = target.possible(plan.most_people)
    largest, factor = float(ends[1] - ends[0]), error_factor(plan, released)
    spread = target.spread_factor(released)
    if factor is None or spread is None:
        return largest, largest
    unit = target.factor(1) ** 2 / target.outputs
    noise, bias = unit * calibration.noise_variance, plan.prediction.bias**2
    # what is not noise falls by the square root alone of more people, and is never more than if as few
    # of the largest weight had all of it (statistics/central.py)
    most = unit * target.variance * float(calibration.weights.max()) * factor
    others = (max(0.0, predicted**2 - bias - noise) for predicted in (plan.rmse, plan.rmse_here))
    about_population, here = (
        min(largest, spread * sqrt(min(max(factor, factor**2) * x, max(most, x)) + factor**2 * noise + bias))
        for x in others
    )
    return about_population, here


def error_factor(plan: Plan, released: Sequence[Fraction]) -> float | None:
    """How many times the error is as predicted; None: too few people to tell anything."""
    if not released or not plan.target.tells_size:
        return 1.0
    return plan.target.error_factor(released, plan.private_groups)
