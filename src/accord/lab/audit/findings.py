"""What an audit saw, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf
from typing import Any

import accord

WAYS = ("exact", "replay", "program", "empirical")
_ROUNDING = 1e-9
"""What floats can be off where probabilities are reckoned."""


@dataclass(frozen=True)
class Seen:
    """One look: what was promised to people of one level, and what they lost."""

    way: str
    mechanism: str
    statistic: str
    neighbors: str
    level: str
    promised: Fraction | float
    found: Fraction | float
    said: str = ""
    """Of a violation: what shows it."""
    script: str = ""
    """Of a whole program: the smallest one that shows it, to be run."""

    @property
    def near(self) -> float:
        """What was lost, as a part of what was promised."""
        if not self.promised:
            return inf if self.found else 0.0
        return float(self.found) / float(self.promised)

    @property
    def violated(self) -> bool:
        if isinstance(self.found, Fraction) and isinstance(self.promised, Fraction):
            return self.found > self.promised
        # what is not a number is no less
        return not float(self.found) <= float(self.promised) * (1 + _ROUNDING) + _ROUNDING * 1e-3


@dataclass(frozen=True)
class Finding:
    """All looks at one mechanism, statistic and level, under one neighbor relation: of each way, the one that
    came closest to breaking the promise.
    """

    mechanism: str
    statistic: str
    neighbors: str
    level: str
    looks: dict[str, Seen]

    @property
    def near(self) -> float:
        """The largest loss that was seen, as a part of what was promised."""
        return max(look.near for look in self.looks.values())

    @property
    def violations(self) -> list[Seen]:
        return [look for look in self.looks.values() if look.violated]

    def describe(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "statistic": self.statistic,
            "neighbors": self.neighbors,
            "level": self.level,
            "ways": {
                way: {
                    "promised": float(look.promised),
                    "found": "inf" if isinf(look.found) else float(look.found),
                    "violated": look.violated,
                    **({"shown_by": look.said} if look.violated else {}),
                    **({"script": look.script} if look.script else {}),
                }
                for way, look in self.looks.items()
            },
        }


@dataclass(frozen=True)
class Audit:
    """What was found, worst first."""

    findings: tuple[Finding, ...]
    seed: int
    runs: int
    alpha: float
    looks: int
    """How many lower bounds were reckoned, among which alpha is shared."""
    seconds: float
    unseen: tuple[str, ...] = ()
    """What was not looked at."""

    @property
    def violations(self) -> list[Finding]:
        return [f for f in self.findings if f.violations]

    @property
    def passed(self) -> bool:
        return not self.violations

    def describe(self) -> dict[str, Any]:
        """Plain data, for `--json`."""
        return {
            "schema": 1,
            "accord": accord.__version__,
            "passed": self.passed,
            "seed": self.seed,
            "runs": self.runs,
            "alpha": self.alpha,
            "looks": self.looks,
            "not_looked_at": list(self.unseen),
            "findings": [f.describe() for f in self.findings],
        }

    def __str__(self) -> str:
        from accord.lab.audit.views import view
        from accord.report.text import plain

        return plain(view(self))

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else f"{len(self.violations)} violations"
        return f"<Audit: {len(self.findings)} findings, {verdict}>"


def gathered(seen: Iterable[Seen]) -> tuple[Finding, ...]:
    """Findings from looks: violations first, then by how much of what was promised was lost."""
    found: dict[tuple[str, str, str, str], dict[str, Seen]] = {}
    for look in seen:
        looks = found.setdefault((look.mechanism, look.statistic, look.neighbors, look.level), {})
        before = looks.get(look.way)
        if before is None or (look.violated, look.near) > (before.violated, before.near):
            looks[look.way] = look
    made = (Finding(*key, looks) for key, looks in found.items())
    return tuple(
        sorted(
            made,
            key=lambda f: (
                not f.violations,
                -round(f.near, 6),
                f.mechanism,
                f.statistic,
                f.neighbors,
                f.level,
            ),
        )
    )
