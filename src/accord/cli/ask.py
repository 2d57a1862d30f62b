"""Questions about a table: plan, release, what if, what public people have, and how levels differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import accord
from accord.cli import parsing
from accord.cli.group import main
from accord.cli.options import (
    fresh_option,
    gap_options,
    look_options,
    signature,
    signature_options,
    table_options,
)
from accord.cli.printing import print_result, refuse_in, tell_repeated, working
from accord.cli.without_data import SourceOrLevels, levels_option, spec_of
from accord.statistics import Grouped


@main.command(cls=SourceOrLevels)
@table_options
@levels_option
def plan(**options: Any) -> None:
    """Predict the error of every mechanism, before any value is read."""
    from accord.release.receipt import remaining_document
    from accord.report.ledgers import remaining_view
    from accord.report.plans import plan_view

    refuse_in(options["as_json"])
    if (spec := spec_of(options)) is not None:
        query = parsing.question({}, options)
        _refuse_figure(query, options["plot"])
        t = parsing.as_number(options["t"])
        decided = accord.plan(spec, query, options["mechanism"], _share(options), t=t)
        _plot(decided, options["plot"])
        print_result(options["as_json"], decided.describe, lambda: plan_view(decided))
        return
    people, query = _opened(options)
    _refuse_figure(query, options["plot"])
    ledger = open_ledger(people, options)
    with working("reading the levels"):
        decided = _planned(people, query, ledger, options)
    if decided.choice is not None:
        _plot(decided, options["plot"])
    if ledger is None or decided.is_grouped:
        print_result(options["as_json"], decided.describe, lambda: plan_view(decided))
        return
    remaining, affordable = ledger.remaining(people), ledger.affordable(people, decided)

    def document() -> dict[str, Any]:
        return {**decided.describe(), "ledger": remaining_document(remaining, affordable)}

    print_result(options["as_json"], document, lambda: plan_view(decided))
    if not options["as_json"]:
        click.echo()
        print_result(False, dict, lambda: remaining_view(remaining, affordable, ledger.renewal))


@main.command()
@table_options
@fresh_option
@signature_options
def release(**options: Any) -> None:
    """Answer at everyone's own level, and say what it cost whom."""
    from accord.report.releases import release_view

    people, query = _opened(options)
    _refuse_figure(query, options["plot"])
    ledger = open_ledger(people, options, is_booked=True)
    asks = {**ledger_signature(ledger, options), "fresh": options["fresh"]}
    with working("reading the table"):
        if options["remaining"]:
            released = people.release(_planned(people, query, ledger, options), ledger=ledger, **asks)
        else:
            t = parsing.as_number(options["t"])
            released = people.release(
                query,
                options["mechanism"],
                options["share"],
                t=t,
                report_missing=options["report_missing"],
                ledger=ledger,
                **asks,
            )
    print_result(options["as_json"], released.receipt, lambda: release_view(released))
    if options["as_json"]:
        tell_repeated(released)
    if released.plan.choice is not None:  # after the answer, which has been paid for: the disk may be full
        refuse_in(False)  # stdout has its one document
        _plot(released.plan, options["plot"])


@main.command()
@look_options
@signature_options
def public(**options: Any) -> None:
    """Suggest bounds, step, std and keys of COLUMN, from people who are public. It costs them inf, and nobody
    else anything.
    """
    from accord.report.looks import look_view

    refuse_in(options["as_json"])
    people = parsing.table_of(options)
    url = _described_ledger(people, options) or options["ledger"]
    ledger = None if url is None else accord.Ledger(url, create=False)
    bounds = None if options["bounds"] is None else tuple(map(parsing.as_number, options["bounds"]))
    with working("reading public people"):
        look = people.public(
            options["column"],
            bounds,
            gap=options["gap"],
            share=options["share"],
            per_person=options["per_person"],
            ledger=ledger,
            **ledger_signature(ledger, options),
        )
    print_result(options["as_json"], look.describe, lambda: look_view(look))


@main.command("check-gap")
@gap_options
@signature_options
def check_gap(**options: Any) -> None:
    """Look, with noise, at how far the means of two levels of COLUMN lie apart: an upper bound for --gap.
    Each level pays for its own mean.
    """
    from accord.report.gaps import look_view

    refuse_in(options["as_json"])
    people = parsing.table_of(options)
    ledger = open_ledger(people, options, is_booked=True)
    with working("reading the table"):
        look = people.check_gap(
            options["column"],
            options["bounds"],
            share=options["share"],
            missing=parsing.as_number(options["missing"]),
            per_person=options["per_person"],
            confidence=options["confidence"],
            ledger=ledger,
            **ledger_signature(ledger, options),
        )
    print_result(options["as_json"], look.describe, lambda: look_view(look))
    if options["as_json"]:
        tell_repeated(look.release)


@main.command(cls=SourceOrLevels)
@table_options
@levels_option
def whatif(**options: Any) -> None:
    """Look ahead, from the levels alone: mechanisms, thresholds, what personal levels buy, and what if a tier
    moved. With --levels before anybody has chosen one, and without a SOURCE.
    """
    from accord.lab.whatif import outlook, views

    if options["mechanism"] != "auto" or options["t"] is not None:
        raise click.UsageError("whatif looks at every mechanism and every t. Leave --mechanism and --t out.")
    if options["report_missing"] is not None:
        raise click.UsageError("whatif looks at one question. Leave --report-missing out.")
    refuse_in(options["as_json"])
    if (spec := spec_of(options)) is not None:
        ahead = outlook.outlook(spec, parsing.question({}, options), _share(options))
    else:
        people, query = _opened(options)
        ledger = open_ledger(people, options)
        with working("reading the levels"):
            spec = people.spec() if ledger is None or not options["remaining"] else ledger.remaining(people)
            notes = people.check(query)
            ahead = outlook.outlook(spec, query, _share(options), people.neighbors, notes)
    if options["plot"] is not None:
        click.echo(f"figure: {views.draw(ahead, options['plot'])}", err=True)
    print_result(options["as_json"], ahead.describe, lambda: views.view(ahead))


main.add_command(  # what it was called before
    SourceOrLevels("compare", callback=whatif.callback, params=whatif.params, help=whatif.help, hidden=True)
)


def _opened(options: dict[str, Any]) -> tuple[accord.Table, accord.Query]:
    """The table and the question."""
    refuse_in(options["as_json"])
    if options["report_missing"] is not None and options["plot"] is not None:
        raise click.UsageError("--plot draws the plan of one question. Leave it or --report-missing out.")
    people = parsing.table_of(options)
    return people, parsing.question_about(people, options)


def open_ledger(
    people: accord.Table, options: dict[str, Any], is_booked: bool = False
) -> accord.Ledger | None:
    """The ledger of the options, or of the table's description: if something is booked or --remaining."""
    described = _described_ledger(people, options)
    has_remaining, plans_from_it = "remaining" in options, options.get("remaining", False)
    url = described if is_booked or plans_from_it else None
    if (url := options["ledger"] or url) is None:
        if plans_from_it:
            raise click.UsageError("--remaining is about a ledger: give --ledger URL.")
        return None
    if options["share"] is None and not plans_from_it:
        all_left = ", --remaining is all that is left" if has_remaining else ""
        raise click.UsageError(
            "with a ledger, say how much of everyone's level this may spend: --share 0.1 is a "
            f"tenth{all_left}."
        )
    return accord.Ledger(url, create=False)


def _described_ledger(people: accord.Table, options: dict[str, Any]) -> str | None:
    """The ledger of the table's description, in whose place none may be named."""
    if people.description is None or people.description.ledger is None:
        return None
    if options["ledger"] is not None:
        where = people.description.file
        raise click.UsageError(f"{where} says where the budgets of this table are. Leave --ledger out.")
    return people.description.ledger


def ledger_signature(ledger: accord.Ledger | None, options: dict[str, Any]) -> dict[str, Any]:
    """Who asks, and why, where it is booked."""
    if ledger is not None:
        return signature(options)
    if options["actor"] or options["purpose"]:
        raise click.UsageError("--actor and --purpose are booked in a ledger: give --ledger URL.")
    return {}


def _share(options: dict[str, Any]) -> float:
    return 1.0 if options["share"] is None else float(options["share"])


def _planned(
    people: accord.Table, query: accord.Query, ledger: accord.Ledger | None, options: dict[str, Any]
) -> accord.Plan:
    """By everyone's level, or by what the ledger has left of it."""
    mechanism, share, t = options["mechanism"], _share(options), parsing.as_number(options["t"])
    reported = options["report_missing"]
    left = ledger if options["remaining"] else None
    return people.plan(query, mechanism, share, t=t, report_missing=reported, remaining=left)


def _plot(decided: accord.Plan, path: Path | None) -> None:
    if path is not None:
        from accord.report.figures import draw_plan

        click.echo(f"figure: {draw_plan(decided, path)}", err=True)


def _refuse_figure(query: accord.Query, path: Path | None) -> None:
    """Refuse a figure that cannot be drawn, before anybody is charged."""
    if path is None:
        return
    if isinstance(query, Grouped) and query.part.public:
        raise click.UsageError("public groups have a plan each: draw one with --where instead of --by.")
    from accord.report.figures import refuse_path

    refuse_path(path)
