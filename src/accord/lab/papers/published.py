"""What the papers' own simulations do where accord does not: for redrawing their figures, and nothing else.

`sampled_mean`    [C] and [F] divide by the number of people who were kept, which is private: with ε = 0.1,
                  t = 1 and one other person, 0.132 is lost where 0.1 was promised.
`mixing_weights`  [F] takes noise for a sensitivity of r = max(|a|, |b|), although replacing a value moves a
                  sum by b − a: on [−r, r] everyone loses twice their level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.relation import ADD_REMOVE
from accord.theory import FloatArray

DIVIDES = (
    "SM divides by the number of people kept, as the paper does; "
    "that number is private, and more than ε is lost."
)
HALF = (
    "Noise is for a sensitivity of r, as the paper has it; "
    "replacing a value moves a sum by 2r, so that everyone loses up to 2ε."
)


def keep_probabilities(levels: FloatArray, t: float) -> FloatArray:
    """π of [J] Definition 9, for each level in ε."""
    return ADD_REMOVE.keep_probability(np.minimum(levels, t), t)


def sampled_mean(
    sums: FloatArray, kept: NDArray[Any], t: float, reach: float, rng: np.random.Generator
) -> FloatArray:
    """The mean of those who were kept: (Σ + Lap(reach/t))/kept, or 0, the middle, if nobody was."""
    noisy = sums + rng.laplace(0.0, reach / t, np.shape(sums))
    return np.asarray(np.where(kept > 0, noisy / np.maximum(kept, 1), 0.0), dtype=np.float64)


def mixing_weights(people: Sequence[float], levels: Sequence[float], std: float, r: float) -> FloatArray:
    """β of [F] §2: inverse to the variance of each group's own mean."""
    n, epsilon = np.asarray(people, dtype=np.float64), np.asarray(levels, dtype=np.float64)
    inverse = n**2 / (n * std**2 + 2 * r**2 / epsilon**2)
    return np.asarray(inverse / inverse.sum(), dtype=np.float64)
