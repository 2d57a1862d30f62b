"""What was tried to beat `rank` for the median, and did not. Prints value RMSE relative to `rank` at [F]'s and [J]'s settings (docs/mechanisms.md).

Errors are computed from the probabilities of the exponential mechanism, averaged over random tables; only permute-and-flip is sampled.
"""

import numpy as np

from accord.theory import clip

TABLES, PEOPLE = 25, 1001
SETTINGS = {
    **{
        f"F {levels}, {share:.0%} private": (levels, share)
        for levels in ((0.1, 1.0), (0.01, 10.0))
        for share in (0.1, 0.5, 0.9)
    },
    "J, default levels": None,
}


def people(random, setting):
    """Points, levels and the values of the points."""
    if setting is None:
        group, level = random.random(PEOPLE), random.uniform(0.01, 0.2, PEOPLE)
        level = np.where(
            group < 0.54, level, np.where(group < 0.91, random.uniform(0.2, 1, PEOPLE), 1.0)
        ).round(2)
        return (
            np.clip(random.normal(500, 200, PEOPLE).round(), 1, 1000).astype(int) - 1,
            level,
            np.arange(1.0, 1001.0),
        )
    (private, liberal), share = setting
    grid = np.linspace(-5, 5, 2**16 + 1)
    points = np.clip((random.normal(size=PEOPLE) + 5) / 10 * 2**16, 0, 2**16).round().astype(int)
    return points, np.where(np.arange(PEOPLE) < share * PEOPLE, private, liberal), grid


def scores(points, charges, size):
    weight = np.bincount(points, weights=charges, minlength=size)
    up_to, half = np.cumsum(weight), weight.sum() / 2
    return -np.maximum(np.maximum(up_to - weight - half, half - up_to), 0)


def law(score):
    mass = np.exp((score - score.max()) / 2)
    return mass / mass.sum()


def two_rounds(points, charges, score, squares, part):
    """Part of the charge chooses one of 65 coarse cells, the rest a point near it."""
    step = max(1, (squares.size - 1) // 64)
    coarse = law(part * scores(np.minimum(points // step, 64), charges, 65))
    total = 0.0
    for k in np.flatnonzero(coarse > 1e-6):
        near = slice(max(0, (k - 2) * step), (k + 3) * step)
        total += coarse[k] * (law((1 - part) * score[near]) @ squares[near])
    return total


def main():
    random = np.random.default_rng(1)
    for name, setting in SETTINGS.items():
        found = {}
        for _ in range(TABLES):
            points, levels, values = people(random, setting)
            squares = (values - np.sort(values[points])[PEOPLE // 2]) ** 2
            tau = clip(*np.unique(levels, return_counts=True), 32.0)
            for factor in (0.5, 0.7, 1.0, 1.4, 2.0):
                error = law(scores(points, np.minimum(levels, factor * tau), values.size)) @ squares
                found.setdefault(f"clip at {factor:g}·τ", []).append(error)
            charges = np.minimum(levels, tau)
            score = scores(points, charges, values.size)
            for part in (0.15, 0.3):
                found.setdefault(f"two rounds, {part:.0%} first", []).append(
                    two_rounds(points, charges, score, squares, part)
                )
            if values.size <= 1000:  # permute-and-flip is a noisy maximum with exponential noise
                chosen = (score / 2 + random.exponential(size=(400, values.size))).argmax(axis=1)
                found.setdefault("permute-and-flip", []).append(squares[chosen].mean())
        rank = np.mean(found["clip at 1·τ"])
        print(
            f"{name:<28} rank {np.sqrt(rank):.4g}; relative to it:",
            {k: round(float(np.sqrt(np.mean(v) / rank)), 3) for k, v in found.items()},
        )


if __name__ == "__main__":
    main()
