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

A report of missing values is a workload of two questions with stated parts of the share, and nothing to
search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from accord import budget
from accord.budget import IntArray, level_text
from accord.errors import PlanError
from accord.planning.choose import plan_within
from accord.planning.plan import Plan, relative_error, total_error
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Workload
from accord.theory import FloatArray

_SAMPLED = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Shares at which the error of a question is looked at."""
_REFINED = 4
"""How many times shares are refined,"""
_STEP = 1.3
"""by what is gained with a share so many times larger."""
_ROUNDS = 4
"""How many times what is left is passed on, at most."""


def plan_workload(
    spec: Spec, workload: Workload, mechanism: str, share: int, relation: Relation, notes: tuple[str, ...]
) -> Plan:
    """Plan all questions together; see the module's docstring."""
    count = len(workload.queries)
    if share < count:
        raise PlanError(
            f"share={level_text(share)} is too little for {count} questions: each needs at least a "
            "millionth. Ask for a larger share."
        )

    def plan_one(k: int, affordable: IntArray) -> Plan:
        by = mechanism if k < len(workload.named) else "auto"
        return plan_within(spec, workload.queries[k], affordable, by, None, share, relation, notes)

    def plan_split(shares: list[int]) -> tuple[Plan, ...]:
        return tuple(plan_one(k, budget.share(spec.micro, s)) for k, s in enumerate(shares))

    def error(k: int, s: float) -> float:
        """Weighted relative error of question k at a share."""
        try:
            plan = plan_one(k, budget.share(spec.micro, max(1, int(s))))
        except PlanError:  # so little that nobody can be read
            return workload.weights[k] * 1e6
        return workload.weights[k] * relative_error(plan)

    if workload.report_missing is not None:
        reported = max(1, int(workload.report_missing * share))
        plans = plan_split([share - reported, reported])
        return Plan(spec, workload, share, relation, plans=dict(enumerate(plans)))
    best = plan_split([share // count] * count)
    equal = total_error(best, workload)
    if count > 1:
        errors = [np.array([error(k, fraction * share) for fraction in _SAMPLED]) for k in range(count)]
        fractions = _best_split(errors, max(64, 4 * count))
        for _ in range(_REFINED):
            shares = [max(1, int(fraction * share)) for fraction in fractions]
            if sum(shares) <= share:
                try:
                    plans = plan_split(shares)
                except PlanError:
                    break
                if total_error(plans, workload) < total_error(best, workload):
                    best = plans
            gains = [max(error(k, s) - error(k, _STEP * s), 1e-12) for k, s in enumerate(shares)]
            b = np.array([gain * float(s) ** 2 for gain, s in zip(gains, shares, strict=True)])
            fractions = np.maximum(np.cbrt(b) / np.cbrt(b).sum(), 0.25 / 64 / count)
            fractions /= fractions.sum() * (1 + 1e-9)
        best = pass_on(best, budget.share(spec.micro, share), plan_one, workload)
    return Plan(spec, workload, share, relation, plans=dict(enumerate(best)), equal=equal)


def pass_on(
    plans: tuple[Plan, ...],
    affordable: IntArray,
    plan_one: Callable[[int, IntArray], Plan],
    workload: Workload,
) -> tuple[Plan, ...]:
    """Plan each question again with everything that the others do not use; keep what is better."""
    current = list(plans)
    for _ in range(_ROUNDS):
        improved = False
        errors = [weight * relative_error(p) for weight, p in zip(workload.weights, current, strict=True)]
        for k in sorted(range(len(current)), key=lambda k: -errors[k]):
            others = budget.add(*(p.cost for j, p in enumerate(current) if j != k))
            remaining = budget.subtract(affordable, others)
            if not remaining.any():
                continue
            again = plan_one(k, remaining)
            if again.rmse < current[k].rmse * (1 - 1e-9):
                current[k], improved = again, True
        if not improved:
            break
    note = (
        f"one of {len(current)} questions that are charged together; "
        "no level is charged more than its share in all"
    )
    return tuple(replace(p, notes=(*p.notes, note)) for p in current)


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
