"""Public people: what their values tell about bounds, step, std and keys, before anything is asked.

Neighbors  replace: the rows of one person change; who is in the table, and with which level, stays. Under
           add-remove it is refused: whether a public person is there would be private, and is told here.
Reads      rows of people whose level is ∞: in all of their rows (with `user=` the strictest counts), or by
           the consent register; and with a ledger in every table of it, also in those that they left.
           Whoever has withdrawn, or opted out anywhere, is not read. All of that is decided by levels, which
           are public, in the engine.
Charges    ∞ to everyone who is read, which is what they agreed to; 0 to everyone else.
Guarantee  Of anyone else no value is in what is returned, raised, logged, printed or booked: it is a function
           of the rows of public people and of public things (levels, names and kinds of columns, arguments).
           So their loss is 0, whatever their rows are. `tests/promises/test_public_people.py` changes all of
           them and compares everything, byte for byte.
Order      As a release: refuse, reserve in the ledger (or remember), read, commit: `release/looking.py`.

What it suggests is for the user to declare. It is about public people, who may differ from the others: no
guarantee rests on it, and values outside the bounds count as the nearer one (suggesting.py has the rule).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accord.budget import PUBLIC, IntArray
from accord.engines import row_sampling, shapes
from accord.engines.sql_names import LENT_PERSON, LENT_REMAINING, REMAINING, USER
from accord.errors import TABLE_CHANGED, SourceError
from accord.people.levels import RemainingLevels
from accord.people.suggesting import Suggested
from accord.planning import by_level
from accord.spec import Spec

if TYPE_CHECKING:
    from accord.people.identity import Remaining
    from accord.people.reader import TableReader
    from accord.release.result import Booked

_SMALLEST, _LARGEST = 1e-90, 1e90
"""Beyond these, values count as 0, or as the largest: bounds have no room for more."""


@dataclass(frozen=True)
class PublicLook:
    """What public people tell about a column. Everything in it may be published."""

    column: str
    people: int
    """How many were read."""
    missing: int
    """How many of them have no value."""
    suggested: Suggested
    spec: Spec
    """The levels of the table."""
    time: datetime
    booked: Booked | None = None
    """Where it stands in the ledger, if there is one."""

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """For `bounds=`; None: nothing can be suggested."""
        return self.suggested.bounds

    @property
    def step(self) -> int | float | None:
        """For `step=`; None: the grid that questions have without one."""
        return self.suggested.step

    @property
    def std(self) -> float | None:
        """For `std=`; None without a declared gap."""
        return self.suggested.std

    @property
    def keys(self) -> tuple[Any, ...] | None:
        """For `keys=` or `categories=`: every key that a public person has."""
        return self.suggested.keys

    @property
    def why(self) -> Mapping[str, str]:
        """Why each of them is what it is, in words."""
        return self.suggested.why

    @property
    def cost(self) -> IntArray:
        """What it costs a person who is read, by level, in millionths."""
        return np.where(self.spec.micro == PUBLIC, self.spec.micro, 0)

    @property
    def charges(self) -> Mapping[float, float]:
        """{level: charge}. With a ledger, people of level ∞ who are stricter elsewhere are charged 0."""
        return by_level(self.spec, self.cost)

    def describe(self) -> dict[str, Any]:
        """What was read, what it suggests and why, and what it cost whom: plain data, ready for JSON."""
        from accord.release.looking import look_document

        return look_document(self)

    def receipt(self) -> dict[str, Any]:
        """The same as `describe`: what a ledger books."""
        return self.describe()

    def __str__(self) -> str:
        from accord.report.looks import look_text

        return look_text(self)

    def _repr_html_(self) -> str:
        from accord.report.looks import look_html

        return look_html(self)

    def __repr__(self) -> str:
        each = ((name, getattr(self, name)) for name in ("bounds", "step", "std"))
        suggested = [f"{name}={value!r}" for name, value in each if value is not None]
        suggested += [] if self.keys is None else [f"{len(self.keys)} keys"]
        return f"<PublicLook at {self.column} of {self.people} people: {', '.join(suggested) or 'nothing'}>"


# ---- reading -----------------------------------------------------------------------------------------------


class PublicValues(NamedTuple):
    """What public people have in a column."""

    values: NDArray[np.float64] | None
    """One for each person who has any, ascending; None: they are texts."""
    of_rows: tuple[Any, ...]
    """The different values of their rows, ascending: numbers or texts."""
    missing: int
    """How many people have none."""


def public_values(
    reader: TableReader, column: str, kind: str, per_person: str, people: int, remaining: Remaining | None
) -> PublicValues:
    """What public people have in a column, and nothing of anyone else.

    Args:
        reader: of the table.
        column: which column.
        kind: as what it is read: "number", "text", "date", "timestamp", or "untyped": as numbers, if at least
            half of what public people have can be read so (the rest is missing), else as texts.
        per_person: what a person's rows come to.
        people: how many public people there must be.
        remaining: how they are told apart, if not by their level.
    """
    fetched = _fetched(reader, _as_read(reader, column, kind), remaining)
    times = np.asarray(fetched["times"], dtype=np.int64)
    who = np.arange(times.size) if reader.user is None else _numbered(fetched["person"])
    # without user= each row is one person
    public_people = int(times.sum()) if reader.user is None else int(np.unique(who).size)
    if public_people != people:
        raise SourceError(TABLE_CHANGED)
    if "word" in fetched:
        words = _texts(fetched["word"])
        has_word = np.array([bool(word.strip()) for word in words], dtype=bool)
        if kind == "text" or _are_texts(has_word, fetched["value"], times):
            have_any = int(times[has_word].sum()) if reader.user is None else np.unique(who[has_word]).size
            return PublicValues(None, tuple(sorted(set(words[has_word].tolist()))), people - int(have_any))
    has_value = ~np.ma.getmaskarray(fetched["value"])
    values = _with_room(np.ma.getdata(fetched["value"])[has_value].astype(np.float64))
    of_rows = tuple(np.unique(values).tolist())
    if reader.user is None:
        each = np.repeat(values, times[has_value])
    else:
        each = _per_person(who[has_value], values, times[has_value], per_person)
    return PublicValues(np.sort(each), of_rows, people - each.size)


def _as_read(reader: TableReader, column: str, kind: str) -> dict[str, str]:
    """What is read of a row, as SQL: a "word", a "value", or both."""
    dialect, selected = reader.engine.dialect, {}
    if kind in ("text", "untyped"):
        selected["word"] = dialect.letters(column)
    if kind in ("number", "untyped"):
        selected["value"] = dialect.finite_number(column, reader.engine.columns[column])
    elif kind != "text":
        selected["value"] = dialect.seconds(column, kind)
    return selected


def _fetched(reader: TableReader, selected: dict[str, str], remaining: Remaining | None) -> dict[str, Any]:
    """How many "times" public people have what is read; with the "person", where rows are not people."""
    if reader.user is not None:
        name = reader.engine.dialect.name(USER, reader.user, reader.engine.columns[reader.user])
        selected = {**selected, "person": name}
    coded = ", ".join(f"{sql} AS {name}" for name, sql in selected.items())
    by = ", ".join(selected)
    with _public_rows(reader, remaining) as rows:
        return reader.engine.fetch(
            f"SELECT {by}, COUNT(*) AS times FROM (SELECT {coded} FROM {rows} AS public_rows) AS coded "
            f"GROUP BY {by}"
        )


@contextmanager
def _public_rows(reader: TableReader, remaining: Remaining | None) -> Iterator[str]:
    """The rows of public people, as SQL; where people may have several, with who they are as USER."""
    if reader.user is None:
        yield shapes.meeting(reader.source, reader.levels.is_public)
        return
    who = reader.engine.dialect.identity(reader.user, reader.engine.columns[reader.user])
    is_public = reader.level_reader.is_public
    if remaining is None or remaining.by_person is None:
        yield _rows_of(reader.source, who, reader.people(), is_public)
        return
    secret, hashes, amounts = remaining.by_person
    with reader.engine.lend({LENT_PERSON: hashes, LENT_REMAINING: amounts}) as lent:
        people = row_sampling.with_remaining(reader.people(), reader.person(secret, USER), lent)
        left = RemainingLevels(REMAINING).is_public
        yield _rows_of(reader.source, who, people, f"{is_public} AND {left}")


def _rows_of(source: str, who: str, people: str, condition: str) -> str:
    """The rows of those people who meet a condition."""
    chosen = f"(SELECT {USER} FROM {people} AS people WHERE {condition})"
    return (
        f"(SELECT source.*, chosen.{USER} FROM {source} AS source JOIN {chosen} AS chosen ON {USER} = {who})"
    )


def _texts(column: Any) -> Any:
    """A column of texts; empty ones in the place of NULL."""
    texts = np.array(np.ma.getdata(column), dtype=object)
    texts[np.ma.getmaskarray(column)] = ""
    return texts


def _are_texts(has_word: Any, values: Any, times: IntArray) -> bool:
    """Whether more of what is there cannot be read as numbers than can."""
    is_number = ~np.ma.getmaskarray(values)
    return bool(times[has_word & ~is_number].sum() > times[is_number].sum())


def _numbered(names: Any) -> IntArray:
    """A number for each name."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names.tolist()], dtype=np.int64)


def _with_room(values: NDArray[np.float64]) -> NDArray[np.float64]:
    near_zero = np.abs(values) < _SMALLEST
    return np.where(near_zero, 0.0, np.clip(values, -_LARGEST, _LARGEST))


def _per_person(
    who: IntArray, values: NDArray[np.float64], times: IntArray, per_person: str
) -> NDArray[np.float64]:
    """What each person's rows come to. Sums are correctly rounded, so that the order does not matter."""
    if not who.size:
        return values
    order = np.argsort(who, kind="stable")
    first = np.flatnonzero(np.diff(who[order], prepend=-1))
    if per_person in ("min", "max"):
        fold = np.minimum if per_person == "min" else np.maximum
        return fold.reduceat(values[order], first)
    products, ordered_times = (values * times)[order].tolist(), times[order]
    ends = np.append(first[1:], who.size)
    totals = np.array([fsum(products[a:b]) for a, b in zip(first.tolist(), ends.tolist(), strict=True)])
    if per_person == "sum":
        return totals
    means: NDArray[np.float64] = totals / np.add.reduceat(ordered_times, first)
    return means
