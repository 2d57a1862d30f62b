"""Nobody loses more than their charge where an answer is chosen: exact probabilities on tiny tables, no sampling.

A recording noise catches the scores and the scale of every choice that a mechanism makes. From them follows the probability of every
point, as exp(score/scale) over the sum of all. The choices of one release are independent given the data, and the answer is a function of
the points chosen, so that the largest log ratio of two tables is the sum of the largest ones of the choices. It is compared with the charge
for every table on a tiny grid, every person and every value that they could have instead.
"""

from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, fsum, inf, log

import numpy as np
import pytest
from joint_law import charges_of, largest_losses
from planted import naive_scores

import accord
from accord.budget import MICRO, PUBLIC
from accord.lab.audit.case_plans import declared_for
from accord.mechanisms import ALL, mix, pe, rank_choice
from accord.mechanisms.record import Refused
from accord.people.summary import Summary
from accord.relation import REPLACE
from accord.statistics.ranks import spending

TOLERANCE = 1e-12
SPECS = {
    "two levels": accord.Spec.of([0.1, 1.0]),
    "two levels, three people": accord.Spec.of([0.3, 2.0, 2.0]),
    "three levels": accord.Spec.of([0.2, 0.9, 4.0]),
    "far apart": accord.Spec.of([0.000003, 0.123457, 12.5]),
    "one public": accord.Spec.of([0.5, 2.0, inf]),
    "two public": accord.Spec.of([1.5, inf, inf]),
    "all alike": accord.Spec.of([1.0, 1.0, 1.0]),
}
GRID = {"bounds": (0, 3), "step": 1, "missing": "none"}
QUERIES = {
    "median": accord.median("x", **GRID),
    "quantile 0.9": accord.quantile("x", 0.9, **GRID),
    "quantile 0.2": accord.quantile("x", 0.2, **GRID),
    "two quantiles": accord.quantile("x", [0.25, 0.75], **GRID),
    "three quantiles": accord.quantile("x", [0.1, 0.5, 0.55], **GRID),
    "median in values": accord.median("x", **GRID, interval="values"),
    "two quantiles in values": accord.quantile("x", [0.2, 0.75], **GRID, interval="values"),
    "min": accord.min("x", **GRID),
    "max": accord.max("x", **GRID),
    "median of rounded values": accord.median("x", **GRID, rounded=[3]),
    "two quantiles of rounded values": accord.quantile("x", [0.2, 0.75], **GRID, rounded=[2]),
    "max of rounded values": accord.max("x", **GRID, rounded=[2, 3]),
    "count": accord.count(where="x > 0"),
}
ODD = ("quantile 0.9", "quantile 0.2", "three quantiles")  # p·W of four people lies on one of them
IN_VALUES = ("median in values", "two quantiles in values")  # four people are far from where brackets aim at
SHARED = [(spec, 1.0) for spec in SPECS] + [
    (spec, 0.37) for spec in ("three levels", "one public", "far apart")
]
BY_NAME = {m.name: m for m in ALL}


@pytest.fixture(autouse=True)
def every_level_is_read(monkeypatch):
    """`mix` leaves out levels of so few people. Which it reads is public, and nobody may lose more whichever it does."""
    monkeypatch.setattr(mix, "MISS", 1e9)


def answers(mechanism, target):
    try:
        return mechanism.method(target)
    except Refused:
        return None


def choosing(query):
    """The mechanisms that answer this by choices. Of `sample`, who is kept matters as well: test_sample.py."""
    target = query.under(REPLACE)
    names = [m.name for m in ALL if answers(m, target) and m.name != "sample"]
    return [name for name in names if name == "pe"] if query.statistic == "count" else names


CASES = [(name, query) for query in QUERIES for name in choosing(QUERIES[query])]


class Recording:
    """Chooses as it is told (the first, by default), and remembers what it could choose from."""

    def __init__(self, picks=()):
        self.picks, self.calls, self.times = picks, [], []

    def laplace(self, scale):
        raise AssertionError("a choice needs no Laplace noise")

    def choose(self, scores, scale, times=None):
        assert isinstance(scale, int) and scale > 0
        self.calls.append(([int(s) for s in scores], scale))
        self.times.append([1] * len(scores) if times is None else times.tolist())
        k = len(self.calls) - 1
        return self.picks[k] if k < len(self.picks) else 0


def summary_of(spec, query, table):
    """The Summary of one value a person, in the order of the Spec's levels."""
    level = np.repeat(np.arange(spec.micro.size), spec.people)
    if query.statistic == "count":
        # in the first column everyone, in the second who meets the condition
        zeros, ones = (np.full(len(table), k, dtype=np.int64) for k in (0, 1))
        columns, amounts = (
            np.concatenate((zeros, ones)),
            np.concatenate((ones, np.array(table, dtype=np.int64))),
        )
        return Summary(spec.people, 2, np.concatenate((level, level)), columns, amounts)
    return Summary(spec.people, query.points, level, np.array(table), np.ones(len(table), dtype=np.int64))


def log_probabilities(scores, scale, times):
    top = max(scores)
    parts = [(s - top) / scale + log(t) for s, t in zip(scores, times, strict=True)]
    total = log(fsum(exp(part) for part in parts))
    return [part - total for part in parts]


def choices(answer, plan, table):
    """For each choice {point: log probability}; and what the release is when the first is always chosen."""
    spec, query, calibration = plan.spec, plan.query, plan.calibration
    summary = summary_of(spec, query, table)

    def run(picks):
        noise = Recording(picks)
        return answer(summary, calibration, plan.target, noise), noise.calls, noise.times

    first, calls, times = run(())
    assert run([len(scores) - 1 for scores, _ in calls])[1] == calls, "a choice depends on another one"
    laws = []
    for k, (scores, scale) in enumerate(calls):
        size = plan.spec.total + 1 if query.statistic == "count" else query.points
        if len(scores) == size:
            labels = range(size)
        else:  # answers that would change public people are left out before the choice is made
            labels = [
                int(run([0] * k + [i])[0][k] * (plan.spec.total if query.statistic == "count" else 1))
                for i in range(len(scores))
            ]
            assert len(set(labels)) == len(labels)
        laws.append(dict(zip(labels, log_probabilities(scores, scale, times[k]), strict=True)))
    return laws, first


def worst_losses(answer, plan):
    """For each person the largest loss over all tiny tables and changes; None for who is charged ∞."""
    values = range(2 if plan.query.statistic == "count" else plan.query.points)
    at = cache(lambda table: choices(answer, plan, table))
    charges = np.repeat(plan.calibration.charges, plan.spec.people).tolist()
    worst = [None if charge == PUBLIC else 0.0 for charge in charges]
    for table in product(values, repeat=plan.spec.total):
        for person, value in product(range(plan.spec.total), values):
            if worst[person] is not None:
                other = (*table[:person], value, *table[person + 1 :])
                worst[person] = max(worst[person], loss(at(table), at(other), plan))
    return worst


def loss(here, there, plan):
    (these, fixed), (those, fixed_there) = here, there
    assert len(these) == len(those), "the number of choices must not depend on the data"
    if plan.mechanism == "mix" or not these:
        assert fixed == fixed_there, "something moves without noise"
    lost = 0.0
    for one, other in zip(these, those, strict=True):
        if one.keys() != other.keys():
            return inf
        lost += max(one[label] - other[label] for label in one)
    return lost


def overcharged(answer, plan):
    """People who lose more than their charge."""
    charges = np.repeat(plan.calibration.charges, plan.spec.people).tolist()
    return [
        (person, lost, charge / MICRO)
        for person, (lost, charge) in enumerate(zip(worst_losses(answer, plan), charges, strict=True))
        if lost is not None and lost > charge / MICRO + TOLERANCE
    ]


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(333_333, 10**6)], ids=str)
@pytest.mark.parametrize(
    "weights", [[0, 3, 0, 4, 5], [2**44 + 1, 0, 0, 2**44 + 3, 5]], ids=["small", "large"]
)
def test_scores_by_rank_are_exact_whole_numbers(weights, p):
    """Also where they are beyond 64 bits: a float, or an overflow, would be another mechanism."""
    noise, total = Recording(), sum(weights)
    scores = []
    for r, own in enumerate(weights):
        below = sum(weights[:r])
        wrong = max(0, below - p * total, total - below - own - (1 - p) * total)
        scores.append(-wrong * p.denominator)
    given = []
    choose = noise.choose
    noise.choose = lambda scores, scale: given.append(scores.dtype.kind) or choose(scores, scale)
    rank_choice.select(np.array(weights), p, noise, Fraction(2 * MICRO))
    assert noise.calls == [(scores, 2 * MICRO * p.denominator)]
    assert given[0] in "iO"


@pytest.mark.parametrize(("spec", "share"), SHARED)
@pytest.mark.parametrize(("name", "query"), CASES)
def test_nobody_loses_more_than_their_charge(name, query, spec, share):
    plan = accord.plan(SPECS[spec], declared_for(name, QUERIES[query]), name, share)
    for level, charge in zip(plan.spec.micro.tolist(), plan.calibration.charges.tolist(), strict=True):
        assert charge <= level and (level == PUBLIC or charge <= share * level + 1e-6)
    if plan.draws_together:  # another law, with public people among the others
        assert PUBLIC in plan.spec.micro
        assert all(
            lost <= charge + 1e-9 for lost, charge in zip(largest_losses(plan), charges_of(plan), strict=True)
        )
    else:
        assert overcharged(BY_NAME[name].method(plan.target).answer, plan) == []


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0, inf])
@pytest.mark.parametrize("query", ["median", "two quantiles", "max"])
def test_nobody_loses_more_at_any_threshold(query, t):
    plan = accord.plan(SPECS["one public"], QUERIES[query], "threshold", t=t)
    assert overcharged(BY_NAME["threshold"].method(plan.target).answer, plan) == []


# ---- teeth -----------------------------------------------------------------------------------------------------------


def halved(answer):
    """The same mechanism with half the noise."""

    class Half(Recording):
        def choose(self, scores, scale, times=None):
            return super().choose(scores, max(scale // 2, 1), times)

    def bad(summary, calibration, target, noise):
        half = Half(noise.picks)
        result = answer(summary, calibration, target, half)
        noise.calls, noise.times = half.calls, half.times
        return result

    return bad


EVEN = accord.Spec.of(
    [4.0, 4.0, 4.0, 4.0]
)  # p·W lies between two people, so that one of them decides which points are best


@pytest.mark.parametrize("query", IN_VALUES)
def test_brackets_beside_a_quantile_that_has_the_whole_charge_are_found_out(query, monkeypatch):
    plan = accord.plan(EVEN, QUERIES[query], "rank")
    answer = BY_NAME["rank"].method(plan.target).answer
    assert overcharged(answer, plan) == []
    monkeypatch.setattr(
        rank_choice, "spending", lambda ps, relation, tells_size, draws, _: spending(ps, relation, tells_size)
    )
    assert overcharged(answer, plan)


@pytest.mark.parametrize(
    ("name", "query"), [(name, query) for name, query in CASES if query not in (*ODD, *IN_VALUES)]
)
def test_half_the_noise_is_found_out(name, query):
    plan = accord.plan(EVEN, declared_for(name, QUERIES[query]), name)
    answer = BY_NAME[name].method(plan.target).answer
    assert overcharged(answer, plan) == []
    assert overcharged(halved(answer), plan)


@pytest.mark.parametrize("spec", ["two levels, three people", "three levels", "far apart"])
def test_the_naive_rank_is_found_out(monkeypatch, spec):
    """The levels' promise is broken where values tie."""
    plan = accord.plan(SPECS[spec], QUERIES["median"], "pe")
    assert overcharged(pe.METHOD.answer, plan) == []
    monkeypatch.setattr(pe, "quantile_scores", naive_scores)
    losses = overcharged(pe.METHOD.answer, plan)
    assert losses and max(lost / charge for _, lost, charge in losses) > 2


def test_an_answer_that_is_possible_for_one_table_only_is_found_out(monkeypatch):
    """Leaving out what the data make unlikely, say."""
    good = pe.quantile_scores

    def bad(*args):
        scores = good(*args)
        return np.where(scores == scores.min(), pe.IMPOSSIBLE, scores)

    plan = accord.plan(SPECS["three levels"], QUERIES["median"], "pe")
    monkeypatch.setattr(pe, "quantile_scores", bad)
    assert any(lost == inf for _, lost, _ in overcharged(pe.METHOD.answer, plan))
