"""The service: serve, and who may ask it: token."""

from __future__ import annotations

import logging
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

import accord
from accord.budget import level_text
from accord.catalogs import FILE
from accord.cli.group import main
from accord.cli.options import json_option, signature, signature_options
from accord.cli.printing import print_result, refuse_in
from accord.engines.duckdb_connection import OWN
from accord.errors import AccordError, SourceError
from accord.ledger.tokens import ANALYST, ROLES, Grant, Token, Tokens

if TYPE_CHECKING:
    from accord.server.office import Office

_PORT = 8410


@main.command()
@click.argument("catalog", type=click.Path(dir_okay=False, path_type=Path), default=FILE)
@click.option("--demo", is_flag=True, help="Serve the bundled people, from a folder that is removed again.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=_PORT, show_default=True, help="0: a free one."
)
@click.option("--cert", type=click.Path(dir_okay=False), help="A TLS certificate, as PEM; with --tls-key.")
@click.option("--tls-key", type=click.Path(dir_okay=False), help="Its key.")
@signature_options
def serve(
    catalog: Path, demo: bool, host: str, port: int, cert: str | None, tls_key: str | None, **given: Any
) -> None:
    """Let others ask about the tables of CATALOG [default: accord.toml], who never hold the data.
    Who may sign in is said by 'accord token add'."""
    missing = [name for name in ("fastapi", "jinja2", "uvicorn") if find_spec(name) is None]
    if missing:
        raise AccordError(f"serving needs {' and '.join(missing)}. Install accord[web].")
    if (cert is None) != (tls_key is None):
        raise click.UsageError("--cert and --tls-key belong together. Give both.")
    from accord.server.office import Office

    if not demo:
        office = Office(catalog)
        OWN.restrict(office.catalog.folders)
        _serve(office, host, port, cert, tls_key, given)
        return
    from accord.server.demo import make_demo

    with TemporaryDirectory(prefix="accord-demo-") as folder:
        OWN.restrict([str(Path(folder).resolve())])
        made = make_demo(Path(folder).resolve())
        for role, text in made.tokens.items():
            click.echo(f"{role:<8} {text}")
        _serve(Office(made.catalog), host, port, cert, tls_key, given)


def _serve(
    office: Office, host: str, port: int, cert: str | None, tls_key: str | None, given: dict[str, Any]
) -> None:
    """Serve until somebody stops it."""
    from accord.ledger.signing import Signature
    from accord.server.app import application
    from accord.server.listening import configuration

    office.serve_alone()
    signed = signature(given)
    office.agree_first(Signature(signed.get("actor"), signed.get("purpose") or "the first description"))
    if not office.is_agreed:
        click.echo(
            "the description has changed: nothing is released until the officer agrees to it.", err=True
        )
    if cert is None and host not in ("127.0.0.1", "localhost", "::1"):
        click.echo(
            "without --cert and --tls-key everybody on the way can read tokens and answers, unless a proxy "
            "on this machine has a certificate.",
            err=True,
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn ends, and then what was made is removed
    _log_to_stderr()
    app = application(office, (host,), cert is not None)
    _announcing(configuration(app, host, port, cert, tls_key, log_level="warning")).run()


def _log_to_stderr() -> None:
    """What accord logs, which is public things alone."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("accord")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _announcing(config: Any) -> Any:
    """A server that says where it is reached once it listens."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            for listening in self.servers:
                for socket in listening.sockets:
                    host, port = socket.getsockname()[:2]
                    scheme = "http" if config.ssl_certfile is None else "https"
                    click.echo(f"serving at {scheme}://{host}:{port}")

    return Server(config)


@main.group()
def token() -> None:
    """Who may sign in to a service, and ask what: an analyst, the officer, the owner."""


catalog_option = click.option(
    "--catalog",
    type=click.Path(dir_okay=False, path_type=Path),
    default=FILE,
    show_default=True,
    help="Whose ledger keeps the tokens.",
)


@token.command()
@click.argument("name")
@click.option(
    "--role", type=click.Choice(list(ROLES)), default=ANALYST, show_default=True, help="What they may do."
)
@click.option(
    "--table",
    "granted",
    multiple=True,
    metavar="TABLE[=SHARE/PERIOD]",
    help="Of an analyst: a table, and the share of everyone's level that they may spend of it in a calendar "
    "month, quarter or year [default: 0.1/month]. Give it once for each table.",
)
@click.option("--days", type=int, default=90, show_default=True, help="For how long it is valid.")
@catalog_option
@signature_options
@json_option
def add(name: str, role: str, granted: tuple[str, ...], days: int, **given: Any) -> None:
    """Make a token for NAME, under which everything that they ask is booked. It is shown once."""
    from accord.ledger import tokens
    from accord.ledger.signing import Signature

    refuse_in(given["as_json"])
    catalog, ledger = _ledger_of(given["catalog"])
    grants = dict(_grant(text) for text in granted)
    for table in grants:
        catalog.about(table)  # which refuses what is no table
    signed = Signature(**signature(given))
    made, text = tokens.add(ledger.books, name, role, grants, days, signed)
    document = {**_document(made), "text": text}
    print_result(given["as_json"], lambda: {"schema": 1, **document}, lambda: text)
    if not given["as_json"]:
        click.echo(
            f"for {made.name!r}, {made.role}, until {made.expires[:10]}. It is not shown again.", err=True
        )


@token.command(name="list")
@catalog_option
@json_option
def list_tokens(catalog: Path, as_json: bool) -> None:
    """Who may sign in, and who may not any more."""
    from accord.report.tables import add_row, text_table

    refuse_in(as_json)
    _, ledger = _ledger_of(catalog)
    listed = [_document(each) for each in Tokens(ledger.books).by_id.values()]

    def view() -> Any:
        table = text_table("token", "name", "role", "tables", "until", "state")
        for each in listed:
            grants = ", ".join(
                f"{name} {grant['share']}/{grant['per']}" for name, grant in each["grants"].items()
            )
            state = "revoked" if each["revoked"] else "valid" if each["valid"] else "expired"
            add_row(table, each["token"], each["name"], each["role"], grants, each["expires"][:10], state)
        return table

    print_result(as_json, lambda: {"schema": 1, "tokens": listed}, view)


@token.command()
@click.argument("token_id", metavar="TOKEN")
@catalog_option
@signature_options
@json_option
def revoke(token_id: str, catalog: Path, **given: Any) -> None:
    """Let nobody sign in any more with the token of this id (see 'accord token list')."""
    from accord.ledger import tokens
    from accord.ledger.signing import Signature

    refuse_in(given["as_json"])
    _, ledger = _ledger_of(catalog)
    revoked = tokens.revoke(ledger.books, token_id, Signature(**signature(given)))
    done = f"{revoked.name!r} may not sign in any more with {revoked.id}"
    print_result(given["as_json"], lambda: {"schema": 1, **_document(revoked)}, lambda: done)


def _ledger_of(path: Path) -> tuple[accord.Catalog, accord.Ledger]:
    catalog = accord.catalog(path)
    if catalog.ledger is None:
        raise SourceError(f'{catalog.label} names no ledger. Write ledger = "accord.db" at its top.')
    return catalog, accord.Ledger(catalog.ledger, create=False)


def _grant(text: str) -> tuple[str, Grant]:
    """A table and a quota, from TABLE=SHARE/PERIOD."""
    from accord.planning import whole_share

    table, _, quota = text.partition("=")
    share, _, period = (quota or "0.1/month").partition("/")
    try:
        return table, Grant(whole_share(float(share)), period)
    except ValueError:
        pass
    raise click.UsageError(f"--table has {text!r}, which is not TABLE=SHARE/PERIOD. Write people=0.1/month.")


def _document(each: Token) -> dict[str, Any]:
    return {
        "token": each.id,
        "name": each.name,
        "role": each.role,
        "grants": {
            table: {"share": level_text(grant.share), "per": grant.per}
            for table, grant in each.grants.items()
        },
        "expires": each.expires,
        "revoked": each.revoked,
        "valid": each.is_valid,
    }
