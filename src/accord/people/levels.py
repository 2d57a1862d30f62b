"""How the level of a person is read.

From a row, from the strictest of a person's rows, or from what a ledger says remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import inf
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from accord.budget import LARGEST, MICRO, IntArray, to_float, to_micro
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns
from accord.engines.names import LEVEL
from accord.errors import SpecError, did_you_mean
from accord.spec import read_tiers


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
    def strictness(self) -> str:
        """SQL for a row's level as a number whose smallest is the strictest.

        Millionths of a tier, else the level; −1: not a level, −2: none at all.
        """
        if self.tiers is None:
            x, infinite = self.expression, self.dialect.double(inf)
            default = "-2" if self.default is None else self.dialect.double(to_float(self.default))
            finite = (
                f"{x} >= 0 AND {x} <= {self.dialect.double(LARGEST / MICRO)} AND {self.dialect.is_finite(x)}"
            )
            good = f"{finite} OR {x} = {infinite}"
            return f"CASE WHEN {x} IS NULL THEN {default} WHEN {good} THEN {x} ELSE -1 END"
        arms = " ".join(
            f"WHEN {self.expression} = {self.dialect.text(name)} THEN {level}"
            for name, level in self.tiers.items()
        )
        default = "-2" if self.default is None else str(self.default)
        return f"CAST(CASE WHEN {self.expression} IS NULL THEN {default} {arms} ELSE -1 END AS BIGINT)"

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
        known = np.ma.getdata(raw)[~missing]
        if self.tiers is None:
            self._refuse(known, people[~missing], int(people.sum()))
            micro[~missing] = to_micro(known)
            return micro
        names, where = np.unique(known.astype(object), return_inverse=True)
        unknown = [name for name in names.tolist() if name not in self.tiers]
        if len(unknown) > 5:  # hardly tiers: a wrong column, whose entries are not to be shown
            raise SpecError(
                f"the levels have {len(unknown)} names that are not declared tiers. "
                f"Is it the right column? {did_you_mean('', self.tiers)}"
            )
        for name in unknown:
            count = int(people[~missing][known == name].sum())
            raise SpecError(
                f"tier {name!r} of {count} people is not declared. "
                f"Give it a level (0: opted out), or correct it: {did_you_mean(name, self.tiers)}"
            )
        micro[~missing] = np.array([self.tiers[name] for name in names.tolist()], dtype=np.int64)[where]
        return micro

    def _decode_leniently(self, raw: Any, missing: Any, micro: IntArray) -> IntArray:
        """What is not a level counts as opted out.

        Who is there is private, so nobody there may decide whether a release fails.
        """
        micro[missing] = self.default or 0
        known = np.ma.getdata(raw)[~missing]
        if self.tiers is None:
            good = np.isinf(known) & (known > 0) | (known >= 0) & (known <= LARGEST / MICRO)
            micro[~missing] = to_micro(np.where(good, known, 0.0))
        else:
            micro[~missing] = [self.tiers.get(name, 0) for name in known.tolist()]
        return micro

    @staticmethod
    def _refuse(levels: Any, people: IntArray, total: int) -> None:
        """Like `to_micro`, but counting people instead of distinct levels."""
        for bad, what in (
            (
                np.isnan(levels),
                "NaN or not a number (names of tiers are declared: tiers={'strict': 0.1, 'public': inf})",
            ),
            (levels < 0, "negative"),
            (
                (levels > LARGEST / MICRO) & ~np.isinf(levels),
                f"larger than {LARGEST // MICRO}, which protects nobody (write inf for public data)",
            ),
        ):
            if bad.any():
                raise SpecError(
                    f"{people[bad].sum()} of {total} people have a level that is {what}. "
                    "A level is a number ≥ 0 (0: opted out), or inf (public). Correct them, or leave these "
                    "people out."
                )


@dataclass(frozen=True)
class Strictest:
    """Stands in for `Levels` where a person's rows are gathered.

    Their level is the strictest that any of them has.
    """

    rows: Levels

    @property
    def expression(self) -> str:
        return LEVEL

    @property
    def is_read(self) -> str:
        return (
            f"({self.expression} >= {self.rows.dialect.double(1 / MICRO) if self.rows.tiers is None else 1})"
        )

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        levels = np.ma.getdata(raw)
        bad = ~(levels >= 0)  # NaN, too: see Dialect.is_finite
        if bad.any() and not self.rows.lenient:
            none = int(people[levels == -2].sum())
            if none:
                raise SpecError(
                    f"{none} of {people.sum()} people have a row without a level (NULL). "
                    "Give default=, or leave them out of the table."
                )
            what = (
                "a tier that is not declared. Declare it in tiers= (0: opted out), or correct it"
                if self.rows.tiers is not None
                else f"a level that is not a number from 0 to {LARGEST // MICRO}, nor inf. "
                "Correct them, or leave these people out"
            )
            raise SpecError(f"{people[bad].sum()} of {people.sum()} people have a row with {what}.")
        usable = np.where(bad, 0, levels)
        return usable.astype(np.int64) if self.rows.tiers is not None else to_micro(usable)


@dataclass(frozen=True)
class RemainingLevels:
    """Stands in for `Levels` where a lent column has what everyone has remaining."""

    expression: str

    @property
    def is_read(self) -> str:
        return f"({self.expression} > 0)"

    def decode(self, raw: Any, people: IntArray) -> IntArray:
        return np.asarray(raw, dtype=np.int64)


LevelReader: TypeAlias = Levels | Strictest | RemainingLevels


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
                f"default= is a {type(default).__name__}. Give one tier or one level, for the people who "
                "have none."
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
                f"column {epsilon!r} is of a kind that cannot name tiers. Use a column of text or whole "
                "numbers."
            )
        return Levels(dialect, f"({dialect.tier(epsilon, kind, declared)})", declared, fallback)
    if kind not in ("number", "untyped"):
        raise SpecError(
            f"column {epsilon!r} holds no numbers. "
            "If it names tiers, declare them: tiers={'strict': 0.1, 'public': inf}."
        )
    return Levels(dialect, dialect.level(epsilon, kind), None, fallback)
