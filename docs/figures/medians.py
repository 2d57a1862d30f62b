"""Draws medians.png: the answers of `pe`, `mix` and `rank` for the median of the bundled incomes, by many real releases."""

from importlib.resources import files
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import accord

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RUNS = 400
COLOURS = {"pe": "#D55E00", "mix": "#E69F00", "rank": "#0072B2"}


def main() -> None:
    path = files("accord.data") / "people.parquet"
    people = accord.table(str(path), epsilon="epsilon")
    query = accord.median("income", bounds=(0, 200_000), missing="none")
    incomes = np.sort(
        duckdb.connect()
        .execute("SELECT income FROM read_parquet($1) WHERE epsilon > 0", [str(path)])
        .fetchnumpy()["income"]
    )
    figure, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
    for panel, (name, colour) in zip(axes, COLOURS.items(), strict=True):
        plan = people.plan(query, name)
        values = np.array([people.release(plan).value for _ in range(RUNS)])
        off = 100 * np.searchsorted(incomes, values) / incomes.size - 50
        panel.hist(off, bins=np.linspace(-6, 6, 81), color=colour)
        panel.set_yticks([])
        panel.set_title(
            f"{name}: {np.sqrt(np.mean(off**2)):.2f} points off (predicted {plan.rmse_here:.2f})",
            loc="left",
            fontsize=10,
        )
        panel.spines[["top", "right", "left"]].set_visible(False)
    axes[-1].set_xlabel("percentile points off the median of these people")
    figure.savefig(Path(__file__).with_name("medians.png"), dpi=130)


if __name__ == "__main__":
    main()
