"""Table: a source with its column of levels. `spec()`, `plan()`, `release()`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from accord import planning, release
from accord.budget import IntArray, read_number
from accord.engines import Engine, Kind, gather, open_source
from accord.engines.sql import (
    ALL,
    GROUP,
    LENT_CHANCE,
    LENT_LEVEL,
    LENT_PERSON,
    LENT_REMAINING,
    LENT_WORD,
    PART,
    REMAINING,
    USER,
)
from accord.errors import TABLE_CHANGED, LedgerError, PlanError, QueryError, SourceError, SpecError, did_you_mean
from accord.groups import GroupedPlan
from accord.levels import How, LeftColumn, Levels, Strictest, levels_of
from accord.people.identity import Remaining, fingerprint
from accord.planning import NEIGHBORS, Plan
from accord.release import GroupedRelease, Release, WorkloadRelease
from accord.spec import Spec
from accord.statistics import (
    Additive,
    Algorithm,
    Count,
    Extreme,
    Grouped,
    Histogram,
    MeanWhere,
    OnGrid,
    Order,
    Part,
    Query,
    Regression,
    Rows,
    Sum,
    SumWhere,
    Workload,
)
from accord.summary import Summary
from accord.workloads import WorkloadPlan

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.noise import Noise

_FEW_LEVELS = 64
_MANY_CELLS = 1_000


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
        """`within`: of a public group, which rows are its own, as SQL. Levels of people are those of all their rows."""
        self._engine, self._levels, self.user, self.neighbors = engine, levels, user, neighbors
        self._within = within
        self._all_rows = engine.source
        self._sql = engine.sql
        self._roster = roster
        self.level_column = level_column
        self._spec: Spec | None = None
        self._identity = TableIdentity(self)
        # Levels as they stand in the table (the first of them), and in millionths.
        self._raw: tuple[list[Any], IntArray] = ([], np.zeros(0, dtype=np.int64))
        self._how = levels if user is None else Strictest(levels)

    @property
    def identity(self) -> TableIdentity:
        """Who is in the table, for ledgers."""
        return self._identity

    @property
    def columns(self) -> dict[str, Kind]:
        """The columns and what they hold."""
        return dict(self._engine.columns)

    @property
    def known(self) -> bool:
        """Whether the levels have been read."""
        return self._spec is not None or self._roster is not None

    def spec(self) -> Spec:
        """The public levels, read once and kept; under add-remove the roster, and nothing is read."""
        if self._roster is not None:
            return self._roster
        if self._spec is None:
            found = self._engine.fetch(self._sql.levels(self._source(), self._how.expression))
            micro = self._how.decode(found["level"], found["people"])
            self._refuse_nobodys()
            self._keep(found["level"], micro, found["people"])
        assert self._spec is not None
        return self._spec

    @overload
    def plan(self, query: Query, mechanism: str = ..., share: float = ..., *, t: float | str | None = ...) -> Plan: ...
    @overload
    def plan(
        self, query: Workload, mechanism: str = ..., share: float = ..., *, t: float | str | None = ...
    ) -> WorkloadPlan: ...
    def plan(
        self, query: Query | Workload, mechanism: str = "auto", share: float = 1.0, *, t: float | str | None = None
    ) -> Plan | WorkloadPlan | GroupedPlan:
        """Compare every mechanism for a query or a workload; see `accord.plan`. Reads no value."""
        notes = self.check(query)
        if isinstance(query, Query | Workload):
            planning.refuse_arguments(query, mechanism, share, t, self.neighbors)
        if isinstance(query, Grouped) and query.part.public:
            return self._plan_groups(query, mechanism, share, t)
        return planning.plan(self.spec(), query, mechanism, share, t=t, neighbors=self.neighbors, notes=notes)

    @overload
    def release(
        self,
        query: Query | Plan,
        mechanism: str = ...,
        share: float | None = ...,
        *,
        t: float | str | None = ...,
        ledger: Ledger | None = ...,
    ) -> Release: ...
    @overload
    def release(self, query: GroupedPlan, *, ledger: Ledger | None = ...) -> GroupedRelease: ...
    @overload
    def release(
        self,
        query: Workload | WorkloadPlan,
        mechanism: str = ...,
        share: float | None = ...,
        *,
        t: float | str | None = ...,
        ledger: Ledger | None = ...,
    ) -> WorkloadRelease: ...
    def release(
        self,
        query: Query | Plan | Workload | WorkloadPlan | GroupedPlan,
        mechanism: str = "auto",
        share: float | None = None,
        *,
        t: float | str | None = None,
        ledger: Ledger | None = None,
    ) -> Release | WorkloadRelease | GroupedRelease:
        """Answer a query or a workload, or carry out a plan.

        Args:
            query: a query or a workload, or a plan of `plan` (which has its mechanism and share already).
            mechanism: a name, or "auto" for the lowest predicted error.
            share: the fraction of everyone's level that may be spent: all of it without a ledger, required with one.
            t: the level of `threshold`; the best one if left out.
            ledger: where everyone's budget is kept; the release is charged there before anything is read.

        Raises:
            BudgetError: somebody has less left than it would cost them. Nothing is spent.
            LedgerError: the ledger cannot be used, or does not know this table as it is now. Nothing is spent.
        """
        self.check(query.query if isinstance(query, Plan | GroupedPlan) else query)
        return release.release(self, query, mechanism, share, t=t, ledger=ledger)

    def check(self, query: Any) -> tuple[str, ...]:
        """Refuse what this table cannot answer, by names and kinds of columns; what else must be taken for granted here."""
        if isinstance(query, Workload | WorkloadPlan):
            asked = query.queries if isinstance(query, Workload) else [part.query for part in query.parts]
            return tuple(dict.fromkeys(note for part in asked for note in self.check(part)))
        if not isinstance(query, Query):
            return ()  # `plan` and `release` say so
        self._sql.check(query, self._engine.columns)
        if isinstance(query, Grouped) and query.part.public:
            self._refuse_levels(query)
            return self.check(query.query)
        if self.user is not None and not isinstance(query, Algorithm):
            self._source(query)  # refuses what a person's rows cannot come to
        if isinstance(query, Grouped):
            self._refuse_levels(query)
            return self.check(query.query)
        if isinstance(query, Rows) and self.user is None:
            raise QueryError(
                "a number of rows needs to know whose they are. Open the table with user='…' (on the command line --user)."
            )
        whose = (
            ("each row is one person",)
            if self.user is None
            else (f"a person is whoever has the same {self.user}, {_comes_to(query)}",)
        )
        self._refuse_levels(query)
        if not isinstance(query, OnGrid) or isinstance(query, Rows) or self._engine.columns[query.column] != "untyped":
            return whose
        example = (
            "number such as 1234.5 (text, 1.234,5, $5)"
            if query.kind == "number"
            else "date such as 2026-01-31 (a time zone is not read)"
        )
        return (*whose, f"{query.column} has no type of its own: what is not a {example} is missing")

    def _plan_groups(self, query: Grouped, mechanism: str, share: float, t: float | str | None) -> GroupedPlan:
        """A plan for each public group, from its own levels; groups with the same levels have the same plan."""
        notes = self.check(query.query)
        made: dict[Spec, Plan] = {}
        plans: dict[Any, Plan | None] = {}
        for key, group in self._groups(query.part).items():
            spec = group.spec()
            if spec.total and spec not in made:
                made[spec] = planning.plan(
                    spec, query.query, mechanism, share, t=t, neighbors=self.neighbors, notes=notes
                )
            plans[key] = made.get(spec)
        if not made:
            raise PlanError(f"nobody is in any of the groups{query.part.label}. Check the keys and the condition.")
        return GroupedPlan(self.spec(), query, plans, planning.whole_share(share), self.neighbors)

    def _groups(self, part: Part) -> dict[Any, Table]:
        """Each public group as a table of its own. The levels of all are read at once."""
        if self._roster is not None:
            raise QueryError(planning.PRIVATE_PEOPLE)
        source, which = self._sql.placed(self._engine.source, part, self._engine.columns)
        if self.user is not None:
            kind = self._engine.columns[self.user]
            asked = self._sql.scattered(source, self.user, kind, which)
            several = int(self._engine.fetch(asked)["people"][0])
            if several:
                raise QueryError(
                    f"{several:,} people have rows in several of the groups, so that they would pay for each. Leave membership='public' out: everyone is then in the first of theirs."
                )
        groups = {
            key: Table(
                self._engine,
                self._levels,
                self.user,
                self.neighbors,
                self.level_column,
                within=f"({which}) = {place}",
            )
            for place, key in enumerate(part.keys or (None,))
        }
        people, group = self._people_of_groups(source, which)
        found = self._engine.fetch(self._sql.levels(people, self._how.expression, group))
        self._refuse_nobodys()
        for table, kept in zip(groups.values(), _of_each(_parts(found), len(groups)), strict=True):
            table._all_rows, raw, counts = source, found["level"][kept], found["people"][kept]
            table._keep(raw, self._how.decode(raw, counts), counts)
        return groups

    def _people_of_groups(
        self, source: str, which: str, query: Query | None = None, part: str = ALL
    ) -> tuple[str, str]:
        """Who is in a public group, one row each, and in which; `part`: of a row, within its group."""
        if self.user is None:
            return self._sql.within(source, f"({which}) IS NOT NULL"), which
        return gather.gathered(
            self._sql, source, self.user, self._levels.strictness, query, self._engine.columns, part, group=which
        ), GROUP

    def _summaries_of_groups(
        self, part: Part, query: Query, by_cell: bool, groups: Mapping[int, Table]
    ) -> dict[int, list[Summary]]:
        """What `_summaries` gives for each of these public groups, by their places among the keys; from one scan.

        What is asked of a group may itself be about a part of it: then place and part are one number, place·(parts + 1) + part, and the last of these
        parts are those who are in none.
        """
        source, which = self._sql.placed(self._engine.source, part, self._engine.columns)
        asked, inner, parts = query, ALL, 0
        if isinstance(query, Grouped):
            asked, parts = query.query, query.groups
            source, inner = self._sql.placed(source, query.part, self._engine.columns)
        people, code = self._people_of_groups(source, which, asked, inner)
        if parts:
            code = f"{code} * {parts + 1} + COALESCE({inner if self.user is None else PART}, {parts})"
        found = self._read_entries(asked, people, self._how, by_cell, code)
        of_place = _of_each(np.where(found.part < 0, -1, found.part // (parts + 1)), len(part.keys) or 1)
        made = {}
        for place, group in groups.items():
            own = found.of(of_place[place])
            within = own.part % (parts + 1) if parts else np.zeros_like(own.part)
            own = own._replace(part=np.where(within == parts, -1, within) if parts else within)
            made[place] = group._summarise(asked, own, group.spec(), by_cell, parts or 1)
        return made

    def _refuse_levels(self, query: Query) -> None:
        if self.level_column in query.columns:
            raise QueryError(
                f"column {self.level_column!r} holds the levels, which are public and decide everyone's weight. Look at spec() for how many have which."
            )

    def _summary(
        self,
        query: Query,
        left: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> Summary:
        """Of a query that is about everyone: see `_summaries`."""
        return self._summaries(query, left, by_cell, thinning)[0]

    def _summaries(
        self,
        query: Query,
        left: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> list[Summary]:
        """The exact integers behind a query, by level, or by what people have left; for each of its groups. Private: for `release` alone.

        `by_cell`: how many people have each integer, where otherwise their sum is enough. `thinning`: of the rows that are kept, by chances for each
        level of the plan.
        """
        with self._rows(left, query) as (source, how, spec):
            if thinning is None:
                made = self._aggregate(query, source, how, spec, by_cell)
            else:
                with self._thinned(source, how, spec, left, *thinning) as rows:
                    made = self._aggregate(query, rows, how, spec, by_cell, thinned=True)
        if left is None or left.by_level is None:
            return made
        return [summary.regrouped(left.by_level, left.spec) for summary in made]

    def _source(self, query: Query | None = None) -> str:
        """The people, one row each."""
        source, part = self._placed(query)
        if self.user is None:
            return source if self._within is None else self._sql.within(source, self._within)
        asked = query.query if isinstance(query, Grouped) else query
        return gather.gathered(
            self._sql, source, self.user, self._levels.strictness, asked, self._engine.columns, part, self._within
        )

    def _placed(self, query: Query | None) -> tuple[str, str]:
        """The rows, and which part of a question each is of, as SQL."""
        if not isinstance(query, Grouped):
            return self._all_rows, ALL
        return self._sql.placed(self._all_rows, query.part, self._engine.columns)

    @contextmanager
    def _rows(self, left: Remaining | None, query: Query) -> Iterator[tuple[str, How, Spec | None]]:
        """Where people are, one row each, how their level is read, and which Spec they must have if not the table's own.

        Somebody's own algorithm gets rows as they are, of people who have one.
        """
        alone = isinstance(query, Algorithm) and self.user is not None
        user = str(self.user)
        source = (
            self._sql.alone(self._engine.source, user, self._engine.columns[user]) if alone else self._source(query)
        )
        if left is None or left.by_person is None:
            yield source, self._levels if alone else self._how, None
            return
        secret, people, amounts = left.by_person
        identity = self._sql.identity(user, self._engine.columns[user]) if alone else USER
        with self._engine.lend({LENT_PERSON: people, LENT_REMAINING: amounts}) as lent:
            matched = self._sql.with_remaining(source, self.identity.person(secret, identity), lent)
            yield matched, LeftColumn(REMAINING), left.spec

    def _sampled(self, query: Algorithm, left: Remaining | None, chances: Any, noise: Noise) -> Any:
        """The rows of people who are kept, for somebody's own algorithm."""
        with (
            self._rows(left, query) as (source, how, spec),
            self._thinned(source, how, spec, left, chances, noise, self.user is not None) as rows,
        ):
            return self._engine.rows(rows, query.columns, query.rows)

    @contextmanager
    def _thinned(
        self,
        source: str,
        how: How,
        expected: Spec | None,
        left: Remaining | None,
        chances: Any,
        noise: Noise,
        some: bool = False,
    ) -> Iterator[str]:
        """The rows that are kept: each has a random word of its own, and it does not matter which. `some`: people may be missing."""
        spec = expected or self.spec()
        if left is not None and left.by_level is not None:  # a chance for each level of the table
            chances = np.where(left.by_level > 0, chances[np.searchsorted(left.spec.micro, left.by_level)], 0)
        found = self._engine.fetch(self._sql.levels(source, how.expression))
        micro = how.decode(found["level"], found["people"])
        if self._roster is None and not some and Spec(micro, found["people"]) != spec:
            raise SourceError(TABLE_CHANGED)
        known = np.isin(micro, spec.micro)
        chance = np.zeros(micro.size, dtype=np.uint64)
        chance[known] = chances[np.searchsorted(spec.micro, micro[known])]
        words = noise.words(int(found["people"].sum()))
        with self._engine.lend({LENT_WORD: words}) as by_row:
            if micro.size <= _FEW_LEVELS and not isinstance(how, LeftColumn):
                # only those who can be kept: of other levels, whatever is written there is not repeated
                raw = [(level, c) for level, c in zip(_plain(found["level"]), chance.tolist(), strict=True) if c]
                yield self._sql.kept_by_case(
                    source, how.expression, by_row, [level for level, _ in raw], [c for _, c in raw]
                )
                return
            with self._engine.lend({LENT_LEVEL: found["level"], LENT_CHANCE: chance}) as by_level:
                yield self._sql.kept(source, how.expression, by_row, by_level)

    def _aggregate(
        self,
        query: Query,
        source: str,
        how: How,
        expected: Spec | None,
        by_cell: bool,
        thinned: bool = False,
    ) -> list[Summary]:
        part, parts = ALL, 1
        if isinstance(query, Grouped):
            part, parts = self._placed(query)[1] if self.user is None else PART, query.groups
            query = query.query
        found = self._read_entries(query, source, how, by_cell, part)
        if expected is None and not self.known and found.raw is not None:
            self._refuse_nobodys()
            self._keep(found.raw, found.micro, found.people)
        return self._summarise(query, found, self.spec() if expected is None else expected, by_cell, parts, thinned)

    def _read_entries(self, query: Query, source: str, how: How, by_cell: bool, part: str) -> _Entries:
        """People and their integers by level and part, and by cell where that is needed."""
        if isinstance(query, Regression):
            return self._moments(query, source, how, part)
        cell = (
            self._sql.cell(query, self._engine.columns, how.read)
            if self.user is None
            else gather.cell(self._sql, query, how.read)
        )
        missing = query.missing_cell if isinstance(query, OnGrid) else None
        if by_cell or isinstance(query, Histogram | Order):
            return self._by_cell(source, how, cell, _points(query, by_cell), missing, part)
        found = self._engine.fetch(self._sql.by_level(source, how.expression, cell, missing or 0, part), wide="total")
        people, amounts = found["people"], np.array(found["total"], dtype=object)
        micro, cells = how.decode(found["level"], people), np.zeros(people.size, dtype=np.int64)
        return _Entries(micro, people, cells, _parts(found), amounts, found["level"])

    def _summarise(
        self, query: Query, found: _Entries, spec: Spec, by_cell: bool, parts: int, thinned: bool = False
    ) -> list[Summary]:
        """The Summary of each part, from what was read of people of this Spec."""
        micro, people, cells, which, amounts, _ = found
        points = _points(query, by_cell)
        if isinstance(query, SumWhere):  # everyone counts: who is not a member adds nothing
            if by_cell:
                cells, points = np.where(which < 0, query.nowhere, cells), query.nowhere + 1
            else:
                there = people.astype(object)
                amounts = np.where(which < 0, there * query.outside, query.inside(amounts, there))
            which = np.zeros_like(which)
        if (
            self._roster is not None or thinned
        ):  # how many are there is private, and so is whether somebody is there who should not be
            read = np.isin(micro, spec.micro) & (cells >= 0)
        elif Spec(micro, people) != spec:
            raise SourceError(TABLE_CHANGED)
        else:
            read = (micro > 0) & (cells >= 0)
        made = _of_each(np.where(read, which, -1), parts)
        if isinstance(query, Regression):
            return [_of_moments(spec, micro[k], amounts[k]) for k in made]
        return [self._summed(query, spec, points, by_cell, micro[k], people[k], cells[k], amounts[k]) for k in made]

    @staticmethod
    def _summed(
        query: Query,
        spec: Spec,
        points: int,
        by_cell: bool,
        micro: IntArray,
        people: IntArray,
        cells: IntArray,
        amounts: Any,
    ) -> Summary:
        level = np.searchsorted(spec.micro, micro)
        if isinstance(query, Additive) and query.sums > query.outputs and not by_cell:
            everyone = query.span * people.astype(object)
            both = (2 * amounts - everyone, everyone) if isinstance(query, MeanWhere) else (amounts, everyone - amounts)
            level, points = np.concatenate((level, level)), 2
            cells, amounts = np.concatenate((cells, cells + 1)), np.concatenate(both)
        order = np.lexsort(
            (cells, level)
        )  # an engine gives its groups in any order, and each may have a noise of its own
        return Summary(spec.people, points, level[order], cells[order], amounts[order])

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level: not where somebody else's connection reads the table."""
        return self._engine.lends

    def _moments(self, query: Regression, source: str, how: How, part: str) -> _Entries:
        """The sums of a regression, and the number of people last."""
        codes = self._sql.codes(query, self._engine.columns) if self.user is None else gather.codes(self._sql, query)
        found = self._engine.fetch(self._sql.moments(source, how.expression, query, codes, part))
        people = found["people"]
        columns = [found[f"m{k}"] for k in range(len(query.encoding.products))]
        amounts = np.column_stack([*columns, people]).astype(np.int64)
        cells = np.zeros(people.size, dtype=np.int64)
        return _Entries(how.decode(found["level"], people), people, cells, _parts(found), amounts, None)

    def _by_cell(self, source: str, how: How, cell: str, cells: int, missing: int | None, part: str) -> _Entries:
        """How many people there are of each level, cell and part; −1: in no cell, in no part.

        With few levels and many cells, level and cell are one small integer, which the engine groups twice as fast; that takes the levels beforehand.
        """
        nowhere = cells if missing is None else missing
        coded = cells >= _MANY_CELLS and part == ALL and not isinstance(how, LeftColumn) and self.spec() is not None
        raw, micro = self._raw
        if not (coded and 0 < micro.size <= _FEW_LEVELS):
            found = self._engine.fetch(self._sql.by_level_and_cell(source, how.expression, cell, part))
            group = np.ma.filled(found["cell"], nowhere).astype(np.int64)
            levels, people = how.decode(found["level"], found["people"]), found["people"]
        else:
            found = self._engine.fetch(self._sql.by_code(source, how.expression, raw, cell, nowhere, cells))
            group, codes = np.divmod(found["code"].astype(np.int64), micro.size + 1)
            if (codes == micro.size).any():  # a level that was not there before
                raise SourceError(TABLE_CHANGED)
            levels, people = micro[codes], found["people"]
        return _Entries(levels, people, np.where(group == cells, -1, group), _parts(found), people, None)

    def _refuse_nobodys(self) -> None:
        """Refuse rows that are of nobody."""
        if self.user is None:
            return
        counted = gather.nobodys(self._sql, self._engine.source, self.user, self._engine.columns)
        extra = int(self._engine.fetch(counted)["extra"][0])
        if extra:
            raise SourceError(
                f"{extra} rows are of nobody ({self.user!r} is NULL). Say whose they are, or leave them out of the table."
            )

    def _keep(self, raw: Any, micro: IntArray, people: IntArray) -> None:
        """Levels as they were read."""
        self._raw = (_plain(raw[: _FEW_LEVELS + 1]), micro)
        self._spec = Spec(micro, people, self._levels.tiers)

    def __repr__(self) -> str:
        return f"<Table of {len(self._engine.columns)} columns; neighbors: {self.neighbors}>"


class TableIdentity:
    """Who is in a table: see `Identity`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: tuple[str, object, str] | None = None

    def people(self, secret: str) -> tuple[IntArray, IntArray]:
        """Everyone's keyed hash and level in millionths, for a ledger. No value is read."""
        user = self.person(secret, USER)
        self._table.spec()  # refuses levels that cannot be used, and rows of nobody
        if self._table._engine.columns[str(self._table.user)] == "number":
            blurred = int(
                self._table._engine.fetch(self._table._sql.blurred(self._table._engine.source, str(self._table.user)))[
                    "blurred"
                ][0]
            )
            if blurred:
                raise LedgerError(
                    f"{blurred:,} ids in {self._table.user!r} are floating-point numbers too large to be exact, so that people cannot be told apart. "
                    "Store ids as whole numbers or text."
                )
        found = self._table._engine.fetch(
            self._table._sql.people(self._table._source(), user, self._table._how.expression)
        )
        return found["person"], self._table._how.decode(found["level"], np.ones(found["person"].size, dtype=np.int64))

    def fingerprint(self, secret: str) -> str:
        """Of who is in the table with which level; never of values. Kept while the source is known to be unchanged."""
        state = self._table._engine.state()
        if state is None or self._known is None or self._known[:2] != (secret, state):  # None: it may have changed
            user = self.person(secret, USER)
            found = self._table._engine.fetch(
                self._table._sql.by_level(self._table._source(), self._table._how.expression, user, 0), wide="total"
            )
            micro = self._table._how.decode(found["level"], found["people"])
            if Spec(micro, found["people"]) != self._table.spec():
                raise SourceError(TABLE_CHANGED)
            self._known = (secret, state, fingerprint(micro, found["people"], found["total"]))
        return self._known[2]

    def person(self, secret: str, identity: str) -> str:
        """Somebody's keyed hash, from what they are known by."""
        if self._table._roster is not None:
            raise LedgerError(
                "a ledger must know who is in a table, and with neighbors='add-remove' that is private. Open it with neighbors='replace'."
            )
        if self._table.user is None:
            raise LedgerError(
                "the table has no column that says who a row is of, and without it the same people could be charged to two budgets. "
                "Open it with user='…' (on the command line --user)."
            )
        kind = self._table._engine.columns[self._table.user]
        if kind not in ("number", "text", "untyped"):
            raise LedgerError(
                f"column {self._table.user!r} cannot tell people apart. Use a column of text or whole numbers."
            )
        return self._table._sql.person(identity, self._table.user, kind, secret)


class _Entries(NamedTuple):
    """What was read: people who are alike in everything that is told here, one entry for each kind."""

    micro: IntArray
    people: IntArray
    cells: IntArray
    """−1: none."""
    part: IntArray
    """−1: none."""
    amounts: Any
    """Sums of integers, or people; of a regression, a row of sums for each entry."""
    raw: Any
    """Levels as they stand in the table, where everyone is here."""

    def of(self, kept: IntArray) -> _Entries:
        micro, people, cells, part, amounts, _ = self
        return _Entries(micro[kept], people[kept], cells[kept], part[kept], amounts[kept], None)


def _points(query: Query, by_cell: bool) -> int:
    """Of how many outputs or points a Summary is."""
    if isinstance(query, Order):
        return query.points
    if by_cell and isinstance(query, Additive) and not isinstance(query, Histogram):
        return (query.cells if isinstance(query, OnGrid) else query.span) + 1
    return query.outputs


def _of_moments(spec: Spec, micro: IntArray, sums: IntArray) -> Summary:
    """From a row of sums for each entry."""
    level, columns = np.searchsorted(spec.micro, micro), sums.shape[1]
    return Summary(
        spec.people,
        columns,
        np.tile(level, columns),
        np.repeat(np.arange(columns), level.size),
        sums.T.reshape(-1),
    )


def _parts(found: Mapping[str, Any]) -> IntArray:
    """Which part each entry of a result is of; −1: of none."""
    return (
        np.ma.filled(found["part"], -1).astype(np.int64)
        if "part" in found
        else np.zeros(found["people"].size, dtype=np.int64)
    )


def _of_each(which: IntArray, parts: int) -> list[IntArray]:
    """The entries that belong to each part, in their order."""
    order = np.argsort(which, kind="stable")
    return np.split(order, np.searchsorted(which[order], np.arange(parts + 1)))[1:-1]


def _comes_to(query: Query) -> str:
    """What becomes of a person's rows, in words."""
    match query:
        case Algorithm():
            return "and only people with one row are read"
        case Rows():
            return "and counts for as many rows as they have"
        case Sum():
            return "and counts with the sum of their rows"
        case Extreme():
            return f"and counts with their {'smallest' if query.statistic == 'min' else 'largest'} value"
        case Count():
            return "and is counted if any of their rows meets the condition"
        case Histogram() if not query.edges:
            return "and is in the first declared category that any of their rows has"
        case Regression():
            return "and counts with the mean of their rows, and their first declared category"
        case _:
            return "and counts with the mean of their rows"


def _plain(raw: Any) -> list[Any]:
    """Levels as they stand in the table; None for NULL."""
    return [
        None if absent else x
        for x, absent in zip(np.ma.getdata(raw).tolist(), np.ma.getmaskarray(raw).tolist(), strict=True)
    ]


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
        source: a path or glob (Parquet, CSV), a pandas, polars or Arrow table, a DuckDB relation, a dict of arrays, a Spark DataFrame or
            "spark://catalog.table", or "postgresql://user@host/database?table=schema.name".
        epsilon: the column of levels: numbers, or names of `tiers`. A number: the level of everyone.
        tiers: {name: level}; 0 for opted out, inf for public.
        default: the tier or level of people who have none (NULL). Without it they are refused.
        user: the column that says who a row is of. A person's rows come to one number (their mean for a mean, their sum for a sum, …: docs/how-it-works.md), and
            the strictest of their levels counts.
        neighbors: "replace": one person's value changes; who is in the table, and their levels, are public. "add-remove": one person comes
            or goes; then who is in the table is private, and `roster` says how many could be, of each level.
        roster: with add-remove, the public Spec of everyone who could be in the table. People of other levels are not read.

    Raises:
        SourceError: the source cannot be opened.
        SpecError: levels or tiers that cannot be used.

    >>> people = table({"age": [31, 45, 62], "level": [0.1, 1.0, float("inf")]}, epsilon="level")
    >>> people.spec().levels
    (0.1, 1.0, inf)
    """
    if neighbors not in NEIGHBORS:
        raise SourceError(
            f"neighbors={neighbors!r} is not offered. There is 'replace' (one person's value changes; who is in the table is public) and "
            "'add-remove' (one person comes or goes; who is in the table is private)."
        )
    if (neighbors == "add-remove") != isinstance(roster, Spec):
        raise SourceError(
            "with neighbors='add-remove' who is in the table is private, so that its levels cannot be counted: give roster=Spec of everyone who could be in it."
            if neighbors == "add-remove"
            else "roster= says who could be in a table whose members are private. Add neighbors='add-remove', or leave it out."
        )
    engine = open_source(source)
    if not isinstance(epsilon, (str, Real, Decimal)):
        raise SpecError(
            f"epsilon= is a {type(epsilon).__name__}. Name the column of levels, or give one number for everyone; "
            "an array of levels is a column of the table."
        )
    if isinstance(epsilon, str) and epsilon not in engine.columns:
        with suppress(ValueError):  # a number as text, where no column has that name
            epsilon = read_number(epsilon)
    for name in (epsilon if isinstance(epsilon, str) else None, user):
        if name is not None and name not in engine.columns:
            raise SourceError(f"there is no column {name!r}: {did_you_mean(name, engine.columns)}")
    levels = levels_of(engine.sql, engine.columns, epsilon, tiers, default)
    if roster is not None:
        levels = replace(levels, lenient=True)
    return Table(engine, levels, user, neighbors, epsilon if isinstance(epsilon, str) else None, roster)
