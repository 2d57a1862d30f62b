"""accord.toml on the command line: names in the place of sources, a first description, batches."""

import json
import tomllib

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import QueryError

PEOPLE = "id,stay,ward,tier\n1,3,a,strict\n2,8,b,standard\n3,1,a,standard\n4,30,b,public\n"
TOML = """\
schema = 1
ledger = "accord.db"
[tables.people]
source = "people.csv"
user = "id"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1, public = inf }
[tables.people.columns.stay]
kind = "number"
bounds = [0, 60]
[tables.people.columns.ward]
kind = "text"
keys = ["a", "b"]
"""
LONG = ["people.csv", "--user", "id", "--epsilon", "tier", "--tiers", "strict=0.1,standard=1,public=inf"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACCORD_CATALOG", raising=False)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "accord.toml").write_text(TOML)
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(w) for w in words])
    assert result.exit_code == code, result.output + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.fixture
def ledger(folder):
    ledger = accord.Ledger(folder / "accord.db")
    ledger.register(accord.catalog(folder / "accord.toml")["people"], "people")
    return ledger


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (["mean", "stay"], ["mean", "stay", "--bounds", 0, 60]),
        (["count", "--by", "ward"], ["count", "--by", "ward", "--keys", "a,b"]),
        (["histogram", "ward"], ["histogram", "ward", "--categories", "a,b"]),
        (["quantile", "stay", "--p", 0.9], ["quantile", "stay", "--p", 0.9, "--bounds", 0, 60]),
        (
            ["regression", "stay", "--on", "ward"],
            ["regression", "stay", "--bounds", 0, 60, "--on", "ward=a|b"],
        ),
        (["mean", "stay", "--bounds", 0, 9], ["mean", "stay", "--bounds", 0, 9]),
    ],
)
def test_a_name_stands_for_source_and_options(short, long):
    described = run("plan", "people", *short, "--json").stdout
    source, *options = LONG
    assert json.loads(described) == json.loads(run("plan", source, *long, *options, "--json").stdout)


def test_a_release_is_booked_where_the_description_says(ledger):
    assert "say how much of everyone's level" in run("release", "people", "mean", "stay", code=2).stderr
    receipt = json.loads(run("release", "people", "mean", "stay", "--share", 0.1, "--json").stdout)
    assert receipt["ledger"]["entry"] == ledger.history()[0]["entry"] + 1
    assert "left" in run("plan", "people", "mean", "stay", "--remaining").stdout
    assert "Leave --ledger out." in run("plan", "people", "count", "--ledger", "other.db", code=2).stderr


def test_a_name_stands_for_the_ledger_that_it_names(folder):
    assert "made the ledger" in run("ledger", "init", "people").stdout
    assert "registered 'people': 4 people" in run("ledger", "register", "people").stdout
    run("release", "people", "mean", "stay", "--share", 0.1, "--why", "a report")
    assert "a report" in run("ledger", "history", "people", "--table", "people", "--json").stdout
    assert "1 person withdrew" in run("ledger", "withdraw", "people", 4).stdout
    assert "They have withdrawn" in run("ledger", "person", "people", 4).stdout
    assert "whole: " in run("ledger", "verify", "people").stdout
    assert (folder / "accord.db").exists() and not (folder / "people").exists()
    for words in (["nobody"], ["people", "people"], ["accord.db"]):
        assert (
            "give URL NAME SOURCE, or one table of accord.toml"
            in run("ledger", "register", *words, code=2).stderr
        )


def test_no_way_past_the_described_ledger(folder, ledger):
    """Whoever releases: the library, an algorithm of one's own, an estimator."""
    people = accord.catalog()["people"]
    with pytest.raises(accord.errors.QueryError, match="with a ledger, say how much"):
        accord.sample(lambda rows, epsilon: 1.0, people)
    accord.sample(lambda rows, epsilon: 1.0, people, share=0.1, columns=["stay"])
    people.release(people.plan(accord.mean("stay"), share=0.1))
    assert len(ledger.history()) == 2


def test_what_is_described_is_not_said_again():
    said = run("plan", "people", "mean", "stay", "--user", "id", code=2).stderr
    assert "people is described in accord.toml. Change it there, or leave --user out." in said


def test_names_and_files_are_told_apart(folder, monkeypatch):
    source, *options = LONG
    assert run("plan", source, "count", "--where", "stay > 3", *options).stdout
    assert (
        "describes no table 'peple': did you mean 'people'?" in run("plan", "peple", "count", code=1).stderr
    )
    assert "Missing option '--epsilon'" in run("plan", "people.csv", "count", code=2).stderr
    (folder / "accord.toml").rename(folder / "other.toml")
    assert "Missing option '--epsilon'" in run("plan", "people", "count", code=2).stderr
    monkeypatch.setenv("ACCORD_CATALOG", "other.toml")
    assert run("plan", "people", "mean", "stay").stdout
    monkeypatch.setenv("ACCORD_CATALOG", "nowhere.toml")
    assert "there is no file nowhere.toml" in run("plan", "people", "mean", "stay", code=1).stderr


def test_refusals_have_the_words_of_the_file(folder):
    said = run("plan", "people", "sum", "stay", code=1).stderr
    assert "Declare total = [low, high]" in said and "give bounds=." in said and "--bounds" not in said


def test_a_first_description(folder):
    (folder / "accord.toml").unlink()
    assert "accord plan people count" in run("init", "people.csv").stdout
    text = (folder / "accord.toml").read_text()
    assert '# csv = { decimal = ",", thousands = ".", dates = "%d.%m.%Y" }' in text
    assert "strict" not in text.replace("strict = 0.1", "").replace('"strict"', "")  # no value of the table
    assert list(tomllib.loads(text)["tables"]["people"]["columns"]) == ["id", "stay", "ward", "tier"]
    said = run("plan", "people", "count", "--where", "stay > 3", code=1).stderr
    assert "accord.toml, line 12: epsilon = '' is empty" in said
    for old, new in (
        ('epsilon = ""', 'epsilon = "tier"'),
        ("# tiers = {", "tiers = {"),
        ('# user = "…"', 'user = "id"'),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "accord.toml").write_text(text)
    assert run("plan", "people", "count", "--where", "stay > 3").stdout


def test_a_further_table_is_added(folder):
    run("init", "people.csv", "--name", "again", "--epsilon", "tier", "--user", "id")
    assert list(accord.catalog()) == ["people", "again"]
    assert "describes 'again' already" in run("init", "people.csv", "--name", "again", code=1).stderr
    assert (
        "--epsilon: there is no column 'tir': did you mean 'tier'?"
        in run("init", "people.csv", "--name", "x", "--epsilon", "tir", code=1).stderr
    )
    assert "give the table a --name" in run("init", "people.csv", "--name", "a b", code=2).stderr
    assert list(accord.catalog()) == ["people", "again"]


def test_types_are_described_and_odd_names_quoted(folder):
    import duckdb

    (folder / "accord.toml").unlink()
    duckdb.sql(
        """COPY (SELECT 1 AS "a ""b", 'x' AS "ü.v", DATE '2024-01-01' AS d, TRUE AS t, 0.5 AS epsilon)
        TO 'odd.parquet'"""
    )
    run("init", "odd.parquet")
    columns = tomllib.loads((folder / "accord.toml").read_text())["tables"]["odd"]["columns"]
    assert {name: column["kind"] for name, column in columns.items()} == {
        'a "b': "number",
        "ü.v": "text",
        "d": "date",
        "t": "boolean",
    }
    assert accord.catalog()["odd"].spec().levels == (0.5,)


def test_what_cannot_be_added_to_is_left_as_it_is(folder, monkeypatch):
    inline = 'schema = 1\ntables = { a = { source = "people.csv", epsilon = "tier" } }\n'
    (folder / "accord.toml").write_text(inline)
    assert "nothing can be added" in run("init", "people.csv", "--name", "b", code=1).stderr
    assert (folder / "accord.toml").read_text() == inline
    monkeypatch.setenv("ACCORD_CATALOG", "other.toml")
    run("init", "people.csv", "--epsilon", "tier")
    assert list(accord.catalog("other.toml")) == ["people"]
    monkeypatch.setenv("ACCORD_CATALOG", "")
    (folder / "accord.toml").unlink()
    assert run("plan", "people.csv", "count", "--where", "stay > 3", "--epsilon", 1).stdout


def test_a_first_description_without_levels_does_not_stop_the_next(folder):
    (folder / "accord.toml").unlink()
    run("init", "people.csv")
    run("init", "people.csv", "--name", "second", "--epsilon", "tier")
    assert 'epsilon = ""' in (folder / "accord.toml").read_text()


def test_a_table_without_a_ledger_has_none_made_by_its_name(folder):
    (folder / "accord.toml").write_text(TOML.replace('ledger = "accord.db"\n', ""))
    assert "people names no ledger in accord.toml" in run("ledger", "init", "people", code=2).stderr
    assert not (folder / "people").exists()


def test_a_described_file_is_pointed_out():
    source, *options = LONG
    said = run("plan", source, "count", "--where", "stay > 3", *options).stderr
    assert "accord.toml describes this file as people" in said


def test_a_plan_from_what_is_left_knows_what_is_declared(ledger, folder):
    (folder / "accord.toml").write_text(
        TOML.replace("bounds = [0, 60]", 'bounds = [0, 60]\nmissing = "none"')
    )
    people = accord.catalog()["people"]
    assert people.plan(accord.mean("stay"), remaining=ledger).rmse == people.plan(accord.mean("stay")).rmse
    planned = json.loads(run("plan", "people", "mean", "stay", "--remaining", "--json").stdout)
    assert planned["rmse"] == people.plan(accord.mean("stay")).rmse
    run("ledger", "withdraw", "people", 2)
    (folder / "questions.toml").write_text(QUESTIONS)
    assert "has withdrawn" in run("run", "questions.toml", code=1).stdout
    (folder / "questions.toml").write_text(QUESTIONS.replace("share = 0.1", "remaining = true\nshare = 0.1"))
    run("run", "questions.toml")


def test_a_batch_says_nothing_in_vain(folder):
    (folder / "accord.toml").write_text(TOML.replace('ledger = "accord.db"\n', ""))
    (folder / "questions.toml").write_text(QUESTIONS)
    assert "are about a ledger" in run("run", "questions.toml", "--actor", "me", code=1).stdout
    (folder / "questions.toml").write_text(QUESTIONS.replace("share", 'purpose = "x"\nshare'))
    assert "are about a ledger" in run("run", "questions.toml", code=1).stdout


def test_a_password_is_not_written(folder):
    for address in (
        "postgresql://me:secret@host/db?table=t",
        "postgresql://me@host/db?table=t&password=secret",
        "postgresql://me:se/cret@host/db?table=t",
        "host=h password=secret",
    ):
        said = run("init", address, "--name", "t", code=1).stderr
        assert "Leave it out" in said and "cret" not in said
    assert (folder / "accord.toml").read_text() == TOML


QUESTIONS = """\
schema = 1
table = "people"
share = 0.1

[[questions]]
name = "stay"
statistic = "mean"
column = "stay"
by = "ward"

[[questions]]
statistic = "count"
where = "stay > 5"
weight = 2
"""


def test_a_batch_is_one_workload(folder, ledger):
    (folder / "questions.toml").write_text(QUESTIONS)
    planned = json.loads(run("run", "questions.toml", "--plan").stdout)
    assert planned["workload"] == ["mean of stay by ward", "count of people where stay > 5"]
    assert [plan["weight"] for plan in planned["plans"]] == [1, 2]
    answered = json.loads(run("run", "questions.toml").stdout)
    assert (answered["table"], answered["names"]) == ("people", ["stay", "question 2"])
    assert answered["charges"] == planned["charges"] and len(answered["receipts"]) == 2
    assert len(ledger.history()) == 1  # together
    (folder / "questions.toml").write_text(
        QUESTIONS.replace("share = 0.1", 'share = 0.1\npurpose = "a report"')
    )
    again = json.loads(run("run", "questions.toml").stdout)
    assert [r["value"] for r in again["receipts"]] == [r["value"] for r in answered["receipts"]]
    assert again["repeated"]["entry"] == 4 and len(ledger.history()) == 1
    run("run", "questions.toml", "--actor", "J. Doe", "--fresh")
    assert (ledger.history()[1]["actor"], ledger.history()[1]["purpose"]) == ("J. Doe", "a report")


WRONG = {
    "no table": ('table = "people"', 'table = "x"', "describes no table 'x'"),
    "no statistic": ('"mean"', '"average"', "line 7: statistic = 'average' is not"),
    "an unknown key": ("column", "colum", "line 8: [questions] has no key 'colum': did you mean 'column'?"),
    "an argument of another": ('by = "ward"', "edges = [1, 2, 3]", "line 9: mean takes no edges"),
    "no argument": ('statistic = "mean"', 'statistic = "quantile"', "line 5: quantile needs p = …."),
    "no such column": (
        'column = "stay"',
        'column = "sty"',
        "line 5: there is no column 'sty': did you mean 'stay'?",
    ),
    "a condition that is none": ("stay > 5", "stay >> 5", "line 11: "),
    "two of a name": ("weight = 2", 'name = "stay"', "line 14: two answers are called 'stay'."),
    "no weight": ("weight = 2", "weight = -1", "line 14: weight -1"),
    "public groups": (
        'by = "ward"',
        'by = "ward"\nmembership = "public"',
        "line 10: membership = 'public' is not \"private\"",
    ),
    "no questions": ("[[questions]]", "[[other]]", "has no key 'other'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_batch_that_cannot_be_asked(folder, ledger, name):
    old, new, says = WRONG[name]
    assert old in QUESTIONS
    (folder / "questions.toml").write_text(QUESTIONS.replace(old, new))
    refusal = json.loads(run("run", "questions.toml", code=1).stdout)
    assert says in refusal["error"]["message"]
    assert not ledger.history()


def test_a_batch_that_costs_too_much(folder, ledger):
    (folder / "questions.toml").write_text(QUESTIONS.replace("share = 0.1", "share = 0.7"))
    run("run", "questions.toml")
    refusal = json.loads(run("run", "questions.toml", "--fresh", code=1).stdout)
    assert refusal["error"]["type"] == "BudgetError"


def test_a_batch_without_a_description(folder):
    (folder / "accord.toml").unlink()
    (folder / "questions.toml").write_text(QUESTIONS)
    assert "there is no accord.toml in this folder" in run("run", "questions.toml", code=1).stdout


SEVERAL = PEOPLE.replace("ward,tier", "ward,sex,tier").replace(",a,", ",a,f,").replace(",b,", ",b,m,")
SEX = '[tables.people.columns.sex]\nkind = "text"\nkeys = ["f", "m"]\n'


def several(folder, declared=SEX):
    """Without a ledger, and with a column of which the keys may be declared."""
    (folder / "people.csv").write_text(SEVERAL)
    (folder / "accord.toml").write_text(TOML.replace('ledger = "accord.db"\n', "") + declared)


def test_declared_keys_of_several_columns(folder):
    several(folder)
    keys = {"ward": ["a", "b"], "sex": ["f", "m"]}
    people = accord.catalog(folder / "accord.toml")["people"]
    for query in (
        accord.count(by=["ward", "sex"]),
        accord.count(by=["ward", "sex"], keys={"sex": ["f", "m"]}),
        accord.crosstab("ward", "sex"),
    ):
        assert people.plan(query).describe()["query"]["keys"] == keys
    narrower = people.plan(accord.crosstab("ward", "sex", keys={"sex": ["m"]}))
    assert narrower.describe()["query"]["keys"] == {"ward": ["a", "b"], "sex": ["m"]}
    of_mean = people.plan(accord.mean("stay", by=["sex", "ward"])).describe()["query"]
    assert of_mean["by"] == ["sex", "ward"] and of_mean["bounds"] == ["0", "60"]
    several(folder, declared="")
    people = accord.catalog(folder / "accord.toml")["people"]
    with pytest.raises(QueryError, match="keys= has none for 'sex', a column of by="):
        people.plan(accord.crosstab("ward", "sex"))
    with pytest.raises(QueryError, match="there is no column 'sexx': did you mean 'sex'"):
        people.plan(accord.count(by=["ward", "sexx"]))


def test_several_columns_on_the_command_line(folder):
    several(folder)
    receipt = json.loads(run("release", "people", "crosstab", "ward", "sex", "--json").stdout)
    assert [(row["ward"], row["sex"]) for row in receipt["value"]] == [(w, s) for w in "ab" for s in "fm"]
    groups = ["--by", "ward", "--by", "sex", "--keys", "ward=b,a", "--keys", "sex=m"]
    query = json.loads(run("release", LONG[0], "count", *LONG[1:], *groups, "--json").stdout)["query"]
    assert query["keys"] == {"ward": ["b", "a"], "sex": ["m"]}
    refused = run("release", LONG[0], "count", *LONG[1:], *groups[:6], code=1)
    assert "--keys has none for 'sex', a column of --by: declare them" in refused.stderr
    refused = run("release", LONG[0], "count", *LONG[1:], *groups[:4], code=1)
    assert "--by ward --by sex needs --keys, the groups to answer about" in refused.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["crosstab", "ward"], 1, "a crosstab is of two columns or more, not of 1. Name them all; for one, ask accord.count with by= and keys="),
        (["crosstab", "ward", "id"], 1, "keys= has none for 'id', a column of by="),
        (["crosstab", "ward", "sex", "--by", "sex"], 2, "crosstab is by the COLUMNs that it names. Leave --by out."),
        (["crosstab", "ward", "sex", "--bounds", "0", "1"], 2, "--bounds has no meaning for crosstab."),
        (["mean", "stay", "ward"], 2, "mean takes one COLUMN, and 2 are named."),
        (["count", "--by", "ward", "--by", "sex", "--keys", "a,b"], 2, "--keys has 'a,b', which does not say of which of the columns ward, sex they are. Write --keys ward=A,B, once for each."),
        (["count", "--by", "ward", "--by", "sex", "--keys", "sex=f", "--keys", "sex=m"], 2, "--keys has 'sex' twice. Write all its keys in one."),
        (["count", "--by", "ward", "--keys", "a", "--keys", "b"], 2, "--keys is given several times, and --by once. Write all keys in one: --keys A,B."),
        (["count", "--by", "ward", "--by", "ward"], 1, "by= names 'ward' twice. Name each column once."),
    ],
)  # fmt: skip
def test_what_is_refused_about_several_columns(folder, words, code, message):
    several(folder)
    said = run("plan", "people", *words, code=code)
    assert message in " ".join((said.output + said.stderr).split())


def test_several_columns_in_a_file_of_questions(folder):
    several(folder, declared="")
    (folder / "q.toml").write_text(
        """schema = 1
table = "people"
[[questions]]
statistic = "crosstab"
columns = ["ward", "sex"]
keys = { ward = ["a", "b"], sex = ["f", "m"] }
[[questions]]
statistic = "mean"
column = "stay"
by = ["ward", "sex"]
keys = { sex = ["f"] }
"""
    )
    document = json.loads(run("run", "q.toml", "--plan").stdout)
    assert [plan["query"]["by"] for plan in document["plans"]] == [["ward", "sex"]] * 2
    assert document["plans"][1]["query"]["keys"] == {"ward": ["a", "b"], "sex": ["f"]}
    (folder / "q.toml").write_text('schema = 1\ntable = "people"\n[[questions]]\nstatistic = "crosstab"\n')
    assert "line 3: crosstab needs columns = …." in run("run", "q.toml", "--plan", code=1).stdout


def test_a_table_is_called_as_its_file_without_accents(folder):
    (folder / "people.csv").rename(folder / "Löhne à Genève.csv")
    assert "accord plan Lohne-a-Geneve count" in run("init", "Löhne à Genève.csv", "--epsilon", "tier").stdout
