"""Thousands of groups: the same integers as one by one, and a text that can be read."""

from datetime import date
from math import inf, nan

import numpy as np
import pytest

import accord
from accord.engines import duckdb as engine

N = 3_000


def answers(data, by, keys, monkeypatch, few, **how):
    """Exact, because everybody is public."""
    monkeypatch.setattr(engine, "_FEW_KEYS", few)
    people = accord.table({**data, "e": np.full(N, inf)}, epsilon="e", **how)
    counted = people.release(accord.count(by=by, keys=keys), "threshold", t=inf)
    summed = people.release(accord.sum("x", bounds=(0, 100), step=1, by=by, keys=keys), "threshold", t=inf)
    return [(row[by], row["value"]) for made in (counted, summed) for row in made.value]


def columns():
    draw = np.random.default_rng(5)
    numbers = draw.choice([*np.arange(200.0), nan, inf, -0.0, 0.5, 2.0**53, 2.0**53 + 2], N)
    words = [*(f"k{j}" for j in range(150)), "it's", "", "É", "e\u0301", " k1", "K1", "k1\n", None]
    text = np.array(words, dtype=object)[draw.integers(0, len(words), N)]
    return {
        "x": draw.integers(0, 100, N).astype(float),
        "number": numbers,
        "text": text,
        "mixed": np.array([1.0, "1", "k1", None, True, "2.0"], dtype=object)[draw.integers(0, 6, N)],
        "day": np.datetime64("2026-01-01") + draw.integers(0, 300, N).astype("timedelta64[D]"),
        "who": draw.integers(0, 1_000, N),
    }


KEYS = {
    "number": [*range(180), 0.5, 2**53, 10**9],
    "text": [*(f"k{j}" for j in range(140)), "it's", "", "É", " k1", "K1", "nobody"],
    "mixed": ["1", "k1", "2.0", *(f"z{j}" for j in range(100))],
    "day": [str(date(2026, 1, 1).replace(month=1 + j // 28, day=1 + j % 28)) for j in range(100)],
}


@pytest.mark.parametrize("by", KEYS)
@pytest.mark.parametrize("user", [None, "who"])
def test_many_keys_are_found_as_one_by_one(by, user, monkeypatch):
    data = columns()
    looked_up = answers(data, by, KEYS[by], monkeypatch, 64, user=user)
    one_by_one = answers(data, by, KEYS[by], monkeypatch, 10**6, user=user)
    assert looked_up == one_by_one
    assert sum(value for _, value in looked_up) > N / 4


def test_a_text_shows_the_first_and_the_last_of_many_groups():
    keys = [f"k{j}" for j in range(10_000)]
    people = accord.table({"w": keys, "e": [1.0] * len(keys)}, epsilon="e")
    made = people.release(accord.count(by="w", keys=keys), "minimum")
    text = str(made)
    assert "… 9,900 more groups" in text and "all of them: .value, or --json" in text
    assert "k49 " in text and "k50 " not in text and "k9950 " in text and "k9949 " not in text
    assert len(made.value) == len(made.interval()) == 10_000


GROUPS = {"by": "w", "keys": [f"k{j}" for j in range(80)]}
NUMBERS = {"bounds": (0, 100), "step": 1, **GROUPS}
ASKED = {
    "where": accord.sum("x", where="m = 1", **NUMBERS),
    "exclude": accord.mean("x", missing="exclude", **NUMBERS),
    "median": accord.median("x", **NUMBERS),
    "public": accord.count(where="m = 1", membership="public", **GROUPS),
    "public, exclude": accord.mean("x", missing="exclude", membership="public", **NUMBERS),
    "histogram": accord.histogram("x", edges=[0, 50, 100], **GROUPS),
    "regression": accord.regression("x", ["z"], bounds={"x": (0, 100), "z": (0, 1)}, **GROUPS),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("user", [None, "who"])
def test_every_question_finds_its_keys(name, user, monkeypatch):
    """Conditions, public groups, missing values, choices and moments go through the same join."""
    people, draw = 1_200, np.random.default_rng(5)
    data = {
        "x": np.where(np.arange(people) % 7, draw.integers(0, 100, people), nan),
        "z": draw.uniform(0, 1, people),
        "w": np.array([f"k{j}" for j in range(90)], dtype=object)[np.arange(people) // 4 % 90],
        "m": draw.integers(0, 2, people).astype(float),
        "who": np.arange(people) // 4,
        "e": np.full(people, inf),
    }
    found = []
    for few in (64, 10**6):
        monkeypatch.setattr(engine, "_FEW_KEYS", few)
        made = accord.table(data, epsilon="e", user=user).release(ASKED[name], "threshold", t=inf)
        found.append(repr(made.value))
    assert found[0] == found[1] and len(made.value) == 80
