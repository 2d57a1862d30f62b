"""Figures 1 and 2 of [Z], Cyffers, Ziani 2026, "Limits of personalizing differential privacy budgets".

Formulas, no simulation.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import numpy as np

from accord.lab.papers.experiment import Claim, Context, Experiment, Panel, Point, Points, is_true
from accord.spec import Spec
from accord.theory import FloatArray, gain

_N2 = 1000
_NS = tuple(float(round(x)) for x in np.geomspace(10, 1e6, 81))
_SIDE = 61


def _gains(
    epsilon1: float, _runs: int, _rng: np.random.Generator, _: Context, epsilon2: float
) -> list[Point]:
    return [
        Point("gain", n1, gain(Spec.from_groups({epsilon1: int(n1), epsilon2: _N2})), y=epsilon1)
        for n1 in _NS
    ]


def _theorem3(m: int) -> float:
    """The gain of [Z]'s family ε_i = 2^(1−i), n_i = 2^(i−1)."""
    return gain(Spec.from_groups({2.0 ** (1 - i): 2 ** (i - 1) for i in range(1, m + 1)}))


def _claims(points: Points, bound: float, theorem: str, others: tuple[Claim, ...]) -> list[Claim]:
    gains = np.array([p.value for p in points.all])
    least, largest = float(gains.min()), float(gains.max())
    wide = float((gains > 1 + (largest - 1) / 2).mean())
    half = "gain above half of its largest excess"
    return [
        is_true("gain, at most", "everywhere", f"at most {bound:g} ({theorem})", largest, largest <= bound),
        is_true("gain, at least", "everywhere", "never below 1", least, least >= 1 - 1e-9),
        is_true("share of settings", half, "a narrow region", wide, wide < 0.15),
        *others,
    ]


def _draw(figure: Any, experiment: Experiment, points: Points) -> None:
    """The heat map with contours, and cuts through it both ways, as in the paper."""
    ns, epsilons = np.unique([p.x for p in points.all]), np.unique([p.y for p in points.all])
    at = {(p.x, p.y): p.value for p in points.all}
    gains = np.array([[at[n, e] for n in ns] for e in epsilons])
    heat, across, down = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    mesh = heat.pcolormesh(ns, epsilons, gains, cmap="cividis", shading="nearest", rasterized=True)
    heat.contour(ns, epsilons, gains, levels=[1.01], colors="white", linewidths=0.8)
    heat.set(xscale="log", yscale="log", xlabel="n₁", ylabel="ε₁")
    figure.colorbar(mesh, ax=heat, label="MSE_thr / MSE_aff")
    _draw_cuts(across, ns, "n₁", epsilons, "ε₁", gains)
    _draw_cuts(down, epsilons, "ε₁", ns, "n₁", gains.T)
    for axes, letter in zip((heat, across, down), "abc", strict=True):
        axes.set_title(f"({letter})", fontsize=10, loc="left")


def _draw_cuts(
    axes: Any, x: FloatArray, symbol: str, fixed: FloatArray, fixed_symbol: str, gains: FloatArray
) -> None:
    """Up to four rows of gains, among those where the gain is large, each by x for a fixed other number."""
    largest = gains.max(axis=1)
    high = np.flatnonzero(largest > 1 + 0.5 * (largest.max() - 1))
    rows = high[np.linspace(0, high.size - 1, min(4, high.size)).astype(int)]
    for style, row in zip(("-", "--", "-.", ":"), rows, strict=False):
        axes.plot(x, gains[row], style, color="black", label=f"{fixed_symbol} = {fixed[row]:.2g}")
    axes.set(xscale="log", xlabel=symbol, ylabel="MSE_thr / MSE_aff")
    axes.legend(fontsize=7, frameon=False)


def _experiment(
    key: str,
    title: str,
    epsilon2: float,
    epsilons: Any,
    bound: float,
    theorem: str,
    others: tuple[Claim, ...],
) -> Experiment:
    second = "public ones" if epsilon2 == inf else f"at ε₂ = {epsilon2:g}"
    return Experiment(
        id=key,
        title=title,
        paper=f"[Z] Figure {key[-1]}",
        setting=f"n₁ people at ε₁ and n₂ = {_N2} {second}",
        runs=1,
        quick=1,
        settings=tuple(float(e) for e in epsilons),
        measure=partial(_gains, epsilon2=epsilon2),
        claims=partial(_claims, bound=bound, theorem=theorem, others=others),
        panels=(Panel("", "", "n₁", "gain", "n₁"),),
        draw=_draw,
    )


_near = gain(Spec.from_groups({0.001: 10_000, inf: 12}))
_example = gain(Spec.of([0.5, 1.0]))
_least = min(_theorem3(m) / (m * m / 5) for m in range(2, 15))

ALL = (
    _experiment(
        "Z-fig1",
        "Best affine over best threshold: public and private people",
        inf,
        np.geomspace(1e-4, 1, _SIDE),
        2.0,
        "Theorem 1",
        (is_true("gain", "ε₁ = 0.001, n₁ = 10⁴, n₂ = 12", "close to 1.95", _near, abs(_near - 1.95) < 0.02),),
    ),
    _experiment(
        "Z-fig2",
        "Best affine over best threshold: two finite levels",
        0.03,
        np.geomspace(1e-4, 0.029, _SIDE),
        4.0,
        "Theorem 2",
        (
            is_true(
                "gain",
                "ε = (½, 1)",
                "17/8 over 37/36, above 2",
                _example,
                abs(_example - 17 / 8 * 36 / 37) < 1e-9,
            ),
            is_true(
                "gain / (m²/5), at least",
                "ε_i = 2^(1−i), n_i = 2^(i−1), m = 2 … 14",
                "at least m²/5 (Theorem 3)",
                _least,
                _least >= 1,
            ),
        ),
    ),
)
