"""Gap: how far levels go with values, as declared: what means of two levels differ by, at most.

People who choose a level may differ from those who choose another. Then a mean in which some weigh more than
others is off, however many people there are: with weights w_i of n people by at most κ·D, κ = Σ(w_i − 1/n)₊,
if the means of any two levels differ by at most D. D is public knowledge, like bounds: nothing here looks at
values. docs/proofs/gap.md has the proofs.

    means, sums             D in the column's units: of what people add, so that whoever adds 0 counts, too
    proportions, counts     the difference of two levels' shares, 0 … 1
    histograms, variances,  the total variation of two levels' distributions, 0 … 1: what share of the people
    covariances             of one level would have to change for it to look like the other
    quantiles, min, max     the largest difference of two levels' distribution functions, in percentile points

Of members of a private part, D is about levels among these.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar

from accord.errors import QueryError
from accord.statistics.query import A, Query, exact, number_text

EVERYONE = "everyone"
"""What `about=` may be."""


@dataclass(frozen=True)
class GapScale:
    """What a gap of a question is about, and in which unit."""

    most: Fraction
    """The largest that there can be,"""
    compared: str = "shares"
    """what of two levels is compared, in the plural,"""
    unit: str = ""
    """the unit, in words; empty: of values or shares,"""
    of_most: str = ""
    """what `most` is; empty: it goes without saying,"""
    factor: Fraction = Fraction(1)
    """and what it is multiplied by to be on the scale of a target's `variance`."""

    def text(self, gap: float | Fraction) -> str:
        """A gap in words.

        >>> GapScale(Fraction(200_000), "means", of_most="the bounds").text(4800)
        '4,800 (2.4 % of the bounds)'
        """
        number = f"{float(gap):,.4g}" if float(gap) < 1000 else f"{float(gap):,.0f}"
        percent = 100 * float(gap) / float(self.most)
        rounded = f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
        share = f" ({rounded} % of {self.of_most})" if self.of_most else ""
        return number + (f" {self.unit}" if self.unit else "") + share


def of_values(most: Fraction, compared: str = "means") -> GapScale:
    """Of values between bounds that lie so far apart."""
    return GapScale(most, compared, of_most="the bounds")


DISTRIBUTIONS = GapScale(Fraction(1), "distributions", "in total variation")
RANKS = GapScale(Fraction(100), "distribution functions", "percentile points", factor=Fraction(1, 100))
SHARES = GapScale(Fraction(1))


@dataclass(frozen=True)
class WithGap(Query[A]):
    """A question of which a gap may be declared."""

    gap: Fraction | None = field(default=None, kw_only=True)
    about_everyone: bool = field(default=False, kw_only=True)

    def described_gap(self) -> dict[str, Any]:
        """What is declared, as plain data."""
        return {
            **({} if self.gap is None else {"gap": number_text(self.gap)}),
            **({"about": EVERYONE} if self.about_everyone else {}),
        }


_Q = TypeVar("_Q", bound=Query)


def with_gap(query: _Q, gap: Any, about: Any) -> _Q:
    """The question with a declared gap, if there is one; and about everyone, if that is asked.

    Raises:
        QueryError: a gap that is none, or that nothing is known about here; or everyone without a gap.
    """
    if about not in (None, EVERYONE):
        raise QueryError(
            f"about={about!r} is not offered. An answer is about all who have not opted out; "
            f"about={EVERYONE!r} has those who did in it as well."
        )
    if gap is None:
        if about == EVERYONE:
            raise QueryError(
                "about='everyone' needs gap=: those who opted out are never read, so that only a public "
                "bound of how far they may differ tells anything about them. docs/gap.md says how to choose "
                "one."
            )
        return query
    scale = query.gap_scale
    if scale is None or not isinstance(query, WithGap):
        raise QueryError(
            f"gap= is not for a {query.statistic}: how far it may be off where levels go with values, no gap "
            "between levels bounds. Leave it out."
        )
    distance = exact(gap, "gap")
    if not 0 <= distance <= scale.most:
        raise QueryError(
            f"gap={number_text(distance)} is not possible: {scale.compared} of two levels differ by 0 to "
            f"{number_text(scale.most)} here"
            + (f" ({scale.unit})" if scale.unit else "")
            + ". Declare how far they may lie apart, or leave it out."
        )
    return replace(query, gap=distance, about_everyone=about == EVERYONE)
