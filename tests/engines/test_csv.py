"""CSV files as they come: encodings, marks, words, dates. No row decides whether something fails."""

import gzip
import json
import tempfile
from datetime import date
from math import inf

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import accord
from accord.cli import main
from accord.errors import SourceError

GERMAN = accord.CSV(
    delimiter=";", decimal=",", thousands=".", dates="%d.%m.%Y", true=["ja", "Wahr"], false="nein"
)


def integers(source, query, csv=GERMAN, **options):
    summary = accord.table(source, **{"epsilon": "e", "csv": csv, **options}).reader.summary(query)
    return summary.people.tolist(), list(summary.rows())


def written(folder, lines, encoding="utf-8", name="people.csv"):
    content = "\r\n".join(lines).encode(encoding)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


def column(folder, name, *texts):
    """One person a text, at level 1, the columns at semicolons."""
    return written(folder, [f"e;{name}", *(f"1;{text}" for text in texts)])


# --- what is declared is what is read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("csv", "text", "number"),
    [
        ({"decimal": ","}, "3,5", 3.5),
        ({"decimal": ","}, " -3,5 ", -3.5),
        ({"decimal": ","}, "12", 12),
        ({"decimal": ","}, ",5", 0.5),
        ({"decimal": ","}, "2,5e1", 25),
        ({"decimal": ","}, "3.5", None),
        ({"decimal": ","}, "1,2,3", None),
        ({"decimal": ",", "thousands": "."}, "1.234,5", 1234.5),
        ({"decimal": ",", "thousands": "."}, "1.234.567", 1234567),
        ({"decimal": ",", "thousands": "."}, "1234,5", 1234.5),
        ({"decimal": ",", "thousands": "."}, "3.5", None),  # no group of three digits: not 35
        ({"decimal": ",", "thousands": "."}, "1.2345", None),
        ({"thousands": ","}, "1,234.5", 1234.5),
        ({"thousands": "'"}, "1'234.5", 1234.5),
        ({"decimal": ",", "thousands": " "}, "1\u00a0234,5", 1234.5),
        ({"decimal": ",", "thousands": " "}, "1\u202f234 567,5", 1234567.5),
        ({"decimal": ","}, "", None),
        ({"decimal": ","}, ",", None),
        ({"decimal": ","}, "inf", None),
        ({"decimal": ","}, "n/a", None),
        ({"true": "ja", "false": "nein"}, "JA", 1),
        ({"true": "ja", "false": "nein"}, " nein ", 0),
        ({"true": "ja", "false": "nein"}, "true", None),
        ({"true": "ja", "false": "nein"}, "7", 7),
        ({}, "True", 1),
    ],
)
def test_a_number_is_what_reads_as_declared(tmp_path, csv, text, number):
    path = column(tmp_path, "v", text)
    query = accord.mean("v", bounds=(-(2**22), 2**22), step=0.5, missing=2**21)
    expected = 2**21 if number is None else number
    assert integers(path, query, csv) == ([1], [[1, int((expected + 2**22) * 2)]])


@pytest.mark.parametrize(
    ("forms", "text", "day"),
    [
        ("%d.%m.%Y", "31.01.2026", date(2026, 1, 31)),
        ("%d.%m.%Y", " 1.2.2026", date(2026, 2, 1)),
        ("%d.%m.%Y", "31.02.2026", None),
        ("%d.%m.%Y", "31.01.26", None),  # not the year 26
        ("%d.%m.%Y", "2026-01-31", None),
        ("%d.%m.%y", "31.01.26", date(2026, 1, 31)),
        ("%m/%d/%Y", "01/31/2026", date(2026, 1, 31)),
        (["%d.%m.%Y", "%d.%m.%Y %H:%M"], "31.01.2026 23:59", date(2026, 1, 31)),
        ("%d.%m.%Y", "31x01x2026", None),
        ((), "2026-01-31", date(2026, 1, 31)),
    ],
)
def test_a_date_is_what_has_the_declared_form(tmp_path, forms, text, day):
    path = column(tmp_path, "day", text)
    bounds = (date(2020, 1, 1), date(2030, 1, 1))
    query = accord.median("day", bounds=bounds, missing=bounds[0])
    people = accord.table(path, epsilon=inf, csv={"dates": forms})
    assert people.release(query, "minimum").value == (day or bounds[0])
    later = accord.count(where="day >= '2026-01-31'")
    assert people.release(later, "minimum").value == (day is not None)


@pytest.mark.parametrize(
    ("where", "people"),
    [
        ("smokes = TRUE", 2),
        ("smokes = FALSE", 1),
        ("smokes <> TRUE", 1),
        ("smokes = 'ja'", 1),
        ("income > 1000.5", 1),
        ("income = 1234.5", 1),
        ("day > '2026-01-30' AND day <= '2026-01-31'", 1),
        ("name = 'Jürgen'", 1),
    ],
)
def test_conditions_read_as_declared(tmp_path, where, people):
    lines = [
        "e;smokes;income;day;name",
        "1;ja;1.234,5;31.01.2026;Jürgen",
        "1;NEIN;500;1.2.2026;x",
        "1;wahr;;;",
        "1;?;?;?;?",
    ]
    assert integers(written(tmp_path, lines), accord.count(where=where)) == ([4], [[4, people]])


def test_levels_are_read_as_declared(tmp_path):
    path = written(tmp_path, ["e;v", "0,5;1", "1.000,25;1", "inf;1", "0,1234567;1"])
    assert accord.table(path, epsilon="e", csv=GERMAN).spec().levels == (0.123456, 0.5, 1000.25, float("inf"))
    with pytest.raises(
        accord.errors.SpecError, match="3 of 4 people have a level that is NaN or not a number"
    ):
        accord.table(path, epsilon="e").spec()


def test_what_is_read_is_said_in_the_plan(tmp_path):
    people = accord.table(column(tmp_path, "v", "1,5"), epsilon="e", csv=GERMAN)
    assumptions = str(people.plan(accord.mean("v", bounds=(0, 9))))
    assert "what is not a number such as 1.234,5 is missing" in assumptions
    days = (date(2020, 1, 1), date(2030, 1, 1))
    assert "what is not a date such as 31.01.2026 is missing" in str(people.plan(accord.median("v", days)))


def test_names_of_folders_are_not_read_as_the_text_of_files(tmp_path):
    (tmp_path / "day=2026-01-31").mkdir()
    written(tmp_path, ["e;day2", "1;31.01.2026"], name="day=2026-01-31/people.csv")
    count = accord.count(where="day >= '2026-01-31' AND day2 >= '2026-01-31'")
    assert integers(tmp_path, count) == ([1], [[1, 1]])


# --- encodings --------------------------------------------------------------------------------------------------------------

ENCODINGS = ["latin-1", "windows-1252", "utf-16", "utf-16-le", "utf-8-sig", "cp850", "mac-roman"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_a_file_in_another_encoding_is_read(tmp_path, encoding, name):
    path = written(tmp_path, ["e;Größe", "1;ä", "1;ü", "1;ü"], encoding, name)
    assert integers(path, accord.count(where="\"Größe\" = 'ü'"), {"encoding": encoding}) == ([3], [[3, 2]])


@pytest.mark.parametrize(
    ("encoding", "bad"),
    [
        ("utf-8", b"M\xfcller"),
        ("utf-8", b"\xff"),
        ("utf-8", b"\xed\xa0\x80"),
        ("utf-8", b"\xc3"),
        ("latin-1", b"\x80\x9d"),
        ("windows-1252", b"\x81"),
        ("utf-16-le", b"\x00\xd8x\x00"),
        ("gb18030", b"\xff"),
        ("shift_jis", b"\xfd"),
        ("euc_kr", b"\xff\xff"),
    ],
)
def test_a_bad_byte_in_one_row_changes_nothing_for_anybody_else(tmp_path, encoding, bad):
    """Whether a release fails would tell that somebody's value has it."""
    first, last = ("e;v;name\n1;2;a\n1;3;".encode(encoding), "\n1;4;b\n".encode(encoding))
    path = tmp_path / "people.csv"
    path.write_bytes(first + bad + last)
    csv = {"encoding": encoding}
    assert integers(path, accord.sum("v", bounds=(0, 9), step=1), csv) == ([3], [[3, 9]])
    assert integers(path, accord.count(where="name IN ('a', 'b')"), csv) == ([3], [[3, 2]])
    assert integers(path, accord.count(where="name IS NULL"), csv) == ([3], [[3, 0]])
    people = accord.table(path, epsilon=1.0, user="name", csv=csv)
    assert people.spec().total == 3


def test_a_byte_that_is_not_utf_8_is_read_as_windows_1252(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes("e,name\n1,Müller\n".encode() + b"1,M\xfcller\n1,5\x80\n")
    assert integers(path, accord.count(where="name = 'Müller'"), None) == ([3], [[3, 2]])
    assert integers(path, accord.count(where="name = '5€'"), None) == ([3], [[3, 1]])


@given(
    st.binary(max_size=12).map(lambda b: b.translate(None, b'"\r\n,')),
    st.sampled_from(["utf-8", "cp1252", "cp932"]),
)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_bytes_in_a_row_are_read(tmp_path, content, encoding):
    path = tmp_path / "people.csv"
    path.write_bytes(b"e,name,v\n1,a,2\n1," + content + b",3\n")
    total = accord.sum("v", bounds=(0, 9), step=1, where="name = 'a' OR name <> 'a' OR name IS NULL")
    if encoding == "cp932" and content and content[-1] >= 0x80:
        return  # its second byte would be the comma
    assert integers(path, total, {"encoding": encoding})[0] == [2]


def test_copies_are_made_anew_when_a_file_changes_and_go_with_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    (tmp_path / "copies").mkdir()
    path = written(tmp_path, ["e;v", "1;ü"], "latin-1")
    people = accord.table(path, epsilon="e", csv={"encoding": "latin-1"})
    count = accord.count(where="v = 'ü'")
    assert not list((tmp_path / "copies").iterdir()), "nothing is read before it is asked for"
    assert list(people.reader.summary(count).rows()) == [[1, 1]]
    assert [p.stat().st_mode & 0o077 for p in (tmp_path / "copies").iterdir()] == [0]
    written(tmp_path, ["e;v", "1;ü", "1;ü"], "latin-1")
    with pytest.raises(SourceError):  # the levels are not those that were read before
        people.reader.summary(count)
    again = accord.table(path, epsilon="e", csv={"encoding": "latin-1"})
    assert list(again.reader.summary(count).rows()) == [[2, 2]]
    del people, again
    assert not list((tmp_path / "copies").iterdir())


# --- what the header tells --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("csv", "content", "message"),
    [
        (
            None,
            "Größe;e".encode("latin-1"),
            "the header of '{}' is not UTF-8. Say what it is, such as csv=accord.CSV(encoding='windows-1252') "
            "(on the command line --csv encoding=windows-1252).",
        ),
        (
            None,
            "Größe;e".encode("utf-16"),
            "the header of '{}' is not UTF-8; it looks like UTF-16. Give csv=accord.CSV(encoding='utf-16') "
            "(on the command line --csv encoding=utf-16).",
        ),
        (
            {"encoding": "latin-1"},
            "Größe;e".encode(),
            "the header of '{}' looks like UTF-8, and not like iso8859-1. Leave encoding out.",
        ),
        (
            {"encoding": "utf-16"},
            b"name;e",
            "the header of '{}' looks like UTF-8, and not like utf-16. Leave encoding out.",
        ),
        (
            {"encoding": "gb18030"},
            b"\xff;e",
            "the header of '{}' is not gb18030. Name the encoding that it is in.",
        ),
        (
            {"delimiter": ","},
            b"a;b;e",
            "the header of '{}' is one column where ',' separates them, and 3 where ';' does. "
            "This looks like delimiter=';'.",
        ),
        (
            {"delimiter": ";"},
            b"a\te",
            "the header of '{}' is one column where ';' separates them, and 2 where 'tab' does. "
            "This looks like delimiter='tab'.",
        ),
    ],
)
def test_a_wrong_encoding_or_delimiter_is_said_from_the_header_alone(tmp_path, csv, content, message):
    """The rows below have other marks and bytes, and change nothing."""
    for k, row in enumerate((b"", b"1,2|3\n", b"\xfc\xfc;;;\n" * 9)):
        path = tmp_path / f"{k}.csv"
        path.write_bytes(content + "\n".encode("utf-16-le" if b"\0" in content else "utf-8") + row)
        with pytest.raises(SourceError) as refused:
            accord.table(path, epsilon=1.0, csv=csv)
        assert str(refused.value) == message.format(path)


def test_a_name_in_quotes_may_have_any_mark(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b'"a;b"\n1\n')
    assert accord.table(path, epsilon=1.0, csv={"delimiter": ","}).columns == {"a;b": "untyped"}


@pytest.mark.parametrize(
    ("csv", "message"),
    [
        (
            {"delimiter": ";;"},
            "csv has delimiter=';;'. It is one character that is no letter, digit or quote, or 'tab'",
        ),
        ({"delimiter": '"'}, "csv has delimiter='\"'. It is one character"),
        ({"decimal": ";"}, "csv has decimal=';'. It is '.' or ','."),
        ({"thousands": "ab"}, "csv has thousands='ab'. It is one character, such as '.', ',', ' ' or \"'\"."),
        ({"thousands": "."}, "csv has '.' both as decimal and as thousands mark. Give two different ones."),
        (
            {"encoding": "klingon"},
            "csv has encoding='klingon', which is not known here. Give a name such as 'utf-8'",
        ),
        ({"encoding": "idna"}, "csv has encoding='idna', which is not known here."),
        ({"encoding": 8}, "csv has encoding=8, which is not known here."),
        ({"dates": "%d.%m"}, "csv has dates='%d.%m'. It is made of %Y (or %y), %m and %d, each once"),
        ({"dates": "%d %B %Y"}, "csv has dates='%d %B %Y'. It is made of"),
        ({"dates": 7}, "csv has dates=7. Give a text, or a list of texts."),
        ({"true": "ja"}, "csv has words for true or false alone, or one for both. Give both"),
        ({"true": "ja", "false": ["JA"]}, "csv has words for true or false alone, or one for both."),
        ({"decimals": ","}, "csv has no option 'decimals': did you mean 'decimal'?"),
        (";", "csv= is a str. Give accord.CSV(…), or a mapping of delimiter, decimal, thousands"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, csv, message):
    with pytest.raises(SourceError) as refused:
        accord.table(column(tmp_path, "v", "1"), epsilon="e", csv=csv)
    assert str(refused.value).startswith(message)


def test_csv_options_are_for_csv_files(tmp_path):
    accord.table({"e": [1.0]}, epsilon="e", csv=None)
    with pytest.raises(SourceError) as refused:
        accord.table({"e": [1.0]}, epsilon="e", csv=GERMAN)
    assert str(refused.value) == "csv= says how CSV files are read, and the table is none. Leave it out."
    pq.write_table(pa.table({"e": [1.0]}), tmp_path / "people.parquet")
    with pytest.raises(SourceError) as refused:
        accord.table(tmp_path / "people.parquet", epsilon="e", csv=GERMAN)
    assert str(refused.value) == (
        f"csv= says how CSV files are read, and '{tmp_path / 'people.parquet'}' is Parquet, which has types. "
        "Leave it out."
    )


def test_zst_is_read_in_utf_8_only(tmp_path):
    path = tmp_path / "people.csv.zst"
    duckdb.sql("SELECT 1 AS e, 'ü' AS v").write_csv(str(path), compression="zstd")
    assert integers(path, accord.count(where="v = 'ü'"), None) == ([1], [[1, 1]])
    with pytest.raises(SourceError) as refused:
        accord.table(path, epsilon="e", csv={"encoding": "latin-1"})
    assert str(refused.value) == f"'{path}' is packed as .zst, which is read in UTF-8 only. Pack it as .gz."


# --- on the command line ----------------------------------------------------------------------------------------------------


def run(path, *more):
    words = [
        "release",
        str(path),
        "mean",
        "Größe",
        "--bounds",
        "0",
        "4000",
        "--epsilon",
        "inf",
        "--mechanism",
        "minimum",
    ]
    return CliRunner().invoke(main, [*words, *more])


def test_options_on_the_command_line(tmp_path):
    path = written(tmp_path, ["Größe;x", *["1.234,5;ja", "2.234,5;j"] * 50], "windows-1252")
    options = [
        "encoding=cp1252",
        "delimiter=;",
        "decimal=,",
        "thousands=.",
        "true=ja",
        "true=j",
        "false=nein",
        "dates=%d.%m.%Y",
    ]
    options = [word for option in options for word in ("--csv", option)]
    assert json.loads(run(path, *options, "--json").stdout)["value"] == pytest.approx(1734.5, abs=0.01)
    refused = run(path, "--csv", "decimal")
    assert refused.exit_code == 2
    assert "--csv has 'decimal', which is not KEY=VALUE. Write --csv decimal=," in refused.output
    assert (
        "--csv has decimal twice. Give it once."
        in run(path, "--csv", "decimal=,", "--csv", "decimal=.").output
    )
    assert "csv has no option 'mark': Known: 'delimiter'" in run(path, "--csv", "mark=,").output
