"""Questions in SQL: each is the question that Python asks, or is refused with the reason; nothing else reaches an engine."""

import json
from io import StringIO
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import accord
from accord import cli
from accord.errors import AccordError, QueryError
from accord.report.selected import answers_view
from accord.report.tables import near
from accord.statistics import where
from accord.statistics.declared import Undescribed
from accord.statistics.select import read_select, source_of
from accord.statistics.select_questions import Given

COLUMNS = ("stay", "age", "ward", "sex", "Odd name", "moved", "day")
BOUNDS = {"stay": (0, 60), "age": (0, 120)}
KEYS = {"ward": ["A", "B"]}


def asked(text, **given):
    return read_select(text, Given(COLUMNS, BOUNDS, KEYS, **given)).queries


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    n = 600
    return {
        "stay": rng.integers(0, 60, n).astype(float),
        "age": rng.integers(0, 100, n).astype(float),
        "ward": rng.choice(["A", "B", "C"], n),
        "who": rng.integers(0, 250, n),
        "epsilon": np.full(n, 1.0),
    }


SAME = {
    "AVG(stay)": accord.mean("stay", (0, 60)),
    "avg(STAY)": accord.mean("stay", (0, 60)),
    "AVG(p.stay)": accord.mean("stay", (0, 60)),
    "SUM(stay)": accord.sum("stay", (0, 60)),
    "MIN(stay)": accord.min("stay", (0, 60)),
    "MAX(stay)": accord.max("stay", (0, 60)),
    "MEDIAN(stay)": accord.median("stay", (0, 60)),
    "QUANTILE_CONT(stay, 0.9)": accord.quantile("stay", 0.9, (0, 60)),
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY stay)": accord.quantile("stay", 0.9, (0, 60)),
    "VAR_POP(stay)": accord.variance("stay", (0, 60)),
    "STDDEV_POP(stay)": accord.std("stay", (0, 60)),
    "CORR(stay, age)": accord.correlation("stay", "age", bounds=BOUNDS),
    "COVAR_POP(stay, age)": accord.covariance("stay", "age", bounds=BOUNDS),
    "AVG(CASE WHEN age >= 65 THEN 1 ELSE 0 END)": accord.proportion("age >= 65", missing="none"),
    "SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END)": accord.count(where="age >= 65"),
    "SUM(CASE WHEN age >= 65 THEN 1 END)": accord.count(where="age >= 65"),
    "SUM(CASE WHEN age >= 65 THEN 1 END) FILTER (WHERE moved)": accord.count(where="(moved) AND (age >= 65)"),
    "COUNT(*)": accord.count(),
    "COUNT(stay)": accord.count(where="stay IS NOT NULL"),
    "COUNT_IF(age >= 65)": accord.count(where="age >= 65"),
    "COUNT(*) FILTER (WHERE age >= 65)": accord.count(where="age >= 65"),
    "AVG(stay) FILTER (WHERE age >= 65)": accord.mean("stay", (0, 60), where="age >= 65"),
}


@pytest.mark.parametrize("aggregate", SAME)
def test_an_aggregate_is_the_question_that_python_asks(aggregate):
    assert asked(f"SELECT {aggregate} FROM people AS p") == (SAME[aggregate],)


CONDITIONS = {
    "age >= 65": "age >= 65",
    "65 <= age": "age >= 65",
    "age > -1.5": "age > -1.5",
    "age BETWEEN 18 AND 65": "(age >= 18 AND age <= 65)",
    "ward IN ('A', 'it''s')": "ward IN ('A', 'it''s')",
    "ward NOT IN ('A')": "NOT (ward IN ('A'))",
    "stay IS NOT NULL": "NOT (stay IS NULL)",
    "NOT (age < 3 OR ward = 'A') AND moved": "NOT ((age < 3 OR ward = 'A')) AND moved",
    "age < 3 OR ward = 'A' AND moved = TRUE": "age < 3 OR ward = 'A' AND moved = TRUE",
    "(age < 3 OR ward = 'A') AND moved <> FALSE": "(age < 3 OR ward = 'A') AND moved <> FALSE",
    "day >= DATE '2026-01-31'": "day >= '2026-01-31'",
    "day < TIMESTAMP '2026-01-31 10:00:00'": "day < '2026-01-31 10:00:00'",
    """"Odd name" = 1""": '"Odd name" = 1',
    "AGE >= 65 -- a comment": "age >= 65",
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_written_again_in_the_grammar_of_where(condition):
    (question,) = asked(f"SELECT COUNT(*) FROM people WHERE {condition}")
    written = where.parse(CONDITIONS[condition])
    assert question.encoding.condition == written
    assert where.parse(question.describe()["where"]) == written


def test_several_columns_of_groups():
    keys = {"ward": ["A", "B"], "sex": ["f", "m"]}
    given = Given(COLUMNS, BOUNDS, keys)
    (question,) = read_select("SELECT ward, sex, COUNT(*) FROM p GROUP BY ward, sex", given).queries
    assert question == accord.crosstab("ward", "sex", keys=keys)


def test_conditions_meet_and_groups_are_declared():
    by = {"by": "ward", "keys": ["A", "B"]}
    text = "SELECT ward, AVG(stay), COUNT(*) FILTER (WHERE sex = 'f' OR sex = 'd') FROM people WHERE age >= 65 GROUP BY {}"
    expected = (
        accord.mean("stay", (0, 60), where="age >= 65", **by),
        accord.count(where="(age >= 65) AND (sex = 'f' OR sex = 'd')", **by),
    )
    assert asked(text.format("ward")) == asked(text.format("1")) == expected
    public = {"membership": "public", **by}
    share = "SELECT ward, AVG(CASE WHEN age > 3 THEN 1.0 ELSE 0.0 END) FROM p GROUP BY ward"
    assert asked(share, membership="public") == (accord.proportion("age > 3", "none", **public),)
    assert asked("SELECT COUNT(*) FROM p GROUP BY ward", membership="public") == (accord.count(**public),)


SEVERAL_ROWS = {
    "COUNT(*)": accord.rows(9),
    "COUNT(stay)": accord.rows(9, where="stay IS NOT NULL"),
    "COUNT_IF(age > 3)": accord.rows(9, where="age > 3"),
    "SUM(CASE WHEN age > 3 THEN 1 ELSE 0 END)": accord.rows(9, where="age > 3"),
    "COUNT(DISTINCT who)": accord.count(),
    "SUM(stay)": accord.sum("stay", (0, 60)),
    "MIN(stay)": accord.min("stay", (0, 60)),
    "MAX(stay)": accord.max("stay", (0, 60)),
}


@pytest.mark.parametrize("aggregate", SEVERAL_ROWS)
def test_of_people_with_several_rows_it_means_what_sql_means(aggregate):
    of_people = Given((*COLUMNS, "who"), BOUNDS, KEYS, user="who", max_rows=9)
    assert read_select(f"SELECT {aggregate} FROM visits", of_people).queries == (SEVERAL_ROWS[aggregate],)


OF_ROWS = {
    "AVG(stay)": "accord.mean('stay', …), where each counts once, or SUM(stay) and COUNT(*), and divide",
    "MEDIAN(stay)": "accord.median('stay', …)",
    "QUANTILE_CONT(stay, 0.5)": "accord.quantile('stay', …)",
    "VAR_POP(stay)": "accord.variance('stay', …)",
    "STDDEV_POP(stay)": "accord.std('stay', …)",
    "CORR(stay, age)": "accord.correlation('stay', …)",
    "AVG(CASE WHEN age > 1 THEN 1 ELSE 0 END)": "accord.proportion(…), where each counts once",
}


@pytest.mark.parametrize("aggregate", OF_ROWS)
def test_what_is_about_rows_is_refused_and_the_form_per_person_named(aggregate):
    with pytest.raises(QueryError) as refused:
        asked(f"SELECT {aggregate} FROM visits", user="who")
    assert "is about rows, of which one who may have any number" in str(refused.value)
    assert OF_ROWS[aggregate] in str(refused.value)


def test_of_people_with_several_rows_limits_are_declared():
    with pytest.raises(
        QueryError, match=r"COUNT\(\*\) counts rows, of which one who may have any number. Give max_rows="
    ):
        asked("SELECT COUNT(*) FROM visits", user="who")
    grouped = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    with pytest.raises(
        QueryError,
        match=r"rows of one who may be of several groups, and SQL counts them in each. Give at_most=",
    ):
        asked(grouped, user="who", max_rows=9)
    by = {"by": "ward", "keys": ["A", "B"]}
    assert asked(grouped, user="who", max_rows=9, at_most=2) == (accord.rows(9, at_most=2, **by),)


REFUSED = {
    "SELECT stay FROM p": "stay by itself would show people's values. Ask for an aggregate of it, such as AVG(stay)",
    "SELECT ward FROM p GROUP BY ward": "this SELECT asks for no aggregate.",
    "SELECT * FROM p": "* is not read here.",
    "SELECT AVG(stays) FROM p": "the table has no column 'stays': did you mean 'stay'?",
    'SELECT AVG("STAY") FROM p': "the table has no column 'STAY'",
    "SELECT AVG(q.stay) FROM p": "q.stay is of another table.",
    "SELECT AVG(stay + 1) FROM p": "stay + 1 is not a column.",
    "SELECT AVG(stay) + 1 FROM p": "Ask for AVG(stay) AS a, and calculate in Python with answers['a']",
    "SELECT ROUND(AVG(stay), 2) FROM p": "Ask for AVG(stay) AS a, and calculate in Python with answers['a']",
    "SELECT SUM(stay) / COUNT(*) FROM p": "Ask for SUM(stay) AS a, COUNT(*) AS b, and calculate in Python: answers['a'] / answers['b']",
    "SELECT stay + 1 FROM p": "stay + 1 is not read here.",
    "SELECT AVG(DISTINCT stay) FROM p": "DISTINCT stay is not a column.",
    "SELECT SUM(stay) OVER () FROM p": "SUM(stay) OVER () is not read here.",
    "SELECT STDDEV(stay) FROM p": "divides by the number of people less one, and accord by their number. Write STDDEV_POP.",
    "SELECT VAR_SAMP(stay) FROM p": "Write VAR_POP.",
    "SELECT COUNT(DISTINCT ward) FROM p": "COUNT(DISTINCT ward) counts values",
    "SELECT MAX(stay, 3) FROM p": "is not read here.",
    "SELECT AVG(CASE WHEN age > 1 THEN stay ELSE 0 END) FROM p": "is not read here. Write AVG(stay) FILTER (WHERE age > 1)",
    "SELECT SUM(CASE WHEN age > 1 THEN stay ELSE 0 END) FROM p": "Write SUM(stay) FILTER (WHERE age > 1)",
    "SELECT SUM(CASE WHEN age > 1 THEN 2 ELSE 0 END) FROM p": "Write COUNT_IF(age > 1)",
    "SELECT COUNT(CASE WHEN age > 1 THEN 1 END) FROM p": "Write COUNT_IF(age > 1)",
    "SELECT AVG(CASE WHEN age > 1 THEN 1 END) FROM p": "Write AVG(CASE WHEN age > 1 THEN 1 ELSE 0 END)",
    "SELECT AVG(CASE age WHEN 1 THEN 1 ELSE 0 END) FROM p": "is not read here.",
    "SELECT MAX(CASE WHEN age > 1 THEN 1 ELSE 0 END) FROM p": "Write FILTER (WHERE …) after an aggregate",
    "SELECT COUNT(*) FROM p WHERE getenv('HOME') = 'x'": "GETENV('HOME') is a function, and not a column.",
    "SELECT COUNT(*) FROM p WHERE random() < .5": "RANDOM() is a function, and not a column.",
    "SELECT COUNT(*) FROM p WHERE lower(ward) IN ('a')": "LOWER(ward) is a function, and not a column.",
    "SELECT AVG(abs(stay)) FROM p": "ABS(stay) is a function, and not a column.",
    "SELECT COUNT(*) FROM people.parquet AS p": "If it is a file, put it in quotes: FROM 'people.parquet'.",
    "SELECT COUNT(*) FROM data.people.csv": "If it is a file, put it in quotes: FROM 'data.people.csv'.",
    "SELECT COUNT(*) FROM data/people.csv": "A file after FROM stands in quotes: FROM 'people.parquet'.",
    "SELECT MAX(ward) FROM p": "MAX(ward) needs bounds={'ward': (low, high)}, from public knowledge",
    "SELECT CORR(stay, moved) FROM p": "CORR(stay, moved) needs bounds={'moved': (low, high)}",
    "SELECT sex, COUNT(*) FROM p GROUP BY sex": "GROUP BY sex needs its groups, declared: keys={'sex': […]}.",
    'SELECT AVG(stay) AS a, COUNT(*) AS "a low" FROM p': "'a low' is what the answers call something about 'a'",
    "SELECT COVAR_SAMP(stay, age) FROM p": "Write COVAR_POP.",
    "SELECT QUANTILE_CONT(stay, age) FROM p": "is not read here.",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY stay DESC) FROM p": "is not read here.",
    "SELECT PERCENTILE_CONT(0.5, age) WITHIN GROUP (ORDER BY stay) FROM p": "is not read here.",
    "SELECT AVG(stay), AVG(stay) FROM p": "two columns of the SELECT have one name, ",
    "SELECT ward, AVG(stay) AS ward FROM p GROUP BY ward": "two columns of the SELECT have one name, ",
    "SELECT COUNT() FROM p": "COUNT() is not read here.",
    "SELECT AVG(age) FROM people AS p(age, stay)": "is not read here.",
    "SELECT COUNT(*) FROM p GROUP BY '1'": "'1' is not a column.",
    "SELECT COUNT(*) FROM p GROUP BY " + "9" * 5000: "is not a column.",
    "SELECT COUNT(*) FROM p WHERE day >= DATE '2026-01-31 12:00:00'": "is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE age > 3" + "::INT" * 1500: "nested too deeply",
    "SELECT COUNT(*)": "this SELECT has no FROM.",
    "SELECT COUNT(*) FROM p, q": "a SELECT is asked here without a join.",
    "SELECT COUNT(*) FROM p JOIN q USING (age)": "a SELECT is asked here without a join.",
    "SELECT COUNT(*) FROM (SELECT 1) AS q": "what stands after FROM is no table.",
    "SELECT COUNT(*) FROM read_csv('x')": "what stands after FROM is no table.",
    "SELECT COUNT(*) FROM a.p": "a.p is not read here.",
    "SELECT COUNT(*) FROM p TABLESAMPLE 10%": "is not read here.",
    "SELECT COUNT(*) FROM p GROUP BY ALL": "is not read here.",
    "SELECT COUNT(*) FROM p GROUP BY ROLLUP (ward)": "ROLLUP (ward) is not a column.",
    "SELECT COUNT(*) FROM p GROUP BY ward, ward": "GROUP BY names a column twice.",
    "SELECT COUNT(*) FROM p GROUP BY 7": "7 is not a column.",
    "SELECT COUNT(*) FROM p HAVING COUNT(*) > 3": "without HAVING.",
    "SELECT COUNT(*) FROM p ORDER BY 1": "without ORDER BY. Groups come in the order of keys=",
    "SELECT COUNT(*) FROM p LIMIT 1": "without LIMIT.",
    "SELECT COUNT(*) FROM p OFFSET 1": "without OFFSET.",
    "SELECT DISTINCT COUNT(*) FROM p": "without SELECT DISTINCT.",
    "SELECT COUNT(*) INTO q FROM p": "without INTO. Leave it out.",
    "SELECT COUNT(*) FROM p WHERE age > (SELECT 1)": "(SELECT 1) is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE age IN (SELECT 1)": "is not read here.",
    "SELECT COUNT(*) FROM p WHERE age BETWEEN SYMMETRIC 65 AND 18": "is not read here.",
    "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1)": "is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE age = stay": "stay is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE -age > 3": "-age is not a column.",
    "SELECT COUNT(*) FROM p WHERE ward LIKE 'A%'": "ward LIKE 'A%' is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE age > 5::INT": "CAST(5 AS INT) is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE stay > AVG(stay)": "AVG(stay) is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE age = ?": "? is no condition that can be read.",
    "SELECT COUNT(*) FROM p WHERE age IS TRUE": "is no condition that can be read.",
    "SELECT COUNT(*) FROM p; SELECT 2": "this is not one SELECT that can be read.",
    "SELECT COUNT(*) FROM p UNION SELECT 2": "this is not one SELECT that can be read.",
    "SELECT COUNT(*": "this is not one SELECT that can be read.",
    "DROP TABLE p": "this is no SELECT.",
    "WITH p AS (SELECT 1) SELECT COUNT(*) FROM p": "this is no SELECT.",
    "FROM p": "this is no SELECT.",
    "COPY p TO 'x'": "this is no SELECT.",
    "": "this is no SELECT.",
    "SELECT COUNT(*) FROM p WHERE " + " AND ".join(["age > 1"] * 1200): "at most 10,000 are read.",
    "SELECT COUNT(*) FROM p WHERE " + "(" * 21 + "age > 1" + ")" * 21: "is nested more than 20 deep.",
    "SELECT COUNT(*) FROM p WHERE " + "(" * 4000 + "age > 1" + ")" * 4000: "nested more than 20 deep.",
    "SELECT COUNT(*) FROM p WHERE " + "NOT " * 2000 + "age > 1": "this is not one SELECT that can be read.",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:60])
def test_everything_else_is_refused_with_the_reason(text):
    with pytest.raises(QueryError) as refused:
        asked(text)
    assert REFUSED[text] in str(refused.value)


def test_what_is_no_text_is_refused():
    with pytest.raises(QueryError, match="this is no SELECT"):
        asked(None)


def test_many_conditions_in_a_row_are_read():
    chain = " AND ".join(["age>1"] * 800)
    (question,) = asked(f"SELECT COUNT(*) FROM p WHERE {chain}")
    assert len(question.encoding.condition.parts) == 800


def test_conditions_may_be_nested_twenty_deep():
    nested = "(" * 20 + "age > 1" + ")" * 20
    assert asked(f"SELECT COUNT(*) FROM p WHERE {nested}") == (accord.count(where=nested),)


SQL = (
    "SELECT FROM WHERE GROUP BY AND OR NOT IN IS NULL COUNT SUM AVG ( ) , * stay age ward p 1 'A' = >= AS CASE WHEN THEN END "
    "OVER FILTER DISTINCT HAVING LIMIT UNION JOIN ON ; -- /* */ :: ? $1 [ ] { } LATERAL UNNEST VALUES BETWEEN CAST DATE"
)
WORDS = st.lists(st.sampled_from(SQL.split()), max_size=25)


@given(WORDS)
def test_any_words_are_a_question_or_a_refusal(words):
    for start in ("SELECT ", "SELECT COUNT(*) FROM p WHERE ", "SELECT AVG(stay) FROM p GROUP BY "):
        try:
            questions = asked(start + " ".join(words))
        except QueryError:
            continue
        assert all(isinstance(question, accord.Query | Undescribed) for question in questions)


@given(st.text(max_size=60))
def test_any_text_is_a_question_or_a_refusal(text):
    for start in ("", "SELECT COUNT(*) FROM p WHERE ", "SELECT COUNT(*) FROM p WHERE ward = '"):
        try:
            asked(start + text)
        except QueryError:
            continue


# ---- asked of a table --------------------------------------------------------------------------------------


def test_one_plan_answers_all_and_each_column_is_a_release(people):
    table = accord.table(people, epsilon="epsilon")
    text = "SELECT ward, AVG(stay) AS stay, COUNT(*) FROM people WHERE age >= 50 GROUP BY ward"
    answers = table.sql(text, bounds={"stay": (0, 60)}, keys={"ward": ["A", "B"]}, share=0.5)
    assert answers.columns == ("ward", "stay", "COUNT(*)")
    assert [row["ward"] for row in answers.rows] == ["A", "B"]
    stay = answers["stay"]
    assert [row["stay"] for row in answers.rows] == [row["value"] for row in stay.value]
    assert [row["stay"] for row in answers.intervals(0.9)] == list(stay.interval(0.9).values())
    assert answers.charges == answers.release.charges == {1.0: 0.5}
    selected = table.select(text, {"stay": (0, 60)}, {"ward": ["A", "B"]})
    assert table.plan(selected.asked, share=0.5).fingerprint == answers.release.plan.fingerprint
    receipt = answers.receipt()
    assert receipt["sql"] == text and receipt["names"] == ["stay", "COUNT(*)"] and json.dumps(receipt)
    frame = answers.to_pandas()
    assert list(frame) == [
        "ward",
        "stay",
        "stay low",
        "stay high",
        "COUNT(*)",
        "COUNT(*) low",
        "COUNT(*) high",
    ]
    assert repr(answers) == "<Answers: ward, stay, COUNT(*); 2 rows>"
    shown = str(answers)
    assert shown.startswith(text) and "95 %" in shown and "Charges" in shown
    assert answers._repr_html_().startswith("<div")
    with pytest.raises(QueryError, match="the SELECT has no aggregate 'stays': did you mean 'stay'"):
        answers["stays"]


def test_one_aggregate_is_one_question(people):
    table = accord.table(people, epsilon="epsilon")
    answers = table.sql("SELECT MEDIAN(stay) FROM people", {"stay": (0, 60)})
    assert answers.rows == [{"MEDIAN(stay)": answers["MEDIAN(stay)"].value}]
    assert answers.intervals() == [{"MEDIAN(stay)": None}]  # one draw does not tell it in values
    assert answers.release.plan.query == accord.median("stay", (0, 60))
    assert list(answers.to_pandas()["MEDIAN(stay) low"]) == [None]
    low, high = answers["MEDIAN(stay)"].interval(0.9)
    assert answers.percentiles(0.9) == [{"MEDIAN(stay)": (low, high)}]
    frame = answers.to_pandas(0.9)
    assert list(frame["MEDIAN(stay) low percentile"]) == [low]
    assert list(frame["MEDIAN(stay) high percentile"]) == [high]
    low, high = answers["MEDIAN(stay)"].interval()
    assert f"{low:.1f} … {high:.1f} percentile" in str(answers)
    assert f"{low:.1f} … {high:.1f} percentile" in answers._repr_html_()


WITH_CONDITIONS = (
    "SELECT ward, COUNT(*) FROM p WHERE sex = 'f' GROUP BY ward",
    "SELECT ward, COUNT(stay) FROM p GROUP BY ward",
    "SELECT ward, COUNT_IF(sex = 'f') FROM p GROUP BY ward",
    "SELECT ward, COUNT(*) FILTER (WHERE sex = 'f') FROM p GROUP BY ward",
    "SELECT ward, AVG(stay) FILTER (WHERE sex = 'f') FROM p GROUP BY ward",
)


@pytest.mark.parametrize("text", WITH_CONDITIONS)
def test_conditions_are_private_where_groups_are_public(text):
    """Else who meets one, or has a value, would be answered exactly, at no charge."""
    assert asked(text)
    with pytest.raises(
        QueryError,
        match=r"membership='public' says that everyone may know who is in which group of GROUP BY, and not",
    ):
        asked(text, membership="public")


def test_public_membership_is_about_groups():
    with pytest.raises(
        QueryError, match="membership='public' is about the groups of GROUP BY, and there are none"
    ):
        asked("SELECT COUNT(*) FROM p", membership="public")
    with pytest.raises(QueryError, match="membership='all' is not offered"):
        asked("SELECT COUNT(*) FROM p", membership="all")


def test_counting_what_is_written_in_a_column_without_a_type_is_refused():
    of_file = Given({"stay": "untyped", "age": "number"}, {}, {})
    with pytest.raises(
        QueryError, match=r"COUNT\(stay\) counts whatever is written there, and stay has no type"
    ):
        read_select("SELECT COUNT(stay) FROM p", of_file)
    assert read_select("SELECT COUNT(age) FROM p", of_file).queries == (
        accord.count(where="age IS NOT NULL"),
    )


def test_where_everyone_has_one_row_rows_are_people():
    """A ledger needs ids, and most tables have a row a person."""
    text = "SELECT ward, AVG(stay), COUNT(*), COUNT(DISTINCT who) AS n, MEDIAN(stay) FROM p GROUP BY ward"
    of_people = Given((*COLUMNS, "who"), BOUNDS, KEYS, user="who", one_row_each=True)
    by = {"by": "ward", "keys": ["A", "B"]}
    assert read_select(text, of_people).queries == (
        accord.mean("stay", (0, 60), **by),
        accord.count(**by),
        accord.count(**by),
        accord.median("stay", (0, 60), **by),
    )


def test_public_groups(people):
    table = accord.table(people, epsilon="epsilon")
    text = "SELECT ward, AVG(stay) AS stay FROM people GROUP BY ward"
    answers = table.sql(text, {"stay": (0, 60)}, {"ward": ["A", "Z"]}, membership="public")
    assert answers.rows[1] == {"ward": "Z", "stay": None, "stay note": "nobody is there to ask"}
    assert "nobody is there to ask" in str(answers)
    assert list(answers["stay"].charges) == ["A"]


def test_bounds_and_keys_are_of_columns_that_there_are(people):
    table = accord.table(people, epsilon="epsilon")
    with pytest.raises(
        QueryError, match="bounds= has 'stays', which is no column of the table: did you mean 'stay'"
    ):
        table.sql("SELECT AVG(stay) FROM people", bounds={"stays": (0, 60)})
    with pytest.raises(
        QueryError, match=r"keys= of a SELECT are given by column: keys=\{\"ward\": \[\"A\", \"B\"\]\}."
    ):
        table.sql("SELECT ward, COUNT(*) FROM people GROUP BY ward", keys=["A", "B"])
    with pytest.raises(QueryError, match=r"AVG\(stay\) needs bounds=\{'stay': \(low, high\)\}"):
        table.sql("SELECT AVG(stay) FROM people")
    with pytest.raises(QueryError, match=r"GROUP BY ward needs its groups, declared: keys=\{'ward': \[…\]\}"):
        table.sql("SELECT ward, COUNT(*) FROM people GROUP BY ward")
    assert not table.known  # nothing was read


def test_it_is_booked_once_and_repeated_for_nothing(people, tmp_path):
    table = accord.table({**people, "who": np.arange(600)}, epsilon="epsilon", user="who")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(table, "people")
    text = "SELECT COUNT(DISTINCT who) AS people, SUM(stay) FROM people WHERE age >= 50"
    first = table.sql(text, {"stay": (0, 60)}, share=0.25, ledger=ledger)
    again = table.sql(text, {"stay": (0, 60)}, share=0.25, ledger=ledger)
    assert first.charges == {1.0: 0.25} and again.charges == {1.0: 0.0}
    assert again.rows == first.rows and "given out again" in str(again)
    assert ledger.remaining(table) == accord.Spec.from_groups({0.75: 600})


def test_text_is_said_to_be_text():
    of_file = Given({"stay": "number", "ward": "text"}, {"ward": (0, 1), "stay": (0, 60)}, {})
    for aggregate in ("AVG(ward)", "MEDIAN(ward)", "CORR(stay, ward)", "QUANTILE_CONT(ward, 0.5)"):
        with pytest.raises(QueryError, match=r"column 'ward' holds text, and .* needs numbers") as refused:
            read_select(f"SELECT {aggregate} FROM p", of_file)
        assert "COUNT_IF(ward = '…'), or COUNT(*) with GROUP BY ward" in str(refused.value)


# ---- many groups -------------------------------------------------------------------------------------------

MANY = [f"k{j:02}" for j in range(60)]


@pytest.fixture(scope="module")
def crowd():
    """Few groups have many people, so that a count and a mean leave out different ones."""
    sizes = [max(1, 900 >> j // 4) for j in range(40)]
    w = np.repeat(MANY[:40], sizes)
    return accord.table({"w": w, "x": np.full(w.size, 50.0), "eps": np.ones(w.size)}, epsilon="eps")


BY_W = "SELECT w, COUNT(*) AS n, AVG(x) AS m FROM p GROUP BY w"


def test_each_aggregate_says_which_groups_it_leaves_out(crowd):
    """Whoever is left out of one column has people all the same."""
    keys = MANY[::-1]
    answers = crowd.sql(BY_W, {"x": (0, 100)}, {"w": keys})
    shown = {name: {row["w"] for row in answers[name].value} for name in ("n", "m")}
    assert shown["n"] < shown["m"]
    rows = answers.rows
    assert [row["w"] for row in rows] == [key for key in keys if key in shown["n"] | shown["m"]]
    for row in rows:
        is_out = row["w"] not in shown["n"]
        assert (row["n"] is None) == is_out
        assert row["n note"] == ("left out: drowns in noise" if is_out else None)
    frame = answers.to_pandas()
    assert list(frame["n note"].notna()) == [row["w"] not in shown["n"] for row in rows]
    for text in (str(answers), answers._repr_html_()):
        assert "left out: drowns in noise" in text and "nobody is there" not in text
        assert f"n: {60 - len(shown['n'])} of 60 groups are left out" in text
        assert f"m: {60 - len(shown['m'])} of 60 groups are left out" in text


def test_groups_may_all_be_shown(crowd):
    answers = crowd.sql(BY_W, {"x": (0, 100)}, {"w": MANY}, suppress=False)
    assert [row["w"] for row in answers.rows] == MANY and "drowns" not in str(answers)
    few = crowd.sql("SELECT w, COUNT(*) AS n FROM p GROUP BY w", keys={"w": ["k00", "k59"]}, suppress=True)
    assert few["n"].plan.query.part.suppress
    with pytest.raises(QueryError, match="suppress= is about the groups of GROUP BY, and there are none"):
        crowd.sql("SELECT COUNT(*) FROM p", suppress=False)


def test_intervals_hold_for_all_groups_whichever_are_shown(crowd):
    """Those of every column are for all declared groups together: each misses with 5 % / 60."""
    answers = crowd.sql(BY_W, {"x": (0, 100)}, {"w": MANY})
    for name in ("n", "m"):
        alone = answers[name]
        assert alone.groups_together == 60
        of_group = {row["w"]: row[name] for row in answers.intervals() if row[name] is not None}
        assert of_group == alone.interval(0.95)


def test_weights_say_whose_error_counts(crowd):
    given = {"bounds": {"x": (0, 100)}, "keys": {"w": MANY}}
    same, counted = (
        crowd.plan(crowd.select(BY_W, **given, weights=weights).asked) for weights in (None, {"n": 100})
    )
    assert counted.workload.weights == (100.0, 1.0) and same.workload.weights == (1.0, 1.0)
    assert counted.parts[0].rmse < same.parts[0].rmse and counted.parts[1].rmse > same.parts[1].rmse
    assert "Minimised is the total error" in str(same)
    assert "as a fraction of the error without data, times 100, 1)" in str(counted).replace("\n", " ")
    refused = {
        "weights= of a SELECT are given by the name of an aggregate": [1, 2],
        "weights= has 'nn', which is no aggregate of the SELECT: did you mean 'n'": {"nn": 2},
        "weight 0 is not a number above 0": {"n": 0},
    }
    for message, weights in refused.items():
        with pytest.raises(QueryError, match=message):
            crowd.sql(BY_W, **given, weights=weights)
    with pytest.raises(QueryError, match="among several aggregates, and the SELECT has one"):
        crowd.sql("SELECT COUNT(*) AS n FROM p", weights={"n": 2})


# ---- what else the single answers say ----------------------------------------------------------------------


def test_too_few_people_are_marked(people):
    table = accord.table({**people, "epsilon": np.full(600, 200.0)}, epsilon="epsilon")
    text = "SELECT ward, MIN(age) AS lo, MEDIAN(stay) AS m, AVG(stay) AS a FROM p GROUP BY ward"
    answers = table.sql(text, {"stay": (0, 60), "age": (0, 120)}, {"ward": ["A", "nobody"]})
    there, nobody = answers.rows
    few = "too few people to tell"
    assert [nobody[f"{name} note"] for name in ("lo", "m", "a")] == [few] * 3
    for name in ("lo", "m", "a"):
        assert [row["few"] for row in answers[name].value] == [
            row[f"{name} note"] == few for row in answers.rows
        ]
    marks = sum(row["few"] for name in ("lo", "m", "a") for row in answers[name].value)
    assert there["a note"] is None and 3 <= marks < 6
    assert str(answers).count(few) == answers._repr_html_().count(few) == marks
    assert list(answers.to_pandas()["a note"].fillna("")) == ["", few]


def test_it_says_what_a_release_says(people):
    opted_out = {**people, "epsilon": np.where(np.arange(600) < 36, 0.0, people["epsilon"])}
    table = accord.table(opted_out, epsilon="epsilon")
    text = "SELECT AVG(stay) AS a, MEDIAN(stay) AS m FROM p"
    table.sql(text, {"stay": (0, 60)})
    answers = table.sql(text, {"stay": (0, 60)})
    shown = " ".join(str(answers).split())
    for said in (
        "36 people opted out and are never read; the answer is about the other 564",
        "a: κ = ",
        "m: κ = ",
        "a, by ",
        "about these people",
        "each row is one person",
        "No ledger keeps account: 2 releases of this table in this process have charged level 1 with 2",
    ):
        assert said in shown, said
    assert shown.count("each row is one person") == 1 and "answers.release" not in shown


@pytest.mark.parametrize("width", [118, 80, 60, 40])
def test_many_columns_are_lines_and_no_number_is_broken(people, width):
    table = accord.table(people, epsilon="epsilon")
    aggregates = ", ".join(f"SUM(stay) FILTER (WHERE age > {k}) AS s{k}" for k in range(7))
    answers = table.sql(f"SELECT ward, {aggregates} FROM p GROUP BY ward", {"stay": (0, 6e7)}, KEYS)
    console = Console(file=StringIO(), width=width, force_jupyter=False)
    console.print(answers_view(answers, width))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.strip() == "ward = A" for line in lines) == 1
    for (_, row), name in product(answers.table(), answers.selected.names):
        value = near(row[name].value, (row[name].interval[1] - row[name].interval[0]) / 4)
        assert any(value in line.split() for line in lines), value


def test_few_columns_are_a_table(people):
    answers = accord.table(people, epsilon="epsilon").sql(
        "SELECT ward, COUNT(*) n FROM p GROUP BY ward", keys=KEYS
    )
    assert str(answers).splitlines()[1].split() == ["ward", "n", "95", "%"]


# ---- the command line --------------------------------------------------------------------------------------


def invoke(*words):
    return CliRunner().invoke(cli.main, ["sql", *map(str, words)])


@pytest.fixture
def file(people, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_keys_are_in_a_file(file, tmp_path):
    (tmp_path / "wards.txt").write_text("A\nB\n", encoding="utf-8")
    done = invoke(
        f"SELECT ward, COUNT(*) AS n FROM '{file}' GROUP BY ward", "--epsilon", "epsilon",
        "--keys", f"ward=@{tmp_path / 'wards.txt'}", "--json",
    )  # fmt: skip
    assert done.exit_code == 0 and [row["ward"] for row in json.loads(done.stdout)["value"]] == ["A", "B"]


def test_a_file_after_from(file):
    text = f"SELECT ward, AVG(stay) AS stay FROM '{file}' GROUP BY ward"
    options = ["--epsilon", "epsilon", "--bounds", "stay=0..60", "--keys", "ward=A,B"]
    done = invoke(text, *options, "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 0 and document["sql"] == text and document["names"] == ["stay"]
    assert [row["ward"] for row in document["value"]] == ["A", "B"]
    shown = invoke(text, *options)
    assert shown.exit_code == 0 and shown.stdout.startswith("SELECT ward") and "Charges" in shown.stdout
    planned = invoke(text, *options, "--plan")
    assert planned.exit_code == 0 and "Plan: mean of stay by ward" in planned.stdout


def test_a_described_table(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accord.toml").write_text(
        'schema = 1\n[tables.people]\nsource = "people.parquet"\nepsilon = "epsilon"\n'
        '[tables.people.columns.stay]\nbounds = [0, 60]\n[tables.people.columns.ward]\nkeys = ["A", "B"]\n'
    )
    done = invoke("SELECT ward, AVG(stay), COUNT(*) FROM people GROUP BY ward", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["names"] == ["AVG(stay)", "COUNT(*)"]


USAGE = {
    ("--bounds", "stay"): "--bounds has 'stay', which is not COLUMN=LO..HI.",
    ("--bounds", "stay=3"): "--bounds has 'stay=3', which is not COLUMN=LO..HI.",
    ("--keys", "A,B"): "--keys has 'A,B', which is not COLUMN=A,B.",
    ("--weights", "3"): "--weights has '3', which is not NAME=W. Write --weights n=10.",
}


@pytest.mark.parametrize("words", USAGE)
def test_usage(file, words):
    done = invoke(f"SELECT COUNT(*) FROM '{file}'", "--epsilon", "epsilon", *words)
    assert done.exit_code == 2 and USAGE[words] in done.stderr


def test_refusals_have_the_words_of_the_command_line(file):
    done = invoke(f"SELECT COUNT(*) FROM '{file}'", "--epsilon", "epsilon", "--user", "who")
    assert done.exit_code == 1 and "Give --max-rows, the most that one person counts for" in done.stderr
    text = f"SELECT ward, AVG(stay) FROM '{file}' GROUP BY ward"
    done = invoke(text, "--epsilon", "epsilon", "--keys", "ward=A,B")
    assert done.exit_code == 1 and "AVG(stay) needs --bounds stay=low..high, from public" in done.stderr
    done = invoke(text, "--epsilon", "epsilon", "--bounds", "stay=0..60")
    assert done.exit_code == 1 and "its groups, declared: --keys ward=…." in done.stderr
    done = invoke("DROP TABLE people", "--epsilon", "epsilon")
    assert done.exit_code == 1 and done.stderr.startswith("QueryError: this is no SELECT.")


def test_groups_and_weights_are_options(file):
    text = f"SELECT ward, AVG(stay) AS a, COUNT(*) AS n FROM '{file}' GROUP BY ward"
    options = ["--epsilon", "epsilon", "--bounds", "stay=0..60", "--keys", "ward=A,B", "--suppress"]
    planned = invoke(text, *options, "--weights", "n=20", "--weights", "a=2", "--plan", "--json")
    document = json.loads(planned.stdout)
    assert all(part["query"]["suppress"] for part in document["plans"])
    planned = invoke(text, *options, "--weights", "n=20", "--weights", "a=2", "--plan")
    assert "times 2, 20)" in planned.stdout
    shown = invoke(text, *options[:-1], "--no-suppress")
    assert shown.exit_code == 0 and "Taken as public knowledge" in shown.stdout


def test_nothing_is_advised_that_accord_sql_does_not_have(file, tmp_path):
    """It cannot plan from what is left."""
    url = tmp_path / "accord.db"
    text = f"SELECT SUM(stay) AS s FROM '{file}'"
    options = ["--epsilon", "epsilon", "--user", "who", "--bounds", "stay=0..60"]
    ledger = accord.Ledger(url)
    ledger.register(accord.table(file, epsilon="epsilon", user="who"), "people")
    asked = invoke(text, *options, "--ledger", url)
    assert asked.exit_code == 2 and "--share 0.1 is a tenth." in asked.stderr
    assert "--remaining" not in asked.stderr
    assert invoke(text, *options, "--ledger", url, "--share", 0.75).exit_code == 0
    short = invoke(text, *options, "--ledger", url, "--share", 0.5)
    assert short.exit_code == 1 and "plan from what is left: accord release with --remaining." in short.stderr


def test_refusals_about_a_described_table_are_in_options(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "accord.toml").write_text(
        'schema = 1\n[tables.people]\nsource = "people.parquet"\nepsilon = "epsilon"\nuser = "who"\n'
        "[tables.people.columns.stay]\nbounds = [0, 60]\n"
    )
    refused = {
        "SELECT COUNT(*) FROM people": "Give --max-rows, the most",
        "SELECT MAX(age) FROM people": "MAX(age) needs --bounds age=low..high, from public knowledge",
        "SELECT SUM(stay) FROM people": "for the column as well, or give --bounds.",
    }
    for text, message in refused.items():
        done = invoke(text)
        assert done.exit_code == 1 and message in done.stderr, done.stderr


def test_without_sqlglot_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    with pytest.raises(AccordError, match=r"need sqlglot, which is not installed. Install accord\[sql\]"):
        source_of("SELECT COUNT(*) FROM people")
