"""`rank` is better than `pe` and `mix`, and its predicted error is true: exact errors, without sampling the mechanism.

A recording noise catches the scores of each choice, from which follow the probabilities of all points, and from them the expected squared
error in the value and in percentile points. Only the people are drawn, by a seed: DATASETS tables in each setting. Where chance in the
people dominates the error, and is about normal, a mean square over them is as χ² of DATASETS degrees of freedom, and CHANCE holds the root of
it with all but one seed of 10⁹. Elsewhere it varies less.

Settings: [F] Figure 2 (n = 1001, N(0, 1), two levels, a share of them private) and [J]'s default specification (N(500, 200) in 1 … 1000).
The percentile error of an answer is the distance of p from [fraction of these people below it, fraction below or at it].
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

import accord
from accord.budget import to_micro
from accord.mechanisms.pe import quantile_scores
from accord.people.summary import Summary

N, DATASETS, ALPHA = 1001, 240, 1e-9
CHANCE = np.sqrt(chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], DATASETS) / DATASETS)
"""A root mean square over the tables, over what it is on average: from 0.74 to 1.29."""
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
ANYWHERE = "may land anywhere in the bounds"
NORMAL = accord.median("x", bounds=(-5, 5), step=0.0025, missing="none")  # at most one of them a step, about
WHOLE = accord.median("x", bounds=(1, 1000), step=1, missing="none")


def two(low, high, share):
    private = round(share * N)
    return lambda random: np.repeat([low, high], [private, N - private])


def papers(random):
    """[J] V: 54 % conservative, 37 % moderate, the rest liberal."""
    conservative, moderate = round(0.54 * N), round(0.37 * N)
    parts = (
        random.uniform(0.01, 0.2, conservative),
        random.uniform(0.2, 1.0, moderate),
        np.ones(N - conservative - moderate),
    )
    return np.round(np.concatenate(parts), 2)


def normal(random):
    return random.normal(size=N)


def rounded(random):
    return np.clip(np.rint(random.normal(500, 200, N)), 1, 1000)


SETTINGS = {
    **{
        f"F ({a}, {b}), {f:.0%} private": (two(a, b, f), normal, NORMAL)
        for a, b in ((0.1, 1), (0.01, 10))
        for f in SHARES
    },
    "J": (papers, rounded, WHOLE),
    "close together": (lambda random: np.round(random.uniform(0.9, 1.1, N), 2), normal, NORMAL),
}


# ---- exact errors ----------------------------------------------------------------------------------------------------


class Recording:
    def __init__(self):
        self.laws = []

    def choose(self, scores, scale):
        weights = np.exp((scores - scores.max()).astype(np.float64) / scale)
        self.laws.append(weights / weights.sum())
        return 0


def laws(plan, summary):
    """The probabilities of all points, for each choice."""
    noise = Recording()
    plan.method.answer(summary, plan.calibration, plan.target, noise)
    assert all(law.size == plan.target.points for law in noise.laws)
    return noise.laws


def squared_errors(plan, summary, cells):
    """Expected squared error of the median: of the value, and in percentile points."""
    k, found = np.arange(plan.target.points, dtype=np.float64), laws(plan, summary)
    truth = np.sort(cells)[N // 2]
    people = np.bincount(cells, minlength=k.size)
    up_to = np.cumsum(people)
    off = 100 / N * np.maximum(0, np.maximum(up_to - people - N / 2, N / 2 - up_to))
    if (
        plan.mechanism == "mix"
    ):  # the average of independent points: exact moments; the ranks from 400 draws of the exact laws
        weights = plan.calibration.weights * plan.spec.people
        weights = weights[weights > 0] / weights.sum()
        means = np.array([law @ k for law in found])
        variances = np.array([law @ (k * k) for law in found]) - means**2
        value = (weights @ means - truth) ** 2 + weights**2 @ variances
        random = np.random.default_rng(int(cells.sum()))
        points = sum(
            w * np.searchsorted(np.cumsum(law), random.random(400))
            for w, law in zip(weights, found, strict=True)
        )
        percentile = (off[np.clip(np.rint(points).astype(int), 0, k.size - 1)] ** 2).mean()
    else:
        (law,) = found
        value, percentile = law @ np.square(k - truth), law @ np.square(off)
    return value * float(plan.query.step) ** 2, percentile


@cache
def measured(name, mechanism, datasets=DATASETS):
    """Root mean squared errors (value, percentile), what was predicted, and whether the plan warned."""
    levels_of, values_of, query = SETTINGS[name]
    random = np.random.default_rng(2021)
    levels = to_micro(levels_of(random))
    spec = accord.Spec(levels, np.ones(N, dtype=np.int64))
    plan = accord.plan(spec, query, mechanism)
    errors = []
    for _ in range(datasets):
        micro, values = random.permutation(levels), values_of(random)
        cells = np.clip(np.rint((values - float(query.low)) / float(query.step)), 0, query.cells).astype(
            np.int64
        )
        entries, people = np.unique(
            np.searchsorted(spec.micro, micro) * query.points + cells, return_counts=True
        )
        summary = Summary(spec.people, query.points, entries // query.points, entries % query.points, people)
        errors.append(squared_errors(plan, summary, cells))
    value, percentile = np.sqrt(np.mean(errors, axis=0))
    return value, percentile, plan.rmse_here, ANYWHERE in plan.calibration.note


# ---- the tests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "close together" else n for n in SETTINGS]
)
def test_rank_is_better_than_pe_and_mix(name):
    """On the same people. 2 % of slack: with 10 % private at 0.01 and the others at 10, `rank` and `mix` are the same but for a hair."""
    rank = measured(name, "rank")[0]
    assert rank <= 1.02 * measured(name, "pe")[0]
    assert rank <= 1.02 * measured(name, "mix")[0]


@pytest.mark.parametrize("mechanism", ["rank", "threshold", "pe", "mix"])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_predicted_percentile_error_is_true_or_an_upper_bound(name, mechanism):
    """To within 15 %, and what chance makes of it: none to speak of for `pe`, whose noise dominates. An error twice as large would be missed with one seed of 10⁸,
    half as large with one of 10⁷."""
    _, percentile, predicted, warned = measured(name, mechanism)
    if warned:
        assert percentile <= predicted
    elif mechanism == "pe":
        assert percentile == pytest.approx(predicted, rel=0.15)
    else:
        assert 0.85 * CHANCE[0] * predicted < percentile < 1.15 * CHANCE[1] * predicted


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_a_mix_leaves_out_levels_that_may_land_anywhere(p):
    """Thirty people at 0.01 could land anywhere, and took the predicted error with them: 50 and 90 points, where less than 1 was measured. A point holds several people, so that
    the prediction is an upper bound: at most 1.75 times the truth."""
    spec = accord.Spec.from_groups({0.01: 30, 0.1: 3000, 1.0: 2000})
    query = accord.quantile("x", p, bounds=(-5, 5), step=0.01, missing="none")
    plan = accord.plan(spec, query, "mix")
    assert dict(plan.charges) == {0.01: 0.0, 0.1: 0.1, 1.0: 1.0}
    assert plan.calibration.note == (
        "2 separate answers, combined; 0.6% of the people are of levels with too few, and are not read"
    )
    measured = accord.lab.simulate("mix", query, spec, accord.lab.populations.normal(0, 1), runs=300, seed=1)
    assert measured.rmse <= plan.rmse <= 1.75 * measured.rmse
    assert measured.rmse_here <= plan.rmse_here <= 1.75 * measured.rmse_here


def test_whether_a_mix_reads_a_level_goes_by_the_rule():
    """n_j·ε_j·min(p, 1 − p) ≥ 2J·ln(K/0.01), for each level by itself; a public one has no noise."""
    query = accord.quantile("x", [0.2, 0.5], bounds=(0, 100), step=1, missing="none")
    needed = int(np.ceil(4 * np.log(101 / 0.01) / 0.2 / 0.5))
    spec = accord.Spec.from_groups({0.4: needed, 0.5: needed, 1.0: 10, np.inf: 1})
    plan = accord.plan(spec, query, "mix")
    assert dict(plan.charges) == {0.4: 0.0, 0.5: 0.5, 1.0: 0.0, np.inf: np.inf}
    with pytest.raises(
        accord.errors.PlanError, match="no level has enough people: of each, the choice may land"
    ):
        accord.plan(accord.Spec.from_groups({0.4: needed, 1.0: 10}), query, "mix")


def test_far_better_where_levels_are_far_apart():
    """[J]'s specification: about 8 against 26, which varies with the levels; [F]'s with half of the people private at 0.01: pe lands anywhere."""
    rank = measured("J", "rank")[0]
    assert CHANCE[0] * 8 < rank < CHANCE[1] * 8
    assert measured("J", "pe", datasets=60)[0] > 2 * rank
    pe, rank = (measured("F (0.01, 10), 50% private", name, datasets=60)[0] for name in ("pe", "rank"))
    assert pe > 20 * rank


def test_the_plan_sees_that_one_level_for_all_does_where_levels_are_close():
    spec = accord.Spec.of(np.round(np.random.default_rng(4).uniform(0.9, 1.1, N), 2))
    plan = accord.plan(spec, NORMAL)
    rmse = {c.mechanism: c.rmse for c in plan.candidates if c.rmse is not None}
    assert rmse["minimum"] <= 1.05 * min(rmse.values())
    assert plan.mechanism in ("threshold", "minimum") and len(set(plan.charges.values())) <= 2


@pytest.mark.parametrize("mechanism", ["rank", "threshold", "pe", "mix"])
@pytest.mark.parametrize("levels", [(0.1, 1), (0.01, 10)], ids=str)
def test_bounds_a_thousand_times_too_wide_do_not_break_the_prediction(levels, mechanism):
    """A prediction is about ranks, whatever the values are: here it must be an upper bound, since a step holds many people."""
    name = f"wide {levels}"
    SETTINGS[name] = (
        two(*levels, 0.1),
        normal,
        accord.median("x", bounds=(-5_000, 5_000), step=0.1, missing="none"),
    )
    _, percentile, predicted, _ = measured(name, mechanism, datasets=60)
    assert percentile <= 1.05 * predicted


# ---- pe on people of any number, levels, quantile and grid ------------------------------------------------------------

MANY = {
    "J": lambda random, n: np.resize(papers(random), n),
    "half at 0.1": lambda random, n: np.repeat([0.1, 1.0], [n // 2, n - n // 2]),
    "a tenth at 0.01": lambda random, n: np.repeat([0.01, 1.0], [n // 10, n - n // 10]),
    "all at 0.1": lambda random, n: np.full(n, 0.1),
    "all at 1": lambda random, n: np.full(n, 1.0),
}


@pytest.mark.parametrize("name", MANY)
def test_what_pe_predicts_is_true_where_it_does_not_warn(name):
    """At most 1.3 times the truth, and at least 0.8 times: exact probabilities, for people who lie close together, one to three a step. On coarser grids a point holds many
    people, and what lands on the right one is not off at all: no plan can know that of values, and 2.8 times was seen with two hundred a step."""
    random, asked = np.random.default_rng(12), 0
    for n, p in [(300, 0.5), (1001, 0.5), (5000, 0.5), (5000, 0.9), (20_000, 0.5), (20_000, 0.9)]:
        micro = to_micro(MANY[name](random, n))
        spec = accord.Spec(micro, np.ones(n, dtype=np.int64))
        query = accord.quantile("x", p, bounds=(0, 1), step=1 / 16_384, missing="none")
        plan = accord.plan(spec, query, "pe")
        if ANYWHERE in plan.calibration.note:
            continue
        asked, squares = asked + 1, []
        for _ in range(12):
            cells = np.sort(random.integers(0, query.points, n))
            level = np.searchsorted(spec.micro, random.permutation(micro))
            scores = quantile_scores(
                spec.micro, cells, level, np.ones(n, dtype=np.int64), query.ps[0], query.points
            )
            law = np.exp((scores - scores.max()) / 2e6)
            people = np.bincount(cells, minlength=query.points)
            up_to = np.cumsum(people)
            off = 100 / n * np.maximum(0, np.maximum(up_to - people - p * n, p * n - up_to))
            squares.append(law @ off**2 / law.sum())
        assert 0.8 < plan.rmse_here / np.sqrt(np.mean(squares)) < 1.3, (n, p)
    assert asked


# ---- min and max -----------------------------------------------------------------------------------------------------


def extremes(seed=3):
    """Questions about the ends of people of up to six levels, some of them public."""
    random = np.random.default_rng(seed)
    for k in range(40):
        levels = np.round(np.exp(random.uniform(-4, 2, random.integers(2, 7))), 3)
        people = {float(level): int(np.exp(random.uniform(1, 9))) for level in levels}
        people |= {np.inf: int(random.integers(1, 50))} if k % 3 == 0 else {}
        ask = (accord.min, accord.max)[k % 2]
        query = ask(
            "x", bounds=(0, 1), step=2.0 ** -random.integers(2, 15), missing=("none", "exclude")[k % 4 // 2]
        )
        yield accord.Spec.from_groups(people), query, ("replace", "add-remove")[k % 5 == 0]


def test_a_threshold_for_min_and_max_has_the_lowest_error_that_is_predicted_for_any_level():
    """It went by the error of a mean, and was up to ten times as far off as another t."""
    for spec, query, neighbors in extremes():
        plan = accord.plan(spec, query, "threshold", neighbors=neighbors)
        every = [accord.plan(spec, query, "threshold", t=t, neighbors=neighbors).rmse for t in spec.levels]
        assert plan.rmse <= min(every) * (1 + 1e-6)


def test_a_better_threshold_is_better_in_truth():
    """Forty public people tell more about the largest value than 900 at 0.1: 3.6 percentile points were predicted, and 27 for t = 0.1, which it was."""
    spec = accord.Spec.from_groups({0.1: 900, np.inf: 40})
    query = accord.max("x", bounds=(-6, 6), step=12 / 4096, missing="none")
    assert dict(accord.plan(spec, query, "threshold").charges) == {0.1: 0.0, np.inf: np.inf}
    best, other = (
        accord.lab.simulate("threshold", query, spec, accord.lab.populations.normal(0, 1), 200, seed=1, t=t)
        for t in ("best", 0.1)
    )
    assert best.predicted == pytest.approx(3.607, abs=0.001) and other.predicted == pytest.approx(
        27.39, abs=0.01
    )
    assert 4 * best.rmse < other.rmse and best.rmse < best.predicted
