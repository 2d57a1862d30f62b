"""Figures, by matplotlib, which comes with the extra `plot`."""

from __future__ import annotations

from math import ceil, floor, inf, log10
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from accord.budget import MICRO, PUBLIC, level_text
from accord.errors import AccordError
from accord.planning import NO_DATA, Plan
from accord.report.text import error, number

if TYPE_CHECKING:
    from accord.ledger.history import Account

# Okabe and Ito's palette: told apart by colour-blind readers, and in grey print by lightness.
CHOSEN, OTHER, LEVEL = "#0072B2", "#BBBBBB", "#E69F00"
_NO_PLACE = "cannot write the figure {!r} ({}). Name a .png, .svg or .pdf in a folder that exists."
_FEW = 8
_BARS = 40
_ALLOWED, _TAKEN = "level: the most they allow", "charge: what this release takes"


def draw_plan(plan: Plan, path: str | Path) -> Path:
    """The predicted error of every mechanism, and what each level is charged, as a picture in a file."""
    plt = pyplot()
    figure, (errors, charges) = plt.subplots(
        1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(1.15, 1)
    )
    draw_errors(errors, plan)
    (_charges if plan.spec.micro.size <= _FEW else _charge_curve)(charges, plan)
    title = f"{plan.query.label[0].upper()}{plan.query.label[1:]}: answered by {plan.mechanism}"
    figure.suptitle(_lines(title, 95), fontweight="bold")
    figure.legend(
        *charges.get_legend_handles_labels(), fontsize=8, loc="outside lower right", ncols=2, frameon=False
    )
    return save(plt, figure, path)


def draw_accounts(accounts: list[Account], path: str | Path) -> Path:
    """How much of everyone's level is spent and left, by table and level, as a picture in a file."""
    plt = pyplot()
    shown = [a for a in accounts if 0 < a.level < inf][:_BARS][::-1]
    if not shown:
        raise AccordError(
            "there is nobody with a budget to draw. Register a table first: 'accord ledger register'."
        )
    figure, axes = plt.subplots(figsize=(8, 1.6 + 0.5 * len(shown)), layout="constrained")
    for y, a in enumerate(shown):
        least, most = (min(1.0, spent / a.level) for spent in a.spent)
        axes.barh(y, 1, color="white", edgecolor=OTHER, height=0.62, label="left" if y == 0 else None)
        axes.barh(y, most, color=LEVEL, height=0.62, label="spent by some of them" if y == 0 else None)
        axes.barh(y, least, color=CHOSEN, height=0.62, label="spent by everyone" if y == 0 else None)
    labels = [f"{a.table}, {a.tier or f'ε = {a.level:g}'}" for a in shown]
    axes.set_yticks(
        range(len(shown)),
        [_lines(label, 30) + f"\n{a.people:,} people" for label, a in zip(labels, shown, strict=True)],
        fontsize=9,
    )
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_xlabel("part of the level")
    figure.suptitle("What is spent, and what is left", fontweight="bold")
    figure.legend(
        *axes.get_legend_handles_labels(), fontsize=8, loc="outside lower right", ncols=3, frameon=False
    )
    bare(axes)
    return save(plt, figure, path)


def _lines(text: str, width: int) -> str:
    """At most two of them; a dollar sign is just one, and no formula begins there."""
    return fill(text, width, max_lines=2, placeholder=" …").replace("$", r"\$")


def need_place(path: Path) -> None:
    """Refuses a file that `save` could not write, beforehand."""
    kinds = pyplot().matplotlib.backend_bases.FigureCanvasBase.get_supported_filetypes()
    fault = "" if path.suffix[1:].lower() in ("", *kinds) else "ValueError"
    try:
        new = not path.exists()
        with path.open("ab"):
            pass
        if new:
            path.unlink()
    except OSError as error:
        fault = type(error).__name__
    if fault:
        raise AccordError(_NO_PLACE.format(str(path), fault))


def save(plt: Any, figure: Any, path: str | Path, **how: Any) -> Path:
    """Write a figure and close it."""
    target = Path(path)
    try:
        with catch_warnings():
            filterwarnings("ignore", message="Glyph")  # a letter that the font does not have is a box
            figure.savefig(target, dpi=150, **how)
    except (OSError, ValueError) as fault:
        raise AccordError(_NO_PLACE.format(str(target), type(fault).__name__)) from None
    finally:
        plt.close(figure)
    return target


def draw_errors(axes: Any, plan: Plan) -> None:
    shown = [
        (c.mechanism, c.rmse, c.rmse_here)
        for c in plan.candidates
        if c.rmse is not None and c.rmse_here is not None
    ]
    if plan.mechanism in NO_DATA:
        shown.append((plan.mechanism, plan.rmse, plan.rmse_here))
    shown.sort(key=lambda row: (-row[1], row[0] == plan.mechanism))
    names = [name for name, _, _ in shown]
    axes.barh(
        names,
        [rmse for _, rmse, _ in shown],
        color=[CHOSEN if n == plan.mechanism else OTHER for n in names],
        height=0.62,
    )
    axes.plot([here for _, _, here in shown], names, "|", color="black", markersize=15, markeredgewidth=2)
    for name, rmse, _ in shown:
        axes.annotate(
            error(rmse), (rmse, name), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.margins(x=0.18)
    axes.xaxis.set_major_formatter(lambda x, _: number(x, 4))
    axes.locator_params(axis="x", nbins=5)
    unit = "" if plan.unit == "value" else f", {plan.unit}"
    axes.set_xlabel(
        f"predicted error (rmse{unit})\nbar: about the population; stroke: about these people", fontsize=9
    )
    refused = [c.mechanism for c in plan.candidates if c.rmse is None]
    axes.set_title(
        "Before a value is read" + (f" (refused: {', '.join(refused)})" if refused else ""),
        fontsize=9,
        loc="left",
    )
    bare(axes)


def _charges(axes: Any, plan: Plan) -> None:
    """Few levels: a line for each, from what is charged to what is allowed."""
    spec = plan.spec
    rows = list(zip(spec.micro.tolist(), spec.counts, plan.cost.tolist(), strict=True))
    place = log_axis(axes, [x for m, _, c in rows for x in (m, c)])
    for y, (m, _, c) in enumerate(rows):
        axes.plot([place(c), place(m)], [y, y], color=OTHER, linewidth=2, zorder=1)
        axes.scatter(
            place(m),
            y,
            s=70,
            facecolors="white",
            edgecolors=LEVEL,
            linewidths=2,
            zorder=2,
            label=_ALLOWED if y == 0 else None,
        )
        axes.scatter(place(c), y, s=40, color=CHOSEN, zorder=3, label=_TAKEN if y == 0 else None)
    labels = [_lines(spec.tier(m) or f"ε = {level_text(m)}", 22) + f"\n{n:,} people" for m, n, _ in rows]
    axes.set_yticks(range(len(rows)), labels, fontsize=9)
    axes.set_ylim(-0.6, len(rows) - 0.4)
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
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#EEEEEE", zorder=0)
    axes.set_axisbelow(True)


def pyplot() -> Any:
    """matplotlib, without a window."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise AccordError(
            "a figure needs matplotlib, which is not installed. Install accord[plot]."
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
