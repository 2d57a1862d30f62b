"""Figures of answers: every kind of answer with its 95 % interval, drawn from its tidy rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from numbers import Real
from typing import Any

from accord.errors import AccordError
from accord.release import Release
from accord.release.tidy import OWN_NAMES, Row, tidy
from accord.report.figures import CHOSEN, MOST_BARS, MOST_PANELS, OTHER, bare, blank_figure, lines, of_many
from accord.report.tables import error, number
from accord.statistics import Algorithm, Coefficients

_STROKE: dict[str, Any] = {"fmt": "none", "capsize": 4, "elinewidth": 1.8}
_ABOUT = "answer, with its 95 % interval about these people"
_NARROW, _WIDE = 0.34, 2.0
"""Inches for a row of a picture, and for what every picture has besides."""


def release_figure(release: Release) -> Any:
    """An answer, the answers to several questions, or one for each group, with their intervals."""
    if not release.plan.is_workload:
        figure = blank_figure(7.5, _height(release))
        _draw(figure.subplots(), release)
        return figure
    parts = release.parts[:MOST_PANELS]
    heights = [_height(part) for part in parts]
    figure = blank_figure(7.5, sum(heights) + 0.5)
    panels = figure.subplots(len(parts), height_ratios=heights, squeeze=False).flat
    for axes, part in zip(panels, parts, strict=True):
        _draw(axes, part)
    title = of_many(release.plan.query.label, len(parts), len(release.parts))
    figure.suptitle(title, fontweight="bold")
    return figure


def _height(release: Release) -> float:
    rows = tidy(release)
    if _is_histogram(rows) or _is_quantiles(rows):
        return 3.6
    return height_of(len(rows))


def height_of(rows: int) -> float:
    """Of a picture with a line for each number, in inches."""
    return _WIDE + _NARROW * min(MOST_BARS, rows)


def _is_histogram(rows: Sequence[Row]) -> bool:
    """Of everyone: cells of groups are rows of their own."""
    return all("cell" in row and not _group(row) for row in rows) and len(rows) <= MOST_BARS


def _is_quantiles(rows: Sequence[Row]) -> bool:
    return len(rows) > 1 and all("p" in row for row in rows)


def _group(row: Row) -> list[str]:
    return [str(value) for name, value in row.items() if name not in OWN_NAMES]


def _draw(axes: Any, release: Release) -> None:
    """One question, by the kind of its answer."""
    rows = tidy(release)
    if isinstance(release.plan.query, Algorithm) and not isinstance(release.value, Real):
        raise AccordError(
            "an answer of your own algorithm is drawn if it is a number, and this is a "
            f"{type(release.value).__name__}. Draw it yourself: release.value."
        )
    axes.set_title(lines(release.plan.query.label, 70), fontsize=10, loc="left", fontweight="bold")
    if isinstance(release.value, Coefficients):
        _coefficients(axes, release, release.value)
    elif _is_histogram(rows):
        _histogram(axes, rows)
    elif _is_quantiles(rows):
        _quantiles(axes, rows)
    else:
        draw_points(axes, rows)
        if release.plan.choice is not None and release.plan.largest is not None:
            sizes = [row["value"] for row in rows[:MOST_BARS][::-1]]
            axes.barh(range(len(sizes)), sizes, color=CHOSEN, alpha=0.25, height=0.5, zorder=0)


def draw_points(axes: Any, rows: Sequence[Row]) -> None:
    """A line for each number: a group, a cell of a group, a coefficient, or the only one."""
    shown = rows[:MOST_BARS][::-1]
    names = [_name(row) for row in shown]
    for y, row in enumerate(shown):
        if row["value"] is None:
            axes.annotate("nobody is there to ask", (0.02, y), xycoords=("axes fraction", "data"), fontsize=8)
            continue
        few = bool(row.get("few"))
        colour, inside = (OTHER, "white") if few else (CHOSEN, CHOSEN)
        if row["low"] is not None:
            left, right = _reach(row["value"], row["low"], row["high"])
            axes.errorbar(row["value"], y, xerr=[[left], [right]], color=colour, **_STROKE)
        axes.plot([row["value"]], [y], "o", color=colour, mfc=inside, markersize=6)
        axes.annotate(_beside(row), (row["value"], y), xytext=(0, 7), textcoords="offset points", fontsize=8)
    axes.set_yticks(range(len(shown)) if any(names) else [], names if any(names) else [], fontsize=9)
    axes.set_ylim(-0.7, len(shown) - 0.2)
    if any(isinstance(row["value"], date) for row in shown):
        axes.tick_params(axis="x", labelrotation=30)
    else:
        axes.xaxis.set_major_formatter(lambda x, _: number(x, 4))
        axes.locator_params(axis="x", nbins=6)
    more = f"; the first {len(shown)} of {len(rows):,}" if len(shown) < len(rows) else ""
    hollow = (
        "; hollow: too few people to tell"
        if any(row.get("few") and row["value"] is not None for row in shown)
        else ""
    )
    axes.set_xlabel(f"{_about(rows)}{hollow}{more}", fontsize=8)
    bare(axes)


def _name(row: Row) -> str:
    inner = [str(row[name]) for name in ("cell", "term") if name in row]
    inner += [f"p = {row['p']:g}"] if "p" in row else []
    return lines(", ".join([*_group(row), *inner]), 26)


def _beside(row: Row) -> str:
    """The number, and for a quantile the percentiles that it lies between."""
    value = number(row["value"], 4) if isinstance(row["value"], float) else str(row["value"])
    if row.get("low_percentile") is None or row["low"] is not None:
        return value
    return f"{value} (percentiles {row['low_percentile']:.1f} … {row['high_percentile']:.1f})"


def _about(rows: Sequence[Row]) -> str:
    if any("term" in row for row in rows) or all(row["low"] is None for row in rows):
        in_percentiles = any(row.get("low_percentile") is not None for row in rows)
        return "answer, and the percentiles it lies between (95 %)" if in_percentiles else "answer"
    return _ABOUT


def _reach(value: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """How far an interval reaches below a value and above it: not at all, where the value is outside."""
    nothing = value - value  # of dates, no time
    return max(value - low, nothing), max(high - value, nothing)


def _histogram(axes: Any, rows: Sequence[Row]) -> None:
    places, values = range(len(rows)), [row["value"] for row in rows]
    reach = list(zip(*(_reach(row["value"], row["low"], row["high"]) for row in rows), strict=True))
    axes.bar(places, values, color=CHOSEN, alpha=0.75, width=0.8)
    axes.errorbar(places, values, yerr=reach, fmt="none", ecolor="black", capsize=4, elinewidth=1.2)
    many = len(rows) > 6 or max(len(str(row["cell"])) for row in rows) > 12
    axes.set_xticks(
        places,
        [lines(str(row["cell"]), 24) for row in rows],
        fontsize=8,
        rotation=35 if many else 0,
        ha="right" if many else "center",
    )
    axes.yaxis.set_major_formatter(lambda y, _: number(y, 4))
    axes.set_ylabel("people", fontsize=9)
    axes.set_xlabel("cell; strokes: 95 % interval about these people", fontsize=8)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#EEEEEE", zorder=0)
    axes.set_axisbelow(True)


def _quantiles(axes: Any, rows: Sequence[Row]) -> None:
    """The share of people below each value; a line for each group."""
    for group, of_group in groupby(rows, key=_group):
        points = list(of_group)
        values, ps = [row["value"] for row in points], [100 * row["p"] for row in points]
        each = (_reach(p, r["low_percentile"], r["high_percentile"]) for p, r in zip(ps, points, strict=True))
        off = list(zip(*each, strict=True))
        axes.errorbar(
            values, ps, yerr=off, fmt="o-", capsize=4, elinewidth=1.2, label=lines(", ".join(group), 30)
        )
    if _group(rows[0]):
        axes.legend(fontsize=8, frameon=False, title=None)
    if isinstance(rows[0]["value"], float):
        axes.xaxis.set_major_formatter(lambda x, _: number(x, 4))
    else:
        axes.tick_params(axis="x", labelrotation=30)
    axes.set_ylim(0, 100)
    axes.set_ylabel("percent of the people below", fontsize=9)
    axes.set_xlabel("value; strokes: the percentiles it lies between (95 %)", fontsize=8)
    bare(axes)


def _coefficients(axes: Any, release: Release, fitted: Coefficients) -> None:
    """What each feature does to the target between its bounds: then different units can be compared."""
    names = list(fitted.coefficients)[:MOST_BARS][::-1]
    slopes = dict(zip(fitted.coefficients, fitted.scaled[1:], strict=True))
    effects = [2 * fitted.query.half * slopes[name] for name in names]
    axes.axvline(0, color="black", linewidth=0.8)
    axes.hlines(range(len(names)), 0, effects, color=OTHER, linewidth=2)
    axes.plot(effects, range(len(names)), "o", color=CHOSEN, markersize=7)
    axes.set_yticks(range(len(names)), [lines(name, 26) for name in names], fontsize=9)
    for y, (name, effect) in enumerate(zip(names, effects, strict=True)):
        text = f"{number(effect, 4)} ({number(fitted.coefficients[name], 4)} a unit)"
        axes.annotate(text, (effect, y), xytext=(0, 7), textcoords="offset points", fontsize=8, ha="center")
    axes.set_ylim(-0.7, len(names) - 0.2)
    axes.margins(x=0.2)
    axes.xaxis.set_major_formatter(lambda x, _: number(x, 4))
    axes.locator_params(axis="x", nbins=6)
    off = error(release.interval(0.95)[1])
    target = fitted.query.target.column
    about = f"change of {target} from a feature's lower bound to its upper one, or from the first category"
    noise = f"predictions are within about ± {off} of those without noise (95 %)"
    axes.set_xlabel(f"{lines(about, 90)}\n{noise}", fontsize=8)
    bare(axes)
