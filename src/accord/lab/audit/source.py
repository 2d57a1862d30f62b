"""Where the noise comes from: every draw asks the operating system, for itself.

The code of the noise is copied with another source of random integers (given.py), so that a release that goes
on meanwhile keeps its own. Looked at are

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

from accord.lab.audit.findings import Seen
from accord.lab.audit.given import ENDS, NEGLIGIBLE, Given, Other, Recorded, law_of

_RELEASING = import_module("accord.release.release")
"""Where releases take their noise from."""
_COIN = "exp_coin"
_CALLS = 50
_SHORT, _LONG, _PAIRS = 40, 2_000, 1_500
_SLACK = 1e-12
_PATIENCE, _LONGEST = 0.2, 60.0
_UNASKED = "it draws without asking the operating system"
Draw = Callable[[Any], Any]


def secure() -> Any:
    """The noise of releases."""
    return vars(_RELEASING)["SECURE"]


class Copy:
    """A noise whose code asks another source in the place of `secrets`; and `coin` in the place of its coin,
    if it has one.
    """

    def __init__(self, source: Any, coin: Callable[[int, int], bool] | None = None) -> None:
        self._noise, self._source, self._coin = secure(), source, coin

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._noise, name)
        function = getattr(found, "__func__", None)
        if not isinstance(function, FunctionType):
            return found  # what cannot be copied draws as it does, and asks nothing of this source
        return MethodType(_with(function, self.names(function)), self)

    def names(self, function: Any) -> dict[str, Any]:
        """The globals that a function sees."""
        names: dict[str, Any] = {**function.__globals__, "secrets": self._source}
        for name, value in function.__globals__.items():
            if isinstance(value, FunctionType) and value.__module__ == function.__module__:
                names[name] = _with(value, names)
        if self._coin is not None and _COIN in names:
            names[_COIN] = self._coin
        return names

    def own_coin(self) -> Callable[[int, int], bool] | None:
        """The coin of its code, asking the same source; None if it has none."""
        function = getattr(self._noise.laplace, "__func__", None)
        return self.names(function).get(_COIN) if isinstance(function, FunctionType) else None


def following(given: Given) -> Copy:
    """The noise on given decisions, of which each toss of its coin is one."""
    return Copy(given, lambda a, b: given.toss(exp(-int(a) / b)))


def _with(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def sources(rng: np.random.Generator) -> Iterator[Seen]:
    """Whether every draw asks the operating system, and for itself."""
    own = random.Random(int(rng.integers(2**63)))
    kinds = _kinds(own)
    yield _seen("secrets", impostor())
    for name, draws in kinds.items():
        for part in (
            partial(_unasked, draws, own),
            partial(_elsewhere, draws, own),
            partial(shared, draws[0]),
        ):
            yield from or_fails(name, lambda name=name, part=part: _seen(name, part()))  # type: ignore[misc]
    yield from or_fails(
        "draws one after another", lambda: _seen("draws one after another", _kept(kinds, own))
    )
    yield from _joint(own)


def or_fails(name: str, look: Callable[[], Seen]) -> Iterator[Seen]:
    """A noise that fails on integers that it is given is a finding, and no reason not to look at the rest."""
    try:
        yield look()
    except Exception as fault:
        yield _seen(name, f"it fails ({type(fault).__name__})")


def _seen(name: str, said: str) -> Seen:
    return Seen("replay", "noise", name, "", "", 0.0, inf if said else 0.0, said)


def _kinds(rng: random.Random) -> dict[str, list[Draw]]:
    """Draws of every kind, some with numbers that are drawn anew in each audit."""
    scales = [
        Fraction(1000),
        Fraction(rng.randrange(1, 50), rng.randrange(1, 50)),
        Fraction(rng.randrange(1, 10**12)),
    ]
    choices = [
        ([0, -1, -3], 2),
        ([rng.randrange(-500, 0) for _ in range(rng.randrange(1, 9))], rng.randrange(1, 200)),
    ]
    chances = [[2**62] * 3, [rng.randrange(2**63 + 1) for _ in range(rng.randrange(1, 9))]]
    counts = [3, rng.randrange(1, 9)]
    return {
        "Laplace": [lambda noise, s=s: noise.laplace(s) for s in scales],  # type: ignore[misc]
        "choice": [partial(_choice, scores, scale) for scores, scale in choices],
        "keeping people": [
            lambda noise, c=c: noise.keep(np.array(c, dtype=np.uint64)).tolist()  # type: ignore[misc]
            for c in chances
        ],
        "random words": [lambda noise, n=n: noise.words(n).tolist() for n in counts],  # type: ignore[misc]
    }


# ---- the operating system ----------------------------------------------------------------------------------


def impostor() -> str:
    """What is wrong with what the noise calls `secrets`; nothing, if it is Python's own and that is as Python
    made it.
    """
    for name in ("laplace", "choose", "keep", "words"):
        function = getattr(getattr(secure(), name), "__func__", None)
        if getattr(function, "__globals__", {}).get("secrets", secrets) is not secrets:
            return "what it calls secrets is another module"
    generator = vars(secrets)["_sysrand"]
    own = {secrets: (secrets.randbelow, secrets.token_bytes), random: vars(random.SystemRandom).values()}
    written = all(
        getattr(f, "__globals__", vars(m)) is vars(m) for m, functions in own.items() for f in functions
    )
    if (
        type(generator) is not random.SystemRandom
        or any(map(callable, vars(generator).values()))
        or not written
    ):
        return "the generator of secrets is not the operating system's"
    if secrets.randbits != generator.getrandbits:
        return "the bits of secrets are not the operating system's"
    builtin = (
        isinstance(os.urandom, BuiltinFunctionType) and vars(sys.modules[os.name])["urandom"] is os.urandom
    )
    return "" if builtin and vars(random)["_urandom"] is os.urandom else "os.urandom is another function"


class System:
    """Stands in for `secrets`: its own code, down to the operating system, whose bytes are counted."""

    def __init__(self) -> None:
        self.bytes = 0
        own = {
            name: _with(function, {**function.__globals__, "_urandom": self.urandom})
            for name, function in vars(random.SystemRandom).items()
            if isinstance(function, FunctionType)
        }
        generator = type("Counted", (random.SystemRandom,), own)()
        names = {**vars(secrets), "_sysrand": generator}
        self.randbits = generator.getrandbits
        self.randbelow, self.token_bytes = (
            _with(vars(secrets)[name], names) for name in ("randbelow", "token_bytes")
        )

    def urandom(self, size: int) -> bytes:
        self.bytes += size
        return os.urandom(size)


def _unasked(draws: list[Draw], rng: random.Random) -> str:
    """Of `secrets`, and through it of the operating system: in every call."""
    for draw in draws:
        given = Given(())
        with suppress(*ENDS):  # it stops at the first thing that it asks
            draw(Copy(given))
        record = Recorded(rng)
        draw(Copy(record))
        if not given.next and not record.record:
            return _UNASKED
        source = System()
        noise = Copy(source)
        for _ in range(_CALLS):
            before = source.bytes
            draw(noise)
            if source.bytes == before:
                return _UNASKED
    return ""


def _elsewhere(draws: list[Draw], rng: random.Random) -> str:
    """On the same integers it draws the same: it has no other source beside."""
    for draw in draws:
        first = Recorded(rng)
        drawn = draw(Copy(first))
        for _ in range(3):
            try:
                if draw(Copy(Recorded(rng, first.record))) != drawn:
                    return "on the same random integers it draws something else"
            except Other:
                return "on the same random integers it asks something else"
    return ""


# ---- one draw and another ----------------------------------------------------------------------------------


def _kept(kinds: dict[str, list[Draw]], rng: random.Random) -> str:
    """What is wrong with draws one after another: pairs of all kinds, and one long sequence."""
    every = [(name, draw) for name, draws in kinds.items() for draw in draws]
    pairs = [[one, other] for one in every for other in every]
    for sequence in (*pairs, *(rng.choices(every, k=3) for _ in range(_SHORT)), rng.choices(every, k=_LONG)):
        source = Recorded(rng)
        noise, parts = Copy(source), []
        for name, draw in sequence:
            begin = len(source.record)
            parts.append((name, draw, draw(noise), begin, len(source.record)))
        for name, draw, drawn, begin, end in parts:
            said = _alone(draw, drawn, source.record[begin:end], rng)
            if said:
                return f"{name}: {said}"
    return ""


def _alone(draw: Draw, drawn: Any, record: list[tuple[Any, Any]], rng: random.Random) -> str:
    """What is wrong if a draw by itself is not what it was after others."""
    if not record:
        return "after another draw it does not ask again"
    again = Recorded(rng, record)
    try:
        same = draw(Copy(again)) == drawn and len(again.record) == len(record)
    except Other:
        same = False
    return "" if same else "what it draws depends on the draws before it"


class _Meeting(Recorded):
    """Stands in for `secrets`: whoever asks first waits a while for the other, so that two draws are under
    way at once.
    """

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.asking: set[int] = set()
        self._both = threading.Barrier(2)

    def _give(self, question: tuple[str, int], fresh: Callable[[int], Any]) -> Any:
        if threading.get_ident() not in self.asking:
            self.asking.add(threading.get_ident())
            with suppress(threading.BrokenBarrierError):  # a noise may let them draw one after the other
                self._both.wait(_PATIENCE)
        return super()._give(question, fresh)


def shared(draw: Draw) -> str:
    """Both of two threads that draw at once ask for themselves."""
    source = _Meeting()
    noise, done = Copy(source), []
    threads = [threading.Thread(target=lambda: done.append(draw(noise)), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LONGEST)
    if len(done) < 2:
        return "two threads that draw at once do not come to an end"
    return "" if len(source.asking) == 2 else "two threads that draw at once get one draw"


def _joint(rng: random.Random) -> Iterator[Seen]:
    """The law of two draws, followed decision by decision, is the product of the laws of each."""
    one, other = Fraction(1, rng.randrange(1, 4)), Fraction(2 * rng.randrange(1, 4) + 1, 2)
    scores = np.array([0, -rng.randrange(1, 4), 0])
    draws: dict[str, Draw] = {
        f"Laplace of scale {one}": lambda noise: noise.laplace(one),
        f"Laplace of scale {other}": lambda noise: noise.laplace(other),
        "a choice": lambda noise: noise.choose(scores, 2),
    }
    for a, b in ((0, 0), (0, 1), (1, 1), (0, 2), (2, 0), (2, 2)):
        first, then = list(draws.items())[a], list(draws.items())[b]
        yield from or_fails(f"{first[0]}, then {then[0]}", partial(_factorised, first, then))


def _choice(scores: list[int], scale: int, noise: Any) -> Any:
    return noise.choose(np.array(scores), scale)


def _drawn(draw: Draw, noise_of: Callable[[Any], Any], given: Any) -> Any:
    return draw(noise_of(given))


def _factorised(first: tuple[str, Draw], then: tuple[str, Draw]) -> Seen:
    draws = [draw for _, draw in (first, then)]
    (law, less), (law_after, less_after) = (law_of(partial(_drawn, draw, following)) for draw in draws)
    both, rest = law_of(lambda given: _two(following(given), first[1], then[1]), _PAIRS)
    found = 0.0
    for (x, y), p in both.items():
        most = (law.get(x, 0.0) + less + _SLACK) * (law_after.get(y, 0.0) + less_after + _SLACK)
        found = max(found, log(p / most) if p > NEGLIGIBLE else 0.0)
    said = f"{1 - rest:.3%} of all pairs; together they are likelier than one by one" if found else ""
    return Seen("exact", "noise", f"{first[0]}, then {then[0]}", "", "", 0.0, found, said)


def _two(noise: Copy, first: Draw, then: Draw) -> tuple[int, int]:
    return first(noise), then(noise)
