"""Release: a noisy answer with its error, its interval and its receipt. Everything in it may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from accord.errors import QueryError
from accord.planning import Plan, midpoint_error
from accord.statistics import Answer, Grouped
from accord.statistics.target import Rows


@dataclass(frozen=True)
class Booked:
    """An entry of a ledger's chain."""

    entry: int
    hash: str


@dataclass(frozen=True, repr=False)
class Release:
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

    @property
    def value(self) -> Any:
        """The answer.

        A number (unbiased, so that it can lie outside the bounds where the noise is large); {cell: number}
        for a histogram; for a quantile a point of the grid, a date of dates; a list for several quantiles. A
        list of answers for a workload. A row for each group, public or private; of public groups by a
        condition alone, the answer.
        """
        if self.plan.is_workload:
            return [part.value for part in self.parts]
        if not self.plan.is_grouped:
            return self.answer
        if self._by is None:
            (alone,) = self.by_part.values()
            return None if alone is None else alone.value
        return [self._row(key, part) for key, part in self.by_part.items()]

    @property
    def _by(self) -> str | None:
        """The column of the groups."""
        return self.plan.query.part.by if isinstance(self.plan.query, Grouped) else None

    def _row(self, key: Any, part: Release | None) -> dict[str, Any]:
        row = {str(self._by): key}
        if part is None:
            return {**row, "value": None, "rmse": None, "few": True}
        worst = midpoint_error(part.plan.target, part.plan.spec.total)
        few = part.rmse > worst / 2 or part.mechanism == "midpoint"
        return {**row, "value": part.value, "rmse": part.rmse, "few": few}

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
        """Predicted root mean squared error about the population; of public groups, {key: error}."""
        return self.plan.rmse

    @property
    def mechanism(self) -> str:
        return self.plan.mechanism

    @property
    def charges(self) -> Mapping[Any, Any]:
        """{level: charge}: what it cost a person of each level; of public groups, {key: {level: charge}}."""
        return self.plan.charges

    def interval(self, confidence: float = 0.95) -> Any:
        """Where the answer about these people lies, with this confidence, as far as noise and chance go.

        For a quantile: the percentiles of these people (their values rounded to the grid's steps) between
        which the answer lies. Of groups, {key: interval}; of a workload, a list. Free of charge. It does not
        hold the bias that arises when levels go with values: `plan.bias_bound` is for that.
        """
        if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
            raise QueryError(f"confidence={confidence!r} is not between 0 and 1. Ask for 0.95, for example.")
        if self.plan.is_workload:
            return [part.interval(confidence) for part in self.parts]
        if self.plan.is_grouped:
            return {
                key: None if part is None else part.interval(confidence) for key, part in self.by_part.items()
            }
        if isinstance(self.plan.target, Rows):
            raise QueryError("an algorithm of your own has no interval here: only it can tell its error.")
        if self._by is None:
            return self._interval(self.answer, self.released, confidence)
        rows: Any = self.answer
        released = self.released or [()] * self.plan.private_groups
        return {
            row[self._by]: self._interval(row["value"], of_group, confidence)
            for row, of_group in zip(rows, released, strict=True)
        }

    def _interval(self, value: Any, released: Sequence[Fraction], confidence: float) -> Any:
        factor = self.plan.error_factor(released)
        if factor is None:
            return self.plan.target.possible(self.plan.spec.total)
        return self.plan.prediction.law.interval(value, released, confidence, factor)

    def receipt(self) -> dict[str, Any]:
        """What was asked, how it was answered and what it cost whom: plain data, ready for JSON."""
        from accord.release.receipt import release_document

        return release_document(self)

    def __str__(self) -> str:
        from accord.report.text import release_text

        return release_text(self)

    def __repr__(self) -> str:
        if self.plan.is_workload:
            return f"<Release: {', '.join(map(repr, self.parts))}>"
        if self.plan.is_grouped:
            return f"<Release: {self.plan.query.label}, {len(self.by_part)} groups>"
        value = (
            f"{self.answer:.6g}"
            if isinstance(self.answer, float)
            else f"{len(self.answer)} cells"
            if isinstance(self.answer, dict)
            else str(self.answer)
        )
        return f"<Release: {self.plan.query.label} = {value} by {self.mechanism}, rmse {self.rmse:.6g}>"
