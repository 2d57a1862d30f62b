"""People with rows of several groups or categories: nobody loses more than their charge, whatever their rows are.

The engine reads everybody possible, up to three rows of any groups, under several ids each: where groups are
equally frequent, a hash of the id decides. So what one person can add to all sums of all groups together is known,
and the loss of every pair of them (under add-remove, of each and nobody) is Σ|change|/scale, a rational number.
"""

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pytest

import accord
from accord.budget import MICRO
from accord.errors import PlanError
from accord.people.summary import Summary
from accord.release.answer import answer

GROUPS = ("a", "b", "c", "d", "undeclared")
ROWS = list(product(GROUPS, (0.0, 2.0, None)))
POSSIBLE = [
    *((row,) for row in ROWS),
    *combinations_with_replacement(ROWS, 2),
    *combinations_with_replacement([(g, 2.0) for g in GROUPS], 3),
]
NAMES = ("ann", "bob", "cyd", "dan")
CATEGORIES = ["b", "d", "c", "a"]
KEYS, FEW = ({"by": "g", "keys": CATEGORIES[:m]} for m in (4, 3))
"""Of four groups somebody may leave two and come into two others; of three there are no more than three."""
QUESTIONS = {
    "histogram": lambda k: accord.histogram("g", categories=CATEGORIES, at_most=k),
    "histogram of some": lambda k: accord.histogram("g", categories=CATEGORIES, where="x > 1", at_most=k),
    "histogram with others": lambda k: accord.histogram("g", categories=CATEGORIES, missing="z", at_most=k),
    "count": lambda k: accord.count(**KEYS, at_most=k),
    "count of few": lambda k: accord.count(**FEW, at_most=k),
    "mean": lambda k: accord.mean("x", (0, 2), step=1, **KEYS, at_most=k),
    "mean of some": lambda k: accord.mean("x", (0, 2), step=1, **KEYS, where="x > 1", at_most=k),
    "mean with all values": lambda k: accord.mean("x", (0, 2), step=1, missing="none", **KEYS, at_most=k),
    "mean of sums": lambda k: accord.mean("x", (0, 4), step=1, **KEYS, at_most=k, per_person="sum"),
}
SPEC = accord.Spec.of([0.2, 0.2, 1.0])
CASES = list(product(QUESTIONS, (1, 2), ("replace", "add-remove")))


@cache
def everybody():
    """Each with a level of their own, by which the sums of one are told from those of others."""
    people = [(f"{name} {k}", rows) for k, rows in enumerate(POSSIBLE) for name in NAMES]
    rows = [(who, (place + 1) / 1000, *row) for place, (who, rows) in enumerate(people) for row in rows]
    columns = zip(("id", "e", "g", "x"), zip(*rows, strict=True), strict=True)
    return accord.table({name: list(values) for name, values in columns}, epsilon="e", user="id")


class Recording:
    """Says at which scale a noise would be drawn."""

    def __init__(self):
        self.scales = set()

    def laplace(self, scale):
        self.scales.add(scale)
        return 0


def added_by_each(plan):
    """What each person adds to the noisy sums of all groups."""
    groups = [summary.rows() for summary in everybody().reader.summaries(plan.query)]
    each = set()
    for by_group in zip(*groups, strict=True):
        sums = [plan.target.sums(list(columns), 1) for columns in by_group]
        each.add(tuple(x for s in sums for x in (s[:1] if plan.target.complementary else s)))
    return each


def scale_of(plan):
    """Of the noise, the same for all sums."""
    noise = Recording()
    outputs = everybody().reader.summary(plan.query).outputs
    empty = Summary(plan.spec.people, outputs, *(plan.spec.people[:0] for _ in range(3)))
    answer(plan, [empty] * plan.private_groups, noise)
    (scale,) = noise.scales
    return scale


def most_lost(plan, charge):
    """The largest loss of somebody who counts with this charge in each sum."""
    people = added_by_each(plan)
    others = people if plan.neighbors == "replace" else {(0,) * len(next(iter(people)))}
    farthest = max(sum(abs(a - b) for a, b in zip(p, q, strict=True)) for p in people for q in others)
    return Fraction(farthest * charge) / scale_of(plan)


@pytest.mark.parametrize(("question", "at_most", "neighbors"), CASES)
def test_nobody_loses_more_than_their_charge_and_somebody_all_of_it(question, at_most, neighbors):
    for mechanism in ("minimum", "proportional", "affine"):
        plan = accord.plan(SPEC, QUESTIONS[question](at_most), mechanism, neighbors=neighbors)
        levels = SPEC.micro.tolist()
        for level, charge, cost in zip(
            levels, plan.calibration.charges.tolist(), plan.cost.tolist(), strict=True
        ):
            loss = most_lost(plan, charge)
            assert loss <= Fraction(cost, MICRO) <= Fraction(level, MICRO)
            assert loss == Fraction(cost, MICRO)  # no noise is wasted


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_noise_for_one_group_would_not_do_for_two(question, neighbors):
    """The same tables tell a plan for one group or cell from one for two."""
    one, two = (accord.plan(SPEC, QUESTIONS[question](k), "minimum", neighbors=neighbors) for k in (1, 2))
    charge = int(one.calibration.charges[0])
    farthest = most_lost(two, charge) * scale_of(two)
    assert farthest / scale_of(one) > Fraction(int(one.cost[0]), MICRO)


def test_people_are_not_kept_cell_by_cell_who_are_in_several():
    with pytest.raises(PlanError, match="keeps people cell by cell, and one person may be in several cells"):
        accord.plan(SPEC, QUESTIONS["histogram"](2), "sample")
    assert accord.plan(SPEC, QUESTIONS["mean"](2), "sample").times == 4
