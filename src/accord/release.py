"""Release: reserve in the ledger, summarise, add noise, book, and say what it cost. The only module that touches noise."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING, Any

from accord.errors import TABLE_CHANGED, AccordError, LedgerError, PlanError, QueryError, SourceError
from accord.mechanisms import ALL
from accord.mechanisms.record import Mechanism
from accord.noise import SECURE, Noise
from accord.planning import NO_DATA, Plan, plan
from accord.query import Algorithm, Answer, Interval, Query, Workload
from accord.spec import MICRO, PUBLIC
from accord.summary import Summary
from accord.workloads import WorkloadPlan, parts_of

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.tables import Left, Table

_CHARGED = "The release has been charged all the same, because reading had begun; its answer is not given out."


@dataclass(frozen=True)
class Booked:
    """An entry of a ledger's chain."""

    entry: int
    hash: str


@dataclass(frozen=True, repr=False)
class Release:
    """A noisy answer with its error and its receipt. Everything in it may be published."""

    plan: Plan
    value: Answer
    """A number (unbiased, so that it can lie outside the bounds where the noise is large); {cell: number} for a histogram; for a quantile a
    point of the grid, a date of dates; a list for several quantiles."""
    time: datetime
    found: tuple[Fraction, ...] = field(default=(), repr=False)
    """What the mechanism released, before it became the value."""
    booked: Booked | None = None
    """Where it stands in the ledger, if there is one."""

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
        if isinstance(self.plan.query, Algorithm):
            raise QueryError("an algorithm of your own has no interval here: only it can tell its error.")
        stretch = self.plan.query.stretched(self.found) if self.found else 1.0
        if stretch is None:
            return self.plan.query.possible(self.plan.spec.total)
        return self.plan.prediction.interval(self.value, confidence, stretch)

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


@dataclass(frozen=True, repr=False)
class WorkloadRelease:
    """The answers to all questions of a workload, in their order."""

    plan: WorkloadPlan
    releases: tuple[Release, ...]
    booked: Booked | None = None

    @property
    def value(self) -> list[Answer]:
        return [made.value for made in self.releases]

    @property
    def charges(self) -> Mapping[float, float]:
        """What all answers together cost a person of each level."""
        return self.plan.charges

    def receipt(self) -> dict[str, Any]:
        """The receipts of all answers, and what they cost together: plain data, ready for JSON."""
        from accord.receipt import workload_receipt

        return workload_receipt(self)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.releases))

    def __repr__(self) -> str:
        return f"<WorkloadRelease: {', '.join(map(repr, self.releases))}>"


def release(
    table: Table,
    asked: Query | Plan | Workload | WorkloadPlan,
    mechanism: str = "auto",
    share: float | None = None,
    *,
    t: float | str | None = None,
    ledger: Ledger | None = None,
) -> Release | WorkloadRelease:
    """Answer a query or a workload, or carry out a plan: reserve, summarise, add noise, book."""
    summary = None
    if isinstance(asked, Plan | WorkloadPlan):
        if (mechanism, share, t) != ("auto", None, None):
            raise PlanError(
                "a plan has its mechanism and share already. Release it as it is, or give the query instead."
            )
        decided = _accept(asked, table, ledger is not None)
    elif isinstance(asked, Query | Workload):
        if share is None and ledger is not None:
            raise PlanError(
                "with a ledger, say how much of everyone's level this may spend: share=0.1 is a tenth. Levels are for life, not for one question."
            )
        if not table.known and ledger is None and isinstance(asked, Query):
            summary = table._summary(asked)  # levels and values from one scan; the plan sees the levels
        part = 1.0 if share is None else share
        decided = plan(table.spec(), asked, mechanism, part, t=t, neighbors=table.neighbors, notes=table.check(asked))
    else:
        raise QueryError(
            f"a release answers a query or a plan, not {type(asked).__name__}. Make one with accord.mean or its siblings."
        )
    if not table.lends and any(_by_row(part) for part in parts_of(decided)):
        raise SourceError(
            "rows of a DuckDB relation cannot be kept or left out one by one. Write it to a Parquet file or an Arrow table and open that, or choose another mechanism."
        )
    if ledger is None:
        return _carry_out(table, decided, None, summary)
    held = ledger._reserve(table, decided)
    try:
        made = _carry_out(table, decided, held.left)
        ledger._recognise(table, held)
        receipts = [part.receipt() for part in (made.releases if isinstance(made, WorkloadRelease) else (made,))]
    except BaseException as fault:
        with suppress(LedgerError):  # then it stays a reservation without an answer, which is charged as well
            ledger._settle(held, None)
        if isinstance(fault, AccordError):
            raise type(fault)(f"{fault} {_CHARGED}") from None
        raise
    try:
        entry = ledger._settle(held, receipts)
    except LedgerError as fault:  # no answer leaves that the books do not have
        raise LedgerError(f"{fault} {_CHARGED}") from None
    return replace(made, booked=Booked(entry.seq, entry.hash))


def _accept(asked: Plan | WorkloadPlan, table: Table, booked: bool) -> Plan | WorkloadPlan:
    """A plan for this very table, under its names of tiers. With a ledger it may be for what is left, which the ledger checks."""
    if asked.neighbors != table.neighbors:
        raise PlanError(
            f"the plan is for neighbors={asked.neighbors!r}, the table for {table.neighbors!r}. Plan again with table.plan(query)."
        )
    spec = table.spec()
    if asked.spec != spec:
        if booked and isinstance(asked, Plan):
            return replace(asked, notes=tuple(dict.fromkeys((*asked.notes, *table.check(asked.query)))))
        if booked:
            return asked
        raise PlanError(
            "the plan was made for other levels or other numbers of people than this table has. Plan again with table.plan(query)"
            " (or give the ledger from whose remaining(table) it was made)."
        )
    if asked.spec.tiers == spec.tiers:
        return asked
    if isinstance(asked, WorkloadPlan):
        return replace(asked, spec=spec, parts=tuple(replace(part, spec=spec) for part in asked.parts))
    return replace(asked, spec=spec)


def _carry_out(
    table: Table, decided: Plan | WorkloadPlan, left: Left | None, summary: Summary | None = None
) -> Release | WorkloadRelease:
    """All answers, or an error."""
    if isinstance(decided, WorkloadPlan):
        return WorkloadRelease(decided, tuple(_carry_out_one(table, part, left, None) for part in decided.parts))
    return _carry_out_one(table, decided, left, summary)


def _carry_out_one(table: Table, decided: Plan, left: Left | None, summary: Summary | None) -> Release:
    if isinstance(decided.query, Algorithm):
        rows = table._sampled(decided.query, left, decided.calibration.keep, SECURE)
        return Release(decided, _run(decided, rows), datetime.now(UTC))
    if decided.mechanism not in NO_DATA:
        way = _mechanism(decided).way(decided.query)
        if way.by_row:
            summary = table._summary(decided.query, left, thinning=(decided.calibration.keep, SECURE))
        elif summary is None or way.by_cell:
            summary = table._summary(decided.query, left, way.by_cell)
    value, found = _draw(decided, summary, SECURE)
    return Release(decided, value, datetime.now(UTC), tuple(found))


def _run(decided: Plan, rows: Any) -> Any:
    """What somebody's own algorithm returns. What it raises may quote the data, so that only its kind is told."""
    assert isinstance(decided.query, Algorithm) and decided.calibration.t is not None
    t = decided.calibration.t / (1 if decided.neighbors == "add-remove" else 2)
    epsilon = inf if decided.calibration.t == PUBLIC else nextafter(t / MICRO, 0.0)  # a division may round up
    try:
        value = decided.query.run(rows, epsilon)
        fault = "returned nothing" if value is None else ""
    except (Exception, SystemExit) as error:
        fault = f"raised a {type(error).__name__}"
    if fault:
        raise QueryError(
            f"the algorithm {decided.query.name} {fault}. Its text is not shown, because it may quote the data; try it on made-up rows first. "
            "Whoever it was run on has lost their charge all the same."
        )
    return value


def _answer(decided: Plan, summary: Summary | None, noise: Noise) -> Answer:
    """The one seam where noise comes in."""
    return _draw(decided, summary, noise)[0]


def _draw(decided: Plan, summary: Summary | None, noise: Noise) -> tuple[Answer, list[Fraction]]:
    """The answer, and what the mechanism released for it."""
    query, people = decided.query, decided.spec.total
    if decided.mechanism == "public":
        return float(people), []
    if decided.mechanism == "midpoint":
        return query.middle(people), []
    if summary is None or not (summary.people == decided.spec.people).all():
        raise SourceError(TABLE_CHANGED)
    found = _mechanism(decided).way(query).answer(summary, decided.calibration, query, noise)
    return query.finish(found, people), found


def _by_row(decided: Plan) -> bool:
    return decided.mechanism not in NO_DATA and _mechanism(decided).way(decided.query).by_row


def _mechanism(decided: Plan) -> Mechanism:
    return next(m for m in ALL if m.name == decided.mechanism)
