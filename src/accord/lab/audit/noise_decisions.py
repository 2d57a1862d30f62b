"""Sources of random integers that stand in for `secrets`, and the law of what is drawn from them.

`DecidedSource` decides nothing that it was not told: where a decision is missing, it says what could be, with
which probability. So every sequence of decisions can be followed. `RecordedSource` gives a random sequence,
or one that was recorded before, and notes every question.
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

Decisions = tuple[int, ...]
_RUNS, NEGLIGIBLE = 6_000, 1e-10
_TRIES = 8
"""So many sequences, at random, must end alike for two places in the code to count as one."""
_RESTARTS = 4
"""Fewer than so many restarts come before each of them."""
_FINE = 64
"""Uniform integers below this are tried one by one; larger ones at as many places, evenly."""


Place = list[tuple[CodeType, int, dict[str, Any]]]
"""Of each function that is under way: its code, how far it has come, and its variables."""


class _Undecided(Exception):  # noqa: N818  a sequence of decisions that is not long enough
    pass


UNDECIDED = (_Undecided, IndexError)
"""NumPy has its own word for it where an index is not decided."""


class DecidedSource:
    """Stands in for `secrets`: what comes out is decided beforehand, step by step.

    At the first question for which nothing is decided, it notes what could be, and stops.
    """

    def __init__(self, decisions: Decisions) -> None:
        self.decisions, self.used = decisions, 0
        self.chances: list[float] = []
        """Of what could be decided next."""
        self.place: Place = []
        """Where in the code that is asked."""

    def decide(self, chances: list[float]) -> int:
        if self.used == len(self.decisions):
            self.chances, self.place = chances, _place(sys._getframe(1))
            raise _Undecided
        self.used += 1
        return self.decisions[self.used - 1]

    def toss(self, heads: float) -> bool:
        return heads == 1 or self.decide([1 - heads, heads]) == 1

    def randbelow(self, below: int) -> Uniform:
        return Uniform(self, below)

    def randbits(self, bits: int) -> Uniform:
        return Uniform(self, 2**bits)

    def token_bytes(self, size: int) -> bytes:
        return bytes(int(Uniform(self, 256)) for _ in range(size))


class Uniform:
    """A uniform integer of which no more is decided than what is asked.

    That is whether it is below a number, or which one it is.
    """

    def __init__(self, source: DecidedSource, below: int) -> None:
        self.source, self.below, self.value = source, below, -1

    def __lt__(self, other: Any) -> bool:
        if self.value >= 0:
            return bool(self.value < other)
        return int(other) > 0 and self.source.toss(min(int(other), self.below) / self.below)

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __le__(self, other: Any) -> bool:
        return self < int(other) + 1

    def __gt__(self, other: Any) -> bool:
        return not self < int(other) + 1

    def __int__(self) -> int:
        if self.value < 0:
            places = min(self.below, _FINE)
            chosen = self.source.decide([1 / places] * places) if places > 1 else 0
            self.value = chosen if places == self.below else self.below * (2 * chosen + 1) // (2 * places)
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    __hash__ = None  # type: ignore[assignment]


def _as_number(name: str) -> Callable[..., Any]:
    return lambda self, *others: getattr(int(self), name)(*map(int, others))


_ARITHMETIC = ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod")
for _name in (*_ARITHMETIC, "lshift", "rshift", "and", "or", "bool"):
    setattr(Uniform, f"__{_name}__", _as_number(f"__{_name}__"))


class Diverged(Exception):  # noqa: N818  it is what an audit looks for
    """Something else is asked than what was recorded."""


class RecordedSource:
    """Stands in for `secrets`: gives random integers, or those of a record, and records what was asked."""

    def __init__(self, rng: random.Random, replayed: Sequence[tuple[Any, Any]] | None = None) -> None:
        self._rng, self._replayed = rng, replayed
        self.record: list[tuple[Any, Any]] = []
        """Every question, and what was given."""

    def _give(self, question: tuple[str, int], fresh: Callable[[int], Any]) -> Any:
        if self._replayed is None:
            answer = fresh(question[1])
        else:
            asked, answer = (*self._replayed, (None, None))[len(self.record)]
            if asked != question:
                raise Diverged
        self.record.append((question, answer))
        return answer

    def randbelow(self, below: int) -> int:
        return int(self._give(("randbelow", below), self._rng.randrange))

    def randbits(self, bits: int) -> int:
        return int(self._give(("randbits", bits), self._rng.getrandbits))

    def token_bytes(self, size: int) -> bytes:
        return bytes(self._give(("token_bytes", size), self._rng.randbytes))


# ---- the law of a draw -------------------------------------------------------------------------------------


def law_of(draw: Callable[[DecidedSource], Any], runs: int = _RUNS) -> tuple[dict[Any, float], float]:
    """Lower bounds of the probability of everything that can be drawn, and of all the rest together.

    The rest was not followed to the end: the likeliest decisions are followed first.

    Where a draw begins anew (what it drew was rejected), everything from there on is as it was from the
    beginning: with probability R it does, so that each probability is 1/(1 − R) times what it is without. It
    begins anew if it asks the same at the same place in the code, with the same variables as then (others had
    no value yet, so that nothing reads the one that they have now); and sequences that end a draw must give
    the same draw from there, also after several such beginnings.
    """
    return _DecisionTree(draw).law(runs)


def _place(frame: FrameType | None) -> Place:
    place: Place = []
    while frame is not None and frame.f_code is not _DecisionTree.run.__code__:
        variables = {name: _comparable(value) for name, value in frame.f_locals.items()}
        place.append((frame.f_code, frame.f_lasti, variables))
        frame = frame.f_back
    return place


def _comparable(value: Any) -> Any:
    """What can be compared with what it is in another run."""
    if isinstance(value, Uniform):
        return value.below, value.value
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, int | float | Fraction | str | bytes | tuple) else type(value)


def _is_same_place(first: Place, later: Place) -> bool:
    return len(first) == len(later) and all(
        frame[:2] == frame_later[:2]
        and all(name in frame_later[2] and frame_later[2][name] == value for name, value in frame[2].items())
        for frame, frame_later in zip(first, later, strict=True)
    )


class _DecisionTree:
    def __init__(self, draw: Callable[[DecidedSource], Any]) -> None:
        self.draw, self.order, self.rng = draw, count(), random.Random(0)
        self.probabilities: dict[Any, float] = {}
        """Of everything that is drawn, where no draw begins anew."""
        self.complete: list[Decisions] = []
        """Sequences that end a draw."""
        self.unfinished: list[tuple[float, int, Decisions]] = []
        """A heap: minus the probability of a sequence, and the sequence."""
        self.suspects: list[tuple[float, Decisions, list[float]]] = []
        """Sequences after which the same is asked as in the beginning."""
        self.restarts: list[Decisions] = []
        """Sequences after which a draw begins anew."""
        self.first = DecidedSource(())
        """Stopped at the first question."""

    def run(self, decisions: Decisions) -> tuple[DecidedSource, Any]:
        """With what is drawn; None if these decisions do not suffice."""
        source = DecidedSource(decisions)
        try:
            drawn = self.draw(source)
            return source, tuple(map(int, drawn)) if isinstance(drawn, tuple) else int(drawn)
        except UNDECIDED:
            if not source.chances:
                raise
            return source, None

    def law(self, runs: int) -> tuple[dict[Any, float], float]:
        restarting = 0.0
        self.follow(1.0, (), [1.0])
        for _ in range(runs):
            if not self.unfinished or -self.unfinished[0][0] < NEGLIGIBLE:
                if not self.suspects:
                    break
                weight, decisions, chances = self.suspects.pop()
                if self.is_restart(decisions):
                    restarting += weight
                    self.restarts.append(decisions)
                else:
                    self.follow(weight, decisions, chances)
                continue
            negative, _, decisions = heapq.heappop(self.unfinished)
            source, drawn = self.run(decisions)
            self.first = source if not self.first.chances else self.first
            if drawn is not None:
                self.probabilities[drawn] = self.probabilities.get(drawn, 0.0) - negative
                self.complete.append(decisions)
            elif (
                decisions
                and source.chances == self.first.chances
                and _is_same_place(self.first.place, source.place)
            ):
                self.suspects.append((-negative, decisions, source.chances))
            else:
                self.follow(-negative, decisions, source.chances)
        whole = max(1 - restarting, NEGLIGIBLE)
        rest = sum(weight for weight, *_ in self.suspects) - sum(weight for weight, *_ in self.unfinished)
        return {x: p / whole for x, p in self.probabilities.items()}, rest / whole

    def follow(self, weight: float, decisions: Decisions, chances: list[float]) -> None:
        for k, chance in enumerate(chances):
            longer = (*decisions, k) if len(chances) > 1 else decisions
            heapq.heappush(self.unfinished, (-weight * chance, next(self.order), longer))

    def is_restart(self, decisions: Decisions) -> bool:
        for _ in range(_TRIES if self.complete else 0):
            end = self.rng.choice(self.complete)
            before = self.rng.choices([*self.restarts, decisions], k=self.rng.randrange(_RESTARTS))
            whole = (*(k for restart in before for k in restart), *decisions, *end)
            source, drawn = self.run(whole)
            if source.used != len(whole) or drawn != self.run(end)[1]:
                return False
        return bool(self.complete)
