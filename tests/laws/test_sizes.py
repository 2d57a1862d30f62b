"""Choosing privately for how many people to plan: nobody's coming or going moves the choice by more than their charge.

Exact, over all tables of up to three records of every level: the law of the choice is reckoned from its scores. Then what is public, and a ledger.
"""

import json
import pickle
from dataclasses import replace
from itertools import combinations_with_replacement
from math import inf, log

import numpy as np
import pytest

import accord
from accord.budget import MICRO
from accord.errors import BudgetError, PlanError, QueryError, SpecError
from accord.lab.audit import programs, runner
from accord.lab.audit.rare_worlds import WITH_PRIVATE_LEVELS
from accord.ledger import Ledger
from accord.release import sizing
from accord.release.sizing import SIZES, Choice, choice, choose_size
from accord.spec import Spec

MENUS = {
    "two": Spec.from_groups({0.3: 40, 1.1: 9}),
    "three": Spec.from_groups({0.2: 30, 0.5: 10, 2.0: 3}),
    "public": Spec.from_groups({0.3: 7, 2.5: 5, inf: 2}),
    "uneven": Spec.from_groups({0.123457: 30, 0.7: 10, 0.700001: 3}),
    "one and public": Spec.from_groups({0.5: 10, inf: 3}),
}
FEW = (0.03, 0.3, 1, 3, 30)
MEAN = accord.mean("x", bounds=(0, 10), std=1.25)


def law_of(offered, people):
    """log P of each size, from whole numbers."""
    scores = offered.scores(people)
    logs = [float((score - max(scores)) / offered.scale) for score in scores]
    total = log(sum(np.exp(logs)))
    return [each - total for each in logs]


def worst(offered, scores_of=law_of, most=2):
    """For each level of the menu the largest loss of a record, beside none, one or two others."""
    menu = range(offered.cost.size)
    losses = [0.0] * offered.cost.size
    for number in range(most + 1):
        for others in combinations_with_replacement(menu, number):
            before = [others.count(level) for level in menu]
            one = scores_of(offered, before)
            for level in menu:
                other = scores_of(offered, [n + (k == level) for k, n in enumerate(before)])
                losses[level] = max(losses[level], *(abs(a - b) for a, b in zip(one, other, strict=True)))
    return losses


def offered_of(menu, sizes, query):
    """What there is to choose from at any share, or None where every size has the same τ."""
    try:
        return choice(MENUS[menu], query, 1.0, sizes)
    except PlanError:
        return None


CASES = [
    (menu, sizes, query)
    for menu in MENUS
    for sizes in (FEW, SIZES)
    for query in (None, MEAN)
    if offered_of(menu, sizes, query) is not None
]
assert len(CASES) > 15


@pytest.mark.parametrize("share", [0.05, 0.37, 1.0])
@pytest.mark.parametrize(("menu", "sizes", "query"), CASES)
def test_nobody_loses_more_than_their_charge(menu, sizes, query, share):
    offered = choice(MENUS[menu], query, share, sizes)
    for level, cost, loss in zip(
        MENUS[menu].micro.tolist(), offered.cost.tolist(), worst(offered), strict=True
    ):
        assert 0 <= cost <= share * level + 1e-6
        assert cost == 0 or cost <= int(level * share + 1e-6)
        assert loss <= cost / MICRO + 1e-12


def test_the_charge_is_not_idle():
    """Beside many others of the level, a record does lose about what it is charged."""
    offered = choice(Spec.from_groups({0.3: 5, 1.1: 9}), None, 1.0, FEW)
    many = [10_000, 0]
    one, other = law_of(offered, many), law_of(offered, [10_001, 0])
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 0.1 * offered.cost[0] / MICRO


def test_planted_mistakes_are_found_out():
    offered = choice(MENUS["two"], None, 1.0, SIZES)

    def twice(this, people):
        return law_of(Choice(this.specs, this.taus, this.ratio, 2 * this.rate, this.cost), people)

    def undivided(this, people):
        """|f(τ) − v/σ²| as it is, not divided by τ: it moves by ε(τ − ε), which is more where τ is above 1."""
        scores = [s * t / MICRO for s, t in zip(this.scores(people), this.taus, strict=True)]
        logs = [(s - max(scores)) / this.scale for s in scores]
        return [each - log(sum(np.exp(logs))) for each in logs]

    charge = offered.cost[0] / MICRO
    assert worst(offered)[0] <= charge
    assert worst(offered, twice, 3)[0] > worst(offered, law_of, 3)[0] * 1.5
    large = choice(Spec.from_groups({3.0: 40, 30.0: 9}), None, 1.0, SIZES)
    assert worst(large, undivided)[0] > large.cost[0] / MICRO > worst(large)[0]


def test_the_audit_of_programs_finds_a_rate_that_is_not_paid_for(monkeypatch):
    """A world in which somebody comes or goes who moves the choice."""
    world = runner.random_world(1007)
    assert world.name == WITH_PRIVATE_LEVELS and programs.difference(world) is None

    def planted(*asked):
        offered = choice(*asked)
        return replace(offered, rate=50 * offered.rate)

    monkeypatch.setattr(sizing, "choice", planted)
    assert programs.difference(world) is not None


# --- what can be seen -----------------------------------------------------------------------------------------------------------


class First:
    """A noise that chooses as it is told, and keeps what it was asked."""

    def __init__(self, at=0):
        self.at, self.asked = at, []

    def choose(self, scores, scale, times=None):
        self.asked.append((scores.tolist(), scale))
        return self.at


def opened(more=(), **options):
    rows = [(1.0, 0.5), (2.0, 2.0), (3.0, 2.0), (4.0, inf), (5.0, 0.75), (6.0, np.nan), *more]
    columns = dict(zip(("x", "e"), map(list, zip(*rows, strict=True)), strict=True))
    expected = Spec.from_groups({0.5: 400, 2.0: 300, inf: 20})
    return accord.table(columns, epsilon="e", levels="private", expected=expected, **options)


def chosen(people, at=3, **options):
    noise = First(at)
    done = choose_size(people, None, 0.1, FEW, options.get("ledger"), None, None, noise)
    return done, noise


@pytest.mark.parametrize("more", [[(7.0, 0.5)], [(7.0, inf)], [(7.0, 0.1)], [(7.0, -3.0)]])
def test_whoever_is_there_decides_the_choice_alone(more, tmp_path):
    shown = []
    for k, rows in enumerate(((), more)):
        people, ledger = opened(rows), Ledger(tmp_path / f"{k}.db", key="a key that only tests use")
        ledger.register(people, "people")
        done, _ = chosen(people, ledger=ledger)
        receipt = {k: v for k, v in done.receipt().items() if k not in ("time", "ledger")}
        plan = done.people.plan(MEAN)
        shown.append(
            (str(done), repr(done), json.dumps(receipt), str(plan), repr(ledger.accounts()), ledger.verify())
        )
    assert shown[0] == shown[1]


def test_the_noise_is_asked_for_the_law_of_those_who_are_there():
    people = opened()
    done, noise = chosen(people)
    offered = choice(people.spec(), None, 0.1, FEW)
    assert noise.asked == [(offered.scores([1, 2, 1]), offered.scale)]
    assert done.expected == offered.specs[3] and done.tau == offered.taus[3] / MICRO
    assert done.charges == dict(zip(people.spec().levels, (offered.cost / MICRO).tolist(), strict=True))


def test_who_allows_the_largest_tau_pays_nothing():
    """It is right for them whatever their number; so do the public, and who is not on the menu."""
    expected = Spec.from_groups({0.1: 50, 0.5: 400, 1_000.0: 5, inf: 10})
    offered = choice(expected, None, 0.2, FEW)
    assert max(offered.taus) < 1_000 * MICRO
    charged = dict(zip(expected.levels, offered.cost.tolist(), strict=True))
    assert charged[1_000.0] == charged[inf] == 0 < charged[0.1] <= 20_000 and 0 < charged[0.5] <= 100_000


def test_what_comes_back_are_the_same_people_planned_for_another_size():
    people = opened()
    done, _ = chosen(people)
    assert done.people.spec() == done.expected and done.people.spec().is_expected
    assert done.people.reader.engine is people.reader.engine
    assert done.people.plan(MEAN, "affine").spec == done.expected != people.spec()
    assert done.people.reader.spending is people.reader.spending
    summaries = [each.reader.summary(accord.count()) for each in (people, done.people)]
    assert summaries[0].amount.tolist() == summaries[1].amount.tolist()


def test_who_is_expected_to_opt_out_stays_so():
    expected = Spec.from_groups({0: 50, 0.5: 400, 2.0: 300})
    people = accord.table({"x": [1.0], "e": [0.5]}, epsilon="e", levels="private", expected=expected)
    done, _ = chosen(people)
    assert done.expected == done.people.spec() and done.expected.opted_out == 50


def test_a_table_of_a_file_is_pickled_with_what_was_chosen(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("x,e\n1,0.5\n2,2\n", encoding="utf-8")
    expected = Spec.from_groups({0.5: 400, 2.0: 300})
    people = accord.table(str(path), epsilon="e", levels="private", expected=expected)
    done, _ = chosen(people, 0)
    again = pickle.loads(pickle.dumps(done.people))
    assert again.spec() == done.expected and again.neighbors == "private-levels"


def test_a_choice_finds_about_the_right_size():
    """20,000 where 200 were expected; seeded by the test's name."""
    levels = np.where(np.arange(20_000) % 3 > 0, 1.0, 0.1)
    people = accord.table(
        {"x": np.zeros(20_000), "e": levels}, epsilon="e", levels="private", expected=Spec.from_groups({0.1: 67, 1.0: 133})
    )  # fmt: skip
    sizes = [people.expect(share=0.3).expected.total for _ in range(10)]
    assert all(5_000 <= size <= 80_000 for size in sizes)


def test_it_is_booked_and_refused_by_level(tmp_path):
    ledger, people = Ledger(tmp_path / "books.db", key="a key that only tests use"), opened()
    ledger.register(people, "people")
    done = people.expect(MEAN, share=0.2, ledger=ledger, actor="ann", purpose="to plan")
    assert [a.spent[0] for a in ledger.accounts()] == pytest.approx(
        np.maximum.accumulate(list(done.charges.values())).tolist()
    )
    event = ledger.history()[0]
    assert (event["queries"], event["actor"], event["state"]) == (["expected size"], "ann", "released")
    assert (
        event["receipts"][0]["value"] == done.expected.total
        and done.receipt()["ledger"]["entry"] == done.booked.entry
    )
    done.people.release(MEAN, "minimum", share=0.8, ledger=ledger)
    people.reader.engine.fetch = None  # whoever reads fails
    with pytest.raises(BudgetError, match=r"this release charges level 0.5 with"):
        people.expect(share=1.0, ledger=ledger)
    assert not ledger.verify().problems


REFUSED = {
    "it is known here how many people have which level": (
        SpecError, lambda: accord.table({"x": [1.0], "e": [1.0]}, epsilon="e").expect(),
    ),
    "a size is chosen for a mean, not for the": (QueryError, lambda: opened().expect(accord.count())),
    "every size has the same τ here, so that there is nothing to choose": (
        PlanError, lambda: opened().expect(sizes=(1e-6, 2e-6)),
    ),
    "share=1e-06 of level 0.5 is less than a millionth": (PlanError, lambda: opened().expect(share=1e-6)),
    "share=0 is not a fraction of a level": (PlanError, lambda: opened().expect(share=0)),
    "2 to 1,000 numbers from a millionth to a million": (QueryError, lambda: opened().expect(sizes=(1,))),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_refused_says_why_and_reads_nothing(why):
    kind, ask = REFUSED[why]
    with pytest.raises(kind) as refusal:
        ask()
    assert why in str(refusal.value)


@pytest.mark.parametrize("sizes", [(1, "b"), 3, (0.0, 1), (1, inf), (1, float("nan"))])
def test_sizes_are_checked(sizes):
    with pytest.raises(QueryError, match="as multiples of how many are expected"):
        opened().expect(sizes=sizes)
