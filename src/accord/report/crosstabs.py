"""Tables by two columns as people read them: one column down, one across, with margins.

For answers that add up (counts, sums, numbers of rows) and whose cells fit on a line; every other answer by
several columns is a list of its groups.
"""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from accord.release import Release
from accord.release.margins import adds_up
from accord.report.tables import MOST_GROUPS, add_row, error, near, text_table
from accord.statistics import Grouped

_MOST_ACROSS = 8
_CELL, _ALL = "a cell", "in all"
_FEW = "*"


def has_two_ways(release: Release) -> bool:
    """Whether an answer is shown with one column down and one across."""
    query = release.plan.query
    if not isinstance(query, Grouped) or len(query.part.by) != 2 or not adds_up(release.plan):
        return False
    if query.part.suppress:
        return False
    sizes = sorted(map(len, query.part.keys))
    return sizes[0] <= _MOST_ACROSS and sizes[1] <= MOST_GROUPS


def crosstab_views(release: Release) -> list[RenderableType]:
    """The cells with their margins; and how far they may be off."""
    part = release.plan.query.part
    down, across = part.by
    if len(part.keys[1]) > _MOST_ACROSS:
        down, across = across, down
    of_down, of_across = release.margin(down), release.margin(across)
    (total,) = release.margin()
    cells: dict[tuple[Any, Any], dict[str, Any]] = {
        (row[down], row[across]): row for row in release.margin(down, across)
    }
    columns = [f">{row[across]}" for row in of_across]
    table = text_table(f"{down} \\ {across}", *columns, f">{_ALL}")
    for margin in of_down:
        shown = [_cell(cells[margin[down], row[across]]) for row in of_across]
        add_row(table, str(margin[down]), *shown, _cell(margin))
    add_row(table, _ALL, *map(_cell, of_across), _cell(total))
    everything = [*cells.values(), *of_down, *of_across, total]
    few = [Text(f"{_FEW} too few people to tell", "dim")] if any(row["few"] for row in everything) else []
    errors = text_table("", ">error", ">95 % interval")
    for of, rows in ((_CELL, [*cells.values()]), (down, of_down), (across, of_across), (_ALL, [total])):
        add_row(errors, of, *_off(rows))
    about = (
        "error: about the population; interval: about these people. Margins are sums of the cells: they are "
        "about whoever is in one of these"
    )
    return [table, *few, errors, Text(about, "dim")]


def _cell(row: dict[str, Any]) -> str:
    return f"{near(row['value'], row['rmse'])}{_FEW if row['few'] else ''}"


def _off(rows: list[dict[str, Any]]) -> tuple[str, str]:
    """The error of some answers, and how far their intervals reach: where they differ, of the least sure."""
    worst = max(rows, key=lambda row: float(row["rmse"]))
    below, above = worst["value"] - worst["low"], worst["high"] - worst["value"]
    is_even = abs(above - below) <= 1e-6 * abs(above)
    reach = f"± {error(above)}" if is_even else f"− {error(below)} + {error(above)}"
    up_to = "up to " if any(row["rmse"] < worst["rmse"] for row in rows) else ""
    return f"{up_to}{error(worst['rmse'])}", f"{up_to}{reach}"
