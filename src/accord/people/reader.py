"""Reader: the exact integers, or the rows, that a plan needs from the people of a table.

What it gives is private: it is for releases alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from accord.budget import IntArray
from accord.engines import Engine, conditions, gathering, keeping, keys, shapes
from accord.engines.names import (
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
from accord.errors import TABLE_CHANGED, LedgerError, QueryError, SourceError, did_you_mean
from accord.people import arranging, entries
from accord.people.entries import Entries, of_each, parts_of
from accord.people.levels import LevelReader, Levels, RemainingLevels, Strictest
from accord.people.summary import Summary
from accord.spec import Spec
from accord.statistics import Algorithm, Codes, Encoding, Grouped, Part, Query

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.identity import Remaining

FEW_LEVELS = 64
_MANY_CELLS = 1_000


class Reader(Protocol):
    """Reads what a plan needs."""

    @property
    def known(self) -> bool:
        """Whether the levels have been read."""
        ...

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level."""
        ...

    def spec(self) -> Spec:
        """The public levels."""
        ...

    def summary(
        self,
        query: Query,
        remaining: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> Summary:
        """Of a query that is about everyone: the first of its `summaries`."""
        ...

    def summaries(
        self,
        query: Query,
        remaining: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> list[Summary]:
        """The exact integers behind a query by level, for each of its groups.

        Args:
            remaining: by what people have remaining, instead of by level.
            by_cell: how many people have each integer, where otherwise their sum is enough.
            thinning: of the rows that are kept, by chances for each level of the plan.
        """
        ...

    def summaries_of_groups(
        self, part: Part, query: Query, by_cell: bool, specs: Mapping[int, Spec]
    ) -> dict[int, list[Summary]]:
        """What `summaries` gives for some public groups, by their places among the keys; from one scan."""
        ...

    def rows(self, query: Algorithm, remaining: Remaining | None, chances: Any, noise: Noise) -> Any:
        """The rows of people who are kept, for somebody's own algorithm."""
        ...


class People(NamedTuple):
    """Where people are, one row each, as SQL."""

    source: str
    levels: LevelReader
    spec: Spec | None
    """Which one they must have, if not the table's own."""


class TableReader:
    """The Reader of a table, or of a public group of one, over an engine."""

    def __init__(
        self,
        engine: Engine,
        levels: Levels,
        user: str | None,
        roster: Spec | None = None,
        condition: str | None = None,
        source: str | None = None,
    ) -> None:
        """`condition`: of a public group, which rows of the `source` are its own, as SQL.

        Levels of people are those of all their rows.
        """
        self.engine, self.levels, self.user, self.roster = engine, levels, user, roster
        self.level_reader: LevelReader = levels if user is None else Strictest(levels)
        self._condition = condition
        self._source = engine.source if source is None else source
        self._spec: Spec | None = None
        # Levels as they stand in the table (the first of them), and in millionths.
        self._raw_levels: tuple[list[Any], IntArray] = ([], np.zeros(0, dtype=np.int64))

    @property
    def known(self) -> bool:
        """Whether the levels have been read."""
        return self._spec is not None or self.roster is not None

    @property
    def lends(self) -> bool:
        """Whether people can be told apart by more than their level: not where another system reads them."""
        return self.engine.lends

    def spec(self) -> Spec:
        """The public levels, read once and kept; under add-remove the roster, and nothing is read."""
        if self.roster is not None:
            return self.roster
        if self._spec is None:
            columns = self.engine.fetch(shapes.levels(self.people(), self.level_reader.expression))
            micro = self.level_reader.decode(columns["level"], columns["people"])
            self._refuse_rows_of_nobody()
            self._keep(columns["level"], micro, columns["people"])
        assert self._spec is not None
        return self._spec

    def check(self, query: Query) -> None:
        """Refuse what the columns cannot answer, by their names and kinds. No value is read."""
        columns = self.engine.columns
        for column in query.columns:
            if column not in columns:
                raise QueryError(f"there is no column {column!r}: {did_you_mean(column, columns)}")
        inner = query
        parts: list[Part] = []
        while isinstance(inner, Grouped):
            parts.insert(0, inner.part)
            inner = inner.query
        conditions.check(self.engine.dialect, columns, inner.encoding, parts, inner.statistic)

    # ---- summaries -----------------------------------------------------------------------------------------

    def summary(
        self,
        query: Query,
        remaining: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> Summary:
        """See `Reader`."""
        return self.summaries(query, remaining, by_cell, thinning)[0]

    def summaries(
        self,
        query: Query,
        remaining: Remaining | None = None,
        by_cell: bool = False,
        thinning: tuple[Any, Noise] | None = None,
    ) -> list[Summary]:
        """See `Reader`."""
        with self.one_row_each(query, remaining) as people:
            if thinning is None:
                made = self.aggregate(query, people, by_cell)
            else:
                with self._kept(people, remaining, *thinning) as rows:
                    made = self.aggregate(query, people._replace(source=rows), by_cell, are_thinned=True)
        if remaining is None or remaining.by_level is None:
            return made
        return [summary.regrouped(remaining.by_level, remaining.spec) for summary in made]

    def aggregate(
        self, query: Query, people: People, by_cell: bool, are_thinned: bool = False
    ) -> list[Summary]:
        part, parts = ALL, 1
        if isinstance(query, Grouped):
            part, parts = self._placed(query)[1] if self.user is None else PART, query.groups
            query = query.query
        read = self._entries(query, people.source, people.levels, by_cell, part)
        if people.spec is None and not self.known and read.raw is not None:
            self._refuse_rows_of_nobody()
            self._keep(read.raw, read.micro, read.people)
        spec = self.spec() if people.spec is None else people.spec
        assert query.encoding is not None
        others_are_dropped = self.roster is not None or are_thinned
        return arranging.arranged(query.encoding, read, spec, by_cell, parts, others_are_dropped)

    def _entries(self, query: Query, source: str, levels: LevelReader, by_cell: bool, part: str) -> Entries:
        """People and their integers by level and part, and by cell where that is needed."""
        encoding = query.encoding
        assert encoding is not None
        read = entries.EntryReader(self.engine, encoding, self.user is not None, source, levels, part)
        if isinstance(encoding, Codes):
            return read.products(encoding)
        if not arranging.is_counted(encoding, by_cell):
            return read.sums()
        cells = arranging.cells_of(encoding)
        # few levels and many cells: both are one small integer, and that takes the levels beforehand
        if cells >= _MANY_CELLS and part == ALL and not isinstance(levels, RemainingLevels):
            self.spec()
            raw, micro = self._raw_levels
            if 0 < micro.size <= FEW_LEVELS:
                return read.by_code(cells, raw, micro)
        return read.by_cell(cells)

    # ---- rows ----------------------------------------------------------------------------------------------

    def rows(self, query: Algorithm, remaining: Remaining | None, chances: Any, noise: Noise) -> Any:
        """See `Reader`."""
        with (
            self.one_row_each(query, remaining) as people,
            self._kept(people, remaining, chances, noise, some_are_missing=self.user is not None) as rows,
        ):
            return self.engine.rows(rows, query.columns, query.rows)

    @contextmanager
    def one_row_each(self, query: Query, remaining: Remaining | None = None) -> Iterator[People]:
        """Where people are, one row each, and how their level is read.

        Somebody's own algorithm gets rows as they are, of people who have one.
        """
        dialect, user = self.engine.dialect, str(self.user)
        as_they_are = isinstance(query, Algorithm) and self.user is not None
        source = (
            keeping.single_row_people(dialect, self.engine.source, user, self.engine.columns[user])
            if as_they_are
            else self.people(query)
        )
        if remaining is None or remaining.by_person is None:
            yield People(source, self.levels if as_they_are else self.level_reader, None)
            return
        secret, hashes, amounts = remaining.by_person
        identity = dialect.identity(user, self.engine.columns[user]) if as_they_are else USER
        with self.engine.lend({LENT_PERSON: hashes, LENT_REMAINING: amounts}) as lent:
            matched = keeping.with_remaining(source, self.person(secret, identity), lent)
            yield People(matched, RemainingLevels(REMAINING), remaining.spec)

    @contextmanager
    def _kept(
        self,
        people: People,
        remaining: Remaining | None,
        chances: Any,
        noise: Noise,
        some_are_missing: bool = False,
    ) -> Iterator[str]:
        """The rows that are kept: each has a random word of its own, and it does not matter which."""
        source, levels, expected = people
        spec = expected or self.spec()
        if remaining is not None and remaining.by_level is not None:  # a chance for each level of the table
            place = np.searchsorted(remaining.spec.micro, remaining.by_level)
            chances = np.where(remaining.by_level > 0, chances[place], 0)
        columns = self.engine.fetch(shapes.levels(source, levels.expression))
        micro = levels.decode(columns["level"], columns["people"])
        if self.roster is None and not some_are_missing and Spec(micro, columns["people"]) != spec:
            raise SourceError(TABLE_CHANGED)
        has_chance = np.isin(micro, spec.micro)
        chance = np.zeros(micro.size, dtype=np.uint64)
        chance[has_chance] = chances[np.searchsorted(spec.micro, micro[has_chance])]
        words = noise.words(int(columns["people"].sum()))
        with self.engine.lend({LENT_WORD: words}) as by_row:
            if micro.size <= FEW_LEVELS and not isinstance(levels, RemainingLevels):
                # only those who can be kept: of other levels, whatever is written there is not repeated
                each = zip(_plain(columns["level"]), chance.tolist(), strict=True)
                kept = [(level, c) for level, c in each if c]
                yield keeping.kept_by_case(self.engine.dialect, source, levels.expression, by_row, kept)
                return
            with self.engine.lend({LENT_LEVEL: columns["level"], LENT_CHANCE: chance}) as by_level:
                yield keeping.kept(source, levels.expression, by_row, by_level)

    # ---- people --------------------------------------------------------------------------------------------

    def people(self, query: Query | None = None) -> str:
        """The people, one row each, as SQL; with what a query reads of them.

        Refuses what a person's rows cannot come to.
        """
        source, part = self._placed(query)
        if self.user is None:
            return source if self._condition is None else shapes.meeting(source, self._condition)
        return gathering.gathered(
            self.engine.dialect,
            source,
            self.user,
            self.levels.strictness,
            None if query is None else query.encoding,
            self.engine.columns,
            part,
            self._condition,
        )

    def person(self, secret: str, identity: str) -> str:
        """Somebody's keyed hash, from what they are known by, as SQL.

        Raises:
            LedgerError: who is in the table is private, or it does not say.
        """
        if self.roster is not None:
            raise LedgerError(
                "a ledger must know who is in a table, and with neighbors='add-remove' that is private. "
                "Open it with neighbors='replace'."
            )
        if self.user is None:
            raise LedgerError(
                "the table has no column that says who a row is of, and without it the same people could be "
                "charged "
                "to two budgets. Open it with user='…' (on the command line --user)."
            )
        kind = self.engine.columns[self.user]
        if kind not in ("number", "text", "untyped"):
            raise LedgerError(
                f"column {self.user!r} cannot tell people apart. Use a column of text or whole numbers."
            )
        return self.engine.dialect.person(identity, self.user, kind, secret)

    def _placed(self, query: Query | None) -> tuple[str, str]:
        """The rows, and which part of a question each is of, as SQL."""
        if not isinstance(query, Grouped):
            return self._source, ALL
        return keys.placed(self.engine.dialect, self._source, query.part, self.engine.columns)

    def _refuse_rows_of_nobody(self) -> None:
        if self.user is None:
            return
        engine = self.engine
        counted = gathering.rows_of_nobody(engine.dialect, engine.source, self.user, engine.columns)
        extra = int(engine.fetch(counted)["extra"][0])
        if extra:
            raise SourceError(
                f"{extra} rows are of nobody ({self.user!r} is NULL). "
                "Say whose they are, or leave them out of the table."
            )

    def _keep(self, raw: Any, micro: IntArray, people: IntArray) -> None:
        """Keep levels as they were read."""
        self._raw_levels = (_plain(raw[: FEW_LEVELS + 1]), micro)
        self._spec = Spec(micro, people, self.levels.tiers)

    # ---- public groups -------------------------------------------------------------------------------------

    def groups(self, part: Part) -> dict[Any, TableReader]:
        """The reader of each public group. The levels of all are read at once."""
        engine = self.engine
        source, place = keys.placed(engine.dialect, engine.source, part, engine.columns)
        if self.user is not None:
            self._refuse_people_of_several_groups(source, place)
        groups = {
            key: TableReader(engine, self.levels, self.user, None, f"({place}) = {k}", source)
            for k, key in enumerate(part.keys or (None,))
        }
        people, group = self._people_of_groups(source, place)
        columns = engine.fetch(shapes.levels(people, self.level_reader.expression, group))
        self._refuse_rows_of_nobody()
        for reader, own in zip(groups.values(), of_each(parts_of(columns), len(groups)), strict=True):
            raw, counts = columns["level"][own], columns["people"][own]
            reader._keep(raw, self.level_reader.decode(raw, counts), counts)
        return groups

    def _refuse_people_of_several_groups(self, source: str, place: str) -> None:
        kind = self.engine.columns[str(self.user)]
        counted = gathering.people_in_several_parts(self.engine.dialect, source, str(self.user), kind, place)
        several = int(self.engine.fetch(counted)["people"][0])
        if several:
            raise QueryError(
                f"{several:,} people have rows in several of the groups, so that they would pay for each. "
                "Leave membership='public' out: everyone is then in the first of theirs."
            )

    def summaries_of_groups(
        self, part: Part, query: Query, by_cell: bool, specs: Mapping[int, Spec]
    ) -> dict[int, list[Summary]]:
        """See `Reader`.

        What is asked of a group may itself be about a part of it: then place and part are one number,
        place·(parts + 1) + part, and the last of these parts are those who are in none.
        """
        engine = self.engine
        source, place = keys.placed(engine.dialect, engine.source, part, engine.columns)
        asked, inner, parts = query, ALL, 0
        if isinstance(query, Grouped):
            asked, parts = query.query, query.groups
            source, inner = keys.placed(engine.dialect, source, query.part, engine.columns)
        people, code = self._people_of_groups(source, place, asked.encoding, inner)
        if parts:
            code = f"{code} * {parts + 1} + COALESCE({inner if self.user is None else PART}, {parts})"
        read = self._entries(asked, people, self.level_reader, by_cell, code)
        each = of_each(np.where(read.part < 0, -1, read.part // (parts + 1)), len(part.keys) or 1)
        made = {}
        for k, spec in specs.items():
            own = read.of(each[k])
            of_part = own.part % (parts + 1) if parts else np.zeros_like(own.part)
            own = own._replace(part=np.where(of_part == parts, -1, of_part) if parts else of_part)
            assert asked.encoding is not None
            made[k] = arranging.arranged(asked.encoding, own, spec, by_cell, parts or 1, False)
        return made

    def _people_of_groups(
        self, source: str, place: str, encoding: Encoding | None = None, part: str = ALL
    ) -> tuple[str, str]:
        """Who is in a public group, one row each, and in which; `part`: of a row, inside its group."""
        if self.user is None:
            return shapes.meeting(source, f"({place}) IS NOT NULL"), place
        dialect, columns = self.engine.dialect, self.engine.columns
        strictness = self.levels.strictness
        people = gathering.gathered(
            dialect, source, self.user, strictness, encoding, columns, part, group=place
        )
        return people, GROUP


def _plain(raw: Any) -> list[Any]:
    """Levels as they stand in the table; None for NULL."""
    values, is_null = np.ma.getdata(raw).tolist(), np.ma.getmaskarray(raw).tolist()
    return [None if null else x for x, null in zip(values, is_null, strict=True)]
