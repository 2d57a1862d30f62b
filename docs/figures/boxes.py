"""Draws boxes.png: the error of k means about these people, with a noise for each and with one box.

Incomes of the bundled people, dealt out to [J]'s default levels (20,000 people); seeded, by the lab's twin of a release. Prints the figures of
docs/mechanisms.md.
"""

from importlib.resources import files
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import accord
from accord.lab.simulation.twin import twin
from accord.planning import workload

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PEOPLE, RUNS, COUNTS = 20_000, 200, (1, 2, 5, 10, 20, 50, 100)
BOUNDS = (0, 200_000)


def measured(counts: tuple[int, ...] = COUNTS, runs: int = RUNS) -> tuple[dict, dict]:
    """{kind: errors for each of these numbers of means}, measured and predicted."""
    rng = np.random.default_rng(7)
    path = str(files("accord.data") / "people.parquet")
    incomes = duckdb.connect().execute("SELECT income FROM read_parquet($1)", [path]).fetchnumpy()["income"]
    group = rng.random(PEOPLE)
    level = np.where(group < 0.54, rng.uniform(0.01, 0.2, PEOPLE), rng.uniform(0.2, 1, PEOPLE))
    spec = accord.Spec.of(np.where(group < 0.91, level, 1.0).round(2))
    cells = np.round(np.clip(rng.choice(incomes, (runs, PEOPLE)), *BOUNDS) / BOUNDS[1] * 2**20).astype(
        np.int64
    )
    truth = cells.mean(axis=1) / 2**20 * BOUNDS[1]
    errors = {"split": [], "box": []}
    predicted = {"split": [], "box": []}
    partitions = workload.partitions
    for count in counts:
        asked = [accord.mean(f"income of {k}", bounds=BOUNDS, missing="none") for k in range(count)]
        for kind in errors:
            workload.partitions = partitions if kind == "box" else lambda *_: iter(())
            part = accord.plan(spec, accord.workload(asked)).parts[0]
            off = np.array([twin(part).answers(spec.people, cells, rng) - truth for _ in range(10)])
            errors[kind].append(float(np.sqrt(np.mean(off**2))))
            predicted[kind].append(part.rmse_here)
    workload.partitions = partitions
    return errors, predicted


def main() -> None:
    errors, predicted = measured()
    for count, split, box in zip(COUNTS, errors["split"], errors["box"], strict=True):
        print(f"{count} means: split {split:.0f}, box {box:.0f}, {split / box:.2f} times less", flush=True)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for kind, colour in (("split", "#D55E00"), ("box", "#0072B2")):
        axes.plot(COUNTS, errors[kind], "o", color=colour, label=f"{kind}, measured")
        axes.plot(COUNTS, predicted[kind], "-", color=colour, label=f"{kind}, predicted for any values")
    axes.set(xscale="log", yscale="log", xlabel="number of means", ylabel="error of each, about these people")
    axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("boxes.png"), dpi=130)


if __name__ == "__main__":
    main()
