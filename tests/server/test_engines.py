"""The service by the same file: data and ledger in PostgreSQL, and data in Spark."""

import json
from contextlib import suppress

import pytest
from serving import COUNT, MEAN, SIGNED, Caller, check_books, serving

import accord
from accord.ledger import tokens
from accord.ledger.tokens import ANALYST, OFFICER, Grant
from accord.server.office import Office

DESCRIPTION = """\
schema = 1
ledger = "{ledger}"
[tables.people]
source = "{source}"
user = "id"
epsilon = "tier"
tiers = {{ strict = 0.5, standard = 4, out = 0 }}
[tables.people.columns.stay]
bounds = [0, 60]
[tables.people.columns.ward]
keys = ["A", "B"]
"""
TIERS = ("strict", "standard", "out")


def office_of(folder, source, ledger):
    """(office, tokens by role, the table here)"""
    (folder / "accord.toml").write_text(DESCRIPTION.format(source=source, ledger=ledger))
    books = accord.Ledger(ledger if "://" in ledger else folder / ledger)
    here = accord.catalog(folder / "accord.toml")["people"]
    books.register(here, "people")
    texts = {
        role: tokens.add(
            books.books, role, role, {"people": Grant(10**6, "month")} if role == ANALYST else {}, 9, SIGNED
        )[1]
        for role in (ANALYST, OFFICER)
    }
    office = Office(folder / "accord.toml")
    office.agree_first(SIGNED)
    return office, texts, here


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["file", "server"])
def test_one_service_serves_a_ledger(tmp_path, postgres_url, kind, monkeypatch):
    """Where the ledger is a file, and where it is on a server."""
    monkeypatch.setenv("ACCORD_LEDGER_KEY", "a key that only tests use")
    ledger = "books.db" if kind == "file" else postgres_url
    accord.Ledger(ledger if kind == "server" else tmp_path / ledger)
    (tmp_path / "accord.toml").write_text(DESCRIPTION.format(source="people.csv", ledger=ledger))
    first, second = (Office(tmp_path / "accord.toml") for _ in range(2))
    first.serve_alone()
    with pytest.raises(accord.errors.LedgerError, match="another process serves the ledger"):
        second.serve_alone()
    first.close()
    second.serve_alone()
    second.close()


def journey(office, texts, here, hidden):
    with serving(office) as url:
        analyst, officer = Caller(url, texts[ANALYST]), Caller(url, texts[OFFICER])
        people = accord.connect(url, texts[ANALYST])["people"]
        assert people.spec() == here.spec()
        plan = people.plan(accord.mean("stay", by="ward"), share=0.1)
        assert plan.fingerprint == here.plan(accord.mean("stay", by="ward"), share=0.1).fingerprint
        answer = people.release(plan, purpose="a test")
        assert [row["ward"] for row in answer.value] == ["A", "B"]
        assert people.release(accord.mean("stay", by="ward"), share=0.1).repeated is not None
        assert (
            analyst.ask(MEAN, 0.1, key="a", fresh=True)[1]["id"]
            == analyst.ask(MEAN, 0.1, key="a", fresh=True)[1]["id"]
        )
        assert analyst.ask(COUNT, 0.1, key="a")[0] == 409
        waiting = analyst.ask(COUNT, 0.2)[1]["id"]
        decision = {"approved": True, "purpose": "fine"}
        assert officer("POST", f"/api/requests/{waiting}/decision", decision)[0] == 200
        assert analyst.settled(waiting)["state"] == "done"
        person = officer("POST", "/api/person", {"id": "p1", "purpose": "they asked"})[1]
        assert person["level"] == "4"
        told = json.dumps(
            [analyst.get("/api/history"), analyst.get("/api/tables"), analyst.answer(MEAN, 0.05, fresh=True)]
        )
        assert not any(text in told for text in hidden)
    check_books(office.ledger)


@pytest.mark.postgres
def test_data_and_ledger_in_postgresql(tmp_path, postgres_url, monkeypatch):
    import psycopg

    monkeypatch.setenv("ACCORD_LEDGER_KEY", "k" * 40)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (id TEXT, stay DOUBLE PRECISION, ward TEXT, tier TEXT)")
        for k in range(60):
            values = (f"p{k}", k * 7 % 50, "AB"[k % 2], TIERS[k % 3])
            connection.execute("INSERT INTO people VALUES (%s, %s, %s, %s)", values)
    office, texts, here = office_of(tmp_path, f"{postgres_url}&table=people", postgres_url)
    journey(office, texts, here, hidden=("postgresql://", "host=", postgres_url))


@pytest.mark.postgres
def test_a_scan_of_postgresql_is_stopped_in_the_server(postgres_url):
    import psycopg

    from accord.errors import SourceError
    from accord.people.limits import limited

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (stay DOUBLE PRECISION, level DOUBLE PRECISION)")
        connection.execute("INSERT INTO people VALUES (1, 1)")
        # as slow a view as there may be; its rows are waited for
        connection.execute(
            "CREATE VIEW slow AS SELECT stay, level FROM people, LATERAL (SELECT pg_sleep(600)) AS wait"
        )
    people = accord.table(f"{postgres_url}&table=slow", epsilon="level")
    with (
        limited(0.5),
        pytest.raises(SourceError, match=r"cannot read the PostgreSQL table 'slow' \(QueryCanceled\)"),
    ):
        people.spec()
    with limited(0.0), pytest.raises(SourceError, match="reading took longer than it may"):
        people.spec()


@pytest.mark.slow
@pytest.mark.spark
def test_data_in_spark(tmp_path, session):
    rows = [(f"p{k}", float(k * 7 % 50), "AB"[k % 2], TIERS[k % 3]) for k in range(60)]
    frame = session.createDataFrame(rows, "id string, stay double, ward string, tier string")
    frame.createOrReplaceTempView("served")
    try:
        office, texts, here = office_of(tmp_path, "spark://served", "accord.db")
        journey(office, texts, here, hidden=(str(tmp_path),))
    finally:
        with suppress(Exception):
            session.catalog.dropTempView("served")
