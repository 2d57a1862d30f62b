"""Desks: the tables that are asked about, what everybody may know of them, and plans."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from accord import catalogs
from accord.budget import level_text
from accord.errors import AccordError, SourceError
from accord.ledger import Ledger
from accord.people.table import Table
from accord.planning import Plan
from accord.release.receipt import SCHEMA, plain_data, remaining_document
from accord.server.asking import Asked, public_text
from accord.server.refusals import NOT_READABLE
from accord.server.scans import LANES
from accord.spec import Spec

if TYPE_CHECKING:
    from accord.statistics.select import Selected

_LOG = logging.getLogger("accord")
_PLANS = 256
"""So many plans of a table are kept."""
_AS_OF_NOW = 60.0
"""Seconds for which a consent register whose entries count as of now is not looked at again."""


class Desk:
    """A table that is asked about: opened once for plans, and once for each lane."""

    def __init__(self, catalog: catalogs.Catalog, name: str, ledger: Ledger) -> None:
        self._catalog, self.name, self._ledger = catalog, name, ledger
        self._lock = Lock()
        self._opened: dict[int, tuple[Table, float]] = {}
        self._plans: OrderedDict[tuple[str, str], Plan] = OrderedDict()
        self.people = 0
        """How many there were when it was last opened, which decides how long its slots are."""

    def table(self, place: int = LANES) -> Table:
        """The table as a lane has it; without one, for plans.

        Raises:
            SourceError: it cannot be read as it is described.
        """
        with self._lock:
            table, since = self._opened.get(place, (None, 0.0))
            is_dated = table is not None and table.as_of is not None
            if table is None or (is_dated and monotonic() - since > _AS_OF_NOW):
                table = self._catalog[self.name]
                if (
                    table.description is not None
                ):  # plans quote it, and nobody need know in which folder it is
                    file = Path(table.description.file).name
                    table.description = replace(table.description, file=file)
                self.people = table.spec().total  # levels are read here, so that nobody waits for them
                self._opened[place] = (table, monotonic())
            return table

    def forget(self) -> None:
        """Open the table anew when it is next needed: it may have changed."""
        with self._lock:
            self._opened.clear()

    @contextmanager
    def readable(self) -> Iterator[Table]:
        """The table for plans. What goes wrong with it is told in one sentence, and it is opened anew."""
        try:
            yield self.table()
        except AccordError as fault:
            if public_text(fault) is not None:
                raise
            _LOG.warning("%s: %s", type(fault).__name__, fault)
        else:
            return
        self.forget()
        raise SourceError(NOT_READABLE)

    # ---- plans ---------------------------------------------------------------------------------------------

    def plan(self, asked: Asked) -> tuple[Plan, Selected | None]:
        """A plan, which is made once for the same question and the same people."""
        with self.readable() as table:
            if asked.values.get("remaining"):
                return self.plan_of(table, asked)
            key = (table.spec().fingerprint, asked.digest(self.name))
            with self._lock:
                plan = self._plans.get(key)
            if plan is not None:
                return plan, asked.of(table)[1] if "sql" in asked.values else None
            plan, selected = self.plan_of(table, asked)
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return plan, selected

    def plan_of(self, table: Table, asked: Asked) -> tuple[Plan, Selected | None]:
        """A plan for the table as it was opened."""
        query, selected = asked.of(table)
        said = asked.values
        plan = table.plan(
            query,
            said.get("mechanism", "auto"),
            asked.share,
            t=said.get("t"),
            report_missing=said.get("report_missing"),
            remaining=self._ledger if said.get("remaining") else None,
        )
        return plan, selected

    # ---- what everybody may know ---------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """What is declared of the table."""
        with self.readable() as table:
            declared = {} if table.description is None else table.description.columns
            return {
                "name": self.name,
                "about": self._catalog.about(self.name),
                "neighbors": table.neighbors,
                "several_rows": table.user is not None,
                "user": _column_document(table, table.user),
                "levels": _column_document(table, table.level_column),
                "complete": sorted(table.reader.engine.complete),
                "file": "" if table.description is None else table.description.file,
                "notes": list(table.about_levels),
                "columns": [
                    {
                        "name": column,
                        "kind": kind,
                        **({} if column not in declared else _declared_document(declared[column])),
                    }
                    for column, kind in table.columns.items()
                    if column not in (table.user, table.level_column)
                ],
            }

    def spec(self) -> dict[str, Any]:
        """The public levels, and how many people have each."""
        with self.readable() as table:
            spec = table.spec()
        return {
            "schema": SCHEMA,
            "table": self.name,
            "fingerprint": spec.fingerprint,
            "people": None if spec.is_expected else spec.total,
            "opted_out": None if spec.is_expected else spec.opted_out,
            "levels": levels_document(spec),
            "tiers": {tier: level_text(micro) for tier, micro in (spec.tiers or {}).items()},
        }

    def remaining(self) -> dict[str, Any]:
        """What everyone has left: how many people have how much."""
        with self.readable() as table:
            remaining = self._ledger.remaining(table)
        document = {"levels": levels_document(remaining), "opted_out": remaining.opted_out}
        return {"schema": SCHEMA, "table": self.name, **remaining_document(remaining, None), **document}


def levels_document(spec: Spec) -> list[dict[str, Any]]:
    """Every level, and how many people have it."""
    return [
        {"level": level_text(level), "tier": spec.tier(level), "people": count}
        for level, count in zip(spec.micro.tolist(), spec.counts, strict=True)
    ]


def _column_document(table: Table, name: str | None) -> dict[str, str] | None:
    return None if name is None else {"name": name, "kind": table.columns[name]}


def _declared_document(declared: Any) -> dict[str, Any]:
    """What is declared of a column."""
    said = {name: getattr(declared, name) for name in vars(declared) if name not in ("kind", "keys")}
    document = {name: plain_data(value) for name, value in said.items() if value not in (None, "")}
    if declared.keys is not None:
        document["keys"] = plain_data(list(declared.keys))
    return document
