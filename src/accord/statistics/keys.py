"""Declared keys: of the column, or the columns, of by=; and labels of categories, which are read alike.

Keys are a list, anything that is like one (an array, a column of a data frame), a file (key_files.py), or
those that public people have, which are public because they are (people/public.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import date, datetime
from hashlib import sha256
from math import prod
from os import PathLike
from typing import Any, Protocol, TypeAlias, runtime_checkable

from accord.errors import QueryError
from accord.statistics.query import column_name, exact

RESERVED = ("value", "rmse", "few")
"""What else stands in a row of the answer, besides the group's key."""
MOST_COMBINATIONS = 200_000
"""Of the keys of several columns: exact noise for so many groups takes about a minute."""
MOST_LISTED = 1_000
"""Documents list so many keys of a column; of more they say how many there are, and a digest."""
By: TypeAlias = "str | Iterable[str] | None"
"""One column, or several."""


@runtime_checkable
class SuggestedKeys(Protocol):
    """What public people tell about a column (`Table.public`)."""

    @property
    def column(self) -> str: ...

    @property
    def keys(self) -> tuple[Any, ...] | None: ...

    @property
    def why(self) -> Mapping[str, str]: ...


Listed: TypeAlias = "Iterable[Any] | str | PathLike[str] | SuggestedKeys"
"""Keys of a column: a list or the like, a file of them, or those that public people have."""
Keys: TypeAlias = "Listed | Mapping[str, Listed] | None"
"""Of one column, or {column: keys}."""
RestLabels: TypeAlias = "str | Mapping[str, str] | None"
"""What the rest is called of every column, or {column: label}."""


class Rest(str):
    """Among the keys of a column, the last: of whoever has a value there that is none of the others.

    It is the text that answers call this group, and no value of the column.
    """

    __slots__ = ()


def read_at_most(at_most: Any, declared: int, what: str) -> int:
    """In how many of the declared groups or categories one person may be."""
    if isinstance(at_most, bool) or not isinstance(at_most, int) or not 1 <= at_most <= declared:
        least = f"a whole number from 1 to {declared}" if declared > 1 else "1, because there is one only"
        raise QueryError(
            f"at_most={at_most!r} is not a number of {what} that one person may be in. Give {least}."
        )
    return at_most


def read_columns(by: By) -> tuple[str, ...]:
    """The columns of by=."""
    if isinstance(by, Set):
        raise QueryError("by= is a set, which has no order. Give a list: by=['ward', 'sex'].")
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
            return (read_keys(keys, columns[0]),)
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
    return tuple(read_keys(keys[column], column, f" of {column!r}") for column in columns)


def split_rest(keys: tuple[Any, ...]) -> tuple[tuple[Any, ...], Rest | None]:
    """The declared keys of a column, and what the rest is called, if it is a group."""
    *declared, last = keys
    return (tuple(declared), last) if isinstance(last, Rest) else (keys, None)


def with_rest(
    columns: tuple[str, ...], keys: tuple[tuple[Any, ...], ...], rest: RestLabels
) -> tuple[tuple[Any, ...], ...]:
    """The keys of each column of by=, and the rest of those columns of which it is asked for.

    >>> with_rest(("ward",), (("A", "B"),), "other")
    (('A', 'B', 'other'),)
    """
    if isinstance(rest, Mapping):
        for column in rest:
            if column not in columns:
                raise QueryError(
                    f"rest= has {column!r}, which is not a column of by= ({', '.join(columns)}). "
                    "Leave it out, or add it to by=."
                )
        labels = [rest.get(column) for column in columns]
    else:
        labels = [rest] * len(columns)
    return tuple(
        of_column if label is None else (*of_column, _rest(label, of_column))
        for of_column, label in zip(keys, labels, strict=True)
    )


def _rest(label: Any, keys: tuple[Any, ...]) -> Rest:
    if not isinstance(label, str) or not label.strip():
        raise QueryError(
            f"rest={label!r} is not a name for the group of everyone whose value is none of the keys. "
            "Give a text, such as rest='other'."
        )
    if label in map(str, keys):
        raise QueryError(
            f"rest={label!r} is one of the keys, and names the group of everyone whose value is none of "
            "them. Give it another name."
        )
    return Rest(label)


def refuse_too_many(keys: tuple[tuple[Any, ...], ...]) -> None:
    """Refuse more combinations of the keys of several columns than are answered at once."""
    sizes = tuple(map(len, keys))
    if len(sizes) > 1 and prod(sizes) > MOST_COMBINATIONS:
        raise QueryError(
            f"by= with these keys has {prod(sizes):,} groups ({' × '.join(f'{n:,}' for n in sizes)}), and at "
            f"most {MOST_COMBINATIONS:,} are answered at once. Declare fewer keys, or fewer columns."
        )


def read_keys(keys: Any, column: str, whose: str = "", kind: str | None = None) -> tuple[Any, ...]:
    """The declared keys of a column of by=; `whose`, where there are several.

    `kind`: what the column is declared to hold, for keys in a file.

    >>> read_keys(["A", "B"], "ward")
    ('A', 'B')
    """
    if isinstance(keys, SuggestedKeys):
        keys = _of_public_people(keys, column)
    if isinstance(keys, (str, PathLike)):
        from accord.key_files import as_kind, read_key_file

        keys = as_kind(read_key_file(str(keys), column), kind or "untyped")
        whose = f"{whose} in a file"
    groups = read_labels(keys, "keys", f"keys={whose}")
    if not groups or len(set(groups)) < len(groups):
        raise QueryError(
            f"keys={whose} has {len(groups)} groups, {len(set(groups))} of them different. "
            "Give at least one, each once."
        )
    return groups


def _of_public_people(look: SuggestedKeys, column: str) -> tuple[Any, ...]:
    """The keys that a look at public people suggests for a column."""
    if look.column != column:
        raise QueryError(
            f"keys= are those that public people have in {look.column!r}, and by= is {column!r}. "
            f"Look at that column: people.public({column!r})."
        )
    if look.keys is None:
        why = look.why.get("keys", "it has none of text, and no codes")
        raise QueryError(f"public people suggest no keys of {column!r}: {why}. Declare them: keys=[…].")
    return look.keys


def described_keys(keys: tuple[Any, ...]) -> Any:
    """Keys in documents: all of them, or of very many the number and a digest.

    >>> described_keys(("A", "B"))
    ['A', 'B']
    >>> described_keys(tuple(range(2_000)))["number"]
    2000
    """
    if len(keys) <= MOST_LISTED:
        return list(keys)
    text = "\n".join(map(repr, keys))
    return {"number": len(keys), "sha256": sha256(text.encode(errors="surrogatepass")).hexdigest()}


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
    if isinstance(value, str):
        return str(value)
    label = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    label = label.as_py() if hasattr(label, "as_py") else label  # of Arrow
    if isinstance(label, date):  # compared as the text that conditions have
        return label.isoformat(sep=" ") if isinstance(label, datetime) else label.isoformat()
    if not isinstance(label, (str, bool)):
        if label is None or isinstance(label, bytes | Iterable):
            raise QueryError(
                f"a group or category is {label!r}. Each is a text, a number, a date, or True or False; "
                "whoever has no value is in none."
            )
        number = exact(label, "a group or category")
        if float(number) != number and isinstance(label, int):
            raise QueryError(
                f"the category {label} has more digits than numbers are compared by (2⁵³ is the end). "
                "Compare it as text."
            )
    return label


def read_list(values: Any, argument: str) -> tuple[Any, ...]:
    if len(shape := getattr(values, "shape", ())) > 1:
        size = " × ".join(f"{n:,}" for n in shape)
        raise QueryError(f"{argument}= is a table of {size}, and no list. Give one of its columns.")
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise QueryError(f"{argument}={values!r} is not a list. Give {argument}=[…].")
    return tuple(values)
