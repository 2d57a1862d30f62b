"""Release: summarise, add noise, and say what it cost. The only module that touches noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from accord.errors import TABLE_CHANGED, PlanError, QueryError, SourceError
from accord.mechanisms import ALL
from accord.noise import SECURE, Noise
from accord.planning import NO_DATA, Plan, plan
from accord.query import Answer, Interval, Query
from accord.summary import Summary

if TYPE_CHECKING:
    from accord.tables import Table


@dataclass(frozen=True, repr=False)
class Release:
    """A noisy answer with its error and its receipt. Everything in it may be published."""

    plan: Plan
    value: Answer
    """A number (unbiased, so that it can lie outside the bounds where the noise is large); {cell: number} for a histogram; for a quantile a
    point of the grid, a date of dates; a list for several quantiles."""
    time: datetime

    @property
    def rmse(self) -> float:
        return self.plan.rmse

    @property
    def mechanism(self) -> str:
        return self.plan.mechanism

    @property
    def charges(self) -> Mapping[float, float]:
        return self.plan.charges

    def interval(self, confidence: float = 0.95) -> Interval:
        """Where the answer about these people lies, with this confidence, as far as noise and chance go. Free of charge.

        For a quantile: the percentiles of these people (their values rounded to the grid's steps) between which the answer lies.
        It does not hold the bias that arises when levels go with values: `plan.bias_bound` is for that.
        """
        if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
            raise QueryError(f"confidence={confidence!r} is not between 0 and 1. Ask for 0.95, for example.")
        return self.plan.prediction.interval(self.value, confidence)

    def receipt(self) -> dict[str, Any]:
        """What was asked, how it was answered and what it cost whom: plain data, ready for JSON."""
        from accord.receipt import release_document

        return release_document(self)

    def __str__(self) -> str:
        from accord.report.text import release_text

        return release_text(self)

    def __repr__(self) -> str:
        value = (
            f"{self.value:.6g}"
            if isinstance(self.value, float)
            else f"{len(self.value)} cells"
            if isinstance(self.value, dict)
            else str(self.value)
        )
        return f"<Release: {self.plan.query.label} = {value} by {self.mechanism}, rmse {self.rmse:.6g}>"


def release(
    table: Table, asked: Query | Plan, mechanism: str = "auto", share: float = 1.0, *, t: float | None = None
) -> Release:
    """Answer a query, or carry out a plan."""
    if isinstance(asked, Plan):
        if (mechanism, share, t) != ("auto", 1.0, None):
            raise PlanError(
                "a plan has its mechanism and share already. Release it as it is, or give the query instead."
            )
        summary = None
        if asked.neighbors != table.neighbors:
            raise PlanError(
                f"the plan is for neighbors={asked.neighbors!r}, the table for {table.neighbors!r}. Plan again with table.plan(query)."
            )
        if asked.spec != table.spec():
            raise PlanError(
                "the plan was made for other levels or other numbers of people than this table has. Plan again with table.plan(query)."
            )
        # the same levels, under this table's names of tiers
        decided = asked if asked.spec.tiers == table.spec().tiers else replace(asked, spec=table.spec())
    elif isinstance(asked, Query):
        summary = (
            table._summary(asked) if not table.known else None
        )  # levels and values from one scan; the plan sees the levels
        decided = plan(table.spec(), asked, mechanism, share, t=t, neighbors=table.neighbors, notes=table._check(asked))
    else:
        raise QueryError(
            f"a release answers a query or a plan, not {type(asked).__name__}. Make one with accord.mean or its siblings."
        )
    if decided.mechanism not in NO_DATA and summary is None:
        summary = table._summary(decided.query)
    return Release(decided, _answer(decided, summary, SECURE), datetime.now(UTC))


def _answer(decided: Plan, summary: Summary | None, noise: Noise) -> Answer:
    """The one seam where noise comes in."""
    query, people = decided.query, decided.spec.total
    if decided.mechanism == "public":
        return float(people)
    if decided.mechanism == "midpoint":
        return query.middle(people)
    if summary is None or not (summary.people == decided.spec.people).all():
        raise SourceError(TABLE_CHANGED)
    mechanism = next(m for m in ALL if m.name == decided.mechanism)
    return query.finish(mechanism.way(query).answer(summary, decided.calibration, query, noise), people)
