"""accord a second time: slow, plain Python over a list of rows, to compare with what engines make of them.

It shares no code with the rest of accord, so that a mistake would have to be made twice.

    persons = people(rows, epsilon="level", user="id")   who has which level: [Person, …]
    spec(persons)                                        {level: people}, and how many opted out
    summary(question, persons)                           the exact integers behind an answer
    most_charge(level, share), chance(level, t)          what they pay at most; how likely `sample` keeps them

A row is a dict, with values as they stand in the table. A question is a dict of what its function in accord
takes, and the name of that: {"statistic": "mean", "column": "x", "bounds": (0, 100)}. Levels are whole
millionths; public people have inf. None, NaN, ±inf and what cannot be read are missing.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from math import floor, gcd, inf, isfinite, nextafter
from typing import Any, TypeAlias

MILLION, PUBLIC, HALF = 10**6, inf, Fraction(1, 2)
FARTHEST, FINER, BETWEEN_EDGES, Q = 2**50, 2**10, 2**32, 2**9
"""Of people with many rows: the most steps that one lies from the lower bound, parts of a step for sums,
steps between the first and the last edge of a histogram. Of regressions: steps from the middle to a bound."""
EPOCH, DAY = datetime(1970, 1, 1), 86_400
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"

Row: TypeAlias = Mapping[str, Any]
Question: TypeAlias = Mapping[str, Any]
Truth: TypeAlias = bool | None
Tokens: TypeAlias = list[tuple[str, str]]


class Refused(ValueError):  # noqa: N818  as a mechanism's
    """What accord must refuse, too."""


@dataclass(frozen=True)
class Person:
    level: float
    """In millionths; 0: opted out, inf: public."""
    rows: tuple[Row, ...]
    named: bool
    """Whether a column says whose rows they are; otherwise there is one."""


# ---- who has which level


def millionths(level: Any) -> float:
    """A level in whole millionths, rounded down by its decimal value.

    >>> millionths(0.29), millionths("2.9999999"), millionths(inf)
    (290000, 2999999, inf)
    """
    text = level.strip(" ") if isinstance(level, str) else str(level)
    if re.fullmatch(r"\+?inf(inity)?", text, re.IGNORECASE):
        return PUBLIC
    if not re.fullmatch(NUMBER, text) or not 0 <= Decimal(text) <= MILLION:
        raise Refused("a level is not a number from 0 to a million, nor inf")
    return 0 if Decimal(text) < Decimal("1e-6") else floor(Fraction(text) * MILLION)


def people(
    rows: Iterable[Row],
    *,
    epsilon: str | float,
    tiers: Mapping[Any, Any] | None = None,
    default: Any = None,
    user: str | None = None,
    roster: Sequence[float] | None = None,
) -> list[Person]:
    """Everyone with their rows and the strictest level of these.

    `roster`: under add-remove, the levels of people who could be there. Who has another level is not read.
    """
    own: dict[Any, list[Row]] = {}
    for place, row in enumerate(rows):
        own.setdefault(place if user is None else identity(row[user]), []).append(row)
    nobody = own.pop(None, [])
    levels = {who: [_level(row, epsilon, tiers, default) for row in held] for who, held in own.items()}
    if roster is None:
        for bad, what in ((None, "no level"), (-1, "a level that is none")):
            if count := sum(bad in found for found in levels.values()):
                raise Refused(f"{count} of {len(own)} people have {what}")
        if nobody:
            raise Refused(f"{len(nobody)} rows are of nobody")
    strictest = {who: min(max(0, level or 0) for level in found) for who, found in levels.items()}
    persons = [Person(strictest[who], tuple(held), user is not None) for who, held in own.items()]
    return persons if roster is None else [person for person in persons if person.level in {*roster}]


def _level(row: Row, epsilon: str | float, tiers: Mapping[Any, Any] | None, default: Any) -> float | None:
    """Of one row. −1: it is not a level, None: there is none."""
    if not isinstance(epsilon, str):
        return millionths(epsilon)
    declared = {spelled(name): millionths(level) for name, level in (tiers or {}).items()}
    if row[epsilon] is None:
        if default is None:
            return None
        return declared[default] if isinstance(default, str) else millionths(default)
    if tiers is not None:
        return declared.get(spelled(row[epsilon]), -1)
    try:
        return millionths(row[epsilon])
    except Refused:
        return -1


def identity(name: Any) -> str | None:
    """Who a row is of, compared as text: 7, 7.0 and ' 7' are one person. None: nobody."""
    if isinstance(name, int | float | Decimal):
        if not isfinite(name):
            return None
        name = int(name) if name == int(name) else name
    text = None if name is None else unicodedata.normalize("NFC", str(name)).strip(" \t\r\n\ufeff\u00a0")
    return None if text is None else re.sub(r"\.0+\Z", "", text)


def spec(persons: Iterable[Person]) -> tuple[dict[float, int], int]:
    """How many people have each level, and how many opted out."""
    counts = Counter(person.level for person in persons)
    opted_out = counts.pop(0, 0)
    return dict(counts), opted_out


# ---- values


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
    found = moment(value)
    return None if found is None else Fraction((found - EPOCH) // timedelta(microseconds=1), MILLION)


def spelled(value: Any) -> str:
    """As engines print it: true, 1, 1.0, strict."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def decimal(x: Any) -> Fraction:
    """A declared number by its decimal value: 0.1 is one tenth."""
    return Fraction(str(x)) if isinstance(x, float) else Fraction(x)


@dataclass(frozen=True)
class Grid:
    """The points low + k·step for k = 0 … cells, of numbers, days or seconds since 1970."""

    low: Fraction
    high: Fraction
    step: Fraction
    missing: int
    """The cell of a missing value."""
    kind: type = float

    @property
    def cells(self) -> int:
        return int((self.high - self.low) / self.step)

    @property
    def factor(self) -> float:
        """1/step as a double, or a little less, so that no double below `high` comes out above `cells`."""
        width = nextafter(float(self.high), -inf) - float(self.low)
        factor = float(1 / self.step)
        if width > 0:
            factor = min(factor, (self.cells + 0.5) / width)
        while width * factor + 0.5 >= self.cells + 1:
            factor = nextafter(factor * (1 - 2**-50), 0)
        return factor

    def read(self, value: Any) -> float | None:
        """A value as a double; None: missing."""
        if self.kind is float:
            return number(value)
        found = since_1970(value)
        if found is None:
            return None
        return float(found // DAY * DAY) if self.kind is date else float(found * MILLION) / 1e6


def grid(question: Question) -> Grid:
    """Of a mean, a sum, a number of rows, a quantile, a min or a max."""
    if question["statistic"] == "rows":
        return Grid(Fraction(0), Fraction(question["max"]), Fraction(1), 0)
    (low, high), step, missing = question["bounds"], question.get("step"), question.get("missing", "middle")
    kind = datetime if isinstance(low, datetime) else date if isinstance(low, date) else float
    points = 2**20 if question["statistic"] in ("mean", "sum", "variance") else 2**16
    exact: Any = decimal if kind is float else since_1970
    low, high = exact(low), exact(high)
    if step is None:
        size = Fraction(DAY) if kind is date else (high - low) / points
    elif isinstance(step, timedelta):
        size = Fraction(step // timedelta(microseconds=1), MILLION)
    else:
        size = decimal(step) * (DAY if kind is date else 1)
        size = size if (high - low) % size == 0 else Fraction(step)
    at = (low + high) / 2 if missing in ("middle", "exclude") else exact(missing)
    return Grid(low, high, size, floor((at - low) / size + HALF), kind)


def cell(x: float | None, low: float, high: float, factor: float, cells: int, missing: int) -> int:
    """The nearest cell of a double, reckoned in doubles; what lies outside is at the nearer end."""
    if x is None:
        return missing
    return 0 if x < low else cells if x >= high else min(cells, floor((x - low) * factor + 0.5))


def steps(x: float, low: float, factor: float) -> int:
    """The same without ends, for one of many rows."""
    if x >= low + FARTHEST / factor:
        return FARTHEST
    return -FARTHEST if x < low - FARTHEST / factor else floor((x - low) * factor + 0.5)


def nearest(total: int, parts: int, cells: int) -> int:
    """total/parts, rounded, and then moved to 0 … cells."""
    return max(0, min(cells, floor(Fraction(total, parts) + HALF)))


# ---- conditions

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
    found = [*truths]
    return True if True in found else None if None in found else False


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
    found = _either(tokens)
    if tokens:
        raise Refused("where= goes on after a whole condition")
    return found


def _took(tokens: Tokens, *signs: str) -> bool:
    """Whether these signs come next; then they are taken."""
    there = tokens[: len(signs)] == [("sign", sign) for sign in signs]
    del tokens[: len(signs) if there else 0]
    return there


def _either(tokens: Tokens) -> Callable[[Row], Truth]:
    parts = [_all(tokens)]
    while _took(tokens, "OR"):
        parts.append(_all(tokens))
    return lambda row: either(part(row) for part in parts)


def _all(tokens: Tokens) -> Callable[[Row], Truth]:
    parts = [_test(tokens)]
    while _took(tokens, "AND"):
        parts.append(_test(tokens))
    return lambda row: negated(either(negated(part(row)) for part in parts))


def _test(tokens: Tokens) -> Callable[[Row], Truth]:
    if _took(tokens, "NOT"):
        inner = _test(tokens)
        return lambda row: negated(inner(row))
    if _took(tokens, "("):
        inner = _either(tokens)
        _took(tokens, ")")
        return inner
    kind, name = tokens.pop(0)
    column = name.replace('""', '"') if kind == "name" else name
    if _took(tokens, "IS", "NULL"):
        return lambda row: _is_null(row[column])
    if _took(tokens, "IS", "NOT", "NULL"):
        return lambda row: not _is_null(row[column])
    outside = _took(tokens, "NOT")
    if _took(tokens, "IN", "("):
        values = [_literal(tokens)]
        while _took(tokens, ","):
            values.append(_literal(tokens))
        _took(tokens, ")")
        if outside:
            return lambda row: negated(either(compare(row[column], "=", value) for value in values))
        return lambda row: either(compare(row[column], "=", value) for value in values)
    sign, literal = tokens.pop(0)[1], _literal(tokens)
    return lambda row: compare(row[column], sign, literal)


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float | Decimal) and number(value) is None)


def _literal(tokens: Tokens) -> Any:
    kind, token = tokens.pop(0)
    if kind == "number":
        return float(token)
    return token.replace("''", "'") if kind == "text" else token == "TRUE"


# ---- the integers behind an answer


def membership(question: Question) -> Callable[[Row], int | None] | None:
    """Which group a row is of, None: of none. No function where a question is about everyone."""
    where, by = question.get("where"), question.get("by")
    if question["statistic"] == "count" and by is None:
        where = None  # it is what is counted
    meets = None if where is None else condition(where)
    on = grid(question) if question.get("missing") == "exclude" else None

    def place(row: Row) -> int | None:
        if meets is not None and meets(row) is not True:
            return None
        if on is not None and on.read(row[question["column"]]) is None:
            return None
        return 0 if by is None else first([row], by, question["keys"])

    return None if where is None and by is None and on is None else place


def first(rows: Iterable[Row], column: str, values: Sequence[Any]) -> int | None:
    """The place of the first declared value that any row has."""
    for place, value in enumerate(values):
        if any(compare(row[column], "=", value) for row in rows):
            return place
    return None


def integer(question: Question, rows: Sequence[Row], named: bool) -> int | None:
    """What a person's rows come to: a cell, a number of rows, 1 or 0; None: in no cell."""
    statistic, where = question["statistic"], question.get("where")
    if statistic == "count":
        return int(where is None or "by" in question or any(condition(where)(row) for row in rows))
    if statistic == "rows":
        return min(int(question["max"]), len(rows))
    if statistic == "histogram":
        return _bin(question, rows, named)
    on = grid(question)
    low, factor = float(on.low), on.factor
    values = [on.read(row[question["column"]]) for row in rows]
    if not named:
        return cell(values[0], low, float(on.high), factor, on.cells, on.missing)
    there = [x for x in values if x is not None]
    if not there:
        return on.missing
    if statistic == "sum":  # Σx − low = Σ(x − low) + (rows − 1)·low
        finer = FINER if max(abs(on.low), abs(on.high)) / on.step < FARTHEST // (4 * FINER) else 1
        again = (len(there) - 1) * floor(on.low / on.step * finer + HALF)
        return nearest(sum(steps(x, low, factor * finer) for x in there) + again, finer, on.cells)
    whole = [steps(x, low, factor) for x in there]
    if statistic in ("min", "max"):
        return nearest(min(whole) if statistic == "min" else max(whole), 1, on.cells)
    return nearest(sum(whole), len(whole), on.cells)


def _bin(question: Question, rows: Sequence[Row], named: bool) -> int | None:
    """Of a histogram: cells [e0, e1), [e1, e2), …, others in the end cells; or a cell a category."""
    column, missing = question["column"], question.get("missing")
    if "categories" in question:
        found = first(rows, column, question["categories"])
        cells = [*question["categories"], missing]
        return found if found is not None or missing is None else cells.index(missing)
    edges = [decimal(edge) for edge in question["edges"]]
    values = [x for x in (number(row[column]) for row in rows) if x is not None]
    if not values:
        middle = sum(edge <= (edges[0] + edges[-1]) / 2 for edge in edges[1:-1])
        return middle if missing in (None, "middle") else len(edges) - 1
    if not named:
        return sum(values[0] >= float(edge) for edge in edges[1:-1])
    low, factor = float(edges[0]), BETWEEN_EDGES / float(edges[-1] - edges[0])
    mean = Fraction(sum(steps(x, low, factor) for x in values), len(values))
    return sum(mean >= steps(float(edge), low, factor) for edge in edges[1:-1])


def moments(question: Question, rows: Sequence[Row], named: bool) -> list[int]:
    """Of a regression: the target, each column, their products with it and with each other, squares; and 1.

    Columns of one category are never multiplied with each other, nor squared: that is public.
    """
    y = _code(question["target"], question, rows, named)
    xs: list[tuple[int, str | None]] = []  # with the category that they are of
    for name in question["features"]:
        if name in question["bounds"]:
            xs.append((_code(name, question, rows, named), None))
        else:
            which = first(rows, name, question["categories"][name]) or 0
            xs += [(Q if which == k else -Q, name) for k in range(1, len(question["categories"][name]))]
    pairs = [(a, b) for k, a in enumerate(xs) for b in xs[k + 1 :] if a[1] is None or a[1] != b[1]]
    products = [y * x for x, _ in xs] + [a * b for (a, _), (b, _) in pairs]
    return [Q * y, *(Q * x for x, _ in xs), *products, *(x * x for x, of in xs if of is None), 1]


def _code(column: str, question: Question, rows: Sequence[Row], named: bool) -> int:
    """A number as one of 2Q + 1 steps between its bounds, from −Q to Q; the middle where it is missing."""
    low, high = (float(decimal(end)) for end in question["bounds"][column])
    factor, values = 2 * Q / (high - low), [number(row[column]) for row in rows]
    if not named:
        return cell(values[0], low, high, factor, 2 * Q, Q) - Q
    there = [steps(x, low, factor) for x in values if x is not None]
    return (nearest(sum(there), len(there), 2 * Q) if there else Q) - Q


def summary(
    question: Question, persons: Iterable[Person], neighbors: str = "replace", each: bool = False
) -> list[dict[float, dict[int, int]]]:
    """For each group (one, without keys) {level: {output or point of the grid: sum}}, without zeros.

    Who opted out is not read. Somebody with rows in several groups is in the first. `each`: how many people
    have each integer, as `sample` needs it.
    """
    place = membership(question)
    sums: list[dict[float, Counter[int]]] = [{} for _ in question.get("keys") or [None]]
    for person in persons:
        places = [0 if place is None else place(row) for row in person.rows]
        inside = [k for k in places if k is not None]
        rows = [row for row, k in zip(person.rows, places, strict=True) if k is not None]
        if person.level:
            at = sums[min(inside, default=0)].setdefault(person.level, Counter())
            for output, amount in _added(question, rows, person.named, place is not None, neighbors, each):
                at[output] += amount
    found = [{level: {k: a for k, a in at.items() if a} for level, at in group.items()} for group in sums]
    return [{level: at for level, at in group.items() if at} for group in found]


def _added(
    question: Question, rows: Sequence[Row], named: bool, partly: bool, neighbors: str, each: bool
) -> list[tuple[int, int]]:
    """What one person with these rows of a part adds, and where."""
    statistic = question["statistic"]
    additive = statistic in ("mean", "sum", "rows")
    stays = partly and "by" not in question and neighbors == "replace"  # who is outside is there, and adds 0
    if not rows and not (stays and statistic in ("sum", "rows")):
        return []
    if statistic == "regression":
        return [*enumerate(moments(question, rows, named))]
    k = integer(question, rows, named) if rows else None
    if additive and stays and statistic != "mean":
        on = grid(question)
        worth = Fraction(0) if k is None else on.low + k * on.step
        k = int((worth - min(Fraction(0), on.low)) / _common(on.low, on.step))
    elif additive and (partly or neighbors == "add-remove") and not each:
        assert k is not None
        span = grid(question).cells
        return [(0, 2 * k - span), (1, span)] if stays else [(0, k), (1, span - k)]
    if k is None:
        return []
    if statistic == "variance" and not each:
        span = grid(question).cells
        if not partly and neighbors == "replace":
            return [(0, 2 * span * (2 * k - span)), (1, (2 * k - span) ** 2)]
        return [(0, k**2), (1, 2 * k * (span - k)), (2, (span - k) ** 2)]
    return [(0, k)] if (additive or statistic == "count") and not each else [(k, 1)]


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The largest number of which both are whole multiples."""
    whole = gcd(a.numerator * b.denominator, b.numerator * a.denominator)
    return Fraction(whole, a.denominator * b.denominator)


def public_groups(question: Question, persons: Iterable[Person]) -> tuple[Question, list[list[Person]]]:
    """With membership="public": what each group is asked, and its people, with their rows in it alone."""
    place = membership({"statistic": "", **{k: question.get(k) for k in ("where", "by", "keys")}})
    groups: list[list[Person]] = [[] for _ in question.get("keys") or [None]]
    for person in persons:
        places = [None if place is None else place(row) for row in person.rows]
        inside = {k for k in places if k is not None}
        if len(inside) > 1:
            raise Refused("people have rows in several groups")
        for k in inside:
            rows = tuple(row for row, at in zip(person.rows, places, strict=True) if at == k)
            groups[k].append(replace(person, rows=rows))
    return {k: v for k, v in question.items() if k not in ("where", "by", "keys", "membership")}, groups


# ---- charges and chances


def times(question: Question, neighbors: str = "replace") -> int:
    """How often a person may count in an answer: twice where they may move between private groups.

    With a condition alone they stay for sums, and means and quantiles bear at one charge that they come or
    go.
    """
    one = ("mean", "sum", "rows", "median", "quantile", "min", "max")
    stays = "by" not in question and question["statistic"] in one
    return 1 if membership(question) is None or neighbors == "add-remove" or stays else 2


def most_charge(level: float, share: Any = 1, counts: int = 1) -> float:
    """The most that somebody may be charged for each of the times that they count."""
    return level if level in (0, PUBLIC) else floor(decimal(share) * int(level)) // counts


def chance(level: float, t: float, neighbors: str = "replace") -> tuple[Fraction, Fraction]:
    """Two numbers between which lies the chance by which `sample` keeps somebody, for people at level t."""
    if level >= t or level == 0 or t == PUBLIC:
        kept = Fraction(level >= t)
        return kept, kept
    reckon, one = Context(prec=60, Emax=10**8, Emin=-(10**8)), Decimal(1)
    e, s = (Decimal(int(x)).scaleb(-6) for x in (level, t))
    if neighbors == "add-remove":  # (e^ε − 1)/(e^t − 1)
        below = reckon.subtract(reckon.exp(s), one)
    else:  # (e^ε − 1)/[(e^s − 1) + e^ε(1 − e^−s)] for s = t/2
        s = reckon.divide(s, Decimal(2))
        second = reckon.multiply(reckon.exp(e), reckon.subtract(one, reckon.exp(-s)))
        below = reckon.add(reckon.subtract(reckon.exp(s), one), second)
    pi = reckon.divide(reckon.subtract(reckon.exp(e), one), below)
    off = Decimal("1e-45")  # of 60 digits a difference loses at most seven
    low, high = (reckon.multiply(pi, reckon.add(one, sign)) for sign in (-off, off))
    return Fraction(low), Fraction(high)
