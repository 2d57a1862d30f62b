"""[F] Ferrando, Gillenwater, Kulesza 2021, "Combining public and private data": Figures 1 and 2."""

from __future__ import annotations

from dataclasses import replace
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
    mean_of,
    mse_point,
    rmse_point,
)
from accord.lab.papers.published import DIVIDES, HALF, keep_probabilities, mixing_weights, sampled_mean
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.simulate import planned
from accord.lab.simulation.twin import summarise, twin
from accord.lab.simulation.values import cells
from accord.release.answer import answer
from accord.spec import Spec

_FIXED = (100, 500, 1000, 5000, 10_000)
_EPSILON = np.array([10.0, 0.05, 0.1, 0.01, 0.25, 0.15])
_STD, _RADIUS = 5.0, 50.0
_THRESHOLDS = {"min": 0.01, "optimized": 0.25, "average": 1.76, "max": 10.0}
_FORMULA = "by formula"


# ---- Figure 1: means ---------------------------------------------------------------------------------------


def _variance(method: str, x: float, answers: Any, panel: str) -> Point:
    """The variance of answers, with its standard error."""
    return mse_point(method, x, answers - answers.mean(), panel)


def best_threshold(people: Any, levels: Any) -> float:
    """The t that minimises the variance σ²/k + 2r²/(t·k)² of PDP, with k = Σπ people expected to be kept."""
    kept = {float(t): float(people @ keep_probabilities(levels, float(t))) for t in levels}
    return min(kept, key=lambda t: _STD**2 / kept[t] + 2 * _RADIUS**2 / (t * kept[t]) ** 2)


def _fig1(n: int, runs: int, rng: np.random.Generator, _: Context) -> list[Point]:
    people = np.array([n, *_FIXED])
    sums = rng.normal(0.0, _STD * np.sqrt(people), (runs, people.size))
    weights = mixing_weights(people.tolist(), _EPSILON.tolist(), _STD, _RADIUS)
    noise = rng.laplace(size=(runs, people.size)) * (_RADIUS / _EPSILON)
    weighted = ((sums + noise) / people) @ weights
    spec = Spec.from_groups(dict(zip(_EPSILON.tolist(), people.tolist(), strict=True)))
    ascending = np.argsort(_EPSILON)
    ours = {}
    for name, mechanism, r in (
        ("affine, noise for r", "affine", _RADIUS / 2),
        ("affine", "affine", _RADIUS),
        ("mix", "mix", _RADIUS),
    ):
        law = twin(planned(spec, accord.mean("x", bounds=(-r, r), std=_STD, missing="none"), mechanism))
        assert law is not None
        ours[name] = sums[:, ascending] @ law.weights + law.slope * law.noise(runs, rng)
    points = []
    for panel, t in (*_THRESHOLDS.items(), (_FORMULA, best_threshold(people, _EPSILON))):
        pi = keep_probabilities(_EPSILON, t)
        kept = rng.binomial(people, pi, (runs, people.size))
        total = rng.normal(0.0, _STD * np.sqrt(kept)).sum(axis=1)
        sampled = sampled_mean(total, kept.sum(axis=1), t, _RADIUS, rng)
        points.append(_variance("PDP", n, sampled, panel))
        points.append(_variance("weighted", n, weighted, panel))
        points += [_variance(name, n, answers, panel) for name, answers in ours.items()]
    return points


def _claims_fig1(points: Points) -> list[Claim]:
    always = "the proposed estimator's variance is always lower"
    why = (
        "by the formula a t below the paper's 0.25 is better, and there PDP, with one noise for all who are "
        "kept, is lower than a mix of six noises"
    )
    equal = "(ours) lowest at equal noise"
    return [
        *(
            all_below(points, "weighted", "PDP", f"t_{panel}, every n", always, panel)
            for panel in ("min", "average", "max")
        ),
        _is_one(points, "optimized", "t = 0.25"),
        _is_one(points, _FORMULA, "t that minimises the variance", why),
        _converges(points),
        *(
            all_below(points, "affine, noise for r", other, f"t: {panel}, every n", equal, panel, 1.02)
            for panel, other in (*((panel, "PDP") for panel in (*_THRESHOLDS, _FORMULA)), ("min", "weighted"))
        ),
    ]


def _is_one(points: Points, panel: str, threshold: str, why: str = "") -> Claim:
    """That the two variances are the same up to a tenth, where they are the least so."""
    claims = []
    for n in points.xs(panel):
        pdp, weighted = points.at("PDP", n, panel), points.at("weighted", n, panel)
        ratio = Point("PDP / weighted", n, pdp.value / weighted.value, 1.5 * pdp.error / weighted.value)
        claims.append(is_near(ratio, f"{threshold}, n = {n:g}", 1.0, 0.1, why))
    return min(claims, key=lambda claim: claim.margin)


def _converges(points: Points) -> Claim:
    """That at the largest t the variances' ratio falls to less than half."""
    first, *_, last = points.xs("max")
    before, after = (
        points.at("PDP", n, "max").value / points.at("weighted", n, "max").value for n in (first, last)
    )
    pdp = points.at("PDP", last, "max")
    setting = f"t_max, n = {last:g} (against {before:.3g} at n = {first:g})"
    error = 2 * after * pdp.error / pdp.value
    return by_slack("PDP / weighted", setting, "converge as n → ∞", after, before / 2 - after, error)


FIG1 = Experiment(
    id="F-fig1",
    title="Variance of the weighted and of the PDP mean",
    paper="[F] Figure 1",
    setting="n people at ε = 10 beside 100, 500, 1000, 5000, 10000 at ε = 0.05, 0.1, 0.01, 0.25, 0.15; "
    "values N(0, 25)",
    runs=1000,
    quick=20_000,
    settings=(100, 200, 500, 1000, 2000, 5000, 10_000),
    measure=_fig1,
    claims=_claims_fig1,
    panels=tuple(
        Panel(
            key,
            f"t = {t:g} ({key})" if t else "t that minimises the variance (0.15)",
            "n",
            "variance",
            "n",
            log_x=True,
            log_y=True,
        )
        for key, t in (*_THRESHOLDS.items(), (_FORMULA, 0.0))
    ),
    warnings=(f"{HALF} `affine` and `mix` have noise for 2r.", DIVIDES.replace("SM", "PDP")),
    notes=(
        f"r is not stated: r = {_RADIUS:g} here, where t = 0.25 matches as the paper says. "
        "By the formula, 0.15 is then better, and 0.25 is best from about r = 80 on.",
    ),
    ours=frozenset({"affine, noise for r", "affine", "mix"}),
)


# ---- Figure 2: medians -------------------------------------------------------------------------------------

_PEOPLE, _BOUND = 1001, 5.0
_PAIRS = {"0.1, 1": (0.1, 1.0), "0.01, 10": (0.01, 10.0)}
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def _fig2(setting: tuple[str, float], runs: int, rng: np.random.Generator, _: Context) -> list[Point]:
    panel, share = setting
    strict, loose = _PAIRS[panel]
    private = round(share * _PEOPLE)
    spec = Spec.from_groups({strict: private, loose: _PEOPLE - private})
    query = accord.median("x", bounds=(-_BOUND, _BOUND), missing="none")
    plans = {name: planned(spec, query, name.lower()) for name in ("PE", "mix", "rank")}
    beta = mixing_weights(spec.counts, spec.levels, 1.0, _BOUND)
    weighted = replace(plans["mix"].calibration, charges=spec.micro, weights=beta / np.array(spec.counts))
    plans["weighted"] = plans["mix"].with_choice(calibration=weighted)
    noise = Seeded(rng)
    medians: dict[str, list[float]] = {name: [] for name in plans}
    for _run in range(runs):
        summary = summarise(plans["PE"], cells(query.encoding, rng.normal(size=_PEOPLE)))
        for name, plan in plans.items():
            median = answer(plan, [summary], noise)[0]
            assert isinstance(median, float)
            medians[name].append(median)
    return [rmse_point(name, share, answers, panel) for name, answers in medians.items()]


def _claims_fig2(points: Points) -> list[Claim]:
    advantage, claims = "competitive advantage of the weighted median", []
    for panel in _PAIRS:
        mean = {name: mean_of(points, name, points.xs(panel), panel) for name in points.methods(panel)}
        where = f"ε = {panel}, mean over all shares"
        claims.append(is_below(mean["weighted"], mean["PE"], where, advantage))
        for x in (0.2, 0.5):
            weighted, pe = points.at("weighted", x, panel), points.at("PE", x, panel)
            claims.append(is_below(weighted, pe, f"ε = {panel}, {x:.0%} private", advantage))
        no_worse = "(ours) no worse (by a quarter at most)"
        claims.append(is_below(mean["rank"], mean["PE"], where, "(ours) lower"))
        claims.append(is_below(mean["rank"], mean["weighted"], where, no_worse, 1.25))
    return claims


FIG2 = Experiment(
    id="F-fig2",
    title="RMSE for the median of a standard normal",
    paper="[F] Figure 2",
    setting="n = 1001 values N(0, 1), a share of the people at ε_H and the others at ε_L",
    runs=500,
    quick=100,
    settings=tuple((panel, share) for panel in _PAIRS for share in _SHARES),
    measure=_fig2,
    claims=_claims_fig2,
    panels=tuple(
        Panel(key, f"ε_H, ε_L = {key}", "share of private people", "RMSE", "share", log_y=True)
        for key in _PAIRS
    ),
    notes=(
        f"The range of the exponential mechanism is not stated: [−{_BOUND:g}, {_BOUND:g}] here, "
        "in 65,536 steps. Errors are against 0, the median of the normal law.",
        "`weighted` has the mean's β, as the paper; `mix` has weights for ranks, and does not read a level "
        "whose own choice may land anywhere.",
    ),
    ours=frozenset({"mix", "rank"}),
)

ALL = (FIG1, FIG2)
