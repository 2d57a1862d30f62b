"""Times of answers that say nothing of how long it took to make them.

A receipt has the moment of its draw, which tells answers apart: those that share one noise have one time, and
all others have times of their own. Who may not know how long values were read is given the moment before that
instead, with a microsecond for each draw, in the order in which they were drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accord.release.result import Release


def retimed(answers: Mapping[Any, Release], since: datetime) -> dict[Any, Release]:
    """Answers as if they had been drawn at this moment."""
    drawn = sorted({time for release in answers.values() for time in _times(release)})
    moments = {time: since + timedelta(microseconds=k) for k, time in enumerate(drawn)}
    return {key: _at(release, moments) for key, release in answers.items()}


def _times(release: Release) -> Iterator[datetime]:
    if release.time is not None:
        yield release.time
    for part in release.by_part.values():
        if part is not None:
            yield from _times(part)


def _at(release: Release, moments: Mapping[datetime, datetime]) -> Release:
    parts = {key: None if part is None else _at(part, moments) for key, part in release.by_part.items()}
    time = None if release.time is None else moments[release.time]
    return replace(release, time=time, by_part=parts)
