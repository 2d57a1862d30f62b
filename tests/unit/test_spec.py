"""Spec: levels become whole millionths, rounded down by their decimal value, and equal levels merge."""

from decimal import Decimal
from fractions import Fraction
from math import floor, inf, nan, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord import Spec
from accord.budget import LARGEST, MICRO, PUBLIC, level_text, to_float, to_micro
from accord.errors import SpecError
from accord.spec import read_tiers

TIERS = {"public": inf, "standard": 1.0, "strict": 0.1, "out": 0}
RULE = "A level is a number ≥ 0 (0: opted out), or inf (public). Correct them, or leave these people out."


def refusal(make, *args, **options):
    with pytest.raises(SpecError) as error:
        make(*args, **options)
    return str(error.value)


# ---- rounding --------------------------------------------------------------------------------------------------------


@given(st.integers(0, LARGEST))
def test_a_whole_number_of_millionths_is_kept(k):
    assert to_micro(k / MICRO) == k


@given(st.floats(0, LARGEST / MICRO))
def test_a_level_is_rounded_down_by_its_decimal_value(x):
    """What is printed counts: 0.29 is 290000 millionths, although the double lies below it."""
    assert to_micro(x) == floor(Fraction(repr(x)) * MICRO)


@given(st.integers(1, LARGEST))
def test_the_next_smaller_double_loses_a_millionth(k):
    assert to_micro(nextafter(k / MICRO, 0)) == k - 1


def test_rounding_is_the_same_for_an_array():
    k = np.arange(0, LARGEST, LARGEST // 200_000) + np.arange(200_000)
    assert (to_micro(k / MICRO) == k).all()


@pytest.mark.parametrize(
    ("level", "micro"),
    [
        (0, 0),
        (0.0, 0),
        (1e-12, 0),
        (9.99e-7, 0),
        (1e-6, 1),
        (5e-324, 0),
        (0.29, 290_000),
        (1e6, LARGEST),
        (inf, PUBLIC),
    ],
)
def test_corner_levels(level, micro):
    assert to_micro(level) == micro


@pytest.mark.parametrize("level", [np.float32(0.5), np.int64(3), Decimal("0.25"), Fraction(1, 4), 2])
def test_any_kind_of_number_is_a_level(level):
    assert to_micro([level]).tolist() == [floor(float(level) * MICRO)]


def test_public_is_above_every_finite_level():
    assert LARGEST < PUBLIC
    assert to_float(PUBLIC) == inf


@given(st.integers(1, LARGEST))
def test_a_level_is_printed_as_the_decimal_that_it_is(k):
    assert Fraction(level_text(k)) == Fraction(k, MICRO)
    assert "e" not in level_text(k)


# ---- what is no level ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ([0.1, nan, nan], f"2 of 3 levels are NaN. {RULE}"),
        ([0.1, None], f"1 of 2 levels are NaN. {RULE}"),
        ([-0.1], f"1 of 1 levels are negative. {RULE}"),
        ([-inf, 1], f"1 of 2 levels are negative. {RULE}"),
        (
            [1e9, 1e300, 1],
            "2 of 3 levels are larger than 1000000, which protects nobody (write inf for public data). "
            + RULE,
        ),
        ([nextafter(1e6, inf)], "1 of 1 levels are larger than 1000000"),
        (["strict"], "a level is not a number. Levels are numbers ≥ 0, or inf for public data."),
        ([[1], [1, 2]], "a level is not a number."),
        ([1j], "a level is not a number."),
    ],
)
def test_what_is_no_level_is_refused_with_the_number_of_people(levels, says):
    assert refusal(Spec.of, levels).startswith(says)


def test_an_integer_beyond_every_double_is_refused_like_any_large_level():
    assert refusal(Spec.of, [10**400])


def test_a_finite_level_beyond_every_double_is_not_public():
    """It would be read without noise. Only whoever writes inf is."""
    for level in (Decimal("1e400"), Fraction(10) ** 400, "1e400", b"1e400", np.longdouble("1e400")):
        for levels in ([level], np.array([level]), np.array([level], dtype=object)):
            assert refusal(Spec.of, levels)
        assert refusal(Spec.from_groups, {level: 3})
        assert refusal(read_tiers, {"a": level})
    assert Spec.of([Decimal("inf"), "inf", np.longdouble("inf")]) == Spec.of([inf] * 3)


def test_a_level_that_is_written_is_rounded_down_by_what_is_written():
    """The nearest double lies above 0.29999999999999999999, and its decimal value is 0.3."""
    just_below = "0.29999999999999999999"
    for level in (Decimal(just_below), Fraction(just_below), just_below):
        assert Spec.of([level]).micro.tolist() == [299_999]
    assert Spec.of(np.array([just_below])).micro.tolist() == [299_999]


def test_a_refusal_is_a_value_error():
    with pytest.raises(ValueError, match="negative"):
        Spec.of([-1])


# ---- merging ---------------------------------------------------------------------------------------------------------


def test_equal_levels_merge():
    """Also levels that become equal by rounding; the opted-out are counted apart."""
    spec = Spec.from_groups({0.1: 5, 0.1000000001: 2, inf: 1, 0: 3, 1e-9: 4, 7: 0})
    assert spec.levels == (0.1, inf)
    assert spec.counts == (7, 1)
    assert spec.total == 8
    assert spec.opted_out == 7


def test_levels_ascend_with_public_last():
    spec = Spec.of([inf, 2, 0.5, 2, 0])
    assert spec.levels == (0.5, 2.0, inf)
    assert spec.counts == (1, 2, 1)
    assert all(type(x) is float for x in spec.levels)
    assert all(type(n) is int for n in spec.counts)


@given(st.lists(st.sampled_from([0, 1e-9, 0.1, 0.1000004, 0.29, 1, 1e6, inf])))
def test_one_entry_a_person_equals_groups(levels):
    groups = {level: levels.count(level) for level in levels}
    assert Spec.of(levels) == Spec.from_groups(groups)
    assert Spec.of(levels).total + Spec.of(levels).opted_out == len(levels)


@given(st.permutations([0.1, 0.1, 0.5, inf, 0, 3]))
def test_the_order_of_people_does_not_matter(levels):
    assert Spec.of(levels).fingerprint == Spec.of(sorted(levels)).fingerprint
    assert hash(Spec.of(levels)) == hash(Spec.of(sorted(levels)))


@pytest.mark.parametrize(
    "other",
    [
        {0.1: 5, 1: 4},
        {0.1: 4, 1: 5},
        {0.100001: 5, 1: 5},
        {0.1: 5, 1: 5, 0: 1},
        {0.1: 5, inf: 5},
        {0.1: 5},
        {},
    ],
)
def test_the_fingerprint_tells_specs_apart(other):
    assert Spec.from_groups(other).fingerprint != Spec.from_groups({0.1: 5, 1: 5}).fingerprint


def test_a_spec_equals_nothing_but_specs():
    assert Spec.of([1]) != (1.0,)


def test_nobody():
    for spec in (Spec.of([]), Spec.of([], tiers=TIERS), Spec.from_groups({}), Spec.of([0, 0])):
        assert (spec.levels, spec.counts, spec.total) == ((), (), 0)
    assert Spec.of([0, 0]).opted_out == 2


def test_arrays_and_iterators_are_people_too():
    assert Spec.of(np.array([0.1, 1])) == Spec.of(x for x in (1, 0.1))


def test_the_numbers_cannot_be_changed():
    spec = Spec.of([0.1, 1])
    with pytest.raises(ValueError, match="read-only"):
        spec.people[0] = 1_000
    with pytest.raises(ValueError, match="read-only"):
        spec.micro[0] = 1


# ---- tiers -----------------------------------------------------------------------------------------------------------


def test_tiers_name_levels():
    by_group = Spec.from_groups({"strict": 3, "public": 2, "out": 1}, tiers=TIERS)
    by_person = Spec.of(["out", "strict", "public", "strict", "public", "strict"], tiers=TIERS)
    assert by_group == by_person == Spec.from_groups({0.1: 3, inf: 2, 0: 1})
    assert by_group.tier(100_000) == "strict"
    assert by_group.tier(123) is None


def test_two_tiers_may_share_a_level():
    spec = Spec.from_groups({"a": 3, "b": 4}, tiers={"a": 0.5, "b": 0.5})
    assert spec.counts == (7,)
    assert spec.tier(500_000) == "a / b"


def test_names_of_tiers_are_not_in_the_fingerprint():
    assert Spec.from_groups({"strict": 3}, tiers=TIERS) == Spec.from_groups({0.1: 3})


@pytest.mark.parametrize("key", [1, 2.5, "1"])
def test_numbers_may_name_tiers(key):
    assert Spec.of([key, key], tiers={key: 0.5}) == Spec.of([0.5, 0.5])


def test_true_and_false_may_name_tiers():
    tiers = {True: 1.0, False: 0.1}
    assert Spec.from_groups({True: 3, False: 2}, tiers=tiers) == Spec.from_groups({1.0: 3, 0.1: 2})
    assert Spec.of([True, False], tiers=tiers) == Spec.of([1.0, 0.1])


@pytest.mark.parametrize(
    "make", [lambda name: Spec.of([name], TIERS), lambda name: Spec.from_groups({name: 1}, TIERS)]
)
def test_an_unknown_tier_gets_a_hint(make):
    tiers = "Known: 'public', 'standard', 'strict', 'out'."
    assert refusal(make, "Strickt") == f"tier 'Strickt' is not declared: did you mean 'strict'? {tiers}"
    assert refusal(make, "zzz") == f"tier 'zzz' is not declared: {tiers}"


def test_a_name_that_only_begins_like_a_tier_is_none():
    """NumPy's texts end before a zero letter."""
    for make in (lambda name: Spec.of([name], TIERS), lambda name: Spec.from_groups({name: 1}, TIERS)):
        assert refusal(make, "public\0").startswith(
            "tier 'public\\x00' is not declared: did you mean 'public'?"
        )


def test_a_long_list_of_tiers_is_cut_in_the_hint():
    assert refusal(Spec.of, ["?"], {f"t{k}": 1 for k in range(30)}).endswith("'t19', ….")


def test_two_keys_that_print_alike_are_one_tier_declared_twice():
    assert refusal(read_tiers, {1: 0.5, "1": 0.1}) == "tier '1' is declared twice. Give each tier one level."


def test_tiers_must_not_be_empty():
    assert refusal(read_tiers, {}) == (
        "tiers= is empty. Give each tier a level, such as {'strict': 0.1, 'public': inf}."
    )


@pytest.mark.parametrize("level", [-1, nan, 1e7, "much", None])
def test_a_tier_needs_a_level(level):
    assert refusal(read_tiers, {"a": 1, "b": level}) == (
        f"tier 'b' has the level {level!r}. A level is 0 (opted out), a number from a millionth to 1000000, or inf (public)."
    )


# ---- numbers of people -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [-1, 1.5, True, "3", None])
def test_a_number_of_people_is_a_whole_number(count):
    assert refusal(Spec.from_groups, {0.1: count}) == (
        f"a group has {count!r} people. The number of people is a whole number ≥ 0."
    )


@pytest.mark.parametrize("groups", [{0.1: 2**70}, {0.1: 2**62, 1: 2**62, 2: 2**62}])
def test_more_people_than_can_be_counted_are_refused(groups):
    assert refusal(Spec.from_groups, groups)


def test_numpy_integers_are_whole_numbers():
    assert Spec.from_groups({0.1: np.int32(3)}).total == 3


# ---- size ------------------------------------------------------------------------------------------------------------


def test_a_million_distinct_levels():
    spec = Spec.of(np.arange(1, 1_000_001) / MICRO)
    shown = repr(spec)
    fingerprint = spec.fingerprint
    assert len(spec.levels) == spec.total == 1_000_000
    assert spec.levels[:2] == (1e-6, 2e-6)
    assert len(shown) < 300
    assert "999992 more levels" in shown
    assert len(fingerprint) == 32


def test_repr_says_who_is_there():
    assert (
        repr(Spec.from_groups({0.1: 5, inf: 1, 0: 3})) == "<Spec of 6 people. {0.1: 5, inf: 1}, opted out: 3>"
    )
