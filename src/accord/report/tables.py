"""Tables of text, and numbers as people read them: what all views share."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from math import floor, isnan, log10, nan
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

MOST_ROWS, MOST_GROUPS = 12, 100
"""So many levels, and groups, are shown of tables that may have any number of them."""
WIDTH = 118
"""Of text, where nobody knows how wide the lines may be."""
T = TypeVar("T")


def text_table(*columns: str, title: str | None = None) -> Table:
    """A table without lines; the numbers of a column whose name starts with > are flush right."""
    table = Table(
        title=None if title is None else Text(title),
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
        padding=(0, 2, 0, 0),
    )
    for column in columns:
        right = column.startswith(">")
        table.add_column(Text(column[right:]), justify="right" if right else "left", overflow="fold")
    return table


def add_row(table: Table, *cells: str, style: str = "") -> None:
    """Cells as they are: a tier named [b] is no markup."""
    table.add_row(*(Text(cell) for cell in cells), style=style)


def shortened(rows: Sequence[T], most: int) -> list[T | None]:
    """The first and the last of many rows, and None between them."""
    return list(rows) if len(rows) <= most else [*rows[: most // 2], None, *rows[-most // 2 :]]


def bullet(text: str) -> RenderableType:
    """One of several sentences."""
    return Padding(Text(f"· {text}"), (0, 0, 0, 2))


def to_text(view: RenderableType) -> str:
    """A view as plain text, without colours, whoever is looking.

    In Jupyter, Rich would display it instead of writing it to the file.
    """
    out = StringIO()
    plain = Console(file=out, width=WIDTH, color_system=None, highlight=False, force_jupyter=False)
    plain.print(view)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def number(x: float, digits: int = 6) -> str:
    """A number for reading: so many significant digits, but every digit before the point; thousands apart.

    >>> number(61234.5678), number(0.000123456789), number(-3.0), number(12345678.9), number(861.2345, 3)
    ('61,234.6', '0.000123457', '-3', '12,345,679', '861')
    """
    if isnan(x):
        return "unknown"
    if x == 0 or abs(x) >= 1e15 or abs(x) < 1e-4:
        return f"{x:.{digits}g}"
    text = f"{x:,.{max(0, digits - 1 - floor(log10(abs(x))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def error(x: float | None) -> str:
    """An error: four digits say enough. That of an algorithm of one's own is unknown."""
    return number(nan if x is None else x, 4)


def near(x: float, rmse: float) -> str:
    """A number to the digits that its error leaves: two of the error's.

    >>> near(47461.894, 465.5), near(0.123456, 0.0042), near(763.918, 20.3), near(-0.2, 30)
    ('47,462', '0.1235', '764', '0')
    """
    return number(x) if rmse == 0 else f"{x:z,.{max(0, 1 - floor(log10(rmse)))}f}"
