"""Plans and the levels behind them as tables of text: for `print`, and in colour for the command line."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from accord import odds
from accord.budget import PUBLIC, IntArray, level_text
from accord.mechanisms import ALL
from accord.planning import NO_DATA, Candidate, Plan
from accord.planning.together import cost_together
from accord.report.gaps import gap_view
from accord.report.tables import (
    MOST_GROUPS,
    MOST_ROWS,
    add_row,
    bullet,
    error,
    shortened,
    text_table,
    to_text,
)
from accord.spec import Spec
from accord.statistics import Grouped

_MOST_ODDS = 8
"""So many levels are explained in odds."""


def plan_text(plan: Plan) -> str:
    """What `print` shows of a plan."""
    return to_text(plan_view(plan))


def plan_view(plan: Plan) -> RenderableType:
    """What would be done, how well everything else would do, and what is taken for granted."""
    if plan.is_workload:
        return _workload_view(plan)
    if plan.is_grouped:
        return _public_groups_view(plan)
    about = "error: about the population that these people are drawn from; here: about these very people"
    if plan.spec.is_expected:
        about += "; expected, for as many people of each level as assumed"
    return Group(
        *rows_view(plan),
        Text.assemble(
            (f"Plan: {plan.heading}", "bold"), f"{of_all(plan)} by {plan.mechanism}: {plan.reason}."
        ),
        *gap_view(plan),
        "",
        _candidates_table(plan),
        Text(about, "dim"),
        *group_size_note(plan),
        *_missed_note(plan),
        "",
        charges_view(plan),
        "",
        *odds_view(plan),
        "",
        bias_text(plan),
        *assumptions_view(plan),
    )


def _candidates_table(plan: Plan) -> Table:
    """Every mechanism with its predicted error, the best first; those that are refused last."""
    table = text_table(
        "mechanism", ">error", ">here", ">× lowest", "how", title=f"Predicted error (rmse, {plan.unit})"
    )
    lowest = min((c.rmse for c in plan.candidates if c.rmse is not None), default=0.0)
    for candidate in sorted(plan.candidates, key=lambda c: (c.rmse is None, c.rmse)):
        cells = _candidate_cells(candidate, lowest)
        if candidate.mechanism == plan.mechanism:
            add_row(table, f"→ {candidate.mechanism}", *cells, style="bold green")
        else:
            add_row(table, f"  {candidate.mechanism}", *cells, style="dim" if candidate.rmse is None else "")
    if plan.mechanism in NO_DATA:
        cells = (error(plan.rmse), error(plan.rmse_here), "–", "reads no data")
        add_row(table, f"→ {plan.mechanism}", *cells, style="bold green")
    return table


def _candidate_cells(candidate: Candidate, lowest: float) -> tuple[str, str, str, str]:
    rmse, here, note = candidate.rmse, candidate.rmse_here, candidate.note
    if rmse is None or here is None:
        return "–", "–", "–", f"refused: {note}"
    return error(rmse), error(here), f"{rmse / lowest:.2f}" if lowest else "–", note


def _workload_view(plan: Plan) -> RenderableType:
    """Every question with its mechanism, error and charges, and what they cost together."""
    table = text_table(
        "question", "mechanism", ">error", "unit", ">charges", title=f"Plan: {plan.workload.label} together"
    )
    numbers = {key: number for number, keys in enumerate(plan.boxes, 1) for key in keys}
    for key, part in enumerate(plan.parts):
        by = part.mechanism + (f", box {numbers[key]}" if key in numbers else "")
        add_row(table, part.query.label, by, error(part.rmse), part.unit, _charge_range(part.cost))
    gain = 1 - plan.total / plan.equal if plan.equal else 0.0
    weights = plan.workload.weights
    weighted = f", times {', '.join(f'{w:g}' for w in weights)}" if len(set(weights)) > 1 else ""
    total = (
        f"Minimised is the total error (squared, each as a fraction of the error without data{weighted}): "
        f"{error(plan.total)}, {gain:.1%} below an equal split of share {level_text(plan.share)}."
    )
    if (reported := plan.workload.report_missing) is not None:
        total = f"{float(reported):.3g} of what may be spent is for how many people have no readable value."
    shared = [Text(text, "dim") for text in boxes_text(plan)]
    charges = "", charges_view(plan), "", *odds_view(plan)
    return Group(table, *gap_view(plan), Text(total, "dim"), *shared, *charges)


def boxes_text(plan: Plan) -> list[str]:
    """Which questions of a workload share a noise, and what that costs: a sentence for each box."""
    return [
        f"Box {number}: {len(keys)} questions share one noise, and everyone pays for them once, the largest "
        f"of their charges: {_charge_range(cost_together([plan.parts[key] for key in keys]))}."
        for number, keys in enumerate(plan.boxes, 1)
    ]


def _public_groups_view(plan: Plan) -> RenderableType:
    """Every public group with its people, its mechanism and its predicted error."""
    table = text_table(
        "group", ">people", "mechanism", ">error", ">charges", title=f"Plan: {plan.query.label}"
    )
    for group in shortened(list(plan.plans.items()), MOST_GROUPS):
        if group is None:
            more = f"… {len(plan.plans) - MOST_GROUPS:,} more groups"
            add_row(table, more, "", "all of them: .plans, or --json", "", "", style="dim")
            continue
        key, part = group
        name = plan.query.part.name(key)
        if part is None:
            add_row(table, name, "0", "–", "–", "–", style="dim")
            continue
        people, charges = f"{part.spec.total:,}", _charge_range(part.cost)
        add_row(table, name, people, part.mechanism, error(part.rmse), charges)
    public = "who is in which group is public, as declared: everyone pays for their own group only"
    return Group(table, *gap_view(plan), Text(public, "dim"))


def _missed_note(plan: Plan) -> list[Text]:
    """How large a group may be that is missed among the largest."""
    if (largest := plan.largest) is None or not plan.reads_data:
        return []
    missed = (
        f"with 95 % no group that is left out has over {error(largest.missed_at_most)} people more than one "
        "that is shown"
    )
    return [Text(missed, "dim")]


def _charge_range(charges: IntArray) -> str:
    """The smallest and the largest charge of those who are charged."""
    paid = charges[charges > 0].tolist()
    return " … ".join(level_text(c) for c in sorted({min(paid), max(paid)})) if paid else "–"


# ---- what plans and releases have in common --------------------------------------------------------------


def of_all(plan: Plan) -> str:
    """Of how many of all people an answer is, where a ledger has nothing left of some."""
    spec = plan.spec
    if not (spec.is_rest and spec.opted_out):
        return ""
    return f", of {spec.total:,} of all {spec.total + spec.opted_out:,} people,"


def charges_view(plan: Plan) -> RenderableType:
    """What each level is charged."""
    spec, charges = plan.spec, plan.cost
    tiers = bool(spec.tiers)
    table = text_table(
        *(["tier"] if tiers else []),
        ">left" if spec.is_rest else ">level",
        ">expected" if spec.is_expected else ">people",
        ">charge",
        ">not used",
        title="Charges",
    )
    for k in shortened(range(spec.micro.size), MOST_ROWS):
        if k is None:
            more = f"… {spec.micro.size - MOST_ROWS:,} more levels"
            add_row(table, *([""] if tiers else []), more, "", "", "")
            continue
        level, people, charge = int(spec.micro[k]), int(spec.people[k]), int(charges[k])
        add_row(
            table,
            *([spec.tier(level) or ""] if tiers else []),
            level_text(level),
            f"{people:,}",
            level_text(charge) if charge else "not read",
            _not_used(level, charge),
        )
    return table


def odds_view(plan: Plan) -> list[RenderableType]:
    """What the charges of this plan mean, in odds: a line for each level."""
    spec, charges = plan.spec, plan.cost
    lines: list[RenderableType] = [Text("What this can tell about one of them", "bold")]
    for k in shortened(range(spec.micro.size), _MOST_ODDS):
        if k is None:
            lines.append(bullet(f"… {spec.micro.size - _MOST_ODDS:,} more levels"))
            continue
        level, noun = int(spec.micro[k]), "{} left" if spec.is_rest else "ε = {}"
        lines.append(bullet(odds.charge_in_words(level, int(charges[k]), spec.tier(level), noun)))
    return lines


def _not_used(level: int, charge: int) -> str:
    if charge == 0:
        return "everything"
    if charge == level:
        return "–"
    return "all but the charge" if level == PUBLIC else level_text(level - charge)


def group_size_note(plan: Plan) -> list[Text]:
    """For which group an error holds that is stated once for all private groups."""
    query = plan.query
    if (largest := plan.largest) is not None and plan.reads_data:
        if plan.chooses_first:
            return [Text("error: of each size that is shown; noise is drawn after the choice", "dim")]
        chosen = (
            "error: of each size, before the largest are chosen. Of those that are chosen, together, it is "
            f"at most {error(largest.rmse_here_at_most)} about these people (root mean square)"
        )
        return [Text(chosen, "dim")]
    if not isinstance(query, Grouped) or not query.part.by or plan.target.adds_up:
        return []  # everyone adds something to every group of a sum or a count, be it 0
    size = "for groups of the same size: of a smaller group the error is larger, of a larger one smaller"
    spread = "; and for values as spread out as assumed" if plan.target.assumes_spread else ""
    return [Text(size + spread, "dim")]


def bias_text(plan: Plan) -> Text:
    """How far the answer may be off where levels go with values."""
    if plan.bias_bound is not None and plan.query.gap is not None:
        gap = plan.query.gap_scale.text(plan.query.gap)
        worst = f"the declared gap of {gap} biases this answer by at most {error(plan.prediction.bias)}"
        return Text(f"κ = {plan.bias_bound:.3f}: {worst}; the errors and intervals have that in them.")
    if plan.bias_bound is not None:
        return Text(plan.query.about_bias(plan.bias_bound))
    why = "no data are read." if plan.mechanism in NO_DATA else plan.query.why_no_kappa
    return Text(f"κ is not defined here: {why}")


def rows_view(plan: Plan) -> list[RenderableType]:
    """Who a person is, and what their rows come to, where they may have several: before anything else."""
    about = plan.about_rows
    return [Text(f"{about[0].upper()}{about[1:]}.")] if about else []


def assumptions_view(plan: Plan) -> list[RenderableType]:
    """What is taken as public knowledge, but for what `rows_view` says."""
    return [Text("Taken as public knowledge:", "bold"), *map(bullet, assumptions_of(plan))]


def assumptions_of(plan: Plan) -> list[str]:
    """The same, in sentences."""
    return [sentence for sentence in plan.assumptions if sentence != plan.about_rows]


# ---- levels and mechanisms -------------------------------------------------------------------------------


def spec_view(spec: Spec) -> RenderableType:
    """The levels that people chose, as a table with bars."""
    everyone = spec.total + spec.opted_out
    title = f"{everyone:,} people and the levels that they chose"
    if spec.is_expected:
        title = f"{everyone:,} people are expected, with these levels; who chose which is private"
    table = text_table("tier", ">level", ">people", "share", title=title)
    levels = zip(spec.micro[:MOST_ROWS].tolist(), spec.people[:MOST_ROWS].tolist(), strict=True)
    rows = [(spec.tier(level) or "", level_text(level), people) for level, people in levels]
    if spec.opted_out:
        rows.append((spec.tier(0) or "", "opted out", spec.opted_out))
    for tier, level, people in rows[:MOST_ROWS]:
        share = people / everyone
        add_row(table, tier, level, f"{people:,}", f"{'█' * round(40 * share)} {share:.0%}")
    return table


def mechanisms_view() -> RenderableType:
    """Every mechanism with paper, neighbors and guarantee."""
    table = text_table("mechanism", "paper", "neighbors", "guarantee", "answers")
    for m in ALL:
        neighbors = ", ".join(relation.name for relation in m.relations)
        add_row(table, m.name, m.paper, neighbors, m.guarantee, ", ".join(m.statistics))
    return table
