"""What a SELECT is answered with: a row for each group, a column for each aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accord.errors import AccordError, QueryError, did_you_mean
from accord.release.result import Release
from accord.release.tidy import PERCENTILES
from accord.statistics import Grouped
from accord.statistics.select import Selected

LEFT_OUT, FEW, NOBODY = "left out: drowns in noise", "too few people to tell", "nobody is there to ask"
_NO_ENDS = (None, None)


@dataclass(frozen=True)
class Cell:
    """One answer: of one aggregate, about one group."""

    value: Any
    """None: there is none."""
    interval: tuple[Any, Any] | None = None
    """In values."""
    percentiles: tuple[float, float] | None = None
    """Of medians, quantiles, MIN and MAX: between which percentiles of the people the answer lies."""
    note: str | None = None
    """Why there is no answer, or that there are too few people to tell."""

    @property
    def is_marked(self) -> bool:
        """Whether something is to be said about an answer that there is."""
        return self.note is not None and self.value is not None


_LEFT_OUT = Cell(None, note=LEFT_OUT)


@dataclass(frozen=True, repr=False)
class Answers:
    """The answers to a SELECT. `answers["AVG(stay)"]` is the release of one column.

    Everything in it may be published.
    """

    sql: str
    selected: Selected
    release: Release
    """Of all columns together."""

    def __getitem__(self, name: str) -> Release:
        """The release of one column, by its name."""
        names = self.selected.names
        if name not in names:
            raise QueryError(f"the SELECT has no aggregate {name!r}: {did_you_mean(name, names)}")
        is_only = len(names) == 1
        release: Release = self.release if is_only else self.release.releases[names.index(name)]
        return release

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the groups, and those of the answers."""
        return *self.selected.by, *self.selected.names

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each group, or one: its keys and its answers.

        Where something is to be said about answers of an aggregate, every row has it, or None, under the name
        of the aggregate with " note": why there is no answer (None), or that there are too few people.
        """
        table = self.table()
        noted = [name for name in self.selected.names if any(cells[name].note for _, cells in table)]
        return [
            {
                **keys,
                **{name: cell.value for name, cell in cells.items()},
                **{f"{name} note": cells[name].note for name in noted},
            }
            for keys, cells in table
        ]

    def intervals(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The same rows with an interval in the place of each answer: `Release.interval_in_values`.

        None of medians, quantiles, MIN and MAX, of which `percentiles` tells it.
        """
        return [
            {**keys, **{name: cell.interval for name, cell in cells.items()}}
            for keys, cells in self.table(confidence)
        ]

    def percentiles(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The same of medians, quantiles, MIN and MAX: between which percentiles of the people they lie.

        None of all others.
        """
        return [
            {**keys, **{name: cell.percentiles for name, cell in cells.items()}}
            for keys, cells in self.table(confidence)
        ]

    def table(self, confidence: float = 0.95) -> list[tuple[dict[str, Any], dict[str, Cell]]]:
        """The keys of each group that some aggregate shows, in the order of keys=, with a cell for each
        aggregate.

        Each aggregate leaves groups out by itself, where there are many: one may drown in the noise of a
        count that is not in that of a mean. Its intervals hold for all groups that are declared together,
        whichever of them it shows (suppressing.py); so they hold whatever the other aggregates show. Were a
        row shown in all columns because one of them shows it, the others would have numbers that are noise.
        """
        by, names = self.selected.by, self.selected.names
        each = {name: _cells(self[name], bool(by), confidence) for name in names}
        if not by:
            return [({}, {name: each[name][()] for name in names})]
        query = self[names[0]].plan.query
        assert isinstance(query, Grouped)
        part = query.part
        is_shown = [group for group in part.groups if any(group in cells for cells in each.values())]
        return [
            (part.row(group), {name: each[name].get(group, _LEFT_OUT) for name in names})
            for group in is_shown
        ]

    @property
    def charges(self) -> Mapping[Any, Any]:
        """What it cost a person of each level: see `Release.charges`."""
        return self.release.charges

    def receipt(self) -> dict[str, Any]:
        """The receipt of the release, with the SELECT and the names of its columns."""
        names = list(self.selected.names)
        return {**self.release.receipt(), "sql": self.sql, "names": names}

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """A data frame: a row for each group; a column for each answer, and for both ends of its interval."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise AccordError(
                "to_pandas needs pandas, which is not installed. Install pandas, or take rows."
            ) from None
        names, table = self.selected.names, self.table(confidence)
        has_percentiles = {name for _, cells in table for name in names if cells[name].percentiles}
        has_notes = {name for _, cells in table for name in names if cells[name].note}
        rows = []
        for keys, cells in table:
            wide = dict(keys)
            for name, cell in cells.items():
                (low, high), (least, most) = cell.interval or _NO_ENDS, cell.percentiles or _NO_ENDS
                wide |= {name: cell.value, f"{name} low": low, f"{name} high": high}
                if name in has_percentiles:
                    wide |= {f"{name} low percentile": least, f"{name} high percentile": most}
                if name in has_notes:
                    wide[f"{name} note"] = cell.note
            rows.append(wide)
        ends = [head for name in names for head in (name, f"{name} low", f"{name} high")]
        return pd.DataFrame(rows, columns=None if rows else [*self.selected.by, *ends])

    def __str__(self) -> str:
        from accord.report.selected import answers_text

        return answers_text(self)

    def _repr_html_(self) -> str:
        from accord.report.html import answers_html

        return answers_html(self)

    def __repr__(self) -> str:
        return f"<Answers: {', '.join(self.columns)}; {len(self.rows)} rows>"


def _cells(release: Release, is_by: bool, confidence: float) -> dict[Any, Cell]:
    """The answers about each group that is shown; without groups there is one, ()."""
    is_rank = release.plan.query.unit == PERCENTILES
    in_values = release.interval_in_values(confidence)
    percentiles: Any = release.interval(confidence) if is_rank else None
    if not is_by:
        return {(): Cell(release.value, in_values, percentiles)}
    query, rows = release.plan.query, release.value
    assert isinstance(query, Grouped)
    cells = {}
    for row in rows:
        group = query.part.group_of(row)
        note = NOBODY if row["value"] is None else FEW if row["few"] else None
        between = percentiles[group] if is_rank else None
        cells[group] = Cell(row["value"], in_values[group], between, note)
    return cells
