"""CSV: how the text of CSV files is to be read, as the user declares it. Nothing of it is guessed from rows.

What cannot be read as declared is missing, whatever it is: no value decides whether something fails.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from accord.errors import SourceError, did_you_mean

UTF8 = "utf-8"
_ENCODINGS = re.compile(
    r"utf-8|utf-16(-[bl]e)?|iso8859-\d+|cp\d+|mac-roman|koi8-[ru]|shift_jis|euc_jp|euc_kr|gbk|gb18030|big5"
)
"""What Python can decode whatever the bytes are, by its own names."""
_DIGITS = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "f": "[0-9]{1,6}", **dict.fromkeys("mdHMS", "[0-9]{1,2}")}
"""What a part of a date format reads."""
_EXAMPLE = {"Y": "2026", "y": "26", "m": "01", "d": "31", "H": "12", "M": "30", "S": "00", "f": "0"}
_THOUSANDS = {" ": "[ \u00a0\u202f]"}
"""Blanks that do not break are blanks."""


@dataclass(frozen=True)
class CSV:
    """How CSV files are read: `accord.table(…, csv=accord.CSV(…))`, or a mapping with the same keys.

    Args:
        delimiter: what separates columns, one character or "tab"; by default the header tells: comma,
            semicolon, tab or "|".
        decimal: the decimal mark, "." or ",".
        thousands: what separates groups of three digits; by default nothing does.
        encoding: such as "latin-1", "windows-1252" or "utf-16". A byte that is none of its is read as
            Windows-1252.
        dates: the form of dates and timestamps, such as "%d.%m.%Y" or ["%d.%m.%Y", "%d.%m.%Y %H:%M"], of
            %Y %y %m %d %H %M %S %f; by default ISO: 2026-01-31.
        true, false: the words for true and false, in any case; by default these two.

    >>> CSV(delimiter=";", decimal=",", thousands=".", dates="%d.%m.%Y").number_example
    '1.234,5'
    """

    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str = UTF8
    dates: str | Iterable[str] = ()
    true: str | Iterable[str] = ()
    false: str | Iterable[str] = ()

    def __post_init__(self) -> None:
        if self.delimiter == "tab":
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not _is_mark(self.delimiter):
            raise SourceError(
                f"csv has delimiter={self.delimiter!r}. It is one character that is no letter, digit or "
                "quote, or 'tab'; leave it out where the header tells."
            )
        if self.decimal not in (".", ","):
            raise SourceError(f"csv has decimal={self.decimal!r}. It is '.' or ','.")
        if self.thousands is not None and (not _is_mark(self.thousands) or self.thousands in "+-\t"):
            raise SourceError(
                f"csv has thousands={self.thousands!r}. It is one character, such as '.', ',', ' ' or \"'\"."
            )
        if self.thousands == self.decimal:
            raise SourceError(
                f"csv has {self.decimal!r} both as decimal and as thousands mark. Give two different ones."
            )
        for name in ("dates", "true", "false"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        for form in self.dates:
            _refuse_form(form)
        words = [{word.strip().lower() for word in getattr(self, name)} for name in ("true", "false")]
        if bool(words[0]) != bool(words[1]) or words[0] & words[1]:
            raise SourceError(
                "csv has words for true or false alone, or one for both. "
                "Give both, such as true=['yes'], false=['no']."
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))

    @property
    def reads_numerals(self) -> bool:
        """Whether numbers are written otherwise than SQL writes them."""
        return self.decimal != "." or self.thousands is not None

    @property
    def thousands_pattern(self) -> str | None:
        """The thousands mark as a regular expression."""
        mark = self.thousands
        return None if mark is None else _THOUSANDS.get(mark, re.escape(mark))

    @property
    def numeral_pattern(self) -> str:
        """A number as a regular expression: groups are of three digits, or there are none."""
        mark = self.thousands_pattern
        whole = "[0-9]*" if mark is None else f"([0-9]{{1,3}}({mark}[0-9]{{3}})+|[0-9]*)"
        return f"[+-]?{whole}({re.escape(self.decimal)}[0-9]*)?([eE][+-]?[0-9]+)?"

    @property
    def number_example(self) -> str:
        return f"1{self.thousands or ''}234{self.decimal}5"

    @property
    def date_example(self) -> str:
        forms = [re.sub("%(.)", lambda part: _EXAMPLE[part[1]], form) for form in self.dates]
        return " or ".join(forms)


def date_pattern(form: str) -> str:
    """A date of this form as a regular expression: years have as many digits as they should."""
    parts = re.split("%(.)", form)
    return "".join(_DIGITS[part] if k % 2 else re.escape(part) for k, part in enumerate(parts))


def csv_options(given: Any) -> CSV | None:
    """What `csv=` says: a CSV, a mapping with the same keys, or nothing."""
    if given is None or isinstance(given, CSV):
        return given
    names = [field.name for field in fields(CSV)]
    if not isinstance(given, Mapping):
        raise SourceError(
            f"csv= is a {type(given).__name__}. Give accord.CSV(…), or a mapping of {', '.join(names)}."
        )
    for name in given:
        if name not in names:
            raise SourceError(f"csv has no option {name!r}: {did_you_mean(str(name), names)}")
    return CSV(**given)


def _is_mark(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 1 and not text.isalnum() and text not in '"\r\n\0'


def _texts(name: str, given: Any) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(text, str) and text.strip() and text.isprintable() for text in texts):
        raise SourceError(f"csv has {name}={given!r}. Give a text, or a list of texts.")
    return texts


def _refuse_form(form: str) -> None:
    parts = re.findall("%(.?)", form)
    is_known = set(parts) <= set(_DIGITS) and len(set(parts)) == len(parts)
    has_day = {"m", "d"} <= set(parts) and len({"Y", "y"} & set(parts)) == 1
    if not is_known or not has_day:
        raise SourceError(
            f"csv has dates={form!r}. It is made of %Y (or %y), %m and %d, each once, "
            "and for timestamps %H, %M, %S and %f: such as '%d.%m.%Y' or '%d.%m.%Y %H:%M'."
        )


def _encoding(name: Any) -> str:
    """Python's own name of an encoding."""
    try:
        known = codecs.lookup(name).name.removesuffix("-sig")
    except (LookupError, TypeError, ValueError):
        known = ""
    known = UTF8 if known == "ascii" else known  # which every byte of it is
    if not _ENCODINGS.fullmatch(known):
        raise SourceError(
            f"csv has encoding={name!r}, which is not known here. "
            "Give a name such as 'utf-8', 'latin-1', 'windows-1252' or 'utf-16'."
        )
    return known
