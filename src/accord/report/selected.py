"""Answers to a SELECT, as a table of text; or, where that has no room, as a block for each row."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accord.release import Release
from accord.release.selected import Answers, Cell
from accord.report.plans import assumptions_of, bias_text, boxes_text, charges_view, rows_view
from accord.report.releases import about_suppressed, error_text, repeated_text, unbooked_text
from accord.report.tables import (
    MOST_GROUPS,
    WIDTH,
    add_row,
    bullet,
    near,
    number,
    shortened,
    text_table,
    to_text,
)

_ENDLESS = 100_000
"""A width that every table fits into."""


def answers_text(answers: Answers) -> str:
    """What `print` shows of the answers to a SELECT."""
    return to_text(answers_view(answers))


def answers_view(answers: Answers, width: int | None = WIDTH) -> RenderableType:
    """Every answer with its interval; what is left out; what it cost together; and what is taken for granted.

    `width`: how many letters have room in a line; None: any number.
    """
    release, names = answers.release, answers.selected.names
    each = {name: answers[name] for name in names}
    one = {name: part for name, part in each.items() if part.plan.choice is not None}
    suppressed = _by_text((name, text.plain) for name, part in one.items() for text in about_suppressed(part))
    rows = [view for part in one.values() for view in rows_view(part.plan)]
    views: list[RenderableType] = [Text(answers.sql, "bold")]
    views += {str(view): view for view in rows}.values()
    views += _answers(answers, width)
    views += [Text(_about(names, those, text)) for text, those in suppressed.items()]
    views += ["", *_charges(release), "", *_taken_for_granted(one, names)]
    if release.unbooked is not None:
        views += ["", Text(unbooked_text(release))]
    return Group(*views)


def _answers(answers: Answers, width: int | None) -> list[RenderableType]:
    """One table, or a block for each row."""
    rows = answers.table()
    more = f"… {len(rows) - MOST_GROUPS:,} more rows: .rows, or --json"
    by, names = answers.selected.by, answers.selected.names
    noted = {name for _, cells in rows for name in names if cells[name].is_marked}
    heads = (head for name in names for head in (f">{name}", ">95 %", *([""] if name in noted else [])))
    table = _unbroken(text_table(*by, *heads))
    for shown in shortened(rows, MOST_GROUPS):
        if shown is None:
            add_row(table, more, style="dim")
            continue
        keys, cells = shown
        texts = (text for name in names for text in _texts(cells[name])[: 2 + (name in noted)])
        add_row(table, *map(str, keys.values()), *texts)
    if width is None or _width(table) <= width:
        return [table]
    views: list[RenderableType] = []
    for shown in shortened(rows, MOST_GROUPS):
        if shown is None:
            views += [Text(more, "dim")]
            continue
        keys, cells = shown
        if by:
            views.append(Text(", ".join(f"{column} = {key}" for column, key in keys.items()), "bold"))
        views += _block(cells, width)
    return views


def _block(cells: dict[str, Cell], width: int) -> list[RenderableType]:
    """The answers of one row, a line for each; of narrow terminals two."""
    is_noted = any(cell.is_marked for cell in cells.values())
    table = _unbroken(text_table("aggregate", ">value", ">95 %", *([""] if is_noted else [])))
    for name, cell in cells.items():
        add_row(table, name, *_texts(cell)[: 2 + is_noted])
    longest = max(map(len, cells))
    if _width(table) - max(0, longest - 12) + 2 <= width:
        return [Padding(table, (0, 0, 0, 2))]
    views: list[RenderableType] = []
    for name, cell in cells.items():
        value, interval, note = _texts(cell)
        ends = f"   95 % {interval}" if cell.value is not None and interval else f"   {interval}"
        views += [Text(name), Text(f"  {value}{ends}   {note}".rstrip())]
    return views


def _unbroken(table: Table) -> Table:
    """A table of which no line breaks in a number."""
    for column in table.columns:
        column.no_wrap = column.justify == "right"
    return table


def _width(table: Table) -> int:
    """How wide a table is where it has all the room that it wants."""
    endless = Console(file=StringIO(), width=_ENDLESS, force_jupyter=False)
    return Measurement.get(endless, endless.options, table).maximum


def _texts(cell: Cell) -> tuple[str, str, str]:
    """An answer, its interval, to the digits that it leaves, and what else is to be said."""
    value, note = cell.value, cell.note or ""
    if value is None:
        return "–", note, ""
    if cell.percentiles is not None:
        least, most = cell.percentiles
        return _point(value), f"{near(least, 1)} … {near(most, 1)} percentile", note
    if cell.interval is None:
        return _point(value), "", note
    if not isinstance(value, float):
        return str(value), f"{cell.interval[0]} … {cell.interval[1]}", note
    width = cell.interval[1] - cell.interval[0]
    low, high = (near(end, width / 4) for end in cell.interval)
    return near(value, width / 4), f"{low} … {high}", note


def _point(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _charges(release: Release) -> list[RenderableType]:
    if release.repeated is not None:
        return [Text(repeated_text(release))]
    if release.plan.is_grouped or any(part.plan.is_grouped for part in release.parts):
        text = "Public groups are charged one by one: see answers.charges (on the command line --json)."
        return [Text(text)]
    boxes = boxes_text(release.plan) if release.plan.is_workload else []
    return [*map(Text, boxes), charges_view(release.plan)]


def _taken_for_granted(planned: dict[str, Release], names: tuple[str, ...]) -> list[RenderableType]:
    """The error of each aggregate, how far it may be off where levels go with values, and all assumptions."""
    views: list[RenderableType] = [
        Text(f"{name}, by {part.mechanism}: {error_text(part)}") for name, part in planned.items()
    ]
    biases = _by_text((name, bias_text(part.plan).plain) for name, part in planned.items())
    views += [Text(_about(names, those, text)) for text, those in biases.items()]
    assumed = _by_text((name, text) for name, part in planned.items() for text in assumptions_of(part.plan))
    if assumed:
        views.append(Text("Taken as public knowledge:", "bold"))
    ordered = sorted(assumed.items(), key=lambda about: len(about[1]) == len(names))
    return [*views, *(bullet(_about(names, those, text)) for text, those in ordered)]


def _by_text(said: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Of which aggregates each sentence is."""
    of_text: dict[str, list[str]] = {}
    for name, text in said:
        of_text.setdefault(text, []).append(name)
    return of_text


def _about(names: tuple[str, ...], those: list[str], text: str) -> str:
    """A sentence with those aggregates that it is of, unless it is of all."""
    return text if len(those) == len(names) else f"{', '.join(those)}: {text}"
