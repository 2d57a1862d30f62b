"""check: the replay and the empirical method for somebody's own algorithm, before it goes to `accord.sample`.

`accord.sample` takes the algorithm's word that one row more or less changes no probability by more than
exp(ε). Here it is run on pairs of tables that differ in one row: with nobody else, with few, with everyone;
the row being the most extreme one of each column, or any. An algorithm that takes `noise=` besides rows and ε
(with a default, and draws from it as accord's mechanisms do: docs/audit.md) is replayed draw by draw as well.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from time import perf_counter
from typing import Any

import numpy as np

from accord.errors import QueryError
from accord.lab.audit import empirical
from accord.lab.audit.findings import Audit, Look, findings_of
from accord.lab.audit.recording_noise import SURE, Adaptive, FixedWords, Leak
from accord.lab.audit.release_laws import Law, law, loss
from accord.lab.audit.runner import ALPHA, refuse_too_few
from accord.people.table import Table
from accord.sampling import algorithm_query
from accord.statistics import Algorithm

_FEW = 5


def check(
    algorithm: Callable[..., Any],
    table: Table,
    epsilon: float = 1.0,
    *,
    columns: Iterable[str] | None = None,
    rows: str = "arrow",
    runs: int = 2_000,
    alpha: float = ALPHA,
    seed: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Audit:
    """Look for a row whose presence changes what an algorithm returns by more than ε.

    Args:
        algorithm: `algorithm(rows, epsilon)`, as for `accord.sample`.
        table: people to try it on. What is found tells about them: take made-up people, or public ones.
        epsilon: the ε that the algorithm is given, and must keep.
        columns, rows: as for `accord.sample`.
        runs: of each of two tables, for the empirical method.
        alpha: the probability that a sound algorithm fails by the empirical method.
        seed: which rows are tried; others each time if it is not given.
        progress: is told about each pair when it is done.

    >>> import accord
    >>> people = accord.table({"x": [0.0, 1.0, 1.0]}, epsilon=1.0)
    >>> bad = check(lambda rows, epsilon: rows.num_rows, people, runs=200)
    >>> bad.passed, bad.violations[0].looks["empirical"].evidence
    (False, '200 runs of each; the same rows always gave the same answer')
    """
    refuse_too_few(runs, alpha)
    if not (isinstance(epsilon, int | float) and epsilon > 0 and isfinite(epsilon)):
        raise QueryError(
            f"epsilon={epsilon!r} is not a level that an algorithm can keep. Give a positive number."
        )
    query = algorithm_query(algorithm, table, columns, rows)
    start = perf_counter()
    seed = secrets.randbelow(10**6) if seed is None else seed
    with table.reader.one_row_each(query) as (source, *_):
        people = table.reader.engine.rows(source, query.columns, rows)
    pairs = list(_pairs(people, np.random.default_rng(seed)))
    if not pairs:
        raise QueryError("the table has no rows. Check the algorithm on a few people at least.")
    looks = [_look_at_kept(query, table, people, epsilon, np.random.default_rng(seed))]
    for pair in pairs:
        for method, lost, evidence in _losses(algorithm, pair, epsilon, runs, alpha / len(pairs)):
            level, promised = f"{epsilon:g}", float(epsilon)
            looks.append(Look(method, query.name, pair.name, "add-remove", level, promised, lost, evidence))
        progress(pair.name)
    return Audit(findings_of(looks), seed, runs, alpha, len(pairs), perf_counter() - start)


@dataclass(frozen=True)
class _Pair:
    """Rows, and the same with one more."""

    name: str
    without: Any
    with_one: Any


def _pairs(people: Any, rng: np.random.Generator) -> Iterator[_Pair]:
    size = _size(people)
    extremes = {"any row": int(rng.integers(size))} if size else {}
    for name, column in _columns(people):
        extremes[f"largest {name}"] = int(np.nanargmax(column))
        extremes[f"smallest {name}"] = int(np.nanargmin(column))
    for who, k in extremes.items():
        others = np.delete(np.arange(size), k)
        few = rng.choice(others, min(_FEW, others.size), replace=False) if others.size else others
        for text, rows in (
            ("nobody else", []),
            ("one other", few[:1]),
            (f"{few.size} others", few),
            ("everyone else", others),
        ):
            yield _Pair(f"{who}, with {text}", _take(people, rows), _take(people, [*rows, k]))
    for name, _ in _columns(people):
        low, high = extremes[f"smallest {name}"], extremes[f"largest {name}"]
        twenty = [low] * 20
        text = f"largest {name}, with 20 of the smallest"
        yield _Pair(text, _take(people, twenty), _take(people, [*twenty, high]))


def _columns(people: Any) -> Iterator[tuple[str, Any]]:
    """Columns of numbers, by name."""
    if isinstance(people, np.ndarray):
        named = [(f"column {k}", people[:, k]) for k in range(people.shape[1])]
    elif hasattr(people, "column_names"):
        named = [(name, people.column(name).to_numpy()) for name in people.column_names]
    else:
        named = [(str(name), people[name].to_numpy()) for name in people.columns]
    for name, column in named:
        if column.dtype.kind in "iuf" and np.isfinite(column.astype(np.float64)).any():
            numbers = column.astype(np.float64)
            yield name, np.where(np.isfinite(numbers), numbers, np.nan)


def _size(people: Any) -> int:
    return int(people.num_rows if hasattr(people, "num_rows") else len(people))


def _take(people: Any, rows: Any) -> Any:
    index = np.asarray(rows, dtype=np.int64)
    if isinstance(people, np.ndarray):
        return people[index]
    return people.take(index) if hasattr(people, "num_rows") else people.iloc[index].reset_index(drop=True)


def _look_at_kept(
    query: Algorithm, table: Table, people: Any, epsilon: float, rng: np.random.Generator
) -> Look:
    """With given random words, only those are seen whose own is below their chance."""
    chances = [SURE // 4, SURE // 2, SURE]
    spec = table.spec()
    if not table.reader.lends or not spec.micro.size:
        raise QueryError(
            "the table cannot be sampled. Check the algorithm on a file, a data frame or arrays."
        )
    keep = np.array([chances[k % 3] for k in range(spec.micro.size)], dtype=np.uint64)
    size = _size(people)
    words = rng.integers(0, SURE, size, dtype=np.uint64)
    seen = table.reader.rows(query, None, keep, FixedWords(words))
    by_level = dict(zip(spec.micro.tolist(), keep.tolist(), strict=True))
    with table.reader.one_row_each(query) as (source, level_reader, *_):
        sql = f"SELECT {level_reader.expression} AS level FROM {source} AS people"
        levels = level_reader.decode(table.reader.engine.fetch(sql)["level"], np.ones(size, dtype=np.int64))
    by_row = np.array([by_level.get(int(level), 0) for level in levels], dtype=np.uint64)
    is_right = _same(seen, _take(people, np.flatnonzero(words < by_row)))
    evidence = "" if is_right else "others are kept than those whose word says so"
    lost = 0.0 if is_right else inf
    return Look("replay", query.name, "who is kept", table.neighbors, f"{epsilon:g}", 0.0, lost, evidence)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one.equals(other))


def _losses(
    algorithm: Callable[..., Any], pair: _Pair, epsilon: float, runs: int, alpha: float
) -> Iterator[tuple[str, Fraction | float, str]]:
    """By each method: the loss that a pair shows, and the evidence."""
    if "noise" in inspect.signature(algorithm).parameters:
        with suppress(Adaptive):  # which only the empirical method can look at
            yield ("replay", *_replayed(algorithm, pair, epsilon))
    here, there = (
        [_answer(algorithm, rows, epsilon) for _ in range(runs)] for rows in (pair.without, pair.with_one)
    )
    lost = empirical.loss_lower_bound(here, there, alpha)
    yield "empirical", lost, f"{runs:,} runs of each{_reason(here, there)}"


def _answer(algorithm: Callable[..., Any], rows: Any, epsilon: float) -> Any:
    """What `accord.sample` would pass on: an answer, or the kind of a fault."""
    try:
        answer = algorithm(rows, epsilon)
    except (Exception, SystemExit) as fault:
        return f"raises a {type(fault).__name__}"
    return "returns nothing" if answer is None else answer


def _reason(here: list[Any], there: list[Any]) -> str:
    """What stands out, in words."""
    faults = [
        {x for x in answers if isinstance(x, str) and x.startswith(("raises a ", "returns nothing"))}
        for answers in (here, there)
    ]
    if faults[0] != faults[1]:
        return f"; it {min(faults[0] ^ faults[1])} with one of the two tables only"
    if all(len(set(map(repr, answers))) == 1 for answers in (here, there)):
        return "; the same rows always gave the same answer"
    forms = [{(type(x).__name__, len(empirical.numbers(x))) for x in answers} for answers in (here, there)]
    return "; the form of the answer tells the tables apart" if forms[0].isdisjoint(forms[1]) else ""


def _replayed(algorithm: Callable[..., Any], pair: _Pair, epsilon: float) -> tuple[Fraction | float, str]:
    """With every draw recorded."""

    def law_on(rows: Any) -> Law:
        return law(lambda noise: algorithm(rows, epsilon, noise=noise))

    try:
        return loss(law_on(pair.without), law_on(pair.with_one)), "every draw, with its scale"
    except Adaptive:
        raise
    except Leak as leak:
        return inf, str(leak)
    except Exception as fault:
        name = type(fault).__name__
        return inf, f"the replay fails ({name}): draws are added to whole numbers, and scales are fractions"
