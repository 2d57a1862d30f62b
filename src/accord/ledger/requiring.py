"""Requiring: what a ledger wants to be told with everything that is asked of it: who asks, and why.

It is booked as an entry of kind "policy", and kept in `accord_meta`, which the digest of the accounts covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import accord
from accord.errors import LedgerError, did_you_mean
from accord.ledger.accounts import checked_accounts, people_digest
from accord.ledger.books import Books
from accord.ledger.chain import REQUIRED, Entry
from accord.ledger.signing import UNSIGNED, Signature
from accord.ledger.validation import select


def require(books: Books, names: Sequence[str], signature: Signature) -> Entry:
    """Let everything be refused from now on that lacks one of these: see `Ledger.require`."""
    for name in names:
        if name not in UNSIGNED.booked:
            raise LedgerError(f"a ledger cannot require {name!r}: {did_you_mean(name, UNSIGNED.booked)}")
    required = [name for name in UNSIGNED.booked if name in names]
    with books.writing() as db:
        before = checked_accounts(db)
        refuse_unsigned(before.meta, signature)
        db.run("DELETE FROM accord_meta WHERE name = ?", REQUIRED)
        meta = {name: value for name, value in before.meta.items() if name != REQUIRED}
        if required:
            meta[REQUIRED] = ",".join(required)
            db.run("INSERT INTO accord_meta (name, value) VALUES (?, ?)", REQUIRED, meta[REQUIRED])
        digest = people_digest(db)
        content = {
            "accord": accord.__version__,
            REQUIRED: required,
            **signature.booked,
            "digest": digest,
            "accounts": replace(before, meta=meta).digest(digest),
        }
        return books.append(db, "policy", content)


def refuse_unsigned(meta: Mapping[str, str], signature: Signature) -> None:
    """Refuse what lacks something that the ledger requires."""
    required = meta.get(REQUIRED, "").split(",")
    if missing := [name for name in signature.missing if name in required]:
        options = " and ".join(f"{name}=" for name in missing)
        refusal = LedgerError(
            f"this ledger requires {' and '.join(required)} with everything that is asked of it. "
            f"Give {options} (on the command line --actor and --purpose). Nothing was read or booked."
        )
        raise refusal.counted("unsigned")


def refuse_unsigned_early(books: Books, signature: Signature) -> None:
    """The same, before anything is read for it; the accounts are checked when it is booked."""
    with books.reading() as db:
        refuse_unsigned(dict(select(db, "accord_meta")), signature)
