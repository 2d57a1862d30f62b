"""The reference's values and conditions: what a value of a row is, and whether a row meets a `where`.

Like reference.py, it shares no code with the rest of accord. None, NaN, ±inf and what cannot be read are
missing; a condition on a missing value is neither true nor false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite
from typing import Any, TypeAlias

MILLION = 10**6
EPOCH = datetime(1970, 1, 1)
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"

Row: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = bool | None
Tokens: TypeAlias = list[tuple[str, str]]


class Refused(ValueError):  # noqa: N818  as a mechanism's
    """What accord must refuse, too."""


def number(value: Any) -> float | None:
    """A value as a double; None: missing."""
    if isinstance(value, str):
        text = value.strip(" \t\n\r\v\f")
        value = float(text) if re.fullmatch(NUMBER, text) else {"true": 1, "false": 0}.get(value.lower())
    x = float(value) if isinstance(value, int | float | Decimal) else inf
    return x if isfinite(x) else None


def moment(value: Any) -> datetime | None:
    """A date, a timestamp or ISO text; None: missing."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if re.fullmatch(MOMENT, value) else None
        except ValueError:
            return None
    return value if isinstance(value, datetime) or value is None else datetime.combine(value, time())


def since_1970(value: Any) -> Fraction | None:
    """In seconds."""
    at = moment(value)
    return None if at is None else Fraction((at - EPOCH) // timedelta(microseconds=1), MILLION)


def spelled(value: Any) -> str:
    """As engines print it: true, 1, 1.0, strict."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def decimal(x: Any) -> Fraction:
    """A declared number by its decimal value: 0.1 is one tenth."""
    return Fraction(str(x)) if isinstance(x, float) else Fraction(x)


# ---- conditions --------------------------------------------------------------------------------------------

_LESS: dict[str, Any] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_EQUAL: dict[str, Any] = {"=": operator.eq, "<>": operator.ne, "!=": operator.ne}
_KEYWORDS = ("AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE")
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER})|'(?P<text>(?:[^']|'')*)'|\"(?P<name>(?:[^\"]|\"\")+)\""
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|[=<>(),]))"
)


def compare(value: Any, sign: str, literal: Any) -> Truth:
    """A test of one value, by the kind of the literal; None where the value is missing."""
    if isinstance(literal, bool):
        value = {"true": True, "false": False}.get(str(value).lower())
    elif isinstance(literal, int | float):
        value, literal = number(value), float(literal)
    elif isinstance(value, date) or sign in _LESS:
        value, literal = moment(value), moment(literal)
    elif value is not None:
        value = spelled(value)
    return None if value is None else bool((_LESS | _EQUAL)[sign](value, literal))


def negated(truth: Truth) -> Truth:
    return None if truth is None else not truth


def either(truths: Iterable[Truth]) -> Truth:
    """True if one is, false if all are, else unknown."""
    seen = {*truths}
    if True in seen:
        return True
    return None if None in seen else False


def condition(text: str) -> Callable[[Row], Truth]:
    """Whether a row meets a `where`; None where a missing value leaves that unknown."""
    tokens: Tokens = []
    at, text = 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Refused("where= cannot be read")
        kind, token, at = match.lastgroup, match[match.lastgroup], match.end()
        is_keyword = kind == "word" and token.upper() in _KEYWORDS
        tokens.append(("sign", token.upper()) if is_keyword else (kind, token))
    whole = _either(tokens)
    if tokens:
        raise Refused("where= goes on after a whole condition")
    return whole


def _take(tokens: Tokens, *signs: str) -> bool:
    """Whether these signs come next; then they are taken."""
    is_next = tokens[: len(signs)] == [("sign", sign) for sign in signs]
    if is_next:
        del tokens[: len(signs)]
    return is_next


def _either(tokens: Tokens) -> Callable[[Row], Truth]:
    parts = [_all(tokens)]
    while _take(tokens, "OR"):
        parts.append(_all(tokens))
    return lambda row: either(part(row) for part in parts)


def _all(tokens: Tokens) -> Callable[[Row], Truth]:
    parts = [_test(tokens)]
    while _take(tokens, "AND"):
        parts.append(_test(tokens))
    return lambda row: negated(either(negated(part(row)) for part in parts))


def _test(tokens: Tokens) -> Callable[[Row], Truth]:
    if _take(tokens, "NOT"):
        inner = _test(tokens)
        return lambda row: negated(inner(row))
    if _take(tokens, "("):
        inner = _either(tokens)
        _take(tokens, ")")
        return inner
    kind, name = tokens.pop(0)
    column = name.replace('""', '"') if kind == "name" else name
    if _take(tokens, "IS", "NULL"):
        return lambda row: is_null(row[column])
    if _take(tokens, "IS", "NOT", "NULL"):
        return lambda row: not is_null(row[column])
    is_negated = _take(tokens, "NOT")
    if _take(tokens, "IN", "("):
        values = [_literal(tokens)]
        while _take(tokens, ","):
            values.append(_literal(tokens))
        _take(tokens, ")")
        if is_negated:
            return lambda row: negated(either(compare(row[column], "=", value) for value in values))
        return lambda row: either(compare(row[column], "=", value) for value in values)
    sign, literal = tokens.pop(0)[1], _literal(tokens)
    return lambda row: compare(row[column], sign, literal)


def is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float | Decimal) and number(value) is None)


def _literal(tokens: Tokens) -> Any:
    kind, token = tokens.pop(0)
    if kind == "number":
        return float(token)
    return token.replace("''", "'") if kind == "text" else token == "TRUE"
