"""Simulations are releases: the same integers, the same weights, the same noise, and errors that mean what they say.

Every sampled comparison has a false-alarm rate of at most ALPHA; those with the secure noise are drawn anew each time. Where a law is confirmed, a nearby
one is rejected. Comparisons of a simulation with a closed form allow five standard errors, and are seeded.
"""

from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import product
from math import exp, inf, nan, nextafter, sqrt

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from noises import Fixed
from scipy import stats
from strategies import specs

import accord
from accord.errors import AccordError, PlanError, QueryError, SpecError
from accord.lab import Drawn, Population, populations, simulate
from accord.lab import specs as lab_specs
from accord.lab.simulation import simulate as simulating
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import summarise, twin
from accord.lab.simulation.values import cells, draw_values
from accord.mechanisms import ALL
from accord.noise import SECURE
from accord.relation import REPLACE
from accord.release.answer import answer
from accord.release.release import read_summaries

ALPHA = 1e-4


def released(plan, summary, noise):
    """By the release's own seam."""
    return answer(plan, [summary], noise)[0]


WEIGHTED = ("minimum", "threshold", "proportional", "affine", "fallah")
TWINS = (*WEIGHTED, "stretch", "mix")
TWO = accord.Spec.from_groups({0.1: 70, 1.0: 30})
PUBLIC = accord.Spec.from_groups({inf: 400})
UNIT = accord.mean("x", bounds=(0, 1))


def rng(seed=0):
    return np.random.default_rng(seed)


def refusal_text(error):
    """The text of a refusal: a whole sentence, and no array or code in it."""
    text = str(error.value)
    assert len(text) > 25
    assert text[-1] in ".)"
    assert "Traceback" not in text
    return text


# ---- the seeded noise ------------------------------------------------------------------------------------------------

SCALES = [Fraction(1, 3), Fraction(1), Fraction(17, 5), Fraction(10**7), Fraction(10**15)]


def alike(first, second):
    """Whether two samples pass as one law: in cells that are cut where the pooled sample has its quantiles."""
    cuts = np.unique(
        np.quantile(np.concatenate((first, second)), np.linspace(0.04, 0.96, 12), method="lower")
    )
    table = np.array(
        [np.bincount(np.searchsorted(cuts, x), minlength=cuts.size + 1) for x in (first, second)]
    )
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue >= ALPHA


def laplaces(noise, scale, size):
    return np.array([noise.laplace(scale) for _ in range(size)], dtype=np.float64)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_seeded_laplace_is_the_secure_one(scale):
    """Power: a scale a third larger is rejected."""
    secure = laplaces(SECURE, scale, 4_000)
    assert alike(laplaces(Seeded(rng(1)), scale, 12_000), secure)
    assert not alike(laplaces(Seeded(rng(2)), scale * Fraction(4, 3), 12_000), secure)


@pytest.mark.parametrize("scale", [*SCALES[:3], Fraction(50)], ids=str)
def test_seeded_laplace_follows_the_exact_law(scale):
    """P(x) = (1 − q)/(1 + q)·q^|x|. Power: a scale 5 % larger is rejected."""
    draws, q = laplaces(Seeded(rng(3)), scale, 40_000), exp(-1 / scale)
    most = int(3 * scale) + 1

    def follows(q):
        inner = (1 - q) / (1 + q) * q ** np.abs(np.arange(-most, most + 1))
        outer = (1 - inner.sum()) / 2
        seen = [
            (draws < -most).sum(),
            *((draws == x).sum() for x in range(-most, most + 1)),
            (draws > most).sum(),
        ]
        return stats.chisquare(seen, draws.size * np.array([outer, *inner, outer])).pvalue >= ALPHA

    assert follows(q)
    assert not follows(exp(-1 / (scale * Fraction(105, 100))))


@pytest.mark.parametrize(
    "scale", [Fraction(2**20) - 1, Fraction(2**20), Fraction(10**7), Fraction(2**60, 3)], ids=str
)
def test_seeded_laplace_of_large_scales_is_the_limit(scale):
    draws = laplaces(Seeded(rng(4)), scale, 20_000) / float(scale)
    assert stats.kstest(draws, stats.laplace.cdf).pvalue >= ALPHA
    assert stats.kstest(draws * 1.1, stats.laplace.cdf).pvalue < ALPHA


def test_seeded_laplace_gives_whole_numbers():
    noise = Seeded(rng())
    for scale in (Fraction(1, 10**9), Fraction(1, 3), Fraction(5), Fraction(10**6 * 2**40), Fraction(10**60)):
        assert type(noise.laplace(scale)) is int
    assert {noise.laplace(Fraction(1, 10**6)) for _ in range(100)} == {0}


SCORES = [
    (np.array([0, -1, -2, -3, -50, -1]), 2),
    (np.array([-7_000_000, -5_000_000, -5_000_001, -9_000_000]), 2_000_000),
    (np.array([-(10**30), -(10**30) - 10**29, -(10**30) - 3 * 10**29], dtype=object), 10**29),
    (np.array([-(2**62), -(2**62) + 2**60, -(2**61)]), 2**60),
]


@pytest.mark.parametrize(("scores", "scale"), SCORES, ids=range(len(SCORES)))
def test_seeded_choice_is_the_secure_one(scores, scale):
    """Also against the law itself, ∝ exp(score/scale). Power: half the scale is rejected."""
    seeded, n = Seeded(rng(5)), scores.size
    drawn = np.bincount([seeded.choose(scores, scale) for _ in range(20_000)], minlength=n)
    secure = np.bincount([SECURE.choose(scores, scale) for _ in range(800)], minlength=n)
    gaps = np.array([float(Fraction(int(s) - int(scores.max()), scale)) for s in scores])

    def follows(gaps):
        law = np.exp(gaps) / np.exp(gaps).sum()
        some = law > 1e-4
        return stats.chisquare(drawn[some], drawn[some].sum() * law[some] / law[some].sum()).pvalue >= ALPHA

    both = np.array([drawn, secure])
    assert stats.chi2_contingency(both[:, both.sum(axis=0) > 0]).pvalue >= ALPHA
    assert follows(gaps)
    assert not follows(2 * gaps)


def test_seeded_choice_never_takes_what_is_hopeless():
    """At either end of the list, where a uniform number of 0 or nearly 1 would land."""
    seeded = Seeded(rng(6))
    assert {seeded.choose(np.array([-(10**6), 0, -(10**6)]), 1) for _ in range(3_000)} == {1}
    assert seeded.choose(np.array([-5]), 1) == 0


def test_seeded_keep_is_the_secure_one():
    chances = np.array([0, 1, 2**63 // 10, 2**62, 2**63 - 1, 2**63], dtype=np.uint64)
    runs = 6_000
    kept = {
        name: noise.keep(np.tile(chances, runs)).reshape(runs, -1).sum(axis=0)
        for name, noise in (("seeded", Seeded(rng(7))), ("secure", SECURE))
    }
    for counts in kept.values():
        assert (counts[[0, 1]] == 0).all()
        assert (counts[[4, 5]] == runs).all()
        for k in (2, 3):
            assert stats.binomtest(int(counts[k]), runs, int(chances[k]) / 2**63).pvalue >= ALPHA
            assert stats.binomtest(int(counts[k]), runs, 1.5 * int(chances[k]) / 2**63).pvalue < ALPHA
    words = Seeded(rng(8)).words(4_000)
    assert words.dtype == SECURE.words(1).dtype == np.uint64
    assert stats.kstest(words / 2**63, "uniform").pvalue >= ALPHA


# ---- the twin --------------------------------------------------------------------------------------------------------

ASKED = {
    "mean": accord.mean("x", bounds=(-3, 5), missing="none"),
    "mean with std": accord.mean("x", bounds=(-3, 5), std=0.7, missing="none"),
    "mean on a small grid": accord.mean("x", bounds=(0, 2), step=1, missing="none"),
    "mean far from zero": accord.mean("x", bounds=(10**9, 10**9 + 0.3), missing="none"),
    "mean on a fine grid": accord.mean("x", bounds=(100.1, 100.7), step=1e-10, missing="none"),
    "sum": accord.sum("x", bounds=(-3, 5), missing="none"),
    "sum from above zero": accord.sum("x", bounds=(2, 4), step=0.5, missing="none"),
    "sum far from zero": accord.sum("x", bounds=(10**9, 10**9 + 0.3), missing="none"),
    "count": accord.count(where="x <> 0"),
}
asked = st.sampled_from(sorted(ASKED)).map(ASKED.get)
shares = st.sampled_from([1.0, 0.5, 1e-3, 2e-5])


def planned(spec, query, mechanism, share=1.0):
    try:
        return accord.plan(spec, query, mechanism, share)
    except PlanError:
        return None


def last_cell(query):
    return 1 if query.statistic == "count" else query.cells


def near(query, people):
    """What doubles allow: 10⁻⁹ of the answer's own width, and its last digits."""
    width, far = (1, 1) if query.statistic == "count" else (query.width, max(abs(query.low), abs(query.high)))
    return query.under(REPLACE).factor(people) * (1e-9 * width + 1e-15 * float(far))


@settings(max_examples=60)
@example(accord.Spec.from_groups({0.001: 1, 0.01: 1}), ASKED["sum far from zero"], "stretch", 1.0, 0)
@example(accord.Spec.from_groups({0.1: 5, 1.0: 5}), ASKED["mean on a fine grid"], "affine", 1.0, 0)
@example(accord.Spec.from_groups({0.1: 5, 1.0: 5, inf: 2}), ASKED["mean far from zero"], "mix", 1.0, 0)
@given(specs, asked, st.sampled_from(TWINS), shares, st.integers(0, 2**32 - 1))
def test_without_noise_the_twin_is_the_seam(spec, query, mechanism, share, seed):
    plan = planned(spec, query, mechanism, share)
    assume(plan is not None)
    law = twin(plan)
    if law is None:  # noise of few steps is left to the seam
        assert mechanism == "mix"
        assert plan.calibration.charges.max() > 0.01 * last_cell(query)
        return
    last = last_cell(query)
    ends = rng(seed).choice([0, 1, last // 2, last], (1, spec.total))
    integers = np.concatenate((rng(seed).integers(0, last + 1, (2, spec.total)), ends))
    answers = replace(law, scales=law.scales[:0]).answers(spec.people, integers, rng())
    seam = [released(plan, summarise(plan, row), Fixed()) for row in integers]
    np.testing.assert_allclose(answers, seam, rtol=0, atol=near(query, spec.total))


@settings(max_examples=40)
@given(specs, asked, st.sampled_from(TWINS), shares)
def test_the_twin_has_the_scales_of_the_seam(spec, query, mechanism, share):
    """The scale of each noise in the answer: its own scale, times what the answer moves by where it is 1."""
    plan = planned(spec, query, mechanism, share)
    assume(plan is not None)
    law, empty = twin(plan), summarise(plan, np.zeros(spec.total, dtype=np.int64))
    assume(law is not None)
    silent, large = Fixed(), 10**24
    zero = released(plan, empty, silent)
    seam = [
        float(scale) * (released(plan, empty, Fixed(*[0] * k, large)) - zero) / large
        for k, scale in enumerate(silent.scales)
    ]
    np.testing.assert_allclose(np.sort(law.slope * law.scales), np.sort(seam), rtol=1e-6)


TINY = accord.Spec.from_groups({0.5: 2, 2.0: 3, 6.0: 1})
IN_LAW = [
    (mechanism, name, query)
    for mechanism, (name, query) in product(
        TWINS,
        {
            "mean": accord.mean("x", bounds=(-1, 2)),
            "mean on a small grid": accord.mean("x", bounds=(0, 2), step=1),
            "sum": accord.sum("x", bounds=(1, 2), step=0.5),
            "count": accord.count(where="x <> 0"),
        }.items(),
    )
    if planned(TINY, query, mechanism)
]


@pytest.mark.parametrize(
    ("mechanism", "query"), [(m, q) for m, _, q in IN_LAW], ids=[f"{m}-{n}" for m, n, _ in IN_LAW]
)
def test_with_noise_the_twin_has_the_law_of_a_release(mechanism, query):
    """By its twin, or by the seam where it has none. Power: twice the noise is rejected."""
    plan = planned(TINY, query, mechanism)
    row = rng(9).integers(0, last_cell(query) + 1, TINY.total)
    summary, law = summarise(plan, row), twin(plan)
    secure = np.array([released(plan, summary, SECURE) for _ in range(1_500)])
    if law is None:
        seeded = Seeded(rng(10))
        draws = np.array([released(plan, summary, seeded) for _ in range(6_000)])
    else:
        draws = law.answers(TINY.people, np.tile(row, (30_000, 1)), rng(10))
    middle, size = released(plan, summary, Fixed()), query.under(REPLACE).factor(TINY.total)

    def follows(draws):
        return stats.ks_2samp(np.round(draws / size, 9), np.round(secure / size, 9)).pvalue >= ALPHA

    assert follows(draws)
    assert not follows(middle + 2 * (draws - middle))


def test_on_a_coarse_grid_mix_is_as_exact_as_a_release():
    """Its noise is of whole numbers: at ε = 5, most counts are exact."""
    simulation = simulate(
        "mix",
        accord.count(where="x <> 0"),
        accord.Spec.from_groups({5: 10}),
        populations.bernoulli(0.5),
        4_000,
        1,
    )
    q = exp(-5)
    assert np.mean(np.abs(simulation.errors_here) < 1e-9) == pytest.approx((1 - q) / (1 + q), abs=0.01)
    assert simulation.rmse_here == pytest.approx(sqrt(2 * q) / (1 - q), rel=0.25)


@pytest.mark.parametrize(
    ("mechanism", "query", "neighbors"),
    [
        ("rank", accord.median("x", (0, 4), step=1), "replace"),
        ("pe", accord.median("x", (0, 4), step=1, missing="none"), "replace"),
        ("pe", accord.count(where="x <> 0"), "replace"),
        ("sample", accord.mean("x", (0, 4), step=1), "replace"),
        ("sample", accord.quantile("x", 0.3, (0, 4), step=1), "add-remove"),
        ("affine", accord.mean("x", (0, 4), step=1), "add-remove"),
    ],
    ids=["rank", "pe", "pe of a count", "sample", "sample of ranks", "affine add-remove"],
)
def test_simulated_answers_have_the_law_of_releases(mechanism, query, neighbors):
    """Through the seam, of people who all hold the same."""
    simulation = simulate(mechanism, query, TINY, populations.column([3.0]), 2_000, 11, neighbors=neighbors)
    people = accord.table(
        {"x": [3.0] * TINY.total, "e": np.repeat(TINY.levels, TINY.counts)},
        epsilon="e",
        neighbors=neighbors,
        roster=TINY if neighbors == "add-remove" else None,
    )
    decided = people.plan(query, mechanism)
    (summary,) = read_summaries(people.reader, decided, SECURE)
    secure = np.array([released(decided, summary, SECURE) for _ in range(1_000)])
    assert stats.ks_2samp(np.round(simulation.answers, 9), np.round(secure, 9)).pvalue >= ALPHA


# ---- integers --------------------------------------------------------------------------------------------------------

TABLED = {
    "mean": (accord.mean("x", bounds=(-3, 5)), "affine"),
    "mean of tenths": (accord.mean("x", bounds=(0.1, 0.7)), "minimum"),
    "mean on a small grid": (accord.mean("x", bounds=(0, 2), step=1), "affine"),
    "mean by cells": (accord.mean("x", bounds=(-3, 5), step=0.25), "sample"),
    "sum": (accord.sum("x", bounds=(2, 4), step=0.5), "affine"),
    "sum by cells": (accord.sum("x", bounds=(2, 4), step=0.1), "sample"),
    "count": (accord.count(where="x <> 0"), "affine"),
    "count by cells": (accord.count(where="x <> 0"), "sample"),
    "count of everyone": (accord.count(), "affine"),
    "count above": (accord.count(where="x > 0.1"), "minimum"),
    "count of a condition": (
        accord.count(where="NOT (x <= 0.3 OR x IN (0.7, 2, 5)) AND x IS NOT NULL"),
        "minimum",
    ),
    "count of missing": (accord.count(where="x IS NULL OR x = -3"), "minimum"),
    "histogram": (accord.histogram("x", edges=[0, 0.1, 0.7, 2]), "affine"),
    "histogram by cells": (accord.histogram("x", edges=[0, 0.1, 0.7, 2]), "sample"),
    "histogram with a cell for missing values": (
        accord.histogram("x", edges=[0, 1, 2], missing="unknown"),
        "affine",
    ),
    "quantile": (accord.quantile("x", 0.3, bounds=(-3, 5)), "rank"),
    "quantile on a small grid": (accord.quantile("x", [0.3, 0.6], bounds=(0, 2), step=0.5), "sample"),
    "min": (accord.min("x", bounds=(0.1, 0.7), step=0.1), "rank"),
    "max": (accord.max("x", bounds=(-3, 5), step=2), "rank"),
}
ends = [-3.0, 5.0, 0.0, -0.0, 0.1, 0.2, 0.3, 0.7, 1.0, 2.0, 4.0, 0.25, 0.5, 1.5, 0.15, 0.35, 0.65, 2.25, 2.75]
steps = st.integers(0, 2**21).map(lambda k: -3 + k * 2.0**-18)  # whole and half steps of (-3, 5)
values = st.one_of(
    st.sampled_from(ends + [nextafter(e, direction) for e in ends for direction in (-inf, inf)]),
    st.floats(-4, 6),
    steps,
    st.sampled_from([1e300, -1e300, 5e-324, -5e-324, 1e17, -7.5]),
)


def entries(summary):
    """{(level, output): sum}, however it is split."""
    sums = Counter()
    for key, amount in zip(
        zip(summary.level.tolist(), summary.output.tolist(), strict=True),
        summary.amount.tolist(),
        strict=True,
    ):
        sums[key] += int(amount)
    return {key: amount for key, amount in sums.items() if amount}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@settings(max_examples=10)
@given(data=st.data())
def test_the_summary_is_that_of_a_table(neighbors, data):
    groups = data.draw(st.dictionaries(st.sampled_from([0.1, 0.5, 1.0, inf]), st.integers(1, 25), min_size=1))
    spec = accord.Spec.from_groups(groups)
    x = np.array(data.draw(st.lists(values, min_size=spec.total, max_size=spec.total)))
    levels, order = np.repeat(spec.levels, spec.counts), rng(spec.total).permutation(spec.total)
    columns = {"x": [*x[order], 1.0, -9.0], "e": [*levels[order], 0.0, 0.0]}  # two opted out
    people = accord.table(
        columns, epsilon="e", neighbors=neighbors, roster=spec if neighbors == "add-remove" else None
    )
    for query, mechanism in TABLED.values():
        plan = accord.plan(spec, query, mechanism, neighbors=neighbors)
        (real,) = read_summaries(people.reader, plan, SECURE)
        here = summarise(plan, cells(query.encoding, x))
        assert here.people.tolist() == real.people.tolist() == list(spec.counts)
        assert here.outputs == real.outputs
        assert entries(here) == entries(real), query.label
        weights = np.arange(1, spec.micro.size + 1) * 7
        assert (here.at_points(weights) == real.at_points(weights)).all()


@pytest.mark.parametrize(
    "query",
    [q for q, _ in TABLED.values() if q.columns],
    ids=[n for n, (q, _) in TABLED.items() if q.columns],
)
def test_cells_take_any_shape(query):
    x = rng(1).normal(1, 2, (3, 50))
    assert (cells(query.encoding, x) == np.stack([cells(query.encoding, row) for row in x])).all()
    assert cells(query.encoding, x).dtype == np.int64


def test_sums_of_a_fine_grid_do_not_overflow():
    """2⁴⁰ cells for each of many people: a sum near 2⁶³."""
    spec = accord.Spec.from_groups({1.0: 2**13})
    plan = accord.plan(spec, accord.mean("x", (0, 1), step=2.0**-40), "affine")
    total = summarise(plan, np.full(2**13, 2**40)).weighted(np.array([1]))
    assert total == [2**13, 2**53]


# ---- errors are as predicted -----------------------------------------------------------------------------------------


def deviation(measured, predicted, errors, runs):
    """In standard errors of the root mean square."""
    squares = (errors**2).reshape(runs, -1).mean(axis=1)
    return (measured - predicted) / (squares.std(ddof=1) / sqrt(runs) / (2 * measured))


EXACT = {
    "mean": (accord.mean("x", (0, 1), std=sqrt(1 / 12), missing="none"), populations.uniform()),
    "sum": (
        accord.sum("x", (-1, 3), std=populations.normal(1, 0.5).std(-1, 3), missing="none"),
        populations.normal(1, 0.5),
    ),
    "count": (accord.count(where="x <> 0"), populations.bernoulli(0.5)),
    "histogram": (accord.histogram("x", edges=[0, 1, 2, 3, 4]), populations.uniform(0, 4)),
    "histogram of two": (accord.histogram("x", edges=[0, 1, 2], missing="none"), populations.uniform(0, 2)),
}


@pytest.mark.parametrize("mechanism", [*WEIGHTED, "mix"])
@pytest.mark.parametrize("name", EXACT)
def test_where_the_prediction_is_exact_it_is_met(mechanism, name):
    """Power: five standard errors are at most a tenth."""
    query, population = EXACT[name]
    runs = 600 if "histogram" in name else 3_000
    simulation = simulate(mechanism, query, TWO, population, runs, seed=12)
    assert abs(deviation(simulation.rmse, simulation.predicted, simulation.errors, runs)) < 5
    assert abs(deviation(simulation.rmse_here, simulation.predicted_here, simulation.errors_here, runs)) < 5
    assert (
        deviation(simulation.rmse, 1.25 * simulation.predicted, simulation.errors, runs) < -5 or runs < 1_000
    )
    assert abs(simulation.bias) < 5 * simulation.rmse / sqrt(simulation.errors.size)
    assert simulation.standard_error == pytest.approx(
        (simulation.rmse - simulation.predicted)
        / deviation(simulation.rmse, simulation.predicted, simulation.errors, runs),
        rel=1e-6,
    )


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "population",
    [
        populations.beta(2, 5),
        populations.bernoulli(0.1),
        populations.uniform(0.4, 0.6),
        populations.lognormal(-2, 1),
    ],
    ids=str,
)
def test_means_are_never_worse_than_predicted(population, neighbors):
    for mechanism in ("auto", *WEIGHTED, "mix", "sample"):
        if mechanism == "mix" and neighbors == "add-remove":
            continue
        simulation = simulate(
            mechanism,
            UNIT,
            accord.Spec.from_groups({0.2: 150, 1.0: 120, 3.0: 30}),
            population,
            200,
            13,
            neighbors=neighbors,
        )
        assert deviation(simulation.rmse, simulation.predicted, simulation.errors, 200) < 5
        assert deviation(simulation.rmse_here, simulation.predicted_here, simulation.errors_here, 200) < 5


def test_stretch_leaves_out_what_it_says():
    """Σ(1 − ε/ε_max)·E x: (70·0.9)/2 of fifty."""
    simulation = simulate(
        "stretch", accord.sum("x", (0, 1), missing="none"), TWO, populations.uniform(), 2_000, 14
    )
    assert simulation.bias == pytest.approx(-31.5, abs=5 * simulation.errors.std() / sqrt(2_000))
    assert simulation.bias_bound is None
    assert simulation.rmse < simulation.predicted


def test_a_share_weakens_it_as_levels_do():
    """Half of every level, against levels that are half: one law, and with one seed the same numbers."""
    half = simulate("affine", UNIT, TWO, populations.uniform(), 50, 3, share=0.5)
    weak = simulate(
        "affine", UNIT, accord.Spec.from_groups({0.05: 70, 0.5: 30}), populations.uniform(), 50, 3
    )
    assert half.answers.tolist() == weak.answers.tolist()
    assert half.predicted == weak.predicted


def test_everyone_public_has_no_noise():
    simulation = simulate("affine", UNIT, PUBLIC, populations.uniform(), 100, 15)
    assert np.abs(simulation.errors_here).max() <= float(UNIT.step) / 2
    assert simulation.predicted_here == 0
    assert simulation.rmse > 0


def test_the_middle_is_answered_where_nothing_beats_it():
    simulation = simulate("auto", UNIT, accord.Spec.from_groups({0.001: 3}), populations.bernoulli(0.5), 20)
    assert (simulation.answers == 0.5).all()
    assert (simulation.errors == 0).all()
    assert simulation.bias_bound is None
    several = simulate(
        "auto",
        accord.quantile("x", [0.2, 0.8], (0, 1)),
        accord.Spec.from_groups({0.001: 3}),
        populations.uniform(),
        5,
    )
    assert several.answers.shape == (5, 2)


def test_a_count_of_everyone_is_known():
    """As in a release: without a condition all people count, whatever they hold."""
    simulation = simulate("auto", accord.count(), TWO, populations.bernoulli(0.3), 5)
    assert (simulation.answers == 100).all()
    assert simulation.rmse == simulation.rmse_here == simulation.predicted == 0
    noisy = simulate("affine", accord.count(), TWO, populations.bernoulli(0.3), 400, 1)
    assert abs(noisy.bias) < 5 * noisy.rmse / 20


# ---- seeds and batches -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["affine", "mix", "sample", "auto"])
@pytest.mark.parametrize("levels", [TWO, lab_specs.jorgensen(60)], ids=["fixed", "drawn"])
def test_a_seed_is_one_simulation(mechanism, levels):
    first, again, other = (
        simulate(mechanism, UNIT, levels, populations.uniform(), 8, seed, correlation=0.3)
        for seed in (5, 5, 6)
    )
    for name in ("answers", "errors", "errors_here"):
        assert (getattr(first, name) == getattr(again, name)).all()
    assert first.row() == again.row()
    assert (first == again) in (True, False)
    assert not (first.answers == other.answers).any()
    assert np.unique(first.answers).size == 8


@pytest.mark.parametrize("people_at_once", [1, 300, 2**22])
@pytest.mark.parametrize(
    "levels",
    [TWO, lab_specs.two_groups(100, 0.5, 0.2, inf), lab_specs.log_uniform(100)],
    ids=["two", "public", "drawn"],
)
def test_batches_do_not_change_the_law(monkeypatch, people_at_once, levels):
    monkeypatch.setattr(simulating, "BATCH", people_at_once)
    runs = 500
    simulation = simulate(
        "affine",
        accord.mean("x", (0, 1), std=sqrt(1 / 12), missing="none"),
        levels,
        populations.uniform(),
        runs,
        16,
    )
    assert simulation.answers.shape == simulation.errors.shape == (runs,)
    assert abs(deviation(simulation.rmse, simulation.predicted, simulation.errors, runs)) < 5
    assert np.unique(simulation.answers).size == runs


def test_one_run_is_enough():
    simulation = simulate("affine", UNIT, TWO, populations.uniform(), 1)
    assert simulation.rmse == abs(simulation.errors[0])
    assert simulation.standard_error == 0
    assert "rmse" in repr(simulation)


# ---- levels that go with values --------------------------------------------------------------------------------------


def level_means(population, correlation, levels, runs=500):
    """Measured: the mean of each level's values, and how sure that is."""
    drawn = draw_values(population, rng(99), (runs, levels.total), correlation, rng(98))
    starts = np.cumsum(levels.people) - levels.people
    each = np.add.reduceat(drawn, starts, axis=1) / levels.people
    return each.mean(axis=0), each.std(axis=0) / sqrt(runs)


@pytest.mark.parametrize("correlation", [-1.0, -0.4, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("mechanism", ["affine", "proportional", "threshold", "sample"])
def test_the_bias_is_what_levels_make_it(mechanism, correlation):
    levels, runs = accord.Spec.from_groups({0.2: 120, 1.0: 60, 2.0: 20}), 1_000
    t = 1.0 if mechanism in ("threshold", "sample") else None
    simulation = simulate(
        mechanism, UNIT, levels, populations.uniform(), runs, 17, correlation=correlation, t=t
    )
    means, unsure = level_means(populations.uniform(), correlation, levels)
    weights = accord.plan(levels, UNIT, mechanism, t=t).calibration.weights * levels.people
    allowed = 5 * (simulation.errors.std() / sqrt(runs) + float(weights @ unsure))
    assert simulation.bias == pytest.approx(float(weights @ means) - 0.5, abs=allowed)
    assert abs(simulation.bias) <= simulation.bias_bound * (means.max() - means.min()) + allowed
    if correlation:
        assert np.sign(simulation.bias) == np.sign(correlation)
        assert abs(simulation.bias) > allowed
        assert (np.diff(means) * np.sign(correlation) > 0).all()


def test_minimum_has_no_bias_whatever_the_levels():
    simulation = simulate(
        "minimum",
        accord.mean("x", (0, 1), std=sqrt(1 / 12), missing="none"),
        TWO,
        populations.uniform(),
        2_000,
        18,
        correlation=1.0,
    )
    assert simulation.bias_bound == pytest.approx(0, abs=1e-12)
    assert abs(simulation.bias) < 5 * simulation.rmse / sqrt(2_000)
    assert abs(deviation(simulation.rmse, simulation.predicted, simulation.errors, 2_000)) < 5


@pytest.mark.parametrize("correlation", [-0.9, -0.3, 0.3, 0.9])
def test_a_correlation_is_of_normal_scores(correlation):
    drawn = draw_values(populations.lognormal(), rng(1), (300, 500), correlation, rng(3))
    places = stats.norm.ppf((np.arange(500) + 0.5) / 500)
    measured = np.mean([np.corrcoef(np.log(row), places)[0, 1] for row in drawn])
    assert measured == pytest.approx(correlation, abs=0.015)


@pytest.mark.parametrize("correlation", [-1.0, -0.5, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("population", [populations.uniform(), populations.bernoulli(0.3)], ids=str)
def test_a_correlation_moves_people_and_changes_nobody(population, correlation):
    """All the values of a run, taken together, are a draw from the population; at ±1 they are in order."""
    drawn = draw_values(population, rng(2), (200, 100), correlation, rng(4))
    assert drawn.mean() == pytest.approx(population.mean(0, 1), abs=5 * population.std(0, 1) / sqrt(20_000))
    assert drawn.mean(axis=1).std() == pytest.approx(population.std(0, 1) / 10, rel=0.3)
    if abs(correlation) == 1:
        assert (np.diff(drawn, axis=1) * correlation >= 0).all()
    if correlation == 0:
        assert abs(np.corrcoef(drawn.mean(axis=0), np.arange(100))[0, 1]) < 0.5


# ---- drawn levels ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["affine", "threshold", "mix", "auto"])
def test_levels_are_drawn_anew_in_every_run(mechanism):
    drawn, seen = [], lab_specs.jorgensen(80)

    def draw(generator):
        drawn.append(seen.draw(generator))
        return drawn[-1]

    query, runs = accord.mean("x", (0, 1), std=sqrt(1 / 12)), 100
    simulation = simulate(mechanism, query, Drawn("spied", 80, draw), populations.uniform(), runs, 19)
    assert len({tuple(np.sort(levels)) for levels in drawn}) == len(drawn) >= runs
    plans = [accord.plan(accord.Spec.of(levels), query, mechanism) for levels in drawn[-runs:]]
    assert simulation.predicted == pytest.approx(sqrt(np.mean([p.rmse**2 for p in plans])), rel=1e-12)
    assert simulation.predicted_here == pytest.approx(
        sqrt(np.mean([p.rmse_here**2 for p in plans])), rel=1e-12
    )
    if mechanism != "auto":
        assert simulation.bias_bound == max(p.bias_bound for p in plans)
        assert abs(deviation(simulation.rmse, simulation.predicted, simulation.errors, runs)) < 5
    assert simulation.people == 80


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
def test_drawn_levels_go_with_values_too(correlation):
    simulation = simulate(
        "proportional",
        UNIT,
        lab_specs.log_uniform(60, -1, 1),
        populations.uniform(),
        400,
        25,
        correlation=correlation,
    )
    sure = 5 * simulation.errors.std() / 20
    assert abs(simulation.bias) < sure if correlation == 0 else simulation.bias * np.sign(correlation) > sure
    assert abs(simulation.bias) < simulation.bias_bound


def test_levels_that_stay_are_drawn_by_spec():
    fixed = lab_specs.jorgensen(80).spec(3)
    simulation = simulate("affine", UNIT, fixed, populations.uniform(), 5)
    assert simulation.predicted == accord.plan(fixed, UNIT, "affine").rmse


@pytest.mark.parametrize("t", [0.05, "best", "max", "mean"])
def test_t_is_for_drawn_levels_too(t):
    assert simulate("sample", UNIT, lab_specs.jorgensen(40), populations.uniform(), 4, t=t).errors.shape == (
        4,
    )


@pytest.mark.parametrize(
    "draw",
    [
        lambda generator: np.concatenate((np.zeros(10), np.ones(90))),  # the same number every time
        lambda generator: (generator.random(100) > 0.5).astype(np.float64),
        lambda generator: np.full(100, 1e-9),
        lambda generator: np.ones(99),
        lambda generator: np.full(100, -1.0),
        lambda generator: np.full(100, nan),
        lambda generator: np.full(100, 1e9),
    ],
    ids=["ten zeros", "random zeros", "all below a millionth", "one too few", "negative", "NaN", "too large"],
)
def test_drawn_levels_that_cannot_be_used_are_refused(draw):
    with pytest.raises(AccordError) as refused:
        simulate("affine", UNIT, Drawn("bad", 100, draw), populations.uniform(), 5)
    refusal_text(refused)


# ---- ranks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ps", [0.5, 0.1, [0.25, 0.5, 0.9]], ids=str)
def test_errors_of_quantiles_are_percentiles(ps):
    """Against scipy: how many percent of the population, and of the people, lie between the answer and the quantile."""
    query = accord.quantile("x", ps, (-4, 4), step=2.0**-10)
    simulation = simulate(
        "rank", query, accord.Spec.from_groups({0.5: 200, 2.0: 100}), populations.normal(), 200, 20
    )
    half = 2.0**-11
    p = np.array(ps)
    below, above = stats.norm.cdf(simulation.answers - half), stats.norm.sf(simulation.answers + half)
    expected = np.where(below > p, below - p, np.where(above > 1 - p, (1 - p) - above, 0.0))
    assert (
        simulation.answers.shape == simulation.errors.shape == simulation.errors_here.shape == (200, *p.shape)
    )
    np.testing.assert_allclose(simulation.errors, 100 * expected, atol=1e-9)
    assert simulation.query.unit == "percentile points"
    assert deviation(simulation.rmse, simulation.predicted, simulation.errors, 200) < 5
    assert deviation(simulation.rmse_here, simulation.predicted_here, simulation.errors_here, 200) < 5
    assert simulation.rmse_here < simulation.rmse


def test_errors_here_are_about_these_people():
    """Everyone is public: the chosen quantile is theirs, and its error about the population is that of a sample."""
    simulation = simulate("rank", accord.median("x", (-4, 4)), PUBLIC, populations.normal(), 300, 21)
    assert np.abs(simulation.errors_here).max() <= 0.25 + 1e-9  # one of 400 people
    assert simulation.rmse == pytest.approx(100 * 0.5 / 20, rel=0.2)
    assert abs(simulation.bias) < 5 * simulation.rmse / sqrt(300)


@pytest.mark.parametrize(
    ("query", "population", "answer"),
    [
        (accord.min("x", (0, 1)), populations.normal(), 0.0),
        (accord.max("x", (-1, 0)), populations.normal(), 0.0),
        (accord.quantile("x", 0.9, (-1, 0.5)), populations.normal(), 0.5),
        (accord.quantile("x", 0.1, (-0.5, 1)), populations.normal(), -0.5),
        (accord.median("x", (0, 10), step=2), populations.column([1.0]), 2.0),
        (accord.median("x", (0, 10), step=2), populations.column([3.0]), 4.0),
        (accord.quantile("x", 0.7, (0, 10), step=2), populations.bernoulli(0.5, 1.0, 3.0), 4.0),
        (accord.min("x", (0, 10), step=2), populations.column([3.0, 5.0]), 4.0),
        (accord.max("x", (0, 10), step=2), populations.column([3.0, 5.0]), 6.0),
    ],
    ids=[
        "min",
        "max",
        "high quantile",
        "low quantile",
        "half a step",
        "next half",
        "two halves",
        "min of halves",
        "max of halves",
    ],
)
def test_an_answer_that_is_right_has_no_error(query, population, answer):
    """Values beyond the bounds count as the nearer one, and half a step goes up: of the population just as of the people."""
    simulation = simulate("rank", query, PUBLIC, population, 20, 22)
    assert simulation.answers.tolist() == [answer] * 20
    assert np.abs(simulation.errors_here).max() == 0
    assert np.abs(simulation.errors).max() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("ask", [accord.min, accord.max])
def test_errors_of_extremes(ask):
    """How many percent lie beyond the answer; all of it for an answer beyond everyone."""
    spec = accord.Spec.from_groups({0.5: 150, 2.0: 150})
    simulation = simulate("rank", ask("x", (-3, 4), step=2.0**-8), spec, populations.uniform(), 100, 23)
    side = simulation.answers if ask is accord.min else 1 - simulation.answers
    outside, inner = side < -(2.0**-9), side > 2.0**-9
    sign = 1 if ask is accord.min else -1
    assert (simulation.errors[outside] == sign * 100).all()
    np.testing.assert_allclose(
        simulation.errors[inner], sign * 100 * np.minimum(1, side[inner] - 2.0**-9), atol=1e-9
    )
    assert inner.sum() > 80
    assert deviation(simulation.rmse, simulation.predicted, simulation.errors, 100) < 5


def test_all_truths_about_a_population():
    """Sums, counts and cells of many people, against closed forms; of values with mass at a point and beyond the ends."""
    mixed = populations.column([-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 2.0, 9.0])
    for query, truth in (
        (accord.count(where="x <> 0"), 0.75),
        (accord.histogram("x", edges=[0, 1, 2]), [0.5, 0.5]),
        (accord.histogram("x", edges=[0, 1, 2, 3]), [0.5, 0.125, 0.375]),
        (accord.histogram("x", edges=[0, 1, 2], missing="unknown"), [0.5, 0.5, 0.0]),
        (accord.sum("x", (0, 2), step=0.5), 0.9375),
        (accord.count(where="x > 0 AND x < 2"), 0.25),
        (accord.count(where="NOT x IN (0, 2, 77)"), 0.5),
        (accord.count(where="x <= -1 OR x >= 9"), 0.25),
        (accord.count(where="x IS NULL"), 0.0),
        (accord.count(where="x IS NOT NULL"), 1.0),
        (accord.count(where="x < 1e17"), 1.0),
        (accord.count(where="x > -1e17 AND x <> 0.5"), 0.875),
        (accord.count(where="x < 1.5e308 AND x < 1.7e308"), 1.0),
        (accord.count(), 1.0),
    ):
        simulation = simulate("affine", query, PUBLIC, mixed, 50, 24)  # read without noise
        np.testing.assert_allclose(
            simulation.answers - simulation.errors,
            np.tile(400 * np.array(truth), (50, 1)).reshape(simulation.answers.shape),
            atol=400 * 2 / 2**16,
        )
        assert abs(simulation.bias) < 5 * simulation.errors.std() / sqrt(50) + 1e-9
        assert simulation.errors_here == pytest.approx(0, abs=1e-6)


# ---- everything runs -------------------------------------------------------------------------------------------------

EVERY = {
    "mean": accord.mean("x", (0, 1)),
    "sum": accord.sum("x", (-1, 1)),
    "count": accord.count(where="x <> 0"),
    "histogram": accord.histogram("x", edges=[0, 0.5, 1]),
    "histogram of three": accord.histogram("x", edges=[0, 0.2, 0.5, 1]),
    "median": accord.median("x", (0, 1), step=0.125),
    "quantiles": accord.quantile("x", [0.1, 0.9], (0, 1), step=0.125),
    "min": accord.min("x", (0, 1), step=0.125),
    "max": accord.max("x", (0, 1), step=0.125),
}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", ["auto", *(m.name for m in ALL if not m.needs_gap)])
def test_whatever_can_be_planned_can_be_simulated(mechanism, neighbors):
    some = [
        accord.Spec.from_groups({0.5: 20, 2.0: 30}),
        accord.Spec.from_groups({0.5: 20, 2.0: 30, inf: 5, 0: 4}),
        lab_specs.log_uniform(30),
    ]
    ran = 0
    for query, levels in product(EVERY.values(), some):
        fixed = levels if isinstance(levels, accord.Spec) else levels.spec()
        try:
            decided = accord.plan(fixed, query, mechanism, neighbors=neighbors)
        except PlanError as cannot:
            with pytest.raises(PlanError) as refused:
                simulate(mechanism, query, levels, populations.uniform(), 3, neighbors=neighbors)
            assert mechanism in refusal_text(refused)
            assert str(refused.value).split(":")[0] == str(cannot).split(":")[0]
            continue
        simulation = simulate(mechanism, query, levels, populations.uniform(), 3, neighbors=neighbors)
        ran += 1
        outputs = (
            (len(query.cells),)
            if query.statistic == "histogram"
            else (2,)
            if getattr(query, "listed", False)
            else ()
        )
        assert (
            simulation.answers.shape
            == simulation.errors.shape
            == simulation.errors_here.shape
            == (3, *outputs)
        )
        assert np.isfinite(simulation.errors).all()
        assert np.isfinite(simulation.errors_here).all()
        assert np.isfinite(
            [
                simulation.predicted,
                simulation.predicted_here,
                simulation.rmse,
                simulation.rmse_here,
                simulation.standard_error,
            ]
        ).all()
        if isinstance(levels, accord.Spec):
            assert (simulation.predicted, simulation.predicted_here, simulation.bias_bound) == (
                decided.rmse,
                decided.rmse_here,
                decided.bias_bound,
            )
        assert set(simulation.row()) >= {"mechanism", "rmse", "predicted", "people", "correlation"}
    assert ran or (neighbors == "add-remove" and mechanism in ("stretch", "mix", "pe"))


@pytest.mark.parametrize("size", [1, 2])
def test_very_few_people(size):
    for mechanism in ("minimum", "affine", "mix", "sample", "auto"):
        simulation = simulate(
            mechanism, UNIT, accord.Spec.from_groups({1.0: size}), populations.uniform(), 4, correlation=0.5
        )
        assert simulation.answers.shape == (4,)


# ---- refusals --------------------------------------------------------------------------------------------------------

GOOD = {"mechanism": "affine", "query": UNIT, "spec": TWO, "population": populations.uniform(), "runs": 2}
REFUSED = [
    ({"runs": 0}, QueryError, "at least one run"),
    ({"runs": -3}, QueryError, "at least one run"),
    ({"correlation": 1.5}, QueryError, "correlation"),
    ({"correlation": -1.01}, QueryError, "correlation"),
    ({"correlation": nan}, QueryError, "correlation"),
    ({"spec": {0.1: 3}}, SpecError, "not dict"),
    ({"spec": None}, SpecError, "not NoneType"),
    ({"spec": [0.1, 1.0]}, SpecError, "not list"),
    ({"population": np.ones(3)}, QueryError, "not ndarray"),
    ({"population": None}, QueryError, "lab.populations"),
    ({"population": populations.uniform}, QueryError, "not function"),
    ({"query": None}, QueryError, "accord.mean"),
    ({"query": "mean"}, QueryError, "accord.mean"),
    ({"query": accord.regression("y", ["x"], {"y": (0, 1), "x": (0, 1)})}, QueryError, "accord reproduce"),
    ({"query": accord.histogram("x", categories=["a", "b"])}, QueryError, "edges="),
    ({"query": accord.workload([UNIT])}, AccordError, "query"),
    ({"query": accord.count(where="x > 0 AND y > 0")}, QueryError, "one column"),
    ({"query": accord.count(where="x = 'north'")}, QueryError, "number"),
    ({"query": accord.count(where="x = TRUE")}, QueryError, "number"),
    (
        {"mechanism": "rank", "query": accord.median("d", (date(2020, 1, 1), date(2021, 1, 1)))},
        AccordError,
        "dates",
    ),
    (
        {"mechanism": "rank", "query": accord.quantile("d", [0.5], (date(2020, 1, 1), date(2021, 1, 1)))},
        AccordError,
        "dates",
    ),
    (
        {
            "mechanism": "auto",
            "query": accord.quantile("d", [0.2, 0.5], (date(2020, 1, 1), date(2021, 1, 1))),
        },
        AccordError,
        "dates",
    ),
    ({"mechanism": "afine"}, PlanError, "did you mean 'affine'"),
    ({"mechanism": None}, PlanError, "no mechanism"),
    ({"mechanism": "rank"}, PlanError, "rank cannot answer the mean of x"),
    ({"mechanism": "stretch"}, PlanError, "stretch cannot answer"),
    ({"mechanism": "proportional", "spec": PUBLIC}, PlanError, "inf"),
    ({"mechanism": "mix", "neighbors": "add-remove"}, PlanError, "replace"),
    ({"mechanism": "threshold", "t": 5.0}, PlanError, "nobody allows"),
    ({"mechanism": "threshold", "t": "max"}, PlanError, "is not a level"),
    ({"t": 1.0}, PlanError, "threshold and sample"),
    ({"share": 0}, PlanError, "share"),
    ({"share": 2}, PlanError, "share"),
    ({"share": "half"}, PlanError, "share"),
    ({"neighbors": "both"}, PlanError, "neighbors"),
    ({"spec": accord.Spec.of([])}, PlanError, "nobody"),
    ({"spec": accord.Spec.of([0.0, 0.0])}, PlanError, "opted out"),
    ({"runs": 2.5}, AccordError, "runs"),
    ({"runs": "many"}, AccordError, "runs"),
    ({"runs": None}, AccordError, "runs"),
    ({"correlation": "0.5"}, AccordError, "correlation"),
    ({"correlation": None}, AccordError, "correlation"),
    ({"seed": -1}, AccordError, "seed"),
    ({"seed": "x"}, AccordError, "seed"),
    ({"seed": 1.5}, AccordError, "seed"),
]


@pytest.mark.parametrize(("change", "kind", "words"), REFUSED, ids=[str(k) for k in range(len(REFUSED))])
def test_what_is_refused(change, kind, words):
    arguments = {**GOOD, **change}
    with pytest.raises(kind) as refused:
        simulate(**arguments)
    assert words in refusal_text(refused)


def test_an_algorithm_is_refused():
    table = accord.table({"x": [1.0], "e": [1.0]}, epsilon="e")
    query = accord.sample(lambda rows, epsilon: 1.0, table).plan.query
    with pytest.raises(QueryError, match="several columns") as refused:
        simulate("sample", query, TWO, populations.uniform())
    refusal_text(refused)


@pytest.mark.parametrize("drawn", [nan, inf, -inf])
def test_a_population_of_your_own_has_numbers(drawn):
    """Or is refused: what an engine takes as missing is not a value."""
    population = Population("mine", lambda generator, shape: np.full(shape, drawn), lambda x: np.ones_like(x))
    try:
        simulation = simulate("affine", UNIT, TWO, population, 2)
    except AccordError as refused:
        assert len(str(refused)) > 25
    else:  # a missing value counts as the middle, as in a table
        assert np.isfinite(simulation.answers).all()
        assert simulation.answers.mean() == pytest.approx(0.5, abs=2)
