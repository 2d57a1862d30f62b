"""Table: a source with its column of levels. `spec()`, `plan()`, `release()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from accord import planning, relation
from accord.budget import level_text
from accord.engines import Engine, Kind, absolute, can_be_opened_again, has_place, without_password
from accord.errors import PlanError, QueryError, SourceError
from accord.people import own_files
from accord.people.checking import checked
from accord.people.consent import Consent
from accord.people.description import Description
from accord.people.identity import DescribedIdentity, Identity, TableIdentity
from accord.people.levels import RowLevels
from accord.people.mistaken import warn_of_mistaken_levels
from accord.people.public_groups import PublicGroups
from accord.people.reader import TableReader
from accord.planning import Plan
from accord.release import Release, release
from accord.spec import Spec
from accord.statistics import (
    Grouped,
    Part,
    Query,
    Workload,
    reporting_missing,
)
from accord.statistics.declared import Undescribed, described
from accord.statistics.query import A

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.mechanisms.record import Mechanism
    from accord.people.public import PublicLook
    from accord.release.gaps import GapLook
    from accord.release.selected import Answers
    from accord.release.sizing import SizeChoice
    from accord.statistics.select import Selected


class Opened(NamedTuple):
    """What `table` was called with: a table that is pickled is opened anew, with every check."""

    source: Any
    options: dict[str, Any]


class Table:
    """People, opened. Made by `accord.table`."""

    def __init__(
        self,
        engine: Engine,
        levels: RowLevels,
        user: str | None,
        neighbors: str,
        level_column: str | None = None,
        roster: Spec | None = None,
        within: str | None = None,
        consent: Consent | None = None,
    ) -> None:
        """`within`: of a public group, which rows are its own, as SQL.

        Levels of people are those of all their rows; with a `consent` register, those of it.
        """
        self.user, self.neighbors, self._consent = user, neighbors, consent
        self._levels_named = level_column
        self.level_column = level_column if consent is None else None
        """The table's own, which nothing can be asked about."""
        self.description: Description | None = None
        """What is declared about it where it is described once."""
        self._has_looked = False
        self._opened_with: Opened | None = None
        self._token = uuid4().hex
        source = None if consent is None else consent.source
        self._read_by(TableReader(engine, levels, user, roster, within, source))

    def _read_by(self, reader: TableReader) -> None:
        self.reader = reader
        """What releases read the people by. What it gives is private."""
        self._identity = TableIdentity(reader)

    @property
    def identity(self) -> Identity:
        """Who is in the table, for ledgers; with private levels, how it is described."""
        if relation.named(self.neighbors).levels_are_public:
            return self._identity
        opened = self._opened_with
        place = None if opened is None or not has_place(opened.source) else without_password(opened.source)
        return DescribedIdentity(self.policy, tuple(map(level_text, self.spec().micro.tolist())), place)

    @property
    def columns(self) -> dict[str, Kind]:
        """The columns and what they hold."""
        return dict(self.reader.engine.columns)

    @property
    def known(self) -> bool:
        """Whether the levels have been read."""
        return self.reader.has_levels

    @property
    def as_of(self) -> datetime | None:
        """At which moment the entries of the consent register count; None: there are none with dates."""
        return None if self._consent is None else self._consent.as_of

    @property
    def policy(self) -> dict[str, Any]:
        """Where everyone's level comes from, as plain data: columns, tiers, the consent register.

        All of it is public, and nothing of it is an address with a password.
        """
        levels, consent = self.reader.levels, self._consent
        tiers = {} if levels.tiers is None else levels.tiers
        return {
            "user": self.user,
            "levels": self._levels_named,
            "tiers": {name: level_text(level) for name, level in tiers.items()},
            "default": None if levels.default is None else level_text(levels.default),
            "neighbors": self.neighbors,
            "register": None if consent is None else dict(consent.origin),
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
        }

    @property
    def origin(self) -> tuple[Any, ...]:
        """Which rows these are: the place of a file or of a table on a server, how it is read, and the group.

        What is in memory has no place, and is the same only as long as the table is open.
        """
        opened = self._opened_with
        group = () if self.reader.group is None else self.reader.group
        if opened is None or not has_place(opened.source):
            return (self._token, *group)
        options = {name: opened.options[name] for name in ("csv", "user", "epsilon", "neighbors")}
        return (without_password(opened.source), options, *group)

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level: not where another system reads them."""
        return self.reader.lends

    def spec(self) -> Spec:
        """The public levels, read once and kept; under add-remove the roster, and nothing is read.

        With private levels the Spec that is expected: the table's own is nobody's business.
        An AccordWarning is given once if they do not look like levels.
        """
        spec = self.reader.spec()
        if not (self._has_looked or self.reader.is_group):
            self._has_looked = True
            warn_of_mistaken_levels(spec, self._levels_named)
        return spec

    def plan(
        self,
        query: Query[A] | Workload[A],
        mechanism: str | Mechanism = "auto",
        share: float = 1.0,
        *,
        t: float | str | None = None,
        report_missing: float | None = None,
        remaining: Ledger | None = None,
    ) -> Plan[A]:
        """Compare every mechanism for a query or a workload; see `accord.plan`. Reads no value.

        With `remaining`, a ledger, it is a plan from what everyone has left there; `share` is a part of that.
        """
        query = self.described(query)
        if report_missing is not None:
            query = reporting_missing(query, report_missing)
        notes = self.check(query)
        if not isinstance(query, Query | Workload):
            return planning.plan(self.spec(), query)  # which refuses it
        known = self.knowing(query)
        planning.refuse_arguments(known, mechanism, share, t, self.neighbors)
        if isinstance(known, Grouped) and known.part.public and remaining is None:
            return self._plan_groups(known, mechanism, share, t).asked_as(query)
        spec = self.spec() if remaining is None else remaining.remaining(self)
        if remaining is not None and (renewal := remaining.renewal) is not None:
            notes = (*notes, f"what is left is until {renewal.next}: {renewal}")
        plan = planning.plan(spec, known, mechanism, share, t=t, neighbors=self.neighbors, notes=notes)
        plan = plan if known is query else plan.asked_as(query)
        return plan.noted(self.check) if isinstance(query, Workload) else plan

    def release(
        self,
        query: Query[A] | Workload[A] | Plan[A],
        mechanism: str | Mechanism = "auto",
        share: float | None = None,
        *,
        t: float | str | None = None,
        report_missing: float | None = None,
        ledger: Ledger | None = None,
        fresh: bool = False,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> Release[A]:
        """Answer a query or a workload, or carry out a plan.

        Args:
            query: a query or a workload, or a plan of `plan` (which has its mechanism and share already).
            mechanism: a name, or "auto" for the lowest predicted error; or one of your own
                (`accord.mechanism`).
            share: the fraction of everyone's level that may be spent; required with a ledger, all without.
            t: the level of `threshold`; the best one if left out.
            report_missing: the part of the charge that is spent on how many people have no readable value:
                0.05 is a twentieth. Then there are two answers, as of a workload, and a receipt for each.
            ledger: where everyone's budget is kept; the release is charged there before anything is read.
                Left out: the one of the table's description, if it has one. The same plan for the same people
                and levels is not drawn again: its booked answer is given out, free of charge.
            fresh: draw anew, and charge again, also if it was asked before: where values have changed since.
            actor: who asks. It is booked in the ledger.
            purpose: why. It is booked in the ledger.

        Raises:
            BudgetError: somebody has less left than it would cost them. Nothing is spent.
            LedgerError: the ledger cannot be used, or does not know this table as it is. Nothing is spent.
        """
        query = self.described(query)
        if report_missing is not None and isinstance(query, Plan):
            raise PlanError(
                "a plan has its questions already. Give report_missing= when planning, or the query instead."
            )
        if report_missing is not None:
            query = reporting_missing(query, report_missing)
        self.check(query.query if isinstance(query, Plan) else query)
        return release(
            self, query, mechanism, share, t=t, ledger=ledger, fresh=fresh, actor=actor, purpose=purpose
        )

    def select(
        self,
        text: str,
        bounds: Mapping[str, Any] | None = None,
        keys: Mapping[str, Any] | None = None,
        *,
        gap: Mapping[str, float] | None = None,
        max_rows: int | None = None,
        membership: str = "private",
        at_most: int | None = None,
        one_row_each: bool = False,
        suppress: bool | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Selected:
        """The questions of a SELECT; `people.plan(people.select(…).asked)` plans them. See `sql`."""
        from accord.statistics.select import read_select
        from accord.statistics.select_questions import Given

        said = (self.user, max_rows, membership, at_most, one_row_each, suppress, weights)
        declared = {} if self.description is None else self.description.columns
        given = Given(self.columns, bounds or {}, keys or {}, *said, declared, gap or {})
        return read_select(text, given)

    def sql(
        self,
        text: str,
        bounds: Mapping[str, Any] | None = None,
        keys: Mapping[str, Any] | None = None,
        *,
        gap: Mapping[str, float] | None = None,
        max_rows: int | None = None,
        membership: str = "private",
        at_most: int | None = None,
        one_row_each: bool = False,
        suppress: bool | None = None,
        weights: Mapping[str, float] | None = None,
        mechanism: str | Mechanism = "auto",
        share: float | None = None,
        ledger: Ledger | None = None,
        fresh: bool = False,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> Answers:
        """Answer a SELECT of aggregates, planned together and charged once. Needs accord[sql].

        It is read here, node by node; no SQL of a user reaches an engine.

        Args:
            text: SELECT ward, AVG(stay), COUNT(*) FROM people WHERE age >= 65 GROUP BY ward. What stands
                after FROM is what you call this table.
            bounds: of the columns that are aggregated: {"stay": (0, 60)}; as the table declares them.
            keys: the groups: {"ward": ["A", "B"]}; as the table declares them.
            gap: how far the means of any two levels may lie apart in a column of AVG: {"stay": 1.5}.
            max_rows: where people have several rows, the most that one counts for in COUNT(*).
            membership: whether everyone may know who is in which group of GROUP BY; then there are no
                conditions.
            at_most: where people have several rows, in how many groups one may be.
            one_row_each: declares that everyone has one row, so that AVG and its like are about people.
            suppress: whether groups that may be empty are left out; without it, of more than 50.
            weights: how much the squared error of an aggregate counts, by its name: {"patients": 20}; 1, if
                it is left out. Errors are fractions of what they would be without any data, as of
                `accord.workload`.
            mechanism, share, ledger, fresh, actor, purpose: as of `release`.

        Raises:
            QueryError: a join, a subquery, a column by itself, and whatever else accord cannot answer.
        """
        from accord.release.selected import Answers

        selected = self.select(
            text,
            bounds,
            keys,
            gap=gap,
            max_rows=max_rows,
            membership=membership,
            at_most=at_most,
            one_row_each=one_row_each,
            suppress=suppress,
            weights=weights,
        )
        asked = selected.asked
        released = self.release(
            asked, mechanism, share, ledger=ledger, fresh=fresh, actor=actor, purpose=purpose
        )
        return Answers(text, selected, released)

    def public(
        self,
        column: str,
        bounds: tuple[Any, Any] | None = None,
        *,
        gap: float | None = None,
        share: float = 1.0,
        per_person: str | None = None,
        ledger: Ledger | None = None,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> PublicLook:
        """What people who are public everywhere tell about a column: bounds, step, std and keys to declare.

        It reads their values without noise, which costs them inf, and nobody else's (`people/public.py`).

        Args:
            column: of numbers, dates, timestamps or text.
            bounds: as declared, if they are; only narrower ones are then suggested, and with a `gap` alone.
            gap: how far the means of two levels may lie apart, from public knowledge, in the column's units.
                Left out, the suggestion is wide: levels may go with values.
            share: of everyone's level, which a mean of the column is to spend; with a `gap`, it decides.
            per_person: what a person's rows come to, where they have several; the mean, if left out.
            ledger, actor, purpose: as of `release`. Whoever is stricter in another table of the ledger is not
                read.

        Raises:
            PlanError: nobody is public. Nothing is spent.
            QueryError: the column, or what is declared, cannot be used. Nothing is spent.
        """
        from accord.release.looking import look

        return look(self, column, bounds, gap, share, per_person, ledger=ledger, actor=actor, purpose=purpose)

    def check_gap(
        self,
        column: str,
        bounds: tuple[float, float] | None = None,
        *,
        share: float = 0.05,
        missing: str | float = "exclude",
        per_person: str | None = None,
        confidence: float = 0.95,
        ledger: Ledger | None = None,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> GapLook:
        """A private look at how far the means of two levels lie apart, for `gap=`: docs/gap.md.

        It releases a mean for each level, for which each level pays with this share of itself.

        Args:
            column: of numbers.
            bounds: public; as the table declares them.
            share: the fraction of everyone's level that is spent on it.
            missing, per_person: as of `accord.mean`.
            confidence: with which the gap is not larger than `at_most`.
            ledger, actor, purpose: as of `release`.

        Raises:
            PlanError: there is one level, or more than a hundred. Nothing is spent.
        """
        from accord.release.gaps import check_gap

        signature = {"actor": actor, "purpose": purpose}
        return check_gap(self, column, bounds, share, missing, per_person, confidence, ledger, signature)

    def expect(
        self,
        query: Query[Any] | None = None,
        share: float = 0.05,
        *,
        sizes: Sequence[float] | None = None,
        ledger: Ledger | None = None,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> SizeChoice:
        """Choose privately for how many people to plan, where levels are private and that is not known.

        Go on with `.people` of what comes back: these people, opened with what was chosen in `expected=`.

        Args:
            query: a mean, for which the size is to be good; of the largest standard deviation if left out.
            share: the part of everyone's level that the choice may cost. It is gone for what follows.
            sizes: multiples of how many are expected; by factors of 1.8, from a thousandth to a thousand
                times. They are public.
            ledger, actor, purpose: as of `release`.

        Raises:
            PlanError: no size would change what anybody is charged. Nothing is spent.
            BudgetError: a level has too little left in the ledger. Nothing is spent.
        """
        from accord.release.release import expect

        return expect(self, query, share, sizes, ledger, actor, purpose)

    def expecting(self, expected: Spec) -> Table:
        """These people, with private levels, planned for other numbers of the same levels."""
        other = copy(self)
        roster = expected.as_expected(self.spec().tiers)
        reader = TableReader(self.reader.engine, self.reader.levels, self.user, roster)
        reader.spending = self.reader.spending
        other._read_by(reader)
        opened = self._opened_with
        if opened is not None:
            other._opened_with = Opened(opened.source, {**opened.options, "expected": roster})
        return other

    def own_ledger(self) -> Ledger | None:
        """The ledger of its description; None: it has none."""
        if self.description is None or self.description.ledger is None:
            return None
        from accord.ledger import Ledger

        return Ledger(self.description.ledger, create=False)

    def described(self, asked: Any) -> Any:
        """A question with what is declared here of its columns (`accord.catalog`); anything else as it is.

        Raises:
            QueryError: it leaves out what is not declared here.
        """
        columns = {} if self.description is None else self.description.columns
        self.refuse_own_keys(own_files.key_files_of(asked))
        if isinstance(asked, Undescribed):
            self.reader.refuse_unknown(asked.columns_named)
        return described(asked, columns, several_rows=self.user is not None)

    def refuse_own_keys(self, paths: Iterable[str | PathLike[str]]) -> None:
        """Refuse files of keys that are the table's own, or its register's.

        Raises:
            QueryError: one of them is.
        """
        if self._opened_with is not None:
            sources = self._opened_with.source, self._opened_with.options.get("consent")
            for path in paths:
                if own_files.is_own(path, sources):
                    raise QueryError(own_files.OWN.format(str(path)))

    def check(self, query: Any) -> tuple[str, ...]:
        """Refuse what this table cannot answer, by names and kinds of columns.

        Returns:
            What else must be taken for granted here.
        """
        return checked(self, self.described(query))

    def knowing(self, query: Any) -> Any:
        """A question with what the table itself declares: that no value of a column is missing."""
        if isinstance(query, Workload):
            queries = tuple(self.knowing(part) for part in query.queries)
            return query if queries == query.queries else replace(query, queries=queries)
        return query.with_all_values(self.complete) or query

    @property
    def complete(self) -> frozenset[str]:
        """The columns in which no value is missing, as the table or its description declares."""
        described = frozenset() if self.description is None else self.description.complete
        return self.reader.engine.complete | described

    @property
    def about_levels(self) -> tuple[str, ...]:
        """Where levels come from that are not the table's own, in a sentence."""
        return () if self._consent is None else (self._consent.note,)

    def groups(self, part: Part) -> dict[Any, Table]:
        """Each public group as a table of its own. The levels of all are read at once."""
        if self.reader.roster is not None:
            raise QueryError(planning.PRIVATE_PEOPLE.format(self.neighbors))
        tables = {}
        for key, reader in PublicGroups(self.reader, part).readers().items():
            tables[key] = copy(self)
            tables[key]._read_by(reader)
        return tables

    def _plan_groups(
        self, query: Grouped, mechanism: str | Mechanism, share: float, t: float | str | None
    ) -> Plan:
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

    def can_be_opened_again_with(self, opened: Opened) -> None:
        """Keep what it was opened with. A consent register counts as of the same moment."""
        options = dict(opened.options)
        if options["tiers"] is not None:
            options["tiers"] = dict(options["tiers"])
        if self._consent is not None:
            options |= {"consent": absolute(options["consent"]), "as_of": self._consent.as_of}
        self._opened_with = Opened(opened.source, options)

    def __copy__(self) -> Table:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it was opened with. What has been read, or charged in this process, is left out."""
        opened = self._opened_with
        if self.reader.is_group or opened is None:
            raise SourceError(
                "this table is one public group of another, and has no source of its own. "
                "Pickle the whole table, and ask it for its groups()."
            )
        for source in (opened.source, opened.options["consent"]):
            if not can_be_opened_again(source):
                raise SourceError(
                    f"a table of a {type(source).__qualname__} cannot be pickled: it belongs to this "
                    "process. Write it to a Parquet file, and open that."
                )
        from accord.people.opening import open_again

        return open_again, (*opened, self.description)

    def _repr_html_(self) -> str:
        from accord.report.html import table_html

        return table_html(self)

    def __repr__(self) -> str:
        levels = ""
        if self._consent is not None:
            levels = f"; levels of a consent register{self._consent.levels.moment}"
        columns = len(self.reader.engine.columns)
        return f"<Table of {columns} columns; neighbors: {self.neighbors}{levels}>"
