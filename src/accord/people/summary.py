"""Summary: the exact integers that a plan needs from the data, and nothing else of it.

One shape serves everything: for each level of the Spec, how many people, and a whole number for each of
several columns. What the columns are follows from the Encoding and from what a mechanism needs:

    sums       the number of people whom the question is about, the sum of their cells, of their squares, …
    cells      the number of people at each cell (of a histogram, or where a mechanism needs more than sums)
    products   the sums of products of coded columns, and the number of people last

It is private: it never leaves a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, overload

import numpy as np

from accord.budget import IntArray
from accord.spec import Spec


@dataclass(frozen=True)
class Summary:
    """Sums of integers, for each level and output."""

    people: IntArray
    """Of each level, ascending, without the opted-out."""
    outputs: int
    """How many outputs, or points."""
    level: IntArray
    """Of each entry: which level,"""
    output: IntArray
    """which output or point,"""
    amount: Any
    """and the sum there: an array of 64-bit or of Python's own integers. Entries that are not there are 0."""

    def __repr__(self) -> str:
        return f"<Summary of {self.outputs} outputs by {self.people.size} levels>"

    def weighted(self, weights: IntArray) -> list[int]:
        """Σ weight·amount for each output, exactly."""
        sums = [0] * self.outputs
        if not self.output.size:  # as most of very many groups are
            return sums
        entries = self.output.tolist(), weights[self.level].tolist(), self.amount.tolist()
        for output, weight, amount in zip(*entries, strict=True):
            sums[output] += weight * amount
        return sums

    def at_points(self, weights: IntArray) -> Any:
        """Σ weight·people at each point, exactly.

        An array of 64-bit integers, or of Python's own where those are too small.
        """
        largest = float(weights[self.level].astype(np.float64) @ self.amount.astype(np.float64))
        dtype = object if largest >= 2.0**62 else np.int64
        sums = np.zeros(self.outputs, dtype=dtype)
        np.add.at(sums, self.output, weights[self.level].astype(dtype) * self.amount)
        return sums

    def regrouped(self, groups: IntArray, spec: Spec) -> Summary:
        """By the levels of another Spec.

        Everyone of the k-th level here has the level groups[k] there; 0 for those who are not read.
        """
        index = np.where(groups > 0, np.searchsorted(spec.micro, groups), -1)
        people = np.zeros_like(spec.people)
        np.add.at(people, index[index >= 0], self.people[index >= 0])
        level = index[self.level]
        kept = np.flatnonzero(level >= 0)
        return Summary(people, self.outputs, level[kept], self.output[kept], self.amount[kept])

    def with_others(self, wanted: bool) -> Summary:
        """Of numbers at cells: with everyone who is at none of them, at one more cell.

        Itself if that is not wanted.
        """
        if not wanted:
            return self
        inside = np.zeros_like(self.people)
        np.add.at(inside, self.level, self.amount)
        levels = np.arange(self.people.size)
        level = np.concatenate((self.level, levels))
        cell = np.concatenate((self.output, 0 * levels + self.outputs))
        amount = np.concatenate((self.amount, self.people - inside))
        order = np.lexsort((cell, level))
        return Summary(self.people, self.outputs, level[order], cell[order], amount[order])

    def rows(self) -> Iterator[list[int]]:
        """The sums of each level, one after the other."""
        order = np.argsort(self.level, kind="stable")
        outputs, amounts = self.output[order].tolist(), self.amount[order].tolist()
        starts = np.searchsorted(self.level[order], np.arange(self.people.size + 1)).tolist()
        for first, last in pairwise(starts):
            row = [0] * self.outputs
            for i in range(first, last):
                row[outputs[i]] += amounts[i]
            yield row


class Summaries(Sequence[Summary]):
    """The Summary of each of several parts, made when it is asked for: most of very many groups are empty."""

    def __init__(self, entries: Summary, starts: list[int]) -> None:
        """`entries`: of all parts, one after the other.

        `starts`: where each begins, and where the last one ends.
        """
        self._entries, self._starts = entries, starts
        self._nobody = self._between(0, 0)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, part: int) -> Summary: ...

    @overload
    def __getitem__(self, part: slice) -> list[Summary]: ...

    def __getitem__(self, part: int | slice) -> Summary | list[Summary]:
        places = range(len(self))[part]
        if isinstance(places, range):
            return [self[place] for place in places]
        first, last = self._starts[places], self._starts[places + 1]
        return self._between(first, last) if first < last else self._nobody

    def _between(self, first: int, last: int) -> Summary:
        every, part = self._entries, slice(first, last)
        return Summary(every.people, every.outputs, every.level[part], every.output[part], every.amount[part])
