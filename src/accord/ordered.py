"""Points in order, drawn together: several quantiles at once. Exactly; only noise.py draws with it.

Law        There are K points, of which point k has the weight w_k, a whole number; W = Σw. Each point has M
           parts s = 0 … M−1, ordered as (k, s) are, with the weight before a part
               F(k, s) = Σ_{i<k} w_i + w_k·(2s + 1)/(2M).
           For fractions p_1 < … < p_J a tuple u_1 ≤ … ≤ u_J of parts is drawn with
               P(u) ∝ Π_j t(u_j)·exp(−E(u)),
               E(u) = Σ_{j=1…J+1} |F(u_j) − F(u_{j−1}) − (p_j − p_{j−1})·W|/scale,
           where F(u_0) = 0, F(u_{J+1}) = W, p_0 = 0 and p_{J+1} = 1, and point k counts t_k times (once, if
           nothing is said). The points of its parts are what is drawn. docs/proofs/joint.md says why nobody
           loses more than their charge.

Draw       A tuple is proposed by floats, by a law q that is nevertheless known exactly, and accepted with
           probability ρ(u) = Πt·exp(−E(u) − L)/q(u), with a constant L so large that ρ ≤ 1. What is accepted
           has P(u) ∝ q(u)·ρ(u) ∝ Πt·exp(−E(u)), whatever q is; a worse q only takes more tries.
1. *Cells.* Parts next to each other, of one point or of many, are a cell; n counts them, each as many times
   as its point counts. F of all of them is within h of a float f (here and below, weights are divided by the
   scale). Cells are narrow near what is aimed at, p_j·W, and wide far from it: `_starts`. Where they begin
   is a matter of speed alone.
2. *Tables.* α_1(b) = N_b·exp(−|f_b − τ_1|) and α_{j+1}(b) = N_b·Σ_{a≤b} α_j(a)·exp(−|f_b − f_a − τ_{j+1}|),
   with N = n·exp(2h) and τ_j = (p_j − p_{j−1})·W/scale, each divided by its largest, m_j. Terms of less than
   exp(−BAND) are left out of sums, and exp(−BAND)·Σα_j is added for them. All that is added is positive, so
   that the relative error of a sum is at most that of as many additions.
3. *Proposal.* From the last to the first, cell a_j is drawn with a chance ∝ I_j(a) = ⌊v_j(a)·2³⁸/max v_j⌋
   + 1, v_j(a) = α_j(a)·exp(−|f_{a_{j+1}} − f_a − τ_{j+1}|) for a ≤ a_{j+1}: by a uniform whole number below
   S_j = ΣI_j. In each cell a part is drawn, by a uniform whole number below n, and parts of one cell are
   sorted, for which there are `orders` ways. So q(u) = orders·Π_j I_j(a_j)·t(u_j)/(S_j·n_{a_j}): a rational
   number, and Πt cancels in ρ.
4. *L.* I_j(a) ≥ 2³⁸·v_j(a)/max v_j; S_j ≤ 2³⁸·(1 + C·2⁻³⁸)·Σv_j/max v_j for C cells; and Σ_a v_j(a) is at
   most α_{j+1}(a_{j+1})·m_{j+1}/N_{a_{j+1}}, for j = J it is Z = Σ_a v_J(a). So in Π_j S_j·N_{a_j}/I_j(a_j)
   all cancels, but for rounding, except Z·Π_j m_j·exp(E(f)), E(f) being E with f_{a_j} for F(u_j). Each of
   these J numbers is off by h at most, and is in two terms of E: E(f) ≤ E(u) + Σ_j 2h_{a_j}. With n for N
       Πt·exp(−E(u))/q(u) ≤ exp(−E(u))·Π_j S_j·n_{a_j}/I_j(a_j) ≤ Z·Π_j m_j,
   and L is the logarithm of that. For rounding it has (2J + 2)·(C·2⁻³⁵ + (1 + W/scale)·2⁻⁴⁰) besides: of
   each of 2J + 2 tables, sums and exponents, additions are off by 2⁻⁵² of the sum each, products and exp by
   less than 2⁻⁴⁵ of theirs, an exponent by 2⁻⁴⁸·(1 + W/scale), and C·2⁻³⁸ is that of S_j. No float is as
   small as not to be normal: what a table has is between exp(−BAND)/(ΣN·C) and 1, N ≤ 2⁶²·exp(WIDEST), and
   is multiplied by no less than exp(−2·BAND).
5. *Coin.* ρ is bounded by `decimal`, whose exp is correctly rounded; a uniform number of which only the first
   bits are drawn is compared with the bounds, and both are made finer where they do not decide. That ρ ≤ 1 is
   checked, and a tuple for which it is not is never given out.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import factorial, log
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

BAND = 100.0
"""Terms of less than exp(−BAND) are left out of sums."""
WIDEST = 64.0
"""J cells together are no wider, in exponents: far less than what it costs a tuple to be far off."""
_NARROW, _GROWING = 12.0, 8.0
"""So near to what is aimed at J cells have a width of 1; beyond, they grow by one in so many."""
_CROWD = 4
"""Times J²: so many cells there are at least, each of as many parts, so that quantiles are seldom in one."""
_SHORT = 16
"""Sums of no more terms are made term by term."""
_BITS = 38
"""Of the whole numbers by which cells are proposed."""
_DIGITS = 40
"""Of the first bounds of ρ."""
MOST_PARTS = 2**62
"""All parts together, each as many times as it counts, are fewer: 64 bits number them."""
Floats = NDArray[np.float64]


class Source(Protocol):
    """Where uniform integers come from: `secrets`."""

    def randbelow(self, exclusive_upper_bound: int, /) -> int: ...

    def randbits(self, k: int, /) -> int: ...


@dataclass(frozen=True)
class OrderedLaw:
    """All that the law of a tuple depends on."""

    weights: Any
    """At the points: whole numbers, of 64 bits or Python's own."""
    ps: tuple[Fraction, ...]
    """Ascending, between 0 and 1."""
    scale: Fraction
    parts: int
    """M, of each point."""
    times: Any = None
    """How many times each point counts; None: once."""

    def __post_init__(self) -> None:
        ends = (Fraction(0), *self.ps, Fraction(1))
        if self.scale <= 0 or self.parts < 1 or not self.ps or not all(p < q for p, q in pairwise(ends)):
            raise ValueError(
                "ordered points need ascending fractions between 0 and 1, a positive scale, and parts"
            )
        if len(self.weights) == 0 or (self.times is not None and int(self.times.min()) < 1):
            raise ValueError("each point to choose from is there at least once")
        count = len(self.weights) if self.times is None else int(self.times.sum())
        if count * self.parts >= MOST_PARTS:
            raise ValueError("there are too many parts to number them")

    @property
    def targets(self) -> list[Fraction]:
        """p_j − p_{j−1}, of all J + 1 terms."""
        return [q - p for p, q in pairwise((Fraction(0), *self.ps, Fraction(1)))]

    def energy(self, places: list[int], before: Any) -> Fraction:
        """E of parts in order, by their numbers k·M + s, exactly; `before`: the weight before each point."""
        m, total = self.parts, int(before[-1])
        f = [0]  # times 2M
        for k, s in (divmod(place, m) for place in places):
            f.append(2 * m * int(before[k]) + int(self.weights[k]) * (2 * s + 1))
        f.append(2 * m * total)
        off = (abs(b - a - 2 * m * total * d) for (a, b), d in zip(pairwise(f), self.targets, strict=True))
        return Fraction(sum(off)) / (2 * m * self.scale)


@dataclass(frozen=True)
class Proposal:
    """Cells, tables and the constant of the docstring above."""

    law: OrderedLaw
    before: Any
    """The weight before each point; at the end, that of all."""
    counts: Any
    """How many parts there are before each point, each as many times as it counts; at the end, all."""
    start: Any
    """Of each cell: how many parts are before it,"""
    size: Any
    """how many it has, n, each as many times as it counts,"""
    f: Floats
    """and the middle of its F over the scale."""
    total: float
    """W over the scale."""
    taus: tuple[float, ...]
    tables: tuple[Floats, ...]
    """α_j."""
    constant: Fraction
    """L."""

    def chances(self, j: int, after: int | None) -> Any:
        """I_j: how likely each cell is to be the j-th (from 0), if the next one is `after`."""
        last = self.f.size if after is None else after + 1
        aim = (self.total if after is None else self.f[after]) - self.taus[j + 1]
        off = np.abs(aim - self.f[:last])
        v = self.tables[j][:last] * np.exp(off.min() - off)  # a factor for all, so that not all are 0
        return np.floor(v * (2.0**_BITS / v.max())).astype(np.int64) + 1

    def place(self, number: int) -> int:
        """The part k·M + s of this number, of all parts as many times as they count."""
        k = int(np.searchsorted(self.counts, number, side="right")) - 1
        times = 1 if self.law.times is None else int(self.law.times[k])
        return k * self.law.parts + (number - int(self.counts[k])) // times

    def acceptance(self, places: list[int], odds: Fraction, digits: int) -> tuple[Fraction, Fraction]:
        """Bounds of ρ, the second above the first by about 10^−digits of it; `odds`: Πt/q."""
        exponent = self.law.energy(places, self.before) + self.constant
        low, high = exp_bounds(exponent, digits)
        return low * odds, high * odds


def exp_bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Of exp(−exponent). Below exp(−100·digits), which is no number of so many digits, the lower one is 0."""
    if exponent > 100 * digits:
        return Fraction(0), exp_bounds(Fraction(100 * digits), digits)[1]
    bounds = []
    for rounding in (ROUND_CEILING, ROUND_FLOOR):
        context = Context(prec=digits, rounding=rounding, Emin=-(10**9), Emax=10**9)
        x = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        e = context.exp(context.minus(x))  # half-even, whatever the rounding
        bounds.append(Fraction(context.next_minus(e) if rounding == ROUND_CEILING else context.next_plus(e)))
    return bounds[0], bounds[1]


def entries(outputs: int, total: float) -> float:
    """How many numbers the tables of a draw have at most, for W/scale = `total`: what it costs."""
    narrow = 2 * outputs * (_NARROW + _GROWING * (1 + log(WIDEST)))
    cells = outputs * (min(total, narrow) + total / WIDEST) + _CROWD * outputs**2
    return outputs * (cells + 1)


# ---- what is proposed --------------------------------------------------------------------------------------


def propose(law: OrderedLaw) -> Proposal:
    """The tables from which tuples of a law are proposed."""
    weights, m, j_all = law.weights, law.parts, len(law.ps)
    before = np.concatenate(([0], np.cumsum(weights)))
    each = np.ones(len(weights), dtype=np.int64) if law.times is None else law.times
    counts = np.concatenate(([0], np.cumsum(each) * m))
    scale = float(law.scale)
    total, own = float(before[-1]) / scale, np.asarray(weights, dtype=np.float64) / scale
    f_before = np.asarray(before, dtype=np.float64)[:-1] / scale
    first = _starts(law, f_before, own, counts, total)
    last = np.append(first[1:], len(weights) * m) - 1
    ends = [f_before[g // m] + own[g // m] * ((2 * (g % m) + 1) / (2 * m)) for g in (first, last)]
    f = np.maximum.accumulate((ends[0] + ends[1]) / 2)
    half = np.maximum((ends[1] - ends[0]) / 2, 0)
    start = counts[first // m] + each[first // m] * (first % m)
    size = np.diff(start, append=counts[-1])
    many = size * np.exp(2 * half)
    taus = tuple(float(d * int(before[-1]) / law.scale) for d in law.targets)
    largest, tables = 0.0, []
    table = many * (np.exp(-np.abs(f - taus[0])) + np.exp(-BAND))
    for j in range(j_all):
        top = float(table.max())
        largest += log(top)
        tables.append(table / top)
        if j + 1 < j_all:
            table = many * _convolved(tables[-1], f, taus[j + 1])
    z = float((tables[-1] * np.exp(-np.abs(total - f - taus[-1]))).sum())
    rounding = (2 * j_all + 2) * (f.size * 2.0**-35 + (1 + total) * 2.0**-40)
    constant = Fraction(log(z) + largest + rounding)
    return Proposal(law, before, counts, start, size, f, total, taus, tuple(tables), constant)


def _starts(law: OrderedLaw, f_before: Floats, own: Floats, counts: Any, total: float) -> Any:
    """Where cells begin: at parts of about evenly spaced F, densely about what is aimed at; and by number."""
    m, j_all = law.parts, len(law.ps)
    offsets = [0.0]
    while offsets[-1] < total and (width := max(1.0, (offsets[-1] - _NARROW) / _GROWING)) < WIDEST:
        offsets.append(offsets[-1] + width / j_all)
    aims = np.array([[float(p) * total] for p in law.ps])
    x = aims + np.concatenate([sign * np.array(offsets) for sign in (-1, 1)])
    between = np.concatenate(([[0.0]], (aims[1:] + aims[:-1]) / 2, [[total]]))
    x = np.concatenate([x[(x >= between[:-1]) & (x <= between[1:])], np.arange(0.0, total, WIDEST / j_all)])
    k = np.searchsorted(f_before, x, side="right") - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(own[k] > 0, np.ceil((x - f_before[k]) / own[k] * m - 0.5), 0.0)
    by_f = k * m + np.clip(s, 0, m).astype(np.int64)
    crowd, everything = _CROWD * j_all**2, int(counts[-1])
    numbers = np.array([everything * i // crowd for i in range(crowd)], dtype=np.int64)
    k = np.searchsorted(counts, numbers, side="right") - 1
    by_number = k * m + (numbers - counts[k]) // (1 if law.times is None else law.times[k])
    starts = np.unique(np.concatenate(([0], by_f, by_number)))
    return starts[starts < len(own) * m]


def _convolved(table: Floats, f: Floats, tau: float) -> Floats:
    """Σ_{a≤b} α(a)·exp(−|f_b − f_a − τ|) for each b, or more by what is left out at most."""
    aim, upto = f - tau, np.arange(f.size) + 1
    cut = np.minimum(np.searchsorted(f, aim, side="right"), upto)  # from here on, f_a is above
    low = np.searchsorted(f, aim - BAND, side="left")
    high = np.minimum(np.searchsorted(f, aim + BAND, side="right"), upto)
    sums = _window_sums(table, f, aim, low, cut, 1.0) + _window_sums(table, f, aim, cut, high, -1.0)
    return np.asarray(sums + np.exp(-BAND) * table.sum())


def _window_sums(table: Floats, f: Floats, aim: Floats, low: Any, high: Any, sign: float) -> Floats:
    """Σ_{low ≤ a < high} α(a)·exp(sign·(f_a − aim_b)) for each b, where `low` and `high` ascend.

    Only positive numbers are added, each within BAND of a place in the window: from there down, and up.
    """
    sums = np.zeros(f.size)
    short = np.flatnonzero((low < high) & (high - low <= _SHORT))
    for i in range(int((high - low)[short].max(initial=0))):
        short = short[low[short] + i < high[short]]
        a = low[short] + i
        sums[short] += table[a] * np.exp(sign * (f[a] - aim[short]))
    windows = np.flatnonzero(high - low > _SHORT)
    low, high = low[windows], high[windows]
    b = 0
    while b < windows.size:
        middle = int(high[b]) - 1  # the last of this window is in all those that begin at or before it
        end = int(np.searchsorted(low, middle, side="right"))
        start, stop = int(low[b]), int(high[end - 1])
        x = table[start:stop] * np.exp(sign * (f[start:stop] - f[middle]))
        down = np.cumsum(x[: middle - start + 1][::-1])[::-1]
        up = np.concatenate(([0.0], np.cumsum(x[middle - start + 1 :])))
        inside = down[low[b:end] - start] + up[high[b:end] - 1 - middle]
        sums[windows[b:end]] = inside * np.exp(sign * (f[middle] - aim[windows[b:end]]))
        b = end
    return sums


# ---- the draw ----------------------------------------------------------------------------------------------


def draw(law: OrderedLaw, source: Source) -> list[int]:
    """The points of a tuple, in order."""
    proposal = propose(law)
    while True:
        places, odds = proposed(proposal, source)
        if coin(proposal, places, odds, source):
            return [place // law.parts for place in places]


def proposed(proposal: Proposal, source: Source) -> tuple[list[int], Fraction]:
    """Parts in order, by their numbers k·M + s, and Πt/q of them."""
    cells: list[int] = []
    numerator = denominator = 1
    after: int | None = None
    for j in reversed(range(len(proposal.tables))):
        up_to = np.cumsum(proposal.chances(j, after))
        after = int(np.searchsorted(up_to, source.randbelow(int(up_to[-1])), side="right"))
        cells.append(after)
        denominator *= int(up_to[after]) - (int(up_to[after - 1]) if after else 0)
        numerator *= int(up_to[-1]) * int(proposal.size[after])
    places = sorted(
        proposal.place(int(proposal.start[c]) + int(source.randbelow(int(proposal.size[c])))) for c in cells
    )
    return places, Fraction(numerator, denominator * orders(cells, places))


def orders(cells: list[int], places: list[int]) -> int:
    """In how many orders parts of these cells may have been drawn."""
    ways = 1
    for cell in set(cells):
        ways *= factorial(cells.count(cell))
    for place in set(places):
        ways //= factorial(places.count(place))
    return ways


def coin(proposal: Proposal, places: list[int], odds: Fraction, source: Source) -> bool:
    """Heads with probability ρ."""
    uniform, bits, digits = 0, 0, _DIGITS
    while True:
        more = 4 * digits - bits
        uniform, bits = (uniform << more) + source.randbits(more), 4 * digits
        low, high = proposal.acceptance(places, odds, digits)
        if low > 1:
            raise ArithmeticError("a tuple would be accepted with a probability above 1")
        if uniform + 1 <= low * 2**bits:
            return True
        if uniform >= high * 2**bits:
            return False
        digits *= 2
