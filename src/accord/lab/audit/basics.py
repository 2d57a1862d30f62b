"""What all questions have in common: the order of rows, what is decided beforehand, what is booked, who is
kept, several questions at once. By replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import inf, nan
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord.budget import level_text, to_micro
from accord.errors import QueryError
from accord.lab.audit.cases import (
    REAL,
    TINY,
    People,
    Row,
    Statistic,
    chances,
    charged,
    cut,
    keeping,
    kinds,
    opened,
    peoples,
    plans,
    promised,
    real_people,
)
from accord.lab.audit.exact import Worst, compared, drawn, failing
from accord.lab.audit.laws import Law, Leak, Tap, Words, frozen
from accord.ledger import charging
from accord.planning import Plan
from accord.release.release import carry_out, summaries
from accord.sampling import asked

_MANY = 40_000
_LEVELS_BY_TABLE = 80
"""So many that the engine looks chances up."""
_LEVELS = ("0.1234569", "0.7", "2.5")
_ENOUGH = ("700", "7000", "90000")
"""Levels at which a few people are worth asking."""
_CHANGED = "one person's change"


def order(rng: np.random.Generator) -> Iterator[Worst]:
    """Rows in another order are the same table: no bit moves, however large the sums are."""
    x = rng.integers(0, 2**40, _MANY).astype(np.float64)
    query = accord.mean("x", (0, 2**40), step=1)
    tables = [
        accord.table({"x": column, "e": np.ones(_MANY)}, epsilon="e")
        for column in (x, rng.permutation(x), np.sort(x), np.sort(x)[::-1])
    ]
    plan = accord.plan(tables[0].spec(), query, "affine")
    first, *others = (_draws([plan], table) for table in tables)
    account = Worst(plan, "1", Fraction(0))
    for other in others:
        account.see(*compared(first, other, partial(str, "rows in another order")), ())
    yield account


def decisions(statistic: Statistic, neighbors: str) -> Iterator[Worst]:
    """What is decided before the noise is drawn follows from public things alone: whole releases by `auto`,
    on tiny tables that differ in everything.
    """
    people = People(_ENOUGH[: len(peoples(statistic)[0].levels)])
    can, query = kinds(statistic), statistic.ask(TINY)
    decided = accord.plan(people.spec, query, neighbors=neighbors)
    account = Worst(decided, people.levels[0], Fraction(0))
    everyone = [(who,) * len(people.levels) for who in can[:: -(-len(can) // 6)]]
    table = cut(everyone, people.numbers, statistic.user, people.spec if neighbors == "add-remove" else None)
    receipts: list[Any] = []
    for k in range(len(everyone)):
        try:
            made = [table(k).plan(query), table(k).release(query).plan]
            receipt = carry_out(table(k), made[0], Tap()).receipt()
        except Leak as leak:
            account.see(inf, partial(str, leak), ())
            continue
        except Exception as fault:
            account.see(inf, partial(str, failing(fault)), ())
            continue
        same = all(_public(plan) == _public(decided) for plan in made)
        account.see(0 if same else inf, lambda: "what is decided depends on the data", ())
        receipts.append({name: entry for name, entry in receipt.items() if name != "time"})
        account.see(
            0 if receipts[0] == receipts[-1] else inf, lambda: "what is published depends on the data", ()
        )
    yield account


def _public(plan: Plan) -> Any:
    """A plan without what a table adds to it in words."""
    return {k: v for k, v in plan.describe().items() if k != "assumptions"}


def _crowd(count: int = 30) -> tuple[list[Row], list[float]]:
    """People and their levels."""
    rows = [row._replace(g=1 + k % 2) for k, row in enumerate(real_people(count))]
    return rows, [float(_LEVELS[k % len(_LEVELS)]) for k in range(len(rows))]


def _neighbors(
    rng: np.random.Generator, versions: Callable[[Row], list[Row]]
) -> Iterator[tuple[str, Row, list[Any]]]:
    """For each level somebody who has it, and tables in which they are one thing or another."""
    rows, levels = _crowd()
    for number, level in enumerate(_LEVELS):
        k = number + len(_LEVELS) * int(rng.integers(len(rows) // len(_LEVELS)))
        people: list[Any] = [(row,) for row in rows]
        yield (
            level,
            rows[k],
            [opened([*people[:k], (who,), *people[k + 1 :]], levels, False) for who in versions(rows[k])],
        )


def booked(mechanisms: Sequence[str]) -> Iterator[Worst]:
    """What a ledger takes from everyone is what the receipt says: of one question, of private groups, of a
    workload.
    """
    rows, levels = _crowd(3_000)  # as many as are worth asking at a small share
    table = opened([(row,) for row in rows], levels, True)
    mean, median = accord.mean("x", REAL.bounds), accord.median("x", REAL.bounds, step=100)
    groups = accord.count(by="g", keys=[1, 2])
    with TemporaryDirectory() as folder:
        ledger = accord.Ledger(f"{folder}/audit.db")
        ledger.register(table, "people")

        def spent() -> dict[float, int]:
            return {a.level: round(a.spent[0] * 10**6) for a in ledger.accounts()}

        decided: list[Any] = [
            p for q in (mean, median, groups) for p in plans(table.spec(), q, "0.03", "replace", mechanisms)
        ]
        for plan in (*decided, table.plan(accord.workload([mean, median, groups]), share=0.03)):
            before = spent()
            receipt = {
                e["level"]: e["charge"] for e in table.release(plan, ledger=ledger).receipt()["charges"]
            }
            after = spent()
            for raw in _LEVELS:
                text = level_text(int(to_micro(float(raw))))
                account = Worst(plan.parts[0], raw, Fraction(after[float(text)] - before[float(text)], 10**6))
                account.see(Fraction(receipt[text]), lambda: "less is booked in a ledger than is charged", ())
                yield account


def kept(rng: np.random.Generator) -> Iterator[Worst]:
    """Whose rows an algorithm of one's own gets to see: those whose own word is below the chance of their
    level, and no others.
    """
    _, levels = _crowd()
    levels = [0.0, *levels[1:]]
    table = accord.table({"id": np.arange(float(len(levels))), "e": np.array(levels)}, epsilon="e")
    query = asked(lambda rows, epsilon: 0, table, ["id"], "numpy")
    for plan in plans(table.spec(), query, "1", "replace", ["sample"]):
        sampled = keeping(plan)
        assert sampled is not None
        given = Worst(plan, level_text(sampled.t), Fraction(sampled.t, 2 * 10**6))
        t = sampled.t / 10**6
        told: Any = accord.sample(lambda rows, epsilon: epsilon, table, t, columns=["id"], rows="numpy").value
        given.see(Fraction(told), lambda: "an algorithm is told more than it may lose", ())
        yield given
        rows = [chances(plan).get(int(to_micro(level)), 0) for level in levels]
        account = Worst(plan, "any", Fraction(0))
        for _ in range(3):
            tap = Tap(kept=(rng.random(len(levels)) < 0.5).tolist(), rows=rows)
            seen = table.reader.rows(query, None, sampled.keep, tap)[:, 0].astype(int).tolist()
            right = sorted(seen) == [k for k, (_, heads) in enumerate(tap.coins) if heads]
            account.see(0 if right else inf, lambda: "others are kept than those whose word says so", ())
        yield account
    many = np.arange(1, _LEVELS_BY_TABLE + 1) / 100
    table = accord.table({"id": np.arange(float(many.size)), "e": many}, epsilon="e")
    for plan in plans(table.spec(), query, "1", "replace", ["sample"]):
        account, sampled = Worst(plan, "any", Fraction(0)), keeping(plan)
        assert sampled is not None
        for k in rng.integers(many.size // 2, size=3):
            for word in (
                int(sampled.keep[k]) - 1,
                int(sampled.keep[k]),
            ):  # one for all, so that their order does not matter
                same = Words(np.full(many.size, word, dtype=np.uint64))
                seen = table.reader.rows(query, None, sampled.keep, same)[:, 0].astype(int).tolist()
                right = sorted(seen) == np.flatnonzero(sampled.keep > np.uint64(word)).tolist()
                account.see(0 if right else inf, lambda: "others are kept than those whose word says so", ())
        yield account


def rest(rng: np.random.Generator) -> Iterator[Worst]:
    """Of plans for what is left in a ledger: by level, or person by person where people of one level have
    different amounts left.
    """
    rows, levels = _crowd()
    people: list[Any] = [(row,) for row in rows]
    query = accord.mean("x", REAL.bounds, step=100)
    for some in (len(rows), len(rows) // 2):
        everyone, part = opened(people, levels, True), opened(people[:some], levels[:some], True)
        with TemporaryDirectory() as folder:
            ledger = accord.Ledger(f"{folder}/audit.db")
            ledger.register(everyone, "people")
            if some < len(rows):
                ledger.register(part, "some")
            spent = charged(part.release(query, "minimum", 0.5, ledger=ledger).plan, _LEVELS)
            plan = accord.plan(ledger.remaining(everyone), query, "proportional", 0.2)
            left = charging.reserve(ledger.books, everyone, plan).remaining
        for k in (*rng.permutation(some)[:3].tolist(), len(rows) - 1):
            raw = _LEVELS[k % len(_LEVELS)]
            has = Fraction(level_text(int(to_micro(float(raw))))) - Fraction(spent[raw] if k < some else 0)
            account = Worst(plan, raw, promised(plan, [level_text(int(has * 10**6))]).popitem()[1])
            versions = [
                [*people[:k], (rows[k]._replace(x=x),), *people[k + 1 :]] for x in (*REAL.bounds, nan)
            ]
            laws = [_draws([plan], opened(version, levels, True), left) for version in versions]
            for one, other in combinations(laws, 2):
                account.see(*compared(one, other, partial(str, _CHANGED)), ())
            yield account


def together(rng: np.random.Generator) -> Iterator[Worst]:
    """A workload costs everyone what it says, for all its questions together."""
    questions = accord.workload(
        [
            accord.mean("x", REAL.bounds, step=100),
            accord.median("x", REAL.bounds, step=100),
            accord.histogram("x", edges=REAL.edges),
            accord.mean("x", REAL.bounds, by="g", keys=[1, 2]),
        ]
    )
    low, high = REAL.bounds
    for level, _, tables in _neighbors(rng, lambda row: [row, Row(low), Row(high, g=2, m=0), Row(nan, g=9)]):
        plan = tables[0].plan(questions)
        account = Worst(plan.parts[0], level, promised(plan, _LEVELS)[level])
        for one, other in combinations([_draws(plan.parts, table) for table in tables], 2):
            account.see(*compared(one, other, partial(str, _CHANGED)), ())
        yield account


def public_groups(rng: np.random.Generator) -> Iterator[Worst]:
    """Of public groups, only one's own charges a person, and only its answer moves with them."""
    query = accord.mean("x", REAL.bounds, step=100, by="g", keys=[1, 2], membership="public")
    for level, who, tables in _neighbors(rng, lambda row: [row._replace(x=x) for x in (*REAL.bounds, nan)]):
        whole = tables[0].plan(query)
        for key, plan in whole.plans.items():
            account = Worst(plan, level, promised(plan, _LEVELS)[level] if key == who.g else Fraction(0))
            groups = [_draws([plan], table.groups(whole.query.part)[key]) for table in tables]
            for one, other in combinations(groups, 2):
                account.see(*compared(one, other, partial(str, _CHANGED)), ())
            yield account
    twice = accord.table(
        {"x": [1.0, 2.0], "g": [1, 2], "id": [7, 7], "e": [1.0, 1.0]}, epsilon="e", user="id"
    )
    account = Worst(plan, "1", Fraction(0))
    try:
        twice.plan(query)
        account.see(inf, lambda: "somebody with rows in two public groups pays for one", ())
    except QueryError:
        account.see(0, lambda: "", ())
    yield account


def _draws(plans: Sequence[Plan], table: accord.Table, left: Any = None) -> Law | Leak:
    """Of several plans about one table."""
    try:
        laws = [frozen(partial(drawn, plan, summaries(table.reader, plan, Tap(), left)))[0] for plan in plans]
    except Leak as leak:
        return leak
    except Exception as fault:
        return failing(fault)
    parts = tuple(draw for law in laws for draw in law.parts[0])
    return Law((1.0,), (parts,), tuple(answer for law in laws for answer in law.answers))
