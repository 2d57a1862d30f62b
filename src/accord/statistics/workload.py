"""Several questions that are planned together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, cast

from accord.errors import QueryError
from accord.statistics.algorithm import Algorithm
from accord.statistics.declared import Undescribed
from accord.statistics.query import A, Query


@dataclass(frozen=True)
class Workload(Generic[A]):
    """Questions with the weight of each one's error. Made by `accord.workload`."""

    queries: tuple[Query, ...]
    weights: tuple[float, ...]
    report_missing: Fraction | None = None
    """The part of the charge that the last question has, which is how many people have no value for the first
    (missing.py). None: all are equals."""

    @property
    def label(self) -> str:
        return f"{len(self.queries)} questions"

    @property
    def named(self) -> tuple[Query, ...]:
        """The questions that a mechanism named by the user is to answer."""
        return self.queries if self.report_missing is None else self.queries[:1]


def workload(queries: Iterable[Query], weights: Iterable[float] | None = None) -> Workload[list[Any]]:
    """Several questions, to be planned together and answered all or none.

    Errors have different units, so each is counted as a fraction of what it would be without any data; a plan
    minimises the weighted sum of their squares.

    Args:
        queries: made with `accord.mean` and its siblings.
        weights: how much each one's squared error counts; all the same if left out.

    >>> import accord
    >>> workload([accord.mean("income", (0, 200_000)), accord.median("age", (0, 120))], weights=[2, 1]).label
    '2 questions'
    """
    if isinstance(queries, Query):
        raise QueryError("a workload is a list of queries. Give accord.workload([query, …]).")
    questions = tuple(queries)
    if any(isinstance(query, Undescribed) for query in questions):
        left: Any = Undescribed(
            workload, {"queries": questions, "weights": None if weights is None else list(weights)}
        )
        return cast("Workload[list[Any]]", left)
    for query in questions:
        if not isinstance(query, Query):
            raise QueryError(
                f"a workload is made of queries, not of {type(query).__name__}. "
                "Make them with accord.mean or its siblings."
            )
        if isinstance(query, Algorithm):
            raise QueryError(
                f"a workload shares charges by predicted errors, and {query.label} is an algorithm of your "
                "own, whose error nobody predicts. Release it by itself: accord.sample(algorithm, people)."
            )
    if not questions:
        raise QueryError("a workload needs at least one query: accord.workload([accord.mean(…), …]).")
    each = (1.0,) * len(questions) if weights is None else tuple(weights)
    if len(each) != len(questions):
        raise QueryError(f"there are {len(each)} weights for {len(questions)} queries. Give one for each.")
    for weight in each:
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 1e-9 <= weight <= 1e9:
            raise QueryError(
                f"weight {weight!r} is not a number above 0 (between 1e-9 and 1e9). "
                "Leave out a query that does not count."
            )
    return Workload(questions, tuple(float(weight) for weight in each))
