"""The command line: parses, calls, prints. stdout is the result, stderr progress and hints; exit 0 done, 1 refused, 2 usage."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EPIPE
from io import TextIOWrapper
from math import inf
from pathlib import Path
from typing import Any

import click

import accord
from accord import words
from accord.errors import AccordError
from accord.query import Grouped

STATISTICS = ("count", "sum", "mean", "histogram", "median", "quantile", "min", "max", "rows", "regression")


class _Refusing(click.Group):
    """Turns what accord refuses into one line (or one JSON document) and exit code 1."""

    def main(self, *args: Any, **options: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")  # a letter that the terminal does not have costs no answer
        return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AccordError as error:
            _refuse(error, ctx.meta.get("accord.json", False))
            ctx.exit(1)


@click.version_option(accord.__version__, prog_name="accord")
@click.group(cls=_Refusing, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """Statistics about people who each chose their own privacy level."""


def _options(*options: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_json = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")


def _plot_option(what: str) -> Callable[..., Any]:
    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Draw {what} into a .png, .svg or .pdf.",
    )


_level_options = _options(
    click.option(
        "--epsilon",
        required=True,
        metavar="COLUMN",
        help="The column of levels or tiers; a number: everyone's level.",
    ),
    click.option(
        "--tiers",
        metavar="NAME=ε,…",
        help="Levels of the tiers, such as strict=0.1,standard=1,public=inf (0: opted out).",
    ),
    click.option("--default", metavar="TIER|ε", help="The tier or level of people who have none."),
    click.option("--user", metavar="COLUMN", help="Who a row is of: people may have several."),
)


def _table_options(command: Callable[..., None]) -> Callable[..., None]:
    return _options(
        click.argument("source"),
        click.argument("statistic", type=click.Choice(STATISTICS), metavar="STATISTIC"),
        click.argument("column", required=False),
        click.option(
            "--bounds", nargs=2, metavar="LO HI", help="Public bounds of the column: numbers, or dates for ranks."
        ),
        _level_options,
        click.option("--where", metavar="CONDITION", help="Of whom, such as \"age >= 65 AND region = 'north'\"."),
        click.option(
            "--by", metavar="COLUMN", help="An answer for each group of people with one of --keys in this column."
        ),
        click.option("--keys", metavar="A,B,…", help="The groups of --by, declared."),
        click.option(
            "--membership",
            type=click.Choice(["private", "public"]),
            default="private",
            show_default=True,
            help="Whether everyone may know who is in which group.",
        ),
        click.option("--max", "most", type=int, metavar="N", help="Of rows: the most that one person counts for."),
        click.option("--edges", metavar="A,B,C,…", help="Edges of a histogram's cells."),
        click.option("--categories", metavar="A,B,…", help="A histogram's categories."),
        click.option("--p", metavar="P[,P…]", help="Which quantile, between 0 and 1; several share the budget."),
        click.option(
            "--on",
            metavar="COLUMN=…,…",
            help="A regression's features with their public bounds or categories: age=18..100,sex=f|m.",
        ),
        click.option("--std", type=float, help="A publicly known upper bound of the standard deviation."),
        click.option("--step", type=float, help="The values' own resolution, such as 1."),
        click.option("--missing", metavar="VALUE|CELL", help="What missing values count as [default: the middle]."),
        click.option("--mechanism", default="auto", show_default=True, help="A name of 'accord mechanisms'."),
        click.option(
            "--t",
            metavar="ε",
            help="The level of --mechanism threshold, or of sample (also max, mean, min) [default: the best].",
        ),
        click.option(
            "--share",
            type=float,
            help="The fraction of everyone's level that may be spent [default: 1; required with --ledger].",
        ),
        click.option("--ledger", metavar="URL", help="Where budgets are kept: a file, or postgresql://…"),
        click.option(
            "--remaining", is_flag=True, help="Plan from what the ledger has left; --share is a part of that."
        ),
        _plot_option("the plan"),
        _json,
    )(command)


@main.command()
@_table_options
def plan(**given: Any) -> None:
    """Predict the error of every mechanism, before any value is read."""
    people, query = _opened(given)
    _drawable(query, given["plot"])
    ledger = _ledger(given)
    with _working("reading the levels"):
        made = _planned(people, query, ledger, given)
    if isinstance(made, accord.GroupedPlan):
        _show(given["as_json"], made.describe, "grouped_plan_view", made)
        return
    _plot(made, given["plot"])
    if ledger is None:
        _show(given["as_json"], made.describe, "plan_view", made)
        return
    from accord.receipt import left_document

    left = ledger.remaining(people)
    affordable = ledger.affordable(people, made)
    _show(
        given["as_json"],
        lambda: {**made.describe(), "ledger": left_document(left, affordable)},
        "plan_view",
        made,
    )
    if not given["as_json"]:
        click.echo()
        _show(False, dict, "remaining_view", left, affordable)


@main.command()
@_table_options
def release(**given: Any) -> None:
    """Answer at everyone's own level, and say what it cost whom."""
    people, query = _opened(given)
    _drawable(query, given["plot"])
    ledger = _ledger(given)
    with _working("reading the table"):
        if given["remaining"]:
            made = people.release(_planned(people, query, ledger, given), ledger=ledger)
        else:
            made = people.release(
                query, given["mechanism"], given["share"], t=words.as_number(given["t"]), ledger=ledger
            )
    if isinstance(made, accord.GroupedRelease):
        _show(given["as_json"], made.receipt, "grouped_release_view", made)
        return
    _plot(made.plan, given["plot"])
    _show(given["as_json"], made.receipt, "release_view", made)


@main.command()
@_table_options
def compare(**given: Any) -> None:
    """Look ahead, from the levels alone: mechanisms, thresholds, what personal levels buy, and what if a tier moved."""
    from accord.lab import outlook, outlook_views

    if given["mechanism"] != "auto" or given["t"] is not None:
        raise click.UsageError("compare looks at every mechanism and every t. Leave --mechanism and --t out.")
    people, query = _opened(given)
    ledger = _ledger(given)
    with _working("reading the levels"):
        spec = people.spec() if ledger is None or not given["remaining"] else ledger.remaining(people)
        notes = people.check(query)
        share = 1.0 if given["share"] is None else given["share"]
        made = outlook.outlook(spec, query, share, people.neighbors, notes)
    if given["plot"] is not None:
        click.echo(f"figure: {outlook_views.draw(made, given['plot'])}", err=True)
    _print(given["as_json"], made.describe, lambda: outlook_views.view(made))


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
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another one gives other numbers."
)
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A census file for J-fig3, instead of the generator.",
)
@_json
def reproduce(
    ids: tuple[str, ...], runs: int | None, out: Path, jobs: int | None, seed: int, data: Path | None, as_json: bool
) -> None:
    """Redraw the papers' figures and tables, and say where they are met. Without an ID, list them."""
    from accord.lab import page, reproduction
    from accord.report.figures import pyplot

    _answer_in(as_json)
    if not ids:
        _print(as_json, reproduction.catalogue, page.catalogue_view)
        return

    if data is not None and not any(e.id.startswith("J-fig3") for e in reproduction.wanted(ids)):
        raise click.UsageError("--data is for J-fig3. Name it, or leave --data out.")
    pyplot()  # rather missing now than after a quarter of an hour
    chosen = reproduction.wanted(ids)
    found = {}
    with _progress("measuring") as (step, planned):
        planned(sum(len(e.settings) for e in chosen))
        for result in reproduction.reproduce(chosen, runs, seed, jobs, data, step):
            found[result.experiment.id] = result
    results = [found[e.id] for e in chosen]
    pages = page.write(results, out)
    _print(as_json, lambda: reproduction.document(results), lambda: page.views(results))
    click.echo(f"pages: {', '.join(map(str, pages))}", err=True)


@main.command()
@click.argument("mechanisms", nargs=-1, metavar="[MECHANISM…]")
@click.option(
    "--statistic",
    "statistics",
    multiple=True,
    metavar="NAME",
    help="Only this one, such as mean, 'mean where', 'median by', basics, programs; may be repeated [default: all].",
)
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Releases of each of two tables for the empirical way, such as 10000 [default: without it].",
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="Which neighbors and programs are drawn [default: others each time]."
)
@click.option("--deep", is_flag=True, help="Go on with further programs until Ctrl-C, then say what was found.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes [default: as many as cores].")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page with pictures, to be filed.",
)
@_json
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
    """Doubt accord: look for people who lose more than they are promised, in up to four independent ways. Exit code 1 if there are any."""
    from accord.lab import audit as auditing
    from accord.lab.audit import views

    _answer_in(as_json)
    if page is not None:
        views.need_place(page)
    with _progress("auditing") as (step, planned):
        found = auditing.run(
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
        click.echo(f"page: {views.write(found, page)}", err=True)
    _print(as_json, found.describe, lambda: views.view(found))
    if not as_json:
        for script in views.scripts(found)[:1]:
            click.echo(f"\n{script}")
    if not found.passed:
        click.get_current_context().exit(1)


@main.command()
@_json
def mechanisms(as_json: bool) -> None:
    """List every mechanism with paper, neighbors and guarantee."""
    from accord.mechanisms import ALL

    _show(
        as_json,
        lambda: {
            "schema": 1,
            "mechanisms": [
                {
                    "name": m.name,
                    "paper": m.paper,
                    "neighbors": list(m.neighbors),
                    "guarantee": m.guarantee,
                    "answers": [q.statistic for q in m.answers],
                }
                for m in ALL
            ],
        },
        "mechanisms_view",
    )


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
        run(_console(), figure)


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(accord.__version__)


@main.group()
def ledger() -> None:
    """Budgets that last: who has how much left, and what was done with it. URL is a file such as accord.db, or postgresql://…"""


@ledger.command()
@click.argument("url")
@_json
def init(url: str, as_json: bool) -> None:
    """Make a new ledger, with the key by which it knows people."""
    _answer_in(as_json)
    made = accord.Ledger(url)
    entries = len(made.entries())
    _show(as_json, lambda: {"schema": 1, "ledger": made.label, "entries": entries}, "init_view", made.label, entries)


@ledger.command()
@click.argument("url")
@click.argument("name")
@click.argument("source")
@_level_options
@_json
def register(url: str, name: str, **given: Any) -> None:
    """Make a table known under a NAME, or a new version of it: who is in it, and with which level."""
    _answer_in(given["as_json"])
    books, people = accord.Ledger(url, create=False), _people(given)
    with _working("reading who is in the table"):
        made = books.register(people, name)
    _show(given["as_json"], lambda: {"schema": 1, **vars(made)}, "registration_view", made)


@ledger.command()
@click.argument("url")
@_plot_option("the budgets")
@_json
def show(url: str, plot: Path | None, as_json: bool) -> None:
    """Budgets by table and level: spent and left."""
    _answer_in(as_json)
    accounts = accord.Ledger(url, create=False).accounts()
    if plot is not None:
        from accord.report.figures import draw_accounts

        click.echo(f"figure: {draw_accounts(accounts, plot)}", err=True)
    from accord.receipt import accounts_document

    _show(as_json, lambda: accounts_document(accounts), "accounts_view", accounts)


@ledger.command()
@click.argument("url")
@_json
def history(url: str, as_json: bool) -> None:
    """Every release that was charged: question, mechanism, charges, predicted error, time, version."""
    _answer_in(as_json)
    made = accord.Ledger(url, create=False).history()
    _show(as_json, lambda: {"schema": 1, "releases": made}, "history_view", made)


@ledger.command()
@click.argument("url")
@_json
def verify(url: str, as_json: bool) -> None:
    """Check that no entry was changed or removed, and that the accounts follow from them. Exit code 1 if not."""
    _answer_in(as_json)
    found = accord.Ledger(url, create=False).verify()
    _show(as_json, lambda: {"schema": 1, **vars(found)}, "verdict_view", found)
    if found.problems:
        click.get_current_context().exit(1)


@ledger.command()
@click.argument("url")
def export(url: str) -> None:
    """Every entry and account as one JSON document, which another program can check."""
    _answer_in(True)
    made = accord.Ledger(url, create=False)
    _show(True, made.export, "")


@ledger.command("accept-backup")
@click.argument("url")
@click.option("--why", required=True, help="The reason, in a line of text. It is booked.")
@_json
def accept_backup(url: str, why: str, as_json: bool) -> None:
    """Go on from an older copy of a ledger. What was spent since it was made is forgotten: people may lose more than they allowed."""
    _answer_in(as_json)
    entry = accord.Ledger(url, create=False).accept_backup(why)

    def view() -> Any:
        from rich.text import Text

        return Text(f"accepted, as entry {entry.seq:,}. Whatever was spent after this copy was made is forgotten.")

    _print(as_json, lambda: {"schema": 1, "entry": entry.seq, "hash": entry.hash, **entry.content}, view)


# ---- from words to calls ---------------------------------------------------------------------------------------------


def _answer_in(as_json: bool) -> None:
    """Refusals come in the same form as results."""
    click.get_current_context().meta["accord.json"] = as_json


def _opened(given: dict[str, Any]) -> tuple[accord.Table, accord.Query]:
    _answer_in(given["as_json"])
    people = _people(given)
    return people, words.question(people, given)


def _people(given: dict[str, Any]) -> accord.Table:
    tiers = words.read_tiers(given["tiers"])
    default = given["default"] if tiers and given["default"] in tiers else words.as_number(given["default"])
    return accord.table(given["source"], epsilon=given["epsilon"], tiers=tiers, default=default, user=given["user"])


def _ledger(given: dict[str, Any]) -> accord.Ledger | None:
    if given["ledger"] is None:
        if given["remaining"]:
            raise click.UsageError("--remaining is about a ledger: give --ledger URL.")
        return None
    if given["share"] is None and not given["remaining"]:
        raise click.UsageError(
            "with --ledger, say how much of everyone's level this may spend: --share 0.1 is a tenth, --remaining is all that is left."
        )
    return accord.Ledger(given["ledger"], create=False)


def _planned(
    people: accord.Table, query: accord.Query, ledger: accord.Ledger | None, given: dict[str, Any]
) -> accord.Plan | accord.GroupedPlan:
    share = 1.0 if given["share"] is None else given["share"]
    if ledger is None or not given["remaining"]:
        return people.plan(query, given["mechanism"], share, t=words.as_number(given["t"]))
    notes = people.check(query)
    return accord.plan(
        ledger.remaining(people), query, given["mechanism"], share, t=words.as_number(given["t"]), notes=notes
    )


# ---- printing --------------------------------------------------------------------------------------------------------


def _show(as_json: bool, document: Callable[[], dict[str, Any]], view: str, *args: Any) -> None:
    """One of the views of accord.report.text."""

    def made() -> Any:
        from accord.report import text

        return getattr(text, view)(*args)

    _print(as_json, document, made)


def _print(as_json: bool, document: Callable[[], dict[str, Any]], view: Callable[[], Any]) -> None:
    try:
        if as_json:
            from accord.receipt import to_json

            click.echo(_spelled(to_json(document())))
        else:
            _console().print(view())
    except OSError as fault:
        if fault.errno == EPIPE:  # whoever reads has seen enough
            raise
        raise AccordError(
            f"cannot write the result ({fault.strerror}). Make room where stdout goes; what was charged stays charged."
        ) from None


def _spelled(document: str) -> str:
    """JSON as stdout can hold it."""
    try:
        document.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(document), indent=2)
    return document


def _refuse(error: AccordError, as_json: bool) -> None:
    line = f"{type(error).__name__}: {error}"
    if not as_json:
        click.echo(line, err=True)
        return
    from accord.receipt import to_json

    try:
        click.echo(_spelled(to_json({"schema": 1, "error": {"type": type(error).__name__, "message": str(error)}})))
    except OSError:  # stdout is full
        click.echo(line, err=True)


def _plot(made: accord.Plan, path: Path | None) -> None:
    if path is not None:
        from accord.report.figures import draw_plan

        click.echo(f"figure: {draw_plan(made, path)}", err=True)


def _drawable(query: accord.Query, path: Path | None) -> None:
    """Refuses a figure that cannot be drawn, before anybody is charged."""
    if path is None:
        return
    if isinstance(query, Grouped) and query.part.public:
        raise click.UsageError("public groups have a plan each: draw one with --where instead of --by.")
    from accord.report.figures import need_place

    need_place(path)


def _console(stderr: bool = False) -> Any:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=118)


@contextmanager
def _working(what: str) -> Iterator[None]:
    """A spinner on stderr, if someone is watching, with how far a long scan is."""
    from accord.engines import watched

    with _console(stderr=True).status(f"{what} …") as status:

        def shown(percent: float) -> None:
            status.update(f"{what} … {percent:.0f} %" if 0 < percent < 100 else f"{what} …")

        with watched(shown):
            yield


@contextmanager
def _progress(what: str) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """A bar on stderr, if someone is watching: to be called after each step with what was done; and with how many there are."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield (
            lambda name: bar.update(task, advance=1, description=f"{what} {name}"),
            lambda steps: bar.update(task, total=steps),
        )


if __name__ == "__main__":
    main()
