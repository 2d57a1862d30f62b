"""simulate: how well a mechanism does on people who are drawn again and again. Seeded, for research; never for releases.

Every run draws people from a population, summarises them as a table would, and goes through the release's own seam `release._draw` with a seeded noise. Means, sums and
counts of weighted sums have a twin that does the same for all runs at once: the plan's own weights, times the sums, plus Laplace noise of the plan's own scales
(tests hold it against the seam).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accord import budget
from accord.budget import MICRO, PUBLIC, IntArray, to_micro, total_of
from accord.errors import QueryError, SpecError
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.populations import Population
from accord.lab.simulation.specs import Drawn
from accord.mechanisms import ALL
from accord.people.summary import Summary
from accord.planning import NO_DATA, Plan, plan, plan_within
from accord.release import _draw
from accord.spec import Spec
from accord.statistics import (
    Additive,
    Algorithm,
    Count,
    Grouped,
    Histogram,
    Max,
    Mean,
    Min,
    OnGrid,
    Order,
    Quantile,
    Query,
    Regression,
    Rows,
    Sum,
    where,
)

FloatArray = NDArray[np.float64]
_BATCH = 2**22
_NOBODY = "the levels that were drawn are not one for each of the people, or some are 0: everyone needs a level of at least a millionth."
_COARSE = 64
"""Where a noise is of so few steps, that they are steps shows."""
_WEIGHTED = ("minimum", "threshold", "proportional", "affine", "fallah")


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
    """Of each run; of several quantiles and of histograms a row."""
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
        return sqrt(float((self.errors_here**2).mean()))

    @property
    def bias(self) -> float:
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of `rmse`."""
        squares = (self.errors**2).reshape(self.runs, -1).mean(axis=1)
        return float(squares.std(ddof=1)) / sqrt(self.runs) / (2 * self.rmse) if self.runs > 1 and self.rmse else 0.0

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
        return f"<Simulation: {self.query.label} by {self.mechanism}, rmse {self.rmse:.4g} ± {self.standard_error:.2g} (predicted {self.predicted:.4g})>"


def simulate(
    mechanism: str,
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
) -> Simulation:
    """Release about simulated people, `runs` times.

    Args:
        mechanism: a name, or "auto".
        query: the question; the one column that it reads is what the population has.
        spec: levels that stay, or levels that are drawn anew in every run (`lab.specs`).
        population: what values people have (`lab.populations`).
        runs: how many.
        seed: the same seed gives the same numbers.
        correlation: how much levels go with values, from −1 to 1: the correlation of the two's normal scores. 0: not at all; 1: the largest values allow most.
        t, share, neighbors: as for `accord.plan`; under add-remove, everyone of the roster is there.

    >>> import accord
    >>> from accord.lab import populations
    >>> made = simulate("affine", accord.mean("x", bounds=(0, 1)), accord.Spec.from_groups({0.1: 700, 1: 300}), populations.uniform(), runs=400, seed=1)
    >>> made.rmse < made.predicted        # the plan knows no standard deviation, so it takes the largest
    True
    """
    if not isinstance(query, Query):
        raise QueryError(
            f"a simulation answers one query, not {type(query).__name__}. Make one with accord.mean or its siblings."
        )
    if isinstance(query, Grouped | Rows):
        raise QueryError("simulations are about everyone, with one value each. Leave where=, by= and rows out.")
    if isinstance(query, Regression | Algorithm):
        raise QueryError(
            f"a {query.statistic} is about several columns, and a population has one. `accord reproduce J-fig3a` simulates regressions."
        )
    if isinstance(query, Histogram) and not query.edges:
        raise QueryError("a simulated histogram needs edges=: populations have numbers, not categories.")
    if isinstance(query, OnGrid) and query.kind != "number":
        raise QueryError("dates cannot be simulated: populations have numbers. Ask about numbers.")
    if isinstance(query, Count) and len(query.columns) > 1:
        raise QueryError(f"a population has one column, and the condition names {', '.join(query.columns)}. Name one.")
    if not isinstance(spec, Spec | Drawn):
        raise SpecError(f"levels are a Spec or one of accord.lab.specs, not {type(spec).__name__}.")
    if not isinstance(population, Population):
        raise QueryError(f"a population is one of accord.lab.populations, not {type(population).__name__}.")
    if not _is_whole(runs) or runs < 1 or not _is_whole(seed) or seed < 0:
        raise QueryError(f"runs={runs!r}, seed={seed!r}: both are whole numbers, of at least one run and from 0 on.")
    if not isinstance(correlation, int | float | np.number) or not -1 <= correlation <= 1:
        raise QueryError(f"correlation={correlation!r} is not a number from −1 to 1.")
    rng, shuffling = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    plans = _Plans(spec, query, mechanism, t, share, neighbors, rng)
    truth = _about_population(plans.query, population, plans.people)
    answers, errors, here = [], [], []
    batch = max(1, min(runs, _BATCH // plans.people))
    for start in range(0, runs, batch):
        size = min(batch, runs - start)
        values = draw_values(population, rng, (size, plans.people), correlation, shuffling)
        found = _answers(plans, cells(plans.query, values), rng)
        answers.append(found)
        errors.append(_off(plans.query, found, truth, population))
        here.append(_off_here(plans.query, found, values))
    used = plans.used
    return Simulation(
        mechanism,
        query,
        population,
        spec,
        runs,
        seed,
        correlation,
        np.concatenate(answers),
        np.concatenate(errors),
        np.concatenate(here),
        sqrt(sum(p.rmse**2 for p in used) / len(used)),
        sqrt(sum(p.rmse_here**2 for p in used) / len(used)),
        max((p.bias_bound for p in used if p.bias_bound is not None), default=None),
    )


def _is_whole(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool)


def planned(
    spec: Spec,
    query: Query,
    mechanism: str,
    neighbors: str = "replace",
    t: int | str | None = None,
    share: int = MICRO,
) -> Plan:
    """The plan of one mechanism alone, which is faster than comparing all; t and share in millionths."""
    among = ALL if mechanism == "auto" else tuple(m for m in ALL if m.name == mechanism)
    return plan_within(spec, query, budget.share(spec.micro, share), mechanism, t, share, neighbors, among=among)


class _Plans:
    """One plan for levels that stay, or another in every run."""

    def __init__(
        self,
        spec: Spec | Drawn,
        query: Query,
        mechanism: str,
        t: float | str | None,
        share: float,
        neighbors: str,
        rng: np.random.Generator,
    ) -> None:
        first = spec if isinstance(spec, Spec) else Spec.of(spec.draw(rng))
        if first.total != (spec.total if isinstance(spec, Spec) else spec.people):
            raise SpecError(_NOBODY)
        self.first = plan(first, query, mechanism, share, t=t, neighbors=neighbors)  # also checks what is asked
        self.query, self.people = self.first.query, first.total
        self._spec, self._asked, self._mechanism, self._rng = spec, query, mechanism, rng
        self._t = None if t is None else (t if isinstance(t, str) else int(to_micro(t)))
        self.used = [self.first] if isinstance(spec, Spec) else []

    @property
    def one(self) -> bool:
        return isinstance(self._spec, Spec)

    def next(self) -> Plan:
        if isinstance(self._spec, Spec):
            return self.first
        spec = Spec.of(self._spec.draw(self._rng))
        if spec.total != self.people:
            raise SpecError(_NOBODY)
        made = planned(spec, self._asked, self._mechanism, self.first.neighbors, self._t, self.first.share)
        self.used.append(made)
        return made


def draw_values(
    population: Population,
    rng: np.random.Generator,
    shape: tuple[int, int],
    correlation: float,
    shuffling: np.random.Generator,
) -> FloatArray:
    """Values of people in the order of their levels, the strictest first. Who has which is drawn apart, so that all else is the same for every correlation."""
    values = population.draw(rng, shape)
    if not np.isfinite(values).all():
        raise QueryError(f"{population.name} draws values that are not finite numbers. Give one that does not.")
    if not correlation:
        return values
    places = np.argsort(np.argsort(values + 0.0, axis=1), axis=1)
    scores = np.take_along_axis(np.sort(shuffling.normal(size=shape), axis=1), places, axis=1)
    latent = correlation * scores + sqrt(1 - correlation**2) * shuffling.normal(size=shape)
    return np.take_along_axis(values, np.argsort(latent, axis=1), axis=1)


def cells(query: Query, values: FloatArray) -> IntArray:
    """The integers that the engine would make of the values: the same arithmetic, in the same order."""
    if isinstance(query, OnGrid):
        low, high = float(query.low), float(query.high)
        inside = np.floor((np.clip(values, low, high) - low) * query.encoding.inverse + 0.5).astype(np.int64)
        found: IntArray = np.where(values >= high, query.span, np.where(values < low, 0, inside))
        return found
    if isinstance(query, Count):
        met = np.ones_like(values, dtype=bool) if query.condition is None else _meets(query.condition, values)
        return met.astype(np.int64)
    assert isinstance(query, Histogram)
    edges = np.array([float(e) for e in query.edges])
    placed: IntArray = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
    return placed


# ---- answers ---------------------------------------------------------------------------------------------------------


def _answers(plans: _Plans, integers: IntArray, rng: np.random.Generator) -> NDArray[Any]:
    if plans.one and (law := twin(plans.first)) is not None:
        return by_twin(plans.first, law, integers, rng)
    noise, found = Seeded(rng), []
    for row in integers:
        made = plans.next()
        law = twin(made)
        if law is not None:
            found.append(by_twin(made, law, row[None, :], rng)[0])
        else:
            found.append(_plain(_draw(made, summarise(made, row), noise)[0]))
    return np.array(found)


def summarise(made: Plan, integers: IntArray) -> Summary:
    """The Summary of people with these integers, in the order of their levels."""
    spec, query = made.spec, made.query
    level = np.repeat(np.arange(spec.micro.size), spec.people)
    if isinstance(query, Order):
        points = query.points
    elif isinstance(query, Histogram):
        points = query.outputs
    elif made.mechanism == "sample":
        points = query.span + 1  # type: ignore[attr-defined]
    else:
        assert isinstance(query, Additive)
        sums = np.add.reduceat(integers, np.cumsum(spec.people) - spec.people)
        each = np.arange(spec.micro.size)
        if query.sums == query.outputs:
            return Summary(spec.people, 1, each, np.zeros_like(each), sums)
        rest = query.span * spec.people - sums
        return Summary(
            spec.people,
            2,
            np.concatenate((each, each)),
            np.concatenate((0 * each, 0 * each + 1)),
            np.concatenate((sums, rest)),
        )
    return Summary(spec.people, points, level, integers, np.ones_like(integers))


@dataclass(frozen=True)
class Law:
    """An answer that is offset + slope·(Σ weight·integer + Σ noise)."""

    offset: float
    slope: float
    weights: FloatArray
    """Of one person of each level."""
    scales: FloatArray
    """Of independent Laplace noises."""


def twin(made: Plan) -> Law | None:
    """The law of a plan's answer, if it is a weighted sum with noise; None: only the seam knows."""
    query, c, people = made.query, made.calibration.charges, made.spec.people
    if made.mechanism in NO_DATA:
        middle = _plain(_draw(made, None, Seeded(np.random.default_rng(0)))[0])
        return Law(float(middle), 0.0, np.zeros(c.size), np.zeros(0)) if isinstance(middle, float) else None
    if not isinstance(query, Mean | Sum | Count) or made.neighbors != "replace":
        return None
    shift = Fraction(0)
    if made.mechanism in _WEIGHTED:
        public = int(c.max()) == PUBLIC
        counted = (c == PUBLIC).astype(np.int64) if public else c
        total = float(total_of(counted, people))
        weights, scales = counted / total, np.zeros(0) if public else np.array([MICRO * query.span / total])
    elif made.mechanism == "mix":
        weights = made.calibration.weights / float(people @ made.calibration.weights)
        read = (c < PUBLIC) & (weights > 0)
        if (c[read] * _COARSE > MICRO * query.span).any():
            return None
        scales = weights[read] * MICRO * query.span / c[read]
    elif made.mechanism == "stretch":
        largest, n = int(c.max()), int(people.sum())
        weights, scales = c / (largest * n), np.array([MICRO * query.span / (largest * n)])
        shift = -query.origin * (1 - Fraction(total_of(c, people), largest * n))
    else:
        return None
    ends = [query.finish([Fraction(q) + shift], made.spec.total) for q in (0, query.span)]
    assert isinstance(ends[0], float) and isinstance(ends[1], float)
    return Law(ends[0], (ends[1] - ends[0]) / query.span, weights, scales)


def by_twin(made: Plan, law: Law, integers: IntArray, rng: np.random.Generator) -> FloatArray:
    """Answers of many runs at once."""
    means = integers @ np.repeat(law.weights, made.spec.people)
    noise = np.zeros(len(integers))
    for first in range(0, law.scales.size, 64):
        some = law.scales[first : first + 64]
        noise += rng.laplace(size=(len(integers), some.size)) @ some
    return np.asarray(law.offset + law.slope * (means + noise), dtype=np.float64)


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return list(answer.values())
    return answer


# ---- errors ----------------------------------------------------------------------------------------------------------


def _about_population(query: Query, population: Population, people: int) -> Any:
    """What is true of the population, in the answer's own terms; of ranks nothing is needed."""
    if isinstance(query, Order):
        return None
    if isinstance(query, Count):
        return people * (1.0 if query.condition is None else _probability(query.condition, population))
    if isinstance(query, Histogram):
        inner = population.below(np.nextafter([float(e) for e in query.edges[1:-1]], -np.inf))
        shares = np.diff(np.concatenate(([0.0], inner, [1.0])))
        return people * np.concatenate((shares, np.zeros(query.outputs - shares.size)))  # nobody is missing
    assert isinstance(query, Mean)
    mean = population.mean(float(query.low), float(query.high))
    return people * mean if isinstance(query, Sum) else mean


def _off(query: Query, found: FloatArray, truth: Any, population: Population) -> FloatArray:
    if not isinstance(query, Order):
        return np.asarray(found - truth, dtype=np.float64)
    half, low, high = float(query.step) / 2, float(query.low), float(query.high)
    ends = [
        np.nextafter(found + sign * half, -np.inf) for sign in (-1, 1)
    ]  # from half a step on, a value is at the next point
    below = np.where(found <= low + half, 0.0, population.below(ends[0]))  # what lies outside is at the ends
    above = np.where(found >= high - half, 0.0, 1 - population.below(ends[1]))
    return _ranks_off(query, below, above)


def _off_here(query: Query, found: FloatArray, values: FloatArray) -> FloatArray:
    """About the people of each run."""
    if isinstance(query, Order):
        grid = np.sort(cells(query, values), axis=1)
        points = np.round((found - float(query.low)) / float(query.step)).astype(np.int64).reshape(len(grid), -1)
        sides = [
            [[np.searchsorted(row, p, "left"), row.size - np.searchsorted(row, p, "right")] for p in chosen]
            for row, chosen in zip(grid, points, strict=True)
        ]
        shares = np.array(sides, dtype=np.float64) / grid.shape[1]
        shape = found.shape
        return _ranks_off(query, shares[..., 0].reshape(shape), shares[..., 1].reshape(shape))
    if isinstance(query, Count):
        return np.asarray(found - cells(query, values).sum(axis=1), dtype=np.float64)
    if isinstance(query, Histogram):
        counts = np.stack([np.count_nonzero(cells(query, values) == k, axis=1) for k in range(query.outputs)], axis=1)
        return np.asarray(found - counts, dtype=np.float64)
    assert isinstance(query, Mean)
    means = np.clip(values, float(query.low), float(query.high)).mean(axis=1)
    return np.asarray(found - (means * values.shape[1] if isinstance(query, Sum) else means), dtype=np.float64)


def _meets(condition: where.Condition, values: FloatArray) -> NDArray[np.bool_]:
    """Whether numbers meet a condition on their one column. None is missing, so that what is not true is false."""
    match condition:
        case where.Both(word, parts):
            met = np.stack([_meets(part, values) for part in parts])
            return np.asarray(met.all(axis=0) if word == "AND" else met.any(axis=0), dtype=np.bool_)
        case where.Not(inner):
            return ~_meets(inner, values)
        case where.IsNull():
            return np.zeros(values.shape, dtype=np.bool_)
        case where.HasValue():
            return np.ones(values.shape, dtype=np.bool_)
        case where.In(_, literals):
            return np.isin(values, [_literal(x) for x in literals])
        case where.Compare(_, operator, literal):
            return np.asarray(_OPERATORS[operator](values, _literal(literal)), dtype=np.bool_)


def _probability(condition: where.Condition, population: Population) -> float:
    """That somebody meets a condition. Between two neighboring literals it is always or never met, so that one point there tells."""
    at = np.array(sorted({_literal(x) for x in _literals(condition)}))
    if not at.size:
        return float(_meets(condition, np.zeros(1))[0])
    before, upto = population.below(np.nextafter(at, -np.inf)), population.below(at)
    gaps = np.concatenate((before, [1.0])) - np.concatenate(([0.0], upto))
    between = np.nextafter(np.concatenate(([at[0]], at)), np.concatenate(([-np.inf], np.full(at.size, np.inf))))
    return float((upto - before) @ _meets(condition, at) + gaps @ _meets(condition, between))


def _literals(condition: where.Condition) -> list[Any]:
    match condition:
        case where.Both(_, parts):
            return [x for part in parts for x in _literals(part)]
        case where.Not(inner):
            return _literals(inner)
        case where.In(_, literals):
            return list(literals)
        case where.Compare(_, _, literal):
            return [literal]
        case _:
            return []


def _literal(x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise QueryError(f"the condition compares with {x!r}, and populations have numbers. Compare with a number.")
    return float(x)


_OPERATORS: dict[str, Any] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _ranks_off(query: Order, below: FloatArray, above: FloatArray) -> FloatArray:
    """Percentile points between an answer with so many people below and above it and the quantile; of min and max, 100 for an answer beyond everyone."""
    if isinstance(query, Min):
        return np.where(above >= 1, 100.0, 100 * below)
    if isinstance(query, Max):
        return np.where(below >= 1, -100.0, -100 * above)
    assert isinstance(query, Quantile)
    ps = np.array([float(p) for p in query.ps]) if query.listed else float(query.ps[0])
    return np.asarray(100 * (np.maximum(0, below - ps) - np.maximum(0, above - (1 - ps))), dtype=np.float64)
