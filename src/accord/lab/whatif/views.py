"""An outlook for readers: tables in the terminal, and a picture."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from accord.budget import MICRO, PUBLIC, level_text
from accord.lab.whatif.gaps import draw_gaps, gaps_view
from accord.lab.whatif.moves import Move, short_level
from accord.lab.whatif.outlook import Curve, Gain, Outlook, task_for
from accord.planning import Plan, midpoint_error
from accord.report import figures
from accord.report.plans import plan_view
from accord.report.tables import add_row, error, number, text_table

_ROWS = 12


# ---- as text -----------------------------------------------------------------------------------------------


def view(outlook: Outlook) -> RenderableType:
    """The plan; what personal levels buy; the error by t, by τ and by the gap; what moves would bring."""
    return Group(
        plan_view(outlook.plan),
        "",
        _gains_view(outlook),
        "",
        _curves_view(outlook),
        "",
        gaps_view(outlook.gaps),
        "",
        _moves_view(outlook),
    )


def _gains_view(outlook: Outlook) -> RenderableType:
    columns = ("instead of it", ">× its squared error", ">× as many people needed")
    table = text_table(*columns, title=_gains_title(outlook))
    for gain in outlook.gains:
        ratio = "–" if gain.ratio is None else _three_digits(gain.ratio)
        add_row(table, gain.over, ratio, _people_needed(gain))
    if outlook.theory is None:
        return table
    times, most = map(_three_digits, outlook.theory)
    theorem = (
        f"Cyffers, Ziani 2026: the best threshold has {times} times the squared error of the best affine "
        f"estimator, and at most {most} times with so many levels"
    )
    return Group(table, Text(theorem, "dim"))


def _gains_title(outlook: Outlook) -> str:
    title = f"What personal levels buy: {outlook.best} has the lowest error"
    if outlook.plan.mechanism == "midpoint":
        title += " of those that read data; the midpoint has a lower one"
    return title


def _people_needed(gain: Gain) -> str:
    return "over a million" if gain.people is None else _three_digits(gain.people)


def _three_digits(x: float) -> str:
    """Three digits, the others zero.

    >>> _three_digits(1.1242), _three_digits(19_905_875.0)
    ('1.12', '19,900,000')
    """
    return number(float(f"{x:.3g}"))


def _curves_view(outlook: Outlook) -> RenderableType:
    thresholds, clips, task = outlook.thresholds, outlook.clips, task_for(outlook.plan)
    table = text_table(
        f">{_level_name(outlook.plan)}",
        ">people who allow it" if task.total == outlook.plan.spec.total else ">of a group, who allow it",
        ">only they are read, at it",
        ">all are read, at most at it",
        title="Error by level: a threshold, or a clip",
    )
    places = np.linspace(0, len(thresholds.levels) - 1, _ROWS).round().astype(int)
    for level in sorted({thresholds.levels[k] for k in places} | {thresholds.chosen}):
        allow = int(task.people[task.levels >= level].sum())
        style = "bold green" if level == thresholds.chosen else ""
        row = level_text(level), f"{allow:,}", error(thresholds.at(level)), error(clips.at(level))
        add_row(table, *row, style=style)
    choices = f"threshold takes {_choice(thresholds, 't')}; {outlook.clipping} takes {_choice(clips, 'τ')}"
    return Group(table, Text(choices, "bold"))


def _level_name(plan: Plan) -> str:
    """What t and τ are compared with."""
    level = "level" if plan.share == MICRO else "share × level"
    if plan.times == 1:
        return level
    part = "half" if plan.times == 2 else f"1/{plan.times}"  # somebody may move between private groups
    return f"{part} of the {level}"


def _choice(curve: Curve, letter: str) -> str:
    chosen = f"{letter} = {level_text(curve.chosen)}: {error(curve.at(curve.chosen))}"
    if curve.at(curve.chosen) <= 1.001 * curve.at(curve.best):
        return chosen
    return f"{chosen} ({letter} = {level_text(curve.best)} would have {error(curve.at(curve.best))})"


def _moves_view(outlook: Outlook) -> RenderableType:
    if not outlook.moves:
        return Text("No move of a level can be compared with this.", "dim")
    columns = ("if", "", ">people", ">error", ">change", "by")
    table = text_table(*columns, title="What would change if people moved")
    for m in outlook.moves:
        style = "green" if m.change < -0.05 else "yellow" if m.change > 0.05 else ""
        row = m.who, m.action, f"{m.people:,}", error(m.rmse), _percent(m.change), m.mechanism
        add_row(table, *row, style=style)
    note = "against the lowest error now"
    if outlook.plan.target.factor(2) != outlook.plan.target.factor(1):  # of a sum
        note += ", per person: an opt-out makes the answer smaller"
    return Group(table, Text(note, "dim"))


def _percent(change: float) -> str:
    """Signed, with digits only where they say something.

    >>> _percent(-12.345), _percent(0.01), _percent(0.26), _percent(1234.5)
    ('−12 %', '0 %', '+0.3 %', '+1,234 %')
    """
    size = f"{abs(change):,.0f}" if abs(change) >= 9.95 else f"{abs(change):.1f}"
    return "0 %" if size == "0.0" else f"{'+' if change > 0 else '−'}{size} %"


# ---- as a picture ------------------------------------------------------------------------------------------


def draw(outlook: Outlook, path: str | Path) -> Path:
    """Mechanisms, the error by t and τ, gains, moves and the error by the gap, as a picture in a file."""
    plt = figures.pyplot()
    largest = sorted(outlook.moves, key=lambda m: -abs(m.change))[:_ROWS]
    shown = [m for m in outlook.moves if m in largest]
    below = max(3.4, 1.2 + 0.3 * len(shown))
    figure = plt.figure(figsize=(12, 8.6 + below), layout="constrained")
    # subfigures, so that panels one above the other need not be in line
    upper, lower, last = figure.subfigures(3, 1, height_ratios=(4.6, below, 3.4))
    (mechanisms, curves), (gains, moves) = upper.subplots(1, 2), lower.subplots(1, 2)
    figures.draw_errors(mechanisms, outlook.plan)
    refused = [c.mechanism for c in outlook.plan.candidates if c.rmse is None]
    _title(mechanisms, "Every mechanism" + (f" (refused: {', '.join(refused)})" if refused else ""))
    _draw_curves(curves, outlook)
    _draw_gains(gains, outlook)
    _draw_moves(moves, outlook, shown)
    draw_gaps(last.subplots(1, 1), outlook.gaps, outlook.plan.query.gap)
    label = outlook.plan.query.label
    title = f"{label[0].upper()}{label[1:]}: what these levels bring, before a value is read"
    figure.suptitle(_fitted(title, 100, lines=2), fontweight="bold")
    figure.get_layout_engine().set(h_pad=0.1, w_pad=0.1)
    return figures.save(plt, figure, path)


def _fitted(text: str, width: int, lines: int = 1) -> str:
    """What a user wrote, cut to this size; a dollar is no formula."""
    return fill(text, width, max_lines=lines, placeholder=" …").replace("$", r"\$")


def _title(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=9, loc="left")


def _draw_curves(axes: Any, outlook: Outlook) -> None:
    thresholds, clips, plan = outlook.thresholds, outlook.clips, outlook.plan
    place = figures.log_axis(axes, [*thresholds.levels, *clips.levels])
    if thresholds.levels == (PUBLIC,):
        axes.set_xticks([place(PUBLIC)], ["∞"])
    _error_axis(axes, [*thresholds.rmse, *clips.rmse], midpoint_error(plan.target, plan.people))
    clip = f"clip τ ({outlook.clipping}): everyone, up to τ"
    threshold = "threshold t: only those who allow t, at t"
    _draw_curve(axes, place, clips, figures.CHOSEN, "-", "s", clip)
    _draw_curve(axes, place, thresholds, figures.LEVEL, "--", "o", threshold)
    for letter, curve, up in (("t", thresholds, 12), ("τ", clips, -19)):
        axes.annotate(
            f"{letter} = {short_level(curve.chosen).replace('inf', '∞')}: {error(curve.at(curve.chosen))}",
            (place(curve.chosen), curve.at(curve.chosen)),
            xytext=(0, up),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
            zorder=6,
        )
    unit = "" if plan.unit == "value" else f", {plan.unit}"
    axes.set(xlabel=f"{_level_name(plan)}, ε", ylabel=f"predicted error (rmse{unit})")
    _title(axes, "One threshold, or a clip for everyone (marked: what is chosen)")
    axes.legend(fontsize=8, frameon=False, loc="upper center", ncols=2, bbox_to_anchor=(0.5, -0.13))
    figures.bare(axes)


def _draw_curve(axes: Any, place: Any, curve: Curve, colour: str, line: str, marker: str, label: str) -> None:
    x, y = [place(level) for level in curve.levels], list(curve.rmse)
    finite = len(x) - (curve.levels[-1] == PUBLIC)
    each = {"marker": marker, "markersize": 5} if len(x) <= _ROWS else {}
    axes.plot(x[:finite], y[:finite], line, color=colour, label=label, **each)
    if finite < len(x):  # ∞ is no place on a logarithmic axis
        axes.plot(x[-2:], y[-2:], ":", color=colour)
        axes.plot(x[-1], y[-1], marker=marker, markersize=5, color=colour)
    chosen = {"marker": "D", "markersize": 9, "markerfacecolor": "white", "markeredgewidth": 2}
    axes.plot(place(curve.chosen), curve.at(curve.chosen), color=colour, zorder=5, **chosen)


def _error_axis(axes: Any, rmse: list[float], without_data: float) -> None:
    """Errors, logarithmic where they are far apart.

    With the error of the middle, beyond which data are of no use.
    """
    from matplotlib.ticker import LogLocator

    low, high = min(rmse), max(rmse)
    if high > 4 * low > 0:
        subs = (1, 2, 3, 5, 7) if high < 20 * low else (1, 2, 5) if high < 300 * low else (1,)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
        axes.yaxis.minorticks_off()
        axes.set_ylim(low / (high / low) ** 0.2, high * (high / low) ** 0.15)
    else:
        pad = 0.3 * (high - low) + 0.05 * high
        axes.set_ylim(max(0.0, low - pad), high + pad or 1.0)
    axes.yaxis.set_major_formatter(lambda y, _: number(y, 4))
    if axes.get_ylim()[0] < without_data < axes.get_ylim()[1]:
        axes.axhline(without_data, color="black", linewidth=1, linestyle=(0, (1, 3)))
        at = {"xycoords": ("axes fraction", "data"), "xytext": (-2, 3), "textcoords": "offset points"}
        axes.annotate("without data", (1, without_data), ha="right", fontsize=8, **at)


def _draw_gains(axes: Any, outlook: Outlook) -> None:
    """Squared errors as multiples of the lowest, from 1 on."""
    rows = [(outlook.best, 1.0, "")]
    for gain in outlook.gains[::-1]:
        if gain.over != outlook.best and gain.ratio is not None:
            needs = f"\nas good with {_people_needed(gain)}×\nas many people" if gain.ratio > 1.005 else ""
            rows.append((gain.over, gain.ratio, needs))
    names = [name for name, _, _ in rows]
    bound = outlook.theory[1] if outlook.theory and "threshold" in names else None
    most = max(2.0, *(ratio for _, ratio, _ in rows), bound or 0.0)
    axes.set_xscale("log")
    axes.set_xlim(most**-0.06, most**1.25)
    for y, (name, ratio, _) in enumerate(rows):
        colour = figures.CHOSEN if name == outlook.best else figures.OTHER
        axes.plot([1, ratio], [y, y], color=colour, linewidth=8, solid_capstyle="butt")
        axes.plot(ratio, y, "o", color=colour, markersize=12)
        at = {"xytext": (11, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(f"{_three_digits(ratio)}×", (ratio, y), fontsize=9, **at)
    label = "squared error, as a multiple of the lowest"
    if bound is not None:
        axes.plot(bound, names.index("threshold"), "|", color="black", markersize=24, markeredgewidth=2)
        label += "\nstroke: the most that a threshold can have with so many"
        label += f"\nlevels, {_three_digits(bound)}× (Cyffers, Ziani 2026)"
    axes.set_yticks(range(len(rows)), [name + needs for name, _, needs in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.minorticks_off()
    subs = (1, 2, 5) if most < 100 else (1,)
    ticks = [sub * 10**k for k in range(16) for sub in subs if sub * 10**k <= most**1.25]
    ticks = ticks[:: ceil(len(ticks) / (6 if most < 1e4 else 3))]
    axes.set_xticks(ticks, [f"{x:,}×" for x in ticks])
    axes.set_xlabel(label, fontsize=9)
    _title(axes, _gains_title(outlook))
    figures.bare(axes)


def _draw_moves(axes: Any, outlook: Outlook, shown: list[Move]) -> None:
    count = len(outlook.moves)
    some = "" if len(shown) == count else f"; {len(shown)} largest changes of {count}"
    _title(axes, f"If people moved (in brackets: how many{some})")
    if not shown:
        axes.set_axis_off()
        axes.annotate("no move can be compared with this", (0, 0.5), xycoords="axes fraction", fontsize=9)
        return
    for y, m in enumerate(shown):
        better = m.change < 0
        axes.barh(y, m.change, color=figures.CHOSEN if better else figures.LEVEL, height=0.62)
        at = {"xytext": (-4 if better else 4, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(_percent(m.change), (m.change, y), ha="right" if better else "left", fontsize=8, **at)
    labels = [f"{_fitted(m.text, 34)} ({m.people:,})" for m in shown]
    axes.set_yticks(range(len(shown)), labels, fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.axvline(0, color="black", linewidth=1)
    low, high = min(0.0, *(m.change for m in shown)), max(0.0, *(m.change for m in shown))
    axes.set_xlim(low - 0.2 * (high - low or 1), high + 0.2 * (high - low or 1))
    axes.xaxis.set_major_formatter(lambda x, _: "0" if x == 0 else f"{x:+,g} %".replace("-", "−"))
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel("change of the lowest error\n← better (blue)   worse (orange) →", fontsize=9)
    figures.bare(axes)
