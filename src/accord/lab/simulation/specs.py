"""Specifications to simulate with: who has which level, as the papers and surveys have it.

A `Drawn` specification is another one in every run, as in [J]; `spec(seed)` draws one that stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any

import numpy as np

from accord.budget import to_micro
from accord.errors import SpecError, did_you_mean
from accord.spec import Spec
from accord.theory import FloatArray


@dataclass(frozen=True)
class Drawn:
    """Levels that are drawn at random, one for each of so many people."""

    name: str
    people: int
    draw: Callable[[np.random.Generator], FloatArray]

    def spec(self, seed: int = 0) -> Spec:
        """One draw, as a specification that stays."""
        return Spec.of(self.draw(np.random.default_rng(seed)))

    def __repr__(self) -> str:
        return f"<{self.name}, drawn for {self.people:,} people>"


def jorgensen(
    people: int = 1000,
    conservative: float = 0.54,
    moderate: float = 0.37,
    epsilon_c: float = 0.01,
    epsilon_m: float = 0.2,
    epsilon_l: float = 1.0,
) -> Drawn:
    """[J] V's three groups of people, by shares of all.

    Levels of conservative people are uniform on [ε_C, ε_M], of moderate ones on [ε_M, ε_L], both rounded to
    hundredths; the others, liberal, have ε_L.

    >>> jorgensen(1000).spec(seed=1).levels[-1], jorgensen(1000).spec(seed=1).total
    (1.0, 1000)
    """
    _are_numbers(conservative, moderate, epsilon_c, epsilon_m, epsilon_l)
    are_shares = min(conservative, moderate) >= 0 and conservative + moderate <= 1 + 1e-9
    if not _is_number_of_people(people) or not are_shares:
        raise SpecError(
            f"{people} people, {conservative:g} of them conservative and {moderate:g} moderate: the shares "
            "are not negative and add up to at most 1."
        )
    if not 0.01 <= epsilon_c <= epsilon_m <= epsilon_l < inf:
        raise SpecError(
            f"levels {epsilon_c:g}, {epsilon_m:g}, {epsilon_l:g} are not ascending and finite, from 0.01 on, "
            "the smallest step that they are rounded to."
        )
    first, second = round(conservative * people), round((conservative + moderate) * people)

    def draw(rng: np.random.Generator) -> FloatArray:
        levels = np.full(people, epsilon_l)
        levels[:first] = np.round(rng.uniform(epsilon_c, epsilon_m, first), 2)
        levels[first:second] = np.round(rng.uniform(epsilon_m, epsilon_l, second - first), 2)
        return levels

    return Drawn("[J]'s three groups", people, draw)


def log_uniform(people: int = 1000, low: float = -4.0, high: float = 2.0) -> Drawn:
    """ln ε uniform on [low, high], as in [C]'s Table II."""
    _are_numbers(low, high)
    if not _is_number_of_people(people) or not -13 < low <= high < 13:
        raise SpecError(
            f"ln ε from {low:g} to {high:g} for {people} people: give −13 < low ≤ high < 13, for somebody."
        )
    name = f"ln ε uniform on [{low:g}, {high:g}]"
    return Drawn(name, people, lambda rng: np.exp(rng.uniform(low, high, people)))


def two_groups(people: int, share: float, epsilon1: float, epsilon2: float) -> Spec:
    """A `share` of the people at ε₁, the others at ε₂, as in [C] and [Z].

    >>> two_groups(1000, 0.7, 0.1, float("inf")).counts
    (700, 300)
    """
    _are_numbers(share, epsilon1, epsilon2)
    if not _is_number_of_people(people) or not 0 <= share <= 1:
        raise SpecError(
            f"a share of {share!r} of {people!r} people: there is somebody, and a share lies between 0 and 1."
        )
    first = round(share * people)
    return Spec(to_micro([epsilon1, epsilon2]), np.array([first, people - first]))


def _is_number_of_people(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and bool(number >= 1)


def _are_numbers(*arguments: Any) -> None:
    for x in arguments:
        if isinstance(x, bool) or not isinstance(x, int | float | np.number):
            raise SpecError(f"{x!r} is neither a share nor a level. Both are numbers.")


def segmentation(
    name: str, people: int = 1000, epsilon_c: float = 0.01, epsilon_m: float = 0.2, epsilon_l: float = 1.0
) -> Drawn:
    """[J]'s groups in the shares of a published survey: see `segmentations()`."""
    surveys = segmentations()
    if name not in surveys:
        raise SpecError(f"there is no segmentation {name!r}: {did_you_mean(name, surveys)}")
    survey = surveys[name]
    whole = survey["conservative"] + survey["moderate"] + survey["liberal"]  # some are published rounded
    groups = jorgensen(
        people, survey["conservative"] / whole, survey["moderate"] / whole, epsilon_c, epsilon_m, epsilon_l
    )
    return Drawn(f"{name} ({survey['population']})", people, groups.draw)


@cache
def segmentations() -> Mapping[str, Mapping[str, Any]]:
    """Published shares of conservative, moderate and liberal people, with their sources."""
    text = (files("accord.data") / "segmentations.json").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in json.loads(text)["segmentations"]}
