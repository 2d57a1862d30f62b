"""What can be reckoned with: answers, and what is derived from them, with `+`, `-`, `*` and `/`."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

if TYPE_CHECKING:
    from accord.release.derived import Derived, Ratio

PublicNumber: TypeAlias = int | float | Fraction | Decimal
"""A number that is in no answer, such as the 100 of per cent."""


class Arithmetic:
    """Sums, differences and ratios of released numbers: post-processing, which costs nobody anything.

    Of a release of several numbers, take one: `release[key]`.
    """

    __array_ufunc__: ClassVar[None] = None  # numpy leaves `np.float64(2) * release` to `__rmul__`
    __iter__: ClassVar[None] = None  # that there is a `__getitem__` does not make it a list

    def __add__(self, other: Arithmetic | PublicNumber) -> Derived:
        return as_number(self).plus(as_number(other))

    def __radd__(self, other: PublicNumber) -> Derived:
        return as_number(other).plus(as_number(self))

    def __sub__(self, other: Arithmetic | PublicNumber) -> Derived:
        return as_number(self).plus(as_number(other).times(-1))

    def __rsub__(self, other: PublicNumber) -> Derived:
        return as_number(other).plus(as_number(self).times(-1))

    def __neg__(self) -> Derived:
        return as_number(self).times(-1)

    def __pos__(self) -> Derived:
        return as_number(self)

    def __mul__(self, other: PublicNumber) -> Derived:
        return as_number(self).times(other)

    def __rmul__(self, other: PublicNumber) -> Derived:
        return as_number(self).times(other)

    @overload
    def __truediv__(self, other: Arithmetic) -> Ratio: ...

    @overload
    def __truediv__(self, other: PublicNumber) -> Derived: ...

    def __truediv__(self, other: Any) -> Any:
        number = as_number(self)
        return number.over(as_number(other)) if isinstance(other, Arithmetic) else number.divided(other)

    def __rtruediv__(self, other: PublicNumber) -> Ratio:
        return as_number(other).over(as_number(self))

    def ratio(self, other: Arithmetic | PublicNumber) -> Ratio:
        """This number divided by another, with an interval that holds for the ratio."""
        return as_number(self).over(as_number(other))


def as_number(answer: Any) -> Derived:
    """A released number, what was derived, or a public number; refused if it is of several."""
    from accord.release.picking import single_number

    return single_number(answer)
