"""Derived: answers from answers, free of charge: sums, differences and ratios of released numbers.

Privacy   everything here is post-processing: it sees releases alone, reads nothing and books nothing.
Derived   Σ k·number + constant, with exact rational k. The same draw twice is one number (numbers.py): a − a
          is 0, without noise.
Interval  about these very people, from the joint law of the numbers (joint.py).
Ratio     of two such: the r for which 0 is in the interval of numerator − r·denominator, at the same
          confidence (Fieller 1954). For the true ratio it is, with this probability, whatever the true
          denominator other than 0 is.
          With ends low(r) ≤ high(r): Laplace and normal laws and that of a box, whose density is
          exp(−max|z_k|) and thus log-concave too, are symmetric, so that half the width of an interval is a
          norm of the coefficients (Bobkov 2010); `high` is convex in r and `low`
          concave. Where the denominator's own interval does not hold 0, say it is positive, high falls from
          ∞ to −∞ and crosses 0 once, and so does low: the set is an interval, whose ends are found by
          bisection. Else it is not bounded, and all that is said is (−∞, ∞).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite, nan, sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from accord.errors import QueryError
from accord.release.arithmetic import Arithmetic, PublicNumber
from accord.release.joint import Joint, crossing
from accord.release.numbers import Number, refuse_other_people
from accord.release.result import refuse_confidence
from accord.statistics import Ends
from accord.statistics.query import exact

_LARGEST = Fraction(10) ** 100
Terms: TypeAlias = tuple[tuple[Fraction, Number], ...]


class FromAnswers(ABC):
    """A number that follows from released ones, and how it is told."""

    @property
    @abstractmethod
    def numbers(self) -> tuple[Number, ...]:
        """The released numbers that it is derived from, each once."""

    @property
    @abstractmethod
    def value(self) -> float: ...

    @abstractmethod
    def interval(self, confidence: float = 0.95) -> Ends:
        """Where the true number about these people lies, with this confidence."""

    @abstractmethod
    def formula(self, names: Mapping[Number, str]) -> str:
        """How it was derived, with a name for each number."""

    @property
    def charges(self) -> Mapping[float, float]:
        """{level: 0}: nobody is charged for what is derived from answers."""
        levels = {level for number in self.numbers for level in number.release.plan.spec.levels}
        return MappingProxyType(dict.fromkeys(sorted(levels), 0.0))

    def receipt(self) -> dict[str, Any]:
        """What it was derived from, and how: plain data, ready for JSON."""
        from accord.release.receipt import derived_document

        return derived_document(self)

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """A data frame of one row: its formula in words, value, rmse_here (missing for ratios), low, high."""
        from accord.release.tidy import derived_frame

        return derived_frame(self, confidence)

    def plot(self, path: str | Path | None = None) -> Any:
        """The number with its 95 % interval as a picture.

        Returns:
            The figure, which a notebook shows; with a path (.png, .svg, .pdf), where it was written.

        Raises:
            AccordError: matplotlib is not installed (accord[plot]), or the file cannot be written.
        """
        from accord.report.derived import derived_figure
        from accord.report.figures import write

        figure = derived_figure(self)
        return figure if path is None else write(figure, path)

    def __str__(self) -> str:
        from accord.report.derived import derived_text

        return derived_text(self)

    def _repr_html_(self) -> str:
        from accord.report.derived import derived_html

        return derived_html(self)

    def __repr__(self) -> str:
        several = "" if len(self.numbers) == 1 else "s"
        about = f"{self.value:.6g}, from {len(self.numbers)} released number{several}, free of charge"
        return f"<{type(self).__name__}: {about}>"


@dataclass(frozen=True, repr=False)
class Derived(FromAnswers, Arithmetic):
    """A number that follows linearly from released ones: Σ k·number + constant.

    >>> import accord
    >>> people = accord.table({"x": [1, 2, 3, 4], "e": [float("inf")] * 4}, epsilon="e")
    >>> questions = [accord.count(where="x > 1"), accord.count(where="x > 3")]
    >>> answers = people.release(accord.workload(questions))
    >>> (answers[0] - answers[1]).value, (answers[1] / answers[0]).value == 1 / 3
    (2.0, True)
    """

    terms: Terms
    constant: Fraction = Fraction(0)

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(number for _, number in self.terms)

    @property
    def value(self) -> float:
        return float(self.constant + sum(k * Fraction(number.value) for k, number in self.terms))

    @property
    def rmse_here(self) -> float:
        """At most so large is its root mean squared error about these very people.

        Errors that may go together are added up; independent noises, by their squares.
        """
        k = [float(k) for k, _ in self.terms]
        parts = [number.rmse_here for number in self.numbers]
        others = sum(
            abs(k[i]) * parts[i][0] for i, number in enumerate(self.numbers) if number.errors is None
        )
        known = self._joint.added_up(k, {i: parts[i][0] for i, _ in self._joint.known})
        noise = sum((k[i] * parts[i][1]) ** 2 for i, _ in self._joint.known)
        bias = sum(abs(factor) * number.bias for factor, number in zip(k, self.numbers, strict=True))
        return sqrt(known**2 + noise + bias**2) + others

    def interval(self, confidence: float = 0.95) -> Ends:
        """Where the true number about these people lies, with this confidence.

        As for a release: the bias that arises when levels go with values is in it as far as it is declared.
        """
        refuse_confidence(confidence)
        k = [float(k) for k, _ in self.terms]
        return self._joint.ends(k, float(self.constant), 1 - confidence)

    @cached_property
    def _joint(self) -> Joint:
        return Joint(self.numbers)

    def formula(self, names: Mapping[Number, str]) -> str:
        signed = [(k, names[number]) for k, number in self.terms]
        if self.constant or not signed:
            signed.append((self.constant, ""))
        text = ""
        for k, name in signed:
            factor = number_words(abs(k)) if abs(k) != 1 or not name else ""
            words = "·".join(word for word in (factor, name) if word)
            text += f" {'−' if k < 0 else '+'} {words}" if text else f"{'−' if k < 0 else ''}{words}"
        return text

    def plus(self, other: Derived) -> Derived:
        refuse_other_people((*self.numbers[:1], *other.numbers[:1]))  # the others are about the same people
        coefficients = {number: k for k, number in self.terms}
        for k, number in other.terms:
            coefficients[number] = _reckonable(coefficients.get(number, 0) + k)
        terms = tuple((k, number) for number, k in coefficients.items() if k)
        return Derived(terms, _reckonable(self.constant + other.constant))

    def times(self, other: PublicNumber) -> Derived:
        """Multiplied by a public number."""
        if isinstance(other, Arithmetic):
            raise QueryError(
                "a product of two noisy numbers has no known law here. Multiply by public numbers, or take "
                "sums, differences and ratios."
            )
        k = public_number(other)
        terms = tuple((_reckonable(k * each), number) for each, number in self.terms if k)
        return Derived(terms, _reckonable(k * self.constant))

    def divided(self, other: PublicNumber) -> Derived:
        """Divided by a public number."""
        if not (k := public_number(other)):
            raise QueryError("this is a division by 0. Divide by another number.")
        return self.times(1 / k)

    def over(self, other: Derived) -> Ratio:
        """Divided by another one."""
        if not other.terms and not other.constant:
            raise QueryError("the denominator is exactly 0. Divide by another number.")
        refuse_other_people((*self.numbers[:1], *other.numbers[:1]))
        return Ratio(self, other)


def _reckonable(k: Fraction) -> Fraction:
    """A factor, or a constant, that is not too large."""
    if abs(k) > _LARGEST:
        raise QueryError("a factor or a number beyond 1e100 is too large to reckon with. Change the unit.")
    return k


@dataclass(frozen=True, repr=False)
class Ratio(FromAnswers):
    """One derived number divided by another."""

    __array_ufunc__: ClassVar[None] = None

    numerator: Derived
    denominator: Derived

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(dict.fromkeys((*self.numerator.numbers, *self.denominator.numbers)))

    @property
    def value(self) -> float:
        """nan where the denominator comes to exactly 0."""
        below = self.denominator.value
        return self.numerator.value / below if below else nan

    def interval(self, confidence: float = 0.95) -> Ends:
        """Where the true ratio about these people lies, with this confidence.

        (−inf, inf) where the denominator may be 0: no bounded interval would hold then. A ratio has no rmse:
        it may be off by any amount where the denominator is small.
        """
        refuse_confidence(confidence)
        alpha, joint = 1 - confidence, Joint(self.numbers)
        over, above = self._coefficients(self.numerator)
        under, below = self._coefficients(self.denominator)
        signs = [s for s in (1, -1) if joint.is_below_zero([-s * k for k in under], -s * below, alpha)]
        if not signs:
            return -inf, inf

        def difference(r: float, side: int) -> tuple[list[float], float]:
            """Numerator − r·denominator, as if the denominator were positive; `side` −1: the opposite."""
            sign = side * signs[0]
            return [sign * (a - r * b) for a, b in zip(over, under, strict=True)], sign * (above - r * below)

        start = self.value if isfinite(self.value) else 0.0
        high = crossing(lambda r: joint.is_below_zero(*difference(r, 1), alpha), start)
        low = -crossing(lambda r: joint.is_below_zero(*difference(-r, -1), alpha), -start)
        return low, high

    def _coefficients(self, side: Derived) -> tuple[list[float], float]:
        """Of all numbers, in the order of `numbers`; and the constant."""
        given = {number: float(k) for k, number in side.terms}
        return [given.get(number, 0.0) for number in self.numbers], float(side.constant)

    def formula(self, names: Mapping[Number, str]) -> str:
        return " / ".join(
            side.formula(names) if len(side.terms) + bool(side.constant) == 1 else f"({side.formula(names)})"
            for side in (self.numerator, self.denominator)
        )

    def __mul__(self, other: PublicNumber) -> Ratio:
        return Ratio(self.numerator.times(public_number(other)), self.denominator)

    def __rmul__(self, other: PublicNumber) -> Ratio:
        return self * other

    def __neg__(self) -> Ratio:
        return self * -1

    def __truediv__(self, other: PublicNumber) -> Ratio:
        refuse_noisy(other)
        return Ratio(self.numerator.divided(other), self.denominator)

    def __rtruediv__(self, other: PublicNumber) -> Ratio:
        return self.denominator.times(public_number(other)).over(self.numerator)

    def __add__(self, other: Ratio | PublicNumber) -> Ratio:
        if isinstance(other, Ratio):
            rest = self.denominator - other.denominator
            if rest.terms or rest.constant:
                refuse_noisy(other)
            return Ratio(self.numerator + other.numerator, self.denominator)
        return Ratio(self.numerator + self.denominator * public_number(other), self.denominator)

    def __radd__(self, other: PublicNumber) -> Ratio:
        return self + other

    def __sub__(self, other: Ratio | PublicNumber) -> Ratio:
        return self + (-other if isinstance(other, Ratio) else -public_number(other))

    def __rsub__(self, other: PublicNumber) -> Ratio:
        return -self + other


def public_number(x: Any) -> Fraction:
    """A number that is in no answer, by its decimal value."""
    refuse_noisy(x)
    k = exact(x, "what is reckoned with")
    if abs(k) > _LARGEST:
        raise QueryError(f"{x!r} is too large to reckon with: 1e100 is the end. Change the unit.")
    return k


def refuse_noisy(x: object) -> None:
    """Refuse a ratio where it has no known law; and whatever else is noisy beside a ratio."""
    if isinstance(x, FromAnswers | Arithmetic):
        raise QueryError(
            "a ratio is reckoned with public numbers, and with ratios of the same denominator. Reckon with "
            "the released numbers first, and take the ratio last."
        )


def number_words(k: Fraction) -> str:
    """A factor or a constant, for reading."""
    return str(k.numerator) if k.denominator == 1 else f"{float(k):g}"
