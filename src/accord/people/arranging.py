"""How what was read becomes a Summary for each part of a question, by the question's encoding alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from accord.budget import IntArray
from accord.errors import TABLE_CHANGED, SourceError
from accord.people.entries import Entries, of_each
from accord.people.summary import Summary
from accord.spec import Spec
from accord.statistics.encoding import Codes, Encoding, Grid, OneOf


def is_counted(encoding: Encoding, by_cell: bool) -> bool:
    """Whether it takes the number of people at each cell, and not sums."""
    if isinstance(encoding, Codes):
        return False
    return by_cell or isinstance(encoding, OneOf) or (isinstance(encoding, Grid) and encoding.is_counted)


def cells_of(encoding: Encoding) -> int:
    """At how many cells people can be."""
    if isinstance(encoding, OneOf):
        return encoding.cells
    return (encoding.cells if isinstance(encoding, Grid) else 1) + 1


def arranged(
    encoding: Encoding, entries: Entries, spec: Spec, by_cell: bool, parts: int, others_are_dropped: bool
) -> list[Summary]:
    """The Summary of each part, from what was read of people of this Spec.

    `others_are_dropped`: how many are there is private, and so is whether somebody is there who should not
        be.
    """
    micro, people, cells, part, amounts, _ = entries
    if others_are_dropped:
        read = np.isin(micro, spec.micro) & (cells >= 0)
    elif Spec(micro, people) != spec:
        raise SourceError(TABLE_CHANGED)
    else:
        read = (micro > 0) & (cells >= 0)
    each = of_each(np.where(read, part, -1), parts)
    if is_counted(encoding, by_cell):
        return [_at_cells(spec, cells_of(encoding), micro[k], cells[k], people[k]) for k in each]
    if not isinstance(encoding, Codes):  # how many there are, the sum of their cells, and of the squares
        powers = encoding.powers if isinstance(encoding, Grid) else 1
        sums = amounts.reshape(people.size, powers)  # also of nobody
        amounts = np.concatenate((people.astype(object).reshape(-1, 1), sums), axis=1)
    return [_of_rows(spec, micro[k], amounts[k]) for k in each]


def _at_cells(spec: Spec, cells: int, micro: IntArray, cell: IntArray, people: IntArray) -> Summary:
    level = np.searchsorted(spec.micro, micro)
    order = np.lexsort(
        (cell, level)
    )  # an engine gives its groups in any order, and each may have its own noise
    return Summary(spec.people, cells, level[order], cell[order], people[order])


def _of_rows(spec: Spec, micro: IntArray, sums: Any) -> Summary:
    """From a row of sums for each entry."""
    level, columns = np.searchsorted(spec.micro, micro), sums.shape[1]
    return Summary(
        spec.people,
        columns,
        np.tile(level, columns),
        np.repeat(np.arange(columns), level.size),
        sums.T.reshape(-1),
    )
