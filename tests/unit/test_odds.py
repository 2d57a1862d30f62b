"""What a charge means, in words: right numbers, rounded so that they never promise too much."""

import warnings
from fractions import Fraction
from math import exp, inf

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import accord
from accord.budget import MICRO, PUBLIC
from accord.cli import main
from accord.errors import AccordWarning
from accord.odds import charge_in_words, times_as_likely

QUERY = accord.count()


@pytest.mark.parametrize(
    ("level", "charge", "words"),
    [
        (0.1, 0.1, "strict (ε = 0.1, charged 0.1): nobody can be more sure than 52.5 % where 50 % was the guess before"),
        (0.1, 0.01, "strict (ε = 0.1, charged 0.01): nobody can be more sure than 50.3 % where 50 % was the guess before"),
        (1, 1, "strict (ε = 1, charged 1): nobody can be more sure than 73.2 % where 50 % was the guess before"),
        (6, 6, "strict (ε = 6, charged 6): nobody can be more sure than 99.8 % where 50 % was the guess before"),
        (18, 18, "strict (ε = 18, charged 18): hardly protected: an answer can be more than 65,000,000 times as likely with one value as with another"),
        (1, 0, "strict (ε = 1): not used"),
        (inf, 0.5, "strict (ε = inf): no protection: public"),
        (inf, inf, "strict (ε = inf): no protection: public"),
    ],
)  # fmt: skip
def test_words(level, charge, words):
    micro = [PUBLIC if x == inf else round(x * MICRO) for x in (level, charge)]
    assert charge_in_words(*micro, "strict") == words
    assert charge_in_words(*micro, None) == words.replace("strict (", "").replace("):", ":")


@given(st.integers(1, 6 * MICRO))
def test_nobody_is_more_sure_than_it_says(charge):
    """By Bayes' rule, for the worst of all releases: the right value is e^c times as likely to say it."""
    told = charge_in_words(charge, charge, None).split("than ")[1].split(" %")[0]
    surest = exp(charge / MICRO) / (1 + exp(charge / MICRO))
    assert 0 <= Fraction(told) / 100 - Fraction(surest) <= Fraction(1, 1000)


@given(st.floats(5, 10**6))
def test_it_is_more_times_than_it_says_but_not_many(loss):
    told = times_as_likely(loss).split("than ")[1].split(" times")[0]
    if loss < 34:
        assert 0.9 * exp(loss) <= float(told.replace(",", "")) <= exp(loss) * (1 + 1e-12)
    else:
        assert told.startswith("10^")


def test_a_plan_explains_its_charges():
    tiers = {"strict": 0.1, "standard": 1, "public": inf}
    spec = accord.Spec.from_groups({"strict": 400, "standard": 400, "public": 5}, tiers)
    text = str(accord.plan(spec, QUERY, "threshold", t=1.0))
    assert "strict (ε = 0.1): not used" in text
    assert "standard (ε = 1, charged 1): nobody can be more sure than 73.2 %" in text
    assert "public (ε = inf): no protection: public" in text
    halved = str(accord.plan(spec, QUERY, "minimum", share=0.5))
    assert "strict (ε = 0.1, charged 0.05): nobody can be more sure than 51.3 %" in halved


def test_of_a_workload_all_charges_together():
    spec = accord.Spec.from_groups({1.0: 400})
    text = str(accord.plan(spec, accord.workload([QUERY, accord.count(where="x > 1")])))
    assert "ε = 1, charged 1: nobody can be more sure than 73.2 %" in text


def test_many_levels_are_folded():
    spec = accord.Spec.of([k / 10 for k in range(1, 21)])
    lines = [line for line in str(accord.plan(spec, QUERY, "minimum")).splitlines() if "charged 0.1:" in line]
    assert len(lines) == 8
    assert "… 12 more levels" in str(accord.plan(spec, QUERY, "minimum"))


# ---- levels that look like a mistake ---------------------------------------------------------------------------------

TIMES = "an answer can be more than {} times as likely with one value as with another, which protects hardly anything."
MISTAKEN = {
    f"every level is above 10: at ε = 18 {TIMES.format('65,000,000')} Is column 'e' the column of levels?": [18, 18, 60],
    f"every level is above 10: at ε = 1950 {TIMES.format('10^846')} Is column 'e' the column of levels?": [2001, 1950],
    f"90 different levels are whole numbers above 10: at ε = 100 {TIMES.format('10^43')} Is column 'e' the column of levels?": range(101),
    f"every level is above 10: at ε = 10.5 {TIMES.format('36,000')} Is column 'e' the column of levels?": [10.5, inf, 0],
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKEN)
def test_levels_that_look_like_a_mistake(text):
    people = accord.table({"e": list(MISTAKEN[text])}, epsilon="e")
    with pytest.warns(AccordWarning) as warned:
        people.plan(QUERY)
    assert [str(w.message) for w in warned] == [text]
    people.release(QUERY)  # it has been said


@pytest.mark.parametrize(
    "levels", [[0.1, 18], [10], [inf, 0], [0.1, 11, 12, 900], [0.01 * k for k in range(2000)]]
)
def test_levels_that_may_be_meant(levels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accord.table({"e": levels}, epsilon="e").spec()


def test_a_warning_points_at_the_line_that_called_accord():
    """However deep in accord it is given: of levels, of a second release, of a fit."""
    people = accord.table({"e": [18.0, 30.0], "x": [0.0, 1.0]}, epsilon="e")
    with pytest.warns(AccordWarning) as of_levels:
        people.plan(accord.mean("x", bounds=(0, 1)))
    with pytest.warns(AccordWarning, match="second release") as of_releases:
        for _ in range(2):
            people.release(accord.mean("x", bounds=(0, 1)))
    assert {w.filename for w in [*of_levels, *of_releases]} == {__file__}


def test_no_column_is_named_where_there_is_none():
    with pytest.warns(AccordWarning, match=r"hardly anything\.$"):
        accord.table({"x": [1]}, epsilon=18).spec()


def test_a_hint_on_the_command_line(tmp_path):
    (tmp_path / "people.csv").write_text("age\n18\n30\n")
    command = ["plan", str(tmp_path / "people.csv"), "count", "--epsilon", "age", "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0
    assert done.stdout.startswith("{")
    assert done.stderr == f"warning: {next(iter(MISTAKEN)).replace(chr(39) + 'e', chr(39) + 'age')}\n"
