"""Spec: the public table of levels and how many people have each; levels in whole millionths (budget.py).

People who opted out are counted here and never read anywhere.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from accord.budget import LARGEST, MICRO, PUBLIC, IntArray, distinct, level_text, to_micro
from accord.errors import SpecError, did_you_mean

_MOST_PEOPLE = 2**53


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
                f"tier {name!r} has the level {level!r}. A level is 0 (opted out), "
                f"a number from a millionth to {LARGEST // MICRO}, or inf (public)."
            ) from None
    return levels


class Spec:
    """How many people have which level. Public, and all that a plan sees of the people.

    >>> spec = Spec.from_groups({0.1: 500, 1.0: 300, inf: 20, 0: 7})
    >>> spec.levels, spec.counts, spec.total, spec.opted_out
    ((0.1, 1.0, inf), (500, 300, 20), 820, 7)
    >>> Spec.of([1, 0.1, 1]) == Spec.from_groups({0.1: 1, 1: 2})
    True
    """

    def __init__(
        self,
        micro: IntArray,
        people: IntArray,
        tiers: Mapping[str, int] | None = None,
        is_rest: bool = False,
        is_expected: bool = False,
    ) -> None:
        """From levels in millionths, in any order, with the number of people of each.

        `Spec.of` and `Spec.from_groups` are easier. For words only:
        `is_rest`: these are not levels but what remains of them in a ledger.
        `is_expected`: these people were not counted but assumed, because levels are private.
        """
        levels = distinct(micro)
        counts = np.zeros(levels.size, dtype=np.int64)
        np.add.at(counts, np.searchsorted(levels, micro), people)
        is_read = (levels > 0) & (counts > 0)
        self.micro: IntArray = levels[is_read]
        self.people: IntArray = counts[is_read]
        self.opted_out: int = int(counts[levels == 0].sum())
        self.total: int = int(self.people.sum())
        self.tiers: dict[str, int] = dict(tiers or {})
        self.is_rest, self.is_expected = is_rest, is_expected
        self.micro.flags.writeable = self.people.flags.writeable = False

    @classmethod
    def of(cls, levels: Iterable[Any], tiers: Mapping[Any, float] | None = None) -> Spec:
        """One entry a person: levels, or names of `tiers`."""
        if tiers is None:
            micro = to_micro(levels if isinstance(levels, np.ndarray) else list(levels)).reshape(-1)
            return cls(micro, np.ones(micro.size, dtype=np.int64))
        people = Counter(map(tier_name, levels))
        return cls.from_groups({name: people[name] for name in sorted(people)}, tiers)

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
        names = [tier_name(key) for key in groups]
        for name in names:
            if name not in levels:
                raise SpecError(f"tier {name!r} is not declared: {did_you_mean(name, levels)}")
        return cls(np.array([levels[name] for name in names], dtype=np.int64), people, levels)

    def __reduce__(self) -> tuple[type[Spec], tuple[IntArray, IntArray, dict[str, int], bool, bool]]:
        """Pickled as what it was made from, and made anew: arrays that come from a pickle can be changed."""
        levels, people = np.append(self.micro, 0), np.append(self.people, self.opted_out)
        return Spec, (levels, people, self.tiers, self.is_rest, self.is_expected)

    def as_expected(self, tiers: Mapping[str, int] | None = None) -> Spec:
        """The same numbers as an assumption; `tiers`: names of its levels, if it has none of its own."""
        levels, people = np.append(self.micro, 0), np.append(self.people, self.opted_out)
        return Spec(levels, people, self.tiers or tiers, is_expected=True)

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
        digest = hashlib.sha256(b"accord spec 1")
        for part in (self.micro, self.people, np.array([self.opted_out])):
            digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
            digest.update(b"|")
        return digest.hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def _repr_html_(self) -> str:
        from accord.report.html import spec_html

        return spec_html(self)

    def __repr__(self) -> str:
        first = zip(self.micro[:8].tolist(), self.counts, strict=False)
        levels = ", ".join(f"{level_text(micro)}: {people}" for micro, people in first)
        more = f", … {self.micro.size - 8} more levels" if self.micro.size > 8 else ""
        out = f", opted out: {self.opted_out}" if self.opted_out else ""
        whom = "expected people" if self.is_expected else "people"
        return f"<Spec of {self.total} {whom}. {{{levels}{more}}}{out}>"
