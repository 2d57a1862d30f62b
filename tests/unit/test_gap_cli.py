"""A private look at the gap between levels, on the command line: what Python does, and what is refused."""

import json
from importlib.resources import files

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main

PEOPLE = str(files("accord.data") / "people.parquet")
ASKED = ["check-gap", PEOPLE, "income", "--bounds", "0", "200000", "--epsilon", "epsilon"]


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(w) for w in words])
    assert result.exit_code == code, result.output + result.stderr
    return result


def test_a_look_in_words_and_as_one_document():
    text = run(*ASKED, "--share", "0.5", "--missing", "none").stdout
    assert "With 95% the gap between these levels is at most " in text
    assert "Who opted out was not read, and may differ more." in text
    look = json.loads(run(*ASKED, "--share", "0.5", "--confidence", "0.9", "--json").stdout)
    assert look["schema"] == 1 and look["confidence"] == 0.9 and look["width"] == 200_000
    assert 0 <= look["at_least"] <= look["at_most"] <= look["width"]
    assert look["tells"] == (look["at_most"] < 100_000) == (look["with_gap"] is not None)
    assert look["without_gap"].keys() == {"mechanism", "rmse"}
    for level in look["levels"]:
        low, high = level["within"]
        assert low <= level["mean"] <= high and level["too_strict"] == (high - low > 100_000)
    charges = {line["level"]: line["charge"] for line in look["receipt"]["charges"]}
    assert {float(level) / 2 for level in charges} == {float(charge) for charge in charges.values()}


def test_the_document_is_that_of_python():
    people = accord.table(PEOPLE, epsilon="epsilon")
    look = people.check_gap("income", (0, 200_000), share=0.5)
    document = json.loads(run(*ASKED, "--share", "0.5", "--json").stdout)
    assert look.describe().keys() == document.keys()
    assert [line["level"] for line in look.describe()["levels"]] == [
        line["level"] for line in document["levels"]
    ]


def test_a_ledger_books_it(tmp_path):
    url = str(tmp_path / "accord.db")
    run("ledger", "init", url)
    run("ledger", "register", url, "people", PEOPLE, "--epsilon", "epsilon", "--user", "person")
    booked = [*ASKED, "--user", "person", "--ledger", url, "--why", "to choose a gap", "--json"]
    first = json.loads(run(*booked).stdout)
    assert first["receipt"]["ledger"]
    again = run(*booked)
    assert json.loads(again.stdout)["at_most"] == first["at_most"] and "--fresh" not in again.stdout
    assert "mean of income by level" in run("ledger", "history", url).stdout


def test_of_a_described_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accord.toml").write_text(
        f"""
schema = 1
[tables.people]
source = "{PEOPLE}"
epsilon = "epsilon"
[tables.people.columns]
income = {{ bounds = [0, 200000], missing = "none" }}
"""
    )
    assert json.loads(run("check-gap", "people", "income", "--json").stdout)["width"] == 200_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--confidence", "1.5"], "confidence"),
        (["--share", "0.0000001"], "--share 1e-07 is not a fraction of a level"),
        (["--actor", "a"], "--actor and --purpose are booked in a ledger"),
        (["--per-person", "max"], "--per-person"),
    ],
)
def test_refusals_name_the_options(words, message):
    result = CliRunner().invoke(main, [*ASKED, *words])
    assert result.exit_code in (1, 2) and message in result.stderr
