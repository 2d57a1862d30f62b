"""Which part of a question a row is of: by a condition, by one of several keys, or both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from accord.engines import where_sql
from accord.engines.dialect import Dialect
from accord.engines.engine import Columns, Kind
from accord.engines.shapes import ShortPart
from accord.engines.sql_names import ENTRY, JOINED_KEY, KEY, KEY_TEXT, ONLY_PART, PLACE, SHORT_PLACE
from accord.statistics.keys import Rest, split_rest
from accord.statistics.part import Part
from accord.statistics.where import IsNull

FEW_KEYS = 64
"""So many keys are compared one by one; more are joined."""
Places: TypeAlias = Mapping[str, int] | Mapping[float, int]


def with_part(
    dialect: Dialect,
    source: str,
    part: Part,
    columns: Columns,
    lent: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, str]:
    """A source, and which part a row of it is of, as SQL.

    A part is the place of its key, 0 where there is only a condition; NULL: none. A value that is none of the
    keys has the place after theirs, if the rest is a group; NULL has none. Of several columns it is the place
    of the combination in `Part.groups`, NULL where any key is none. Many keys are joined to the source, so
    that no row is compared with all of them. `lent`: the tables of keys that the engine was lent, by column
    (`arrays_to_lend`); others are written out.
    """
    place = ONLY_PART
    for k, (by, keys) in enumerate(zip(part.by, part.keys, strict=True)):
        declared, rest = split_rest(keys)
        joined = JOINED_KEY.format(k)
        source, of_column = with_place(dialect, source, by, columns[by], declared, joined, lent.get(by))
        if rest is not None:
            is_missing = where_sql.render(dialect, IsNull(by), columns)
            of_column = f"CASE WHEN {is_missing} THEN NULL ELSE COALESCE({of_column}, {len(declared)}) END"
        place = of_column if k == 0 else f"({place}) * {len(keys)} + ({of_column})"
    if part.condition is None:
        return source, place
    return source, f"CASE WHEN {where_sql.render(dialect, part.condition, columns)} THEN {place} END"


def short_part(dialect: Dialect, part: Part, columns: Columns) -> ShortPart | None:
    """Which part a row is of, by columns of a type that the engine groups faster; None: there is no such."""
    if not part.by or any(len(keys) > FEW_KEYS for keys in part.keys):
        return None
    short, number = [], ""
    for k, (by, keys) in enumerate(zip(part.by, part.keys, strict=True)):
        enumerated = dialect.enumerated(by, columns[by], keys, SHORT_PLACE.format(k))
        if enumerated is None:
            return None
        key, place = enumerated
        number = place if k == 0 else f"({number}) * {len(keys)} + {place}"
        short.append(key)
    if part.condition is not None:
        short[0] = f"CASE WHEN {where_sql.render(dialect, part.condition, columns)} THEN {short[0]} END"
    return ShortPart(tuple(short), number)


def with_place(
    dialect: Dialect,
    source: str,
    column: str,
    kind: Kind,
    keys: tuple[Any, ...],
    name: str,
    lent: str | None = None,
) -> tuple[str, str]:
    """A source, and which of some keys a row of it has, as SQL: the place among them; NULL: none.

    `name`: what it is called where it is joined. `lent`: the table of these keys, if there is one.
    """
    x = compared(dialect, column, kind, keys) if len(keys) > FEW_KEYS else None
    if x is None:
        return source, _place_by_case(dialect, column, kind, keys)
    listed = lent or _written_out(dialect, key_places(keys))
    source = (
        f"(SELECT source.*, listed.{PLACE} AS {name} FROM {source} AS source "
        f"LEFT JOIN {listed} AS listed ON listed.{KEY} = {x})"
    )
    return source, name


def arrays_to_lend(dialect: Dialect, part: Part, columns: Columns) -> dict[str, dict[str, Any]]:
    """Long lists of keys as tables of KEY and PLACE, by column: which need not be read as SQL."""
    tables = {}
    for by, keys in zip(part.by, (split_rest(keys)[0] for keys in part.keys), strict=True):
        if len(keys) > FEW_KEYS and compared(dialect, by, columns[by], keys) is not None:
            if isinstance(keys[0], str):
                listed, place = np.array(keys, dtype=object), np.arange(len(keys))
            else:  # the first, if two are one number
                listed, place = np.unique(np.array(keys, dtype=np.float64), return_index=True)
            tables[by] = {KEY: listed, PLACE: place.astype(np.int32)}
    return tables


def _written_out(dialect: Dialect, places: Places) -> str:
    """A table of keys and their places, as SQL."""
    spelled = zip((_spelled(key) for key in places), places.values(), strict=True)
    key, place = dialect.around_colon(ENTRY)
    are_texts = any(isinstance(k, str) for k in places)
    read = dialect.unhexed(key) if are_texts else f"CAST({key} AS {dialect.double_type})"
    return _table(dialect, spelled, f"{read} AS {KEY}, CAST({place} AS INTEGER) AS {PLACE}")


def with_key_text(
    dialect: Dialect, source: str, place: str, keys: tuple[Any, ...], number: int
) -> tuple[str, str]:
    """A source, and the text of the key at a place, as SQL: the same in every engine, whatever the place is.

    A key may be a combination of several. `number`: of this list of keys, if there are several.
    """
    spelled = ["/".join(map(_spelled, key)) if isinstance(key, tuple) else _spelled(key) for key in keys]
    if len(keys) <= FEW_KEYS:
        arms = " ".join(f"WHEN {k} THEN '{text}'" for k, text in enumerate(spelled))
        return source, f"CASE {place} {arms} END"
    key, at = dialect.around_colon(ENTRY)
    name = KEY_TEXT.format(number)
    entries = zip(spelled, range(len(spelled)), strict=True)
    listed = _table(dialect, entries, f"{key} AS {name}, CAST({at} AS INTEGER) AS {PLACE}")
    source = (
        f"(SELECT source.*, listed.{name} FROM {source} AS source "
        f"LEFT JOIN {listed} AS listed ON listed.{PLACE} = source.{place})"
    )
    return source, name


def _spelled(key: Any) -> str:
    """A key as plain text, without commas and colons: of a text its bytes.

    The rest is `rest`, whatever answers call it: no key has this text.
    """
    if isinstance(key, Rest):
        return "rest"
    if isinstance(key, str):
        return key.encode().hex()
    return str(key).lower() if isinstance(key, bool) else repr(float(key))


def compared(dialect: Dialect, column: str, kind: Kind, keys: tuple[Any, ...]) -> str | None:
    """What is compared with the keys, as SQL; None: they are neither text alone nor numbers alone."""
    types = set(map(type, keys))
    if kind in ("text", "untyped") and types == {str}:
        return dialect.letters(column)
    if kind in ("number", "untyped") and all(issubclass(x, int | float) and x is not bool for x in types):
        return dialect.finite_number(column, kind)
    return None


def key_places(keys: tuple[Any, ...]) -> Places:
    """The place of each key, all of which are texts or numbers: the first, if two are one number."""
    each = keys if isinstance(keys[0], str) else tuple(map(float, keys))
    return dict(zip(reversed(each), reversed(range(len(each))), strict=True))


def _table(dialect: Dialect, entries: Iterable[tuple[str, int]], columns: str) -> str:
    """A table from one text of entries "key:place": engines take long to read thousands of literals."""
    text = ",".join(f"{key}:{place}" for key, place in entries)
    return f"(SELECT {columns} FROM {dialect.listed(text, ENTRY)} AS entries)"


def _place_by_case(dialect: Dialect, column: str, kind: Kind, keys: tuple[Any, ...]) -> str:
    """Which of the keys a column has, as its place among them; NULL: none."""
    if kind == "text" and all(isinstance(key, str) for key in keys):
        return dialect.position(dialect.letters(column), [dialect.text(key) for key in keys])
    if kind == "number" and compared(dialect, column, kind, keys) is not None:
        return dialect.position(dialect.finite_number(column, kind), [dialect.double(float(k)) for k in keys])
    return f"CASE {where_sql.first_equal(dialect, column, kind, keys)} END"
