"""Values that people round: for `rounded=`, a public prior over the points of a grid.

People say that they earn 50,000, not 49,873. Where most values are multiples of round steps, most points of a
fine grid have nobody at them, and a choice among all points often lands beside the heap that it aims at. So
round points are made likelier.

Prior      With K points, and steps s_1 … s_m, let S_j be the points to which the multiples of s_j go (each
           multiple within the bounds is at the nearest point, as values are). A point counts
               t(r) = 1 + Σ_j [r in S_j]·⌊K/|S_j|⌋
           times: whole numbers, about a mean of uniform laws on all points and on each S_j. They follow from
           the bounds, the step and the declared steps alone, so that they are public.
Guarantee  that of the choice without it. With P(r) = t(r)·exp(score(r)/b)/Σ_q t(q)·exp(score(q)/b), t cancels
           in the ratio of two tables' P(r) but for the sums, and each term of those moves by no more than
           without t.
Tail       Some point r* has the score 0, so that the sum below the fraction is at least t(r*) ≥ 1 and
               P(score ≤ −a) ≤ Σ_{score(r) ≤ −a} t(r)·exp(−a/b) ≤ T·exp(−a/b),   T = Σ_r t(r) ≤ (m + 1)·K:
           wherever ln K bounds an error or an interval, ln T does. It holds for all values, rounded or not.
Smooth     values gain nothing: a choice is drawn to a round point that lies near the quantile. On average
           over where the quantile lies, its standard deviation is at most `smooth_cost` times that of a
           choice where all points count once (reckoned exactly for grids and steps of many kinds in
           tests/laws/test_rounding.py, not proved), and predicted errors have that in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm, sqrt
from typing import Any

import numpy as np

from accord.budget import IntArray
from accord.errors import QueryError
from accord.statistics.query import exact, number_text

_SPREAD_OUT = 1.3
"""How many times as far off a choice may be where values are smooth, with steps that are far apart;"""
_EACH = 0.36
"""with others, how much each step adds to the variance at most."""
_MOST_STEPS = 8
"""That a user may give."""
_DECIMAL = (1, 5)
"""Of powers of ten: the steps of `rounded=True`."""
_DIGITS = (1, 2, 5)
"""Of powers of ten: the steps that a grid of round points may have."""
_OFFER = "Give True for round decimal steps, or a list of steps, such as [1000, 5000]"


def read_steps(rounded: Any, low: Fraction, high: Fraction, step: Fraction) -> tuple[Fraction, ...]:
    """The steps to which values are rounded, as the user says it, on a grid; none: they are not."""
    if rounded is None or rounded is False:
        return ()
    if rounded is True:
        steps = tuple(each for each in _powers(_DECIMAL, step, high - low) if each > step)
        if not steps:
            raise QueryError(
                f"rounded=True finds no round step between the grid's step {number_text(step)} and the width "
                f"{number_text(high - low)}. Leave it out."
            )
        return steps
    if isinstance(rounded, str) or not isinstance(rounded, Iterable):
        raise QueryError(f"rounded={rounded!r} is not offered. {_OFFER}.")
    given = tuple(sorted({exact(each, "a step of rounded=") for each in rounded}))
    if not 0 < len(given) <= _MOST_STEPS:
        raise QueryError(f"rounded= has {len(given)} steps. Give 1 to {_MOST_STEPS} of them.")
    for each in given:
        if each < step:
            raise QueryError(
                f"rounded= has the step {number_text(each)}, and the grid's step is {number_text(step)}. "
                "Give steps that are at least as large, or a smaller step=."
            )
        if high // each < -(-low // each):
            raise QueryError(
                f"rounded= has the step {number_text(each)}, of which no multiple lies in "
                f"[{number_text(low)}, {number_text(high)}]. Leave it out."
            )
    return given


def round_step(low: Fraction, high: Fraction, cells: int) -> Fraction | None:
    """The smallest round step that divides the bounds into at most so many cells, at round points.

    None: there is none.

    >>> round_step(Fraction(0), Fraction(200_000), 2**16), round_step(Fraction(1, 3), Fraction(9), 100)
    (Fraction(5, 1), None)
    """
    steps = _powers(_DIGITS, (high - low) / cells, high - low)
    return next((s for s in steps if (low / s).denominator == (high / s).denominator == 1), None)


def _powers(digits: tuple[int, ...], least: Fraction, most: Fraction) -> tuple[Fraction, ...]:
    """Round numbers from `least` to `most`, ascending."""
    exponents = range(-102, 102)
    numbers = (digit * Fraction(10) ** k for k in exponents for digit in digits)
    return tuple(x for x in numbers if least <= x <= most)


def smooth_cost(steps: tuple[Fraction, ...]) -> float:
    """How many times as far off a choice may be on average, where values are smooth.

    >>> steps = [Fraction(9), Fraction(10), Fraction(50)]
    >>> round(smooth_cost(tuple(steps[1:])), 2), round(smooth_cost(tuple(steps)), 2)
    (1.3, 1.44)
    """
    if not steps:
        return 1.0
    return _SPREAD_OUT if _are_spread_out(steps) else sqrt(1 + _EACH * len(steps))


def _are_spread_out(steps: tuple[Fraction, ...]) -> bool:
    """Whether each step is at least twice the one before it, and ten times the one before that."""
    return all(
        later >= factor * step
        for back, factor in ((1, 2), (2, 10))
        for step, later in zip(steps, steps[back:], strict=False)
    )


def times_each(low: Fraction, high: Fraction, step: Fraction, steps: tuple[Fraction, ...]) -> IntArray:
    """How many times each point counts: t of the docstring above.

    >>> times_each(Fraction(0), Fraction(10), Fraction(1), (Fraction(5),)).tolist()
    [4, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]
    """
    points = int((high - low) / step) + 1
    times = np.ones(points, dtype=np.int64)
    for each in steps:
        slope, start = each / step, Fraction(1, 2) - low / step
        d = lcm(slope.denominator, start.denominator)
        first, last = -int(-low // each), int(high // each)
        is_large = max(abs(first), abs(last)) * abs(slope * d) + abs(start * d) >= 2**62
        multiples = np.arange(first, last + 1, dtype=object if is_large else np.int64)
        cells = ((multiples * int(slope * d) + int(start * d)) // d).astype(np.int64)
        cells = np.unique(np.minimum(cells, points - 1))
        times[cells] += points // cells.size
    times.flags.writeable = False
    return times
