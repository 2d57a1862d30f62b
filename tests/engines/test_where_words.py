"""Conditions as people write them: `==`, a column of true and false by itself; and what they are told where that does not work."""

import numpy as np
import pyarrow as pa
import pytest

import accord
from accord.errors import QueryError

PEOPLE = {
    "active": np.array([True, False, True, True] * 25),
    "age": np.arange(100.0),
    "region": ["north", "east"] * 50,
    "e": np.full(100, np.inf),
}


@pytest.fixture(scope="module")
def people():
    return accord.table(pa.table(PEOPLE), epsilon="e")


@pytest.mark.parametrize(
    ("where", "same"),
    [
        ("active", "active = TRUE"),
        ("NOT active", "active = FALSE"),
        ("active AND age >= 50", "active = TRUE AND age >= 50"),
        ("NOT (age == 3 OR active)", "age <> 3 AND active = FALSE"),
        ("region == 'north'", "region = 'north'"),
    ],
)
def test_written_so_it_is_the_same(people, where, same):
    count = people.release(accord.count(where=where)).value
    assert count == people.release(accord.count(where=same)).value and 0 < count < 100
    assert (
        people.release(accord.mean("age", (0, 100), where=where)).value
        == people.release(accord.mean("age", (0, 100), where=same)).value
    )


def test_a_missing_truth_is_neither_true_nor_false():
    table = accord.table(pa.table({"active": [True, None, False, None], "e": [np.inf] * 4}), epsilon="e")
    assert [table.release(accord.count(where=w)).value for w in ("active", "NOT active")] == [1.0, 1.0]


def refusal(table, where):
    """The same while planning, where a value can decide nothing."""
    with pytest.raises(QueryError) as planned:
        table.plan(accord.count(where=where))
    return str(planned.value)


def test_other_columns_by_themselves_are_refused_with_the_next_step(people, tmp_path):
    assert refusal(people, "age") == (
        "the condition has 'age' alone, which is a condition only of a column of true and false. "
        "It holds numbers: compare it with a number, such as 30."
    )
    assert "It holds text: compare it with a text in quotes, such as 'north'." in refusal(
        people, "NOT region"
    )
    path = tmp_path / "people.csv"
    path.write_text("active,e\ntrue,1\nfalse,1\n")
    text = refusal(accord.table(str(path), epsilon="e"), "active")
    assert text == (
        "the condition has 'active' alone, and nothing tells of which kind that column is. "
        "Write active = TRUE, or compare it with a number or a text in quotes."
    )


def test_a_misspelt_column_is_asked_about(people):
    assert "there is no column 'activ': did you mean 'active'?" in refusal(people, "activ")
    assert "there is no column 'aeg': did you mean 'age'?" in refusal(people, "active AND aeg > 3")


def test_a_key_of_another_kind_is_refused(people):
    with pytest.raises(QueryError, match=r"column 'age' holds numbers, and 'north' is not one\."):
        people.plan(accord.count(by="age", keys=["north"]))
    with pytest.raises(QueryError, match=r"column 'region' holds text, and 3 is not one\."):
        people.plan(accord.histogram("region", categories=[3, 4]))
    with pytest.raises(
        QueryError,
        match=r"column 'active' holds true and false, and 'yes' is not one\. Give TRUE or FALSE\.",
    ):
        people.plan(accord.mean("age", (0, 100), by="active", keys=["yes", "no"]))
