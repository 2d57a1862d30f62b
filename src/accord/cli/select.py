"""Questions in SQL."""

from __future__ import annotations

from typing import Any

import click

import accord
from accord.cli import parsing
from accord.cli.ask import ledger_signature, open_ledger
from accord.cli.group import DESCRIBED, main
from accord.cli.options import fresh_option, json_option, select_options, signature_options
from accord.cli.printing import console, print_result, refuse_in, tell_repeated, working


@main.command()
@click.argument("select")
@select_options
@fresh_option
@signature_options
@json_option
def sql(select: str, is_planned: bool, **given: Any) -> None:
    """Answer a SELECT of aggregates, at everyone's own level. FROM names a table of accord.toml, or a file.

    accord sql "SELECT ward, AVG(stay) FROM 'visits.parquet' WHERE age >= 65 GROUP BY ward" --epsilon tier
    --tiers strict=0.1,standard=1 --bounds stay=0..60 --keys ward=A,B
    """
    from accord.report.plans import plan_view
    from accord.report.selected import answers_view
    from accord.statistics.select import source_of

    refuse_in(given["as_json"])
    people = parsing.table_of({**given, "source": source_of(select)})
    click.get_current_context().meta[DESCRIBED] = False  # a SELECT has none of the words of accord.toml
    said: dict[str, Any] = {
        name: given[name] for name in ("max_rows", "membership", "at_most", "one_row_each", "suppress")
    }
    said["weights"] = _weights(given["weights"])
    bounds, keys = _bounds(given["bounds"]), _keys(people, given["keys"])
    said["gap"] = _gaps(given["gap"])
    if is_planned:
        asked = people.select(select, bounds, keys, **said).asked
        with working("reading the levels"):
            share = 1.0 if given["share"] is None else given["share"]
            planned = people.plan(asked, given["mechanism"], share)
        print_result(given["as_json"], planned.describe, lambda: plan_view(planned))
        return
    ledger = open_ledger(people, given, is_booked=True)
    asks = {**ledger_signature(ledger, given), "fresh": given["fresh"], "ledger": ledger}
    with working("reading the table"):
        answers = people.sql(
            select, bounds, keys, **said, mechanism=given["mechanism"], share=given["share"], **asks
        )
    print_result(given["as_json"], answers.receipt, lambda: answers_view(answers, console().width))
    if given["as_json"]:
        tell_repeated(answers.release)


def _bounds(texts: tuple[str, ...]) -> dict[str, Any]:
    """{column: (low, high)}, from COLUMN=LO..HI."""
    bounds = {}
    for text in texts:
        column, _, ends = text.rpartition("=")
        low, dots, high = ends.partition("..")
        if not column or not dots:
            raise click.UsageError(
                f"--bounds has {text!r}, which is not COLUMN=LO..HI. Write --bounds stay=0..60."
            )
        bounds[column] = parsing.as_number(low.strip()), parsing.as_number(high.strip())
    return bounds


def _weights(texts: tuple[str, ...]) -> dict[str, Any] | None:
    """{aggregate: weight}, from NAME=W."""
    return _named_numbers(texts, "--weights", "NAME=W", "--weights n=10") or None


def _gaps(texts: tuple[str, ...]) -> dict[str, Any]:
    """{column: gap}, from COLUMN=D."""
    return _named_numbers(texts, "--gap", "COLUMN=D", "--gap stay=1.5")


def _named_numbers(texts: tuple[str, ...], option: str, form: str, example: str) -> dict[str, Any]:
    numbers = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name:
            raise click.UsageError(f"{option} has {text!r}, which is not {form}. Write {example}.")
        numbers[name] = parsing.as_number(number.strip())
    return numbers


def _keys(people: accord.Table, texts: tuple[str, ...]) -> dict[str, Any]:
    """{column: groups}, from COLUMN=A,B or COLUMN=@file."""
    parsing.refuse_own_keys(people, texts)
    keys = {}
    for text in texts:
        column, is_pair, listed = text.partition("=")
        if not is_pair:
            raise click.UsageError(
                f"--keys has {text!r}, which is not COLUMN=A,B. Write --keys ward=A,B, for each column."
            )
        keys[column] = parsing.declared_keys(people.columns, column, listed)
    return keys
