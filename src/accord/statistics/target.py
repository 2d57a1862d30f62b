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
from typing import TYPE_CHECKING, Any, ClassVar

from accord.relation import Relation

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
