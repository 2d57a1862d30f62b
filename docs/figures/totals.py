"""Prints the figures of docs/private-levels.md: a sum by `minimum`, and a count times a mean, which nobody can plan.

Incomes that are log-normal, cut at 200,000, with levels 0.1 (three in ten) and 1, private; all of the level is spent. Every error is the root
of the mean square of 400 releases, as a part of the error of `minimum`, which is the same for all means.
"""

import warnings

import numpy as np

import accord

HIGH, RUNS = 200_000, 400
warnings.simplefilter("ignore")
print("people   mean/bound   sum by minimum   count × mean   predicted if the mean is at the bound")
for size in (100, 1_000, 10_000):
    for median in (20_000, 60_000, 190_000):
        rng = np.random.default_rng(3)
        x = np.minimum(rng.lognormal(np.log(median), 0.5, size), HIGH)
        levels = np.where(np.arange(size) % 10 < 3, 0.1, 1.0)
        expected = accord.Spec.of(levels)
        people = accord.table({"x": x, "e": levels}, epsilon="e", levels="private", expected=expected)
        bounds = {"bounds": (0, HIGH), "missing": "none"}
        total = people.plan(accord.sum("x", **bounds))
        count = people.plan(accord.count(), share=0.5)
        mean = people.plan(accord.mean("x", **bounds), share=0.5)
        product = [people.release(count).value * people.release(mean).value for _ in range(RUNS)]
        least = 2**0.5 * HIGH / 0.1
        measured = np.sqrt(np.mean([(people.release(total).value - x.sum()) ** 2 for _ in range(RUNS)]))
        other = np.sqrt(np.mean((np.array(product) - x.sum()) ** 2))
        worst = np.hypot(HIGH * count.rmse_here, size * mean.rmse_here) / least
        print(
            f"{size:6,} {x.mean() / HIGH:12.2f} {measured / least:14.2f} {other / least:14.2f} {worst:18.2f}"
        )
