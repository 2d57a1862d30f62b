"""Questions that leave it to the table to say what is public about its columns."""

import copy
import pickle

import pytest

import accord
from accord.errors import QueryError
from accord.people.description import Description
from accord.statistics.declared import Declared, Undescribed

COLUMNS = {
    "stay": Declared("number", (0, 60), (0, 365), 1, 5.0),
    "age": Declared(bounds=(0, 120), missing="none"),
    "cost": Declared(bounds=(0, 1000), total=(0, 5000), missing=0),
    "ward": Declared(keys=("a", "b")),
    "day": Declared(bounds=("2020-01-01", "2026-01-01")),
}
DATA = {
    "id": [1, 1, 2, 3],
    "stay": [3.0, 5.0, 8.0, 30.0],
    "age": [31.0, 31.0, 45.0, 62.0],
    "cost": [10.0, 20.0, None, 5.0],
    "ward": ["a", "b", "b", "a"],
    "day": ["2024-01-01", "2024-02-01", "2024-03-01", "2025-01-01"],
    "level": [1.0, 1.0, 2.0, 1.0],
}


def described(user=None):
    people = accord.table(DATA, epsilon="level", user=user)
    people.description = Description("people", "accord.toml", columns=COLUMNS)
    return people


SHORT = {
    "mean": (lambda: accord.mean("stay"), lambda: accord.mean("stay", (0, 60), std=5.0, step=1)),
    "sum": (lambda: accord.sum("stay"), lambda: accord.sum("stay", (0, 60), std=5.0, step=1)),
    "variance": (lambda: accord.variance("stay"), lambda: accord.variance("stay", (0, 60), step=1)),
    "std": (lambda: accord.std("stay"), lambda: accord.std("stay", (0, 60), step=1)),
    "min": (lambda: accord.min("stay"), lambda: accord.min("stay", (0, 60), step=1)),
    "max of dates": (lambda: accord.max("day"), lambda: accord.max("day", ("2020-01-01", "2026-01-01"))),
    "median": (lambda: accord.median("stay"), lambda: accord.median("stay", (0, 60), step=1)),
    "quantile": (lambda: accord.quantile("stay", 0.9), lambda: accord.quantile("stay", 0.9, (0, 60), step=1)),
    "a missing value": (lambda: accord.mean("cost"), lambda: accord.mean("cost", (0, 1000), missing=0)),
    "one's own step": (
        lambda: accord.mean("stay", step=2),
        lambda: accord.mean("stay", (0, 60), std=5.0, step=2),
    ),
    "one's own missing": (
        lambda: accord.mean("cost", missing="exclude"),
        lambda: accord.mean("cost", (0, 1000)),
    ),
    "covariance": (
        lambda: accord.covariance("stay", "cost"),
        lambda: accord.covariance("stay", "cost", bounds={"stay": (0, 60), "cost": (0, 1000)}),
    ),
    "correlation": (
        lambda: accord.correlation("cost", "stay"),
        lambda: accord.correlation("cost", "stay", bounds={"stay": (0, 60), "cost": (0, 1000)}),
    ),
    "covariance with one's own bounds": (
        lambda: accord.covariance("stay", "cost", bounds={"cost": (0, 9)}, by="ward"),
        lambda: accord.covariance(
            "stay", "cost", bounds={"stay": (0, 60), "cost": (0, 9)}, by="ward", keys=["a", "b"]
        ),
    ),
    "proportion": (
        lambda: accord.proportion("stay > 5", by="ward"),
        lambda: accord.proportion("stay > 5", by="ward", keys=["a", "b"]),
    ),
    "groups": (lambda: accord.count(by="ward"), lambda: accord.count(by="ward", keys=["a", "b"])),
    "groups of bounds": (
        lambda: accord.mean("stay", by="ward"),
        lambda: accord.mean("stay", (0, 60), step=1, by="ward", keys=["a", "b"]),  # groups may differ more
    ),
    "some people": (
        lambda: accord.mean("stay", where="age > 40"),
        lambda: accord.mean("stay", (0, 60), step=1, where="age > 40"),
    ),
    "one's own bounds": (
        lambda: accord.mean("stay", (0, 10), by="ward"),
        lambda: accord.mean("stay", (0, 10), by="ward", keys=["a", "b"]),
    ),
    "categories": (
        lambda: accord.histogram("ward"),
        lambda: accord.histogram("ward", categories=["a", "b"]),
    ),
    "regression": (
        lambda: accord.regression("stay", iter(["age", "ward"])),
        lambda: accord.regression(
            "stay", ["age", "ward"], {"stay": (0, 60), "age": (0, 120)}, {"ward": ["a", "b"]}
        ),
    ),
    "a part of a regression": (
        lambda: accord.regression("stay", ["age"], bounds={"stay": (0, 10)}),
        lambda: accord.regression("stay", ["age"], {"stay": (0, 10), "age": (0, 120)}),
    ),
    "workload": (
        lambda: accord.workload([accord.count(by="ward"), accord.mean("stay", (0, 9))], [2, 1]),
        lambda: accord.workload(
            [accord.count(by="ward", keys=["a", "b"]), accord.mean("stay", (0, 9))], [2, 1]
        ),
    ),
}


@pytest.mark.parametrize("name", SHORT)
def test_a_table_says_what_is_left_out(name):
    short, long = (make() for make in SHORT[name])
    assert isinstance(short, Undescribed)
    assert described().described(short) == long
    assert described().plan(short).query == long
    assert pickle.loads(pickle.dumps(short)).described(COLUMNS) == copy.copy(short).described(COLUMNS) == long


@pytest.mark.parametrize("name", SHORT)
def test_without_a_description_it_is_refused_before_anything_is_read(name):
    people = accord.table(DATA, epsilon="level")
    for ask in (people.plan, people.release, people.check, lambda q: accord.plan(accord.Spec.of([1]), q)):
        with pytest.raises(
            QueryError, match=r"needs bounds(=| of)|needs keys=|takes edges=|has n(o|either) bounds"
        ):
            ask(SHORT[name][0]())
    assert not people.known


def test_bounds_of_values_are_none_of_sums():
    """A person's rows may add up to more than any bound of a single value."""
    people = described(user="id")
    assert people.described(accord.sum("stay")) == accord.sum("stay", (0, 365))
    assert people.described(accord.mean("stay", per_person="sum")) == accord.mean(
        "stay", (0, 365), per_person="sum"
    )
    assert people.described(accord.mean("stay")) == accord.mean(
        "stay", (0, 60)
    )  # a mean of whole numbers is none
    assert people.described(accord.median("stay", by="ward")) == accord.median(
        "stay", (0, 60), by="ward", keys=["a", "b"]
    )
    assert people.described(accord.max("stay")) == accord.max("stay", (0, 60), step=1)
    assert people.described(accord.mean("stay", per_person="min")) == accord.mean(
        "stay", (0, 60), step=1, per_person="min"
    )
    assert people.described(accord.mean("stay", step=0.5)) == accord.mean("stay", (0, 60), step=0.5)
    assert people.described(accord.sum("stay", by="ward")) == accord.sum(
        "stay", (0, 365), by="ward", keys=["a", "b"]
    )
    with pytest.raises(QueryError, match=r"sum of each person's rows.*Declare total = \[low, high\]"):
        people.described(accord.sum("age"))
    with pytest.raises(QueryError, match="what a missing value counts as is declared of single values"):
        people.described(accord.sum("cost"))
    assert people.described(accord.sum("cost", missing="exclude")) == accord.sum("cost", (0, 5000))


def test_what_is_declared_to_be_complete_is_taken_so():
    plan = described().plan(accord.mean("age", (0, 120)))
    assert plan.query == accord.mean("age", (0, 120))  # as it was asked
    assert "accord.toml declares that no value is missing: age" in plan.assumptions
    assert plan.rmse < described().plan(accord.mean("stay", (0, 120))).rmse


def test_a_description_is_named_without_its_place(tmp_path):
    """Plans and receipts are read by people who are not to know where files lie."""
    (tmp_path / "people.csv").write_text("id,age\n1,30\n2,40\n")
    text = 'schema = 1\n[tables.people]\nsource = "people.csv"\nepsilon = 1\n'
    declared = '[tables.people.columns.age]\nbounds = [0, 100]\nmissing = "none"\n'
    (tmp_path / "accord.toml").write_text(text + declared)
    assumptions = accord.catalog(tmp_path / "accord.toml")["people"].plan(accord.mean("age")).assumptions
    assert "accord.toml declares that no value is missing: age" in assumptions
    assert not any(str(tmp_path) in sentence for sentence in assumptions)


def test_an_undescribed_question_says_what_it_is():
    question = accord.mean("stay", where="age > 3")
    assert (
        repr(question)
        == "<mean(column='stay', where='age > 3'), to be asked of a table that declares the rest>"
    )
    with pytest.raises(QueryError, match=r"mean\('stay'\) needs bounds=\(low, high\)"):
        question.label  # noqa: B018
    with pytest.raises(TypeError, match="bound"):
        accord.mean("stay", bound=(0, 1))
    with pytest.raises(QueryError, match="is not a list of columns"):
        accord.regression("stay", "age")


def test_a_described_table_is_pickled_with_its_description(tmp_path):
    (tmp_path / "people.csv").write_text("stay,level\n3,1\n8,1\n")
    people = accord.table(tmp_path / "people.csv", epsilon="level")
    people.description = Description("people", "accord.toml", columns=COLUMNS)
    again = pickle.loads(pickle.dumps(people))
    assert again.description == people.description
    assert again.described(accord.mean("stay")) == people.described(accord.mean("stay"))
