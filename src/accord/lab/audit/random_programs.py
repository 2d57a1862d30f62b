"""Random worlds: random tables, a program about them as people write it, and a neighboring world.

People are in several tables, change their levels, leave and come back; ledgers have histories.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from math import inf

import numpy as np

from accord.lab.audit.program_runs import KEY, Step, World
from accord.lab.audit.random_registers import with_registers
from accord.lab.audit.random_tables import FORMS, TIERS, Dice, other_rows, random_table, somebody
from accord.lab.audit.rare_worlds import (
    COMING_AND_GOING,
    RARITIES,
    UNDER_ADD_REMOVE,
    WITH_A_LEDGER,
    WITH_PRIVATE_LEVELS,
)
from accord.lab.audit.table_forms import Source
from accord.mechanisms import ALL
from accord.relation import ADD_REMOVE

_SHARES = ("1", "0.5", "0.3700009")
_WHERE = (
    "m > 1",
    "NOT (m > 1)",
    "c = 'a'",
    "c IN ('a', 'b') AND m <= 3",
    "b = TRUE",
    "x IS NOT NULL",
    "x >= 50 OR c IS NULL",
    "d >= '2020-06-01'",
)
_BY = (
    ", by='g', keys=[1, 2]",
    ", by='c', keys=['a', 'b']",
    ", by='b', keys=[True, False]",
    ", by='c', keys=['b'], rest='other'",
)
_RARE_QUESTIONS = (
    "accord.sum('x', (-100, -5), step=1, where='m > 1')",
    "accord.sum('x', (-100, -5), step=1, by='g', keys=[1, 2])",
    "accord.quantile('x', 0.123457, (0, 100), step=1)",
    "accord.median('d', (date(2020, 1, 1), date(2021, 1, 1)), missing='none')",
    "accord.count(\"d >= '2020-06-01'\")",
    "accord.histogram('d', edges=[date(2020, 1, 1), date(2020, 6, 1), date(2021, 1, 1)])",
    "accord.regression('x', ['c', 'b', 'g'], bounds={'x': (0, 100)}, "
    "categories={'c': ['a', 'b', 'c'], 'b': [True, False], 'g': [1, 2, 9]})",
    "accord.histogram('c', categories=['b', 'a', 'c'], at_most=2)",
    "accord.workload([accord.mean('x', (0, 100), step=1), accord.sum('x', (-20, 100), step=1, where='b'), "
    "accord.mean('x', (0, 100), missing='none'), accord.count(where='m >= 2'), accord.proportion('x > 10')])",
    "accord.mean('x', (0, 100), step=1, by='g', keys=[2, 1], at_most=2, per_person='sum')",
    "accord.median('x', (0, 100), step=1, by='c', keys=['c', 'a', 'b'], at_most=3)",
    "accord.histogram('x', edges=[0, 10, 50, 100], per_person='max', where='m > 1')",
    "accord.crosstab('g', 'c', keys={'g': [1, 2], 'c': ['a', 'b']})",
    "accord.median('x', (0, 100), step=1, by=['c', 'b'], keys={'b': [True, False], 'c': ['a']}, at_most=2)",
    "accord.variance('x', (0, 100), step=1, where='m > 1')",
    "accord.std('x', (0, 100), by='c', keys=['c', 'a', 'b'], at_most=2, missing='none')",
    "accord.covariance('x', 'z', bounds={'x': (0, 100), 'z': (0, 100)}, where='m > 1')",
    "accord.covariance('x', 'm', bounds={'x': (0, 100), 'm': (0, 5)}, missing='none')",
    "accord.correlation('x', 'z', bounds={'x': (0, 100), 'z': (0, 100)})",
    "accord.correlation('m', 'x', bounds={'x': (0, 100), 'm': (0, 5)}, missing='none', by='g', keys=[1, 2])",
    "accord.proportion('x >= 50 OR NOT b = TRUE')",
    "accord.proportion('x < 10', missing='none', by='g', keys=[1, 2])",
    "accord.crosstab('g', 'c', keys={'g': [1, 2], 'c': ['a']}, rest={'c': 'other'}, at_most=2)",
    "accord.top('c', k=2, keys=['c', 'a', 'b'])",
    "accord.mean('x', (0, 100), step=1, gap=3)",
    "accord.sum('x', (-20, 100), step=1, where='m > 1', gap=0)",
    "accord.proportion('x >= 50', gap=1)",
    "accord.median('x', (0, 100), step=1, by='g', keys=[1, 2], gap=20)",
    "accord.variance('x', (0, 100), step=1, missing='none', gap=0.05)",
    "accord.mean('x', (0, 100), missing='none', gap=2, about='everyone')",
    "accord.crosstab('g', 'c', keys={'g': [1, 2], 'c': ['a', 'b']}, gap=0.2)",
    "accord.mean('x', (0, 100), step=1, by='p', keys=[1, 2], membership='public')",
)
_SAMPLED = "show(accord.sample(noisy_count, people, t='max', columns=['x'], rows='numpy'))"


def world(rng: np.random.Generator) -> World:
    """A world, a program in it, and a neighbor."""
    dice = Dice(rng)
    word = 0 if dice.chance(0.3) else int(2 ** float(rng.uniform(40, 63)) - 1)
    outcome = dice.one(10**6, -(10**6), 0, 10**12)
    ordinary: World = dice.one(_questions, _questions, _with_a_ledger, _under_add_remove)(dice)
    if ordinary.person < 0:  # everyone is public
        return world(rng)
    rare = _rare(dice, replace(ordinary, word=word, outcome=outcome))
    return with_registers(dice, rare) if dice.chance(0.25) else rare


def _rare(dice: Dice, ordinary: World) -> World:
    """The same world with something that hardly any has, and with a question that is rarely asked.

    It is drawn last: the rest of a world does not depend on it.
    """
    world = ordinary
    for k in dice.rng.permutation(len(RARITIES)).tolist():
        changed = RARITIES[k](dice, ordinary)
        if changed is not None:
            world = changed
            break
    questions = _RARE_QUESTIONS[:-1] if world.name in COMING_AND_GOING else _RARE_QUESTIONS
    asked = _released(dice, "people", dice.one(*questions), False)
    return replace(world, program=(*world.program, asked, Step(_SAMPLED, "people")))


# ---- steps of a program ------------------------------------------------------------------------------------


def _opening(name: str, source: Source, more_options: str = "") -> Step:
    options = ", ".join(f"{key}={value!r}" for key, value in source.options.items())
    return Step(f"{name} = accord.table(given({name!r}), {options}{more_options})", name)


def _part(dice: Dice, public: bool, single: bool) -> str:
    """About whom a question is."""
    if public and not single and dice.chance(0.3):
        keys = dice.one("[1, 2]", "[1], rest='other'")
        return f"{dice.one('', ', where=' + repr('p < 2'))}, by='p', keys={keys}, membership='public'"
    part = f", where={dice.one(*_WHERE)!r}" if dice.chance(0.4) else ""
    if single or dice.chance(0.5):
        return part
    return part + str(dice.one(*_BY))


def question(dice: Dice, user: bool, public: bool = True, single: bool = False) -> str:
    """A question as somebody would write it."""
    part = _part(dice, public, single)
    excludes = dice.chance(0.5 if "public" in part else 0.2)
    missing = "" if excludes else dice.one(", missing='none'", ", missing=50", ", missing='middle'")
    word = "" if "50" in missing else missing
    x = "'x', (0, 100), step=1"
    forms = [
        f"accord.mean({x}{missing}{part})",
        f"accord.sum('x', ({dice.one('5', '-20', '0')}, 100), step=1{missing}{part})",
        f"accord.count({part[2:] or repr(dice.one(*_WHERE))})",
        f"accord.histogram('x', edges=[0, 10, 50, 100]{word}{part})",
        f"accord.histogram('c', categories=['a', 'b']{dice.one('', ', missing=' + repr('other'))}{part})",
        f"accord.histogram('b', categories=[True, False]{part})",
        f"accord.median({x}{missing}{part})",
        f"accord.quantile('x', [0.25, 0.9], (0, 100), step=1{missing}{part})",
        f"accord.min({x}{missing}{part})",
        f"accord.max({x}{missing}{part})",
        f"accord.median('d', (date(2020, 1, 1), date(2021, 1, 1)){word}{part})",
        f"accord.regression('x', ['z'], bounds={{'x': (0, 100), 'z': (0, 100)}}{word}{part})",
        "accord.regression('x', ['z', 'm', 'c'], bounds={'x': (0, 100), 'z': (0, 100), 'm': (0, 5)}, "
        f"categories={{'c': ['a', 'b', 'c']}}{word}{part})",
    ]
    if user:
        forms.append(f"accord.rows(max=3{part})")
    return _with_gap(dice, str(dice.one(*forms)))


def _with_gap(dice: Dice, asked: str) -> str:
    """The question, or with how far levels may lie apart; which draws nothing of what follows."""
    statistic = _statistic(asked)
    rng = dice.rng.spawn(1)[0]
    if statistic == "regression" or rng.random() > 0.2:
        return asked
    gap = "0.1" if statistic in ("count", "histogram") else "5"
    everyone = ", about='everyone'" if rng.random() < 0.2 else ""
    return f"{asked[:-1]}, gap={gap}{everyone})"


def _statistic(asked: str) -> str:
    return asked.split("(")[0].removeprefix("accord.")


def _mechanism(dice: Dice, asked: str, share: str = "1") -> str:
    """One that may answer the question, mostly; with the share that it may spend."""
    statistic = _statistic(asked).replace("median", "quantile").replace("rows", "sum")
    moving = "where=" in asked or "by=" in asked or "missing=" not in asked
    among = [m for m in ALL if "gap=" in asked or not m.needs_gap]
    able = [m.name for m in among if statistic in m.statistics and (ADD_REMOVE in m.relations or not moving)]
    name: str = dice.one(*(m.name for m in among)) if dice.chance(0.1) else dice.one("auto", *able)
    # both are drawn, whichever is needed
    ts = {"sample": dice.one("", ", t='max'", ", t='mean'"), "threshold": dice.one("", ", t=0.3")}
    return f"{name!r}, {share}{ts.get(name, '')}"


def _planned(dice: Dice, name: str, asked: str) -> Step:
    return Step(f"show({name}.plan({asked}, {_mechanism(dice, asked)}))", name)


def _released(dice: Dice, name: str, asked: str, ledger: bool) -> Step:
    share = dice.one("0.2", "0.3700009") if ledger else dice.one(*_SHARES)
    arguments = _mechanism(dice, asked, share) + (", ledger=ledger" if ledger else "")
    return Step(f"show({name}.release({asked}, {arguments}))", name, share, ledger)


def _released_of_remaining(dice: Dice, name: str, asked: str) -> Step:
    plan = f"accord.plan(ledger.remaining({name}), {asked}, {_mechanism(dice, asked, '0.5')})"
    return Step(f"show({name}.release({plan}, ledger=ledger))", name, "0.5", True, True)


def _looks(options: str) -> list[Step]:
    """What public people have, of whom the person who changes is none."""
    asked = ("'x'", "'x', (0, 100), gap=5", "'c'", "'d'")
    return [Step(f"show(people.public({each}{options}))", "people") for each in asked]


def _commanded(dice: Dice, path: str, source: Source) -> Step:
    """The same on the command line."""
    statistic = dice.one(
        ["mean", "x", "--bounds", "0", "100", "--step", "1"],
        ["sum", "x", "--bounds", "0", "100", "--where", "m > 1"],
        ["histogram", "c", "--categories", "a,b"],
        ["median", "x", "--bounds", "0", "100", "--step", "1"],
        ["count", "--where", "c = 'a'"],
        ["mean", "x", "--bounds", "0", "100", "--by", "g", "--keys", "1,2"],
        ["mean", "x", "--bounds", "0", "100", "--missing", "none"],
    )
    words = [dice.one("plan", "release"), path, *statistic, "--epsilon", str(source.options["epsilon"])]
    if "tiers" in source.options:
        tiers = ",".join(f"{name}={level}" for name, level in TIERS.items())
        words += ["--tiers", tiers, "--default", str(source.options["default"])]
    if "user" in source.options:
        words += ["--user", "id"]
    words += ["--mechanism", dice.one("affine", "threshold", "minimum", "auto"), "--json"]
    return Step(f"show(command({', '.join(map(repr, words))}))", "people")


# ---- worlds ------------------------------------------------------------------------------------------------


def _questions(dice: Dice) -> World:
    """One table without a ledger, and everything that can be asked about it."""
    form, user = dice.one(*FORMS), dice.chance(0.5)
    source = random_table(dice, form, dice.one(3, 6, 12, 12, 12, 70), user, dice.chance(0.4))
    person = somebody(dice, source)
    steps = [
        _opening("people", source),
        Step("show(people.spec()); show(people.columns); show(people)", "people"),
    ]
    for _ in range(2):
        asked = question(dice, user)
        steps.append(_planned(dice, "people", asked))
        steps.append(_released(dice, "people", asked, False))
    if dice.chance(0.2):
        pair = ", ".join(question(dice, user, public=False, single=True) for _ in range(2))
        steps.append(Step(f"show(people.release(accord.workload([{pair}])))", "people"))
    rows = dice.one("numpy", "arrow", "pandas") if find_spec("pyarrow") and find_spec("pandas") else "numpy"
    columns = dice.one("['x']", "['x', 'd', 'b']", "['c', 'x']")
    algorithm, t = dice.one("noisy_count", "constant"), dice.one("'max'", "'mean'", "0.3")
    sample = f"accord.sample({algorithm}, people, t={t}, columns={columns}, rows={rows!r})"
    steps += [Step(f"show({sample})", "people"), *_looks("")]
    if form in ("csv", "parquet"):
        steps += [_commanded(dice, f"people.{form}", source) for _ in range(2)]
    changed = {"people": other_rows(dice, source, person)}
    return World("programs", {"people": source}, tuple(steps), person, changed)


def _with_a_ledger(dice: Dice) -> World:
    """Tables with some people in common, who change their levels, leave and come back; and a ledger."""
    forms = [dice.one(*FORMS) for _ in range(3)]
    size = dice.one(4, 10)
    tiers = dice.chance(0.4)
    first = random_table(dice, forms[0], size, True, tiers)
    second = random_table(dice, forms[1], size, True, dice.chance(0.4), size // 2)
    later = random_table(dice, forms[2], size, True, tiers, dice.one(0, 1, size // 2))
    sources = {"people": first, "others": second, "later": later}
    person = somebody(dice, *sources.values())
    asked = [question(dice, True) for _ in range(4)]
    steps = [
        *(_opening(name, source) for name, source in sources.items()),
        Step(f"ledger = accord.Ledger('books.db', key={KEY!r})"),
        Step("show(ledger.register(people, 'people'))", "people"),
        _released(dice, "people", asked[0], True),
        Step("show(ledger.remaining(people)); show(ledger.accounts())", "people"),
    ]
    sample = "accord.sample(noisy_count, people, share=0.1, ledger=ledger, columns=['x'])"
    in_any_order = [
        [
            Step("show(ledger.register(others, 'others'))", "others"),
            _released(dice, "others", asked[1], True),
        ],
        [_released_of_remaining(dice, "people", question(dice, True, public=False))],
        [_released(dice, "people", asked[2], True)],
        [Step(f"show({sample})", "people", "0.1", True)],
    ]
    for k in dice.rng.permutation(len(in_any_order)).tolist():
        steps += in_any_order[k]
    # people change their levels and leave; and are as they were
    for name in dice.one(("later", "people"), ("later",)):
        steps.append(Step(f"show(ledger.register({name}, 'people'))", name))
        steps.append(_released_of_remaining(dice, name, question(dice, True, public=False)))
        steps.append(_released(dice, name, asked[3], True))
    steps += _looks(", ledger=ledger")
    steps.append(Step("show(ledger.history()); show(ledger.verify()); show(ledger.export())"))
    steps.append(
        Step("show(command('ledger', 'history', 'books.db')); show(command('ledger', 'show', 'books.db'))")
    )
    changed = {
        name: other_rows(dice, source, person) for name, source in sources.items() if person in source.people
    }
    return World(WITH_A_LEDGER, sources, tuple(steps), person, changed)


def _under_add_remove(dice: Dice) -> World:
    """Somebody is there, or not."""
    form, user = dice.one(*FORMS), dice.chance(0.5)
    # pandas and NumPy tell the type of a column by its values, and of none they cannot
    size = dice.one(1, 4, 8, 8, 8, 70) if form not in ("pandas", "arrays") else 8
    source = random_table(dice, form, size, user, dice.chance(0.4))
    person = somebody(dice, source)
    roster = {0.1234569: 9, 0.3000017: 30, 0.7: 8, 1.5: 20, 2.5: 9, 900.0: 9}
    roster |= {(k + 1) / 100: 1 for k in range(20)}
    name, said = UNDER_ADD_REMOVE, "neighbors='add-remove', roster"
    if dice.rng.spawn(1)[0].random() < 0.5:  # which draws nothing of what follows
        name, said = WITH_PRIVATE_LEVELS, "levels='private', expected"
        roster |= {inf: 5}  # as every tier must be expected
    options = f", {said}=accord.Spec.from_groups({roster})"
    steps = [_opening("people", source, options), Step("show(people.spec()); show(people.columns)", "people")]
    for _ in range(2):
        asked = question(dice, user, public=False)
        steps.append(_planned(dice, "people", asked))
        steps.append(_released(dice, "people", asked, False))
    steps.append(Step(_SAMPLED, "people"))
    if name == WITH_PRIVATE_LEVELS:
        steps += [
            Step(f"ledger = accord.Ledger('books.db', key={KEY!r})"),
            Step("show(people.expect(share=0.25))", "people", "0.25"),
            Step("show(ledger.register(people, 'people'))", "people"),
            Step("show(people.expect(share=0.1, sizes=(0.05, 1, 30), ledger=ledger))", "people", "0.1", True),
            # not what is left: a level has no more left than a higher one, which `_Account` does not follow
            _released(dice, "people", question(dice, user, public=False), True),
            Step("show(ledger.remaining(people)); show(ledger.accounts())", "people"),
            Step("show(ledger.history()); show(ledger.verify()); show(ledger.export())"),
        ]
    return World(name, {"people": source}, tuple(steps), person, {"people": ()})
