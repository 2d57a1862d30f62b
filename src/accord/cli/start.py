"""The first minutes: the demo and the version."""

from __future__ import annotations

from pathlib import Path

import click

import accord
from accord.cli.group import main
from accord.cli.printing import console


@main.command()
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    default="accord-demo.png",
    show_default=True,
    help="Where the picture goes.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.parquet",
    help="Only write the bundled table there, to try things on.",
)
def demo(figure: Path, save: Path | None) -> None:
    """Tell the whole story on bundled real data, in under a minute."""
    from accord.report.demo import run, write_table

    if save is not None:
        write_table(save)
        click.echo(f"wrote {save}", err=True)
    else:
        run(console(), figure)


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(accord.__version__)
