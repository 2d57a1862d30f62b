"""Public groups: everyone may know who is in which, so that each is a table of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accord.engines import keys, per_person, shapes
from accord.engines.sql_names import GROUP, ONLY_PART
from accord.errors import QueryError
from accord.people import aggregation
from accord.people.reader import TableReader
from accord.people.summary import Summary
from accord.spec import Spec
from accord.statistics import Part, Query
from accord.statistics.groups import most_parts


class PublicGroups:
    """The public groups of a table, read all at once."""

    def __init__(self, reader: TableReader, part: Part) -> None:
        if reader.is_group:
            raise QueryError(
                "this table is one public group of another, and has no public groups of its own. "
                "Ask the whole table, or leave membership='public' out."
            )
        self._reader, self._part = reader, part
        engine = reader.engine
        self._source, self._place = keys.with_part(engine.dialect, reader.source, part, engine.columns)
        """The rows of all groups, and which of the keys a row has."""

    def readers(self) -> dict[Any, TableReader]:
        """The reader of each group, which has read its levels.

        Raises:
            QueryError: somebody is in several groups.
        """
        whole = self._reader
        if whole.user is not None:
            self._refuse_people_of_several_groups()
        readers = {
            key: TableReader(
                whole.engine, whole.levels, whole.user, None, f"({self._place}) = {k}", self._source
            )
            for k, key in enumerate(self._part.groups or (None,))
        }
        for key, reader in readers.items():
            reader.spending, reader.group = whole.spending, (self._part, key)
        people, group = self._people()
        columns = whole.engine.fetch(shapes.levels(people, whole.level_reader.expression, group))
        whole.refuse_rows_of_nobody()
        by_group = aggregation.entries_of_parts(aggregation.parts_of(columns), len(readers))
        for reader, entries in zip(readers.values(), by_group, strict=True):
            raw, counts = columns["level"][entries], columns["people"][entries]
            reader.keep_levels(raw, whole.level_reader.decode(raw, counts), counts)
        return readers

    def _refuse_people_of_several_groups(self) -> None:
        engine, user = self._reader.engine, str(self._reader.user)
        counted = per_person.people_in_several_parts(
            engine.dialect, self._source, user, engine.columns[user], self._place
        )
        several = int(engine.fetch(counted)["people"][0])
        if several:
            raise QueryError(
                f"{several:,} people have rows in several of the groups, so that they would pay for each. "
                "Leave membership='public' out: everyone is then in the most frequent of theirs."
            )

    def summaries(
        self, query: Query, by_cell: bool, specs: Mapping[int, Spec]
    ) -> dict[int, Sequence[Summary]]:
        """The `TableReader.summaries` of some groups, by their places among the keys; from one scan."""
        reader, is_several = self._reader, most_parts(query) > 1
        assert query.encoding is not None
        people, place = self._people(query)
        if is_several:
            place = aggregation.part_and_first(place)
        read = reader.aggregates(query.encoding, people, reader.level_reader, by_cell, place)
        if is_several:
            read = read.told_apart()
        by_group = aggregation.entries_of_parts(read.part, len(self._part.groups) or 1)
        summaries: dict[int, Sequence[Summary]] = {}
        for k, spec in specs.items():
            group = read.of(by_group[k])
            group = group._replace(part=np.zeros_like(group.part))
            summaries[k] = aggregation.summaries(query.encoding, group, spec, by_cell, 1, False)
        return summaries

    def _people(self, query: Query | None = None) -> tuple[str, str]:
        """Who is in any group, one row each (or one for each of their cells), and in which, as SQL."""
        reader, place = self._reader, self._place
        if reader.user is None:
            return shapes.meeting(self._source, f"({place}) IS NOT NULL"), place
        return reader.aggregated_per_person(self._source, query, ONLY_PART, group=place), GROUP
