"""Repeating: the same question about the same people has been answered, and the answer is given out again.

The answer is what was released then, so that nobody loses anything by it (post-processing), and nobody is
charged. The same question is the same plan (`Plan.fingerprint`) for the same rows (`Table.origin`) of the
same version of a table, which is who is in it with which level. Values may have changed since, which a ledger
cannot know: whoever wants them asks for a fresh draw, which is charged.

Somebody who withdrew since, or opted out, is in the old answer, so that it is not given out again. Plans from
what is left are about whoever had something left, which their Spec does not tell: they are always drawn.

The chain has what was released, in entries of kind "release"; `accord_answer` only says in which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import accord
from accord.ledger.accounts import CohortsOfTable, TableRow, checked_accounts
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.requiring import refuse_unsigned
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import digests, entry_of, newest_entry, select
from accord.ledger.withdrawing import withdrew_since
from accord.people.identity import Registrable
from accord.planning import Plan, digest_of, fingerprint_as_written


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


def question_of(table: Registrable, plan: Plan) -> str | None:
    """What is asked of which rows, to know it again; None: it is always drawn."""
    return _question(table, plan, plan.fingerprint)


def _question(table: Registrable, plan: Plan, fingerprint: str | None) -> str | None:
    if plan.spec.is_rest or fingerprint is None:
        return None
    return digest_of((fingerprint, table.origin))


def _answered_before(db: Session, table: Registrable, plan: Plan) -> str | None:
    """The question as answers to it are booked; None: there are none.

    Conditions were told apart by how they were written once.
    """
    for fingerprint in (plan.fingerprint, fingerprint_as_written(plan)):
        question = _question(table, plan, fingerprint)
        if question is not None and select(db, "accord_answer", "WHERE question = ?", question):
            return question
    return None


def remember(db: Session, question: str, table: int, version: int, entry: Entry) -> None:
    """Note in which entry the newest answer to a question stands."""
    db.run("DELETE FROM accord_answer WHERE question = ? AND tab = ?", question, table)
    db.run(
        "INSERT INTO accord_answer (question, tab, version, entry) VALUES (?, ?, ?, ?)",
        question,
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
    with books.reading() as db:
        questions = [_answered_before(db, table, plan) for table, plan in asked]
    if None in questions:
        return None
    fingerprints = [table.identity.fingerprint(books.secret) for table, _ in asked]
    with books.writing() as db:
        accounts = checked_accounts(db)
        refuse_unsigned(accounts.meta, signature)
        answers, numbers = [], []
        for question, fingerprint in zip(questions, fingerprints, strict=True):
            table = next((row for row in accounts.tables if row.fingerprint == fingerprint), None)
            if table is None or question is None or _has_lost_somebody(accounts.cohorts_of(table.id)):
                return None
            answer = _booked(books, db, table, question)
            if answer is None:
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


def _has_lost_somebody(cohorts: CohortsOfTable) -> bool:
    """Whether somebody is in a table by its levels who has opted out elsewhere, or has withdrawn."""
    return bool(((cohorts.chosen > 0) & (cohorts.level == 0)).any())


def _booked(books: Books, db: Session, table: TableRow, question: str) -> BookedAnswer | None:
    """The newest answer to a question for this version of a table, if nobody in it has withdrawn since."""
    rows = select(db, "accord_answer", "WHERE question = ? AND tab = ?", question, table.id)
    if not rows or rows[0][2] != table.version:
        return None
    entry = entry_of(db, rows[0][3])
    content = {} if entry is None or entry.kind != "release" else entry.outline
    reserve = content.get("reserve")
    reserved = entry_of(db, reserve) if isinstance(reserve, int) else None
    if entry is None or reserved is None or entry.seal != books.required_key().seal(entry.hash):
        raise db.damaged("the entry of an answer is not what was written")
    about = reserved.outline
    if (content.get("question"), about.get("table"), about.get("version")) != (
        question,
        table.name,
        table.version,
    ):
        raise db.damaged("an answer is stored under another question")
    if withdrew_since(db, reserved.seq, table.id):
        return None
    times = tuple(str(receipt.get("time")) for receipt in content["receipts"])
    return BookedAnswer(entry, times, tuple(content["released"]))
