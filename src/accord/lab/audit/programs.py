"""Whole programs: everything that a program shows, on neighboring worlds, with the noise recorded.

A `World` is made of tables, a program that uses accord as people do (library and command line), and one person who is somebody else in a neighboring world. Both
worlds go through the public interface. A noise that draws nothing decides what comes out of every draw, the same in both, and notes what it was made from. Then:

    whatever can be seen (values, plans, receipts, texts, errors, exit codes, logs, a ledger's books) is the same, letter by letter;
    what noise was added to, or chosen by, moves by no more than the receipt charges the person, and never by more than their level allows, over all releases of a ledger;
    a person who is not kept by `sample` moves nothing.

What the person may lose is reckoned by reference.py, which shares no code with accord. While a program runs, `accord.release` has another noise and another clock: this must not happen
in a process in which releases go on (runner.py starts one of its own).
"""

from __future__ import annotations

import csv
import json
import logging
import pprint
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from io import StringIO
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord import release
from accord.errors import AccordError
from accord.lab.audit import reference
from accord.lab.audit.laws import Law, Leak, Outcome, Tap, loss
from accord.lab.audit.replay import amplified
from accord.ledger import Registration, chain
from accord.planning import Plan
from accord.statistics import Algorithm

Row = Mapping[str, Any]
KEY = "a key for programs that are tried"


@dataclass(frozen=True)
class Source:
    """One table of a world: in which form it is given, DuckDB's types of its columns, everyone's rows, and how it is opened."""

    form: str
    types: Mapping[str, str]
    people: Mapping[int, tuple[Row, ...]]
    options: Mapping[str, Any]
    """epsilon, tiers, default, user: as for `accord.table`."""

    def level(self, person: int) -> float | None:
        """What a person agreed to, in millionths, by the reference; None: they are not in the table."""
        rows = self.people.get(person, ())
        if not rows:
            return None
        try:
            (found,) = reference.people(rows, **self.options)
        except reference.Refused:  # what is not a level counts as opted out where who is there is private
            return 0
        return found.level


@dataclass(frozen=True)
class Step:
    """One line of a program."""

    text: str
    about: str = ""
    """The table that it asks about."""
    share: str = "1"
    """Of a person's level that it may spend."""
    booked: bool = False
    """Whether it is charged in the program's ledger."""
    rest: bool = False
    """Whether it is planned for what people have left there."""


@dataclass(frozen=True)
class World:
    """Tables, a program, and who is another person in the neighboring world, with these rows instead (none: they are not there)."""

    name: str
    sources: Mapping[str, Source]
    program: tuple[Step, ...]
    person: int
    changed: Mapping[str, tuple[Row, ...]]
    word: int = 0
    """The random word by which everyone is kept or not: below a chance they are."""
    outcome: int = 10**6
    """What comes out of the first draw; of the k-th, k more."""

    def neighbor(self) -> World:
        sources = {
            name: replace(source, people={**source.people, self.person: self.changed[name]})
            if name in self.changed
            else source
            for name, source in self.sources.items()
        }
        return replace(self, sources=sources)


# ---- what is seen ----------------------------------------------------------------------------------------------------------


class Recorded(Tap):
    """A noise that draws nothing; it also knows which plan it draws for."""

    def __init__(self, word: int, outcome: int) -> None:
        super().__init__(Outcome(lambda k: outcome + k, lambda size: (abs(outcome) * 7) % size))
        self.word = word
        self.plans: list[Plan | None] = []
        self.plan: Plan | None = None
        self.asked = 0
        """How often random words were asked for."""

    def note(self, draw: Any) -> None:
        super().note(draw)
        self.plans.append(self.plan)

    def words(self, count: int) -> Any:
        self.asked += 1
        return np.full(count, self.word, dtype=np.uint64)

    def keep(self, chances: Any) -> Any:
        return self.words(chances.size) < chances


class _Clock(datetime):
    """A clock that goes one second at a time."""

    ticks = 0

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        cls.ticks += 1
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=cls.ticks)


@dataclass
class Shown:
    """What one step of a program shows."""

    step: Step
    texts: list[tuple[str, str]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    draws: list[tuple[Plan | None, Any]] = field(default_factory=list)
    """What noise was drawn for, and what it was added to or chosen by."""
    words: int = 0
    """How often random words were asked for."""


def run(world: World) -> list[Shown]:
    """Everything that a program shows, step by step."""
    tap, seen = Recorded(world.word, world.outcome), []
    with TemporaryDirectory() as folder, chdir(folder), _stand_ins(tap), _closing() as names:
        names |= {
            "accord": accord,
            "given": lambda name: given(name, world.sources[name]),
            "noisy_count": lambda rows, epsilon: _rows_of(rows) + tap.laplace(1 / Fraction(epsilon)),
            "constant": lambda rows, epsilon: epsilon,
            "failing": partial(_fail, tap),
            "command": _command,
            "inf": inf,
            "date": date,
            "Fraction": Fraction,
        }
        for step in world.program:
            seen.append(_shown(step, names, tap))
    return seen


def _fail(tap: Recorded, rows: Any, epsilon: float) -> None:
    """An algorithm that fails after a draw: whether one does may tell of the people, and costs as much as an answer."""
    raise ValueError(str(_rows_of(rows) + tap.laplace(1 / Fraction(epsilon))))


def _rows_of(rows: Any) -> int:
    return int(rows.num_rows if hasattr(rows, "num_rows") else len(rows))


def _shown(step: Step, names: dict[str, Any], tap: Recorded) -> Shown:
    shown, before, asked, log = Shown(step), len(tap.draws), tap.asked, _Log()
    printed = StringIO()

    def show(result: Any) -> Any:
        shown.results.append(result)
        shown.texts += _texts(result)
        return result

    names["show"] = show
    logger = logging.getLogger()  # of everything: not all that is logged has accord's name
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(log)
    try:
        with warnings.catch_warnings(record=True) as warned, redirect_stdout(printed), redirect_stderr(printed):
            warnings.simplefilter("always")
            exec(step.text, names)
    except Exception as fault:
        shown.texts += _fault(fault)
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
    shown.texts += [("warning", f"{w.category.__name__}: {w.message}") for w in warned]
    shown.texts += [("log", line) for line in log.lines]
    shown.texts.append(("print", printed.getvalue()))
    shown.words = tap.asked - asked
    shown.draws = list(zip(tap.plans[before:], tap.draws[before:], strict=True))
    return shown


_OTHERS = ("py4j.", "pyspark.")
"""Loggers of a Spark session that the process may have besides. It tells its Java side of every object that is let go, at any time; no program here uses it."""


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_OTHERS):
            self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def _fault(fault: Exception) -> list[tuple[str, str]]:
    """An error as a reader sees it, with the errors behind it."""
    told = [("error", line.rstrip()) for line in traceback.format_exception_only(fault)]
    behind = fault.__cause__ or (None if fault.__suppress_context__ else fault.__context__)
    if isinstance(behind, Exception):
        told += _fault(behind)
    return told


def _texts(result: Any) -> list[tuple[str, str]]:
    """A result as text, in every form that it has."""
    told = [("str", str(result)), ("repr", repr(result))]
    for name in ("describe", "receipt", "_repr_html_"):
        if hasattr(result, name):
            told.append((name, json.dumps(getattr(result, name)(), default=str)))
    told += [
        (name, repr(getattr(result, name))) for name in ("value", "found", "rmse", "charges") if hasattr(result, name)
    ]
    if hasattr(result, "interval"):
        try:
            told.append(("interval", repr(result.interval(0.9))))
        except AccordError as refused:
            told.append(("interval", str(refused)))
    return told


def _command(*words: str) -> Any:
    """What a command prints, and its exit code."""
    from click.testing import CliRunner

    from accord import cli

    done = CliRunner().invoke(cli.main, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return {"exit code": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}


@contextmanager
def _closing() -> Iterator[dict[str, Any]]:
    """A program's names, emptied afterwards so that its tables are closed."""
    names: dict[str, Any] = {}
    try:
        yield names
    finally:
        names.clear()


@contextmanager
def _stand_ins(tap: Recorded) -> Iterator[None]:
    """The noise and the clock of releases, and of a ledger."""
    draw, algorithm = release._draw, release._run

    def planned(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(plan: Plan, *rest: Any) -> Any:
            tap.plan = plan
            try:
                return call(plan, *rest)
            finally:
                tap.plan = None

        return called

    _Clock.ticks = 0
    instead: dict[Any, dict[str, Any]] = {
        release: {"SECURE": tap, "datetime": _Clock, "_draw": planned(draw), "_run": planned(algorithm)},
        chain: {"datetime": _Clock},
    }
    before = {module: {name: vars(module)[name] for name in names} for module, names in instead.items()}
    try:
        for module, names in instead.items():
            vars(module).update(names)
        yield
    finally:
        for module, names in before.items():
            vars(module).update(names)


# ---- forms of tables -------------------------------------------------------------------------------------------------------


def given(name: str, source: Source) -> Any:
    """A table in its form."""
    rows = [row for person in source.people.values() for row in person]
    columns = {column: [row[column] for row in rows] for column in source.types}
    match source.form:
        case "lists":
            return columns
        case "arrays":
            return {column: _array(values, source.types[column]) for column, values in columns.items()}
        case "pandas":
            import pandas

            return pandas.DataFrame(columns)
        case "csv":
            with Path(f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows([_word(row[column]) for column in columns] for row in rows)
            return f"{name}.csv"
    return _typed(name, source, rows)


def _typed(name: str, source: Source, rows: Sequence[Row]) -> Any:
    import duckdb

    connection = duckdb.connect()
    columns = ", ".join(f'"{column}" {kind}' for column, kind in source.types.items())
    connection.execute(f"CREATE TABLE given ({columns})")
    if rows:
        marks = f"({', '.join('?' for _ in source.types)})"
        values = [row[column] for row in rows for column in source.types]
        connection.execute(f"INSERT INTO given VALUES {', '.join([marks] * len(rows))}", values)
    match source.form:
        case "relation":
            return connection.table("given")
        case "arrow":
            return connection.table("given").to_arrow_table()
        case "polars":
            return connection.table("given").pl()
        case "parquet":
            connection.execute(f"COPY given TO '{name}.parquet' (FORMAT parquet)")
            return f"{name}.parquet"
    raise ValueError(f"there is no form {source.form!r}")


def _array(values: list[Any], kind: str) -> Any:
    """A column as NumPy has it: missing numbers are NaN, missing dates NaT."""
    if kind in ("DOUBLE", "FLOAT") or (kind == "BIGINT" and None in values):
        return np.array([nan if v is None else float(v) for v in values], dtype=np.float64)
    if kind == "DATE":
        return np.array(["NaT" if v is None else v for v in values], dtype="datetime64[D]")
    return np.array(values, dtype=np.int64) if kind == "BIGINT" else np.array(values)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


# ---- what is compared ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """What the person loses beyond what they agreed to, and the step that shows it."""

    world: World
    step: Step
    promised: Fraction | float
    found: Fraction | float
    said: str

    @property
    def script(self) -> str:
        """A program that shows it again."""
        names = "Source, Step, World, replay"
        return (
            f'"""Somebody loses more than they agreed to: {self.said}"""\n\nimport datetime\n'
            f"from decimal import Decimal\nfrom math import inf, nan\n\n"
            f"from accord.lab.audit.programs import {names}\n\n"
            f"replay(\n{pprint.pformat(self.world, width=110, sort_dicts=False)}\n)\n"
        )


def difference(world: World) -> Difference | None:
    """The first step at which two neighboring worlds differ by more than the person agreed to."""
    books = _Books(world)
    for here, there in zip(run(world), run(world.neighbor()), strict=True):
        found = books.compared(here, there)
        if found is not None:
            return found
    return None


def replay(world: World) -> None:
    """Print what a program shows on two neighboring worlds, up to the first step that tells too much."""
    found = difference(world)
    for here, there in zip(run(world), run(world.neighbor()), strict=True):
        print(f">>> {here.step.text}")
        for (label, one), (_, other) in zip(here.texts, there.texts, strict=False):
            if one != other:
                print(f"  {label} here:  {one}\n  {label} there: {other}")
        if found is not None and here.step == found.step:
            break
    print("nobody loses more than they agreed to" if found is None else f"VIOLATED: {found.said}")


class _Books:
    """What the person has lost so far, by what was drawn; and what has been charged to them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registered: dict[str, float] = {}
        """Their level in every table of the ledger, in millionths."""
        self.lost: Fraction | float = Fraction(0)
        self.charged = 0
        self.allowed: float = inf
        """The most that they may have lost in all, in millionths."""

    def compared(self, here: Shown, there: Shown) -> Difference | None:
        step = here.step

        def differ(promised: Fraction | float, found: Fraction | float, said: str) -> Difference:
            return Difference(self.world, step, promised, found, f"{said}, at: {step.text}")

        if here.texts != there.texts:
            return differ(0, inf, _first(here.texts, there.texts))
        for label, text in here.texts:
            # a program without a line that it needs is no concern of anybody's
            if label == "error" and not text.startswith(("accord.errors.", "NameError")):
                return differ(0, inf, f"an error of another program's ({text.split(':')[0]})")
        if here.words < sum(_by_row(result) for result in here.results):
            return differ(0, inf, "who is kept is not drawn anew")
        self._register(here)
        budget = self._budget(step)
        promised = self._promised(here)
        try:
            found = self._lost(here, there, budget)
        except Leak as leak:
            return differ(promised, inf, str(leak))
        if float(found) > float(promised) * (1 + 1e-9) + 1e-12:
            return differ(promised, found, f"{float(found):.6g} is lost where {float(promised):.6g} is charged")
        if step.booked:
            self.lost += found
            if float(self.lost) * 10**6 > self.allowed * (1 + 1e-9) + 1e-6:
                most = Fraction(int(self.allowed), 10**6)
                return differ(
                    most, self.lost, f"{float(self.lost):.6g} is lost in all, and {float(most):.6g} was allowed"
                )
        return None

    def _level(self, step: Step) -> float | None:
        source = self.world.sources.get(step.about)
        return None if source is None else source.level(self.world.person)

    def _budget(self, step: Step) -> float:
        """What a step may take a share of: their level, or what they have left; 0 if they are not in the table."""
        level = self._level(step)
        if level is None or not step.booked:
            return level or 0
        return max(0, min([level, *self.registered.values()]) - self.charged) if step.rest else level

    def _register(self, shown: Shown) -> None:
        """A lower level counts from now on, and never gives back what is lost."""
        for result in shown.results:
            if isinstance(result, Registration):
                name = result.name
            elif (
                isinstance(result, accord.GroupedRelease)
                and shown.step.booked
                and _documents(result, shown.step, self.world)
            ):
                name = (
                    f"public groups of {shown.step.about}"  # tables of their own, with the level that people have now
                )
            else:
                continue
            level = self._level(shown.step)
            self.registered.pop(name, None)
            if level is not None:
                self.registered[name] = level
            self.allowed = max(self.charged, min(self.registered.values(), default=inf))

    def _promised(self, shown: Shown) -> Fraction | float:
        """What all that was released at this step charges the person, and no more than their share of it."""
        budget = self._budget(shown.step)
        told = Fraction(0)
        for result in shown.results:
            for document in _documents(result, shown.step, self.world):
                own = [entry["charge"] for entry in document["charges"] if entry["level"] == _text(budget)]
                told += sum((Fraction(charge) for charge in own if charge != "inf"), Fraction(0))
        if shown.step.booked:
            self.charged += int(told * 10**6)
        most = reference.most_charge(budget, shown.step.share)
        if _untold(shown) and most < inf:
            return Fraction(int(most), 10**6)
        return min(told, Fraction(int(most), 10**6)) if most < inf else told

    def _lost(self, here: Shown, there: Shown, budget: float) -> Fraction | float:
        """By how much the laws of what was drawn differ, plan by plan."""
        if [plan is None for plan, _ in here.draws] != [plan is None for plan, _ in there.draws]:
            raise Leak("other things are drawn")
        total: Fraction | float = Fraction(0)
        pairs: dict[int, tuple[Plan | None, list[Any], list[Any]]] = {}
        for (plan, one), (_, other) in zip(here.draws, there.draws, strict=True):
            _, ones, others = pairs.setdefault(id(plan), (plan, [], []))
            ones.append(one)
            others.append(other)
        for plan, ones, others in pairs.values():
            inner = loss(Law((1.0,), (tuple(ones),), ()), Law((1.0,), (tuple(others),), ()))
            total += self._kept(plan, budget, here.step.share, inner) if plan is not None and inner else inner
        return total

    def _kept(self, plan: Plan, budget: float, share: str, inner: Fraction | float) -> Fraction | float:
        """What `sample` makes of a loss: nothing may move by a person who is not kept."""
        if plan.calibration.keep is None or plan.calibration.t is None:
            return inner
        affordable = reference.most_charge(budget, share, plan.times)
        chance = reference.chance(affordable, plan.calibration.t, plan.calibration.neighbors)[1]
        if self.world.word >= 2**63 * chance:
            raise Leak("somebody counts who is not kept")
        return amplified(plan, _text(budget), float(inner))


def _by_row(result: Any) -> bool:
    """Whether people's rows were kept at random, one by one."""
    return isinstance(result, accord.Release) and (
        isinstance(result.plan.query, Algorithm) or release._by_row(result.plan)
    )


def _untold(shown: Shown) -> bool:
    """Whether a step shows no receipt of what it costs: text on a terminal, or an algorithm that failed."""
    on_terminal = any(isinstance(r, dict) and "stdout" in r and "--json" not in shown.step.text for r in shown.results)
    return on_terminal or (bool(shown.draws) and any(label == "error" for label, _ in shown.texts))


def _documents(result: Any, step: Step, world: World) -> list[Mapping[str, Any]]:
    """The receipts of a result that tell what the person is charged."""
    if isinstance(result, dict) and "stdout" in result:
        if result["exit code"] or "--json" not in step.text:
            return []
        result = json.loads(result["stdout"])
        return [result] if "charges" in result else []
    if isinstance(result, accord.GroupedRelease):
        rows = world.sources[step.about].people.get(world.person, ())
        keys = {None, *(row.get(str(result.plan.query.part.by)) for row in rows)}
        return [made.receipt() for key, made in result.releases.items() if key in keys and made is not None]
    if isinstance(result, accord.Release | accord.WorkloadRelease):
        return [result.receipt()]
    return []


def _text(micro: float) -> str:
    """A level in millionths as receipts have it."""
    if micro == inf:
        return "inf"
    whole = f"{Decimal(int(micro)).scaleb(-6):f}"
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def _first(here: list[tuple[str, str]], there: list[tuple[str, str]]) -> str:
    for (label, one), (other_label, other) in zip(here, there, strict=False):
        if (label, one) != (other_label, other):
            at = next(
                (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
            )
            return f"{label} tells two worlds apart: …{one[max(0, at - 30) : at + 30]!r} or …{other[max(0, at - 30) : at + 30]!r}"
    return "one world shows more than the other"


# ---- the smallest ----------------------------------------------------------------------------------------------------------


def smallest(found: Difference, tries: int = 200) -> Difference:
    """A world that is as small as can be and still shows that somebody loses too much."""
    while tries > 0:
        for smaller in _smaller(found.world):
            tries -= 1
            again = difference(smaller)
            if again is not None and again.found > again.promised:
                found = again
                break
            if tries <= 0:
                break
        else:
            break
    return found


def _smaller(world: World) -> Iterator[World]:
    """With one line, one person, one row or one changed value less; in a simpler form."""
    for k in reversed(range(len(world.program))):
        yield replace(world, program=world.program[:k] + world.program[k + 1 :])
    everyone = {person for source in world.sources.values() for person in source.people} - {world.person}
    for some in (sorted(everyone)[::2], sorted(everyone)[1::2], *([person] for person in sorted(everyone))):
        without = {
            name: replace(source, people={p: rows for p, rows in source.people.items() if p not in some})
            for name, source in world.sources.items()
        }
        if some:
            yield replace(world, sources=without)
    for name, source in world.sources.items():
        if source.form != "lists":
            yield replace(world, sources={**world.sources, name: replace(source, form="lists")})
        own, other = source.people.get(world.person, ()), world.changed.get(name, ())
        for k in range(min(len(own), len(other))):
            for column, value in own[k].items():
                if repr(value) != repr(other[k][column]):
                    row = {**other[k], column: value}
                    yield replace(world, changed={**world.changed, name: (*other[:k], row, *other[k + 1 :])})
