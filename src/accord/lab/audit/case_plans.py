"""By which plans the audit's cases are answered, and what each of them promises to everyone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import accord
from accord.budget import level_text, to_micro
from accord.errors import PlanError
from accord.mechanisms import ALL
from accord.mechanisms.record import Mechanism
from accord.mechanisms.sample import SampleCalibration
from accord.planning import Plan
from accord.spec import Spec
from accord.statistics import Grouped, Query
from accord.statistics.gap import with_gap


def declared_for(mechanism: str, query: Query) -> Query:
    """The question with half of the largest gap declared, if the mechanism is for levels that go with values.

    Of a question of which no gap can be declared, as it is.
    """
    if isinstance(query, Grouped):
        return replace(query, query=declared_for(mechanism, query.query))
    if not any(m.needs_gap for m in ALL if m.name == mechanism) or query.gap_scale is None:
        return query
    return with_gap(query, query.gap_scale.most / 2, None)


def plans(
    spec: Spec, query: Query, share: str, neighbors: str, mechanisms: Sequence[str | Mechanism]
) -> Iterator[Plan]:
    """By every mechanism that answers this, with every t that makes a difference."""
    own = [mechanism for mechanism in mechanisms if isinstance(mechanism, Mechanism)]
    for mechanism in (*(m for m in ALL if m.name in mechanisms), *own):
        ts: tuple[Any, ...] = (None,)
        if mechanism.name == "threshold":
            ts = (None, *(level * float(share) for level in spec.levels if level < inf))
        elif mechanism.name == "sample":
            ts = (None, "max", "mean")
        notes = []
        asked = declared_for(mechanism.name, query)
        for t in ts:
            try:
                by = mechanism if mechanism in own else mechanism.name
                plan = accord.plan(spec, asked, by, float(share), t=t, neighbors=neighbors)
            except PlanError:
                continue
            if plan.calibration.note not in notes:
                notes.append(plan.calibration.note)
                yield plan


def sampling_of(plan: Plan) -> SampleCalibration | None:
    """The calibration of a plan that keeps people at random; None: it reads them all, or none."""
    return plan.calibration if isinstance(plan.calibration, SampleCalibration) else None


def keep_chances(plan: Plan) -> dict[int, int]:
    """{level in millionths: the chance in 2⁻⁶³ that somebody of it is kept}; empty if nobody is sampled."""
    sampled = sampling_of(plan)
    return {} if sampled is None else dict(zip(plan.spec.micro.tolist(), sampled.keep.tolist(), strict=True))


def published_charges(plan: Plan, levels: Sequence[str]) -> dict[str, Fraction | float]:
    """For every level as it stands in a table, the charge that is published; who opted out is not listed."""
    listed = {entry["level"]: entry["charge"] for entry in plan.describe()["charges"]}
    charges = {raw: listed.get(level_text(int(to_micro(float(raw)))), "0") for raw in levels}
    return {raw: inf if charge == "inf" else Fraction(charge) for raw, charge in charges.items()}


def promised_losses(plan: Plan, levels: Sequence[str], share: str = "1") -> dict[str, Fraction | float]:
    """What people of a level may lose: the published charge, and never more than share × level.

    Levels and shares count digit by digit, as they stand in a table.
    """
    return {
        raw: charge if raw == "inf" else min(charge, Fraction(raw) * Fraction(share))
        for raw, charge in published_charges(plan, levels).items()
    }
