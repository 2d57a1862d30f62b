"""Everything renamed to everything: whatever columns are called, every answer has the same integers.

accord's own names are included. Every table here has a column of every awkward name, filled with numbers that
would show if they were read; the columns that are asked about take these names in turn. A name that means two
things once made an engine read a level for the chance by which somebody is kept.
"""

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines.test_postgres import at, fill, make
from strategies import HOSTILE

import accord
from accord.lab.audit.recording_noise import FixedWords
from accord.ledger import charging

NAMES = tuple({name.lower(): name for name in HOSTILE if len(name) < 50}.values())
ROLES = ("id", "e", "x", "z", "g", "m")
DECOY = 987_654.0
PEOPLE = 140
"""Of 70 levels: so many that chances are looked up in a table."""


def columns(names):
    """A table in which the roles have these names, with decoys of all others."""
    row = np.arange(2 * PEOPLE)
    who = row // 2
    values = {
        "id": who.astype(np.int64),
        "e": (who // 2 + 1) / 100 + row % 2,
        "x": (row * 37 % 101).astype(np.float64),
        "z": (row * 53 % 97).astype(np.float64),
        "g": (who % 3).astype(np.int64),
        "m": (row % 5).astype(np.float64),
    }
    table = {name: np.full(row.size, DECOY) for name in NAMES}
    return {**table, **{names[role]: values[role] for role in ROLES}}


def rotations(count):
    """Names of the roles, so that every name has every role once in `len(NAMES)` rotations."""
    for k in np.linspace(0, len(NAMES), count, endpoint=False).astype(int).tolist():
        yield {role: NAMES[(k + j) % len(NAMES)] for j, role in enumerate(ROLES)}


def questions(names):
    bounds = (0, 100)
    x, z, g, m = (names[role] for role in ("x", "z", "g", "m"))
    column = m.replace('"', '""')
    where = f'"{column}" > 1'
    line = {"bounds": {x: bounds, z: bounds}}
    return {
        "mean": accord.mean(x, bounds, step=1),
        "sum where": accord.sum(x, (7, 100), step=1, where=where),
        "mean by": accord.mean(x, bounds, step=1, by=g, keys=[0, 1, 2]),
        "exclude": accord.mean(x, bounds, step=1, missing="exclude"),
        "median": accord.median(x, bounds, step=1),
        "histogram": accord.histogram(x, edges=[0, 10, 50, 100]),
        "count": accord.count(where),
        "rows": accord.rows(max=3, where=where),
        "regression": accord.regression(x, [z], where=where, **line),
        "public group": accord.mean(x, bounds, step=1, by=g, keys=[0, 1, 2], membership="public"),
    }


def integers(table, query):
    """What is read for a question: for each group the sums of each level."""
    return [(s.people.tolist(), s.outputs, list(s.rows())) for s in table.reader.summaries(query)]


def seen(table, names, only=None):
    """What every question reads, of everyone and of who is kept by chance."""
    result = {"spec": table.spec().fingerprint}
    for name, query in questions(names).items():
        if only is not None and name not in only:
            continue
        if name == "public group":
            groups = table.groups(query.part).values()
            result[name] = [(group.spec().fingerprint, integers(group, query.query)) for group in groups]
            continue
        result[name] = integers(table, query)
        plan = table.plan(query, "sample") if name == "regression" and table.reader.lends else None
        if plan is not None and plan.keeps_rows:
            chances = plan.calibration.keep
            words = FixedWords(np.full(PEOPLE, int(np.sort(chances)[chances.size // 2]), dtype=np.uint64))
            (summary,) = table.reader.summaries(plan.query, thinning=(chances, words))
            result["kept"] = list(summary.rows())
    return result


PLAIN = {role: role for role in ROLES}
BASE = {role: values for role, values in columns(PLAIN).items() if role in ROLES}


def expected(only=None):
    return seen(accord.table(BASE, epsilon="e", user="id"), PLAIN, only)


def pandas(table):
    return pd.DataFrame(table)


def relation(table):
    return duckdb.connect().from_arrow(pa.table(table))


@pytest.mark.parametrize("form", [dict, pa.table, pandas, relation], ids=lambda form: form.__name__)
def test_in_duckdb(form):
    right = expected()
    assert "kept" in right
    for names in rotations(len(NAMES) // 16):
        assert seen(accord.table(form(columns(names)), epsilon=names["e"], user=names["id"]), names) == right


@pytest.mark.slow
@pytest.mark.parametrize(("form", "part"), [(dict, 1), (relation, 3)], ids=["dict", "relation"])
def test_every_name_in_every_role_in_duckdb(form, part):
    """Arrow and pandas tables get their names where dicts do.

    A relation gets them in a connection of its own, and the same names for its columns from there on: there,
    almost every name has two of the six roles.
    """
    right = expected()
    for names in rotations(len(NAMES) // part):
        assert seen(accord.table(form(columns(names)), epsilon=names["e"], user=names["id"]), names) == right


def test_what_a_ledger_says_is_left_person_by_person(tmp_path):
    """Half of the people have spent something in another table, so that they are matched one by one."""
    right = None
    for k, names in enumerate((PLAIN, *rotations(len(NAMES) // 24))):
        table = accord.table(columns(names), epsilon=names["e"], user=names["id"])
        some = {name: values[np.arange(2 * PEOPLE) // 2 % 2 == 0] for name, values in columns(names).items()}
        half = accord.table(some, epsilon=names["e"], user=names["id"])
        ledger = accord.Ledger(tmp_path / f"{k}.db", key="the same for all of them")
        ledger.register(table, "everyone")
        ledger.register(half, "half")
        query = questions(names)["regression"]
        half.release(accord.mean(names["x"], (0, 100)), "proportional", share=0.5, ledger=ledger)
        plan = accord.plan(ledger.remaining(table), query, "sample", 0.5, t=0.2)
        remaining = charging.reserve(ledger.books, table, plan).remaining
        assert remaining.by_person is not None
        words = FixedWords(np.full(PEOPLE, 2**62, dtype=np.uint64))
        (summary,) = table.reader.summaries(plan.query, remaining, thinning=(plan.calibration.keep, words))
        sums = list(summary.rows())
        right = right or sums
        assert sums == right and 0 < sum(row[-1] for row in sums) < PEOPLE


@pytest.mark.postgres
def test_in_postgresql(postgres_url):
    right = expected()
    right.pop("kept")
    for names in rotations(12):
        table = columns(names)
        types = {
            name: ("bigint" if values.dtype.kind == "i" else "double precision", None)
            for name, values in table.items()
        }
        make(postgres_url, "people", types)
        fill(
            postgres_url,
            "people",
            types,
            list(zip(*(values.tolist() for values in table.values()), strict=True)),
        )
        people = accord.table(at(postgres_url, "people"), epsilon=names["e"], user=names["id"])
        assert seen(people, names) == right


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark(session):
    only = ("mean", "sum where", "mean by", "regression", "public group")
    right = expected(only)
    right.pop("kept")
    for names in rotations(2):
        frame = session.createDataFrame(pd.DataFrame(columns(names)))
        assert seen(accord.table(frame, epsilon=names["e"], user=names["id"]), names, only) == right
