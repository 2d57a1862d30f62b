"""Person: everything that a ledger knows about one person, who has a right to know it.

The chain knows cohorts and no people. So it is followed backwards, from the cohort that the person is in now:
a registration says from which cohorts people of this one came. If those are several, with other charges, what
a release cost the person lies between the least and the most of theirs, and is told so.

A look-up is booked, whether the person is known or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import accord
from accord.budget import IntArray, distinct, level_text
from accord.errors import LedgerError
from accord.ledger.accounts import Accounts, people_digest, read_everyone
from accord.ledger.books import Books
from accord.ledger.chain import UNREADABLE, Entry, list_columns
from accord.ledger.cohorts import LEFT, NONE, WITHDRAWN, remaining_of
from accord.ledger.history import tiers_of
from accord.ledger.menus import refuse_people
from accord.ledger.renewal import Renewal
from accord.ledger.renewing import agreed_renewal, up_to_date
from accord.ledger.requiring import refuse_unsigned
from accord.ledger.signing import Signature
from accord.ledger.store import Session
from accord.ledger.validation import each_entry_backwards
from accord.people.identity import person_hash


class Membership(NamedTuple):
    """A table that a person is in, or was."""

    table: str
    tier: str | None
    level: int
    """In millionths, as all here; of a table that they left, the last."""
    is_left: bool


class Charged(NamedTuple):
    """A release that the person was charged for."""

    entry: int
    time: str
    table: str
    questions: tuple[str, ...]
    actor: str | None
    purpose: str | None
    state: str
    """"released", "failed" or "no answer"; the charge stands in any case."""
    least: int
    most: int
    """What it cost them lies between these; they are the same where the chain tells it."""


@dataclass(frozen=True)
class Person:
    """What a ledger knows about one person. Made by `Ledger.person`."""

    ledger: str
    time: str
    entry: int
    """Where the look-up is booked."""
    memberships: tuple[Membership, ...]
    has_withdrawn: bool
    level: int
    """The strictest that they chose in any table, which counts in all."""
    spent: int
    """In all, ever."""
    left: int
    releases: tuple[Charged, ...]
    """Oldest first."""
    renewed: int = 0
    """What of it counts no more, because budgets were renewed."""
    renewal: Renewal | None = None
    """How budgets are renewed; None: they are for life."""

    def describe(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON."""
        return {
            "schema": 1,
            "ledger": self.ledger,
            "time": self.time,
            "entry": self.entry,
            "tables": [
                {"table": m.table, "tier": m.tier, "level": level_text(m.level), "left": m.is_left}
                for m in self.memberships
            ],
            "withdrawn": self.has_withdrawn,
            "level": level_text(self.level),
            "spent": level_text(self.spent),
            "left": level_text(self.left),
            **({"renewed": level_text(self.renewed)} if self.renewal or self.renewed else {}),
            "releases": [
                {
                    **{
                        name: value for name, value in each._asdict().items() if name not in ("least", "most")
                    },
                    "questions": list(each.questions),
                    "charge": [level_text(each.least), level_text(each.most)],
                }
                for each in self.releases
            ],
        }

    def __str__(self) -> str:
        from accord.report.people import person_text

        return person_text(self)

    def _repr_html_(self) -> str:
        from accord.report.people import person_html

        return person_html(self)


def person(books: Books, person_id: Any, signature: Signature) -> Person:
    """Everything about one person: see `Ledger.person`."""
    asked = person_hash(books.secret, person_id)
    with books.writing() as db:
        accounts = up_to_date(books, db)
        refuse_people(accounts.meta, books.label, "What a level has spent is in ledger.accounts().")
        refuse_unsigned(accounts.meta, signature)
        hashes, cohort_of = read_everyone(db, accounts)
        at = np.flatnonzero(hashes == asked)
        cohort = int(cohort_of[at[0]]) if at.size else None
        digest = people_digest(db)
        content = {"accord": accord.__version__, "known": cohort is not None, **signature.booked}
        content |= {"digest": digest, "accounts": accounts.digest(digest)}
        entry = books.append(db, "person", content)
        releases = () if cohort is None else _releases_of(db, cohort)
    if cohort is None:
        raise LedgerError(
            f"this id is known to no table of the ledger {books.label}: nothing was released about them "
            "that it has booked. Check how ids are written in the tables' column of people (7, 7.0 and ' 7' "
            "are the same, 007 is another). The look-up is booked."
        )
    return _record(books, accounts, cohort, entry, releases[::-1])


def _record(
    books: Books, accounts: Accounts, cohort: int, entry: Entry, releases: tuple[Charged, ...]
) -> Person:
    cohorts, members = accounts.cohorts, accounts.cohorts.members
    at = cohorts.positions(np.array([cohort]))
    _, level, allowed, spent, _, renewed = (column[at] for column in cohorts.columns)
    own = members.cohort == cohort
    by_table = dict(zip(members.table[own].tolist(), members.level[own].tolist(), strict=True))
    memberships = [
        Membership(row.name, _tier(books, row.tiers, by_table[place]), by_table[place], place >= LEFT)
        for row in sorted(accounts.tables, key=lambda row: row.name)
        for place in (row.id, LEFT + row.id)
        if place in by_table
    ]
    return Person(
        books.label,
        entry.time,
        entry.seq,
        tuple(memberships),
        WITHDRAWN in by_table,
        int(level[0]),
        int(spent[0]),
        int(remaining_of(level, allowed, spent)[0]),
        releases,
        int(renewed[0]),
        agreed_renewal(accounts),
    )


def _tier(books: Books, tiers: str, level: int) -> str | None:
    names = [tier for tier, text in tiers_of(books, tiers).items() if text == level_text(level)]
    return " / ".join(names) or None


def _releases_of(db: Session, cohort: int) -> tuple[Charged, ...]:
    """The same, from a ledger that may be damaged."""
    try:
        return tuple(_releases(each_entry_backwards(db), cohort))
    except LedgerError:
        raise
    except UNREADABLE:
        pass  # not raised here: what is chained would quote what is stored
    raise db.damaged("an entry cannot be read")


def _releases(backwards: Iterable[Entry], cohort: int) -> Iterator[Charged]:
    """What the people of a cohort were charged for, newest first."""
    possible: IntArray = np.array([cohort], dtype=np.int64)
    may_be_new = False
    """Whether some of them may not have been here yet."""
    states: dict[Any, str] = {}
    for entry in backwards:
        content = entry.outline
        match entry.kind:
            case "release" | "failed":
                states[content.get("reserve")] = "released" if entry.kind == "release" else "failed"
            case "reserve":
                least, most = _cost(possible, *list_columns("charges", content["charges"]))
                if most:
                    state = states.get(entry.seq, "no answer")
                    yield _charged(entry, content, state, 0 if may_be_new else least, most)
            case "register" | "withdraw" | "readmit":
                source, _, target, _ = list_columns("moves", content["moves"])
                came_from = distinct(source[np.isin(target, possible)])
                may_be_new |= NONE in came_from
                possible = came_from[came_from != NONE]


def _cost(possible: IntArray, numbers: IntArray, charges: IntArray) -> tuple[int, int]:
    """The least and the most that a release charged any of the possible cohorts."""
    if not possible.size:
        return 0, 0
    of_these = charges[np.isin(numbers, possible)]
    are_all = of_these.size == possible.size
    return int(of_these.min()) if are_all else 0, int(of_these.max(initial=0))


def _charged(entry: Entry, content: dict[str, Any], state: str, least: int, most: int) -> Charged:
    return Charged(
        entry.seq,
        entry.time,
        str(content.get("table")),
        tuple(map(str, content.get("queries", ()))),
        content.get("actor"),
        content.get("purpose"),
        state,
        least,
        most,
    )
