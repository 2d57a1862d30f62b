"""What must hold whatever is asked: `accord audit --statistic basics`, by replay.

The order of rows, what is decided beforehand, what is booked, who is kept, several questions at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import nan
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord.budget import level_text, to_micro
from accord.errors import QueryError
from accord.lab.audit.case_plans import keep_chances, plans, promised_losses, published_charges, sampling_of
from accord.lab.audit.case_tables import (
    Population,
    Row,
    comes_and_goes,
    open_table,
    open_tables,
    populations,
    possible_people,
    real_people,
    said_of,
)
from accord.lab.audit.cases import REAL, TINY, Statistic
from accord.lab.audit.exact import WorstLoss, compare, failure, noisy_answer
from accord.lab.audit.recording_noise import FixedWords, Leak, RecordingNoise
from accord.lab.audit.release_laws import Law, law_if_all_are_kept
from accord.ledger import charging
from accord.mechanisms.record import Mechanism
from accord.planning import Plan
from accord.release.release import carry_out, read_summaries
from accord.sampling import algorithm_query

_MANY = 40_000
_MANY_LEVELS = 80
"""So many that the engine looks chances up in a table."""
_LEVELS = ("0.1234569", "0.7", "2.5")
_ENOUGH = ("700", "7000", "90000")
"""Levels at which a few people are worth asking."""
_UNEQUAL = ("5", "700", "7000")
"""Levels at which questions of one box are charged differently."""
_OTHERS_KEPT = "others are kept than those whose word says so"


def row_order(rng: np.random.Generator) -> Iterator[WorstLoss]:
    """Rows in another order are the same table: no bit moves, however large the sums are."""
    x = rng.integers(0, 2**40, _MANY).astype(np.float64)
    query = accord.mean("x", (0, 2**40), step=1)
    tables = [
        accord.table({"x": column, "e": np.ones(_MANY)}, epsilon="e")
        for column in (x, rng.permutation(x), np.sort(x), np.sort(x)[::-1])
    ]
    plan = accord.plan(tables[0].spec(), query, "affine")
    first, *others = (_law([plan], table) for table in tables)
    worst = WorstLoss(plan, "1", Fraction(0))
    for other in others:
        worst.see(*compare(first, other, lambda: "rows in another order"))
    yield worst


def decisions(statistic: Statistic, neighbors: str) -> Iterator[WorstLoss]:
    """What is decided before the noise is drawn follows from public things alone.

    Whole releases by `auto`, on tiny tables that differ in everything.
    """
    population = Population(_ENOUGH[: len(populations(statistic)[0].levels)])
    possible, query = possible_people(statistic), statistic.ask(TINY)
    plan = accord.plan(population.spec, query, neighbors=neighbors)
    worst = WorstLoss(plan, population.levels[0], Fraction(0))
    size = len(population.levels)
    tables: list[tuple[Any, ...]] = [(who,) * size for who in possible[:: -(-len(possible) // 6)]]
    if comes_and_goes(neighbors):  # of fewer people, and of fewer levels
        tables = [(*table[k % size :], *[None] * (k % size)) for k, table in enumerate(tables)]
    roster = said_of(population.spec, neighbors)
    table = open_tables(tables, population.numbers, statistic.needs_user, roster)
    receipts: list[Any] = []
    for k in range(len(tables)):
        try:
            own_plans = [table(k).plan(query), table(k).release(query).plan]
            receipt = carry_out(table(k).reader, own_plans[0], RecordingNoise()).receipt()
        except Leak as leak:
            worst.require(False, str(leak))
            continue
        except Exception as fault:
            worst.require(False, str(failure(fault)))
            continue
        same = all(_public(own_plan) == _public(plan) for own_plan in own_plans)
        worst.require(same, "what is decided depends on the data")
        receipts.append({name: entry for name, entry in receipt.items() if name != "time"})
        worst.require(receipts[0] == receipts[-1], "what is published depends on the data")
    yield worst


def _public(plan: Plan) -> Any:
    """A plan without what a table adds to it in words."""
    return {k: v for k, v in plan.describe().items() if k != "assumptions"}


def _crowd(count: int = 30, of: tuple[str, ...] = _LEVELS) -> tuple[list[Row], list[float]]:
    """People and their levels."""
    rows = [row._replace(g=1 + k % 2) for k, row in enumerate(real_people(count))]
    return rows, [float(of[k % len(of)]) for k in range(len(rows))]


def _neighbors(
    rng: np.random.Generator, versions: Callable[[Row], list[Row]], of: tuple[str, ...] = _LEVELS
) -> Iterator[tuple[str, Row, list[accord.Table]]]:
    """For each level somebody who has it, and tables in which they are one thing or another."""
    rows, levels = _crowd(of=of)
    for number, level in enumerate(of):
        k = number + len(of) * int(rng.integers(len(rows) // len(of)))
        people: list[Any] = [(row,) for row in rows]
        yield (
            level,
            rows[k],
            [open_table([*people[:k], (who,), *people[k + 1 :]], levels, False) for who in versions(rows[k])],
        )


def booked_charges(mechanisms: Sequence[str | Mechanism]) -> Iterator[WorstLoss]:
    """What a ledger takes from everyone is what the receipt says.

    Of one question, of private groups, of a workload.
    """
    rows, levels = _crowd(3_000)  # as many as are worth asking at a small share
    table = open_table([(row,) for row in rows], levels, True)
    mean, median = accord.mean("x", REAL.bounds), accord.median("x", REAL.bounds, step=100)
    groups = accord.count(by="g", keys=[1, 2])
    with TemporaryDirectory() as folder:
        ledger = accord.Ledger(f"{folder}/audit.db")
        ledger.register(table, "people")

        def spent() -> dict[float, int]:
            return {a.level: round(a.spent[0] * 10**6) for a in ledger.accounts()}

        single: list[Any] = [
            p for q in (mean, median, groups) for p in plans(table.spec(), q, "0.03", "replace", mechanisms)
        ]
        for plan in (*single, table.plan(accord.workload([mean, median, groups]), share=0.03)):
            before = spent()
            charges = table.release(plan, ledger=ledger).receipt()["charges"]
            after = spent()
            receipt = {entry["level"]: entry["charge"] for entry in charges}
            for raw in _LEVELS:
                level = level_text(int(to_micro(float(raw))))
                booked = Fraction(after[float(level)] - before[float(level)], 10**6)
                worst = WorstLoss(plan.parts[0], raw, booked)
                worst.see(Fraction(receipt[level]), lambda: "less is booked in a ledger than is charged")
                yield worst


def kept_people(rng: np.random.Generator) -> Iterator[WorstLoss]:
    """An algorithm of one's own sees exactly those whose random word is below the chance of their level."""
    _, levels = _crowd()
    levels = [0.0, *levels[1:]]
    table = accord.table({"id": np.arange(float(len(levels))), "e": np.array(levels)}, epsilon="e")
    query = algorithm_query(lambda rows, epsilon: 0, table, ["id"], "numpy")
    for plan in plans(table.spec(), query, "1", "replace", ["sample"]):
        sampled = sampling_of(plan)
        assert sampled is not None
        worst = WorstLoss(plan, level_text(sampled.t), Fraction(sampled.t, 2 * 10**6))
        release = accord.sample(
            lambda rows, epsilon: epsilon, table, sampled.t / 10**6, columns=["id"], rows="numpy"
        )
        epsilon: Any = release.value
        worst.see(Fraction(epsilon), lambda: "an algorithm is told more than it may lose")
        yield worst
        by_level = keep_chances(plan)
        chances = [by_level.get(int(to_micro(level)), 0) for level in levels]
        worst = WorstLoss(plan, "any", Fraction(0))
        for _ in range(3):
            noise = RecordingNoise(kept=(rng.random(len(levels)) < 0.5).tolist(), row_chances=chances)
            seen = table.reader.rows(query, None, sampled.keep, noise)[:, 0].astype(int).tolist()
            heads = [k for k, (_, heads) in enumerate(noise.coins) if heads]
            worst.require(sorted(seen) == heads, _OTHERS_KEPT)
        yield worst
    many = np.arange(1, _MANY_LEVELS + 1) / 100
    table = accord.table({"id": np.arange(float(many.size)), "e": many}, epsilon="e")
    for plan in plans(table.spec(), query, "1", "replace", ["sample"]):
        worst, sampled = WorstLoss(plan, "any", Fraction(0)), sampling_of(plan)
        assert sampled is not None
        for k in rng.integers(many.size // 2, size=3):
            for word in (int(sampled.keep[k]) - 1, int(sampled.keep[k])):
                # one word for all, so that their order does not matter
                words = FixedWords(np.full(many.size, word, dtype=np.uint64))
                seen = table.reader.rows(query, None, sampled.keep, words)[:, 0].astype(int).tolist()
                below = np.flatnonzero(sampled.keep > np.uint64(word)).tolist()
                worst.require(sorted(seen) == below, _OTHERS_KEPT)
        yield worst


def remaining_budgets(rng: np.random.Generator) -> Iterator[WorstLoss]:
    """Plans for what remains in a ledger cost no more than that.

    By level, or person by person where people of one level have different amounts left.
    """
    rows, levels = _crowd()
    people: list[Any] = [(row,) for row in rows]
    query = accord.mean("x", REAL.bounds, step=100)
    for some in (len(rows), len(rows) // 2):
        everyone, part = open_table(people, levels, True), open_table(people[:some], levels[:some], True)
        with TemporaryDirectory() as folder:
            ledger = accord.Ledger(f"{folder}/audit.db")
            ledger.register(everyone, "people")
            if some < len(rows):
                ledger.register(part, "some")
            spent = published_charges(part.release(query, "minimum", 0.5, ledger=ledger).plan, _LEVELS)
            plan = accord.plan(ledger.remaining(everyone), query, "proportional", 0.2)
            remaining = charging.reserve(ledger.books, everyone, plan).remaining
        for k in (*rng.permutation(some)[:3].tolist(), len(rows) - 1):
            raw = _LEVELS[k % len(_LEVELS)]
            budget = Fraction(level_text(int(to_micro(float(raw))))) - Fraction(spent[raw] if k < some else 0)
            worst = WorstLoss(
                plan, raw, promised_losses(plan, [level_text(int(budget * 10**6))]).popitem()[1]
            )
            versions = [
                [*people[:k], (rows[k]._replace(x=x),), *people[k + 1 :]] for x in (*REAL.bounds, nan)
            ]
            laws = [_law([plan], open_table(version, levels, True), remaining) for version in versions]
            yield _compared_pairwise(worst, laws)


def workload(rng: np.random.Generator) -> Iterator[WorstLoss]:
    """A workload costs everyone what it says, for all its questions together.

    Of several kinds; and of sums, counts and means that share one noise, beside others that have their own,
    at levels at which they are charged differently.
    """
    several = [
        accord.mean("x", REAL.bounds, step=100),
        accord.median("x", REAL.bounds, step=100),
        accord.histogram("x", edges=REAL.edges),
        accord.mean("x", REAL.bounds, by="g", keys=[1, 2]),
    ]
    sharing = [
        accord.mean("x", REAL.bounds, step=100),
        accord.mean("x", REAL.bounds, std=(REAL.bounds[1] - REAL.bounds[0]) / 1000, missing="none"),
        accord.count(where="m = 1"),
        accord.sum("x", REAL.bounds, step=100, where="g = 1"),
        accord.variance("x", REAL.bounds, step=100, missing="none"),
        accord.histogram("x", edges=REAL.edges),
    ]
    low, high = REAL.bounds
    for questions, levels in ((several, _LEVELS), (sharing, _UNEQUAL)):
        for level, _, tables in _neighbors(
            rng, lambda row: [row, Row(low), Row(high, g=2, m=0), Row(nan, g=9)], levels
        ):
            plan = tables[0].plan(accord.workload(questions))
            worst = WorstLoss(plan.parts[0], level, promised_losses(plan, levels)[level])
            yield _compared_pairwise(worst, [_law_of_workload(plan, table) for table in tables])


def _law_of_workload(plan: Plan, table: accord.Table) -> Law | Leak:
    """Of all answers of a plan together."""

    def run(noise: RecordingNoise) -> Any:
        return [(part.answer, part.released) for part in carry_out(table.reader, plan, noise).parts]

    try:
        return law_if_all_are_kept(run)[0]
    except Leak as leak:
        return leak
    except Exception as fault:
        return failure(fault)


def public_groups(rng: np.random.Generator) -> Iterator[WorstLoss]:
    """Of public groups, only one's own charges a person, and only its answer moves with them."""
    query = accord.mean("x", REAL.bounds, step=100, by="g", keys=[1, 2], membership="public")
    for level, who, tables in _neighbors(rng, lambda row: [row._replace(x=x) for x in (*REAL.bounds, nan)]):
        whole: Any = tables[0].plan(query)
        for key, plan in whole.plans.items():
            promised = promised_losses(plan, _LEVELS)[level] if key == who.g else Fraction(0)
            groups = [table.groups(whole.query.part)[key] for table in tables]
            yield _compared_pairwise(
                WorstLoss(plan, level, promised), [_law([plan], group) for group in groups]
            )
    in_both = accord.table(
        {"x": [1.0, 2.0], "g": [1, 2], "id": [7, 7], "e": [1.0, 1.0]}, epsilon="e", user="id"
    )
    worst = WorstLoss(plan, "1", Fraction(0))
    try:
        in_both.plan(query)
        worst.require(False, "somebody with rows in two public groups pays for one")
    except QueryError:
        worst.require(True, "")
    yield worst


def _compared_pairwise(worst: WorstLoss, laws: Sequence[Law | Leak]) -> WorstLoss:
    for here, there in combinations(laws, 2):
        worst.see(*compare(here, there, lambda: "one person's change"))
    return worst


def _law(plans: Sequence[Plan], table: accord.Table, remaining: Any = None) -> Law | Leak:
    """Of several plans about one table."""
    try:
        laws = [
            law_if_all_are_kept(
                partial(noisy_answer, plan, read_summaries(table.reader, plan, RecordingNoise(), remaining))
            )[0]
            for plan in plans
        ]
    except Leak as leak:
        return leak
    except Exception as fault:
        return failure(fault)
    draws = tuple(draw for law in laws for draw in law.branches[0])
    return Law((1.0,), (draws,), tuple(answer for law in laws for answer in law.answers))
