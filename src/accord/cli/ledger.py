"""Budgets that last: `accord ledger …`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import accord
from accord.cli import parsing
from accord.cli.group import main
from accord.cli.options import json_option, level_options, plot_option, signature, signature_options
from accord.cli.printing import print_result, refuse_in, working


@main.group()
def ledger() -> None:
    """Budgets that last: who has how much left, and what was done with it.
    URL is a file such as accord.db, or postgresql://…"""


@ledger.command()
@click.argument("url")
@json_option
def init(url: str, as_json: bool) -> None:
    """Make a new ledger, with the key by which it knows people."""
    from accord.report.ledgers import init_view

    refuse_in(as_json)
    opened = accord.Ledger(url)
    entries = len(opened.entries())
    document = {"schema": 1, "ledger": opened.label, "entries": entries}
    print_result(as_json, lambda: document, lambda: init_view(opened.label, entries))


@ledger.command()
@click.argument("url")
@click.argument("name")
@click.argument("source")
@level_options
@click.option("--raise", "raise_levels", is_flag=True, help="Let people have a higher level than they had.")
@click.option("--agree", is_flag=True, help="Let levels come from another column, register or other tiers.")
@signature_options
@json_option
def register(url: str, name: str, **options: Any) -> None:
    """Make a table known under a NAME, or a new version of it: who is in it, and with which level.
    Levels are raised, or come from elsewhere than before, only with --raise or --agree, and --why."""
    refuse_in(options["as_json"])
    opened, people = accord.Ledger(url, create=False), parsing.table_of(options)
    agreed = {name: options[name] for name in ("raise_levels", "agree")}
    with working("reading who is in the table"):
        registration = opened.register(people, name, **agreed, **signature(options))
    document = {"schema": 1, **vars(registration)}
    print_result(options["as_json"], lambda: document, lambda: _plain(str(registration)))


@ledger.command()
@click.argument("url")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@signature_options
@json_option
def withdraw(url: str, ids: tuple[str, ...], **options: Any) -> None:
    """Leave nothing to people in any table, at once and whatever later versions say: all of them or none."""
    _change(url, "withdraw", ids, options)


@ledger.command()
@click.argument("url")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@signature_options
@json_option
def readmit(url: str, ids: tuple[str, ...], **options: Any) -> None:
    """Take withdrawals back: people have their tables' level, less what they had spent. Needs --why."""
    _change(url, "readmit", ids, options)


def _change(url: str, kind: str, ids: tuple[str, ...], options: dict[str, Any]) -> None:
    """Withdraw or readmit people."""
    refuse_in(options["as_json"])
    opened = accord.Ledger(url, create=False)
    call = opened.withdraw if kind == "withdraw" else opened.readmit
    done = call(*ids, **signature(options))
    print_result(options["as_json"], lambda: {"schema": 1, **vars(done)}, lambda: _plain(str(done)))


@ledger.command()
@click.argument("url")
@plot_option("the budgets")
@json_option
def show(url: str, plot: Path | None, as_json: bool) -> None:
    """Budgets by table and level: spent and left."""
    from accord.release.receipt import accounts_document
    from accord.report.ledgers import accounts_view

    refuse_in(as_json)
    accounts = accord.Ledger(url, create=False).accounts()
    if plot is not None:
        from accord.report.figures import draw_accounts

        click.echo(f"figure: {draw_accounts(accounts, plot)}", err=True)
    print_result(as_json, lambda: accounts_document(accounts), lambda: accounts_view(accounts))


@ledger.command()
@click.argument("url")
@json_option
def history(url: str, as_json: bool) -> None:
    """Every release that was charged: question, mechanism, charges, predicted error, time, version."""
    from accord.report.ledgers import history_view

    refuse_in(as_json)
    releases = accord.Ledger(url, create=False).history()
    print_result(as_json, lambda: {"schema": 1, "releases": releases}, lambda: history_view(releases))


@ledger.command()
@click.argument("url")
@json_option
def verify(url: str, as_json: bool) -> None:
    """Check that no entry was changed or removed, and that the accounts follow from them.
    Exit code 1 if not."""
    from accord.report.ledgers import verdict_view

    refuse_in(as_json)
    verdict = accord.Ledger(url, create=False).verify()
    print_result(as_json, lambda: {"schema": 1, **vars(verdict)}, lambda: verdict_view(verdict))
    if verdict.problems:
        click.get_current_context().exit(1)


@ledger.command()
@click.argument("url")
def export(url: str) -> None:
    """Every entry and account as one JSON document, which another program can check."""
    refuse_in(True)
    print_result(True, accord.Ledger(url, create=False).export, str)


@ledger.command("accept-backup")
@click.argument("url")
@click.option("--why", required=True, help="The reason, in a line of text. It is booked.")
@json_option
def accept_backup(url: str, why: str, as_json: bool) -> None:
    """Go on from an older copy of a ledger.
    What was spent since it was made is forgotten: people may lose more than they allowed."""
    refuse_in(as_json)
    entry = accord.Ledger(url, create=False).accept_backup(why)
    forgotten = "Whatever was spent after this copy was made is forgotten."
    print_result(
        as_json,
        lambda: {"schema": 1, "entry": entry.seq, "hash": entry.hash, **entry.content},
        lambda: _plain(f"accepted, as entry {entry.seq:,}. {forgotten}"),
    )


def _plain(line: str) -> Any:
    """A line of text, in which brackets are no markup."""
    from rich.text import Text

    return Text(line)
