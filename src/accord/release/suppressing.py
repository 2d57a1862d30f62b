"""Which of many private groups are shown: those that are not empty, as far as what was released tells; or
the largest, or those of the largest that are not empty.

Pure post-processing: it goes by public things and by what was released about all groups, and by nothing else.
So it is free of charge, and there is nothing to prove about anybody's loss.

Size       Private groups are answered under add-remove, where every member adds as much to all sums together
           as any other: the target's sensitivity s. So the released means of a group, together, over s, are
           the share of everyone whom it has, with the k noises of these means in it; quantiles release the
           weight of a group with one noise (mechanisms/size.py).
Rule       A group is shown if this is larger than h, where the noises of an empty group exceed h with
           probability α/groups at most, α = 0.05. So with a probability of 95 % no empty group is shown. How
           many small ones are shown is not promised.
Largest    Of these, with accord.top, the k groups with the largest noisy sizes, the largest first; of equal
           ones, that of the earlier key. Where groups are chosen first (mechanisms/choosing.py), nothing is
           released of others, and of those it is α/k in the place of α/groups: noise knows nothing of what
           was chosen.
h          Let X be a continuous Laplace law of scale b whole numbers, Z the discrete one that is drawn. Then
           P(|X| ≥ z) ≤ P(|Z| ≥ z) = 2e^(−z/b)/(1 + e^(−1/b)) ≤ e^(−(z−1)/b) for whole z ≥ 1, so that both
           can be drawn with one sign and |Z − X| ≤ 1. Of k noises, h is that of the sum of k continuous ones
           (statistics/convolution.py), and k whole numbers more.
Intervals  of a group that is shown hold but for α/groups. So those of all declared groups hold together but
           for α, whichever of them are shown. Noise alone: a mean of x with the noisy sums A and B, B of all
           members, is missed by ± c/B exactly if |A − xB|, which is noise with weights of at most 1, exceeds
           c; how large B happened to be does not matter, and neither does being shown for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import Any

from accord.mechanisms.additive import ChoosingCalibration
from accord.mechanisms.choosing import choice_slack
from accord.mechanisms.prediction import AroundValue
from accord.mechanisms.sample import SampleCalibration, noise_on_means
from accord.planning import Plan
from accord.statistics import Grouped
from accord.statistics.convolution import half_width
from accord.statistics.target_sums import Additive

ALPHA = 0.05
"""How probable it may be that an empty group is shown, of all of them."""


def leaves_groups_out(plan: Plan) -> bool:
    """Whether groups may be left out of the answer.

    One that needs no data tells nothing about them: it shows all of them; of the largest, none.
    """
    if plan.choice is None or not isinstance(plan.query, Grouped):
        return False
    return plan.query.part.largest is not None or (plan.query.part.suppress and plan.reads_data)


def shown(plan: Plan, released: Sequence[Sequence[Fraction]]) -> list[Any]:
    """The groups that are shown: in the order of their keys, or the largest of them first."""
    assert isinstance(plan.query, Grouped)
    part = plan.query.part
    groups = _not_empty(plan, released) if part.suppress else list(part.groups)
    if part.largest is None:
        return groups
    counted = [group for group in groups if released[part.places[group]]]
    return sorted(counted, key=lambda group: -released[part.places[group]][0])[: part.largest]


def by_noise_alone(plan: Plan) -> bool:
    """Whether a size that is shown is off by noise alone that was drawn after the group was chosen."""
    model = plan.prediction.error_model
    if not (plan.chooses_first and isinstance(model, AroundValue)):
        return False
    return not (model.spread.sampling or model.spread.bias)


def left_out_at_most(
    plan: Plan, released: Sequence[Sequence[Fraction]], others: Sequence[Sequence[Fraction]], alpha: float
) -> float:
    """How many people a group has at most that is left out, where groups are chosen first.

    Half of alpha is for the intervals of those that are shown. Each of three sixths is for one of these: that
    a choice takes a group that is smaller than another by more than its slack; that the noise of a size, or
    what unequal weights do to that of any group, is larger than this.
    """
    calibration, model, people = plan.calibration, plan.prediction.error_model, plan.people
    assert isinstance(calibration, ChoosingCalibration) and isinstance(model, AroundValue)
    part, spread = alpha / 6, model.spread
    off = spread.without_weights.half_width(part / calibration.shown)
    if spread.sampling or spread.bias:
        off += replace(spread, laplace=0.0).half_width(part / plan.private_groups)
    slack = people * choice_slack(calibration, plan.spec.people, plan.private_groups, part)
    smallest = min(people * float(size) for counted in released for size in counted)
    counted = [people * float(size) for hidden in others for size in hidden]
    return min(float(plan.most_people), max(0.0, smallest + slack + off, *(size + off for size in counted)))


def _not_empty(plan: Plan, released: Sequence[Sequence[Fraction]]) -> list[Any]:
    assert isinstance(plan.query, Grouped)
    groups, alpha = plan.query.part.groups, ALPHA / plan.counted_groups
    if isinstance(plan.target, Additive):
        h = plan.target.sensitivity * largest_of_nobody(plan, alpha)
        there = [fsum(map(float, means)) > h for means in released]
    else:
        model = plan.prediction.error_model
        there = [model.has_people(of_group, alpha) is True for of_group in released]
    return [group for group, is_there in zip(groups, there, strict=True) if is_there]


def largest_of_nobody(plan: Plan, alpha: float) -> float:
    """h: what the noisy share of an empty group exceeds with a probability of alpha at most."""
    target = plan.target
    assert isinstance(target, Additive)
    scale, step = _noise(plan, target)
    return noise_bound(scale, step, target.released, alpha) / target.sensitivity


def noise_bound(scale: float, step: float, noises: int, alpha: float) -> float:
    """What the sum of so many noises exceeds with a probability of alpha at most.

    Each is `step` times a whole number, and has this scale.

    >>> round(noise_bound(10.0, 0.0, 1, 0.05), 2)
    23.03
    """
    return half_width(0.0, (scale,) * noises, 2 * alpha) + noises * step  # one side of the law


def _noise(plan: Plan, target: Additive) -> tuple[float, float]:
    """The scale of the noise on each released mean, and how much a whole number of it is."""
    calibration, people = plan.calibration, plan.spec.people
    if isinstance(calibration, SampleCalibration):
        return noise_on_means(calibration, people, target)
    assert plan.method.linear is not None
    law = plan.method.linear(calibration, people, target)
    if not law.scales.size:
        return 0.0, 0.0
    (scale,) = law.scales.tolist()
    return scale, scale / law.smallest_scale
