"""Proportions on the command line, in accord.toml and in a batch: the same questions, and what is said of mistakes."""

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


def test_a_table_declares_that_no_value_is_missing(catalog):
    plan = document("plan", "people", "proportion", "age >= 65 AND income > 0")
    assert "accord.toml declares that no value is missing: age, income" in plan["assumptions"]
    of_some = document("plan", "people", "proportion", "age >= 65 AND children > 0")
    assert not any("declares that no value is missing" in line for line in of_some["assumptions"])
    by = document("plan", "people", "proportion", "age >= 65", "--by", "filing_status")
    assert by["query"]["keys"] == ["single", "joint"]


def test_a_batch_asks_for_proportions(catalog):
    (catalog / "questions.toml").write_text(
        """
schema = 1
table = "people"
[[questions]]
statistic = "proportion"
condition = "age >= 65"
"""
    )
    (question,) = read_batch("questions.toml").questions
    assert question == accord.proportion("age >= 65")
    (answer,) = json.loads(run("run", "questions.toml").stdout)["receipts"]
    assert 0 <= answer["value"] <= 1
