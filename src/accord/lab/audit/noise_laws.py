"""The law of the noise: of its coin, its draws and choices, whom it keeps, its random words.

Scales, scores and chances are drawn anew in each audit.

Exactly, where every sequence of decisions can be followed: scales of small numerators, whole laws; large
ones, at places that are evenly spread. On one long random sequence elsewhere: of n draws, an event of
probability p happens a share f of the times with n·KL(f‖p) > x in at most 2·exp(−x) of all sequences
(Chernoff, Hoeffding), and x is such that the audit of a sound noise finds something once in 10⁹ times, over
all events together. The coin that shows heads with probability exp(−a/b) is looked at by itself first, and
then taken as one decision; and so is the geometric variable of which the radius of a box is made.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, pairwise
from math import comb, exp, inf, log, prod
from typing import Any

import numpy as np

from accord.lab.audit.findings import Look
from accord.lab.audit.noise_decisions import NEGLIGIBLE, RecordedSource, law_of
from accord.lab.audit.noise_source import NoiseCopy, noise_on, or_failure
from accord.lab.audit.recorded_draws import Ordered
from accord.noise import MILLION
from accord.statistics import box

_DRAWS, _CHOICES, _BOXES, _TUPLES = 3_000, 1_500, 600, 600
EVENTS = 10_000
"""More than there are events on random sequences in one audit."""
_SURPRISE = log(2 * EVENTS / 1e-9)
_QUANTILES = (0.002, 0.01, 0.04, 0.12, 0.27, 0.4, 0.5, 0.6, 0.73, 0.88, 0.96, 0.99, 0.998)
_IMPOSSIBLE = 1e-300
_LIKELY = 1e-5
"""Places that are less likely are not compared."""
_COINS = ((0, 1), (1, 1), (1, 2), (5, 7), (1, 1000))
_CERTAIN = 2**63
_LARGEST_RADIUS = 6


def examine(rng: np.random.Generator) -> Iterator[Look]:
    """Of the coin, of draws of all kinds of scales, of choices, of keeping people: what is lost at least."""
    numbers = random.Random(int(rng.integers(2**63)))
    for name, look in _looks(numbers, NoiseCopy(RecordedSource(numbers))):
        yield or_failure(name, look)


def _looks(rng: random.Random, noise: NoiseCopy) -> Iterator[tuple[str, Callable[[], Look]]]:
    a, b = sorted(rng.randrange(1, 10**9) for _ in range(2))
    for coin in (*_COINS, (a, b)) if noise.own_coin() else ():
        yield "coin", partial(_coin, *coin)
    for scale in (Fraction(1), Fraction(2), Fraction(1, 2), *_small_scales(rng)):
        yield "Laplace", partial(_whole_law, scale)
    for scale in _large_scales(rng):
        yield "Laplace", partial(_slope_at_places, scale)
    for scale in (*_small_scales(rng), *_large_scales(rng), *_fine_scales(rng)):
        yield "Laplace", partial(_sampled_laplace, noise, scale)
    for scale in _large_scales(rng):
        yield "Laplace", partial(_remainders, noise, scale, rng.randrange(2, 17))
    for t, s in ((1, 1), (2, 1), (rng.randrange(2, 9), 2)) if noise.own_geometric() else ():
        yield "box", partial(_geometric, t, s)
    for spans in _small_boxes(rng):
        yield "box", partial(_law_of_box, spans)
    for spans, scale in _boxes(rng):
        yield "box", partial(_sampled_box, noise, spans, scale)
    for choice in _choices(rng):
        yield "choice", partial(_sampled_choices, noise, *choice)
    for law in _ordered_laws(rng):
        yield "ordered points", partial(_sampled_ordered, noise, law)
    yield "keeping people", partial(_sampled_keeping, noise, rng)
    yield "random words", partial(_sampled_words, noise)


def _look(name: str, promised: float, loss: float, evidence: str) -> Look:
    return Look("exact", "noise", name, "", "", promised, loss, evidence)


# ---- scales ------------------------------------------------------------------------------------------------


def _small_scales(rng: random.Random) -> list[Fraction]:
    """Below 1, about 1, above; never whole."""
    t = rng.randrange(2, 9)
    return [
        Fraction(1, rng.randrange(3, 30)),
        Fraction(t, t + 1),
        Fraction(2 * t + 1, 2),
        Fraction(41, rng.randrange(2, 40)),
    ]


def _large_scales(rng: random.Random) -> list[Fraction]:
    """As releases have them, and beyond.

    Millionths times a span, which may be odd; that over a few people; about the largest; far beyond it.
    """
    span = 2 * rng.randrange(50, 10**6) + 1
    return [
        Fraction(10**6 * span),
        Fraction(10**6 * span, rng.choice((3, 7, 11))),
        Fraction(10**18 + 2 * rng.randrange(10**6) + 1, 7),
        Fraction(rng.randrange(10**40, 10**41), rng.randrange(1, 100)),
    ]


def _fine_scales(rng: random.Random) -> list[Fraction]:
    """Large numerators over large denominators."""
    large = rng.randrange(10**17, 10**18)
    return [Fraction(large, rng.randrange(10**18, 10**19)), Fraction(large, rng.randrange(10**16, 10**17))]


# ---- every sequence of decisions ---------------------------------------------------------------------------


def _coin(a: int, b: int) -> Look:
    """Heads with probability exp(−a/b), neither more nor less."""
    law, rest = law_of(lambda source: _toss(NoiseCopy(source), a, b))
    heads = law.get(1, 0.0)
    is_right = abs(heads - exp(-a / b)) <= rest + NEGLIGIBLE
    return _look(f"coin exp(−{a}/{b})", a / b, a / b if is_right else inf, f"heads: {heads:.9f}")


def _toss(noise: NoiseCopy, a: int, b: int) -> bool:
    coin = noise.own_coin()
    assert coin is not None
    return coin(a, b)


def _whole_law(scale: Fraction) -> Look:
    """The whole law of a draw, and its steepest step."""
    law, rest = law_of(lambda source: noise_on(source).laplace(scale))
    steps = [log(p / (law.get(x + step, _IMPOSSIBLE) + rest)) for x, p in law.items() for step in (-1, 1)]
    off = max(abs(p - _probability(x, scale)) for x, p in law.items())
    promised, loss = float(1 / scale), max(0.0, *steps)
    evidence = f"{1 - rest:.7%} of all draws"
    if off > rest + 100 * NEGLIGIBLE and loss <= promised:
        loss, evidence = inf, f"{evidence}; their law is another"
    return _look(f"Laplace of scale {scale}", promised, loss, evidence)


def _slope_at_places(scale: Fraction) -> Look:
    """By how much the logarithm of a probability falls over one scale: 1, neither more nor less."""
    law, rest = law_of(lambda source: noise_on(source).laplace(scale))
    places = sorted((abs(x), p) for x, p in law.items() if p > _LIKELY)
    name, evidence = f"Laplace of scale {float(scale):.3g}", f"at {len(places)} places"
    loss = 0.0
    for (x, p), (y, q) in pairwise(places):
        expected, error = float((y - x) / scale), float(2 / scale) + 2 * (rest + NEGLIGIBLE) / min(p, q)
        fall = log(p / q)
        if abs(fall) > error:
            loss = max(loss, fall / (expected + error))
        if fall < expected - error:
            return _look(name, 1.0, inf, f"{evidence}; their law is another")
    return _look(name, 1.0, loss if len(places) > 1 else inf, evidence)


def _probability(x: int, scale: Fraction) -> float:
    q = exp(-float(1 / scale))
    return (1 - q) / (1 + q) * exp(-float(abs(x) / scale))


def _geometric(t: int, s: int) -> Look:
    """The whole law of the geometric variables of which a box's radius is made."""
    law, rest = law_of(lambda source: _own(noise_on(source))(t, s))
    q = exp(-s / t)
    off = max(abs(p - (1 - q) * q**x) for x, p in law.items())
    is_right = off <= rest + 100 * NEGLIGIBLE
    return _look(f"geometric of {t}/{s}", s / t, s / t if is_right else inf, f"{1 - rest:.7%} of all draws")


def _own(noise: NoiseCopy) -> Callable[[int, int], int]:
    own = noise.own_geometric()
    assert own is not None
    return own


def _small_boxes(rng: random.Random) -> list[tuple[int, ...]]:
    """Of one span, of several, of different ones."""
    return [(rng.randrange(1, 5),), (1, rng.randrange(2, 5)), (rng.randrange(1, 3), 1, 2)]


def _law_of_box(spans: tuple[int, ...]) -> Look:
    """Which radii are kept, and what is drawn for each: all radii up to one, and all of what comes of them.

    A radius r is the sum of d + 1 geometric variables with probability ∝ C(r + d, d)·exp(−r/scale). It must
    be kept in proportion to Π(2·r·span + 1)/C(r + d, d), and every z with |z_k| ≤ r·span_k be as likely.
    """
    d, problem, odds = len(spans), "", []
    for radius in range(_LARGEST_RADIUS):
        law, rest = law_of(partial(_kept_of_radius, spans, radius))
        rejected, size = law.pop((), 0.0), prod(2 * radius * span + 1 for span in spans)
        inside = all(abs(x) <= radius * span for z in law for x, span in zip(z, spans, strict=True))
        even = max(law.values(), default=0.0) - min(law.values(), default=0.0) <= NEGLIGIBLE
        if rest > NEGLIGIBLE or len(law) != size or not inside or not even:
            problem = f"of radius {radius}, not all are as likely"
        odds.append((1 - rejected) * comb(radius + d, d) / size)
    if max(odds) - min(odds) > 100 * NEGLIGIBLE:
        problem = problem or "some radii are kept too often"
    evidence = f"all radii up to {_LARGEST_RADIUS - 1}{'; ' if problem else ''}{problem}"
    return _look(f"box of spans {spans}", 1.0, inf if problem else 1.0, evidence)


def _kept_of_radius(spans: tuple[int, ...], radius: int, source: Any) -> tuple[int, ...]:
    """What is drawn if the geometric variables come to this radius; empty, if others would be drawn."""
    drawn = [radius] + [0] * len(spans)

    def decided(t: int, s: int) -> int:
        if not drawn:
            raise _DrawnAgain
        return drawn.pop()

    try:
        return tuple(NoiseCopy(source, geometric=decided).box(spans))
    except _DrawnAgain:
        return ()


class _DrawnAgain(Exception):  # noqa: N818  a radius that was not kept
    pass


# ---- one long sequence -------------------------------------------------------------------------------------


def surprising(hits: int, draws: int, p: float) -> bool:
    """Whether an event of probability p happens so many times in one of 10⁹ audits at most."""
    f = hits / draws
    if p <= 0 or p >= 1:
        return f != min(max(p, 0.0), 1.0)
    return draws * sum(a * log(a / b) for a, b in ((f, p), (1 - f, 1 - p)) if a > 0) > _SURPRISE


def _any_surprising(counts: Sequence[int], chances: Sequence[float]) -> bool:
    """Whether the count of a bin, or of all bins up to one, is surprising."""
    draws, p, sums = sum(counts), np.cumsum(chances), np.cumsum(counts)
    bins = [surprising(k, draws, c) for k, c in zip(counts, chances, strict=True)]
    return any(bins) or any(
        surprising(int(k), draws, float(c)) for k, c in zip(sums[:-1], p[:-1], strict=True)
    )


def _sampled_laplace(noise: NoiseCopy, scale: Fraction) -> Look:
    ends = sorted({_quantile(p, scale) for p in _QUANTILES})
    up_to = [0.0, *(_at_most(k, scale) for k in ends), 1.0]
    draw = noise.laplace  # copied once, not for every draw
    places = [sum(x > end for end in ends) for x in (draw(scale) for _ in range(_DRAWS))]
    wrong = _any_surprising(np.bincount(places, minlength=len(ends) + 1).tolist(), np.diff(up_to).tolist())
    return _sampled_look(f"Laplace of scale {float(scale):.3g}, drawn", wrong, _DRAWS)


def _remainders(noise: NoiseCopy, scale: Fraction, by: int) -> Look:
    """At a large scale no remainder is likelier than another."""
    draw = noise.laplace
    remainders = [draw(scale) % by for _ in range(_DRAWS)]
    wrong = _any_surprising(np.bincount(remainders, minlength=by).tolist(), [1 / by] * by)
    return _sampled_look(f"Laplace of scale {float(scale):.3g}, remainders by {by}", wrong, _DRAWS)


def _sampled_look(name: str, wrong: bool, draws: int) -> Look:
    evidence = f"{draws:,} draws from one sequence{'; their law is another' if wrong else ''}"
    return _look(name, 1.0, inf if wrong else 1.0, evidence)


def _at_most(k: int, scale: Fraction) -> float:
    """P(x ≤ k)."""
    norm = 1 + exp(-float(1 / scale))
    return exp(float(k / scale)) / norm if k < 0 else 1 - exp(-float((k + 1) / scale)) / norm


def _quantile(p: float, scale: Fraction) -> int:
    """About where P(x ≤ k) = p; any integer near it does as well."""
    return round(scale * Fraction(log(2 * p) if p < 0.5 else -log(2 * (1 - p))))


def _boxes(rng: random.Random) -> list[tuple[tuple[int, ...], Fraction]]:
    """As releases have them: millionths, of one, a few and many spans, equal and different."""
    return [
        ((2 * rng.randrange(50, 10**6) + 1,), MILLION),
        ((1, rng.randrange(2, 10**6), 2**42), MILLION),
        (tuple(rng.randrange(1, 2**20) for _ in range(rng.randrange(4, 12))), MILLION),
    ]


def _sampled_box(noise: NoiseCopy, spans: tuple[int, ...], scale: Fraction) -> Look:
    """Each coordinate, the largest of all, and whether signs go together."""
    d, draw = len(spans), noise.box
    drawn = [draw(spans, scale) for _ in range(_BOXES)]
    relative = np.array(
        [[float(x / (span * scale)) for x, span in zip(z, spans, strict=True)] for z in drawn]
    )
    ends = [(d + 1) * at for at in (0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0)]
    tails = [1.0, *(box.tail(h, d) for h in ends), 0.0]
    beyond = [1.0, *(box.upper_gamma(d, h) for h in ends), 0.0]
    wrong = False
    for sizes, falling in (
        *((np.abs(column), tails) for column in relative.T[:4]),
        (np.abs(relative).max(axis=1), beyond),
    ):
        counts = np.histogram(sizes, [0.0, *ends, inf])[0].tolist()
        wrong |= _any_surprising(counts, (-np.diff(falling)).tolist())
    positive = int(((relative[:, 0] > 0) == (relative[:, -1] > 0)).sum())
    wrong |= d > 1 and surprising(positive, _BOXES, 0.5)
    return _sampled_look(f"box of {d} spans, drawn", wrong, _BOXES)


def _choices(rng: random.Random) -> list[tuple[Any, ...]]:
    """Scores and their scale, and how many times each is there, if not once.

    One thing, ties, scores that hardly differ, at random, beyond 64 bits, or with such differences.
    """
    scale = rng.randrange(1, 10**6)
    drawn = [rng.randrange(3 * scale) for _ in range(rng.randrange(2, 9))]
    huge = 2 ** rng.randrange(64, 100)
    times = np.array([rng.randrange(1, 2**40), *(rng.randrange(1, 9) for _ in drawn)])
    return [
        (np.array([0, 0, 0, -1, -1]), 3, np.array([1, 7, 2, 1, 30])),
        (np.array([min(drawn) - 20 * scale, *drawn]), scale, times),
        (np.array([rng.randrange(-9, 9)]), rng.randrange(1, 9)),
        (np.array([0, -99, -101, -250]), 100),
        (np.array([drawn[0]] * rng.randrange(2, 5)), scale),
        (np.array([*drawn, drawn[-1], max(drawn) - scale + 1]), scale),
        (np.array([k * huge + rng.randrange(huge) for k in (-1, 0, 1, 1, 2)], dtype=object), huge),
        (np.array([-(2**62) - rng.randrange(2**60), 2**62, 2**62 + rng.randrange(2**61)]), 2**61),
    ]


def _ordered_laws(rng: random.Random) -> list[Ordered]:
    """One heavy point that is aimed at from inside, several, none with any weight; points that count more."""
    heavy = rng.randrange(20, 40)
    ps = (Fraction(2, 5), Fraction(1, 2), Fraction(7, 10))
    return [
        Ordered(np.array([0, heavy, 0]), ps, Fraction(4), 3 * heavy),
        Ordered(np.array([rng.randrange(9) for _ in range(5)]), ps[:2], Fraction(rng.randrange(2, 9), 2), 12),
        Ordered(np.array([0, 0, 0, 0]), ps[1:], Fraction(4), 2),
        Ordered(np.array([5, 2, heavy]), ps[::2], Fraction(4), 40, np.array([rng.randrange(1, 9), 1, 3])),
    ]


def _sampled_ordered(noise: NoiseCopy, law: Ordered) -> Look:
    """How often each tuple of points is drawn; what is no tuple in order, is none at all."""
    draw, drawn = noise.ordered, []
    for _ in range(_TUPLES):
        drawn.append(tuple(draw(law.weights, law.ps, law.scale, law.parts, law.times)))
    tuples = list(combinations_with_replacement(range(len(law.weights)), len(law.ps)))
    counts = [drawn.count(each) for each in tuples]
    wrong = sum(counts) != _TUPLES or _any_surprising(counts, np.exp(law.logs).tolist())
    name = f"{len(law.ps)} ordered of {len(law.weights)} points, drawn"
    return _sampled_look(name, wrong, _TUPLES)


def _sampled_choices(noise: NoiseCopy, scores: Any, scale: int, *times: Any) -> Look:
    best = max(scores.tolist())
    weights = np.array([exp(-float(Fraction(best - s, scale))) for s in scores.tolist()])
    weights = weights * times[0] if times else weights
    choose = noise.choose
    chosen = [choose(scores, scale, *times) for _ in range(_CHOICES)]
    counts = np.bincount(chosen, minlength=len(scores)).tolist()
    wrong = _any_surprising(counts, (weights / weights.sum()).tolist())
    repeats = ", some there several times" if times else ""
    return _sampled_look(f"choice of {len(scores)} at scale {float(scale):.3g}{repeats}", wrong, _CHOICES)


def _sampled_keeping(noise: NoiseCopy, rng: random.Random) -> Look:
    """People of several chances, in one row: never, always, and between."""
    chances = [0, _CERTAIN, _CERTAIN // 20, _CERTAIN // 2, *(rng.randrange(_CERTAIN) for _ in range(4))]
    kinds = np.array(rng.choices(range(len(chances)), k=len(chances) * _DRAWS))
    kept = noise.keep(np.array(chances, dtype=np.uint64)[kinds])
    wrong = [
        chance / _CERTAIN
        for k, chance in enumerate(chances)
        if surprising(int(kept[kinds == k].sum()), int((kinds == k).sum()), chance / _CERTAIN)
    ]
    evidence = f"{kinds.size:,} people" + (f"; not with chance {wrong[0]:.6g}" if wrong else "")
    return _look("kept by chance", 1.0, inf if wrong else 1.0, evidence)


def _sampled_words(noise: NoiseCopy) -> Look:
    """Below 2⁶³, every bit a fair coin, and none twice."""
    words = noise.words(_DRAWS).astype(np.uint64)
    ones = [int((words >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)]
    unfair = any(surprising(hits, _DRAWS, 0.5) for hits in ones[:63])
    wrong = ones[63] > 0 or unfair or np.unique(words).size < _DRAWS
    return _look("random words", 0.0, inf if wrong else 0.0, f"{_DRAWS:,} words from one sequence")
