"""What came out of experiments: a table in the terminal, CSV, and one page as Markdown and as HTML."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

import accord
from accord.errors import AccordError
from accord.lab import html
from accord.lab.papers.experiment import Claim
from accord.lab.papers.figures import draw_experiment
from accord.lab.papers.reproduction import EXPERIMENTS, Result

_PAPERS = {
    "J": "Jorgensen, Yu, Cormode 2015. Conservative or liberal? Personalized differential privacy. ICDE.",
    "F": "Ferrando, Gillenwater, Kulesza 2021. Combining public and private data. "
    "NeurIPS workshop Privacy in Machine Learning.",
    "C": "Chaudhuri, Courtade 2023. "
    "Mean estimation under heterogeneous privacy: some privacy can be free. ISIT.",
    "Z": "Cyffers, Ziani 2026. Limits of personalizing differential privacy budgets.",
}
_SURE = 2.0
"""Standard errors from the border: with fewer, the runs cannot tell."""
_HEAD = ("method", "where", "paper", "here", "agrees?")
_TITLE = "The papers' figures and tables, redrawn"


def is_of_paper(claim: Claim) -> bool:
    """Whether a paper says it; not what is said of our own curves, or of another reading of its words."""
    return not (isinstance(claim.paper, str) and claim.paper.startswith("("))


def number(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:.4g}"


def verdict(claim: Claim) -> str:
    """Whether it agrees; unsure, where the runs are too few to tell."""
    word = "yes" if claim.agrees else "no"
    return word if abs(claim.margin) >= _SURE else f"{word}, unsure"


def runs_text(result: Result) -> str:
    """By what it was measured: the runs and their seed, and whose data where there are any."""
    runs = "by formula" if result.experiment.runs == 1 else f"{result.runs:,} runs, seed {result.seed}"
    if not result.experiment.id.startswith("J-fig3"):
        return runs
    return f"{runs}, people of {'the generator' if result.data is None else result.data.name}"


def view(result: Result) -> Any:
    """A table "paper / here / agrees?" for the terminal."""
    experiment = result.experiment
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in ("", "where", "paper", "here", "agrees?"):
        grid.add_column(name, overflow="fold")
    for claim in result.claims:
        grid.add_row(
            claim.method,
            claim.setting,
            number(claim.paper),
            number(claim.here),
            Text(verdict(claim), style="bold red" if verdict(claim) == "no" else ""),
        )
    parts: list[Any] = [Text(f"{experiment.id}  {experiment.paper}: {experiment.title}", style="bold")]
    parts += [Text(f"{experiment.setting} ({runs_text(result)})", style="dim"), grid]
    parts += [Text(f"{c.method}, {c.setting}: {c.why}") for c in result.claims if c.why]
    return Group(*parts, "")


def views(results: Sequence[Result]) -> Any:
    return Group(*map(view, results))


def catalogue_view() -> Any:
    """What there is to redraw."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "paper", "what", "runs"):
        grid.add_column(name, overflow="fold")
    for e in EXPERIMENTS.values():
        grid.add_row(e.id, e.paper, e.title, f"{e.runs:,}" if e.runs > 1 else "formula")
    return grid


def write(results: Sequence[Result], out: Path) -> list[Path]:
    """The page `reproduction.md`, the same as HTML, and in a folder every figure and its numbers."""
    folder = out / "reproduction"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise AccordError(
            f"cannot make the folder {str(folder)!r} ({type(fault).__name__}). Name one that can be written."
        ) from None
    for result in results:
        note = runs_text(result)
        draw_experiment(result.experiment, result.points, note, folder, framed=result.data is None)
        _write_csv(result, folder / f"{result.experiment.id}.csv")
    pages = [out / "reproduction.md", out / "reproduction.html"]
    pages[0].write_text(_markdown(results), encoding="utf-8")
    pages[1].write_text(_html(results), encoding="utf-8")
    return pages


def _write_csv(result: Result, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "panel", "method", "ours", "x", "y", "value", "standard_error"])
        for p in result.points.all:
            ours = int(p.method in result.experiment.ours)
            y = "" if p.y is None else repr(p.y)
            numbers = [repr(p.x), y, repr(p.value), repr(p.error)]
            writer.writerow([result.experiment.id, p.panel, p.method, ours, *numbers])


def _opening(results: Sequence[Result]) -> list[str]:
    """What was measured, how much of it the papers say, and how to read the tables: three paragraphs."""
    ids = " ".join(r.experiment.id for r in results) if len(results) < 6 else "all"
    minutes = sum(r.seconds for r in results) / 60
    quick = sum(r.runs < r.experiment.runs for r in results)
    runs = ", with the papers' numbers of runs."
    if quick:
        runs = f"; {quick} of {len(results)} with fewer runs than the paper's."
    claims = [c for r in results for c in r.claims if is_of_paper(c)]
    others = sum(len(r.claims) for r in results) - len(claims)
    sure = [c for c in claims if abs(c.margin) >= _SURE]
    noes = [c for c in sure if not c.agrees]
    score = (
        f"Of {len(claims)} things that the papers say, {len(sure) - len(noes)} came out, {len(noes)} did "
        f"not, and for {len(claims) - len(sure)} the runs are too few to tell "
        "(“unsure”: less than two standard errors from the border)."
    )
    if noes and all(c.why for c in noes):
        score += " Each that did not is told below, with the reason."
    if others:
        score += (
            f" {others} more rows, in brackets, are about accord's own curves, "
            "or read the same words in another way."
        )
    return [
        f"Made by `accord reproduce {ids}` of accord {accord.__version__}, "
        f"in {minutes:.1f} minutes of one core{runs}",
        score,
        "How to read the tables: where a paper gives a number, it stands under “paper”; where it gives "
        "words, they do. “A / B” is what A has on the figure's y axis divided by what B has there, at "
        "the same place unless two are named; below 1, A is better. Where words leave open how much, what "
        "was taken is said in brackets. A shaded band in a figure is two standard errors wide on either "
        "side; dashed lines are accord's own, which the papers do not have. Where a paper's own choice is "
        "not private, it is redrawn as the paper has it, and the figure says so; accord itself never does "
        "that.",
    ]


def _sections(result: Result) -> tuple[list[list[str]], list[str]]:
    """Rows of claims, and what is to be said besides."""
    rows = [[c.method, c.setting, number(c.paper), number(c.here), verdict(c)] for c in result.claims]
    whys = [f"{c.method}, {c.setting}: {c.why}" for c in result.claims if c.why]
    return rows, [*whys, *result.experiment.warnings, *result.experiment.notes]


def _score(result: Result) -> str:
    theirs = [c for c in result.claims if is_of_paper(c)]
    return f"{sum(c.agrees for c in theirs)} of {len(theirs)}"


def _measure(result: Result) -> str:
    return ", ".join(dict.fromkeys(panel.y for panel in result.experiment.panels))


def _caption(result: Result) -> str:
    e = result.experiment
    return f"{e.setting} ({runs_text(result)}). Numbers are of: {_measure(result)}."


def _markdown(results: Sequence[Result]) -> str:
    lines = [f"# {_TITLE}", "", *(f"{text}\n" for text in _opening(results))]
    lines += [f"- **[{key}]** {paper}" for key, paper in _PAPERS.items()]
    lines += ["", "| | | agrees | seconds of one core |", "|---|---|---|---|"]
    for r in results:
        e = r.experiment
        lines.append(f"| [{e.id}](#{e.id.lower()}) | {e.paper}: {e.title} | {_score(r)} | {r.seconds:.0f} |")
    for r in results:
        e = r.experiment
        rows, words = _sections(r)
        lines += ["", f"## {e.id}", "", f"**{e.paper}: {e.title}.** {_caption(r)}", ""]
        lines += [f"![{e.id}](reproduction/{e.id}.png)", ""]
        lines += ["| " + " | ".join(_HEAD) + " |", "|---" * len(_HEAD) + "|"]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        lines += ["", *(f"- {text}" for text in words)] if words else []
    return "\n".join(lines) + "\n"


def _html(results: Sequence[Result]) -> str:
    paragraphs = [escape(text).replace("`", "") for text in _opening(results)]
    body = [f"<h1>{_TITLE}</h1>", *(f"<p>{text}</p>" for text in paragraphs), "<ul>"]
    body += [f"<li><b>[{key}]</b> {escape(paper)}</li>" for key, paper in _PAPERS.items()] + ["</ul><table>"]
    for r in results:
        e = r.experiment
        cells = f'<a href="#{e.id}">{e.id}</a>', escape(f"{e.paper}: {e.title}"), _score(r)
        body.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    body.append("</table>")
    for r in results:
        e = r.experiment
        rows, words = _sections(r)
        body += [
            f'<h2 id="{e.id}">{e.id}</h2>',
            f"<p><b>{escape(f'{e.paper}: {e.title}.')}</b> {escape(_caption(r))}</p>",
            f'<img src="reproduction/{e.id}.png" alt="{escape(e.title)}">',
        ]
        body += html.table(_HEAD, rows, bad=("no",))
        body += ["<ul>", *(f"<li>{escape(text)}</li>" for text in words), "</ul>"]
    return html.document(_TITLE, body)
