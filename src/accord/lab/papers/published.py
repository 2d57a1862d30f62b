"""What the papers' own simulations do where it is not private, or not what accord does. For redrawing their
figures, and for nothing else.

`sampled_mean`  [C] and [F] divide by the number of people who were kept, which is private: with ε = 0.1, t =
                1 and one other person, 0.132 is lost where 0.1 was promised.
`mixed`         [F] takes noise for a sensitivity of r = max(|a|, |b|), although replacing a value moves a sum
                by b − a: on [−r, r] everyone loses twice their level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DIVIDES = (
    "SM divides by the number of people kept, as the paper does; that number is private, and more than ε is "
    "lost."
)
HALF = (
    "Noise is for a sensitivity of r, as the paper has it; replacing a value moves a sum by 2r, so that "
    "everyone loses up to 2ε."
)


def keep_probabilities(levels: FloatArray, t: float) -> FloatArray:
    """π of [J] Definition 9."""
    return np.asarray(
        np.where(levels < t, np.expm1(np.minimum(levels, t)) / np.expm1(t), 1.0), dtype=np.float64
    )


def sampled_mean(
    sums: FloatArray, kept: NDArray[Any], t: float, reach: float, rng: np.random.Generator
) -> FloatArray:
    """The mean of those who were kept, with noise for that many people:

    (Σ + Lap(reach/t))/kept; 0, the middle, if nobody was.
    """
    noisy = sums + rng.laplace(0.0, reach / t, np.shape(sums))
    return np.asarray(np.where(kept > 0, noisy / np.maximum(kept, 1), 0.0), dtype=np.float64)


def mixing_weights(people: Sequence[float], levels: Sequence[float], std: float, r: float) -> FloatArray:
    """β of [F] §2: inverse to the variance of each group's own mean."""
    n, epsilon = np.asarray(people, dtype=np.float64), np.asarray(levels, dtype=np.float64)
    inverse = n**2 / (n * std**2 + 2 * r**2 / epsilon**2)
    return np.asarray(inverse / inverse.sum(), dtype=np.float64)
