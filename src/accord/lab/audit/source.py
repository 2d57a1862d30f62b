"""The noise itself: its law, and where it comes from.

The noise of a release is a function of uniform integers that the operating system gives. Here the same code runs on integers that are given to it: on every sequence of decisions that
matters, with its probability, which gives the law of what is drawn; on one long sequence, where there are too many; and on none, to see whether it asks. Code that draws without
asking has a seed. The coin that shows heads with probability exp(−a/b) is looked at by itself first, and then taken as one decision.

The code is copied with another source, so that a release that goes on meanwhile keeps its own.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import count
from math import exp, inf, log
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from accord import release
from accord.lab.audit.empirical import log_ratio, lowest
from accord.lab.audit.findings import Seen

_COIN = "_exp_coin"
_COINS = ((0, 1), (1, 1), (1, 2), (5, 7), (1, 1000))
_SCALES = (Fraction(1), Fraction(2), Fraction(1, 2))
_LARGE = Fraction(10**18 + 9, 7)
"""About the largest scale that a release has: no double has its last digits."""
_CHOICES = (((0, -1, -3), 2), ((0, -2, -2, -5), 3), ((0, -99, -101, -250), 100))
_CHANCES = (0.05, 0.5)
_RUNS, _NEGLIGIBLE, _NONE = 6_000, 1e-10, 1e-300
_DRAWS, _SURE = 4_000, 1e-9
_FINE = 64
"""Uniform integers below this are tried one by one; larger ones at as many places, evenly."""


def secure() -> Any:
    """The noise of releases."""
    return vars(release)["SECURE"]


# ---- what it is given ------------------------------------------------------------------------------------------------


class _End(Exception):  # noqa: N818  a sequence of decisions that is not long enough
    pass


_ENDS = (_End, IndexError)
"""NumPy has its own word for it where an index is not decided."""


class Given:
    """Stands in for `secrets`. What comes out is decided beforehand, step by step; where nothing is, it notes what could be."""

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

    def toss(self, heads: float) -> bool:
        return heads == 1 or self.decide([1 - heads, heads]) == 1

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
        if self.value >= 0:
            return bool(self.value < other)
        return int(other) > 0 and self.given.toss(min(int(other), self.below) / self.below)

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __le__(self, other: Any) -> bool:
        return self < int(other) + 1

    def __gt__(self, other: Any) -> bool:
        return not self < int(other) + 1

    def __int__(self) -> int:
        if self.value < 0:
            places = min(self.below, _FINE)
            chosen = self.given.decide([1 / places] * places)
            self.value = chosen if places == self.below else self.below * (2 * chosen + 1) // (2 * places)
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    __hash__ = None  # type: ignore[assignment]


def _as_number(name: str) -> Callable[..., Any]:
    return lambda self, *others: getattr(int(self), name)(*map(int, others))


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod", "lshift", "rshift", "and", "or", "bool"):
    setattr(Uniform, f"__{_name}__", _as_number(f"__{_name}__"))


class Random:
    """Stands in for `secrets`, with a sequence that is always the same."""

    def __init__(self) -> None:
        rng = random.Random(0)
        self.randbelow, self.randbits, self.token_bytes = rng.randrange, rng.getrandbits, rng.randbytes


class Copy:
    """A noise whose code asks another source in the place of `secrets`; and `coin` in the place of its coin, if it has one."""

    def __init__(self, source: Any, coin: Callable[[int, int], bool] | None = None) -> None:
        self._noise, self._source, self._coin = secure(), source, coin

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._noise, name)
        if not isinstance(found, MethodType):
            return found
        function = found.__func__
        return MethodType(_with(function, self.names(function)), self)  # type: ignore[arg-type]

    def names(self, function: Any) -> dict[str, Any]:
        """The globals that a function sees."""
        names: dict[str, Any] = {**function.__globals__, "secrets": self._source}
        for name, value in function.__globals__.items():
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                names[name] = _with(value, names)
        if self._coin is not None and _COIN in names:
            names[_COIN] = self._coin
        return names


def _with(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)


# ---- what it draws ---------------------------------------------------------------------------------------------------


def law_of(draw: Callable[[Given], int]) -> tuple[dict[int, float], float]:
    """What a draw gives, with probabilities that are lower bounds; and the rest, which was not followed to the end. The likeliest first."""
    found: dict[int, float] = {}
    rest, order = 1.0, count()
    todo: list[tuple[float, int, tuple[int, ...]]] = [(-1.0, next(order), ())]
    for _ in range(_RUNS):
        if not todo or -todo[0][0] < _NEGLIGIBLE:
            break
        weight, _, decided = heapq.heappop(todo)
        given = Given(decided)
        try:
            drawn = int(draw(given))
        except _ENDS:
            if not given.next:
                raise
            for k, chance in enumerate(given.next):
                heapq.heappush(todo, (weight * chance, next(order), (*decided, k)))
        else:
            found[drawn] = found.get(drawn, 0.0) - weight
            rest += weight
    return found, max(0.0, rest)


def losses() -> Iterator[Seen]:
    """Of the coin, of draws of several scales, of choices, of keeping people: what is lost at least."""
    for a, b in _COINS if _COIN in Copy(None).names(secure().laplace.__func__) else ():
        yield _coin(a, b)
    for scale in _SCALES:
        law, rest = law_of(lambda given, s=scale: Copy(given, lambda a, b: given.toss(exp(-int(a) / b))).laplace(s))  # type: ignore[misc]
        steps = [log(p / (law.get(x + step, _NONE) + rest)) for x, p in law.items() for step in (-1, 1)]
        yield _seen(f"Laplace of scale {scale}", float(1 / scale), max(0.0, *steps), f"{1 - rest:.5%} of all draws")
    noise, told = Copy(Random()), f"{_DRAWS:,} draws from one sequence"
    drawn = [noise.laplace(_LARGE) for _ in range(_DRAWS)]
    depths = np.abs(np.arange(-1.875, 2, 0.25))
    counts = np.histogram([float(x / _LARGE) for x in drawn], np.append(np.arange(-2, 2, 0.25), 2))[0]
    yield _seen("Laplace of a large scale", 1.0, _steepest(counts.tolist(), depths.tolist()), told)
    digits = np.bincount([x % 8 for x in drawn], minlength=8)
    yield _seen("last digits of it", 1.0, _steepest(digits.tolist(), [0.0] * 8), told)
    for scores, size in _CHOICES:
        chosen = np.bincount([noise.choose(np.array(scores), size) for _ in range(_DRAWS)], minlength=len(scores))
        depths = (max(scores) - np.array(scores)) / size
        yield _seen(f"choice of scale {size}", 1.0, _steepest(chosen.tolist(), depths.tolist()), told)
    for chance in _CHANCES:
        kept = int(noise.keep(np.full(_DRAWS, int(chance * 2**63), dtype=np.uint64)).sum())
        yield _seen(f"kept with chance {chance}", chance, lowest(kept, _DRAWS, _SURE), told)


def _coin(a: int, b: int) -> Seen:
    """Heads with probability exp(−a/b), neither more nor less."""
    law, rest = law_of(lambda given: Copy(given).names(secure().laplace.__func__)[_COIN](a, b))
    right = abs(law.get(1, 0.0) - exp(-a / b)) <= rest + _NEGLIGIBLE
    return _seen(f"coin exp(−{a}/{b})", a / b, a / b if right else inf, f"heads: {law.get(1, 0.0):.9f}")


def _steepest(counts: Sequence[int], depths: Sequence[float]) -> float:
    """By how much the logarithm of a probability falls with depth, at least; 1 is right. Where depths are the same, it may not fall at all."""
    found = 0.0
    for i, j in ((i, j) for i in range(len(counts)) for j in range(len(counts)) if i != j and depths[j] >= depths[i]):
        fall = log_ratio(counts[i], _DRAWS, counts[j], _DRAWS, _SURE)
        if fall > 0:
            found = max(found, fall / (depths[j] - depths[i]) if depths[j] > depths[i] else inf)
    return found


def _seen(name: str, promised: float, found: float, said: str) -> Seen:
    return Seen("exact", "noise", name, "", "", promised, found, said)


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
        with suppress(*_ENDS):  # it stops at the first thing that it asks
            draw(Copy(given))
        said = "" if given.next else "it draws without asking the operating system"
        yield Seen("replay", "noise", name, "", "", 0.0, inf if said else 0.0, said)
