"""Levels that look like a mistake: a column of ages, years or ids, taken for one of levels."""

from __future__ import annotations

import numpy as np

from accord.budget import MICRO, PUBLIC, level_text
from accord.errors import AccordWarning, warn
from accord.odds import times_as_likely
from accord.spec import Spec

HARDLY_ANYTHING = 10 * MICRO
"""A level above this one protects hardly anything."""
_MANY = 10
"""So many different whole numbers above it are hardly levels."""


def warn_of_mistaken_levels(spec: Spec, column: str | None) -> None:
    """Warn if every finite level is above 10, or if many are whole numbers above it, as ages and ids are.

    `column`: of the levels, if there is one. Levels are public, and so is whether it warns.
    """
    finite = spec.micro[spec.micro != PUBLIC]
    high = finite[finite > HARDLY_ANYTHING]
    whole = np.count_nonzero(high % MICRO == 0)
    if not high.size:
        return
    if high.size == finite.size:
        fact, level = "every level is above 10", int(finite[0])
    elif whole >= _MANY and 2 * whole >= finite.size:
        fact, level = f"{whole:,} different levels are whole numbers above 10", int(high[-1])
    else:
        return
    question = "" if column is None else f" Is column {column!r} the column of levels?"
    warn(
        f"{fact}: at ε = {level_text(level)} {times_as_likely(level / MICRO)}, "
        f"which protects hardly anything.{question}",
        AccordWarning,
    )
