"""Dialect: how one engine writes the SQL that every engine is asked.

What an engine must say in its own words is abstract; what is the same everywhere is written out. The shapes
of what is asked (shapes.py, gathering.py, keys.py, keeping.py) are made of these words alone.

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


class Dialect(ABC):
    """The SQL of one engine, for the columns of one source."""

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
        """Of whole numbers of at least 38 digits."""

    @abstractmethod
    def attempt(self, x: str, kind: str) -> str:
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
    def steps(self, x: str, low: float, factor: float) -> str:
        """How many steps of 1/factor a double lies above `low`, rounded: see `plain_steps`.

        Asked only where it lies so near that a step can tell.
        """

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
    def identity(self, user: str, kind: Kind) -> str:
        """Who a row is of.

        Ids are compared as text without outer blanks and a trailing .0, so that 7, 7.0 and ' 7' are one
        person.
        """

    @abstractmethod
    def person(self, identity: str, user: str, kind: Kind, secret: str) -> str:
        """Somebody's `identity` as a keyed hash of 63 bits: the same number in every engine.

        The secret has a fixed length and the hash is cut off, so that nobody without the secret can tell or
        extend it.
        """

    @abstractmethod
    def is_inexact_id(self, user: str) -> str:
        """Whether an id is a floating-point number that does not tell one whole number from the next."""

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
        """A double, from its shortest text."""
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

    def sum_wide(self, x: str) -> str:
        """The sum of whole numbers that may exceed 64 bits themselves."""
        return f"SUM({self.as_wide(x)})"

    def plain_steps(self, x: str, low: float, factor: float) -> str:
        """`steps` as most engines have them: where a product of doubles that is too small for one is 0."""
        return f"FLOOR(({x} - {self.double(low)}) * {self.double(factor)} + 0.5)"

    def finite_number(self, column: str, kind: Kind) -> str:
        """A column as a double; NULL where it is missing: NULL, NaN, ±∞."""
        x = self.number(column, kind)
        return f"CASE WHEN {self.is_finite(x)} THEN {x} END"

    def tier(self, column: str, kind: Kind, tiers: Collection[str]) -> str:
        """A column that names tiers, as text.

        True and False of a column without types are called as the declaration calls them.
        """
        letters = self.letters(column)
        if kind != "untyped" or not {"true", "false"} & set(tiers) or {"True", "False"} & set(tiers):
            return letters
        return f"CASE {letters} WHEN 'True' THEN 'true' WHEN 'False' THEN 'false' ELSE {letters} END"

    def position(self, column: str, texts: Sequence[str]) -> str:
        """Which of several texts a column has, as its place among them; NULL: none."""
        letters = self.letters(column)
        arms = (f"WHEN ({letters} = {self.text(text)}) THEN {k}" for k, text in enumerate(texts))
        return f"CASE {' '.join(arms)} END"


class StandardLiterals:
    """Names and texts as standard SQL quotes them, for engines that do."""

    def quote(self, name: str) -> str:
        """A name in double quotes."""
        return '"' + printable(name).replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """A text in single quotes."""
        return "'" + printable(value).replace("'", "''") + "'"


def printable(value: str) -> str:
    """A text that SQL can hold: without lone surrogates and NUL."""
    if "\0" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise QueryError(f"the text {value!r} has a character that no table can hold. Correct it.")
    return value
