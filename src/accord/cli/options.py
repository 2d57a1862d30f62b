"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from accord.statistics import ALL

STATISTICS = tuple(statistic.name for statistic in ALL)


def options(*options: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")


def plot_option(what: str) -> Callable[..., Any]:
    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Draw {what} into a .png, .svg or .pdf.",
    )


level_options = options(
    click.option(
        "--epsilon",
        required=True,
        metavar="COLUMN",
        help="The column of levels or tiers; a number: everyone's level.",
    ),
    click.option(
        "--tiers",
        metavar="NAME=ε,…",
        help="Levels of the tiers, such as strict=0.1,standard=1,public=inf (0: opted out).",
    ),
    click.option("--default", metavar="TIER|ε", help="The tier or level of people who have none."),
    click.option("--user", metavar="COLUMN", help="Who a row is of: people may have several."),
)


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    return options(
        click.argument("source"),
        click.argument("statistic", type=click.Choice(STATISTICS), metavar="STATISTIC"),
        click.argument("column", required=False),
        click.option(
            "--bounds",
            nargs=2,
            metavar="LO HI",
            help="Public bounds of the column: numbers, or dates for ranks.",
        ),
        level_options,
        click.option(
            "--where", metavar="CONDITION", help="Of whom, such as \"age >= 65 AND region = 'north'\"."
        ),
        click.option(
            "--by",
            metavar="COLUMN",
            help="An answer for each group of people with one of --keys in this column.",
        ),
        click.option("--keys", metavar="A,B,…", help="The groups of --by, declared."),
        click.option(
            "--membership",
            type=click.Choice(["private", "public"]),
            default="private",
            show_default=True,
            help="Whether everyone may know who is in which group.",
        ),
        click.option(
            "--max", "most", type=int, metavar="N", help="Of rows: the most that one person counts for."
        ),
        click.option("--edges", metavar="A,B,C,…", help="Edges of a histogram's cells."),
        click.option("--categories", metavar="A,B,…", help="A histogram's categories."),
        click.option(
            "--p", metavar="P[,P…]", help="Which quantile, between 0 and 1; several share the budget."
        ),
        click.option(
            "--on",
            metavar="COLUMN=…,…",
            help="A regression's features with their public bounds or categories: age=18..100,sex=f|m.",
        ),
        click.option("--std", type=float, help="A publicly known upper bound of the standard deviation."),
        click.option("--step", type=float, help="The values' own resolution, such as 1."),
        click.option(
            "--missing", metavar="VALUE|CELL", help="What missing values count as [default: the middle]."
        ),
        click.option("--mechanism", default="auto", show_default=True, help="A name of 'accord mechanisms'."),
        click.option(
            "--t",
            metavar="ε",
            help="The level of --mechanism threshold, or of sample (also max, mean, min) [default: the "
            "best].",
        ),
        click.option(
            "--share",
            type=float,
            help="The fraction of everyone's level that may be spent [default: 1; required with --ledger].",
        ),
        click.option("--ledger", metavar="URL", help="Where budgets are kept: a file, or postgresql://…"),
        click.option(
            "--remaining", is_flag=True, help="Plan from what the ledger has left; --share is a part of that."
        ),
        plot_option("the plan"),
        json_option,
    )(command)
