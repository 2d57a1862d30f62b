"""Spec: the public table of levels and how many people have each.

A level ε is kept as a whole number of millionths, rounded **down** by its decimal value, so that what a person is charged
can be compared and added exactly. ∞ (public data) is its own value; 0, or less than a millionth, means opted out: such
people are counted here and never read anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite, isinf, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.errors import SpecError, did_you_mean

IntArray = NDArray[np.int64]

MICRO = 1_000_000
"""Millionths in one unit of ε."""
PUBLIC = int(np.iinfo(np.int64).max)
"""The level ∞, in millionths: larger than every other, so that min(ε, τ) needs no special case."""
LARGEST = MICRO * MICRO
"""The largest finite level, a million, in millionths. e^1000000 protects nobody: such people are public."""

_MOST_PEOPLE = 2**53


def to_micro(levels: ArrayLike) -> IntArray:
    """Levels in millionths, rounded down by their decimal value; ∞ becomes PUBLIC.

    >>> to_micro([0.1, 0.29, 2.5e-6, 1e-12, inf]).tolist() == [100_000, 290_000, 2, 0, PUBLIC]
    True
    >>> to_micro(Decimal("0.29999999999999999999")).tolist()
    299999
    """
    try:
        x = np.asarray(_as_floats(levels), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise SpecError("a level is not a number. Levels are numbers ≥ 0, or inf for public data.") from None
    _refuse_bad(x)
    finite = np.minimum(x, LARGEST / MICRO)
    k = np.floor(finite * MICRO)
    k += (k + 1) / MICRO <= finite  # x·10⁶ was rounded below the integer
    k -= k / MICRO > finite  # … or above it
    return np.where(np.isinf(x), PUBLIC, k.astype(np.int64))


def _as_floats(levels: Any) -> Any:
    """Levels without decimals and fractions: a float in the place of each."""
    if isinstance(levels, np.ndarray) and levels.dtype != object:
        return levels
    if isinstance(levels, np.ndarray | list | tuple):
        return [_as_floats(level) for level in levels]
    return not_above(levels) if isinstance(levels, Decimal | Fraction) else levels


def not_above(level: Decimal | Fraction) -> float:
    """The largest float whose decimal value is not above a level: a float may be larger than the decimal that it was made of.

    >>> not_above(Decimal("0.3")), not_above(Decimal("0.29999999999999999999"))
    (0.3, 0.29999999999999993)
    """
    near = float(level)
    return near if not isfinite(near) or Fraction(repr(near)) <= Fraction(level) else nextafter(near, -inf)


def _refuse_bad(x: NDArray[np.float64]) -> None:
    rule = "A level is a number ≥ 0 (0: opted out), or inf (public)."
    for bad, what in (
        (np.isnan(x), "NaN"),
        (x < 0, "negative"),
        (
            (x > LARGEST / MICRO) & ~np.isinf(x),
            f"larger than {LARGEST // MICRO}, which protects nobody (write inf for public data)",
        ),
    ):
        if count := int(np.count_nonzero(bad)):
            raise SpecError(f"{count} of {x.size} levels are {what}. {rule} Correct them, or leave these people out.")


def level_text(micro: int) -> str:
    """A level in millionths as a decimal, never in scientific notation.

    >>> level_text(100_000), level_text(1), level_text(PUBLIC)
    ('0.1', '0.000001', 'inf')
    """
    if micro == PUBLIC:
        return "inf"
    whole, rest = divmod(micro, MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")


def amount_text(amount: float) -> str:
    """A level, or what is spent of it, as a decimal; public people may have spent more than any level.

    >>> amount_text(0.1), amount_text(2e6), amount_text(inf)
    ('0.1', '2000000', 'inf')
    """
    return level_text(PUBLIC if isinf(amount) else round(amount * MICRO))


def to_float(micro: int) -> float:
    return inf if micro == PUBLIC else micro / MICRO


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


def tier_name(key: Any) -> str:
    """A tier's name as an engine prints it: true, 1, strict."""
    return str(key).lower() if isinstance(key, (bool, np.bool_)) else str(key)


def read_tiers(tiers: Mapping[Any, float]) -> dict[str, int]:
    """Names of tiers with their levels in millionths; keys as the engine would print them.

    >>> read_tiers({"strict": 0.1, "public": inf}) == {"strict": 100_000, "public": PUBLIC}
    True
    """
    example = "Give each tier a level, such as {'strict': 0.1, 'public': inf}."
    if not isinstance(tiers, Mapping):
        raise SpecError(f"tiers= is a {type(tiers).__name__}. {example}")
    try:
        declared = list(tiers.items())
    except Exception as fault:  # a mapping of somebody's own
        raise SpecError(f"tiers= cannot be read: it raised a {type(fault).__name__}. {example}") from None
    if not declared:
        raise SpecError(f"tiers= is empty. {example}")
    levels: dict[str, int] = {}
    for key, level in declared:
        name = tier_name(key)
        if name in levels:
            raise SpecError(f"tier {name!r} is declared twice. Give each tier one level.")
        try:
            levels[name] = int(to_micro(level))
            if levels[name] == 0 and level != 0:
                raise SpecError("less than a millionth")
        except SpecError:
            raise SpecError(
                f"tier {name!r} has the level {level!r}. A level is 0 (opted out), a number from a millionth to "
                f"{LARGEST // MICRO}, or inf (public)."
            ) from None
    return levels


def total_of(charges: IntArray, people: IntArray) -> int:
    """Σ charge·people, exactly."""
    if float(charges.astype(np.float64) @ people) < 2.0**62:
        return int(charges @ people)
    return sum(c * n for c, n in zip(charges.tolist(), people.tolist(), strict=True))


class Spec:
    """How many people have which level. Public, and all that a plan sees of the people.

    >>> spec = Spec.from_groups({0.1: 500, 1.0: 300, inf: 20, 0: 7})
    >>> spec.levels, spec.counts, spec.total, spec.opted_out
    ((0.1, 1.0, inf), (500, 300, 20), 820, 7)
    >>> Spec.of([1, 0.1, 1]) == Spec.from_groups({0.1: 1, 1: 2})
    True
    """

    def __init__(
        self, micro: IntArray, people: IntArray, tiers: Mapping[str, int] | None = None, is_rest: bool = False
    ) -> None:
        """From levels in millionths, in any order, with the number of people of each. `Spec.of` and `Spec.from_groups` are easier.

        `is_rest`: these are not levels but what is left of them in a ledger. It matters for words only.
        """
        distinct, where = np.unique(micro, return_inverse=True)
        counts = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(counts, where, people)
        seen = (distinct > 0) & (counts > 0)
        self.micro: IntArray = distinct[seen]
        self.people: IntArray = counts[seen]
        self.opted_out: int = int(counts[distinct == 0].sum())
        self.total: int = int(self.people.sum())
        self.tiers: dict[str, int] = dict(tiers or {})
        self.is_rest = is_rest
        self.micro.flags.writeable = self.people.flags.writeable = False

    @classmethod
    def of(cls, levels: Iterable[Any], tiers: Mapping[Any, float] | None = None) -> Spec:
        """One entry a person: levels, or names of `tiers`."""
        if tiers is None:
            micro = to_micro(levels if isinstance(levels, np.ndarray) else list(levels)).reshape(-1)
            return cls(micro, np.ones(micro.size, dtype=np.int64))
        names, counts = np.unique(np.asarray([tier_name(x) for x in levels], dtype=str), return_counts=True)
        return cls.from_groups(dict(zip(names.tolist(), counts.tolist(), strict=True)), tiers)

    @classmethod
    def from_groups(cls, groups: Mapping[Any, int], tiers: Mapping[Any, float] | None = None) -> Spec:
        """{level: number of people}, or {tier: number of people} with `tiers`."""
        for count in groups.values():
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
                raise SpecError(f"a group has {count!r} people. The number of people is a whole number ≥ 0.")
        if sum(int(count) for count in groups.values()) > _MOST_PEOPLE:
            raise SpecError(f"the groups have more than {_MOST_PEOPLE} people in all. Check the numbers.")
        people = np.fromiter(groups.values(), dtype=np.int64, count=len(groups))
        if tiers is None:
            return cls(to_micro(list(groups)).reshape(-1), people)
        levels = read_tiers(tiers)
        for name in map(tier_name, groups):
            if name not in levels:
                raise SpecError(f"tier {name!r} is not declared: {did_you_mean(name, levels)}")
        return cls(
            np.fromiter((levels[tier_name(name)] for name in groups), dtype=np.int64, count=len(groups)), people, levels
        )

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """The distinct levels, ascending, without the opted-out."""
        finite = (self.micro[self.micro != PUBLIC] / MICRO).tolist()
        return (*finite, inf) if len(finite) < self.micro.size else tuple(finite)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many people have each of `levels`."""
        return tuple(self.people.tolist())

    def tier(self, micro: int) -> str | None:
        """The name or names of a level, if it has any."""
        return " / ".join(name for name, level in self.tiers.items() if level == micro) or None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of levels and numbers of people, which a plan carries. Names of tiers do not matter."""
        text = hashlib.sha256(b"accord spec 1")
        for part in (self.micro, self.people, np.array([self.opted_out])):
            text.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
            text.update(b"|")
        return text.hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        shown = ", ".join(f"{level_text(m)}: {n}" for m, n in zip(self.micro[:8].tolist(), self.counts, strict=False))
        more = f", … {self.micro.size - 8} more levels" if self.micro.size > 8 else ""
        out = f", opted out: {self.opted_out}" if self.opted_out else ""
        return f"<Spec of {self.total} people. {{{shown}{more}}}{out}>"
