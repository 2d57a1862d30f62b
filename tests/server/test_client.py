"""accord.connect: a table that a service holds is asked like one's own, and charged once whatever breaks on the way."""

import socket
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
from serving import Caller, make_office, serving

import accord
from accord.errors import (
    ApprovalError,
    BudgetError,
    ChargedError,
    PlanError,
    QueryError,
    ServiceError,
    SourceError,
)
from accord.server.sending import sendable


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = make_office(tmp_path_factory.mktemp("office"), quota=1_000)
    with serving(made.office) as url:
        people = accord.connect(url, made.tokens["ada"])["people"]
        yield made, url, people, accord.catalog(made.folder / "accord.toml")["people"]


STAY = accord.mean("stay")
OWN = accord.mechanism("mine", lambda levels, people: levels[:1].repeat(levels.size))
QUESTIONS = [
    STAY,
    accord.mean("stay", (0, 40), std=np.float64(9.5), where="ward = 'A'"),
    accord.sum("stay", bounds=(0, 30)),
    accord.count("stay >= 20"),
    accord.count(by="ward"),
    accord.count(by="ward", keys=(key for key in "AB"), rest="other"),
    accord.crosstab("ward", "tenths", keys={"ward": ["A"], "tenths": [0.5, 3]}),
    accord.top("ward", 1),
    accord.median("stay", where="stay < 30"),
    accord.quantile("stay", [0.25, 0.5], interval="values"),
    accord.max("stay", step=1),
    accord.histogram("stay", edges=[0, 10, 60]),
    accord.histogram("ward"),
    accord.proportion("stay > 3", gap=0.1),
    accord.regression("stay", ["tenths"], bounds={"tenths": (0, 9)}),
    accord.correlation("stay", "tenths", bounds={"tenths": [0, 9]}),
    accord.rows(max=3),
    accord.min("since", bounds=(date(2020, 1, 1), "2026-01-01")),
    accord.workload([STAY, accord.count(by="ward")], weights=[2, 1]),
    accord.workload([accord.std("stay", (0, 60)), accord.variance("stay", (0, 60))]),
]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A table of many kinds of columns, here and at a service."""
    import pandas as pd

    folder = tmp_path_factory.mktemp("wide")
    frame = pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(40)],
            "stay": [float(k * 7 % 50) for k in range(40)],
            "tenths": [k % 10 for k in range(40)],
            "ward": pd.Series(["AB"[k % 2] for k in range(40)], dtype="string"),
            "since": pd.to_datetime(["2021-03-01", "2024-05-05"] * 20),
            "tier": pd.Series(["strict", "standard"] * 20, dtype="string"),
        }
    )
    frame.to_parquet(folder / "people.parquet")
    (folder / "accord.toml").write_text(
        'schema = 1\nledger = "accord.db"\n[service]\nqueue_each = 100\n[tables.people]\nsource = "people.parquet"\nuser = "id"\n'
        'epsilon = "tier"\ntiers = { strict = 0.5, standard = 4 }\n'
        '[tables.people.columns.stay]\nbounds = [0, 60]\nmissing = "none"\nstd = 20\n'
        '[tables.people.columns.ward]\nkeys = ["A", "B", "C"]\n'
    )
    ledger = accord.Ledger(folder / "accord.db")
    here = accord.catalog(folder / "accord.toml")["people"]
    ledger.register(here, "people")
    here.description = replace(here.description, file="accord.toml")  # a service does not say in which folder
    from serving import SIGNED

    from accord.ledger import tokens
    from accord.ledger.tokens import ANALYST, Grant
    from accord.server.office import Office

    text = tokens.add(ledger.books, "ada", ANALYST, {"people": Grant(10**9, "year")}, 30, SIGNED)[1]
    office = Office(folder / "accord.toml")
    office.agree_first(SIGNED)
    with serving(office) as url:
        yield here, accord.connect(url, text)["people"]


@pytest.mark.parametrize("query", QUESTIONS, ids=lambda query: repr(query)[:60])
def test_a_plan_is_the_same_object_as_of_a_table_here(wide, query):
    here, there = wide
    ours, theirs = (people.plan(query, share=0.2) for people in (here, there))
    assert theirs == ours and theirs.describe() == ours.describe() and str(theirs) == str(ours)


def test_every_question_is_answered_as_here(wide):
    here, there = wide
    for query in QUESTIONS:
        answer = there.release(query, share=0.0001)
        plan = here.plan(query, share=0.0001)
        assert answer.plan == plan and answer.plan.describe() == plan.describe()
        assert answer.booked is not None and len(answer.parts) == len(plan.parts)


def test_the_spec_and_the_columns(served):
    _, _, people, here = served
    assert people.spec() == here.spec() and people.spec().tiers == here.spec().tiers
    assert people.columns == here.columns and people.neighbors == here.neighbors
    assert people.spec().opted_out == 15


def test_a_release_is_the_same_object_as_of_a_table_here(served):
    made, url, people, _ = served
    answer = people.release(STAY, share=0.1, purpose="to see")
    (event,) = [event for event in made.office.ledger.history() if event["purpose"] == "to see"]
    booked = {name: value for name, value in answer.receipt().items() if name != "ledger"}
    assert event["receipts"] == [booked]
    assert answer.booked.entry > event["entry"]
    low, high = answer.interval(0.9)
    assert low <= answer.value <= high and answer.rmse > 0
    assert answer.charges == {0.5: 0.05, 4.0: 0.4, float("inf"): float("inf")} or answer.charges
    assert answer.to_pandas().shape[0] == 1
    again = accord.connect(url, made.tokens["bob"])["people"].release(STAY, share=0.1)
    assert again.value == answer.value and again.repeated is not None
    other = people.release(people.plan(accord.count(by="ward"), share=0.05))
    assert (other["A"] - other["B"]).value == pytest.approx(other.value[0]["value"] - other.value[1]["value"])
    assert (answer - people.release(STAY, share=0.02)).interval()
    assert answer.plot() is not None


def test_several_answers_have_times_of_their_own(served):
    _, _, people, _ = served
    both = people.release(accord.workload([STAY, STAY, accord.count("stay > 5")]), share=0.01)
    assert len({part.time for part in both.parts}) >= 2
    assert [len(each.receipt()["charges"]) for each in both.parts] == [3] * 3


def test_a_select(served):
    _, _, people, _ = served
    answers = people.sql(
        "SELECT ward, AVG(stay) AS days FROM people GROUP BY ward", one_row_each=True, share=0.03
    )
    assert [row["ward"] for row in answers.rows] == ["A", "B"]
    assert answers["days"].receipt()["query"]["statistic"] == "mean"


def test_what_is_left(served):
    made, _, people, here = served
    people.release(accord.count("stay > 40"), share=0.05)
    assert people.remaining() == made.office.ledger.remaining(here)
    plan = people.plan(STAY, share=0.01, remaining=True)
    assert plan == here.plan(STAY, share=0.01, remaining=made.office.ledger)
    assert people.release(plan).plan == plan
    assert people.release(STAY, share=0.01, remaining=True).plan.spec.is_rest


def test_large_requests_wait_for_the_officer(served):
    made, url, people, _ = served
    with pytest.raises(ApprovalError, match=r"waits for the officer.*Nothing is charged.*key='large'"):
        people.release(accord.count("stay > 1"), share=0.3, key="large")
    olive = Caller(url, made.tokens["olive"])
    (waiting,) = olive.get("/api/requests?state=waiting")["requests"]
    olive("POST", f"/api/requests/{waiting['id']}/decision", {"approved": True, "purpose": "fine"})
    assert people.release(accord.count("stay > 1"), share=0.3, key="large").booked is not None
    with pytest.raises(ServiceError, match="this key was used for another request"):
        people.release(accord.count("stay > 1"), share=0.31, key="large")


def test_what_declined_requests_come_to(served):
    made, url, people, _ = served
    with pytest.raises(ApprovalError):
        people.release(STAY, share=0.9, key="declined")
    olive = Caller(url, made.tokens["olive"])
    (waiting,) = olive.get("/api/requests?state=waiting")["requests"]
    olive("POST", f"/api/requests/{waiting['id']}/decision", {"approved": False, "purpose": "too much"})
    with pytest.raises(ServiceError, match=r"declined by the officer\. Nothing was charged"):
        people.release(STAY, share=0.9, key="declined")


def test_charged_and_no_answer_is_an_error_that_says_so(served, monkeypatch):
    made, _, people, _ = served

    def broken(*args, **more):
        raise MemoryError

    monkeypatch.setattr(sys.modules["accord.release.release"], "carry_out", broken)
    for _ in range(2):  # the same request, and charged once
        with pytest.raises(ChargedError, match=r"charged, no answer: people were charged"):
            people.release(accord.count("stay > 2"), share=0.01, key="broken")
    monkeypatch.undo()
    assert [event["state"] for event in made.office.ledger.history()].count("failed") == 1


def test_refusals_are_those_of_a_table_here(served):
    _, _, people, _ = served
    for ask, kind, words in (
        (lambda: people.release(STAY), PlanError, "say how much of everyone's level"),
        (lambda: people.plan(accord.mean("stai")), QueryError, "did you mean 'stay'"),
        (lambda: people.release(accord.mean("stay", (0, 99)), share=0.1), QueryError, "lie within these"),
        (lambda: people.release(STAY, share=0.1, ledger="accord.db"), QueryError, "books in its own ledger"),
        (lambda: people.release(STAY, share=0.1, actor="eve"), QueryError, "under the name of your token"),
        (lambda: people.release("stay", share=0.1), QueryError, "not str"),
        (lambda: people.release(STAY, OWN, share=0.1), PlanError, "answers by mechanisms that it knows, and 'mine' is your own"),
        (lambda: people.plan(STAY, OWN), PlanError, "'mine' is your own"),
        (lambda: people.release(STAY, share=7), PlanError, "share=7 is not a fraction"),
        (lambda: people.release(accord.plan(people.spec(), accord.count()), share=None), PlanError, "not made by"),
        (lambda: people.release(people.plan(STAY), "affine"), PlanError, "has its mechanism and share"),
        (lambda: people.sql("SELECT AVG(stay) FROM p", membership="public", share=0.1), QueryError, "is private"),
        (lambda: people.public("stay", (0, 60)), SourceError, "gives no rows"),
        (lambda: accord.sample(len, people, t=1.0), SourceError, "read where it lies"),
        (lambda: people.release(accord.mean("stay", (Fraction(1, 3), 9)), share=0.1), QueryError, "holds 1/3, which JSON has no"),
        (lambda: people.release(accord.count(by="ward", membership="public"), share=0.1), SourceError, "gives no rows"),
    ):  # fmt: skip
        with pytest.raises(kind, match=words):
            ask()


def test_a_quota_that_is_spent(tmp_path):
    made = make_office(tmp_path, quota=0.1)
    with serving(made.office) as url:
        people = accord.connect(url, made.tokens["ada"])["people"]
        with pytest.raises(BudgetError, match=r"of your 0\.1 a month of this table, 0\.1 is left"):
            people.release(STAY, share=0.11)


def test_who_cannot_be_reached_is_told_kindly(served):
    made, url, _, _ = served
    token = made.tokens["ada"]
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
    for address, given, words in (
        (closed, token, "nobody answers at"),
        ("clinic.example", token, "is not the address of a service"),
        ("ftp://clinic.example", token, "is not the address of a service"),
        ("http://[", token, "is not the address of a service"),
        ("http://clinic.example", token, "without TLS everybody on the way can read the token"),
        (f"http://me:secret@{url[7:]}", token, "holds a name or a password"),
        (url, token[:-1], "does not know this token"),
        (url, "", "this is no token"),
        (url, "a\nb: c", "this is no token"),
        (url + "/nowhere", token, "there is no such thing here"),
    ):
        with pytest.raises(ServiceError, match=words) as refusal:
            accord.connect(address, given)
        assert token not in str(refusal.value)
    with pytest.raises(SourceError, match="no table 'peple' for you: did you mean 'people'"):
        accord.connect(url, token)["peple"]
    connection = accord.connect(url, token)
    assert list(connection) == ["people"] and len(connection) == 1 and "hidden" not in connection
    assert connection.name == "ada" and "ada" in repr(connection)


@contextmanager
def answering(reply):
    """A server that is none of ours."""
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()

        def answer():
            try:
                while True:
                    with listening.accept()[0] as connection:
                        connection.recv(65_536)
                        connection.sendall(reply)
            except OSError:
                return

        Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_who_is_no_service_and_who_points_elsewhere():
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    elsewhere = b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    for reply, words in ((page, "is no accord service"), (elsewhere, "points elsewhere")):
        with answering(reply) as url, pytest.raises(ServiceError, match=words):
            accord.connect(url, "accord_1_2")


@contextmanager
def losing(url, lost):
    """A way to a service on which the answers to these requests (their numbers) are lost after they were made."""
    host, port = url.removeprefix("http://").split(":")
    with closing(socket.socket()) as listening:
        listening.bind((host, 0))
        listening.listen()
        seen = []

        def relay():
            try:
                while True:
                    with (
                        listening.accept()[0] as caller,
                        socket.create_connection((host, int(port))) as service,
                    ):
                        request = b""
                        while b"\r\n\r\n" not in request:
                            request += caller.recv(65_536)
                        head, _, body = request.partition(b"\r\n\r\n")
                        length = next(
                            (
                                int(line.split(b":")[1])
                                for line in head.split(b"\r\n")
                                if line.lower().startswith(b"content-length")
                            ),
                            0,
                        )
                        while len(body) < length:
                            body += caller.recv(65_536)
                        service.sendall(head + b"\r\n\r\n" + body)
                        answer = b""
                        while piece := service.recv(65_536):
                            answer += piece
                        seen.append(head.split(b" ")[0])
                        if not (seen[-1] == b"POST" and seen.count(b"POST") in lost):
                            caller.sendall(answer)
            except OSError:
                return

        Thread(target=relay, daemon=True).start()
        yield f"http://{host}:{listening.getsockname()[1]}", seen
        listening.shutdown(socket.SHUT_RDWR)


def test_a_broken_connection_is_charged_once(served):
    made, url, _, _ = served
    with losing(url, {1, 2}) as (way, seen):
        people = accord.connect(way, made.tokens["ada"])["people"]
        before = len(made.office.ledger.history())
        answer = people.release(accord.count("stay > 17"), share=0.01, fresh=True)
        assert answer.booked is not None and seen.count(b"POST") == 3
    assert len(made.office.ledger.history()) == before + 1


def test_who_has_no_patience(served):
    made, url, _, _ = served
    token = made.tokens["ada"]
    hasty = accord.connect(url, token, patience=0.0)["people"]
    with pytest.raises(ServiceError, match=r"nothing has become of the request yet.*key='hasty'"):
        hasty.release(accord.count("stay > 23"), share=0.01, key="hasty")
    patient = accord.connect(url, token)["people"]
    assert patient.release(accord.count("stay > 23"), share=0.01, key="hasty").booked is not None
    with losing(url, {1}) as (way, _):
        people = accord.connect(way, token, patience=0.0)["people"]
        with pytest.raises(ServiceError, match=r"the connection to .* is broken"):
            people.release(accord.count("stay > 24"), share=0.01)
    busy = (
        b"HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    with answering(busy) as other, pytest.raises(ServiceError, match="is busy"):
        accord.connect(other, token, patience=0.0)
    cut_off = busy.replace(b"Length: 2", b"Length: 20")
    with answering(cut_off) as other, pytest.raises(ServiceError, match="nobody answers at"):
        accord.connect(other, token, patience=0.0)


def test_what_cannot_be_sent(served):
    _, _, people, _ = served
    changed = replace(accord.mean("stay", (0, 60)), std=3.0)  # by no constructor
    with pytest.raises(QueryError, match="mean of stay cannot be sent to a service"):
        people.release(changed, share=0.1)
    with pytest.raises(QueryError, match="keys= holds a bytes, which cannot be sent"):
        sendable({"keys": ["A", b"B"]})
    assert sendable({"a": {"b": (np.int64(3), Fraction(1, 2))}, "c": None}) == {
        "a": {"b": [3, 0.5]},
        "c": None,
    }


def test_a_plan_that_is_stale_when_its_turn_comes_is_not_charged(tmp_path, monkeypatch):
    made = make_office(tmp_path)
    with serving(made.office) as url:
        people = accord.connect(url, made.tokens["ada"])["people"]
        plan = people.plan(STAY, share=0.1)
        other = people.plan(STAY, share=0.2)
        desk = made.office.desks["people"]
        monkeypatch.setattr(desk, "plan_of", lambda table, asked: (other, None))
        monkeypatch.setattr(desk, "plan", lambda asked: (plan, None))  # as it was when it was asked
        with pytest.raises(PlanError, match="has another plan for this now"):
            people.release(plan)
    assert made.office.ledger.history() == []


def test_levels_that_have_changed_since_it_was_opened(tmp_path):
    made = make_office(tmp_path)
    with serving(made.office) as url:
        people = accord.connect(url, made.tokens["ada"])["people"]
        source = tmp_path / "people.csv"
        source.write_text(source.read_text() + "p99,1,A,strict,x,1\n")
        here = accord.catalog(tmp_path / "accord.toml")["people"]
        made.office.ledger.register(here, "people")
        made.office.desks["people"].forget()
        old = people.plan(STAY, share=0.1)
        with pytest.raises(PlanError, match=r"has another plan for this now.*Nothing was charged"):
            people.release(old)
        answer = people.release(STAY, share=0.1)
        assert answer.plan == here.plan(STAY, share=0.1) and people.spec() == here.spec()


def test_connecting_needs_nothing_of_the_web():
    import subprocess

    code = "import accord, sys; accord.connect; print([m for m in ('fastapi', 'uvicorn', 'starlette', 'jinja2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
