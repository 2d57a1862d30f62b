"""The choice: how a query will be answered, decided from the Spec and the Query alone.

`plan` cannot see values: its signature has no room for them. It calibrates every mechanism, predicts its
    error, refuses
with a reason what cannot be done, and chooses. All of that depends on public things only, so the choice tells
nothing.
"""

from __future__ import annotations

import numpy as np

from accord import budget, relation
from accord.budget import MICRO, IntArray, level_text, to_micro
from accord.errors import PlanError, QueryError, did_you_mean
from accord.mechanisms import ALL
from accord.mechanisms.prediction import Fixed, Prediction
from accord.mechanisms.record import Calibration, Mechanism, Refused, Task, frozen
from accord.planning.plan import Candidate, Choice, Plan, midpoint_error
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Grouped, Query, Target, Workload, answered

NAMED = ("max", "mean", "min", "best")
"""What t may be called for `sample`."""
NEARLY = 1.05
"""`threshold` is taken where its error is within this factor of the best: it is easier to audit and to
explain.
"""
_TOO_LITTLE = (
    "share={} leaves everyone with less than a millionth. The largest level is {}; ask for a larger share."
)
PUBLIC_GROUPS = (
    "public groups have levels of their own, which a Spec does not tell, and are not part of a workload. "
    "Plan each by itself with table.plan(query)."
)
PRIVATE_PEOPLE = (
    "with neighbors='add-remove' who is in the table is private, and so is who is in a group. "
    "Leave membership='public' out."
)


def plan(
    spec: Spec,
    query: Query | Workload,
    mechanism: str = "auto",
    share: float = 1.0,
    *,
    t: float | str | None = None,
    neighbors: str = "replace",
    notes: tuple[str, ...] = (),
) -> Plan:
    """Compare every mechanism and choose one; of a workload, for every question.

    Args:
        spec: the public levels, or what a ledger says is left of them.
        query: the question, or a workload of several.
        mechanism: a name, or "auto" for the lowest predicted error.
        share: the fraction of everyone's level that may be spent.
        t: the level of `threshold` or `sample` (there also "max", "mean", "min"); the best one if left out.
        neighbors: what may change between two tables that must look alike.
        notes: what else is taken for granted, to be shown with the plan.

    Raises:
        PlanError: nothing answers this as asked.

    >>> import accord
    >>> spec = accord.Spec.from_groups({0.01: 500, 1: 400, float("inf"): 100})
    >>> p = plan(spec, accord.mean("income", bounds=(0, 200_000)))
    >>> p.mechanism, {level: round(charge, 3) for level, charge in p.charges.items()}
    ('threshold', {0.01: 0.0, 1.0: 1.0, inf: 1.0})
    """
    if not isinstance(spec, Spec):
        raise PlanError(
            f"a plan is made from a Spec, not from {type(spec).__name__}. Call table.spec(), Spec.of or "
            "Spec.from_groups."
        )
    if not isinstance(query, Query | Workload):
        raise QueryError(
            f"a plan is made for a query, not for {type(query).__name__}. Make one with accord.mean or its "
            "siblings."
        )
    refuse_arguments(query, mechanism, share, t, neighbors)
    if spec.total == 0:
        raise PlanError(
            "nobody is left to ask: "
            + (f"all {spec.opted_out} people opted out." if spec.opted_out else "the table has no people.")
            + " A release needs at least one person with a level above 0."
        )
    part = whole_share(share)
    if isinstance(query, Workload):
        from accord.planning.workload import plan_workload

        return plan_workload(spec, query, mechanism, part, relation.named(neighbors), notes)
    level = None if t is None else _threshold(t, mechanism)
    affordable = budget.share(spec.micro, part)
    return plan_within(spec, query, affordable, mechanism, level, part, relation.named(neighbors), notes)


def refuse_arguments(
    query: Query | Workload, mechanism: str, share: float, t: float | str | None, neighbors: str
) -> None:
    """Refuse what cannot be planned whatever the levels are: before anything is read.

    Raises:
        PlanError: no such mechanism, share, t or neighbors, or a mechanism that does not answer such a
        question.
    """
    names = [m.name for m in ALL]
    if mechanism not in ("auto", *names):
        raise PlanError(f"there is no mechanism {mechanism!r}: {did_you_mean(mechanism, ['auto', *names])}")
    if neighbors not in [r.name for r in relation.ALL]:
        raise PlanError(
            f"neighbors={neighbors!r} is not offered. There is 'replace' (one person's value changes) and "
            "'add-remove' (one person comes or goes)."
        )
    if t is not None and mechanism not in ("threshold", "sample"):
        raise PlanError(
            "t= is the level of the mechanisms threshold and sample. Add mechanism='threshold' or 'sample', "
            "or leave t= out."
        )
    whole_share(share)
    if t is not None:
        if isinstance(query, Workload):
            raise PlanError("t= is for one question. Leave it out: a workload finds the best one for each.")
        _threshold(t, mechanism)
    asked = query.queries if isinstance(query, Workload) else (query,)
    if any(isinstance(one, Grouped) and one.part.public for one in asked):
        if isinstance(query, Workload):
            raise PlanError(PUBLIC_GROUPS)
        if not relation.named(neighbors).people_are_public:
            raise QueryError(PRIVATE_PEOPLE)
    if mechanism != "auto":
        for one in asked:
            _refuse_mechanism(one, mechanism, neighbors)


def _refuse_mechanism(query: Query, mechanism: str, neighbors: str) -> None:
    """Refuse a mechanism that does not answer such a question under such neighbors."""
    reasons = refusals(query, neighbors)
    if why := reasons[mechanism]:
        asked = query.query if isinstance(query, Grouped) and query.part.public else query
        others = ", ".join(name for name, against in reasons.items() if not against)
        raise PlanError(
            f"{mechanism} cannot answer the {asked.label}: {why}. Use one of {others}, or 'auto'."
        )


def refusals(query: Query, neighbors: str) -> dict[str, str]:
    """Why each mechanism does not answer such a question, whatever the levels are; empty if it may."""
    if isinstance(query, Grouped) and query.part.public:
        return refusals(query.query, neighbors)
    target, moves = answered(query, relation.named(neighbors))
    return {m.name: _reason_against(m, target, moves) for m in ALL}


def _reason_against(mechanism: Mechanism, target: Target, moves: int) -> str:
    """Why a mechanism does not answer such a question, whatever the levels are; empty if it may."""
    if target.relation not in mechanism.relations:
        moving = ", and that somebody moves between private groups takes add-remove" if moves > 1 else ""
        return f"proves neighbors {' and '.join(r.name for r in mechanism.relations)} only{moving}"
    try:
        mechanism.method(target)
    except Refused as why:
        return str(why)
    return ""


def plan_within(
    spec: Spec,
    query: Query,
    affordable: IntArray,
    mechanism: str,
    t: int | str | None,
    share: int,
    under: Relation,
    notes: tuple[str, ...] = (),
    among: tuple[Mechanism, ...] = ALL,
) -> Plan:
    """A plan that charges nobody of a level more than is `affordable` for it, all in millionths.

    `among`: the mechanisms of which to choose.
    """
    if isinstance(query, Grouped) and query.part.public:
        raise PlanError(PUBLIC_GROUPS)
    target, moves = answered(query, under)
    people, total = spec.people, spec.total
    if isinstance(query, Grouped) and query.groups > 1 and not target.adds_up:
        people = -(-spec.people // query.groups)  # as for groups of the same size
        total = int(people.sum())
    affordable = budget.divide(affordable, moves) if moves > 1 else affordable
    order = np.argsort(affordable, kind="stable")
    order = order[affordable[order] > 0]
    if order.size == 0:
        raise PlanError(_TOO_LITTLE.format(level_text(share), level_text(int(spec.micro[-1]))))
    task = Task(
        frozen(affordable[order]), people[order], total, target, t, target.variance, target.noise_variance
    )
    candidates = tuple(_candidate(m, task, spec, order, moves) for m in among)
    chosen, reason = _choose(candidates, query, target, spec, mechanism)
    if isinstance(chosen, Candidate):
        assert chosen.calibration is not None and chosen.prediction is not None
        name, calibration, prediction = chosen.mechanism, chosen.calibration, chosen.prediction
    else:
        nobody = np.zeros(spec.micro.size)
        name, calibration = chosen, Calibration(nobody.astype(np.int64), nobody, 0.0, reason)
        prediction = _without_data(chosen, target, spec.total)
    choice = Choice(name, target, calibration, prediction, candidates, reason, moves)
    return Plan(spec, query, share, under, choice, notes=notes)


def _candidate(mechanism: Mechanism, task: Task, spec: Spec, order: IntArray, moves: int) -> Candidate:
    if against := _reason_against(mechanism, task.target, moves):
        return Candidate(mechanism.name, against, spec, None, None)
    method = mechanism.method(task.target)
    try:
        calibration = method.calibrate(task)
        prediction = method.predict(task, calibration)
    except Refused as why:
        return Candidate(mechanism.name, str(why), spec, None, None)
    if not _is_everyone(order, spec):
        calibration = calibration.placed(order, spec.micro.size)
    return Candidate(mechanism.name, calibration.note, spec, calibration, prediction, moves)


def _is_everyone(order: IntArray, spec: Spec) -> bool:
    """Whether all levels are read, in their order."""
    return order.size == spec.micro.size and bool((order[1:] > order[:-1]).all())


def _choose(
    candidates: tuple[Candidate, ...], query: Query, target: Target, spec: Spec, mechanism: str
) -> tuple[Candidate | str, str]:
    """A candidate, or the name of an answer that needs no data; with the reason."""
    if mechanism != "auto":
        chosen = next(c for c in candidates if c.mechanism == mechanism)
        if chosen.rmse is None:
            others = ", ".join(c.mechanism for c in candidates if c.rmse is not None)
            raise PlanError(
                f"{mechanism} cannot answer the {query.label}: {chosen.note}."
                + (f" Use one of {others}, or 'auto'." if others else " Give another t.")
            )
        return chosen, "as asked for"
    if target.is_public:
        return "public", "the number of people is public: nothing is read and nobody is charged"
    unbiased = [c for c in candidates if c.prediction is not None and c.prediction.bias_bound is not None]
    best = min(unbiased, key=lambda c: c.rmse or 0.0)
    assert best.rmse is not None
    if best.rmse > midpoint_error(target, spec.total):
        return "midpoint", (
            f"no mechanism is expected to beat the middle of what is possible (the best, {best.mechanism}, "
            "has an error of "
            f"{best.rmse:.4g}); it is returned, and nobody is charged"
        )
    simple = next((c for c in candidates if c.mechanism == "threshold"), best)
    if simple.rmse is not None and simple.mechanism != best.mechanism and simple.rmse <= NEARLY * best.rmse:
        return (
            simple,
            f"its error is within 5 % of the lowest ({best.mechanism}), and a single threshold is easier to "
            "audit and to explain",
        )
    return best, "lowest predicted error"


def _without_data(name: str, target: Target, people: int) -> Prediction:
    if name == "public":
        value = float(people)
        return Prediction(0.0, 0.0, None, Fixed((value, value)))
    error = midpoint_error(target, people)
    return Prediction(error, error, None, Fixed(target.possible(people)))


def whole_share(share: float) -> int:
    """In millionths, rounded down."""
    try:
        part = int(to_micro(share))
    except (TypeError, ValueError):
        part = 0
    if not 0 < part <= MICRO:
        raise PlanError(
            f"share={share!r} is not a fraction of a level. Give a number above 0 (at least a millionth) and "
            "at most 1."
        )
    return part


def _threshold(t: float | str, mechanism: str) -> int | str:
    if t == "best" or (mechanism == "sample" and t in NAMED):
        return str(t)
    try:
        micro = int(to_micro(t))
    except (TypeError, ValueError):
        micro = 0
    if micro == 0:
        raise PlanError(
            f"t={t!r} is not a level. Give a number of at least a millionth, or inf for public people only"
            + (f", or one of {', '.join(NAMED)}." if mechanism == "sample" else ".")
        )
    return micro
