"""How long ten thousand groups and a million levels take, step by step, beside DuckDB's own GROUP BY of the same columns.

python bench/many.py                          20,000 people in 10,000 groups; a million people who all have another level
python bench/many.py --keys 1000 --levels 100000
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Callable
from time import perf_counter
from typing import Any

import duckdb
import numpy as np

import accord


def timed(name: str, call: Callable[[], Any]) -> Any:
    start = perf_counter()
    made = call()
    print(f"{name:<44}{perf_counter() - start:>9.2f} s")
    return made


def groups(count: int) -> None:
    """Counts and means by key, with `user=`: plan, release, text and receipt."""
    draw, people = np.random.default_rng(1), 2 * count
    keys = [f"k{j}" for j in range(count)]
    data = {
        "id": np.arange(people),
        "x": draw.uniform(0, 1, people),
        "w": np.array(keys, dtype=object)[draw.integers(0, count, people)],
        "e": draw.choice([0.1, 1.0], people),
    }
    con = duckdb.connect()
    con.register("people", data)
    timed("GROUP BY key (DuckDB)", lambda: con.execute("SELECT w, avg(x) FROM people GROUP BY w").fetchall())
    for query in (
        accord.count(by="w", keys=keys),
        accord.mean("x", bounds=(0, 1), by="w", keys=keys),
    ):
        table, start = accord.table(data, epsilon="e", user="id"), perf_counter()
        plan = timed(f"{query.statistic}: plan", lambda t=table, q=query: t.plan(q, "minimum"))
        made = timed("release", lambda t=table, p=plan: t.release(p))
        timed("text", lambda m=made: str(m))
        timed("receipt", lambda m=made: json.dumps(m.receipt()))
        print(f"{'in all (aim 3)':<44}{perf_counter() - start:>9.2f} s")


def levels(count: int) -> None:
    """A plan for as many levels, as a document and as text."""
    spec = accord.Spec.of(np.arange(1, count + 1) / 1e6)
    plan = timed(f"plan of {count:,} levels (aim 1)", lambda: accord.plan(spec, accord.mean("x", bounds=(0, 1))))
    document = timed("its description", lambda: json.dumps(plan.describe()))
    print(f"{'':<44}{len(document) / 1e3:>9.0f} kB")
    timed("its text", lambda: str(plan))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--levels", type=int, default=1_000_000)
    options = parser.parse_args()
    groups(options.keys)
    levels(options.levels)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
