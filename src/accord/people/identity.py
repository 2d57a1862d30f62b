"""Identity: who is in a table, by keyed hashes. All that a ledger sees of it; never a value."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from unicodedata import normalize
from uuid import UUID

import numpy as np

from accord.budget import IntArray, distinct
from accord.engines import Engine, shapes
from accord.engines.dialect import BLANKS
from accord.engines.sql_names import USER
from accord.errors import TABLE_CHANGED, AccordError, LedgerError, SourceError
from accord.numerals import written
from accord.spec import Spec

if TYPE_CHECKING:
    from accord.people.reader import TableReader


PRIVATE_LEVELS_BY_PERSON = (
    "with levels='private' it is nobody's business who is in the table with which level, so that nobody is "
    "told apart. A ledger keeps account by level: ledger.register(table, 'name')."
)


class Identity(Protocol):
    """Who is in a table, with which level."""

    def people(self, secret: tuple[str, ...]) -> tuple[IntArray, IntArray]:
        """Everyone's hash, keyed by a ledger's secret, and their level in millionths. No value is read."""
        ...

    def fingerprint(self, secret: tuple[str, ...]) -> str:
        """Of who is in the table with which level; kept as long as the source has not changed."""
        ...


@runtime_checkable
class Registrable(Protocol):
    """A table as a ledger sees it: public levels, and who is in it."""

    neighbors: str

    @property
    def identity(self) -> Identity:
        """Who is in it."""
        ...

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level."""
        ...

    @property
    def policy(self) -> dict[str, Any]:
        """Where the levels come from, as plain data of public things."""
        ...

    @property
    def origin(self) -> tuple[Any, ...]:
        """Which rows these are, as plain data of public things: the same only for the same source."""
        ...

    def spec(self) -> Spec:
        """The public levels, and how many people have each."""
        ...


@dataclass(frozen=True)
class Remaining:
    """What everyone in a table has left, as a ledger knows it."""

    spec: Spec
    by_level: IntArray | None
    """For each level of the table, if that decides it. In millionths."""
    by_person: tuple[tuple[str, ...], IntArray, IntArray] | None = field(repr=False)
    """Otherwise: the ledger's secret, keyed hashes of people, and what each of them has left."""


def fingerprint(micro: IntArray, people: IntArray, totals: list[int]) -> str:
    """Of the set of (person, level), in any order.

    It is a hash of each level, of how many people have it, and of the sum of their own hashes.
    """
    if distinct(micro).size < micro.size:
        sums: dict[int, tuple[int, int]] = {}
        for level, count, total in zip(micro.tolist(), people.tolist(), totals, strict=True):
            before = sums.get(level, (0, 0))
            sums[level] = (before[0] + count, before[1] + total)
        micro, people = np.array(list(sums)), np.array([count for count, _ in sums.values()])
        totals = [total for _, total in sums.values()]
    order = np.argsort(micro)
    micro, people = micro[order], people[order]
    if max(totals, default=0) <= np.iinfo(np.int64).max:
        rows = written("[#, [#, #]]", ", ", (micro, people, np.array(totals, dtype=np.int64)[order]))
    else:
        each = zip(micro.tolist(), people.tolist(), (totals[k] for k in order.tolist()), strict=True)
        rows = iter([", ".join(f"[{level}, [{count}, {total}]]" for level, count, total in each).encode()])
    digest = hashlib.sha256(b"[")  # of [[level, [people, total]], …] as JSON
    for piece in chain(rows, (b"]",)):
        digest.update(piece)
    return digest.hexdigest()[:32]


def person_hash(secret: tuple[str, ...], person: Any) -> int:
    """Somebody's keyed hash, from an id in Python: the number that `Dialect.person` gives in every engine."""
    text = name_of(person)
    for each in secret:
        text = str(keyed_hash(each, text))
    return int(text)


def keyed_hash(secret: str, text: str) -> int:
    """The first 63 bits of the SHA-256 of a secret and a text."""
    return int.from_bytes(hashlib.sha256(f"{secret}{text}".encode()).digest()[:8]) >> 1


def name_of(person: Any) -> str:
    """An id as text, whatever its type: what `Dialect.name` gives in every engine.

    >>> name_of(7), name_of(7.0), name_of(" 7.0 "), name_of("007")
    ('7', '7', '7', '007')
    """
    if isinstance(person, np.generic):
        person = person.item()
    match person:
        case bool() | datetime():
            pass  # columns of these tell nobody apart
        case float() if not math.isfinite(person):
            pass
        case Decimal() if not person.is_finite():
            pass
        case int() | float() | Decimal() if person == math.floor(person):
            return str(int(person))
        case Decimal():
            return f"{person:f}"
        case int() | float() | UUID() | date():
            return str(person)
        case str() if not any("\ud800" <= letter <= "\udfff" for letter in person):
            return re.sub(r"\.0+\Z", "", normalize("NFC", person).strip(BLANKS))
    raise LedgerError(
        "an id is a text, a number, a date or a UUID. Give it as it stands in the column of people."
    )


def refuse_inexact_ids(engine: Engine, user: str, error: type[AccordError]) -> None:
    """Refuse ids by which people cannot be told apart outside of their table."""
    if engine.columns[user] != "number" or engine.dialect.mantissa(user) is None:
        return
    inexact = int(engine.fetch(shapes.inexact_ids(engine.dialect, engine.source, user))["inexact"][0])
    if inexact:
        raise error(
            f"{inexact:,} ids in {user!r} are floating-point numbers too large to be exact, "
            "so that people cannot be told apart. Store ids as whole numbers or text."
        )


@dataclass(frozen=True)
class DescribedIdentity:
    """Stands in for who is in a table where that is private: how it is described, and no row of it."""

    policy: dict[str, Any]
    levels: tuple[str, ...]
    """The menu."""
    place: Any
    """Where the table lies; None: in memory."""

    def people(self, secret: tuple[str, ...]) -> tuple[IntArray, IntArray]:
        """Nobody knows."""
        raise LedgerError(PRIVATE_LEVELS_BY_PERSON)

    def fingerprint(self, secret: tuple[str, ...]) -> str:
        """Of the description. No key is needed: all of it is public."""
        text = json.dumps([self.policy, self.levels, self.place], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class TableIdentity:
    """Who is in a table, read by its reader: see `Identity`."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._fingerprint: tuple[tuple[str, ...], object, str] | None = None
        """For which secret and state of the source, and what it was."""

    def people(self, secret: tuple[str, ...]) -> tuple[IntArray, IntArray]:
        """See `Identity`."""
        reader = self._reader
        person = reader.person(secret, USER)
        reader.spec()  # refuses levels that cannot be used, and rows of nobody
        refuse_inexact_ids(reader.engine, str(reader.user), LedgerError)
        sql = shapes.people(reader.people(), person, reader.level_reader.expression)
        columns = reader.engine.fetch(sql)
        everyone = np.ones(columns["person"].size, dtype=np.int64)
        return columns["person"], reader.level_reader.decode(columns["level"], everyone)

    def fingerprint(self, secret: tuple[str, ...]) -> str:
        """See `Identity`."""
        reader = self._reader
        state, before = reader.engine.state(), self._fingerprint
        if state is not None and before is not None and before[:2] == (secret, state):
            return before[2]
        person = reader.person(secret, USER)
        level = reader.level_reader.expression
        sql = shapes.by_level(reader.engine.dialect, reader.people(), level, person, 0)
        columns = reader.engine.fetch(sql, wide=("total",))
        micro = reader.level_reader.decode(columns["level"], columns["people"])
        if Spec(micro, columns["people"]) != reader.spec():
            raise SourceError(TABLE_CHANGED)
        computed = fingerprint(micro, columns["people"], columns["total"])
        self._fingerprint = (secret, state, computed)
        return computed
