"""Workloads: several questions planned together, from the Spec and the queries alone.

Neighbors  as for each question: replace.
Charges    of one person add up over the questions ([J] Theorem 4), and the plan keeps Σ_k c_k(ε) ≤ ⌊share·ε⌋
           for every level ε.
Total      error Σ_k weight_k·(rmse_k/idle_k)², idle_k being the error of an answer without data, so that
           units cancel.
Search     1. A share for each question. Its squared error as a function of its share is sampled, and the best
           split of 64 or more equal pieces
              found by dynamic programming; then the shares are refined: near a share s the squared error is
              about a + b/s², and Σ weight_k·b_k/s_k² with Σs_k fixed is smallest at s_k ∝ (weight_k·b_k)^⅓.
           2. What clipping leaves is passed on. A question often charges a level less than its share (τ, t);
              each question in turn is planned again with everything that the others do not use, and the new
              plan is kept if its error is lower.
           The equal split is one of the plans compared and no later step raises the total, so it is never
           worse than that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accord import budget
from accord.budget import IntArray, level_text
from accord.errors import PlanError
from accord.planning.choose import plan_within
from accord.planning.plan import Plan, relative_error
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Workload
from accord.theory import FloatArray

_SAMPLED = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
_REFINED = 4
_ROUNDS = 4
_STEP = 1.3


def plan_workload(
    spec: Spec, workload: Workload, mechanism: str, share: int, relation: Relation, notes: tuple[str, ...]
) -> Plan:
    """Plan all questions together; see the module's docstring."""
    count = len(workload.queries)
    whole = budget.share(spec.micro, share)

    def part(k: int, affordable: IntArray) -> Plan:
        return plan_within(spec, workload.queries[k], affordable, mechanism, None, share, relation, notes)

    def split(shares: list[int]) -> tuple[Plan, ...]:
        return tuple(part(k, budget.share(spec.micro, s)) for k, s in enumerate(shares))

    if share < count:
        raise PlanError(
            f"share={level_text(share)} is too little for {count} questions: each needs at least a "
            "millionth. Ask for a larger share."
        )
    best = split([share // count] * count)
    equal = _total(best, workload)

    def error(k: int, s: float) -> float:
        """Squared error of question k at a share, as a fraction."""
        try:
            return _error(part(k, budget.share(spec.micro, max(1, int(s)))), workload, k)
        except PlanError:  # so little that nobody can be read
            return workload.weights[k] * 1e6

    if count > 1:
        fractions = _cheapest(
            [np.array([error(k, f * share) for f in _SAMPLED]) for k in range(count)], max(64, 4 * count)
        )
        for _ in range(_REFINED):
            shares = [max(1, int(f * share)) for f in fractions]
            if sum(shares) <= share:
                try:
                    found = split(shares)
                except PlanError:
                    break
                if _total(found, workload) < _total(best, workload):
                    best = found
            noise = np.array(
                [max(error(k, s) - error(k, _STEP * s), 1e-12) * float(s) ** 2 for k, s in enumerate(shares)]
            )
            fractions = np.maximum(np.cbrt(noise) / np.cbrt(noise).sum(), 0.25 / 64 / count)
            fractions /= fractions.sum() * (1 + 1e-9)
        best = pass_on(best, whole, part, workload)
    return Plan(spec, workload, share, relation, plans=dict(enumerate(best)), equal=equal)


def pass_on(plans: tuple[Plan, ...], whole: IntArray, part: Any, workload: Workload) -> tuple[Plan, ...]:
    """Plan each question again with everything that the others leave; keep what is better."""
    kept = list(plans)
    for _ in range(_ROUNDS):
        improved = False
        for k in sorted(range(len(kept)), key=lambda k: -_error(kept[k], workload, k)):
            others = budget.add(*(p.cost for j, p in enumerate(kept) if j != k))
            left = budget.subtract(whole, others)
            if not left.any():
                continue
            found = part(k, left)
            if found.rmse < kept[k].rmse * (1 - 1e-9):
                kept[k], improved = found, True
        if not improved:
            break
    note = (
        f"one of {len(kept)} questions that are charged together; "
        "no level is charged more than its share in all"
    )
    return tuple(replace(p, notes=(*p.notes, note)) for p in kept)


def _cheapest(errors: list[FloatArray], pieces: int) -> FloatArray:
    """The split of so many equal pieces with the smallest total, one piece at least for each, by dynamic
    programming.
    """
    at = np.log(np.arange(1, pieces + 1) / pieces)
    costs = [np.exp(np.interp(at, np.log(_SAMPLED), np.log(np.maximum(e, 1e-300)))) for e in errors]
    totals, choices = np.concatenate(([0.0], np.full(pieces, np.inf))), []
    for cost in costs:
        # totals_new[u] = min over v ≥ 1 of totals[u − v] + cost[v]
        table = np.full((pieces + 1, pieces), np.inf)
        for v in range(1, pieces + 1):
            table[v:, v - 1] = totals[: pieces + 1 - v] + cost[v - 1]
        choices.append(table.argmin(axis=1) + 1)
        totals = table.min(axis=1)
    left, taken = pieces, []
    for choice in reversed(choices):
        taken.append(int(choice[left]))
        left -= taken[-1]
    return np.array(taken[::-1]) / pieces


def _error(plan: Plan, workload: Workload, k: int) -> float:
    return workload.weights[k] * relative_error(plan)


def _total(plans: tuple[Plan, ...], workload: Workload) -> float:
    return sum(_error(plan, workload, k) for k, plan in enumerate(plans))
