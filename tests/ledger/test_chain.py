"""Whatever is changed in a ledger by hand shows; an export can be checked without accord; and ledgers of older versions go on.

`python tests/ledger/test_chain.py` makes data/v1.db anew. Once version 1 is released, it must never be made again.
"""

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest

import accord
from accord.budget import PUBLIC
from accord.errors import BudgetError, LedgerError, SourceError
from accord.ledger import Ledger, accounts, charging, opening, store

KEY = "a key that only tests use"
DATA = Path(__file__).parent / "data"
MEAN = accord.mean("x", bounds=(0, 10), step=1)
COUNT = accord.count(where="x > 3")
TABLES = {
    "accord_meta": ("name", "value"),
    "accord_table": ("id", "name", "version", "fingerprint", "people", "tiers"),
    "accord_answer": ("question", "tab", "version", "entry"),
    "accord_cohort": ("id", "level", "allowed", "spent", "people", "renewed"),
    "accord_member": ("tab", "cohort", "level"),
    "accord_people": ("chunk", "hashes", "cohorts"),
    "accord_entry": ("seq", "time", "kind", "body", "previous", "hash", "seal"),
}
LEVELS = {"strict": 0.1, "standard": 1.0, "public": inf, "out": 0.0}


def people(ids=range(6), tiers=("strict", "standard", "standard", "public", "out", "standard")):
    columns = {"id": list(ids), "x": [float(k) for k in range(len(tiers))], "tier": list(tiers)}
    return accord.table(columns, epsilon="tier", tiers=LEVELS, user="id")


def newer():
    """A later version: one left, one joined, one lowered their level."""
    return people(range(1, 7), ("standard", "standard", "public", "out", "strict", "strict"))


def staff():
    return accord.table({"id": [1, 2, 9], "x": [1.0, 2.0, 3.0]}, epsilon=2.0, user="id")


def lived(ledger):
    """A short life: two tables, a new version, releases of every kind, one that fails, one without an answer, one refused."""
    ledger.register(people(), "people")
    people().release(MEAN, "minimum", 0.5, ledger=ledger, fresh=True)
    ledger.register(staff(), "staff")
    staff().release(accord.workload([MEAN, COUNT]), "minimum", 0.1, ledger=ledger, fresh=True)
    people().release(accord.plan(ledger.remaining(people()), MEAN, "mix", 0.1), ledger=ledger, fresh=True)
    gone = people()
    gone.reader.summaries = None  # nothing can be read
    with suppress(TypeError, SourceError):
        gone.release(MEAN, "minimum", 0.1, ledger=ledger, fresh=True)
    ledger.register(newer(), "people")
    with suppress(BudgetError):
        staff().release(MEAN, "minimum", 1.0, ledger=ledger, fresh=True)
    charging.reserve(ledger.books, staff(), staff().plan(MEAN, "minimum", 0.01))
    staff().release(MEAN, "minimum", 0.01, ledger=ledger, fresh=True)
    return ledger


def settled(path):
    """All in one file, without a journal."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for rest in ("-wal", "-shm"):
        path.with_name(path.name + rest).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("chain") / "accord.db"
    patch = pytest.MonkeyPatch()
    patch.setattr(accounts, "CHUNK", 3)  # so that people come in several blocks
    lived(Ledger(path, KEY))
    patch.undo()
    settled(path)
    return path


@pytest.fixture
def copy(original, tmp_path):
    for file in ("accord.db", "accord.db.head"):
        shutil.copy(original.with_name(file), tmp_path / file)
    return tmp_path / "accord.db"


def rows(path, table):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT rowid, * FROM {table} ORDER BY 1").fetchall()


def change(path, *statements):
    """By hand, past every check of the database."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for sql, *values in statements:
            connection.execute(sql, values)


def problems_of(path, key=KEY):
    """What `verify` tells, or why the ledger is not even opened. Anything else than a LedgerError is a fault."""
    try:
        return Ledger(path, key).verify().problems
    except LedgerError as refusal:
        return (str(refusal),)


def other(value):
    """A value of the same kind that is not the same."""
    if isinstance(value, int):
        return value + 1 if value < PUBLIC else value - 1
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])
    return value[:-1] + ("0" if value[-1:] != "0" else "1")


def test_the_tables_are_those_that_are_tampered_with_here(original):
    with closing(sqlite3.connect(original)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        # what was refused within the last hour is not sealed yet, and what becomes of a service's requests is
        # for the service: charges and answers are entries all the same (docs/ledger.md)
        names = [name for name in names if name not in ("accord_refused", "accord_request")]
        assert {
            n: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({n})")) for n in names
        } == TABLES
    assert problems_of(original) == ()
    verdict = Ledger(original, KEY).verify()
    assert (verdict.open, verdict.sealed) == (1, True)
    kinds = [entry.kind for entry in Ledger(original, KEY).entries()]
    assert (kinds.count("register"), kinds.count("reserve"), kinds.count("failed")) == (3, 6, 1)
    assert len(rows(original, "accord_people")) > 2 and len(rows(original, "accord_cohort")) > 5


# what nobody can see, and why that is no harm
UNSEEN = {
    ("accord_people", "chunk"): "blocks are read in their order, whatever their numbers are",
}


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in TABLES for column in TABLES[table]]
)
def test_a_changed_value_shows(table, column, copy, original):
    whole = original.read_bytes()
    at = TABLES[table].index(column) + 1
    for row in rows(original, table):
        for value in {other(row[at]), type(row[at])()} - {row[at]}:
            copy.write_bytes(whole)
            with suppress(sqlite3.IntegrityError):  # somebody else's key
                change(copy, (f"UPDATE {table} SET {column} = ? WHERE rowid = ?", value, row[0]))
                if (table, column) in UNSEEN and value > row[at] and row == rows(original, table)[-1]:
                    assert problems_of(copy) == (), UNSEEN[table, column]
                elif (table, column) not in UNSEEN:
                    assert problems_of(copy), f"{row} → {value!r}"


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in TABLES for column in TABLES[table]]
)
def test_nonsense_in_any_column_is_told_and_does_not_confuse_verify(table, column, copy, original):
    """Of another kind than it should be: SQLite does not mind."""
    whole, (row, *_) = original.read_bytes(), rows(original, table)
    at = TABLES[table].index(column) + 1
    for nonsense in (None, "nonsense", "", -1, 2**62, 0.5, b"\xff\x00", "[]", '{"a":1}'):
        copy.write_bytes(whole)
        with suppress(sqlite3.IntegrityError):
            change(copy, (f"UPDATE {table} SET {column} = ? WHERE rowid = ?", nonsense, row[0]))
            if (table, column) not in UNSEEN and rows(copy, table)[0][at] != row[at]:
                assert problems_of(copy), f"{row} → {nonsense!r}"


@pytest.mark.parametrize("table", TABLES)
def test_a_deleted_row_shows(table, copy, original):
    whole = original.read_bytes()
    everything = rows(original, table)
    for row in everything:
        if table == "accord_entry" and row == everything[-1]:
            continue  # see the next test
        copy.write_bytes(whole)
        change(copy, (f"DELETE FROM {table} WHERE rowid = ?", row[0]))
        assert problems_of(copy), row
    copy.write_bytes(whole)
    change(copy, (f"DELETE FROM {table}",))
    assert problems_of(copy)
    change(copy, (f"DROP TABLE {table}",))
    assert problems_of(copy)


def test_a_chain_that_was_cut_off_shows_in_the_accounts_or_in_what_is_open(copy, original):
    """Without its last entries, charges are without a cause. Where only the answer is cut off, its charge is without an answer: whoever has the
    receipt knows better."""
    whole, entries, honest = (
        original.read_bytes(),
        Ledger(original, KEY).entries(),
        Ledger(original, KEY).verify(),
    )
    assert [entry.kind for entry in entries[-3:]] == ["reserve", "reserve", "release"]
    for kept in range(len(entries)):
        copy.write_bytes(whole)
        change(copy, ("DELETE FROM accord_entry WHERE seq > ?", kept))
        if kept < len(entries) - 1:
            assert problems_of(copy), f"after entry {kept}"
    copy.write_bytes(whole)
    change(copy, ("DELETE FROM accord_entry WHERE seq = ?", len(entries)))
    verdict = Ledger(copy, KEY).verify()
    assert verdict.entries == honest.entries - 1
    assert verdict.open == honest.open + 1 or verdict.problems


def test_a_receipt_is_found_in_the_chain(tmp_path):
    ledger = Ledger(tmp_path / "accord.db", KEY)
    ledger.register(people(), "people")
    answers = [
        people().release(asked, "minimum", 0.1, ledger=ledger, fresh=True)
        for asked in (MEAN, accord.workload([MEAN, COUNT]))
    ]
    for answer in answers:
        booked = answer.receipt()["ledger"]
        entry = ledger.entries()[booked["entry"] - 1]
        assert (
            (entry.seq, entry.hash)
            == (booked["entry"], booked["hash"])
            == (answer.booked.entry, answer.booked.hash)
        )
        parts = getattr(answer, "releases", (answer,))
        assert [r["value"] for r in entry.content["receipts"]] == [part.receipt()["value"] for part in parts]


@pytest.mark.parametrize("table", TABLES)
def test_an_added_row_shows(table, copy, original):
    whole, columns = original.read_bytes(), TABLES[table]
    for row in rows(original, table):
        values = list(row[1:])
        key = {"accord_meta": 0, "accord_member": 1}.get(table, 0)
        values[key] = values[key] + "x" if isinstance(values[key], str) else values[key] + 1000
        if table == "accord_table":
            values[1] += "x"
        copy.write_bytes(whole)
        change(copy, (f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", *values))
        assert problems_of(copy) or (table == "accord_meta"), row  # a name more means nothing there


@pytest.mark.parametrize("table", TABLES)
def test_swapped_rows_show(table, copy, original):
    """The values of two rows, but for the key; and every single column of them."""
    whole, columns = original.read_bytes(), TABLES[table]
    keys = {"accord_member": 2}.get(table, 1)
    everything = rows(original, table)
    for first, second in pairwise(everything):
        for which in (columns[keys:], *((column,) for column in columns[keys:])):
            at = [columns.index(column) + 1 for column in which]
            if [first[k] for k in at] == [second[k] for k in at]:
                continue
            sets = ", ".join(f"{column} = ?" for column in which)
            aside = [
                f"{first[k]}?" if table == "accord_table" and columns[k - 1] == "name" else first[k]
                for k in at
            ]
            copy.write_bytes(whole)
            change(
                copy,
                (f"UPDATE {table} SET {sets} WHERE rowid = ?", *aside, second[0]),
                (f"UPDATE {table} SET {sets} WHERE rowid = ?", *[second[k] for k in at], first[0]),
                (f"UPDATE {table} SET {sets} WHERE rowid = ?", *[first[k] for k in at], second[0]),
            )
            assert problems_of(copy), (which, first, second)


def test_people_moved_from_one_column_to_the_other_show(copy):
    tail = "substr(hashes, -8)"
    change(copy, (f"UPDATE accord_people SET cohorts = CAST({tail} || cohorts AS BLOB), hashes = substr(hashes, 1, length(hashes) - 8)",))  # fmt: skip
    assert "who is in which cohort is not what was registered" in problems_of(copy)


def test_blocks_of_people_in_another_order_show(copy):
    change(copy, ("UPDATE accord_people SET chunk = 1000 WHERE chunk = 0",))
    assert problems_of(copy) == ("who is in which cohort is not what was registered",)


@pytest.mark.parametrize(
    ("table", "column"),
    [(t, c) for t in ("accord_cohort", "accord_member") for c in TABLES[t]],
    ids=lambda name: name,
)
def test_a_number_beyond_its_limits_is_damage_wherever_it_stands(table, column, copy):
    """Whatever the digests say. Amounts go up to the largest of 64 bits."""
    beyond = (
        [(0, "MIN"), (2**48 + 1, "MAX")] if column in ("id", "tab", "cohort") else [(-1, "MIN"), (-1, "MAX")]
    )
    whole = copy.read_bytes()
    for value, which in beyond:
        copy.write_bytes(whole)
        row = f"(SELECT {which}(rowid) FROM {table})"
        change(copy, (f"UPDATE {table} SET {column} = ? WHERE rowid = {row}", value))
        with (
            Ledger(copy, KEY).books.reading() as db,
            pytest.raises(LedgerError, match=rf"there is something in {table}\.{column} that no version"),
        ):
            accounts.stored_accounts(db)


def moved_to(cohort, other, cohorts):
    """The first person of a cohort is in another."""
    at = int(np.flatnonzero(cohorts == cohort)[0])
    return np.where(np.arange(cohorts.size) == at, other, cohorts)


@pytest.mark.parametrize(
    ("hashes", "cohorts"),
    [
        (lambda h: h[1:], lambda c: c),
        (lambda h: h, lambda c: moved_to(c[0], c[c != c[0]][0], c)),
        (lambda h: h, lambda c: moved_to(1, 0, np.full_like(c, 1))),
        (lambda h: h, lambda c: moved_to(c[0], 10**6, c)),
        (lambda h: np.append(h[:-2], h[:-3:-1]), lambda c: c),
        (lambda h: np.append(h[:1], h[:-1]), lambda c: c),
    ],
    ids=["somebody lost", "another cohort", "one that never was", "one too many", "not in order", "twice"],
)
def test_people_who_are_not_what_the_accounts_have_are_refused(hashes, cohorts, tmp_path, monkeypatch):
    """Also if their digest was made to fit, by somebody who can write everything but seals."""
    path = tmp_path / "accord.db"
    Ledger(path, KEY).register(people(tiers=("standard",) * 3 + ("strict",) * 3), "people")
    ledger = Ledger(path, KEY)
    with ledger.books.reading() as db:
        known = accounts.stored_accounts(db)
        h, c = accounts.read_everyone(db, known)
    if (cohorts(c) == 0).any():  # all in one cohort, so that its number of people does not tell
        one, six = np.ones(1, dtype=np.int64), np.full(1, 6)
        known = replace(known, cohorts=replace(known.cohorts, id=one, people=six))
    block = hashes(h).astype("<i8").tobytes(), cohorts(c).astype("<i8").tobytes()
    change(path, ("UPDATE accord_people SET hashes = ?, cohorts = ?", *block))
    monkeypatch.setattr(accounts, "people_digest", lambda db: accounts.blocks_digest([block]))
    with (
        ledger.books.reading() as db,
        pytest.raises(LedgerError, match="who is in which cohort is not what the accounts have"),
    ):
        accounts.read_everyone(db, known)


def forged(path, tamper):
    """Entries changed by `tamper`, and the chain of hashes written anew by somebody without the key."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        entries = [list(row) for row in connection.execute("SELECT seq, time, kind, body, previous, hash FROM accord_entry ORDER BY seq")]  # fmt: skip
        previous = "0" * 64
        for entry in entries:
            entry[3] = tamper(entry[2], entry[3])
            text = "".join(f"{part}\n" for part in (previous, *entry[:4]))
            entry[4], entry[5] = previous, hashlib.sha256(text.encode()).hexdigest()
            previous = entry[5]
            connection.execute("UPDATE accord_entry SET body = ?, previous = ?, hash = ? WHERE seq = ?", (*entry[3:6], entry[0]))  # fmt: skip


def test_a_chain_written_anew_shows_to_who_has_the_key(copy):
    """With accounts to match. Without the key it cannot be told: that is what the seals are for."""

    def gift(kind, body):
        content = json.loads(body)
        if kind == "reserve":
            content["charges"] = []
        return json.dumps(content)

    entries = len(Ledger(copy, KEY).entries())
    forged(copy, lambda kind, body: body)
    assert problems_of(copy) == (), "the same chain again"
    forged(copy, gift)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("UPDATE accord_cohort SET allowed = MAX(level, 0), spent = 0")
    assert (
        len([problem for problem in problems_of(copy) if "was not written with the ledger's key" in problem])
        == entries
    )
    copy.with_name("accord.db.key").write_text("this is not the key of it")
    stranger = Ledger(copy).verify()
    assert not stranger.sealed and not any(
        "with the ledger's key" in problem for problem in stranger.problems
    )


def test_verify_tells_what_is_wrong(copy):
    change(copy, ("UPDATE accord_cohort SET spent = spent + 1, allowed = allowed + 1 WHERE id = 2",))
    assert problems_of(copy) == ("the account of cohort 2 is not what follows from the entries",)
    change(copy, ("UPDATE accord_member SET level = level + 1",), ("UPDATE accord_table SET tiers = '{}'",))
    assert problems_of(copy)[1:] == (
        "the levels of cohorts are not what follows from the entries",
        "the registered tables are not what follows from the entries",
    )
    change(copy, ("UPDATE accord_people SET cohorts = hashes",), ("UPDATE accord_meta SET value = 'add' WHERE name = 'neighbors'",))  # fmt: skip
    assert problems_of(copy)[3:] == (
        "who is in which cohort is not what was registered",
        "the check of the key, or the notion of neighbors, is not what was registered",
    )
    change(copy, ("UPDATE accord_entry SET time = '1999' WHERE seq = 3",))
    assert problems_of(copy)[0] == "entry 3 has been changed: its hash is another"


# --- an export, checked without accord --------------------------------------------------------------------------------------


def check(text):
    """Another program: the chain, and what every account has spent, from the export alone."""
    export, previous, spent = json.loads(text), "0" * 64, {}
    for number, entry in enumerate(export["entries"], start=1):
        parts = (previous, number, entry["time"], entry["kind"], entry["body"])
        assert hashlib.sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest() == entry["hash"]
        previous, content = entry["hash"], json.loads(entry["body"])
        if entry["kind"] == "register":
            moved = {target: spent.get(source, 0) for source, _, target, _ in content["moves"]}
            spent |= moved
        elif entry["kind"] == "reserve":
            for account, charge in content["charges"]:
                spent[account] += Decimal(charge)
    accounts = {account["id"]: account for account in export["cohorts"]}
    assert spent == {number: Decimal(account["spent"]) for number, account in accounts.items()}
    assert all(Decimal(account["spent"]) <= Decimal(account["allowed"]) for account in accounts.values())


def test_an_export_can_be_checked_by_another_program(original):
    export = Ledger(original, KEY).export()
    assert export["entries"] and export["cohorts"] and json.loads(json.dumps(export)) == export
    check(json.dumps(export))


@pytest.mark.parametrize("at", range(3))
def test_that_program_finds_what_was_changed(at, original):
    export = Ledger(original, KEY).export()

    def fails(tampered):
        with pytest.raises((AssertionError, KeyError, ValueError)):
            check(json.dumps(tampered))

    place = [0, len(export["entries"]) // 2, len(export["entries"]) - 1][at]
    for name in ("time", "kind", "body", "hash"):
        tampered = json.loads(json.dumps(export))
        tampered["entries"][place][name] = other(tampered["entries"][place][name])
        fails(tampered)
    tampered = json.loads(json.dumps(export))
    tampered["cohorts"][at]["spent"] = str(Decimal(tampered["cohorts"][at]["spent"]) + Decimal("0.000001"))
    fails(tampered)
    if at < 2:
        fails(export | {"entries": export["entries"][:place] + export["entries"][place + 1 :]})
    fails(export | {"cohorts": export["cohorts"][1:]})


def test_an_export_tells_nobody_who_is_in_it(original):
    text = json.dumps(Ledger(original, KEY).export())
    with closing(sqlite3.connect(original)) as connection:
        blocks = connection.execute("SELECT hashes FROM accord_people").fetchall()
    for (block,) in blocks:
        for start in range(0, len(block), 8):
            assert str(int.from_bytes(block[start : start + 8], "little")) not in text


# --- versions ---------------------------------------------------------------------------------------------------------------


def schema(path):
    with closing(sqlite3.connect(path)) as connection:
        return {row[1] for row in connection.execute("PRAGMA table_info(accord_cohort)")}, connection.execute(
            "SELECT value FROM accord_meta WHERE name = 'schema'"
        ).fetchone()[0]


@pytest.fixture
def v1(tmp_path):
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path / "v1.db"


DIGEST = "3f5c112d187b4859deda3d558a3174bc7541269617155b5727367d9e43e0a292"


def test_an_empty_database_becomes_a_ledger_of_this_version(tmp_path):
    (tmp_path / "accord.db").touch()
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # as a creation that was cut short leaves it
    for name in ("accord.db", "empty.db"):
        ledger = Ledger(tmp_path / name, KEY)
        assert schema(tmp_path / name)[1] == str(len(store.MIGRATIONS))
        assert ledger.verify().problems == () and ledger.accounts() == [] and ledger.entries() == []
        ledger.register(people(), "people")
        assert problems_of(tmp_path / name) == ()


def test_a_ledger_of_version_1_opens_and_goes_on(v1):
    ledger = Ledger(v1, create=False)
    assert schema(v1)[1] == str(NOW) > "1"
    verdict = ledger.verify()
    assert (verdict.problems, verdict.sealed, verdict.open) == ((), True, 1)
    remaining = ledger.remaining(newer())
    assert (remaining.levels, remaining.counts, remaining.opted_out) == ((0.1, 0.625, inf), (1, 2, 1), 2)
    before = len(ledger.entries())
    released = newer().release(accord.plan(remaining, MEAN, "minimum", 0.1), ledger=ledger, fresh=True)
    assert released.booked.entry == before + 2 == len(ledger.entries())
    assert ledger.register(newer(), "people").version == 2, "the same people as ever"
    assert ledger.verify().problems == ()
    check(json.dumps(ledger.export()))


def test_the_ledger_of_version_1_is_what_was_written_then():
    """Nothing here may ever change: it stands for the ledgers out there."""
    with closing(sqlite3.connect(f"file:{DATA / 'v1.db'}?mode=ro&immutable=1", uri=True)) as connection:
        (version,) = connection.execute("SELECT value FROM accord_meta WHERE name = 'schema'").fetchone()
        spent = connection.execute(
            "SELECT level, spent, people FROM accord_cohort WHERE people > 0 ORDER BY id"
        ).fetchall()
        entries = connection.execute("SELECT hash FROM accord_entry ORDER BY seq").fetchall()
    assert version == "1" and sum(account[2] for account in spent) == 8
    assert hashlib.sha256(json.dumps([spent, entries]).encode()).hexdigest() == DIGEST
    assert sorted(path.name for path in DATA.iterdir()) == ["v1.db", "v1.db.key"], (
        "no journal: all is in the one file"
    )


MORE = (
    "ALTER TABLE accord_cohort ADD COLUMN note TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE accord_more (x {blob})",
)


RELEASED = store.MIGRATIONS
NOW = len(RELEASED)


def migrations(monkeypatch, *more):
    for module in (store, opening):
        monkeypatch.setattr(module, "MIGRATIONS", RELEASED + more)


def test_a_later_version_upgrades_it(v1, monkeypatch):
    before = Ledger(v1).accounts(), Ledger(v1).entries()
    migrations(monkeypatch, MORE, ("CREATE TABLE accord_even_more (x {blob})",))
    ledger = Ledger(v1)
    assert schema(v1)[1] == str(NOW + 2) and "note" in schema(v1)[0]
    assert (ledger.accounts(), ledger.entries()) == before
    assert ledger.verify().problems == ()
    newer().release(accord.plan(ledger.remaining(newer()), MEAN, "minimum", 0.1), ledger=ledger, fresh=True)
    assert Ledger(v1).verify().problems == ()
    migrations(monkeypatch)
    with pytest.raises(
        LedgerError, match=rf"is of version {NOW + 2}, and this accord knows {NOW}\. Install a newer accord"
    ):
        Ledger(v1)


@pytest.mark.parametrize("fault", ["this is not SQL", "CREATE TABLE accord_meta (x)", "INSERT INTO accord_cohort VALUES (1)", "UPDATE accord_cohort SET spent = -1"])  # fmt: skip
def test_an_upgrade_that_fails_half_way_leaves_it_as_it_was(fault, v1, monkeypatch):
    before = Ledger(v1).accounts(), Ledger(v1).entries(), schema(v1)
    with pytest.MonkeyPatch.context() as patch:
        migrations(patch, MORE, (MORE[1].replace("more", "other"), fault))
        with pytest.raises(LedgerError, match="cannot use the ledger"):
            Ledger(v1)
    ledger = Ledger(v1)
    assert (ledger.accounts(), ledger.entries(), schema(v1)) == before and schema(v1)[1] == str(NOW)
    assert ledger.verify().problems == ()
    newer().release(accord.plan(ledger.remaining(newer()), MEAN, "minimum", 0.1), ledger=ledger, fresh=True)
    with pytest.MonkeyPatch.context() as patch:
        migrations(patch, MORE)
        assert Ledger(v1).verify().problems == () and schema(v1)[1] == str(NOW + 1)


@pytest.mark.postgres
def test_versions_in_postgres(postgres_url, monkeypatch):
    ledger = lived(Ledger(postgres_url, KEY))
    before = ledger.accounts(), ledger.entries(), ledger.export()
    assert ledger.verify().problems == ()
    check(json.dumps(before[2]))
    with pytest.MonkeyPatch.context() as patch:
        migrations(patch, MORE, ("CREATE TABLE accord_other (x {blob})", "this is not SQL"))
        with pytest.raises(LedgerError, match="cannot use the ledger"):
            Ledger(postgres_url, KEY)
    again = Ledger(postgres_url, KEY)
    assert (again.accounts(), again.entries(), again.export()) == before
    with again.books.store.read() as db:
        assert db.version() == NOW
        assert db.rows(
            "SELECT COUNT(*) FROM pg_tables WHERE tablename IN ('accord_more', 'accord_other')"
        ) == [(0,)]
    staff().release(MEAN, "minimum", 0.01, ledger=again, fresh=True)
    migrations(monkeypatch, MORE)
    assert Ledger(postgres_url, KEY).verify().problems == ()
    with again.books.store.read() as db:
        assert db.version() == NOW + 1
        assert db.rows("SELECT COUNT(*) FROM pg_tables WHERE tablename = 'accord_more'") == [(1,)]


@pytest.mark.postgres
def test_what_is_changed_in_postgres_shows(postgres_url):
    ledger = lived(Ledger(postgres_url, KEY))
    for statement in (
        "UPDATE accord_cohort SET spent = spent - 1 WHERE spent > 0",
        "UPDATE accord_member SET level = level - 1",
        "UPDATE accord_table SET version = version + 1",
        "UPDATE accord_table SET tiers = '{}' WHERE name = 'people'",
        "UPDATE accord_people SET cohorts = hashes",
        "UPDATE accord_entry SET body = replace(body, '\"minimum\"', '\"affine\"')",
        "UPDATE accord_entry SET seal = hash",
        "DELETE FROM accord_entry WHERE seq = 2",
        "UPDATE accord_meta SET value = 'x' WHERE name = 'neighbors'",
    ):
        with pytest.raises(ZeroDivisionError), ledger.books.store.write() as db:
            assert db.run(statement) > 0
            (damage,) = verified(ledger, db)
            assert damage, statement
            raise ZeroDivisionError  # rolls it back
        assert ledger.verify().problems == ()


def verified(ledger, db):
    """`verify` within a transaction that is not over."""
    from contextlib import contextmanager
    from unittest.mock import patch

    @contextmanager
    def inside():
        yield db

    with patch.object(ledger.books.store, "read", inside):
        yield ledger.verify().problems


if __name__ == "__main__":
    for old in DATA.glob("v1.db*"):
        old.unlink()
    DATA.mkdir(exist_ok=True)
    lived(Ledger(DATA / "v1.db"))
    settled(DATA / "v1.db")
