"""The error of every mechanism against the gap: what it would be if levels went with values, by so much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from accord import budget
from accord.errors import PlanError
from accord.planning import Plan, plan_within
from accord.report import figures
from accord.report.tables import add_row, error, text_table
from accord.statistics import Grouped, Query
from accord.statistics.gap import GapScale, with_gap

_PLACES, _FEW, _MANY_LEVELS = 24, 6, 5_000
_ROWS = 7


@dataclass(frozen=True)
class GapCurves:
    """Predicted errors (rmse, about the population) with the worst bias in them."""

    scale: GapScale
    gaps: tuple[float, ...]
    """Ascending, in the units of `gap=`; the first is 0."""
    rmse: Mapping[str, tuple[float, ...]]
    """Of each mechanism that has an error for all of them."""

    def describe(self) -> list[dict[str, Any]]:
        """A point for each gap, for `--json`."""
        return [
            {"gap": gap, "rmse": {name: errors[k] for name, errors in self.rmse.items()}}
            for k, gap in enumerate(self.gaps)
        ]

    @property
    def best(self) -> tuple[str, ...]:
        """Which has the lowest error, for each gap."""
        return tuple(min(self.rmse, key=lambda name: self.rmse[name][k]) for k in range(len(self.gaps)))


def gap_curves(plan: Plan) -> GapCurves | None:
    """Of one question; None: no gap can be declared of it."""
    scale = plan.query.gap_scale
    if scale is None:
        return None
    places = _PLACES if plan.spec.micro.size <= _MANY_LEVELS else _FEW
    most = float(scale.most)
    gaps = [0.0, *(float(f"{gap:.3g}") for gap in np.geomspace(1e-3 * most, most, places))]
    affordable = budget.share(plan.spec.micro, plan.share)
    errors: dict[str, list[float]] = {}
    for gap in gaps:
        query = _declared(plan.query, Fraction(repr(gap)))
        try:
            at = plan_within(plan.spec, query, affordable, "auto", None, plan.share, plan.relation)
        except PlanError:
            return None
        for candidate in at.candidates:
            prediction = candidate.prediction
            if prediction is not None and prediction.bias_bound is not None:
                errors.setdefault(candidate.mechanism, []).append(prediction.rmse)
    whole = {name: tuple(each) for name, each in errors.items() if len(each) == len(gaps)}
    return GapCurves(scale, tuple(gaps), whole) if whole else None


def _declared(query: Query, gap: Fraction) -> Query:
    if isinstance(query, Grouped):
        return replace(query, query=_declared(query.query, gap))
    return with_gap(query, gap, "everyone" if query.about_everyone else None)


def gaps_view(curves: GapCurves | None) -> RenderableType:
    """The error of each mechanism at some gaps."""
    if curves is None:
        return Text("No gap can be declared of this question: docs/gap.md.", "dim")
    names = sorted(curves.rmse, key=lambda name: curves.rmse[name][0])
    columns = (f">{name}" for name in names)
    table = text_table(">gap", *columns, title="Error if levels go with values, by the gap between them")
    for k in np.linspace(0, len(curves.gaps) - 1, _ROWS).round().astype(int).tolist():
        cells = (error(curves.rmse[name][k]) for name in names)
        add_row(table, curves.scale.text(curves.gaps[k]), *cells)
    return Group(table, Text("with the worst bias in it that such a gap allows", "dim"))


def draw_gaps(axes: Any, curves: GapCurves | None, declared: Fraction | None) -> None:
    """Error against gap, for every mechanism."""
    axes.set_title("If levels go with values: the error by the gap between levels", fontsize=9, loc="left")
    if curves is None:
        axes.set_axis_off()
        axes.annotate("no gap can be declared of this", (0, 0.5), xycoords="axes fraction", fontsize=9)
        return
    x = np.array(curves.gaps[1:])
    for name, errors in curves.rmse.items():
        chosen = name == "robust"
        style = {"color": figures.CHOSEN, "linewidth": 2.5, "zorder": 4} if chosen else {"linewidth": 1.2}
        (line,) = axes.plot(x, errors[1:], label=name, **style)
        if not chosen:
            line.set_linestyle("--" if name in ("threshold", "minimum") else "-")
    if declared is not None and declared > 0:
        axes.axvline(float(declared), color="black", linewidth=1, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    unit = curves.scale.unit or ("in the column's units" if curves.scale.of_most else "0 … 1")
    axes.set_xlabel(f"gap, {unit}", fontsize=9)
    axes.set_ylabel("predicted error (rmse)")
    axes.legend(fontsize=8, frameon=False, ncols=2)
    figures.bare(axes)
