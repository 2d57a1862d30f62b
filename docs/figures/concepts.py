"""Draws the pictures of docs/concepts: one for each page, from accord's own formulas where they show numbers."""

from collections.abc import Callable
from math import exp, inf
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import accord

BLUE, ORANGE, GREY, GREEN = "#3366aa", "#cc6633", "#888888", "#338855"
LEVELS = {0.01: 4_400, 0.05: 9_650, inf: 4_942}
"""Those of the bundled table, without the 1,008 who opted out."""
INCOME = accord.mean("income", bounds=(0, 200_000), missing="none")


def levels(axes: Axes) -> None:
    """What an answer may tell about one person: two laws, nowhere more than e^ε apart."""
    epsilon, x = 0.5, np.linspace(-8, 9, 800)
    laws = [epsilon / 2 * np.exp(-epsilon * np.abs(x - value)) for value in (0, 1)]
    for law, colour, value in zip(laws, (BLUE, ORANGE), ("no", "yes"), strict=True):
        axes.plot(x, law, color=colour, lw=2, label=f"Ada's answer is {value}")
        axes.plot(x, law * exp(epsilon), color=colour, lw=0.8, ls=":")
    axes.set(xlabel="released number", ylabel="how likely", yticks=[], xlim=(-8, 9), ylim=(0, None))
    axes.set_title(
        f"ε = {epsilon}: neither is more than e^{epsilon} = {exp(epsilon):.2f} times the other (dotted)"
    )
    axes.legend(frameon=False)


def charges(axes: Axes) -> None:
    """Each level's charge under three mechanisms, for the bundled levels."""
    spec = accord.Spec.from_groups(LEVELS)
    epsilon = np.geomspace(0.005, 0.5, 200)
    tau = accord.theory.affine(spec).tau
    threshold = accord.plan(spec, INCOME, mechanism="threshold").charges
    t = max(threshold.values())
    axes.plot(epsilon, epsilon, color=GREY, ls="--", lw=1, label="the level itself: nobody is charged more")
    axes.plot(epsilon, np.minimum(epsilon, tau), color=BLUE, lw=2, label=f"affine: min(ε, {tau:.3f})")
    axes.plot(
        epsilon,
        np.where(epsilon >= t, t, 0),
        color=ORANGE,
        lw=2,
        label=f"threshold: {t:g} from level {t:g} on",
    )
    axes.plot(
        epsilon,
        np.where(epsilon >= 0.01, 0.01, np.nan),
        color=GREEN,
        lw=2,
        label="minimum: 0.01 for everyone",
    )
    axes.set(xscale="log", xlabel="level ε that somebody chose", ylabel="charge", ylim=(-0.003, 0.11))
    axes.legend(frameon=False)
    axes.set_title("A mechanism is a function from levels to charges")


def errors(axes: Axes) -> None:
    """Twenty releases with their intervals, about these people and about the population."""
    from accord import lab

    spec = accord.Spec.from_groups({0.1: 1_000, 1.0: 1_000})
    question = accord.mean("income", bounds=(0, 200_000), missing="none", std=48_000)
    plan = accord.plan(spec, question)
    runs = lab.simulate(plan.mechanism, question, spec, lab.populations.lognormal(10, 1), runs=2_000, seed=3)
    axes.barh(
        [
            "measured, about the population",
            "predicted, about the population",
            "predicted, about these people",
        ],
        [runs.rmse, plan.rmse, plan.rmse_here],
        color=[GREY, BLUE, ORANGE],
    )
    axes.set(xlabel="error of a mean income (rmse)")
    axes.set_title("Two errors: these people, or all whom they stand for")


def box(axes: Axes, x: float, y: float, text: str, colour: str, width: float = 1.5) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.3), width, 0.6, boxstyle="round,pad=0.03", fc="white", ec=colour, lw=1.6
        )
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = "black") -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color=colour, lw=1.2))


def plans(axes: Axes) -> None:
    """What a plan sees, and what a release reads."""
    axes.axhspan(-1.6, -0.1, color=ORANGE, alpha=0.08)
    axes.axhspan(-0.1, 1.6, color=BLUE, alpha=0.08)
    axes.text(-0.9, 1.35, "public", color=BLUE, fontsize=10)
    axes.text(-0.9, -1.45, "private", color=ORANGE, fontsize=10)
    for x, y, text, colour in (
        (0, 0.95, "levels\n(Spec)", BLUE),
        (0, 0.25, "question", BLUE),
        (2.4, 0.6, "plan", BLUE),
        (4.8, 0.6, "ledger", BLUE),
        (7.2, 0.6, "answer,\nreceipt", BLUE),
        (2.4, -0.8, "values", ORANGE),
        (4.8, -0.8, "exact sums", ORANGE),
        (7.2, -0.8, "exact noise", ORANGE),
    ):
        box(axes, x, y, text, colour)
    for start, end in (
        ((0.8, 0.95), (1.6, 0.7)),
        ((0.8, 0.25), (1.6, 0.5)),
        ((3.2, 0.6), (4.0, 0.6)),
        ((4.8, 0.25), (4.8, -0.45)),
        ((3.2, -0.8), (4.0, -0.8)),
        ((5.6, -0.8), (6.4, -0.8)),
        ((7.2, -0.45), (7.2, 0.25)),
    ):
        arrow(axes, start, end)
    axes.text(4.9, -0.15, "charged first", fontsize=8, ha="left")
    axes.set(xlim=(-1, 8.2), ylim=(-1.6, 1.6), xticks=[], yticks=[])
    axes.set_title("A plan sees public things only; the charge is booked before a value is read")


def neighbors(axes: Axes) -> None:
    """Which two tables must look alike."""
    rows = [("Ada", "30", "strict"), ("Ben", "41", "open"), ("Cyn", "55", "strict")]
    cases = (
        ("replace", 1, "her age changes", ["who is there", "who chose what"]),
        ("add-remove", (0, 1), "she comes or goes", ["a roster of levels"]),
        ("private levels", (0, 1, 2), "she comes or goes, with her level", ["which levels there are"]),
    )
    for k, (name, private, what, public) in enumerate(cases):
        left = 4.1 * k
        axes.text(left + 1.5, 3.2, name, ha="center", fontsize=11, weight="bold")
        for r, row in enumerate(rows):
            for c, cell in enumerate(row):
                hidden = c in (private if isinstance(private, tuple) else (private,))
                axes.add_patch(
                    plt.Rectangle((left + c, 2 - r), 0.95, 0.8, fc=ORANGE if hidden else "white", alpha=0.35)
                )
                axes.add_patch(plt.Rectangle((left + c, 2 - r), 0.95, 0.8, fill=False, ec=GREY, lw=0.6))
                axes.text(left + c + 0.47, 2.4 - r, cell, ha="center", va="center", fontsize=9)
        axes.text(left + 1.5, -0.45, f"neighbors: {what}", ha="center", fontsize=8.5)
        axes.text(left + 1.5, -0.85, f"public: {', '.join(public)}", ha="center", fontsize=8.5, color=BLUE)
    axes.set(xlim=(-0.3, 11.6), ylim=(-1.1, 3.6), xticks=[], yticks=[])
    axes.set_title("Shaded: what is protected")


def bias(axes: Axes) -> None:
    """The error of three weightings of the bundled levels, as the gap between levels grows."""
    spec = accord.Spec.from_groups(LEVELS)
    gaps = np.linspace(0, 20_000, 41)
    for name, colour in (("affine", ORANGE), ("robust", BLUE), ("minimum", GREY)):
        plans_of = [
            accord.plan(
                spec,
                accord.mean("income", bounds=(0, 200_000), missing="none", gap=max(gap, 1e-3)),
                mechanism=name,
            )
            for gap in gaps
        ]
        axes.plot(gaps, [plan.rmse for plan in plans_of], color=colour, lw=2, label=name)
    axes.set(
        xlabel="how far the means of two levels lie apart (gap)", ylabel="worst error (rmse)", ylim=(0, None)
    )
    axes.legend(frameon=False)
    axes.set_title("Who counts more, if levels go with values")


def budgets(axes: Axes) -> None:
    """What three releases leave of everyone's account."""
    tiers = {"strict": 0.01, "standard": 0.05, "open": 0.5}
    spec = accord.Spec.from_groups({"strict": 4_400, "standard": 9_650, "open": 3_000}, tiers)
    left, names = np.zeros(3), [f"{name} ({level})" for name, level in tiers.items()]
    for share, colour in ((0.3, BLUE), (0.5, GREEN), (0.2, ORANGE)):
        plan = accord.plan(spec, INCOME, share=share, mechanism="affine")
        spent = np.array([plan.charges[level] / level for level in tiers.values()])
        axes.barh(names, spent, left=left, color=colour, label=f"share={share}")
        left += spent
    axes.barh(names, 1 - left, left=left, color="white", ec=GREY, hatch="//", label="left")
    axes.set(xlabel="part of the level", xlim=(0, 1.0))
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.22))
    axes.set_title("A release spends at most its share, and often less")


PICTURES: dict[str, tuple[Callable[[Axes], None], tuple[float, float]]] = {
    "levels": (levels, (7.5, 3.4)),
    "charges": (charges, (7.5, 3.6)),
    "plans": (plans, (9, 3.2)),
    "errors": (errors, (7.5, 2.4)),
    "neighbors": (neighbors, (9.5, 3.6)),
    "bias": (bias, (7.5, 3.6)),
    "budgets": (budgets, (7.5, 2.9)),
}


def main(folder: Path = Path(__file__).parents[1] / "concepts") -> None:
    for name, (draw, size) in PICTURES.items():
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(folder / f"{name}.png", dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    main()
