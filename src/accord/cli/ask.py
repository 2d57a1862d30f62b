"""Questions about a table: plan, release, and what if."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import accord
from accord.cli import words
from accord.cli.group import main
from accord.cli.options import table_options
from accord.cli.printing import answer_in, print_result, print_view, working
from accord.statistics import Grouped


@main.command()
@table_options
def plan(**given: Any) -> None:
    """Predict the error of every mechanism, before any value is read."""
    people, query = _opened(given)
    _drawable(query, given["plot"])
    ledger = _open_ledger(given)
    with working("reading the levels"):
        made = _planned(people, query, ledger, given)
    if made.choice is not None:
        _plot(made, given["plot"])
    if ledger is None or made.is_grouped:
        print_view(given["as_json"], made.describe, "plan_view", made)
        return
    from accord.release.receipt import left_document

    left = ledger.remaining(people)
    affordable = ledger.affordable(people, made)
    print_view(
        given["as_json"],
        lambda: {**made.describe(), "ledger": left_document(left, affordable)},
        "plan_view",
        made,
    )
    if not given["as_json"]:
        click.echo()
        print_view(False, dict, "remaining_view", left, affordable)


@main.command()
@table_options
def release(**given: Any) -> None:
    """Answer at everyone's own level, and say what it cost whom."""
    people, query = _opened(given)
    _drawable(query, given["plot"])
    ledger = _open_ledger(given)
    with working("reading the table"):
        if given["remaining"]:
            made = people.release(_planned(people, query, ledger, given), ledger=ledger)
        else:
            made = people.release(
                query, given["mechanism"], given["share"], t=words.as_number(given["t"]), ledger=ledger
            )
    if made.plan.choice is not None:
        _plot(made.plan, given["plot"])
    print_view(given["as_json"], made.receipt, "release_view", made)


@main.command()
@table_options
def whatif(**given: Any) -> None:
    """Look ahead, from the levels alone: mechanisms, thresholds, what personal levels buy, and what if a tier
    moved.
    """
    from accord.lab.whatif import outlook, views

    if given["mechanism"] != "auto" or given["t"] is not None:
        raise click.UsageError("whatif looks at every mechanism and every t. Leave --mechanism and --t out.")
    people, query = _opened(given)
    ledger = _open_ledger(given)
    with working("reading the levels"):
        spec = people.spec() if ledger is None or not given["remaining"] else ledger.remaining(people)
        notes = people.check(query)
        share = 1.0 if given["share"] is None else given["share"]
        made = outlook.outlook(spec, query, share, people.neighbors, notes)
    if given["plot"] is not None:
        click.echo(f"figure: {views.draw(made, given['plot'])}", err=True)
    print_result(given["as_json"], made.describe, lambda: views.view(made))


main.add_command(  # what it was called before
    click.Command("compare", callback=whatif.callback, params=whatif.params, help=whatif.help, hidden=True)
)


def _opened(given: dict[str, Any]) -> tuple[accord.Table, accord.Query]:
    answer_in(given["as_json"])
    people = words.table_of(given)
    return people, words.question(people, given)


def _open_ledger(given: dict[str, Any]) -> accord.Ledger | None:
    if given["ledger"] is None:
        if given["remaining"]:
            raise click.UsageError("--remaining is about a ledger: give --ledger URL.")
        return None
    if given["share"] is None and not given["remaining"]:
        raise click.UsageError(
            "with --ledger, say how much of everyone's level this may spend: --share 0.1 is a tenth, "
            "--remaining is all that is left."
        )
    return accord.Ledger(given["ledger"], create=False)


def _planned(
    people: accord.Table, query: accord.Query, ledger: accord.Ledger | None, given: dict[str, Any]
) -> accord.Plan:
    share = 1.0 if given["share"] is None else given["share"]
    if ledger is None or not given["remaining"]:
        return people.plan(query, given["mechanism"], share, t=words.as_number(given["t"]))
    notes = people.check(query)
    return accord.plan(
        ledger.remaining(people), query, given["mechanism"], share, t=words.as_number(given["t"]), notes=notes
    )


def _plot(made: accord.Plan, path: Path | None) -> None:
    if path is not None:
        from accord.report.figures import draw_plan

        click.echo(f"figure: {draw_plan(made, path)}", err=True)


def _drawable(query: accord.Query, path: Path | None) -> None:
    """Refuses a figure that cannot be drawn, before anybody is charged."""
    if path is None:
        return
    if isinstance(query, Grouped) and query.part.public:
        raise click.UsageError("public groups have a plan each: draw one with --where instead of --by.")
    from accord.report.figures import need_place

    need_place(path)
