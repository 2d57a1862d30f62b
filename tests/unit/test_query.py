"""Queries: what is asked is checked when it is asked, from public things alone."""

from dataclasses import FrozenInstanceError
from datetime import date, datetime
from fractions import Fraction
from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord import Spec, count, histogram, mean, plan, regression
from accord import sum as total
from accord.errors import QueryError
from accord.relation import ADD_REMOVE, REPLACE


def refusal(make, *args, **options):
    with pytest.raises(QueryError) as error:
        make(*args, **options)
    return str(error.value)


# ---- mean and sum ----------------------------------------------------------------------------------------------------

on_a_grid = pytest.mark.parametrize("make", [mean, total])


@on_a_grid
@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((10, 0), "bounds=(10, 0) are reversed. Give (low, high) with low < high, from public knowledge, never from the data."),
        ((0.5, 0.25), "bounds=(0.5, 0.25) are reversed."),
        ((3, 3.0), "bounds=(3, 3) are equal. Give (low, high) with low < high"),
        ((0, inf), "a bound is inf. It must be a finite number."),
        ((-inf, 0), "a bound is -inf. It must be a finite number."),
        ((nan, 1), "a bound is nan. It must be a finite number."),
        ((0, 10**400), "a bound is 1000"),
        ((0, "1"), "a bound is '1'. A text is a date such as '2026-01-31', or a moment such as '2026-01-31 12:00:00', without a time zone; a number has no quotes."),
        ((False, True), "a bound is False. It must be a finite number."),
        ((0, None), "a bound is None. It must be a finite number."),
        ((-1e308, 1e308), "bounds=(-1e+308, 1e+308) are too far apart or too close together to reckon with. Change the unit of the column."),
        ((0, 1e200), "bounds=(0, 1e+200) are too far apart"),
        ((0, 5e-324), "bounds=(0, 5e-324) are too far apart or too close together"),
        ((1e-310, 3e-310), "bounds=(1e-310, 3e-310) are too far apart or too close together"),
    ],
)  # fmt: skip
def test_bounds_that_are_none(make, bounds, says):
    assert refusal(make, "x", bounds=bounds).startswith(says)


@on_a_grid
@pytest.mark.parametrize("bounds", [5, (1,), (1, 2, 3), ()])
def test_bounds_that_are_no_pair(make, bounds):
    assert refusal(make, "x", bounds=bounds) == (
        f"bounds= of {make.__name__}('x') is not a pair. Give public bounds (low, high), such as bounds=(0, 200_000)."
    )


@on_a_grid
@pytest.mark.parametrize(
    ("std", "says"),
    [
        (5.1, "std=5.1 is not possible. A standard deviation within bounds of width 10 is positive (at least a billionth of it) and at most 5; leave it out if none is publicly known."),
        (0, "std=0 is not possible."),
        (-1, "std=-1 is not possible."),
        (nan, "std is nan. It must be a finite number."),
        (inf, "std is inf. It must be a finite number."),
        ("1", "std is '1'. It must be a finite number."),
    ],
)  # fmt: skip
def test_a_standard_deviation_that_cannot_be(make, std, says):
    assert refusal(make, "x", bounds=(0, 10), std=std).startswith(says)


@on_a_grid
def test_the_largest_standard_deviation_is_half_the_width(make):
    declared, undeclared = (make("x", bounds=(0, 10), **std).under(REPLACE) for std in ({"std": 5}, {}))
    assert declared.variance == 25.0 == undeclared.variance


@on_a_grid
def test_a_standard_deviation_that_says_nothing_changes_nothing(make):
    """`std` is an upper bound, so half the width is the same as none at all."""
    spec = Spec.from_groups({0.1: 1000, 1: 1000})
    declared, undeclared = (plan(spec, make("x", bounds=(0, 10), **std)) for std in ({"std": 5}, {}))
    assert (declared.mechanism, declared.rmse) == (undeclared.mechanism, undeclared.rmse)


@on_a_grid
@pytest.mark.parametrize(
    ("step", "says"),
    [
        (3, "step=3 does not fit bounds of width 10. The step is positive and divides the width into at most 1099511627776 cells; leave it out for 1048576."),
        (0, "step=0 does not fit bounds of width 10."),
        (-1, "step=-1 does not fit bounds of width 10."),
        (20, "step=20 does not fit bounds of width 10."),
        (1e-12, "step=1e-12 does not fit bounds of width 10."),
        (nan, "step is nan. It must be a finite number."),
    ],
)  # fmt: skip
def test_a_step_that_does_not_fit(make, step, says):
    assert refusal(make, "x", bounds=(0, 10), step=step).startswith(says)


@pytest.mark.parametrize(
    ("bounds", "step", "cells"),
    [((0, 1), 0.1, 10), ((0, 1), 0.01, 100), ((-0.3, 0.3), 0.1, 6), ((0, 10), 10, 1), ((0, 2**40), 1, 2**40)],
)
def test_a_step_divides_by_its_decimal_value(bounds, step, cells):
    assert mean("x", bounds=bounds, step=step).cells == cells


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(0, 6))
def test_every_decimal_step_that_divides_the_width_is_exact(low, cells, digits):
    unit = 10**digits
    query = mean("x", bounds=(low / unit, (low + cells) / unit), step=1 / unit)
    assert query.cells == cells
    assert query.low + cells * query.step == query.high


@on_a_grid
def test_without_a_step_there_are_a_million_cells(make):
    assert make("x", bounds=(-0.1, 0.2)).cells == 2**20


@on_a_grid
@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (-1, "missing=-1 lies outside the bounds. Give a number within them, 'middle', 'exclude' or 'none'."),
        (10.5, "missing=10.5 lies outside the bounds."),
        ("zero", "missing='zero' is not offered. It is 'exclude' (people without a value are left out), "),
        (nan, "missing is nan. It must be a finite number."),
        (None, "missing is None. It must be a finite number."),
    ],
)  # fmt: skip
def test_missing_that_cannot_be(make, missing, says):
    assert refusal(make, "x", bounds=(0, 10), missing=missing).startswith(says)


@pytest.mark.parametrize(("missing", "cell"), [("middle", 5), (0, 0), (10, 10), (3.4, 3), (3.5, 4)])
def test_the_cell_of_a_missing_value(missing, cell):
    assert mean("x", bounds=(0, 10), step=1, missing=missing).missing_cell == cell


@on_a_grid
@pytest.mark.parametrize("name", ["", None, 3, b"x"])
def test_a_column_is_named_by_a_text(make, name):
    assert refusal(make, name, bounds=(0, 1)).startswith("a column is named by a text, and ")


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": (0, 1e-160)},
        {"bounds": (0, 1e-200)},
        {"bounds": (-4e153, 4e153)},
        {"bounds": (0, 1), "std": 1e-200},
        {"bounds": (0, 1e-80), "std": 1e-250},
    ],
)
def test_extreme_numbers_are_refused_or_planned(options):
    """Never a fault of arithmetic, and never an error that is predicted to be zero or unknown."""
    try:
        query = mean("x", **options)
    except QueryError:
        return
    planned = plan(Spec.from_groups({1e-6: 1, 1: 100}), query)
    assert 0 < planned.rmse < inf


@pytest.mark.parametrize("make", [mean, total])
@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12))
def test_ordinary_bounds_can_be_planned(make, low, width):
    if not low < low + width:
        return
    planned = plan(Spec.from_groups({0.1: 100, 1: 100}), make("x", bounds=(low, low + width)))
    assert isfinite(planned.rmse)
    assert planned.rmse > 0


# ---- count -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["", "  ", 3, True, ["age > 3"]])
def test_a_count_needs_a_condition_that_is_a_text(where):
    assert refusal(count, where=where).startswith("where= is not a condition. Write tests such as ")


def test_a_count_names_each_column_once():
    assert count(where="a > 1 AND (b = 'x' OR a < 0)").columns == ("a", "b")
    assert count().columns == ()


def test_a_count_of_everyone_is_public_where_people_are():
    assert count().under(REPLACE).is_public
    assert not count().under(ADD_REMOVE).is_public
    for relation in (REPLACE, ADD_REMOVE):
        assert not count(where="a > 1").under(relation).is_public


# ---- histogram -------------------------------------------------------------------------------------------------------

EDGES = "It needs at least three, in ascending order, such as edges=[0, 18, 65, 100]."


@pytest.mark.parametrize("categories", [3, "x", ["a"]])
def test_a_regressions_categories_are_a_dict(categories):
    with pytest.raises(QueryError, match="categories= is a dict"):
        regression("y", ["a"], {"y": (0, 1), "a": (0, 1)}, categories)
    with pytest.raises(QueryError):
        regression("y", [["a"]]).label  # noqa: B018


CATEGORIES = "It needs at least two, each once; for one, ask accord.count(where=…)."
ONE_OF = "a histogram takes edges= or categories=, one of them. Declare the cells; they are never taken from the data."
KINDS = (
    "a histogram's categories are of several kinds. Give only texts, only numbers, or only True and False."
)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"edges": [0, 1, 2], "categories": ["a", "b"]}, ONE_OF),
        ({"edges": [0, 2, 1]}, f"a histogram got 3 edges that are not in ascending order. {EDGES}"),
        ({"edges": [0, 1, 1]}, f"a histogram got 3 edges that are not in ascending order. {EDGES}"),
        ({"edges": [0, 1]}, f"a histogram got 2 edges. {EDGES}"),
        ({"edges": []}, f"a histogram got 0 edges. {EDGES}"),
        ({"edges": [0, 1, inf]}, "an edge is inf. It must be a finite number."),
        ({"edges": [0, nan, 2]}, "an edge is nan. It must be a finite number."),
        ({"edges": "abc"}, "edges='abc' is not a list. Give edges=[…]."),
        ({"categories": ["a"]}, f"a histogram got 1 categories, 1 of them different. {CATEGORIES}"),
        ({"categories": []}, f"a histogram got 0 categories, 0 of them different. {CATEGORIES}"),
        ({"categories": ["a", "b", "a"]}, f"a histogram got 3 categories, 2 of them different. {CATEGORIES}"),
        ({"categories": [1, 1.0]}, f"a histogram got 2 categories, 1 of them different. {CATEGORIES}"),
        ({"categories": ["a", 1]}, KINDS),
        ({"categories": [True, 2]}, KINDS),
        ({"categories": [1, nan]}, "a group or category is nan. It must be a finite number."),
        (
            {"categories": [1, None]},
            "a group or category is None. Each is a text, a number, a date, or True or False; whoever has no value is in none.",
        ),
    ],
)
def test_cells_that_are_none(cells, says):
    assert refusal(histogram, "x", **cells) == says


@pytest.mark.parametrize(
    "cells",
    [
        {"categories": [["a"], ["b"]]},
        {"categories": np.array([["a", "b"], ["c", "d"]])},
        {"edges": 5},
        {"categories": 5},
    ],
)
def test_cells_that_are_no_list_of_values(cells):
    assert refusal(histogram, "x", **cells)


@pytest.mark.parametrize("kind", [np.array, tuple, iter])
def test_cells_may_come_in_any_sequence(kind):
    assert histogram("x", edges=kind([0, 1, 2])).cells == ("[0, 1)", "[1, 2]")
    assert histogram("x", categories=kind(["a", "b"])).cells == ("a", "b")


def test_a_histogram_needs_a_column():
    assert refusal(histogram, None, edges=[0, 1, 2]).startswith(
        "a column is named by a text, and None is not one."
    )


def test_missing_values_go_to_the_middle_of_the_edges_if_that_is_said():
    assert histogram("x", edges=[0, 1, 9, 10]).missing is None
    for word in ("middle", "none"):
        assert histogram("x", edges=[0, 1, 9, 10], missing=word).missing == 1
        assert histogram("x", edges=[0, 5, 10], missing=word).missing == 1


def test_missing_values_go_where_they_are_told():
    assert histogram("x", categories=["a", "b"]).missing is None
    assert histogram("x", categories=["a", "b"], missing="b").missing == 1
    assert histogram("x", edges=[0, 5, 10], missing="[0, 5)").missing == 0
    query = histogram("x", categories=["a", "b"], missing="other")
    assert (query.cells, query.categories, query.missing) == (("a", "b", "other"), ("a", "b"), 2)


@pytest.mark.parametrize(
    ("options", "sensitivity"),
    [
        ({"categories": ["a", "b"]}, 2),
        ({"categories": ["a", "b"], "missing": "a"}, 1),
        ({"categories": ["a", "b"], "missing": "c"}, 2),
        ({"edges": [0, 1, 2]}, 2),
        ({"edges": [0, 1, 2], "missing": "none"}, 1),
        ({"edges": [0, 1, 2], "missing": "elsewhere"}, 2),
        ({"edges": [0, 1, 2, 3]}, 2),
    ],
)
def test_one_noise_serves_two_cells_only_if_everyone_is_in_one_of_them(options, sensitivity):
    target = histogram("x", **options).under(REPLACE)
    assert target.sensitivity == sensitivity
    assert target.complementary == (sensitivity == 1)
    private = histogram("x", **options).under(ADD_REMOVE)
    assert (private.sensitivity, private.complementary) == (1, False)


# ---- all of them -----------------------------------------------------------------------------------------------------

MAKERS = [
    lambda: mean("x", bounds=(0, 10), std=2, step=0.5, missing=3),
    lambda: total("x", bounds=(0, 10)),
    lambda: count(where="a > 1 AND b IN ('x', 'y')"),
    lambda: histogram("x", edges=[0, 1, 2]),
    lambda: histogram("x", categories=["a", "b"], missing="c"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_query_is_frozen_and_hashable(make):
    query = make()
    assert {query: 1}[make()] == 1
    for field in vars(query):
        with pytest.raises(FrozenInstanceError):
            setattr(query, field, None)


def test_different_questions_are_different():
    assert len({make() for make in MAKERS}) == len(MAKERS)
    assert mean("x", bounds=(0, 10)) != total("x", bounds=(0, 10))
    assert mean("x", bounds=(0, 10)) != mean("x", bounds=(0, 10), std=1)


def test_bounds_are_kept_by_their_decimal_value():
    query = mean("x", bounds=(0.1, 0.3))
    assert (query.low, query.high) == (Fraction(1, 10), Fraction(3, 10))


def test_keys_that_are_moments_are_compared_as_the_text_that_conditions_have():
    asked = count(by="seen", keys=[date(2026, 1, 31), datetime(2026, 1, 31, 12, 30)])
    assert asked.part.groups == ("2026-01-31", "2026-01-31 12:30:00")
