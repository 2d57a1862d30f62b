"""History: how everyone stands and what was done, for reading and for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

import accord
from accord.budget import PUBLIC, level_text, to_float
from accord.errors import LedgerError, did_you_mean
from accord.ledger.accounts import CohortsOfTable, TableRow, checked_accounts
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.cohorts import NONE
from accord.ledger.menus import are_private
from accord.ledger.refusing import pending
from accord.ledger.renewing import seen_now
from accord.ledger.validation import each_entry, whole_numbers

_SIGNED = ("actor", "purpose")
_REPEATED = {
    "release": ("accord", "table", "version", "queries", "booked", *_SIGNED),
    "register": (
        *("accord", "table", "version", "people", "joined", "left", "lowered", "raised"),
        *("policy", "menu", *_SIGNED),
    ),
    "withdraw": ("accord", "people", "tables", *_SIGNED),
    "readmit": ("accord", "people", "tables", *_SIGNED),
    "policy": ("accord", "require", *_SIGNED),
    "person": ("accord", "known", *_SIGNED),
    "renewal": ("accord", "renewal", *_SIGNED),
    "renew": ("accord", "renewal"),
    "repeat": ("accord", "tables", "queries", "of", *_SIGNED),
    "token": ("accord", "token", "name", "role", "grants", "expires", "revoked", *_SIGNED),
    "description": ("accord", "description", *_SIGNED),
    "approval": ("accord", "request", "asked_by", "table", "share", "approved", *_SIGNED),
    "restored": ("accord", "why", "had"),
    "rotate": ("accord", "people", *_SIGNED),
}
"""What the history repeats of entries, by their kind; a reservation and what came of it are a release."""
KINDS = (*_REPEATED, "refused")


@dataclass(frozen=True)
class Account:
    """People of one level in one table, as they stand."""

    table: str
    tier: str | None
    level: float
    people: int | None
    """None: levels are private, and this is what everyone of this level has spent at most."""
    spent: tuple[float, float]
    """The least and the most that anyone of them has spent, as far as it counts."""
    left: tuple[float, float]
    ever: tuple[float, float] = (0.0, 0.0)
    """What they have spent in all, also what counts no more because budgets were renewed."""

    @property
    def is_renewed(self) -> bool:
        """Whether something counts no more."""
        return self.ever != self.spent


def accounts(books: Books) -> list[Account]:
    """Every level of every table: how many people, what they have spent and what they have left."""
    with books.reading() as db:
        stored = seen_now(checked_accounts(db))
    return [
        account
        for row in sorted(stored.tables, key=lambda row: row.name)
        for account in _accounts_of(books, row, stored.cohorts_of(row.id), stored.meta["neighbors"])
    ]


def _accounts_of(books: Books, row: TableRow, cohorts: CohortsOfTable, neighbors: str) -> list[Account]:
    """Those of one table, by level."""
    names: dict[str, list[str]] = {}
    for tier, level in tiers_of(books, row.tiers).items():
        names.setdefault(level, []).append(tier)
    if not cohorts.chosen.size:
        return []
    is_menu = are_private(neighbors)
    if is_menu:  # accounts of levels on other tables' menus are theirs
        cohorts = cohorts.only(cohorts.chosen == cohorts.level)
    first = np.flatnonzero(np.diff(cohorts.chosen, prepend=NONE))
    counted = np.where(cohorts.spent == PUBLIC, PUBLIC, cohorts.spent - cohorts.renewed)
    columns = [cohorts.chosen[first], np.add.reduceat(cohorts.people, first)]
    for amount in (counted, cohorts.remaining, cohorts.spent):
        columns += [np.minimum.reduceat(amount, first), np.maximum.reduceat(amount, first)]
    accounts = []
    for level, people, *amounts in zip(*(column.tolist() for column in columns), strict=True):
        ends = list(map(to_float, amounts))
        tier_name = " / ".join(names.get(level_text(level), [])) or None
        spent, remaining, ever = ((ends[k], ends[k + 1]) for k in (0, 2, 4))
        number = None if is_menu else people
        accounts.append(Account(row.name, tier_name, to_float(level), number, spent, remaining, ever))
    return accounts


def tiers_of(books: Books, text: str) -> dict[str, str]:
    """The levels of a table's tiers, as text, by their names."""
    try:
        return dict(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        pass  # not raised here: what is chained would quote what is stored
    fact = "names of tiers cannot be read"
    raise LedgerError(f"the ledger {books.label} is damaged: {fact}. Restore it from a backup.")


def entries(books: Books) -> list[Entry]:
    """The chain of everything that was done, oldest first."""
    with books.reading() as db:
        return list(each_entry(db))


@dataclass(frozen=True)
class Choice:
    """What is to be seen of a history: see `Ledger.history`."""

    table: str | None = None
    kind: str | None = None
    actor: str | None = None
    since: Any = None
    until: Any = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Releases only, if nothing was said."""
        if self.kind is None:
            return ("release",) if self == Choice() else KINDS
        if self.kind not in (*KINDS, "all"):
            raise LedgerError(f"there is no kind {self.kind!r}: {did_you_mean(self.kind, (*KINDS, 'all'))}")
        return KINDS if self.kind == "all" else (self.kind,)

    def chosen(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of a list."""
        kinds, since, until = self.kinds, _moment("since", self.since), _moment("until", self.until)
        return [
            event
            for event in events
            if event["kind"] in kinds
            and (self.table is None or self.table in event.get("tables", [event.get("table")]))
            and (self.actor is None or event.get("actor") == self.actor)
            and (since is None or _plain_time(event["time"]) >= since)
            and (until is None or _plain_time(event["time"]) < until)
        ]


def _plain_time(time: str) -> str:
    """The time of an entry as `_moment` writes it; at a whole second, entries have no fraction.

    >>> _plain_time("2026-05-03T12:00:00+00:00")
    '2026-05-03T12:00:00.000000'
    """
    plain = time.removesuffix("+00:00")
    return plain if "." in plain else f"{plain}.000000"


def _moment(name: str, given: Any) -> str | None:
    """A moment as entries have it, which is text in UTC, from a date, a timestamp or ISO text."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given if isinstance(given, str) else given.isoformat())
    except (AttributeError, TypeError, ValueError):
        moment = None
    if moment is None:
        raise LedgerError(
            f"{name}={given!r} is not a moment. Give a date or a timestamp: '2026-01-31 12:00'."
        )
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.replace(tzinfo=None).isoformat(timespec="microseconds")


def events(books: Books, choice: Choice) -> list[dict[str, Any]]:
    """What was done, oldest first, as far as it is chosen: see `Ledger.history`."""
    choice.chosen([])  # refuses what is no choice
    done: dict[int, dict[str, Any]] = {}
    names: dict[int, str] = {}
    refused: list[dict[str, Any]] = []
    with books.reading() as db:
        for entry in each_entry(db):
            content = entry.outline
            if entry.kind in ("release", "failed"):
                number = content.get("reserve")
                if not isinstance(number, int) or done.get(number, {}).get("kind") != "release":
                    raise LedgerError(
                        f"entry {entry.seq} of the ledger {books.label} is about a reservation that there is "
                        "not. Restore the ledger from a backup, "
                        "or run 'accord ledger verify' to see what is wrong."
                    )
                state = "released" if entry.kind == "release" else "failed"
                done[number] |= {"state": state, "receipts": content.get("receipts", [])}
                continue
            if entry.kind == "refused":
                refused += _refusals(entry.seq, content.get("refused"))
                continue
            if entry.kind == "register" and isinstance(content.get("id"), int):
                names[content["id"]] = str(content.get("table"))
            done[entry.seq] = _event(entry, content, names)
        refused += _refusals(None, pending(db))
    events = (
        sorted((*done.values(), *refused), key=lambda event: _plain_time(event["time"]))
        if refused
        else done.values()
    )
    return choice.chosen(list(events))


def _refusals(entry: int | None, counts: Any) -> list[dict[str, Any]]:
    """What was refused, and how often; `entry`: where it is booked, None: nowhere yet."""
    return [
        {"entry": entry, "time": str(count.get("last")), "kind": "refused"}
        | {name: count.get(name) for name in ("table", "actor", "reason", "times", "first")}
        for count in (counts if isinstance(counts, list) else ())
        if isinstance(count, dict)
    ]


def _event(entry: Entry, content: dict[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    """What an entry says that is for reading."""
    kind = "release" if entry.kind == "reserve" else entry.kind
    event: dict[str, Any] = {"entry": entry.seq, "time": entry.time, "kind": kind}
    event |= {name: content.get(name) for name in _REPEATED.get(kind, ())}
    if kind == "release":
        event |= {"state": "no answer", "receipts": []}
    if event.get("menu"):
        event |= dict.fromkeys(("people", "joined", "left", "lowered", "raised"))
    else:
        event.pop("menu", None)
    if "tables" in event:
        event["tables"] = [names.get(number, "") for number in whole_numbers(content.get("tables"))]
    return event


def export(books: Books) -> dict[str, Any]:
    """Everything but the people, as plain data that another program can check (docs/ledger.md says how)."""
    with books.reading() as db:
        entries, accounts = list(each_entry(db)), checked_accounts(db)
    cohorts = zip(*(column.tolist() for column in accounts.cohorts.columns), strict=True)
    return {
        "schema": 1,
        "accord": accord.__version__,
        "entries": [vars(entry) for entry in entries],
        "cohorts": [
            {
                "id": number,
                "level": level_text(level),
                "allowed": level_text(allowed),
                "spent": level_text(spent),
                "people": people,
                **({"renewed": level_text(renewed)} if renewed else {}),
            }
            for number, level, allowed, spent, people, renewed in cohorts
        ],
    }
