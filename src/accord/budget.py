"""Budgets: what a level allows, in whole millionths of ε, and the arithmetic of what is spent of it.

A level ε is kept as a whole number of millionths, rounded **down** by its decimal value, so that what a
person is charged can be compared and added exactly. ∞ (public data) is its own value, PUBLIC: larger than
every other, so that min(ε, τ) needs no special case, and unchanged by everything below. 0, or less than a
millionth, means opted out.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, isinf, isnan, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.errors import SpecError

IntArray = NDArray[np.int64]

MICRO = 1_000_000
"""Millionths in one unit of ε."""
PUBLIC = int(np.iinfo(np.int64).max)
"""The level ∞, in millionths."""
LARGEST = MICRO * MICRO
"""The largest finite level, a million, in millionths. e^1000000 protects nobody: such people are public."""
_FEW = 16
"""So many levels are added up more quickly without NumPy."""


# ---- what somebody wrote, in millionths --------------------------------------------------------------------


def to_micro(levels: ArrayLike) -> IntArray:
    """Levels in millionths, rounded down by their decimal value; ∞ becomes PUBLIC.

    >>> to_micro([0.1, 0.29, 2.5e-6, 1e-12, inf]).tolist() == [100_000, 290_000, 2, 0, PUBLIC]
    True
    >>> to_micro(Decimal("0.29999999999999999999")).tolist()
    299999
    """
    try:
        with np.errstate(over="raise"):  # what is beyond the floats is not ∞, which would be public
            x = np.asarray(_as_floats(levels), dtype=np.float64)
    except (TypeError, ValueError, ArithmeticError):
        raise SpecError("a level is not a number. Levels are numbers ≥ 0, or inf for public data.") from None
    _refuse_bad(x)
    finite = np.minimum(x, LARGEST / MICRO)
    k = np.floor(finite * MICRO)
    k += (k + 1) / MICRO <= finite  # x·10⁶ was rounded below the integer
    k -= k / MICRO > finite  # … or above it
    return np.where(np.isinf(x), PUBLIC, k.astype(np.int64))


def _as_floats(levels: Any) -> Any:
    """Levels without decimals, fractions and texts: a float in the place of each."""
    if isinstance(levels, np.ndarray) and levels.dtype.kind in "biuf":
        return levels
    if isinstance(levels, np.ndarray | list | tuple):
        return [_as_floats(level) for level in levels]
    if isinstance(levels, str | bytes):
        return read_number(levels if isinstance(levels, str) else levels.decode())
    return not_above(levels) if isinstance(levels, Decimal | Fraction) else levels


def not_above(level: Decimal | Fraction) -> float:
    """The largest float whose decimal value is not above a level.

    The nearest float may be larger than the decimal that it was made of, or ∞.

    >>> not_above(Decimal("0.3")), not_above(Decimal("0.29999999999999999999")), not_above(Decimal("1e400"))
    (0.3, 0.29999999999999993, 1.7976931348623157e+308)
    """
    near = float(level)
    if isnan(near) or near == level:
        return near
    is_above = isinf(near) or Fraction(repr(near)) > Fraction(level)
    return nextafter(near, -inf) if is_above else near


def _refuse_bad(x: NDArray[np.float64]) -> None:
    rule = "A level is a number ≥ 0 (0: opted out), or inf (public)."
    too_large = f"larger than {LARGEST // MICRO}, which protects nobody (write inf for public data)"
    faults = {
        "NaN": np.isnan(x),
        "negative": x < 0,
        too_large: (x > LARGEST / MICRO) & ~np.isinf(x),
    }
    for fault, is_bad in faults.items():
        if count := int(np.count_nonzero(is_bad)):
            raise SpecError(
                f"{count} of {x.size} levels are {fault}. {rule} Correct them, or leave these people out."
            )


def read_number(text: str) -> float:
    """A number that somebody wrote. 1e400 is none: it would be taken for inf, which is public.

    Raises:
        ValueError: it is not a number.

    >>> read_number("0.1"), read_number("inf")
    (0.1, inf)
    """
    number = float(text)
    if isinf(number) and "inf" not in text.lower():
        raise ValueError("too large")
    return not_above(Decimal(text)) if isfinite(number) else number


# ---- and back ----------------------------------------------------------------------------------------------


def level_text(micro: int) -> str:
    """A level in millionths as a decimal, never in scientific notation.

    >>> level_text(100_000), level_text(1), level_text(PUBLIC)
    ('0.1', '0.000001', 'inf')
    """
    if micro == PUBLIC:
        return "inf"
    whole, rest = divmod(micro, MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


_FEW_LEVELS = 8
"""So many are listed in a line."""


def charges_text(levels: IntArray, charges: IntArray) -> str:
    """What each level is charged, in a line; of many levels, from the least to the most.

    >>> charges_text(np.array([10_000, PUBLIC]), np.array([10_000, 50_000]))
    '0.01: 0.01, inf: 0.05'
    >>> charges_text(np.arange(1, 101) * 10_000, np.minimum(np.arange(1, 101) * 10_000, 200_000))
    '100 levels from 0.01 to 1: 0.01 … 0.2'
    """
    if levels.size <= _FEW_LEVELS:
        each = zip(levels.tolist(), charges.tolist(), strict=True)
        return ", ".join(f"{level_text(level)}: {level_text(charge)}" for level, charge in each)
    ends = f"{levels.size:,} levels from {level_text(int(levels.min()))} to {level_text(int(levels.max()))}"
    return f"{ends}: {level_text(int(charges.min()))} … {level_text(int(charges.max()))}"


def amount_text(amount: float) -> str:
    """A level, or what is spent of it, as a decimal; public people may have spent more than any level.

    >>> amount_text(0.1), amount_text(2e6), amount_text(inf)
    ('0.1', '2000000', 'inf')
    """
    return level_text(PUBLIC if isinf(amount) else round(amount * MICRO))


def to_float(micro: int) -> float:
    return inf if micro == PUBLIC else micro / MICRO


# ---- arithmetic; ∞ stays ∞ ---------------------------------------------------------------------------------


def add(*amounts: IntArray) -> IntArray:
    """What several charges come to, level by level.

    >>> add(np.array([1, 2, PUBLIC]), np.array([3, 4, 5])).tolist() == [4, 6, PUBLIC]
    True
    """
    total = np.zeros_like(amounts[0])
    for amount in amounts:
        public = (total == PUBLIC) | (amount == PUBLIC)
        total = np.where(public, PUBLIC, np.where(public, 0, total) + np.where(public, 0, amount))
    return total


def subtract(amounts: IntArray, spent: IntArray) -> IntArray:
    """What remains of amounts.

    >>> subtract(np.array([5, PUBLIC]), np.array([2, 7])).tolist() == [3, PUBLIC]
    True
    """
    return np.where(amounts == PUBLIC, PUBLIC, amounts - np.where(amounts == PUBLIC, 0, spent))


def times(amounts: IntArray, count: int) -> IntArray:
    """Amounts, so many times each.

    >>> times(np.array([5, PUBLIC]), 2).tolist() == [10, PUBLIC]
    True
    """
    if count == 1:
        return amounts
    return np.where(amounts == PUBLIC, PUBLIC, np.where(amounts == PUBLIC, 0, amounts) * count)


def divide(amounts: IntArray, count: int) -> IntArray:
    """The most that can be spent so many times, rounded down.

    >>> divide(np.array([5, PUBLIC]), 2).tolist() == [2, PUBLIC]
    True
    """
    return np.where(amounts == PUBLIC, PUBLIC, amounts // count)


def share(levels: IntArray, fraction: int) -> IntArray:
    """⌊fraction·level⌋, for a fraction in millionths.

    >>> share(np.array([3, 10, PUBLIC]), 500_000).tolist() == [1, 5, PUBLIC]
    True
    """
    finite = np.where(levels == PUBLIC, 0, levels)  # at most 10¹² · 10⁶ < 2⁶³
    return np.where(levels == PUBLIC, PUBLIC, finite * fraction // MICRO)


def distinct(values: IntArray) -> IntArray:
    """The distinct values, ascending.

    By sorting: np.unique takes ten times as long where there are many.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    is_first = np.ones(ordered.size, dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def total_of(charges: IntArray, people: IntArray) -> int:
    """Σ charge·people, exactly."""
    if charges.size > _FEW:
        bound = int(charges.max(initial=0)) * int(people.sum())
        if bound < 2**62 or float(charges.astype(np.float64) @ people) < 2.0**62:
            return int(charges @ people)
    return sum(c * n for c, n in zip(charges.tolist(), people.tolist(), strict=True))
