"""Mix: a Laplace mean for each level, combined. [F] §2; LDPE of [C] IV-A.

Neighbors  replace.
Releases   for each level j, S_j + Z_j with S_j the sum over the people of that level and Z_j discrete Laplace of scale
           span·reach/ε_j; then Σ_j β_j·(S_j + Z_j)/n_j, which is post-processing. A public level has no noise.
Guarantee  person i of level j loses exactly ε_j: they are in S_j alone, which they move by at most span·reach.
Error      with V_j = σ²/n_j + v/(n_j·ε_j)²: the weights β_j ∝ 1/V_j give 1/Σ(1/V_j) about the population.
Deviates   [F] writes the noise for values in [−r, r] as r/ε_j although n is public; under replace the sensitivity is the whole
           width, and r would lose 2ε_j. Here it is the width.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from accord.mechanisms.additive import ADDITIVE
from accord.mechanisms.record import Calibration, Mechanism, Task
from accord.noise import Noise
from accord.query import Additive
from accord.spec import MICRO, PUBLIC
from accord.summary import Summary
from accord.theory import as_floats


def _calibrate(task: Task) -> Calibration:
    n, levels = task.people.astype(np.float64), as_floats(task.levels)
    noise = task.query.blur / (n * levels) ** 2
    beta = 1 / (task.query.variance / n + noise)
    beta /= beta.sum()
    return Calibration(
        task.levels, beta / n, float(beta**2 @ noise), f"{n.size} separate answers, combined", several=True
    )


def _answer(summary: Summary, calibration: Calibration, query: Additive, noise: Noise) -> list[Fraction]:
    weights = [Fraction(w) for w in calibration.weights.tolist()]
    whole = sum(w * n for w, n in zip(weights, summary.people.tolist(), strict=True))
    sums: list[Fraction] = [Fraction(0)] * query.outputs
    for level, weight, people, row in zip(
        calibration.charges.tolist(), weights, summary.people.tolist(), summary.rows(), strict=True
    ):
        if not weight:
            continue
        row = list(row)
        for k in range(1 if query.complement else query.outputs):
            row[k] += 0 if level == PUBLIC else noise.laplace(Fraction(MICRO * query.span * query.reach, level))
        if query.complement:
            row[1] = people - row[0]
        sums = [s + weight * x for s, x in zip(sums, row, strict=True)]
    return [s / whole for s in sums]


MECHANISMS = (
    Mechanism(
        "mix", "[F] §2; [C] LDPE", "everyone loses their whole level", ("replace",), ADDITIVE, _calibrate, _answer
    ),
)
