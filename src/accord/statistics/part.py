"""Part: which rows a question is about, and in which of its groups each is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from accord.statistics import where as grammar
from accord.statistics.keys import Rest, described_keys, split_rest

MEMBERSHIP = ("private", "public")


@dataclass(frozen=True)
class Part:
    """Which rows a question is about."""

    where: str | None
    condition: grammar.Condition | None
    by: tuple[str, ...]
    """The columns of the groups; () without groups."""
    keys: tuple[tuple[Any, ...], ...]
    """The declared keys of each of these columns, and their `Rest`, if that is a group."""
    public: bool
    at_most: int = 1
    """Of how many of the groups one person may be."""
    suppress: bool = False
    """Whether groups that may be empty are left out of the answer (release/suppressing.py)."""
    largest: int | None = None
    """How many groups the answer shows: those with the largest noisy sizes; None: all."""

    @cached_property
    def places(self) -> dict[Any, int]:
        """The place of each group."""
        return {group: place for place, group in enumerate(self.groups)}

    @cached_property
    def groups(self) -> tuple[Any, ...]:
        """The keys of one column; of several, their combinations, of which the last key changes first."""
        if len(self.keys) == 1:
            return self.keys[0]
        return tuple(product(*self.keys)) if self.keys else ()

    @property
    def as_asked(self) -> tuple[Any, Any]:
        """`by=` and `keys=`: of one column its name and its keys, of several a tuple of each."""
        if len(self.by) == 1:
            return self.by[0], self.keys[0]
        return self.by or None, self.keys

    def row(self, group: Any) -> dict[str, Any]:
        """What a row of an answer says about which group it is of."""
        keys = (group,) if len(self.by) == 1 else group
        return dict(zip(self.by, keys, strict=True))

    def group_of(self, row: dict[str, Any]) -> Any:
        """Which group a row of an answer is of."""
        keys = tuple(row[by] for by in self.by)
        return keys[0] if len(keys) == 1 else keys

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(grammar.columns(self.condition) if self.condition else ()), *self.by)

    @property
    def listed(self) -> str:
        """How many keys, or combinations of them, were declared."""
        if len(self.by) > 1:
            return f"{len(self.groups)} combinations of keys"
        return f"{len(split_rest(self.keys[0])[0])} keys"

    @property
    def about_rest(self) -> str:
        """Who is in the rest, in words; empty: there is none."""
        rests = ((by, rest) for by, (_, rest) in self._of_columns if rest is not None)
        each = [f"{rest!r} is every other value of {by}" for by, rest in rests]
        return f"{', '.join(each)}; a missing one is in no group" if each else ""

    @property
    def label(self) -> str:
        return (
            (f" where {self.where}" if self.where else "")
            + (f" by {', '.join(self.by)}" if self.by else "")
            + (f" (each in up to {self.at_most})" if self.at_most > 1 else "")
            + (f", the {f'{self.largest:,} ' if self.largest > 1 else ''}largest" if self.largest else "")
        )

    def name(self, group: Any) -> str:
        """One of the groups, in words."""
        keys = " AND ".join(_is_key(by, key) for by, key in self.row(group).items()) if self.by else ""
        return " ".join(filter(None, (keys, f"where {self.where}" if self.where else "")))

    def describe(self) -> dict[str, Any]:
        return {
            **({"where": self.where} if self.where else {}),
            **self._described_groups(),
            **({"at_most": self.at_most} if self.at_most > 1 else {}),
            **({"suppress": True} if self.suppress else {}),
            **({"top": self.largest} if self.largest else {}),
            "membership": MEMBERSHIP[self.public],
        }

    def _described_groups(self) -> dict[str, Any]:
        if not self.by:
            return {}
        keys = {by: described_keys(declared) for by, (declared, _) in self._of_columns}
        rest = {by: str(label) for by, (_, label) in self._of_columns if label is not None}
        if len(self.by) == 1:
            (by,) = self.by
            return {"by": by, "keys": keys[by], **({"rest": rest[by]} if rest else {})}
        return {"by": list(self.by), "keys": keys, **({"rest": rest} if rest else {})}

    @property
    def _of_columns(self) -> list[tuple[str, tuple[tuple[Any, ...], Rest | None]]]:
        """Each column with its declared keys and its rest."""
        return list(zip(self.by, map(split_rest, self.keys), strict=True))


def _is_key(by: str, key: Any) -> str:
    return f"{by} is none of the keys ({key})" if isinstance(key, Rest) else f"{by} = {key!r}"
