"""How many people to expect, chosen from a public list, where levels are private and the size is unknown.

Guarantee  Of the sizes k the Spec expected·k has the best τ_k (theory.clip, for the question's v/σ²). One is
           chosen with P(k) ∝ exp(−λ·|f(τ_k) − v/σ²|/(2τ_k)), f(τ) = Σ ε(τ − ε)₊ over those who are there: τ
           is right for them where f(τ) = v/σ². A record of level ε that comes or goes moves f(τ_k)/τ_k by
           ε(1 − ε/τ_k)₊, so that it loses at most λ·ε(1 − ε/T)₊, T the largest τ_k: half of it in the weight
           of a size, half in the sum of all weights. λ ≤ share is so small that this is at most share·ε,
           rounded down, for each level on the menu. Who is public, or allows T, loses nothing.
Charge     c(ε) = λ·ε(1 − ε/T)₊, rounded up: a function of the menu and of what is expected.
Afterwards a release by `affine` at another share is charged min(share'·ε, τ): in all, as much as both.
Exact      Levels and τ are whole millionths, scores whole numbers, v/σ² and λ rational; the choice is that
           of `noise.choose`.
Error      The better choice has n about as large as it should be, up to a factor that is small where a good
           many people are clipped; docs/private-levels.md has what it is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from math import floor, inf, lcm
from typing import TYPE_CHECKING, Any

import numpy as np

import accord
from accord import planning, relation
from accord.budget import LARGEST, MICRO, IntArray, level_text, to_float
from accord.errors import PlanError, QueryError, SpecError
from accord.people.spending import Charged
from accord.release.deciding import signed
from accord.release.receipt import SCHEMA, charges_document
from accord.release.release import book, charged, remember
from accord.release.result import Booked
from accord.spec import Spec
from accord.statistics import Query
from accord.statistics.mean import Mean
from accord.theory import as_floats, clip

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.noise import Noise
    from accord.people.reader import Reader
    from accord.people.table import Table

MECHANISM = "expected size"
"""What receipts call it in the place of a mechanism's name."""
SIZES = tuple(round(10 ** (k / 4), 3) for k in range(-12, 13))
"""From a thousandth to a thousand times as many as were expected, by factors of 1.8."""
_MOST_SIZES = 1_000


@dataclass(frozen=True, eq=False)
class Choice:
    """Which sizes there are to choose from, what a choice costs, and how likely each is."""

    specs: tuple[Spec, ...]
    """For how many to plan, ascending."""
    taus: tuple[int, ...]
    """The best τ of each, in millionths."""
    ratio: Fraction
    """v/σ² of the question."""
    rate: Fraction
    """λ."""
    cost: IntArray = field(repr=False)
    """What each level of the menu is charged, in millionths."""

    @property
    def scale(self) -> int:
        """Of the scores."""
        return 2 * self.rate.denominator * self.ratio.denominator * MICRO**2 * lcm(*self.taus)

    def scores(self, people: Sequence[int]) -> list[int]:
        """Of each size a whole number: P ∝ exp(score/scale). `people`: how many are there, by level."""
        menu, common, denominator = self.specs[0].micro.tolist(), lcm(*self.taus), self.ratio.denominator
        scores = []
        for tau in self.taus:
            f = sum(n * e * (tau - e) for n, e in zip(people, menu, strict=True) if e < tau)
            off = abs(denominator * f - self.ratio.numerator * MICRO**2)  # in 10⁻¹²/denominator
            # λ·|f − r|/(2τ): everything over the scale, with τ = tau/10⁶
            scores.append(-self.rate.numerator * off * MICRO * (common // tau))
        return scores


def choice(expected: Spec, query: Query | None, share: float, sizes: Sequence[float]) -> Choice:
    """What there is to choose from; refuses what is nothing to choose. Sees nobody."""
    fraction, factors = planning.whole_share(share), _checked_sizes(sizes)
    if query is not None and not isinstance(query, Mean):
        raise QueryError(
            f"a size is chosen for a mean, not for the {query.label}. Give a mean of the same column, or "
            "leave the question out: it is then for a mean of the largest standard deviation."
        )
    ratio = Fraction(8) if query is None else 2 / (Fraction(query.sigma) / Fraction(query.width)) ** 2
    specs: list[Spec] = []
    taus: list[int] = []
    for factor in factors:
        people = np.maximum(1, np.floor(expected.people * factor)).astype(np.int64)
        tau = clip(as_floats(expected.micro), people, float(ratio))
        whole = LARGEST if tau == inf else max(1, min(floor(tau * MICRO), LARGEST))
        numbers = np.append(people, expected.opted_out)
        spec = Spec(np.append(expected.micro, 0), numbers, expected.tiers, is_expected=True)
        if taus and taus[-1] == whole:  # the smaller size is no other choice
            specs[-1] = spec
            continue
        specs.append(spec)
        taus.append(whole)
    largest = max(taus)
    below = [e for e in expected.micro.tolist() if e < largest]
    if len(taus) < 2 or not below:
        raise PlanError(
            "every size has the same τ here, so that there is nothing to choose: nobody's charge would be "
            "another. Plan with expected= as it is. Nothing was spent."
        )
    moves = {e: Fraction(e * (largest - e), largest) for e in below}  # ε(1 − ε/T), in millionths
    rate = min(Fraction(fraction, MICRO), *(e * fraction // MICRO / move for e, move in moves.items()))
    if rate <= 0:
        raise PlanError(
            f"share={share:g} of level {level_text(below[0])} is less than a millionth, so that a choice "
            "would follow from nobody. Ask for a larger share."
        )
    cost = np.array([-floor(-rate * moves.get(e, 0)) for e in expected.micro.tolist()], dtype=np.int64)
    return Choice(tuple(specs), tuple(taus), ratio, rate, cost)


def _checked_sizes(sizes: Sequence[float]) -> list[float]:
    try:
        factors = sorted({float(size) for size in sizes})
    except (TypeError, ValueError):
        factors = []
    if not 2 <= len(factors) <= _MOST_SIZES or not all(1e-6 <= size <= 1e6 for size in factors):
        raise QueryError(
            f"sizes={sizes!r}: 2 to {_MOST_SIZES:,} numbers from a millionth to a million, such as (0.1, 1, "
            "10), as multiples of how many are expected. They are public."
        )
    return factors


@dataclass(frozen=True, eq=False)
class SizeChoice:
    """How many people to plan for, chosen privately. Made by `Table.expect`."""

    people: Table
    """The same people, opened with the size that was chosen as what is expected."""
    expected: Spec
    tau: float
    """The best τ for as many."""
    share: float
    cost: IntArray = field(repr=False)
    time: datetime
    sizes: tuple[int, ...]
    """How many people each size is that there was to choose from."""
    booked: Booked | None = None

    @property
    def charges(self) -> dict[float, float]:
        """What each level is charged for the choice."""
        return {to_float(e): to_float(c) for e, c in zip(self._menu, self.cost.tolist(), strict=True)}

    @property
    def _menu(self) -> list[int]:
        menu: list[int] = self.expected.micro.tolist()
        return menu

    def receipt(self) -> dict[str, Any]:
        """The receipt: plain data, the same fields as of other releases."""
        return {
            "schema": SCHEMA,
            "accord": accord.__version__,
            "time": self.time.isoformat(),
            "query": {"statistic": "expected size", "sizes": list(self.sizes)},
            "mechanism": MECHANISM,
            "neighbors": relation.PRIVATE_LEVELS.name,
            "share": f"{self.share:g}",
            "charges": charges_document(self.expected, self.cost),
            "rmse": None,
            "value": self.expected.total,
            "assumptions": [
                "the parts of the levels are as expected, and the number of people is one of those listed",
                "what is chosen is good for the error of what follows, and no estimate of how many there are",
            ],
            "interval": None,
            **({} if self.booked is None else {"ledger": vars(self.booked)}),
        }

    def __str__(self) -> str:
        most = max(self.cost.tolist())
        return (
            f"planned is for {self.expected.total:,} people, one of {len(self.sizes)} sizes from "
            f"{self.sizes[0]:,} to {self.sizes[-1]:,}: τ = {self.tau:.6g}. The choice cost nobody more than "
            f"{level_text(most)}, and share={self.share:g} of their level; it is no estimate of how many "
            "there are. Go on with .people, and with what is left of the share."
        )

    def __repr__(self) -> str:
        return f"<SizeChoice: {self.expected.total} people, τ = {self.tau:.6g}>"


def choose_size(
    table: Table,
    query: Query | None,
    share: float,
    sizes: Sequence[float],
    ledger: Ledger | None,
    actor: str | None,
    purpose: str | None,
    noise: Noise,
) -> SizeChoice:
    """Reserve or remember, read how many have which level, choose, commit: see `Table.expect`."""
    if relation.named(table.neighbors).levels_are_public:
        raise SpecError(
            "it is known here how many people have which level: table.spec() says so. A size is chosen where "
            "levels are private (levels='private', expected=)."
        )
    ledger = table.own_ledger() if ledger is None else ledger
    signature = signed(ledger, actor, purpose)
    expected = table.spec()
    offered = choice(expected, None if query is None else table.described(query), share, sizes)
    counted = planning.plan(expected, accord.count(), "minimum").as_read
    if ledger is None:
        remember(table, [(table.reader.group, Charged(expected.micro, offered.cost))])
        return _chosen(table, offered, share, _people(table.reader, counted), noise)
    from accord.ledger import charging

    reservation = charging.reserve_levels(ledger.books, table, offered.cost, MECHANISM, signature)
    with charged(ledger, [reservation]):
        done = _chosen(table, offered, share, _people(table.reader, counted), noise)
        answered = charging.Answered([done.receipt()], [])
    (entry,) = book(ledger, [(reservation, answered)])
    return replace(done, booked=Booked(entry.seq, entry.hash))


def _people(reader: Reader, counted: Query) -> list[int]:
    """How many have each level of the menu."""
    (summary,) = reader.summaries(counted)
    people = np.zeros(summary.people.size, dtype=np.int64)
    is_count = summary.output == 0
    np.add.at(people, summary.level[is_count], summary.amount[is_count])
    counts: list[int] = people.tolist()
    return counts


def _chosen(table: Table, offered: Choice, share: float, people: list[int], noise: Noise) -> SizeChoice:
    at = noise.choose(np.array(offered.scores(people), dtype=object), offered.scale)
    expected, sizes = offered.specs[at], tuple(spec.total for spec in offered.specs)
    tau = to_float(offered.taus[at])
    return SizeChoice(table.expecting(expected), expected, tau, share, offered.cost, datetime.now(UTC), sizes)
