"""Release: a noisy answer with its error, its interval and its receipt. Everything in it may be published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, cast

import numpy as np

from accord.budget import IntArray
from accord.errors import QueryError
from accord.people.spending import Unbooked
from accord.planning import Plan, by_level, midpoint_error
from accord.release.arithmetic import Arithmetic
from accord.release.suppressing import by_noise_alone, leaves_groups_out, left_out_at_most
from accord.statistics import Algorithm, Answer, Grouped, Part
from accord.statistics.query import A, Interval
from accord.statistics.target_ranks import Quantiles, Ranks
from accord.statistics.target_sums import Additive, Products


@dataclass(frozen=True)
class Booked:
    """An entry of a ledger's chain."""

    entry: int
    hash: str


@dataclass(frozen=True)
class Among:
    """Of which public groups one was taken."""

    spec: str
    """The fingerprint of the Spec of all of them together."""
    name: str
    """The group's, in words."""


@dataclass(frozen=True, repr=False)
class Release(Arithmetic, Generic[A]):
    """An answer to one question, the answers to several, or one about each of several public groups."""

    plan: Plan
    answer: Answer | None = None
    """Of one question."""
    time: datetime | None = None
    released: tuple[Any, ...] = field(default=(), repr=False)
    """What the mechanism released, before it became the answer; of private groups, a tuple for each."""
    booked: Booked | None = None
    """Where it stands in the ledger, if there is one."""
    by_part: Mapping[Any, Release | None] = field(default_factory=dict)
    """Of several questions or public groups, the release of each, as in `plan.plans`."""
    unbooked: Unbooked | None = field(default=None, compare=False)
    """Without a ledger, from the second release of a table on: what all of them have charged everyone."""
    repeated: Booked | None = None
    """Where it is booked that this answer was given out again, free of charge; None: it was drawn anew."""
    among: Among | None = field(default=None, compare=False)
    """Where it was taken out of an answer about several public groups: which one it is about."""

    @property
    def value(self) -> A:
        """The answer.

        A number (unbiased, so that it can lie outside the bounds where the noise is large); {cell: number}
        for a histogram; for a quantile a point of the grid, a date of dates; a list for several quantiles.
        A list of answers for a workload. A row for each group, public or private, that is not left out
        (`suppressed` says how many are); of public groups by a condition alone, the answer.
        """
        return cast(A, self._value())

    def _value(self) -> Any:
        if self.plan.is_workload:
            return [part.value for part in self.parts]
        if not self.plan.is_grouped:
            return self.answer
        if self._by is None:
            (only,) = self.by_part.values()
            return None if only is None else only.value
        return [{**self._by.row(key), **self._row(part)} for key, part in self.by_part.items()]

    @property
    def _by(self) -> Part | None:
        """What tells the groups apart, if there are any."""
        query = self.plan.query
        return query.part if isinstance(query, Grouped) and query.part.by else None

    def _row(self, part: Release | None) -> dict[str, Any]:
        if part is None:
            return {"value": None, "rmse": None, "few": True}
        worst = midpoint_error(part.plan.target, part.plan.people)
        few = part.rmse > worst / 2 or part.mechanism == "midpoint"
        return {"value": part.value, "rmse": part.rmse, "few": few}

    @property
    def parts(self) -> tuple[Release, ...]:
        """The releases of all questions or groups; itself if it is one."""
        if self.plan.choice is not None:
            return (self,)
        return tuple(part for part in self.by_part.values() if part is not None)

    @property
    def releases(self) -> Any:
        """The release of each question, in their order; of public groups, {key: release}."""
        return self.by_part if self.plan.is_grouped else self.parts

    @property
    def rmse(self) -> Any:
        """Root mean squared error about the population, in `plan.unit`; of public groups, {key: error}.

        As predicted; where it is private how many the answer is about, for as many as there seem to be. Of
        private groups, the one that is predicted for groups of the same size: each row has its own.
        """
        if self.plan.is_grouped:
            return MappingProxyType(
                {key: part.rmse for key, part in self.by_part.items() if part is not None}
            )
        return self._errors[0]

    @property
    def rmse_here(self) -> float:
        """The same about these very people."""
        return self._errors[1]

    @property
    def is_judged_by_size(self) -> bool:
        """Whether its errors follow from how many people there seem to be, or how much values vary."""
        plan = self.plan
        return (
            plan.choice is not None
            and self._by is None
            and bool(self.released)
            and (plan.target.tells_size or plan.target.assumes_spread or isinstance(plan.target, Products))
        )

    @property
    def _errors(self) -> tuple[float, float]:
        if self.is_judged_by_size:
            return self.plan.errors_of(self.released)
        return self.plan.rmse, self.plan.rmse_here

    @cached_property
    def draw(self) -> tuple[str | None, datetime | None]:
        """What tells this answer from any other: its plan's fingerprint, and when it was drawn."""
        return self.plan.fingerprint, self.time

    @property
    def mechanism(self) -> str:
        return self.plan.mechanism

    @property
    def charges(self) -> Mapping[Any, Any]:
        """{level: charge}: what it cost a person of each level; of public groups, {key: {level: charge}}.

        An answer that was given out again costs nothing; what it had cost is in `plan.charges`.
        """
        if self.plan.is_grouped:
            each = {key: part.charges for key, part in self.by_part.items() if part is not None}
            return MappingProxyType(each)
        return by_level(self.plan.spec, self.cost)

    @property
    def cost(self) -> IntArray:
        """The same in millionths, by level; not of public groups, which have levels of their own."""
        return self.plan.cost if self.repeated is None else np.zeros_like(self.plan.cost)

    def interval(self, confidence: float = 0.95) -> Any:
        """Where the answer about these people lies, with this confidence, as far as noise and chance go.

        In `plan.unit`. For a quantile: the percentiles of these people (their values rounded to the grid's
        steps) between which the answer lies; of several quantiles, between which all of them lie together.
        Of groups, {key: interval}; where some are left out (`suppress=`), all of them together lie in theirs.
        Of a workload, a list. Free of charge. It holds the bias that arises when levels go with values as far
        as a gap is declared (`gap=`), and else not at all: for that there are `plan.bias_bound` and
        `plan.break_even_gap`.
        """
        return self._of_each(confidence, Release.interval, self.interval_around)

    def intervals_together(self, confidence: float = 0.95) -> Any:
        """Intervals that hold for all answers of a workload at once, with this confidence: a list.

        Of questions that share one noise they are narrower than each by itself would be. Of one question, its
        interval. Free of charge; `interval` says what is not in it.

        Raises:
            QueryError: of public groups, whose people are others; or of an algorithm of one's own.
        """
        refuse_confidence(confidence)
        if self.plan.is_grouped:
            raise QueryError("public groups are about other people each: take interval() of each of them.")
        if not self.plan.is_workload:
            return self.interval(confidence)
        from accord.release.bands import bands

        return bands(self, confidence)

    def interval_in_values(self, confidence: float = 0.95) -> Any:
        """The same in values, for quantiles too.

        Of a quantile that was asked for with interval="values", the two values between which it lies; of
        several, all of them together. With more confidence than 0.95 these are the bounds. None for other
        quantiles, min and max: one draw tells nothing about the values around it.
        """
        return self._of_each(confidence, Release.interval_in_values, self._interval_in_values)

    def _of_each(self, confidence: float, of_part: Callable[..., Any], of_one: Callable[..., Any]) -> Any:
        """An interval of the answer, or of each of several: questions, public groups or private ones."""
        refuse_confidence(confidence)
        if self.plan.is_workload:
            return [of_part(part, confidence) for part in self.parts]
        if self.plan.is_grouped:
            return {
                key: None if part is None else of_part(part, confidence) for key, part in self.by_part.items()
            }
        if isinstance(self.plan.query, Algorithm):
            raise QueryError("an algorithm of your own has no interval here: only it can tell its error.")
        if self._by is None:
            return of_one(self.answer, self.released, confidence)
        rows, by = cast(list[dict[str, Any]], self.answer), self._by
        released = self.released or [()] * self.plan.private_groups
        together = self.groups_together * (2 if self.plan.chooses_first else 1)
        each = 1 - (1 - confidence) / together if together > 1 else confidence
        groups = {by.group_of(row): row for row in rows}
        return {
            group: of_one(row["value"], released[by.places[group]], each) for group, row in groups.items()
        }

    @property
    def groups_together(self) -> int:
        """For how many groups together intervals hold: for all, where some are left out; else for each.

        Where groups are chosen first (with half of what is left of the confidence), for those alone, unless
        unequal weights decided about them, too.
        """
        if not leaves_groups_out(self.plan):
            return 1
        return self.plan.counted_groups if by_noise_alone(self.plan) else self.plan.private_groups

    @property
    def suppressed(self) -> int:
        """How many groups are left out: they may be empty (`suppress=`), or are not among the largest."""
        if not leaves_groups_out(self.plan):
            return 0
        return self.plan.private_groups - len(cast(list[Any], self.answer))

    def others_at_most(self, confidence: float = 0.95) -> float | None:
        """Of `accord.top`: what no group that is left out has more people than; None: none is left out.

        It holds together with all intervals of this confidence. Free of charge.
        """
        refuse_confidence(confidence)
        part = self._by
        if part is None or part.largest is None or not self.suppressed:
            return None
        if not self.released:
            return float(self.plan.most_people)
        shown = {part.group_of(row) for row in cast(list[dict[str, Any]], self.answer)}
        others = [self.released[place] for group, place in part.places.items() if group not in shown]
        if self.plan.chooses_first:
            return left_out_at_most(self.plan, self.released, others, 1 - confidence)
        largest = max(others)
        value = self.plan.target.finish(largest, self.plan.people)
        _, high = self.interval_around(value, largest, 1 - (1 - confidence) / self.groups_together)
        return float(high)

    def interval_around(self, value: Any, released: Sequence[Fraction], confidence: float) -> Any:
        """Of one answer, which was made of this that was released.

        What cannot be is cut off, up to the answer: the truth is not there, so that what is left holds it.
        """
        target, factor = self.plan.target, self.plan.error_factor(released)
        possible, model = target.possible(self.plan.most_people), self.plan.prediction.error_model
        ends = possible if factor is None else model.interval(value, released, confidence, factor)
        return clipped(ends, possible, value) if isinstance(target, Additive) else ends

    def _interval_in_values(self, value: Any, released: Sequence[Fraction], confidence: float) -> Any:
        target = self.plan.target
        if not isinstance(target, Ranks):
            return self.interval_around(value, released, confidence)
        if not isinstance(target, Quantiles) or not target.in_values:
            return None
        between = self.plan.prediction.error_model.between(released, confidence) if released else None
        return target.interval_in_values(between or [(None, None)] * target.outputs)

    def __getitem__(self, key: Any) -> Any:
        """One of several answers, or one number of them, to reckon with: see docs/answers.md.

        A group by its key, public or private; a cell of a histogram; a question of a workload by its place.
        """
        from accord.release.picking import picked

        return picked(self, key)

    def margin(self, *columns: str, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The cells of a table by several columns, added up: a row for each key of these columns.

        `margin("ward")` of a count by ward and sex is a count by ward, and `margin()` one of all cells. Each
        row has its keys, and value, rmse, few as in `value`, and low and high, between which the answer about
        these people lies with this confidence. Free of charge.

        Raises:
            QueryError: what was asked does not add up, as a mean does not, or there is no such column.
        """
        from accord.release.margins import margin

        refuse_confidence(confidence)
        return margin(self, columns, confidence)

    def receipt(self) -> dict[str, Any]:
        """What was asked, how it was answered and what it cost whom: plain data, ready for JSON."""
        from accord.release.receipt import release_document

        return release_document(self)

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """The answer as a data frame, one row for each number: `accord.release.tidy` has the columns.

        The interval in it is the one of `interval(confidence)`. Its `attrs` say when it was answered, and
        whether the answer was given out again.
        """
        from accord.release.tidy import to_frame

        return to_frame(self, confidence)

    def plot(self, path: str | Path | None = None) -> Any:
        """The answer with its 95 % interval as a picture, whatever kind it is of.

        Returns:
            The figure, which a notebook shows; with a path (.png, .svg, .pdf), where it was written.

        Raises:
            AccordError: matplotlib is not installed (accord[plot]), or the file cannot be written.
        """
        from accord.report.answer_figures import release_figure
        from accord.report.figures import write

        figure = release_figure(self)
        return figure if path is None else write(figure, path)

    def __str__(self) -> str:
        from accord.report.releases import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from accord.report.html import release_html

        return release_html(self)

    def __repr__(self) -> str:
        if self.repeated is not None and self.plan.choice is None:
            return f"<Release: {self.plan.query.label}, given out again>"
        if self.plan.is_workload:
            return f"<Release: {', '.join(map(repr, self.parts))}>"
        if self.plan.is_grouped:
            return f"<Release: {self.plan.query.label}, {len(self.by_part)} groups>"
        if isinstance(self.answer, float):
            value = f"{self.answer:.6g}"
        elif isinstance(self.answer, dict):
            value = f"{len(self.answer)} cells"
        else:
            value = str(self.answer)
        error = f"rmse {self.rmse:.6g} ({self.plan.unit})"
        again = "" if self.repeated is None else f", given out again: of {self.time:%Y-%m-%d %H:%M} UTC"
        return f"<Release: {self.plan.query.label} = {value} by {self.mechanism}, {error}{again}>"


def clipped(ends: Any, possible: Any, value: Any) -> Interval:
    """The part of an interval that is possible, and what is between it and the answer. Of cells, of each."""
    if isinstance(ends, dict):
        return {
            cell: cast(Any, clipped(of_cell, possible[cell], value[cell])) for cell, of_cell in ends.items()
        }
    low, high = (min(max(end, possible[0]), possible[1]) for end in ends)
    return min(low, value), max(high, value)


def refuse_confidence(confidence: Any) -> None:
    """Refuse what is not a probability between 0 and 1."""
    if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise QueryError(f"confidence={confidence!r} is not between 0 and 1. Ask for 0.95, for example.")
