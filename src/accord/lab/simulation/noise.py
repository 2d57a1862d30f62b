"""Noises for the lab: seeded, so that a simulation can be repeated. Never for releases."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from accord import ordered
from accord.noise import MILLION

_CONTINUOUS = 2**20
"""From this scale on, steps of 1 do not show."""
_LARGEST = 2**62
"""Beyond it, integers are drawn as floats."""


class Seeded:
    """The laws of `accord.noise`, from a NumPy generator.

    Floats take part: equal in law to about 1 in 10⁹, fast, and worth nothing for privacy.
    """

    __slots__ = ("rng",)

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def laplace(self, scale: Fraction) -> int:
        size = float(scale)
        if size >= _CONTINUOUS:
            return round(self.rng.laplace(0.0, size))
        stop = -np.expm1(-1 / size)
        first, second = self.rng.geometric(stop, 2)
        return int(first) - int(second)

    def box(self, spans: Sequence[int], scale: Fraction = MILLION) -> Sequence[int]:
        stop, places = -np.expm1(-1 / float(scale)), np.arange(1, len(spans) + 1)
        halves = 0.5 / np.array([float(span) for span in spans])
        while True:
            r = int((self.rng.geometric(stop, len(spans) + 1) - 1).sum())
            if self.rng.random() < np.prod((r + halves) / (r + places)):
                return [self._within(r * span) for span in spans]

    def _within(self, end: int) -> int:
        """A uniform integer from −end to end."""
        if end < _LARGEST:
            return int(self.rng.integers(-end, end, endpoint=True))
        return round(float(end) * self.rng.uniform(-1.0, 1.0))

    def choose(self, scores: Any, scale: int, times: Any = None) -> int:
        gaps = np.asarray(scores - scores.max(), dtype=np.float64)
        weights = np.cumsum(np.exp(gaps / scale) * (1 if times is None else times))
        return int(np.searchsorted(weights, self.rng.random() * weights[-1], side="right"))

    def ordered(
        self, weights: Any, ps: Sequence[Fraction], scale: Fraction, parts: int, times: Any = None
    ) -> Sequence[int]:
        """By the exact draw itself, which floats propose."""
        law = ordered.OrderedLaw(weights, tuple(ps), scale, parts, times)
        return ordered.draw(law, _Integers(self.rng))

    def words(self, count: int) -> Any:
        return self.rng.integers(0, 2**63, count, dtype=np.uint64)

    def keep(self, chances: Any) -> Any:
        return self.words(chances.size) < chances


class _Integers:
    """Uniform integers of any size, in the place of `secrets`."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def randbits(self, k: int) -> int:
        return int.from_bytes(self.rng.bytes((k + 7) // 8), "little") >> (-k % 8)

    def randbelow(self, exclusive_upper_bound: int) -> int:
        if exclusive_upper_bound < _LARGEST:
            return int(self.rng.integers(exclusive_upper_bound))
        while (drawn := self.randbits(exclusive_upper_bound.bit_length())) >= exclusive_upper_bound:
            pass
        return drawn
