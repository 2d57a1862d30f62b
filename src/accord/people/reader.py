"""Reader: the exact integers, or the rows, that a plan needs from the people of a table.

What it gives is private: it is for releases alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from accord.budget import IntArray
from accord.engines import Engine, column_kinds, keys, per_person, row_sampling, shapes
from accord.engines.shapes import ShortPart
from accord.engines.sql_names import (
    LENT_PERSON,
    LENT_REMAINING,
    ONLY_PART,
    PART,
    REMAINING,
    USER,
)
from accord.errors import LedgerError, QueryError, SourceError, did_you_mean
from accord.people import aggregation, keeping
from accord.people.aggregation import Aggregates, Aggregation
from accord.people.identity import PRIVATE_LEVELS_BY_PERSON, refuse_inexact_ids
from accord.people.keeping import FEW_LEVELS, People, plain
from accord.people.levels import (
    LevelReader,
    RegisteredLevels,
    RemainingLevels,
    RowLevels,
    Strictest,
    known_levels,
)
from accord.people.spending import Group, Spending
from accord.people.summary import Summary
from accord.relation import private_names
from accord.spec import Spec
from accord.statistics import Algorithm, Codes, Encoding, Grouped, Query
from accord.statistics.groups import most_parts

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.identity import Remaining

_VERY_FEW_LEVELS = 8
"""So many are found faster by their place than they are hashed."""
_MANY_CELLS = 1_000
_EVERYONE: Group = None
_LOG = logging.getLogger("accord")


class Reader(Protocol):
    """What a release needs of the people whom a plan is about: exact integers, or rows."""

    @property
    def lends(self) -> bool:
        """Whether people can be kept or left out one by one."""
        ...

    def summaries(
        self,
        query: Query,
        remaining: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> Sequence[Summary]:
        """The exact integers behind a query by level, for each of its private groups."""
        ...

    def rows(self, query: Algorithm, remaining: Remaining | None, chances: Any, noise: Noise) -> Any:
        """The rows of people who are kept, for somebody's own algorithm."""
        ...


class TableReader(Reader):
    """Reads the people of a table, or of a public group of one, by an engine."""

    def __init__(
        self,
        engine: Engine,
        levels: RowLevels,
        user: str | None,
        roster: Spec | None = None,
        condition: str | None = None,
        source: str | None = None,
    ) -> None:
        """`condition`: of a public group, which rows of the `source` are its own, as SQL.

        Levels of people are those of all their rows. `source`: if it is not the engine's, as SQL.
        """
        self.engine, self.levels, self.user, self.roster = engine, levels, user, roster
        self.level_reader: LevelReader = levels if user is None else Strictest(levels, self._undeclared_tiers)
        self._condition = condition
        if source is None:
            computed = None if isinstance(levels, RegisteredLevels) else levels.computed
            source = engine.source if computed is None else shapes.with_level(engine.source, computed)
        self.source = source
        """The rows, as SQL: with levels of a consent register, if there is one."""
        self._spec: Spec | None = None
        # Levels as they stand in the table (the first of them), and in millionths.
        self._raw_levels: tuple[list[Any], IntArray] = ([], np.zeros(0, dtype=np.int64))
        self.spending, self.group = Spending(), _EVERYONE
        """What its people have been charged without a ledger; of a public group, together with its table."""

    @property
    def has_levels(self) -> bool:
        """Whether the levels have been read."""
        return self._spec is not None or self.roster is not None

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level: not where another system reads them."""
        return self.engine.lends

    @property
    def is_group(self) -> bool:
        """Whether it reads one public group of a table."""
        return self._condition is not None

    def spec(self) -> Spec:
        """The public levels, read once and kept; under add-remove the roster, and nothing is read."""
        if self.roster is not None:
            return self.roster
        if self._spec is None:
            columns = self.engine.fetch(shapes.levels(self.people(), self.level_reader.expression))
            micro = self.level_reader.decode(columns["level"], columns["people"])
            self.refuse_rows_of_nobody()
            self.keep_levels(columns["level"], micro, columns["people"])
        assert self._spec is not None
        return self._spec

    def check(self, query: Query) -> None:
        """Refuse what the columns cannot answer, by their names and kinds. No value is read."""
        columns = self.engine.columns
        self.refuse_unknown(query.columns)
        parts = [query.part] if isinstance(query, Grouped) else []
        column_kinds.refuse_wrong_kinds(self.engine.dialect, columns, query.encoding, parts, query.statistic)

    def refuse_unknown(self, names: Iterable[str]) -> None:
        """Refuse names that no column has."""
        columns = self.engine.columns
        for column in names:
            if column not in columns:
                raise QueryError(f"there is no column {column!r}: {did_you_mean(column, columns)}")

    # ---- summaries -----------------------------------------------------------------------------------------

    def summary(self, query: Query) -> Summary:
        """Of a query that is about everyone: the first of its `summaries`."""
        return self.summaries(query)[0]

    def summaries(
        self,
        query: Query,
        remaining: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> Sequence[Summary]:
        """The exact integers behind a query by level, for each of its groups.

        Args:
            query: what is asked.
            remaining: by what people have remaining, instead of by level.
            by_cell: how many people have each integer, where otherwise their sum is enough.
            thinning: of the rows that are kept, by chances for each level of the plan.
        """
        with self.one_row_each(query, remaining) as people:
            if thinning is None:
                summaries = self.summarize(query, people, by_cell)
            else:
                with self._kept(people, remaining, *thinning, True, most_parts(query) > 1) as rows:
                    kept = people._replace(source=rows)
                    summaries = self.summarize(query, kept, by_cell, some_are_left_out=True)
        if remaining is None or remaining.by_level is None:
            return summaries
        return [summary.regrouped(remaining.by_level, remaining.spec) for summary in summaries]

    def summarize(
        self, query: Query, people: People, by_cell: bool, some_are_left_out: bool = False
    ) -> Sequence[Summary]:
        """The summaries of these people."""
        part: str | ShortPart = people.part
        levels, parts, is_several = people.levels, 1, most_parts(query) > 1
        if isinstance(query, Grouped):
            parts = query.groups
            if self.user is None and not isinstance(query.encoding, Codes):
                part = keys.short_part(self.engine.dialect, query.part, self.engine.columns) or part
            query = query.query
        assert query.encoding is not None
        if is_several:
            self.spec()  # which says of how many people a level cannot be read
            part = aggregation.part_and_first(people.part)
        if isinstance(part, ShortPart) and self._raw_levels[1].size <= _VERY_FEW_LEVELS:
            levels = known_levels(levels, *self._raw_levels)
        read = self.aggregates(query.encoding, people.source, levels, by_cell, part)
        if is_several:
            read = read.told_apart()
        if people.spec is None and not self.has_levels and read.raw_levels is not None:
            self.refuse_rows_of_nobody()
            self.keep_levels(read.raw_levels, read.micro, read.people)
        spec = self.spec() if people.spec is None else people.spec
        others_are_dropped = self.roster is not None or some_are_left_out
        return aggregation.summaries(query.encoding, read, spec, by_cell, parts, others_are_dropped)

    def aggregates(
        self, encoding: Encoding, source: str, levels: LevelReader, by_cell: bool, part: str | ShortPart
    ) -> Aggregates:
        """People and their integers by level and part, and by cell where that is needed."""
        ask = Aggregation(self.engine, encoding, self.user is not None, source, levels, part)
        if isinstance(encoding, Codes):
            return ask.products(encoding)
        if not aggregation.is_counted(encoding, by_cell):
            return ask.sums()
        cells = aggregation.cells_of(encoding)
        # few levels and many cells: both are one small integer, and that takes the levels beforehand
        if cells >= _MANY_CELLS and part == ONLY_PART and not isinstance(levels, RemainingLevels):
            self.spec()
            raw, micro = self._raw_levels
            if 0 < micro.size <= FEW_LEVELS:
                return ask.by_code(cells, raw, micro)
        return ask.by_cell(cells)

    # ---- rows ----------------------------------------------------------------------------------------------

    def rows(self, query: Algorithm, remaining: Remaining | None, chances: Any, noise: Noise) -> Any:
        """The rows of people who are kept, for somebody's own algorithm."""
        with (
            self.one_row_each(query, remaining) as people,
            self._kept(people, remaining, chances, noise, self.user is None) as rows,
        ):
            return self.engine.rows(rows, query.columns, query.row_format)

    @contextmanager
    def one_row_each(self, query: Query, remaining: Remaining | None = None) -> Iterator[People]:
        """Where people are, one row each, and how their level is read.

        Somebody's own algorithm gets rows as they are, of people who have one.
        """
        dialect, user = self.engine.dialect, str(self.user)
        as_they_are = isinstance(query, Algorithm) and self.user is not None
        with ExitStack() as lending:
            if as_they_are:
                source, part = (
                    row_sampling.single_row_people(dialect, self.source, user, self.engine.columns),
                    "",
                )
                if self._condition is not None:
                    source = shapes.meeting(source, self._condition)
            else:
                tables = self._keys_to_lend(query)
                lent = {by: lending.enter_context(self.engine.lend(table)) for by, table in tables.items()}
                source, part = self._people_and_part(query, lent)
            if remaining is None or remaining.by_person is None:
                yield People(source, self.levels if as_they_are else self.level_reader, None, part)
                return
            secret, hashes, amounts = remaining.by_person
            identity = dialect.identity(user, self.engine.columns[user]) if as_they_are else USER
            by_person = lending.enter_context(
                self.engine.lend({LENT_PERSON: hashes, LENT_REMAINING: amounts})
            )
            matched = row_sampling.with_remaining(source, self.person(secret, identity), by_person)
            yield People(matched, RemainingLevels(REMAINING), remaining.spec, part)

    def _kept(
        self,
        people: People,
        remaining: Remaining | None,
        chances: Any,
        noise: Noise,
        is_everyone: bool,
        is_several: bool = False,
    ) -> AbstractContextManager[str]:
        """Those of the rows that are kept."""
        spec, must_be_all = people.spec or self.spec(), is_everyone and self.roster is None
        return keeping.kept_rows(
            self.engine, people, spec, remaining, chances, noise, must_be_all, is_several
        )

    # ---- people --------------------------------------------------------------------------------------------

    def people(self, query: Query | None = None) -> str:
        """The people, one row each, as SQL; with what a query reads of them.

        Refuses what a person's rows cannot come to.
        """
        return self._people_and_part(query)[0]

    def _people_and_part(
        self, query: Query | None, lent: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[str, str]:
        """The people, and which part of a question each is of; `lent`: tables of keys, by column."""
        source, part = self.source, ONLY_PART
        if isinstance(query, Grouped):
            dialect, columns = self.engine.dialect, self.engine.columns
            source, part = keys.with_part(dialect, source, query.part, columns, lent)
        if self.user is None:
            return source if self._condition is None else shapes.meeting(source, self._condition), part
        people = self.aggregated_per_person(source, query, part, self._condition)
        return people, PART if isinstance(query, Grouped) else part

    def aggregated_per_person(
        self,
        source: str,
        query: Query | None,
        part: str,
        condition: str | None = None,
        group: str | None = None,
    ) -> str:
        """A source with one row a person, as SQL: see `accord.engines.per_person`."""
        return per_person.aggregated(
            self.engine.dialect,
            source,
            str(self.user),
            self.levels.strictness,
            None if query is None else query.encoding,
            self.engine.columns,
            part,
            condition,
            group,
            query.part.groups if isinstance(query, Grouped) else (),
            1 if query is None else most_parts(query),
        )

    def person(self, secret: tuple[str, ...], identity: str) -> str:
        """Somebody's keyed hash, from what they are known by, as SQL.

        Raises:
            LedgerError: who is in the table is private, or it does not say.
        """
        if self.roster is not None and self.roster.is_expected:
            raise LedgerError(PRIVATE_LEVELS_BY_PERSON)
        if self.roster is not None:
            raise LedgerError(
                f"a ledger must know who is in a table, and with neighbors={private_names()} "
                "that is private. Open it with neighbors='replace'."
            )
        if self.user is None:
            raise LedgerError(
                "the table has no column that says who a row is of, and without it the same people "
                "could be charged to two budgets. Open it with user='…' (on the command line --user)."
            )
        kind, dialect = self.engine.columns[self.user], self.engine.dialect
        if kind not in ("number", "text", "untyped") or not dialect.is_named_alike(self.user):
            raise LedgerError(
                f"column {self.user!r} cannot tell people apart. Use a column of text or whole numbers."
            )
        return dialect.person(identity, self.user, kind, secret)

    def _keys_to_lend(self, query: Query) -> dict[str, dict[str, Any]]:
        """Long lists of keys, by column, if the engine can be lent them."""
        if not (isinstance(query, Grouped) and self.lends):
            return {}
        return keys.arrays_to_lend(self.engine.dialect, query.part, self.engine.columns)

    def _undeclared_tiers(self) -> dict[Any, int]:
        """How many people have a row with which tier that is not declared."""
        engine, levels = self.engine, self.levels
        counted = per_person.undeclared_tiers(
            engine.dialect, self.source, str(self.user), engine.columns, levels.strictness, levels.tier
        )
        columns = engine.fetch(counted)
        return dict(zip(plain(columns["level"]), columns["people"].tolist(), strict=True))

    def refuse_rows_of_nobody(self) -> None:
        """Refuse a table that does not say of every row who it is of."""
        if self.user is None:
            return
        if isinstance(self.levels, RegisteredLevels):
            refuse_inexact_ids(self.engine, self.user, SourceError)
        engine = self.engine
        counted = per_person.rows_of_nobody(engine.dialect, engine.source, self.user, engine.columns)
        extra = int(engine.fetch(counted)["extra"][0])
        if extra:
            raise SourceError(
                f"{extra} rows are of nobody ({self.user!r} is NULL). "
                "Say whose they are, or leave them out of the table."
            )

    def keep_levels(self, raw: Any, micro: IntArray, people: IntArray) -> None:
        """Keep levels that were read: as they stand in the table, in millionths, and how many have each."""
        self._raw_levels = (plain(raw[: FEW_LEVELS + 1]), micro)
        self._spec = Spec(micro, people, self.levels.tiers)
        if not self.is_group:
            _LOG.debug("read %d levels", self._spec.micro.size)
