"""Verifying: the files, the chain, and whether the accounts are what follows from it. Damage is told here, and raised everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from accord.errors import LedgerError
from accord.ledger.chain import Entry, Replay
from accord.ledger.key import Key
from accord.ledger.reading import COLUMNS, checked_accounts, digest_of, everyone
from accord.ledger.store import Session

T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """What `verify` found."""

    entries: int
    sealed: bool
    """Whether the key was at hand, to see who wrote the entries."""
    open: int
    """Reservations that nothing is known to have come of: interrupted, or under way. They are charged."""
    problems: tuple[str, ...]
    restored: int = 0
    """How often an older copy was accepted: what was spent after it was made is forgotten."""


def examine(
    db: Session, key_of: Callable[[Any], Key | None], head_problem: Callable[[Key | None], str | None]
) -> Verdict:
    """Look at everything as it is stored.

    Args:
        key_of: the key, for what the ledger has to check it by; None: it is not at hand.
        head_problem: why entries may be missing at the end.
    """
    problems: list[str] = []

    def looked(look: Callable[[], T], otherwise: T) -> T:
        try:
            return look()
        except LedgerError as damage:
            problems.append(str(damage))
            return otherwise

    def rows(table: str, order: str) -> list[tuple[Any, ...]]:
        sql = f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY {order}"
        return looked(lambda: db.rows(sql), [])

    if faults := looked(db.faults, 0):
        problems.append(f"SQLite finds {faults:,} faults in the file")
    entries = [Entry(*row) for row in rows("accord_entry", "seq")]
    cohorts, tables = (
        {row[0]: tuple(row[1:]) for row in rows(table, "id")} for table in ("accord_cohort", "accord_table")
    )
    members = rows("accord_member", "tab, cohort")
    meta = dict(rows("accord_meta", "name"))
    blocks = [row[1:] for row in rows("accord_people", "chunk")]

    key = key_of(meta.get("key"))
    if missing := looked(lambda: head_problem(key), None):
        problems.append(missing)
    replay = Replay().run(entries, None if key is None else key.seal)
    problems += replay.problems
    expected: dict[Any, Any] = {
        number: (c.level, replay.allowed[number], c.spent, replay.people[number])
        for number, c in replay.cohorts.items()
    }
    wrong = [number for number in expected.keys() | cohorts.keys() if expected.get(number) != cohorts.get(number)]
    problems += [f"the account of cohort {n} is not what follows from the entries" for n in sorted(wrong, key=str)]
    levels = {(table, n, level) for n, c in replay.cohorts.items() for table, level in c.levels}
    if len(members) != len(levels) or set(members) != levels:
        problems.append("the levels of cohorts are not what follows from the entries")
    if tables != replay.tables:
        problems.append("the registered tables are not what follows from the entries")
    if entries and digest_of(blocks) != replay.digest:
        problems.append("who is in which cohort is not what was registered")
    if entries and (meta.get("key"), meta.get("neighbors")) != replay.meta:
        problems.append("the check of the key, or the notion of neighbors, is not what was registered")
    if not problems:  # so that nothing that is refused elsewhere is called whole here
        looked(lambda: everyone(db, checked_accounts(db)), None)
    restored = sum(entry.kind == "restored" for entry in entries)
    return Verdict(len(entries), key is not None, len(replay.open), tuple(problems), restored)
