"""Views and numbers as HTML without styles of its own: the one style sheet says how everything looks.

report/html.py writes styles into its tags, for notebooks. A page may not have any (guard.py), so that they
become the names of classes here. Text in them is escaped there, so that no quotation mark is left in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from markupsafe import Markup
from rich.console import RenderableType

from accord.budget import level_text, to_micro
from accord.report.html import article
from accord.report.tables import error, near, number

_STYLE = re.compile(r' style="([^"]*)"')
_CLASSES = (("text-align:right", "number"), ("font-weight:600", "strong"), ("opacity:.7", "faint"))


def without_styles(html: str) -> Markup:
    """HTML of report/, with classes in place of styles."""

    def named(style: re.Match[str]) -> str:
        names = [name for said, name in _CLASSES if said in style[1]]
        return f' class="{" ".join(names)}"' if names else ""

    return Markup(_STYLE.sub(named, html))


def of_view(view: RenderableType) -> Markup:
    """A view of report/ as HTML."""
    return without_styles(article(view))


def moment(time: str) -> str:
    """A time of the ledger, for reading.

    >>> moment("2026-05-03T12:34:56.789+00:00")
    '2026-05-03 12:34'
    """
    return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def part(x: float) -> str:
    """A part as a percentage; a small one is not nothing.

    >>> part(0.256), part(0.00004), part(0)
    ('26 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < x < 0.005 else f"{x:.0%}".replace("%", " %")


def epsilon(level: float | str) -> str:
    """A level for reading."""
    text = level if isinstance(level, str) else level_text(int(to_micro(level)))
    return "∞" if text == "inf" else text


def thousands(x: Any) -> str:
    """A number for reading, as exactly as it is known."""
    if isinstance(x, float) and not isfinite(x):
        return "∞" if x > 0 else "−∞"
    return number(x, 4) if isinstance(x, float) else f"{x:,}"


FILTERS: dict[str, Callable[..., Any]] = {
    "moment": moment,
    "part": part,
    "epsilon": epsilon,
    "thousands": thousands,
    "error": error,
    "near": near,
}
