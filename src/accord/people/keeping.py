"""Where people are, one row each; and which of these rows are kept at random."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accord.engines import Engine, row_sampling, shapes
from accord.engines.sql_names import FIRST, LENT_CHANCE, LENT_LEVEL, LENT_WORD
from accord.errors import TABLE_CHANGED, SourceError
from accord.people.levels import LevelReader, RemainingLevels
from accord.spec import Spec

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.identity import Remaining

FEW_LEVELS = 64


class People(NamedTuple):
    """Where people are, one row each, as SQL."""

    source: str
    levels: LevelReader
    spec: Spec | None
    """Which one they must have, if not the table's own."""
    part: str
    """Which part of the question each of them is of."""


@contextmanager
def kept_rows(
    engine: Engine,
    people: People,
    spec: Spec,
    remaining: Remaining | None,
    chances: Any,
    noise: Noise,
    is_everyone: bool,
    is_several: bool = False,
) -> Iterator[str]:
    """The rows that are kept: each has a random word of its own, and it does not matter which.

    Args:
        spec: which one they must have.
        chances: of each level of the plan.
        is_everyone: whether these must be all of them.
        is_several: people may have several rows, one for each of their groups, which are then asked apart.
    """
    source, levels = people.source, people.levels
    if remaining is not None and remaining.by_level is not None:  # a chance for each level of the table
        place = np.searchsorted(remaining.spec.micro, remaining.by_level)
        chances = np.where(remaining.by_level > 0, chances[place], 0)
    columns = engine.fetch(shapes.levels(source, levels.expression))
    micro = levels.decode(columns["level"], columns["people"])
    if is_everyone:
        once = columns
        if is_several:
            first = shapes.meeting(source, f"{FIRST} = 1")
            once = engine.fetch(shapes.levels(first, levels.expression))
        if Spec(levels.decode(once["level"], once["people"]), once["people"]) != spec:
            raise SourceError(TABLE_CHANGED)
    has_chance = np.isin(micro, spec.micro)
    chance = np.zeros(micro.size, dtype=np.uint64)
    chance[has_chance] = chances[np.searchsorted(spec.micro, micro[has_chance])]
    words = noise.words(int(columns["people"].sum()))
    with engine.lend({LENT_WORD: words}) as by_row:
        if micro.size <= FEW_LEVELS and not isinstance(levels, RemainingLevels):
            # only those who can be kept: of other levels, whatever is written there is not repeated
            kept = [(x, c) for x, c in zip(plain(columns["level"]), chance.tolist(), strict=True) if c]
            yield row_sampling.kept_by_case(engine.dialect, source, levels.expression, by_row, kept)
            return
        with engine.lend({LENT_LEVEL: columns["level"], LENT_CHANCE: chance}) as by_level:
            yield row_sampling.kept(source, levels.expression, by_row, by_level)


def plain(raw: Any) -> list[Any]:
    """Levels as they stand in the table; None for NULL."""
    values, is_null = np.ma.getdata(raw).tolist(), np.ma.getmaskarray(raw).tolist()
    return [None if null else x for x, null in zip(values, is_null, strict=True)]
