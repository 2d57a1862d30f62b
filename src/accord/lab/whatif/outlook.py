"""Outlook: what a user's own levels would bring for a question, before any value is read.

    plan        every mechanism with its predicted error
    thresholds  the error of one level t for all who allow it, for every t
    clips       the error of charging everyone min(ε, τ), for every τ
    gains       what the classic ways out cost: everyone at the strictest level, or one threshold
    moves       what would change if a tier (or a fifth of the people) allowed more, less or nothing

Everything is reckoned from the Spec and the Query by the code that plans use; there is no room for values in
any signature. Errors are rmse about the population. Where mechanisms are compared, the lowest error counts:
`auto` prefers a threshold that is up to 5 % worse, and a change of mind would look like a change of error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isclose, sqrt
from typing import Any

import numpy as np

import accord
from accord import budget, theory
from accord.budget import LARGEST, PUBLIC, IntArray, level_text, to_float
from accord.errors import PlanError, QueryError
from accord.mechanisms import charges, regression
from accord.mechanisms.additive import weighted_mean
from accord.mechanisms.rank import weighted_rank
from accord.mechanisms.record import Method, Task
from accord.mechanisms.sample import tried
from accord.planning import Candidate, Plan, midpoint_error, plan
from accord.release.receipt import SCHEMA
from accord.report.text import number
from accord.spec import Spec
from accord.statistics import Algorithm, Grid, Grouped, Indicator, Query, Target
from accord.statistics.target import Additive

_CLIPPING = ("affine", "rank")
"""The mechanisms that charge min(ε, τ); the simpler ones are special cases of them."""
_SAME = 1e-6
_FEW = 8
"""So many levels are moved one by one; more are moved in bands."""
_BANDS = 5
_TAUS = 60
_MOST_TIMES = 2.0**20
_MOST_PEOPLE = 2.0**52


@dataclass(frozen=True)
class Curve:
    """The predicted error as a function of one level, in millionths: t or τ."""

    levels: tuple[int, ...]
    """Ascending; PUBLIC last."""
    rmse: tuple[float, ...]
    chosen: int
    """The level that the plan's own mechanism has."""

    def at(self, level: int) -> float:
        return self.rmse[self.levels.index(level)]

    @property
    def best(self) -> int:
        """The level with the lowest error.

        Not always `chosen`: a mechanism goes by a simpler formula where a quantile may land anywhere.
        """
        return self.levels[int(np.argmin(self.rmse))]


@dataclass(frozen=True)
class Gain:
    """What the best mechanism is better than, and by how much."""

    over: str
    ratio: float | None
    """Its mean squared error, as a multiple of the lowest. None: the lowest is 0."""
    people: float | None
    """How many times as many people, with levels in the same shares, it would need to be as good.

    None: more than a million times.
    """


@dataclass(frozen=True)
class Move:
    """People who change their level, and what comes of it."""

    who: str
    how: str
    people: int
    span: tuple[int, int]
    """The lowest and the highest level among them before, in millionths."""
    spec: Spec
    """Everyone's levels afterwards."""
    mechanism: str
    rmse: float
    """The lowest predicted error afterwards, in the answer's unit."""
    change: float
    """In percent of the error before: −50 is half of it.

    Of sums and counts it is the error per person, because an opt-out makes them smaller.
    """

    @property
    def text(self) -> str:
        return f"{self.who} {self.how}"


@dataclass(frozen=True)
class Outlook:
    """All of it, for one question."""

    plan: Plan
    best: str
    """The mechanism with the lowest predicted error of those without a bias by design."""
    clipping: str
    """The mechanism that chooses τ: affine, or rank for quantiles."""
    thresholds: Curve
    clips: Curve
    gains: tuple[Gain, ...]
    theory: tuple[float, float] | None
    """[Z]'s gain over the best threshold for these levels and the most that it can be; only of means, sums
    and counts at worst, under replace.
    """
    moves: tuple[Move, ...]

    def describe(self) -> dict[str, Any]:
        """Plain data, for `--json`."""
        return {
            "schema": SCHEMA,
            "accord": accord.__version__,
            "plan": self.plan.describe(),
            "best": self.best,
            "thresholds": _points(self.thresholds, "t"),
            "clips": {"mechanism": self.clipping, **_points(self.clips, "tau")},
            "gains": [{"over": g.over, "mse_ratio": g.ratio, "people_ratio": g.people} for g in self.gains],
            "theory": None if self.theory is None else {"gain": self.theory[0], "bound": self.theory[1]},
            "moves": [
                {
                    "who": m.who,
                    "how": m.how,
                    "people": m.people,
                    "levels": [level_text(level) for level in m.span],
                    "mechanism": m.mechanism,
                    "rmse": m.rmse,
                    "change_percent": m.change,
                }
                for m in self.moves
            ],
        }

    def __repr__(self) -> str:
        return f"<Outlook: {self.plan.query.label}, {self.best} has rmse {_best(self.plan)[1]:.6g}>"


def _points(curve: Curve, name: str) -> dict[str, Any]:
    return {
        "chosen": level_text(curve.chosen),
        "best": level_text(curve.best),
        "points": [
            {name: level_text(level), "rmse": rmse}
            for level, rmse in zip(curve.levels, curve.rmse, strict=True)
        ],
    }


def outlook(
    spec: Spec, query: Query, share: float = 1.0, neighbors: str = "replace", notes: tuple[str, ...] = ()
) -> Outlook:
    """Predict everything that these levels allow. The arguments are those of `accord.plan`.

    Raises:
        PlanError: nothing answers this, or nothing can be predicted about it.

    >>> found = outlook(Spec.from_groups({0.1: 500, 1: 400}), accord.mean("income", bounds=(0, 200_000)))
    >>> found.best, found.clips.chosen == found.clips.best
    ('affine', True)
    >>> [move.text for move in found.moves]
    ['ε = 0.1 → ε = 1', 'ε = 0.1 opts out', 'ε = 1 → ε = 0.1', 'ε = 1 opts out']
    """
    if not isinstance(query, Query):
        raise QueryError(
            f"an outlook is about one question, not about {type(query).__name__}. Make one with accord.mean "
            "or its siblings."
        )
    if isinstance(query, Grouped):
        raise PlanError(
            "an outlook is about everyone. Leave where= and by= out; a plan compares the mechanisms for them."
        )
    if isinstance(query, Algorithm):
        raise PlanError(
            f"nothing is known about the errors of {query.name}, which is not accord's. Ask for a statistic "
            "of accord."
        )
    made = plan(spec, query, share=share, neighbors=neighbors, notes=notes)
    if made.target.is_public:
        raise PlanError(
            "the number of people is public: it needs no mechanism, so there is nothing to compare. Ask for "
            "a count with where=."
        )
    task, (best, lowest) = task_of(made), _best(made)
    clipping = next(c for c in made.candidates if c.mechanism in _CLIPPING and c.calibration is not None)
    thresholds = _thresholds(task, _top(_named(made, "threshold")))
    return Outlook(
        made,
        best,
        clipping.mechanism,
        thresholds,
        _clips(task, _top(clipping), thresholds.levels),
        _gains(made, task, lowest),
        _theory(task),
        tuple(_moves(made)),
    )


# ---- errors ------------------------------------------------------------------------------------------------


def task_of(plan: Plan) -> Task:
    """What mechanisms see of this plan; those whom the share leaves with nothing are not read."""
    affordable = budget.share(plan.spec.micro, plan.share)
    read = affordable > 0
    people, target = plan.spec.people[read], plan.target
    return Task(
        affordable[read], people, plan.spec.total, target, None, target.variance, target.noise_variance
    )


def _method(target: Target, charge: Callable[[Task], tuple[IntArray, str]]) -> Method:
    """How a function of levels to charges answers this question."""
    methods = (weighted_mean(charge), weighted_rank(charge), regression.by_charges(charge))
    return next(method for method in methods if isinstance(target, method.answers))


def _error(method: Method, task: Task) -> float:
    return method.predict(task, method.calibrate(task)).rmse


def _best(plan: Plan) -> tuple[str, float]:
    """The mechanism with the lowest error among those that `auto` chooses from, and this error.

    Of equally good ones it is affine or rank.
    """
    unbiased = [
        c for c in plan.candidates if c.prediction is not None and c.prediction.bias_bound is not None
    ]
    lowest = min(map(_rmse, unbiased))
    equal = [c.mechanism for c in unbiased if _rmse(c) <= lowest * (1 + _SAME)]
    return next((name for name in equal if name in _CLIPPING), equal[0]), lowest


def _with_midpoint(plan: Plan) -> tuple[str, float]:
    """The same, be it the middle, which needs no data."""
    best, middle = _best(plan), midpoint_error(plan.target, plan.spec.total)
    return best if best[1] <= middle else ("midpoint", middle)


def _rmse(candidate: Candidate) -> float:
    assert candidate.rmse is not None
    return candidate.rmse


def _named(plan: Plan, name: str) -> Candidate:
    return next(c for c in plan.candidates if c.mechanism == name)


def _top(candidate: Candidate) -> int:
    """t, or τ: the largest charge."""
    assert candidate.calibration is not None
    return int(candidate.calibration.charges.max())


def _thresholds(task: Task, chosen: int) -> Curve:
    method = _method(task.target, charges.threshold)
    levels = sorted({*tried(task), chosen})
    return Curve(tuple(levels), tuple(_error(method, replace(task, t=t)) for t in levels), chosen)


def _clips(task: Task, chosen: int, levels: tuple[int, ...]) -> Curve:
    """Between the levels as well. Where there are public people, τ may be beyond everyone else's level."""
    finite = task.levels[task.levels < PUBLIC]
    taus = {*levels, chosen}
    if finite.size:
        top = int(finite[-1])
        if finite.size < task.levels.size:
            top = min(LARGEST, 4 * max(top, chosen if chosen < PUBLIC else 0))
        taus |= {int(tau) for tau in np.geomspace(int(finite[0]), top, _TAUS)}

    def at(tau: int) -> float:
        return _error(_method(task.target, lambda task: (np.minimum(task.levels, tau), "")), task)

    ordered = sorted(taus)
    return Curve(tuple(ordered), tuple(at(tau) for tau in ordered), chosen)


# ---- what personal levels buy ------------------------------------------------------------------------------


def _gains(plan: Plan, task: Task, lowest: float) -> tuple[Gain, ...]:
    return tuple(
        Gain(
            name,
            (_rmse(_named(plan, name)) / lowest) ** 2 if lowest else None,
            _times(_method(task.target, charge), task, lowest),
        )
        for name, charge in (("minimum", charges.minimum), ("threshold", charges.threshold))
    )


def _times(method: Method, task: Task, goal: float) -> float | None:
    """By how much the numbers of people have to be multiplied to reach this error (per person, for sums and
    counts).

    This is not the ratio of squared errors: where noise prevails, they fall with the square of the number of
    people.
    """
    goal /= task.target.factor(task.total)
    up_to = np.cumsum(task.people)

    def reached(k: float) -> bool:
        people = np.diff(np.round(k * up_to), prepend=0).astype(
            np.int64
        )  # whole, and k times as many up to each level
        total = int(people.sum()) + round(k * (task.total - int(up_to[-1])))
        more = replace(task, people=people, total=total)
        return bool(_error(method, more) / task.target.factor(total) <= goal * (1 + 1e-9))

    high = 1.0
    while not reached(high):
        high *= 2
        if high > _MOST_TIMES or high * task.total > _MOST_PEOPLE:
            return None
    low = high / 2
    while high > 1 and high / low > 1 + 1e-4:
        middle = sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _theory(task: Task) -> tuple[float, float] | None:
    """[Z] is about the worst case, σ = Δ/2, where the noise has 8 times σ² at charge 1; of sums and counts as
    of means.
    """
    of_means = isinstance(task.target, Additive) and isinstance(task.target.query.encoding, Grid | Indicator)
    worst = of_means and isclose(task.noise_variance, 8 * task.variance)
    if not worst or not task.relation.people_are_public:
        return None
    spec = Spec(task.levels, task.people)
    return theory.gain(spec), theory.gain_bound(spec)


# ---- what if -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """So many `people` of each level get the levels `to`."""

    who: str
    how: str
    people: IntArray
    to: IntArray


def _moves(before: Plan) -> Iterator[Move]:
    """Every move that changes something and leaves somebody to ask."""
    spec, query, done, target = before.spec, before.query, {before.spec}, before.target
    scale = _with_midpoint(before)[1] / target.factor(spec.total)
    if scale == 0:  # better it cannot be, and worse by any factor
        return
    for step in _tier_by_tier(spec) if spec.micro.size <= _FEW else _band_by_band(spec, _BANDS):
        moved = Spec(
            np.concatenate((spec.micro, step.to, [0])),
            np.concatenate((spec.people - step.people, step.people, [spec.opted_out])),
            spec.tiers,
            spec.is_rest,
        )
        if moved in done:
            continue
        done.add(moved)
        try:
            after = plan(moved, query, share=to_float(before.share), neighbors=before.neighbors)
        except PlanError:  # nobody is left, or nobody with a share of a millionth
            continue
        (mechanism, lowest), there = _with_midpoint(after), np.flatnonzero(step.people)
        yield Move(
            step.who,
            step.how,
            int(step.people.sum()),
            (int(spec.micro[there[0]]), int(spec.micro[there[-1]])),
            moved,
            mechanism,
            lowest,
            100 * (lowest / target.factor(moved.total) / scale - 1),
        )


def _tier_by_tier(spec: Spec) -> Iterator[_Step]:
    """Everyone of a level to the next higher one, to the next lower one, and out."""
    rungs = sorted({*spec.micro.tolist(), *(level for level in spec.tiers.values() if level > 0)})
    if len(rungs) == 1:
        yield from _band_by_band(spec, 1)
        return
    for j, level in enumerate(spec.micro.tolist()):
        people = np.where(np.arange(spec.micro.size) == j, spec.people, 0)
        rung = rungs.index(level)
        for k in (rung + 1, rung - 1):
            if 0 <= k < len(rungs):
                to = np.full(spec.micro.size, rungs[k])
                yield _Step(_name(spec, level), f"→ {_name(spec, rungs[k])}", people, to)
        yield _Step(_name(spec, level), "opts out", people, np.zeros_like(people))


def _band_by_band(spec: Spec, bands: int) -> Iterator[_Step]:
    """Equally many people, from the strictest to the most liberal, with levels doubled or halved."""
    ends = np.cumsum(spec.people)
    edges = [spec.total * b // bands for b in range(bands + 1)]
    public = spec.micro == PUBLIC
    finite = np.where(public, 0, spec.micro)
    doubled, halved = np.minimum(2 * finite, LARGEST), np.maximum(finite // 2, 1)
    for first, last in pairwise(edges):
        people = np.maximum(np.minimum(ends, last) - np.maximum(ends - spec.people, first), 0)
        there = spec.micro[people > 0].tolist()
        if there:
            name = _name(spec, there[0]) if len(there) == 1 else f"ε {short(there[0])} … {short(there[-1])}"
            yield _Step(name, "doubled", people, np.where(public, PUBLIC, doubled))
            yield _Step(name, "halved", people, np.where(public, PUBLIC, halved))


def _name(spec: Spec, micro: int) -> str:
    return spec.tier(micro) or f"ε = {level_text(micro)}"


def short(micro: int) -> str:
    return "inf" if micro == PUBLIC else number(to_float(micro), 3)
