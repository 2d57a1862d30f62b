"""Requests and tokens of a service, as a ledger keeps them."""

import json
from threading import Thread

import pytest

import accord
from accord.errors import BudgetError, LedgerError
from accord.ledger import requests, tokens
from accord.ledger.requests import KeyConflictError, Quota
from accord.ledger.signing import Signature
from accord.ledger.tokens import ANALYST, OFFICER, Grant, Tokens

SIGNED = Signature("olive", "a test")
ALWAYS = Quota(1_000_000, "2026-01-01", "month")


@pytest.fixture
def ledger(tmp_path):
    return accord.Ledger(tmp_path / "accord.db")


def asked(key="k", share=1000, actor="ada", digest="0" * 64, waits=False):
    return requests.new_request(actor, key, digest, "people", share, '{"share": 0.001}', waits)


def states(ledger):
    return [request.state for request in requests.listed(ledger.books)]


def test_a_key_is_one_request(ledger):
    first = requests.submit(ledger.books, asked(), 5)
    assert requests.submit(ledger.books, asked(), 5) == first
    assert requests.repeated(ledger.books, "ada", "k", "0" * 64) == first
    assert requests.repeated(ledger.books, "bob", "k", "0" * 64) is None
    for call in (
        lambda: requests.submit(ledger.books, asked(digest="1" * 64), 5),
        lambda: requests.repeated(ledger.books, "ada", "k", "1" * 64),
    ):
        with pytest.raises(KeyConflictError, match="this key was used for another request"):
            call()
    assert requests.submit(ledger.books, asked(actor="bob", digest="1" * 64), 5).id != first.id


def test_a_request_is_charged_once_whoever_tries(ledger):
    request = requests.submit(ledger.books, asked(), 5)
    outcomes = []

    def charge():
        try:
            with ledger.books.writing() as db:
                requests.charge(db, request, 7, ALWAYS)
            outcomes.append("charged")
        except LedgerError as refusal:
            outcomes.append(str(refusal))

    threads = [Thread(target=charge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("charged") == 1
    assert set(outcomes) - {"charged"} == {"this request is in another state than it was. Look at it again."}
    found = requests.find(ledger.books, request.id)
    assert (found.state, found.entry) == ("charged", 7) and found.charged > request.time
    with pytest.raises(LedgerError, match="another state"):
        requests.finish(ledger.books, request, requests.DONE)
    with ledger.books.writing() as db:
        requests.answered(db, request, {"value": 1.5})
    assert requests.find(ledger.books, request.id).result == {"value": 1.5}
    assert requests.cancel(ledger.books, request).state == "done"


def test_what_refuses_a_charge_leaves_it_queued(ledger):
    request = requests.submit(ledger.books, asked(), 5)
    with pytest.raises(ZeroDivisionError), ledger.books.writing() as db:
        requests.charge(db, request, 7, ALWAYS)
        raise ZeroDivisionError
    assert requests.find(ledger.books, request.id) == request


def test_quotas_count_what_was_charged_in_the_period(ledger):
    for k, share in enumerate((400_000, 300_000)):
        request = requests.submit(ledger.books, asked(f"{k}", share), 5)
        with ledger.books.writing() as db:
            requests.charge(db, request, k + 1, ALWAYS)
    request = requests.submit(ledger.books, asked("more", 300_001), 5)
    refused = pytest.raises(BudgetError, match=r"0\.300001; of your 1 a month of this table, 0\.3 is left")
    with refused, ledger.books.writing() as db:
        requests.charge(db, request, 9, ALWAYS)
    with ledger.books.reading() as db:
        assert requests.spent(db, "ada", "people", "2026-01-01") == 700_000
        assert requests.spent(db, "ada", "people", "9999-01-01") == 0
        assert requests.spent(db, "ada", "others", "2026-01-01") == 0
        requests.refuse_above(db, asked("other", 300_000), ALWAYS)


def test_what_a_process_leaves_behind(ledger):
    charged, queued, waiting = (
        requests.submit(ledger.books, asked(key, waits=key == "c"), 5) for key in "abc"
    )
    with ledger.books.writing() as db:
        requests.charge(db, charged, 3, ALWAYS)
    assert requests.interrupted(ledger.books) == [queued]
    assert requests.find(ledger.books, charged.id).state == "failed"
    assert requests.find(ledger.books, waiting.id).state == "waiting"


def test_approvals_are_booked(ledger):
    request = requests.submit(ledger.books, asked(waits=True), 5)
    with pytest.raises(LedgerError, match="an approval is booked with who did it and why"):
        requests.decide(ledger.books, request, True, Signature("olive"))
    assert requests.decide(ledger.books, request, True, SIGNED).state == "queued"
    with pytest.raises(LedgerError, match="another state"):
        requests.decide(ledger.books, request, False, SIGNED)
    (entry,) = ledger.history(kind="approval")
    assert {name: entry[name] for name in ("asked_by", "share", "approved", "actor", "purpose")} == {
        "asked_by": "ada",
        "share": "0.001",
        "approved": True,
        "actor": "olive",
        "purpose": "a test",
    }
    assert ledger.verify().problems == ()


def test_an_analyst_has_so_many_open_requests(ledger):
    for k in range(2):
        requests.submit(ledger.books, asked(f"{k}"), 2)
    with pytest.raises(BudgetError, match="2 of your requests are waiting"):
        requests.submit(ledger.books, asked("more"), 2)
    requests.cancel(ledger.books, requests.listed(ledger.books)[0])
    assert requests.submit(ledger.books, asked("more"), 2).state == "queued"


def test_tokens_are_entries_and_their_secrets_are_not(ledger):
    made, text = tokens.add(ledger.books, "ada", ANALYST, {"people": Grant(100_000, "month")}, 30, SIGNED)
    known = Tokens(ledger.books)
    assert known.of(text) == made and made.grants["people"].quota.share == 100_000
    assert known.of(text[:-1]) is None and known.of("") is None and known.of(f"accord_{made.id}_") is None
    officer, _ = tokens.add(ledger.books, "olive", OFFICER, {}, 30, SIGNED)
    assert set(known.by_id) == {made.id, officer.id}
    assert text.split("_", 2)[2] not in json.dumps(ledger.export()) + repr(made)
    tokens.revoke(ledger.books, made.id, SIGNED)
    assert known.of(text) is None and known.by_id[made.id].revoked
    with pytest.raises(LedgerError, match="there is no token"):
        tokens.revoke(ledger.books, made.id, SIGNED)
    kinds = [(entry["name"], entry["role"], entry["revoked"]) for entry in ledger.history(kind="token")]
    assert kinds == [("ada", "analyst", False), ("olive", "officer", False), ("ada", "analyst", True)]
    ledger.rotate_key(actor="olive", purpose="a test")
    assert Tokens(ledger.books).by_id[officer.id] == officer
    assert ledger.verify().problems == ()


def test_a_token_that_somebody_wrote_without_the_key_is_none(ledger, tmp_path):
    import sqlite3
    from contextlib import closing

    tokens.add(ledger.books, "ada", ANALYST, {"people": Grant(100_000, "month")}, 30, SIGNED)
    with closing(sqlite3.connect(tmp_path / "accord.db", isolation_level=None)) as connection:
        connection.execute("UPDATE accord_entry SET seal = ?", ("0" * 64,))
    with pytest.raises(LedgerError, match="was not written with its key"):
        _ = Tokens(ledger.books).by_id


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ada", "king", {}, 30, SIGNED), "there is no role 'king'"),
        (("", OFFICER, {}, 30, SIGNED), "the name of a token"),
        (("a\nb", OFFICER, {}, 30, SIGNED), "the name of a token"),
        (("ada", OFFICER, {}, 0, SIGNED), "valid for 1 to"),
        (("ada", ANALYST, {}, 30, SIGNED), "says of which tables"),
        (("ada", OFFICER, {"people": Grant(1, "month")}, 30, SIGNED), "grants are for analysts"),
        (("ada", ANALYST, {"people": Grant(0, "month")}, 30, SIGNED), "a quota is a share"),
        (("ada", ANALYST, {"people": Grant(1, "week")}, 30, SIGNED), "a quota is a share"),
        (("ada", OFFICER, {}, 30, Signature("olive")), "booked with who did it and why"),
    ],
)
def test_what_is_no_token(ledger, arguments, words):
    with pytest.raises(LedgerError, match=words):
        tokens.add(ledger.books, *arguments)
    assert ledger.entries() == []


def test_periods_of_quotas_begin_with_the_calendar():
    from datetime import UTC, datetime

    before = datetime.now(UTC)
    since = [Grant(1, period).quota.since for period in ("year", "quarter", "month")]
    assert since in [
        [
            f"{now.year}-01-01",
            f"{now.year}-{(now.month - 1) // 3 * 3 + 1:02d}-01",
            f"{now.year}-{now.month:02d}-01",
        ]
        for now in (before, datetime.now(UTC))
    ]


def test_verify_finds_requests_that_are_charged_by_nothing(ledger, tmp_path):
    import sqlite3
    from contextlib import closing

    request = requests.submit(ledger.books, asked(), 5)
    assert ledger.verify().problems == ()
    with closing(sqlite3.connect(tmp_path / "accord.db", isolation_level=None)) as connection:
        connection.execute("UPDATE accord_request SET entry = 7, state = 'done'")
    assert ledger.verify().problems == (f"request {request.id} is not of a reservation of its own",)
