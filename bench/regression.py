"""How fast a regression is, as a ratio to DuckDB's own float sums; and how fast rows are kept at random.

python bench/regression.py                      10 million rows, 10 features
python bench/regression.py --rows 100000000
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import duckdb
from run import DATA, timed

import accord


def make(rows: int, features: int) -> Path:
    path = DATA / f"regression_{rows}_{features}.parquet"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        print(f"making {path} …", file=sys.stderr)
        columns = ", ".join(f"random() * 100 AS x{j}" for j in range(features))
        duckdb.execute(
            f"COPY (SELECT {columns}, random() * 1000 AS y, "
            "CASE WHEN random() < 0.5 THEN 0.1 ELSE 1.0 END AS epsilon "
            f"FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    path = make(options.rows, options.features)
    names = [*(f"x{j}" for j in range(options.features)), "y"]
    products = [f"sum({a} * {b})" for k, a in enumerate(names) for b in names[k:]]
    floor_query = f"SELECT {', '.join([*(f'sum({n})' for n in names), *products])} FROM '{path}'"
    con = duckdb.connect()
    floor = timed(lambda: con.execute(floor_query).fetchall(), options.rounds)
    people = accord.table(path, epsilon="epsilon")
    people.spec()
    bounds = {**dict.fromkeys(names[:-1], (0, 100)), "y": (0, 1000)}
    query = accord.regression("y", names[:-1], bounds=bounds, missing="none")
    print(f"{options.rows:,} rows, {options.features} features, {os.cpu_count()} cores")
    print(f"DuckDB's float sums of the same products   {floor:8.2f} s")
    for mechanism in ("affine", "sample"):
        seconds = timed(lambda name=mechanism: people.release(query, name), options.rounds)  # type: ignore[misc]
        aim = "   aim 2" if mechanism == "affine" else ""
        print(f"regression by {mechanism:28} {seconds:8.2f} s   {seconds / floor:.2f} ×{aim}")
    seconds = timed(
        lambda: accord.sample(lambda rows, epsilon: float(len(rows)), people, columns=["x0"]), options.rounds
    )
    speed = options.rows / seconds / 1e6
    print(f"rows kept at random, as an Arrow table     {seconds:8.2f} s   {speed:.1f} million rows a second")


if __name__ == "__main__":
    main()
