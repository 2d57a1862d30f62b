"""The exact way: every table on a tiny domain, every neighbor, every output. The loss is reckoned from probabilities, not estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import inf
from typing import Any

from accord import release
from accord.lab.audit.cases import TINY, People, Person, Statistic, cut, kinds, peoples, plans, promised, shown
from accord.lab.audit.laws import SURE, Law, Leak, Run, Tap, law, loss
from accord.planning import Plan
from accord.spec import level_text, to_micro
from accord.summary import Summary
from accord.tables import Table

Tiny = tuple[Person | None, ...]


@dataclass
class Worst:
    """The largest loss of a person of one level, against what was promised."""

    plan: Plan
    level: str
    promised: Fraction | float
    found: Fraction | float = 0
    said: str = ""
    pair: tuple[Run, ...] | None = None
    """The two releases that show it."""

    @property
    def near(self) -> float:
        """How much of what was promised is lost."""
        return float(self.found) / float(self.promised)

    @property
    def is_slow(self) -> bool:
        """Whether a release reads its table each time."""
        return release._by_row(self.plan)

    def see(self, found: Fraction | float, said: Callable[[], str], pair: tuple[Run, ...]) -> None:
        if found > self.found or self.pair is None:
            self.found, self.said, self.pair = found, said(), pair


class Reader:
    """What the engine makes of tiny tables. They are cut out of one table, and each is read once."""

    def __init__(self, statistic: Statistic, neighbors: str) -> None:
        self.neighbors, self.peoples, can = neighbors, peoples(statistic), kinds(statistic)
        self.can: list[Person] = can
        there: list[Person | None] = [*can, None] if neighbors == "add-remove" else [*can]
        self.tables = {tiny: k for k, tiny in enumerate(product(there, repeat=len(self.peoples[0].levels)))}
        self._parts = {
            people: cut(self.tables, people.numbers, statistic.user, people.spec if neighbors == "add-remove" else None)
            for people in self.peoples
        }
        self._read: dict[Any, list[Summary] | Leak] = {}

    def table(self, tiny: Tiny, people: People) -> Table:
        return self._parts[people](self.tables[tiny])

    def run(self, plan: Plan, tiny: Tiny, people: People) -> tuple[Run, list[int] | None]:
        """The release of a plan on a tiny table, up to its noise; and with which chance each row is kept, where that is decided row by row.

        Levels are all different and in the same order for all `People` of a statistic, so that the integers by level are read once for all of them.
        """
        if release._by_row(plan):
            chances = dict(zip(plan.spec.micro.tolist(), plan.calibration.keep.tolist(), strict=True))
            here = [level for level, who in zip(people.numbers, tiny, strict=True) if who is not None]
            return partial(self._kept, plan, tiny, people), [chances[int(to_micro(level))] for level in here]
        way = release._mechanism(plan).way(release._inner(plan.query))
        key = tiny, plan.query, way.by_cell
        if key not in self._read:
            try:
                self._read[key] = self.table(tiny, self.peoples[0])._summaries(plan.query, None, way.by_cell)
            except Exception as fault:
                self._read[key] = failing(fault)
        found = self._read[key]
        if isinstance(found, Leak):
            raise found
        return partial(drawn, plan, found), None

    def _kept(self, plan: Plan, tiny: Tiny, people: People, tap: Tap | None = None) -> Any:
        """Of the rows that are kept. The same rows are read once for all plans, but for people who are all alike: there every plan reads anew."""
        if tap is None or len(set(tiny)) == 1:
            return by_row(self.table(tiny, people), plan, tap)
        words = tap.words(len(tap.rows or ()))
        key = tiny, plan.query, words.tobytes(), tuple(chance == SURE for chance in tap.rows or ())
        if key not in self._read:
            self._read[key] = self.table(tiny, people)._summaries(
                plan.query, thinning=(plan.calibration.keep, _Words(words))
            )
        return drawn(plan, self._read[key], tap)  # type: ignore[arg-type]


class _Words(Tap):
    """Gives the words that it was given."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        self.given = given

    def words(self, count: int) -> Any:
        return self.given


def drawn(plan: Plan, summaries: list[Summary] | None, tap: Tap | None = None) -> Any:
    return release._draw(plan, summaries) if tap is None else release._draw(plan, summaries, tap)


def by_row(table: Any, plan: Plan, tap: Tap | None = None) -> Any:
    if tap is None:
        return release._draw(plan, release._read(table, plan))
    return release._draw(plan, release._read(table, plan, noise=tap), tap)


def examine(statistic: Statistic, neighbors: str, mechanisms: Sequence[str]) -> Iterator[Worst]:
    """Of every plan and level, the largest loss over all tiny tables."""
    reader = Reader(statistic, neighbors)
    query = statistic.ask(TINY)
    for people in reader.peoples:
        for plan in plans(people.spec, query, people.share, neighbors, mechanisms):
            yield from _examine(reader, plan, people)


def _examine(reader: Reader, plan: Plan, people: People) -> Iterator[Worst]:
    texts = {raw: level_text(int(to_micro(float(raw)))) for raw in people.levels}
    worst = [Worst(plan, raw, most) for raw, most in promised(plan, texts).items()]
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
                account.see(*compared(this, that, said), (run, run_there))  # type: ignore[arg-type]
    yield from worst


def failing(fault: Exception) -> Leak:
    """That a release fails is published, so that it is a finding."""
    return Leak(f"it fails for some values ({type(fault).__name__})")


def compared(this: Law | Leak, that: Law | Leak, said: Callable[[], str]) -> tuple[Fraction | float, Callable[[], str]]:
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
