"""The whole story on bundled real data, in a few screens."""

from __future__ import annotations

from importlib.resources import as_file, files
from importlib.util import find_spec
from math import inf
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

import accord
from accord.errors import AccordError
from accord.planning import Plan
from accord.report.figures import draw_plan
from accord.report.plans import plan_view, spec_view
from accord.report.releases import release_view
from accord.report.tables import error, number, text_table

TIERS = {"strict": 0.01, "standard": 0.05, "public": inf, "opted out": 0}
BOUNDS = (0, 200_000)


def write_table(path: Path) -> None:
    """The bundled table as a file of the user's own."""
    try:
        path.write_bytes((files("accord.data") / "people.parquet").read_bytes())
    except OSError as fault:
        raise AccordError(
            f"cannot write {str(path)!r} ({type(fault).__name__}). Name a file in a folder that exists."
        ) from None


def run(console: Console, figure: Path) -> None:
    """Print it, chapter by chapter, and write the figure."""
    with as_file(files("accord.data") / "people.parquet") as path:
        people = accord.table(path, epsilon="tier", tiers=TIERS, user="person")
        query = accord.mean("income", bounds=BOUNDS, missing="none")

        _chapter(console, 1, "People chose their own level")
        console.print(spec_view(people.spec()))
        console.print(
            "[dim]Incomes: US survey data (CPS, CC0). "
            "Tiers: drawn from published shares of privacy attitudes; see src/accord/data/PROVENANCE.md.[/]"
        )

        _chapter(console, 2, "The plan: how accurate would everything be? No income has been read yet")
        plan = people.plan(query)
        console.print(plan_view(plan))

        _chapter(console, 3, "The release: one noisy answer, at everyone's own level")
        release = people.release(plan)
        console.print(release_view(release))
        truth, value = _truth(path), release.value
        assert isinstance(value, float)
        console.print(
            "[dim]The exact mean of incomes within these bounds, which only a demo on public data may show, "
            f"is {number(truth)}: off by {error(abs(value - truth))}.[/]"
        )

        _chapter(console, 4, "What else could have been done")
        console.print(_alternatives(plan))
        saturated = accord.theory.saturation(people.spec())
        console.print(
            f"Privacy for free: {saturated.share:.0%} of the people allow more than they were charged. "
            f"Beyond τ = {plan.charges[inf]:.4g} it would not have made the answer better."
        )

        _chapter(console, 5, "The picture")
        if find_spec("matplotlib"):
            console.print(f"Written to [bold]{draw_plan(plan, figure)}[/].")
        else:
            console.print("No picture: matplotlib is not installed. Install accord[plot].")
        console.print(
            "\nNext, on your own table:  "
            "[bold]accord plan FILE mean COLUMN --bounds LOW HIGH --epsilon COLUMN[/]",
            soft_wrap=True,
        )


def _alternatives(plan: Plan) -> Table:
    """The two classic ways out, with what they cost in error and in people."""
    by_name = {c.mechanism: c for c in plan.candidates}
    chosen = by_name[plan.mechanism]
    assert chosen.rmse is not None
    rows = [
        ("everyone as they chose", plan.mechanism, chosen.rmse),
        ("throw the strict away, one level for the rest", "threshold", by_name["threshold"].rmse),
        ("treat everyone like the strictest", "minimum", by_name["minimum"].rmse),
    ]
    table = text_table("", "mechanism", ">error", ">as if there were")
    for approach, name, rmse in rows:
        if rmse is not None:
            lost = 1 - (chosen.rmse / rmse) ** 2
            table.add_row(approach, name, error(rmse), f"{lost:.0%} fewer people" if lost > 0.005 else "–")
    return table


def _truth(path: Path) -> float:
    import duckdb

    low, high = BOUNDS
    sql = f"SELECT avg(least(greatest(income, {low}), {high})) FROM read_parquet($1) WHERE epsilon > 0"
    return float(duckdb.connect().execute(sql, [str(path)]).fetchall()[0][0])


def _chapter(console: Console, number: int, title: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{number}. {title}[/]", align="left", style="dim"))
