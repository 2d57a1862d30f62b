"""Aggregation: one SQL aggregation over people, and the Summaries that its result becomes.

Which one it is follows from the question's Encoding, and from whether a mechanism needs more than sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from accord.budget import IntArray
from accord.engines import Engine, per_person, shapes
from accord.engines.shapes import ShortPart
from accord.engines.sql_names import FIRST
from accord.errors import TABLE_CHANGED, SourceError
from accord.people.levels import LevelReader
from accord.people.summary import Summaries, Summary
from accord.spec import Spec
from accord.statistics.encoding import Codes, Encoding, Grid, Indicator, OneOf


class Aggregates(NamedTuple):
    """What an engine gives: an entry for all people who are alike in level, part and cell."""

    micro: IntArray
    people: IntArray
    cells: IntArray
    """−1: none."""
    part: IntArray
    """−1: none."""
    amounts: Any
    """People; or a row of sums for each entry, with the number of people who are in them."""
    raw_levels: Any
    """As they stand in the table, where everyone is here."""
    is_first: Any = None
    """Where people may be here several times: whether it is the first time of those of an entry."""

    @property
    def levels(self) -> Spec:
        """The levels of all these people, each counted once."""
        if self.is_first is None:
            return Spec(self.micro, self.people)
        return Spec(self.micro[self.is_first], self.people[self.is_first])

    def told_apart(self) -> Aggregates:
        """Of entries by `part_and_first`: parts, and whether people are there for the first time."""
        return self._replace(part=self.part // 2, is_first=self.part % 2 == 1)

    def merged(self) -> Aggregates:
        """One entry for all people who are alike, whether it is their first time or not."""
        if self.is_first is None:
            return self
        keys = np.column_stack((self.micro, self.cells, self.part))
        _, first, entry = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        people, amounts = (
            np.zeros((first.size, *column.shape[1:]), column.dtype) for column in (self.people, self.amounts)
        )
        np.add.at(people, entry.ravel(), self.people)
        np.add.at(amounts, entry.ravel(), self.amounts)
        return Aggregates(self.micro[first], people, self.cells[first], self.part[first], amounts, None)

    def of(self, entries: IntArray) -> Aggregates:
        """Some of the entries."""
        micro, people, cells, part, amounts = (column[entries] for column in self[:5])
        is_first = None if self.is_first is None else self.is_first[entries]
        return Aggregates(micro, people, cells, part, amounts, None, is_first)


def part_and_first(part: str) -> str:
    """A part, as SQL, and whether a row is the first of its person, as one number: 2·part + 0 or 1."""
    return f"2 * COALESCE({part}, -1) + {FIRST}"


def parts_of(columns: Mapping[str, Any]) -> IntArray:
    """Which part each row of an engine's result is of; −1: of none."""
    if "part" not in columns:
        return np.zeros(columns["people"].size, dtype=np.int64)
    return np.ma.filled(columns["part"], -1).astype(np.int64)


def entries_of_parts(part: IntArray, parts: int) -> list[IntArray]:
    """The entries that belong to each part, in their order."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.searchsorted(part[order], np.arange(parts + 1)))[1:-1]


def is_counted(encoding: Encoding, by_cell: bool) -> bool:
    """Whether it takes the number of people at each cell, and not sums."""
    if isinstance(encoding, Codes):
        return False
    return by_cell or isinstance(encoding, OneOf) or (isinstance(encoding, Grid) and encoding.is_counted)


def cells_of(encoding: Encoding) -> int:
    """At how many cells people can be."""
    if isinstance(encoding, OneOf):
        return encoding.cells
    return (encoding.cells if isinstance(encoding, Grid) else 1) + 1


@dataclass(frozen=True)
class Aggregation:
    """One aggregation over people of whom each has a row, or one for each of their parts."""

    engine: Engine
    encoding: Encoding
    is_per_person: bool
    """Whether these rows are aggregates themselves, of all rows of each person."""
    source: str
    levels: LevelReader
    part: str | ShortPart
    """Of a row, as SQL."""

    def sums(self) -> Aggregates:
        """The sum of everyone's integers, and of their squares where these are asked for."""
        grid = self.encoding if isinstance(self.encoding, Grid) else None
        missing = self._missing_cell
        asked = self.engine.dialect, self.source, self.levels.expression, self._cell, missing
        if self.encoding == Indicator(None):  # everyone adds 1: their number is all there is
            columns = self.engine.fetch(shapes.levels(self.source, self.levels.expression, self.part))
            people = columns["people"].astype(np.int64)
            return self._without_cells(columns, np.column_stack((people, people)), columns["level"])
        if grid and grid.powers == 2:
            sql = shapes.by_level_with_squares(*asked, grid.cells, self.part)
            columns = self.engine.fetch(sql, wide=("total", "squares"))
            sums = [columns["members"].tolist(), columns["total"], columns["squares"]]
        else:
            columns = self.engine.fetch(shapes.by_level(*asked, self.part), wide=("total",))
            sums = [columns["members"].tolist(), columns["total"]]
        amounts = np.array(list(zip(*sums, strict=True)), dtype=object).reshape(
            -1, len(sums)
        )  # also of nobody
        return self._without_cells(columns, amounts, columns["level"])

    def products(self, encoding: Codes) -> Aggregates:
        """The sums of a regression, and the number of people last."""
        dialect, level = self.engine.dialect, self.levels.expression
        if self.is_per_person:
            codes = per_person.codes(dialect, encoding)
        else:
            codes = shapes.codes(dialect, encoding, self.engine.columns)
        assert isinstance(self.part, str)
        columns = self.engine.fetch(shapes.products(dialect, self.source, level, encoding, codes, self.part))
        sums = [columns[f"m{k}"] for k in range(len(encoding.products))]
        return self._without_cells(columns, np.column_stack([*sums, columns["members"]]).astype(np.int64))

    def _without_cells(self, columns: Mapping[str, Any], amounts: Any, raw_levels: Any = None) -> Aggregates:
        people = columns["people"]
        micro, cells = self.levels.decode(columns["level"], people), np.zeros(people.size, dtype=np.int64)
        return Aggregates(micro, people, cells, parts_of(columns), amounts, raw_levels)

    def by_cell(self, cells: int) -> Aggregates:
        """How many people there are of each level, cell and part; −1: in no cell, in no part."""
        null_cell = self._null_cell(cells)
        expression = self._with_a_cell_for_all(null_cell)._cell
        sql = shapes.by_level_and_cell(self.source, self.levels.expression, expression, self.part)
        columns = self.engine.fetch(sql)
        cell = np.ma.filled(columns["cell"], null_cell).astype(np.int64)
        micro = self.levels.decode(columns["level"], columns["people"])
        return _with_cells(columns, micro, cell, cells)

    def by_code(self, cells: int, raw: Sequence[Any], micro: IntArray) -> Aggregates:
        """`by_cell` where there is one part and the levels are few: small integers are grouped twice as fast.

        `raw`, `micro`: the levels as they stand in the table, and in millionths.
        """
        dialect, level, null_cell = self.engine.dialect, self.levels.expression, self._null_cell(cells)
        expression = self._with_a_cell_for_all(null_cell)._cell
        sql = shapes.by_code(dialect, self.source, level, raw, expression, null_cell, cells)
        columns = self.engine.fetch(sql)
        cell, code = np.divmod(columns["code"].astype(np.int64), micro.size + 1)
        if (code == micro.size).any():  # a level that was not there before
            raise SourceError(TABLE_CHANGED)
        return _with_cells(columns, micro[code], cell, cells)

    def _null_cell(self, cells: int) -> int:
        """What a NULL cell counts as; `cells`: in none."""
        return cells if self._missing_cell is None else self._missing_cell

    @property
    def _missing_cell(self) -> int | None:
        """Where somebody is who has no cell; None: nowhere."""
        return self.encoding.missing_cell if isinstance(self.encoding, Grid | Indicator) else None

    def _with_a_cell_for_all(self, null_cell: int) -> Aggregation:
        """Whoever is left out is at this cell: DuckDB groups numbers more than twice as fast as NULL."""
        if not isinstance(self.encoding, Grid) or self.encoding.missing_cell is not None:
            return self
        return replace(self, encoding=replace(self.encoding, missing_cell=null_cell))

    @property
    def _cell(self) -> str:
        """The integer of a person, as SQL."""
        dialect, is_read = self.engine.dialect, self.levels.is_read
        if self.is_per_person:
            return per_person.cell(dialect, self.encoding, is_read)
        return shapes.cell(dialect, self.encoding, self.engine.columns, is_read)


def _with_cells(columns: Mapping[str, Any], micro: IntArray, cell: IntArray, cells: int) -> Aggregates:
    people = columns["people"]
    return Aggregates(micro, people, np.where(cell == cells, -1, cell), parts_of(columns), people, None)


def summaries(
    encoding: Encoding, read: Aggregates, spec: Spec, by_cell: bool, parts: int, others_are_dropped: bool
) -> Summaries:
    """The Summary of each part, from what was read of people of this Spec.

    `others_are_dropped`: how many are there is private; so is whether somebody is there who should not be.
    """
    if not others_are_dropped and read.levels != spec:
        raise SourceError(TABLE_CHANGED)
    micro, people, cells, part, amounts = read.merged()[:5]
    is_read = (cells >= 0) & (np.isin(micro, spec.micro) if others_are_dropped else micro > 0)
    kept = np.flatnonzero(is_read & (part >= 0))
    part, level = part[kept], np.searchsorted(spec.micro, micro[kept])
    if is_counted(encoding, by_cell):
        outputs, output, amount = cells_of(encoding), cells[kept], people[kept]
    else:  # a row of sums for each entry
        outputs = amounts.shape[1]
        output, amount = np.repeat(np.arange(outputs), kept.size), amounts[kept].T.reshape(-1)
        part, level = np.tile(part, outputs), np.tile(level, outputs)
    # an engine gives its groups in any order, and each may have its own noise
    order = np.lexsort((output, level, part))
    starts = np.searchsorted(part[order], np.arange(parts + 1)).tolist()
    return Summaries(Summary(spec.people, outputs, level[order], output[order], amount[order]), starts)
