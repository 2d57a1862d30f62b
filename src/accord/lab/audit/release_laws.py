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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.lab.audit.recorded_draws import Added, Boxed, Chosen, Draw, Ordered
from accord.lab.audit.recording_noise import OUTCOMES, SURE, Adaptive, Leak, RecordingNoise

Run = Callable[[RecordingNoise], Any]
"""A release, up to its noise: gives all that is published."""


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
