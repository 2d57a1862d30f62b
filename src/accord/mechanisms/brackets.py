"""Brackets: two more draws for each quantile, between which its value lies. For `interval="values"`.

One draw tells nothing about values: how far apart they lie around it is not known. So beside each quantile p
two more points are drawn, which aim so far below and above it that they hardly ever miss to that side.

Releases   with B(r) and A(r) the weight below and above a point r, W that of all, and constants d, e ≥ 0
           which are public (they follow from the plan, or from a noisy weight that is released before them):
               low    ∝ exp(−max(0, B(r) − (p·W − d), A(r) − ((1−p)·W + d))/b)
               high   ∝ exp(−max(0, B(r) − (p·W + e), A(r) − ((1−p)·W − e))/b)
           and the quantile itself as in rank.py, with the same b: three draws in the place of one.
Guarantee  person i loses at most c_i. A constant takes nothing from and adds nothing to what a person moves:
           these scores have the sensitivity of the quantile p itself. So it is the proof of rank.py, with 3J
           choices in the place of J: J at p, and 2J beside them. Losses of the noisy weight and of choices
           that follow from it add up (adaptive composition), as if it decided nothing.
Interval   [low, high] holds a p-quantile of these people, a point with at most p of them below and at most
           1 − p above, for all J together, but for a probability of α = 5 %. With K points, M = W/c_max and
           ρ = c_min/c_max as in size.py, for the lower end (the upper one is its mirror image):
           1. *Choice.* Where p·W ≥ d some point has the score 0, so that with probability 1 − α₂/2J
                  B(low) ≤ p·W − d + a,   a = b·ln(2J·K/α₂).
           2. *Sampling.* By size.py's lemma the k = p·n people with the lowest values weigh more than x·W,
              but for a probability of α₃/2J, where x is the largest share with
              M·KL((x − ρp)/(1 − ρ) ‖ p) ≥ ln(2J/α₃). So if B(low) ≤ x·W, fewer than p·n are below `low`, and
              `low` is at or below every p-quantile.
              Where levels go with values by a declared gap D, it is κ·D less than this x.
           3. *Both.* d = a + m does it for m ≥ (p − x)·W. This grows with W: with v = (p − x)/(1 − ρ) and
              g(v) = KL(p − v ‖ p) = s/M it is (1 − ρ)·c_max·s·v/g(v); g is convex and 0 at 0, so that v/g(v)
              falls in v, and v falls in M. So m for the weight of everyone is enough for any part of them.
              Where who chose which level is private, nobody knows that weight. Then the noisy weight is drawn
              first, and m is for the most that it leaves W, but for a probability of α₁/2.
           4. *Size.* Whether p·W ≥ d is public where W is; else W is at least w but for a probability of α₁,
              from its noisy value (α₁/2, if that has told m as well). Where p·w < d, the lower end is that of
              the bounds, below which no value counts.
           Sorted, the two ends hold what they held: one of them is below, the other above.
           With a confidence of less than 95 % it is the same interval; with more, the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log
from typing import TypeAlias

from accord.budget import MICRO
from accord.mechanisms.prediction import ErrorModel
from accord.mechanisms.size import BySize, least_weight
from accord.statistics import Answer, Interval

_ALPHA = 0.05
"""How often an interval in values may be wrong: brackets are drawn for this one probability."""
_SIZE = 0.5
"""α₁ as a part of α, where the number of people is private; α₂ and α₃ share the rest."""

Cells: TypeAlias = tuple[Fraction | None, Fraction | None]
"""Between which points of the grid a quantile lies; None: the end of the bounds."""


@dataclass(frozen=True)
class Brackets:
    """How far out the brackets of each quantile are drawn, in weight: d and e."""

    by_size: BySize
    """Of the same choices, with the law of the noisy weight."""
    below: tuple[Fraction, ...]
    above: tuple[Fraction, ...]
    weight: float | None
    """W; None: it is private, and released with noise."""
    is_assumed: bool = False
    """Whether nobody knows how much W may be: then its noisy value decides d and e."""

    def fitted(self, noisy_weight: Fraction) -> Brackets:
        """For as much weight as a noisy one tells, where nobody knows how much it may be; else as planned."""
        if not self.is_assumed:
            return self
        most = self.by_size.upper_bound(float(noisy_weight), self._size_alpha)
        below, above = _offsets(self.by_size, max(most, self.by_size.heaviest), True)
        return replace(self, below=below, above=above)

    @property
    def _size_alpha(self) -> float:
        """How often one bound of W may be wrong."""
        return _SIZE * _ALPHA / (2 if self.is_assumed else 1)

    def cells_of(self, released: Sequence[Fraction]) -> list[Cells]:
        """Between which points each quantile lies, from all that was released (rank_choice.py)."""
        ps, weight, drawn = self.by_size.ps, self.weight, self
        if weight is None:
            weight = self.by_size.lower_bound(float(released[-1]), self._size_alpha)
            drawn = self.fitted(released[-1])
        cells: list[Cells] = []
        for k, (p, d, e) in enumerate(zip(ps, drawn.below, drawn.above, strict=True), start=len(ps)):
            low, high = sorted((released[k], released[k + len(ps)]))
            cells.append(
                (
                    low if float(p) * weight >= float(d) else None,
                    high if float(1 - p) * weight >= float(e) else None,
                )
            )
        return cells


def brackets(
    by_size: BySize, weight: float, most: float, is_private: bool, is_assumed: bool = False
) -> Brackets:
    """For people of this weight, or for some of them, private, of a weight of at most `most`.

    `is_assumed`: these weights are no bounds, because who chose which level is private.
    """
    below, above = _offsets(by_size, most, is_private)
    return Brackets(by_size, below, above, None if is_private else weight, is_assumed)


def _offsets(
    by_size: BySize, most: float, is_private: bool
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """d and e of each quantile, for people of a weight of at most `most`."""
    alpha = _ALPHA * (1 - _SIZE if is_private else 1)
    has_noise, is_uneven = any(by_size.choice_scales), by_size.evenness < 1
    of_choice = of_sampling = alpha / (2 if has_noise and is_uneven else 1)
    ends = 2 * len(by_size.ps)
    people, surprise = most / by_size.heaviest, log(ends / of_sampling)
    unit = MICRO if has_noise else 1  # of the weights, which are whole numbers of it

    def offset(share: Fraction, scale: float) -> Fraction:
        off = scale * log(ends * by_size.points / of_choice)
        margin = float(share) - least_weight(float(share), people, by_size.evenness, surprise) + by_size.bias
        return Fraction(ceil((off + margin * most) * (1 + 1e-9) * unit), unit)

    pairs = list(zip(by_size.ps, by_size.choice_scales, strict=True))
    return tuple(offset(p, scale) for p, scale in pairs), tuple(offset(1 - p, scale) for p, scale in pairs)


@dataclass(frozen=True)
class WithBrackets(ErrorModel):
    """The error of the quantiles themselves, and their interval in values."""

    of_ranks: ErrorModel
    brackets: Brackets

    def interval(
        self, value: Answer, released: Sequence[Fraction], confidence: float, factor: float
    ) -> Interval:
        return self.of_ranks.interval(value, released, confidence, factor)

    def errors_of(self, released: Sequence[Fraction]) -> tuple[float, float] | None:
        return self.of_ranks.errors_of(released)

    def has_people(self, released: Sequence[Fraction], alpha: float) -> bool:
        return self.brackets.by_size.has_people(released, alpha)

    def between(self, released: Sequence[Fraction], confidence: float) -> list[Cells]:
        if 1 - confidence < _ALPHA * (1 - 1e-9):
            return [(None, None)] * len(self.brackets.by_size.ps)
        return self.brackets.cells_of(released)
