"""Table: a source with its column of levels. `spec()`, `plan()`, `release()`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

from accord import planning, relation
from accord.budget import read_number
from accord.engines import Engine, Kind, open_source
from accord.errors import PlanError, QueryError, SourceError, SpecError, did_you_mean
from accord.people.identity import Identity, TableIdentity
from accord.people.levels import Levels, levels_of
from accord.people.reader import TableReader
from accord.planning import Plan
from accord.release import Release, release
from accord.spec import Spec
from accord.statistics import Algorithm, Grid, Grouped, Part, Query, Workload

if TYPE_CHECKING:
    from accord.ledger import Ledger


class Table:
    """People, opened. Made by `accord.table`."""

    def __init__(
        self,
        engine: Engine,
        levels: Levels,
        user: str | None,
        neighbors: str,
        level_column: str | None = None,
        roster: Spec | None = None,
        within: str | None = None,
    ) -> None:
        """`within`: of a public group, which rows are its own, as SQL.

        Levels of people are those of all their rows.
        """
        self.user, self.neighbors, self.level_column = user, neighbors, level_column
        self._read_by(TableReader(engine, levels, user, roster, within))

    def _read_by(self, reader: TableReader) -> None:
        self.reader = reader
        """What releases read the people by. What it gives is private."""
        self._identity = TableIdentity(reader)

    @property
    def identity(self) -> Identity:
        """Who is in the table, for ledgers."""
        return self._identity

    @property
    def columns(self) -> dict[str, Kind]:
        """The columns and what they hold."""
        return dict(self.reader.engine.columns)

    @property
    def known(self) -> bool:
        """Whether the levels have been read."""
        return self.reader.known

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level: not where another system reads them."""
        return self.reader.lends

    def spec(self) -> Spec:
        """The public levels, read once and kept; under add-remove the roster, and nothing is read."""
        return self.reader.spec()

    def plan(
        self,
        query: Query | Workload,
        mechanism: str = "auto",
        share: float = 1.0,
        *,
        t: float | str | None = None,
    ) -> Plan:
        """Compare every mechanism for a query or a workload; see `accord.plan`. Reads no value."""
        notes = self.check(query)
        if isinstance(query, Query | Workload):
            planning.refuse_arguments(query, mechanism, share, t, self.neighbors)
        if isinstance(query, Grouped) and query.part.public:
            return self._plan_groups(query, mechanism, share, t)
        return planning.plan(self.spec(), query, mechanism, share, t=t, neighbors=self.neighbors, notes=notes)

    def release(
        self,
        query: Query | Workload | Plan,
        mechanism: str = "auto",
        share: float | None = None,
        *,
        t: float | str | None = None,
        ledger: Ledger | None = None,
    ) -> Release:
        """Answer a query or a workload, or carry out a plan.

        Args:
            query: a query or a workload, or a plan of `plan` (which has its mechanism and share already).
            mechanism: a name, or "auto" for the lowest predicted error.
            share: the fraction of everyone's level that may be spent: all of it without a ledger, required
                with one.
            t: the level of `threshold`; the best one if left out.
            ledger: where everyone's budget is kept; the release is charged there before anything is read.

        Raises:
            BudgetError: somebody has less left than it would cost them. Nothing is spent.
            LedgerError: the ledger cannot be used, or does not know this table as it is now. Nothing is
                spent.
        """
        self.check(query.query if isinstance(query, Plan) else query)
        return release(self, query, mechanism, share, t=t, ledger=ledger)

    def check(self, query: Any) -> tuple[str, ...]:
        """Refuse what this table cannot answer, by names and kinds of columns.

        Returns:
            What else must be taken for granted here.
        """
        if isinstance(query, Workload):
            return tuple(dict.fromkeys(note for part in query.queries for note in self.check(part)))
        if not isinstance(query, Query):
            return ()  # `plan` and `release` say so
        self.reader.check(query)
        is_public = isinstance(query, Grouped) and query.part.public
        if self.user is not None and not is_public and not isinstance(query, Algorithm):
            self.reader.people(query)  # refuses what a person's rows cannot come to
        if isinstance(query, Grouped):
            self._refuse_levels(query)
            return self.check(query.query)
        grid = query.encoding if isinstance(query.encoding, Grid) else None
        if grid and grid.per_person == "rows" and self.user is None:
            raise QueryError(
                "a number of rows needs to know whose they are. "
                "Open the table with user='…' (on the command line --user)."
            )
        self._refuse_levels(query)
        whose = (
            "each row is one person"
            if self.user is None
            else f"a person is whoever has the same {self.user}, {query.rows_come_to}"
        )
        if grid is None or grid.per_person == "rows" or self.columns[grid.column] != "untyped":
            return (whose,)
        example = (
            "number such as 1234.5 (text, 1.234,5, $5)"
            if grid.kind == "number"
            else "date such as 2026-01-31 (a time zone is not read)"
        )
        return whose, f"{grid.column} has no type of its own: what is not a {example} is missing"

    def _refuse_levels(self, query: Query) -> None:
        if self.level_column in query.columns:
            raise QueryError(
                f"column {self.level_column!r} holds the levels, which are public and decide everyone's "
                "weight. "
                "Look at spec() for how many have which."
            )

    def groups(self, part: Part) -> dict[Any, Table]:
        """Each public group as a table of its own. The levels of all are read at once."""
        if self.reader.roster is not None:
            raise QueryError(planning.PRIVATE_PEOPLE)
        tables = {}
        for key, reader in self.reader.groups(part).items():
            tables[key] = copy(self)
            tables[key]._read_by(reader)
        return tables

    def _plan_groups(self, query: Grouped, mechanism: str, share: float, t: float | str | None) -> Plan:
        """A plan for each public group, from its own levels; groups of the same levels have the same plan."""
        notes = self.check(query.query)
        by_spec: dict[Spec, Plan] = {}
        plans: dict[Any, Plan | None] = {}
        for key, group in self.groups(query.part).items():
            spec = group.spec()
            if spec.total and spec not in by_spec:
                by_spec[spec] = planning.plan(
                    spec, query.query, mechanism, share, t=t, neighbors=self.neighbors, notes=notes
                )
            plans[key] = by_spec.get(spec)
        if not by_spec:
            raise PlanError(
                f"nobody is in any of the groups{query.part.label}. Check the keys and the condition."
            )
        under = relation.named(self.neighbors)
        return Plan(self.spec(), query, planning.whole_share(share), under, plans=plans)

    def __repr__(self) -> str:
        return f"<Table of {len(self.reader.engine.columns)} columns; neighbors: {self.neighbors}>"


def table(
    source: Any,
    *,
    epsilon: str | float,
    tiers: Mapping[Any, float] | None = None,
    default: str | float | None = None,
    user: str | None = None,
    neighbors: str = "replace",
    roster: Spec | None = None,
) -> Table:
    """Open a table of people who each have a level.

    Args:
        source: a path or glob (Parquet, CSV), a pandas, polars or Arrow table, a DuckDB relation, a dict of
            arrays, a Spark DataFrame or "spark://catalog.table", or
            "postgresql://user@host/database?table=schema.name".
        epsilon: the column of levels: numbers, or names of `tiers`. A number: the level of everyone.
        tiers: {name: level}; 0 for opted out, inf for public.
        default: the tier or level of people who have none (NULL). Without it they are refused.
        user: the column that says who a row is of. A person's rows come to one number (their mean for a mean,
            their sum for a sum, …: docs/how-it-works.md), and the strictest of their levels counts.
        neighbors: "replace": one person's value changes; who is in the table, and their levels, are public.
            "add-remove": one person comes or goes; then who is in the table is private, and `roster` says how
            many could be, of each level.
        roster: with add-remove, the public Spec of everyone who could be in the table. People of other levels
            are not read.

    Raises:
        SourceError: the source cannot be opened.
        SpecError: levels or tiers that cannot be used.

    >>> people = table({"age": [31, 45, 62], "level": [0.1, 1.0, float("inf")]}, epsilon="level")
    >>> people.spec().levels
    (0.1, 1.0, inf)
    """
    if neighbors not in [one.name for one in relation.ALL]:
        raise SourceError(
            f"neighbors={neighbors!r} is not offered. There is 'replace' (one person's value changes; who is "
            "in the table is public) and "
            "'add-remove' (one person comes or goes; who is in the table is private)."
        )
    people_are_public = relation.named(neighbors).people_are_public
    if people_are_public == isinstance(roster, Spec):
        raise SourceError(
            "with neighbors='add-remove' who is in the table is private, so that its levels cannot be "
            "counted: give roster=Spec of everyone who could be in it."
            if not people_are_public
            else "roster= says who could be in a table whose members are private. "
            "Add neighbors='add-remove', or leave it out."
        )
    engine = open_source(source)
    if not isinstance(epsilon, (str, Real, Decimal)):
        raise SpecError(
            f"epsilon= is a {type(epsilon).__name__}. Name the column of levels, or give one number for "
            "everyone; "
            "an array of levels is a column of the table."
        )
    if isinstance(epsilon, str) and epsilon not in engine.columns:
        with suppress(ValueError):  # a number as text, where no column has that name
            epsilon = read_number(epsilon)
    for name in (epsilon if isinstance(epsilon, str) else None, user):
        if name is not None and name not in engine.columns:
            raise SourceError(f"there is no column {name!r}: {did_you_mean(name, engine.columns)}")
    levels = levels_of(engine.dialect, engine.columns, epsilon, tiers, default)
    if roster is not None:
        levels = replace(levels, lenient=True)
    return Table(engine, levels, user, neighbors, epsilon if isinstance(epsilon, str) else None, roster)
