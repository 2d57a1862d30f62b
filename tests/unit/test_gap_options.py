"""A declared gap on the command line, in accord.toml, in files of questions and in SQL; and what is told of it."""

import json
from fractions import Fraction

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import QueryError, SourceError
from accord.lab import populations, simulate
from accord.lab.whatif.outlook import outlook

LEVELS = ["--levels", "strict=0.05:5000,standard=1:4000,out=0:300"]
MEAN = ["mean", "income", "--bounds", "0", "200000"]
SPEC = accord.Spec.from_groups({0.05: 5000, 1: 4000, 0: 300})
PEOPLE = "id,stay,ward,tier\n" + "".join(
    f"{k},{k % 50},{'ab'[k % 2]},{['strict', 'standard', 'public'][k % 3]}\n" for k in range(60)
)
TOML = """\
schema = 1
[tables.people]
source = "people.csv"
user = "id"
epsilon = "tier"
tiers = { strict = 5, standard = 10, public = inf }
[tables.people.columns.stay]
kind = "number"
bounds = [0, 60]
missing = "none"
gap = 3
"""
QUESTIONS = """\
schema = 1
table = "people"
[[questions]]
statistic = "median"
column = "stay"
gap = 5
about = "everyone"
[[questions]]
statistic = "mean"
column = "stay"
"""


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output + result.stderr
    return result


def planned(*words):
    return json.loads(run("plan", *words, "--json").stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_CATALOG", raising=False)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "accord.toml").write_text(TOML)
    (tmp_path / "questions.toml").write_text(QUESTIONS)
    return tmp_path


# ---- the command line ----------------------------------------------------------------------------------------


def test_gap_and_about_are_options():
    document = planned(*LEVELS, *MEAN, "--missing", "none", "--gap", 3000, "--about", "everyone")
    query = accord.mean("income", (0, 200_000), missing="none", gap=3000, about="everyone")
    assert document["query"] == query.describe()
    assert document["query"]["gap"] == "3000" and document["query"]["about"] == "everyone"
    assert document["break_even_gap"] == pytest.approx(accord.plan(SPEC, query).break_even_gap)
    assert "robust" in [candidate["mechanism"] for candidate in document["candidates"]]


@pytest.mark.parametrize(
    ("words", "gap"),
    [
        (["median", "income", "--bounds", "0", "200000"], "5"),
        (["count", "--where", "income > 3"], "0.5"),
        (["crosstab", "ward", "sex", "--keys", "ward=a,b", "--keys", "sex=f,m"], "0.5"),
        (["top", "ward", "--k", "1", "--keys", "a,b"], "0.5"),
        (["histogram", "income", "--edges", "0,1,2"], "0.5"),
        (["proportion", "income > 3"], "0.5"),
    ],
)
def test_every_statistic_takes_a_gap(words, gap):
    assert planned(*LEVELS, *words, "--gap", gap)["query"]["gap"] == gap


def test_a_gap_that_is_none_is_refused():
    refusal = run("plan", *LEVELS, *MEAN, "--gap", 300_000, code=1).stderr
    assert "--gap 300000 is not possible: means of two levels differ by 0 to 200000 here." in refusal
    refusal = run("plan", *LEVELS, *MEAN, "--about", "everyone", code=1).stderr
    assert "those who opted out are never read" in refusal
    refusal = run(
        "plan", *LEVELS, "correlation", "x", "y", *["--bounds", 0, 1] * 2, "--gap", 1, code=1
    ).stderr
    assert "is not for a correlation" in refusal


# ---- accord.toml, and files of questions ---------------------------------------------------------------------


def test_a_columns_gap_is_that_of_means_of_all_people(folder):
    people = accord.catalog(folder / "accord.toml")["people"]
    assert people.plan(accord.mean("stay")).query.gap == 3
    assert people.plan(accord.mean("stay", gap=1)).query.gap == 1
    for query in (
        accord.mean("stay", where="ward = 'a'"),
        accord.sum("stay", (0, 60)),
        accord.median("stay"),
        accord.mean("stay", (0, 60)),
    ):
        assert people.plan(query).query.gap is None


def test_a_gap_that_cannot_be_is_refused_with_its_line(folder):
    (folder / "accord.toml").write_text(TOML.replace("gap = 3", "gap = 61"))
    with pytest.raises(SourceError, match=r"line 11: gap=61 is not possible: means of two levels differ by"):
        accord.catalog(folder / "accord.toml")
    without = TOML.replace("bounds = [0, 60]\n", "").replace('missing = "none"\n', "")
    (folder / "accord.toml").write_text(without)
    with pytest.raises(SourceError, match="gap is about values between bounds"):
        accord.catalog(folder / "accord.toml")


def test_questions_in_a_file(folder):
    document = json.loads(run("run", "questions.toml", "--plan").stdout)
    first, second = (each["query"] for each in document["plans"])
    assert first["gap"] == "5" and first["about"] == "everyone" and second["gap"] == "3"


# ---- SQL -----------------------------------------------------------------------------------------------------


def test_a_gap_of_a_column_of_avg(folder):
    people = accord.table("people.csv", epsilon="tier", tiers={"strict": 5, "standard": 10, "public": 20})
    bounds = {"stay": (0, 60)}
    text = "SELECT AVG(stay) AS a, MEDIAN(stay) AS b FROM people"
    a, b = people.select(text, bounds, gap={"stay": 3}).queries
    assert a.gap == 3 and b.gap is None
    assert people.sql(text, bounds, gap={"stay": 3})["a"].plan.query.gap == 3
    with pytest.raises(QueryError, match=r"^gap= has 'stays', which is no column of the table"):
        people.sql(text, bounds, gap={"stays": 3})
    with pytest.raises(QueryError, match=r"^gap= of a SELECT are given by column"):
        people.sql(text, bounds, gap=3)


def test_a_gap_on_the_command_line_of_sql(folder):
    words = ["sql", "SELECT AVG(stay) FROM people", "--plan", "--json", "--one-row-each", "--gap"]
    assert json.loads(run(*words, "stay=1.5").stdout)["query"]["gap"] == "1.5"
    assert "--gap has '1.5', which is not COLUMN=D" in run(*words, "1.5", code=2).stderr


# ---- what is told --------------------------------------------------------------------------------------------


def test_what_a_release_says_of_the_bias_in_its_interval(folder):
    people = accord.catalog(folder / "accord.toml")["people"]
    told = str(people.release(accord.mean("stay"), "affine"))
    assert "the interval has the bias in it that the declared gap allows" in told
    assert "Right if the means of any two levels differ by at most 3 (5 % of the bounds), as declared" in told
    told = str(people.release(accord.median("stay"), "rank"))
    assert "the interval leaves out the bias that arises if levels go with values (gap= puts it in)" in told
    workload = accord.workload([accord.mean("stay"), accord.median("stay")])
    told = str(people.plan(workload))
    assert "mean of stay: right" in told and "median of stay: right" in told


def test_public_groups_begin_with_the_group_that_a_gap_harms_most(folder):
    people = accord.catalog(folder / "accord.toml")["people"]
    query = accord.mean("stay", (0, 60), by="ward", keys=["a", "b"], membership="public", missing="none")
    plan = people.plan(query, mechanism="affine")
    least = min(part.break_even_gap for part in plan.parts)
    if least < float("inf"):
        assert "(in the group of which that is the least)" in str(plan)
    assert str(people.release(plan)).count("Right") == 1


def test_derived_numbers_hold_the_bias(folder):
    people = accord.catalog(folder / "accord.toml")["people"]
    one, other = (
        people.release(accord.sum("stay", (0, 60), missing="none", **of), "affine") for of in ({"gap": 3}, {})
    )
    bias = one.plan.prediction.error_model.spread.bias
    assert bias > 0
    wide, narrow = ((lambda ends: ends[1] - ends[0])((x + 0).interval(0.95)) for x in (one, other))
    assert wide > narrow + bias
    told = "the bias that levels bring which go with values, as far as declared, is in the interval"
    assert told in str(one + 0) and told not in str(one - other)
    assert (one + 0).rmse_here == pytest.approx(one.rmse_here, rel=1e-6)


# ---- the lab -------------------------------------------------------------------------------------------------


def test_whatif_has_the_error_of_every_mechanism_by_the_gap():
    ahead = outlook(SPEC, accord.mean("x", (0, 1), missing="none"))
    curves = ahead.gaps
    assert curves.gaps[0] == 0 and curves.gaps[-1] == 1 and set(curves.best) <= {"robust", "affine"}
    assert all(errors == tuple(sorted(errors)) for errors in curves.rmse.values())
    for k, gap in enumerate(curves.gaps):
        query = accord.mean("x", (0, 1), missing="none", gap=Fraction(repr(gap)))
        assert curves.rmse["robust"][k] == accord.plan(SPEC, query, "robust").rmse
    document = ahead.describe()["gaps"]
    assert document[-1]["gap"] == 1 and set(document[-1]["rmse"]) == set(curves.rmse)
    bounds = {"x": (0, 1), "y": (0, 1)}
    assert outlook(SPEC, accord.correlation("x", "y", bounds=bounds)).gaps is None


@pytest.mark.parametrize("ask", [accord.mean, accord.sum])
def test_simulations_are_about_everyone(ask):
    """Those who opted out are the richest: the bias is less than the gap allows, and there is one."""
    query = ask("x", (0, 1), missing="none", gap=1, about="everyone")
    run = simulate("robust", query, SPEC, populations.uniform(), 60, 1, correlation=-0.9)
    scale = 1 if ask is accord.mean else 9300
    assert run.rmse_here < run.predicted_here
    assert -run.bias > 0.01 * scale
