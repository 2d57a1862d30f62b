"""Target: what a mechanism answers, a statistic under a relation: sums of whole numbers, or points of a grid.

What a plan needs of any of them, to predict errors:

    outputs         how many numbers are released
    variance        σ² of one person, summed over the outputs, in the answer's units: from `std`, or the worst
    noise_variance  variance of the noise at charge 1, summed over the outputs, in the answer's units
    max_variance    the largest variance that one output can have
    factor          what an error on the scale of `variance` is multiplied by to become one of the answer
    midpoint_error  mean squared error of `middle` at worst, summed over the outputs
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from accord.budget import IntArray
from accord.relation import Relation
from accord.statistics.spread import Spread

if TYPE_CHECKING:
    from accord.statistics.query import Answer, Interval


@dataclass(frozen=True)
class Target(ABC):
    """A statistic under a relation."""

    query: Any
    """The statistic, one of the classes of this folder."""
    relation: Relation
    about_members: bool = False
    """Whether it is about the members of one private part, while everyone stays (replace with `where=`)."""
    has_cells: ClassVar[bool] = True
    """Whether people can be counted by what they add: not where columns are multiplied."""

    @property
    def outputs(self) -> int:
        return 1

    @property
    @abstractmethod
    def variance(self) -> float: ...

    @property
    @abstractmethod
    def noise_variance(self) -> float: ...

    @property
    def max_variance(self) -> float:
        return self.variance

    @abstractmethod
    def factor(self, people: int) -> float: ...

    @property
    @abstractmethod
    def midpoint_error(self) -> float: ...

    @property
    def gap(self) -> float | None:
        """How far levels go with values, as declared, on the scale of `variance`; None: nothing is."""
        scale = self.query.gap_scale
        return None if scale is None or self.query.gap is None else float(self.query.gap * scale.factor)

    @property
    def gap_effects(self) -> tuple[float, float]:
        """What a gap of 1 does to the outputs at worst where κ = 1, on the scale of `variance`.

        Its square, summed over the outputs; and how far off one of them may be (docs/proofs/gap.md).
        """
        return float(self.outputs), 1.0

    @property
    def is_public(self) -> bool:
        """Whether the answer is the public number of people."""
        return False

    @property
    def adds_up(self) -> bool:
        """Whether everyone adds something to every group, be it 0: a sum or a count, not a mean."""
        return False

    @property
    def needs_equal_weights(self) -> bool:
        """Whether it is right only if everyone counts alike: a total, where nobody tells how many have which
        level, so that nothing tells what unequal weights make of it. A mean or a rank has its own weight."""
        return self.adds_up and not self.relation.levels_are_public

    @property
    def noises_each(self) -> int:
        """How many noises are in one number of the answer."""
        return 1

    @property
    def tells_size(self) -> bool:
        """Whether the number of people is private, and what is released tells it roughly."""
        return False

    def error_factor(self, released: Sequence[Fraction], groups: int = 1) -> float | None:
        """By what an error is multiplied once it is known, roughly, how many are there: see `factor_for`.

        `groups`: it was predicted for so many groups of the same size.
        """
        return 1.0

    @property
    def assumes_spread(self) -> bool:
        """Whether errors are predicted for values that vary as much as assumed, and are larger for others."""
        return False

    def spread_factor(self, released: Sequence[Fraction]) -> float | None:
        """By what an error is multiplied once it is known, roughly, how much values vary.

        None: they hardly do, and nothing can be told.
        """
        return 1.0

    @property
    def rounding(self) -> float:
        """How far the grid can move the answer, on the scale of `variance`."""
        return 0.0

    @property
    def assumes_presence(self) -> bool:
        """Whether the predicted error is for everyone being there who could be."""
        return True

    def assumptions(self) -> list[str]:
        """What the user declared as public knowledge, as far as this target uses it."""
        assumptions: list[str] = self.query.assumptions()
        return assumptions

    @abstractmethod
    def middle(self, people: int) -> Answer:
        """The answer that needs no data: the middle of what is possible."""

    @abstractmethod
    def possible(self, people: int) -> Interval:
        """Where the answer can lie at all, in the query's unit."""

    @abstractmethod
    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        """The answer, from what a mechanism released: means of integers, or points of the grid.

        Exact until the last step.
        """


def factor_for(present: float, groups: int = 1) -> float | None:
    """By what an error is multiplied where only this share of all is present; None: too few to tell.

    `groups`: it was predicted for a share of 1/groups.
    """
    return 1 / (present * groups) if present * groups > 0.01 else None


# ---- sums --------------------------------------------------------------------------------------------------


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


# ---- points of a grid, and products ------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranks(Target):
    """A question about ranks, answered by points of a grid. Errors are in percentile points."""

    @property
    @abstractmethod
    def points(self) -> int:
        """How many points can be answered."""

    @property
    @abstractmethod
    def times(self) -> IntArray | None:
        """How many times each of them counts, before the data is seen; None: once."""

    @property
    def total_times(self) -> int:
        """T: how many points there are, each as many times as it counts.

        It bounds how far off a choice may be: P(score ≤ −a) ≤ T·exp(−a/scale) (rounding.py).
        """
        return self.points if self.times is None else int(self.times.sum())

    @property
    @abstractmethod
    def smooth_cost(self) -> float:
        """How many times as far off choices may be on average because of `times`, where values are smooth."""

    @property
    def tells_size(self) -> bool:
        return self.about_members or not self.relation.people_are_public

    @property
    def in_values(self) -> bool:
        """Whether an interval in values is asked for (mechanisms/brackets.py)."""
        return False

    @property
    def draws(self) -> int:
        """How many points are drawn for each quantile: itself, and one on either side of it."""
        return 3 if self.in_values else 1

    def factor(self, people: int) -> float:
        return 100


@dataclass(frozen=True)
class Quantiles(Ranks):
    """One or several quantiles."""

    @property
    @abstractmethod
    def ps(self) -> tuple[Fraction, ...]: ...

    @property
    @abstractmethod
    def listed(self) -> bool:
        """Whether the answer is a list, be it of one."""

    @abstractmethod
    def about_draws(self, together: bool) -> list[str]:
        """How the charge is spent, in sentences; `together`: all quantiles are drawn at once."""

    @abstractmethod
    def interval_in_values(self, between: Sequence[tuple[Fraction | None, Fraction | None]]) -> Any:
        """From the points that each quantile lies between; None: the end of the bounds."""


@dataclass(frozen=True)
class Extremes(Ranks):
    """The smallest or the largest value."""

    @property
    @abstractmethod
    def is_largest(self) -> bool: ...


@dataclass(frozen=True)
class Products(Target):
    """Sums of products of coded columns, for a regression."""
