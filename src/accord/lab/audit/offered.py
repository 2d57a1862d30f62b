"""What accord offers: every statistic, mechanism, notion of neighbors, modifier and engine, and why a
combination is refused.

    for cell in cells(engine="duckdb"):                # offered, or refused with the reason that accord
        itself gives
        shown = example(cell)                          # a small table, a question, and what else it takes
        answer = released(shown, opened(shown))        # with a ledger: released(shown, opened(shown), ledger)

Nothing here is a list of what works. Whether a cell is offered is asked of the code that refuses: the
constructors of questions, the checks of a table, the candidates of a plan, `release` for engines that cannot
keep people one by one, and a ledger. `python -m accord.lab.audit.offered` prints the page docs/offered.md.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache, partial
from inspect import signature
from math import inf, nan
from string import ascii_lowercase
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord.engines.duckdb import DuckDB
from accord.engines.postgres import Postgres
from accord.engines.spark import Spark
from accord.errors import AccordError, LedgerError, PlanError, QueryError, SourceError, did_you_mean
from accord.lab.audit.cases import ASKED, NEIGHBORS, PARTS, STATISTICS, Scale
from accord.mechanisms import ALL
from accord.planning import Plan, refusals
from accord.release.release import refuse_keeping_rows
from accord.spec import Spec
from accord.statistics import Algorithm, Query, Workload

MECHANISMS = (*(mechanism.name for mechanism in ALL), "auto")
ENGINES = {
    "duckdb": DuckDB.lends,
    "duckdb file": DuckDB.lends,
    "duckdb relation": DuckDB.lends,
    "spark": Spark.lends,
    "postgresql": Postgres.lends,
}
"""Where a table lies, and whether people can be told apart there one by one."""
SCALE = Scale((0, 100), 1, (0, 25, 50, 100))
_LEVELS = (1.0, 2.5, 6.0)
_GENEROUS = (900.0, 7_000.0, 90_000.0)
"""So that the slopes of a regression are worth it."""
_PEOPLE, _MANY = 24, 72
_TIERS = ("strict", "standard", "open")


# ---- statistics --------------------------------------------------------------------------------------------


def noisy_count(rows: Any, epsilon: float) -> float:
    """An algorithm of one's own: how many rows there are."""
    return len(rows) + float(np.random.default_rng(secrets.randbits(128)).laplace(0, 1 / epsilon))


def _workload(scale: Scale, **of: Any) -> Workload:
    return accord.workload([ASKED["mean"](scale, **of), ASKED["median"](scale, **of)])


def _several(scale: Scale, **of: Any) -> Query:
    bounds = {"x": scale.bounds, "z": scale.bounds, "m": (0, 1)}
    return accord.regression("x", ["z", "m"], bounds=bounds, **of)


def _algorithm(scale: Scale, **of: Any) -> Query:
    return Algorithm("noisy_count", ("x",), "numpy", noisy_count)


QUESTIONS: dict[str, Callable[..., Query | Workload]] = {
    **ASKED,
    "std": lambda scale, **of: accord.std("x", scale.bounds, step=scale.step, **of),
    "regression on several": _several,
    "workload": _workload,
    "algorithm": _algorithm,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"workload": accord.mean, "algorithm": accord.sample}


def function_of(statistic: str) -> Callable[..., Any]:
    """The public function that asks for it. A workload is of other questions, which take the words."""
    made: Callable[..., Any] = _FUNCTIONS.get(statistic) or getattr(accord, statistic.split(" ")[0])
    return made


# ---- modifiers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Modifier:
    """What else may be asked for, or be so."""

    words: str
    """As the page says it."""
    of: Mapping[str, Any] = field(default_factory=dict)
    """What is said to the question."""
    share: float = 1.0
    ledger: str = "none"
    user: bool = False
    """Whether people have many rows."""
    levels: str = ""
    """"public", "out", "tiers" or "many": who is there."""


_WHERE, _BY, _PUBLIC = PARTS["where"], PARTS["by"], {"membership": "public"}

MODIFIERS: dict[str, Modifier] = {
    "none": Modifier("nothing else"),
    "where": Modifier("`where=`", _WHERE),
    "by": Modifier("`by=`", _BY),
    "where and by": Modifier("`where=` and `by=`", {**_WHERE, **_BY}),
    "public where": Modifier('`where=`, `membership="public"`', {**_WHERE, **_PUBLIC}),
    "public by": Modifier('`by=`, `membership="public"`', {**_BY, **_PUBLIC}),
    "exclude": Modifier('`missing="exclude"`', {"missing": "exclude"}),
    "many rows": Modifier("`user=` with many rows each", user=True),
    "share": Modifier("`share=` below 1", share=0.5),
    "ledger": Modifier("`ledger=`", share=0.5, ledger="whole"),
    "remaining": Modifier("what a ledger says is left, by level", share=0.5, ledger="remaining"),
    "remaining by person": Modifier(
        "what a ledger says is left, person by person", share=0.5, ledger="remaining by person"
    ),
    "public people": Modifier("public people (`inf`)", levels="public"),
    "opted out": Modifier("somebody opted out", levels="out"),
    "tiers": Modifier("`tiers=` with `default=`", levels="tiers"),
    "many levels": Modifier("more than 64 levels", levels="many"),
}


# ---- cells and their examples ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One combination: offered, or refused for a reason."""

    statistic: str
    mechanism: str
    neighbors: str
    modifier: str
    engine: str
    offered: bool
    reason: str


@dataclass(frozen=True)
class Example:
    """A combination as it would be typed."""

    columns: dict[str, Any]
    """A row for each entry."""
    table: dict[str, Any]
    """For `accord.table`."""
    query: Query | Workload
    mechanism: str
    share: float
    t: float | str | None
    ledger: str
    """"none"; "whole": with a ledger; "remaining", "remaining by person": of what is left in one, when
    everyone or only some have been asked before.
    """
    private: tuple[str, ...]
    """Columns whose values are nobody's business. Under add-remove it is private, too, who has rows."""


def example(cell: Cell) -> Example:
    """A small table and a question for a combination.

    Raises:
        QueryError: there is no such question.
    """
    return _example(cell.statistic, cell.mechanism, cell.neighbors, cell.modifier)


def _example(statistic: str, mechanism: str, neighbors: str, modifier: str) -> Example:
    asked, own = MODIFIERS[modifier], statistic == "algorithm"
    words = {**asked.of, **({"mechanism": mechanism} if own and mechanism != "sample" else {})}
    strange = [word for word in words if word not in signature(function_of(statistic)).parameters]
    if strange:
        raise QueryError(f"accord.{function_of(statistic).__name__} has no {strange[0]}=")
    by_person = (
        asked.user or asked.ledger != "none" or (statistic in STATISTICS and STATISTICS[statistic].user)
    )
    columns, table = _people(asked, _levels(statistic), neighbors)
    known = {"g": "by" in asked.of, "m": "where" in asked.of}
    return Example(
        columns,
        {**table, **({"user": "id"} if by_person else {})},
        QUESTIONS[statistic](SCALE, **asked.of),
        mechanism,
        asked.share,
        "max" if own else None,
        asked.ledger,
        tuple(c for c in ("x", "z", "g", "m") if not ("membership" in asked.of and known.get(c, False))),
    )


def _levels(statistic: str) -> tuple[float, ...]:
    return _GENEROUS if statistic.startswith("regression") else _LEVELS


def _people(
    modifier: Modifier, levels: tuple[float, ...], neighbors: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns, and what `accord.table` is told about them."""
    extra = {"public": (inf,), "out": (0.0,)}.get(modifier.levels, ())
    many = modifier.levels == "many"
    whole = tuple(levels[0] + k / 8 for k in range(_MANY)) if many else (*levels, *extra)
    people = np.arange(_MANY if many else _PEOPLE)
    own = [whole[k % len(whole)] for k in people.tolist()]
    rows = np.repeat(people, 1 + people % 3 if modifier.user else 1)
    place = np.arange(rows.size)
    x = (place * 37 % 101).astype(np.float64)
    x[[5, -3]] = nan
    held: dict[str, Any] = {
        "id": rows,
        "x": x,
        "z": (place * 53 % 97).astype(np.float64),
        "g": 1 + rows // 4 % 3,
        "m": (rows % 5 > 0).astype(np.float64),
        # of several rows the strictest level counts: here that of the first
        "e": np.array([own[k] for k in rows.tolist()]) * np.where(np.diff(rows, prepend=-1) > 0, 1, 2),
    }
    table: dict[str, Any] = {"epsilon": "e", "neighbors": neighbors}
    if modifier.levels == "tiers":
        names = dict(zip(whole, _TIERS, strict=True))
        held["e"] = [None if k % 7 == 3 else names[level] for k, level in enumerate(own)]
        own = [whole[0] if name is None else level for name, level in zip(held["e"], own, strict=True)]
        table |= {"tiers": dict(zip(_TIERS, whole, strict=True)), "default": _TIERS[0]}
    if neighbors == "add-remove":
        table["roster"] = Spec.of([*own, *whole])  # one of each level could be there, and is not
    return held, table


def opened(shown: Example, source: Any = None) -> accord.Table:
    """The table of an example: from a source with the same rows, or from memory."""
    return accord.table(shown.columns if source is None else source, **shown.table)


def prepared(shown: Example, table: accord.Table, ledger: accord.Ledger) -> Spec:
    """What may be spent, once a ledger knows the table: everyone's level, or what earlier answers have left
    of it.
    """
    ledger.register(table, "people")
    if shown.ledger == "whole":
        return table.spec()
    asked = table
    if shown.ledger == "remaining by person":  # some are in another table as well, which was asked before
        some = {
            name: np.array(values)[np.array(shown.columns["id"]) % 2 == 0]
            for name, values in shown.columns.items()
        }
        asked = opened(shown, some)
        ledger.register(asked, "some")
    asked.release(accord.mean("x", SCALE.bounds), "minimum", 0.25, ledger=ledger)
    return ledger.remaining(table)


def released(shown: Example, table: accord.Table, ledger: accord.Ledger | None = None) -> Any:
    """What an example gives, by the way that a user takes; a ledger must be a new one."""
    if shown.ledger == "none":
        return answered(shown, table)
    if ledger is None:
        raise LedgerError(f"the example is about a ledger ({shown.ledger}). Give ledger=, a new one.")
    return answered(shown, table, ledger, prepared(shown, table, ledger))


def answered(
    shown: Example, table: accord.Table, ledger: accord.Ledger | None = None, budget: Spec | None = None
) -> Any:
    """The release alone, once a ledger is prepared."""
    if shown.ledger.startswith("remaining"):
        plan: Any = partial(accord.plan, t=shown.t, neighbors=table.neighbors)
        return table.release(plan(budget, shown.query, shown.mechanism, shown.share), ledger=ledger)
    if isinstance(shown.query, Algorithm):
        own, t = shown.query, shown.t or "max"
        return accord.sample(
            own.run, table, t, share=shown.share, ledger=ledger, columns=own.given, rows=own.rows
        )
    return table.release(shown.query, shown.mechanism, shown.share, t=shown.t, ledger=ledger)


# ---- what is offered ---------------------------------------------------------------------------------------


def cells(
    *,
    statistic: str | None = None,
    mechanism: str | None = None,
    neighbors: str | None = None,
    modifier: str | None = None,
    engine: str | None = None,
) -> Iterator[Cell]:
    """Every combination, or those with these names. Values are not read."""
    engines = _chosen(engine, tuple(ENGINES), "engine")
    mechanisms = _chosen(mechanism, MECHANISMS, "mechanism")
    for s in _chosen(statistic, tuple(QUESTIONS), "statistic"):
        for n in _chosen(neighbors, NEIGHBORS, "neighbors"):
            for m in _chosen(modifier, tuple(MODIFIERS), "modifier"):
                refused = _refusals(s, n, m)
                for way in mechanisms:
                    for e in engines:
                        reason = refused[way, ENGINES[e]]
                        yield Cell(s, way, n, m, e, not reason, reason)


def _chosen(given: str | None, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    if given is None:
        return known
    if given not in known:
        raise AccordError(f"there is no {what} {given!r}: {did_you_mean(given, known)}")
    return (given,)


@cache
def _refusals(statistic: str, neighbors: str, modifier: str) -> Mapping[tuple[str, bool], str]:
    """Why each mechanism is refused, on engines that lend and on others; "": it is not."""
    found: dict[tuple[str, bool], str] = {}
    by = _planner(statistic, neighbors, modifier)
    for mechanism in MECHANISMS:
        try:
            shown = _example(statistic, mechanism, neighbors, modifier)
            table, plans = by(mechanism)
        except AccordError as refusal:
            found |= {(mechanism, lends): str(refusal) for lends in (False, True)}
        else:
            found |= {
                (mechanism, lends): _refused_on(lends, table, plans, shown.ledger) for lends in (False, True)
            }
    return found


Planned = tuple[accord.Table, list[Plan]]


def _planner(statistic: str, neighbors: str, modifier: str) -> Callable[[str], Planned]:
    """A table, and the plans for a question about it by a mechanism; it is refused with the reason of its
    candidate.
    """
    alike = next((name for name in ("regression", "rows") if statistic.startswith(name)), "mean")
    try:
        shown = _example(statistic, "sample", neighbors, modifier)
        table, budget = _ground(alike, neighbors, modifier)
        table.check(shown.query)
        plan: Any = table.plan if budget is None else partial(accord.plan, budget, neighbors=neighbors)
        made = plan(
            shown.query, "sample" if isinstance(shown.query, Algorithm) else "auto", shown.share, t=shown.t
        )
    except AccordError as refusal:
        return partial(_refuse, str(refusal))
    each = made.parts

    asked = shown.query.queries if isinstance(shown.query, Workload) else (shown.query,)

    def by(mechanism: str) -> Planned:
        for why in (refusals(one, neighbors).get(mechanism, "") for one in asked):
            if why:  # before the levels are read
                raise PlanError(why)
        for candidate in (c for p in each for c in p.candidates if c.mechanism == mechanism):
            if candidate.rmse is None:
                raise PlanError(candidate.note)
        return table, [p if mechanism == "auto" else p.with_choice(mechanism=mechanism) for p in each]

    return by


def _refuse(reason: str, mechanism: str) -> Planned:
    raise PlanError(reason)


@cache
def _ground(alike: str, neighbors: str, modifier: str) -> tuple[accord.Table, Spec | None]:
    """The table that statistics like this one are asked about, and what its people have left in a ledger if
    there is one.
    """
    shown = _example(alike, "minimum", neighbors, modifier)
    table = opened(shown)
    if shown.ledger == "none":
        return table, None
    with TemporaryDirectory() as folder:
        return table, prepared(shown, table, accord.Ledger(f"{folder}/offered.db"))


def _refused_on(lends: bool, table: accord.Table, plans: list[Plan], ledger: str) -> str:
    """What is refused of plans that there are, because of the engine."""
    try:
        for plan in plans:
            refuse_keeping_rows(_lending(table, lends), plan)
    except SourceError as refusal:
        return str(refusal)
    return _not_booked(ledger, lends)


@cache
def _not_booked(ledger: str, lends: bool) -> str:
    """What a ledger says to a plan for an engine that lends or not: it looks at who has what left, and not at
    the question.
    """
    if ledger == "none":
        return ""
    modifier = next(name for name, m in MODIFIERS.items() if m.ledger == ledger)
    shown = _example("mean", "minimum", "replace", modifier)
    try:
        with TemporaryDirectory() as folder:
            released(shown, _lending(opened(shown), lends), accord.Ledger(f"{folder}/offered.db"))
    except LedgerError as refusal:
        return str(refusal)
    return ""


def _lending(table: accord.Table, lends: bool) -> accord.Table:
    """The same people, in an engine that lends or not."""
    engine, reader = copy(table.reader.engine), table.reader
    engine.lends = lends
    return accord.Table(engine, reader.levels, table.user, table.neighbors, table.level_column, reader.roster)


# ---- the page ----------------------------------------------------------------------------------------------

_INTRODUCTION = """# What is offered

<!-- made by python -m accord.lab.audit.offered -->

Every statistic × mechanism × notion of neighbors × modifier × engine, as accord itself answers when it is
asked: {offered:,} combinations of {all:,} are offered, the others are refused before anybody is charged. A
table is about statistics that behave alike, a row about mechanisms and a column about modifiers that do.

- ✓ is offered: the tests release it (`tests/promises/test_offered.py`).
- A letter is refused, for the reason [below](#reasons): the tests see that it is, and that it costs nothing.
- ✓<sup>b</sup> is offered, but for the reason b not on {others}. Otherwise engines make no difference.
- Where `replace` and `add-remove` differ, they stand in this order, as ✓ / a.

The columns:
"""
_FOLDED = (
    (r"^answers .* only$", "it answers other statistics"),
    (r"^accord\.\w+ has no \w+=$", "its function takes no such argument"),
)
"""Reasons that differ only in what a table shows anyway."""


def page() -> str:
    """docs/offered.md."""
    found = list(cells())
    letters: dict[str, str] = {}
    marks: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for cell in found:
        of = cell.statistic, cell.mechanism, cell.modifier, cell.neighbors
        marks.setdefault(of, {})[cell.engine] = _letter(cell.reason, letters)
    shown: dict[tuple[str, str, str], str] = {}
    for statistic, mechanism, modifier, _ in marks:
        both = [_mark(marks[statistic, mechanism, modifier, n]) for n in NEIGHBORS]
        shown[statistic, mechanism, modifier] = " / ".join(dict.fromkeys(both))
    columns = _alike(MODIFIERS, lambda m: [text for key, text in shown.items() if key[2] == m])
    others = " or ".join(name for name, lends in ENGINES.items() if not lends)
    parts = [_INTRODUCTION.format(offered=sum(c.offered for c in found), all=len(found), others=others)]
    parts += [f"- **{group[0]}**: {'; '.join(MODIFIERS[m].words for m in group)}" for group in columns]
    for family in _alike(QUESTIONS, lambda s: [text for key, text in shown.items() if key[0] == s]):
        parts.append(f"\n## {', '.join(family)}\n\n" + _rows(family[0], columns, shown))
    parts += [
        "\n## Reasons\n",
        *(f"- **{letter}**: {_sentence(reason)}" for reason, letter in letters.items()),
    ]
    return "\n".join(parts) + "\n"


def _letter(reason: str, letters: dict[str, str]) -> str:
    for pattern, words in _FOLDED:
        reason = re.sub(pattern, words, reason)
    return letters.setdefault(reason, ascii_lowercase[len(letters)]) if reason else ""


def _mark(by_engine: dict[str, str]) -> str:
    """Of the engines together: ✓, a letter, or ✓ with the letter of those that refuse."""
    letters = set(by_engine.values())
    if letters == {""}:
        return "✓"
    return f"✓<sup>{max(letters)}</sup>" if "" in letters else "".join(sorted(letters))


def _alike(names: Iterable[str], of: Callable[[str], Any]) -> list[list[str]]:
    """Names in groups of those for which everything is the same."""
    groups: dict[Any, list[str]] = {}
    for name in names:
        groups.setdefault(tuple(of(name)), []).append(name)
    return list(groups.values())


def _rows(statistic: str, columns: list[list[str]], shown: dict[tuple[str, str, str], str]) -> str:
    lines = [["", *(group[0] for group in columns)], ["---"] * (len(columns) + 1)]
    for ways in _alike(MECHANISMS, lambda way: [shown[statistic, way, group[0]] for group in columns]):
        marks = (shown[statistic, ways[0], group[0]] for group in columns)
        lines.append([", ".join(f"`{way}`" for way in ways), *marks])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _sentence(reason: str) -> str:
    return reason if reason.endswith(".") else f"{reason}."


if __name__ == "__main__":
    print(page(), end="")
