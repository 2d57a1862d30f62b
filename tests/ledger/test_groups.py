"""Groups in a ledger: private ones charge everyone, public ones their own people, all groups or none; and nothing that goes wrong is free or leaves an answer behind."""

from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import pairwise
from math import inf

import pyarrow as pa
import pytest
from noises import Fixed

import accord
from accord.budget import MICRO
from accord.errors import AccordError, BudgetError, LedgerError, PlanError, QueryError, SourceError
from accord.ledger import Ledger, charging
from accord.people.reader import TableReader
from accord.release.answer import answer
from accord.spec import Spec

releasing = import_module("accord.release.release")

KEY = "a key that only tests use"
COLUMNS = {
    "id": ["a1", "a1", "a2", "b1", "b2", "b2", "c1", "n1"],
    "g": ["a", "a", "a", "b", "b", "z", "c", None],
    "x": [1.0, 2.0, 3.0, 0.0, 4.0, 1.0, 2.0, 4.0],
    "e": [1.0, 2.0, 1.0, 1.0, 2.0, 0.5, 1.0, 1.0],
}
EVERYONE = {"a1": 1.0, "a2": 1.0, "b1": 1.0, "b2": 0.5, "c1": 1.0, "n1": 1.0}
MEAN = {"column": "x", "bounds": (0, 4), "step": 1}
BY = {"by": "g", "keys": ["a", "b", "nobody"]}
PUBLIC = {**BY, "membership": "public"}
BOTH = [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)]


def opened(columns=COLUMNS, **options):
    return accord.table(pa.table(columns), **{"epsilon": "e", "user": "id", **options})


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "accord.db", KEY)


def remaining(ledger, people=None):
    """What everyone has left, by person: each is registered as a table of their own to see it."""
    amounts = {}
    for who, level in EVERYONE.items():
        table = accord.table({"id": [who], "e": [level]}, epsilon="e", user="id")
        ledger.register(table, f"only {who}")
        (rest,) = ledger.remaining(table).levels or (0.0,)
        amounts[who] = rest
    return amounts


def sound(ledger, unanswered=0):
    verdict = ledger.verify()
    assert (verdict.problems, verdict.open) == ((), unanswered)
    entries = ledger.entries()
    assert all(b.previous == a.hash for a, b in pairwise(entries))


def states(ledger):
    return [step["state"] for step in ledger.history()]


# ---- private -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "of", [BY, {"where": "x > 2"}, {"where": "x > 2", **BY}], ids=["by", "where", "both"]
)
def test_private_groups_charge_everyone_member_or_not(ledger, of):
    table = opened()
    ledger.register(table, "people")
    plan = table.plan(accord.mean(**MEAN, **of), "minimum", 0.4)
    released = table.release(plan, ledger=ledger, fresh=True)
    assert dict(plan.charges) == {0.5: 0.2, 1.0: 0.2}
    assert remaining(ledger) == {who: round(level - 0.2, 6) for who, level in EVERYONE.items()}
    assert released.booked is not None and states(ledger) == ["released"]
    (step,) = ledger.history()
    assert {line["charge"] for line in step["booked"]} == {"0.2"}
    sound(ledger)


def test_a_workload_with_private_groups_charges_for_both_sides_of_a_move(ledger):
    """What is booked is what the noise says, from the scales that were really drawn: charge = span·(what one person moves)/scale, twice for a move between groups."""
    table = opened()
    ledger.register(table, "people")
    asked = accord.workload([accord.count(by="g", keys=["a", "b"]), accord.count(where="x > 2")])
    plan = table.plan(asked, "minimum", 0.4)
    lost = Fraction(0)
    for part, moves in zip(plan.parts, (2, 1), strict=True):
        noise = Fixed()
        answer(part, table.reader.summaries(part.query, None), noise)
        weight = int(part.calibration.charges.min())
        assert len(noise.scales) == (2 if moves == 2 else 1)
        lost += moves * max(Fraction(weight) / scale for scale in noise.scales)
    assert {Fraction(round(charge * MICRO), MICRO) for charge in plan.charges.values()} == {lost}
    table.release(plan, ledger=ledger, fresh=True)
    assert remaining(ledger) == {who: round(level - float(lost), 6) for who, level in EVERYONE.items()}
    sound(ledger)


def test_odd_millionths_are_rounded_down_in_the_books(ledger):
    table = opened(COLUMNS | {"e": [0.000003] * 8})
    ledger.register(table, "people")
    table.release(accord.count(by="g", keys=["a", "b"]), "minimum", 1.0, ledger=ledger, fresh=True)
    assert ledger.remaining(table).levels == (0.000001,)
    with pytest.raises(PlanError):
        accord.plan(ledger.remaining(table), accord.count(by="g", keys=["a", "b"]))
    with pytest.raises(BudgetError):
        table.release(accord.count(by="g", keys=["a", "b"]), "minimum", 1.0, ledger=ledger, fresh=True)
    assert ledger.remaining(table).levels == (0.000001,)
    sound(ledger)


@pytest.mark.parametrize("name", ["minimum", "threshold", "affine", "sample"])
def test_private_groups_from_what_is_left(ledger, name):
    """People of one level who have different amounts left: told apart person by person."""
    table = opened()
    ledger.register(table, "people")
    table.release(
        accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True
    )  # a and b have paid, c1 and n1 have not
    rest = ledger.remaining(table)
    assert rest == Spec.of([0.5, 0.5, 0.75, 0.25, 1.0, 1.0])  # b is charged 0.25, b2's strictest
    plan = accord.plan(rest, accord.sum("x", (0, 4), step=1, **BY), name)
    table.release(plan, ledger=ledger, fresh=True)
    before = {"a1": 0.5, "a2": 0.5, "b1": 0.75, "b2": 0.25, "c1": 1.0, "n1": 1.0}
    assert remaining(ledger) == {who: round(rest - plan.charges[rest], 6) for who, rest in before.items()}
    sound(ledger)


def test_a_private_groups_release_is_the_same_people(ledger, monkeypatch):
    """From what is left, the Summary of every group still has its own people, by what they have left."""
    table = opened()
    ledger.register(table, "people")
    table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True)
    seen = []
    draw = releasing.answer
    monkeypatch.setattr(
        releasing, "answer", lambda plan, summary, noise: seen.append(summary) or draw(plan, summary, noise)
    )
    table.release(
        accord.plan(ledger.remaining(table), accord.count(**BY), "affine"), ledger=ledger, fresh=True
    )
    rests = [0.25, 0.5, 0.75, 1.0]
    by_group = [
        {rests[j]: a for j, a in zip(s.level.tolist(), s.amount.tolist(), strict=True) if a} for s in seen[-1]
    ]
    assert by_group == [{0.5: 2}, {0.25: 1, 0.75: 1}, {}]


# ---- public ------------------------------------------------------------------------------------------------------------


def test_public_groups_charge_their_own_people_in_parallel(ledger):
    table = opened()
    ledger.register(table, "people")
    released = table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.6, ledger=ledger, fresh=True)
    assert {key: dict(c) for key, c in released.charges.items()} == {
        "a": {1.0: 0.6},
        "b": {0.5: 0.3, 1.0: 0.3},
    }
    assert remaining(ledger) == {"a1": 0.4, "a2": 0.4, "b1": 0.7, "b2": 0.2, "c1": 1.0, "n1": 1.0}
    assert [row["value"] is None for row in released.value] == [False, False, True]
    booked = [part.booked for part in released.releases.values() if part is not None]
    hashes = {entry.seq: entry.hash for entry in ledger.entries()}
    assert all(hashes[b.entry] == b.hash for b in booked) and len({b.entry for b in booked}) == 2
    assert states(ledger) == ["released", "released"]
    sound(ledger)


def test_a_public_condition_charges_those_who_meet_it(ledger):
    table = opened()
    ledger.register(table, "people")
    table.release(
        accord.median(**MEAN, where="g = 'a'", membership="public"), "rank", 0.5, ledger=ledger, fresh=True
    )
    assert {who: rest for who, rest in remaining(ledger).items() if rest < EVERYONE[who]} == {
        "a1": 0.5,
        "a2": 0.5,
    }
    sound(ledger)


def test_the_number_of_people_of_public_groups_costs_nothing(ledger):
    table = opened()
    ledger.register(table, "people")
    released = table.release(accord.count(**PUBLIC), share=0.5, ledger=ledger, fresh=True)
    assert [row["value"] for row in released.value] == [2.0, 2.0, None]
    assert remaining(ledger) == EVERYONE
    sound(ledger)


def test_one_group_without_enough_left_leaves_all_unspent(ledger):
    table = opened()
    ledger.register(table, "people")
    table.release(
        accord.mean(**MEAN, where="g = 'b'", membership="public"), "minimum", 0.8, ledger=ledger, fresh=True
    )
    before = remaining(ledger)
    assert before == {"a1": 1.0, "a2": 1.0, "b1": 0.6, "b2": 0.1, "c1": 1.0, "n1": 1.0}
    reserved = len(states(ledger))
    for groups in (PUBLIC, {**PUBLIC, "keys": ["b", "a"]}):
        with pytest.raises(BudgetError, match="Nothing was spent"):
            table.release(accord.mean(**MEAN, **groups), "minimum", 0.5, ledger=ledger, fresh=True)
    assert remaining(ledger) == before and len(states(ledger)) == reserved
    sound(ledger)
    table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.2, ledger=ledger, fresh=True)
    assert remaining(ledger) == {"a1": 0.8, "a2": 0.8, "b1": 0.5, "b2": 0.0, "c1": 1.0, "n1": 1.0}


@pytest.mark.parametrize("fault", [SourceError("it is gone"), RuntimeError("odd"), KeyboardInterrupt()])
def test_a_fault_in_the_second_group_is_charged_to_all_and_releases_nothing(ledger, monkeypatch, fault):
    table = opened()
    ledger.register(table, "people")
    real, calls = TableReader.summaries, []

    def fails(self, *args, **options):
        calls.append(self)
        if len(calls) == 2:
            raise fault
        return real(self, *args, **options)

    monkeypatch.setattr(TableReader, "summaries", fails)
    with pytest.raises(type(fault)) as refusal:
        table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.6, ledger=ledger, fresh=True)
    if isinstance(fault, AccordError):
        assert "charged all the same" in str(refusal.value)
    monkeypatch.undo()
    assert len(calls) == 2 and states(ledger) == ["failed", "failed"]
    assert all(step["receipts"] == [] for step in ledger.history())
    assert remaining(ledger) == {"a1": 0.4, "a2": 0.4, "b1": 0.7, "b2": 0.2, "c1": 1.0, "n1": 1.0}
    sound(ledger)


def test_a_fault_while_booking_gives_no_answer(ledger, monkeypatch):
    table = opened()
    ledger.register(table, "people")

    def fails(*settled):
        raise LedgerError("the disk is full.")

    monkeypatch.setattr(charging, "settle_all", fails)
    with pytest.raises(LedgerError, match="charged all the same"):
        table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.6, ledger=ledger, fresh=True)
    monkeypatch.undo()
    assert remaining(ledger) == {"a1": 0.4, "a2": 0.4, "b1": 0.7, "b2": 0.2, "c1": 1.0, "n1": 1.0}
    sound(ledger, unanswered=2)


def test_who_is_in_several_groups_is_refused(ledger):
    columns = COLUMNS | {"g": ["a", "b", "a", "b", "b", "z", "c", None]}
    table = opened(columns)
    ledger.register(table, "people")
    with pytest.raises(QueryError, match="1 people have rows in several"):
        table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.6, ledger=ledger, fresh=True)
    plan = opened().plan(accord.mean(**MEAN, **PUBLIC), "minimum", 0.6)
    with pytest.raises(AccordError):  # a plan from before somebody was in two
        table.release(plan, ledger=ledger, fresh=True)
    assert remaining(ledger) == EVERYONE and states(ledger) == []
    released = table.release(accord.mean(**MEAN, **BY), "minimum", 0.6, ledger=ledger, fresh=True)
    assert dict(released.charges) == {0.5: 0.3, 1.0: 0.3}
    sound(ledger)


def test_who_moves_to_another_public_group_pays_for_both(ledger):
    table = opened()
    ledger.register(table, "people")
    table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True)
    moved = opened(COLUMNS | {"g": ["b", "b", "a", "b", "b", "z", "c", "a"]})  # a1 to b, n1 to a
    moved.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True)
    assert remaining(ledger) == {"a1": 0.25, "a2": 0.0, "b1": 0.5, "b2": 0.0, "c1": 1.0, "n1": 0.5}
    sound(ledger)
    table.release(
        accord.mean(**MEAN, where="g = 'c'", membership="public"), "minimum", 0.5, ledger=ledger, fresh=True
    )
    assert remaining(ledger)["c1"] == 0.5
    sound(ledger)


def test_a_plan_from_before_a_group_changed(ledger):
    table = opened()
    ledger.register(table, "people")
    plan = table.plan(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5)
    other = opened(COLUMNS | {"g": ["a", "a", "a", "b", "c", "z", "c", None]})  # b2 is gone from b
    with pytest.raises(PlanError):
        other.release(plan, ledger=ledger, fresh=True)
    with pytest.raises(PlanError):
        other.release(plan)
    assert remaining(ledger) == EVERYONE and states(ledger) == []
    with pytest.raises((PlanError, LedgerError, SourceError)):
        opened(COLUMNS | {"e": [1.0] * 8}).release(plan, ledger=ledger, fresh=True)
    assert remaining(ledger) == EVERYONE


def test_plans_for_other_columns_or_relations_are_refused_before_charging(ledger):
    table = opened()
    ledger.register(table, "people")
    plan = table.plan(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5)
    renamed = {("y" if name == "x" else name): values for name, values in COLUMNS.items()}
    with pytest.raises(AccordError):
        opened(renamed).release(plan, ledger=ledger, fresh=True)
    rows = table.plan(accord.rows(max=3, **PUBLIC), "minimum", 0.5)
    with pytest.raises(AccordError):
        opened(user=None).release(rows, ledger=ledger, fresh=True)
    with pytest.raises(AccordError):
        opened(user=None).release(rows)
    present = opened(neighbors="add-remove", roster=Spec.of(EVERYONE.values()))
    with pytest.raises(AccordError):
        present.release(plan)
    with pytest.raises(QueryError, match="private"):
        present.plan(accord.mean(**MEAN, **PUBLIC))
    with pytest.raises(PlanError):
        accord.plan(table.spec(), accord.mean(**MEAN, **PUBLIC))
    assert remaining(ledger) == EVERYONE and states(ledger) == []
    sound(ledger)


def test_a_table_that_is_not_registered_has_no_groups(ledger):
    with pytest.raises(LedgerError, match="not registered"):
        opened().release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True)
    assert ledger.entries() == []
    with pytest.raises(PlanError, match="share"):
        opened().release(accord.mean(**MEAN, **PUBLIC), ledger=ledger, fresh=True)


def test_people_who_change_while_they_are_read_get_no_answer(ledger, tmp_path, monkeypatch):
    """Membership is checked again after reading: others may have been read than were charged."""
    import pyarrow.parquet as pq

    pq.write_table(pa.table(COLUMNS), tmp_path / "p.parquet")
    table = accord.table(tmp_path / "p.parquet", epsilon="e", user="id")
    ledger.register(table, "people")
    real = TableReader.summaries

    def meanwhile(self, *args, **options):
        summaries = real(self, *args, **options)
        swapped = COLUMNS | {"id": ["c1", "c1", "a2", "b1", "b2", "b2", "a1", "n1"]}
        pq.write_table(pa.table(swapped), tmp_path / "p.parquet")
        return summaries

    monkeypatch.setattr(TableReader, "summaries", meanwhile)
    with pytest.raises(AccordError, match="charged all the same"):
        table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True)
    monkeypatch.undo()
    assert states(ledger) == ["failed", "failed"]
    sound(ledger)


def test_strictest_levels_outside_a_group_count_in_the_books(ledger):
    """b2 has 0.5 in a row outside of b, and 2 inside."""
    table = opened()
    ledger.register(table, "people")
    released = table.release(accord.mean(**MEAN, **PUBLIC), "proportional", 1.0, ledger=ledger, fresh=True)
    assert dict(released.charges["b"]) == {0.5: 0.5, 1.0: 1.0}
    assert remaining(ledger) == {"a1": 0.0, "a2": 0.0, "b1": 0.0, "b2": 0.0, "c1": 1.0, "n1": 1.0}
    sound(ledger)


def test_names_of_groups_do_not_collide(ledger):
    """The same key with another condition is another table, and so is one that somebody registered by that name."""
    table = opened()
    ledger.register(table, "people")
    for of in ({}, {"where": "x > 0"}, {}, {"where": "x > 0"}):
        table.release(accord.mean(**MEAN, **PUBLIC, **of), "minimum", 0.1, ledger=ledger, fresh=True)
    versions = [entry.content["version"] for entry in ledger.entries() if entry.kind == "register"]
    assert set(versions) == {1}
    sound(ledger)


def test_public_people_and_opted_out_ones(ledger):
    columns = {
        "id": ["p", "q", "r", "r"],
        "g": ["a", "a", "a", "z"],
        "x": [1.0] * 4,
        "e": [inf, 1.0, 1.0, 0.0],
    }
    table = opened(columns)
    ledger.register(table, "people")
    released = table.release(
        accord.sum("x", (0, 1), step=1, **PUBLIC), "threshold", 0.5, ledger=ledger, fresh=True
    )
    assert released.plan.plans["a"].spec == Spec.of([inf, 1.0, 0])
    assert released.plan.plans["b"] is None
    sound(ledger)


def test_a_tampered_plan_of_groups_is_refused(ledger):
    table = opened()
    ledger.register(table, "people")
    plan = table.plan(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5)
    part = plan.plans["a"]
    more = part.with_choice(calibration=replace(part.calibration, charges=part.calibration.charges * 3))
    for plans in ({**plan.plans, "a": plan.plans["b"]}, {**plan.plans, "a": more}, {"zz": part}):
        with pytest.raises((AccordError, KeyError)):
            table.release(replace(plan, plans=plans), ledger=ledger, fresh=True)
    assert remaining(ledger) == EVERYONE and states(ledger) == []


@pytest.mark.parametrize("store", BOTH)
def test_groups_in_every_store(request, tmp_path, store):
    url = request.getfixturevalue("postgres_url") if store == "postgres" else str(tmp_path / "accord.db")
    ledger, table = Ledger(url, KEY), opened()
    ledger.register(table, "people")
    table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.5, ledger=ledger, fresh=True)
    table.release(accord.mean(**MEAN, **BY), "minimum", 0.2, ledger=ledger, fresh=True)
    assert remaining(ledger) == {"a1": 0.4, "a2": 0.4, "b1": 0.65, "b2": 0.15, "c1": 0.9, "n1": 0.9}
    with pytest.raises(BudgetError):
        table.release(accord.mean(**MEAN, **PUBLIC), "minimum", 0.6, ledger=ledger, fresh=True)
    assert remaining(ledger)["b1"] == 0.65
    sound(ledger)


# ---- by several columns ----------------------------------------------------------------------------------------------

CELLS = {
    "id": ["a1", "a1", "a2", "b1", "b2", "c1"],
    "g": list("aaabbc"),
    "h": [1, 1, 2, 1, 2, 2],
    "e": [1.0] * 6,
}
BY_TWO = {"by": ["g", "h"], "keys": {"g": ["a", "b"], "h": [1, 2]}}


def test_private_groups_by_two_columns_are_charged_once_and_given_out_again(ledger):
    people = opened(CELLS)
    ledger.register(people, "people")
    first = people.release(accord.count(**BY_TWO), "minimum", 0.25, ledger=ledger)
    assert dict(first.charges) == {1.0: 0.25} and first.repeated is None
    again = people.release(accord.crosstab("g", "h", keys=BY_TWO["keys"]), "minimum", 0.25, ledger=ledger)
    assert again.value == first.value and again.repeated is not None and not any(again.charges.values())
    assert again.margin("g") == first.margin("g") and again.interval() == first.interval()
    assert ledger.remaining(people).levels == (0.75,)
    other = people.release(accord.count(by=["h", "g"], keys=BY_TWO["keys"]), "minimum", 0.25, ledger=ledger)
    assert other.repeated is None and ledger.remaining(people).levels == (0.5,)
    sound(ledger)


def test_public_groups_by_two_columns_charge_their_own_people(ledger):
    people = opened({**CELLS, "x": [1.0, 2.0, 3.0, 0.0, 4.0, 1.0]})
    ledger.register(people, "people")
    query = accord.mean(**MEAN, **BY_TWO, membership="public")
    release = people.release(query, "minimum", 0.5, ledger=ledger)
    assert list(release.releases) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    again = people.release(query, "minimum", 0.5, ledger=ledger)
    assert again.value == release.value and again.repeated is not None
    left = {}
    for who in dict.fromkeys(CELLS["id"]):
        alone = accord.table({"id": [who], "e": [1.0]}, epsilon="e", user="id")
        ledger.register(alone, f"only {who}")
        (left[who],) = ledger.remaining(alone).levels
    assert left == {"a1": 0.5, "a2": 0.5, "b1": 0.5, "b2": 0.5, "c1": 1.0}
    sound(ledger)
