"""Every combination that is offered is released, and every other is refused for its reason, before a value is read or anybody is charged.

What is offered comes from the code (lab/audit/offered.py). Quick tests take a part of the combinations, spread over all statistics and modifiers; slow ones take all.
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
from accord.lab.audit import offered
from accord.statistics import Algorithm

PAGE = Path(__file__).parents[2] / "docs" / "offered.md"
STATISTICS = tuple(offered.QUESTIONS)
NUMBERS = count()


def spread(statistic, every, is_offered, engine="duckdb"):
    """Every so many-th cell; each statistic starts at another, so that together they go through all mechanisms and modifiers."""
    found = [c for c in offered.cells(statistic=statistic, engine=engine) if c.offered == is_offered]
    return found[STATISTICS.index(statistic) % every :: every]


@pytest.fixture
def books(tmp_path):
    """A new ledger each time."""
    return lambda: accord.Ledger(tmp_path / f"{next(NUMBERS)}.db")


@cache
def memory(neighbors, modifier, kind):
    """One engine for all examples with the same rows."""
    return offered.opened(offered.example(offered.Cell(kind, "minimum", neighbors, modifier, "", True, "")))


def in_memory(cell, shown):
    """The table of an example as if it had just been opened."""
    kind = next((name for name in ("regression", "rows") if cell.statistic.startswith(name)), "mean")
    held = memory(cell.neighbors, cell.modifier, kind)
    return accord.Table(
        held.reader.engine,
        held.reader.levels,
        shown.table.get("user"),
        held.neighbors,
        held.level_column,
        held.reader.roster,
    )


# ---- offered ---------------------------------------------------------------------------------------------------------


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


def answers(made):
    """The releases of which one consists."""
    return list(made.parts)


def within(charges, share):
    return all(
        level == inf or Fraction(repr(charge)) <= Fraction(repr(level)) * share
        for level, charge in charges.items()
    )


def holds(cell, made, shown):
    """What every release promises about itself."""
    assert answers(made), cell
    assert all(map(isfinite, numbers(made.value))), cell
    share = Fraction(repr(shown.share))
    for one in answers(made):
        assert one.charges and within(one.charges, share), cell
        assert cell.mechanism in (one.mechanism, "auto"), cell
        if isinstance(shown.query, Algorithm):
            with pytest.raises(QueryError, match="only it can tell its error"):
                one.interval()
            continue
        assert isfinite(one.rmse) and one.rmse >= 0, cell
        assert all(low <= high for low, high in intervals(one.interval(0.9))), cell
    if made.plan.is_workload:
        assert within(made.charges, share), cell
    json.dumps(made.receipt())
    assert str(made)


def releases(cell, table, ledger):
    shown = offered.example(cell)
    if shown.ledger == "none":
        holds(cell, offered.answered(shown, table), shown)
        return
    budget = offered.prepared(shown, table, ledger)
    before = spent(ledger)
    made = offered.answered(shown, table, ledger, budget)
    holds(cell, made, shown)
    assert made.booked.entry == ledger.entries()[-1].seq
    assert ledger.verify().problems == ()
    assert all(after <= account for (account, _), (_, after) in zip(before, spent(ledger), strict=True)), cell
    booked = {Fraction(entry["charge"]) for entry in ledger.history()[-1]["booked"]}
    assert booked <= {0, *(Fraction(repr(c)) for c in made.charges.values() if c < inf)}, cell


def spent(ledger):
    """Of every level in every table: itself, and the most that anyone of it has spent."""
    return [(account.level, account.spent[1]) for account in ledger.accounts()]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_what_is_offered_is_released(statistic, books):
    for cell in spread(statistic, 80, True):
        releases(cell, in_memory(cell, offered.example(cell)), books())


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS)
def test_all_that_is_offered_is_released(statistic, books):
    for cell in spread(statistic, 1, True):
        releases(cell, in_memory(cell, offered.example(cell)), books())


# ---- other engines ---------------------------------------------------------------------------------------------------


def parquet(columns, folder):
    path = folder / f"{next(NUMBERS)}.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def relation(columns, folder):
    return duckdb.connect().from_arrow(pa.table(columns))


@pytest.mark.parametrize(("engine", "form"), [("duckdb file", parquet), ("duckdb relation", relation)])
def test_files_and_relations(engine, form, books, tmp_path):
    for statistic in STATISTICS:
        for cell in spread(statistic, 180, True, engine):
            shown = offered.example(cell)
            releases(cell, offered.opened(shown, form(shown.columns, tmp_path)), books())


def elsewhere(engine, every, opened, books):
    """A part of what an engine offers, and one refusal of each kind that it has to itself."""
    reasons = set()
    for statistic in STATISTICS:
        for cell in spread(statistic, every, True, engine):
            releases(cell, opened(offered.example(cell)), books())
        for cell in offered.cells(statistic=statistic, engine=engine):
            here = replace(cell, engine="duckdb", offered=True, reason="")
            if not cell.offered and cell.reason not in reasons and here in on_duckdb(statistic):
                reasons.add(cell.reason)
                refuses(cell, opened(offered.example(cell)), books())
    assert len(reasons) == 2


@cache
def on_duckdb(statistic):
    return set(offered.cells(statistic=statistic, engine="duckdb"))


@pytest.mark.postgres
def test_postgresql(postgres_url, books):
    kinds = {"i": "bigint", "f": "double precision"}

    def opened(shown):
        name = f"t{next(NUMBERS)}"
        arrays = {c: np.asarray(values) for c, values in shown.columns.items()}
        types = {c: (kinds.get(values.dtype.kind, "text"), None) for c, values in arrays.items()}
        make(postgres_url, name, types)
        fill(
            postgres_url,
            name,
            types,
            list(zip(*(values.tolist() for values in arrays.values()), strict=True)),
        )
        return offered.opened(shown, at(postgres_url, name))

    elsewhere("postgresql", 60, opened, books)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_spark(session, books):
    def opened(shown):
        return offered.opened(shown, session.createDataFrame(pd.DataFrame(shown.columns)))

    elsewhere("spark", 120, opened, books)


# ---- refused ---------------------------------------------------------------------------------------------------------


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


def refuses(cell, table, ledger):
    """For its reason, with nothing read and nothing charged."""
    shown = offered.example(cell)
    people = watched(table, shown.private)
    budget = None
    if shown.ledger != "none" and cell.neighbors == "replace":
        budget = offered.prepared(shown, table, ledger)
    people.spec()
    before = ledger.entries(), ledger.accounts()
    with pytest.raises(AccordError) as refusal:
        if budget is None:
            offered.released(shown, people, ledger)
        else:
            offered.answered(shown, people, ledger, budget)
    assert cell.reason in str(refusal.value), cell
    assert people.reader.engine.read == [], cell
    assert (ledger.entries(), ledger.accounts()) == before, cell


def refused(cells, books):
    ledger = books()
    for cell in cells:
        try:
            shown = offered.example(cell)
        except QueryError as unknown:
            assert str(unknown) == cell.reason
            asked = offered.MODIFIERS[cell.modifier].of or {"mechanism": cell.mechanism}
            with pytest.raises(TypeError, match="unexpected keyword"):
                signature(offered.function_of(cell.statistic)).bind_partial(**asked)
            continue
        needs_its_own = shown.ledger != "none" and cell.neighbors == "replace"
        refuses(cell, in_memory(cell, shown), books() if needs_its_own else ledger)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_what_is_refused_costs_nothing(statistic, books):
    refused(spread(statistic, 24, False), books)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", STATISTICS)
def test_all_that_is_refused_costs_nothing(statistic, books):
    refused(spread(statistic, 1, False), books)


def test_a_reading_would_be_seen():
    """The watch is no good if nothing moves it."""
    for cell in offered.cells(
        mechanism="minimum", neighbors="replace", modifier="many rows", engine="duckdb"
    ):
        if cell.offered:
            shown = offered.example(cell)
            table = watched(in_memory(cell, shown), ("x", "z", "g", "m"))
            table.spec()
            assert table.reader.engine.read == []
            offered.answered(shown, table)
            assert table.reader.engine.read or shown.query.columns == (), cell


# ---- the matrix ------------------------------------------------------------------------------------------------------


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == offered.page()


def test_every_question_and_mechanism_is_in_the_matrix():
    functions = [getattr(accord, name) for name in accord.__all__ if callable(getattr(accord, name))]
    asking = {
        f.__name__
        for f in functions
        if getattr(f, "__annotations__", {}).get("return") in ("Query", "Workload")
    }
    asked = {name for name in asking if any(name in statistic.split(" ")[0] for statistic in STATISTICS)}
    assert asked == asking >= {"mean", "regression", "workload"}
    assert {m.name for m in accord.mechanisms.ALL} | {"auto"} == set(offered.MECHANISMS)
    for mechanism in offered.MECHANISMS:
        assert any(
            cell.offered for cell in offered.cells(mechanism=mechanism, modifier="none", engine="duckdb")
        )


def test_an_unknown_name_is_refused():
    with pytest.raises(AccordError, match="there is no engine 'duckbd': did you mean 'duckdb'"):
        list(offered.cells(engine="duckbd"))
