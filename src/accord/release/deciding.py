"""Deciding: what is asked becomes a plan, and what cannot be released is refused. No value is read for it.

Where the levels are not known yet, they and the values may come from one scan, after every check that needs
no levels: then what was read is handed on to whoever answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from accord import mechanisms, relation
from accord.errors import LedgerError, PlanError, QueryError, SourceError
from accord.people.summary import Summary
from accord.planning import Plan, refuse_arguments
from accord.statistics import Algorithm, Grouped, Query, Workload, target_and_moves

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.signing import Signature
    from accord.mechanisms.record import Mechanism
    from accord.people.reader import Reader
    from accord.people.table import Table

    Groups: TypeAlias = Mapping[Any, tuple[Table, Plan]]


def _refuse_ledger(ledger: object) -> None:
    """Refuse what is not one, such as the name of its file."""
    from accord.ledger import Ledger

    if not isinstance(ledger, Ledger | None):
        raise LedgerError(
            f"ledger= is a {type(ledger).__name__}. Open one: ledger=accord.Ledger('accord.db')."
        )


def signed(ledger: Ledger | None, actor: str | None, purpose: str | None) -> Signature:
    """Who asks, and why, if that is what the ledger wants to be told; before anything is read."""
    from accord.ledger.refusing import counting
    from accord.ledger.requiring import refuse_unsigned_early
    from accord.ledger.signing import UNSIGNED, Signature

    _refuse_ledger(ledger)
    signature = Signature(actor, purpose)
    if ledger is not None:
        with counting(ledger.books, signature):
            refuse_unsigned_early(ledger.books, signature)
    elif signature != UNSIGNED:
        raise LedgerError("actor= and purpose= are booked in a ledger. Give ledger=, or leave them out.")
    return signature


def decided(
    table: Table,
    asked: Query | Workload | Plan,
    mechanism: str | Mechanism,
    share: float | None,
    t: float | str | None,
    ledger: Ledger | None,
) -> tuple[Plan, Sequence[Summary] | None]:
    """The plan; and what was read together with the levels, if these were not known and the plan can use it.

    Raises:
        PlanError, QueryError: what is asked cannot be released so.
    """
    if isinstance(asked, Plan):
        if (mechanism, share, t) != ("auto", None, None):
            raise PlanError(
                "a plan has its mechanism and share already. Release it as it is, or give the query instead."
            )
        return (asked if asked.is_grouped else _named_as_here(asked, table, ledger is not None)), None
    if not isinstance(asked, Query | Workload):
        raise QueryError(
            f"a release answers a query or a plan, not {type(asked).__name__}. "
            "Make one with accord.mean or its siblings; several together are accord.workload([…])."
        )
    if share is None and ledger is not None:
        raise PlanError(
            "with a ledger, say how much of everyone's level this may spend: share=0.1 is a tenth. "
            "Levels are for life, not for one question."
        )
    fraction = 1.0 if share is None else share
    refuse_arguments(asked, mechanism, fraction, t, table.neighbors)
    read = None
    if ledger is None and not table.reader.has_levels and _needs_sums_only(asked, mechanism, table.neighbors):
        read = [
            table.reader.summary(table.knowing(asked))
        ]  # levels and values from one scan; the plan sees the levels
    plan = table.plan(asked, mechanism, fraction, t=t)
    if read and (not plan.reads_data or plan.method.needs_cells or plan.method.keeps_rows):
        read = None
    return plan, read


def _needs_sums_only(asked: Query | Workload, mechanism: str | Mechanism, neighbors: str) -> TypeGuard[Query]:
    """Whether sums by level are all that a mechanism needs for a question about everyone.

    For `auto`, whether they are all that most need.
    """
    if isinstance(asked, Workload | Grouped | Algorithm):
        return False
    if mechanism == "auto":
        return True
    method = mechanisms.named(mechanism).method(target_and_moves(asked, relation.named(neighbors))[0])
    return not (method.keeps_rows or method.needs_cells)


def _named_as_here(plan: Plan, table: Table, has_ledger: bool) -> Plan:
    """A plan under the table's names of tiers, with what must be taken for granted of the table."""
    if plan.neighbors != table.neighbors:
        return plan  # which is refused
    spec = table.spec()
    if plan.spec == spec:
        if plan.spec.tiers == spec.tiers:
            return plan
        plans = {key: None if part is None else replace(part, spec=spec) for key, part in plan.plans.items()}
        return replace(plan, spec=spec, plans=plans)
    if has_ledger and plan.choice is not None:
        return replace(plan, notes=tuple(dict.fromkeys((*plan.notes, *table.check(plan.query)))))
    return plan


def groups_of(table: Table, plan: Plan) -> Groups:
    """Whom a plan is about, and what for: everyone, or those of each public group in which somebody is."""
    if not plan.is_grouped:
        return {None: (table, plan)}
    assert isinstance(plan.query, Grouped)
    tables = table.groups(plan.query.part)
    return {key: (tables[key], part) for key, part in plan.plans.items() if part is not None}


def refuse_other_people(plan: Plan, table: Table, has_ledger: bool) -> None:
    """Refuse a plan for other levels; with a ledger it may be for what is left, which the ledger checks."""
    if plan.neighbors != table.neighbors:
        raise PlanError(
            f"the plan is for neighbors={plan.neighbors!r}, the table for {table.neighbors!r}. "
            "Plan again with table.plan(query)."
        )
    if plan.spec != table.spec() and not has_ledger:
        raise PlanError(
            "the plan was made for other levels or other numbers of people than this table has. "
            "Plan again with table.plan(query) (or give the ledger from whose remaining(table) it was made)."
        )


def refuse_keeping_rows(reader: Reader, plan: Plan) -> None:
    """Refuse a plan that keeps rows at random where an engine cannot."""
    if plan.keeps_rows and not reader.lends:
        raise SourceError(
            "this table is read where it lies, where rows cannot be kept or left out one by one. "
            "Write it to a Parquet file or an Arrow table and open that, or choose another mechanism."
        )
