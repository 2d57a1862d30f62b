"""accord a second time: slow, plain Python over a list of rows, to compare with what engines make of them.

It shares no code with the rest of accord, so that a mistake would have to be made twice.

    persons = people(rows, epsilon="level", user="id")   who has which level: [Person, …]
    spec(persons)                                        {level: people}, and how many opted out
    summary(question, persons)                           the exact integers behind an answer
    most_charge(level, share), chance(level, t)          what they pay at most; how likely `sample` keeps them

A row is a dict, with values as they stand in the table. A question is a dict of what its function in accord
takes, and the name of that: {"statistic": "mean", "column": "x", "bounds": (0, 100)}. Levels are whole
millionths; public people have inf. What a value is, and what a `where` means, is in reference_values.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import product
from math import floor, gcd, inf, isfinite, lcm, nextafter
from typing import Any, TypeAlias

from accord.lab.audit.reference_values import (
    MILLION,
    NUMBER,
    Refused,
    Row,
    compare,
    condition,
    decimal,
    is_null,
    number,
    since_1970,
    spelled,
)

PUBLIC, HALF, DAY = inf, Fraction(1, 2), 86_400
COMING = ("add-remove", "private-levels")
"""Neighbors are tables with and without somebody."""
FARTHEST, FINER, BETWEEN_EDGES, Q = 2**50, 2**10, 2**32, 2**9
"""Of people with many rows: the most steps that one lies from the lower bound, parts of a step for sums,
steps between the first and the last edge of a histogram. Of regressions: steps from the middle to a bound."""
REST = object()
"""The group of whoever has a value that is none of the keys."""
_OF_GROUPS = ("where", "by", "keys", "rest", "membership")

Question: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Person:
    level: float
    """In millionths; 0: opted out, inf: public."""
    rows: tuple[Row, ...]
    name: str | None
    """Whose rows they are; None: no column says so, and there is one."""


# ---- who has which level -----------------------------------------------------------------------------------


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

    `roster`: under add-remove, the levels of people who could be there; of private levels, those that there
    are. Who has another level is not read.
    """
    by_person: dict[Any, list[Row]] = {}
    for place, row in enumerate(rows):
        by_person.setdefault(place if user is None else identity(row[user]), []).append(row)
    nobody = by_person.pop(None, [])
    levels = {who: [_level(row, epsilon, tiers, default) for row in by_person[who]] for who in by_person}
    if roster is None:
        for bad, text in ((None, "no level"), (-1, "a level that is none")):
            if count := sum(bad in of_rows for of_rows in levels.values()):
                raise Refused(f"{count} of {len(by_person)} people have {text}")
        if nobody:
            raise Refused(f"{len(nobody)} rows are of nobody")
    strictest = {who: min(max(0, level or 0) for level in of_rows) for who, of_rows in levels.items()}
    names = {who: None if user is None else who for who in by_person}
    persons = [Person(strictest[who], tuple(by_person[who]), names[who]) for who in by_person]
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


# ---- cells of a grid ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """The points low + k·step for k = 0 … cells, of numbers, days or seconds since 1970."""

    low: Fraction
    high: Fraction
    step: Fraction
    missing: int | None
    """The cell of a missing value; None: whoever has none is left out."""
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
        seconds = since_1970(value)
        if seconds is None:
            return None
        return float(seconds // DAY * DAY) if self.kind is date else float(seconds * MILLION) / 1e6


def value_kind(end: Any) -> type:
    """Whether a declared end is a timestamp, a date or a number."""
    return next((kind for kind in (datetime, date) if isinstance(end, kind)), float)


def grid(question: Question) -> Grid:
    """Of a mean, a proportion, a sum, a number of rows, a quantile, a min or a max."""
    if question["statistic"] in ("rows", "proportion"):
        return Grid(Fraction(0), Fraction(question.get("max", 1)), Fraction(1), 0)
    (low, high), step, missing = question["bounds"], question.get("step"), question.get("missing", "exclude")
    kind = value_kind(low)
    points = 2**20 if question["statistic"] in ("mean", "sum", "variance", "std") else 2**16
    exact: Any = decimal if kind is float else since_1970
    low, high = exact(low), exact(high)
    if step is None:
        size = Fraction(DAY) if kind is date else (high - low) / points
    elif isinstance(step, timedelta):
        size = Fraction(step // timedelta(microseconds=1), MILLION)
    else:
        size = decimal(step) * (DAY if kind is date else 1)
        size = size if (high - low) % size == 0 else Fraction(step)
    if missing == "exclude":
        return Grid(low, high, size, None, kind)
    at = (low + high) / 2 if missing in ("middle", "none") else exact(missing)
    return Grid(low, high, size, floor((at - low) / size + HALF), kind)


def excludes(question: Question) -> bool:
    """Whether it is about those who have a value: by default, of every question that reads values."""
    if question["statistic"] in ("count", "rows", "histogram"):
        return False
    if question["statistic"] == "proportion":  # whether a value is missing can be told of everyone
        tests = re.split(r"\b(?:AND|OR|NOT(?! NULL))\b|[()]", question["condition"])
        if all(re.fullmatch(r"\s*|\s*\w+ IS (NOT )?NULL\s*", test) for test in tests):
            return False
    return bool(question.get("missing", "exclude") == "exclude")


def cell(
    x: float | None, low: float, high: float, factor: float, cells: int, missing: int | None
) -> int | None:
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


# ---- the integers behind an answer -------------------------------------------------------------------------


def membership(question: Question) -> Callable[[Row], int | None] | None:
    """Which group a row is of, None: of none. No function where a question is about everyone."""
    where, by = question.get("where"), question.get("by")
    if question["statistic"] == "count" and by is None:
        where = None  # it is what is counted
    meets = None if where is None else condition(where)

    def place(row: Row) -> int | None:
        if meets is not None and meets(row) is not True:
            return None
        if by is None:
            return 0
        combination = []
        for column, labels in labels_of(question).items():
            k = place_of(row, column, [label for label in labels if label is not REST])
            if k is None and (REST not in labels or is_null(row[column])):
                return None
            combination.append(REST if k is None else labels[k])
        group = combination[0] if isinstance(by, str) else tuple(combination)
        return groups_of(question).index(group)

    return None if where is None and by is None else place


def groups_of(question: Question) -> list[Any]:
    """What groups there are: keys, or combinations of those of several columns; one, where there are none.

    The rest of a column is REST.
    """
    if question.get("by") is None:
        return [None]
    columns = labels_of(question).values()
    return list(*columns) if isinstance(question["by"], str) else [*product(*columns)]


def labels_of(question: Question) -> dict[str, list[Any]]:
    """The keys of each column of groups, and the REST of those that have one."""
    by, keys, rest = question["by"], question["keys"], question.get("rest")
    columns = [by] if isinstance(by, str) else by
    return {
        column: [
            *(keys[column] if isinstance(keys, Mapping) else keys),
            *([REST] if (rest.get(column) if isinstance(rest, Mapping) else rest) is not None else []),
        ]
        for column in columns
    }


def place_of(row: Row, column: str, values: Sequence[Any]) -> int | None:
    """The place of the declared value that a row has."""
    return next((k for k, value in enumerate(values) if compare(row[column], "=", value)), None)


def most_frequent(places: Iterable[int | None], values: Sequence[Any], name: str | None) -> list[int]:
    """The places that somebody's rows have, the most frequent first; of equal ones, the lower hash first."""
    times = Counter(k for k in places if k is not None)
    return sorted(times, key=lambda k: (-times[k], tie(name, values[k])))


def tie(name: str | None, value: Any) -> int:
    """A public hash of somebody and a category: 63 bits of SHA-256."""
    spelled = "/".join(map(_spelled, value if isinstance(value, tuple) else (value,)))
    return int(sha256(f"{name}:{spelled}".encode()).hexdigest()[:16], 16) >> 1


def _spelled(value: Any) -> str:
    if value is REST:
        return "rest"
    if isinstance(value, bool):
        return str(value).lower()
    return value.encode().hex() if isinstance(value, str) else repr(float(value))


def integer(question: Question, rows: Sequence[Row], has_id: bool) -> int | None:
    """What a person's rows come to: a cell of a grid, a number of rows, 1 or 0; None: in no cell."""
    statistic, where = question["statistic"], question.get("where")
    come_to = question.get("per_person", statistic)
    if statistic == "count":
        return int(where is None or "by" in question or any(condition(where)(row) for row in rows))
    if statistic == "rows":
        return min(int(question["max"]), len(rows))
    if statistic == "proportion":
        outcomes = [condition(question["condition"])(row) for row in rows]
        if True not in outcomes and False not in outcomes and excludes(question):
            return None
        return int(True in outcomes)
    on = grid(question)
    low, factor = float(on.low), on.factor
    values = [on.read(row[question["column"]]) for row in rows]
    if not has_id:
        return cell(values[0], low, float(on.high), factor, on.cells, on.missing)
    present = [x for x in values if x is not None]
    if not present:
        return on.missing
    if come_to == "sum":  # Σx − low = Σ(x − low) + (rows − 1)·low
        finer = FINER if max(abs(on.low), abs(on.high)) / on.step < FARTHEST // (4 * FINER) else 1
        again = (len(present) - 1) * floor(on.low / on.step * finer + HALF)
        return nearest(sum(steps(x, low, factor * finer) for x in present) + again, finer, on.cells)
    whole = [steps(x, low, factor) for x in present]
    if come_to in ("min", "max"):
        return nearest(min(whole) if come_to == "min" else max(whole), 1, on.cells)
    return nearest(sum(whole), len(whole), on.cells)


def bins(question: Question, rows: Sequence[Row], name: str | None) -> list[int]:
    """Of a histogram: in which cells somebody is."""
    if "categories" not in question:
        place = _bin(question, rows, name is not None)
        return [] if place is None else [place]
    column, categories, missing = question["column"], question["categories"], question.get("missing")
    places = most_frequent((place_of(row, column, categories) for row in rows), categories, name)
    at_most = 1 if "by" in question else question.get("at_most", 1)
    in_no_cell = missing in (None, "exclude")
    return places[:at_most] or ([] if in_no_cell else [[*categories, missing].index(missing)])


def _bin(question: Question, rows: Sequence[Row], has_id: bool) -> int | None:
    """Of a histogram with edges: cells [e0, e1), [e1, e2), …, others in the end cells; None: in none."""
    column, missing = question["column"], question.get("missing")
    kind = value_kind(question["edges"][0])
    edges: list[Any] = [(decimal if kind is float else since_1970)(edge) for edge in question["edges"]]
    on = Grid(edges[0], edges[-1], edges[-1] - edges[0], 0, kind)
    values = [x for x in (on.read(row[column]) for row in rows) if x is not None]
    if not values:
        if missing in (None, "exclude"):
            return None
        middle = sum(edge <= (edges[0] + edges[-1]) / 2 for edge in edges[1:-1])
        return middle if missing in ("none", "middle") else len(edges) - 1
    if not has_id:
        return sum(values[0] >= float(edge) for edge in edges[1:-1])
    low, factor = float(edges[0]), _steps_between(edges)
    whole, come_to = [steps(x, low, factor) for x in values], question.get("per_person", "mean")
    again = (len(whole) - 1) * floor(edges[0] * Fraction(factor) + HALF)
    numbers = {
        "mean": Fraction(sum(whole), len(whole)),
        "sum": Fraction(sum(whole) + again),
        "min": Fraction(min(whole)),
        "max": Fraction(max(whole)),
    }
    return sum(numbers[come_to] >= steps(float(edge), low, factor) for edge in edges[1:-1])


def _steps_between(edges: Sequence[Fraction]) -> float:
    """How many steps a unit has: 2ᵏ for each unit of the edges' last digit, if there is room for that."""
    finest, width = lcm(*(edge.denominator for edge in edges)), edges[-1] - edges[0]
    if finest * width > BETWEEN_EDGES:
        return BETWEEN_EDGES / float(width)
    while 2 * finest * width <= BETWEEN_EDGES:
        finest *= 2
    return float(finest)


def moments(question: Question, rows: Sequence[Row], whose: str | None) -> list[int]:
    """Of a regression: the target, each column, their products with it and with each other, squares; and 1.

    Columns of one category are never multiplied with each other, nor squared: that is public. Nothing of
    somebody who lacks a column and is left out.
    """
    if excludes(question):
        numbers, categories = question["bounds"], question.get("categories") or {}
        lacks_number = any(all(number(row[name]) is None for row in rows) for name in numbers)
        places = [[place_of(row, name, values) for row in rows] for name, values in categories.items()]
        if lacks_number or any(all(place is None for place in of_rows) for of_rows in places):
            return []
    has_id = whose is not None
    y = _code(question["target"], question, rows, has_id)
    xs: list[tuple[int, str | None]] = []  # with the category that they are of
    for name in question["features"]:
        if name in question["bounds"]:
            xs.append((_code(name, question, rows, has_id), None))
        else:
            declared = question["categories"][name]
            which, *_ = [*most_frequent((place_of(row, name, declared) for row in rows), declared, whose), 0]
            xs += [(Q if which == k else -Q, name) for k in range(1, len(declared))]
    pairs = [(a, b) for k, a in enumerate(xs) for b in xs[k + 1 :] if a[1] is None or a[1] != b[1]]
    products = [y * x for x, _ in xs] + [a * b for (a, _), (b, _) in pairs]
    return [Q * y, *(Q * x for x, _ in xs), *products, *(x * x for x, of in xs if of is None), 1]


def _of_two(question: Question, rows: Sequence[Row], has_id: bool, partly: bool) -> list[int]:
    """Of a covariance: both columns and their product; of some people, what they add to each corner.

    Of a correlation, both squares as well.
    """
    names = question["column"], question["other"]
    if excludes(question) and any(all(number(row[name]) is None for row in rows) for name in names):
        return []
    x, y = (_code(name, question, rows, has_id) for name in names)
    at_corners = [(Q + x) * (Q + y), (Q + x) * (Q - y), (Q - x) * (Q + y), (Q - x) * (Q - y)]
    if question["statistic"] == "covariance":
        return at_corners if partly else [Q * x, Q * y, x * y]
    return [*at_corners, 2 * x * x, 2 * y * y] if partly else [2 * Q * x, 2 * Q * y, 2 * x * y, x * x, y * y]


def _code(column: str, question: Question, rows: Sequence[Row], has_id: bool) -> int:
    """A number as one of 2Q + 1 steps between its bounds, from −Q to Q; the middle where it is missing."""
    low, high = (float(decimal(end)) for end in question["bounds"][column])
    factor, values = 2 * Q / (high - low), [number(row[column]) for row in rows]
    if not has_id:
        code = cell(values[0], low, high, factor, 2 * Q, Q)
        assert code is not None
        return code - Q
    present = [steps(x, low, factor) for x in values if x is not None]
    return (nearest(sum(present), len(present), 2 * Q) if present else Q) - Q


def summary(
    question: Question, persons: Iterable[Person], neighbors: str = "replace", each: bool = False
) -> list[dict[float, dict[int, int]]]:
    """For each group (one, without keys) {level: {output or point of the grid: sum}}, without zeros.

    Who opted out is not read. Somebody with rows in several groups is in the most frequent. `each`: how many
    people have each integer, as `sample` needs it.
    """
    place = membership(question)
    keys = groups_of(question)
    sums: list[dict[float, Counter[int]]] = [{} for _ in keys]
    for person in persons:
        places = [0 if place is None else place(row) for row in person.rows]
        by_frequency = most_frequent(places, keys, person.name) if len(keys) > 1 else [0]
        at_most = question.get("at_most", 1) if len(keys) > 1 else 1
        partly = place is not None or excludes(question)
        for chosen in by_frequency[:at_most] if person.level else []:
            rows = [row for row, k in zip(person.rows, places, strict=True) if k == chosen]
            at = sums[chosen].setdefault(person.level, Counter())
            for output, amount in _added(question, rows, person.name, partly, neighbors, each):
                at[output] += amount
    nonzero = [{level: {k: a for k, a in at.items() if a} for level, at in group.items()} for group in sums]
    return [{level: at for level, at in group.items() if at} for group in nonzero]


def _added(
    question: Question, rows: Sequence[Row], name: str | None, partly: bool, neighbors: str, each: bool
) -> list[tuple[int, int]]:
    """What one person with these rows of a part adds, and where."""
    statistic = question["statistic"]
    additive = statistic in ("mean", "proportion", "sum", "rows")
    # who is outside is there, and adds 0
    stays = partly and neighbors == "replace" and _stays(question)
    if not rows and not (stays and statistic in ("sum", "rows")):
        return []
    if statistic == "regression":
        return [*enumerate(moments(question, rows, name))]
    if statistic in ("covariance", "correlation"):
        return [*enumerate(_of_two(question, rows, name is not None, partly or neighbors in COMING))]
    if statistic == "histogram":
        return [(k, 1) for k in bins(question, rows, name)]
    k = integer(question, rows, name is not None) if rows else None
    if additive and stays and statistic in ("sum", "rows"):
        on = grid(question)
        worth = Fraction(0) if k is None else on.low + k * on.step
        k = int((worth - min(Fraction(0), on.low)) / _common(on.low, on.step))
    elif k is not None and additive and (partly or neighbors in COMING) and not each:
        span = grid(question).cells
        return [(0, 2 * k - span), (1, span)] if stays else [(0, k), (1, span - k)]
    if k is None:
        return []
    if statistic in ("variance", "std") and not each:
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
    place = membership({"statistic": "", **{k: question.get(k) for k in ("where", "by", "keys", "rest")}})
    groups: list[list[Person]] = [[] for _ in groups_of(question)]
    for person in persons:
        places = [None if place is None else place(row) for row in person.rows]
        inside = {k for k in places if k is not None}
        if len(inside) > 1:
            raise Refused("people have rows in several groups")
        for k in inside:
            rows = tuple(row for row, at in zip(person.rows, places, strict=True) if at == k)
            groups[k].append(replace(person, rows=rows))
    return {k: v for k, v in question.items() if k not in _OF_GROUPS}, groups


# ---- charges and chances -----------------------------------------------------------------------------------


def _stays(question: Question) -> bool:
    """Whether the answer bears at one charge whatever somebody changes, under replace: with one part.

    Which groups are left out is told by answers under add-remove. Counts have these anyway, at one charge.
    """
    once = ("mean", "proportion", "sum", "rows", "median", "quantile", "min", "max", "regression")
    return len(groups_of(question)) == 1 and question["statistic"] in once and not question.get("suppress")


def times(question: Question, neighbors: str = "replace") -> int:
    """How many times a person may count in an answer: twice where they may move between private groups.

    And that for each of the groups that they may be in; of a count, no more often than there are groups.
    """
    at_most: int = question.get("at_most", 1) if "by" in question else 1
    if (membership(question) is None and not excludes(question)) or neighbors in COMING:
        return at_most
    if _stays(question):
        return 1
    return min(2 * at_most, len(groups_of(question))) if question["statistic"] == "count" else 2 * at_most


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
    if neighbors in COMING:  # (e^ε − 1)/(e^t − 1)
        below = reckon.subtract(reckon.exp(s), one)
    else:  # (e^ε − 1)/[(e^s − 1) + e^ε(1 − e^−s)] for s = t/2
        s = reckon.divide(s, Decimal(2))
        second = reckon.multiply(reckon.exp(e), reckon.subtract(one, reckon.exp(-s)))
        below = reckon.add(reckon.subtract(reckon.exp(s), one), second)
    pi = reckon.divide(reckon.subtract(reckon.exp(e), one), below)
    off = Decimal("1e-45")  # of 60 digits a difference loses at most seven
    low, high = (reckon.multiply(pi, reckon.add(one, sign)) for sign in (-off, off))
    return Fraction(low), Fraction(high)
