"""Draws gap.png: what levels that go with values do to a mean, and to its interval. Prints the figures of docs/gap.md.

Bundled incomes of 20,000 people, [J]'s default levels, the richest the strictest by a normal copula; seeded, by the lab. And how far apart the
people of a survey are who care more or less about privacy (privacy_attitudes.csv: counts of Berke et al., PoPETs 2025).
"""

import csv
from importlib.resources import files
from pathlib import Path

import matplotlib
import numpy as np

import accord
from accord.lab import populations, simulate, specs
from accord.lab.simulation.values import draw_values

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PEOPLE, RUNS, BOUNDS = 20_000, 200, (0, 200_000)
CORRELATIONS = (0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6)
COLOURS = {"affine": "#D55E00", "minimum": "#999999", "robust": "#0072B2"}
MIDDLE = {"18-24": 21, "25-34": 29.5, "35-44": 39.5, "45-54": 49.5, "55-64": 59.5, "65+": 72}
INCOME = {
    "<25k": 15_000,
    "25-50k": 37_500,
    "50-75k": 62_500,
    "75-100k": 87_500,
    "100-150k": 125_000,
    "150k+": 190_000,
}


def gap_of(population, spec, correlation):
    """How far the mean incomes of two levels lie apart, of levels with a hundred people or more."""
    rng, shuffling = np.random.default_rng(1), np.random.default_rng(2)
    values = draw_values(population, rng, (100, PEOPLE), -correlation, shuffling)
    starts = np.concatenate(([0], np.cumsum(spec.people)[:-1]))
    means = np.add.reduceat(np.clip(values, *BOUNDS).mean(axis=0), starts) / spec.people
    return float(np.ptp(means[spec.people >= 100]))


def asked(gap=None):
    return accord.mean("income", BOUNDS, missing="none", gap=gap)


def measured(mechanism, gap, population, spec, correlation):
    """The error about these people, and how often the 95 % interval holds."""
    query = asked(gap)
    run = simulate(mechanism, query, spec, population, RUNS, seed=3, correlation=-correlation)
    plan = accord.plan(spec, query, mechanism)
    half = plan.prediction.error_model.spread.half_width(0.05)
    return run.rmse_here, float((np.abs(run.errors_here) <= half).mean())


def survey():
    """{characteristic: the largest difference between people of four kinds of concern}."""
    text = (HERE / "privacy_attitudes.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    kinds = ("concern_5", "concern_4", "concern_3", "concern_1or2")

    def means(value):
        each = []
        for kind in kinds:
            counts = np.array([float(row[kind] or 0) for row in rows])
            each.append(float(counts @ np.array([value(row) for row in rows]) / counts.sum()))
        return max(each) - min(each)

    return {
        "age, of bounds 18 … 100": means(lambda row: MIDDLE[row["age_group"]]) / 82,
        "household income, of bounds 0 … 200,000": means(lambda row: INCOME[row["household_income"]])
        / 200_000,
        "share of women": means(lambda row: row["gender"] == "female"),
        "share of people from 65 on": means(lambda row: row["age_group"] == "65+"),
        "share with less than 25,000": means(lambda row: row["household_income"] == "<25k"),
    }


def main() -> None:
    for name, gap in survey().items():
        print(f"{name}: {gap:.3f}")
    population = populations.column(str(files("accord.data") / "people.parquet"), "income")
    spec = specs.jorgensen(PEOPLE).spec(seed=1)
    errors, held = {}, {}
    for correlation in CORRELATIONS:
        gap = gap_of(population, spec, correlation)
        for name, mechanism, declared in (
            ("affine, no gap declared", "affine", None),
            ("affine", "affine", gap),
            ("minimum", "minimum", gap),
            ("robust", "robust", gap),
            ("robust, half the gap", "robust", gap / 2),
            ("robust, twice the gap", "robust", min(2 * gap, BOUNDS[1])),
        ):
            error, share = measured(mechanism, declared, population, spec, correlation)
            errors.setdefault(name, []).append(error)
            held.setdefault(name, []).append(share)
        told = ", ".join(f"{name} {errors[name][-1]:.0f} ({held[name][-1]:.0%})" for name in errors)
        print(f"correlation {correlation:g}, gap {gap:,.0f}: {told}", flush=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name in ("affine", "minimum", "robust"):
        left.plot(CORRELATIONS, errors[name], "o-", color=COLOURS[name], label=name)
    left.fill_between(
        CORRELATIONS,
        np.minimum(errors["robust, half the gap"], errors["robust, twice the gap"]),
        np.maximum(errors["robust, half the gap"], errors["robust, twice the gap"]),
        color=COLOURS["robust"],
        alpha=0.2,
        lw=0,
        label="robust, gap off by 2",
    )
    right.plot(
        CORRELATIONS, held["affine, no gap declared"], "o-", color=COLOURS["affine"], label="no gap declared"
    )
    right.plot(CORRELATIONS, held["robust"], "o-", color=COLOURS["robust"], label="gap declared")
    right.axhline(0.95, color="black", lw=0.8, ls=":")
    left.set(
        xlabel="rank correlation of level and income", ylabel="error of the mean (dollars)", ylim=(0, None)
    )
    right.set(
        xlabel="rank correlation of level and income", ylabel="95 % intervals that hold", ylim=(0, 1.03)
    )
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "gap.png", dpi=130)


if __name__ == "__main__":
    main()
