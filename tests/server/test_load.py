"""Many analysts at once, and a service that is killed: the books are right, and nobody is charged twice. bench/service.py has the times."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from http.client import HTTPException
from threading import Event, Thread

import pytest
from serving import DESCRIPTION, SIGNED, Caller, asked, check_books, make_office, serving

import accord
from accord.ledger import requests, tokens
from accord.ledger.tokens import ANALYST, Grant

ROOMY = DESCRIPTION.replace("queue = 5\nqueue_each = 3", "queue = 1000\nqueue_each = 1000")


def add_analysts(ledger, count):
    """Their tokens."""
    grants = {"people": Grant(10**9, "month")}
    return [tokens.add(ledger.books, f"analyst {k}", ANALYST, grants, 30, SIGNED)[1] for k in range(count)]


def question(k):
    return {"question": {"statistic": "count", "where": f"stay >= {k % 50}"}, "share": 0.0001, "fresh": True}


@pytest.mark.parametrize("analysts", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_many_analysts_at_once(tmp_path, analysts):
    made = make_office(tmp_path, DESCRIPTION.replace("queue = 5", f"queue = {analysts // 2}"))
    texts, each = add_analysts(made.office.ledger, analysts), 4
    seen = []

    def ask(number, text, url):
        caller = Caller(url, text)
        for k in range(each):
            body = question(number * each + k)
            plan = caller("POST", "/api/tables/people/plan", body)
            seen.append(("plan", plan[0]))
            while True:
                headers = {"Idempotency-Key": f"{k}"}
                status, document, _ = caller("POST", "/api/tables/people/release", body, headers)
                seen.append(("release", status))
                again = caller("POST", "/api/tables/people/release", body, headers)
                if status == 202:
                    assert again[0] == 202 and again[1]["id"] == document["id"]
                    break
                time.sleep(0.05)
            assert caller.settled(document["id"])["state"] == "done"

    with serving(made.office) as url:
        threads = [Thread(target=ask, args=(k, text, url)) for k, text in enumerate(texts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {status for kind, status in seen if kind == "plan"} == {200}
    assert {status for kind, status in seen if kind == "release"} <= {202, 429}
    charged = check_books(made.office.ledger)
    assert len(charged) == analysts * each
    assert {request.state for request in charged} == {requests.DONE}


class Server:
    """`accord serve` in a process of its own, whose log is a file: a pipe that nobody reads would fill."""

    def __init__(self, folder):
        command = [
            sys.executable,
            "-m",
            "accord",
            "serve",
            "accord.toml",
            "--port",
            "0",
            "--actor",
            "op",
            "--why",
            "x",
        ]
        self._log = folder / "serve.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self._process.stdout.readline()
        assert line.startswith("serving at http"), line + self._log.read_text()
        self.url = line.split()[-1]

    def kill(self, number=signal.SIGKILL):
        """What it logged."""
        os.kill(self._process.pid, number)
        self._process.communicate()
        return self._log.read_text()


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_service_that_is_killed_has_charged_nobody_twice(tmp_path, kills):
    made = make_office(tmp_path, ROOMY)
    ledger = made.office.ledger
    texts = add_analysts(ledger, 3)
    rng = random.Random(kills)
    sent = []

    def ask(number, text, server, is_over, few):
        caller = Caller(server.url, text)
        for k in range(few):
            key = f"{len(sent)}-{number}"
            body = question(k)
            sent.append((text, key, body))
            try:
                status = caller("POST", "/api/tables/people/release", body, {"Idempotency-Key": key})[0]
            except (OSError, ValueError, HTTPException):  # it is dead, or died while it answered
                return
            assert status == 202 or is_over.is_set()

    for _ in range(kills):
        server, is_over = Server(tmp_path), Event()
        threads = [Thread(target=ask, args=(k, text, server, is_over, 4)) for k, text in enumerate(texts)]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.0, 0.25))  # whenever: no time of these decides the test
        is_over.set()
        server.kill()
        for thread in threads:
            thread.join()
        check_books(ledger)
    # everything is sent again, under the same keys; what was charged before the last kill stays as it is
    before = {request.id: request.state for request in asked(ledger) if request.state in ("done", "failed")}
    server = Server(tmp_path)
    settled = Counter()
    for text, key, body in sent:
        caller = Caller(server.url, text)
        status, document, _ = caller("POST", "/api/tables/people/release", body, {"Idempotency-Key": key})
        assert status == 202
        settled[caller.settled(document["id"])["state"]] += 1
    told = server.kill(signal.SIGTERM)
    assert "Traceback" not in told
    after = {request.id: request.state for request in asked(ledger)}
    assert {number: after[number] for number in before} == before
    assert set(settled) <= {"done", "failed"} and settled["done"] > 0
    charged = check_books(ledger)
    assert len(charged) == len({sent_key for _, sent_key, _ in sent}) == len(asked(ledger))


def test_a_restart_keeps_everything(tmp_path):
    made = make_office(tmp_path)
    server = Server(tmp_path)
    ada, olive = Caller(server.url, made.tokens["ada"]), Caller(server.url, made.tokens["olive"])
    second = subprocess.run(
        [sys.executable, "-m", "accord", "serve", "--port", "0"], cwd=tmp_path, capture_output=True, text=True
    )
    assert second.returncode == 1 and "another process serves the ledger" in second.stderr
    done = ada.answer(question(7))
    waiting = ada.ask(question(8), 0.9)[1]
    server.kill(signal.SIGTERM)
    server = Server(tmp_path)
    ada, olive = Caller(server.url, made.tokens["ada"]), Caller(server.url, made.tokens["olive"])
    assert ada.get(f"/api/requests/{done['id']}") == done
    assert ada.get(f"/api/requests/{waiting['id']}")["state"] == "waiting"
    approved = olive("POST", f"/api/requests/{waiting['id']}/decision", {"approved": True, "purpose": "fine"})
    assert approved[0] == 200 and ada.settled(waiting["id"])["state"] == "done"
    server.kill(signal.SIGTERM)
    check_books(made.office.ledger)
    assert json.dumps(made.office.ledger.export()).count(made.tokens["ada"].split("_", 2)[2]) == 0
    assert accord.Ledger(tmp_path / "accord.db", create=False).verify().problems == ()
