"""Entries: what an engine gives, before it is arranged into a Summary for each part of a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from accord.budget import IntArray
from accord.engines import Engine, gathering, shapes
from accord.errors import TABLE_CHANGED, SourceError
from accord.people.levels import LevelReader
from accord.statistics.encoding import Codes, Encoding, Grid


class Entries(NamedTuple):
    """People who are alike in everything that is told here, one entry for each kind of them."""

    micro: IntArray
    people: IntArray
    cells: IntArray
    """−1: none."""
    part: IntArray
    """−1: none."""
    amounts: Any
    """Sums of integers, or people; where there are several sums, a row of them for each entry."""
    raw: Any
    """Levels as they stand in the table, where everyone is here."""

    def of(self, kept: IntArray) -> Entries:
        """Some of them."""
        micro, people, cells, part, amounts, _ = self
        return Entries(micro[kept], people[kept], cells[kept], part[kept], amounts[kept], None)


def parts_of(columns: Mapping[str, Any]) -> IntArray:
    """Which part each row of an engine's result is of; −1: of none."""
    if "part" not in columns:
        return np.zeros(columns["people"].size, dtype=np.int64)
    return np.ma.filled(columns["part"], -1).astype(np.int64)


def of_each(part: IntArray, parts: int) -> list[IntArray]:
    """The entries that belong to each part, in their order."""
    order = np.argsort(part, kind="stable")
    return np.split(order, np.searchsorted(part[order], np.arange(parts + 1)))[1:-1]


@dataclass(frozen=True)
class EntryReader:
    """Fetches entries: one aggregation over people of whom each has a row."""

    engine: Engine
    encoding: Encoding
    is_gathered: bool
    """Whether these rows were gathered from several of each person."""
    source: str
    levels: LevelReader
    part: str
    """Of a row, as SQL."""

    def sums(self) -> Entries:
        """The sum of everyone's integers, and of their squares where these are asked for."""
        grid = self.encoding if isinstance(self.encoding, Grid) else None
        missing = grid.missing_cell if grid else 0
        asked = self.engine.dialect, self.source, self.levels.expression, self._cell, missing
        if grid and grid.powers == 2:
            sql = shapes.by_level_with_squares(*asked, grid.cells, self.part)
            columns = self.engine.fetch(sql, wide=("total", "squares"))
            both = list(zip(columns["total"], columns["squares"], strict=True))
            return self._everyone(columns, np.array(both, dtype=object).reshape(-1, 2), raw=columns["level"])
        columns = self.engine.fetch(shapes.by_level(*asked, self.part), wide=("total",))
        return self._everyone(columns, np.array(columns["total"], dtype=object), raw=columns["level"])

    def products(self, encoding: Codes) -> Entries:
        """The sums of a regression, and the number of people last."""
        dialect, level = self.engine.dialect, self.levels.expression
        if self.is_gathered:
            codes = gathering.codes(dialect, encoding)
        else:
            codes = shapes.codes(dialect, encoding, self.engine.columns)
        columns = self.engine.fetch(shapes.products(dialect, self.source, level, encoding, codes, self.part))
        sums = [columns[f"m{k}"] for k in range(len(encoding.products))]
        return self._everyone(columns, np.column_stack([*sums, columns["people"]]).astype(np.int64))

    def _everyone(self, columns: Mapping[str, Any], amounts: Any, raw: Any = None) -> Entries:
        """Where nobody is told apart by a cell."""
        people = columns["people"]
        micro, cells = self.levels.decode(columns["level"], people), np.zeros(people.size, dtype=np.int64)
        return Entries(micro, people, cells, parts_of(columns), amounts, raw)

    def by_cell(self, cells: int) -> Entries:
        """How many people there are of each level, cell and part; −1: in no cell, in no part."""
        sql = shapes.by_level_and_cell(self.source, self.levels.expression, self._cell, self.part)
        columns = self.engine.fetch(sql)
        cell = np.ma.filled(columns["cell"], self._null_cell(cells)).astype(np.int64)
        people = columns["people"]
        micro = self.levels.decode(columns["level"], people)
        return Entries(micro, people, np.where(cell == cells, -1, cell), parts_of(columns), people, None)

    def by_code(self, cells: int, raw: Sequence[Any], micro: IntArray) -> Entries:
        """`by_cell` where there is one part and the levels are few: small integers are grouped twice as fast.

        `raw`, `micro`: the levels as they stand in the table, and in millionths.
        """
        dialect, level = self.engine.dialect, self.levels.expression
        null_cell = self._null_cell(cells)
        columns = self.engine.fetch(
            shapes.by_code(dialect, self.source, level, raw, self._cell, null_cell, cells)
        )
        cell, code = np.divmod(columns["code"].astype(np.int64), micro.size + 1)
        if (code == micro.size).any():  # a level that was not there before
            raise SourceError(TABLE_CHANGED)
        people = columns["people"]
        return Entries(
            micro[code], people, np.where(cell == cells, -1, cell), parts_of(columns), people, None
        )

    def _null_cell(self, cells: int) -> int:
        """What a NULL cell counts as; `cells`: in none."""
        return self.encoding.missing_cell if isinstance(self.encoding, Grid) else cells

    @property
    def _cell(self) -> str:
        """The integer of a person, as SQL."""
        dialect, is_read = self.engine.dialect, self.levels.is_read
        if self.is_gathered:
            return gathering.cell(dialect, self.encoding, is_read)
        return shapes.cell(dialect, self.encoding, self.engine.columns, is_read)
