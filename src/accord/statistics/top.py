"""The k largest groups of a column, with their sizes.

At once: it is a count by key of which the k largest noisy sizes are shown (release/suppressing.py):
post-processing of what was released about all groups. So neighbors, charges and noise are those of a count by
key (groups.py): a person is in one group, or in up to m of them, and all sizes together cost what one does,
however many keys there are.

Chosen first: where people may be in many groups against which few are shown, the charge is in two parts, one
for choosing groups and the other for counting these (mechanisms/choosing.py). The plan takes what is better
in both, which groups and how large (planning/largest.py): that is never the second where people are in one
group. docs/proofs/top.md has the proofs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from accord.errors import QueryError
from accord.statistics.count import Count
from accord.statistics.groups import Grouped, Rows, asked_by_group, part_of
from accord.statistics.keys import MOST_COMBINATIONS, Keys
from accord.statistics.query import Query, column_name
from accord.statistics.statistic import Option, Statistic
from accord.statistics.target_sums import Counted


def top(
    column: str,
    k: int,
    *,
    keys: Keys = None,
    where: str | None = None,
    at_most: int = 1,
    suppress: bool | None = None,
    gap: float | None = None,
    about: str | None = None,
) -> Query[Rows]:
    """The k largest groups of a column, the largest first, and how many people each has.

    Args:
        column: the column of the groups.
        k: how many are shown; fewer, where others may be empty.
        keys: of which groups, declared. Left out: as the table declares them (`accord.catalog`).
        where, at_most, suppress, gap, about: of whom: see `accord.count`.

    Intervals hold for all groups together, and so for those that are shown, whichever they are.

    Raises:
        QueryError: k is not a whole number from 1 to the number of keys, and the like.

    >>> top("ward", k=2, keys=["A", "B", "C"]).label
    'count of people by ward, the 2 largest'
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise QueryError(f"k={k!r} is not a number of groups to show. Give a whole number from 1 on.")
    return _largest(
        by=column_name(column),
        k=k,
        keys=keys,
        where=where,
        at_most=at_most,
        suppress=suppress,
        gap=gap,
        about=about,
    )


@asked_by_group
def _largest(
    by: str,
    k: int,
    keys: Keys,
    where: str | None,
    at_most: int,
    suppress: bool | None,
    gap: float | None,
    about: str | None,
) -> Query[Any]:
    query = part_of(Count(None, None), where, by, keys, "private", at_most, suppress, None, gap, about)
    assert isinstance(query, Grouped)
    if k > query.groups:
        raise QueryError(
            f"k={k} is more than the {query.groups:,} keys. Give at most as many, or ask "
            f"accord.count(by={by!r}, keys=…) for all of them."
        )
    if query.groups > MOST_COMBINATIONS:
        raise QueryError(
            f"keys= has {query.groups:,} groups, and the largest of at most {MOST_COMBINATIONS:,} are "
            "looked for at once. Declare fewer keys."
        )
    return replace(query, part=replace(query.part, largest=k))


TOP = Statistic(
    "top",
    top,
    Counted,
    ("column", "k"),
    (Option("k", int, "K", "How many groups top shows: the largest.", "top needs --k, such as --k 10."),),
    is_alias=True,
    is_by_columns=True,
)
