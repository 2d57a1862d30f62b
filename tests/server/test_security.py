"""What hostile analysts try. The server is real; tests/server/test_api.py has who gets in, other hosts and long bodies."""

import hmac
import json
import logging
import random
import socket
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from serving import COUNT, DESCRIPTION, MARKER, MEAN, SECRET, SIGNED, Caller, make_office, serving

from accord.errors import LedgerError
from accord.ledger import requests, tokens
from accord.ledger.tokens import ANALYST, OFFICER, Grant
from accord.server import guard, scans
from accord.server.refusals import FAILED, NOT_NOW

SIGNED_IN = Caller


# ---- who ---------------------------------------------------------------------------------------------------


def test_no_route_answers_without_a_token_or_with_one_that_is_over(fresh):
    made, _, url = fresh
    described = Caller(url).get("/openapi.json")["paths"]
    short, text = tokens.add(
        made.office.ledger.books, "eve", ANALYST, {"people": Grant(1_000, "month")}, 1, SIGNED
    )
    tokens.revoke(made.office.ledger.books, short.id, SIGNED)
    routes = [(method.upper(), path) for path, each in described.items() for method in each]
    assert len(routes) > 18
    for caller in (Caller(url), Caller(url, text)):
        seen = set()
        for method, path in routes:
            path = path.format(table="people", number="0" * 32)
            status, document, _ = caller(method, path, headers={"Idempotency-Key": "k"})
            seen.add((status, document["error"]["type"]))
        assert seen <= {(401, "SignInError"), (429, "ThrottledError")} and (401, "SignInError") in seen


def test_roles_do_what_they_may_and_nothing_else(served):
    _, callers, _ = served
    number, why = "0" * 32, {"purpose": "x"}
    decision = {"approved": True, **why}
    allowed = {
        ("GET", "/api/head", None): {"olive", "omar"},
        ("GET", "/api/tokens", None): {"olive", "omar"},
        ("POST", "/api/tokens/zzz/revoke", json.dumps(why)): {"olive", "omar"},
        ("POST", "/api/person", json.dumps({"id": "p1", **why})): {"olive"},
        ("POST", "/api/withdraw", json.dumps({"ids": ["nobody"], **why})): {"olive"},
        ("POST", f"/api/requests/{number}/decision", json.dumps(decision)): set(),
        ("POST", f"/api/requests/{number}/cancel", None): set(),
        ("POST", "/api/tables/people/release", json.dumps({**MEAN, "share": 0.5})): {"ada"},
        ("GET", "/api/history?kind=person", None): {"olive", "omar"},
    }
    for (method, path, body), names in allowed.items():
        for name in ("ada", "olive", "omar"):
            raw = None if body is None else body.encode()
            status = callers[name](method, path, headers={"Idempotency-Key": f"{name} {path}"}, raw=raw)[0]
            assert (status != 404) == (name in names), (name, path, status)


def test_another_analysts_request_is_not_there_whatever_is_done_with_it(served):
    _, callers, _ = served
    waiting = callers["ada"].ask(MEAN, 0.9, key="mine")[1]["id"]
    for method, path in (
        ("GET", f"/api/requests/{waiting}"),
        ("GET", f"/api/requests/{waiting}?wait=0"),
        ("POST", f"/api/requests/{waiting}/cancel"),
    ):
        assert callers["bob"](method, path)[:2] == callers["bob"](method, "/api/nothing")[:2]
    assert callers["bob"].get("/api/requests?state=waiting")["requests"] == []
    assert callers["ada"].get(f"/api/requests/{waiting}")["state"] == "waiting"
    # the same key of somebody else is another request, and tells nothing of the first
    assert callers["bob"].ask(MEAN, 0.9, key="mine")[1]["id"] != waiting
    for each in callers["bob"].get("/api/requests?state=waiting")["requests"]:
        assert callers["bob"]("POST", f"/api/requests/{each['id']}/cancel")[1]["state"] == "cancelled"


def test_nobody_decides_about_a_request_of_their_own(fresh):
    made, callers, url = fresh
    both = Caller(url, tokens.add(made.office.ledger.books, "ada", OFFICER, {}, 9, SIGNED)[1])
    waiting = callers["ada"].ask(MEAN, 0.9)[1]["id"]
    status, refused, _ = both(
        "POST", f"/api/requests/{waiting}/decision", {"approved": True, "purpose": "mine"}
    )
    assert status == 422 and "nobody decides about a request of their own" in refused["error"]["message"]
    assert callers["ada"].get(f"/api/requests/{waiting}")["state"] == "waiting"


def test_a_grant_that_was_taken_back_stops_what_is_queued(fresh):
    made, callers, _ = fresh
    waiting = callers["ada"].ask(MEAN, 0.9)[1]["id"]
    tokens.revoke(made.office.ledger.books, made.tokens["ada"].split("_")[1], SIGNED)
    path = f"/api/requests/{waiting}"
    assert callers["olive"]("POST", f"{path}/decision", {"approved": True, "purpose": "late"})[0] == 200
    refused = callers["olive"].settled(waiting)
    assert (
        refused["state"] == "refused"
        and "may not ask about the table any more" in refused["error"]["message"]
    )
    assert made.office.ledger.history() == []


def test_tokens_are_compared_in_a_time_that_tells_nothing(served, monkeypatch):
    made, _, _ = served
    compared = []

    def noted(a, b):
        compared.append((len(a), len(b)))
        return hmac.compare_digest(a, b)

    monkeypatch.setattr(tokens, "hmac", type("Noted", (), {"compare_digest": staticmethod(noted)}))
    right = made.tokens["ada"]
    known = made.office.tokens
    for text in (right, right[:-1], right[:-40], "accord_00000000_x", "", "x" * 10_000):
        known.of(text)
    assert compared == [(64, 64)] * 6  # hashes of one length, whether there is such a token or not


def test_failing_closes_one_token_at_one_address_and_for_a_while():
    now = [0.0]
    throttle = guard.Throttle(lambda: now[0])
    for _ in range(guard.FAILURES):
        assert not throttle.is_closed("a")
        throttle.failed("a")
    assert throttle.is_closed("a") and not throttle.is_closed("b")
    now[0] = guard.WINDOW - 1
    assert throttle.is_closed("a")
    now[0] = guard.WINDOW + 1
    assert not throttle.is_closed("a")
    for k in range(20_000):
        throttle.failed(f"{k}")
    assert throttle.size <= guard.MOST_ADDRESSES


# ---- what can be seen by the side ---------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch):
    """Set, once the values of a release are read and its noise is drawn."""
    releasing, done = sys.modules["accord.release.release"], Event()
    carry_out = releasing.carry_out

    def noted(*args, **more):
        answer = carry_out(*args, **more)
        done.set()
        return answer

    monkeypatch.setattr(releasing, "carry_out", noted)
    return done


def test_nothing_is_booked_that_was_read_before_its_slot_ends(fresh, monkeypatch, read):
    """Else the numbers of entries, which everybody's receipts and histories have, would tell how long it took."""
    made, callers, _ = fresh
    monkeypatch.setattr(scans, "end_of", lambda length, elapsed: 1e6)  # until the service stops
    number = callers["ada"].ask(MEAN, 0.1)[1]["id"]
    assert read.wait(60)
    callers["bob"].ask(COUNT, 0.1)
    while len(events := made.office.ledger.history()) < 2:  # both are charged
        pass
    assert [(event["actor"], event["state"]) for event in events] == [
        ("ada", "no answer"),
        ("bob", "no answer"),
    ]
    assert events[1]["entry"] == events[0]["entry"] + 1
    assert requests.find(made.office.ledger.books, number).state == requests.CHARGED


def test_nothing_tells_that_an_answer_is_there_before_its_slot_ends(fresh, monkeypatch, read):
    _, callers, _ = fresh
    monkeypatch.setattr(scans, "end_of", lambda length, elapsed: 1e6)  # until the service stops
    number = callers["ada"].ask(MEAN, 0.1)[1]["id"]
    assert read.wait(60)
    ada = callers["ada"]
    assert ada.get(f"/api/requests/{number}")["state"] == "running"
    assert ada.ask(MEAN, 0.1, key="again")[0] == 202
    assert [each["state"] for each in ada.get("/api/requests")["requests"]].count("running") >= 1
    assert ada.get("/api/requests?state=done")["requests"] == []
    assert number in [each["id"] for each in ada.get("/api/requests?state=running")["requests"]]
    (event,) = ada.get("/api/history?kind=release")["history"]
    assert (event["state"], event["receipts"]) == ("running", [])
    assert ada("POST", f"/api/requests/{number}/cancel")[1]["state"] == "running"
    assert "value" not in json.dumps([ada.get("/api/history")["history"], ada.get("/api/requests")])


def test_times_of_answers_are_from_before_values_were_read(served, monkeypatch):
    _, callers, _ = served
    releasing = sys.modules["accord.release.release"]
    carry_out, started = releasing.carry_out, []

    def noted(*args, **more):
        started.append(datetime.now(UTC))
        return carry_out(*args, **more)

    monkeypatch.setattr(releasing, "carry_out", noted)
    questions = {"questions": [MEAN["question"], MEAN["question"], COUNT["question"]]}
    done = callers["ada"].answer(questions, 0.05, fresh=True)
    times = [receipt["time"] for receipt in done["answer"]["receipt"]["receipts"]]
    # a microsecond for each draw, from the moment at which people were charged
    moments = [datetime.fromisoformat(time) for time in times]
    assert len(set(moments)) == 3 and max(moments) - min(moments) == timedelta(microseconds=2)
    assert datetime.fromisoformat(done["time"]) <= min(moments) <= started[0]
    assert [each["time"] for each in done["answer"]["released"]] == times
    booked = callers["olive"].get("/api/history?actor=ada")["history"][-1]
    assert [receipt["time"] for receipt in booked["receipts"]] == times


def test_a_fault_that_nobody_thought_of_is_logged_by_its_kind(served, monkeypatch, caplog, capfd):
    made, callers, _ = served

    def broken(*args):
        raise ZeroDivisionError(f"{MARKER} {SECRET}")

    monkeypatch.setattr(made.office, "spec", broken)
    with caplog.at_level(logging.DEBUG):
        status, document, headers = callers["ada"]("GET", "/api/tables/people/spec")
        while "ZeroDivisionError" not in caplog.text:  # after the answer is sent
            pass
    assert status == 500 and document["error"]["type"] == "FailedError"
    assert headers["X-Content-Type-Options"] == "nosniff"
    everything = caplog.text + "".join(capfd.readouterr()) + json.dumps(document)
    assert "ZeroDivisionError" in caplog.text and MARKER not in everything and str(SECRET) not in everything
    assert "Traceback" not in everything


def test_whatever_an_engine_raises_ends_in_the_same_words_and_lanes_go_on(fresh, monkeypatch, caplog):
    _, callers, _ = fresh
    releasing = sys.modules["accord.release.release"]

    class Panic(BaseException):
        """As libraries raise that are written in Rust."""

    for k, fault in enumerate((KeyboardInterrupt(MARKER), Panic(MARKER), SystemExit(MARKER))):

        def broken(*args, _fault=fault, **more):
            raise _fault

        monkeypatch.setattr(releasing, "carry_out", broken)
        failed = callers["ada"].answer(MEAN, 0.01, key=f"{k}")
        assert (failed["state"], failed["error"]["message"]) == ("failed", FAILED)
    monkeypatch.undo()
    assert callers["ada"].answer(MEAN, 0.01, fresh=True)["state"] == "done"
    assert MARKER not in caplog.text


def test_a_scan_that_takes_too_long_has_failed(tmp_path, monkeypatch):
    made = make_office(tmp_path)
    releasing = sys.modules["accord.release.release"]
    carry_out = releasing.carry_out
    from accord.engines import engine

    def late(*args, **more):
        monkeypatch.setattr(engine, "monotonic", lambda: 1e12)
        try:
            return carry_out(*args, **more)
        finally:
            monkeypatch.undo()

    with serving(made.office) as url:
        ada = Caller(url, made.tokens["ada"])
        assert ada.answer(COUNT, 0.01)["state"] == "done"
        monkeypatch.setattr(releasing, "carry_out", late)
        failed = ada.answer(MEAN, 0.01)
        assert (failed["state"], failed["error"]["message"]) == ("failed", FAILED)
        assert ada.answer(MEAN, 0.01, fresh=True)["state"] == "done"


def test_a_request_that_could_not_be_noted_has_failed_all_the_same(fresh, monkeypatch):
    made, callers, _ = fresh
    releasing = sys.modules["accord.release.release"]

    def broken(*args, **more):
        raise MemoryError

    def unable(*args, **more):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(releasing, "carry_out", broken)
    monkeypatch.setattr(requests, "finish", unable)
    failed = callers["ada"].answer(MEAN, 0.1)
    assert (failed["state"], failed["error"]["message"]) == ("failed", FAILED)
    assert requests.find(made.office.ledger.books, failed["id"]).state == "charged"


def test_what_is_wrong_with_a_ledger_names_no_place(served, monkeypatch):
    made, callers, _ = served
    for text, told in (
        (f"the ledger {made.office.ledger.label} has no key in {made.folder}/accord.db.key.", NOT_NOW),
        (f"the ledger {made.office.ledger.label} is damaged: entry 3 is not what was written.", NOT_NOW),
        ("another process has held it for 60 seconds.", "another process has held it for 60 seconds."),
    ):

        def broken(*args, _text=text):
            raise LedgerError(_text)

        monkeypatch.setattr(made.office, "remaining", broken)
        status, document, _ = callers["ada"]("GET", "/api/tables/people/remaining")
        assert (status, document["error"]["message"]) == (409, told)


def test_what_is_booked_is_a_line_and_may_be_required(fresh):
    made, callers, _ = fresh
    status, document = callers["ada"].ask(MEAN, 0.1, purpose="x" * 501)
    assert status == 409 and "at most 500 printable characters" in document["error"]["message"]
    made.office.ledger.require("purpose", actor="omar", purpose="the law")
    status, document = callers["ada"].ask(MEAN, 0.1)
    assert status == 409 and "purpose" in document["error"]["message"]
    assert callers["ada"].answer(MEAN, 0.1, purpose="for the report")["state"] == "done"


def test_no_path_stands_in_what_analysts_see(tmp_path):
    description = DESCRIPTION.replace("bounds = [0, 60]", 'bounds = [0, 60]\nmissing = "none"\nstd = 9')
    made = make_office(tmp_path, description)
    with serving(made.office) as url:
        ada = Caller(url, made.tokens["ada"])
        done = ada.answer(MEAN, 0.1)
        plan = ada("POST", "/api/tables/people/plan", {**MEAN, "share": 0.1})[1]
        seen = json.dumps(
            [done, plan, ada.get("/api/tables"), ada.get("/api/history"), ada.get("/openapi.json")]
        )
        assert "accord.toml declares" in seen and str(tmp_path) not in seen and "people.csv" not in seen


# ---- what is said -------------------------------------------------------------------------------------------


def test_how_long_is_waited_for_is_a_number(served):
    _, callers, _ = served
    done = callers["ada"].answer(MEAN)
    for wait in ("nan", "inf", "-1", "x", "1e999"):
        assert callers["ada"]("GET", f"/api/requests/{done['id']}?wait={wait}")[0] == 422, wait
    assert callers["ada"]("GET", f"/api/requests/{done['id']}?wait=1e9")[0] == 200


def test_more_than_so_many_of_a_token_are_not_waited_for(served, monkeypatch):
    from accord.server import api

    _, callers, _ = served
    waiting = callers["ada"].ask(MEAN, 0.9, key="waited for")[1]
    monkeypatch.setattr(api, "MOST_WAITS", 0)
    monkeypatch.setattr(api, "LONGEST_WAIT", 1e9)  # or this would take as long
    assert callers["ada"].get(f"/api/requests/{waiting['id']}?wait=1e9")["state"] == "waiting"
    assert callers["ada"]("POST", f"/api/requests/{waiting['id']}/cancel")[1]["state"] == "cancelled"


def test_injections_are_names_that_nobody_has(served):
    made, callers, _ = served
    hostile = [
        "../accord.toml",
        "'; DROP TABLE accord_entry; --",
        "{{7*7}}",
        "${7*7}",
        "<script>",
        "%00",
        "*",
        "a" * 5_000,
    ]
    told = []
    for text in hostile:
        question = {"statistic": "mean", "column": text, "bounds": [0, 1]}
        for body in (
            {"question": question},
            {"question": {"statistic": "count", "where": text}},
            {"question": {"statistic": "count", "by": text, "keys": [text]}},
            {"sql": {"text": f"SELECT AVG({text}) FROM people"}},
            {"sql": {"text": f"SELECT COUNT(*) FROM read_csv('{text}')"}},
            {**MEAN, "mechanism": text},
            {**MEAN, "t": text},
            {text: 1},
        ):
            status, document, _ = callers["ada"]("POST", "/api/tables/people/plan", body)
            assert status == 422, body
            told.append(document["error"]["message"])
        for path in (f"/api/tables/{text}/spec", f"/api/requests/{text}", f"/api/history?table={text}"):
            from urllib.parse import quote

            status, document, _ = callers["ada"]("GET", quote(path, safe="/?="))
            assert status in (200, 404), path
    everything = " ".join(told)
    assert "49" not in everything and str(made.folder) not in everything and MARKER not in everything
    assert made.office.ledger.verify().problems == ()


def test_headers_cannot_be_split_or_doubled(served):
    _, _, url = served
    host, port = url.removeprefix("http://").split(":")
    for head, begins in (
        (f"GET /api/me HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n", (b"HTTP/1.1 400", b"HTTP/1.1 421")),
        ("GET /api/me HTTP/1.1\r\n\r\n", (b"HTTP/1.1 400",)),
        (f"GET /api/me HTTP/1.0\r\nHost: {host}@evil.example\r\n\r\n", (b"HTTP/1.1 421",)),
        (f"GET http://evil.example/api/me HTTP/1.1\r\nHost: {host}\r\n\r\n", (b"HTTP/1.1 401", b"HTTP/1.1 404")),
        (f"GET /api/me HTTP/1.1\r\nHost: {host}\r\nX-Long: {'x' * 70_000}\r\n\r\n", (b"HTTP/1.1 400", b"HTTP/1.1 431")),
        (f"POST /api/person HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n", (b"HTTP/1.1 400",)),
        (f"POST /api/person HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (b"HTTP/1.1 400", b"HTTP/1.1 401")),
        ("\x16\x03\x01 this is TLS\r\n\r\n", (b"HTTP/1.1 400",)),
    ):  # fmt: skip
        with closing(socket.create_connection((host, int(port)), timeout=60)) as connection:
            connection.sendall(head.encode("latin-1"))
            answer = connection.recv(4_096)
            assert answer.startswith(begins), (head[:80], answer[:200])
            assert b"evil" not in answer


def test_heads_that_do_not_end_are_not_waited_for(served, monkeypatch):
    _, _, url = served
    monkeypatch.setattr(guard, "PATIENCE", 0.2)
    host, port = url.removeprefix("http://").split(":")
    for beginning in (b"", b"GET /api/me HTTP/1.1\r\nHost: "):
        with closing(socket.create_connection((host, int(port)), timeout=60)) as connection:
            connection.sendall(beginning)
            assert connection.recv(4_096) == b""


def test_a_forwarded_address_is_believed_of_this_machine_alone(served):
    """What somebody elsewhere says of their own address does not open a throttle: uvicorn is told so, whatever the environment says."""
    from accord.server.listening import configuration

    config = configuration(None, "127.0.0.1")
    assert config.forwarded_allow_ips == "127.0.0.1" and config.ws_protocol_class is None


# ---- how much -----------------------------------------------------------------------------------------------


def test_the_queue_is_full_for_all_and_429_says_so(tmp_path):
    made = make_office(tmp_path)
    blocked = Event()
    office = made.office
    real = office.scans
    office.scans = scans.Scans(lambda request, lane, end_slot: blocked.wait(), lambda name: 0)
    with serving(office) as url:
        callers = {name: Caller(url, made.tokens[name]) for name in ("ada", "bob")}
        asked = [callers[name].ask(COUNT, 0.01, key=f"{k}", fresh=True) for k in range(4) for name in callers]
        statuses = [status for status, _ in asked]
        # three of each may wait, and five of all; lanes hold two that still count as queued
        assert statuses.count(202) == 5 and set(statuses) == {202, 429}
        refused = [document["error"] for status, document in asked if status == 429]
        assert {error["type"] for error in refused} == {"QueueFullError"}
        assert any("5 requests are waiting" in error["message"] for error in refused)
        headers = callers["ada"](
            "POST", "/api/tables/people/release", {**COUNT, "share": 0.01}, {"Idempotency-Key": "x"}
        )[2]
        assert headers["Retry-After"] == "5"
        blocked.set()
    real.close()


def test_so_many_plans_of_one_token_are_made_at_once(tmp_path, monkeypatch):
    from threading import Thread

    from accord.server import office as offices

    made = make_office(tmp_path)
    go_on, started, desk = Event(), [], made.office.desks["people"]
    plan = desk.plan

    def slow(asked):
        started.append(asked)
        go_on.wait()
        return plan(asked)

    monkeypatch.setattr(desk, "plan", slow)
    with serving(made.office) as url:
        callers = {name: Caller(url, made.tokens[name]) for name in ("ada", "bob")}
        statuses = []
        threads = [
            Thread(
                target=lambda name=name: statuses.append(
                    callers[name]("POST", "/api/tables/people/plan", MEAN)[0]
                )
            )
            for name in ["ada"] * offices.MOST_PLANS + ["bob"]
        ]
        for thread in threads:
            thread.start()
        while len(started) < len(threads):
            pass
        status, refused, _ = callers["ada"]("POST", "/api/tables/people/plan", MEAN)
        assert status == 429 and "4 of your plans are being made" in refused["error"]["message"]
        go_on.set()
        for thread in threads:
            thread.join()
        assert statuses == [200] * len(threads)
        assert callers["ada"]("POST", "/api/tables/people/plan", MEAN)[0] == 200


def test_an_analyst_makes_so_many_requests_a_day(fresh, monkeypatch):
    _, callers, _ = fresh
    monkeypatch.setattr(requests, "MOST_A_DAY", 3)
    for k in range(3):
        number = callers["ada"].ask(MEAN, 0.9, key=f"{k}")[1]["id"]
        assert callers["ada"]("POST", f"/api/requests/{number}/cancel")[1]["state"] == "cancelled"
    status, refused = callers["ada"].ask(MEAN, 0.9, key="3")
    assert status == 429 and "you have made 3 requests today" in refused["error"]["message"]
    assert callers["bob"].ask(MEAN, 0.9, key="3")[0] == 202


# ---- garbage ------------------------------------------------------------------------------------------------


PIECES = [
    "{", "}", "[", "]", '"', ":", ",", "null", "NaN", "1e999", "-0", "\\ud800", "question", "questions", "sql", "statistic",
    "mean", "where", "1=1", "column", "secret", "note", "id", "\x00", "9" * 30, "share", "0.1", "keys", "by", "ward", "tier",
    "people", "hidden", "..", "/", "%", "é", "'", "--", "SELECT", "COUNT(*)", "FROM", "GROUP BY", "bounds", "expected",
]  # fmt: skip


def garbage(rng):
    """A request of somebody who means no good: (method, path, headers, body)."""
    from urllib.parse import quote

    def text(most=8):
        return "".join(rng.choices(PIECES, k=rng.randrange(1, most)))

    def value(depth=0):
        kind = rng.randrange(8 if depth < 4 else 5)
        simple = (
            text(),
            rng.choice([0, -1, 0.1, 1e308, 2**70, True, None]),
            rng.choice(PIECES),
            "stay",
            "ward",
        )
        if kind < 5:
            return simple[kind]
        if kind == 5:
            return [value(depth + 1) for _ in range(rng.randrange(4))]
        return {rng.choice(PIECES): value(depth + 1) for _ in range(rng.randrange(4))}

    shaped = {
        "question": {
            rng.choice(
                ["statistic", "column", "where", "bounds", "by", "keys", "step", "p", "gap", "missing"]
            ): value()
            for _ in range(rng.randrange(1, 6))
        }
        | {
            "statistic": rng.choice(
                ["mean", "histogram", "median", "top", "rows", "count", "crosstab", "regression", text()]
            )
        }
    }
    select = {"sql": {"text": f"SELECT {text(20)} FROM people {text(20)}", rng.choice(PIECES): value()}}
    body = rng.choice(
        [shaped, select, value(), {**shaped, rng.choice(PIECES): value()}, {"id": value(), "purpose": text()}]
    )
    raw = json.dumps(body).encode() if rng.random() < 0.8 else text(30).encode("utf-8", "replace")
    place = quote(text(), safe="/")
    path = rng.choice([
        "/api/tables/people/plan", "/api/tables/people/plan", "/api/tables/people/release", "/api/person", "/api/withdraw",
        f"/api/requests/{place}", f"/api/tables/{place}/spec", f"/api/history?kind={place}&since={place}", f"/{place}",
        f"/api/requests?state={place}", "/api/description/agree", f"/api/tokens/{place}/revoke", "/api/tables/people/remaining",
    ])  # fmt: skip
    headers = {
        "Idempotency-Key": quote(text(4))[:100] or "k",
        "Content-Type": rng.choice(["application/json", "text/plain", "x"]),
    }
    return rng.choice(["POST", "POST", "POST", "GET", "PUT", "DELETE", "PATCH"]), path, headers, raw


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_garbage_is_never_a_500_and_tells_nothing(served, count):
    made, callers, _ = served
    rng = random.Random(count)
    statuses = []
    for _ in range(count):
        method, path, headers, raw = garbage(rng)
        caller = callers[rng.choice(["ada", "bob", "olive"])]
        status, document, given = caller(method, path, headers=headers, raw=raw if method != "GET" else None)
        statuses.append(status)
        assert status < 500, (method, path, raw)
        told = json.dumps(document) + str(given)
        for secret in (MARKER, str(SECRET), str(made.folder), "Traceback", "people.csv", "accord.db"):
            assert secret not in told, (method, path, raw, document)
    assert {404, 405, 422} <= set(statuses)
    assert made.office.ledger.verify().problems == ()
