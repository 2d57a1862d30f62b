"""Picking: one number out of a release, and what is refused because it is none or has no known error.

release[key]     a group, public or private; a cell of a histogram; a question of a workload, by its place
release[a][b]    a question, then a group, then a cell, as far as there are such
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from accord.errors import QueryError, did_you_mean
from accord.release.arithmetic import Arithmetic
from accord.release.derived import Derived, public_number
from accord.release.numbers import Number, cells_of
from accord.release.result import Among, Release
from accord.statistics import Algorithm, Ends, Grouped
from accord.statistics.keys import read_label
from accord.statistics.target_ranks import Ranks
from accord.statistics.target_sums import Products


@dataclass(frozen=True, repr=False)
class Group(Arithmetic):
    """The cells of one private group. Take one of them: `group[cell]`."""

    release: Release
    place: int

    @property
    def value(self) -> dict[Any, float]:
        cells = range(len(cells_of(self.release)))
        known = cells_of(self.release)
        return {known[k]: Number(self.release, self.place, k).value for k in cells}

    def interval(self, confidence: float = 0.95) -> dict[Any, Ends]:
        """Of each cell, about these people."""
        part = self.release.plan.query.part
        ends: dict[Any, Ends] = self.release.interval(confidence)[part.groups[self.place]]
        return ends

    def __getitem__(self, cell: Any) -> Derived:
        known = cells_of(self.release)
        return derived(_number(self.release, self.place, place_of(cell, known, "cells")))

    @property
    def label(self) -> str:
        """What was asked, and of which group."""
        return Number(self.release, self.place).label

    def __repr__(self) -> str:
        return f"<Group: {self.label}, {len(self.value)} cells>"


def picked(release: Release, key: Any) -> Release | Derived | Group:
    """The number, or the answer, that `release[key]` is."""
    if release.plan.is_workload:
        return question_of(release, key)
    groups, cells = groups_of(release), cells_of(release) if release.plan.choice is not None else ()
    if release.plan.is_grouped:
        if not groups:  # of a condition alone
            return picked(public_group(release, None), key)
        return public_group(release, groups[place_of(key, groups, "groups")])
    if groups:
        place = _shown_place(release, place_of(key, groups, "groups"))
        return Group(release, place) if cells else derived(_number(release, place))
    if not cells:
        refuse_what_has_no_law(release)
        raise QueryError(
            f"{release.plan.query.label} is a single number, and has no part {key!r}. "
            "Reckon with the release itself."
        )
    return derived(Number(release, None, place_of(key, cells, "cells")))


def _shown_place(release: Release, place: int) -> int:
    """The place of a group, unless it is left out of the answer."""
    part = release.plan.query.part
    group, rows = part.groups[place], cast(list[dict[str, Any]], release.answer)
    if release.suppressed and all(part.group_of(row) != group for row in rows):
        among = f"as one of {release.suppressed:,} groups"
        if part.largest is not None:
            raise QueryError(
                f"{part.name(group)} is left out of the answer, because it is not among the largest, "
                f"{among}. Ask accord.count(by=…, keys=…) for all of them."
            )
        raise QueryError(
            f"{part.name(group)} is left out of the answer, because it may be empty, {among}. "
            "Ask with suppress=False for all of them."
        )
    return place


def _number(release: Release, place: int, cell: int | None = None) -> Number:
    """A number of one private group."""
    return Number(release, place, cell, release.groups_together > 1)


def derived(number: Number) -> Derived:
    """A number of an answer as one that can be reckoned with."""
    refuse_what_has_no_law(number.release)
    if (mirrored := number.mirrored) is not None:
        everyone, other = mirrored
        return Derived(((Fraction(-1), other),), Fraction(everyone))
    return Derived(((Fraction(1), number),))


def single_number(answer: Any) -> Derived:
    """A released number, what was derived, or a public number; refused if it is of several."""
    match answer:
        case Derived():
            return answer
        case Group():
            cells = cells_of(answer.release)
            raise _take_one(f"{answer.label} ({len(cells):,} cells)", cells, "group")
        case Release():
            return _of_release(answer)
    return Derived((), public_number(answer))


def _of_release(release: Release) -> Derived:
    plan, label = release.plan, release.plan.query.label
    if plan.is_workload:
        raise _take_one(label, range(len(release.parts)), "release")
    if groups := groups_of(release):
        raise _take_one(f"{label} ({len(groups):,} groups)", groups, "release")
    if plan.is_grouped:
        return _of_release(public_group(release, None))
    refuse_what_has_no_law(release)
    if cells := cells_of(release):
        raise _take_one(f"{label} ({len(cells):,} cells)", cells, "release")
    return derived(Number(release))


def _take_one(label: str, keys: Any, name: str) -> QueryError:
    return QueryError(f"{label} is not a single number. Take one of them, such as {name}[{keys[0]!r}].")


def groups_of(release: Release) -> tuple[Any, ...]:
    """The keys of the groups of one question, public or private; without by=, none."""
    query = release.plan.query
    return query.part.groups if isinstance(query, Grouped) else ()


def place_of(key: Any, known: Sequence[Any], what: str) -> int:
    """Which of the known keys or cells this is."""
    label = _as_read(key)
    for place, each in enumerate(known):
        if each == label and _truths(each) == _truths(label):  # True equals 1
            return place
    raise QueryError(f"{key!r} is not one of the {what}: {did_you_mean(key, known)}")


def _as_read(key: Any) -> Any:
    """A key as questions have it; of several columns, a tuple of them."""
    if isinstance(key, tuple):
        return tuple(map(_as_read, key))
    if getattr(key, "ndim", 0):
        raise QueryError(f"a key is one group or cell, and this is {type(key).__name__} of several.")
    try:
        return read_label(key)
    except QueryError:
        return key


def _truths(key: Any) -> Any:
    """Where a key, or one of its parts, is a truth value."""
    return tuple(map(_truths, key)) if isinstance(key, tuple) else isinstance(key, bool)


def public_group(release: Release, key: Any) -> Release:
    """The release of one public group."""
    part = release.by_part[key]
    name = release.plan.query.part.name(key)
    if part is None:
        raise QueryError(f"nobody is in the public group {name}, so that there is no answer about it.")
    return replace(part, among=Among(release.plan.spec.fingerprint, name))


def question_of(release: Release, place: Any) -> Release:
    """The release of one question of a workload."""
    parts = release.parts
    is_place = isinstance(place, int) and not isinstance(place, bool)
    if not is_place or not -len(parts) <= place < len(parts):
        raise QueryError(
            f"{place!r} is not the place of a question in this workload, which has {len(parts)}. "
            f"Give a whole number from 0 to {len(parts) - 1}."
        )
    part = parts[place]
    return replace(part, booked=part.booked or release.booked)


def refuse_what_has_no_law(release: Release) -> None:
    """Refuse answers of which nothing is known that a number derived from them could stand on."""
    plan, label = release.plan, release.plan.query.label
    if isinstance(plan.query, Algorithm):
        raise QueryError(
            f"{label} is the answer of an algorithm of your own, and only it can tell its error. "
            "Reckon with its .value."
        )
    if isinstance(plan.target, Ranks):
        raise QueryError(
            f"{label} was chosen by its rank. One draw tells the percentiles that it lies between, not the "
            "values around it, so that nothing is known about differences or ratios with it. Compare "
            "intervals in values (interval='values', release.interval_in_values()), or ask for means."
        )
    if isinstance(plan.target, Products):
        raise QueryError(
            f"{label} has coefficients that share their noises, and no coefficient has an interval of its "
            "own. Reckon with its .value, or ask for means or sums."
        )
