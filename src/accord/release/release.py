"""Release: reserve in the ledger, read, add noise, commit, in this order.

The only user of the secure noise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from accord import mechanisms, relation
from accord.budget import charges_text
from accord.errors import AccordError, LedgerError, PlanError, PrivacyWarning, QueryError, SourceError, warn
from accord.mechanisms.sample import SampleCalibration
from accord.noise import SECURE, Noise
from accord.people.public_groups import PublicGroups
from accord.people.spending import Charged, Unbooked
from accord.people.summary import Summary
from accord.planning import Plan, refuse_arguments
from accord.release.answer import answer, run_algorithm
from accord.release.repeated import released_data, repeated
from accord.release.result import Booked, Release
from accord.statistics import Algorithm, Grouped, Query, Workload, target_and_moves
from accord.statistics.query import A

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.charging import Answered, Reservation
    from accord.ledger.signing import Signature
    from accord.people.identity import Remaining
    from accord.people.reader import Reader, TableReader
    from accord.people.table import Table

    Groups: TypeAlias = Mapping[Any, tuple[Table, Plan]]

_LOG = logging.getLogger("accord")
_CHARGED = (
    "The release has been charged all the same, because reading had begun; its answer is not given out."
)


def release(
    table: Table,
    asked: Query[A] | Workload[A] | Plan[A],
    mechanism: str = "auto",
    share: float | None = None,
    *,
    t: float | str | None = None,
    ledger: Ledger | None = None,
    fresh: bool = False,
    actor: str | None = None,
    purpose: str | None = None,
) -> Release[A]:
    """Answer a query or a workload, or carry out a plan: reserve, read, add noise, commit.

    A table whose description names a ledger is booked there, whoever asks. What was asked before of the same
    version of a table is not drawn again, unless `fresh`.
    """
    ledger = table.own_ledger() if ledger is None else ledger
    signature = signed(ledger, actor, purpose)
    plan, read = _decided(table, asked, mechanism, share, t, ledger)
    groups = _groups(table, plan)
    for people, part in groups.values():
        _refuse_other_people(part, people, ledger is not None)
        refuse_keeping_rows(people.reader, part)
    if ledger is None:
        unbooked = _remember(table, groups)
        _LOG.debug("reading %s", _columns_read(plan))
        answers = _answers_without_ledger(table, plan, groups, read)
    elif not fresh and (booked := repeated(ledger, groups, signature)) is not None:
        unbooked, answers = None, booked
    else:
        unbooked = None
        reservations = _reserve(ledger, table, plan, groups, signature)
        with _charged(ledger, reservations.values()):
            entries = ", ".join(str(reservation.entry) for reservation in reservations.values())
            _LOG.debug("charged as entry %s; reading %s", entries, _columns_read(plan))
            answers = _read_and_add_noise(ledger, groups, reservations)
            answered = {key: _answered(each) for key, each in answers.items()}
        answers = _commit(ledger, reservations, answers, answered)
    _log_release(plan, answers, ledger is not None)
    if plan.is_grouped:
        given = next(iter(answers.values())).repeated
        by_part = {key: answers.get(key) for key in plan.plans}
        return Release(plan, by_part=by_part, repeated=given, unbooked=unbooked)
    return answers[None] if unbooked is None else replace(answers[None], unbooked=unbooked)


# ---- decide: what is asked becomes a plan, and what cannot be released is refused ------------------------


def _refuse_ledger(ledger: object) -> None:
    """Refuse what is not one, such as the name of its file."""
    from accord.ledger import Ledger

    if not isinstance(ledger, Ledger | None):
        raise LedgerError(
            f"ledger= is a {type(ledger).__name__}. Open one: ledger=accord.Ledger('accord.db')."
        )


def signed(ledger: Ledger | None, actor: str | None, purpose: str | None) -> Signature:
    """Who asks, and why, if that is what the ledger wants to be told; before anything is read."""
    from accord.ledger.refusing import counting
    from accord.ledger.requiring import refuse_unsigned_early
    from accord.ledger.signing import UNSIGNED, Signature

    _refuse_ledger(ledger)
    signature = Signature(actor, purpose)
    if ledger is not None:
        with counting(ledger.books, signature):
            refuse_unsigned_early(ledger.books, signature)
    elif signature != UNSIGNED:
        raise LedgerError("actor= and purpose= are booked in a ledger. Give ledger=, or leave them out.")
    return signature


def _decided(
    table: Table,
    asked: Query | Workload | Plan,
    mechanism: str,
    share: float | None,
    t: float | str | None,
    ledger: Ledger | None,
) -> tuple[Plan, list[Summary] | None]:
    """The plan; and what was read together with the levels, if these were not known and the plan can use it.

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
            "Make one with accord.mean or its siblings; several together are accord.workload([…])."
        )
    if share is None and ledger is not None:
        raise PlanError(
            "with a ledger, say how much of everyone's level this may spend: share=0.1 is a tenth. "
            "Levels are for life, not for one question."
        )
    fraction = 1.0 if share is None else share
    refuse_arguments(asked, mechanism, fraction, t, table.neighbors)
    read = None
    if ledger is None and not table.reader.has_levels and _needs_sums_only(asked, mechanism, table.neighbors):
        read = [
            table.reader.summary(table.knowing(asked))
        ]  # levels and values from one scan; the plan sees the levels
    plan = table.plan(asked, mechanism, fraction, t=t)
    if read and (not plan.reads_data or plan.method.needs_cells or plan.method.keeps_rows):
        read = None
    return plan, read


def _needs_sums_only(asked: Query | Workload, mechanism: str, neighbors: str) -> TypeGuard[Query]:
    """Whether sums by level are all that a mechanism needs for a question about everyone.

    For `auto`, whether they are all that most need.
    """
    if isinstance(asked, Workload | Grouped | Algorithm):
        return False
    if mechanism == "auto":
        return True
    method = mechanisms.named(mechanism).method(target_and_moves(asked, relation.named(neighbors))[0])
    return not (method.keeps_rows or method.needs_cells)


def _named_as_here(plan: Plan, table: Table, has_ledger: bool) -> Plan:
    """A plan under the table's names of tiers, with what must be taken for granted of the table."""
    if plan.neighbors != table.neighbors:
        return plan  # which is refused
    spec = table.spec()
    if plan.spec == spec:
        if plan.spec.tiers == spec.tiers:
            return plan
        plans = {key: None if part is None else replace(part, spec=spec) for key, part in plan.plans.items()}
        return replace(plan, spec=spec, plans=plans)
    if has_ledger and plan.choice is not None:
        return replace(plan, notes=tuple(dict.fromkeys((*plan.notes, *table.check(plan.query)))))
    return plan


def _groups(table: Table, plan: Plan) -> Groups:
    """Whom a plan is about, and what for: everyone, or those of each public group in which somebody is."""
    if not plan.is_grouped:
        return {None: (table, plan)}
    assert isinstance(plan.query, Grouped)
    tables = table.groups(plan.query.part)
    return {key: (tables[key], part) for key, part in plan.plans.items() if part is not None}


def _refuse_other_people(plan: Plan, table: Table, has_ledger: bool) -> None:
    """Refuse a plan for other levels; with a ledger it may be for what is left, which the ledger checks."""
    if plan.neighbors != table.neighbors:
        raise PlanError(
            f"the plan is for neighbors={plan.neighbors!r}, the table for {table.neighbors!r}. "
            "Plan again with table.plan(query)."
        )
    if plan.spec != table.spec() and not has_ledger:
        raise PlanError(
            "the plan was made for other levels or other numbers of people than this table has. "
            "Plan again with table.plan(query) (or give the ledger from whose remaining(table) it was made)."
        )


def refuse_keeping_rows(reader: Reader, plan: Plan) -> None:
    """Refuse a plan that keeps rows at random where an engine cannot."""
    if plan.keeps_rows and not reader.lends:
        raise SourceError(
            "this table is read where it lies, where rows cannot be kept or left out one by one. "
            "Write it to a Parquet file or an Arrow table and open that, or choose another mechanism."
        )


# ---- without a ledger: remember ------------------------------------------------------------------------


def _remember(table: Table, groups: Groups) -> Unbooked | None:
    """Add what is charged to what this process knows of the table; a table's second release warns."""
    spending, group = table.reader.spending, table.reader.group
    charges = [(people.reader.group, Charged(part.spec.micro, part.cost)) for people, part in groups.values()]
    if spending.add(charges):
        warn(
            "this is the second release of this table in this process. Charges add up, and without a ledger "
            "nothing refuses the next one. To keep account: ledger = accord.Ledger('accord.db'), "
            "ledger.register(table, 'name'), table.release(…, share=…, ledger=ledger).",
            PrivacyWarning,
        )
    return spending.so_far(group)


# ---- reserve ---------------------------------------------------------------------------------------------


def _reserve(
    ledger: Ledger, table: Table, plan: Plan, groups: Groups, signature: Signature
) -> dict[Any, Reservation]:
    """Charge the people of all groups, or nobody, before anything is read."""
    from accord.ledger import charging, registering

    if plan.is_grouped:
        assert isinstance(plan.query, Grouped)
        by_name = {plan.query.part.name(key): people for key, (people, _) in groups.items()}
        registering.register_groups(ledger.books, table, by_name, signature)
    reservations = charging.reserve_all(ledger.books, list(groups.values()), signature)
    return dict(zip(groups, reservations, strict=True))


@contextmanager
def _charged(ledger: Ledger, reservations: Iterable[Reservation]) -> Iterator[None]:
    """Whatever goes wrong in here has been charged: it is booked as failed, and the error says so."""
    from accord.ledger import charging

    try:
        yield
    except BaseException as fault:
        for reservation in reservations:
            # where this fails it stays a reservation without an answer, which is charged as well
            with suppress(LedgerError):
                charging.settle(ledger.books, reservation, None)
        if isinstance(fault, AccordError):
            raise type(fault)(f"{fault} {_CHARGED}") from None
        raise


# ---- read, add noise -------------------------------------------------------------------------------------


def _read_and_add_noise(
    ledger: Ledger, groups: Groups, reservations: Mapping[Any, Reservation]
) -> dict[Any, Release]:
    """The answer about each group, whose people are those who were charged."""
    from accord.ledger import charging

    answers = {}
    for key, (people, part) in groups.items():
        answers[key] = carry_out(people.reader, part, SECURE, reservations[key].remaining)
        charging.refuse_changed_table(ledger.books, people, reservations[key])
    return answers


def _answers_without_ledger(
    table: Table, plan: Plan, groups: Groups, read: list[Summary] | None
) -> dict[Any, Release]:
    """The answer about each group; nothing is booked. `read`: what was read already, about everyone."""
    by_group = _read_groups(table.reader, plan, groups) if plan.is_grouped else {None: read}
    return {
        key: carry_out(people.reader, part, SECURE, None, by_group.get(key))
        for key, (people, part) in groups.items()
    }


def carry_out(
    reader: Reader,
    plan: Plan,
    noise: Noise,
    remaining: Remaining | None = None,
    read: list[Summary] | None = None,
) -> Release:
    """Read and add noise: all answers of a plan, or an error.

    `read`: what one question needs, where that has been read already.
    """
    if plan.choice is None:
        parts = {
            key: carry_out(reader, part, noise, remaining)
            for key, part in plan.plans.items()
            if part is not None
        }
        return Release(plan, by_part=parts)
    if isinstance(plan.query, Algorithm):
        assert isinstance(plan.calibration, SampleCalibration)
        rows = reader.rows(plan.query, remaining, plan.calibration.keep, noise)
        return Release(plan, run_algorithm(plan, rows), datetime.now(UTC))
    summaries = read or read_summaries(reader, plan, noise, remaining)
    value, released = answer(plan, summaries, noise)
    return Release(plan, value, datetime.now(UTC), released)


def read_summaries(
    reader: Reader, plan: Plan, noise: Noise, remaining: Remaining | None = None
) -> list[Summary] | None:
    """The integers that a plan for one question needs, for each of its private groups; None if it needs none.

    Which rows are kept may be up to the noise.
    """
    if not plan.reads_data:
        return None
    if plan.method.keeps_rows:
        assert isinstance(plan.calibration, SampleCalibration)
        return reader.summaries(plan.as_read, remaining, thinning=(plan.calibration.keep, noise))
    return reader.summaries(plan.as_read, remaining, plan.method.needs_cells)


def _read_groups(reader: TableReader, plan: Plan, groups: Groups) -> dict[Any, list[Summary]]:
    """The integers that the plans of public groups need: one scan for all that need the same.

    Not of those that keep rows at random.
    """
    assert isinstance(plan.query, Grouped)
    scans: dict[tuple[Any, bool], dict[int, Any]] = {}  # what is read, for which keys by their places
    for place, key in enumerate(plan.query.part.keys or (None,)):
        part = plan.plans.get(key)
        if part is not None and part.reads_data and not part.keeps_rows:
            scans.setdefault((part.as_read, part.method.needs_cells), {})[place] = key
    public_groups = PublicGroups(reader, plan.query.part)
    read: dict[Any, list[Summary]] = {}
    for (query, by_cell), keys in scans.items():
        specs = {place: groups[key][1].spec for place, key in keys.items()}
        by_place = public_groups.summaries(query, by_cell, specs)
        read |= {keys[place]: summaries for place, summaries in by_place.items()}
    return read


# ---- commit ----------------------------------------------------------------------------------------------


def _answered(release: Release) -> Answered:
    """What is booked of answers: their receipts, and what they can be made from again."""
    from accord.ledger.charging import Answered

    return Answered([part.receipt() for part in release.parts], released_data(release))


def _commit(
    ledger: Ledger,
    reservations: Mapping[Any, Reservation],
    answers: Mapping[Any, Release],
    answered: Mapping[Any, Answered],
) -> dict[Any, Release]:
    """Book every answer with its receipts: none leaves that the ledger does not have."""
    from accord.ledger import charging

    try:
        done = [(reservation, answered[key]) for key, reservation in reservations.items()]
        entries = charging.settle_all(ledger.books, done)
    except LedgerError as fault:
        raise LedgerError(f"{fault} {_CHARGED}") from None
    return {
        key: replace(answers[key], booked=Booked(entry.seq, entry.hash))
        for key, entry in zip(reservations, entries, strict=True)
    }


def _columns_read(plan: Plan) -> str:
    read = (column for part in plan.parts if part.reads_data for column in part.query.columns)
    return ", ".join(dict.fromkeys(read)) or "no column"


def _log_release(plan: Plan, answers: Mapping[Any, Release], is_booked: bool) -> None:
    """What was released and what it cost, by public things alone."""
    if not _LOG.isEnabledFor(logging.INFO):
        return
    entries = [str(release.booked.entry) for release in answers.values() if release.booked is not None]
    if any(release.repeated is not None for release in answers.values()):
        _LOG.info("given out again: %r, booked as entry %s", plan, ", ".join(entries))
        return
    charges = "each group by its own plan" if plan.is_grouped else charges_text(plan.spec.micro, plan.cost)
    where = f"booked as entry {', '.join(entries)}" if is_booked else "booked nowhere"
    _LOG.info("released %r, charges %s, %s", plan, charges, where)
