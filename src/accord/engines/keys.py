"""Which part of a question a row is of: by a condition, by one of several keys, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from accord.engines import conditions
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.engines.names import ALL, ENTRY, KEY, PLACE
from accord.statistics.groups import Part

FEW_KEYS = 64
"""So many keys are compared one by one; more are found by a join."""
Places: TypeAlias = Mapping[str, int] | Mapping[float, int]


def placed(dialect: Dialect, source: str, part: Part, columns: Columns) -> tuple[str, str]:
    """A source, and which part a row of it is of, as SQL.

    A part is the place of its key, 0 where there is only a condition; NULL: none. Many keys are joined to the
    source, so that no row is compared with all of them.
    """
    place = ALL
    if part.by is not None:
        kind = columns[part.by]
        joined = compared(dialect, part.by, kind, part.keys) if len(part.keys) > FEW_KEYS else None
        if joined is None:
            place = _place(dialect, part.by, kind, part.keys)
        else:
            x, places = joined
            source = (
                f"(SELECT source.*, listed.{PLACE} FROM {source} AS source "
                f"LEFT JOIN {_listed(dialect, places)} AS listed ON listed.{KEY} = {x})"
            )
            place = PLACE
    if part.condition is None:
        return source, place
    return source, f"CASE WHEN {conditions.render(dialect, part.condition, columns)} THEN {place} END"


def compared(dialect: Dialect, column: str, kind: Kind, keys: tuple[Any, ...]) -> tuple[str, Places] | None:
    """What is compared with the keys, and the place of each: the first, if two are one number.

    None: they are neither text alone nor numbers alone.
    """
    last_first = tuple(enumerate(keys))[::-1]
    if kind in ("text", "untyped") and all(isinstance(key, str) for key in keys):
        return dialect.letters(column), {key: place for place, key in last_first}
    if kind in ("number", "untyped") and all(
        isinstance(key, int | float) and not isinstance(key, bool) for key in keys
    ):
        return dialect.finite_number(column, kind), {float(key): place for place, key in last_first}
    return None


def _listed(dialect: Dialect, places: Places) -> str:
    """A table of keys and their places, from one text: engines take long to read thousands of literals.

    Text is written as its bytes.
    """
    entries = (
        f"{k.encode().hex() if isinstance(k, str) else repr(k)}:{place}" for k, place in places.items()
    )
    key, place = (f"split_part({ENTRY}, ':', {side})" for side in (1, 2))
    are_texts = any(isinstance(k, str) for k in places)
    read = dialect.unhexed(key) if are_texts else f"CAST({key} AS {dialect.double_type})"
    return (
        f"(SELECT {read} AS {KEY}, CAST({place} AS INTEGER) AS {PLACE} "
        f"FROM (SELECT {dialect.split(','.join(entries))} AS {ENTRY}) AS entries)"
    )


def _place(dialect: Dialect, column: str, kind: Kind, keys: tuple[Any, ...]) -> str:
    """Which of the keys a column has, as its place among them; NULL: none."""
    if kind == "text" and all(isinstance(key, str) for key in keys):
        return dialect.position(column, keys)
    return f"CASE {conditions.first_equal(dialect, column, kind, keys)} END"
