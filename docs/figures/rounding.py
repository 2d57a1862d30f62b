"""Draws rounding.png: the error of a median with and without `rounded=`, of incomes that are rounded and that are not."""

from importlib.resources import files
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import accord
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import summarise
from accord.release.answer import answer

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RUNS = 200
SIZES = (1_000, 3_000, 10_000, 20_000)
LEVELS = {0.01: 0.54, 0.2: 0.37, 1.0: 0.09}
"""About [J]'s specification: how many have which level."""
COLOURS = {None: "#D55E00", True: "#0072B2"}


def error(incomes: np.ndarray, size: int, rounded: bool | None) -> float:
    """Root mean square of how far seeded answers are off, in percentile points of these people."""
    rng = np.random.default_rng(size)
    spec = accord.Spec.from_groups({level: round(share * size) for level, share in LEVELS.items()})
    query = accord.median("income", bounds=(0, 200_000), missing="none", rounded=rounded)
    plan = accord.plan(spec, query, "rank")
    squares = []
    for _ in range(RUNS):
        values = np.sort(rng.choice(incomes, spec.total))
        cells = np.rint(np.clip(values / float(query.step), 0, query.cells)).astype(np.int64)
        point = answer(plan, [summarise(plan, rng.permutation(cells))], Seeded(rng))[0] / float(query.step)
        below, above = (cells < point - 0.5).mean(), (cells > point + 0.5).mean()
        squares.append(max(0.0, below - 0.5, above - 0.5) ** 2)
    return 100 * float(np.sqrt(np.mean(squares)))


def main() -> None:
    path = files("accord.data") / "people.parquet"
    sql = "SELECT income FROM read_parquet($1) WHERE epsilon > 0 AND income IS NOT NULL"
    incomes = duckdb.connect().execute(sql, [str(path)]).fetchnumpy()["income"].astype(float)
    smooth = incomes + np.random.default_rng(0).uniform(-500, 500, incomes.size)
    tables = {
        "rounded to thousands": np.rint(incomes / 1000) * 1000,
        "as they are": incomes,
        "smooth": smooth,
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
    for panel, (title, table) in zip(axes, tables.items(), strict=True):
        for rounded, colour in COLOURS.items():
            errors = [error(table, size, rounded) for size in SIZES]
            panel.loglog(SIZES, errors, "o-", color=colour, label=f"rounded={rounded}")
            print(title, rounded, [round(e, 3) for e in errors])
        panel.set_title(title, loc="left", fontsize=10)
        panel.set_xlabel("people")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("percentile points off")
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(Path(__file__).with_name("rounding.png"), dpi=110)


if __name__ == "__main__":
    main()
