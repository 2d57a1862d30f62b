"""Plans and releases as tables of text: for `print`, and in colour for the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from math import floor, inf, isnan, log10, nan
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accord.budget import PUBLIC, IntArray, amount_text, level_text
from accord.mechanisms import ALL
from accord.planning import Plan
from accord.release import Release
from accord.spec import Spec
from accord.statistics import Coefficients, Ends, Grouped
from accord.statistics.target import Rows

if TYPE_CHECKING:
    from accord.ledger.history import Account
    from accord.ledger.registering import Registration
    from accord.ledger.verifying import Verdict

_ROWS, _GROUPS = 12, 100
_WIDTH = 118


def plan_text(plan: Plan) -> str:
    return plain(plan_view(plan))


def release_text(release: Release) -> str:
    return plain(release_view(release))


def workload_view(plan: Plan) -> RenderableType:
    """Every question with its mechanism, error and charges, and what they cost together."""
    table = text_table(
        "question", "mechanism", ">error", "unit", ">charges", title=f"Plan: {plan.workload.label} together"
    )
    for part in plan.parts:
        charges = part.cost
        paid = charges[charges > 0].tolist()
        span = "–" if not paid else " … ".join(level_text(c) for c in sorted({min(paid), max(paid)}))
        add_row(table, part.query.label, part.mechanism, error(part.rmse), part.unit, span)
    gain = 1 - plan.total / plan.equal if plan.equal else 0.0
    return Group(
        table,
        Text(
            "The total error (squared, each as a fraction of the error without data) is "
            f"{error(plan.total)}: "
            f"{gain:.1%} below an equal split of share {level_text(plan.share)}.",
            "dim",
        ),
        "",
        _charges_table(plan.spec, plan.cost),
    )


def plan_view(plan: Plan) -> RenderableType:
    """What would be done, how well everything else would do, and what is taken for granted."""
    if plan.is_workload:
        return workload_view(plan)
    if plan.is_grouped:
        return grouped_plan_view(plan)
    table = text_table(
        "mechanism", ">error", ">here", ">× lowest", "how", title=f"Predicted error (rmse, {plan.unit})"
    )
    lowest = min((c.rmse for c in plan.candidates if c.rmse is not None), default=0.0)
    for c in sorted(plan.candidates, key=lambda c: (c.rmse is None, c.rmse)):
        chosen = c.mechanism == plan.mechanism
        cells = (
            ("–", "–", "–", f"refused: {c.note}")
            if c.rmse is None or c.rmse_here is None
            else (error(c.rmse), error(c.rmse_here), f"{c.rmse / lowest:.2f}" if lowest else "–", c.note)
        )
        add_row(
            table,
            f"{'→ ' if chosen else '  '}{c.mechanism}",
            *cells,
            style="bold green" if chosen else "dim" if c.rmse is None else "",
        )
    if plan.mechanism not in {c.mechanism for c in plan.candidates}:
        add_row(
            table,
            f"→ {plan.mechanism}",
            error(plan.rmse),
            error(plan.rmse_here),
            "–",
            "reads no data",
            style="bold green",
        )
    return Group(
        Text.assemble((f"Plan: {plan.query.label}", "bold"), f" by {plan.mechanism}: {plan.reason}."),
        "",
        table,
        Text(
            "error: about the population that these people are drawn from; here: about these very people",
            "dim",
        ),
        *_of_groups(plan),
        "",
        charges_view(plan),
        "",
        _bias(plan),
        Text("Taken as public knowledge:", "bold"),
        *(Padding(Text(f"· {a}"), (0, 0, 0, 2)) for a in plan.assumptions),
    )


def release_view(release: Release) -> RenderableType:
    """The answer, how far it may be off, and what it cost."""
    if release.plan.is_workload:
        first, *others = (release_view(part) for part in release.parts)
        return Group(first, *(view for other in others for view in ("", other)))
    if release.plan.is_grouped:
        return grouped_release_view(release)
    plan, value = release.plan, release.value
    head = Text.assemble((f"{plan.query.label}", "bold"), f" by {plan.mechanism}")
    taken = [Padding(Text(f"· {a}"), (0, 0, 0, 2)) for a in plan.assumptions]
    known = Text("Taken as public knowledge:", "bold")
    if isinstance(plan.target, Rows):
        from accord.release.receipt import plain

        return Group(head, Text(f"  {plain(value)}", "bold green"), "", charges_view(plan), "", known, *taken)
    interval = release.interval(0.95)
    off = Text(
        f"rmse {error(plan.rmse_here)} about these people, {error(plan.rmse)} about the population "
        f"({plan.unit})"
    )
    parts: list[RenderableType]
    if isinstance(plan.query, Grouped) and plan.query.part.by is not None:
        assert isinstance(interval, dict)
        parts = [head, _groups_table(plan.query.part.by, value, interval, plan.unit), off, *_of_groups(plan)]
    elif isinstance(value, Coefficients):
        table = text_table("in the columns' own units", ">coefficient")
        for name, slope in (
            ("intercept", value.intercept),
            *value.coefficients.items(),
        ):  # a feature may be called so
            add_row(table, name, number(slope))
        assert isinstance(interval, tuple)
        off = Text(
            f"predictions are within about ± {error(interval[1])} of those without noise (95 %); rmse "
            f"{error(plan.rmse_here)} here, {error(plan.rmse)} about the population"
        )
        parts = [head, *([Text(value.note)] if value.note else []), table, off]
    elif isinstance(value, dict) and isinstance(interval, dict):
        table = text_table("cell", ">people", ">95 % interval")
        for cell, v in value.items():
            add_row(table, str(cell), near(v, plan.rmse_here), _ends(interval[cell], plan.rmse_here))
        parts = [head, table, off]
    elif isinstance(value, list) and isinstance(interval, list):
        table = text_table(">p", ">value", ">percentiles, 95 %")
        for p, point, ends in zip(plan.query.describe()["p"], value, interval, strict=True):
            add_row(table, p, _point(point), _ends(ends, plan.rmse_here))
        parts = [head, table, off]
    else:
        assert not isinstance(value, dict | list) and isinstance(interval, tuple)
        told = "between the percentiles" if plan.unit == "percentile points" else "interval"
        parts = [
            head,
            Text.assemble(
                "  ",
                (
                    near(value, plan.rmse_here)
                    if isinstance(value, float) and plan.unit == "value"
                    else _point(value),
                    "bold green",
                ),
                f"   95 % {told} {_ends(interval, plan.rmse_here)}",
            ),
            off,
        ]
    return Group(*parts, "", charges_view(plan), "", _bias(plan), known, *taken)


def _of_groups(plan: Plan) -> list[Text]:
    """For which group an error holds that is told once for all of them."""
    query = plan.query
    if not isinstance(query, Grouped) or query.part.by is None or plan.target.adds_up:
        return []  # everyone adds something to every group of a sum or a count, be it 0
    return [
        Text(
            "for groups of the same size: of a smaller group the error is larger, of a larger one smaller",
            "dim",
        )
    ]


def _groups_table(by: str, rows: Any, interval: Mapping[Any, Any], unit: str) -> RenderableType:
    """A row for each group."""
    table = text_table(
        by, ">value", ">error", ">percentiles, 95 %" if unit == "percentile points" else ">95 % interval", ""
    )
    for row in _ends_of(rows):
        if row is None:
            add_row(
                table,
                f"… {len(rows) - _GROUPS:,} more groups",
                "",
                "",
                "",
                "all of them: .value, or --json",
                style="dim",
            )
            continue
        key, value, ends = row[by], row["value"], interval[row[by]]
        if value is None:
            add_row(table, str(key), "–", "–", "–", "nobody is there to ask", style="dim")
            continue
        told = near(value, row["rmse"]) if isinstance(value, float) and unit == "value" else _told(value)
        within = _ends(ends, row["rmse"]) if isinstance(ends, tuple) else "–"
        add_row(
            table, str(key), told, error(row["rmse"]), within, "too few people to tell" if row["few"] else ""
        )
    return table


def _ends_of(rows: Sequence[Any]) -> list[Any]:
    """The first and the last of many groups, and None between them."""
    return list(rows) if len(rows) <= _GROUPS else [*rows[: _GROUPS // 2], None, *rows[-_GROUPS // 2 :]]


def _told(value: Any) -> str:
    from accord.release.receipt import plain

    return str(plain(value)) if isinstance(value, dict | list | Coefficients) else _point(value)


def grouped_plan_view(plan: Plan) -> RenderableType:
    """Every public group with its people, its mechanism and its predicted error."""
    table = text_table(
        "group", ">people", "mechanism", ">error", ">charges", title=f"Plan: {plan.query.label}"
    )
    for one in _ends_of(list(plan.plans.items())):
        if one is None:
            more = f"… {len(plan.plans) - _GROUPS:,} more groups"
            add_row(table, more, "", "all of them: .plans, or --json", "", "", style="dim")
            continue
        key, part = one
        if part is None:
            add_row(table, plan.query.part.name(key), "0", "–", "–", "–", style="dim")
            continue
        paid = part.cost[part.cost > 0].tolist()
        span = "–" if not paid else " … ".join(level_text(c) for c in sorted({min(paid), max(paid)}))
        add_row(
            table, plan.query.part.name(key), f"{part.spec.total:,}", part.mechanism, error(part.rmse), span
        )
    return Group(
        table,
        Text("who is in which group is public, as declared: everyone pays for their own group only", "dim"),
    )


def grouped_release_view(release: Release) -> RenderableType:
    """What was answered about each public group, and what it cost whom."""
    query = release.plan.query
    if query.part.by is None:
        (alone,) = release.releases.values()
        return Text("nobody is there to ask") if alone is None else release_view(alone)
    parts: list[RenderableType] = [Text(query.label, "bold")]
    parts.append(_groups_table(query.part.by, release.value, release.interval(0.95), query.unit))
    answered = [(key, made) for key, made in release.releases.items() if made is not None]
    for one in _ends_of(answered):
        if one is None:
            more = f"… {len(answered) - _GROUPS:,} more groups; all of them: .charges, or --json"
            parts += ["", Text(more, "dim")]
            continue
        key, made = one
        parts += ["", Text(f"{query.part.name(key)}, by {made.mechanism}", "bold"), charges_view(made.plan)]
    return Group(*parts)


def charges_view(plan: Plan) -> RenderableType:
    """What each level is charged."""
    return _charges_table(plan.spec, plan.cost)


def _charges_table(spec: Spec, charges: IntArray) -> RenderableType:
    tiers = bool(spec.tiers)
    table = text_table(
        *(["tier"] if tiers else []),
        ">left" if spec.is_rest else ">level",
        ">people",
        ">charge",
        ">not used",
        title="Charges",
    )
    size = spec.micro.size
    for k in range(size) if size <= _ROWS else (*range(_ROWS // 2), None, *range(size - _ROWS // 2, size)):
        if k is None:
            add_row(table, *([""] if tiers else []), f"… {size - _ROWS:,} more levels", "", "", "")
            continue
        m, n, c = int(spec.micro[k]), int(spec.people[k]), int(charges[k])
        kept = (
            "everything"
            if c == 0
            else "–"
            if c == m
            else "all but the charge"
            if m == PUBLIC
            else level_text(m - c)
        )
        add_row(
            table,
            *([spec.tier(m) or ""] if tiers else []),
            level_text(m),
            f"{n:,}",
            level_text(c) if c else "not read",
            kept,
        )
    return table


def spec_view(spec: Spec) -> RenderableType:
    """The levels that people chose, as a table with bars."""
    everyone = spec.total + spec.opted_out
    table = text_table(
        "tier", ">level", ">people", "share", title=f"{everyone:,} people and the levels that they chose"
    )
    few = zip(spec.micro[:_ROWS].tolist(), spec.people[:_ROWS].tolist(), strict=True)
    rows = [(spec.tier(m) or "", level_text(m), n) for m, n in few]
    if spec.opted_out:
        rows.append((spec.tier(0) or "", "opted out", spec.opted_out))
    for tier, level, n in rows[:_ROWS]:
        add_row(table, tier, level, f"{n:,}", f"{'█' * round(40 * n / everyone)} {n / everyone:.0%}")
    return table


def remaining_view(left: Spec, affordable: int | None) -> RenderableType:
    """What is left to everyone, and how often a plan could still be released."""
    table = text_table(">left", ">people")
    rows = [(level_text(m), n) for m, n in zip(left.micro.tolist(), left.counts, strict=True)]
    if left.opted_out:
        rows.insert(0, ("0", left.opted_out))
    for level, n in rows if len(rows) <= _ROWS else [*rows[: _ROWS // 2], ("…", 0), *rows[-_ROWS // 2 :]]:
        add_row(table, level, f"{n:,}" if n else f"{len(rows) - _ROWS:,} more")
    told = (
        "Only public people are charged: it can be released without end."
        if affordable is None
        else "Somebody has less left than this costs them: it cannot be released as it is."
        if affordable == 0
        else f"As it is, it can be released {affordable:,} times."
        if affordable > 1
        else "As it is, it can be released once."
    )
    return Group(Text("Left in the ledger", "bold"), table, Text(told, "bold"))


def init_view(label: str, entries: int) -> RenderableType:
    return Text(
        f"made the ledger {label}. Register a table next: 'accord ledger register'."
        if not entries
        else f"the ledger {label} is there already, with {entries:,} entries."
    )


def registration_view(made: Registration) -> RenderableType:
    return Text(str(made))


def accounts_view(accounts: list[Account]) -> RenderableType:
    """Budgets by table and level, with bars."""
    if not accounts:
        return Text("No table is registered yet: 'accord ledger register'.")
    table = text_table(
        "table", "tier", ">level", ">people", ">spent", ">left", "spent of the level", title="Budgets"
    )
    shown = accounts if len(accounts) <= 4 * _ROWS else accounts[: 4 * _ROWS]
    for a in shown:
        part = 0.0 if a.level in (0, inf) else min(1.0, a.spent[1] / a.level)
        bar = (
            "opted out"
            if a.level == 0
            else "public"
            if a.level == inf
            else f"{'█' * round(20 * part):░<20} {part:.0%}"
        )
        add_row(
            table,
            a.table,
            a.tier or "",
            amount_text(a.level),
            f"{a.people:,}",
            _span(a.spent),
            _span(a.left),
            bar,
        )
    if len(accounts) > len(shown):
        add_row(table, f"… {len(accounts) - len(shown):,} more levels", "", "", "", "", "", "")
    return Group(table, Text("of people of one level the least and the most; the bar is for the most", "dim"))


def history_view(history: list[dict[str, Any]]) -> RenderableType:
    """Every release that was charged, with what came of it."""
    if not history:
        return Text("Nothing has been released yet.")
    table = text_table(
        ">entry", "time (UTC)", "table", "question", "mechanism", ">charges", ">rmse", "state", ">accord"
    )
    for made in history:
        paid = sorted({line["charge"] for line in made["booked"] if line["charge"] != "0"}, key=float)
        span = "–" if not paid else " … ".join(dict.fromkeys((paid[0], paid[-1])))
        receipts = made["receipts"] or [None] * len(made["queries"])
        for k, (query, receipt) in enumerate(zip(made["queries"], receipts, strict=True)):
            add_row(
                table,
                str(made["entry"]) if k == 0 else "",
                made["time"][:19].replace("T", " ") if k == 0 else "",
                f"{made['table']} v{made['version']}" if k == 0 else "",
                query,
                "" if receipt is None else receipt["mechanism"],
                span if k == 0 else "",
                "" if receipt is None else error(receipt["rmse"]),
                made["state"] if k == 0 else "",
                made["accord"] if k == 0 else "",
            )
    return table


def verdict_view(verdict: Verdict) -> RenderableType:
    """Whether a ledger is whole."""
    still = f"; {verdict.open:,} reservations without an answer, which are charged" if verdict.open else ""
    if verdict.restored:
        accepted = f"an older copy was accepted {verdict.restored:,} times"
        still += f"; {accepted}, and what was spent after it was made is forgotten"
    if not verdict.sealed:
        still += "; who wrote the entries was not checked, because the ledger's key is not at hand"
    if not verdict.problems:
        return Text(
            f"whole: {verdict.entries:,} entries follow from each other, and the accounts from them{still}",
            "green",
        )
    return Group(
        Text(f"{len(verdict.problems):,} problems in {verdict.entries:,} entries{still}", "bold red"),
        *(Padding(Text(f"· {p}"), (0, 0, 0, 2)) for p in verdict.problems[: 4 * _ROWS]),
    )


def _span(ends: tuple[float, float]) -> str:
    return " … ".join(dict.fromkeys(map(amount_text, ends)))


def mechanisms_view() -> RenderableType:
    """Every mechanism with paper, neighbors and guarantee."""
    table = text_table("mechanism", "paper", "neighbors", "guarantee", "answers")
    for m in ALL:
        proved = ", ".join(relation.name for relation in m.relations)
        add_row(table, m.name, m.paper, proved, m.guarantee, ", ".join(m.statistics))
    return table


def number(x: float, digits: int = 6) -> str:
    """A number for reading: so many significant digits, but every digit before the point; thousands apart.

    >>> number(61234.5678), number(0.000123456789), number(-3.0), number(12345678.9), number(861.2345, 3)
    ('61,234.6', '0.000123457', '-3', '12,345,679', '861')
    """
    if isnan(x):
        return "unknown"
    if x == 0 or abs(x) >= 1e15 or abs(x) < 1e-4:
        return f"{x:.{digits}g}"
    text = f"{x:,.{max(0, digits - 1 - floor(log10(abs(x))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def error(x: float | None) -> str:
    """An error: four digits say enough. Of an algorithm of one's own, nothing is known."""
    return number(nan if x is None else x, 4)


def _bias(plan: Plan) -> Text:
    if plan.bias_bound is None:
        return Text(
            "κ is not defined here: "
            + (
                "no data are read."
                if plan.mechanism in ("midpoint", "public")
                else "the answer is biased by design."
            )
        )
    return Text(plan.query.about_bias(plan.bias_bound))


def _point(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def near(x: float, off: float) -> str:
    """A number to the digits that its error leaves: two of the error's.

    >>> near(47461.894, 465.5), near(0.123456, 0.0042), near(763.918, 20.3)
    ('47,462', '0.1235', '764')
    """
    return number(x) if off == 0 else f"{x:,.{max(0, 1 - floor(log10(off)))}f}"


def _ends(interval: Ends, off: float) -> str:
    return f"{near(interval[0], off)} … {near(interval[1], off)}"


def add_row(table: Table, *cells: str, style: str = "") -> None:
    """Cells as they are: a tier named [b] is no markup."""
    table.add_row(*(Text(cell) for cell in cells), style=style)


def text_table(*columns: str, title: str | None = None) -> Table:
    table = Table(
        title=None if title is None else Text(title),
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
        padding=(0, 2, 0, 0),
    )
    for column in columns:
        right = column.startswith(">")
        table.add_column(Text(column[right:]), justify="right" if right else "left", overflow="fold")
    return table


def plain(view: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=_WIDTH, color_system=None, highlight=False).print(view)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
