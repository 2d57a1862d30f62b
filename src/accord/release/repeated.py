"""Repeated: an answer that a ledger has booked is made again from what was released for it.

What a mechanism released are exact fractions, and the answer follows from them and the plan (answer.py), with
its error and its interval. So nothing else need be kept, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from accord.planning import Plan
from accord.release.answer import finished
from accord.release.result import Booked, Release
from accord.statistics import Grouped

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.repeating import BookedAnswer
    from accord.ledger.signing import Signature
    from accord.people.table import Table


def released_data(release: Release) -> list[list[list[str]]]:
    """What was released for each question and each of its private groups: fractions as text."""
    return [[[str(x) for x in group] for group in _by_group(part)] for part in release.parts]


def _by_group(part: Release) -> Sequence[tuple[Fraction, ...]]:
    if not part.plan.reads_data:
        return ()
    query = part.plan.query
    has_groups = isinstance(query, Grouped) and bool(query.part.by)
    return part.released if has_groups else (part.released,)


def repeated(
    ledger: Ledger, groups: Mapping[Any, tuple[Table, Plan]], signature: Signature
) -> dict[Any, Release] | None:
    """The booked answer to the plan of each group; None: they were not all asked before."""
    from accord.ledger.repeating import repetition

    earlier = repetition(ledger.books, list(groups.values()), signature)
    if earlier is None:
        return None
    given = Booked(earlier.entry.seq, earlier.entry.hash)
    each = zip(groups.items(), earlier.answers, strict=True)
    return {key: _restored(plan, answer, given) for (key, (_, plan)), answer in each}


def _restored(plan: Plan, answer: BookedAnswer, given: Booked) -> Release:
    """The release of a plan, from what was booked of it."""
    booked = Booked(answer.entry.seq, answer.entry.hash)
    parts = [
        _restored_part(part, time, groups, given)
        for part, time, groups in zip(plan.parts, answer.times, answer.released, strict=True)
    ]
    if plan.choice is not None:
        return replace(parts[0], booked=booked)
    return Release(plan, booked=booked, repeated=given, by_part=dict(zip(plan.plans, parts, strict=True)))


def _restored_part(part: Plan, time: str, groups: Any, given: Booked) -> Release:
    fractions = [tuple(Fraction(x) for x in group) for group in groups]
    value, released = finished(part, fractions)
    return Release(part, value, datetime.fromisoformat(time), released, repeated=given)
