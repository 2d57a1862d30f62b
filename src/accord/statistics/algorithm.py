"""Somebody's own private algorithm, as a question. Made by `accord.sample`.

It has no sensitivity here: its author says that it is ε-private under add-remove, which accord cannot check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

from accord.relation import Relation
from accord.statistics.query import Answer, Interval, Query
from accord.statistics.target import Target


@dataclass(frozen=True)
class Algorithm(Query):
    """A function of rows and ε that its author says is private."""

    statistic = "algorithm"

    name: str
    column_names: tuple[str, ...]
    """The columns that it gets to see."""
    row_format: str
    """What the algorithm is given: "arrow", "pandas" or "numpy"."""
    function: Callable[[Any, float], Any] = field(repr=False, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.column_names

    @property
    def label(self) -> str:
        return f"algorithm {self.name}"

    @property
    def rows_come_to(self) -> str:
        return "and only people with one row are read"

    def under(self, relation: Relation, about_members: bool = False) -> AlgorithmTarget | None:
        return None if about_members else AlgorithmTarget(self, relation)

    def describe(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "name": self.name, "columns": list(self.columns)}

    def assumptions(self) -> list[str]:
        return [
            f"{self.name} is ε-differentially private under add-remove, for the ε that it is given: "
            "accord cannot check that",
            "it tells nothing of the rows in any other way than by what it returns",
        ]


@dataclass(frozen=True)
class AlgorithmTarget(Target):
    """Whatever the algorithm returns; its error is not predicted."""

    query: Algorithm

    @property
    def assumes_presence(self) -> bool:
        return False

    @property
    def variance(self) -> float:
        return 0.0

    @property
    def noise_variance(self) -> float:
        return 0.0

    @property
    def midpoint_error(self) -> float:
        return inf

    def factor(self, people: int) -> float:
        return 1.0

    def middle(self, people: int) -> Answer:
        raise TypeError("an algorithm has no middle")

    def possible(self, people: int) -> Interval:
        return -inf, inf

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        raise TypeError("an algorithm's answer is its own")
