"""The noise itself: its exact law, and where it comes from.

The noise of a release is a function of uniform integers that the operating system gives. Here the same code runs on integers that are given to it one by one: first on every
sequence of them that matters, with its probability, which gives the law of what is drawn; then with a record of what it asked for. Code that draws without asking has a seed.

The code is copied with another source, so that a release that goes on meanwhile keeps its own.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import count
from math import inf, log
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from accord import release
from accord.lab.audit.empirical import log_ratio, lowest
from accord.lab.audit.findings import Seen

_SCALES = (Fraction(1), Fraction(2), Fraction(1, 2))
_CHOICES = (((0, -1, -3), 2), ((0, -2, -2, -5), 3))
_RUNS = 8_000
_CHANCES = (0.05, 0.5)
_DRAWS, _SURE = 4_000, 1e-9
_NONE = 1e-300
_FINE = 64
"""Uniform integers below this are tried one by one; larger ones at as many places, evenly."""


class _End(Exception):  # noqa: N818  a sequence of decisions that is not long enough
    pass


class Given:
    """Stands in for `secrets`. What comes out is decided beforehand, step by step; where nothing is, it says what could be."""

    def __init__(self, decided: tuple[int, ...]) -> None:
        self.decided, self.used = decided, 0
        self.next: list[float] = []
        """The chances of what is not decided yet."""

    def decide(self, chances: list[float]) -> int:
        if self.used == len(self.decided):
            self.next = chances
            raise _End
        self.used += 1
        return self.decided[self.used - 1]

    def randbelow(self, below: int) -> Uniform:
        return Uniform(self, below)

    def randbits(self, bits: int) -> Uniform:
        return Uniform(self, 2**bits)

    def token_bytes(self, size: int) -> bytes:
        return bytes(int(Uniform(self, 256)) for _ in range(size))


class Uniform:
    """A uniform integer of which no more is decided than what is asked: whether it is below a number, or which one it is."""

    def __init__(self, given: Given, below: int) -> None:
        self.given, self.below, self.value = given, below, -1

    def __lt__(self, other: Any) -> bool:
        least = min(max(int(other), 0), self.below)
        if least in (0, self.below):
            return least > 0
        return self.given.decide([1 - least / self.below, least / self.below]) == 1

    def __int__(self) -> int:
        if self.value < 0:
            places = min(self.below, _FINE)  # of a fine one, as many places
            chosen = self.given.decide([1 / places] * places)
            self.value = chosen if places == self.below else self.below * (2 * chosen + 1) // (2 * places)
        return self.value

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(int(self))

    def __add__(self, other: Any) -> int:
        return int(self) + int(other)

    __radd__ = __add__


class Copy:
    """A noise whose code asks another source in the place of `secrets`."""

    def __init__(self, noise: Any, source: Any) -> None:
        self._noise, self._source = noise, source

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._noise, name)
        return MethodType(self._copied(found.__func__), self) if isinstance(found, MethodType) else found

    def _copied(self, function: Any) -> FunctionType:
        names: dict[str, Any] = {**function.__globals__, "secrets": self._source}
        for name, value in function.__globals__.items():
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                names[name] = _with(value, names)
        return _with(function, names)


def _with(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


def secure() -> Any:
    """The noise of releases."""
    return vars(release)["SECURE"]


def law_of(draw: Callable[[Any], int]) -> tuple[dict[int, float], float]:
    """What a draw gives, with probabilities that are lower bounds; and the rest, which was not followed to the end. The likeliest first."""
    found: dict[int, float] = {}
    rest, order = 1.0, count()
    todo: list[tuple[float, int, tuple[int, ...]]] = [(-1.0, next(order), ())]
    for _ in range(_RUNS):
        if not todo:
            break
        weight, _, decided = heapq.heappop(todo)
        given = Given(decided)
        try:
            drawn = int(draw(Copy(secure(), given)))
        except Exception:
            if not given.next:  # NumPy has its own word for a fault within it
                raise
            for k, chance in enumerate(given.next):
                heapq.heappush(todo, (weight * chance, next(order), (*decided, k)))
        else:
            found[drawn] = found.get(drawn, 0.0) - weight
            rest += weight
    return found, max(0.0, rest)


def losses() -> Iterator[Seen]:
    """Of draws of several scales: a lower bound of the loss between neighboring integers, or of scores that differ by as much as the scale."""
    for scale in _SCALES:
        law, rest = law_of(lambda noise, scale=scale: noise.laplace(scale))  # type: ignore[misc]
        steps = [log(p / (law.get(x + step, _NONE) + rest)) for x, p in law.items() for step in (-1, 1)]
        said = f"at least; {1 - rest:.1%} of what can be drawn was followed"
        yield Seen("exact", "noise", f"Laplace of scale {scale}", "", "", float(1 / scale), max(0.0, *steps), said)
    noise = Copy(secure(), Random(0))
    for scores, size in _CHOICES:
        drawn = np.bincount(
            [noise.choose(np.array(scores), size) for _ in range(_DRAWS)], minlength=len(scores)
        ).tolist()
        ratios = [
            log_ratio(drawn[i], _DRAWS, drawn[j], _DRAWS, _SURE) * size / (scores[i] - scores[j])
            for i in range(len(scores))
            for j in range(len(scores))
            if scores[i] > scores[j]
        ]
        yield Seen(
            "exact",
            "noise",
            f"choice of scale {size}",
            "",
            "",
            1.0,
            max(0.0, *ratios),
            f"at least; by {_DRAWS:,} choices from one sequence",
        )

    for chance in _CHANCES:
        keep = noise.keep(np.full(_DRAWS, int(chance * 2**63), dtype=np.uint64))
        said = f"at least; by {_DRAWS:,} people from one sequence"
        yield Seen(
            "exact", "noise", f"kept with chance {chance}", "", "", chance, lowest(int(keep.sum()), _DRAWS, _SURE), said
        )


class Random:
    """Stands in for `secrets`, with a sequence that is always the same."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.randbelow, self.randbits, self.token_bytes = rng.randrange, rng.getrandbits, rng.randbytes


def sources() -> Iterator[Seen]:
    """Whether every draw asks the operating system."""
    asking: dict[str, Callable[[Any], Any]] = {
        "Laplace": lambda noise: noise.laplace(Fraction(1000)),
        "choice": lambda noise: noise.choose(np.array([0, -1, -3]), 2),
        "keeping people": lambda noise: noise.keep(np.array([2**62] * 3, dtype=np.uint64)),
        "random words": lambda noise: noise.words(3),
    }
    for name, draw in asking.items():
        given = Given(())
        with suppress(Exception):  # it stops at the first thing that it asks
            draw(Copy(secure(), given))
        said = "" if given.next else "it draws without asking the operating system"
        yield Seen("replay", "noise", name, "", "", 0.0, inf if said else 0.0, said)
