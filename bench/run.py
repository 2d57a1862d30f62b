"""How fast accord is, as ratios to DuckDB's own clipped average on the same file, in one run.

    python bench/run.py                      100 million rows (about 1 GB in bench/.data, made once)
    python bench/run.py --rows 10000000      a quicker look
    python bench/run.py --only crosstabs     or scans, or small
    python bench/run.py --json

Crosstabs have a floor of their own: DuckDB's GROUP BY of the same columns.

Times on shared machines are noisy; ratios within one run are less so, and those of processor time (user and
system, of all threads) least. Each figure is the smallest of several alternating rounds.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

import accord

DATA = Path(__file__).parent / ".data"
LOW, HIGH = 0.0, 200_000.0


def make(rows: int) -> Path:
    """Values with a tail, three levels and a few opted out; 100 row groups."""
    path = DATA / f"people_{rows}.parquet"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        print(f"making {path} …", file=sys.stderr)
        con = duckdb.connect()
        con.execute("SELECT setseed(0.5)")
        con.execute(f"""
            COPY (SELECT CAST(exp(10.5 + 0.8 * (random() + random() + random() + random() - 2) * 1.73)
                              AS DOUBLE) AS income,
                         CASE WHEN r < 0.05 THEN 0.0 WHEN r < 0.3 THEN 0.01 WHEN r < 0.8 THEN 1.0
                              ELSE 'inf'::DOUBLE END AS epsilon
                  FROM (SELECT random() AS r FROM range({rows})))
            TO '{path}' (FORMAT parquet, COMPRESSION zstd)""")
    return path


class Seconds(NamedTuple):
    """How long a task takes."""

    waited: float
    processor: float
    """Of all threads, user and system."""

    def ratio(self, floor: Seconds) -> dict[str, float]:
        return {
            "seconds": round(self.waited, 3),
            "ratio": round(self.waited / floor.waited, 2),
            "processor_seconds": round(self.processor, 3),
            "processor_ratio": round(self.processor / floor.processor, 2),
        }


def fastest(tasks: dict[str, Callable[[], object]], rounds: int) -> dict[str, Seconds]:
    """The smallest times of each task, in alternating rounds: no noisy moment hits one of them alone."""
    best = dict.fromkeys(tasks, Seconds(float("inf"), float("inf")))
    for _ in range(rounds):
        for name, task in tasks.items():
            start, start_processor = time.perf_counter(), time.process_time()
            task()
            took = time.perf_counter() - start, time.process_time() - start_processor
            best[name] = Seconds(*map(min, best[name], took))
    return best


def timed(task: Callable[[], object], rounds: int = 1) -> float:
    """The smallest time of one task that one waits."""
    return fastest({"task": task}, rounds)["task"].waited


def scans(rows: int, rounds: int) -> list[dict[str, object]]:
    path = make(rows)
    con = duckdb.connect()
    query = accord.mean("income", bounds=(LOW, HIGH))
    median = accord.median("income", bounds=(LOW, HIGH))
    cells = accord.histogram("income", edges=[0, 20_000, 40_000, 60_000, 100_000, 200_000])
    people = accord.table(path, epsilon="epsilon")
    people.spec()
    times = fastest(
        {
            "floor": lambda: con.execute(
                f"SELECT avg(least(greatest(income, {LOW}), {HIGH})) FROM '{path}'"
            ).fetchall(),
            "mean, levels read included": lambda: accord.table(path, epsilon="epsilon").release(query),
            "mean, Spec known": lambda: people.release(query),
            "count with a condition, Spec known": lambda: people.release(
                accord.count(where="income >= 50000")
            ),
            "histogram of 5 cells, Spec known": lambda: people.release(cells),
            "median among 65,537 points, levels read included": lambda: accord.table(
                path, epsilon="epsilon"
            ).release(median),
            "median among 65,537 points, Spec known": lambda: people.release(median),
        },
        rounds,
    )
    aims = {
        "mean, levels read included": 1.4,
        "mean, Spec known": 1.3,
        "median among 65,537 points, levels read included": 2.5,
    }
    return [
        {"what": name, "rows": rows, **t.ratio(times["floor"]), "aim": aims.get(name)}
        for name, t in times.items()
    ]


def make_cells(rows: int) -> Path:
    """The same levels, with a ward of fifty, as text and as a number, and one of two sexes."""
    path = DATA / f"cells_{rows}.parquet"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        print(f"making {path} …", file=sys.stderr)
        con = duckdb.connect()
        con.execute("SELECT setseed(0.5)")
        con.execute(f"""
            COPY (SELECT 'ward ' || w AS ward, w AS code, CASE WHEN s < 0.5 THEN 'f' ELSE 'm' END AS sex,
                         CASE WHEN r < 0.05 THEN 0.0 WHEN r < 0.3 THEN 0.01 WHEN r < 0.8 THEN 1.0
                              ELSE 'inf'::DOUBLE END AS epsilon
                  FROM (SELECT random() AS r, random() AS s, CAST(floor(random() * 50) AS INTEGER) AS w
                        FROM range({rows})))
            TO '{path}' (FORMAT parquet, COMPRESSION zstd)""")
    return path


def crosstabs(rows: int, rounds: int) -> list[dict[str, object]]:
    """Of 2 × 50 cells, next to DuckDB's own GROUP BY; and to one that groups by the levels, too."""
    path, con, results = make_cells(rows), duckdb.connect(), []
    keys = {"sex": ["f", "m"], "ward": [f"ward {k}" for k in range(50)], "code": range(50)}
    people = accord.table(path, epsilon="epsilon")
    people.spec()
    for column in ("ward", "code"):
        query = accord.crosstab("sex", column, keys={name: keys[name] for name in ("sex", column)})
        times = fastest(
            {
                f"GROUP BY sex, {column}": lambda by=column: con.execute(
                    f"SELECT sex, {by}, count(*) FROM '{path}' GROUP BY ALL"
                ).fetchall(),
                f"GROUP BY sex, {column}, level": lambda by=column: con.execute(
                    f"SELECT sex, {by}, epsilon, count(*) FROM '{path}' GROUP BY ALL"
                ).fetchall(),
                f"crosstab of sex and {column}, 100 cells": lambda asked=query: people.release(asked),
            },
            rounds,
        )
        floor, *_ = times.values()
        for name, t in times.items():
            aim = 1.6 if name.startswith("crosstab") else None
            results.append({"what": name, "rows": rows, **t.ratio(floor), "aim": aim})
    return results


def small() -> list[dict[str, object]]:
    generator = np.random.default_rng(1)
    table = accord.table(
        {"x": generator.normal(50, 20, 1000), "e": generator.choice([0.01, 1, np.inf], 1000)}, epsilon="e"
    )
    query = accord.mean("x", bounds=(0, 100))
    table.release(query)
    spec = accord.Spec.of(np.unique(generator.integers(1, 10**9, 1_100_000))[:1_000_000] / 1e6)
    code = "import time; t = time.perf_counter(); import accord; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    import_times = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5)
    ]
    times = fastest({"release over 1,000 rows in memory": lambda: table.release(query)}, 200)
    times |= fastest(
        {
            "plan with a million distinct levels": lambda: accord.plan(spec, query),
            "theory.affine with a million distinct levels": lambda: accord.theory.affine(spec),
        },
        3,
    )
    seconds = {name: t.waited for name, t in times.items()} | {"import accord": min(import_times)}
    aims = {
        "release over 1,000 rows in memory": 0.005,
        "plan with a million distinct levels": 1.0,
        "theory.affine with a million distinct levels": 1.0,
        "import accord": 0.3,
    }
    return [{"what": name, "seconds": round(t, 5), "aim": aims[name]} for name, t in seconds.items()]


PARTS = {"small": small, "scans": scans, "crosstabs": crosstabs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = []
    for name in (options.only,) if options.only else PARTS:
        results += small() if name == "small" else PARTS[name](options.rows, options.rounds)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if options.json:
        versions = {"python": platform.python_version(), "duckdb": duckdb.__version__}
        print(json.dumps({"schema": 1, **versions, "results": results, "peak_mb": round(memory)}))
        return
    print(f"{'':<50}{'seconds':>12}{'× floor':>10}{'processor':>12}{'× floor':>10}{'aim':>8}")
    for row in results:
        figures = (row.get(name, "") for name in ("ratio", "processor_seconds", "processor_ratio"))
        print(
            "{:<50}{:>12}{:>10}{:>12}{:>10}{:>8}".format(
                row["what"], row["seconds"], *figures, row["aim"] or ""
            )
        )
    print(f"peak memory {memory:.0f} MB")


if __name__ == "__main__":
    main()
