"""Questions about parts of the people: nobody loses more than their charge, member or not. Exact, by enumeration, without sampling.

`contributions` has the engine read one person of every kind (value, group, condition; one row or two), which gives what a person can add to the integers behind
an answer; tiny tables are put together from that, and a test makes sure that the engine does the same.
The noise is put in at `release.answer`:

    Where noise is added, it catches the integer and the scale, and says what comes out. So the loss is Σ|change|/scale as a rational number, and the same outcomes must
    make the same answer whatever the data: everything beside them is post-processing.
    Where a point is chosen, it catches scores and scale, from which probabilities follow; choices are independent
    given the table, so that log ratios add up, also with that of the noisy size beside them.
    Where people are kept at random (`sample`), the loss of those who are kept is bounded as above, and what the chances make of it follows from the proof's formula.
"""

import json
import re
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from math import exp, inf, isfinite, log, log1p, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import changed

import accord
from accord.budget import MICRO, PUBLIC
from accord.errors import PlanError
from accord.lab.audit.recorded_draws import Ordered
from accord.mechanisms.regression import RegressionCalibration, SampledRegressionCalibration
from accord.mechanisms.sample import SURE
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE, REPLACE
from accord.release.answer import answer
from accord.spec import Spec
from accord.statistics import Grouped, Histogram
from accord.statistics.mean import MembersMean

GRID = {"bounds": (0, 2), "step": 1}
ADDED = {
    "mean": lambda **of: accord.mean("x", **GRID, **of),
    "mean, none missing": lambda **of: accord.mean("x", **GRID, missing="none", **of),
    "mean on a fine grid": lambda **of: accord.mean("x", bounds=(-1, 2), **of),
    "sum": lambda **of: accord.sum("x", bounds=(-1, 2), step=1, **of),
    "sum above zero": lambda **of: accord.sum("x", bounds=(1, 2), step=0.5, missing=2, **of),
    "sum below zero": lambda **of: accord.sum("x", bounds=(-3, -1), step=1, **of),
    "proportion": lambda **of: accord.proportion("x > 0", **of),
    "proportion, none missing": lambda **of: accord.proportion("x > 0", missing="none", **of),
    "variance": lambda **of: accord.variance("x", **GRID, **of),
    "covariance": lambda **of: accord.covariance("x", "z", bounds={"x": (0, 2), "z": (0, 2)}, **of),
    "covariance, none missing": lambda **of: accord.covariance(
        "x", "z", bounds={"x": (0, 2), "z": (0, 2)}, missing="none", **of
    ),
    "correlation": lambda **of: accord.correlation("x", "z", bounds={"x": (0, 2), "z": (0, 2)}, **of),
    "rows": lambda **of: accord.rows(max=2, **of),
    "count": lambda **of: accord.count(**of),
    "histogram of two cells": lambda **of: accord.histogram("x", edges=[0, 1, 2], **of),
    "histogram of three cells": lambda **of: accord.histogram("x", edges=[0, 1, 2, 3], **of),
    "histogram of categories": lambda **of: accord.histogram("x", categories=[0, 1], **of),
    "histogram with a place for others": lambda **of: accord.histogram(
        "x", categories=[0, 1], missing=7, **of
    ),
    "regression": lambda **of: accord.regression("x", ["z"], bounds={"x": (0, 2), "z": (0, 2)}, **of),
    "regression on a category": lambda **of: accord.regression(
        "x", ["z"], bounds={"x": (0, 2)}, categories={"z": [0, 1, 2]}, **of
    ),
}
CHOSEN = {
    "median": lambda **of: accord.median("x", **GRID, **of),
    "quantile 0.9": lambda **of: accord.quantile("x", 0.9, **GRID, **of),
    "two quantiles": lambda **of: accord.quantile("x", [0.25, 0.75], **GRID, **of),
    "min": lambda **of: accord.min("x", **GRID, **of),
    "max": lambda **of: accord.max("x", **GRID, **of),
}
STATISTICS = ADDED | CHOSEN
OF_SEVERAL = ("regression", "covariance", "correlation")
"""What is about x and z."""
PARTS = {
    "values": {},
    "where": {"where": "m > 0"},
    "by 1": {"by": "g", "keys": [1]},
    "by 2": {"by": "g", "keys": [1, 2]},
    "by 3": {"by": "g", "keys": [1, 2, 3]},
    "where and by": {"where": "m > 0", "by": "g", "keys": [2, 1]},
    "by two columns": {"by": ["g", "m"], "keys": {"g": [1, 2], "m": [0, 1]}},
    "by 1 and the rest": {"by": "g", "keys": [1], "rest": "other"},
}
SPECS = {
    "two levels": (Spec.of([0.1, 1.0]), 1.0),
    "odd levels": (Spec.of([0.000003, 0.123457, 2.500001]), 1.0),
    "a public one, and a share": (Spec.of([0.3, 1.1, inf]), 0.37),
    "generous": (Spec.of([700.0, 90_000.0]), 1.0),
}
NEIGHBORS = ("replace", "add-remove")
MEMBERS = ("values", "where", "by 1")
"""Of some people, while everyone stays: of whoever has a value, also with a condition, or in the one group."""
COUNTED = (
    *("count", "rows", "mean, none missing", "proportion, none missing", "covariance, none missing"),
    "sum above zero",
)
"""In which everyone counts, whether they have a value or not."""
NO_PART = [("count", "where"), *((s, "values") for s in COUNTED)]
CASES = [(s, p) for s in STATISTICS for p in PARTS if (s, p) not in NO_PART]


@pytest.fixture(scope="module", autouse=True)
def close():
    """No connection is left open."""
    yield
    everyone.cache_clear()
    neighboring.cache_clear()


# ---- what a person can add -----------------------------------------------------------------------------------------


def kinds(of_several, of):
    """Every row that somebody can have."""
    xs = [0.0, 1.0, 2.0, *([] if of_several else [nan, 1e300, -1e300, inf])]
    zs = [0.0, 1.0, 2.0, nan] if of_several else [0.0]
    several = isinstance(of.get("by"), list)
    gs = [*map(float, of["keys"]["g"] if several else of["keys"]), 9.0, nan] if "keys" in of else [1.0]
    ms = [1.0, 0.0, nan] if "where" in of or several else [1.0]
    return [dict(zip("xzgm", row, strict=True)) for row in product(xs, zs, gs, ms)]


def opened(people, levels, user, **options):
    """A table of people who are lists of rows; without `user`, of one row each."""
    rows = [(row, k) for k, person in enumerate(people) for row in person]
    columns = {name: np.array([row[name] for row, _ in rows], dtype=float) for name in "xzgm"}
    columns |= {
        "id": np.array([k for _, k in rows]),
        "e": np.array([levels[k] for _, k in rows], dtype=float),
    }
    return accord.table(columns, epsilon="e", user="id" if user else None, **options)


@cache
def contributions(statistic, part, neighbors, by_cell=False):
    """All that one person can add to a Summary: for each group the (output, amount) that are not 0."""
    query = answered(statistic, part, neighbors)
    people_seen = {}
    for user in (False, True):
        if not user and statistic == "rows":
            continue
        table, people = everyone(statistic.startswith(OF_SEVERAL), part, user)
        by_group = [added(s, people) for s in table.reader.summaries(query, None, by_cell)]
        for person in zip(*by_group, strict=True):
            people_seen[person] = None
    return list(people_seen)


@cache
def everyone(of_several, part, user):
    """A table with a person of every kind, each of a level of their own; with `user`, also of two rows."""
    rows = kinds(of_several, PARTS[part])
    people = [[row] for row in rows]
    if user:
        people += [list(pair) for pair in combinations_with_replacement(rows[:: max(1, len(rows) // 25)], 2)]
    return opened(people, [(k + 1) / 1000 for k in range(len(people))], user), len(people)


def added(summary, people):
    """What each level, here each person, adds to each output."""
    sums = [{} for _ in range(people)]
    for j, k, a in zip(summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True):
        sums[j][k] = sums[j].get(k, 0) + a
    return [tuple(sorted((k, a) for k, a in person.items() if a)) for person in sums]


@cache
def answered(statistic, part, neighbors):
    """The question as plans have it: as it was asked."""
    return accord.plan(Spec.of([1.0, 1.0]), STATISTICS[statistic](**PARTS[part]), neighbors=neighbors).query


@cache
def outputs_of(statistic, part, neighbors, by_cell=False):
    table, _ = everyone(False, part, True)
    return table.reader.summaries(answered(statistic, part, neighbors), None, by_cell)[0].outputs


@dataclass(frozen=True, repr=False)
class WithoutOne(Summary):
    """Somebody of this level is not kept: then they are not among those outside either."""

    level_of_absent: int = -1

    def with_others(self, wanted):
        whole = super().with_others(wanted)
        outside = wanted * ((whole.level == self.level_of_absent) & (whole.output == self.outputs))
        return replace(whole, amount=whole.amount - outside)


def put_together(spec, people, groups, outputs, absent=None):
    """The Summaries of people who add these; None: not there. `absent`: of which level one is not kept."""
    level_of = np.repeat(np.arange(spec.micro.size), spec.people).tolist()
    summaries = []
    for place in range(groups):
        entries = [
            (j, k, a)
            for j, person in zip(level_of, people, strict=True)
            if person is not None
            for k, a in person[place]
        ]
        columns = [list(column) for column in zip(*entries, strict=True)] or [[], [], []]
        level, output = (np.array(column, dtype=np.int64) for column in columns[:2])
        amount = np.array(columns[2], dtype=np.int64 if sum(map(abs, columns[2])) < 2**60 else object)
        if absent is None:
            summaries.append(Summary(spec.people, outputs, level, output, amount))
        else:
            summaries.append(WithoutOne(spec.people, outputs, level, output, amount, absent))
    return summaries


# ---- the noise -----------------------------------------------------------------------------------------------------


class Caught:
    """A draw that has not been made: whatever it is added to, the outcome is what the noise says."""

    __array_ufunc__ = None

    def __init__(self, noise, scale):
        self.noise, self.scale = noise, scale

    def __radd__(self, value):
        assert int(value) == value
        self.noise.seen.append((int(value), self.scale))
        return self.noise.outcome(len(self.noise.seen))


class CaughtInBox(Caught):
    """One coordinate of a box."""

    def __radd__(self, value):
        assert int(value) == value
        self.scale[2].append(int(value))
        return self.noise.outcome(len(self.scale[2]))

    __add__ = __radd__


class Outcomes:
    """Catches what noise is added to, and decides what comes out of it."""

    def __init__(self, outcome=lambda k: 3 * 10**6 + 17 * k, pick=lambda k: k):
        self.outcome, self.pick, self.seen, self.laws, self.boxes = outcome, pick, [], [], []

    def box(self, spans, scale):
        assert isinstance(scale, Fraction) and scale > 0
        self.boxes.append((tuple(spans), scale, []))
        return [CaughtInBox(self, self.boxes[-1]) for _ in spans]

    def laplace(self, scale):
        assert isinstance(scale, Fraction) and scale > 0
        return Caught(self, scale)

    def choose(self, scores, scale):
        self.laws.append(([int(s) for s in scores], int(scale)))
        return self.pick(len(self.laws)) % len(scores)

    def ordered(self, weights, ps, scale, parts, times=None):
        law = Ordered(weights, ps, scale, parts, times)
        self.laws.append((law, law.shape))
        return [self.pick(len(self.laws)) % len(weights)] * len(ps)

    def keep(self, chances):
        return np.ones(chances.size, dtype=bool)

    def words(self, count):
        return np.zeros(count, dtype=np.uint64)


def drawn(plan, summaries, *script):
    noise = Outcomes(*script)
    return answer(plan, summaries, noise), noise


@cache
def compared(spec, share, statistic, part, neighbors):
    return accord.plan(spec, STATISTICS[statistic](**PARTS[part]), share=share, neighbors=neighbors)


def planned(spec, share, statistic, part, neighbors, name):
    """The plan by a mechanism; None where it is refused."""
    plan = compared(spec, share, statistic, part, neighbors)
    candidate = next(c for c in plan.candidates if c.mechanism == name)
    if candidate.rmse is None:
        return None
    return changed(plan, mechanism=name, calibration=candidate.calibration, prediction=candidate.prediction)


def level_of(person, spec):
    return next(j for j in range(spec.micro.size) if person < spec.people[: j + 1].sum())


def lowest_bound(spec, share):
    return [PUBLIC if m == PUBLIC else m * round(share * MICRO) // MICRO for m in spec.micro.tolist()]


def changes(can, neighbors):
    """What one person may add instead of what they add."""
    if neighbors == "replace":
        return [(a, b) for a in can for b in can if a != b]
    return [(a, None) for a in can] + [(None, a) for a in can]


# ---- noise is added ------------------------------------------------------------------------------------------------


def additive_loss(plan, here, there):
    """The exact log ratio; both are (answer, noise) for the same outcomes."""
    (answer, noise), (answer_there, noise_there) = here, there
    assert [s for _, s in noise.seen] == [s for _, s in noise_there.seen], (
        "the noise must not depend on the data"
    )
    assert noise.laws == noise_there.laws == []
    assert answer == answer_there, "something beside the noisy integers moves the answer"
    assert [b[:2] for b in noise.boxes] == [b[:2] for b in noise_there.boxes]
    apart = [abs(a - b) / s for (a, s), (b, _) in zip(noise.seen, noise_there.seen, strict=True)]
    for (spans, scale, values), (_, _, others) in zip(noise.boxes, noise_there.boxes, strict=True):
        moves = zip(values, others, spans, strict=True)
        apart.append(max(-(-abs(a - b) // span) for a, b, span in moves) / scale)
    return sum(apart, Fraction(0))


def worst_additive(plan, statistic, part, neighbors, draw=drawn):
    """For each level the largest loss of one person; 0 for who is charged ∞."""
    spec, can = plan.spec, contributions(statistic, part, neighbors)
    outputs, groups = outputs_of(statistic, part, neighbors), plan.private_groups
    charges = plan.calibration.charges.tolist()
    worst = [Fraction(0)] * spec.micro.size
    few = ends(can) if len(can) > 12 else can
    ways = (
        combinations(few, 2) if neighbors == "replace" else [(a, None) for a in few]
    )  # a loss is the same both ways
    ways = list(ways)
    for person in range(spec.total):
        level = level_of(person, spec)
        if charges[level] == PUBLIC or (person and level == level_of(person - 1, spec)):
            continue
        table = [can[-1]] * spec.total  # sums do not mind who else is there: test_the_engine_adds_people_up
        read = cache(
            lambda mine, table=table, person=person: draw(
                plan, put_together(spec, [*table[:person], mine, *table[person + 1 :]], groups, outputs)
            )
        )
        for a, b in ways:
            worst[level] = max(worst[level], additive_loss(plan, read(a), read(b)))
    return worst


def ends(can):
    """Fewer of them, among which the extremes of every output are."""
    kept = {can[0]: None, can[-1]: None}
    keys = {(g, k) for c in can for g, sums in enumerate(c) for k, _ in sums}
    for g, k in sorted(keys):
        for sign in (1, -1):
            kept[max(can, key=lambda c: sign * dict(c[g]).get(k, 0))] = None
    for g in range(len(can[0])):
        kept[max(can, key=lambda c: sum(abs(a) for _, a in c[g]))] = None
    return list(kept)


def is_tight(statistic, part, plan):
    """A correlation of one group is charged as if its people could move to another, which is hardly more than they lose."""
    return not (plan.private_groups == 1 and plan.times == 2 and statistic.startswith("correlation"))


def is_mean_only(plan):
    """Whether a regression releases no slopes."""
    return (
        isinstance(plan.calibration, RegressionCalibration | SampledRegressionCalibration)
        and plan.calibration.mean_only
    )


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(("statistic", "part"), [c for c in CASES if c[0] in ADDED])
def test_the_loss_is_exactly_the_charge(statistic, part, neighbors):
    tried = set()
    used = ["two levels", "generous"] if statistic.startswith("regression") else list(SPECS)[:3]
    for spec, share in map(SPECS.get, used):
        for name in ("minimum", "threshold", "proportional", "affine", "fallah", "stretch", "mix"):
            plan = planned(spec, share, statistic, part, neighbors, name)
            if plan is None:
                continue
            tried.add(name)
            cost, bound = plan.cost.tolist(), lowest_bound(spec, share)
            assert all(0 <= c <= most for c, most in zip(cost, bound, strict=True))
            worst = worst_additive(plan, statistic, part, neighbors)
            for c, lost in zip(cost, worst, strict=True):
                if c == PUBLIC:
                    continue
                assert lost <= Fraction(c, MICRO)
                if is_tight(statistic, part, plan) and not is_mean_only(plan):
                    assert lost == Fraction(c, MICRO)
    assert tried >= {"minimum", "threshold", "affine"}
    if statistic.startswith("regression"):  # both ways of answering it were tried
        plans = [planned(*SPECS[spec], statistic, part, neighbors, "affine") for spec in used]
        assert [is_mean_only(plan) for plan in plans] == [True, False]
    summed, stays = statistic.split()[0].strip(","), neighbors == "replace" and part in MEMBERS
    everywhere = stays and part == "values" and summed == "histogram"  # who has no value is in no cell
    once = ("mean", "proportion", "sum", "rows")  # a count of one group is that of add-remove
    assert ("mix" in tried) == (everywhere or (stays and summed in once))
    assert ("stretch" in tried) == (stays and summed in ("sum", "rows"))


def test_a_mean_with_a_condition_releases_two_sums_of_members():
    """Σc(2q − span) and Σc·span."""
    plan = planned(*SPECS["two levels"], "mean", "where", "replace", "affine")
    assert type(plan.target) is MembersMean and plan.times == 1
    can = [dict(c[0]) for c in contributions("mean", "where", "replace")]
    sums = {tuple(plan.target.sums([c.get(0, 0), c.get(1, 0)], 1)) for c in can}
    assert sums == {(0, 0), (-2, 2), (0, 2), (2, 2)}


@pytest.mark.parametrize(
    "statistic", ["mean", "sum", "count", "histogram of three cells", "regression", "covariance"]
)
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_less_noise_is_found_out(statistic, neighbors):
    class Less(Outcomes):
        def laplace(self, scale):
            return super().laplace(scale * 99 / 100)

    def bad(plan, summaries):
        noise = Less()
        return answer(plan, summaries, noise), noise

    plan = planned(*SPECS["two levels"], statistic, "by 2", neighbors, "minimum")
    assert all(
        lost > Fraction(c, MICRO)
        for c, lost in zip(
            plan.cost.tolist(), worst_additive(plan, statistic, "by 2", neighbors, bad), strict=True
        )
    )


@pytest.mark.parametrize("statistic", ["mean", "count", "histogram of two cells", "regression", "covariance"])
def test_groups_under_replace_at_the_whole_charge_are_found_out(statistic):
    """Somebody who moves from one group to another counts twice."""
    plan = planned(*SPECS["two levels"], statistic, "by 2", "replace", "minimum")
    assert plan.times == 2
    wrong = changed(plan, times=1)
    assert any(
        lost > Fraction(c, MICRO)
        for c, lost in zip(
            wrong.cost.tolist(), worst_additive(wrong, statistic, "by 2", "replace"), strict=True
        )
    )


# ---- points are chosen ---------------------------------------------------------------------------------------------


@cache
def log_law(scores, scale):
    top = max(scores)
    parts = [(s - top) / scale for s in scores]
    total = log(sum(exp(part) for part in parts))
    return [part - total for part in parts]


def choice_loss(here, there):
    """Of the points and of the noisy size, one for each group."""
    (answer, noise), (answer_there, noise_there) = here, there
    assert answer == answer_there, "something beside the choices and the noisy size moves the answer"
    assert len(noise.laws) == len(noise_there.laws), "the number of choices must not depend on the data"
    assert [s for _, s in noise.seen] == [s for _, s in noise_there.seen], (
        "the noise must not depend on the data"
    )
    lost = float(
        sum(
            (abs(a - b) / s for (a, s), (b, _) in zip(noise.seen, noise_there.seen, strict=True)), Fraction(0)
        )
    )
    for (scores, scale), (others, scale_there) in zip(noise.laws, noise_there.laws, strict=True):
        assert scale == scale_there
        if isinstance(scores, Ordered):
            lost += float(np.abs(scores.logs - others.logs).max())
            continue
        assert len(scores) == len(others)
        if scores != others:
            one, other = log_law(tuple(scores), scale), log_law(tuple(others), scale)
            lost += max(a - b for a, b in zip(one, other, strict=True))
    return lost


def worst_choice(plan, statistic, part, neighbors, draw=drawn):
    """For each level the largest loss over all tables of such people, and all changes."""
    spec, can = plan.spec, contributions(statistic, part, neighbors)
    outputs, groups = outputs_of(statistic, part, neighbors), plan.private_groups
    states = can if neighbors == "replace" else [None, *can]
    read = cache(lambda table: draw(plan, put_together(spec, table, groups, outputs)))
    charges = plan.calibration.charges.tolist()
    worst = [0.0] * spec.micro.size
    for person in range(spec.total):
        level = level_of(person, spec)
        if charges[level] == PUBLIC or (person and level == level_of(person - 1, spec)):
            continue
        for others in product(states, repeat=spec.total - 1):
            for a, b in changes(can, neighbors):
                here, there = ((*others[:person], mine, *others[person:]) for mine in (a, b))
                worst[level] = max(worst[level], choice_loss(read(here), read(there)))
    return worst


SMALL = {
    "two levels": (Spec.of([0.1, 1.0]), 1.0),
    "odd, and a share": (Spec.of([0.000005, 6.000001]), 0.37),
    "one public": (Spec.of([3.0, inf]), 1.0),
    "alike": (Spec.of([2.0, 2.0]), 1.0),
}


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(("statistic", "part"), [c for c in CASES if c[0] in CHOSEN])
def test_nobody_loses_more_than_their_charge(statistic, part, neighbors):
    tried = set()
    for spec, share in SMALL.values():
        for name in ("minimum", "threshold", "rank", "pe", "mix"):
            plan = planned(spec, share, statistic, part, neighbors, name)
            if plan is None:
                continue
            tried.add(name)
            bound = lowest_bound(spec, share)
            worst = worst_choice(plan, statistic, part, neighbors)
            for c, most, lost in zip(plan.cost.tolist(), bound, worst, strict=True):
                assert 0 <= c <= most
                assert c == PUBLIC or lost <= c / MICRO + 1e-12
    assert tried == {"minimum", "threshold", "rank"}


@pytest.mark.parametrize("statistic", ["median", "max"])
@pytest.mark.parametrize("part", ["where", "by 2"])
def test_three_people_lose_no_more(statistic, part):
    plan = planned(Spec.of([1.0, 4.0, 4.0]), 1.0, statistic, part, "replace", "rank")
    for c, lost in zip(plan.cost.tolist(), worst_choice(plan, statistic, part, "replace"), strict=True):
        assert 0 < lost <= c / MICRO + 1e-12


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("statistic", ["median", "min"])
def test_sharper_choices_are_found_out(statistic, neighbors):
    """A choice among few people is not tight."""
    times = 2

    class Sharper(Outcomes):
        def choose(self, scores, scale):
            return super().choose(scores, scale // times)

    def bad(plan, summaries):
        noise = Sharper()
        return answer(plan, summaries, noise), noise

    plan = planned(Spec.of([4.0, 4.0, 4.0]), 1.0, statistic, "by 1", neighbors, "minimum")
    good = worst_choice(plan, statistic, "by 1", neighbors)
    assert good[0] <= plan.cost[0] / MICRO + 1e-12
    assert worst_choice(plan, statistic, "by 1", neighbors, bad)[0] > plan.cost[0] / MICRO


@pytest.mark.parametrize("part", MEMBERS)
@pytest.mark.parametrize("statistic", CHOSEN)
def test_a_condition_alone_takes_the_whole_charge_of_a_quantile(statistic, part):
    """Under replace nobody counts twice; somebody who comes or goes loses more with less noise on the size."""

    def narrower(times):
        class Narrower(Outcomes):
            def laplace(self, scale):
                return super().laplace(scale / times)

        def bad(plan, summaries):
            noise = Narrower()
            return answer(plan, summaries, noise), noise

        return bad

    spec = Spec.of([2.0, 2.0, 2.0])
    for name in ("minimum", "threshold", "rank"):
        plan = planned(spec, 1.0, statistic, part, "replace", name)
        assert plan.times == 1 and plan.cost.tolist() == [2 * MICRO]
        (good,) = worst_choice(plan, statistic, part, "replace")
        assert 1.0 < good <= 2.0 + 1e-12
        (bad,) = worst_choice(plan, statistic, part, "replace", narrower(10))
        assert bad > 2.0 + 1e-9


@pytest.mark.parametrize("statistic", ["median", "max"])
def test_several_groups_at_the_whole_charge_are_found_out(statistic):
    """What one condition may do, groups may not: somebody who moves leaves one and comes into another."""
    plan = planned(Spec.of([20.0, 20.0]), 1.0, statistic, "by 2", "replace", "minimum")
    assert plan.times == 2
    (good,) = worst_choice(plan, statistic, "by 2", "replace")
    assert good <= 20.0 + 1e-12
    whole = changed(plan, calibration=replace(plan.calibration, charges=2 * plan.calibration.charges))
    (bad,) = worst_choice(whole, statistic, "by 2", "replace")
    assert bad > 20.0 + 1e-9


# ---- people are kept at random -------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize(
    ("statistic", "part"),
    [
        c
        for c in CASES
        if c[0] not in ("min", "max", "mean on a fine grid")
        and (c[1] != "by 1" or c[0] in ("count", "rows"))
        and not c[0].startswith(("covariance", "correlation"))
    ],
)
def test_sampling_loses_no_more(statistic, part, neighbors):
    """Against not being kept, a person who is kept loses at most s; which chance makes that their charge follows from the proof of mechanisms/sample.py."""
    for spec, share in [*SMALL.values(), SPECS["generous"]]:
        plan = planned(spec, share, statistic, part, neighbors, "sample")
        assert plan is not None
        calibration = plan.calibration
        direct = plan.times == 1 and neighbors == "replace" and statistic != "count"
        assert plan.target.relation is (REPLACE if direct else ADD_REMOVE)
        assert plan.target.about_members == (direct and not statistic.startswith("histogram"))
        if calibration.t == PUBLIC:
            assert all(c in (0, PUBLIC) for c in plan.cost.tolist())
            continue
        s = Fraction(calibration.t, MICRO) / (2 if direct else 1)
        by_cell = plan.method.needs_cells
        can = contributions(statistic, part, neighbors, by_cell)
        outputs, groups = outputs_of(statistic, part, neighbors, by_cell), plan.private_groups
        most = 0.0 if statistic in CHOSEN else Fraction(0)
        level = int(np.flatnonzero((calibration.keep > 0) & (calibration.charges != PUBLIC))[-1])
        person = int(spec.people[:level].sum())
        for other in (None, can[-1], can[0]):
            before, after = [other] * person, [other] * (spec.total - person - 1)
            without = drawn(plan, put_together(spec, [*before, None, *after], groups, outputs, level))
            for mine in ends(can) if len(can) > 12 else can:
                there = drawn(plan, put_together(spec, [*before, mine, *after], groups, outputs))
                if statistic in CHOSEN:
                    lost = max(choice_loss(without, there), choice_loss(there, without))
                else:
                    lost = additive_loss(plan, without, there)
                most = max(most, lost)
        assert most <= s + (Fraction(1, 10**12) if statistic in CHOSEN else 0)
        if statistic not in CHOSEN and not is_mean_only(plan):
            assert most == s
        for keep, charge, cost, level in zip(
            calibration.keep.tolist(), calibration.charges.tolist(), plan.cost.tolist(), lowest_bound(spec, share), strict=True
        ):  # fmt: skip
            assert cost <= level
            if charge == PUBLIC:
                assert keep == SURE and level == PUBLIC
            elif float(s) < 300:
                pi, e = keep / SURE, float(s)
                lost = log1p(pi * (exp(e) - 1)) - (log1p(-pi * (1 - exp(-e))) if direct else 0)
                assert lost <= charge / MICRO * (1 + 1e-12)


def test_the_whole_law_of_a_sampled_count_by_group():
    """All kept sets, all outcomes of a lattice: the log ratio of the mixtures, for every change of one person."""
    spec = Spec.of([0.4, 1.2])
    plan = accord.plan(spec, STATISTICS["count"](**PARTS["by 2"]), "sample", t=0.6)
    scale = MICRO / plan.calibration.t
    pi = [k / SURE for k in plan.calibration.keep.tolist()]
    at = np.arange(-25, 27)
    law = np.array([np.exp(-abs(at - n) / scale) for n in range(3)])  # for each number of people who are kept

    def density(groups):
        joint = np.zeros((at.size, at.size))
        for kept in product((0, 1), repeat=2):
            chance = np.prod([p if k else 1 - p for p, k in zip(pi, kept, strict=True)])
            there = [sum(k for k, g in zip(kept, groups, strict=True) if g == group) for group in (1, 2)]
            joint += chance * np.outer(law[there[0]], law[there[1]])
        return joint

    worst = [0.0, 0.0]
    for person, a, b, other in product((0, 1), (0, 1, 2), (0, 1, 2), (0, 1, 2)):
        one, two = ([other, other] for _ in range(2))
        one[person], two[person] = a, b
        worst[person] = max(worst[person], float(np.log(density(one) / density(two)).max()))
    for lost, cost in zip(worst, plan.cost.tolist(), strict=True):
        assert 0.5 * cost / MICRO < lost <= cost / MICRO + 1e-9


# ---- the engine does the same ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("user", [False, True], ids=["one row each", "three rows each"])
def test_the_engine_adds_people_up(user, neighbors):
    """The real Summary of a table is what its people add, each by themselves; who is of a level that the roster does not have is not in it."""
    random = np.random.default_rng(5)
    spec, levels = Spec.of([0.5, 0.5, 0.7]), [0.5, 0.5, 0.7]
    xs, zs, gs, ms = [0.0, 1.0, 2.0, nan, 1e300], [0.0, 1.0, nan], [1.0, 2.0, 3.0, 9.0], [1.0, 1.0, 0.0]
    rows = [dict(zip("xzgm", row, strict=True)) for row in product(xs, zs, gs, ms)]
    people = [[rows[random.integers(len(rows))] for _ in range(1 + 2 * user)] for _ in range(3)]
    alone = opened(people, [0.1, 0.2, 0.3], user)
    options = {"neighbors": "add-remove", "roster": spec} if neighbors == "add-remove" else {}
    there = people if neighbors == "replace" else [people[0], [], people[2]]
    extra = [] if neighbors == "replace" else [[rows[0]]]
    together = opened([*there, *extra], [*levels, 9.0], user, **options)
    for statistic, part in CASES:
        if statistic == "rows" and not user:
            continue
        query = answered(statistic, part, neighbors)
        for by_cell in [False] if statistic in CHOSEN or statistic.startswith(OF_SEVERAL) else [False, True]:
            mine = [added(s, 3) for s in alone.reader.summaries(query, None, by_cell)]
            for one, summary in zip(mine, together.reader.summaries(query, None, by_cell), strict=True):
                expected = [{}, {}]
                for k, person in enumerate(there):
                    for output, amount in one[k] if person else ():
                        expected[k // 2][output] = expected[k // 2].get(output, 0) + amount
                assert added(summary, 2) == [
                    tuple(sorted((k, a) for k, a in sums.items() if a)) for sums in expected
                ]
                assert (summary.people == spec.people).all()


# ---- nothing else is told ------------------------------------------------------------------------------------------

TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\"]*")


def observed(table, query, name, monkeypatch):
    """All that leaves a release, for outcomes that are fixed."""
    noise = Outcomes()
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["accord.release.release"], "SECURE", noise)
        release = table.release(query, name)
    words = TIME.sub(
        "", json.dumps(release.receipt()) + str(release) + repr(release.interval(0.9)) + repr(release)
    )
    return (
        words,
        release.value,
        release.released,
        dict(release.charges),
        [s for _, s in noise.seen],
        [s for _, s in noise.laws],
    )


@cache
def neighboring(neighbors, part):
    """Tables of which each is as far from the first as one person, or everyone, can take it."""
    rows = kinds(True, PARTS[part])
    levels = [0.5, 0.5, 700.0, 700.0]
    options = {"neighbors": "add-remove", "roster": Spec.of(levels)} if neighbors == "add-remove" else {}
    first = [[rows[0]]] * 4
    others = [[*first[:3], [rows[-1], rows[1]]], [[rows[-1]] * 3] * 4]
    if neighbors == "add-remove":
        others = [people[1:] for people in others] + [[first[3]]]
    return [opened(people, levels[-len(people) :], True, **options) for people in (first, *others)]


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_whoever_is_there_decides_nothing_but_outcomes(statistic, neighbors, monkeypatch):
    """The same outcomes make the same release to the letter: value, rmse, few, interval, receipt and text."""
    for part in ("values", "where", "by 2"):
        if (statistic, part) not in CASES:
            continue
        tables = neighboring(neighbors, part)
        query = STATISTICS[statistic](**PARTS[part])
        plan = tables[0].plan(query)
        for name in ("minimum", "sample"):
            if next(c for c in plan.candidates if c.mechanism == name).rmse is None:
                continue
            said = [observed(table, query, name, monkeypatch) for table in tables]
            assert all(one == said[0] for one in said[1:]), (part, name)


# ---- charges ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    levels=st.lists(
        st.one_of(st.integers(1, 40), st.integers(1, 9_000_000), st.just(PUBLIC)), min_size=1, max_size=5
    ),
    share=st.integers(1, MICRO),
    statistic=st.sampled_from(sorted(STATISTICS)),
    part=st.sampled_from(sorted(PARTS)),
    neighbors=st.sampled_from(NEIGHBORS),
)
def test_halves_are_rounded_down(levels, share, statistic, part, neighbors):
    """No candidate, chosen or not, charges more than share × level; not even a millionth, and not even those with an odd number of them."""
    spec = Spec(np.array(levels), np.ones(len(levels), dtype=np.int64))
    try:
        plan = accord.plan(
            spec, STATISTICS[statistic](**PARTS[part]), share=share / MICRO, neighbors=neighbors
        )
    except PlanError as refused:
        halved = neighbors == "replace"
        most = max(PUBLIC if m == PUBLIC else m * share // MICRO for m in levels)
        assert most < (2 if halved else 1), refused
        return
    bound = [PUBLIC if m == PUBLIC else m * plan.share // MICRO for m in spec.micro.tolist()]
    for candidate in plan.candidates:
        if candidate.calibration is not None:
            cost = candidate.cost.tolist()
            assert all(0 <= c <= b for c, b in zip(cost, bound, strict=True))
            halves = candidate.calibration.charges.tolist()
            assert cost == [c if c == PUBLIC else c * plan.times for c in halves]
    assert isinstance(plan.query, Grouped) or statistic == "count" or part == "values"
    assert isfinite(plan.rmse)


def test_a_person_in_no_group_is_charged_like_everyone():
    """Charges are by level: nothing about membership can be in them."""
    table = opened([[{"x": 1.0, "z": 0.0, "g": 9.0, "m": 0.0}]] * 50, [1.0] * 50, False)
    for part in PARTS.values():
        release = table.release(accord.mean("x", **GRID, **part), "minimum")
        assert dict(release.charges) == {1.0: 1.0}


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_groups_within_a_workload_share_what_there_is(neighbors):
    """Doubled charges add up over the questions to no more than share × level, and public groups do not pass for private ones."""
    spec = Spec.from_groups({0.100001: 300, 1.000003: 200, inf: 5})
    asked = [
        make(**PARTS[part])
        for make, part in zip(list(ADDED.values())[:3], ("by 2", "where", "by 3"), strict=True)
    ]
    plan = accord.plan(
        spec, accord.workload([*asked, accord.count(where="x > 0")]), share=0.5, neighbors=neighbors
    )
    assert all(c <= most for c, most in zip(plan.spent.tolist(), lowest_bound(spec, 0.5), strict=True))
    assert [part.times for part in plan.parts] == ([2, 1, 2, 1] if neighbors == "replace" else [1] * 4)
    public = accord.mean("x", **GRID, **PARTS["by 2"], membership="public")
    with pytest.raises(PlanError):
        accord.plan(spec, accord.workload([public, asked[0]]), neighbors=neighbors)


def test_histograms_of_groups_need_no_second_half():
    """A person who changes their cell within a group moves two counts: what is charged covers it, and no more is taken."""
    plan = planned(*SPECS["two levels"], "histogram of three cells", "by 2", "replace", "minimum")
    assert isinstance(plan.query.query, Histogram) and plan.target.sensitivity == 1 and plan.times == 2
