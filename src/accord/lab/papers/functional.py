"""Linear regression by the functional mechanism of Zhang et al. 2012, as [J] V-B ran it.

From sums of products, many regressions at once. The objective Σ(y − xᵀω)² = ωᵀGω − 2rᵀω + Σy² has the
coefficients G = Σx·xᵀ and −2r, r = Σy·x, of people in [−1, 1]^(d+1), d columns with the intercept. Laplace
noise is added to them, and the noisy objective is minimised. What its authors' program, which [J] modified,
does and the paper leaves open:

    sensitivity  2d² + 4d: all d² products and the d numbers −2y·x_j each move by at most twice their
                 largest size
    noise        Lap(sensitivity/ε) on each of the d × d coefficients, which are then averaged with their
                 transpose, and on −2r
    ridge        four standard deviations of that noise on the diagonal (the paper's number)
    eigenvalues  that are not positive are left out, with their directions

The paper itself can be read with more noise: with `mirrored=True` each coefficient of the upper triangle gets
one noise, which its mirror image shares, and r (not 2r) gets the other; nothing else changes. What is
released then has a sensitivity of d(d + 3)/2 only (statistics/moments.py), which [J] does not use.

Wherever an eigenvalue happens to lie just above 0, the coefficients are huge, and nothing guards against it.
As its density there is positive, the error has no finite mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.theory import FloatArray

RIDGE = 4.0
_LEAST = 1e-8
"""An eigenvalue of sums over people that counts as positive."""


@dataclass(frozen=True)
class Moments:
    """G, r and Σy², of one set of people or of many (in the leading dimensions)."""

    xx: FloatArray
    yx: FloatArray
    yy: FloatArray

    @property
    def d(self) -> int:
        return int(self.yx.shape[-1])


def products(x: FloatArray, y: FloatArray) -> NDArray[np.float32]:
    """One row for each person: x_j·x_k (j ≤ k), y·x_j and y².

    Codes in steps of 1/512 have products that a float32 holds exactly.
    """
    rows, columns = np.triu_indices(x.shape[1])
    return np.hstack(
        [x[:, rows] * x[:, columns], y[:, None] * x, y[:, None] ** 2], dtype=np.float32, casting="same_kind"
    )


def moments(sums: FloatArray, d: int) -> Moments:
    """From sums of `products`, in the last dimension."""
    rows, columns = np.triu_indices(d)
    full = np.empty((*sums.shape[:-1], d, d))
    full[..., rows, columns] = full[..., columns, rows] = sums[..., : rows.size]
    return Moments(full, sums[..., rows.size : rows.size + d], sums[..., -1])


def sensitivity(d: int) -> float:
    return 2.0 * d * d + 4.0 * d


def fit(
    of: Moments,
    epsilon: ArrayLike,
    rng: np.random.Generator,
    mirrored: bool = False,
    ridge: float = RIDGE,
) -> FloatArray:
    """ω of each set of people, at an ε of its own."""
    d = of.d
    scale = np.broadcast_to(sensitivity(d) / np.asarray(epsilon, dtype=np.float64), of.yx.shape[:-1])
    scale = scale[..., None]
    square, linear = rng.laplace(size=of.xx.shape), rng.laplace(size=of.yx.shape)
    if mirrored:
        square = np.triu(square) + np.swapaxes(np.triu(square, 1), -1, -2)
    else:
        square, linear = (square + np.swapaxes(square, -1, -2)) / 2, linear / 2
    diagonal = ridge * np.sqrt(2) * np.eye(d)
    return minimise(of.xx + scale[..., None] * (square + diagonal), of.yx + scale * linear)


def least_squares(of: Moments) -> FloatArray:
    return minimise(of.xx, of.yx)


def held_out(omega: FloatArray, of: Moments) -> FloatArray:
    """Σ(y − xᵀω)² over the people of `of`, without looking at them one by one."""
    linear = np.einsum("...i,...i->...", omega, of.yx)
    quadratic = np.einsum("...i,...ij,...j->...", omega, of.xx, omega)
    return np.asarray(of.yy - 2 * linear + quadratic, dtype=np.float64)


def minimise(xx: FloatArray, yx: FloatArray) -> FloatArray:
    """Where ωᵀ·xx·ω − 2·yxᵀω is least, among the directions in which it has a least value."""
    values, vectors = np.linalg.eigh(xx)
    along = np.einsum("...ij,...i->...j", vectors, yx)
    along = np.where(values > _LEAST, along / np.where(values > _LEAST, values, 1.0), 0.0)
    return np.asarray(np.einsum("...ij,...j->...i", vectors, along), dtype=np.float64)
