"""Public groups: everyone may know who is in which, so that each is a table of its own, with a Spec, a plan and a release of its own.

Nobody is in two of them, so that everyone is charged for their own group only (parallel composition, which holds under replace because who is where does not change).
Private groups are ordinary plans: query/parts.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from accord.budget import level_text
from accord.planning import Plan
from accord.spec import Spec
from accord.statistics import Grouped


@dataclass(frozen=True, repr=False)
class GroupedPlan:
    """A plan for each group; None for a group without anybody to ask. `print` shows them."""

    spec: Spec
    """Of the whole table."""
    query: Grouped
    plans: Mapping[Any, Plan | None]
    share: int
    neighbors: str

    @property
    def charges(self) -> Mapping[Any, Mapping[float, float]]:
        """{group: {level: charge}}."""
        return MappingProxyType({key: plan.charges for key, plan in self.plans.items() if plan is not None})

    @property
    def rmse(self) -> Mapping[Any, float]:
        return MappingProxyType({key: plan.rmse for key, plan in self.plans.items() if plan is not None})

    def describe(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "schema": 1,
            "query": self.query.describe(),
            "neighbors": self.neighbors,
            "share": level_text(self.share),
            "groups": [
                {"key": key, "plan": None if plan is None else plan.describe()} for key, plan in self.plans.items()
            ],
        }

    def __str__(self) -> str:
        from accord.report.text import grouped_plan_text

        return grouped_plan_text(self)

    def __repr__(self) -> str:
        return f"<GroupedPlan: {self.query.label}, {len(self.plans)} groups>"
