"""Noises that the moments of a regression share: boxes, what one person moves in them, and their variances.

In units of Q², with codes in [−1, 1]. D is 2 where a value may change (replace), else 1 (add-remove): so far
a moment moves at most; squares, which lie in [0, 1], and the number of people move by at most 1.

One box    All moments share one noise. The spans are D, of squares and of the number of people 1.
Halves     In the place of 1, y, x and y·x the sums A of (1 + y)·(1, x) and B of (1 − y)·(1, x) are released,
           each with a box of its own. max|A| + max|B| moves by at most 2D, so that both boxes together cost
           no more than one of them. The other moments share a third box, with the rest of the charge.
Loss       Charges are whole millionths c. One box: N moves by at most c·Q², and its scale is Q² for the
           charge of a millionth. Halves have spans of 1, so that nothing is rounded up: N_A + N_B moves by at
           most c·2D·Q², and the scale of both is 2D·Q²/share. The proofs are in docs/proofs/box.md.
Variances  (K + 1)(K + 2)/3·span² for each of K coordinates; x = (A + B)/2 and y·x = (A − B)/2 have half of
           that of A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from accord.statistics.box import variance
from accord.statistics.encoding import Product, Q

if TYPE_CHECKING:
    from accord.statistics.regression import Regression

KINDS = ("y", "x", "yx", "xx", "square")
"""Of moments, in the order in which their variances are released."""
PARTS = 64
"""Shares of boxes are so many parts of a charge."""


@dataclass(frozen=True)
class Box:
    """One noise: the spans of its coordinates, and its scale for the charge 1, both for sums of codes."""

    spans: tuple[int, ...]
    scale: Fraction


@dataclass(frozen=True)
class MomentBoxes:
    """Which boxes the moments of a regression share."""

    query: Regression
    values_change: bool
    """Whether somebody may have another value (replace); else they come or go."""
    counts_people: bool
    """Whether the number of people is one of the moments."""
    share: int = PARTS
    """Of halves: how many parts of the charge they have. All of them: halves of nothing else, or one box."""
    halves: bool = False

    def in_halves(self, costs: Mapping[str, float]) -> MomentBoxes:
        """Halves with the best share.

        `costs`: what noise on each kind of moment adds to the error, for a variance of 1.
        """
        halves = replace(self, halves=True, share=PARTS // 2)
        if not halves.rest:
            return replace(halves, share=PARTS)
        each = {kind: cost * float(halves.variances[kind]) for kind, cost in costs.items()}
        first, rest = (sum(each[k] for k in kinds) ** (1 / 3) for kinds in (KINDS[:3], KINDS[3:]))
        return replace(halves, share=min(PARTS - 1, max(1, round(PARTS * first / (first + rest)))))

    @property
    def note(self) -> str:
        """For the plan."""
        sizes = [len(box.spans) for box in self.boxes]
        if not self.halves:
            return f"one noise for {sizes[0]} sums"
        rest = f", {1 - self.share / PARTS:.0%} of the charge for one on {sizes[-1]}" if sizes[2:] else ""
        return f"two noises on {sizes[0]} sums each{rest}"

    @property
    def largest_change(self) -> int:
        """D."""
        return 2 if self.values_change else 1

    @property
    def rest(self) -> list[Product]:
        """The moments that are in no half."""
        return [entry for entry in self.query.encoding.products if entry.kind in ("xx", "square")]

    @property
    def boxes(self) -> list[Box]:
        products = self.rest if self.halves else self.query.encoding.products
        share = Fraction(self.share, PARTS)
        spans = [1 if entry.kind == "square" else self.largest_change for entry in products]
        if not self.halves:
            return [Box((*spans, 1) if self.counts_people else (*spans,), Fraction(Q * Q))]
        half = Box((1,) * (self.query.codes + 1), 2 * self.largest_change * Q * Q / share)
        return [half, half, *([Box(tuple(spans), Q * Q / (1 - share))] if spans else [])]

    def sums(self, moments: Sequence[int], count: int) -> list[list[int]]:
        """What noise is added to, for each box: from the sums of all moments and Q² times of the people."""
        if not self.halves:
            return [[*moments, count] if self.counts_people else [*moments]]
        m = self.query.codes
        y, x, yx, rest = moments[0], moments[1 : m + 1], moments[m + 1 : 2 * m + 1], moments[2 * m + 1 :]
        signed = [y, *yx]
        plain = [count, *x]
        halves = [[p + sign * s for p, s in zip(plain, signed, strict=True)] for sign in (1, -1)]
        return [*halves, [*rest]] if rest else halves

    def count_of(self, noisy: Sequence[Sequence[int]]) -> Fraction:
        """Q² times the number of people, from noisy sums."""
        return Fraction(noisy[0][0] + noisy[1][0], 2) if self.halves else Fraction(noisy[0][-1])

    @property
    def count_noise(self) -> Fraction:
        """About how large the noise on that is, for the charge 1: its mean size, or half of both halves'."""
        box = self.boxes[0]
        return box.scale * (len(box.spans) + 1) / 2

    @property
    def variances(self) -> dict[str, Fraction]:
        """Of the noise on moments, by kind, in units of Q², for the charge 1."""
        boxes = self.boxes
        of_box = [Fraction(round(3 * variance(len(b.spans))), 3) * (b.scale / (Q * Q)) ** 2 for b in boxes]
        last, d = of_box[-1], self.largest_change
        first = of_box[0] / 2 if self.halves else last * d * d
        return {"y": first, "x": first, "yx": first, "xx": last * d * d, "square": last}


def moments_of(query: Regression, released: Sequence[float]) -> list[float]:
    """The moments in their order, from those of one box, or from halves and the rest."""
    m = query.codes
    if len(released) == len(query.encoding.products):
        return [*released]
    above, below, rest = released[: m + 1], released[m + 1 : 2 * m + 2], released[2 * m + 2 :]
    x = [(a + b) / 2 for a, b in zip(above, below, strict=True)]
    yx = [(a - b) / 2 for a, b in zip(above, below, strict=True)]
    return [yx[0], *x[1:], *yx[1:], *rest]
