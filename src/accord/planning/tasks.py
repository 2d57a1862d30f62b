"""What mechanisms see of a question: its Task, made of public things."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from accord import budget
from accord.budget import MICRO, IntArray
from accord.mechanisms.additive import ChoosingCalibration, reads_public_only
from accord.mechanisms.record import Calibration, Task, frozen
from accord.planning.largest import part_for_choices
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Grouped, Query, Target, target_and_moves


def task_of(
    spec: Spec, query: Query, affordable: IntArray, t: int | str | None, under: Relation
) -> tuple[Task, IntArray, int]:
    """What mechanisms see of a question; which levels those are; and in how many answers a person may change.

    People whom the share leaves with nothing are not read.
    """
    target, moves = target_and_moves(query, under)
    return (*_task(spec, query, target, affordable, t, moves), moves)


def people_of(spec: Spec, query: Query) -> int:
    """How many people a question is about: all but those who opted out, or everyone."""
    return spec.total + (spec.opted_out if query.about_everyone else 0)


def _task(
    spec: Spec, query: Query, target: Target, affordable: IntArray, t: int | str | None, moves: int
) -> tuple[Task, IntArray]:
    people, total = spec.people, people_of(spec, query)
    groups = query.groups if isinstance(query, Grouped) else 1
    if groups > 1 and not target.adds_up:
        people = -(-spec.people // groups)  # as for groups of the same size
        total = int(people.sum()) + (total - spec.total)
    affordable = budget.divide(affordable, moves) if moves > 1 else affordable
    order = np.argsort(affordable, kind="stable")
    order = order[affordable[order] > 0]
    levels = frozen(affordable[order])
    task = Task(
        levels, people[order], total, target, t, target.variance, target.noise_variance, groups=groups
    )
    return task, order


@dataclass(frozen=True)
class ChoosingFirst:
    """What mechanisms see of the largest groups, if these are chosen first and counted then."""

    task: Task
    order: IntArray
    part: int
    shown: int
    most: int
    moves: int

    def calibration(self, of_sizes: Calibration) -> Calibration:
        """For the charges and weights of a mechanism."""
        if reads_public_only(of_sizes.charges):
            return of_sizes  # all sizes are known exactly
        note = f"{of_sizes.note}; {self.part / MICRO:.0%} of each charge chooses the groups"
        return ChoosingCalibration(
            of_sizes.charges,
            of_sizes.weights,
            of_sizes.noise_variance,
            note,
            self.shown,
            self.part,
            self.moves,
            self.most,
        )


def choosing_first(
    spec: Spec, query: Query, affordable: IntArray, t: int | str | None, under: Relation
) -> ChoosingFirst | None:
    """Whether the largest groups are better chosen first: by the question and the relation alone."""
    if not isinstance(query, Grouped) or query.part.largest is None:
        return None
    shown, most, moves = query.part.largest, query.part.at_most, under.group_moves
    part = part_for_choices(query.groups, shown, most, moves)
    if part is None:
        return None
    target, _ = target_and_moves(query, under)
    task, order = _task(spec, query, target, affordable, t, 1)
    scale = min(moves * most, shown) / (1 - part / MICRO)
    task = replace(task, noise_variance=target.noise_variance * scale**2)
    return ChoosingFirst(task, order, part, shown, most, moves)
