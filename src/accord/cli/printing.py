"""What a command shows: results on stdout, refusals, progress and hints on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EPIPE
from typing import Any

import click

from accord.errors import AccordError


def answer_in(as_json: bool) -> None:
    """Refusals come in the same form as results."""
    click.get_current_context().meta["accord.json"] = as_json


def print_view(as_json: bool, document: Callable[[], dict[str, Any]], view: str, *args: Any) -> None:
    """One of the views of accord.report.text."""

    def made() -> Any:
        from accord.report import text

        return getattr(text, view)(*args)

    print_result(as_json, document, made)


def print_result(as_json: bool, document: Callable[[], dict[str, Any]], view: Callable[[], Any]) -> None:
    try:
        if as_json:
            from accord.release.receipt import to_json

            click.echo(_spelled(to_json(document())))
        else:
            console().print(view())
    except OSError as fault:
        if fault.errno == EPIPE:  # whoever reads has seen enough
            raise
        raise AccordError(
            f"cannot write the result ({fault.strerror}). Make room where stdout goes; what was charged "
            "stays charged."
        ) from None


def _spelled(document: str) -> str:
    """JSON as stdout can hold it."""
    try:
        document.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(document), indent=2)
    return document


def refuse(error: AccordError, as_json: bool) -> None:
    line = f"{type(error).__name__}: {error}"
    if not as_json:
        click.echo(line, err=True)
        return
    from accord.release.receipt import to_json

    try:
        click.echo(
            _spelled(to_json({"schema": 1, "error": {"type": type(error).__name__, "message": str(error)}}))
        )
    except OSError:  # stdout is full
        click.echo(line, err=True)


def console(stderr: bool = False) -> Any:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=118)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr, if someone is watching, with how far a long scan is."""
    from accord.engines import watched

    with console(stderr=True).status(f"{what} …") as status:

        def shown(percent: float) -> None:
            status.update(f"{what} … {percent:.0f} %" if 0 < percent < 100 else f"{what} …")

        with watched(shown):
            yield


@contextmanager
def progress(what: str) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """A bar on stderr, if someone is watching: to be called after each step with what was done; and with how
    many there are.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield (
            lambda name: bar.update(task, advance=1, description=f"{what} {name}"),
            lambda steps: bar.update(task, total=steps),
        )
