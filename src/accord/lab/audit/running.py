"""A program in a world, run with a noise that draws nothing: everything that it shows, step by step.

While a program runs, `accord.release` has another noise and another clock: this must not happen in a process
in which releases go on (runner.py starts one of its own).
"""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial
from importlib import import_module
from io import StringIO
from math import inf
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import accord
from accord.errors import AccordError
from accord.lab.audit.forms import Row, Source, given
from accord.lab.audit.laws import Outcome, Tap
from accord.ledger import chain
from accord.planning import Plan

KEY = "a key for programs that are tried"
_RELEASING = import_module("accord.release.release")


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
    """Tables, a program, and who is another person in the neighboring world.

    They have the rows of `changed` there instead; none: they are not there.
    """

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


# ---- what is seen ------------------------------------------------------------------------------------------


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
    """An algorithm that fails after a draw: whether one does may tell of the people, and costs as much as an
    answer.
    """
    raise ValueError(str(_rows_of(rows) + tap.laplace(1 / Fraction(epsilon))))


def _rows_of(rows: Any) -> int:
    return int(rows.num_rows if hasattr(rows, "num_rows") else len(rows))


def _shown(step: Step, names: dict[str, Any], tap: Recorded) -> Shown:
    shown, before, asked, log = Shown(step), len(tap.draws), tap.asked, Log()
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
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
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
"""Loggers of a Spark session that the process may have besides.

It tells its Java side of every object that is let go, at any time; no program here uses it.
"""


class Log(logging.Handler):
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
        (name, repr(getattr(result, name)))
        for name in ("value", "found", "rmse", "charges")
        if hasattr(result, name)
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
    draw, algorithm = _RELEASING.answer, _RELEASING.run

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
        _RELEASING: {"SECURE": tap, "datetime": _Clock, "answer": planned(draw), "run": planned(algorithm)},
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
