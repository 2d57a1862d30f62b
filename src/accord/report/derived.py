"""Numbers that are derived from answers, as text, HTML and pictures."""

from __future__ import annotations

from math import isinf
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from accord.release.derived import Derived, FromAnswers, Ratio
from accord.release.numbers import Number, named, sentences
from accord.release.tidy import derived_row
from accord.report.answer_figures import draw_points, height_of
from accord.report.figures import blank_figure, lines
from accord.report.html import article
from accord.report.tables import (
    MOST_ROWS,
    add_row,
    bullet,
    error,
    near,
    number,
    shortened,
    text_table,
    to_text,
)
from accord.statistics import Ends


def derived_text(derived: FromAnswers) -> str:
    """What `print` shows of it."""
    return to_text(derived_view(derived))


def derived_html(derived: FromAnswers) -> str:
    """What a notebook shows of it."""
    return article(derived_view(derived))


def derived_figure(derived: FromAnswers) -> Any:
    """The number with its interval, if that is bounded."""
    row = derived_row(derived, 0.95)
    if isinf(row["high"]):
        row |= {"low": None, "high": None}
    figure = blank_figure(7.5, height_of(1))
    axes = figure.subplots()
    axes.set_title(lines(row["formula"], 70), fontsize=10, loc="left", fontweight="bold")
    draw_points(axes, [row])
    return figure


def derived_view(derived: FromAnswers) -> RenderableType:
    """The number, how far it may be off, and what it was derived from."""
    names = named(derived.numbers)
    head = Text.assemble((derived.formula(names), "bold"), ", derived from released numbers, free of charge")
    ends = derived.interval(0.95)
    off = derived.rmse_here if isinstance(derived, Derived) else (ends[1] - ends[0]) / 4
    value = number(derived.value) if isinf(off) else near(derived.value, off)
    answer = Text.assemble("  ", (value, "bold green"), f"   {_interval_words(derived, ends, off)}")
    rmse = [Text(f"rmse at most {error(off)} about these people")] if isinstance(derived, Derived) else []
    notes = [bullet(sentence) for sentence in sentences(derived.numbers)]
    return Group(head, answer, *rmse, "", _parents_table(names), *notes)


def _interval_words(derived: FromAnswers, ends: Ends, off: float) -> str:
    if isinstance(derived, Ratio) and isinf(ends[1]):
        low, high = (number(end, 4) for end in derived.denominator.interval(0.95))
        return f"95 %: any number is possible, because the denominator may be 0 ({low} … {high})"
    return f"95 % interval {near(ends[0], off)} … {near(ends[1], off)}"


def _parents_table(names: dict[Number, str]) -> RenderableType:
    is_booked = any(parent.release.booked is not None for parent in names)
    table = text_table("", "released number", ">value", "answered", "booked as" if is_booked else "")
    for parent in shortened(list(names), MOST_ROWS):
        if parent is None:
            add_row(
                table,
                "…",
                f"{len(names) - MOST_ROWS:,} more; all of them: .receipt()",
                "",
                "",
                "",
                style="dim",
            )
            continue
        release = parent.release
        entry = "" if release.booked is None else f"entry {release.booked.entry:,}"
        answered = "" if release.time is None else f"{release.time:%Y-%m-%d %H:%M} UTC"
        errors = parent.rmse_here
        value = near(parent.value, (errors[0] ** 2 + errors[1] ** 2) ** 0.5)
        add_row(table, names[parent], parent.label, value, answered, entry)
    return table
