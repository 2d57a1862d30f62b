"""Documents: plans, receipts and accounts as plain data, ready for JSON.

ε are decimal strings ("inf", never Infinity), so that nothing is rounded on the way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from itertools import pairwise
from math import isfinite, isinf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

import accord
from accord.budget import MICRO, IntArray, amount_text, level_text
from accord.mechanisms.additive import BoxCalibration, ChoosingCalibration
from accord.mechanisms.regression import BoxedRegressionCalibration
from accord.planning import Plan
from accord.planning.together import cost_together
from accord.release.derived import Derived, FromAnswers, Ratio
from accord.release.numbers import Number, named, sentences
from accord.release.result import Release
from accord.spec import Spec
from accord.statistics import Algorithm, Coefficients
from accord.statistics.query import number_text
from accord.statistics.ranks import RankQuery
from accord.statistics.target_sums import Additive

if TYPE_CHECKING:
    from accord.ledger.history import Account

SCHEMA = 1
BOX = "box"
"""The permanent name of a noise that several questions share. Each keeps the name of its mechanism."""
JOINT = "joint"
"""The permanent name of one draw for several quantiles."""
MOST_LEVELS, _RANGES = 1_000, 100
"""Documents list so many levels one by one; more are folded into so many ranges of levels."""


def to_json(document: dict[str, Any]) -> str:
    """A document as text. Refuses NaN and Infinity, which are not JSON."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)


def plan_document(plan: Plan) -> dict[str, Any]:
    """A plan as plain data: of one question, of a workload, or of public groups."""
    if plan.is_workload:
        return _workload_document(plan)
    if plan.is_grouped:
        return {
            "schema": SCHEMA,
            "query": plan.query.describe(),
            "neighbors": plan.neighbors,
            "share": level_text(plan.share),
            "groups": [
                {"key": plain_data(key), "plan": None if part is None else plan_document(part)}
                for key, part in plan.plans.items()
            ],
        }
    return {
        "schema": SCHEMA,
        "accord": accord.__version__,
        **_decision(plan),
        "reason": plan.reason,
        "candidates": [
            {
                "mechanism": c.mechanism,
                "rmse": _or_null(c.rmse),
                "rmse_here": _or_null(c.rmse_here),
                "note": c.note,
                "charges": None if c.calibration is None else charges_document(plan.spec, c.cost),
            }
            for c in plan.candidates
        ],
    }


def release_document(release: Release, confidence: float = 0.95) -> dict[str, Any]:
    """A receipt as plain data: of one question, of a workload, or of public groups."""
    if release.plan.is_workload:
        return _workload_receipt(release)
    if release.plan.is_grouped:
        return {
            "schema": SCHEMA,
            "query": release.plan.query.describe(),
            "groups": [
                {"key": plain_data(key), "receipt": None if part is None else release_document(part)}
                for key, part in release.by_part.items()
            ],
        }
    assert release.time is not None
    interval, is_partial = None, release.groups_together > 1 or release.plan.chooses_first
    if not isinstance(release.plan.query, Algorithm):
        interval = {
            "confidence": confidence,
            "about": "these people",
            "unit": release.plan.unit,
            "bounds": _interval_data(release.interval(confidence)),
            **({"groups_together": release.groups_together} if release.groups_together > 1 else {}),
        }
        if release.plan.unit == RankQuery.unit:  # null: one draw does not tell it
            interval["values"] = _interval_data(release.interval_in_values(confidence))
    return {
        "schema": SCHEMA,
        "accord": accord.__version__,
        "time": release.time.isoformat(),
        **_decision(release.plan),
        "charges": charges_document(release.plan.spec, release.cost),
        "rmse": _or_null(release.rmse),
        "rmse_here": _or_null(release.rmse_here),
        **_booked(release),
        "value": plain_data(release.value),
        **({"suppressed": release.suppressed} if is_partial else {}),
        **({} if release.others_at_most() is None else {"others_at_most": release.others_at_most()}),
        "interval": interval,
    }


def derived_document(derived: FromAnswers, confidence: float = 0.95) -> dict[str, Any]:
    """A number that is derived from answers: what it was derived from, and how."""
    names = named(derived.numbers)
    specs = dict.fromkeys(number.release.plan.spec for number in derived.numbers)
    if isinstance(derived, Ratio):
        sides = {"numerator": derived.numerator, "denominator": derived.denominator}
        combination: dict[str, Any] = {side: _combination(number, names) for side, number in sides.items()}
    else:
        assert isinstance(derived, Derived)
        combination = _combination(derived, names)
    ends = derived.interval(confidence)
    unbounded = "the denominator may be 0, so that any number is possible"
    return {
        "schema": SCHEMA,
        "accord": accord.__version__,
        "derived": "ratio" if isinstance(derived, Ratio) else "sum",
        "formula": derived.formula(names),
        **combination,
        "numbers": [{"name": name, **_parent(number)} for number, name in names.items()],
        "charges": [entry for spec in specs for entry in charges_document(spec, np.zeros_like(spec.micro))],
        "value": _or_null(derived.value),
        **({"rmse_here": derived.rmse_here} if isinstance(derived, Derived) else {}),
        "interval": {"confidence": confidence, "about": "these people", "bounds": plain_data(ends)},
        "assumptions": [*sentences(derived.numbers), *([unbounded] if isinf(ends[1]) else [])],
    }


def _combination(derived: Derived, names: dict[Number, str]) -> dict[str, Any]:
    """Σ coefficient·number + constant; fractions as text, because they are exact."""
    terms = [{"coefficient": str(k), "number": names[number]} for k, number in derived.terms]
    return {"terms": terms, "constant": str(derived.constant)}


def _parent(number: Number) -> dict[str, Any]:
    """Which released number it is: by what its release is known."""
    release = number.release
    assert release.time is not None
    return {
        "label": number.label,
        "query": release.plan.query.describe(),
        "fingerprint": release.draw[0],
        "mechanism": release.mechanism,
        "neighbors": release.plan.neighbors,
        "time": release.time.isoformat(),
        **_booked(release),
        "value": number.value,
    }


def remaining_document(remaining: Spec, affordable: int | None) -> dict[str, Any]:
    """What is left in a ledger, and how many times a plan can still be released (null: without end)."""
    micro = remaining.micro.tolist()
    people: list[dict[str, Any]]
    if len(micro) <= MOST_LEVELS:
        people = [{"left": level_text(m), "people": n} for m, n in zip(micro, remaining.counts, strict=True)]
    else:
        people = [
            {
                "left": level_text(micro[first]),
                "to": level_text(micro[end - 1]),
                "levels": end - first,
                "people": int(remaining.people[first:end].sum()),
            }
            for first, end in folded(len(micro))
        ]
    if remaining.opted_out:
        people.insert(0, {"left": "0", "people": remaining.opted_out})
    return {"left": people, "affordable": affordable}


def accounts_document(accounts: list[Account]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "accounts": [
            {
                "table": a.table,
                "tier": a.tier,
                "level": amount_text(a.level),
                "people": a.people,
                "spent": [amount_text(x) for x in a.spent],
                "left": [amount_text(x) for x in a.left],
                **({"ever": [amount_text(x) for x in a.ever]} if a.is_renewed else {}),
            }
            for a in accounts
        ],
    }


def _workload_document(plan: Plan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "accord": accord.__version__,
        **_together(plan),
        "equal": plan.equal,
        "plans": [
            {"weight": weight, **plan_document(part)}
            for weight, part in zip(plan.workload.weights, plan.parts, strict=True)
        ],
    }


def _workload_receipt(release: Release) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "accord": accord.__version__,
        **_together(release.plan),
        "charges": charges_document(release.plan.spec, release.cost),
        **_booked(release),
        "receipts": [release_document(part) for part in release.parts],
    }


def _together(plan: Plan) -> dict[str, Any]:
    reported = plan.workload.report_missing
    return {
        "workload": [part.query.label for part in plan.parts],
        **({} if reported is None else {"report_missing": number_text(reported)}),
        "neighbors": plan.neighbors,
        "share": level_text(plan.share),
        "charges": charges_document(plan.spec, plan.cost),
        **({"boxes": [_box_document(plan, keys) for keys in plan.boxes]} if plan.boxes else {}),
        "total": plan.total,
    }


def _box_document(plan: Plan, keys: Sequence[int]) -> dict[str, Any]:
    """Questions that share one noise, and what a person pays for all of them, once."""
    parts = [plan.parts[key] for key in keys]
    return {
        "noise": BOX,
        "questions": list(keys),
        "sums": sum(len(part.target.box_spans) for part in parts if isinstance(part.target, Additive)),
        "charges": charges_document(plan.spec, cost_together(parts)),
    }


def _booked(release: Release) -> dict[str, Any]:
    """Where it stands in a ledger; and if it was given out again, where that does."""
    where = {"ledger": release.booked, "repeated": release.repeated}
    return {name: vars(entry) for name, entry in where.items() if entry is not None}


_SHARING = (BoxCalibration, BoxedRegressionCalibration)
"""Of sums that share a noise, with those of other questions or with each other."""


def _decision(plan: Plan) -> dict[str, Any]:
    return {
        "query": plan.query.describe(),
        "mechanism": plan.mechanism,
        **({"noise": BOX} if isinstance(plan.calibration, _SHARING) else {}),
        **({"noise": JOINT} if plan.draws_together else {}),
        "neighbors": plan.neighbors,
        "share": level_text(plan.share),
        "spec": _spec_document(plan.spec),
        "charges": charges_document(plan.spec, plan.cost),
        "unit": plan.unit,
        "rmse": _or_null(plan.rmse),
        "rmse_here": _or_null(plan.rmse_here),
        **({} if plan.largest is None else {"top": {**asdict(plan.largest), **_chosen_first(plan)}}),
        "bias_bound": plan.bias_bound,
        "break_even_gap": _finite(plan.break_even_gap),
        "assumptions": plan.assumptions,
    }


def _spec_document(spec: Spec) -> dict[str, Any]:
    """How many people there are; null where nobody may know, and as many as planned for are "expected"."""
    counted: dict[str, int | None] = {"people": spec.total, "opted_out": spec.opted_out}
    if spec.is_expected:
        counted = {"people": None, "opted_out": None, "expected": spec.total}
    return {"fingerprint": spec.fingerprint, **counted}


def _chosen_first(plan: Plan) -> dict[str, Any]:
    """How much of everyone's charge chooses the largest groups, where they are chosen first."""
    calibration = plan.calibration
    return {"part": calibration.part / MICRO} if isinstance(calibration, ChoosingCalibration) else {}


def _finite(gap: float | None) -> float | str | None:
    """A gap; null: it is not known; "inf": none biases the answer."""
    return "inf" if gap is not None and isinf(gap) else gap


def _or_null(error: float | None) -> float | None:
    """An error, unless nothing can be predicted: JSON has no NaN."""
    return None if error is None or isnan(error) else error


def charges_document(spec: Spec, charges: IntArray) -> list[dict[str, Any]]:
    """What each level is charged.

    Of many levels, by ranges: from "level" to "to", at most "charge" and at least "least". How many people
    that are is null where levels are private: then it is the function of the level alone.
    """
    counts: Sequence[int | None] = [None] * spec.micro.size if spec.is_expected else spec.counts
    if spec.micro.size <= MOST_LEVELS:
        return [
            {"level": level_text(m), "tier": spec.tier(m), "people": n, "charge": level_text(c)}
            for m, n, c in zip(spec.micro.tolist(), counts, charges.tolist(), strict=True)
        ]
    return [
        {
            "level": level_text(int(spec.micro[first])),
            "to": level_text(int(spec.micro[end - 1])),
            "levels": end - first,
            "tier": None,
            "people": None if spec.is_expected else int(spec.people[first:end].sum()),
            "charge": level_text(int(charges[first:end].max())),
            "least": level_text(int(charges[first:end].min())),
        }
        for first, end in folded(spec.micro.size)
    ]


def folded(levels: int) -> list[tuple[int, int]]:
    """Ranges of about as many levels each, as (first, after the last).

    The last level may be ∞ and has a range of its own.

    >>> folded(1_000_000)[:2], folded(1_000_000)[-1]
    ([(0, 10101), (10101, 20202)], (999999, 1000000))
    """
    ends = [*(k * (levels - 1) // (_RANGES - 1) for k in range(_RANGES)), levels]
    return list(pairwise(ends))


def _interval_data(interval: Any) -> Any:
    """Intervals as plain data; of groups by several columns, by the key of the first, then of the next."""
    if not isinstance(interval, dict) or not all(isinstance(group, tuple) for group in interval):
        return plain_data(interval)
    nested: dict[str, Any] = {}
    for (*outer, last), ends in interval.items():
        at = nested
        for key in outer:
            at = at.setdefault(str(key), {})
        at[str(last)] = plain_data(ends)
    return nested


def plain_data(value: Any) -> Any:
    """Dates as ISO text, cells by their names; of somebody's own algorithm what JSON can hold."""
    if isinstance(value, dict):
        return {str(cell): plain_data(v) for cell, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(v) for v in value]
    if isinstance(value, Coefficients):
        return {"intercept": value.intercept, "coefficients": dict(value.coefficients), "note": value.note}
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, np.floating):
        return plain_data(float(value))
    if isinstance(value, (np.ndarray, np.generic)):
        simple = value.tolist()
        if not isinstance(simple, np.generic):
            return plain_data(simple)
    return f"a {type(value).__name__}"
