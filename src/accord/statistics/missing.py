"""How many people have no value that a question can read: `report_missing=`.

It is a second question, about the same people and the same column read in the same way, with a stated part of
everyone's charge: how many are in each of two cells, with a value and without. Everyone is in one of them, so
that under replace one count tells the other, and one person moves it by 1 (histogram.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accord.errors import QueryError
from accord.statistics.encoding import Grid, OneOf
from accord.statistics.groups import Grouped
from accord.statistics.histogram import Histogram
from accord.statistics.query import Query, exact, number_text
from accord.statistics.workload import Workload

READABLE, MISSING = "has a value", "no readable value"


@dataclass(frozen=True)
class Readable(Histogram):
    """How many people have a value that a question can read, and how many have none."""

    @property
    def label(self) -> str:
        return f"people with and without a readable {self.column}"


def reporting_missing(query: Any, part: Any) -> Workload:
    """A question, and how many people have no value for it, which has this part of the charge.

    Raises:
        QueryError: it is not about one column of values, or the part is none.
    """
    fraction = exact(part, "report_missing")
    if not 0 < fraction < 1:
        raise QueryError(
            f"report_missing={number_text(fraction)} is not a part of the charge. "
            "Give a number between 0 and 1: 0.05 spends a twentieth on it."
        )
    if isinstance(query, Grouped) and query.part.public:
        raise QueryError(
            "report_missing= is about everyone, or about private groups: public groups have charges of their "
            "own. Leave it out, or ask about one of them with where=."
        )
    inner, part_of_people = (query.query, query.part) if isinstance(query, Grouped) else (query, None)
    encoding = inner.encoding if isinstance(inner, Query) else None
    if isinstance(encoding, Grid) and encoding.per_person != "rows":
        edges = (encoding.low, encoding.high)
    elif isinstance(encoding, OneOf) and encoding.edges:
        edges = (encoding.edges[0], encoding.edges[-1])
    else:
        raise QueryError(
            "report_missing= is about the values of one column between bounds or edges, "
            f"and {getattr(inner, 'label', 'a ' + type(inner).__name__)!r} has none. Leave it out."
        )
    readable: Query = Readable(encoding.column, edges, (), 1, (READABLE, MISSING), kind=encoding.kind)
    if part_of_people is not None:
        readable = Grouped(readable, part_of_people)
    return Workload((query, readable), (1.0, 1.0), fraction)
