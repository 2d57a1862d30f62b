"""What a mechanism is: a frozen record of plain functions, and the frozen numbers that it works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from accord import statistics
from accord.budget import IntArray
from accord.relation import Relation
from accord.statistics.algorithm import AlgorithmTarget
from accord.statistics.target import Target
from accord.statistics.target_ranks import Ranks

if TYPE_CHECKING:
    from accord.mechanisms.prediction import Prediction
    from accord.noise import Noise
    from accord.people.summary import Summary
    from accord.statistics.box import Share

_C = TypeVar("_C", bound="Calibration")


class Refused(Exception):  # noqa: N818  it is an answer, not a fault
    """This mechanism cannot answer this; the text says why, from public things."""


@dataclass(frozen=True)
class Task:
    """All that a calibration sees: public things only."""

    levels: IntArray
    """What each level may be charged in this release, after `share`, in millionths.

    Positive, ascending, PUBLIC last.
    """
    people: IntArray
    """Of each level."""
    total: int
    """Everyone who has not opted out, also those whom a small share leaves with less than a millionth.

    Of a question about everyone, those who opted out as well.
    """
    target: Any
    """One of those of statistics/."""
    t: int | str | None
    """The level of `threshold` or `sample` that the user asked for, in millionths or by name."""
    variance: float
    """Of one person, as the target says unless a mechanism knows better,"""
    noise_variance: float
    """and of the noise at charge 1."""
    groups: int = 1
    """Of how many private groups of the same size this is to be one. Who is in which is not known."""
    coordinates: int = 0
    """Of the box whose one noise its sums share with those of other questions; 0: they have their own."""

    @property
    def relation(self) -> Relation:
        relation: Relation = self.target.relation
        return relation

    @property
    def unread(self) -> int:
        """How many of `total` count nothing, whatever the weights are."""
        return self.total - int(self.people.sum())

    @property
    def squared_bias(self) -> float:
        """What the declared gap does to the outputs where κ = 1: squared, and summed over them."""
        return 0.0 if self.target.gap is None else self.target.gap_effects[0] * self.target.gap**2

    @property
    def largest_bias(self) -> float:
        """What it does to one of them."""
        return 0.0 if self.target.gap is None else self.target.gap_effects[1] * self.target.gap

    @cached_property
    def people_as_floats(self) -> NDArray[np.float64]:
        """For products with floats: integers would be converted in each of them."""
        return self.people.astype(np.float64)

    @cached_property
    def scratch(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Two columns that every prediction writes over.

        Of a million levels, new ones would take longer than what is done with them.
        """
        return np.empty_like(self.people_as_floats), np.empty_like(self.people_as_floats)


ChargeRule: TypeAlias = Callable[[Task], tuple[IntArray, str]]
"""A function of charges.py: the charge of each level, and a note for the plan."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, which nobody changes any more.

    For whoever has just made it: then a calibration needs no copy of it.
    """
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Calibration:
    """How a mechanism answers one question for one Spec.

    A mechanism that needs more has a subclass of its own.
    """

    charges: IntArray
    """For each level, in millionths. 0: not read. PUBLIC: read without noise."""
    weights: NDArray[np.float64]
    """Of one person of each level in the mean: not the charges, though often proportional to them."""
    noise_variance: float
    """Of the noise on the mean, summed over the outputs."""
    note: str

    def __post_init__(self) -> None:
        for f in fields(self):  # a plan is a promise: nobody changes it afterwards
            array = getattr(self, f.name)
            if isinstance(array, np.ndarray) and (array.flags.writeable or array.base is not None):
                object.__setattr__(self, f.name, frozen(array.copy()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()  # arrays that come from a pickle can be changed

    def placed(self: _C, order: IntArray, size: int) -> _C:
        """For each of `size` levels, of which the k-th here is the order[k]-th; the others are not read."""
        by_level: dict[str, Any] = {}
        for f in fields(self):
            values = getattr(self, f.name)
            if isinstance(values, np.ndarray):
                by_level[f.name] = np.zeros(size, dtype=values.dtype)
                by_level[f.name][order] = values
        return replace(self, **by_level)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash((self.charges.tobytes(), self.note))


@dataclass(frozen=True)
class Linear:
    """A released mean as Σ weight·integer over all people, plus Σ scale·Laplace, plus `shift`.

    In floats, and with the continuous Laplace law in the place of the discrete one: for simulations, never
    for releases. Each released sum has noises of its own.
    """

    weights: NDArray[np.float64]
    """Of one person of each level."""
    scales: NDArray[np.float64]
    """Of the independent noises on the mean, in units of the integers."""
    shift: Fraction = Fraction(0)
    smallest_scale: float = inf
    """Of a noise where it is drawn, in whole steps: where it is small, the discrete law shows."""
    box: Share | None = None
    """Instead of `scales`: the effect of one coordinate of a box on each released mean, in their order."""


@dataclass(frozen=True)
class Method:
    """How a mechanism answers one family of targets."""

    answers: type[Target] | tuple[type[Target], ...]
    calibrate: Callable[[Task], Calibration]
    predict: Callable[[Task, Any], Prediction]
    answer: Callable[[Summary, Any, Any, Noise], list[Fraction]]
    """What the target's `finish` makes the answer of: noisy means of its integers, or points of its grid.

    Exact.
    """
    needs_cells: bool = False
    """Whether it needs the number of people at each cell, where others need sums."""
    keeps_rows: bool = False
    """Whether rows are kept or not in the engine, with the probabilities of the calibration's `keep`."""
    draws_brackets: bool = False
    """Whether it answers quantiles with an interval in values."""
    needs_size: bool = False
    """Whether it needs the number of people, in all or of a level: refused where that is private."""
    bounds_bias: bool = True
    """Whether all that levels that go with values do to its answers is a bias of at most κ times the gap."""
    shares_noise: bool = False
    """Whether its sums may share one noise with those of other questions (`Task.coordinates`)."""
    linear: Callable[[Any, IntArray, Any], Linear] | None = None
    """`answer` in floats, if it is linear: for a calibration, the people of each level and a target."""


def _answers(method: Method, family: type[Target]) -> bool:
    """Whether a method answers targets of this class."""
    return issubclass(family, method.answers) and (family.has_cells or not method.needs_cells)


@dataclass(frozen=True)
class Mechanism:
    """One way to decide who is charged how much. `name` is permanent: receipts and ledgers store it."""

    name: str
    paper: str
    guarantee: str
    """In one line, with c_i for the charge of person i."""
    relations: tuple[Relation, ...]
    """Under which it is proved."""
    methods: tuple[Method, ...]
    weighs_alike: bool = False
    """Whether everyone counts alike, whatever their level: then totals are right whoever chose which."""
    needs_gap: bool = False
    """Whether it is for levels that go with values, and offered where it is declared how far they do."""

    @cached_property
    def statistics(self) -> tuple[str, ...]:
        """The names of what it answers."""
        families: list[tuple[str, type[Any]]] = [("algorithm", AlgorithmTarget)]
        families += [(s.name, s.family) for s in statistics.ALL if not s.is_alias]
        return tuple(
            name for name, family in families if any(_answers(method, family) for method in self.methods)
        )

    def method(self, target: Target) -> Method:
        """How it answers this; refuses what it cannot."""
        for method in self.methods:
            if _answers(method, type(target)):
                if method.needs_size and target.tells_size:
                    raise Refused("would need the number of members, which is private")
                if target.needs_equal_weights and not self.weighs_alike:
                    raise Refused(
                        "does not count everyone alike, and how many have which level is private: "
                        "a total would be off by that"
                    )
                if isinstance(target, Ranks) and target.in_values and not method.draws_brackets:
                    raise Refused("has no interval in values")
                return method
        raise Refused(f"answers {' and '.join(sorted(self.statistics))} only")
