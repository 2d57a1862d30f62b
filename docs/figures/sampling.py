"""Draws sampling.png: how likely people are kept by `sample` under replace, and what that is worth for a mean.

Left: the chance that is used, and that of add-remove at half of every level. Right: the error of a mean of 1,000 people with [J]'s levels by the level t
of those who are kept: lines are reckoned, points measured by the lab (seeded). Prints the figures of docs/report.md.
"""

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np

import accord
from accord.lab import populations, simulate, specs
from accord.mechanisms import sample
from accord.relation import ADD_REMOVE, REPLACE

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PEOPLE, RUNS = 1_000, 2_000
LEVELS_OF_T = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
HALVED = replace(REPLACE, keep_probability=lambda levels, t: ADD_REMOVE.keep_probability(levels / 2, t / 2))
COLOURS = {"ours": "#0072B2", "halved": "#D55E00"}


def error(spec: accord.Spec, t: float, relation: object) -> float:
    """Root of (Σπ(1 − π)/4 + Σπ²/4 + 2/t²)/(Σπ)²: values of width 1 that vary as much as they can."""
    pi = sample.probabilities(spec.micro, round(t * 10**6), relation)
    kept = spec.people @ pi
    return float(np.sqrt((spec.people @ pi / 4 + 2 / t**2) / kept**2))


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    levels = np.geomspace(0.01, 1, 200)
    micro = np.round(levels * 10**6).astype(np.int64)
    for name, relation in (("ours", REPLACE), ("halved", HALVED)):
        left.plot(levels, sample.probabilities(micro, 10**6, relation), color=COLOURS[name], label=name)
    for level in (0.01, 0.1, 0.5):
        ours, halved = (
            float(sample.probabilities(np.array([round(level * 10**6)]), 10**6, relation)[0])
            for relation in (REPLACE, HALVED)
        )
        print(f"ε = {level:g}, t = 1: kept with {ours:.4f}, halved {halved:.4f}, {ours / halved:.3f} times")
    spec = specs.jorgensen(PEOPLE).spec(seed=1)
    grid = np.geomspace(0.05, 1, 60)
    for name, relation in (("ours", REPLACE), ("halved", HALVED)):
        right.plot(grid, [error(spec, t, relation) for t in grid], color=COLOURS[name], label=name)
    query, population = accord.mean("x", bounds=(0, 1), missing="none"), populations.bernoulli(0.5)
    measured = []
    for t in LEVELS_OF_T:
        plan = accord.plan(spec, query, "sample", t=t)
        run = simulate("sample", query, spec, population, RUNS, seed=5, t=t)
        measured.append(run.rmse)
        print(
            f"t = {t:g}: measured {run.rmse:.4f}, predicted {plan.rmse:.4f}, halved {error(spec, t, HALVED):.4f}"
        )
    right.plot(LEVELS_OF_T, measured, "o", color=COLOURS["ours"], label="ours, measured")
    affine = accord.plan(spec, query, "affine").rmse
    print(f"affine: predicted {affine:.4f}")
    right.axhline(affine, color="black", lw=0.8, ls=":", label="affine")
    left.set(xscale="log", yscale="log", xlabel="level ε", ylabel="chance to be kept, t = 1")
    right.set(xscale="log", xlabel="t", ylabel="error of a mean, of the width", ylim=(0, None))
    right.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("sampling.png"), dpi=130)


if __name__ == "__main__":
    main()
