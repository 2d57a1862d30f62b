"""Table II and Figure 1 of [C].

Chaudhuri, Courtade 2023, "Mean estimation under heterogeneous privacy: some privacy can be free".
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt
from typing import Any

import numpy as np

import accord
from accord.lab.papers.experiment import (
    Claim,
    Context,
    Experiment,
    Panel,
    Point,
    Points,
    all_below,
    by_slack,
    is_below,
    is_near,
    mse_point,
)
from accord.lab.papers.published import DIVIDES, keep_probabilities, sampled_mean
from accord.lab.simulation.populations import beta
from accord.lab.simulation.simulate import planned
from accord.lab.simulation.specs import log_uniform, two_groups
from accord.lab.simulation.twin import Twin, twin
from accord.spec import Spec

_NAMES = {"ADPM": "affine", "PropDPM": "proportional", "LDPE": "mix", "FME": "fallah", "UNI": "minimum"}
_WITH_STD = "affine, σ known"
_BATCH = 2**22
"""Values that are drawn at once."""


def _law(spec: Spec, mechanism: str, std: float | None = None) -> Twin:
    """The law that accord's own plan follows, for values in [−½, ½]."""
    law = twin(planned(spec, accord.mean("x", bounds=(-0.5, 0.5), std=std, missing="none"), mechanism))
    assert law is not None
    return law


def _noise(law: Twin, runs: int, rng: np.random.Generator) -> Any:
    """Of the answer, in values."""
    return law.slope * law.noise(runs, rng, at_once=1000)


def _batches(runs: int, people: int) -> Iterator[int]:
    """How many runs are drawn at once, until all are."""
    most = max(1, _BATCH // people)
    for start in range(0, runs, most):
        yield min(most, runs - start)


# ---- Table II ----------------------------------------------------------------------------------------------

_TABLE2 = {
    "ADPM": (-9.3, -8.1),
    "PropDPM": (-9.0, -8.1),
    "LDPE": (-7.2, -1.3),
    "SM": (-6.5, -7.9),
    "FME": (-6.2, -6.2),
    "UNI": (-5.1, -7.1),
}
_DRAWS = 50
_RANGES = {0.0: (-4.0, 2.0), 1.0: (-3.0, -2.0)}
_CASES = {0.0: "High Var(ε)", 1.0: "Low Var(ε)"}
_BETA = beta(2, 3, -0.5, 0.5)


def _table2(setting: tuple[float, int], runs: int, rng: np.random.Generator, _: Context) -> list[Point]:
    case, draw = setting
    levels = np.sort(log_uniform(1000, *_RANGES[case]).draw(rng))
    spec = Spec.of(levels)
    laws = {name: _law(spec, mechanism) for name, mechanism in _NAMES.items()}
    laws[_WITH_STD] = _law(spec, "affine", std=0.2)
    weights = np.column_stack([np.repeat(law.weights, spec.people) for law in laws.values()])
    pi = keep_probabilities(levels, float(levels[-1]))
    squares = dict.fromkeys((*laws, "SM"), 0.0)
    mean = _BETA.mean(-0.5, 0.5)
    for size in _batches(runs, 1000):
        x = _BETA.draw(rng, (size, 1000))
        means = x @ weights
        for k, (name, law) in enumerate(laws.items()):
            squares[name] += float(((means[:, k] + _noise(law, size, rng) - mean) ** 2).sum())
        kept = rng.random((size, 1000)) < pi
        sampled = sampled_mean((x * kept).sum(axis=1), kept.sum(axis=1), float(levels[-1]), 1.0, rng)
        squares["SM"] += float(((sampled - mean) ** 2).sum())
    return [Point(name, case, log(total / runs), panel=str(draw)) for name, total in squares.items()]


def _gather(points: Points) -> Points:
    """ln MSE, averaged over the draws of ε."""
    averages = []
    for name in dict.fromkeys(p.method for p in points.all):
        for case in _CASES:
            values = np.array([p.value for p in points.all if p.method == name and p.x == case])
            error = float(values.std(ddof=1)) / sqrt(values.size)
            averages.append(Point(name, case, float(values.mean()), error))
    return Points(averages)


def _claims_table2(points: Points) -> list[Claim]:
    return [
        is_near(points.at(name, case), _CASES[case], _TABLE2[name][int(case)], 0.15)
        for case in _CASES
        for name in _TABLE2
    ]


def _draw_table2(figure: Any, experiment: Experiment, points: Points) -> None:
    """A dot for what came out, a ring for the paper's."""
    for axes, (case, title) in zip(figure.subplots(1, 2, sharey=True), _CASES.items(), strict=True):
        names = [*_TABLE2, _WITH_STD][::-1]
        for y, name in enumerate(names):
            x = points.at(name, case).value
            marker, colour = ("D", "#D55E00") if name in experiment.ours else ("o", "#0072B2")
            axes.plot(x, y, marker, color=colour, markersize=7)
            above = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
            axes.annotate(f"{x:.2f}", (x, y), fontsize=8, **above)
            if name in _TABLE2:
                axes.plot(_TABLE2[name][int(case)], y, "o", fillstyle="none", color="black", markersize=13)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.7, len(names) - 0.2)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("ln MSE (ring: the paper's)")


TABLE2 = Experiment(
    id="C-table2",
    title="Comparison of MSE for high and low variance in ε",
    paper="[C] Table II",
    setting="n = 1000 people with ln ε uniform on [−4, 2] (high) or [−3, −2] (low), "
    f"averaged over {_DRAWS} draws of ε; values Beta(2, 3) − ½",
    runs=20_000,
    quick=500,
    settings=tuple((case, draw) for draw in range(_DRAWS) for case in _CASES),
    measure=_table2,
    claims=_claims_table2,
    panels=(Panel("", "", "", "ln MSE", "case"),),
    warnings=(DIVIDES,),
    notes=(
        "FME is reconstructed from this table: its theorem is in a paper that was not at hand.",
        "The paper has one draw of ε; a draw moves UNI's cell by about 0.2.",
    ),
    ours=frozenset({_WITH_STD}),
    draw=_draw_table2,
    gather=_gather,
)


# ---- Figure 1 ----------------------------------------------------------------------------------------------


def _two_weights(law: Twin) -> tuple[float, float]:
    """Of one person of each of the two groups, also where their levels are one."""
    return float(law.weights[0]), float(law.weights[-1])


def _fig1a(n: int, runs: int, rng: np.random.Generator, _: Context) -> list[Point]:
    spec, half = two_groups(n, 0.5, 0.1, 0.15), n // 2
    laws = {name: _law(spec, _NAMES[name]) for name in ("ADPM", "LDPE", "UNI")}
    laws[_WITH_STD] = _law(spec, "affine", std=1 / sqrt(12))
    errors: dict[str, list[Any]] = {name: [] for name in (*laws, "SM")}
    pi = float(keep_probabilities(np.array([0.1]), 0.15)[0])
    for size in _batches(runs, n):
        x = rng.random((size, n), dtype=np.float32) - np.float32(0.5)
        first, second = x[:, :half].sum(axis=1, dtype=np.float64), x[:, half:].sum(axis=1, dtype=np.float64)
        for name, law in laws.items():
            w1, w2 = _two_weights(law)
            errors[name].append(w1 * first + w2 * second + _noise(law, size, rng))
        mask = rng.random((size, half), dtype=np.float32) < pi
        kept = (x[:, :half] * mask).sum(axis=1, dtype=np.float64)
        errors["SM"].append(sampled_mean(kept + second, mask.sum(axis=1) + (n - half), 0.15, 1.0, rng))
    points = [mse_point(name, n, np.concatenate(parts)) for name, parts in errors.items()]
    return [Point(p.method, p.x, (p.value - 1 / (12 * n)) * n**2, p.error * n**2) for p in points]


def _claims_fig1a(points: Points) -> list[Claim]:
    at, first, last = points.at, points.xs()[0], points.xs()[-1]
    near = "SM is close to ADPM when n is small"
    ends = f"n = {first:g} / n = {last:g}"
    return [
        all_below(points, "ADPM", "UNI", "every n", "ADPM is lower"),
        all_below(points, "ADPM", "LDPE", "every n", "LDPE performs worse than ADPM"),
        all_below(points, "UNI", "LDPE", "every n", "LDPE performs worse than UNI"),
        is_below(at("SM", first), at("ADPM", first), f"n = {first:g}", near, factor=1.1),
        is_below(at("ADPM", last), at("SM", last), f"n = {last:g}", "SM decays slower"),
        is_below(at("SM", first), at("SM", last), ends, "upward trend of SM"),
    ]


_NS = (100, 200, 500, 1000, 2000, 5000)
FIG1A = Experiment(
    id="C-fig1a",
    title="(MSE − 1/12n)·n² against n",
    paper="[C] Fig. 1(A)",
    setting="ε = (0.1, 0.15), half of the people each; values uniform on [−½, ½]",
    runs=200_000,
    quick=40_000,
    settings=_NS,
    measure=_fig1a,
    claims=_claims_fig1a,
    panels=(Panel("", "", "n", "(MSE − 1/12n)·n²", "n", log_x=True),),
    warnings=(DIVIDES,),
    notes=("Which n the paper's axis has is not told in its text.",),
    ours=frozenset({_WITH_STD}),
)

_SATURATION = 0.1 * accord.theory.two_groups(700, 0.1, 300, 1.0).R


def _fig1b(epsilon2: float, runs: int, rng: np.random.Generator, _: Context) -> list[Point]:
    spec = two_groups(1000, 0.7, 0.1, epsilon2)
    first, second = rng.binomial(700, 0.5, runs) - 350.0, rng.binomial(300, 0.5, runs) - 150.0
    points = []
    for name in ("ADPM", "PropDPM", "LDPE", "UNI"):
        law = _law(spec, _NAMES[name])
        w1, w2 = _two_weights(law)
        points.append(mse_point(name, epsilon2, 100 * (w1 * first + w2 * second + _noise(law, runs, rng))))
    kept = rng.binomial(700, float(keep_probabilities(np.array([0.1]), epsilon2)[0]), runs)
    sums = rng.binomial(kept, 0.5) - kept / 2 + second
    points.append(mse_point("SM", epsilon2, 100 * sampled_mean(sums, kept + 300, epsilon2, 1.0, rng)))
    return points


def _claims_fig1b(points: Points) -> list[Claim]:
    at, xs = points.at, points.xs()
    after = [x for x in xs if x >= _SATURATION]
    first, last = after[0], after[-1]
    saturated = at("ADPM", first)
    change = max(abs(at("ADPM", x).value / saturated.value - 1) for x in after)
    error = 2 * (saturated.error / saturated.value)
    flat = "no improvement above R·ε₁"
    rise, fall = f"ε₂ = {first:.3g} / {last:g}", f"ε₂ = {last:g} / {first:.3g}"
    until = f"ε₂ = {first:.3g} / {xs[0]:g}"
    theory = accord.theory.two_groups(700, 0.1, 300, last).bound * 1e4
    ratio = Point("ADPM / Theorem 1", last, at("ADPM", last).value / theory, at("ADPM", last).error / theory)
    return [
        by_slack("ADPM", f"ε₂ ≥ {_SATURATION:.3f}", flat, change, 0.05 - change, error),
        is_below(at("PropDPM", first), at("PropDPM", last), rise, "PropDPM performs worse after it"),
        is_below(at("LDPE", last), at("LDPE", first), fall, "LDPE has no saturation"),
        *(
            is_below(at("ADPM", last), at(other, last), f"ε₂ = {last:g}", "ADPM is lower")
            for other in ("PropDPM", "LDPE", "SM", "UNI")
        ),
        is_below(saturated, at("ADPM", xs[0]), until, "ADPM improves up to R·ε₁"),
        is_near(ratio, f"ε₂ = {last:g}, against the bound of Theorem 1", 1.0, 0.05),
    ]


FIG1B = Experiment(
    id="C-fig1b",
    title="MSE against ε₂: saturation",
    paper="[C] Fig. 1(B)",
    setting="n = 1000, 70 % of the people at ε₁ = 0.1, the others at ε₂; values ±½ with probability ½ each",
    runs=200_000,
    quick=200_000,
    settings=(0.11, 0.13, 0.15, 0.18, round(_SATURATION, 6), 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    measure=_fig1b,
    claims=_claims_fig1b,
    panels=(Panel("", "", "ε₂", "MSE × 10⁴", "ε₂", vertical_lines=((_SATURATION, "R·ε₁"),)),),
    warnings=(DIVIDES,),
    notes=("Which ε₂ the paper's axis has is not told in its text.",),
)

ALL = (TABLE2, FIG1A, FIG1B)
