"""A look at public people shows nothing of anyone else: all others are changed, and everything is compared, byte for byte.

Both worlds go through the same program with a ledger: what is returned, printed, raised, warned of, logged and booked.
"""

from dataclasses import replace
from datetime import date
from math import inf, nan

import pytest

from accord.lab.audit.program_runs import KEY, Step, World, run
from accord.lab.audit.random_tables import FORMS
from accord.lab.audit.table_forms import Register, Source

TYPES = {"id": "BIGINT", "x": "DOUBLE", "c": "VARCHAR", "d": "DATE", "e": "DOUBLE"}
PUBLIC, STRICT, OPTED_OUT, MIXED, STRICT_ELSEWHERE, OUT_ELSEWHERE, WITHDREW = range(7)
HERE = {STRICT: 0.5, OPTED_OUT: 0.0}
ELSEWHERE = {PUBLIC: inf, STRICT_ELSEWHERE: 0.1, OUT_ELSEWHERE: 0.0}
ODD = {
    "x": (nan, 1e308, None, -1e300, 0.1234567, inf),
    "c": ("zzz", None, "", "inf"),
    "d": (date(1, 1, 1), None),
}
EACH = 110
"""People of a kind: public people are enough for every rule."""


def value(who, k):
    """What somebody has in their k-th row."""
    return {"x": float(who * 7 % 50 + k), "c": "abc"[who % 3], "d": date(2020, 1 + who % 12, 1)}


def rows(who, kind, levels, is_odd, user):
    """One row, or two; of MIXED people one is strict, and of people who are changed all values are odd."""
    made = []
    for k in range(2 if user else 1):
        row = value(who, k)
        if is_odd:
            row = {column: odd[(who + k) % len(odd)] for column, odd in ODD.items()}
        level = levels.get(kind, inf)
        if kind == MIXED and k == 1:
            level = 2.0
        made.append({"id": who, **row, "e": level})
    return tuple(made)


def tables(form, is_odd, kinds=range(7), user=True):
    """`is_odd`: of everyone but public people. Without a ledger nobody knows of other tables."""
    everyone = {kind + 7 * k: kind for k in range(EACH) for kind in kinds}
    options = {"epsilon": "e", **({"user": "id"} if user else {})}
    here = {who: rows(who, kind, HERE, is_odd and kind != PUBLIC, user) for who, kind in everyone.items()}
    there = {who: rows(who, kind, ELSEWHERE, is_odd and kind != PUBLIC, user) for who, kind in everyone.items() if kind in ELSEWHERE}  # fmt: skip
    return {"people": Source(form, TYPES, here, options), "others": Source(form, TYPES, there, options)}


LOOKS = (
    "'x'",
    "'x', gap=2",
    "'x', (0, 40), gap=2, share=0.5",
    "'c'",
    "'d'",
    "'e'",
    "'nothing'",
    "'x', gap=-1",
)


def with_a_ledger(form, is_odd):
    sources = tables(form, is_odd)
    withdrawn = ", ".join(str(WITHDREW + 7 * k) for k in range(EACH))
    steps = [
        *(Step(f"{name} = accord.table(given({name!r}), epsilon='e', user='id')", name) for name in sources),
        Step(f"ledger = accord.Ledger('books.db', key={KEY!r})"),
        Step("show(people.public('x', ledger=ledger))"),
        Step("show(ledger.register(people, 'people')); show(ledger.register(others, 'others'))"),
        Step(f"show(ledger.withdraw({withdrawn}))"),
        *(Step(f"show(people.public({asked}, ledger=ledger, actor='A', purpose='p'))") for asked in LOOKS),
        Step(
            "show(people.public('x', per_person='sum', ledger=ledger)); show(others.public('x', ledger=ledger))"
        ),
        Step("show(ledger.history()); show(ledger.verify()); show(ledger.export()); show(ledger.accounts())"),
        Step("show(command('ledger', 'history', 'books.db')); show(command('ledger', 'show', 'books.db'))"),
    ]
    return World("public people", sources, tuple(steps), -1, {})


def shown(world):
    return [(output.step.text, output.texts, output.draws) for output in run(world)]


@pytest.mark.parametrize("form", FORMS)
def test_everyone_else_may_be_anybody(form):
    here, there = (shown(with_a_ledger(form, is_odd)) for is_odd in (False, True))
    assert here == there
    texts = "\n".join(text for _, each, _ in here for _, text in each)
    assert f"x of {EACH} public people" in texts
    assert not any(draws for _, _, draws in here)


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("form", ["lists", "csv", "parquet"])
def test_without_a_ledger(form, user):
    kinds = (PUBLIC, STRICT, OPTED_OUT, *([MIXED] if user else []))
    options = "epsilon='e'" + (", user='id'" if user else "")
    words = f"'public', 'people.{form}', 'x', '--epsilon', 'e'" + (", '--user', 'id'" if user else "")
    steps = [Step(f"people = accord.table(given('people'), {options})")]
    steps += [Step(f"show(people.public({asked}))") for asked in (*LOOKS, "'x', per_person='max'")]
    if form != "lists":
        steps += [Step(f"show(command({words}{more}))") for more in ("", ", '--json'", ", '--gap', '2'")]
    here, there = (
        shown(World("no ledger", tables(form, is_odd, kinds, user), tuple(steps), -1, {}))
        for is_odd in (False, True)
    )
    assert here == there
    assert f"x of {EACH} public people" in str(here)


def test_levels_of_a_register():
    """The latest entry counts, whatever stands in the rows."""
    types = {"who": "BIGINT", "level": "DOUBLE", "valid_from": "DATE"}

    def world(is_odd):
        source = tables("lists", is_odd, (PUBLIC, STRICT, STRICT_ELSEWHERE))["people"]
        levels = {who: inf if who % 7 == PUBLIC else 1.0 for who in source.people}
        entries = [{"who": who, "level": inf, "valid_from": date(2020, 1, 1)} for who in source.people]
        entries += [
            {"who": who, "level": level, "valid_from": date(2021, 1, 1)} for who, level in levels.items()
        ]
        register = Register("lists", types, tuple(entries), date(2022, 1, 1), False)
        source = replace(source, register=register, options={"epsilon": "level", "user": "id"})
        opened = "people = accord.table(given('people'), user='id', consent=register('people'), consent_user='who', epsilon='level', as_of=date(2022, 1, 1))"
        steps = (Step(opened), *(Step(f"show(people.public({asked}))") for asked in LOOKS))
        return World("register", {"people": source}, steps, -1, {})

    here, there = shown(world(False)), shown(world(True))
    assert here == there
    assert f"x of {EACH} public people" in str(here)
