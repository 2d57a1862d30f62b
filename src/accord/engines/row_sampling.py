"""Rows that are told apart by more than their level: who has what remaining, and who is kept at random.

This takes arrays lent to the engine (`Engine.lend`), and is DuckDB's SQL as it stands (POSITIONAL JOIN,
QUALIFY, UBIGINT): only an engine that lends is ever asked it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.engines import per_person
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns
from accord.engines.shapes import is_level
from accord.engines.sql_names import (
    KEPT_CHANCE,
    KEPT_LEVEL,
    LENT_CHANCE,
    LENT_LEVEL,
    LENT_PERSON,
    LENT_REMAINING,
    LENT_WORD,
    PERSON,
    REMAINING,
)


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
        f"SELECT source.*, chances.{LENT_CHANCE} AS {KEPT_CHANCE} "
        f"FROM (SELECT *, {level} AS {KEPT_LEVEL} FROM {source}) AS source "
        f"JOIN {chances} AS chances ON chances.{LENT_LEVEL} IS NOT DISTINCT FROM source.{KEPT_LEVEL}"
    )
    return f"(SELECT * FROM ({matched}) POSITIONAL JOIN {words} AS words WHERE {LENT_WORD} < {KEPT_CHANCE})"


def kept_by_case(
    dialect: Dialect, source: str, level: str, words: str, chances: Sequence[tuple[Any, int]]
) -> str:
    """`kept` for few levels, three times as fast; `chances` of each raw level."""
    tests = " ".join(f"WHEN {is_level(dialect, level, raw)} THEN {chance}" for raw, chance in chances)
    chance = f"CAST(CASE {tests} ELSE 0 END AS UBIGINT)" if chances else "0"
    joined = f"{source} AS source POSITIONAL JOIN {words} AS words"
    return f"(SELECT source.* FROM {joined} WHERE {LENT_WORD} < {chance})"


def single_row_people(dialect: Dialect, source: str, user: str, columns: Columns) -> str:
    """The source without people who have several rows, or no name.

    Nobody else's rows decide about anyone's.
    """
    is_single = f"COUNT(*) OVER (PARTITION BY {dialect.identity(user, columns[user])}) = 1"
    has_user = per_person.has_user(dialect, user, columns)
    return f"(SELECT * FROM {source} WHERE {has_user} QUALIFY {is_single})"
