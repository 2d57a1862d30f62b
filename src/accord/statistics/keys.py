"""Declared keys: of the column, or the columns, of by=; and labels of categories, which are read alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from math import prod
from typing import Any, TypeAlias

from accord.errors import QueryError
from accord.statistics.query import column_name, exact

RESERVED = ("value", "rmse", "few")
"""What else stands in a row of the answer, besides the group's key."""
MOST_COMBINATIONS = 200_000
"""Of the keys of several columns: exact noise for so many groups takes about a minute."""
By: TypeAlias = "str | Iterable[str] | None"
"""One column, or several."""
Keys: TypeAlias = "Iterable[Any] | Mapping[str, Iterable[Any]] | None"
"""Of one column, or {column: keys}."""


def read_at_most(at_most: Any, declared: int, what: str) -> int:
    """In how many of the declared groups or categories one person may be."""
    if isinstance(at_most, bool) or not isinstance(at_most, int) or not 1 <= at_most <= declared:
        raise QueryError(
            f"at_most={at_most!r} is not a number of {what} that one person may be in. "
            f"Give a whole number from 1 to {declared}."
        )
    return at_most


def read_columns(by: By) -> tuple[str, ...]:
    """The columns of by=."""
    named = (by,) if isinstance(by, str) or not isinstance(by, Iterable) else tuple(by)
    columns = tuple(map(column_name, named))
    if not columns:
        raise QueryError("by=[] names no column. Name one, or several: by=['ward', 'sex'].")
    for k, column in enumerate(columns):
        if column in columns[:k]:
            raise QueryError(f"by= names {column!r} twice. Name each column once.")
        if column in RESERVED:
            raise QueryError(
                f"by={column!r} is what the rows of the answer call something of their own "
                f"({', '.join(RESERVED)}). Rename the column."
            )
    return columns


def read_keys_of(columns: tuple[str, ...], keys: Any) -> tuple[tuple[Any, ...], ...]:
    """The declared keys of each column of by=."""
    if not isinstance(keys, Mapping):
        if len(columns) == 1:
            return (read_keys(keys),)
        wanted = ", ".join(f"{column!r}: […]" for column in columns)
        raise QueryError(
            f"by= has {len(columns)} columns, and keys= does not say which keys are whose. "
            f"Give keys={{{wanted}}}."
        )
    for column in columns:
        if column not in keys:
            raise QueryError(
                f"keys= has none for {column!r}, a column of by=: declare them, because groups taken from "
                "the data would tell who is there."
            )
    for column in keys:
        if column not in columns:
            raise QueryError(
                f"keys= has {column!r}, which is not a column of by= ({', '.join(columns)}). "
                "Leave it out, or add it to by=."
            )
    declared = tuple(read_keys(keys[column], f" of {column!r}") for column in columns)
    sizes = tuple(map(len, declared))
    if len(columns) > 1 and prod(sizes) > MOST_COMBINATIONS:
        raise QueryError(
            f"by= with these keys has {prod(sizes):,} groups ({' × '.join(f'{n:,}' for n in sizes)}), and at "
            f"most {MOST_COMBINATIONS:,} are answered at once. Declare fewer keys, or fewer columns."
        )
    return declared


def read_keys(keys: Any, whose: str = "") -> tuple[Any, ...]:
    """The declared keys of a column of by=; `whose`, where there are several."""
    groups = read_labels(keys, "keys", f"keys={whose}")
    if not groups or len(set(groups)) < len(groups):
        raise QueryError(
            f"keys={whose} has {len(groups)} groups, {len(set(groups))} of them different. "
            "Give at least one, each once."
        )
    return groups


def read_labels(values: Any, argument: str, whose: str) -> tuple[Any, ...]:
    """Declared groups or categories, all of one kind."""
    labels = tuple(read_label(value) for value in read_list(values, argument))
    kinds = {bool if isinstance(x, bool) else str if isinstance(x, str) else float for x in labels}
    if len(kinds) > 1:
        raise QueryError(
            f"{whose} are of several kinds. Give only texts, only numbers, or only True and False."
        )
    return labels


def read_label(value: Any) -> Any:
    """A group or category: a text, a number or a truth value, as Python has them."""
    label = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    if isinstance(label, date):  # compared as the text that conditions have
        return label.isoformat(sep=" ") if isinstance(label, datetime) else label.isoformat()
    if not isinstance(label, (str, bool)):
        number = exact(label, "a category")
        if float(number) != number and isinstance(label, int):
            raise QueryError(
                f"the category {label} has more digits than numbers are compared by (2⁵³ is the end). "
                "Compare it as text."
            )
    return label


def read_list(values: Any, argument: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise QueryError(f"{argument}={values!r} is not a list. Give {argument}=[…].")
    return tuple(values)
