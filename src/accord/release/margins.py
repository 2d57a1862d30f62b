"""Margins of a table by several columns: sums of its cells, from what was released. Free of charge.

A margin agrees with the cells because it is their sum, whatever the noise. It is about the people who are in
the cells that it adds up: who is in none of them is private, so that no public number of people corrects it.

Private    all cells are answered by one plan, each with a noise of its own. A person is in one of the cells
           that a margin adds up or in none (in up to m of them with at_most=m), so that what the weights do
           to the margin is at most m times what they do to one cell; the K noises are independent.
           Error       √(m²·(rmse² − v) + K·v), v the noise variance of a cell
           Interval    N(0, m²s²) and K times the noises of a cell together (statistics/noise_sums.py)
Public     each cell is a table of its own, with its own plan. Errors are independent: their squares add up,
           and so do biases, where an answer has one. A cell in which nobody is adds 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

from accord.errors import QueryError, did_you_mean
from accord.mechanisms.prediction import AroundValue
from accord.planning import Plan, midpoint_error
from accord.release.answer import finished
from accord.statistics import Grouped, Part
from accord.statistics.noise_sums import half_width_of_sum
from accord.statistics.target import Counted, Total

if TYPE_CHECKING:
    from accord.release.result import Release

Row = dict[str, Any]


@dataclass(frozen=True)
class Error:
    """How far a cell, or a sum of cells, may be off."""

    variance: float = 0.0
    """About the population, without bias."""
    bias: float = 0.0
    sampling: float = 0.0
    """Standard deviation, about these people, of what the weights do."""
    scales: tuple[tuple[float, int], ...] = ()
    """Of the Laplace noises, and how many there are of each."""
    thinning: float = 0.0
    """Variance of a noise that lies between a Laplace and a normal one: people are kept at random."""
    below: float = 0.0
    """How far what is none of these lies below the answer, and above it."""
    above: float = 0.0

    @property
    def rmse(self) -> float:
        return sqrt(self.variance + self.bias**2)

    def ends(self, value: float, confidence: float) -> tuple[float, float]:
        """Where the answer about these people lies."""
        half = half_width_of_sum(sqrt(self.sampling**2 + self.thinning), self.scales, 1 - confidence)
        if self.thinning:
            scales = (*self.scales, (sqrt(self.thinning / 2), 1))
            half = max(half, half_width_of_sum(self.sampling, scales, 1 - confidence))
        return value - self.below - half, value + self.above + half


def margin(release: Release, columns: Sequence[str], confidence: float) -> list[Row]:
    """A row for each combination of the keys of these columns; of none, one row about all cells.

    Raises:
        QueryError: the statistic does not add up, or there are no such columns.
    """
    part = _part(release)
    for column in columns:
        if column not in part.by:
            raise QueryError(f"there are no groups by {column!r}: {did_you_mean(column, part.by)}")
    kept = [column for column in part.by if column in columns]
    cells: dict[tuple[Any, ...], list[tuple[Row, Any]]] = {}
    answers: Any = release.value
    if release.suppressed:  # margins are of all cells
        answers, _ = finished(release.plan, release.released, everything=True)
    for row, group in zip(answers, part.groups, strict=True):
        cells.setdefault(tuple(row[column] for column in kept), []).append((row, group))
    return [
        {**dict(zip(kept, keys, strict=True)), **_sum_of(release, part, added, confidence)}
        for keys, added in cells.items()
    ]


def adds_up(plan: Plan) -> bool:
    """Whether the answers about groups can be added: counts, sums and numbers of rows."""
    return all(isinstance(part.target, Total) for part in plan.parts)


def _part(release: Release) -> Part:
    query = release.plan.query
    if not isinstance(query, Grouped) or not query.part.by:
        raise QueryError(
            "margins are of a table by columns, and this answer has none. Ask with by= and keys=; of a "
            "workload, take one of its releases."
        )
    if not adds_up(release.plan):
        raise QueryError(
            f"margins are sums of cells, and a {query.statistic} of all is no sum of those of groups. "
            "Ask for both: accord.workload([…]) of one question by several columns and one by fewer."
        )
    return query.part


def _sum_of(release: Release, part: Part, cells: Sequence[tuple[Row, Any]], confidence: float) -> Row:
    value = fsum(row["value"] or 0.0 for row, _ in cells)
    if release.plan.is_grouped:
        there = [each for _, group in cells if (each := release.by_part[group]) is not None]
        error = together(error_of(each.plan, float(each.value)) for each in there)
        worst = fsum(midpoint_error(each.plan.target, each.plan.spec.total) for each in there)
        few = not there or error.rmse > worst / 2
    else:
        middle = float(cells[0][0]["value"])
        error = of_private(release.plan, middle, len(cells), min(part.at_most, len(cells)))
        few = isinstance(release.plan.target, Counted) and value < 2 * error.rmse
    low, high = error.ends(value, confidence)
    return {"value": value, "rmse": error.rmse, "low": low, "high": high, "few": few}


def error_of(plan: Plan, value: float) -> Error:
    """Of one cell. `value`: the answer, around which an interval that needs no data is placed."""
    model = plan.prediction.error_model
    if not isinstance(model, AroundValue):  # an answer that needs no data
        low, high = model.interval(value, (), 0.5, 1.0)
        assert isinstance(low, float) and isinstance(high, float)
        return Error(bias=plan.rmse, below=value - low, above=high - value)
    noise, scales = noise_variance(plan), noise_scales(plan)
    spread, (least, most) = model.spread, model.shift
    biased = any(model.shift)
    return Error(
        variance=noise if biased else plan.rmse**2,
        bias=sqrt(max(0.0, plan.rmse**2 - noise)) if biased else 0.0,
        sampling=spread.sampling,
        scales=scales or (),
        thinning=noise if scales is None else 0.0,
        below=spread.extra - least,
        above=spread.extra + most,
    )


def of_private(plan: Plan, value: float, cells: int, most: int) -> Error:
    """Of so many private cells of one plan, of which a person may be in `most`."""
    one = error_of(plan, value)
    noise = min(one.variance, noise_variance(plan))
    return Error(
        variance=most**2 * (one.variance - noise) + cells * noise,
        bias=cells * one.bias,
        sampling=most * one.sampling,
        scales=tuple((scale, cells * times) for scale, times in one.scales),
        thinning=cells * one.thinning,
        below=(cells if one.bias else most) * one.below,
        above=(cells if one.bias else most) * one.above,
    )


def together(errors: Iterable[Error]) -> Error:
    """Of several answers with independent errors."""
    each = list(errors)
    scales: Counter[float] = Counter()
    for one in each:
        for scale, times in one.scales:
            scales[scale] += times
    return Error(
        variance=fsum(one.variance for one in each),
        bias=fsum(one.bias for one in each),
        sampling=sqrt(fsum(one.sampling**2 for one in each)),
        scales=tuple(sorted(scales.items())),
        thinning=fsum(one.thinning for one in each),
        below=fsum(one.below for one in each),
        above=fsum(one.above for one in each),
    )


def noise_variance(plan: Plan) -> float:
    """Of the noise of one cell, in the answer's units."""
    return float(plan.target.factor(plan.spec.total) ** 2 * plan.calibration.noise_variance)


def noise_scales(plan: Plan) -> tuple[tuple[float, int], ...] | None:
    """Of the Laplace noises in one cell, in the answer's units; None: not all of it is Laplace noise."""
    target, linear = plan.target, plan.method.linear
    assert isinstance(target, Total)
    if linear is None:
        return None
    of_mean = linear(plan.calibration, plan.spec.people, target).scales.tolist()
    scales = Counter(weight * scale for weight in _of_each_sum(target, plan.spec.total) for scale in of_mean)
    return tuple(sorted(scales.items()))


def _of_each_sum(target: Total, people: int) -> list[float]:
    """By how much an answer changes with each of the means that it is made of, which it is linear in."""
    far = Fraction(target.sensitivity)
    none = [Fraction(0)] * target.released
    at = [target.finish([*none[:k], far, *none[k + 1 :]], people) for k in range(target.released)]
    origin = target.finish(none, people)
    assert isinstance(origin, float)
    return [abs(value - origin) / float(far) for value in at if isinstance(value, float)]
