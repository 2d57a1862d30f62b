"""Random worlds for programs.py: tables of every form and type, levels of every kind, people with many rows
and in several tables, ledgers with histories.

Public in a world are who is in a table (not under add-remove), everyone's id and level, and the column `p`.
All else is private: a neighboring world has one person with other values, other rows, or without any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from math import inf, nan
from typing import Any

import numpy as np

from accord.lab.audit.forms import Row, Source
from accord.lab.audit.running import KEY, Step, World
from accord.mechanisms import ALL
from accord.relation import ADD_REMOVE

_NEEDS = {"pandas": ("pandas",), "arrow": ("pyarrow",), "polars": ("pyarrow", "polars")}
ALL_FORMS = ("lists", "arrays", "csv", "parquet", "relation", "pandas", "arrow", "polars")
"""In which a table is given."""
FORMS = tuple(form for form in ALL_FORMS if all(find_spec(name) for name in _NEEDS.get(form, ())))
"""Those whose libraries are here."""
_TIERS = {"public": inf, "standard": 1.5, "strict": 0.3000017, "none": 0}
_LEVELS = (0.1234569, 0.3000017, 0.7, 2.5, 900.0, inf, 0.0)
_SHARES = ("1", "0.5", "0.3700009")
_NUMBERS: Mapping[str, tuple[Any, ...]] = {
    "DOUBLE": (0.0, 100.0, -1e300, 1e308, 49.5, 49.99999999999999, nan, None, inf, -inf, -0.0, 5e-324),
    "FLOAT": (0.0, 100.0, 1e30, nan, None, inf, -inf, 33.5),
    "BIGINT": (0, 100, -(2**63), 2**63 - 1, None, 2**53 + 1, 7),
    "DECIMAL(18,4)": (
        Decimal(0),
        Decimal("99.9999"),
        Decimal("-99999999999999.9999"),
        None,
        Decimal("0.0001"),
    ),
}
_TEXTS = ("a", "b", "c", "", "A", " a", "ä", "x" * 300, "'; --", "[bold]", "NaN", None)
_DATES = (date(2020, 1, 1), date(2020, 12, 31), date(1, 1, 1), date(9999, 12, 31), None, date(1969, 12, 31))
_JUNK = ("abc", "1,5", "1e400", "nan", "-inf", "0x10", "", "$5", "١", "true")
"""What may stand in the place of a number in a file without types."""
_PRIVATE = ("x", "z", "m", "g", "c", "b", "d")
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
_BY = (", by='g', keys=[1, 2]", ", by='c', keys=['a', 'b']", ", by='b', keys=[True, False]")


_NO_DATES = ("unknown", "2020-02-30", "24:00", "infinity", "2020-13-01 25:00", "31.1.2020")
"""What may stand in the place of a date in a table without types."""
_ODD_QUESTIONS = (
    "accord.sum('x', (-100, -5), step=1, where='m > 1')",
    "accord.sum('x', (-100, -5), step=1, by='g', keys=[1, 2])",
    "accord.quantile('x', 0.123457, (0, 100), step=1)",
    "accord.median('d', (date(2020, 1, 1), date(2021, 1, 1)), missing='exclude')",
    "accord.count(\"d >= '2020-06-01'\")",
    "accord.regression('x', ['c', 'b', 'g'], bounds={'x': (0, 100)}, "
    "categories={'c': ['a', 'b', 'c'], 'b': [True, False], 'g': [1, 2, 9]})",
    "accord.mean('x', (0, 100), step=1, by='p', keys=[1, 2], membership='public')",
)


class Dice:
    """Choices at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def one(self, *of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def often(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def number(self, most: int) -> int:
        return int(self.rng.integers(most))


def world(rng: np.random.Generator) -> World:
    """A world, a program in it, and a neighbor."""
    dice = Dice(rng)
    word = 0 if dice.often(0.3) else int(2 ** float(rng.uniform(40, 63)) - 1)
    outcome = dice.one(10**6, -(10**6), 0, 10**12)
    made: World = dice.one(_asking, _asking, _with_ledger, _coming_and_going)(dice)
    return odd(dice, replace(made, word=word, outcome=outcome)) if made.person >= 0 else world(rng)


# ---- tables ------------------------------------------------------------------------------------------------


def _types(dice: Dice, form: str) -> dict[str, str]:
    number = dice.one(*_NUMBERS) if form not in ("arrays",) else dice.one("DOUBLE", "BIGINT")
    types = {
        "id": "BIGINT",
        "e": "DOUBLE",
        "x": number,
        "z": "DOUBLE",
        "m": "DOUBLE",
        "g": "BIGINT",
        "p": "BIGINT",
    }
    return types | {"c": "VARCHAR", "b": "BOOLEAN", "d": "DATE"}


def _value(dice: Dice, column: str, types: Mapping[str, str], form: str) -> Any:
    """What somebody may have in a column of this type, the odd included."""
    kind = types[column]
    if kind in _NUMBERS:
        if form == "csv" and dice.often(0.3):
            return dice.one(*_JUNK)
        if column == "g":
            return dice.one(1, 2, 9, None)
        odd = _NUMBERS[kind] if not (form == "arrays" and kind == "BIGINT") else (0, 100, 2**63 - 1)
        return dice.one(*odd)
    return dice.one(*{"VARCHAR": _TEXTS, "BOOLEAN": (True, False, None), "DATE": _DATES}[kind])


def _ordinary(dice: Dice, types: Mapping[str, str]) -> dict[str, Any]:
    """A row as most people have it."""
    x: Any = dice.number(201) / 2
    if types["x"] == "BIGINT":
        x = int(x)
    elif types["x"].startswith("DECIMAL"):
        x = Decimal(str(x))
    row = {"x": x, "z": float(dice.number(101)), "m": float(dice.number(5)), "g": dice.one(1, 2, 3)}
    return row | {"c": dice.one("a", "b", "c"), "b": dice.often(0.5), "d": date(2020, 1 + dice.number(12), 5)}


def table_of(dice: Dice, form: str, size: int, user: bool, named: bool, first: int = 0) -> Source:
    """People with their rows, whose levels are numbers, or names of tiers."""
    types = _types(dice, form)
    options: dict[str, Any] = {"epsilon": "e"}
    if user:
        options["user"] = "id"
    if named:
        types["e"] = "VARCHAR"
        options["tiers"] = _TIERS
        options["default"] = "strict"
    elif dice.often(0.1):
        options["epsilon"] = 0.7  # of everyone
    text = user and dice.often(0.3)
    if text:
        types["id"] = "VARCHAR"
    many = size > 64
    people = {}
    for person in range(first, first + size):
        level: Any = dice.one(*_TIERS, None) if named else (person + 1) / 100 if many else dice.one(*_LEVELS)
        rows = []
        for k in range(1 + (dice.number(3) if user else 0)):
            name = (
                dice.one(f"{person}", f" {person}", f"{person}.0") if text else person
            )  # one person all the same
            row = {"id": name, "e": level, "p": 1 + person % 2, **_ordinary(dice, types)}
            if k and not named and dice.often(0.3) and isinstance(level, float) and level < inf:
                row["e"] = 2 * level  # the strictest of a person's levels counts
            if dice.often(0.1):
                odd = dice.one(*_PRIVATE)
                row[odd] = _value(dice, odd, types, form)
            rows.append({name: row[name] for name in types})
        people[person] = tuple(rows)
    return Source(form, types, people, options)


def _other(dice: Dice, source: Source, person: int) -> tuple[Row, ...]:
    """Other rows of the same person: as many, or fewer, or more where people may have many."""
    own = source.people.get(person, ())
    if not own:
        return ()
    count = len(own) if "user" not in source.options else 1 + dice.number(5)
    strictest = min(own, key=lambda row: _rank(row["e"], source.options))
    lacking = dice.one("x", *_PRIVATE) if dice.often(0.4) else None
    changed = []
    for k in range(count):
        row = dict(
            own[k] if k < len(own) and dice.often(0.5) else {**own[0], **_ordinary(dice, source.types)}
        )
        for column in _PRIVATE:
            if dice.often(0.8):
                row[column] = _value(dice, column, source.types, source.form)
        row |= {"e": strictest["e"]} | ({lacking: None} if lacking else {})
        changed.append(row)
    return tuple(changed)


def _rank(level: Any, options: Mapping[str, Any]) -> float:
    tiers, everyones = options.get("tiers"), options["epsilon"]
    if tiers is None:
        return float(level if isinstance(everyones, str) else everyones)
    return float(tiers[options["default"] if level is None else level])


def _somebody(dice: Dice, *sources: Source) -> int:
    """A person of the first table who is public in none."""
    first = sources[0]
    public = {
        person
        for source in sources
        for person, rows in source.people.items()
        if min(_rank(row["e"], source.options) for row in rows) == inf
    }
    return int(dice.one(*([person for person in first.people if person not in public] or [-1])))


# ---- programs ----------------------------------------------------------------------------------------------


def _opening(name: str, source: Source, more: str = "") -> Step:
    options = ", ".join(f"{key}={value!r}" for key, value in source.options.items())
    return Step(f"{name} = accord.table(given({name!r}), {options}{more})", name)


def _part(dice: Dice, public: bool, single: bool) -> str:
    """About whom a question is."""
    if public and not single and dice.often(0.3):
        return f"{dice.one('', ', where=' + repr('p < 2'))}, by='p', keys=[1, 2], membership='public'"
    part = f", where={dice.one(*_WHERE)!r}" if dice.often(0.4) else ""
    if single or dice.often(0.5):
        return part
    return part + str(dice.one(*_BY))


def question(dice: Dice, user: bool, public: bool = True, single: bool = False) -> str:
    """A question as somebody would write it."""
    part = _part(dice, public, single)
    excludes = dice.often(0.5 if "public" in part else 0.2)
    missing = ", missing='exclude'" if excludes else dice.one("", ", missing=50", ", missing='middle'")
    x = "'x', (0, 100), step=1"
    forms = [
        f"accord.mean({x}{missing}{part})",
        f"accord.sum('x', ({dice.one('5', '-20', '0')}, 100), step=1{missing}{part})",
        f"accord.count({part[2:] or repr(dice.one(*_WHERE))})",
        f"accord.histogram('x', edges=[0, 10, 50, 100]{part})",
        f"accord.histogram('c', categories=['a', 'b']{dice.one('', ', missing=' + repr('other'))}{part})",
        f"accord.histogram('b', categories=[True, False]{part})",
        f"accord.median({x}{missing}{part})",
        f"accord.quantile('x', [0.25, 0.9], (0, 100), step=1{missing}{part})",
        f"accord.min({x}{missing}{part})",
        f"accord.max({x}{missing}{part})",
        f"accord.median('d', (date(2020, 1, 1), date(2021, 1, 1)){part})",
        f"accord.regression('x', ['z'], bounds={{'x': (0, 100), 'z': (0, 100)}}{part})",
        "accord.regression('x', ['z', 'm', 'c'], bounds={'x': (0, 100), 'z': (0, 100), 'm': (0, 5)}, "
        f"categories={{'c': ['a', 'b', 'c']}}{part})",
    ]
    if user:
        forms.append(f"accord.rows(max=3{part})")
    return str(dice.one(*forms))


def _mechanism(dice: Dice, asked: str, share: str = "1") -> str:
    """One that may answer the question, mostly; with the share that it may spend."""
    statistic = (
        asked.split("(")[0].removeprefix("accord.").replace("median", "quantile").replace("rows", "sum")
    )
    moving = "where=" in asked or "by=" in asked or "exclude" in asked
    able = [m.name for m in ALL if statistic in m.statistics and (ADD_REMOVE in m.relations or not moving)]
    name: str = dice.one(*(m.name for m in ALL)) if dice.often(0.1) else dice.one("auto", *able)
    t = {"sample": dice.one("", ", t='max'", ", t='mean'"), "threshold": dice.one("", ", t=0.3")}.get(
        name, ""
    )
    return f"{name!r}, {share}{t}"


def _planned(dice: Dice, name: str, asked: str) -> Step:
    return Step(f"show({name}.plan({asked}, {_mechanism(dice, asked)}))", name)


def _released(dice: Dice, name: str, asked: str, ledger: bool) -> Step:
    share = dice.one(*_SHARES) if not ledger else dice.one("0.2", "0.3700009")
    how = _mechanism(dice, asked, share)
    return Step(
        f"show({name}.release({asked}, {how}{', ledger=ledger' if ledger else ''}))", name, share, ledger
    )


def _asking(dice: Dice) -> World:
    """One table without a ledger, and everything that can be asked about it."""
    form, user = dice.one(*FORMS), dice.often(0.5)
    source = table_of(dice, form, dice.one(3, 6, 12, 12, 12, 70), user, dice.often(0.4))
    person = _somebody(dice, source)
    steps = [
        _opening("people", source),
        Step("show(people.spec()); show(people.columns); show(people)", "people"),
    ]
    for _ in range(2):
        asked = question(dice, user)
        steps.append(_planned(dice, "people", asked))
        steps.append(_released(dice, "people", asked, False))
    if dice.often(0.2):
        pair = ", ".join(question(dice, user, public=False, single=True) for _ in range(2))
        steps.append(Step(f"show(people.release(accord.workload([{pair}])))", "people"))
    rows = dice.one("numpy", "arrow", "pandas") if find_spec("pyarrow") and find_spec("pandas") else "numpy"
    columns = dice.one("['x']", "['x', 'd', 'b']", "['c', 'x']")
    algorithm, t = dice.one("noisy_count", "constant"), dice.one("'max'", "'mean'", "0.3")
    told = f"show(accord.sample({algorithm}, people, t={t}, columns={columns}, rows={rows!r}))"
    steps.append(Step(told, "people"))
    if form in ("csv", "parquet"):
        steps += [_commanded(dice, f"people.{form}", source) for _ in range(2)]
    return World(
        "programs", {"people": source}, tuple(steps), person, {"people": _other(dice, source, person)}
    )


def _commanded(dice: Dice, path: str, source: Source) -> Step:
    """The same on the command line."""
    statistic = dice.one(
        ["mean", "x", "--bounds", "0", "100", "--step", "1"],
        ["sum", "x", "--bounds", "0", "100", "--where", "m > 1"],
        ["histogram", "c", "--categories", "a,b"],
        ["median", "x", "--bounds", "0", "100", "--step", "1"],
        ["count", "--where", "c = 'a'"],
        ["mean", "x", "--bounds", "0", "100", "--by", "g", "--keys", "1,2"],
        ["mean", "x", "--bounds", "0", "100", "--missing", "exclude"],
    )
    words = [dice.one("plan", "release"), path, *statistic, "--epsilon", str(source.options["epsilon"])]
    if "tiers" in source.options:
        tiers = ",".join(f"{name}={level}" for name, level in _TIERS.items())
        words += ["--tiers", tiers, "--default", str(source.options["default"])]
    if "user" in source.options:
        words += ["--user", "id"]
    words += ["--mechanism", dice.one("affine", "threshold", "minimum", "auto"), "--json"]
    return Step(f"show(command({', '.join(map(repr, words))}))", "people")


def _with_ledger(dice: Dice) -> World:
    """Two tables with some people in common, who change their levels, leave, and come back; and a ledger of
    all of them.
    """
    forms = [dice.one(*FORMS) for _ in range(3)]
    size = dice.one(4, 10)
    named = dice.often(0.4)
    first = table_of(dice, forms[0], size, True, named)
    second = table_of(dice, forms[1], size, True, dice.often(0.4), size // 2)
    later = table_of(dice, forms[2], size, True, named, dice.one(0, 1, size // 2))
    sources = {"people": first, "others": second, "later": later}
    person = _somebody(dice, *sources.values())
    asked = [question(dice, True) for _ in range(4)]
    steps = [
        *(_opening(name, source) for name, source in sources.items()),
        Step(f"ledger = accord.Ledger('books.db', key={KEY!r})"),
        Step("show(ledger.register(people, 'people'))", "people"),
        _released(dice, "people", asked[0], True),
        Step("show(ledger.remaining(people)); show(ledger.accounts())", "people"),
    ]
    more = [
        [
            Step("show(ledger.register(others, 'others'))", "others"),
            _released(dice, "others", asked[1], True),
        ],
        [_remaining(dice, "people", question(dice, True, public=False))],
        [_released(dice, "people", asked[2], True)],
        [
            Step(
                "show(accord.sample(noisy_count, people, share=0.1, ledger=ledger, columns=['x']))",
                "people",
                "0.1",
                True,
            )
        ],
    ]
    for k in dice.rng.permutation(len(more)).tolist():
        steps += more[k]
    for name in dice.one(
        ("later", "people"), ("later",)
    ):  # people change their levels and leave; and are as they were
        steps.append(Step(f"show(ledger.register({name}, 'people'))", name))
        steps.append(_remaining(dice, name, question(dice, True, public=False)))
        steps.append(_released(dice, name, asked[3], True))
    steps.append(Step("show(ledger.history()); show(ledger.verify()); show(ledger.export())"))
    steps.append(
        Step("show(command('ledger', 'history', 'books.db')); show(command('ledger', 'show', 'books.db'))")
    )
    changed = {
        name: _other(dice, source, person) for name, source in sources.items() if person in source.people
    }
    return World("programs with a ledger", sources, tuple(steps), person, changed)


def _remaining(dice: Dice, name: str, asked: str) -> Step:
    plan = f"accord.plan(ledger.remaining({name}), {asked}, {_mechanism(dice, asked, '0.5')})"
    return Step(f"show({name}.release({plan}, ledger=ledger))", name, "0.5", True, True)


def _coming_and_going(dice: Dice) -> World:
    """Under add-remove: somebody is there, or not."""
    form, user = dice.one(*FORMS), dice.often(0.5)
    # pandas and NumPy tell the type of a column by its values, and of none they cannot
    size = dice.one(1, 4, 8, 8, 8, 70) if form not in ("pandas", "arrays") else 8
    source = table_of(dice, form, size, user, dice.often(0.4))
    person = _somebody(dice, source)
    roster = {0.1234569: 9, 0.3000017: 30, 0.7: 8, 1.5: 20, 2.5: 9, 900.0: 9} | {
        (k + 1) / 100: 1 for k in range(20)
    }
    given = ", ".join(f"{level}: {people}" for level, people in roster.items())
    more = f", neighbors='add-remove', roster=accord.Spec.from_groups({{{given}}})"
    steps = [_opening("people", source, more), Step("show(people.spec()); show(people.columns)", "people")]
    for _ in range(2):
        asked = question(dice, user, public=False)
        steps.append(_planned(dice, "people", asked))
        steps.append(_released(dice, "people", asked, False))
    told = "show(accord.sample(noisy_count, people, t='max', columns=['x'], rows='numpy'))"
    steps.append(Step(told, "people"))
    return World("programs under add-remove", {"people": source}, tuple(steps), person, {"people": ()})


# ---- what is odd about a world -----------------------------------------------------------------------------


def odd(dice: Dice, made: World) -> World:
    """The same world with something that hardly any table or program has.

    It is drawn last: the rest of a world does not depend on it.
    """
    for k in dice.rng.permutation(len(_ODDITIES)).tolist():
        changed = _ODDITIES[k](dice, made)
        if changed is not None:
            made = changed
            break
    under_replace = made.name != "programs under add-remove"
    asked = dice.one(*(_ODD_QUESTIONS if under_replace else _ODD_QUESTIONS[:-1]))
    sampled = Step("show(accord.sample(noisy_count, people, t='max', columns=['x'], rows='numpy'))", "people")
    return replace(made, program=(*made.program, _released(dice, "people", asked, False), sampled))


def _with_rows(made: World, name: str, change: Any) -> World:
    """With everyone's rows of one table changed, here and in the neighboring world."""
    source = made.sources[name]
    people = {person: change(person, rows) for person, rows in source.people.items()}
    changed = {k: change(made.person, rows) if k == name else rows for k, rows in made.changed.items()}
    return replace(made, sources={**made.sources, name: replace(source, people=people)}, changed=changed)


def _mixed_levels(dice: Dice, made: World) -> World | None:
    """Rows of one person name different tiers, or none beside one: the strictest counts."""
    source = made.sources["people"]
    if "tiers" not in source.options or "user" not in source.options:
        return None
    others = {person: dice.one("strict", "standard", None) for person in source.people}

    def change(person: int, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return (*rows, {**rows[0], "e": others[person]}) if rows else rows

    return _with_rows(made, "people", change)


def _outside(dice: Dice, made: World) -> World | None:
    """People have rows in no public group, some with a stricter level: it counts in their group, too."""
    source = made.sources["people"]
    if "user" not in source.options:
        return None
    strict = "strict" if "tiers" in source.options else 0.1234569
    whose = {person for person in source.people if dice.often(0.7)} | {made.person}

    def change(person: int, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return (*rows, {**rows[0], "p": 9, "e": strict}) if rows and person in whose else rows

    return _with_rows(made, "people", change)


def _no_dates(dice: Dice, made: World) -> World | None:
    """In a table without types, the person has text in the place of a date."""
    if made.sources["people"].form not in ("lists", "csv") or "people" not in made.changed:
        return None
    rows = tuple({**row, "d": dice.one(*_NO_DATES)} for row in made.changed["people"])
    return replace(made, changed={**made.changed, "people": rows})


def _composed(dice: Dice, made: World) -> World | None:
    """Ids with an accent, which can be written in two ways."""
    source = made.sources["people"]
    if "user" not in source.options or len(made.sources) > 1:
        return None
    source = replace(source, types={**source.types, "id": "VARCHAR"})

    def change(person: int, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple({**row, "id": ("\u00e9", "e\u0301")[k % 2] + str(person)} for k, row in enumerate(rows))

    return _with_rows(replace(made, sources={"people": source}), "people", change)


def _no_level(dice: Dice, made: World) -> World | None:
    """Under add-remove, the person has what is not a level, and is not read."""
    if made.name != "programs under add-remove" or not isinstance(
        made.sources["people"].options["epsilon"], str
    ):
        return None
    bad = "gold" if "tiers" in made.sources["people"].options else -1.0

    def change(person: int, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple({**row, "e": bad} for row in rows) if person == made.person else rows

    return _with_rows(made, "people", change)


def _failing(dice: Dice, made: World) -> World | None:
    """An algorithm that fails again and again, after it was told of the people: every time costs them."""
    if made.name != "programs with a ledger":
        return None
    told = "show(accord.sample(failing, people, share=0.5, ledger=ledger, columns=['x'], rows='numpy'))"
    return replace(made, word=0, program=(*made.program[:5], *[Step(told, "people", "0.5", True)] * 7))


def _plain(dice: Dice, made: World) -> World | None:
    """Commands as people read them."""
    told = [step for step in made.program if ", '--json'" in step.text]
    steps = [replace(step, text=step.text.replace(", '--json'", "")) for step in told]
    return replace(made, program=(*made.program, *steps)) if steps else None


def _public_elsewhere(dice: Dice, made: World) -> World | None:
    """In another table, the person is public, and the same in both worlds: their stricter level counts
    everywhere.
    """
    others = made.sources.get("others")
    if others is None or made.person not in others.people or not isinstance(others.options["epsilon"], str):
        return None
    public = "public" if "tiers" in others.options else inf
    rows = tuple({**row, "e": public} for row in others.people[made.person])
    others = replace(others, people={**others.people, made.person: rows})
    changed = {name: rows for name, rows in made.changed.items() if name != "others"}
    return replace(made, sources={**made.sources, "others": others}, changed=changed)


_ODDITIES = (_mixed_levels, _outside, _no_dates, _composed, _no_level, _failing, _plain, _public_elsewhere)
