"""What quantiles, min and max share: questions about ranks, answered by points of a grid.

Sensitivity  The score of a point for the quantile p is minus the weight on its wrong side. Somebody of
             weight c whose value changes moves it by at most c; somebody who comes or goes, by at most
             max(p, 1 − p)·c. So a choice with P(point) ∝ exp(score/b) loses at most 2c/b under replace,
             and 2·max(p, 1 − p)·c/b under add-remove.
Size         Where the number of people is private, a part of everyone's charge goes to a noisy size of them:
             `spending` says how much, and mechanisms/rank.py why nobody loses more than their charge.
Error        in percentile points: an answer that 48 % of the people lie below is 2 points off the median. On
             that scale a person has the variance p(1 − p), whatever the values are, and a choice at charge 1
             the variance 8 (mechanisms/rank.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from accord.budget import IntArray
from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.gap import RANKS, GapScale
from accord.statistics.grid import OnGrid, on_grid
from accord.statistics.query import Answer, number_text
from accord.statistics.rounding import read_steps, round_step, smooth_cost, times_each
from accord.statistics.target_ranks import Ranks

SIZE_PART = Fraction(1, 10)
"""Of everyone's charge, for how many there are, where that is private."""
MIDPOINT_FACTOR = 0.98
"""Of the largest squared error that there is: what may miss by as much does not beat the middle."""


@dataclass(frozen=True)
class Spending:
    """On what a charge of 1 is spent, with weights that are charges."""

    choices: tuple[Fraction, ...]
    """Of each quantile the scale of its choices: P(r) ∝ exp(score(r)/scale).

    Drawn together, each is 2/r: P(off by a or more) falls as exp(−r·a/2).
    """
    size: Fraction | None
    """The scale of the noise on the weight of all; None: it is public, or not released."""
    rate: Fraction | None = None
    """r, where all are drawn together; None: each by itself."""

    @property
    def variance(self) -> float:
        """Of one choice for each quantile, which falls off as exp(−|rank|·W/scale), at the weight W = 1.

        Of a tuple that is drawn together, 8·J·(2J + 1)/3r² (docs/proofs/joint.md).
        """
        if self.rate is not None:
            outputs = len(self.choices)
            return float(Fraction(8 * outputs * (2 * outputs + 1), 3) / self.rate**2)
        return float(sum(2 * scale**2 for scale in self.choices))

    def times(self, factor: int) -> Spending:
        """With scales so many times larger: for weights that are so many times the charge."""
        size = None if self.size is None else factor * self.size
        return Spending(tuple(factor * scale for scale in self.choices), size)


def spending(
    ps: Sequence[Fraction], relation: Relation, tells_size: bool, draws: int = 1, together: bool = False
) -> Spending:
    """How a charge is spent on quantiles, each drawn so many times, and on the size of whom they are about.

    `together`: all quantiles are one draw. The proofs are in mechanisms/rank.py and docs/proofs/joint.md.

    >>> from accord.relation import ADD_REMOVE, REPLACE
    >>> spending([Fraction(1, 2)], ADD_REMOVE, True)
    Spending(choices=(Fraction(10, 9),), size=Fraction(10, 1), rate=None)
    >>> spending([Fraction(1, 2)], REPLACE, True)
    Spending(choices=(Fraction(2, 1),), size=Fraction(2, 1), rate=None)
    """
    if together:
        return _spending_together(ps, relation, tells_size)
    outputs = draws * len(ps)
    if not relation.people_are_public:
        part = 1 - SIZE_PART if tells_size else Fraction(1)
        scales = tuple(2 * outputs * relation.rank_change(p) / part for p in ps)
        return Spending(scales, 1 / SIZE_PART if tells_size else None)
    if not tells_size:
        return Spending((Fraction(2 * outputs),) * len(ps), None)
    changes = [max(p, 1 - p) for p in ps]  # what somebody who comes in or goes out does to a score
    mean = sum(changes, Fraction(0)) / len(ps)
    rate = min(Fraction(1), (1 - SIZE_PART) / mean)
    return Spending((2 * outputs / rate,) * len(ps), 1 / (1 - rate * mean))


def _spending_together(ps: Sequence[Fraction], relation: Relation, tells_size: bool) -> Spending:
    """Of one tuple: who comes or goes loses r·(1 − δ) of their charge, δ the smallest share between two p."""
    most = 1 - min(q - p for p, q in pairwise((Fraction(0), *ps, Fraction(1))))
    size = None
    if not relation.people_are_public:
        rate = (1 - SIZE_PART if tells_size else 1) / relation.rank_change(most)
        size = 1 / SIZE_PART if tells_size else None
    elif tells_size:
        rate = min(Fraction(1), (1 - SIZE_PART) / most)
        size = 1 / (1 - rate * most)
    else:
        rate = Fraction(1)
    return Spending((2 / rate,) * len(ps), size, rate)


_RankQuery = TypeVar("_RankQuery", bound="RankQuery")


@dataclass(frozen=True)
class RankQuery(OnGrid):
    """A question about ranks."""

    rounded: tuple[Fraction, ...] = ()
    """The steps to which people round their values, as declared; empty: they may be smooth."""

    unit = "percentile points"
    is_counted: ClassVar[bool] = True
    default_cells: ClassVar[int] = 2**16
    most_cells: ClassVar[int] = 2**22
    takes_dates: ClassVar[bool] = True

    @property
    def points(self) -> int:
        """How many points can be answered."""
        return self.cells + 1

    @cached_property
    def times(self) -> IntArray | None:
        """How many times each point counts; None: once (rounding.py)."""
        return times_each(self.low, self.high, self.step, self.rounded) if self.rounded else None

    @property
    def gap_scale(self) -> GapScale:
        return RANKS

    def describe(self) -> dict[str, Any]:
        rounded = {"rounded": [number_text(step) for step in self.rounded]} if self.rounded else {}
        return {**super().describe(), **rounded}

    def about_bias(self, kappa: float) -> str:
        return (
            f"κ = {kappa:.3f}: if the distribution functions of any two levels differ by at most D "
            "percentile points, the answer is off by at most κ·D points beyond the interval."
        )

    @property
    def _about_rounding(self) -> str:
        return (
            f"most values are rounded, to multiples of {_listed(self.rounded)}, as declared, and such points "
            "are likelier; if values are smooth, the noise is larger by up to "
            f"{100 * (smooth_cost(self.rounded) - 1):.0f} %, on average over where they lie: the predicted "
            "error has that in it, and is too large where they are rounded"
        )

    def assumptions(self) -> list[str]:
        bounds, _, missing = super().assumptions()
        return [
            bounds,
            f"the answer is one of {self.points:,} points, in steps of {self.step_text}",
            *([self._about_rounding] if self.rounded else []),
            missing,
            "the predicted error is for values that lie close together around the answer; "
            "the interval holds for any",
        ]


def _listed(steps: Sequence[Fraction]) -> str:
    *first, last = map(number_text, steps)
    return f"{', '.join(first)} or {last}" if first else last


def on_rank_grid(
    kind: type[_RankQuery],
    column: str,
    bounds: Any,
    step: Any,
    missing: Any,
    per_person: str | None,
    rounded: Any,
    **fields: Any,
) -> _RankQuery:
    """As `on_grid`; with `rounded`, a grid of round points where no step is given and the bounds allow it."""
    query = on_grid(kind, column, bounds, step, missing, per_person, **fields)
    if rounded is None or rounded is False:
        return query
    if query.kind != "number":
        raise QueryError(
            "rounded= is about numbers, and the bounds are dates, which have no decimal steps. Leave it out; "
            "step= may be a number of days."
        )
    if step is None and (size := round_step(query.low, query.high, kind.default_cells)) is not None:
        query = on_grid(kind, column, bounds, size, missing, per_person, **fields)
        query = replace(query, declared=query.declared - {"step"})
    return replace(query, rounded=read_steps(rounded, query.low, query.high, query.step))


@dataclass(frozen=True)
class RankTarget(Ranks):
    """Of everyone, of the people who are there, or of the members of a private part."""

    query: Any
    """A RankQuery."""

    @property
    def points(self) -> int:
        points: int = self.query.points
        return points

    @property
    def times(self) -> IntArray | None:
        times: IntArray | None = self.query.times
        return times

    @property
    def smooth_cost(self) -> float:
        return smooth_cost(self.query.rounded)

    def middle(self, people: int) -> Answer:
        return self.finish([Fraction(self.query.cells // 2)] * self.outputs, people)

    def point(self, cell: Fraction) -> Any:
        """A point of the grid. An average of points is moved to the nearest one."""
        return self.query.point(self.query.low + self.query.step * round(cell))

    def about_size(self, is_free: bool) -> list[str]:
        """What is spent on how many there are, and what that is good for."""
        if not self.tells_size:
            return []
        spent = "a tenth of everyone's charge is spent on it"
        if is_free:
            spent = "it is released with noise as well, within the same charge"
        return [
            f"how many it is about is private; {spent}, so that the interval holds for any number of people "
            "of any levels, if these do not go with their values"
        ]
