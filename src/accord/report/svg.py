"""Small pictures as inline SVG: bars and points with intervals, in rows, for notebooks.

No script, nothing that is fetched, no ids that two pictures could share. Text and lines have the colour of
the text around them, so that a picture fits a light page and a dark one; the two colours besides can be told
from both. Everything that is drawn is said in `desc`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

from accord.report.tables import number

ACCENT, SECOND = "#2A87C8", "#C77700"
MOST_MARKS = 30
"""So many rows a picture has."""
_WIDTH, _LABELS, _NUMBERS, _ROW, _MARGIN = 640, 190, 90, 22, 8
_LETTERS = 28
"""So many of a label's letters are shown."""


@dataclass(frozen=True)
class Mark:
    """One row of a picture."""

    label: str
    value: float
    text: str
    """The number as it is written beside it."""
    low: float | None = None
    high: float | None = None
    """The ends of an interval."""
    stroke: float | None = None
    """A second number, as a line across the bar."""
    chosen: bool = True
    """Whether it is drawn in colour; otherwise it is faint."""


def bars(title: str, marks: Sequence[Mark], full: float | None = None) -> str:
    """A bar from zero for each mark; `full`: where the axis ends, if not at the largest number."""
    return _picture(title, marks, True, full)


def points(title: str, marks: Sequence[Mark]) -> str:
    """A point for each mark, with its interval."""
    return _picture(title, marks, False, None)


def _picture(title: str, marks: Sequence[Mark], as_bars: bool, full: float | None) -> str:
    shown = [mark for mark in marks if isfinite(mark.value)][:MOST_MARKS]
    if not shown:
        return ""
    ends = [x for m in shown for x in (m.value, m.low, m.high, m.stroke) if x is not None and isfinite(x)]
    low, high = min(ends), max(ends)
    if as_bars:
        low, high = min(0.0, low), max(0.0, high) if full is None else full
    elif low == high:
        low, high = low - 1, high + 1
    span = (high - low) or 1.0
    start = _LABELS + (0 if as_bars else _MARGIN)
    scale = (_WIDTH - _NUMBERS - start - _MARGIN) / span
    rows = [_row(m, k, as_bars, lambda x: round(start + (x - low) * scale, 1)) for k, m in enumerate(shown)]
    height = _ROW * len(shown) + 8
    described = "; ".join(f"{m.label}: {m.text}{_interval_text(m)}" for m in shown)
    more = f"; and {len(marks) - len(shown)} more" if len(marks) > len(shown) else ""
    caption = f'<figcaption style="opacity:.7;font-size:.9em">{escape(title)}</figcaption>'
    return (
        f'<figure style="margin:.4em 0">{caption}'
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
        f'style="max-width:100%;height:auto;display:block" font-size="12" '
        f'font-family="system-ui,sans-serif" fill="currentColor" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><desc>{escape(described + more)}</desc>{''.join(rows)}</svg></figure>"
    )


def _interval_text(mark: Mark) -> str:
    if mark.low is None or mark.high is None:
        return ""
    return f" ({number(mark.low, 4)} … {number(mark.high, 4)})"


def _row(mark: Mark, k: int, as_bars: bool, x: Callable[[float], float]) -> str:
    """One mark, in its row; `x`: where a number is."""
    y = _ROW * k + 4 + _ROW / 2
    label = mark.label if len(mark.label) <= _LETTERS else f"{mark.label[: _LETTERS - 1]}…"
    parts = [
        f'<text x="{_LABELS - 8}" y="{y + 4}" text-anchor="end">{escape(label)}'
        f"<title>{escape(mark.label)}</title></text>"
    ]
    colour = f'fill="{ACCENT}"' if mark.chosen else 'fill="currentColor" fill-opacity=".3"'
    if as_bars:
        first, last = sorted((x(0.0), x(mark.value)))
        size = f'width="{round(last - first, 1)}" height="14"'
        parts.append(f'<rect x="{first}" y="{y - 7}" {size} {colour}/>')
    if mark.low is not None and mark.high is not None:
        ends = x(mark.low), x(mark.high)
        path = "".join(f"M{end} {y - 4}V{y + 4}" for end in ends)
        parts.append(f'<path d="M{ends[0]} {y}H{ends[1]}{path}" fill="none" stroke="currentColor"/>')
    if mark.stroke is not None:
        at = x(mark.stroke)
        parts.append(f'<path d="M{at} {y - 9}V{y + 9}" stroke="{SECOND}" stroke-width="2.5"/>')
    if not as_bars:
        parts.append(f'<circle cx="{x(mark.value)}" cy="{y}" r="4.5" {colour}/>')
    parts.append(f'<text x="{_WIDTH - _NUMBERS + 8}" y="{y + 4}">{escape(mark.text)}</text>')
    return "".join(parts)
