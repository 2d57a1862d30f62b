"""Draws sensitivity.png: the scale of the noise on the moments of a regression, by the number of columns.

Replace, columns of numbers, everyone at charge 1. The functional mechanism's program has noise of scale 2d² + 4d on all d² products, of which each but those on
the diagonal is the mean of two, and on 2·y·x. What is said of equal weights is tried on all pairs of points of a grid first. Prints the figures of docs/report.md.
"""

from itertools import combinations, product
from pathlib import Path

import matplotlib
import numpy as np

import accord
from accord.relation import REPLACE
from accord.statistics.moments import sensitivity, weights_for

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLUMNS = range(2, 14)
"""d, with the intercept."""
STEPS = {2: 21, 3: 9, 4: 5}
"""Of the grids on which all pairs are tried, for d columns."""


def farthest(d: int, steps: int) -> float:
    """The largest Σ|ΔT| of any two points of a grid: T are y, x, products and squares of x."""
    points = product(np.linspace(-1, 1, steps), repeat=d)
    moments = np.array(
        [[*z, *(a * b for a, b in combinations(z, 2)), *(x * x for x in z[:-1])] for z in points]
    )
    return max(float(np.abs(moments - each).sum(axis=1).max()) for each in moments)


def scales(d: int) -> dict[str, float]:
    """{whose noise: its standard deviation over √2, which is the scale of a Laplace noise}."""
    features = [f"x{k}" for k in range(1, d)]
    query = accord.regression("y", features, dict.fromkeys(["y", *features], (-1, 1)), missing="none")
    largest, weights = float(sensitivity(query, REPLACE)), weights_for(d - 1)
    return {
        "2d² + 4d, x·x": (2 * d * d + 4 * d) / 2**0.5,
        "2d² + 4d, y·x": (2 * d * d + 4 * d) / 2,
        "equal weights: d(d + 3)/2": d * (d + 3) / 2,
        "ours, y·x": largest / weights.yx,
        "ours, x·x": largest / weights.xx,
    }


def main() -> None:
    for d, steps in STEPS.items():
        print(f"d = {d}: {farthest(d, steps):g} on a grid, d(d + 3)/2 = {d * (d + 3) / 2:g}")
    by_columns = {d: scales(d) for d in COLUMNS}
    for d in (4, 8, 13):
        print(f"d = {d}:", ", ".join(f"{name} {scale:.1f}" for name, scale in by_columns[d].items()))
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    styles = zip(
        ("#D55E00", "#D55E00", "#999999", "#0072B2", "#0072B2"), ("s--", "o-", "-", "o-", "s--"), strict=True
    )
    for name, (colour, style) in zip(by_columns[2], styles, strict=True):
        axes.plot(COLUMNS, [by_columns[d][name] for d in COLUMNS], style, color=colour, label=name)
    axes.set(
        yscale="log", xlabel="columns, with the intercept", ylabel="standard deviation of the noise / √2"
    )
    axes.set_xticks(COLUMNS)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("sensitivity.png"), dpi=130)


if __name__ == "__main__":
    main()
