"""How a person's level is read: from a row, the strictest of their rows, or what a ledger says remains.

Where people have many rows, or are in a consent register, a level is read as a number whose smallest is the
strictest: millionths of a tier, else the level itself. What cannot be used is negative: NOT_A_LEVEL,
NO_LEVEL, NO_ENTRY.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from accord.budget import LARGEST, MICRO, PUBLIC, IntArray, to_float, to_micro
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns
from accord.engines.sql_names import ENTRY_FAULT, ENTRY_LEVEL, LEVEL, ROW_LEVEL
from accord.errors import TABLE_CHANGED, SourceError, SpecError, did_you_mean
from accord.spec import read_tiers

_LONG = 200
"""Letters of an expression that takes longer to understand than to compute."""
NOT_A_LEVEL, NO_LEVEL, NO_ENTRY = -1, -2, -3
"""A tier that is not declared or a number that is no level; NULL; nothing in the consent register."""


@dataclass(frozen=True)
class Levels:
    """How the level of a row is read: a column of numbers, a column of tiers, or one number for everyone."""

    dialect: Dialect
    expression: str
    tiers: dict[str, int] | None
    default: int | None
    """In millionths, for NULL."""
    lenient: bool = False
    """Whether what is not a level counts as opted out, instead of being refused."""
    computed: str | None = None
    """SQL of what the source has to give out under the name that is the expression; None: nothing."""

    def computed_once(self) -> Levels:
        """The same, with a long expression computed in the source: it is repeated wherever a level counts."""
        if len(self.expression) < _LONG:
            return self
        return replace(self, expression=ROW_LEVEL, computed=self.expression)

    @property
    def is_read(self) -> str:
        """SQL that is true for people who are to be read: never for those who opted out."""
        tests = [f"{self.expression} IS NULL"] if self.default else []
        if self.tiers is None:
            tests.append(f"{self.expression} >= {self.dialect.double(1 / MICRO)}")
        elif names := ", ".join(self.dialect.text(name) for name, level in self.tiers.items() if level):
            tests.append(f"{self.expression} IN ({names})")
        return f"({' OR '.join(tests)})" if tests else "FALSE"

    @property
    def is_public(self) -> str:
        """SQL that is true for people who are public."""
        tests = [f"{self.expression} IS NULL"] if self.default == PUBLIC else []
        if self.tiers is None:
            tests.append(f"{self.expression} = {self.dialect.double(inf)}")
        else:
            names = (self.dialect.text(name) for name, level in self.tiers.items() if level == PUBLIC)
            tests += [f"{self.expression} = {name}" for name in names]
        return f"({' OR '.join(tests)})" if tests else "FALSE"

    @property
    def strictness(self) -> str:
        """SQL for a row's level as a number whose smallest is the strictest."""
        if self.tiers is None:
            x, double = self.expression, self.dialect.double
            default = str(NO_LEVEL) if self.default is None else double(to_float(self.default))
            finite = f"{x} >= 0 AND {x} <= {double(LARGEST / MICRO)} AND {self.dialect.is_finite(x)}"
            is_level = f"{finite} OR {x} = {double(inf)}"
            return f"CASE WHEN {x} IS NULL THEN {default} WHEN {is_level} THEN {x} ELSE {NOT_A_LEVEL} END"
        arms = " ".join(
            f"WHEN {self.expression} = {self.dialect.text(name)} THEN {level}"
            for name, level in self.tiers.items()
        )
        default = str(NO_LEVEL if self.default is None else self.default)
        none = f"WHEN {self.expression} IS NULL THEN {default}"
        return f"CAST(CASE {none} {arms} ELSE {NOT_A_LEVEL} END AS BIGINT)"

    @property
    def tier(self) -> str:
        """SQL for the name of a row's tier, declared or not."""
        return self.expression

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        """Raw levels in millionths.

        Refuses what is not a level, with the number of people (levels are public).
        """
        missing = np.ma.getmaskarray(raw)
        micro = np.zeros(missing.size, dtype=np.int64)
        if self.lenient:
            return self._decode_leniently(raw, missing, micro)
        if missing.any():
            if self.default is None:
                raise SpecError(
                    f"{people[missing].sum()} of {people.sum()} people have no level (NULL). "
                    "Give default=, or leave them out of the table."
                )
            micro[missing] = self.default
        present = np.ma.getdata(raw)[~missing]
        if self.tiers is None:
            self._refuse(present, people[~missing], int(people.sum()))
            micro[~missing] = to_micro(present)
            return micro
        names, where = np.unique(present.astype(object), return_inverse=True)
        counts = np.bincount(where, weights=people[~missing], minlength=names.size).astype(np.int64)
        refuse_undeclared(dict(zip(names.tolist(), counts.tolist(), strict=True)), self.tiers)
        micro[~missing] = np.array([self.tiers[name] for name in names.tolist()], dtype=np.int64)[where]
        return micro

    def _decode_leniently(self, raw: Any, missing: Any, micro: IntArray) -> IntArray:
        """What is not a level counts as opted out.

        Who is there is private, so nobody there may decide whether a release fails.
        """
        micro[missing] = self.default or 0
        present = np.ma.getdata(raw)[~missing]
        if self.tiers is None:
            is_level = np.isinf(present) & (present > 0) | (present >= 0) & (present <= LARGEST / MICRO)
            micro[~missing] = to_micro(np.where(is_level, present, 0.0))
        else:
            micro[~missing] = [self.tiers.get(name, 0) for name in present.tolist()]
        return micro

    @property
    def faults(self) -> dict[int, str]:
        """What is said of people with a row whose level cannot be used, by what stands in its place."""
        return {
            NO_LEVEL: "a row without a level (NULL). Give default=, or leave them out of the table.",
            NOT_A_LEVEL: f"a row with {_not_a_level(self.tiers)}",
        }

    @staticmethod
    def _refuse(levels: Any, people: IntArray, total: int) -> None:
        """Like `to_micro`, but counting people instead of distinct levels."""
        is_too_large = (levels > LARGEST / MICRO) & ~np.isinf(levels)
        undeclared = "NaN or not a number (names of tiers are declared: tiers={'strict': 0.1, 'public': inf})"
        too_large = f"larger than {LARGEST // MICRO}, which protects nobody (write inf for public data)"
        for bad, fault in (
            (np.isnan(levels), undeclared),
            (levels < 0, "negative"),
            (is_too_large, too_large),
        ):
            if bad.any():
                raise SpecError(
                    f"{people[bad].sum()} of {total} people have a level that is {fault}. "
                    "A level is a number ≥ 0 (0: opted out), or inf (public). "
                    "Correct them, or leave these people out."
                )


@dataclass(frozen=True)
class KnownLevels:
    """Stands in for `Levels` where all that there are are known, and few: each is read as its place."""

    rows: Levels
    raw: list[Any]
    """As they stand in the table; none is NULL."""
    micro: IntArray

    @property
    def expression(self) -> str:
        dialect = self.rows.dialect
        literals = [dialect.text(x) if isinstance(x, str) else dialect.double(x) for x in self.raw]
        return f"CAST({dialect.position(self.rows.expression, literals)} AS TINYINT)"

    @property
    def is_read(self) -> str:
        return self.rows.is_read

    @property
    def is_public(self) -> str:
        return self.rows.is_public

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        if np.ma.getmaskarray(raw).any():  # a level that was not there before
            raise SourceError(TABLE_CHANGED)
        micro: IntArray = self.micro[raw.astype(np.int64)]
        return micro


@dataclass(frozen=True)
class RegisteredLevels:
    """Stands in for `Levels` where a consent register has everyone's level, joined to each of their rows."""

    dialect: Dialect
    tiers: dict[str, int] | None
    default: int | None
    """In millionths, for people without an entry; None: they are refused."""
    moment: str
    """At which the register is read, in words."""
    lenient: bool = False
    """Whether people without an entry count as opted out, and the default is not for them."""

    @property
    def expression(self) -> str:
        """SQL for the level, which is the same in all rows of a person."""
        absent = str(NO_ENTRY)
        if self.default is not None and not self.lenient:
            absent = self.dialect.double(to_float(self.default)) if self.tiers is None else str(self.default)
        return f"COALESCE({ENTRY_LEVEL}, {absent})"

    @property
    def strictness(self) -> str:
        return self.expression

    @property
    def tier(self) -> str:
        """SQL for the name of a tier that is not declared."""
        return ENTRY_FAULT

    @property
    def is_read(self) -> str:
        return _is_positive(self.dialect, self.expression, self.tiers)

    @property
    def is_public(self) -> str:
        return _is_infinite(self.dialect, self.expression, self.tiers)

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        return Strictest(self).decode(raw, people)

    @property
    def faults(self) -> dict[int, str]:
        """What is said of people whose level cannot be used, by what stands in its place."""
        correct = "Give default=, or correct the register."
        return {
            NO_ENTRY: f"no entry in the consent register{self.moment}. "
            "Give default=, or leave them out of the table.",
            NO_LEVEL: f"an entry without a level (NULL) in the consent register. {correct}",
            NOT_A_LEVEL: f"an entry in the consent register with {_not_a_level(self.tiers)}",
        }


@dataclass(frozen=True)
class Strictest:
    """Stands in for `Levels` where people have many rows: their level is the strictest of their rows'."""

    rows: RowLevels
    undeclared: Callable[[], Mapping[Any, int]] = dict
    """How many people have which tier that is not declared: asked only to say so."""

    @property
    def expression(self) -> str:
        return LEVEL

    @property
    def is_read(self) -> str:
        return _is_positive(self.rows.dialect, self.expression, self.rows.tiers)

    @property
    def is_public(self) -> str:
        return _is_infinite(self.rows.dialect, self.expression, self.rows.tiers)

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        levels = np.ma.getdata(raw)
        bad = ~(levels >= 0)  # NaN, too: see Dialect.is_finite
        if bad.any() and not self.rows.lenient:
            self._refuse(levels, bad, people)
        usable = np.where(bad, 0, levels)
        return usable.astype(np.int64) if self.rows.tiers is not None else to_micro(usable)

    def _refuse(self, levels: Any, bad: Any, people: IntArray) -> None:
        faults, total = self.rows.faults, people.sum()
        for fault, text in faults.items():
            count = int(people[levels == fault].sum())
            if count and fault != NOT_A_LEVEL:
                raise SpecError(f"{count} of {total} people have {text}")
        if self.rows.tiers is not None:
            refuse_undeclared(self.undeclared(), self.rows.tiers)
        raise SpecError(f"{people[bad].sum()} of {total} people have {faults[NOT_A_LEVEL]}")


def _is_positive(dialect: Dialect, level: str, tiers: Mapping[str, int] | None) -> str:
    """SQL that is true for a level of people who are to be read."""
    return f"({level} >= {dialect.double(1 / MICRO) if tiers is None else '1'})"


def _is_infinite(dialect: Dialect, level: str, tiers: Mapping[str, int] | None) -> str:
    """SQL that is true for a level of public people."""
    return f"({level} = {dialect.double(inf) if tiers is None else PUBLIC})"


def _not_a_level(tiers: Mapping[str, int] | None) -> str:
    if tiers is not None:
        return "a tier that is not declared. Declare it in tiers= (0: opted out), or correct it."
    return (
        f"a level that is not a number from 0 to {LARGEST // MICRO}, nor inf. "
        "Correct them, or leave these people out."
    )


def refuse_undeclared(people: Mapping[Any, int], tiers: Mapping[str, int]) -> None:
    """Refuse tiers that are not declared, by their names: levels are public. `people`: of each tier."""
    unknown = [name for name in people if name not in tiers]
    if len(unknown) > 5:  # hardly tiers: a wrong column, whose entries are not to be shown
        raise SpecError(
            f"the levels have {len(unknown)} names that are not declared tiers. "
            f"Is it the right column? {did_you_mean('', tiers)}"
        )
    if unknown:
        name = min(unknown)
        raise SpecError(
            f"tier {name!r} of {people[name]} people is not declared. "
            f"Give it a level (0: opted out), or correct it: {did_you_mean(name, tiers)}"
        )


@dataclass(frozen=True)
class RemainingLevels:
    """Stands in for `Levels` where a lent column has what everyone has remaining."""

    expression: str

    @property
    def is_read(self) -> str:
        return f"({self.expression} > 0)"

    @property
    def is_public(self) -> str:
        return f"({self.expression} = {PUBLIC})"

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        return np.asarray(raw, dtype=np.int64)


RowLevels: TypeAlias = Levels | RegisteredLevels
"""How the level of a row is read."""
LevelReader: TypeAlias = RowLevels | KnownLevels | Strictest | RemainingLevels


def known_levels(levels: LevelReader, raw: list[Any], micro: IntArray) -> LevelReader:
    """The same levels, each by its place among all that there are, where these are known and none is NULL."""
    if not isinstance(levels, Levels) or not micro.size or None in raw:
        return levels
    return KnownLevels(levels, raw, micro)


def levels_of(
    dialect: Dialect,
    columns: Columns,
    epsilon: str | float,
    tiers: Mapping[Any, float] | None,
    default: str | float | None,
) -> Levels:
    """How levels are read: see `accord.table`."""
    declared = None if tiers is None else read_tiers(tiers)
    fallback: int | None = None
    if default is not None:
        if isinstance(default, str):
            if declared is None or default not in declared:
                raise SpecError(
                    f"default={default!r} is not a declared tier. "
                    + (did_you_mean(default, declared) if declared else "Give tiers=, or a number.")
                )
            fallback = declared[default]
        elif isinstance(default, Real | Decimal):
            fallback = int(to_micro(default))
        else:
            raise SpecError(
                f"default= is a {type(default).__name__}. "
                "Give one tier or one level, for the people who have none."
            )
    if not isinstance(epsilon, str):
        if declared is not None:
            raise SpecError(
                "epsilon= is one number for everyone, so tiers= has no meaning. "
                "Name the column of tiers, or leave tiers= out."
            )
        return Levels(dialect, dialect.double(to_float(int(to_micro(epsilon)))), None, None)
    kind = columns[epsilon]
    if declared is not None:
        if kind == "other":
            raise SpecError(
                f"column {epsilon!r} is of a kind that cannot name tiers. "
                "Use a column of text or whole numbers."
            )
        return Levels(dialect, f"({dialect.tier(epsilon, kind, declared)})", declared, fallback)
    if kind not in ("number", "untyped"):
        raise SpecError(
            f"column {epsilon!r} holds no numbers. "
            "If it names tiers, declare them: tiers={'strict': 0.1, 'public': inf}."
        )
    return Levels(dialect, dialect.level(epsilon, kind), None, fallback)
