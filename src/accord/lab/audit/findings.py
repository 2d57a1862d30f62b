"""What an audit saw, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf
from typing import Any

import accord

METHODS = ("exact", "replay", "program", "empirical")
_ROUNDING = 1e-9
"""What floats can be off where probabilities are reckoned."""


@dataclass(frozen=True)
class Look:
    """What was promised to people of one level, and what they were seen to lose, by one method."""

    method: str
    mechanism: str
    statistic: str
    neighbors: str
    level: str
    promised: Fraction | float
    loss: Fraction | float
    evidence: str = ""
    """Of a violation: what shows it."""
    script: str = ""
    """Of a whole program: the smallest one that shows it, to be run."""

    @property
    def ratio(self) -> float:
        """What was lost, as a part of what was promised."""
        if not self.promised:
            return inf if self.loss else 0.0
        return float(self.loss) / float(self.promised)

    @property
    def violated(self) -> bool:
        if isinstance(self.loss, Fraction) and isinstance(self.promised, Fraction):
            return self.loss > self.promised
        # written so that NaN is a violation
        return not float(self.loss) <= float(self.promised) * (1 + _ROUNDING) + _ROUNDING * 1e-3


@dataclass(frozen=True)
class Finding:
    """Of one mechanism, statistic, neighbor relation and level: each method's look with the largest loss."""

    mechanism: str
    statistic: str
    neighbors: str
    level: str
    looks: dict[str, Look]
    """By method, the look that came closest to breaking the promise."""

    @property
    def ratio(self) -> float:
        """The largest loss that was seen, as a part of what was promised."""
        return max(look.ratio for look in self.looks.values())

    @property
    def violations(self) -> list[Look]:
        return [look for look in self.looks.values() if look.violated]

    def describe(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "statistic": self.statistic,
            "neighbors": self.neighbors,
            "level": self.level,
            "ways": {
                method: {
                    "promised": float(look.promised),
                    "found": "inf" if isinf(look.loss) else float(look.loss),
                    "violated": look.violated,
                    **({"shown_by": look.evidence} if look.violated else {}),
                    **({"script": look.script} if look.script else {}),
                }
                for method, look in self.looks.items()
            },
        }


@dataclass(frozen=True)
class Audit:
    """All findings, worst first."""

    findings: tuple[Finding, ...]
    seed: int
    runs: int
    alpha: float
    lower_bounds: int
    """How many lower bounds were reckoned, among which alpha is shared."""
    seconds: float
    not_looked_at: tuple[str, ...] = ()

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
            "looks": self.lower_bounds,
            "not_looked_at": list(self.not_looked_at),
            "findings": [f.describe() for f in self.findings],
        }

    def __str__(self) -> str:
        from accord.lab.audit.report import view
        from accord.report.tables import to_text

        return to_text(view(self))

    def _repr_html_(self) -> str:
        from accord.lab.audit.report import view
        from accord.report.html import article

        return article(view(self))

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else f"{len(self.violations)} violations"
        return f"<Audit: {len(self.findings)} findings, {verdict}>"


def findings_of(looks: Iterable[Look]) -> tuple[Finding, ...]:
    """Violations first, then by how much of what was promised was lost."""
    worst: dict[tuple[str, str, str, str], dict[str, Look]] = {}
    for look in looks:
        by_method = worst.setdefault((look.mechanism, look.statistic, look.neighbors, look.level), {})
        before = by_method.get(look.method)
        if before is None or (look.violated, look.ratio) > (before.violated, before.ratio):
            by_method[look.method] = look
    return tuple(sorted((Finding(*key, by_method) for key, by_method in worst.items()), key=_order))


def _order(f: Finding) -> tuple[bool, float, str, str, str, str]:
    return not f.violations, -round(f.ratio, 6), f.mechanism, f.statistic, f.neighbors, f.level
