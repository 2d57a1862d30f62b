"""Planning: from the Spec and the Query alone to a decision.

    choose.py           calibrate, predict, choose: `plan`
    plan.py             Plan: what was decided for one question or several, and what else there was
    choice.py           what was chosen for one question, and every mechanism that could have been
    assumptions.py      what a plan takes as public knowledge, in sentences
    released_errors.py  the errors of an answer, once it tells how many people it is about
    tasks.py            what mechanisms see of a question
    largest.py          what is predicted about the largest of many groups, and whether they are chosen first
    fingerprint.py      whether two plans are the same
    workload.py         several questions within one budget
    together.py         what several questions cost together, and their errors on one scale

Public groups have a Spec and a plan each: nobody is in two of them, so that everyone is charged for their own
group only (parallel composition, which holds under replace because who is where does not change).
"""

from typing import TypeAlias

from accord.planning.choice import NO_DATA, Candidate, Choice, by_level
from accord.planning.choose import (
    NAMED,
    PRIVATE_PEOPLE,
    PUBLIC_GROUPS,
    plan,
    plan_within,
    refusals,
    refuse_arguments,
    whole_share,
)
from accord.planning.fingerprint import digest_of, fingerprint_as_written
from accord.planning.plan import Plan
from accord.planning.tasks import task_of
from accord.planning.together import midpoint_error

WorkloadPlan: TypeAlias = Plan
GroupedPlan: TypeAlias = Plan
"""What plans of several questions, and of public groups, were called before."""

__all__ = [
    "NAMED",
    "NO_DATA",
    "PRIVATE_PEOPLE",
    "PUBLIC_GROUPS",
    "Candidate",
    "Choice",
    "GroupedPlan",
    "Plan",
    "WorkloadPlan",
    "by_level",
    "digest_of",
    "fingerprint_as_written",
    "midpoint_error",
    "plan",
    "plan_within",
    "refusals",
    "refuse_arguments",
    "task_of",
    "whole_share",
]
