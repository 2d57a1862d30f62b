"""Releases as tables of text: for `print`, and in colour for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from accord.budget import charges_text, level_text
from accord.planning import Plan
from accord.release import Release
from accord.release.receipt import plain_data
from accord.report.crosstabs import crosstab_views, has_two_ways
from accord.report.gaps import about_interval, gap_view
from accord.report.plans import (
    assumptions_view,
    bias_text,
    boxes_text,
    charges_view,
    group_size_note,
    of_all,
    rows_view,
)
from accord.report.tables import (
    MOST_GROUPS,
    MOST_ROWS,
    add_row,
    error,
    near,
    number,
    shortened,
    text_table,
    to_text,
)
from accord.statistics import Algorithm, Coefficients, Ends, Grouped, Part, Query
from accord.statistics.levels import LevelMeansTarget
from accord.statistics.missing import MISSING, READABLE
from accord.statistics.target_ranks import Quantiles, Ranks

_PERCENTILES = "percentile points"


def release_text(release: Release) -> str:
    """What `print` shows of a release."""
    return to_text(release_view(release))


def release_view(release: Release) -> RenderableType:
    """The answer, how far it may be off, and what it cost; and what all releases of its table have cost."""
    view = _answer_and_charges(release)
    return view if release.unbooked is None else Group(view, "", Text(unbooked_text(release)))


def repeated_text(release: Release) -> str:
    """That an answer was given out again, in sentences."""
    times = sorted(part.time for part in release.parts if part.time is not None)
    span = " to ".join(dict.fromkeys(f"{time:%Y-%m-%d %H:%M}" for time in (times[0], times[-1])))
    given = release.repeated
    assert given is not None
    return (
        f"Asked before: this is the answer of {span} UTC, given out again as entry "
        f"{given.entry:,}. Nobody is charged. Values that have changed since are not in it: fresh=True (on "
        "the command line --fresh) draws anew."
    )


def _charges_of(release: Release) -> RenderableType:
    """What a release cost whom."""
    return charges_view(release.plan) if release.repeated is None else Text(repeated_text(release))


def unbooked_text(release: Release) -> str:
    """What the releases of a table without a ledger have charged everyone, in a sentence."""
    unbooked, spec = release.unbooked, release.plan.spec
    assert unbooked is not None
    levels, charges = unbooked.charged.levels, unbooked.charged.charges
    if levels.size <= MOST_ROWS:
        each = zip(levels.tolist(), charges.tolist(), strict=True)
        listed = ", ".join(
            f"{spec.tier(m) or f'level {level_text(m)}'} with {level_text(c)}" for m, c in each if c
        )
    else:
        listed = charges_text(levels, charges)
    at_most = ", at most," if unbooked.is_bound else ""
    return (
        f"No ledger keeps account: {unbooked.releases:,} releases of this table in this process have "
        f"charged{at_most} {listed}."
    )


def _answer_and_charges(release: Release) -> RenderableType:
    plan, value = release.plan, release.value
    if plan.is_workload:
        first, *others = (release_view(part) for part in release.parts)
        if plan.workload.report_missing is not None and isinstance(release.parts[1].value, dict):
            others = [
                _missing_text(release.parts[1], plan.queries[0]),
                Text("Both together:"),
                _charges_of(release),
            ]
        if plan.boxes:
            others += [Text("\n".join([*boxes_text(plan), "All together:"])), _charges_of(release)]
        return Group(first, *(view for other in others for view in ("", other)))
    if plan.is_grouped:
        return _public_groups_view(release)
    heading = Text.assemble((plan.heading, "bold"), f"{of_all(plan)} by {plan.mechanism}")
    head = Group(*rows_view(plan), heading, *gap_view(plan))
    charges, assumptions = _charges_of(release), assumptions_view(plan)
    if isinstance(plan.query, Algorithm):
        return Group(head, Text(f"  {plain_data(value)}", "bold green"), "", charges, "", *assumptions)
    answer = _answer_views(release, release.interval(0.95), release.interval_in_values(0.95))
    return Group(head, *answer, *about_interval(plan), "", charges, "", bias_text(plan), *assumptions)


def _missing_text(report: Release, asked: Query) -> Text:
    """How many people have no readable value, in a sentence; and whether that contradicts the question."""
    here, value, interval = report.plan.rmse_here, report.value, report.interval(0.95)
    column, (low, high) = report.plan.query.columns[0], interval[MISSING]
    missing, readable = (near(max(0.0, value[cell]), here) for cell in (MISSING, READABLE))
    contradicted = ""
    if low > 0 and asked.describe().get("missing") == "none":
        contradicted = (
            " The question declares that no value is missing. That is not so, and neither its error nor its "
            "interval holds: ask again without missing='none'."
        )
    return Text.assemble(
        "About ",
        (missing, "bold green"),
        f" people have no readable {column}, {readable} have one: "
        f"95 % {_ends((max(0.0, low), max(0.0, high)), here)} without.",
        (contradicted, "bold"),
    )


def _answer_views(release: Release, interval: Any, in_values: Any) -> list[RenderableType]:
    """The answer with its interval, that of a quantile also in values if there is one; and its error."""
    plan, value, here = release.plan, release.value, release.rmse_here
    rmse = Text(error_text(release))
    if has_two_ways(release):
        return crosstab_views(release)
    if isinstance(plan.query, Grouped) and plan.query.part.by:
        table = _groups_table(plan.query.part, value, interval, in_values, plan.unit)
        return [table, *about_suppressed(release), *_about_values(plan), rmse, *group_size_note(plan)]
    if isinstance(value, Coefficients):
        return _coefficients_views(release, value, interval)
    if isinstance(value, dict):
        names = ("level", ">mean") if isinstance(plan.target, LevelMeansTarget) else ("cell", ">people")
        table = text_table(*names, ">95 % interval")
        for cell, people in value.items():
            add_row(table, str(cell), near(people, here), _ends(interval[cell], here))
        return [table, rmse]
    if isinstance(value, list):
        table = text_table(">p", ">value", ">percentiles, 95 %", *([">values, 95 %"] if in_values else []))
        for k, p in enumerate(plan.query.describe()["p"]):
            between = [_points(in_values[k])] if in_values else []
            add_row(table, p, _point(value[k]), _ends(interval[k], here), *between)
        together = Text("95 %: all quantiles together are between these", "dim")
        return [table, together, *_about_values(plan), rmse]
    answer = near(value, here) if isinstance(value, float) and plan.unit == "value" else _point(value)
    if plan.unit != _PERCENTILES:
        about = f"95 % interval {_ends(interval, here)}"
    elif in_values:
        about = f"95 % between the values {_points(in_values)}, the percentiles {_ends(interval, here)}"
    else:
        about = f"95 % between the percentiles {_ends(interval, here)}"
    return [Text.assemble("  ", (answer, "bold green"), f"   {about}"), *_about_values(plan), rmse]


def error_text(release: Release) -> str:
    """Both errors of an answer, in words."""
    plan, judged = release.plan, ""
    if release.is_judged_by_size:
        spread = ", and as spread out," if plan.target.assumes_spread else ""
        judged = f", for as many{spread} as there seem to be"
    here, population = error(release.rmse_here), error(release.rmse)
    return f"rmse {here} about these people, {population} about the population ({plan.unit}){judged}"


def _coefficients_views(release: Release, value: Coefficients, interval: Ends) -> list[RenderableType]:
    """A regression: its coefficients, and how far its predictions may be off."""
    table = text_table("in the columns' own units", ">coefficient")
    add_row(table, "intercept", number(value.intercept))  # a feature may be called so, too
    for name, slope in value.coefficients.items():
        add_row(table, name, number(slope))
    off = (
        f"predictions are within about ± {error(interval[1])} of those without noise (95 %, approximate: "
        "1.96 × a predicted error that rests on tuned constants); "
        f"rmse {error(release.rmse_here)} here, {error(release.rmse)} about the population"
    )
    return [*([Text(value.note)] if value.note else []), table, Text(off)]


def _groups_table(
    part: Part, rows: Any, interval: Mapping[Any, Any], in_values: Mapping[Any, Any], unit: str
) -> RenderableType:
    """A row for each group."""
    about = [">percentiles, 95 %"] if unit == _PERCENTILES else [">95 % interval"]
    both = unit == _PERCENTILES and any(isinstance(ends, tuple) for ends in in_values.values())
    table = text_table(*part.by, ">value", ">error", *about, *([">values, 95 %"] if both else []), "")
    for row in shortened(rows, MOST_GROUPS):
        if row is None:
            more = f"… {len(rows) - MOST_GROUPS:,} more groups"
            dots = [""] * (4 if both else 3)
            add_row(
                table, more, *[""] * (len(part.by) - 1), *dots, "all of them: .value, or --json", style="dim"
            )
            continue
        key, value, rmse = part.group_of(row), row["value"], row["rmse"]
        names = [str(row[by]) for by in part.by]
        if value is None:
            dashes = ["–"] * (4 if both else 3)
            add_row(table, *names, *dashes, "nobody is there to ask", style="dim")
            continue
        ends = interval[key]
        add_row(
            table,
            *names,
            near(value, rmse) if isinstance(value, float) and unit == "value" else _any_answer(value),
            error(rmse),
            _ends(ends, rmse) if isinstance(ends, tuple) else "–",
            *([_points(in_values[key])] if both else []),
            "too few people to tell" if row["few"] else "",
        )
    return table


def _public_groups_view(release: Release) -> RenderableType:
    """What was answered about each public group, and what it cost whom."""
    query = release.plan.query
    if not query.part.by:
        (only,) = release.releases.values()
        return Text("nobody is there to ask") if only is None else release_view(only)
    views: list[RenderableType] = [Text(query.label, "bold"), *gap_view(release.plan)]
    if has_two_ways(release):
        views += crosstab_views(release)
    else:
        intervals = release.interval(0.95), release.interval_in_values(0.95)
        views.append(_groups_table(query.part, release.value, *intervals, query.unit))
    if release.repeated is not None:
        return Group(*views, "", Text(repeated_text(release)))
    answered = [(key, part) for key, part in release.releases.items() if part is not None]
    for group in shortened(answered, MOST_GROUPS):
        if group is None:
            more = f"… {len(answered) - MOST_GROUPS:,} more groups; all of them: .charges, or --json"
            views += ["", Text(more, "dim")]
            continue
        key, part = group
        views += ["", Text(f"{query.part.name(key)}, by {part.mechanism}", "bold"), charges_view(part.plan)]
    return Group(*views)


def about_suppressed(release: Release) -> list[Text]:
    """How many groups are left out, and by which rule; and for which groups the intervals hold."""
    together = release.groups_together
    if together == 1 and not release.plan.chooses_first:
        return []
    if (shown := release.plan.query.part.largest) is not None:
        return [Text(_about_largest(release, shown))]
    return [
        Text(
            f"{release.suppressed:,} of {together:,} groups are left out: shown are those whose noisy size "
            "is larger than noise makes that of an empty one, but for 5 % over all of them. 95 %: the "
            f"intervals of all {together:,} groups hold together. suppress=False (--no-suppress) shows all, "
            "each with its own."
        )
    ]


def _about_largest(release: Release, k: int) -> str:
    """By which rule the largest groups are shown, and what is known about the others."""
    if not release.plan.reads_data:
        return "No data are read, so that nothing tells which groups are the largest."
    groups = release.plan.private_groups
    number_shown = groups - release.suppressed
    fewer = (
        f"; {k - number_shown:,} fewer than asked for, because the others may be empty (suppress=False, "
        "--no-suppress, shows them)"
        if number_shown < k
        else ""
    )
    most = release.others_at_most()
    left_out = f", and none of the {release.suppressed:,} others has over"
    others = "" if most is None else f"{left_out} {error(most)} people"
    if release.plan.chooses_first:
        return (
            f"Shown are {number_shown:,} of {groups:,} groups, chosen by their size and counted then{fewer}. "
            f"95 %: the intervals of all that are shown hold together{others}."
        )
    return (
        f"Shown are the largest noisy sizes of {groups:,} groups{fewer}. 95 %: the intervals of all "
        f"{groups:,} groups hold together{others}. Sizes that are shown for being large lean upward."
    )


def _any_answer(value: Any) -> str:
    return str(plain_data(value)) if isinstance(value, dict | list | Coefficients) else _point(value)


def _point(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _about_values(plan: Plan) -> list[Text]:
    """That there is no interval in values, where there is none."""
    target = plan.target
    if not isinstance(target, Ranks) or target.in_values:
        return []
    ask = " (ask for interval='values', or --interval values)" if isinstance(target, Quantiles) else ""
    return [Text(f"  the interval in values: not available from one draw{ask}", "dim")]


def _points(interval: tuple[Any, Any]) -> str:
    """Between two points of the grid."""
    return f"{_point(interval[0])} … {_point(interval[1])}"


def _ends(interval: Ends, rmse: float) -> str:
    return f"{near(interval[0], rmse)} … {near(interval[1], rmse)}"
