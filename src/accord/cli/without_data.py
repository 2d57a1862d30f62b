"""Plans before there are data: --levels says how many people have which level, in the place of a SOURCE."""

from __future__ import annotations

from typing import Any

import click

from accord.cli.options import STATISTICS
from accord.cli.parsing import as_number
from accord.errors import SpecError
from accord.spec import Spec

_EXAMPLE = "strict=0.1:4000,standard=1:9000"
_OF_TABLES = ("epsilon", "tiers", "default", "user", "expected", "ledger", "remaining")
_HAS_LEVELS = "accord.levels"

levels_option = click.option(
    "--levels",
    metavar="NAME=ε:N,…",
    help=f"In the place of SOURCE and --epsilon: how many people have which level, such as {_EXAMPLE}.",
)


class SourceOrLevels(click.Command):
    """A command that takes --levels in the place of its first argument, the SOURCE."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)  # which click takes apart
        has_levels = any(word.partition("=")[0] == "--levels" for word in words)
        ctx.meta[_HAS_LEVELS] = has_levels
        try:
            rest = super().parse_args(ctx, args)
        except click.BadParameter as fault:
            if fault.param is not None and fault.param.name == "statistic":
                if has_levels and any(word in STATISTICS for word in words):
                    self._refuse(ctx, "--levels stands for a SOURCE: give one of them, not both.")
                if ctx.params.get("source") in STATISTICS:
                    self._refuse(ctx, f"{self.name} needs a SOURCE, or --levels such as {_EXAMPLE}.")
            raise
        ctx.params.setdefault("source", None)
        return rest

    def _refuse(self, ctx: click.Context, why: str) -> None:
        raise click.UsageError(why, ctx) from None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        if not ctx.meta.get(_HAS_LEVELS):
            return params
        return [param for param in params if param.name != "source"]


def spec_of(options: dict[str, Any]) -> Spec | None:
    """The levels that --levels declares; None: they are those of a table."""
    text = options["levels"]
    if text is None:
        return None
    for name in _OF_TABLES:
        if options[name]:
            raise click.UsageError(f"--{name} is about a table, and --levels stands for one. Leave it out.")
    tiers: dict[str, float] = {}
    people: dict[Any, int] = {}
    for part in text.split(","):
        named, _, count = part.rpartition(":")
        name, _, level = (word.strip() for word in named.rpartition("="))
        number = as_number(level)
        if not isinstance(number, float) or not count.strip().isdecimal():
            raise SpecError(f"--levels has {part!r}, which is not NAME=ε:PEOPLE. Write {_EXAMPLE}.")
        key = name or level  # a level without a name is called as it is written
        if key in tiers:
            raise SpecError(f"--levels has {key!r} twice. Give each tier one level and one number of people.")
        tiers[key], people[key] = number, int(count)
    if all("=" not in part for part in text.split(",")):
        return Spec.from_groups({tiers[key]: number for key, number in people.items()})
    return Spec.from_groups(people, tiers)
