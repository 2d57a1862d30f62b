"""Proportions, covariances and correlations as parts of a whole: ledgers, registers, workloads, public groups, receipts."""

import json

import numpy as np
import pytest

import accord

N = 4000
RNG = np.random.default_rng(1)
X = RNG.uniform(0, 4, N)
COLUMNS = {
    "id": np.arange(N),
    "x": X,
    "y": np.clip(X / 4 + RNG.normal(0, 0.3, N) - 0.5, -1, 1),
    "g": np.arange(N) % 2 + 1,
    "e": np.repeat([0.5, 2.0], N // 2),
}
BOUNDS = {"x": (0, 4), "y": (-1, 1)}
ASKED = {
    "proportion": lambda **of: accord.proportion("x >= 1 AND y < 0.5", **of),
    "covariance": lambda **of: accord.covariance("x", "y", BOUNDS, **of),
    "correlation": lambda **of: accord.correlation("x", "y", BOUNDS, **of),
    "variance": lambda **of: accord.variance("x", (0, 4), **of),
    "std": lambda **of: accord.std("x", (0, 4), **of),
}
each = pytest.mark.parametrize("name", ASKED)


def truth(name, inside=slice(None)):
    x, y = COLUMNS["x"][inside], COLUMNS["y"][inside]
    return {
        "proportion": np.mean((x >= 1) & (y < 0.5)),
        "covariance": np.cov(x, y, bias=True)[0, 1],
        "correlation": np.corrcoef(x, y)[0, 1],
        "variance": np.var(x),
        "std": np.std(x),
    }[name]


def people(**options):
    return accord.table(COLUMNS, epsilon="e", **options)


@each
def test_a_ledger_books_it_and_gives_it_out_again_for_nothing(name, tmp_path):
    table, ledger = people(user="id"), accord.Ledger(tmp_path / "books.db")
    ledger.register(table, "people")
    release = table.release(ASKED[name](), share=0.5, ledger=ledger)
    low, high = release.interval(0.999)
    assert low <= truth(name) <= high
    left = ledger.remaining(table)
    again = table.release(ASKED[name](), share=0.5, ledger=ledger)
    assert again.repeated and again.value == release.value and ledger.remaining(table) == left
    assert json.loads(json.dumps(release.receipt()))["query"] == ASKED[name]().describe()


@each
def test_levels_of_a_register(name):
    register = {"id": np.arange(N), "tier": np.where(np.arange(N) % 2, "open", "strict")}
    rows = {key: column for key, column in COLUMNS.items() if key != "e"}
    table = accord.table(
        rows,
        user="id",
        consent=register,
        epsilon="tier",
        tiers={"open": 3.0, "strict": 0.5},
    )
    low, high = table.release(ASKED[name](), "affine").interval(0.999)
    assert low <= truth(name) <= high


def test_a_workload_has_them_all():
    release = people().release(accord.workload([ask(missing="none") for ask in ASKED.values()]))
    for name, (low, high) in zip(ASKED, release.interval(0.999), strict=True):
        assert low <= truth(name) <= high


@each
@pytest.mark.parametrize("membership", ["private", "public"])
@pytest.mark.parametrize("user", [None, "id"])
def test_groups_private_and_public(name, membership, user):
    query = ASKED[name](by="g", keys=[2, 1], membership=membership)
    release = people(user=user).release(query, "affine")
    assert [row["g"] for row in release.value] == [2, 1]
    for key, (low, high) in release.interval(0.999).items():
        assert low <= truth(name, COLUMNS["g"] == key) <= high


@each
def test_under_add_remove_with_a_condition(name):
    roster = accord.Spec.from_groups({0.5: N, 2.0: N})
    table = accord.table(COLUMNS, epsilon="e", neighbors="add-remove", roster=roster)
    low, high = table.release(ASKED[name](where="g = 1"), "affine").interval(0.999)
    assert low <= truth(name, COLUMNS["g"] == 1) <= high


def test_a_question_of_a_workload_takes_nothing_of_the_others_for_granted():
    table = accord.table({"x": [1.0, 2, 3], "id": [1, 1, 2], "e": [1.0] * 3}, epsilon="e", user="id")
    plan = table.plan(
        accord.workload([accord.mean("x", (0, 4)), accord.sum("x", (0, 4)), accord.count("x > 1")])
    )
    come_to = ["with the mean of their rows", "with the sum of their rows", "if any of their rows meets"]
    for k, part in enumerate(plan.parts):
        assert [any(text in one for one in part.assumptions) for text in come_to] == [
            j == k for j in range(3)
        ]
