"""Missing values of people with several rows, in one group or several: accord's integers are the reference's.

Everything that somebody's rows can lack at once: a value, a category, a group, a row that meets the condition.
"""

from itertools import product
from math import inf, nan
from random import Random

import pyarrow as pa
import pytest
from engines.test_postgres import at, fill, make

import accord
from accord.lab.audit import reference
from accord.lab.audit.reference_comparison import integers

TYPES = {
    "id": ("text", pa.string()),
    "g": ("text", pa.string()),
    "c": ("bigint", pa.int64()),
    "x": ("double precision", pa.float64()),
    "z": ("double precision", pa.float64()),
    "m": ("bigint", pa.int64()),
    "e": ("double precision", pa.float64()),
}
X = {"column": "x", "bounds": (-1, 3), "step": 0.5}
SEVERAL = {
    "mean": X,
    "sum": X,
    "variance": X,
    "median": X,
    "max": {**X, "per_person": "sum"},
}
QUESTIONS = [
    *({"statistic": name, **of, "missing": missing} for name, of in SEVERAL.items()
      for missing in ("exclude", "none", 0.5)),
    *({"statistic": "histogram", "column": "x", "edges": [-1, 0, 1.5, 3], **of}
      for of in ({}, {"missing": "none"}, {"missing": "unknown", "per_person": "max"})),
    *({"statistic": "histogram", "column": "c", "categories": [2, 1, 3], "missing": missing}
      for missing in ("exclude", 1, 7)),
    *({"statistic": "regression", "target": "x", "features": ["c", "z"], "bounds": {"x": (-1, 3), "z": (0, 3)},
       "categories": {"c": [2, 1, 3]}, "missing": missing} for missing in ("exclude", "none")),
    *({"statistic": "proportion", "condition": "x > 0 OR NOT c = 2", "missing": missing}
      for missing in ("exclude", "none")),
    *({"statistic": name, "column": "x", "other": "z", "bounds": {"x": (-1, 3), "z": (0, 3)}, "missing": missing}
      for name in ("covariance", "correlation") for missing in ("exclude", "none")),
    {"statistic": "count"},
    {"statistic": "rows", "max": 2},
]  # fmt: skip
BY = {"by": "g", "keys": ["b", "a", "d"]}
PARTS = [{}, {"where": "m > 0"}, BY, {**BY, "at_most": 2}, {**BY, "at_most": 3, "where": "m > 0"}]
ROSTER = {0.5: 90, 2.0: 90, inf: 90}
SOMEBODY = accord.Spec.of([1.0] * 3)


def asked():
    for question, part in product(QUESTIONS, PARTS):
        if "categories" in question and "column" in question and "at_most" in part:
            part = {name: part[name] for name in ("where", "at_most") if name in part}  # of the categories
        yield {**question, **part}


def rows_of_people(seed, people=60):
    pick = Random(seed)
    rows = []
    for person in range(people):
        level = pick.choice([0.0, 0.5, 2.0, inf])
        lacks = pick.sample(["g", "c", "x", "z"], pick.choice([0, 0, 0, 1]))
        for _ in range(pick.randint(1, 6)):
            row = {
                "g": pick.choice(["a", "b", "d", "undeclared", None]),
                "c": pick.choice([1, 2, 3, 9, None]),
                "x": pick.choice([-9.0, -1.0, 0.25, 1.5, 3.0, None, nan]),
                "z": pick.choice([0.0, 1.5, 3.0, None, -inf]),
                "m": pick.choice([0, 1, 1, None]),
            }
            rows.append({"id": f"p{person}", **row, **dict.fromkeys(lacks), "e": level})
    return pick.sample(rows, len(rows))


def in_accord(question):
    return getattr(accord, question["statistic"])(**{k: v for k, v in question.items() if k != "statistic"})


def differences(source, rows, neighbors, questions):
    """Which questions are not answered, or not charged, as the reference says."""
    who_could_be = {} if neighbors == "replace" else {"roster": ROSTER}
    roster = {name: accord.Spec.from_groups(levels) for name, levels in who_could_be.items()}
    levels = {
        name: [reference.millionths(level) for level in levels] for name, levels in who_could_be.items()
    }
    table = accord.table(source, epsilon="e", user="id", neighbors=neighbors, **roster)
    people = reference.people(rows, epsilon="e", user="id", **levels)
    different = []
    for question in questions:
        plan = accord.plan(SOMEBODY, in_accord(question), neighbors=neighbors)
        if integers(table, plan) != reference.summary(question, people, neighbors):
            different.append(question)
        if plan.times != reference.times(question, neighbors):
            different.append((question, plan.times))
    return different


def arrow(rows):
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, (_, kind) in TYPES.items()})


@pytest.mark.parametrize(("seed", "neighbors"), [(1, "replace"), (2, "add-remove")])
def test_in_duckdb(seed, neighbors):
    rows = rows_of_people(seed)
    assert differences(arrow(rows), rows, neighbors, asked()) == []


@pytest.mark.postgres
def test_in_postgresql(postgres_url):
    rows = rows_of_people(3)
    make(postgres_url, "lacking", TYPES)
    fill(postgres_url, "lacking", TYPES, [tuple(row[name] for name in TYPES) for row in rows])
    assert differences(at(postgres_url, "lacking"), rows, "replace", [*asked()][::4]) == []


@pytest.mark.parametrize("at_most", [1, 2])
def test_whoever_has_no_value_in_one_of_their_groups_is_in_the_others(at_most):
    """The most frequent group is that of most rows, whether they have a value or not."""
    columns = {
        "id": [1] * 5,
        "g": ["a", "a", "a", "b", "b"],
        "x": [None, nan, None, 1.0, 3.0],
        "e": [1.0] * 5,
    }
    table = accord.table(columns, epsilon="e", user="id")
    mean = accord.mean("x", (0, 4), step=1, by="g", keys=["b", "a"], at_most=at_most)
    in_b, in_a = (summary.rows() for summary in table.reader.summaries(mean))
    assert [*in_a] == [[0, 0]]
    assert [*in_b] == [[0, 0] if at_most == 1 else [1, 2]]
