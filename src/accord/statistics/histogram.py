"""How many people lie in each of several declared cells. One person is 1 in one cell, or in none.

Under replace     they may move from one cell to another, so that the counts change by 2 in all. With two
                  cells, in one of which everyone is, one count tells the other, and changes by 1.
Under add-remove  one count changes by 1.

With `at_most=k` somebody whose rows are of several of the m categories is 1 in each of up to k of them.

Under replace     they may be in k categories, and then in k others: the counts change by 2k in all, or by m
                  if there are fewer. Out of k of them into the cell of those who have none, by k + 1.
Under add-remove  k counts change by 1.
Error             of one person, Σp(1 − p) over m cells with Σp ≤ k is at most k(1 − k/m), and m/4 from
                  k = m/2 on; an answer of min(k/m, ½) for each share is off by as much at worst.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from accord import dates
from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.encoding import Kind, OneOf, PerPerson
from accord.statistics.gap import DISTRIBUTIONS, GapScale, WithGap
from accord.statistics.grid import ROWS_COME_TO, read_per_person
from accord.statistics.groups import MOST_FREQUENT, TIES, asked_by_group, part_of
from accord.statistics.keys import (
    By,
    Keys,
    RestLabels,
    described_keys,
    read_at_most,
    read_label,
    read_labels,
    read_list,
)
from accord.statistics.query import Answer, Interval, Query, column_name, exact, number_text
from accord.statistics.statistic import Statistic
from accord.statistics.target_sums import Cells


@dataclass(frozen=True)
class Histogram(WithGap):
    """Numbers of people in cells."""

    statistic = "histogram"
    unit = "per cell"

    column: str
    edges: tuple[Fraction, ...]
    """Of cells [e0, e1), [e1, e2), …, the last one closed; () for categories."""
    categories: tuple[Any, ...]
    missing: int | None
    """The cell of a missing (or undeclared) value; None: in no cell."""
    cells: tuple[Any, ...]
    has_all_values: bool = False
    """Whether it was declared that no value is missing."""
    kind: Kind = "number"
    """What the edges are; of dates and timestamps, seconds since 1970."""
    per_person: PerPerson | None = None
    """Of edges: what a person's rows come to, if the user says so; None: their mean."""
    at_most: int = 1
    """In how many of the categories one person may be."""

    @property
    def label(self) -> str:
        of_rows = f", each person's {self.per_person}" if self.per_person not in (None, "mean") else ""
        several = f" (each in up to {self.at_most})" if self.at_most > 1 else ""
        return f"histogram of {self.column}{of_rows}{several}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def encoding(self) -> OneOf:
        return OneOf(
            self.column,
            self.edges,
            self.categories,
            self.missing,
            len(self.cells),
            self.kind,
            self.per_person or "mean",
            self.at_most,
        )

    @property
    def rows_come_to(self) -> str:
        if self.edges:
            return f"and counts with {ROWS_COME_TO[self.per_person or 'mean']}"
        if self.at_most == 1:
            return f"and is in their most frequent category; {TIES}"
        return f"and is in their {self.at_most} most frequent categories; {TIES}"

    @property
    def chosen(self) -> str:
        return MOST_FREQUENT if self.categories and self.at_most == 1 else ""

    @property
    def needs_rows(self) -> str:
        if self.at_most > 1:
            return f"at_most={self.at_most}"
        return "" if self.per_person is None else f"per_person={self.per_person!r}"

    def under(self, relation: Relation, about_members: bool = False) -> CellsTarget | None:
        return None if about_members else CellsTarget(self, relation)

    def describe(self) -> dict[str, Any]:
        edges = {"edges": [_text(e, self.kind) for e in self.edges]}
        return {
            "statistic": self.statistic,
            "column": self.column,
            **(edges if self.edges else {"categories": described_keys(self.categories)}),
            "missing": self._missing_word,
            **({"per_person": self.per_person} if self.per_person not in (None, "mean") else {}),
            **({"at_most": self.at_most} if self.at_most > 1 else {}),
            **self.described_gap(),
        }

    @property
    def gap_scale(self) -> GapScale:
        return DISTRIBUTIONS

    @property
    def _missing_word(self) -> Any:
        if self.missing is None:
            return "exclude" if self.edges else None
        return "none" if self.has_all_values else self.cells[self.missing]

    def with_all_values(self, columns: Collection[str] | None = None) -> Histogram | None:
        is_known = columns is None or self.column in columns
        if not self.edges or self.missing is not None or not is_known:
            return None
        return replace(self, missing=_middle_cell(self.edges), has_all_values=True)

    def assumptions(self) -> list[str]:
        declared = f"the {len(self.cells)} cells were declared, not taken from the data"
        if self.edges:
            declared += "; values outside the edges count in the end cells"
        several = f"a person may be in up to {self.at_most} of the cells, and is charged for all of them"
        return [
            declared,
            self._about_missing(),
            *([several] if self.at_most > 1 else []),
            "the shares of the cells are taken to be equal, which is the hardest case",
        ]

    def _about_missing(self) -> str:
        if self.edges and self.missing is None:
            return "people without a value are in no cell; how many is private"
        cell = "no cell" if self.missing is None else f"the cell {self.cells[self.missing]!r}"
        if self.has_all_values:
            return f"no value is missing, as declared; a stray one would count in {cell}"
        missing = "missing values" if self.edges else "missing and undeclared values"
        return f"{missing} count in {cell}"


@dataclass(frozen=True)
class CellsTarget(Cells):
    """Of everyone, or of the people who are there."""

    query: Histogram

    @property
    def outputs(self) -> int:
        return len(self.query.cells)

    @property
    def cells_each(self) -> int:
        return self.query.at_most

    @property
    def complementary(self) -> bool:
        everyone_is_in_one = self.query.missing is not None and self.cells_each == 1
        return self.outputs == 2 and everyone_is_in_one and self.relation.people_are_public

    @property
    def sensitivity(self) -> int:
        if self.cells_each == 1:
            return 1 if self.complementary else self.relation.cells_changed
        if not self.relation.people_are_public:
            return self.cells_each
        declared = len(self.query.categories)
        has_cell_of_others = self.outputs > declared
        return max(min(2 * self.cells_each, declared), self.cells_each + has_cell_of_others)

    @property
    def kept_sensitivity(self) -> int:
        return self.cells_each

    @property
    def kept_noise_variance(self) -> float:
        return self.outputs * 2.0 / float(self.relation.inner) ** 2

    @property
    def kept_square(self) -> float:
        return float(self.cells_each)

    @property
    def _cells_at_worst(self) -> float:
        """In how many cells a person is on average, in the hardest case."""
        return min(self.cells_each, self.outputs / 2)

    @property
    def variance(self) -> float:
        return self._cells_at_worst * (1 - self._cells_at_worst / self.outputs)  # Σp(1−p), p unknown

    @property
    def noise_variance(self) -> float:
        return self.outputs * 2.0 * self.sensitivity**2

    @property
    def max_variance(self) -> float:
        return 0.25

    @property
    def midpoint_error(self) -> float:
        return self.variance  # everyone in the same cells, when all were said to hold as many

    def middle(self, people: int) -> Answer:
        return dict.fromkeys(self.query.cells, people * self._cells_at_worst / self.outputs)

    def possible(self, people: int) -> Interval:
        return dict.fromkeys(self.query.cells, (0.0, float(people)))

    def slopes(self, people: int) -> tuple[float, ...] | None:
        return (float(people),)

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return {cell: float(people * mean) for cell, mean in zip(self.query.cells, released, strict=True)}


@asked_by_group
def histogram(
    column: str,
    edges: Iterable[Any] | None = None,
    categories: Iterable[Any] | None = None,
    missing: Any = "exclude",
    *,
    where: str | None = None,
    by: By = None,
    keys: Keys = None,
    membership: str = "private",
    at_most: int = 1,
    suppress: bool | None = None,
    rest: RestLabels = None,
    gap: float | None = None,
    about: str | None = None,
    per_person: str | None = None,
) -> Query[dict[Any, float]]:
    """How many people lie in each cell. Cells are declared, never taken from the data.

    Args:
        column: a column of numbers, dates or timestamps (with edges), or of anything that can be listed (with
            categories).
        edges: ascending numbers, dates or timestamps: cells [e0, e1), [e1, e2), …, the last one closed.
            Values outside count in the end cells.
        categories: the values to count.
        missing: the cell for missing values (and for values that are not declared): one of the cells, or a
            new name. By default ("exclude") such people are in no cell. With edges also "none": no value is
            missing, as is publicly known; a stray one counts in the "middle" cell.
        where, by, keys, membership, suppress, rest, gap, about: of whom: see `accord.mean`. The gap is the
            total variation of two levels' distributions, between 0 and 1.
        at_most: in how many categories (with `by`, groups) one person may be, where people have several rows:
            their most frequent ones. The more, the noisier.
        per_person: with edges, what a person's rows come to: their "mean", "sum", "min" or "max".

    >>> histogram("age", edges=[0, 18, 65, 100]).cells
    ('[0, 18)', '[18, 65)', '[65, 100]')
    >>> histogram("day", edges=["2026-01-01", "2026-02-01", "2026-03-01"]).cells
    ('[2026-01-01, 2026-02-01)', '[2026-02-01, 2026-03-01]')
    """
    name = column_name(column)
    if (edges is None) == (categories is None):
        raise QueryError(
            "a histogram takes edges= or categories=, one of them. "
            "Declare the cells; they are never taken from the data."
        )
    ends: tuple[Fraction, ...] = ()
    kind: Kind = "number"
    values: tuple[Any, ...] = ()
    missing_cell = None
    is_declared = isinstance(missing, str) and missing == "none" and edges is not None
    if edges is None:
        cells = values = read_categories(categories, "a histogram")
    else:
        kind, ends = _read_edges(edges)
        starts = [f"[{_text(a, kind)}, {_text(b, kind)}" for a, b in pairwise(ends)]
        cells = (*(f"{start})" for start in starts[:-1]), f"{starts[-1]}]")
    if ends and isinstance(missing, str) and missing in ("none", "middle"):
        missing_cell = _middle_cell(ends)
    elif missing is not None and not (isinstance(missing, str) and missing == "exclude"):
        label = read_label(missing)
        is_truth = isinstance(label, bool)  # True equals 1, and is another cell
        same = [k for k, cell in enumerate(cells) if cell == label and isinstance(cell, bool) == is_truth]
        if not same:
            cells = (*cells, label)
        missing_cell = same[0] if same else len(cells) - 1
    if len({str(cell) for cell in cells}) < len(cells):
        raise QueryError(
            "two cells of the histogram are written alike. Give each cell, and missing=, a name of its own."
        )
    if per_person is not None and values:
        raise QueryError(
            f"per_person={per_person!r} is for edges. Somebody whose rows are of several categories is in "
            "their most frequent one, or with at_most= in several. Leave it out."
        )
    of_rows = None if per_person is None else read_per_person(per_person, kind)
    most = 1
    if values and by is None:
        most, at_most = read_at_most(at_most, len(values), "categories"), 1
    query = Histogram(name, ends, values, missing_cell, cells, is_declared, kind, of_rows, most)
    return part_of(query, where, by, keys, membership, at_most, suppress, rest, gap, about)


def _middle_cell(edges: tuple[Fraction, ...]) -> int:
    """The cell in which the middle of the edges lies."""
    centre = (edges[0] + edges[-1]) / 2
    return next(k for k, end in enumerate(edges[1:]) if centre < end)


def _text(edge: Fraction, kind: Kind) -> str:
    return number_text(edge) if kind == "number" else str(dates.from_seconds(edge, kind))


def _read_edges(edges: Any) -> tuple[Kind, tuple[Fraction, ...]]:
    """What kind of values the edges are of, and the edges as numbers."""
    given = [dates.moment_or_other(edge, "an edge") for edge in read_list(edges, "edges")]
    kinds = {dates.kind_of(edge) for edge in given} or {"number"}
    if len(kinds) > 1:
        raise QueryError("edges= are of several kinds. Give only numbers, only dates, or only timestamps.")
    kind: Kind = kinds.pop()
    ends = tuple(
        exact(edge, "an edge") if kind == "number" else dates.seconds(edge, kind, "an edge") for edge in given
    )
    if len(ends) < 3 or any(a >= b for a, b in pairwise(ends)):
        order = " that are not in ascending order" if len(ends) > 2 else ""
        raise QueryError(
            f"a histogram got {len(ends)} edges{order}. "
            "It needs at least three, in ascending order, such as edges=[0, 18, 65, 100]."
        )
    return kind, ends


def read_categories(categories: Any, whose: str) -> tuple[Any, ...]:
    """The declared categories of a histogram, or of a feature of a regression."""
    labels = read_labels(categories, "categories", f"{whose}'s categories")
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise QueryError(
            f"{whose} got {len(labels)} categories, {len(set(labels))} of them different. "
            "It needs at least two, each once; for one, ask accord.count(where=…)."
        )
    return labels


HISTOGRAM = Statistic(
    "histogram", histogram, Cells, ("column", "edges", "categories", "missing", "per_person")
)
