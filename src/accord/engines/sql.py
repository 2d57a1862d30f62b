"""The SQL of each Summary shape, and how a query's integers are written in it.

Names. A user's columns are named in one place only, the innermost SELECT of an engine's `source`, which gives them out as c0, c1, …
From there on every stage has names of its own that no other stage shares, so that no name can mean two things:

    source      c0, c1, …                                  a row's columns, in their order
    placed      p_entry, p_key, p_place                    which of many keys a row has
    people      g_user, g_level, g_group, g_part, g_sum…, g_count…  one row a person (gather.py)
    remaining   r_person, r_remaining                      what a ledger says is left
    kept        k_level, k_chance, k_word                  who is kept at random
    lent        lent_…                                     arrays beside the source

Kept to what SQL engines evaluate to the same bit: columns are cast to double first; what is missing is told by one test (`known`);
a cell is FLOOR((x − lo)·inv + 0.5), without division or rounding functions; nothing can fail on a value. Numbers are written as casts
of their shortest text, which every engine parses to the same double.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Any

from accord.engines import Kind
from accord.errors import QueryError, did_you_mean
from accord.statistics import Category, Count, Grouped, Histogram, Numeric, OnGrid, Part, Query, Regression, Rows, where
from accord.statistics.encoding import Q

USER, LEVEL, GROUP, PART = "g_user", "g_level", "g_group", "g_part"
ENTRY, KEY, PLACE = "p_entry", "p_key", "p_place"
REMAINING = "r_remaining"
LENT_PERSON, LENT_REMAINING = "lent_person", "lent_remaining"
LENT_WORD, LENT_LEVEL, LENT_CHANCE = "lent_word", "lent_level", "lent_chance"
ALL = "0"
"""The part of a row where there are no parts."""
FEW_KEYS = 64
"""So many keys are compared one by one; more are found by a join."""


class SQL:
    """The SQL of one engine; this is DuckDB's. Another engine overrides how things are written, not what they mean."""

    DOUBLE, WIDE = "DOUBLE", "HUGEINT"
    """A double, and whole numbers of at least 38 digits."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        """`types`: the engine's own, of each column in its order."""
        self._types = types
        self._names = {name: f"c{k}" for k, name in enumerate(types)}

    def column(self, name: str) -> str:
        """What a user's column is called outside the innermost SELECT."""
        return self._names[name]

    def attempt(self, x: str, kind: str) -> str:
        """A cast that cannot fail: NULL where it does not work."""
        return f"TRY_CAST({x} AS {kind})"

    def whole(self, x: str) -> str:
        """A double that is a whole number, as a BIGINT."""
        return self.attempt(x, "BIGINT")

    def added(self, x: str) -> str:
        """The sum of whole numbers, however large."""
        return f"SUM({x})"

    def steps(self, x: str, low: float, factor: float) -> str:
        """How many steps of 1/factor a double lies above `low`, rounded; only where it lies so near that a step can tell."""
        return f"FLOOR(({x} - {self.double(low)}) * {self.double(factor)} + 0.5)"

    def divided(self, a: str, b: str) -> str:
        """The quotient of positive whole numbers, rounded down."""
        return f"({a}) // ({b})"

    def type_of(self, column: str) -> str:
        """The engine's own type of a column."""
        return str(self._types[column])

    def quote(self, name: str) -> str:
        """A name as it stands in the innermost SELECT: any text is just a name."""
        _printable(name)
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        _printable(value)
        return "'" + value.replace("'", "''") + "'"

    def double(self, value: float) -> str:
        return f"CAST('{value!r}' AS {self.DOUBLE})"

    def number(self, column: str, kind: Kind) -> str:
        """A column as a double."""
        x = self.column(column)
        if kind != "untyped":
            return f"CAST({x} AS {self.DOUBLE})"
        truth = f"CASE lower({x}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        return f"COALESCE({self.attempt(x, self.DOUBLE)}, {truth})"

    def level(self, column: str, kind: Kind) -> str:
        """A column of levels as a double, never above its decimal value; NaN for what is not a number, NULL for none.

        A double may lie above the decimal that it was made of, and a level is a promise. So a decimal is cut to millionths first; of text with an exponent,
        which a double holds if it has at most 15 digits, a longer one is made smaller by more than a double can be off.
        """
        x = self.column(column)
        if kind == "number":
            return f"CAST({self.cut(column)} AS {self.DOUBLE})"
        cut = self.attempt(f"regexp_extract(trim({x}), '^[+-]?[0-9]*([.][0-9]{{0,6}})?')", self.DOUBLE)
        number = self.attempt(x, self.DOUBLE)
        finite = (
            f"CASE WHEN regexp_full_match(trim({x}), '[+-]?[0-9]*[.]?[0-9]*') THEN {cut} "
            f"WHEN regexp_full_match(trim({x}), '[+-]?[0-9.]{{1,15}}[eE][+-]?[0-9]+') THEN {number} "
            f"WHEN regexp_full_match(trim({x}), '[+-]?[0-9.]+[eE][+-]?[0-9]+') THEN {number} * {self.double(1 - 2**-52)} END"
        )
        return (
            f"(CASE WHEN {x} IS NULL THEN NULL WHEN lower(trim({x})) IN ('inf', '+inf', 'infinity', '+infinity') THEN {number} "
            f"WHEN {self.known(finite)} THEN {finite} ELSE CAST('nan' AS DOUBLE) END)"
        )

    def cut(self, column: str) -> str:
        """A column of numbers; decimals that are finer than millionths without what is finer."""
        x, decimal = self.column(column), re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", self.type_of(column))
        return f"TRUNC({x}, 6)" if decimal and int(decimal[1]) > 6 else x

    def moment(self, column: str) -> str:
        """A column of dates or timestamps as a moment, to be compared with `instant`; NULL where it is missing or too far away."""
        return self.attempt(self.column(column), "TIMESTAMP")

    def instant(self, value: str) -> str:
        """A moment, from ISO text."""
        return f"TIMESTAMP {self.text(value)}"

    def seconds(self, column: str, kind: str) -> str:
        """A timestamp as seconds since 1970, or its day's; NULL where it is missing, infinite or too far away."""
        moment = self.moment(column)
        return f"CAST(EXTRACT(EPOCH FROM {f'CAST({moment} AS DATE)' if kind == 'date' else moment}) AS {self.DOUBLE})"

    def letters(self, column: str) -> str:
        """A column as text, compared letter by letter whatever its collation."""
        return f'CAST({self.column(column)} AS VARCHAR) COLLATE "binary"'

    def tier(self, column: str, kind: Kind, tiers: Collection[str]) -> str:
        """A column that names tiers, as text. True and False of a column without types are called as the declaration calls them."""
        letters = self.letters(column)
        if kind != "untyped" or not {"true", "false"} & set(tiers) or {"True", "False"} & set(tiers):
            return letters
        return f"CASE {letters} WHEN 'True' THEN 'true' WHEN 'False' THEN 'false' ELSE {letters} END"

    def by_level(self, source: str, level: str, cell: str, missing: int, part: str = ALL) -> str:
        """People and the sum of their cells, for each raw level and part. A NULL cell counts as `missing` (NaN can come through: see `known`)."""
        return (
            f"SELECT {_by(part)}, COUNT(*) AS people, COALESCE({self.added('cell')}, 0) + {missing} * (COUNT(*) - COUNT(cell)) AS total "
            f"FROM (SELECT {level} AS level, {part} AS part, {cell} AS cell FROM {source}) AS cells GROUP BY {_by(part)}"
        )

    def by_level_and_cell(self, source: str, level: str, cell: str, part: str = ALL) -> str:
        """People for each raw level, part and cell."""
        return (
            f"SELECT {_by(part)}, cell, COUNT(*) AS people "
            f"FROM (SELECT {level} AS level, {part} AS part, {cell} AS cell FROM {source}) AS cells GROUP BY {_by(part)}, cell"
        )

    def by_code(self, source: str, level: str, raw: list[Any], cell: str, nowhere: int, cells: int) -> str:
        """People for each code = cell·(L + 1) + which of the L raw levels; L for another level, `nowhere` for a NULL cell."""
        tests = (f"{self.is_level('level', x)} THEN {k}" for k, x in enumerate(raw))
        which = f"CASE {' '.join(f'WHEN {test}' for test in tests)} ELSE {len(raw)} END" if raw else "0"
        kind = "INTEGER" if (cells + 1) * (len(raw) + 1) < 2**31 else "BIGINT"
        return (
            f"SELECT code, COUNT(*) AS people FROM (SELECT CAST(COALESCE(cell, {nowhere}) AS {kind}) * {len(raw) + 1} + {which} AS code "
            f"FROM (SELECT {level} AS level, {cell} AS cell FROM {source}) AS cells) AS codes GROUP BY code"
        )

    def placed(self, source: str, part: Part, columns: Mapping[str, Kind]) -> tuple[str, str]:
        """A source, and which part a row of it is of, as SQL: the place of its key, 0 where there is only a condition; NULL: none.

        Many keys are joined to the source, so that no row is compared with all of them.
        """
        place = ALL
        if part.by is not None:
            keys = self._keys(part.by, columns[part.by], part.keys) if len(part.keys) > FEW_KEYS else None
            if keys is None:
                place = self.place(part.by, columns[part.by], part.keys)
            else:
                x, places = keys
                source = (
                    f"(SELECT source.*, listed.{PLACE} FROM {source} AS source "
                    f"LEFT JOIN {self.listed(places)} AS listed ON listed.{KEY} = {x})"
                )
                place = PLACE
        return source, (
            place if part.condition is None else f"CASE WHEN {self.render(part.condition, columns)} THEN {place} END"
        )

    def _keys(
        self, column: str, kind: Kind, values: tuple[Any, ...]
    ) -> tuple[str, Mapping[str, int] | Mapping[float, int]] | None:
        """What is compared with the keys, and the place of each: the first, if two are one number. None: not text or numbers alone."""
        last_first = tuple(enumerate(values))[::-1]
        if kind in ("text", "untyped") and all(isinstance(value, str) for value in values):
            return self.letters(column), {key: place for place, key in last_first}
        if kind in ("number", "untyped") and all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        ):
            return self.finite(column, kind), {float(key): place for place, key in last_first}
        return None

    def listed(self, places: Mapping[str, int] | Mapping[float, int]) -> str:
        """A table of keys and their places, from one text: engines take long to read thousands of literals. Text is written as its bytes."""
        entries = (f"{k.encode().hex() if isinstance(k, str) else repr(k)}:{place}" for k, place in places.items())
        key, place = (f"split_part({ENTRY}, ':', {side})" for side in (1, 2))
        read = self.unhexed(key) if any(isinstance(k, str) for k in places) else f"CAST({key} AS {self.DOUBLE})"
        return (
            f"(SELECT {read} AS {KEY}, CAST({place} AS INTEGER) AS {PLACE} "
            f"FROM (SELECT {self.split(','.join(entries))} AS {ENTRY}) AS entries)"
        )

    def split(self, entries: str) -> str:
        """A row for each entry of a plain text, at its commas."""
        return f"unnest(string_split('{entries}', ','))"

    def unhexed(self, x: str) -> str:
        """The text whose bytes are written in x."""
        return f"decode(unhex({x}))"

    def place(self, column: str, kind: Kind, values: tuple[Any, ...]) -> str:
        """Which of the values a column has, as its place among them; NULL: none."""
        arms = (f"WHEN {self.equal(column, kind, value)} THEN {k}" for k, value in enumerate(values))
        return f"CASE {' '.join(arms)} END"

    def within(self, source: str, condition: str) -> str:
        """The rows that meet a condition."""
        return f"(SELECT * FROM {source} WHERE {condition})"

    def scattered(self, source: str, user: str, kind: Kind, part: str) -> str:
        """How many people have rows in several parts."""
        who = self.identity(user, kind)
        return (
            f"SELECT COUNT(*) AS people FROM (SELECT {who} FROM {source} GROUP BY {who} "
            f"HAVING MIN({part}) <> MAX({part})) AS several"
        )

    def levels(self, source: str, level: str, part: str = ALL) -> str:
        """People for each raw level and part. No value is read."""
        return (
            f"SELECT {_by(part)}, COUNT(*) AS people FROM (SELECT {level} AS level, {part} AS part FROM {source}) AS levels "
            f"GROUP BY {_by(part)}"
        )

    def identity(self, user: str, kind: Kind) -> str:
        """Who a row is of. Ids are compared as text without outer blanks and a trailing .0, so that 7, 7.0 and ' 7' are one person."""
        if kind not in ("text", "untyped"):
            return self.column(user)
        x = f"CAST({self.column(user)} AS VARCHAR)"
        return f"CASE WHEN regexp_full_match({x}, '[!--/-~]*') THEN {x} ELSE {self._trimmed(f'nfc_normalize({x})')} END"

    def _trimmed(self, name: str) -> str:
        return f"regexp_replace(trim({name}, ' \t\r\n\ufeff\u00a0'), '\\.0+$', '')"

    def person(self, identity: str, user: str, kind: Kind, secret: str) -> str:
        """Somebody's `identity` as a keyed hash of 63 bits.

        The secret has a fixed length and the hash is cut off, so that nobody without the secret can tell or extend it.
        """
        name = identity
        if kind == "number":  # 1e16 is 10000000000000000
            whole = f"CASE WHEN {identity} = FLOOR({identity}) THEN TRY_CAST({identity} AS HUGEINT) END"
            name = self._trimmed(f"COALESCE(CAST({whole} AS VARCHAR), CAST({identity} AS VARCHAR))")
        return f"CAST(CAST('0x' || substr(sha256({self.text(secret)} || {name}), 1, 16) AS UBIGINT) >> 1 AS BIGINT)"

    def blurred(self, source: str, user: str) -> str:
        """How many ids are floating-point numbers that do not tell one whole number from the next."""
        size = f"abs(CAST({self.column(user)} AS DOUBLE))"
        return (
            f"SELECT COUNT(*) AS blurred FROM {source} WHERE (typeof({self.column(user)}) = 'FLOAT' AND NOT {size} < 16777216) "
            f"OR (typeof({self.column(user)}) = 'DOUBLE' AND NOT {size} < 9007199254740992)"
        )

    def people(self, source: str, person: str, level: str) -> str:
        """Every person with their level."""
        return f"SELECT {person} AS person, {level} AS level FROM {source}"

    def with_remaining(self, source: str, person: str, lent: str) -> str:
        """The source with what a lent table says that everyone has left, matched by person."""
        return (
            f"(SELECT source.*, lent.{LENT_REMAINING} AS {REMAINING} FROM (SELECT *, {person} AS r_person FROM {source}) AS source "
            f"JOIN {lent} AS lent ON lent.{LENT_PERSON} = source.r_person)"
        )

    def moments(self, source: str, level: str, query: Regression, codes: list[list[str]], part: str = ALL) -> str:
        """People and the sums of `Codes.products` for each raw level and part, as whole numbers in units of Q²; the number of people last."""
        target, *features = codes
        coded = [code for feature in features for code in feature]
        inner = ", ".join(f"{code} AS x{j}" for j, code in enumerate(coded))
        names = ["y" if j < 0 else f"x{j}" for entry in query.encoding.products for j in entry.columns]
        sums, at = [], 0
        for k, entry in enumerate(query.encoding.products):
            factors = names[at : at + len(entry.columns)]
            at += len(entry.columns)
            factor = f"{Q} * " if len(factors) == 1 else ""
            sums.append(f"CAST(COALESCE({factor}{self.added(' * '.join(factors))}, 0) AS BIGINT) AS m{k}")
        return (
            f"SELECT {_by(part)}, COUNT(*) AS people, {', '.join(sums)} FROM (SELECT {level} AS level, {part} AS part, {target[0]} AS y, {inner} "
            f"FROM {source}) AS coded GROUP BY {_by(part)}"
        )

    def codes(self, query: Regression, columns: Mapping[str, Kind]) -> list[list[str]]:
        """The codes of a row, as SQL: of the target, then of each feature."""
        return [self._codes(feature, columns) for feature in (query.target, *query.features)]

    def _codes(self, feature: Numeric | Category, columns: Mapping[str, Kind]) -> list[str]:
        """A value as integers in −Q … Q: see query/regression.py."""
        if isinstance(feature, Category):
            # the first value that it equals: two dummies are never set together, however values are spelled
            tests = (self.equal(feature.column, columns[feature.column], value) for value in feature.values)
            which = f"CASE {' '.join(f'WHEN {test} THEN {k}' for k, test in enumerate(tests))} ELSE 0 END"
            return [
                f"CAST(CASE WHEN {which} = {k} THEN {Q} ELSE {-Q} END AS INTEGER)"
                for k in range(1, len(feature.values))
            ]
        x = self.number(feature.column, columns[feature.column])
        low, high = self.double(float(feature.low)), self.double(float(feature.high))
        steps = self.steps(x, float(feature.low), 2 * Q / (float(feature.high) - float(feature.low)))
        # LEAST: the product may be rounded beyond the end
        return [
            f"CAST(CASE WHEN {x} >= {low} AND {x} < {high} AND {self.known(x)} THEN LEAST({steps}, {2 * Q}) - {Q} "
            f"WHEN {x} >= {high} AND {self.known(x)} THEN {Q} WHEN {x} < {low} AND {self.known(x)} THEN {-Q} ELSE 0 END AS INTEGER)"
        ]

    def kept(self, source: str, level: str, words: str, chances: str) -> str:
        """The rows of a source whose random word, one for each row in whatever order, is below the chance of their level, from a table of chances."""
        matched = (
            f"SELECT source.*, chances.{LENT_CHANCE} AS k_chance FROM (SELECT *, {level} AS k_level FROM {source}) AS source "
            f"JOIN {chances} AS chances ON chances.{LENT_LEVEL} IS NOT DISTINCT FROM source.k_level"
        )
        return f"(SELECT * FROM ({matched}) POSITIONAL JOIN {words} AS words WHERE {LENT_WORD} < k_chance)"

    def kept_by_case(self, source: str, level: str, words: str, raw: list[Any], chances: list[int]) -> str:
        """`kept` for few levels, three times as fast."""
        tests = " ".join(f"WHEN {self.is_level(level, x)} THEN {c}" for x, c in zip(raw, chances, strict=True))
        chance = f"CAST(CASE {tests} ELSE 0 END AS UBIGINT)" if raw else "0"
        return (
            f"(SELECT source.* FROM {source} AS source POSITIONAL JOIN {words} AS words WHERE {LENT_WORD} < {chance})"
        )

    def is_level(self, level: str, raw: Any) -> str:
        return (
            f"{level} IS NULL"
            if raw is None
            else f"{level} = {self.text(raw) if isinstance(raw, str) else self.double(raw)}"
        )

    def alone(self, source: str, user: str, kind: Kind) -> str:
        """The source without people who have several rows, or no name: nobody else's rows decide about anyone's."""
        who = self.identity(user, kind)
        return f"(SELECT * FROM {source} WHERE {self.column(user)} IS NOT NULL QUALIFY COUNT(*) OVER (PARTITION BY {who}) = 1)"

    def check(self, query: Query, columns: Mapping[str, Kind]) -> None:
        """Refuse what the columns' kinds cannot answer. Looks at names and kinds, never at values."""
        for column in query.columns:
            if column not in columns:
                raise QueryError(f"there is no column {column!r}: {did_you_mean(column, columns)}")
        match query:
            case Regression():
                for part in (query.target, *query.features):
                    if isinstance(part, Category):
                        for category in part.values:
                            self.equal(part.column, columns[part.column], category)
                    else:
                        _need("number", part.column, columns[part.column], query.statistic)
            case Rows():
                pass
            case OnGrid() | Histogram(edges=(_, *_)):
                _need(
                    query.kind if isinstance(query, OnGrid) else "number",
                    query.column,
                    columns[query.column],
                    query.statistic,
                )
            case Histogram():
                for category in query.categories:
                    self.equal(query.column, columns[query.column], category)
            case Count(condition=condition) if condition is not None:
                self.render(condition, columns)
            case Grouped():
                self.check(query.query, columns)
                if query.part.condition is not None:
                    self.render(query.part.condition, columns)
                for key in query.part.keys:
                    self.equal(str(query.part.by), columns[str(query.part.by)], key)

    def cell(self, query: Query, columns: Mapping[str, Kind], read: str) -> str:
        """The integer of a row, as SQL: a value's cell, 1 or 0, or which cell of a histogram (NULL: none).

        `read` is true for people who have not opted out. Nobody else's value decides anything: they all get the same integer, in a
        group of their own, which is dropped. It stands last in each arm because that is the fastest place for it.
        """
        match query:
            case OnGrid():
                x = (
                    self.number(query.column, columns[query.column])
                    if query.kind == "number"
                    else self.seconds(query.column, query.kind)
                )
                low, high = self.double(float(query.low)), self.double(float(query.high))
                return (
                    f"CASE WHEN {x} >= {low} AND {x} < {high} AND {read} THEN {self.whole(self.steps(x, float(query.low), query.encoding.inverse))} "
                    f"WHEN {x} >= {high} AND {self.known(x)} AND {read} THEN {query.cells} "
                    f"WHEN {x} < {low} AND {self.known(x)} AND {read} THEN 0 ELSE {query.missing_cell} END"
                )
            case Count(condition=None):
                return "1"
            case Count(condition=condition) if condition is not None:
                return f"CASE WHEN {self.render(condition, columns)} AND {read} THEN 1 ELSE 0 END"
            case Histogram() if query.edges:
                x = self.finite(query.column, columns[query.column])
                arms = " ".join(
                    f"WHEN {x} < {self.double(float(edge))} THEN {k}" for k, edge in enumerate(query.edges[1:-1])
                )
                return f"CASE WHEN NOT {read} THEN NULL WHEN {x} IS NULL THEN {query.missing} {arms} ELSE {len(query.edges) - 2} END"
            case Histogram():
                arms = " ".join(
                    f"WHEN {self.equal(query.column, columns[query.column], c)} AND {read} THEN {k}"
                    for k, c in enumerate(query.categories)
                )
                return f"CASE {arms} ELSE {'NULL' if query.missing is None else query.missing} END"
            case _:
                raise TypeError(f"no SQL for {type(query).__name__}")

    def known(self, x: str) -> str:
        """Whether a double is a number: neither NULL nor NaN nor ±∞.

        Not by comparing: statistics of a Parquet file leave NaN out, and DuckDB takes a comparison that they decide as decided.
        """
        return f"isfinite({x})"

    def finite(self, column: str, kind: Kind) -> str:
        """A column as a double; NULL where it is missing: NULL, NaN, ±∞."""
        x = self.number(column, kind)
        return f"CASE WHEN {self.known(x)} THEN {x} END"

    def render(self, condition: where.Condition, columns: Mapping[str, Kind]) -> str:
        """A condition as SQL. NULL where it is neither true nor false."""
        match condition:
            case where.Both(word, parts):
                return "(" + f" {word} ".join(self.render(p, columns) for p in parts) + ")"
            case where.Not(inner):
                return f"(NOT {self.render(inner, columns)})"
            case where.IsNull(column):
                kind = columns[column]
                return f"({self.finite(column, kind) if kind == 'number' else self.column(column)} IS NULL)"
            case where.HasValue(column, kind):
                value = self.finite(column, columns[column]) if kind == "number" else self.seconds(column, kind)
                return f"({value} IS NOT NULL)"
            case where.In(column, values):
                return "(" + " OR ".join(self.equal(column, columns[column], v) for v in values) + ")"
            case where.Compare(column, operator, value):
                return self._compare(column, columns[column], operator, value)

    def equal(self, column: str, kind: Kind, value: object) -> str:
        """Whether a column has a value of its own kind."""
        return self._compare(column, kind, "=", value)

    def _compare(self, column: str, kind: Kind, operator: str, value: object) -> str:
        """column operator value, for a literal of the column's own kind."""
        match kind, value:
            case ("boolean" | "untyped", bool()):
                if operator in ("=", "<>"):
                    return f"({self.attempt(self.column(column), 'BOOLEAN')} {operator} {str(value).upper()})"
                raise QueryError(f"column {column!r} is true or false; it can be compared by = and <> only.")
            case ("number" | "untyped", int() | float()) if not isinstance(value, bool):
                return f"({self.finite(column, kind)} {operator} {self.double(float(value))})"
            case ("untyped", str()) if operator not in ("=", "<>"):  # a date, as text
                return f"({self.moment(column)} {operator} {self.instant(_moment(column, value))})"
            case ("text" | "untyped", str()):
                if operator in ("=", "<>"):
                    return f"({self.letters(column)} {operator} {self.text(value)})"
                raise QueryError(
                    f"column {column!r} is text; it can be compared by =, <> and IN only, because engines order text differently. If it holds dates or numbers, convert it first."
                )
            case ("date" | "timestamp", str()):
                return f"({self.moment(column)} {operator} {self.instant(_moment(column, value))})"
            case ("other", _):
                raise QueryError(
                    f"column {column!r} is of a kind that cannot be compared. Use a column of numbers, text, dates, or true and false."
                )
            case _:
                raise QueryError(
                    f"column {column!r} holds {_PLURAL[kind]}, and {value!r} is not one. Compare it with {_EXAMPLE[kind]}."
                )


def _printable(value: str) -> None:
    """What SQL text can hold: no lone surrogates, no NUL."""
    if "\0" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise QueryError(f"the text {value!r} has a character that no table can hold. Correct it.")


def _by(part: str) -> str:
    return "level" if part == ALL else "level, part"


_PLURAL = {
    "number": "numbers",
    "text": "text",
    "boolean": "true and false",
    "date": "dates",
    "timestamp": "timestamps",
    "untyped": "text or numbers",
}
_EXAMPLE = {
    "number": "a number, such as 30",
    "text": "a text in quotes, such as 'north'",
    "boolean": "TRUE or FALSE",
    "date": "a date in quotes, such as '2026-01-31'",
    "timestamp": "a moment in quotes, such as '2026-01-31 12:00:00'",
    "untyped": "a number or a text in quotes",
}


def _moment(column: str, value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        try:
            moment = datetime.combine(date.fromisoformat(value), datetime.min.time())
        except ValueError:
            raise QueryError(
                f"column {column!r} holds dates, and {value!r} is not one. Write it as '2026-01-31' or '2026-01-31 12:00:00'."
            ) from None
    if moment.tzinfo is not None:
        raise QueryError(f"column {column!r} has no time zone, and {value!r} has. Write the moment without one.")
    return moment.isoformat(sep=" ")


def _need(kind: str, column: str, found: Kind, statistic: str) -> None:
    if kind == "number" and found not in ("number", "boolean", "untyped"):
        hint = (
            f"Give bounds that are dates to ask for its {statistic}."
            if found in ("date", "timestamp") and statistic not in ("mean", "sum", "histogram")
            else "Choose another column, or count with accord.histogram(…, categories=…)."
        )
        raise QueryError(
            f"column {column!r} holds {_PLURAL.get(found, 'neither numbers nor text')}; a {statistic} needs numbers. {hint}"
        )
    if kind != "number" and found not in ("date", "timestamp", "untyped"):
        raise QueryError(
            f"column {column!r} holds no dates, and the bounds are dates. Give bounds of the column's own kind."
        )
