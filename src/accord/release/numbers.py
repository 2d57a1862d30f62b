"""One number of an answer, picked out of it; and what is known of how far it is from the truth.

A number may be a mean, a sum or a count, that of one group, or that of one cell of a histogram. An answer
that is linear in the released means of integers (`Additive.slopes`) is

    the truth about these people + N(0, s²) + Σ b_k·L_k + rounding + something between two public ends:

s        what unequal weights do, where levels do not go with values: `Spread.sampling`
b_k·L_k  the Laplace noises of `Method.linear`, one for each released mean and, of `mix`, each level
         Of questions that share one noise, their parts of a box instead: not independent (box.py)
rounding to the grid, and the step that few people's weights need beside s (spread.py), at most so much
ends     what `stretch` leaves out; of an answer without data, all that is possible; and the bias that a
         declared gap allows.
         And the noise that is drawn is a whole number: the difference ⌊E⌋ − ⌊E′⌋ of two exponential ones,
         rounded down, where L is E − E′. They are less than 1 apart.

Everything else has its own interval and no more: ratios of two noisy sums (means where it is private how many
there are), variances, `sample`, noises of whole numbers on a scale that is not large.

Draws are told apart by the plan's fingerprint, the time of the answer and what was released, so that an
answer that a ledger gives out again, or that comes from a pickle, is the same number as the first one.
Where two cells always add up to everyone and one noise serves both, the second is the public number of people
minus the first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, sqrt
from string import ascii_lowercase
from typing import Any

from accord.budget import MICRO
from accord.errors import QueryError
from accord.mechanisms.additive import BoxCalibration
from accord.mechanisms.prediction import AroundValue, FixedInterval
from accord.release.result import Release
from accord.statistics import Ends, Grouped
from accord.statistics.box import Share
from accord.statistics.target_sums import Additive, Cells, Total

_SMALLEST_SCALE, _MOST_NOISES = 1_000, 100
"""From which scale on whole numbers can pass for continuous ones; of how many noises a law is reckoned."""


@dataclass(frozen=True)
class Errors:
    """What lies between a number and the truth about these people."""

    sampling: float
    scales: tuple[float, ...]
    """Of its independent Laplace noises."""
    ends: Ends
    """What the truth is besides, beyond the number: between these."""
    rounding: float = 0.0
    """How far the grid can move it, and what is added because few people may carry the weight."""
    share: Share | None = None
    """What it has of a noise that others share,"""
    box: Hashable = None
    """and of which one: two numbers of one box are not independent."""


@dataclass(frozen=True, eq=False)
class Number:
    """One number of the answer to one question."""

    release: Release
    group: int | None = None
    """Which of the private groups,"""
    cell: int | None = None
    """and which of the cells, by their places."""
    is_selected: bool = False
    """Whether it was taken out of an answer that shows some groups only: all of them together lie in their
    intervals, and nothing sharper holds for those that are shown."""

    @cached_property
    def value(self) -> float:
        answer = self._answer
        return float(answer if self.cell is None else list(answer.values())[self.cell])

    @property
    def _answer(self) -> Any:
        """The answer about its group: also where that is left out of what is shown."""
        plan, answer = self.release.plan, self.release.answer
        if self.group is None:
            return answer
        if not self.release.released:  # an answer that needs no data
            rows: Any = answer
            return rows[self.group]["value"]
        return plan.target.finish(self.released, plan.people)

    @property
    def released(self) -> Sequence[Fraction]:
        """What the mechanism released for this group."""
        released = self.release.released
        return released if self.group is None or not released else released[self.group]

    @cached_property
    def identity(self) -> Hashable:
        """What tells this draw from any other."""
        cell = slice(self.cell, None if self.cell is None else self.cell + 1)
        among = None if self.release.among is None else self.release.among.name
        return self.release.draw, among, tuple(self.released[cell]), self.group, self.cell

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.identity == other.identity

    def __hash__(self) -> int:
        if "hashed" not in vars(self):  # fractions take long to hash
            object.__setattr__(self, "hashed", hash(self.identity))
        return int(vars(self)["hashed"])

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: vars(self)[name] for name in ("release", "group", "cell", "is_selected")
        }  # another process hashes anew

    @cached_property
    def about(self) -> tuple[str, str]:
        """Whom it is about: their Spec, or that of all public groups together; and the neighbor relation."""
        plan, among = self.release.plan, self.release.among
        return plan.spec.fingerprint if among is None else among.spec, plan.neighbors

    @property
    def label(self) -> str:
        """What was asked, of which group and cell."""
        query, among = self.release.plan.query, self.release.among
        words = [query.label if self.group is None else query.query.label]
        words += [] if among is None else [among.name]
        words += [] if self.group is None else [query.part.name(query.part.groups[self.group])]
        words += [] if self.cell is None else [f"cell {cells_of(self.release)[self.cell]!r}"]
        return ", ".join(words)

    def interval(self, alpha: float) -> Ends:
        """Its own interval, but for a probability of alpha."""
        if 1 - alpha >= 1:  # nearer to 1 than numbers can tell
            return -inf, inf
        if self.group is None or self.is_selected:
            ends = self.release.interval(1 - alpha)
        else:
            ends = self.release.interval_around(self._answer, self.released, 1 - alpha)
        if self.is_selected:
            ends = ends[self.release.plan.query.part.groups[self.group]]
        if self.cell is not None:
            ends = list(ends.values())[self.cell]
        return float(ends[0]), float(ends[1])

    @cached_property
    def errors(self) -> Errors | None:
        """How far it is from the truth, where that has a known law; None: it has an interval alone."""
        plan = self.release.plan
        if self.is_selected:
            return None
        model, target, people = plan.prediction.error_model, plan.target, plan.people
        if isinstance(model, FixedInterval):
            low, high = self.interval(0.5)
            return Errors(0.0, (), (low - self.value, high - self.value))
        slopes = target.slopes(people) if isinstance(target, Additive) else None
        if not isinstance(model, AroundValue) or slopes is None or plan.method.linear is None:
            return None
        linear = plan.method.linear(plan.calibration, plan.spec.people, target)
        rounding = model.spread.extra + model.spread.step
        on_means = linear.scales.tolist()
        if linear.box is not None:
            assert isinstance(plan.calibration, BoxCalibration)
            effects = [abs(slope) * effect for slope, effect in zip(slopes, linear.box.effects, strict=True)]
            whole = 3 * sum(effects) / MICRO  # of a radius 2 steps, each a span; and one of the number itself
            whole += model.spread.bias
            ends = model.shift[0] - whole, model.shift[1] + whole
            share = Share(linear.box.coordinates, tuple(effects))
            draw = self.release.time, plan.calibration.block, plan.share
            return Errors(model.spread.sampling, (), ends, rounding, share, draw)
        if linear.smallest_scale < _SMALLEST_SCALE or len(slopes) * len(on_means) > _MOST_NOISES:
            return None
        scales = tuple(abs(slope) * scale for slope in slopes if slope for scale in on_means)
        whole = sum(scales) / linear.smallest_scale  # at most, between a whole number and a continuous one
        whole += model.spread.bias
        ends = model.shift[0] - whole, model.shift[1] + whole
        return Errors(model.spread.sampling, scales, ends, rounding)

    @property
    def family(self) -> Hashable | None:
        """The draw of which this is one of several counts or sums; None: of others it is not known."""
        target = self.release.plan.target
        if self.errors is None or (self.group is None and self.cell is None):
            return None
        return self.release.draw if isinstance(target, Total | Cells) else None

    @property
    def memberships(self) -> int:
        """In how many groups and cells of its draw one person may be."""
        target, query = self.release.plan.target, self.release.plan.query
        groups = 1 if self.group is None else query.part.at_most
        return int(groups * (target.cells_each if isinstance(target, Cells) else 1))

    @property
    def rmse_here(self) -> tuple[float, float]:
        """Its root mean squared error about these people: without the noises of a known law, and of those.

        Where its law is known, without its `bias`.
        """
        plan, errors = self.release.plan, self.errors
        _, error = plan.errors_of(self.released) if self._is_judged else (0.0, plan.rmse_here)
        if self.is_selected and isinstance(plan.target, Total):
            return plan.error_of_selected, 0.0
        if errors is None:
            return error, 0.0
        shared = 0.0 if errors.share is None else errors.share.variance
        noise = sqrt(2 * sum(scale**2 for scale in errors.scales) + shared)
        others = sqrt(max(0.0, error**2 - noise**2 - plan.prediction.bias**2))
        return max(others, errors.sampling), noise  # of cells, the error is that of all of them on average

    @property
    def bias(self) -> float:
        """How far off it may be because levels go with values, as declared, where its law is known."""
        model = self.release.plan.prediction.error_model
        return 0.0 if self.errors is None or not isinstance(model, AroundValue) else model.spread.bias

    @property
    def _is_judged(self) -> bool:
        target = self.release.plan.target
        return bool(target.tells_size or target.assumes_spread)

    @property
    def mirrored(self) -> tuple[int, Number] | None:
        """Everyone's number and the other cell, where this one is the former minus the latter."""
        target = self.release.plan.target
        if self.cell != 1 or not isinstance(target, Cells) or not target.complementary:
            return None
        if sum(self.released) != 1:  # each has a noise of its own, or none
            return None
        return self.release.plan.people, replace(self, cell=0)


def refuse_other_people(numbers: Iterable[Number]) -> None:
    """Refuse numbers about several tables, or under several neighbor relations."""
    by_people = {number.about: number for number in numbers}
    if len(by_people) < 2:
        return
    first, second, *_ = by_people.values()
    (spec, relation), (other_spec, other_relation) = first.about, second.about
    if relation != other_relation:
        raise QueryError(
            f"{first.label} was answered under {relation!r}, {second.label} under {other_relation!r}: what "
            "is private differs. Take answers under one neighbor relation."
        )
    raise QueryError(
        f"{first.label} and {second.label} are about other people: their Specs are {spec[:8]}… and "
        f"{other_spec[:8]}…. Take answers about one table and its levels; of public groups, those of one "
        "release: release[key]."
    )


def cells_of(release: Release) -> tuple[Any, ...]:
    """The cells of a histogram; of any other answer, none."""
    asked = release.plan.query
    query: Any = asked.query if isinstance(asked, Grouped) else asked
    return tuple(query.cells) if isinstance(release.plan.target, Cells) else ()


def named(numbers: Iterable[Number]) -> dict[Number, str]:
    """A short name for each number: a, b, c, …, or n1, n2, … where there are more than letters."""
    distinct = list(dict.fromkeys(numbers))
    if len(distinct) <= len(ascii_lowercase):
        return dict(zip(distinct, ascii_lowercase, strict=False))
    return {number: f"n{place}" for place, number in enumerate(distinct, 1)}


def sentences(numbers: Sequence[Number]) -> list[str]:
    """What the interval of a number that is derived from these takes for granted."""
    known = [number.errors for number in numbers if number.errors is not None]
    selected = [number for number in numbers if number.is_selected]
    said = []
    if others := len(numbers) - len(known) - len(selected):
        said.append(
            "the number has no simple law and brings its own interval"
            if len(numbers) == 1
            else f"{others} of the {len(numbers)} numbers have no simple law and bring their own intervals; "
            "the probability of error is split over them"
        )
    if selected:
        said.append(
            "what was taken out of an answer that shows some groups only has the interval that holds for all "
            "groups together; its rmse is for whichever group is taken, as if that were the one that noise "
            "moved most"
        )
    boxes = [errors.box for errors in known if errors.share is not None]
    if len(known) > 1 and (not boxes or len({*boxes}) + len(known) - len(boxes) > 1):
        said.append("noises of different draws are independent")
    if len(boxes) > len({*boxes}):
        said.append("numbers that share one noise are taken together, by the law of that noise")
    weighted = [number for number in numbers if number.errors is not None and number.errors.sampling]
    if len({number.family or number for number in weighted}) > 1:
        said.append(
            "what unequal weights do to several answers may go together: its standard deviations are added up"
        )
    if all(number.release.plan.query.gap is not None for number in numbers):
        bias = "the bias that levels bring which go with values, as far as declared, is in the interval"
    else:
        bias = (
            "the bias that arises when levels go with values is not in the interval: plan.bias_bound tells it"
        )
    return [*said, bias]
