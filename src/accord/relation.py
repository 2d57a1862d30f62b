"""Relation: what may change between two tables that must look alike, and what that does to an answer.

    replace      one person's value changes; who is in the table, and with which level, is public.
                 [C], [Z], and [J] for PE.
    add-remove   one person comes or goes; who could be in the table is a public roster, who is, is private.
                 [J]

An answer that proves add-remove at ε proves replace at 2ε, because a change is leaving and coming; the
converse is not true. Losses under different relations are never added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from accord.theory import FloatArray


@dataclass(frozen=True)
class Relation:
    """Which tables are neighbors."""

    name: str
    """Permanent: plans, receipts and ledgers store it."""
    meaning: str
    people_are_public: bool
    """Whether everyone may know who is in the table, and with which level."""
    cells_changed: int
    """In how many cells of a histogram one person may change a count, by one each."""
    rank_change: Callable[[Fraction], Fraction] = field(repr=False)
    """By how much of their weight one person may move the score of a quantile p."""
    inner: Fraction
    """The part of t that an algorithm on people kept at random may spend (mechanisms/sample.py)."""
    keep_probability: Callable[[FloatArray, float], FloatArray] = field(repr=False)
    """With which probability people are kept, by level and t, so that nobody loses more than their level."""
    group_answer: str
    """The name of the relation that an answer about each of several private groups must prove."""
    group_moves: int
    """In how many of these groups one person may change something at once."""

    def __str__(self) -> str:
        return self.name

    @property
    def about_people(self) -> str:
        """Whether everyone may know who is in the table, in words."""
        return f"who is in the table is {'public' if self.people_are_public else 'private'}"

    def __reduce__(self) -> tuple[Callable[[str], Relation], tuple[str]]:
        return named, (self.name,)  # there is one of each

    def ends(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """Of what one person may add to a sum of values in low … high: with 0, where they may be absent."""
        return (low, high) if self.people_are_public else (min(Fraction(0), low), max(Fraction(0), high))


def _keep_by_value(levels: FloatArray, t: float) -> FloatArray:
    """(e^ε − 1)/[(e^s − 1) + e^ε(1 − e^−s)] with s = t/2, for levels of at most t."""
    s = t / 2
    with np.errstate(over="ignore"):
        rise = np.exp(-levels) * np.expm1(s) if s < 700 else np.exp(s - levels)
        probability: FloatArray = -np.expm1(-levels) / (rise - np.expm1(-s))
    return probability


def _keep_by_presence(levels: FloatArray, t: float) -> FloatArray:
    """(e^ε − 1)/(e^t − 1), for levels of at most t."""
    probability: FloatArray = np.exp(levels - t) * np.expm1(-levels) / np.expm1(-t)
    return probability


REPLACE = Relation(
    "replace",
    "one person's value changes",
    people_are_public=True,
    cells_changed=2,  # out of one and into another
    rank_change=lambda p: Fraction(1),
    inner=Fraction(1, 2),
    keep_probability=_keep_by_value,
    group_answer="add-remove",
    group_moves=2,  # out of one group and into another
)
ADD_REMOVE = Relation(
    "add-remove",
    "one person comes or goes",
    people_are_public=False,
    cells_changed=1,
    rank_change=lambda p: max(p, 1 - p),
    inner=Fraction(1),
    keep_probability=_keep_by_presence,
    group_answer="add-remove",
    group_moves=1,
)
ALL = (REPLACE, ADD_REMOVE)


def named(name: str) -> Relation:
    """The relation of this name.

    >>> named("replace").meaning
    "one person's value changes"
    """
    return next(relation for relation in ALL if relation.name == name)


def offered(meaning: Callable[[Relation], str] = lambda relation: relation.meaning) -> str:
    """What there is, for whoever asks for another one.

    >>> offered()
    "'replace' (one person's value changes) and 'add-remove' (one person comes or goes)"
    """
    *others, last = (f"{relation.name!r} ({meaning(relation)})" for relation in ALL)
    return f"{', '.join(others)} and {last}"


def private_names() -> str:
    """Those under which it is private who is in the table, for refusals.

    >>> private_names()
    "'add-remove'"
    """
    return " or ".join(repr(relation.name) for relation in ALL if not relation.people_are_public)
