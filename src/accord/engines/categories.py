"""In which declared categories a person is whose rows are of several: in the most frequent of them.

    how often     by their own rows; of those that a question is about, where it is about some
    equally often by a public hash of person and category: the lower of the first 63 bits of
                  SHA-256("identity:category"). It is pseudo-random, so that no category is favoured, and
                  whoever knows an id can reckon it: it hides nothing, and need not.
    none          a person without any declared category is in none

So what somebody is in is a function of their own rows: not of the order in which categories are declared, nor
of other people. Every engine gives the same for ids that are text or whole numbers; Spark writes some
fractions otherwise, so that a tie may go otherwise there for people whose ids are such.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accord.engines import keys
from accord.engines.dialect import Dialect
from accord.engines.engine import Kind
from accord.engines.sql_names import OFTEN, ROWS, SEVERAL, USER


@dataclass(frozen=True)
class Categories:
    """Declared categories, one of which a row may be of."""

    place: str
    """The column of its place among them; NULL: of none."""
    values: tuple[Any, ...]
    rank: str
    """What the column is to be called that says which of a person's categories it is: 1 for the first."""


def ranked(
    dialect: Dialect,
    counted: str,
    user: str,
    kind: Kind,
    partition: Sequence[str],
    ranks: Sequence[Categories],
    levels: str = "",
) -> str:
    """Counted rows with the rank of their categories, each among those `within` the same columns.

    Args:
        counted: rows of people, `ROWS` of which are alike.
        user, kind: the column that says who a row is of.
        levels: what else is to be reckoned of all rows of a person, as SQL.
    """
    same = ", ".join(partition)
    windows = [f", {levels}"] if levels else []
    for k, one in enumerate(ranks):
        frequency = ROWS if len(ranks) == 1 else f"SUM({ROWS}) OVER (PARTITION BY {same}, {one.place})"
        several = f"MIN({one.place}) OVER (PARTITION BY {same}) < MAX({one.place}) OVER (PARTITION BY {same})"
        windows.append(f", {frequency} AS {OFTEN.format(k)}, {several} AS {SEVERAL.format(k)}")
    source = f"(SELECT counted.*{''.join(windows)} FROM {counted} AS counted)"
    identity, selected = dialect.name(USER, user, kind), ""
    for k, one in enumerate(ranks):
        source, text = keys.with_key_text(dialect, source, one.place, one.values, k)
        tie = f"CASE WHEN {SEVERAL.format(k)} THEN {dialect.digest(f'''{identity} || ':' || {text}''')} END"
        order = f"CASE WHEN {one.place} IS NULL THEN 1 ELSE 0 END, {OFTEN.format(k)} DESC, {tie}, {one.place}"
        selected += f", ROW_NUMBER() OVER (PARTITION BY {same} ORDER BY {order}) AS {one.rank}"
    return f"(SELECT ranked.*{selected} FROM {source} AS ranked)"
