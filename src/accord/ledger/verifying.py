"""Verifying: the files, the chain, and whether the accounts are what follows from it.

Damage is told here, and raised everywhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from accord.budget import IntArray
from accord.errors import LedgerError
from accord.ledger.accounts import are_stored, blocks_digest, checked_accounts, read_everyone
from accord.ledger.books import Books
from accord.ledger.chain import Entry, Replay
from accord.ledger.heads import NotedHead, contradicted
from accord.ledger.key import Key
from accord.ledger.store import Session
from accord.ledger.validation import select_sql

T = TypeVar("T")
REQUESTS_SINCE = 4
"""The version of a ledger's tables that has requests first."""


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a ledger, if anything: see `Ledger.verify`."""

    entries: int
    sealed: bool
    """Whether the key was at hand, to see who wrote the entries."""
    open: int
    """Reservations that nothing is known to have come of: interrupted, or under way. They are charged."""
    problems: tuple[str, ...]
    restored: int = 0
    """How many times an older copy was accepted: what was spent after it was made is forgotten."""


def verify(books: Books, heads: Sequence[NotedHead] = ()) -> Verdict:
    """Check a ledger as it is stored, its head, and those that are kept elsewhere: see `Ledger.verify`."""
    noted = books.noted_head()
    with books.store.read() as db:
        verdict = examine(db, books.matching_key, lambda key: books.missing_entries(db, noted, key))
        try:
            gone = contradicted(db, heads) if heads else []
        except LedgerError as damage:
            gone = [str(damage)]
    return replace(verdict, problems=tuple(dict.fromkeys([*verdict.problems, *gone])))


def examine(
    db: Session,
    key_of: Callable[[Any], Key | None],
    head_problem: Callable[[Key | None], str | None],
) -> Verdict:
    """Check everything as it is stored.

    Args:
        key_of: the key, for what the ledger has to check it by; None: it is not at hand.
        head_problem: why entries may be missing at the end.
    """
    problems: list[str] = []

    def attempt(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except LedgerError as damage:
            problems.append(str(damage))
            return otherwise

    def rows(table: str, order: str) -> list[tuple[Any, ...]]:
        return attempt(lambda: db.rows(select_sql(table, f"ORDER BY {order}")), [])

    def is_stored(table: str, columns: tuple[IntArray, ...]) -> bool:
        return attempt(lambda: are_stored(db, table, columns), False)

    if faults := attempt(db.faults, 0):
        problems.append(f"SQLite finds {faults:,} faults in the file")
    meta = dict(rows("accord_meta", "name"))
    key = key_of(meta.get("key"))
    if missing := attempt(lambda: head_problem(key), None):
        problems.append(missing)
    replay = attempt(lambda: Replay().run(_entries(db), None if key is None else key.seal), Replay())
    problems += replay.problems
    if not is_stored("accord_cohort", replay.cohorts.columns):
        wrong = _differing(rows("accord_cohort", "id"), replay.cohorts.columns)
        problems += [f"the account of cohort {n} is not what follows from the entries" for n in wrong]
    if not is_stored("accord_member", replay.cohorts.members.columns):
        problems.append("the levels of cohorts are not what follows from the entries")
    if {row[0]: tuple(row[1:]) for row in rows("accord_table", "id")} != replay.tables:
        problems.append("the registered tables are not what follows from the entries")
    if replay.tables and blocks_digest(row[1:] for row in rows("accord_people", "chunk")) != replay.digest:
        problems.append("who is in which cohort is not what was registered")
    if replay.entries and {name: meta.get(name, "") for name in replay.policy} != replay.policy:
        problems.append("what has to be said, or how budgets are renewed, is not what was booked")
    if {tuple(row[:2]): tuple(row[2:]) for row in rows("accord_answer", "question, tab")} != replay.answers:
        problems.append("which questions have been answered is not what follows from the entries")
    if replay.tables and (meta.get("key"), meta.get("neighbors")) != replay.meta:
        problems.append("the check of the key, or the notion of neighbors, is not what was registered")
    if attempt(db.version, 0) >= REQUESTS_SINCE:
        odd: list[str] = attempt(lambda: _odd_requests(db), [])
        problems += [f"request {number} is not of a reservation of its own" for number in odd]
    if not problems:  # so that nothing that is refused elsewhere is called whole here
        attempt(lambda: read_everyone(db, checked_accounts(db)), None)
    unique = tuple(dict.fromkeys(problems))
    return Verdict(replay.entries, key is not None, len(replay.open), unique, replay.restored)


def _odd_requests(db: Session) -> list[str]:
    """The requests of a service that say that they are charged, and are not, or not by themselves."""
    charged = db.rows("SELECT id, entry FROM accord_request WHERE entry <> 0 ORDER BY id")
    entries = Counter(entry for _, entry in charged)
    reserved = {row[0] for row in db.rows("SELECT seq FROM accord_entry WHERE kind = 'reserve'")}
    return [number for number, entry in charged if entry not in reserved or entries[entry] > 1]


def _entries(db: Session) -> Iterator[Entry]:
    """As they are stored, which may be anything."""
    return (Entry(*row) for row in db.stream(select_sql("accord_entry", "ORDER BY seq")))


def _differing(stored: list[tuple[Any, ...]], expected: tuple[IntArray, ...]) -> list[Any]:
    """Cohorts that are stored otherwise than they follow from the entries."""
    ours = {row[0]: tuple(row[1:]) for row in stored}
    theirs = {row[0]: row[1:] for row in zip(*(column.tolist() for column in expected), strict=True)}
    return sorted((n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n)), key=str)
