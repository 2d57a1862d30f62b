"""What is audited: every statistic, asked with the public numbers of tiny tables and of real ones.

The tables are in case_tables.py, and by which plans each question is answered in case_plans.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import accord
from accord import relation
from accord.statistics import Query

NEIGHBORS = tuple(r.name for r in relation.ALL)


@dataclass(frozen=True)
class Scale:
    """The public numbers of the questions: of tiny tables, or of real ones."""

    bounds: tuple[float, float]
    step: float
    edges: tuple[float, ...]


TINY = Scale((-1, 2), 1, (-1, 0, 1, 2))
REAL = Scale((-20_000, 200_000), 100, (-20_000, 0, 30_000, 60_000, 200_000))


@dataclass(frozen=True)
class Statistic:
    """One kind of question."""

    name: str
    ask: Callable[[Scale], Query]
    part: str = ""
    """"where", "by" or the like, if it is about parts of the people."""
    needs_user: bool = False
    """Whether it needs to know whose rows are whose."""
    is_several: bool = False
    """Whether one person may be in several groups or cells."""
    is_generous: bool = False
    """Whether it is asked of people of large levels: of others, quantiles would not be drawn together."""

    @property
    def base(self) -> str:
        """Without its part."""
        return self.name.split(" ")[0]


QUESTIONS: dict[str, Callable[..., Query]] = {
    "mean": lambda s, **of: accord.mean("x", s.bounds, step=s.step, **of),
    "mean with all values": lambda s, **of: accord.mean(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "sum": lambda s, **of: accord.sum("x", s.bounds, step=s.step, **of),
    "sum above zero": lambda s, **of: accord.sum("x", (s.bounds[1] / 2, s.bounds[1]), step=s.step, **of),
    "proportion": lambda s, **of: accord.proportion(f"x > {sum(s.bounds) / 2}", **of),
    "variance": lambda s, **of: accord.variance("x", s.bounds, step=s.step, **of),
    "count": lambda s, **of: accord.count(**of),
    "rows": lambda s, **of: accord.rows(max=2, **of),
    "histogram": lambda s, **of: accord.histogram("x", edges=s.edges, **of),
    "histogram of two cells": lambda s, **of: accord.histogram(
        "x", edges=(s.edges[0], s.edges[1], s.edges[-1]), **of
    ),
    "median": lambda s, **of: accord.median("x", s.bounds, step=s.step, **of),
    "quantile": lambda s, **of: accord.quantile("x", [0.25, 0.9], s.bounds, step=s.step, **of),
    "min": lambda s, **of: accord.min("x", s.bounds, step=s.step, **of),
    "max": lambda s, **of: accord.max("x", s.bounds, step=s.step, **of),
    "regression": lambda s, **of: accord.regression("x", ["z"], bounds={"x": s.bounds, "z": s.bounds}, **of),
    "covariance": lambda s, **of: accord.covariance("x", "z", bounds={"x": s.bounds, "z": s.bounds}, **of),
    "correlation": lambda s, **of: accord.correlation("x", "z", bounds={"x": s.bounds, "z": s.bounds}, **of),
    "regression on a category": lambda s, **of: accord.regression(
        "x", ["g"], bounds={"x": s.bounds}, categories={"g": [1, 2, 3]}, **of
    ),
}
_RARE_QUESTIONS: dict[str, Callable[..., Query]] = {
    "proportion with all values": lambda s, **of: accord.proportion(
        f"x > {sum(s.bounds) / 2}", **{"missing": "none", **of}
    ),
    "variance with all values": lambda s, **of: accord.variance(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "median with all values": lambda s, **of: accord.median(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "quantile with all values": lambda s, **of: accord.quantile(
        "x", [0.25, 0.9], s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "min with all values": lambda s, **of: accord.min(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "max with all values": lambda s, **of: accord.max(
        "x", s.bounds, step=s.step, **{"missing": "none", **of}
    ),
    "regression with all values": lambda s, **of: accord.regression(
        "x", ["z"], bounds={"x": s.bounds, "z": s.bounds}, **{"missing": "none", **of}
    ),
    "covariance with all values": lambda s, **of: accord.covariance(
        "x", "z", bounds={"x": s.bounds, "z": s.bounds}, **{"missing": "none", **of}
    ),
    "correlation with all values": lambda s, **of: accord.correlation(
        "x", "z", bounds={"x": s.bounds, "z": s.bounds}, **{"missing": "none", **of}
    ),
    "sum below zero": lambda s, **of: accord.sum("x", (s.bounds[0], s.bounds[0] / 2), step=s.step / 2, **of),
    "quantiles together": lambda s, **of: accord.quantile("x", [0.4, 0.6], s.bounds, step=s.step, **of),
    "quantiles together of rounded values": lambda s, **of: accord.quantile(
        "x", [0.4, 0.6], s.bounds, step=s.step, rounded=[2 * s.step], **{"missing": "none", **of}
    ),
    "median in values": lambda s, **of: accord.median("x", s.bounds, step=s.step, interval="values", **of),
    "median of rounded values": lambda s, **of: accord.median(
        "x", s.bounds, step=s.step, rounded=[2 * s.step], **of
    ),
    "max of rounded values": lambda s, **of: accord.max(
        "x", s.bounds, step=s.step, rounded=[2 * s.step], **{"missing": "none", **of}
    ),
    "regression on two categories": lambda s, **of: accord.regression(
        "x", ["g", "m"], bounds={"x": s.bounds}, categories={"g": [1, 2, 3], "m": [0, 1]}, **of
    ),
}
"""The same statistics, asked so that other branches answer."""
_UP_TO_TWO: dict[str, Any] = {"by": "g", "keys": [1, 2, 3], "at_most": 2}
_IN_SEVERAL: dict[str, Callable[[Scale], Query]] = {
    "histogram in up to two cells": lambda s: accord.histogram("g", categories=[3, 1, 2], at_most=2),
    "count by up to two groups": lambda s: accord.count(**_UP_TO_TWO),
    "count by up to two groups and the rest": lambda s: accord.count(**_UP_TO_TWO, rest="other"),
    "mean by up to two groups": lambda s: accord.mean("x", s.bounds, step=s.step, **_UP_TO_TWO),
}
"""Of people who are in up to two of three groups or cells."""
_CELLS: dict[str, Any] = {"by": ["g", "m"], "keys": {"g": [1, 2], "m": [1, 0]}}
_IN_CELLS: dict[str, Callable[[Scale], Query]] = {
    name: partial(QUESTIONS[name], **_CELLS) for name in ("count", "mean", "sum", "histogram", "median")
}
"""By two columns."""
_WITH_REST: dict[str, Any] = {"by": "g", "keys": [1], "rest": "other"}
_IN_THE_REST: dict[str, Callable[[Scale], Query]] = {
    name: partial(QUESTIONS[name], **_WITH_REST) for name in ("count", "mean", "median")
}
"""By one column, and whoever has none of its keys."""
_LARGEST: dict[str, Callable[[Scale], Query]] = {
    "count by the largest": lambda s: accord.top("g", k=1, keys=[1, 2]),
}
PARTS: dict[str, dict[str, Any]] = {"": {}, "where": {"where": "m > 0"}, "by": {"by": "g", "keys": [1, 2]}}


def _statistics() -> Iterator[Statistic]:
    for name, ask in (QUESTIONS | _RARE_QUESTIONS).items():
        for part, of in PARTS.items():
            if name.startswith("regression on ") and part:
                continue
            generous = name.startswith("quantiles together")
            whole = f"{name} {part}".strip()
            yield Statistic(whole, partial(ask, **of), part, name == "rows", is_generous=generous)
    for name, ask in _IN_CELLS.items():
        yield Statistic(f"{name} by two columns", ask, "by two columns")
    for name, ask in _IN_THE_REST.items():
        yield Statistic(f"{name} by and the rest", ask, "by and the rest")
    for name, ask in _LARGEST.items():
        yield Statistic(name, ask, "by the largest")
    for name, ask in _IN_SEVERAL.items():
        yield Statistic(name, ask, "by" if " by " in name else "", needs_user=True, is_several=True)


STATISTICS: dict[str, Statistic] = {s.name: s for s in _statistics()}
