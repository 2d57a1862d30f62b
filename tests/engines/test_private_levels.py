"""Private levels on PostgreSQL and Spark: the integers that DuckDB has, and nothing public that depends on an engine or on who is there."""

import json
from math import inf, nan

import psycopg
import pyarrow as pa
import pytest

import accord
from accord.ledger import charging
from accord.spec import Spec

TIERS = {"strict": 0.5, "standard": 1.0, "public": inf}
EXPECTED = {
    "tiers": Spec.from_groups({"strict": 40, "standard": 60, "public": 3}, TIERS),
    "numbers": Spec.from_groups({0.5: 40, 1: 60, inf: 3}),
}
NAMES = ["strict", "standard", "public", "odd", None, "", "Strict"]
LEVELS = [0.5, 1.0, inf, 0.75, None, nan, -1.0, 0.0, 1e9]
# several rows a person, of several levels
ROWS = [
    (f"p{k // 2}", [1.5, 7.0, None, nan, -3.0, 99.0, 4.25][k % 7], ["a", "b", "c", None][k % 4], NAMES[k % 7], LEVELS[k % 9])
    for k in range(120)
]  # fmt: skip
COLUMNS = {"u": "text", "v": "double precision", "g": "text", "tier": "text", "e": "double precision"}
OPENED = {
    "tiers": {"epsilon": "tier", "tiers": TIERS, "default": "strict"},
    "numbers": {"epsilon": "e"},
}
GRID = {"bounds": (0, 10), "step": 0.25}
QUERIES = {
    "mean": accord.mean("v", **GRID),
    "mean of people": accord.mean("v", **GRID, per_person="mean"),
    "sum": accord.sum("v", **GRID),
    "count": accord.count("v > 2"),
    "by": accord.count(by="g", keys=["a", "b"]),
    "proportion": accord.proportion("v > 2"),
    "histogram": accord.histogram("v", edges=[0, 2, 5, 10]),
    "median": accord.median("v", **GRID),
    "median of people": accord.median("v", **GRID, per_person="mean"),
    "variance": accord.variance("v", **GRID),
    "variance of some": accord.variance("v", where="g = 'a'", **GRID),
}


def options(levels, user):
    """How a table is opened."""
    return {**OPENED[levels], "user": user, "levels": "private", "expected": EXPECTED[levels]}


def in_memory(rows):
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    types = {"text": pa.string(), "double precision": pa.float64()}
    return pa.table({name: pa.array(columns[name], types[COLUMNS[name]]) for name in COLUMNS})


def integers(people, query, remaining=None):
    plan = people.plan(query)
    contents = []
    for part in plan.parts:
        for summary in people.reader.summaries(part.as_read, remaining, part.method.needs_cells):
            places = zip(
                summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True
            )
            entries = {}
            for level, output, amount in places:
                entries[level, output] = entries.get((level, output), 0) + amount
            contents.append((summary.outputs, {k: v for k, v in sorted(entries.items()) if v}))
    return contents


def shown(people, ledger):
    """All that is public: of a table, of plans, of a ledger, and of receipts but for answers."""
    plans = [people.plan(query) for name, query in QUERIES.items() if of_rows(people, name)]
    receipts, query = [], QUERIES["count"]
    ledger.register(people, "people")
    for _ in range(2):
        release = people.release(query, share=0.3, ledger=ledger, fresh=True)
        receipts.append({k: v for k, v in release.receipt().items() if k not in ("time", "value", "interval", "rmse", "rmse_here", "ledger")})  # fmt: skip
    rest = people.release(accord.plan(ledger.remaining(people), query, share=0.5), ledger=ledger)
    return json.dumps(
        [
            repr(people.spec()), people.policy, people.columns, [plan.describe() for plan in plans], [str(plan) for plan in plans],
            receipts, str(rest.plan), repr(ledger.accounts()), repr(ledger.remaining(people)), repr(ledger.verify()),
        ],
        default=str,
    )  # fmt: skip


def of_rows(people, name):
    """Whether a question is for such a table: of people with several rows, or with one."""
    if people.user is None:
        return "of people" not in name
    return name not in ("mean", "median")


def alike(theirs, fewer, tmp_path, levels, user):
    """A table of an engine, one of it with one person less, and the same rows in DuckDB."""
    ours = accord.table(in_memory(ROWS), **options(levels, user))
    for name, query in QUERIES.items():
        if of_rows(ours, name):
            assert integers(theirs, query) == integers(ours, query), name
    seen = [
        shown(people, accord.Ledger(tmp_path / f"{k}.db", key="a key that only tests use"))
        for k, people in enumerate((theirs, fewer))
    ]
    assert seen[0] == seen[1]


def remaining_is_read_by_level(people, tmp_path, levels, user):
    """What is planned from a ledger's rest is read by level, which needs nobody to be told apart."""
    ours = accord.table(in_memory(ROWS), **options(levels, user))
    found = []
    for k, each in enumerate((people, ours)):
        ledger = accord.Ledger(tmp_path / f"rest {k}.db", key="a key that only tests use")
        ledger.register(each, "people")
        plan = each.plan(accord.count(), "minimum", 1.0)
        charging.reserve(ledger.books, each, plan)  # the strictest have nothing left
        rest = accord.plan(ledger.remaining(each), accord.count(), "minimum")
        reserved = charging.reserve(ledger.books, each, rest)
        found.append(integers(each, accord.count(), reserved.remaining))
    assert found[0] == found[1]
    everyone = dict(integers(ours, accord.count())[0][1])
    strict = sum(amount for (level, _), amount in everyone.items() if level == 0)
    assert strict > 0 and sum(found[0][0][1].values()) == sum(everyone.values()) - strict


CASES = [("tiers", "u"), ("numbers", None), ("tiers", None), ("numbers", "u")]


@pytest.mark.postgres
@pytest.mark.parametrize(("levels", "user"), CASES)
def test_in_postgresql(levels, user, postgres_url, tmp_path):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name, rows in (("people", ROWS), ("fewer", ROWS[:-2])):
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {t}' for c, t in COLUMNS.items())})")
            connection.cursor().executemany(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s)", rows)
    theirs, fewer = (
        accord.table(f"{postgres_url}&table={name}", **options(levels, user)) for name in ("people", "fewer")
    )
    alike(theirs, fewer, tmp_path, levels, user)
    remaining_is_read_by_level(theirs, tmp_path, levels, user)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("levels", "user"), CASES[:2])
def test_in_spark(levels, user, session, tmp_path):
    schema = "u string, v double, g string, tier string, e double"
    theirs, fewer = (
        accord.table(session.createDataFrame(rows[::-1], schema).repartition(3), **options(levels, user))
        for rows in (ROWS, ROWS[:-2])
    )
    alike(theirs, fewer, tmp_path, levels, user)
    remaining_is_read_by_level(theirs, tmp_path, levels, user)
