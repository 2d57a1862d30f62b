"""The replay method: neighbors of real tables through the real engine, with the noise frozen.

Integers and scores move by at most the charge, and nothing else moves.

People are the first of the bundled table, with levels that are awkward on purpose; who changes, and into
what, is partly the worst that can be thought of (ends of the bounds, far beyond them, missing, infinite,
between two points of the grid, into another group, many rows) and partly drawn at random, anew in each audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from math import expm1, inf, log, log1p, nan, nextafter
from typing import Any

import numpy as np

from accord.budget import PUBLIC, to_micro
from accord.lab.audit.case_plans import keep_chances, plans, promised_losses, sampling_of
from accord.lab.audit.case_tables import Person, Row, comes_and_goes, open_tables, real_people, said_of
from accord.lab.audit.cases import REAL, Statistic
from accord.lab.audit.exact import WorstLoss, compare, failure, noisy_answer
from accord.lab.audit.recording_noise import SURE, Leak, RecordingNoise
from accord.lab.audit.release_laws import Law, law_if_all_are_kept
from accord.mechanisms.record import Mechanism
from accord.planning import Plan
from accord.release.release import read_summaries
from accord.spec import Spec
from accord.statistics import Grouped

_PEOPLE = 40
_LARGE = 700.0
"""Where exp is about to overflow."""
_LEVELS = {
    "with public people and some who opted out": ("0.1234569", "0.7", "2.5", "inf", "0"),
    "of many rows": ("0.1234569", "0.3", "0.7", "1.1", "2.5"),
}
_LARGE_LEVELS = {"of large levels": ("12.34569", "70", "250", "inf", "0")}
"""For quantiles that are drawn together."""
_UNEXPECTED = "9.75"
"""A level that the roster does not have: such people are not read."""
_ODD_VALUES = (
    nan,
    inf,
    -inf,
    1e308,
    -0.0,
    5e-324,
    50.0,
    49.999999999999993,
    REAL.bounds[0] - 1,
    REAL.bounds[1] + 1,
)


def examine(
    statistic: Statistic, neighbors: str, mechanisms: Sequence[str | Mechanism], rng: np.random.Generator
) -> Iterator[WorstLoss]:
    """Of every plan and level, the largest loss that was seen."""
    for name, levels in (_LARGE_LEVELS if statistic.is_generous else _LEVELS).items():
        user = statistic.needs_user or name == "of many rows"
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
        if comes_and_goes(neighbors):
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
        self.roster = said_of(Spec.of(expected), neighbors)
        self.spec = self.roster or Spec.of(numbers)
        tables: list[list[Person | None]] = [[*self.base]]
        self.versions: dict[str, list[int]] = {}
        """Of each level, the numbers of tables that differ in one person of it."""
        for number, level in enumerate(levels):
            k = int(rng.choice([j for j, r in enumerate(raw) if r == level]))
            changed = [[*self.base[:k], who, *self.base[k + 1 :]] for who in self._people(k, number)]
            new = range(len(tables), len(tables) + len(changed))
            self.versions[level] = [*new] if self.roster else [0, *new]
            tables += changed
        self.table = open_tables(tables, numbers, user, self.roster)
        self.summaries: dict[Any, Any] = {}
        self.laws: dict[Any, Law | Leak] = {}

    def _people(self, k: int, number: int) -> list[Person | None]:
        """What one person may be beside what they are: the worst that can be thought of, and at random.

        Where people come and go, first of all absent.
        """
        rng, (low, high) = self.rng, REAL.bounds
        rows = [
            Row(-1e308, low, 1, 1),
            Row(nextafter(high, low), high, 2, 0),
            *(Row(_ODD_VALUES[(2 * number + k) % len(_ODD_VALUES)], high, 9, 1) for k in range(2)),
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
        return [None, *people] if self.roster else [*people]

    def examine(self, mechanisms: Sequence[str | Mechanism]) -> Iterator[WorstLoss]:
        for plan in plans(self.spec, self.query, "1", self.neighbors, mechanisms):
            self.laws.clear()
            for level, promised in promised_losses(plan, self.levels).items():
                if promised < inf:
                    yield self._worst(WorstLoss(plan, level, promised))

    def _worst(self, worst: WorstLoss) -> WorstLoss:
        """Over all pairs of versions of one person; under add-remove, the first of which is their absence."""
        laws = [self._law(worst.plan, number) for number in self.versions[worst.level]]
        pairs = ((laws[0], other) for other in laws[1:]) if self.roster else combinations(laws, 2)
        for here, there in pairs:
            loss, evidence = compare(here, there, lambda: "one person's change")
            if sampling_of(worst.plan) is not None and loss < inf:
                loss = amplified(worst.plan, worst.level, float(loss))
            worst.see(loss, evidence)
        return worst

    def _law(self, plan: Plan, number: int) -> Law | Leak:
        """Kept while one plan is examined."""
        if number not in self.laws:
            self.laws[number] = self._law_anew(plan, number)
        return self.laws[number]

    def _law_anew(self, plan: Plan, number: int) -> Law | Leak:
        kept = tuple(chance > 0 for chance in keep_chances(plan).values()) if plan.method.keeps_rows else ()
        key = number, plan.query, plan.method.needs_cells, kept
        try:
            if key not in self.summaries:
                self.summaries[key] = read_summaries(self.table(number).reader, plan, RecordingNoise())
            law, noise = law_if_all_are_kept(partial(noisy_answer, plan, self.summaries[key]))
            _refuse_chances(plan, noise)
            return law
        except Leak as leak:
            return leak
        except Exception as fault:
            return failure(fault)


def _refuse_chances(plan: Plan, noise: RecordingNoise) -> None:
    """Nobody is kept by another chance than their level's, nor in more groups than they may be in."""
    if sampling_of(plan) is None:
        return
    groups = plan.query.part.at_most if isinstance(plan.query, Grouped) else 1
    allowed = dict(zip(keep_chances(plan).values(), (groups * plan.spec.people).tolist(), strict=True))
    asked = Counter(chance for chance, _ in noise.coins)
    if any(count > allowed.get(chance, 0) for chance, count in asked.items()):
        raise Leak("somebody is kept by a chance that is not their level's")


def amplified(plan: Plan, level: str, inner: float) -> float:
    """What keeping people at random makes of the loss of those who are kept: mechanisms/sample.py proves it.

    A loss d between two values is made of what is above and what is below the law without the person, a and
    d − a, neither more than s. Where people come into groups and go out of them, it is made of as many
    losses, none more than s; keeping them makes ln(1 − π + π·e^x) of each, which is convex: at worst some
    lose s, and one the rest.
    """
    sampled = sampling_of(plan)
    assert sampled is not None
    t, pi = sampled.t, keep_chances(plan).get(int(to_micro(float(level))), 0) / SURE
    if t == PUBLIC or pi == 0:
        return inner
    if not plan.target.relation.people_are_public:
        largest = max(min(t / 10**6, inner), inner / plan.times)
        several, rest = divmod(inner, largest) if largest else (0, 0.0)
        return several * _log_mixture(pi, largest) + _log_mixture(pi, rest)
    s = t / 10**6 / 2
    splits = np.linspace(max(0.0, inner - s), min(s, inner), 33).tolist() if inner <= 2 * s else [inner / 2]
    return max(_log_mixture(pi, a) - _log_mixture(pi, a - inner) for a in splits)


def _log_mixture(pi: float, x: float) -> float:
    """ln(1 − π + π·exp(x))."""
    if pi >= 1:
        return x
    return log1p(pi * expm1(x)) if x < _LARGE else log(pi) + x
