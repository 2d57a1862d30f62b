"""How fast the service is: 50 analysts at once over a million people, on loopback. `python bench/service.py`

Plans are of other questions each, so that none is known already. A release's time is told as a multiple of its place in the queue times one scan, which is
measured first, alone, in a process that holds the table. Figures of docs/service.md.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import accord
from accord.ledger import tokens
from accord.ledger.signing import Signature
from accord.ledger.tokens import ANALYST, Grant

PEOPLE, ANALYSTS, PLANS, RELEASES = 1_000_000, 50, 10, 2
SIGNED = Signature("bench", "a measurement")
DESCRIPTION = """\
schema = 1
ledger = "accord.db"
[service]
queue = 200
[tables.people]
source = "people.parquet"
user = "id"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1, public = inf }
[tables.people.columns.stay]
bounds = [0, 60]
"""


def write(folder):
    rng = np.random.default_rng(0)
    tiers = np.array(["strict", "standard", "public"])[rng.integers(0, 3, PEOPLE)]
    columns = {
        "id": np.arange(PEOPLE),
        "stay": rng.gamma(2.0, 5.0, PEOPLE),
        "age": rng.integers(0, 100, PEOPLE),
        "tier": tiers,
    }
    pq.write_table(pa.table(columns), folder / "people.parquet")
    (folder / "accord.toml").write_text(DESCRIPTION)


def call(url, token, method, path, body=None, key=None):
    """(status, document, seconds)"""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}"} | ({} if key is None else {"Idempotency-Key": key})
    started = time.perf_counter()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url + path, data, headers, method=method), timeout=300
        ) as response:
            status, content = response.status, response.read()
    except urllib.error.HTTPError as fault:
        status, content = fault.code, fault.read()
    return status, json.loads(content), time.perf_counter() - started


def question(k):
    return {
        "question": {"statistic": "mean", "column": "stay", "where": f"age >= {k % 90} AND stay < {20 + k}"},
        "share": 0.0001,
        "fresh": True,
    }


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        ledger = accord.Ledger(folder / "accord.db")
        people = accord.catalog(folder / "accord.toml")["people"]
        ledger.register(people, "people", actor="bench", purpose="a measurement")
        texts = [
            tokens.add(ledger.books, f"analyst {k}", ANALYST, {"people": Grant(10**8, "year")}, 9, SIGNED)[1]
            for k in range(ANALYSTS)
        ]
        scans = []
        for k in range(5):
            query = accord.mean("stay", where=f"age >= {k} AND stay < {20 + k}")
            started = time.perf_counter()
            people.release(
                query, share=0.0001, ledger=ledger, fresh=True, actor="bench", purpose="a measurement"
            )
            scans.append(time.perf_counter() - started)
        scan = float(np.median(scans[1:]))
        command = [
            sys.executable,
            "-m",
            "accord",
            "serve",
            "accord.toml",
            "--port",
            "0",
            "--actor",
            "bench",
            "--why",
            "a measurement",
        ]
        server = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        url = server.stdout.readline().split()[-1]
        try:
            call(url, texts[0], "GET", "/api/tables/people/spec")  # opens the table
            measure(url, texts, scan)
        finally:
            server.terminate()
            server.wait()
        verdict = ledger.verify()
        print(f"ledger: {verdict.entries} entries, problems: {list(verdict.problems)}, open: {verdict.open}")


def measure(url, texts, scan):
    plans, releases, statuses = [], [], []

    def ask(number, text):
        for k in range(PLANS):
            status, _, seconds = call(
                url, text, "POST", "/api/tables/people/plan", question(number * PLANS + k)
            )
            statuses.append(status)
            plans.append(seconds)
        for k in range(RELEASES):
            started = time.perf_counter()
            status, document, _ = call(
                url, text, "POST", "/api/tables/people/release", question(number * PLANS + k), f"{k}"
            )
            statuses.append(status)
            place = (document.get("before") or 0) + 1
            while status == 202 and document["state"] in ("queued", "running", "charged"):
                document = call(url, text, "GET", f"/api/requests/{document['id']}?wait=30")[1]
            releases.append((place, time.perf_counter() - started, document.get("state")))

    threads = [threading.Thread(target=ask, args=(k, text)) for k, text in enumerate(texts)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    print(
        f"{PEOPLE:,} people, {len(texts)} analysts at once; a scan alone: {scan * 1000:.0f} ms; all of it: {seconds:.1f} s"
    )
    print(
        f"statuses: { {status: statuses.count(status) for status in sorted(set(statuses))} }, states: { {state for _, _, state in releases} }"
    )
    print("plans:    " + ", ".join(f"p{q} {np.percentile(plans, q) * 1000:.0f} ms" for q in (50, 90, 99)))
    ratios = [elapsed / (place * scan) for place, elapsed, _ in releases]
    print(
        "releases, as multiples of place × scan: "
        + ", ".join(f"p{q} {np.percentile(ratios, q):.2f}" for q in (50, 90, 99))
    )
    print(
        f"releases: the last after {max(elapsed for _, elapsed, _ in releases):.1f} s, at place {max(place for place, _, _ in releases)}"
    )


if __name__ == "__main__":
    main()
