"""Long scans: they tell how far they are, and Ctrl-C stops them at once and leaves the ledger right."""

import os
import signal

import duckdb
import pytest

import accord
from accord.engines import watched
from accord.engines.duckdb_connection import OWN


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A table whose scan takes some seconds, by one thread, however many cores there are: its people must be told apart."""
    path = tmp_path_factory.mktemp("long") / "people.parquet"
    duckdb.sql(
        f"COPY (SELECT range AS id, (range * 7919) % 1000 / 10.0 AS x, 0.5 AS e FROM range(6000000)) TO '{path}' (ROW_GROUP_SIZE 100000)"
    )
    connection = OWN.connect()
    connection.execute("SET threads = 1")
    yield path
    connection.execute("RESET threads")


def test_a_long_scan_tells_how_far_it_is(long):
    seen = []
    with watched(seen.append):
        accord.table(long, epsilon="e", user="id").spec()
    assert len(seen) >= 2 and all(x <= 100 for x in seen)
    assert any(0 < x < 100 for x in seen)
    before = len(seen)
    accord.table({"e": [1.0]}, epsilon="e").spec()  # nobody watches any more
    assert len(seen) == before


def test_ctrl_c_stops_the_query_and_leaves_the_ledger_right(long, tmp_path):
    people = accord.table(long, epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    plan = people.plan(accord.mean("x", bounds=(0, 100)), share=0.5)
    seen = []

    def interrupt(percent):
        seen.append(percent)
        if len(seen) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    with watched(interrupt), pytest.raises(KeyboardInterrupt):
        people.release(plan, ledger=ledger)
    assert seen[-1] < 100  # it did not run to its end
    assert ledger.verify().problems == ()
    states = [entry["state"] for entry in ledger.history()]
    remaining = ledger.remaining(people).levels
    # before the reservation nothing is spent; after it, everything is, and it is booked as failed
    assert (states, remaining) in ((["failed"], (0.25,)), ([], (0.5,)))
    release = people.release(plan, ledger=ledger)  # the connection is as good as new
    assert release.value == pytest.approx(49.95, abs=0.1)
