"""Which entry of a consent register counts, a second time: plain Python over a list of entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from accord.lab.audit import reference
from accord.lab.audit.reference_values import Row


def level(
    entries: Sequence[Row],
    person: Any,
    as_of: date,
    *,
    epsilon: str,
    user: str,
    tiers: Mapping[Any, Any] | None = None,
    default: Any = None,
) -> float | None:
    """Somebody's level in millionths: of their latest entry until a day, the strictest of several.

    Entries have a column "valid_from". None: there is no entry of theirs until then.
    """
    who = reference.identity(person)
    theirs = [e for e in entries if reference.identity(e[user]) == who and e["valid_from"] <= as_of]
    if not theirs:
        return None
    latest = max(entry["valid_from"] for entry in theirs)
    last = [entry for entry in theirs if entry["valid_from"] == latest]
    (someone,) = reference.people(last, epsilon=epsilon, tiers=tiers, default=default, user=user)
    return someone.level
