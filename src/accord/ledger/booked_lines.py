"""Booked lines: what an entry says, for reading, of who was charged what."""

from __future__ import annotations

from typing import Any

import numpy as np

from accord.budget import IntArray, level_text
from accord.ledger.accounts import CohortsOfTable
from accord.ledger.cohorts import NONE
from accord.release.receipt import MOST_LEVELS, folded
from accord.spec import Spec


def expected_document(spec: Spec) -> dict[str, Any]:
    """For how many people of each level it was planned, where levels are private."""
    few = zip(spec.micro.tolist(), spec.counts, strict=True) if spec.micro.size <= MOST_LEVELS else ()
    return {"fingerprint": spec.fingerprint, "people": {level_text(level): count for level, count in few}}


def booked_lines(cohorts: CohortsOfTable, charge: IntArray) -> list[dict[str, Any]]:
    """What was charged to whom, for reading.

    People of a level who had as much left are one line; many lines are folded, as in receipts. Where levels
    are private, there are no people, and levels are those of accounts.
    """
    if not charge.size:
        return []
    is_menu = cohorts.is_menu
    levels = cohorts.level if is_menu else cohorts.chosen
    remaining = cohorts.remaining
    order = np.lexsort((charge, remaining, levels))
    chosen, remaining, charge = levels[order], remaining[order], charge[order]
    is_new = np.any([np.diff(column, prepend=NONE) for column in (chosen, remaining, charge)], axis=0)
    first = np.flatnonzero(is_new)
    people = np.add.reduceat(cohorts.people[order], first)
    chosen, remaining, charge = chosen[first], remaining[first], charge[first]
    if first.size <= MOST_LEVELS:
        columns = (column.tolist() for column in (chosen, remaining, people, charge))
        return [
            {
                "level": level_text(level),
                "left_before": level_text(before),
                "people": None if is_menu else count,
                "charge": level_text(cost),
            }
            for level, before, count, cost in zip(*columns, strict=True)
        ]
    return [
        {
            "level": level_text(int(chosen[start])),
            "to": level_text(int(chosen[end - 1])),
            "left_before": level_text(int(remaining[start:end].min())),
            "people": None if is_menu else int(people[start:end].sum()),
            "charge": level_text(int(charge[start:end].max())),
        }
        for start, end in folded(first.size)
    ]
