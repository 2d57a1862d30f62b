"""Parts of simulated people: those who meet a condition on their value, or those of several groups.

A population has one column. So `where=` is about that column, and `by=` about another one, which does not go
with it: everyone is in one of the groups, with the same chance for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord.errors import QueryError
from accord.lab.simulation.populations import Population
from accord.lab.simulation.values import literals, meets, probability
from accord.statistics import Grouped, Query, where
from accord.theory import FloatArray


@dataclass(frozen=True)
class Parts:
    """Whom a question is about: one part, or several groups."""

    condition: where.Condition | None
    groups: int
    """0: it is about one part, without groups."""

    def members(self, values: FloatArray, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Who is in each group, by run, group and person."""
        inside = (
            np.ones(values.shape, dtype=bool) if self.condition is None else meets(self.condition, values)
        )
        if not self.groups:
            return inside[:, None, :]
        group = rng.integers(0, self.groups, values.shape)
        return np.asarray(inside[:, None, :] & (group[:, None, :] == np.arange(self.groups)[:, None]))

    def among(self, population: Population) -> tuple[Population, float]:
        """The values of those in a part, and which share of all people it has."""
        if self.condition is None:
            return population, 1 / max(1, self.groups)
        share = probability(self.condition, population)
        if share <= 0:
            raise QueryError(
                f"nobody of {population.name} meets the condition. Give one that somebody meets."
            )
        return _restricted(population, self.condition, share), share / max(1, self.groups)


def parts_of(query: Query) -> Parts | None:
    """Whom a question is about; None: everyone.

    Raises:
        QueryError: people with one number each do not tell.
    """
    if not isinstance(query, Grouped):
        return None
    part, column = query.part, next(iter(query.query.columns), None)
    if part.public:
        raise QueryError("simulations are about private groups. Leave membership='public' out.")
    if part.largest is not None:
        raise QueryError(
            "simulations are about all groups, and not about the largest. Ask accord.count(by=…, keys=…)."
        )
    named = {*where.columns(part.condition)} if part.condition is not None else set()
    if len(named | ({column} if column else set())) > 1:
        raise QueryError(
            f"a population has one column, and the condition names {', '.join(sorted(named))}. Name one."
        )
    for by in part.by:
        if by in named | {column}:
            raise QueryError(
                f"by={by!r} is the column of the values. Name another one: everyone is in one of its groups."
            )
    return Parts(part.condition, len(part.groups))


def _restricted(population: Population, condition: where.Condition, share: float) -> Population:
    """Those who meet a condition; between two neighboring literals it is always or never met."""
    at = np.array(sorted({*literals(condition)}))
    if not at.size:
        return population
    before, upto = population.below(np.nextafter(at, -np.inf)), population.below(at)
    between = np.concatenate(([np.nextafter(at[0], -np.inf)], np.nextafter(at, np.inf)))
    starts, ends = np.concatenate(([0.0], upto)), np.concatenate((before, [1.0]))

    def below(x: Any) -> FloatArray:
        f = np.asarray(population.below(x), dtype=np.float64)[..., None]
        gaps = np.clip(np.minimum(f, ends) - starts, 0, None) @ meets(condition, between)
        points = (np.asarray(x)[..., None] >= at) @ ((upto - before) * meets(condition, at))
        return np.asarray((gaps + points) / share, dtype=np.float64)

    def draw(rng: np.random.Generator, shape: Any) -> FloatArray:
        raise TypeError("people are drawn from everyone, and then some of them meet the condition")

    return Population(f"{population.name}, those who meet the condition", draw, below)
