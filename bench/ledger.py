"""How much a ledger costs: registering people, charging a release, and whether the past slows it down.

    python bench/ledger.py                       10 million people, 1,000 levels
    python bench/ledger.py --people 1000000 --url postgresql://…  (with ACCORD_LEDGER_KEY)

Charging must not depend on the number of people: the same is shown for a thousand of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from run import timed

import accord
from accord.ledger import charging

QUERY = accord.mean("x", bounds=(0, 100), missing="none")


def people(count: int, levels: int, first: int = 0) -> accord.Table:
    ids = np.arange(first, first + count)
    return accord.table({"id": ids, "x": ids % 101, "e": (1 + ids % levels) / levels}, epsilon="e", user="id")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument("--levels", type=int, default=1_000)
    parser.add_argument("--past", type=int, default=2_000, help="how many releases the past has")
    parser.add_argument("--url", help="a PostgreSQL database [default: SQLite in a temporary folder]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or str(Path(folder) / "accord.db")
        ledger = accord.Ledger(url)
        many, few = (
            people(options.people, options.levels),
            people(options.levels, options.levels, first=options.people),
        )
        many.spec()
        rows: list[tuple[str, float, str]] = []

        def measure(name: str, task: Callable[[], object], aim: str = "", rounds: int = 1) -> None:
            rows.append((name, timed(task, rounds), aim))
            print(f"{name} …", file=sys.stderr)

        measure(f"register {options.people:,} people", lambda: ledger.register(many, "many"), "60 s")
        measure(
            "tell whether they are still the same (in memory, so each time anew)",
            lambda: many.identity.fingerprint(ledger.books.secret),
        )
        ledger.register(few, "few")
        share = 0.9 / (options.past + 100)
        tables = {"many": many, "few": few}
        plans = {name: table.plan(QUERY, "threshold", share=1e-5) for name, table in tables.items()}
        fingerprints = {
            name: table.identity.fingerprint(ledger.books.secret) for name, table in tables.items()
        }

        def charge(name: str) -> None:
            """Reserve and book, without recognising the table again."""
            table = tables[name]
            table.identity.fingerprint = lambda secret: fingerprints[name]  # type: ignore[method-assign]
            charging.settle(ledger.books, charging.reserve(ledger.books, table, plans[name]), [])

        measure(
            f"charge {options.people:,} people in {options.levels:,} cohorts",
            lambda: charge("many"),
            "50 ms",
            20,
        )
        measure(f"charge {options.levels:,} people in as many cohorts", lambda: charge("few"), "", 20)
        small = people(10, 10, first=2 * options.people + options.levels)
        ledger.register(small, "small")
        for _ in range(options.past):
            small.release(QUERY, "minimum", share=share, ledger=ledger)
        measure(
            f"charge {options.people:,} people after {options.past:,} more releases",
            lambda: charge("many"),
            "50 ms",
            20,
        )
        measure("verify all of it", ledger.verify)
        other = people(options.people, options.levels, first=options.people // 2)
        measure(
            f"register {options.people:,} people, half of them known",
            lambda: ledger.register(other, "other"),
            "60 s",
        )
        measure(
            "release from what is left, matched person by person",
            lambda: other.release(accord.plan(ledger.remaining(other), QUERY, share=0.5), ledger=ledger),
        )
        for name, seconds, aim in rows:
            duration = f"{seconds:8.2f} s " if seconds >= 0.5 else f"{seconds * 1e3:8.1f} ms"
            print(f"{name:75} {duration}   {f'aim {aim}' if aim else ''}")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        label = "peak memory, two tables of that size included"
        print(f"{label:75} {memory:8.0f} MB   aim 2048 MB   ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
