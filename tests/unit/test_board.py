"""The sheet about a table: `accord report`."""

import json

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main

TIERS = {"public": float("inf"), "standard": 1.0, "strict": 0.1, "out": 0}
PEOPLE = {
    "id": [1, 2, 3, 4, 5, 6],
    "x": [3.0, 8.0, 1.0, 6.0, 2.0, 9.0],
    "tier": ["strict", "standard", "standard", "public", "out", "standard"],
}


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_CATALOG", raising=False)
    people = accord.table(PEOPLE, epsilon="tier", user="id", tiers=TIERS)
    ledger = accord.Ledger("accord.db")
    ledger.register(people, "people")
    asked = accord.workload([accord.mean("x", (0, 10)), accord.histogram("x", edges=[0, 5, 10])])
    people.release(
        accord.mean("x", (0, 10)), "affine", share=0.2, ledger=ledger, actor="Jo", purpose="<report>"
    )
    people.release(asked, "affine", share=0.1, ledger=ledger)
    ledger.withdraw(2)
    return ledger


def run(*words, code=0):
    result = CliRunner().invoke(main, ["report", *words])
    assert result.exit_code == code, result.output
    return result


def test_the_sheet_says_what_the_ledger_says(ledger):
    sheet = json.loads(run("people", "--ledger", "accord.db", "--json").stdout)
    assert {level["tier"]: level["people"] for level in sheet["levels"]} == {
        "public": 1,
        "standard": 3,
        "strict": 1,
        "out": 1,
    }
    first, second = sheet["releases"]
    assert (first["actor"], first["purpose"], first["state"]) == ("Jo", "<report>", "released")
    (receipt,) = ledger.history()[0]["receipts"]
    assert first["answers"] == [{name: receipt[name] for name in ("value", "interval", "rmse")}]
    assert len(second["answers"]) == 2 and (sheet["withdrawn"], sheet["raised"], sheet["lowered"]) == (
        1,
        0,
        0,
    )
    standard = next(level for level in sheet["levels"] if level["tier"] == "standard")
    assert standard["part_spent"] == pytest.approx(0.3) and standard["meaning"].startswith(
        "nobody can be more sure"
    )


def test_the_page_is_one_sheet_that_fetches_nothing(ledger, tmp_path):
    said = run("people", "--ledger", "accord.db", "--html", "board.html").output
    assert "Who chose what" in said and "What was asked: 2 releases" in said and "1 people withdrew" in said
    page = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "&lt;report&gt;" in page and "<report>" not in page
    assert not any(word in page for word in ("http", "src=", "href=", "<script"))
    assert "ε" not in page and "epsilon" not in page  # no jargon


def test_a_described_table_needs_no_url(ledger, tmp_path):
    (tmp_path / "people.csv").write_text("id,tier\n1,strict\n")
    (tmp_path / "accord.toml").write_text(
        'schema = 1\nledger = "accord.db"\n[tables.people]\nsource = "people.csv"\nabout = "Our patients"\n'
        'user = "id"\nepsilon = "tier"\ntiers = { strict = 0.1 }\n'
    )
    assert run("people").output.startswith("Our patients")


def test_what_is_not_there(ledger):
    assert "give --ledger URL" in run("people", code=2).stderr
    said = run("peple", "--ledger", "accord.db", code=1).stderr
    assert "no table 'peple' is registered" in said and "did you mean 'people'?" in said
