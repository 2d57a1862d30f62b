"""The chain: every entry holds the hash of the one before, so that a removed or changed entry shows; and the accounts that follow from it.

    hash = SHA-256 of previous, seq, time, kind and body, as UTF-8 text, each followed by a line feed
    seal = HMAC-SHA-256 of hash, with a key derived from the ledger's: nobody else can add to the chain or write it anew

The first entry's `previous` is 64 zeros. `body` is JSON text, hashed as it stands. Kinds: "register" a table, "reserve" charges, and what came of
a reservation: "release" with its receipts, or "failed". A reservation without either was interrupted; it is charged all the same. "restored": an
older copy was accepted, and what was done since is forgotten.

Bodies of every kind hold "accounts", a digest of the accounts that the entry left, and "digest", one of who is in which cohort; entries of accord
before 0.3 do not hold the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accord.budget import MICRO, PUBLIC, level_text
from accord.errors import LedgerError
from accord.ledger.cohorts import Cohort, Move, sizes

START = "0" * 64


@dataclass(frozen=True)
class Entry:
    seq: int
    time: str
    kind: str
    body: str
    previous: str
    hash: str
    seal: str

    @property
    def content(self) -> dict[str, Any]:
        try:
            content = json.loads(self.body)
        except (TypeError, ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise LedgerError(
                f"entry {self.seq} of the ledger is damaged: what it holds cannot be read. "
                "Restore the ledger from a backup, or run 'accord ledger verify' to see what is wrong."
            )
        return content

    @property
    def is_whole(self) -> bool:
        """Whether it is what was written; who wrote it is for the seal to say."""
        return self.hash == _hash(self.previous, self.seq, self.time, self.kind, self.body)


def following(last: Entry | None, kind: str, content: dict[str, Any], seal: Callable[[str], str]) -> Entry:
    """The next entry."""
    seq, previous = (1, START) if last is None else (last.seq + 1, last.hash)
    time = datetime.now(UTC).isoformat()
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    mark = _hash(previous, seq, time, kind, body)
    return Entry(seq, time, kind, body, previous, mark, seal(mark))


def is_unbroken(entries: list[Entry]) -> bool:
    """Whether they are a chain from the first entry on."""
    before = [START, *(entry.hash for entry in entries)]
    return all(
        entry.seq == number and entry.previous == previous and entry.is_whole
        for number, (entry, previous) in enumerate(zip(entries, before, strict=False), start=1)
    )


def _hash(*parts: object) -> str:
    return hashlib.sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest()


def to_micro(text: str) -> int:
    """`level_text` read back."""
    if text == "inf":
        return PUBLIC
    whole, _, rest = text.partition(".")
    return int(whole) * MICRO + int(rest.ljust(6, "0"))


def add(spent: int, charge: int) -> int:
    """∞ stays ∞."""
    return PUBLIC if charge >= PUBLIC - spent else spent + charge


def encode(moves: Iterable[Move]) -> list[list[Any]]:
    return [[m.source, None if m.level is None else level_text(m.level), m.target, m.people] for m in moves]


class Replay:
    """The accounts, from the entries alone."""

    def __init__(self) -> None:
        self.cohorts: dict[int, Cohort] = {}
        self.people: dict[int, int] = {}
        self.allowed: dict[int, int] = {}
        self.tables: dict[int, tuple[str, int, str, int, str]] = {}
        """name, version, fingerprint, people, tiers"""
        self.meta: tuple[str | None, str | None] = (None, None)
        """The check of the key, and the notion of neighbors."""
        self.digest = ""
        """Of who is in which cohort."""
        self.open: set[int] = set()
        """Reservations that nothing is known to have come of."""
        self.problems: list[str] = []

    def run(self, entries: Iterable[Entry], seal: Callable[[str], str] | None) -> Replay:
        """Go through all entries; without `seal`, seals are not looked at."""
        previous, seq = START, 0
        for entry in entries:
            told = f"entry {entry.seq}"
            if entry.seq != seq + 1:
                self.problems.append(f"{told} comes after entry {seq}: entries are missing, or out of order")
            if entry.previous != previous:
                self.problems.append(f"{told} does not hold the hash of the entry before it")
            if not entry.is_whole:
                self.problems.append(f"{told} has been changed: its hash is another")
            if seal is not None and entry.seal != seal(str(entry.hash)):
                self.problems.append(f"{told} was not written with the ledger's key")
            try:
                self._apply(entry)
            except (LedgerError, LookupError, ArithmeticError, ValueError, TypeError, AttributeError) as fault:
                self.problems.append(f"{told} cannot be read ({type(fault).__name__})")
            previous, seq = entry.hash, seq + 1 if not isinstance(entry.seq, int) else entry.seq
        return self

    def _apply(self, entry: Entry) -> None:
        content = entry.content
        match entry.kind:
            case "register":
                self._register(entry.seq, content)
            case "reserve":
                self.open.add(entry.seq)
                for number, charge in content["charges"]:
                    cohort = self.cohorts[number]
                    spent = add(cohort.spent, to_micro(charge))
                    if spent < cohort.spent:
                        self.problems.append(f"entry {entry.seq} gives cohort {number} something back")
                    if cohort.level != PUBLIC and spent > self.allowed[number]:
                        self.problems.append(f"entry {entry.seq} charges cohort {number} more than it allows")
                    self.cohorts[number] = Cohort(spent, cohort.levels)
            case "release" | "failed":
                if content["reserve"] not in self.open:
                    self.problems.append(f"entry {entry.seq} is about a reservation that is not open")
                self.open.discard(content["reserve"])
            case "restored":
                pass
            case kind:
                self.problems.append(f"entry {entry.seq} is of an unknown kind {kind!r}")

    def _register(self, seq: int, content: dict[str, Any]) -> None:
        table = int(content["id"])
        moves = [
            Move(source, None if level is None else to_micro(level), target, people)
            for source, level, target, people in content["moves"]
        ]
        gone: dict[int, int] = {}
        moved: dict[int, Cohort] = {}
        for move in moves:
            if move.source is not None:
                gone[move.source] = gone.get(move.source, 0) + move.people
            cohort = (Cohort(0, ()) if move.source is None else self.cohorts[move.source]).moved(table, move.level)
            if moved.setdefault(move.target, cohort) != cohort:
                self.problems.append(f"entry {seq} puts people with different accounts into cohort {move.target}")
        if gone != {number: people for number, people in self.people.items() if people}:
            self.problems.append(f"entry {seq} loses people")
        emptied = {number: Cohort(cohort.spent, ()) for number, cohort in self.cohorts.items()}
        cohorts = emptied | moved
        people = dict.fromkeys(cohorts, 0) | sizes(moves)
        allowed = {number: cohort.allowed for number, cohort in cohorts.items()}
        name, version, mark, count, tiers, key, neighbors, digest = (
            content[field]
            for field in ("table", "version", "fingerprint", "people", "tiers", "key", "neighbors", "digest")
        )
        # only now that all of it was legible: half a registration would be none that can be told about
        self.cohorts, self.people, self.allowed = cohorts, people, allowed
        self.tables[table] = (name, version, mark, count, tiers)
        self.meta, self.digest = (key, neighbors), digest
