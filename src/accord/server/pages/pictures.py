"""Pictures of the pages, as inline SVG without styles of its own; all they show is in a table beside, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite, isnan

from markupsafe import Markup

from accord.planning import NO_DATA, Plan
from accord.report import svg
from accord.report.svg import Mark
from accord.report.tables import error, number

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 48, 150, 10, 26
_COLORS = ("#2A87C8", "#C77700", "#4C9F70", "#A4508B", "#8A7400", "#6B7685")
_DASHES = ("none", "7 4", "2 3", "10 3 2 3", "4 4", "1 2")
_APART = 15


def candidates(plan: Plan) -> Markup:
    """The predicted error of every mechanism."""
    marks = [
        Mark(c.mechanism, c.rmse, error(c.rmse), stroke=c.rmse_here, chosen=c.mechanism == plan.mechanism)
        for c in sorted(plan.candidates, key=lambda c: (c.rmse is None, c.rmse))
        if c.rmse is not None and not isnan(c.rmse)
    ]
    if plan.mechanism in NO_DATA:
        marks.append(Mark(plan.mechanism, plan.rmse, error(plan.rmse), stroke=plan.rmse_here))
    title = "Expected error of every way to answer (bar: about the population; line: about these people)"
    return bars(title, marks)


def bars(title: str, marks: Sequence[Mark], full: float | None = None) -> Markup:
    """A bar from zero for each mark; `full`: where the axis ends, if not at the largest number."""
    return _rows(title, marks, True, full)


def points(title: str, marks: Sequence[Mark]) -> Markup:
    """A point for each mark, with its interval."""
    return _rows(title, marks, False, None)


def _rows(title: str, marks: Sequence[Mark], as_bars: bool, full: float | None) -> Markup:
    """A row for each mark: its name, a small picture as wide as there is room for, and the number."""
    shown = [mark for mark in marks if isfinite(mark.value)][: svg.MOST_MARKS]
    if not shown:
        return Markup("")
    ends = [x for m in shown for x in (m.value, m.low, m.high, m.stroke) if x is not None and isfinite(x)]
    low, high = min(ends), max(ends)
    if as_bars:
        low, high = min(0.0, low), max(0.0, high) if full is None else full
    span = (high - low) or 1.0
    margin = 0.0 if as_bars and low == 0 else 2.0

    def at(x: float) -> str:
        return f"{margin + (98.0 - margin) * min(1.0, max(0.0, (x - low) / span)):.2f}%"

    rows = "".join(_row(mark, as_bars, at) for mark in shown)
    said = "; ".join(f"{m.label}: {m.text}{_interval(m)}" for m in shown)
    more = f"; and {len(marks) - len(shown)} more" if len(marks) > len(shown) else ""
    return Markup(
        f'<figure><figcaption>{escape(title)}</figcaption><div class="rows" role="img" '
        f'aria-label="{escape(title)}: {escape(said + more)}">{rows}</div></figure>'
    )


def _interval(mark: Mark) -> str:
    if mark.low is None or mark.high is None:
        return ""
    return f" ({number(mark.low, 4)} … {number(mark.high, 4)})"


def _row(mark: Mark, as_bars: bool, at: Callable[[float], str]) -> str:
    name = "chosen" if mark.chosen else "other"
    pieces = []
    if as_bars:
        first, last = sorted((at(0.0), at(mark.value)), key=lambda place: float(place[:-1]))
        width = f"{float(last[:-1]) - float(first[:-1]):.2f}%"
        pieces.append(f'<rect x="{first}" y="4" width="{width}" height="14" class="{name}"/>')
    if mark.low is not None and mark.high is not None:
        ends = at(mark.low), at(mark.high)
        pieces.append(f'<line x1="{ends[0]}" x2="{ends[1]}" y1="11" y2="11" class="interval"/>')
        pieces += [f'<line x1="{end}" x2="{end}" y1="7" y2="15" class="interval"/>' for end in ends]
    if mark.stroke is not None:
        pieces.append(f'<line x1="{at(mark.stroke)}" x2="{at(mark.stroke)}" y1="1" y2="21" class="stroke"/>')
    if not as_bars:
        pieces.append(f'<circle cx="{at(mark.value)}" cy="11" r="4.5" class="{name}"/>')
    label, text = escape(mark.label), escape(mark.text)
    picture = f'<svg height="22" focusable="false">{"".join(pieces)}</svg>'
    return f'<span class="label" title="{label}">{label}</span>{picture}<span class="text">{text}</span>'


@dataclass(frozen=True)
class Line:
    """What grows step by step."""

    label: str
    steps: tuple[tuple[float, float], ...]
    """When, from 0 to 1, and how much since then, from 0 to 1; ascending."""
    text: str


def staircase(title: str, lines: Sequence[Line], first: str, last: str) -> Markup:
    """Lines that go up at each step; `first` and `last` are the ends of the time.

    >>> "<path" in staircase("spent", [Line("strict", ((0.5, 0.2),), "20 %")], "May", "June")
    True
    """
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    pieces = []
    for level in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = round(bottom - level * (bottom - _TOP), 1)
        pieces.append(f'<path d="M{_LEFT} {y}H{right}" stroke="currentColor" stroke-opacity=".18"/>')
        pieces.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{level:.0%}</text>')
    ends = [line.steps[-1][1] if line.steps else 0.0 for line in lines]
    places = _apart([bottom - end * (bottom - _TOP) for end in ends])
    for k, (line, end) in enumerate(zip(lines, ends, strict=True)):
        path = f"M{_LEFT} {bottom}"
        for time, amount in line.steps:
            path += f"H{_LEFT + time * (right - _LEFT):.1f}V{bottom - amount * (bottom - _TOP):.1f}"
        color = f'stroke="{_COLORS[k % len(_COLORS)]}" stroke-dasharray="{_DASHES[k % len(_DASHES)]}"'
        pieces.append(f'<path d="{path}H{right}" fill="none" stroke-width="2.5" {color}/>')
        y = round(bottom - end * (bottom - _TOP), 1)
        pieces.append(f'<path d="M{right} {y}L{right + 8} {places[k]}" fill="none" {color}/>')
        pieces.append(f'<text x="{right + 12}" y="{places[k] + 4}">{escape(line.label)}, {line.text}</text>')
    pieces.append(f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{escape(first)}</text>')
    pieces.append(f'<text x="{right}" y="{_HEIGHT - 6}" text-anchor="end">{escape(last)}</text>')
    described = "; ".join(f"{line.label}: {line.text}" for line in lines)
    return Markup(
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="Picture">'
        f'<svg class="staircase" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" font-size="12" font-family="system-ui,sans-serif" fill="currentColor" '
        f'aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc>{''.join(pieces)}"
        "</svg></div></figure>"
    )


def _apart(places: list[float]) -> list[float]:
    """Places of labels, moved up until none lies on another.

    >>> _apart([100, 100, 40])
    [100, 85, 40]
    """
    taken: list[float] = []
    moved = dict.fromkeys(range(len(places)), 0.0)
    for k in sorted(moved, key=lambda k: (-places[k], k)):
        y = min([places[k], *(other - _APART for other in taken[-1:])])
        taken.append(y)
        moved[k] = y
    return [round(moved[k], 1) for k in moved]
