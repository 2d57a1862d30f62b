"""Release: reserve in the ledger, read, add noise, commit, in this order.

The only user of the secure noise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from accord.budget import charges_text
from accord.errors import AccordError, LedgerError, PlanError, PrivacyWarning, warn
from accord.mechanisms.sample import SampleCalibration
from accord.noise import SECURE, Noise
from accord.people.public_groups import PublicGroups
from accord.people.spending import Charged, Group, Unbooked
from accord.people.summary import Summary
from accord.planning import Plan
from accord.release.answer import answer, answers_together, run_algorithm
from accord.release.deciding import decided, groups_of, refuse_keeping_rows, refuse_other_people, signed
from accord.release.repeated import released_data, repeated
from accord.release.result import Booked, Release
from accord.release.retimed import retimed
from accord.statistics import Algorithm, Grouped, Query, Workload
from accord.statistics.query import A

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.chain import Entry
    from accord.ledger.charging import Answered, Reservation
    from accord.ledger.signing import Signature
    from accord.ledger.store import Session
    from accord.mechanisms.record import Mechanism
    from accord.people.identity import Remaining
    from accord.people.reader import Reader, TableReader
    from accord.people.table import Table
    from accord.release.deciding import Groups
    from accord.release.sizing import SizeChoice


class Request(Protocol):
    """What is told of a release, in the transactions that charge people and book the answer.

    Either may refuse, and then nothing of the transaction counts.
    """

    def charged(self, db: Session, reservations: Sequence[Reservation]) -> None:
        """People are charged."""
        ...

    def read(self) -> None:
        """Values are read, or that has failed; what came of it is booked when this returns."""
        ...

    def answered(self, db: Session, release: Release) -> None:
        """The answer is booked."""
        ...


_LOG = logging.getLogger("accord")
_CHARGED = (
    "The release has been charged all the same, because reading had begun; its answer is not given out."
)


def release(
    table: Table,
    asked: Query[A] | Workload[A] | Plan[A],
    mechanism: str | Mechanism = "auto",
    share: float | None = None,
    *,
    t: float | str | None = None,
    ledger: Ledger | None = None,
    fresh: bool = False,
    actor: str | None = None,
    purpose: str | None = None,
    request: Request | None = None,
) -> Release[A]:
    """Answer a query or a workload, or carry out a plan: reserve, read, add noise, commit.

    A table whose description names a ledger is booked there, whoever asks. What was asked before of the same
    version of a table is not drawn again, unless `fresh`. `request`: what is told, in the ledger's own
    transactions, that people are charged, and what the answer is.
    """
    if not isinstance(fresh, bool):
        raise PlanError(f"fresh={fresh!r} is not True or False. True draws anew, and charges again.")
    ledger = table.own_ledger() if ledger is None else ledger
    signature = signed(ledger, actor, purpose)
    plan, read = decided(table, asked, mechanism, share, t, ledger)
    groups = groups_of(table, plan)
    for people, part in groups.values():
        refuse_other_people(part, people, ledger is not None)
        refuse_keeping_rows(people.reader, part)
    if ledger is None:
        unbooked = remember(
            table,
            [(people.reader.group, Charged(part.spec.micro, part.cost)) for people, part in groups.values()],
        )
        _LOG.debug("reading %s", _columns_read(plan))
        answers = _answers_without_ledger(table, plan, groups, read)
    elif not fresh and (booked := repeated(ledger, groups, signature)) is not None:
        unbooked, answers = None, booked
    else:
        unbooked = None
        reservations = _reserve(ledger, table, plan, groups, signature, request)
        with charged(ledger, reservations.values(), request):
            entries = ", ".join(str(reservation.entry) for reservation in reservations.values())
            _LOG.debug("charged as entry %s; reading %s", entries, _columns_read(plan))
            charged_at = datetime.now(UTC)
            answers = _read_and_add_noise(ledger, groups, reservations)
            if request is not None:  # whoever asks for it from elsewhere may not know how long it took
                answers = retimed(answers, charged_at)
            answered = {key: _answered(each) for key, each in answers.items()}
        if request is not None:
            request.read()
        answers = _commit(ledger, plan, reservations, answers, answered, request)
    _log_release(plan, answers, ledger is not None)
    return _given_out(plan, answers, unbooked)


def _given_out(plan: Plan, answers: Mapping[Any, Release], unbooked: Unbooked | None = None) -> Release:
    """What is handed out, of the answers about each group."""
    if plan.is_grouped:
        given = next(iter(answers.values())).repeated
        by_part = {key: answers.get(key) for key in plan.plans}
        return Release(plan, by_part=by_part, repeated=given, unbooked=unbooked)
    return answers[None] if unbooked is None else replace(answers[None], unbooked=unbooked)


def expect(
    table: Table,
    query: Query | None,
    share: float,
    sizes: Sequence[float] | None,
    ledger: Ledger | None,
    actor: str | None,
    purpose: str | None,
) -> SizeChoice:
    """Choose privately for how many people to plan: see `Table.expect`."""
    from accord.release.sizing import SIZES, choose_size

    listed = SIZES if sizes is None else sizes
    return choose_size(table, query, share, listed, ledger, actor, purpose, SECURE)


# ---- without a ledger: remember ------------------------------------------------------------------------


def remember(table: Table, charges: Iterable[tuple[Group, Charged]]) -> Unbooked | None:
    """Add what is charged to what this process knows of the table; a table's second release warns."""
    spending, group = table.reader.spending, table.reader.group
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
    ledger: Ledger,
    table: Table,
    plan: Plan,
    groups: Groups,
    signature: Signature,
    request: Request | None,
) -> dict[Any, Reservation]:
    """Charge the people of all groups, or nobody, before anything is read."""
    from accord.ledger import charging, registering

    if plan.is_grouped:
        assert isinstance(plan.query, Grouped)
        by_name = {plan.query.part.name(key): people for key, (people, _) in groups.items()}
        registering.register_groups(ledger.books, table, by_name, signature)
    also = None if request is None else request.charged
    reservations = charging.reserve_all(ledger.books, list(groups.values()), signature, also)
    return dict(zip(groups, reservations, strict=True))


@contextmanager
def charged(
    ledger: Ledger, reservations: Iterable[Reservation], request: Request | None = None
) -> Iterator[None]:
    """Whatever goes wrong in here has been charged: it is booked as failed, and the error says so."""
    from accord.ledger import charging

    try:
        yield
    except BaseException as fault:
        if request is not None:
            request.read()
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
    table: Table, plan: Plan, groups: Groups, read: Sequence[Summary] | None
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
    read: Sequence[Summary] | None = None,
) -> Release:
    """Read and add noise: all answers of a plan, or an error.

    `read`: what one question needs, where that has been read already.
    """
    if plan.choice is None:
        parts: dict[Any, Release] = {}
        for keys in plan.boxes:
            parts |= _carry_out_together(reader, {key: plan.plans[key] for key in keys}, noise, remaining)
        for key, part in plan.plans.items():
            if part is not None and key not in parts:
                parts[key] = carry_out(reader, part, noise, remaining)
        return Release(plan, by_part={key: parts[key] for key in plan.plans if key in parts})
    if isinstance(plan.query, Algorithm):
        assert isinstance(plan.calibration, SampleCalibration)
        rows = reader.rows(plan.query, remaining, plan.calibration.keep, noise)
        return Release(plan, run_algorithm(plan, rows), datetime.now(UTC))
    summaries = read or read_summaries(reader, plan, noise, remaining)
    value, released = answer(plan, summaries, noise)
    return Release(plan, value, datetime.now(UTC), released)


def _carry_out_together(
    reader: Reader, plans: Mapping[Any, Plan | None], noise: Noise, remaining: Remaining | None
) -> dict[Any, Release]:
    """Read and add noise: of questions that share one noise, which is drawn once."""
    boxed = {key: plan for key, plan in plans.items() if plan is not None}
    summaries = [read_summaries(reader, plan, noise, remaining) or [] for plan in boxed.values()]
    drawn = answers_together(list(boxed.values()), summaries, noise)
    time = datetime.now(UTC)  # one draw has one time: numbers.py tells draws apart by it
    return {
        key: Release(plan, value, time, released)
        for (key, plan), (value, released) in zip(boxed.items(), drawn, strict=True)
    }


def read_summaries(
    reader: Reader, plan: Plan, noise: Noise, remaining: Remaining | None = None
) -> Sequence[Summary] | None:
    """The integers that a plan for one question needs, for each of its private groups; None if it needs none.

    Which rows are kept may be up to the noise.
    """
    if not plan.reads_data:
        return None
    if plan.method.keeps_rows:
        assert isinstance(plan.calibration, SampleCalibration)
        return reader.summaries(plan.as_read, remaining, thinning=(plan.calibration.keep, noise))
    return reader.summaries(plan.as_read, remaining, plan.method.needs_cells)


def _read_groups(reader: TableReader, plan: Plan, groups: Groups) -> dict[Any, Sequence[Summary]]:
    """The integers that the plans of public groups need: one scan for all that need the same.

    Not of those that keep rows at random.
    """
    assert isinstance(plan.query, Grouped)
    scans: dict[tuple[Any, bool], dict[int, Any]] = {}  # what is read, for which keys by their places
    for place, key in enumerate(plan.query.part.groups or (None,)):
        part = plan.plans.get(key)
        if part is not None and part.reads_data and not part.keeps_rows:
            scans.setdefault((part.as_read, part.method.needs_cells), {})[place] = key
    public_groups = PublicGroups(reader, plan.query.part)
    read: dict[Any, Sequence[Summary]] = {}
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
    plan: Plan,
    reservations: Mapping[Any, Reservation],
    answers: Mapping[Any, Release],
    answered: Mapping[Any, Answered],
    request: Request | None,
) -> dict[Any, Release]:
    """Book every answer with its receipts: none leaves that the ledger does not have."""

    def booked(entries: Sequence[Entry]) -> dict[Any, Release]:
        each = zip(reservations, entries, strict=True)
        return {key: replace(answers[key], booked=Booked(entry.seq, entry.hash)) for key, entry in each}

    def also(db: Session, entries: Sequence[Entry]) -> None:
        if request is not None:
            request.answered(db, _given_out(plan, booked(entries)))

    done = [(reservation, answered[key]) for key, reservation in reservations.items()]
    return booked(book(ledger, done, also))


def book(
    ledger: Ledger,
    done: Sequence[tuple[Reservation, Answered]],
    also: Callable[[Session, Sequence[Entry]], None] | None = None,
) -> list[Entry]:
    """Book what came of reservations, all at once; an error says that they were charged all the same."""
    from accord.ledger import charging

    try:
        return charging.settle_all(ledger.books, done, also)
    except LedgerError as fault:
        raise LedgerError(f"{fault} {_CHARGED}") from None


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
