"""compare: several simulations side by side, as a tidy table and a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from accord.errors import QueryError
from accord.lab.papers.figures import LOOKS
from accord.lab.simulation.populations import Population
from accord.lab.simulation.simulate import Simulation, simulate
from accord.lab.simulation.specs import Drawn
from accord.mechanisms.record import Mechanism
from accord.report.figures import CHOSEN, OTHER, blank_figure, write
from accord.spec import Spec
from accord.statistics import Query

_SETTINGS = ("statistic", "population", "levels", "people", "correlation", "runs")
"""Columns that the text has only if they differ,"""
_MEASURES = ("rmse", "standard_error", "predicted", "rmse_here", "predicted_here", "bias", "bias_bound")
"""and those that it always has."""
_LINE_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Simulations, best first where only the mechanism differs."""

    simulations: tuple[Simulation, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A tidy table: one dict a simulation, ready for a data frame."""
        return [simulation.row() for simulation in self.simulations]

    @property
    def along(self) -> str | None:
        """What else differs and can be an axis: how much levels go with values, or the number of people."""
        rows = self.rows
        return next((key for key in ("correlation", "people") if len({row[key] for row in rows}) > 1), None)

    def plot(self, path: str | Path | None = None) -> Any:
        """Measured errors with twice their standard error as a picture.

        As bars with what the plans predicted, or as lines along what differs.

        Returns:
            The figure, which a notebook shows; with a path (.png, .svg, .pdf), where it was written.

        Raises:
            AccordError: matplotlib is not installed (accord[plot]), or the file cannot be written.
        """
        figure = blank_figure(7.5, 4.2)
        axes = figure.subplots()
        first, along = self.simulations[0], self.along
        if along is None:
            _draw_bars(axes, self.rows[::-1], first.query.unit)
        else:
            _draw_lines(axes, self.rows, along, first.query.unit)
        axes.legend(fontsize=8, frameon=False)
        people = "" if along == "people" else f", {first.people:,} people"
        title = f"{first.query.label}: {first.population.name}{people}, {first.runs:,} runs"
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        return figure if path is None else write(figure, path)

    def __str__(self) -> str:
        differing = [key for key in _SETTINGS if len({row[key] for row in self.rows}) > 1]
        columns = ("mechanism", *differing, *_MEASURES)
        head = ["κ" if column == "bias_bound" else column for column in columns]
        lines = [head, *([_cell(row[column]) for column in columns] for row in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
        unit = self.simulations[0].query.unit
        texts = [f"errors in: {unit}; κ times the largest difference between levels bounds the bias"]
        for first, *rest in lines:
            cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
            texts.append("  ".join((first.ljust(widths[0]), *cells)))
        return "\n".join(texts)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.simulations)} simulations>"


def compare(
    of: Iterable[Simulation | str | Mechanism],
    query: Query | None = None,
    spec: Spec | Drawn | None = None,
    population: Population | None = None,
    **options: Any,
) -> Comparison:
    """Put simulations side by side; names of mechanisms are simulated first, all with the same seed.

    Args:
        of: simulations of `simulate`, names of mechanisms, or mechanisms of your own (`accord.mechanism`).
        query, spec, population, options: what `simulate` needs, for names.

    >>> import accord
    >>> from accord.lab import populations
    >>> query, spec = accord.mean("x", (0, 1), missing="none"), accord.Spec.from_groups({0.1: 700, 1: 300})
    >>> both = compare(["affine", "minimum"], query, spec, populations.uniform(), runs=200)
    >>> [row["mechanism"] for row in both.rows]
    ['affine', 'minimum']
    """
    if isinstance(of, str | Simulation) or not isinstance(of, Iterable):
        raise QueryError(
            f"compare takes a list of simulations or names, not {type(of).__name__}: "
            "compare(['affine', 'minimum'], …)."
        )
    simulations: list[Simulation] = []
    for item in of:
        if isinstance(item, Simulation):
            simulations.append(item)
        elif isinstance(item, str | Mechanism):
            if query is None or spec is None or population is None:
                name = item if isinstance(item, str) else item.name
                raise QueryError(
                    f"compare has the mechanism {name!r}, and needs a query, a spec and a population to "
                    "simulate it: compare(['affine'], query, spec, population)."
                )
            simulations.append(simulate(item, query, spec, population, **options))
        else:
            raise QueryError(f"compare takes simulations or names of mechanisms, not {type(item).__name__}.")
    if not simulations:
        raise QueryError("there is nothing to compare. Give simulations, or names of mechanisms.")
    if len({simulation.query.unit for simulation in simulations}) > 1:
        raise QueryError(
            "these simulations have errors in different units. "
            "Compare means with means, and ranks with ranks."
        )
    if Comparison(tuple(simulations)).along is None:
        simulations.sort(key=lambda simulation: simulation.rmse)
    return Comparison(tuple(simulations))


def _draw_bars(axes: Any, rows: list[dict[str, Any]], unit: str) -> None:
    """A bar for each mechanism, from the bottom."""
    places = range(len(rows))
    whiskers = [2 * row["standard_error"] for row in rows]
    axes.barh(places, [row["rmse"] for row in rows], color=OTHER, height=0.6, xerr=whiskers)
    axes.plot(
        [row["predicted"] for row in rows],
        places,
        "|",
        color=CHOSEN,
        markersize=18,
        markeredgewidth=2,
        label="predicted (bars: measured, whiskers: two standard errors)",
    )
    axes.set_yticks(places, [f"{row['mechanism']}\n{_kappa(row)}" for row in rows], fontsize=8)
    axes.set_xlabel(f"rmse about the population ({unit})")


def _draw_lines(axes: Any, rows: list[dict[str, Any]], along: str, unit: str) -> None:
    """A line for each mechanism."""
    names = dict.fromkeys(row["mechanism"] for row in rows)
    for name, (colour, marker), style in zip(names, cycle(LOOKS), cycle(_LINE_STYLES), strict=False):
        line = sorted((row for row in rows if row["mechanism"] == name), key=lambda row: row[along])
        axes.errorbar(
            [row[along] for row in line],
            [row["rmse"] for row in line],
            [2 * row["standard_error"] for row in line],
            color=colour,
            marker=marker,
            linestyle=style,
            linewidth=1.4,
            markersize=5,
            capsize=2,
            label=f"{name} ({_kappa(line[-1])})",
        )
    axes.set_xlabel("correlation of levels and values" if along == "correlation" else along)
    axes.set_ylabel(f"rmse ({unit})")


def _kappa(row: dict[str, Any]) -> str:
    return "κ not defined" if row["bias_bound"] is None else f"κ = {row['bias_bound']:.2g}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
