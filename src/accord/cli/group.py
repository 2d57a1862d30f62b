"""The command `accord`, to which the other files add theirs."""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper
from typing import Any

import click

import accord
from accord.cli.printing import print_refusal, print_warning
from accord.cli.wording import in_options
from accord.errors import AccordError, AccordWarning

DESCRIBED = "accord.described"
"""Whether a command is about a table of accord.toml."""


class Refusing(click.Group):
    """Turns what accord refuses into one line (or one JSON document) and exit code 1."""

    def main(self, *args: Any, **options: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # a letter that the terminal does not have costs no answer
                stream.reconfigure(errors="replace")
        return super().main(*args, **options)

    def _asked(self, ctx: click.Context) -> tuple[str, ...]:
        """What the options of the command that was asked for are called."""
        command = self.commands.get(ctx.invoked_subcommand or "")
        return () if command is None else tuple(option.name or "" for option in command.params)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", AccordWarning)
                warnings.showwarning = print_warning
                return super().invoke(ctx)
        except AccordError as error:
            # accord.toml has the words of Python
            message = str(error) if ctx.meta.get(DESCRIBED) else in_options(str(error), self._asked(ctx))
            print_refusal(type(error).__name__, message, ctx.meta.get("accord.json", False))
            ctx.exit(1)


@click.version_option(accord.__version__, prog_name="accord")
@click.group(cls=Refusing, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """Statistics about people who each chose their own privacy level."""
