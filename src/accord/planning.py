"""Plan: how a query will be answered, decided from the Spec and the Query alone.

`plan` cannot see values: its signature has no room for them. It calibrates every mechanism, predicts its error, refuses with
a reason what cannot be done, and chooses. All of that depends on public things only, so the choice tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from accord import budget
from accord.budget import MICRO, IntArray, level_text, to_float, to_micro
from accord.errors import PlanError, QueryError, did_you_mean
from accord.mechanisms import ALL
from accord.mechanisms.error import Prediction
from accord.mechanisms.record import Calibration, Mechanism, Refused, Task, frozen
from accord.spec import Spec
from accord.statistics import Count, Grouped, Histogram, Query, Sum, Workload
from accord.statistics.members import under_replace
from accord.statistics.present import roster_assumption, under

if TYPE_CHECKING:
    from accord.workloads import WorkloadPlan

NEIGHBORS = ("replace", "add-remove")
NAMED = ("max", "mean", "min", "best")
"""What t may be called for `sample`."""
NEARLY = 1.05
"""`threshold` is taken where its error is within this factor of the best: it is easier to audit and to explain."""
_TOO_LITTLE = "share={} leaves everyone with less than a millionth. The largest level is {}; ask for a larger share."
PUBLIC_GROUPS = (
    "public groups have levels of their own, which a Spec does not tell, and are not part of a workload. "
    "Plan each by itself with table.plan(query)."
)
PRIVATE_PEOPLE = (
    "with neighbors='add-remove' who is in the table is private, and so is who is in a group. "
    "Leave membership='public' out."
)
NO_DATA = ("midpoint", "public")
"""What a plan may choose instead of a mechanism. Neither reads the data nor charges anyone."""


@dataclass(frozen=True)
class Candidate:
    """One mechanism with its predicted error, or with the reason why it is refused."""

    mechanism: str
    note: str
    spec: Spec
    calibration: Calibration | None
    prediction: Prediction | None
    times: int = 1

    @property
    def rmse(self) -> float | None:
        return None if self.prediction is None else self.prediction.rmse

    @property
    def rmse_here(self) -> float | None:
        return None if self.prediction is None else self.prediction.rmse_here

    @property
    def charges(self) -> Mapping[float, float] | None:
        return None if self.calibration is None else by_level(self.spec, self.cost)

    @property
    def cost(self) -> IntArray:
        assert self.calibration is not None
        return budget.times(self.calibration.charges, self.times)

    def __repr__(self) -> str:
        return f"<{self.mechanism}: {'refused, ' if self.rmse is None else f'rmse {self.rmse:.6g}; '}{self.note}>"


@dataclass(frozen=True, repr=False)
class Plan:
    """A decision, ready to be released. `print(plan)` shows it with its reason and its assumptions."""

    spec: Spec
    query: Query
    mechanism: str
    """The name of a mechanism; "midpoint" or "public" where the answer needs no data."""
    share: int
    """Of everyone's level that may be spent, in millionths."""
    neighbors: str
    calibration: Calibration
    prediction: Prediction
    candidates: tuple[Candidate, ...]
    reason: str
    notes: tuple[str, ...] = ()
    """Assumptions that come with the table."""
    times: int = 1
    """How often a person may count in the answer: 2 where they may move from one private group to another. They are charged as often."""

    @property
    def rmse(self) -> float:
        """Predicted root mean squared error about the population that the people are drawn from, in `unit`."""
        return self.prediction.rmse

    @property
    def rmse_here(self) -> float:
        """Predicted root mean squared error about these very people, in `unit`."""
        return self.prediction.rmse_here

    @property
    def unit(self) -> str:
        return self.query.unit

    @property
    def bias_bound(self) -> float | None:
        """κ: if the means of any two levels differ by at most D, the answer is off by at most κ·D. None: not defined here."""
        return self.prediction.bias_bound

    @property
    def charges(self) -> Mapping[float, float]:
        """{level: charge}: what the release costs a person of each level."""
        return by_level(self.spec, self.cost)

    @property
    def cost(self) -> IntArray:
        """What it costs a person of each level, in millionths."""
        return budget.times(self.calibration.charges, self.times)

    @property
    def assumptions(self) -> list[str]:
        """What is taken as public knowledge, in sentences."""
        asked = self.query.query if isinstance(self.query, Grouped) else self.query
        known = (
            "levels and the number of people are public" if self.neighbors == "replace" else roster_assumption(asked)
        )
        return [
            *self.query.assumptions(),
            *self.notes,
            known,
            *(
                [
                    f"{self.spec.opted_out:,} people opted out{' or have nothing left' if self.spec.is_rest else ''} and are never read; the answer is about the other {self.spec.total:,}"
                ]
                if self.spec.opted_out
                else []
            ),
        ]

    def describe(self) -> dict[str, Any]:
        """The plan as plain data, for `--json`."""
        from accord.receipt import plan_document

        return plan_document(self)

    def __str__(self) -> str:
        from accord.report.text import plan_text

        return plan_text(self)

    def __repr__(self) -> str:
        return f"<Plan: {self.query.label} by {self.mechanism}, rmse {self.rmse:.6g}>"


@overload
def plan(
    spec: Spec,
    query: Query,
    mechanism: str = ...,
    share: float = ...,
    *,
    t: float | str | None = ...,
    neighbors: str = ...,
    notes: tuple[str, ...] = ...,
) -> Plan: ...
@overload
def plan(
    spec: Spec,
    query: Workload,
    mechanism: str = ...,
    share: float = ...,
    *,
    t: float | str | None = ...,
    neighbors: str = ...,
    notes: tuple[str, ...] = ...,
) -> WorkloadPlan: ...
def plan(
    spec: Spec,
    query: Query | Workload,
    mechanism: str = "auto",
    share: float = 1.0,
    *,
    t: float | str | None = None,
    neighbors: str = "replace",
    notes: tuple[str, ...] = (),
) -> Plan | WorkloadPlan:
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
    >>> p = plan(accord.Spec.from_groups({0.01: 500, 1: 400, float("inf"): 100}), accord.mean("income", bounds=(0, 200_000)))
    >>> p.mechanism, {level: round(charge, 3) for level, charge in p.charges.items()}
    ('threshold', {0.01: 0.0, 1.0: 1.0, inf: 1.0})
    """
    if not isinstance(spec, Spec):
        raise PlanError(
            f"a plan is made from a Spec, not from {type(spec).__name__}. Call table.spec(), Spec.of or Spec.from_groups."
        )
    if not isinstance(query, Query | Workload):
        raise QueryError(
            f"a plan is made for a query, not for {type(query).__name__}. Make one with accord.mean or its siblings."
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
        from accord.workloads import plan_workload

        return plan_workload(spec, query, mechanism, part, neighbors, notes)
    level = None if t is None else _threshold(t, mechanism)
    return plan_within(spec, query, budget.share(spec.micro, part), mechanism, level, part, neighbors, notes)


def refuse_arguments(
    query: Query | Workload, mechanism: str, share: float, t: float | str | None, neighbors: str
) -> None:
    """Refuse what cannot be planned whatever the levels are: before anything is read.

    Raises:
        PlanError: no such mechanism, share, t or neighbors, or a mechanism that does not answer such a question.
    """
    names = [m.name for m in ALL]
    if mechanism not in ("auto", *names):
        raise PlanError(f"there is no mechanism {mechanism!r}: {did_you_mean(mechanism, ['auto', *names])}")
    if neighbors not in NEIGHBORS:
        raise PlanError(
            f"neighbors={neighbors!r} is not offered. There is 'replace' (one person's value changes) and 'add-remove' (one person comes or goes)."
        )
    if t is not None and mechanism not in ("threshold", "sample"):
        raise PlanError(
            "t= is the level of the mechanisms threshold and sample. Add mechanism='threshold' or 'sample', or leave t= out."
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
        if neighbors == "add-remove":
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
        raise PlanError(f"{mechanism} cannot answer the {asked.label}: {why}. Use one of {others}, or 'auto'.")


def refusals(query: Query, neighbors: str) -> dict[str, str]:
    """Why each mechanism does not answer such a question under such neighbors, whatever the levels are; empty if it may."""
    if isinstance(query, Grouped) and query.part.public:
        return refusals(query.query, neighbors)
    asked, relation, times = _about(query, neighbors)
    return {m.name: _reason_against(m, asked, relation, times) for m in ALL}


def _reason_against(mechanism: Mechanism, asked: Query, relation: str, times: int) -> str:
    """Why a mechanism does not answer such a question, whatever the levels are; empty if it may."""
    if relation not in mechanism.neighbors:
        moving = ", and that somebody moves between private groups takes add-remove" if times > 1 else ""
        return f"proves neighbors {' and '.join(mechanism.neighbors)} only{moving}"
    try:
        mechanism.way(asked)
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
    neighbors: str,
    notes: tuple[str, ...] = (),
    among: tuple[Mechanism, ...] = ALL,
) -> Plan:
    """A plan that charges nobody of a level more than is `affordable` for it, all in millionths; by one of the mechanisms `among` which to choose."""
    if isinstance(query, Grouped) and query.part.public:
        raise PlanError(PUBLIC_GROUPS)
    order = np.argsort(affordable, kind="stable")
    order = order[affordable[order] > 0]
    if order.size == 0:
        raise PlanError(_TOO_LITTLE.format(level_text(share), level_text(int(spec.micro[-1]))))
    asked, relation, times = _about(query, neighbors)
    people = spec.people[order]
    total = spec.total
    if isinstance(query, Grouped):
        query = replace(query, query=asked)
        if not isinstance(asked, Sum | Count | Histogram):  # there, everyone adds something to every group, be it 0
            even = -(-spec.people // query.groups)  # as for groups of the same size
            people, total = even[order], int(even.sum())
    else:
        query = asked
    if times > 1:
        halved = budget.divide(affordable, times)
        read = halved[order] > 0
        people, order, affordable = people[read], order[read], halved
        if order.size == 0:
            raise PlanError(_TOO_LITTLE.format(level_text(share), level_text(int(spec.micro[-1]))))
    task = Task(frozen(affordable[order]), people, total, asked, t, asked.variance, asked.blur, relation)
    candidates = tuple(_candidate(m, task, spec, order, times) for m in among)
    chosen, reason = _choose(candidates, query, spec, mechanism)
    if isinstance(chosen, Candidate):
        assert chosen.calibration is not None and chosen.prediction is not None
        name, calibration, prediction = chosen.mechanism, chosen.calibration, chosen.prediction
    else:
        nobody = np.zeros(spec.micro.size)
        name, calibration = chosen, Calibration(nobody.astype(np.int64), nobody, 0.0, reason)
        prediction = _without_data(chosen, query, spec.total)
    return Plan(spec, query, name, share, neighbors, calibration, prediction, candidates, reason, notes, times)


def _about(query: Query, neighbors: str) -> tuple[Query, str, int]:
    """The question as it is answered, the relation that its answer must prove, and how often a person may count in it: see query/parts.py."""
    if not isinstance(query, Grouped):
        return under(query, neighbors), neighbors, 1
    direct = under_replace(query) if neighbors == "replace" else None
    if direct is not None:
        return direct, "replace", 1
    return under(query.query, "add-remove"), "add-remove", 2 if neighbors == "replace" else 1


def _candidate(mechanism: Mechanism, task: Task, spec: Spec, order: IntArray, times: int) -> Candidate:
    if against := _reason_against(mechanism, task.query, task.neighbors, times):
        return Candidate(mechanism.name, against, spec, None, None)
    way = mechanism.way(task.query)
    try:
        calibration = way.calibrate(task)
        prediction = way.predict(task, calibration)
    except Refused as why:
        return Candidate(mechanism.name, str(why), spec, None, None)
    if not _is_everyone(order, spec):
        calibration = replace(
            calibration,
            charges=_placed(calibration.charges, order, spec),
            weights=_placed(calibration.weights, order, spec),
            keep=None if calibration.keep is None else _placed(calibration.keep, order, spec),
        )
    return Candidate(mechanism.name, calibration.note, spec, calibration, prediction, times)


def _is_everyone(order: IntArray, spec: Spec) -> bool:
    """Whether all levels are read, in their order."""
    return order.size == spec.micro.size and bool((order[1:] > order[:-1]).all())


def _placed(values: Any, order: IntArray, spec: Spec) -> Any:
    """For each level of the Spec; those who have nothing are not read."""
    placed = np.zeros(spec.micro.size, dtype=values.dtype)
    placed[order] = values
    return frozen(placed)


def _choose(candidates: tuple[Candidate, ...], query: Query, spec: Spec, mechanism: str) -> tuple[Candidate | str, str]:
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
    if query.known:
        return "public", "the number of people is public: nothing is read and nobody is charged"
    unbiased = [c for c in candidates if c.prediction is not None and c.prediction.bias_bound is not None]
    best = min(unbiased, key=lambda c: c.rmse or 0.0)
    assert best.rmse is not None
    if best.rmse > idle_error(query, spec.total):
        return "midpoint", (
            f"no mechanism is expected to beat the middle of what is possible (the best, {best.mechanism}, has an error of "
            f"{best.rmse:.4g}); it is returned, and nobody is charged"
        )
    simple = next((c for c in candidates if c.mechanism == "threshold"), best)
    if simple.rmse is not None and simple.mechanism != best.mechanism and simple.rmse <= NEARLY * best.rmse:
        return (
            simple,
            f"its error is within 5 % of the lowest ({best.mechanism}), and a single threshold is easier to audit and to explain",
        )
    return best, "lowest predicted error"


def idle_error(query: Query, people: int) -> float:
    """Error of the middle, at worst."""
    return query.size(people) * sqrt(query.idle / query.outputs)


def _without_data(how: str, query: Query, people: int) -> Prediction:
    if how == "public":
        value = float(people)
        return Prediction(0.0, 0.0, None, fixed=(value, value))
    return Prediction(idle_error(query, people), idle_error(query, people), None, fixed=query.possible(people))


def whole_share(share: float) -> int:
    """In millionths, rounded down."""
    try:
        part = int(to_micro(share))
    except (TypeError, ValueError):
        part = 0
    if not 0 < part <= MICRO:
        raise PlanError(
            f"share={share!r} is not a fraction of a level. Give a number above 0 (at least a millionth) and at most 1."
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


def by_level(spec: Spec, charges: IntArray) -> Mapping[float, float]:
    return MappingProxyType({level: to_float(c) for level, c in zip(spec.levels, charges.tolist(), strict=True)})
