"""Which groups and categories people with several rows are in: their most frequent ones, on every engine.

Not the first of a list: whichever order groups are declared in, and whoever else is there, it is the same.
"""

from collections import Counter
from itertools import permutations, product
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from engines.test_postgres import at, fill, make
from hypothesis import given, settings
from hypothesis import strategies as st

import accord
from accord.errors import QueryError
from accord.lab.audit.reference import tie

TYPES = {
    "id": ("text", pa.string()),
    "c": ("text", pa.string()),
    "n": ("bigint", pa.int64()),
    "x": ("double precision", pa.float64()),
    "e": ("double precision", pa.float64()),
}
TEXTS, NUMBERS = ("a", "b", "it's"), (1, 2.5, 40)
QUESTIONS = {
    "histogram": lambda keys, k: accord.histogram("c", categories=keys, at_most=k),
    "count": lambda keys, k: accord.count(by="c", keys=keys, at_most=k),
    "mean": lambda keys, k: accord.mean("x", (0, 9), step=1, by="c", keys=keys, at_most=k),
    "sum of some": lambda keys, k: accord.sum(
        "x", (0, 9), step=1, where="x > 2", by="c", keys=keys, at_most=k
    ),
    "median": lambda keys, k: accord.median("x", (0, 9), step=1, by="c", keys=keys, at_most=k),
    "numbers": lambda keys, k: accord.histogram(
        "n", categories=[NUMBERS[TEXTS.index(key)] for key in keys], at_most=k
    ),
}


def rows_of(seed, people=30):
    """Of everyone up to five rows, of declared groups and another."""
    pick = Random(seed)
    return [
        (
            f"p{who}",
            pick.choice([*TEXTS, "z", None]),
            pick.choice([1, 2, 40, None]),
            float(pick.randrange(10)),
            e,
        )
        for who, e in ((who, (0.5, 2.0)[who % 2]) for who in range(people))
        for _ in range(pick.randrange(1, 6))
    ]


def arrow(rows):
    columns = zip(TYPES.items(), zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(column, kind) for (name, (_, kind)), column in columns})


def by_key(table, question, keys, at_most):
    """{(key, level, output): amount}, wherever a key stands in the list."""
    query = QUESTIONS[question](list(keys), at_most)
    amounts = Counter()
    for place, summary in enumerate(table.reader.summaries(query)):
        entries = zip(summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True)
        for level, output, amount in entries:
            is_cell = question in ("histogram", "numbers")
            amounts[(keys[output], level, 0) if is_cell else (keys[place], level, output)] += amount
    return Counter({key: amount for key, amount in amounts.items() if amount})


ORDERS = tuple(permutations(TEXTS))


def integers(table, orders=ORDERS):
    """Of every question, the same for every order of the list."""
    found = {}
    for question, at_most in product(QUESTIONS, (1, 2)):
        found[question, at_most], *others = (by_key(table, question, keys, at_most) for keys in orders)
        assert all(other == found[question, at_most] for other in others), (question, at_most)
    return found


@settings(max_examples=2)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_a_list_decides_nothing(seed):
    integers(accord.table(arrow(rows_of(seed)), epsilon="e", user="id"))


@pytest.mark.postgres
def test_in_postgresql_it_is_the_same(postgres_url):
    rows = rows_of(1)
    make(postgres_url, "visits", TYPES)
    fill(postgres_url, "visits", TYPES, rows)
    table = accord.table(at(postgres_url, "visits"), epsilon="e", user="id")
    assert integers(table, [TEXTS, TEXTS[::-1]]) == integers(
        accord.table(arrow(rows), epsilon="e", user="id")
    )


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark_it_is_the_same(session):
    rows = rows_of(1)
    frame = session.createDataFrame(rows, "id string, c string, n bigint, x double, e double")
    table = accord.table(frame, epsilon="e", user="id")
    assert integers(table, [TEXTS, TEXTS[::-1]]) == integers(
        accord.table(arrow(rows), epsilon="e", user="id")
    )


def test_nobody_else_decides_where_somebody_is():
    """Each alone is where they are among the others."""
    rows, keys = rows_of(3), list(TEXTS)
    everyone = accord.table(arrow(rows), epsilon="e", user="id")
    together = by_key(everyone, "mean", keys, 2)
    alone = Counter()
    for who in {row[0] for row in rows}:
        table = accord.table(arrow([row for row in rows if row[0] == who]), epsilon="e", user="id")
        for (key, _, output), amount in by_key(table, "mean", keys, 2).items():
            alone[key, output] += amount
    summed = Counter()
    for (key, _, output), amount in together.items():
        summed[key, output] += amount
    assert alone == summed


def one_person(categories, declared, at_most=1, name="ann", **options):
    """In which cells somebody with such rows is."""
    rows = {"id": [name] * len(categories), "c": list(categories), "e": [1.0] * len(categories)}
    table = accord.table(rows, epsilon="e", user="id")
    summary = table.reader.summary(accord.histogram("c", categories=declared, at_most=at_most, **options))
    return [([*declared, "others"])[k] for k in sorted(summary.output.tolist())]


def test_the_most_frequent_counts_and_of_equal_ones_the_lower_hash():
    assert one_person("abb", ["a", "b"]) == one_person("abb", ["b", "a"]) == ["b"]
    assert one_person("abbzzz", ["a", "b"]) == ["b"]  # what is not declared does not count
    assert one_person("zz", ["a", "b"]) == [] and one_person("zz", ["a", "b"], missing="others") == ["others"]
    assert one_person("abbcc", ["a", "b", "c"], 2) == ["b", "c"]
    assert one_person("aab", ["a", "b", "c"], 3) == ["a", "b"]
    assert one_person("zab", ["a", "b"], 2, missing="others") == ["a", "b"]
    for name in ("ann", "bob", "cyd"):
        lower = min("ab", key=lambda category: tie(name, category))
        assert one_person("ab", ["a", "b"], name=name) == one_person("ba", ["b", "a"], name=name) == [lower]
    assert {one_person("ab", ["a", "b"], name=str(k))[0] for k in range(6)} == {"a", "b"}


def test_only_rows_that_a_question_is_about_are_counted():
    rows = {"id": ["p"] * 4, "c": ["a", "a", "a", "b"], "x": [0, 1, 1, 5], "e": [1.0] * 4}
    table = accord.table(rows, epsilon="e", user="id")
    where = {"where": "x > 3", "by": "c", "keys": ["a", "b"]}
    of_a, of_b = table.reader.summaries(accord.count(**where))
    assert of_a.amount.sum() == 0 and of_b.amount.sum() > 0
    of_a, of_b = table.reader.summaries(accord.sum("x", (0, 9), step=1, by="c", keys=["b", "a"]))
    assert of_a.amount.sum() == 0 and [*of_b.rows()] == [[1, 2]]  # the rows of that group alone


def test_many_groups_are_joined_and_the_same_as_few():
    """Also as the categories of a histogram: no row is compared with ten thousand keys one by one."""
    pick = np.random.default_rng(1)
    who, c = pick.integers(0, 500, 3_000), pick.integers(0, 40, 3_000).astype(str)
    columns = {"id": who, "c": c, "e": np.ones(3_000)}
    table = accord.table(columns, epsilon="e", user="id")
    few = [str(k) for k in range(40)]
    many = [*few, *(f"nobody {k}" for k in range(10_000))][::-1]
    for at_most in (1, 2):
        of_few = {
            few[k]: s.amount.sum()
            for k, s in enumerate(table.reader.summaries(accord.count(by="c", keys=few, at_most=at_most)))
        }
        of_many = {
            many[k]: s.amount.sum()
            for k, s in enumerate(table.reader.summaries(accord.count(by="c", keys=many, at_most=at_most)))
        }
        assert of_few == {key: amount for key, amount in of_many.items() if key in of_few}
        cells = [
            table.reader.summary(accord.histogram("c", categories=keys, at_most=at_most))
            for keys in (few, many)
        ]
        counts = [
            {keys[k]: n for k, n in zip(s.output.tolist(), s.amount.tolist(), strict=True)}
            for keys, s in zip((few, many), cells, strict=True)
        ]
        assert counts[0] == counts[1]


def test_a_ledger_charges_for_all_groups(tmp_path):
    """And what is left, person by person, is read by the same people."""
    table = accord.table(arrow(rows_of(5)), epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "books.db")
    ledger.register(table, "visits")
    for query in (QUESTIONS["mean"](["a", "b"], 2), QUESTIONS["histogram"](["a", "b", "it's"], 2)):
        released = table.release(query, "proportional", share=0.25, ledger=ledger)
        assert dict(released.charges) == {0.5: 0.125, 2.0: 0.5}
    left = accord.plan(ledger.remaining(table), QUESTIONS["mean"](["a", "b"], 2), "proportional")
    assert dict(table.release(left, ledger=ledger).charges) == {0.25: 0.25, 1.0: 1.0}


def test_public_groups_have_their_most_frequent_categories():
    columns = {"id": [1, 1, 1, 2, 2], "p": [1, 1, 1, 2, 2], "c": ["b", "a", "b", "a", "c"], "e": [1.0] * 5}
    table = accord.table(columns, epsilon="e", user="id")
    public = {"by": "p", "keys": [1, 2], "membership": "public"}
    released = table.release(accord.histogram("c", categories=["a", "b"], **public), "minimum")
    assert [row["p"] for row in released.value] == [1, 2]
    with pytest.raises(QueryError, match=r"2 people have rows in several .* in the most frequent of theirs"):
        table.plan(accord.count(by="c", keys=["a", "b", "c"], membership="public"))


# ---- what rows come to ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("per_person", "cell"), [("mean", 2), ("sum", 6), ("min", 1), ("max", 3)])
@pytest.mark.parametrize("statistic", ["mean", "median", "min", "max", "variance", "std"])
def test_per_person_chooses_what_rows_come_to(statistic, per_person, cell):
    table = accord.table({"id": [7, 7, 7, 8], "x": [1, 2, 3, None], "e": [1.0] * 4}, epsilon="e", user="id")
    query = getattr(accord, statistic)("x", (0, 9), step=1, missing=0, per_person=per_person)
    summary = table.reader.summaries(query, by_cell=True)[0]
    assert summary.output.tolist() == [0, cell]
    for missing, others in (("middle", {3}), ("exclude", set())):
        edges = accord.histogram("x", edges=[0, 1.5, 2.5, 4, 9], missing=missing, per_person=per_person)
        cells = {*table.reader.summary(edges).output.tolist()}
        assert cells == others | {{1: 0, 2: 1, 3: 2, 6: 3}[cell]}


def test_sums_of_whole_numbers_are_exact_at_an_edge():
    """Whatever the edges are: 49 ones are below 49.5, and 50 are not below 50."""
    for rows, edges in product((49, 50, 51), ([0, 50, 97], [-3, 0.1, 50, 1_003], [0, 0.001, 50, 60])):
        columns = {"id": [1] * rows, "x": [1] * rows, "e": [1.0] * rows}
        table = accord.table(columns, epsilon="e", user="id")
        (cell,) = table.reader.summary(accord.histogram("x", edges=edges, per_person="sum")).output.tolist()
        assert cell == sum(rows >= edge for edge in edges[1:-1])
