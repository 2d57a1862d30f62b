"""How fast tables with many rows a person and grouped answers are, as ratios to DuckDB's own grouping.

python bench/people.py                                     100 million rows of 10 million people
python bench/people.py --rows 10000000 --people 1000000    a quicker look
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

import duckdb
from run import DATA, fastest

import accord

KEYS = [f"region {k}" for k in range(10)]


def make(rows: int, people: int) -> Path:
    """Everyone has about rows/people rows, anywhere in the file, and one level; ten regions."""
    path = DATA / f"visits_{rows}_{people}.parquet"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        print(f"making {path} …", file=sys.stderr)
        con = duckdb.connect()
        con.execute("SELECT setseed(0.5)")
        con.execute(f"""
            COPY (SELECT person, 200 * random() AS spent, 'region ' || CAST(person % 10 AS VARCHAR) AS region,
                         CASE WHEN person % 20 = 0 THEN 0.0 WHEN person % 3 = 0 THEN 0.01
                              ELSE 1.0 END AS epsilon
                  FROM (SELECT CAST(floor(random() * {people}) AS BIGINT) AS person FROM range({rows})))
            TO '{path}' (FORMAT parquet, COMPRESSION zstd)""")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    path = make(options.rows, options.people)
    con = duckdb.connect()
    clipped = "avg(least(greatest(spent, 0), 200))"
    query = accord.mean("spent", bounds=(0, 200))
    visits, rows = accord.table(path, epsilon="epsilon", user="person"), accord.table(path, epsilon="epsilon")
    visits.spec()
    rows.spec()
    grouped = accord.mean("spent", bounds=(0, 200), by="region", keys=KEYS)
    times = fastest(
        {
            "GROUP BY person (DuckDB)": lambda: con.execute(
                "SELECT avg(m), min(e) FROM "
                f"(SELECT avg(spent) AS m, min(epsilon) AS e FROM '{path}' GROUP BY person)"
            ).fetchall(),
            "mean over people": lambda: visits.release(query, "affine"),
            "GROUP BY region (DuckDB)": lambda: con.execute(
                f"SELECT region, {clipped} FROM '{path}' GROUP BY region"
            ).fetchall(),
            "mean by region, private": lambda: rows.release(grouped, "affine"),
        },
        options.rounds,
    )
    floor = {
        "mean over people": ("GROUP BY person (DuckDB)", 1.3),
        "mean by region, private": ("GROUP BY region (DuckDB)", 1.5),
    }
    print(f"{options.rows:,} rows, {options.people:,} people")
    print(f"{'':<30}{'seconds':>14}{'× floor':>10}{'processor':>12}{'× floor':>10}{'aim':>8}")
    for name, t in times.items():
        base, aim = floor.get(name, (name, ""))
        waited, processor = t.waited / times[base].waited, t.processor / times[base].processor
        print(f"{name:<30}{t.waited:>14.2f}{waited:>10.2f}{t.processor:>12.2f}{processor:>10.2f}{aim:>8}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
