"""Doubt and research: the audit, the papers redrawn, and every mechanism."""

from __future__ import annotations

from math import inf
from pathlib import Path

import click

from accord.cli.group import main
from accord.cli.options import json_option
from accord.cli.printing import print_result, progress, refuse_in


@main.command()
@click.argument("mechanisms", nargs=-1, metavar="[MECHANISM…]")
@click.option(
    "--statistic",
    "statistics",
    multiple=True,
    metavar="NAME",
    help="Only this one, such as mean, 'mean where', 'median by', basics, programs; "
    "may be repeated [default: all].",
)
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Releases of each of two tables for the empirical way, such as 10000 [default: without it].",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Which neighbors and programs are drawn [default: others each time].",
)
@click.option(
    "--deep", is_flag=True, help="Go on with further programs until Ctrl-C, then say what was found."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes [default: as many as cores]."
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with pictures, to be filed.",
)
@json_option
def audit(
    mechanisms: tuple[str, ...],
    statistics: tuple[str, ...],
    runs: int,
    seed: int | None,
    deep: bool,
    jobs: int | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Doubt accord: look for people who lose more than they are promised, in up to four independent ways.
    Exit code 1 if there are any.
    """
    from accord.lab import audit as auditing
    from accord.lab.audit import report

    refuse_in(as_json)
    if page is not None:
        report.refuse_unwritable(page)
    with progress("auditing") as (step, planned):
        result = auditing.run(
            mechanisms,
            statistics,
            runs=runs,
            seed=seed,
            jobs=jobs,
            deep=inf if deep else 0,
            progress=step,
            planned=planned,
        )
    if page is not None:
        click.echo(f"page: {report.write(result, page)}", err=True)
    print_result(as_json, result.describe, lambda: report.view(result))
    if not as_json:
        for script in report.scripts(result)[:1]:
            click.echo(f"\n{script}")
    if not result.passed:
        click.get_current_context().exit(1)


@main.command()
@click.argument("ids", nargs=-1, metavar="[ID…|all]")
@click.option(
    "--runs",
    type=click.IntRange(min=2),
    metavar="N",
    help="Instead of the papers' own numbers of runs: for a quick look.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="accord-reproduction",
    show_default=True,
    help="The folder for pages, figures and numbers.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes [default: as many as cores]; the numbers do not depend on it.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Another one gives other numbers.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A census file for J-fig3, instead of the generator.",
)
@json_option
def reproduce(
    ids: tuple[str, ...],
    runs: int | None,
    out: Path,
    jobs: int | None,
    seed: int,
    data: Path | None,
    as_json: bool,
) -> None:
    """Redraw the papers' figures and tables, and say where they are met. Without an ID, list them."""
    from accord.lab.papers import page, reproduction
    from accord.report.figures import pyplot

    refuse_in(as_json)
    if not ids:
        print_result(as_json, reproduction.catalogue, page.catalogue_view)
        return
    experiments = reproduction.wanted(ids)
    if data is not None and not any(e.id.startswith("J-fig3") for e in experiments):
        raise click.UsageError("--data is for J-fig3. Name it, or leave --data out.")
    pyplot()  # rather missing now than after a quarter of an hour
    with progress("measuring") as (step, planned):
        planned(sum(len(e.settings) for e in experiments))
        measured = reproduction.reproduce(experiments, runs, seed, jobs, data, step)
        by_id = {result.experiment.id: result for result in measured}
    results = [by_id[e.id] for e in experiments]
    pages = page.write(results, out)
    print_result(as_json, lambda: reproduction.document(results), lambda: page.views(results))
    click.echo(f"pages: {', '.join(map(str, pages))}", err=True)


@main.command()
@json_option
def mechanisms(as_json: bool) -> None:
    """List every mechanism with paper, neighbors and guarantee."""
    from accord.mechanisms import ALL
    from accord.report.plans import mechanisms_view

    rows = [
        {
            "name": m.name,
            "paper": m.paper,
            "neighbors": [relation.name for relation in m.relations],
            "guarantee": m.guarantee,
            "answers": list(m.statistics),
        }
        for m in ALL
    ]
    print_result(as_json, lambda: {"schema": 1, "mechanisms": rows}, mechanisms_view)
