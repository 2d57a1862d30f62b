"""How long ten thousand groups and a million levels take, next to DuckDB's own GROUP BY; with a ledger, too.

    python bench/many.py                     20,000 people in 10,000 private groups, 100,000 in 1,000 public
                                             ones; a million people who all have another level
    python bench/many.py --keys 1000 --levels 100000
    python bench/many.py --only long         100,000 keys, of which 40,000 people have some
    python bench/many.py --spark             100,000 people in 10,000 private groups, on all cores
    python bench/many.py --postgres 'postgresql://user@host/database?'
                                             the same there, in a table of its own that is dropped again
    python bench/many.py --only ledger --url postgresql://…  (with ACCORD_LEDGER_KEY)

The steps with a ledger run in a process of their own, so that the peak memory is theirs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import duckdb
import numpy as np
from run import fastest

import accord
from accord.engines.spark import java_home


def timed(name: str, call: Callable[[], Any]) -> Any:
    start = perf_counter()
    outcome = call()
    print(f"{name:<44}{perf_counter() - start:>9.2f} s", flush=True)
    return outcome


def people(count: int, keys: list[str]) -> dict[str, Any]:
    """So many people, in groups at random."""
    draw = np.random.default_rng(1)
    return {
        "id": np.arange(count),
        "x": draw.uniform(0, 1, count),
        "w": np.array(keys, dtype=object)[draw.integers(0, len(keys), count)],
        "e": draw.choice([0.1, 1.0], count),
    }


def grouped_queries(keys: list[str], *statistics: str, **options: Any) -> dict[str, Any]:
    """Counts, means and medians by key."""
    numbers = {"bounds": (0, 1), "by": "w", "keys": keys, **options}
    queries = {
        "count": accord.count(by="w", keys=keys, **options),
        "mean": accord.mean("x", **numbers),
        "median": accord.median("x", **numbers),
    }
    return {name: queries[name] for name in statistics}


def steps(source: Any, queries: dict[str, Any], aim: str = "") -> None:
    """Plan, release, text and receipt, with `user=`."""
    for name, query in queries.items():
        table, start = accord.table(source, epsilon="e", user="id"), perf_counter()
        plan = timed(f"{name}: plan", lambda t=table, q=query: t.plan(q, "minimum"))
        release = timed("release", lambda t=table, p=plan: t.release(p))
        timed("text", lambda m=release: str(m))
        timed("receipt", lambda m=release: json.dumps(m.receipt()))
        print(f"{f'in all{aim}':<44}{perf_counter() - start:>9.2f} s")


def groups(count: int) -> None:
    """Private groups of two people each; a tenth as many for medians, and as public groups of a hundred."""
    keys, few = ([f"k{j}" for j in range(size)] for size in (count, max(1, count // 10)))
    data = people(2 * count, keys)
    con = duckdb.connect()
    con.register("people", data)
    timed("GROUP BY key (DuckDB)", lambda: con.execute("SELECT w, avg(x) FROM people GROUP BY w").fetchall())
    print(f"-- {len(keys):,} private groups")
    steps(data, grouped_queries(keys, "count", "mean"), " (aim 3)")
    print(f"-- {len(few):,} private groups")
    steps(people(2 * count, few), grouped_queries(few, "median"), " (aim 3)")
    print(f"-- {len(few):,} public groups")
    steps(people(10 * count, few), grouped_queries(few, "mean", "median", membership="public"))


def long_list(keys: int = 100_000, count: int = 40_000) -> None:
    """Counts by a long list of keys in a file: everything from the file to the receipt."""
    names = [f"k{j}" for j in range(keys)]
    data = people(count, names)
    con = duckdb.connect()
    con.register("people", data)
    with TemporaryDirectory() as folder:
        Path(folder, "keys.txt").write_text("\n".join(names))
        print(f"-- {keys:,} private groups, {count:,} people")
        start, start_processor = perf_counter(), process_time()
        query = timed("the keys in a file", lambda: accord.count(by="w", keys=f"{folder}/keys.txt"))
        table = accord.table(data, epsilon="e")
        plan = timed("plan", lambda: table.plan(query))
        release = timed("release", lambda: table.release(plan))
        timed("text", lambda: str(release))
        timed("receipt", lambda: json.dumps(release.receipt()))
        took, processor = perf_counter() - start, process_time() - start_processor
        print(f"{'in all (aim 5)':<44}{took:>9.2f} s{processor:>9.2f} s of processors")
        grouped = "SELECT w, count(*) FROM people GROUP BY w"
        times = fastest(
            {
                "GROUP BY key (DuckDB)": lambda: con.execute(grouped).fetchall(),
                "its reading (aim 3)": lambda: table.reader.summaries(plan.as_read),
            },
            7,
        )
    floor, _ = times.values()
    for name, t in times.items():
        ratios = f"× {t.waited / floor.waited:.1f}, of processors × {t.processor / floor.processor:.1f}"
        print(f"{name:<44}{t.waited:>9.3f} s{t.processor:>9.3f} s of processors  {ratios}")


def on_spark(count: int) -> None:
    """Private groups, of ten people each."""
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    keys = [f"k{j}" for j in range(count)]
    with TemporaryDirectory() as folder:
        pq.write_table(pa.table(people(10 * count, keys)), f"{folder}/people.parquet")
        spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        frame = spark.read.parquet(f"{folder}/people.parquet")
        timed("GROUP BY key (Spark)", lambda: frame.groupBy("w").avg("x").collect())
        print(f"-- {count:,} private groups")
        steps(frame, grouped_queries(keys, "count", "mean"))


def on_postgres(count: int, url: str) -> None:
    """Private groups, of ten people each."""
    import psycopg

    keys, name = [f"k{j}" for j in range(count)], "accord_bench_many"
    data = people(10 * count, keys)
    with psycopg.connect(url.rstrip("?&"), autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (id bigint, x double precision, w text, e double precision)")
        try:
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as rows:
                for row in zip(*(column.tolist() for column in data.values()), strict=True):
                    rows.write_row(row)
            mean = f"SELECT w, avg(x) FROM {name} GROUP BY w"
            timed("GROUP BY key (PostgreSQL)", lambda: connection.execute(mean).fetchall())
            print(f"-- {count:,} private groups")
            steps(
                f"{url}{'&' if '?' in url and url[-1] not in '?&' else ''}table={name}",
                grouped_queries(keys, "count", "mean"),
            )
        finally:
            connection.execute(f"DROP TABLE {name}")


def levels(count: int) -> None:
    """A plan for as many levels, as a document and as text."""
    spec = accord.Spec.of(np.arange(1, count + 1) / 1e6)
    plan = timed(
        f"plan of {count:,} levels (aim 1)", lambda: accord.plan(spec, accord.mean("x", bounds=(0, 1)))
    )
    document = timed("its description", lambda: json.dumps(plan.describe()))
    print(f"{'':<44}{len(document) / 1e3:>9.0f} kB")
    timed("its text", lambda: str(plan))


def ledger(count: int, url: str | None) -> None:
    """Everyone is an account of their own: registered, charged, looked up and verified."""
    people = accord.table(
        {"id": np.arange(count), "x": np.arange(count) % 1_000 / 1e3, "e": np.arange(1, count + 1) / 1e6},
        epsilon="e",
        user="id",
    )
    query = accord.mean("x", bounds=(0, 1))
    people.spec()
    with tempfile.TemporaryDirectory() as folder:
        books = accord.Ledger(url or f"{folder}/accord.db")
        timed(f"register {count:,} accounts (aim 15)", lambda: books.register(people, "people"))
        timed("release (aim 10)", lambda: people.release(query, share=0.1, ledger=books))
        timed("remaining", lambda: books.remaining(people))
        verdict = timed("verify", books.verify)
        timed("history", books.history)
    assert not verdict.problems, verdict.problems
    print_peak_memory(" (aim 1024)")


def print_peak_memory(aim: str = "") -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{f'peak memory{aim}':<44}{memory:>9.0f} MB", flush=True)


PARTS = ("groups", "long", "levels", "ledger")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--levels", type=int, default=1_000_000)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument(
        "--url", help="a PostgreSQL database for the ledger [default: SQLite in a temporary folder]"
    )
    options = parser.parse_args()
    if options.spark:
        on_spark(options.keys)
        return
    if options.postgres:
        on_postgres(options.keys, options.postgres)
        return
    parts = (options.only,) if options.only else PARTS
    if "groups" in parts:
        groups(options.keys)
    if "long" in parts:
        long_list()
    if "levels" in parts:
        levels(options.levels)
    if parts != ("ledger",):
        print_peak_memory()
    if "ledger" in parts:
        process = multiprocessing.get_context("spawn").Process(
            target=ledger, args=(options.levels, options.url)
        )
        process.start()
        process.join()
        raise SystemExit(process.exitcode)


if __name__ == "__main__":
    main()
