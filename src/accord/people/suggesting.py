"""Suggesting: bounds, step, std and keys, from what public people have.

Public people may differ from the others, so that their values alone do not tell where the others' lie. How
far the means of two levels may lie apart, the gap D, is for the user to declare.

    without a gap   Wide bounds: the declared ones; else around all public values, rounded outward.
                    Narrower ones would cut off more of the others than of public people where levels go
                    with values, and nothing would tell by how much.
    with a gap      The bounds (a, b) that minimise the expected squared error of a mean,
                        rmse² + (κ·D)² + (λ·ê)² + Var(e)/n
                    where rmse (noise and sampling) and κ are those of the best plan for these bounds; e is
                    how far a public person's value lies outside of them, ê its mean over the n public people,
                    and λ = 3: the others' may be three times as large. Of bounds within 1 % of the smallest
                    error, the widest. What is cut off is not added back to any answer. (If ê were, λ − 1
                    would stand in the place of λ.)
    few people      Below 100 public people with a value their tails tell nothing: as without a gap, and
                    neither step nor std.
    step            The largest power of ten of which every public value is a multiple, from 10⁻⁶ to 10⁶.
    std             With a gap only: √(s² + D²/4), s² the variance of public people within the bounds. Two
                    groups with this variance and means D apart have at most that much together.
    keys            Every one that a public person has: it is public because they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from math import ceil, floor, fsum, log10, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord import dates, planning, statistics
from accord.spec import Spec
from accord.statistics.query import decimal, number_text

FEW = 100
"""Below so many public people with a value, tails tell nothing."""
_LAMBDA = 3
"""The others' values may lie outside the bounds by so many times as much as public people's."""
_QUANTILES = (0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0)
"""Where an upper bound may be; a lower one at what is left to 1."""
_ROUND = tuple(map(Fraction, ("1", "1.5", "2", "3", "4", "5", "6", "8", "10")))
_EXPONENTS = range(6, -7, -1)
_MOST_CELLS = 2**20
"""A finer step than the grid has without one is not worth declaring."""
_NEAR_ZERO = 4
_MOST_CODES, _FEW_DIFFERENT = 100, 10
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31)
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Suggested:
    """What might be declared of a column, and why."""

    bounds: tuple[Any, Any] | None = None
    step: int | float | None = None
    std: float | None = None
    keys: tuple[Any, ...] | None = None
    why: Mapping[str, str] = field(default_factory=dict)
    """In words, by their names."""


@dataclass(frozen=True)
class Known:
    """What is known before anybody is read."""

    spec: Spec
    column: str
    bounds: tuple[Any, Any] | None = None
    """As declared."""
    gap: float | None = None
    share: float = 1.0
    """Of everyone's level, which the question may spend."""


def from_texts(keys: tuple[Any, ...]) -> Suggested:
    """Keys of a column of texts."""
    if not keys:
        return Suggested(why={"keys": "no public person has any"})
    why = f"every one that a public person has, {len(keys):,} in all; others may have more"
    return Suggested(keys=keys, why={"keys": why})


def from_numbers(values: Values, of_rows: tuple[float, ...], known: Known) -> Suggested:
    """Everything about a column of numbers. `values`: ascending, one for each public person who has any."""
    if not values.size:
        return _nothing(known)
    few = values.size < FEW
    why: dict[str, str] = {}
    resolution = None if few else _resolution(values)
    if known.gap is None or few:
        low, high, why["bounds"] = _wide(values, resolution, known)
        if known.gap is not None:
            why["bounds"] += f"; {_too_few(values)} for the rule with a gap"
    else:
        low, high, why["bounds"] = _best(values, resolution, known)
    step, why["step"] = _step(resolution, low, high, few, values)
    std, why["std"] = _std(values, low, high, known, few)
    keys = None
    if len(of_rows) <= _MOST_CODES and all(x == int(x) and abs(x) < 2**53 for x in of_rows):
        keys = tuple(map(int, of_rows))
        why["keys"] = "if the column has codes rather than amounts: every one that a public person has"
    return Suggested((_plain(low), _plain(high)), step, std, keys, why)


def from_moments(seconds: Values, kind: str, known: Known) -> Suggested:
    """Bounds of dates or timestamps: the declared ones, else whole years."""
    if not seconds.size:
        return _nothing(known)
    if known.bounds is not None:
        return Suggested(known.bounds, why={"bounds": "as declared"})
    first, last = (_moment(end) for end in (float(seconds[0]), float(seconds[-1])))
    low: date = datetime(first.year, 1, 1)
    high: date = datetime(last.year, 12, 31)
    if kind == "date":
        low, high = (datetime.combine(end, time()).date() for end in (low, high))
    elif last.year < _LAST.year:
        high = datetime(last.year + 1, 1, 1)
    why = "the whole years in which public people's values lie; others' may lie outside"
    return Suggested((low, high), why={"bounds": why})


def _nothing(known: Known) -> Suggested:
    fact = "no public person has a value"
    if known.bounds is None:
        return Suggested(why={"bounds": fact})
    return Suggested(known.bounds, why={"bounds": f"as declared; {fact}"})


def _moment(seconds: float) -> datetime:
    least, most = (dates.seconds(end, "timestamp", "a moment") for end in (_FIRST, _LAST))
    moment = dates.from_seconds(min(most, max(least, Fraction(seconds))), "timestamp")
    assert isinstance(moment, datetime)
    return moment


# ---- bounds ------------------------------------------------------------------------------------------------


def _wide(values: Values, step: Fraction | None, known: Known) -> tuple[Fraction, Fraction, str]:
    """Declared bounds, or such that nobody who is public lies outside."""
    if known.bounds is not None:
        low, high = map(decimal, known.bounds)
        return low, high, f"as declared; {_outside(values, low, high)}"
    low, high = _around(values, step)
    why = (
        "around all public people's values, rounded outward; how far the others' may lie from these "
        "is not known here, and what lies outside counts as the nearer bound"
    )
    return low, high, why


def _around(values: Values, step: Fraction | None) -> tuple[Fraction, Fraction]:
    """Two round numbers around all values; 0 in the place of one that is near it, as the width goes."""
    low, high = outward(float(values[0]), False, step), outward(float(values[-1]), True, step)
    if 0 < low < high / _NEAR_ZERO:
        low = Fraction(0)
    elif low / _NEAR_ZERO < high < 0:
        high = Fraction(0)
    return low, high if low < high else _next_above(high, step)


def _best(values: Values, step: Fraction | None, known: Known) -> tuple[Fraction, Fraction, str]:
    """The bounds with the smallest expected squared error: first the upper one, then the lower one."""
    low, high = _around(values, step) if known.bounds is None else map(decimal, known.bounds)
    uppers = {outward(_quantile(values, p), True, step) for p in _QUANTILES}
    pairs = [(low, b) for b in sorted({high, *(b for b in uppers if low < b < high)})]
    high = _least(values, pairs, known)[1]
    lowers = {outward(_quantile(values, 1 - p), False, step) for p in _QUANTILES}
    more = [(a, high) for a in sorted({low, *(a for a in lowers if low < a < high)})]
    low = _least(values, more, known)[0]
    error = sqrt(expected_error(values, low, high, known))
    why = (
        f"of {len({*pairs, *more})} choices the widest within 1 % of the smallest expected error of a mean: "
        f"{error:,.4g}, if means of levels are at most {number_text(decimal(known.gap))} apart and the "
        f"others' values lie outside by at most {_LAMBDA} times as much as public people's; "
        f"{_outside(values, low, high)}. What is cut off is not added back"
    )
    return low, high, why


def _least(values: Values, pairs: list[tuple[Fraction, Fraction]], known: Known) -> tuple[Fraction, Fraction]:
    """The widest of those pairs whose expected error is within 1 % of the smallest."""
    errors = {pair: sqrt(expected_error(values, *pair, known)) for pair in pairs}
    least = min(errors.values())
    return max((pair for pair, error in errors.items() if error <= 1.01 * least), key=lambda p: p[1] - p[0])


def expected_error(values: Values, low: Fraction, high: Fraction, known: Known) -> float:
    """The expected squared error of a mean with these bounds, by the rule above."""
    gap = float(known.gap or 0)
    bounds = (_plain(low), _plain(high))
    query = statistics.mean(known.column, bounds, std=_spread(values, low, high, gap))
    plan = planning.plan(known.spec, query, share=known.share)
    kappa = 1.0 if plan.bias_bound is None else plan.bias_bound
    a, b = map(float, bounds)
    excess = (np.maximum(values - b, 0) + np.maximum(a - values, 0)).tolist()
    mean = fsum(excess) / values.size
    variance = fsum((e - mean) ** 2 for e in excess) / values.size
    return float(plan.rmse**2 + (kappa * gap) ** 2 + (_LAMBDA * mean) ** 2 + variance / values.size)


def _quantile(values: Values, p: float) -> float:
    """One of the values: at most this part of them lies below."""
    return float(values[min(values.size - 1, floor(p * values.size))])


def outward(x: float, up: bool, step: Fraction | None = None) -> Fraction:
    """A round number, and a multiple of the step: the nearest above, or below.

    >>> [number_text(outward(x, True)) for x in (187_300, 93, 0.031, 0, -17)]
    ['200000', '100', '0.04', '0', '-15']
    >>> number_text(outward(18, False)), number_text(outward(13, True, Fraction(10)))
    ('15', '20')
    """
    exact = decimal(x)
    if exact == 0:
        return exact
    size, grows = abs(exact), up == (exact > 0)
    unit = Fraction(10) ** floor(log10(size))
    numbers = [scale * m for scale in (unit / 10, unit, unit * 10) for m in _ROUND]
    near = min(n for n in numbers if n >= size) if grows else max(n for n in numbers if n <= size)
    rounded = near if exact > 0 else -near
    if step is None or (rounded / step).denominator == 1:
        return rounded
    return step * (ceil(rounded / step) if up else floor(rounded / step))


def _next_above(x: Fraction, step: Fraction | None) -> Fraction:
    """A larger round number."""
    if x == 0:
        return Fraction(1) if step is None else step
    beyond = x + abs(x) / 100
    return outward(float(beyond), True, step)


def _outside(values: Values, low: Fraction, high: Fraction) -> str:
    count = int(((values < float(low)) | (values > float(high))).sum())
    return f"{count:,} of {values.size:,} public people lie outside"


def _too_few(values: Values) -> str:
    have = "1 public person with a value is" if values.size == 1 else None
    return f"{have or f'{values.size:,} public people with a value are'} too few (below {FEW})"


# ---- step and std ------------------------------------------------------------------------------------------


def _resolution(values: Values) -> Fraction | None:
    """The largest power of ten of which all values are multiples; None: there is none.

    More than 1 only where values differ: few of them may be round by chance.
    """
    different = np.unique(values)
    for exponent in _EXPONENTS:
        if exponent > 0 and different.size < _FEW_DIFFERENT:
            continue
        power = 10.0 ** abs(exponent)
        whole = np.rint(different / power if exponent >= 0 else different * power)
        back = whole * power if exponent >= 0 else whole / power
        if (np.abs(whole) < 2**53).all() and (back == different).all():
            return Fraction(10) ** exponent
    return None


def _step(
    resolution: Fraction | None, low: Fraction, high: Fraction, few: bool, values: Values
) -> tuple[int | float | None, str]:
    if few:
        return None, _too_few(values)
    if resolution is None:
        return None, "public people's values are multiples of no power of ten from 0.000001 on"
    text, width = number_text(resolution), high - low
    if (width / resolution).denominator != 1:
        return None, f"public people's values are multiples of {text}, which does not divide these bounds"
    if width / resolution > _MOST_CELLS:
        return None, f"public people's values are multiples of {text}, finer than the grid without a step"
    return _plain(resolution), "every public person's value is a multiple of it; others' are rounded to one"


def _std(values: Values, low: Fraction, high: Fraction, known: Known, few: bool) -> tuple[float | None, str]:
    if known.gap is None:
        return None, "not without gap=: public people may differ less than all do"
    if few:
        return None, _too_few(values)
    std = _spread(values, low, high, float(known.gap))
    if std is None:
        return None, "public people do not differ within these bounds"
    return std, "public people's within these bounds, and half the gap: it is no bound of the others'"


def _spread(values: Values, low: Fraction, high: Fraction, gap: float) -> float | None:
    """√(s² + D²/4), to four digits and rounded up; at most what is possible within the bounds."""
    inside, half = np.clip(values, float(low), float(high)), (high - low) / 2
    mean = fsum(inside.tolist()) / inside.size
    variance = fsum(((inside - mean) ** 2).tolist()) / inside.size
    std = sqrt(variance + min(gap, 2 * float(half)) ** 2 / 4)
    if std < float(half) * 1e-6:
        return None
    digit = Fraction(10) ** (floor(log10(std)) - 3)
    rounded = float(min(half, ceil(Fraction(std) / digit) * digit))
    return nextafter(rounded, 0.0) if decimal(rounded) > half else rounded


def _plain(x: Fraction) -> int | float:
    return int(x) if x.denominator == 1 else float(x)
