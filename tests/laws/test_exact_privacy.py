"""Nobody loses more than their charge: exact ratios on tiny tables, no sampling.

A release is a function of the data's integers and of independent discrete Laplace draws. If, for neighboring tables D and D′,
shifting the draws by s gives the same output for every draw, then the log ratio of probabilities is at most Σ|s_k|/scale_k, and
it is attained by draws far enough on one side. So for every person, every neighbor and every mechanism, the shift is computed from
the real code with fixed draws, and its cost is compared with the charge as rational numbers. (Mechanisms that choose instead of adding
noise: test_exact_selection.py; that keep people at random: test_sample.py; neighbors add-remove: test_add_remove.py.)
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from noises import Fixed
from strategies import QUERIES, person_values, summary_of

import accord
from accord.budget import MICRO, PUBLIC
from accord.lab.audit.case_plans import declared_for
from accord.mechanisms import ALL

SPECS = {
    "two levels": accord.Spec.of([0.1, 1.0]),
    "three levels, two of one": accord.Spec.of([0.2, 0.2, 0.7]),
    "odd levels": accord.Spec.of([0.000003, 0.123457, 2.5]),
    "public among them": accord.Spec.from_groups({0.1: 1, 1.0: 1, float("inf"): 1}),
}
SQUARES = {
    "proportion": accord.proportion("x > 0", missing="none"),
    "variance": accord.variance("x", bounds=(0, 3), step=1, missing="none"),
    "standard deviation": accord.std("x", bounds=(-1, 1), step=1, missing="none"),
}
SMALL = {name: q for name, q in (QUERIES | SQUARES).items() if len(person_values(q)) <= 4}


def loss(mechanism, plan, rows, person, value):
    """The exact log ratio, as a rational number, when one person's integers become `value`."""
    spec, target = plan.spec, plan.target
    changed = [value if i == person else row for i, row in enumerate(rows)]

    def output(data, *draws):
        noise = Fixed(*draws)
        summary = summary_of(spec, plan.query, data)
        return mechanism.method(target).answer(summary, plan.calibration, target, noise), noise.scales

    base, scales = output(rows)
    other, scales_there = output(changed)
    assert scales == scales_there, "the noise must not depend on the data"
    difference = [a - b for a, b in zip(base, other, strict=True)]
    if not any(difference):
        return Fraction(0)
    assert scales, "data moved the output of a release without noise"
    cost = Fraction(0)
    for k, scale in enumerate(scales):
        unit, _ = output(changed, *([0] * k), 1)
        response = [a - b for a, b in zip(unit, other, strict=True)]
        if mechanism.name == "mix" and not _is_draw_of(k, person, spec, target):
            continue
        shifts = {d / r for d, r in zip(difference, response, strict=True) if r}
        assert len(shifts) == 1, "one draw moves outputs that the data did not move together"
        shift = shifts.pop()
        assert shift.denominator == 1, "no integer draw gives the same output"
        difference = [d - shift * r for d, r in zip(difference, response, strict=True)]
        cost += abs(shift) / scale
    assert not any(difference), "no shift of the draws gives the same output"
    return cost


def _is_draw_of(k, person, spec, target):
    """Whether draw k is one of the level that the person has: `mix` draws for one level after the other, none for public people."""
    drawn = [j for j, m in enumerate(spec.micro.tolist()) if m != PUBLIC]
    return drawn[k // (1 if target.complementary else target.released)] == _level_of(person, spec)


def _level_of(person, spec):
    return next(j for j in range(spec.micro.size) if person < spec.people[: j + 1].sum())


def worst_losses(mechanism, plan):
    """For each level the largest loss over all tiny tables, people and changes."""
    worst = [Fraction(0)] * plan.spec.micro.size
    values = person_values(plan.query)
    for rows in product(values, repeat=plan.spec.total):
        for person in range(plan.spec.total):
            level = _level_of(person, plan.spec)
            if plan.calibration.charges[level] != PUBLIC:
                for value in values:
                    worst[level] = max(worst[level], loss(mechanism, plan, list(rows), person, value))
    return worst


@pytest.mark.parametrize("query", SMALL)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "mechanism", [m for m in ALL if m.name not in ("pe", "sample")], ids=lambda m: m.name
)
def test_the_loss_is_exactly_the_charge(mechanism, spec, query):
    asked = declared_for(mechanism.name, SMALL[query])
    candidate = next(c for c in accord.plan(SPECS[spec], asked).candidates if c.mechanism == mechanism.name)
    if candidate.rmse is None:
        assert candidate.note
        return
    plan = accord.plan(SPECS[spec], asked, mechanism.name)
    for charge, lost in zip(plan.calibration.charges.tolist(), worst_losses(mechanism, plan), strict=True):
        if charge != PUBLIC:
            assert lost == Fraction(charge, MICRO)


@pytest.mark.parametrize(
    "mechanism", [m for m in ALL if m.name not in ("rank", "pe", "sample")], ids=lambda m: m.name
)
def test_the_check_has_teeth(mechanism):
    """Half the noise is found out, for every mechanism."""

    class Half(Fixed):
        def laplace(self, scale):
            return super().laplace(scale / 2)

    def bad(summary, calibration, target, noise):
        half = Half(*noise.draws)
        answer = mechanism.method(target).answer(summary, calibration, target, half)
        noise.scales = half.scales
        return answer

    asked = declared_for(mechanism.name, accord.count(where="x > 0"))
    plan = accord.plan(SPECS["two levels"], asked, mechanism.name)
    method = replace(mechanism.method(plan.target), answer=bad)
    lost = worst_losses(replace(mechanism, methods=(method,)), plan)
    assert any(
        loss > Fraction(charge, MICRO)
        for charge, loss in zip(plan.calibration.charges.tolist(), lost, strict=True)
    )
