"""What the audit reckons with: laws, bounds, and a noise that is taken apart."""

from fractions import Fraction
from itertools import product
from math import exp, inf, log, nan
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from accord.lab.audit import noise_decisions, noise_source
from accord.lab.audit.empirical import (
    log_ratio,
    loss_lower_bound,
    numbers,
    probability_at_least,
    probability_at_most,
)
from accord.lab.audit.exact import WorstLoss
from accord.lab.audit.recorded_draws import Added, Chosen
from accord.lab.audit.recording_noise import SURE, FixedWords, Leak, RecordingNoise
from accord.lab.audit.release_laws import Law, law, law_if_all_are_kept, loss

# ---- laws --------------------------------------------------------------------------------------------------


def density(law, at):
    """The probability of an outcome up to a constant, by its definition."""
    total = 0.0
    for weight, draws in zip(law.weights, law.branches, strict=True):
        each = weight
        for draw, z in zip(draws, at, strict=True):
            if isinstance(draw, Added):
                each *= exp(-abs(z - draw.value) / draw.scale)
            else:
                each *= exp(draw.scores[z] / draw.scale) / sum(exp(s / draw.scale) for s in draw.scores)
        total += each
    return total


def by_brute_force(here, there):
    ranges = [range(-40, 41) if isinstance(d, Added) else range(len(d.scores)) for d in here.branches[0]]
    return max(abs(log(density(here, at) / density(there, at))) for at in product(*ranges))


@st.composite
def pairs(draw):
    """Two mixtures of draws of the same shape."""
    scales = draw(st.lists(st.sampled_from([Fraction(2), Fraction(7, 3), None]), min_size=1, max_size=2))
    sizes = [draw(st.integers(1, 4)) for _ in range(2)]

    def a_draw(scale):
        if scale is None:
            return Chosen(np.array([draw(st.integers(-6, 0)) for _ in range(3)]), 2)
        return Added(draw(st.integers(-9, 9)), scale)

    def a_law(size):
        weights = [draw(st.integers(1, 9)) for _ in range(size)]
        parts = tuple(tuple(a_draw(scale) for scale in scales) for _ in range(size))
        return Law(tuple(w / sum(weights) for w in weights), parts, ())

    return tuple(a_law(size) for size in sizes)


@settings(max_examples=80)
@given(pairs())
def test_a_loss_is_the_largest_log_ratio_over_all_outputs(pair):
    assert float(loss(*pair)) == pytest.approx(by_brute_force(*pair), rel=1e-9, abs=1e-9)


def test_what_is_the_same_for_all_data_is_no_loss():
    def run(noise):
        return 5 + noise.laplace(Fraction(3)), noise.choose(np.array([0, -2]), 2)

    assert loss(law(run), law(run)) == 0


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda x, noise: x, "moves beside the noise"),
        (lambda x, noise: (x + noise.laplace(Fraction(1)), x), "moves beside the noise"),
        (lambda x, noise: x + noise.laplace(Fraction(1 + x)), "depends on the data"),
        (lambda x, noise: [1 + noise.laplace(Fraction(1)) for _ in range(x)], "depends on the data"),
        (lambda x, noise: noise.choose(np.arange(2 + x), 1), "depends on the data"),
        (lambda x, noise: 0.5 + noise.laplace(Fraction(1)), "not whole"),
        (lambda x, noise: x + noise.laplace(0.5), "not a positive fraction"),
        (lambda x, noise: (lambda z: [x + z, z + x])(noise.laplace(Fraction(1))), "one draw is added to two"),
        (
            lambda x, noise: x + noise.laplace(Fraction(1)) > 5 or noise.choose(np.array([0, -x]), 1),
            "came out before",
        ),
        (lambda x, noise: [x + noise.laplace(Fraction(1)) for _ in iter(int, 1)], "without end"),
        (lambda x, noise: int(noise.keep(np.array([SURE // 2], dtype=np.uint64)).sum()), "who is kept moves"),
    ],
)
def test_a_leak_is_told(run, why):
    with pytest.raises(Leak, match=why):
        loss(law(lambda noise: run(1, noise)), law(lambda noise: run(2, noise)))


def test_who_is_kept_is_a_mixture():
    """Of one person, with a chance of a quarter: the amplified loss of the add-remove proof."""

    def run(there, noise):
        kept = int(noise.keep(np.array([SURE // 4] * there, dtype=np.uint64)).sum())
        return 3 * kept + noise.laplace(Fraction(3))

    nobody, somebody = (law(lambda noise, n=n: run(n, noise)) for n in (0, 1))
    assert len(somebody.branches) == 2 and sum(somebody.weights) == 1
    assert loss(nobody, somebody) == pytest.approx(log(1 + (exp(1) - 1) / 4))


def test_words_lie_right_beside_a_chance():
    noise = RecordingNoise(kept=[True, False], row_chances=[10, 10, 0, SURE])
    assert noise.words(4).tolist() == [9, 10, 0, SURE - 1]
    assert [heads for _, heads in noise.coins] == [True, False, False, True]
    assert FixedWords([1, 2]).words(2) == [1, 2]


def test_one_branch_of_a_law_is_that_all_are_kept():
    def run(noise):
        return int(noise.keep(np.array([5, SURE], dtype=np.uint64)).sum()) + noise.laplace(Fraction(1))

    one_branch, noise = law_if_all_are_kept(run)
    assert one_branch.branches[0][0].value == 2 and [c for c, _ in noise.coins] == [5, SURE]


# ---- bounds ------------------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.data(), st.floats(1e-9, 0.4))
def test_bounds_are_those_of_clopper_and_pearson(runs, data, alpha):
    hits = data.draw(st.integers(0, runs))
    assert probability_at_least(hits, runs, alpha) == pytest.approx(
        beta.ppf(alpha, hits, runs - hits + 1) if hits else 0, abs=1e-9
    )
    above = beta.ppf(1 - alpha, hits + 1, runs - hits) if hits < runs else 1
    assert probability_at_most(hits, runs, alpha) == pytest.approx(above, abs=1e-9)


def test_a_sound_release_is_rarely_said_to_lose_more():
    """As rarely as is promised: at α = 0.1, of a thousand, hardly more than a hundred."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(1_000):
        here, there = rng.laplace(0, 1, 200), rng.laplace(1, 1, 200)
        alarms += loss_lower_bound(here.tolist(), there.tolist(), 0.1) > 1
    assert alarms <= 130


@pytest.mark.parametrize(
    ("here", "there", "least"),
    [
        (lambda rng: rng.laplace(), lambda rng: 1 + rng.laplace(), 0.75),
        (lambda rng: list(rng.laplace(size=2)), lambda rng: list(rng.laplace([0.5, -0.5])), 0.6),
        (lambda rng: {"a": bool(rng.random() < 0.7)}, lambda rng: {"a": bool(rng.random() < 0.3)}, 0.6),
        (
            lambda rng: "yes" if rng.random() < 0.9 else None,
            lambda rng: "yes" if rng.random() < 0.3 else None,
            0.9,
        ),
        (lambda rng: [1.0], lambda rng: [1.0, 2.0], 5.0),
        (lambda rng: float("nan"), lambda rng: 0.0, 5.0),
    ],
)
def test_what_can_be_seen_is_seen(here, there, least):
    rng = np.random.default_rng(2)
    shown = loss_lower_bound([here(rng) for _ in range(8_000)], [there(rng) for _ in range(8_000)], 1e-6)
    assert shown >= least


def test_nothing_is_seen_where_nothing_is():
    rng = np.random.default_rng(3)
    assert loss_lower_bound(rng.normal(size=1_000).tolist(), rng.normal(size=1_000).tolist(), 1e-6) <= 0
    assert loss_lower_bound([1] * 500, [1] * 500, 1e-6) <= 0
    assert log_ratio(0, 10, 5, 10, 0.1) == -inf


def test_numbers_of_any_answer():
    assert numbers({"b": [1, (2.5, Fraction(1, 2))], "a": np.array([[3]])}) == [3, 1, 2.5, 0.5]
    assert numbers(True) == [1] and numbers("x") != numbers("y") != numbers("\ud800")
    assert numbers("x") == [crc32(b"x")] == numbers(Path("x"))  # in every process, unlike Python's hash
    assert numbers(float("nan")) == [inf] and np.isnan(numbers(None)[0])


# ---- the noise ---------------------------------------------------------------------------------------------


def test_the_laplace_law_is_followed_to_the_end():
    probabilities, rest = noise_decisions.law_of(lambda source: noise_source.noise_on(source).laplace(1))
    assert rest < 1e-6
    share = (exp(1) - 1) / (exp(1) + 1)
    assert all(probabilities[x] == pytest.approx(share * exp(-abs(x)), abs=1e-6) for x in range(-5, 6))


def test_a_uniform_integer_decides_no_more_than_it_is_asked():
    probabilities, rest = noise_decisions.law_of(lambda source: source.randbelow(10**9) < 10**8)
    assert rest == 0 and probabilities == {1: pytest.approx(0.1), 0: pytest.approx(0.9)}
    probabilities, _ = noise_decisions.law_of(lambda source: (source.randbits(2) + 1) % 3 == 0)
    assert probabilities == {1: 0.25, 0: 0.75}
    probabilities, _ = noise_decisions.law_of(lambda source: [7, 8, 9][source.randbelow(3)])
    assert probabilities == {k: pytest.approx(1 / 3) for k in (7, 8, 9)}


@pytest.mark.parametrize("losses", [(nan, 0), (0, nan), (0.5, nan, 0.1), (nan, nan)])
def test_a_loss_that_is_no_number_is_not_forgotten(losses):
    worst = WorstLoss(None, "1", Fraction(1))
    for each in losses:
        worst.see(each, lambda: "evidence")
    assert worst.loss == inf and worst.ratio == inf
