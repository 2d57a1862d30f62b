"""What an audit found, for readers: a table in the terminal, and a page to be filed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from html import escape
from math import inf, isinf
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

import accord
from accord.errors import AccordError
from accord.lab import html
from accord.lab.audit.findings import WAYS, Audit, Finding, Seen
from accord.mechanisms import ALL
from accord.report.figures import CHOSEN, LEVEL, pyplot

_SHOWN = 40
_VIOLATED = "#B00020"
_COLOURS = {"exact": CHOSEN, "replay": LEVEL, "program": "#CC79A7", "empirical": "#009E73"}
_HEAD = ("mechanism", "statistic", "neighbors", "level", *WAYS)
_TOLD = {
    "exact": "Every table on a tiny domain (two or three people, a few values, missing ones among them), "
    "every neighbor and every output: the largest |log ratio| of probabilities, reckoned, not "
    "estimated.",
    "replay": "Neighbors of people of the bundled table through the real engine, with the noise frozen: by "
    "how much the integers and scores behind an answer move, against the noise that each of them "
    "gets; nothing else may move.",
    "program": "Random programs on random tables, through the library and the command line, in two worlds "
    "that differ in one person, with the noise recorded: whatever they show is the same, and what "
    "noise was added to moves by no more than that person is charged.",
    "empirical": "Many releases with real noise on the neighbors that the exact way found to be worst: a "
    "loss that they surely show, which is below the true one.",
}


def verdict(found: Audit) -> str:
    """In a sentence."""
    ways = sorted({way for f in found.findings for way in f.looks}, key=WAYS.index)
    looked = (
        f"{len(found.findings):,} promises were looked at by {_listed([f'the {way} way' for way in ways])}"
    )
    if found.passed:
        return f"Passed: nobody was seen to lose more than they were promised. {looked}."
    return f"VIOLATED: {len(found.violations)} of {len(found.findings):,} promises are broken. {looked}."


def terms(found: Audit) -> str:
    """What the numbers depend on."""
    told = f"accord {accord.__version__}; {found.seconds:.0f} s; seed {found.seed} for neighbors and programs"
    if not found.runs:
        return f"{told}; without the empirical way (--runs 10000)"
    return (
        f"{told}; {found.runs:,} releases of each table (a twentieth of that where each reads it anew), α = "
        f"{found.alpha:g} in all, shared among {found.looks:,} looks"
    )


def view(found: Audit) -> Any:
    """A table for the terminal, worst first."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in _HEAD:
        grid.add_column(name, overflow="fold")
    shown = found.findings[: max(_SHOWN, len(found.violations))]
    for finding in shown:
        cells = [
            Text(_cell(look), style="bold red" if look and look.violated else "") for look in _looks(finding)
        ]
        grid.add_row(finding.mechanism, finding.statistic, finding.neighbors, finding.level, *cells)
    parts: list[Any] = [Text(verdict(found), style="bold" if found.passed else "bold red"), ""]
    parts += [Text(text) for text in _problems(found)]
    parts += [Text("ε lost of ε promised, worst first:", style="dim"), grid]
    if len(shown) < len(found.findings):
        parts.append(
            Text(f"… and {len(found.findings) - len(shown):,} more: --json, or --html FILE", style="dim")
        )
    parts += ["", Text(terms(found), style="dim")]
    parts += [Text(f"not looked at: {text}", style="dim") for text in found.unseen]
    return Group(*parts)


def scripts(found: Audit) -> list[str]:
    """Programs that show what was found, as they are: a line that is wrapped is another program."""
    return [look.script for f in found.violations for look in f.violations if look.script]


def _problems(found: Audit) -> list[str]:
    return [
        f"{f.mechanism}, "
        f"{f.statistic}{f', {f.neighbors}' if f.neighbors else ''}{f', level {f.level}' if f.level else ''}: "
        f"{look.way}: {look.said}"
        for f in found.violations
        for look in f.violations
    ]


def _looks(finding: Finding) -> list[Seen | None]:
    return [finding.looks.get(way) for way in WAYS]


def _cell(look: Seen | None) -> str:
    if look is None:
        return "–"
    found = "∞" if isinf(look.found) else f"{float(look.found):.4g}"
    return f"{found} of {float(look.promised):.4g}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- the page ----------------------------------------------------------------------------------------------


def write(found: Audit, path: Path) -> Path:
    """The page, in one file, with pictures."""
    title = "Audit of accord's promises"
    body = [
        f"<h1>{title}</h1>",
        f"<p{'' if found.passed else ' class=no'}><b>{escape(verdict(found))}</b></p>",
        f"<p>{datetime.now(UTC):%Y-%m-%d %H:%M} UTC. {escape(terms(found))}.</p>",
        "<p>A release promises every person that what it tells about them is bounded by their charge, which "
        "is never more than the level that they chose: no output is more than "
        "exp(charge) times as probable with their data as with other data. Each row below is one such "
        "promise; it shows how much was lost at worst, and how much was promised.</p><ul>",
        *(f"<li><b>{way}</b>: {escape(text)}</li>" for way, text in _TOLD.items()),
        "</ul>",
        *(f'<p class="no">{escape(text)}</p>' for text in _problems(found)),
        "<h2>Lost against promised</h2>",
        "<p>Every promise is a point. On the line, exactly what was promised is lost, as a mechanism should "
        "that wastes nothing; above it, more.</p>",
        _scatter(found),
        "<h2>By mechanism and statistic</h2>",
        "<p>The largest part of a promise that was seen to be lost, in percent. More than 100 is a "
        "violation.</p>",
        _map(found),
        "<h2>All promises, worst first</h2>",
        *html.table(_HEAD, *_rows(found)),
        *(f"<pre>{escape(script)}</pre>" for script in scripts(found)),
        "<h2>Not looked at</h2><ul>",
        *(f"<li>{escape(text)}</li>" for text in found.unseen),
        "</ul>",
    ]
    with _writing(path):
        path.write_text(html.document(title, body), encoding="utf-8")
    return path


def need_place(path: Path) -> None:
    """Refuses a page that cannot be written, or drawn, before minutes are spent."""
    pyplot()
    with _writing(path), path.open("ab"):
        pass


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise AccordError(
            f"cannot write the page {str(path)!r} ({type(fault).__name__}). Name a file in a folder that "
            "exists."
        ) from None


def _rows(found: Audit) -> tuple[list[list[str]], list[str]]:
    rows, bad = [], []
    for f in found.findings:
        rows.append([f.mechanism, f.statistic, f.neighbors, f.level, *map(_cell, _looks(f))])
        bad += [_cell(look) for look in f.violations]
    return rows, bad


def _scatter(found: Audit) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    looks = [
        look for f in found.findings for look in f.looks.values() if look.promised > 0 and look.found > 0
    ]
    ends = (
        min((float(look.promised) for look in looks), default=0.01) / 2,
        max((float(look.promised) for look in looks), default=1.0) * 2,
    )
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.fill_between(ends, ends, [10 * ends[1]] * 2, color=_VIOLATED, alpha=0.08, linewidth=0)
    for way, colour in _COLOURS.items():
        points = [(float(s.promised), min(float(s.found), 5 * ends[1])) for s in looks if s.way == way]
        if points:
            axes.scatter(*zip(*points, strict=True), s=14, color=colour, alpha=0.5, linewidths=0, label=way)
    broken = [
        (float(s.promised) or ends[0], min(float(s.found), 5 * ends[1]))
        for f in found.findings
        for s in f.violations
    ]
    if broken:
        axes.scatter(*zip(*broken, strict=True), s=60, color=_VIOLATED, marker="x", label="violated")
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        xlabel="ε promised",
        ylabel="ε lost",
        ylim=(ends[0] / 50, 10 * ends[1]),
    )
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    return _svg(plt, figure)


def _map(found: Audit) -> str:
    plt = pyplot()
    names = [m.name for m in ALL if any(f.mechanism == m.name for f in found.findings)]
    statistics = list(dict.fromkeys(f.statistic for f in sorted(found.findings, key=lambda f: f.statistic)))
    nearest: dict[tuple[str, str], float] = {}
    for f in found.findings:
        if f.mechanism in names:
            key = f.statistic, f.mechanism
            nearest[key] = max(nearest.get(key, 0.0), f.near)
    statistics = [s for s in statistics if any((s, name) in nearest for name in names)]
    figure, axes = plt.subplots(
        figsize=(1.5 + 0.95 * len(names), 1.2 + 0.27 * len(statistics)), layout="constrained"
    )
    for y, statistic in enumerate(statistics):
        for x, name in enumerate(names):
            part = nearest.get((statistic, name))
            if part is None:
                continue
            bad = part > 1 + 1e-9
            colour = _VIOLATED if bad else plt.get_cmap("Blues")(0.1 + 0.5 * min(part, 1.0))
            axes.add_patch(plt.Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, color=colour))
            told = "∞" if part == inf else f"{100 * part:.0f}"
            axes.text(x, y, told, ha="center", va="center", fontsize=8, color="white" if bad else "black")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(statistics)), statistics, fontsize=8)
    axes.set(xlim=(-0.6, len(names) - 0.4), ylim=(len(statistics) - 0.4, -0.6))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return _svg(plt, figure)


def _svg(plt: Any, figure: Any) -> str:
    """A figure as a part of a page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    return re.sub(r"^.*?(?=<svg)", "", file.getvalue(), flags=re.DOTALL)
