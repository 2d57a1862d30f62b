"""Bands: intervals of all answers of a workload that hold together, with one confidence.

The probability of error α is divided evenly over the questions, and those of one box have theirs in common.
For these there are two ways, and the one that is narrower on average is taken, by public things alone:
- each answer's own interval, at α/m for m questions (Bonferroni);
- all coordinates of the box lie within h at once but for Q(K, h) (statistics/box.py): most of α for that, the
  rest for what unequal weights do to each answer. For answers that are linear in one sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.mechanisms.prediction import AroundValue
from accord.release.result import Release
from accord.statistics import box
from accord.statistics.spread import Spread, half_width

_FOR_NOISE = 0.95
"""The part of α that is for the noise of a box."""


def bands(release: Release, confidence: float) -> list[Any]:
    """An interval for each question, all of which hold at once with this confidence."""
    parts, alpha = release.parts, 1 - confidence
    each = alpha / len(parts)
    intervals = {k: part.interval(1 - each) for k, part in enumerate(parts)}
    for keys in release.plan.boxes:
        halves = _within_box([parts[k] for k in keys], each * len(keys))
        for k, half in zip(keys, halves or (), strict=False):
            model, value = parts[k].plan.prediction.error_model, parts[k].answer
            assert isinstance(model, AroundValue)
            fixed = Spread(extra=half + model.spread.extra)
            intervals[k] = model.target.interval(value, parts[k].released, fixed, 0.5, 1.0, model.shift)
    return [intervals[k] for k in range(len(parts))]


def _within_box(parts: Sequence[Release], alpha: float) -> list[float] | None:
    """Half the width of each, from the band of their box; None: they have no simple law, or it is wider."""
    halves, ratios = [], []
    for part in parts:
        model = part.plan.prediction.error_model
        share = model.spread.box if isinstance(model, AroundValue) else None
        if share is None or len(share.effects) != 1 or part.is_judged_by_size:
            return None
        assert isinstance(model, AroundValue)
        sampling = half_width(model.spread.sampling, 0.0, (1 - _FOR_NOISE) * alpha / len(parts))
        half = share.effects[0] * box.band(_FOR_NOISE * alpha, share.coordinates)
        weighs = sampling + model.spread.step if model.spread.sampling else 0.0
        halves.append(half + weighs + model.spread.bias)
        ratios.append(halves[-1] / (model.spread.half_width(alpha / len(parts)) - model.spread.extra))
    return halves if sum(ratios) < len(ratios) else None
