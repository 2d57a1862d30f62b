"""The replay: neighbors of real tables through the real engine, with the noise frozen. Integers and scores
move by at most the charge, and nothing else moves.

People are the first of the bundled table, with levels that are awkward on purpose; who changes, and into
what, is partly the worst that can be thought of (ends of the bounds, far beyond them, missing, infinite,
between two points of the grid, into another group, many rows) and partly drawn at random, anew in each audit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from math import expm1, inf, log, log1p, nan, nextafter
from typing import Any

import numpy as np

from accord.budget import PUBLIC, to_micro
from accord.lab.audit.cases import (
    REAL,
    Person,
    Row,
    Statistic,
    chances,
    cut,
    keeping,
    plans,
    promised,
    real_people,
)
from accord.lab.audit.exact import Worst, compared, drawn, failing
from accord.lab.audit.laws import SURE, Law, Leak, Tap, frozen
from accord.planning import Plan
from accord.relation import ADD_REMOVE
from accord.release.release import summaries
from accord.spec import Spec

_PEOPLE, _LARGE = 40, 700.0
_LEVELS = {
    "with public people and some who opted out": ("0.1234569", "0.7", "2.5", "inf", "0"),
    "of many rows": ("0.1234569", "0.3", "0.7", "1.1", "2.5"),
}
_UNEXPECTED = "9.75"
"""A level that the roster does not have: such people are not read."""
_ODD = (nan, inf, -inf, 1e308, -0.0, 5e-324, 50.0, 49.999999999999993, REAL.bounds[0] - 1, REAL.bounds[1] + 1)


def examine(
    statistic: Statistic, neighbors: str, mechanisms: Sequence[str], rng: np.random.Generator
) -> Iterator[Worst]:
    """Of every plan and level, the largest loss that was seen."""
    for name, levels in _LEVELS.items():
        user = statistic.user or name == "of many rows"
        yield from _Tables(statistic, neighbors, levels, user, rng).examine(mechanisms)


class _Tables:
    """Neighbors of one table."""

    def __init__(
        self,
        statistic: Statistic,
        neighbors: str,
        levels: tuple[str, ...],
        user: bool,
        rng: np.random.Generator,
    ) -> None:
        if neighbors == "add-remove":
            levels = (*levels, _UNEXPECTED)
        self.neighbors, self.levels, self.user, self.rng = neighbors, levels, user, rng
        self.query = statistic.ask(REAL)
        self.base: list[Person] = [(row,) for row in real_people(_PEOPLE)]
        if user:  # of one to four rows
            self.base = [
                tuple(person[0]._replace(x=person[0].x + 1_000 * k) for k in range(1 + i % 4))
                for i, person in enumerate(self.base)
            ]
        raw = [levels[k % len(levels)] for k in range(_PEOPLE)]
        numbers = [float(level) for level in raw]
        expected = [x for x in (*numbers, *map(float, levels)) if x != float(_UNEXPECTED)]
        self.roster = Spec.of(expected) if neighbors == "add-remove" else None
        self.spec = self.roster or Spec.of(numbers)
        tables: list[list[Person | None]] = []
        self.versions: dict[str, list[int]] = {}
        """Of each level, the numbers of tables that differ in one person of it."""
        for number, level in enumerate(levels):
            k = int(rng.choice([j for j, r in enumerate(raw) if r == level]))
            changed = [[*self.base[:k], who, *self.base[k + 1 :]] for who in self._people(k, number)]
            self.versions[level] = list(range(len(tables), len(tables) + len(changed)))
            tables += changed
        self.table = cut(tables, numbers, user, self.roster)
        self.read: dict[Any, Any] = {}

    def _people(self, k: int, number: int) -> list[Person | None]:
        """What one person may be: as they are or absent, the worst that can be thought of, and at random."""
        rng, (low, high) = self.rng, REAL.bounds
        rows = [
            Row(-1e308, low, 1, 1),
            Row(nextafter(high, low), high, 2, 0),
            *(Row(_ODD[(2 * number + k) % len(_ODD)], high, 9, 1) for k in range(2)),
            Row(
                float(rng.uniform(2 * low, 1.5 * high)),
                float(rng.choice([low, nan, high])),
                float(rng.choice([1, 2, nan])),
                float(rng.choice([0, 1, nan])),
            ),
        ]
        people: list[Person] = [(row,) for row in rows]
        if self.user:
            people[1], people[-1] = (rows[1],) * 7, tuple(rows)
        return [None if self.roster else self.base[k], *people]

    def examine(self, mechanisms: Sequence[str]) -> Iterator[Worst]:
        for plan in plans(self.spec, self.query, "1", self.neighbors, mechanisms):
            for raw, most in promised(plan, self.levels).items():
                if most == inf:
                    continue
                account = Worst(plan, raw, most)
                found = [self._law(plan, which) for which in self.versions[raw]]
                pairs = (
                    zip(found[:1] * (len(found) - 1), found[1:], strict=True)
                    if self.roster
                    else combinations(found, 2)
                )
                for one, other in pairs:
                    lost, said = compared(one, other, partial(str, "one person's change"))
                    if keeping(plan) is not None and lost < inf:
                        lost = amplified(plan, raw, float(lost))
                    account.see(lost, said, ())
                yield account

    def _law(self, plan: Plan, which: int) -> Law | Leak:
        kept = tuple(chance > 0 for chance in chances(plan).values()) if plan.method.keeps_rows else ()
        key = which, plan.query, plan.method.needs_cells, kept
        try:
            if key not in self.read:
                self.read[key] = summaries(self.table(which).reader, plan, Tap())
            law, tap = frozen(partial(drawn, plan, self.read[key]))
            _refuse_chances(plan, tap)
            return law
        except Leak as leak:
            return leak
        except Exception as fault:
            return failing(fault)


def _refuse_chances(plan: Plan, tap: Tap) -> None:
    """Nobody is kept by another chance than their level's."""
    if keeping(plan) is None:
        return
    allowed = dict(zip(chances(plan).values(), plan.spec.people.tolist(), strict=True))
    asked: dict[int, int] = {}
    for chance, _ in tap.coins:
        asked[chance] = asked.get(chance, 0) + 1
    if any(count > allowed.get(chance, 0) for chance, count in asked.items()):
        raise Leak("somebody is kept by a chance that is not their level's")


def amplified(plan: Plan, raw: str, inner: float) -> float:
    """What keeping people at random makes of the loss of those who are kept, by the proof in
    mechanisms/sample.py.

    A loss d between two values is made of what is above and what is below the law without the person, a and d
    − a, neither more than s. Where people move between groups, it is made of going and coming.
    """
    sampled = keeping(plan)
    assert sampled is not None
    t, pi = sampled.t, chances(plan).get(int(to_micro(float(raw))), 0) / SURE
    if t == PUBLIC or pi == 0:
        return inner
    alone = plan.target.relation == ADD_REMOVE
    if alone and plan.times == 1:
        return _mixed(pi, inner)
    s = t / 10**6 if alone else t / 10**6 / 2
    splits = np.linspace(max(0.0, inner - s), min(s, inner), 33).tolist() if inner <= 2 * s else [inner / 2]
    return max(_mixed(pi, a) + (_mixed(pi, inner - a) if alone else -_mixed(pi, a - inner)) for a in splits)


def _mixed(pi: float, x: float) -> float:
    """ln(1 − π + π·exp(x))."""
    if pi >= 1:
        return x
    return log1p(pi * expm1(x)) if x < _LARGE else log(pi) + x
