"""Relation: what may change between two tables that must look alike, and what that does to an answer.

    replace      one person's value changes; who is in the table, and with which level, is public.
                 [C], [Z], and [J] for PE.
    add-remove   one person comes or goes; who could be in the table is a public roster, who is, is private.
                 [J]
    private-levels
                 one person comes or goes, and with them the level that they chose: a record is (x_i, ε_i),
                 and it changes no probability by more than e^{ε_i}, whether it comes or goes. Which levels
                 there are is public; who chose which is not, nor how many.

Private levels  What is charged is a function of the level, the same for every table: it follows from numbers
           of people that are assumed (`expected=`) and never from those who are there. So a record that comes
           or goes changes nothing but what it adds itself, and every proof for add-remove holds as it is,
           with c(ε_i) for c_i. If τ, a size or a denominator came from the table, one record could change
           what all others add. It is not promised that two *levels* of one person look alike, and cannot be:
           what holds for every level that a record may take holds at twice the smallest ([Z] Definition 3).
           So whoever changes their level leaves and comes, at c(old) + c(new).

An answer that proves add-remove at ε proves replace at 2ε, because a change is leaving and coming; the
converse is not true. Losses under different relations are never added up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from accord.theory import FloatArray

MOST_PEOPLE = 2**53
"""No table has more."""


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
    about_spec: str
    """What numbers of people by level are, in a sentence: counted, on a roster, or assumed."""
    about_errors: str = ""
    """For whom errors are predicted, where it is private who is there."""
    levels_are_public: bool = True
    """Whether everyone may know who chose which level. If not, how many have which is assumed."""

    def __str__(self) -> str:
        return self.name

    @property
    def about_people(self) -> str:
        """Whether everyone may know who is in the table, in words."""
        whose = "" if self.levels_are_public else ", and who chose which level,"
        return f"who is in the table{whose} is {'public' if self.people_are_public else 'private'}"

    def __reduce__(self) -> tuple[Callable[[str], Relation], tuple[str]]:
        return named, (self.name,)  # there is one of each

    def most_people(self, total: int) -> int:
        """How many may be there at most, of a Spec of so many: assumed numbers are no bound."""
        return total if self.levels_are_public else MOST_PEOPLE

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
    about_spec="levels and the number of people are public",
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
    about_spec="who is in the table is private; who could be, and their levels, is the public roster",
    about_errors="errors are predicted as if everyone on it were there",
)
PRIVATE_LEVELS = replace(
    ADD_REMOVE,
    name="private-levels",
    meaning="one person comes or goes, and with them the level that they chose",
    group_answer="private-levels",
    about_spec="who is in the table is private, and so is who chose which level; how many have which is "
    "assumed, not counted, and whoever has none of these levels is not read",
    about_errors="errors are expected ones, for as many people of each level as assumed",
    levels_are_public=False,
)
ALL = (REPLACE, ADD_REMOVE, PRIVATE_LEVELS)


def named(name: str) -> Relation:
    """The relation of this name.

    >>> named("replace").meaning
    "one person's value changes"
    """
    return next(relation for relation in ALL if relation.name == name)


def offered(meaning: Callable[[Relation], str] = lambda relation: relation.meaning) -> str:
    """What there is, for whoever asks for another one.

    >>> offered()
    "'replace' (one person's value changes), 'add-remove' (one person comes or goes) and 'private-levels' \
(one person comes or goes, and with them the level that they chose)"
    """
    *others, last = (f"{relation.name!r} ({meaning(relation)})" for relation in ALL)
    return f"{', '.join(others)} and {last}"


def private_names() -> str:
    """Those under which it is private who is in the table, and a roster says who could be, for refusals.

    >>> private_names()
    "'add-remove'"
    """
    rostered = (each for each in ALL if not each.people_are_public and each.levels_are_public)
    return " or ".join(repr(relation.name) for relation in rostered)
