"""Prints the figures of docs/private-levels.md: what it is worth to choose privately for how many people to plan.

A mean by `affine`, of the largest standard deviation, with levels 0.05 (54 %), 0.5 (37 %) and 1 (9 %). Errors are reckoned, not drawn: over the
law of the choice, and by the closed form of the error about the population, against that of who knows how many there are and spends nothing on it.
"""

import numpy as np

import accord
from accord.release.sizing import SIZES, choice

PARTS = {0.05: 0.54, 0.5: 0.37, 1.0: 0.09}
SHARE = 0.05


def error(people, tau, share):
    """The root of (Σc² + v/σ²)/(Σc)², with c = min(share·ε, τ)."""
    charges = np.minimum(np.array(list(PARTS)) * share, tau)
    return float(np.sqrt((people @ charges**2 + 8) / (people @ charges) ** 2))


def planned(people, share):
    """τ of a plan for so many."""
    spec = accord.Spec.from_groups(dict(zip(PARTS, people.tolist(), strict=True)))
    question = accord.mean("x", bounds=(0, 1))
    return max(accord.plan(spec, question, "affine", share, neighbors="private-levels").charges.values())


print("people   expected is off by   as it is   chosen for 5 %")
for total in (300, 3_000, 30_000):
    there = np.array([round(total * part) for part in PARTS.values()])
    best = error(there, planned(there, 1.0), 1.0)
    for off in (1 / 100, 1 / 10, 1 / 3, 1, 3, 10, 100):
        assumed = np.maximum(1, np.round(there * off)).astype(int)
        as_it_is = error(there, planned(assumed, 1.0), 1.0)
        offered = choice(
            accord.Spec.from_groups(dict(zip(PARTS, assumed.tolist(), strict=True))), None, SHARE, SIZES
        )
        scores = np.array([score / offered.scale for score in offered.scores(there.tolist())])
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        rest = [error(there, planned(spec.people, 1 - SHARE), 1 - SHARE) for spec in offered.specs]
        chosen = float(np.sqrt(chances @ np.array(rest) ** 2))
        print(f"{total:6,} {off:18.2f} {as_it_is / best:12.2f} {chosen / best:14.2f}")
