"""What a release's law is: found by running it with a noise that draws nothing and remembers everything.

A release is a function of integers that noise was added to, of points that were chosen, and of who was kept.
`Tap` stands in for the noise. It decides what comes out of every draw, and notes what it was made from: the
integer and the scale, the scores and the scale, the chances. From these follows the probability of every
outcome; and because outcomes do not depend on the data, neither may the answer that is made of them: whatever
still moves it was released without noise.

A Law is a mixture over who is kept of independent draws. Two of them compare exactly, over all outputs:

    One Laplace draw of scale s on integers a and b has |log ratio| at most |a − b|/s, and far enough out it
    has that; draws add up. Of mixtures, along one coordinate z, both probabilities are A·exp(z/s) +
    B·exp(−z/s) between neighboring integers that noise was added to. Their ratio is monotone there (it is a
    Möbius function of exp(2z/s)) and constant beyond the last of them. So its extremes are where noise was
    added to an integer of either, in every coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

SURE = 2**63
_MOST = 100_000
Run = Callable[["Tap"], Any]
"""A release, up to its noise: gives all that is published."""


@dataclass(frozen=True)
class Outcome:
    """What comes out of the k-th draw, whatever the data are."""

    added: Callable[[int], int]
    chosen: Callable[[int], int]
    """Of so many."""


OUTCOMES = (
    Outcome(lambda k: 3 * 10**6 + 17 * k, lambda size: 0),
    Outcome(lambda k: k % 2, lambda size: size - 1),
    Outcome(lambda k: -(10**6) - 13 * k, lambda size: size // 2),
)
"""Large, about 0, and below it; the first, the last, the middle: what is made of them may depend on that."""


class Leak(Exception):  # noqa: N818  it is what an audit looks for
    """Something moves that no noise protects; the text says what, from public things."""


class Adaptive(Leak):
    """What is drawn depends on earlier draws. accord's mechanisms have no need of it, and draw by draw
    nothing can be said.
    """


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
    def made_from(self) -> Any:
        """What must not depend on other draws."""
        return self.value, self.scale


@dataclass(frozen=True)
class Chosen:
    """A choice with probability ∝ exp(score/scale)."""

    scores: Any
    scale: int

    @property
    def shape(self) -> Any:
        return self.scale, len(self.scores)

    @property
    def made_from(self) -> Any:
        return self.scale, self.scores.tobytes() if self.scores.dtype != object else tuple(self.scores)

    @cached_property
    def logs(self) -> NDArray[np.float64]:
        """Of the probabilities."""
        parts = np.asarray(self.scores - self.scores.max()).astype(np.float64) / self.scale
        return np.asarray(parts - np.log(np.exp(parts).sum()))


class _Draw:
    """A draw that is made when it is added to something."""

    __array_ufunc__ = None

    def __init__(self, tap: Tap, scale: Fraction) -> None:
        self.tap, self.scale, self.used = tap, scale, False

    def __radd__(self, value: Any) -> int:
        if int(value) != value:
            raise Leak("noise is added to a number that is not whole")
        if self.used:
            raise Leak("one draw is added to two numbers, whose difference has no noise")
        self.used = True
        self.tap.note(Added(int(value), self.scale))
        return self.tap.outcome.added(len(self.tap.draws))

    __add__ = __radd__


class Tap:
    """A noise that draws nothing. Decides what comes out, and remembers what it was made from."""

    def __init__(
        self, outcome: Outcome = OUTCOMES[0], kept: Sequence[bool] = (), rows: Sequence[int] | None = None
    ) -> None:
        """`kept`: who is, in the order of being asked; beyond that, everyone who can be.

        `rows`: chances of rows, in 2⁻⁶³; without them, every row is kept.
        """
        self.outcome, self.kept, self.rows = outcome, kept, rows
        self.draws: list[Added | Chosen] = []
        self.coins: list[tuple[int, bool]] = []

    def laplace(self, scale: Fraction) -> Any:
        if not isinstance(scale, Fraction) or scale <= 0:
            raise Leak("a scale of noise is not a positive fraction")
        return _Draw(self, scale)

    def choose(self, scores: Any, scale: int) -> int:
        self.note(Chosen(np.array(scores), int(scale)))
        return self.outcome.chosen(len(scores))

    def note(self, draw: Added | Chosen) -> None:
        self.draws.append(draw)
        if len(self.draws) > _MOST:
            raise Adaptive("it draws without end")

    def keep(self, chances: Any) -> Any:
        return np.array([self._coin(int(c)) for c in chances], dtype=bool)

    def words(self, count: int) -> Any:
        """The largest that is below somebody's chance, or the smallest that is not."""
        if self.rows is None:
            return np.zeros(count, dtype=np.uint64)
        if len(self.rows) != count:
            raise Leak("the number of random words is not that of the rows")
        return np.array([c - 1 if self._coin(c) else min(c, SURE - 1) for c in self.rows], dtype=np.uint64)

    def _coin(self, chance: int) -> bool:
        k = len(self.coins)
        heads = chance > 0 and (chance >= SURE or k >= len(self.kept) or self.kept[k])
        self.coins.append((chance, heads))
        return heads

    @property
    def weight(self) -> float:
        """The probability of who is kept."""
        return float(np.prod([(c if heads else SURE - c) / SURE for c, heads in self.coins] or [1.0]))


class Words(Tap):
    """Gives the random words that it was given."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        self.given = given

    def words(self, count: int) -> Any:
        return self.given


@dataclass(frozen=True)
class Law:
    """A mixture of independent draws, and the answers for given outcomes."""

    weights: tuple[float, ...]
    parts: tuple[tuple[Added | Chosen, ...], ...]
    """The draws, for each way of keeping people."""
    answers: tuple[str, ...]


def law(run: Run, rows: Sequence[int] | None = None) -> Law:
    """The whole law of a release on one table."""
    taps, answers = zip(*_branches(run, rows), strict=True)
    ends = {tuple(_others(run, tap)) for tap in (taps[0], *taps[1:][-1:])}
    if len(set(map(repr, answers))) > 1 or len(ends) > 1:
        raise Leak("who is kept moves the answer beside the noise")
    weights, parts = tuple(t.weight for t in taps), tuple(tuple(t.draws) for t in taps)
    return Law(weights, parts, (repr(answers[0]), *ends.pop()))


def frozen(run: Run) -> tuple[Law, Tap]:
    """The law if everyone is kept, for large tables; with what was asked of the noise."""
    tap = Tap()
    answer = run(tap)
    return Law((1.0,), (tuple(tap.draws),), (repr(answer), *_others(run, tap))), tap


def _others(run: Run, tap: Tap) -> list[str]:
    """The answers for other outcomes."""
    kept, answers = [heads for _, heads in tap.coins], []
    for outcome in OUTCOMES[1:]:
        other = Tap(outcome, kept, tap.rows)
        answers.append(repr(run(other)))
        if [d.made_from for d in other.draws] != [d.made_from for d in tap.draws]:
            raise Adaptive("what is drawn depends on what came out before")
    return answers


def _branches(run: Run, rows: Sequence[int] | None) -> Iterator[tuple[Tap, Any]]:
    """Every way of keeping people."""
    todo: list[tuple[bool, ...]] = [()]
    while todo:
        begun = todo.pop()
        tap = Tap(kept=begun, rows=rows)
        yield tap, run(tap)
        heads = tuple(h for _, h in tap.coins)
        for k, (chance, _) in enumerate(tap.coins[len(begun) :], len(begun)):
            if 0 < chance < SURE:
                todo.append((*heads[:k], False))


def loss(here: Law, there: Law) -> Fraction | float:
    """The largest |log ratio| of the probabilities of all outcomes. Exact where noise was only added."""
    if len({tuple(draw.shape for draw in part) for part in (*here.parts, *there.parts)}) > 1:
        raise Leak("what can come out, or how much noise there is, depends on the data")
    if here.answers != there.answers:
        raise Leak("the answer moves beside the noise")
    if len(here.parts) == len(there.parts) == 1:
        return _apart(here.parts[0], there.parts[0])
    return _mixed(here, there)


def _apart(here: Sequence[Any], there: Sequence[Any]) -> Fraction | float:
    total: Fraction | float = Fraction(0)
    up = down = 0.0
    for one, other in zip(here, there, strict=True):
        if isinstance(one, Added):
            total += Fraction(abs(one.value - other.value)) / one.scale
        else:
            gaps = one.logs - other.logs
            up, down = up + float(gaps.max()), down - float(gaps.min())
    return total + max(up, down) if up or down else total


def _mixed(here: Law, there: Law) -> float:
    places = [  # of integers with noise, those of either law
        sorted({d.value for law in (here, there) for part in law.parts if isinstance(d := part[k], Added)})
        for k in range(len(here.parts[0]))
    ]

    def logs(law: Law) -> NDArray[np.float64]:
        each = []
        for weight, part in zip(law.weights, law.parts, strict=True):
            whole: Any = np.log(weight) if weight else -np.inf
            for k, (at, draw) in enumerate(zip(places, part, strict=True)):
                along = (
                    np.array([-abs(z - draw.value) / draw.scale for z in at], dtype=np.float64)
                    if isinstance(draw, Added)
                    else draw.logs
                )
                whole = whole + along.reshape([-1 if j == k else 1 for j in range(len(places))])
            each.append(whole)
        return np.asarray(reduce(np.logaddexp, each))

    return float(np.abs(logs(here) - logs(there)).max())
