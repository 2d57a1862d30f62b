"""What is said where somebody has less left than a release would charge them: by level.

Levels are public, or these are accounts of levels, whoever has them, or nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from accord.budget import MICRO, PUBLIC, IntArray, level_text
from accord.ledger.accounts import CohortsOfTable
from accord.ledger.cohorts import NONE

_LEVELS_IN_ERRORS = 3


def too_little_text(cohorts: CohortsOfTable, charge: IntArray, short: Any) -> str:
    """Who has too little, and what would fit; by level, which is public."""
    named = cohorts.level if cohorts.is_menu else cohorts.chosen
    order = np.argsort(named[short], kind="stable")
    chosen, remaining, charges, people = (
        column[short][order] for column in (named, cohorts.remaining, charge, cohorts.people)
    )
    first = np.flatnonzero(np.diff(chosen, prepend=NONE))
    last = np.append(first[1:], chosen.size) - 1
    least, count = np.minimum.reduceat(remaining, first), np.add.reduceat(people, first)
    columns = (column[:_LEVELS_IN_ERRORS].tolist() for column in (chosen[first], charges[last], least, count))
    lines = [
        f"level {level_text(level)} with {level_text(cost)}; {level_text(left)} is left to "
        + ("it" if cohorts.is_menu else ("one person" if n == 1 else f"{n:,} people"))
        for level, cost, left, n in zip(*columns, strict=True)
    ]
    others = first.size - _LEVELS_IN_ERRORS
    more = f", and {others} more levels" if others > 0 else ""
    share = _fitting_share(cohorts)
    ask = "No share is sure to fit everyone:"
    if share is not None:
        ask = f"Ask for share={level_text(share)} or less, or"
    return (
        f"this release charges {', '.join(lines)}{more}. {ask} plan from what is left: "
        "table.plan(query, remaining=ledger) (on the command line --remaining). "
        f"{_withdrew_text(cohorts, short)}See 'accord ledger show'. Nothing was spent."
    )


def _withdrew_text(cohorts: CohortsOfTable, short: Any) -> str:
    """How many of those who have too little have withdrawn, and what to do."""
    count = int(cohorts.people[short & cohorts.withdrew].sum())
    if not count:
        return ""
    have = "1 person has" if count == 1 else f"{count:,} people have"
    return (
        f"{have} withdrawn from the ledger: planning from what is left leaves them out; or register the "
        "table anew from a source in which they are opted out. "
    )


def _fitting_share(cohorts: CohortsOfTable) -> int | None:
    """A share, in millionths, under which nobody could be short, whomever a plan for it charges.

    None: there is none.
    """
    limited = (cohorts.chosen > 0) & (cohorts.level != PUBLIC)
    chosen, remaining = cohorts.chosen[limited], cohorts.remaining[limited]
    # what is left is below 10¹², so that a million times as much is a whole number of 64 bits
    share = int(np.where(chosen == PUBLIC, 0, remaining * MICRO // chosen).min())
    return share if 0 < share < MICRO and int(chosen.max()) * share >= MICRO else None
