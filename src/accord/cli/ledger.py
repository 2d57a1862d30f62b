"""Budgets that last: `accord ledger …`."""

from __future__ import annotations

import os
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

import accord
from accord.budget import level_text
from accord.catalogs import IS_NAME
from accord.cli import parsing
from accord.cli.completing import place
from accord.cli.group import main
from accord.cli.options import (
    html_option,
    json_option,
    level_options,
    plot_option,
    signature,
    signature_options,
)
from accord.cli.printing import print_result, refuse_in, working
from accord.errors import did_you_mean


@main.group()
def ledger() -> None:
    """Budgets that last: who has how much left, and what was done with it.
    URL is a file such as accord.db, postgresql://…, or a table in accord.toml: the ledger that it names."""


@ledger.command()
@place("url")
@json_option
def init(url: str, as_json: bool) -> None:
    """Make a new ledger, with the key by which it knows people."""
    from accord.report.ledgers import init_view

    refuse_in(as_json)
    opened = _opened(url, create=True)
    entries = len(opened.entries())
    document = {"schema": 1, "ledger": opened.label, "entries": entries}
    named = "URL" if "://" in url else shlex.quote(url)  # which may hold a password
    print_result(as_json, lambda: document, lambda: init_view(opened.label, entries, named))


@ledger.command()
@place("url")
@click.argument("name", required=False)
@place("source", required=False)
@level_options
@click.option("--raise", "raise_levels", is_flag=True, help="Let people have a higher level than they had.")
@click.option("--agree", is_flag=True, help="Let levels come from another column, register or other tiers.")
@signature_options
@json_option
def register(url: str, name: str | None, **options: Any) -> None:
    """Make a table known under a NAME, or a new version of it: who is in it, and with which level.
    NAME and SOURCE are left out where URL is a table in accord.toml.
    Levels are raised, or come from elsewhere than before, only with --raise or --agree, and --why."""
    refuse_in(options["as_json"])
    if options["source"] is None:
        if name is not None or _ledger_of(url) is None:
            raise click.UsageError("give URL NAME SOURCE, or one table of accord.toml that names a ledger.")
        name = options["source"] = url
    assert name is not None  # of three words the second
    opened, people = _opened(url), parsing.table_of(options)
    agreed = {name: options[name] for name in ("raise_levels", "agree")}
    with working("reading who is in the table"):
        registration = opened.register(people, name, **agreed, **signature(options))
    document = {"schema": 1, **vars(registration)}
    print_result(options["as_json"], lambda: document, lambda: _plain(str(registration)))


@ledger.command()
@place("url")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@signature_options
@json_option
def withdraw(url: str, ids: tuple[str, ...], **options: Any) -> None:
    """Leave nothing to people in any table, at once and whatever later versions say: all of them or none."""
    _change(url, "withdraw", ids, options)


@ledger.command()
@place("url")
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@signature_options
@json_option
def readmit(url: str, ids: tuple[str, ...], **options: Any) -> None:
    """Take withdrawals back: people have their tables' level, less what they had spent. Needs --why."""
    _change(url, "readmit", ids, options)


def _change(url: str, kind: str, ids: tuple[str, ...], options: dict[str, Any]) -> None:
    """Withdraw or readmit people."""
    refuse_in(options["as_json"])
    opened = _opened(url)
    call = opened.withdraw if kind == "withdraw" else opened.readmit
    done = call(*ids, **signature(options))
    print_result(options["as_json"], lambda: {"schema": 1, **vars(done)}, lambda: _plain(str(done)))


@ledger.command()
@place("url")
@click.argument("person_id", metavar="ID")
@html_option
@signature_options
@json_option
def person(url: str, person_id: str, html: Path | None, **options: Any) -> None:
    """Everything that was released about one person, what it cost them, and what is left.
    The look-up is booked."""
    from accord.report.pages import write_page
    from accord.report.people import TITLE, person_html, person_view

    refuse_in(options["as_json"])
    record = _opened(url).person(person_id, **signature(options))
    print_result(options["as_json"], record.describe, lambda: person_view(record))
    if html is not None:
        click.echo(f"page: {write_page(html, TITLE, person_html(record))}", err=True)


@ledger.command()
@place("url")
@plot_option("the budgets")
@json_option
def show(url: str, plot: Path | None, as_json: bool) -> None:
    """Budgets by table and level: spent and left."""
    from accord.release.receipt import accounts_document
    from accord.report.ledgers import accounts_view

    refuse_in(as_json)
    opened = _opened(url)
    accounts = opened.accounts()
    if plot is not None:
        from accord.report.figures import draw_accounts

        click.echo(f"figure: {draw_accounts(accounts, plot)}", err=True)
    print_result(
        as_json, lambda: accounts_document(accounts), lambda: accounts_view(accounts, opened.renewal)
    )


@ledger.command()
@place("url")
@click.argument("names", metavar="[actor] [purpose]", nargs=-1)
@signature_options
@json_option
def require(url: str, names: tuple[str, ...], **options: Any) -> None:
    """Refuse from now on what is asked without actor, purpose or both; neither requires nothing any more."""
    refuse_in(options["as_json"])
    entry = _opened(url).require(*names, **signature(options))
    required = " and ".join(entry.content["require"]) or "nothing"
    verb = "have" if len(entry.content["require"]) > 1 else "has"
    print_result(
        options["as_json"],
        lambda: {"schema": 1, "entry": entry.seq, "require": entry.content["require"]},
        lambda: _plain(f"{required} {verb} to be said from now on, as entry {entry.seq:,}"),
    )


@ledger.command()
@place("url")
@click.argument("every", metavar="[year|quarter|month|never]", required=False)
@click.option("--amount", type=float, metavar="F", help="The part of everyone's level that comes back.")
@signature_options
@json_option
def renew(url: str, every: str | None, amount: float | None, **options: Any) -> None:
    """Let a part of everyone's level come back every calendar year, quarter or month; needs --why.
    Levels are then no longer for life. Without a period: say how budgets are renewed now."""
    refuse_in(options["as_json"])
    opened = _opened(url)
    if every is None and (amount is not None or options["purpose"] is not None):
        raise click.UsageError("say how often it comes back: year, quarter or month; or never.")
    entry = None if every is None else opened.renew(every, amount, **signature(options))
    renewal = opened.renewal
    said = "levels are for life: nothing of them comes back" if renewal is None else f"{renewal}"
    document: dict[str, Any] = {"schema": 1, "renewal": None}
    if renewal is not None:
        part, following = level_text(renewal.amount), renewal.next.isoformat()
        document["renewal"] = {"every": renewal.every, "amount": part, "next": following}
    if entry is not None:
        document["entry"] = entry.seq
        said = f"as entry {entry.seq:,}: {said}"
    print_result(options["as_json"], lambda: document, lambda: _plain(said))


@ledger.command()
@place("url")
@click.option("--table", metavar="NAME", help="Of this table only.")
@click.option(
    "--kind",
    metavar="KIND",
    help="release, repeat, register, withdraw, readmit, policy, renewal, renew, person, refused, restored, "
    "rotate or all.",
)
@click.option("--actor", metavar="NAME", help="What this one asked for.")
@click.option("--since", metavar="DATE", help="Not before this moment, in UTC.")
@click.option("--until", metavar="DATE", help="Before this moment.")
@json_option
def history(url: str, as_json: bool, **choice: Any) -> None:
    """Every release that was charged: question, mechanism, charges, predicted error, time, version.
    With any option but --json, also what else was done, as far as it is chosen."""
    from accord.report.ledgers import events_view, history_view

    refuse_in(as_json)
    opened = _opened(url)
    done = opened.history(**choice)
    releases = [event for event in done if event["kind"] == "release"]
    others = [event for event in done if event["kind"] != "release"]
    document = {"schema": 1, "releases": releases}
    if any(choice.values()):
        document["events"] = others
    if any(choice.values()) and not done:
        table, known = choice["table"], dict.fromkeys(a.table for a in opened.accounts())
        unknown = f"no table {table!r} is registered: {did_you_mean(table, known)}"
        said = unknown if table is not None and table not in known else "No entry is like that."
        print_result(as_json, lambda: document, lambda: _plain(said))
        return
    print_result(
        as_json,
        lambda: document,
        lambda: events_view(others, releases) if others else history_view(releases),
    )


@ledger.command()
@place("url")
@click.option(
    "--heads",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Heads that are kept elsewhere, as a service writes them: is each still in the chain?",
)
@json_option
def verify(url: str, heads: Path | None, as_json: bool) -> None:
    """Check that no entry was changed or removed, and that the accounts follow from them.
    Exit code 1 if not."""
    from accord.report.ledgers import verdict_view

    refuse_in(as_json)
    verdict = _opened(url).verify(heads)
    print_result(as_json, lambda: {"schema": 1, **vars(verdict)}, lambda: verdict_view(verdict))
    if verdict.problems:
        click.get_current_context().exit(1)


@ledger.command()
@place("url")
def export(url: str) -> None:
    """Every entry and account as one JSON document, which another program can check."""
    refuse_in(True)
    print_result(True, _opened(url).export, str)


@ledger.command("accept-backup")
@place("url")
@click.option("--why", required=True, help="The reason, in a line of text. It is booked.")
@json_option
def accept_backup(url: str, why: str, as_json: bool) -> None:
    """Go on from an older copy of a ledger.
    What was spent since it was made is forgotten: people may lose more than they allowed."""
    refuse_in(as_json)
    entry = _opened(url).accept_backup(why)
    forgotten = "Whatever was spent after this copy was made is forgotten."
    print_result(
        as_json,
        lambda: {"schema": 1, "entry": entry.seq, "hash": entry.hash, **entry.content},
        lambda: _plain(f"accepted, as entry {entry.seq:,}. {forgotten}"),
    )


@ledger.command("rotate-key")
@place("url")
@signature_options
@json_option
def rotate_key(url: str, **options: Any) -> None:
    """Put another key in the place of the ledger's, which somebody may have seen. Needs --why.
    Beside a file it is drawn; for a server, it is in the variable ACCORD_LEDGER_NEW_KEY."""
    refuse_in(options["as_json"])
    opened = _opened(url)
    with working("giving everyone another hash"):
        done = opened.rotate_key(os.environ.get("ACCORD_LEDGER_NEW_KEY"), **signature(options))
    print_result(options["as_json"], lambda: {"schema": 1, **vars(done)}, lambda: _plain(str(done)))


def _opened(url: str, create: bool = False) -> accord.Ledger:
    """The ledger at a URL, or the one that a table in accord.toml names."""
    if (described := _ledger_of(url)) is None and _is_mistyped(url):
        known = parsing.catalog_here() or ()
        raise click.UsageError(f"there is no table or ledger {url!r} here: {did_you_mean(url, list(known))}")
    return accord.Ledger(described or url, create=create)


def _is_mistyped(url: str) -> bool:
    """Whether a word is no file, and like the name of a table in accord.toml."""
    known = parsing.catalog_here()
    return known is not None and not Path(url).exists() and bool(get_close_matches(url, list(known)))


def _ledger_of(name: str) -> str | None:
    """The ledger that a table in accord.toml names; None: there is no such table, or it names none."""
    if not IS_NAME.fullmatch(name) or (catalog := parsing.catalog_here()) is None or name not in catalog:
        return None
    if (url := catalog.ledger_of(name)) is None:
        raise click.UsageError(f'{name} names no ledger in {catalog.label}. Add ledger = "accord.db" there.')
    return url


def _plain(line: str) -> Any:
    """A line of text, in which brackets are no markup."""
    from rich.text import Text

    return Text(line)
