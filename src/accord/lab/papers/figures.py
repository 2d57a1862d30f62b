"""Figures of experiments, by matplotlib: the papers' layout, with accord's own curves dashed."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from accord.lab.papers.experiment import Experiment, Panel, Points
from accord.report.figures import pyplot, save

# Okabe and Ito's palette, each with a marker of its own: told apart by colour-blind readers and in grey print
LOOKS = (
    ("#000000", "o"),
    ("#0072B2", "s"),
    ("#D55E00", "^"),
    ("#009E73", "v"),
    ("#CC79A7", "D"),
    ("#E69F00", "P"),
    ("#56B4E9", "X"),
    ("#882255", "*"),
    ("#777777", "h"),
)


def draw_experiment(
    experiment: Experiment, points: Points, note: str, folder: Path, framed: bool = True
) -> None:
    """The figure as PNG and SVG; `framed`: with the ends of the axes that the experiment gives."""
    plt = pyplot()
    columns = min(3, len(experiment.panels))
    rows = ceil(len(experiment.panels) / columns)
    wide = experiment.draw is not None or columns > 1
    style = {"svg.hashsalt": experiment.id, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        size = (4.2 * max(columns, 2.5 if wide else 1.7), 3.3 * rows + 1.5)
        figure = plt.figure(figsize=size, layout="constrained")
        if experiment.draw is not None:
            experiment.draw(figure, experiment, points)
        else:
            _lines(figure, experiment, points, rows, columns, framed)
        title = fill(f"{experiment.paper}: {experiment.title}", 100 if wide else 58)
        figure.suptitle(title, fontweight="bold", fontsize=11)
        width = 165 if wide else 115
        notes = "\n".join(fill(text, width) for text in (f"{note}.", *experiment.warnings))
        figure.supxlabel(notes, x=0.01, ha="left", fontsize=7, color="#444444")
        figure.savefig(folder / f"{experiment.id}.png", dpi=130)
        save(plt, figure, folder / f"{experiment.id}.svg", metadata={"Date": None})


def _lines(
    figure: Any, experiment: Experiment, points: Points, rows: int, columns: int, framed: bool
) -> None:
    all_axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    names = list(dict.fromkeys(p.method for p in points.all))
    names.sort(key=lambda name: name in experiment.ours)  # the paper's first
    looks = dict(zip(names, LOOKS, strict=False))
    for axes, panel in zip(all_axes, experiment.panels, strict=False):
        if not framed:
            panel = replace(panel, bottom=None, top=None)
        for name in names:
            _line(axes, points, panel, name, looks[name], name in experiment.ours)
        _label(axes, panel)
    for axes in all_axes[len(experiment.panels) :]:
        axes.set_axis_off()
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8, frameon=False)


def _line(axes: Any, points: Points, panel: Panel, name: str, look: tuple[str, str], ours: bool) -> None:
    x, y, error = points.curve(name, panel.key)
    if not x.size:
        return
    colour, marker = look
    label = f"{name} (ours)" if ours else name
    if panel.top is not None and y.min() > panel.top:
        label += " (beyond the axis)"
    axes.plot(
        x,
        y,
        linestyle="--" if ours else "-",
        color=colour,
        marker=marker,
        markersize=5,
        markerfacecolor="white" if ours else colour,
        linewidth=1.4,
        label=label,
    )
    low = y - 2 * error
    if panel.log_y:
        low = np.maximum(low, np.min(y[y > 0], initial=1e-9) / 10)
    axes.fill_between(x, low, y + 2 * error, color=colour, alpha=0.15, linewidth=0)


def _label(axes: Any, panel: Panel) -> None:
    axes.set(xlabel=panel.x, ylabel=panel.y)
    if panel.title:
        axes.set_title(panel.title, fontsize=9, loc="left")
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    elif panel.bottom is not None:
        axes.set_ylim(bottom=panel.bottom)
    if panel.top is not None:
        axes.set_ylim(top=panel.top)
    for x, name in panel.vertical_lines:
        axes.axvline(x, color="#888888", linestyle=":", linewidth=1)
        at = {"xycoords": ("data", "axes fraction"), "xytext": (3, -10), "textcoords": "offset points"}
        axes.annotate(name, (x, 1), fontsize=8, **at)
    axes.grid(color="#EEEEEE")
    axes.set_axisbelow(True)
