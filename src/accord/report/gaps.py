"""What a gap between levels does to an answer, in words: the sentence that plans and releases begin with.

And what a private look tells about it.
"""

from __future__ import annotations

from math import isinf
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from accord.planning import NO_DATA, Plan
from accord.report.tables import MOST_ROWS, add_row, error, near, shortened, text_table, to_text
from accord.statistics.gap import of_values
from accord.statistics.query import decimal

if TYPE_CHECKING:
    from accord.release.gaps import GapLook


def gap_view(plan: Plan) -> list[Text]:
    """For whom the errors of a plan are right; of several questions or groups, a line for each sentence."""
    if plan.choice is not None:
        sentence = gap_sentence(plan)
        return [Text(sentence)] if sentence else []
    if plan.is_grouped:
        return _of_public_groups(plan)
    said: dict[str, list[str]] = {}
    for part in plan.parts:
        said.setdefault(gap_sentence(part), []).append(part.query.label)
    said.pop("", None)
    if len(said) == 1 and len(plan.parts) == sum(map(len, said.values())):
        return [Text(sentence) for sentence in said]
    lines = [f"{', '.join(labels)}: {sentence[0].lower()}{sentence[1:]}" for sentence, labels in said.items()]
    more = f"… {len(lines) - MOST_ROWS:,} more"
    return [Text(more if line is None else line) for line in shortened(lines, MOST_ROWS)]


def gap_sentence(plan: Plan) -> str:
    """Whether the errors are right where levels go with values; empty: no data are read, or it is biased."""
    scale, gap, kappa = plan.query.gap_scale, plan.query.gap, plan.bias_bound
    if plan.mechanism in NO_DATA or kappa is None:
        return ""
    break_even, right = plan.break_even_gap, "Right if levels do not go with values"
    if plan.target.adds_up and not plan.relation.people_are_public:
        right += ", nor with who is there"  # who is not there adds 0
    if scale is None or break_even is None:
        return f"{right}."
    if isinf(break_even):
        return "Right even if levels go with values: everyone counts the same."
    if gap is not None:
        return (
            f"Right if the {scale.compared} of any two levels differ by at most {scale.text(gap)}, as "
            f"declared: the worst bias that this allows, {error(plan.prediction.bias)}, is in the errors and "
            "intervals."
        )
    if break_even >= float(scale.most):
        return (
            f"{right}; even at the largest gap that there can be the bias would be at most as large as the "
            "error."
        )
    return f"{right}; breaks even at a gap of {scale.text(break_even)}."


def look_text(look: GapLook) -> str:
    """What `print` shows of a private look at the gap."""
    return to_text(look_view(look))


def look_view(look: GapLook) -> RenderableType:
    """The means of levels, how far they may lie apart, and what that would change."""
    scale = of_values(decimal(look.width))
    table = text_table("level", ">mean", f">its expected mean, {look.confidence:.0%} together")
    for level, mean in look.means.items():
        low, high = look.within[level]
        digits = (high - low) / 4
        add_row(table, level, near(mean, digits), f"{near(low, digits)} … {near(high, digits)}")
    views: list[RenderableType] = [Text(look.release.plan.query.label, "bold"), table]
    if look.too_strict:
        what = "has" if len(look.too_strict) == 1 else "have"
        views.append(
            Text(
                f"Too strict, or too few, to tell: level {', '.join(look.too_strict)} {what} a mean that "
                "may lie anywhere in more than half of the bounds. Ask for a larger share, or take a gap "
                "from public knowledge (docs/gap.md)."
            )
        )
    bound = f"With {look.confidence:.0%} the gap between these levels is at most {scale.text(look.at_most)}"
    least = f", and at least {scale.text(look.at_least)}" if look.at_least else ""
    views.append(Text(f"{bound}{least}."))
    if look.after is None:
        views.append(Text("That is half of the bounds or more, which tells nothing."))
    else:
        plans = (f"{plan.mechanism}, rmse {error(plan.rmse)}" for plan in (look.before, look.after))
        without, declared = plans
        views.append(
            Text(f"A mean at everyone's whole level: {without} without a gap; {declared} with this one.")
        )
    views.append(Text("Who opted out was not read, and may differ more.", "dim"))
    return Group(*views)


def _of_public_groups(plan: Plan) -> list[Text]:
    """The sentence of the group that a gap harms most."""
    parts = [part for part in plan.parts if part.break_even_gap is not None and gap_sentence(part)]
    if not parts:
        return []
    worst = min(parts, key=lambda part: part.break_even_gap or 0.0)
    sentence = gap_sentence(worst)
    of_worst = " (in the group of which that is the least)" if len(parts) > 1 else ""
    return [Text(f"{sentence[:-1]}{of_worst}.")]


def about_interval(plan: Plan) -> list[Text]:
    """What is not in an interval, as its caption."""
    if not gap_sentence(plan) or plan.bias_bound == 0.0:
        return []
    if plan.query.gap is not None:
        return [Text("  the interval has the bias in it that the declared gap allows", "dim")]
    return [
        Text(
            "  the interval leaves out the bias that arises if levels go with values (gap= puts it in)", "dim"
        )
    ]
