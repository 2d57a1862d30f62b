"""Exact noise on integers: the only source of randomness of a release. It has no seed.

`laplace(scale)` draws an integer x with probability proportional to exp(−|x|/scale), exactly, for any positive rational
scale. No float takes part, so no rounding can make an output possible for one table and impossible for its neighbor.

The argument, after Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), section 5.
Let scale = t/s in lowest terms.

1. *A coin that shows heads with probability exp(−g), 0 ≤ g ≤ 1.* Toss coins with probabilities g/1, g/2, g/3, … until the
   first tail, at toss K. Then P(K > k) = g^k/k!, so P(K odd) = Σ_j (−g)^j/j! = exp(−g). With g = a/b, a coin with
   probability a/(b·k) is the event "a uniform integer below b·k is less than a". The coin's only input is uniform integers.
2. *A geometric variable X ≥ 0 with P(X = x) ∝ exp(−x/t).* Write x = u + t·v with 0 ≤ u < t. Then exp(−x/t) = exp(−u/t)·exp(−1)^v,
   a product, so u and v are independent: u is uniform on 0…t−1, kept with probability exp(−u/t), else drawn again; v is the
   number of heads of a coin with probability exp(−1) before its first tail.
3. *Coarser steps.* Y = ⌊X/s⌋ has P(Y = y) ∝ exp(−y·s/t) = exp(−y/scale), because each y collects s consecutive x.
4. *Two sides.* A fair sign, drawing everything again for −0, gives P(x) ∝ exp(−|x|/scale) on all integers.

For integers S and S′ that differ by at most d, P(S + x = z)/P(S′ + x = z) = exp((|z−S′| − |z−S|)/scale) ≤ exp(d/scale) for every z:
that is the whole privacy argument of the additive mechanisms.

Uniform integers come from `secrets`, that is, from the operating system. The running time depends on the draw (not on the
data); whoever can time a single draw is outside the threat model (docs/guarantees.md).
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Protocol


class Noise(Protocol):
    """What a mechanism may ask of a noise. `SECURE` is the only one in this package outside the lab."""

    def laplace(self, scale: Fraction) -> int: ...


class _Secure:
    """Noise from the operating system's randomness."""

    __slots__ = ()

    def laplace(self, scale: Fraction) -> int:
        """An integer with probability ∝ exp(−|x|/scale)."""
        if scale <= 0:
            raise ValueError("the scale of a Laplace noise is positive")
        t, s = scale.numerator, scale.denominator
        while True:
            u = secrets.randbelow(t)
            if not _exp_coin(u, t):
                continue
            v = 0
            while _exp_coin(1, 1):
                v += 1
            magnitude = (u + t * v) // s
            negative = secrets.randbits(1)
            if magnitude or not negative:
                return -magnitude if negative else magnitude


def _exp_coin(a: int, b: int) -> bool:
    """Heads with probability exp(−a/b), for integers 0 ≤ a ≤ b."""
    k = 1
    while secrets.randbelow(b * k) < a:
        k += 1
    return k % 2 == 1


SECURE: Noise = _Secure()
