"""The chain: every entry holds the hash of the one before, so that a removed or changed entry shows.

    hash = SHA-256 of previous, seq, time, kind and body, as UTF-8 text, each followed by a line feed
    seal = HMAC-SHA-256 of hash, with a key derived from the ledger's: nobody else can add to the chain or
           write it anew

The first entry's `previous` is 64 zeros. `body` is JSON text, hashed as it stands. Kinds: "register" a table,
"reserve" charges, and what came of a reservation: "release" with its receipts, or "failed". A reservation
without either was interrupted; it is charged all the same. "withdraw" and "readmit" people. "policy": what
has to be said with everything that is asked. "renewal": how budgets are renewed, and "renew": they were.
"person": somebody was looked up. "repeat": booked answers were given out again. "refused": how often what was
asked was refused. "token": who may ask a service what, "description": of which tables, "approval": whether
somebody's request may be carried out (tokens.py, requests.py). "restored": an older copy was accepted, and
what was done since is forgotten. "rotate": another key took the place of the ledger's, and all seals were
made anew. The accounts follow from the entries: `Replay`.

Bodies of every kind hold "accounts", a digest of the accounts that the entry left, and "digest", one of who
is in which cohort; entries of accord before 0.3 do not hold the first. A "register" that holds
"leaving": "kept" keeps the levels of people who leave the table; older ones do not hold it. One that holds a
"menu" instead of "moves" is of a table with private levels: accounts are by level (menus.py). "charges" and
"moves" have a row for each cohort, perhaps a million: they are read and written by column, and nothing here
holds more than one entry's of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from accord import numerals
from accord.budget import MICRO, PUBLIC, IntArray, distinct
from accord.errors import LedgerError
from accord.ledger.cohorts import (
    FORGOTTEN,
    NO_COHORTS,
    NONE,
    WITHDRAWN,
    Cohorts,
    Leaving,
    Moves,
    apply_moves,
    saturating_add,
)
from accord.ledger.menus import are_private, is_charged_by_menu, with_menu
from accord.ledger.renewal import RENEWAL, Renewal

START = "0" * 64
REQUIRED = "require"
"""What the ledger wants to be told, in bodies of kind "policy" and in `accord_meta`."""
_LISTS = {"charges": "[#,$]", "moves": "[#,$,#,#]"}
"""The long lists in bodies, by a row: cohort and charge; source, level, target and people of a move."""
UNREADABLE = (LedgerError, LookupError, ArithmeticError, ValueError, TypeError, AttributeError)
"""What reading an entry raises that is not what it should be."""
_LONG = 10_000
"""Letters of a list that is worth reading by column."""


@dataclass(frozen=True)
class Entry:
    """One thing that was done, as it is stored."""

    seq: int
    time: str
    kind: str
    body: str
    previous: str
    hash: str
    seal: str

    @property
    def content(self) -> dict[str, Any]:
        """What its body says."""
        return self._read(lambda: json.loads(self.body))

    @property
    def outline(self) -> dict[str, Any]:
        """The content, but a long list of charges or moves is left as text."""
        return self._read(lambda: _outline(self.body))

    def _read(self, load: Callable[[], Any]) -> dict[str, Any]:
        try:
            content = load()
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


class ListText(str):
    """JSON text of a long list, as it stands in a body."""

    __slots__ = ()


def list_text(name: str, columns: Sequence[IntArray]) -> ListText:
    """Charges or moves as text."""
    return ListText(f"[{b''.join(numerals.written(_LISTS[name], ',', columns)).decode()}]")


def _outline(body: str) -> Any:
    for name in _LISTS:
        # no text within quotes reads like this: a quote in it has a backslash before it
        start, opening = body.find(f',"{name}":[['), len(name) + 4
        end = body.find("]]", start + opening) + 2
        if start < 0 or end - start < _LONG:
            continue
        try:
            before, after = json.loads(body[:start] + "}"), json.loads("{" + body[end:].removeprefix(","))
        except ValueError:
            continue
        if not before.keys() & after.keys() and name not in before.keys() | after.keys():
            return {**before, name: ListText(body[start + opening : end]), **after}
    return json.loads(body)


def next_entry(last: Entry | None, kind: str, content: dict[str, Any], seal: Callable[[str], str]) -> Entry:
    """The entry after the last.

    Raises:
        LedgerError: there is text in it that cannot be stored.
    """
    seq, previous = (1, START) if last is None else (last.seq + 1, last.hash)
    time = datetime.now(UTC).isoformat()
    body = "".join(("{", ",".join(f"{_json(name)}:{_json(value)}" for name, value in content.items()), "}"))
    try:
        digest = _hash(previous, seq, time, kind, body)
    except UnicodeEncodeError:
        digest = None
    if digest is None:  # not above: the fault holds the whole body
        raise LedgerError(
            "a ledger cannot store text with half a character in it (a lone surrogate, such as '\\ud800'). "
            "Leave it out of names, and of what an algorithm returns."
        )
    return Entry(seq, time, kind, body, previous, digest, seal(digest))


def _json(value: Any) -> str:
    if isinstance(value, ListText):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _hash(*parts: object) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(str(part).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def read_level_text(text: str) -> int:
    """What `level_text` wrote, in millionths."""
    if text == "inf":
        return PUBLIC
    whole, _, rest = text.partition(".")
    return int(whole) * MICRO + int(rest.ljust(6, "0"))


def list_columns(name: str, rows: Any) -> list[IntArray]:
    """The columns of charges or moves, from an entry's outline.

    Raises:
        ValueError, TypeError, ArithmeticError: they are none.
    """
    pattern = _LISTS[name]
    if isinstance(rows, ListText):
        if (numbers := numerals.read(pattern, rows[1:-1])) is not None:
            return numbers
        rows = json.loads(rows)
    signs = [sign for sign in pattern if sign in "#$"]
    by_column = list(zip(*rows, strict=True)) or [()] * len(signs)
    return [
        _column(values, read_level_text if sign == "$" else None, or_none=name == "moves" and k < 2)
        for k, (sign, values) in enumerate(zip(signs, by_column, strict=True))
    ]


def _column(values: Sequence[Any], read: Callable[[Any], int] | None, or_none: bool) -> IntArray:
    numbers = [NONE if x is None and or_none else x if read is None else read(x) for x in values]
    if not set(map(type, numbers)) <= {int}:
        raise ValueError("not a whole number")
    return np.array(numbers, dtype=np.int64)


def _leaving(content: dict[str, Any]) -> Leaving:
    """What a registration does with the levels of people who leave."""
    rule, parent = content.get("leaving"), content.get("group_of")
    if rule is None:
        return FORGOTTEN
    if rule != "kept" or type(parent) not in (int, type(None)):
        raise ValueError("an unknown rule for people who leave")
    return Leaving(True, parent)


class Replay:
    """The accounts, from the entries alone."""

    def __init__(self) -> None:
        self.cohorts: Cohorts = NO_COHORTS
        self.tables: dict[int, tuple[str, int, str, int, str]] = {}
        """name, version, fingerprint, people, tiers"""
        self.meta: tuple[str | None, str | None] = (None, None)
        """The check of the key, and the notion of neighbors."""
        self.required = ""
        """What has to be said with everything that is asked."""
        self.digest = ""
        """Of who is in which cohort."""
        self.open: dict[int, tuple[str, int]] = {}
        """Reservations that nothing is known to have come of, with the table and its version."""
        self.answers: dict[tuple[str, int], tuple[int, int]] = {}
        """By question and table, of which version the newest answer is and in which entry it stands."""
        self.renewal = ""
        """How budgets are renewed: see renewing.py. Empty: they are for life."""
        self._renewed: Renewal | None = None
        """Up to when they were."""
        self.entries = 0
        self.restored = 0
        """How many times an older copy was accepted."""
        self.problems: list[str] = []

    @property
    def policy(self) -> dict[str, str]:
        """What was agreed about the ledger as a whole, as `accord_meta` has it; empty: nothing."""
        return {REQUIRED: self.required, RENEWAL: self.renewal}

    def run(self, entries: Iterable[Entry], seal: Callable[[str], str] | None) -> Replay:
        """Go through all entries; without `seal`, seals are not looked at."""
        previous, seq = START, 0
        for entry in entries:
            self.entries += 1
            this = f"entry {entry.seq}"
            if entry.seq != seq + 1:
                self.problems.append(f"{this} comes after entry {seq}: entries are missing, or out of order")
            if entry.previous != previous:
                self.problems.append(f"{this} does not hold the hash of the entry before it")
            if not entry.is_whole:
                self.problems.append(f"{this} has been changed: its hash is another")
            if seal is not None and entry.seal != seal(str(entry.hash)):
                self.problems.append(f"{this} was not written with the ledger's key")
            try:
                self._apply(entry)
            except UNREADABLE as fault:
                self.problems.append(f"{this} cannot be read ({type(fault).__name__})")
            previous, seq = entry.hash, entry.seq if isinstance(entry.seq, int) else seq + 1
        return self

    def _apply(self, entry: Entry) -> None:
        content = entry.outline
        match entry.kind:
            case "register":
                self._register(entry.seq, content)
            case "reserve":
                self.open[entry.seq] = (str(content.get("table")), content.get("version", 0))
                self._charge(entry.seq, *list_columns("charges", content["charges"]))
            case "release" | "failed":
                if content["reserve"] not in self.open:
                    self.problems.append(f"entry {entry.seq} is about a reservation that is not open")
                self._settle(entry.seq, content)
            case "withdraw" | "readmit":
                self._withdraw(entry.seq, content)
            case "policy":
                self.required = ",".join(content[REQUIRED])
            case "renewal":
                self._agree_on_renewal(entry.seq, content[RENEWAL])
            case "renew":
                self._renew(entry, content)
            case "person" | "refused" | "repeat" | "token" | "description" | "approval":
                pass  # somebody was looked up, got nothing, or may ask: the accounts are as they were
            case "restored":
                self.restored += 1
            case "rotate":
                self._rotate(content)
            case kind:
                self.problems.append(f"entry {entry.seq} is of an unknown kind {kind!r}")

    def _settle(self, seq: int, content: dict[str, Any]) -> None:
        name, version = self.open.pop(content["reserve"], ("", 0))
        table = next((number for number, row in self.tables.items() if row[0] == name), None)
        if "question" in content and table is not None:
            self.answers[content["question"], table] = (version, seq)

    def _agree_on_renewal(self, seq: int, text: str) -> None:
        if text and (agreed := Renewal.read(text)) != agreed.not_before(self._renewed):
            self.problems.append(f"entry {seq} lets budgets be renewed for a time for which they were")
        self.renewal = text

    def _renew(self, entry: Entry, content: dict[str, Any]) -> None:
        before, after = Renewal.read(self.renewal), Renewal.read(content[RENEWAL])
        if not before.period < after.period <= after.period_of(datetime.fromisoformat(entry.time)):
            self.problems.append(f"entry {entry.seq} renews budgets before their time")
        if after != replace(before, period=after.period):
            self.problems.append(f"entry {entry.seq} renews budgets otherwise than was agreed")
        self.cohorts = before.renewed(self.cohorts, after.period - before.period)
        self.renewal, self._renewed = after.text, after

    def _charge(self, seq: int, numbers: IntArray, charge: IntArray) -> None:
        before, at = self.cohorts, self.cohorts.positions(numbers)
        if distinct(at).size < at.size:
            raise ValueError("a cohort is charged twice")
        spent = saturating_add(before.spent[at], charge)
        refunded = spent < before.spent[at]
        excess = (before.level[at] != PUBLIC) & (spent > before.allowed[at])
        if are_private(self.meta[1]):
            by_account = np.zeros(before.id.size, dtype=np.int64)
            by_account[at] = charge
            if not is_charged_by_menu(before, by_account):
                self.problems.append(f"entry {seq} charges a level more than a higher one")
        for row in np.flatnonzero(refunded | excess).tolist():
            if refunded[row]:
                self.problems.append(f"entry {seq} gives cohort {numbers[row]} something back")
            if excess[row]:
                self.problems.append(f"entry {seq} charges cohort {numbers[row]} more than it allows")
        all_spent = before.spent.copy()
        all_spent[at] = spent
        self.cohorts = replace(before, spent=all_spent)

    def _register(self, seq: int, content: dict[str, Any]) -> None:
        table = int(content["id"])
        if "menu" in content:
            menu = np.array([read_level_text(text) for text in content["menu"]], dtype=np.int64)
            self._registered(content, table, with_menu(self.cohorts, table, menu))
            return
        cohorts = self._moved(seq, table, Moves(*list_columns("moves", content["moves"])), _leaving(content))
        self._registered(content, table, cohorts)

    def _registered(self, content: dict[str, Any], table: int, cohorts: Cohorts) -> None:
        name, version, fingerprint, count, tiers, key, neighbors, digest = (
            content[field]
            for field in ("table", "version", "fingerprint", "people", "tiers", "key", "neighbors", "digest")
        )
        # only now that all of it was legible: half a registration is none
        self.cohorts = cohorts
        self.tables[table] = (name, version, fingerprint, count, tiers)
        self.meta, self.digest = (key, neighbors), digest

    def _withdraw(self, seq: int, content: dict[str, Any]) -> None:
        moves, digest = Moves(*list_columns("moves", content["moves"])), content["digest"]
        if (moves.level > 0).any() or (moves.source == NONE).any():
            raise ValueError("not a withdrawal of people who are known")
        self.cohorts = self._moved(seq, WITHDRAWN, moves, FORGOTTEN)
        self.digest = digest

    def _rotate(self, content: dict[str, Any]) -> None:
        """Everyone has another hash, so that tables have other fingerprints; nobody's account changes."""
        fingerprints, key, digest = dict(content["fingerprints"]), content["key"], content["digest"]
        if fingerprints.keys() != self.tables.keys():
            raise ValueError("not the tables that are registered")
        self.tables = {
            number: (name, version, fingerprints[number], people, tiers)
            for number, (name, version, _, people, tiers) in self.tables.items()
        }
        self.meta, self.digest = (key, self.meta[1]), digest

    def _moved(self, seq: int, table: int, moves: Moves, leaving: Leaving) -> Cohorts:
        """The cohorts after moves that lose nobody, and forget nothing."""
        has_source = moves.source != NONE
        gone = np.zeros(self.cohorts.id.size, dtype=np.int64)
        np.add.at(gone, self.cohorts.positions(moves.source[has_source]), moves.people[has_source])
        cohorts, mixed = apply_moves(self.cohorts, table, moves, leaving)
        for target in mixed.tolist():
            self.problems.append(f"entry {seq} puts people with different accounts into cohort {target}")
        if not np.array_equal(gone, self.cohorts.people):
            self.problems.append(f"entry {seq} loses people")
        return cohorts
