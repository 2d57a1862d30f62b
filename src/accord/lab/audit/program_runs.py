"""Running a program in a world, with a noise that draws nothing: all that it shows, step by step.

While a program runs, `accord.release` has another noise and another clock: this must not happen in a process
in which releases go on (runner.py starts one of its own).
"""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial
from importlib import import_module
from io import StringIO
from itertools import count
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import numpy as np

import accord
from accord.errors import AccordError
from accord.lab.audit.recording_noise import Outcome, RecordingNoise
from accord.lab.audit.table_forms import Row, Source, in_its_form, register_in_its_form
from accord.ledger import chain
from accord.people import table
from accord.planning import Plan

KEY = "a key for programs that are tried"
_RELEASING = import_module("accord.release.release")
_LOOKING = import_module("accord.release.looking")
_SIZING = import_module("accord.release.sizing")


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
    of_remaining: bool = False
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


class ProgramNoise(RecordingNoise):
    """A noise that draws nothing; it also knows which plan it draws for."""

    def __init__(self, word: int, outcome: int) -> None:
        super().__init__(Outcome(lambda k: outcome + k, lambda size: (abs(outcome) * 7) % size))
        self.word = word
        self.plans: list[Plan | None] = []
        self.plan: Plan | None = None
        self.times_words = 0
        """How many times random words were asked for."""

    def record(self, draw: Any) -> None:
        super().record(draw)
        self.plans.append(self.plan)

    def words(self, count: int) -> Any:
        self.times_words += 1
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
class StepOutput:
    """What one step of a program shows."""

    step: Step
    texts: list[tuple[str, str]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    draws: list[tuple[Plan | None, Any]] = field(default_factory=list)
    """What noise was drawn for, and what it was added to or chosen by."""
    times_words: int = 0
    """How many times random words were asked for."""


def run(world: World) -> list[StepOutput]:
    """Everything that a program shows, step by step."""
    noise = ProgramNoise(world.word, world.outcome)
    with TemporaryDirectory() as folder, chdir(folder), _stand_ins(noise), _closing() as names:
        names |= {
            "accord": accord,
            "given": lambda name: in_its_form(name, world.sources[name]),
            "register": lambda name: register_in_its_form(name, world.sources[name]),
            "noisy_count": lambda rows, epsilon: _number_of(rows) + noise.laplace(1 / Fraction(epsilon)),
            "constant": lambda rows, epsilon: epsilon,
            "failing": partial(_fail, noise),
            "command": _command,
            "inf": inf,
            "date": date,
            "Fraction": Fraction,
        }
        return [_run_step(step, names, noise) for step in world.program]


def _fail(noise: ProgramNoise, rows: Any, epsilon: float) -> None:
    """An algorithm that fails after a draw: that one does may tell of people, and costs like an answer."""
    raise ValueError(str(_number_of(rows) + noise.laplace(1 / Fraction(epsilon))))


def _number_of(rows: Any) -> int:
    return int(rows.num_rows if hasattr(rows, "num_rows") else len(rows))


def _run_step(step: Step, names: dict[str, Any], noise: ProgramNoise) -> StepOutput:
    output, draws_before, words_before = StepOutput(step), len(noise.draws), noise.times_words
    log, printed = Log(), StringIO()

    def show(result: Any) -> Any:
        output.results.append(result)
        output.texts += _texts(result)
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
        output.texts += _error_texts(fault)
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
    output.texts += [("warning", f"{w.category.__name__}: {w.message}") for w in warned]
    output.texts += [("log", line) for line in log.lines]
    output.texts.append(("print", printed.getvalue()))
    output.times_words = noise.times_words - words_before
    output.draws = list(zip(noise.plans[draws_before:], noise.draws[draws_before:], strict=True))
    return output


_SPARK = ("py4j.", "pyspark.")
"""Loggers of a Spark session that the process may have besides.

It tells its Java side of every object that is let go, at any time; no program here uses it.
"""


class Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_SPARK):
            self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


def _error_texts(fault: Exception) -> list[tuple[str, str]]:
    """An error as a reader sees it, with the errors behind it."""
    texts = [("error", line.rstrip()) for line in traceback.format_exception_only(fault)]
    behind = fault.__cause__ or (None if fault.__suppress_context__ else fault.__context__)
    if isinstance(behind, Exception):
        texts += _error_texts(behind)
    return texts


def _texts(result: Any) -> list[tuple[str, str]]:
    """A result as text, in every form that it has."""
    texts = [("str", str(result)), ("repr", repr(result))]
    for name in ("describe", "receipt", "_repr_html_"):
        if hasattr(result, name):
            texts.append((name, json.dumps(getattr(result, name)(), default=str)))
    for name in ("value", "rmse", "charges"):
        if hasattr(result, name):
            texts.append((name, repr(getattr(result, name))))
    if hasattr(result, "interval"):
        try:
            texts.append(("interval", repr(result.interval(0.9))))
        except AccordError as refused:
            texts.append(("interval", str(refused)))
    return texts


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


def _file_names(source: Any) -> Any:
    """Paths without their folders."""
    return [_file_names(each) for each in source] if isinstance(source, list) else Path(str(source)).name


@contextmanager
def _stand_ins(noise: ProgramNoise) -> Iterator[None]:
    """The noise and the clock of releases, and of a ledger; and which source is which."""

    def for_plans(plans: Sequence[Plan], *rest: Any) -> Any:
        """They share one noise, which is none of `sample`: any of them tells that."""
        return for_plan(lambda _, *others: together(plans, *others))(plans[0], *rest)

    def for_plan(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(plan: Plan, *rest: Any) -> Any:
            noise.plan = plan
            try:
                return call(plan, *rest)
            finally:
                noise.plan = None

        return called

    _Clock.ticks = 0
    numbers = count()
    release = vars(_RELEASING)
    together = release["answers_together"]
    stand_ins: dict[Any, dict[str, Any]] = {
        _RELEASING: {
            "SECURE": noise,
            "datetime": _Clock,
            "answer": for_plan(release["answer"]),
            "answers_together": for_plans,
            "run_algorithm": for_plan(release["run_algorithm"]),
        },
        _LOOKING: {"datetime": _Clock},
        _SIZING: {"datetime": _Clock},
        chain: {"datetime": _Clock},
        # where a source lies is public, and elsewhere in each run
        table: {"uuid4": lambda: UUID(int=next(numbers)), "without_password": _file_names},
    }
    before = {module: {name: vars(module)[name] for name in names} for module, names in stand_ins.items()}
    try:
        for module, names in stand_ins.items():
            vars(module).update(names)
        yield
    finally:
        for module, names in before.items():
            vars(module).update(names)
