"""Every combination that is offered is released, and every other is refused for its reason.

Refusals come before a value is read or anybody is charged. What is offered comes from the code
(lab/audit/offered.py). Quick tests take a part of the combinations, spread over all statistics and modifiers;
slow ones take all: of what is released, golden/test_golden.py, which compares the answers as well.
"""

import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache
from inspect import signature
from itertools import count
from math import inf, isfinite
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.test_postgres import at, fill, make

import accord
from accord.errors import AccordError, QueryError
from accord.lab.audit import examples, offered
from accord.lab.audit.cases import NEIGHBORS
from accord.lab.audit.offered_page import page
from accord.statistics import Algorithm

PAGE = Path(__file__).parents[2] / "docs" / "offered.md"
STATISTICS = tuple(examples.QUESTIONS)
NUMBERS = count()
together = pytest.mark.xdist_group("offered")
"""Of quick tests, which go through the whole matrix for a few of its combinations: one process makes it."""
BY_STATISTIC = [
    pytest.param(name, marks=[pytest.mark.slow, pytest.mark.xdist_group(f"all of {name}")])
    for name in STATISTICS
]
"""Of slow ones, which take all of a statistic: one process makes its part of the matrix."""


def spread(statistic, every, is_offered, engine="duckdb"):
    """Every so many-th combination.

    Each statistic starts at another, so that together they go through all mechanisms and modifiers.
    """
    combinations = offered.combinations(statistic=statistic, engine=engine)
    of_kind = [c for c in combinations if c.offered == is_offered]
    return of_kind[STATISTICS.index(statistic) % every :: every]


@pytest.fixture
def books(tmp_path):
    """A new ledger each time."""
    return lambda: accord.Ledger(tmp_path / f"{next(NUMBERS)}.db")


@cache
def memory(neighbors, modifier, kind):
    """One engine for all examples with the same rows."""
    return examples.opened(examples.example(kind, "minimum", neighbors, modifier))


def in_memory(combination, example):
    """The table of an example as if it had just been opened."""
    kind = next((name for name in ("regression", "rows") if combination.statistic.startswith(name)), "mean")
    same_rows = memory(combination.neighbors, combination.modifier, kind)
    return accord.Table(
        same_rows.reader.engine,
        same_rows.reader.levels,
        example.table.get("user"),
        same_rows.neighbors,
        same_rows.level_column,
        same_rows.reader.roster,
    )


# ---- offered -----------------------------------------------------------------------------------------------


def numbers(value):
    """All numbers of an answer."""
    if isinstance(value, dict):
        return [x for key, entry in value.items() if key != "few" for x in numbers(entry)]
    if isinstance(value, list):
        return [x for entry in value for x in numbers(entry)]
    if isinstance(value, accord.Coefficients):
        return [value.intercept, *value.coefficients.values()]
    return [value]


def intervals(ends):
    """All intervals of an answer."""
    if isinstance(ends, dict | list):
        return [
            pair for entry in (ends.values() if isinstance(ends, dict) else ends) for pair in intervals(entry)
        ]
    return [ends]


def bounded_by_share(charges, share):
    return all(
        level == inf or Fraction(repr(charge)) <= Fraction(repr(level)) * share
        for level, charge in charges.items()
    )


def holds(combination, release, example):
    """What every release promises about itself."""
    assert release.parts, combination
    assert all(map(isfinite, numbers(release.value))), combination
    share = Fraction(repr(example.share))
    for part in release.parts:
        assert part.charges and bounded_by_share(part.charges, share), combination
        assert combination.mechanism in (part.mechanism, "auto"), combination
        if isinstance(example.query, Algorithm):
            with pytest.raises(QueryError, match="only it can tell its error"):
                part.interval()
            continue
        assert isfinite(part.rmse) and part.rmse >= 0, combination
        assert all(low <= high for low, high in intervals(part.interval(0.9))), combination
    if release.plan.is_workload:
        assert bounded_by_share(release.charges, share), combination
    json.dumps(release.receipt())
    if is_printed(combination):
        assert str(release)


def is_printed(combination):
    """Half of them, for it takes as long as a release: under one relation or the other, in turn. Any two of statistic, mechanism, modifier and relation that
    are offered together meet. `pe` and algorithms are offered under few, and are all printed."""
    if combination.mechanism == "pe" or combination.statistic == "algorithm":
        return True
    places = (
        STATISTICS.index(combination.statistic),
        examples.MECHANISMS.index(combination.mechanism),
        list(examples.MODIFIERS).index(combination.modifier),
        NEIGHBORS.index(combination.neighbors),
    )
    return sum(places) % 2 == 0


def releases(combination, table, books):
    """The release, once everything about it holds."""
    example = offered.example_of(combination)
    if example.ledger == "none":
        release = examples.answered(example, table)
        holds(combination, release, example)
        return release
    ledger = books()
    budget = examples.prepared(example, table, ledger)
    before = spent(ledger)
    release = examples.answered(example, table, ledger, budget)
    holds(combination, release, example)
    assert release.booked.entry == ledger.entries()[-1].seq
    assert ledger.verify().problems == ()
    assert all(after <= account for (account, _), (_, after) in zip(before, spent(ledger), strict=True)), (
        combination
    )
    booked = {Fraction(entry["charge"]) for entry in ledger.history()[-1]["booked"]}
    assert booked <= {0, *(Fraction(repr(c)) for c in release.charges.values() if c < inf)}, combination
    return release


def spent(ledger):
    """Of every level in every table: itself, and the most that anyone of it has spent."""
    return [(account.level, account.spent[1]) for account in ledger.accounts()]


@together
@pytest.mark.parametrize("statistic", STATISTICS)
def test_what_is_offered_is_released(statistic, books):
    for combination in spread(statistic, 80, True):
        releases(combination, in_memory(combination, offered.example_of(combination)), books)


# ---- other engines -----------------------------------------------------------------------------------------


def parquet(columns, folder):
    path = folder / f"{next(NUMBERS)}.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def relation(columns, folder):
    return duckdb.connect().from_arrow(pa.table(columns))


@together
@pytest.mark.parametrize(("engine", "form"), [("duckdb file", parquet), ("duckdb relation", relation)])
def test_files_and_relations(engine, form, books, tmp_path):
    for statistic in STATISTICS:
        for combination in spread(statistic, 180, True, engine):
            example = offered.example_of(combination)
            releases(combination, examples.opened(example, form(example.columns, tmp_path)), books)


def elsewhere(engine, every, opened, books):
    """A part of what an engine offers, and one refusal of each kind that it has to itself."""
    reasons = set()
    for statistic in STATISTICS:
        for combination in spread(statistic, every, True, engine):
            releases(combination, opened(offered.example_of(combination)), books)
        for combination in offered.combinations(statistic=statistic, engine=engine):
            here = replace(combination, engine="duckdb", offered=True, reason="")
            if not combination.offered and combination.reason not in reasons and here in on_duckdb(statistic):
                reasons.add(combination.reason)
                refuses(combination, opened(offered.example_of(combination)), books())
    assert len(reasons) == 2


@cache
def on_duckdb(statistic):
    return set(offered.combinations(statistic=statistic, engine="duckdb"))


@together
@pytest.mark.postgres
def test_postgresql(postgres_url, books):
    kinds = {"i": "bigint", "f": "double precision"}

    def opened(example):
        name = f"t{next(NUMBERS)}"
        arrays = {c: np.asarray(values) for c, values in example.columns.items()}
        types = {c: (kinds.get(values.dtype.kind, "text"), None) for c, values in arrays.items()}
        make(postgres_url, name, types)
        fill(
            postgres_url,
            name,
            types,
            list(zip(*(values.tolist() for values in arrays.values()), strict=True)),
        )
        return examples.opened(example, at(postgres_url, name))

    elsewhere("postgresql", 60, opened, books)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark(session, books):
    def opened(example):
        return examples.opened(example, session.createDataFrame(pd.DataFrame(example.columns)))

    elsewhere("spark", 120, opened, books)


# ---- refused -----------------------------------------------------------------------------------------------


class Watched:
    """An engine that remembers what was read of it."""

    def __init__(self, engine, private):
        self._engine, self.read = engine, []
        self._private = re.compile(rf"\b({'|'.join(engine.dialect.column(name) for name in private)})\b")

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def fetch(self, sql, wide=()):
        asked = sql.replace(self._engine.source, "")  # which names all columns, in some engines
        if self._private.search(asked):
            self.read.append(sql)
        return self._engine.fetch(sql, wide)

    def rows(self, *asked):
        self.read.append("rows")
        return self._engine.rows(*asked)

    def lend(self, columns):
        self.read.append("lent")
        return self._engine.lend(columns)


def watched(table, private):
    reader = table.reader
    engine = Watched(reader.engine, private)
    return accord.Table(engine, reader.levels, table.user, table.neighbors, table.level_column, reader.roster)


def is_prepared(combination, example):
    """Whether a ledger takes the table at all, and what an example does with it before it asks."""
    by_level = combination.neighbors == "private-levels" and example.ledger != "remaining by person"
    return example.ledger != "none" and (combination.neighbors == "replace" or by_level)


def refuses(combination, table, ledger):
    """For its reason, with nothing read and nothing charged."""
    example = offered.example_of(combination)
    people = watched(table, example.private)
    budget = None
    if is_prepared(combination, example):
        budget = examples.prepared(example, table, ledger)
    people.spec()
    before = ledger.entries(), ledger.accounts()
    with pytest.raises(AccordError) as refusal:
        if budget is None:
            examples.released(example, people, ledger)
        else:
            examples.answered(example, people, ledger, budget)
    assert combination.reason in str(refusal.value), combination
    assert people.reader.engine.read == [], combination
    assert (ledger.entries(), ledger.accounts()) == before, combination


def refused(combinations, books):
    ledger = books()
    for combination in combinations:
        try:
            example = offered.example_of(combination)
        except QueryError as unknown:
            assert str(unknown) == combination.reason
            asked = examples.MODIFIERS[combination.modifier].of or {"mechanism": combination.mechanism}
            takes = signature(examples.function_of(combination.statistic))
            if set(asked) <= set(takes.parameters):
                assert "is not offered" in combination.reason  # what it says is, and not the argument
                continue
            with pytest.raises(TypeError, match="unexpected keyword"):
                takes.bind_partial(**asked)
            continue
        needs_its_own = is_prepared(combination, example)
        refuses(combination, in_memory(combination, example), books() if needs_its_own else ledger)


@together
@pytest.mark.parametrize("statistic", STATISTICS)
def test_what_is_refused_costs_nothing(statistic, books):
    refused(spread(statistic, 24, False), books)


@pytest.mark.parametrize("statistic", BY_STATISTIC)
def test_all_that_is_refused_costs_nothing(statistic, books):
    refused(spread(statistic, 1, False), books)


@together
def test_a_reading_would_be_seen():
    """The watch is no good if nothing moves it."""
    for combination in offered.combinations(
        mechanism="minimum", neighbors="replace", modifier="many rows", engine="duckdb"
    ):
        if combination.offered:
            example = offered.example_of(combination)
            table = watched(in_memory(combination, example), ("x", "z", "g", "m"))
            table.spec()
            assert table.reader.engine.read == []
            examples.answered(example, table)
            assert table.reader.engine.read or example.query.columns == (), combination


# ---- the matrix --------------------------------------------------------------------------------------------


@together
def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == page()


@together
def test_every_question_and_mechanism_is_in_the_matrix():
    functions = [getattr(accord, name) for name in accord.__all__ if callable(getattr(accord, name))]
    asking = {
        f.__name__
        for f in functions
        if str(getattr(f, "__annotations__", {}).get("return")).split("[")[0] in ("Query", "Workload")
    }
    asking -= {"crosstab", "top"}  # counts, by columns that they name
    asked = {name for name in asking if any(name in statistic.split(" ")[0] for statistic in STATISTICS)}
    assert asked == asking >= {"mean", "regression", "workload"}
    assert {m.name for m in accord.mechanisms.ALL} | {"auto"} == set(examples.MECHANISMS)
    for mechanism in examples.MECHANISMS:
        assert any(
            combination.offered
            for combination in offered.combinations(mechanism=mechanism, modifier="none", engine="duckdb")
        )


def test_an_unknown_name_is_refused():
    with pytest.raises(AccordError, match="there is no engine 'duckbd': did you mean 'duckdb'"):
        list(offered.combinations(engine="duckbd"))
