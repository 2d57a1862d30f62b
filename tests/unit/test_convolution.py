"""The law of several Laplace noises and a normal error: closed forms, and convolution on a fine grid."""

from math import exp, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.statistics import spread
from accord.statistics.convolution import half_width, tail

FAR = (1e-6, 0.01, 0.5, 1, 3, 10, 30)


@pytest.mark.parametrize("normal", [0.001, 0.1, 1, 10, 1000])
@pytest.mark.parametrize("h", FAR)
def test_one_noise_and_a_normal_error(normal, h):
    h *= sqrt(normal**2 + 2)
    expected = spread.tail(h, normal, 1.0)
    assert tail(h, normal, [1.0]) == pytest.approx(expected, rel=1e-7, abs=1e-17)


@pytest.mark.parametrize("h", FAR)
def test_equal_noises(h):
    """The difference of two, and the sum of three: e^−h(1 + h/2) and e^−h(1 + 5h/8 + h²/8)."""
    assert tail(h, 0, [1, 1]) == pytest.approx(exp(-h) * (1 + h / 2), rel=1e-8, abs=1e-17)
    assert tail(h, 0, [1, 1, 1]) == pytest.approx(exp(-h) * (1 + 5 * h / 8 + h * h / 8), rel=1e-8, abs=1e-17)


@pytest.mark.parametrize("h", FAR)
@pytest.mark.parametrize("b", [0.9999, 0.9, 0.5, 1e-3, 1e-6])
def test_two_different_noises(h, b):
    """Partial fractions: (e^−h − b²e^−h/b)/(1 − b²), but for what they lose where scales are nearly equal."""
    expected = (exp(-h) - b * b * exp(-h / b)) / (1 - b * b)
    assert tail(h, 0, [b, 1]) == pytest.approx(expected, rel=1e-8, abs=1e-14)


@pytest.mark.parametrize(
    ("normal", "scales"), [(0.7, (1.0, 2.0)), (0.0, (1.0, 1.5, 0.3)), (2.0, (0.5, 0.5, 0.5, 1.0))]
)
def test_convolution_on_a_fine_grid(normal, scales):
    """Probabilities of small cells, exact but for the cells' width of 0.01, are folded."""
    step, reach = 0.01, 50.0
    edges = np.arange(-reach - step / 2, reach + step, step)
    law = np.ones(1)
    for scale in scales:
        below = np.where(edges < 0, np.exp(edges / scale) / 2, 1 - np.exp(-edges / scale) / 2)
        law = np.fft.irfft(_transform(law, edges) * _transform(np.diff(below), edges), _length(edges))
    if normal:
        cells = np.exp(-((edges[:-1] + step / 2) ** 2) / (2 * normal**2))
        cells /= cells.sum()
        law = np.fft.irfft(_transform(law, edges) * _transform(cells, edges), _length(edges))
    folds = len(scales) + bool(normal)
    places = (np.arange(law.size) - folds * (edges.size // 2 - 1)) * step
    for h in (0.1, 1.0, 3.0, 8.0, 15.0):
        mid = law[np.abs(places) > h + step / 4].sum()  # the cell at h is cut in two
        assert tail(h + step / 2, normal, scales) == pytest.approx(mid, abs=1e-5)


def _length(edges):
    return 8 * edges.size


def _transform(cells, edges):
    return np.fft.rfft(cells, _length(edges))


@settings(max_examples=25)
@given(
    st.floats(0, 10),
    st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=5),
    st.floats(1e-9, 0.99),
    st.floats(1e-6, 1e6),
)
def test_half_widths_invert_the_tail_in_any_unit(normal, scales, alpha, unit):
    h = half_width(normal, tuple(scales), alpha)
    assert tail(h, normal, scales) == pytest.approx(alpha, rel=1e-6)
    assert half_width(unit * normal, tuple(unit * b for b in scales), alpha) == pytest.approx(
        unit * h, rel=1e-6
    )
    assert half_width(normal, (*scales, scales[0]), alpha) > h  # one noise more
    assert half_width(normal + scales[0], tuple(scales), alpha) > h


def test_many_noises_are_nearly_normal():
    assert half_width(0.0, (1.0,) * 1000, 0.05) / sqrt(2000) == pytest.approx(1.95996, abs=5e-4)


def test_what_is_certain():
    assert tail(0.0, 0.0, []) == 0
    assert tail(1.0, 0.0, []) == 0
    assert tail(-1.0, 1.0, [1.0]) == 1
    assert half_width(0.0, (), 0.05) == 0
    assert half_width(0.0, (1.0,), 0.05) == pytest.approx(-np.log(0.05))
    assert half_width(inf, (1.0, 1.0), 0.05) == inf
