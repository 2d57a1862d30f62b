"""What a plan takes as public knowledge, in sentences: nothing else can tell where its user got it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accord.statistics import Grouped
from accord.statistics.target_ranks import Quantiles

if TYPE_CHECKING:
    from accord.planning.plan import Plan


def assumptions_of(plan: Plan) -> list[str]:
    """All of them, of a plan for one question."""
    spec, query = plan.spec, plan.query
    sentences = [*plan.target.assumptions(), *_about_gap(plan)]
    if isinstance(plan.target, Quantiles):
        sentences += plan.target.about_draws(plan.draws_together)
    if isinstance(query, Grouped):
        sentences += query.part_assumptions(plan.chooses_first)
    sentences += [*plan.notes, _about_people(plan)]
    if spec.opted_out and not spec.is_expected:
        why = "opted out or have nothing left" if spec.is_rest else "opted out"
        whom = f"the other {spec.total:,}"
        if query.about_everyone:
            whom = f"all {plan.people:,}, with what the gap allows for those who are not read"
        sentences.append(f"{spec.opted_out:,} people {why} and are never read; the answer is about {whom}")
    return sentences


def _about_gap(plan: Plan) -> list[str]:
    """What is declared about levels and values."""
    gap, scale = plan.query.gap, plan.query.gap_scale
    if gap is None or scale is None:
        return []
    of_members = " among the people whom the answer is about" if plan.target.tells_size else ""
    differ = f"the {scale.compared} of any two levels{of_members} differ by at most {scale.text(gap)}"
    return [f"{differ}, as declared"]


def _about_people(plan: Plan) -> str:
    about, of_errors = plan.relation.about_spec, plan.relation.about_errors
    return f"{about}; {of_errors}" if of_errors and plan.target.assumes_presence else about
