"""How many people lie in each of several declared cells.

One person is 1 in one cell, or in none. Under replace they may move from one cell to another, so that the
counts change by 2 in all; with two cells and a public number of people one count tells the other, and changes
by 1. Under add-remove one count changes by 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from accord.errors import QueryError
from accord.relation import Relation
from accord.statistics.encoding import OneOf
from accord.statistics.groups import label_of, listed, part_of
from accord.statistics.query import Answer, Interval, Query, column_name, exact, number_text
from accord.statistics.record import Statistic
from accord.statistics.target import Cells


@dataclass(frozen=True)
class Histogram(Query):
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

    @property
    def label(self) -> str:
        return f"histogram of {self.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def encoding(self) -> OneOf:
        return OneOf(self.column, self.edges, self.categories, self.missing, len(self.cells))

    @property
    def rows_come_to(self) -> str:
        if self.edges:
            return "and counts with the mean of their rows"
        return "and is in the first declared category that any of their rows has"

    def under(self, relation: Relation, about_members: bool = False) -> CellsTarget | None:
        return None if about_members else CellsTarget(self, relation)

    def describe(self) -> dict[str, Any]:
        by = (
            {"edges": [number_text(e) for e in self.edges]}
            if self.edges
            else {"categories": list(self.categories)}
        )
        return {
            "statistic": self.statistic,
            "column": self.column,
            **by,
            "missing": None if self.missing is None else self.cells[self.missing],
        }

    def assumptions(self) -> list[str]:
        what = "missing values" if self.edges else "missing and undeclared values"
        return [
            f"the {len(self.cells)} cells were declared, not taken from the data"
            + ("; values outside the edges count in the end cells" if self.edges else ""),
            f"{what} count in "
            + ("no cell" if self.missing is None else f"the cell {self.cells[self.missing]!r}"),
            "the shares of the cells are taken to be equal, which is the hardest case",
        ]


@dataclass(frozen=True)
class CellsTarget(Cells):
    """Of everyone, or of the people who are there."""

    query: Histogram

    @property
    def outputs(self) -> int:
        return len(self.query.cells)

    @property
    def complementary(self) -> bool:
        return self.outputs == 2 and self.query.missing is not None and self.relation.people_are_public

    @property
    def sensitivity(self) -> int:
        return 1 if self.complementary else self.relation.cells_changed

    @property
    def kept_sensitivity(self) -> int:
        return 1

    @property
    def kept_noise_variance(self) -> float:
        return self.outputs * 2.0 / float(self.relation.inner) ** 2

    @property
    def kept_square(self) -> float:
        return 1.0

    @property
    def variance(self) -> float:
        return 1 - 1 / self.outputs  # Σp(1−p) for unknown shares, at worst

    @property
    def noise_variance(self) -> float:
        return self.outputs * 2.0 * self.sensitivity**2

    @property
    def max_variance(self) -> float:
        return 0.25

    @property
    def midpoint_error(self) -> float:
        return 1 - 1 / self.outputs  # everyone in one cell, when all were said to hold the same

    def middle(self, people: int) -> Answer:
        return dict.fromkeys(self.query.cells, people / self.outputs)

    def possible(self, people: int) -> Interval:
        return dict.fromkeys(self.query.cells, (0.0, float(people)))

    def finish(self, released: Sequence[Fraction], people: int) -> Answer:
        return {cell: float(people * mean) for cell, mean in zip(self.query.cells, released, strict=True)}


def histogram(
    column: str,
    edges: Iterable[float] | None = None,
    categories: Iterable[Any] | None = None,
    missing: Any = None,
    *,
    where: str | None = None,
    by: str | None = None,
    keys: Iterable[Any] | None = None,
    membership: str = "private",
) -> Query:
    """How many people lie in each cell. Cells are declared, never taken from the data.

    Args:
        column: a column of numbers (with edges), or of anything that can be listed (with categories).
        edges: ascending numbers: cells [e0, e1), [e1, e2), …, the last one closed. Values outside count in
            the end cells.
        categories: the values to count.
        missing: the cell for missing values (and for values that are not declared): one of the cells, or a
            new name. By default the cell in the middle of the edges; with categories, such people are in no
            cell.
        where, by, keys, membership: of whom: see `accord.mean`.

    >>> histogram("age", edges=[0, 18, 65, 100]).cells
    ('[0, 18)', '[18, 65)', '[65, 100]')
    """
    name = column_name(column)
    if (edges is None) == (categories is None):
        raise QueryError(
            "a histogram takes edges= or categories=, one of them. Declare the cells; they are never taken "
            "from the data."
        )
    if edges is not None:
        bounds = tuple(exact(e, "an edge") for e in listed(edges, "edges"))
        if len(bounds) < 3 or any(a >= b for a, b in pairwise(bounds)):
            raise QueryError(
                f"a histogram got {len(bounds)} edges"
                + (" that are not in ascending order" if len(bounds) > 2 else "")
                + ". It needs at least three, in ascending order, such as edges=[0, 18, 65, 100]."
            )
        texts = [number_text(b) for b in bounds]
        cells: tuple[Any, ...] = tuple(f"[{a}, {b})" for a, b in pairwise(texts))
        cells, named = (*cells[:-1], f"{cells[-1][:-1]}]"), ()
        centre = (bounds[0] + bounds[-1]) / 2
        default: int | None = next(k for k, b in enumerate(bounds[1:]) if centre < b)
    else:
        bounds, default = (), None
        cells = named = categories_of(categories)
    if missing is not None and not (missing == "middle" and bounds):
        label = label_of(missing)
        same = [
            k for k, c in enumerate(cells) if c == label and isinstance(c, bool) == isinstance(label, bool)
        ]
        if not same:
            cells = (*cells, label)
        default = same[0] if same else len(cells) - 1
    if len({str(c) for c in cells}) < len(cells):
        raise QueryError(
            "two cells of the histogram are written alike. Give each cell, and missing=, a name of its own."
        )
    return part_of(Histogram(name, bounds, named, default, cells), where, by, keys, membership)


def categories_of(given: Any, of: str = "a histogram") -> tuple[Any, ...]:
    cells = tuple(label_of(c) for c in listed(given, "categories"))
    if len({bool if isinstance(c, bool) else str if isinstance(c, str) else float for c in cells}) > 1:
        raise QueryError(
            f"{of}'s categories are of several kinds. Give only texts, only numbers, or only True and False."
        )
    if len(cells) < 2 or len(set(cells)) < len(cells):
        raise QueryError(
            f"{of} got {len(cells)} categories, {len(set(cells))} of them different. It needs at least two, "
            "each once; "
            "for one, ask accord.count(where=…)."
        )
    return cells


HISTOGRAM = Statistic("histogram", histogram, Cells, ("column", "edges", "categories", "missing"))
