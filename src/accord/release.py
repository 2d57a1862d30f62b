"""Release: reserve in the ledger, summarise, add noise, book, and say what it cost. The only module that touches noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, TypeGuard

from accord.budget import MICRO, PUBLIC
from accord.errors import TABLE_CHANGED, AccordError, LedgerError, PlanError, QueryError, SourceError
from accord.groups import GroupedPlan
from accord.mechanisms import ALL
from accord.mechanisms.record import Mechanism
from accord.noise import SECURE, Noise
from accord.people.summary import Summary
from accord.planning import NO_DATA, Plan, idle_error, refuse_arguments
from accord.statistics import Algorithm, Answer, Count, Grouped, Interval, Part, Query, Workload
from accord.workloads import WorkloadPlan, parts_of

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.books import Held
    from accord.people.identity import Remaining
    from accord.people.table import Table

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
    found: tuple[Any, ...] = field(default=(), repr=False)
    """What the mechanism released, before it became the value; of groups, a tuple for each."""
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
        query = self.plan.query
        if isinstance(query, Grouped) and query.part.by is not None:
            rows: Any = self.value
            found = self.found or [()] * query.groups
            return {
                row[query.part.by]: self._within(row["value"], f, confidence)
                for row, f in zip(rows, found, strict=True)
            }
        ends: Interval = self._within(self.value, self.found, confidence)
        return ends

    def _within(self, value: Answer, found: Sequence[Fraction], confidence: float) -> Any:
        by_size = self.plan.prediction.by_size
        if by_size is not None:
            return by_size.interval(float(found[-1]), confidence)
        stretch = self.plan.query.stretched(found) if found else 1.0
        if stretch is None:
            return self.plan.query.possible(self.plan.spec.total)
        return self.plan.prediction.interval(value, confidence, stretch)

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


@dataclass(frozen=True, repr=False)
class GroupedRelease:
    """The answers about all public groups; None for a group without anybody to ask."""

    plan: GroupedPlan
    releases: Mapping[Any, Release | None]

    @property
    def value(self) -> Any:
        """A row for each group, as for private ones; the answer itself where there is only a condition."""
        if self.plan.query.part.by is None:
            (alone,) = self.releases.values()
            return None if alone is None else alone.value
        return [self._row(key, made) for key, made in self.releases.items()]

    def _row(self, key: Any, made: Release | None) -> dict[str, Any]:
        row = {str(self.plan.query.part.by): key}
        if made is None:
            return {**row, "value": None, "rmse": None, "few": True}
        few = made.rmse > idle_error(made.plan.query, made.plan.spec.total) / 2 or made.mechanism == "midpoint"
        return {**row, "value": made.value, "rmse": made.rmse, "few": few}

    @property
    def charges(self) -> Mapping[Any, Mapping[float, float]]:
        return self.plan.charges

    def interval(self, confidence: float = 0.95) -> dict[Any, Any]:
        """{group: interval}; see `Release.interval`."""
        return {key: None if made is None else made.interval(confidence) for key, made in self.releases.items()}

    def receipt(self) -> dict[str, Any]:
        """The receipts of all answers: plain data, ready for JSON."""
        return {
            "schema": 1,
            "query": self.plan.query.describe(),
            "groups": [
                {"key": key, "receipt": None if made is None else made.receipt()} for key, made in self.releases.items()
            ],
        }

    def __str__(self) -> str:
        from accord.report.text import grouped_release_text

        return grouped_release_text(self)

    def __repr__(self) -> str:
        return f"<GroupedRelease: {self.plan.query.label}, {len(self.releases)} groups>"


def release(
    table: Table,
    asked: Query | Plan | Workload | WorkloadPlan | GroupedPlan,
    mechanism: str = "auto",
    share: float | None = None,
    *,
    t: float | str | None = None,
    ledger: Ledger | None = None,
) -> Release | WorkloadRelease | GroupedRelease:
    """Answer a query or a workload, or carry out a plan: reserve, summarise, add noise, book."""
    summary = None
    decided: Plan | WorkloadPlan | GroupedPlan
    _refuse_ledger(ledger)
    if isinstance(asked, Plan | WorkloadPlan | GroupedPlan):
        if (mechanism, share, t) != ("auto", None, None):
            raise PlanError(
                "a plan has its mechanism and share already. Release it as it is, or give the query instead."
            )
        decided = asked if isinstance(asked, GroupedPlan) else _accept(asked, table, ledger is not None)
    elif isinstance(asked, Query | Workload):
        if share is None and ledger is not None:
            raise PlanError(
                "with a ledger, say how much of everyone's level this may spend: share=0.1 is a tenth. Levels are for life, not for one question."
            )
        part = 1.0 if share is None else share
        refuse_arguments(asked, mechanism, part, t, table.neighbors)
        if not table.known and ledger is None and _is_summed(asked, mechanism):
            summary = table.reader.summary(asked)  # levels and values from one scan; the plan sees the levels
        decided = table.plan(asked, mechanism, part, t=t)
    else:
        raise QueryError(
            f"a release answers a query or a plan, not {type(asked).__name__}. Make one with accord.mean or its siblings."
        )
    if isinstance(decided, GroupedPlan):
        return _release_groups(table, decided, ledger)
    _refuse_by_row(table, decided)
    if ledger is None:
        return _carry_out(table, decided, None, summary)
    held = ledger._reserve(table, decided)
    with _charged(ledger, [held]):
        made = _carry_out(table, decided, held.left)
        ledger._recognise(table, held)
        receipts = [part.receipt() for part in (made.releases if isinstance(made, WorkloadRelease) else (made,))]
    return replace(made, booked=_settled(ledger, held, receipts))


def _refuse_ledger(ledger: object) -> None:
    """Refuse what is not one, such as the name of its file."""
    from accord.ledger import Ledger

    if not isinstance(ledger, Ledger | None):
        raise LedgerError(f"ledger= is a {type(ledger).__name__}. Open one: ledger=accord.Ledger('accord.db').")


def _release_groups(table: Table, decided: GroupedPlan, ledger: Ledger | None) -> GroupedRelease:
    """Every public group by itself; with a ledger all are charged before any is read, or none."""
    tables = table.groups(decided.query.part)
    asked = {key: (tables[key], plan) for key, plan in decided.plans.items() if plan is not None}
    for group, plan in asked.values():
        _accept(plan, group, ledger is not None)
        _refuse_by_row(group, plan)
    made: dict[Any, Release | None] = dict.fromkeys(decided.plans)
    if ledger is None:
        read = _read_groups(table, decided.query.part, asked)
        for key, (group, plan) in asked.items():
            made[key] = _carry_out_one(group, plan, None, None, read=read.get(key))
        return GroupedRelease(decided, made)
    ledger._register_groups(table, {decided.query.part.name(key): group for key, (group, _) in asked.items()})
    held = ledger._reserve_all(list(asked.values()))
    with _charged(ledger, held):
        for (key, (group, plan)), one in zip(asked.items(), held, strict=True):
            made[key] = _carry_out_one(group, plan, one.left, None)
            ledger._recognise(group, one)
    for key, one in zip(asked, held, strict=True):
        answer = made[key]
        assert answer is not None
        made[key] = replace(answer, booked=_settled(ledger, one, [answer.receipt()]))
    return GroupedRelease(decided, made)


def _read_groups(table: Table, part: Part, asked: Mapping[Any, tuple[Table, Plan]]) -> dict[Any, list[Summary]]:
    """The integers that the plans of public groups need: one scan for all plans that need the same. Not of those that choose rows."""
    alike: dict[tuple[Query, bool], dict[int, Any]] = {}
    for place, key in enumerate(part.keys or (None,)):
        plan = asked[key][1] if key in asked else None
        if plan is not None and plan.mechanism not in NO_DATA and not _by_row(plan):
            way = _mechanism(plan).way(_inner(plan.query))
            alike.setdefault((plan.query, way.by_cell), {})[place] = key
    read: dict[Any, list[Summary]] = {}
    for (query, by_cell), keys in alike.items():
        specs = {place: asked[key][0].spec() for place, key in keys.items()}
        found = table.reader.summaries_of_groups(part, query, by_cell, specs)
        read |= {keys[place]: summaries for place, summaries in found.items()}
    return read


def _refuse_by_row(table: Table, decided: Plan | WorkloadPlan) -> None:
    if not table.reader.lends and any(_by_row(part) for part in parts_of(decided)):
        raise SourceError(
            "rows of a Spark DataFrame or a PostgreSQL table cannot be kept or left out one by one. Write it to a Parquet file or an Arrow table and open that, or choose another mechanism."
        )


@contextmanager
def _charged(ledger: Ledger, held: list[Held]) -> Iterator[None]:
    """Whatever goes wrong in here has been charged: it is booked as failed, and the error says so."""
    try:
        yield
    except BaseException as fault:
        for one in held:
            with suppress(LedgerError):  # then it stays a reservation without an answer, which is charged as well
                ledger._settle(one, None)
        if isinstance(fault, AccordError):
            raise type(fault)(f"{fault} {_CHARGED}") from None
        raise


def _settled(ledger: Ledger, held: Held, receipts: list[dict[str, Any]]) -> Booked:
    """No answer leaves that the books do not have."""
    try:
        entry = ledger._settle(held, receipts)
    except LedgerError as fault:
        raise LedgerError(f"{fault} {_CHARGED}") from None
    return Booked(entry.seq, entry.hash)


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
    table: Table, decided: Plan | WorkloadPlan, left: Remaining | None, summary: Summary | None = None
) -> Release | WorkloadRelease:
    """All answers, or an error."""
    if isinstance(decided, WorkloadPlan):
        return WorkloadRelease(decided, tuple(_carry_out_one(table, part, left, None) for part in decided.parts))
    return _carry_out_one(table, decided, left, summary)


def _carry_out_one(
    table: Table,
    decided: Plan,
    left: Remaining | None,
    summary: Summary | None,
    noise: Noise | None = None,
    read: list[Summary] | None = None,
) -> Release:
    """One answer. `read`: what it needs, where that has been read already."""
    noise = noise or SECURE
    if isinstance(decided.query, Algorithm):
        rows = table.reader.rows(decided.query, left, decided.calibration.keep, noise)
        return Release(decided, _run(decided, rows), datetime.now(UTC))
    value, found = _draw(decided, read or _read(table, decided, left, summary, noise), noise)
    return Release(decided, value, datetime.now(UTC), tuple(found))


def _read(
    table: Table,
    decided: Plan,
    left: Remaining | None = None,
    summary: Summary | None = None,
    noise: Noise | None = None,
) -> list[Summary] | None:
    """The integers that a plan needs, for each of its groups; None if it needs none. Which rows are kept may be up to the noise."""
    if decided.mechanism in NO_DATA:
        return None
    way = _mechanism(decided).way(_inner(decided.query))
    if way.by_row:
        return table.reader.summaries(decided.query, left, thinning=(decided.calibration.keep, noise or SECURE))
    if summary is None or way.by_cell:
        return table.reader.summaries(decided.query, left, way.by_cell)
    return [summary]


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


def _answer(decided: Plan, summary: Summary | list[Summary] | None, noise: Noise) -> Answer:
    """The one seam where noise comes in. A question about groups has a Summary for each."""
    return _draw(decided, summary, noise)[0]


def _draw(
    decided: Plan, summary: Summary | list[Summary] | None, noise: Noise | None = None
) -> tuple[Answer, list[Any]]:
    """The answer, and what the mechanism released for it; of groups, for each."""
    query, people = decided.query, decided.spec.total
    if decided.mechanism == "public":
        return float(people), []
    keys = query.part.keys if isinstance(query, Grouped) else ()
    if decided.mechanism == "midpoint":
        middle = query.middle(people)
        rows: Any = [_row(decided, key, middle, ()) for key in keys]
        return (rows if keys else middle), []
    found, counts, asked = [], decided.spec.people, _inner(query)
    answer = _mechanism(decided).way(asked).answer
    for one in summary if isinstance(summary, list) else [summary]:
        if one is None or not (one.people is counts or (one.people == counts).all()):
            raise SourceError(TABLE_CHANGED)
        found.append(answer(one, decided.calibration, asked, noise or SECURE))
    if not keys:
        return query.finish(found[0], people), found[0]
    rows = [_row(decided, key, query.finish(f, people), f) for key, f in zip(keys, found, strict=True)]
    return rows, [tuple(f) for f in found]


def _row(decided: Plan, key: Any, value: Answer, found: Sequence[Fraction]) -> dict[str, Any]:
    """What is told about one group. Whether it has too few people is judged by the noisy answer."""
    query = decided.query
    assert isinstance(query, Grouped) and query.part.by is not None
    if not query.sized:
        few = isinstance(query.query, Count) and isinstance(value, float) and value < 2 * decided.rmse
        return {query.part.by: key, "value": value, "rmse": decided.rmse, "few": few}
    idle = idle_error(query, 1)  # of a mean, which is moved to the bounds, or of ranks
    if decided.prediction.by_size is not None:
        rmse = min(idle, decided.prediction.by_size.rmse_of(float(found[-1])))
    else:
        stretch = query.stretched(found) if found else 1.0
        rmse = idle if stretch is None else min(idle, decided.rmse * stretch)
    return {query.part.by: key, "value": value, "rmse": rmse, "few": rmse > idle / 2}


def _is_summed(asked: Query | Workload, mechanism: str) -> TypeGuard[Query]:
    """Whether the sums by level are all that a mechanism needs of a question about everyone; of `auto`, that most need."""
    if isinstance(asked, Workload | Grouped | Algorithm):
        return False
    if mechanism == "auto":
        return True
    way = next(m for m in ALL if m.name == mechanism).way(asked)
    return not (way.by_row or way.by_cell)


def _inner(query: Query) -> Query:
    return query.query if isinstance(query, Grouped) else query


def _by_row(decided: Plan) -> bool:
    return decided.mechanism not in NO_DATA and _mechanism(decided).way(_inner(decided.query)).by_row


def _mechanism(decided: Plan) -> Mechanism:
    return next(m for m in ALL if m.name == decided.mechanism)
