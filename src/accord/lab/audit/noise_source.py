"""Where the noise comes from: every draw asks the operating system, for itself.

The code of the noise is copied with another source of random integers (noise_decisions.py), so that a
release that goes on meanwhile keeps its own. Looked at are

    the source     what the code calls `secrets` is Python's own, and ends in the operating system, in every
                   call of every kind of draw;
    independence   draws one after another ask what each asks alone, and give what each gives alone. So they
                   are functions of different random integers: nothing is kept from one for the next, for
                   another thread, or for a child process that begins with all that its parent has.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from importlib import import_module
from math import exp, inf, log
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from accord.lab.audit.findings import Look
from accord.lab.audit.noise_decisions import (
    NEGLIGIBLE,
    UNDECIDED,
    DecidedSource,
    Diverged,
    RecordedSource,
    law_of,
)

_RELEASING = import_module("accord.release.release")
"""Where releases take their noise from."""
_COIN, _GEOMETRIC = "exp_coin", "geometric"
_CALLS = 50
_TRIPLES, _LONG = 40, 2_000
"""Sequences of three draws, and the length of a long one."""
_RUNS_OF_PAIRS = 1_500
_SLACK = 1e-12
_WAIT, _LONGEST_WAIT = 5.0, 60.0
"""Seconds for one thread to meet another, also on a busy machine, and for both to end.

Only a noise that lets them draw one after the other, or shares a draw, takes them.
"""
_UNASKED = "it draws without asking the operating system"
Draw = Callable[[Any], Any]


def secure() -> Any:
    """The noise of releases."""
    return vars(_RELEASING)["SECURE"]


class NoiseCopy:
    """A noise whose code asks another source in the place of `secrets`.

    And `coin` in the place of its coin, `geometric` in that of its geometric variable, if it has one.
    """

    def __init__(
        self,
        source: Any,
        coin: Callable[[int, int], bool] | None = None,
        geometric: Callable[[int, int], int] | None = None,
    ) -> None:
        self._noise, self._source = secure(), source
        self._instead = {_COIN: coin, _GEOMETRIC: geometric}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._noise, name)
        function = getattr(method, "__func__", None)
        if not isinstance(function, FunctionType):
            return method  # what cannot be copied draws as it does, and asks nothing of this source
        return MethodType(_with_globals(function, self.globals_for(function)), self)

    def globals_for(self, function: Any) -> dict[str, Any]:
        """What a function of the noise sees, with the other source."""
        names: dict[str, Any] = {**function.__globals__, "secrets": self._source}
        for name, value in function.__globals__.items():
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                names[name] = _with_globals(value, names)
        names |= {name: new for name, new in self._instead.items() if new is not None and name in names}
        return names

    def own_coin(self) -> Callable[[int, int], bool] | None:
        """The coin of its code, asking the same source; None if it has none."""
        coin: Callable[[int, int], bool] | None = self._own(_COIN)
        return coin

    def own_geometric(self) -> Callable[[int, int], int] | None:
        """The geometric variable of its code; None if it has none."""
        geometric: Callable[[int, int], int] | None = self._own(_GEOMETRIC)
        return geometric

    def _own(self, name: str) -> Any:
        function = getattr(self._noise.laplace, "__func__", None)
        return self.globals_for(function).get(name) if isinstance(function, FunctionType) else None


def noise_on(source: DecidedSource) -> NoiseCopy:
    """The noise on decisions of which each toss of its coin is one."""
    return NoiseCopy(source, lambda a, b: source.toss(exp(-int(a) / b)))


def _with_globals(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def examine(rng: np.random.Generator) -> Iterator[Look]:
    """Whether every draw asks the operating system, and for itself."""
    numbers = random.Random(int(rng.integers(2**63)))
    kinds = _kinds(numbers)
    yield _look("secrets", problem_with_secrets())
    for name, draws in kinds.items():
        for problem in (
            partial(_problem_if_unasked, draws, numbers),
            partial(_problem_with_replay, draws, numbers),
            partial(problem_with_threads, draws[0]),
        ):
            yield or_failure(name, partial(_look_for, name, problem))
    name = "draws one after another"
    yield or_failure(name, partial(_look_for, name, partial(_problem_with_sequences, kinds, numbers)))
    yield from _joint_laws(numbers)


def or_failure(name: str, look: Callable[[], Look]) -> Look:
    """A noise that fails on integers that it is given is a finding, and no reason not to look at the rest."""
    try:
        return look()
    except Exception as fault:
        return _look(name, f"it fails ({type(fault).__name__})")


def _look_for(name: str, problem: Callable[[], str]) -> Look:
    return _look(name, problem())


def _look(name: str, problem: str) -> Look:
    return Look("replay", "noise", name, "", "", 0.0, inf if problem else 0.0, problem)


def _kinds(rng: random.Random) -> dict[str, list[Draw]]:
    """Draws of every kind, some with numbers that are drawn anew in each audit."""
    scales = [
        Fraction(1000),
        Fraction(rng.randrange(1, 50), rng.randrange(1, 50)),
        Fraction(rng.randrange(1, 10**12)),
    ]
    choices: list[tuple[Any, ...]] = [
        ([0, -1, -3], 2),
        ([0, 0, -3], 2, [5, 1, 9]),
        ([rng.randrange(-500, 0) for _ in range(rng.randrange(1, 9))], rng.randrange(1, 200)),
    ]
    ordered: list[Any] = [([3, 0, 4], [1, 5, 2]), ([rng.randrange(9) for _ in range(rng.randrange(2, 9))],)]
    boxes = [(1, 1000), tuple(rng.randrange(1, 10**9) for _ in range(rng.randrange(1, 5)))]
    chances = [[2**62] * 3, [rng.randrange(2**63 + 1) for _ in range(rng.randrange(1, 9))]]
    counts = [3, rng.randrange(1, 9)]
    return {
        "Laplace": [partial(_laplace, scale) for scale in scales],
        "box": [partial(_box, spans) for spans in boxes],
        "choice": [partial(_choice, *choice) for choice in choices],
        "ordered points": [partial(_ordered, weights, *times) for weights, *times in ordered],
        "keeping people": [partial(_kept, c) for c in chances],
        "random words": [partial(_words, count) for count in counts],
    }


def _laplace(scale: Fraction, noise: Any) -> Any:
    return noise.laplace(scale)


def _box(spans: tuple[int, ...], noise: Any) -> Any:
    return tuple(noise.box(spans))


def _choice(scores: list[int], scale: int, *times_and_noise: Any) -> Any:
    *times, noise = times_and_noise
    return noise.choose(np.array(scores), scale, *map(np.array, times))


def _ordered(weights: list[int], *times_and_noise: Any) -> Any:
    *times, noise = times_and_noise
    ps = Fraction(1, 4), Fraction(2, 3)
    return tuple(noise.ordered(np.array(weights), ps, Fraction(7, 2), 5, *map(np.array, times)))


def _kept(chances: list[int], noise: Any) -> Any:
    return noise.keep(np.array(chances, dtype=np.uint64)).tolist()


def _words(count: int, noise: Any) -> Any:
    return noise.words(count).tolist()


# ---- the operating system ----------------------------------------------------------------------------------


def problem_with_secrets() -> str:
    """Of what the noise calls `secrets`; none, if it is Python's own and that is as Python made it."""
    for name in ("laplace", "box", "choose", "ordered", "keep", "words"):
        function = getattr(getattr(secure(), name), "__func__", None)
        if getattr(function, "__globals__", {}).get("secrets", secrets) is not secrets:
            return "what it calls secrets is another module"
    generator = vars(secrets)["_sysrand"]
    functions = {
        secrets: (secrets.randbelow, secrets.token_bytes),
        random: vars(random.SystemRandom).values(),
    }
    is_original = all(
        getattr(f, "__globals__", vars(module)) is vars(module)
        for module, of_module in functions.items()
        for f in of_module
    )
    is_patched = any(map(callable, vars(generator).values()))
    if type(generator) is not random.SystemRandom or is_patched or not is_original:
        return "the generator of secrets is not the operating system's"
    if secrets.randbits != generator.getrandbits:
        return "the bits of secrets are not the operating system's"
    is_builtin = (
        isinstance(os.urandom, BuiltinFunctionType) and vars(sys.modules[os.name])["urandom"] is os.urandom
    )
    if not is_builtin or vars(random)["_urandom"] is not os.urandom:
        return "os.urandom is another function"
    return ""


class CountedSystem:
    """Stands in for `secrets`: its own code, down to the operating system, whose bytes are counted."""

    def __init__(self) -> None:
        self.bytes = 0
        methods = {
            name: _with_globals(function, {**function.__globals__, "_urandom": self.urandom})
            for name, function in vars(random.SystemRandom).items()
            if isinstance(function, FunctionType)
        }
        generator = type("Counted", (random.SystemRandom,), methods)()
        names = {**vars(secrets), "_sysrand": generator}
        self.randbits = generator.getrandbits
        self.randbelow, self.token_bytes = (
            _with_globals(vars(secrets)[name], names) for name in ("randbelow", "token_bytes")
        )

    def urandom(self, size: int) -> bytes:
        self.bytes += size
        return os.urandom(size)


def _problem_if_unasked(draws: list[Draw], rng: random.Random) -> str:
    """Every call asks `secrets`, and through it the operating system."""
    for draw in draws:
        undecided = DecidedSource(())
        with suppress(*UNDECIDED):  # it stops at the first thing that it asks
            draw(NoiseCopy(undecided))
        recorded = RecordedSource(rng)
        draw(NoiseCopy(recorded))
        if not undecided.chances and not recorded.record:
            return _UNASKED
        system = CountedSystem()
        noise = NoiseCopy(system)
        for _ in range(_CALLS):
            before = system.bytes
            draw(noise)
            if system.bytes == before:
                return _UNASKED
    return ""


def _problem_with_replay(draws: list[Draw], rng: random.Random) -> str:
    """On the same integers it draws the same: it has no other source."""
    for draw in draws:
        first = RecordedSource(rng)
        drawn = draw(NoiseCopy(first))
        for _ in range(3):
            try:
                if draw(NoiseCopy(RecordedSource(rng, first.record))) != drawn:
                    return "on the same random integers it draws something else"
            except Diverged:
                return "on the same random integers it asks something else"
    return ""


# ---- one draw and another ----------------------------------------------------------------------------------


def _problem_with_sequences(kinds: dict[str, list[Draw]], rng: random.Random) -> str:
    """Draws one after another ask and give what each does alone: pairs of all kinds, and a long sequence."""
    every = [(name, draw) for name, draws in kinds.items() for draw in draws]
    pairs = [[first, second] for first in every for second in every]
    for sequence in (
        *pairs,
        *(rng.choices(every, k=3) for _ in range(_TRIPLES)),
        rng.choices(every, k=_LONG),
    ):
        source = RecordedSource(rng)
        noise, parts = NoiseCopy(source), []
        for name, draw in sequence:
            begin = len(source.record)
            parts.append((name, draw, draw(noise), begin, len(source.record)))
        for name, draw, drawn, begin, end in parts:
            problem = _problem_alone(draw, drawn, source.record[begin:end], rng)
            if problem:
                return f"{name}: {problem}"
    return ""


def _problem_alone(draw: Draw, drawn: Any, record: list[tuple[Any, Any]], rng: random.Random) -> str:
    """A draw by itself is what it was after others."""
    if not record:
        return "after another draw it does not ask again"
    again = RecordedSource(rng, record)
    try:
        same = draw(NoiseCopy(again)) == drawn and len(again.record) == len(record)
    except Diverged:
        same = False
    return "" if same else "what it draws depends on the draws before it"


class _Meeting(RecordedSource):
    """Stands in for `secrets`: whoever asks first waits for the other, so that two draw at once."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.asking: set[int] = set()
        self._both = threading.Barrier(2)

    def _give(self, question: tuple[str, int], fresh: Callable[[int], Any]) -> Any:
        if threading.get_ident() not in self.asking:
            self.asking.add(threading.get_ident())
            with suppress(threading.BrokenBarrierError):  # a noise may let them draw one after the other
                self._both.wait(_WAIT)
        return super()._give(question, fresh)


def problem_with_threads(draw: Draw) -> str:
    """Both of two threads that draw at once ask for themselves."""
    source = _Meeting()
    noise, done = NoiseCopy(source), []
    threads = [threading.Thread(target=lambda: done.append(draw(noise)), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LONGEST_WAIT)
    if len(done) < 2:
        return "two threads that draw at once do not come to an end"
    return "" if len(source.asking) == 2 else "two threads that draw at once get one draw"


def _joint_laws(rng: random.Random) -> Iterator[Look]:
    """The law of two draws, followed decision by decision, is the product of the laws of each."""
    scales = Fraction(1, rng.randrange(1, 4)), Fraction(2 * rng.randrange(1, 4) + 1, 2)
    scores = [0, -rng.randrange(1, 4), 0]
    draws: list[tuple[str, Draw]] = [
        *((f"Laplace of scale {scale}", partial(_laplace, scale)) for scale in scales),
        ("a choice", partial(_choice, scores, 2)),
    ]
    for a, b in ((0, 0), (0, 1), (1, 1), (0, 2), (2, 0), (2, 2)):
        (first, draw), (second, draw_after) = draws[a], draws[b]
        name = f"{first}, then {second}"
        yield or_failure(name, partial(_look_at_product, name, draw, draw_after))


def _look_at_product(name: str, draw: Draw, draw_after: Draw) -> Look:
    law, rest = law_of(lambda source: draw(noise_on(source)))
    law_after, rest_after = law_of(lambda source: draw_after(noise_on(source)))
    joint, rest_of_pairs = law_of(lambda source: _pair(noise_on(source), draw, draw_after), _RUNS_OF_PAIRS)
    loss = 0.0
    for (x, y), p in joint.items():
        most = (law.get(x, 0.0) + rest + _SLACK) * (law_after.get(y, 0.0) + rest_after + _SLACK)
        loss = max(loss, log(p / most) if p > NEGLIGIBLE else 0.0)
    evidence = f"{1 - rest_of_pairs:.3%} of all pairs; together they are likelier than one by one"
    return Look("exact", "noise", name, "", "", 0.0, loss, evidence if loss else "")


def _pair(noise: NoiseCopy, draw: Draw, draw_after: Draw) -> tuple[Any, Any]:
    return draw(noise), draw_after(noise)
