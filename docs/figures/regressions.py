"""Draws regressions.png: how far predictions are from least squares, with a noise for each moment and with boxes.

Incomes of the bundled people, drawn anew to so many as there are, at [J]'s default levels; seeded, by accord's own answer with the lab's noise. Prints
the figures of docs/mechanisms.md. A minute on one core.
"""

from importlib.resources import files
from pathlib import Path

import duckdb
import matplotlib
import numpy as np

import accord
from accord.lab.simulation.noise import Seeded
from accord.mechanisms import regression
from accord.release.answer import answer

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BOUNDS = {"age": (18, 85), "household": (1, 8), "children": (0, 5), "wage": (0, 200_000)}
STATUS = ["single", "joint", "head_of_household"]
CATEGORIES = {"foodstamps": [False, True], "filing_status": STATUS}
FEATURES = {
    4: ["age", "wage", "foodstamps"],
    5: ["age", "wage", "foodstamps", "children"],
    6: ["age", "wage", "foodstamps", "filing_status"],
    7: ["age", "wage", "foodstamps", "filing_status", "children"],
    8: ["age", "wage", "foodstamps", "filing_status", "children", "household"],
}
"""By d, the number of columns with the intercept."""
PEOPLE, DEALS, DRAWS = (20_000, 50_000, 100_000), 3, 40
OFFERED = regression.offered
KINDS = {"a noise for each": lambda target: [], "boxes": OFFERED}


def levels_of_j(rng: np.random.Generator, people: int) -> np.ndarray:
    group = rng.random(people)
    level = np.where(group < 0.54, rng.uniform(0.01, 0.2, people), rng.uniform(0.2, 1, people))
    return np.where(group < 0.91, level, 1.0).round(2)


def query_of(features: list[str]) -> accord.Query:
    numbers = {name: BOUNDS[name] for name in features if name in BOUNDS}
    return accord.regression(
        "income",
        features,
        {"income": (0, 200_000), **numbers},
        {name: CATEGORIES[name] for name in features if name in CATEGORIES},
        missing="none",
    )


def errors(query: accord.Query, columns: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, float]:
    """RMSE of predictions from those of least squares, on the scale [−1, 1], by kind."""
    people = columns["income"].size
    design = np.hstack([f.coded(columns[f.column]) for f in query.features])
    exact = accord.table(columns, epsilon=float("inf")).release(query).value.scaled
    squares = {kind: [] for kind in KINDS}
    for _ in range(DEALS):
        table = accord.table({**columns, "e": levels_of_j(rng, people)}, epsilon="e")
        summary = table.reader.summary(query)
        for kind, offered in KINDS.items():
            regression.offered = offered
            plan = table.plan(query, "affine")
            for _ in range(DRAWS):
                noisy = answer(plan, [summary], Seeded(rng))[0].scaled
                truth, found = (np.clip(s[0] + design @ np.array(s[1:]), -1, 1) for s in (exact, noisy))
                squares[kind].append(np.mean((found - truth) ** 2))
    regression.offered = OFFERED
    return {kind: float(np.sqrt(np.mean(each))) for kind, each in squares.items()}


def main() -> None:
    rng = np.random.default_rng(7)
    path = str(files("accord.data") / "people.parquet")
    everyone = duckdb.connect().execute("SELECT * FROM read_parquet($1)", [path]).fetchnumpy()
    everyone = {name: np.asarray(values) for name, values in everyone.items()}
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for people, style in zip(PEOPLE, ("o-", "s--", "^:"), strict=True):
        rows = rng.integers(0, everyone["income"].size, people)
        measured = []
        for d, features in FEATURES.items():
            columns = {name: everyone[name][rows] for name in ("income", *features)}
            measured.append(errors(query_of(features), columns, rng))
            each, boxes = measured[-1].values()
            print(
                f"n = {people:,}, d = {d}: each {each:.4f}, boxes {boxes:.4f}, {each / boxes:.2f} times closer"
            )
        for kind, colour in (("a noise for each", "#D55E00"), ("boxes", "#0072B2")):
            values = [of[kind] for of in measured]
            axes.plot([*FEATURES], values, style, color=colour, label=f"{kind}, n = {people:,}")
    axes.set(yscale="log", xlabel="columns, with the intercept", ylabel="RMSE from least squares, of [−1, 1]")
    axes.set_xticks([*FEATURES])
    axes.legend(frameon=False, ncols=3, fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("regressions.png"), dpi=130)


if __name__ == "__main__":
    main()
