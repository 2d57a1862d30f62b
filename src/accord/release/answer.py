"""The one seam for noise: from a plan and the exact integers that it needs to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np

from accord.budget import MICRO, PUBLIC
from accord.errors import TABLE_CHANGED, QueryError, SourceError
from accord.mechanisms.additive import BoxCalibration, ChoosingCalibration, answer_together
from accord.mechanisms.choosing import choose_and_count
from accord.mechanisms.sample import SampleCalibration
from accord.noise import Noise
from accord.people.summary import Summary
from accord.planning import Plan, midpoint_error
from accord.release.suppressing import leaves_groups_out, shown
from accord.statistics import Algorithm, Answer, Grouped
from accord.statistics.target_sums import Additive, Counted


def answer(plan: Plan, summaries: Sequence[Summary] | None, noise: Noise) -> tuple[Answer, tuple[Any, ...]]:
    """The answer, and what the mechanism released for it.

    Args:
        summaries: one for each private group; None where the answer needs no data.

    Returns:
        Of private groups, a row for each, and what was released for each.
    """
    if not plan.reads_data:
        return finished(plan, ())
    released, method, calibration = [], plan.method, plan.calibration
    for summary in summaries or ():
        _refuse_changed(plan, summary)
    if isinstance(calibration, ChoosingCalibration):
        assert isinstance(plan.target, Additive)
        return finished(plan, choose_and_count(summaries or (), calibration, plan.target, noise))
    for summary in summaries or ():
        released.append(tuple(method.answer(summary, calibration, plan.target, noise)))
    return finished(plan, released)


def answers_together(
    plans: Sequence[Plan], summaries: Sequence[Sequence[Summary]], noise: Noise
) -> list[tuple[Answer, tuple[Any, ...]]]:
    """The answers of questions that share one noise, and what was released for each."""
    parts = []
    for plan, (summary,) in zip(plans, summaries, strict=True):
        _refuse_changed(plan, summary)
        assert isinstance(plan.calibration, BoxCalibration) and isinstance(plan.target, Additive)
        parts.append((summary, plan.calibration, plan.target))
    drawn = answer_together(parts, noise)
    return [finished(plan, [tuple(released)]) for plan, released in zip(plans, drawn, strict=True)]


def _refuse_changed(plan: Plan, summary: Summary) -> None:
    """Refuse a Summary of other people than those of the plan."""
    if not (summary.people is plan.spec.people or np.array_equal(summary.people, plan.spec.people)):
        raise SourceError(TABLE_CHANGED)


def finished(
    plan: Plan, released: Sequence[tuple[Fraction, ...]], everything: bool = False
) -> tuple[Answer, tuple[Any, ...]]:
    """The answer that a plan makes of what its mechanism released: for each private group, or once.

    `everything`: with the groups that are left out, too.
    """
    query, target, people = plan.query, plan.target, plan.people
    if plan.mechanism == "public":
        return float(people), ()
    part = query.part if isinstance(query, Grouped) and query.part.by else None
    if plan.mechanism == "midpoint":
        middle = target.middle(people)
        if part is None:
            return middle, ()
        no_group = leaves_groups_out(plan) and not everything
        return [] if no_group else [_row(plan, group, middle, ()) for group in part.groups], ()
    if part is None:
        (only,) = released
        return target.finish(only, people), only
    groups = shown(plan, released) if leaves_groups_out(plan) and not everything else part.groups
    each = ((group, released[part.places[group]]) for group in groups)
    rows = [_row(plan, group, target.finish(r, people), r) for group, r in each]
    return rows, tuple(released)


def _row(plan: Plan, group: Any, value: Answer, released: Sequence[Fraction]) -> dict[str, Any]:
    """The answer about one private group. Whether it has too few people is judged by what was released."""
    query, rmse = plan.query, plan.rmse
    assert isinstance(query, Grouped)
    if plan.target.tells_size:
        rmse, _ = plan.errors_of(released)
        few = rmse > midpoint_error(plan.target, 1) / 2
    else:
        few = isinstance(plan.target, Counted) and isinstance(value, float) and value < 2 * rmse
    return {**query.part.row(group), "value": value, "rmse": rmse, "few": few}


def run_algorithm(plan: Plan, rows: Any) -> Any:
    """What somebody's own algorithm returns.

    What it raises may quote the data, so that only its kind is told.
    """
    calibration, query = plan.calibration, plan.query
    assert isinstance(query, Algorithm) and isinstance(calibration, SampleCalibration)
    t = calibration.t * plan.relation.inner
    epsilon = inf if calibration.t == PUBLIC else nextafter(float(t) / MICRO, 0.0)  # a division may round up
    try:
        value = query.function(rows, epsilon)
        fault = "returned nothing" if value is None else ""
    except (Exception, SystemExit) as error:
        fault = f"raised a {type(error).__name__}"
    if fault:
        raise QueryError(
            f"the algorithm {query.name} {fault}. Its text is not shown, because it may quote the data; "
            "try it on made-up rows first. Whoever it was run on has lost their charge all the same."
        )
    return value
