"""Registering: a table becomes known to a ledger, or a new version of it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import accord
from accord.budget import IntArray, level_text
from accord.errors import LedgerError
from accord.ledger.accounts import (
    Accounts,
    TableRow,
    checked_accounts,
    confirm_stored,
    read_everyone,
    write_cohorts,
    write_everyone,
)
from accord.ledger.books import Books, key_check
from accord.ledger.chain import list_text
from accord.ledger.cohorts import KEPT, Assignment, Changes, Leaving, assign, changes, factorize
from accord.ledger.policies import (
    last_registration,
    policy_changes,
    policy_of,
    refuse_group_and_table,
    refuse_other_policy,
)
from accord.ledger.recognising import recognised
from accord.ledger.refusing import counting
from accord.ledger.renewing import up_to_date
from accord.ledger.requiring import refuse_unsigned, refuse_unsigned_early
from accord.ledger.signing import UNSIGNED, Signature
from accord.ledger.store import Session
from accord.people import identity
from accord.people.identity import Registrable


@dataclass(frozen=True)
class Registration:
    """What the registration of a table changed."""

    name: str
    version: int
    people: int | None
    """None: levels are private, and nobody knows how many they are."""
    joined: int
    left: int
    lowered: int
    raised: int
    levels: int | None = None
    """How many there are on the menu of private levels; None: they are public."""

    def __str__(self) -> str:
        if self.people is None:
            return (
                f"registered {self.name!r}, version {self.version}: {self.levels} levels; who is there with "
                "which is private, and stays so"
            )
        if self.version == 1:
            return f"registered {self.name!r}: {self.people:,} people"
        return (
            f"{self.name!r} is at version {self.version}: {self.people:,} people; "
            f"since the last version {self.joined:,} joined, {self.left:,} left, "
            f"{self.lowered:,} lowered their level, {self.raised:,} raised it"
        )


@dataclass(frozen=True)
class Agreement:
    """What a registration may change of what is registered already, and in whose name."""

    raises: bool = False
    """Whether people may get a higher level in the table than they had in it."""
    policy: bool = False
    """Whether levels may come from elsewhere."""
    signature: Signature = UNSIGNED
    parent: int | None = None
    """Of a public group, the registered table that it is of, whose levels are agreed already."""

    def refuse_unsigned(self) -> None:
        """Refuse to raise levels, or to change the policy, in nobody's name or without a reason."""
        if self.raises:
            self.signature.refuse_incomplete("raising levels")
        if self.policy:
            self.signature.refuse_incomplete("another policy")


def register(books: Books, table: Registrable, name: str, agreement: Agreement | None = None) -> Registration:
    """Make a table known, or a new version of it: see `Ledger.register`."""
    agreement = agreement or Agreement()
    refuse_unregistrable(table, name)
    agreement.refuse_unsigned()
    with counting(books, agreement.signature, lambda: name):
        return _register(books, table, name, agreement)


def refuse_unregistrable(table: Any, name: Any) -> None:
    """Refuse what is no table, and what is no name."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise LedgerError("a table is registered under a name, such as 'people'.")
    if not isinstance(table, Registrable):
        raise LedgerError(f"a ledger registers tables of accord.table, not {type(table).__name__}.")


def _register(books: Books, table: Registrable, name: str, agreement: Agreement) -> Registration:
    refuse_unsigned_early(books, agreement.signature)
    hashes, levels = _people(table, books.secret)
    fingerprint = fingerprint_of(hashes, levels)
    with books.writing() as db:
        before = up_to_date(books, db)
        refuse_unsigned(before.meta, agreement.signature)
        agree_on_neighbors(db, before, table.neighbors)
        last = {row.name: row for row in before.tables}.get(name)
        number, version = next_version(before, last, fingerprint)
        registered = {} if last is None else last_registration(db, last.id)
        if last is not None:
            refuse_group_and_table(name, registered, agreement.parent)
        policy, policy_changed = _agreed_policy(table, name, registered, agreement)
        if last is not None and last.fingerprint == fingerprint and not policy_changed:
            return Registration(name, last.version, hashes.size, 0, 0, 0, 0)
        tiers = json.dumps({tier: level_text(level) for tier, level in table.spec().tiers.items()})
        row = TableRow(number, name, version, fingerprint, hashes.size, tiers)
        leaving = KEPT if agreement.parent is None else Leaving(True, agreement.parent)
        assignment = assign(*read_everyone(db, before), before.cohorts, number, hashes, levels, leaving)
        changed = changes(before.cohorts, assignment.moves, number)
        is_agreed = agreement.raises or (agreement.parent is not None and "leaving" in registered)
        if changed.raised and not is_agreed:
            raise LedgerError(_raised_text(name, changed.raised)).counted("raise")
        about: dict[str, Any] = {**agreement.signature.booked, "policy": policy, "leaving": "kept"}
        if agreement.parent is not None:
            about["group_of"] = agreement.parent
        _write(books, db, before, row, table.neighbors, assignment, changed, about)
    return Registration(name, version, hashes.size, *changed)


def register_groups(
    books: Books, table: Registrable, groups: Mapping[str, Registrable], signature: Signature = UNSIGNED
) -> None:
    """Make the public groups of a registered table known under their names.

    They are tables, too, so that their people can be charged by themselves. Their levels are those of the
    table, which were agreed when it was registered.
    """
    secret = books.secret
    registered, _ = recognised(books, table)
    with books.reading() as db:
        fingerprints = {row.fingerprint for row in checked_accounts(db).tables}
    for name, group in groups.items():
        if group.identity.fingerprint(secret) not in fingerprints:
            agreement = Agreement(signature=signature, parent=registered.id)
            register(books, group, f"{registered.name}: {name}", agreement)


def _agreed_policy(
    table: Registrable, name: str, registered: dict[str, Any], agreement: Agreement
) -> tuple[dict[str, Any] | None, bool]:
    """The policy to be booked, and whether it is another than the one that is; refused unless agreed to."""
    if agreement.parent is not None:
        return None, False
    now = table.policy
    before = policy_of(registered)
    if before is None:
        return now, True
    changed = policy_changes(before, now)
    if not agreement.policy:
        refuse_other_policy(name, changed)
    return now, bool(changed)


def _raised_text(name: str, raised: int) -> str:
    """How many people would get a higher level, the rule, and what to do. Levels are public."""
    return (
        f"this version of {name!r} would give {raised:,} {'person' if raised == 1 else 'people'} a higher "
        "level than they last had in it. A level is a promise, and is not raised by a file: an older one may "
        "have been put back. Register the newest levels; or, if these people agreed, raise_levels=True with "
        "actor= and purpose= (on the command line --raise --why TEXT), which is booked. Nothing was "
        "registered."
    )


def agree_on_neighbors(db: Session, accounts: Accounts, neighbors: str) -> None:
    """One notion of neighbors for all: charges of different ones do not add up."""
    agreed = accounts.meta.get("neighbors")
    if agreed is None:
        db.run("INSERT INTO accord_meta (name, value) VALUES ('neighbors', ?)", neighbors)
    elif agreed != neighbors:
        raise LedgerError(
            f"the ledger is kept for neighbors={agreed!r}, and this is for {neighbors!r}. "
            "Their charges do not add up: use two ledgers."
        )


def _people(table: Registrable, secret: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """Everyone's hash, ascending, and level."""
    hashes, levels = table.identity.people(secret)
    order = np.argsort(hashes)
    hashes, levels = hashes[order], levels[order]
    if (hashes[1:] == hashes[:-1]).any():
        raise LedgerError(
            "two people of this table have the same id (as text, without outer spaces and a trailing .0). "
            "Give everyone their own."
        )
    return hashes, levels


def next_version(accounts: Accounts, last: TableRow | None, fingerprint: str) -> tuple[int, int]:
    """The number and the version of a table that is registered; `last`: its last version, if there is one.

    The same people with the same levels are no new version.
    """
    if last is not None:
        return last.id, last.version + (last.fingerprint != fingerprint)
    return max((row.id for row in accounts.tables), default=0) + 1, 1


def _write(
    books: Books,
    db: Session,
    before: Accounts,
    row: TableRow,
    neighbors: str,
    assignment: Assignment,
    changed: Changes,
    about: dict[str, Any],
) -> None:
    """Store the table, everyone's cohort and the cohorts; book it, with what there is to say about it."""
    digest = write_everyone(db, assignment.hashes, assignment.cohort_of)
    db.run("DELETE FROM accord_table WHERE id = ?", row.id)
    db.run(
        "INSERT INTO accord_table (id, name, version, fingerprint, people, tiers) VALUES (?, ?, ?, ?, ?, ?)",
        *row,
    )
    write_cohorts(db, assignment.cohorts)
    tables = sorted([*(other for other in before.tables if other.id != row.id), row])
    after = Accounts(before.meta | {"neighbors": neighbors}, tables, assignment.cohorts)
    confirm_stored(db, after)
    books.append(
        db,
        "register",
        {
            "accord": accord.__version__,
            "table": row.name,
            "id": row.id,
            "version": row.version,
            "fingerprint": row.fingerprint,
            "tiers": row.tiers,
            "neighbors": neighbors,
            "key": key_check(db),
            "people": row.people,
            **changed._asdict(),
            **about,
            "digest": digest,
            "moves": list_text("moves", assignment.moves.columns),
            "accounts": after.digest(digest),
        },
    )


def fingerprint_of(hashes: IntArray, levels: IntArray) -> str:
    """Of people with these levels: what the identity of their table gives."""
    return identity.fingerprint(*_totals(hashes, levels))


def _totals(hashes: IntArray, levels: IntArray) -> tuple[IntArray, IntArray, list[int]]:
    """The people and the sum of their hashes for each level, as the engine would add them up."""
    distinct, code = factorize(levels)
    people = np.bincount(code, minlength=distinct.size)
    if distinct.size == hashes.size:  # each of one person
        return distinct, people, hashes[np.argsort(code)].tolist()
    totals = [0] * distinct.size
    # parts of 21 bits: their sums are whole numbers below 2⁵³, which floats add up exactly
    for shift in (0, 21, 42):
        sums = np.bincount(code, weights=(hashes >> shift) & 0x1FFFFF, minlength=distinct.size)
        totals = [total + (int(part) << shift) for total, part in zip(totals, sums.tolist(), strict=True)]
    return distinct, people, totals
