"""simulate: how well a mechanism does on people who are drawn again and again.

Seeded, for research; never for releases. Every run draws people from a population (values.py), summarises
them as a table would, and goes through the release's own seam `release.answer` with a seeded noise. Where
the answer is a weighted sum with noise, its twin (twin.py) does the same for all runs at once, with the
plan's own weights and scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord import budget, relation
from accord.budget import MICRO, IntArray, to_micro
from accord.errors import QueryError, SpecError
from accord.lab.simulation.accuracy import (
    errors_about_members,
    errors_about_people,
    errors_about_population,
    truth_of,
)
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.parts import parts_of
from accord.lab.simulation.populations import Population
from accord.lab.simulation.specs import Drawn
from accord.lab.simulation.twin import summarise, twin
from accord.lab.simulation.values import cells, draw_values
from accord.mechanisms import ALL
from accord.mechanisms.record import Mechanism
from accord.planning import Plan, plan, plan_within
from accord.release.answer import answer
from accord.spec import Spec
from accord.statistics import Codes, Grid, Grouped, Indicator, OneOf, Query
from accord.theory import FloatArray

BATCH = 2**22
_NOT_EVERYONE = (
    "the levels that were drawn are not one for each of the people, or some are 0: "
    "everyone needs a level of at least a millionth."
)


@dataclass(frozen=True, repr=False)
class Simulation:
    """What came out of many runs, and what the plan had said."""

    mechanism: str
    query: Query
    population: Population
    spec: Spec | Drawn
    runs: int
    seed: int
    correlation: float
    answers: NDArray[Any]
    """Of each run; of several quantiles, of histograms and of groups a row."""
    errors: FloatArray
    """About the population, in the unit of the query: percentile points for a quantile."""
    errors_here: FloatArray
    """About the very people of each run."""
    predicted: float
    """What plans say of `rmse`: the root mean square of all of them, where levels are drawn."""
    predicted_here: float
    bias_bound: float | None
    """κ, the largest of all plans."""

    @property
    def people(self) -> int:
        return self.spec.people if isinstance(self.spec, Drawn) else self.spec.total

    @property
    def rmse(self) -> float:
        return sqrt(float((self.errors**2).mean()))

    @property
    def rmse_here(self) -> float:
        return sqrt(float(np.nanmean(self.errors_here**2)))  # a group may be without people

    @property
    def bias(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of `rmse`."""
        if self.runs == 1 or not self.rmse:
            return 0.0
        squares = (self.errors**2).reshape(self.runs, -1).mean(axis=1)
        return float(squares.std(ddof=1)) / sqrt(self.runs) / (2 * self.rmse)

    def row(self) -> dict[str, Any]:
        """One row of a tidy table."""
        return {
            "mechanism": self.mechanism,
            "statistic": self.query.statistic,
            "population": self.population.name,
            "levels": self.spec.name if isinstance(self.spec, Drawn) else f"{len(self.spec.levels)} levels",
            "people": self.people,
            "correlation": self.correlation,
            "runs": self.runs,
            "rmse": self.rmse,
            "standard_error": self.standard_error,
            "predicted": self.predicted,
            "rmse_here": self.rmse_here,
            "predicted_here": self.predicted_here,
            "bias": self.bias,
            "bias_bound": self.bias_bound,
            "unit": self.query.unit,
        }

    def __repr__(self) -> str:
        rmse = f"rmse {self.rmse:.4g} ± {self.standard_error:.2g} ({self.query.unit})"
        measured = f"{rmse}, predicted {self.predicted:.4g}"
        return f"<Simulation: {self.query.label} by {self.mechanism}, {measured}>"


def simulate(
    mechanism: str | Mechanism,
    query: Query,
    spec: Spec | Drawn,
    population: Population,
    runs: int = 1000,
    seed: int = 0,
    *,
    correlation: float = 0.0,
    t: float | str | None = None,
    share: float = 1.0,
    neighbors: str = "replace",
    expected: Spec | None = None,
) -> Simulation:
    """Release about simulated people, `runs` times.

    Args:
        mechanism: a name, "auto", or one of your own (`accord.mechanism`).
        query: the question; the one column that it reads is what the population has. `where=` is about that
            column; `by=` about another, whose groups everyone is in with the same chance.
        spec: levels that stay, or levels that are drawn anew in every run (`lab.specs`).
        population: what values people have (`lab.populations`).
        runs: how many.
        seed: the same seed gives the same numbers.
        correlation: how much levels go with values, from −1 to 1: the correlation of the two's normal scores.
            0: not at all; 1: the largest values allow most. Of a question about everyone, those who opted out
            are the strictest.
        t, share, neighbors: as for `accord.plan`; under add-remove, everyone of the roster is there.
        expected: with private levels, for how many people of each level it is planned, whoever is there. Left
            out, for those who are. It implies `neighbors="private-levels"`.

    >>> import accord
    >>> from accord.lab import populations
    >>> query = accord.mean("x", bounds=(0, 1), missing="none")
    >>> spec = accord.Spec.from_groups({0.1: 700, 1: 300})
    >>> simulation = simulate("affine", query, spec, populations.uniform(), runs=400, seed=1)
    >>> simulation.rmse < simulation.predicted  # the plan takes the largest standard deviation
    True
    """
    _refuse_query(query)
    parts = parts_of(query)
    if not isinstance(spec, Spec | Drawn):
        raise SpecError(f"levels are a Spec or one of accord.lab.specs, not {type(spec).__name__}.")
    if not isinstance(population, Population):
        raise QueryError(f"a population is one of accord.lab.populations, not {type(population).__name__}.")
    if not _is_whole(runs) or runs < 1 or not _is_whole(seed) or seed < 0:
        raise QueryError(
            f"runs={runs!r}, seed={seed!r}: both are whole numbers, of at least one run and from 0 on."
        )
    if not isinstance(correlation, int | float | np.number) or not -1 <= correlation <= 1:
        raise QueryError(f"correlation={correlation!r} is not a number from −1 to 1.")
    rng, shuffling, grouping = (np.random.default_rng(x) for x in (seed, [seed, 1], [seed, 2]))
    plans = _Plans(spec, query, mechanism, t, share, neighbors, rng, expected)
    target = plans.first.target
    among, share_of_all = (population, 1.0) if parts is None else parts.among(population)
    truth = truth_of(target, among, plans.people * share_of_all)
    answers, errors, errors_here = [], [], []
    batch = max(1, min(runs, BATCH // plans.people))
    for start in range(0, runs, batch):
        size = min(batch, runs - start)
        values = draw_values(population, rng, (size, plans.people), correlation, shuffling)
        members = None if parts is None else parts.members(values, grouping)
        read = None if members is None else members[..., plans.unread :]
        released = _answers(plans, cells(query.encoding, values)[:, plans.unread :], read, rng)
        answers.append(released)
        errors.append(errors_about_population(target, released, truth, among))
        if members is None:
            errors_here.append(errors_about_people(target, released, values))
        else:
            errors_here.append(errors_about_members(target, released, values, members))
    used = plans.used
    return Simulation(
        mechanism if isinstance(mechanism, str) else mechanism.name,
        query,
        population,
        spec,
        runs,
        seed,
        correlation,
        np.concatenate(answers),
        np.concatenate(errors),
        np.concatenate(errors_here),
        sqrt(sum(p.rmse**2 for p in used) / len(used)),
        sqrt(sum(p.rmse_here**2 for p in used) / len(used)),
        max((p.bias_bound for p in used if p.bias_bound is not None), default=None),
    )


def _refuse_query(query: Any) -> None:
    """Refuse what people with one number each cannot answer."""
    if not isinstance(query, Query):
        raise QueryError(
            f"a simulation answers one query, not {type(query).__name__}. "
            "Make one with accord.mean or its siblings."
        )
    if query.needs_rows:
        raise QueryError(f"simulated people have one value each. Leave {query.needs_rows} out.")
    encoding = query.encoding
    if isinstance(encoding, Grid) and encoding.per_person == "rows":
        raise QueryError("simulated people have one value each. Leave rows out.")
    match encoding:
        case None | Codes():
            instead = " `accord reproduce J-fig3a` simulates regressions."
            raise QueryError(
                f"a {query.statistic} is about several columns, and a population has one."
                + (instead if query.statistic == "regression" else " Ask about one column.")
            )
        case OneOf(edges=()):
            raise QueryError("a simulated histogram needs edges=: populations have numbers, not categories.")
        case Grid(kind="date" | "timestamp"):
            raise QueryError("dates cannot be simulated: populations have numbers. Ask about numbers.")
        case Indicator():
            columns = query.query.columns if isinstance(query, Grouped) else query.columns
            if len(columns) > 1:
                raise QueryError(
                    f"a population has one column, and the condition names {', '.join(columns)}. Name one."
                )


def _is_whole(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def planned(
    spec: Spec,
    query: Query,
    mechanism: str | Mechanism,
    neighbors: str = "replace",
    t: int | str | None = None,
    share: int = MICRO,
) -> Plan:
    """The plan of one mechanism alone, which is faster than comparing all; t and share in millionths."""
    among = ALL if mechanism == "auto" else tuple(m for m in ALL if m.name == mechanism)  # none: one's own
    affordable, neighbor_relation = budget.share(spec.micro, share), relation.named(neighbors)
    return plan_within(spec, query, affordable, mechanism, t, share, neighbor_relation, among=among)


class _Plans:
    """One plan for levels that stay, or another in every run."""

    def __init__(
        self,
        spec: Spec | Drawn,
        query: Query,
        mechanism: str | Mechanism,
        t: float | str | None,
        share: float,
        neighbors: str,
        rng: np.random.Generator,
        expected: Spec | None = None,
    ) -> None:
        first = spec if isinstance(spec, Spec) else Spec.of(spec.draw(rng))
        if first.total != (spec.total if isinstance(spec, Spec) else spec.people):
            raise SpecError(_NOT_EVERYONE)
        if expected is not None:
            neighbors = relation.PRIVATE_LEVELS.name
            if not isinstance(expected, Spec):
                raise SpecError(f"expected= is a Spec, not {type(expected).__name__}.")
        # unlike `planned`, this also checks the arguments
        self.first = plan(expected or first, query, mechanism, share, t=t, neighbors=neighbors)
        self._is_private = not self.first.relation.levels_are_public
        self.there = self._by_level(first)
        """How many people there are of each level of the plan."""
        self.people = first.total if self._is_private else self.first.people
        """Whom it is about, the strictest first: also those who opted out, if it is about everyone."""
        self.unread = self.people - first.total
        self._spec, self._query, self._mechanism, self._rng = spec, query, mechanism, rng
        self._t = None if t is None else (t if isinstance(t, str) else int(to_micro(t)))
        self.used = [self.first] if isinstance(spec, Spec) or self._is_private else []

    @property
    def are_one(self) -> bool:
        return isinstance(self._spec, Spec)

    def _by_level(self, there: Spec) -> IntArray:
        """How many people there are of each level of the first plan."""
        menu = self.first.spec.micro
        if not np.isin(there.micro, menu).all():
            raise SpecError(
                "somebody has a level that is not expected, and would not be read. "
                "Expect one person at least of every level."
            )
        people = np.zeros(menu.size, dtype=np.int64)
        people[np.searchsorted(menu, there.micro)] = there.people
        return people

    def next(self) -> Plan:
        """The plan of the next run; with private levels it is the first, whoever is there."""
        if isinstance(self._spec, Spec):
            return self.first
        spec = Spec.of(self._spec.draw(self._rng))
        if spec.total != self.people - self.unread:
            raise SpecError(_NOT_EVERYONE)
        if self._is_private:
            self.there = self._by_level(spec)
            return self.first
        self.there = spec.people
        self.used.append(
            planned(spec, self._query, self._mechanism, self.first.neighbors, self._t, self.first.share)
        )
        return self.used[-1]


def _answers(
    plans: _Plans, everyone: IntArray, members: NDArray[np.bool_] | None, rng: np.random.Generator
) -> NDArray[Any]:
    """Of each run, from the cells of its people, and from who is in which group: a row of answers then."""
    if members is None and plans.are_one and (law := twin(plans.first)) is not None:
        return law.answers(plans.there, everyone, rng)
    noise, answers = Seeded(rng), []
    for run, row in enumerate(everyone):
        current = plans.next()
        law = twin(current) if members is None else None
        if law is not None:
            answers.append(law.answers(plans.there, row[None, :], rng)[0])
            continue
        groups = [None] if members is None else members[run]
        summaries = None
        if current.reads_data:
            summaries = [summarise(current, row, group, plans.there) for group in groups]
        answers.append(_numbers(answer(current, summaries, noise)[0]))
    return np.array(answers)


def _numbers(value: Any) -> Any:
    """An answer as numbers: a histogram's cells, and the answer about each group."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_numbers(row["value"]) for row in value]
    return value
