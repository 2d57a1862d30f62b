"""Dates, timestamps and lengths of time: from text, and as seconds since 1970.

Text is strict ISO, and read here only: '2026-01-31' is a date, '2026-01-31 12:00' and '2026-01-31T12:00:00.5'
are timestamps. There are no time zones.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal

from accord.errors import QueryError

DAY = 86_400
_EPOCH = datetime(1970, 1, 1)
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = re.compile(rf"{_DATE}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?)?")
_LENGTH = re.compile(r"([0-9]{1,6}) *(second|minute|hour|day|week)s?")


def from_text(text: str) -> date | datetime | None:
    """A date or a timestamp, from ISO text; None: it is neither.

    >>> from_text("2026-01-31"), from_text("2026-01-31 12:30"), from_text("31.01.2026")
    (datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 12, 30), None)
    """
    try:
        if re.fullmatch(_DATE, text):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
    except ValueError:  # the 31st of February
        return None


def moment_or_other(x: Any, what: str) -> Any:
    """A declared end or edge: of text, the date or timestamp that it must be; anything else as it is."""
    if not isinstance(x, str):
        return x
    moment = from_text(x)
    if moment is None:
        raise QueryError(
            f"{what} is {x!r}. A text is a date such as '2026-01-31', or a moment such as "
            "'2026-01-31 12:00:00', without a time zone; a number has no quotes."
        )
    return moment


def kind_of(x: Any) -> Literal["number", "date", "timestamp"]:
    """What a declared end or edge is."""
    if isinstance(x, datetime):  # which is a date, too
        return "timestamp"
    return "date" if isinstance(x, date) else "number"


def seconds(x: Any, kind: str, what: str) -> Fraction:
    """A date or timestamp as seconds since 1970, exactly."""
    x = moment_or_other(x, what)
    is_moment = isinstance(x, date) and x == x  # NaT is a datetime, and no moment
    if not is_moment or (isinstance(x, datetime) and x.tzinfo is not None):
        raise QueryError(f"{what} is {x!r}. It must be a {kind} without a time zone, like the bounds.")
    moment = x if isinstance(x, datetime) else datetime.combine(x, time())
    return Fraction((moment - _EPOCH) // timedelta(microseconds=1), 10**6)


def from_seconds(value: Fraction, kind: str) -> date | datetime:
    """The date or timestamp that lies so many seconds after 1970.

    >>> str(from_seconds(Fraction(DAY), "date"))
    '1970-01-02'
    """
    moment = _EPOCH + timedelta(microseconds=round(value * 10**6))
    return moment.date() if kind == "date" else moment


def length(step: Any) -> Fraction | None:
    """A length of time in seconds, from a timedelta or a text such as "6 hours"; None: it is neither.

    >>> length("6 hours"), length("1 week"), length(7)
    (Fraction(21600, 1), Fraction(604800, 1), None)
    """
    if isinstance(step, str):
        match = _LENGTH.fullmatch(step.strip())
        if match is None:
            raise QueryError(
                f"step is {step!r}. Give a number, or a length of time such as '6 hours', '1 day', '2 weeks'."
            )
        step = timedelta(**{f"{match[2]}s": int(match[1])})
    if not isinstance(step, timedelta):
        return None
    return Fraction(step // timedelta(microseconds=1), 10**6)


def length_text(seconds: float) -> str:
    """A length of time in words.

    >>> length_text(86400), length_text(21600), length_text(5400), length_text(0.25)
    ('1 day', '6 hours', '90 minutes', '0.25 seconds')
    """
    for unit, length_of_unit in (("day", DAY), ("hour", 3_600), ("minute", 60)):
        if seconds >= length_of_unit and seconds % length_of_unit == 0:
            number = int(seconds // length_of_unit)
            return f"{number:,} {unit}{'s' if number > 1 else ''}"
    return f"{seconds:g} seconds"
