"""A ledger for private levels: nobody is charged more than their level, and nothing in it depends on who is there.

The model is a dictionary: what every level has spent, by a rule that knows no accounts, and people who have a level in each table. What a person
loses is read off the plans, by their level in the table that is asked; it never exceeds what the account of their highest level has spent.
"""

import json
from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

import accord
from accord import cli
from accord.budget import MICRO, PUBLIC, to_micro
from accord.errors import AccordError, BudgetError, PlanError
from accord.ledger import Ledger, charging, menus
from accord.ledger.chain import Replay, next_entry
from accord.ledger.cohorts import NO_COHORTS
from accord.spec import Spec

KEY = "a key that only tests use"
MEAN = accord.mean("x", bounds=(0, 10), step=1)
QUESTIONS = {
    "mean": (MEAN, "auto"),
    "affine": (MEAN, "affine"),
    "threshold": (MEAN, "threshold"),
    "count": (accord.count("x > 3"), "auto"),
    "median": (accord.median("x", bounds=(0, 10), step=1), "auto"),
    "by": (accord.count(by="x", keys=[1, 2]), "auto"),
    "workload": (accord.workload([MEAN, accord.count()]), "auto"),
}
MENUS = ((0.1, 1.0), (0.1, 0.5, 2.0), (0.3,), (0.05, inf), (0.1, 1.0, inf))
TIERS = {"strict": 0.1, "open": 1.0}
EXPECTED = Spec.from_groups({"strict": 40, "open": 60}, TIERS)


def table(levels, menu=(0.1, 1.0), name="x", **options):
    """People in memory with these levels; tables of another name are described otherwise."""
    columns = {"x": np.arange(len(levels)) % 7 * 1.0, f"e_{name}": np.array(levels, dtype=float)}
    expected = options.pop("expected", Spec.from_groups(dict.fromkeys(menu, 30)))
    return accord.table(columns, epsilon=f"e_{name}", levels="private", expected=expected, **options)


def opened(folder, name="books.db"):
    return Ledger(folder / name, key=KEY)


def spent(ledger):
    """By table and level, in millionths."""
    return {(a.table, a.level): int(to_micro(a.ever[0])) for a in ledger.accounts()}


# --- nothing depends on who is there ------------------------------------------------------------------------------------------

ANSWERS = ("value", "interval", "rmse", "rmse_here", "time")
ROWS = [0.1] * 20 + [1.0] * 30
MORE = {
    "a strict one": [0.1],
    "an open one": [1.0],
    "one not on the menu": [0.7],
    "one without a level": [np.nan],
}


def without_answers(content):
    if isinstance(content, dict):
        return {k: without_answers(v) for k, v in content.items() if k not in (*ANSWERS, "released")}
    return [without_answers(each) for each in content] if isinstance(content, list) else content


def everything_shown(folder, rows):
    """All that a ledger stores, gives out and refuses over some releases; without times, answers and hashes."""
    ledger, people, shown = opened(folder), table(rows), []
    shown.append(str(ledger.register(people, "people")))
    for name, share in product(QUESTIONS, (0.1, 0.4)):
        query, mechanism = QUESTIONS[name]
        try:
            release = people.release(query, mechanism, share=share, ledger=ledger)
            shown.append((release.mechanism if name != "workload" else "", str(release.plan)))
        except AccordError as refusal:
            shown.append((type(refusal).__name__, str(refusal)))
        with suppress(PlanError):
            plan = accord.plan(ledger.remaining(people), query, share=0.3)
            people.release(plan, ledger=ledger)
            shown.append((str(plan), ledger.affordable(people, plan)))
    shown.append(str(ledger.register(people, "people")))
    export = ledger.export()
    shown += [
        [(e["seq"], e["kind"], without_answers(json.loads(e["body"]))) for e in export["entries"]],
        export["cohorts"],
        without_answers(ledger.history(kind="all")),
        ledger.accounts(),
        repr(ledger.remaining(people)),
        ledger.verify(),
    ]
    with ledger.books.reading() as db:
        shown.append(db.rows("SELECT * FROM accord_people") + db.rows("SELECT * FROM accord_table"))
    return json.loads(json.dumps(shown, default=str).replace(str(folder), ""))


@pytest.mark.parametrize("more", MORE)
def test_ledgers_of_neighboring_tables_are_the_same(more, tmp_path):
    shown = []
    for name, rows in (("a", ROWS), ("b", ROWS + MORE[more])):
        (tmp_path / name).mkdir()
        shown.append(everything_shown(tmp_path / name, rows))
    for one, other in zip(*shown, strict=True):
        assert ignoring_digests(one) == ignoring_digests(other)


def ignoring_digests(shown):
    """Questions about what is in memory have a name of their own each time."""
    if isinstance(shown, dict):
        return {k: ignoring_digests(v) for k, v in shown.items() if k not in ("question", "last", "first")}
    return [ignoring_digests(each) for each in shown] if isinstance(shown, list) else shown


def test_registering_reads_no_row(tmp_path):
    ledger, people = opened(tmp_path), table(ROWS)
    people.reader.engine.fetch = None  # whoever reads fails
    registered = ledger.register(people, "people", actor="ann", purpose="a survey")
    assert str(registered) == (
        "registered 'people', version 1: 2 levels; who is there with which is private, and stays so"
    )
    assert (registered.people, registered.levels) == (None, 2)
    assert ledger.register(people, "people").version == 1 and len(ledger.entries()) == 1
    assert ledger.remaining(people).levels == (0.1, 1.0)
    assert [account.people for account in ledger.accounts()] == [None, None]
    with pytest.raises(TypeError):
        people.release(MEAN, share=0.1, ledger=ledger)
    assert ledger.history()[0]["state"] == "failed"


def test_what_is_spent_is_a_public_function_of_the_level(tmp_path):
    """Σ min(share·ε, τ): of every release what its plan charges a level, whoever has it."""
    ledger, people = opened(tmp_path), table([1.0])  # nobody is strict
    ledger.register(people, "people")
    total = {0.1: 0, 1.0: 0}
    for share in (0.2, 0.3, 0.05):
        release = people.release(MEAN, "affine", share=share, ledger=ledger)
        assert all(c <= share * level for level, c in release.charges.items())
        total = {level: total[level] + int(to_micro(c)) for level, c in release.charges.items()}
    assert spent(ledger) == {("people", level): micro for level, micro in total.items()}
    booked = ledger.entries()[1].content
    assert booked["expected"]["people"] == {"0.1": 30, "1": 30}
    assert [line["people"] for line in booked["booked"]] == [None, None]


# --- random histories against a dictionary --------------------------------------------------------------------------------------


class Model:
    """What every level would have spent, for any level at all; and people with a level in each table."""

    def __init__(self, random):
        self.random, self.tables, self.levels = random, {}, set()
        self.charged = []  # (table's menu, {level: charge in millionths}) of each release
        self.people = [{} for _ in range(30)]

    def register(self, name, menu):
        self.tables[name] = menu
        self.levels |= set(menu)
        for person in self.people:
            person[name] = self.random.choice((*menu, None))

    def charge(self, level, releases):
        """What somebody may have lost whose highest level is this one."""
        total = 0
        for _, charges in releases:
            most = max((c for e, c in charges.items() if e <= level), default=0)
            total = PUBLIC if PUBLIC in (most, total) else total + most
        return total

    def loss(self, person):
        return sum(charges.get(person.get(name), 0) for name, charges in self.charged)

    def overdrawn(self, charges):
        releases = [*self.charged, ("", charges)]
        return [e for e in self.levels if e != inf and self.charge(e, releases) > int(to_micro(e))]


def history(ledger, seed, steps):
    random = Random(seed)
    model, tables = Model(random), {}
    for step in range(steps):
        if not tables or (step % 5 == 4 and len(tables) < 3):
            name, menu = f"t{len(tables)}", random.choice(MENUS)
            tables[name] = table([random.choice(menu) for _ in range(6)], menu, name)
            ledger.register(tables[name], name)
            model.register(name, menu)
        name = random.choice(list(tables))
        people, menu = tables[name], model.tables[name]
        query, mechanism = QUESTIONS[random.choice(list(QUESTIONS))]
        share = random.choice((0.05, 0.2, 0.45, 1.0))
        left = ledger.remaining(people)
        from_left = random.random() < 0.4
        try:
            plan = accord.plan(left if from_left else people.spec(), query, mechanism, share)
        except PlanError:
            continue
        by_level = dict(zip(plan.spec.micro.tolist(), plan.cost.tolist(), strict=True))
        rest = {e: least_left(model, e) if from_left else int(to_micro(e)) for e in menu}
        charges = {e: by_level.get(r, 0) for e, r in rest.items()}
        too_much = model.overdrawn(charges)
        assert not (from_left and too_much)
        affordable = ledger.affordable(people, plan)
        if too_much:
            assert affordable == 0
            with pytest.raises(BudgetError, match="this release charges level"):
                people.release(plan, ledger=ledger, fresh=True)
        else:
            assert affordable is None or affordable > 0
            people.release(plan, ledger=ledger, fresh=True)
            model.charged.append((name, charges))
        agree(ledger, model)
    assert not ledger.verify().problems
    return model


def least_left(model, level):
    """What a level has left in the dictionary: the least of its own and all higher ones."""
    return min(
        PUBLIC if e == inf else int(to_micro(e)) - model.charge(e, model.charged)
        for e in model.levels
        if e >= level
    )


def agree(ledger, model):
    stored = spent(ledger)
    assert stored == {
        (t, e): model.charge(e, model.charged) for t, menu in model.tables.items() for e in menu
    }
    for person in model.people:
        highest = max((e for e in person.values() if e is not None), default=0)
        loss = model.loss(person)
        if highest != inf:
            assert loss <= model.charge(highest, model.charged) <= int(to_micro(highest))
        for name, level in person.items():  # of what one table releases, no more than the level in it
            if level not in (None, inf):
                assert sum(c.get(level, 0) for n, c in model.charged if n == name) <= int(to_micro(level))


@pytest.mark.parametrize("seed", range(6))
def test_histories_agree_with_a_dictionary(seed, tmp_path):
    model = history(opened(tmp_path), seed, 14)
    assert len(model.charged) >= 3
    agree(opened(tmp_path), model)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_histories_agree_with_a_dictionary(seed, tmp_path):
    history(opened(tmp_path), seed, 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 203))
def test_histories_on_a_server_agree_with_a_dictionary(seed, postgres_url):
    history(Ledger(postgres_url, key=KEY), seed, 15)


# --- several tables, and what changes -----------------------------------------------------------------------------------------


def test_a_later_account_begins_with_what_its_level_may_have_lost(tmp_path):
    """0.5 was on no menu: whoever has it now had 0.1 at most there before, or was not read."""
    ledger = opened(tmp_path)
    ledger.register(table(ROWS), "one")
    table_one = table(ROWS)
    table_one.release(MEAN, "minimum", share=0.5, ledger=ledger)
    ledger.register(table(ROWS, (0.02, 0.5, 2.0), "other"), "two")
    assert spent(ledger)["two", 0.02] == 0
    assert spent(ledger)["two", 0.5] == spent(ledger)["one", 0.1] == 50_000
    assert spent(ledger)["two", 2.0] == spent(ledger)["one", 1.0]


def test_a_table_pays_for_higher_levels_on_other_menus(tmp_path):
    """Who is at 0.1 here may be at 0.5 there: that account pays for both, and is not overdrawn."""
    ledger, one, two = opened(tmp_path), table(ROWS), table([0.5] * 9, (0.5,), "other")
    ledger.register(one, "one")
    ledger.register(two, "two")
    two.release(MEAN, share=1.0, ledger=ledger)
    with pytest.raises(BudgetError, match=r"charges level 0.5 with 0.01; 0 is left to it"):
        one.release(MEAN, "minimum", share=0.1, ledger=ledger)
    assert ledger.remaining(one).levels == (1.0,) or ledger.remaining(one).opted_out == 30


def test_what_is_left_never_falls_as_the_level_rises(tmp_path):
    ledger, people = opened(tmp_path), table(ROWS, (0.6, 1.0))
    ledger.register(people, "people")
    people.release(MEAN, "threshold", share=0.7, t=0.7, ledger=ledger)
    left = [a.left[0] for a in ledger.accounts()]
    assert left == [0.6, 0.3]
    assert ledger.remaining(people).levels == (0.3,)
    people.release(accord.plan(ledger.remaining(people), MEAN), ledger=ledger)
    assert [a.left[0] for a in ledger.accounts()] == [0.3, 0.0]


def test_what_is_left_is_for_as_many_as_are_expected_and_no_level_of_its_own(tmp_path):
    expected = Spec.from_groups({0: 7, 0.1: 30, 1.0: 30})
    ledger, people = opened(tmp_path), table(ROWS, expected=expected)
    ledger.register(people, "people")
    people.release(MEAN, "minimum", share=0.5, ledger=ledger)
    rest = ledger.remaining(people)
    assert rest.is_rest and rest.is_expected and rest.opted_out == 7
    assert dict(zip(rest.levels, rest.counts, strict=True)) == {0.05: 30, 0.95: 30}


def test_charges_that_fall_anywhere_are_not_those_of_a_menu():
    levels = np.array([MICRO, 3 * MICRO, 2 * MICRO])
    accounts = menus.with_menu(NO_COHORTS, 1, np.sort(levels))
    order = np.argsort(accounts.level)
    for charges, rises in (([1, 2, 3], True), ([1, 1, 1], True), ([1, 3, 2], False), ([2, 1, 3], False)):
        charge = np.empty(3, dtype=np.int64)
        charge[order] = charges
        assert menus.is_charged_by_menu(accounts, charge) == rises, charges


def test_what_is_planned_from_the_rest_reads_everyone_by_what_their_level_has_left(tmp_path):
    ledger, people = opened(tmp_path), table([0.1, 1.0, 1.0, 0.7, np.nan])
    ledger.register(people, "people")
    people.release(MEAN, "minimum", share=1.0, ledger=ledger)
    plan = accord.plan(ledger.remaining(people), accord.count(), "minimum")
    assert plan.neighbors == "private-levels" and plan.spec.is_expected
    reserved = charging.reserve(ledger.books, people, plan)
    summary = people.reader.summaries(plan.as_read, reserved.remaining)[0]
    assert int(summary.amount[summary.output == 0].sum()) == 2  # the strict one has nothing left
    assert ledger.accounts()[0].left == (0.0, 0.0)


def test_an_interrupted_release_stays_charged(tmp_path):
    ledger, people = opened(tmp_path), table(ROWS)
    ledger.register(people, "people")
    plan = people.plan(MEAN, "minimum", 0.3)
    charging.reserve(ledger.books, people, plan)
    again = opened(tmp_path)
    assert again.accounts()[0].spent == (0.03, 0.03) and again.verify().open == 1
    assert again.history()[0]["state"] == "no answer"


def test_the_same_question_is_given_out_again_and_a_fresh_one_is_charged(tmp_path):
    ledger, people = opened(tmp_path), table(ROWS)
    ledger.register(people, "people")
    first = people.release(MEAN, "minimum", share=0.3, ledger=ledger)
    assert people.release(MEAN, "minimum", share=0.3, ledger=ledger).value == first.value
    assert spent(ledger)["people", 0.1] == 30_000
    people.release(MEAN, "minimum", share=0.3, ledger=ledger, fresh=True)
    assert spent(ledger)["people", 0.1] == 60_000


def test_tables_in_memory_that_are_described_alike_share_accounts_and_no_answer(tmp_path):
    """Nothing public tells them apart: they are charged together, and the answer about one is not the other's."""
    ledger, question = opened(tmp_path), accord.mean("x", bounds=(0, 1000), step=1)
    columns = [{"x": np.full(4_000, x), "e_x": np.repeat([0.5, 1.0], 2_000)} for x in (0.0, 1000.0)]
    expected = Spec.from_groups({0.5: 2_000, 1.0: 2_000})
    few, many = (accord.table(each, epsilon="e_x", levels="private", expected=expected) for each in columns)
    ledger.register(few, "few")
    with pytest.raises(AccordError, match="registered as 'few'"):
        ledger.register(many, "many")
    low = few.release(question, ledger=ledger, share=0.2)
    high = many.release(question, ledger=ledger, share=0.2)
    assert (low.value, high.value) == (pytest.approx(0, abs=300), pytest.approx(1000, abs=300))
    again = few.release(question, ledger=ledger, share=0.2)
    assert again.value == low.value
    assert spent(ledger)["few", 0.5] == 2 * 100_000


def test_budgets_are_renewed_and_a_key_is_changed(tmp_path):
    ledger, people = Ledger(tmp_path / "books.db"), table(ROWS)
    ledger.register(people, "people")
    people.release(MEAN, "minimum", share=0.3, ledger=ledger)
    ledger.renew("month", 0.5, actor="ann", purpose="they said so")
    assert ledger.rotate_key(actor="ann", purpose="it was seen").people == 0
    assert not ledger.verify().problems
    assert Ledger(tmp_path / "books.db").remaining(people).levels == (0.07, 0.97)


# --- refused, with why --------------------------------------------------------------------------------------------------------


def refused(ask):
    with pytest.raises(AccordError) as refusal:
        ask()
    return str(refusal.value)


def test_what_is_about_single_people_is_refused(tmp_path):
    ledger = opened(tmp_path)
    ledger.register(table(ROWS), "people")
    why = "is kept for private levels: it has accounts by level, and does not know who is in its tables"
    said = [
        refused(lambda: ledger.person(1)),
        refused(lambda: ledger.withdraw(1)),
        refused(lambda: ledger.readmit(1, actor="ann", purpose="asked")),
    ]
    assert all(why in text and "Nothing was booked" in text for text in said)
    assert "ledger.accounts()" in said[0] and "give them level 0 there" in said[1]
    assert len(ledger.entries()) == 1
    assert "A ledger keeps account by level" in refused(lambda: table(ROWS).identity.people(("k",)))


@pytest.mark.parametrize("is_private_first", [False, True])
def test_tables_of_either_kind_have_ledgers_of_their_own(is_private_first, tmp_path):
    public = accord.table({"id": [1, 2], "x": [1.0, 2.0], "e": [0.1, 1.0]}, epsilon="e", user="id")
    first, second = (table(ROWS), public) if is_private_first else (public, table(ROWS))
    ledger = opened(tmp_path)
    ledger.register(first, "first")
    assert "Their charges do not add up: use two ledgers" in refused(
        lambda: ledger.register(second, "second")
    )
    assert "is not registered" in refused(lambda: second.release(MEAN, share=0.1, ledger=ledger))
    assert "is not registered" in refused(lambda: ledger.remaining(second))
    assert not ledger.verify().problems


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"tiers": {"strict": 0.2, "open": 1.0}, "expected": {"strict": 4, "open": 6}},
            "tier 'strict': 0.1 -> 0.2",
        ),
        (
            {"tiers": {**TIERS, "lax": 3}, "expected": {"strict": 4, "open": 6, "lax": 1}},
            "tier 'lax': none -> 3",
        ),
        ({"default": "open"}, "the level of people who have none: none -> 1"),
        ({"user": "x"}, "the column of people: none -> x"),
    ],
)
def test_a_name_keeps_its_description(change, why, tmp_path):
    """Else everyone of a tier would have an account of their own twice: 0.1 and 0.2 are spent, where 0.2 is theirs."""

    def tiered(tiers=TIERS, expected=None, **options):
        expects = Spec.from_groups(expected or {"strict": 40, "open": 60}, tiers)
        columns = {"x": [1.0, 2.0], "tier": ["strict", "open"]}
        return accord.table(
            columns, epsilon="tier", tiers=tiers, levels="private", expected=expects, **options
        )

    ledger = opened(tmp_path)
    ledger.register(tiered(), "people")
    said = refused(lambda: ledger.register(tiered(**change), "people"))
    assert why in said and "loses no more than the higher one. Nothing was registered." in said
    assert "is not registered" in refused(lambda: tiered(**change).release(MEAN, share=0.1, ledger=ledger))
    for agreed in ({"agree": True}, {"raise_levels": True}):
        assert "a ledger does not know whose level would be another" in refused(
            lambda agreed=agreed: ledger.register(
                tiered(**change), "people", actor="a", purpose="b", **agreed
            )
        )
    assert "is registered as 'people', and with private levels nothing else tells" in refused(
        lambda: ledger.register(tiered(), "again")
    )
    assert ledger.register(tiered(**change), "another").version == 1
    assert ledger.register(tiered(expected={"strict": 1, "open": 900}), "people").version == 1
    tiered(expected={"strict": 1, "open": 900}).release(MEAN, share=0.1, ledger=ledger)


def test_a_menu_under_a_name_is_not_changed_by_what_is_expected(tmp_path):
    ledger = opened(tmp_path)
    ledger.register(table(ROWS), "people")
    assert "the menu of levels" in refused(lambda: ledger.register(table(ROWS, (0.1, 1.0, 2.0)), "people"))


def test_a_file_that_was_moved_is_a_new_version(tmp_path):
    ledger, names = opened(tmp_path), ("a.csv", "b.csv")
    for name in names:
        (tmp_path / name).write_text("x,tier\n1,strict\n2,open\n", encoding="utf-8")
    one, two = (
        accord.table(str(tmp_path / name), epsilon="tier", tiers=TIERS, levels="private", expected=EXPECTED)
        for name in names
    )
    assert ledger.register(one, "people").version == 1
    assert "this table is not registered in the ledger" in refused(lambda: ledger.remaining(two))
    assert ledger.register(two, "people").version == 2
    assert not ledger.verify().problems


# --- what is stored -----------------------------------------------------------------------------------------------------------


def test_menus_are_checked_when_a_chain_is_followed():
    menu = np.array([100_000, MICRO], dtype=np.int64)
    cohorts = menus.with_menu(NO_COHORTS, 1, menu)
    assert menus.is_charged_by_menu(cohorts, np.array([5, 5])) and not menus.is_charged_by_menu(
        cohorts, np.array([5, 4])
    )
    for bad in (menu[:0], menu[::-1], np.array([0, MICRO])):
        with pytest.raises(ValueError, match="not a menu"):
            menus.with_menu(NO_COHORTS, 1, bad)
    with pytest.raises(ValueError, match="not a menu"):
        menus.with_menu(replace(cohorts, people=np.array([1, 0])), 2, menu)


def test_a_chain_that_spares_a_higher_level_is_found_out(tmp_path):
    ledger, people = opened(tmp_path), table(ROWS)
    ledger.register(people, "people")
    people.release(MEAN, "minimum", share=0.3, ledger=ledger)
    entries = ledger.entries()
    body = entries[1].content | {"charges": [[1, "0.03"]]}
    forged = next_entry(entries[0], "reserve", body, ledger.books.required_key().seal)
    problems = Replay().run([entries[0], forged], ledger.books.required_key().seal).problems
    assert problems == ["entry 2 charges a level more than a higher one"]


# --- the command line, and where it is described ------------------------------------------------------------------------------

CATALOG = """schema = 1
ledger = "books.db"
[tables.people]
source = "people.csv"
epsilon = "tier"
tiers = { strict = 0.1, open = 1 }
levels = "private"
[tables.people.expected]
strict = 40
open = 60
[tables.people.columns.x]
bounds = [0, 10]
"""


def test_a_described_table_is_booked_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("x,tier\n1,strict\n2,open\n3,odd\n", encoding="utf-8")
    (tmp_path / "accord.toml").write_text(CATALOG, encoding="utf-8")

    def run(*words, code=0):
        done = CliRunner().invoke(cli.main, words)
        assert done.exit_code == code, (words, done.output)
        return done.stdout if code == 0 else done.stderr

    run("ledger", "init", "books.db")
    assert "version 1: 2 levels" in run("ledger", "register", "people")
    assert json.loads(run("ledger", "register", "people", "--json"))["people"] is None
    document = json.loads(
        run("release", "people", "mean", "x", "--share", "0.4", "--mechanism", "minimum", "--json")
    )
    assert document["spec"]["people"] is None
    shown = run("ledger", "show", "people")
    assert "private" in shown and "0.04" in shown and "0.06" in shown
    accounts = json.loads(run("ledger", "show", "people", "--json"))["accounts"]
    assert [(a["people"], a["left"]) for a in accounts] == [(None, ["0.06"] * 2), (None, ["0.96"] * 2)]
    assert "2 private levels" in run("ledger", "history", "people", "--kind", "all")
    assert "whole: 3 entries" in run("ledger", "verify", "people")
    assert json.loads(run("ledger", "export", "people"))["cohorts"][0]["people"] == 0
    assert "it is private who is there, and who chose what" in run("report", "people")
    run("report", "people", "--html", "sheet.html")
    assert "does not know who is in its tables" in run("ledger", "person", "people", "1", code=1)
    assert "does not know who is in its tables" in run("ledger", "withdraw", "people", "1", code=1)
    assert "expected" in run("plan", "people", "mean", "x", "--share", "1", "--remaining")
    run("ledger", "show", "people", "--plot", "budgets.png")
    assert "0.06 is left to it" in run(
        "release", "people", "mean", "x", "--share", "0.9", "--mechanism", "minimum", code=1
    )
