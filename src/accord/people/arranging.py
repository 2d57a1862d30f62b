"""How what was read becomes the Summary that a query's mechanisms expect: all that depends on its class.

An engine knows a query by its encoding. Here, and nowhere else among the people, by what it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accord.budget import IntArray
from accord.errors import TABLE_CHANGED, SourceError
from accord.people.entries import Entries, of_each
from accord.people.summary import Summary
from accord.spec import Spec
from accord.statistics import Additive, Histogram, MeanWhere, OnGrid, Order, Query, SumWhere


def needs_cells(query: Query) -> bool:
    """Whether it always needs to know how many people have each integer."""
    return isinstance(query, Histogram | Order)


def points(query: Query, by_cell: bool) -> int:
    """Of how many outputs or points a Summary is."""
    if isinstance(query, Order):
        return query.points
    if by_cell and isinstance(query, Additive) and not isinstance(query, Histogram):
        return (query.cells if isinstance(query, OnGrid) else query.span) + 1
    return query.outputs


def arranged(
    query: Query, entries: Entries, spec: Spec, by_cell: bool, parts: int, others_are_dropped: bool
) -> list[Summary]:
    """The Summary of each part, from what was read of people of this Spec.

    `others_are_dropped`: how many are there is private, and so is whether somebody is there who should not
    be.
    """
    micro, people, cells, part, amounts, _ = entries
    outputs = points(query, by_cell)
    if isinstance(query, SumWhere):  # everyone counts: who is not a member adds nothing
        if by_cell:
            cells, outputs = np.where(part < 0, query.nowhere, cells), query.nowhere + 1
        else:
            counted = people.astype(object)
            amounts = np.where(part < 0, counted * query.outside, query.inside(amounts, counted))
        part = np.zeros_like(part)
    if others_are_dropped:
        read = np.isin(micro, spec.micro) & (cells >= 0)
    elif Spec(micro, people) != spec:
        raise SourceError(TABLE_CHANGED)
    else:
        read = (micro > 0) & (cells >= 0)
    each = of_each(np.where(read, part, -1), parts)
    if amounts.ndim == 2:
        return [_of_rows(spec, micro[k], amounts[k]) for k in each]
    return [_summed(query, spec, outputs, by_cell, micro[k], people[k], cells[k], amounts[k]) for k in each]


def _summed(
    query: Query,
    spec: Spec,
    outputs: int,
    by_cell: bool,
    micro: IntArray,
    people: IntArray,
    cells: IntArray,
    amounts: Any,
) -> Summary:
    level = np.searchsorted(spec.micro, micro)
    if isinstance(query, Additive) and query.sums > query.outputs and not by_cell:
        everyone = query.span * people.astype(object)
        both = (
            (2 * amounts - everyone, everyone)
            if isinstance(query, MeanWhere)
            else (amounts, everyone - amounts)
        )
        level, outputs = np.concatenate((level, level)), 2
        cells, amounts = np.concatenate((cells, cells + 1)), np.concatenate(both)
    # an engine gives its groups in any order, and each may have a noise of its own
    order = np.lexsort((cells, level))
    return Summary(spec.people, outputs, level[order], cells[order], amounts[order])


def _of_rows(spec: Spec, micro: IntArray, sums: Any) -> Summary:
    """From a row of sums for each entry."""
    level, outputs = np.searchsorted(spec.micro, micro), sums.shape[1]
    return Summary(
        spec.people,
        outputs,
        np.tile(level, outputs),
        np.repeat(np.arange(outputs), level.size),
        sums.T.reshape(-1),
    )
