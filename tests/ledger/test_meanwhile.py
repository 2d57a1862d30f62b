"""What happens to a release while it reads, and what public groups may not be used for."""

import sys

import pytest

import accord
from accord.errors import LedgerError

release_module = sys.modules["accord.release.release"]
SIGNED = {"actor": "officer", "purpose": "they agreed"}
MEAN = {"column": "x", "bounds": (0, 10), "missing": "none"}
BY_WARD = accord.mean(**MEAN, by="ward", keys=["a", "b"], membership="public")


def table(ids, level=1.0, wards="ab"):
    ids = list(ids)
    columns = {"id": ids, "x": [5.0] * len(ids), "e": [level] * len(ids)}
    columns["ward"] = [wards[k % len(wards)] for k in ids]
    return accord.table(columns, epsilon="e", user="id")


@pytest.fixture
def ledger(tmp_path):
    return accord.Ledger(tmp_path / "accord.db")


@pytest.fixture
def meanwhile(monkeypatch):
    """Have something done after the k-th answer of a release was computed, before any is booked."""

    def arrange(act, after=1):
        carry_out, calls = release_module.carry_out, []

        def hooked(*args):
            answer = carry_out(*args)
            calls.append(1)
            if len(calls) == after:
                act()
            return answer

        monkeypatch.setattr(release_module, "carry_out", hooked)

    return arrange


def test_who_leaves_and_withdraws_while_a_release_reads_is_in_no_answer(ledger, meanwhile):
    people = table(range(20))
    ledger.register(people, "people")

    def leave_and_withdraw():
        ledger.register(table(range(1, 20)), "people")
        ledger.withdraw(0)

    meanwhile(leave_and_withdraw)
    with pytest.raises(LedgerError, match="somebody of this table has withdrawn while it was read"):
        people.release(accord.mean(**MEAN), "minimum", share=0.2, ledger=ledger, fresh=True)
    assert ledger.history()[-1]["state"] == "failed" and ledger.verify().problems == ()


def test_answers_about_public_groups_are_booked_together(ledger, monkeypatch):
    """Whoever withdraws does so before all of them are booked, or after."""
    people = table(range(20))
    ledger.register(people, "people")
    people.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds[-4:] == ["reserve", "reserve", "release", "release"]
    writes, writing = [], type(ledger.books).writing

    def counted(books):
        writes.append(1)
        return writing(books)

    monkeypatch.setattr(type(ledger.books), "writing", counted)
    people.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    assert len(writes) == 2  # reserve, settle


def test_one_who_withdraws_fails_all_groups_of_the_release(ledger, meanwhile):
    people = table(range(20))
    ledger.register(people, "people")
    meanwhile(lambda: ledger.withdraw(0), after=2)
    with pytest.raises(LedgerError, match="has withdrawn while it was read"):
        people.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    assert [each["state"] for each in ledger.history()] == ["failed", "failed"]


def test_a_public_group_does_not_take_the_place_of_a_table(ledger):
    """Everyone of ward a has opted out in a table that is called as the group would be."""
    ledger.register(table(range(0, 20, 2), level=0.0), "people: ward = 'a'")
    people = table(range(20))
    ledger.register(people, "people")
    assert ledger.remaining(people).opted_out == 10
    with pytest.raises(
        LedgerError, match=r"would be registered as \"people: ward = 'a'\", which another table"
    ):
        people.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    assert ledger.remaining(people).opted_out == 10
    assert all(not event["raised"] for event in ledger.history(kind="register"))


def test_a_table_does_not_take_the_place_of_a_public_group(ledger):
    people = table(range(20))
    ledger.register(people, "people")
    people.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    with pytest.raises(LedgerError, match="is registered as a public group of another table"):
        ledger.register(table(range(0, 20, 2)), "people: ward = 'a'")


def test_groups_follow_a_raise_that_was_agreed(ledger):
    low, high = table(range(20), level=0.5), table(range(20), level=1.0)
    ledger.register(low, "people")
    low.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    ledger.register(high, "people", raise_levels=True, **SIGNED)
    high.release(BY_WARD, "minimum", share=0.1, ledger=ledger, fresh=True)
    assert ledger.remaining(high).levels == (0.85,)
