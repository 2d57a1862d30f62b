"""What the audit reckons with: laws, bounds, and a noise that is taken apart."""

from fractions import Fraction
from itertools import product
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from accord.lab.audit import source
from accord.lab.audit.empirical import apart, highest, log_ratio, lowest, numbers
from accord.lab.audit.laws import SURE, Added, Chosen, Law, Leak, Tap, Words, frozen, law, loss

# ---- laws --------------------------------------------------------------------------------------------------------------


def density(one, at):
    """The probability of an outcome up to a constant, by its definition."""
    total = 0.0
    for weight, draws in zip(one.weights, one.parts, strict=True):
        each = weight
        for draw, z in zip(draws, at, strict=True):
            if isinstance(draw, Added):
                each *= exp(-abs(z - draw.value) / draw.scale)
            else:
                each *= exp(draw.scores[z] / draw.scale) / sum(exp(s / draw.scale) for s in draw.scores)
        total += each
    return total


def by_brute_force(one, other):
    ranges = [range(-40, 41) if isinstance(d, Added) else range(len(d.scores)) for d in one.parts[0]]
    return max(abs(log(density(one, at) / density(other, at))) for at in product(*ranges))


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
    def run(tap):
        return 5 + tap.laplace(Fraction(3)), tap.choose(np.array([0, -2]), 2)

    assert loss(law(run), law(run)) == 0


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda x, tap: x, "moves beside the noise"),
        (lambda x, tap: (x + tap.laplace(Fraction(1)), x), "moves beside the noise"),
        (lambda x, tap: x + tap.laplace(Fraction(1 + x)), "depends on the data"),
        (lambda x, tap: [1 + tap.laplace(Fraction(1)) for _ in range(x)], "depends on the data"),
        (lambda x, tap: tap.choose(np.arange(2 + x), 1), "depends on the data"),
        (lambda x, tap: 0.5 + tap.laplace(Fraction(1)), "not whole"),
        (lambda x, tap: x + tap.laplace(0.5), "not a positive fraction"),
        (lambda x, tap: (lambda z: [x + z, z + x])(tap.laplace(Fraction(1))), "one draw is added to two"),
        (
            lambda x, tap: x + tap.laplace(Fraction(1)) > 5 or tap.choose(np.array([0, -x]), 1),
            "came out before",
        ),
        (lambda x, tap: [x + tap.laplace(Fraction(1)) for _ in iter(int, 1)], "without end"),
        (lambda x, tap: int(tap.keep(np.array([SURE // 2], dtype=np.uint64)).sum()), "who is kept moves"),
    ],
)
def test_a_leak_is_told(run, why):
    with pytest.raises(Leak, match=why):
        loss(law(lambda tap: run(1, tap)), law(lambda tap: run(2, tap)))


def test_who_is_kept_is_a_mixture():
    """Of one person, with a chance of a quarter: the amplified loss of the add-remove proof."""

    def run(there, tap):
        kept = int(tap.keep(np.array([SURE // 4] * there, dtype=np.uint64)).sum())
        return 3 * kept + tap.laplace(Fraction(3))

    nobody, somebody = (law(lambda tap, n=n: run(n, tap)) for n in (0, 1))
    assert len(somebody.parts) == 2 and sum(somebody.weights) == 1
    assert loss(nobody, somebody) == pytest.approx(log(1 + (exp(1) - 1) / 4))


def test_words_lie_right_beside_a_chance():
    tap = Tap(kept=[True, False], rows=[10, 10, 0, SURE])
    assert tap.words(4).tolist() == [9, 10, 0, SURE - 1]
    assert [heads for _, heads in tap.coins] == [True, False, False, True]
    assert Words([1, 2]).words(2) == [1, 2]


def test_frozen_keeps_everyone():
    made, tap = frozen(
        lambda tap: int(tap.keep(np.array([5, SURE], dtype=np.uint64)).sum()) + tap.laplace(Fraction(1))
    )
    assert made.parts[0][0].value == 2 and [c for c, _ in tap.coins] == [5, SURE]


# ---- bounds ------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.data(), st.floats(1e-9, 0.4))
def test_bounds_are_those_of_clopper_and_pearson(runs, data, alpha):
    hits = data.draw(st.integers(0, runs))
    assert lowest(hits, runs, alpha) == pytest.approx(
        beta.ppf(alpha, hits, runs - hits + 1) if hits else 0, abs=1e-9
    )
    above = beta.ppf(1 - alpha, hits + 1, runs - hits) if hits < runs else 1
    assert highest(hits, runs, alpha) == pytest.approx(above, abs=1e-9)


def test_a_sound_release_is_rarely_said_to_lose_more():
    """As rarely as is promised: at α = 0.1, of a thousand, hardly more than a hundred."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(1_000):
        here, there = rng.laplace(0, 1, 200), rng.laplace(1, 1, 200)
        alarms += apart(here.tolist(), there.tolist(), 0.1) > 1
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
    found = apart([here(rng) for _ in range(8_000)], [there(rng) for _ in range(8_000)], 1e-6)
    assert found >= least


def test_nothing_is_seen_where_nothing_is():
    rng = np.random.default_rng(3)
    assert apart(rng.normal(size=1_000).tolist(), rng.normal(size=1_000).tolist(), 1e-6) <= 0
    assert apart([1] * 500, [1] * 500, 1e-6) <= 0
    assert log_ratio(0, 10, 5, 10, 0.1) == -inf


def test_numbers_of_any_answer():
    assert numbers({"b": [1, (2.5, Fraction(1, 2))], "a": np.array([[3]])}) == [3, 1, 2.5, 0.5]
    assert numbers(True) == [1] and numbers("x") == numbers("x") != numbers("y")
    assert numbers(float("nan")) == [inf] and np.isnan(numbers(None)[0])


# ---- the noise ---------------------------------------------------------------------------------------------------------


def test_the_laplace_law_is_followed_to_the_end():
    found, rest = source.law_of(
        lambda given: source.Copy(given, lambda a, b: given.toss(exp(-int(a) / b))).laplace(1)
    )
    assert rest < 1e-6
    share = (exp(1) - 1) / (exp(1) + 1)
    assert all(found[x] == pytest.approx(share * exp(-abs(x)), abs=1e-6) for x in range(-5, 6))


def test_a_uniform_integer_decides_no_more_than_it_is_asked():
    found, rest = source.law_of(lambda given: given.randbelow(10**9) < 10**8)
    assert rest == 0 and found == {1: pytest.approx(0.1), 0: pytest.approx(0.9)}
    found, _ = source.law_of(lambda given: (given.randbits(2) + 1) % 3 == 0)
    assert found == {1: 0.25, 0: 0.75}
    found, _ = source.law_of(lambda given: [7, 8, 9][given.randbelow(3)])
    assert found == {k: pytest.approx(1 / 3) for k in (7, 8, 9)}
