"""Questions under add-remove: that someone is in the table is the secret.

Who *could* be in it, with which level, is a public roster; everything that a plan or a denominator uses is the roster's. For sums, counts and histograms,
somebody who is not there counts as 0. A mean is the ratio of two such sums, of q and of span − q for the integer q of a value: one person adds
q and span − q, span in all, so that both together move by one span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from accord.statistics.algorithm import Algorithm
from accord.statistics.counts import Count, Histogram
from accord.statistics.means import Mean, Rows, Sum
from accord.statistics.order import Max, Min, Quantile
from accord.statistics.record import Answer, Interval, Query

_ROSTER = "who is in the table is private; who could be, and their levels, is the public roster"


def roster_assumption(query: Query) -> str:
    """What is taken for granted under add-remove. A count's noise is the same whoever is there, and an algorithm's error is not predicted."""
    if isinstance(query, Count | Histogram | Algorithm):
        return _ROSTER
    return f"{_ROSTER}; errors are predicted as if everyone on it were there"


def present(query: Query) -> Query:
    """The same question, for neighbors add-remove."""
    return under(query, "add-remove")


def under(query: Query, neighbors: str) -> Query:
    """The same question as it must be asked for these neighbors, whatever it was asked for before."""
    kind = next(
        (kind for kind in _KINDS if isinstance(query, kind.__mro__[1])), None
    )  # the first that fits: Rows before Sum
    if kind is None:
        return query
    wanted = kind if neighbors == "add-remove" else kind.__mro__[1]
    return query if type(query) is wanted else wanted(**{f.name: getattr(query, f.name) for f in fields(query)})


@dataclass(frozen=True)
class PresentSum(Sum):
    """Of the people who are there."""

    sums = 2

    @property
    def _ends(self) -> tuple[Fraction, Fraction]:
        """Of what one person on the roster adds."""
        return min(Fraction(0), self.low), max(Fraction(0), self.high)

    @property
    def variance(self) -> float:
        low, high = self._ends
        return float(high - low) ** 2 / 4

    @property
    def thinned(self) -> float:
        return float(max(self.low**2, self.high**2))

    @property
    def blur(self) -> float:
        return 2 * float(self.low**2 + self.high**2)

    @property
    def idle(self) -> float:
        return self.variance

    def middle(self, people: int) -> Answer:
        low, high = self._ends
        return float(people * (low + high) / 2)

    def possible(self, people: int) -> Interval:
        low, high = self._ends
        return float(people * low), float(people * high)

    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        above, below = found  # Σq and Σ(span − q), as means over the roster
        return float(people * (above * self.high + below * self.low) / self.span)

    def assumptions(self) -> list[str]:
        bounds, _, *others = super().assumptions()  # a declared std is about those who are there
        return [bounds, *others]


@dataclass(frozen=True)
class PresentRows(Rows, PresentSum):
    """Of the people who are there."""

    def assumptions(self) -> list[str]:
        return Rows.assumptions(self)


@dataclass(frozen=True)
class PresentMean(Mean):
    """Of the people who are there."""

    sums = 2
    sized = True

    @property
    def thinned(self) -> float:
        return self.variance

    def middle(self, people: int) -> Answer:
        return float((self.low + self.high) / 2)

    def possible(self, people: int) -> Interval:
        return float(self.low), float(self.high)

    def finish(self, found: Sequence[Fraction], people: int) -> Answer:
        above, both, _ = _over_one(found)
        if both <= 0:  # hardly anyone is there
            return self.middle(people)
        inside = Fraction(min(both, max(0, above)), both)
        return float(self.low + (self.high - self.low) * inside)

    def stretched(self, found: Sequence[Fraction]) -> float | None:
        _, both, denominator = _over_one(found)
        there = both / (denominator * self.span)
        return 1 / there if there > 0.01 else None


def _over_one(found: Sequence[Fraction]) -> tuple[int, int, int]:
    """The first of two fractions and their sum, over one denominator: whole numbers, because there may be thousands of groups."""
    first, second = found
    above = first.numerator * second.denominator
    return above, above + second.numerator * first.denominator, first.denominator * second.denominator


@dataclass(frozen=True)
class PresentCount(Count):
    known = False

    @property
    def thinned(self) -> float:
        return 1.0

    def assumptions(self) -> list[str]:
        return []


@dataclass(frozen=True)
class PresentHistogram(Histogram):
    complement = False
    reach = 1


@dataclass(frozen=True)
class PresentQuantile(Quantile):
    """Of the people who are there."""

    neighbors = "add-remove"
    sized = True


@dataclass(frozen=True)
class PresentMin(Min):
    """Of the people who are there."""

    neighbors = "add-remove"
    sized = True


@dataclass(frozen=True)
class PresentMax(Max):
    """Of the people who are there."""

    neighbors = "add-remove"
    sized = True


_KINDS: tuple[type[Query], ...] = (
    PresentRows,
    PresentSum,
    PresentMean,
    PresentCount,
    PresentHistogram,
    PresentQuantile,
    PresentMin,
    PresentMax,
)
