"""Margins of a table by several columns: sums of its cells, from what was released. Free of charge.

A margin agrees with the cells because it is their sum, whatever the noise. It is about the people who are in
the cells that it adds up: who is in none of them is private, so that no public number of people corrects it.

Interval   that of a derived number (derived.py): the noises of the cells are independent
Error      about the population. Private cells are answered by one plan, and a person is in up to m of those
           that are added up: √(m²·(rmse² − v) + K·v), v the noise variance of each of K cells. Public cells
           are tables of their own: squared errors add up, and biases, where an answer has one, as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any, cast

from accord.errors import QueryError, did_you_mean
from accord.mechanisms.prediction import AroundValue
from accord.planning import Plan, midpoint_error
from accord.release.derived import Derived
from accord.release.numbers import Number
from accord.release.picking import public_group
from accord.release.result import clipped
from accord.statistics import Ends, Grouped, Part
from accord.statistics.target_sums import Counted, Total

if TYPE_CHECKING:
    from accord.release.result import Release

Row = dict[str, Any]


def margin(release: Release, columns: Sequence[str], confidence: float) -> list[Row]:
    """A row for each combination of the keys of these columns; of none, one row about all cells.

    Raises:
        QueryError: the statistic does not add up, or there are no such columns.
    """
    part = _part(release)
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = columns[0]
    for column in columns:
        if column not in part.by:
            raise QueryError(f"there are no groups by {column!r}: {did_you_mean(column, part.by)}")
    kept = [column for column in part.by if column in columns]
    cells: dict[tuple[Any, ...], list[int]] = {}
    for place, group in enumerate(part.groups):
        keys = part.row(group)
        cells.setdefault(tuple(keys[column] for column in kept), []).append(place)
    return [
        {**dict(zip(kept, keys, strict=True)), **_sum_of(release, part, places, confidence)}
        for keys, places in cells.items()
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
    if release.plan.choice is not None and release.plan.chooses_first:
        raise QueryError(
            "margins are sums of all cells, and of these only the largest were counted. "
            "Ask accord.count(by=…, keys=…)."
        )
    if not adds_up(release.plan):
        raise QueryError(
            f"margins are sums of cells, and a {query.statistic} of all is no sum of those of groups. "
            "Ask for both: accord.workload([…]) of one question by several columns and one by fewer."
        )
    return query.part


def _sum_of(release: Release, part: Part, places: Sequence[int], confidence: float) -> Row:
    """The sum of some cells, by their places among the groups."""
    plan = release.plan
    if plan.is_grouped:
        groups = [part.groups[place] for place in places]
        there = [public_group(release, group) for group in groups if release.by_part[group] is not None]
        numbers = [Number(each) for each in there]
        rmse = _of_public([each.plan for each in there])
        worst = fsum(midpoint_error(each.plan.target, each.plan.people) for each in there)
        few = not there or rmse > worst / 2
        possible = [cast(Ends, each.plan.target.possible(each.plan.people)) for each in there]
        least, most = fsum(low for low, _ in possible), fsum(high for _, high in possible)
    else:
        numbers = [Number(release, place) for place in places]
        in_cells = min(part.at_most, len(places))
        rmse = _of_private(plan, len(places), in_cells)
        few = False
        ends = cast(Ends, plan.target.possible(plan.most_people))
        least, most = in_cells * min(0.0, ends[0]), in_cells * max(0.0, ends[1])  # who is in none adds 0
    total = Derived(tuple((Fraction(1), number) for number in numbers))
    if not plan.is_grouped and isinstance(plan.target, Counted):
        few = total.value < 2 * rmse
    low, high = total.interval(confidence)
    if plan.is_grouped or plan.reads_data:  # an answer without data promises nothing
        low, high = cast(Ends, clipped((low, high), (least, most), total.value))
    return {"value": total.value, "rmse": rmse, "low": low, "high": high, "few": few}


def _of_private(plan: Plan, cells: int, most: int) -> float:
    """The error of a sum of so many private cells, of which a person may be in `most`."""
    if not plan.reads_data:
        return float(cells * plan.rmse)
    chance = plan.rmse**2 - plan.prediction.bias**2
    noise = min(chance, plan.target.factor(plan.people) ** 2 * plan.calibration.noise_variance)
    bias = cells * plan.prediction.bias  # all cells may be off the same way
    return sqrt(most**2 * (chance - noise) + cells * noise + bias**2)


def _of_public(plans: Sequence[Plan]) -> float:
    """The error of a sum of answers about as many tables."""
    biased = [not isinstance(m := plan.prediction.error_model, AroundValue) or any(m.shift) for plan in plans]
    bias = fsum(
        plan.rmse if is_biased else plan.prediction.bias
        for plan, is_biased in zip(plans, biased, strict=True)
    )
    variance = fsum(
        plan.rmse**2 - plan.prediction.bias**2
        for plan, is_biased in zip(plans, biased, strict=True)
        if not is_biased
    )
    return sqrt(variance + bias**2)
