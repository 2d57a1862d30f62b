"""Outlook: what a user's own levels would bring for a question, before any value is read.

    plan        every mechanism with its predicted error
    thresholds  the error of one level t for all who allow it, for every t
    clips       the error of charging everyone min(ε, τ), for every τ
    gains       what it costs to do without personal levels: everyone at the strictest, or one threshold
    gaps        the error of every mechanism if levels go with values, for every gap between them
    moves       what would change if a tier (or a fifth of the people) allowed more, less or nothing

Everything is computed from the Spec and the Query by the code that plans use; there is no room for values in
any signature. Errors are rmse about the population. Where mechanisms are compared, the lowest error counts:
`auto` prefers a threshold that is up to 5 % worse, and a change of mind would look like a change of error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose, sqrt
from typing import Any

import numpy as np

import accord
from accord import budget, theory
from accord.budget import LARGEST, PUBLIC, level_text
from accord.errors import PlanError, QueryError
from accord.lab.whatif.gaps import GapCurves, gap_curves
from accord.lab.whatif.moves import CLIPPING, Move, lowest_error, moves, rmse_of
from accord.mechanisms import by_charges, charges
from accord.mechanisms.record import ChargeRule, Method, Task
from accord.mechanisms.sample import levels_to_try
from accord.planning import Candidate, Plan, plan, task_of
from accord.release.receipt import SCHEMA
from accord.spec import Spec
from accord.statistics import Algorithm, Grid, Grouped, Indicator, Query, Target
from accord.statistics.target_sums import Additive

_TAUS = 60
"""So many τ are tried, besides the levels."""
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
    """[Z]'s gain over the best threshold for these levels, and the most that it can be.

    Only of means, sums and counts whose σ is the worst, under replace.
    """
    moves: tuple[Move, ...]
    gaps: GapCurves | None = None
    """None: no gap can be declared of this question."""

    def describe(self) -> dict[str, Any]:
        """Plain data, for `--json`."""
        return {
            "schema": SCHEMA,
            "accord": accord.__version__,
            "plan": self.plan.describe(),
            "best": self.best,
            "thresholds": _describe_curve(self.thresholds, "t"),
            "clips": {"mechanism": self.clipping, **_describe_curve(self.clips, "tau")},
            "gains": [{"over": g.over, "mse_ratio": g.ratio, "people_ratio": g.people} for g in self.gains],
            "theory": None if self.theory is None else {"gain": self.theory[0], "bound": self.theory[1]},
            "gaps": None if self.gaps is None else self.gaps.describe(),
            "moves": [
                {
                    "who": m.who,
                    "how": m.action,
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
        lowest = f"rmse {lowest_error(self.plan)[1]:.6g} ({self.plan.unit})"
        return f"<Outlook: {self.plan.query.label}, {self.best} has {lowest}>"


def _describe_curve(curve: Curve, name: str) -> dict[str, Any]:
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

    >>> ahead = outlook(Spec.from_groups({0.1: 500, 1: 400}), accord.mean("income", bounds=(0, 200_000)))
    >>> ahead.best, ahead.clips.chosen == ahead.clips.best
    ('affine', True)
    >>> [move.text for move in ahead.moves]
    ['ε = 0.1 → ε = 1', 'ε = 0.1 opts out', 'ε = 1 → ε = 0.1', 'ε = 1 opts out']
    """
    if not isinstance(query, Query):
        raise QueryError(
            f"an outlook is about one question, not about {type(query).__name__}. "
            "Make one with accord.mean or its siblings."
        )
    if isinstance(query, Grouped) and query.part.public:
        raise PlanError(
            "public groups have levels of their own, and an outlook each. "
            "Leave membership='public' out, or look at one group's levels."
        )
    if isinstance(query, Algorithm):
        raise PlanError(
            f"nothing is known about the errors of {query.name}, which is not accord's. "
            "Ask for a statistic of accord."
        )
    current = plan(spec, query, share=share, neighbors=neighbors, notes=notes)
    if current.target.is_public:
        raise PlanError(
            "the number of people is public: it needs no mechanism, so there is nothing to compare. "
            "Ask for a count with where=."
        )
    task, (best, lowest) = task_for(current), lowest_error(current)
    clippings = (c for c in current.candidates if c.mechanism in CLIPPING and c.calibration is not None)
    clipping = next(clippings, None)
    if clipping is None:
        raise PlanError(
            f"{current.mechanism} alone answers the {query.label} with neighbors={neighbors!r}: there is "
            "nothing to compare. Ask for a mean or a proportion, or look at its plan."
        )
    thresholds = _thresholds(task, _top(_candidate(current, "threshold")))
    return Outlook(
        current,
        best,
        clipping.mechanism,
        thresholds,
        _clips(task, _top(clipping), thresholds.levels),
        _gains(current, task, lowest),
        _theory(task),
        tuple(moves(current)),
        gap_curves(current),
    )


# ---- errors ------------------------------------------------------------------------------------------------


def task_for(plan: Plan) -> Task:
    """What mechanisms see of this plan."""
    affordable = budget.share(plan.spec.micro, plan.share)
    return task_of(plan.spec, plan.query, affordable, None, plan.relation)[0]


def _method(target: Target, charge_rule: ChargeRule) -> Method:
    """How a function of levels to charges answers this question."""
    return next(method for method in by_charges(charge_rule) if isinstance(target, method.answers))


def _error(method: Method, task: Task) -> float:
    return method.predict(task, method.calibrate(task)).rmse


def _candidate(plan: Plan, mechanism: str) -> Candidate:
    return next(c for c in plan.candidates if c.mechanism == mechanism)


def _top(candidate: Candidate) -> int:
    """t, or τ: the largest charge."""
    assert candidate.calibration is not None
    return int(candidate.calibration.charges.max())


def _thresholds(task: Task, chosen: int) -> Curve:
    method = _method(task.target, charges.threshold)
    levels = sorted({*levels_to_try(task), chosen})
    return Curve(tuple(levels), tuple(_error(method, replace(task, t=t)) for t in levels), chosen)


def _clips(task: Task, chosen: int, levels: tuple[int, ...]) -> Curve:
    """At these levels and between them. Where people are public, τ may be beyond everyone else's level."""
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
    gains = []
    for name, charge in (("minimum", charges.minimum), ("threshold", charges.threshold)):
        ratio = (rmse_of(_candidate(plan, name)) / lowest) ** 2 if lowest else None
        gains.append(Gain(name, ratio, _times_as_many(_method(task.target, charge), task, lowest)))
    return tuple(gains)


def _times_as_many(method: Method, task: Task, goal: float) -> float | None:
    """By how much the numbers of people have to be multiplied to reach this error.

    For sums and counts, the error per person. This is not the ratio of squared errors: where noise prevails,
    they fall with the square of the number of people.
    """
    goal /= task.target.factor(task.total)
    up_to = np.cumsum(task.people)

    def reached(k: float) -> bool:
        # whole people, and k times as many up to each level
        people = np.diff(np.round(k * up_to), prepend=0).astype(np.int64)
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
    """[Z] is about the worst case, σ = Δ/2, where the noise has 8 times σ² at charge 1.

    It holds of sums and counts as of means.
    """
    of_means = isinstance(task.target, Additive) and isinstance(task.target.query.encoding, Grid | Indicator)
    worst = of_means and isclose(task.noise_variance, 8 * task.variance)
    if not worst or not task.relation.people_are_public or task.target.about_members:
        return None
    spec = Spec(task.levels, task.people)
    return theory.gain(spec), theory.gain_bound(spec)
