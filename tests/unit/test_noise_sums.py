"""The law of a sum of Laplace noises and a normal error: by an exact formula, by the laws it has at its ends, and never too narrow."""

from math import comb, exp, sqrt

import pytest

from accord.statistics.noise_sums import chernoff, half_width_of_sum
from accord.statistics.spread import half_width, tail

ALPHAS = (0.5, 0.1, 0.05, 0.01, 1e-4, 1e-6)


def exact_tail(noises, h):
    """P(|Σ Lap(1)| > h): |Σ| is an Erlang of r stages with probability C(2K−1−r, K−1)/2^(2K−1−r)."""

    def erlang(stages):
        term = total = 1.0
        for k in range(1, stages):
            term *= h / k
            total += term
        return total * exp(-h)

    of = {r: comb(2 * noises - 1 - r, noises - 1) / 2 ** (2 * noises - 1 - r) for r in range(1, noises + 1)}
    assert sum(of.values()) == pytest.approx(1)
    return sum(chance * erlang(stages) for stages, chance in of.items())


@pytest.mark.parametrize("noises", [2, 3, 10, 50, 400])
def test_equal_noises_by_the_exact_formula(noises):
    for alpha in ALPHAS:
        h = half_width_of_sum(0.0, ((1.0, noises),), alpha)
        assert (1 - 1e-4) * alpha <= exact_tail(noises, h) <= alpha
        assert half_width_of_sum(0.0, ((3.0, noises),), alpha) == pytest.approx(3 * h, rel=1e-6)


@pytest.mark.parametrize("s", [0.0, 0.3, 1.0, 40.0])
def test_one_noise_and_a_normal_error(s):
    """Also where a second noise is so small that it hardly matters: then the series is long, or ends early."""
    for alpha in ALPHAS[:-1]:
        expected = half_width(s, 1.0, alpha)
        assert half_width_of_sum(s, ((1.0, 1),), alpha) == expected
        for small in (1e-2, 1e-4):
            h = half_width_of_sum(s, ((1.0, 1), (small, 1)), alpha)
            assert expected * (1 - 1e-9) <= h <= expected * (1 + 0.02)


def test_many_noises_are_nearly_normal_and_a_tail_beside_a_large_error_is_its_own():
    assert half_width_of_sum(0.0, ((1.0, 200_000),), 0.05) == pytest.approx(
        1.959964 * sqrt(400_000), rel=1e-5
    )
    assert half_width_of_sum(7.0, (), 0.05) == pytest.approx(7 * 1.959964, rel=1e-6)
    assert half_width_of_sum(1.0, ((1e-7, 9),), 0.05) == pytest.approx(1.959964, rel=1e-5)
    assert half_width_of_sum(0.0, ((0.0, 9),), 0.05) == 0.0


def test_very_small_chances_are_bounded():
    """Chernoff's bound holds, and is not far away."""
    for alpha in (1e-7, 1e-12, 1e-100):
        h = half_width_of_sum(0.0, ((1.0, 5),), alpha)
        assert h == chernoff(0.0, ((1.0, 5),), alpha)
        assert alpha**1.5 < exact_tail(5, h) <= alpha
    h = chernoff(2.0, ((1.0, 1),), 1e-8)
    assert 1e-12 < tail(h, 2.0, 1.0) <= 1e-8


def test_half_widths_fall_with_alpha():
    widths = [half_width_of_sum(0.5, ((1.0, 3), (0.2, 2)), alpha) for alpha in (1e-9, 1e-7, *ALPHAS[::-1])]
    assert widths == sorted(widths, reverse=True)
