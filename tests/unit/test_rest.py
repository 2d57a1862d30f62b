"""rest=: everyone whose value is none of the keys, as one more group."""

import json
from math import inf
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import accord
from accord.batches import read_batch
from accord.cli import main
from accord.errors import QueryError

KEYS = ["A", "B"]
QUESTIONS = {
    "count": lambda **part: accord.count(**part),
    "crosstab": lambda **part: accord.crosstab("w", "g", keys={"w": KEYS, "g": [1]}, rest=part["rest"]),
    "sum": lambda **part: accord.sum("x", (0, 9), **part),
    "mean": lambda **part: accord.mean("x", (0, 9), **part),
    "proportion": lambda **part: accord.proportion("x > 1", **part),
    "variance": lambda **part: accord.variance("x", (0, 9), **part),
    "std": lambda **part: accord.std("x", (0, 9), **part),
    "covariance": lambda **part: accord.covariance("x", "g", bounds={"x": (0, 9), "g": (0, 9)}, **part),
    "correlation": lambda **part: accord.correlation("x", "g", bounds={"x": (0, 9), "g": (0, 9)}, **part),
    "histogram": lambda **part: accord.histogram("x", edges=[0, 5, 9], **part),
    "median": lambda **part: accord.median("x", (0, 9), **part),
    "quantile": lambda **part: accord.quantile("x", 0.9, (0, 9), **part),
    "min": lambda **part: accord.min("x", (0, 9), **part),
    "max": lambda **part: accord.max("x", (0, 9), **part),
    "rows": lambda **part: accord.rows(max=3, **part),
    "regression": lambda **part: accord.regression("x", ["g"], bounds={"x": (0, 9), "g": (0, 9)}, **part),
}


def people(level=inf):
    words = ["A", "B", "C", "D", None, "A", "C", "other"] * 50
    data = {"w": words, "g": [1, 2, 3, 4] * 100, "x": [1.0, 5.0] * 200, "id": range(400), "e": [level] * 400}
    return accord.table(data, epsilon="e", user="id")


@pytest.mark.parametrize("statistic", QUESTIONS)
def test_every_statistic_has_it(statistic):
    query = QUESTIONS[statistic](by="w", keys=KEYS, rest="others")
    release = people().release(query)
    assert release.value[-1]["w"] == "others"
    assert len(release.value) == (6 if statistic == "crosstab" else 3)


def test_whoever_has_no_value_is_in_no_group():
    release = people().release(accord.count(by="w", keys=KEYS, rest="others"), "threshold", t=inf)
    assert [(row["w"], row["value"]) for row in release.value] == [("A", 100), ("B", 50), ("others", 200)]
    assert release["others"].value == 200
    missing = people().release(accord.count(where="w IS NOT NULL"), "threshold", t=inf)
    assert missing.value == 350 == sum(row["value"] for row in release.value)


def test_a_person_is_in_the_rest_if_all_of_its_values_are_more_frequent_than_a_key():
    """A, A, then three undeclared ones, each once."""
    data = {"id": [1] * 5 + [2], "w": list("AABCDA"), "e": [inf] * 6}
    table = accord.table(data, epsilon="e", user="id")
    for at_most, expected in ((1, [1, 1]), (2, [2, 1])):
        query = accord.count(by="w", keys=["A"], rest="others", at_most=at_most)
        assert [row["value"] for row in table.release(query, "threshold", t=inf).value] == expected


def test_of_several_columns_each_has_its_own_or_some():
    keys = {"w": KEYS, "g": [1, 2]}
    both = accord.crosstab("w", "g", keys=keys, rest="others")
    assert len(both.part.groups) == 9 and both.part.groups[-1] == ("others", "others")
    one = accord.crosstab("w", "g", keys=keys, rest={"g": "more"})
    assert [group for group in one.part.groups if "more" in group] == [("A", "more"), ("B", "more")]
    table = people().release(both, "threshold", t=inf)
    assert sum(row["value"] for row in table.value) == 350 == table.margin()[0]["value"]
    assert [row["w"] for row in table.margin("w")] == [*KEYS, "others"]
    assert "others" in str(table) and table.to_pandas()["w"].tolist()[-1] == "others"


def test_charges_are_those_without_it():
    without, with_rest = (
        people(1.0).plan(accord.count(by="w", keys=KEYS, rest=rest)) for rest in (None, "others")
    )
    assert without.charges == with_rest.charges and with_rest.times == 2
    assert len({without.fingerprint, with_rest.fingerprint}) == 2
    named_key = people(1.0).plan(accord.count(by="w", keys=[*KEYS, "others"]))
    assert named_key.fingerprint != with_rest.fingerprint


def test_documents_say_so():
    plan = people(1.0).plan(accord.count(by="w", keys=KEYS, rest="others"))
    assert plan.describe()["query"]["keys"] == KEYS and plan.describe()["query"]["rest"] == "others"
    assert "'others' is every other value of w; a missing one is in no group" in plan.assumptions
    assert "the 2 keys were declared, not taken from the data" in plan.assumptions
    several = accord.crosstab("w", "g", keys={"w": KEYS, "g": [1]}, rest={"w": "others"}).describe()
    assert several["rest"] == {"w": "others"} and several["keys"] == {"w": KEYS, "g": [1]}
    assert plan.query.part.name("A") == "w = 'A'"
    assert plan.query.part.name(plan.query.part.groups[-1]) == "w is none of the keys (others)"


BAD = {
    "A": (
        "A",
        "rest='A' is one of the keys, and names the group of everyone whose value is none of them. Give it another",
    ),
    "True": (
        True,
        "rest=True is not a name for the group of everyone whose value is none of the keys. Give a text, such",
    ),
    "blank": (" ", "rest=' ' is not a name"),
    "a number": (7, "rest=7 is not a name"),
    "another column": (
        {"g": "x"},
        r"rest= has 'g', which is not a column of by= \(w\). Leave it out, or add it to by=",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_names_are_refused(name):
    rest, words = BAD[name]
    with pytest.raises(QueryError, match=words):
        accord.count(by="w", keys=KEYS, rest=rest)


def test_a_number_that_is_spelled_alike_is_a_key():
    with pytest.raises(QueryError, match="rest='1' is one of the keys"):
        accord.count(by="g", keys=[1, 2], rest="1")
    assert accord.count(by="g", keys=[1, 2], rest="others").part.groups == (1, 2, "others")


def test_without_groups_it_is_refused():
    with pytest.raises(
        QueryError, match=r"rest= is about groups\. Add by= with their column, or leave it out"
    ):
        accord.mean("x", (0, 9), rest="others")
    with pytest.raises(QueryError, match="rest= is about groups"):
        accord.count(rest="others")


def test_it_counts_among_the_combinations():
    keys = {"w": range(1_000), "g": range(199)}
    with pytest.raises(QueryError, match=r"has 200,200 groups \(1,001 × 200\)"):
        accord.crosstab("w", "g", keys=keys, rest="others")
    with pytest.raises(QueryError, match=r"at_most=4 is not a number of groups.* from 1 to 3"):
        accord.count(by="w", keys=KEYS, rest="others", at_most=4)


# ---- files and commands ------------------------------------------------------------------------------------


def asked(tmp_path, *words):
    path = tmp_path / "people.csv"
    path.write_text("w,g,e\nA,1,1\nB,2,1\nC,2,1\n,1,1\n", encoding="utf-8")
    return CliRunner().invoke(main, ["plan", str(path), *words, "--epsilon", "e", "--json"])


def test_on_the_command_line(tmp_path):
    done = asked(tmp_path, "count", "--by", "w", "--keys", "A", "--rest", "others")
    assert done.exit_code == 0 and '"rest": "others"' in done.stdout
    several = ["crosstab", "w", "g", "--keys", "w=A", "--keys", "g=1", "--rest"]
    assert '"g": "more"' in asked(tmp_path, *several, "w=others", "--rest", "g=more").stdout
    assert '"w": "others"' in asked(tmp_path, *several, "others").stdout
    done = asked(tmp_path, *several, "w=others", "--rest", "more")
    assert done.exit_code == 2 and "--rest has 'more' besides another." in done.stderr
    done = asked(tmp_path, "count", "--by", "w", "--keys", "A", "--rest", "a", "--rest", "b")
    assert done.exit_code == 2 and "Give one name for the rest of every column" in done.stderr


def test_in_a_file_of_questions(tmp_path):
    path = tmp_path / "questions.toml"
    path.write_text(
        'schema = 1\ntable = "people"\n[[questions]]\nstatistic = "count"\nby = ["w", "g"]\n'
        'keys = { w = ["A"], g = [1] }\nrest = { w = "others" }\n',
        encoding="utf-8",
    )
    (query,) = read_batch(path).questions
    assert query.part.groups == (("A", 1), ("others", 1))
    schema = Path(__file__).parents[2] / "docs" / "schemas" / "questions.json"
    assert '"rest"' in schema.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace('{ w = "others" }', "3"), encoding="utf-8")
    with pytest.raises(QueryError, match="line 7: rest = 3 is not a text, or a table of them"):
        read_batch(path)


def test_receipts_fit_their_schema():
    folder = Path(__file__).parents[2] / "docs" / "schemas"
    release = people().release(accord.count(by="w", keys=KEYS, rest="others"))
    document = json.loads(json.dumps(release.receipt()))
    jsonschema.validate(document, json.loads((folder / "receipt.json").read_text(encoding="utf-8")))
    assert document["value"][-1]["w"] == "others"
