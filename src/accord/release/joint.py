"""Joint: how far Σ k·number may be off, for released numbers and any coefficients k.

Noises of different draws are independent: their joint law is that of Σ |k|·b·L, and is inverted
(statistics/convolution.py). Numbers of one box have one noise: Σ k·effect·z over its coordinates has a law of
its own (statistics/box.py), and different boxes are independent of each other.

What unequal weights do to two answers about the same people may go together in any way: standard deviations
Σ |k|·s are added up, which is the most that theirs can be. Ends that are certain are added up as well.

Counts and sums of one release (cells of a histogram, groups) have the same weights w. To one of them a person
adds something between two ends, 0 among them, because others add nothing; s is for a variance of at most
(the distance of the ends)²/4. A person is in up to m of them, so that to Σ k·number they add up to m times
something within (max(k, 0) − min(k, 0)) times that distance. What the weights do to it is
Σ (w − 1/n)·(what a person adds), as to a single number: its standard deviation is at most
m·s·(max(k, 0) − min(k, 0)), which is convex in k as well. Nobody is rounded in more than m of them either.

A number without a known law brings its own interval. With m of them the probability of error is split evenly
over these m and all others together (Bonferroni), and the intervals are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

from accord.release.numbers import Errors, Number
from accord.statistics import Ends, box
from accord.statistics.box import Share


@dataclass(frozen=True, eq=False)
class Joint:
    """How far Σ k·number may be off, for any k: the joint law of several numbers."""

    numbers: tuple[Number, ...]

    @cached_property
    def known(self) -> list[tuple[int, Errors]]:
        """The numbers with a known law, by their places."""
        return [(i, number.errors) for i, number in enumerate(self.numbers) if number.errors is not None]

    @cached_property
    def shares(self) -> int:
        """Into how many parts the probability of error is split."""
        noisy = any(errors.sampling or errors.scales or errors.share for _, errors in self.known)
        return max(1, len(self.numbers) - len(self.known) + noisy)

    def certain_ends(self, k: list[float], constant: float, alpha: float) -> Ends:
        """The ends but for sampling and noise of known laws; `alpha` for each of the other numbers."""
        of_known = {i: errors.ends for i, errors in self.known}
        rounding = self.added_up(k, {i: errors.rounding for i, errors in self.known})
        low, high = constant - rounding, constant + rounding
        for i, number in enumerate(self.numbers):
            if k[i] == 0:
                continue
            if i in of_known:
                ends = tuple(number.value + end for end in of_known[i])
            else:
                ends = self._interval(i, alpha)
            first, last = sorted(k[i] * end for end in ends)
            low, high = low + first, high + last
        return low, high

    def _interval(self, i: int, alpha: float) -> Ends:
        """Kept, because a ratio asks for the same one again and again."""
        if (i, alpha) not in self._intervals:
            self._intervals[i, alpha] = self.numbers[i].interval(alpha)
        return self._intervals[i, alpha]

    @cached_property
    def _intervals(self) -> dict[tuple[int, float], Ends]:
        return {}

    def law(self, k: list[float]) -> tuple[float, tuple[float, ...], tuple[Share, ...]]:
        """The standard deviation of what weights do, at most; the scales of noises; and parts of boxes."""
        sampling = self.added_up(k, {i: errors.sampling for i, errors in self.known})
        scales = tuple(sorted(abs(k[i]) * b for i, errors in self.known for b in errors.scales if k[i]))
        together: dict[Hashable, list[Share]] = {}
        for i, errors in self.known:
            if errors.share is not None and k[i]:
                together.setdefault(errors.box, []).append(errors.share.times(abs(k[i])))
        boxes = []
        for shares in together.values():
            effects = sorted(effect for share in shares for effect in share.effects)
            boxes.append(Share(shares[0].coordinates, tuple(effects)))
        return sampling, scales, tuple(sorted(boxes, key=lambda share: (share.coordinates, share.effects)))

    def added_up(self, k: list[float], deviations: Mapping[int, float]) -> float:
        """The standard deviation of Σ k·error, or its size, at most, for errors that may go together."""
        together: dict[Hashable, list[int]] = {}
        for i in deviations:
            together.setdefault(self.families[i], []).append(i)
        total = 0.0
        for places in together.values():
            coefficients = [k[i] for i in places]
            distance = max(0.0, *coefficients) - min(0.0, *coefficients)
            at_once = min(len(places), max(self.numbers[i].memberships for i in places))
            total += at_once * distance * max(deviations[i] for i in places)
        return total

    @cached_property
    def families(self) -> list[Hashable]:
        """Of each number: which others have its weights."""
        return [number if number.family is None else number.family for number in self.numbers]

    def ends(self, k: list[float], constant: float, alpha: float) -> Ends:
        """Between which the true Σ k·number + constant lies, but for a probability of alpha."""
        low, high = self.certain_ends(k, constant, alpha / self.shares)
        half = box.half_width(*self.law(k), alpha / self.shares)
        return low - half, high + half

    def is_below_zero(self, k: list[float], constant: float, alpha: float) -> bool:
        """Whether all of that interval is below 0."""
        _, high = self.certain_ends(k, constant, alpha / self.shares)
        return high < 0 and box.several_tail(-high, *self.law(k)) < alpha / self.shares


def crossing(is_beyond: Callable[[float], bool], start: float) -> float:
    """The least number from which on this is so, or a little more; inf: it is so nowhere.

    It is not so below, and so above.
    """
    inside = outside = start
    step = max(1e-6 * abs(start), 1e-12)
    while not is_beyond(outside):
        inside, outside, step = outside, outside + step, 4 * step
        if outside == inf:
            return inf
    while is_beyond(inside):
        inside, outside, step = inside - step, inside, 4 * step
        if inside == -inf:
            return -inf
    for _ in range(30):  # bisection, to a billionth of what it begins with
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if is_beyond(middle) else (middle, outside)
    return outside
