"""Proportions and covariances on the command line, in accord.toml and in a batch: the same questions, and what is said of mistakes."""

import json
from importlib.resources import files

import pytest
from click.testing import CliRunner

import accord
from accord.batches import read_batch
from accord.cli import main

PEOPLE = str(files("accord.data") / "people.parquet")
LEVELS = ["--epsilon", "epsilon"]


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(w) for w in words])
    assert result.exit_code == code, result.output + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def document(*words):
    return json.loads(run(*words, "--json").stdout)


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """A folder with an accord.toml, in which the commands are run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accord.toml").write_text(
        f"""
schema = 1
[tables.people]
source = "{PEOPLE}"
epsilon = "epsilon"
[tables.people.columns]
income = {{ bounds = [0, 200000], missing = "none" }}
age = {{ bounds = [18, 85], missing = "none" }}
filing_status = {{ keys = ["single", "joint"] }}
"""
    )
    return tmp_path


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["age >= 65"], accord.proportion("age >= 65")),
        (["age >= 65", "--missing", "none"], accord.proportion("age >= 65", missing="none")),
        (["age >= 65", "--where", "income > 0"], accord.proportion("age >= 65", where="income > 0")),
        (
            ["age >= 65", "--by", "filing_status", "--keys", "single,joint"],
            accord.proportion("age >= 65", by="filing_status", keys=["single", "joint"]),
        ),
    ],
)
def test_a_proportion_is_asked_with_its_condition(words, query):
    asked = document("plan", PEOPLE, "proportion", *words, *LEVELS)["query"]
    assert asked == query.describe()


def test_a_proportion_is_released():
    text = run("release", PEOPLE, "proportion", "age >= 65", *LEVELS).stdout
    assert "proportion of people with age >= 65 by" in text and "95 % interval 0." in text


def test_a_proportion_needs_a_condition():
    refused = run("plan", PEOPLE, "proportion", *LEVELS, code=2)
    assert "proportion needs a CONDITION: … proportion 'age >= 65' …" in refused.stderr
    refused = run("plan", PEOPLE, "proportion", "age >= 65", "--bounds", 0, 1, *LEVELS, code=2)
    assert "--bounds has no meaning for proportion." in refused.stderr


OF_TWO = ["--bounds", 18, 85, "--bounds", 0, 200_000]


@pytest.mark.parametrize("name", ["covariance", "correlation"])
def test_a_covariance_is_of_two_columns_with_bounds_each(name):
    bounds = {"age": (18, 85), "income": (0, 200_000)}
    asked = document("plan", PEOPLE, name, "age", "income", *OF_TWO, "--missing", "none", *LEVELS)["query"]
    assert asked == getattr(accord, name)("age", "income", bounds=bounds, missing="none").describe()
    text = run("release", PEOPLE, name, "age", "income", *OF_TWO, *LEVELS).stdout
    assert f"{name} of age and income by" in text and "95 % interval" in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["covariance", "age", *OF_TWO], "covariance needs two columns: … covariance COLUMN OTHER …"),
        (
            ["covariance", "age", "income"],
            "covariance needs --bounds LO HI, from public knowledge, never from the data.",
        ),
        (
            ["covariance", "age", "income", "--bounds", 0, 1],
            "covariance takes --bounds LO HI twice, for COLUMN and for OTHER; here it stands 1 times.",
        ),
        (["mean", "age", *OF_TWO], "mean takes --bounds LO HI once; here it stands 2 times."),
        (["mean", "age", "income", "--bounds", 0, 1], "mean takes one COLUMN, and 2 are named."),
    ],
)
def test_mistakes_about_two_columns(words, text):
    assert text in run("plan", PEOPLE, *words, *LEVELS, code=2).stderr


def test_a_table_declares_the_bounds_of_both_columns(catalog):
    bounds = {"age": (18, 85), "income": (0, 200_000)}
    asked = document("plan", "people", "covariance", "age", "income")
    assert asked["query"] == accord.covariance("age", "income", bounds=bounds).describe()
    assert "accord.toml declares that no value is missing: age, income" in asked["assumptions"]
    people = accord.catalog("accord.toml")["people"]
    assert people.plan(accord.covariance("age", "income")).query == accord.covariance("age", "income", bounds)


def test_a_table_declares_that_no_value_is_missing(catalog):
    plan = document("plan", "people", "proportion", "age >= 65 AND income > 0")
    assert "accord.toml declares that no value is missing: age, income" in plan["assumptions"]
    of_some = document("plan", "people", "proportion", "age >= 65 AND children > 0")
    assert not any("declares that no value is missing" in line for line in of_some["assumptions"])
    by = document("plan", "people", "proportion", "age >= 65", "--by", "filing_status")
    assert by["query"]["keys"] == ["single", "joint"]


def test_a_batch_asks_for_them(catalog):
    (catalog / "questions.toml").write_text(
        """
schema = 1
table = "people"
[[questions]]
statistic = "proportion"
condition = "age >= 65"
[[questions]]
statistic = "covariance"
column = "age"
other = "income"
bounds = { age = [18, 100] }
"""
    )
    asked = read_batch("questions.toml").asked_of(accord.catalog("accord.toml")["people"]).queries
    bounds = {"age": (18, 100), "income": (0, 200_000)}
    assert asked == (accord.proportion("age >= 65"), accord.covariance("age", "income", bounds))
    share, covariance = json.loads(run("run", "questions.toml").stdout)["receipts"]
    assert 0 <= share["value"] <= 1 and covariance["interval"]["bounds"][0] < covariance["value"]
