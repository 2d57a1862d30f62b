"""What a SELECT is answered with: a row for each group, a column for each aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accord.errors import AccordError, QueryError, did_you_mean
from accord.release.result import Release
from accord.statistics.select import Selected


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
        """A row for each group, or one: its keys and its answers."""
        return [dict(row) for row in self._joined(lambda _, value, __: value)]

    def intervals(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The same rows with an interval in the place of each answer: `Release.interval_in_values`."""
        return [dict(row) for row in self._joined(lambda _, __, interval: interval, confidence)]

    def _joined(self, shown: Any, confidence: float = 0.95) -> Iterator[Mapping[str, Any]]:
        """The rows of all releases, which are about the same groups in the same order."""
        by = self.selected.by
        releases = [(name, self[name]) for name in self.selected.names]
        intervals = {name: release.interval_in_values(confidence) for name, release in releases}
        if not by:
            yield {name: shown(name, release.value, intervals[name]) for name, release in releases}
            return
        answers = {name: self._by_key(release) for name, release in releases}
        keys = dict.fromkeys(key for of_name in answers.values() for key in of_name)
        for key in keys:  # of long lists of keys, each column leaves out groups of its own
            row = dict(zip(by, key, strict=True))
            group = key[0] if len(by) == 1 else key
            yield row | {
                name: shown(name, of_name[key], intervals[name][group]) if key in of_name else None
                for name, of_name in answers.items()
            }

    def _by_key(self, release: Release) -> dict[tuple[Any, ...], Any]:
        """The answers about each group that is shown."""
        rows: Any = release.value
        return {tuple(row[column] for column in self.selected.by): row["value"] for row in rows}

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
        rows = []
        for row, intervals in zip(self.rows, self.intervals(confidence), strict=True):
            wide = {column: row[column] for column in self.selected.by}
            for name in self.selected.names:
                low, high = intervals[name] or (None, None)
                wide |= {name: row[name], f"{name} low": low, f"{name} high": high}
            rows.append(wide)
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        from accord.report.selected import answers_text

        return answers_text(self)

    def _repr_html_(self) -> str:
        from accord.report.html import release_html

        return release_html(self.release)

    def __repr__(self) -> str:
        return f"<Answers: {', '.join(self.columns)}; {len(self.rows)} rows>"
