"""Queries: what is asked, with everything about it that is public. Frozen.

What a plan needs of any of them, to predict errors:

    outputs   how many numbers are released
    variance  σ² of one person, summed over the outputs, in the answer's units: from `std`, else the worst case
    blur      variance of the noise at charge 1, summed over the outputs, in the answer's units
    peak      the largest variance that one output can have
    size      what an error on the scale of `variance` is multiplied by to become one of the answer, for n people
    idle      mean squared error of `middle` at worst, summed over the outputs

An additive query maps each person to integers from 0 to `span`, one for each output, and asks about their means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from accord.errors import QueryError

if TYPE_CHECKING:
    from accord.statistics.encoding import Encoding
    from accord.statistics.regression import Coefficients

Point: TypeAlias = float | date
Answer: TypeAlias = "Point | list[Point] | dict[Any, float] | Coefficients | list[dict[str, Any]]"
Ends: TypeAlias = tuple[float, float]
Interval: TypeAlias = Ends | list[Ends] | dict[Any, Ends]


@dataclass(frozen=True)
class Query(ABC):
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

    @property
    def rows_come_to(self) -> str:
        """What becomes of a person's rows, in words."""
        return "and counts with the mean of their rows"

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The question in plain words and numbers, for receipts."""

    @abstractmethod
    def assumptions(self) -> list[str]:
        """What the user declared as public knowledge: nothing else can tell where it came from."""

    @property
    def outputs(self) -> int:
        return 1

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @property
    @abstractmethod
    def blur(self) -> float: ...

    @property
    def peak(self) -> float:
        return self.variance

    @abstractmethod
    def size(self, people: int) -> float: ...

    @property
    @abstractmethod
    def idle(self) -> float: ...

    @property
    def known(self) -> bool:
        """Whether the answer is the public number of people."""
        return False

    @property
    def sized(self) -> bool:
        """Whether what is released tells, roughly, how many are there."""
        return False

    def stretched(self, found: Sequence[Fraction]) -> float | None:
        """By what an error is to be multiplied once it is known, roughly, how many are there; None: they are too few to tell anything."""
        return 1.0

    @property
    def rounding(self) -> float:
        """How far the grid can move the answer, on the scale of `variance`."""
        return 0.0

    @abstractmethod
    def middle(self, people: int) -> Answer:
        """The answer that needs no data: the middle of what is possible."""

    @abstractmethod
    def possible(self, people: int) -> Interval:
        """Where the answer can lie at all, in `unit`."""

    @abstractmethod
    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        """From what a mechanism found (means of integers, or points of the grid) to the answer. Exact until the last step."""


@dataclass(frozen=True)
class Additive(Query):
    """A mean of integers, in disguise."""

    @property
    @abstractmethod
    def span(self) -> int:
        """The largest integer that one person adds to one output."""

    @property
    def reach(self) -> int:
        """By how many spans one person can change all outputs together: 1, or 2 for someone who moves between cells of a histogram."""
        return 1

    @property
    def sums(self) -> int:
        """How many noisy sums there are: one for each output, but two for a mean of whoever is there."""
        return self.outputs

    @property
    def thinned(self) -> float:
        """The largest mean square of what one person adds, counted from the middle: what leaving people out at random makes of the error."""
        return self.idle

    def integers(self, cells: Any) -> Any:
        """What one person adds at each of these cells."""
        return cells

    @property
    def origin(self) -> Fraction:
        """What the integer 0 stands for, in units of the integer 1: sums and counts are counted from zero."""
        return Fraction(0)

    @property
    def complement(self) -> bool:
        """Whether two outputs always add up to everyone, so that one noise serves both."""
        return False

    def size(self, people: int) -> int:
        return people

    def middle(self, people: int) -> Answer:
        return self.finish([Fraction(self.span, 2)] * self.outputs, people)

    def possible(self, people: int) -> Interval:
        low, high = (self.finish([Fraction(q)] * self.outputs, people) for q in (0, self.span))
        return between(low, high)


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


def between(low: Answer, high: Answer) -> Interval:
    if isinstance(low, dict) and isinstance(high, dict):
        return {cell: (low[cell], high[cell]) for cell in low}
    assert isinstance(low, float) and isinstance(high, float)
    return low, high


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
