"""The books: who has how much left, and what was done with it.

Guarantee  Over all releases that name this ledger, nobody is charged more than their level: losses of one person add up ([J] Theorem 4), a person who
           is in two tables pays for releases about either, and what a release charges is taken before anything of it is read. Plans may
           depend on earlier answers: for pure ε the sum of adaptively chosen charges bounds the loss as well.
People     are known by a keyed hash of their id. Who is in a registered table, and with which level, is public; values are never looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import accord
from accord.budget import MICRO, PUBLIC, IntArray, level_text, to_float
from accord.errors import TABLE_CHANGED, BudgetError, LedgerError, PlanError, SourceError, did_you_mean
from accord.ledger import key as keys
from accord.ledger.chain import Entry, following, rows
from accord.ledger.cohorts import NONE, Cohorts, Moves, assign, places
from accord.ledger.head import ILLEGIBLE, Head, HeadFile, head_of
from accord.ledger.reading import (
    Accounts,
    CohortsOfTable,
    checked_accounts,
    digests,
    each_entry,
    everyone,
    newest_entry,
    people_digest,
    select,
    stored_accounts,
    write_cohorts,
    write_everyone,
)
from accord.ledger.store import MIGRATIONS, Session, SQLite, open_store
from accord.ledger.verifying import Verdict as Verdict
from accord.ledger.verifying import examine
from accord.people.identity import Remaining, fingerprint
from accord.people.table import Table
from accord.planning import Plan
from accord.spec import Spec
from accord.workloads import WorkloadPlan, parts_of

_TOLD = 3


@dataclass(frozen=True)
class Registration:
    """What the registration of a table changed."""

    name: str
    version: int
    people: int
    joined: int
    left: int
    lowered: int
    raised: int

    def __str__(self) -> str:
        if self.version == 1:
            return f"registered {self.name!r}: {self.people:,} people"
        return (
            f"{self.name!r} is at version {self.version}: {self.people:,} people; since the last version {self.joined:,} joined, "
            f"{self.left:,} left, {self.lowered:,} lowered their level, {self.raised:,} raised it"
        )


@dataclass(frozen=True)
class Account:
    """People of one level in one table, as they stand."""

    table: str
    tier: str | None
    level: float
    people: int
    spent: tuple[float, float]
    """The least and the most that anyone of them has spent."""
    left: tuple[float, float]


@dataclass(frozen=True)
class Held:
    """A reservation: charged, and not yet answered."""

    seq: int
    left: Remaining | None
    """How the plan's people are told apart, if not by their level."""
    mark: str
    """Of the people who are charged."""


@dataclass(frozen=True)
class _Registered:
    id: int
    name: str
    version: int
    people: int


class Ledger:
    """Everyone's budget, in a SQLite file or a PostgreSQL database.

    >>> import tempfile, accord
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(folder.name + "/accord.db")
    >>> people = accord.table({"id": [1, 2, 3], "age": [31, 45, 62], "level": [0.5, 1.0, 1.0]}, epsilon="level", user="id")
    >>> print(ledger.register(people, "people"))
    registered 'people': 3 people
    >>> answer = people.release(accord.mean("age", bounds=(0, 100)), "minimum", share=0.4, ledger=ledger)
    >>> ledger.remaining(people).levels
    (0.3, 0.8)
    >>> folder.cleanup()
    """

    def __init__(self, url: str | Path, key: str | bytes | None = None, *, create: bool = True) -> None:
        """Open a ledger, or make a new one.

        Args:
            url: a file, or postgresql://user@host/database.
            key: keys the hash of people's ids. Left out: for a file, the one beside it (accord.db.key), made with the ledger; for
                PostgreSQL, the variable ACCORD_LEDGER_KEY. Keep it: without it, no table can be recognised.
            create: whether to make a ledger that is not there.

        Raises:
            LedgerError: it cannot be opened, is from a newer version, or the key is another one.
        """
        self._store = open_store(url)
        self._key = None if key is None else keys.Key(key)
        self.label = self._store.label
        self._head = HeadFile(self._store) if isinstance(self._store, SQLite) else None
        if not self._store.exists():
            if not create:
                raise LedgerError(
                    f"there is no ledger {self.label}. Check the name, or make one with 'accord ledger init'."
                )
            self._create()
        with self._store.read() as db:
            found = db.version()
        if found == 0:
            raise LedgerError(
                f"{self.label} is not a ledger of accord. Name another, or make one with 'accord ledger init'."
            )
        if found > len(MIGRATIONS):
            raise LedgerError(
                f"the ledger {self.label} is of version {found}, and this accord knows {len(MIGRATIONS)}. Install a newer accord."
            )
        if found < len(MIGRATIONS):
            with self._store.write() as db:
                db.migrate()
        if self._key is not None:
            self._check_key(self._key)

    def register(self, people: Table, name: str) -> Registration:
        """Make a table known, or a new version of it. Who is in it, and with which level, is thereby declared public.

        People keep what they have spent, also if they leave and come back; those who join have their full budget, unless another table knows
        them. In several tables, the lowest level of a person counts for all.

        Raises:
            LedgerError: the table has no `user=`, or another notion of neighbors than the ledger.
        """
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise LedgerError("a table is registered under a name, such as 'people'.")
        if not isinstance(people, Table):
            raise LedgerError(f"a ledger registers tables of accord.table, not {type(people).__name__}.")
        secret = self._secret()
        hashes, levels = people.identity.people(secret)
        order = np.argsort(hashes)
        hashes, levels = hashes[order], levels[order]
        if (hashes[1:] == hashes[:-1]).any():
            raise LedgerError(
                "two people of this table have the same id (as text, without outer spaces and a trailing .0). Give everyone their own."
            )
        mark = fingerprint(*_totals(hashes, levels))
        with self._writing() as db:
            before = checked_accounts(db)
            self._agree(db, before, people.neighbors)
            found = {row[1]: row for row in before.tables}.get(name)
            if found is not None and found[3] == mark:
                return Registration(name, found[2], hashes.size, 0, 0, 0, 0)
            taken = max((row[0] for row in before.tables), default=0)
            table, version = (found[0], found[2] + 1) if found is not None else (taken + 1, 1)
            made = assign(*everyone(db, before), before.cohorts, table, hashes, levels)
            change = Registration(name, version, hashes.size, *_changes(before.cohorts, made.moves, table))
            digest = write_everyone(db, made.hashes, made.of)
            tiers = json.dumps({tier: level_text(level) for tier, level in people.spec().tiers.items()})
            db.run("DELETE FROM accord_table WHERE id = ?", table)
            db.run(
                "INSERT INTO accord_table (id, name, version, fingerprint, people, tiers) VALUES (?, ?, ?, ?, ?, ?)",
                table,
                name,
                version,
                mark,
                hashes.size,
                tiers,
            )
            others = [row for row in before.tables if row[0] != table]
            tables = sorted([*others, (table, name, version, mark, hashes.size, tiers)])
            after = Accounts(before.meta | {"neighbors": people.neighbors}, tables, made.cohorts)
            write_cohorts(db, made.cohorts)
            self._append(
                db,
                "register",
                {
                    "accord": accord.__version__,
                    "table": name,
                    "id": table,
                    "version": version,
                    "fingerprint": mark,
                    "tiers": tiers,
                    "neighbors": people.neighbors,
                    "key": self._check(db),
                    "people": hashes.size,
                    "joined": change.joined,
                    "left": change.left,
                    "lowered": change.lowered,
                    "raised": change.raised,
                    "digest": digest,
                    "moves": rows("moves", made.moves.columns),
                    "accounts": _written(db, after).digest(digest),
                },
            )
        return change

    def remaining(self, people: Table) -> Spec:
        """What everyone in a table has left, as a Spec that a plan can start from. Those who have nothing left count as opted out.

        Raises:
            LedgerError: the table is not registered, or has changed since.
        """
        return _spec(self._known(people)[1])

    def affordable(self, people: Table, plan: Plan | WorkloadPlan) -> int | None:
        """How many times more a plan for this table could be released; None: without end, because nobody is charged but public people."""
        charges = _charges(plan)
        _, found = self._known(people)
        charge = _charge_of(_base(found, people.spec(), plan.spec), plan.spec, charges)
        counted = (charge > 0) & (found.level != PUBLIC)
        return int((found.left[counted] // charge[counted]).min()) if counted.any() else None

    def accounts(self) -> list[Account]:
        """Every level of every table: how many people, what they have spent and what they have left."""
        with self._reading() as db:
            found = checked_accounts(db)
        accounts = []
        for table, name, _, _, _, tiers in sorted(found.tables, key=lambda row: row[1]):
            cohorts = found.of(table)
            names: dict[str, list[str]] = {}
            for tier, level in self._tiers(tiers).items():
                names.setdefault(level, []).append(tier)
            if not cohorts.wish.size:
                continue
            first = np.flatnonzero(np.diff(cohorts.wish, prepend=NONE))
            columns = [
                cohorts.wish[first],
                np.add.reduceat(cohorts.people, first),
                *(
                    edge.reduceat(column, first)
                    for column in (cohorts.spent, cohorts.left)
                    for edge in (np.minimum, np.maximum)
                ),
            ]
            for wish, people, *amounts in zip(*(column.tolist() for column in columns), strict=True):
                least, most, fewest, fullest = map(to_float, amounts)
                tier = " / ".join(names.get(level_text(wish), [])) if names else ""
                accounts.append(Account(name, tier or None, to_float(wish), people, (least, most), (fewest, fullest)))
        return accounts

    def entries(self) -> list[Entry]:
        """The chain of everything that was done, oldest first."""
        with self._reading() as db:
            return list(each_entry(db))

    def history(self) -> list[dict[str, Any]]:
        """Every reservation with what came of it, oldest first: entry, time, table, charges, state and receipts."""
        with self._reading() as db:
            return self._history(each_entry(db))

    def _history(self, entries: Iterator[Entry]) -> list[dict[str, Any]]:
        made: dict[int, dict[str, Any]] = {}
        for entry in entries:
            content = entry.outline
            if entry.kind == "reserve":
                made[entry.seq] = {
                    "entry": entry.seq,
                    "time": entry.time,
                    **{name: content.get(name) for name in ("accord", "table", "version", "queries", "booked")},
                    "state": "no answer",
                    "receipts": [],
                }
            elif entry.kind in ("release", "failed"):
                answered = content.get("reserve")
                if not isinstance(answered, int) or answered not in made:
                    raise LedgerError(
                        f"entry {entry.seq} of the ledger {self.label} is about a reservation that there is not. "
                        "Restore the ledger from a backup, or run 'accord ledger verify' to see what is wrong."
                    )
                state = "released" if entry.kind == "release" else "failed"
                made[answered] |= {"state": state, "receipts": content.get("receipts", [])}
        return list(made.values())

    def verify(self) -> Verdict:
        """Check the files and the chain, that the accounts are what follows from it, and that no entry is lost. Damage is told, not raised."""
        head = None if self._head is None else self._head.read()
        with self._store.read() as db:
            return examine(db, self._matching, lambda key: self._missing_entries(db, head, key))

    def accept_backup(self, why: str) -> Entry:
        """Go on from an older copy of this ledger, or without the file that says how many entries it has; booked with the reason.

        Everything that was spent after the copy was made is forgotten by this: people may lose more than their level.

        Raises:
            LedgerError: nothing is missing, or more is wrong than that.
        """
        if not isinstance(why, str) or not why.strip() or not why.isprintable():
            raise LedgerError("say why entries are missing, in a line of text: it is booked.")
        if self._head is None:
            raise LedgerError(
                f"the ledger {self.label} is kept by a server, and nothing beside it says how many entries it has: there is nothing to accept."
            )
        key, head = self._known_key(), self._head.read()
        with self._store.write() as db:
            if self._missing_entries(db, head, key) is None:
                raise LedgerError(f"nothing is missing in the ledger {self.label}: there is nothing to accept.")
            if problems := examine(db, self._matching, lambda _: None).problems:
                raise LedgerError(
                    f"the ledger {self.label} is damaged, and not only older: {problems[0]}. Restore another copy of it."
                )
            digest = people_digest(db)
            content = {
                "accord": accord.__version__,
                "why": why,
                "had": None if head is None or head == ILLEGIBLE else head.entries,
                "digest": digest,
                "accounts": stored_accounts(db).digest(digest),
            }
            entry = self._append(db, "restored", content)
            newest = head_of(db, key.seal)
        self._head.write(newest)
        return entry

    def export(self) -> dict[str, Any]:
        """Everything but the people, as plain data that another program can check (docs/ledger.md says how)."""
        with self._reading() as db:
            entries, accounts = list(each_entry(db)), checked_accounts(db)
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
                }
                for number, level, allowed, spent, people in zip(
                    *(column.tolist() for column in accounts.cohorts.columns), strict=True
                )
            ],
        }

    # ---- for `release` ---------------------------------------------------------------------------------------------------

    def _register_groups(self, people: Table, groups: dict[str, Table]) -> None:
        """Public groups of a registered table are tables, too, so that their people can be charged by themselves."""
        secret = self._secret()
        registered, _ = self._known(people)
        with self._reading() as db:
            known = {row[3] for row in checked_accounts(db).tables}
        for name, group in groups.items():
            if group.identity.fingerprint(secret) not in known:
                self.register(group, f"{registered.name}: {name}")

    def _reserve(self, people: Table, plan: Plan | WorkloadPlan) -> Held:
        """Charge everyone for a plan, before anything is read; all or nobody."""
        return self._reserve_all([(people, plan)])[0]

    def _reserve_all(self, asked: list[tuple[Table, Plan | WorkloadPlan]]) -> list[Held]:
        """Charge everyone for plans about different people; all of them or nobody."""
        marks = [people.identity.fingerprint(self._secret()) for people, _ in asked]
        with self._writing() as db:
            return [self._charge(db, *one, mark) for one, mark in zip(asked, marks, strict=True)]

    def _charge(self, db: Session, people: Table, plan: Plan | WorkloadPlan, mark: str) -> Held:
        secret, charges = self._secret(), _charges(plan)
        before = checked_accounts(db)
        registered = self._find(db, before, people, mark)
        self._agree(db, before, plan.neighbors)
        found = before.of(registered.id)
        base = _base(found, people.spec(), plan.spec)
        charge = _charge_of(base, plan.spec, charges)
        if (charge < 0).any() or (charge > base).any():
            raise PlanError(
                "the plan charges people more than their level, or less than nothing: it was tampered with. Plan again."
            )
        short = (charge > found.left) & (found.level != PUBLIC)
        if short.any():
            raise BudgetError(_too_little(found, charge, short))
        left = None if base is found.wish else _left(db, before, secret, people.spec(), found, plan.spec)
        if left is not None and left.by_person is not None and not people.reader.lends:
            raise LedgerError(
                "people of one level have different amounts left here, and a Spark DataFrame or a PostgreSQL table cannot be matched with the ledger person by person. "
                "Write it to a Parquet file or an Arrow table and open that, or plan by share=. Nothing was spent."
            )
        paying = np.flatnonzero(charge)
        payers = found.id[paying], charge[paying]
        if db.charge(*payers) != paying.size:
            raise BudgetError("somebody has less left than this release would cost them. Nothing was spent.")
        after, everyones = before.charged(*payers), people_digest(db)
        entry = self._append(
            db,
            "reserve",
            {
                "accord": accord.__version__,
                "table": registered.name,
                "version": registered.version,
                "queries": [part.query.label for part in parts_of(plan)],
                "charges": rows("charges", payers),
                "booked": _booked(found, charge),
                "digest": everyones,
                "accounts": _written(db, after).digest(everyones),
            },
        )
        return Held(entry.seq, left, mark)

    def _recognise(self, people: Table, held: Held) -> None:
        """Refuse a table that has changed while it was read: others may have been read than were charged."""
        if people.identity.fingerprint(self._secret()) != held.mark:
            raise SourceError(TABLE_CHANGED)

    def _settle(self, held: Held, receipts: list[dict[str, Any]] | None) -> Entry:
        """Book what came of a reservation; None: nothing was released."""
        with self._writing() as db:
            unchanged = digests(newest_entry(db))
            if receipts is None:
                return self._append(db, "failed", {"reserve": held.seq, **unchanged})
            return self._append(db, "release", {"reserve": held.seq, "receipts": receipts, **unchanged})

    def _append(self, db: Session, kind: str, content: dict[str, Any]) -> Entry:
        entry = following(newest_entry(db), kind, content, self._known_key().seal)
        db.run(
            "INSERT INTO accord_entry (seq, time, kind, body, previous, hash, seal) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *vars(entry).values(),
        )
        return entry

    # ---- inside ----------------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        """A new ledger with its key. Two processes at once make one, and one that is killed leaves nothing in the way."""
        with self._store.write(create=True) as db:
            if db.version() == 0:
                made = self._key or self._new_key()
                self._refuse_remains()
                db.migrate()
                db.run("INSERT INTO accord_meta (name, value) VALUES ('key', ?)", made.check)
                if self._head is not None:
                    self._head.begin(db, made.seal)
        if self._key is None:
            self._known_key()

    def _new_key(self) -> keys.Key:
        if not isinstance(self._store, SQLite):
            found = keys.from_environment()
            if found is None:
                raise LedgerError(self._missing())
            return found
        beside = keys.key_file(self._store.path)
        if beside.exists():
            raise LedgerError(
                f"there is a key {str(beside)!r}, but its ledger {self.label} is gone, and a new one would give everyone their whole budget again. "
                "Restore the ledger; or remove the key, if nothing was ever charged there."
            )
        self._refuse_remains()
        return keys.draft(beside)

    def _secret(self) -> str:
        return self._known_key().secret

    def _known_key(self) -> keys.Key:
        """The key, which is looked up when it is first needed."""
        if self._key is None:
            found = self._at_hand()
            if found is None:
                raise LedgerError(self._missing())
            self._check_key(found)
            if isinstance(self._store, SQLite):
                keys.confirm(keys.key_file(self._store.path))
            self._key = found
        return self._key

    def _at_hand(self) -> keys.Key | None:
        if isinstance(self._store, SQLite):
            return keys.from_file(keys.key_file(self._store.path))
        return keys.from_environment()

    def _missing(self) -> str:
        if isinstance(self._store, SQLite):
            beside = str(keys.key_file(self._store.path))
            return f"the ledger's key {beside!r} is missing, and without it nobody can be recognised. Restore it, or give key=."
        return (
            f"the ledger {self.label} needs its key: set the variable {keys.VARIABLE}, or give key=. "
            "Use the same text everywhere and keep it."
        )

    def _check_key(self, key: keys.Key) -> None:
        with self._store.read() as db:
            stored = self._check(db)
        if stored != key.check:
            raise LedgerError(
                f"this is not the key that the ledger {self.label} was made with: it would take everyone for somebody new. Give the right one."
            )

    def _check(self, db: Session) -> str:
        stored = dict(select(db, "accord_meta", "WHERE name = 'key'"))
        if not stored:
            raise db.damaged("it has no check of its key")
        return str(stored["key"])

    def _tiers(self, text: str) -> dict[str, str]:
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError, RecursionError):
            pass
        raise LedgerError(
            f"the ledger {self.label} is damaged: names of tiers cannot be read. Restore it from a backup."
        )

    def _agree(self, db: Session, accounts: Accounts, neighbors: str) -> None:
        """One notion of neighbors for all: charges of different ones do not add up."""
        agreed = accounts.meta.get("neighbors")
        if agreed is None:
            db.run("INSERT INTO accord_meta (name, value) VALUES ('neighbors', ?)", neighbors)
        elif agreed != neighbors:
            raise LedgerError(
                f"the ledger is kept for neighbors={agreed!r}, and this is for {neighbors!r}. Their charges do not add up: use two ledgers."
            )

    # ---- transactions, and what is noted of them outside ----------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """A ledger that lost no entry."""
        head = None if self._head is None else self._head.read()
        with self._store.read() as db:
            self._refuse_incomplete(db, head)
            yield db

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """One transaction on a ledger that lost no entry; when it is over, the head follows."""
        seal, head = self._known_key().seal, None if self._head is None else self._head.read()
        with self._store.write() as db:
            self._refuse_incomplete(db, head)
            if self._head is not None and head is None:  # of a version that made none
                self._head.begin(db, seal)
            yield db
        try:
            if self._head is not None:
                self._head.follow(seal)
        except LedgerError as fault:
            raise LedgerError(f"{fault} What was just done is booked all the same.") from None

    def _refuse_incomplete(self, db: Session, head: Head | None) -> None:
        if missing := self._missing_entries(db, head, self._key):
            raise LedgerError(
                f"the ledger {self.label} is not complete: {missing}, and spendings would be forgotten. Put its newest copy back; "
                "if there is none, see 'accord ledger accept-backup' (ledger.accept_backup)."
            )

    def _missing_entries(self, db: Session, head: Head | None, key: keys.Key | None) -> str | None:
        """Why entries may be missing at the end, as far as can be told."""
        return None if self._head is None else self._head.problem(db, head, None if key is None else key.seal)

    def _refuse_remains(self) -> None:
        """No new ledger where one was lost."""
        head = None if self._head is None else self._head.read()
        if self._head is not None and head is not None and head.entries:
            raise LedgerError(
                f"there is the head {self._head.label}, but its ledger {self.label} is gone, and a new one would give everyone their whole budget again. "
                "Restore the ledger; or remove the head, if nothing was ever charged there."
            )

    def _matching(self, check: Any) -> keys.Key | None:
        """The key, if it is at hand and the right one."""
        key = self._key or (self._at_hand() if check else None)
        return key if key is not None and key.check == check else None

    # ---- who is known ----------------------------------------------------------------------------------------------------

    def _known(self, people: Table) -> tuple[_Registered, CohortsOfTable]:
        mark = people.identity.fingerprint(self._secret())
        with self._reading() as db:
            accounts = checked_accounts(db)
            registered = self._find(db, accounts, people, mark)
        return registered, accounts.of(registered.id)

    def _find(self, db: Session, accounts: Accounts, people: Table, mark: str) -> _Registered:
        """The registered table with exactly these people and levels."""
        for table, name, version, fingerprinted, size, _ in accounts.tables:
            if fingerprinted == mark:
                return _Registered(table, name, version, size)
        raise LedgerError(self._unknown(db, accounts, people))

    def _unknown(self, db: Session, accounts: Accounts, people: Table) -> str:
        """Why a table is not known: it was never registered, or what has changed since. Membership and levels are public."""
        names = sorted(row[1] for row in accounts.tables)
        never = f"this table is not registered in the ledger {self.label}. Do ledger.register(table, 'name') first, or 'accord ledger register'."
        if not names:
            return never
        hashes, levels = people.identity.people(self._secret())
        order = np.argsort(hashes)
        known = everyone(db, accounts)
        nearest: tuple[int, str, tuple[int, int, int, int]] | None = None
        for table, name, *_ in accounts.tables:
            moves = assign(*known, accounts.cohorts, table, hashes[order], levels[order]).moves
            joined, gone, lowered, raised = _changes(accounts.cohorts, moves, table)
            same = hashes.size - joined
            if same * 2 > hashes.size and (nearest is None or same > nearest[0]):
                nearest = (same, name, (joined, gone, lowered, raised))
        if nearest is None:
            return f"{never} {did_you_mean('', names)}"
        _, name, (joined, gone, lowered, raised) = nearest
        return (
            f"this table is not as it was registered as {name!r}: {joined:,} people joined, {gone:,} left, {lowered:,} lowered their level, {raised:,} raised it. "
            f"Register the new version with ledger.register(table, {name!r}), or 'accord ledger register'; what everyone has spent is kept."
        )

    def __repr__(self) -> str:
        return f"<Ledger {self.label}>"


def _written(db: Session, accounts: Accounts) -> Accounts:
    """The accounts that were just written, read again: an index that is damaged leads to the account of somebody else."""
    if not accounts.are_stored(db):
        raise db.damaged("the database does not hold what was just written to it")
    return accounts


# ---- arithmetic --------------------------------------------------------------------------------------------------------


def _charges(plan: Plan | WorkloadPlan) -> IntArray:
    return plan.spent if isinstance(plan, WorkloadPlan) else plan.cost


def _base(found: CohortsOfTable, whole: Spec, planned: Spec) -> IntArray:
    """What a plan goes by: everyone's level in the table, or what they have left."""
    if planned == whole:
        return found.wish
    if planned == _spec(found):
        return found.left
    raise PlanError(
        "the plan was made for other levels than this table has, or what is left has changed since. Plan again: "
        "table.plan(query, share=…), or accord.plan(ledger.remaining(table), query)."
    )


def _charge_of(base: IntArray, spec: Spec, charges: IntArray) -> IntArray:
    """What a plan charges people by their level in its Spec; nothing if they have none there."""
    return np.where(base > 0, charges[np.minimum(np.searchsorted(spec.micro, base), spec.micro.size - 1)], 0)


def _spec(found: CohortsOfTable) -> Spec:
    return Spec(found.left, found.people, is_rest=True)


def _left(
    db: Session, accounts: Accounts, secret: str, spec: Spec, found: CohortsOfTable, remaining: Spec
) -> Remaining:
    """How to tell what each person has left: by level, if that decides it, else person by person."""
    least, most = (np.zeros(spec.micro.size, dtype=np.int64) for _ in range(2))
    least[:] = PUBLIC
    asked = found.wish > 0
    place = np.searchsorted(spec.micro, found.wish[asked])
    np.minimum.at(least, place, found.left[asked])
    np.maximum.at(most, place, found.left[asked])
    if (least == most).all():
        return Remaining(remaining, least, None)
    hashes, of = everyone(db, accounts)
    order = np.argsort(found.id)
    at = np.minimum(np.searchsorted(found.id[order], of), found.id.size - 1)
    inside = found.id[order][at] == of
    return Remaining(remaining, None, (secret, hashes[inside], found.left[order][at[inside]]))


def _totals(hashes: IntArray, levels: IntArray) -> tuple[IntArray, IntArray, list[int]]:
    """The people and the sum of their hashes for each level, as the engine would add them up."""
    distinct, place = places(levels)
    people = np.bincount(place, minlength=distinct.size)
    if distinct.size == hashes.size:  # each of one person
        return distinct, people, hashes[np.argsort(place)].tolist()
    totals = [0] * distinct.size
    for shift in (0, 21, 42):  # parts of 21 bits: their sums are whole numbers below 2⁵³, which floats add up exactly
        part = np.bincount(place, weights=(hashes >> shift) & 0x1FFFFF, minlength=distinct.size)
        totals = [total + (int(sum_) << shift) for total, sum_ in zip(totals, part.tolist(), strict=True)]
    return distinct, people, totals


def _changes(cohorts: Cohorts, moves: Moves, table: int) -> tuple[int, int, int, int]:
    """How many people joined a table, left it, lowered their level and raised it."""
    before = np.full(moves.source.size, NONE, dtype=np.int64)
    known = moves.source != NONE
    before[known] = cohorts.levels_in(table)[cohorts.at(moves.source[known])]
    was, will = before != NONE, moves.level != NONE
    joined, left, stayed = ~was & will, was & ~will, was & will
    lowered, raised = stayed & (moves.level < before), stayed & (moves.level > before)
    counts = (int(moves.people[kind].sum()) for kind in (joined, left, lowered, raised))
    return next(counts), next(counts), next(counts), next(counts)


def _booked(found: CohortsOfTable, charge: IntArray) -> list[dict[str, Any]]:
    """What was charged to whom, for reading: people of a level who had as much left are one line; many lines are folded, as in receipts."""
    from accord.receipt import MOST_LEVELS, folded

    if not charge.size:
        return []
    order = np.lexsort((charge, found.left, found.wish))
    wish, left, charge = found.wish[order], found.left[order], charge[order]
    first = np.flatnonzero(np.any([np.diff(column, prepend=NONE) for column in (wish, left, charge)], axis=0))
    people = np.add.reduceat(found.people[order], first)
    wish, left, charge = wish[first], left[first], charge[first]
    if first.size <= MOST_LEVELS:
        columns = (column.tolist() for column in (wish, left, people, charge))
        return [
            {"level": level_text(w), "left_before": level_text(rest), "people": n, "charge": level_text(c)}
            for w, rest, n, c in zip(*columns, strict=True)
        ]
    return [
        {
            "level": level_text(int(wish[start])),
            "to": level_text(int(wish[end - 1])),
            "left_before": level_text(int(left[start:end].min())),
            "people": int(people[start:end].sum()),
            "charge": level_text(int(charge[start:end].max())),
        }
        for start, end in folded(first.size)
    ]


def _too_little(found: CohortsOfTable, charge: IntArray, short: Any) -> str:
    """Who has too little, and what would fit; by level, which is public."""
    wish, left, charges, people = (column[short] for column in (found.wish, found.left, charge, found.people))
    first = np.flatnonzero(np.diff(wish, prepend=NONE))  # cohorts are by level
    last = np.append(first[1:], wish.size) - 1
    columns = (wish[first], charges[last], np.minimum.reduceat(left, first), np.add.reduceat(people, first))
    told = [
        f"level {level_text(w)} with {level_text(c)}; {level_text(rest)} is left to {n:,} people"
        for w, c, rest, n in zip(*(column[:_TOLD].tolist() for column in columns), strict=True)
    ]
    more = f", and {first.size - _TOLD} more levels" if first.size > _TOLD else ""
    # a share under which nobody could be short, whomever a plan for it charges
    limited = (found.wish > 0) & (found.level != PUBLIC)
    # (what is left is below 10¹², so that a million times as much is a whole number of 64 bits)
    wished, rest = found.wish[limited], found.left[limited]
    fits = int(np.where(wished == PUBLIC, 0, rest * MICRO // wished).min())
    usable = 0 < fits < MICRO and int(found.wish[limited].max()) * fits >= MICRO
    ask = f"Ask for share={level_text(fits)} or less, or" if usable else "No share fits everyone:"
    return (
        f"this release charges {', '.join(told)}{more}. {ask} plan from what is left: accord.plan(ledger.remaining(table), query) "
        "(on the command line --remaining). See 'accord ledger show'. Nothing was spent."
    )
