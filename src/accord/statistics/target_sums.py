"""Targets that are sums of whole numbers, which noise is added to: means, totals, cells, moments.

How much one person can change all sums together is their sensitivity: tests/laws tries all persons.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from accord.statistics.spread import Spread
from accord.statistics.target import Target

if TYPE_CHECKING:
    from accord.statistics.query import Answer, Interval


@dataclass(frozen=True)
class Form:
    """What one person adds to a sum, from their cell q: the whole number constant + first·q + second·q²."""

    constant: int = 0
    first: int = 0
    second: int = 0
    outside: int = 0
    """What somebody adds whom the question is not about."""

    def at(self, cells: Any) -> Any:
        """Of people at these cells."""
        return self.constant + self.first * cells + self.second * cells * cells

    def total(self, everyone: int, members: int, cells: int = 0, squares: int = 0) -> int:
        """Of many people together, from their number, the sum of their cells and that of the squares."""
        inside = self.constant * members + self.first * cells + self.second * squares
        return inside + self.outside * (everyone - members)


@dataclass(frozen=True)
class Additive(Target):
    """Sums of whole numbers, each with a noise of its own.

    `sensitivity` is by how much one person can change all sums together: the largest L1 distance of two
    persons' integers under replace (of a member and somebody outside too, if it is about members), of one
    person's integers and 0 under add-remove. tests/laws checks it for every statistic by trying all of them.
    """

    @property
    @abstractmethod
    def forms(self) -> tuple[Form, ...]:
        """What one person adds to each sum. (A histogram has none: one person is 1 in one cell.)"""

    @property
    @abstractmethod
    def sensitivity(self) -> int: ...

    @property
    def released(self) -> int:
        """How many noisy sums are released."""
        return len(self.forms)

    @property
    def noises_each(self) -> int:
        return max(1, self.released // self.outputs)

    @property
    def box_spans(self) -> tuple[int, ...]:
        """By how much one person can change each sum, where all may share one noise with other questions.

        Empty: that is not proved here, or does not pay. tests/laws tries all persons.
        """
        return (self.sensitivity,) if len(self.forms) == 1 and self.outputs == 1 else ()

    @property
    def box_effects(self) -> tuple[float, ...]:
        """By what each sum's noise, in units of its span, is multiplied in the answer, at worst.

        At charge 1, on the scale of `variance`.
        """
        return (sqrt(self.noise_variance / 2),)

    @property
    def complementary(self) -> bool:
        """Whether two outputs always add up to everyone, so that one noise serves both."""
        return False

    def slopes(self, people: int) -> tuple[float, ...] | None:
        """By what each released mean is multiplied in the answer; None: the answer is not linear in them.

        Of cells, by what a cell's own mean is multiplied in its number.
        """
        return None

    def sums(self, columns: Sequence[int], everyone: int) -> list[int]:
        """The sums, from the columns of a Summary and the number of everyone; or from weighted ones."""
        return [form.total(everyone, *columns) for form in self.forms]

    def factor(self, people: int) -> float:
        return 1.0

    def of_moments(self, mean: Any, std: Any, people: Any) -> Any:
        """The true answer about so many people whose values have this mean and standard deviation.

        Of an indicator the mean is the share of those who meet it. For the lab, which compares with it.
        """
        return mean

    def interval(
        self,
        value: Answer,
        released: Sequence[Fraction],
        spread: Spread,
        alpha: float,
        factor: float = 1.0,
        shift: tuple[float, float] = (0.0, 0.0),
    ) -> Interval:
        """Where the answer about these people lies, but for a probability of alpha.

        `factor`: how many times the error is as predicted.
        `shift`: what the answer leaves out lies between these two.
        """
        half = spread.half_width(alpha, factor)
        below, above = shift[0] - half, shift[1] + half
        if isinstance(value, dict):
            return {cell: (v + below, v + above) for cell, v in value.items()}
        assert isinstance(value, float)
        return value + below, value + above

    # ---- of people who are kept at random (mechanisms/sample.py) -------------------------------------------
    # Who is kept is private: these sums are for add-remove, whatever the relation, and are divided by the
    # number of people that is expected.

    @property
    def kept_forms(self) -> tuple[Form, ...]:
        """What one person who is kept adds to each sum.

        Under replace a single sum is counted from its middle. Twice as much is added, to have whole numbers.
        """
        if not self.relation.people_are_public or len(self.forms) != 1:
            return self.forms
        (form,) = self.forms
        middle = self.sensitivity
        return (Form(2 * form.constant - middle, 2 * form.first, 2 * form.second, 2 * form.outside - middle),)

    @property
    def outside_matters(self) -> bool:
        """Whether somebody whom the question is not about adds something all the same."""
        return self.about_members and any(form.outside for form in self.kept_forms)

    @property
    def kept_sensitivity(self) -> int:
        """By how much one person who is kept or not can change all of these sums together."""
        return self.sensitivity

    def kept_sums(self, cells: Any, people: Any, count: int) -> list[int]:
        """The sums of `kept_forms`, of so many people at each of these cells; outside is at `count`."""
        return [int((self._kept_at(form, cells, people, count) * people).sum()) for form in self.kept_forms]

    def _kept_at(self, form: Form, cells: Any, people: Any, count: int) -> Any:
        """What a person at each of these cells adds, as 64-bit integers if the sum fits."""
        rough = np.abs(np.where(cells == count, form.outside, form.at(cells.astype(np.float64))))
        if float(rough @ people) >= 2.0**62 or rough.max(initial=0) >= 2.0**62:
            cells = cells.astype(object)
        return np.where(cells == count, form.outside, form.at(cells))

    def from_kept(self, means: Sequence[Fraction]) -> list[Fraction]:
        """From the means of `kept_forms` to those of `forms`."""
        if self.kept_forms == self.forms:
            return list(means)
        return [(mean + self.sensitivity) / 2 for mean in means]

    @property
    def kept_noise_variance(self) -> float:
        return self.noise_variance

    @property
    def kept_square(self) -> float:
        """The largest mean square of what one person who is kept adds: the error of leaving people out."""
        return self.midpoint_error


@dataclass(frozen=True)
class Total(Additive):
    """A total of one number a person: a sum or a count.

    Errors are those of a mean, times the number of people.
    """

    @property
    @abstractmethod
    def origin(self) -> Fraction:
        """What the integer 0 stands for, in units of the integer 1: totals are counted from zero."""

    @property
    def adds_up(self) -> bool:
        return True

    def factor(self, people: int) -> float:
        return people

    def of_moments(self, mean: Any, std: Any, people: Any) -> Any:
        return people * mean


@dataclass(frozen=True)
class Counted(Total):
    """A count of people: 1 or 0 a person."""

    @property
    def assumes_presence(self) -> bool:
        return False


@dataclass(frozen=True)
class Cells(Additive):
    """People in each of several cells."""

    @property
    def cells_each(self) -> int:
        """In how many cells one person may be."""
        return 1

    @property
    def gap_effects(self) -> tuple[float, float]:
        # what some cells have too much, others have too little: 1 in all, for each cell that one may be in
        return float(min(2 * self.cells_each, self.outputs)), 1.0

    @property
    def forms(self) -> tuple[Form, ...]:
        return ()

    @property
    def released(self) -> int:
        return self.outputs

    @property
    def assumes_presence(self) -> bool:
        return False

    @property
    def adds_up(self) -> bool:
        return True

    def sums(self, columns: Sequence[int], everyone: int) -> list[int]:
        return list(columns)

    def kept_sums(self, cells: Any, people: Any, count: int) -> list[int]:
        sums: list[int] = np.bincount(cells, people, minlength=count).astype(np.int64).tolist()
        return sums

    def factor(self, people: int) -> float:
        return people


@dataclass(frozen=True)
class Moments(Additive):
    """Sums of products of coded columns (`Codes`), of people who are at no cells."""

    has_cells: ClassVar[bool] = False

    @property
    def forms(self) -> tuple[Form, ...]:
        return ()

    @property
    @abstractmethod
    def released(self) -> int: ...

    @abstractmethod
    def sums(self, columns: Sequence[int], everyone: int) -> list[int]: ...


@dataclass(frozen=True)
class Products(Target):
    """Sums of products of coded columns, for a regression."""
