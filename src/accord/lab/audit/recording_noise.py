"""A noise that draws nothing: it decides what comes out of every draw, and records what it was made from.

It stands in for the noise of releases, which ask for no more than what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from accord.lab.audit.recorded_draws import Added, Boxed, Chosen, Draw, Ordered
from accord.noise import MILLION

SURE = 2**63
_MOST_DRAWS = 100_000


@dataclass(frozen=True)
class Outcome:
    """What comes out of the k-th draw, whatever the data are."""

    added: Callable[[int], int]
    """The noisy integer, by the number of the draw."""
    chosen: Callable[[int], int]
    """The place of what is chosen, by how many there are to choose from."""


OUTCOMES = (
    Outcome(lambda k: 3 * 10**6 + 17 * k, lambda size: 0),
    Outcome(lambda k: k % 2, lambda size: size - 1),
    Outcome(lambda k: -(10**6) - 13 * k, lambda size: size // 2),
)
"""Large, about 0, and below it; the first, the last, the middle: an answer's branches may depend on that."""


class Leak(Exception):  # noqa: N818  it is what an audit looks for
    """Something moves that no noise protects; the text says what, from public things."""


class Adaptive(Leak):
    """What is drawn depends on earlier draws, of which nothing can be said draw by draw.

    accord's mechanisms have no need of it.
    """


class _PendingDraw:
    """A draw that happens when it is added to something."""

    __array_ufunc__ = None

    def __init__(self, add: Callable[[int], int]) -> None:
        self.add, self.used = add, False

    def __radd__(self, value: Any) -> int:
        if int(value) != value:
            raise Leak("noise is added to a number that is not whole")
        if self.used:
            raise Leak("one draw is added to two numbers, whose difference has no noise")
        self.used = True
        return self.add(int(value))

    __add__ = __radd__


class RecordingNoise:
    """A noise that draws nothing: it decides what comes out, and records what it was made from."""

    def __init__(
        self,
        outcome: Outcome = OUTCOMES[0],
        kept: Sequence[bool] = (),
        row_chances: Sequence[int] | None = None,
    ) -> None:
        """`kept`: who is, in the order of being asked; beyond that, everyone who can be.

        `row_chances`: of every row, in 2⁻⁶³; without them, every row is kept.
        """
        self.outcome, self.kept, self.row_chances = outcome, kept, row_chances
        self.draws: list[Draw] = []
        self.coins: list[tuple[int, bool]] = []
        """Of everyone who was asked about: their chance, and whether they are kept."""

    def laplace(self, scale: Fraction) -> Any:
        if not isinstance(scale, Fraction) or scale <= 0:
            raise Leak("a scale of noise is not a positive fraction")

        def add(value: int) -> int:
            self.record(Added(value, scale))
            return self.outcome.added(len(self.draws))

        return _PendingDraw(add)

    def box(self, spans: Sequence[int], scale: Fraction = MILLION) -> Sequence[Any]:
        if not isinstance(scale, Fraction) or scale <= 0 or any(int(s) != s or s < 1 for s in spans):
            raise Leak("the spans of a box are not whole numbers, or its scale is not a positive fraction")
        draw = Boxed(tuple(spans), scale, [None] * len(spans))
        self.record(draw)
        first = len(self.draws)

        def coordinate(k: int) -> _PendingDraw:
            def add(value: int) -> int:
                draw.values[k] = value
                return self.outcome.added(first + k)

            return _PendingDraw(add)

        return [coordinate(k) for k in range(len(spans))]

    def choose(self, scores: Any, scale: int, times: Any = None) -> int:
        self.record(Chosen(np.array(scores), int(scale), None if times is None else np.array(times)))
        return self.outcome.chosen(len(scores))

    def ordered(
        self, weights: Any, ps: Sequence[Fraction], scale: Fraction, parts: int, times: Any = None
    ) -> Sequence[int]:
        held = np.array(weights), tuple(ps), Fraction(scale), int(parts)
        self.record(Ordered(*held, None if times is None else np.array(times)))
        return [self.outcome.chosen(len(weights))] * len(ps)

    def record(self, draw: Draw) -> None:
        self.draws.append(draw)
        if len(self.draws) > _MOST_DRAWS:
            raise Adaptive("it draws without end")

    def keep(self, chances: Any) -> Any:
        return np.array([self._coin(int(c)) for c in chances], dtype=bool)

    def words(self, count: int) -> Any:
        """For each row, the largest word below its chance if it is kept, else the smallest that is not."""
        if self.row_chances is None:
            return np.zeros(count, dtype=np.uint64)
        if len(self.row_chances) != count:
            raise Leak("the number of random words is not that of the rows")
        words = [c - 1 if self._coin(c) else min(c, SURE - 1) for c in self.row_chances]
        return np.array(words, dtype=np.uint64)

    def _coin(self, chance: int) -> bool:
        k = len(self.coins)
        heads = chance > 0 and (chance >= SURE or k >= len(self.kept) or self.kept[k])
        self.coins.append((chance, heads))
        return heads

    @property
    def weight(self) -> float:
        """The probability of who is kept."""
        return float(np.prod([(c if heads else SURE - c) / SURE for c, heads in self.coins] or [1.0]))


class FixedWords(RecordingNoise):
    """Gives the random words that it has."""

    def __init__(self, fixed: Any) -> None:
        super().__init__()
        self.fixed = fixed

    def words(self, count: int) -> Any:
        return self.fixed
