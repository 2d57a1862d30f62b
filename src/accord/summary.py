"""Summary: the exact integers that a plan needs from the data, and nothing else of it.

One shape so far: for each level of the Spec, how many people, and the sum of their integers for each output of the query. One
Summary serves every additive mechanism. It is private: it never leaves a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from accord.spec import IntArray


@dataclass(frozen=True)
class Summary:
    people: IntArray
    """Of each level, ascending, without the opted-out."""
    outputs: int
    level: IntArray
    """Of each entry: which level,"""
    output: IntArray
    """which output,"""
    amount: list[int]
    """and the sum there. Python integers: they can be of any size. Entries that are not there are 0."""

    def __repr__(self) -> str:
        return f"<Summary of {self.outputs} outputs by {self.people.size} levels>"

    def weighted(self, weights: IntArray) -> list[int]:
        """Σ weight·amount for each output, exactly."""
        sums = [0] * self.outputs
        per_entry = weights[self.level].tolist()
        if self.outputs == 1:
            return [sum(w * a for w, a in zip(per_entry, self.amount, strict=True))]
        for k, w, a in zip(self.output.tolist(), per_entry, self.amount, strict=True):
            sums[k] += w * a
        return sums

    def rows(self) -> Iterator[list[int]]:
        """The sums of each level, one after the other."""
        order = np.argsort(self.level, kind="stable")
        outputs = self.output[order].tolist()
        starts = np.searchsorted(self.level[order], np.arange(self.people.size + 1)).tolist()
        for first, last in pairwise(starts):
            row = [0] * self.outputs
            for i in range(first, last):
                row[outputs[i]] += self.amount[order[i]]
            yield row
