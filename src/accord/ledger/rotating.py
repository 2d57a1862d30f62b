"""Rotating: another key takes the place of a ledger's, and everyone keeps what they have spent.

Ids are not in the ledger, and people who have left are in no table. So it is the hashes that are hashed, with
the new key: a person's hash is H(new secret, H(former secret, id)), the inner one as decimal text, and so on
for every key that there was. The same is asked of the tables from then on, so that they are recognised.

    who has                          can
    the new key                      use the ledger: it holds the former secrets, enclosed with the new key
    a former key, and the ledger     tell nobody, add nothing, and make no head but for the moment after
    a former key, and an old copy    read that copy, as before

The chain is checked with the former key and sealed anew with the new one; its entries and hashes stay as they
are. All of it is one transaction. A key that is kept in a file is written to a draft before the commit, which
takes the file's name after it: whoever opens the ledger next does so, if it was killed in between (key.py).
Databases keep deleted rows in their files for a while: those of SQLite are purged of them at the end.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import accord
from accord.budget import IntArray
from accord.errors import LedgerError
from accord.ledger import key as keys
from accord.ledger.accounts import (
    CHUNK,
    Accounts,
    TableRow,
    checked_accounts,
    read_everyone,
    stored_accounts,
    write_everyone,
)
from accord.ledger.books import Books
from accord.ledger.cohorts import NONE
from accord.ledger.key import FORMER, FormerKeys, Key
from accord.ledger.menus import are_private
from accord.ledger.registering import fingerprint_of
from accord.ledger.signing import Signature
from accord.ledger.sqlite import SQLite
from accord.ledger.store import Session
from accord.ledger.verifying import examine
from accord.people.identity import keyed_hash


@dataclass(frozen=True)
class Rotation:
    """What a change of the key did."""

    entry: int
    """Where it is booked."""
    people: int
    """How many are known by other hashes."""
    tables: int
    """How many are recognised by them."""
    key_file: str | None
    """Where the new key is kept; None: by whoever gave it."""
    purged: bool
    """Whether the database's files hold nothing any more of the former hashes."""
    given_by: str = field(default="key=", repr=False)
    """How a key is given that is in no file."""

    def __str__(self) -> str:
        kept = (
            f"Give it wherever the ledger is used: {self.given_by}."
            if self.key_file is None
            else f"It is in {self.key_file!r}: keep a copy of it apart from the ledger's."
        )
        remains = (
            ""
            if self.purged
            else " Its files still hold deleted rows with the former hashes: see docs/operations.md."
        )
        return (
            f"the key was changed, as entry {self.entry:,}. Everyone has another hash ({self.people:,} in "
            f"all), and what they had. {kept} Older copies of the ledger can be read "
            f"with the former key as before: destroy them, and it.{remains}"
        )


def rotate(books: Books, new_key: str | bytes | None, signature: Signature) -> tuple[Books, Rotation]:
    """Change the key: see `Ledger.rotate_key`. The books with the new key; others are of no use any more."""
    signature.refuse_incomplete("a change of the key")
    former = books.required_key().after(books.former)
    books.settle_draft()
    path = _key_file(books)
    _refuse_new_key(books, new_key, former, path)
    try:
        with books.changing() as db:
            everyone, before = _checked(books, db)
            text, hashes = _rehashed(everyone[0], new_key)
            after = Books(books.store, Key(text))
            rotation = _write(after, db, before, former, (hashes, everyone), signature, path)
            if path is not None:
                keys.write_draft(path, text if isinstance(text, str) else text.decode())
    finally:
        books.settle_draft()  # by what was committed, whatever happened
    after.note()
    return after, replace(rotation, purged=books.store.purge())


def _key_file(books: Books) -> Path | None:
    """The file in which the ledger's key is kept; None: whoever opens the ledger gives it."""
    if not isinstance(books.store, SQLite):
        return None
    path = keys.key_file(books.store.path)
    with suppress(LedgerError):  # what is there is none that can be read, and not for us to replace
        if (kept := keys.from_file(path)) is not None and kept.check == books.required_key().check:
            return path
    return None


def _refuse_new_key(books: Books, new_key: str | bytes | None, former: FormerKeys, path: Path | None) -> None:
    if new_key is None:
        if path is None:
            raise LedgerError(
                f"the key of the ledger {books.label} is not kept in a file beside it, where a new one could "
                f"be put. Give new_key= (on the command line the variable {keys.NEW_VARIABLE}), and keep it."
            )
        return
    if Key(new_key).secret in former.secrets:
        raise LedgerError(
            f"new_key= is a key that the ledger {books.label} has or had. Give one that nobody has seen, "
            "such as 64 random hex digits. Nothing was changed."
        )
    text = new_key.decode(errors="replace") if isinstance(new_key, bytes) else new_key
    if path is not None and not (text.isprintable() and text.strip() == text and "\ufffd" not in text):
        raise LedgerError(
            f"new_key= cannot be kept in {str(path)!r}. Give a line of printable text without blanks at its "
            "ends. Nothing was changed."
        )


def _checked(books: Books, db: Session) -> tuple[tuple[IntArray, IntArray], Accounts]:
    """Everyone and the accounts, of a ledger in which nothing is wrong: a new seal vouches for all of it."""
    if problems := examine(db, books.matching_key, lambda _: None).problems:
        raise LedgerError(
            f"the ledger {books.label} is not sealed with a new key, because something is wrong with it: "
            f"{problems[0]}. Restore it from a backup, or run 'accord ledger verify' to see all. "
            "Nothing was changed."
        )
    accounts = checked_accounts(db)
    everyone = read_everyone(db, accounts)
    if [row.fingerprint for row in accounts.tables] != _fingerprints(accounts, everyone):
        raise db.damaged("the fingerprint of a table is not of the people who are in it")
    return everyone, accounts


def _fingerprints(accounts: Accounts, everyone: tuple[IntArray, IntArray]) -> list[str]:
    """Of every table, from who is in it; where levels are private, it is of how they are described."""
    if are_private(accounts.meta.get("neighbors")):
        return [row.fingerprint for row in accounts.tables]
    hashes, at = everyone[0], accounts.cohorts.positions(everyone[1])
    fingerprints = []
    for row in accounts.tables:
        level = accounts.cohorts.levels_in(row.id)[at]
        is_in = level != NONE
        fingerprints.append(fingerprint_of(hashes[is_in], level[is_in]))
    return fingerprints


def _rehashed(hashes: IntArray, new_key: str | bytes | None) -> tuple[str | bytes, IntArray]:
    """The new key, and everyone's hash with it, in the order of the former; no two are the same."""
    while True:
        text = keys.drawn() if new_key is None else new_key
        secret, new = Key(text).secret, np.empty_like(hashes)
        for start in range(0, hashes.size, CHUNK):
            block = hashes[start : start + CHUNK].tolist()
            new[start : start + CHUNK] = [keyed_hash(secret, str(one)) for one in block]
        if np.unique(new).size == new.size:
            return text, new
        if new_key is not None:
            raise LedgerError(
                "with new_key= two people would have the same hash, which happens once in many million "
                "keys. Give another. Nothing was changed."
            )


def _write(
    after: Books,
    db: Session,
    before: Accounts,
    former: FormerKeys,
    people: tuple[IntArray, tuple[IntArray, IntArray]],
    signature: Signature,
    path: Path | None,
) -> Rotation:
    """Store everything as it is with the new key, and book it."""
    key = after.required_key()
    order = np.argsort(people[0])
    everyone = people[0][order], people[1][1][order]
    digest = write_everyone(db, *everyone)
    meta = before.meta | {"key": key.check, FORMER: key.enclosed(former)}
    for name in ("key", FORMER):
        db.run("DELETE FROM accord_meta WHERE name = ?", name)
        db.run("INSERT INTO accord_meta (name, value) VALUES (?, ?)", name, meta[name])
    tables = [
        TableRow(row.id, row.name, row.version, fingerprint, row.people, row.tiers)
        for row, fingerprint in zip(before.tables, _fingerprints(before, everyone), strict=True)
    ]
    for row in tables:
        db.run("UPDATE accord_table SET fingerprint = ? WHERE id = ?", row.fingerprint, row.id)
    accounts = replace(before, meta=meta, tables=tables)
    if not accounts.equal(stored_accounts(db)):
        raise db.damaged("the database does not hold what was just written to it")
    for number, entry_hash in db.rows("SELECT seq, hash FROM accord_entry ORDER BY seq"):
        db.run("UPDATE accord_entry SET seal = ? WHERE seq = ?", key.seal(entry_hash), number)
    entry = after.append(
        db,
        "rotate",
        {
            "accord": accord.__version__,
            "people": int(order.size),
            **signature.booked,
            "key": key.check,
            "fingerprints": [[row.id, row.fingerprint] for row in tables],
            "digest": digest,
            "accounts": accounts.digest(digest),
        },
    )
    by = "key=" if isinstance(after.store, SQLite) else f"set the variable {keys.VARIABLE} to it now, or key="
    kept = None if path is None else str(path)
    return Rotation(entry.seq, int(order.size), len(tables), kept, False, by)
