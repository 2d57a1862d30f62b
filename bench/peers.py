"""How fast and how exact accord and its peers are on one file at one ε, as ratios to DuckDB's own answer.

    python bench/peers.py                            10 million rows
    python bench/peers.py --rows 1000000 --only opendp
    python bench/peers.py --json

Everyone has ε = 1, since peers know no personal levels. Each peer runs in a process of its own, one after the
other; a figure is the smallest of three calls, reading the file included, imports and the start of Spark not.
Errors are measured on 100,000 rows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / ".data"
KEYS = [f"region {k}" for k in range(10)]
LOW, HIGH = 0.0, 200_000.0
EPSILON = 1.0
SMALL = 100_000
LIMIT = 240  # seconds for one peer and one task

Task = Callable[[str, int], Any]  # (path, rows) -> the answer: a number, or one count for each of KEYS


def make(rows: int) -> Path:
    """Incomes with a tail, about ten rows a person anywhere in the file, ten regions."""
    import duckdb

    path = DATA / f"peers_{rows}.parquet"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        con = duckdb.connect()
        con.execute("SELECT setseed(0.5)")
        con.execute(f"""
            COPY (SELECT person,
                         exp(10.5 + 0.8 * (random() + random() + random() + random() - 2) * 1.73) AS income,
                         'region ' || CAST(person % 10 AS VARCHAR) AS region
                  FROM (SELECT CAST(floor(random() * {rows // 10}) AS BIGINT) AS person FROM range({rows})))
            TO '{path}' (FORMAT parquet, COMPRESSION zstd)""")
    return path


# Each function imports its library, and returns what it can do.


def floor() -> dict[str, Task]:
    import duckdb

    con = duckdb.connect()
    clip = f"avg(least(greatest({{}}, {LOW}), {HIGH}))"

    def number(sql: str) -> float:
        return float(con.execute(sql).fetchall()[0][0])

    def count(path: str, rows: int) -> list[int]:
        counts = dict(con.execute(f"SELECT region, count(*) FROM '{path}' GROUP BY region").fetchall())
        return [counts[k] for k in KEYS]

    return {
        "mean": lambda path, rows: number(f"SELECT {clip.format('income')} FROM '{path}'"),
        "user mean": lambda path, rows: number(
            f"SELECT {clip.format('m')} FROM (SELECT avg(income) AS m FROM '{path}' GROUP BY person)"
        ),
        "count": count,
    }


def accord_() -> dict[str, Task]:
    import accord

    query = accord.mean("income", bounds=(LOW, HIGH), missing="none")
    counts = accord.count(by="region", keys=KEYS)
    return {
        "mean": lambda path, rows: accord.table(path, epsilon=EPSILON).release(query).value,
        "user mean": lambda path, rows: (
            accord.table(path, epsilon=EPSILON, user="person").release(query).value
        ),
        "count": lambda path, rows: [
            r["value"] for r in accord.table(path, epsilon=EPSILON).release(counts).value
        ],
    }


def accord_add_remove() -> dict[str, Task]:
    import accord

    def table(path: str, rows: int) -> Any:
        roster = accord.Spec.from_groups({EPSILON: rows})
        return accord.table(path, epsilon=EPSILON, neighbors="add-remove", roster=roster)

    query = accord.mean("income", bounds=(LOW, HIGH), missing="none")
    counts = accord.count(by="region", keys=KEYS)
    return {
        "mean": lambda path, rows: table(path, rows).release(query).value,
        "count": lambda path, rows: [r["value"] for r in table(path, rows).release(counts).value],
    }


def opendp() -> dict[str, Task]:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")

    def context(path: str, columns: list[str], unit: Any, margin: Any) -> Any:
        return dp.Context.compositor(
            data=pl.scan_parquet(path).select(columns),
            privacy_unit=unit,
            privacy_loss=dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            margins=[margin],
        ).query()

    average = pl.col.income.fill_nan(0.0).fill_null(0.0).dp.mean((LOW, HIGH))

    def mean(path: str, rows: int) -> float:
        margin = dp.polars.Margin(invariant="lengths", max_length=rows)
        query = context(path, ["income"], dp.unit_of(changes=1), margin)
        return query.select(average).release().collect().item()

    def user_mean(path: str, rows: int) -> float:
        unit = dp.unit_of(contributions=1, identifier="person")
        query = context(path, ["person", "income"], unit, dp.polars.Margin(max_length=rows))
        return query.group_by("person").agg(pl.col.income.mean()).select(average).release().collect().item()

    def count(path: str, rows: int) -> list[int]:
        margin = dp.polars.Margin(by=["region"], invariant="keys", max_length=rows)
        query = context(path, ["region"], dp.unit_of(contributions=1), margin)
        counts = dict(query.group_by("region").agg(dp.len()).release().collect().iter_rows())
        return [counts[k] for k in KEYS]

    return {"mean": mean, "user mean": user_mean, "count": count}


def incomes(path: str) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, columns=["income"])["income"].to_numpy()


def regions(path: str) -> Any:
    """The number of each row's region, as NumPy."""
    import numpy as np
    import pyarrow.parquet

    column = pyarrow.parquet.read_table(path, columns=["region"], read_dictionary=["region"])[
        "region"
    ].unify_dictionaries()
    names = column.chunk(0).dictionary.to_pylist()
    codes = np.array([KEYS.index(name) for name in names])
    return codes[np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])]


def diffprivlib() -> dict[str, Task]:
    from diffprivlib import tools

    return {
        "mean": lambda path, rows: float(tools.mean(incomes(path), epsilon=EPSILON, bounds=(LOW, HIGH))),
        "count": lambda path, rows: tools.histogram(
            regions(path), epsilon=EPSILON, bins=10, range=(-0.5, 9.5)
        )[0].tolist(),
    }


def pydp() -> dict[str, Task]:
    from pydp.algorithms.laplacian import BoundedMean, Count

    def mean(path: str, rows: int) -> float:
        return BoundedMean(epsilon=EPSILON, lower_bound=LOW, upper_bound=HIGH, dtype="float").quick_result(
            incomes(path).tolist()
        )

    def count(path: str, rows: int) -> list[int]:
        codes = regions(path)
        return [
            Count(epsilon=EPSILON, dtype="int").quick_result(codes[codes == k].tolist()) for k in range(10)
        ]

    return {"mean": mean, "count": count}


def pipelinedp() -> dict[str, Task]:
    import pipeline_dp as pdp
    import pyarrow.parquet

    def run(
        rows: list[Any], metric: Any, partition: Any, value: Any, partitions: list[Any], **bounds: float
    ) -> dict[Any, Any]:
        accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=1e-12)
        params = pdp.AggregateParams(
            metrics=[metric],
            noise_kind=pdp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            **bounds,
        )
        columns = pdp.DataExtractors(
            partition_extractor=partition, privacy_id_extractor=lambda r: r[0], value_extractor=value
        )
        result = pdp.DPEngine(accountant, pdp.LocalBackend()).aggregate(
            rows, params, columns, public_partitions=partitions
        )
        accountant.compute_budgets()
        return dict(result)

    def column(path: str, name: str) -> list[Any]:
        return list(enumerate(pyarrow.parquet.read_table(path, columns=[name])[name].to_pylist()))

    def mean(path: str, rows: int) -> float:
        result = run(
            column(path, "income"),
            pdp.Metrics.MEAN,
            lambda r: 0,
            lambda r: r[1],
            [0],
            min_value=LOW,
            max_value=HIGH,
        )
        return float(result[0].mean)

    def count(path: str, rows: int) -> list[float]:
        result = run(column(path, "region"), pdp.Metrics.COUNT, lambda r: r[1], lambda r: 0, KEYS)
        return [result[k].count for k in KEYS]

    return {"mean": mean, "count": count}


def tumult() -> dict[str, Task]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "8g")
        .config("spark.ui.enabled", "false")
    )
    spark = spark.config("spark.sql.shuffle.partitions", "8").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def ask(path: str, column: str, query: Any) -> list[Any]:
        data, budget = spark.read.parquet(path).select(column), PureDPBudget(EPSILON)
        return (
            Session.from_dataframe(budget, "t", data, protected_change=AddOneRow())
            .evaluate(query, budget)
            .collect()
        )

    def mean(path: str, rows: int) -> float:
        return float(ask(path, "income", QueryBuilder("t").average("income", LOW, HIGH))[0][0])

    def count(path: str, rows: int) -> list[int]:
        query = QueryBuilder("t").groupby(KeySet.from_dict({"region": KEYS})).count()
        counts = dict(ask(path, "region", query))  # type: ignore[arg-type]
        return [counts[k] for k in KEYS]

    return {"mean": mean, "count": count}


PEERS: dict[str, tuple[Callable[[], dict[str, Task]], int, int, str]] = {
    # name: its tasks, most rows it is given, releases for the error, remark
    "duckdb": (floor, 10**12, 0, "the floor: no privacy"),
    "accord": (accord_, 10**12, 50, "DuckDB reads; replace; integer sums"),
    "accord-ar": (accord_add_remove, 10**12, 50, "the same; add-remove, with a public roster"),
    "opendp": (opendp, 10**12, 20, "polars reads; mean: replace, needs the number of rows; else add-remove"),
    "diffprivlib": (
        diffprivlib,
        10**12,
        50,
        "pyarrow → NumPy; mean: replace, number of rows public; count: add-remove; float sums",
    ),
    "pydp": (pydp, 10**12, 50, "pyarrow → NumPy → list; add-remove; float sums"),
    "pipelinedp": (
        pipelinedp,
        200_000,
        3,
        "pyarrow → list of tuples; add-remove; local runner: fewer rows, not scaled",
    ),
    "tumult": (tumult, 10**12, 5, "Spark reads; add-remove; memory with its Java process"),
}
CANNOT = "not offered by the library: limits rows per person, or knows no persons"


def peak_memory() -> float:
    """Megabytes: this process, and Spark's Java process if there is one."""
    total = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        lines = Path(f"/proc/{SparkContext._gateway.proc.pid}/status").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return total


def work(name: str, task: str, path: str, rows: int, small: str) -> None:
    """In the peer's own process: times, peak memory, and answers on the small file, as one line of JSON."""
    tasks, _, releases, _ = PEERS[name]
    run = tasks()[task]
    run(small, SMALL)  # a first call loads what is loaded lazily
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run(path, rows)
        times.append(time.perf_counter() - start)
        if times[0] > 30:
            break
    memory = peak_memory()
    answers = [run(small, SMALL) for _ in range(releases)]
    print("\n" + json.dumps({"seconds": min(times), "peak_mb": memory, "answers": answers}))


def measure(name: str, task: str, rows: int, python: str) -> dict[str, Any]:
    _, most, releases, remark = PEERS[name]
    rows = min(rows, most)
    row: dict[str, Any] = {"task": task, "peer": name, "rows": rows}
    job = [python, __file__, "--work", name, task, str(make(rows)), str(rows), str(make(SMALL))]
    try:
        done = subprocess.run(job, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return row | {"remark": f"stopped after {LIMIT} s"}
    except OSError:
        return row | {"remark": "not installed (see peers.txt)"}
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "Error" in line and not line.startswith(" ")]
        why = reasons[-1] if reasons else f"exit {done.returncode}"
        if "KeyError: '" + task in why:
            return row | {"remark": "not measured" if name.startswith("accord") else CANNOT}
        return row | {"remark": f"failed: {why[:90]}"}
    outcome = json.loads(done.stdout.splitlines()[-1])
    return row | {
        "seconds": outcome["seconds"],
        "peak_mb": round(outcome["peak_mb"]),
        "rmse": error(task, outcome["answers"]),
        "releases": releases,
        "remark": remark,
    }


def error(task: str, answers: list[Any]) -> float | None:
    if not answers:
        return None
    truth = floor()[task](str(make(SMALL)), SMALL)
    true = truth if isinstance(truth, list) else [truth]
    lists = [a if isinstance(a, list) else [a] for a in answers]
    squares = [(x - y) ** 2 for answer in lists for x, y in zip(answer, true, strict=True)]
    return math.sqrt(sum(squares) / len(squares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", choices=[p for p in PEERS if p != "duckdb"])
    parser.add_argument(
        "--tumult", default=str(HERE / ".venv-tumult/bin/python"), help="the Python that has Tumult"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        name, task, path, rows, small = options.work
        return work(name, task, path, int(rows), small)
    names = [options.only] if options.only else [p for p in PEERS if p != "duckdb"]
    results = []
    if not options.json:
        print("| task | peer | rows | seconds | × floor | peak MB | RMSE (releases) | remark |")
        print("|---|---|--:|--:|--:|--:|--:|---|", flush=True)
    for row in compare(names, options.rows, options.tumult):
        results.append(row)
        if not options.json:
            print(line(row), flush=True)
    if options.json:
        print(json.dumps({"schema": 1, "epsilon": EPSILON, "results": results}))
    return None


def compare(names: list[str], most: int, tumult_python: str) -> Iterator[dict[str, Any]]:
    """One row after the other; before the first of each task and size, the floor for it."""
    for task in ("mean", "count", "user mean"):
        floors: dict[int, float] = {}
        for name in names:
            rows = min(most, PEERS[name][1])
            if rows not in floors:
                base = measure("duckdb", task, rows, sys.executable)
                floors[rows] = base["seconds"]
                yield base | {"ratio": 1.0}
            row = measure(name, task, rows, tumult_python if name == "tumult" else sys.executable)
            yield row | ({"ratio": row["seconds"] / floors[rows]} if "seconds" in row else {})


def line(r: dict[str, Any]) -> str:
    def cell(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    wrong = cell(r.get("rmse"), ".3g") + (f" ({r['releases']})" if r.get("rmse") is not None else "")
    numbers = [
        cell(r.get("seconds"), ".3f"),
        cell(r.get("ratio"), ".1f"),
        cell(r.get("peak_mb"), ",.0f"),
        wrong,
    ]
    return "| " + " | ".join([r["task"], r["peer"], f"{r['rows']:,}", *numbers, r["remark"]]) + " |"


if __name__ == "__main__":
    main()
