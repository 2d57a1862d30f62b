"""The exact law of quantiles that are drawn together, a second time, and what people lose by it.

Over all tuples of parts, by products of matrices: of every two points, the parts of one against the other's.
"""

from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from math import log

import numpy as np

from accord.budget import MICRO, PUBLIC
from accord.people.summary import Summary


def log_law(weights, ps, scale, parts, times=None):
    """{points: log probability} of every tuple of points."""
    w = np.array([int(x) for x in weights], dtype=float)
    f = (np.cumsum(w) - w)[:, None] + w[:, None] * (2 * np.arange(parts) + 1) / (2 * parts)
    total, t = w.sum(), np.ones(w.size) if times is None else np.asarray(times, dtype=float)
    ends = (0.0, *map(float, ps), 1.0)
    aims = [(b - a) * total for a, b in pairwise(ends)]

    @cache
    def step(j, a, b):
        """From the j-th in point a to the next in point b, for all their parts; in order."""
        of_all = np.exp(-np.abs(f[b][None, :] - f[a][:, None] - aims[j]) / float(scale))
        return np.triu(of_all) if a == b else of_all

    @cache
    def begun(points):
        """The sum over parts of these points, by the part of the last."""
        *before, last = points
        if not before:
            return t[last] * np.exp(-np.abs(f[last] - aims[0]) / float(scale))
        return t[last] * (begun(tuple(before)) @ step(len(before), before[-1], last))

    sums = {}
    for points in combinations_with_replacement(range(w.size), len(ps)):
        end = np.exp(-np.abs(total - f[points[-1]] - aims[-1]) / float(scale))
        sums[points] = float(begun(points) @ end)
    everything = log(sum(sums.values()))
    return {points: log(x) - everything for points, x in sums.items()}


class Drawn:
    """Remembers the law that a tuple is drawn by, and the scale of the noise on the size."""

    def __init__(self, noise=1):
        self.noise, self.laws, self.scales = noise, [], []

    def ordered(self, weights, ps, scale, parts, times=None):
        self.laws.append(log_law(weights, ps, scale * self.noise, parts, times))
        return [0] * len(ps)

    def laplace(self, scale):
        self.scales.append(scale)
        return 0


def summary_of(plan, table):
    """Of people at these points, in the order of the Spec's levels; None: not there."""
    level_of = np.repeat(np.arange(plan.spec.micro.size), plan.spec.people)
    there = [i for i, x in enumerate(table) if x is not None]
    points = np.array([table[i] for i in there], dtype=np.int64)
    ones = np.ones(len(there), dtype=np.int64)
    return Summary(plan.spec.people, plan.target.points, level_of[there], points, ones)


def largest_losses(plan, noise=1):
    """Of each person of a plan, on all tables of its points; who may come and go may be missing.

    A size that is released lies in no way beyond what is planned, so that the tuple is drawn as planned. The
    loss of several draws is the sum of theirs.
    """
    target, people = plan.target, plan.spec.total
    charges = np.repeat(plan.calibration.charges, plan.spec.people).tolist()
    assert plan.draws_together and PUBLIC not in charges

    @cache
    def law(table):
        drawn = Drawn(noise)
        released = plan.method.answer(summary_of(plan, table), plan.calibration, target, drawn)
        (of_points,) = drawn.laws
        assert len(drawn.scales) == len(released) - target.outputs == target.tells_size
        return of_points, released[-1], (drawn.scales or [None])[0]

    def lost(one, other):
        (here, size, scale), (there, size_there, same) = law(one), law(other)
        assert scale == same and here.keys() == there.keys()
        of_size = 0.0 if scale is None else float(abs(size - size_there) * MICRO / scale)
        return max(abs(here[points] - there[points]) for points in here) + of_size

    values = [*range(target.points), *([None] if target.tells_size else [])]
    comes_and_goes = not target.relation.people_are_public
    worst = [0.0] * people
    for table in product(values, repeat=people):
        for person, value in product(range(people), values):
            if value == table[person] or (comes_and_goes and value is not None):
                continue
            other = (*table[:person], value, *table[person + 1 :])
            worst[person] = max(worst[person], lost(table, other))
    return worst


def charges_of(plan):
    return [charge / MICRO for charge in np.repeat(plan.calibration.charges, plan.spec.people).tolist()]
