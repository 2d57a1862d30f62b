"""A look at public people is booked like a release: charged inf to those who are public in every table, before they are read."""

import json
from math import inf

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import LedgerError, PlanError, SourceError
from accord.ledger import charging
from accord.ledger.signing import UNSIGNED
from accord.people import public
from accord.people.table import Table
from accord.report import board
from accord.report.tables import to_text

SIGNED = {"actor": "the analyst", "purpose": "bounds for the yearly report"}


def opened(levels, values=None):
    """A table of {id: level}; everyone has ten times their id, unless said otherwise."""
    x = [10.0 * k for k in levels] if values is None else values
    columns = {"id": list(levels), "x": x, "level": list(levels.values())}
    return accord.table(columns, epsilon="level", user="id")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "a.db")
    return accord.Ledger(url, "a key that only tests use")


@pytest.fixture
def ours(tmp_path):
    return accord.Ledger(tmp_path / "a.db", "a key that only tests use")


def spent(ledger, person):
    return ledger.person(person).describe()["spent"]


def test_public_people_are_charged_and_nobody_else(ledger):
    people = opened({1: inf, 2: inf, 3: 0.5, 4: 0.0})
    ledger.register(people, "people")
    look = people.public("x", ledger=ledger, **SIGNED)
    assert (look.people, look.bounds) == (2, (10, 20))
    assert [spent(ledger, k) for k in (1, 2, 3, 4)] == ["inf", "inf", "0", "0"]
    assert ledger.verify().problems == ()
    (event,) = ledger.history()
    assert (event["queries"], event["state"]) == (["public people's x"], "released")
    assert (event["actor"], event["purpose"]) == tuple(SIGNED.values())
    assert event["booked"] == [
        {"level": "0", "left_before": "0", "people": 1, "charge": "0"},
        {"level": "0.5", "left_before": "0.5", "people": 1, "charge": "0"},
        {"level": "inf", "left_before": "inf", "people": 2, "charge": "inf"},
    ]
    (receipt,) = event["receipts"]
    document = look.describe()
    assert document.pop("ledger") == {"entry": look.booked.entry, "hash": look.booked.hash}
    assert receipt == document
    assert f"booked as entry {look.booked.entry} of the ledger" in str(look)
    assert ledger.remaining(people).levels == (0.5, inf)


def test_it_may_be_repeated(ledger):
    """Public people have inf left, however often they are read: what has changed since is seen."""
    people = opened({1: inf, 2: inf, 3: 0.5})
    ledger.register(people, "people")
    first = people.public("x", ledger=ledger)
    later = opened({1: inf, 2: inf, 3: 0.5}, [10.0, 90.0, 1.0]).public("x", ledger=ledger)
    assert (first.bounds, later.bounds) == ((10, 20), (0, 100))
    assert [event["state"] for event in ledger.history()] == ["released"] * 2
    assert ledger.verify().problems == ()


def test_who_is_stricter_in_another_table_is_not_read(ledger):
    people = opened({1: inf, 2: inf, 3: inf, 4: 0.5})
    ledger.register(people, "people")
    assert people.public("x", ledger=ledger).people == 3
    ledger.register(opened({2: 1.0, 3: 0.0}), "others")
    look = people.public("x", ledger=ledger)
    assert (look.people, look.bounds) == (1, (10, 15))
    assert look.describe()["charges"] == [
        {"level": "0.5", "tier": None, "people": 1, "charge": "0"},
        {"level": "inf", "tier": None, "people": 1, "charge": "inf"},
        {"level": "inf", "tier": None, "people": 2, "charge": "0"},
    ]
    lines = {(line["left_before"], line["charge"]) for line in ledger.history()[-1]["booked"]}
    assert lines == {("0.5", "0"), ("0", "0"), ("inf", "inf")}
    assert ledger.verify().problems == ()


def test_who_left_a_stricter_table_is_not_read(ours):
    people = opened({1: inf, 2: inf})
    ours.register(people, "people")
    ours.register(opened({2: 1.0, 5: 1.0}), "others")
    ours.register(opened({5: 1.0}), "others")
    assert people.public("x", ledger=ours).people == 1


def test_who_withdrew_is_not_read(ledger):
    people = opened({1: inf, 2: inf, 3: 0.5})
    ledger.register(people, "people")
    ledger.withdraw(2)
    look = people.public("x", ledger=ledger)
    assert (look.people, look.bounds) == (1, (10, 15))
    assert [spent(ledger, k) for k in (1, 2)] == ["inf", "0"]
    ledger.withdraw(1)
    told = r"nobody in this table is public \(level inf\) in every table of the ledger.*Nothing was spent."
    with pytest.raises(PlanError, match=told):
        people.public("x", ledger=ledger)
    ledger.readmit(1, 2, **SIGNED)
    assert people.public("x", ledger=ledger).people == 2
    assert ledger.verify().problems == ()


def test_who_withdraws_meanwhile_is_not_told(ours, monkeypatch):
    people = opened({1: inf, 2: inf})
    ours.register(people, "people")
    read = public.public_values

    def while_reading(*args):
        found = read(*args)
        ours.withdraw(2)
        return found

    monkeypatch.setattr(public, "public_values", while_reading)
    with pytest.raises(
        LedgerError, match=r"somebody of this table has withdrawn while it was read.*charged all the same"
    ):
        people.public("x", ledger=ours)
    assert [event["state"] for event in ours.history()] == ["failed"]


def test_what_goes_wrong_while_reading_is_charged(ours, monkeypatch):
    people = opened({1: inf, 2: 0.5})
    ours.register(people, "people")

    def fail(*args):
        assert spent(ours, 1) == "inf", "before anything is read"
        raise SourceError("the disk is gone.")

    monkeypatch.setattr(public, "public_values", fail)
    with pytest.raises(SourceError, match=r"the disk is gone. The release has been charged all the same"):
        people.public("x", ledger=ours)
    assert [event["state"] for event in ours.history()] == ["failed"]


def test_a_table_that_changes_while_it_is_read_is_not_told(ours, monkeypatch, tmp_path):
    """Somebody else is public, as many as before: they may have been read, and were not charged."""

    def write(levels):
        columns = {"id": list(levels), "x": [10.0 * k for k in levels], "level": list(levels.values())}
        pq.write_table(pa.table(columns), tmp_path / "people.parquet")

    write({1: inf, 2: 0.5})
    people = accord.table(tmp_path / "people.parquet", epsilon="level", user="id")
    ours.register(people, "people")
    read = public.public_values

    def meanwhile(*args):
        write({1: 0.5, 2: inf})
        return read(*args)

    monkeypatch.setattr(public, "public_values", meanwhile)
    with pytest.raises(SourceError, match=r"changed.*charged all the same"):
        people.public("x", ledger=ours)
    assert [event["state"] for event in ours.history()] == ["failed"]


def test_a_table_that_changed_since_is_refused(ours):
    people = opened({1: inf, 2: 0.5})
    ours.register(people, "people")
    with pytest.raises(LedgerError, match="regist"):
        opened({1: inf, 2: inf}).public("x", ledger=ours)
    assert ours.history() == []


def test_what_the_ledger_wants_to_be_told(ours):
    people = opened({1: inf, 2: 0.5})
    ours.register(people, "people")
    ours.require("actor", "purpose")
    with pytest.raises(LedgerError, match="purpose"):
        people.public("x", ledger=ours, actor="me")
    assert people.public("x", ledger=ours, **SIGNED).people == 1
    with pytest.raises(LedgerError, match="actor= and purpose= are booked in a ledger"):
        people.public("x", actor="me")


def test_it_is_asked_again_where_people_are_charged(ours):
    """What is required, and for which neighbors a ledger is kept, may have been agreed since the question was checked."""
    people = opened({1: inf, 2: 0.5})
    ours.register(people, "people")
    ours.require("actor")
    with pytest.raises(LedgerError, match="this ledger requires actor"):
        charging.reserve_public(ours.books, people, "public people's x", UNSIGNED)
    assert ours.history() == []


def test_it_is_refused_by_a_ledger_for_which_it_is_private_who_is_there(ours):
    """No table of such a ledger can be registered today; if one ever can, nobody looks at its people."""
    people, registered = opened({1: inf, 2: 0.5}), opened({1: inf, 2: 0.5})
    registered.neighbors = "add-remove"
    ours.register(registered, "people")
    with pytest.raises(LedgerError, match="kept for neighbors='add-remove', and this is for 'replace'"):
        people.public("x", ledger=ours)
    assert ours.history() == []


def test_a_ledger_needs_to_know_who_a_row_is_of(ours):
    people = accord.table({"x": [1.0], "e": [inf]}, epsilon="e")
    with pytest.raises(LedgerError, match="Open it with user="):
        people.public("x", ledger=ours)


def test_where_people_cannot_be_matched_it_is_refused(ours, monkeypatch):
    people = opened({1: inf, 2: inf, 3: 0.5})
    ours.register(people, "people")
    monkeypatch.setattr(Table, "lends", False)
    assert people.public("x", ledger=ours).people == 2, "by their level alone"
    ours.withdraw(2)
    told = "some people who are public in this table are stricter in another table of the ledger, or have withdrawn"
    with pytest.raises(LedgerError, match=told):
        people.public("x", ledger=ours)
    assert len(ours.history()) == 1


def test_whatever_shows_a_ledger_shows_it(tmp_path):
    """The person's record, the history, the sheet about a table, and the command."""
    path = tmp_path / "people.parquet"
    columns = {"id": [1, 2, 3], "x": [10.0, 20.0, 30.0], "level": [inf, inf, 0.5]}
    pq.write_table(pa.table(columns), path)
    ledger = accord.Ledger(tmp_path / "a.db")
    people = accord.table(path, epsilon="level", user="id")
    ledger.register(people, "people")
    words = [
        "public",
        str(path),
        "x",
        "--epsilon",
        "level",
        "--user",
        "id",
        "--ledger",
        str(tmp_path / "a.db"),
    ]
    done = CliRunner().invoke(main, [*words, "--why", "to plan", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["value"]["bounds"] == [10, 20]
    (event,) = ledger.history()
    assert event["purpose"] == "to plan"
    record = str(ledger.person(1))
    assert "public people's x" in record
    assert "Read without noise, because they were public." in record
    assert "public people's x" not in str(ledger.person(3))
    shown = CliRunner().invoke(main, ["ledger", "history", str(tmp_path / "a.db")])
    assert (shown.exit_code, "public people's x" in shown.stdout) == (0, True)
    sheet = to_text(board.board_view(board.board(ledger, "people")))
    assert "public people's x  suggests bounds, keys" in sheet
    assert "public people only" in sheet


def test_a_described_ledger_is_charged(tmp_path):
    columns = {"id": [1, 2], "x": [10.0, 30.0], "level": [inf, 0.5]}
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    (tmp_path / "accord.toml").write_text(
        'schema = 1\n[tables.people]\nsource = "people.parquet"\nepsilon = "level"\nuser = "id"\nledger = "a.db"\n'
    )
    ledger = accord.Ledger(tmp_path / "a.db")
    people = accord.catalog(tmp_path / "accord.toml")["people"]
    ledger.register(people, "people")
    assert people.public("x").booked is not None
    assert len(ledger.history()) == 1
