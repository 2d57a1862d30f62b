"""Options and arguments that several commands share."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from accord.cli.completing import place
from accord.statistics import ALL, PER_PERSON
from accord.statistics.gap import EVERYONE

STATISTICS = tuple(statistic.name for statistic in ALL)
DECIMAL = "decimal"
"""What --rounded says for rounded=True."""
OWN_OPTIONS = tuple(option for statistic in ALL for option in statistic.own_options)


def options(*options: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Several decorators as one, which shows them in this order."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


fresh_option = click.option(
    "--fresh", is_flag=True, help="Draw anew, and charge again, also if the ledger has the answer already."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")


html_option = click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page to print, too.",
)


def _two_bounds(ctx: click.Context, param: click.Parameter, given: Any) -> Any:
    """LO and HI, two words: what is written as one would take the option after it for the other."""
    for low, high in given if param.multiple else [given] if given else []:
        if high.startswith("--") or "," in low or "," in high:
            raise click.BadParameter(
                f"{low!r} and {high!r} are not two bounds. Write two words, with points in numbers: "
                "--bounds 0 2500.5.",
                ctx,
                param,
            )
    return given


def plot_option(subject: str) -> Callable[..., Any]:
    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Draw {subject} into a .png, .svg or .pdf.",
    )


level_options = options(
    click.option(
        "--epsilon",
        metavar="COLUMN",
        help="The column of levels or tiers; a number: everyone's level. Required, unless SOURCE is a name "
        "in accord.toml, which says all of this.",
    ),
    click.option(
        "--tiers",
        metavar="NAME=ε,…",
        help="Levels of the tiers, such as strict=0.1,standard=1,public=inf (0: opted out).",
    ),
    click.option("--default", metavar="TIER|ε", help="The tier or level of people who have none."),
    click.option("--user", metavar="COLUMN", help="Who a row is of: people may have several."),
    click.option(
        "--expected",
        metavar="NAME=N,…",
        help="Levels are private: who chose which, and how many, is nobody's business. Plan for so many "
        "people of each tier, or of each level, such as strict=4000,standard=9000.",
    ),
    click.option(
        "--csv",
        multiple=True,
        metavar="KEY=VALUE",
        help="How CSV files are read, each time one of delimiter, decimal, thousands, encoding, dates, true, "
        "false: --csv decimal=, --csv dates=%d.%m.%Y",
    ),
    click.option(
        "--consent",
        metavar="SOURCE",
        help="A register of who chose which level, joined by --user; --epsilon is then a column of it.",
    ),
    click.option("--consent-user", metavar="COLUMN", help="Its column of people, if it has another name."),
    click.option(
        "--consent-csv", multiple=True, metavar="KEY=VALUE", help="How it is read as a CSV file, like --csv."
    ),
    click.option(
        "--valid-from",
        metavar="COLUMN",
        help="Since when its entries are valid; the latest counts [default: valid_from, if it is there].",
    ),
    click.option("--as-of", metavar="DATE", help="The moment at which they count [default: now, in UTC]."),
)
OF_TABLES = (
    *("epsilon", "tiers", "default", "user", "expected", "csv"),
    *("consent", "consent_user", "consent_csv", "valid_from", "as_of"),
)
"""What these are called: a description has them all."""


signature_options = options(
    click.option("--actor", metavar="NAME", help="Who does it; it is booked [default: this user]."),
    click.option("--why", "--purpose", "purpose", metavar="TEXT", help="Why, in a line; it is booked."),
)


def signature(given: dict[str, Any]) -> dict[str, Any]:
    """Who does it, and why: the user of this process, unless somebody else is named."""
    return {"actor": given["actor"] or _user(), "purpose": given["purpose"]}


def _user() -> str | None:
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a process without a user that has a name
        return None
    return name if name.isprintable() else None


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """What a question about a table is made of."""
    return options(
        place("source"),
        click.argument("statistic", type=click.Choice(STATISTICS), metavar="STATISTIC"),
        click.argument("column", nargs=-1, metavar="[COLUMN]…"),
        click.option(
            "--bounds",
            nargs=2,
            multiple=True,
            callback=_two_bounds,
            metavar="LO HI",
            help="Public bounds of the column: numbers, or dates for ranks. Of two columns, once for each.",
        ),
        level_options,
        click.option(
            "--where", metavar="CONDITION", help="Of whom, such as \"age >= 65 AND region = 'north'\"."
        ),
        click.option(
            "--by",
            multiple=True,
            metavar="COLUMN",
            help="An answer for each group of people with one of --keys in this column; given several times, "
            "for each combination.",
        ),
        click.option(
            "--keys",
            multiple=True,
            metavar="[COLUMN=]A,B,…|@FILE",
            help="The groups of --by, declared: listed, or in a file (.txt with one a line, .csv, .parquet); "
            "of several columns, each: --keys ward=@wards.txt --keys sex=f,m.",
        ),
        click.option(
            "--membership",
            type=click.Choice(["private", "public"]),
            default="private",
            show_default=True,
            help="Whether everyone may know who is in which group.",
        ),
        click.option(
            "--at-most",
            type=int,
            default=1,
            show_default=True,
            metavar="K",
            help="With --user: in how many groups or categories one person may be.",
        ),
        click.option(
            "--suppress/--no-suppress",
            default=None,
            help="Leave out groups that may be empty, as far as the noise tells [default: above 50 groups].",
        ),
        click.option(
            "--rest",
            multiple=True,
            metavar="[COLUMN=]NAME",
            help="One more group, of everyone whose value is none of --keys, by this name; of several "
            "columns, of each of them, or --rest ward=other for some.",
        ),
        *(
            click.option(f"--{own.name}", type=own.type, metavar=own.metavar, help=own.help)
            for own in OWN_OPTIONS
        ),
        click.option("--edges", metavar="A,B,C,…", help="Edges of a histogram's cells: numbers or dates."),
        click.option("--categories", metavar="A,B,…", help="A histogram's categories."),
        click.option(
            "--p", metavar="P[,P…]", help="Which quantile, between 0 and 1; several share the budget."
        ),
        click.option(
            "--interval",
            type=click.Choice(["values"]),
            help="Of a quantile, an interval in values, too; two thirds of the charge are spent on it.",
        ),
        click.option(
            "--on",
            metavar="COLUMN=…,…",
            help="A regression's features with their public bounds or categories: age=18..100,sex=f|m.",
        ),
        click.option(
            "--rounded",
            metavar=f"{DECIMAL}|X,X,…",
            help="Of ranks: most people round such values, to decimal steps or to these; publicly known.",
        ),
        click.option("--std", type=float, help="A publicly known upper bound of the standard deviation."),
        click.option(
            "--gap",
            type=float,
            metavar="D",
            help="How far the means (shares, distributions) of any two levels may lie apart, publicly known: "
            "in the column's units, of ranks in percentile points, of shares from 0 to 1.",
        ),
        click.option(
            "--about",
            type=click.Choice([EVERYONE]),
            help="Of everyone, the opted-out included, as far as --gap tells.",
        ),
        click.option("--step", metavar="X", help="The values' own resolution, such as 1, or '1 day'."),
        click.option(
            "--missing",
            metavar="exclude|none|middle|VALUE|CELL",
            help="People without a value are left out, none is missing, or what they count as "
            "[default: exclude].",
        ),
        click.option(
            "--report-missing",
            type=float,
            metavar="F",
            help="Spend this part of the charge on how many people have no readable value, such as 0.05.",
        ),
        click.option(
            "--per-person",
            type=click.Choice(PER_PERSON),
            help="With --user: what a person's rows come to [default: as the statistic has it].",
        ),
        click.option("--mechanism", default="auto", show_default=True, help="A name of 'accord mechanisms'."),
        click.option(
            "--t",
            metavar="ε",
            help="The level of --mechanism threshold, or of sample (also max, mean, min) "
            "[default: the best].",
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


select_options = options(
    level_options,
    click.option(
        "--bounds",
        multiple=True,
        metavar="COLUMN=LO..HI",
        help="Public bounds of a column that is aggregated.",
    ),
    click.option(
        "--keys", multiple=True, metavar="COLUMN=A,B,…", help="The groups of a column of GROUP BY, declared."
    ),
    click.option(
        "--gap",
        multiple=True,
        metavar="COLUMN=D",
        help="How far the means of any two levels may lie apart in a column of AVG, publicly known.",
    ),
    click.option(
        "--max-rows",
        type=int,
        metavar="N",
        help="With --user: the most that one person counts for in COUNT(*).",
    ),
    click.option(
        "--membership",
        type=click.Choice(["private", "public"]),
        default="private",
        show_default=True,
        help="Whether everyone may know who is in which group.",
    ),
    click.option(
        "--at-most", type=int, metavar="K", help="With --user: in how many groups one person may be."
    ),
    click.option("--one-row-each", is_flag=True, help="With --user: declares that everyone has one row."),
    click.option(
        "--suppress/--no-suppress",
        default=None,
        help="Leave out groups that may be empty, as far as the noise tells [default: above 50 groups].",
    ),
    click.option(
        "--weights",
        multiple=True,
        metavar="NAME=W",
        help="How much the squared error of an aggregate counts, by its name [default: 1].",
    ),
    click.option("--mechanism", default="auto", show_default=True, help="A name of 'accord mechanisms'."),
    click.option(
        "--share",
        type=float,
        help="The fraction of everyone's level that may be spent [default: 1; required with --ledger].",
    ),
    click.option("--ledger", metavar="URL", help="Where budgets are kept: a file, or postgresql://…"),
    click.option("--plan", "is_planned", is_flag=True, help="Predict the errors only; no value is read."),
)
"""What a SELECT cannot say."""

look_options = options(
    place("source"),
    click.argument("column"),
    click.option(
        "--bounds",
        nargs=2,
        callback=_two_bounds,
        metavar="LO HI",
        help="Bounds that are declared: numbers or dates.",
    ),
    click.option(
        "--gap",
        type=float,
        help="How far the means of two levels may lie apart, publicly known [default: not known].",
    ),
    level_options,
    click.option(
        "--per-person",
        type=click.Choice(PER_PERSON),
        help="With --user: what a person's rows come to [default: mean].",
    ),
    click.option(
        "--share",
        type=float,
        default=1.0,
        show_default=True,
        help="The fraction of everyone's level that a mean is to spend; with --gap it decides.",
    ),
    click.option("--ledger", metavar="URL", help="Where budgets are kept: a file, or postgresql://…"),
    json_option,
)
"""What a look at public people is made of."""

gap_options = options(
    place("source"),
    click.argument("column"),
    click.option("--bounds", nargs=2, type=float, metavar="LO HI", help="Public bounds of the column."),
    level_options,
    click.option(
        "--missing",
        metavar="exclude|none|middle|VALUE",
        default="exclude",
        show_default=True,
        help="People without a value are left out, none is missing, or what they count as.",
    ),
    click.option(
        "--per-person",
        type=click.Choice(PER_PERSON),
        help="With --user: what a person's rows come to [default: mean].",
    ),
    click.option(
        "--share",
        type=float,
        default=0.05,
        show_default=True,
        help="The fraction of everyone's level that is spent on it.",
    ),
    click.option(
        "--confidence",
        type=float,
        default=0.95,
        show_default=True,
        help="With which the gap is not larger than what is said.",
    ),
    click.option("--ledger", metavar="URL", help="Where budgets are kept: a file, or postgresql://…"),
    json_option,
)
"""What a private look at the gap between levels is made of."""
