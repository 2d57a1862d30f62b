"""Sources of random integers that stand in for `secrets`, and the law of what is drawn from them.

`Given` decides nothing that it was not told: where a decision is missing, it says what could be, with which
probability. So every sequence of decisions can be followed. `Recorded` gives a random sequence, or one that
was recorded before, and notes every question.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from types import CodeType, FrameType
from typing import Any

import numpy as np

Decided = tuple[int, ...]
_RUNS, NEGLIGIBLE = 6_000, 1e-10
_TRIES = 8
"""So many sequences, at random, must end alike for two places in the code to count as one."""
_AGAIN = 4
_FINE = 64
"""Uniform integers below this are tried one by one; larger ones at as many places, evenly."""


Place = list[tuple[CodeType, int, dict[str, Any]]]
"""Of each function that is under way: its code, how far it has come, and its variables."""


class _End(Exception):  # noqa: N818  a sequence of decisions that is not long enough
    pass


ENDS = (_End, IndexError)
"""NumPy has its own word for it where an index is not decided."""


class Given:
    """Stands in for `secrets`.

    What comes out is decided beforehand, step by step; where nothing is, it notes what could be.
    """

    def __init__(self, decided: Decided) -> None:
        self.decided, self.used = decided, 0
        self.next: list[float] = []
        """The chances of what is not decided yet."""
        self.place: Place = []
        """Where in the code it is asked."""

    def decide(self, chances: list[float]) -> int:
        if self.used == len(self.decided):
            self.next, self.place = chances, _place(sys._getframe(1))
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
    """A uniform integer of which no more is decided than what is asked: whether it is below a number, or
    which one it is.
    """

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
            chosen = self.given.decide([1 / places] * places) if places > 1 else 0
            self.value = chosen if places == self.below else self.below * (2 * chosen + 1) // (2 * places)
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    __hash__ = None  # type: ignore[assignment]


def _as_number(name: str) -> Callable[..., Any]:
    return lambda self, *others: getattr(int(self), name)(*map(int, others))


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "floordiv",
    "mod",
    "lshift",
    "rshift",
    "and",
    "or",
    "bool",
):
    setattr(Uniform, f"__{_name}__", _as_number(f"__{_name}__"))


class Other(Exception):  # noqa: N818  it is what an audit looks for
    """Something else is asked than what was recorded."""


class Recorded:
    """Stands in for `secrets`: gives what was recorded, or random integers; and notes what was asked, and
    what it gave.
    """

    def __init__(self, rng: random.Random, record: Sequence[tuple[Any, Any]] | None = None) -> None:
        self._rng, self._record = rng, record
        self.record: list[tuple[Any, Any]] = []

    def _give(self, question: tuple[str, int], fresh: Callable[[int], Any]) -> Any:
        if self._record is None:
            answer = fresh(question[1])
        else:
            asked, answer = (*self._record, (None, None))[len(self.record)]
            if asked != question:
                raise Other
        self.record.append((question, answer))
        return answer

    def randbelow(self, below: int) -> int:
        return int(self._give(("randbelow", below), self._rng.randrange))

    def randbits(self, bits: int) -> int:
        return int(self._give(("randbits", bits), self._rng.getrandbits))

    def token_bytes(self, size: int) -> bytes:
        return bytes(self._give(("token_bytes", size), self._rng.randbytes))


# ---- the law of a draw -------------------------------------------------------------------------------------


def law_of(draw: Callable[[Given], Any], runs: int = _RUNS) -> tuple[dict[Any, float], float]:
    """What a draw gives, with probabilities that are lower bounds; and the rest, which was not followed to
    the end.

    The likeliest decisions are followed first. Where a draw begins anew (what it drew was rejected),
    everything from there on is as it was from the
    beginning: with probability R it does, so that each probability is 1/(1 − R) times what it is without. It
        begins anew if it asks the same at the same
    place in the code, with the same variables as then (others had no value yet, so that nothing reads the one
    that they have now); and sequences that end a draw must give the same draw from there, also after several
    such beginnings.
    """
    return _Tree(draw).law(runs)


def _place(frame: FrameType | None) -> Place:
    place: Place = []
    while frame is not None and frame.f_code is not _Tree.run.__code__:
        place.append(
            (frame.f_code, frame.f_lasti, {name: _plain(value) for name, value in frame.f_locals.items()})
        )
        frame = frame.f_back
    return place


def _plain(value: Any) -> Any:
    """What can be compared with what it is in another run."""
    if isinstance(value, Uniform):
        return value.below, value.value
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, int | float | Fraction | str | bytes | tuple) else type(value)


def _is_at(first: Place, place: Place) -> bool:
    return len(first) == len(place) and all(
        one[:2] == other[:2]
        and all(name in other[2] and other[2][name] == value for name, value in one[2].items())
        for one, other in zip(first, place, strict=True)
    )


class _Tree:
    def __init__(self, draw: Callable[[Given], Any]) -> None:
        self.draw, self.order, self.rng = draw, count(), random.Random(0)
        self.found: dict[Any, float] = {}
        self.ends: list[Decided] = []
        self.todo: list[tuple[float, int, Decided]] = []
        self.alike: list[tuple[float, Decided, list[float]]] = []
        """Where the same is asked as in the beginning."""
        self.anew: list[Decided] = []
        self.first = Given(())

    def run(self, decided: Decided) -> tuple[Given, Any]:
        """With what is drawn; None if these decisions do not suffice."""
        given = Given(decided)
        try:
            drawn = self.draw(given)
            return given, tuple(map(int, drawn)) if isinstance(drawn, tuple) else int(drawn)
        except ENDS:
            if not given.next:
                raise
            return given, None

    def law(self, runs: int) -> tuple[dict[Any, float], float]:
        again = 0.0
        self.follow(1.0, (), [1.0])
        for _ in range(runs):
            if not self.todo or -self.todo[0][0] < NEGLIGIBLE:
                if not self.alike:
                    break
                weight, decided, chances = self.alike.pop()
                if self.begins_anew(decided):
                    again += weight
                    self.anew.append(decided)
                else:
                    self.follow(weight, decided, chances)
                continue
            weight, _, decided = heapq.heappop(self.todo)
            given, drawn = self.run(decided)
            self.first = given if not self.first.next else self.first
            if drawn is not None:
                self.found[drawn] = self.found.get(drawn, 0.0) - weight
                self.ends.append(decided)
            elif decided and given.next == self.first.next and _is_at(self.first.place, given.place):
                self.alike.append((-weight, decided, given.next))
            else:
                self.follow(-weight, decided, given.next)
        whole = max(1 - again, NEGLIGIBLE)
        rest = sum(weight for weight, *_ in self.alike) - sum(weight for weight, *_ in self.todo)
        return {x: p / whole for x, p in self.found.items()}, rest / whole

    def follow(self, weight: float, decided: Decided, chances: list[float]) -> None:
        for k, chance in enumerate(chances):
            more = (*decided, k) if len(chances) > 1 else decided
            heapq.heappush(self.todo, (-weight * chance, next(self.order), more))

    def begins_anew(self, decided: Decided) -> bool:
        for _ in range(_TRIES if self.ends else 0):
            end = self.rng.choice(self.ends)
            before = self.rng.choices([*self.anew, decided], k=self.rng.randrange(_AGAIN))
            whole = (*(k for part in before for k in part), *decided, *end)
            given, drawn = self.run(whole)
            if given.used != len(whole) or drawn != self.run(end)[1]:
                return False
        return bool(self.ends)
