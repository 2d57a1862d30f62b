"""Figures, by matplotlib, which comes with the extra `plot`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from math import ceil, floor, inf, log10
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from accord.budget import MICRO, PUBLIC, level_text
from accord.errors import AccordError
from accord.planning import NO_DATA, Plan
from accord.report.tables import error, number

if TYPE_CHECKING:
    from accord.ledger.history import Account

# Okabe and Ito's palette: told apart by colour-blind readers, and in grey print by lightness.
CHOSEN, OTHER, LEVEL = "#0072B2", "#BBBBBB", "#E69F00"
_UNWRITABLE = "cannot write the figure {!r} ({}). Name a .png, .svg or .pdf in a folder that exists."
_FEW_LEVELS = 8
"""So many have a line each."""
MOST_BARS, MOST_PANELS = 40, 12
"""So many rows, and questions, are drawn."""
_BAR = 0.62
_BESIDE: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
_ALLOWED, _TAKEN = "level: the most they allow", "charge: what this release takes"


def draw_plan(plan: Plan, path: str | Path) -> Path:
    """The predicted error of every mechanism, and what each level is charged, as a picture in a file."""
    return write(plan_figure(plan), path)


def plan_figure(plan: Plan) -> Any:
    """The predicted error of every mechanism, and what each level is charged.

    Of several questions, the errors of each; of public groups, the error of each.
    """
    if plan.is_grouped:
        return _groups_figure(plan)
    if plan.is_workload:
        return _workload_figure(plan)
    figure = blank_figure(11, 4.6)
    errors, charges = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_errors(errors, plan)
    if plan.spec.micro.size <= _FEW_LEVELS:
        _charge_lines(charges, plan)
    else:
        _charge_curve(charges, plan)
    title = f"{plan.query.label[0].upper()}{plan.query.label[1:]}: answered by {plan.mechanism}"
    figure.suptitle(lines(title, 95), fontweight="bold")
    _legend(figure, charges, 2)
    return figure


def _workload_figure(plan: Plan) -> Any:
    parts = plan.parts[:MOST_PANELS]
    figure = blank_figure(7.5, 1 + 3.2 * len(parts))
    for axes, part in zip(figure.subplots(len(parts), squeeze=False).flat, parts, strict=True):
        draw_errors(axes, part)
        axes.set_title(lines(f"{part.query.label}: by {part.mechanism}", 60), fontsize=10, loc="left")
    figure.suptitle(of_many(f"{plan.query.label} together", len(parts), len(plan.parts)), fontweight="bold")
    return figure


def _groups_figure(plan: Plan) -> Any:
    """The predicted error of each public group in which somebody is."""
    answered = [(key, part) for key, part in plan.plans.items() if part is not None]
    shown = answered[:MOST_BARS][::-1]
    figure = blank_figure(7.5, 1.6 + 0.45 * len(shown))
    axes = figure.subplots()
    names = [f"{lines(plan.query.part.name(key), 30)}\n{part.spec.total:,} people" for key, part in shown]
    errors = [part.rmse for _, part in shown]
    axes.barh(range(len(shown)), errors, color=CHOSEN, height=_BAR)
    axes.set_yticks(range(len(shown)), names, fontsize=8)
    for y, (_, part) in enumerate(shown):
        axes.annotate(f"{error(part.rmse)}, {part.mechanism}", (part.rmse, y), **_BESIDE)
    axes.margins(x=0.3)
    axes.xaxis.set_major_formatter(lambda x, _: number(x, 4))
    axes.set_xlabel(f"predicted error about the population (rmse, {plan.unit})", fontsize=9)
    figure.suptitle(of_many(plan.query.label, len(shown), len(answered)), fontweight="bold")
    bare(axes)
    return figure


def of_many(title: str, shown: int, there_are: int) -> str:
    more = f" (the first {shown} of {there_are:,})" if shown < there_are else ""
    return lines(f"{title[0].upper()}{title[1:]}{more}", 60)


def draw_accounts(accounts: list[Account], path: str | Path) -> Path:
    """How much of everyone's level is spent and left, by table and level, as a picture in a file."""
    bars = [a for a in accounts if 0 < a.level < inf][:MOST_BARS][::-1]
    if not bars:
        raise AccordError(
            "there is nobody with a budget to draw. Register a table first: 'accord ledger register'."
        )
    figure = blank_figure(8, 1.6 + 0.5 * len(bars))
    axes = figure.subplots()
    least, most = ([min(1.0, a.spent[end] / a.level) for a in bars] for end in (0, 1))
    places = range(len(bars))
    axes.barh(places, 1, color="white", edgecolor=OTHER, height=_BAR, label="left")
    axes.barh(places, most, color=LEVEL, height=_BAR, label="spent by some of them")
    axes.barh(places, least, color=CHOSEN, height=_BAR, label="spent by everyone")
    names = [lines(f"{a.table}, {a.tier or f'ε = {a.level:g}'}", 30) for a in bars]
    labels = [
        name if a.people is None else f"{name}\n{a.people:,} people"
        for name, a in zip(names, bars, strict=True)
    ]
    axes.set_yticks(places, labels, fontsize=9)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_xlabel("part of the level")
    figure.suptitle("What is spent, and what is left", fontweight="bold")
    _legend(figure, axes, 3)
    bare(axes)
    return write(figure, path)


def _legend(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower right", ncols=columns, frameon=False)


def lines(text: str, width: int) -> str:
    """A text in at most two lines; a dollar sign is just one, and no formula begins there."""
    return fill(text, width, max_lines=2, placeholder=" …").replace("$", r"\$")


def refuse_path(path: Path) -> None:
    """Refuse a file that `save` could not write, beforehand."""
    kinds = pyplot().matplotlib.backend_bases.FigureCanvasBase.get_supported_filetypes()
    fault = "" if path.suffix[1:].lower() in ("", *kinds) else "ValueError"
    try:
        is_new = not path.exists()
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as refusal:
        fault = type(refusal).__name__
    if fault:
        raise AccordError(_UNWRITABLE.format(str(path), fault))


def save(plt: Any, figure: Any, path: str | Path, **options: Any) -> Path:
    """Write a figure of pyplot's and close it."""
    try:
        return write(figure, path, **options)
    finally:
        plt.close(figure)


def write(figure: Any, path: str | Path, **options: Any) -> Path:
    """Write a figure to a file."""
    target = Path(path)
    try:
        with _any_letters():
            figure.savefig(target, dpi=150, **options)
    except (OSError, ValueError) as fault:
        raise AccordError(_UNWRITABLE.format(str(target), type(fault).__name__)) from None
    return target


@contextmanager
def _any_letters() -> Iterator[None]:
    """A letter that the font does not have is a box, without a warning."""
    with catch_warnings():
        filterwarnings("ignore", message="Glyph")
        yield


def draw_errors(axes: Any, plan: Plan) -> None:
    """The predicted error of every mechanism, with that of the chosen one in colour."""
    bars = [
        (c.mechanism, c.rmse, c.rmse_here)
        for c in plan.candidates
        if c.rmse is not None and c.rmse_here is not None
    ]
    if plan.mechanism in NO_DATA:
        bars.append((plan.mechanism, plan.rmse, plan.rmse_here))
    bars.sort(key=lambda bar: (-bar[1], bar[0] == plan.mechanism))
    names, errors, here = ([bar[k] for bar in bars] for k in range(3))
    axes.barh(names, errors, color=[CHOSEN if n == plan.mechanism else OTHER for n in names], height=_BAR)
    axes.plot(here, names, "|", color="black", markersize=15, markeredgewidth=2)
    for name, rmse, _ in bars:
        axes.annotate(error(rmse), (rmse, name), **_BESIDE)
    axes.margins(x=0.18)
    axes.xaxis.set_major_formatter(lambda x, _: number(x, 4))
    axes.locator_params(axis="x", nbins=5)
    unit = "" if plan.unit == "value" else f", {plan.unit}"
    axes.set_xlabel(
        f"predicted error (rmse{unit})\nbar: about the population; stroke: about these people", fontsize=9
    )
    refused = [c.mechanism for c in plan.candidates if c.rmse is None]
    not_drawn = f" (refused: {', '.join(refused)})" if refused else ""
    axes.set_title(f"Before a value is read{not_drawn}", fontsize=9, loc="left")
    bare(axes)


def _charge_lines(axes: Any, plan: Plan) -> None:
    """Few levels: a line for each, from what is charged to what is allowed."""
    spec, micro, charges = plan.spec, plan.spec.micro.tolist(), plan.cost.tolist()
    place = log_axis(axes, [*micro, *charges])
    allowed, taken, y = [place(m) for m in micro], [place(c) for c in charges], range(len(micro))
    axes.hlines(y, taken, allowed, color=OTHER, linewidth=2, zorder=1)
    axes.scatter(
        allowed, y, s=70, facecolors="white", edgecolors=LEVEL, linewidths=2, zorder=2, label=_ALLOWED
    )
    axes.scatter(taken, y, s=40, color=CHOSEN, zorder=3, label=_TAKEN)
    names = [lines(spec.tier(m) or f"ε = {level_text(m)}", 22) for m in micro]
    noun = "expected" if spec.is_expected else "people"
    labels = [f"{name}\n{people:,} {noun}" for name, people in zip(names, spec.counts, strict=True)]
    axes.set_yticks(y, labels, fontsize=9)
    axes.set_ylim(-0.6, len(micro) - 0.4)
    axes.set_title("What each person is charged", fontsize=9, loc="left")
    axes.set_xlabel("ε")
    bare(axes)


def _charge_curve(axes: Any, plan: Plan) -> None:
    """Many levels: the charge as a function of the level."""
    micro, charged = plan.spec.micro.tolist(), plan.cost.tolist()
    stride = max(1, len(micro) // 2000)
    rows = list(zip(micro, charged, strict=True))[::-stride][::-1]
    place = log_axis(axes, [x for row in rows for x in row])
    x = [place(m) for m, _ in rows]
    axes.plot(x, x, color=LEVEL, linewidth=2, label=_ALLOWED)
    axes.plot(x, [place(c) for _, c in rows], color=CHOSEN, linewidth=2, label=_TAKEN)
    axes.set_yscale("log")
    axes.set_xlabel("level ε")
    axes.set_title(f"What each of {len(micro):,} levels is charged", fontsize=9, loc="left")
    bare(axes)


def log_axis(axes: Any, micros: list[int]) -> Any:
    """A logarithmic axis with places for "not read" and ∞ at its ends, apart from the numbers."""
    finite = [x / MICRO for x in micros if 0 < x < PUBLIC] or [1.0]
    first, last = min(finite) / 2, max(finite) * 2
    none, public = 0 in micros, PUBLIC in micros
    low, high = (first / 6 if none else first), (last * 6 if public else last)
    axes.set_xscale("log")
    axes.set_xlim(low / 1.6, high * 1.6)
    powers = range(floor(log10(first)), ceil(log10(last)) + 1)
    stride = max(1, len(powers) // 5)
    ticks = [t for t in (10.0**k for k in powers[::stride]) if first <= t <= last]
    ticks = ticks if len(ticks) > 1 else sorted(set(finite))[:4]
    axes.set_xticks(
        [*([low] if none else []), *ticks, *([high] if public else [])],
        [*(["not\nread"] if none else []), *(f"{t:g}" for t in ticks), *(["∞"] if public else [])],
    )
    axes.minorticks_off()
    return lambda micro: high if micro == PUBLIC else low if micro == 0 else micro / MICRO


def bare(axes: Any) -> None:
    """Without the frame, and with a faint grid behind everything."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#EEEEEE", zorder=0)
    axes.set_axisbelow(True)


def blank_figure(width: float, height: float) -> Any:
    """A figure that belongs to no window: a notebook shows it, `savefig` writes it.

    It does not touch what pyplot has, such as the backend that a user chose.
    """
    matplotlib()
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that shows itself in a notebook, whether or not pyplot was set up there."""

        def _repr_png_(self) -> bytes:
            out = BytesIO()
            with _any_letters():
                self.savefig(out, format="png", dpi=110)
            return out.getvalue()

    return Picture(figsize=(width, height), layout="constrained")


def pyplot() -> Any:
    """pyplot, without a window; in a notebook as it was set up there."""
    package = matplotlib()
    if "MPLBACKEND" not in os.environ:
        package.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def matplotlib() -> Any:
    """The package, if it is there."""
    try:
        return import_module("matplotlib")
    except ModuleNotFoundError:
        raise AccordError(
            "a figure needs matplotlib, which is not installed. Install accord[plot]."
        ) from None
