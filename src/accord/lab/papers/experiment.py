"""Experiment: one figure or table of a paper, as settings to measure, claims to check and panels to draw.

`measure` does the work for one setting and is given its own generator, so that what comes out depends on the
seed and on the setting's place in the list, never on how many processes share the work. A claim is something
that the paper says in numbers or words; it knows how many standard errors it is away from turning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, inf, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from accord.theory import FloatArray


@dataclass(frozen=True)
class Point:
    """What one method does at one setting."""

    method: str
    x: float
    value: float
    error: float = 0.0
    """One standard error of `value`; 0: it is a formula's."""
    panel: str = ""
    y: float | None = None
    """The second coordinate of a heat map."""


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what came out."""

    method: str
    setting: str
    paper: float | str
    here: float | str
    agrees: bool
    margin: float = inf
    """Standard errors between what came out and the border of agreeing; negative where it does not agree."""
    why: str = ""
    """The reason, where it does not agree."""


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    key: str
    title: str
    x: str
    y: str
    symbol: str = "x"
    """Of x, for tables: δ in "δ = 0.3"."""
    log_x: bool = False
    log_y: bool = False
    bottom: float | None = 0.0
    """Where the axis begins, if it is not logarithmic."""
    top: float | None = None
    """Where it ends, if curves that run away would hide the others."""
    vertical_lines: tuple[tuple[float, str], ...] = ()
    """At which x, and their names."""


@dataclass(frozen=True)
class Context:
    """What a run may say besides the seed."""

    data: Path | None = None
    """A census file instead of the generator."""


class Points:
    """Everything that an experiment measured."""

    def __init__(self, points: Iterable[Point]) -> None:
        self.all = tuple(points)
        self._at = {(p.panel, p.method, p.x): p for p in self.all}

    def at(self, method: str, x: float, panel: str = "") -> Point:
        return self._at[panel, method, x]

    def methods(self, panel: str = "") -> list[str]:
        return list(dict.fromkeys(p.method for p in self.all if p.panel == panel))

    def xs(self, panel: str = "") -> list[float]:
        return sorted({p.x for p in self.all if p.panel == panel})

    def curve(self, method: str, panel: str = "") -> tuple[FloatArray, FloatArray, FloatArray]:
        """x, values and standard errors, ascending."""
        points = sorted((p for p in self.all if p.method == method and p.panel == panel), key=lambda p: p.x)
        return (
            np.array([p.x for p in points]),
            np.array([p.value for p in points]),
            np.array([p.error for p in points]),
        )


@dataclass(frozen=True)
class Experiment:
    """One figure or table of a paper."""

    id: str
    title: str
    paper: str
    setting: str
    """In a sentence: data, levels, runs."""
    runs: int
    """As in the paper."""
    quick: int
    """Runs with which every claim is at least three standard errors away from turning: what tests use."""
    settings: tuple[Any, ...]
    measure: Callable[[Any, int, np.random.Generator, Context], Sequence[Point]]
    """All methods at one setting. Generators are seeded by the setting's place, not by the process."""
    claims: Callable[[Points], list[Claim]]
    panels: tuple[Panel, ...]
    warnings: tuple[str, ...] = ()
    """Where the paper's choice is not private, or is private in another sense: said on the figure."""
    notes: tuple[str, ...] = ()
    """What the paper does not say and was chosen here: said beside the figure."""
    ours: frozenset[str] = field(default_factory=frozenset)
    """Methods that the paper does not have."""
    draw: Callable[[Any, Experiment, Points], None] | None = None
    """Draws into a matplotlib figure; lines in panels if it is not given."""
    gather: Callable[[Points], Points] | None = None
    """What is shown of what was measured, where the paper shows averages over settings."""


def mean_of(points: Points, method: str, xs: Sequence[float], panel: str = "") -> Point:
    """The mean of one method over several settings."""
    each = [points.at(method, x, panel) for x in xs]
    error = sqrt(sum(p.error**2 for p in each)) / len(xs)
    return Point(method, nan, sum(p.value for p in each) / len(xs), error, panel)


def rmse_point(method: str, x: float, errors: Any, panel: str = "") -> Point:
    """The root mean square of simulated errors, with its standard error."""
    mse = mse_point(method, x, errors, panel)
    rmse = sqrt(mse.value)
    return Point(method, x, rmse, mse.error / (2 * rmse) if rmse else 0.0, panel)


def mse_point(method: str, x: float, errors: Any, panel: str = "") -> Point:
    """The mean square of simulated errors, with its standard error."""
    squares = np.asarray(errors, dtype=np.float64) ** 2
    spread = float(squares.std(ddof=1)) / sqrt(squares.size) if squares.size > 1 else inf
    return Point(method, x, float(squares.mean()), spread, panel)


def is_below(low: Point, high: Point, setting: str, paper: str, factor: float = 1.0, why: str = "") -> Claim:
    """That `low` is at most factor·`high`; the claim shows their ratio."""
    slack, error = factor * high.value - low.value, hypot(low.error, factor * high.error)
    return by_slack(
        f"{low.method} / {high.method}", setting, paper, low.value / high.value, slack, error, why
    )


def is_lowest(
    points: Points,
    method: str,
    others: Iterable[str],
    x: float,
    setting: str,
    paper: str,
    factor: float = 1.0,
) -> Claim:
    """That a method is at most factor times each of the others at x.

    The claim shows its ratio to the best of them.
    """
    each = [is_below(points.at(method, x), points.at(other, x), setting, paper, factor) for other in others]
    nearest = max(each, key=lambda claim: claim.here)
    return replace(nearest, agrees=all(c.agrees for c in each), margin=min(c.margin for c in each))


def all_below(
    points: Points,
    low: str,
    high: str,
    setting: str,
    paper: str,
    panel: str = "",
    factor: float = 1.0,
    why: str = "",
) -> Claim:
    """That `low` is at most factor·`high` at every x of a panel; the claim shows the largest ratio."""
    each = [
        is_below(points.at(low, x, panel), points.at(high, x, panel), setting, paper, factor)
        for x in points.xs(panel)
    ]
    agrees = all(claim.agrees for claim in each)
    worst = max(claim.here for claim in each if isinstance(claim.here, float))
    margin = min(claim.margin for claim in each)
    return Claim(f"{low} / {high}, at most", setting, paper, worst, agrees, margin, "" if agrees else why)


def is_near(point: Point, setting: str, paper: float, tolerance: float, why: str = "") -> Claim:
    """That a number is the paper's, up to the tolerance."""
    slack = tolerance - abs(point.value - paper)
    return by_slack(point.method, setting, paper, point.value, slack, point.error, why)


def is_true(method: str, setting: str, paper: str, here: float | str, agrees: bool) -> Claim:
    """Something that is not a comparison of two points, and has no standard error."""
    return Claim(method, setting, paper, here, agrees, inf if agrees else -inf)


def by_slack(
    method: str, setting: str, paper: float | str, here: float, slack: float, error: float, why: str = ""
) -> Claim:
    """A claim that agrees where `slack`, which has this standard error, is not negative."""
    agrees = slack >= 0
    margin = slack / error if error else (inf if agrees else -inf)
    return Claim(method, setting, paper, here, agrees, margin, "" if agrees else why)
