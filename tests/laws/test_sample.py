"""`sample` costs nobody more than their charge: exact laws on tiny tables, no sampling.

A scripted noise deals out every set of people that can be kept, and remembers the chances, scales and scores that the real `answer` asks for. So the law of
a release is known: kept sets with their probabilities (fractions of 2⁶³ⁿ), and given one, discrete Laplace draws around its sums, or choices of points.

Given who is kept, each number that is released has a law ∝ exp(−|z − S|/b) for an integer S. Between two neighboring S of all kept sets, of both tables, both
probabilities are α·e^{z/b} + β·e^{−z/b}, and their ratio is monotone in z; beyond all S it is constant. So the largest ratio over all integers z, or
vectors of them, is found where every coordinate is one of the S: the supremum, not a window's. Logarithms are of doubles, good to 1e-12.
"""

from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import e, inf, log, tanh

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import changed, last_cell, person_values, summary_of

import accord
from accord.budget import LARGEST, MICRO, PUBLIC
from accord.errors import PlanError
from accord.mechanisms import ALL, sample
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE, REPLACE, named
from accord.statistics import Histogram

SURE = 2**63
TOLERANCE = 1e-12
SAMPLE = next(m for m in ALL if m.name == "sample")
BOTH = pytest.mark.parametrize("neighbors", ["replace", "add-remove"])

SPECS = {
    "two levels": [0.1, 1.0],
    "three levels": [0.05, 0.3, 1.0],
    "two of one": [0.5, 0.5, 2.0],
    "one public": [0.1, 1.0, inf],
    "large": [4.0, 9.0],
}
TS = {
    "two levels": ["max", "min", "mean", 0.4, 3.0, 0.999999],
    "three levels": ["max", 0.3],
    "two of one": ["best", "mean"],
    "one public": ["max", 3.0, inf],
    "large": ["max", 6.5, 0.1],
}
CASES = [(spec, t) for spec, ts in TS.items() for t in ts]
GRID = {"bounds": (0, 3), "step": 1, "missing": "none"}
NUMBERS = {
    "mean": accord.mean("x", bounds=(0, 2), step=1, missing="none"),
    "mean on a fine grid": accord.mean("x", bounds=(-3, 5), missing="none"),
    "sum": accord.sum("x", bounds=(-1, 2), step=1, missing="none"),
    "variance": accord.variance("x", bounds=(0, 2), step=1, missing="none"),
    "count": accord.count(where="x > 0"),
    "count of everyone": accord.count(),
    "histogram of two cells": accord.histogram("x", edges=[0, 1, 2], missing="none"),
    "histogram of three cells": accord.histogram("x", edges=[0, 1, 2, 3], missing="none"),
    "histogram with nowhere": accord.histogram("x", categories=["a", "b"]),
}
RANKS = {
    "median": accord.median("x", **GRID),
    "quantile 0.9": accord.quantile("x", 0.9, **GRID),
    "two quantiles": accord.quantile("x", [0.25, 0.6], **GRID),
}
QUERIES = NUMBERS | RANKS
LOOSE = ("variance", "replace")
"""Both ends have the same square, so that somebody who moves between them loses less than leaving and coming."""


# ---- the law of a release --------------------------------------------------------------------------------------------


class Scripted:
    """Keeps whom it is told to (nobody, by default), draws what it is told (zeros), and remembers what it was asked."""

    def __init__(self, kept=None, draws=()):
        self.kept, self.draws = kept, draws
        self.chances, self.scales, self.scores = [], [], []

    def keep(self, chances):
        start = len(self.chances)
        self.chances += [int(c) for c in chances]
        if self.kept is None:
            return np.zeros(chances.size, dtype=bool)
        return np.array(self.kept[start : len(self.chances)], dtype=bool)

    def laplace(self, scale):
        assert isinstance(scale, Fraction) and scale > 0
        self.scales.append(scale)
        return self.draws[len(self.scales) - 1] if len(self.scales) <= len(self.draws) else 0

    def choose(self, scores, scale):
        assert isinstance(scale, int) and scale > 0
        self.scores.append(([int(s) for s in scores], scale))
        return 0


class Laws:
    """The exact laws of all tables of one plan. A table has one entry a person, in the order of the levels: their integers, or None who is not there."""

    def __init__(self, plan, answer=None):
        self.plan = plan
        self.answer = answer or SAMPLE.method(plan.target).answer
        self.at = cache(self._at)
        self.levels = np.repeat(np.arange(plan.spec.micro.size), plan.spec.people).tolist()
        self.unit = None

    def run(self, table, kept=None, draws=()):
        plan, noise = self.plan, Scripted(kept, draws)
        summary = summary_of(plan.spec, plan.query, table, by_cell=True)
        return self.answer(summary, plan.calibration, plan.target, noise), noise

    def law(self, table):
        """[(probability, found, scales, scores)] for all kept sets. People of one level are alike."""
        everyone = sorted(
            zip(self.levels, table, strict=True), key=lambda one: (one[0], one[1] is None, one[1] or ())
        )
        return self.at(tuple(row for _, row in everyone))

    def _at(self, table):
        chances = self.run(table)[1].chances
        assert all(0 < c < SURE for c in chances), "nobody is asked about who is kept for sure, or never"
        law = {}
        for kept in product((False, True), repeat=len(chances)):
            released, noise = self.run(table, kept)
            assert noise.chances == chances, "who else is kept decides a chance"
            p = Fraction(1)
            for c, yes in zip(chances, kept, strict=True):
                p *= Fraction(c if yes else SURE - c, SURE)
            outcome = (tuple(released), tuple(noise.scales), tuple((tuple(s), b) for s, b in noise.scores))
            law[outcome] = law.get(outcome, 0) + p
        assert sum(law.values()) == 1
        return [(p, *outcome) for outcome, p in law.items()]

    def step(self, table):
        """What one more of a draw adds to what it adds to: the same for all tables and kept sets, and nothing to the others."""
        if self.unit is None:
            base, noise = self.run(table)
            if noise.scales:
                assert len(noise.scales) == len(base)
                self.unit = []
                for k in range(len(base)):
                    released, _ = self.run(table, draws=[5 * (j == k) for j in range(len(base))])
                    moved = [(a - b) / 5 for a, b in zip(released, base, strict=True)]
                    assert all((x != 0) == (j == k) for j, x in enumerate(moved))
                    self.unit.append(moved[k])
        return self.unit

    def loss(self, one, other):
        """The largest |log ratio| of what is released about two tables."""
        here, there = self.law(one), self.law(other)
        if here is there:
            return 0.0
        if any(scores for _, _, _, scores in here):
            return _choice_loss(here, there)
        if any(scales for _, _, scales, _ in here):
            return _laplace_loss(here, there, self.step(one))
        one, other = ({released: p for p, released, *_ in law} for law in (here, there))  # no noise at all
        return inf if one.keys() != other.keys() else max(abs(log(one[key] / other[key])) for key in one)


def _laplace_loss(here, there, unit):
    """Over all vectors of integers, see above. With scales that differ it is a lower bound only."""
    origin = here[0][1]
    laws = []
    for law in (here, there):
        centres = [
            [(x - o) / u for x, o, u in zip(released, origin, unit, strict=True)] for _, released, *_ in law
        ]
        assert all(c.denominator == 1 for row in centres for c in row), (
            "an output is possible for one table only"
        )
        weights = np.array([log(p) for p, *_ in law])
        laws.append(
            (
                weights,
                np.array(centres, dtype=float),
                np.array([scales for *_, scales, _ in law], dtype=float),
            )
        )
    ends = np.concatenate([centres for _, centres, _ in laws])
    points = np.array(list(product(*(np.unique(column) for column in ends.T))))
    logs = []
    for weights, centres, scales in laws:
        exponents = -np.abs(points[:, None, :] - centres) / scales + np.log(
            np.tanh(0.5 / scales)
        )  # (1 − q)/(1 + q) e^…
        logs.append(_log_sum(weights + exponents.sum(axis=2)))
    return float(np.abs(logs[0] - logs[1]).max())


def _choice_loss(here, there):
    """Over all points and noisy sizes. Given who is kept, draws are independent; otherwise they are not."""
    sizes = sorted(
        {released[-1] * MICRO for law in (here, there) for _, released, scales, _ in law if scales}
    )
    logs = []
    for law in (here, there):
        rows = []
        for p, released, scales, choices in law:
            joint = np.array([log(p)])
            for scores, scale in choices:
                one = np.array(scores) / scale
                joint = (joint[:, None] + one - _log_sum(one[None, :])).ravel()
            for scale in scales:
                one = np.array([-float(abs(z - released[-1] * MICRO) / scale) for z in sizes])
                joint = (joint[:, None] + one).ravel()
            rows.append(joint)
        logs.append(_log_sum(np.array(rows).T))
    return float(np.abs(logs[0] - logs[1]).max())


def _log_sum(logs):
    top = logs.max(axis=1)
    return top + np.log(np.exp(logs - top[:, None]).sum(axis=1))


def neighboring(plan, values):
    """(person, table, table with that person changed): every value instead of another, or that they are not there."""
    if plan.neighbors == "replace":
        for table in product(values, repeat=plan.spec.total):
            for person, value in product(range(plan.spec.total), values):
                if value > table[person]:
                    yield person, table, (*table[:person], value, *table[person + 1 :])
    else:
        for table in product([None, *values], repeat=plan.spec.total):
            for person in range(plan.spec.total):
                if table[person] is not None:
                    yield person, table, (*table[:person], None, *table[person + 1 :])


def values_of(query):
    return [(1,)] if query.statistic == "count" and query.condition is None else person_values(query)


def worst_losses(plan, answer=None, values=None):
    """For each level the largest loss, over all tables, people and changes."""
    laws = Laws(plan, answer)
    worst = [0.0] * plan.spec.micro.size
    for person, one, other in neighboring(plan, values or values_of(plan.query)):
        level = laws.levels[person]
        if plan.calibration.charges[level] != PUBLIC:
            worst[level] = max(worst[level], laws.loss(one, other))
    return worst


def overcharged(plan, answer=None, values=None):
    """Levels of people who lose more than their charge: level, loss, charge."""
    charges = plan.calibration.charges.tolist()
    return [
        (level, lost, charge / MICRO)
        for level, lost, charge in zip(
            plan.spec.levels, worst_losses(plan, answer, values), charges, strict=True
        )
        if lost > charge / MICRO + TOLERANCE
    ]


def planned(spec, query, neighbors, t=None, share=1.0):
    return accord.plan(accord.Spec.of(spec), query, "sample", share, t=t, neighbors=neighbors)


# ---- nobody loses more -----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("query", NUMBERS)
@pytest.mark.parametrize(("spec", "t"), CASES)
def test_the_loss_is_the_charge_of_numbers(spec, t, query, neighbors):
    """And no less than the charge but for how π is rounded down: a bound that was never attained would show nothing."""
    plan = planned(SPECS[spec], NUMBERS[query], neighbors, t)
    for level, charge, lost in zip(
        plan.spec.micro.tolist(), plan.calibration.charges.tolist(), worst_losses(plan), strict=True
    ):
        assert charge == (0 if t == inf and level < PUBLIC else min(level, plan.calibration.t))
        if charge == PUBLIC:
            continue
        assert lost <= charge / MICRO + TOLERANCE
        if (query, neighbors) != LOOSE and (len(values_of(plan.query)) > 1 or neighbors == "add-remove"):
            assert lost >= charge / MICRO * (1 - 1e-8)


@BOTH
@pytest.mark.parametrize("query", RANKS)
@pytest.mark.parametrize(("spec", "t"), CASES)
def test_nobody_loses_more_than_their_charge_of_quantiles(spec, t, query, neighbors):
    """The normaliser of a choice moves with the data as well, so that the charge is a bound. It is not a loose one: see below."""
    assert overcharged(planned(SPECS[spec], RANKS[query], neighbors, t)) == []


@BOTH
@pytest.mark.parametrize("query", ["mean", "histogram of two cells", "median"])
@pytest.mark.parametrize("t", ["max", 0.35, "best"])
def test_a_share_is_kept(t, query, neighbors):
    plan = planned([0.3, 1.0, 2.0], QUERIES[query], neighbors, t, share=0.37)
    for level, charge in plan.charges.items():
        assert charge <= min(round(0.37 * level, 6), plan.calibration.t / MICRO)
    assert overcharged(plan) == []


@BOTH
def test_the_bound_of_quantiles_is_not_loose(neighbors):
    """By somebody who is kept now and then, and by somebody who always is."""
    plan = planned([3.0, 4.0, 4.0, 4.0], RANKS["median"], neighbors, "max")
    for charge, lost in zip(plan.charges.values(), worst_losses(plan), strict=True):
        assert 0.6 * charge < lost <= charge + TOLERANCE


def test_a_person_who_is_never_kept_loses_nothing():
    """t = inf: public people only, without noise."""
    for neighbors, query in product(("replace", "add-remove"), QUERIES.values()):
        plan = planned([0.1, 1.0, inf], query, neighbors, inf)
        assert dict(plan.charges) == {0.1: 0.0, 1.0: 0.0, inf: inf}
        assert worst_losses(plan)[:2] == [0.0, 0.0]
    with pytest.raises(PlanError, match="keeps nobody"):
        planned([0.1, 1.0], NUMBERS["mean"], "replace", inf)


def test_everyone_of_the_level_t_or_more_is_kept():
    plan = planned([0.1, 0.4, 1.0, inf], NUMBERS["mean"], "replace", 0.4)
    assert [int(k) == SURE for k in plan.calibration.keep] == [False, True, True, True]
    assert dict(plan.charges) == {0.1: 0.1, 0.4: 0.4, 1.0: 0.4, inf: 0.4}


def test_what_t_is_called():
    levels = [0.1, 0.2, 0.9, inf]
    for t, micro in {"max": 900_000, "min": 100_000, "mean": 400_000, 0.5: 500_000, inf: PUBLIC}.items():
        assert planned(levels, NUMBERS["mean"], "replace", t).calibration.t == micro
    at_levels = [planned(levels, NUMBERS["mean"], "replace", t).rmse for t in levels]
    assert planned(levels, NUMBERS["mean"], "replace", "best").rmse == min(at_levels) < max(at_levels)
    assert planned(levels, NUMBERS["mean"], "replace").rmse == min(at_levels)
    assert planned([inf, inf], NUMBERS["mean"], "replace", "mean").calibration.t == PUBLIC
    for t in ("most", "", 0, -1, 2e6, object()):
        with pytest.raises(PlanError, match="is not a level"):
            planned(levels, NUMBERS["mean"], "replace", t)
    with pytest.raises(PlanError, match="is not a level"):
        accord.plan(accord.Spec.of(levels), NUMBERS["mean"], "threshold", t="max")


# ---- π, as whole 2⁻⁶³ ------------------------------------------------------------------------------------------------

EXACT = Context(prec=120, Emin=-(10**9), Emax=10**9)


def exact_chance(level, t, neighbors):
    """π of the mechanism's docstring, to 100 digits; level and t in millionths."""
    if level >= t:
        return Decimal(1)
    one = Decimal(1)
    low, high = (EXACT.exp(Decimal(x) / MICRO) for x in (level, t))
    if neighbors == "add-remove":
        return EXACT.divide(low - one, high - one)
    root = EXACT.exp(Decimal(t) / (2 * MICRO))
    below = EXACT.add(
        EXACT.subtract(root, one), EXACT.multiply(low, EXACT.subtract(one, EXACT.divide(one, root)))
    )
    return EXACT.divide(EXACT.subtract(low, one), below)


def check_chance(level, t, neighbors):
    (keep,) = sample.chances(sample.probabilities(np.array([level]), t, named(neighbors)))
    if level >= t:
        assert keep == SURE
        return
    exact = EXACT.multiply(exact_chance(level, t, neighbors), Decimal(SURE))
    assert 0 <= int(keep) <= min(exact, Decimal(SURE - 1))
    assert Decimal(int(keep) + 1) >= EXACT.multiply(exact, 1 - Decimal("1e-8"))


micros = st.one_of(st.integers(1, LARGEST), st.integers(1, 20 * MICRO), st.integers(1, 1000))


@BOTH
@given(level=micros, t=micros)
@settings(max_examples=300)
def test_chances_are_rounded_down_and_hardly_so(neighbors, level, t):
    with np.errstate(over="raise", invalid="raise", divide="raise") if t < 100 * MICRO else np.errstate():
        check_chance(level, t, neighbors)


@BOTH
@pytest.mark.parametrize(
    "t",
    [1, 2, 3, 1_000, MICRO, 30 * MICRO, 1_399_999_999, 1_400_000_000, 1_400_000_002, LARGEST - 1, LARGEST],
)
@pytest.mark.parametrize(
    "gap", [0, 1, 2, 999, MICRO // 3, MICRO, 20 * MICRO, 43 * MICRO, 44 * MICRO + 400_000]
)
def test_chances_near_t_and_at_half_of_it(t, gap, neighbors):
    """Where π is near 1; where it is near 2⁻⁶³; around ε = t/2 of replace; and where e^s overflows a double."""
    for level in (t - gap, t // 2 - gap, t // 2 + gap, gap):
        if 0 < level <= t:
            check_chance(level, t, neighbors)


@BOTH
def test_no_level_or_t_overflows(neighbors):
    """From a millionth to a million. Nothing warns (warnings are errors here), and a plan can be made or says that it keeps nobody."""
    levels = [1e-6, 1e-3, 1.0, 50.0, 699.0, 700.5, 1399.0, 1e5, 999_999.0, 1e6, inf]
    for t in [*levels, 1400.0, 2.5, 123_456.789]:
        for query in ("mean", "histogram of three cells", "two quantiles"):
            plan = planned(levels, QUERIES[query], neighbors, t)
            keep = [int(k) for k in plan.calibration.keep]
            assert keep == sorted(keep) and keep[-1] == SURE
            assert plan.calibration.charges.tolist() == [
                min(m, plan.calibration.t) if k else 0
                for m, k in zip(plan.spec.micro.tolist(), plan.calibration.keep, strict=True)
            ]
            assert 0 <= plan.rmse_here < inf


def test_the_check_of_chances_has_teeth():
    """One part in 10⁸ too much is found, and so is one 2⁻⁶³ too much where π is small."""
    for level, t in ((100_000, MICRO), (900_000, MICRO), (3 * MICRO, 40 * MICRO)):
        for neighbors in ("replace", "add-remove"):
            exact = int(EXACT.multiply(exact_chance(level, t, neighbors), Decimal(SURE)))
            keep = int(sample.chances(sample.probabilities(np.array([level]), t, named(neighbors)))[0])
            assert exact * (1 - 1e-8) <= keep <= exact < keep + keep // 10**8 + 1


@BOTH
def test_sampling_for_one_value_is_better_than_for_presence_twice(neighbors):
    """The docstring's claim about replace, and that a chance grows with the level and falls with t."""
    levels = np.arange(1, 40) * 100_000
    for t in (200_000, MICRO, 3_900_000):
        pi = sample.probabilities(levels, t, named(neighbors))
        assert (np.diff(pi) >= 0).all() and (
            sample.probabilities(levels, t + 1000, named(neighbors)) <= pi
        ).all()
    twice = sample.probabilities(levels // 2, 1_950_000, ADD_REMOVE)
    assert (sample.probabilities(levels, 3_900_000, REPLACE) >= twice).all()


# ---- who is kept, and what is made of them -----------------------------------------------------------------------------------


@given(data=st.data(), block=st.integers(1, 9))
@settings(max_examples=150)
def test_thinning_counts_who_is_kept_of_every_group_whatever_the_blocks(data, block):
    sizes = data.draw(st.lists(st.integers(0, 12), min_size=0, max_size=8))
    keep = [data.draw(st.sampled_from([0, 1, 5 * 2**40, SURE - 1, SURE])) for _ in sizes]
    drawn = [c for n, c in zip(sizes, keep, strict=True) for _ in range(n) if 0 < c < SURE]
    mask = data.draw(st.lists(st.booleans(), min_size=len(drawn), max_size=len(drawn)))
    noise = Scripted(mask)
    kept = sample.thin(np.array(sizes, dtype=np.int64), np.array(keep, dtype=np.uint64), noise, block)
    assert noise.chances == drawn
    wanted, at = [], iter(mask)
    for n, c in zip(sizes, keep, strict=True):
        wanted.append(n if c == SURE else sum(next(at) for _ in range(n)) if c else 0)
    assert kept.tolist() == wanted


@BOTH
@pytest.mark.parametrize("query", QUERIES)
def test_a_table_counts_people_by_level_and_integer(query, neighbors):
    """What is thinned, as DuckDB finds it: missing and outlying values too, and nobody who opted out."""
    x = [0.2, 1.0, 1.6, 2.0, -7.0, 99.0, None, float("nan"), 2.0, 1.0]
    epsilon = [0.1, 0.1, 1.0, 1.0, 0.1, 1.0, 1.0, 0.1, 1.0, 0.0]
    if query == "histogram with nowhere":
        x = ["a", "b", "c", "a", "b", "b", None, "", "a", "a"]
    spec = accord.Spec.of(epsilon)
    more = {"neighbors": neighbors, "roster": spec} if neighbors == "add-remove" else {}
    table = accord.table(pa.table({"x": x, "e": epsilon}), epsilon="e", **more)
    plan = table.plan(QUERIES[query], "sample")
    summary = table.reader.summaries(plan.query, by_cell=True)[0]
    counts = {}
    for level, cell, people in zip(summary.level, summary.output, summary.amount.tolist(), strict=True):
        counts[int(level), int(cell)] = counts.get((int(level), int(cell)), 0) + people
    assert counts == people_by_cell(plan.query, x[:-1], epsilon[:-1])
    assert (summary.people == spec.people).all()


def people_by_cell(query, x, epsilon):
    counts = {}
    for value, level in zip(x, epsilon, strict=True):
        missing = value is None or value != value
        if isinstance(query, Histogram) and query.categories:
            cell = query.categories.index(value) if value in query.categories else None
        elif isinstance(query, Histogram):
            cell = query.missing if missing else min(max(int(np.floor(value)), 0), len(query.cells) - 1)
        elif query.statistic == "count":
            cell = int(query.condition is None or (not missing and value > 0))
        else:
            place = None if missing else np.floor((value - float(query.low)) / float(query.step) + 0.5)
            cell = query.missing_cell if missing else int(min(max(place, 0), last_cell(query)))
        if cell is not None:
            key = (int(level == 1.0), cell)
            counts[key] = counts.get(key, 0) + 1
    return counts


@BOTH
@pytest.mark.parametrize("query", QUERIES)
def test_everyone_kept_and_no_noise_is_the_plain_statistic(query, neighbors):
    """All of one level: nobody is drawn, and sums are divided by the number of people on the roster."""
    spec = accord.Spec.of([1.0] * 5)
    plan = accord.plan(spec, QUERIES[query], "sample", neighbors=neighbors)
    values = values_of(plan.query)
    table = [values[0], values[-1], values[-1], values[len(values) // 2], values[0]]
    released, noise = Laws(plan).run(table)
    assert noise.chances == []
    if query in RANKS:
        x = np.array([row[0] for row in table])
        off = [
            [max(Fraction(0), int((x < r).sum()) - p * 5, int((x > r).sum()) - (1 - p) * 5) for r in range(4)]
            for p in plan.query.ps
        ]
        for (scores, _), row in zip(noise.scores, off, strict=True):
            assert (
                len({Fraction(-s) / o for s, o in zip(scores, row, strict=True) if o}) <= 1
            )  # the same up to a factor
            assert [s == 0 for s in scores] == [o == 0 for o in row]
        return
    means = [Fraction(sum(column), 5) for column in zip(*table, strict=True)]
    if len(released) == 2 and len(means) == 1:
        means.append(plan.query.cells - means[0])
    if query == "variance":
        span, whole = plan.query.cells, [row[0] for row in table]
        if neighbors == "replace":
            sums = [[2 * span * (2 * q - span), (2 * q - span) ** 2] for q in whole]
        else:
            sums = [[q**2, 2 * q * (span - q), (span - q) ** 2] for q in whole]
        means = [Fraction(sum(column), 5) for column in zip(*sums, strict=True)]
    assert released == means


@BOTH
@pytest.mark.parametrize("query", RANKS)
def test_quantiles_of_public_people_alone_have_no_noise(query, neighbors):
    plan = planned([0.1, inf, inf], RANKS[query], neighbors, inf)
    values = values_of(plan.query)
    released, noise = Laws(plan).run([values[0], values[-1], values[-1]])
    assert (noise.chances, noise.scales, noise.scores) == ([], [], [])
    assert released[: len(plan.query.ps)] == [values[-1][0]] * len(plan.query.ps)


def test_scores_of_many_who_are_kept_are_exact_beyond_64_bits():
    """Their number times t, in millionths, is more than an int64 holds."""
    people, t = [2**41 + 1, 2**41 + 4], LARGEST
    plan = accord.plan(accord.Spec.from_groups({1e6: sum(people)}), RANKS["median"], "sample", t=1e6)
    summary = Summary(plan.spec.people, 4, np.zeros(2, int), np.array([0, 3]), np.array(people))
    noise = Scripted()
    SAMPLE.method(plan.target).answer(summary, plan.calibration, plan.target, noise)
    [(scores, _)] = noise.scores
    below = [0, people[0], people[0], people[0]]
    above = [people[1], people[1], people[1], 0]
    off = [t * max(0, 2 * b - sum(people), 2 * a - sum(people)) for b, a in zip(below, above, strict=True)]
    assert scores == [-x for x in off]


@BOTH
@pytest.mark.parametrize("query", ["mean", "sum", "count", "histogram of three cells"])
def test_answers_are_unbiased(query, neighbors):
    """Averaged over who is kept, exactly: the mean with weights π."""
    plan = planned([0.1, 0.5, 1.0], QUERIES[query], neighbors, "max")
    laws, values = Laws(plan), values_of(plan.query)
    keep = [Fraction(int(k), SURE) for k in plan.calibration.keep]
    for table in product(values, repeat=3):
        law = laws.law(table)
        rows = [
            list(row)
            if neighbors == "replace" or query not in ("mean", "sum")
            else [row[0], plan.query.cells - row[0]]
            for row in table
        ]
        expected = [
            sum(p * row[k] for p, row in zip(keep, rows, strict=True)) / sum(keep)
            for k in range(len(rows[0]))
        ]
        assert [sum(p * released[k] for p, released, *_ in law) for k in range(len(expected))] == expected


# ---- teeth -----------------------------------------------------------------------------------------------------------


def by_number_kept(summary, calibration, target, noise):
    """What [F] and [C] do in their figures: the mean of who is kept, with noise for so many people."""
    kept = sample.thin(summary.amount, calibration.keep[summary.level], noise)
    people, total = int(kept.sum()), int((summary.output * kept).sum())
    noisy = noise.laplace(Fraction(target.sensitivity * MICRO, calibration.t * max(people, 1)))
    return [Fraction(total, max(people, 1)) + noisy]


def test_dividing_by_the_number_of_people_kept_is_found_out():
    """At ε = 0.1 and t = 1, with one other person: 0.132."""
    query = accord.mean("x", bounds=(0, 1), step=1 / 2**20)
    plan = planned([0.1, 1.0], query, "add-remove", 1.0)
    assert overcharged(plan) == []
    laws = Laws(plan, by_number_kept)
    lost = laws.loss(((query.cells,), (0,)), (None, (0,)))
    pi = (e**0.1 - 1) / (e - 1)
    assert lost == pytest.approx(log(1 + pi * (2 * e**0.5 - 1)), abs=1e-5)
    assert round(lost, 3) == 0.132
    assert [level for level, *_ in overcharged(plan, by_number_kept, [(0,), (query.cells,)])] == [0.1]


def sharper(plan, times):
    """The same mechanism with a half or a quarter of the noise."""

    class Sharper:
        def __init__(self, noise):
            self.noise, self.keep = noise, noise.keep

        def laplace(self, scale):
            return self.noise.laplace(scale / times)

        def choose(self, scores, scale):
            return self.noise.choose(scores, scale // times)

    answer = plan.method.answer
    return lambda summary, calibration, target, noise: answer(summary, calibration, target, Sharper(noise))


@BOTH
@pytest.mark.parametrize("query", [name for name in NUMBERS if name != "count of everyone"])
def test_half_the_noise_of_numbers_is_found_out(query, neighbors):
    plan = planned(SPECS["two levels"], QUERIES[query], neighbors, "max")
    assert [level for level, *_ in overcharged(plan, sharper(plan, 2))] == [0.1, 1.0]


@BOTH
@pytest.mark.parametrize("query", RANKS)
def test_half_the_noise_of_quantiles_is_found_out(query, neighbors):
    """A quarter of it, of four people's quantiles under replace: none of them is near p of the people, so that the bound is looser there."""
    plan = planned([3.0, 4.0, 4.0, 4.0], RANKS[query], neighbors, "max")
    times = 2 if query == "median" or neighbors == "add-remove" else 4
    assert 4.0 in [level for level, *_ in overcharged(plan, sharper(plan, times))]


@BOTH
@pytest.mark.parametrize("query", [name for name in NUMBERS if name != "count of everyone"])
def test_a_chance_of_one_percent_more_is_found_out(query, neighbors):
    plan = planned(SPECS["two levels"], NUMBERS[query], neighbors, "max")
    more = np.array([min(int(k) * 101 // 100, SURE) for k in plan.calibration.keep], dtype=np.uint64)
    before, plan = plan, changed(plan, calibration=replace(plan.calibration, keep=more))
    if (query, neighbors) == LOOSE:
        assert worst_losses(plan)[0] == pytest.approx(1.01 * worst_losses(before)[0], rel=1e-3)
        return
    ((level, lost, charge),) = overcharged(plan)
    assert level == 0.1 and lost == pytest.approx(1.01 * charge, rel=1e-3)


@pytest.mark.parametrize("query", [name for name in NUMBERS if name.startswith("histogram")])
def test_noise_for_t_instead_of_half_of_it_is_found_out(query):
    """Of a histogram, whose cells somebody can leave and enter, under replace."""
    plan = planned(SPECS["two levels"], NUMBERS[query], "replace", "max")
    answer = plan.method.answer

    def bad(summary, calibration, target, noise):
        return answer(summary, calibration, replace(target, relation=ADD_REMOVE), noise)

    assert {level for level, *_ in overcharged(plan, bad)} == {0.1, 1.0}


def test_chances_of_the_other_notion_of_neighbors_are_found_out():
    """With π of replace, somebody's presence costs more than their charge. (The other way round it costs less: π is smaller.)"""
    here, there = (
        planned([0.9, 1.0], NUMBERS["mean"], neighbors, "max") for neighbors in ("replace", "add-remove")
    )
    mixed = changed(there, calibration=replace(there.calibration, keep=here.calibration.keep))
    assert overcharged(here) == overcharged(there) == []
    assert [level for level, *_ in overcharged(mixed)] == [0.9]


def test_the_supremum_is_at_the_centres():
    """What the docstring says: no output of a wide window has a larger ratio. By brute force, for a mean."""
    plan = planned([0.3, 1.0], NUMBERS["mean"], "replace", "max")
    laws = Laws(plan)
    one, other = ((0,), (1,)), ((2,), (1,))
    (unit,) = laws.step(one)
    here, there = laws.law(one), laws.law(other)
    origin = here[0][1][0]
    ratios = []
    for z in range(-60, 61):
        both = []
        for law in (here, there):
            total = 0.0
            for p, (released,), (scale,), _ in law:
                centre = (released - origin) / unit
                total += float(p) * tanh(0.5 / scale) * e ** (-abs(z - float(centre)) / float(scale))
            both.append(total)
        ratios.append(abs(log(both[0] / both[1])))
    assert max(ratios) == pytest.approx(laws.loss(one, other), abs=1e-12)
    assert min(ratios) < 0.5 * max(ratios)
