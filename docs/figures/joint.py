"""Draws joint.png: the error of J quantiles about these people, with the charge split and drawn together.

Incomes of the bundled people, dealt out to [J]'s default levels (100,000 people) and made smooth; seeded, by the lab's twin of a release. Prints the
figures of docs/mechanisms.md, how long a draw takes, how many tuples are proposed for one that is accepted, and how much wider intervals are (docs/report.md).
"""

from contextlib import contextmanager
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from random import Random
from time import perf_counter

import duckdb
import matplotlib
import numpy as np

import accord
from accord import ordered
from accord.lab import specs
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import summarise
from accord.mechanisms import named, rank
from accord.noise import SECURE

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PEOPLE, RUNS, COUNTS = 100_000, 20, (2, 3, 5, 9, 14, 19)
FEWER, NINE = 20_000, (9,)
BOUNDS = (0, 200_000)


@contextmanager
def split(is_split):
    most = rank.MOST_ENTRIES
    rank.MOST_ENTRIES = 0 if is_split else most
    yield
    rank.MOST_ENTRIES = most


def errors(people, counts):
    """{kind: errors}, measured and predicted, of so many people and quantiles."""
    rng = np.random.default_rng(7)
    path = str(files("accord.data") / "people.parquet")
    incomes = duckdb.connect().execute("SELECT income FROM read_parquet($1)", [path]).fetchnumpy()["income"]
    group = rng.random(people)
    level = np.where(group < 0.54, rng.uniform(0.01, 0.2, people), rng.uniform(0.2, 1, people))
    spec = accord.Spec.of(np.where(group < 0.91, level, 1.0).round(2))
    values = rng.choice(incomes, people) + rng.uniform(-500, 500, people)
    cells = np.clip(np.rint(values / BOUNDS[1] * 2**16), 0, 2**16).astype(np.int64)
    at = np.bincount(cells, minlength=2**16 + 1) / people
    below, above = np.cumsum(at) - at, 1 - np.cumsum(at)
    measured, predicted = {"split": [], "together": []}, {"split": [], "together": []}
    for count in counts:
        ps = [round(k / (count + 1), 3) for k in range(1, count + 1)]
        asked = accord.quantile("x", ps, BOUNDS, missing="none")
        for kind in measured:
            with split(kind == "split"):
                plan = accord.plan(spec, asked, "rank")
            assert plan.draws_together == (kind == "together"), (count, kind)
            method, summary, off = named("rank").method(plan.target), summarise(plan, cells), 0.0
            for _ in range(RUNS):
                drawn = method.answer(summary, plan.calibration, plan.target, Seeded(rng))
                for cell, p in zip(sorted(map(int, drawn)), map(float, plan.target.ps), strict=True):
                    off += (100 * max(0.0, below[cell] - p, above[cell] - (1 - p))) ** 2
            measured[kind].append(float(np.sqrt(off / RUNS / count)))
            predicted[kind].append(plan.rmse_here)
        start = perf_counter()
        method.answer(summary, plan.calibration, plan.target, SECURE)
        seconds, (one, other) = perf_counter() - start, (measured[kind][-1] for kind in measured)
        of_split, of_tuple = (predicted[kind][-1] for kind in predicted)
        print(
            f"{people:,} people, {count} quantiles: split {one:.3f} (predicted {of_split:.3f}), "
            f"together {other:.3f} ({of_tuple:.3f}), {one / other:.2f} times less; {seconds:.2f} s",
            flush=True,
        )
    return measured, predicted


class Integers:
    """Uniform integers, seeded."""

    def __init__(self, seed):
        self.random = Random(seed)

    def randbelow(self, exclusive_upper_bound):
        return self.random.randrange(exclusive_upper_bound)

    def randbits(self, k):
        return self.random.getrandbits(k)


def tries(count, draws=200):
    """How many tuples are proposed for one that is accepted, of 20,000 people as above on 65,537 points."""
    rng = np.random.default_rng(7)
    cells = np.clip(np.rint(rng.normal(0.5, 0.1, FEWER) * 2**16), 0, 2**16).astype(np.int64)
    group = rng.random(FEWER)
    level = np.where(group < 0.54, rng.uniform(0.01, 0.2, FEWER), rng.uniform(0.2, 1, FEWER))
    level = np.where(group < 0.91, level, 1.0).round(2)
    weights = np.bincount(cells, np.rint(level * 10**6), 2**16 + 1).astype(np.int64)
    ps = tuple(Fraction(k, count + 1) for k in range(1, count + 1))
    parts = -(-count * int(weights.sum()) // (2 * 10**6))
    proposal = ordered.propose(ordered.OrderedLaw(weights, ps, Fraction(4 * 10**6), parts))
    source, proposed, accepted = Integers(count), 0, 0
    while accepted < draws:
        proposed += 1
        accepted += ordered.coin(proposal, *ordered.proposed(proposal, source), source)
    return proposed / draws


def wider(people, count):
    """How many times as wide as those of a split the 95 % intervals of a tuple are; None: the plan takes the split."""
    spec = specs.jorgensen(people).spec(seed=1)
    ps = [round(k / (count + 1), 3) for k in range(1, count + 1)]
    asked, widths = accord.quantile("x", ps, BOUNDS, missing="none"), []
    for is_split in (True, False):
        with split(is_split):
            plan = accord.plan(spec, asked, "rank")
        low, high = plan.prediction.error_model.interval(None, [], 0.95, 1.0)[count // 2]
        widths.append(high - low)
    return widths[1] / widths[0] if plan.draws_together else None


def main() -> None:
    for people in (1_000, 5_000, 20_000, 100_000, 1_000_000):
        each = {count: wider(people, count) for count in COUNTS}
        told = ", ".join(f"{count}: {times:.2f}" for count, times in each.items() if times)
        print(f"{people:,} people, intervals together / split by number of quantiles: {told}")
    for count in (1, *COUNTS):
        print(f"{count} quantiles: {tries(count):.1f} tuples proposed for one accepted")
    errors(FEWER, NINE)
    measured, predicted = errors(PEOPLE, COUNTS)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for kind, colour in (("split", "#D55E00"), ("together", "#0072B2")):
        axes.plot(COUNTS, measured[kind], "o", color=colour, label=f"{kind}, measured")
        axes.plot(COUNTS, predicted[kind], "-", color=colour, label=f"{kind}, predicted")
    axes.set(xlabel="number of quantiles", ylabel="error of each, percentile points", ylim=(0, None))
    axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("joint.png"), dpi=130)


if __name__ == "__main__":
    main()
