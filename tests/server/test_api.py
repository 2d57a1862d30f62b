"""What an analyst, the officer and the owner can do by HTTP, and what nobody can. The server is real."""

import json
import os
import sys
from pathlib import Path
from threading import Thread

import pytest
from serving import COUNT, DESCRIPTION, MARKER, MEAN, SECRET, SIGNED, Caller, make_office, serving

import accord
from accord.ledger import tokens
from accord.server.office import FAILED, NOT_AGREED, NOT_READABLE
from accord.server.scans import slot

SIGNED_IN = Caller


# ---- asking ----------------------------------------------------------------------------------------------


def test_a_plan_is_that_of_the_table_itself(served):
    made, callers, _ = served
    document = callers["ada"]("POST", "/api/tables/people/plan", {**MEAN, "share": 0.1})[1]
    people = accord.catalog(made.folder / "accord.toml")["people"]
    assert document == json.loads(json.dumps(people.plan(accord.mean("stay"), share=0.1).describe()))


def test_the_spec_and_what_is_declared(served):
    _, callers, _ = served
    spec = callers["ada"].get("/api/tables/people/spec")
    assert (spec["people"], spec["opted_out"]) == (45, 15)
    assert [each["level"] for each in spec["levels"]] == ["0.5", "4", "inf"]
    table = callers["ada"].get("/api/tables/people")
    by_name = {column["name"]: column for column in table["columns"]}
    assert by_name["stay"]["bounds"] == [0, 60] and by_name["ward"]["keys"] == ["A", "B"]
    assert "id" not in by_name and "tier" not in by_name
    assert [table["name"] for table in callers["ada"].get("/api/tables")["tables"]] == ["people"]
    assert callers["olive"].get("/api/me")["role"] == "officer"


def test_a_release_is_booked_and_answered(served):
    made, callers, _ = served
    done = callers["ada"].answer(MEAN, 0.1, purpose="to see")
    assert done["state"] == "done"
    receipt = done["answer"]["receipt"]
    (event,) = made.office.ledger.history(actor="ada", since=receipt["time"][:10])[-1:]
    assert event["purpose"] == "to see" and event["state"] == "released"
    booked = {key: value for key, value in receipt.items() if key != "ledger"}
    assert event["receipts"] == [booked]
    assert receipt["ledger"]["entry"] > event["entry"]
    assert callers["ada"].get(f"/api/requests/{done['id']}") == done


def test_workloads_and_selects(served):
    _, callers, _ = served
    both = callers["ada"].answer({"questions": [MEAN["question"], COUNT["question"]]}, 0.2)
    assert [each["query"]["statistic"] for each in both["answer"]["receipt"]["receipts"]] == ["mean", "count"]
    select = "SELECT ward, AVG(stay) AS days FROM people GROUP BY ward"
    sql = {"sql": {"text": select, "one_row_each": True}}
    rows = callers["ada"].answer(sql, 0.2)["answer"]["rows"]
    assert [row["ward"] for row in rows] == ["A", "B"] and all("days" in row for row in rows)
    plan = callers["ada"]("POST", "/api/tables/people/plan", {**sql, "share": 0.1})
    assert plan[0] == 200 and plan[1]["query"]["by"] == "ward"


def test_the_same_key_is_one_request_and_another_body_a_conflict(served):
    made, callers, _ = served
    before = len(made.office.ledger.history())
    status, first = callers["ada"].ask(COUNT, 0.05, key="once", fresh=True)
    assert status == 202
    done = callers["ada"].settled(first["id"])
    for _ in range(3):
        assert callers["ada"].ask(COUNT, 0.05, key="once", fresh=True) == (202, done)
    assert len(made.office.ledger.history()) == before + 1
    assert callers["ada"].ask(COUNT, 0.06, key="once", fresh=True)[0] == 409
    assert callers["bob"].ask(COUNT, 0.05, key="once", fresh=True)[1]["id"] != first["id"]


def test_the_same_question_is_answered_again_for_nothing(served):
    made, callers, _ = served
    first = callers["ada"].answer(MEAN, 0.15)
    again = callers["bob"].answer(MEAN, 0.15)
    value = [each["answer"]["receipt"]["value"] for each in (first, again)]
    assert value[0] == value[1] and "repeated" in again["answer"]["receipt"]
    assert made.office.ledger.verify().problems == ()


def test_what_is_not_to_be_said_is_refused(served):
    _, callers, _ = served
    for body, words in (
        (
            {"question": {"statistic": "mean", "column": "stay", "membership": "public"}},
            "no key 'membership'",
        ),
        ({**MEAN, "user": "ward"}, "user: the request has no key 'user'"),
        ({**MEAN, "ledger": "other.db"}, "no key 'ledger'"),
        ({"question": {"statistic": "count", "by": "ward", "keys": "/etc/passwd"}}, "names no file"),
        ({"question": {"statistic": "mean", "column": "stay", "bounds": [0, 61]}}, "lie within these"),
        ({"question": {"statistic": "mean", "column": "stai"}}, "did you mean 'stay'?"),
        ({"question": {"statistic": "maen", "column": "stay"}}, "statistic"),
        ({}, "one of question, questions and sql"),
        ({**MEAN, **COUNT, "questions": [MEAN["question"]]}, "one of question, questions and sql"),
        ({"sql": {"text": "SELECT * FROM people"}}, "SELECT"),
        ({"sql": {"text": "SELECT AVG(stay) FROM people", "keys": {"ward": "/etc/passwd"}}}, "names no file"),
        ({"question": {"statistic": "count", "where": "(SELECT 1) = 1"}}, "where"),
        ({**MEAN, "share": 7}, "share"),
        ({**MEAN, "share": "all"}, "share"),
        ({**MEAN, "share": 1e400}, "JSON"),
        ([MEAN], "JSON object"),
        ("count", "JSON object"),
    ):
        status, document, _ = callers["ada"]("POST", "/api/tables/people/plan", body)
        assert status == 422 and words in document["error"]["message"], (body, document)
    status, document = callers["ada"].ask(MEAN, share=None)
    assert status == 422
    path, body = "/api/tables/people/release", {**MEAN, "share": 0.01}
    for headers in ({}, {"Idempotency-Key": "k" * 101}):
        status, document, _ = callers["ada"]("POST", path, body, headers)
        assert status == 422 and "needs the header Idempotency-Key: a text" in document["error"]["message"]


def test_a_budget_that_is_spent_is_refused(fresh):
    made, callers, _ = fresh
    # the officer approves the large ones
    first = callers["ada"].ask(COUNT, 0.9)[1]
    assert first["state"] == "waiting"
    approve = {"approved": True, "purpose": "fine"}
    assert callers["olive"]("POST", f"/api/requests/{first['id']}/decision", approve)[0] == 200
    assert callers["ada"].settled(first["id"])["state"] == "done"
    refused = callers["bob"].answer(MEAN, 0.2)
    assert refused["state"] == "refused" and refused["error"]["type"] == "BudgetError"
    assert "is left" in refused["error"]["message"]
    assert made.office.ledger.verify().problems == ()


# ---- rules -----------------------------------------------------------------------------------------------


def test_large_shares_wait_for_the_officer(fresh):
    made, callers, _ = fresh
    _, waiting = callers["ada"].ask(MEAN, 0.5, purpose="a report")
    assert waiting["state"] == "waiting"
    path = f"/api/requests/{waiting['id']}/decision"
    decision = {"approved": False, "purpose": "too much"}
    assert callers["ada"]("POST", path, decision)[0] == 404
    assert callers["omar"]("POST", path, decision)[0] == 404
    listed = callers["olive"].get("/api/requests?state=waiting")["requests"]
    assert [each["id"] for each in listed] == [waiting["id"]] and listed[0]["purpose"] == "a report"
    assert callers["olive"]("POST", path, decision)[1]["state"] == "cancelled"
    assert callers["olive"]("POST", path, decision)[0] == 409
    (entry,) = made.office.ledger.history(kind="approval")
    assert (entry["asked_by"], entry["approved"], entry["actor"]) == ("ada", False, "olive")
    assert made.office.ledger.history() == []


def test_a_quota_holds_in_the_transaction_that_charges(tmp_path):
    made = make_office(tmp_path, quota=0.15)
    with serving(made.office) as url:
        ada, bob = (Caller(url, made.tokens[name]) for name in ("ada", "bob"))
        assert ada.answer(COUNT, 0.1)["state"] == "done"
        status, refused = ada.ask(COUNT, 0.1, fresh=True)
        assert (
            status == 409
            and "of your 0.15 a month of this table, 0.05 is left" in refused["error"]["message"]
        )
        assert bob.answer(COUNT, 0.1, fresh=True)["state"] == "done"
        assert ada.get("/api/tables/people")["quota"]["left"] == "0.05"
        assert ada.answer(COUNT, 0.05)["state"] == "done"

        # of several at once as many as there is room for, whichever comes first
        bobs = []
        asking = [
            Thread(target=lambda k=k: bobs.append(bob.ask(MEAN, 0.02, key=f"{k}", fresh=True)))
            for k in range(3)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        states = [bob.settled(document["id"])["state"] for status, document in bobs if status == 202]
        assert states.count("done") == 2 and set(states) <= {"done", "refused"}
        assert bob.get("/api/tables/people")["quota"]["left"] == "0.01"
    assert len(made.office.ledger.history()) == 5


def test_another_description_stops_releases_until_the_officer_agrees(tmp_path):
    made = make_office(tmp_path)
    changed = (tmp_path / "accord.toml").read_text().replace("bounds = [0, 60]", "bounds = [0, 70]")
    (tmp_path / "accord.toml").write_text(changed)
    from accord.server.office import Office

    office = Office(tmp_path / "accord.toml")
    office.agree_first(SIGNED)  # which agrees to none but the first
    with serving(office) as url:
        ada, olive, omar = (Caller(url, made.tokens[name]) for name in ("ada", "olive", "omar"))
        assert ada.ask(MEAN)[1]["error"]["message"] == NOT_AGREED
        assert ada("POST", "/api/tables/people/plan", MEAN)[0] == 200
        why = {"purpose": "wards report longer stays"}
        assert ada("POST", "/api/description/agree", why)[0] == 404
        assert omar("POST", "/api/description/agree", why)[0] == 404
        assert olive("POST", "/api/description/agree", why)[1]["agreed"] is True
        assert ada.answer(MEAN)["state"] == "done"
    kinds = [entry["kind"] for entry in office.ledger.history(kind="description")]
    assert kinds == ["description"] * 2


def test_people_are_looked_up_and_withdrawn_by_the_officer_alone(fresh):
    made, callers, _ = fresh
    callers["ada"].answer(MEAN)
    asked = {"id": "p1", "purpose": "they asked"}
    for name in ("ada", "omar"):
        assert callers[name]("POST", "/api/person", asked)[0] == 404
        assert callers[name]("POST", "/api/withdraw", {"ids": ["p1"], "purpose": "x"})[0] == 404
    person = callers["olive"]("POST", "/api/person", asked)[1]
    assert person["level"] == "4" and len(person["releases"]) == 1
    assert str(made.folder) not in json.dumps(person)
    unknown = callers["olive"]("POST", "/api/person", {"id": "nobody", "purpose": "they asked"})
    assert unknown[0] == 409 and str(made.folder) not in unknown[1]["error"]["message"]
    done = callers["olive"]("POST", "/api/withdraw", {"ids": ["p1"], "purpose": "they asked"})
    assert done[0] == 200 and done[1]["people"] == 1
    status, refused = callers["ada"].ask({"question": {"statistic": "mean", "column": "stay"}}, share=0.2)
    assert status == 202
    refused = callers["ada"].get(f"/api/requests/{refused['id']}?wait=30")
    message = refused["error"]["message"]
    assert 'plan from what is left: "remaining": true, in Python remaining=True. 1 person has' in message
    assert "ledger=" not in message and "accord ledger" not in message
    kinds = [event["kind"] for event in made.office.ledger.history(kind="all")]
    assert kinds.count("person") == 2 and kinds.count("withdraw") == 1


def test_an_analyst_sees_their_own_history_only(fresh):
    _, callers, _ = fresh
    callers["ada"].answer(MEAN, purpose="mine")
    callers["bob"].answer(COUNT, purpose="his")
    own = callers["ada"].get("/api/history")["history"]
    assert [event["purpose"] for event in own] == ["mine"]
    assert callers["ada"].get("/api/history?actor=bob")["history"] == own
    assert callers["ada"]("GET", "/api/history?kind=all")[0] == 404
    assert len(callers["olive"].get("/api/history")["history"]) == 2
    assert {each["table"] for each in callers["ada"].get("/api/accounts")["accounts"]} == {"people"}


def test_a_request_is_cancelled_as_long_as_nobody_is_charged(fresh):
    _, callers, _ = fresh
    waiting = callers["ada"].ask(MEAN, 0.9)[1]
    cancel = f"/api/requests/{waiting['id']}/cancel"
    assert callers["bob"]("POST", cancel)[0] == 404
    assert callers["ada"]("POST", cancel)[1]["state"] == "cancelled"
    done = callers["ada"].answer(MEAN)
    assert callers["ada"]("POST", f"/api/requests/{done['id']}/cancel")[1]["state"] == "done"


def test_an_analyst_has_so_many_requests_at_once(fresh):
    _, callers, _ = fresh
    for k in range(3):
        assert callers["ada"].ask(MEAN, 0.9, key=f"large {k}")[0] == 202
    status, refused = callers["ada"].ask(MEAN, 0.9, key="one more")
    assert status == 429 and "3 of your requests are waiting" in refused["error"]["message"]


# ---- getting in ------------------------------------------------------------------------------------------


def test_who_gets_in(fresh):
    made, callers, url = fresh
    books = made.office.ledger.books
    right = made.tokens["ada"]
    for wrong in ("", "accord", right[:-1], right + "x", right.replace("accord_", "accor_"), "ü", "_" * 50):
        token = None if not wrong else wrong.encode("utf-8").decode("latin-1")
        status, document, _ = Caller(url, token)("GET", "/api/me")
        assert status == 401 and document["error"]["type"] == "SignInError", wrong
    assert callers["ada"]("GET", "/api/me")[0] == 200
    assert callers["ada"]("POST", f"/api/tokens/{right.split('_')[1]}/revoke", {"purpose": "x"})[0] == 404
    revoked = callers["omar"]("POST", f"/api/tokens/{right.split('_')[1]}/revoke", {"purpose": "left"})
    assert revoked[1]["revoked"] is True
    assert callers["ada"]("GET", "/api/me")[0] == 401
    assert callers["bob"]("GET", "/api/tokens")[0] == 404
    listed = {each["name"]: each["revoked"] for each in callers["omar"].get("/api/tokens")["tokens"]}
    assert listed == {"ada": True, "bob": False, "olive": False, "omar": False}
    text = json.dumps([vars(entry) for entry in made.office.ledger.entries()])
    assert not any(secret.split("_", 2)[2] in text for secret in made.tokens.values())
    assert tokens.Tokens(books).of(made.tokens["bob"]).name == "bob"


def test_a_token_expires(fresh, monkeypatch):
    made, callers, _ = fresh
    from datetime import UTC, datetime, timedelta

    class Later(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(days=31)

    assert callers["ada"]("GET", "/api/me")[0] == 200
    monkeypatch.setattr(tokens, "datetime", Later)
    assert callers["ada"]("GET", "/api/me")[0] == 401
    monkeypatch.undo()
    assert datetime.now(UTC) < datetime.fromisoformat(
        tokens.Tokens(made.office.ledger.books).of(made.tokens["ada"]).expires
    )


def test_what_is_forbidden_and_what_is_not_there_look_alike(served):
    _, callers, _ = served
    done = callers["ada"].answer(MEAN)
    answers = [
        callers["bob"]("GET", path)[:2]
        for path in (
            "/api/tables/hidden",
            "/api/tables/nothing",
            "/api/tables/hidden/spec",
            "/api/tables/hidden/remaining",
            f"/api/requests/{done['id']}",
            f"/api/requests/{'0' * 32}",
            "/api/tokens",
            "/api/nothing",
            "/nothing",
            "/api/tables/..%2f..%2fetc/spec",
            "/api/tables/people%00/spec",
        )
    ]
    answers += [
        callers["bob"]("POST", f"/api/tables/{name}/plan", MEAN)[:2] for name in ("hidden", "nothing")
    ]
    assert {json.dumps(each) for each in answers} == {json.dumps(answers[0])} and answers[0][0] == 404


def test_signing_in_is_throttled(fresh):
    _, callers, url = fresh
    assert callers["ada"]("GET", "/api/me")[0] == 200
    statuses = [Caller(url, f"accord_{k}_x")("GET", "/api/me")[0] for k in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    assert callers["ada"]("GET", "/api/me")[0] == 200  # whom nobody behind the same proxy keeps out


def test_the_officers_and_the_owners_ask_nothing(served):
    _, callers, _ = served
    for name in ("olive", "omar"):
        assert callers[name].ask(MEAN)[0] == 404
        assert callers[name]("POST", "/api/tables/people/plan", MEAN)[0] == 200


# ---- by the side -----------------------------------------------------------------------------------------


def test_an_answer_is_not_seen_before_its_slot_ends(served):
    from time import monotonic

    _, callers, _ = served
    started = monotonic()
    callers["ada"].answer(COUNT, 0.01, fresh=True)
    assert monotonic() - started >= slot(45)


def test_every_fault_after_the_charge_is_the_same(fresh, monkeypatch):
    made, callers, _ = fresh
    releasing = sys.modules["accord.release.release"]
    seen = []
    for k, fault in enumerate((MemoryError(), ZeroDivisionError("54321"), accord.errors.SourceError(MARKER))):

        def broken(*args, _fault=fault, **more):
            raise _fault

        monkeypatch.setattr(releasing, "carry_out", broken)
        failed = callers["ada"].answer(MEAN, 0.1, key=f"fault {k}")
        assert failed["state"] == "failed" and failed["error"] == {"type": "Failed", "message": FAILED}
        seen.append(failed["error"])
    monkeypatch.undo()
    assert callers["ada"].ask(MEAN, 0.1, key="fault 0")[1]["state"] == "failed"  # and no second draw
    history = made.office.ledger.history()
    assert [event["state"] for event in history] == ["failed"] * 3
    assert made.office.ledger.verify().problems == ()


def test_a_table_that_has_changed_is_refused_without_a_word_about_why(fresh):
    made, callers, _ = fresh
    source = made.folder / "people.csv"
    source.write_text(source.read_text() + f"p99,1,A,strict,{MARKER},1\n")
    refused = callers["ada"].answer(MEAN)
    assert refused["state"] == "refused" and refused["error"]["message"] == NOT_READABLE
    made.office.ledger.register(accord.catalog(made.folder / "accord.toml")["people"], "people")
    assert callers["ada"].answer(MEAN)["state"] == "done"


def test_garbage_is_refused_and_tells_nothing(served):
    made, callers, _ = served
    import random

    rng = random.Random(5)
    paths = [
        "/api/tables/people/plan",
        "/api/tables/people/release",
        "/api/person",
        "/api/withdraw",
        "/api/requests/x/decision",
        "/api/description/agree",
        "/api/tables/people",
        "/api/requests",
        "/api/history?since=x",
        "/api/history?kind=%ff",
        "/api/requests?state=';--",
    ]
    pieces = [
        b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"NaN", b"1e999", b"-0", b"\xff", b"question", b"sql",
        b'"statistic"', b'"mean"', b'"where"', b'"1=1"', b'"column"', b'"secret"', b"\x00", b"9" * 30, b'"\\ud800"',
    ]  # fmt: skip
    bodies = [b"[" * 50_000, b'{"question":' * 20_000, b"", b"{}", b"null", json.dumps(MEAN).encode()[:-1]]
    bodies += [b"".join(rng.choices(pieces, k=rng.randrange(1, 12))) for _ in range(200)]
    valid = [
        {"question": {"statistic": statistic, "column": column, "where": where, "bounds": bounds}}
        for statistic in ("mean", "histogram", "median", "top", "rows", "regression", "correlation")
        for column in ("secret", "note", "id", "", 5, None)
        for where, bounds in (("secret > 1", [0, 1]), ("note = 'x'", [1, 0]), ("'", ["a", "b"]))
    ]
    bodies += [json.dumps(each).encode() for each in valid]
    told = []
    for body in bodies:
        caller = callers[rng.choice(["ada", "olive"])]
        headers = {"Idempotency-Key": rng.choice(["k", "\x7f", "x" * 101])}
        status, document, _ = caller(
            rng.choice(["POST", "GET", "PUT"]), rng.choice(paths), headers=headers, raw=body
        )
        assert status < 500, (body, document)
        told.append(json.dumps(document))
    everything = "".join(told)
    assert MARKER not in everything and str(SECRET) not in everything and str(made.folder) not in everything
    assert "Traceback" not in everything and "p17" not in everything


# ---- the guard -------------------------------------------------------------------------------------------


def test_other_names_are_refused(served):
    _, callers, url = served
    port = url.rsplit(":", 1)[1]
    for host, status in (
        ("evil.example", 421),
        (f"evil.example:{port}", 421),
        (f"localhost:{port}", 200),
        ("", 421),
    ):
        assert callers["ada"]("GET", "/api/me", headers={"Host": host})[0] == status, host


def test_long_and_slow_bodies_are_refused(served, monkeypatch):
    import socket

    from accord.server import guard

    _, callers, url = served
    status, document, _ = callers["ada"]("POST", "/api/tables/people/plan", raw=b" " * (2**20 + 1))
    assert status == 413 and "1,048,576 bytes" in document["error"]["message"]
    monkeypatch.setattr(guard, "PATIENCE", 0.2)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as slow:
        slow.sendall(f"POST /api/person HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert slow.recv(200).startswith(b"HTTP/1.1 408")


def test_headers_let_nothing_in_or_out(served):
    _, callers, _ = served
    for path in ("/api/me", "/nothing", "/openapi.json"):
        headers = callers["ada"]("GET", path)[2]
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
        assert headers["X-Frame-Options"] == "DENY" and "Server" not in headers


def test_openapi_describes_every_route(served):
    url = served[2]
    described = Caller(url).get("/openapi.json")
    assert "/api/tables/{table}/release" in described["paths"]
    body = described["paths"]["/api/tables/{table}/plan"]["post"]["requestBody"]["content"]
    question = body["application/json"]["schema"]["properties"]["question"]
    assert "membership" not in question["properties"] and "where" in question["properties"]
    assert Caller(url)("GET", "/docs")[0] == 404 and Caller(url)("GET", "/redoc")[0] == 404


def test_the_published_description_is_the_services(served):
    published = Path(__file__).parents[2] / "docs" / "schemas" / "openapi.json"
    described = Caller(served[2]).get("/openapi.json")
    if "ACCORD_WRITE_GOLDEN" in os.environ:
        published.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(published.read_text(encoding="utf-8")) == described


def test_a_description_for_a_service(tmp_path):
    from accord.server.office import Office

    (tmp_path / "accord.toml").write_text('schema = 1\n[tables.a]\nsource = "a.csv"\nepsilon = 1\n')
    with pytest.raises(
        accord.errors.SourceError, match="names no ledger, and whoever asks a service is charged"
    ):
        Office(tmp_path / "accord.toml")
    (tmp_path / "accord.toml").write_text(DESCRIPTION.replace("approve_above = 0.25", "approve_above = 2"))
    with pytest.raises(accord.errors.SourceError, match="a share of everyone's level, from 0"):
        Office(tmp_path / "accord.toml")
