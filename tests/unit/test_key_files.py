"""Keys: any list-like, and files of a public list, in Python, on the command line and in TOML files."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import accord
from accord.batches import read_batch
from accord.cli import main
from accord.errors import QueryError, SourceError
from accord.key_files import as_kind, read_key_file

LISTS = {
    "list": list,
    "tuple": tuple,
    "generator": iter,
    "NumPy": np.array,
    "Series": pd.Series,
    "Index": pd.Index,
    "Categorical": pd.Categorical,
    "polars": pl.Series,
    "Arrow": pa.array,
    "chunked": lambda keys: pa.chunked_array([keys[:1], keys[1:]]),
}


def keys_of(given, by="ward"):
    return accord.count(by=by, keys=given).part.keys[0]


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("keys", [["A", "B", "C"], [1, 2, 10], [0.5, 1.0], [True, False]], ids=str)
def test_every_list_is_the_same(kind, keys):
    read = keys_of(LISTS[kind](keys))
    assert read == tuple(keys)
    assert [type(key) for key in read] == [type(key) for key in keys]


@pytest.mark.parametrize(
    "table", [pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]}), pa.table({"a": [1, 2]}), np.eye(2)]
)
def test_a_table_is_no_list(table):
    with pytest.raises(
        QueryError, match=r"keys= is a table of 2 × \d, and no list. Give one of its columns."
    ):
        keys_of(table)


# ---- files -----------------------------------------------------------------------------------------------

TEXTS = {
    "codes": ("A01\nB 02\r\n\n  C03  \n", ("A01", "B 02", "C03")),
    "a mark": ("\ufeffA\nB", ("A", "B")),
    "numbers": ("1\n2.5\n-3\n", (1, 2.5, -3)),
    "codes that look like numbers": ("01\n2\n", ("01", "2")),
    "in quotes": ("'1'\n'2'\n", ("1", "2")),
    "truth values": ("true\nFalse\n", (True, False)),
    "commas": ("A,B\nC,D\n", ("A,B", "C,D")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_plain_text(name, tmp_path):
    text, keys = TEXTS[name]
    file = tmp_path / "codes.txt"
    file.write_bytes(text.encode())
    assert keys_of(file) == keys == keys_of(str(file))
    assert [type(key) for key in keys_of(file)] == [type(key) for key in keys]


CSVS = {
    "one column": ("code\nA\nB\n", ("A", "B")),
    "several": ("number,ward\n1,A\n2,B\n", ("A", "B")),
    "semicolons": ("number;ward\n1;A\n2;B,C\n", ("A", "B,C")),
    "quotes": ('ward\n"A,1"\n"B ""2"""\n', ("A,1", 'B "2"')),
    "numbers": ("ward\n7\n8\n", (7, 8)),
}


@pytest.mark.parametrize("name", CSVS)
def test_csv(name, tmp_path):
    text, keys = CSVS[name]
    file = tmp_path / "codes.csv"
    file.write_text(text, encoding="utf-8")
    assert keys_of(file) == keys


@pytest.mark.parametrize(
    "keys",
    [["A", "B"], [1, 2], [0.5, 2.0], [True, False], [Decimal("1.5"), Decimal(2)], [date(2026, 1, 1)]],
    ids=str,
)
def test_parquet(keys, tmp_path):
    file = tmp_path / "codes.parquet"
    pq.write_table(pa.table({"other": range(len(keys)), "ward": keys}), file)
    expected = [key.isoformat() if isinstance(key, date) else key for key in keys]
    assert keys_of(file) == tuple(expected)
    assert not any(isinstance(key, Decimal) for key in keys_of(file))


REFUSED = {
    "no file": (
        None,
        "codes.txt",
        "codes.txt' is not a list, and there is no file of this name. Give keys=",
    ),
    "a folder": ("", "folder.txt", r"folder.txt cannot be read \(IsADirectoryError\)"),
    "empty": (b"\n \n", "codes.txt", "codes.txt has no keys. Write each on a line of its own."),
    "only a header": (b"code\n", "codes.csv", "codes.csv has no keys"),
    "nothing": (b"", "codes.csv", "codes.csv has no keys"),
    "twice": (b"A\nB\nA\n", "codes.txt", "keys= in a file has 3 groups, 2 of them different"),
    "bytes": (b"A\n\xff\n", "codes.txt", "codes.txt is not text in UTF-8. Save it as that, or as .parquet."),
    "a workbook": (
        b"A",
        "codes.xlsx",
        "codes.xlsx ends in .xlsx, of which no keys are read. Give plain text",
    ),
    "two columns": (
        b"a,b\n1,2\n",
        "codes.csv",
        r"has 2 columns \(a, b\), and none of them is called 'ward'. The keys of a file are its only column",
    ),
    "two of one name": (
        b"ward,ward\n1,2\n",
        "codes.csv",
        r"has 2 columns \(ward, ward\). The keys of a file",
    ),
    "a gap": (b"ward,b\n,2\nA,3\n,1\n", "codes.csv", "codes.csv has 2 lines without a key. Leave them out"),
    "no Parquet": (b"PAR1", "codes.parquet", "codes.parquet is no Parquet file that can be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_list_of_keys_is_refused(name, tmp_path):
    content, called, message = REFUSED[name]
    file = tmp_path / called
    if content == "":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    with pytest.raises(QueryError, match=message):
        keys_of(file)


def test_missing_keys_and_two_kinds_in_parquet(tmp_path):
    file = tmp_path / "codes.parquet"
    pq.write_table(pa.table({"ward": ["A", None]}), file)
    with pytest.raises(QueryError, match="has 1 lines without a key"):
        keys_of(file)
    with pytest.raises(QueryError, match="keys= are of several kinds"):
        keys_of(["A", 1])


def test_a_file_for_each_of_several_columns(tmp_path):
    (tmp_path / "wards.txt").write_text("A\nB\n")
    keys = {"ward": tmp_path / "wards.txt", "sex": ["f", "m"]}
    assert accord.crosstab("ward", "sex", keys=keys).part.keys == (("A", "B"), ("f", "m"))


def test_what_a_column_holds_decides_how_its_keys_are_read():
    assert as_kind(["1", "2"], "text") == ["1", "2"]
    assert as_kind(["1", "x"], "number") == [1, "x"]  # which is refused where it is compared
    assert as_kind(["true", "2"], "boolean") == [True, "2"]
    assert as_kind(["9" * 400], "untyped") == ["9" * 400]


# ---- documents -------------------------------------------------------------------------------------------


def test_long_lists_are_a_number_and_a_digest_in_documents(tmp_path):
    keys = [f"k{j}" for j in range(100_000)]
    (tmp_path / "codes.txt").write_text("\n".join(keys))
    query = accord.count(by="w", keys=tmp_path / "codes.txt")
    assert query == accord.count(by="w", keys=keys)
    described = query.describe()["keys"]
    assert described["number"] == 100_000 and len(described["sha256"]) == 64
    assert accord.count(by="w", keys=keys[::-1]).describe()["keys"]["sha256"] != described["sha256"]
    assert accord.count(by="w", keys=keys[:1_000]).describe()["keys"] == keys[:1_000]
    assert accord.histogram("w", categories=keys).describe()["categories"] == described
    plan = accord.plan(accord.Spec.of([1.0] * 10), query)
    assert len(json.dumps(plan.describe())) < 10_000
    fewer = accord.plan(plan.spec, accord.count(by="w", keys=keys[:-1]))
    assert plan.fingerprint == accord.plan(plan.spec, query).fingerprint != fewer.fingerprint


# ---- the command line and TOML files ---------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(
        {"ward": ["A", "B", "1"] * 5, "sex": ["f", "m", "f"] * 5, "n": [1, 2, 3] * 5, "e": 1.0}
    )
    frame.to_parquet("people.parquet")
    frame.to_csv("people.csv", index=False)
    Path("wards.txt").write_text("A\n1\n")
    Path("ones.txt").write_text("1\n2\n")
    return tmp_path


def asked(*words):
    done = CliRunner().invoke(main, [*words, "--epsilon", "e", "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["query"]


@pytest.mark.parametrize("source", ["people.parquet", "people.csv"])
def test_a_file_on_the_command_line(source, folder):
    plan = ("plan", source, "count", "--by")
    assert asked(*plan, "ward", "--keys", "@wards.txt")["keys"] == ["A", "1"]
    assert asked(*plan, "n", "--keys", "@ones.txt")["keys"] == [1, 2]
    in_a_text_column = ["1", "2"] if source.endswith("parquet") else [1, 2]
    assert asked(*plan, "ward", "--keys", "@ones.txt")["keys"] == in_a_text_column
    several = asked(*plan, "ward", "--by", "sex", "--keys", "ward=@wards.txt", "--keys", "sex=f,m")
    assert several["keys"] == {"ward": ["A", "1"], "sex": ["f", "m"]}


def test_a_file_that_is_not_there_on_the_command_line(folder):
    done = CliRunner().invoke(
        main, ["plan", "people.csv", "count", "--by", "ward", "--keys", "@nothing.txt", "--epsilon", "e"]
    )
    assert done.exit_code == 1
    assert "there is no file of this name" in done.stderr


CATALOG = """schema = 1
[tables.people]
source = "people.parquet"
epsilon = "e"
[tables.people.columns.ward]
kind = "text"
keys = "{}"
"""


def test_files_are_beside_the_file_that_names_them(folder, monkeypatch):
    (folder / "accord.toml").write_text(CATALOG.format("ones.txt"))
    (folder / "questions.toml").write_text(
        'schema = 1\ntable = "people"\n[[questions]]\nstatistic = "count"\nby = "ward"\nkeys = "wards.txt"\n'
        '[[questions]]\nstatistic = "count"\nby = ["n", "ward"]\nkeys = { n = "ones.txt", ward = ["A"] }\n'
        '[[questions]]\nstatistic = "count"\nby = "ward"\nname = "as declared"\n'
    )
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    people = accord.catalog("../accord.toml")["people"]
    workload = read_batch("../questions.toml").asked_of(people)
    assert [query.part.keys for query in workload.queries] == [(("A", "1"),), ((1, 2), ("A",)), (("1", "2"),)]


def test_a_description_says_which_file_is_missing(folder):
    (folder / "accord.toml").write_text(CATALOG.format("nothing.txt"))
    with pytest.raises(SourceError, match=r"accord.toml, line 7: keys=.*there is no file of this name"):
        accord.catalog("accord.toml")


def test_keys_in_a_file_are_what_is_in_it(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n")
    assert read_key_file(tmp_path / "a.txt") == ["1", "2"]


# ---- the table's own file ------------------------------------------------------------------------------------


@pytest.fixture
def wards(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("ward,level\nA,1\nB,1\nD,1\n")
    Path("public.csv").write_text("ward\nA\nB\nC\n")
    return accord.table("people.csv", epsilon="level")


@pytest.mark.parametrize("place", ["people.csv", "./people.csv", "link.csv", Path("people.csv")], ids=str)
def test_keys_are_not_the_tables_own(place, wards):
    """Whoever is there would be in the keys, and who is alone in a ward in an answer about it."""
    Path("link.csv").symlink_to("people.csv")
    asked = accord.count(by="ward", keys=place)
    for ask in (
        wards.plan,
        wards.release,
        lambda query: wards.plan(accord.workload([accord.count(), query])),
    ):
        with pytest.raises(QueryError, match="is a file of people, not a public list"):
            ask(asked)
    with pytest.raises(QueryError, match="is a file of people"):
        wards.release(accord.plan(wards.spec(), asked))
    with pytest.raises(QueryError, match="is a file of people"):
        wards.plan(accord.crosstab("ward", "level", keys={"ward": place, "level": [1]}))
    assert wards.plan(accord.count(by="ward", keys="public.csv")).query.groups == 3


def test_keys_are_not_the_tables_own_in_words_sql_and_batches(wards):
    words = ["plan", "people.csv", "count", "--by", "ward", "--epsilon", "level", "--keys"]
    done = CliRunner().invoke(main, [*words, "@people.csv"])
    assert done.exit_code == 1 and "is a file of people" in done.stderr
    assert CliRunner().invoke(main, [*words, "@public.csv"]).exit_code == 0
    select = "SELECT ward, COUNT(*) FROM 'people.csv' GROUP BY ward"
    done = CliRunner().invoke(
        main, ["sql", select, "--epsilon", "level", "--plan", "--keys", "ward=@people.csv"]
    )
    assert done.exit_code == 1 and "is a file of people" in done.stderr
    with pytest.raises(QueryError, match="is a file of people"):
        wards.sql("SELECT ward, COUNT(*) FROM people GROUP BY ward", keys={"ward": "people.csv"})
    Path("questions.toml").write_text(
        'schema = 1\ntable = "people"\nshare = 0.5\n[[questions]]\nname = "wards"\nstatistic = "count"\nby = "ward"\nkeys = "people.csv"\n'
    )
    with pytest.raises(QueryError, match="is a file of people"):
        wards.plan(read_batch("questions.toml").asked_of(wards))
