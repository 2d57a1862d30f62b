"""What a mechanism is: a frozen record of plain functions, and the frozen numbers that it works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accord.budget import IntArray
from accord.statistics import Query

if TYPE_CHECKING:
    from accord.mechanisms.error import Prediction
    from accord.noise import Noise
    from accord.people.summary import Summary


class Refused(Exception):  # noqa: N818  it is an answer, not a fault
    """This mechanism cannot answer this; the text says why, from public things."""


@dataclass(frozen=True)
class Task:
    """All that a calibration sees: public things only."""

    levels: IntArray
    """What each level may be charged in this release, in millionths: positive, ascending, PUBLIC last. After `share`."""
    people: IntArray
    total: int
    """Everyone who has not opted out, also those whom a small share leaves with less than a millionth."""
    query: Any
    t: int | str | None
    """The level of `threshold` or `sample` that the user asked for, in millionths or by name."""
    variance: float
    blur: float
    """Of the query, unless a mechanism knows better."""
    neighbors: str = "replace"

    @cached_property
    def heads(self) -> NDArray[np.float64]:
        """The people of each level as floats, for products with floats: an integer would be converted in each."""
        return self.people.astype(np.float64)

    @cached_property
    def scratch(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Two columns that every prediction writes over: of a million levels, new ones would take longer than what is done with them."""
        return np.empty_like(self.heads), np.empty_like(self.heads)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, which nobody changes any more. For whoever has just made it: then a calibration needs no copy of it."""
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Calibration:
    """How a mechanism answers one query for one Spec."""

    charges: IntArray
    """For each level, in millionths. 0: not read. PUBLIC: read without noise."""
    weights: NDArray[np.float64]
    """Of one person of each level in the mean."""
    noise: float
    """Variance of the noise on the mean, summed over the outputs."""
    note: str
    several: bool = False
    """Whether the noise is a sum of several independent ones."""
    ps: tuple[Fraction, ...] = ()
    """The quantiles that are chosen, where the query is about ranks."""
    missing: float = 0.0
    """How many people's worth the mechanism leaves out of a sum, which biases it."""
    neighbors: str = "replace"
    keep: Any = None
    """Of `sample`: with which chance a person of each level is kept, in 2⁻⁶³."""
    mean_only: bool = False
    """Of a regression: whether its slopes would be noise, so that they are not released."""
    t: int | None = None
    """Of `sample`: the level at which those who are kept are answered about."""

    def __post_init__(self) -> None:
        for name in ("charges", "weights", "keep"):  # a plan is a promise: nobody changes it afterwards
            array = getattr(self, name)
            if array is not None and (array.flags.writeable or array.base is not None):
                object.__setattr__(self, name, frozen(array.copy()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash((self.charges.tobytes(), self.note))


@dataclass(frozen=True)
class Way:
    """How a mechanism answers one family of queries."""

    answers: tuple[type[Query], ...]
    calibrate: Callable[[Task], Calibration]
    predict: Callable[[Task, Calibration], Prediction]
    answer: Callable[[Summary, Calibration, Any, Noise], list[Fraction]]
    """What the query's `finish` makes the answer of: noisy means of its integers, or points of its grid. Exact."""
    by_cell: bool = False
    """Whether it needs the number of people with each integer, where others need their sum."""
    by_row: bool = False
    """Whether rows are kept or not in the engine, by chances of `Calibration.keep`."""
    by_number: bool = False
    """Whether it needs the number of people, in all or of a level: refused where that is private."""


@dataclass(frozen=True)
class Mechanism:
    """One way to decide who is charged how much. `name` is permanent: receipts and ledgers store it."""

    name: str
    paper: str
    guarantee: str
    """In one line, with c_i for the charge of person i."""
    neighbors: tuple[str, ...]
    ways: tuple[Way, ...]

    @property
    def answers(self) -> tuple[type[Query], ...]:
        return tuple(kind for way in self.ways for kind in way.answers)

    def way(self, query: Query) -> Way:
        """How it answers this; refuses what it cannot."""
        for way in self.ways:
            if isinstance(query, way.answers):
                if way.by_number and query.sized:
                    raise Refused("would need the number of members, which is private")
                return way
        raise Refused(f"answers {' and '.join(sorted({kind.statistic for kind in self.answers}))} only")
