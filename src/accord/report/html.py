"""What notebooks show: the same views as text, in HTML, with a small picture.

What is in a table, a plan or an answer is decided once, in the views of this folder; here they are written
as HTML. Names of columns, keys and tiers may be anything: every text is escaped where it is written, in
`_text` and in svg.py, and nowhere else is HTML made of text. Styles are attributes, because notebooks that
are not trusted drop style sheets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from accord.budget import level_text
from accord.errors import AccordError
from accord.planning import NO_DATA, Plan
from accord.release import Release
from accord.release.selected import Answers
from accord.release.tidy import OWN_NAMES, Row, tidy
from accord.report import svg
from accord.report.ledgers import accounts_view
from accord.report.plans import plan_view, spec_view
from accord.report.releases import release_view
from accord.report.selected import answers_view
from accord.report.svg import Mark
from accord.report.tables import add_row, error, number, text_table
from accord.spec import Spec
from accord.statistics import Coefficients

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.people.table import Table

_CELL = "padding:.15em .9em .15em 0;border:0;vertical-align:top;white-space:pre-wrap;text-align:"
_MOST_COLUMNS = 60


def spec_html(spec: Spec) -> str:
    """The levels, and how many people chose each."""
    return article(spec_view(spec), _spec_picture(spec))


def plan_html(plan: Plan) -> str:
    """What would be done, and how well everything else would do."""
    return article(plan_view(plan), _plan_picture(plan))


def release_html(release: Release) -> str:
    """The answer, how far it may be off, and what it cost."""
    pictures = [_release_picture(part) for part in _questions(release)]
    return article(release_view(release), "".join(pictures))


def answers_html(answers: Answers) -> str:
    """The answers to a SELECT, with a picture of each aggregate."""
    pictures = [_release_picture(answers[name]) for name in answers.selected.names]
    return article(answers_view(answers, None), "".join(pictures))


def ledger_html(ledger: Ledger) -> str:
    """Accounts by table and level. Nobody is in them by themselves."""
    try:
        accounts = ledger.accounts()
    except AccordError as fault:  # to be told, but not by a notebook that fails to show something
        return article(Text(str(fault)))
    marks = [
        Mark(
            f"{a.table}, {a.tier or f'ε = {a.level:g}'}",
            min(1.0, a.spent[1] / a.level),
            f"{min(1.0, a.spent[1] / a.level):.0%}",
            stroke=min(1.0, a.spent[0] / a.level),
        )
        for a in accounts
        if 0 < a.level < inf
    ]
    picture = svg.bars("Part of the level that is spent: bar, the most; stroke, the least", marks, full=1.0)
    return article(
        Group(Text(f"Ledger {ledger.label}", "bold"), accounts_view(accounts, ledger.renewal)), picture
    )


def table_html(table: Table) -> str:
    """The columns and what they hold; the levels, if they have been read. Nothing is read for it."""
    columns = table.columns
    names = {table.level_column: "the levels", table.user: "who a row is of"}
    grid = text_table("column", "holds", "", title=f"Table of {len(columns)} columns")
    for column in list(columns)[:_MOST_COLUMNS]:
        add_row(grid, column, columns[column], names.get(column, ""))
    if len(columns) > _MOST_COLUMNS:
        add_row(grid, f"… {len(columns) - _MOST_COLUMNS:,} more columns", "", "")
    neighbors = Text(f"neighbors: {table.neighbors}")
    if not table.known:
        return article(Group(grid, neighbors, Text("The levels have not been read yet: spec().", "dim")))
    return article(Group(grid, neighbors)) + spec_html(table.spec())


# ---- views as HTML -----------------------------------------------------------------------------------------


def article(view: RenderableType, picture: str = "") -> str:
    """A view as HTML, with a picture after its first paragraph or, where it has none, before it."""
    pieces = list(_pieces(view))
    after_head = 1 if pieces and pieces[0].startswith("<p") and len(pieces) > 1 else 0
    content = "".join([*pieces[:after_head], picture, *pieces[after_head:]])
    return f'<div style="line-height:1.4;margin:.4em 0">{content}</div>'


def _pieces(view: RenderableType) -> Iterator[str]:
    match view:
        case Group():
            for part in view.renderables:
                yield from _pieces(part)
        case Grid():
            yield _grid(view)
        case Padding():
            yield from _pieces(view.renderable)
        case Text():
            yield f'<p style="margin:.2em 0;{_weight(str(view.style))}">{_text(view)}</p>'
        case str():
            if view:
                yield f'<p style="margin:.2em 0">{_text(view)}</p>'
        case _:
            raise TypeError(f"no view has a {type(view).__name__}")


def _text(cell: Any) -> str:
    """A cell or a paragraph; parts of it may be bold."""
    if not isinstance(cell, Text):
        return escape(str(cell))
    if not cell.spans:
        return escape(cell.plain)
    pieces, done = [], 0
    for span in sorted(cell.spans, key=lambda span: span.start):
        start = max(done, span.start)
        pieces.append(escape(cell.plain[done:start]))
        pieces.append(
            f'<span style="{_weight(str(span.style))}">{escape(cell.plain[start : span.end])}</span>'
        )
        done = max(done, span.end)
    return "".join([*pieces, escape(cell.plain[done:])])


def _weight(style: str) -> str:
    """What a style of the terminal becomes: bold and faint. Colours would not suit every page."""
    words = style.split()
    return ("font-weight:600;" if "bold" in words else "") + ("opacity:.7;" if "dim" in words else "")


def _grid(grid: Grid) -> str:
    """A table with its head; its title is its caption."""
    sides = ["right" if column.justify == "right" else "left" for column in grid.columns]
    head = "".join(
        f'<th scope="col" style="{_CELL}{side};font-weight:400;opacity:.7">{_text(column.header)}</th>'
        for column, side in zip(grid.columns, sides, strict=True)
    )
    body = []
    columns = [list(column.cells) for column in grid.columns]
    for row, *cells in zip(grid.rows, *columns, strict=True):
        weight = _weight(str(row.style or ""))
        written = (
            f'<td style="{_CELL}{side};{weight}">{_text(c)}</td>'
            for c, side in zip(cells, sides, strict=True)
        )
        body.append(f'<tr style="background:none">{"".join(written)}</tr>')
    caption = ""
    if grid.title is not None:
        style = "text-align:left;font-weight:600;color:inherit;padding:.2em 0"
        caption = f'<caption style="{style}">{_text(grid.title)}</caption>'
    return (
        '<table style="border-collapse:collapse;margin:.4em 0;font-size:inherit">'
        f"{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


# ---- pictures ----------------------------------------------------------------------------------------------


def _spec_picture(spec: Spec) -> str:
    everyone = spec.total + spec.opted_out
    groups = list(zip(spec.micro[: svg.MOST_MARKS].tolist(), spec.counts, strict=False))
    marks = [Mark(spec.tier(m) or f"ε = {level_text(m)}", n, f"{n / everyone:.0%}") for m, n in groups]
    if spec.opted_out:
        label = spec.tier(0) or "opted out"
        marks.append(Mark(label, spec.opted_out, f"{spec.opted_out / everyone:.0%}", chosen=False))
    are_expected = "How many people are expected to have which level"
    return svg.bars(are_expected if spec.is_expected else "How many people have which level", marks)


def _plan_picture(plan: Plan) -> str:
    if plan.is_workload:
        return "".join(_plan_picture(part) for part in plan.parts)
    if plan.is_grouped:
        marks = [
            Mark(plan.query.part.name(key), part.rmse, error(part.rmse))
            for key, part in plan.plans.items()
            if part is not None
        ]
        return svg.bars(f"{plan.query.label}: predicted error of each group", marks)
    marks = [
        Mark(c.mechanism, c.rmse, error(c.rmse), stroke=c.rmse_here, chosen=c.mechanism == plan.mechanism)
        for c in sorted(plan.candidates, key=lambda c: (c.rmse is None, c.rmse))
        if c.rmse is not None and not isnan(c.rmse)
    ]
    if plan.mechanism in NO_DATA:
        marks.append(Mark(plan.mechanism, plan.rmse, error(plan.rmse), stroke=plan.rmse_here))
    about = "predicted error of every mechanism; bar: about the population, stroke: about these people"
    return svg.bars(f"{plan.query.label}: {about}", marks)


def _questions(release: Release) -> Sequence[Release]:
    return release.parts if release.plan.is_workload else (release,)


def _release_picture(release: Release) -> str:
    """Bars of people in cells; otherwise a point for each number. A single one needs no picture."""
    if isinstance(release.value, Coefficients):
        return _coefficients_picture(release.value)
    rows = [row for row in tidy(release) if isinstance(row["value"], float)]
    if len(rows) < 2 or any("term" in row for row in rows):
        return ""
    draw = svg.bars if all("cell" in row for row in rows) else svg.points
    return draw(f"{release.plan.query.label}, with 95 % intervals", [_mark(row) for row in rows])


def _mark(row: Row) -> Mark:
    names = [str(value) for name, value in row.items() if name not in OWN_NAMES]
    names += [str(row["cell"])] if "cell" in row else []
    names += [f"p = {row['p']:g}"] if "p" in row else []
    label = ", ".join(names)
    return Mark(
        label, row["value"], number(row["value"], 4), row["low"], row["high"], chosen=not row.get("few")
    )


def _coefficients_picture(fitted: Coefficients) -> str:
    """What each feature does to the target between its bounds."""
    effects = zip(fitted.coefficients, fitted.scaled[1:], strict=True)
    marks = [
        Mark(name, 2 * fitted.query.half * slope, number(2 * fitted.query.half * slope, 4))
        for name, slope in effects
    ]
    target = fitted.query.target.column
    return svg.bars(
        f"Change of {target} between the bounds of each feature, or from the first category", marks
    )
