"""What accord offers: every combination, and why one is refused.

Of statistic, mechanism, neighbor relation, modifier and engine:

    for combination in combinations(engine="duckdb"):
        combination.offered, combination.reason     # the reason for a refusal is accord's own

Nothing here is a list of what works. Whether a combination is offered is asked of the code that refuses: the
constructors of questions, the checks of a table, the candidates of a plan, `release` for engines that cannot
keep people one by one, and a ledger. `python -m accord.lab.audit.offered_page` prints docs/offered.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any

import accord
from accord.engines.duckdb import DuckDB
from accord.engines.postgres import Postgres
from accord.engines.spark import Spark
from accord.errors import AccordError, LedgerError, PlanError, SourceError, did_you_mean
from accord.lab.audit.case_plans import declared_for
from accord.lab.audit.cases import NEIGHBORS
from accord.lab.audit.examples import (
    MECHANISMS,
    MODIFIERS,
    QUESTIONS,
    Example,
    example,
    opened,
    prepared,
    released,
)
from accord.planning import Plan, refusals
from accord.release.deciding import refuse_keeping_rows
from accord.spec import Spec
from accord.statistics import Algorithm, Workload

ENGINES = {
    "duckdb": DuckDB.lends,
    "duckdb file": DuckDB.lends,
    "duckdb relation": DuckDB.lends,
    "spark": Spark.lends,
    "postgresql": Postgres.lends,
}
"""Where a table lies, and whether people can be told apart there one by one."""


@dataclass(frozen=True)
class Combination:
    """Offered, or refused for a reason."""

    statistic: str
    mechanism: str
    neighbors: str
    modifier: str
    engine: str
    offered: bool
    reason: str


def combinations(
    *,
    statistic: str | None = None,
    mechanism: str | None = None,
    neighbors: str | None = None,
    modifier: str | None = None,
    engine: str | None = None,
) -> Iterator[Combination]:
    """Every combination, or those with these names. Values are not read."""
    statistics = _named(statistic, tuple(QUESTIONS), "statistic")
    mechanisms = _named(mechanism, MECHANISMS, "mechanism")
    relations = _named(neighbors, NEIGHBORS, "neighbors")
    modifiers = _named(modifier, tuple(MODIFIERS), "modifier")
    engines = _named(engine, tuple(ENGINES), "engine")
    for s, n, m in product(statistics, relations, modifiers):
        refused = _refusals(s, n, m)
        for by, e in product(mechanisms, engines):
            reason = refused[by, ENGINES[e]]
            yield Combination(s, by, n, m, e, not reason, reason)


def example_of(combination: Combination) -> Example:
    """A small table and a question for it.

    Raises:
        QueryError: there is no such question.
    """
    return example(combination.statistic, combination.mechanism, combination.neighbors, combination.modifier)


def _named(name: str | None, names: tuple[str, ...], kind: str) -> tuple[str, ...]:
    """Those that are meant: all, if none is named."""
    if name is None:
        return names
    if name not in names:
        raise AccordError(f"there is no {kind} {name!r}: {did_you_mean(name, names)}")
    return (name,)


@cache
def _refusals(statistic: str, neighbors: str, modifier: str) -> Mapping[tuple[str, bool], str]:
    """Why each mechanism is refused, on engines that lend and on others; "": it is not."""
    reasons: dict[tuple[str, bool], str] = {}
    planned_by = _planner(statistic, neighbors, modifier)
    for mechanism in MECHANISMS:
        try:
            ledger = example(statistic, mechanism, neighbors, modifier).ledger
            table, plans = planned_by(mechanism)
        except AccordError as refusal:
            reasons |= {(mechanism, lends): str(refusal) for lends in (False, True)}
            continue
        for lends in (False, True):
            reasons[mechanism, lends] = _refused_on(lends, table, plans, ledger)
    return reasons


Planned = tuple[accord.Table, list[Plan]]


def _planner(statistic: str, neighbors: str, modifier: str) -> Callable[[str], Planned]:
    """A function of a mechanism: a table, and its plans for a question, or the reason for a refusal."""
    like = next((name for name in ("regression", "rows") if statistic.startswith(name)), "mean")
    try:
        asked = example(statistic, "sample", neighbors, modifier)
        table, budget = _table_and_budget(like, neighbors, modifier)
        table.check(asked.query)
        plan: Any = table.plan if budget is None else partial(accord.plan, budget, neighbors=neighbors)
        mechanism = "sample" if isinstance(asked.query, Algorithm) else "auto"
        parts = plan(asked.query, mechanism, asked.share, t=asked.t).parts
    except AccordError as refusal:
        return partial(_refuse, str(refusal))
    queries = asked.query.queries if isinstance(asked.query, Workload) else (asked.query,)

    def planned_by(mechanism: str) -> Planned:
        for query in (declared_for(mechanism, query) for query in queries):
            reason = refusals(query, neighbors).get(mechanism, "")
            if reason:  # before the levels are read
                raise PlanError(reason)
        for candidate in (c for part in parts for c in part.candidates if c.mechanism == mechanism):
            if candidate.rmse is None:
                raise PlanError(candidate.note)
        if mechanism == "auto":
            return table, list(parts)
        return table, [part.with_choice(mechanism=mechanism) for part in parts]

    return planned_by


def _refuse(reason: str, mechanism: str) -> Planned:
    raise PlanError(reason)


@cache
def _table_and_budget(like: str, neighbors: str, modifier: str) -> tuple[accord.Table, Spec | None]:
    """The table that statistics like this one are asked about; and what remains, if there is a ledger."""
    asked = example(like, "minimum", neighbors, modifier)
    table = opened(asked)
    if asked.ledger == "none":
        return table, None
    with TemporaryDirectory() as folder:
        return table, prepared(asked, table, accord.Ledger(f"{folder}/offered.db"))


def _refused_on(lends: bool, table: accord.Table, plans: list[Plan], ledger: str) -> str:
    """What is refused of plans that there are, because of the engine."""
    try:
        for plan in plans:
            refuse_keeping_rows(_lending(table, lends).reader, plan)
    except SourceError as refusal:
        return str(refusal)
    return _not_booked(ledger, lends)


@cache
def _not_booked(ledger: str, lends: bool) -> str:
    """What a ledger says to a plan for an engine that lends or not, whatever the question."""
    if ledger == "none":
        return ""
    modifier = next(name for name, m in MODIFIERS.items() if m.ledger == ledger)
    asked = example("mean", "minimum", "replace", modifier)
    try:
        with TemporaryDirectory() as folder:
            released(asked, _lending(opened(asked), lends), accord.Ledger(f"{folder}/offered.db"))
    except LedgerError as refusal:
        return str(refusal)
    return ""


def _lending(table: accord.Table, lends: bool) -> accord.Table:
    """The same people, in an engine that lends or not."""
    engine, reader = copy(table.reader.engine), table.reader
    engine.lends = lends
    return accord.Table(engine, reader.levels, table.user, table.neighbors, table.level_column, reader.roster)
