"""Columns as text and back: letter by letter what `json` writes, and nothing is read that it did not write."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord import numerals
from accord.budget import MICRO, PUBLIC, distinct, level_text
from accord.numerals import read, written

EDGES = [-1, 0, 1, 9, 10, 99, 100_000, 999_999, MICRO, MICRO + 1, 10**12, 2**53 - 1]
numbers = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**53 - 1))
amounts = st.one_of(st.sampled_from([*(e for e in EDGES if e <= 10**12), PUBLIC]), st.integers(0, 10**12))


def plain(rows):
    """By `json`, one object after the other."""
    values = [[None if n < 0 else n, None if a < 0 else level_text(a)] for n, a in rows]
    return json.dumps(values, separators=(",", ":"))[1:-1]


def columns(rows):
    return [np.array([row[k] for row in rows], dtype=np.int64) for k in range(2)]


def text_of(rows):
    return b"".join(written("[#,$]", ",", columns(rows))).decode()


@given(st.lists(st.tuples(numbers, amounts), min_size=1, max_size=40), st.sampled_from([0, 3, 10**9]))
def test_text_is_that_of_json_and_read_back(rows, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numerals, "FEW", few)  # by row, or by column
        patch.setattr(numerals, "AT_ONCE", 7)  # in pieces
        assert text_of(rows) == plain(rows)
        assert [column.tolist() for column in read("[#,$]", plain(rows))] == [
            c.tolist() for c in columns(rows)
        ]


def test_a_hundred_thousand_rows():
    draw = np.random.default_rng(1)
    ids, amount = draw.integers(1, 10**7, 100_000), draw.integers(0, 3 * MICRO, 100_000)
    amount[::7], amount[::11], ids[::13] = PUBLIC, -1, -1
    rows = list(zip(ids.tolist(), amount.tolist(), strict=True))
    assert text_of(rows) == plain(rows)
    assert [column.tolist() for column in read("[#,$]", plain(rows))] == [ids.tolist(), amount.tolist()]


@given(st.lists(st.tuples(*[st.integers(0, PUBLIC)] * 3), max_size=20), st.sampled_from([0, 10**9]))
def test_whole_numbers_of_any_size(rows, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numerals, "FEW", few)
        integers = [np.array([row[k] for row in rows], dtype=np.int64) for k in range(3)]
        text = b"".join(written("[#, #, #]", ", ", integers)).decode()
    assert f"[{text}]" == json.dumps([list(row) for row in rows])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "[1,2]",
        '[1,"x"]',
        '[1,"1.0"]',
        '[1,"01"]',
        '[01,"1"]',
        '[1,"0.0000001"]',
        '[1,"-1"]',
        '[-1,"1"]',
        '[1e3,"1"]',
        '[1.5,"1"]',
        '[ 1,"1"]',
        '[1,"1"],',
        '[1,"1"][1,"1"]',
        '[1,"1"],[2]',
        '[99999999999999999999,"1"]',
        '[9007199254740993,"1"]',
        '[1,"1e999"]',
        '[1,"nan"]',
        '[nan,"1"]',
        "[1,inf]",
        '[1,"Infinity"]',
        '[1,"null"]',
        '[ä,"1"]',
        '[1,"1"]\ud800',
    ],
)
def test_whatever_was_not_written_so_is_not_read(text):
    assert read("[#,$]", text) is None


@given(st.lists(st.integers(-3, 3)))
def test_distinct_values(values):
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))
