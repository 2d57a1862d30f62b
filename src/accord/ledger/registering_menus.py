"""Registering a table with private levels: its name, its menu of levels, and nothing of who is in it.

No row is read. A name keeps its description: where levels come from, and what each tier is worth. If tiers
could be given other levels, everyone who chose one would have another account, and this ledger does not know
who that is. Another description takes another name; its accounts are those of the same ledger (menus.py).
"""

from __future__ import annotations

import json

import numpy as np

import accord
from accord.budget import IntArray, level_text
from accord.errors import LedgerError
from accord.ledger.accounts import Accounts, TableRow, confirm_stored, write_cohorts, write_everyone
from accord.ledger.books import Books, key_check
from accord.ledger.menus import with_menu
from accord.ledger.policies import last_registration, policy_changes, policy_of
from accord.ledger.refusing import counting
from accord.ledger.registering import (
    Agreement,
    Registration,
    agree_on_neighbors,
    next_version,
    refuse_unregistrable,
)
from accord.ledger.renewing import up_to_date
from accord.ledger.requiring import refuse_unsigned
from accord.people.identity import Registrable

_NOBODY: IntArray = np.zeros(0, dtype=np.int64)


def register_menu(books: Books, table: Registrable, name: str, agreement: Agreement) -> Registration:
    """Make a table with private levels known: see `Ledger.register`."""
    refuse_unregistrable(table, name)
    if agreement.raises or agreement.policy:
        raise LedgerError(
            "with private levels a ledger does not know whose level would be another. Leave raise_levels= "
            "and agree= out; a table whose levels come from elsewhere is registered under another name."
        )
    with counting(books, agreement.signature, lambda: name), books.writing() as db:
        before = up_to_date(books, db)
        refuse_unsigned(before.meta, agreement.signature)
        agree_on_neighbors(db, before, table.neighbors)
        spec, fingerprint = table.spec(), table.identity.fingerprint(books.secret)
        last = {row.name: row for row in before.tables}.get(name)
        menu = [level_text(level) for level in spec.micro.tolist()]
        if last is not None and last.fingerprint == fingerprint:
            return Registration(name, last.version, None, 0, 0, 0, 0, len(menu))
        _refuse_same(before, name, fingerprint)
        if last is not None:
            registered = last_registration(db, last.id)
            _refuse_other(name, registered, table, menu)
        number, version = next_version(before, last, fingerprint)
        tiers = json.dumps({tier: level_text(level) for tier, level in spec.tiers.items()})
        row = TableRow(number, name, version, fingerprint, 0, tiers)
        digest = write_everyone(db, _NOBODY, _NOBODY)
        db.run("DELETE FROM accord_table WHERE id = ?", row.id)
        columns = "id, name, version, fingerprint, people, tiers"
        db.run(f"INSERT INTO accord_table ({columns}) VALUES (?, ?, ?, ?, ?, ?)", *row)
        cohorts = with_menu(before.cohorts, row.id, spec.micro)
        write_cohorts(db, cohorts)
        tables = sorted([*(other for other in before.tables if other.id != row.id), row])
        after = Accounts(before.meta | {"neighbors": table.neighbors}, tables, cohorts)
        confirm_stored(db, after)
        content = {
            "accord": accord.__version__,
            "table": row.name,
            "id": row.id,
            "version": row.version,
            "fingerprint": row.fingerprint,
            "tiers": row.tiers,
            "neighbors": table.neighbors,
            "key": key_check(db),
            "people": row.people,
            **agreement.signature.booked,
            "policy": table.policy,
            "menu": menu,
            "digest": digest,
            "accounts": after.digest(digest),
        }
        books.append(db, "register", content)
    return Registration(name, version, None, 0, 0, 0, 0, len(menu))


def _refuse_same(accounts: Accounts, name: str, fingerprint: str) -> None:
    """Refuse a second name for what cannot be told from a table that has one."""
    for row in accounts.tables:
        if row.fingerprint == fingerprint:
            raise LedgerError(
                f"a table that is described like this one is registered as {row.name!r}, and with private "
                "levels nothing else tells tables apart. There is nothing to register: what is released "
                f"about this one is charged to the same accounts. Nothing was registered as {name!r}."
            )


def _refuse_other(name: str, registered: dict[str, object], table: Registrable, menu: list[str]) -> None:
    """Refuse another description under a name."""
    changed = policy_changes(policy_of(registered) or {}, table.policy)
    if registered.get("menu") != menu:
        changed.append("the menu of levels")
    if changed:
        raise LedgerError(
            f"this table gets levels otherwise than what is registered as {name!r}: {'; '.join(changed)}. "
            "With private levels a ledger does not know whose level would be another, and keeps what was "
            "said. Describe it as before, or register it under another name: whoever has two levels in "
            "tables of a ledger loses no more than the higher one. Nothing was registered."
        ).counted("policy")
