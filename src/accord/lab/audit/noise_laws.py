"""The law of the noise: of its coin, its draws and choices, whom it keeps, its random words. Scales, scores
and chances are drawn anew in each audit.

Exactly, where every sequence of decisions can be followed: scales of small numerators, whole laws; large
ones, at places that are evenly spread. On one
long random sequence elsewhere: of n draws, an event of probability p happens a share f of the times with
    n·KL(f‖p) > x in at most 2·exp(−x) of all
sequences (Chernoff, Hoeffding), and x is such that the audit of a sound noise finds something once in 10⁹
times, over all events together. The coin that shows heads with probability exp(−a/b) is looked at by itself
first, and then taken as one decision.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import exp, inf, log
from typing import Any

import numpy as np

from accord.lab.audit.findings import Seen
from accord.lab.audit.given import NEGLIGIBLE, Recorded, law_of
from accord.lab.audit.source import Copy, following, or_fails

_DRAWS, _CHOICES = 3_000, 1_500
EVENTS = 10_000
"""More than there are events on random sequences in one audit."""
_SURPRISE = log(2 * EVENTS / 1e-9)
_QUANTILES = (0.002, 0.01, 0.04, 0.12, 0.27, 0.4, 0.5, 0.6, 0.73, 0.88, 0.96, 0.99, 0.998)
_NONE = 1e-300
_PLACE = 1e-5
"""Places that are less likely are not compared."""
_COINS = ((0, 1), (1, 1), (1, 2), (5, 7), (1, 1000))
_CERTAIN = 2**63


def losses(rng: np.random.Generator) -> Iterator[Seen]:
    """Of the coin, of draws of all kinds of scales, of choices, of keeping people: what is lost at least."""
    own = random.Random(int(rng.integers(2**63)))
    yield from (seen for name, look in _looks(own, Copy(Recorded(own))) for seen in or_fails(name, look))


def _looks(rng: random.Random, noise: Copy) -> Iterator[tuple[str, Callable[[], Seen]]]:
    a, b = sorted(rng.randrange(1, 10**9) for _ in range(2))
    for coin in (*_COINS, (a, b)) if noise.own_coin() else ():
        yield "coin", partial(_coin, *coin)
    for scale in (Fraction(1), Fraction(2), Fraction(1, 2), *_small(rng)):
        yield "Laplace", partial(_followed, scale)
    for scale in _large(rng):
        yield "Laplace", partial(_at_places, scale)
    for scale in (*_small(rng), *_large(rng), *_fine(rng)):
        yield "Laplace", partial(_sampled, noise, scale)
    for scale in _large(rng):
        yield "Laplace", partial(_digits, noise, scale, rng.randrange(2, 17))
    for scores, size in _scored(rng):
        yield "choice", partial(_chosen, noise, scores, size)
    yield "keeping people", partial(_kept, noise, rng)
    yield "random words", partial(_words, noise)


def _seen(name: str, promised: float, found: float, said: str) -> Seen:
    return Seen("exact", "noise", name, "", "", promised, found, said)


# ---- scales ------------------------------------------------------------------------------------------------


def _small(rng: random.Random) -> list[Fraction]:
    """Below 1, about 1, above; never whole."""
    t = rng.randrange(2, 9)
    return [
        Fraction(1, rng.randrange(3, 30)),
        Fraction(t, t + 1),
        Fraction(2 * t + 1, 2),
        Fraction(41, rng.randrange(2, 40)),
    ]


def _large(rng: random.Random) -> list[Fraction]:
    """As releases have them: millionths times a span, which may be odd; that over a few people; about the
    largest; far beyond it.
    """
    span = 2 * rng.randrange(50, 10**6) + 1
    return [
        Fraction(10**6 * span),
        Fraction(10**6 * span, rng.choice((3, 7, 11))),
        Fraction(10**18 + 2 * rng.randrange(10**6) + 1, 7),
        Fraction(rng.randrange(10**40, 10**41), rng.randrange(1, 100)),
    ]


def _fine(rng: random.Random) -> list[Fraction]:
    """Large numerators over large denominators."""
    large = rng.randrange(10**17, 10**18)
    return [Fraction(large, rng.randrange(10**18, 10**19)), Fraction(large, rng.randrange(10**16, 10**17))]


# ---- every sequence of decisions ---------------------------------------------------------------------------


def _coin(a: int, b: int) -> Seen:
    """Heads with probability exp(−a/b), neither more nor less."""
    law, rest = law_of(lambda given: _toss(Copy(given), a, b))
    right = abs(law.get(1, 0.0) - exp(-a / b)) <= rest + NEGLIGIBLE
    return _seen(f"coin exp(−{a}/{b})", a / b, a / b if right else inf, f"heads: {law.get(1, 0.0):.9f}")


def _toss(noise: Copy, a: int, b: int) -> bool:
    coin = noise.own_coin()
    assert coin is not None
    return coin(a, b)


def _followed(scale: Fraction) -> Seen:
    """The whole law of a draw, and its steepest step."""
    law, rest = law_of(lambda given: following(given).laplace(scale))
    steps = [log(p / (law.get(x + step, _NONE) + rest)) for x, p in law.items() for step in (-1, 1)]
    off = max(abs(p - _probability(x, scale)) for x, p in law.items())
    promised, found = float(1 / scale), max(0.0, *steps)
    said = f"{1 - rest:.7%} of all draws"
    if off > rest + 100 * NEGLIGIBLE and found <= promised:
        found, said = inf, f"{said}; their law is another"
    return _seen(f"Laplace of scale {scale}", promised, found, said)


def _at_places(scale: Fraction) -> Seen:
    """By how much the logarithm of a probability falls over one scale: 1, neither more nor less."""
    law, rest = law_of(lambda given: following(given).laplace(scale))
    places = sorted((abs(x), p) for x, p in law.items() if p > _PLACE)
    found, said = 0.0, f"at {len(places)} places"
    for (x, p), (y, q) in pairwise(places):
        falls, error = float((y - x) / scale), float(2 / scale) + 2 * (rest + NEGLIGIBLE) / min(p, q)
        fall = log(p / q)
        found = max(found, fall / (falls + error)) if abs(fall) > error else found
        if fall < falls - error:
            return _seen(f"Laplace of scale {float(scale):.3g}", 1.0, inf, f"{said}; their law is another")
    return _seen(f"Laplace of scale {float(scale):.3g}", 1.0, found if len(places) > 1 else inf, said)


def _probability(x: int, scale: Fraction) -> float:
    q = exp(-float(1 / scale))
    return (1 - q) / (1 + q) * exp(-float(abs(x) / scale))


# ---- one long sequence -------------------------------------------------------------------------------------


def surprising(hits: int, draws: int, p: float) -> bool:
    """Whether an event of probability p happens so often once in 10⁹ audits at most."""
    f = hits / draws
    if p <= 0 or p >= 1:
        return f != min(max(p, 0.0), 1.0)
    return draws * sum(a * log(a / b) for a, b in ((f, p), (1 - f, 1 - p)) if a > 0) > _SURPRISE


def _any(counts: Sequence[int], chances: Sequence[float]) -> bool:
    """Whether a cell, or all cells up to one, are surprising."""
    draws, p, sums = sum(counts), np.cumsum(chances), np.cumsum(counts)
    cells = [surprising(k, draws, c) for k, c in zip(counts, chances, strict=True)]
    return any(cells) or any(
        surprising(int(k), draws, float(c)) for k, c in zip(sums[:-1], p[:-1], strict=True)
    )


def _sampled(noise: Copy, scale: Fraction) -> Seen:
    draw = noise.laplace
    ends = sorted({_quantile(p, scale) for p in _QUANTILES})
    up_to = [0.0, *(_at_most(k, scale) for k in ends), 1.0]
    places = [_place(draw(scale), ends) for _ in range(_DRAWS)]
    wrong = _any(np.bincount(places, minlength=len(ends) + 1).tolist(), np.diff(up_to).tolist())
    return _drawn(f"Laplace of scale {float(scale):.3g}, drawn", wrong, _DRAWS)


def _digits(noise: Copy, scale: Fraction, by: int) -> Seen:
    """At a large scale no remainder is likelier than another."""
    draw = noise.laplace
    wrong = _any(np.bincount([draw(scale) % by for _ in range(_DRAWS)], minlength=by).tolist(), [1 / by] * by)
    return _drawn(f"Laplace of scale {float(scale):.3g}, remainders by {by}", wrong, _DRAWS)


def _drawn(name: str, wrong: bool, draws: int) -> Seen:
    said = f"{draws:,} draws from one sequence{'; their law is another' if wrong else ''}"
    return _seen(name, 1.0, inf if wrong else 1.0, said)


def _place(x: int, ends: list[int]) -> int:
    return sum(x > end for end in ends)


def _at_most(k: int, scale: Fraction) -> float:
    """P(x ≤ k)."""
    norm = 1 + exp(-float(1 / scale))
    return exp(float(k / scale)) / norm if k < 0 else 1 - exp(-float((k + 1) / scale)) / norm


def _quantile(p: float, scale: Fraction) -> int:
    """About where P(x ≤ k) = p; any integer near it does as well."""
    return round(scale * Fraction(log(2 * p) if p < 0.5 else -log(2 * (1 - p))))


def _scored(rng: random.Random) -> list[tuple[Any, int]]:
    """One thing, ties, scores that hardly differ, those of an audit's own, and such as do not fit into 64
    bits, or whose differences do not.
    """
    size = rng.randrange(1, 10**6)
    own = [rng.randrange(3 * size) for _ in range(rng.randrange(2, 9))]
    huge = 2 ** rng.randrange(64, 100)
    return [
        (np.array([rng.randrange(-9, 9)]), rng.randrange(1, 9)),
        (np.array([0, -99, -101, -250]), 100),
        (np.array([own[0]] * rng.randrange(2, 5)), size),
        (np.array([*own, own[-1], max(own) - size + 1]), size),
        (np.array([k * huge + rng.randrange(huge) for k in (-1, 0, 1, 1, 2)], dtype=object), huge),
        (np.array([-(2**62) - rng.randrange(2**60), 2**62, 2**62 + rng.randrange(2**61)]), 2**61),
    ]


def _chosen(noise: Copy, scores: Any, size: int) -> Seen:
    best = max(scores.tolist())
    weights = np.array([exp(-float(Fraction(best - s, size))) for s in scores.tolist()])
    choose = noise.choose
    counts = np.bincount([choose(scores, size) for _ in range(_CHOICES)], minlength=len(scores)).tolist()
    wrong = _any(counts, (weights / weights.sum()).tolist())
    return _drawn(f"choice of {len(scores)} at scale {float(size):.3g}", wrong, _CHOICES)


def _kept(noise: Copy, rng: random.Random) -> Seen:
    """People of several chances, in one row: never, always, and between."""
    chances = [0, _CERTAIN, _CERTAIN // 20, _CERTAIN // 2, *(rng.randrange(_CERTAIN) for _ in range(4))]
    each = np.array(rng.choices(range(len(chances)), k=len(chances) * _DRAWS))
    kept = noise.keep(np.array(chances, dtype=np.uint64)[each])
    wrong = [
        c / _CERTAIN
        for k, c in enumerate(chances)
        if surprising(int(kept[each == k].sum()), int((each == k).sum()), c / _CERTAIN)
    ]
    said = f"{each.size:,} people" + (f"; not with chance {wrong[0]:.6g}" if wrong else "")
    return _seen("kept by chance", 1.0, inf if wrong else 1.0, said)


def _words(noise: Copy) -> Seen:
    """Below 2⁶³, every bit a fair coin, and none twice."""
    words = noise.words(_DRAWS).astype(np.uint64)
    bits = [int((words >> np.uint64(k) & np.uint64(1)).sum()) for k in range(64)]
    wrong = (
        bits[63] > 0
        or any(surprising(hits, _DRAWS, 0.5) for hits in bits[:63])
        or np.unique(words).size < _DRAWS
    )
    return _seen("random words", 0.0, inf if wrong else 0.0, f"{_DRAWS:,} words from one sequence")
