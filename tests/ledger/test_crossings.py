"""Withdrawals and records where they meet other things: engines, private presence, groups, missing values."""

import psycopg
import pytest

import accord
from accord.errors import BudgetError, LedgerError

KEY = "the key of tests of crossings"
SIGNED = {"actor": "a test", "purpose": "a try"}


def fill(url, out=()):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits (id text, stay double precision, ward text, tier text)")
        for k in range(40):
            tier = "out" if k in out else "standard"
            for night in (k % 7, None):
                row = [f"p{k}", night, "ab"[k % 2], tier]
                connection.execute("INSERT INTO visits VALUES (%s, %s, %s, %s)", row)


def described(url, tmp_path):
    address = url.replace("?", "?table=visits&", 1) if "?" in url else f"{url}?table=visits"
    (tmp_path / "accord.toml").write_text(
        f"""schema = 1
ledger = "accord.db"
[tables.visits]
source = "{address}"
user = "id"
epsilon = "tier"
tiers = {{ out = 0, standard = 1.0 }}
[tables.visits.columns.stay]
bounds = [0, 10]
step = 1
[tables.visits.columns.ward]
keys = ["a", "b"]
""",
        encoding="utf-8",
    )
    return accord.catalog(tmp_path / "accord.toml")["visits"]


@pytest.mark.postgres
def test_a_described_table_in_postgresql_with_a_withdrawal(postgres_url, tmp_path):
    """Until the table itself says so, whoever withdrew is in nothing, and the refusals say what to do."""
    fill(postgres_url)
    ledger = accord.Ledger(tmp_path / "accord.db", KEY)
    visits = described(postgres_url, tmp_path)
    ledger.register(visits, "visits")
    asked = [accord.mean("stay"), accord.mean("stay", by="ward"), accord.count(where="stay > 3")]
    for question in asked:
        visits.release(question, "minimum", share=0.1, ledger=ledger, **SIGNED, fresh=True)
    ledger.withdraw("p3")
    with pytest.raises(BudgetError, match="1 person has withdrawn"):
        visits.release(asked[0], "minimum", share=0.1, ledger=ledger, fresh=True)
    with pytest.raises(LedgerError, match="if somebody has withdrawn, register it anew"):
        visits.release(visits.plan(asked[0], "minimum", 0.1, remaining=ledger), ledger=ledger, fresh=True)
    fill(postgres_url, out=[3])
    anew = described(postgres_url, tmp_path)
    ledger.register(anew, "visits")
    for question in asked:
        anew.release(question, "minimum", share=0.1, ledger=ledger, fresh=True)
    assert ledger.person("p3").spent == 300_000 and ledger.person("p4").spent == 600_000
    assert [each.least for each in ledger.person("p4").releases] == [100_000] * 6
    assert ledger.verify().problems == ()


def test_what_is_left_by_private_groups_and_with_missing_values(tmp_path):
    data = {
        "id": [k // 2 for k in range(60)],
        "x": [None if k % 5 == 0 else k % 9 for k in range(60)],
        "g": ["ab"[k % 2] for k in range(60)],
        "e": [1.0] * 60,
    }
    people = accord.table(data, epsilon="e", user="id")
    ledger = accord.Ledger(tmp_path / "accord.db", KEY)
    ledger.register(people, "people")
    ledger.withdraw(0, 1)
    for question in (
        accord.mean("x", (0, 10), by="g", keys=["a", "b"], at_most=2),
        accord.median("x", (0, 10), step=1, where="g = 'a'"),
        accord.workload([accord.mean("x", (0, 10)), accord.count(where="x > 3")]),
        accord.mean("x", (0, 10), by="g", keys=["a", "b"], missing="none"),
    ):
        plan = people.plan(question, share=0.2, remaining=ledger)
        people.release(plan, ledger=ledger, fresh=True)
    assert ledger.person(0).spent == ledger.person(1).spent == 0
    assert ledger.remaining(people).opted_out == 2 and ledger.verify().problems == ()
