"""The exact method: every table on a tiny domain, every neighbor, every output.

The loss is reckoned from probabilities, not estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, product
from math import inf
from typing import Any

import numpy as np

from accord import relation
from accord.budget import to_micro
from accord.lab.audit.case_plans import keep_chances, plans, promised_losses, published_charges
from accord.lab.audit.case_tables import (
    Person,
    Population,
    comes_and_goes,
    open_table,
    open_tables,
    people_text,
    populations,
    possible_people,
    said_of,
)
from accord.lab.audit.cases import TINY, Statistic
from accord.lab.audit.noise_source import secure
from accord.lab.audit.recording_noise import Leak, RecordingNoise
from accord.lab.audit.release_laws import Law, Run, law, loss
from accord.mechanisms.record import Mechanism
from accord.people.summary import Summary
from accord.people.table import Table
from accord.planning import Plan
from accord.release.answer import answer
from accord.release.release import read_summaries
from accord.spec import Spec
from accord.statistics import Query

TinyTable = tuple[Person | None, ...]
"""Everyone in the order of their levels; None: not there."""
Places = tuple[int, ...]
"""Which of the levels each of them has: one each, in their order, unless levels are private."""
_READ_WHOLE = 12
"""About so many tiny tables are read whole."""


@dataclass
class WorstLoss:
    """The largest loss of a person of one level, against what was promised."""

    plan: Plan
    level: str
    promised: Fraction | float
    loss: Fraction | float = 0
    evidence: str = ""
    pair: tuple[Any, ...] | None = None
    """The two releases that show it: without a RecordingNoise they draw real noise."""

    @property
    def ratio(self) -> float:
        """What was lost, as a part of what was promised."""
        return float(self.loss) / float(self.promised)

    @property
    def is_slow(self) -> bool:
        """Whether a release reads its table each time."""
        return self.plan.keeps_rows

    def see(self, loss: Fraction | float, evidence: Callable[[], str], pair: tuple[Any, ...] = ()) -> None:
        """Remember a loss that is larger than those before; one that is no number counts as infinite."""
        if loss != loss:
            loss = inf
        if loss > self.loss or self.pair is None:
            self.loss, self.evidence, self.pair = loss, evidence(), pair

    def require(self, holds: bool, otherwise: str) -> None:
        """What must hold at all is an infinite loss where it does not."""
        self.see(0 if holds else inf, lambda: otherwise)


class TinyReader:
    """What the engine makes of tiny tables.

    It reads everyone possible at once, each with a level of their own; tiny tables are put together from
    that. Some are read whole as well, which must come to the same.
    """

    def __init__(self, statistic: Statistic, neighbors: str) -> None:
        self.statistic, self.neighbors = statistic, neighbors
        self.populations = populations(statistic, neighbors)
        self.possible = possible_people(statistic)
        levels = [(k + 1) / 1000 for k in range(len(self.possible))]
        roster = said_of(Spec.of(levels), neighbors)
        self._everyone = open_table(self.possible, levels, statistic.needs_user, roster)
        size = len(self.populations[0].levels)
        tables = list(product(self.possible_or_absent, repeat=size))
        self._read_whole = tables[:: -(-len(tables) // _READ_WHOLE)]
        self._all_alike = [(who,) * size for who in (self.possible[0], self.possible[-1])]
        self._cache: dict[Any, _Contributions | Leak] = {}
        self._tables: dict[Any, Table] = {}

    @property
    def in_order(self) -> Places:
        """One of each level."""
        return tuple(range(len(self.populations[0].levels)))

    def placings(self, k: int) -> Iterator[tuple[int, Places]]:
        """Whose change is looked at, of the k-th level, and the levels of all; private ones may be any."""
        if relation.named(self.neighbors).levels_are_public:
            yield k, self.in_order
            return
        for others in combinations_with_replacement(self.in_order, len(self.in_order) - 1):
            yield 0, (k, *others)

    @property
    def possible_or_absent(self) -> list[Person | None]:
        """What may be in one place of a tiny table."""
        return [*self.possible, None] if comes_and_goes(self.neighbors) else [*self.possible]

    def alike(self, plan: Plan, tiny: TinyTable) -> TinyTable:
        """A table of which a plan makes the same integers, the same one for all such tables.

        Where people are kept row by row, it is the table itself.
        """
        contributions = self._contributions_to(plan)
        if plan.method.keeps_rows or isinstance(contributions, Leak):
            return tiny
        return tuple(None if who is None else contributions.like[who] for who in tiny)

    def run(
        self, plan: Plan, tiny: TinyTable, population: Population, places: Places
    ) -> tuple[Run, list[int] | None]:
        """The release of a plan on a tiny table, up to its noise.

        And with which chance each row is kept, where that is decided row by row. Levels are all different and
        in the same order for all populations of a statistic, so that the integers by level are the same for
        all of them.
        """
        contributions = self._contributions_to(plan)
        if isinstance(contributions, Leak):
            raise contributions
        if not plan.method.keeps_rows:
            return partial(noisy_answer, plan, contributions.summaries(tiny, places)), None
        by_level, numbers = keep_chances(plan), [population.numbers[place] for place in places]
        levels = [level for level, who in zip(numbers, tiny, strict=True) if who is not None]
        run = partial(self._answer_by_row, contributions, plan, tiny, population, places)
        return run, [by_level[int(to_micro(level))] for level in levels]

    def _answer_by_row(
        self,
        contributions: _Contributions,
        plan: Plan,
        tiny: TinyTable,
        population: Population,
        places: Places,
        noise: RecordingNoise | None = None,
    ) -> Any:
        """Of the rows that are kept.

        Where everyone is alike, and for releases, the engine decides that; elsewhere it is put together.
        """
        if noise is None:
            table = self._table(tiny, population, places)
            return noisy_answer(plan, read_summaries(table.reader, plan, secure()))
        if tiny in self._all_alike:
            table = self._table(tiny, population, places)
            return noisy_answer(plan, read_summaries(table.reader, plan, noise), noise)
        noise.words(len(noise.row_chances or ()))
        heads = iter([heads for _, heads in noise.coins])
        kept = tuple(who if who is not None and next(heads) else None for who in tiny)
        return noisy_answer(plan, contributions.summaries(kept, places), noise)

    def _table(self, tiny: TinyTable, population: Population, places: Places) -> Table:
        key = tiny, population, places
        if key not in self._tables:
            numbers = [population.numbers[place] for place in places]
            said = said_of(population.spec, self.neighbors)
            self._tables[key] = open_table(tiny, numbers, self.statistic.needs_user, said)
        return self._tables[key]

    def _contributions_to(self, plan: Plan) -> _Contributions | Leak:
        key = plan.query, plan.method.needs_cells
        if key not in self._cache:
            try:
                self._cache[key] = self._contributions(*key)
            except Leak as leak:
                self._cache[key] = leak
            except Exception as fault:
                self._cache[key] = failure(fault)
        return self._cache[key]

    def _contributions(self, query: Query, by_cell: bool) -> _Contributions:
        population = self.populations[0]
        roster = said_of(population.spec, self.neighbors)
        read = self._everyone.reader.summaries(query, None, by_cell)
        contributions = _Contributions(self.possible, read, len(population.levels))
        table = open_tables(self._read_whole, population.numbers, self.statistic.needs_user, roster)
        for k, tiny in enumerate(self._read_whole):
            whole = table(k).reader.summaries(query, None, by_cell)
            together = contributions.summaries(tiny, self.in_order)
            if [list(s.rows()) for s in whole] != [list(s.rows()) for s in together]:
                raise Leak("people are not added up one by one")
        return contributions


class _Contributions:
    """What each possible person adds to the integers, for each group."""

    def __init__(self, possible: list[Person], summaries: Sequence[Summary], size: int) -> None:
        self.place, self.size = {who: k for k, who in enumerate(possible)}, size
        self.groups = [
            (s.outputs, [(s.output[s.level == k], s.amount[s.level == k]) for k in range(len(possible))])
            for s in summaries
        ]
        alike: dict[Any, Person] = {}
        self.like = {who: alike.setdefault(self._added_by(k), who) for k, who in enumerate(possible)}
        """Of everyone, the first who adds the same."""
        self._cache: dict[tuple[TinyTable, Places], Sequence[Summary]] = {}

    def _added_by(self, k: int) -> Any:
        each = (adds[k] for _, adds in self.groups)
        return tuple((tuple(output.tolist()), tuple(amount.tolist())) for output, amount in each)

    def summaries(self, tiny: TinyTable, places: Places) -> Sequence[Summary]:
        """Of a table of such people, with these levels."""
        key = tiny, places
        if key not in self._cache:
            self._cache[key] = [self._together(outputs, adds, *key) for outputs, adds in self.groups]
        return self._cache[key]

    def _together(
        self, outputs: int, adds: list[tuple[Any, Any]], tiny: TinyTable, places: Places
    ) -> Summary:
        them = zip(places, tiny, strict=True)
        present = [(k, *adds[self.place[who]]) for k, who in them if who is not None]
        none = np.zeros(0, dtype=np.int64)
        return Summary(
            np.ones(self.size, dtype=np.int64),
            outputs,
            np.concatenate((none, *(np.full(output.size, k, dtype=np.int64) for k, output, _ in present))),
            np.concatenate((none, *(output for _, output, _ in present))),
            np.concatenate([amount for _, _, amount in present]) if present else none,
        )


def noisy_answer(plan: Plan, summaries: Sequence[Summary] | None, noise: RecordingNoise | None = None) -> Any:
    """What is released; without a RecordingNoise, with real noise."""
    return answer(plan, summaries, secure() if noise is None else noise)


def examine(
    statistic: Statistic, neighbors: str, mechanisms: Sequence[str | Mechanism]
) -> Iterator[WorstLoss]:
    """Of every plan and level, the largest loss over all tiny tables."""
    reader = TinyReader(statistic, neighbors)
    query = statistic.ask(TINY)
    for population in reader.populations:
        for plan in plans(population.spec, query, population.share, neighbors, mechanisms):
            yield from _examine(reader, plan, population)


def _examine(reader: TinyReader, plan: Plan, population: Population) -> Iterator[WorstLoss]:
    promised = promised_losses(plan, population.levels, population.share)
    charges = published_charges(plan, population.levels)
    alike = cache(partial(reader.alike, plan))
    law_of = cache(partial(_law, reader, plan, population))

    possible = reader.possible
    coming = comes_and_goes(reader.neighbors)
    changes = [(who, None) for who in possible] if coming else list(combinations(possible, 2))
    for k, level in enumerate(population.levels):
        if promised[level] == inf:
            continue
        worst = WorstLoss(plan, level, promised[level])
        if charges[level] > worst.promised:
            worst.see(charges[level], lambda: "more is charged than the share of a level")
        all_others = list(product(reader.possible_or_absent, repeat=len(population.levels) - 1))
        for at, places in reader.placings(k):
            seen = set()
            for others, (person, changed) in product(all_others, changes):
                here, there = (alike((*others[:at], who, *others[at:])) for who in (person, changed))
                if (here, there) in seen:
                    continue
                seen.add((here, there))
                (law_here, run_here), (law_there, run_there) = law_of(here, places), law_of(there, places)
                evidence = partial(_change_text, k, person, changed, others)
                worst.see(*compare(law_here, law_there, evidence), (run_here, run_there))
        yield worst


def _law(
    reader: TinyReader, plan: Plan, population: Population, tiny: TinyTable, places: Places
) -> tuple[Law | Leak, Run | None]:
    try:
        run, row_chances = reader.run(plan, tiny, population, places)
    except Leak as leak:
        return leak, None
    try:
        return law(run, row_chances), run
    except Leak as leak:
        return leak, run
    except Exception as fault:
        return failure(fault), run


def failure(fault: Exception) -> Leak:
    """That a release fails is published, so that it is a finding."""
    return Leak(f"it fails for some values ({type(fault).__name__})")


def compare(
    here: Law | Leak, there: Law | Leak, evidence: Callable[[], str]
) -> tuple[Fraction | float, Callable[[], str]]:
    """The loss between two laws, and what shows it."""
    try:
        if isinstance(here, Leak):
            raise here
        if isinstance(there, Leak):
            raise there
        return loss(here, there), evidence
    except Leak as leak:
        reason = str(leak)
        return inf, lambda: f"{reason}: {evidence()}"


def _change_text(
    k: int, person: Person | None, changed: Person | None, others: Sequence[Person | None]
) -> str:
    before, after = people_text([person]), people_text([changed])
    return f"person {k + 1} changes from ({before}) to ({after}) beside ({people_text(others)})"
