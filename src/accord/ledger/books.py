"""The books: who has how much left, and what was done with it.

Guarantee  Over all releases that name this ledger, nobody is charged more than their level: losses of one person add up ([J] Theorem 4), a person who
           is in two tables pays for releases about either, and what a release charges is taken before anything of it is read. Plans may
           depend on earlier answers: for pure ε the sum of adaptively chosen charges bounds the loss as well.
People     are known by a keyed hash of their id. Who is in a registered table, and with which level, is public; values are never looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import accord
from accord.errors import TABLE_CHANGED, BudgetError, LedgerError, PlanError, SourceError, did_you_mean
from accord.ledger import key as keys
from accord.ledger.chain import Entry, Replay, encode, following
from accord.ledger.cohorts import Cohort, assign, left_of, places, sizes
from accord.ledger.store import MIGRATIONS, Session, SQLite, open_store
from accord.planning import Plan
from accord.spec import MICRO, PUBLIC, IntArray, Spec, level_text, to_float
from accord.tables import Left, Table, fingerprint
from accord.workloads import WorkloadPlan, parts_of

_CHUNK = 2**20
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
class Verdict:
    """What `verify` found."""

    entries: int
    sealed: bool
    """Whether the key was at hand, to see who wrote the entries."""
    open: int
    """Reservations that nothing is known to have come of: interrupted, or under way. They are charged."""
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Held:
    """A reservation: charged, and not yet answered."""

    seq: int
    left: Left | None
    """How the plan's people are told apart, if not by their level."""
    mark: str
    """Of the people who are charged."""


@dataclass(frozen=True)
class _Registered:
    id: int
    name: str
    version: int
    people: int


@dataclass(frozen=True)
class _Cohorts:
    """The cohorts of a table, one entry each."""

    id: IntArray
    wish: IntArray
    """Their level in this table."""
    level: IntArray
    allowed: IntArray
    spent: IntArray
    people: IntArray

    @property
    def left(self) -> IntArray:
        return left_of(self.level, self.allowed, self.spent)


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
        hashes, levels = people._people(secret)
        order = np.argsort(hashes)
        hashes, levels = hashes[order], levels[order]
        if (hashes[1:] == hashes[:-1]).any():
            raise LedgerError(
                "two people of this table have the same id (as text, without outer spaces and a trailing .0). Give everyone their own."
            )
        mark = fingerprint(*_totals(hashes, levels))
        with self._store.write() as db:
            self._agree(db, people.neighbors)
            found = db.rows("SELECT id, version, fingerprint FROM accord_table WHERE name = ?", name)
            if found and found[0][2] == mark:
                return Registration(name, int(found[0][1]), hashes.size, 0, 0, 0, 0)
            taken = int(db.rows("SELECT COALESCE(MAX(id), 0) FROM accord_table")[0][0])
            table, version = (int(found[0][0]), int(found[0][1]) + 1) if found else (taken + 1, 1)
            known = _all_cohorts(db)
            made = assign(*_people(db), known, table, hashes, levels, max(known, default=0) + 1)
            change = Registration(name, version, hashes.size, *_changes(known, made.moves, table))
            digest = _write(db, made.hashes, made.cohorts)
            tiers = json.dumps({tier: level_text(level) for tier, level in people.spec().tiers.items()})
            people_of = sizes(made.moves)
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
            db.run("DELETE FROM accord_member")
            db.run("DELETE FROM accord_cohort")
            rows = [(number, cohort, people_of.get(number, 0)) for number, cohort in made.known.items()]
            rows = [(number, c if size else Cohort(c.spent, ()), size) for number, c, size in rows]
            db.many(
                "INSERT INTO accord_cohort (id, level, allowed, spent, people) VALUES (?, ?, ?, ?, ?)",
                [(number, c.level, c.allowed, c.spent, size) for number, c, size in rows],
            )
            db.many(
                "INSERT INTO accord_member (tab, cohort, level) VALUES (?, ?, ?)",
                [(tab, number, level) for number, c, _ in rows for tab, level in c.levels],
            )
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
                    "moves": encode(made.moves),
                },
            )
        return change

    def remaining(self, people: Table) -> Spec:
        """What everyone in a table has left, as a Spec that a plan can start from. Those who have nothing left count as opted out.

        Raises:
            LedgerError: the table is not registered, or has changed since.
        """
        with self._known(people) as (db, registered):
            return _spec(_cohorts(db, registered.id))

    def affordable(self, people: Table, plan: Plan | WorkloadPlan) -> int | None:
        """How many times more a plan for this table could be released; None: without end, because nobody is charged but public people."""
        charges = _charges(plan)
        with self._known(people) as (db, registered):
            found = _cohorts(db, registered.id)
        charge = _charge_of(_base(found, people.spec(), plan.spec), plan.spec, charges)
        counted = (charge > 0) & (found.level != PUBLIC)
        return int((found.left[counted] // charge[counted]).min()) if counted.any() else None

    def accounts(self) -> list[Account]:
        """Every level of every table: how many people, what they have spent and what they have left."""
        with self._store.read() as db:
            tables = db.rows("SELECT id, name, tiers FROM accord_table ORDER BY name")
            found = {table: _cohorts(db, table) for table, _, _ in tables}
        accounts = []
        for table, name, tiers in tables:
            cohorts = found[table]
            names: dict[str, list[str]] = {}
            for tier, level in self._tiers(tiers).items():
                names.setdefault(level, []).append(tier)
            for wish in np.unique(cohorts.wish).tolist():
                these = cohorts.wish == wish
                spent, left = cohorts.spent[these], cohorts.left[these]
                accounts.append(
                    Account(
                        name,
                        " / ".join(names.get(level_text(wish), [])) or None,
                        to_float(wish),
                        int(cohorts.people[these].sum()),
                        (to_float(int(spent.min())), to_float(int(spent.max()))),
                        (to_float(int(left.min())), to_float(int(left.max()))),
                    )
                )
        return accounts

    def entries(self) -> list[Entry]:
        """The chain of everything that was done, oldest first."""
        with self._store.read() as db:
            return _entries(db)

    def history(self) -> list[dict[str, Any]]:
        """Every reservation with what came of it, oldest first: entry, time, table, charges, state and receipts."""
        made: dict[int, dict[str, Any]] = {}
        for entry in self.entries():
            content = entry.content
            if entry.kind == "reserve":
                made[entry.seq] = {
                    "entry": entry.seq,
                    "time": entry.time,
                    **{name: content[name] for name in ("accord", "table", "version", "queries", "booked")},
                    "state": "no answer",
                    "receipts": [],
                }
            elif entry.kind in ("release", "failed"):
                state = "released" if entry.kind == "release" else "failed"
                made[content["reserve"]] |= {"state": state, "receipts": content.get("receipts", [])}
        return list(made.values())

    def verify(self) -> Verdict:
        """Check the chain, and that the accounts are what follows from it."""
        with self._store.read() as db:
            entries = _entries(db)
            cohorts = db.rows("SELECT id, level, allowed, spent, people FROM accord_cohort")
            members = db.rows("SELECT cohort, tab, level FROM accord_member")
            tables = db.rows("SELECT id, name, version, fingerprint, people, tiers FROM accord_table")
            meta = dict(db.rows("SELECT name, value FROM accord_meta"))
            blocks = db.rows("SELECT hashes, cohorts FROM accord_people ORDER BY chunk")
        key = self._key or (self._at_hand() if meta.get("key") else None)
        if key is not None and key.check != meta.get("key"):
            key = None
        replay = Replay().run(entries, None if key is None else key.seal)
        problems = list(replay.problems)
        expected: dict[Any, Any] = {
            number: (c.level, replay.allowed[number], c.spent, replay.people[number])
            for number, c in replay.cohorts.items()
        }
        found = {row[0]: tuple(row[1:]) for row in cohorts}
        wrong = [number for number in expected.keys() | found.keys() if expected.get(number) != found.get(number)]
        problems += [f"the account of cohort {n} is not what follows from the entries" for n in sorted(wrong, key=str)]
        levels = {(n, table, level) for n, c in replay.cohorts.items() for table, level in c.levels}
        if len(members) != len(levels) or set(members) != levels:
            problems.append("the levels of cohorts are not what follows from the entries")
        if {row[0]: tuple(row[1:]) for row in tables} != replay.tables:
            problems.append("the registered tables are not what follows from the entries")
        if entries and _digest(blocks) != replay.digest:
            problems.append("who is in which cohort is not what was registered")
        if entries and (meta.get("key"), meta.get("neighbors")) != replay.meta:
            problems.append("the check of the key, or the notion of neighbors, is not what was registered")
        return Verdict(len(entries), key is not None, len(replay.open), tuple(problems))

    def export(self) -> dict[str, Any]:
        """Everything but the people, as plain data that another program can check (docs/ledger.md says how)."""
        with self._store.read() as db:
            entries = _entries(db)
            cohorts = db.rows("SELECT id, level, allowed, spent, people FROM accord_cohort ORDER BY id")
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
                for number, level, allowed, spent, people in cohorts
            ],
        }

    # ---- for `release` ---------------------------------------------------------------------------------------------------

    def _register_groups(self, people: Table, groups: dict[str, Table]) -> None:
        """Public groups of a registered table are tables, too, so that their people can be charged by themselves."""
        secret = self._secret()
        with self._known(people) as (db, registered):
            known = {str(row[0]) for row in db.rows("SELECT fingerprint FROM accord_table")}
        for name, group in groups.items():
            if group._fingerprint(secret) not in known:
                self.register(group, f"{registered.name}: {name}")

    def _reserve(self, people: Table, plan: Plan | WorkloadPlan) -> Held:
        """Charge everyone for a plan, before anything is read; all or nobody."""
        return self._reserve_all([(people, plan)])[0]

    def _reserve_all(self, asked: list[tuple[Table, Plan | WorkloadPlan]]) -> list[Held]:
        """Charge everyone for plans about different people; all of them or nobody."""
        marks = [people._fingerprint(self._secret()) for people, _ in asked]
        with self._store.write() as db:
            return [self._charge(db, *one, mark) for one, mark in zip(asked, marks, strict=True)]

    def _charge(self, db: Session, people: Table, plan: Plan | WorkloadPlan, mark: str) -> Held:
        secret, charges = self._secret(), _charges(plan)
        registered = self._find(db, people, mark)
        self._agree(db, plan.neighbors)
        found = _cohorts(db, registered.id)
        base = _base(found, people.spec(), plan.spec)
        charge = _charge_of(base, plan.spec, charges)
        if (charge < 0).any() or (charge > base).any():
            raise PlanError(
                "the plan charges people more than their level, or less than nothing: it was tampered with. Plan again."
            )
        short = (charge > found.left) & (found.level != PUBLIC)
        if short.any():
            raise BudgetError(_too_little(found, charge, short))
        left = None if base is found.wish else _left(db, secret, people.spec(), found, plan.spec)
        if left is not None and left.by_person is not None and not people.lends:
            raise LedgerError(
                "people of one level have different amounts left here, and a Spark DataFrame, a PostgreSQL table or a DuckDB relation cannot be matched with the ledger person by person. "
                "Write it to a Parquet file or an Arrow table and open that, or plan by share=. Nothing was spent."
            )
        paying = np.flatnonzero(charge)
        pairs = list(zip(found.id[paying].tolist(), charge[paying].tolist(), strict=True))
        if db.charge(pairs) != len(pairs):
            raise BudgetError("somebody has less left than this release would cost them. Nothing was spent.")
        entry = self._append(
            db,
            "reserve",
            {
                "accord": accord.__version__,
                "table": registered.name,
                "version": registered.version,
                "queries": [part.query.label for part in parts_of(plan)],
                "charges": [[number, level_text(c)] for number, c in pairs],
                "booked": _booked(found, charge),
            },
        )
        return Held(entry.seq, left, mark)

    def _recognise(self, people: Table, held: Held) -> None:
        """Refuse a table that has changed while it was read: others may have been read than were charged."""
        if people._fingerprint(self._secret()) != held.mark:
            raise SourceError(TABLE_CHANGED)

    def _settle(self, held: Held, receipts: list[dict[str, Any]] | None) -> Entry:
        """Book what came of a reservation; None: nothing was released."""
        with self._store.write() as db:
            if receipts is None:
                return self._append(db, "failed", {"reserve": held.seq})
            return self._append(db, "release", {"reserve": held.seq, "receipts": receipts})

    def _append(self, db: Session, kind: str, content: dict[str, Any]) -> Entry:
        last = _entries(db, "ORDER BY seq DESC LIMIT 1")
        entry = following(last[0] if last else None, kind, content, self._known_key().seal)
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
                db.migrate()
                db.run("INSERT INTO accord_meta (name, value) VALUES ('key', ?)", made.check)
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
        stored = db.rows("SELECT value FROM accord_meta WHERE name = 'key'")
        if not stored:
            raise LedgerError(
                f"the ledger {self.label} is damaged: it has no check of its key. Restore it from a backup."
            )
        return str(stored[0][0])

    def _tiers(self, text: str) -> dict[str, str]:
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError):
            raise LedgerError(f"the ledger {self.label} is damaged. Run 'accord ledger verify' on it.") from None

    def _agree(self, db: Session, neighbors: str) -> None:
        """One notion of neighbors for all: charges of different ones do not add up."""
        found = db.rows("SELECT value FROM accord_meta WHERE name = 'neighbors'")
        if not found:
            db.run("INSERT INTO accord_meta (name, value) VALUES ('neighbors', ?)", neighbors)
        elif found[0][0] != neighbors:
            raise LedgerError(
                f"the ledger is kept for neighbors={found[0][0]!r}, and this is for {neighbors!r}. Their charges do not add up: use two ledgers."
            )

    @contextmanager
    def _known(self, people: Table) -> Iterator[tuple[Session, _Registered]]:
        mark = people._fingerprint(self._secret())
        with self._store.read() as db:
            yield db, self._find(db, people, mark)

    def _find(self, db: Session, people: Table, mark: str) -> _Registered:
        """The registered table with exactly these people and levels."""
        rows = db.rows("SELECT id, name, version, people FROM accord_table WHERE fingerprint = ? ORDER BY id", mark)
        if not rows:
            raise LedgerError(self._unknown(db, people))
        return _Registered(*rows[0])

    def _unknown(self, db: Session, people: Table) -> str:
        """Why a table is not known: it was never registered, or what has changed since. Membership and levels are public."""
        names = [str(row[0]) for row in db.rows("SELECT name FROM accord_table ORDER BY name")]
        never = f"this table is not registered in the ledger {self.label}. Do ledger.register(table, 'name') first, or 'accord ledger register'."
        if not names:
            return never
        hashes, levels = people._people(self._secret())
        order = np.argsort(hashes)
        known = _all_cohorts(db)
        everyone, of = _people(db)
        nearest: tuple[int, str, tuple[int, int, int, int]] | None = None
        for table, name in db.rows("SELECT id, name FROM accord_table"):
            moves = assign(everyone, of, known, table, hashes[order], levels[order], max(known, default=0) + 1).moves
            joined, gone, lowered, raised = _changes(known, moves, table)
            same = hashes.size - joined
            if same * 2 > hashes.size and (nearest is None or same > nearest[0]):
                nearest = (same, str(name), (joined, gone, lowered, raised))
        if nearest is None:
            return f"{never} {did_you_mean('', names)}"
        _, name, (joined, gone, lowered, raised) = nearest
        return (
            f"this table is not as it was registered as {name!r}: {joined:,} people joined, {gone:,} left, {lowered:,} lowered their level, {raised:,} raised it. "
            f"Register the new version with ledger.register(table, {name!r}), or 'accord ledger register'; what everyone has spent is kept."
        )

    def __repr__(self) -> str:
        return f"<Ledger {self.label}>"


# ---- reading and writing -----------------------------------------------------------------------------------------------


def _entries(db: Session, which: str = "ORDER BY seq") -> list[Entry]:
    return [
        Entry(*row) for row in db.rows(f"SELECT seq, time, kind, body, previous, hash, seal FROM accord_entry {which}")
    ]


def _people(db: Session) -> tuple[IntArray, IntArray]:
    """Everyone's hash, ascending, and cohort."""
    rows = db.rows("SELECT hashes, cohorts FROM accord_people ORDER BY chunk")
    joined = [np.frombuffer(b"".join(bytes(row[k]) for row in rows), dtype="<i8").astype(np.int64) for k in (0, 1)]
    return joined[0], joined[1]


def _write(db: Session, hashes: IntArray, cohorts: IntArray) -> str:
    """Store everyone; the digest of it."""
    db.run("DELETE FROM accord_people")
    for chunk, block in enumerate(_blocks(hashes, cohorts)):
        db.run("INSERT INTO accord_people (chunk, hashes, cohorts) VALUES (?, ?, ?)", chunk, *block)
    return _digest(_blocks(hashes, cohorts))


def _blocks(hashes: IntArray, cohorts: IntArray) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, hashes.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        yield hashes[piece].astype("<i8").tobytes(), cohorts[piece].astype("<i8").tobytes()


def _digest(blocks: Iterable[tuple[Any, ...]]) -> str:
    """Of who is in which cohort, as it is stored."""
    text = hashlib.sha256()
    for block in blocks:
        for part in block:
            raw = bytes(part) if isinstance(part, (bytes, memoryview)) else repr(part).encode()
            text.update(f"{len(raw)}\n".encode())
            text.update(raw)
    return text.hexdigest()


def _all_cohorts(db: Session) -> dict[int, Cohort]:
    levels: dict[int, list[tuple[int, int]]] = {}
    for cohort, table, level in db.rows("SELECT cohort, tab, level FROM accord_member ORDER BY cohort, tab"):
        levels.setdefault(cohort, []).append((table, level))
    return {
        number: Cohort(spent, tuple(levels.get(number, ())))
        for number, spent in db.rows("SELECT id, spent FROM accord_cohort ORDER BY id")
    }


def _cohorts(db: Session, table: int) -> _Cohorts:
    rows = db.rows(
        "SELECT c.id, m.level, c.level, c.allowed, c.spent, c.people FROM accord_member AS m JOIN accord_cohort AS c ON c.id = m.cohort "
        "WHERE m.tab = ? ORDER BY m.level, c.id",
        table,
    )
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    return _Cohorts(*columns)


# ---- arithmetic --------------------------------------------------------------------------------------------------------


def _charges(plan: Plan | WorkloadPlan) -> IntArray:
    return plan.spent if isinstance(plan, WorkloadPlan) else plan.cost


def _base(found: _Cohorts, whole: Spec, planned: Spec) -> IntArray:
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


def _spec(found: _Cohorts) -> Spec:
    return Spec(found.left, found.people, is_rest=True)


def _left(db: Session, secret: str, spec: Spec, found: _Cohorts, remaining: Spec) -> Left:
    """How to tell what each person has left: by level, if that decides it, else person by person."""
    least, most = (np.zeros(spec.micro.size, dtype=np.int64) for _ in range(2))
    least[:] = PUBLIC
    asked = found.wish > 0
    place = np.searchsorted(spec.micro, found.wish[asked])
    np.minimum.at(least, place, found.left[asked])
    np.maximum.at(most, place, found.left[asked])
    if (least == most).all():
        return Left(remaining, least, None)
    hashes, of = _people(db)
    order = np.argsort(found.id)
    at = np.minimum(np.searchsorted(found.id[order], of), found.id.size - 1)
    inside = found.id[order][at] == of
    return Left(remaining, None, (secret, hashes[inside], found.left[order][at[inside]]))


def _totals(hashes: IntArray, levels: IntArray) -> tuple[IntArray, list[int], list[int]]:
    """The people and the sum of their hashes for each level, as the engine would add them up."""
    distinct, place = places(levels)
    totals = [0] * distinct.size
    for shift in (0, 21, 42):  # parts of 21 bits: their sums are whole numbers below 2⁵³, which floats add up exactly
        part = np.bincount(place, weights=(hashes >> shift) & 0x1FFFFF, minlength=distinct.size)
        totals = [total + (int(sum_) << shift) for total, sum_ in zip(totals, part.tolist(), strict=True)]
    return distinct, np.bincount(place, minlength=distinct.size).tolist(), totals


def _changes(known: dict[int, Cohort], moves: list[Any], table: int) -> tuple[int, int, int, int]:
    """How many people joined a table, left it, lowered their level and raised it."""
    counts = [0, 0, 0, 0]
    for move in moves:
        before = None if move.source is None else dict(known[move.source].levels).get(table)
        if before is None:
            kind = 0 if move.level is not None else None
        elif move.level is None:
            kind = 1
        else:
            kind = 2 if move.level < before else 3 if move.level > before else None
        if kind is not None:
            counts[kind] += move.people
    return counts[0], counts[1], counts[2], counts[3]


def _booked(found: _Cohorts, charge: IntArray) -> list[dict[str, Any]]:
    """What was charged to whom, for reading: people of a level who had as much left are one line."""
    lines: dict[tuple[int, int, int], int] = {}
    for wish, left, c, people in zip(
        found.wish.tolist(), found.left.tolist(), charge.tolist(), found.people.tolist(), strict=True
    ):
        lines[wish, left, c] = lines.get((wish, left, c), 0) + people
    return [
        {"level": level_text(wish), "left_before": level_text(left), "people": people, "charge": level_text(c)}
        for (wish, left, c), people in sorted(lines.items())
    ]


def _too_little(found: _Cohorts, charge: IntArray, short: Any) -> str:
    """Who has too little, and what would fit; by level, which is public."""
    groups: dict[int, tuple[int, int, int]] = {}
    for wish, left, c, people in zip(
        found.wish[short].tolist(),
        found.left[short].tolist(),
        charge[short].tolist(),
        found.people[short].tolist(),
        strict=True,
    ):
        least, _, count = groups.get(wish, (left, c, 0))
        groups[wish] = (min(least, left), c, count + people)
    told = [
        f"level {level_text(wish)} with {level_text(c)}; {level_text(left)} is left to {people:,} people"
        for wish, (left, c, people) in sorted(groups.items())
    ]
    more = f", and {len(told) - _TOLD} more levels" if len(told) > _TOLD else ""
    # a share under which nobody could be short, whomever a plan for it charges
    limited = (found.wish > 0) & (found.level != PUBLIC)
    fits = min(
        0 if wish == PUBLIC else left * MICRO // wish
        for wish, left in zip(found.wish[limited].tolist(), found.left[limited].tolist(), strict=True)
    )
    usable = 0 < fits < MICRO and int(found.wish[limited].max()) * fits >= MICRO
    ask = f"Ask for share={level_text(fits)} or less, or" if usable else "No share fits everyone:"
    return (
        f"this release charges {', '.join(told[:_TOLD])}{more}. {ask} plan from what is left: accord.plan(ledger.remaining(table), query) "
        "(on the command line --remaining). See 'accord ledger show'. Nothing was spent."
    )
