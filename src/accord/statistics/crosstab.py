"""A table of how many people there are in each combination of keys: a count by several columns, by its name.

It is `accord.count(by=[…], keys={…})`, and the same question to a ledger. A release of it has margins as well
(release/margins.py): sums of the cells, which agree with them and cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from accord.errors import QueryError
from accord.statistics.count import count
from accord.statistics.groups import Rows
from accord.statistics.keys import RestLabels
from accord.statistics.query import Query
from accord.statistics.statistic import Statistic
from accord.statistics.target_sums import Counted


def crosstab(
    *columns: str,
    keys: Mapping[str, Iterable[Any]] | None = None,
    where: str | None = None,
    membership: str = "private",
    at_most: int = 1,
    suppress: bool | None = None,
    rest: RestLabels = None,
    gap: float | None = None,
    about: str | None = None,
) -> Query[Rows]:
    """How many people there are in each combination of the keys of two or more columns.

    Args:
        columns: their names; printed, the first goes down and the second across.
        keys: {column: its keys}, declared. Left out: as the table declares them (`accord.catalog`).
        where, membership, at_most, suppress, rest, gap, about: of whom: see `accord.count`. In how many cells
            one person may be.

    The same as `accord.count(by=[…], keys={…})`. `release.margin("ward")` has the sums of its cells.

    >>> crosstab("ward", "sex", keys={"ward": ["A", "B"], "sex": ["f", "m"]}).label
    'count of people by ward, sex'
    """
    if len(columns) < 2:
        raise QueryError(
            f"a crosstab is of two columns or more, not of {len(columns)}. "
            "Name them all; for one, ask accord.count with by= and keys=."
        )
    return count(
        where,
        by=columns,
        keys=keys,
        membership=membership,
        at_most=at_most,
        suppress=suppress,
        rest=rest,
        gap=gap,
        about=about,
    )


CROSSTAB = Statistic("crosstab", crosstab, Counted, ("columns",), is_alias=True, is_by_columns=True)
