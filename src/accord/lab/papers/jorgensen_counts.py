"""Figure 1 of [J]: counts of a thousand people of three groups (jorgensen.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO, to_micro
from accord.lab.papers.experiment import Claim, Experiment, Points, is_below, is_lowest, is_near
from accord.lab.papers.jorgensen import (
    EPSILON_L,
    FALLS,
    HALF_LESS,
    QUARTER_LESS,
    SCALE,
    THIRD_LESS,
    TOP,
    WIDE,
    Figure,
    Setting,
    Sweep,
    by_conservative,
    by_epsilon_c,
    by_epsilon_m,
    claims_by_conservative,
    claims_by_epsilon_c,
    claims_by_epsilon_m,
    crossing,
    falls,
    kept_by,
    released,
)
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import summary_of_sums
from accord.mechanisms.pe import count_scores
from accord.people.summary import Summary
from accord.spec import Spec
from accord.statistics import Query, count
from accord.theory import FloatArray

METHODS = ("M", "T", "S", "S-avg", "PE", "Alag.")
PERSONAL = METHODS[2:]
_PEOPLE = 1_000
_COUNT: Query = count(where="x = 1")


def counts(
    levels: FloatArray, ones: NDArray[np.bool_], setting: Setting, rng: np.random.Generator
) -> dict[str, float]:
    """How many `ones` there are, by every mechanism; both arrays have an entry for each person."""
    micro = to_micro(levels)
    spec = Spec(micro, np.ones_like(micro))
    level = np.searchsorted(spec.micro, micro)
    of_level = np.bincount(level[ones], minlength=spec.micro.size)
    sums = summary_of_sums(spec.people, spec.people, of_level)
    cells = Summary(spec.people, 2, level, ones.astype(np.int64), np.ones_like(level))

    def sampled(t: int) -> float:
        return float(ones[kept_by(micro, t, rng)].sum() + rng.laplace(0.0, MICRO / t))

    return {
        "M": float(ones.sum() + rng.laplace(0.0, 1 / setting.epsilon_c)),
        "T": float(ones[setting.liberal].sum() + rng.laplace(0.0, 1 / EPSILON_L)),
        "S": sampled(TOP),
        "S-avg": sampled(int(micro.mean())),
        "PE": float(Seeded(rng).choose(count_scores(spec.micro, spec.people, of_level), SCALE)),
        "Alag.": float(levels @ ones / EPSILON_L + rng.laplace(0.0, 1 / EPSILON_L)),
        "affine": released("affine", spec, _COUNT, sums, rng),
        "sample": released("sample", spec, _COUNT, cells, rng),
    }


def _errors(setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """About people of whom exactly δ·n, anyone, have a one."""
    true = round(setting.density * setting.people)
    ones = rng.permutation(setting.people) < true
    answers = counts(setting.drawn.draw(rng), ones, setting, rng)
    return {method: value - true for method, value in answers.items()}


# ---- what the paper says -----------------------------------------------------------------------------------


def _claims_a(points: Points) -> list[Claim]:
    at, others = points.at, [m for m in METHODS if m != "PE"]
    low = "S and S-avg lowest at low density"
    claims = [
        is_lowest(points, s, ("M", "T", "PE"), x, f"δ = {x:g}", low)
        for x in (0.01, 0.05)
        for s in ("S", "S-avg")
    ]
    claims += [
        is_below(at("S-avg", 0.05), at("Alag.", 0.05), "δ = 0.05", low),
        is_below(at("S", 0.1), at("M", 0.1), "δ = 0.1", "S below M at low density"),
        is_below(at("M", 0.3), at("S", 0.3), "δ = 0.3", "S exceeds M as density grows"),
        is_below(at("S-avg", 0.1), at("M", 0.1), "δ = 0.1", "S-avg below M at low density"),
        is_below(at("M", 0.5), at("S-avg", 0.5), "δ = 0.5", "S-avg exceeds M as density grows"),
    ]
    half, steady = "PE less than half the next best", "PE unaffected by density (within 2 ×)"
    relative = "PE's relative error falls"
    claims += [
        is_lowest(points, "PE", others, 0.3, "δ = 0.3", half, HALF_LESS),
        is_below(at("PE", 0.01), at("PE", 0.5), "δ = 0.01 against 0.5", steady, 2.0),
        is_below(at("PE", 0.5), at("PE", 0.05), "δ = 0.5 against 0.05", relative, 0.5 / 0.05),
    ]
    third = "S-avg significantly lower than S (by a third)"
    for x in (0.15, 0.3, 0.5):
        where = f"δ = {x:g}"
        claims += [
            is_lowest(points, "PE", others, x, where, "PE the clear winner for δ > 0.1"),
            is_below(at("PE", x), at("Alag.", x), where, "PE significantly lower than Alag.", QUARTER_LESS),
            is_below(at("Alag.", x), at("S", x), where, "Alag. slightly lower than S"),
            is_below(at("S", x), at("Alag.", x), where, "… but only slightly (a fifth at most)", 1.25),
            is_below(at("S-avg", x), at("S", x), where, third, THIRD_LESS),
        ]
    return claims


def _claims_b(points: Points) -> list[Claim]:
    return claims_by_conservative(points, PERSONAL)


def _claims_c(points: Points) -> list[Claim]:
    at, others = points.at, [m for m in METHODS if m != "M"]
    return [
        *(
            is_lowest(points, "M", others, x, f"ε_C = {x:g}", "M best for ε_C > 0.08")
            for x in (0.2, 0.3, 0.5)
        ),
        *(is_below(at(m, 0.01), at("M", 0.01), "ε_C = 0.01", "M not best for small ε_C") for m in PERSONAL),
        is_near(crossing(points, "M", others), "ε_C from which on M is best", 0.08, 0.06),
        *claims_by_epsilon_c(points, PERSONAL),
    ]


def _claims_d(points: Points) -> list[Claim]:
    at, more = points.at, "S, S-avg fall much more than for medians"
    return [
        *claims_by_epsilon_m(points, PERSONAL),
        *(falls(at(s, 0.05), at(s, 0.5), "ε_M = 0.05 to 0.5", more, 1) for s in ("S", "S-avg")),
    ]


# ---- the figure --------------------------------------------------------------------------------------------

_FIGURE = Figure(
    1,
    "count",
    "1,000 people, a share δ = 0.15 of ones",
    _errors,
    ours=frozenset({"affine", "sample"}),
    notes=(
        "Exactly δ·n people, drawn at random, have a one; "
        "the paper does not say whether their number is random.",
        "S, S-avg, T and Alag. are not scaled back, by the paper's reasoning; "
        "that is most of their error, and `sample` does it.",
    ),
)
_DENSITIES = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
_BY_DENSITY = Sweep("density", "δ", tuple(Setting(x, _PEOPLE, density=x) for x in _DENSITIES))

ALL: tuple[Experiment, ...] = (
    _FIGURE.panel("a", _BY_DENSITY, _claims_a, 600),
    _FIGURE.panel("b", by_conservative(_PEOPLE), _claims_b, 500),
    _FIGURE.panel("c", by_epsilon_c(_PEOPLE), _claims_c, 600, WIDE, log_y=True),
    _FIGURE.panel("d", by_epsilon_m(_PEOPLE), _claims_d, 500, FALLS),
)
