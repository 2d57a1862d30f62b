"""Figures 1 and 2 of [J], Jorgensen, Yu, Cormode 2015, V-A: counts and medians of a thousand people of three
groups.

Every run draws new people: their levels (specs.jorgensen) and, independently of them, their values. Errors
are about these very people. The mechanisms:

    M       everyone at ε_C, the parameter: Lap(1/ε_C), or the exponential mechanism
    T       only the liberal group is read, at ε_L
    S       person i is kept with probability (e^ε − 1)/(e^t − 1), t = ε_L; those who are kept are answered
            about at t. A count of them is not scaled
            back: "the count is only affected when a 1 is discarded"
    S-avg   the same with t the mean level
    PE      Definition 10, by the scores of the release (mechanisms/pe.py)
    Alag.   Σ(ε/ε_L)·x + Lap(1/ε_L); counts only

The exponential mechanism for the median is PE with everyone at one level: exp(−ε·(how many people must
change)/2). `affine`, `sample` and `rank` are accord's own plans and releases from end to end, with seeded
noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import hypot, nan

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO, IntArray, to_micro
from accord.lab.papers.experiment import (
    Claim,
    Context,
    Experiment,
    FloatArray,
    Panel,
    Point,
    Points,
    is_below,
    is_lowest,
    is_near,
    mean_of,
    rmse_point,
)
from accord.lab.simulation import specs
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.simulate import planned
from accord.mechanisms.pe import count_scores, quantile_scores
from accord.mechanisms.sample import probabilities
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE
from accord.release.answer import answer
from accord.spec import Spec
from accord.statistics import Query, count, median

RUNS = 1_000
EPSILON_L = 1.0
POINTS = 1_000
"""Of the median: the integers 1 … 1000."""
MEAN = 500.0
_TOP = int(to_micro(EPSILON_L))
_COUNT: Query = count(where="x = 1")
_MEDIAN: Query = median("x", bounds=(1, POINTS), step=1)
_HALF = Fraction(1, 2)
_SCALE = 2 * MICRO
"""exp(d/2), of a score d in millionths."""


@dataclass(frozen=True)
class Setting:
    """Table I, with its defaults."""

    x: float
    """Which of these varies."""
    people: int
    density: float = 0.15
    sigma: float = 200.0
    conservative: float = 0.54
    moderate: float = 0.37
    epsilon_c: float = 0.01
    epsilon_m: float = 0.2

    @property
    def drawn(self) -> specs.Drawn:
        return specs.jorgensen(
            self.people, self.conservative, self.moderate, self.epsilon_c, self.epsilon_m, EPSILON_L
        )

    @property
    def liberal(self) -> slice:
        """The liberal group, which is drawn last.

        A moderate person whose level is rounded up to ε_L is not in it: T discards "all but the liberal user
        data".
        """
        return slice(round((self.conservative + self.moderate) * self.people), None)


# ---- one run -----------------------------------------------------------------------------------------------


def counts(
    levels: FloatArray, ones: NDArray[np.bool_], setting: Setting, rng: np.random.Generator
) -> dict[str, float]:
    """How many `ones` there are, by every mechanism; both arrays have an entry for each person."""
    micro = to_micro(levels)
    spec = Spec(micro, np.ones_like(micro))
    level = np.searchsorted(spec.micro, micro)
    of_level = np.bincount(level[ones], minlength=spec.micro.size)
    by_level = np.arange(spec.micro.size)
    column = np.repeat([0, 1], by_level.size)
    sums = Summary(spec.people, 2, np.tile(by_level, 2), column, np.concatenate((spec.people, of_level)))
    cells = Summary(spec.people, 2, level, ones.astype(np.int64), np.ones_like(level))

    def sampled(t: int) -> float:
        return float(ones[kept_by(micro, t, rng)].sum() + rng.laplace(0.0, MICRO / t))

    return {
        "M": float(ones.sum() + rng.laplace(0.0, 1 / setting.epsilon_c)),
        "T": float(ones[setting.liberal].sum() + rng.laplace(0.0, 1 / EPSILON_L)),
        "S": sampled(_TOP),
        "S-avg": sampled(int(micro.mean())),
        "PE": float(Seeded(rng).choose(count_scores(spec.micro, spec.people, of_level), _SCALE)),
        "Alag.": float(levels @ ones / EPSILON_L + rng.laplace(0.0, 1 / EPSILON_L)),
        "affine": _ours("affine", spec, _COUNT, sums, rng),
        "sample": _ours("sample", spec, _COUNT, cells, rng),
    }


def medians(
    levels: FloatArray, values: IntArray, setting: Setting, rng: np.random.Generator
) -> dict[str, float]:
    """The value in the middle of the `values` 1 … 1000, by every mechanism; both arrays have an entry for
    each person.
    """
    micro, points = to_micro(levels), values - 1
    spec = Spec(micro, np.ones_like(micro))
    level = np.searchsorted(spec.micro, micro)

    def sampled(t: int) -> float:
        return _alike(points[kept_by(micro, t, rng)], t, rng)

    return {
        "M": _alike(points, int(to_micro(setting.epsilon_c)), rng),
        "T": _alike(points[setting.liberal], _TOP, rng),
        "S": sampled(_TOP),
        "S-avg": sampled(int(micro.mean())),
        "PE": _chosen(points, spec.micro, level, rng),
        "rank": _ours(
            "rank", spec, _MEDIAN, Summary(spec.people, POINTS, level, points, np.ones_like(level)), rng
        ),
    }


def kept_by(micro: IntArray, t: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Definition 9: who stays."""
    kept: NDArray[np.bool_] = rng.random(micro.size) < probabilities(micro, t, ADD_REMOVE)
    return kept


def _alike(points: IntArray, t: int, rng: np.random.Generator) -> float:
    """The median by the exponential mechanism, with everyone at t."""
    return _chosen(points, np.array([t]), np.zeros_like(points), rng)


def _chosen(points: IntArray, levels: IntArray, level: IntArray, rng: np.random.Generator) -> float:
    """PE's median of people at these points, each of the `level`-th of the ascending `levels`.

    Of an even number of people it is the upper one.
    """
    order = np.argsort(points, kind="stable")
    scores = quantile_scores(levels, points[order], level[order], np.ones_like(points), _HALF, POINTS)
    return 1.0 + Seeded(rng).choose(scores, _SCALE)


def _ours(name: str, spec: Spec, query: Query, summary: Summary, rng: np.random.Generator) -> float:
    """Planned and released by accord, for neighbors by replace."""
    decided = planned(spec, query, name)
    value, _ = answer(decided, [summary], Seeded(rng))
    assert isinstance(value, float)
    return value


def run_count(setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Errors about people of whom exactly δ·n, anyone, have a one."""
    true = round(setting.density * setting.people)
    ones = rng.permutation(setting.people) < true
    found = counts(setting.drawn.draw(rng), ones, setting, rng)
    return {method: value - true for method, value in found.items()}


def run_median(setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Errors about people with normal values, rounded to 1 … 1000."""
    values = np.clip(np.rint(rng.normal(MEAN, setting.sigma, setting.people)), 1, POINTS).astype(np.int64)
    true = float(np.sort(values)[setting.people // 2])
    found = medians(setting.drawn.draw(rng), values, setting, rng)
    return {method: value - true for method, value in found.items()}


def measure(
    run: Callable[[Setting, np.random.Generator], dict[str, float]],
    setting: Setting,
    runs: int,
    rng: np.random.Generator,
    context: Context,
) -> list[Point]:
    """Every run with new people."""
    errors = [run(setting, rng) for _ in range(runs)]
    return [rmse_point(method, setting.x, [found[method] for found in errors]) for method in errors[0]]


# ---- what the paper says -----------------------------------------------------------------------------------

DENSITIES = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
SIGMAS = (100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0)
CONSERVATIVE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.54, 0.6)
EPSILONS_C = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
EPSILONS_M = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)

COUNT_METHODS = ("M", "T", "S", "S-avg", "PE", "Alag.")
MEDIAN_METHODS = COUNT_METHODS[:-1]
_THIRD_LESS, _QUARTER_LESS, _HALF_LESS = 2 / 3, 0.75, 0.5
"""What "significantly" is taken to be, where the paper gives no number."""
_STEADY = 1.3
"""Within this factor: "unaffected", where only chance is left."""
_BORDER = 15.0
"""Out of 1,000 people or values: what separates a fall that is "much more pronounced" from another."""


def claims_1a(points: Points) -> list[Claim]:
    at, others = points.at, [m for m in COUNT_METHODS if m != "PE"]
    found = [
        is_lowest(points, s, ("M", "T", "PE"), x, f"δ = {x:g}", "S and S-avg lowest at low density")
        for x in (0.01, 0.05)
        for s in ("S", "S-avg")
    ]
    found += [
        is_below(at("S-avg", 0.05), at("Alag.", 0.05), "δ = 0.05", "S and S-avg lowest at low density"),
        is_below(at("S", 0.1), at("M", 0.1), "δ = 0.1", "S below M at low density"),
        is_below(at("M", 0.3), at("S", 0.3), "δ = 0.3", "S exceeds M as density grows"),
        is_below(at("S-avg", 0.1), at("M", 0.1), "δ = 0.1", "S-avg below M at low density"),
        is_below(at("M", 0.5), at("S-avg", 0.5), "δ = 0.5", "S-avg exceeds M as density grows"),
    ]
    found += [
        is_lowest(points, "PE", others, 0.3, "δ = 0.3", "PE less than half the next best", _HALF_LESS),
        is_below(
            at("PE", 0.01),
            at("PE", 0.5),
            "δ = 0.01 against 0.5",
            "PE unaffected by density (within 2 ×)",
            2.0,
        ),
        is_below(
            at("PE", 0.5), at("PE", 0.05), "δ = 0.5 against 0.05", "PE's relative error falls", 0.5 / 0.05
        ),
    ]
    for x in (0.15, 0.3, 0.5):
        where = f"δ = {x:g}"
        found += [
            is_lowest(points, "PE", others, x, where, "PE the clear winner for δ > 0.1"),
            is_below(at("PE", x), at("Alag.", x), where, "PE significantly lower than Alag.", _QUARTER_LESS),
            is_below(at("Alag.", x), at("S", x), where, "Alag. slightly lower than S"),
            is_below(at("S", x), at("Alag.", x), where, "… but only slightly (a fifth at most)", 1.25),
            is_below(
                at("S-avg", x),
                at("S", x),
                where,
                "S-avg significantly lower than S (by a third)",
                _THIRD_LESS,
            ),
        ]
    return found


def claims_1b(points: Points) -> list[Claim]:
    return _by_conservative(points, ("S", "S-avg", "PE", "Alag."))


def claims_1c(points: Points) -> list[Claim]:
    at, others = points.at, [m for m in COUNT_METHODS if m != "M"]
    found = [
        is_lowest(points, "M", others, x, f"ε_C = {x:g}", "M best for ε_C > 0.08") for x in (0.2, 0.3, 0.5)
    ]
    found += [
        is_below(at(other, 0.01), at("M", 0.01), "ε_C = 0.01", "M not best for small ε_C")
        for other in others[1:]
    ]
    start = crossing(points, "M", others)
    found.append(is_near(start, "ε_C from which on M is best", 0.08, 0.06))
    return found + _by_epsilon_c(points, ("S", "S-avg", "PE", "Alag."))


def claims_1d(points: Points) -> list[Claim]:
    at = points.at
    pronounced = [
        falls(at(s, 0.05), at(s, 0.5), "ε_M = 0.05 to 0.5", "S, S-avg fall much more than for medians", 1)
        for s in ("S", "S-avg")
    ]
    return _by_epsilon_m(points, ("S", "S-avg", "PE", "Alag.")) + pronounced


def claims_2a(points: Points) -> list[Claim]:
    at = points.at
    flat = (
        "at ε_C = 0.01 M's scores differ by 2.5 at most and it chooses almost anywhere on 1 … 1000; the "
        "narrower the values, the more points lie beyond everyone, at one score. "
        "It would grow throughout if only points between the data's own ends could be chosen, which is not "
        "private"
    )
    found = []
    for m in MEDIAN_METHODS:
        narrow, wide = mean_of(points, m, SIGMAS[:3]), mean_of(points, m, SIGMAS[-3:])
        found += [
            is_below(narrow, wide, "mean of σ ≤ 300 against σ ≥ 800", "all errors grow with σ"),
            is_below(
                at(m, 100.0), at(m, 200.0), "σ = 100 against 200", "… at once (by a fifth)", 1 / 1.2, flat
            ),
        ]
    for x in (100.0, 200.0, 500.0, 1000.0):
        where = f"σ = {x:g}"
        found += [
            is_lowest(points, s, ("M", "T"), x, where, "S, S-avg considerably lower than M, T", _QUARTER_LESS)
            for s in ("S", "S-avg")
        ]
        found.append(is_below(at("PE", x), at("M", x), where, "PE significantly lower than M", _QUARTER_LESS))
    mean = {m: mean_of(points, m, SIGMAS) for m in MEDIAN_METHODS}
    everywhere = "mean over σ"
    return [
        *found,
        is_below(
            at("T", 200.0), at("M", 200.0), "σ = 200", "T fares much better than for counts", _HALF_LESS
        ),
        is_below(mean["T"], mean["PE"], everywhere, "PE no better than T (by a fifth at most)", 1.25),
        is_below(mean["S-avg"], mean["S"], everywhere, "S-avg better than S"),
        is_below(
            mean["S"], mean["S-avg"], everywhere, "… but only slightly (a third at most)", 1 / _THIRD_LESS
        ),
    ]


def claims_2b(points: Points) -> list[Claim]:
    sharp = is_below(
        points.at("T", 0.5), points.at("T", 0.6), "f_C = 0.5 against 0.6", "T's sharp increase", 0.6
    )
    return [*_by_conservative(points, ("S", "S-avg", "PE")), sharp]


def claims_2c(points: Points) -> list[Claim]:
    at, others = points.at, [m for m in MEDIAN_METHODS if m != "S-avg"]
    found = [
        is_lowest(points, "S-avg", others, x, f"ε_C = {x:g}", "S-avg best until ε_C ≈ 0.25")
        for x in EPSILONS_C[:3]
    ]
    ends = crossing(points, "S-avg", others)
    return [
        *found,
        is_below(at("M", 0.5), at("S-avg", 0.5), "ε_C = 0.5", "no benefit for ε_C > 0.25"),
        is_near(ends, "ε_C up to which S-avg is best", 0.25, 0.125),
        *_by_epsilon_c(points, ("S", "S-avg", "PE")),
    ]


def claims_2d(points: Points) -> list[Claim]:
    at = points.at
    subtle = [
        falls(at(s, 0.05), at(s, 0.5), "ε_M = 0.05 to 0.5", "S, S-avg fall much less than for counts", -1)
        for s in ("S", "S-avg")
    ]
    return _by_epsilon_m(points, ("S", "S-avg", "PE")) + subtle


def _by_conservative(points: Points, personal: Iterable[str]) -> list[Claim]:
    found = [
        is_below(
            points.at(m, 0.1),
            points.at(m, 0.6),
            "f_C = 0.1 against 0.6",
            "PDP better with more liberal people",
            0.75,
        )
        for m in personal
    ]
    return found + _unaffected(points, "M", CONSERVATIVE, "f_C")


def _by_epsilon_c(points: Points, personal: Iterable[str]) -> list[Claim]:
    at, where = points.at, "ε_C = 0.5 against 0.01"
    found = [is_below(at("M", 0.5), at("M", 0.01), where, "M's error falls very fast (25 ×)", 1 / 25)]
    found += [
        is_below(
            at(m, 0.01), at(m, 0.5), "ε_C = 0.01 against 0.5", "PDP's falls much less (10 × at most)", 10.0
        )
        for m in personal
    ]
    return found + _unaffected(points, "T", EPSILONS_C, "ε_C")


def _by_epsilon_m(points: Points, personal: Iterable[str]) -> list[Claim]:
    at, where = points.at, "ε_M = 0.5 against 0.05"
    found = [is_below(at(m, 0.5), at(m, 0.05), where, "PDP better with larger ε_M") for m in personal]
    return [
        *found,
        is_below(at("PE", 0.5), at("PE", 0.05), where, "PE benefits greatly (by half)", _HALF_LESS),
    ]


def _unaffected(points: Points, method: str, xs: Sequence[float], symbol: str) -> list[Claim]:
    """That the first three settings and the last three give the same, one way and the other."""
    few, many = mean_of(points, method, xs[:3]), mean_of(points, method, xs[-3:])
    said = f"{method} does not depend on {symbol} (within {_STEADY:g} ×)"
    return [
        is_below(few, many, f"first three {symbol} against last", said, _STEADY),
        is_below(many, few, f"last three {symbol} against first", said, _STEADY),
    ]


def falls(first: Point, last: Point, setting: str, paper: str, side: int) -> Claim:
    """That an error falls by more (side = 1) or by less (−1) than the border."""
    fall, spread = first.value - last.value, hypot(first.error, last.error)
    sure = side * (fall - _BORDER) / spread
    return Claim(
        first.method, setting, f"{paper} ({_BORDER:g} of 1,000 is the border)", fall, sure >= 0, sure
    )


def crossing(points: Points, method: str, others: Iterable[str]) -> Point:
    """Where the order of a method and the best of the others first changes, on the straight lines that a
    figure draws.
    """
    x, values, errors = points.curve(method)
    best = [min((points.at(m, a) for m in others), key=lambda p: p.value) for a in x.tolist()]
    gap = values - [p.value for p in best]
    error = np.hypot(errors, [p.error for p in best])
    turns = np.flatnonzero(np.sign(gap[1:]) != np.sign(gap[:-1]))
    if not turns.size:
        return Point(method, nan, nan)
    k = int(turns[0])
    width, change = x[k + 1] - x[k], gap[k] - gap[k + 1]
    spread = width * hypot(error[k] * gap[k + 1], error[k + 1] * gap[k]) / change**2
    return Point(method, nan, float(x[k] + width * gap[k] / change), float(spread))


# ---- the figures -------------------------------------------------------------------------------------------

_LEVELS = (
    "levels of [J]'s three groups (f_C = 0.54 conservative, f_M = 0.37 moderate; ε_C = 0.01, ε_M = {:g}, "
    "ε_L = 1)"
)
_WARNING = (
    "S and S-avg are private for add-remove neighbors, PE for replace, as in the paper; under replace S may "
    "lose up to 2ε. accord's own curves are for replace."
)
_NOTES = (
    "M takes the parameter ε_C for the smallest level, as the paper does; the smallest that was drawn can be "
    "a little larger.",
    "T reads the liberal group only; moderate people whose level was rounded up to ε_L are discarded, too, "
    "by the paper's words.",
)
_COUNT_NOTES = (
    *_NOTES,
    "Exactly δ·n people, drawn at random, have a one; the paper does not say whether their number is random.",
    "S, S-avg, T and Alag. are not scaled back, by the paper's reasoning; that is most of their error, and "
    "`sample` does it.",
)
_MEDIAN_NOTES = (
    *_NOTES,
    "PE's score is Definition 10 itself; the paper's wording by the rank of an answer is ambiguous with "
    "ties, and natural readings of it are not private.",
    "M, T and S choose by the same score with everyone at one level; the paper names the exponential "
    "mechanism and not its score.",
    "Of an even number of people who were kept, the upper median is meant; the paper does not say.",
)
_LEVEL = (
    "PE comes out a little below T, where the paper sees no difference; what is checked is that they are "
    "within a fifth of each other."
)
_WIDE = "ε_M is 0.5 here, so that ε_C ≤ ε_M throughout."
_FALLS = (
    "The fall with ε_M is more pronounced for counts than for medians in people and in values, as the "
    "figures show it; relative to the errors themselves the falls are alike."
)


def _figure(
    figure: str,
    by: str,
    symbol: str,
    settings: Iterable[Setting],
    claims: Callable[[Points], list[Claim]],
    quick: int,
    *notes: str,
    log_y: bool = False,
) -> Experiment:
    """A sweep over one of the fields of Setting."""
    counted = figure.startswith("1")
    what = "count" if counted else "median"
    measured = tuple(settings)
    usual = 0.2 if symbol == "ε_M" else measured[0].epsilon_m
    data = (
        "1,000 people, a share δ = 0.15 of ones"
        if counted
        else "1,001 people, N(500, σ = 200) rounded to 1 … 1000"
    )
    return Experiment(
        id=f"J-fig{figure}",
        title=f"{what.capitalize()} by {by}",
        paper=f"[J] Figure {figure[0]}({figure[1]})",
        setting=f"{data}; {_LEVELS.format(usual)}; {symbol} varies; new people in every run, errors about "
        "these very people",
        runs=RUNS,
        quick=quick,
        settings=measured,
        measure=partial(measure, run_count if counted else run_median),
        claims=claims,
        panels=(
            Panel(
                "",
                f"{what.capitalize()} by {by}",
                f"{by} {symbol}",
                f"RMSE of the {what}",
                symbol,
                log_y=log_y,
            ),
        ),
        warnings=(_WARNING,),
        notes=(*(_COUNT_NOTES if counted else _MEDIAN_NOTES), *notes),
        ours=frozenset({"affine", "sample"} if counted else {"rank"}),
    )


def _by_share(people: int) -> list[Setting]:
    return [Setting(x, people, conservative=x) for x in CONSERVATIVE]


def _by_smallest(people: int) -> list[Setting]:
    return [Setting(x, people, epsilon_c=x, epsilon_m=0.5) for x in EPSILONS_C]


def _by_middle(people: int) -> list[Setting]:
    return [Setting(x, people, epsilon_m=x) for x in EPSILONS_M]


_SHARE, _SMALLEST, _MIDDLE = "share of conservative people", "smallest level", "middle level"

ALL: tuple[Experiment, ...] = (
    _figure("1a", "density", "δ", (Setting(x, 1_000, density=x) for x in DENSITIES), claims_1a, 600),
    _figure("1b", _SHARE, "f_C", _by_share(1_000), claims_1b, 500),
    _figure("1c", _SMALLEST, "ε_C", _by_smallest(1_000), claims_1c, 600, _WIDE, log_y=True),
    _figure("1d", _MIDDLE, "ε_M", _by_middle(1_000), claims_1d, 500, _FALLS),
    _figure(
        "2a", "spread", "σ", (Setting(x, 1_001, sigma=x) for x in SIGMAS), claims_2a, 400, _LEVEL, log_y=True
    ),
    _figure("2b", _SHARE, "f_C", _by_share(1_001), claims_2b, 400, log_y=True),
    _figure("2c", _SMALLEST, "ε_C", _by_smallest(1_001), claims_2c, 500, _WIDE, log_y=True),
    _figure("2d", _MIDDLE, "ε_M", _by_middle(1_001), claims_2d, 400, _FALLS, log_y=True),
)
