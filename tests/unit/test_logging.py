"""What is logged: what was planned, read and booked, by public things alone."""

import logging

import numpy as np
import pytest

import accord

N = 40
QUESTIONS = {
    "mean": accord.mean("age", bounds=(0, 100)),
    "sum of some": accord.sum("age", bounds=(0, 100), where="age >= 30"),
    "of all": accord.mean("age", bounds=(0, 100), missing="none"),
    "count": accord.count(where="sex = 'f'"),
    "groups": accord.count(by="sex", keys=["f", "m", "x"]),
    "median": accord.median("age", bounds=(0, 100), step=1),
    "histogram": accord.histogram("age", edges=[0, 30, 60, 100]),
    "several": accord.workload(
        [accord.mean("age", bounds=(0, 100)), accord.variance("age", bounds=(0, 100))]
    ),
    "regression": accord.regression("age", ["height"], bounds={"age": (0, 100), "height": (1, 2)}),
}


def rows():
    return {
        "id": np.arange(N),
        "age": np.arange(N) * 2.0,
        "height": np.linspace(1, 2, N),
        "sex": ["f", "m"] * (N // 2),
        "ward": ["a", "b"] * (N // 2),
        "level": np.array([0.5, 1.0, 2.0, 4.0] * (N // 4)),
    }


def changed(data):
    """One person has other values."""
    age, sex = data["age"].copy(), list(data["sex"])
    age[7], sex[7] = np.nan, "x"
    return {**data, "age": age, "sex": sex}


def without(data):
    """One person is not there."""
    return {
        name: np.delete(values, 7) if isinstance(values, np.ndarray) else values[:7] + values[8:]
        for name, values in data.items()
    }


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.DEBUG, logger="accord")

    def of(call):
        caplog.clear()
        call()
        return [f"{r.name} {r.levelname} {r.getMessage()}" for r in caplog.records]

    return of


def test_nobody_hears_anything_unless_they_listen(capfd):
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("accord").handlers)
    accord.table(rows(), epsilon="level").release(QUESTIONS["mean"])
    assert capfd.readouterr() == ("", "")


def test_what_is_logged_of_a_release(logged):
    people = accord.table(rows(), epsilon="level")
    assert logged(
        lambda: people.release(accord.mean("age", bounds=(0, 100), missing="none"), "proportional", 0.5)
    ) == [
        "accord DEBUG read 4 levels",
        "accord INFO planned <Plan: mean of age by proportional, rmse 10.4243 (value)>, charges 0.5: 0.25, 1: 0.5, 2: 1, 4: 2",
        "accord DEBUG reading age",
        "accord INFO released <Plan: mean of age by proportional, rmse 10.4243 (value)>, charges 0.5: 0.25, 1: 0.5, 2: 1, 4: 2, booked nowhere",
    ]


def test_what_is_logged_of_a_booked_release(logged, tmp_path):
    people, ledger = accord.table(rows(), epsilon="level", user="id"), accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    lines = logged(lambda: people.release(QUESTIONS["mean"], "minimum", 0.5, ledger=ledger))
    assert lines[-2] == "accord DEBUG charged as entry 2; reading age"
    assert lines[-1].endswith("charges 0.5: 0.25, 1: 0.25, 2: 0.25, 4: 0.25, booked as entry 3")


def test_public_groups_are_logged_as_one(logged):
    people = accord.table(rows(), epsilon="level")
    asked = accord.count(where="sex = 'f'", by="ward", keys=["a", "b"], membership="public")
    assert logged(lambda: people.release(asked))[-1].endswith(
        "2 groups>, charges each group by its own plan, booked nowhere"
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_logs_of_neighbors_are_the_same(name, logged, tmp_path):
    """Under both relations, with a ledger and without, and where people are known by their rows."""
    roster = accord.Spec.from_groups({0.5: 12, 1.0: 12, 2.0: 12, 4.0: 12})

    def released(data, **options):
        return lambda: accord.table(data, epsilon="level", **options).release(QUESTIONS[name], share=0.5)

    def booked(data, file):
        people, ledger = (
            accord.table(data, epsilon="level", user="id"),
            accord.Ledger(tmp_path / file, key="a key of some length"),
        )
        ledger.register(people, "people")
        return lambda: people.release(QUESTIONS[name], share=0.5, ledger=ledger)

    here, neighbor = rows(), changed(rows())
    for options in ({}, {"user": "id"}):
        lines = logged(released(here, **options))
        assert lines
        assert lines == logged(released(neighbor, **options))
    assert logged(booked(here, "one.db")) == logged(booked(neighbor, "two.db"))
    private = {"neighbors": "add-remove", "roster": roster}
    assert logged(released(here, **private)) == logged(released(without(here), **private))
