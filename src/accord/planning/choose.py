"""The choice: how a query will be answered, decided from the Spec and the Query alone.

`plan` cannot see values: its signature has no room for them. It calibrates every mechanism, predicts its
error, refuses with a reason what cannot be done, and chooses. All of that depends on public things only, so
that the choice tells nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from accord import budget, relation
from accord.budget import MICRO, IntArray, level_text, to_micro
from accord.errors import PlanError, QueryError, did_you_mean
from accord.mechanisms import ALL, named
from accord.mechanisms.prediction import FixedInterval, Prediction
from accord.mechanisms.record import Calibration, Mechanism, Refused, Task
from accord.planning.choice import Candidate, Choice
from accord.planning.plan import Plan
from accord.planning.tasks import ChoosingFirst, choosing_first, people_of, task_of
from accord.planning.together import midpoint_error
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Grouped, Query, Target, Workload, reporting_missing, target_and_moves
from accord.statistics.box import Share
from accord.statistics.declared import described
from accord.statistics.query import A

_LOG = logging.getLogger("accord")
NAMED = ("max", "mean", "min", "best")
"""What t may be called for `sample`."""
NEARLY = 1.05
"""`threshold` is taken where its error is at most so many times the lowest: it is easier to explain."""
_TOO_LITTLE = (
    "share={} leaves everyone with less than a millionth. The largest level is {}; ask for a larger share."
)
PUBLIC_GROUPS = (
    "public groups have levels of their own, which a Spec does not tell, and are not part of a workload. "
    "Plan each by itself with table.plan(query)."
)
PRIVATE_PEOPLE = (
    "with neighbors={!r} who is in the table is private, and so is who is in a group. "
    "Leave membership='public' out."
)


def plan(
    spec: Spec,
    query: Query[A] | Workload[A],
    mechanism: str | Mechanism = "auto",
    share: float = 1.0,
    *,
    t: float | str | None = None,
    report_missing: float | None = None,
    neighbors: str | None = None,
    notes: tuple[str, ...] = (),
) -> Plan[A]:
    """Compare every mechanism and choose one; of a workload, for every question.

    Args:
        spec: the public levels, or what a ledger says is left of them.
        query: the question, or a workload of several.
        mechanism: a name, or "auto" for the lowest predicted error; or one of your own (`accord.mechanism`).
        share: the fraction of everyone's level that may be spent.
        t: the level of `threshold` or `sample` (there also "max", "mean", "min"); the best one if left out.
        report_missing: the part of the charge that is spent on how many people have no readable value, as a
            second question of a workload.
        neighbors: what may change between two tables that must look alike; "replace" if left out, or
            "private-levels" if the spec is what is expected of a table with private levels.
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
            f"a plan is made from a Spec, not from {type(spec).__name__}. "
            "Call table.spec(), Spec.of or Spec.from_groups."
        )
    query = described(query, {})
    if not isinstance(query, Query | Workload):
        raise QueryError(
            f"a plan is made for a query, not for {type(query).__name__}. "
            "Make one with accord.mean or its siblings; several together are accord.workload([…])."
        )
    if report_missing is not None:
        query = reporting_missing(query, report_missing)
    if neighbors is None:
        neighbors = (relation.PRIVATE_LEVELS if spec.is_expected else relation.REPLACE).name
    refuse_arguments(query, mechanism, share, t, neighbors)
    if spec.total == 0:
        why = f"all {spec.opted_out} people opted out" if spec.opted_out else "the table has no people"
        raise PlanError(
            f"nobody is left to ask: {why}. A release needs at least one person with a level above 0."
        )
    fraction, under = whole_share(share), relation.named(neighbors)
    if not (under.levels_are_public or spec.is_expected):
        spec = spec.as_expected()
    if isinstance(query, Workload):
        from accord.planning.workload import plan_workload

        decided = plan_workload(spec, query, mechanism, fraction, under, notes)
    else:
        level = None if t is None else _whole_t(t, str(mechanism))
        affordable = budget.share(spec.micro, fraction)
        decided = plan_within(spec, query, affordable, mechanism, level, fraction, under, notes)
        declaring = _about_declaring(decided, affordable, level)
        decided = replace(decided, notes=(*decided.notes, *declaring))
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("planned %r, charges %s", decided, budget.charges_text(spec.micro, decided.cost))
    return decided


def _about_declaring(decided: Plan, affordable: IntArray, t: int | str | None) -> tuple[str, ...]:
    """What it would gain to declare that no value is missing, by the mechanism that was chosen."""
    query = decided.query.with_all_values()
    if query is None:
        return ()
    among: tuple[Mechanism, ...] = ALL
    mechanism = "auto"
    if decided.reads_data:  # one alone: that is a tenth of the work
        chosen = decided.of_one.own or named(decided.mechanism)
        among, mechanism = (chosen,), chosen.name
    try:
        sharper = plan_within(
            decided.spec, query, affordable, mechanism, t, decided.share, decided.relation, among=among
        )
    except PlanError:
        return ()
    if sharper.rmse > 0.995 * decided.rmse:
        return ()
    return (
        "declaring missing='none', if no value is missing, would lower the predicted error from "
        f"{decided.rmse:.4g} to about {sharper.rmse:.4g}",
    )


def refuse_arguments(
    query: Query | Workload,
    mechanism: str | Mechanism,
    share: float,
    t: float | str | None,
    neighbors: str,
) -> None:
    """Refuse what cannot be planned whatever the levels are: before anything is read.

    Raises:
        PlanError: no such mechanism, share, t or neighbors, or a mechanism that does not answer the question.
    """
    names = [m.name for m in ALL]
    if not isinstance(mechanism, Mechanism) and mechanism not in ("auto", *names):
        raise PlanError(f"there is no mechanism {mechanism!r}: {did_you_mean(mechanism, ['auto', *names])}")
    if neighbors not in [r.name for r in relation.ALL]:
        raise PlanError(f"neighbors={neighbors!r} is not offered. There is {relation.offered()}.")
    if t is not None and mechanism not in ("threshold", "sample"):
        raise PlanError(
            "t= is the level of the mechanisms threshold and sample. "
            "Add mechanism='threshold' or 'sample', or leave t= out."
        )
    whole_share(share)
    if t is not None:
        if isinstance(query, Workload):
            raise PlanError("t= is for one question. Leave it out: a workload finds the best one for each.")
        _whole_t(t, str(mechanism))
    queries = query.queries if isinstance(query, Workload) else (query,)
    if any(_has_public_groups(q) for q in queries):
        if isinstance(query, Workload):
            raise PlanError(PUBLIC_GROUPS)
        if not relation.named(neighbors).people_are_public:
            raise QueryError(PRIVATE_PEOPLE.format(neighbors))
    if any(q.about_everyone for q in queries) and not relation.named(neighbors).levels_are_public:
        raise PlanError(
            "about='everyone' needs the number of people who opted out, and where levels are private nobody "
            "knows it. Leave it out: the answer is about those who are read."
        )
    if mechanism != "auto":
        for q in query.named if isinstance(query, Workload) else queries:
            _refuse_mechanism(q, mechanism, neighbors)


def _has_public_groups(query: Query) -> bool:
    return isinstance(query, Grouped) and query.part.public


def _refuse_mechanism(query: Query, mechanism: str | Mechanism, neighbors: str) -> None:
    """Refuse a mechanism that does not answer such a question under such neighbors."""
    if isinstance(query, Grouped) and query.part.public:
        query = query.query
    asked = named(mechanism)
    if why := _reason_against(asked, query, relation.named(neighbors)):
        others = ", ".join(name for name, against in refusals(query, neighbors).items() if not against)
        raise PlanError(
            f"{asked.name} cannot answer the {query.label}: {why}. Use one of {others}, or 'auto'."
        )


def refusals(query: Query, neighbors: str) -> dict[str, str]:
    """Why each mechanism does not answer such a question, whatever the levels are; empty if it may."""
    if isinstance(query, Grouped) and query.part.public:
        return refusals(query.query, neighbors)
    return {m.name: _reason_against(m, query, relation.named(neighbors)) for m in ALL}


def _reason_against(mechanism: Mechanism, query: Query, under: Relation) -> str:
    """Why a mechanism does not answer such a question, whatever the levels are; empty if it may."""
    target, _ = target_and_moves(query, under)
    reason = ""
    if target.relation not in mechanism.relations:
        reason = f"proves neighbors {' and '.join(r.name for r in mechanism.relations)} only"
        if target.relation != under:
            between = (
                "moves between private groups" if isinstance(query, Grouped) else "may have a value or not"
            )
            reason += f", and that somebody {between} takes add-remove"
    else:
        try:
            mechanism.method(target)
        except Refused as why:
            reason = str(why)
    if not reason and query.gap is None and mechanism.needs_gap:
        return "needs gap=, how far levels may go with values, at most, as is publicly known"
    if not reason and query.gap is not None and not mechanism.method(target).bounds_bias:
        return "has no error that is known where levels go with values"
    if reason and (sharper := query.with_all_values()) and not _reason_against(mechanism, sharper, under):
        reason += "; declare missing='none' if no value is missing"
    return reason


def plan_within(
    spec: Spec,
    query: Query,
    affordable: IntArray,
    mechanism: str | Mechanism,
    t: int | str | None,
    share: int,
    under: Relation,
    notes: tuple[str, ...] = (),
    among: tuple[Mechanism, ...] = ALL,
    coordinates: int = 0,
) -> Plan:
    """A plan that charges nobody of a level more than is `affordable` for it, all in millionths.

    `among`: the mechanisms of which to choose; one of somebody's own is compared with them.
    `coordinates`: of the box whose one noise it shares with other questions; 0: it has its own.
    """
    if _has_public_groups(query):
        raise PlanError(PUBLIC_GROUPS)
    own = mechanism if isinstance(mechanism, Mechanism) else None
    asked_for = own.name if own else str(mechanism)
    task, order, moves = task_of(spec, query, affordable, t, under)
    if order.size == 0:
        raise PlanError(_TOO_LITTLE.format(level_text(share), level_text(int(spec.micro[-1]))))
    target = task.target
    if coordinates:
        shared = Share(coordinates, target.box_effects).variance
        task = replace(task, coordinates=coordinates, noise_variance=shared)
    choosing = choosing_first(spec, query, affordable, t, under)
    candidates = tuple(
        _candidate(m, task, spec, order, moves, _reason_against(m, query, under), choosing)
        for m in (among if own is None else (*among, own))
        if query.gap is not None or not m.needs_gap
    )
    people = people_of(spec, query)
    chosen, reason = _choose(candidates, query, target, people, asked_for)
    if isinstance(chosen, Candidate):
        assert chosen.calibration is not None and chosen.prediction is not None
        name, calibration, prediction = chosen.mechanism, chosen.calibration, chosen.prediction
        moves = chosen.times
    else:
        nobody = np.zeros(spec.micro.size)
        name, calibration = chosen, Calibration(nobody.astype(np.int64), nobody, 0.0, reason)
        prediction = _without_data(chosen, target, people)
    choice = Choice(name, target, calibration, prediction, candidates, reason, moves, own)
    return Plan(spec, query, share, under, choice, notes=notes)


def _candidate(
    mechanism: Mechanism,
    task: Task,
    spec: Spec,
    order: IntArray,
    moves: int,
    against: str,
    choosing: ChoosingFirst | None = None,
) -> Candidate:
    if against:
        return Candidate(mechanism.name, against, spec, None, None)
    method = mechanism.method(task.target)
    if not method.shares_noise:
        choosing = None
    if choosing is not None:
        task, order, moves = choosing.task, choosing.order, 1
    if task.coordinates and not method.shares_noise:
        return Candidate(mechanism.name, "cannot share one noise with other questions", spec, None, None)
    try:
        calibration = method.calibrate(task)
        if choosing is not None:
            calibration = choosing.calibration(calibration)
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
    candidates: tuple[Candidate, ...], query: Query, target: Target, people: int, mechanism: str
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
    if not unbiased:
        names = {c.note: [o.mechanism for o in candidates if o.note == c.note] for c in candidates}
        why = "; ".join(f"{note} ({', '.join(those)})" for note, those in names.items())
        raise PlanError(
            f"no mechanism answers the {query.label} with neighbors={target.relation.name!r}. "
            f"Each says why: {why}. Ask for something else, or with other neighbors."
        )
    best = min(unbiased, key=lambda c: c.rmse or 0.0)
    assert best.rmse is not None
    if best.rmse > midpoint_error(target, target.relation.most_people(people)):
        return "midpoint", (
            "no mechanism is expected to beat the middle of what is possible "
            f"(the best, {best.mechanism}, has an error of {best.rmse:.4g}); "
            "it is returned, and nobody is charged"
        )
    simple = next((c for c in candidates if c.mechanism == "threshold"), best)
    if simple.rmse is not None and simple.mechanism != best.mechanism and simple.rmse <= NEARLY * best.rmse:
        return simple, (
            f"its error is within 5 % of the lowest ({best.mechanism}), "
            "and a single threshold is easier to audit and to explain"
        )
    return best, "lowest predicted error"


def _without_data(name: str, target: Target, people: int) -> Prediction:
    if name == "public":
        value = float(people)
        return Prediction(0.0, 0.0, None, FixedInterval((value, value)))
    error = midpoint_error(target, people)
    return Prediction(error, error, None, FixedInterval(target.possible(people)))


def whole_share(share: float) -> int:
    """A share in millionths, rounded down.

    Raises:
        PlanError: it is not a fraction of a level.
    """
    try:
        micro = int(to_micro(share))
    except (TypeError, ValueError):
        micro = 0
    if not 0 < micro <= MICRO:
        raise PlanError(
            f"share={share!r} is not a fraction of a level. "
            "Give a number above 0 (at least a millionth) and at most 1."
        )
    return micro


def _whole_t(t: float | str, mechanism: str) -> int | str:
    """t in millionths, or one of its names."""
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
