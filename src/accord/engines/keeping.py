"""Rows that are told apart by more than their level: who has what remaining, and who is kept at random.

This takes arrays lent to the engine (`Engine.lend`), so that only engines that lend are ever asked it:
DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.engines.dialect import Dialect
from accord.engines.engine import Kind
from accord.engines.names import (
    LENT_CHANCE,
    LENT_LEVEL,
    LENT_PERSON,
    LENT_REMAINING,
    LENT_WORD,
    PERSON,
    REMAINING,
)
from accord.engines.shapes import is_level


def with_remaining(source: str, person: str, lent: str) -> str:
    """The source with what a lent table says that everyone has remaining, matched by person."""
    return (
        f"(SELECT source.*, lent.{LENT_REMAINING} AS {REMAINING} "
        f"FROM (SELECT *, {person} AS {PERSON} FROM {source}) AS source "
        f"JOIN {lent} AS lent ON lent.{LENT_PERSON} = source.{PERSON})"
    )


def kept(source: str, level: str, words: str, chances: str) -> str:
    """The rows of a source whose random word is below the chance of their level, from a table of chances.

    There is one word for each row, in whatever order.
    """
    matched = (
        f"SELECT source.*, chances.{LENT_CHANCE} AS k_chance "
        f"FROM (SELECT *, {level} AS k_level FROM {source}) AS source "
        f"JOIN {chances} AS chances ON chances.{LENT_LEVEL} IS NOT DISTINCT FROM source.k_level"
    )
    return f"(SELECT * FROM ({matched}) POSITIONAL JOIN {words} AS words WHERE {LENT_WORD} < k_chance)"


def kept_by_case(
    dialect: Dialect, source: str, level: str, words: str, chances: Sequence[tuple[Any, int]]
) -> str:
    """`kept` for few levels, three times as fast; `chances` of each raw level."""
    tests = " ".join(f"WHEN {is_level(dialect, level, raw)} THEN {chance}" for raw, chance in chances)
    own = f"CAST(CASE {tests} ELSE 0 END AS UBIGINT)" if chances else "0"
    joined = f"{source} AS source POSITIONAL JOIN {words} AS words"
    return f"(SELECT source.* FROM {joined} WHERE {LENT_WORD} < {own})"


def single_row_people(dialect: Dialect, source: str, user: str, kind: Kind) -> str:
    """The source without people who have several rows, or no name.

    Nobody else's rows decide about anyone's.
    """
    alone = f"COUNT(*) OVER (PARTITION BY {dialect.identity(user, kind)}) = 1"
    return f"(SELECT * FROM {source} WHERE {dialect.column(user)} IS NOT NULL QUALIFY {alone})"
