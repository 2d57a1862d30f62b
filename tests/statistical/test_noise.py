"""The noise is the exact discrete Laplace law. Every sampled test has a false-alarm rate of 1e-9 and shows its power.

A chi-square test over cells that are cut at fixed quantiles of the exact law. With 400,000 draws, noise whose scale is 2 % off
has a noncentrality of at least 135 at every scale here, so that at most one seed in 100,000 would miss it. The draws are
seeded (tests/conftest.py); OpenDP's are not, but what is expected of those fails less than once in 10⁹ runs.
"""

import ast
import inspect
from fractions import Fraction
from functools import cache
from math import exp, inf, log, prod

import numpy as np
import opendp.prelude as dp
import pytest
from noises import SEEDED
from scipy import stats

from accord import noise

ALPHA = 1e-9
DRAWS = 400_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(50), Fraction(10**6 * 2**20)]
TOGETHER = [  # in one process, so that draws are made once
    pytest.param(scale, id=str(scale), marks=pytest.mark.xdist_group(f"noise of scale {scale}"))
    for scale in SCALES
]
by_scale = pytest.mark.parametrize("scale", TOGETHER)


# ---- the exact law, and the test -------------------------------------------------------------------------------------


def at_most(k, scale):
    """P(X ≤ k) where P(X = x) ∝ exp(−|x|/scale)."""
    norm = 1 + exp(-1 / scale)
    return exp(k / scale) / norm if k < 0 else 1 - exp(-(k + 1) / scale) / norm


def cuts(scale):
    """Where cells end: the law's own quantiles, so that no cell is nearly empty."""
    return sorted({_quantile(p, scale) for p in (0.01, 0.04, 0.12, 0.27, 0.5, 0.73, 0.88, 0.96, 0.99)})


def _quantile(p, scale):
    """About where at_most(k) = p; any integer near it does as well."""
    return round(float(scale) * (log(2 * p) if p < 0.5 else -log(2 * (1 - p))))


def in_cells(draws, ends):
    """How many draws lie in (−∞, e₀], (e₀, e₁], …, (e_last, ∞)."""
    return np.bincount(np.searchsorted(ends, draws), minlength=len(ends) + 1)


def follows(draws, scale):
    """Whether draws pass as discrete Laplace of this scale."""
    ends = cuts(scale)
    below = np.array([0.0, *(at_most(k, scale) for k in ends), 1.0])
    return stats.chisquare(in_cells(draws, ends), np.diff(below) * len(draws)).pvalue >= ALPHA


def alike(draws, others, scale):
    """Whether two samples pass as one law."""
    table = np.array([in_cells(draws, cuts(scale)), in_cells(others, cuts(scale))])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue >= ALPHA


@cache
def drawn(scale):
    """Draws of the secure noise, the same for all tests."""
    SEEDED.seed(f"noise of scale {scale}")
    return np.array([noise.SECURE.laplace(scale) for _ in range(DRAWS)])


# ---- against the law -------------------------------------------------------------------------------------------------


@by_scale
def test_the_noise_follows_its_law_and_no_other(scale):
    """Power: the same draws, 2 % off from what is claimed, are rejected on either side."""
    draws = drawn(scale)
    assert follows(draws, scale)
    assert not follows(draws, scale / Fraction(102, 100))
    assert not follows(draws, scale * Fraction(102, 100))


@by_scale
def test_the_noise_is_symmetric(scale):
    """Power: of a biased sign, by which one negative draw in ten becomes positive."""
    draws = drawn(scale)
    draws = draws[draws != 0]
    positive, biased = int((draws > 0).sum()), int(((draws > 0) | (np.arange(draws.size) % 10 == 0)).sum())
    assert stats.binomtest(positive, draws.size).pvalue >= ALPHA
    assert stats.binomtest(biased, draws.size).pvalue < ALPHA


@pytest.mark.parametrize("scale", TOGETHER[:4])
def test_zero_is_not_drawn_twice_as_often(scale):
    """P(0) = (1 − q)/(1 + q), q = exp(−1/scale). Power: keeping −0, the classical mistake, would give 1 − q."""
    zeros, q = int((drawn(scale) == 0).sum()), exp(-1 / scale)
    assert stats.binomtest(zeros, DRAWS, (1 - q) / (1 + q)).pvalue >= ALPHA
    assert stats.binomtest(zeros, DRAWS, 1 - q).pvalue < ALPHA


@by_scale
def test_the_tail_goes_on(scale):
    """Nine scales out, where about fifty draws lie. Power: noise that ends there, which would give somebody away, is rejected."""
    far = int(9 * scale)
    expected = 2 * at_most(-far, scale)
    assert stats.binomtest(int((abs(drawn(scale)) >= far).sum()), DRAWS, expected).pvalue >= ALPHA
    assert stats.binomtest(0, DRAWS, expected).pvalue < ALPHA


def test_the_last_digits_are_noisy_too():
    """At a large scale the remainders are uniform. Power: noise on a grid of 2 has no odd draws."""
    draws = drawn(SCALES[-1])
    assert stats.chisquare(np.bincount(draws % 16, minlength=16)).pvalue >= ALPHA
    assert stats.chisquare(np.bincount(draws // 2 * 2 % 16, minlength=16)).pvalue < ALPHA


def test_draws_are_independent():
    """Neighboring draws fall into cells independently of each other. Power: a draw that is sometimes repeated is noticed."""
    draws, ends = drawn(Fraction(50)), cuts(Fraction(50))

    def independent(x):
        cells = np.searchsorted(ends, x)
        pairs = np.bincount(cells[:-1:2] * 10 + cells[1::2], minlength=100).reshape(10, 10)
        return stats.chi2_contingency(pairs).pvalue >= ALPHA

    repeated = draws.copy()
    repeated[1::40] = repeated[::40]
    assert independent(draws)
    assert not independent(repeated)


# ---- against an independent sampler ----------------------------------------------------------------------------------


def opendp_draws(scale, size):
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * size))


@pytest.fixture(scope="module", autouse=True)
def features():
    dp.enable_features("contrib")


@by_scale
def test_opendp_draws_the_same(scale):
    assert alike(drawn(scale), opendp_draws(scale, DRAWS // 4), scale)


def test_opendp_at_another_scale_differs():
    """The power of the comparison, at 6 %: its noncentrality is 264."""
    scale = Fraction(7, 2)
    assert not alike(drawn(scale), opendp_draws(scale * Fraction(106, 100), DRAWS // 4), scale)


# ---- without sampling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 1), (1, 2), (2, 3), (1, 10**30), (10**30 - 1, 10**30)])
def test_the_coin_is_exact(monkeypatch, a, b):
    """All ways that the coin can fall, each with its exact probability, add up to exp(−a/b)."""
    shown = Fraction(0)
    for heads in range(25):
        way = []

        def below(n, way=way, heads=heads):
            low = len(way) < heads
            way.append(Fraction(a, n) if low else 1 - Fraction(a, n))
            return 0 if low else n - 1

        monkeypatch.setattr(noise.secrets, "randbelow", below)
        if noise.exp_coin(a, b) and len(way) == heads + 1:
            shown += prod(way)
    assert float(shown) == pytest.approx(exp(-a / b), rel=1e-15)


@pytest.mark.parametrize(
    ("asked", "draw"),
    [
        # ⌊(u + t·v)/s⌋ at the scale t/s = 7/2, with a sign
        ("u=5 keep=1 more=0 sign=0", 2),
        ("u=5 keep=1 more=0 sign=1", -2),
        ("u=3 keep=1 more=1 more=1 more=0 sign=0", 8),
        ("u=3 keep=1 more=1 more=1 more=0 sign=1", -8),
        # u is drawn again where its coin says so, before anything else is
        ("u=6 keep=0 u=5 keep=0 u=4 keep=1 more=0 sign=0", 2),
        # 0 is kept with one sign and drawn again with the other, all of it
        ("u=1 keep=1 more=0 sign=0", 0),
        ("u=1 keep=1 more=0 sign=1 u=2 keep=1 more=0 sign=1", -1),
    ],
)
def test_a_draw_is_made_of_its_parts(monkeypatch, asked, draw):
    """What is asked of uniform numbers and coins, in this order, and nothing else: 2. to 4. of the module's argument."""
    parts = [part.split("=") for part in asked.split()]

    def answer(name):
        expected, value = parts.pop(0)
        assert name == expected
        return int(value)

    def below(n):
        assert n == 7
        below.u = answer("u")
        return below.u

    def coin(a, b):
        if (a, b) == (1, 1):
            return bool(answer("more"))
        assert (a, b) == (below.u, 7)
        return bool(answer("keep"))

    def bits(n):
        assert n == 1
        return answer("sign")

    monkeypatch.setattr(noise.secrets, "randbelow", below)
    monkeypatch.setattr(noise.secrets, "randbits", bits)
    monkeypatch.setattr(noise, "exp_coin", coin)
    assert noise.SECURE.laplace(Fraction(7, 2)) == draw
    assert parts == []


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(-1, 10**9), 0, -3])
def test_a_scale_is_positive(scale):
    with pytest.raises(ValueError, match=r"^the scale of a Laplace noise is positive$"):
        noise.SECURE.laplace(scale)


@pytest.mark.parametrize("scale", [1.0, inf])
def test_a_scale_is_no_float(scale):
    with pytest.raises((AttributeError, TypeError)):
        noise.SECURE.laplace(scale)


@pytest.mark.parametrize("scale", [Fraction(1, 10**30), Fraction(10**400, 7), Fraction(10**30 + 1, 10**30)])
def test_scales_of_any_size_give_integers(scale):
    draw = noise.SECURE.laplace(scale)
    assert type(draw) is int
    assert abs(draw) <= 200 * scale  # misses once in e²⁰⁰


def test_the_noise_cannot_be_seeded():
    assert list(inspect.signature(noise.SECURE.laplace).parameters) == ["scale"]
    assert not inspect.signature(type(noise.SECURE)).parameters
    assert not hasattr(noise.SECURE, "__dict__")


def test_the_noise_knows_no_other_randomness():
    nodes = list(ast.walk(ast.parse(inspect.getsource(noise))))
    imports = {
        name.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for name in node.names
    }
    imports |= {str(node.module).split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "secrets" in imports
    assert not imports & {"random", "os", "uuid", "scipy"}
