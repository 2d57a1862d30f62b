"""The small grammar of `where=`: a condition on one row's own columns.

    condition   := condition OR condition | condition AND condition | NOT condition | ( condition ) | test
    test        := column (= | == | <> | != | < | <= | > | >=) literal
                 | column [NOT] IN ( literal, … ) | column IS [NOT] NULL
                 | column                               (of true and false: the same as column = TRUE)
    column      := name | "any name"
    literal     := number | 'text' | TRUE | FALSE          (dates and timestamps are ISO text: '2026-01-31')

It is parsed into a tree and rendered by the engine, never pasted: a subquery would void every sensitivity,
and a cast that fails on one person's value would tell that value. So a test compares a column with a literal
of the column's own kind, which is checked while planning, and its evaluation cannot fail. A missing value
(NULL, NaN, ±∞) makes a test neither true nor false; only rows whose condition is true count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from accord.errors import QueryError

Value: TypeAlias = float | str | bool
Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    column: str
    operator: Operator
    value: Value


@dataclass(frozen=True)
class In:
    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class IsNull:
    column: str


@dataclass(frozen=True)
class IsTrue:
    """A column by itself, which must be of true and false."""

    column: str


@dataclass(frozen=True)
class Not:
    inner: Condition


@dataclass(frozen=True)
class Combined:
    """AND of all, or OR of all."""

    word: Literal["AND", "OR"]
    parts: tuple[Condition, ...]


Condition: TypeAlias = Compare | In | IsNull | IsTrue | Not | Combined

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
      | '(?P<text>(?:[^']|'')*)'
      | "(?P<quoted>(?:[^"]|"")+)"
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
KEYWORDS = ("AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE")
_NOT_OFFERED = {
    "LIKE": "engines read patterns differently. Name the texts: {0} IN ('north', 'east'), or {0} = 'north'.",
    "BETWEEN": "write both ends: {0} >= 30 AND {0} <= 40.",
}
_NOT_OFFERED["ILIKE"] = _NOT_OFFERED["LIKE"]
"""Words of SQL that many will try, and what to write instead."""
_SIGNS = {"&": "AND", "|": "OR", "~": "NOT"}
"""What pandas writes."""
_OTHERWISE = {"==": "=", "!=": "<>"}
"""Other ways to write an operator."""
_LONGEST, _DEEPEST = 10_000, 50
_NEXT = "Write tests such as \"age >= 30 AND region IN ('north', 'east')\"."


def parse(text: str, name: str = "where=") -> Condition:
    """The tree of a condition; `name`: what a refusal calls it.

    >>> parse("age >= 30 AND NOT region IN ('north', 'east')")
    Combined(word='AND', parts=(Compare(column='age', operator='>=', value=30.0),
                                Not(inner=In(column='region', values=('north', 'east')))))
    """
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"{name} is not a condition. {_NEXT}")
    if len(text) > _LONGEST:
        raise QueryError(f"{name} has {len(text)} characters; at most {_LONGEST} are read. {_NEXT}")
    parser = _Parser(list(_tokens(text, name)), name)
    condition = parser.any_of(0)
    parser.finish()
    return condition


def columns(condition: Condition) -> Iterator[str]:
    """The columns that a condition reads."""
    match condition:
        case Compare(column) | In(column) | IsNull(column) | IsTrue(column):
            yield column
        case Not(inner):
            yield from columns(inner)
        case Combined(_, parts):
            for part in parts:
                yield from columns(part)


def is_always_decided(condition: Condition) -> bool:
    """Whether a condition is true or false of every row: it asks only whether values are missing.

    >>> is_always_decided(parse("age IS NULL OR NOT income IS NULL")), is_always_decided(parse("age > 3"))
    (True, False)
    """
    match condition:
        case Not(inner):
            return is_always_decided(inner)
        case Combined(_, parts):
            return all(is_always_decided(part) for part in parts)
        case _:
            return isinstance(condition, IsNull)


def reads_as(condition: Condition) -> Iterator[tuple[str, Literal["number", "date"]]]:
    """The columns that a condition compares with numbers, or orders by date; of others nothing is read."""
    match condition:
        case Compare(column, operator, value):
            if isinstance(value, float):
                yield column, "number"
            elif isinstance(value, str) and operator not in ("=", "<>"):
                yield column, "date"
        case In(column, values) if any(isinstance(value, float) for value in values):
            yield column, "number"
        case Not(inner):
            yield from reads_as(inner)
        case Combined(_, parts):
            for part in parts:
                yield from reads_as(part)


def _tokens(text: str, name: str) -> Iterator[tuple[str, str]]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            rest = text[at:].lstrip()
            word = next(
                (f"Write {word} for {sign}. " for sign, word in _SIGNS.items() if rest[0] == sign), ""
            )
            raise QueryError(f"{name} cannot be read at {text[at : at + 20]!r}. {word}{_NEXT}")
        kind, token = match.lastgroup, match[match.lastgroup]
        if kind == "word" and token.isascii() and token.upper() in KEYWORDS:
            kind, token = "sign", token.upper()
        yield kind, token
        at = match.end()


class _Parser:
    """Recursive descent, one method for each strength of binding."""

    def __init__(self, tokens: list[tuple[str, str]], name: str) -> None:
        self.tokens, self.at, self.name = tokens, 0, name

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "the end")

    def take(self, *signs: str) -> str | None:
        kind, token = self.peek()
        if kind == "sign" and token in signs:
            self.at += 1
            return token
        return None

    def need(self, *signs: str) -> str:
        token = self.take(*signs)
        if token is None:
            raise QueryError(
                f"{self.name} has {self.peek()[1]!r} where {' or '.join(signs)} was expected. {_NEXT}"
            )
        return token

    def finish(self) -> None:
        if self.at < len(self.tokens):
            sign = self.peek()[1]
            join = "a number has a point, and no comma" if sign == "," else "join conditions by AND or OR"
            raise QueryError(f"{self.name} goes on at {sign!r} after a whole condition; {join}. {_NEXT}")

    def any_of(self, depth: int) -> Condition:
        return self._joined("OR", depth)

    def _joined(self, word: Literal["AND", "OR"], depth: int) -> Condition:
        part = self._negation if word == "AND" else lambda d: self._joined("AND", d)
        parts = [part(depth)]
        while self.take(word):
            parts.append(part(depth))
        return parts[0] if len(parts) == 1 else Combined(word, tuple(parts))

    def _negation(self, depth: int) -> Condition:
        if depth > _DEEPEST:
            raise QueryError(f"{self.name} is nested more than {_DEEPEST} deep. {_NEXT}")
        if self.take("NOT"):
            return Not(self._negation(depth + 1))
        if self.take("("):
            condition = self.any_of(depth + 1)
            self.need(")")
            return condition
        return self._test()

    def _test(self) -> Condition:
        kind, token = self.peek()
        if kind not in ("word", "quoted"):
            raise QueryError(f"{self.name} has {token!r} where a column was expected. {_NEXT}")
        self.at += 1
        column = token.replace('""', '"') if kind == "quoted" else token
        if self.take("IS"):
            negated = self.take("NOT")
            self.need("NULL")
            return Not(IsNull(column)) if negated else IsNull(column)
        negated = self.take("NOT")
        self._refuse_words_of_sql(column)
        if negated or self.peek() == ("sign", "IN"):
            self.need("IN")
            self.need("(")
            values = [self._literal()]
            while self.take(","):
                values.append(self._literal())
            self.need(")")
            return Not(In(column, tuple(values))) if negated else In(column, tuple(values))
        if self.peek() == ("end", "the end") or self.peek() in [("sign", x) for x in ("AND", "OR", ")")]:
            return IsTrue(column)
        operator = self.take("==") or self.need("=", "<>", "!=", "<", "<=", ">", ">=")
        return Compare(column, _OTHERWISE.get(operator, operator), self._literal())  # type: ignore[arg-type]

    def _refuse_words_of_sql(self, column: str) -> None:
        kind, token = self.peek()
        if kind == "word" and token.upper() in _NOT_OFFERED:
            instead = _NOT_OFFERED[token.upper()].format(column)
            raise QueryError(f"{self.name} has {token}, which is not offered: {instead}")

    def _literal(self) -> Value:
        kind, token = self.peek()
        if kind == "number":
            self.at += 1
            value = float(token)
            if abs(value) == float("inf") or (re.fullmatch(r"[+-]?\d+", token) and int(token) != value):
                raise QueryError(
                    f"{self.name} has the number {token}, which is too large to be compared exactly. {_NEXT}"
                )
            return value
        if kind == "text":
            self.at += 1
            return token.replace("''", "'")
        if word := self.take("TRUE", "FALSE"):
            return word == "TRUE"
        quotes = "A text stands in single quotes; double quotes name a column. " if kind == "quoted" else ""
        raise QueryError(
            f"{self.name} has {token!r} where a number, 'text', TRUE or FALSE was expected. {quotes}{_NEXT}"
        )
