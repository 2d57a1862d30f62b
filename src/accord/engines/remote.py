"""What engines share whose rows stay where they are: of them only aggregates come here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from accord.errors import SourceError


class RemoteEngine:
    """The members of `Engine` that are the same in all of them: rows are neither given out nor told apart."""

    lends = False
    complete: frozenset[str] = frozenset()
    rows_stay: str
    """Why, and what to do instead."""

    def rows(self, source: str, columns: Sequence[str], form: str) -> Any:
        raise SourceError(self.rows_stay)

    def lend(self, columns: dict[str, Any]) -> AbstractContextManager[str]:
        raise SourceError(self.rows_stay)

    def state(self) -> object:
        return None


def fetched(
    types: dict[str, type[int | float | str]], rows: Sequence[Sequence[Any]], wide: Collection[str]
) -> dict[str, Any]:
    """The rows of a result as `Engine.fetch` gives them: columns, in which NULL is masked.

    `types`: of each column in its order, what it holds.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return {
        name: [int(x or 0) for x in values] if name in wide else _array(values, kind)
        for (name, kind), values in zip(types.items(), columns, strict=True)
    }


def _array(values: Sequence[Any], kind: type[int | float | str]) -> Any:
    is_null = [x is None for x in values]
    if kind is str:
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        dtype = np.int64 if kind is int else np.float64
        array = np.array([kind(0 if x is None else x) for x in values], dtype=dtype)
    return np.ma.masked_array(array, mask=is_null) if any(is_null) else array
