"""Queries: what is asked, with everything about it that is public. Frozen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from accord.errors import QueryError

if TYPE_CHECKING:
    import typing_extensions

    from accord.relation import Relation
    from accord.statistics.encoding import Encoding
    from accord.statistics.gap import GapScale
    from accord.statistics.regression import Coefficients
    from accord.statistics.target import Target

Point: TypeAlias = float | date
Answer: TypeAlias = "Point | list[Point] | dict[Any, float] | Coefficients | list[dict[str, Any]]"
Ends: TypeAlias = tuple[float, float]
Interval: TypeAlias = Ends | list[Ends] | dict[Any, Ends]
if TYPE_CHECKING:
    A = typing_extensions.TypeVar("A", covariant=True, default=Any)
else:
    A = TypeVar("A", covariant=True)
"""What an answer is, for type checkers: `Query[float]` is planned as a `Plan[float]`, and so on."""
Value = TypeVar("Value", float, date, datetime)
"""What bounds are given as, and an answer between them is."""


@dataclass(frozen=True)
class Query(ABC, Generic[A]):
    """A question, with its public bounds. Make one with `accord.mean` and its siblings."""

    statistic: ClassVar[str]
    unit: ClassVar[str] = "value"

    @property
    @abstractmethod
    def label(self) -> str:
        """A few words: what is asked."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def encoding(self) -> Encoding | None:
        """Which integers a person adds; None: it is given rows."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The question in plain words and numbers, for receipts."""

    @abstractmethod
    def assumptions(self) -> list[str]:
        """What the user declared as public knowledge: nothing else can tell where it came from."""

    @property
    @abstractmethod
    def rows_come_to(self) -> str:
        """What becomes of a person's rows, in words that follow "a person is whoever has the same …, "."""

    @property
    def chosen(self) -> str:
        """In which category or group somebody is whose rows are of several, in words; empty: there are none.

        They follow the label, where a table says whose rows are whose.
        """
        return ""

    @property
    def needs_rows(self) -> str:
        """The argument that has a meaning only where people have several rows; empty: there is none."""
        return ""

    @property
    def excludes_missing(self) -> bool:
        """Whether it is about people who have a value alone: who does is private, like a part of them."""
        return False

    def with_all_values(self, columns: Collection[str] | None = None) -> Query | None:
        """The same question where no value is missing, as declared; None: that would change nothing.

        `columns`: of these columns alone that is known.
        """
        return None

    @property
    def gap(self) -> Fraction | None:
        """How far levels go with values, at most, as declared (gap.py); None: nothing is declared."""
        return None

    @property
    def about_everyone(self) -> bool:
        """Whether it is about those who opted out, too."""
        return False

    @property
    def gap_scale(self) -> GapScale | None:
        """What a gap is about here, and in which unit; None: no gap bounds how far it may be off."""
        return None

    @property
    def why_no_kappa(self) -> str:
        """Why κ is not defined where data are read."""
        return "the answer is biased by design."

    compared: ClassVar[tuple[str, str]] = ("share", "shares")
    """What κ compares between levels: one and several of them."""

    def about_bias(self, kappa: float) -> str:
        """What κ says, in a sentence."""
        one, several = self.compared
        return (
            f"κ = {kappa:.3f}: if the {several} of any two levels differ by at most D, "
            f"the {one} behind this answer is off by at most κ·D beyond the interval."
        )

    @abstractmethod
    def under(self, relation: Relation, about_members: bool = False) -> Target | None:
        """What a mechanism answers under a relation; None: there is no such form.

        `about_members`: of the members of one private part, while everyone stays. Only under replace, where
        some statistics have an answer that is better than one that proves add-remove at half the charge.
        """


def decimal(x: Any) -> Fraction:
    """A number by its decimal value: 0.1 is one tenth.

    >>> decimal(0.1)
    Fraction(1, 10)
    """
    return Fraction(x) if isinstance(x, (int, Fraction)) else Fraction(repr(float(x)))


def number_text(x: Fraction) -> str:
    """A number as people write it.

    >>> number_text(Fraction(200_000)), number_text(Fraction(1, 8))
    ('200000', '0.125')
    """
    return str(x.numerator) if x.denominator == 1 else repr(float(x))


def column_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise QueryError(
            f"a column is named by a text, and {name!r} is not one. Give the column's name, such as 'income'."
        )
    return name


def exact(x: Any, what: str) -> Fraction:
    """A finite number, by its decimal value."""
    try:
        finite = isfinite(float(x))
    except (TypeError, ValueError, OverflowError):
        finite = False
    if not finite or isinstance(x, (str, bool)):
        raise QueryError(f"{what} is {x!r}. It must be a finite number.")
    return decimal(x)
