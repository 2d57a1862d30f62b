"""Exact noise on integers: the only source of randomness of a release. It has no seed.

`laplace(scale)` draws an integer x with probability proportional to exp(−|x|/scale), exactly, for any
positive rational scale. No float takes part, so no rounding can make an output possible for one table and
impossible for its neighbor.

The argument, after Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
section 5. Let scale = t/s in lowest terms.

1. *A coin that shows heads with probability exp(−g), 0 ≤ g ≤ 1.* Toss coins with probabilities g/1, g/2, g/3,
   … until the first tail, at toss K. Then P(K > k) = g^k/k!, so P(K odd) = Σ_j (−g)^j/j! = exp(−g). With
   g = a/b, a coin with probability a/(b·k) is the event "a uniform integer below b·k is less than a". The
   coin's only input is uniform integers.
2. *A geometric variable X ≥ 0 with P(X = x) ∝ exp(−x/t).* Write x = u + t·v with 0 ≤ u < t. Then
   exp(−x/t) = exp(−u/t)·exp(−1)^v, a product, so u and v are independent: u is uniform on 0 … t − 1, kept
   with probability exp(−u/t), else drawn again; v is the number of heads of a coin with probability exp(−1)
   before its first tail.
3. *Coarser steps.* Y = ⌊X/s⌋ has P(Y = y) ∝ exp(−y·s/t) = exp(−y/scale): each y collects s consecutive x.
4. *Two sides.* A fair sign, drawing everything again for −0, gives P(x) ∝ exp(−|x|/scale) on all integers.

For integers S and S′ that differ by at most d, and every z,
    P(S + x = z)/P(S′ + x = z) = exp((|z − S′| − |z − S|)/scale) ≤ exp(d/scale):
that is the whole privacy argument of the additive mechanisms.

`box(spans, scale)` draws a vector z of integers with probability proportional to exp(−N(z)/scale), exactly,
for N(z) = max_k ⌈|z_k|/span_k⌉ and whole spans of at least 1: one noise for many sums (the K-norm mechanism
of Hardt and Talwar, "On the Geometry of Differential Privacy", 2010, on integers).

1. *A mixture of boxes.* The z with N(z) ≤ r are those with |z_k| ≤ r·span_k: Π_k(2·r·span_k + 1) of them.
   exp(−N/scale) is proportional to Σ_{r ≥ N} exp(−r/scale). So z is uniform in the box of radius r, where
   P(r) ∝ exp(−r/scale)·Π_k(2·r·span_k + 1).
2. *The radius.* The sum of d + 1 independent geometric variables, as above, has
   P(r) ∝ exp(−r/scale)·Π_{j=1…d}(r + j). For d spans it is kept with probability
   Π_j (2·r·span_j + 1)/(2·span_j·(r + j)), else drawn again. Every factor is
   (r + 1/(2·span_j))/(r + j) < 1: a coin by a uniform integer below 2·span_j·(r + j). What is kept has the
   law of 1.

For vectors S and S′ of integers with |S_k − S′_k| ≤ w·span_k for a whole number w and every k, and every z,
    N(z − S′) ≤ N(z − S) + N(S − S′) ≤ N(z − S) + w,
because ⌈a + b⌉ ≤ ⌈a⌉ + ⌈b⌉, and a maximum of sums is at most the sum of maxima; the normaliser holds no data.
So no probability changes by more than exp(w/scale), and z = S attains it where a coordinate moves by
w·span_k. Whoever moves every sum within its span loses no more than for one of them. docs/proofs/box.md has
the law of one coordinate.

`choose(scores, scale)` draws an index i with probability proportional to exp(score_i/scale), exactly (the
exponential mechanism). With g_i = (max score − score_i)/scale ≥ 0, split g_i = m_i + f_i into a whole part
and a rest below 1. A whole part m is drawn with probability ∝ n_m·exp(−m), n_m being the number of indices
that have it; then one of them, uniformly; it is kept with probability exp(−f_i) ≥ 1/e, by the coin above,
else all is drawn again. So index i is drawn with probability ∝ n_m·exp(−m)·(1/n_m)·exp(−f_i) = exp(−g_i).
With `times`, positive whole numbers, index i is there times_i times: n_m counts each as often, and the
uniform number tells which of them it is. So index i is drawn with probability ∝ times_i·exp(score_i/scale).
Neighboring indices with one score have one m and one f: they are looked at together, as a run, and the
uniform index tells which run it is in. The whole part is drawn by inverting its distribution function with
interval arithmetic: a uniform number of which only the first bits are drawn is compared with bounds of
exp(−m) from `decimal`, whose exp is correctly rounded; where the bounds do not decide, more bits are drawn
and the bounds made tighter. No decision ever rests on a rounded number.

`ordered(weights, ps, scale, parts)` draws points in order, together: several quantiles at once, with
probability proportional to exp(−E/scale), where E is by how much the weights between them are not those that
were asked for. ordered.py has the law, and why the draw is exact.

Uniform integers come from `secrets`, that is, from the operating system. The running time depends on the draw
(not on the data); whoever can time a single draw is outside the threat model (docs/guarantees.md).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from accord import ordered

MILLION = Fraction(10**6)
"""The scale of a box whose spans are what one person of charge 1 may move: charges are whole millionths."""


class Noise(Protocol):
    """What a mechanism may ask of a noise. `SECURE` is the only one in this package outside the lab."""

    def laplace(self, scale: Fraction) -> int: ...

    def box(self, spans: Sequence[int], scale: Fraction = MILLION) -> Sequence[int]: ...

    def choose(self, scores: Any, scale: int, times: Any = None) -> int: ...

    def ordered(
        self, weights: Any, ps: Sequence[Fraction], scale: Fraction, parts: int, times: Any = None
    ) -> Sequence[int]: ...

    def words(self, count: int) -> Any: ...

    def keep(self, chances: Any) -> Any: ...


class _Secure:
    """Noise from the operating system's randomness."""

    __slots__ = ()

    def laplace(self, scale: Fraction) -> int:
        """An integer with probability ∝ exp(−|x|/scale)."""
        if scale <= 0:
            raise ValueError("the scale of a Laplace noise is positive")
        t, s = scale.numerator, scale.denominator
        while True:
            magnitude = geometric(t, s)
            negative = secrets.randbits(1)
            if magnitude or not negative:
                return -magnitude if negative else magnitude

    def box(self, spans: Sequence[int], scale: Fraction = MILLION) -> Sequence[int]:
        """A vector of integers with probability ∝ exp(−max_k ⌈|z_k|/span_k⌉/scale)."""
        if scale <= 0 or not spans or min(spans) < 1:
            raise ValueError("a box needs a positive scale, and spans of at least 1")
        t, s = scale.numerator, scale.denominator
        while True:
            r = sum(geometric(t, s) for _ in range(len(spans) + 1))
            if all(
                secrets.randbelow(2 * span * (r + j)) < 2 * r * span + 1 for j, span in enumerate(spans, 1)
            ):
                return tuple(secrets.randbelow(2 * r * span + 1) - r * span for span in spans)

    def choose(self, scores: Any, scale: int, times: Any = None) -> int:
        """An index with probability ∝ exp(score/scale), or ∝ times·exp(score/scale).

        Scores: an array of whole numbers, of 64 bits or Python's own. Times: positive, and of 64 bits
        together.
        """
        if scale <= 0 or len(scores) == 0:
            raise ValueError("a choice needs a positive scale and something to choose from")
        if times is not None and (len(times) != len(scores) or int(times.min()) < 1):
            raise ValueError("each thing to choose from is there at least once")
        starts = np.append(0, np.flatnonzero(scores[1:] != scores[:-1]) + 1)  # of runs of one score
        stops = np.append(starts[1:], len(scores))
        sizes = stops - starts if times is None else np.add.reduceat(times, starts)
        scores = scores[starts]
        if int(scores.max()) - int(scores.min()) >= 2**63:
            scores = scores.astype(object)
        gaps = scores.max() - scores
        wholes = gaps // scale
        exponents, kind = np.unique(wholes, return_inverse=True)
        counts = np.zeros(exponents.size, dtype=np.int64)
        np.add.at(counts, kind, sizes)
        while True:
            k = by_weight(exponents, counts)
            runs = np.flatnonzero(kind == k)
            ends = np.cumsum(sizes[runs])
            member = secrets.randbelow(int(counts[k]))
            place = int(np.searchsorted(ends, member, side="right"))
            run = runs[place]
            if exp_coin(int(gaps[run]) % scale, scale):
                before = sizes[run] + member - ends[place]  # in its run, as often as each is there
                if times is None:
                    return int(starts[run] + before)
                up_to = np.cumsum(times[starts[run] : stops[run]])
                return int(starts[run] + np.searchsorted(up_to, before, side="right"))

    def ordered(
        self, weights: Any, ps: Sequence[Fraction], scale: Fraction, parts: int, times: Any = None
    ) -> Sequence[int]:
        """Ascending indices, one for each fraction p of the weights, by the law of ordered.py.

        Weights: an array of whole numbers, of 64 bits or Python's own. Parts: of each index. Times: as in
        `choose`.
        """
        return ordered.draw(ordered.OrderedLaw(weights, tuple(ps), scale, parts, times), secrets)

    def words(self, count: int) -> Any:
        """So many uniform whole numbers below 2⁶³."""
        return np.frombuffer(secrets.token_bytes(8 * count), dtype="<u8") >> 1

    def keep(self, chances: Any) -> Any:
        """For each whole number c from 0 to 2⁶³ whether to keep, with probability c/2⁶³ exactly.

        That is the event "a uniform number below 2⁶³ is below c".
        """
        return self.words(chances.size) < chances


def geometric(t: int, s: int) -> int:
    """An integer x ≥ 0 with probability ∝ exp(−x·s/t)."""
    while True:
        u = secrets.randbelow(t)
        if exp_coin(u, t):
            break
    v = 0
    while exp_coin(1, 1):
        v += 1
    return (u + t * v) // s


def by_weight(exponents: Any, counts: Any) -> int:
    """k with probability ∝ counts[k]·exp(−exponents[k]), for ascending whole exponents from 0 on."""
    uniform, bits, digits = 0, 0, 40
    while True:
        more = 4 * digits - bits  # 10^digits < 2^(4·digits)
        uniform = (uniform << more) + secrets.randbits(more)
        bits = 4 * digits  # the number lies in [uniform, uniform + 1)/2^bits
        context = Context(prec=digits, Emin=-(10**9), Emax=10**9)
        near = int(np.searchsorted(exponents, 3 * digits))  # exp(−3·digits) < 10^−digits
        low, high = [], []  # bounds of each weight, in 10^−digits
        for m, n in zip(exponents[:near].tolist(), counts[:near].tolist(), strict=True):
            e = int(context.scaleb(context.exp(Decimal(-int(m))), digits))  # scaleb is exact
            low.append(n * max(0, e - 1))
            high.append(n * (e + 2))
        far = int(counts[near:].sum())
        before_low = before_high = 0
        after_low, after_high = sum(low), sum(high) + far
        for k, (least, most) in enumerate(zip(low, high, strict=True)):
            before_low, before_high = before_low + least, before_high + most
            after_low, after_high = after_low - least, after_high - most
            if (uniform + 1) * (before_low + after_high) <= before_low << bits:
                return k
            if uniform * (before_high + after_low) < before_high << bits:
                break  # undecided
        digits *= 2


def exp_coin(a: int, b: int) -> bool:
    """Heads with probability exp(−a/b), for integers 0 ≤ a ≤ b."""
    k = 1
    while secrets.randbelow(b * k) < a:
        k += 1
    return k % 2 == 1


SECURE: Noise = _Secure()
