"""Description: what is declared about a table where it is described once (catalogs.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from accord.statistics.declared import Declared


@dataclass(frozen=True)
class Description:
    """What is publicly known about a table, besides how it is opened."""

    name: str
    """By which it is asked for, and registered in a ledger."""
    file: str
    """Where it is described."""
    about: str = ""
    """A sentence for people."""
    columns: Mapping[str, Declared] = field(default_factory=dict)
    ledger: str | None = field(default=None, repr=False)
    """Where everyone's budget is kept: every release is booked there."""

    @property
    def complete(self) -> frozenset[str]:
        """The columns in which no value is missing, as declared."""
        return frozenset(name for name, column in self.columns.items() if column.missing == "none")
