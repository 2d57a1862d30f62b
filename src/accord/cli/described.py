"""Tables that are described once, in accord.toml: a first description, batches of questions, and a sheet."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

import click

import accord
from accord.catalog_tables import COLUMN, TABLE
from accord.catalogs import FILE, IS_NAME
from accord.cli.completing import place
from accord.cli.group import DESCRIBED, main
from accord.cli.options import fresh_option, html_option, json_option, signature, signature_options
from accord.cli.parsing import catalog_here, catalog_path
from accord.cli.printing import print_result, refuse_in, tell_repeated, working
from accord.engines import Kind, open_source
from accord.errors import PlanError, SourceError
from accord.toml_files import TomlFile

_ABOUT = {field.name: field.about for field in (*COLUMN, *TABLE)}
_HEAD = """\
# Tables that are described once. What stands here is public knowledge: never take it from the data.
schema = 1

# Where budgets are kept; every release is then booked there. Make it with: accord ledger init TABLE
# ledger = "accord.db"
"""
_ASKED_FOR: dict[str, tuple[str, ...]] = {
    "number": ("bounds = [0, 100]", "step = 1", 'missing = "none"'),
    "date": ("bounds = [2020-01-01, 2026-01-01]", 'missing = "none"'),
    "timestamp": ("bounds = [2020-01-01T00:00:00, 2026-01-01T00:00:00]", 'missing = "none"'),
    "text": ('keys = ["…", "…"]',),
    "boolean": ("keys = [false, true]",),
    "untyped": ('kind = "number"', "bounds = [0, 100]", 'keys = ["…", "…"]'),
}
"""What to declare of a column, by what it holds."""


@main.command()
@place("source")
@click.option("--name", metavar="NAME", help="What the table is called [default: as the file is].")
@click.option("--epsilon", metavar="COLUMN", help="The column of levels or tiers.")
@click.option("--user", metavar="COLUMN", help="Who a row is of, if people may have several.")
def init(source: str, name: str | None, epsilon: str | None, user: str | None) -> None:
    """Write a first accord.toml for a SOURCE, from the names and types of its columns: no value is read.

    If there is one already, the table is added to it.
    """
    called = name or _name_of(source)
    if not IS_NAME.fullmatch(called):
        raise click.UsageError("give the table a --name, of letters, digits, - and _.")
    path = catalog_path()
    before = TomlFile(path, SourceError, "").text if path.exists() else ""
    if called in tomllib.loads(before).get("tables", {}):
        raise SourceError(f"{path} describes {called!r} already. Change it there, or give another --name.")
    if _has_password(source):
        raise SourceError(
            f"the address has a password in it, which {path} is no place for. Leave it out, and give it as "
            "PGPASSWORD or in ~/.pgpass."
        )
    columns = open_source(source, None).columns
    if epsilon is None and "epsilon" in columns:
        epsilon = "epsilon"
    for option, column in (("--epsilon", epsilon), ("--user", user)):
        if column is not None and column not in columns:
            known = accord.errors.did_you_mean(column, columns)
            raise SourceError(f"{option}: there is no column {column!r}: {known}")
    text = _first_table(called, source, columns, epsilon, user)
    try:
        tomllib.loads(f"{before}\n{text}")
    except tomllib.TOMLDecodeError:
        raise SourceError(
            f"nothing can be added to {path} as it is written: make its tables [tables.name]."
        ) from None
    try:
        with path.open("a" if before else "w", encoding="utf-8") as file:
            file.write(f"\n{text}" if before else f"{_HEAD}\n{text}")
    except OSError as fault:
        raise SourceError(f"{path} cannot be written ({fault.strerror}). Check the folder.") from None
    click.echo(f"{path}: [tables.{called}] with {len(columns)} columns. Fill in what is public, then: ")
    click.echo(f"accord plan {called} count")


def _has_password(source: str) -> bool:
    after_scheme = source.partition(":")[2]
    return bool(
        re.search(r"(?i)(password|passwd|pwd)\s*=", source) or re.search("/[^@]*:[^@]*@", after_scheme)
    )


def _name_of(source: str) -> str:
    """What a file is called, as a name."""
    name = unicodedata.normalize("NFKD", Path(source.rpartition("=")[2]).name.partition(".")[0])
    plain = "".join(letter for letter in name if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-")


def _first_table(
    name: str, source: str, columns: dict[str, Kind], epsilon: str | None, user: str | None
) -> str:
    """The description of a table, with comments that ask for what is public."""
    listed = ", ".join(map(repr, columns))
    lines = [
        f"[tables.{name}]",
        f"source = {_quoted(source)}",
        f"# {_ABOUT['about']}:",
        '# about = "…"',
        f"# {_ABOUT['epsilon']}; one of {listed}:" if epsilon is None else f"# {_ABOUT['epsilon']}:",
        f"epsilon = {_quoted(epsilon or '')}",
        f"# {_ABOUT['tiers']}:",
        "# tiers = { out = 0, strict = 0.1, standard = 1, public = inf }",
        f"# {_ABOUT['default']}:",
        '# default = "strict"',
        f"# {_ABOUT['user']}:",
        f"{'# ' if user is None else ''}user = {_quoted(user or '…')}",
    ]
    if "untyped" in columns.values():
        lines += [f"# {_ABOUT['csv']}:", '# csv = { decimal = ",", thousands = ".", dates = "%d.%m.%Y" }']
    for column, kind in columns.items():
        if column in (epsilon, user) or kind not in _ASKED_FOR:
            continue
        lines += ["", f"[tables.{name}.columns.{_key(column)}]"]
        if kind != "untyped":
            lines.append(f'kind = "{kind}"')
        for example in _ASKED_FOR[kind]:
            lines.append(f"# {example:<50} # {_ABOUT[example.partition(' ')[0]]}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if IS_NAME.fullmatch(name) else _quoted(name)


@main.command()
@click.argument("questions", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--plan", "is_planned", is_flag=True, help="Say what it would cost and how good it would be.")
@fresh_option
@signature_options
def run(questions: Path, is_planned: bool, fresh: bool, **options: Any) -> None:
    """Ask the QUESTIONS of a file as one workload, of a table in accord.toml. JSON on stdout, for cron:
    exit code 0 if all are answered, 1 if nothing is released. What was asked before of the same people and
    levels is given out again, free of charge, and says "repeated"; if their values change, give --fresh."""
    from accord.batches import read_batch

    refuse_in(True)
    batch, catalog = read_batch(questions), catalog_here()
    if catalog is None:
        raise SourceError(
            f"there is no {FILE} in this folder. A first one is written by 'accord init SOURCE'."
        )
    click.get_current_context().meta[DESCRIBED] = True
    people = catalog[batch.table]
    asked = batch.asked_of(people)
    about: dict[str, Any] = {"schema": 1, "table": batch.table, "names": list(batch.names)}
    ledger, share = people.own_ledger(), batch.share
    if ledger is None and (batch.remaining or batch.purpose or options["actor"] or options["purpose"]):
        raise SourceError(
            f"remaining, purpose and actor are about a ledger, and {batch.table} has none in "
            f"{catalog.label}. Name one there, or leave them out."
        )
    if ledger is not None and share is None and not (is_planned or batch.remaining):
        raise PlanError(
            "with a ledger, say how much of everyone's level this may spend: share = 0.1 is a tenth."
        )
    with working("reading the levels"):
        whole = 1.0 if share is None else share
        planned = people.plan(asked, batch.mechanism, whole, remaining=ledger if batch.remaining else None)
    if is_planned:
        print_result(True, lambda: {**planned.describe(), **about}, str)
        return
    signed = {**options, "purpose": options["purpose"] or batch.purpose}
    with working("reading the table"):
        released = people.release(planned, fresh=fresh, **({} if ledger is None else signature(signed)))
    print_result(True, lambda: {**released.receipt(), **about}, str)
    tell_repeated(released)


@main.command()
@click.argument("table")
@click.option("--ledger", metavar="URL", help="Where it is registered; known of a table in accord.toml.")
@html_option
@json_option
def report(table: str, ledger: str | None, html: Path | None, as_json: bool) -> None:
    """One sheet about a TABLE, without jargon: who chose what, what was asked, what it cost, what is left."""
    from accord.report.board import board, board_html, board_view
    from accord.report.pages import write_page

    refuse_in(as_json)
    about, catalog = "", catalog_here()
    if catalog is not None and table in catalog:
        about, ledger = catalog.about(table), ledger or catalog.ledger_of(table)
    if ledger is None:
        raise click.UsageError("give --ledger URL, or the name of a table in accord.toml that names one.")
    sheet = board(accord.Ledger(ledger, create=False), table, about)
    print_result(as_json, lambda: sheet, lambda: board_view(sheet))
    if html is not None:
        click.echo(f"page: {write_page(html, f'Statistics about {table}', board_html(sheet))}", err=True)
