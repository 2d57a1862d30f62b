"""What a command shows: results on stdout, refusals, progress and hints on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EPIPE
from typing import Any, TextIO

import click

import accord
from accord.errors import AccordError


def refuse_in(as_json: bool) -> None:
    """Have refusals come in the same form as results."""
    click.get_current_context().meta["accord.json"] = as_json


def print_result(as_json: bool, document: Callable[[], dict[str, Any]], view: Callable[[], Any]) -> None:
    """A result on stdout: as one JSON document, or as text."""
    try:
        if as_json:
            print_document(document())
        else:
            console().print(view())
    except OSError as fault:
        if fault.errno == EPIPE:  # whoever reads has seen enough
            raise
        raise AccordError(
            f"cannot write the result ({fault.strerror}). Make room where stdout goes; "
            "what was charged stays charged."
        ) from None


def print_document(document: dict[str, Any]) -> None:
    """JSON on stdout, with escapes for letters that it cannot hold."""
    from accord.release.receipt import to_json

    text = to_json(document)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    click.echo(text)


def print_refusal(kind: str, message: str, as_json: bool) -> None:
    """A line on stderr, or a document on stdout if there is room for it."""
    if as_json:
        try:
            print_document({"schema": 1, "error": {"type": kind, "message": message}})
            return
        except OSError:  # stdout is full
            pass
    click.echo(f"{kind}: {message}", err=True)


def print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A line on stderr, in the place of Python's own with its line of code."""
    click.echo(f"warning: {message}", err=True)


def console(stderr: bool = False) -> Any:
    """Of the terminal's width; of a fixed one where nobody is watching."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, force_jupyter=False)
    if console.is_terminal:
        return console
    return Console(stderr=stderr, highlight=False, width=118, force_jupyter=False)


@contextmanager
def working(label: str) -> Iterator[None]:
    """A spinner on stderr, if someone is watching, with how far a long scan is."""
    from accord.engines import watched

    with console(stderr=True).status(f"{label} …") as status:

        def update(percent: float) -> None:
            status.update(f"{label} … {percent:.0f} %" if 0 < percent < 100 else f"{label} …")

        with watched(update):
            yield


@contextmanager
def progress(label: str) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """A bar on stderr, if someone is watching.

    The first function is to be called after each step with its name, the second with how many there are.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield (
            lambda name: bar.update(task, advance=1, description=f"{label} {name}"),
            lambda steps: bar.update(task, total=steps),
        )


def tell_repeated(released: accord.Release) -> None:
    """Say on stderr that an answer was given out again, where stdout has its one document."""
    if released.repeated is not None:
        from accord.report.releases import repeated_text

        click.echo(repeated_text(released), err=True)
