"""Workloads: several questions planned together, from the Spec and the queries alone.

Neighbors  those of each question, one relation for all.
Charges    of one person add up over the questions ([J] Theorem 4), and the plan keeps Σ_k c_k(ε) ≤ ⌊share·ε⌋
           for every level ε.
Error      Σ_k weight_k·(rmse_k/rmse₀_k)², rmse₀_k being the error of an answer without data, so that units
           cancel.
Search     1. A share for each question. Its squared error as a function of its share is sampled, and the best
              split of 64 or more equal pieces found by dynamic programming. Then the shares are refined: near
              a share s the squared error is about a + b/s², and Σ weight_k·b_k/s_k² with Σs_k fixed is
              smallest at s_k ∝ (weight_k·b_k)^⅓.
           2. What clipping leaves is passed on. A question often charges a level less than its share (τ, t);
              each question in turn is planned again with everything that the others do not use, and the new
              plan is kept if its error is lower.
           The equal split is one of the plans compared and no later step raises the error, so it is never
           worse than that.
           3. Questions about sums may share one noise, a box (mechanisms/additive.py): everyone pays for all
              of them once, the largest of their charges. A block of such questions is planned like one
              question, with a share. All in one box, and the boxes that look best, are compared with the
              split, and taken where the error is lower. What needs no noise is left out of a box.

A report of missing values is a workload of two questions with stated parts of the share, and nothing to
search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from accord import budget
from accord.budget import IntArray, level_text
from accord.errors import PlanError
from accord.mechanisms.additive import BoxCalibration, reads_public_only
from accord.mechanisms.record import Calibration, Mechanism
from accord.planning.choose import plan_within
from accord.planning.plan import Plan
from accord.planning.together import cost_together, relative_error, total_error
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Grouped, Query, Workload, box, target_and_moves
from accord.statistics.target_sums import Additive
from accord.theory import FloatArray

Block: TypeAlias = tuple[int, ...]
"""Questions that share one noise, by their places; or one alone."""

_SAMPLED = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Shares at which the error of a question is looked at."""
_REFINED = 4
"""How many times shares are refined,"""
_STEP = 1.3
"""by what is gained with a share so many times larger."""
_ROUNDS = 4
"""How many times what is left is passed on, at most."""


def plan_workload(
    spec: Spec,
    workload: Workload,
    mechanism: str | Mechanism,
    share: int,
    relation: Relation,
    notes: tuple[str, ...],
) -> Plan:
    """Plan all questions together; see the module's docstring."""
    count = len(workload.queries)
    if share < count:
        raise PlanError(
            f"share={level_text(share)} is too little for {count} questions: each needs at least a "
            "millionth. Ask for a larger share."
        )

    def plan_one(k: int, affordable: IntArray, coordinates: int = 0) -> Plan:
        by = mechanism if k < len(workload.named) else "auto"
        return plan_within(
            spec, workload.queries[k], affordable, by, None, share, relation, notes, coordinates=coordinates
        )

    targets = [_boxable(query, relation) for query in workload.queries]
    questions = Questions(spec, workload, share, plan_one, targets)
    if workload.report_missing is not None:
        reported = max(1, int(workload.report_missing * share))
        plans = questions.plan_split([(0,), (1,)], [share - reported, reported])
        return Plan(spec, workload, share, relation, plans=dict(enumerate(plans)))
    best, equal = questions.search([(k,) for k in range(count)])
    if count > 1:
        for blocks in partitions(targets, workload.weights):
            with suppress(PlanError):  # by this mechanism, or with so little, nothing can share a noise
                plans, _ = questions.search(blocks)
                if total_error(plans, workload) < total_error(best, workload) * (1 - 1e-9):
                    best = plans
        best = tuple(replace(p, notes=(*p.notes, *_together(p, best))) for p in best)
    return Plan(spec, workload, share, relation, plans=dict(enumerate(best)), equal=equal)


def _boxable(query: Query, relation: Relation) -> Additive | None:
    """What a mechanism answers, if its noise may be shared with other questions; else None.

    Not of private groups, in two of which one person may change something.
    """
    target, moves = target_and_moves(query, relation)
    has_groups = isinstance(query, Grouped) and bool(query.part.by)
    if moves > 1 or has_groups or target.is_public or not isinstance(target, Additive):
        return None
    return target if target.box_spans else None


def _needs_no_noise(plan: Plan) -> bool:
    """Whether nobody is read, or only people who are public."""
    return not plan.reads_data or reads_public_only(plan.calibration.charges)


def _out_of_box(plan: Plan) -> Plan:
    """The same without a noise."""
    c = plan.calibration
    return plan.with_choice(calibration=Calibration(c.charges, c.weights, c.noise_variance, c.note))


def _in_box(plan: Plan, number: int) -> Plan:
    """The same in the box of this number."""
    assert isinstance(plan.calibration, BoxCalibration)
    return plan.with_choice(calibration=replace(plan.calibration, block=number))


def partitions(targets: Sequence[Additive | None], weights: Sequence[float]) -> Iterator[list[Block]]:
    """Blocks to compare: one box of all that can share a noise; and the boxes that look best.

    At share s a box has a noise of about W·V/s², W being the sum of its questions' weighted effects and V the
    variance of a coordinate; and Σ W·V/s² with Σs fixed is least at s ∝ (W·V)^⅓, (Σ(W·V)^⅓)³. So the best
    boxes of questions in the order of their effects are found by dynamic programming.
    """
    effects = {
        k: (weights[k] * sum(e * e for e in target.box_effects) / target.midpoint_error, target)
        for k, target in enumerate(targets)
        if target is not None
    }
    if len(effects) < 2:
        return
    alone = [(k,) for k in range(len(targets)) if k not in effects]
    yield [tuple(effects), *alone]
    order = sorted(effects, key=lambda k: effects[k][0] / len(effects[k][1].box_spans))
    best: list[tuple[float, list[Block]]] = [(0.0, [])]
    for end in range(1, len(order) + 1):
        choices = []
        for start in range(end):
            inside = order[start:end]
            choices.append((best[start][0] + _noise_of(inside, effects, weights), start))
        error, start = min(choices)
        best.append((error, [*best[start][1], tuple(sorted(order[start:end]))]))
    blocks = best[-1][1]
    if 1 < len(blocks) < len(order):
        yield [*blocks, *alone]


def _noise_of(
    inside: Sequence[int], effects: Mapping[int, tuple[float, Additive]], weights: Sequence[float]
) -> float:
    """(W·V)^⅓ of questions that share a noise, or of one alone."""
    if len(inside) == 1:
        target = effects[inside[0]][1]
        return float(np.cbrt(weights[inside[0]] * target.noise_variance / target.midpoint_error))
    coordinates = sum(len(effects[k][1].box_spans) for k in inside)
    return float(np.cbrt(sum(effects[k][0] for k in inside) * box.variance(coordinates)))


def _together(part: Plan, plans: tuple[Plan, ...]) -> Iterator[str]:
    """What a question is charged together with."""
    calibration = part.calibration
    if isinstance(calibration, BoxCalibration):
        boxed = (p.calibration for p in plans if isinstance(p.calibration, BoxCalibration))
        sharing = sum(each.block == calibration.block for each in boxed)
        yield (
            f"one of {sharing} questions that share one noise (a box of {calibration.coordinates} sums): "
            "everyone pays once for all of them, the largest of their charges"
        )
    yield (
        f"one of {len(plans)} questions that are charged together; "
        "no level is charged more than its share in all"
    )


@dataclass(frozen=True)
class Questions:
    """The questions of a workload, and how one of them is planned."""

    spec: Spec
    workload: Workload
    share: int
    plan_one: Callable[..., Plan]
    """Of a question, with what each level can afford; and how many sums share its noise."""
    targets: Sequence[Additive | None]
    """Of each question whose noise may be shared."""

    def search(self, blocks: Sequence[Block]) -> tuple[tuple[Plan, ...], float]:
        """The best plans for questions in these blocks, each with a share; and the error of equal shares."""
        share, count, workload = self.share, len(blocks), self.workload
        best = self.plan_split(blocks, [share // count] * count)
        equal = total_error(best, workload)
        if count == 1:
            return best, equal
        errors = [
            np.array([self.error(block, fraction * share) for fraction in _SAMPLED]) for block in blocks
        ]
        fractions = _best_split(errors, max(64, 4 * count))
        for _ in range(_REFINED):
            shares = [max(1, int(fraction * share)) for fraction in fractions]
            if sum(shares) <= share:
                try:
                    plans = self.plan_split(blocks, shares)
                except PlanError:
                    break
                if total_error(plans, workload) < total_error(best, workload):
                    best = plans
            gains = [
                max(self.error(block, s) - self.error(block, _STEP * s), 1e-12)
                for block, s in zip(blocks, shares, strict=True)
            ]
            b = np.array([gain * float(s) ** 2 for gain, s in zip(gains, shares, strict=True)])
            fractions = np.maximum(np.cbrt(b) / np.cbrt(b).sum(), 0.25 / 64 / count)
            fractions /= fractions.sum() * (1 + 1e-9)
        return self.pass_on(best, blocks), equal

    def plan_split(self, blocks: Sequence[Block], shares: Sequence[int]) -> tuple[Plan, ...]:
        """All questions, each block with its share."""
        plans: dict[int, Plan] = {}
        for number, (block, s) in enumerate(zip(blocks, shares, strict=True)):
            plans |= self.plan_block(block, budget.share(self.spec.micro, s), number)
        return tuple(plans[k] for k in sorted(plans))

    def plan_block(self, block: Block, affordable: IntArray, number: int) -> dict[int, Plan]:
        """One question; or several that share a noise.

        Those that need no noise, because nobody or only public people are read, are left out of the box.
        """
        if len(block) == 1:
            return {block[0]: self.plan_one(block[0], affordable)}
        inside = list(block)
        plans: dict[int, Plan] = {}
        while len(inside) > 1:
            coordinates = sum(len(target.box_spans) for k in inside if (target := self.targets[k]))
            shared = {k: self.plan_one(k, affordable, coordinates) for k in inside}
            noiseless = {k: _out_of_box(p) for k, p in shared.items() if _needs_no_noise(p)}
            if not noiseless:
                return plans | {k: _in_box(p, number) for k, p in shared.items()}
            plans |= noiseless
            inside = [k for k in inside if k not in noiseless]
        return plans | {k: self.plan_one(k, affordable) for k in inside}

    def error(self, block: Block, s: float) -> float:
        """Weighted relative error of a block at a share."""
        weights = self.workload.weights
        try:
            plans = self.plan_block(block, budget.share(self.spec.micro, max(1, int(s))), 0)
        except PlanError:  # so little that nobody can be read
            return sum(weights[k] for k in block) * 1e6
        return sum(weights[k] * relative_error(p) for k, p in plans.items())

    def pass_on(self, plans: tuple[Plan, ...], blocks: Sequence[Block]) -> tuple[Plan, ...]:
        """Plan each block again with everything that the others do not use; keep what is better."""
        current, weights = dict(enumerate(plans)), self.workload.weights
        affordable = budget.share(self.spec.micro, self.share)

        def error(block: Block, of: Mapping[int, Plan]) -> float:
            return sum(weights[k] * relative_error(of[k]) for k in block)

        for _ in range(_ROUNDS):
            improved = False
            errors = [error(block, current) for block in blocks]
            for number in sorted(range(len(blocks)), key=lambda n: -errors[n]):
                block = blocks[number]
                others = cost_together([p for k, p in current.items() if k not in block])
                remaining = budget.subtract(affordable, others)
                if not remaining.any():
                    continue
                try:
                    again = self.plan_block(block, remaining, number)
                except PlanError:  # some have nothing left, and this question takes everyone
                    continue
                if error(block, again) < error(block, current) * (1 - 1e-9) ** 2:
                    current |= again
                    improved = True
            if not improved:
                break
        return tuple(current[k] for k in sorted(current))


def _best_split(errors: list[FloatArray], pieces: int) -> FloatArray:
    """The split of so many equal pieces with the smallest total error, by dynamic programming.

    Every question has one piece at least. `errors` are those at `_SAMPLED`; between them it is a power law.
    """
    logs = np.log(np.arange(1, pieces + 1) / pieces)
    costs = [np.exp(np.interp(logs, np.log(_SAMPLED), np.log(np.maximum(e, 1e-300)))) for e in errors]
    totals, choices = np.concatenate(([0.0], np.full(pieces, np.inf))), []
    for cost in costs:
        # totals_new[u] = min over v ≥ 1 of totals[u − v] + cost[v]
        table = np.full((pieces + 1, pieces), np.inf)
        for v in range(1, pieces + 1):
            table[v:, v - 1] = totals[: pieces + 1 - v] + cost[v - 1]
        choices.append(table.argmin(axis=1) + 1)
        totals = table.min(axis=1)
    remaining, split = pieces, []
    for choice in reversed(choices):
        split.append(int(choice[remaining]))
        remaining -= split[-1]
    return np.array(split[::-1]) / pieces
