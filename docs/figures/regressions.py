"""Draws regressions.png: how far predictions are from least squares, with a noise for each moment and with boxes.

About these people, at [J]'s default levels; seeded, by accord's own answer with the lab's noise. Three sets of columns: the bundled people with their
filing status; with children and household in its place, which are nearly collinear; and independent uniform ones. Beside the two errors is what no
noise could take away: how far least squares weighed by the same charges are off. Prints the figures of docs/mechanisms.md. Five minutes on one core.
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
STATUSES = {
    4: ["age", "wage", "foodstamps"],
    5: ["age", "wage", "foodstamps", "children"],
    6: ["age", "wage", "foodstamps", "filing_status"],
    7: ["age", "wage", "foodstamps", "filing_status", "children"],
    8: ["age", "wage", "foodstamps", "filing_status", "children", "household"],
}
"""By d, the number of columns with the intercept."""
COLLINEAR = {
    4: ["age", "children", "household"],
    5: ["age", "wage", "children", "household"],
    6: ["age", "wage", "foodstamps", "children", "household"],
    7: ["age", "wage", "children", "household", "filing_status"],
    8: ["age", "wage", "foodstamps", "children", "household", "filing_status"],
}
SETS = {
    "filing status": STATUSES,
    "collinear": COLLINEAR,
    "uniform": {d: [f"x{k}" for k in range(1, d)] for d in range(4, 9)},
}
PEOPLE, DEALS, DRAWS = (20_000, 50_000, 100_000), 3, 40
OFFERED = regression.offered
KINDS = {"a noise for each": lambda target: [], "boxes": OFFERED}
NO_NOISE, PREDICTED = "no noise", "predicted"


def levels_of_j(rng: np.random.Generator, people: int) -> np.ndarray:
    group = rng.random(people)
    level = np.where(group < 0.54, rng.uniform(0.01, 0.2, people), rng.uniform(0.2, 1, people))
    return np.where(group < 0.91, level, 1.0).round(2)


def people_of(
    name: str, features: list[str], people: int, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], accord.Query]:
    """Columns, and the regression that is asked for: bundled people drawn anew, or independent uniform columns."""
    if name == "uniform":
        x = rng.uniform(-1, 1, (len(features), people))
        y = rng.uniform(-0.5, 0.5, len(features)) @ x + rng.normal(0, 0.3, people)
        columns = {**dict(zip(features, x, strict=True)), "y": np.clip(y, -1, 1)}
        return columns, accord.regression("y", features, dict.fromkeys(columns, (-1, 1)), missing="none")
    path = str(files("accord.data") / "people.parquet")
    everyone = duckdb.connect().execute("SELECT * FROM read_parquet($1)", [path]).fetchnumpy()
    rows = rng.integers(0, everyone["income"].size, people)
    columns = {column: np.asarray(everyone[column])[rows] for column in ("income", *features)}
    numbers = {column: BOUNDS[column] for column in features if column in BOUNDS}
    categories = {column: CATEGORIES[column] for column in features if column in CATEGORIES}
    return columns, accord.regression(
        "income", features, {"income": (0, 200_000), **numbers}, categories, missing="none"
    )


def errors(query: accord.Query, columns: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, float]:
    """RMSE of predictions from those of least squares, on the scale [−1, 1], by kind; and as predicted."""
    design = np.hstack([f.coded(columns[f.column]) for f in query.features])
    exact = accord.table(columns, epsilon=float("inf")).release(query).value.scaled
    truth = predictions(exact, design)
    low, high = float(query.target.low), float(query.target.high)
    target = 2 * (np.clip(columns[query.target.column], low, high) - low) / (high - low) - 1
    squares = {kind: [] for kind in (*KINDS, NO_NOISE)}
    predicted = []
    for _ in range(DEALS):
        levels = levels_of_j(rng, target.size)
        table = accord.table({**columns, "e": levels}, epsilon="e")
        summary = table.reader.summary(query)
        for kind, offered in KINDS.items():
            regression.offered = offered
            plan = table.plan(query, "affine")
            for _ in range(DRAWS):
                noisy = answer(plan, [summary], Seeded(rng))[0].scaled
                squares[kind].append(np.mean((predictions(noisy, design) - truth) ** 2))
        predicted.append(plan.rmse_here / float(query.half))
        weights = np.sqrt([plan.charges[level] for level in levels])
        full = np.column_stack((np.ones(target.size), design))
        weighed = np.linalg.lstsq(full * weights[:, None], target * weights, rcond=None)[0]
        squares[NO_NOISE].append(np.mean((predictions(weighed, design) - truth) ** 2))
    regression.offered = OFFERED
    return {
        **{kind: float(np.sqrt(np.mean(each))) for kind, each in squares.items()},
        PREDICTED: float(np.mean(predicted)),
    }


def predictions(coefficients: object, design: np.ndarray) -> np.ndarray:
    intercept, *slopes = coefficients
    return np.clip(intercept + design @ np.array(slopes), -1, 1)


def main() -> None:
    figure, axes = plt.subplots(1, len(SETS), figsize=(11, 4), layout="constrained", sharey=True)
    for (name, by_columns), axis in zip(SETS.items(), axes, strict=True):
        for people, style in zip(PEOPLE, ("o-", "s--", "^:"), strict=True):
            measured = {}
            for d, features in by_columns.items():
                rng = np.random.default_rng([7, people, d])
                columns, query = people_of(name, features, people, rng)
                measured[d] = errors(query, columns, rng)
                each, boxes, no_noise, predicted = measured[d].values()
                print(
                    f"{name}, n = {people:,}, d = {d}: each {each:.4f}, boxes {boxes:.4f} (predicted {predicted:.4f}), "
                    f"{each / boxes:.2f} times closer; without any noise {no_noise:.4f}, {each / no_noise:.2f} times",
                    flush=True,
                )
            for kind, colour in (
                ("a noise for each", "#D55E00"),
                ("boxes", "#0072B2"),
                (NO_NOISE, "#999999"),
            ):
                values = [of[kind] for of in measured.values()]
                axis.plot([*measured], values, style, color=colour, label=f"{kind}, n = {people:,}")
        axis.set(yscale="log", xlabel="columns, with the intercept", title=name, xticks=[*by_columns])
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("RMSE from least squares, of [−1, 1]")
    axes[-1].legend(frameon=False, ncols=2, fontsize=6, loc="upper left")
    axes[-1].set_ylim(top=0.5)
    figure.savefig(Path(__file__).with_name("regressions.png"), dpi=130)


if __name__ == "__main__":
    main()
