"""Several questions that are planned together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accord.errors import QueryError
from accord.statistics.query import Query


@dataclass(frozen=True)
class Workload:
    """Questions with the weight of each one's error. Made by `accord.workload`."""

    queries: tuple[Query, ...]
    weights: tuple[float, ...]

    @property
    def label(self) -> str:
        return f"{len(self.queries)} questions"


def workload(queries: Iterable[Query], weights: Iterable[float] | None = None) -> Workload:
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
    asked = tuple(queries)
    for query in asked:
        if not isinstance(query, Query):
            raise QueryError(
                f"a workload is made of queries, not of {type(query).__name__}. Make them with accord.mean "
                "or its siblings."
            )
    if not asked:
        raise QueryError("a workload needs at least one query.")
    counted = (1.0,) * len(asked) if weights is None else tuple(weights)
    if len(counted) != len(asked):
        raise QueryError(f"there are {len(counted)} weights for {len(asked)} queries. Give one for each.")
    for weight in counted:
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 1e-9 <= weight <= 1e9:
            raise QueryError(
                f"weight {weight!r} is not a number above 0 (between 1e-9 and 1e9). Leave out a query that "
                "does not count."
            )
    return Workload(asked, tuple(float(weight) for weight in counted))
