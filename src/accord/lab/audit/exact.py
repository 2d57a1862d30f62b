"""The exact way: every table on a tiny domain, every neighbor, every output.

The loss is reckoned from probabilities, not estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import inf
from typing import Any

import numpy as np

from accord.budget import to_micro
from accord.lab.audit.cases import (
    TINY,
    People,
    Person,
    Statistic,
    chances,
    charged,
    cut,
    kinds,
    opened,
    peoples,
    plans,
    promised,
    shown,
)
from accord.lab.audit.laws import Law, Leak, Run, Tap, law, loss
from accord.lab.audit.source import secure
from accord.people.summary import Summary
from accord.people.table import Table
from accord.planning import Plan
from accord.release.answer import answer
from accord.release.release import summaries
from accord.spec import Spec
from accord.statistics import Query

Tiny = tuple[Person | None, ...]
_WHOLE = 12
"""About so many tiny tables are read whole."""


@dataclass
class Worst:
    """The largest loss of a person of one level, against what was promised."""

    plan: Plan
    level: str
    promised: Fraction | float
    found: Fraction | float = 0
    said: str = ""
    pair: tuple[Any, ...] | None = None
    """The two releases that show it: without a Tap they draw real noise."""

    @property
    def near(self) -> float:
        """How much of what was promised is lost."""
        return float(self.found) / float(self.promised)

    @property
    def is_slow(self) -> bool:
        """Whether a release reads its table each time."""
        return self.plan.keeps_rows

    def see(self, found: Fraction | float, said: Callable[[], str], pair: tuple[Any, ...]) -> None:
        if not found <= self.found or self.pair is None:  # what is not a number is no less
            self.found, self.said, self.pair = found, said(), pair


class Reader:
    """What the engine makes of tiny tables.

    It reads a person of every kind at once, each with a level of their own; tiny tables are put together from
    that. Some are read whole as well, which must come to the same.
    """

    def __init__(self, statistic: Statistic, neighbors: str) -> None:
        self.statistic, self.neighbors, self.peoples = statistic, neighbors, peoples(statistic)
        self.can = kinds(statistic)
        own = [(k + 1) / 1000 for k in range(len(self.can))]
        self._kinds = opened(
            self.can, own, statistic.user, Spec.of(own) if neighbors == "add-remove" else None
        )
        there: list[Person | None] = [*self.can, None] if neighbors == "add-remove" else [*self.can]
        tables = list(product(there, repeat=len(self.peoples[0].levels)))
        self._some = tables[:: -(-len(tables) // _WHOLE)]
        self._alike = [(who,) * len(self.peoples[0].levels) for who in (self.can[0], self.can[-1])]
        self._read: dict[Any, _Kinds | Leak] = {}
        self._opened: dict[Any, Table] = {}

    def run(self, plan: Plan, tiny: Tiny, people: People) -> tuple[Run, list[int] | None]:
        """The release of a plan on a tiny table, up to its noise; and with which chance each row is kept,
        where that is decided row by row.

        Levels are all different and in the same order for all `People` of a statistic, so that the integers
        by level are the same for all of them.
        """
        method = plan.method
        key = plan.query, method.needs_cells
        if key not in self._read:
            try:
                self._read[key] = self._all(*key)
            except Leak as leak:
                self._read[key] = leak
            except Exception as fault:
                self._read[key] = failing(fault)
        found = self._read[key]
        if isinstance(found, Leak):
            raise found
        if not method.keeps_rows:
            return partial(drawn, plan, found.summaries(tiny)), None
        of_level = chances(plan)
        here = [level for level, who in zip(people.numbers, tiny, strict=True) if who is not None]
        return partial(self._by_row, found, plan, tiny, people), [
            of_level[int(to_micro(level))] for level in here
        ]

    def _by_row(self, found: _Kinds, plan: Plan, tiny: Tiny, people: People, tap: Tap | None = None) -> Any:
        """Of the rows that are kept.

        Where everyone is alike, and for releases, the engine decides that; elsewhere it is put together.
        """
        if tap is None:
            return drawn(plan, summaries(self._table(tiny, people).reader, plan, secure()))
        if tiny in self._alike:
            return drawn(plan, summaries(self._table(tiny, people).reader, plan, tap), tap)
        tap.words(len(tap.rows or ()))
        kept = iter([heads for _, heads in tap.coins])
        return drawn(
            plan, found.summaries(tuple(who if who is not None and next(kept) else None for who in tiny)), tap
        )

    def _table(self, tiny: Tiny, people: People) -> Table:
        if (tiny, people) not in self._opened:
            roster = people.spec if self.neighbors == "add-remove" else None
            self._opened[tiny, people] = opened(tiny, people.numbers, self.statistic.user, roster)
        return self._opened[tiny, people]

    def _all(self, query: Query, by_cell: bool) -> _Kinds:
        made = _Kinds(
            self.can, self._kinds.reader.summaries(query, None, by_cell), len(self.peoples[0].levels)
        )
        people = self.peoples[0]
        table = cut(
            self._some,
            people.numbers,
            self.statistic.user,
            people.spec if self.neighbors == "add-remove" else None,
        )
        for k, tiny in enumerate(self._some):
            whole = table(k).reader.summaries(query, None, by_cell)
            if [list(s.rows()) for s in whole] != [list(s.rows()) for s in made.summaries(tiny)]:
                raise Leak("people are not added up one by one")
        return made


class _Kinds:
    """What one person of each kind adds to the integers, for each group."""

    def __init__(self, can: list[Person], summaries: list[Summary], size: int) -> None:
        self.can, self.size = {who: k for k, who in enumerate(can)}, size
        self._made: dict[Tiny, list[Summary]] = {}
        self.groups = [
            (s.outputs, [(s.output[s.level == k], s.amount[s.level == k]) for k in range(len(can))])
            for s in summaries
        ]

    def summaries(self, tiny: Tiny) -> list[Summary]:
        """Of a table of such people."""
        if tiny not in self._made:
            self._made[tiny] = self._together(tiny)
        return self._made[tiny]

    def _together(self, tiny: Tiny) -> list[Summary]:
        made = []
        for outputs, adds in self.groups:
            parts = [(k, *adds[self.can[who]]) for k, who in enumerate(tiny) if who is not None]
            level = [np.full(output.size, k, dtype=np.int64) for k, output, _ in parts]
            none = np.zeros(0, dtype=np.int64)
            made.append(
                Summary(
                    np.ones(self.size, dtype=np.int64),
                    outputs,
                    np.concatenate((none, *level)),
                    np.concatenate((none, *(output for _, output, _ in parts))),
                    np.concatenate([amount for _, _, amount in parts]) if parts else none,
                )
            )
        return made


def drawn(plan: Plan, summaries: list[Summary] | None, tap: Tap | None = None) -> Any:
    """What is released; without a Tap, with real noise."""
    return answer(plan, summaries, secure() if tap is None else tap)


def examine(statistic: Statistic, neighbors: str, mechanisms: Sequence[str]) -> Iterator[Worst]:
    """Of every plan and level, the largest loss over all tiny tables."""
    reader = Reader(statistic, neighbors)
    query = statistic.ask(TINY)
    for people in reader.peoples:
        for plan in plans(people.spec, query, people.share, neighbors, mechanisms):
            yield from _examine(reader, plan, people)


def _examine(reader: Reader, plan: Plan, people: People) -> Iterator[Worst]:
    most, charges = promised(plan, people.levels, people.share), charged(plan, people.levels)
    worst = [Worst(plan, raw, most[raw]) for raw in people.levels]
    for account in worst:
        if charges[account.level] > account.promised:
            account.see(charges[account.level], lambda: "more is charged than the share of a level", ())
    laws: dict[Tiny, tuple[Law | Leak, Run | None]] = {}

    def at(tiny: Tiny) -> tuple[Law | Leak, Run | None]:
        if tiny not in laws:
            try:
                run, rows = reader.run(plan, tiny, people)
            except Leak as leak:
                laws[tiny] = leak, None
            else:
                try:
                    laws[tiny] = law(run, rows), run
                except Leak as leak:
                    laws[tiny] = leak, run
                except Exception as fault:
                    laws[tiny] = failing(fault), run
        return laws[tiny]

    removed = reader.neighbors == "add-remove"
    there: list[Person | None] = [*reader.can, None] if removed else [*reader.can]
    changes = [(who, None) for who in reader.can] if removed else list(combinations(reader.can, 2))
    for k, account in enumerate(worst):
        if account.promised == inf:
            continue
        for others in product(there, repeat=len(worst) - 1):
            for one, other in changes:
                here, away = ((*others[:k], who, *others[k:]) for who in (one, other))
                (this, run), (that, run_there) = at(here), at(away)
                said = partial(_said, k, one, other, others)
                account.see(*compared(this, that, said), (run, run_there))
    yield from (account for account in worst if account.promised < inf)


def failing(fault: Exception) -> Leak:
    """That a release fails is published, so that it is a finding."""
    return Leak(f"it fails for some values ({type(fault).__name__})")


def compared(
    this: Law | Leak, that: Law | Leak, said: Callable[[], str]
) -> tuple[Fraction | float, Callable[[], str]]:
    try:
        for one in (this, that):
            if isinstance(one, Leak):
                raise one
        assert isinstance(this, Law) and isinstance(that, Law)
        return loss(this, that), said
    except Leak as leak:
        why = str(leak)
        return inf, lambda: f"{why}: {said()}"


def _said(k: int, one: Person | None, other: Person | None, others: Sequence[Person | None]) -> str:
    return f"person {k + 1} changes from ({shown([one])}) to ({shown([other])}) beside ({shown(others)})"
