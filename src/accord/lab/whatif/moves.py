"""Moves: what would change if a tier, or a fifth of the people, allowed more, less or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from accord.budget import LARGEST, PUBLIC, IntArray, level_text, to_float
from accord.errors import PlanError
from accord.planning import Candidate, Plan, midpoint_error, plan
from accord.report.tables import number
from accord.spec import Spec

CLIPPING = ("affine", "rank")
"""The mechanisms that charge min(ε, τ); the simpler ones are special cases of them."""
_SAME = 1e-6
_FEW = 8
"""So many levels are moved one by one; more are moved in bands."""
_BANDS = 5


@dataclass(frozen=True)
class Move:
    """People who change their level, and what comes of it."""

    who: str
    action: str
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
        return f"{self.who} {self.action}"


def moves(before: Plan) -> Iterator[Move]:
    """Every move that changes something and leaves somebody to ask."""
    spec, target, seen = before.spec, before.target, {before.spec}
    scale = _lowest_with_midpoint(before)[1] / target.factor(before.people)
    if scale == 0:  # better it cannot be, and worse by any factor
        return
    for step in _tier_by_tier(spec) if spec.micro.size <= _FEW else _band_by_band(spec, _BANDS):
        moved = Spec(
            np.concatenate((spec.micro, step.to, [0])),
            np.concatenate((spec.people - step.people, step.people, [spec.opted_out])),
            spec.tiers,
            spec.is_rest,
        )
        if moved in seen:
            continue
        seen.add(moved)
        try:
            after = plan(moved, before.query, share=to_float(before.share), neighbors=before.neighbors)
        except PlanError:  # nobody is left, or nobody with a share of a millionth
            continue
        mechanism, lowest = _lowest_with_midpoint(after)
        levels = spec.micro[step.people > 0].tolist()
        yield Move(
            step.who,
            step.action,
            int(step.people.sum()),
            (levels[0], levels[-1]),
            moved,
            mechanism,
            lowest,
            100 * (lowest / target.factor(after.people) / scale - 1),
        )


# ---- errors ------------------------------------------------------------------------------------------------


def lowest_error(plan: Plan) -> tuple[str, float]:
    """The mechanism with the lowest error among those that `auto` chooses from, and this error.

    Of equally good ones it is affine or rank.
    """
    unbiased = [
        c for c in plan.candidates if c.prediction is not None and c.prediction.bias_bound is not None
    ]
    lowest = min(map(rmse_of, unbiased))
    equal = [c.mechanism for c in unbiased if rmse_of(c) <= lowest * (1 + _SAME)]
    return next((name for name in equal if name in CLIPPING), equal[0]), lowest


def _lowest_with_midpoint(plan: Plan) -> tuple[str, float]:
    """The same, be it the middle, which needs no data."""
    best, middle = lowest_error(plan), midpoint_error(plan.target, plan.people)
    return best if best[1] <= middle else ("midpoint", middle)


def rmse_of(candidate: Candidate) -> float:
    assert candidate.rmse is not None
    return candidate.rmse


# ---- who moves where ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """So many `people` of each level get the levels `to`."""

    who: str
    action: str
    people: IntArray
    to: IntArray


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
        levels = spec.micro[people > 0].tolist()
        if levels:
            several = f"ε {short_level(levels[0])} … {short_level(levels[-1])}"
            name = _name(spec, levels[0]) if len(levels) == 1 else several
            yield _Step(name, "doubled", people, np.where(public, PUBLIC, doubled))
            yield _Step(name, "halved", people, np.where(public, PUBLIC, halved))


def _name(spec: Spec, micro: int) -> str:
    return spec.tier(micro) or f"ε = {level_text(micro)}"


def short_level(micro: int) -> str:
    return "inf" if micro == PUBLIC else number(to_float(micro), 3)
