"""Targets that are points of a grid, chosen by how many people lie below them: quantiles, min and max."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accord.budget import IntArray
from accord.statistics.target import Target


@dataclass(frozen=True)
class Ranks(Target):
    """A question about ranks, answered by points of a grid. Errors are in percentile points."""

    @property
    @abstractmethod
    def points(self) -> int:
        """How many points can be answered."""

    @property
    @abstractmethod
    def times(self) -> IntArray | None:
        """How many times each of them counts, before the data is seen; None: once."""

    @property
    def total_times(self) -> int:
        """T: how many points there are, each as many times as it counts.

        It bounds how far off a choice may be: P(score ≤ −a) ≤ T·exp(−a/scale) (rounding.py).
        """
        return self.points if self.times is None else int(self.times.sum())

    @property
    @abstractmethod
    def smooth_cost(self) -> float:
        """How many times as far off choices may be on average because of `times`, where values are smooth."""

    @property
    def tells_size(self) -> bool:
        return self.about_members or not self.relation.people_are_public

    @property
    def in_values(self) -> bool:
        """Whether an interval in values is asked for (mechanisms/brackets.py)."""
        return False

    @property
    def draws(self) -> int:
        """How many points are drawn for each quantile: itself, and one on either side of it."""
        return 3 if self.in_values else 1

    def factor(self, people: int) -> float:
        return 100


@dataclass(frozen=True)
class Quantiles(Ranks):
    """One or several quantiles."""

    @property
    @abstractmethod
    def ps(self) -> tuple[Fraction, ...]: ...

    @property
    @abstractmethod
    def listed(self) -> bool:
        """Whether the answer is a list, be it of one."""

    @abstractmethod
    def about_draws(self, together: bool) -> list[str]:
        """How the charge is spent, in sentences; `together`: all quantiles are drawn at once."""

    @abstractmethod
    def interval_in_values(self, between: Sequence[tuple[Fraction | None, Fraction | None]]) -> Any:
        """From the points that each quantile lies between; None: the end of the bounds."""


@dataclass(frozen=True)
class Extremes(Ranks):
    """The smallest or the largest value."""

    @property
    @abstractmethod
    def is_largest(self) -> bool: ...
