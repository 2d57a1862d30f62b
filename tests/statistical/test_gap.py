"""Intervals hold where levels go with values, if the declared gap is right; and do not without one.

The bundled people keep their values, and levels are dealt out anew each time by a normal copula: the richer,
the stricter. The gap is that of these people: the largest difference of two levels' means, on average over
how levels are dealt out.
"""

from importlib.resources import files

import duckdb
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binomtest, rankdata

import accord
from accord.lab.audit.case_plans import declared_for
from accord.statistics.gap import with_gap

BOUNDS, ALPHA, RUNS, CORRELATION = (0, 200_000), 1e-9, 40, 0.5
KEYS = ["single", "joint"]


@pytest.fixture(scope="module")
def people():
    path = files("accord.data") / "people.parquet"
    return duckdb.execute(
        "SELECT income, age, filing_status, epsilon FROM read_parquet($1) ORDER BY person", [str(path)]
    ).fetchnumpy()


def dealt_out(people, rng, correlation=CORRELATION):
    """Levels of people, the richest the strictest, as far as the copula has it."""
    scores = ndtri((rankdata(people["income"], method="ordinal") - 0.5) / people["income"].size)
    latent = -correlation * scores + np.sqrt(1 - correlation**2) * rng.normal(size=scores.size)
    epsilon = np.empty(scores.size)
    epsilon[np.argsort(latent, kind="stable")] = np.sort(people["epsilon"])
    return epsilon


def gap_of(people, shown, inside, levels, *correlation):
    """How far the means of two levels lie apart of what is `shown` of those who are `inside`, the largest."""
    rng, deals = np.random.default_rng(1), 30
    totals = np.zeros((shown.shape[0], levels.size))
    for _ in range(deals):
        epsilon = dealt_out(people, rng, *correlation)
        for j, level in enumerate(levels):
            totals[:, j] += shown[:, inside & (epsilon == level)].mean(axis=1) / deals
    return float((totals.max(axis=1) - totals.min(axis=1)).max())


def released(people, query, mechanism, runs, seed, *correlation):
    """Answers about the people, whose levels are dealt out anew, with who has not opted out."""
    rng, con = np.random.default_rng(seed), duckdb.connect()
    for _ in range(runs):
        epsilon = dealt_out(people, rng, *correlation)
        con.register("people", {**people, "epsilon": epsilon})
        table = accord.table(con.sql("FROM people"), epsilon="epsilon")
        yield table.release(query, mechanism), epsilon > 0


def holds(held, runs):
    return binomtest(held, runs, 0.95, alternative="less").pvalue > ALPHA


def covered(release, truth):
    low, high = release.interval(0.95)
    return low <= truth <= high


ASKED = {
    "mean": lambda **of: accord.mean("income", BOUNDS, missing="none", **of),
    "sum": lambda **of: accord.sum("income", BOUNDS, missing="none", **of),
    "proportion": lambda **of: accord.proportion("income > 60000", missing="none", **of),
}


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("mean", "affine"),
        ("proportion", "robust"),
        *(
            pytest.param(name, mechanism, marks=pytest.mark.slow)
            for name, mechanism in (("mean", "auto"), ("sum", "robust"), ("proportion", "affine"))
        ),
    ],
)
def test_intervals_hold_with_the_right_gap_and_not_without(people, name, mechanism):
    income = np.clip(people["income"], *BOUNDS)
    shown = (income if name != "proportion" else (people["income"] > 60_000).astype(float))[None, :]
    levels = np.unique(people["epsilon"][people["epsilon"] > 0])
    gap = gap_of(people, shown, np.ones(income.size, dtype=bool), levels)
    held = {}
    for declared in (True, False):
        query = ASKED[name](**({"gap": gap} if declared else {}))
        by = mechanism if declared else "affine"
        inside = 0
        for release, read in released(people, query, by, RUNS, seed=5):
            truth = shown[0, read].mean() * release.plan.target.factor(int(read.sum()))
            inside += covered(release, truth)
        held[declared] = inside
        if mechanism != "affine":
            break
    assert holds(held[True], RUNS)
    if mechanism == "affine":
        assert not holds(held[False], RUNS), "the same intervals without a gap"


@pytest.mark.parametrize("mechanism", ["rank", pytest.param("robust", marks=pytest.mark.slow)])
def test_medians_hold_with_the_right_gap_and_not_without(people, mechanism):
    income = np.clip(people["income"], *BOUNDS)
    points = np.quantile(income, np.linspace(0.05, 0.95, 19))
    levels = np.unique(people["epsilon"][people["epsilon"] > 0])
    shown = (income[None, :] <= points[:, None]).astype(float)
    gap = 100 * gap_of(people, shown, np.ones(income.size, dtype=bool), levels)
    query = accord.median("income", BOUNDS, missing="none")
    held = {}
    for declared in (True, False) if mechanism == "rank" else (True,):
        asked = with_gap(query, gap, None) if declared else query
        inside = 0
        for release, read in released(people, asked, mechanism, RUNS, seed=6):
            cells = np.rint((income[read] - BOUNDS[0]) / float(query.step))
            point = round((release.value - BOUNDS[0]) / float(query.step))
            below, up_to = 100 * (cells < point).mean(), 100 * (cells <= point).mean()
            low, high = release.interval(0.95)
            inside += below <= high and up_to >= low
        held[declared] = inside
    assert holds(held[True], RUNS)
    assert mechanism != "rank" or not holds(held[False], RUNS)


def quartiles(column, bounds, **options):
    return accord.quantile(column, [0.25, 0.75], bounds, **options)


OLDER, STATUS = {"where": "age >= 40"}, {"by": "filing_status", "keys": KEYS}
MEMBERS = {
    "median where": (accord.median, OLDER),
    "quantiles where": (quartiles, OLDER),
    "median by": (accord.median, STATUS),
    "quantiles by": (quartiles, STATUS),
}


def lies_within(cells, query, answer, interval):
    """Whether the percentiles of an answer, or of several together, are where they are said to be."""
    answers = answer if isinstance(answer, list) else [answer]
    ends = interval if isinstance(answer, list) else [interval]
    points = [round((value - BOUNDS[0]) / float(query.step)) for value in answers]
    return all(
        100 * (cells < point).mean() <= high and 100 * (cells <= point).mean() >= low
        for point, (low, high) in zip(points, ends, strict=True)
    )


@pytest.mark.parametrize(
    "asked",
    [name if name == "median where" else pytest.param(name, marks=pytest.mark.slow) for name in MEMBERS],
)
def test_percentiles_of_members_hold_with_the_right_gap_and_not_without(people, asked):
    """The gap is that of the members, or the largest of any group; κ is that of the worst members."""
    function, part = MEMBERS[asked]
    income, status = np.clip(people["income"], *BOUNDS), people["filing_status"].astype(str)
    inside = {"all": people["age"] >= 40} if "where" in part else {key: status == key for key in KEYS}
    levels = np.unique(people["epsilon"][people["epsilon"] > 0])
    points = np.quantile(income, np.linspace(0.05, 0.95, 19))
    shown = (income[None, :] <= points[:, None]).astype(float)
    strong = 0.8  # quantiles that are drawn together have wide intervals, also without a gap
    gap = 100 * max(gap_of(people, shown, members, levels, strong) for members in inside.values())
    runs, step = 30, 200_000 / 2**16
    for declared in (True, False):
        query = function(
            "income", BOUNDS, missing="none", step=step, **part, **({"gap": gap} if declared else {})
        )
        held = dict.fromkeys(inside, 0)
        for release, read in released(people, query, "rank", runs, 9, strong):
            for key, members in inside.items():
                cells = np.rint((income[read & members] - BOUNDS[0]) / step)
                answer, interval = release.value, release.interval(0.95)
                if key != "all":
                    answer = next(row["value"] for row in answer if row["filing_status"] == key)
                    interval = interval[key]
                grid = accord.median("income", BOUNDS, missing="none", step=step)
                held[key] += lies_within(cells, grid, answer, interval)
        if declared:
            assert all(holds(times, runs) for times in held.values()), held
        else:
            assert not all(holds(times, runs) for times in held.values()), held


def test_groups_hold_with_the_right_gap(people):
    """Private groups, of which κ is that of members; the gap is among the members of each."""
    income, status = np.clip(people["income"], *BOUNDS), people["filing_status"].astype(str)
    levels = np.unique(people["epsilon"][people["epsilon"] > 0])
    gap = max(gap_of(people, income[None, :], status == key, levels) for key in KEYS)
    query = accord.mean("income", BOUNDS, missing="none", by="filing_status", keys=KEYS, gap=gap)
    held = dict.fromkeys(KEYS, 0)
    runs = 30
    for release, read in released(people, query, "robust", runs, seed=7):
        intervals = release.interval(0.95)
        for key in KEYS:
            truth = income[read & (status == key)].mean()
            held[key] += intervals[key][0] <= truth <= intervals[key][1]
    assert all(holds(inside, runs) for inside in held.values())


def test_everyone_with_those_who_opted_out(people):
    """They are the strictest, and the richest: a level of its own for the gap."""
    income = np.clip(people["income"], *BOUNDS)
    gap = gap_of(people, income[None, :], np.ones(income.size, dtype=bool), np.unique(people["epsilon"]))
    query = accord.mean("income", BOUNDS, missing="none", gap=gap, about="everyone")
    inside, runs = 0, 30
    for release, _ in released(people, query, "robust", runs, seed=8):
        inside += covered(release, income.mean())
    assert holds(inside, runs)


def test_the_declared_gap_reaches_every_question():
    """Which statistics have one is decided in one place."""
    assert declared_for("robust", accord.mean("x", (0, 1))).gap == 0.5
    assert declared_for("affine", accord.mean("x", (0, 1))).gap is None
