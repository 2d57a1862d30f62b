"""Regression costs nobody more than their charge: the sensitivity by brute force, exact losses through the real `answer`, and the integers of the real engine.

A regression releases sums of entries T_e(z), each with discrete Laplace noise, where z are a person's codes. If shifting the draws of one table by
V − V′ gives the output of another, for every draw, then the log ratio of probabilities is at most Σ|V_e − V′_e|/scale_e, and is attained by draws far
enough on one side. What is summed is reckoned here anew, from what statistics/moments.py says that is released.
"""

import csv
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product
from math import floor, inf, isfinite, log, nan, nextafter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from noises import Fixed
from strategies import changed

import accord
from accord.budget import MICRO, PUBLIC
from accord.errors import QueryError
from accord.mechanisms import ALL, regression
from accord.mechanisms.sample import SURE, SampleCalibration
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE, REPLACE, named
from accord.statistics import moments
from accord.statistics.encoding import Q
from accord.statistics.moments import Weights, sensitivity, weights_for

BOTH = pytest.mark.parametrize("neighbors", ["replace", "add-remove"])


def asked(kinds, missing="none"):
    """A regression by the kinds of its features: n is a number, a digit a category with so many values."""
    bounds, categories = {"y": (-1, 1)}, {}
    for k, kind in enumerate(kinds):
        if kind == "n":
            bounds[f"x{k}"] = (-1, 1)
        else:
            categories[f"x{k}"] = [f"v{value}" for value in range(int(kind))]
    return accord.regression("y", [f"x{k}" for k in range(len(kinds))], bounds, categories, missing)


def groups_of(kinds):
    """Which feature each coded column is of, and whether it is a number."""
    return [
        (k, kind == "n") for k, kind in enumerate(kinds) for _ in range(1 if kind == "n" else int(kind) - 1)
    ]


def entries_of(kinds):
    """What is released, by kind and columns (−1 is y), in order."""
    groups = groups_of(kinds)
    m = range(len(groups))
    return [
        ("y", (-1,)),
        *(("x", (j,)) for j in m),
        *(("yx", (-1, j)) for j in m),
        *(("xx", (j, k)) for j, k in combinations(m, 2) if groups[j][0] != groups[k][0]),
        *(("square", (j, j)) for j in m if groups[j][1]),
    ]


def points_of(kinds, numbers=(-Q, 0, Q), targets=(-Q, 0, Q)):
    """Every person whom one value in each column can make: codes of the features, y last."""
    choices = []
    for kind in kinds:
        if kind == "n":
            choices.append([(x,) for x in numbers])
        else:
            dummies = int(kind) - 1
            choices.append(
                [tuple(Q if value == j + 1 else -Q for j in range(dummies)) for value in range(int(kind))]
            )
    return [(*(code for part in z for code in part), y) for *z, y in product(*choices, targets)]


def moments_of(kinds, points):
    """T of each point, in units of Q²: one row a point."""
    z = np.asarray(points, dtype=np.int64).reshape(len(points), -1)
    return np.stack(
        [z[:, at].prod(axis=1) * Q ** (2 - len(at)) for at in (list(c) for _, c in entries_of(kinds))], 1
    )


def weights_of(kinds, w=None):
    w = w or weights_for(len(groups_of(kinds)))
    return np.array([getattr(w, kind) for kind, _ in entries_of(kinds)], dtype=np.int64)


# ---- the sensitivity -------------------------------------------------------------------------------------------------------

SMALL = ["n", "2", "3", "4", "nn", "n2", "n3", "22", "23"]  # 1 to 4 columns
MEDIUM = ["nnn", "nn2", "n22", "n4", "222", "33", "2222", "nnnn", "nn3", "n23", "5", "nn4", "43"]  # 3 to 5
LARGE = ["222222", "n22222", "nn33", "44", "n34", "nnn4", "2244", "nnnn22"]  # 6 and more
DESIGNS = [*SMALL, *MEDIUM, *LARGE]
BETWEEN = {"nn2", "nn3", "nn33", "nnn4", "nnnn22"}
"""Where the worst people lie between the points of the grid."""
assert {min(6, len(groups_of(kinds))) for kinds in DESIGNS} == {1, 2, 3, 4, 5, 6}


def worst_pair(moments, weights):
    """The largest Σ w|T − T′| over all pairs, and where."""
    weighted = moments * weights
    best = (-1, 0, 0)
    for i in range(len(weighted) - 1):
        apart = np.abs(weighted[i + 1 :] - weighted[i]).sum(axis=1)
        k = int(apart.argmax())
        best = max(best, (int(apart[k]), i, i + 1 + k))
    return best


def climbed(kinds, one, other, weights):
    """Larger by changing the codes of numbers and of y one at a time, over all integers, until nothing helps."""
    free = [j for j, (_, number) in enumerate(groups_of(kinds)) if number] + [len(groups_of(kinds))]
    pair, best = [list(one), list(other)], -1
    while True:
        before = best
        for side, j in product((0, 1), free):
            tried = np.tile(np.array(pair[side]), (2 * Q + 1, 1))
            tried[:, j] = np.arange(-Q, Q + 1)
            apart = np.abs((moments_of(kinds, tried) - moments_of(kinds, [pair[1 - side]])) * weights).sum(
                axis=1
            )
            k = int(apart.argmax())
            if apart[k] > best:
                best, pair[side] = int(apart[k]), tried[k].tolist()
        if best == before:
            return best


def grid_of(kinds):
    return (-Q, 0, Q) if kinds.count("n") > 2 else (-Q, -Q // 2, 0, Q // 4, Q // 2, Q)


@pytest.mark.parametrize("kinds", DESIGNS)
def test_what_is_released_is_what_the_proof_is_about(kinds):
    query = asked(kinds)
    assert [(e.kind, e.columns) for e in query.encoding.products] == entries_of(kinds)
    assert query.codes == len(groups_of(kinds))


@pytest.mark.parametrize("kinds", DESIGNS)
def test_no_two_people_are_further_apart_and_some_are_as_far(kinds):
    """Over corners and a grid, then from the best pairs over all integers. Replacing one person by another moves weighted entries by S·Q² at most."""
    points, weights = points_of(kinds, grid_of(kinds)), weights_of(kinds)
    far, i, k = worst_pair(moments_of(kinds, points), weights)
    bound = sensitivity(asked(kinds), REPLACE) * Q * Q
    top = max(far, climbed(kinds, points[i], points[k], weights)) if "n" in kinds else far
    assert bound * Fraction(999, 1000) <= top <= bound
    assert (far == bound) == (kinds not in BETWEEN)


@pytest.mark.parametrize("kinds", DESIGNS)
def test_nobody_has_more_than_the_weights_and_some_have_as_much(kinds):
    """Coming or going adds |T| of every entry, and one to the count."""
    weights, w = weights_of(kinds), weights_for(len(groups_of(kinds)))
    size = (np.abs(moments_of(kinds, points_of(kinds, grid_of(kinds)))) * weights).sum(axis=1).max()
    assert int(size) + w.count * Q * Q == sensitivity(asked(kinds), ADD_REMOVE) * Q * Q


@pytest.mark.parametrize("kinds", DESIGNS)
def test_members_of_a_private_part_are_as_far_apart_as_two_of_them_or_one_and_nobody(kinds):
    """Under replace somebody may have another value, or come in or go out: the number of people counts then."""
    query, weights, w = asked(kinds), weights_of(kinds), weights_for(len(groups_of(kinds)))
    people = np.array([[*row, Q * Q] for row in moments_of(kinds, points_of(kinds, grid_of(kinds)))])
    states = np.vstack([people, np.zeros(people.shape[1], dtype=np.int64)])
    far, _, _ = worst_pair(states, np.append(weights, w.count))
    bound = sensitivity(query, REPLACE, True) * Q * Q
    assert sensitivity(query, REPLACE, True) >= max(sensitivity(query, r) for r in (REPLACE, ADD_REMOVE))
    assert bound * Fraction(95, 100) <= far <= bound
    assert (far == bound) or kinds in BETWEEN


@pytest.mark.parametrize("kinds", DESIGNS)
def test_random_people_are_not_further_apart(kinds):
    """Anywhere in the box, and climbing from there."""
    rng = np.random.default_rng(len(kinds))
    weights, bound = weights_of(kinds), sensitivity(asked(kinds), REPLACE) * Q * Q
    everyone = np.array(points_of(kinds, (0,), (0,)))
    people = everyone[rng.integers(len(everyone), size=(2, 4000))]
    free = [j for j, (_, number) in enumerate(groups_of(kinds)) if number] + [people.shape[2] - 1]
    people[..., free] = rng.integers(-Q, Q + 1, size=(2, 4000, len(free)))
    one, other = people
    apart = (np.abs(moments_of(kinds, one) - moments_of(kinds, other)) * weights).sum(axis=1)
    assert 0 < apart.max() <= bound
    size = (np.abs(moments_of(kinds, one)) * weights).sum(axis=1)
    assert size.max() + weights_for(len(free)).count <= sensitivity(asked(kinds), ADD_REMOVE) * Q * Q
    for start in apart.argsort()[-3:]:
        assert climbed(kinds, one[start], other[start], weights) <= bound


@pytest.mark.parametrize(
    "w", [Weights(5, 1, 3, 2, 1, 7), Weights(1, 4, 1, 1, 3, 1), Weights(1, 1, 6, 2, 2, 2)], ids=str
)
@pytest.mark.parametrize("kinds", ["n", "nn", "n3", "4", "nn2", "n23"])
def test_the_formula_holds_for_other_weights(monkeypatch, kinds, w):
    """So that changing them is safe, as long as a square's is at least half of a product's."""
    monkeypatch.setattr(moments, "weights_for", lambda codes: w)
    bound = sensitivity.__wrapped__(asked(kinds), REPLACE) * Q * Q
    points, weights = points_of(kinds, grid_of(kinds)), weights_of(kinds, w)
    far, i, k = worst_pair(moments_of(kinds, points), weights)
    assert bound * Fraction(999, 1000) <= max(far, climbed(kinds, points[i], points[k], weights)) <= bound


def test_equal_weights_of_numbers_give_half_of_d_times_d_plus_3(monkeypatch):
    assert [sensitivity(asked("n" * m), REPLACE) for m in (1, 2)] == [5, 9]
    monkeypatch.setattr(moments, "weights_for", lambda codes: Weights(1, 1, 1, 1, 1, 1))
    for m in range(1, 30):
        d = m + 1
        assert sensitivity.__wrapped__(asked("n" * m), REPLACE) == Fraction(d * (d + 3), 2)
        assert sensitivity.__wrapped__(asked("n" * m), ADD_REMOVE) == Fraction(d * (d + 3), 2)
    assert [sensitivity(asked("n" * m), REPLACE, True) for m in (1, 2)] == [5, 9]  # of members: the same


@pytest.mark.parametrize("kinds", ["4", "5", "n4"])
def test_several_dummies_of_one_category_at_once_would_be_further_apart(kinds):
    """So it matters that the engine makes them all from one value: see below."""
    loose, weights = [], weights_of(kinds)
    columns = [(-Q, 0, Q) if number else (-Q, Q) for _, number in groups_of(kinds)]
    loose = list(product(*columns, (-Q, Q)))
    bound = sensitivity(asked(kinds), REPLACE) * Q * Q
    assert worst_pair(moments_of(kinds, points_of(kinds)), weights)[0] <= bound
    assert worst_pair(moments_of(kinds, loose), weights)[0] > bound


def test_many_columns_are_no_problem():
    """Whatever their kinds: of true and false, or of three values, or mixed. It once took 2^columns steps, which would not end here."""
    binary = {f"b{k}": [False, True] for k in range(40)}
    three = {f"c{k}": ["a", "b", "c"] for k in range(20)}
    bounds = {f"n{k}": (0, 1) for k in range(20)} | {"y": (0, 1)}
    few = list(binary)[:21]
    assert (
        sensitivity(accord.regression("y", few, {"y": (0, 1)}, {b: binary[b] for b in few}), REPLACE) == 392
    )
    mixed = accord.regression("y", [*list(bounds)[:-1], *binary, *three], bounds, binary | three)
    assert mixed.codes == 100
    for neighbors in (REPLACE, ADD_REMOVE):
        assert sensitivity(mixed, neighbors) > sensitivity(asked("n" * 30), neighbors)


# ---- nobody loses more -----------------------------------------------------------------------------------------------------

LEVELS = {
    "two levels": [0.1, 1.0],
    "two of one": [0.2, 0.2, 0.7],
    "odd levels": [0.000003, 0.123457, 2.5],
    "one public": [0.1, 1.0, inf],
}


def mechanism_of(name):
    return next(m for m in ALL if m.name == name)


def plans_of(levels, kinds, name, neighbors, t=None, share=1.0):
    """With the mean only, and with slopes and a noise for each moment: test_moment_boxes.py has the others."""
    with pytest.MonkeyPatch.context() as without:
        without.setattr(regression, "offered", lambda target: [])
        plan = accord.plan(accord.Spec.of(levels), asked(kinds), name, share, t=t, neighbors=neighbors)
    return [changed(plan, calibration=replace(plan.calibration, mean_only=only)) for only in (True, False)]


class Releases:
    """What is released about tables of one plan. A table has one entry a person, in the order of the levels: their codes, or None who is not there."""

    def __init__(self, plan, kinds, answer=None):
        self.plan, self.kinds, self.size = plan, kinds, len(entries_of(kinds))
        self.level = np.repeat(np.arange(plan.spec.micro.size), plan.spec.people)
        self.answer = answer or plan.method.answer
        self.sampled = isinstance(plan.calibration, SampleCalibration)
        self.add_remove = self.sampled or plan.neighbors == "add-remove"
        charges = plan.calibration.charges[self.level].tolist()
        public = max(charges) == PUBLIC  # then only public people are read
        self.weights = (
            [1] * len(charges) if self.sampled else [int(c == PUBLIC) if public else c for c in charges]
        )
        self.moments = cache(lambda z: moments_of(kinds, [z])[0])
        self.shown = cache(self._shown)
        self.outputs, self.scales = {}, None
        self.public = [i for i, c in enumerate(charges) if public and c == PUBLIC]

    def run(self, table, draws=()):
        sums = np.zeros((self.plan.spec.micro.size, self.size + 1), dtype=np.int64)
        for level, z in zip(self.level, table, strict=True):
            if z is not None:
                sums[level] += (*self.moments(z), 1)
        level, output = np.indices(sums.shape)
        summary = Summary(self.plan.spec.people, sums.shape[1], level.ravel(), output.ravel(), sums.ravel())
        noise = Fixed(*draws)
        return self.answer(summary, self.plan.calibration, self.plan.target, noise), noise.scales

    def sums(self, table):
        """What noise is added to, as mechanisms/regression.py says."""
        there = [(c, z) for c, z in zip(self.weights, table, strict=True) if z is not None]
        sums = sum((c * self.moments(z).astype(object) for c, z in there), np.zeros(self.size, dtype=object))
        count = Q * Q * sum(c for c, _ in there)
        if not self.plan.calibration.mean_only:
            return np.array([*sums, count] if self.add_remove else sums, dtype=object)
        return np.array([count + sums[0], count - sums[0]] if self.add_remove else [sums[0]], dtype=object)

    def _shown(self, table):
        """The sums. It is shown that what is released depends on them plus the draws, and on nothing else of the table: whatever the table, draws that bring
        them to the same totals give the same output."""
        sums = self.sums(table)
        released, scales = self.run(table)
        assert len(scales) in (0, len(sums)), "every sum has its noise, and nothing else"
        self.scales = scales if self.scales is None else self.scales
        outputs = [] if scales else [released]
        for total in TOTALS:
            draws = [total[k % len(total)] - x for k, x in enumerate(sums)]
            released, again = self.run(table, draws)
            assert again == scales == self.scales, "the noise must not depend on the data"
            outputs.append(released)
        same = self.outputs.setdefault(tuple(table[i] for i in self.public), outputs)
        assert outputs == same, "something of the table is released beside the noisy sums"
        return sums

    def loss(self, one, other):
        """Σ|shift|/scale: the log ratio of probabilities, attained by draws far enough on one side."""
        here, there = self.shown(tuple(one)), self.shown(tuple(other))
        if not self.scales:
            return Fraction(0)
        return sum(
            (abs(a - b) / scale for a, b, scale in zip(here, there, self.scales, strict=True)), Fraction(0)
        )


TOTALS = [(10**18, 17, -(10**17), 1, 10**16), (-3, 5 * 10**17)]


def values_of(kinds):
    return points_of(kinds, (-Q, 0, Q)) if len(kinds) < 2 else points_of(kinds, (-Q, 0, Q), (-Q, Q))


def neighboring(plan, kinds):
    """(person, table, that table with one person's codes changed, or without them), where the others are at corners."""
    values = values_of(kinds)
    for person, other in product(range(plan.spec.total), (values[0], values[-1])):
        for here, there in (
            combinations(values, 2) if plan.neighbors == "replace" else ((value, None) for value in values)
        ):
            table = [other] * plan.spec.total
            table[person] = here
            yield person, table, [*table[:person], there, *table[person + 1 :]]


def worst_losses(plan, kinds, answer=None):
    """For each level the largest loss."""
    releases = Releases(plan, kinds, answer)
    worst = [Fraction(0)] * plan.spec.micro.size
    for person, one, other in neighboring(plan, kinds):
        level = releases.level[person]
        if plan.calibration.charges[level] != PUBLIC:
            worst[level] = max(worst[level], releases.loss(one, other))
    return worst


def overcharged(plan, losses):
    return [
        (level, lost)
        for level, charge, lost in zip(
            plan.spec.levels, plan.calibration.charges.tolist(), losses, strict=True
        )
        if charge != PUBLIC and lost > Fraction(charge, MICRO)
    ]


@BOTH
@pytest.mark.parametrize(
    ("levels", "kinds"), [*((levels, "n") for levels in LEVELS), ("odd levels", "n3"), ("one public", "4")]
)
@pytest.mark.parametrize("name", ["minimum", "threshold", "affine"])
def test_the_loss_is_exactly_the_charge(name, levels, kinds, neighbors):
    """Of the mean only, and with slopes. For these designs a person at −Q, 0 or Q is the worst."""
    for plan in plans_of(LEVELS[levels], kinds, name, neighbors):
        for charge, level, lost in zip(
            plan.calibration.charges.tolist(),
            plan.spec.micro.tolist(),
            worst_losses(plan, kinds),
            strict=True,
        ):
            assert charge <= level
            assert charge == PUBLIC or lost == Fraction(charge, MICRO)


@BOTH
@pytest.mark.parametrize("kinds", ["nn3", "44"])
def test_nobody_loses_more_with_the_other_weights(kinds, neighbors):
    """With four and with six columns. The worst lie between the corners; near by is still most of the charge."""
    for plan in plans_of([0.1, 1.0], kinds, "affine", neighbors)[1:]:
        releases = Releases(plan, kinds)
        values = points_of(kinds, (-Q, 0, Q), (-Q, Q))
        moments, weights = moments_of(kinds, values), weights_of(kinds)
        if neighbors == "replace":
            _, i, k = worst_pair(moments, weights)
            pairs = [(values[i], values[k]), *combinations(values[:: max(1, len(values) // 9)], 2)]
        else:
            pairs = [(value, None) for value in values[:: max(1, len(values) // 9)]]
        for person, charge in enumerate(plan.calibration.charges.tolist()):
            lost = [
                releases.loss(*([z if i == person else values[0] for i in range(2)] for z in pair))
                for pair in pairs
            ]
            assert Fraction(9, 10) * charge / MICRO < max(lost) <= Fraction(charge, MICRO)


@BOTH
@pytest.mark.parametrize(
    ("name", "t", "share"),
    [
        ("threshold", 0.1, 1.0),
        ("threshold", 0.5, 1.0),
        ("threshold", 0.2, 0.37),
        ("minimum", None, 0.5),
        ("affine", None, 0.123457),
    ],
)
def test_a_share_is_kept_and_so_is_t(name, t, share, neighbors):
    for plan in plans_of([0.3, 1.0, 2.0], "n", name, neighbors, t, share):
        for level, charge, lost in zip(
            plan.spec.levels, plan.calibration.charges.tolist(), worst_losses(plan, "n"), strict=True
        ):
            assert (
                lost
                == Fraction(charge, MICRO)
                <= Fraction(share).limit_denominator(10**6) * Fraction(str(level))
            )
            assert t is None or charge == (round(t * MICRO) if share * level >= t else 0)


@BOTH
def test_public_people_are_answered_without_noise_and_nobody_else_is_read(neighbors):
    for plan in plans_of([0.1, 1.0, inf], "n", "threshold", neighbors, t=inf):
        assert dict(plan.charges) == {0.1: 0.0, 1.0: 0.0, inf: inf}
        releases = Releases(plan, "n")
        outputs = {
            tuple(releases.run([(x, y), (y, x), (Q, -Q)])[0]) for x, y in product((-Q, 0, Q), repeat=2)
        }
        assert len(outputs) == 1 and releases.run([(0, 0), (0, 0), (Q, -Q)])[1] == []
        assert tuple(releases.run([(0, 0), (0, 0), (Q, Q)])[0]) not in outputs


@settings(max_examples=40)
@given(
    data=st.data(),
    neighbors=st.sampled_from(["replace", "add-remove"]),
    name=st.sampled_from(["minimum", "threshold", "affine"]),
    kinds=st.sampled_from(["n", "nn", "3", "n22", "nn3", "n222222"]),
    levels=st.lists(st.integers(1, 3_000_000).map(lambda k: k / MICRO), min_size=2, max_size=3),
    share=st.integers(1000, MICRO).map(lambda k: k / MICRO),
)
def test_nobody_loses_more_whatever_the_codes(data, neighbors, name, kinds, levels, share):
    """Codes anywhere in −Q … Q."""
    levels = sorted([*levels, 3.0])
    code, category = st.integers(-Q, Q), st.integers(0, 9)

    def person():
        z = []
        for kind in kinds:
            value = 0 if kind == "n" else data.draw(category)
            z += (
                [data.draw(code)]
                if kind == "n"
                else [Q if value == j + 1 else -Q for j in range(int(kind) - 1)]
            )
        return (*z, data.draw(code))

    for plan in plans_of(levels, kinds, name, neighbors, share=share):
        releases = Releases(plan, kinds)
        table = [person() for _ in levels]
        who = data.draw(st.integers(0, len(levels) - 1))
        changed = [*table[:who], person() if neighbors == "replace" else None, *table[who + 1 :]]
        charge = int(plan.calibration.charges[releases.level[who]])
        assert (
            releases.loss(table, changed)
            <= Fraction(charge, MICRO)
            <= Fraction(int(plan.spec.micro[releases.level[who]]), MICRO)
        )


# ---- sample ----------------------------------------------------------------------------------------------------------------

EXACT = Context(prec=60)
SAMPLED = [([0.1, 1.0], "max"), ([0.1, 1.0], "mean"), ([0.5, 2.0], 3.0), ([0.3, 1.0], 0.3)]


def inner(plan):
    """s: what those who are kept are answered about at."""
    return Fraction(plan.calibration.t, MICRO * (1 if plan.neighbors == "add-remove" else 2))


@BOTH
@pytest.mark.parametrize("kinds", ["n", "3", "n2", "nn3", "44"])
@pytest.mark.parametrize(("levels", "t"), SAMPLED)
def test_one_more_who_is_kept_costs_s_and_chances_make_that_the_level(levels, t, kinds, neighbors):
    """The proof of mechanisms/sample.py: p_x/p₀ is within e^±s for whoever else is kept, and then mixing with π is within e^±ε."""
    for plan in plans_of(levels, kinds, "sample", neighbors, t):
        releases, s = Releases(plan, kinds), inner(plan)
        values = points_of(kinds, (-Q, 0, Q), (-Q, Q))
        step = max(1, len(values) // 8)
        lost = [
            releases.loss([value, other], [None, other])
            for value in [*values[::step], values[-1]]
            for other in (None, values[0], values[-1])
        ]
        assert max(lost) == s
        for level, keep, charge in zip(
            plan.spec.micro.tolist(),
            plan.calibration.keep.tolist(),
            plan.calibration.charges.tolist(),
            strict=True,
        ):
            assert charge == min(level, plan.calibration.t)
            pi, up = (
                EXACT.divide(Decimal(keep), SURE),
                EXACT.exp(EXACT.divide(s.numerator, Decimal(s.denominator))),
            )
            most = 1 - pi + pi * up
            least = 1 if neighbors == "add-remove" else 1 - pi + pi * EXACT.divide(1, up)
            gone = EXACT.ln(EXACT.divide(most, least)) * MICRO
            assert charge * (1 - Decimal("1e-7")) < gone <= charge + Decimal("1e-20")
            assert EXACT.ln(1 - pi + pi * EXACT.divide(1, up)) * MICRO >= -charge - Decimal("1e-20")


@pytest.mark.parametrize("name", ["affine", "sample"])
@pytest.mark.parametrize(
    ("above", "below", "mean"),
    [(3, 1, Fraction(1, 2)), (1, 3, Fraction(-1, 2)), (5, -2, 1), (-2, 5, -1), (2, -2, 0), (-5, 2, 0)],
)
def test_a_mean_alone_stays_within_its_bounds_whatever_the_noise(name, above, below, mean):
    """Where nobody is there, and so nothing but noise is released of both sides."""
    plan, _ = plans_of([0.5, 2.0], "n", name, "add-remove")
    released, _ = Releases(plan, "n").run([None, None], [above, below])
    assert released[1] == mean


def test_sums_of_those_who_are_kept_are_exact_beyond_the_doubles():
    _, plan = plans_of([0.5, 2.0], "n", "sample", "replace", 3.0)
    entries = len(entries_of("n"))
    sums, count = [2**60 + 1 + 2 * k for k in range(entries)], 2**54 + 1
    amounts = np.array([*sums, count], dtype=np.int64)
    summary = Summary(
        plan.spec.people, entries + 1, np.zeros(entries + 1, dtype=np.int64), np.arange(entries + 1), amounts
    )
    _, *moments = plan.method.answer(summary, plan.calibration, plan.target, Fixed())
    assert moments == [Fraction(x, Q * Q * count) for x in sums]


def law_of(releases, table):
    """[(probability, sums)] of every set of people who can be kept, and the scales."""
    keep = [int(releases.plan.calibration.keep[level]) for level in releases.level]
    law, scales = [], None
    for kept in product((False, True), repeat=len(table)):
        chance = Fraction(1)
        for yes, k, z in zip(kept, keep, table, strict=True):
            if z is not None:
                chance *= Fraction(k if yes else SURE - k, SURE)
            elif yes:
                chance = Fraction(0)
        if chance:
            rest = [z if yes else None for yes, z in zip(kept, table, strict=True)]
            law.append((chance, releases.sums(rest)))
            scales = releases.run(rest)[1]
    assert sum(p for p, _ in law) == 1
    return law, scales


def mixed_loss(releases, one, other):
    """The largest |log ratio| over all vectors of integers.

    Along one coordinate, between two neighboring sums of all kept sets of both tables, both probabilities are α·e^{z/b} + β·e^{−z/b}, whose ratio is monotone in z;
    beyond all sums it is constant. So the largest is where every coordinate is one of the sums.
    """
    (here, scales), (there, again) = law_of(releases, one), law_of(releases, other)
    assert scales == again
    ends = np.array([sums for _, sums in (*here, *there)], dtype=float)
    points = np.array(list(product(*(np.unique(column) for column in ends.T))))
    logs = []
    for law in (here, there):
        terms = [
            log(p)
            - (np.abs(points - np.array(sums, dtype=float)) / np.array(scales, dtype=float)).sum(axis=1)
            for p, sums in law
        ]
        logs.append(np.logaddexp.reduce(terms, axis=0))
    return float(np.abs(logs[0] - logs[1]).max())


@BOTH
@pytest.mark.parametrize("kinds", ["n", "2"])
@pytest.mark.parametrize(("levels", "t"), SAMPLED)
def test_the_law_of_a_sample_costs_nobody_more_and_no_less(levels, t, kinds, neighbors):
    """All sets of people who can be kept, with their exact probabilities, and every output."""
    values = points_of(kinds, (-Q, Q), (-Q, Q))
    for plan in plans_of(levels, kinds, "sample", neighbors, t):
        releases, worst = Releases(plan, kinds), [0.0, 0.0]
        for person, rest in product((0, 1), values[:: len(values) - 1]):
            pairs = combinations(values, 2) if neighbors == "replace" else ((value, None) for value in values)
            for pair in pairs:
                one, other = ([z if i == person else rest for i in (0, 1)] for z in pair)
                worst[person] = max(worst[person], mixed_loss(releases, one, other))
        for charge, lost in zip(plan.calibration.charges.tolist(), worst, strict=True):
            assert lost <= charge / MICRO + 1e-12
            # two values of one person are hardly further apart than one of them is from nobody, so that half of it is not used under replace
            assert lost >= charge / MICRO * (0.39 if neighbors == "replace" else 1 - 1e-8)


@BOTH
def test_a_share_of_a_sample_is_kept(neighbors):
    for plan in plans_of([0.3, 1.0], "n", "sample", neighbors, "max", share=0.37):
        assert dict(plan.charges) == {0.3: 0.111, 1.0: 0.37} and plan.calibration.t == 370_000
        releases = Releases(plan, "n")
        assert releases.loss([(Q, Q), (0, 0)], [None, (0, 0)]) == inner(plan)


# ---- the checks have teeth -------------------------------------------------------------------------------------------------


class Half(Fixed):
    def laplace(self, scale):
        return super().laplace(scale / 2)


def with_noise(make, name="affine"):
    answer = mechanism_of(name).method(asked("n").under(REPLACE)).answer

    def bad(summary, calibration, target, noise):
        other = make(*noise.draws)
        released = answer(summary, calibration, target, other)
        noise.scales = other.scales
        return released

    return bad


@BOTH
@pytest.mark.parametrize("name", ["minimum", "threshold", "affine"])
def test_half_the_noise_is_found_out(name, neighbors):
    for plan in plans_of([0.1, 1.0], "n", name, neighbors):
        assert overcharged(plan, worst_losses(plan, "n")) == []
        losses = overcharged(plan, worst_losses(plan, "n", with_noise(Half)))
        assert len(losses) == np.count_nonzero(plan.calibration.charges)


@BOTH
def test_half_the_noise_of_a_sample_is_found_out(neighbors):
    for plan in plans_of([0.1, 1.0], "n", "sample", neighbors, "max"):
        releases = Releases(plan, "n", with_noise(Half, "sample"))
        assert releases.loss([(Q, Q), None], [None, None]) == 2 * inner(plan)
        if neighbors == "add-remove":
            assert mixed_loss(releases, [(0, 0), (Q, Q)], [(0, 0), None]) == pytest.approx(2)
            assert mixed_loss(releases, [(Q, Q), (0, 0)], [None, (0, 0)]) > 0.2


@BOTH
@pytest.mark.parametrize("kind", ["y", "x", "yx", "xx", "square", "count"])
def test_a_weight_left_out_of_the_sensitivity_is_found_out(monkeypatch, kind, neighbors):
    w = weights_for(2)
    whole = sensitivity(asked("nn"), named(neighbors))
    less = {key: getattr(w, key) for key in vars(w)} | {kind: 0}
    with monkeypatch.context() as patched:
        patched.setattr(moments, "weights_for", lambda codes: Weights(**less))
        part = sensitivity.__wrapped__(asked("nn"), named(neighbors))
    if kind == "count" and neighbors == "replace":
        assert part == whole
        return
    assert part < whole
    plan = plans_of([0.1, 1.0], "nn", "affine", neighbors)[1]
    assert overcharged(plan, worst_losses(plan, "nn")) == []
    monkeypatch.setattr(moments, "sensitivity", lambda query, relation, about_members: part)
    assert len(overcharged(plan, worst_losses(plan, "nn"))) == 2


@BOTH
def test_a_feature_that_is_not_clipped_is_found_out(neighbors):
    for plan in plans_of([0.1, 1.0], "n", "affine", neighbors):
        releases = Releases(plan, "n")
        for far in ((2 * Q, Q), (Q, 2 * Q)):
            lost = releases.loss([far, (0, 0)], [(-Q, -Q) if neighbors == "replace" else None, (0, 0)])
            only_y = plan.calibration.mean_only and far[1] == Q
            assert (lost > Fraction(plan.calibration.charges.tolist()[0], MICRO)) != only_y


@pytest.mark.parametrize("kinds", ["4", "n4"])
def test_dummies_of_several_values_at_once_are_found_out(kinds):
    plan = plans_of([0.1, 1.0], kinds, "affine", "replace")[1]
    releases, rest = Releases(plan, kinds), values_of(kinds)[0]
    numbers = [Q] * kinds.count("n")
    lost = max(
        releases.loss([(*there, Q, Q, Q, y), rest], [(*(-x for x in here), -Q, -Q, -Q, z), rest])
        for there, here, y, z in product([numbers], [numbers, [0] * len(numbers)], (-Q, Q), (-Q, Q))
    )
    assert lost > Fraction(plan.calibration.charges.tolist()[0], MICRO)


def test_noise_that_misses_an_entry_is_found_out():
    plan = plans_of([0.1, 1.0], "n", "affine", "replace")[1]
    answer = plan.method.answer

    def bad(summary, calibration, target, noise):
        released = answer(summary, calibration, target, noise)
        return [
            *released,
            Fraction(int(summary.weighted(calibration.charges)[1])),
        ]  # x once more, without noise

    with pytest.raises(AssertionError, match="beside the noisy sums"):
        Releases(plan, "n", bad).loss([(Q, Q), (0, 0)], [(-Q, Q), (0, 0)])


# ---- the integers of the real engine ---------------------------------------------------------------------------------------


def code(x, low, high):
    """A number's code, in Python's floats; missing is the middle."""
    if x is None or not isfinite(x):
        return 0
    if not low <= x < high:
        return Q if x >= high else -Q
    return min(floor((x - low) * (2 * Q / (high - low)) + 0.5), 2 * Q) - Q


def has_value(x):
    return x is not None and isfinite(x)


def dummies(x, values):
    return [Q if x is not None and x == value else -Q for value in values[1:]]


def own_levels(n):
    """Everyone has a level of their own, so that a Summary has one row a person."""
    return [(i + 1) / 1000 for i in range(n)]


def codes_of(table, query):
    """Everyone's codes, features first and y last, from the first-order sums; all sums are checked to be products of them.

    None: left out.
    """
    n = query.codes
    kinds = "".join("n" if "low" in vars(f) else str(f.codes + 1) for f in query.features)
    people = []
    for row in table.reader.summary(query).rows():
        *sums, count = row
        if query.excludes_missing and count == 0:
            assert not any(sums)
            people.append(None)
            continue
        assert count == 1 and all(v % Q == 0 for v in sums[: n + 1])
        z = (*(v // Q for v in sums[1 : n + 1]), sums[0] // Q)
        assert max(map(abs, z)) <= Q
        assert sums == moments_of(kinds, [z])[0].tolist()
        people.append(z)
    return people


def parquet(columns, folder):
    pq.write_table(pa.table(columns), folder / "people.parquet", row_group_size=3)
    return folder / "people.parquet"


def csv_file(columns, folder):
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return folder / "people.csv"


FORMS = {
    "arrow": lambda columns, folder: pa.table(columns),
    "parquet": parquet,
    "csv": csv_file,
    "polars": lambda columns, folder: pl.from_arrow(pa.table(columns)),
    "pandas": lambda columns, folder: pa.table(columns).to_pandas(
        types_mapper={pa.bool_(): pd.BooleanDtype()}.get
    ),
    "relation": lambda columns, folder: duckdb.connect().from_arrow(pa.table(columns)),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
ODD = [
    0.0,
    1.0,
    -1.0,
    0.25,
    0.1,
    3.0,
    -3.0,
    1e300,
    -1e300,
    inf,
    -inf,
    nan,
    None,
    0.9995,
    0.0009765625,
    5e-324,
    -0.0,
]
RANGES = {
    "plain": (-1.0, 1.0),
    "odd": (-0.3, 0.7),
    "not a power of two": (0.1, 1e-3 + 0.1),
    "huge": (-1e150, 1e199),
    "from a tiny number": (0.0, 1e-199),
    "close to each other": (1.0, 1.0 + 5e-12),
    "close to each other at 1e15": (1e15, 1e15 + 2000.375),
    "below zero": (-7e9, -3.1),
}
TOO_NEAR_OR_FAR = [
    (1.0, nextafter(1.0, 2)),
    (nextafter(1.0, 0), nextafter(1.0, 2)),
    (1e15, 1e15 + 0.375),
    (0, 5e-324),
    (0, 1e-310),
    (-1e308, 1e308),
    (0, 1e308),
]


@pytest.mark.parametrize("bounds", TOO_NEAR_OR_FAR)
def test_bounds_that_floats_cannot_reckon_with_are_refused(bounds):
    """Their steps, or their width, are no floats: x = low once became +Q, and ±1e308 an OverflowError."""
    with pytest.raises(QueryError, match="too near to each other, or too far apart"):
        accord.regression("y", ["x"], {"x": bounds, "y": (0, 1)})
    with pytest.raises(QueryError, match="too near to each other, or too far apart"):
        accord.regression("y", ["x"], {"x": (0, 1), "y": bounds})


@pytest.mark.parametrize(
    ("form", "bounds"),
    [
        *product(("arrow", "parquet", "csv"), RANGES),
        *product(("polars", "pandas", "relation"), ("plain", "huge")),
    ],
)
def test_numbers_become_the_integers_that_python_makes_of_them(tmp_path, form, bounds):
    low, high = RANGES[bounds]
    width = high / 2 - low / 2
    near = [
        low,
        high,
        low / 2 + high / 2,
        low + width / 3,
        nextafter(low, -inf),
        nextafter(high, inf),
        nextafter(high, low),
    ]
    near += [low + width * k / (2 * Q) for k in (1, 2, 3, 2 * Q - 1, 2 * Q, 2 * Q + 1)]
    values = [*ODD, *near]
    columns = {"x": values, "y": values[::-1], "e": own_levels(len(values))}
    asked = partial(accord.regression, "y", ["x"], {"x": (low, high), "y": (low, high)})
    table = accord.table(FORMS[form](columns, tmp_path), epsilon="e")
    codes = codes_of(table, asked(missing="none"))
    assert codes == [
        (code(x, low, high), code(y, low, high)) for x, y in zip(values, values[::-1], strict=True)
    ]
    assert codes_of(table, asked()) == [
        codes[k] if has_value(x) and has_value(y) else None
        for k, (x, y) in enumerate(zip(values, values[::-1], strict=True))
    ]
    for (got, _), x in zip(
        codes, values, strict=True
    ):  # exactly: the nearest step, but for what rounding floats moves
        if x is not None and isfinite(x):
            inside = min(max(Fraction(x), Fraction(low)), Fraction(high))
            step = 2 * Q * (inside - Fraction(low)) / (Fraction(high) - Fraction(low)) - Q
            assert abs(step - got) <= Fraction(1, 2) + Fraction(1, 10**9)


@EVERY_FORM
def test_categories_become_the_integers_that_python_makes_of_them(tmp_path, form):
    """Text, true and false, and numbers; what is missing or not declared counts as the first."""
    texts = ["a", "b", "c", "unknown", "A", "b ", None, "", "é", "it's", "c"]
    truths = [True, False, None, True, False, True, None, False, True, False, True]
    numbers = [1.0, 2.0, 2.5, -0.0, None, nan, inf, 7.0, 1.0, 2.0, 0.0]
    y = [0.1 * k for k in range(11)]
    columns = {"t": texts, "b": truths, "k": numbers, "y": y, "e": own_levels(11)}
    declared = {"t": ["a", "b", "é", "it's", "c"], "b": [False, True], "k": [7, 1, 2.5, 0]}
    query = accord.regression("y", ["t", "b", "k"], {"y": (0, 1)}, declared, "none")
    table = accord.table(FORMS[form](columns, tmp_path), epsilon="e")
    codes = codes_of(table, query)
    assert codes == [
        (
            *dummies(t, declared["t"]),
            *dummies(b, [False, True]),
            *dummies(k, declared["k"]),
            code(v, 0.0, 1.0),
        )
        for t, b, k, v in zip(texts, truths, numbers, y, strict=True)
    ]
    left_out = codes_of(table, replace(query, missing="exclude"))
    for mine, known, t, b, k in zip(left_out, codes, texts, truths, numbers, strict=True):
        has_all = t in declared["t"] and b is not None and k in declared["k"]
        assert mine == (known if has_all else None)


def test_only_one_dummy_of_a_category_can_be_set():
    """Also where several declared values are one: a moment can be written in several ways. Either that is refused, or one of them takes it."""
    moment = np.array(["2020-01-01", "2019-01-01", "2021-01-01"], dtype="datetime64[us]")
    spelled = ["2019-01-01", "2020-01-01", "2020-01-01 00:00:00", "2020-01-01T00:00:00", "2021-01-01"]
    table = accord.table({"d": moment, "y": [0.5] * 3, "e": own_levels(3)}, epsilon="e")
    apart = accord.regression("y", ["d"], {"y": (0, 1)}, {"d": [spelled[0], spelled[1], spelled[4]]})
    assert codes_of(table, apart) == [(Q, -Q, 0), (-Q, -Q, 0), (-Q, Q, 0)]
    try:
        codes = codes_of(table, accord.regression("y", ["d"], {"y": (0, 1)}, {"d": spelled}))
    except QueryError:
        return
    assert all(z[:-1].count(Q) <= 1 for z in codes)


@EVERY_FORM
def test_nobody_else_decides_about_a_missing_value(tmp_path, form):
    """A Parquet file's statistics leave NaN out: DuckDB once took NaN for a number below the upper bound, unless somebody else was above it."""
    query = accord.regression("y", ["x"], {"x": (0, 1), "y": (0, 1)}, missing="middle")
    codes = []
    for other in (0.5, 1.0, -1.0, nan, 2.0):
        x = [other, nan, 0.25, nan, 0.75, None]
        columns = {"x": x, "y": x[:1] + x[:0:-1], "e": own_levels(6)}
        codes.append(codes_of(accord.table(FORMS[form](columns, tmp_path), epsilon="e"), query)[1:])
    assert codes[0] == [(0, 0), (-Q // 2, Q // 2), (0, 0), (Q // 2, -Q // 2), (0, 0)]
    assert all(rest == codes[0] for rest in codes)


def test_integers_booleans_and_decimals_are_numbers_too():
    columns = {
        "i": pa.array([0, 3, 10, None, -(2**62)], pa.int64()),
        "b": pa.array([True, False, None, True, False]),
        "y": pa.array([Decimal(k) for k in range(5)], pa.decimal128(8, 2)),
        "e": pa.array(own_levels(5)),
    }
    query = accord.regression("y", ["i", "b"], {"i": (0, 10), "b": (0, 1), "y": (0, 4)}, missing="none")
    assert codes_of(accord.table(pa.table(columns), epsilon="e"), query) == [
        (code(i, 0, 10), code(b, 0, 1), code(y, 0, 4))
        for i, b, y in zip([0, 3, 10, None, -(2**62)], [1, 0, None, 1, 0], range(5), strict=True)
    ]


def test_the_order_of_rows_and_the_number_of_threads_do_not_matter(tmp_path):
    rng = np.random.default_rng(3)
    n = 20_000
    x, k = rng.normal(size=n), rng.integers(0, 5, n)
    x[rng.random(n) < 0.05] = nan
    frame = pd.DataFrame({"x": x, "k": k, "y": rng.random(n), "e": rng.choice([0.0, 0.1, 0.5, inf], n)})
    query = accord.regression("y", ["x", "k"], {"x": (-1.5, 1), "y": (0, 1)}, {"k": [3, 1, 2, 0]}, "none")
    rows = moments_of(
        "n4",
        [
            (code(a, -1.5, 1.0), *dummies(b, [3, 1, 2, 0]), code(c, 0.0, 1.0))
            for a, b, c in zip(frame["x"], frame["k"], frame["y"], strict=True)
        ],
    )
    expected = [
        [*rows[frame["e"] == e].sum(axis=0).tolist(), int((frame["e"] == e).sum())] for e in (0.1, 0.5, inf)
    ]
    for seed, threads, size in ((None, 1, n), (1, 4, 1_500), (2, 3, 2_048), (3, 2, 700)):
        shuffled = frame if seed is None else frame.sample(frac=1, random_state=seed)
        pq.write_table(
            pa.Table.from_pandas(shuffled, preserve_index=False), tmp_path / "p.parquet", row_group_size=size
        )
        for source in (shuffled, tmp_path / "p.parquet"):
            table = accord.table(source, epsilon="e")
            table.reader.engine.fetch(f"SET threads = {threads}")
            (used,) = table.reader.engine.fetch("SELECT current_setting('threads') AS threads")["threads"]
            assert used == threads
            assert list(table.reader.summary(query).rows()) == expected


@settings(max_examples=15)
@given(
    low=st.one_of(st.floats(-1e190, 1e190), st.floats(-1e3, 1e3)),
    width=st.one_of(st.floats(1e-190, 1e190), st.floats(1e-3, 1e3)),
    values=st.lists(
        st.one_of(st.none(), st.floats(), st.floats(0, 1).map(lambda u: ("inside", u))),
        min_size=15,
        max_size=40,
    ),
)
def test_every_number_has_a_code_between_the_ends(low, width, values):
    high = low + width
    assume((high - low) * 9e11 > max(abs(low), abs(high)))
    values = [low + v[1] * (high - low) if isinstance(v, tuple) else v for v in values]
    columns = {
        "x": pa.array(values, pa.float64()),
        "y": pa.array([0.0] * len(values)),
        "e": pa.array(own_levels(len(values))),
    }
    asked = partial(accord.regression, "y", ["x"], {"x": (low, high), "y": (0, 1)})
    table = accord.table(pa.table(columns), epsilon="e")
    assert codes_of(table, asked(missing="none")) == [(code(x, low, high), -Q) for x in values]
    assert codes_of(table, asked()) == [(code(x, low, high), -Q) if has_value(x) else None for x in values]
