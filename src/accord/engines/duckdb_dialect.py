"""DuckDB's SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from accord.engines.csv_options import CSV, date_pattern
from accord.engines.dialect import BLANKS, Dialect, StandardLiterals
from accord.engines.engine import Kind

_PLAIN = CSV()
_ISO = "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?"
"""What text is a date or a timestamp."""


class DuckDBDialect(StandardLiterals, Dialect):
    """DuckDB's SQL, for columns of known types."""

    double_type, wide_type = "DOUBLE", "HUGEINT"
    reads_dates_in_text = True

    def __init__(self, types: Mapping[str, str], csv: Mapping[str, CSV] | None = None) -> None:
        """`csv`: how the text of columns is read that come from CSV files, where that was declared."""
        super().__init__(types)
        self._csv = csv or {}

    def csv(self, column: str) -> CSV:
        """How the text of a column is read."""
        return self._csv.get(column, _PLAIN)

    def attempt(self, x: str, sql_type: str) -> str:
        return f"TRY_CAST({x} AS {sql_type})"

    def sum(self, x: str) -> str:
        return f"SUM({x})"  # which is HUGEINT

    def quotient(self, a: str, b: str) -> str:
        return f"({a}) // ({b})"

    def number(self, column: str, kind: Kind) -> str:
        x = self.column(column)
        if kind != "untyped":
            return f"CAST({x} AS DOUBLE)"
        truth = f"CASE lower({x}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        if self.csv(column).true:
            truth = f"CAST({self.truth(column)} AS INTEGER)"
        return f"COALESCE({self.attempt(self._numeral(column), 'DOUBLE')}, {truth})"

    def _numeral(self, column: str) -> str:
        """A column's text as SQL writes numbers; NULL where it is none of the declared form."""
        x, csv = self.column(column), self.csv(column)
        if not csv.reads_numerals:
            return x
        digits = f"trim({x})"
        if csv.thousands_pattern is not None:
            digits = f"regexp_replace({digits}, {self.text(csv.thousands_pattern)}, '', 'g')"
        return (
            f"CASE WHEN regexp_full_match(trim({x}), {self.text(csv.numeral_pattern)}) "
            f"THEN replace({digits}, {self.text(csv.decimal)}, '.') END"
        )

    def truth(self, column: str) -> str:
        csv = self.csv(column)
        if not csv.true:
            return super().truth(column)
        word = f"lower(trim({self.column(column)}))"
        yes, no = (
            ", ".join(self.text(word.strip().lower()) for word in words) for words in (csv.true, csv.false)
        )
        return f"CASE WHEN {word} IN ({yes}) THEN TRUE WHEN {word} IN ({no}) THEN FALSE END"

    def is_finite(self, x: str) -> str:
        """Not by comparing.

        Statistics of a Parquet file leave NaN out, and DuckDB takes a comparison that they decide as decided.
        """
        return f"isfinite({x})"

    def level(self, column: str, kind: Kind) -> str:
        """Of text with an exponent, a double holds what has at most 15 digits.

        A longer one is made smaller by more than a double can be off.
        """
        x = self.column(column)
        if kind == "number":
            decimal = re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", self.types[column])
            cut = f"TRUNC({x}, 6)" if decimal and int(decimal[1]) > 6 else x
            return f"CAST({cut} AS DOUBLE)"
        text = f"trim({self._numeral(column)})"
        cut = self.attempt(f"regexp_extract({text}, '^[+-]?[0-9]*([.][0-9]{{0,6}})?')", "DOUBLE")
        number, a_little_less = self.attempt(text, "DOUBLE"), self.double(1 - 2**-52)
        finite = (
            f"CASE WHEN regexp_full_match({text}, '[+-]?[0-9]*[.]?[0-9]*') THEN {cut} "
            f"WHEN regexp_full_match({text}, '[+-]?[0-9.]{{1,15}}[eE][+-]?[0-9]+') THEN {number} "
            f"WHEN regexp_full_match({text}, '[+-]?[0-9.]+[eE][+-]?[0-9]+') "
            f"THEN {number} * {a_little_less} END"
        )
        infinite = f"lower(trim({x})) IN ('inf', '+inf', 'infinity', '+infinity')"
        return (
            f"(CASE WHEN {x} IS NULL THEN NULL WHEN {infinite} THEN {self.attempt(x, 'DOUBLE')} "
            f"WHEN {self.is_finite(finite)} THEN {finite} ELSE CAST('nan' AS DOUBLE) END)"
        )

    def letters(self, column: str) -> str:
        """A date of a declared form is its ISO text, as it is in conditions."""
        text = f"CAST({self.column(column)} AS VARCHAR)"
        if self.csv(column).dates:
            moment = self.moment(column)
            day = f"CASE WHEN {moment} = date_trunc('day', {moment}) THEN strftime({moment}, '%Y-%m-%d') END"
            text = f"COALESCE({day}, CAST({moment} AS VARCHAR), {text})"
        return f'{text} COLLATE "binary"'

    def moment(self, column: str) -> str:
        x, forms = self.column(column), self.csv(column).dates
        if not forms and not self.types[column].startswith(("VARCHAR", "ENUM")):
            return self.attempt(x, "TIMESTAMP")
        if not forms:  # DuckDB would leave out a time zone, or a word that follows
            text = f"trim(CAST({x} AS VARCHAR))"
            return f"CASE WHEN regexp_full_match({text}, '{_ISO}') THEN {self.attempt(text, 'TIMESTAMP')} END"
        read = (
            f"CASE WHEN regexp_full_match(trim({x}), {self.text(date_pattern(form))}) "
            f"THEN try_strptime(trim({x}), {self.text(form)}) END"
            for form in forms
        )
        return f"COALESCE({', '.join(read)})"

    def readable(self, column: str, kind: str) -> str:
        csv = self.csv(column)
        if kind == "number" and csv.reads_numerals:
            return f"number such as {csv.number_example}"
        if kind != "number" and csv.dates:
            return f"date such as {csv.date_example}"
        return super().readable(column, kind)

    def seconds(self, column: str, kind: str) -> str:
        moment = self.moment(column)
        if kind == "date":
            moment = f"CAST({moment} AS DATE)"
        return f"CAST(EXTRACT(EPOCH FROM {moment}) AS DOUBLE)"

    def text_identity(self, user: str) -> str:
        """Ids of ASCII without blanks and dots, which most are, stay as they are: that is faster."""
        x = f"CAST({self.column(user)} AS VARCHAR)"
        trimmed = self._trimmed(f"nfc_normalize({x})")
        return f"CASE WHEN regexp_full_match({x}, '[!--/-~]*') THEN {x} ELSE {trimmed} END"

    def _trimmed(self, name: str) -> str:
        return f"regexp_replace(trim({name}, '{BLANKS}'), '\\.0+$', '')"

    def name(self, identity: str, user: str, kind: Kind) -> str:
        if kind != "number" or "INT" in self.types[user]:
            return f"CAST({identity} AS VARCHAR)"
        # 1e16 is 10000000000000000
        whole = f"CASE WHEN {identity} = FLOOR({identity}) THEN TRY_CAST({identity} AS HUGEINT) END"
        return self._trimmed(f"COALESCE(CAST({whole} AS VARCHAR), CAST({identity} AS VARCHAR))")

    def digest(self, text: str) -> str:
        return f"CAST(CAST('0x' || substr(sha256({text}), 1, 16) AS UBIGINT) >> 1 AS BIGINT)"

    def mantissa(self, column: str) -> int | None:
        return {"FLOAT": 24, "DOUBLE": 53}.get(self.types[column])

    def split(self, entries: str) -> str:
        return f"unnest(string_split('{entries}', ','))"

    def unhexed(self, x: str) -> str:
        return f"decode(unhex({x}))"

    def position(self, x: str, values: Sequence[str]) -> str:
        """Faster than one comparison after the other."""
        return f"list_position([{', '.join(values)}], {x}) - 1"

    def enumerated(self, column: str, kind: Kind, keys: Sequence[Any], name: str) -> tuple[str, str] | None:
        """An ENUM of texts: cast once for each entry of a file's dictionary, and grouped without hashing.

        A whole number has one text. Of those from 2⁵³ on, several are one double, as which they are compared.
        """
        if kind in ("text", "untyped") and set(map(type, keys)) == {str}:
            x, texts = self.letters(column), list(keys)
        elif "INT" in self.types[column] and kind == "number" and all(map(_is_small_number, keys)):
            x, texts = f"CAST({self.column(column)} AS VARCHAR)", [_numeral(key) for key in keys]
        else:
            return None
        if len(set(texts)) < len(texts):
            return None
        enum = f"TRY_CAST({x} AS ENUM ({', '.join(map(self.text, texts))}))"
        return enum, f"CAST(enum_code({name}) AS INTEGER)"


def _is_small_number(key: Any) -> bool:
    return isinstance(key, int | float) and not isinstance(key, bool) and abs(key) < 2**53


def _numeral(key: float) -> str:
    """A number as DuckDB writes it in a column of whole numbers; a fraction is in none."""
    return str(int(key)) if key == int(key) else repr(key)
