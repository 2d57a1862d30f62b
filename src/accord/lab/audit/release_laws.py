"""The law of a release: the probability of every output, from what its noise was asked for.

A release is a function of integers that noise was added to, of points that were chosen, and of who was kept.
`RecordingNoise` stands in for the noise. It decides what comes out of every draw, and records what the draw
was made from: the integer and the scale, the scores and the scale, the chances. From these follows the
probability of every outcome; and because outcomes do not depend on the data, neither may the answer that is
made of them: whatever still moves it was released without noise.

A Law is a mixture, over who is kept, of independent draws. Two of them compare exactly, over all outputs:

    One Laplace draw of scale s on integers a and b has |log ratio| at most |a − b|/s, and far enough out it
    has that; draws add up. Of mixtures, along one coordinate z, both probabilities are A·exp(z/s) +
    B·exp(−z/s) between neighboring integers that noise was added to. Their ratio is monotone there (it is a
    Möbius function of exp(2z/s)) and constant beyond the last of them. So its extremes are where noise was
    added to an integer of either, in every coordinate.

    One box of scale s on vectors a and b has |log ratio| at most N(a − b)/s, N(z) = max_k ⌈|z_k|/span_k⌉, by
    the triangle inequality of N, and at z = a it has that. Of mixtures it is compared only where it is added
    to the same integers whoever is kept.

    Points that are drawn together, in order (ordered.py), have a law that is reckoned tuple by tuple where
    there are few. Where there are many, P(u) = exp(−E(u))/Z, so that |log ratio| is at most the largest
    E′(u) − E(u) and the largest E(u) − E′(u) together: of tuples of a few parts of every point where E bends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accord.noise import MILLION

SURE = 2**63
_MOST_DRAWS = 100_000
_MOST_TUPLES = 4_000_000
"""Of tuples of parts: beyond, their law is not reckoned one by one."""
_SOME_PARTS = 5
_LOGS: dict[Any, NDArray[np.float64]] = {}
"""Laws of tuples that have been reckoned: tiny tables have many of them in common."""
_MOST_KEPT = 1_000
Run = Callable[["RecordingNoise"], Any]
"""A release, up to its noise: gives all that is published."""


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


@dataclass(frozen=True)
class Law:
    """A mixture of independent draws, and the answers for given outcomes."""

    weights: tuple[float, ...]
    branches: tuple[tuple[Draw, ...], ...]
    """The draws, for each possibility of who is kept."""
    answers: tuple[str, ...]

    @cached_property
    def shapes(self) -> frozenset[Any]:
        """What must not depend on the data, nor on who is kept."""
        return frozenset(tuple(draw.shape for draw in draws) for draws in self.branches)


def law(run: Run, row_chances: Sequence[int] | None = None) -> Law:
    """The whole law of a release on one table."""
    noises, answers = zip(*_branches(run, row_chances), strict=True)
    other_answers = {tuple(_other_answers(run, noise)) for noise in (noises[0], *noises[1:][-1:])}
    if len(set(map(repr, answers))) > 1 or len(other_answers) > 1:
        raise Leak("who is kept moves the answer beside the noise")
    weights = tuple(noise.weight for noise in noises)
    draws = tuple(tuple(noise.draws) for noise in noises)
    return Law(weights, draws, (repr(answers[0]), *other_answers.pop()))


def law_if_all_are_kept(run: Run) -> tuple[Law, RecordingNoise]:
    """One branch of the law, for large tables; with what was asked of the noise."""
    noise = RecordingNoise()
    answer = run(noise)
    return Law((1.0,), (tuple(noise.draws),), (repr(answer), *_other_answers(run, noise))), noise


def _other_answers(run: Run, noise: RecordingNoise) -> list[str]:
    """The answers for other outcomes, where the same people are kept."""
    kept, answers = [heads for _, heads in noise.coins], []
    for outcome in OUTCOMES[1:]:
        other = RecordingNoise(outcome, kept, noise.row_chances)
        answers.append(repr(run(other)))
        if [d.inputs for d in other.draws] != [d.inputs for d in noise.draws]:
            raise Adaptive("what is drawn depends on what came out before")
    return answers


def _branches(run: Run, row_chances: Sequence[int] | None) -> Iterator[tuple[RecordingNoise, Any]]:
    """Every possibility of who is kept, with its answer."""
    prefixes: list[tuple[bool, ...]] = [()]
    while prefixes:
        prefix = prefixes.pop()
        noise = RecordingNoise(kept=prefix, row_chances=row_chances)
        yield noise, run(noise)
        heads = tuple(h for _, h in noise.coins)
        for k, (chance, _) in enumerate(noise.coins[len(prefix) :], len(prefix)):
            if 0 < chance < SURE:
                prefixes.append((*heads[:k], False))


def loss(here: Law, there: Law) -> Fraction | float:
    """The largest |log ratio| of the probabilities of all outcomes. Exact where noise was only added."""
    if len(here.shapes | there.shapes) > 1:
        raise Leak("what can come out, or how much noise there is, depends on the data")
    if here.answers != there.answers:
        raise Leak("the answer moves beside the noise")
    if len(here.branches) == len(there.branches) == 1:
        return _loss_of_draws(here.branches[0], there.branches[0])
    return _loss_of_mixtures(here, there)


def _loss_of_draws(here: Sequence[Any], there: Sequence[Any]) -> Fraction | float:
    total: Fraction | float = Fraction(0)
    up = down = 0.0
    for draw, draw_there in zip(here, there, strict=True):
        if isinstance(draw, Boxed):
            total += draw.loss(draw_there)
        elif isinstance(draw, Added):
            if draw.value != draw_there.value:
                total += abs(draw.value - draw_there.value) / draw.scale
        elif isinstance(draw, Ordered) and not draw.is_small:
            lost = draw.most_moved(draw_there)
            up, down = up + lost, down + lost
        else:
            gaps = draw.logs - draw_there.logs
            up, down = up + float(gaps.max()), down - float(gaps.min())
    return total + max(up, down) if up or down else total


def _loss_of_mixtures(here: Law, there: Law) -> float:
    boxes, boxes_there = _boxes(here), _boxes(there)
    lost = sum((a.loss(b) for a, b in zip(boxes, boxes_there, strict=True)), Fraction(0))
    return float(lost) + _loss_without_boxes(_without_boxes(here), _without_boxes(there))


def _boxes(law: Law) -> list[Boxed]:
    """The noises that several integers share: the same whoever is kept."""
    each = [[draw for draw in draws if isinstance(draw, Boxed)] for draws in law.branches]
    if any([box.inputs for box in boxes] != [box.inputs for box in each[0]] for boxes in each):
        raise Leak("who is kept moves integers that share one noise, of which nothing can be said")
    return each[0]


def _without_boxes(law: Law) -> Law:
    others = (tuple(draw for draw in draws if not isinstance(draw, Boxed)) for draws in law.branches)
    return replace(law, branches=tuple(others))


def _loss_without_boxes(here: Law, there: Law) -> float:
    branches = (*here.branches, *there.branches)
    places = [  # along each coordinate, the integers with noise of either law; none of a choice
        sorted({draw.value for draws in branches if isinstance(draw := draws[k], Added)})
        for k in range(len(branches[0]))
    ]

    def along(draw: Draw, integers: list[int]) -> NDArray[np.float64]:
        if isinstance(draw, Added):
            return np.array([-abs(z - draw.value) / draw.scale for z in integers], dtype=np.float64)
        assert isinstance(draw, Chosen) or (isinstance(draw, Ordered) and draw.is_small)
        return draw.logs

    def logs(law: Law) -> NDArray[np.float64]:
        each = []
        for weight, draws in zip(law.weights, law.branches, strict=True):
            whole: Any = np.log(weight) if weight else -np.inf
            for k, draw in enumerate(draws):
                axes = [-1 if j == k else 1 for j in range(len(places))]
                whole = whole + along(draw, places[k]).reshape(axes)
            each.append(whole)
        return np.asarray(reduce(np.logaddexp, each))

    return float(np.abs(logs(here) - logs(there)).max())
