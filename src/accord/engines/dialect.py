"""Dialect: how one engine writes the SQL that every engine is asked.

What an engine must say in its own words is abstract; what is the same everywhere is written out. The shapes
of what is asked (shapes.py, per_person.py, keys.py, where_sql.py) are made of these words alone.

Kept to what SQL engines evaluate to the same bit: columns are cast to double first; what is missing is told
by one test (`is_finite`); a cell is FLOOR((x − low)·inverse + 0.5), without division or rounding functions;
nothing can fail on a value. Numbers are written as casts of their shortest text, which every engine parses to
the same double.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from accord.engines.engine import Kind
from accord.errors import QueryError

BLANKS = " \t\r\n\ufeff\u00a0"
"""What is no part of an id at its ends."""


class Dialect(ABC):
    """The SQL of one engine, for the columns of one source."""

    reads_dates_in_text = False
    """Whether `seconds` reads a column of text, in which dates are written as 2026-01-31."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        """`types`: the engine's own, of each column in its order."""
        self.types = types
        self._names = {name: f"c{k}" for k, name in enumerate(types)}

    # ---- what an engine says in its own words: types and casts ---------------------------------------------

    @property
    @abstractmethod
    def double_type(self) -> str:
        """Of 64-bit floating-point numbers."""

    @property
    @abstractmethod
    def wide_type(self) -> str:
        """Of whole numbers of at least 38 digits, which the shapes add and multiply as they stand.

        An engine that has none must refuse what takes them: a sum that became a double would be a wrong one.
        """

    @abstractmethod
    def attempt(self, x: str, sql_type: str) -> str:
        """A cast that cannot fail: NULL where it does not work."""

    # ---- literals and names --------------------------------------------------------------------------------

    @abstractmethod
    def quote(self, name: str) -> str:
        """A name as it stands in the innermost SELECT: any text is just a name."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A text, whatever it holds and whatever the settings are."""

    @abstractmethod
    def instant(self, value: str) -> str:
        """A moment, from ISO text, to be compared with `moment`."""

    # ---- whole numbers -------------------------------------------------------------------------------------

    @abstractmethod
    def sum(self, x: str) -> str:
        """The sum of whole numbers of 64 bits, however large it becomes."""

    @abstractmethod
    def quotient(self, a: str, b: str) -> str:
        """The quotient of positive whole numbers, rounded down."""

    # ---- columns -------------------------------------------------------------------------------------------

    @abstractmethod
    def number(self, column: str, kind: Kind) -> str:
        """A column as a double."""

    @abstractmethod
    def is_finite(self, x: str) -> str:
        """Whether a double is a number: neither NULL nor NaN nor ±∞."""

    @abstractmethod
    def level(self, column: str, kind: Kind) -> str:
        """A column of levels as a double; NaN for what is not a number, NULL for none.

        Where there is no NaN, a negative number: that is refused as well.
        Never above its decimal value: a double may lie above the decimal that it was made of, and a level is
        a promise. So a decimal is cut to millionths first.
        """

    @abstractmethod
    def letters(self, column: str) -> str:
        """A column as text, compared letter by letter whatever its collation."""

    @abstractmethod
    def moment(self, column: str) -> str:
        """A column of dates or timestamps, to be compared with `instant`.

        NULL where it is missing or too far away.
        """

    @abstractmethod
    def seconds(self, column: str, kind: str) -> str:
        """A timestamp as seconds since 1970, or its day's.

        NULL where it is missing, infinite or too far away.
        """

    # ---- who a row is of -----------------------------------------------------------------------------------

    @abstractmethod
    def text_identity(self, user: str) -> str:
        """Who a row is of, from a column of text: composed (NFC), without outer BLANKS and a trailing .0.

        So ' 7', '7' and '7.0' are one person.
        """

    @abstractmethod
    def name(self, identity: str, user: str, kind: Kind) -> str:
        """Somebody's `identity` as text, whatever the type of its column: the same in every engine.

        So 7, 7.0 and '7' are one person. For others than whole numbers, see `is_named_alike`.
        """

    @abstractmethod
    def digest(self, text: str) -> str:
        """The first 63 bits of the SHA-256 of a text, as a BIGINT.

        The text stands in it once: digests of digests must not double with each.
        """

    @abstractmethod
    def mantissa(self, column: str) -> int | None:
        """How many bits of a whole number a column of floating-point numbers holds; None: it is of others."""

    # ---- tables from one text ------------------------------------------------------------------------------

    @abstractmethod
    def split(self, entries: str) -> str:
        """A row for each entry of a plain text, at its commas."""

    @abstractmethod
    def unhexed(self, x: str) -> str:
        """The text whose bytes are written in x."""

    # ---- what is the same everywhere -----------------------------------------------------------------------

    def column(self, name: str) -> str:
        """What a user's column is called outside the innermost SELECT."""
        return self._names[name]

    def double(self, value: float) -> str:
        """A double, from its shortest text. ±∞ and NaN are among them: some engines read these as 0."""
        return f"CAST('{value!r}' AS {self.double_type})"

    def wide(self, value: int) -> str:
        """A whole number, also beyond 64 bits."""
        return f"CAST('{value}' AS {self.wide_type})"

    def as_wide(self, x: str) -> str:
        """A whole number with room for products beyond 64 bits."""
        return f"CAST({x} AS {self.wide_type})"

    def whole(self, x: str) -> str:
        """A double that is a whole number, as a BIGINT."""
        return self.attempt(x, "BIGINT")

    def steps(self, x: str, low: float, factor: float) -> str:
        """How many steps of 1/factor a double lies above `low`, rounded.

        Asked only where it lies so near that a step can tell. A product that is too small for a double must
        come to 0: an engine where it is an error (PostgreSQL) says this in its own words.
        """
        return f"FLOOR(({x} - {self.double(low)}) * {self.double(factor)} + 0.5)"

    def identity(self, user: str, kind: Kind) -> str:
        """Who a row is of: see `text_identity`."""
        return self.text_identity(user) if kind in ("text", "untyped") else self.column(user)

    def person(self, identity: str, user: str, kind: Kind, secret: tuple[str, ...]) -> str:
        """Somebody's `name` as a keyed hash of 63 bits: the same number in every engine.

        A secret has a fixed length and the hash is cut off, so that nobody without the secret can tell or
        extend it. Where there are several, oldest first, each hashes what the one before it gave, in decimal.
        """
        text = self.name(identity, user, kind)
        for each in secret:
            text = self.digest(f"{self.secret(each)} || {text}")
        return text

    def is_named_alike(self, user: str) -> bool:
        """Whether every id of a column has the same `name` in every engine, and in every session of one."""
        return True

    def secret(self, secret: str) -> str:
        """The key of `person`. An engine whose queries others can see says it elsewhere."""
        return self.text(secret)

    def is_inexact_id(self, user: str) -> str:
        """Whether an id is a floating-point number that does not tell one whole number from the next."""
        bits = self.mantissa(user)
        if bits is None:
            return "FALSE"
        return f"NOT ABS(CAST({self.column(user)} AS {self.double_type})) < {self.double(2.0**bits)}"

    def finite_number(self, column: str, kind: Kind) -> str:
        """A column as a double; NULL where it is missing: NULL, NaN, ±∞."""
        x = self.number(column, kind)
        return f"CASE WHEN {self.is_finite(x)} THEN {x} END"

    def truth(self, column: str) -> str:
        """A column of truth values, or of words for them, as a truth value; NULL where it is none."""
        return self.attempt(self.column(column), "BOOLEAN")

    def readable(self, column: str, kind: str) -> str:
        """What is read from a column without a type, by an example: a "number", "date" or "timestamp"."""
        if kind == "number":
            return "number such as 1234.5 (text, 1.234,5, $5)"
        return "date such as 2026-01-31 (a time zone is not read)"

    def tier(self, column: str, kind: Kind, tiers: Collection[str]) -> str:
        """A column that names tiers, as text.

        True and False of a column without types are called as the declaration calls them.
        """
        letters = self.letters(column)
        if kind != "untyped" or not {"true", "false"} & set(tiers) or {"True", "False"} & set(tiers):
            return letters
        return f"CASE {letters} WHEN 'True' THEN 'true' WHEN 'False' THEN 'false' ELSE {letters} END"

    def least(self, a: str, b: str) -> str:
        """The smaller of two numbers."""
        return f"LEAST({a}, {b})"

    def listed(self, entries: str, name: str) -> str:
        """A table of one column of this name, with a row for each entry of a plain text, at its commas."""
        return f"(SELECT {self.split(entries)} AS {name})"

    def around_colon(self, entry: str) -> tuple[str, str]:
        """What stands before the colon of an entry, and what stands after it."""
        return f"split_part({entry}, ':', 1)", f"split_part({entry}, ':', 2)"

    def position(self, x: str, values: Sequence[str]) -> str:
        """Which of several values something is, as its place among them; NULL: none. All of it is SQL."""
        arms = (f"WHEN ({x} = {value}) THEN {k}" for k, value in enumerate(values))
        return f"CASE {' '.join(arms)} END"

    def enumerated(self, column: str, kind: Kind, keys: Sequence[Any], name: str) -> tuple[str, str] | None:
        """Which of a few keys a column has, in a type made of these; NULL: none. None: it takes no such type.

        And the place of the key, once that is a column of this name. For an engine that groups by such a type
        faster than by a place. Equal is what `position` takes for equal.
        """
        return None


class StandardLiterals:
    """Names, texts and moments as standard SQL writes them, for engines that do."""

    def quote(self, name: str) -> str:
        """A name in double quotes."""
        return '"' + printable(name).replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """A text in single quotes."""
        return "'" + printable(value).replace("'", "''") + "'"

    def instant(self, value: str) -> str:
        """A timestamp without a time zone."""
        return f"TIMESTAMP {self.text(value)}"


def printable(value: str) -> str:
    """A text that SQL can hold: without lone surrogates and NUL."""
    if "\0" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise QueryError(f"the text {value!r} has a character that no table can hold. Correct it.")
    return value
