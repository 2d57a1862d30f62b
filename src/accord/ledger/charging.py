"""Charging: a release is paid for before anything is read, and its answer is booked afterwards.

    reserve               charge everyone whom a plan reads, all of them or nobody
    refuse_changed_table  unless the people who were read are those who were charged
    settle                book what came of it: receipts, or that nothing was released

What was reserved stays charged, whatever happens then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import accord
from accord.budget import PUBLIC, IntArray
from accord.errors import TABLE_CHANGED, BudgetError, LedgerError, PlanError, SourceError
from accord.ledger import menus
from accord.ledger.accounts import (
    Accounts,
    CohortsOfTable,
    TableRow,
    checked_accounts,
    confirm_stored,
    people_digest,
    read_everyone,
)
from accord.ledger.booked_lines import booked_lines, expected_document
from accord.ledger.books import Books
from accord.ledger.chain import Entry, list_text
from accord.ledger.recognising import recognised, registered_table
from accord.ledger.refusing import counting
from accord.ledger.registering import agree_on_neighbors
from accord.ledger.renewing import up_to_date
from accord.ledger.repeating import question_of, remember
from accord.ledger.requiring import refuse_unsigned
from accord.ledger.shortage import too_little_text
from accord.ledger.signing import UNSIGNED, Signature
from accord.ledger.store import Session
from accord.ledger.validation import digests, newest_entry
from accord.ledger.withdrawing import withdrew_since
from accord.people.identity import Registrable, Remaining
from accord.planning import Plan
from accord.spec import Spec


@dataclass(frozen=True)
class Reservation:
    """A plan that is charged, and not yet answered."""

    entry: int
    """Its number in the chain."""
    remaining: Remaining | None
    """How the plan's people are told apart, if not by their level."""
    fingerprint: str
    """Of the people who are charged."""
    hash: str
    """Of its entry, to tell it from another with its number in another copy of the ledger."""
    table: int
    """The number of the table whose people are charged,"""
    version: int = 0
    """and of its version."""
    question: str | None = None
    """What was asked of which rows, to know it again; None: it is always drawn."""


@dataclass(frozen=True)
class Answered:
    """What came of a reservation, for each of its questions."""

    receipts: list[dict[str, Any]]
    released: list[Any]
    """What the mechanism released, as plain data: the answer follows from it and the plan."""


def reserve(books: Books, table: Registrable, plan: Plan, signature: Signature = UNSIGNED) -> Reservation:
    """Charge everyone for a plan, before anything is read; all or nobody."""
    return reserve_all(books, [(table, plan)], signature)[0]


def reserve_all(
    books: Books,
    asked: Sequence[tuple[Registrable, Plan]],
    signature: Signature = UNSIGNED,
    also: Callable[[Session, list[Reservation]], None] | None = None,
) -> list[Reservation]:
    """Charge everyone for plans about different people; all of them or nobody.

    `also`: what else is written in the same transaction, or refuses all of it.
    """
    fingerprints = [table.identity.fingerprint(books.secret) for table, _ in asked]
    with counting(books, signature, partial(_name_of, books, fingerprints)), books.writing() as db:
        reservations = [
            _charge(books, db, table, plan, fingerprint, signature)
            for (table, plan), fingerprint in zip(asked, fingerprints, strict=True)
        ]
        if also is not None:
            also(db, reservations)
        return reservations


def _name_of(books: Books, fingerprints: list[str]) -> str:
    """What the first of some tables is registered as; empty: as nothing."""
    with books.reading() as db:
        names = {row.fingerprint: row.name for row in checked_accounts(db).tables}
    return names.get(fingerprints[0], "")


def refuse_changed_table(books: Books, table: Registrable, reservation: Reservation) -> None:
    """Refuse a table that has changed while it was read: others may have been read than were charged."""
    if table.identity.fingerprint(books.secret) != reservation.fingerprint:
        raise SourceError(TABLE_CHANGED)


def settle(books: Books, reservation: Reservation, answered: Answered | None) -> Entry:
    """Book what came of a reservation; None: nothing was released. See `settle_all`."""
    return settle_all(books, [(reservation, answered)])[0]


def settle_all(
    books: Books,
    done: Sequence[tuple[Reservation, Answered | None]],
    also: Callable[[Session, list[Entry]], None] | None = None,
) -> list[Entry]:
    """Book what came of reservations, all at once: none of the answers is given out before.

    `also`: what else is written in the same transaction, if answers are booked.

    Raises:
        LedgerError: the ledger does not have one any more, so that its charge is forgotten; or somebody who
            may have been read has withdrawn meanwhile, and all are booked as failed.
    """
    with books.writing() as db:
        for reservation, _ in done:
            booked = db.rows("SELECT hash FROM accord_entry WHERE seq = ?", reservation.entry)
            if booked != [(reservation.hash,)]:
                raise LedgerError(
                    f"the ledger {books.label} does not have the reservation of this release any more: "
                    "an older copy of it was put in its place meanwhile. Ask again."
                )
        unchanged = digests(newest_entry(db))
        withdrew = any(
            answered is not None and withdrew_since(db, reservation.entry, reservation.table)
            for reservation, answered in done
        )
        entries = []
        for reservation, answered in done:
            content: dict[str, Any] = {"reserve": reservation.entry}
            if answered is None or withdrew:
                entries.append(books.append(db, "failed", content | unchanged))
                continue
            content["receipts"] = answered.receipts
            if reservation.question is not None:
                content |= {"question": reservation.question, "released": answered.released}
            entries.append(books.append(db, "release", content | unchanged))
            if reservation.question is not None:
                remember(db, reservation.question, reservation.table, reservation.version, entries[-1])
        if also is not None and not withdrew:
            also(db, entries)
    if withdrew:  # not above: that it failed is booked
        raise LedgerError("somebody of this table has withdrawn while it was read. Ask again.")
    return entries


def remaining(books: Books, table: Registrable) -> Spec:
    """What everyone in a table has left; those who have nothing left count as opted out."""
    return _remaining_spec(recognised(books, table)[1], table.spec())


def affordable(books: Books, table: Registrable, plan: Plan) -> int | None:
    """How many times more a plan could be released; None: without end."""
    _, cohorts = recognised(books, table)
    charge = _charge_by_cohort(cohorts, _planned_by_cohort(cohorts, table.spec(), plan.spec), plan)
    limited = (charge > 0) & (cohorts.level != PUBLIC)
    return int((cohorts.remaining[limited] // charge[limited]).min()) if limited.any() else None


def _charge(
    books: Books,
    db: Session,
    table: Registrable,
    plan: Plan,
    fingerprint: str,
    signature: Signature,
) -> Reservation:
    """Charge everyone for one plan, in a transaction, and book it."""
    before = up_to_date(books, db)
    refuse_unsigned(before.meta, signature)
    registered = registered_table(books, db, before, table, fingerprint)
    agree_on_neighbors(db, before, plan.neighbors)
    cohorts = before.cohorts_of(registered.id)
    planned = _planned_by_cohort(cohorts, table.spec(), plan.spec)
    charge = _charge_by_cohort(cohorts, planned, plan)
    if (charge < 0).any() or (charge > planned).any():
        fact = "the plan charges people more than their level, or less than nothing"
        raise PlanError(f"{fact}: it was tampered with. Plan again.")
    short = (charge > cohorts.remaining) & (cohorts.level != PUBLIC)
    if short.any():
        raise BudgetError(too_little_text(cohorts, charge, short))
    remaining = None
    if planned is not cohorts.chosen and plan.spec.is_expected:
        remaining = Remaining(plan.spec, _left_by_menu(cohorts, table.spec())[1], None)
    elif planned is not cohorts.chosen:
        remaining = _remaining_by_person(db, before, books.secret, table.spec(), cohorts, plan.spec)
        if remaining.by_person is not None and not table.lends:
            raise LedgerError(
                "people of one level have different amounts left here, and a table that is read where it "
                "lies cannot be matched with the ledger person by person. Write it to a Parquet file or an "
                "Arrow table and open that, or plan by share=; if somebody has withdrawn, register it anew "
                "from a source in which they are opted out. Nothing was spent."
            )
    queries = [part.query.label for part in plan.parts]
    entry = _book_charges(books, db, before, registered, charge, queries, signature, plan.spec)
    return Reservation(
        entry.seq,
        remaining,
        fingerprint,
        entry.hash,
        registered.id,
        registered.version,
        question_of(table, plan),
    )


def _book_charges(
    books: Books,
    db: Session,
    before: Accounts,
    registered: TableRow,
    charge: IntArray,
    queries: list[str],
    signature: Signature,
    planned: Spec | None = None,
) -> Entry:
    """Take what is charged to each cohort of a table, and book it; `planned`: the Spec of the plan."""
    cohorts = before.cohorts_of(registered.id)
    paying = np.flatnonzero(charge)
    charges = cohorts.id[paying], charge[paying]
    if db.charge(*charges) != paying.size:
        raise BudgetError("somebody has less left than this release would cost them. Nothing was spent.")
    after, digest = before.charged(*charges), people_digest(db)
    confirm_stored(db, after)
    return books.append(
        db,
        "reserve",
        {
            "accord": accord.__version__,
            "table": registered.name,
            "version": registered.version,
            "queries": queries,
            **signature.booked,
            "charges": list_text("charges", charges),
            "booked": booked_lines(cohorts, charge),
            **(
                {"expected": expected_document(planned)}
                if planned is not None and planned.is_expected
                else {}
            ),
            "digest": digest,
            "accounts": after.digest(digest),
        },
    )


# ---- public people ---------------------------------------------------------------------------------------


def reserve_public(
    books: Books, table: Registrable, question: str, signature: Signature
) -> tuple[Reservation, int]:
    """Charge ∞ to everyone in a table who has ∞ left, and nobody else; and how many they are.

    They are public in every table of the ledger, also in those that they left, and have not withdrawn.

    Raises:
        PlanError: there is nobody. Nothing is booked.
    """
    fingerprint = table.identity.fingerprint(books.secret)
    name = partial(_name_of, books, [fingerprint])
    with counting(books, signature, name), books.writing() as db:
        before = up_to_date(books, db)
        refuse_unsigned(before.meta, signature)
        registered = registered_table(books, db, before, table, fingerprint)
        agree_on_neighbors(db, before, table.neighbors)
        cohorts = before.cohorts_of(registered.id)
        is_public = (cohorts.chosen == PUBLIC) & (cohorts.level == PUBLIC)
        people = int(cohorts.people[is_public].sum())
        if not people:
            raise PlanError(
                "nobody in this table is public (level inf) in every table of the ledger, so that there is "
                "nobody whose values may be looked at. Declare bounds, keys and step from public knowledge. "
                "Nothing was spent."
            )
        remaining = None
        if (is_public != (cohorts.chosen == PUBLIC)).any():
            if not table.lends:
                raise LedgerError(
                    "some people who are public in this table are stricter in another table of the ledger, "
                    "or have withdrawn, and a table that is read where it lies cannot be matched with the "
                    "ledger person by person. Write it to a Parquet file or an Arrow table and open that. "
                    "Nothing was spent."
                )
            spec = _remaining_spec(cohorts, table.spec())
            remaining = _remaining_by_person(db, before, books.secret, table.spec(), cohorts, spec)
        charge = np.where(is_public, PUBLIC, 0)
        entry = _book_charges(books, db, before, registered, charge, [question], signature)
    return Reservation(
        entry.seq, remaining, fingerprint, entry.hash, registered.id, registered.version
    ), people


def reserve_levels(
    books: Books, table: Registrable, cost: IntArray, question: str, signature: Signature
) -> Reservation:
    """Charge every level of a table with private levels, for what has no plan."""
    fingerprint, spec = table.identity.fingerprint(books.secret), table.spec()
    name = partial(_name_of, books, [fingerprint])
    with counting(books, signature, name), books.writing() as db:
        before = up_to_date(books, db)
        refuse_unsigned(before.meta, signature)
        registered = registered_table(books, db, before, table, fingerprint)
        cohorts = before.cohorts_of(registered.id)
        charge = menus.charges(cohorts.level, cost[np.searchsorted(spec.micro, cohorts.chosen)])
        short = (charge > cohorts.remaining) & (cohorts.level != PUBLIC)
        if short.any():
            raise BudgetError(too_little_text(cohorts, charge, short))
        entry = _book_charges(books, db, before, registered, charge, [question], signature, spec)
    return Reservation(entry.seq, None, fingerprint, entry.hash, registered.id, registered.version)


# ---- what a plan charges each cohort ---------------------------------------------------------------------


def _planned_by_cohort(cohorts: CohortsOfTable, table: Spec, planned: Spec) -> IntArray:
    """What a plan goes by: everyone's level in the table, or what they have left."""
    if planned == table:
        return cohorts.chosen
    if table.is_expected:
        rest, by_level = _left_by_menu(cohorts, table)
        if planned == rest:
            return by_level[np.searchsorted(table.micro, cohorts.chosen)]
    elif planned == _remaining_spec(cohorts, table):
        return cohorts.remaining
    raise PlanError(
        "the plan was made for other levels than this table has, or what is left has changed since. "
        "Plan again: table.plan(query, share=…), or table.plan(query, remaining=ledger)."
    )


def _charge_by_cohort(cohorts: CohortsOfTable, planned: IntArray, plan: Plan) -> IntArray:
    """What a plan charges people by their level in its Spec; nothing if they have none there."""
    levels = plan.spec.micro
    place = np.minimum(np.searchsorted(levels, planned), levels.size - 1)
    charge = np.where(planned > 0, plan.cost[place], 0)
    return menus.charges(cohorts.level, charge) if plan.spec.is_expected else charge


def _remaining_spec(cohorts: CohortsOfTable, table: Spec) -> Spec:
    if table.is_expected:
        return _left_by_menu(cohorts, table)[0]
    return Spec(cohorts.remaining, cohorts.people, is_rest=True)


def _left_by_menu(cohorts: CohortsOfTable, table: Spec) -> tuple[Spec, IntArray]:
    """What private levels have left: as a Spec for as many as are expected, and level by level."""
    left = menus.left(cohorts.level, cohorts.allowed, cohorts.spent)
    return menus.remaining_spec(cohorts.level, left, table)


def _remaining_by_person(
    db: Session,
    accounts: Accounts,
    secret: tuple[str, ...],
    spec: Spec,
    cohorts: CohortsOfTable,
    planned: Spec,
) -> Remaining:
    """How to tell what each person has left: by level, if that decides it, else person by person."""
    remaining = cohorts.remaining
    least = np.full(spec.micro.size, PUBLIC, dtype=np.int64)
    most = np.zeros(spec.micro.size, dtype=np.int64)
    has_level = cohorts.chosen > 0
    place = np.searchsorted(spec.micro, cohorts.chosen[has_level])
    np.minimum.at(least, place, remaining[has_level])
    np.maximum.at(most, place, remaining[has_level])
    if (least == most).all():
        return Remaining(planned, least, None)
    hashes, cohort_of = read_everyone(db, accounts)
    order = np.argsort(cohorts.id)
    at = np.minimum(np.searchsorted(cohorts.id[order], cohort_of), cohorts.id.size - 1)
    is_member = cohorts.id[order][at] == cohort_of
    return Remaining(planned, None, (secret, hashes[is_member], remaining[order][at[is_member]]))
