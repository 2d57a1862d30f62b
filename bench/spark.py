"""How fast accord is on Spark, as ratios to Spark's own aggregation of the same file, in one run.

python bench/spark.py                     20 million rows of 2 million people, on all cores
python bench/spark.py --rows 5000000      a quicker look
"""

from __future__ import annotations

import argparse
import os
import resource
import sys

from people import KEYS, make
from run import fastest

import accord
from accord.engines.spark import java_home


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    path = make(options.rows, options.rows // 10)
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(str(path))
    frame.createOrReplaceTempView("visits")
    rows = accord.table(frame, epsilon="epsilon")
    people = accord.table(frame, epsilon="epsilon", user="person")
    rows.spec()
    people.spec()
    query = accord.mean("spent", bounds=(0, 200))
    clipped = "avg(least(greatest(spent, 0D), 200D))"
    pairs = {
        "mean": (
            f"SELECT epsilon, {clipped} FROM visits GROUP BY epsilon",
            lambda: rows.release(query, "affine"),
        ),
        "mean by region": (
            f"SELECT epsilon, region, {clipped} FROM visits GROUP BY epsilon, region",
            lambda: rows.release(accord.mean("spent", bounds=(0, 200), by="region", keys=KEYS), "affine"),
        ),
        "mean over people": (
            "SELECT e, avg(m) FROM "
            "(SELECT avg(spent) AS m, min(epsilon) AS e FROM visits GROUP BY person) GROUP BY e",
            lambda: people.release(query, "affine"),
        ),
    }
    tasks = {}
    for name, (sql, ours) in pairs.items():
        tasks[f"{name} (Spark)"] = lambda sql=sql: spark.sql(sql).collect()
        tasks[name] = ours
    times = fastest(tasks, options.rounds)
    print(f"{options.rows:,} rows{'seconds':>34}{'× Spark':>10}{'aim':>8}")
    for name in pairs:
        floor, ours = times[f"{name} (Spark)"].waited, times[name].waited  # its processes are others
        print(f"{name:<30}{floor:>14.2f}{ours:>10.2f}{ours / floor:>10.2f}{1.3:>8}")
    print(f"driver's Python: peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    spark.stop()


if __name__ == "__main__":
    main()
