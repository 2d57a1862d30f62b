"""An office of the service with a table of its own, for tests: files, ledger, tokens, and a real server on loopback."""

import json
import threading
import urllib.error
import urllib.request
from collections import Counter
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import accord
from accord.budget import MICRO
from accord.ledger import requests, tokens
from accord.ledger.signing import Signature
from accord.ledger.tokens import ANALYST, OFFICER, OWNER, Grant
from accord.server.office import Office

SIGNED = Signature("test", "a test")
MARKER = "zebra-4711"
"""A text of the data that nobody may see."""
SECRET = 54321.0
"""A number of the data that nobody may see."""
DESCRIPTION = """\
schema = 1
ledger = "accord.db"

[service]
approve_above = 0.25
queue = 5
queue_each = 3

[tables.people]
source = "people.csv"
user = "id"
epsilon = "tier"
tiers = { strict = 0.5, standard = 4, public = inf, out = 0 }

[tables.people.columns.stay]
kind = "number"
bounds = [0, 60]

[tables.people.columns.ward]
keys = ["A", "B"]

[tables.hidden]
source = "people.csv"
user = "id"
epsilon = "tier"
tiers = { strict = 0.5, standard = 4, public = inf, out = 0 }
"""
PEOPLE = 60


class Served(NamedTuple):
    """An office and how to get in."""

    folder: Path
    office: Office
    tokens: dict[str, str]


def write_people(path: Path, people: int = PEOPLE) -> None:
    tiers = ("strict", "standard", "public", "out")
    rows = [f"p{k},{(k * 7) % 50},{'AB'[k % 2]},{tiers[k % 4]},{MARKER},{SECRET}" for k in range(people)]
    path.write_text("\n".join(("id,stay,ward,tier,note,secret", *rows)) + "\n")


def make_office(folder: Path, description: str = DESCRIPTION, quota: float = 1) -> Served:
    write_people(folder / "people.csv")
    (folder / "accord.toml").write_text(description)
    ledger = accord.Ledger(folder / "accord.db")
    catalog = accord.catalog(folder / "accord.toml")
    for name in catalog:
        if catalog.ledger_of(name) == catalog.ledger:
            ledger.register(catalog[name], name)
    texts = {}
    grants = {"people": Grant(round(quota * MICRO), "month")}
    for name, role in (("ada", ANALYST), ("bob", ANALYST), ("olive", OFFICER), ("omar", OWNER)):
        given = grants if role == ANALYST else {}
        texts[name] = tokens.add(ledger.books, name, role, given, 30, SIGNED)[1]
    office = Office(folder / "accord.toml")
    office.agree_first(SIGNED)
    return Served(folder, office, texts)


@contextmanager
def serving(office, hosts=(), cert=None, key=None):
    """The address of a real server on loopback."""
    import uvicorn

    from accord.server.app import application
    from accord.server.listening import configuration

    config = configuration(application(office, hosts, cert is not None), cert=cert, key=key, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"{'http' if cert is None else 'https'}://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


class Caller:
    """Somebody who speaks to the service by HTTP."""

    def __init__(self, url, token=None):
        self.url, self.token, self._keys = url, token, count()

    def __call__(self, method, path, body=None, headers=None, raw=None):
        """(status, document or text, headers)."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        if self.token is not None:
            request.add_header("Authorization", f"Bearer {self.token}")
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                status, content, given = response.status, response.read(), response.headers
        except urllib.error.HTTPError as fault:
            status, content, given = fault.code, fault.read(), fault.headers
        text = content.decode()
        return status, json.loads(text) if "json" in given.get("content-type", "") else text, given

    def get(self, path):
        status, document, _ = self("GET", path)
        assert status == 200, document
        return document

    def ask(self, question, share=0.1, key=None, table="people", **more):
        """(status, document) of a release."""
        headers = {"Idempotency-Key": key or f"{id(self)}-{next(self._keys)}"}
        body = {**question, "share": share, **more}
        return self("POST", f"/api/tables/{table}/release", body, headers)[:2]

    def answer(self, question, share=0.1, **more):
        """What has become of a release, once something has."""
        status, document = self.ask(question, share, **more)
        assert status == 202, document
        return self.settled(document["id"])

    def settled(self, number):
        while (document := self.get(f"/api/requests/{number}?wait=30"))["state"] in (
            "queued",
            "running",
            "charged",
        ):
            pass
        return document


MEAN = {"question": {"statistic": "mean", "column": "stay"}}
COUNT = {"question": {"statistic": "count", "where": "stay >= 20"}}


def asked(ledger):
    """All requests, also those of long ago."""
    return requests.listed(ledger.books, most=100_000)


def check_books(ledger):
    """Every charge is of one request, every answer of one charge, and the chain agrees with the accounts."""
    verdict = ledger.verify()
    assert verdict.problems == ()
    entries = {entry.seq: entry for entry in ledger.entries()}
    reserved = [seq for seq, entry in entries.items() if entry.kind == "reserve"]
    released = [entry.outline["reserve"] for entry in entries.values() if entry.kind == "release"]
    charged = [request for request in asked(ledger) if request.entry]
    assert sorted(request.entry for request in charged) == sorted(reserved)
    assert {entries[request.entry].outline["actor"] for request in charged} <= {
        request.actor for request in charged
    }
    for request in charged:
        assert entries[request.entry].outline["actor"] == request.actor
    done = [request for request in charged if request.state == requests.DONE]
    assert sorted(request.entry for request in done) == sorted(released)
    keys = Counter((request.actor, request.key) for request in asked(ledger))
    assert set(keys.values()) <= {1}
    return charged
