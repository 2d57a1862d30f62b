"""Repeating: the same question about the same people has been answered, and the answer is given out again.

The answer is what was released then, so that nobody loses anything by it ([J] post-processing), and nobody is
charged. The same question is the same plan (`Plan.fingerprint`) for the same version of a table, which is who
is in it with which level. Values may have changed since, which a ledger cannot know: whoever wants them asks
for a fresh draw, which is charged.

Somebody who withdrew since is in the old answer, so that it is not given out again.

The chain has what was released, in entries of kind "release"; `accord_answer` only says in which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import accord
from accord.ledger.accounts import TableRow, checked_accounts
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.requiring import refuse_unsigned
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import digests, entry_of, newest_entry, select
from accord.ledger.withdrawing import withdrew_since
from accord.people.identity import Registrable
from accord.planning import Plan


@dataclass(frozen=True)
class BookedAnswer:
    """What was released for a plan before."""

    entry: Entry
    times: tuple[str, ...]
    """When, for each of its questions."""
    released: tuple[Any, ...]
    """What its mechanism released for each of them: numbers as text, for each private group."""


@dataclass(frozen=True)
class Repetition:
    """Answers that are given out again."""

    entry: Entry
    """Where that is booked."""
    answers: tuple[BookedAnswer, ...]
    """For each of the tables that were asked about."""


def remember(db: Session, plan: str, table: int, version: int, entry: Entry) -> None:
    """Note in which entry the newest answer to a question stands."""
    db.run("DELETE FROM accord_answer WHERE plan = ? AND tab = ?", plan, table)
    db.run(
        "INSERT INTO accord_answer (plan, tab, version, entry) VALUES (?, ?, ?, ?)",
        plan,
        table,
        version,
        entry.seq,
    )


def repetition(
    books: Books, asked: Sequence[tuple[Registrable, Plan]], signature: Signature
) -> Repetition | None:
    """The answers to plans about different people, if all of them have been answered; they are booked again.

    None: one of them was not answered before, or is of another version of its table.
    """
    plans = [plan.fingerprint for _, plan in asked]
    with books.reading() as db:
        if not all(plan and select(db, "accord_answer", "WHERE plan = ?", plan) for plan in set(plans)):
            return None
    fingerprints = [table.identity.fingerprint(books.secret) for table, _ in asked]
    with books.writing() as db:
        accounts = checked_accounts(db)
        refuse_unsigned(accounts.meta, signature)
        tables = {row.fingerprint: row for row in accounts.tables}
        answers, numbers = [], []
        for plan, fingerprint in zip(plans, fingerprints, strict=True):
            table = tables.get(fingerprint)
            answer = None if table is None or plan is None else _booked(books, db, table, plan)
            if table is None or answer is None:
                return None
            answers.append(answer)
            numbers.append(table.id)
        content = {
            "accord": accord.__version__,
            "tables": numbers,
            "queries": list(dict.fromkeys(part.query.label for _, plan in asked for part in plan.parts)),
            "of": [answer.entry.seq for answer in answers],
            **signature.booked,
            **digests(newest_entry(db)),
        }
        return Repetition(books.append(db, "repeat", content), tuple(answers))


def _booked(books: Books, db: Session, table: TableRow, plan: str) -> BookedAnswer | None:
    """The newest answer to a plan for this version of a table, about people none of whom withdrew since."""
    rows = select(db, "accord_answer", "WHERE plan = ? AND tab = ?", plan, table.id)
    if not rows or rows[0][2] != table.version:
        return None
    entry = entry_of(db, rows[0][3])
    content = {} if entry is None or entry.kind != "release" else entry.outline
    reserve = content.get("reserve")
    reserved = entry_of(db, reserve) if isinstance(reserve, int) else None
    if entry is None or reserved is None or entry.seal != books.required_key().seal(entry.hash):
        raise db.damaged("the entry of an answer is not what was written")
    about = reserved.outline
    if (content.get("plan"), about.get("table"), about.get("version")) != (plan, table.name, table.version):
        raise db.damaged("an answer is stored under another question")
    if withdrew_since(db, reserved.seq, table.id):
        return None
    times = tuple(str(receipt.get("time")) for receipt in content["receipts"])
    return BookedAnswer(entry, times, tuple(content["released"]))
