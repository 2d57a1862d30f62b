"""Mechanisms of one's own: a function from level to charge, for everything that charges can answer.

Guarantee  person i loses exactly what the function says for their level, c_i ≤ ε_i. The proofs of
           additive.py, rank.py and regression.py hold for any charges between 0 and the level; that is
           checked here, whenever it is planned, and everything else is theirs.
Neighbors  every relation: how a charge follows from a level is all that differs.
Public     the function is given the levels and how many people have each (those of the roster, or who are
           expected, where that is private), and has no way to a value.
Deviates   charges are rounded down to millionths, and to the level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accord.budget import IntArray, level_text, to_micro
from accord.errors import PlanError
from accord.mechanisms import ALL, EVERY, by_charges
from accord.mechanisms.record import Mechanism, Refused, Task
from accord.theory import as_floats

Charge: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.int64]], ArrayLike]
"""The charge of each level, from the levels, ascending, ∞ last, and how many people have each."""
_RESERVED = ("auto", "midpoint", "public")


@dataclass(frozen=True, repr=False)
class OwnMechanism(Mechanism):
    """One of somebody's own, which is made anew from its function where a plan is unpickled."""

    charge: Charge | None = None

    def __repr__(self) -> str:
        return f"<mechanism {self.name!r}: {self.guarantee}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(mechanism, guarantee=self.guarantee, paper=self.paper), (self.name, self.charge)


def mechanism(name: str, charge: Charge, *, guarantee: str = "", paper: str = "") -> Mechanism:
    """A mechanism of your own, for `plan`, `release`, `lab.compare` and `lab.audit.run`.

    It answers what `threshold` answers: sums, means, counts and the like, quantiles, regressions, under every
    relation. A plan lists it beside the others, with its predicted error.

    Args:
        name: what plans, receipts and ledgers call it. They keep it: never give another function the same.
        charge: a function of levels and people, which gives each level its charge. `levels` are what each may
            be charged in this release (after `share=`), ascending, inf last for people who are public;
            `people` how many have each. A charge is a number from 0 (not read) to the level. inf, for public
            people, is for who reads nobody else: give them a number otherwise.
        guarantee: what it promises, in one line; c_i is the charge of person i.
        paper: where it is from.

    Raises:
        PlanError: a name that is taken, or no function. What is wrong with charges is said by `plan`.

    >>> import accord
    >>> import numpy as np
    >>> root = accord.mechanism("root", lambda levels, people: np.minimum(levels, 0.1 * np.sqrt(levels)))
    >>> spec = accord.Spec.from_groups({0.01: 500, 1: 500})
    >>> p = accord.plan(spec, accord.mean("x", bounds=(0, 1)), mechanism=root)
    >>> p.mechanism, dict(p.charges)
    ('root', {0.01: 0.01, 1.0: 0.1})
    """
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        raise PlanError(f"name={name!r} is no name of a mechanism. Give a short text, such as 'root'.")
    if name in (*_RESERVED, *(each.name for each in ALL)):
        raise PlanError(f"there is {name!r} already, and names are permanent. Take another one.")
    if not callable(charge):
        raise PlanError(
            f"charge is a {type(charge).__name__}, not a function of levels and people: "
            "lambda levels, people: np.minimum(levels, 0.5)."
        )
    if not _takes_two(charge):
        raise PlanError(
            f"charge of {name!r} takes other arguments than levels and people. Write one such as "
            "lambda levels, people: np.minimum(levels, 0.5)."
        )

    def rule(task: Task) -> tuple[IntArray, str]:
        charges = checked(name, charge(as_floats(task.levels), task.people.copy()), task.levels)
        read = charges > 0
        if not read.any():
            raise Refused("charges nobody")
        least, most = int(charges[read].min()), int(charges.max())
        who = f"reads {int(task.people[read].sum()) / task.total:.1%} of the people"
        return charges, f"{who}, charged from {level_text(least)} to {level_text(most)}"

    promise = guarantee or "person i loses c_i ≤ ε_i"
    return OwnMechanism(name, paper, promise, EVERY, by_charges(rule), charge=charge)


def _takes_two(charge: Charge) -> bool:
    """As far as that is known: of what is not written in Python it may not be."""
    try:
        signature(charge).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def checked(name: str, given: ArrayLike, levels: IntArray) -> IntArray:
    """Charges in millionths, each at most its level.

    Raises:
        PlanError: they are no charges for these levels.
    """
    try:
        charges = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise PlanError(f"charges of {name!r} are no numbers. Return one for each level.") from None
    if charges.shape != levels.shape:
        raise PlanError(
            f"{name!r} gives charges of shape {charges.shape} for {levels.size} levels. Return one for each."
        )
    if np.isnan(charges).any() or (charges < 0).any():
        raise PlanError(f"{name!r} gives charges that are negative or NaN. 0 is who is not read.")
    above = charges > np.nextafter(as_floats(levels), np.inf)  # the last digit of a float is no overcharge
    if above.any():
        level, charge = int(levels[above][0]), float(charges[above][0])
        raise PlanError(
            f"{name!r} charges {charge:g} at level {level_text(level)}. Nobody is charged more than their "
            "level: take np.minimum(levels, …)."
        )
    if np.isinf(charges).any() and (charges[~np.isinf(charges)] > 0).any():
        raise PlanError(
            f"{name!r} charges public people inf, and others something: theirs would be the only answer. "
            "Charge public people a number, or nobody else anything."
        )
    return np.minimum(to_micro(charges), levels)
