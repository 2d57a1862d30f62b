"""Plans, releases and tables can be sent to another process, with every check they had."""

import copy
import os
import pickle
import subprocess
import sys
from math import inf

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import accord
from accord.errors import LedgerError, PlanError, SourceError
from accord.mechanisms import ALL
from accord.statistics import ALL as STATISTICS

SPEC = accord.Spec.from_groups(
    {"strict": 500, "open": 300, "out": 7}, tiers={"strict": 0.5, "open": inf, "out": 0}
)
NUMBERS = accord.Spec.from_groups({0.5: 40, 1.0: 30, 2.0: 20})
AGE = {"column": "age", "bounds": (0, 100)}
QUESTIONS = {
    "count": accord.count(where="age >= 50"),
    "crosstab": accord.crosstab("sex", "age", keys={"sex": ["f", "m"], "age": [1, 2]}),
    "top": accord.top("sex", k=1, keys=["f", "m"]),
    "sum": accord.sum(**AGE),
    "mean": accord.mean(**AGE),
    "proportion": accord.proportion("age >= 50"),
    "correlation": accord.correlation("age", "x", bounds={"age": (0, 100), "x": (0, 1)}),
    "covariance": accord.covariance("age", "x", bounds={"age": (0, 100), "x": (0, 1)}),
    "variance": accord.variance(**AGE),
    "std": accord.std(**AGE),
    "histogram": accord.histogram("age", edges=[0, 50, 100]),
    "median": accord.median(**AGE),
    "quantile": accord.quantile("age", [0.25, 0.5], (0, 100)),
    "min": accord.min(**AGE),
    "max": accord.max(**AGE),
    "rows": accord.rows(max=5),
    "regression": accord.regression("age", ["x"], bounds={"age": (0, 100), "x": (0, 1)}),
}
OTHERS = {
    "some of them": accord.mean(**AGE, where="age >= 50 AND sex IN ('f', 'm')"),
    "groups": accord.mean(**AGE, by="sex", keys=["f", "m"]),
    "who has one": accord.median(**AGE, missing="exclude"),
    "workload": accord.workload([QUESTIONS["mean"], QUESTIONS["median"]]),
}
ROWS = {
    "id": np.arange(60),
    "age": np.arange(60.0),
    "sex": ["f", "m"] * 30,
    "level": np.array([0.5, 1.0, 2.0] * 20),
}


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def test_there_is_one_of_each():
    assert set(QUESTIONS) == {statistic.name for statistic in STATISTICS}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("name", [*QUESTIONS, *OTHERS])
def test_plans_of_every_kind(name, neighbors):
    question = (QUESTIONS | OTHERS)[name]
    for spec in (SPEC, NUMBERS):
        for mechanism in ("auto", *(m.name for m in ALL)):
            try:
                plan = accord.plan(spec, question, mechanism, 0.5, neighbors=neighbors)
            except PlanError:
                continue
            same = again(plan)
            assert same == plan
            assert same.describe() == plan.describe()
            assert same.spec.tiers == plan.spec.tiers
            assert same.relation is plan.relation
            if mechanism == "auto":  # whose text has all candidates; it is made of what was compared
                assert str(same) == str(plan)


def test_a_plan_that_was_pickled_cannot_be_changed_either():
    plan = again(accord.plan(NUMBERS, QUESTIONS["mean"]))
    for array in (
        plan.spec.micro,
        plan.spec.people,
        plan.calibration.charges,
        plan.calibration.weights,
        plan.candidates[0].calibration.charges,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_plan_that_was_pickled_is_released_and_refused_like_any_other(tmp_path):
    people, others = (
        accord.table(ROWS, epsilon="level", user="id"),
        accord.table({**ROWS, "level": ROWS["level"] * 2}, epsilon="level", user="id"),
    )
    plan = again(people.plan(QUESTIONS["mean"], "minimum", 0.5))
    assert people.release(plan).charges == plan.charges
    with pytest.raises(PlanError, match="made for other levels"):
        others.release(plan)
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    first = people.release(plan, ledger=ledger)
    repeated = again(people.release(again(plan), ledger=ledger))
    assert (repeated.value, repeated.booked) == (first.value, first.booked) and repeated.repeated is not None
    people.release(plan, ledger=ledger, fresh=True)
    with pytest.raises(accord.errors.BudgetError):
        people.release(plan, ledger=ledger, fresh=True)


@pytest.mark.parametrize("name", [*QUESTIONS, *OTHERS])
def test_releases(name):
    people = accord.table({**ROWS, "x": np.linspace(0, 1, 60)}, epsilon="level", user="id")
    release = people.release((QUESTIONS | OTHERS)[name])
    same = again(release)
    assert same == release
    assert (str(same), same.receipt()) == (str(release), release.receipt())


def frames():
    listed = {name: list(values) for name, values in ROWS.items()}
    return {
        "arrays": ROWS,
        "lists": listed,
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(listed),
        "arrow": pa.table(listed),
    }


@pytest.mark.parametrize("name", frames())
def test_tables_in_memory_are_pickled_by_value(name):
    people = accord.table(frames()[name], epsilon="level", user="id")
    plan = people.plan(QUESTIONS["mean"])
    assert again(people).plan(QUESTIONS["mean"]) == plan
    assert again(people).release(plan).charges == plan.charges


def test_a_file_is_opened_again_from_any_folder(tmp_path, monkeypatch):
    pd.DataFrame(ROWS).to_parquet(tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    tiers = {"0.5": 0.5, "1.0": 1.0, "2.0": inf}
    people = accord.table("people.parquet", epsilon="level", tiers=tiers, default="0.5", user="id")
    tiers["1.0"] = 0
    sent = pickle.dumps((people, people.plan(QUESTIONS["mean"])))
    code = "import pickle, sys; people, plan = pickle.load(sys.stdin.buffer); print(people.spec() == plan.spec, people.user, people.release(plan).unbooked)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, cwd="/", env={**os.environ}, check=True
    )
    assert done.stdout.decode().split() == ["True", "id", "None"]


def test_opening_again_has_every_check(tmp_path):
    path = tmp_path / "people.parquet"
    pd.DataFrame(ROWS).to_parquet(path)
    people = accord.table(path, epsilon="level", user="id")
    people.release(QUESTIONS["mean"])
    sent = pickle.dumps(people)
    assert b"read" not in sent
    pd.DataFrame(ROWS | {"level": np.full(60, -1.0)}).to_parquet(path)
    with pytest.raises(accord.errors.SpecError):
        pickle.loads(sent).spec()
    path.unlink()
    with pytest.raises(SourceError, match="there is no file"):
        pickle.loads(sent)


def test_a_roster_comes_along():
    people = accord.table(ROWS, epsilon="level", neighbors="add-remove", roster=NUMBERS)
    assert again(people).spec() == NUMBERS
    assert again(people).neighbors == "add-remove"


def test_what_cannot_be_pickled(tmp_path):
    relation = duckdb.connect().sql("SELECT 1.0 AS age, 1.0 AS level")
    with pytest.raises(
        SourceError,
        match=r"a table of a DuckDBPyRelation cannot be pickled: it belongs to this process\. Write it to a Parquet",
    ):
        pickle.dumps(accord.table(relation, epsilon="level"))
    people = accord.table(ROWS, epsilon="level")
    group = people.groups(accord.count(by="sex", keys=["f"], membership="public").part)["f"]
    with pytest.raises(
        SourceError,
        match=r"one public group of another, and has no source of its own\. Pickle the whole table",
    ):
        pickle.dumps(group)
    ledger = accord.Ledger(tmp_path / "accord.db")
    with pytest.raises(
        LedgerError,
        match=r"a ledger is not pickled or copied, because its key would be\. Open it where it is needed",
    ):
        pickle.dumps(ledger)


def test_a_copy_in_this_process_remembers_what_was_charged():
    people = accord.table(ROWS, epsilon="level")
    people.release(QUESTIONS["mean"])
    assert copy.copy(people).release(QUESTIONS["mean"]).unbooked.releases == 2


def test_no_key_of_a_ledger_is_in_a_table(tmp_path):
    people, key = accord.table(ROWS, epsilon="level", user="id"), "a key that nobody may see"
    ledger = accord.Ledger(tmp_path / "accord.db", key)
    ledger.register(people, "people")
    people.release(QUESTIONS["mean"], share=0.5, ledger=ledger)
    assert key.encode() not in pickle.dumps(people)
