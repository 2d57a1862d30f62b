"""Figures, by matplotlib, which comes with the extra `plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accord.errors import AccordError
from accord.planning import Plan
from accord.spec import MICRO, PUBLIC, level_text

# Okabe and Ito's palette: told apart by colour-blind readers, and in grey print by lightness.
CHOSEN, OTHER, LEVEL = "#0072B2", "#BBBBBB", "#E69F00"


def draw_plan(plan: Plan, path: str | Path) -> Path:
    """The predicted error of every mechanism, and what each level is charged, as a picture in a file."""
    plt = _pyplot()
    figure, (errors, charges) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=(1.15, 1))
    _errors(errors, plan)
    _charges(charges, plan)
    figure.suptitle(f"{plan.query.label[0].upper()}{plan.query.label[1:]}: {plan.mechanism}", fontweight="bold")
    target = Path(path)
    try:
        figure.savefig(target, dpi=150)
    except (OSError, ValueError) as error:
        raise AccordError(
            f"cannot write the figure {str(target)!r} ({type(error).__name__}). Name a .png, .svg or .pdf in a folder that exists."
        ) from None
    finally:
        plt.close(figure)
    return target


def _errors(axes: Any, plan: Plan) -> None:
    shown = sorted((c for c in plan.candidates if c.rmse is not None), key=lambda c: -(c.rmse or 0))
    names = [c.mechanism for c in shown]
    colours = [CHOSEN if c.mechanism == plan.mechanism else OTHER for c in shown]
    axes.barh(names, [c.rmse for c in shown], color=colours, height=0.62)
    axes.plot([c.rmse_here for c in shown], names, "|", color="black", markersize=15, markeredgewidth=2)
    for c in shown:
        axes.annotate(
            f"{c.rmse:,.4g}", (c.rmse, c.mechanism), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.margins(x=0.16)
    axes.set_xlabel(
        f"predicted error (rmse, {plan.unit})\nbar: about the population; stroke: about these people", fontsize=9
    )
    axes.set_title("Every mechanism, before a value is read", fontsize=10, loc="left")
    _bare(axes)


def _charges(axes: Any, plan: Plan, most: int = 24) -> None:
    spec = plan.spec
    stride = max(1, spec.micro.size // most)
    rows = list(zip(spec.micro.tolist(), spec.counts, plan.calibration.charges.tolist(), strict=True))[::-1][::stride][
        ::-1
    ]
    finite = [x / MICRO for m, _, c in rows for x in (m, c) if 0 < x < PUBLIC]
    low, high = (min(finite) / 8, max(finite) * 8) if finite else (0.1, 10.0)

    def place(micro: int) -> float:
        return high if micro == PUBLIC else max(micro / MICRO, low)

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
            label="level: the most they allow" if y == 0 else None,
        )
        axes.scatter(
            place(c), y, s=40, color=CHOSEN, zorder=3, label="charge: what this release takes" if y == 0 else None
        )
    axes.set_xscale("log")
    axes.set_xlim(low / 1.6, high * 1.6)
    axes.set_yticks(
        range(len(rows)), [f"{spec.tier(m) or 'ε = ' + level_text(m)}\n{n:,} people" for m, n, _ in rows], fontsize=9
    )
    ticks = [t for t in (10.0**k for k in range(-6, 7)) if low < t < high]
    axes.set_xticks([low, *ticks, high], ["not\nread", *(f"{t:g}" for t in ticks), "∞"])
    axes.minorticks_off()
    axes.set_ylim(-0.6, len(rows) - 0.1)
    axes.set_title("What each person is charged", fontsize=10, loc="left")
    axes.set_xlabel("ε")
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
    _bare(axes)


def _bare(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#EEEEEE", zorder=0)
    axes.set_axisbelow(True)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise AccordError("a figure needs matplotlib, which is not installed. Install accord[plot].") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
