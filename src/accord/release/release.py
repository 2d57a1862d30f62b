"""Release: reserve in the ledger, read, add noise, book, in this order, and say what it cost.

The only user of noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeGuard

from accord import mechanisms, relation
from accord.errors import AccordError, LedgerError, PlanError, QueryError, SourceError
from accord.mechanisms.sample import Sampled
from accord.noise import SECURE, Noise
from accord.people.summary import Summary
from accord.planning import Plan, refuse_arguments
from accord.release.answer import answer, run
from accord.release.result import Booked, Release
from accord.statistics import Algorithm, Grouped, Query, Workload, answered

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.charging import Reservation
    from accord.people.identity import Remaining
    from accord.people.reader import Reader
    from accord.people.table import Table

_CHARGED = (
    "The release has been charged all the same, because reading had begun; its answer is not given out."
)


def release(
    table: Table,
    asked: Query | Workload | Plan,
    mechanism: str = "auto",
    share: float | None = None,
    *,
    t: float | str | None = None,
    ledger: Ledger | None = None,
) -> Release:
    """Answer a query or a workload, or carry out a plan: reserve, read, add noise, commit."""
    _refuse_ledger(ledger)
    plan, summary = _decided(table, asked, mechanism, share, t, ledger)
    people = _people(table, plan)
    for group, part in people.values():
        _refuse_other_people(part, group, ledger is not None)
        refuse_keeping_rows(group, part)
    if ledger is not None:
        answers = _booked(table, plan, people, ledger)
    else:
        read = _read_groups(table, plan, people) if plan.is_grouped else {None: summary}
        answers = {
            key: carry_out(group, part, SECURE, read=read.get(key)) for key, (group, part) in people.items()
        }
    return (
        Release(plan, by_part={key: answers.get(key) for key in plan.plans})
        if plan.is_grouped
        else answers[None]
    )


def _decided(
    table: Table,
    asked: Query | Workload | Plan,
    mechanism: str,
    share: float | None,
    t: float | str | None,
    ledger: Ledger | None,
) -> tuple[Plan, list[Summary] | None]:
    """The plan, and what was read together with the levels, if they were not known and it is of use.

    Raises:
        PlanError, QueryError: what is asked cannot be released so.
    """
    if isinstance(asked, Plan):
        if (mechanism, share, t) != ("auto", None, None):
            raise PlanError(
                "a plan has its mechanism and share already. Release it as it is, or give the query instead."
            )
        return (asked if asked.is_grouped else _named_as_here(asked, table, ledger is not None)), None
    if not isinstance(asked, Query | Workload):
        raise QueryError(
            f"a release answers a query or a plan, not {type(asked).__name__}. "
            "Make one with accord.mean or its siblings."
        )
    if share is None and ledger is not None:
        raise PlanError(
            "with a ledger, say how much of everyone's level this may spend: share=0.1 is a tenth. Levels "
            "are for life, "
            "not for one question."
        )
    fraction = 1.0 if share is None else share
    refuse_arguments(asked, mechanism, fraction, t, table.neighbors)
    read = None
    if not table.known and ledger is None and _is_summed(asked, mechanism, table.neighbors):
        read = [table.reader.summary(asked)]  # levels and values from one scan; the plan sees the levels
    plan = table.plan(asked, mechanism, fraction, t=t)
    is_enough = (
        read is not None and plan.reads_data and not (plan.method.needs_cells or plan.method.keeps_rows)
    )
    return plan, read if is_enough else None


def _people(table: Table, plan: Plan) -> dict[Any, tuple[Table, Plan]]:
    """Whom a plan is about, and what for: everyone, or those of each public group in which somebody is."""
    if not plan.is_grouped:
        return {None: (table, plan)}
    assert isinstance(plan.query, Grouped)
    groups = table.groups(plan.query.part)
    return {key: (groups[key], part) for key, part in plan.plans.items() if part is not None}


def _refuse_ledger(ledger: object) -> None:
    """Refuse what is not one, such as the name of its file."""
    from accord.ledger import Ledger

    if not isinstance(ledger, Ledger | None):
        raise LedgerError(
            f"ledger= is a {type(ledger).__name__}. Open one: ledger=accord.Ledger('accord.db')."
        )


def _booked(
    table: Table, plan: Plan, people: Mapping[Any, tuple[Table, Plan]], ledger: Ledger
) -> dict[Any, Release]:
    """All are charged before any is read, or none; an answer is given out when it is booked."""
    from accord.ledger import charging, registering

    if plan.is_grouped:
        assert isinstance(plan.query, Grouped)
        named = {plan.query.part.name(key): group for key, (group, _) in people.items()}
        registering.register_groups(ledger.books, table, named)
    reservations = charging.reserve_all(ledger.books, list(people.values()))
    answers = {}
    with _charged(ledger, reservations):
        for (key, (group, part)), reservation in zip(people.items(), reservations, strict=True):
            answers[key] = carry_out(group, part, SECURE, reservation.remaining)
            charging.recognise(ledger.books, group, reservation)
        receipts = {key: [part.receipt() for part in answer.parts] for key, answer in answers.items()}
    return {
        key: replace(answers[key], booked=_settled(ledger, reservation, receipts[key]))
        for key, reservation in zip(people, reservations, strict=True)
    }


def _read_groups(
    table: Table, plan: Plan, people: Mapping[Any, tuple[Table, Plan]]
) -> dict[Any, list[Summary]]:
    """The integers that the plans of public groups need: one scan for all that need the same.

    Not of those that keep rows at random.
    """
    assert isinstance(plan.query, Grouped)
    alike: dict[tuple[Any, bool], dict[int, Any]] = {}
    for place, key in enumerate(plan.query.part.keys or (None,)):
        own = plan.plans.get(key)
        if own is not None and own.reads_data and not own.keeps_rows:
            alike.setdefault((own.query, own.method.needs_cells), {})[place] = key
    read: dict[Any, list[Summary]] = {}
    for (query, by_cell), keys in alike.items():
        specs = {place: people[key][1].spec for place, key in keys.items()}
        by_place = table.reader.summaries_of_groups(plan.query.part, query, by_cell, specs)
        read |= {keys[place]: summaries for place, summaries in by_place.items()}
    return read


def refuse_keeping_rows(table: Table, plan: Plan) -> None:
    """Refuse a plan that keeps rows at random where an engine cannot."""
    if not table.reader.lends and any(part.keeps_rows for part in plan.parts):
        raise SourceError(
            "rows of a Spark DataFrame or a PostgreSQL table cannot be kept or left out one by one. Write it "
            "to a "
            "Parquet file or an Arrow table and open that, or choose another mechanism."
        )


@contextmanager
def _charged(ledger: Ledger, reservations: list[Reservation]) -> Iterator[None]:
    """Whatever goes wrong in here has been charged: it is booked as failed, and the error says so."""
    from accord.ledger import charging

    try:
        yield
    except BaseException as fault:
        for reservation in reservations:
            with suppress(
                LedgerError
            ):  # then it stays a reservation without an answer, which is charged as well
                charging.settle(ledger.books, reservation, None)
        if isinstance(fault, AccordError):
            raise type(fault)(f"{fault} {_CHARGED}") from None
        raise


def _settled(ledger: Ledger, reservation: Reservation, receipts: list[dict[str, Any]]) -> Booked:
    """No answer leaves that the books do not have."""
    from accord.ledger import charging

    try:
        entry = charging.settle(ledger.books, reservation, receipts)
    except LedgerError as fault:
        raise LedgerError(f"{fault} {_CHARGED}") from None
    return Booked(entry.seq, entry.hash)


def _refuse_other_people(plan: Plan, table: Table, booked: bool) -> None:
    """Refuse a plan for other levels; with a ledger it may be for what is left, which the ledger checks."""
    if plan.neighbors != table.neighbors:
        raise PlanError(
            f"the plan is for neighbors={plan.neighbors!r}, the table for {table.neighbors!r}. "
            "Plan again with table.plan(query)."
        )
    if plan.spec != table.spec() and not booked:
        raise PlanError(
            "the plan was made for other levels or other numbers of people than this table has. Plan again "
            "with "
            "table.plan(query) (or give the ledger from whose remaining(table) it was made)."
        )


def _named_as_here(plan: Plan, table: Table, booked: bool) -> Plan:
    """A plan under the table's names of tiers, with what must be taken for granted of the table."""
    if plan.neighbors != table.neighbors:
        return plan  # which is refused
    spec = table.spec()
    if plan.spec == spec:
        if plan.spec.tiers == spec.tiers:
            return plan
        own = {key: None if part is None else replace(part, spec=spec) for key, part in plan.plans.items()}
        return replace(plan, spec=spec, plans=own)
    if booked and plan.choice is not None:
        return replace(plan, notes=tuple(dict.fromkeys((*plan.notes, *table.check(plan.query)))))
    return plan


def carry_out(
    table: Table,
    plan: Plan,
    noise: Noise,
    remaining: Remaining | None = None,
    read: list[Summary] | None = None,
) -> Release:
    """All answers, or an error; nothing is booked.

    `read`: what one question needs, where that has been read already.
    """
    if plan.choice is None:
        each = {
            key: carry_out(table, part, noise, remaining)
            for key, part in plan.plans.items()
            if part is not None
        }
        return Release(plan, by_part=each)
    if isinstance(plan.query, Algorithm):
        assert isinstance(plan.calibration, Sampled)
        rows = table.reader.rows(plan.query, remaining, plan.calibration.keep, noise)
        return Release(plan, run(plan, rows), datetime.now(UTC))
    value, released = answer(plan, read or summaries(table.reader, plan, noise, remaining), noise)
    return Release(plan, value, datetime.now(UTC), released)


def summaries(
    reader: Reader, plan: Plan, noise: Noise, remaining: Remaining | None = None
) -> list[Summary] | None:
    """The integers that a plan for one question needs, for each of its private groups; None if it needs none.

    Which rows are kept may be up to the noise.
    """
    if not plan.reads_data:
        return None
    assert isinstance(plan.query, Query)
    if plan.method.keeps_rows:
        assert isinstance(plan.calibration, Sampled)
        return reader.summaries(plan.query, remaining, thinning=(plan.calibration.keep, noise))
    return reader.summaries(plan.query, remaining, plan.method.needs_cells)


def _is_summed(asked: Query | Workload, mechanism: str, neighbors: str) -> TypeGuard[Query]:
    """Whether the sums by level are all that a mechanism needs of a question about everyone; of `auto`, that
    most need.
    """
    if isinstance(asked, Workload | Grouped | Algorithm):
        return False
    if mechanism == "auto":
        return True
    method = mechanisms.named(mechanism).method(answered(asked, relation.named(neighbors))[0])
    return not (method.keeps_rows or method.needs_cells)
