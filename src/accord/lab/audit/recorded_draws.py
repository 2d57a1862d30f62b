"""What one draw of noise was made from, and the probability of every outcome that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

_MOST_TUPLES = 4_000_000
"""Of tuples of parts: beyond, their law is not reckoned one by one."""
_SOME_PARTS = 5
_LOGS: dict[Any, NDArray[np.float64]] = {}
"""Laws of tuples that have been reckoned: tiny tables have many of them in common."""
_MOST_KEPT = 1_000


@dataclass(frozen=True)
class Added:
    """Laplace noise on an integer."""

    value: int
    scale: Fraction

    @property
    def shape(self) -> Any:
        """What must not depend on the data."""
        return self.scale

    @property
    def inputs(self) -> Any:
        """What must not depend on other draws."""
        return self.value, self.scale


@dataclass
class Boxed:
    """One noise on several integers, each of which is noted when its part of the noise is added to it."""

    spans: tuple[int, ...]
    scale: Fraction
    values: list[int | None]

    @property
    def shape(self) -> Any:
        return self.spans, self.scale, tuple(value is None for value in self.values)

    @property
    def inputs(self) -> Any:
        return self.spans, self.scale, tuple(self.values)

    def loss(self, there: Boxed) -> Fraction:
        """The largest |log ratio| over all outputs."""
        moves = (
            -(-abs(a - b) // span)
            for a, b, span in zip(self.values, there.values, self.spans, strict=True)
            if a is not None and b is not None
        )
        return max(moves, default=0) / self.scale


@dataclass(frozen=True)
class Chosen:
    """A choice with probability ∝ times·exp(score/scale)."""

    scores: Any
    scale: int
    times: Any = None
    """None: each once."""

    @property
    def shape(self) -> Any:
        return self.scale, len(self.scores), None if self.times is None else self.times.tobytes()

    @property
    def inputs(self) -> Any:
        return self.shape, self.scores.tobytes() if self.scores.dtype != object else tuple(self.scores)

    @cached_property
    def logs(self) -> NDArray[np.float64]:
        """Of the probabilities."""
        parts = np.asarray(self.scores - self.scores.max()).astype(np.float64) / self.scale
        parts = parts if self.times is None else parts + np.log(self.times)
        return np.asarray(parts - np.log(np.exp(parts).sum()))


@dataclass(frozen=True)
class Ordered:
    """Points in order, drawn together with probability ∝ Πt·exp(−E): the law of ordered.py, a second time."""

    weights: Any
    ps: tuple[Fraction, ...]
    scale: Fraction
    parts: int
    times: Any = None
    """None: each once."""

    @property
    def shape(self) -> Any:
        times = None if self.times is None else self.times.tobytes()
        return self.ps, self.scale, self.parts, len(self.weights), times

    @property
    def inputs(self) -> Any:
        return self.shape, tuple(self.weights.tolist())

    @property
    def is_small(self) -> bool:
        """Whether all tuples can be looked at one by one."""
        count = len(self.weights)
        return float(count * self.parts) ** 2 * float(count) ** (len(self.ps) - 2) <= _MOST_TUPLES

    def before(self, points: Any, parts: Any) -> NDArray[np.float64]:
        """F of these parts, over the scale."""
        own = np.asarray(self.weights, dtype=np.float64) / float(self.scale)
        below = np.cumsum(own) - own
        return np.asarray(below[points] + own[points] * (2 * parts + 1) / (2 * self.parts))

    @property
    def targets(self) -> list[float]:
        ends = (Fraction(0), *self.ps, Fraction(1))
        return [float((q - p) * int(self.weights.sum()) / self.scale) for p, q in pairwise(ends)]

    @property
    def logs(self) -> NDArray[np.float64]:
        """Of the probabilities of all tuples of points; those that are not in order are left out."""
        if self.inputs not in _LOGS:
            if len(_LOGS) >= _MOST_KEPT:
                _LOGS.clear()
            _LOGS[self.inputs] = self._logs()
        return _LOGS[self.inputs]

    def _logs(self) -> NDArray[np.float64]:
        count = len(self.weights)
        points, parts = np.divmod(np.arange(count * self.parts), self.parts)
        f, times = self.before(points, parts), 1.0 if self.times is None else self.times[points]
        first, *between, last = self.targets
        in_order = np.arange(f.size)[:, None] <= np.arange(f.size)
        whole = np.zeros((1, f.size)) + times * np.exp(-np.abs(f - first))  # by earlier points, and the part
        for target in between:
            step = np.where(in_order, times * np.exp(-np.abs(f - f[:, None] - target)), 0.0)
            by_point = whole.reshape(-1, count, 1, self.parts) @ step.reshape(count, self.parts, -1)
            whole = by_point.reshape(-1, f.size)
        whole = whole * np.exp(-np.abs(float(int(self.weights.sum()) / self.scale) - f - last))
        each = whole.reshape(-1, self.parts).sum(axis=1)
        places = np.indices((count,) * len(self.ps)).reshape(len(self.ps), -1)
        each = each[(np.diff(places, axis=0) >= 0).all(axis=0)]
        return np.asarray(np.log(each) - np.log(each.sum()))

    def most_moved(self, there: Ordered) -> float:
        """max E′ − E and max E − E′ together, over tuples of a few parts of every point where E bends."""
        heavy = np.flatnonzero((self.weights != 0) | (there.weights != 0))
        # F is the same at all points between two with somebody at them: the first of them stands for all
        points = np.unique(np.concatenate(([0], heavy, np.minimum(heavy + 1, len(self.weights) - 1))))
        some = np.unique(np.linspace(0, self.parts - 1, _SOME_PARTS).astype(np.int64))
        k, s = (grid.ravel() for grid in np.meshgrid(points, some, indexing="ij"))
        f, g = self.before(k, s), there.before(k, s)
        whole, whole_there = (float(int(law.weights.sum()) / law.scale) for law in (self, there))
        *targets, last = self.targets
        *targets_there, last_there = there.targets
        in_order = np.arange(f.size)[:, None] <= np.arange(f.size)
        lost = 0.0
        for sign in (1.0, -1.0):
            moved = np.abs(g - targets_there[0]) - np.abs(f - targets[0])
            most = sign * moved
            for t, u in zip(targets[1:], targets_there[1:], strict=True):
                moved = np.abs(g - g[:, None] - u) - np.abs(f - f[:, None] - t)
                most = np.where(in_order, most[:, None] + sign * moved, -np.inf).max(axis=0)
            moved = np.abs(whole_there - g - last_there) - np.abs(whole - f - last)
            lost += float((most + sign * moved).max())
        return lost


Draw: TypeAlias = Added | Boxed | Chosen | Ordered
