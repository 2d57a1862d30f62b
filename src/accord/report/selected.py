"""Answers to a SELECT, as a table of text."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from accord.release.selected import Answers
from accord.report.plans import charges_view
from accord.report.releases import about_suppressed, repeated_text
from accord.report.tables import MOST_GROUPS, add_row, near, number, shortened, text_table, to_text


def answers_text(answers: Answers) -> str:
    """What `print` shows of the answers to a SELECT."""
    return to_text(answers_view(answers))


def answers_view(answers: Answers) -> RenderableType:
    """A row for each group, with the interval of every answer; and what all of them cost together."""
    by, names = answers.selected.by, answers.selected.names
    table = text_table(*by, *(head for name in names for head in (f">{name}", ">95 %")))
    rows = list(zip(answers.rows, answers.intervals(), strict=True))
    for shown in shortened(rows, MOST_GROUPS):
        if shown is None:
            add_row(table, f"… {len(rows) - MOST_GROUPS:,} more rows: .rows, or --json", style="dim")
            continue
        row, intervals = shown
        cells = [text for name in names for text in _answer(row[name], intervals[name])]
        add_row(table, *(str(row[column]) for column in by), *cells)
    each = (text for part in answers.release.parts or (answers.release,) for text in about_suppressed(part))
    suppressed = {text.plain: text for text in each}.values()
    more = Text("Assumptions and errors of each: print(answers.release); on the command line --json.", "dim")
    return Group(Text(answers.sql, "bold"), table, *suppressed, "", _charges(answers), "", more)


def _charges(answers: Answers) -> RenderableType:
    release = answers.release
    if release.repeated is not None:
        return Text(repeated_text(release))
    if release.plan.is_grouped or any(part.plan.is_grouped for part in release.parts):
        return Text("Public groups are charged one by one: answers.charges has them.")
    return charges_view(release.plan)


def _answer(value: Any, interval: Any) -> tuple[str, str]:
    """An answer and its interval, to the digits that the interval leaves."""
    if value is None:
        return "–", "nobody is there to ask"
    if not isinstance(value, float):
        return str(value), "" if interval is None else f"{interval[0]} … {interval[1]}"
    if interval is None:
        return number(value), ""
    width = interval[1] - interval[0]
    low, high = (near(end, width / 4) for end in interval)
    return near(value, width / 4), f"{low} … {high}"
