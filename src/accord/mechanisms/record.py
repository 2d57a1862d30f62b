"""What a mechanism is: a frozen record of plain functions, and the frozen numbers that it works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accord.query import Query
from accord.spec import IntArray

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.summary import Summary


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
    t: int | None
    """The threshold that the user asked for, in millionths."""


@dataclass(frozen=True)
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
    missing: float = 0.0
    """How many people's worth the mechanism leaves out of a sum, which biases it."""

    def __post_init__(self) -> None:
        for name in ("charges", "weights"):  # a plan is a promise: nobody changes it afterwards
            array = getattr(self, name).copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)


@dataclass(frozen=True)
class Mechanism:
    """One way to answer. `name` is permanent: receipts and ledgers store it."""

    name: str
    paper: str
    guarantee: str
    """In one line, with c_i for the charge of person i."""
    neighbors: tuple[str, ...]
    answers: tuple[type[Query], ...]
    calibrate: Callable[[Task], Calibration]
    answer: Callable[[Summary, Calibration, Any, Noise], list[Fraction]]
    """The noisy means of the query's integers, exactly."""


def total_of(charges: IntArray, people: IntArray) -> int:
    """Σ charge·people, exactly."""
    if float(charges.astype(np.float64) @ people) < 2.0**62:
        return int(charges @ people)
    return sum(c * n for c, n in zip(charges.tolist(), people.tolist(), strict=True))
