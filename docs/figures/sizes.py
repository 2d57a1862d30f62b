"""Draws sizes.png and prints the figures of docs/private-levels.md: what it is worth to choose privately for how many people to plan.

A mean by `affine`, of the largest standard deviation, with levels 0.05 (54 %), 0.5 (37 %) and 1 (9 %). Errors are reckoned, not drawn: over the
law of the choice, and by the closed form of the error about the population, against that of who knows how many there are and spends nothing on it.
On the right, what three means cost each level: a public function of the level, which is all that a ledger keeps.
"""

from pathlib import Path

import matplotlib
import numpy as np

import accord
from accord.release.sizing import SIZES, choice

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PARTS = {0.05: 0.54, 0.5: 0.37, 1.0: 0.09}
SHARE, TOTALS = 0.05, (300, 3_000, 30_000)


def error(people, tau, share):
    """The root of (Σc² + v/σ²)/(Σc)², with c = min(share·ε, τ)."""
    charges = np.minimum(np.array(list(PARTS)) * share, tau)
    return float(np.sqrt((people @ charges**2 + 8) / (people @ charges) ** 2))


def planned(people, share):
    """τ of a plan for so many."""
    spec = accord.Spec.from_groups(dict(zip(PARTS, people.tolist(), strict=True)))
    question = accord.mean("x", bounds=(0, 1))
    return max(accord.plan(spec, question, "affine", share, neighbors="private-levels").charges.values())


def compared(total, off):
    """The error as it is, and with a size that is chosen, both against that of who knows."""
    there = np.array([round(total * part) for part in PARTS.values()])
    best = error(there, planned(there, 1.0), 1.0)
    assumed = np.maximum(1, np.round(there * off)).astype(int)
    as_it_is = error(there, planned(assumed, 1.0), 1.0)
    offered = choice(
        accord.Spec.from_groups(dict(zip(PARTS, assumed.tolist(), strict=True))), None, SHARE, SIZES
    )
    scores = np.array([score / offered.scale for score in offered.scores(there.tolist())])
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    rest = [error(there, planned(spec.people, 1 - SHARE), 1 - SHARE) for spec in offered.specs]
    return as_it_is / best, float(np.sqrt(chances @ np.array(rest) ** 2)) / best


def spent(levels, expected, shares):
    """What each level has spent after means at these shares: one row a release."""
    question = accord.mean("x", bounds=(0, 1))
    plans = [accord.plan(expected, question, "affine", share, neighbors="private-levels") for share in shares]
    each = [[plan.charges[level] for level in levels] for plan in plans]
    return np.cumsum(each, axis=0)


def main():
    print("people   expected is off by   as it is   chosen for 5 %")
    for total in TOTALS:
        for off in (1 / 100, 1 / 10, 1 / 3, 1, 3, 10, 100):
            as_it_is, chosen = compared(total, off)
            print(f"{total:6,} {off:18.2f} {as_it_is:12.2f} {chosen:14.2f}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    factors = np.geomspace(1 / 100, 100, 33)
    for total, colour in zip(TOTALS, ("#D55E00", "#E69F00", "#0072B2"), strict=True):
        as_it_is, chosen = zip(*(compared(total, off) for off in factors), strict=True)
        left.plot(factors, as_it_is, "-", color=colour, label=f"{total:,} people, as it is")
        left.plot(factors, chosen, "--", color=colour, label="chosen for 5 %")
    left.set(xscale="log", xlabel="expected / there", ylabel="error of a mean, against who knows")
    levels = [round(level, 2) for level in np.arange(0.05, 2.01, 0.05)]
    expected = accord.Spec.from_groups(dict.fromkeys(levels, 25))
    rows = spent(levels, expected, (0.4, 0.4, 0.2))
    for k, row in enumerate(rows, 1):
        right.plot(levels, row, color="#0072B2", alpha=k / len(rows), label=f"after {k} of 3 means")
    right.plot(levels, levels, ":", color="black", lw=0.8, label="all of the level")
    print(f"level {levels[0]:g} has spent {rows[-1][0]:.4f}, level {levels[-1]:g} {rows[-1][-1]:.4f}")
    right.set(xlabel="level ε", ylabel="spent(ε)", ylim=(0, 1.5))
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("sizes.png"), dpi=130)


if __name__ == "__main__":
    main()
