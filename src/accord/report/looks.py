"""What public people tell about a column, as text and as HTML."""

from __future__ import annotations

from datetime import date
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from accord.people.public import PublicLook
from accord.release.looking import ASSUMPTIONS
from accord.report.html import article
from accord.report.tables import MOST_ROWS, add_row, bullet, shortened, text_table, to_text


def look_text(look: PublicLook) -> str:
    """What `print` shows of a look."""
    return to_text(look_view(look))


def look_html(look: PublicLook) -> str:
    """What notebooks show of it."""
    return article(look_view(look))


def look_view(look: PublicLook) -> RenderableType:
    """What was read, what it suggests and why, and what it cost."""
    missing = f", of whom {look.missing:,} without a value" if look.missing else ""
    people = "1 public person" if look.people == 1 else f"{look.people:,} public people"
    table = text_table("suggested", "", "why")
    for name in ("bounds", "step", "std", "keys"):
        if name in look.why:
            add_row(table, f"{name}=", _text(getattr(look, name)), look.why[name])
    parts: list[RenderableType] = [Text(f"{look.column} of {people}{missing}", "bold"), table, Text()]
    parts += map(bullet, ASSUMPTIONS)
    if look.booked is not None:
        parts.append(Text(f"booked as entry {look.booked.entry:,} of the ledger", "dim"))
    return Group(*parts)


def _text(value: Any) -> str:
    """A suggestion as one declares it; many keys are cut short."""
    match value:
        case None:
            return "–"
        case tuple((date(), date())):
            return f"({value[0]}, {value[1]})"
        case tuple():
            shown = shortened(value, MOST_ROWS)
            return f"({', '.join('…' if key is None else repr(key) for key in shown)})"
        case _:
            return repr(value)
