"""The scores of `pe` are [J] Definition 10, found by trying every other table.

−d(r) is the smallest total level of people whose records differ between the table and some table whose true answer is r. The reference
does exactly that, for all tables of up to five people on a small grid: with ties, even n, answers outside the data, public people.
"""

import tracemalloc
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accord
from accord.budget import MICRO, PUBLIC, to_micro
from accord.mechanisms import pe
from accord.noise import SECURE
from accord.people.summary import Summary
from accord.release.answer import answer

PS = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)]
PEOPLE = {
    "one": ([0.3], 5),
    "one public": ([inf], 4),
    "two alike": ([0.1, 0.1], 5),
    "two": ([0.1, 1.0], 5),
    "two, one public": ([0.1, inf], 5),
    "two public": ([inf, inf], 4),
    "three": ([0.2, 0.5, 1.0], 5),
    "three, two alike": ([0.2, 0.2, 3.0], 4),
    "three, two public": ([0.7, inf, inf], 4),
    "four": ([0.1, 0.1, 0.7, 1.2], 4),
    "four, one public": ([0.2, 0.2, 0.5, inf], 4),
    "five": ([0.1, 0.5, 1.0, 1.0, 1.0], 4),
    "five, two public": ([0.1, 0.1, 0.3, inf, inf], 3),
}
FORBIDDEN = 10**15


# ---- the definition --------------------------------------------------------------------------------------------------


def true_quantile(p):
    def of(tables):
        n = tables.shape[1]
        return np.sort(tables, axis=1)[:, min(int(p * n), n - 1)]

    return of


STATISTICS = {
    **{f"quantile {p}": true_quantile(p) for p in PS},
    "min": lambda tables: tables.min(axis=1),
    "max": lambda tables: tables.max(axis=1),
    "count": lambda tables: tables.sum(axis=1),
}


@cache
def all_tables(people, size):
    return np.array(list(product(range(size), repeat=people)))


def definition(table, levels, size, answers, truth):
    """d(r) in millionths for each of `answers` possible r, by trying every table; None: impossible."""
    tables = all_tables(len(levels), size)
    costs = (tables != table) @ np.array(
        [FORBIDDEN if level == inf else round(level * MICRO) for level in levels]
    )
    results = truth(tables)
    best = [costs[results == r].min() for r in range(answers)]
    return [None if cost >= FORBIDDEN else -int(cost) for cost in best]


# ---- what is tested, called as `pe` calls it ----------------------------------------------------------------------------


def scores(statistic, table, levels, size):
    micro = to_micro(levels)
    distinct, row = np.unique(micro, return_inverse=True)
    order = np.argsort(table, kind="stable")
    points, level, people = table[order], row[order], np.ones(order.size, dtype=np.int64)
    match statistic.split():
        case ["quantile", p]:
            d = pe.quantile_scores(distinct, points, level, people, Fraction(p), size)
        case ["min"]:
            d = pe.min_scores(distinct, points, level, people, size)
        case ["max"]:
            d = pe.min_scores(distinct, size - 1 - points[::-1], level[::-1], people, size)[::-1]
        case ["count"]:
            d = pe.count_scores(distinct, np.bincount(row), np.bincount(row, weights=table).astype(np.int64))
    return [None if score <= pe.IMPOSSIBLE else int(score) for score in d]


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("people", PEOPLE)
def test_scores_are_the_definition(people, statistic):
    levels, size = PEOPLE[people]
    size, answers = (2, len(levels) + 1) if statistic == "count" else (size, size)
    for table in all_tables(len(levels), size):
        expected = definition(table, levels, size, answers, STATISTICS[statistic])
        assert scores(statistic, table, levels, size) == expected, table


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.05, 0.3, 0.3, 1.0, inf]), st.integers(0, 3)), min_size=1, max_size=5
    ),
    numerator=st.integers(1, 99),
)
@settings(max_examples=300)
def test_quantile_scores_are_the_definition_at_any_p(rows, numerator):
    levels, table = zip(*rows, strict=True)
    p = Fraction(numerator, 100)
    expected = definition(np.array(table), levels, 4, 4, true_quantile(p))
    assert scores(f"quantile {p}", np.array(table), levels, 4) == expected


# ---- examples --------------------------------------------------------------------------------------------------------


def test_the_papers_worked_example():
    """[J]: D = ⟨3, 5, 6, 9, 11⟩, Φ = ⟨.1, 1, 1, .5, 1⟩."""
    d = scores("quantile 1/2", np.array([3, 5, 6, 9, 11]), [0.1, 1, 1, 0.5, 1], 14)
    assert [d[r] for r in (3, 4, 5, 6, 11, 12)] == [-1_500_000, -1_500_000, -500_000, 0, -600_000, -1_600_000]
    assert d[13] == d[12] == d[0] == d[2]  # three of five change: .1 + .5 + 1


def test_a_constant_column_costs_nothing_where_it_is():
    d = scores("quantile 1/2", np.array([2, 2, 2]), [0.1, 0.1, 1], 5)
    assert d == [-200_000, -200_000, 0, -200_000, -200_000]


def test_public_people_are_never_changed():
    table, levels = np.array([1, 3]), [0.5, inf]
    assert scores("min", table, levels, 5) == [-500_000, 0, -500_000, -500_000, None]
    assert scores("max", table, levels, 5) == [None, None, None, 0, -500_000]
    assert scores("count", np.array([0, 1]), levels, 2) == [None, 0, -500_000]
    assert scores("quantile 1/2", np.array([1, 3]), [inf, inf], 5) == [None, None, None, 0, None]


def test_min_above_everyone_costs_everyone():
    assert scores("min", np.array([0, 1, 1]), [0.1, 0.2, 0.4], 4) == [0, -100_000, -700_000, -700_000]


def test_the_largest_sums_do_not_overflow():
    """Up to 2⁶² millionths, the most that a plan admits."""
    levels, people = np.array([1, 10**12, PUBLIC]), np.array([1, 2**22, 1])
    at = np.array([1, 1, 1]), np.arange(3), people
    d = pe.quantile_scores(levels, *at, Fraction(1, 2), 3)
    assert d.tolist() == [-(10**12) * (2**21 + 1) - 1, 0, -(10**12) * 2**21 - 1]
    assert pe.min_scores(levels, *at, 3).tolist() == [-1, 0, pe.IMPOSSIBLE]
    d = pe.count_scores(levels, people, people)
    assert d[0] == pe.IMPOSSIBLE and d[1] == -(10**12) * 2**22 - 1 and d[-1] == 0


# ---- who is read -----------------------------------------------------------------------------------------------------


class Watching:
    """Chooses the best, and remembers among which scores."""

    def __init__(self):
        self.scores = []

    def choose(self, scores, scale):
        self.scores.append(scores.tolist())
        return int(scores.argmax())


@pytest.mark.parametrize("statistic", ["median", "min", "max", "count"])
def test_who_is_charged_nothing_is_not_read_and_who_is_charged_a_millionth_is(statistic):
    """Half of one millionth is nothing; of two it is one, and of four it is two."""
    spec = accord.Spec.from_groups({1e-6: 3, 2e-6: 1, 4e-6: 2})
    if statistic == "count":
        query, size = accord.count(where="x > 0"), 2
        # for each level: how many people, and how many of them meet the condition
        level, at, amount = [0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1], [3, 1, 2, 3, 1, 0]
        expected = [-1, 0, -2, -4]
    else:
        query = getattr(accord, statistic)("x", bounds=(0, 4), step=1, missing="none")
        level, at, amount, size = [0, 0, 1, 2], [0, 4, 2, 3], [1, 2, 1, 2], query.points
        expected = {"median": [-3, -3, -2, 0, -3], "min": [-1, -1, 0, -1, -5], "max": [-5, -5, -4, 0, -1]}[
            statistic
        ]
    plan = accord.plan(spec, query, "pe", share=0.5)
    assert plan.calibration.charges.tolist() == [0, 1, 2]
    watching = Watching()
    summary = Summary(spec.people, size, np.array(level), np.array(at), np.array(amount))
    answer(plan, [summary], watching)
    assert watching.scores == [expected]


# ---- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["median", "min", "max", "count"])
def test_ten_thousand_levels_take_seconds(statistic):
    """Everyone has a level and a value of their own: work and memory must not grow with levels times values."""
    n = 10_000
    random = np.random.default_rng(5)
    spec = accord.Spec(random.choice(np.arange(1, 10**7), n, replace=False), np.ones(n, dtype=np.int64))
    if statistic == "count":
        query = accord.count(where="x > 0")
        level = np.tile(np.arange(n), 2)  # how many people, and how many of them meet the condition
        cells, amounts = (
            np.repeat([0, 1], n),
            np.concatenate((np.ones(n, dtype=np.int64), random.integers(0, 2, n))),
        )
    else:
        query = getattr(accord, statistic)("x", bounds=(0, 1), missing="none")
        level = np.arange(n)
        cells, amounts = random.choice(query.points, n, replace=False), np.ones(n, dtype=np.int64)
    summary = Summary(spec.people, 2 if statistic == "count" else query.points, level, cells, amounts)
    plan = accord.plan(spec, query, "pe")
    tracemalloc.start()
    try:
        value, _ = answer(plan, [summary], SECURE)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 <= value <= (n if statistic == "count" else 1)
    assert most_bytes < 1e9
