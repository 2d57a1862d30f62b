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
from accord.report.figures import CHOSEN, OTHER, pyplot, save
from accord.spec import Spec
from accord.statistics import Query

_SHOWN = (
    "mechanism",
    "rmse",
    "standard_error",
    "predicted",
    "rmse_here",
    "predicted_here",
    "bias",
    "bias_bound",
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Simulations, best first where only the mechanism differs."""

    simulations: tuple[Simulation, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A tidy table: one dict a simulation, ready for a data frame."""
        return [made.row() for made in self.simulations]

    @property
    def along(self) -> str | None:
        """What else differs and can be an axis: how much levels go with values, or the number of people."""
        rows = self.rows
        return next((key for key in ("correlation", "people") if len({row[key] for row in rows}) > 1), None)

    def plot(self, path: str | Path) -> Path:
        """Measured errors with twice their standard error as a picture in a file: bars with what the plans
        predicted, or lines along what differs.
        """
        plt = pyplot()
        along, rows = self.along, self.rows
        figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
        if along is None:
            shown = rows[::-1]
            labels = [f"{row['mechanism']}\n{_kappa(row)}" for row in shown]
            axes.barh(
                range(len(shown)),
                [row["rmse"] for row in shown],
                color=OTHER,
                height=0.6,
                xerr=[2 * row["standard_error"] for row in shown],
            )
            axes.plot(
                [row["predicted"] for row in shown],
                range(len(shown)),
                "|",
                color=CHOSEN,
                markersize=18,
                markeredgewidth=2,
                label="predicted (bars: measured, whiskers: two standard errors)",
            )
            axes.set_yticks(range(len(shown)), labels, fontsize=8)
            axes.set_xlabel(f"rmse about the population ({self.simulations[0].query.unit})")
            axes.legend(fontsize=8, frameon=False)
        else:
            names = dict.fromkeys(row["mechanism"] for row in rows)
            for k, ((colour, marker), name) in enumerate(zip(cycle(LOOKS), names, strict=False)):
                line = sorted((row for row in rows if row["mechanism"] == name), key=lambda row: row[along])
                axes.errorbar(
                    [row[along] for row in line],
                    [row["rmse"] for row in line],
                    [2 * row["standard_error"] for row in line],
                    color=colour,
                    marker=marker,
                    linestyle=_STYLES[k % 4],
                    linewidth=1.4,
                    markersize=5,
                    capsize=2,
                    label=f"{name} ({_kappa(line[-1])})",
                )
            axes.set(
                xlabel="correlation of levels and values" if along == "correlation" else along,
                ylabel=f"rmse ({self.simulations[0].query.unit})",
            )
            axes.legend(fontsize=8, frameon=False)
        first = self.simulations[0]
        people = "" if along == "people" else f", {first.people:,} people"
        title = f"{first.query.label}: {first.population.name}{people}, {first.runs:,} runs"
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        return save(plt, figure, path)

    def __str__(self) -> str:
        extra = [
            key
            for key in ("statistic", "population", "levels", "people", "correlation", "runs")
            if len({row[key] for row in self.rows}) > 1
        ]
        names = ("mechanism", *extra, *_SHOWN[1:])
        shown = ["κ" if name == "bias_bound" else name for name in names]
        cells = [[_cell(row[name]) for name in names] for row in self.rows]
        widths = [max(len(name), *(len(line[k]) for line in cells)) for k, name in enumerate(shown)]
        head = (
            f"errors in: {self.simulations[0].query.unit}; κ times the largest difference between levels "
            "bounds the bias"
        )
        return (
            head
            + "\n"
            + "\n".join(
                "  ".join(
                    text.rjust(width) if k else text.ljust(width)
                    for k, (text, width) in enumerate(zip(line, widths, strict=True))
                )
                for line in (shown, *cells)
            )
        )

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.simulations)} simulations>"


_STYLES = ("-", "--", "-.", ":")


def compare(
    of: Iterable[Simulation | str],
    query: Query | None = None,
    spec: Spec | Drawn | None = None,
    population: Population | None = None,
    **options: Any,
) -> Comparison:
    """Put simulations side by side; names of mechanisms are simulated first, all with the same seed.

    Args:
        of: simulations of `simulate`, or names of mechanisms.
        query, spec, population, options: what `simulate` needs, for names.

    >>> import accord
    >>> from accord.lab import populations
    >>> query, spec = accord.mean("x", (0, 1)), accord.Spec.from_groups({0.1: 700, 1: 300})
    >>> both = compare(["affine", "minimum"], query, spec, populations.uniform(), runs=200)
    >>> [row["mechanism"] for row in both.rows]
    ['affine', 'minimum']
    """
    if isinstance(of, str | Simulation) or not isinstance(of, Iterable):
        raise QueryError(
            f"compare takes a list of simulations or names, not {type(of).__name__}: compare(['affine', "
            "'minimum'], …)."
        )
    made: list[Simulation] = []
    for one in of:
        if isinstance(one, Simulation):
            made.append(one)
        elif isinstance(one, str):
            if query is None or spec is None or population is None:
                raise QueryError(
                    f"compare has the name {one!r}, and needs a query, a spec and a population to simulate "
                    "it: compare(['affine'], query, spec, population)."
                )
            made.append(simulate(one, query, spec, population, **options))
        else:
            raise QueryError(f"compare takes simulations or names of mechanisms, not {type(one).__name__}.")
    if not made:
        raise QueryError("there is nothing to compare. Give simulations, or names of mechanisms.")
    if len({one.query.unit for one in made}) > 1:
        raise QueryError(
            "these simulations have errors in different units. Compare means with means, and ranks with "
            "ranks."
        )
    done = Comparison(tuple(made))
    return done if done.along else Comparison(tuple(sorted(made, key=lambda one: one.rmse)))


def _kappa(row: dict[str, Any]) -> str:
    return "κ not defined" if row["bias_bound"] is None else f"κ = {row['bias_bound']:.2g}"


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
