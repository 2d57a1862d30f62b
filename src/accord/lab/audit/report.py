"""An audit for readers: a table in the terminal, and a page to be filed."""

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
from accord.lab.audit.findings import METHODS, Audit, Finding, Look
from accord.mechanisms import ALL
from accord.report.figures import CHOSEN, LEVEL, pyplot

_ROWS = 40
"""So many rows a table in the terminal has, or as many as there are violations."""
_VIOLATED = "#B00020"
_COLOURS = {"exact": CHOSEN, "replay": LEVEL, "program": "#CC79A7", "empirical": "#009E73"}
_HEAD = ("mechanism", "statistic", "neighbors", "level", *METHODS)
_DESCRIPTIONS = {
    "exact": (
        "Every table on a tiny domain (two or three people, a few values, missing ones among them), "
        "every neighbor and every output: the largest |log ratio| of probabilities, reckoned, not estimated."
    ),
    "replay": (
        "Neighbors of people of the bundled table through the real engine, with the noise frozen: "
        "by how much the integers and scores behind an answer move, "
        "against the noise that each of them gets; nothing else may move."
    ),
    "program": (
        "Random programs on random tables, through the library and the command line, "
        "in two worlds that differ in one person, with the noise recorded: whatever they show is the same, "
        "and what noise was added to moves by no more than that person is charged."
    ),
    "empirical": (
        "Many releases with real noise on the neighbors that the exact way found to be worst: "
        "a loss that they surely show, which is below the true one."
    ),
}


def verdict(audit: Audit) -> str:
    """In a sentence."""
    methods = sorted({method for f in audit.findings for method in f.looks}, key=METHODS.index)
    promises = f"{len(audit.findings):,} promises"
    methods_text = _listed([f"the {method} way" for method in methods])
    if audit.passed:
        start = "Passed: nobody was seen to lose more than they were promised."
    else:
        start = f"VIOLATED: {len(audit.violations)} of {promises} are broken."
    return f"{start} {promises} were looked at by {methods_text}."


def terms(audit: Audit) -> str:
    """What the numbers depend on."""
    text = f"accord {accord.__version__}; {audit.seconds:.0f} s; seed {audit.seed} for neighbors and programs"
    if not audit.runs:
        return f"{text}; without the empirical way (--runs 10000)"
    return (
        f"{text}; {audit.runs:,} releases of each table (a twentieth of that where each reads it anew), "
        f"α = {audit.alpha:g} in all, shared among {audit.lower_bounds:,} looks"
    )


def view(audit: Audit) -> Any:
    """A table for the terminal, worst first."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in _HEAD:
        grid.add_column(name, overflow="fold")
    rows = audit.findings[: max(_ROWS, len(audit.violations))]
    for finding in rows:
        cells = [
            Text(_cell(look), style="bold red" if look and look.violated else "") for look in _looks(finding)
        ]
        grid.add_row(finding.mechanism, finding.statistic, finding.neighbors, finding.level, *cells)
    parts: list[Any] = [Text(verdict(audit), style="bold" if audit.passed else "bold red"), ""]
    parts += [Text(text) for text in _problems(audit)]
    parts += [Text("ε lost of ε promised, worst first:", style="dim"), grid]
    if len(rows) < len(audit.findings):
        parts.append(
            Text(f"… and {len(audit.findings) - len(rows):,} more: --json, or --html FILE", style="dim")
        )
    parts += ["", Text(terms(audit), style="dim")]
    parts += [Text(f"not looked at: {text}", style="dim") for text in audit.not_looked_at]
    return Group(*parts)


def scripts(audit: Audit) -> list[str]:
    """Programs that show a violation, as they are: a line that is wrapped is another program."""
    return [look.script for f in audit.violations for look in f.violations if look.script]


def _problems(audit: Audit) -> list[str]:
    return [
        f"{_promise(f)}: {look.method}: {look.evidence}" for f in audit.violations for look in f.violations
    ]


def _promise(f: Finding) -> str:
    """To whom what was promised."""
    neighbors, level = f.neighbors, f.level and f"level {f.level}"
    return ", ".join(text for text in (f.mechanism, f.statistic, neighbors, level) if text)


def _looks(finding: Finding) -> list[Look | None]:
    return [finding.looks.get(method) for method in METHODS]


def _cell(look: Look | None) -> str:
    if look is None:
        return "–"
    loss = "∞" if isinf(look.loss) else f"{float(look.loss):.4g}"
    return f"{loss} of {float(look.promised):.4g}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- the page ----------------------------------------------------------------------------------------------


def write(audit: Audit, path: Path) -> Path:
    """The page, in one file, with pictures."""
    title = "Audit of accord's promises"
    body = [
        f"<h1>{title}</h1>",
        f"<p{'' if audit.passed else ' class=no'}><b>{escape(verdict(audit))}</b></p>",
        f"<p>{datetime.now(UTC):%Y-%m-%d %H:%M} UTC. {escape(terms(audit))}.</p>",
        "<p>A release promises every person that what it tells about them is bounded by their charge, "
        "which is never more than the level that they chose: no output is more than exp(charge) times as "
        "probable with their data as with other data. Each row below is one such promise; "
        "it shows how much was lost at worst, and how much was promised.</p><ul>",
        *(f"<li><b>{method}</b>: {escape(text)}</li>" for method, text in _DESCRIPTIONS.items()),
        "</ul>",
        *(f'<p class="no">{escape(text)}</p>' for text in _problems(audit)),
        "<h2>Lost against promised</h2>",
        "<p>Every promise is a point. On the line, exactly what was promised is lost, "
        "as a mechanism should that wastes nothing; above it, more.</p>",
        _scatter(audit),
        "<h2>By mechanism and statistic</h2>",
        "<p>The largest part of a promise that was seen to be lost, in percent. "
        "More than 100 is a violation.</p>",
        _map(audit),
        "<h2>All promises, worst first</h2>",
        *html.table(_HEAD, *_rows(audit)),
        *(f"<pre>{escape(script)}</pre>" for script in scripts(audit)),
        "<h2>Not looked at</h2><ul>",
        *(f"<li>{escape(text)}</li>" for text in audit.not_looked_at),
        "</ul>",
    ]
    with _writing(path):
        path.write_text(html.document(title, body), encoding="utf-8")
    return path


def refuse_unwritable(path: Path) -> None:
    """Refuse a page that cannot be written, or drawn, before minutes are spent."""
    pyplot()
    with _writing(path), path.open("ab"):
        pass


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise AccordError(
            f"cannot write the page {str(path)!r} ({type(fault).__name__}). "
            "Name a file in a folder that exists."
        ) from None


def _rows(audit: Audit) -> tuple[list[list[str]], list[str]]:
    rows, bad = [], []
    for f in audit.findings:
        rows.append([f.mechanism, f.statistic, f.neighbors, f.level, *map(_cell, _looks(f))])
        bad += [_cell(look) for look in f.violations]
    return rows, bad


def _scatter(audit: Audit) -> str:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
    looks = [look for f in audit.findings for look in f.looks.values() if look.promised > 0 and look.loss > 0]
    promised = [float(look.promised) for look in looks]
    ends = min(promised, default=0.01) / 2, max(promised, default=1.0) * 2
    axes.plot(ends, ends, color="black", linewidth=1)
    axes.fill_between(ends, ends, [10 * ends[1]] * 2, color=_VIOLATED, alpha=0.08, linewidth=0)

    def point(look: Look) -> tuple[float, float]:
        return float(look.promised) or ends[0], min(float(look.loss), 5 * ends[1])

    for method, colour in _COLOURS.items():
        points = [point(look) for look in looks if look.method == method]
        if points:
            axes.scatter(
                *zip(*points, strict=True), s=14, color=colour, alpha=0.5, linewidths=0, label=method
            )
    broken = [point(look) for f in audit.findings for look in f.violations]
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


def _map(audit: Audit) -> str:
    plt = pyplot()
    names = [m.name for m in ALL if any(f.mechanism == m.name for f in audit.findings)]
    worst: dict[tuple[str, str], float] = {}
    for f in audit.findings:
        if f.mechanism in names:
            key = f.statistic, f.mechanism
            worst[key] = max(worst.get(key, 0.0), f.ratio)
    statistics = sorted({statistic for statistic, _ in worst})
    figure, axes = plt.subplots(
        figsize=(1.5 + 0.95 * len(names), 1.2 + 0.27 * len(statistics)), layout="constrained"
    )
    for y, statistic in enumerate(statistics):
        for x, name in enumerate(names):
            ratio = worst.get((statistic, name))
            if ratio is None:
                continue
            bad = ratio > 1 + 1e-9
            colour = _VIOLATED if bad else plt.get_cmap("Blues")(0.1 + 0.5 * min(ratio, 1.0))
            axes.add_patch(plt.Rectangle((x - 0.48, y - 0.45), 0.96, 0.9, color=colour))
            percent = "∞" if ratio == inf else f"{100 * ratio:.0f}"
            axes.text(x, y, percent, ha="center", va="center", fontsize=8, color="white" if bad else "black")
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
