"""What a ledger tells one person: everything that was released about them, and what it cost them."""

import json
import random
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

import accord
from accord.budget import MICRO
from accord.cli import main
from accord.errors import LedgerError

MEAN = accord.mean("x", bounds=(0, 10), missing="none")
SIGNED = {"actor": "officer", "purpose": "they asked"}


def table(levels, tiers=None):
    """A table of people by their ids."""
    columns = {"id": [*levels], "x": [5.0] * len(levels), "e": [*levels.values()]}
    return accord.table(columns, epsilon="e", user="id", tiers=tiers)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request, tmp_path):
    if request.param == "sqlite":
        return accord.Ledger(tmp_path / "accord.db")
    return accord.Ledger(request.getfixturevalue("postgres_url"), key="the key of a test of people")


def test_everything_about_somebody(ledger):
    people = table({"ann": "standard", "bob": "strict"}, {"standard": 1.0, "strict": 0.1})
    ledger.register(people, "people")
    people.release(MEAN, "proportional", share=0.3, ledger=ledger, **SIGNED, fresh=True)
    people.release(
        accord.workload([MEAN, accord.count(where="x > 3")]),
        "proportional",
        share=0.2,
        ledger=ledger,
        fresh=True,
    )
    record = ledger.person("ann", **SIGNED)
    assert record.memberships == (("people", "standard", MICRO, False),)
    assert (record.level, record.spent, record.left, record.has_withdrawn) == (MICRO, 500_000, 500_000, False)
    first, second = record.releases
    assert (first.questions, first.actor, first.purpose) == (("mean of x",), "officer", "they asked")
    assert (first.least, first.most, first.state) == (300_000, 300_000, "released")
    assert second.questions == ("mean of x", "count of people where x > 3") and second.least == 200_000
    assert ledger.person("bob").spent == 50_000
    assert ledger.verify().problems == ()


def test_a_look_up_is_booked_also_of_nobody(ledger):
    ledger.register(table({1: 1.0}), "people")
    ledger.person(1, **SIGNED)
    with pytest.raises(LedgerError, match=r"known to no table.*The look-up is booked") as refusal:
        ledger.person("carol-7")
    assert "carol-7" not in str(refusal.value)
    events = ledger.history(kind="person")
    assert [(e["known"], e["actor"], e["purpose"]) for e in events] == [
        (True, "officer", "they asked"),
        (False, None, None),
    ]
    assert "carol" not in json.dumps(ledger.export())
    ledger.require("purpose", **SIGNED)
    with pytest.raises(LedgerError, match="requires purpose"):
        ledger.person(1, actor="me")
    assert len(ledger.history(kind="person")) == 2


def test_who_left_and_who_withdrew(tmp_path):
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(table({1: 0.5, 2: 1.0}), "a")
    ledger.register(table({1: 1.0, 2: 1.0}), "b")
    ledger.register(table({2: 1.0}), "a")
    assert [(m.table, m.level, m.is_left) for m in ledger.person(1).memberships] == [
        ("a", 500_000, True),
        ("b", MICRO, False),
    ]
    assert ledger.person(1).left == 500_000
    ledger.withdraw(1, **SIGNED)
    record = ledger.person(1)
    assert record.has_withdrawn and record.left == 0
    assert "They have withdrawn" in str(record) and "left: the level goes on counting" in str(record)


@pytest.mark.parametrize("seed", range(12))
def test_costs_are_those_of_the_person(tmp_path, seed):
    """Against an account that is kept by person: within the range that is told, which is a number where it can be."""
    choose = random.Random(seed)
    ledger = accord.Ledger(tmp_path / "accord.db")
    levels = [0.0, 0.25, 0.5, 1.0]
    versions = {name: {} for name in "ab"}
    paid = {k: {} for k in range(8)}

    def register(name):
        versions[name] = {k: choose.choice(levels) for k in range(8) if choose.random() < 0.8} or {0: 1.0}
        ledger.register(table(versions[name]), name, raise_levels=True, **SIGNED)

    for name in "ab":
        register(name)
    exact = 0
    for _ in range(14):
        name = choose.choice("ab")
        if choose.random() < 0.35:
            register(name)
            continue
        people = table(versions[name])
        if not people.spec().total:
            continue
        mechanism = choose.choice(["proportional", "threshold", "minimum"])
        try:
            answer = people.release(
                MEAN, mechanism, share=choose.choice([0.05, 0.1]), ledger=ledger, fresh=True
            )
        except accord.errors.BudgetError:
            continue
        entry = ledger.history()[-1]["entry"]
        for k, level in versions[name].items():
            if level and answer.charges[level]:
                paid[k][entry] = round(answer.charges[level] * MICRO)
    for k in paid:
        if all(k not in version for version in versions.values()) and not paid[k]:
            continue
        record = ledger.person(k)
        assert record.spent == sum(paid[k].values())
        told = {each.entry: each for each in record.releases}
        assert set(paid[k]) <= set(told)
        for entry, each in told.items():
            assert each.least <= paid[k].get(entry, 0) <= each.most
            exact += each.least == each.most
    assert exact or not any(paid.values())
    assert ledger.verify().problems == ()


class Tags(HTMLParser):
    """What a page would fetch, and its text."""

    def __init__(self):
        super().__init__()
        self.fetched, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.text += data


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = accord.Ledger("accord.db")
    people = table({"ann": "<b>", "bob": "strict"}, {"<b>": 1.0, "strict": 0.1})
    ledger.register(people, "people")
    people.release(MEAN, "proportional", share=0.3, ledger=ledger, purpose="a <script> report", fresh=True)

    def run(*words, code=0):
        result = CliRunner().invoke(main, ["ledger", "person", "accord.db", *words])
        assert result.exit_code == code, result.output
        return result

    said = run("ann", "--html", "page.html").output
    assert "Spent 0.3, left 0.7." in said and "nobody can be more sure than 57.5 %" in said
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert "<script>" not in page and not tags.fetched
    assert "a <script> report" in tags.text and "<b>" in tags.text and "ann" not in page
    document = json.loads(run("ann", "--json").stdout)
    assert document["releases"][0]["charge"] == ["0.3", "0.3"] and document["left"] == "0.7"
    assert "known to no table" in run("eve", code=1).stderr
    assert "cannot be written" in run("ann", "--html", "nowhere/page.html", code=1).stderr
